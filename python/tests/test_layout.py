"""The structs that Python repeats equal the C compiler's."""
import ctypes

import pytest
from millrace import _library, _structs

TYPES = [t for n, t in sorted(vars(_structs).items()) if n.startswith("mr_")]  # mrp_ ones are of the native part


@pytest.mark.parametrize("kind", TYPES, ids=lambda t: t.__name__)
def test_struct(kind):
    size = ctypes.c_uint64()
    name = kind.__name__.encode()
    assert _library.quick.mrp_layout(name, None, ctypes.byref(size)) == 0
    assert ctypes.sizeof(kind) == size.value
    for member, _ in kind._fields_:
        if member.startswith("_space"):
            continue
        offset = _library.quick.mrp_layout(name, member.encode(), ctypes.byref(size))
        here = getattr(kind, member)
        assert (offset, size.value) == (here.offset, here.size), member


def test_unknown_names():
    size = ctypes.c_uint64()
    assert _library.quick.mrp_layout(b"mr_nothing", None, ctypes.byref(size)) == -1
    assert _library.quick.mrp_layout(b"mr_batch", b"nothing", ctypes.byref(size)) == -1
