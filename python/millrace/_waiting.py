"""Long calls of the library, with signals and callbacks on the way."""
from __future__ import annotations

import threading
from typing import Any, Callable, Optional

_SLICE_S = 0.05


def run(call: Callable[[], int], stop: Callable[[], None], look: Optional[Callable[[], None]] = None) -> int:
    """What call() returns. It runs in a thread of its own, while this one looks at signals and calls look(); an exception from
    either stops the call, by stop(), and is raised when it has ended."""
    if look is None and threading.current_thread() is not threading.main_thread():
        return call()  # signals are the main thread's
    result: Any = []
    done = threading.Event()

    def work() -> None:
        try:
            result.append(call())
        finally:
            done.set()
    thread = threading.Thread(target=work, name="millrace", daemon=True)
    try:
        thread.start()
        while not done.wait(_SLICE_S):
            if look:
                look()
        thread.join()
        if look:
            look()
    except BaseException:
        stop()
        while thread.is_alive():
            try:
                thread.join()
            except KeyboardInterrupt:
                continue  # it ends soon
        raise
    return result[0]
