"""The functions of the two libraries of this package, and the rules of who may call them."""
from __future__ import annotations

import ctypes as C
import os
from typing import Any

from . import _errors
from ._wording import in_python
from ._native import CPYTHON, FOLDER, lib, native, quick, quick_lib
from ._structs import (mr_batch, mr_choice_config, mr_convert_config, mr_decode_config, mr_error, mr_image_part, mr_loader_config, mr_loader_info,
                       mr_loader_stats, mr_output_config, mr_own_config, mr_own_picture, mr_sample, mr_source_config, mr_source_info, mr_value,
                       mr_writer_config)

OK, EEND, EAGAIN, ECANCELED, ELIMIT, EBUSY = 0, -1, -2, -3, -12, -16
NOWHERE = _errors.NOWHERE
SLICE_NS = 50_000_000  # waits come back to Python so often, for signals


class Progress(C.Structure):
    """mrp_progress of native.h."""
    _fields_ = [("done", C.c_uint64), ("count", C.c_uint64), ("bytes", C.c_uint64), ("stop", C.c_int), ("inbox", C.c_void_p)]


_P, _U32, _U64, _S, _INT = C.c_void_p, C.c_uint32, C.c_uint64, C.c_char_p, C.c_int
_E = C.POINTER(mr_error)


def _declare(where: Any, name: str, result: Any, *arguments: Any) -> None:
    f = getattr(where, name)
    f.restype, f.argtypes = result, list(arguments)


_declare(quick_lib, "mr_version", _S)
_declare(quick_lib, "mr_cores", _U32)
_declare(quick_lib, "mr_simd_in_use", _S)
_declare(quick_lib, "mr_error_format", _S, _E, _P, C.c_size_t)
_declare(lib, "mr_source_defaults_sized", None, C.POINTER(mr_source_config), C.c_size_t)
_declare(lib, "mr_source_open", _INT, C.POINTER(_P), _S, C.POINTER(mr_source_config), _E)
_declare(lib, "mr_source_close", None, _P)
_declare(quick_lib, "mr_source_info_of", C.POINTER(mr_source_info), _P)
_declare(lib, "mr_source_sample_name_get", _INT, _P, _U64, _P, C.c_size_t, _P, C.c_size_t, _E)
_declare(quick_lib, "mr_source_label", _INT, _P, _U64, C.POINTER(C.c_int64))
_declare(quick_lib, "mr_field_role", _INT, C.POINTER(mr_source_info), _U32)
_declare(lib, "mr_loader_defaults_sized", None, C.POINTER(mr_loader_config), C.c_size_t)
_declare(lib, "mr_loader_open", _INT, C.POINTER(_P), _P, C.POINTER(mr_loader_config), _E)
_declare(lib, "mr_loader_close", None, _P)
_declare(lib, "mr_loader_stop", None, _P)
_declare(lib, "mr_loader_seek", _INT, _P, _U64, _U64, _E)
_declare(quick_lib, "mr_loader_samples", _INT, _P, _U64, _U64, _P, _U32, _P, _P, _E)
_declare(quick_lib, "mr_loader_info_of", C.POINTER(mr_loader_info), _P)
_declare(quick_lib, "mr_loader_kept", _U32, _P)
_declare(quick_lib, "mr_loader_stats_read_sized", None, _P, C.POINTER(mr_loader_stats))
_declare(lib, "mr_choice_defaults_sized", None, C.POINTER(mr_choice_config), C.c_size_t)
_declare(lib, "mr_choose_sized", _INT, _P, C.POINTER(mr_choice_config), _P, _E)
_declare(lib, "mr_decode_defaults_sized", None, C.POINTER(mr_decode_config), C.c_size_t)
_declare(lib, "mr_convert_defaults_sized", None, C.POINTER(mr_convert_config), C.c_size_t)
_declare(quick_lib, "mr_image_sniff", _INT, _P, C.c_size_t)
_declare(lib, "mr_output_defaults_sized", None, C.POINTER(mr_output_config), C.c_size_t)
_declare(lib, "mr_output_check", _INT, _S, C.POINTER(mr_output_config), _E)
_declare(lib, "mr_writer_defaults_sized", None, C.POINTER(mr_writer_config), C.c_size_t)
_declare(lib, "mr_writer_open", _INT, C.POINTER(_P), _S, C.POINTER(mr_writer_config), C.POINTER(_U64), _E)
_declare(lib, "mr_writer_append", _INT, _P, _U64, C.POINTER(mr_value), _E)
_declare(lib, "mr_writer_bytes", _U64, _P)
_declare(lib, "mr_writer_finish", _INT, _P, _E)
_declare(lib, "mr_writer_abort", None, _P, C.c_bool)
_declare(native, "mrp_next", _INT, _P, _U32, _U64, C.POINTER(_P), _E)
_declare(native, "mrp_decode", _INT, _P, C.c_size_t, C.POINTER(mr_image_part), C.POINTER(mr_decode_config), C.POINTER(_P), C.POINTER(_U32),
         _E)
_declare(native, "mrp_decode_value", _INT, C.POINTER(mr_value), C.POINTER(mr_image_part), C.POINTER(mr_decode_config), C.POINTER(_P),
         C.POINTER(_U32), _E)
_declare(lib, "mr_source_read", _INT, _P, _U64, C.POINTER(_P), C.POINTER(C.c_size_t), C.POINTER(mr_sample), _E)
_declare(lib, "mr_source_sample_path", _S, _P, _U64, _P, C.c_size_t)
_declare(quick, "mrp_batch_view", C.POINTER(mr_batch), _P)
_declare(quick, "mrp_batch_unref", None, _P)
_declare(quick, "mrp_dlpack_start", None, _P)
_declare(quick, "mrp_export", _P, _P, _P, _INT, _INT, _INT, _P, _INT)
_declare(quick, "mrp_export_labels", _P, _P, _U32, C.c_int64)
_declare(quick, "mrp_inbox_create", _P)
_declare(quick, "mrp_inbox_flag", _P, _P)
_declare(quick, "mrp_inbox_destroy", None, _P)
_declare(quick, "mrp_inbox_take", _INT, _P, _E, C.POINTER(_U64), C.POINTER(_U64))
_declare(lib, "mr_own_defaults_sized", None, C.POINTER(mr_own_config), C.c_size_t)
_declare(lib, "mr_source_create", _INT, C.POINTER(_P), C.POINTER(mr_own_config), _E)
_declare(quick, "mrp_maker_create", _P)
_declare(quick, "mrp_maker_destroy", None, _P)
_declare(quick, "mrp_maker_close", None, _P)
_declare(native, "mrp_maker_take", _INT, _P, C.POINTER(_U64), C.POINTER(_P))
_declare(native, "mrp_maker_give", None, _P, C.POINTER(mr_value))
_declare(native, "mrp_maker_fail", None, _P, _INT, _S)
_declare(quick_lib, "mr_own_draw", _U32, C.POINTER(mr_own_picture), _U64)
_declare(quick, "mrp_request_picture", C.POINTER(mr_own_picture), _P)
_declare(native, "mrp_request_read", _INT, _P, _P)
_declare(native, "mrp_request_put", None, _P, _P)
_declare(quick, "mrp_orders_create", _P, _U64)
_declare(quick, "mrp_orders_destroy", None, _P)
_declare(native, "mrp_orders_put", _INT, _P, _U64, _P)
_declare(quick, "mrp_orders_drop", None, _P, _U64)
_declare(quick, "mrp_orders_wanted", _U64, _P)
_declare(quick, "mrp_orders_close", None, _P)
_declare(native, "mrp_soft_targets", _U32, _P, _P, _P, _U32, _U32, _P)
_declare(native, "mrp_finisher_open", _INT, C.POINTER(_P), _P, _P, _E)
_declare(native, "mrp_finisher_next", _INT, _P, _U64, C.POINTER(_P), _E)
_declare(quick, "mrp_finisher_held", _U32, _P, C.POINTER(_U64))
_declare(native, "mrp_finisher_close", None, _P)
_declare(quick, "mrp_batch_targets", _P, _P)
_declare(native, "mrp_convert", _INT, _P, _S, C.POINTER(mr_convert_config), C.POINTER(Progress), _P, _E)
_declare(native, "mrp_verify", _INT, _P, _INT, _U64, C.POINTER(Progress), C.POINTER(_U64), _E)
_declare(native, "mrp_digest", _INT, _P, C.POINTER(Progress), _P, C.POINTER(_U64), C.POINTER(_U64), _E)

ON_NOTE = C.cast(native.mrp_on_note, _P).value
MAKE_NOTHING = C.cast(native.mrp_make_nothing, _P).value
ON_BAD = C.cast(native.mrp_on_bad, _P).value
CAPSULE_GONE = C.cast(native.mrp_capsule_gone, _P).value

if CPYTHON:
    new_capsule = C.pythonapi.PyCapsule_New
    new_capsule.restype, new_capsule.argtypes = C.py_object, [_P, _S, _P]
    quick.mrp_dlpack_start((_P * 6)(*(C.cast(getattr(C.pythonapi, n), _P) for n in (
        "PyCapsule_IsValid", "PyCapsule_GetPointer", "PyCapsule_New", "PyTuple_Pack", "Py_DecRef", "PyErr_NoMemory"))))
    _declare(quick, "mrp_export_pair", C.py_object, _P, _P)


def version() -> str:
    """Of the library, "MAJOR.MINOR.PATCH"."""
    return quick_lib.mr_version().decode()


def new_error() -> mr_error:
    """One that says nothing yet."""
    e = mr_error()
    e.offset = e.sample = NOWHERE
    return e


def text_of(what: mr_error) -> str:
    """In one line: file, sample, offset, what happened."""
    room = C.create_string_buffer(2048)
    return quick_lib.mr_error_format(C.byref(what), room, len(room)).decode("utf-8", "replace")


def failed(code: int, what: mr_error) -> _errors.Error:
    """The exception for it."""
    return _errors.make(code, what, in_python(text_of(what)))


def fill(function: Any, struct: Any) -> Any:
    """Defaults of a struct of settings."""
    function(C.byref(struct), C.sizeof(struct))
    return struct


def element_bytes(kind: int) -> int:
    """Of an element of this type of the library."""
    return {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 2, 7: 2, 8: 4, 9: 8, 10: 8}[kind]


def encode(path: Any) -> bytes:
    """A path as the library takes it."""
    name = os.fsencode(path)
    if b"\0" in name:
        raise _errors.ArgumentError("a path with a zero byte in it: %r" % path)
    return name
