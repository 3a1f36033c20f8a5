"""Writes TFRecords with TensorFlow for test_tfrecord.sh.

tfrecord.py FOLDER: the pictures of FOLDER/CLASS/, in the order of their names, as sharded sets plain/, gzip/ and zlib/, as one file
without a set's name (one), and with labels that start at 1 (from1). Also writes the same noise as PNG (png) and as pixels (raw).
"""
import sys

from formats_lib import listed, tensorflow, tf_example, write_tfrecords

tf = tensorflow()


def pictures(folder, first_label):
    for data, label, name, _ in listed(folder):
        yield tf_example({"image/encoded": data, "image/class/label": [label + first_label], "image/class/text": name.encode(),
                          "image/height": [1], "image/width": [1]})


def noise(encode):
    for k in range(20):
        pixels = tf.cast(tf.random.stateless_uniform((24, 17, 3), (1, k), 0, 256, tf.int32), tf.uint8)
        picture = tf.io.encode_png(pixels).numpy() if encode else pixels.numpy().tobytes()
        yield tf_example({"image_raw": picture, "label": [k % 4], "height": [24], "width": [17], "depth": [3]})


folder = sys.argv[1]
zero, one = list(pictures(folder, 0)), list(pictures(folder, 1))
for name, packed in (("plain", ""), ("gzip", "GZIP"), ("zlib", "ZLIB")):
    write_tfrecords([f"{name}/train-{k:05d}-of-00005" for k in range(5)], zero, packed)
write_tfrecords(["one"], zero)
write_tfrecords(["from1"], one)
write_tfrecords(["png"], list(noise(True)))
write_tfrecords(["raw"], list(noise(False)))
