"""Operations of one's own in the augmentation: what operations= says."""
from __future__ import annotations

import ctypes as C
from collections.abc import Mapping
from operator import index
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

from . import _library as _l
from ._errors import ArgumentError, BadSampleError, Error, FormatError, OperationError
from ._serving import Server, text_of
from ._structs import mr_loader_config, mr_own_operation, mr_own_picture

_EFORMAT, _MOST = -7, 8
_CHANGE = C.cast(_l.native.mrp_change, C.c_void_p).value


class _Function(C.Structure):
    """mrp_function of native.h."""
    _fields_ = [("maker", C.c_void_p), ("number", C.c_uint64)]


class Operation:
    """A function for operations=, where there is more to say of it than which one it is.

        operations={"my_salt": millrace.Operation(salt, arguments=1)}

    function    see Loader
    arguments   how many numbers the augmentation has to give it: one number, or (least, most) of 0 to 8
    evaluation  it is done with training=False, too; else left out there, like all that is random
    context     of a C function: the address that it gets first"""

    def __init__(self, function: Any, arguments: Union[int, Tuple[int, int]] = (0, _MOST), evaluation: bool = False,
                 context: Optional[int] = None) -> None:
        pair: Any = (arguments, arguments) if hasattr(arguments, "__index__") else arguments
        try:
            least, most = pair
            self.arguments = index(least), index(most)
        except (TypeError, ValueError):
            raise ArgumentError("arguments=%r: expected a number of arguments, or (least, most)" % (arguments,)) from None
        if not 0 <= self.arguments[0] <= self.arguments[1] <= _MOST:
            raise ArgumentError("arguments=%r: expected 0 to %d of them" % (arguments, _MOST))
        self.function, self.evaluation, self.context = function, bool(evaluation), context
        if self.address is None and not callable(function):
            raise ArgumentError("found %s, expected a function: of Python, f(pixels, arguments, draws), or of C, by address, by ctypes or "
                                "made by numba.cfunc" % type(function).__name__)
        if context is not None and self.address is None:
            raise ArgumentError("context=: of a C function, and %r is not one" % (function,))

    @property
    def address(self) -> Optional[int]:
        """Of a C function; None: it is one of Python."""
        f = self.function
        if isinstance(f, int) and not isinstance(f, bool):
            if f <= 0:
                raise ArgumentError("an address of %d: expected the address of a C function" % f)
            return f
        if isinstance(f, C._CFuncPtr):  # type: ignore[attr-defined]
            return C.cast(f, C.c_void_p).value
        address = getattr(f, "address", None)  # Numba's
        return address if isinstance(address, int) else None

    def __repr__(self) -> str:
        return "Operation(%r)" % (self.function,)


class Draws:
    """Random numbers of one picture and one place in the augmentation: a function of seed, epoch, sample and place, and of nothing
    else. Each call draws the next numbers.

    key       0 to 2**64 - 1: a seed for a generator of your own
    sample    number of the sample in its data set
    training  the loader's"""
    __slots__ = ("_picture", "_next", "key", "sample", "training")

    def __init__(self, picture: mr_own_picture) -> None:
        self._picture, self._next = picture, 0
        self.key, self.sample, self.training = picture.key, picture.sample, bool(picture.training)

    def word(self) -> int:
        """0 to 2**32 - 1."""
        k = self._next
        self._next = k + 1
        return self._picture.draws[k] if k < 16 else _l.quick_lib.mr_own_draw(C.byref(self._picture), k)

    def random(self) -> float:
        """From 0 on, below 1."""
        return self.word() / 4294967296.0

    def uniform(self, lo: float, hi: float) -> float:
        return lo + (hi - lo) * self.random()

    def integer(self, end: int) -> int:
        """0 to end - 1, end at most 2**32."""
        return self.word() * end >> 32

    def happens(self, probability: float) -> bool:
        return self.random() < probability

    def numpy(self) -> Any:
        """A numpy.random.Generator, seeded by key."""
        import numpy
        return numpy.random.Generator(numpy.random.Philox(key=self.key))


class Operations(Server):
    """The functions of one loader. The library's threads call functions of C; one thread of Python calls functions of Python."""

    def __init__(self, own: Any) -> None:
        self._rows: Any = None
        self._functions: List[Callable[..., Any]] = []
        self._of_c: List[Any] = []  # their addresses are in the rows
        if not isinstance(own, Mapping):
            raise ArgumentError("operations=: found %s, expected {name: function}" % type(own).__name__)
        super().__init__("millrace operations")
        self._rows = (mr_own_operation * max(len(own), 1))()
        self._contexts = (_Function * max(len(own), 1))()
        self.count = 0
        for name, given in own.items():
            if not isinstance(name, str) or "\0" in name:
                raise ArgumentError("operations=: found %r, expected the name of an operation" % (name,))
            self._add(self._rows[self.count], name, given)
            self.count += 1
        if self._functions:
            self.start()

    def _add(self, row: mr_own_operation, name: str, given: Any) -> None:
        try:
            operation = given if isinstance(given, Operation) else Operation(given)
        except ArgumentError as e:
            raise ArgumentError("operations=, %r: %s" % (name, e)) from None
        row.name = name.encode("utf-8", "replace")
        row.arguments_least, row.arguments_most = operation.arguments
        row.in_evaluation = operation.evaluation
        address = operation.address
        if address is not None:
            row.change, row.context = address, operation.context
            self._of_c.append(operation.function)
            return
        context = self._contexts[self.count]
        context.maker, context.number = self.pointer, len(self._functions)
        self._functions.append(operation.function)
        row.change, row.context = _CHANGE, C.addressof(context)

    def settle(self, cfg: mr_loader_config) -> None:
        """Into a loader's settings; this object keeps the memory they point to."""
        cfg.operations, cfg.operation_count = self._rows, self.count

    def _answer(self, number: int, request: C.c_void_p) -> None:
        try:
            picture = mr_own_picture.from_buffer_copy(_l.quick.mrp_request_picture(request).contents)
            shape = picture.height, picture.width, picture.channels
            memory = bytearray(shape[0] * shape[1] * shape[2])  # a new one: the function may keep it
            at = (C.c_char * len(memory)).from_buffer(memory)
            if _l.native.mrp_request_read(request, C.addressof(at)) != _l.OK:
                return
        except BaseException as e:
            return self._fail(request, e)
        try:
            back = self._functions[number](memoryview(memory).cast("B", shape), tuple(picture.arguments[:picture.argument_count]),
                                           Draws(picture))
            if back is not None:
                raise ArgumentError("it returned %s: expected None, and the pixels changed where they are, as by "
                                    "numpy.asarray(pixels)[:] = ..." % type(back).__name__)
        except (BadSampleError, FormatError) as e:
            return self._refuse(request, _EFORMAT, text_of(e))
        except BaseException as e:
            return self._fail(request, e)
        _l.native.mrp_request_put(request, C.addressof(at))

    def raise_failure(self, became: Error) -> None:
        """The exception of a function, if one was raised, as the cause of the run's error."""
        failure = self.take_failure() if became.code == _l.ECANCELED else None
        if failure is not None:
            e = OperationError(str(became))
            e.code, e.path, e.offset, e.sample = became.code, became.path, became.offset, became.sample
            raise e from failure


def see_sendable(given: Dict[str, Any]) -> None:
    """A loader is sent to another process as its arguments: a C function is not there, or elsewhere."""
    own = given.get("operations")
    for name, f in (own or {}).items():
        if (f if isinstance(f, Operation) else Operation(f)).address is not None:
            raise Error("operations=, %r: the address of a C function means nothing in another process; make the loader there" % name)
