"""Settings of the library as arguments of Python: a row of the library (settings/*.rows) gives the name, the type, the default and the
range of an argument, and says which member of a struct it is."""
from __future__ import annotations

from typing import Any, Dict, List, Tuple

from ._errors import ArgumentError
from ._structs import mrp_setting, settings

# Arguments that are not called as the option of the command, and choices that are not.
_CALLED = {"entries": "entry_bytes"}
_CHOICES = {"uring": "io_uring"}
_OFF = ("off", "ignore")  # second choices of settings that are on or off


def parameter_of(row: mrp_setting) -> str:
    """The name of the argument; "" if the row is no option."""
    option = row.option.decode() if row.option else ""
    return _CALLED.get(option, option.replace("-", "_"))


def arguments_of(struct: str) -> Dict[str, mrp_setting]:
    """The rows of a struct that are arguments, by name."""
    return {parameter_of(row): row for row in settings(struct) if row.option}


def choices_of(row: mrp_setting) -> List[str]:
    """Names of the values of a row that is a choice."""
    names: List[str] = []
    while row.choices and row.choices[len(names)]:
        name = row.choices[len(names)].decode()
        names.append(_CHOICES.get(name, name))
    return names


def is_switch(row: mrp_setting) -> bool:
    """Is it on or off?"""
    return row.kind == b"flag" or (row.kind == b"either" and choices_of(row)[1] in _OFF)


def default_of(row: mrp_setting) -> Any:
    """The library's default, as Python writes it."""
    kind, standard = row.kind.decode(), row.standard.decode() if row.standard else None
    if kind == "flag":
        return standard is not None
    if is_switch(row):
        return standard == choices_of(row)[0]
    if kind in ("choice", "either", "text", "set") or standard is None:
        return standard
    if kind == "size":
        digits = standard.rstrip("KMGT")
        return int(float(digits) * 1024 ** ("KMGT".index(standard[-1]) + 1 if standard != digits else 0))
    return 0 if standard == "off" else float(standard) if kind in ("real", "seconds", "float") else int(standard)


def one_of(what: str, names: List[str], value: Any) -> int:
    """The number of one of the names."""
    if value not in names:
        raise ArgumentError("%s=%r: expected one of %s" % (what, value, ", ".join(map(repr, names))))
    return names.index(value)


def count(what: str, value: Any, least: int = 0, most: int = 2**32 - 1) -> int:
    """A whole number in a range."""
    try:
        n = value.__index__()
    except AttributeError:
        raise ArgumentError("%s=%r: expected a whole number" % (what, value)) from None
    if not least <= n <= most:
        raise ArgumentError("%s=%d: expected %d to %d" % (what, n, least, most))
    return n  # type: ignore[no-any-return]


def range_of(row: mrp_setting) -> Tuple[int, int]:
    """Both ends of the range of a whole number."""
    return int(row.least), min(int(row.most), 2**64 - 1)


def _set_of(what: str, names: List[str], value: Any) -> int:
    """A bit for each of the names; 0: all."""
    if value == "all":
        return 0
    found, asked = 0, value.split(",") if isinstance(value, str) else list(value)
    if not asked:
        raise ArgumentError("%s=%r: expected at least one of %s, or \"all\"" % (what, value, ", ".join(map(repr, names))))
    for name in asked:
        found |= 1 << one_of(what, names, name)
    return 0 if found == (1 << len(names)) - 1 else found


def value_of(what: str, row: mrp_setting, value: Any) -> Any:
    """An argument as the member of the struct has it. Texts are encoded: the caller keeps them."""
    kind = row.kind.decode()
    if is_switch(row):
        return bool(value) is (kind == "flag")
    if kind in ("choice", "either"):
        return one_of(what, choices_of(row), value)
    if kind == "set":
        return _set_of(what, choices_of(row), value)
    if kind == "text":
        return value.encode() if value else None
    return count(what, value, *range_of(row))


def set_members(cfg: Any, struct: str, given: Dict[str, Any]) -> None:
    """Members of the struct that `given` has arguments for. None stands for the default."""
    for name, row in arguments_of(struct).items():
        if given.get(name) is not None and row.kind != b"text":
            setattr(cfg, row.member.decode(), value_of(name, row, given[name]))
