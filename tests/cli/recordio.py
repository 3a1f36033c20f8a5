"""RecordIO files made by hand or by MXNet, for test_recordio.sh.

recordio.py own FOLDER NAME     every picture of FOLDER/CLASS as NAME.rec, .idx and .lst, in the order of their names; packed here
recordio.py mxnet FOLDER NAME   the same by MXNet's own writer
recordio.py compare NAME A B    as MXNet reads them, the records of A.rec and B.rec are the same; ids need not be
"""
import os
import struct
import sys

MAGIC = struct.pack("<I", 0xCED7230A)


def frame(data):
    """One record; where data holds the magic at a multiple of 4 it is stored in parts, without it."""
    parts, start = [], 0
    for at in range(0, len(data) - 3, 4):
        if data[at:at + 4] == MAGIC:
            parts.append(data[start:at])
            start = at + 4
    parts.append(data[start:])
    flags = [0] if len(parts) == 1 else [1] + [2] * (len(parts) - 2) + [3]
    return b"".join(MAGIC + struct.pack("<I", f << 29 | len(p)) + p + b"\0" * (-len(p) % 4) for f, p in zip(flags, parts))


def pictures(folder):
    names = sorted(n for n in os.listdir(folder) if os.path.isdir(os.path.join(folder, n)))
    for label, name in enumerate(names):
        for file in sorted(os.listdir(os.path.join(folder, name))):
            with open(os.path.join(folder, name, file), "rb") as f:
                yield label, "%s/%s" % (name, file), f.read()


def own(folder, name):
    offset = 0
    with open(name + ".rec", "wb") as rec, open(name + ".idx", "w") as idx, open(name + ".lst", "w") as lst:
        for number, (label, path, data) in enumerate(pictures(folder)):
            record = frame(struct.pack("<IfQQ", 0, label, number, 0) + data)
            rec.write(record)
            idx.write("%d\t%d\n" % (number, offset))
            lst.write("%d\t%f\t%s\n" % (number, label, path))
            offset += len(record)


def by_mxnet(folder, name):
    import mxnet
    writer = mxnet.recordio.MXIndexedRecordIO(name + ".idx", name + ".rec", "w")
    for number, (label, _, data) in enumerate(pictures(folder)):
        writer.write_idx(number, mxnet.recordio.pack(mxnet.recordio.IRHeader(0, label, number, 0), data))
    writer.close()


def compare(a, b):
    import mxnet
    readers = [mxnet.recordio.MXRecordIO(n + ".rec", "r") for n in (a, b)]
    count = 0
    while True:
        x, y = (r.read() for r in readers)
        if x is None or y is None:
            break
        assert x == y, "record %d differs" % count
        count += 1
    assert x is None and y is None, "one has more records"
    print(count)


{"own": own, "mxnet": by_mxnet, "compare": compare}[sys.argv[1]](*sys.argv[2:])
