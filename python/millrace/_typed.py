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
Pixels = Literal["own", "libjpeg", "reduced"]
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


class LoaderSettings(Settings, total=False):
    """Arguments of millrace.Loader."""
    batch: int
    epochs: Optional[int]
    fields: Sequence[Union[str, Dict[str, Any]]]


class TrainSettings(TypedDict, total=False):
    """Options of `millrace train`, further ones of millrace.train():

    stratify        with hold_out: take the same fraction of each class
    checkpoint_steps write a checkpoint also every this many steps; 0: only after epochs (default 0)
    keep            keep this many newest checkpoints, and the best one (default 3)
    override        with resume: options given here replace the checkpoint's settings
    force           move other runs' checkpoints in checkpoint to a folder in it
    patience        stop after N epochs without a lower val_loss; 0: never (default 0)
    max_steps       stop after this many steps; 0: no limit (default 0)
    warmup_steps    exclude this many first steps of an epoch from the rates (default 3)
    trace           write a timeline of all stages as a Chrome trace for ui.perfetto.dev
    init            start from the weights of FILE: .safetensors, .npz (our names or torchvision's), or another run's checkpoint or
                    folder; the last layer starts anew if FILE has another number of classes
    init_skip       with init: initialise these layers anew, named as for freeze
    eval_steps      validate every this many steps and after epochs; 0: after epochs only (default 0)
    eval_at         validate also at these epochs, which may be fractions: 0.5/1.25
    stop_at_accuracy stop when the accuracy of the validation (without validation: of an epoch) reaches this, and report the time; 0:
                    never (default 0)
    live            show stages, devices and rates four times a second instead of the bar; on a terminal
    log_steps       report loss, accuracy, learning rate and speed every this many steps to json, csv and tensorboard; 0: after
                    epochs only (default 0)
    tensorboard     write an event file for TensorBoard to this folder
    csv             write a line for each epoch; a resumed run continues the file
    metrics         serve figures of the run to Prometheus at http://HOST:PORT/metrics; without HOST only this machine can ask; 0:
                    any free port, which is printed
    show            print the learning rate at the beginning of each epoch (log_steps N: at every N-th update) and end
    show_steps      with show: assume this many updates per epoch without looking at DATA; 0: count the updates of DATA (default 0)
    optimizer       optimizer: sgd, momentum, adam, adamw, ...; a wrong name lists all
    momentum        momentum of the rule; default: the rule's
    weight_decay    weight decay; default: the model's
    schedule        schedule of the learning rate: constant, cosine, linear, step:E1/E2, piecewise:LR@E, exponential:F, decay:D, each
                    with ,warmup=E; onecycle; default: the model's
    scale           multiply batch and learning rate by the number of replicas
    decay_on        apply weight decay to all parameters, or to weights only: not to biases, nor to scale and shift of normalisation
                    (default all)
    clip_value      clip each element of the gradient to [-X, X]; 0: off
    clip_norm       scale the gradient down to a norm of at most X; 0: off
    lookahead       Lookahead: every K updates move the weights half the way back to their values K updates before; 0: off (default
                    0)
    average         keep a moving average of the weights with this decay, such as 0.999, and evaluate it; 0: off
    label_smoothing label smoothing: targets of 1 - X for the label plus X spread over all classes, such as 0.1; default: the
                    model's, mostly 0
    freeze          do not train these layers: numbers of inspect model, 0-40, blocks, kinds, backbone (all but the last with
                    weights), head; none
    sync            sync: sum the gradients of all shares of a batch for each update; average:N: train each share's own weights for N
                    updates, then average them (local SGD, DiLoCo); independent: never average them; delayed: update with the
                    gradients of the batch before; ps: servers add the gradients and update; ps-async:N: they update with each
                    process's gradient by itself, and no process is more than N steps ahead. All but sync and ps are other algorithms
                    (default sync)
    outer_lr        with sync average: factor of the mean change of the shares' weights; DiLoCo: 0.7 (default 1)
    outer_momentum  with sync average: momentum of the averages; DiLoCo: 0.9; 0: the plain mean
    outer_rule      with outer_momentum: Nesterov momentum (DiLoCo) or the heavy ball (SlowMo, block momentum) (default nesterov)
    exchange        send gradients between processes in fewer bits, and add the remainder to the next gradients (default f32)
    loss            loss; own: the model's, mostly of classes; bce: several labels per sample; mse, l1, huber: numbers (default own)
    targets         with loss: the field with the labels or numbers; the array, column, or columns (FIRST..LAST) of NumPy arrays and
                    tables
    class_weights   weights of the classes in the training loss: balanced (rare ones more), numbers (0.5/2/1), or a file of them;
                    none
    order           order of the samples in an epoch; block: shuffled blocks of neighbours, for slow media; balanced: all classes
                    equally often, samples of small ones several times (default shuffle)
    block           samples per block with order block (default 256)
    tail            keep a short last batch, drop it, or pad it with samples that do not count (default keep)
    channels        deliver 1 (gray) or 3 (colour) channels; 0: as the data have (default 0)
    bad             stop at a damaged sample, replace it by another, or skip it (default stop)
    max_bad         more damaged samples than this stop the run (default 100)
    bad_list        write each damaged sample to this file, one JSON object per line
    fields          deliver also these fields: NAME[:plain|boxes|values|mask][:most=N][:pad=X][:pixels], ...; boxes and masks follow
                    their picture, values their boxes
    width_multiple  pad rows of different lengths to the longest of their batch, rounded up to a multiple of this (default 1)
    length_window   sort sequences by length inside windows of this many batches, and deliver the batches of a window in random
                    order: less padding (default off)
    repeats         repeat each sample this many times in its batch, each time with its own augmentation; an epoch keeps its length,
                    and has fewer samples (default 1)
    prefetch        prepare this many batches ahead; off: read, decode and copy in series with the training step (default 4)
    workers         decode threads; 0: one per core (default 0)
    readers         reader threads; 0: one with io_uring, four with pread (default 0)
    depth           reads in flight per reader (default 32)
    io              read by this method; auto: io_uring if the kernel allows it, else pread threads (default auto)
    direct          bypass the page cache (O_DIRECT)
    memory          limit the host memory of the loader; 0: half of the memory available to the process (default 0)
    resident        read data of small samples up to this size once and keep them in memory, at most a quarter of memory; 0: never
                    (default 1G)
    cache           keep samples from the first epoch on: ram:SIZE, ram (half of the memory that the rest of the loader leaves), or
                    disk:FOLDER:SIZE, which outlives the run; batches keep the same bits (default off)
    entries         store entry points of JPEG files in memory during the first of several epochs, up to this size and an eighth of
                    memory: later epochs skip the rows above a crop; 0: never (default 1G)
    checks          verify the checksums of records; off measures their cost and does not detect damaged records (default on)
    tune            find the fastest workers, prefetch, depth, readers and buckets during the first steps, and cache in memory if the
                    loader is the limit; options that are given keep their values, and the next run starts with the values found
    tune_again      as tune, but ignore the values stored by an earlier run
    autotune        another name of tune, which mpirun of Open MPI takes for itself
    retune          another name of tune_again, for the same reason
    trace_steps     keep only these steps in the trace; the first step of a run is 1. By default the trace keeps the newest 262,144
                    spans
    threads         cores shared by the computing of all cpu devices; 0: all (default 0)
    kernels         kernels of cpu devices; reference: the plain C code against which all others are tested (default fast)
    convolution     convolutions of cpu devices; auto: Winograd's algorithm for the shapes of layers where it is faster; direct:
                    never (default auto)
    parts           cut a batch into V parts and add their gradients in one order: the same weights to the bit on 1 to V devices of 1
                    to V processes (default: the number of devices, or of the checkpoint)
    part_threads    with parts: threads that compute one part on a processor; weights depend on it (default 1)
    place           spread a network that does not fit one device over several: block1=0,rest=1 puts the layers of a block on the
                    first device and all others on the second, 0-5=0,rest=1 selects layers by number (inspect model)
    meet            address where the processes of a run meet: of the first one's machine, with a free port; required if the launcher
                    does not give one (mpirun over several machines)
    meet_wait       time to wait for each other at the start (default 60)
    silence         count a process as lost after this much silence; 0: never; the same in all processes (default 10)
    wire            how gradients travel between the processes; auto: nccl between GPUs if every process can use it, else shared
                    memory within a machine, tcp between machines; shm: refuse to start if two processes cannot share memory; nccl:
                    from GPU to GPU by NCCL; mpi: messages of Open MPI or MPICH; ucx: messages of UCX (default auto)
    elastic         continue when a process is lost while MIN remain, and admit new ones up to MAX; the batch is cut into parts, MAX
                    by default
    leave_out       reject new processes of a machine that lost this many within ten minutes, unless fewer than MIN remain; 0: never
                    reject (default 3)
    servers         with sync ps and ps-async: number of processes that only serve parameters, the first one of each of the first
                    machines; 0: one on each machine with several processes (default 0)
    precision       precision of activations and their gradients; weights are always f32; tf32: f32 with rounded products; all but
                    f32 on cuda devices only (default f32)
    deterministic   use only GPU algorithms that give the same bits in every run (cpu devices have no others)
    graph           record a step once and replay it if the device supports it; off: queue every call anew (default on)
    bucket          sum gradients over replicas in pieces of about this size during the backward pass; 0: all at once after it;
                    default: 25M, in several processes a size for their network
    watchdog        end the run when a step is not over after this time, and name the replica that hangs; 0: never (default 300)
    loss_scale      with f16: multiply gradients by this power of two; auto: the largest without overflow (default auto)
    format          set the format of the data if their content does not show it; a wrong name lists all formats
    split           split of the data; auto: the train split, or all data without splits (default auto)
    classes         classes of folders of pictures: first: each folder of the first level; depth: each folder with pictures, such as
                    animals/cat; none: no labels (default first)
    image_key       feature, member, column or array of the picture; default: the names that common writers use
    label_key       feature, member, column or array of the class; of several unnamed labels: the number of one, from 0
    label_offset    subtract N from every label; auto: training subtracts 1 if the smallest label of all its data is 1 (default auto)
    match_classes   match classes of two sets by name or number, or by order (default auto)
    index_folder    keep indexes in this folder if they cannot be written next to their data (default $XDG_CACHE_HOME/millrace); off:
                    nowhere
    remote_cache    store data of http:// and https:// addresses in this folder (default $XDG_CACHE_HOME/millrace/remote)
    remote_size     limit the disk space of remote_cache; the least recently used data are deleted first (default 16G)
    outside         refuse or take files that a table names outside of its own folder (../x, /x, links that lead out) (default
                    refuse)
    take            take a share of the samples, as fractions of a random order, the same in every run: 0:0.9 and 0.9:1 share no
                    sample; 0.1 is 0:0.1
    target_key      add a field from this array, column, or columns (FIRST..LAST) of numbers of NumPy arrays or a table
    split_key       column of a table with the split of each row (train, val, test); NAME=VALUE: rows with VALUE are the test split;
                    default: split, set, is_train and similar names; none: no column
    exif            rotate pictures by their EXIF orientation, or leave them as stored (default apply)
    max_pixels      treat pictures with more pixels as bad samples, before memory is allocated (default 100000000)
    max_scans       treat progressive pictures with more scans as bad (default 100)
    pixels          a JPEG's pixels: own; libjpeg: its RGB, resampled; reduced: as own, but large reductions from means of 8 x 8
                    samples (default own)
    pictures        kinds of picture files that are decoded, with commas between them, or all; others are bad samples (default all)
    classes_from    name numbered classes: a line for each, from the first number on
    rename_classes  rename classes by a file of lines "OLD<tab>NEW"; classes that get the same name are merged
    only_classes    take only samples of these classes, a comma-separated list of names; named classes are numbered anew
    where           take samples that meet all conditions of a comma-separated list: label, width, height, bytes with <, <=, >, >=,
                    =, !=; key (the name), class with =, != or ~, !~ and a pattern: "width>=256,key~train/*"
    dedup           leave out samples with the picture of an earlier one: the same bytes, or the same decoded pixels (default none)
    take_each       take a share of each class, as fractions of a random order: 0:0.9 and 0.9:1 have no common sample and together
                    all
    sample          draw this many of the chosen samples; 0: all (default 0)
    sample_seed     with sample: seed of the draw (default 0)"""
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
    sync: Optional[Union[Words, Words]]
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
    wire: Optional[Literal["auto", "tcp", "shm", "nccl", "mpi", "ucx"]]
    elastic: Optional[Words]
    leave_out: Optional[int]
    servers: Optional[int]
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
    pixels: Optional[Literal["own", "libjpeg", "reduced"]]
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
    """Options of `millrace eval`, further ones of millrace.evaluate():

    draw            with an autoencoder: show pictures, their reconstructions, and generated pictures
    confusion       count the confusions between classes and the right answers of each; show the worst
    views           average over several views of each sample: flip: with its mirror image; five: the middle and the corners; ten:
                    both
    force           with draw, confusion: replace an existing file
    batch           samples in a global batch, over all replicas; default: the model's, else 128
    epochs          passes over the data; default: the model's when training, else 1
    seed            seed of order, augmentation, initial weights and dropout (default 0)
    order           order of the samples in an epoch; block: shuffled blocks of neighbours, for slow media; balanced: all classes
                    equally often, samples of small ones several times (default shuffle)
    block           samples per block with order block (default 256)
    tail            keep a short last batch, drop it, or pad it with samples that do not count (default keep)
    augment         augment pictures: none, cifar, rrc224, center224, or operations such as rrc(224),flip; default: the model's, else
                    none
    channels        deliver 1 (gray) or 3 (colour) channels; 0: as the data have (default 0)
    bad             stop at a damaged sample, replace it by another, or skip it (default stop)
    max_bad         more damaged samples than this stop the run (default 100)
    bad_list        write each damaged sample to this file, one JSON object per line
    fields          deliver also these fields: NAME[:plain|boxes|values|mask][:most=N][:pad=X][:pixels], ...; boxes and masks follow
                    their picture, values their boxes
    width_multiple  pad rows of different lengths to the longest of their batch, rounded up to a multiple of this (default 1)
    length_window   sort sequences by length inside windows of this many batches, and deliver the batches of a window in random
                    order: less padding (default off)
    repeats         repeat each sample this many times in its batch, each time with its own augmentation; an epoch keeps its length,
                    and has fewer samples (default 1)
    prefetch        prepare this many batches ahead; off: read, decode and copy in series with the training step (default 4)
    workers         decode threads; 0: one per core (default 0)
    readers         reader threads; 0: one with io_uring, four with pread (default 0)
    depth           reads in flight per reader (default 32)
    io              read by this method; auto: io_uring if the kernel allows it, else pread threads (default auto)
    direct          bypass the page cache (O_DIRECT)
    memory          limit the host memory of the loader; 0: half of the memory available to the process (default 0)
    resident        read data of small samples up to this size once and keep them in memory, at most a quarter of memory; 0: never
                    (default 1G)
    cache           keep samples from the first epoch on: ram:SIZE, ram (half of the memory that the rest of the loader leaves), or
                    disk:FOLDER:SIZE, which outlives the run; batches keep the same bits (default off)
    entries         store entry points of JPEG files in memory during the first of several epochs, up to this size and an eighth of
                    memory: later epochs skip the rows above a crop; 0: never (default 1G)
    checks          verify the checksums of records; off measures their cost and does not detect damaged records (default on)
    devices         one replica per device: cpu, cpu:4, cuda:0,1, cuda:all, sim:8,step=3ms,h2d=25GB/s (default cpu)
    threads         cores shared by the computing of all cpu devices; 0: all (default 0)
    kernels         kernels of cpu devices; reference: the plain C code against which all others are tested (default fast)
    convolution     convolutions of cpu devices; auto: Winograd's algorithm for the shapes of layers where it is faster; direct:
                    never (default auto)
    parts           cut a batch into V parts and add their gradients in one order: the same weights to the bit on 1 to V devices of 1
                    to V processes (default: the number of devices, or of the checkpoint)
    part_threads    with parts: threads that compute one part on a processor; weights depend on it (default 1)
    place           spread a network that does not fit one device over several: block1=0,rest=1 puts the layers of a block on the
                    first device and all others on the second, 0-5=0,rest=1 selects layers by number (inspect model)
    meet            address where the processes of a run meet: of the first one's machine, with a free port; required if the launcher
                    does not give one (mpirun over several machines)
    meet_wait       time to wait for each other at the start (default 60)
    silence         count a process as lost after this much silence; 0: never; the same in all processes (default 10)
    wire            how gradients travel between the processes; auto: nccl between GPUs if every process can use it, else shared
                    memory within a machine, tcp between machines; shm: refuse to start if two processes cannot share memory; nccl:
                    from GPU to GPU by NCCL; mpi: messages of Open MPI or MPICH; ucx: messages of UCX (default auto)
    precision       precision of activations and their gradients; weights are always f32; tf32: f32 with rounded products; all but
                    f32 on cuda devices only (default f32)
    deterministic   use only GPU algorithms that give the same bits in every run (cpu devices have no others)
    graph           record a step once and replay it if the device supports it; off: queue every call anew (default on)
    bucket          sum gradients over replicas in pieces of about this size during the backward pass; 0: all at once after it;
                    default: 25M, in several processes a size for their network
    watchdog        end the run when a step is not over after this time, and name the replica that hangs; 0: never (default 300)
    loss_scale      with f16: multiply gradients by this power of two; auto: the largest without overflow (default auto)
    format          set the format of the data if their content does not show it; a wrong name lists all formats
    split           split of the data; auto: the train split, or all data without splits (default auto)
    classes         classes of folders of pictures: first: each folder of the first level; depth: each folder with pictures, such as
                    animals/cat; none: no labels (default first)
    image_key       feature, member, column or array of the picture; default: the names that common writers use
    label_key       feature, member, column or array of the class; of several unnamed labels: the number of one, from 0
    label_offset    subtract N from every label; auto: training subtracts 1 if the smallest label of all its data is 1 (default auto)
    match_classes   match classes of two sets by name or number, or by order (default auto)
    index_folder    keep indexes in this folder if they cannot be written next to their data (default $XDG_CACHE_HOME/millrace); off:
                    nowhere
    remote_cache    store data of http:// and https:// addresses in this folder (default $XDG_CACHE_HOME/millrace/remote)
    remote_size     limit the disk space of remote_cache; the least recently used data are deleted first (default 16G)
    outside         refuse or take files that a table names outside of its own folder (../x, /x, links that lead out) (default
                    refuse)
    take            take a share of the samples, as fractions of a random order, the same in every run: 0:0.9 and 0.9:1 share no
                    sample; 0.1 is 0:0.1
    target_key      add a field from this array, column, or columns (FIRST..LAST) of numbers of NumPy arrays or a table
    split_key       column of a table with the split of each row (train, val, test); NAME=VALUE: rows with VALUE are the test split;
                    default: split, set, is_train and similar names; none: no column
    exif            rotate pictures by their EXIF orientation, or leave them as stored (default apply)
    max_pixels      treat pictures with more pixels as bad samples, before memory is allocated (default 100000000)
    max_scans       treat progressive pictures with more scans as bad (default 100)
    pixels          a JPEG's pixels: own; libjpeg: its RGB, resampled; reduced: as own, but large reductions from means of 8 x 8
                    samples (default own)
    pictures        kinds of picture files that are decoded, with commas between them, or all; others are bad samples (default all)
    classes_from    name numbered classes: a line for each, from the first number on
    rename_classes  rename classes by a file of lines "OLD<tab>NEW"; classes that get the same name are merged
    only_classes    take only samples of these classes, a comma-separated list of names; named classes are numbered anew
    where           take samples that meet all conditions of a comma-separated list: label, width, height, bytes with <, <=, >, >=,
                    =, !=; key (the name), class with =, != or ~, !~ and a pattern: "width>=256,key~train/*"
    dedup           leave out samples with the picture of an earlier one: the same bytes, or the same decoded pixels (default none)
    take_each       take a share of each class, as fractions of a random order: 0:0.9 and 0.9:1 have no common sample and together
                    all
    sample          draw this many of the chosen samples; 0: all (default 0)
    sample_seed     with sample: seed of the draw (default 0)"""
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
    wire: Optional[Literal["auto", "tcp", "shm", "nccl", "mpi", "ucx"]]
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
    pixels: Optional[Literal["own", "libjpeg", "reduced"]]
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
    """Options of `millrace predict`, further ones of millrace.predict():

    top             print this many of the most likely classes (default 1)
    views           average over several views: flip: with the mirror image; five: the middle and the corners; ten: both
    out             write rows to this file; default: standard output
    force           with out: replace an existing file
    classes_from    name numbered classes: a line for each, from the first number on
    rename_classes  rename classes by a file of lines "OLD<tab>NEW"; classes that get the same name are merged
    only_classes    take only samples of these classes, a comma-separated list of names; named classes are numbered anew
    where           take samples that meet all conditions of a comma-separated list: label, width, height, bytes with <, <=, >, >=,
                    =, !=; key (the name), class with =, != or ~, !~ and a pattern: "width>=256,key~train/*"
    dedup           leave out samples with the picture of an earlier one: the same bytes, or the same decoded pixels (default none)
    take_each       take a share of each class, as fractions of a random order: 0:0.9 and 0.9:1 have no common sample and together
                    all
    sample          draw this many of the chosen samples; 0: all (default 0)
    sample_seed     with sample: seed of the draw (default 0)
    batch           samples in a global batch, over all replicas; default: the model's, else 128
    epochs          passes over the data; default: the model's when training, else 1
    seed            seed of order, augmentation, initial weights and dropout (default 0)
    order           order of the samples in an epoch; block: shuffled blocks of neighbours, for slow media; balanced: all classes
                    equally often, samples of small ones several times (default shuffle)
    block           samples per block with order block (default 256)
    tail            keep a short last batch, drop it, or pad it with samples that do not count (default keep)
    augment         augment pictures: none, cifar, rrc224, center224, or operations such as rrc(224),flip; default: the model's, else
                    none
    channels        deliver 1 (gray) or 3 (colour) channels; 0: as the data have (default 0)
    bad             stop at a damaged sample, replace it by another, or skip it (default stop)
    max_bad         more damaged samples than this stop the run (default 100)
    bad_list        write each damaged sample to this file, one JSON object per line
    fields          deliver also these fields: NAME[:plain|boxes|values|mask][:most=N][:pad=X][:pixels], ...; boxes and masks follow
                    their picture, values their boxes
    width_multiple  pad rows of different lengths to the longest of their batch, rounded up to a multiple of this (default 1)
    length_window   sort sequences by length inside windows of this many batches, and deliver the batches of a window in random
                    order: less padding (default off)
    repeats         repeat each sample this many times in its batch, each time with its own augmentation; an epoch keeps its length,
                    and has fewer samples (default 1)
    prefetch        prepare this many batches ahead; off: read, decode and copy in series with the training step (default 4)
    workers         decode threads; 0: one per core (default 0)
    readers         reader threads; 0: one with io_uring, four with pread (default 0)
    depth           reads in flight per reader (default 32)
    io              read by this method; auto: io_uring if the kernel allows it, else pread threads (default auto)
    direct          bypass the page cache (O_DIRECT)
    memory          limit the host memory of the loader; 0: half of the memory available to the process (default 0)
    resident        read data of small samples up to this size once and keep them in memory, at most a quarter of memory; 0: never
                    (default 1G)
    cache           keep samples from the first epoch on: ram:SIZE, ram (half of the memory that the rest of the loader leaves), or
                    disk:FOLDER:SIZE, which outlives the run; batches keep the same bits (default off)
    entries         store entry points of JPEG files in memory during the first of several epochs, up to this size and an eighth of
                    memory: later epochs skip the rows above a crop; 0: never (default 1G)
    checks          verify the checksums of records; off measures their cost and does not detect damaged records (default on)
    devices         one replica per device: cpu, cpu:4, cuda:0,1, cuda:all, sim:8,step=3ms,h2d=25GB/s (default cpu)
    threads         cores shared by the computing of all cpu devices; 0: all (default 0)
    kernels         kernels of cpu devices; reference: the plain C code against which all others are tested (default fast)
    convolution     convolutions of cpu devices; auto: Winograd's algorithm for the shapes of layers where it is faster; direct:
                    never (default auto)
    precision       precision of activations and their gradients; weights are always f32; tf32: f32 with rounded products; all but
                    f32 on cuda devices only (default f32)
    deterministic   use only GPU algorithms that give the same bits in every run (cpu devices have no others)
    graph           record a step once and replay it if the device supports it; off: queue every call anew (default on)
    bucket          sum gradients over replicas in pieces of about this size during the backward pass; 0: all at once after it;
                    default: 25M, in several processes a size for their network
    watchdog        end the run when a step is not over after this time, and name the replica that hangs; 0: never (default 300)
    loss_scale      with f16: multiply gradients by this power of two; auto: the largest without overflow (default auto)
    format          set the format of the data if their content does not show it; a wrong name lists all formats
    split           split of the data; auto: the train split, or all data without splits (default auto)
    classes         classes of folders of pictures: first: each folder of the first level; depth: each folder with pictures, such as
                    animals/cat; none: no labels (default first)
    image_key       feature, member, column or array of the picture; default: the names that common writers use
    label_key       feature, member, column or array of the class; of several unnamed labels: the number of one, from 0
    label_offset    subtract N from every label; auto: training subtracts 1 if the smallest label of all its data is 1 (default auto)
    match_classes   match classes of two sets by name or number, or by order (default auto)
    index_folder    keep indexes in this folder if they cannot be written next to their data (default $XDG_CACHE_HOME/millrace); off:
                    nowhere
    remote_cache    store data of http:// and https:// addresses in this folder (default $XDG_CACHE_HOME/millrace/remote)
    remote_size     limit the disk space of remote_cache; the least recently used data are deleted first (default 16G)
    outside         refuse or take files that a table names outside of its own folder (../x, /x, links that lead out) (default
                    refuse)
    take            take a share of the samples, as fractions of a random order, the same in every run: 0:0.9 and 0.9:1 share no
                    sample; 0.1 is 0:0.1
    target_key      add a field from this array, column, or columns (FIRST..LAST) of numbers of NumPy arrays or a table
    split_key       column of a table with the split of each row (train, val, test); NAME=VALUE: rows with VALUE are the test split;
                    default: split, set, is_train and similar names; none: no column
    exif            rotate pictures by their EXIF orientation, or leave them as stored (default apply)
    max_pixels      treat pictures with more pixels as bad samples, before memory is allocated (default 100000000)
    max_scans       treat progressive pictures with more scans as bad (default 100)
    pixels          a JPEG's pixels: own; libjpeg: its RGB, resampled; reduced: as own, but large reductions from means of 8 x 8
                    samples (default own)
    pictures        kinds of picture files that are decoded, with commas between them, or all; others are bad samples (default all)"""
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
    pixels: Optional[Literal["own", "libjpeg", "reduced"]]
    pictures: Optional[str]
