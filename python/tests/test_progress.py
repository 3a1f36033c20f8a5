"""What train() shows while it runs, and what its result is in a notebook."""
import builtins
import io
import re
import sys
import types
from xml.etree import ElementTree

import millrace
import pytest
from millrace import _progress
from millrace._train import TrainResult


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Closed(io.StringIO):
    def write(self, text):
        raise BrokenPipeError("nobody reads")


def epoch(k, **more):
    return dict(dict(epoch=k, steps=30, loss=2.0 / (k + 1), accuracy=0.4, val_loss=None, val_accuracy=None, stall_fraction=0, causes={},
                     samples_per_s=100, verdict="compute-bound"), **more)


def step(k, n):
    return dict(epoch=k, step=n, steps_per_epoch=30, loss=1.5, samples_per_s=812.3)


EVENTS = [("start", dict(epochs=2, model="m", data="<d>"))] + [
    e for k in range(2) for e in [("step", step(k, 10)), ("step", step(k, 20)), ("epoch", epoch(k, val_loss=1.25, stall_fraction=0.5))]]


def shown(monkeypatch, stream, tqdm=False):
    """The output of a run."""
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(_progress, "_SECONDS", 0)
    if not tqdm:
        real = builtins.__import__

        def no_tqdm(name, *more):
            if name.startswith("tqdm"):
                raise ImportError(name)
            return real(name, *more)
        monkeypatch.setattr(builtins, "__import__", no_tqdm)
    bar = _progress.Progress()
    for name, event in EVENTS:
        bar.take(name, event)
    bar.close()
    return stream.getvalue()


def test_a_line_is_written_again(monkeypatch):
    lines = shown(monkeypatch, Terminal()).split("\n")
    assert len(lines) == 3 and lines[2] == ""
    for k, line in enumerate(lines[:2]):
        assert line.split("\r")[1].startswith("epoch %d of 2: step 10 of 30, loss 1.5, 812/s" % (k + 1))
        assert line.rstrip().endswith("step 30 of 30, loss %g, val_loss 1.25, 50 %% waiting for data" % (2.0 / (k + 1)))


def test_tqdm(monkeypatch):
    pytest.importorskip("tqdm")
    assert "30/30" in shown(monkeypatch, Terminal(), tqdm=True)


def test_a_stream_that_is_gone_ends_no_run(monkeypatch):
    shown(monkeypatch, Closed())


def test_an_epoch_shorter_than_the_steps_between_reports(monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "EVENTS", [("start", dict(epochs=1)), ("epoch", epoch(0, steps=3))])
    assert "epoch 1 of 1: step 3 of 3" in shown(monkeypatch, Terminal())


@pytest.mark.parametrize("stream,progress,expected", [(Terminal(), None, True), (io.StringIO(), None, False), (None, None, False),
                                                      (Terminal(), False, False), (io.StringIO(), True, True)])
def test_where_it_is_shown(monkeypatch, stream, progress, expected):
    monkeypatch.setattr(sys, "stderr", stream)
    assert _progress.wanted(progress) is expected


def test_a_notebook(monkeypatch):
    kind = type("ZMQInteractiveShell", (), {})
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: kind()))
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert _progress.wanted(None)


# ---------------------------------------------------------------------- _repr_html_

def drawn(result):
    """Whole, and safe to parse."""
    text = result._repr_html_()
    return text, ElementTree.fromstring(text)


def test_a_result_draws_itself():
    causes = [{"read": 0.1 * k, "decode": 0.2, "unknown": 0.001} for k in range(3)]
    result = TrainResult(start=dict(model="m", data="<a&b>"), end=dict(complete=True, loss=0.5, val_accuracy=0.75),
                         epochs=[epoch(k, val_loss=1.5 - k / 4, val_accuracy=k / 4, stall_fraction=0.2 + 0.1 * k, causes=causes[k])
                                 for k in range(3)], checkpoint="run/step-000000000090.mrck")
    text, tree = drawn(result)
    assert len(tree.findall("{http://www.w3.org/2000/svg}svg")) == 3 and len(re.findall("<polyline", text)) == 4
    assert "0.7500" in text and "&lt;a&amp;b&gt;" in text and "<script" not in text and "step-000000000090" in text
    assert ">read<" in text and ">decode<" in text and ">unknown<" not in text


@pytest.mark.parametrize("epochs", [[], [epoch(0)], [epoch(0, loss=None, accuracy=None)], [epoch(0, loss=float("nan"))]])
def test_a_result_with_little_in_it(epochs):
    drawn(TrainResult(epochs=epochs))


def test_a_run(shapes, monkeypatch):
    """Simulated devices need no oneDNN."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    result = millrace.train(shapes, "mnist-mlp", augment="resize(28x28)", channels=1, batch=20, devices="sim:1,step=1ms", val="none",
                            epochs=2)
    assert "epoch 2 of 2" in stream.getvalue().replace("\x1b", "") and len(result.epochs) == 2
    drawn(result)
