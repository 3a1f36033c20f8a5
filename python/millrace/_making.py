"""Batches that code of Python's own makes, sample by sample: the same ones in whichever process or thread.

    Task   which samples: (epoch, position of the first one in it, their numbers)
    Job    data, transform and collation; make() gives a batch. It is sent to worker processes as it is"""
from __future__ import annotations

import array
import importlib
import random
import sys
import threading
import traceback
from collections.abc import Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Callable, Iterator, List, NamedTuple, Optional, Tuple

from . import _library as _l
from ._errors import NOWHERE, BadSampleError
from ._serving import text_of

_MASK = 2**64 - 1
_TRIES = 16  # other samples that may take a damaged one's place
_TRACE_MOST = 8000  # characters
MISSING = object()  # stands where a batch has no sample
_here = threading.local()


class Task(NamedTuple):
    epoch: int
    first: int
    samples: bytes  # uint64

    def numbers(self) -> List[int]:
        return array.array("Q", self.samples).tolist()


class Bad(NamedTuple):
    """A sample that could not be made, and the one taken in its place."""
    sample: int
    text: str
    substitute: Optional[int]


class Dropped(Exception):
    """Nobody waits for the batch any more."""


class Failure(Exception):
    """What code of the caller's raised. sample: the one at hand; None: the batch's samples were put together."""

    def __init__(self, sample: Optional[int], numbers: List[int], error: BaseException) -> None:
        super().__init__(sample, numbers, error)
        self.sample, self.numbers, self.error = sample, numbers, error

    def where(self) -> str:
        if self.sample is not None:
            return "sample %d" % self.sample
        shown = ", ".join(map(str, self.numbers[:8]))
        return "the batch of samples %s%s" % (shown, ", ..." if len(self.numbers) > 8 else "")

    def trace(self) -> str:
        text = "".join(traceback.format_exception(type(self.error), self.error, self.error.__traceback__))
        return text if len(text) <= _TRACE_MOST else text[:_TRACE_MOST // 2] + "\n...\n" + text[-(_TRACE_MOST // 2):]


def seed_of(seed: int, epoch: int, position: int, sample: int) -> int:
    """64 bits that follow from these and from nothing else (SplitMix64)."""
    x = seed & _MASK
    for part in (epoch, position, sample):
        x = (x ^ (part & _MASK)) + 0x9E3779B97F4A7C15 & _MASK
        x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & _MASK
        x = (x ^ x >> 27) * 0x94D049BB133111EB & _MASK
        x ^= x >> 31
    return x


def _numpy_random() -> Any:
    """NumPy's generators, where NumPy is loaded: it loads them when they are first used, which must not be after seeding."""
    if "numpy" not in sys.modules:
        return None
    module = sys.modules.get("numpy.random")
    return module if module is not None else importlib.import_module("numpy.random")


def seed_all(seed: int) -> None:
    """The global generators of Python, NumPy and PyTorch, if the module is loaded."""
    random.seed(seed)
    numpy = _numpy_random()
    if numpy is not None:
        numpy.seed(seed & 0xFFFFFFFF)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.default_generator.manual_seed(seed >> 1)


def generator_in(owner: Any, name: str, depth: int = 3) -> Optional[str]:
    """The name of a random generator among an object's attributes, such as "data.transform.rng"; None: none was found near."""
    kinds: Tuple[Any, ...] = (random.Random,)
    numpy, torch = sys.modules.get("numpy.random"), sys.modules.get("torch")
    if numpy is not None:
        kinds += (numpy.Generator, numpy.RandomState)
    if torch is not None:
        kinds += (torch.Generator,)
    if isinstance(owner, kinds):
        return name
    members = getattr(owner, "__dict__", None)
    if depth and isinstance(members, dict) and not isinstance(owner, (type, ModuleType)):
        for member, value in members.items():
            found = generator_in(value, "%s.%s" % (name, member), depth - 1)
            if found:
                return found
    return None


@contextmanager
def generators_kept() -> Iterator[None]:
    """Restores the caller's global generators at the end. In between sample_seed() may be called."""
    numpy, torch = _numpy_random(), sys.modules.get("torch")
    seed, _here.seed = getattr(_here, "seed", None), 0
    own = random.getstate()
    of_numpy = numpy.get_state() if numpy is not None else None
    of_torch = torch.default_generator.get_state() if torch is not None else None
    try:
        yield
    finally:
        _here.seed = seed
        random.setstate(own)
        if of_numpy is not None:
            numpy.set_state(of_numpy)  # type: ignore[union-attr]
        if of_torch is not None:
            torch.default_generator.set_state(of_torch)  # type: ignore[union-attr]


def seed_of_sample(seed: int) -> None:
    """What sample_seed() gives in this thread."""
    _here.seed = seed


def sample_seed() -> int:
    """64 bits for the sample that is being made: call it in __getitem__, or in a transform, to seed a generator of your own. They follow
    from the loader's seed, the epoch, the position in it and the sample. The global generators of Python, NumPy and PyTorch are seeded
    with them already, but in worker threads, which share these."""
    seed = getattr(_here, "seed", None)
    if seed is None:
        raise RuntimeError("sample_seed(): no sample is being made in this thread")
    return seed


class Job:
    """What makes batches.

    data        has __getitem__
    collate     of the list of samples, where the caller gave one, else
    collation   object with put(samples with MISSING ones, room for large tensors)
    bad         "stop", "replace", "skip" """

    has_order = False  # does a copy of it have the loader's sampler?

    def __init__(self, data: Any, count: int, *, seed: int, transform: Optional[Callable[[Any], Any]] = None,
                 target_transform: Optional[Callable[[Any], Any]] = None, collate: Optional[Callable[[List[Any]], Any]] = None,
                 collation: Any = None, bad: str = "stop", worker_init: Optional[Callable[[int], Any]] = None,
                 global_seeds: bool = True) -> None:
        self.data, self.count, self.seed, self.bad = data, count, seed, bad
        self.transform, self.target_transform, self.collate, self.collation = transform, target_transform, collate, collation
        self.worker_init, self.global_seeds = worker_init, global_seeds

    def _seed(self, epoch: int, position: int, sample: int) -> None:
        _here.seed = seed_of(self.seed, epoch, position, sample)
        if self.global_seeds:
            seed_all(_here.seed)

    def sample(self, epoch: int, position: int, number: int) -> Any:
        self._seed(epoch, position, number)
        given = self.data[number]
        if self.transform is None and self.target_transform is None:
            return given
        if isinstance(given, tuple) and given:
            first = given[0] if self.transform is None else self.transform(_picture(given[0]))
            rest = given[1:]
            if self.target_transform is not None and rest:
                rest = (self.target_transform(rest[0]),) + rest[1:]
            return (first,) + rest
        if isinstance(given, Mapping):
            return self._named(dict(given))
        return given if self.transform is None else self.transform(_picture(given))

    def _named(self, given: Any) -> Any:
        for names, change in ((("image", "img", "pixel_values"), self.transform), (("label", "target", "labels"), self.target_transform)):
            if change is None:
                continue
            name = next((n for n in names if n in given), None)
            if name is None:
                raise KeyError("a sample without %s, which %s is for; it has %s" % (
                    " or ".join(map(repr, names)), "transform=" if change is self.transform else "target_transform=",
                    ", ".join(map(repr, given))))
            given[name] = change(_picture(given[name]) if change is self.transform else given[name])
        return given

    def make(self, task: Task, look: Callable[[int], None], room: Any = None) -> Tuple[Any, List[Bad]]:
        """(batch, damaged ones). look(sample) is called before each sample, and may raise Dropped. What code of the caller's raises is a
        Failure."""
        numbers = task.numbers()
        samples: List[Any] = []
        bad: List[Bad] = []
        for k, number in enumerate(numbers):
            if number == NOWHERE:
                samples.append(MISSING)
                continue
            look(number)
            try:
                samples.append(self.sample(task.epoch, task.first + k, number))
            except Dropped:
                raise
            except Exception as e:
                if self.bad == "stop":
                    raise Failure(number, numbers, e) from e
                samples.append(self._instead(task.epoch, task.first + k, number, e, bad))
        look(NOWHERE)
        try:
            self._seed(task.epoch, task.first, NOWHERE)
            if self.collate is not None:
                return self.collate([s for s in samples if s is not MISSING]), bad
            return self.collation.put(self, samples, room), bad
        except Exception as e:
            raise Failure(None, numbers, e) from e

    def _instead(self, epoch: int, position: int, number: int, error: Exception, bad: List[Bad]) -> Any:
        """What stands for a damaged sample."""
        text = "%s: %s" % (type(error).__name__, text_of(error))
        if self.bad == "skip":
            bad.append(Bad(number, text, None))
            return MISSING
        for k in range(1, _TRIES + 1):
            other = (number + k) % self.count
            try:
                sample = self.sample(epoch, position, other)
            except Exception:
                continue
            bad.append(Bad(number, text, other))
            return sample
        raise Failure(number, [number], BadSampleError("%s; none of the %d samples that follow can be made, either" % (text, _TRIES)))

    def probe(self) -> str:
        """What samples are: "pictures" of PIL or of bytes, "arrays", which may be pictures, or "finished". Asked of the first one."""
        sample = self.sample(0, 0, 0)
        kind = kind_of(sample)
        image = sample["image"] if isinstance(sample, Mapping) and kind == "pictures" else sample[0] if isinstance(sample, tuple) and sample else sample
        return "arrays" if kind == "pictures" and hasattr(image, "dtype") else kind


def _picture(value: Any) -> Any:
    """The argument of a transform: the bytes of a picture file are decoded."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        data = bytes(value)
        if _l.quick_lib.mr_image_sniff(data, len(data)):
            return decoded(data)
    return value


def decoded(data: bytes) -> Any:
    """A picture of PIL, where that is installed, else an array."""
    from ._jobs import decode
    pixels = decode(data).numpy()
    try:
        from PIL import Image
    except ImportError:
        return pixels
    return Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)


def is_picture(value: Any) -> bool:
    """Bytes of a file, of PIL, or an array of uint8."""
    if isinstance(value, (bytes, bytearray, memoryview)) or hasattr(value, "getbands"):
        return True
    kind = str(getattr(value, "dtype", ""))
    return kind in ("uint8", "torch.uint8") and 2 <= len(getattr(value, "shape", ())) <= 3


def is_class(value: Any) -> bool:
    value = value.item() if getattr(value, "shape", None) == () and hasattr(value, "item") else value
    return isinstance(value, (str, bool)) or hasattr(value, "__index__") and not hasattr(value, "__len__")


def kind_of(sample: Any) -> str:
    if isinstance(sample, Mapping):
        return "pictures" if "image" in sample and is_picture(sample["image"]) and is_class(sample.get("label", 0)) else "finished"
    if isinstance(sample, tuple):
        good = 1 <= len(sample) <= 2 and is_picture(sample[0]) and all(is_class(v) for v in sample[1:])
        return "pictures" if good else "finished"
    return "pictures" if is_picture(sample) else "finished"
