"""Batches that are finished before they are taken: the arguments of native/finish.c."""
from __future__ import annotations

import ctypes as C
import os
from typing import Any, Callable, List, Optional, Sequence, Tuple

from . import _library as _l
from ._errors import HeldError

U8, F16, BF16, F32 = 1, 6, 7, 8
KINDS = {"uint8": U8, "float16": F16, "bfloat16": BF16, "float32": F32}
AHEAD = 2  # batches finished ahead: one that is taken next, and one in the making
_FIELDS_MOST, _LENT_MOST = 4, 8
_ALIGN, _LEAST = 64, 3  # of finish.c


class mrp_finish(C.Structure):
    """mrp_finish of native.h."""
    _fields_ = [("height", C.c_uint32), ("width", C.c_uint32), ("channels", C.c_uint32), ("dtype", C.c_int), ("planar", C.c_int),
                ("mean", C.c_float * 4), ("std", C.c_float * 4), ("ignore", C.c_int64), ("classes", C.c_uint32), ("ahead", C.c_uint32),
                ("bytes_most", C.c_uint64), ("field_count", C.c_uint32), ("field_bytes", C.c_uint64 * _FIELDS_MOST), ("keep", C.c_uint32),
                ("lent_count", C.c_uint32), ("lent_bytes", C.c_uint64), ("lent", C.c_void_p * _LENT_MOST)]


def _usable() -> int:
    """Bytes that this process may use."""
    most = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for name in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            with open(name) as f:
                most = min(most, int(f.read()))
        except (OSError, ValueError):
            pass
    return most


class Finish:
    """The form that batches of a loader get.

    dtype   of pixels: U8, F16, BF16, F32
    planar  (n, channels, height, width), else (n, height, width, channels)
    kept    pixels stay in the loader's own memory, whose size `hold=` sets: U8, not planar
    memory  function of a number of bytes: memory for batches, an object with data_ptr(), such as a pinned tensor. None: it is usual memory"""

    def __init__(self, loader: Any, dtype: int, planar: bool, mean: Sequence[float] = (), std: Sequence[float] = (), ignore: int = -1,
                 classes: int = 0, kept: bool = False, memory: Optional[Callable[[int], Any]] = None) -> None:
        self.dtype, self.planar, self.classes, self._memory = dtype, planar, classes, memory
        how = self.how = mrp_finish(dtype=dtype, planar=planar, ignore=ignore, classes=classes)
        self.address = C.addressof(how)
        if loader._shape:
            how.height, how.width, how.channels = loader._shape
        channels = how.channels
        how.mean[:channels], how.std[:channels] = (list(mean) or [0.0] * channels), (list(std) or [1.0] * channels)
        how.ahead = 0 if not loader._given["prefetch"] else 1 if kept else AHEAD
        how.keep = loader._hold if kept else 0
        how.bytes_most = loader._given["memory"] or max(0, _usable() // 2 - loader._memory)
        how.field_count = len(loader._field_shapes)
        for k, (_, kind, _, dims) in enumerate(loader._field_shapes):
            size = _l.element_bytes(kind)
            for d in dims:
                size *= d
            how.field_bytes[k] = size
        self.shape = (channels, how.height, how.width) if planar else (how.height, how.width, channels)
        self._samples = -(-loader.batch // loader.world)

    def _bytes(self) -> int:
        """Of a batch, where rows of fields have one length."""
        how, n = self.how, self._samples
        pixels = how.height * how.width * how.channels * _l.element_bytes(self.dtype)
        parts = [pixels, 4 * self.classes or 8, 4, 8, 8, 4, 4] + [how.field_bytes[k] for k in range(how.field_count)] + [4] * how.field_count
        return sum(-(-n * size // _ALIGN) * _ALIGN for size in parts)

    def lend(self) -> Tuple[mrp_finish, List[Any]]:
        """The settings and the memory of one run, enough for all its batches that are ready, in use and in
        the making."""
        if self._memory is None:
            return self.how, []
        how, size = mrp_finish.from_buffer_copy(self.how), self._bytes()
        lent = [self._memory(size) for _ in range(_LEAST + how.ahead + 1)]
        how.lent_count, how.lent_bytes, how.lent[:len(lent)] = len(lent), size, [m.data_ptr() for m in lent]
        return how, lent


class Finisher:
    """The thread of one run that makes batches ready."""

    def __init__(self) -> None:
        self.pointer = C.c_void_p()
        self.lent: List[Any] = []

    def open(self, loader: C.c_void_p, finish: Finish) -> None:
        what = _l.new_error()
        how, self.lent = finish.lend()
        rc = _l.native.mrp_finisher_open(C.byref(self.pointer), loader, C.byref(how), C.byref(what))
        if rc != _l.OK:
            raise _l.failed(rc, what)

    def held(self) -> int:
        return _l.quick.mrp_finisher_held(self.pointer, C.byref(C.c_uint64())) if self.pointer else 0

    def held_error(self, finish: Finish) -> HeldError:
        size = C.c_uint64()
        count = _l.quick.mrp_finisher_held(self.pointer, C.byref(size))
        return HeldError("%d batches are in use: their arrays (or tensors made of them) are still referenced, and their memory is not taken "
                         "from them. With ready batches they take %d MiB, of at most %d MiB: drop or copy what you keep of "
                         "earlier batches, or give more by memory= (bytes)" % (count, size.value >> 20, finish.how.bytes_most >> 20))

    def close(self) -> None:
        """Behind mr_loader_stop()."""
        pointer, self.pointer = self.pointer, C.c_void_p()
        if pointer:
            _l.native.mrp_finisher_close(pointer)
