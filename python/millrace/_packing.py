"""Python objects between processes: small ones as bytes, large tensors and arrays in shared memory.

    worker   Store.take() -> Memory, written by the worker     pack(object, store) -> bytes, [(memory number, new?)]
    parent   Mapped, mapped once and lent again and again      unpack(bytes, find) -> object over that memory

The memory has no name: it belongs to the processes that have it mapped, and is gone with the last of them, however they end."""
from __future__ import annotations

import ctypes as C
import io
import os
import pickle
import pickletools
import sys
import tempfile
import weakref
from collections import deque
from typing import Any, Callable, Deque, Dict, Iterator, List, Optional, Tuple

LARGE = 1 << 18  # bytes from which on a tensor or an array has shared memory of its own: a process may map 65,000 pieces
_PAGE = 4096
_libc = C.CDLL(None, use_errno=True)
_libc.mmap.restype, _libc.mmap.argtypes = C.c_void_p, [C.c_void_p, C.c_size_t, C.c_int, C.c_int, C.c_int, C.c_long]
_libc.munmap.restype, _libc.munmap.argtypes = C.c_int, [C.c_void_p, C.c_size_t]


class Memory:
    """Shared memory, mapped; its file needs no descriptor any more."""

    def __init__(self, fd: int, size: int) -> None:
        self.size = size
        address = _libc.mmap(None, size, 3, 1, fd, 0)  # to read and write, MAP_SHARED
        if address in (None, C.c_void_p(-1).value):
            code = C.get_errno()
            raise OSError(code, "%d bytes of shared memory cannot be mapped: %s" % (size, os.strerror(code)))
        self.address: int = address

    def bytes_at(self, offset: int, count: int) -> Any:
        """A writable buffer over a part, which keeps the mapping."""
        out = (C.c_char * count).from_address(self.address + offset)
        out._memory = self
        return out

    def __del__(self, unmap: Any = _libc.munmap) -> None:
        if getattr(self, "address", None):
            unmap(self.address, self.size)


def new_file(size: int) -> Tuple[int, bool]:
    """(descriptor of a file without a name, is it memory?). Where the system gives no such memory it is a temporary file."""
    fd, memory = -1, True
    try:
        fd = os.memfd_create("millrace")
    except (AttributeError, OSError):
        memory = False
        fd, path = tempfile.mkstemp(prefix="millrace-")
        os.unlink(path)
    try:
        os.posix_fallocate(fd, 0, size)  # missing memory is an error here, not SIGBUS later
    except OSError as e:
        os.close(fd)
        raise OSError(e.errno, "%d bytes of %s for a batch: %s" % (size, "shared memory" if memory else "a file in %s, in place of "
                                                                   "shared memory," % tempfile.gettempdir(), os.strerror(e.errno))) from None
    return fd, memory


class Store:
    """Memory of one worker. The parent returns lent memory by give_back()."""

    def __init__(self) -> None:
        self.memories: Dict[int, Memory] = {}
        self.free: List[int] = []
        self.new: List[Tuple[int, int, int]] = []  # (number, descriptor, size), which the parent has not been sent
        self.files = 0                             # the ones that are files
        self._next = 0

    def take(self, size: int) -> int:
        """The number of a memory of at least `size` bytes."""
        fits = [n for n in self.free if size <= self.memories[n].size <= 2 * size + _PAGE]
        if fits:
            number = min(fits, key=lambda n: self.memories[n].size)
            self.free.remove(number)
            return number
        room = -(-(size + size // 16) // _PAGE) * _PAGE  # the next one may be a little larger
        fd, is_memory = new_file(room)
        number, self._next = self._next, self._next + 1
        try:
            self.memories[number] = Memory(fd, room)
        except BaseException:
            os.close(fd)
            raise
        self.new.append((number, fd, room))
        self.files += not is_memory
        return number

    def give_back(self, numbers: List[int], dropped: List[int]) -> None:
        self.free += numbers
        for n in dropped:
            del self.memories[n]


class Lender:
    """The parent's view of one worker's memory.

    idle  numbers of what nobody has any more"""

    def __init__(self) -> None:
        self.memories: Dict[int, Memory] = {}
        self.idle: Deque[int] = deque()  # appended to by the collector, in any thread
        self._watched: Dict[int, Any] = {}

    def lend(self, number: int, count: int) -> Any:
        """A buffer; when nobody holds it or arrays made of it, the memory is idle."""
        out = self.memories[number].bytes_at(0, count)
        key, idle, watched = id(out), self.idle, self._watched

        def gone(_: Any) -> None:
            watched.pop(key, None)
            idle.append(number)
        watched[key] = weakref.ref(out, gone)
        return out


# ---------------------------------------------------------------------- objects

def _torch() -> Any:
    return sys.modules.get("torch")


def _numpy() -> Any:
    return sys.modules.get("numpy")


def _as_subclass(tensor: Any, kind: Any, more: Dict[str, Any]) -> Any:
    out = tensor.as_subclass(kind)
    out.__dict__.update(more)
    return out


class _Packer(pickle.Pickler):
    def __init__(self, out: Any, store: Optional[Store], at: Dict[int, int]) -> None:
        super().__init__(out, pickle.HIGHEST_PROTOCOL)
        self._store, self._at, self.lent = store, at, {}  # type: Optional[Store], Dict[int, int], Dict[int, int]
        self._kept: List[Any] = []

    def persistent_id(self, obj: Any) -> Any:
        torch, numpy = _torch(), _numpy()
        if torch is not None and type(obj) is torch.Tensor and obj.layout is torch.strided and not obj.is_quantized:
            return self._tensor(torch, obj)
        if numpy is not None and type(obj) is numpy.ndarray and obj.dtype.kind in "biufc" and obj.nbytes >= LARGE and self._store:
            a = numpy.ascontiguousarray(obj)
            number = self._store.take(a.nbytes)
            C.memmove(self._store.memories[number].address, a.ctypes.data, a.nbytes)
            self._lend(number, a.nbytes)
            return "array", number, a.dtype.str, obj.shape
        return None

    def _tensor(self, torch: Any, t: Any) -> Any:
        if t.device.type != "cpu":
            raise TypeError("a tensor on %s: worker processes make tensors in host memory" % t.device)
        t = t.detach().resolve_conj().resolve_neg()
        last = t.dim() == 4 and not t.is_contiguous() and t.is_contiguous(memory_format=torch.channels_last)
        kind, plain = str(t.dtype)[6:], (t.permute(0, 2, 3, 1) if last else t).contiguous()
        shape, size = tuple(plain.shape), plain.numel() * plain.element_size()
        number = self._at.get(plain.data_ptr()) if size else None
        if number is None and (size < LARGE or not self._store):
            return "bytes", C.string_at(plain.data_ptr(), size) if size else b"", kind, shape, last
        if number is None:
            number = self._store.take(size)  # type: ignore[union-attr]
            C.memmove(self._store.memories[number].address, plain.data_ptr(), size)  # type: ignore[union-attr]
        self._lend(number, size)
        return "tensor", number, kind, shape, last

    def _lend(self, number: int, size: int) -> None:
        self.lent[number] = max(size, self.lent.get(number, 0))

    def reducer_override(self, obj: Any) -> Any:
        torch = _torch()
        if torch is not None and isinstance(obj, torch.Tensor) and type(obj) is not torch.Tensor \
                and type(obj).__reduce_ex__ is torch.Tensor.__reduce_ex__ and not isinstance(obj, torch.nn.Parameter):
            return _as_subclass, (obj.detach().as_subclass(torch.Tensor), type(obj), dict(obj.__dict__))
        return NotImplemented


def _count(shape: Tuple[int, ...]) -> int:
    n = 1
    for d in shape:
        n *= d
    return n


class _Unpacker(pickle.Unpickler):
    def __init__(self, data: Any, find: Callable[[int], Any]) -> None:
        super().__init__(data)
        self._find = find

    def persistent_load(self, token: Any) -> Any:
        if token[0] == "array":
            import numpy
            _, number, kind, shape = token
            dtype = numpy.dtype(kind)
            return numpy.frombuffer(self._find(number), dtype, _count(shape)).reshape(shape)
        import torch
        how, where, kind, shape, last = token
        dtype = getattr(torch, kind)
        if how == "bytes":
            if not where:
                return torch.empty(shape, dtype=dtype)
            flat = torch.frombuffer(bytearray(where), dtype=dtype)
        else:
            flat = torch.frombuffer(self._find(where), dtype=dtype, count=_count(shape))
        out = flat.view(shape)
        return out.permute(0, 3, 1, 2) if last else out


def pack(obj: Any, store: Optional[Store], at: Optional[Dict[int, int]] = None) -> Tuple[bytes, Dict[int, int]]:
    """(bytes, {number of memory: bytes in it}). at: by address, memory in which tensors were already made; memory that is not
    part of the object is free again."""
    out, at = io.BytesIO(), at or {}
    packer = _Packer(out, store, at)
    try:
        packer.dump(obj)
    except BaseException:
        if store:
            store.free += set(packer.lent) | set(at.values())
        raise
    if store:
        store.free += [n for n in at.values() if n not in packer.lent]
    return out.getvalue(), packer.lent


def unpack(data: Any, find: Callable[[int], Any]) -> Any:
    """find(number) gives the buffer over that memory."""
    return _Unpacker(io.BytesIO(data), find).load()


_BESIDE = {"PROTO", "FRAME", "MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT"}  # opcodes that leave the top of the stack as it is
_GETS = {"GET", "BINGET", "LONG_BINGET"}


def _imports_of(payload: bytes) -> Iterator[Tuple[str, str]]:
    """(module, name) of each class and function that loading a pickle imports."""
    top: Deque[Any] = deque((None, None), 2)  # of the stack; None: not a text
    memo: Dict[int, Any] = {}
    for code, argument, _ in pickletools.genops(payload):
        if code.name == "GLOBAL":
            module, name = argument.split(" ", 1)
            yield module, name
        elif code.name == "STACK_GLOBAL" and None not in top:
            yield top[0], top[1]
        if code.name not in _BESIDE:
            top.append(memo.get(argument) if code.name in _GETS else argument if isinstance(argument, str) and code.name != "GLOBAL" else None)
        elif code.name not in ("PROTO", "FRAME"):
            memo[len(memo) if argument is None else argument] = top[-1]


def of_a_session(payload: bytes) -> Optional[str]:
    """The first class or function in a pickle that a process which is not forked cannot import, since the program is a notebook, an
    interpreter at a terminal or `python -c`; None: there is none."""
    main = sys.modules.get("__main__")
    if getattr(main, "__file__", None) or getattr(main, "__spec__", None) or b"__main__" not in payload:
        return None
    return next((name for module, name in _imports_of(payload) if module == "__main__"), None)
