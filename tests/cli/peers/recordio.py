"""RecordIO files made by hand or by MXNet, for test_recordio.sh.

recordio.py own FOLDER NAME     every picture of FOLDER/CLASS as NAME.rec, .idx and .lst, in the order of their names; packed here
recordio.py mxnet FOLDER NAME   the same by MXNet's own writer
recordio.py compare NAME A B    as MXNet reads them, the records of A.rec and B.rec are the same; ids need not be
"""
import sys

from formats_lib import listed, write_rec


def own(folder, name):
    write_rec(name, [(label, path, data) for data, label, _, path in listed(folder)])


def by_mxnet(folder, name):
    import mxnet
    writer = mxnet.recordio.MXIndexedRecordIO(name + ".idx", name + ".rec", "w")
    for number, (data, label, _, _) in enumerate(listed(folder)):
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
