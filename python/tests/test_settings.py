"""Loader() has the library's settings: their names, defaults and ranges."""
import inspect

import millrace
import pytest
from millrace import _settings, _structs

SIGNATURE = inspect.signature(millrace.Loader.__init__).parameters
STRUCTS = {name: getattr(_structs, name) for name in ("mr_loader_config", "mr_decode_config", "mr_source_config")}
ROWS = [(struct, name, row) for struct in ("mr_loader_config", "mr_decode_config") for name, row in _settings.arguments_of(struct).items()]
NAMES = [name for _, name, _ in ROWS]
# Arguments for whose default Python has another: an order that depends on `training`.
OTHER = {"order": None}


def another(row):
    """A value that is not the default, and its value in the struct."""
    default, (least, most) = _settings.default_of(row), _settings.range_of(row)
    if _settings.is_switch(row):
        return not default, (not default) is (row.kind == b"flag")
    if row.kind == b"set":
        return _settings.choices_of(row)[1:2], 2
    if row.kind in (b"choice", b"either"):
        name = _settings.choices_of(row)[-1]
        return name, _settings.choices_of(row).index(name)
    value = default + 1 if default < most else least
    return value, value


@pytest.mark.parametrize("struct, name, row", ROWS, ids=NAMES)
def test_default(struct, name, row):
    assert SIGNATURE[name].default == OTHER.get(name, _settings.default_of(row))


@pytest.mark.parametrize("struct, name, row", [r for r in ROWS if r[2].kind != b"text"], ids=[n for _, n, r in ROWS if r.kind != b"text"])
def test_member(struct, name, row):
    value, there = another(row)
    cfg = STRUCTS[struct]()
    _settings.set_members(cfg, struct, {name: value})
    assert getattr(cfg, row.member.decode()) == there
    _settings.set_members(cfg, struct, {name: None, "something else": 3})
    assert getattr(cfg, row.member.decode()) == there


WHOLE = [r for r in ROWS if r[2].kind in (b"u32", b"u64", b"size", b"count or off")]


@pytest.mark.parametrize("struct, name, row", WHOLE, ids=[n for _, n, _ in WHOLE])
def test_range(struct, name, row):
    least, most = _settings.range_of(row)
    for wrong in (least - 1, most + 1):
        with pytest.raises(millrace.ArgumentError, match="%s=%d: expected %d to %d" % (name, wrong, least, most)):
            _settings.set_members(STRUCTS[struct](), struct, {name: wrong})


def test_names_of_choices():
    for name, value, message in (("io", "uring", "io='uring': expected one of 'auto', 'io_uring', 'pread'"),
                                 ("pictures", [], "pictures=\\[\\]: expected at least one of 'jpeg', "),
                                 ("pictures", "jpeg,mp4", "pictures='mp4': expected one of 'jpeg', ")):
        struct = "mr_decode_config" if name == "pictures" else "mr_loader_config"
        with pytest.raises(millrace.ArgumentError, match=message):
            _settings.set_members(STRUCTS[struct](), struct, {name: value})


def test_loader_takes_them(shapes):
    with millrace.Loader(shapes, batch=4, augment="resize(16)", resident=0, checks=False, exif=False, max_scans=7, pictures=["jpeg"]) as loader:
        assert loader._cfg.resident_bytes == 0 and loader._cfg.no_checks and loader._cfg.decode.ignore_exif
        assert loader._cfg.decode.max_scans == 7 and loader._cfg.decode.pictures == 1
        assert next(iter(loader)).images.shape[0] == 4
    with pytest.raises(millrace.ArgumentError, match="depth=0: expected 1 to 4096"):
        millrace.Loader(shapes, depth=0)


def test_rows():
    members = [row.member.decode() for struct in STRUCTS for row in _structs.settings(struct)]
    assert {"prefetch", "order", "max_pixels", "image_key"} <= set(members)
    assert set(NAMES) <= set(SIGNATURE) and len(NAMES) > 25
    assert list(_structs.settings("mr_nothing")) == []
