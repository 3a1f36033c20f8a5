"""What can go wrong, by kind."""
from __future__ import annotations

from typing import Any, Optional

from ._structs import mr_error

NOWHERE = 2**64 - 1


class Error(Exception):
    """The base of everything that this package raises of its own.

    code    number of the kind, MR_E... in millrace/base.h
    path    file that it is about, or None
    offset  bytes from the start of that file, or None
    sample  number of the sample in its data set, or None
    errno   of the system call that failed, or None
    result  of train(): the result of the run up to the error, a TrainResult; else None"""

    code: int = 0
    path: Optional[str] = None
    offset: Optional[int] = None
    sample: Optional[int] = None
    errno: Optional[int] = None  # type: ignore[assignment]
    result: Any = None


class EndError(Error):
    """The stream is over."""


class CanceledError(Error):
    """Somebody asked to stop."""


class OutOfMemoryError(Error, MemoryError):
    """The system refused memory."""


class ArgumentError(Error, ValueError):
    """A setting is wrong; the message names the expected values."""


class SystemCallError(Error, OSError):
    """A system call failed; errno has its code."""


class FormatError(Error, ValueError):
    """Bytes are not what their format promises."""


class ChecksumError(FormatError):
    """A checksum does not match."""


class UnsupportedError(Error):
    """Valid, but not supported here."""


class NotFoundError(Error, FileNotFoundError):
    """It is not there."""


class ExistsError(Error, FileExistsError):
    """It is there already; `force` replaces it."""


class LimitError(Error):
    """Over a stated limit or the memory budget."""


class DeviceError(Error):
    """A device operation failed."""


class BadSampleError(Error):
    """A sample is damaged and the policy is to stop: `bad="replace"` or "skip" go on."""


class PeerError(Error):
    """Another process of this job gave up, died or fell silent."""


class HeldError(LimitError):
    """As many batches are in use as `hold` allows: drop arrays of earlier ones, or raise it."""


class ForkError(Error, RuntimeError):
    """The loader belongs to the process that made it, and this is a child of that by fork()."""


class ClosedError(Error, ValueError):
    """The loader was closed."""


class OperationError(Error):
    """A function given as operations= raised an exception: `__cause__` is that."""


class WorkerError(Error, RuntimeError):
    """A worker process that runs Python ended, took longer than timeout=, or raised what cannot be sent: `sample` is the one it had."""


class StateError(Error, ValueError):
    """A state does not belong to this data set or these settings."""


class DivergedError(Error, ArithmeticError):
    """The last loss of a run is NaN or infinite, or a thousand times the first."""


KINDS = {-1: EndError, -3: CanceledError, -4: OutOfMemoryError, -5: ArgumentError, -6: SystemCallError, -7: FormatError,
         -8: ChecksumError, -9: UnsupportedError, -10: NotFoundError, -11: ExistsError, -12: LimitError, -13: DeviceError,
         -14: BadSampleError, -15: PeerError}


def make(code: int, what: mr_error, message: str) -> Error:
    """The exception for a code of the library and its message."""
    e = KINDS.get(code, Error)(message)
    e.code = code
    e.path = what.file.decode("utf-8", "surrogateescape") or None
    e.offset = None if what.offset == NOWHERE else what.offset
    e.sample = None if what.sample == NOWHERE else what.sample
    if what.sys_errno:
        e.errno = what.sys_errno
    return e
