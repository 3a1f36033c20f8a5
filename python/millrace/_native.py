"""The two libraries of this package, loaded."""
from __future__ import annotations

import ctypes as C
import os
from typing import Any

FOLDER = os.path.dirname(os.path.abspath(__file__))
CPYTHON = hasattr(C, "pythonapi")


def _refuse_sub_interpreters() -> None:
    if not CPYTHON or not hasattr(C.pythonapi, "PyInterpreterState_GetID"):
        return
    get, number = C.pythonapi.PyInterpreterState_Get, C.pythonapi.PyInterpreterState_GetID
    get.restype, get.argtypes = C.c_void_p, []
    number.restype, number.argtypes = C.c_int64, [C.c_void_p]
    if number(get()) != 0:
        raise ImportError("millrace does not work in a sub-interpreter: deleters of its arrays may run in any interpreter; import "
                          "it in the main one, or in a process of its own (multiprocessing with \"spawn\")")


_refuse_sub_interpreters()


def _path_of(name: str) -> str:
    folder = os.environ.get("MILLRACE_PYTHON_LIBRARIES")  # a build folder, for those who work on the library
    if folder:
        for place in (folder, os.path.join(folder, "python")):
            if os.path.exists(os.path.join(place, name)):
                return os.path.join(place, name)
    return os.path.join(FOLDER, "lib", name)


def _load(name: str, kind: Any) -> Any:
    try:
        return kind(_path_of(name))
    except OSError as e:
        raise ImportError("millrace: %s; the package is not whole, or not made for this system: install millrace-loader again" % e) \
            from None


# C calls through CDLL drop the GIL, through PyDLL they keep it: for what takes less than dropping it.
_quick = C.PyDLL if CPYTHON else C.CDLL
# The library itself is found through the native part, which needs it and is in the same folder.
lib = native = _load("libmillrace_python.so", C.CDLL)
quick_lib = quick = _load("libmillrace_python.so", _quick)
