"""A data set of files, one picture after the other: decoded by the library, for transforms of Python's own."""
from __future__ import annotations

import ctypes as C
import os
from typing import Any, Dict, List, Optional

from . import _library as _l
from ._arrays import DTYPES, Array, _Lease
from ._errors import ArgumentError
from ._loader import _PIXELS, Source, _count, _one_of, _pictures
from ._structs import mr_decode_config, mr_sample, mr_value

_TEXT, _BYTES, _INT, _FLOAT, _TENSOR = 8, 7, 4, 5, 6
_free = C.CDLL(None).free
_free.restype, _free.argtypes = None, [C.c_void_p]


class Decoded:
    """data[k] is (picture, label) or, with fields, (picture, label, {name: value}); a picture is one of PIL, where that is installed,
    else an array. Each process opens the files for itself.

    missing  the label of samples without a label"""

    def __init__(self, path: Any, of_source: Dict[str, Any], fields: List[str], channels: int, pixels: str, pictures: Any,
                 missing: int) -> None:
        self._path, self._of_source, self._missing = path, of_source, missing
        self._how = (_count("channels", channels, 0, 3), _one_of("pixels", _PIXELS, pixels), _pictures(pictures))
        self._source: Optional[Source] = None
        self._pid = 0
        info = self._opened().info
        self._count, self.key = info.count, "%016x" % info.fingerprint
        if info.image_field < 0:
            raise ArgumentError("%s has no pictures" % os.fsdecode(path))
        names = C.cast(info.class_names, C.POINTER(C.c_char_p)) if info.class_names else None
        self.classes = [names[k].decode("utf-8", "surrogateescape") for k in range(info.class_count)] if names else []
        there = [info.fields[k].name.decode("utf-8", "replace") for k in range(info.field_count)]
        for name in fields:
            if name not in there:
                raise ArgumentError("fields=%r: the data have the fields %s" % (name, ", ".join(there)))
        self._fields = {name: there.index(name) for name in fields}

    def _opened(self) -> Source:
        if self._source is None or self._pid != os.getpid():
            self._source, self._pid = Source(self._path, **self._of_source), os.getpid()
        return self._source

    def __len__(self) -> int:
        return self._count

    @property
    def targets(self) -> List[int]:
        from ._loader import targets_of
        return targets_of(self._opened(), self._count)

    def __getitem__(self, k: int) -> Any:
        if not -self._count <= k < self._count:
            raise IndexError("sample %d: the data have %d" % (k, self._count))
        source, sample, what = self._opened(), mr_sample(), _l.new_error()
        info, buffer, size = source.info, C.c_void_p(), C.c_size_t()
        try:
            rc = _l.lib.mr_source_read(source._pointer, k % self._count, C.byref(buffer), C.byref(size), C.byref(sample), C.byref(what))
            if rc != _l.OK:
                raise _l.failed(rc, what)
            label = sample.value[info.label_field].i if info.label_field >= 0 else -1
            out = (self._picture(source, k % self._count, sample.value[info.image_field]), label if label >= 0 else self._missing)
            return out + ({n: _value(sample.value[at]) for n, at in self._fields.items()},) if self._fields else out
        finally:
            _free(buffer)

    def _picture(self, source: Source, number: int, value: mr_value) -> Any:
        cfg = _l.fill(_l.lib.mr_decode_defaults_sized, mr_decode_config())
        cfg.channels, cfg.pixels, cfg.pictures = self._how
        lease, shape, what = _Lease(), (C.c_uint32 * 3)(), _l.new_error()
        rc = _l.native.mrp_decode_value(C.byref(value), None, C.byref(cfg), C.byref(lease.address), shape, C.byref(what))
        if rc != _l.OK:
            room = C.create_string_buffer(4096)
            path = _l.lib.mr_source_sample_path(source._pointer, number, room, len(room))
            what.file, what.sample = (path or source.info.path)[:511], number
            raise _l.failed(rc, what)
        pixels = Array(lease, _l.quick.mrp_batch_view(lease.address).contents.pixels, 1, tuple(shape)).numpy()
        try:
            from PIL import Image
        except ImportError:
            return pixels
        return Image.fromarray(pixels[:, :, 0] if shape[2] == 1 else pixels)

    @property
    def shown(self) -> str:
        return os.fsdecode(self._path)

    def __getstate__(self) -> Dict[str, Any]:
        return dict(self.__dict__, _source=None, _pid=0)

    def __repr__(self) -> str:
        return "Decoded(%s)" % self.shown


def _value(v: mr_value) -> Any:
    """A copy of its own."""
    if v.type == _INT:
        return v.i
    if v.type == _FLOAT:
        return v.f
    data = C.string_at(v.data, v.bytes) if v.bytes else b""
    if v.type == _TEXT:
        return data.decode("utf-8", "replace")
    if v.type != _TENSOR:
        return data
    import numpy
    name, kind = DTYPES[v.dtype][:2]
    if name == "bfloat16":
        bits = numpy.frombuffer(data, "<u2").astype("<u4") << 16
        return bits.view("<f4").reshape(tuple(v.dim[:v.ndim]))
    return numpy.frombuffer(bytearray(data), kind).reshape(tuple(v.dim[:v.ndim]))
