"""millrace: an asynchronous input pipeline for training.

    import millrace
    for batch in millrace.Loader("photos", batch=256, augment="rrc224", training=True, epochs=90, seed=1):
        x, y = batch.images, batch.labels      # DLPack: NumPy, PyTorch, JAX take them without a copy

    Loader                             batches of a data set
    convert, inspect, verify, digest   the commands of these names
    decode                             one picture, or part of one
    train, evaluate, predict           the embedded trainer, in a process of its own
    Live                               samples that a Python object gives while they are loaded
    Operation, Draws, OwnPicture       operations of your own in the augmentation
    sample_seed                        the seed for a random transform in Python
    write_records, cache_records       samples of your own into a record file
    millrace.torch, .jax, .tensorflow, .keras
                                       batches as these libraries take them: import them by name
    millrace.adapters                  samples of Hugging Face's data sets and of Parquet files: import it by name
    Error and its kinds                what can go wrong

The command itself is `millrace`, or `python -m millrace`."""
from ._arrays import Array, Batch
from ._errors import (ArgumentError, BadSampleError, CanceledError, ChecksumError, ClosedError, DeviceError, DivergedError, EndError,
                      Error, ExistsError, ForkError, FormatError, HeldError, LimitError, NotFoundError, OperationError,
                      OutOfMemoryError, PeerError, StateError, SystemCallError, UnsupportedError, WorkerError)
from ._jobs import convert, decode, digest, inspect, verify
from ._library import version as _version
from ._live import Live
from ._loader import Loader, Source
from ._making import sample_seed
from ._operations import Draws, Operation
from ._records import Samples, write_records
from ._spool import cache_records
from ._structs import mr_own_picture as OwnPicture
from ._train import TrainResult, evaluate, options, predict, train

__version__ = _version()
__all__ = ["Array", "ArgumentError", "BadSampleError", "Batch", "CanceledError", "ChecksumError", "ClosedError", "DeviceError",
           "DivergedError", "Draws", "EndError", "Error", "ExistsError", "ForkError", "FormatError", "HeldError", "LimitError", "Live",
           "Loader", "NotFoundError", "Operation", "OperationError", "OutOfMemoryError", "OwnPicture", "PeerError", "Samples", "Source",
           "StateError", "SystemCallError", "TrainResult", "UnsupportedError", "WorkerError",
           "cache_records", "convert", "decode", "digest", "evaluate", "inspect", "options", "predict", "sample_seed", "train", "verify",
           "write_records"]
