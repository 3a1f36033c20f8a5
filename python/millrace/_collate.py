"""Samples of Python's own into one batch of PyTorch's: as its default_collate() does, pictures as the loader's other batches have them."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Callable, Dict, List

import torch

from ._errors import ArgumentError, BadSampleError
from ._making import MISSING, Job, is_picture

_IMAGES, _LABELS = ("image", "img", "pixel_values"), ("label", "target", "labels")


def as_lists(samples: List[Any]) -> Any:
    """collate_fn= for samples of any size: each member of the samples as a list, a tuple of these (of dicts a dict). Arrays become tensors.

        Loader(data, batch_size=4, collate_fn=millrace.torch.as_lists)    # images, targets: lists"""
    first = samples[0]
    if isinstance(first, Mapping):
        return {k: [_tensors(s[k]) for s in samples] for k in first}
    if isinstance(first, tuple):
        return tuple([_tensors(v) for v in column] for column in zip(*samples))
    return [_tensors(s) for s in samples]


def _tensors(value: Any) -> Any:
    """Arrays within it as tensors."""
    if isinstance(value, Mapping):
        return {k: _tensors(v) for k, v in value.items()}
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) is not None:
        return torch.as_tensor(value)
    return value


def _shapes(job: Job, at: Any, number: int) -> Any:
    """Of all that the dict has which is this member of a sample; None: it cannot be made."""
    try:
        return tuple((n, tuple(getattr(v, "shape", ()))) for n, v in job.sample(0, 0, number)[at].items())
    except Exception:
        return None


def _none_of(batch: Any) -> Any:
    """The same without samples."""
    if isinstance(batch, Mapping):
        return {k: _none_of(v) for k, v in batch.items()}
    if isinstance(batch, tuple):
        return type(batch)(*map(_none_of, batch)) if hasattr(batch, "_fields") else tuple(map(_none_of, batch))
    return batch[:0]


def _shape(value: Any) -> str:
    return "x".join(map(str, value.shape)) or "a number"


class Collation:
    """How samples of one loader become a batch.

    formed    pictures of PIL become (n, channels, height, width) in the loader's dtype
    arrays    so do arrays of uint8, which else keep their bits
    channels  of pictures of PIL: 1, 3, or 0: as they have them
    ignore    target of a sample that is missing
    said      which of "dtype" and "memory_format" the caller gave"""

    said: Sequence[str] = ()

    def __init__(self, formed: bool, arrays: bool, planar: bool, dtype: Any, channels: int, ignore: int) -> None:
        self.formed, self.arrays, self.planar, self.dtype, self.channels, self.ignore = formed, formed and arrays, planar, dtype, channels, ignore
        self._differ: Dict[Any, bool] = {}

    # ------------------------------------------------------------------ samples

    def put(self, job: Job, samples: List[Any], room: Any) -> Any:
        if not samples:  # of a rank that gets none
            return _none_of(self.put(job, [self._any(job, 0)], room))
        good = next((s for s in samples if s is not MISSING), None)
        if good is None:
            good = self._any(job, len(samples))
        if any(s is None for s in samples):
            raise ArgumentError("a sample is None, which makes no part of a batch: raise an exception in its place (bad=\"skip\" and \"replace\" then say "
                                "what happens), or leave it out by collate_fn=")
        if any(s is MISSING for s in samples):
            filler = self._filler(good)
            samples = [filler if s is MISSING else s for s in samples]
        take = room.take if room is not None else lambda size: None
        if isinstance(good, Mapping):
            return {k: self._member(job, samples, k, take, k in _IMAGES, str(k)) for k in good}
        if isinstance(good, tuple) and not hasattr(good, "_fields"):
            self._see_lengths(samples, len(good))
            return tuple(self._member(job, samples, k, take, k == 0, "member %d" % k) for k in range(len(good)))
        if hasattr(good, "_fields"):
            return type(good)(*(self._member(job, samples, k, take, k == 0, n) for k, n in enumerate(good._fields)))
        if isinstance(good, list):
            self._see_lengths(samples, len(good))
            return [self._member(job, samples, k, take, k == 0, "member %d" % k) for k in range(len(good))]
        return self._member(job, samples, None, take, True, "the sample")

    @staticmethod
    def _see_lengths(samples: List[Any], count: int) -> None:
        for s in samples:
            if len(s) != count:
                raise ArgumentError("samples of %d and of %d members in one batch: all have the same, or collate_fn= puts them together"
                                    % (count, len(s)))

    @staticmethod
    def _any(job: Job, count: int) -> Any:
        for k in range(min(job.count, 16)):
            try:
                return job.sample(0, 0, k)
            except Exception:
                continue
        raise BadSampleError("all samples of this batch (%d) are damaged, and so are the first ones of the data" % count)

    def _filler(self, good: Any) -> Any:
        """A sample that does not count."""
        if isinstance(good, Mapping):
            return {k: self._empty(v, "the sample's %r" % (k,), k in _LABELS) for k, v in good.items()}
        if isinstance(good, (tuple, list)):
            return [self._empty(v, "member %d of the sample" % k, k == 1) for k, v in enumerate(good)]
        return self._empty(good, "the sample", False)

    def _empty(self, value: Any, what: str, target: bool) -> Any:
        if target:
            number = value.item() if getattr(value, "shape", None) == () else value
            if hasattr(number, "__index__") and not isinstance(number, bool) and not hasattr(number, "__len__"):
                return torch.full_like(value, self.ignore) if isinstance(value, torch.Tensor) else type(value)(self.ignore)
            raise ArgumentError("a sample is missing (padding, or damaged with bad=\"skip\"), and %s is %s, and no value of it means that the "
                                "sample does not count: use bad=\"replace\", tail=\"keep\" or \"drop\", or collate_fn=, which gets the samples "
                                "that are there" % (what, type(value).__name__))
        if isinstance(value, torch.Tensor):
            return torch.zeros_like(value)
        if hasattr(value, "getbands"):
            return value.copy().point(lambda v: 0) if value.mode in ("L", "RGB") else type(value)
        if hasattr(value, "__array_interface__"):
            return value * 0
        if isinstance(value, (int, float)):
            return type(value)(0)
        if isinstance(value, (str, bytes)):
            return type(value)()
        raise ArgumentError("a sample is missing (padding, or damaged with bad=\"skip\"), and %s is %s: use bad=\"replace\", tail=\"keep\" or "
                            "\"drop\", or collate_fn=" % (what, type(value).__name__))

    # ------------------------------------------------------------------ one member of all samples

    def _member(self, job: Job, samples: List[Any], at: Any, take: Callable[[int], Any], image: bool, name: str) -> Any:
        values = samples if at is None else [s[at] for s in samples]
        formed = image and self._is_formed(values[0])
        if image:
            values = [self._pixels(v) for v in values]
        first = values[0]
        if isinstance(first, Mapping) and not image and self._lengths_differ(job, at, first):
            return [_tensors(v) for v in values]
        made = self._stack(values, take, name)
        if not formed and image:
            self._see_said(made)
        return self._formed(made) if formed else made

    def _see_said(self, made: Any) -> None:
        """dtype= and memory_format= change pictures only; finished tensors have to be so."""
        given = isinstance(made, torch.Tensor)
        if "dtype" in self.said and (not given or made.dtype != self.dtype):
            raise ArgumentError("dtype=%s: samples are no pictures, and %s keep their own type: change it in __getitem__ or transform=, or leave out "
                                "dtype=" % (self.dtype, "tensors of %s" % made.dtype if given else "they"))
        if "memory_format" in self.said and not self.planar and (not given or made.dim() != 4 or not made.is_contiguous(memory_format=torch.channels_last)):
            raise ArgumentError("memory_format=\"channels_last\": samples are no pictures, and finished tensors keep their layout: leave it out, and write "
                                "images.to(memory_format=torch.channels_last) in the loop")

    def _is_formed(self, value: Any) -> bool:
        if hasattr(value, "getbands"):
            return self.formed
        return self.arrays and is_picture(value) and hasattr(value, "dtype")

    def _pixels(self, value: Any) -> Any:
        """A picture of PIL as an array, an array with channels behind; else as it is."""
        if hasattr(value, "getbands"):
            import numpy
            if value.mode in ("I", "F") or value.mode.startswith("I;"):
                raise ArgumentError("a picture of mode %s has more than 8 bits: say with transform= what becomes of them" % value.mode)
            mode = {1: "L", 3: "RGB"}.get(self.channels, "L" if value.mode in ("1", "L") else "RGB")
            value = numpy.array(value if value.mode == mode else value.convert(mode))
        elif not self._is_formed(value):
            return value
        value = torch.as_tensor(value)
        if value.dim() == 2:
            value = value.unsqueeze(2)
        elif value.shape[0] in (1, 3, 4) and value.shape[2] > 4:
            value = value.permute(1, 2, 0)
        return value

    def _formed(self, pixels: Any) -> Any:
        """(n, height, width, channels) bytes as the loader's batches have them, where augment= says nothing of mean and deviation."""
        pixels = pixels.permute(0, 3, 1, 2)
        if self.planar:
            pixels = pixels.contiguous()
        return pixels if self.dtype == torch.uint8 else pixels.to(torch.float32).div_(255).to(self.dtype)

    def _lengths_differ(self, job: Job, at: Any, first: Any) -> bool:
        """Targets of detection, whose number of boxes differs: a list of dicts, in every batch. Some of the first samples say so."""
        if at not in self._differ:
            names = set(first)
            if "boxes" in names or "bboxes" in names:
                self._differ[at] = True
            elif not any(getattr(v, "shape", None) for v in first.values()):
                self._differ[at] = False
            else:
                self._differ[at] = len({_shapes(job, at, k) for k in {0, 1 % job.count, job.count // 2, job.count - 1}} - {None}) > 1
        return self._differ[at]

    def _stack(self, values: List[Any], take: Callable[[int], Any], name: str) -> Any:
        first = values[0]
        if isinstance(first, torch.Tensor) or type(first).__module__ == "numpy" and hasattr(first, "dtype"):
            return self._tensors(values, take, name)
        if isinstance(first, bool) or isinstance(first, int):
            return torch.tensor(values)
        if isinstance(first, float):
            return torch.tensor(values, dtype=torch.float64)
        if isinstance(first, (str, bytes)):
            return list(values)
        if isinstance(first, Mapping):
            return {k: self._stack([v[k] for v in values], take, "%s, %r" % (name, k)) for k in first}
        if isinstance(first, tuple) and hasattr(first, "_fields"):
            return type(first)(*(self._stack(list(column), take, name) for column in zip(*values)))
        if isinstance(first, Sequence):
            if len({len(v) for v in values}) > 1:
                raise ArgumentError("%s: sequences of %s elements in one batch: collate_fn= says what becomes of them (millrace.torch.as_lists: "
                                    "lists)" % (name, " and ".join(map(str, sorted({len(v) for v in values})[:3]))))
            return [self._stack(list(column), take, name) for column in zip(*values)]
        raise ArgumentError("%s: found %s, expected tensors, arrays, numbers, texts, dicts or sequences of these: transform= makes tensors of "
                            "pictures (torchvision's ToTensor), collate_fn= puts together anything (millrace.torch.as_lists: lists)"
                            % (name, "None" if first is None else type(first).__name__))

    @staticmethod
    def _tensors(values: List[Any], take: Callable[[int], Any], name: str) -> Any:
        tensors = [torch.as_tensor(v.copy() if getattr(getattr(v, "flags", None), "writeable", True) is False else v) for v in values]
        first = tensors[0]
        for t in tensors:
            if t.shape != first.shape:
                raise ArgumentError("%s: tensors of shape %s and %s in one batch. Bring pictures to one size in the transform (torchvision's "
                                    "Resize((224, 224)), RandomResizedCrop), let augment= do it with the transform left out, or give "
                                    "collate_fn= (millrace.torch.as_lists: lists of tensors)" % (name, _shape(first), _shape(t)))
            if t.dtype != first.dtype:
                raise ArgumentError("%s: tensors of %s and %s in one batch" % (name, first.dtype, t.dtype))
        if first.is_sparse or first.device.type != "cpu":
            raise ArgumentError("%s: a tensor of layout %s on %s: expected a plain one in host memory" % (name, first.layout, first.device))
        if type(first) is not torch.Tensor:
            tensors = [t.as_subclass(torch.Tensor) for t in tensors]
        size = first.numel() * first.element_size() * len(tensors)
        buffer = take(size) if size else None
        if buffer is None:
            return torch.stack(tensors)
        out = torch.frombuffer(buffer, dtype=first.dtype, count=first.numel() * len(tensors)).view(len(tensors), *first.shape)
        return torch.stack([t.detach() for t in tensors], out=out)
