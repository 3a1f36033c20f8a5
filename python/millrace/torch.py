"""millrace.torch: the loader where torch.utils.data.DataLoader stood.

    train_loader = millrace.torch.Loader("imagenet/train", batch_size=256, augment="rrc224", training=True)
    for epoch in range(90):
        train_loader.set_epoch(epoch)
        for images, target in train_loader:      # float32, normalised, (n, 3, 224, 224); int64
            ..."""
from __future__ import annotations

import os
from collections.abc import Mapping
from typing import (TYPE_CHECKING, Any, Callable, Dict, Generic, Iterator, List, Literal, NoReturn, Optional, Sequence, Tuple, TypeVar,
                    Union, overload)

try:
    import torch
except ImportError as e:  # pragma: no cover
    raise ImportError("millrace.torch needs PyTorch: pip install torch") from e

from . import _gpu, _ranks
from . import _library as _l
from ._accelerate import enter, imported
from ._across import ahead as batches_ahead
from ._arguments import see_count, take_data, take_sampler, tell_once, translate
from ._arrays import COPY, PLANES, Batch
from ._collate import Collation, as_lists
from ._errors import ArgumentError, StateError
from ._finish import BF16, F16, F32, U8, Finish
from ._gpu import Gpu
from ._live import Live, callers
from ._live_workers import LiveOfWorkers
from ._loader import Loader as _Loader
from ._loader import _ORDERS, _count, log, settings_of
from ._made import MadePass
from ._own import TARGET, Own, OwnMixin, for_augmentation
from ._native import CPYTHON
from ._passes import Pass, Passes
from ._typed import Path, Unpack
from ._typed_torch import DataLoaderSettings

Fields = Sequence[Union[str, Dict[str, Any]]]
Item = TypeVar("Item", covariant=True)  # what an iteration delivers
Made = TypeVar("Made")  # what collate_fn= gives
_FORMATS = {"contiguous": "contiguous", "channels_last": "channels_last", torch.contiguous_format: "contiguous",
            torch.channels_last: "channels_last"}
_LITTLE = 1 << 20
_SEEDS = 1 << 32  # torch.initial_seed() is below if the program has called torch.manual_seed(), else a constant or random 64 bits
# torch.from_dlpack(array) asks the array for its device and versions first, and torch.utils.dlpack's function whether a capsule is an array.
_from_capsule = getattr(torch._C, "_from_dlpack", torch.utils.dlpack.from_dlpack)
_KINDS = {torch.float32: F32, torch.float16: F16, torch.bfloat16: BF16, torch.uint8: U8}
_WHOLE = ("samples come in batches, from the loader that this belongs to: use it as it is; it divides its batches among ranks itself and "
          "needs no DataLoader, DistributedSampler or prepare_data_loader() around it (Hugging Face's Trainer takes it from get_train_dataloader()), "
          "and no Subset: take=(0, 0.1) is a part of the data, sampler=[...] are these samples")


class _Dataset(torch.utils.data.Dataset):
    """What stands where a data set is looked for: its length, its classes, its targets."""

    def __init__(self, loader: "Loader") -> None:
        self._loader = loader

    def __len__(self) -> int:
        return self._loader.sample_count

    def __getitem__(self, at: Any) -> Any:
        if not isinstance(at, _Place):
            if self._loader._own and hasattr(at, "__index__"):
                return self._loader._own.live.data[at]
            raise TypeError(_WHOLE)
        at.of.skip_to(at.step)
        return next(at.of)

    @property
    def classes(self) -> List[str]:
        return self._loader.classes

    @property
    def class_to_idx(self) -> Dict[str, int]:
        return {name: k for k, name in enumerate(self._loader.classes)}

    @property
    def targets(self) -> List[int]:
        """The class of every sample, in the order of the data."""
        return self._loader.targets

    @property
    def samples(self) -> List[Tuple[str, int]]:
        """(name, class) of every sample, as torchvision's ImageFolder has them; with the names of batch.names."""
        return list(zip(self._loader._names(list(range(len(self)))), self.targets))

    imgs = samples

    def __getattr__(self, name: str) -> Any:
        """Of the Python object that gives the samples, where there is one."""
        data = None if name.startswith("_") else self._loader._own_data
        if data is not None and hasattr(data, name):
            return getattr(data, name)
        if name in ("transform", "target_transform"):
            return None
        raise AttributeError("the data set of a millrace loader has no %r: it has classes, class_to_idx, targets and samples; pictures "
                             "come from the loader, and augment= says what happens to them" % name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "_loader":
            return super().__setattr__(name, value)
        if self._loader._own_data is None:
            raise AttributeError("%s cannot be set on the data set of a millrace loader: augment= says what happens to pictures, take= and "
                                 "sampler= which samples come; make another loader" % name)
        if name in ("classes", "class_to_idx"):
            raise AttributeError("%s cannot be set on the data set of a millrace loader, which has the classes that the data had when it was made; "
                                 "millrace.Live(data, classes=[...]) says other ones" % name)
        if self._loader._copied_data:
            raise AttributeError("%s cannot be set on these data: with augment= and num_workers=, worker processes keep the copies of the data that they "
                                 "began with; set it before the loader is made, or make another loader" % name)
        setattr(self._loader._own_data, name, value)


class _Sampler(torch.utils.data.Sampler):
    """What stands where a sampler is looked for: this rank's number of samples, and set_epoch()."""

    def __init__(self, loader: "Loader") -> None:
        self._loader = loader

    def __len__(self) -> int:
        """The most that a rank gets of an epoch, before drop_last."""
        return -(-(self._loader._per_epoch + self._loader._dropped) // self._loader.world)

    def __iter__(self) -> Iterator[int]:
        raise TypeError(_WHOLE)

    def set_epoch(self, epoch: int) -> None:
        self._loader.set_epoch(epoch)

    # As DistributedSampler and RandomSampler have them.
    generator = None

    @property
    def num_samples(self) -> int:
        return len(self)

    @property
    def num_replicas(self) -> int:
        self._loader._settle()
        return self._loader.world

    @property
    def rank(self) -> int:
        self._loader._settle()
        return self._loader.rank

    @property
    def shuffle(self) -> bool:
        return self._loader._shuffled

    @property
    def drop_last(self) -> bool:
        return self._loader.drop_last

    @property
    def data_source(self) -> _Dataset:
        return _Dataset(self._loader)


class _SequentialSampler(_Sampler, torch.utils.data.SequentialSampler):  # type: ignore[misc]
    """The same of a loader in the order of the data, for code that asks whether a loader shuffles."""


class _DistributedSampler(_Sampler, torch.utils.data.distributed.DistributedSampler):
    """The same of a loader of several ranks, which others require to be one of these (Ignite's handlers, loops that call set_epoch())."""

    @property
    def epoch(self) -> int:
        """Of the next iteration."""
        return self._loader._next_epoch if self._loader._wanted is None else self._loader._wanted

    @property
    def seed(self) -> int:
        return int(self._loader._given["seed"])

    @property
    def total_size(self) -> int:
        return len(self) * self.num_replicas

    @property
    def dataset(self) -> _Dataset:
        return _Dataset(self._loader)


class _Place:
    """A batch of an iteration, as an index of _Dataset."""
    __slots__ = ("of", "step")

    def __init__(self, of: Pass, step: int) -> None:
        self.of, self.step = of, step


class _BatchSampler(torch.utils.data.BatchSampler):
    """What stands where a batch sampler is looked for. A DataLoader of loader.dataset, this (or one that leaves out the first of
    these), and loader.collate_fn gives the loader's batches; batches that are left out are not made."""

    def __init__(self, loader: "Loader") -> None:
        self._loader, self.sampler = loader, loader._sampler()

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[List[_Place]]:
        began = self._loader._begin_pass()
        for step in range(began.step, len(self._loader)):
            yield [_Place(began, step)]

    @property
    def batch_size(self) -> int:
        return self._loader.batch_size

    @property
    def drop_last(self) -> bool:
        return self._loader.drop_last

    def set_epoch(self, epoch: int) -> None:
        self._loader.set_epoch(epoch)


def _tensor(array: Any, how: int = 0) -> Any:
    """Over the array's memory. how: PLANES makes (n, channels, height, width) of (n, height, width, channels)."""
    if not CPYTHON:
        tensor = torch.from_dlpack(array)
        return tensor.permute(0, 3, 1, 2) if how & PLANES else tensor
    return _from_capsule(array._capsule(how))


def _apart(array: Any) -> Any:
    """With memory of its own, where that is little: who keeps all targets of an epoch does not keep all its pictures."""
    return _tensor(array, COPY if CPYTHON and array.nbytes <= _LITTLE else 0)


def whole(batches: Sequence[Any]) -> Any:
    """loader.collate_fn: batches come made."""
    return batches[0]


class Loader(OwnMixin, Passes, Generic[Item]):
    """Batches as (images, target): float32, normalised as the augmentation says, (n, channels, height, width), and int64.

    Every `for` over it is one epoch, as with a DataLoader: the one of `set_epoch()`, else the one after the last. After
    `load_state_dict()` the first one goes on in the middle of its epoch. Iterations are independent: `next(iter(loader))` inside of a
    loop over the same loader takes nothing from that loop, and costs threads and memory of its own; the loader's state is the state of the
    iteration that was begun last and is still there. `len(loader)` is the number of batches in an epoch, `len(loader.dataset)` the number
    of samples, `len(loader.sampler)` that of this rank. A rank of torch.distributed's group (else of torchrun, mpirun, srun) gets its own
    part of every batch: no DistributedSampler, no `accelerator.prepare()` is needed; the group may come up after the loader was made.

    batch_size     samples in a batch of THIS rank, as with a DataLoader; or
    batch          samples in the global batch: what resuming in another world needs to be the same
    memory_format  "contiguous", or "channels_last" (the way pixels lie in memory: the cheaper one where the model takes it), or what
                   torch calls so. With uint8=True "channels_last" unless it is given
    device         where tensors go: None stays in host memory; "cuda" copies from pinned memory on a stream of its own, which
                   torch's current stream waits for
    dtype          torch.float32, float16, bfloat16 or uint8, or its name. uint8 are the pixels as decoded, for normalising on the device.
                   None: float32; but arrays of uint8 that a data set gives keep their bits, as with a DataLoader, unless augment=,
                   memory_format= or another argument of pictures says that they are pictures
    uint8          True: dtype=torch.uint8. Where channels_last, they are the batch's own memory, whose number `hold` sets
    drop_last      the short last batch is left out, so that all ranks have as many samples. Where its samples do not go round, a
                   rank would get an empty batch, whose mean loss is NaN: that is an error for training, else a warning
    raw            True: millrace.Batch objects instead
    keys           names of images and target, such as ("pixel_values", "labels"): batches are dicts with these, as Hugging Face's models
                   take them, and with the fields of fields=
    ignore_index   target of a sample that does not count: padding, damaged, without a label. -100 is what torch's losses leave out
    num_classes    with `mixup` or `cutmix` in augment=, where the data do not say how many classes there are
    transform      function of a decoded picture (of PIL, where that is installed, else an array of uint8), as torchvision's transforms are;
                   with it Python makes the samples, also of files and records, which the library decodes. With augment= it is called
                   after it, with the tensor that would be delivered, (channels, height, width)
    target_transform  the same of the target
    collate_fn     function of a list of samples that gives the batch; default: as PyTorch's default_collate, targets of detection (dicts
                   with "boxes", or whose tensors differ in length) as a list of dicts. as_lists takes samples of any size

    Samples that Python makes, with these functions or by a data set of finished tensors, are made by num_workers processes
    (multiprocessing_context= "fork", "spawn", "forkserver"; the system's default), in threads on a Python without the GIL, or with
    num_workers=0 inside next(). Order, ranks, states and bad= are the same as for other data. Before each sample the global generators
    of Python, NumPy and PyTorch are seeded from seed, epoch and sample, so a batch does not depend on the number of workers.

    Everything else is as for millrace.Loader, but `epochs`; with fields= batches are (images, target, {name: tensor}), lengths of rows
    that differ under "name.length". Of mixed pictures the target is float32 (n, classes), what CrossEntropyLoss takes as probabilities
    of classes: all 0 for a sample that does not count.

    DataLoader's names are taken, too: dataset (the first argument), shuffle (order), num_workers (workers; 0: chosen by the library),
    prefetch_factor (prefetch), generator (its seed), sampler and batch_sampler (any of PyTorch's), pin_memory, persistent_workers,
    worker_init_fn, multiprocessing_context and timeout, which change nothing. What has no meaning here is an error that says what to write."""

    num_workers, timeout, pin_memory, persistent_workers, in_order = 0, 0, False, False, True  # no processes
    collate_fn = staticmethod(whole)
    worker_init_fn: Any = None
    multiprocessing_context: Any = None
    generator: Any = None
    prefetch_factor: Any = None
    pin_memory_device = ""

    @overload
    def __init__(self: "Loader[Batch]", path: Any, batch_size: Optional[int] = ..., shuffle: Optional[bool] = ..., *, raw: Literal[True],
                 fields: Fields = ..., collate_fn: None = ..., **settings: Unpack[DataLoaderSettings]) -> None: ...

    @overload
    def __init__(self: "Loader[Made]", path: Any, batch_size: Optional[int] = ..., shuffle: Optional[bool] = ..., *,
                 collate_fn: Callable[[List[Any]], Made], fields: Fields = ..., **settings: Unpack[DataLoaderSettings]) -> None: ...

    @overload
    def __init__(self: "Loader[Dict[str, torch.Tensor]]", path: Any, batch_size: Optional[int] = ..., shuffle: Optional[bool] = ..., *,
                 keys: Sequence[str], fields: Fields = ..., collate_fn: None = ..., **settings: Unpack[DataLoaderSettings]) -> None: ...

    @overload
    def __init__(self: "Loader[Tuple[torch.Tensor, torch.Tensor, Dict[str, torch.Tensor]]]", path: Path, batch_size: Optional[int] = ...,
                 shuffle: Optional[bool] = ..., *, fields: Fields, collate_fn: None = ..., **settings: Unpack[DataLoaderSettings]) -> None: ...

    @overload
    def __init__(self: "Loader[Tuple[torch.Tensor, torch.Tensor]]", path: Path, batch_size: Optional[int] = ...,
                 shuffle: Optional[bool] = ..., *, collate_fn: None = ..., **settings: Unpack[DataLoaderSettings]) -> None: ...

    @overload
    def __init__(self: "Loader[Any]", path: Any, batch_size: Optional[int] = ..., shuffle: Optional[bool] = ..., *, fields: Fields = ...,
                 collate_fn: None = ..., **settings: Unpack[DataLoaderSettings]) -> None: ...  # samples of a Python object are of any kind

    @overload
    def __init__(self: "Loader[Any]", *, dataset: Any, batch_size: Optional[int] = ..., shuffle: Optional[bool] = ..., fields: Fields = ...,
                 keys: Optional[Sequence[str]] = ..., raw: bool = ..., collate_fn: Optional[Callable[[List[Any]], Any]] = ...,
                 **settings: Unpack[DataLoaderSettings]) -> None: ...  # DataLoader's name of the first argument

    def __init__(self, path: Any = None, batch_size: Optional[int] = None, shuffle: Optional[bool] = None, *by_place: Any, batch: Optional[int] = None,
                 memory_format: Union[None, Literal["contiguous", "channels_last"], torch.memory_format] = None,
                 dtype: Union[None, Literal["float32", "float16", "bfloat16", "uint8"], torch.dtype] = None,
                 device: Union[None, str, torch.device] = None, uint8: bool = False, drop_last: bool = False, raw: bool = False,
                 keys: Optional[Sequence[str]] = None, ignore_index: int = -100, num_classes: Optional[int] = None,
                 transform: Optional[Callable[[Any], Any]] = None, target_transform: Optional[Callable[[Any], Any]] = None,
                 collate_fn: Optional[Callable[[List[Any]], Any]] = None, **settings: Any) -> None:
        path = take_data(path, by_place, settings)
        given = dict(settings, path=path, batch_size=batch_size, shuffle=shuffle, batch=batch, memory_format=memory_format, dtype=dtype, device=device,
                     uint8=uint8, drop_last=drop_last, raw=raw, keys=keys, ignore_index=ignore_index, num_classes=num_classes,
                     transform=transform, target_transform=target_transform, collate_fn=collate_fn)
        if "epochs" in settings:
            raise ArgumentError("epochs=: every `for` over this loader is one epoch")
        settings.update(batch_size=batch_size, drop_last=drop_last, shuffle=shuffle, device=device)
        functions = {"transform": transform, "target_transform": target_transform, "collate_fn": collate_fn}
        said = {"dtype": dtype is not None or uint8, "memory_format": memory_format is not None, "raw": raw}
        self._own = Own.of(path, functions, settings, ignore_index, [n for n in said if said[n]])
        path, self._target_field = (path, False) if self._own else for_augmentation(path, settings)
        self._copied_data = isinstance(path, LiveOfWorkers)
        translate(settings, _NAMES)
        counted = take_sampler(settings)
        self._see_seed(settings)
        batch_size, drop_last = settings.pop("batch_size"), settings.pop("drop_last")
        settings.pop("device")
        if (batch_size is None) == (batch is None):
            raise ArgumentError("give batch_size= (of each rank) or batch= (of all ranks together)")
        if batch_size is not None:
            batch_size = _count("batch_size", batch_size, 1)
        if memory_format not in _FORMATS and memory_format is not None:
            raise ArgumentError("memory_format=%r: expected \"contiguous\" or \"channels_last\"" % (memory_format,))
        kind = getattr(torch, dtype, None) if isinstance(dtype, str) else dtype
        if dtype is not None and kind not in _KINDS or uint8 and kind not in (None, torch.float32, torch.uint8):
            raise ArgumentError("dtype=%r%s: expected one of %s" % (dtype, " and uint8=True" if uint8 else "", ", ".join(map(str, _KINDS))))
        kind = torch.uint8 if uint8 else torch.float32 if kind is None else kind
        if keys is not None and (isinstance(keys, str) or len(keys) != 2):
            raise ArgumentError("keys=%r: expected two names, of images and target" % (keys,))
        self._tail_chosen = settings.get("tail") is not None or drop_last
        if drop_last:
            settings["tail"] = "drop"
        self._torch_given = dict(given, batch_size=batch_size, rank=settings.get("rank"))
        self._ignore = ignore_index
        self._again_given = given
        rank, world = _ranks.find(settings.get("rank"), settings.get("world"))
        settings.update(rank=rank, world=world)
        ahead = self._own.settle(settings) if self._own else 0
        super().__init__(self._own.path if self._own else path, batch=batch if batch is not None else batch_size * world, epochs=None, **settings)
        see_count(counted, self.sample_count)
        self._see_shares()
        self._dtype = kind
        self._format = _FORMATS[memory_format] if memory_format is not None else "channels_last" if kind is torch.uint8 else "contiguous"
        self._raw, self._keys = raw, keys
        self._soft = 0 if raw else self._soft_classes(num_classes)
        self._device = torch.device(device) if device is not None else None
        if self._device is not None and self._device.type not in ("cpu", "cuda"):
            raise ArgumentError("device=%r: expected \"cpu\" or \"cuda\"" % (device,))
        self._gpu: Optional[Gpu] = None
        self._on_gpu = self._device is not None and self._device.type == "cuda"
        if self._own:
            if raw:
                raise ArgumentError("raw=True: these samples are made by Python, and collate_fn= makes the batch")
            self._own.form = {"kind": _KINDS[kind], "planar": self._format == "contiguous", "ignore": ignore_index, "num_classes": num_classes}
            collation = Collation(self._own.pictures_formed, self._own.arrays_formed, self._format == "contiguous", kind, self._given["channels"],
                                  ignore_index)
            collation.said = self._own.said
            self._makers = self._own.makers(self._given, collation, ahead)
            self._makers.pool = batches_ahead(self._makers.pool, self._device if self._on_gpu else None)
        self._choose_form()

    @staticmethod
    def _see_seed(settings: Dict[str, Any]) -> None:
        """A DataLoader draws from PyTorch's global generator, which differs from rank to rank in many programs."""
        seed = torch.initial_seed()
        draws = settings.get("training") or settings.get("sampler") is not None or settings.get("order") not in (None, "sequential")
        if "seed" not in settings and draws and seed < _SEEDS:
            tell_once("manual_seed", "torch.manual_seed() does not change what this loader draws: order and augmentation follow from seed=, the same on all "
                                     "ranks, which is 0 if it is not given. Give seed=%d, or seed=0, which is silent" % seed)

    def _choose_form(self) -> None:
        """Batches that stay in host memory are finished ahead of the loop; bytes as the library decodes them stay where they are."""
        self._means, self._stds = self._numbers()
        planar = self._format == "contiguous"
        if self._own:
            return
        if self._gpu:
            self._gpu.close()
        if self._on_gpu and not self._raw:  # bytes cross, floats are made there
            self._gpu = Gpu(self._device, self._dtype, planar, self._means, self._stds)
            self._finish = Finish(self, U8, False, ignore=self._ignore, classes=self._soft, memory=_gpu.pinned)
        elif not self._raw:
            self._finish = Finish(self, _KINDS[self._dtype], planar, self._means, self._stds, self._ignore, self._soft,
                                  kept=not planar and self._dtype is torch.uint8)
        # Pixels and targets in one call: the targets are a copy, which has to be small.
        self._in_pairs = CPYTHON and self._finish is not None and not self._gpu and bool(self._shape) and 4 * self._soft * self.batch <= _LITTLE

    def _see_shares(self) -> None:
        """Can all ranks go on with their shares of the last batch?"""
        last = self._per_epoch - (self._steps - 1) * self.batch
        if last % self._world == 0 or self._given["tail"] != "keep":
            return
        self._see_gathering(last)
        if last >= self._world:
            return
        text = ("the last batch of an epoch has %d of %d samples, fewer than there are ranks: some of %d get an empty batch, whose mean "
                "loss is NaN; give drop_last=True, or another batch size" % (last, self.batch, self._world))
        if self._given["training"]:
            raise ArgumentError(text)
        log.warning("%s", text)

    def _see_gathering(self, last: int) -> None:
        """Unequal shares for evaluation that nobody asked for: collective operations on a model's results end the processes."""
        if self._given["training"] or self._tail_chosen:
            return
        text = ("the last batch of an epoch has %d samples, which %d ranks cannot share equally, and gathering needs tensors of equal sizes. Say "
                "tail=\"pad\" (padding has the target %d; Accelerate's gather_for_metrics() leaves it out), tail=\"drop\", or tail=\"keep\" if "
                "nothing is gathered" % (last, self._world, self._ignore))
        if imported():
            raise ArgumentError(text)
        log.warning("%s", text)

    def _entering(self, of: Pass) -> bool:
        last = self._per_epoch - (self._steps - 1) * self.batch
        of.remainder = last if last < self.batch else 0
        return enter(of)

    def _settle(self) -> None:
        """Be the rank that torch.distributed says, where its group came up after this loader."""
        group = None if self._torch_given.get("rank") is not None else _ranks.of_group()
        if group is None or group == (self._rank, self._world):
            return
        self._check()
        place, size = self._place(), self._torch_given["batch_size"]
        if place[1] and size is not None and group[1] != self._world:
            raise StateError("this loader was in the middle of an epoch, on batches for %d ranks, when torch.distributed began with %d: "
                             "make it later, or give rank= and world=" % (self._world, group[1]))
        for stream in self._streams():
            stream.stop()
        self._source.close()
        if self._operations:
            self._operations.close()
        kept = self._next_epoch, self._wanted, self._resumed
        self._begin(dict(self._given, rank=group[0], world=group[1], batch=self.batch if size is None else size * group[1]))
        self._rest, (self._next_epoch, self._wanted, self._resumed) = place, kept
        self._choose_form()
        if self._own and self._makers:
            self._makers.pool.stop()
            self._own.run_as(self._given)
        self._see_shares()

    def _fixed(self) -> NoReturn:
        raise AttributeError("a loader keeps the data, batch size, order and tail that it was made with: make another one, or set_epoch()")

    @property
    def _shuffled(self) -> bool:
        return self._order is not None or self._cfg.order != _ORDERS["sequential"]

    @property
    def dataset(self) -> _Dataset:
        return _Dataset(self)

    @dataset.setter
    def dataset(self, value: Any) -> None:
        self._fixed()

    @property
    def sampler(self) -> _Sampler:
        self._settle()
        return self._sampler()

    @sampler.setter
    def sampler(self, value: Any) -> None:
        self._fixed()

    def _sampler(self) -> _Sampler:
        kind = _DistributedSampler if self._world > 1 else _Sampler if self._shuffled else _SequentialSampler
        return kind(self)

    @property
    def batch_sampler(self) -> _BatchSampler:
        self._settle()
        return _BatchSampler(self)

    @batch_sampler.setter
    def batch_sampler(self, value: Any) -> None:
        self._fixed()

    @property
    def batch_size(self) -> int:
        """Of this rank, as far as it goes."""
        self._settle()
        return -(-self.batch // self._world)

    @batch_size.setter
    def batch_size(self, value: Any) -> None:
        self._fixed()

    @property
    def drop_last(self) -> bool:
        return bool(self._given["tail"] == "drop")

    @drop_last.setter
    def drop_last(self, value: Any) -> None:
        self._fixed()

    def __len__(self) -> int:
        self._settle()
        return self._steps

    def __getitem__(self, at: Any) -> NoReturn:
        """A loader is no data set: Trainer(train_dataset=loader), DataLoader(loader)."""
        raise TypeError("a loader stands where a data set is expected: " + _WHOLE)

    def state_dict(self) -> Dict[str, Any]:
        self._settle()
        return super().state_dict()

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        self._settle()
        super().load_state_dict(state)

    @property
    def _own_data(self) -> Any:
        """The caller's object; None: the data are files."""
        path = self._torch_given["path"]
        return callers(path.data) if isinstance(path, Live) else None if isinstance(path, (str, bytes, os.PathLike)) else path

    @property
    def shape(self) -> Tuple[int, ...]:
        """(height, width, channels) of every picture; () where Python makes them."""
        return () if self._own else super().shape

    def _pass_of(self, epoch: int, step: int, before: int) -> Pass:
        return MadePass(self, epoch, step, before) if self._own else super()._pass_of(epoch, step, before)

    def _deliver_made(self, made: Any) -> Any:
        """A batch that Python made."""
        if self._keys is None or isinstance(made, Mapping):
            return made
        if isinstance(made, tuple) and (len(made) == 2 or len(made) == 3 and isinstance(made[2], dict)):
            return dict(made[2] if len(made) == 3 else {}, **dict(zip(self._keys, made)))
        raise ArgumentError("keys=%r: names of images and target, and a batch is %s%s: let samples be dicts" % (
            self._keys, type(made).__name__, " of %d" % len(made) if isinstance(made, (tuple, list)) else ""))

    def close(self) -> None:
        if self._makers:
            self._makers.pool.close()
        if self._own and self._makers:
            self._own.close()
        gpu = getattr(self, "_gpu", None)  # without, it did not come to be
        if gpu:
            gpu.close()
        super().close()

    if TYPE_CHECKING:
        def __iter__(self) -> Iterator[Item]: ...

    def _deliver(self, batch: Batch) -> Any:
        if self._raw:
            return batch
        images, target = self._tensors(batch)
        if self._keys is None and not self._field_shapes:
            return images, target
        fields = {name: self._field(a) for name, a in batch.fields.items() if name != TARGET or not self._target_field}
        if self._target_field:
            self._see_targets(batch)
            target = target if self._gpu else self._field(batch.fields[TARGET])
        fields.update((name + ".length", self._field(a)) for name, a in batch.lengths.items() if name != TARGET or not self._target_field)
        if self._keys is None and not fields:
            return images, target
        if self._keys is None:
            return images, target, fields
        return dict(fields, **{self._keys[0]: images, self._keys[1]: target})

    def _field(self, array: Any) -> Any:
        """Batches finished for a GPU are in memory of the loader's run. Texts are lists."""
        if isinstance(array, list):
            return array
        return _apart(array) if not self._gpu else _tensor(array, COPY) if CPYTHON else torch.from_dlpack(array).clone()

    def _see_targets(self, batch: Batch) -> None:
        """Of a field: a number or an array of each sample."""
        lengths = batch.lengths.get(TARGET)
        if lengths is not None and batch.count:
            widths = torch.from_dlpack(lengths)
            self._target_length = getattr(self, "_target_length", int(widths[0]))
            if not bool((widths == self._target_length).all()):
                raise ArgumentError("targets of %d and of other lengths: with augment= all have the same; give samples as dicts, with the target as "
                                    "a field (fields=), or leave out augment=" % self._target_length)

    # Tensors of host memory that somebody keeps are never overwritten: the memory of a batch is used again when nobody has it.

    def _tensors(self, batch: Batch) -> Tuple[Any, Any]:
        if self._gpu:
            return self._gpu.deliver(batch, batch.fields[TARGET] if self._target_field else None)
        if self._in_pairs:
            pixels, targets = _l.quick.mrp_export_pair(batch._lease.address, self._finish.address)
            return _from_capsule(pixels), _from_capsule(targets)
        pixels, targets = batch.images, batch.targets
        last = PLANES if self._format == "channels_last" else 0
        if targets is not None:
            return None if pixels is None else _tensor(pixels, last), _apart(targets)
        return None if pixels is None else _tensor(pixels, PLANES), self._target(batch)

    def _target(self, batch: Batch) -> Any:
        if not self._soft and CPYTHON:
            return _from_capsule(batch._label_capsule(self._ignore))
        if not self._soft:
            labels = _tensor(batch.labels).to(torch.int64)
            return labels if batch.counted == batch.count else labels.masked_fill_(labels < 0, self._ignore)
        soft = torch.empty((batch.count, self._soft), dtype=torch.float32)
        batch._soft_targets(self._soft, soft.data_ptr())
        return soft

    def __reduce__(self) -> Any:
        from ._loader import _again
        from ._operations import see_sendable
        see_sendable(self._given)
        return _again, (type(self), self._again_given)


_NAMES = settings_of(_Loader) + settings_of(Loader)  # what __init__ has words for

__all__ = ["Loader", "as_lists"]
