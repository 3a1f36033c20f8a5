"""Arguments of loaders and commands. For type checkers, editors, and programs that ask for types of arguments.

Written by tools/scripts/python_types.py."""
from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Callable, Dict, Literal, Optional, Sequence, TypedDict, Union

from ._errors import Error

if TYPE_CHECKING:
    from typing_extensions import Unpack as Unpack
else:
    try:
        from typing import Unpack
    except ImportError:  # before Python 3.11: for who asks, something that takes a type
        Unpack = Optional

SampleOrder = Literal["shuffle", "block", "sequential", "balanced"]
Tail = Literal["keep", "drop", "pad"]
Bad = Literal["stop", "replace", "skip"]
Io = Literal["auto", "io_uring", "pread"]
Pixels = Literal["own", "libjpeg"]
Split = Literal["auto", "train", "test"]
Classes = Literal["first", "depth", "none"]
Cache = Literal["off", "memory", "disk"]
Dedup = Literal["none", "bytes", "pixels"]
Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
Words = Union[str, float, Sequence[Union[str, float]]]  # a list in place of the command line's separated words


class SourceSettings(TypedDict, total=False):
    """The settings of a data set."""
    format: Optional[str]
    split: Split
    image_key: Optional[str]
    label_key: Optional[str]
    classes: Classes
    index_folder: Any
    take: Any
    target_key: Optional[str]
    split_key: Optional[str]
    only_classes: Union[None, str, Sequence[str]]
    rename_classes: Any
    classes_from: Any
    where: Optional[str]
    dedup: Optional[Dedup]
    take_each: Any
    sample: int
    sample_seed: int
    stratify: bool


class Settings(SourceSettings, total=False):
    """Arguments of all loaders."""
    seed: int
    order: Optional[SampleOrder]
    block: int
    tail: Tail
    augment: str
    channels: int
    bad: Bad
    max_bad: int
    width_multiple: int
    length_window: int
    repeats: int
    prefetch: int
    workers: int
    readers: int
    depth: int
    io: Io
    direct: bool
    memory: int
    resident: int
    entry_bytes: int
    checks: bool
    exif: bool
    max_pixels: int
    max_scans: int
    pixels: Pixels
    pictures: Union[str, Sequence[str]]
    training: bool
    rank: Optional[int]
    world: Optional[int]
    hold: int
    sampler: Any
    operations: Optional[Dict[str, Any]]
    normalise: Any
    cache: Cache
    cache_folder: Any
    cache_bytes: Optional[int]
    on_bad: Optional[Callable[[Error, Optional[int]], None]]
    on_note: Optional[Callable[[str], None]]
    tune: bool


class PassSettings(Settings, total=False):
    """Arguments of loaders whose iterations are epochs."""
    fields: Sequence[Union[str, Dict[str, Any]]]


class LoaderSettings(PassSettings, total=False):
    """Arguments of millrace.Loader."""
    batch: int
    epochs: Optional[int]


class TrainSettings(TypedDict, total=False):
    """Options of `millrace train`."""
    stratify: bool
    checkpoint_steps: Optional[int]
    keep: Optional[int]
    override: bool
    force: bool
    patience: Optional[int]
    max_steps: Optional[int]
    warmup_steps: Optional[int]
    trace: Optional[Path]
    init: Optional[Path]
    init_skip: Optional[Words]
    eval_steps: Optional[int]
    eval_at: Optional[Words]
    stop_at_accuracy: Optional[float]
    live: bool
    log_steps: Optional[int]
    tensorboard: Optional[Path]
    csv: Optional[Path]
    metrics: Optional[Union[int, str]]
    show: bool
    show_steps: Optional[int]
    optimizer: Optional[str]
    momentum: Optional[float]
    weight_decay: Optional[float]
    schedule: Optional[Words]
    scale: bool
    decay_on: Optional[Literal["all", "weights"]]
    clip_value: Optional[float]
    clip_norm: Optional[float]
    lookahead: Optional[int]
    average: Optional[float]
    label_smoothing: Optional[float]
    freeze: Optional[Words]
    sync: Optional[Words]
    outer_lr: Optional[float]
    outer_momentum: Optional[float]
    outer_rule: Optional[Literal["nesterov", "heavy-ball"]]
    exchange: Optional[Literal["f32", "bf16", "f16", "int8", "1bit"]]
    loss: Optional[Literal["own", "bce", "mse", "l1", "huber"]]
    targets: Optional[str]
    class_weights: Optional[Words]
    order: Optional[Literal["shuffle", "block", "sequential", "balanced"]]
    block: Optional[int]
    tail: Optional[Literal["keep", "drop", "pad"]]
    channels: Optional[int]
    bad: Optional[Literal["stop", "replace", "skip"]]
    max_bad: Optional[int]
    bad_list: Optional[Path]
    fields: Optional[Words]
    width_multiple: Optional[int]
    length_window: Optional[Union[int, Literal["off"], bool]]
    repeats: Optional[int]
    prefetch: Optional[Union[int, Literal["off"], bool]]
    workers: Optional[int]
    readers: Optional[int]
    depth: Optional[int]
    io: Optional[Literal["auto", "uring", "pread"]]
    direct: bool
    memory: Optional[Union[int, str]]
    resident: Optional[Union[int, str]]
    cache: Optional[Words]
    entries: Optional[Union[int, str]]
    checks: Optional[Union[Literal["on", "off"], bool]]
    tune: bool
    tune_again: bool
    autotune: bool
    retune: bool
    trace_steps: Optional[Words]
    threads: Optional[int]
    kernels: Optional[Literal["fast", "reference"]]
    convolution: Optional[Literal["auto", "direct"]]
    parts: Optional[int]
    part_threads: Optional[int]
    place: Optional[Words]
    meet: Optional[Words]
    meet_wait: Optional[Union[float, str]]
    silence: Optional[Union[float, str]]
    wire: Optional[Literal["auto", "tcp", "shm"]]
    elastic: Optional[Words]
    leave_out: Optional[int]
    precision: Optional[Literal["f32", "tf32", "bf16", "f16"]]
    deterministic: bool
    graph: Optional[Union[Literal["on", "off"], bool]]
    bucket: Optional[Union[int, str]]
    watchdog: Optional[Union[float, str]]
    loss_scale: Optional[Union[int, Literal["auto"]]]
    format: Optional[str]
    split: Optional[Literal["auto", "train", "test"]]
    classes: Optional[Literal["first", "depth", "none"]]
    image_key: Optional[str]
    label_key: Optional[str]
    label_offset: Optional[Union[int, Literal["auto"]]]
    match_classes: Optional[Literal["auto", "order"]]
    index_folder: Optional[Path]
    remote_cache: Optional[Path]
    remote_size: Optional[Union[int, str]]
    outside: Optional[Literal["refuse", "take"]]
    take: Optional[Words]
    target_key: Optional[str]
    split_key: Optional[str]
    exif: Optional[Literal["apply", "ignore"]]
    max_pixels: Optional[int]
    max_scans: Optional[int]
    pixels: Optional[Literal["own", "libjpeg"]]
    pictures: Optional[str]
    classes_from: Optional[Path]
    rename_classes: Optional[Path]
    only_classes: Optional[str]
    where: Optional[Words]
    dedup: Optional[Literal["none", "bytes", "pixels"]]
    take_each: Optional[Words]
    sample: Optional[int]
    sample_seed: Optional[int]


class EvalSettings(TypedDict, total=False):
    """Options of `millrace eval`."""
    draw: Optional[Words]
    confusion: Optional[Words]
    views: Optional[Words]
    force: bool
    batch: Optional[int]
    epochs: Optional[int]
    seed: Optional[int]
    order: Optional[Literal["shuffle", "block", "sequential", "balanced"]]
    block: Optional[int]
    tail: Optional[Literal["keep", "drop", "pad"]]
    augment: Optional[Words]
    channels: Optional[int]
    bad: Optional[Literal["stop", "replace", "skip"]]
    max_bad: Optional[int]
    bad_list: Optional[Path]
    fields: Optional[Words]
    width_multiple: Optional[int]
    length_window: Optional[Union[int, Literal["off"], bool]]
    repeats: Optional[int]
    prefetch: Optional[Union[int, Literal["off"], bool]]
    workers: Optional[int]
    readers: Optional[int]
    depth: Optional[int]
    io: Optional[Literal["auto", "uring", "pread"]]
    direct: bool
    memory: Optional[Union[int, str]]
    resident: Optional[Union[int, str]]
    cache: Optional[Words]
    entries: Optional[Union[int, str]]
    checks: Optional[Union[Literal["on", "off"], bool]]
    devices: Optional[Words]
    threads: Optional[int]
    kernels: Optional[Literal["fast", "reference"]]
    convolution: Optional[Literal["auto", "direct"]]
    parts: Optional[int]
    part_threads: Optional[int]
    place: Optional[Words]
    meet: Optional[Words]
    meet_wait: Optional[Union[float, str]]
    silence: Optional[Union[float, str]]
    wire: Optional[Literal["auto", "tcp", "shm"]]
    precision: Optional[Literal["f32", "tf32", "bf16", "f16"]]
    deterministic: bool
    graph: Optional[Union[Literal["on", "off"], bool]]
    bucket: Optional[Union[int, str]]
    watchdog: Optional[Union[float, str]]
    loss_scale: Optional[Union[int, Literal["auto"]]]
    format: Optional[str]
    split: Optional[Literal["auto", "train", "test"]]
    classes: Optional[Literal["first", "depth", "none"]]
    image_key: Optional[str]
    label_key: Optional[str]
    label_offset: Optional[Union[int, Literal["auto"]]]
    match_classes: Optional[Literal["auto", "order"]]
    index_folder: Optional[Path]
    remote_cache: Optional[Path]
    remote_size: Optional[Union[int, str]]
    outside: Optional[Literal["refuse", "take"]]
    take: Optional[Words]
    target_key: Optional[str]
    split_key: Optional[str]
    exif: Optional[Literal["apply", "ignore"]]
    max_pixels: Optional[int]
    max_scans: Optional[int]
    pixels: Optional[Literal["own", "libjpeg"]]
    pictures: Optional[str]
    classes_from: Optional[Path]
    rename_classes: Optional[Path]
    only_classes: Optional[str]
    where: Optional[Words]
    dedup: Optional[Literal["none", "bytes", "pixels"]]
    take_each: Optional[Words]
    sample: Optional[int]
    sample_seed: Optional[int]


class PredictSettings(TypedDict, total=False):
    """Options of `millrace predict`."""
    top: Optional[int]
    views: Optional[Words]
    out: Optional[Path]
    force: bool
    classes_from: Optional[Path]
    rename_classes: Optional[Path]
    only_classes: Optional[str]
    where: Optional[Words]
    dedup: Optional[Literal["none", "bytes", "pixels"]]
    take_each: Optional[Words]
    sample: Optional[int]
    sample_seed: Optional[int]
    batch: Optional[int]
    epochs: Optional[int]
    seed: Optional[int]
    order: Optional[Literal["shuffle", "block", "sequential", "balanced"]]
    block: Optional[int]
    tail: Optional[Literal["keep", "drop", "pad"]]
    augment: Optional[Words]
    channels: Optional[int]
    bad: Optional[Literal["stop", "replace", "skip"]]
    max_bad: Optional[int]
    bad_list: Optional[Path]
    fields: Optional[Words]
    width_multiple: Optional[int]
    length_window: Optional[Union[int, Literal["off"], bool]]
    repeats: Optional[int]
    prefetch: Optional[Union[int, Literal["off"], bool]]
    workers: Optional[int]
    readers: Optional[int]
    depth: Optional[int]
    io: Optional[Literal["auto", "uring", "pread"]]
    direct: bool
    memory: Optional[Union[int, str]]
    resident: Optional[Union[int, str]]
    cache: Optional[Words]
    entries: Optional[Union[int, str]]
    checks: Optional[Union[Literal["on", "off"], bool]]
    devices: Optional[Words]
    threads: Optional[int]
    kernels: Optional[Literal["fast", "reference"]]
    convolution: Optional[Literal["auto", "direct"]]
    precision: Optional[Literal["f32", "tf32", "bf16", "f16"]]
    deterministic: bool
    graph: Optional[Union[Literal["on", "off"], bool]]
    bucket: Optional[Union[int, str]]
    watchdog: Optional[Union[float, str]]
    loss_scale: Optional[Union[int, Literal["auto"]]]
    format: Optional[str]
    split: Optional[Literal["auto", "train", "test"]]
    classes: Optional[Literal["first", "depth", "none"]]
    image_key: Optional[str]
    label_key: Optional[str]
    label_offset: Optional[Union[int, Literal["auto"]]]
    match_classes: Optional[Literal["auto", "order"]]
    index_folder: Optional[Path]
    remote_cache: Optional[Path]
    remote_size: Optional[Union[int, str]]
    outside: Optional[Literal["refuse", "take"]]
    take: Optional[Words]
    target_key: Optional[str]
    split_key: Optional[str]
    exif: Optional[Literal["apply", "ignore"]]
    max_pixels: Optional[int]
    max_scans: Optional[int]
    pixels: Optional[Literal["own", "libjpeg"]]
    pictures: Optional[str]
