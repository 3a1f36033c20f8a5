"""The blocks of docs/python.md with our lines run as they stand."""
import os
import re

import millrace
import pytest

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "python.md")
with open(PAGE) as _f:
    BLOCKS = re.findall(r"^```python\n(.*?)^```", _f.read(), re.S | re.M)


def picture_of(folder):
    """The bytes of one."""
    kind = sorted(os.listdir(folder))[0]
    name = sorted(os.listdir(os.path.join(folder, kind)))[0]
    with open(os.path.join(folder, kind, name), "rb") as f:
        return f.read()


def test_there_are_some():
    assert len(BLOCKS) >= 9


@pytest.mark.parametrize("block", BLOCKS, ids=[b.strip().splitlines()[-1][:40] for b in BLOCKS])
def test_block(block, shapes, tmp_path):
    if "millrace.torch" in block:
        pytest.importorskip("torch")
    if "import numba" in block:
        pytest.importorskip("numba")
    if "numpy" in block:
        pytest.importorskip("numpy")
    names = {"PHOTOS": shapes, "RECORDS": str(tmp_path / "r.mrec"), "TAR": str(tmp_path / "t.tar"), "OUT": str(tmp_path / "o.mrec"),
             "CACHE": str(tmp_path / "cache"), "PICTURE": picture_of(shapes)}
    names["RUN"] = str(tmp_path / "run")
    try:
        exec(compile(block, PAGE, "exec"), names)
    except millrace.UnsupportedError as e:
        if "millrace.train(" not in block:
            raise
        pytest.skip(str(e))
