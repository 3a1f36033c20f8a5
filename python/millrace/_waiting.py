"""Long calls of the library, with signals and callbacks on the way."""
from __future__ import annotations

import _thread
import threading
from typing import Any, Callable, List, Optional

_SLICE_S = 0.05


def run(call: Callable[[], int], stop: Callable[[], None], look: Optional[Callable[[], None]] = None) -> int:
    """What call() returns. It runs in a thread of its own, while this one looks at signals and calls look(); an exception from
    either stops the call, by stop(), and is raised when it has ended. What call() writes to must be its own to keep.

    Bare locks and threads: an exception may come between any two steps here, and the classes of `threading` have several steps."""
    if look is None and threading.current_thread() is not threading.main_thread():
        return call()  # signals are the main thread's
    begun: List[bool] = []
    result: List[Any] = []
    ended = _thread.allocate_lock()
    ended.acquire()

    def work() -> None:
        begun.append(True)
        try:
            result.append(call())
        except BaseException as e:  # none of the library's
            result.append(e)
        finally:
            ended.release()
    try:
        _thread.start_new_thread(work, ())
        while not ended.acquire(timeout=_SLICE_S):
            if look:
                look()
        if look:
            look()
    except BaseException:
        stop()
        while begun and not result:
            try:
                ended.acquire(timeout=_SLICE_S)
            except KeyboardInterrupt:
                continue  # it ends soon
        raise
    if isinstance(result[0], BaseException):
        raise result[0]
    return result[0]
