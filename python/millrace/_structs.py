"""The library's structs, as the public headers have them; what each member means is said there.

Members that are settings are not repeated here: the library has a row for each (settings/*.rows), and its native part says where
they are. tests/test_layout.py compares every size and offset with the C compiler's."""
from __future__ import annotations

import ctypes
from ctypes import (POINTER, Structure, c_bool, c_char, c_char_p, c_double, c_float, c_int, c_int64, c_size_t, c_uint32, c_uint64,
                    c_void_p)
from typing import Any, Iterator, List, Tuple

from ._native import quick


class mrp_setting(Structure):
    """mrp_setting of native.h: a member that is a setting, as its row says."""
    _fields_ = [
        ("member", c_char_p),
        ("kind", c_char_p),
        ("standard", c_char_p),
        ("unit", c_char_p),
        ("help", c_char_p),
        ("choices", POINTER(c_char_p)),
        ("least", c_double),
        ("most", c_double),
        ("offset", c_uint64),
        ("bytes", c_uint64),
        ("option", c_char_p),
    ]


quick.mrp_layout.restype, quick.mrp_layout.argtypes = c_int64, [c_char_p, c_char_p, POINTER(c_uint64)]
quick.mrp_setting_at.restype, quick.mrp_setting_at.argtypes = c_int, [c_char_p, c_uint32, POINTER(mrp_setting)]
_KINDS = {b"flag": c_bool, b"u32": c_uint32, b"u64": c_uint64, b"real": c_double, b"size": c_uint64, b"seconds": c_double,
          b"text": c_char_p, b"choice": c_uint32, b"either": c_bool, b"count or off": c_uint32, b"set": c_uint32,
          b"choice every": c_uint32, b"float": c_float}


def settings(struct: str) -> Iterator[mrp_setting]:
    """The settings of a struct of the library."""
    row = mrp_setting()
    k = 0
    while quick.mrp_setting_at(struct.encode(), k, ctypes.byref(row)) == 0:
        yield row
        row, k = mrp_setting(), k + 1


def _members(struct: str, **others: Any) -> List[Tuple[str, Any]]:
    """_fields_ of a struct with settings: these by their rows, and others by the types given here. A member of neither is space."""
    size, end = c_uint64(), 0
    placed = [(row.offset, row.member.decode(), _KINDS[row.kind]) for row in settings(struct)]
    placed += [(quick.mrp_layout(struct.encode(), name.encode(), ctypes.byref(size)), name, kind) for name, kind in others.items()]
    fields: List[Tuple[str, Any]] = []
    quick.mrp_layout(struct.encode(), None, ctypes.byref(size))
    for offset, name, kind in sorted(placed) + [(size.value, "", c_char)]:
        align = ctypes.alignment(kind)
        if (end + align - 1) // align * align < offset:
            fields.append(("_space%d" % end, c_char * (offset - end)))
        if name:
            fields.append((name, kind))
        end = offset + ctypes.sizeof(kind)
    return fields


class mr_error(Structure):
    _fields_ = [
        ("code", c_int),
        ("sys_errno", c_int),
        ("offset", c_uint64),
        ("sample", c_uint64),
        ("file", c_char * 512),
        ("text", c_char * 768),
        ("host", c_int),
    ]


class mr_value(Structure):
    _fields_ = [
        ("type", c_int),
        ("dtype", c_int),
        ("planes", c_int),
        ("ndim", c_uint32),
        ("dim", c_uint64 * 8),
        ("data", c_void_p),
        ("bytes", c_size_t),
        ("i", c_int64),
        ("f", c_double),
        ("entries", c_void_p),
        ("entries_bytes", c_size_t),
    ]


class mr_sample(Structure):
    _fields_ = [("value_count", c_uint32), ("value", mr_value * 32)]  # MR_MAX_FIELDS


class mr_field(Structure):
    _fields_ = [
        ("name", c_char * 64),
        ("type", c_int),
        ("dtype", c_int),
        ("ndim", c_uint32),
        ("dim", c_uint64 * 8),
    ]


class mr_source_config(Structure):
    _fields_ = _members("mr_source_config", struct_size=c_size_t, label_offset=c_int64, class_names=POINTER(c_char_p),
                        class_count=c_uint32, stop=c_void_p, take_from=c_double, take_to=c_double, class_first=c_int64,
                        classes_of=c_char_p)


class mr_source_parts(Structure):
    _fields_ = [
        ("there", c_uint32),
        ("taken", c_uint32),
    ]


class mr_mix_set(Structure):
    _fields_ = [
        ("path", c_char_p),
        ("first", c_uint64),
        ("count", c_uint64),
        ("share", c_double),
    ]


class mr_source_labels(Structure):
    _fields_ = [
        ("min", c_int64),
        ("max", c_int64),
        ("start", c_int64),
        ("unsure", c_bool),
    ]


class mr_source_info(Structure):
    _fields_ = [
        ("format", c_char_p),
        ("path", c_char_p),
        ("count", c_uint64),
        ("class_count", c_uint32),
        ("class_names", POINTER(c_char_p)),
        ("field_count", c_uint32),
        ("fields", POINTER(mr_field)),
        ("image_field", c_int),
        ("label_field", c_int),
        ("height", c_uint32),
        ("width", c_uint32),
        ("channels", c_uint32),
        ("file_count", c_uint32),
        ("max_extent_bytes", c_uint64),
        ("total_bytes", c_uint64),
        ("has_test", c_bool),
        ("fingerprint", c_uint64),
        ("memory_bytes", c_uint64),
        ("skipped_files", c_uint64),
        ("label_offset", c_int64),
        ("told", c_char_p),
        ("length_field", c_uint32),
        ("length_most", c_uint32),
        ("only_test", c_bool),
        ("parts", mr_source_parts),
        ("mix_count", c_uint32),
        ("mix", POINTER(mr_mix_set)),
    ]


class mr_writer_config(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("field_count", c_uint32),
        ("fields", POINTER(mr_field)),
        ("class_count", c_uint32),
        ("class_names", POINTER(c_char_p)),
        ("provenance", c_char_p),
        ("record_align", c_uint32),
        ("force", c_bool),
        ("resume", c_bool),
        ("input", c_void_p),
        ("verify", c_bool),
        ("label_start", c_int64),
    ]


class mr_own_config(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("name", c_char_p),
        ("count", c_uint64),
        ("field_count", c_uint32),
        ("fields", POINTER(mr_field)),
        ("class_count", c_uint32),
        ("class_names", POINTER(c_char_p)),
        ("fingerprint", c_uint64),
        ("sample_bytes_most", c_uint64),
        ("fetch", c_void_p),
        ("context", c_void_p),
        ("begin", c_void_p),
    ]


class mr_output_config(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("inputs", c_void_p),
        ("input_count", c_uint32),
        ("force", c_bool),
        ("resume", c_bool),
        ("unsynced", c_bool),
        ("log", c_bool),
    ]


class mr_image(Structure):
    _fields_ = [
        ("width", c_uint32),
        ("height", c_uint32),
        ("channels", c_uint32),
        ("pixels", c_void_p),
    ]


class mr_decode_config(Structure):
    _fields_ = _members("mr_decode_config", struct_size=c_size_t, channels=c_uint32)


class mr_loader_field(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("role", c_int),
        ("most", c_uint32),
        ("pad", c_double),
        ("in_pixels", c_bool),
    ]


class mr_own_picture(Structure):
    """The description of a picture for an own operation in C (millrace/augment.h)."""
    _fields_ = [
        ("struct_size", c_size_t),
        ("sample", c_uint64),
        ("key", c_uint64),
        ("height", c_uint32),
        ("width", c_uint32),
        ("channels", c_uint32),
        ("training", c_bool),
        ("argument_count", c_uint32),
        ("arguments", c_double * 8),
        ("draws", c_uint32 * 16),
    ]


class mr_own_operation(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("change", c_void_p),
        ("context", c_void_p),
        ("arguments_least", c_uint32),
        ("arguments_most", c_uint32),
        ("in_evaluation", c_bool),
    ]


class mr_loader_config(Structure):
    _fields_ = _members("mr_loader_config", struct_size=c_size_t, decode=mr_decode_config, on_bad=c_void_p,
                        bad_context=c_void_p, start_epoch=c_uint64, start_step=c_uint64, devices=c_void_p,
                        device_count=c_uint32, trace=c_void_p, on_note=c_void_p, note_context=c_void_p,
                        fields=POINTER(mr_loader_field), field_count=c_uint32, budget=c_void_p, record=c_void_p,
                        tune=c_uint32, all_parts=c_uint32, first_part=c_uint32, sampler_count=c_uint64,
                        sampler_samples=c_void_p, sampler=c_void_p, sampler_context=c_void_p,
                        operations=POINTER(mr_own_operation), operation_count=c_uint32)


class mr_loader_field_info(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("role", c_int),
        ("dtype", c_int),
        ("varies", c_bool),
        ("ndim", c_uint32),
        ("dim", c_uint64 * 8),
        ("element_bytes", c_uint64),
        ("most", c_uint32),
    ]


class mr_loader_info(Structure):
    _fields_ = [
        ("batch", c_uint32),
        ("parts", c_uint32),
        ("height", c_uint32),
        ("width", c_uint32),
        ("channels", c_uint32),
        ("sample_count", c_uint64),
        ("steps_per_epoch", c_uint64),
        ("epoch_samples", c_uint64),
        ("dropped", c_uint64),
        ("padded", c_uint64),
        ("prefetch", c_uint32),
        ("workers", c_uint32),
        ("readers", c_uint32),
        ("io", c_char_p),
        ("io_note", c_char_p),
        ("memory_bytes", c_uint64),
        ("max_pixels", c_uint64),
        ("device_bytes", c_uint64),
        ("uses_affine", c_bool),
        ("mean", c_float * 4),
        ("std", c_float * 4),
        ("augment", c_char_p),
        ("fingerprint", c_uint64),
        ("order", c_int),
        ("block", c_uint32),
        ("tail", c_int),
        ("pixels", c_int),
        ("resident_bytes", c_uint64),
        ("field_count", c_uint32),
        ("field", mr_loader_field_info * 4),
        ("length_window", c_uint32),
        ("ignore_exif", c_bool),
        ("labelled", c_bool),
        ("counts", c_bool),
        ("mixes", c_bool),
        ("repeats", c_uint32),
        ("sampled", c_bool),
        ("seed", c_uint64),
        ("start_epoch", c_uint64),
        ("start_step", c_uint64),
        ("training", c_bool),
    ]


class mr_batch_field(Structure):
    _fields_ = [
        ("data", c_void_p),
        ("length", c_void_p),
        ("width", c_uint32),
    ]


class mr_batch(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("epoch", c_uint64),
        ("step", c_uint64),
        ("global_step", c_uint64),
        ("last", c_bool),
        ("count", c_uint32),
        ("counted", c_uint32),
        ("pixels", c_void_p),
        ("labels", c_void_p),
        ("ids", c_void_p),
        ("affine", c_void_p),
        ("part_count", c_uint32),
        ("parts", c_void_p),
        ("field", mr_batch_field * 4),
        ("first", c_uint32),
        ("all_count", c_uint32),
        ("labels2", c_void_p),
        ("share2", c_void_p),
    ]


class mr_stage_stats(Structure):
    _fields_ = [
        ("busy_ns", c_uint64),
        ("blocked_in_ns", c_uint64),
        ("blocked_out_ns", c_uint64),
        ("items", c_uint64),
        ("occupancy", c_double),
        ("threads", c_uint32),
    ]


class mr_loader_stats(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("read", mr_stage_stats),
        ("decode", mr_stage_stats),
        ("copy", mr_stage_stats),
        ("wait_ns", c_uint64),
        ("batches", c_uint64),
        ("samples", c_uint64),
        ("bytes_read", c_uint64),
        ("bytes_copied", c_uint64 * 64),
        ("bad_samples", c_uint64),
        ("replaced", c_uint64),
        ("skipped", c_uint64),
        ("reads", c_uint64),
        ("reads_short", c_uint64),
        ("reads_again", c_uint64),
        ("cache_hits", c_uint64),
        ("cache_entries", c_uint64),
        ("cache_bytes", c_uint64),
        ("cache_dropped", c_uint64),
    ]


class mr_choice_config(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("classes_from", c_char_p),
        ("rename_classes", c_char_p),
        ("only_classes", c_char_p),
        ("where", c_char_p),
        ("dedup", c_int),
        ("each_from", c_double),
        ("each_to", c_double),
        ("sample", c_uint64),
        ("sample_seed", c_uint64),
        ("decode", mr_decode_config),
        ("workers", c_uint32),
        ("lenient", c_bool),
        ("known", c_void_p),
        ("known_count", c_uint32),
        ("on_note", c_void_p),
        ("on_progress", c_void_p),
        ("context", c_void_p),
        ("stop", c_void_p),
    ]


class mr_convert_config(Structure):
    _fields_ = _members("mr_convert_config", struct_size=c_size_t, decode=mr_decode_config, provenance=c_char_p, progress=c_void_p,
                        on_bad=c_void_p, context=c_void_p, stop=c_void_p, bad_told=c_void_p, space=c_void_p)


class mr_convert_result(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("records", c_uint64),
        ("bad", c_uint64),
        ("resumed", c_uint64),
        ("bytes_in", c_uint64),
        ("bytes_out", c_uint64),
        ("shards", c_uint32),
        ("transcoded", c_uint64),
        ("with_entries", c_uint64),
        ("coefficients", c_uint64),
        ("kept", c_uint64),
        ("class_names_lost", c_uint64),
        ("renamed", c_uint64),
        ("renamed_sample", c_uint64 * 3),  # MR_CONVERT_RENAMED
    ]


class mr_image_part(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("x", c_uint32),
        ("y", c_uint32),
        ("width", c_uint32),
        ("height", c_uint32),
        ("out_width", c_uint32),
        ("out_height", c_uint32),
        ("flip", c_bool),
    ]
