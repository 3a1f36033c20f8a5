"""Batches of Python's own, received from the workers and copied to a GPU ahead of the loop.

    workers -> [thread: into pinned memory; copies are queued on a stream of its own] -> take(): torch's current stream waits

take() of a batch that is ready copies nothing, allocates nothing, and waits for no lock that is held during work."""
from __future__ import annotations

import copy
import ctypes as C
import dataclasses
import os
import threading
from collections import UserDict, deque
from collections.abc import Mapping
from typing import Any, Callable, Deque, Dict, List, NamedTuple, Optional, Set, Tuple

import torch

from . import _gpu
from ._errors import ArgumentError, WorkerError
from ._making import Task
from ._workers import Lost, Processes

_cuda: Any = torch.cuda  # some of whose functions have no types
_ANY = 1 << 30
_AHEAD = 2           # batches on the device that nobody has taken
_UNDER_WAY = 2       # batches whose copies may be queued
_ALIGN = 64
_SMALL = 1 << 16     # bytes of a tensor that crosses with its neighbours
_SLICE_S = 0.1


def _filled(made: Any, members: Dict[Any, Any]) -> Any:
    """A mapping of the same type with these members."""
    if type(made) is dict:
        return members
    out = copy.copy(made)  # it may have attributes of its own
    out.update(members)
    return out


def each_tensor(made: Any, change: Callable[[Any], Any], moved: Callable[[Any], Any]) -> Any:
    """The same batch, its containers of the same types, with other tensors. moved: of an object that has to(), and tensors nobody else can
    name."""
    if isinstance(made, torch.Tensor):
        return change(made)
    if isinstance(made, (dict, UserDict)):
        return _filled(made, {k: each_tensor(v, change, moved) for k, v in made.items()})
    if callable(getattr(made, "to", None)) and not isinstance(made, type):
        return moved(made)
    if isinstance(made, Mapping):
        return type(made)({k: each_tensor(v, change, moved) for k, v in made.items()})  # type: ignore[call-arg]
    if isinstance(made, tuple) and hasattr(made, "_fields"):
        return type(made)(*(each_tensor(v, change, moved) for v in made))
    if isinstance(made, (list, tuple)):
        return type(made)(each_tensor(v, change, moved) for v in made)
    if dataclasses.is_dataclass(made) and not isinstance(made, type):
        out = copy.copy(made)
        for field in dataclasses.fields(made):
            object.__setattr__(out, field.name, each_tensor(getattr(made, field.name), change, moved))
        return out
    if any(isinstance(v, torch.Tensor) for v in getattr(made, "__dict__", {}).values()):
        raise ArgumentError("a batch has an object of class %s, whose tensors device= cannot move: give the class a method to(device), or leave out "
                            "device= and move them in the loop" % type(made).__name__)
    return made


class Sent(NamedTuple):
    """A batch whose copies are queued.

    over    event of their end
    blocks  a tensor of each piece of device memory
    others  does it have objects that move their tensors by to()?"""
    batch: Any
    over: Any
    blocks: List[Any]
    others: bool


def _is_plain(t: Any) -> bool:
    return bool(t.device.type == "cpu" and t.layout is torch.strided and not t.is_quantized and not t.is_conj() and not t.is_neg())


def _in_memory(t: Any) -> Tuple[Any, bool]:
    """(the tensor with its elements in the order of their memory, is that channels_last?)"""
    if t.dim() == 4 and not t.is_contiguous() and t.is_contiguous(memory_format=torch.channels_last):
        return t.permute(0, 2, 3, 1), True
    return t.contiguous(), False


class Crossing:
    """The way of one loader's batches to a device. send() is for one thread, receive() for whoever computes."""

    def __init__(self, device: Any) -> None:
        self._device, self._stream = device, None  # type: Any, Any
        self._under_way: Deque[Tuple[Any, Any]] = deque()  # (the event of its end, pinned memory)
        self._free: List[Any] = []                         # pinned memory

    def begin(self) -> None:
        """By the thread that computes, whose current device "cuda" means."""
        if self._stream is None:
            if self._device.index is None:
                self._device = torch.device(self._device.type, _cuda.current_device())
            self._stream = _cuda.Stream(self._device)

    def send(self, made: Any) -> Sent:
        found: List[Any] = []
        others: List[Any] = []
        each_tensor(made, found.append, others.append)
        plain = [(k, *_in_memory(t.detach())) for k, t in enumerate(found) if t.numel() and _is_plain(t)]
        plain.sort(key=lambda p: p[1].nbytes <= _SMALL)  # small ones are last, next to each other
        starts, size = [], 0
        for _, t, _ in plain:
            starts.append(size)
            size += -(-t.nbytes // _ALIGN) * _ALIGN
        buffer = self._buffer(size)
        for (_, t, _), at in zip(plain, starts):
            C.memmove(buffer.data_ptr() + at, t.data_ptr(), t.nbytes)
        there: List[Any] = list(found)
        blocks: List[Any] = []
        with _cuda.stream(self._stream):
            sent = {p[0] for p in plain}
            for k, t in enumerate(found):
                if k not in sent:
                    there[k] = _gpu.send(t, self._device)
                    blocks.append(there[k])
            large = sum(p[1].nbytes > _SMALL for p in plain)
            parts = [buffer[at:at + p[1].nbytes] for p, at in zip(plain[:large], starts)]
            blocks += [_gpu.send(part, self._device) for part in parts]
            flat = blocks[len(blocks) - large:]
            if large < len(plain):
                first = starts[large]
                together = _gpu.send(buffer[first:size], self._device)
                blocks.append(together)
                flat += [together[at - first:at - first + p[1].nbytes] for p, at in zip(plain[large:], starts[large:])]
            over = _cuda.Event()
            over.record(self._stream)
        for (k, t, last), bytes_there in zip(plain, flat):
            out = bytes_there.view(t.dtype).view(t.shape).data  # .data: a change of one in place leaves its neighbours alone
            there[k] = out.permute(0, 3, 1, 2) if last else out
        self._under_way.append((over, buffer))
        following = iter(there)
        return Sent(each_tensor(made, lambda t: next(following), lambda of: of), over, blocks, bool(others))

    def receive(self, sent: Sent) -> Any:
        """The batch, which torch's current stream waits for."""
        current = _cuda.current_stream(self._device)
        current.wait_event(sent.over)
        for t in sent.blocks:
            if t.device.type == "cuda":
                t.record_stream(current)
        if sent.others:  # on the stream that uses their tensors
            return each_tensor(sent.batch, lambda t: t, lambda of: of.to(self._device))
        return sent.batch

    def _buffer(self, size: int) -> Any:
        """Pinned memory that no copy reads any more."""
        while self._under_way and (len(self._under_way) >= _UNDER_WAY or self._under_way[0][0].query()):
            self._finish_oldest()
        fits = [b for b in self._free if b.numel() >= size]
        if not fits:
            self._free.clear()  # batches have grown
            return _gpu.pinned(size + size // 16)
        best = min(fits, key=lambda b: b.numel())
        self._free = [b for b in self._free if b is not best]
        return best

    def _finish_oldest(self) -> None:
        self._under_way[0][0].synchronize()
        self._free.append(self._under_way.popleft()[1])

    def close(self) -> None:
        """Copies under way end before their memory is freed."""
        while self._under_way:
            self._finish_oldest()


class Direct:
    """Makers of batches that work inside take(): there is nothing to do ahead."""

    def __init__(self, pool: Any, crossing: Crossing) -> None:
        self._pool, self._crossing = pool, crossing
        self.submit, self.begin, self.drop, self.stop = pool.submit, pool.begin, pool.drop, pool.stop

    def take(self, number: int, check: Callable[[], None]) -> Tuple[Any, List[Any]]:
        self._crossing.begin()
        made, bad = self._pool.take(number, check)
        return self._crossing.receive(self._crossing.send(made)), bad

    def close(self) -> None:
        self._pool.close()
        self._crossing.close()


class _Gone(Exception):
    """Nobody asks for the batch any more."""


class Sender:
    """Makers of batches (Processes, Threads) whose results a thread takes, in the order of submission, and copies. A batch that somebody
    waits for comes first.

    crossing  None: batches stay in host memory"""

    def __init__(self, pool: Any, crossing: Optional[Crossing]) -> None:
        self._pool, self._crossing, self._most = pool, crossing, _AHEAD if crossing else _ANY
        self._come = threading.Condition()
        self._asked: Dict[int, None] = {}   # numbers that are not sent, in order
        self._waited: Set[int] = set()      # of these, the ones that take() waits for
        self._sent: Dict[int, Any] = {}     # (batch, damaged ones), or the exception raised
        self._now: Optional[int] = None
        self._thread: Optional[threading.Thread] = None
        self._closed, self._pid = False, os.getpid()

    # ------------------------------------------------------------------ the thread

    def _choose(self) -> Optional[int]:
        for number in list(self._waited):  # the collector may drop some in this thread
            if number in self._asked:
                return number
        return next(iter(self._asked), None) if len(self._sent) < self._most else None

    def _see_asked(self) -> None:
        if self._closed or self._now not in self._asked:
            raise _Gone

    def _run(self) -> None:
        while True:
            with self._come:
                self._now = self._choose()
                while self._now is None and not self._closed:
                    self._come.wait()
                    self._now = self._choose()
                number = self._now
                if self._closed or number is None:
                    return
            result: Any = None
            try:
                made, bad = self._pool.take(number, self._see_asked)
                result = self._crossing.send(made) if self._crossing else made, bad
            except BaseException as e:
                result = e
            made = None
            with self._come:
                if number in self._asked:  # else nobody asks for it any more
                    del self._asked[number]
                    self._sent[number] = result
                    self._come.notify_all()
            result = None

    # ------------------------------------------------------------------ whoever takes batches

    def submit(self, task: Task) -> int:
        if self._crossing:
            self._crossing.begin()
        self._pool.start()
        number: int = self._pool.submit(task)
        with self._come:
            self._asked[number] = None
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._run, name="millrace batches", daemon=True)
                self._thread.start()
            self._come.notify_all()
        self._pool.wake()
        return number

    def begin(self) -> None:
        """The thread assigns samples to workers."""

    def take(self, number: int, check: Callable[[], None]) -> Tuple[Any, List[Any]]:
        while True:
            with self._come:
                if number in self._sent:
                    result = self._sent.pop(number)
                    self._waited.discard(number)
                    self._come.notify_all()
                    break
                if number not in self._asked:
                    raise Lost
                self._waited.add(number)
                self._come.notify_all()
                self._come.wait(_SLICE_S)
            check()
        if isinstance(result, WorkerError):
            self.stop()  # workers begin anew with the data as they are then
        if isinstance(result, BaseException):
            raise result
        return self._crossing.receive(result[0]) if self._crossing else result[0], result[1]

    def _forget(self, numbers: List[int]) -> None:
        with self._come:
            for n in numbers:
                self._asked.pop(n, None)
                self._sent.pop(n, None)
                self._waited.discard(n)
            self._come.notify_all()

    def drop(self, numbers: List[int]) -> None:
        self._forget(numbers)
        self._pool.drop(numbers)
        self._pool.wake()

    def stop(self) -> None:
        self._forget(list(self._asked) + list(self._sent))
        self._pool.stop()

    def close(self) -> None:
        if self._pid != os.getpid():
            return
        with self._come:
            self._closed = True
            self._come.notify_all()
        self._pool.wake()
        if self._thread is not None and threading.current_thread() is not self._thread:
            self._thread.join(2)
        self._pool.close()
        self._sent.clear()
        if self._crossing:
            self._crossing.close()


def ahead(pool: Any, device: Any) -> Any:
    """The pool, with batches on the device (None: in host memory)."""
    if device is None:
        return Sender(pool, None) if isinstance(pool, Processes) else pool
    return Sender(pool, Crossing(device)) if pool.count else Direct(pool, Crossing(device))
