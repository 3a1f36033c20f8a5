"""A run of the library's loader from one position on, and the batches that it delivers."""
from __future__ import annotations

import ctypes as C
import gc
import os
import sys
import threading
import weakref
from typing import Any, Dict, List, Optional, Tuple

from . import _library as _l
from ._arrays import Batch, _Lease
from ._errors import ArgumentError, ClosedError, HeldError
from ._finish import Finish, Finisher
from ._operations import Operations
from ._orders import Fed

ending = getattr(sys, "is_finalizing", lambda: False)  # then all is closed, and what modules knew may be gone


# What threads of a run write to, by the run: the collector of cycles may finalise a run's parts before the run, not these.
_in_use: Dict[int, Tuple[Any, ...]] = {}


class Inbox:
    """Reports of the library's threads; it lives as long as one of them may write there."""

    def __init__(self) -> None:
        self.pointer = _l.quick.mrp_inbox_create()
        if not self.pointer:
            raise MemoryError("no memory for a list of reports")
        self.flag = C.c_int.from_address(_l.quick.mrp_inbox_flag(self.pointer))  # 0: the inbox is empty

    def __del__(self, destroy: Any = _l.quick.mrp_inbox_destroy) -> None:
        if getattr(self, "pointer", None):
            destroy(self.pointer)


class Running:
    """A loader of the library from its start, open(), to its end; it ends before the objects that it uses."""

    def __init__(self, source: Any, inbox: Optional[Inbox], fed: Optional[Fed] = None, operations: Optional[Operations] = None) -> None:
        self.pid, self.pointer, self.source, self.inbox, self.fed = os.getpid(), C.c_void_p(), source, inbox, fed
        self.operations, self.finisher = operations, Finisher()

    def open(self, cfg: Any, finish: Optional[Finish] = None) -> None:
        """An interrupt may come while it runs, before its caller knows of it: the caller's list has it by then."""
        source = self.source
        source._running.append(self)
        _in_use[id(self)] = (self.inbox, self.fed.memory if self.fed else None)
        what = _l.new_error()
        rc = _l.lib.mr_loader_open(C.byref(self.pointer), source._pointer, C.byref(cfg), C.byref(what))
        if rc != _l.OK:
            source._running.remove(self)
            del _in_use[id(self)]
            source.raise_failure()
            raise _l.failed(rc, what)
        if finish:
            self.finisher.open(self.pointer, finish)

    def stop(self) -> None:
        """Whoever waits for a batch comes back."""
        if self.pointer and self.pid == os.getpid():
            _l.lib.mr_loader_stop(self.pointer)

    def close(self) -> None:
        pointer, self.pointer = self.pointer, C.c_void_p()
        if self.fed:
            self.fed.close()  # threads that wait for an order come back
        if pointer and self.pid == os.getpid():  # in a child of fork() there are no threads to wait for
            if self.finisher.pointer:
                _l.lib.mr_loader_stop(pointer)
                self.finisher.close()
            _l.lib.mr_loader_close(pointer)
        _in_use.pop(id(self), None)
        if self in self.source._running:
            self.source._running.remove(self)

    def __del__(self, ending: Any = ending) -> None:
        if not ending():
            self.close()


class Stream:
    """Batches of a loader from a position on. Several streams of a loader have nothing but its data and settings in common.

    epoch, step  of the batch that comes next
    cached       whether the loader's cache is used: it has one, so one stream uses it"""

    def __init__(self, loader: Any, epoch: int = 0, step: int = 0, cached: bool = True) -> None:
        self._loader = weakref.ref(loader)  # which has this: whoever takes batches has it, too
        self.epoch, self.step, self._cached = epoch, step, cached
        self.lock = threading.RLock()
        self.running: Optional[Running] = None
        self._taken: Optional[_Lease] = None  # by a call that did not come to its end
        self._error = _l.new_error()
        self._finish: Optional[Finish] = None
        self._room: Tuple[Any, Any, Any] = (), None, None  # for numbers()

    @property
    def held(self) -> int:
        """Batches in use."""
        running = self.running
        if not running or not running.pointer:
            return 0
        return running.finisher.held() if running.finisher.pointer else _l.quick_lib.mr_loader_kept(running.pointer)

    def seek(self, epoch: int, step: int) -> None:
        """The batch that comes next is this one."""
        with self.lock:
            if (epoch, step) != (self.epoch, self.step):
                if self._moved(epoch, step):
                    self._loader()._source.epoch_begins(epoch)
                else:
                    self.stop()
                self.epoch, self.step = epoch, step

    def _moved(self, epoch: int, step: int) -> bool:
        """A run without threads goes there as it is, unless the order of the epoch was given and dropped."""
        running = self.running
        if not running or not running.pointer or self._loader()._cfg.prefetch or running.fed and epoch < running.fed.oldest:
            return False
        self._taken = None
        return bool(_l.lib.mr_loader_seek(running.pointer, epoch, step, C.byref(self._error)) == _l.OK)

    def stop(self) -> None:
        """The threads of the library end. The position stays."""
        self._taken = None
        running, self.running = self.running, None
        if running:
            running.close()

    def interrupt(self) -> None:
        """Whoever waits in next() comes back. Any thread."""
        running = self.running
        if running:
            running.stop()

    def open(self) -> Running:
        loader, fed = self._loader(), None
        cfg = type(loader._cfg).from_buffer_copy(loader._cfg)  # what its pointers name is the loader's
        cfg.start_epoch, cfg.start_step = self.epoch, self.step
        if not self._cached:
            cfg.cache = cfg.cache_bytes = cfg.tune = 0
        self._finish = finish = loader._finish
        if finish:
            cfg.keep = finish.how.keep + finish.how.ahead if finish.how.keep else 0
        if loader._order and loader._order.fixed is None:
            under_way = cfg.prefetch + 1 + (finish.how.ahead if finish else loader._hold)  # batches, at most, but for what `tune` finds
            fed = Fed(loader._order, self.epoch, loader._epochs, 1 + under_way // loader._steps if cfg.prefetch else 0)
            loader._order.settle(cfg, fed)
        loader._source.epoch_begins(self.epoch, anew=True)
        self.running = running = Running(loader._source, loader._inbox, fed, loader._operations)
        running.open(cfg, finish)
        return running

    def feed(self, done: int = 0) -> None:
        """Orders of epochs that are asked for, or soon will be. done: batches since next() was called last, by others than it."""
        running = self.running
        if running and running.fed:
            running.fed.feed(self.epoch + (self.step + done) // self._loader()._steps)

    def _held_error(self) -> HeldError:
        if self._finish and not self._finish.how.keep and self.running:
            return self.running.finisher.held_error(self._finish)
        hold = self._loader()._hold
        return HeldError("all %d batches that may be in use are: their arrays (or tensors made of them) are still referenced, and "
                         "their memory is not taken from them; drop or copy what you keep of earlier batches, or raise hold=%d "
                         "(each takes the memory of one batch)" % (hold, hold))

    def next(self) -> Batch:
        """The batch of the position, which moves on. StopIteration: all epochs are over."""
        loader = self._loader()
        with self.lock:
            loader._check()
            running = self.running if self.running and self.running.pointer else self.open()
            self.feed()
            finish = self._finish
            lease = self._taken = self._taken or _Lease()
            tries = 1 if _l.CPYTHON else 4  # where nothing is counted, one round does not find all
            while not lease.address:
                if finish:
                    rc = _l.native.mrp_finisher_next(running.finisher.pointer, _l.SLICE_NS, C.byref(lease.address), C.byref(self._error))
                else:
                    rc = _l.native.mrp_next(running.pointer, loader._hold, _l.SLICE_NS, C.byref(lease.address), C.byref(self._error))
                if rc == _l.OK:
                    break
                if rc == _l.EAGAIN:  # signals are handled on the way round
                    loader._check()
                    self.feed()
                    continue
                if rc == _l.EBUSY or (rc == _l.ELIMIT and not finish and self.held >= loader._hold):
                    if not tries:
                        raise self._held_error()
                    gc.collect()  # some may hang in circles
                    tries -= 1
                    continue
                self._end(rc)
            batch = Batch(loader, lease, finish, running.finisher.lent)
            self.epoch, self.step = (batch.epoch + 1, 0) if batch.last else (batch.epoch, batch.step + 1)
            self._taken = None
            if loader._reports.value:
                loader._drain(self._error)
            return batch

    def numbers(self, most: int) -> List[Tuple[int, int, bytes]]:
        """(step, position of its first sample in the global batch, its samples as uint64) of the next batches of the epoch, `most` of them at
        most, without making them. The position moves on."""
        loader, out = self._loader(), []
        with self.lock:
            loader._check()
            running = self.running if self.running and self.running.pointer else self.open()
            self.feed()
            pointer, room, error = running.pointer, loader.batch, C.byref(self._error)
            samples, first, count = self._room
            if len(samples) < room:
                samples, first, count = self._room = (C.c_uint64 * room)(), C.c_uint32(), C.c_uint32()
            there, at_first, at_count = C.addressof(samples), C.addressof(first), C.addressof(count)
            for _ in range(min(most, loader._steps - self.step)):
                rc = _l.quick_lib.mr_loader_samples(pointer, self.epoch, self.step, there, room, at_first, at_count, error)
                if rc != _l.OK:
                    self._end(rc)
                out.append((self.step, first.value, C.string_at(there, 8 * count.value)))
                self.step += 1
            if self.step == loader._steps:
                self.epoch, self.step = self.epoch + 1, 0
            return out

    def _end(self, rc: int) -> None:
        """Raise the error of a call that delivered nothing."""
        loader = self._loader()
        failure = None if rc == _l.EEND else _l.failed(rc, self._error)
        loader._drain(self._error)
        if failure is None:
            raise StopIteration
        loader._raise_failure(failure)
        if loader._closed:
            raise ClosedError("the loader was closed while a batch was awaited")
        raise failure


def check_step(step: int, steps: int) -> None:
    if step >= steps:
        raise ArgumentError("step %d: an epoch has %d" % (step, steps))
