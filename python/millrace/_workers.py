"""Who makes batches of Python's own: worker processes, worker threads, or whoever takes the batches.

All three have submit(task) -> number, take(number) -> (batch, damaged ones), drop(numbers), close(). Batches come back in any order,
and are asked for by their numbers.

    parent                                     worker process
    submit: ("make", number, task)      ---->  one sample after the other; before each it looks for
    ("drop", numbers), ("memory", ...)  ---->  messages, and writes which one it has into the page that both have mapped
    take: waits for messages            <----  ("done", number, bytes, memory), descriptors of new memory; ("failed", ...)

A worker ends when its connection does. One whose parent is gone ends, too, wherever it is (_watch)."""
from __future__ import annotations

import ctypes
import errno
import itertools
import multiprocessing
import multiprocessing.connection
import os
import pickle
import queue
import select
import signal
import socket
import sys
import threading
import time
from collections import deque
from typing import Any, Callable, Deque, Dict, List, Optional, Tuple

from ._errors import NOWHERE, ArgumentError, ClosedError, WorkerError
from ._making import Dropped, Failure, Job, Task, generators_kept
from ._packing import LARGE, Lender, Memory, Store, new_file, of_a_session, pack, unpack

_PACKED_MOST = 1 << 15   # bytes of a message; larger ones go through memory, so that no side waits for the other to read
_IN_HAND = 2             # batches that a worker has been given: the one it makes, and the one after
_SLICE_S, _GRACE_S = 0.1, 0.1
_IDLE_MOST = 8           # pieces of memory that a worker keeps for later
_PAGE = 4096
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3     # of malloc.h
_MAPPED_FROM, _TRIMMED_FROM = 32 << 20, 256 << 20  # bytes; the first is the most that glibc takes


# ---------------------------------------------------------------------- descriptors between processes

# multiprocessing.reduction waits for an answer after each one (everywhere since Python 3.14), and takes the next message for it.

def _send_descriptor(conn: Any, fd: int) -> None:
    with socket.fromfd(conn.fileno(), socket.AF_UNIX, socket.SOCK_STREAM) as s:
        socket.send_fds(s, [b"d"], [fd])


def _receive_descriptor(conn: Any) -> int:
    with socket.fromfd(conn.fileno(), socket.AF_UNIX, socket.SOCK_STREAM) as s:
        data, fds, _, _ = socket.recv_fds(s, 1, 1)
    if not data:
        raise EOFError
    if not fds:
        raise OSError(errno.EMFILE, "a descriptor of a worker process's memory was lost: this process has too many open files (ulimit -n)")
    return fds[0]


# ---------------------------------------------------------------------- in a worker process

class _Side:
    """The worker's side of the connection."""

    def __init__(self, conn: Any) -> None:
        self.conn, self.store = conn, Store()
        self._waiting = select.poll()
        self._waiting.register(conn.fileno(), select.POLLIN)
        fd, _ = new_file(_PAGE)
        self._page = Memory(fd, _PAGE)
        self._word = ctypes.c_uint64.from_address(self._page.address)
        self.tell(NOWHERE)
        self.send(("page",), [fd])
        self.tasks: Deque[Tuple[int, Task]] = deque()
        self.questions: Deque[Tuple[int, str]] = deque()  # methods of the job
        self.dropped: Dict[int, bool] = {}
        self.now: Optional[int] = None

    def tell(self, sample: int) -> None:
        """Which sample is being made."""
        self._word.value = sample

    def send(self, message: Any, descriptors: List[int]) -> None:
        self.conn.send_bytes(pickle.dumps(message, pickle.HIGHEST_PROTOCOL))
        for fd in descriptors:
            _send_descriptor(self.conn, fd)
            os.close(fd)

    def read(self) -> None:
        """One message; waits for it. EOFError: it is over."""
        kind, *body = pickle.loads(self.conn.recv_bytes())
        if kind == "make":
            self.tasks.append((body[0], body[1]))
        elif kind == "ask":
            self.questions.append((body[0], body[1]))
        elif kind == "drop":
            self.dropped.update(dict.fromkeys(body[0], True))
        else:
            self.store.give_back(*body)

    def look(self, sample: int) -> None:
        while self._waiting.poll(0):  # Connection.poll() takes twenty times as long
            self.read()
        if self.now in self.dropped:
            raise Dropped
        self.tell(sample)


class Room:
    """Where tensors of a batch are made at once, in shared memory."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.at: Dict[int, int] = {}

    def take(self, size: int) -> Any:
        """A buffer, or None: it is too small to be worth it."""
        if size < LARGE:
            return None
        number = self._store.take(size)
        memory = self._store.memories[number]
        self.at[memory.address] = number
        return memory.bytes_at(0, size)


def _watch() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _exception_bytes(e: BaseException) -> Optional[bytes]:
    """None: it cannot be sent, or is too long for a message."""
    try:
        data = pickle.dumps(e)
        pickle.loads(data)
        return data if len(data) <= _PACKED_MOST else None
    except Exception:
        return None


def _keep_memory() -> None:
    """The allocator keeps its memory from the system, so that pictures of megabytes do not begin in fresh pages each time: zeroing these
    took a third of a worker's time. glibc's; others have no mallopt()."""
    change = getattr(ctypes.CDLL(None), "mallopt", None)
    if change is not None:
        change(_M_MMAP_THRESHOLD, _MAPPED_FROM)
        change(_M_TRIM_THRESHOLD, _TRIMMED_FROM)


def _begin_worker(number: int, count: int, job: Job) -> None:
    _keep_memory()
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)
    if job.worker_init is not None:
        job.worker_init(number)


class _TorchInfo:
    """torch.utils.data.get_worker_info() while a sample is made. Not while samples are put together: default_collate() would make
    shared memory of its own then."""

    def __init__(self, number: int, count: int, job: Job) -> None:
        self._info: Any = None
        if "torch" in sys.modules:
            try:
                import torch.utils.data._utils.worker as worker
                self._module = worker
                self._info = worker.WorkerInfo(id=number, num_workers=count, seed=job.seed + number, dataset=job.data)
            except Exception:  # another version's
                self._info = None

    def set(self, on: bool) -> None:
        if self._info is not None:
            self._module._worker_info = self._info if on else None


def work(conn: Any, number: int, count: int, payload: Any, strangers: List[int]) -> None:
    """The process."""
    for fd in strangers:  # of the parent's, which fork() copied: they would keep connections open
        os.close(fd)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's
    threading.Thread(target=_watch, daemon=True).start()
    try:
        _work(conn, number, count, payload)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass


def _answer(side: _Side, job: Job) -> None:
    number, method = side.questions.popleft()
    try:
        side.send(("done", number, pack(getattr(job, method)(), None)[0], {}, [], [], side.store.files), [])
    except (EOFError, BrokenPipeError, ConnectionResetError):
        raise
    except Exception as e:
        side.send(("failed", number, 0, Failure(0, [], e).where(), _exception_bytes(e), Failure(0, [], e).trace()), [])


def _work(conn: Any, number: int, count: int, payload: Any) -> None:
    side = _Side(conn)
    try:
        job: Job = pickle.loads(payload) if isinstance(payload, bytes) else payload
        info = _TorchInfo(number, count, job)
        info.set(True)
        _begin_worker(number, count, job)
    except Exception as e:
        f = Failure(None, [], e)
        side.send(("failed", None, None, "worker process %d was starting" % number, _exception_bytes(e), f.trace()), [])
        return
    while True:
        side.tell(NOWHERE)
        while not side.tasks:
            while side.questions:
                _answer(side, job)
            side.read()
        side.now, task = side.tasks.popleft()
        room = Room(side.store)

        def look(sample: int) -> None:
            side.look(sample)
            info.set(sample != NOWHERE)
        try:
            made, bad = job.make(task, look, room)
            data, lent = pack(made, side.store, room.at)
            made = None
            where: Any = data
            if len(data) > _PACKED_MOST:
                at = side.store.take(len(data))
                ctypes.memmove(side.store.memories[at].address, data, len(data))
                where = (at, len(data))
            new, side.store.new = side.store.new, []
            message = ("done", side.now, where, lent, [(n, size) for n, _, size in new], bad, side.store.files)
            side.send(message, [fd for _, fd, _ in new])
        except Dropped:
            side.store.free += room.at.values()
            side.dropped.pop(side.now, None)
            side.send(("gone", side.now), [])
        except Failure as f:
            side.store.free += room.at.values()
            side.send(("failed", side.now, f.sample, f.where(), _exception_bytes(f.error), f.trace()), [])
        except (EOFError, BrokenPipeError, ConnectionResetError):
            raise
        except Exception as e:  # in a sample on its way
            lost = Failure(None, task.numbers(), e)
            side.send(("failed", side.now, None, lost.where(), _exception_bytes(e), lost.trace()), [])


# ---------------------------------------------------------------------- in the parent

class Lost(Exception):
    """The workers were begun anew since this was submitted."""


class RemoteTrace(Exception):
    """The traceback of a worker, as the cause of the exception that the parent raises."""

    def __str__(self) -> str:
        return str(self.args[0])


def raise_of(sample: Optional[int], where: str, error: Optional[BaseException], trace: str) -> None:
    """The exception itself, with where it came from; of one that cannot be sent a WorkerError."""
    text = "%s\n\n%s" % (where, trace)
    if isinstance(error, StopIteration):  # it would end a loop, and say nothing
        error = RuntimeError("the data raised StopIteration")
    if error is None:
        error = WorkerError("%s: %s" % (where, trace.strip().rsplit("\n", 1)[-1][:500]))
        error.sample = sample
    elif hasattr(error, "add_note"):
        error.add_note("millrace: " + where)
    raise error from RemoteTrace(text)


def raise_here(f: Failure) -> None:
    """The same of this process."""
    error = RuntimeError("the data raised StopIteration") if isinstance(f.error, StopIteration) else f.error
    if not hasattr(error, "add_note"):
        raise error from RemoteTrace(f.where())
    error.add_note("millrace: " + f.where())
    raise error


class _Worker:
    """One process, as the parent has it."""

    def __init__(self, number: int, process: Any, conn: Any) -> None:
        self.number, self.process, self.conn = number, process, conn
        self.lender = Lender()
        self.page: Optional[Memory] = None
        self.in_hand: List[int] = []  # numbers of tasks, dropped ones included; it makes the first

    def sample(self) -> Optional[int]:
        """Which one it makes."""
        if self.page is None:
            return None
        n = int.from_bytes(bytes(self.page.bytes_at(0, 8)), sys.byteorder)
        return None if n == NOWHERE else n

    def send(self, *message: Any) -> None:
        self.conn.send_bytes(pickle.dumps(message, pickle.HIGHEST_PROTOCOL))

    def return_memory(self) -> None:
        """What nobody has any more goes back, and some of it for good."""
        idle = []
        while self.lender.idle:
            idle.append(self.lender.idle.popleft())
        if idle:
            keep = idle[:_IDLE_MOST]
            for n in idle[_IDLE_MOST:]:
                del self.lender.memories[n]
            self.send("memory", keep, idle[_IDLE_MOST:])


class Processes:
    """Worker processes.

    context  of multiprocessing, or its name; None: the system's usual one
    timeout  seconds that a batch may take; 0: any time
    note     is called with other messages"""

    def __init__(self, job: Job, count: int, context: Any, timeout: float, note: Callable[[str], None]) -> None:
        self.job, self.count, self._timeout, self._note = job, count, timeout, note
        try:
            self._context: Any = multiprocessing.get_context(context) if context is None or isinstance(context, str) else context
            self._how = self._context.get_start_method()
        except (ValueError, AttributeError):
            raise ArgumentError("multiprocessing_context=%r: expected \"fork\", \"spawn\", \"forkserver\", \"threads\", or a context of "
                                "multiprocessing" % (context,)) from None
        self._workers: List[_Worker] = []
        self._pid, self._lock = os.getpid(), threading.RLock()  # of workers and their connections
        # Without a lock, as a loop may be dropped by the collector in any thread, wherever that is.
        self._numbers = itertools.count()
        self._tasks: Dict[int, Task] = {}        # submitted, and neither delivered nor dropped
        self._pending: Deque[int] = deque()      # of these, the ones that no worker has; and some that were dropped
        self._dropped: Deque[int] = deque()      # and not yet sent to workers
        self._results: Dict[int, Any] = {}
        self._closed, self._file_told = False, False
        self._waker: Any = None  # the ends of a pipe
        self._awaited = False    # is there a take() that wake() ends the wait of?

    # ------------------------------------------------------------------ beginning

    def start(self) -> None:
        """Workers begin in this thread, and not in one that takes batches later. One that died is replaced."""
        if len(self._workers) == self.count:
            return
        with self._lock:
            try:
                self._start()
            except BaseException:
                self.stop()
                raise

    def wake(self) -> None:
        """take() of another thread looks for tasks that were submitted or dropped."""
        if self._awaited and self._waker:
            self._waker[1].send_bytes(b"x")

    def _payload(self) -> Any:
        if self._how == "fork":
            return self.job
        try:
            payload = pickle.dumps(self.job, pickle.HIGHEST_PROTOCOL)
        except Exception as e:
            raise ArgumentError("workers by \"%s\" are sent the data, transform= and collate_fn=, and one of them cannot be pickled: %s: %s. "
                                "Define functions and classes at the top of a module, open files in __getitem__, or say "
                                "multiprocessing_context=\"fork\"" % (self._how, type(e).__name__, e)) from e
        name = of_a_session(payload)
        if name:
            raise ArgumentError("workers by \"%s\" import the data, transform= and collate_fn=, and %s was defined in a notebook or at a prompt, which "
                                "cannot be imported. Define it in a module (a file next to the notebook), or say multiprocessing_context=\"fork\"" % (
                                    self._how, name))
        return payload

    def _start(self) -> None:
        self._waker = self._waker or multiprocessing.Pipe(False)
        payload = self._payload()
        there = [w.number for w in self._workers]
        for k in range(self.count):
            if k in there:
                continue
            mine, theirs = self._context.Pipe()
            try:
                strangers = [w.conn.fileno() for w in self._workers] + [mine.fileno()] if self._how == "fork" else []
                process = self._context.Process(target=work, name="millrace worker %d" % k, daemon=True,
                                                args=(theirs, k, self.count, payload, strangers))
                process.start()
            except BaseException:
                mine.close()
                raise
            finally:
                theirs.close()
            self._workers.append(_Worker(k, process, mine))

    # ------------------------------------------------------------------ tasks

    def submit(self, task: Task) -> int:
        number = next(self._numbers)
        self._tasks[number] = task
        self._pending.append(number)
        return number

    def drop(self, numbers: List[int]) -> None:
        """Nobody asks for these any more."""
        for n in numbers:
            self._tasks.pop(n, None)
            self._results.pop(n, None)
        self._dropped.extend(numbers)

    def ask(self, method: str) -> Any:
        """The result of a method of the job, in a worker."""
        with self._lock:
            number = next(self._numbers)
            try:
                if not self._workers:
                    self._start()
                self._tasks[number] = Task(0, 0, b"")
                self._workers[0].in_hand.append(number)
                self._workers[0].send("ask", number, method)
            except BaseException:
                self.stop()
                raise
        return self.take(number, lambda: None)[0]

    def _hand_out(self) -> None:
        dropped = [self._dropped.popleft() for _ in range(len(self._dropped))]
        for w in self._workers:
            w.return_memory()
            theirs = [n for n in dropped if n in w.in_hand]
            if theirs:
                w.send("drop", theirs)
        while self._pending and self._workers:
            w = min(self._workers, key=lambda w: len(w.in_hand))
            if len(w.in_hand) >= _IN_HAND:
                return
            number = self._pending.popleft()
            task = self._tasks.get(number)
            if task is not None:
                w.in_hand.append(number)
                w.send("make", number, task)

    def begin(self) -> None:
        """Assign samples to workers, without waiting."""
        with self._lock:
            self._exchange()

    def connections(self) -> List[Any]:
        """From which there is something to receive when one is ready."""
        with self._lock:
            return [w.conn for w in self._workers]

    def ready(self, number: int) -> bool:
        return number in self._results

    def result(self, number: int) -> Any:
        """Of one that is ready: see raise_failed(). WorkerError: its process is gone; stop() lets all begin anew."""
        self._tasks.pop(number, None)
        result = self._results.pop(number)
        if isinstance(result, WorkerError):
            raise result
        return result

    def take(self, number: int, check: Callable[[], None]) -> Tuple[Any, List[Any]]:
        """(batch, damaged ones); waits for them. Lost: the workers were begun anew."""
        until = time.monotonic() + self._timeout
        self._awaited = True
        try:
            while True:
                with self._lock:
                    check()
                    if number not in self._tasks:
                        raise ClosedError("the loader was closed while a batch was awaited") if self._closed else Lost
                    self._exchange()
                    if number in self._results:
                        result = self.result(number)
                        break
                    if self._timeout and time.monotonic() > until:
                        self._late(number)
                self._wait()
        finally:
            self._awaited = False
        raise_failed(result)
        return result  # type: ignore[no-any-return]

    def _wait(self) -> None:
        """For a message or wake(), while others may submit tasks."""
        try:
            if self._waker[0] in multiprocessing.connection.wait(self.connections() + [self._waker[0]], _SLICE_S):
                self._waker[0].recv_bytes()
        except (OSError, ValueError):
            pass  # a connection was closed meanwhile

    def _exchange(self) -> None:
        """Tasks go to workers, and their messages are read, as far as there are some. An exception on the way, as of Ctrl-C, leaves
        connections in the middle of a message: workers are begun anew then."""
        try:
            if not self._workers:
                self._start()
            self._try_to_hand_out()
            connections: Dict[Any, _Worker] = {w.conn: w for w in self._workers}
            for conn in multiprocessing.connection.wait(list(connections), 0):
                w = connections[conn]
                try:
                    self._receive(w, pickle.loads(w.conn.recv_bytes()))
                except (EOFError, ConnectionResetError):
                    self._died(w)
            self._try_to_hand_out()
        except BaseException:
            self.stop()
            raise

    def _try_to_hand_out(self) -> None:
        try:
            self._hand_out()
        except (BrokenPipeError, ConnectionResetError):
            pass  # a worker is dead, which whoever receives from it finds

    def _receive(self, w: _Worker, message: Any) -> None:
        kind = message[0]
        if kind == "page":
            fd = _receive_descriptor(w.conn)
            w.page = Memory(fd, _PAGE)
            os.close(fd)
            return
        number = message[1]
        if kind == "gone":
            w.in_hand.remove(number)
            return
        if kind == "failed":
            _, _, sample, where, data, trace = message
            failed = _Failed(sample, "%s, in worker process %d" % (where, w.number), pickle.loads(data) if data else None, trace)
            if number is None:
                raise_of(None, where, failed.error, trace)
            self._keep(w, number, failed)
            return
        self._done(w, *message[1:])

    def _done(self, w: _Worker, number: int, where: Any, lent: Dict[int, int], new: List[Tuple[int, int]], bad: List[Any], files: int) -> None:
        for at, size in new:
            fd = _receive_descriptor(w.conn)
            try:
                w.lender.memories[at] = Memory(fd, size)
            finally:
                os.close(fd)
        if files and not self._file_told:
            self._file_told = True
            self._note("the system gives no shared memory without a name (memfd_create): batches of worker processes go through files in "
                       "the temporary folder, which is slower")
        lending = {at: w.lender.lend(at, size) for at, size in lent.items()}
        if isinstance(where, tuple):
            data = bytes(w.lender.memories[where[0]].bytes_at(0, where[1]))
            w.lender.idle.append(where[0])
        else:
            data = where
        self._keep(w, number, (unpack(data, lending.__getitem__), bad))

    def _keep(self, w: _Worker, number: int, result: Any) -> None:
        """The result of a task, until it is asked for."""
        w.in_hand.remove(number)
        self._results[number] = result
        if number not in self._tasks:  # it was dropped
            self._results.pop(number, None)

    # ------------------------------------------------------------------ ends

    def _died(self, w: _Worker) -> None:
        """A worker's end is the result of the task that it had begun; others may come to theirs."""
        e = self._death_of(w)
        self._workers.remove(w)
        w.conn.close()
        if w.page is None:
            raise e
        if not w.in_hand or w.in_hand[0] not in self._tasks:
            self._note("%s; nobody waits for that, and another one takes its place" % e)
        else:
            self._results[w.in_hand[0]] = e
        self._pending.extendleft(reversed(w.in_hand[1:]))

    def _death_of(self, w: _Worker) -> WorkerError:
        w.process.join(2)
        code, sample = w.process.exitcode, w.sample()
        if code is not None and code < 0:
            try:
                name = signal.Signals(-code).name
            except ValueError:
                name = "signal %d" % -code
            how = "was ended by %s" % name
            hint = {"SIGKILL": "; the system does that where memory is short (fewer workers or smaller batches take less)",
                    "SIGSEGV": "; num_workers=0 and `python -X faulthandler` show where",
                    "SIGBUS": "; a file was cut while it was mapped, or memory for it is short"}.get(name, "")
        else:
            how, hint = "ended with status %s" % code, ""
        if w.page is None:
            hint = (". Its own message stands above. A script that starts workers by \"%s\" begins them in `if __name__ == \"__main__\":`, and "
                    "everything they need can be imported" % self._how if self._how != "fork" else "")
            at = "before its first sample"
        elif sample is not None:
            at = "while it made sample %d" % sample
        else:
            numbers = [k for n in w.in_hand if n in self._tasks for k in self._tasks[n].numbers()][:8]
            at = "while it put a batch together (samples %s, ...)" % ", ".join(map(str, numbers)) if numbers else "between two batches"
        e = WorkerError("worker process %d (pid %d) %s %s%s" % (w.number, w.process.pid, how, at, hint))
        e.sample = sample
        return e

    def _late(self, number: int) -> None:
        having = next((w for w in self._workers if number in w.in_hand), None)
        sample = having.sample() if having else None
        e = WorkerError("a batch took longer than timeout=%g seconds%s" % (
            self._timeout, "" if sample is None else "; worker process %d is at sample %d" % (having.number, sample)))  # type: ignore[union-attr]
        e.sample = sample
        self.stop()
        raise e

    def stop(self) -> None:
        """Workers end; the next batch begins them anew."""
        if self._pid != os.getpid():
            return
        with self._lock:
            workers, self._workers = self._workers, []
            self._tasks.clear()
            self._pending.clear()
            self._dropped.clear()
            self._results.clear()
            for w in workers:
                w.conn.close()
            until = time.monotonic() + _GRACE_S
            for w in workers:
                w.process.join(max(0, until - time.monotonic()))
            for how in ("terminate", "kill"):
                left = [w for w in workers if w.process.is_alive()]
                for w in left:
                    getattr(w.process, how)()
                for w in left:
                    w.process.join(0.3)

    def close(self) -> None:
        if self._pid == os.getpid():
            self._closed = True
            self.stop()


class _Failed:
    def __init__(self, sample: Optional[int], where: str, error: Optional[BaseException], trace: str) -> None:
        self.sample, self.where, self.error, self.trace = sample, where, error, trace


def raise_failed(result: Any) -> Any:
    """The batch of a result, or what its making raised."""
    if isinstance(result, _Failed):
        raise_of(result.sample, result.where, result.error, result.trace)
    return result[0]


class Here:
    """No workers: batches are made in the thread that takes them, when it does."""

    def __init__(self, job: Job) -> None:
        self.job, self.count = job, 0
        self._tasks: Dict[int, Task] = {}
        self._next = 0

    def submit(self, task: Task) -> int:
        number, self._next = self._next, self._next + 1
        self._tasks[number] = task
        return number

    def begin(self) -> None:
        """Nothing is made before it is asked for."""

    def take(self, number: int, check: Callable[[], None]) -> Tuple[Any, List[Any]]:
        check()
        task = self._tasks.pop(number)
        with generators_kept():
            try:
                return self.job.make(task, lambda sample: None)
            except Failure as f:
                raise_here(f)
        raise AssertionError

    def drop(self, numbers: List[int]) -> None:
        for n in numbers:
            self._tasks.pop(n, None)

    def stop(self) -> None:
        self._tasks.clear()

    close = stop


class Threads:
    """Worker threads, for a Python without the GIL. They end with the process, whatever they are in."""

    def __init__(self, job: Job, count: int) -> None:
        self.job, self.count = job, count
        self._asked: "queue.SimpleQueue[Optional[int]]" = queue.SimpleQueue()
        self._tasks: Dict[int, Task] = {}  # that somebody waits for
        self._results: Dict[int, Any] = {}
        self._come = threading.Condition()
        self._next, self._begun = 0, False

    def _run(self, asked: Any) -> None:
        for number in iter(asked.get, None):
            task = self._tasks.get(number)
            if task is None:
                continue

            def look(sample: int, number: int = number) -> None:
                if number not in self._tasks:
                    raise Dropped
            result: Any = None
            try:
                result = self.job.make(task, look)
            except Dropped:
                continue
            except BaseException as e:
                result = e if isinstance(e, Failure) else Failure(None, task.numbers(), e)
            with self._come:
                if number in self._tasks:
                    self._results[number] = result
                    self._come.notify_all()
            result = None

    def ask(self, method: str) -> Any:
        return getattr(self.job, method)()

    def submit(self, task: Task) -> int:
        if not self._begun:
            self._begun = True
            for k in range(self.count):
                threading.Thread(target=self._run, args=(self._asked,), name="millrace worker %d" % k, daemon=True).start()
        number, self._next = self._next, self._next + 1
        self._tasks[number] = task
        self._asked.put(number)
        return number

    def start(self) -> None:
        """submit() does it."""

    def wake(self) -> None:
        """Threads look for tasks themselves."""

    def begin(self) -> None:
        """They have begun."""

    def take(self, number: int, check: Callable[[], None]) -> Tuple[Any, List[Any]]:
        with self._come:
            while number not in self._results:
                check()
                if number not in self._tasks:
                    raise Lost
                self._come.wait(_SLICE_S)
            result = self._results.pop(number)
            del self._tasks[number]
        if isinstance(result, Failure):
            raise_here(result)
        return result  # type: ignore[no-any-return]

    def drop(self, numbers: List[int]) -> None:
        with self._come:
            for n in numbers:
                self._tasks.pop(n, None)
                self._results.pop(n, None)

    def stop(self) -> None:
        """Threads end after the sample that they have."""
        self.drop(list(self._tasks))
        asked, self._asked, self._begun = self._asked, queue.SimpleQueue(), False
        for _ in range(self.count):
            asked.put(None)

    close = stop
