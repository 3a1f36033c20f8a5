"""Orders of one's own: what sampler= says."""
from __future__ import annotations

import array
import ctypes as C
import os
import zlib
from collections.abc import Mapping
from typing import Any, Callable, Dict, Optional, Union

from . import _library as _l
from ._errors import ArgumentError

_HINT = ("expected a sequence of sample numbers (a list, a NumPy array, a range), or a function of the epoch that gives one; of a sampler "
         "of PyTorch: lambda epoch: (s.set_epoch(epoch), list(s))[1]")
_ASK = C.cast(_l.native.mrp_orders_ask, C.c_void_p).value


def _numbers(order: Any, count: int, where: str) -> Any:
    """A sequence as uint64 in memory, each number below count: an array.array or a NumPy array."""
    if isinstance(order, (str, bytes, Mapping)) or not hasattr(order, "__len__") or not hasattr(order, "__getitem__"):
        raise ArgumentError("%s: found %s: %s" % (where, type(order).__name__, _HINT))
    if hasattr(order, "__array_interface__") or hasattr(order, "__array__"):
        import numpy
        a = numpy.asarray(order)
        if a.ndim != 1 or a.dtype.kind not in "iu":
            raise ArgumentError("%s: found an array of %s, shape %s: expected whole numbers in one dimension" % (where, a.dtype, a.shape))
        if not len(a):
            raise ArgumentError("%s: no samples" % where)
        wrong: Any = numpy.flatnonzero((a < 0) | (a >= count)) if int(a.min()) < 0 or int(a.max()) >= count else ()
        if len(wrong):
            _refuse(where, int(wrong[0]), int(a[wrong[0]]), count)
        return a.astype(numpy.uint64, order="C")  # a copy, whatever becomes of the caller's
    try:
        out = array.array("Q", order)
    except (TypeError, OverflowError):
        out = None
    if out is None or (len(out) and max(out) >= count):
        for k, n in enumerate(order):
            if not hasattr(n, "__index__"):
                raise ArgumentError("%s: found %r at position %d: expected a whole number" % (where, n, k))
            if not 0 <= n.__index__() < count:
                _refuse(where, k, n, count)
    if out is None:  # its numbers are whole, and none of Python's own
        out = array.array("Q", [n.__index__() for n in order])
    if not len(out):
        raise ArgumentError("%s: no samples" % where)
    return out


def _refuse(where: str, position: int, number: Any, count: int) -> None:
    raise ArgumentError("%s: sample %d at position %d: the data have %d, numbered from 0" % (where, number, position, count))


def _address(numbers: Any) -> int:
    if isinstance(numbers, array.array):
        return numbers.buffer_info()[0]
    return numbers.__array_interface__["data"][0]


def _mark(numbers: Any) -> int:
    return zlib.crc32(memoryview(numbers).cast("B"))


class Order:
    """The order that sampler= gives for data of `count` samples.

    count  samples in an epoch, the same in all
    mark   of the first epoch's numbers: two orders of another mark are not the same"""

    def __init__(self, sampler: Union[Callable[[int], Any], Any], in_set: int) -> None:
        self._of = sampler if callable(sampler) else None
        self._in_set = in_set
        self.count = 0
        self._given: Dict[int, int] = {}  # marks of epochs that runs of the loader have
        numbers = self._ask(0) if self._of else _numbers(sampler, in_set, "sampler=")
        self.count, self.mark = len(numbers), _mark(numbers)
        self.fixed = None if self._of else numbers

    def _ask(self, epoch: int) -> Any:
        assert self._of is not None
        numbers = _numbers(self._of(epoch), self._in_set, "sampler=, epoch %d" % epoch)
        if self.count and len(numbers) != self.count:
            raise ArgumentError("sampler=, epoch %d: %d samples, and epoch 0 had %d: all epochs have as many" % (epoch, len(numbers),
                                                                                                                self.count))
        return numbers

    def give(self, epoch: int) -> Any:
        """The numbers of an epoch, for a run of the loader."""
        numbers = self._ask(epoch)
        if getattr(self._of, "may_change", False):
            self._given[epoch] = _mark(numbers)
        return numbers

    def changed(self, epoch: int) -> bool:
        """An epoch begins. Was its order given ahead, and does the sampler give another one now?"""
        given = self._given.get(epoch)
        self._given = {e: mark for e, mark in self._given.items() if e >= epoch}
        return given is not None and given != _mark(self._ask(epoch))

    def mark_now(self) -> int:
        """The mark of the sampler's present output."""
        return _mark(self._ask(0)) if getattr(self._of, "may_change", False) else self.mark

    def settle(self, cfg: Any, fed: Optional["Fed"] = None) -> None:
        """Into a loader's settings."""
        cfg.sampler_count = self.count
        if self.fixed is not None:
            cfg.sampler_samples = _address(self.fixed)  # lent, as long as the loader has its Order
        else:
            cfg.sampler, cfg.sampler_context = _ASK, fed.pointer if fed else None


class _Memory:
    """The library's memory for orders."""

    def __init__(self, count: int) -> None:
        self._pid = os.getpid()
        self.pointer = _l.quick.mrp_orders_create(count)
        if not self.pointer:
            raise MemoryError("no memory for the order of an epoch")

    def __del__(self, destroy: Any = _l.quick.mrp_orders_destroy, pid: Any = os.getpid) -> None:
        if getattr(self, "pointer", None) and self._pid == pid():
            destroy(self.pointer)


class Fed:
    """Orders of epochs for one run of a loader, given ahead of what its threads ask for, in the thread that takes batches: Python
    is never called from theirs.

    first   epoch that comes first
    end     epochs there are
    ahead   epochs beyond the current one that may be under way"""

    def __init__(self, order: Order, first: int, end: int, ahead: int) -> None:
        self._order, self._next, self._end, self._ahead, self._pid = order, first, end, ahead, os.getpid()
        self.oldest = first  # of the epochs that were given and not dropped
        self.memory = _Memory(order.count)
        self.pointer = self.memory.pointer
        self.feed(first)

    def feed(self, epoch: int) -> None:
        """The next batch is of this epoch: no earlier one is requested again. An epoch that a thread waits for comes now, too,
        if it is later than the epoch that was thought to be under way."""
        self._next = max(self._next, epoch)  # epochs that were skipped are not requested
        wanted = _l.quick.mrp_orders_wanted(self.pointer)
        last = min(max(epoch + self._ahead, 0 if wanted == _l.NOWHERE else wanted), self._end - 1)
        if self._next > last:
            return
        _l.quick.mrp_orders_drop(self.pointer, epoch)
        self.oldest = epoch
        while self._next <= last:
            numbers = self._order.give(self._next)
            if _l.native.mrp_orders_put(self.pointer, self._next, _address(numbers)) != _l.OK:
                raise MemoryError("no memory for the order of an epoch")
            self._next += 1

    def close(self) -> None:
        """Whoever waits comes back; from any thread. The memory stays as long as this, or whoever else has it."""
        if self._pid == os.getpid():
            _l.quick.mrp_orders_close(self.pointer)
