"""Batches and their arrays: memory of the library that lives as long as anybody uses it."""
from __future__ import annotations

import ctypes as C
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from . import _library as _l
from ._errors import ArgumentError, UnsupportedError

# dtype of the library: name, type string of __array_interface__, code and bits of DLPack
DTYPES = {1: ("uint8", "|u1", 1, 8), 2: ("int8", "|i1", 0, 8), 3: ("int16", "<i2", 0, 16), 4: ("int32", "<i4", 0, 32),
          5: ("int64", "<i8", 0, 64), 6: ("float16", "<f2", 2, 16), 7: ("bfloat16", "<V2", 4, 16), 8: ("float32", "<f4", 2, 32),
          9: ("float64", "<f8", 2, 64), 10: ("uint64", "<u8", 1, 64)}
_U8, _I32, _I64, _F32, _U64 = 1, 4, 5, 8, 10
VERSIONED, COPY, PLANES = 1, 2, 4  # MRP_EXPORT_... of native.h
_LEGACY, _VERSIONED = b"dltensor", b"dltensor_versioned"  # static: a capsule keeps the pointer
_shapes: Dict[Tuple[int, ...], Any] = {}


def refuse_copy(what: Any) -> Any:
    """copy.copy(), copy.deepcopy() and pickle end up here."""
    raise TypeError("%s cannot be copied or pickled: %s" % (type(what).__name__, what._no_copy))


class _Lease:
    """One reference to a batch of the library. C writes the address here, so that no exception, which may come between any two
    steps of Python (Ctrl-C), can lose it."""
    __slots__ = ("address",)

    _no_copy = "it is a reference to memory of this process"

    def __init__(self) -> None:
        self.address = C.c_void_p()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return refuse_copy(self)

    def __del__(self, unref: Any = _l.quick.mrp_batch_unref) -> None:
        if self.address:
            unref(self.address)


class Array:
    """An array of a batch, in the library's memory, 64-byte aligned: nothing is copied.

    NumPy takes it by `numpy.asarray(a)` or `numpy.from_dlpack(a)`, PyTorch by `torch.from_dlpack(a)`, JAX by
    `jax.dlpack.from_dlpack(a)`; TensorFlow by `tf.experimental.dlpack.from_dlpack(a.__dlpack__())`. What they
    make of it keeps the batch's memory, which never changes while somebody has it; writing into it is allowed.

    shape   tuple of int
    dtype   "uint8", "int32", ...
    nbytes  in all"""
    __slots__ = ("_lease", "_data", "_kind", "shape", "__weakref__")
    _no_copy = "its memory is the loader's; copy what you keep, as by numpy.array(a) or torch.from_dlpack(a).clone()"

    def __init__(self, lease: _Lease, data: int, kind: int, shape: Tuple[int, ...]) -> None:
        self._lease, self._data, self._kind, self.shape = lease, data, kind, shape

    @property
    def dtype(self) -> str:
        return DTYPES[self._kind][0]

    @property
    def nbytes(self) -> int:
        n = DTYPES[self._kind][3] // 8
        for s in self.shape:
            n *= s
        return n

    @property
    def data_ptr(self) -> int:
        """Address of the first element."""
        return self._data

    def __reduce_ex__(self, protocol: Any) -> Any:
        return refuse_copy(self)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return "<millrace.Array %s %s>" % (self.dtype, self.shape)

    @property
    def __array_interface__(self) -> Dict[str, Any]:
        return {"version": 3, "shape": self.shape, "typestr": DTYPES[self._kind][1], "data": (self._data, False)}

    def __dlpack_device__(self) -> Tuple[int, int]:
        return 1, 0  # the processor

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None) -> Any:
        """A capsule, of DLPack 1.0 where max_version says that it is understood, else of the older kind."""
        if not _l.CPYTHON:
            raise BufferError("this interpreter has no capsules: use numpy.asarray(), which takes __array_interface__")
        if copy or dl_device not in (None, (1, 0)):
            raise BufferError("an array of a batch is handed out without a copy, in host memory; copy it afterwards")
        return self._capsule(VERSIONED if max_version is not None and max_version[0] >= 1 else 0)

    def _capsule(self, how: int) -> Any:
        """how: a sum of VERSIONED, COPY, PLANES."""
        shape = _shapes.get(self.shape)
        if shape is None:
            if len(_shapes) > 1000:  # rows of many widths
                _shapes.clear()
            shape = _shapes[self.shape] = (C.c_int64 * max(len(self.shape), 1))(*self.shape)
        _, _, code, bits = DTYPES[self._kind]
        tensor = _l.quick.mrp_export(self._lease.address, self._data, code, bits, len(self.shape), shape, how)
        if not tensor:
            raise MemoryError("no memory for a DLPack tensor")
        return _l.new_capsule(tensor, _VERSIONED if how & VERSIONED else _LEGACY, _l.CAPSULE_GONE)

    def numpy(self) -> Any:
        """As a NumPy array over the same memory."""
        import numpy
        return numpy.asarray(self)

    def _typed(self) -> Any:
        """The same, its elements of a type that JAX and TensorFlow know: NumPy has no bfloat16."""
        if self.dtype != "bfloat16":
            return self.numpy()
        import ml_dtypes
        return self.numpy().view(ml_dtypes.bfloat16)

    def tolist(self) -> List[Any]:
        """As nested lists, a copy, without NumPy."""
        flat = {"uint8": C.c_uint8, "int8": C.c_int8, "int16": C.c_int16, "int32": C.c_int32, "int64": C.c_int64,
                "float32": C.c_float, "float64": C.c_double, "uint64": C.c_uint64}.get(self.dtype)
        if flat is None:
            raise UnsupportedError("%s has no type in Python: use numpy()" % self.dtype)
        kind: Any = flat
        for s in reversed(self.shape):
            kind = kind * s

        def unpack(a: Any, depth: int) -> Any:
            return list(a) if depth == 1 else [unpack(x, depth - 1) for x in a]
        return unpack(kind.from_address(self._data), len(self.shape)) if all(self.shape) else []


class Batch:
    """A batch; its memory lives as long as it, or an array of it, or whatever was made of one, does.

    images       uint8, (count, height, width, channels); None where the data have no pictures
    labels       int32, (count,); -1 for padding and samples without a label
    ids          uint64, (count,): number of each sample in the data set; 2**64 - 1 for padding
    labels2      int32, (count,), where pictures are mixed (`mixup`, `cutmix`): a sample is share2 of a picture with this label and
                 the rest of one with its own; -1: it is not mixed. Else None
    share2       float32, (count,), 0 to 1, or None
    affine       float32, (count, 2) with `standardise`: value = pixel * a[0] + a[1]; else None
    fields       name -> Array, of the fields that the loader was asked for; of a text a list of str, of bytes a list of bytes
    lengths      name -> Array int32 of those whose rows differ in length
    names        what each sample was called where it came from, "" where it has no name
    epoch, step  which batch this is; `last` of its epoch; `global_step` counts from epoch 0
    count        samples of this rank in it; `counted`: samples with a label
    first, all_count  they are [first, first + count) of a global batch of all_count samples

    `images, labels = batch` works, too, but where pictures are mixed."""
    __slots__ = ("_lease", "_loader", "_view", "_finish", "_memory", "targets", "images", "labels", "labels2", "share2", "ids", "affine", "fields",
                 "lengths", "epoch", "step", "global_step", "last", "count", "counted", "first", "all_count", "__weakref__")
    _no_copy = "its memory is the loader's; copy the arrays that you keep, as by numpy.array(batch.images), and send those"
    images: Optional[Array]
    labels: Array
    labels2: Optional[Array]
    share2: Optional[Array]
    ids: Array
    affine: Optional[Array]
    targets: Optional[Array]  # of a finished batch: the targets of a loss
    fields: Dict[str, Any]
    lengths: Dict[str, Array]
    global_step: int
    counted: int
    first: int
    all_count: int

    def __init__(self, loader: Any, lease: _Lease, finish: Any = None, memory: Any = None) -> None:
        self._lease, self._loader, self._finish, self._memory = lease, loader, finish, memory
        view = self._view = _l.quick.mrp_batch_view(lease.address).contents
        self.epoch, self.step, self.last, self.count = view.epoch, view.step, view.last, view.count

    def __getattr__(self, name: str) -> Any:
        """An array or a number, when it is asked for first."""
        make = _MAKE.get(name)
        if make is None:
            raise AttributeError("a batch has no attribute %r" % name)
        made = make(self)
        setattr(self, name, made)
        return made

    def _array(self, name: str, kind: int, *rest: int) -> Optional[Array]:
        data = getattr(self._view, name)
        return Array(self._lease, data, kind, (self.count,) + rest) if data else None

    def _images(self) -> Optional[Array]:
        shape, finish = self._loader._shape, self._finish
        if not shape:
            return None
        return Array(self._lease, self._view.pixels, finish.dtype if finish else _U8, (self.count,) + (finish.shape if finish else shape))

    def _targets(self) -> Optional[Array]:
        if not self._finish:
            return None
        at, classes = _l.quick.mrp_batch_targets(self._lease.address), self._finish.classes
        return Array(self._lease, at, _F32, (self.count, classes)) if classes else Array(self._lease, at, _I64, (self.count,))

    def _label_capsule(self, ignore: int) -> Any:
        """Labels as int64, in memory of their own; `ignore` for samples that do not count."""
        tensor = _l.quick.mrp_export_labels(self._view.labels, self.count, ignore)
        if not tensor:
            raise MemoryError("no memory for a DLPack tensor")
        return _l.new_capsule(tensor, _LEGACY, _l.CAPSULE_GONE)

    def _rows(self) -> Dict[str, Any]:
        out: Dict[str, Any] = {}
        for k, (name, kind, varies, dims) in enumerate(self._loader._field_shapes):
            f, text = self._view.field[k], self._loader._field_texts.get(name)
            if text is not None:
                lengths = (C.c_int32 * self.count).from_address(f.length) if self.count else ()
                rows = [C.string_at(f.data + i * f.width, n) for i, n in enumerate(lengths)]
                out[name] = [row.decode("utf-8", "surrogateescape") for row in rows] if text is str else rows
                continue
            out[name] = Array(self._lease, f.data, kind, (self.count, f.width) + dims if varies else (self.count,) + dims)
        return out

    def _row_lengths(self) -> Dict[str, Array]:
        return {name: Array(self._lease, self._view.field[k].length, _I32, (self.count,))
                for k, (name, _, varies, _) in enumerate(self._loader._field_shapes) if varies and name not in self._loader._field_texts}

    def _further(self) -> Dict[str, Any]:
        """Fields, and lengths of their rows as "name.length": arrays of NumPy with memory of their own, and lists of texts."""
        out = {n: a if isinstance(a, list) else a._typed().copy() for n, a in self.fields.items()}
        out.update((n + ".length", a.numpy().copy()) for n, a in self.lengths.items())
        return out

    def __reduce_ex__(self, protocol: Any) -> Any:
        return refuse_copy(self)

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Any]:
        if self.labels2 is not None:
            raise ArgumentError("pictures of this batch are mixed, one label is not all there is to them: take batch.images, "
                                "batch.labels, batch.labels2 and batch.share2")
        return iter((self.images, self.labels))

    def soft_targets(self, num_classes: int) -> Any:
        """How much of each class every sample is: a NumPy array of its own, float32 (count, num_classes); all 0 for samples that do
        not count."""
        import numpy
        out = numpy.empty((self.count, num_classes), numpy.float32)
        self._soft_targets(num_classes, out.ctypes.data)
        return out

    def _soft_targets(self, classes: int, address: int) -> None:
        second = self.labels2.data_ptr if self.labels2 is not None else None
        share = self.share2.data_ptr if self.share2 is not None else None
        done = _l.native.mrp_soft_targets(self.labels.data_ptr, second, share, self.count, classes, address)
        if done < self.count:
            raise ArgumentError("sample %d: its label is not below the %d classes that num_classes= says" % (self.ids.tolist()[done],
                                                                                                     classes))

    @property
    def names(self) -> List[str]:
        return self._loader._names(self.ids.tolist())

    def __repr__(self) -> str:
        return "<millrace.Batch epoch %d step %d, %d samples>" % (self.epoch, self.step, self.count)


_MAKE: Dict[str, Callable[[Batch], Any]] = {
    "images": Batch._images, "targets": Batch._targets, "fields": Batch._rows, "lengths": Batch._row_lengths,
    "labels": lambda b: Array(b._lease, b._view.labels, _I32, (b.count,)), "ids": lambda b: Array(b._lease, b._view.ids, _U64, (b.count,)),
    "labels2": lambda b: b._array("labels2", _I32), "share2": lambda b: b._array("share2", _F32),
    "affine": lambda b: b._array("affine", _F32, 2), "global_step": lambda b: b._view.global_step,
    "counted": lambda b: b._view.counted, "first": lambda b: b._view.first, "all_count": lambda b: b._view.all_count}
