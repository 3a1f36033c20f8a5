"""A data set whose batches Python makes: the library says which samples come when, to which rank."""
from __future__ import annotations

import ctypes as C
import sys
import zlib
from collections import deque
from typing import Any, Callable, Deque, List, Optional, Tuple

from . import _library as _l
from ._arguments import tell_needless, tell_once
from ._errors import ArgumentError
from ._live import Live, callers
from ._making import Job, Task, generator_in
from ._marks import mark_of
from ._orders import Order
from ._passes import Pass
from ._structs import mr_field, mr_own_config
from ._workers import Here, Lost, Processes, Threads

_PIXELS = 3
_AT_ONCE = 8  # orders of batches: after a pause the first costs 20 times as much as each of the others
_FIRST, _FIRST_SAMPLES = 1 << 10, 1 << 16  # batches, and their samples, whose order is taken at the beginning, at most


class Made(Live):
    """Samples of a Python object by their numbers only: the library makes the order, and nothing of the samples themselves."""

    def __init__(self, live: Live) -> None:
        self.data, self.schema, self.key, self.sample_bytes = live.data, live.schema, live.key, live.sample_bytes
        self.classes = live.classes

    def maker(self) -> Any:
        return Numbers(self)

    def __repr__(self) -> str:
        shown = getattr(self.data, "shown", None) if type(self.data).__name__ == "Decoded" else None
        return shown or "Live(%s)" % type(callers(self.data)).__name__


class Numbers:
    """A source of the library with a number of samples that have no content."""

    def __init__(self, made: Made) -> None:
        self._made, self._count = made, len(made.data)
        if not self._count:
            raise ArgumentError("%r has no samples" % made)

    def open(self, pointer: C.c_void_p) -> None:
        cfg, what = _l.fill(_l.lib.mr_own_defaults_sized, mr_own_config()), _l.new_error()
        fields = (mr_field * 1)()
        fields[0].name, fields[0].type, fields[0].ndim = b"image", _PIXELS, 3  # a loader needs one
        fields[0].dim[:3] = (1, 1, 1)
        cfg.name, cfg.count, cfg.field_count, cfg.fields = repr(self._made).encode(), self._count, 1, fields
        key = (self._made.key or "").encode("utf-8", "surrogateescape")
        cfg.fingerprint = zlib.crc32(key) << 32 | zlib.crc32(key, 2)
        cfg.sample_bytes_most, cfg.fetch = 4096, _l.MAKE_NOTHING
        rc = _l.lib.mr_source_create(C.byref(pointer), C.byref(cfg), C.byref(what))
        if rc != _l.OK:
            raise _l.failed(rc, what)

    def close(self) -> None:
        """It has no thread."""

    def raise_failure(self) -> None:
        """It calls no code of the caller's."""


def without_gil() -> bool:
    """Do threads of this Python run in parallel?"""
    return not getattr(sys, "_is_gil_enabled", lambda: True)()


def see_generators(job: Job, count: int) -> None:
    """Each worker process has a copy of a generator that is an attribute, and all of them draw the same numbers."""
    owners = (("data", callers(job.data)), ("transform", job.transform), ("target_transform", job.target_transform))
    for name, owner in owners if count > 1 else ():
        found = generator_in(owner, name)
        if found:
            tell_once(found, "%s: every worker process has a copy of this generator of random numbers, and all copies draw the same numbers. Draw from "
                             "the global generators of Python, NumPy or PyTorch, or seed it for each sample from millrace.sample_seed()" % found)


class Makers:
    """The makers of the batches of one loader, and their facts.

    ahead       batches that are under way, at most
    persistent  worker processes go on with the copies of data and functions that they began with"""

    def __init__(self, job: Job, count: int, context: Any, timeout: float, prefetch: int, persistent: bool, note: Callable[[str], None]) -> None:
        if count and (context == "threads" or context is None and without_gil()):
            job.global_seeds = False
            if job.worker_init is not None:
                tell_needless("worker_init_fn", "worker threads share this process, and it is not called in them")
            self.pool: Any = Threads(job, count)
        elif count:
            see_generators(job, count)
            self.pool = Processes(job, count, context, timeout, note)
        else:
            self.pool = Here(job)
        self._copied = isinstance(self.pool, Processes)  # do workers have copies of the data?
        self.job, self.ahead, self.bad_count = job, max(prefetch, 2 * count) if count and prefetch else 1, 0
        self._note, self._order_mark, self._persistent = note, 0, persistent
        self._mark = self._mark_now()

    def _mark_now(self) -> Any:
        job = self.job
        return mark_of([callers(job.data), job.transform, job.target_transform, job.collate]) if self._copied and not self._persistent else None

    def renew(self, order: Optional[Order]) -> None:
        """An epoch begins: workers get the program's changes of its data, and about its sampler if they have a copy."""
        if not self._copied:
            return
        mark = self._mark_now()
        order_mark = order.mark_now() if order and self.job.has_order else 0
        if mark != self._mark or self._order_mark not in (0, order_mark):
            self._note("the data, the functions or the sampler hold something else than before: worker processes begin anew with them")
            self.pool.stop()
        self._mark, self._order_mark = mark, order_mark


class MadePass(Pass):
    """An iteration whose batches Python makes: some of them ahead of the loop."""

    def __init__(self, loader: Any, epoch: int, step: int, before: int) -> None:
        super().__init__(loader, epoch, step, before)
        self._ahead: Deque[Tuple[int, int, bool]] = deque()     # number of the task, step, is it the last one?
        self._orders: Deque[Tuple[int, int, bytes]] = deque()   # of Stream.numbers(), not yet submitted
        self._ordered = step  # the first step whose order is not there
        if all(not p._ahead for p in loader._under_way() if p is not self):
            loader._makers.renew(loader._order)

    def _take_orders(self, most: int) -> None:
        if self._ordered < self._loader._steps:
            self._orders.extend(self._stream.numbers(most))
            self._ordered = self._orders[-1][0] + 1

    def _fill(self) -> None:
        makers, loader = self._loader._makers, self._loader
        while len(self._ahead) < makers.ahead:
            if not self._orders:
                self._take_orders(_AT_ONCE)
            if not self._orders:
                return
            step, first, numbers = self._orders.popleft()
            number = makers.pool.submit(Task(self.epoch, step * loader.batch + first, numbers))
            self._ahead.append((number, step, step + 1 == loader._steps))

    def __next__(self) -> Any:
        loader = self._loader
        with self._stream.lock:
            if self.over:
                self._leave()
                raise StopIteration
            try:
                while True:
                    self._fill()
                    if not self.taken and loader._makers.ahead > 1:  # while the first batch is made
                        self._take_orders(max(_AT_ONCE, min(_FIRST, _FIRST_SAMPLES // loader.batch)))
                    number, step, last = self._ahead[0]
                    try:
                        made, bad = loader._makers.pool.take(number, loader._check)
                        break
                    except Lost:
                        self._forget()
                self._ahead.popleft()
                self._fill()
                loader._makers.pool.begin()
            except BaseException:
                self._forget()
                raise
            self.taken, self.step = True, step + 1
            if last:
                self.close(True)
            self._enter(last)
        loader._report(bad)
        return loader._deliver_made(made)

    def _forget(self) -> None:
        """Batches under way are dropped; the position is after the last delivered batch."""
        ahead, self._ahead, self._ordered = self._ahead, deque(), self.step
        self._orders.clear()
        if ahead:
            self._loader._makers.pool.drop([number for number, _, _ in ahead])
        if not self._loader._closed:
            self._stream.seek(self.epoch, self.step)

    def skip_to(self, step: int) -> None:
        if step != self.step:
            self.step = step
            self._forget()

    def close(self, whole: bool = False) -> None:
        if not self.over and self._ahead:
            ahead, self._ahead = self._ahead, deque()
            self._loader._makers.pool.drop([number for number, _, _ in ahead])
        super().close(whole)


