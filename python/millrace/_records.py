"""Record files from samples of Python's own."""
from __future__ import annotations

import ctypes as C
import os
import re
from collections.abc import Mapping
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

from . import _library as _l
from ._arrays import DTYPES
from ._errors import ArgumentError
from ._structs import mr_field, mr_output_config, mr_value, mr_writer_config

_JPEG, _PNG, _PIXELS, _INT, _FLOAT, _TENSOR, _BYTES, _TEXT, _IMAGE = range(1, 10)
_PLAIN = {"jpeg": _JPEG, "png": _PNG, "pixels": _PIXELS, "int": _INT, "float": _FLOAT, "bytes": _BYTES, "text": _TEXT,
          "image": _IMAGE}
_NAMES = {number: name for name, number in _PLAIN.items()}
_ELEMENTS = {DTYPES[k][0]: k for k in range(1, 10)}
_SHAPED = re.compile(r"(\w+)(?:\[\s*(\d+(?:\s*,\s*\d+)*)\s*\])?$")
_NATIVE = {DTYPES[k][1]: k for k in range(1, 10) if k != 7}  # bfloat16 is not a type of NumPy: found by its name
_MOST_NAME, _MOST_FIELDS, _MOST_DIMS = 63, 32, 8
_ASIDE = ("boxes", "box_labels")  # arrays whose number differs from picture to picture, by their names

EXPECTED = {_JPEG: "the bytes of a JPEG", _PNG: "the bytes of a PNG", _BYTES: "bytes", _TEXT: "a str",
            _INT: "a whole number of 64 bits", _FLOAT: "a number",
            _PIXELS: "an array of uint8, (height, width) or (height, width, 1 to 4 channels)",
            _IMAGE: "the bytes of a picture file, or an array of uint8, (height, width) or (height, width, 1 to 4 channels)"}


class Samples:
    """Samples with their schema and classes: write_records() and cache_records() take schema and classes from it.

    begin    a function that gives a new iterator over the samples each time
    schema   {name: kind}, as for write_records(); None: as the first sample is
    classes  names of the classes, in the order of their numbers; None: no names
    count    of samples, where that is known
    key      text that says which samples these are; another one, other samples. cache_records() goes by it"""

    def __init__(self, begin: Callable[[], Iterator[Any]], schema: Optional[Dict[str, str]] = None,
                 classes: Optional[Sequence[str]] = None, count: Optional[int] = None, key: Optional[str] = None) -> None:
        self._begin, self.schema, self.key = begin, schema, key
        self.classes = None if classes is None else list(classes)
        self.count = count

    def __iter__(self) -> Iterator[Any]:
        return self._begin()

    def __repr__(self) -> str:
        return "<millrace.Samples %s, schema %r>" % ("?" if self.count is None else self.count, self.schema)


class _Field:
    """A field of the schema: its name, its kind, and the row of the library."""
    __slots__ = ("name", "kind", "type", "dtype", "shape")

    def __init__(self, name: Any, kind: Any) -> None:
        if not isinstance(name, str) or not 1 <= len(name.encode("utf-8", "replace")) <= _MOST_NAME or "\0" in name:
            raise ArgumentError("schema: field %r: expected a name of 1 to %d bytes" % (name, _MOST_NAME))
        found = _SHAPED.match(kind) if isinstance(kind, str) else None
        word = found.group(1) if found else None
        if found is None or word not in _PLAIN and word not in _ELEMENTS:
            raise ArgumentError("schema: field %r has kind %r: expected one of %s, or a type of elements, with the shape that all "
                                "have or without (\"float32\", \"float32[2,3]\"): %s"
                                % (name, kind, ", ".join(sorted(_PLAIN)), ", ".join(_ELEMENTS)))
        shape = tuple(int(d) for d in found.group(2).split(",")) if found.group(2) else ()
        self.name, self.kind, self.shape = name, kind, shape
        self.type, self.dtype = _PLAIN.get(word, _TENSOR), _ELEMENTS.get(word, 0)
        if shape and (self.type != _PIXELS or len(shape) != 3) and (self.type != _TENSOR or len(shape) > _MOST_DIMS) or 0 in shape:
            raise ArgumentError("schema: field %r has kind %r: expected a shape without zeros, of an array or, with three "
                                "numbers, of pixels" % (name, kind))

    @property
    def varies(self) -> bool:
        return self.type not in (_INT, _FLOAT) and not self.shape

    def expected(self) -> str:
        if self.type == _TENSOR:
            return "an array of %s%s" % (DTYPES[self.dtype][0], ", shape %s" % (self.shape,) if self.shape else "")
        if self.type == _PIXELS and self.shape:
            return "an array of uint8, shape %s" % (self.shape,)
        return EXPECTED[self.type]

    def fill(self, row: mr_field) -> None:
        row.name, row.type, row.dtype, row.ndim = self.name.encode(), self.type, self.dtype, len(self.shape)
        row.dim[:len(self.shape)] = self.shape


class _Wrong(Exception):
    """Describes a value that does not fit."""


def _sniff(data: bytes) -> int:
    return _l.quick_lib.mr_image_sniff(data, len(data))


def _is_bytes(value: Any) -> bool:
    return isinstance(value, (bytes, bytearray, memoryview))


def _shown(value: Any) -> str:
    """A value, for messages."""
    if hasattr(value, "getbands") and hasattr(value, "size"):
        return "a picture of mode %s, %d x %d" % (value.mode, value.size[0], value.size[1])
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if dtype is not None and isinstance(shape, tuple) or hasattr(value, "__array_interface__"):
        return "%s of %s, shape %s" % (type(value).__name__, dtype, tuple(shape or ()))
    if _is_bytes(value):
        return "%d bytes that begin with %r" % (len(_plain(value)), _plain(value)[:8])
    text = repr(value)
    return "%s %s" % (type(value).__name__, text if len(text) <= 60 else text[:57] + "...")


class _Row:
    """Values of one sample for the library, and what keeps their memory."""

    def __init__(self, fields: List[_Field], classes: Optional[Dict[str, int]]) -> None:
        self.fields, self.classes = fields, classes
        self.values = (mr_value * len(fields))()
        self.kept: List[Any] = []

    def take(self, k: int, value: Any) -> None:
        """Or _Wrong."""
        f, v = self.fields[k], self.values[k]
        if f.type == _INT:
            v.type, v.i = _INT, self._whole(f, value)
        elif f.type == _FLOAT:
            v.type, v.f = _FLOAT, _number(value)
        elif f.type == _TEXT:
            if not isinstance(value, str):
                raise _Wrong(_shown(value))
            self._bytes(v, _TEXT, _utf8(value))
        elif f.type == _BYTES:
            if isinstance(value, str) and f.name == "sample.name":
                value = os.fsencode(value)
            if not _is_bytes(value):
                raise _Wrong(_shown(value))
            self._bytes(v, _BYTES, _plain(value))
        elif f.type == _TENSOR:
            self._array(v, _TENSOR, value, f.dtype, f.shape)
        elif _is_bytes(value):
            data = _plain(value)
            kind = _sniff(data) if f.type != _PIXELS else 0
            if not kind or f.type not in (_IMAGE, kind):
                raise _Wrong("a %s" % _NAMES[kind].upper() if kind else _shown(value))
            self._bytes(v, kind, data)
        elif f.type in (_PIXELS, _IMAGE):
            self._array(v, _PIXELS, value, 1, f.shape)
        else:
            raise _Wrong(_shown(value))

    def _whole(self, f: _Field, value: Any) -> int:
        if isinstance(value, str) and f.name == "label" and self.classes is not None:
            if value not in self.classes:
                raise _Wrong("class %r, which is not one of the %d" % (value, len(self.classes)))
            return self.classes[value]
        try:
            n = _scalar(value).__index__()
        except (AttributeError, TypeError):
            raise _Wrong(_shown(value)) from None
        if not -2**63 <= n < 2**63:
            raise _Wrong(_shown(value))
        return n

    def _bytes(self, v: mr_value, kind: int, data: bytes) -> None:
        holder = C.c_char_p(data)
        self.kept.append(holder)
        v.type, v.bytes, v.ndim, v.data = kind, len(data), 0, C.cast(holder, C.c_void_p).value

    def _array(self, v: mr_value, kind: int, value: Any, dtype: int, shape: Tuple[int, ...]) -> None:
        found, address, dims, kept = _memory(value, dtype)
        if found != dtype:
            raise _Wrong(_shown(value))
        if kind == _PIXELS:
            if _is_planar(dims):
                import numpy
                kept = numpy.ascontiguousarray(numpy.asarray(kept).transpose(1, 2, 0))
                address, dims = kept.ctypes.data, tuple(kept.shape)
            dims = dims + (1,) if len(dims) == 2 else dims
            if len(dims) != 3 or not 1 <= dims[2] <= 4 or 0 in dims:
                raise _Wrong(_shown(value))
        if shape and dims != shape or len(dims) > _MOST_DIMS:
            raise _Wrong(_shown(value))
        count = 1
        for d in dims:
            count *= d
        self.kept.append(kept)
        v.type, v.dtype, v.planes, v.ndim = kind, dtype if kind == _TENSOR else 0, 0, len(dims)
        v.dim[:len(dims)] = dims
        v.data, v.bytes = address, count * DTYPES[dtype][3] // 8


def _plain(value: Any) -> bytes:
    return value if isinstance(value, bytes) else memoryview(value).tobytes()


def _utf8(value: str) -> bytes:
    try:
        return value.encode("utf-8")
    except UnicodeEncodeError:
        raise _Wrong("%s, which is no text of Unicode" % _shown(value)) from None


def _scalar(value: Any) -> Any:
    """What an array without dimensions holds; anything else as it is."""
    return value.item() if getattr(value, "shape", None) == () and hasattr(value, "item") else value


def _number(value: Any) -> float:
    value = _scalar(value)
    if isinstance(value, (str, bytes, bytearray)) or not hasattr(value, "__float__") or getattr(value, "shape", ()) != ():
        raise _Wrong(_shown(value))
    return float(value)


def _interface(value: Any, dtype: int) -> Any:
    """Something with __array_interface__: of lists one of the elements that are expected."""
    mode = getattr(value, "mode", None)
    if isinstance(mode, str) and hasattr(value, "getbands") and mode not in ("L", "RGB"):
        raise _Wrong("a picture of mode %s: %s, or give its file's bytes" % (
            mode, "make one of 8 bits of it" if mode[0] in "IF" else "convert(\"RGB\") it"))
    if hasattr(value, "__array_interface__") or value is None or isinstance(value, (str, bytes, int, float, Mapping)):
        return value
    import numpy
    a = numpy.asarray(value)
    if isinstance(value, (list, tuple)) and dtype in DTYPES and dtype != 7 and a.dtype.kind in "iufb":
        wanted = numpy.dtype(DTYPES[dtype][1])
        if a.size == 0 or _holds(wanted, a):
            return a.astype(wanted)
    return a


def _holds(wanted: Any, a: Any) -> bool:
    """Are the numbers of `a` ones of the type that is wanted? Fractions of floats are rounded."""
    import numpy
    if wanted.kind != "f":
        limits = numpy.iinfo(wanted)
        return a.dtype.kind in "iub" and int(a.min()) >= limits.min and int(a.max()) <= limits.max
    with numpy.errstate(over="ignore"):
        return bool((numpy.isfinite(a.astype(wanted)) == numpy.isfinite(a)).all())


def _memory(value: Any, dtype: int) -> Tuple[int, int, Tuple[int, ...], Any]:
    """(element type of the library or 0, address, shape, what keeps the memory) of an array, its elements one after the other."""
    value = _interface(value, dtype)
    interface = getattr(value, "__array_interface__", None)
    if not isinstance(interface, dict):
        raise _Wrong(_shown(value))
    name = str(getattr(value, "dtype", ""))
    found = 7 if name == "bfloat16" else _NATIVE.get(interface["typestr"], 0)
    data = interface.get("data")
    if interface.get("strides") is not None or not isinstance(data, tuple) or (not found and interface["typestr"][0] == ">"):
        import numpy
        a = numpy.asarray(value)
        value = numpy.ascontiguousarray(a, dtype=a.dtype.newbyteorder("=")).reshape(a.shape)
        interface = value.__array_interface__
        found = found or _NATIVE.get(interface["typestr"], 0)
        data = interface["data"]
    return found, data[0], tuple(interface["shape"]), value


# ---------------------------------------------------------------------- schemas

def _named(sample: Any, fields: Optional[List[str]]) -> Mapping:
    """A sample by names of fields."""
    if isinstance(sample, Mapping):
        return sample
    if isinstance(sample, tuple):
        names = fields or ["image", "label"][:len(sample)]
        if len(sample) != len(names):
            raise _Wrong("a tuple of %d, expected %d: %s" % (len(sample), len(names), ", ".join(names)))
        return dict(zip(names, sample))
    names = fields or ["image"]
    if len(names) != 1:
        raise _Wrong("%s, expected a dict or a tuple of %d: %s" % (_shown(sample), len(names), ", ".join(names)))
    return {names[0]: sample}


def _is_planar(shape: Tuple[int, ...]) -> bool:
    """(channels, height, width), as torch has pictures: the other way round there would be too many channels."""
    return len(shape) == 3 and shape[0] in (1, 3, 4) and shape[2] > 4


def _kind_of(name: str, value: Any, classes: bool) -> str:
    if _is_bytes(value):
        return "image" if name != "sample.name" and _sniff(_plain(value)) else "bytes"
    if isinstance(value, str):
        if name == "label":
            if not classes:
                raise _Wrong("%s: say with classes= what number each has" % _shown(value))
            return "int"
        return "bytes" if name == "sample.name" else "text"
    value = _scalar(value)
    if isinstance(value, bool) or (hasattr(value, "__index__") and not hasattr(value, "__len__")):
        return "int"
    if isinstance(value, float):
        return "float"
    found, _, shape, _ = _memory(value, 0)
    if not found:
        raise _Wrong("%s: expected elements of %s" % (_shown(value), ", ".join(_ELEMENTS)))
    if name == "image" and found == 1 and len(shape) in (2, 3):
        given = shape
        if _is_planar(shape):
            shape = shape[1:] + shape[:1]
        shape = shape if len(shape) == 3 else shape + (1,)
        if not 1 <= shape[2] <= 4:
            raise _Wrong("%s of uint8, shape %s; expected a picture: (height, width), (height, width, channels) or (channels, height, width), of 1, 3 "
                         "or 4 channels. Under another name than \"image\" arrays have any shape; millrace.torch.Loader without augment=, dtype= and "
                         "memory_format= delivers them as they are" % (type(value).__name__, given))
        return "pixels[%d,%d,%d]" % shape
    words = name.split(".")
    apart = words[0] in _ASIDE or (found == 1 and any(w.startswith(("mask", "seg")) for w in words))
    fixed = len(shape) > 1 and not apart
    return DTYPES[found][0] + ("[%s]" % ",".join(map(str, shape)) if fixed else "")


def _infer(sample: Any, classes: bool) -> Dict[str, str]:
    schema: Dict[str, str] = {}
    name = None
    try:
        for name, value in _named(sample, None).items():
            schema[name] = _kind_of(name, value, classes)
    except _Wrong as e:
        raise ArgumentError("sample 0%s: found %s" % (", field %r" % name if name else "", e)) from None
    return schema


def _fields_of(schema: Mapping) -> List[_Field]:
    """In the order of the file: the only one of differing length, if it is an array, stands last, so that lengths are known
    without reading."""
    if not isinstance(schema, Mapping) or not 1 <= len(schema) <= _MOST_FIELDS:
        raise ArgumentError("schema=%r: expected a dict of 1 to %d fields, {name: kind}" % (schema, _MOST_FIELDS))
    fields = [_Field(name, kind) for name, kind in schema.items()]
    varied = [f for f in fields if f.varies]
    if len(varied) == 1 and varied[0].type == _TENSOR:
        fields.sort(key=lambda f: f is varied[0])
    return fields


def _wrong(number: int, text: str) -> ArgumentError:
    e = ArgumentError("sample %d%s" % (number, text))
    e.sample = number
    return e


class Taker:
    """Samples of a schema into values of the library."""

    def __init__(self, fields: List[_Field], names: List[str], classes: Optional[List[str]], inferred: bool) -> None:
        self.fields, self._names, self._inferred = fields, names, inferred
        self._place = {f.name: k for k, f in enumerate(fields)}
        self._row = _Row(fields, None if classes is None else {name: k for k, name in enumerate(classes)})
        self._rows = (mr_field * len(fields))()
        for f, row in zip(fields, self._rows):
            f.fill(row)
        self._classes = classes and (C.c_char_p * len(classes))(*[c.encode("utf-8", "surrogateescape") for c in classes])

    def settle(self, cfg: Any) -> None:
        """Fields and classes into settings of the library; their memory is this one's."""
        cfg.field_count, cfg.fields = len(self._rows), self._rows
        if self._classes:
            cfg.class_count, cfg.class_names = len(self._classes), C.cast(self._classes, C.POINTER(C.c_char_p))

    def take(self, number: int, sample: Any) -> Any:
        """The values of sample `number`, which stay until the next one; an ArgumentError names number, field, found, expected."""
        row, name = self._row, ""
        row.kept.clear()
        try:
            values = _named(sample, self._names)
        except _Wrong as e:
            raise _wrong(number, ": found %s" % e) from None
        if values.keys() != self._place.keys():
            missing = [n for n in self._names if n not in values]
            more = [str(n) for n in values if n not in self._place]
            raise _wrong(number, ": %s; expected fields %s%s" % (
                "; ".join(["field %r is missing" % n for n in missing] + ["field %r is not in the schema" % n for n in more]),
                ", ".join(self._names), self._first()))
        try:
            for name, k in self._place.items():
                row.take(k, values[name])
        except _Wrong as e:
            raise _wrong(number, ", field %r: found %s; expected %s%s"
                         % (name, e, row.fields[self._place[name]].expected(), self._first())) from None
        return row.values

    def _first(self) -> str:
        return " (as sample 0 has it; schema= says otherwise)" if self._inferred else ""


class _Writer:
    """A record file in the making."""

    def __init__(self, path: Any, taker: Taker, force: bool, verify: bool, provenance: Optional[str]) -> None:
        self.pointer, self._taker = C.c_void_p(), taker
        self.count, self.what = 0, _l.new_error()
        self._path = _l.encode(path)
        cfg = self._cfg = _l.fill(_l.lib.mr_writer_defaults_sized, mr_writer_config())
        taker.settle(cfg)
        cfg.force, cfg.verify = force, verify
        cfg.provenance = provenance.encode() if provenance else None

    def open(self) -> None:
        self._done(_l.lib.mr_writer_open(C.byref(self.pointer), self._path, C.byref(self._cfg), None, C.byref(self.what)))

    def _done(self, rc: int) -> None:
        if rc != _l.OK:
            raise _l.failed(rc, self.what)

    def append(self, sample: Any) -> None:
        values = self._taker.take(self.count, sample)
        self._done(_l.lib.mr_writer_append(self.pointer, self.count, values, C.byref(self.what)))
        self.count += 1

    def finish(self) -> int:
        """Bytes of the records."""
        size = _l.lib.mr_writer_bytes(self.pointer)
        pointer, self.pointer = self.pointer, C.c_void_p()  # it is gone whatever happens
        self._done(_l.lib.mr_writer_finish(pointer, C.byref(self.what)))
        return size

    def give_up(self) -> None:
        pointer, self.pointer = self.pointer, C.c_void_p()
        _l.lib.mr_writer_abort(pointer, False)


def _check_place(path: Any, force: bool) -> None:
    cfg, what = _l.fill(_l.lib.mr_output_defaults_sized, mr_output_config()), _l.new_error()
    cfg.force = force
    rc = _l.lib.mr_output_check(_l.encode(path), C.byref(cfg), C.byref(what))
    if rc != _l.OK:
        raise _l.failed(rc, what)


def _classes_of(classes: Any) -> Optional[List[str]]:
    if classes is None:
        return None
    if isinstance(classes, (str, bytes)):
        raise ArgumentError("classes=%r: expected a list of names" % (classes,))
    out = list(classes)
    for k, name in enumerate(out):
        if not isinstance(name, str) or "\0" in name:
            raise ArgumentError("classes: name %d is %r: expected a str" % (k, name))
    if len(set(out)) != len(out):
        raise ArgumentError("classes: %r is there more than once" % next(n for n in out if out.count(n) > 1))
    return out


def _each(samples: Any) -> Iterator[Any]:
    """By their numbers, where there is no other way (a PyTorch data set)."""
    if not hasattr(samples, "__iter__") and hasattr(samples, "__getitem__") and hasattr(samples, "__len__"):
        return (samples[k] for k in range(len(samples)))
    return iter(samples)


def write_records(path: Any, samples: Iterable[Any], schema: Optional[Dict[str, str]] = None, *,
                  classes: Optional[Sequence[str]] = None, force: bool = False, verify: bool = True,
                  provenance: Optional[str] = None) -> Dict[str, int]:
    """Samples of Python's own into a record file, which Loader and everything else here read.

        millrace.write_records("train.mrec", ((jpeg_bytes, k) for jpeg_bytes, k in pictures), classes=["cat", "dog"])

    path        of the file to make. It is written under another name and renamed when it is whole: after an exception, from
                `samples` or of a sample that does not fit, nothing is there
    samples     any iterable, gone through once, in this thread, or something with __len__ and __getitem__ (a PyTorch data set). A
                sample is a dict, {name: value}; a tuple, (image, label) or as long as the schema; or an image alone. A loader trains
                on the fields "image" and "label"; "sample.name" is what batch.names gives; others are delivered by
                Loader(fields=[name])
    schema      {name: kind}, the fields that every sample has:
                  "image"              bytes of a picture file (JPEG, PNG, GIF, BMP, WebP, TIFF, HEIC, AVIF), or pixels: an array of uint8, (height, width[, channels]) or, with
                                       1, 3 or 4 channels, as torch has it, (channels, height, width)
                  "jpeg", "png"        bytes of this one only
                  "pixels"             an array of uint8; "pixels[32,32,3]": all of this size, then gray ones stay gray
                  "int", "float"       a number of 64 bits; of "label" with `classes` also the name of a class
                  "text", "bytes"      str, bytes
                  "float32", ...       an array with these elements: uint8 int8 int16 int32 int64 float16 bfloat16 float32
                                       float64; of one dimension and any length, which may differ
                  "float32[2,3]"       all of this shape
                None: as the FIRST sample has it. Pixels are then all of its size, arrays of two and more dimensions all of its
                shape, arrays of one dimension of any length; "boxes", "box_labels" and masks of any shape
    classes     names of the classes, in the order of their numbers; then labels are below their count
    force       a file that is there may be replaced; else it is an ExistsError, before the first sample is asked for
    verify      read the whole file back before it gets its name
    provenance  a text to keep in the file

    Nothing is converted in silence: an array of other elements than the schema says is an error, which names the number of the
    sample, the field, the found and the expected value. Only lists and tuples of numbers become arrays of the expected type,
    if that holds them. Pictures are not decoded: verify() does that, and convert() of the file adds entry points.

    Gives {"records": ..., "bytes_out": ...}."""
    if isinstance(samples, (str, bytes, os.PathLike)):
        raise ArgumentError("samples=%r: expected samples; convert() takes data sets that are files" % (samples,))
    if isinstance(samples, Samples):
        schema = samples.schema if schema is None else schema
        classes = samples.classes if classes is None else classes
    names = _classes_of(classes)
    fields = None if schema is None else _fields_of(schema)
    _check_place(path, bool(force))
    source = _each(samples)
    first: List[Any] = []
    inferred = schema is None
    if schema is None:
        try:
            first.append(next(source))
        except StopIteration:
            raise ArgumentError("there are no samples, so no schema follows from the first one: give schema=") from None
        schema = _infer(first[0], names is not None)
        fields = _fields_of(schema)
    assert fields is not None
    if names is not None and not any(f.name == "label" and f.type == _INT for f in fields):
        raise ArgumentError("classes= goes with a field \"label\" of kind \"int\"; the fields are: %s"
                            % ", ".join("%s (%s)" % (f.name, f.kind) for f in fields))
    writer = _Writer(path, Taker(fields, list(schema), names, inferred), bool(force), bool(verify), provenance)
    try:
        writer.open()
        while first:
            writer.append(first.pop())
        for sample in source:
            writer.append(sample)
        return {"records": writer.count, "bytes_out": writer.finish()}
    except BaseException:
        writer.give_up()
        raise
