"""Reads what `millrace convert --to tfrecord|tar` wrote with the software these formats come from. See test_leave_peers.sh.

leave.py MILLRACE tensorflow|webdataset. The folder it runs in holds the pictures d/ (synth), the numbers ix/ (IDX), and is free to write
into. Readers must find the same bytes, pixels, classes and numbers in the same order."""
import io
import os
import struct
import sys
import tarfile

import numpy as np

import formats_lib

millrace, peer = sys.argv[1:]
run = formats_lib.command(millrace, "--quiet")


def idx(path):
    with open(os.path.join(path, "train-images-idx3-ubyte"), "rb") as f:
        count, rows, columns = struct.unpack(">4xIII", f.read(16))
        pixels = np.frombuffer(f.read(), np.uint8).reshape(count, rows, columns)
    with open(os.path.join(path, "train-labels-idx1-ubyte"), "rb") as f:
        return list(zip(pixels, f.read()[8:]))


def arrays():
    """Numbers without pictures, one .npz for each type: its arrays, and its name without the suffix."""
    random = np.random.default_rng(4)
    data = {"i64": random.integers(-2**62, 2**62, (9, 4)), "f32": random.random((9, 5)).astype(np.float32), "f64": random.random((9, 2, 3)),
            "u8": random.integers(0, 256, (9, 7)).astype(np.uint8), "f16": random.random((9, 2)).astype(np.float16)}
    for name, values in data.items():
        np.savez(name + ".npz", x=values, y=np.arange(9) % 4)
    return data.items()


pictures = [(data, label, name) for data, label, name, _ in formats_lib.listed("d/train")]
numbers = idx("ix")


def by_tensorflow():
    tf = formats_lib.tensorflow()
    fixed = lambda kind: tf.io.FixedLenFeature([], kind)
    usual = {"image/encoded": fixed(tf.string), "image/format": fixed(tf.string), "image/height": fixed(tf.int64),
             "image/width": fixed(tf.int64), "image/channels": fixed(tf.int64), "image/class/label": fixed(tf.int64)}

    def read(paths, features):
        data = tf.data.TFRecordDataset(paths).map(lambda record: tf.io.parse_single_example(record, features))
        return [{k: v.numpy() if not isinstance(v, tf.SparseTensor) else v.values.numpy() for k, v in one.items()} for one in data]

    def check_pictures(what, paths):
        found = read(paths, {**usual, "image/class/text": fixed(tf.string)})
        assert len(found) == len(pictures), (what, len(found))
        for one, (data, label, name) in zip(found, pictures):
            shape = tf.io.decode_image(one["image/encoded"]).shape
            assert one["image/encoded"] == data and one["image/format"] == b"jpeg", what
            assert one["image/class/label"] == label and one["image/class/text"] == name.encode(), what
            assert tuple(shape) == (one["image/height"], one["image/width"], one["image/channels"]), what
        print(f"{what}: {len(found)} pictures")

    run("convert", "d", "one.tfrecord", "--to", "tfrecord")
    check_pictures("folder", ["one.tfrecord"])
    run("convert", "d", "set", "--to", "tfrecord", "--shard-size", "50K")
    shards = sorted(name for name in os.listdir(".") if name.startswith("set-"))
    assert len(shards) > 1 and shards[-1].endswith(f"{len(shards) - 1:05d}-of-{len(shards):05d}"), shards
    check_pictures("shards", shards)
    run("convert", "d", "d.mrec")
    run("convert", "d.mrec", "m.tfrecord", "--to", "tfrecord")
    check_pictures("record file", ["m.tfrecord"])

    run("convert", "ix", "png.tfrecord", "--to", "tfrecord")
    run("convert", "ix", "raw.tfrecord", "--to", "tfrecord", "--store", "raw")
    for path, form in (("png.tfrecord", b"png"), ("raw.tfrecord", b"raw")):
        found = read([path], usual)
        assert len(found) == len(numbers)
        for one, (pixels, label) in zip(found, numbers):
            data = one["image/encoded"]
            image = tf.io.decode_png(data).numpy()[:, :, 0] if form == b"png" else \
                tf.io.decode_raw(data, tf.uint8).numpy().reshape(one["image/height"], one["image/width"])
            assert one["image/format"] == form and one["image/class/label"] == label and (image == pixels).all(), path
        print(f"IDX as {form.decode()}: {len(found)} pictures")

    # boxes: written by TensorFlow, read and written by us, read by TensorFlow
    random = np.random.default_rng(2)
    sides = ["image/object/bbox/" + side for side in ("xmin", "ymin", "xmax", "ymax")]
    want, examples = [], []
    for k, (data, label, name) in enumerate(pictures):
        boxes = [random.random(k % 4).astype(np.float32) for _ in sides]
        labels = random.integers(0, 90, k % 4)
        examples.append(formats_lib.tf_example({"image/encoded": data, "image/class/label": [label], "image/class/text": name.encode(),
                                                "image/object/class/label": labels, **dict(zip(sides, boxes))}))
        want.append((boxes, labels))
    formats_lib.write_tfrecords(["boxes.tf"], examples)
    run("convert", "boxes.tf", "boxes.tfrecord", "--to", "tfrecord")
    run("convert", "boxes.tfrecord", "boxes.mrec")
    run("convert", "boxes.mrec", "boxes2.tfrecord", "--to", "tfrecord")
    with open("boxes.tfrecord", "rb") as a, open("boxes2.tfrecord", "rb") as b:
        assert a.read() == b.read(), "through a record file the bytes change"
    check_pictures("boxes", ["boxes.tfrecord"])
    for one, (boxes, labels) in zip(read(["boxes.tfrecord"], {k: tf.io.VarLenFeature(tf.float32) for k in sides} |
                                         {"image/object/class/label": tf.io.VarLenFeature(tf.int64)}), want):
        assert all((one[side] == v).all() and len(one[side]) == len(v) for side, v in zip(sides, boxes))
        assert (one["image/object/class/label"] == labels).all()
    digests = {run("digest", data, "--augment", "resize(20x20)") for data in ("boxes.tf", "boxes.tfrecord", "one.tfrecord", "d")}
    assert len(digests) == 1, digests
    run("convert", "boxes.tf", "boxes.tar", "--to", "tar")
    with tarfile.open("boxes.tar") as tar:
        for k, (boxes, labels) in enumerate(want):
            stacked = np.load(io.BytesIO(tar.extractfile(f"{k:06d}.boxes.npy").read()))
            assert (stacked == np.array(boxes).T.reshape(-1, 4)).all()
            assert (np.load(io.BytesIO(tar.extractfile(f"{k:06d}.box_labels.npy").read())) == labels).all()
    print(f"boxes: {sum(len(labels) for _, labels in want)} of them")

    for name, values in arrays():
        run("convert", name + ".npz", name + ".tfrecord", "--to", "tfrecord")
        float_or_int = (tf.float32, np.float32) if values.dtype.kind == "f" else (tf.int64, np.int64)
        features = {"data": tf.io.VarLenFeature(float_or_int[0]), "data/shape": tf.io.VarLenFeature(tf.int64), "label": fixed(tf.int64)}
        found = read([name + ".tfrecord"], features)
        assert len(found) == 9
        for k, one in enumerate(found):
            assert (one["data"] == values[k].astype(float_or_int[1]).ravel()).all() and one["label"] == k % 4, name
            assert list(one["data/shape"]) == ([2, 3] if name == "f64" else []), name
        print(f"{name}: 9 samples")


def by_webdataset():
    import webdataset

    def read(paths):
        return list(webdataset.WebDataset(paths, shardshuffle=False))

    def check_pictures(what, paths):
        found = read(paths)
        assert len(found) == len(pictures), (what, len(found))
        for one, (data, label, name) in zip(found, pictures):
            assert one["jpg"] == data and int(one["cls"]) == label, what
            assert one["__key__"].startswith(f"train/{name}/"), (what, one["__key__"])
        print(f"{what}: {len(found)} pictures")

    run("convert", "d", "one.tar", "--to", "tar")
    check_pictures("folder", ["one.tar"])
    with tarfile.open("one.tar") as tar:
        names = tar.getnames()
        assert all(m.mtime == 0 and m.mode == 0o644 and m.uid == m.gid == 0 and m.isreg() for m in tar)
        assert tar.extractfile("__classes__").read().decode().split() == sorted({name for _, _, name in pictures})
    assert len(names) == 2 * len(pictures) + 2 and len(set(names)) == len(names) and names[-1] == "__checksums__/000000", names[-2:]
    run("convert", "d", "set.tar", "--to", "tar", "--shard-size", "50K")
    last = len([name for name in os.listdir(".") if name.startswith("set-")]) - 1
    assert last > 0
    check_pictures("shards", f"set-{{000000..{last:06d}}}.tar")
    run("convert", "d", "d.mrec", "--store", "jpeg")
    run("convert", "d.mrec", "m.tar", "--to", "tar")
    check_pictures("record file", ["m.tar"])

    run("convert", "ix", "ix.tar", "--to", "tar")
    found = list(webdataset.WebDataset(["ix.tar"], shardshuffle=False).decode("l8"))
    assert len(found) == len(numbers)
    for one, (pixels, label) in zip(found, numbers):
        assert (one["png"] == pixels).all() and one["cls"] == label
    print(f"IDX: {len(found)} pictures")

    # names too long for a header, and not of ASCII
    with open(next(os.path.join(top, n) for top, _, names in os.walk("d/train") for n in names), "rb") as f:
        picture = f.read()
    os.makedirs("long/" + "c" * 200)
    for name in ("n" * 240, "zwölf", "two.words"):
        with open(f"long/{'c' * 200}/{name}.jpg", "wb") as f:
            f.write(picture)
    run("convert", "long", "long.tar", "--to", "tar")
    keys = [one["__key__"] for one in read(["long.tar"])]
    assert keys == [f"{'c' * 200}/{name}" for name in ("n" * 240, "two_words", "zwölf")], keys

    for name, values in arrays():
        run("convert", name + ".npz", name + ".tar", "--to", "tar")
        found = list(webdataset.WebDataset([name + ".tar"], shardshuffle=False).decode())
        assert len(found) == 9
        for k, one in enumerate(found):
            got = one["data.npy"]
            assert got.dtype == values.dtype and got.shape == values[k].shape and (got == values[k]).all() and one["cls"] == k % 4, name
        print(f"{name}: 9 samples")


if peer == "tensorflow":
    by_tensorflow()
else:
    by_webdataset()
