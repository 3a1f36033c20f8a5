"""Small data sets in every format, written with the standard library alone, and what millrace makes of them.

A picture shows its class: one block of 4 x 4 is white. A network of a few thousand weights learns that in a second, so the accuracy of
a run says whether labels arrived, and a picture that comes out of a conversion says by itself which class it is.

A set is a list of (class, label): the class is the picture's, 0 to 15; the label is the set's name for it, a number or a text."""
import io
import json
import os
import shutil
import struct
import subprocess
import tarfile
import tempfile
import zipfile
import zlib

SIDE, BLOCK = 8, 2
NUMBERED = ("tar", "json", "tfrecord", "rec", "mds", "csv", "npz", "npy", "idx", "folder", "mrec")
NAMED = ("tar", "tfrecord", "mds", "csv", "folder", "mrec")


# ---- pictures
def pixels(shown):
    """8 x 8 gray values."""
    row, column = divmod(shown, 4)
    rows = [bytearray(SIDE) for _ in range(SIDE)]
    for y in range(BLOCK):
        for x in range(BLOCK):
            rows[row * BLOCK + y][column * BLOCK + x] = 255
    return bytes(b"".join(rows))


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(shown):
    gray = pixels(shown)
    rows = b"".join(b"\0" + gray[y * SIDE:(y + 1) * SIDE] for y in range(SIDE))
    head = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def paeth(a, b, c):
    p = a + b - c
    return min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]


def shown_in(data):
    """The class that a PNG of 8 x 8, 8 bits, gray or colour shows."""
    at, packed, channels = 8, b"", 1
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + size]
        if kind == b"IHDR":
            assert body[:9] == struct.pack(">IIB", SIDE, SIDE, 8) and body[9] in (0, 2), body
            channels = 3 if body[9] == 2 else 1
        if kind == b"IDAT":
            packed += body
        at += 12 + size
    raw, width, before = zlib.decompress(packed), SIDE * channels, bytearray(SIDE * channels)
    best = (0, 0, 0)
    for y in range(SIDE):
        kind, line = raw[y * (width + 1)], bytearray(raw[y * (width + 1) + 1:(y + 1) * (width + 1)])
        for x in range(width):
            a, b = line[x - channels] if x >= channels else 0, before[x]
            c = before[x - channels] if x >= channels else 0
            line[x] = line[x] + (0, a, b, (a + b) // 2, paeth(a, b, c))[kind] & 255
        for x in range(SIDE):
            best = max(best, (line[x * channels], -y, -x))
        before = line
    return -best[1] // BLOCK * 4 + -best[2] // BLOCK


# ---- formats: write(path without ending, samples) -> the path to open
def tar_of(path, members):
    with tarfile.open(path, "w") as tar:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


def is_named(samples):
    return isinstance(samples[0][1], str)


def numbered(samples):
    """The names, in order, and the samples with numbers in their place."""
    if not is_named(samples):
        return None, samples
    names = sorted({label for _, label in samples}, key=lambda name: name.encode())
    return names, [(shown, names.index(label)) for shown, label in samples]


def write_tar(path, samples):
    names, samples = numbered(samples)
    members = [("__classes__", "".join(n + "\n" for n in names).encode())] if names else []
    for k, (shown, label) in enumerate(samples):
        members += [("%05d.png" % k, png(shown)), ("%05d.cls" % k, b"%d" % label)]
    return tar_of(path + ".tar", members)


def write_json(path, samples):
    members = []
    for k, (shown, label) in enumerate(samples):
        members += [("%05d.png" % k, png(shown)), ("%05d.json" % k, json.dumps({"label": label}).encode())]
    return tar_of(path + ".json.tar", members)


def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out) + bytes([n])


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def masked_crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CRC[(crc ^ byte) & 255] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def crc_entry(k):
    for _ in range(8):
        k = k >> 1 ^ (0x82F63B78 if k & 1 else 0)
    return k


CRC = [crc_entry(k) for k in range(256)]


def feature(value):
    if isinstance(value, bytes):
        return field(1, field(1, value))
    return field(3, field(1, varint(value)))


def write_tfrecord(path, samples):
    names, samples = numbered(samples)
    path += ".tfrecord"
    with open(path, "wb") as out:
        for shown, label in samples:
            features = {b"image/encoded": png(shown), b"image/class/label": label}
            if names:
                features[b"image/class/text"] = names[label].encode()
            example = field(1, b"".join(field(1, field(1, k) + field(2, feature(v))) for k, v in features.items()))
            head = struct.pack("<Q", len(example))
            out.write(head + struct.pack("<I", masked_crc32c(head)) + example + struct.pack("<I", masked_crc32c(example)))
    return path


def write_rec(path, samples):
    path += ".rec"
    with open(path, "wb") as out:
        for k, (shown, label) in enumerate(samples):
            data = struct.pack("<IfQQ", 0, label, k, 0) + png(shown)
            out.write(struct.pack("<II", 0xCED7230A, len(data)) + data + bytes(-len(data) % 4))
    return path


def write_mds(path, samples):
    """Two shards and their index; names of classes as millrace writes them."""
    path += ".mds"
    os.makedirs(path)
    names, samples = numbered(samples)
    columns = {"column_encodings": ["png", "int"], "column_names": ["image", "label"], "column_sizes": [None, 8], "compression": None,
               "format": "mds", "hashes": [], "size_limit": None, "version": 2}
    text = json.dumps(columns).encode()
    index = {"shards": [], "version": 2}
    if names:
        index["class_names"] = names
    half = (len(samples) + 1) // 2
    for k, part in enumerate((samples[:half], samples[half:])):
        rows = [struct.pack("<I", len(png(shown))) + png(shown) + struct.pack("<q", label) for shown, label in part]
        at = [8 + 4 * len(rows) + len(text)]
        for row in rows:
            at.append(at[-1] + len(row))
        data = struct.pack("<%dI" % (len(at) + 1), len(rows), *at) + text + b"".join(rows)
        name = "shard.%05d.mds" % k
        with open(path + "/" + name, "wb") as out:
            out.write(data)
        raw = {"basename": name, "bytes": len(data), "hashes": {}}
        index["shards"].append({**columns, "raw_data": raw, "samples": len(rows), "zip_data": None})
    with open(path + "/index.json", "w", encoding="utf-8") as out:
        json.dump(index, out)
    return path


def write_csv(path, samples):
    os.makedirs(path + ".pictures", exist_ok=True)
    with open(path + ".csv", "w", encoding="utf-8") as out:
        out.write("path,label\n")
        for k, (shown, label) in enumerate(samples):
            name = "%s.pictures/%05d.png" % (path, k)
            with open(name, "wb") as picture:
                picture.write(png(shown))
            out.write('%s.pictures/%05d.png,%s\n' % (os.path.basename(path), k, label))
    return path + ".csv"


def npy(kind, shape, data):
    text = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (kind, shape)
    text += " " * (-(len(text) + 11) % 64) + "\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text.encode() + data


def arrays(samples):
    n = len(samples)
    return (npy("|u1", "(%d, %d, %d)" % (n, SIDE, SIDE), b"".join(pixels(shown) for shown, _ in samples)),
            npy("<i4", "(%d,)" % n, struct.pack("<%di" % n, *(label for _, label in samples))))


def write_npz(path, samples):
    with zipfile.ZipFile(path + ".npz", "w") as out:
        for name, data in zip(("images", "labels"), arrays(samples)):
            out.writestr(name + ".npy", data)
    return path + ".npz"


def write_npy(path, samples):
    for name, data in zip((path + ".npy", path + "_labels.npy"), arrays(samples)):
        with open(name, "wb") as out:
            out.write(data)
    return path + ".npy"


def write_idx(path, samples):
    path += ".idx"
    os.makedirs(path, exist_ok=True)
    n = len(samples)
    with open(path + "/train-images-idx3-ubyte", "wb") as out:
        out.write(struct.pack(">IIII", 0x803, n, SIDE, SIDE) + b"".join(pixels(shown) for shown, _ in samples))
    with open(path + "/train-labels-idx1-ubyte", "wb") as out:
        out.write(struct.pack(">II", 0x801, n) + bytes(label for _, label in samples))
    return path


def write_folder(path, samples):
    path += ".folder"
    for k, (shown, label) in enumerate(samples):
        os.makedirs("%s/%s" % (path, label), exist_ok=True)
        with open("%s/%s/%05d.png" % (path, label, k), "wb") as out:
            out.write(png(shown))
    return path


WRITERS = {"tar": write_tar, "json": write_json, "tfrecord": write_tfrecord, "rec": write_rec, "mds": write_mds, "csv": write_csv, "npz": write_npz,
           "npy": write_npy, "idx": write_idx, "folder": write_folder}


# ---- the command
class Wrong(Exception):
    """Something came out that is neither right nor an error."""


class Refused(Exception):
    pass


class Tool:
    """Runs millrace in a folder of its own; files are called by how many there were before."""

    def __init__(self, millrace):
        self.millrace, self.count = millrace, 0

    def run(self, *args, may_fail=True):
        done = subprocess.run([self.millrace, *args], capture_output=True, text=True, errors="replace", check=False)
        if done.returncode == 0:
            return done.stdout
        if done.returncode not in (1, 2, 3) or "millrace: " not in done.stderr:
            raise Wrong("%s ended with %d: %s" % (" ".join(args), done.returncode, done.stderr[-300:]))
        if not may_fail:
            raise Wrong("%s: %s" % (" ".join(args), done.stderr[-300:]))
        raise Refused("%s: %s" % (" ".join(args[:2]), done.stderr.strip().split("\n")[-1]))

    def name(self):
        self.count += 1
        return "s%d" % self.count

    def write(self, form, samples):
        """The path of a new set."""
        if form != "mrec":
            return WRITERS[form](self.name(), samples)
        return self.convert(write_tar(self.name(), samples), "mrec")

    def convert(self, path, kind):
        out = "%s.%s" % (self.name(), kind)
        self.run("convert", path, out, "--to", kind, "--quiet", "--index-folder", "off")
        return out

    def export(self, path):
        out = self.name() + ".folder"
        self.run("export", path, out, "--quiet", "--index-folder", "off")
        return out

    def classes_of(self, path):
        """{class that a picture shows: the set's name for it}, as it comes out of a conversion to tar."""
        return tar_classes(self.convert(path, "tar"))

    def train(self, train, val, *more):
        """Best accuracy on val of a short run; there is no other way to 1 than the right labels."""
        out = self.run("train", train, "--val", val, "--model", "cifar-cnn-small", "--epochs", "30", "--batch", "12", "--augment",
                       "resize(8x8)", "--optimizer", "adam", "--lr", "5e-3", "--schedule", "constant", "--threads", "1", "--channels",
                       "3", "--index-folder", "off", "--json", *GOAL, *more)
        epochs = [json.loads(line) for line in out.splitlines() if line.startswith('{"event": "epoch"')]
        return max(e["val_accuracy"] for e in epochs)

    def predict(self, path, checkpoint):
        """[(label, class)] of all samples."""
        out = self.run("predict", path, "--checkpoint", checkpoint, "--index-folder", "off", "--json", "--threads", "1")
        rows = [json.loads(line) for line in out.splitlines() if line.startswith('{"event": "prediction"')]
        return [(r["label"], r["class"]) for r in rows]


GOAL = ("--stop-at-accuracy", "1")


def tar_classes(path):
    found, pictures, names = {}, {}, None
    with tarfile.open(path) as tar:
        for member in tar:
            key, _, kind = member.name.rpartition(".")
            data = tar.extractfile(member).read()
            if member.name == "__classes__":
                names = data.decode().split("\n")[:-1]
            elif kind == "png":
                pictures[key] = shown_in(data)
            elif kind == "cls":
                found.setdefault(pictures[key], set()).add(names[int(data)] if names else str(int(data)))
    return found


def folder_classes(path):
    found = {}
    for name in os.listdir(path):
        for folder, _, files in os.walk(os.path.join(path, name)):
            for file in files:
                with open(os.path.join(folder, file), "rb") as picture:
                    found.setdefault(shown_in(picture.read()), set()).add(name)
    return found


def declared(samples):
    return {shown: {str(label)} for shown, label in samples}


def same(found, samples, what):
    if found != declared(samples):
        raise Wrong("%s: expected %s, found %s" % (what, declared(samples), found))


def absolute(path):
    return os.path.abspath(path)


def temporary(name):
    """A folder of the test's own temporary one."""
    return os.path.join(tempfile.gettempdir(), name)


def fresh(folder):
    """An empty folder, to work in."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    os.chdir(folder)
