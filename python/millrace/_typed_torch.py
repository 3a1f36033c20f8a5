"""Arguments of millrace.torch.Loader. For type checkers, editors, and programs that ask for types of arguments.

Written by tools/scripts/python_types.py."""
from __future__ import annotations

from typing import Any, Callable, Literal, Optional, Union

import torch

from ._typed import Settings


class TorchSettings(Settings, total=False):
    """All but those by which the kind of its batches follows."""
    batch: Optional[int]
    memory_format: Union[None, Literal["contiguous", "channels_last"], torch.memory_format]
    dtype: Union[None, Literal["float32", "float16", "bfloat16", "uint8"], torch.dtype]
    device: Union[None, str, torch.device]
    uint8: bool
    drop_last: bool
    ignore_index: int
    num_classes: Optional[int]
    transform: Optional[Callable[[Any], Any]]
    target_transform: Optional[Callable[[Any], Any]]


class DataLoaderSettings(TorchSettings, total=False):
    """With the arguments of torch.utils.data.DataLoader."""
    batch_sampler: Any
    num_workers: int
    prefetch_factor: Optional[int]
    pin_memory: bool
    generator: Optional[torch.Generator]
    persistent_workers: bool
    multiprocessing_context: Any
    worker_init_fn: Optional[Callable[[int], Any]]
    pin_memory_device: str
    timeout: float
    in_order: bool
