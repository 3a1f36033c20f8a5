"""Writes TFRecords with TensorFlow for test_tfrecord.sh.

tfrecord.py FOLDER: the pictures of FOLDER/CLASS/, in the order of their names, as sharded sets plain/, gzip/ and zlib/, as one file
without a set's name (one), and with labels that start at 1 (from1). Beside them the same noise as PNG (png) and as pixels (raw).
"""
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf  # noqa: E402


def ints(*values):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def data(value):
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))


def example(**features):
    names = {k.replace("__", "/"): v for k, v in features.items()}
    return tf.train.Example(features=tf.train.Features(feature=names)).SerializeToString()


def write(paths, examples, packed=""):
    options = tf.io.TFRecordOptions(compression_type=packed)
    for k, path in enumerate(paths):
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with tf.io.TFRecordWriter(path, options) as writer:
            for one in examples[k * len(examples) // len(paths):(k + 1) * len(examples) // len(paths)]:
                writer.write(one)


def pictures(folder, first_label):
    for label, name in enumerate(sorted(os.listdir(folder))):
        for file in sorted(os.listdir(os.path.join(folder, name))):
            with open(os.path.join(folder, name, file), "rb") as f:
                yield example(image__encoded=data(f.read()), image__class__label=ints(label + first_label),
                              image__class__text=data(name.encode()), image__height=ints(1), image__width=ints(1))


def noise(encode):
    for k in range(20):
        pixels = tf.cast(tf.random.stateless_uniform((24, 17, 3), (1, k), 0, 256, tf.int32), tf.uint8)
        picture = tf.io.encode_png(pixels).numpy() if encode else pixels.numpy().tobytes()
        yield example(image_raw=data(picture), label=ints(k % 4), height=ints(24), width=ints(17), depth=ints(3))


folder = sys.argv[1]
zero, one = list(pictures(folder, 0)), list(pictures(folder, 1))
for name, packed in (("plain", ""), ("gzip", "GZIP"), ("zlib", "ZLIB")):
    write([f"{name}/train-{k:05d}-of-00005" for k in range(5)], zero, packed)
write(["one"], zero)
write(["from1"], one)
write(["png"], list(noise(True)))
write(["raw"], list(noise(False)))
