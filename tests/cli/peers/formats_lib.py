"""Shared by the scripts that test other writers and readers: pictures in folders, the command, and writers of each format.

TensorFlow is imported only where it is used: each script runs in a Python that may have only its own peer."""
import hashlib
import io
import os
import struct
import subprocess
import tarfile

REC_MAGIC = struct.pack("<I", 0xCED7230A)


def command(millrace, *always):
    """Return run(argument, ...), which returns the command's output; the command must succeed."""

    def run(*args):
        done = subprocess.run([millrace, *args, *always], capture_output=True, text=True)
        assert done.returncode == 0, (args, done.returncode, done.stderr)
        return done.stdout

    return run


def contents(path):
    with open(path, "rb") as f:
        return f.read()


def digest(data):
    return hashlib.sha256(data).hexdigest()


def listed(folder):
    """(bytes, label, class, CLASS/FILE) in the order of names."""
    classes = sorted(n for n in os.listdir(folder) if os.path.isdir(os.path.join(folder, n)))
    for label, name in enumerate(classes):
        for file in sorted(os.listdir(os.path.join(folder, name))):
            yield contents(os.path.join(folder, name, file)), label, name, f"{name}/{file}"


def cut(samples, parts):
    """In parts of nearly one size, in order."""
    return [samples[k * len(samples) // parts:(k + 1) * len(samples) // parts] for k in range(parts)]


# ---- tar
def write_tar(path, members, form=tarfile.PAX_FORMAT, mode="w"):
    """members: (name, bytes)."""
    with tarfile.open(path, mode, format=form) as tar:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            info.mtime = 1.25  # needs a PAX record
            tar.addfile(info, io.BytesIO(data))


# ---- RecordIO
def rec_frame(data):
    """One record; where data holds the magic at a multiple of 4 it is stored in parts, without it."""
    parts, start = [], 0
    for at in range(0, len(data) - 3, 4):
        if data[at:at + 4] == REC_MAGIC:
            parts.append(data[start:at])
            start = at + 4
    parts.append(data[start:])
    flags = [0] if len(parts) == 1 else [1] + [2] * (len(parts) - 2) + [3]
    return b"".join(REC_MAGIC + struct.pack("<I", f << 29 | len(p)) + p + b"\0" * (-len(p) % 4) for f, p in zip(flags, parts))


def write_list(name, samples):
    """NAME.lst as im2rec makes it; samples: (label, path)."""
    with open(name + ".lst", "w") as lst:
        for number, (label, path) in enumerate(samples):
            lst.write("%d\t%f\t%s\n" % (number, label, path))


def write_rec(name, samples):
    """NAME.rec, .idx and .lst; samples: (label, path, bytes)."""
    offset = 0
    with open(name + ".rec", "wb") as rec, open(name + ".idx", "w") as idx:
        for number, (label, _, data) in enumerate(samples):
            record = rec_frame(struct.pack("<IfQQ", 0, label, number, 0) + data)
            rec.write(record)
            idx.write("%d\t%d\n" % (number, offset))
            offset += len(record)
    write_list(name, [(label, path) for label, path, _ in samples])


# ---- TFRecord, by TensorFlow
def tensorflow():
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow

    return tensorflow


def tf_example(features):
    """features: name -> bytes, a list of bytes or of whole numbers, or an array."""
    tf = tensorflow()

    def feature(values):
        values = [values] if isinstance(values, bytes) else values
        if len(values) and isinstance(values[0], bytes):
            return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
        if hasattr(values, "dtype") and values.dtype.kind == "f":
            return tf.train.Feature(float_list=tf.train.FloatList(value=values))
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))

    return tf.train.Example(features=tf.train.Features(feature={k: feature(v) for k, v in features.items()})).SerializeToString()


def write_tfrecords(paths, examples, packed=""):
    tf = tensorflow()
    for path, part in zip(paths, cut(examples, len(paths))):
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with tf.io.TFRecordWriter(path, tf.io.TFRecordOptions(compression_type=packed)) as writer:
            for one in part:
                writer.write(one)
