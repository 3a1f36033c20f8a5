#!/usr/bin/env python3
"""Make data sets of very many samples, or of very many files, to see what opening and reading them costs.

    bench/large_sets.py records FOLDER/x.rec 100000000      RecordIO: 32 bytes a sample, labels 0 to 999, no picture
    bench/large_sets.py pictures FOLDER/x.rec 40000000      the same with a PNG of one pixel: 104 bytes a sample
    bench/large_sets.py shards FOLDER SHARD.mrec N          N names for SHARD.mrec, and two lists of them:
                                                            FOLDER/list, and FOLDER/list-1 of version 1
    bench/large_sets.py files FOLDER FILE N                 N names for FILE (a tar or TFRecord file)

What opening costs then:

    /usr/bin/time -v build/release/tools/millrace inspect FOLDER/x.rec
"""

import os
import shutil
import struct
import sys
import zlib

BLOCK = 1000000  # samples written at a time
MASK = (1 << 64) - 1
MOST_LINKS = 20000  # names of one file: file systems have bounds


def png_pixel():
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(bytes(4))) + chunk(b"IEND", b"")


def record(label, number, picture):
    content = struct.pack("<IfQQ", 0, label, number, 0) + picture
    return struct.pack("<II", 0xCED7230A, len(content)) + content + bytes(-len(content) % 4)


def write_records(path, count, picture):
    block = b"".join(record(k % 1000, k, picture) for k in range(min(BLOCK, count)))
    one = len(block) // min(BLOCK, count)
    with open(path, "wb") as out:
        for at in range(0, count, BLOCK):
            out.write(block[: one * min(BLOCK, count - at)])


def link(source, folder, name, number):
    copy = os.path.join(folder, ".copy-%d%s" % (number // MOST_LINKS, os.path.splitext(name)[1]))
    if not os.path.exists(copy):
        shutil.copyfile(source, copy)
    os.link(copy, os.path.join(folder, name))


def table_crc32c():
    table = []
    for k in range(256):
        for _ in range(8):
            k = k >> 1 ^ (0x82F63B78 if k & 1 else 0)
        table.append(k)
    return table


def crc32c(data):
    table, crc = table_crc32c(), 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


def mix64(x):  # a step of SplitMix64
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK
    return x ^ x >> 31


def write_lists(folder, shard, names):
    """By formats/record/FORMAT.md alone: of one shard under many names."""
    with open(shard, "rb") as file:
        head = file.read(176)
    flags = struct.unpack_from("<I", head, 16)[0]
    records, size = struct.unpack_from("<QQ", head, 24)
    total, largest, fingerprint, schema, classes = struct.unpack_from("<QQQII", head, 120)
    labels = struct.unpack_from("<qq", head, 160)
    of_set = 0x932AE87EF5A5E35F  # XXH3-64 of "shards"
    for _ in names:
        of_set = mix64(of_set ^ fingerprint)
    end = "end %d shards %d records" % (len(names), records * len(names))
    lines = ["millrace shards 2\n"]
    lines += ["set fingerprint %016x schema %08x classes %08x bytes %d largest %d coefficients %d labels %d %d\n"
              % (of_set, schema, classes, total * len(names), largest, flags >> 1 & 1, *labels)]
    lines += ["%d %d %016x %s\n" % (records, size, fingerprint, name) for name in names]
    text = "".join(lines)
    with open(os.path.join(folder, "list"), "w", encoding="utf-8") as out:
        out.write(text + "%s checksum %08x\n" % (end, crc32c(text.encode())))
    with open(os.path.join(folder, "list-1"), "w", encoding="utf-8") as out:
        out.write("millrace shards 1\n")
        out.writelines("%d %s\n" % (records, name) for name in names)
        out.write(end + "\n")


def main(arguments):
    what, folder = arguments[0], arguments[1]
    if what in ("records", "pictures"):
        write_records(folder, int(arguments[2]), png_pixel() if what == "pictures" else b"")
        return
    os.makedirs(folder)
    count = int(arguments[-1])
    ending = ".mrec" if what == "shards" else os.path.splitext(arguments[2])[1]
    names = ["part-%07d%s" % (k, ending) for k in range(count)]
    for k, name in enumerate(names):
        link(arguments[2], folder, name, k)
    if what == "shards":
        write_lists(folder, arguments[2], names)


if __name__ == "__main__":
    main(sys.argv[1:])
