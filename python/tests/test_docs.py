"""The blocks with our lines run as they stand: of docs/python.md, docs/from-dataloader.md and the wheel's README."""
import os
import re

import millrace
import pytest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PAGES = ["docs/python.md", "docs/from-dataloader.md", "python/README.md"]


def blocks_of(page):
    with open(os.path.join(ROOT, page)) as f:
        return re.findall(r"^```python\n(.*?)^```", f.read(), re.S | re.M)


BLOCKS = [(page, block) for page in PAGES for block in blocks_of(page)]


def picture_of(folder):
    """The bytes of one."""
    kind = sorted(os.listdir(folder))[0]
    name = sorted(os.listdir(os.path.join(folder, kind)))[0]
    with open(os.path.join(folder, kind, name), "rb") as f:
        return f.read()


def test_there_are_some():
    assert all(len(blocks_of(page)) >= least for page, least in zip(PAGES, (9, 9, 2)))


@pytest.mark.parametrize("page,block", BLOCKS, ids=[b.strip().splitlines()[-1][:40] for _, b in BLOCKS])
def test_block(page, block, shapes, tmp_path):
    if "millrace.torch" in block:
        pytest.importorskip("torch")
    for module in ("numba", "transformers"):
        if re.search("(?m)^(import|from) %s" % module, block):
            pytest.importorskip(module)
    if "numpy" in block:
        pytest.importorskip("numpy")
    names = {"PHOTOS": shapes, "RECORDS": str(tmp_path / "r.mrec"), "TAR": str(tmp_path / "t.tar"), "OUT": str(tmp_path / "o.mrec"),
             "CACHE": str(tmp_path / "cache"), "PICTURE": picture_of(shapes)}
    names["RUN"] = str(tmp_path / "run")
    try:
        exec(compile(block, page, "exec"), names)
    except millrace.UnsupportedError as e:
        if "millrace.train(" not in block:
            raise
        pytest.skip(str(e))
