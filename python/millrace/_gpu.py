"""Batches to a GPU: from pinned memory, on a stream of their own, while the program computes.

    loader's threads -> [thread that finishes batches, into pinned memory] -> next(): copies are queued -> torch's current stream waits

next() copies nothing itself and allocates no host memory."""
from __future__ import annotations

from collections import deque
from typing import Any, Deque, List, Optional, Tuple

import torch

from ._arrays import Array, Batch

_UNDER_WAY = 2  # batches that next() returned, and whose memory the GPU may still read


def pinned(size: int) -> torch.Tensor:
    return torch.empty(size, dtype=torch.uint8, pin_memory=True)


def send(host: torch.Tensor, device: Any) -> torch.Tensor:
    return host.to(device, non_blocking=True)


def view_of(array: Array, memory: List[torch.Tensor]) -> Any:
    """A tensor over the array, of the memory that it lies in."""
    for m in memory:
        at = array.data_ptr - m.data_ptr()
        if 0 <= at < m.numel():
            return m[at:at + array.nbytes].view(getattr(torch, array.dtype)).view(array.shape)
    return torch.from_dlpack(array)  # it was too large, or missing: the copy is slower


class Gpu:
    """The way of one loader's batches to a device.

    dtype, planar  of pixels there
    means, stds    by which bytes become numbers"""

    def __init__(self, device: Any, dtype: Any, planar: bool, means: List[float], stds: List[float]) -> None:
        self._device, self._dtype, self._planar, self._numbers = device, dtype, planar, (means, stds)
        self._stream: Any = None
        self._scale: Any = None  # means and deviations on the device
        self._under_way: Deque[Tuple[Any, Any]] = deque()  # (the event of its end, the source)

    def deliver(self, batch: Batch, further: Optional[Array] = None) -> Tuple[Any, Any]:
        """(pixels, targets) there, which torch's current stream waits for. further: an array of the batch that is the targets."""
        if self._stream is None:
            self._stream = torch.cuda.Stream(self._device)
        with torch.cuda.stream(self._stream):
            memory: List[torch.Tensor] = batch._memory
            host = [None if a is None else view_of(a, memory) for a in (batch.targets if further is None else further, batch.images, batch.affine)]
            targets, pixels, affine = [None if t is None else send(t, self._device) for t in host]
            if pixels is not None:
                pixels = self._formed(pixels, affine)
            over = torch.cuda.Event()
            over.record(self._stream)
        self._under_way.append((over, (batch._lease, host)))
        while self._under_way and (len(self._under_way) > _UNDER_WAY or self._under_way[0][0].query()):
            self._finish_oldest()
        current = torch.cuda.current_stream(self._device)
        current.wait_stream(self._stream)
        for t in (pixels, targets):
            if t is not None:
                t.record_stream(current)
        return pixels, targets

    def _finish_oldest(self) -> None:
        """Its copy ends before its memory goes back to the loader, which writes another batch there."""
        self._under_way[0][0].synchronize()
        self._under_way.popleft()

    def _formed(self, pixels: Any, affine: Optional[Any]) -> Any:
        """(n, h, w, c) bytes as a finished batch has them, made where they lie."""
        if self._dtype is not torch.uint8:
            made = pixels.to(torch.float32)
            if affine is not None:
                made = made * affine[:, 0].view(-1, 1, 1, 1) + affine[:, 1].view(-1, 1, 1, 1)
            else:
                if self._scale is None:
                    self._scale = tuple(torch.tensor(list(v), device=pixels.device) for v in self._numbers)
                made = (made - self._scale[0]) / self._scale[1]
            pixels = made.to(self._dtype)
        pixels = pixels.permute(0, 3, 1, 2)
        return pixels.contiguous() if self._planar else pixels

    def close(self) -> None:
        """Copies under way end before their memory is freed."""
        while self._under_way:
            self._finish_oldest()
