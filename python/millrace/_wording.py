"""Messages of the library and of the command, with names of Python's arguments in place of options.

    lower --batch or use --tail keep          lower batch= or use tail="keep"
    --fields boxes:most=40                    fields=[{"name": "boxes", "most": 40}]"""
from __future__ import annotations

import re
from typing import Container, Dict, Optional

# What has another name here.
_OTHER = {"shard-size": "shard_bytes"}
_VALUES = {"tail": ("keep", "drop", "pad"), "split": ("auto", "train", "test"), "store": ("jpeg", "raw", "coef"), "cache": ("off", "memory", "disk"),
           "order": ("shuffle", "block", "sequential", "balanced"), "bad": ("stop", "replace", "skip"), "classes": ("first", "depth", "none"),
           "format": ("pixels",), "match-classes": ("order", "names"), "pixels": ("own", "libjpeg", "reduced"), "outside": ("take",)}
_KINDS = ("all", "jpeg", "png", "gif", "bmp", "webp", "tiff", "heic", "avif")
_OPTION = re.compile(r"--([a-z][a-z0-9]*(?:-[a-z0-9]+)*)(?:( |=)([^\s,;()]+))?")
_loaders: Dict[str, bool] = {}


def _names() -> Dict[str, bool]:
    """Of arguments of loaders, and of convert() and the like."""
    if not _loaders:
        import inspect

        from . import _jobs
        from ._typed import LoaderSettings
        _loaders.update((n, True) for n in LoaderSettings.__annotations__)
        for kind in LoaderSettings.__mro__ if hasattr(LoaderSettings, "__mro__") else ():
            _loaders.update((n, True) for n in getattr(kind, "__annotations__", ()))
        _loaders.update((n, True) for n in inspect.signature(_jobs.convert).parameters)
    return _loaders


def _is_value(name: str, value: str) -> bool:
    if name in _VALUES:
        return value in _VALUES[name]
    if name == "pictures":
        return all(kind in _KINDS for kind in value.split(","))
    return value in ("none", "off") or value.isdigit() or value.isupper() or "=" in value or ":" in value


def _argument(name: str, value: str) -> str:
    keyword = _OTHER.get(name, name.replace("-", "_"))
    if name != "fields":
        return "%s=%s" % (keyword, value if value.isdigit() or value.isupper() or "=" in value else '"%s"' % value)
    field, _, more = value.partition(":")
    key, _, number = more.partition("=")
    key = {"pixels": "in_pixels"}.get(key, key)
    return 'fields=[{"name": "%s", "%s": %s}]' % (field, key, number or "True") if more else 'fields=["%s"]' % field


def in_python(text: str, known: Optional[Container[str]] = None) -> str:
    """known: arguments of the function that raises it; None: arguments of loaders and functions. Other options stay."""
    if "--" not in text:
        return text
    names = _names() if known is None else known

    def one(found: "re.Match[str]") -> str:
        name, between, value = found.groups()
        if _OTHER.get(name, name.replace("-", "_")) not in names:
            return found.group()
        if value is None:
            return name.replace("-", "_") + "=" if name not in _OTHER else _OTHER[name] + "="
        bare = value.rstrip(".:")
        if between == "=" or _is_value(name, bare):
            return _argument(name, bare) + value[len(bare):]
        return "%s=%s%s" % (_OTHER.get(name, name.replace("-", "_")), between, value)
    return _OPTION.sub(one, text)
