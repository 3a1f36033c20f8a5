# made.py: data sets for the shell tests of this folder, made with the standard library alone.
import io
import os
import struct
import tarfile
import zipfile
import zlib

COLOURS = [(250, 10, 10), (10, 250, 10), (10, 10, 250), (240, 240, 20), (20, 240, 240), (240, 20, 240)]


def png(colour, width=8, height=8):
    """A picture of one colour."""
    row = b"\0" + bytes(colour) * width

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(row * height)) + chunk(b"IEND", b"")


def picture(k):
    """The k-th picture: of its class's colour, and never twice the same."""
    red, green, blue = COLOURS[k % len(COLOURS)]
    return png((red, green, (blue + k // len(COLOURS)) % 256))


def put(path, data):
    if os.path.dirname(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


def tar(path, members, mode="w"):
    """members: pairs of a name and its bytes."""
    with tarfile.open(path, mode) as archive:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))


def zip_of(path, members, method=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in members:
            archive.writestr(name, data)


def labelled(names, label=lambda k: k % 2):
    """For each name a picture and its class, as neighbours."""
    return [one for k, name in enumerate(names) for one in ((name + ".png", picture(k)), (name + ".cls", b"%d" % label(k)))]


def npy(data, shape, kind="|u1"):
    head = "{'descr': '%s', 'fortran_order': False, 'shape': (%s,), }" % (kind, ", ".join(map(str, shape)))
    head += " " * (-(10 + len(head) + 1) % 64) + "\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head.encode() + data


def npz(path, arrays, method=zipfile.ZIP_STORED):
    """arrays: name, bytes of u8 elements, shape."""
    zip_of(path, [(name + ".npy", npy(data, shape)) for name, data, shape in arrays], method)
