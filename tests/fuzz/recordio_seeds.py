#!/usr/bin/env python3
"""Writes the seed corpus of fuzz_recordio: recordio_seeds.py FOLDER. Frames are packed here by themselves, not by the library."""
import os
import struct
import sys

MAGIC = struct.pack("<I", 0xCED7230A)
JPEG = b"\xff\xd8\xff\xe0" + bytes(range(16))


def frame(data):
    parts, start = [], 0
    for at in range(0, len(data) - 3, 4):
        if at >= start and data[at:at + 4] == MAGIC:
            parts.append(data[start:at])
            start = at + 4
    parts.append(data[start:])
    out = b""
    for k, part in enumerate(parts):
        flag = 0 if len(parts) == 1 else 1 if k == 0 else 3 if k == len(parts) - 1 else 2
        out += MAGIC + struct.pack("<I", flag << 29 | len(part)) + part + b"\0" * (-len(part) % 4)
    return out


def record(label, number, picture=JPEG):
    if isinstance(label, list):
        return frame(struct.pack("<IfQQ", len(label), 0, number, 0) + struct.pack("<%df" % len(label), *label) + picture)
    return frame(struct.pack("<IfQQ", 0, label, number, 0) + picture)


def seed(mode, rec, idx=b"", lst=b""):
    out = bytes([mode])
    for bit, text in ((1, idx), (2, lst)):
        if mode & bit:
            out += struct.pack("<H", len(text)) + text
    return out + rec


def main(folder):
    three = [record(k, k) for k in range(3)]
    idx = b"".join(b"%d\t%d\n" % (k, k * len(three[0])) for k in range(3))
    lst = b"".join(b"%d\t%f\ta/%d.jpg\n" % (k, k, k) for k in range(3))
    rec = b"".join(three)
    seeds = {
        "plain": seed(0, rec),
        "idx": seed(1, rec, idx),
        "lst": seed(2, rec, lst=lst),
        "both": seed(3, rec, idx, lst),
        "both_differ": seed(3, rec[:-8] + MAGIC + rec[-4:], idx, lst.replace(b"1.0", b"2.0")),
        "packed": seed(0, record([1.0, 2.0, 3.0], 0) + record([4.0], 1)),
        "packed_second": seed(4, record([1.0, 2.0, 3.0], 0) + record([4.0], 1)),
        "objects": seed(2, record([2, 5, 3, 0, 0.25, 0.5, 1, 4, 0, 0, 1, 1], 0) + record([2, 5], 1) + record([2, 5, 1, 0.5], 2), lst=lst),
        "parts": seed(0, record(1, 0xCED7230A, JPEG + MAGIC + MAGIC + b"end") + three[1]),
        "cut": seed(0, rec[:-5]),
        "flags": seed(0, rec.replace(b"\x2c\0\0\0", b"\x2c\0\0\x40", 1)),
        "short": seed(0, frame(b"no header") + frame(b"")),
        "odd_labels": seed(0, record(0.5, 0) + record(-1, 1) + record(2.0 ** 40, 2) + record(float("nan"), 3)),
        "frame": bytes([8]) + b"abcd" + MAGIC + b"ef" + MAGIC,
    }
    os.makedirs(folder, exist_ok=True)
    for name, data in seeds.items():
        with open(os.path.join(folder, name), "wb") as out:
            out.write(data)


main(sys.argv[1])
