"""Pictures that the library augments, for functions of Python's own: each worker takes whole batches from a loader of its own.

    the parent's order: (epoch, step) -> worker: its loader decodes, augments and finishes this batch, on the thread that asks
                                         -> transform= of each finished picture -> collate_fn= -> the parent

Order and draws follow from seed, epoch and step, so a picture has the same numbers as without functions, whichever worker makes it."""
from __future__ import annotations

import os
import threading
from typing import Any, Dict, List, Optional, Tuple

import torch

from ._arrays import PLANES
from ._errors import NOWHERE, ArgumentError, Error
from ._finish import Finish
from ._live import Live
from ._loader import Loader
from ._making import MISSING, Bad, Dropped, Failure, Job, Task, seed_all, seed_of, seed_of_sample

_ALL = 2**64 - 1
# Settings of the parent that decide order and content of the batches.
_OF_THE_RUN = ("batch", "rank", "world", "seed", "order", "tail", "sampler", "repeats", "block", "training", "bad", "channels", "memory")
# Settings that change a picture; the parent's order does not depend on them.
OF_THE_PICTURE = ("augment", "normalise", "operations", "fields", "pixels", "pictures", "width_multiple", "io", "direct", "readers", "depth")


class Seeded:
    """Samples of a Python object, each with the global generators seeded by the loader's seed, the epoch and its number."""

    def __init__(self, data: Any, global_seeds: bool) -> None:
        self.data, self.seed, self.epoch, self._global_seeds = data, 0, 0, global_seeds

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, k: int) -> Any:
        seed = seed_of(self.seed, self.epoch, k, k)
        seed_of_sample(seed)
        if self._global_seeds:
            seed_all(seed)
        return self.data[k]


class Source(Loader):
    """The loader of one process. Batches are finished when they are asked for.

    kind  of Finish: U8, F16, ..."""

    def __init__(self, path: Any, arguments: Dict[str, Any]) -> None:
        self.bad: List[Bad] = []
        self._seeded: Optional[Seeded] = None
        if isinstance(path, Live):
            self._seeded = Seeded(path.data, arguments.get("global_seeds", True))
            self._seeded.seed = arguments["seed"]
            path = Live(self._seeded, path.schema, path.classes, path.key, path.sample_bytes)
        arguments = {n: v for n, v in arguments.items() if n != "global_seeds"}
        super().__init__(path, **dict(arguments, epochs=None, prefetch=0, workers=1, hold=8, entry_bytes=0, max_bad=_ALL,
                                      on_bad=self._note_bad))

    def _note_bad(self, error: Error, substitute: Optional[int]) -> None:
        self.bad.append(Bad(error.sample if error.sample is not None else NOWHERE, str(error), substitute))

    def form(self, kind: int, planar: bool, ignore: int, num_classes: Optional[int]) -> None:
        means, stds = self._numbers()
        self.planar = planar
        self._finish = Finish(self, kind, planar, means, stds, ignore, self._soft_classes(num_classes))

    def take(self, epoch: int, step: int) -> Tuple[List[int], List[Any]]:
        """(numbers, samples) of this batch: (picture, target), or (picture, target, {name: value})."""
        self.bad = []
        if self._seeded:
            self._seeded.epoch = epoch
        self.seek(epoch, step)
        batch = next(iter(self))
        images = torch.utils.dlpack.from_dlpack(batch.images._capsule(0 if self.planar else PLANES))
        targets = torch.utils.dlpack.from_dlpack(batch.targets._capsule(0))
        rows = {name: (a if isinstance(a, list) else a.numpy(), batch.lengths[name].tolist() if name in batch.lengths else None)
                for name, a in batch.fields.items()}
        ids: List[int] = batch.ids.tolist()
        samples: List[Any] = []
        for k in range(batch.count):
            target = targets[k] if targets.dim() > 1 else int(targets[k])
            fields = {name: a[k] if isinstance(a, list) else a[k].copy() if lengths is None else a[k, :lengths[k]].copy()
                      for name, (a, lengths) in rows.items()}
            samples.append((images[k], target, fields) if fields else (images[k], target))
        return ids, samples


class AugmentedJob(Job):
    """Batches of Source, sample by sample through the functions.

    path, arguments  of the process's Source, and `given`, the parent's settings
    form             of its form()"""

    has_order = True

    def __init__(self, path: Any, arguments: Dict[str, Any], form: Dict[str, Any], given: Dict[str, Any], data: Any, **job: Any) -> None:
        super().__init__(data, len(data), **job)
        self._path, self._arguments, self._form = path, arguments, form
        self._sources: Dict[Tuple[int, int], Source] = {}  # by process and thread
        self._first: List[Any] = []
        self.run_as(given)

    def __getstate__(self) -> Dict[str, Any]:
        return dict(self.__dict__, _sources={}, _first=[])

    def _opened(self) -> Source:
        here = os.getpid(), threading.get_ident()
        if here not in self._sources:
            source = Source(self._path, dict(self._arguments, global_seeds=self.global_seeds))
            source.form(**self._form)
            self._sources[here] = source
        return self._sources[here]

    def close(self) -> None:
        for (process, _), source in self._sources.items():
            if process == os.getpid():
                source.close()
        self._sources = {}

    def run_as(self, given: Dict[str, Any]) -> None:
        """The parent's settings are these."""
        self._arguments = dict(self._arguments, **{n: given[n] for n in _OF_THE_RUN if n in given})
        self._batch, self._sources, self._first = given["batch"], {}, []

    def _changed(self, epoch: int, position: int, number: int, sample: Any) -> Any:
        self._seed(epoch, position, number)
        picture = sample[0] if self.transform is None else self.transform(sample[0])
        target = sample[1] if self.target_transform is None else self.target_transform(sample[1])
        return (picture, target) + sample[2:]

    def sample(self, epoch: int, position: int, number: int) -> Any:
        """One of the first batch: of what kind samples are."""
        if not self._first:
            ids, samples = self._opened().take(0, 0)
            self._first = [self._changed(0, k, n, s) for k, (n, s) in enumerate(zip(ids, samples)) if n != NOWHERE]
        return self._first[number % len(self._first)]

    def make(self, task: Task, look: Any, room: Any = None) -> Tuple[Any, List[Bad]]:
        numbers = task.numbers()
        samples, bad = self._samples(task, numbers, look) if numbers else ([], [])
        look(NOWHERE)
        try:
            self._seed(task.epoch, task.first, NOWHERE)
            if self.collate is not None:
                return self.collate([s for s in samples if s is not MISSING]), bad
            return self.collation.put(self, samples, room), bad
        except Exception as e:
            raise Failure(None, numbers, e) from e

    def _samples(self, task: Task, numbers: List[int], look: Any) -> Tuple[List[Any], List[Bad]]:
        look(numbers[0])
        source = self._opened()
        try:
            ids, given = source.take(task.epoch, task.first // self._batch)
        except Dropped:
            raise
        except Exception as e:
            raise Failure(getattr(e, "sample", None), numbers, e) from e
        damaged = {b.sample for b in source.bad}
        if any(i != n for i, n in zip(ids, numbers) if n not in damaged) or len(ids) != len(numbers):
            raise Failure(None, numbers, RuntimeError("a worker's loader has other samples at epoch %d, step %d: the data changed while they are "
                                                      "in use" % (task.epoch, task.first // self._batch)))
        skipped = {b.sample for b in source.bad if b.substitute is None}
        samples: List[Any] = []
        for k, (number, sample) in enumerate(zip(numbers, given)):
            if number == NOWHERE or number in skipped:
                samples.append(MISSING)
                continue
            look(number)
            try:
                samples.append(self._changed(task.epoch, task.first + k, number, sample))
            except Exception as e:
                if self.bad != "skip":
                    raise Failure(number, numbers, e) from e
                source.bad.append(Bad(number, "%s: %s" % (type(e).__name__, e), None))
                samples.append(MISSING)
        return samples, source.bad


def see_usable(settings: Dict[str, Any], asked: str) -> None:
    """What needs all samples of a batch in one place, or the whole run in one loader."""
    for name, usual, why in (("length_window", 0, "batches of like length are made by one loader"),
                             ("cache", "off", "each worker has a loader of its own, and a cache would be there in all of them"),
                             ("tune", False, "workers have one thread each")):
        if settings.get(name, usual) not in (usual, None):
            raise ArgumentError("%s= and %s=: %s; leave out %s=" % (asked, name, why, name))


__all__ = ["OF_THE_PICTURE", "AugmentedJob", "Source", "see_usable"]
