"""The commands as functions: convert, inspect, verify, digest; and decode()."""
from __future__ import annotations

import ctypes as C
import os
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

from . import _library as _l
from ._errors import ArgumentError
from ._loader import _PIXELS, OF_THE_SOURCE, Inbox, Loader, Source, _count, _one_of, _pictures
from ._arrays import Array, _Lease
from ._structs import mr_convert_config, mr_convert_result, mr_decode_config, mr_image_part
from ._waiting import run
from ._typed import LoaderSettings, Pixels, SourceSettings, Unpack

_STORES = {"jpeg": 0, "raw": 1, "coef": 2}
_TO = {"mrec": 0, "tfrecord": 1, "tar": 2, "mds": 3, "recordio": 4}
_TYPES = {1: "jpeg", 2: "png", 3: "pixels", 4: "int", 5: "float", 6: "tensor", 7: "bytes", 8: "text", 9: "image", 10: "coef",
          11: "gif", 12: "bmp", 13: "webp", 14: "tiff", 15: "heic", 16: "avif"}
_DTYPES = {1: "u8", 2: "i8", 3: "i16", 4: "i32", 5: "i64", 6: "f16", 7: "bf16", 8: "f32", 9: "f64"}
Tell = Optional[Callable[[int, int, int], Any]]


class _Job:
    """A long call: its progress, its reports, its stop."""

    def __init__(self, progress: Tell, on_bad: Optional[Callable[[Exception], Any]], feed: Optional[Callable[[], None]] = None,
                 stop: Optional[Callable[[], None]] = None) -> None:
        self.shared, self.progress, self.on_bad = _l.Progress(), progress, on_bad
        self.feed, self.also_stop = feed, stop
        self.inbox = Inbox()  # as long as the call may use it
        self.shared.inbox = self.inbox.pointer
        self.bad: List[Exception] = []
        self.shown = (-1, -1, -1)

    def look(self) -> None:
        if self.feed:
            self.feed()
        what, other, lost = _l.new_error(), C.c_uint64(), C.c_uint64()
        while _l.quick.mrp_inbox_take(self.shared.inbox, C.byref(what), C.byref(other), C.byref(lost)):
            e = _l.failed(what.code, what)
            if len(self.bad) < 100:
                self.bad.append(e)
            if self.on_bad:
                self.on_bad(e)
        now = self.shared.done, self.shared.count, self.shared.bytes
        if self.progress and now != self.shown and now[1]:
            self.shown = now
            self.progress(*now)

    def stop(self) -> None:
        self.shared.stop = 1
        if self.also_stop:
            self.also_stop()

    def run(self, call: Callable[[], int], what: Any, source: Source, loader: Optional[Loader] = None) -> None:
        rc = run(call, self.stop, self.look)
        if rc != _l.OK:
            source.raise_failure()
            if loader:
                loader._raise_failure(_l.failed(rc, what))
            raise _l.failed(rc, what)


def _source(path: Any, options: Any) -> Source:
    for name in options:
        if name not in OF_THE_SOURCE:
            raise TypeError("%s: not known here; of the data set: %s" % (name, ", ".join(OF_THE_SOURCE)))
    return Source(path, **options)


def convert(path: Any, to: Any, *, kind: str = "mrec", store: str = "jpeg", resize: int = 0, quality: int = 90,
            center_square: bool = False, workers: int = 0, shard_bytes: int = 0, resume: bool = False, force: bool = False,
            check: bool = True, verify: bool = True, entries: bool = True, transcode: bool = False, names: bool = True,
            max_bad: Optional[int] = None, memory: int = 0, check_space: bool = True, progress: Tell = None,
            on_bad: Optional[Callable[[Exception], Any]] = None, **data: Unpack[SourceSettings]) -> Dict[str, Any]:
    """Any data set into record files (kind "mrec"), "tfrecord", "tar", "mds" or "recordio", as `millrace convert` does.

    Settings are its options.

    progress  function of (samples done, samples, bytes written), called in this thread some times a second; an exception from it
              ends the conversion and is raised; so does Ctrl-C. The written part can be resumed
    on_bad    function of an Error: a damaged sample, which is left out
    check_space  False: write, although the estimate of the result is larger than the free space
    data      settings of the data set: format, split, only_classes, where and so on, as of Loader

    Gives a dict: records, bad, bytes_in, bytes_out, shards, ..., and "errors", the first 100 of the damaged ones."""
    source, job = _source(path, data), _Job(progress, on_bad)
    cfg = _l.fill(_l.lib.mr_convert_defaults_sized, mr_convert_config())
    cfg.to, cfg.store = _one_of("kind", _TO, kind), _one_of("store", _STORES, store)
    cfg.resize, cfg.quality = _count("resize", resize), _count("quality", quality, 1, 100)
    cfg.center_square, cfg.workers = bool(center_square), _count("workers", workers)
    cfg.shard_bytes, cfg.memory_bytes = _count("shard_bytes", shard_bytes, 0, 2**64 - 1), _count("memory", memory, 0, 2**64 - 1)
    cfg.resume, cfg.force, cfg.check, cfg.verify = bool(resume), bool(force), bool(check), bool(verify)
    cfg.entries, cfg.transcode, cfg.no_names = bool(entries), bool(transcode), not names
    cfg.no_space_check = not check_space
    if max_bad is not None:
        cfg.max_bad = _count("max_bad", max_bad, 0, 2**64 - 1)
    result, what, name = mr_convert_result(), _l.new_error(), _l.encode(to)
    job.run(lambda: _l.native.mrp_convert(source._pointer, name, C.byref(cfg), C.byref(job.shared), C.byref(result),
                                          C.byref(what)), what, source)
    source.close()
    out: Dict[str, Any] = {n: getattr(result, n) for n, _ in mr_convert_result._fields_ if n != "struct_size"}
    out["renamed_sample"] = list(result.renamed_sample)[:result.renamed]
    out["errors"] = job.bad
    return out


def verify(path: Any, *, decode: bool = True, max_wrong: int = 100, progress: Tell = None,
           on_bad: Optional[Callable[[Exception], Any]] = None, **data: Unpack[SourceSettings]) -> List[Exception]:
    """Read everything, check every checksum, decode every picture. Returns a list of Errors; [] if all is well.

    max_wrong  end after this number of errors; 0: never. The list has the first 100; on_bad is called with every one
    progress   as for convert(): samples done, samples, bytes"""
    source, job, what, wrong = _source(path, data), _Job(progress, on_bad), _l.new_error(), C.c_uint64()
    job.run(lambda: _l.native.mrp_verify(source._pointer, bool(decode), _count("max_wrong", max_wrong, 0, 2**64 - 1),
                                         C.byref(job.shared), C.byref(wrong), C.byref(what)), what, source)
    source.close()
    return job.bad


def digest(path: Any, *, progress: Tell = None, **settings: Unpack[LoaderSettings]) -> str:
    """A hash over everything that a Loader of these settings delivers, over all ranks' places that this one has: 32 hexadecimal
    digits, the same as `millrace digest` prints. progress: batches done, batches of an epoch, 0."""
    settings.setdefault("rank", 0)
    settings.setdefault("world", 1)
    settings["hold"] = 1
    if settings.get("sampler") is None:
        settings.setdefault("order", "shuffle")  # the command's default
    with Loader(path, **settings) as loader:
        running, what = loader._stream.open(), _l.new_error()
        job = _Job(progress, None, lambda: loader._stream.feed(job.shared.done), running.fed.close if running.fed else None)
        room, batches, samples = C.create_string_buffer(33), C.c_uint64(), C.c_uint64()
        job.run(lambda: _l.native.mrp_digest(running.pointer, C.byref(job.shared), room, C.byref(batches), C.byref(samples),
                                             C.byref(what)), what, loader._source, loader)
        loader._drain(what)
        return room.value.decode()


def inspect(path: Any, **data: Unpack[SourceSettings]) -> Dict[str, Any]:
    """Describe a data set: format, count, classes, fields, sizes, and lines (`told`) about left-out, shifted or indexed data."""
    source = _source(path, data)
    info = source.info
    names = C.cast(info.class_names, C.POINTER(C.c_char_p)) if info.class_names else None
    out: Dict[str, Any] = {n: getattr(info, n) for n in ("count", "class_count", "height", "width", "channels", "file_count",
                                                         "max_extent_bytes", "total_bytes", "has_test", "skipped_files",
                                                         "label_offset", "only_test")}
    out["format"], out["path"] = info.format.decode(), os.fsdecode(info.path)
    out["fingerprint"] = "%016x" % info.fingerprint
    out["classes"] = [names[k].decode("utf-8", "surrogateescape") for k in range(info.class_count)] if names else []
    out["fields"] = [_field(info.fields[k]) for k in range(info.field_count)]
    out["image"] = out["fields"][info.image_field]["name"] if info.image_field >= 0 else None
    out["label"] = out["fields"][info.label_field]["name"] if info.label_field >= 0 else None
    out["told"] = (info.told or b"").decode("utf-8", "replace").splitlines()
    source.close()
    return out


def _field(f: Any) -> Dict[str, Any]:
    out = {"name": f.name.decode("utf-8", "replace"), "type": _TYPES.get(f.type, "?"), "shape": tuple(f.dim[:f.ndim])}
    if out["type"] == "tensor":
        out["dtype"] = _DTYPES.get(f.dtype, "?")
    return out


def decode(data: Any, *, crop: Optional[Tuple[int, int, int, int]] = None, size: Any = None, flip: bool = False,
           channels: int = 0, exif: bool = True, pixels: Pixels = "own", max_pixels: int = 100_000_000,
           pictures: Union[str, Sequence[str]] = "all") -> Array:
    """One picture file (JPEG, PNG, GIF, BMP, WebP, TIFF, HEIC, AVIF), or part of it, as an Array: uint8, (height, width, channels).

    data      its bytes (bytes, bytearray, memoryview, a NumPy array of uint8)
    crop      (left, top, width, height) of the upright picture; only the needed blocks are decoded
    size      (height, width) to resize the crop to, with antialiasing; a number: both
    flip      left to right
    channels  1, 3, or 0: as stored (gray stays 1)
    exif      the picture is turned upright as its EXIF orientation says
    pixels    "own"; "libjpeg" for libjpeg-turbo's arithmetic; "reduced": as "own", from means of 8 x 8 samples where the crop is
              reduced to an eighth or less
    pictures  kinds of picture files that are decoded, such as "jpeg,png" or ["jpeg", "png"]; others are an error; "all"

    Damage is an error, and never filled with grey; with a crop, data after it are not read."""
    raw = data if isinstance(data, bytes) else bytes(memoryview(data).cast("B"))
    cfg = _l.fill(_l.lib.mr_decode_defaults_sized, mr_decode_config())
    cfg.channels, cfg.ignore_exif = _count("channels", channels, 0, 3), not exif
    cfg.pixels, cfg.max_pixels = _one_of("pixels", _PIXELS, pixels), _count("max_pixels", max_pixels, 1, 2**64 - 1)
    cfg.pictures = _pictures(pictures)
    part = None
    if crop is not None or size is not None or flip:
        part = mr_image_part()
        part.struct_size = C.sizeof(part)
        if crop is not None:
            if len(crop) != 4:
                raise ArgumentError("crop=%r: expected (left, top, width, height)" % (crop,))
            part.x, part.y, part.width, part.height = (_count("crop", v, least) for v, least in zip(crop, (0, 0, 1, 1)))
        if size is not None:
            height, width = (size, size) if hasattr(size, "__index__") else size
            part.out_height, part.out_width = _count("size", height, 1), _count("size", width, 1)
        part.flip = bool(flip)
    lease, shape, what = _Lease(), (C.c_uint32 * 3)(), _l.new_error()
    rc = _l.native.mrp_decode(raw, len(raw), C.byref(part) if part else None, C.byref(cfg), C.byref(lease.address), shape,
                              C.byref(what))
    if rc != _l.OK:
        raise _l.failed(rc, what)
    return Array(lease, _l.quick.mrp_batch_view(lease.address).contents.pixels, 1, tuple(shape))
