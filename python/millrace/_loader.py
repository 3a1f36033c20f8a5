"""The loader."""
from __future__ import annotations

import atexit
import ctypes as C
import inspect
import logging
import os
import threading
import weakref
import zlib
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Union

from . import _choice
from . import _library as _l
from . import _ranks
from ._arrays import Batch, refuse_copy
from ._errors import ArgumentError, ClosedError, Error, ForkError, StateError, UnsupportedError
from ._finish import KINDS, U8, Finish
from ._live import Live, targets_in, unused
from ._operations import Operations, see_sendable
from ._orders import Order
from ._settings import arguments_of, choices_of, one_of, set_members, value_of
from ._settings import count as _count
from ._stream import Inbox, Running, Stream, check_step
from ._stream import ending as _ending
from ._structs import (mr_loader_config, mr_loader_field, mr_loader_info, mr_loader_stats, mr_source_config, mr_source_info)
from ._units import augmentation
from ._waiting import run
from ._wording import in_python
from ._typed import Bad, Cache, Classes, Dedup, Io, Pixels, SampleOrder, Split, Tail

log = logging.getLogger("millrace")

_LOADER, _SOURCE, _DECODE = (arguments_of("mr_%s_config" % n) for n in ("loader", "source", "decode"))
_ORDERS, _PIXELS = ({n: k for k, n in enumerate(choices_of(row))} for row in (_LOADER["order"], _DECODE["pixels"]))
_OF_PIXELS, _FRACTION, _TEXTS = 3, 5, {7: bytes, 8: str}  # types of fields
_CACHES = {"off": 0, "memory": 1, "disk": 2}
_DEDUPS = {"none": 0, "bytes": 1, "pixels": 2}
_ROLES = {"plain": 0, "boxes": 1, "box_values": 2, "mask": 3}
_TUNE_ALL, _ENDLESS, _FITS, _KEEP_MOST = 31, 2**64 - 1, 2**64 - 1, 4096

_open_loaders: "weakref.WeakSet[Any]" = weakref.WeakSet()


def _close_all() -> None:
    for loader in list(_open_loaders):
        loader.close()


atexit.register(_close_all)  # threads of the library end before the process takes its memory apart


def _one_of(what: str, table: Dict[str, int], value: str) -> int:
    return one_of(what, list(table), value)


def _pictures(value: Any) -> int:
    """Bits of mr_decode_config.pictures. value: names in a list or with commas between them; "all" or None: every kind."""
    return value_of("pictures", _DECODE["pictures"], "all" if value is None else value)  # type: ignore[no-any-return]


class Source:
    """A data set that was opened, for those who need it beside a loader: the functions of this package use it."""

    def __init__(self, path: Any, *, format: Optional[str] = None, split: Split = "auto", image_key: Optional[str] = None,
                 label_key: Optional[str] = None, classes: Classes = "first", index_folder: Any = None, take: Any = None,
                 target_key: Optional[str] = None, split_key: Optional[str] = None, only_classes: Union[None, str, Sequence[str]] = None,
                 rename_classes: Any = None, classes_from: Any = None, where: Optional[str] = None, dedup: Optional[Dedup] = None,
                 take_each: Any = None, sample: int = 0, sample_seed: int = 0, stratify: bool = False) -> None:
        given = dict(locals())
        self._pid, self._pointer = os.getpid(), C.c_void_p()
        self._running: List[Any] = []
        self._maker: Any = None
        self.data: Any = None  # the Python object that gives the samples
        self.chosen: List[str] = []  # reports of the choice
        if not isinstance(path, (str, bytes, os.PathLike)):
            del given["self"], given["path"]
            usual = dict(dict.fromkeys(given), split="auto", classes="first", stratify=False, **_choice.USUAL)
            live = path if isinstance(path, Live) else Live(path)
            unused(live, given, usual)
            self.data = live.data
            self._maker = live.maker()
            self._maker.open(self._pointer)
            return
        if stratify:
            if take_each is not None or take is None:
                raise ArgumentError("stratify=True: take= says which share of each class; leave take_each= out")
            given["take_each"], take = take, None
        choice = _choice.settings(given)
        cfg = _l.fill(_l.lib.mr_source_defaults_sized, mr_source_config())
        stop = C.c_int(0)
        cfg.stop = C.addressof(stop)
        self._stop = stop  # as long as the source
        set_members(cfg, "mr_source_config", {"split": split, "classes": classes})
        if take is not None:
            cfg.take_from, cfg.take_to = _choice.share("take", take)
        cfg.format = format.encode() if format else None
        cfg.image_key = image_key.encode() if image_key else None
        cfg.label_key = label_key.encode() if label_key else None
        cfg.target_key = target_key.encode() if target_key else None
        cfg.split_key = split_key.encode() if split_key else None
        cfg.index_folder = _l.encode(index_folder) if index_folder else None
        name, what = _l.encode(path), _l.new_error()

        def stop_it() -> None:
            stop.value = 1
        rc = run(lambda: _l.lib.mr_source_open(C.byref(self._pointer), name, C.byref(cfg), C.byref(what)), stop_it)
        if rc != _l.OK:
            raise _l.failed(rc, what)
        if choice is not None:
            self.chosen = _choice.choose(self._pointer, choice)

    @property
    def info(self) -> mr_source_info:
        return _l.quick_lib.mr_source_info_of(self._pointer).contents

    def names(self, ids: Sequence[int]) -> List[str]:
        """What samples were called where they came from; "" where one has no name."""
        room, what, out = C.create_string_buffer(4096), _l.new_error(), []
        for i in ids:
            if i == _l.NOWHERE:
                out.append("")
                continue
            rc = _l.lib.mr_source_sample_name_get(self._pointer, i, None, 0, room, len(room), C.byref(what))
            if rc != _l.OK:
                raise _l.failed(rc, what)
            out.append(room.value.decode("utf-8", "surrogateescape"))
        return out

    def stop(self) -> None:
        """Nobody waits for samples of a Python object any more."""
        if getattr(self, "_maker", None) and self._pid == os.getpid():
            self._maker.close()

    def see_count(self) -> None:
        """Does the Python object still have as many samples?"""
        if self.data is not None and len(self.data) != self.info.count:
            raise StateError("the data have %d samples, and had %d when the loader was made, whose order and length are of these: make another "
                             "loader" % (len(self.data), self.info.count))

    def draw_as(self, seed: int, rank: int) -> None:
        """Random numbers of the Python object's samples follow from these."""
        turns = getattr(self._maker, "turns", None)
        if turns:
            turns.seed, turns.rank = seed, rank

    def epoch_begins(self, epoch: int, anew: bool = False) -> None:
        turns = getattr(self._maker, "turns", None)
        if turns:
            turns.begin(epoch, anew)

    def raise_failure(self) -> None:
        """The exception of the Python object that makes the samples."""
        if self._maker:
            self._maker.raise_failure()

    def close(self) -> None:
        self.stop()
        for running in list(getattr(self, "_running", ())):
            running.close()
        pointer, self._pointer = self._pointer, C.c_void_p()
        if pointer and self._pid == os.getpid():
            _l.lib.mr_source_close(pointer)

    def __del__(self, ending: Any = _ending) -> None:
        if not ending():
            self.close()


OF_THE_SOURCE = [n for n in inspect.signature(Source.__init__).parameters if n not in ("self", "path")]  # its settings


def targets_of(source: Source, count: int) -> List[int]:
    """Labels of all samples, without reading them."""
    out, label = [], C.c_int64()
    for k in range(count):
        rc = _l.quick_lib.mr_source_label(source._pointer, k, C.byref(label))
        if rc != _l.OK:
            raise UnsupportedError("this data set knows its labels only when samples are read: take them from the batches")
        out.append(label.value)
    return out


class Loader:
    """Batches of a data set, read, decoded and augmented by threads of the library, in order and on time.

        for batch in millrace.Loader("photos", batch=256, augment="rrc224", training=True, epochs=90, seed=1):
            x, y = batch.images, batch.labels

    Order and pixels depend on the data, seed, epoch, batch, order and augment, and on nothing else: not on threads, ranks,
    memory, or where a run was stopped and resumed.

    A loader has a position: iterating goes on from where it is, through all `epochs`; at the end of all, the next iteration
    begins anew. `by_epoch()` gives one epoch after the other. `len(loader)` is the number of batches in all epochs,
    `steps_per_epoch` in one.

    path        a file, a folder or an http(s) address; the format is found by the content. Or a Python object that gives samples, by
                __len__ and __getitem__: see Live
    batch       samples in a GLOBAL batch, over all ranks
    augment     what happens to a picture, e.g. "rrc224", "center224", "resize(256),center(224)"; `millrace help augment`
    normalise   (means, deviations) of pixels from 0 to 1, as torchvision has them: in place of normalise() at the end of augment
    training    random operations are on
    epochs      epochs 0 to epochs-1; None: without end
    seed        of order and augmentation
    order       "shuffle", "block" (for slow media, blocks of `block` samples), "sequential", "balanced" (every class as often as
                every other). None: "shuffle" with training=True, else "sequential", so that predictions are in the data's order
    tail        "keep" a short last batch, "drop" it, "pad" it (label -1)
    rank, world this process delivers its part of every batch; by default as torchrun, mpirun or srun say
    workers     threads that decode; 0: the cores of this process, shared with the job's others on the machine
    prefetch    batches prepared ahead; 0: everything happens inside next()
    hold        batches that may be in use at a time, each with memory of its own: the one that is used, the one before that a
                variable still names, and what else you keep. With all in use the next one is a HeldError, never a hang
    split       "auto", "train", "test"
    sampler     an order of your own in place of `order`: sample numbers, a sequence for every epoch (a list, a NumPy array, a range), or
                a function of the epoch that gives one, always the same for the same epoch. More or fewer than the data have, the same
                number in every epoch; a sample may come several times, each with draws of its own. It says the GLOBAL order: ranks
                take their parts of its batches. A function is called by next(), in the thread that takes batches, some epochs ahead
    operations  {name: function}: operations of your own, which augment names like any other, as "rrc(224),my_salt(0.1),flip". A function
                of Python, f(pixels, arguments, draws), changes pixels, a memoryview (height, width, channels) of uint8 that
                numpy.asarray() takes, where they are; arguments are the numbers of the augmentation, draws random numbers (Draws). One
                thread calls it, under the GIL, for one picture after the other. A C function (mr_own_change in millrace/augment.h) is
                given by address, by ctypes or as made by numba.cfunc; the library's threads call it. Operation(function, ...) says more
    take        only some of the samples, (from, to) as parts of 1 of a drawn order that is the same in every run: (0, 0.9) and
                (0.9, 1) share none and are all together; 0.1 is (0, 0.1)
    only_classes, where, dedup, take_each, sample, sample_seed   choose samples as the options of `millrace convert` do: "cat,dog" or a list
                of names; conditions, "width>=256,key~train/*"; "bytes" or "pixels"; (from, to) of each class; a number of samples.
                The batches equal a loader's of the set that convert makes with them; `notes` says which samples were left out
    rename_classes, classes_from    {old name: new name}, or a file with lines "OLD<tab>NEW"; names of numbered classes, a list or a file
    stratify    take= is the share of each class, in place of a share of all
    format, image_key, label_key, target_key, split_key, classes, index_folder   as `millrace help inspect` says of the options of these
                names
    channels    1, 3, or 0: the number that the data have
    fields      names of fields to deliver beside picture and label: boxes, masks, sequences; or dicts with "name" and
                optionally "role" ("plain", "boxes", "box_values", "mask"), "most", "pad", "in_pixels". "boxes" names boxes.npy
                of a tar archive, too; batch.fields has the names that are given here
    length_window, width_multiple   batches of samples of like length (millrace/loader.h)
    repeats                         copies of each sample in its batch, each augmented with draws of its own
    cache       "off", "memory", or "disk" in `cache_folder`: keep samples of the first epoch for the later ones; `cache_bytes`
                at most (memory: None takes what fits)
    memory      limit in bytes, 0: half of the memory that the process may use
    entry_bytes memory for entry points of JPEGs without them, stored in the first of several epochs: later ones skip data
                above a crop; at most an eighth of `memory`; 0: never
    bad         a damaged sample: "stop" (BadSampleError), "replace" it by another one, "skip"; at most `max_bad` of them
    on_bad      function of (error, substitute), called by next() for each; else it is logged
    on_note     function of a text; else it is logged
    pictures    kinds of picture files that are decoded, such as "jpeg,png" or ["jpeg", "png"]; others are bad samples; "all"
    tune        settings of threads may change to deliver more; no bit of a batch does

    Further settings, as the options of `millrace bench loader` (docs/settings.md; tools/scripts/python_types.py writes these lines):

    block           samples per block with order block
    max_bad         more damaged samples than this stop the run
    readers         reader threads; 0: one with io_uring, four with pread
    depth           reads in flight per reader
    io              read by this method; auto: io_uring if the kernel allows it, else pread threads
    direct          bypass the page cache (O_DIRECT)
    resident        read data of small samples up to this size once and keep them in memory, at most a quarter of memory; 0: never
    checks          verify the checksums of records; off measures their cost and does not detect damaged records
    exif            rotate pictures by their EXIF orientation, or leave them as stored
    max_pixels      treat pictures with more pixels as bad samples, before memory is allocated
    max_scans       treat progressive pictures with more scans as bad
    pixels          a JPEG's pixels: own; libjpeg: its RGB, resampled; reduced: as own, but large reductions from means of 8 x 8
                    samples

    One thread at a time takes batches; others wait. After fork() a loader is of no use in the child (ForkError); pickled, as by
    "spawn", it is its arguments. `with` closes it; so does the end of its last reference."""

    def __init__(self, path: Any, *,
                 # rows of the library: tools/scripts/python_types.py writes these lines
                 batch: int = 128,
                 epochs: Optional[int] = 1,
                 seed: int = 0,
                 order: Optional[SampleOrder] = None,
                 block: int = 256,
                 tail: Tail = "keep",
                 augment: str = "none",
                 channels: int = 0,
                 bad: Bad = "stop",
                 max_bad: int = 100,
                 width_multiple: int = 1,
                 length_window: int = 0,
                 repeats: int = 1,
                 prefetch: int = 4,
                 workers: int = 0,
                 readers: int = 0,
                 depth: int = 32,
                 io: Io = "auto",
                 direct: bool = False,
                 memory: int = 0,
                 resident: int = 1073741824,
                 entry_bytes: int = 1073741824,
                 checks: bool = True,
                 exif: bool = True,
                 max_pixels: int = 100000000,
                 max_scans: int = 100,
                 pixels: Pixels = "own",
                 pictures: Union[str, Sequence[str]] = "all",
                 # end of the rows
                 training: bool = False, rank: Optional[int] = None, world: Optional[int] = None, hold: int = 4,
                 sampler: Any = None, operations: Optional[Dict[str, Any]] = None, normalise: Any = None, split: Split = "auto",
                 take: Any = None, format: Optional[str] = None, image_key: Optional[str] = None, label_key: Optional[str] = None,
                 target_key: Optional[str] = None, split_key: Optional[str] = None, classes: Classes = "first",
                 index_folder: Any = None, fields: Sequence[Union[str, Dict[str, Any]]] = (), cache: Cache = "off",
                 cache_folder: Any = None, cache_bytes: Optional[int] = None,
                 on_bad: Optional[Callable[[Error, Optional[int]], None]] = None,
                 on_note: Optional[Callable[[str], None]] = None, tune: bool = False,
                 only_classes: Union[None, str, Sequence[str]] = None, rename_classes: Any = None, classes_from: Any = None,
                 where: Optional[str] = None, dedup: Optional[Dedup] = None, take_each: Any = None, sample: int = 0,
                 sample_seed: int = 0, stratify: bool = False) -> None:
        given = dict(locals())
        del given["self"]
        self._begin(given)

    def _begin(self, given: Dict[str, Any]) -> None:
        if not isinstance(given["path"], (str, bytes, os.PathLike, Live)):
            given = dict(given, path=Live(given["path"]))
        self._given = given
        self._pid, self._closing = os.getpid(), threading.Lock()
        self._closed, self._lost = False, 0
        self._reported = C.c_uint64(), C.c_uint64()  # arguments of _drain()
        self._rank, self._world = _ranks.find(given["rank"], given["world"])
        self._hold = _count("hold", given["hold"], 1, _KEEP_MOST)
        self._epochs = _ENDLESS if given["epochs"] is None else _count("epochs", given["epochs"], 1, _ENDLESS)
        self._stream = Stream(self)
        self._finish: Optional[Finish] = None
        self._cfg = self._settings(given)
        self._source = Source(given["path"], **{k: given[k] for k in OF_THE_SOURCE})
        self._see_data()
        self._source.draw_as(given["seed"], self._rank)
        self._inbox: Optional[Inbox] = Inbox()
        self._reports = self._inbox.flag
        self._cfg.on_bad, self._cfg.bad_context = _l.ON_BAD, self._inbox.pointer
        self._cfg.on_note, self._cfg.note_context = _l.ON_NOTE, self._inbox.pointer
        self._order: Optional[Order] = None
        if given["sampler"] is not None:
            if given["order"] not in (None, "shuffle") or given["length_window"]:
                raise ArgumentError("sampler= says where every sample stands: leave out order= and length_window=")
            self._order = Order(given["sampler"], self._source.info.count)
            self._order.settle(self._cfg)
        self._operations: Optional[Operations] = None
        if given["operations"] is not None:
            self._operations = Operations(given["operations"])
            self._given = dict(given, operations=dict(given["operations"]))  # a copy is made of these, whatever becomes of theirs
            self._operations.settle(self._cfg)
        self._look()
        _open_loaders.add(self)

    def _see_data(self) -> None:
        """Content that would be left out without a word: labels that are fractions, a channel of an object's arrays."""
        info = self._source.info
        for k in range(info.field_count if info.label_field < 0 else 0):
            asked = [f if isinstance(f, str) else dict(f).get("name") for f in self._given["fields"]]
            if info.fields[k].name == b"label" and info.fields[k].type == _FRACTION and "label" not in asked:
                raise ArgumentError("field 'label' holds fractions, and a label is a class: fields=[\"label\"] delivers it, and no target counts then")
        field = info.fields[info.image_field] if self._source.data is not None and info.image_field >= 0 else None
        if field and field.type == _OF_PIXELS and field.ndim == 3 and field.dim[2] in (2, 4) and not self._given["channels"]:
            raise ArgumentError("%r: the picture of sample 0 is an array of %d channels, and batches have 1 or 3: channels=%d leaves out the last one, as "
                                "alpha; millrace.torch.Loader without augment=, dtype= and memory_format= delivers all of them" % (
                                    self._given["path"], field.dim[2], field.dim[2] - 1))

    def _settings(self, g: Dict[str, Any]) -> mr_loader_config:
        cfg = _l.fill(_l.lib.mr_loader_defaults_sized, mr_loader_config())
        order = g["order"]
        if order is None:
            order = "shuffle" if g["training"] or g["length_window"] or g["sampler"] is not None else "sequential"
        set_members(cfg, "mr_loader_config", dict(g, order=order, epochs=self._epochs))
        set_members(cfg.decode, "mr_decode_config", g)
        cfg.workers = cfg.workers or max(1, _l.quick_lib.mr_cores() // _ranks.beside())
        cfg.training = bool(g["training"])
        self._texts = [augmentation(g).encode()]
        cfg.augment = self._texts[0]
        cfg.cache = _one_of("cache", _CACHES, g["cache"])
        if g["cache_folder"] is not None:
            self._texts.append(_l.encode(g["cache_folder"]))
            cfg.cache_folder = self._texts[-1]
        if cfg.cache:
            cfg.cache_bytes = _FITS if g["cache_bytes"] is None else _count("cache_bytes", g["cache_bytes"], 0, _FITS)
            if cfg.cache == _CACHES["disk"] and isinstance(g["path"], Live) and g["path"].key is None:
                raise ArgumentError("cache=\"disk\" of a Python object: say with Live(data, key=...) which data these are, since later "
                                    "runs use the stored result")
            if cfg.cache == _CACHES["disk"] and g["cache_bytes"] is None:
                raise ArgumentError("cache=\"disk\" needs cache_bytes: how large its file may grow")
        cfg.tune = _TUNE_ALL if g["tune"] else 0
        cfg.keep = self._hold
        cfg.all_parts, cfg.first_part = self._world, self._rank
        return cfg

    def _take_fields(self, cfg: mr_loader_config) -> None:
        fields = self._given["fields"]
        if isinstance(fields, str):
            raise ArgumentError("fields=%r: expected a list of names" % fields)
        rows = (mr_loader_field * max(len(fields), 1))()
        info = self._source.info
        self._texts = self._texts[:2]
        self._field_names: List[str] = []
        self._field_texts: Dict[str, type] = {}  # fields that are delivered as lists of these
        for row, f in zip(rows, fields):
            members = {"name": f} if isinstance(f, str) else dict(f)
            asked = members.pop("name", "")
            k = self._find_field(info, asked.encode())
            name = asked.encode() if k is None else info.fields[k].name
            self._field_names.append(asked)
            self._texts.append(name)
            row.name = name
            role = members.pop("role", None)
            if role is not None:
                row.role = _one_of("role", _ROLES, "box_values" if role == "values" else role)
            elif k is not None:
                row.role = _l.quick_lib.mr_field_role(C.byref(info), k)
            kind = _TEXTS.get(info.fields[k].type) if k is not None and not row.role else None
            if kind is not None:
                self._field_texts[asked] = kind
            row.most, row.pad = members.pop("most", 0), members.pop("pad", 0.0)
            pixels = members.pop("pixels", False)
            row.in_pixels = members.pop("in_pixels", pixels)
            if members:
                raise ArgumentError("fields: %s: expected name, role, most, pad, in_pixels" % ", ".join(map(repr, members)))
        cfg.fields, cfg.field_count = C.cast(rows, C.POINTER(mr_loader_field)), len(fields)
        self._field_rows = rows

    @staticmethod
    def _find_field(info: mr_source_info, name: bytes) -> Optional[int]:
        """By its name, or by the part before a dot where one field alone begins so: "boxes" for "boxes.npy"."""
        names = [info.fields[k].name for k in range(info.field_count)]
        if name in names:
            return names.index(name)
        found = [k for k, n in enumerate(names) if n.startswith(name + b".")]
        return found[0] if len(found) == 1 else None

    def _look(self) -> None:
        """Facts that need no reading, from a loader without threads and with memory for one batch."""
        cfg = self._cfg
        self._take_fields(cfg)
        full = (cfg.prefetch, cfg.keep, cfg.cache, cfg.tune, cfg.epochs)
        cfg.prefetch, cfg.keep, cfg.cache, cfg.tune, cfg.epochs = 0, 0, 0, 0, _ENDLESS
        try:
            looked = Running(self._source, self._inbox, None, self._operations)
            looked.open(cfg)
        finally:
            cfg.prefetch, cfg.keep, cfg.cache, cfg.tune, cfg.epochs = full
        info: mr_loader_info = _l.quick_lib.mr_loader_info_of(looked.pointer).contents
        self._shape: Tuple[int, ...] = (info.height, info.width, info.channels) if info.height else ()
        self._field_shapes = [(self._field_names[k], info.field[k].dtype, bool(info.field[k].varies),
                               tuple(info.field[k].dim[:info.field[k].ndim])) for k in range(info.field_count)]
        self._steps, self._samples, self._per_epoch = info.steps_per_epoch, info.sample_count, info.epoch_samples
        self._dropped, self._memory = info.dropped, info.memory_bytes
        self._mean, self._std = list(info.mean), list(info.std)
        self._augment = info.augment.decode()
        self._mixes, self._labelled = bool(info.mixes), bool(info.labelled)
        self._data = "%016x" % info.fingerprint
        how: Tuple[Any, ...] = (info.order, info.block, info.tail, info.length_window, bool(cfg.training), self._augment, cfg.channels,
               cfg.decode.pixels)
        if info.repeats > 1:
            how += ("repeats", info.repeats)
        if info.ignore_exif:
            how += ("exif",)
        if self._order:
            how += (self._order.count, self._order.mark)
        self._how = "%08x" % zlib.crc32(repr(how).encode())
        looked.close()
        self._drain(_l.new_error())

    # ------------------------------------------------------------------ facts

    @property
    def rank(self) -> int:
        return self._rank

    @property
    def world(self) -> int:
        return self._world

    @property
    def batch(self) -> int:
        """Samples in a global batch."""
        return self._given["batch"]

    @property
    def steps_per_epoch(self) -> int:
        return self._steps

    @property
    def sample_count(self) -> int:
        """Samples in the data set."""
        return self._samples

    @property
    def shape(self) -> Tuple[int, ...]:
        """(height, width, channels) of every picture; () if the data have no single size."""
        return self._shape

    @property
    def augment(self) -> str:
        """The augmentation, presets spelled out."""
        return self._augment

    @property
    def mean(self) -> List[float]:
        """Of normalise(), in units of 0 to 255, one for each channel."""
        return self._mean[:self._shape[2]] if self._shape else []

    @property
    def std(self) -> List[float]:
        return self._std[:self._shape[2]] if self._shape else []

    def _numbers(self) -> Tuple[List[float], List[float]]:
        """Means and deviations by which pixels become floats; of an augmentation that says none, 0 and 255."""
        std = [s if s else 1.0 for s in self.std]
        plain = not any(self.mean) and all(s == 1.0 for s in std)
        return ([0.0] * len(std), [255.0] * len(std)) if plain else (self.mean, std)

    @property
    def classes(self) -> List[str]:
        """Names of the classes: a label is a position among them. [] where the data have no names: a label is the data's number."""
        self._check()
        info = self._source.info
        if not info.class_names:
            return []
        names = C.cast(info.class_names, C.POINTER(C.c_char_p))
        return [names[k].decode("utf-8", "surrogateescape") for k in range(info.class_count)]

    @property
    def targets(self) -> List[int]:
        """The label of every sample, in the order of the data, without reading pictures; -1: no label."""
        self._check()
        try:
            return targets_of(self._source, self._samples)
        except UnsupportedError:
            targets = targets_in(self._source.data)
            if targets is None or len(targets) != self._samples:
                raise
            return targets

    @property
    def mixes(self) -> bool:
        """Are pictures of a batch mixed with each other (`mixup`, `cutmix` in training)?"""
        return self._mixes

    def _soft_classes(self, num_classes: Optional[int]) -> int:
        """Columns of soft targets, for adapters that hand those out; 0: labels say it all."""
        if not self._mixes:
            return 0
        known = num_classes or self._source.info.class_count
        if not known:
            raise ArgumentError("pictures are mixed, so targets have a share for each class, and the data do not say how many there "
                                "are: give num_classes=")
        return int(known)

    @property
    def notes(self) -> str:
        """Reports of the data set: left-out samples, shifted labels, indexes."""
        self._check()
        lines = (self._source.info.told or b"").decode("utf-8", "replace")
        return in_python("\n".join([*lines.splitlines(), *self._source.chosen]))

    @property
    def epoch(self) -> int:
        """Of the batch that comes next."""
        return self._place()[0]

    @property
    def step(self) -> int:
        return self._place()[1]

    def _place(self) -> Tuple[int, int]:
        """Epoch and step of the batch that comes next."""
        return self._stream.epoch, self._stream.step

    def _streams(self) -> List[Stream]:
        return [self._stream]

    @property
    def held(self) -> int:
        """Batches in use."""
        return sum(s.held for s in self._streams())

    def stats(self) -> Dict[str, Any]:
        """Counters since iterating began (again): see mr_loader_stats in millrace/observe.h; {} before."""
        running = self._stream.running
        if not running or not running.pointer:
            return {}
        s = mr_loader_stats()
        s.struct_size = C.sizeof(s)
        _l.quick_lib.mr_loader_stats_read_sized(running.pointer, C.byref(s))
        out: Dict[str, Any] = {}
        for name, kind in s._fields_:
            if name in ("read", "decode", "copy"):
                out[name] = {n: getattr(getattr(s, name), n) for n, _ in getattr(s, name)._fields_}
            elif name not in ("struct_size", "bytes_copied"):
                out[name] = getattr(s, name)
        return out

    def __len__(self) -> int:
        if self._epochs == _ENDLESS:
            raise TypeError("a loader without end has no length; steps_per_epoch is %d" % self._steps)
        return self._epochs * self._steps

    # ------------------------------------------------------------------ iterating

    def _check(self) -> None:
        if self._pid != os.getpid():
            raise ForkError("this loader belongs to process %d, and this is %d, a child of it by fork(): its threads are not here; "
                            "make a loader in this process, or start it by \"spawn\"" % (self._pid, os.getpid()))
        if self._closed:
            raise ClosedError("the loader was closed")

    def _drain(self, what: Any) -> None:
        """Hand out what threads of the library reported, each by the way of `what`."""
        substitute, lost = self._reported
        while self._inbox:  # a callback may close the loader
            kind = _l.quick.mrp_inbox_take(self._inbox.pointer, C.byref(what), C.byref(substitute), C.byref(lost))
            if kind == 0:
                break
            if kind == 1:
                text = in_python(what.text.decode("utf-8", "replace"))
                call = self._given["on_note"]
                call(text) if call else log.info("%s", text)
            else:
                e = _l.failed(what.code, what)
                instead = None if substitute.value == _l.NOWHERE else substitute.value
                call = self._given["on_bad"]
                call(e, instead) if call else log.warning("damaged: %s", e)
        if lost.value > self._lost:
            log.warning("%d reports were lost: more than there is room for between two batches", lost.value - self._lost)
            self._lost = lost.value

    def _raise_failure(self, became: Error) -> None:
        """What code of the caller's raised that runs in threads of its own."""
        self._source.raise_failure()
        if self._operations:
            self._operations.raise_failure(became)

    def _begin_again(self) -> None:
        if self._stream.epoch >= self._epochs:
            self.seek(0, 0)

    def __iter__(self) -> Iterator[Batch]:
        self._check()
        self._source.see_count()
        self._begin_again()
        return _Iterator(self, None)

    def by_epoch(self) -> Iterator[Tuple[int, Iterator[Batch]]]:
        """(epoch, its batches), from where the loader is to the end of all epochs."""
        self._check()
        self._begin_again()
        stream = self._stream
        while stream.epoch < self._epochs:
            epoch = stream.epoch
            yield epoch, _Iterator(self, epoch)
            if stream.epoch == epoch:  # its rest was not wanted
                self.seek(epoch + 1, 0)

    def seek(self, epoch: int, step: int = 0) -> None:
        """The batch that comes next is this one."""
        self._check()
        check_step(step, self._steps)
        self._stream.seek(_count("epoch", epoch, 0, _ENDLESS), _count("step", step, 0, _ENDLESS))

    def _finish_as(self, dtype: str, classes: int = 0) -> None:
        """Batches have memory that is used again when nobody has it, whatever others make of their arrays: `hold` does not limit them.
        dtype: of images, which are normalised unless it is uint8. classes: their number, if targets are shares of classes."""
        kind = list(KINDS.values())[_one_of("dtype", KINDS, dtype)]
        given = self._given["augment"]
        if kind == U8 and (self._given["normalise"] is not None or isinstance(given, str) and ("normalise" in given or "standardise" in given)):
            log.warning("images are the pixels, uint8, which normalise() and standardise() leave as they are: say dtype=\"float32\" for normalised ones")
        if self._finish is None or (self._finish.dtype, self._finish.classes) != (kind, classes):
            means, stds = ([], []) if kind == U8 else self._numbers()
            self._finish = Finish(self, kind, False, means, stds, classes=classes)
            self._stream.stop()  # the position stays

    def _names(self, ids: List[int]) -> List[str]:
        self._check()
        return self._source.names(ids)

    # ------------------------------------------------------------------ state

    def state_dict(self) -> Dict[str, Any]:
        """Where the loader is: small, and the same for every rank and any number of them."""
        return {"millrace": 1, "data": self._data, "how": self._how, "seed": self._given["seed"], "batch": self.batch,
                "epoch": self.epoch, "step": self.step}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Go on where a loader of the same data, seed, batch, order and augmentation was; rank and world may differ. Of sampler=
        the numbers of epoch 0 are compared: that a function gives others in a later epoch cannot be known."""
        self._check()
        mine = self.state_dict()
        if not isinstance(state, dict) or state.get("millrace") != 1:
            raise StateError("not a state of a millrace loader: %.100r" % (state,))
        for key, name in (("data", "another data set"), ("seed", "another seed"), ("batch", "another global batch"),
                          ("how", "another order, tail or augmentation")):
            if state.get(key) != mine[key]:
                raise StateError("the state is of %s: it has %s %r, the loader %r" % (name, key, state.get(key), mine[key]))
        epoch, step = state.get("epoch"), state.get("step")
        if not isinstance(epoch, int) or not isinstance(step, int) or epoch < 0 or not 0 <= step < self._steps:
            raise StateError("the state says epoch %r, step %r: expected a step below %d" % (epoch, step, self._steps))
        self.seek(epoch, step)

    # ------------------------------------------------------------------ the end

    def close(self) -> None:
        """Stop the loader's threads and give back its memory, but for batches in use: those live on. Again is harmless."""
        if getattr(self, "_pid", None) != os.getpid() or self._closed:
            return
        with self._closing:
            self._closed = True
            streams = self._streams()
            for stream in streams:
                stream.interrupt()  # whoever waits in next() comes back
            self._source.stop()
            operations = getattr(self, "_operations", None)  # without, it did not come to be
            if operations:
                operations.close()
            for stream in streams:
                with stream.lock:
                    stream.stop()
            self._source.close()
            self._inbox, self._reports = None, C.c_int(0)

    def __enter__(self) -> "Loader":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self, ending: Any = _ending) -> None:
        if not ending() and hasattr(self, "_source"):
            self.close()

    def __reduce__(self) -> Any:
        see_sendable(self._given)
        return _again, (type(self), self._given)

    def __repr__(self) -> str:
        return "<millrace.%s %s, batch %d, epoch %d step %d>" % (type(self).__name__, self._given["path"], self.batch, self.epoch,
                                                               self.step)


def settings_of(kind: Any) -> List[str]:
    """Names of the arguments of a loader of this kind."""
    return [n for n in inspect.signature(kind.__init__).parameters if n not in ("self", "by_place", "settings")]


def _again(kind: Any, given: Dict[str, Any]) -> Any:
    return kind(**given)


class _Iterator:
    """Batches of a loader, up to the end of one epoch or of all."""

    _no_copy = "it is a position in a loader under way; the loader can be pickled, and state_dict() is its position"

    def __reduce_ex__(self, protocol: Any) -> Any:
        return refuse_copy(self)

    def __init__(self, loader: Loader, epoch: Optional[int]) -> None:
        self._loader, self._epoch = loader, epoch

    def __iter__(self) -> "_Iterator":
        return self

    def __next__(self) -> Batch:
        loader, stream = self._loader, self._loader._stream
        if stream.epoch >= loader._epochs or (self._epoch is not None and stream.epoch != self._epoch):
            raise StopIteration
        return stream.next()
