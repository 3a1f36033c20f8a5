# tests/cli/watch/events.py FOLDER TAG...: what TensorBoard reads from the event files of a folder, by its own code: TAG, step and
# value of every scalar, one a line. Fails when it leaves out a record that is there.
import glob
import os
import struct
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader


def records(path):
    data = open(path, "rb").read()
    count = at = 0
    while at < len(data):
        at += 16 + struct.unpack_from("<Q", data, at)[0]
        count += 1
    assert at == len(data), f"{path}: a record is cut"
    return count


folder = sys.argv[1]
for path in glob.glob(os.path.join(folder, "events.out.tfevents.*")):
    found = sum(1 for _ in EventFileLoader(path).Load())
    assert found == records(path), f"{path}: TensorBoard reads {found} of {records(path)} records"
events = EventAccumulator(folder, size_guidance={"scalars": 0})
events.Reload()
for tag in sys.argv[2:]:
    for scalar in events.Scalars(tag):
        print(tag, scalar.step, f"{scalar.value:.6g}")
