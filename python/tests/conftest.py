"""Data for the tests: made with the command that the wheel carries, so that nothing else is needed."""
import os
import subprocess
import sys

import pytest


@pytest.fixture(scope="session")
def shapes(tmp_path_factory):
    """A folder of small JPEGs in ten classes, and its size."""
    folder = str(tmp_path_factory.mktemp("data") / "shapes")
    subprocess.run([sys.executable, "-m", "millrace", "synth", folder, "--count", "12", "--size", "48"], check=True,
                   stdout=subprocess.DEVNULL)
    return os.path.join(folder, "train") if os.path.isdir(os.path.join(folder, "train")) else folder


@pytest.fixture(scope="session")
def records(shapes, tmp_path_factory):
    """The same as a record file."""
    import millrace
    path = str(tmp_path_factory.mktemp("records") / "shapes.mrec")
    millrace.convert(shapes, path)
    return path


@pytest.fixture
def settings():
    """Of a loader over those pictures."""
    return dict(batch=16, augment="rrc(32),flip", training=True, seed=3, workers=2)
