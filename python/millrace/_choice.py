"""Some samples of a data set, and other names of its classes."""
from __future__ import annotations

import ctypes as C
import os
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from . import _library as _l
from ._errors import ArgumentError
from ._settings import count
from ._stream import Inbox
from ._structs import mr_choice_config
from ._waiting import run

# Arguments, with the values that choose nothing.
USUAL: Dict[str, Any] = {"only_classes": None, "rename_classes": None, "classes_from": None, "where": None, "dedup": None, "take_each": None,
                         "sample": 0, "sample_seed": 0}
_COPIES = {None: 0, "none": 0, "bytes": 1, "pixels": 2}


def share(what: str, value: Any) -> Tuple[float, float]:
    """(from, to) as parts of 1."""
    try:
        low, high = (0.0, value) if isinstance(value, (int, float)) else value
        return float(low), float(high)
    except (TypeError, ValueError):
        raise ArgumentError("%s=%r: expected two parts of 1, such as (0, 0.9), or one" % (what, value)) from None


def _lines(what: str, names: Sequence[Any]) -> bytes:
    for name in names:
        if not isinstance(name, str) or not name or any(c in name for c in "\n\r\0"):
            raise ArgumentError("%s: expected names of one line each, found %r" % (what, name))
    return "".join(name + "\n" for name in names).encode("utf-8", "surrogateescape")


def _of_file(what: str, path: Any) -> bytes:
    with open(path, "rb") as f:
        text = f.read()
    if b"\0" in text:
        raise ArgumentError("%s=%r: expected a file of text lines" % (what, path))
    return text


def _renamed(value: Any) -> bytes:
    if not isinstance(value, Mapping):
        return _of_file("rename_classes", value)
    for name in (n for pair in value.items() for n in pair):
        if not isinstance(name, str) or not name or any(c in name for c in "\n\r\0\t"):
            raise ArgumentError("rename_classes: expected names without tabs, of one line each, found %r" % (name,))
    return _lines("rename_classes", ["%s\t%s" % pair for pair in value.items()])


def settings(given: Dict[str, Any]) -> Any:
    """mr_choice_config, or None where nothing is chosen. given: all of USUAL's names."""
    if all(given[n] == USUAL[n] for n in USUAL if n != "sample_seed"):
        return None
    cfg = _l.fill(_l.lib.mr_choice_defaults_sized, mr_choice_config())
    only = given["only_classes"]
    if only is not None:
        cfg.only_classes = _lines("only_classes", only.split(",") if isinstance(only, str) else list(only))
    if given["rename_classes"] is not None:
        cfg.rename_classes = _renamed(given["rename_classes"])
    names = given["classes_from"]
    if names is not None:
        cfg.classes_from = _of_file("classes_from", names) if isinstance(names, (str, bytes, os.PathLike)) else _lines("classes_from", list(names))
    if given["where"] is not None:
        cfg.where = given["where"].encode("utf-8", "surrogateescape")
    if given["dedup"] not in _COPIES:
        raise ArgumentError("dedup=%r: expected \"none\", \"bytes\" or \"pixels\"" % (given["dedup"],))
    cfg.dedup = _COPIES[given["dedup"]]
    if given["take_each"] is not None:
        cfg.each_from, cfg.each_to = share("take_each", given["take_each"])
    cfg.sample, cfg.sample_seed = count("sample", given["sample"], 0, 2**64 - 1), count("sample_seed", given["sample_seed"], 0, 2**64 - 1)
    return cfg


def choose(source: Any, cfg: Any) -> List[str]:
    """Apply it to a source that nothing else uses yet. Returns the library's lines about it."""
    inbox, stop, what = Inbox(), C.c_int(0), _l.new_error()
    cfg.on_note, cfg.context, cfg.stop = _l.ON_NOTE, inbox.pointer, C.addressof(stop)

    def stop_it() -> None:
        stop.value = 1
    rc = run(lambda: _l.lib.mr_choose_sized(source, C.byref(cfg), None, C.byref(what)), stop_it)
    if rc != _l.OK:
        raise _l.failed(rc, what)
    notes: List[str] = []
    note, other, lost = _l.new_error(), C.c_uint64(), C.c_uint64()
    while _l.quick.mrp_inbox_take(inbox.pointer, C.byref(note), C.byref(other), C.byref(lost)):
        notes.append(note.text.decode("utf-8", "replace"))
    return notes
