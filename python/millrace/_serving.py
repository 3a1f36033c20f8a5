"""A thread of Python that answers what threads of the library ask."""
from __future__ import annotations

import ctypes as C
import os
import threading
from typing import Any, Optional

from . import _library as _l


def text_of(e: BaseException) -> str:
    """Its text; its __str__ may be the caller's, and raise."""
    try:
        return str(e)
    except BaseException as another:
        return "(its __str__ raised %s)" % type(another).__name__


class Server:
    """One thread, made for it, that takes one request after the other (python/native/maker.c): the library's threads wait for the
    answer, and never call Python.

    pointer  of the queue, for those who ask; it lives as long as this
    failure  the first exception of a request, or None"""

    def __init__(self, name: str) -> None:
        self.failure: Optional[BaseException] = None
        self._name, self._pid = name, os.getpid()
        self.pointer = _l.quick.mrp_maker_create()
        if not self.pointer:
            raise MemoryError("no memory for a list of requests")

    def start(self) -> None:
        threading.Thread(target=self._run, name=self._name, daemon=True).start()

    def _begin(self) -> bool:
        """First of all, in that thread. False: it ends."""
        return True

    def _answer(self, number: int, request: C.c_void_p) -> None:
        raise NotImplementedError

    def _run(self) -> None:
        if self._begin():
            self._serve()

    def _serve(self) -> None:
        """Several threads may do so, where _answer() says that it can be called by them at the same time."""
        number, request = C.c_uint64(), C.c_void_p()
        while _l.native.mrp_maker_take(self.pointer, C.byref(number), C.byref(request)) == _l.OK:
            self._answer(number.value, request)

    def _fail(self, request: C.c_void_p, e: BaseException) -> None:
        """An exception that ends the run."""
        if self.failure is None:
            self.failure = e
        self._refuse(request, _l.ECANCELED, "%s: %s" % (type(e).__name__, text_of(e)))

    @staticmethod
    def _refuse(request: C.c_void_p, code: int, text: str) -> None:
        _l.native.mrp_maker_fail(request, code, text.encode("utf-8", "replace"))

    def take_failure(self) -> Optional[BaseException]:
        failure, self.failure = self.failure, None
        return failure

    def close(self) -> None:
        """Waiting callers return, and the thread ends after its current call. A second call is harmless."""
        if self._pid == os.getpid():
            _l.quick.mrp_maker_close(self.pointer)

    def __del__(self, destroy: Any = _l.quick.mrp_maker_destroy, pid: Any = os.getpid) -> None:
        if getattr(self, "pointer", None) and self._pid == pid():  # in a child of fork() threads seem to wait for ever
            destroy(self.pointer)
