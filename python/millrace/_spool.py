"""Data of Python's own kept as a record file, for those who begin without converting."""
from __future__ import annotations

import atexit
import os
from typing import Any, Dict, Optional, Sequence

from . import _library as _l
from ._errors import ArgumentError
from ._jobs import inspect
from ._loader import log
from ._records import Samples, write_records


def _length(data: Any) -> Optional[int]:
    if isinstance(data, Samples):
        return data.count
    return len(data) if hasattr(data, "__len__") else None


def _of_this_process(data: Any, folder: Any, settings: Dict[str, Any]) -> str:
    import shutil
    import tempfile
    place = tempfile.mkdtemp(prefix="millrace-", dir=folder)
    owner = os.getpid()

    def remove() -> None:
        if os.getpid() == owner:  # not by a child of fork()
            shutil.rmtree(place, ignore_errors=True)
    atexit.register(remove)
    try:
        write_records(os.path.join(place, "samples.mrec"), data, **settings)
    except BaseException:
        remove()
        atexit.unregister(remove)
        raise
    return os.path.join(place, "samples.mrec")


def _keep(path: str, data: Any, settings: Dict[str, Any]) -> None:
    """Write it, unless it is there; of several processes one does, and the others wait for it."""
    import fcntl
    with open(path + ".lock", "ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(path):  # by whoever had the lock before
            count = _length(data)
            log.info("writing %s samples to %s", "the" if count is None else count, path)
            write_records(path, data, **settings)
        try:
            os.unlink(path + ".lock")  # nobody writes any more; after an exception it stays, for those who wait
        except FileNotFoundError:
            pass


def cache_records(data: Any, folder: Any = None, *, key: Optional[str] = None, schema: Optional[Dict[str, str]] = None,
                  classes: Optional[Sequence[str]] = None) -> str:
    """The path of a record file with all samples of `data`, for Loader and everything else here, so that any Python object can be
    loaded from without converting it by hand:

        loader = millrace.Loader(millrace.cache_records(dataset, "cache", key="pets 1"), batch=64, augment="rrc224", training=True)

    ALL of the data is written to disk before the first batch: data[0], data[1], ... are asked for once, in that order, in this
    thread; their results are as for write_records(). Loading is then as from any record file. Loader(data) loads from the
    object itself: see Live.

    data     something with __getitem__ and __len__ (a PyTorch data set), or any iterable; samples as for write_records()
    folder   where the file goes, made if it is not there. None: with a key $XDG_CACHE_HOME/millrace/records
             (~/.cache/millrace/records), else the temporary folder
    key      a text that says which data these are. A file of the same key, schema and classes is taken as it is, in this process and
             in later ones: change the key when the data change. Of several processes that ask for it at a time, as ranks do, one
             writes and the others wait. None: the file is of this process alone, written anew, and removed when it ends; Samples
             that know their key (millrace.adapters) have one
    schema, classes   as for write_records()

    A kept file with another number of samples than the data have is an ArgumentError. Nothing removes kept files but you."""
    if isinstance(data, (str, bytes, os.PathLike)):
        raise ArgumentError("data=%r: a path; Loader takes it as it is" % (data,))
    if isinstance(data, Samples):
        key = data.key if key is None else key
        schema = data.schema if schema is None else schema
        classes = data.classes if classes is None else classes
    settings: Dict[str, Any] = {"schema": schema, "classes": None if classes is None else list(classes)}
    if key is None:
        if folder is not None:
            os.makedirs(folder, exist_ok=True)
        return _of_this_process(data, folder, settings)
    if not isinstance(key, str):
        raise ArgumentError("key=%r: expected a text that says which data these are" % (key,))
    if folder is None:
        folder = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache"), "millrace", "records")
    os.makedirs(folder, exist_ok=True)
    import hashlib
    import json
    mark = hashlib.sha256(json.dumps([key, settings["schema"] and list(settings["schema"].items()), settings["classes"]]).encode())
    path = os.path.join(os.fsdecode(folder), mark.hexdigest()[:24] + ".mrec")
    _l.encode(path)
    if not os.path.exists(path):
        _keep(path, data, settings)
    count, there = _length(data), inspect(path)["count"]
    if count is not None and count != there:
        raise ArgumentError("%s, kept for key=%r, has %d samples, and the data have %d: give another key, or remove the file"
                            % (path, key, there, count))
    return path
