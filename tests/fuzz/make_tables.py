"""Makes the seeds of corpus/csv, corpus/sequence, corpus/npy and corpus/npz beside this file. Needs nothing but Python itself."""
import gzip, io, os, struct, zipfile

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus")


def put(folder, name, data):
    os.makedirs(os.path.join(HERE, folder), exist_ok=True)
    with open(os.path.join(HERE, folder, name), "wb") as f:
        f.write(data)


def array(descr, shape, data, version=1, fortran=False, text=None):
    head = text or "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }" % (descr, fortran, shape)
    before = 10 if version == 1 else 12
    head += " " * (-(len(head) + 1 + before) % 64) + "\n"
    length = struct.pack("<H" if version == 1 else "<I", len(head))
    return b"\x93NUMPY" + bytes([version, 0]) + length + head.encode() + data


def archive(members, method, force64=False):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as z:
        for name, data in members.items():
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.compress_type = method
            with z.open(info, "w", force_zip64=force64) as f:
                f.write(data)
    return out.getvalue()


def packed(data):
    return gzip.compress(data, mtime=0)


table = b"path,label\na.jpg,cat\nb.png,dog\n"
put("csv", "header", table)
put("csv", "bare", b"a.jpg;1\r\nb.png;2\r\n")
put("csv", "quoted", b'\xef\xbb\xbfid\tfile\tclass\n1\t"a.jpg"\t"two\nlines ""x"""\n2\tb.png\ty\n')
put("csv", "packed", packed(table))
put("csv", "ragged", b"image,target\na.jpg,1,2\n")
put("csv", "mixed", b"a.jpg,1\nb.png,cat\nc.png,3.0\n")
put("csv", "open", b'path,label\n"a.jpg,1\n')

put("sequence", "lines", b"\x001, 2, 3\n4,5,6\n")
put("sequence", "lengths", b"\x01-1 2\t3\r\n4;5\r\n\r\n7 8 9 10")
put("sequence", "none", b"\x021\n2\n")
put("sequence", "second", b"\x031,2\n2147483647,0,-2147483648\n")
put("sequence", "packed", b"\x00" + packed(b"1,2\n3,4\n"))
put("sequence", "wide", b"\x0099999999999,1\n")
put("sequence", "gap", b"\x001,,2\n")

x = array("|u1", (3, 2, 2), bytes(range(12)))
y = array("<i8", (3,), struct.pack("<3q", 0, 2, 1))


def pair(labels, images):
    return struct.pack("<H", len(labels)) + labels + images


put("npy", "pictures", pair(y, x))
put("npy", "planes", pair(array(">u2", (2, 1), b"\0\1\0\2", 2), array("|u1", (2, 3, 5, 5), bytes(150), 3)))
put("npy", "floats", pair(b"", array(">f4", (2, 3), bytes(24))))
put("npy", "fortran", pair(y, array("<f8", (3, 2), bytes(48), fortran=True)))
put("npy", "objects", pair(y, array("|O", (3,), b"\x80\x04")))
put("npy", "structure", pair(y, array("", (), b"", text="{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }")))
put("npy", "scalar", pair(y, array("<f4", (), bytes(4))))

members = {"x_train.npy": x, "y_train.npy": y, "x_test.npy": x, "y_test.npy": y}
put("npz", "stored", archive(members, zipfile.ZIP_STORED))
put("npz", "deflated", archive(members, zipfile.ZIP_DEFLATED))
put("npz", "zip64", archive(members, zipfile.ZIP_DEFLATED, True))
put("npz", "method", archive({"x.npy": x, "y.npy": y}, zipfile.ZIP_BZIP2))
put("npz", "floats", archive({"data.npy": array(">f4", (2, 3), bytes(24))}, zipfile.ZIP_DEFLATED))
put("npz", "empty", archive({}, zipfile.ZIP_STORED))
