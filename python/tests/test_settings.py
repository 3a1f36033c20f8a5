"""Loader() has the defaults of the library's settings."""
import inspect

import millrace
import pytest
from millrace import _structs

CALLED = {"memory_bytes": "memory"}
SIGNATURE = inspect.signature(millrace.Loader.__init__).parameters
ROWS = [row for struct in ("mr_loader_config", "mr_decode_config") for row in _structs.settings(struct)]
# None, the default, stands for what fits, and for an order that depends on `training`.
NONE = ("cache_bytes", "order")


def parameter_of(row):
    name = row.member.decode()
    return CALLED.get(name, name)


def value_of(row):
    """The default of a row, as Python writes it."""
    kind, standard = row.kind.decode(), row.standard.decode() if row.standard else None
    if kind in ("text", "choice", "set"):
        return standard
    if kind == "flag":
        return False
    if kind == "size":
        units = "KMGT"
        return int(standard[:-1]) << 10 * (1 + units.index(standard[-1])) if standard[-1] in units else int(standard)
    return 0 if standard == "off" else float(standard)


@pytest.mark.parametrize("row", [r for r in ROWS if parameter_of(r) in SIGNATURE], ids=parameter_of)
def test_default(row):
    name = parameter_of(row)
    assert SIGNATURE[name].default == (None if name in NONE else value_of(row))


def test_rows():
    members = [row.member.decode() for row in ROWS]
    assert len(set(members)) == len(members) and {"prefetch", "order", "max_pixels"} <= set(members)
    assert sum(parameter_of(row) in SIGNATURE for row in ROWS) > 15
    assert list(_structs.settings("mr_nothing")) == []
