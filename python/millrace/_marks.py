"""Has the program changed an object of its own since worker processes got copies of it?"""
from __future__ import annotations

import copyreg
import io
import pickle
import sys
import zlib
from types import FunctionType, MethodType, ModuleType
from typing import Any, List

MOST = 256 << 20  # bytes of an object's content that are compared
_HEAP = 1 << 9  # Py_TPFLAGS_HEAPTYPE: a class that was made by a class statement


class _TooMuch(Exception):
    pass


class _Sum(io.RawIOBase):
    """A file that keeps a checksum only."""

    def __init__(self) -> None:
        self.sum, self.left = 0, MOST

    def see(self, size: int) -> None:
        if size > self.left:
            raise _TooMuch

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        self.see(size)
        self.left -= size
        self.sum = zlib.crc32(data, self.sum)
        return size


def _seen(*content: Any) -> Any:
    """Stands for an object where its content is written."""
    return content


def _is_plain(kind: type) -> bool:
    """Is all that its objects hold in their __dict__?"""
    usual = kind.__reduce__ is object.__reduce__ and kind.__reduce_ex__ is object.__reduce_ex__
    return usual and all(c.__flags__ & _HEAP and not c.__dict__.get("__slots__") for c in kind.__mro__ if c is not object)


class _Content(pickle.Pickler):
    """Writes what objects hold. Of the caller's code nothing runs but a __reduce__() of its own."""

    def __init__(self, to: _Sum) -> None:
        super().__init__(to, 5)
        self._to = to

    def reducer_override(self, value: Any) -> Any:
        kind, numpy, torch = type(value), sys.modules.get("numpy"), sys.modules.get("torch")
        if value is _seen:
            return NotImplemented
        if kind is FunctionType:
            cells = [c.cell_contents for c in value.__closure__ or () if _is_set(c)]
            return _seen, (value.__module__, value.__qualname__, id(value.__code__), value.__defaults__, value.__kwdefaults__, cells)
        if kind is MethodType:
            return _seen, (value.__func__, value.__self__)
        if isinstance(value, (type, ModuleType)):
            return _seen, (id(value),)
        if torch is not None and isinstance(value, torch.Tensor):
            if value.device.type != "cpu" or value.layout != torch.strided or value.numel() == 0:
                return _seen, (id(value), tuple(value.shape))
            self._to.see(value.numel() * value.element_size())
            flat = value.detach().as_subclass(torch.Tensor).contiguous().reshape(-1).view(torch.uint8)
            return _seen, (str(value.dtype), tuple(value.shape), pickle.PickleBuffer(flat.numpy()))
        if numpy is not None and isinstance(value, numpy.ndarray) and not value.dtype.hasobject:
            self._to.see(value.nbytes)
            return _seen, (value.dtype.str, value.shape, value.tobytes())
        if kind in copyreg.dispatch_table or kind.__module__ == "builtins" and kind.__flags__ & _HEAP == 0 and kind.__reduce_ex__ is not object.__reduce_ex__:
            return NotImplemented
        if hasattr(value, "__dict__") and _is_plain(kind):
            return _seen, (id(kind), value.__dict__)
        if kind.__module__.startswith("pyarrow"):  # it would be copied first
            self._to.see(next((n for n in (getattr(value, "nbytes", None), getattr(value, "size", None)) if isinstance(n, int)), 0))
        try:
            content = value.__reduce_ex__(4)
        except Exception:
            return _seen, (id(value),)  # a file, a lock, ...
        return (_seen, (id(value),)) if isinstance(content, str) else content  # a text: the name of a global


def _is_set(cell: Any) -> bool:
    try:
        return bool(cell.cell_contents is cell.cell_contents)
    except ValueError:
        return False


def mark_of(objects: List[Any]) -> Any:
    """A value that differs if what these objects hold differs: lists, dicts, arrays, tensors and objects, at any depth. Of content above MOST
    bytes, or that cannot be written (a chain of thousands of objects), each mark differs from every other one."""
    out: List[Any] = []
    for value in objects:
        to = _Sum()
        try:
            _Content(to).dump(value)
            out.append((id(value), to.sum))
        except Exception:  # too much of it, or something in it that cannot be written
            out.append((id(value), object()))
    return out
