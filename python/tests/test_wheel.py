"""The page of the wheel on a package index."""
import os
import re
from importlib import metadata

import millrace
import pytest

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
README = os.path.join(TOP, "python", "README.md")


@pytest.fixture
def shown():
    try:
        return metadata.metadata("millrace-loader")
    except metadata.PackageNotFoundError:
        pytest.skip("the package runs from the source tree: no wheel was installed")


def test_metadata(shown):
    assert shown["Version"] == millrace.__version__ and shown["License-Expression"] == "MIT" and shown["Requires-Python"] == ">=3.9"
    assert shown.get_all("License-File") == ["LICENSE"] and shown.get_all("Requires-Dist") is None
    assert "dataloader" in shown["Keywords"] and "Typing :: Typed" in shown.get_all("Classifier")
    assert "@" not in (shown["Author"] or "") and shown["Description-Content-Type"] == "text/markdown"


def test_the_readme_is_what_is_shown(shown):
    with open(README) as f:
        text = f.read()
    assert (shown.get_payload() or shown["Description"]).strip() == text.strip()


def test_no_link_of_the_readme_leads_into_the_source_tree():
    """An index has no other page of it."""
    with open(README) as f:
        assert [link for link in re.findall(r"\]\(([^)]*)\)", f.read()) if not link.startswith("https://")] == []


def test_types_are_in_the_wheel():
    folder = os.path.dirname(millrace.__file__)
    assert {"py.typed", "_typed.py", "_typed_torch.py"} <= set(os.listdir(folder))


def test_the_sdist_has_every_folder_that_is_compiled():
    """CMake's configuration needs them all; a checkout has them whatever pyproject.toml lists."""
    with open(os.path.join(TOP, "CMakeLists.txt")) as f:
        text = f.read()
    rooms = re.search(r"foreach\(room IN ITEMS ([a-z ]+)\)", text)[1].split()
    included = set(re.findall(r"add_subdirectory\(([a-z]+)\)", text)) - {"examples", "tests"} | set(rooms)
    with open(os.path.join(TOP, "pyproject.toml")) as f:
        listed = set(re.findall(r'"([a-z]+)/\*\*"', re.search(r"sdist.include = \[(.*?)\]", f.read(), re.S)[1]))
    assert len(rooms) > 6 and included <= listed, included - listed
