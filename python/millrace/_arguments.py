"""Arguments of PyTorch's DataLoader, for a loader of ours: what each means here, or what to write in its place."""
from __future__ import annotations

import array
import difflib
import itertools
import logging
import sys
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Set

from ._errors import ArgumentError
from ._making import generators_kept

log = logging.getLogger("millrace")

# Names that change nothing here, and why. Their usual values are passed over in silence.
_NEEDLESS = {
    "persistent_workers": (False, "threads of the library go on from epoch to epoch"),
    "multiprocessing_context": (None, "there are threads and no worker processes"),
    "worker_init_fn": (None, "no worker process runs Python"),
    "pin_memory_device": ("", "device= says where batches go"),
    "timeout": (0, "a lost file or server is an error by itself"),
    "in_order": (True, "batches always come in order"),
}
# DataLoader's arguments behind shuffle, by their places.
_PLACES = ("sampler", "batch_sampler", "num_workers", "collate_fn", "pin_memory", "drop_last", "timeout", "worker_init_fn", "multiprocessing_context",
           "generator")
_told: Set[str] = set()


def tell_needless(name: str, why: str) -> None:
    tell_once(name, "%s= changes nothing here: %s" % (name, why))


def tell_once(name: str, text: str) -> None:
    """Once in a process."""
    if name not in _told:
        _told.add(name)
        log.warning("%s", text)


def _spoken_for(settings: Dict[str, Any], name: str, other: str) -> None:
    if settings.get(other) is not None:
        raise ArgumentError("%s= and %s= say the same in two ways: give one of them" % (name, other))


def take_data(path: Any, by_place: Sequence[Any], settings: Dict[str, Any]) -> Any:
    """The loader's first argument, which DataLoader calls dataset."""
    named = settings.pop("dataset", None)
    if path is not None and named is not None:
        raise ArgumentError("the first argument and dataset=: both are the data; give one of them")
    path = named if path is None else path
    if path is None:
        raise ArgumentError("no data: give a path, or an object with __len__ and __getitem__, first: Loader(data, batch_size=...)")
    if by_place:
        raise ArgumentError("%d arguments without a name behind the first three (the data, batch_size, shuffle): give them by name: %s%s" % (
            len(by_place), ", ".join("%s=%s" % (n, v if isinstance(v, (bool, int, float, str, type(None))) else "...") for n, v in zip(_PLACES, by_place)),
            "" if len(by_place) <= len(_PLACES) else ", ..."))
    return path


def _shuffle(settings: Dict[str, Any], value: Any) -> None:
    if value is None:
        return
    _spoken_for(settings, "shuffle", "order")
    if settings.get("sampler") is not None:
        if value:
            raise ArgumentError("shuffle=True and sampler=: a sampler says the order; leave out shuffle=")
        return
    settings["order"] = "shuffle" if value else "sequential"


def _num_workers(settings: Dict[str, Any], value: Any) -> None:
    if settings.get("workers"):
        raise ArgumentError("num_workers= and workers= say the same in two ways: give one of them")
    if not hasattr(value, "__index__") or value.__index__() < 0:
        raise ArgumentError("num_workers=%r: expected a number of threads, or 0 for all that fit" % (value,))
    settings["workers"] = value  # 0, none besides the caller there, is here the number that fits the machine


def _prefetch_factor(settings: Dict[str, Any], value: Any) -> None:
    if value is not None:
        _spoken_for(settings, "prefetch_factor", "prefetch")
        settings["prefetch"] = value


def _pin_memory(settings: Dict[str, Any], value: Any) -> None:
    if value and settings.get("device") is None:
        tell_needless("pin_memory", "device=\"cuda\" delivers batches on the GPU, from pinned memory")


def _generator(settings: Dict[str, Any], value: Any) -> None:
    if value is not None:
        _spoken_for(settings, "generator", "seed")
        if not hasattr(value, "initial_seed"):
            raise ArgumentError("generator=: found %s, expected a torch.Generator, whose seed is taken; or give seed=" % type(value).__name__)
        settings["seed"] = value.initial_seed() % 2**64


def _batch_sampler(settings: Dict[str, Any], value: Any) -> None:
    if value is None:
        return
    for name in ("sampler", "batch_size", "drop_last"):
        if settings.get(name):
            raise ArgumentError("batch_sampler= and %s=: a batch sampler says both; give one of them" % name)
    torch = sys.modules.get("torch")
    if torch is not None and getattr(type(value), "__iter__", None) is torch.utils.data.BatchSampler.__iter__:
        settings["sampler"], settings["batch_size"], settings["drop_last"] = value.sampler, value.batch_size, value.drop_last
        return
    joined = Joined(value)
    settings["sampler"], settings["batch_size"] = joined, joined.batch_size


_TAKEN: Dict[str, Callable[[Dict[str, Any], Any], None]] = {
    "batch_sampler": _batch_sampler, "shuffle": _shuffle, "num_workers": _num_workers, "prefetch_factor": _prefetch_factor,
    "pin_memory": _pin_memory, "generator": _generator}
NAMES = frozenset(_TAKEN) | frozenset(_NEEDLESS) | {"dataset"}


def translate(settings: Dict[str, Any], known: List[str]) -> None:
    """DataLoader's names in `settings` become names in `known`, or raise an error with the name to write."""
    for name, (usual, why) in _NEEDLESS.items():
        if name in settings:
            value = settings.pop(name)
            if value is not None and value != usual:
                tell_needless(name, why)
    for name, take in _TAKEN.items():
        if name in settings:
            take(settings, settings.pop(name))
    for name in settings:
        if name not in known:
            near = difflib.get_close_matches(name, known + sorted(_TAKEN), 1)
            raise TypeError("Loader() has no argument %r%s; help(millrace.torch.Loader) lists them" % (
                name, ": did you mean %r?" % near[0] if near else ""))


# ---------------------------------------------------------------------- samplers

_MOST = 1 << 26  # samples of an epoch; a sampler that gives more has no end


def take_sampler(settings: Dict[str, Any]) -> Optional[int]:
    """sampler= as a sampler of PyTorch's is, as the loader needs it: a function of the epoch. Samplers whose order the loader has
    itself become order=; then the number of their samples is returned."""
    sampler = settings.get("sampler")
    if sampler is None or callable(sampler) or hasattr(sampler, "__getitem__"):
        return None  # numbers, or a function of the epoch
    if not hasattr(sampler, "__iter__"):
        raise ArgumentError("sampler=: found %s, expected numbers of samples, a function of the epoch that gives them, or a sampler of "
                            "PyTorch's" % type(sampler).__name__)
    kind = type(sampler).__name__ if type(sampler).__module__.startswith("torch.utils.data") else ""
    order, data = None, None
    if kind == "DistributedSampler":
        _take_share(settings, sampler)
        order, data = "shuffle" if sampler.shuffle else "sequential", sampler.dataset
        if sampler.shuffle and not settings.get("seed"):
            settings["seed"] = sampler.seed
        if sampler.drop_last:
            settings["drop_last"] = True
    elif kind == "SequentialSampler":
        order, data = "sequential", sampler.data_source
    elif kind == "RandomSampler" and not sampler.replacement and sampler.num_samples == len(sampler.data_source):
        order, data = "shuffle", sampler.data_source
    if order is not None:
        settings.pop("sampler")
        if settings.get("order") not in (None, order):
            raise ArgumentError("sampler=%s and order=%r: they are two orders; give one of them" % (kind, settings["order"]))
        settings["order"] = order
        return len(data) if hasattr(data, "__len__") else None
    _see_whole(sampler)
    settings["sampler"] = Asked(sampler, settings.get("seed") or 0)
    return None


def _take_share(settings: Dict[str, Any], sampler: Any) -> None:
    """A DistributedSampler says the rank and the number of ranks, which differ from the group's where several processes train one
    replica."""
    for name, mine in (("rank", sampler.rank), ("world", sampler.num_replicas)):
        if settings.get(name) not in (None, mine):
            raise ArgumentError("%s=%s and sampler=: its DistributedSampler has %s %d; give one of them" % (name, settings[name], name, mine))
        settings[name] = mine


def _see_whole(sampler: Any) -> None:
    """Does it give the order of all samples? Samplers of many projects give one rank's share."""
    for part in (sampler, getattr(sampler, "sampler", None)):
        for name in ("num_replicas", "world_size", "num_shards", "_num_replicas", "_world_size", "_num_shards"):
            ranks = getattr(part, name, None)
            if isinstance(ranks, int) and ranks > 1:
                raise ArgumentError("sampler=: %s gives one rank's share (%s=%d), and the loader divides batches among ranks itself: give the order of "
                                    "all samples, the same on all ranks" % (type(part).__name__, name, ranks))


def see_count(counted: Optional[int], samples: int) -> None:
    """Is a sampler that became order= one of all samples?"""
    if counted is not None and counted != samples:
        raise ArgumentError("sampler=: it is of %d samples, and the data have %d. Make it of as many; some of the data are sampler=range(%d), or in another "
                            "order each epoch torch.utils.data.SubsetRandomSampler(range(%d))" % (counted, samples, counted, counted))


class Joined:
    """A batch sampler of the caller's own, whose batches have one size, as a sampler: its order, cut into that size, gives its batches."""

    def __init__(self, batches: Any) -> None:
        self._batches = batches
        self.sampler = getattr(batches, "sampler", None)
        if not hasattr(batches, "__iter__"):
            raise ArgumentError("batch_sampler=: found %s, expected one of PyTorch's, or lists of sample numbers" % type(batches).__name__)
        with generators_kept():
            first = next(iter(batches), None)
        if first is None or not hasattr(first, "__len__") or not len(first):
            raise ArgumentError("batch_sampler=: found %s, expected lists of sample numbers" % ("no batch" if first is None else repr(first)))
        self.batch_size = len(first)

    def __getattr__(self, name: str) -> Any:
        """num_replicas, generator and set_epoch belong to the batch sampler, else to the sampler in it."""
        if name.startswith("__") or name in ("_batches", "sampler"):
            raise AttributeError(name)
        return getattr(self._batches if hasattr(self._batches, name) else self.sampler, name)

    def __iter__(self) -> Iterator[int]:
        before = self.batch_size
        for k, batch in enumerate(self._batches):
            if before != self.batch_size or len(batch) > self.batch_size:
                raise ArgumentError("batch_sampler=: batch %d of %s has %d samples, and batch 0 has %d: all batches but the last have one size; sampler= "
                                    "and batch_size= say any order" % (k - (before != self.batch_size), type(self._batches).__name__,
                                                                       before if before != self.batch_size else len(batch), self.batch_size))
            before = len(batch)
            yield from batch


class Asked:
    """A sampler of PyTorch's as a function of the epoch: its draws follow from seed, epoch and the settings that the program has made in it."""

    may_change = True  # an epoch's order is compared with the sampler's output when the epoch begins

    def __init__(self, sampler: Any, seed: int) -> None:
        self._sampler, self._seed = sampler, seed
        if self(0) != self(0):
            raise ArgumentError("sampler=: %s gives another order each time it is asked for the same epoch, though PyTorch's generators and "
                                "its set_epoch() said which; give a function of the epoch that draws from a generator seeded by it"
                                % type(sampler).__name__)

    def __call__(self, epoch: int) -> Any:
        import torch
        s = self._sampler
        seed = (self._seed * 1_000_003 + epoch) % 2**63
        if hasattr(s, "set_epoch"):
            s.set_epoch(epoch)
        if isinstance(getattr(s, "generator", None), torch.Generator):
            s.generator.manual_seed(seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            numbers = array.array("q", (int(n) for n in itertools.islice(s, _MOST + 1)))
        if len(numbers) > _MOST:
            raise ArgumentError("sampler=: %s gives more than %d samples, so it seems to have no end: give one that ends with the epoch, such as "
                                "itertools.islice() of it by a function of the epoch" % (type(s).__name__, _MOST))
        return numbers
