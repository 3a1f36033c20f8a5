"""Samples that a Python object gives while they are loaded."""
from __future__ import annotations

import array
import ctypes as C
import os
import sys
import threading
import zlib
from collections.abc import Mapping
from typing import Any, Dict, List, Optional, Sequence

from . import _library as _l
from ._errors import ArgumentError
from ._making import is_class, is_picture, seed_of, seed_of_sample
from ._records import Taker, _classes_of, _fields_of, _infer
from ._serving import Server, text_of
from ._structs import mr_own_config

_EFORMAT = -7


def _wrapped(data: Any) -> Optional[List[Any]]:
    """The data sets that PyTorch's Subset or ConcatDataset takes its samples from; None: it is neither."""
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    if isinstance(data, torch.utils.data.Subset):
        return [data.dataset]
    return list(data.datasets) if isinstance(data, torch.utils.data.ConcatDataset) else None


def _names_in(data: Any) -> Optional[List[str]]:
    """The class names of a data set that has them as torchvision's sets do, or of a set whose parts all have the same names. Hugging Face's
    are not taken: their splits without labels have -1, which is no class and would be an error."""
    parts = _wrapped(data)
    if parts is not None and not hasattr(data, "classes"):
        found = [_names_in(part) for part in parts]
        return found[0] if found and all(names == found[0] for names in found) else None
    names = getattr(data, "classes", None)
    good = isinstance(names, (list, tuple)) and names and all(isinstance(n, str) and "\0" not in n for n in names)
    return list(names) if good and len(set(names)) == len(names) else None


def targets_in(data: Any) -> Optional[List[int]]:
    """The classes of all samples, as torchvision's data sets have them, also of parts of them; None: it does not say them."""
    parts = _wrapped(data)
    if parts is not None and not hasattr(data, "targets"):
        found = [targets_in(part) for part in parts]
        if any(targets is None for targets in found):
            return None
        if hasattr(data, "indices"):
            return [found[0][int(k)] for k in data.indices]  # type: ignore[index]
        return [t for targets in found for t in targets]  # type: ignore[union-attr]
    targets = getattr(data, "targets", None)
    if targets is None or not hasattr(targets, "__len__") or len(targets) != len(data):
        return None
    targets = targets.tolist() if hasattr(targets, "tolist") else list(targets)
    return [int(t) for t in targets] if all(is_class(t) and not isinstance(t, str) for t in targets) else None


def plain_picture(value: Any) -> Any:
    """A picture of PIL in the mode that the library has for it: gray stays gray, alpha is dropped as from files, all else is RGB."""
    mode = getattr(value, "mode", None)
    if mode in ("L", "RGB") or not isinstance(mode, str) or not hasattr(value, "getbands"):
        return value
    if mode in ("I", "F") or mode.startswith("I;"):
        raise ArgumentError("a picture of PIL of mode %s, which has more than 8 bits: make one of 8 bits of it in the data, or give tensors of "
                            "floats without augment=" % mode)
    return value.convert("L" if mode in ("1", "LA", "La") else "RGB")


def known(sample: Any) -> Any:
    """A dict with the names that a loader looks for, "image" and "label", where it has others that are common: "img" or "pixel_values", and
    "labels" or "target", which keeps its own name, too, since fields= may ask for it."""
    if not isinstance(sample, dict):
        return sample
    if "image" not in sample:
        name = next((n for n in ("img", "pixel_values") if n in sample and is_picture(sample[n])), None)
        if name is None:
            return sample
        sample = {"image" if n == name else n: v for n, v in sample.items()}
    if "label" not in sample:
        name = next((n for n in ("labels", "target") if n in sample and not isinstance(sample[n], str) and is_class(sample[n])), None)
        sample = sample if name is None else dict(sample, label=sample[name])
    return sample


def plain_sample(sample: Any, inferred: bool) -> Any:
    """With its picture so. inferred: no schema says its names."""
    if inferred:
        sample = known(sample)
    if isinstance(sample, dict):
        return dict(sample, image=plain_picture(sample["image"])) if "image" in sample else sample
    if isinstance(sample, tuple) and sample:
        return (plain_picture(sample[0]),) + sample[1:]
    return plain_picture(sample)


def _form(sample: Any) -> Any:
    """Size and mode of the sample's picture of PIL; None: the sample is not a picture."""
    if isinstance(sample, dict):
        sample = sample.get("image")
    elif isinstance(sample, tuple) and sample:
        sample = sample[0]
    return (sample.size, sample.mode) if hasattr(sample, "getbands") else None


def _only_iterable(data: Any) -> bool:
    """PyTorch's IterableDataset has a __getitem__, which raises."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(data, torch.utils.data.IterableDataset)


def _see_samples(data: Any) -> None:
    """Is it an object that gives one sample after the other?"""
    if isinstance(data, (list, tuple)) and data and isinstance(data[0], (str, os.PathLike)):
        raise ArgumentError("path: found a list of paths, expected one; a folder, a pattern or a list of record files has one path")
    if isinstance(data, Mapping):
        raise ArgumentError("path: found a %s with %s, expected samples: of columns torch.utils.data.StackDataset(**columns) makes samples; of "
                            "splits give one" % (type(data).__name__, ", ".join(map(repr, list(data)[:4])) or "nothing"))
    if type(data) is tuple and len(data) > 1 and all(getattr(v, "shape", ()) for v in data) and len({v.shape[0] for v in data}) == 1:
        raise ArgumentError("path: found a tuple of %d arrays of %d rows: torch.utils.data.TensorDataset(*tensors) makes a sample of each row; "
                            "list(data), if each array is a sample" % (len(data), data[0].shape[0]))
    if not hasattr(data, "__getitem__") or not hasattr(data, "__len__") or _only_iterable(data):
        hint = "; give its data set: Loader(other.dataset, ...)" if hasattr(data, "dataset") and hasattr(data, "batch_size") else ""
        raise ArgumentError("path: found %s, expected a path, an address, or an object with __len__ and __getitem__; cache_records() "
                            "takes any iterable%s" % (type(data).__name__, hint))


class OneByOne:
    """Samples of an object that gives lists of them only, by PyTorch's __getitems__()."""

    def __init__(self, data: Any) -> None:
        self.data = data

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, k: int) -> Any:
        return self.data.__getitems__([k])[0]

    def __getattr__(self, name: str) -> Any:
        if name == "data" or name.startswith("__"):  # it is being unpickled, or asked for methods of its own
            raise AttributeError(name)
        return getattr(self.data, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "data":
            object.__setattr__(self, name, value)
        else:
            setattr(self.data, name, value)


def callers(data: Any) -> Any:
    """The object that the caller gave."""
    return data.data if isinstance(data, OneByOne) else data


def _gives_lists_only(data: Any) -> bool:
    """Has it, or the set that it is a Subset of, the __getitem__() of PyTorch's Dataset, which raises?"""
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(data, "__getitems__"):
        return False
    if isinstance(data, torch.utils.data.Subset):
        return _gives_lists_only(data.dataset)
    return getattr(type(data), "__getitem__", None) is torch.utils.data.Dataset.__getitem__


class Turns:
    """Seeds of samples' random numbers. The library asks for samples by their numbers only, and for some of the next epoch early: a sample
    that is asked for again has the seed of a later epoch, and no seed is of an epoch before the one that the loop is in."""

    def __init__(self, count: int) -> None:
        self.seed, self.rank, self._epoch = 0, 0, 0
        self._next = array.array("I", bytes(4 * count))  # epoch of each sample's next seed

    def begin(self, epoch: int, anew: bool) -> None:
        """The loop is in this epoch. anew: no sample of it has been asked for."""
        if anew or epoch < self._epoch:
            self._next = array.array("I", bytes(4 * len(self._next)))
        self._epoch = epoch

    def seed_for(self, number: int) -> int:
        epoch = max(self._next[number], self._epoch)
        self._next[number] = epoch + 1 & 0xFFFFFFFF
        return seed_of(self.seed, epoch, self.rank, number)


class Live:
    """Data that a Python object makes, for Loader and everything else that takes a path: nothing is written to disk first.

        loader = millrace.Loader(millrace.Live(dataset, classes=["cat", "dog"]), batch=64, augment="rrc224", training=True)

    Loader(dataset) is Loader(Live(dataset)). data[k] is called by ONE thread of this process, which is made for it, while batches are
    prepared, for one sample after the other, nearly in the order of the run (as many samples ahead as there are workers); the
    library's threads decode and augment its samples. It shares the GIL with your training, and no more than one core's worth of
    samples comes from it: what takes long in Python (opening files, unpacking) is what write_records() or cache_records() does once,
    or what millrace.torch.Loader(num_workers=) does in processes.

    data          has __len__ and __getitem__, 0 to len - 1: the same sample each time. Samples are as for write_records()
    schema        {name: kind}, as for write_records(); None: as sample 0 is, which is asked for once more
    classes       names of the classes, in the order of their numbers; None: data.classes, where it is a list of names
    key           a text that says which data these are, for state_dict() and a cache on disk, which compare it, the number of
                  samples, schema and classes. None: they compare the others
    sample_bytes  the most that one sample takes, in bytes; each worker may hold so much

    A sample that does not fit the schema is a damaged one (Loader's bad=), with the error that write_records() would raise. An
    exception of data[k] ends the run, and next() raises it. Closing the loader waits for no sample that is being made. Where samples
    have a "sample.name", batch.names requests the batch's samples once more."""

    def __init__(self, data: Any, schema: Optional[Dict[str, str]] = None, classes: Optional[Sequence[str]] = None,
                 key: Optional[str] = None, sample_bytes: int = 16 << 20) -> None:
        _see_samples(data)
        if key is not None and not isinstance(key, str):
            raise ArgumentError("key=%r: expected a text that says which data these are" % (key,))
        self.data, self.schema, self.key, self.sample_bytes = OneByOne(data) if _gives_lists_only(data) else data, schema, key, sample_bytes
        self.classes = _classes_of(_names_in(data) if classes is None else classes)

    threads = 1  # that call data[k]

    def maker(self) -> Any:
        """The calls that make the library's source."""
        return Maker(self)

    def __repr__(self) -> str:
        return "Live(%s)" % type(callers(self.data)).__name__


def see_loadable(schema: Dict[str, str], data: str) -> None:
    """Content that a loader would leave out silently, or could not deliver."""
    kind = schema.get("image", "image")
    if not kind.startswith(("image", "pixels", "jpeg", "png")):
        raise ArgumentError("%s: field 'image' of sample 0 is %s: a loader takes pictures (of PIL, arrays of uint8, bytes of picture files); "
                            "millrace.torch.Loader delivers finished tensors as they are" % (data, kind))
    if schema.get("label", "int") != "int":
        raise ArgumentError("%s: field 'label' of sample 0 is %s, and a label is a class, a whole number: give samples as dicts in which it has "
                            "another name, with fields=[that name]; millrace.torch.Loader takes targets of any kind" % (data, schema["label"]))


class Maker(Server):
    """The thread that asks the object, or several of them, and the library's source over it."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._data, self._count = live.data, len(live.data)
        self.turns = Turns(self._count)
        self._here = threading.local()
        super().__init__("millrace samples")
        self._taker: Optional[Taker] = None
        self._how: Any = None  # a taker is made of; each thread has one of its own
        self._ready = threading.Event()
        if not self._count:
            raise ArgumentError("%r has no samples" % live)
        self.start()

    def open(self, pointer: C.c_void_p) -> None:
        self._ready.wait()
        self.raise_failure()
        taker, live = self._taker, self._live
        assert taker is not None
        cfg, what = _l.fill(_l.lib.mr_own_defaults_sized, mr_own_config()), _l.new_error()
        taker.settle(cfg)
        cfg.name, cfg.count = repr(live).encode(), self._count
        key = (live.key or "").encode("utf-8", "surrogateescape")
        cfg.fingerprint = zlib.crc32(key) << 32 | zlib.crc32(key, 1)
        cfg.sample_bytes_most, cfg.fetch, cfg.context = live.sample_bytes, C.cast(_l.native.mrp_make, C.c_void_p).value, self.pointer
        rc = _l.lib.mr_source_create(C.byref(pointer), C.byref(cfg), C.byref(what))
        if rc != _l.OK:
            raise _l.failed(rc, what)

    def _begin(self) -> bool:
        try:
            live, schema = self._live, self._live.schema
            if schema is None:
                seed_of_sample(0)
                schema = self._inferred()
                see_loadable(schema, repr(live))
            self._how = (schema, live.classes, live.schema is None)
            self._taker = self._another()
        except BaseException as e:
            self.failure = e
            return False
        finally:
            self._ready.set()
        for _ in range(live.threads - 1):
            threading.Thread(target=self._also, name=self._name, daemon=True).start()
        return True

    def _another(self) -> Taker:
        schema, classes, inferred = self._how
        return Taker(_fields_of(schema), list(schema), classes, inferred)

    def _also(self) -> None:
        self._here.taker = self._another()
        self._serve()

    def _inferred(self) -> Dict[str, str]:
        """As sample 0 is. Pictures of PIL may have any size, and be gray or not, where some of them differ."""
        first = plain_sample(self._data[0], True)
        schema = _infer(first, self._live.classes is not None)
        form = _form(first)
        if form and any(_form(plain_sample(self._data[k], True)) != form for k in {1 % self._count, self._count // 2, self._count - 1}):
            schema["image"] = "image"
        return schema

    def _answer(self, number: int, request: C.c_void_p) -> None:
        taker = getattr(self._here, "taker", self._taker)
        try:
            seed_of_sample(seed_of(0, self.turns.seed_for(number), 0, number))  # as in worker processes
            given = self._data[number]
            try:
                values = taker.take(number, plain_sample(given, self._live.schema is None))
            except ArgumentError as e:
                return self._refuse(request, _EFORMAT, text_of(e))
        except BaseException as e:
            return self._fail(request, e)
        _l.native.mrp_maker_give(request, values)

    def raise_failure(self) -> None:
        """The exception that the object raised, or None."""
        failure = self.take_failure()
        if isinstance(failure, StopIteration):  # it would end a loop, and say nothing
            raise RuntimeError("the data raised StopIteration") from failure
        if failure is not None:
            raise failure


def unused(path: Any, options: Dict[str, Any], usual: Dict[str, Any]) -> None:
    """Settings of data that are files, given with an object."""
    names: List[str] = [n for n, v in options.items() if v != usual[n]]
    if names:
        raise ArgumentError("%s: of data that are files, and %r is not" % (", ".join("%s=" % n for n in names), path))
