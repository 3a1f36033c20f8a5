"""millrace.torch: the loader where torch.utils.data.DataLoader stood.

    train_loader = millrace.torch.Loader("imagenet/train", batch_size=256, augment="rrc224", training=True)
    for epoch in range(90):
        train_loader.set_epoch(epoch)
        for images, target in train_loader:      # float32, normalised, (n, 3, 224, 224); int64
            ..."""
from __future__ import annotations

from typing import Any, Dict, Iterator, Optional, Tuple

try:
    import torch
except ImportError as e:  # pragma: no cover
    raise ImportError("millrace.torch needs PyTorch: pip install torch") from e

from . import _library as _l
from . import _ranks
from ._arrays import Batch
from ._errors import ArgumentError, StateError
from ._loader import Loader as _Loader
from ._loader import log

_FORMATS = ("channels_last", "contiguous")


class _Dataset:
    """What stands where a data set is looked for: its length, its classes."""

    def __init__(self, loader: "Loader") -> None:
        self._loader = loader

    def __len__(self) -> int:
        return self._loader.sample_count

    def __getitem__(self, at: Any) -> Any:
        raise TypeError("samples come in batches, from the loader that this belongs to: use it as it is; it divides its batches among "
                        "ranks itself and needs no DataLoader, DistributedSampler or prepare_data_loader() around it")

    @property
    def classes(self) -> Any:
        return self._loader.classes

    @property
    def class_to_idx(self) -> Dict[str, int]:
        return {name: k for k, name in enumerate(self._loader.classes)}


class Loader(_Loader):
    """Batches as (images, target): float32, normalised as the augmentation says, (n, channels, height, width), and int64.

    Every `for` over it is one epoch, as with a DataLoader: the one of `set_epoch()`, else the one after the last. After
    `load_state_dict()` the first one goes on in the middle of its epoch. `len(loader)` is the number of batches in an epoch,
    `len(loader.dataset)` the number of samples. A rank of torch.distributed's group (else of torchrun, mpirun, srun) gets its own part
    of every batch: no DistributedSampler, no `accelerator.prepare()` is needed; the group may come up after the loader was made.
    `loader.sampler` is the loader, for those who call set_epoch() there.

    batch_size     samples in a batch of THIS rank, as with a DataLoader; or
    batch          samples in the global batch: what resuming in another world needs to be the same
    memory_format  "channels_last" (the way pixels lie in the slot: the cheaper one) or "contiguous"
    device         where tensors go: None stays in host memory; "cuda" copies from pinned memory on a stream of its own, which
                   torch's current stream waits for
    uint8          True: (n, channels, height, width) uint8 as decoded, over the batch's memory, for normalising on the device
    drop_last      the short last batch is left out, so that all ranks have as many samples. Where its samples do not go round, a
                   rank would get an empty batch, whose mean loss is no number: that is an error for training, else a warning
    raw            True: millrace.Batch objects instead
    num_classes    with `mixup` or `cutmix` in augment=, where the data do not say how many classes there are

    Everything else is as for millrace.Loader, but `epochs`. Target -1 marks a sample without a label. Of mixed pictures the target
    is float32 (n, classes), what CrossEntropyLoss takes as probabilities of classes: all 0 for a sample that does not count."""

    def __init__(self, path: Any, batch_size: Optional[int] = None, *, batch: Optional[int] = None,
                 memory_format: str = "channels_last", device: Any = None, uint8: bool = False, drop_last: bool = False,
                 raw: bool = False, num_classes: Optional[int] = None, **settings: Any) -> None:
        given = dict(settings, path=path, batch_size=batch_size, batch=batch, memory_format=memory_format, device=device, uint8=uint8,
                     drop_last=drop_last, raw=raw, num_classes=num_classes)
        if (batch_size is None) == (batch is None):
            raise ArgumentError("give batch_size= (of each rank) or batch= (of all ranks together)")
        if "epochs" in settings:
            raise ArgumentError("epochs=: every `for` over this loader is one epoch")
        if memory_format not in _FORMATS:
            raise ArgumentError("memory_format=%r: expected one of %s" % (memory_format, ", ".join(map(repr, _FORMATS))))
        if drop_last:
            settings["tail"] = "drop"
        self._torch_given = given
        rank, world = _ranks.find(settings.get("rank"), settings.get("world"))
        settings.update(rank=rank, world=world)
        super().__init__(path, batch=batch if batch is not None else batch_size * world, epochs=None, **settings)
        self._see_all_have_some()
        self._format, self._uint8, self._raw = memory_format, uint8, raw
        self._soft = 0 if raw else self._soft_classes(num_classes)
        self._device = torch.device(device) if device is not None else None
        self._wanted: Optional[int] = None  # epoch, by set_epoch()
        self._resumed = False
        self._stream: Any = None
        self._scale: Any = None  # means and deviations on the device
        if self._device is not None and self._device.type not in ("cpu", "cuda"):
            raise ArgumentError("device=%r: expected \"cpu\" or \"cuda\"" % (device,))
        channels = self._shape[2] if self._shape else 0
        std = [s if s else 1.0 for s in self._std[:channels]]
        plain = not any(self._mean[:channels]) and all(s == 1.0 for s in std)
        self._means = (_l.C.c_float * max(channels, 1))(*([0.0] * channels if plain else self._mean[:channels]))
        self._stds = (_l.C.c_float * max(channels, 1))(*([255.0] * channels if plain else std))

    def _see_all_have_some(self) -> None:
        last = self._per_epoch - (self._steps - 1) * self.batch
        if last >= self._world or self._given["tail"] != "keep":
            return
        text = ("the last batch of an epoch has %d of %d samples, fewer than there are ranks: some of %d get an empty batch, whose mean "
                "loss is no number; say drop_last=True, or another batch size" % (last, self.batch, self._world))
        if self._given["training"]:
            raise ArgumentError(text)
        log.warning("%s", text)

    def _settle(self) -> None:
        """Be the rank that torch.distributed says, where its group came up after this loader."""
        group = None if self._torch_given.get("rank") is not None else _ranks.of_group()
        if group is None or group == (self._rank, self._world):
            return
        self._check()
        epoch, step, size = self._epoch, self._step, self._torch_given["batch_size"]
        if step and size is not None and group[1] != self._world:
            raise StateError("this loader was in the middle of an epoch, on batches for %d ranks, when torch.distributed began with %d: "
                             "make it later, or give rank= and world=" % (self._world, group[1]))
        self._stop_running()
        self._source.close()
        if self._operations:
            self._operations.close()
        self._begin(dict(self._given, rank=group[0], world=group[1], batch=self.batch if size is None else size * group[1]))
        self._epoch, self._step = epoch, step
        self._see_all_have_some()

    @property
    def dataset(self) -> _Dataset:
        return _Dataset(self)

    @property
    def sampler(self) -> "Loader":
        return self

    @property
    def batch_size(self) -> int:
        """Of this rank, as far as it goes."""
        self._settle()
        return -(-self.batch // self._world)

    def __len__(self) -> int:
        self._settle()
        return self._steps

    def set_epoch(self, epoch: int) -> None:
        """The next `for` delivers this epoch."""
        self._wanted = int(epoch)

    def state_dict(self) -> Dict[str, Any]:
        self._settle()
        return super().state_dict()

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        self._settle()
        super().load_state_dict(state)
        self._resumed = True

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        self._check()
        self._settle()
        wanted, self._wanted = self._wanted, None
        if self._resumed and (wanted is None or wanted == self._epoch):
            pass  # in the middle of it
        elif wanted is not None:
            self.seek(wanted, 0)
        elif self._step:
            self.seek(self._epoch + 1, 0)
        self._resumed = False
        return self._of_epoch(self._epoch)

    def _of_epoch(self, epoch: int) -> Iterator[Any]:
        while self._epoch == epoch:
            batch = self._next()
            yield batch if self._raw else self._tensors(batch)
            del batch

    def _tensors(self, batch: Batch) -> Tuple[Any, Any]:
        target = self._target(batch)
        if batch.images is None:
            images = None
        elif self._uint8:
            images = torch.from_dlpack(batch.images).permute(0, 3, 1, 2)
            if self._format == "contiguous":
                images = images.contiguous()
        elif self._device is not None and self._device.type == "cuda":
            images = torch.from_dlpack(batch.images)
        else:
            images = self._normalised(batch)
        if self._device is not None and self._device.type == "cuda":
            return self._to_cuda(images, batch.affine, target)
        return images, target if self._soft else target.to(torch.int64)

    def _target(self, batch: Batch) -> Any:
        if not self._soft:
            return torch.from_dlpack(batch.labels)
        soft = torch.empty((batch.count, self._soft), dtype=torch.float32)
        batch._soft_targets(self._soft, soft.data_ptr())
        return soft

    def _normalised(self, batch: Batch) -> Any:
        pixels = batch.images
        assert pixels is not None
        n, height, width, channels = pixels.shape
        planar = self._format == "contiguous"
        if planar:
            out = torch.empty((n, channels, height, width), dtype=torch.float32)
        else:
            out = torch.empty((n, channels, height, width), dtype=torch.float32, memory_format=torch.channels_last)
        _l.native.mrp_normalise(pixels.data_ptr, n, height, width, channels, self._means, self._stds, planar, out.data_ptr())
        if batch.affine is not None:  # standardise: another pair of numbers for each picture
            pair = torch.from_dlpack(batch.affine)
            raw = torch.from_dlpack(pixels).permute(0, 3, 1, 2)
            out.copy_(raw).mul_(pair[:, 0].view(n, 1, 1, 1)).add_(pair[:, 1].view(n, 1, 1, 1))
        return out

    def _to_cuda(self, images: Any, affine: Any, target: Any) -> Tuple[Any, Any]:
        """The copy goes on a stream of its own, behind which torch's current one waits; bytes cross, floats are made there."""
        if self._stream is None:
            self._stream = torch.cuda.Stream(self._device)
        with torch.cuda.stream(self._stream):
            labels = self._across(target)
            if not self._soft:
                labels = labels.to(torch.int64)
            pixels = None if images is None else self._across(images)
            if pixels is not None and not self._uint8:
                pair = None if affine is None else self._across(torch.from_dlpack(affine))
                pixels = self._floats(pixels, pair)
        current = torch.cuda.current_stream(self._device)
        current.wait_stream(self._stream)
        for t in (pixels, labels):
            if t is not None:
                t.record_stream(current)
        return pixels, labels

    def _across(self, host: Any) -> Any:
        return host.pin_memory().to(self._device, non_blocking=True)

    def _floats(self, pixels: Any, pair: Any) -> Any:
        """(n, h, w, c) bytes as _normalised() would deliver them, made where they lie."""
        made = pixels.to(torch.float32)
        if pair is not None:
            made = made * pair[:, 0].view(-1, 1, 1, 1) + pair[:, 1].view(-1, 1, 1, 1)
        else:
            if self._scale is None:
                self._scale = tuple(torch.tensor(list(v), device=pixels.device) for v in (self._means, self._stds))
            made = (made - self._scale[0]) / self._scale[1]
        made = made.permute(0, 3, 1, 2)
        return made.contiguous() if self._format == "contiguous" else made

    def __reduce__(self) -> Any:
        from ._loader import _again
        from ._operations import see_sendable
        see_sendable(self._given)
        return _again, (type(self), self._torch_given)


__all__ = ["Loader"]
