"""Samples of a Python object that worker processes make, for the library's threads, which decode and augment them.

    library's threads --- request ---> thread that takes them ---> thread that owns the workers ---> worker processes
                      <--------------------------------- samples -----------------------------------"""
from __future__ import annotations

import array
import ctypes as C
import multiprocessing.connection
import os
import threading
from collections import deque
from typing import Any, Callable, Deque, Dict, List, Optional, Tuple

from . import _library as _l
from ._errors import ArgumentError, FormatError
from ._live import _EFORMAT, Live, Maker, plain_sample
from ._making import Job, Task
from ._serving import text_of
from ._workers import Processes, raise_failed


class SampleJob(Job):
    """A batch is one sample, as the library takes it.

    inferred  no schema says the names of its members"""

    inferred = True

    def sample(self, epoch: int, position: int, number: int) -> Any:
        return as_arrays(plain_sample(super().sample(epoch, position, number), self.inferred))

    def forms(self) -> List[Any]:
        """The first sample, and some others, by which a schema is found."""
        return [self.sample(0, 0, k) for k in (0,) + tuple(sorted({1 % self.count, self.count // 2, self.count - 1}))]


def only(samples: List[Any]) -> Any:
    return samples[0]


def as_arrays(sample: Any) -> Any:
    """Pictures of PIL as arrays, which processes send without a copy."""
    if isinstance(sample, dict):
        return {k: _array(v) for k, v in sample.items()}
    if isinstance(sample, tuple):
        return tuple(_array(v) for v in sample)
    return _array(sample)


def _array(value: Any) -> Any:
    if not hasattr(value, "getbands"):
        return value
    import numpy
    return numpy.asarray(value)


class LiveOfWorkers(Live):
    """Live, its samples by worker processes.

    change  of each sample, in this process"""

    def __init__(self, live: Live, count: int, context: Any, worker_init: Any, seed: int) -> None:
        self.data, self.schema, self.key, self.sample_bytes, self.classes = live.data, live.schema, live.key, live.sample_bytes, live.classes
        self._count, self._context = count, context
        self.job = SampleJob(live.data, len(live.data), seed=seed, collate=only, worker_init=worker_init)
        self.job.inferred = live.schema is None
        self.change: Optional[Callable[[Any], Any]] = None
        self._begun: Optional[Processes] = None

    def pool(self) -> Processes:
        begun, self._begun = self._begun, None
        return begun or Processes(self.job, self._count, self._context, 0, lambda text: None)

    def first(self) -> Any:
        """Sample 0, as a worker makes it."""
        self._begun = self.pool()
        try:
            return self._begun.ask("forms")[0]
        except BaseException:
            self.forget()
            raise

    def forget(self) -> None:
        begun, self._begun = self._begun, None
        if begun:
            begun.close()

    def maker(self) -> Any:
        return WorkersMaker(self)


class WorkersMaker(Maker):
    """Maker over worker processes."""

    def __init__(self, live: LiveOfWorkers) -> None:
        self._pool = live.pool()
        self._asked: Deque[Tuple[int, Any]] = deque()
        self._wake_read, self._wake = os.pipe()
        self._waking = threading.Lock()  # the pipe is written to while it is open
        self._over, self._owner = False, threading.Thread(target=self._own, name="millrace workers", daemon=True)
        super().__init__(live)

    # ------------------------------------------------------------------ the thread that takes requests

    def _inferred(self) -> Dict[str, str]:
        from ._records import _infer
        samples = [self._changed(s) for s in self._pool.ask("forms")]
        schema = _infer(samples[0], self._live.classes is not None)
        if any(_infer(s, self._live.classes is not None).get("image") != schema.get("image") for s in samples):
            if not str(schema.get("image", "")).startswith("pixels"):
                return schema
            schema["image"] = "image"
        return schema

    def _changed(self, sample: Any) -> Any:
        change = self._live.change  # type: ignore[attr-defined]
        return sample if change is None else change(sample)

    def _begin(self) -> bool:
        good = super()._begin()
        with self._waking:
            if good and not self._over:
                self._owner.start()
                return True
        self._pool.close()
        return False

    def _answer(self, number: int, request: C.c_void_p) -> None:
        with self._waking:
            if not self._over:
                self._asked.append((number, C.c_void_p(request.value)))
                os.write(self._wake, b"x")
                return
        self._refuse(request, _l.ECANCELED, "the data were closed")

    # ------------------------------------------------------------------ the thread that owns the workers

    def _own(self) -> None:
        under_way: Dict[int, Tuple[int, Any]] = {}
        while not self._over:
            try:
                multiprocessing.connection.wait([self._wake_read] + self._pool.connections())
                self._take_asked(under_way)
                self._pool.begin()
                for task in [t for t in under_way if self._pool.ready(t)]:
                    result = self._pool.result(task)
                    self._give(*under_way.pop(task), result)
            except BaseException as e:  # a worker died
                self._pool.stop()
                for _, request in under_way.values():
                    self._fail(request, e)
                under_way.clear()
        self._take_asked(under_way)
        for _, request in under_way.values():
            self._refuse(request, _l.ECANCELED, "the data were closed")
        self._pool.close()

    def _take_asked(self, under_way: Dict[int, Tuple[int, Any]]) -> None:
        while multiprocessing.connection.wait([self._wake_read], 0):
            if not os.read(self._wake_read, 4096):
                break
        while self._asked:
            number, request = self._asked.popleft()
            # The seed stands in the place of the epoch, which nobody knows here.
            under_way[self._pool.submit(Task(self.turns.seed_for(number), 0, array.array("Q", [number]).tobytes()))] = number, request

    def _give(self, number: int, request: Any, result: Any) -> None:
        assert self._taker is not None
        try:
            sample = raise_failed(result)
            try:
                values = self._taker.take(number, self._changed(sample))
            except (ArgumentError, FormatError) as e:
                return self._refuse(request, _EFORMAT, text_of(e))
        except BaseException as e:
            return self._fail(request, e)
        _l.native.mrp_maker_give(request, values)

    def close(self) -> None:
        super().close()
        if self._pid != os.getpid():
            return
        with self._waking:
            if self._over:
                return
            self._over = True
            os.write(self._wake, b"x")
        if self._owner.ident is not None and threading.current_thread() is not self._owner:
            self._owner.join(2)
        if not self._owner.is_alive():  # else it still reads there
            os.close(self._wake_read)
            os.close(self._wake)
