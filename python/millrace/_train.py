"""Training, evaluating and predicting, done by the command in a process of its own (_command.py)."""
from __future__ import annotations

import contextlib
import os
import re
import tempfile
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple, TypeVar

from . import _command
from ._drawn import html_of
from ._errors import ArgumentError, DivergedError
from ._live import Live
from ._loader import log
from ._progress import STEPS, Progress, wanted
from ._records import Samples, write_records
from ._spool import cache_records
from ._typed import EvalSettings, PredictSettings, TrainSettings, Unpack

Event = Dict[str, Any]
Call = Optional[Callable[[Event], Any]]


def options(command: str = "train") -> Dict[str, str]:
    """The settings of train(), evaluate() ("eval") and predict() by keyword, with what each one is, as the command has them."""
    def line(row: Event) -> str:
        value = "True or False" if row["value"] is None else row["value"]
        return "%s: %s%s" % (value, row["help"], "" if row["default"] is None else " (default %s)" % row["default"])
    return {keyword: line(row) for keyword, row in _command.settings(command).items()}


@dataclass
class TrainResult:
    """The result of a run. Figures are as in `millrace train --json`; docs/json.md explains the keys.

    start        the network, the data and the settings: model, parameters, classes, samples, steps_per_epoch, optimizer, ...
    epochs       a dict for each epoch of this call, an epoch that was cut short included: epoch (from 0), loss, accuracy, val_loss,
                 val_accuracy, samples_per_s, step_ms, stall_fraction and its causes, stages (read, decode, copy), verdict, ...
    evaluations  the same of validations inside epochs (eval_steps=, eval_at=)
    end          how it ended: complete, total_seconds, weights (a hash), bad_met, ..., and the report of the last epoch
    rates        with show=True, which trains nothing: lr by epoch, step and update
    messages     other messages of the command
    checkpoint   the newest checkpoint's file; None: no checkpoint
    best         the file of the one with the lowest validation loss, or None
    stopped      a callback ended the run"""

    start: Event = field(default_factory=dict)
    epochs: List[Event] = field(default_factory=list)
    evaluations: List[Event] = field(default_factory=list)
    end: Event = field(default_factory=dict)
    rates: List[Event] = field(default_factory=list)
    messages: List[str] = field(default_factory=list)
    checkpoint: Optional[str] = None
    best: Optional[str] = None
    stopped: bool = False

    @property
    def complete(self) -> bool:
        """Did it come to its last epoch, or to what ends it early by its own settings?"""
        return bool(self.end.get("complete"))

    @property
    def loss(self) -> Optional[float]:
        """Of training, in the last epoch; None: there is no such number, here and below."""
        return self.end.get("loss")

    @property
    def accuracy(self) -> Optional[float]:
        """The same."""
        return self.end.get("accuracy")

    @property
    def val_loss(self) -> Optional[float]:
        """Of the validation after the last epoch."""
        return self.end.get("val_loss")

    @property
    def val_accuracy(self) -> Optional[float]:
        """The same."""
        return self.end.get("val_accuracy")

    @property
    def weights(self) -> Optional[str]:
        """A hash of all weights, 32 hexadecimal digits: two runs that are the same have the same."""
        return self.end.get("weights")

    def __repr__(self) -> str:
        def number(value: Optional[float]) -> str:
            return "-" if value is None else "%.4f" % value
        return "<TrainResult of %d epochs%s: loss %s, accuracy %s, val_loss %s, val_accuracy %s>" % (
            len(self.epochs), "" if self.complete else ", not complete", number(self.loss), number(self.accuracy), number(self.val_loss),
            number(self.val_accuracy))

    def _repr_html_(self) -> str:
        """In a notebook: curves of loss and accuracy, what devices waited for, the last figures."""
        return html_of(self)


Function = TypeVar("Function", bound=Callable[..., Any])


def _described(settings: Any) -> Callable[[Function], Function]:
    """The function's description with that of its further options, where Python keeps descriptions."""
    def change(function: Function) -> Function:
        if function.__doc__ and settings.__doc__:
            function.__doc__ = "%s\n\n    %s\n    " % (function.__doc__.rstrip(), settings.__doc__.strip())
        return function
    return change


class _Files:
    """Paths for a command; samples of Python objects become record files, which are there as long as it runs."""

    def __init__(self, keep: contextlib.ExitStack) -> None:
        self._keep = keep

    def path(self, name: str, data: Any) -> Any:
        if isinstance(data, (str, bytes, os.PathLike)):
            return data
        if isinstance(data, Samples) and data.key is not None:
            return cache_records(data)
        if isinstance(data, Live) and data.key is not None:
            return cache_records(data.data, key=data.key, schema=data.schema, classes=data.classes)
        if not isinstance(data, Samples) and not isinstance(data, Live):
            data = Live(data)  # an ArgumentError for other objects
        folder = self._keep.enter_context(tempfile.TemporaryDirectory(prefix="millrace-"))
        file = os.path.join(folder, name + ".mrec")
        if isinstance(data, Live):
            write_records(file, _all_of(data.data), schema=data.schema, classes=data.classes)
        else:
            write_records(file, data)
        return file


def _all_of(data: Any) -> Iterator[Any]:
    for k in range(len(data)):
        yield data[k]


def _run(function: str, command: str, data: Any, given: Dict[str, Any], on_event: Callable[[str, Event], bool],
         on_message: Optional[Callable[[str], Any]]) -> Tuple[_command.Child, int]:
    with contextlib.ExitStack() as keep:
        files = _Files(keep)
        given = {k: files.path(k, v) if k == "val" and v is not None else v for k, v in given.items()}
        line = _command.words(function, command, b"", given)[:-1]  # wrong settings before a long copy
        line.append(_command.encode(files.path("data", data)))
        child = _command.Child(line, on_event, on_message or (lambda text: log.info("%s", text)))
        return child, child.run()


def _ends(answer: Any) -> bool:
    if isinstance(answer, str):
        return answer == "stop"
    return answer is False or (str(getattr(answer, "dtype", "")).endswith("bool") and not answer)  # what comparing arrays gives


def _newest(folder: Any, result: TrainResult) -> None:
    try:
        names = os.listdir(folder)
    except OSError:
        return
    steps = sorted(n for n in map(os.fsdecode, names) if re.match(r"step-\d{12}\.mrck$", n))
    place = os.fsdecode(folder)
    result.checkpoint = os.path.join(place, steps[-1]) if steps else None
    best = os.path.join(place, "best.mrck")
    result.best = best if os.path.exists(best) else None


@_described(TrainSettings)
def train(data: Any, model: Optional[str] = None, *, epochs: Optional[int] = None, batch: Optional[int] = None, lr: Optional[float] = None,
          devices: Any = None, augment: Optional[str] = None, val: Any = None, hold_out: Optional[float] = None, checkpoint: Any = None,
          resume: bool = False, seed: Optional[int] = None, on_start: Call = None, on_step: Call = None, on_eval: Call = None,
          on_epoch: Call = None, on_message: Optional[Callable[[str], Any]] = None, progress: Optional[bool] = None,
          **settings: Unpack[TrainSettings]) -> TrainResult:
    """Train a network with the embedded trainer, as `millrace train DATA` does, and wait for its end.

        result = millrace.train("photos", "cifar-cnn", epochs=10, augment="resize(32x32),flip", checkpoint="run1",
                                on_epoch=lambda e: print(e["epoch"], e["loss"], e["val_accuracy"]))
        print(result.accuracy, result.checkpoint)

    The command runs in a process of its own, with an installed oneDNN or GPUs, so nothing of them is loaded here. It works as it does
    at the terminal, bit for bit: a run that was begun there may go on here, and the other way round.

    data        a file, a folder, an address; the format is found by the content. Or a Python object with __len__ and __getitem__, Live
                or Samples: written to a record file first, in the temporary folder, or, where it has a key, kept as
                cache_records() does
    model       name of a network (`millrace inspect --model NAME` lists one's layers); None with resume=True: the checkpoint's
    epochs, batch, lr, augment   the model's own, where they are not given; batch is the global one
    devices     "cpu", "cpu:4", "cuda:0,1", ...
    val         validation data, as `data`; "none": do not validate. None: the test part that the data bring
    hold_out    validate on this part of the data, 0.1 for a tenth, and train on the others
    checkpoint  folder of the run, written at the end of each epoch
    seed        of the weights, the order and augmentation
    resume      continue from the newest checkpoint there; settings that are not given stay unchanged
    settings    every other option of the command (below), with _ for -: optimizer="adamw", schedule="cosine", patience=3, eval_steps=100,
                tensorboard="runs/1", deterministic=True, ... options() gives them as a dict. None: not given. A list stands for what is
                separated at the command line: eval_at=[0.5, 1.25], freeze=["0-40", "head"]; True and False for on and off

    on_start    function of a dict, called once: network, data and settings
    on_step     the same after every step, or after every log_steps=N: epoch, step, updates, loss, accuracy, lr, samples_per_s,
                seconds_left
    on_eval     after each validation inside an epoch
    on_epoch    after each epoch: the dict that result.epochs has
    on_message  function of a text that the command says besides; else it is logged (INFO)
    progress    a bar for each epoch on standard error, by tqdm where it is installed; None: in a terminal and in a notebook

    Callbacks are called in this thread, while training goes on. One that returns False or "stop" ends the run in good order: the step
    that is under way is done, and a checkpoint is written where there is a folder for it. So does an exception of a callback, which
    is then raised, and Ctrl-C (KeyboardInterrupt); a second Ctrl-C ends it at once. When this process dies, the run is stopped, too.

    Gives a TrainResult. Raises a millrace.Error of its kind, with path, offset, sample and errno where they are known: ArgumentError for a
    setting, UnsupportedError where oneDNN is not installed (it says what to install), ExistsError for a folder that another run has,
    DivergedError for a loss that is NaN. Its `result` is the result of the run up to there. An unknown name of a setting is a
    TypeError with the nearest one."""
    given: Dict[str, Any] = {"model": model, "epochs": epochs, "batch": batch, "lr": lr, "devices": devices, "augment": augment, "val": val,
                             "hold_out": hold_out, "checkpoint": checkpoint, "resume": resume, "seed": seed}
    given.update(settings)
    if on_step is not None and given.get("log_steps") is None:
        given["log_steps"] = 1
    result, bar = TrainResult(), Progress() if wanted(progress) else None
    if bar and given.get("log_steps") is None:
        given["log_steps"] = STEPS
    calls = {"start": on_start, "step": on_step, "eval": on_eval, "epoch": on_epoch}
    lists = {"epoch": result.epochs, "eval": result.evaluations, "lr": result.rates}

    def on_event(name: str, event: Event) -> bool:
        if name in ("start", "train"):
            (result.start if name == "start" else result.end).update(event)
        elif name in lists:
            lists[name].append(event)
        if bar:
            bar.take(name, event)
        call = calls.get(name)
        return call is not None and _ends(call(event))

    try:
        child, status = _run("train", "train", data, given, on_event, on_message)
    finally:
        if bar:
            bar.close()
    result.messages, result.stopped = child.messages, child.stopped
    if checkpoint is not None:
        _newest(checkpoint, result)
    known = status in (0, 3) or (child.stopped and status == 130)
    if known or (status == _command.UNKNOWN and child.error is None and (child.stopped or result.end or result.rates)):
        return result
    failed = child.failed(status)
    if child.error is not None and result.end.get("diverged"):
        failed = DivergedError(str(failed))
    failed.result = result
    raise failed


def _checkpoint_of(checkpoint: Any) -> Any:
    if isinstance(checkpoint, TrainResult):
        if checkpoint.checkpoint is None:
            raise ArgumentError("checkpoint: the run has left none; train(..., checkpoint=FOLDER) does")
        return checkpoint.checkpoint
    return checkpoint


@_described(EvalSettings)
def evaluate(checkpoint: Any, data: Any, *, on_message: Optional[Callable[[str], Any]] = None,
             **settings: Unpack[EvalSettings]) -> Event:
    """Exact loss and accuracy of a checkpoint on a data set, as `millrace eval` prints them: a dict with samples, val_loss, val_accuracy,
    seconds, samples_per_s, ...; None for a missing number.

    checkpoint  a file, a folder, whose newest is taken, or what train() gave
    data        as for train(); its test part, where it has one
    settings    the options of the command, with _ for -: batch=, devices=, split=, confusion="FILE.csv", ...; options("eval")

    Pictures are prepared as in training, without random operations. Errors are as for train()."""
    rows: List[Event] = []

    def on_event(name: str, event: Event) -> bool:
        if name == "eval":
            rows.append(event)
        return False
    given = dict(settings, checkpoint=_checkpoint_of(checkpoint))
    child, status = _run("evaluate", "eval", data, given, on_event, on_message)
    if status not in (0, 3, _command.UNKNOWN) or not rows or child.error is not None:
        raise child.failed(status)
    return rows[0]


@_described(PredictSettings)
def predict(checkpoint: Any, data: Any, *, on_row: Call = None, on_message: Optional[Callable[[str], Any]] = None,
            **settings: Unpack[PredictSettings]) -> List[Event]:
    """The predictions of a checkpoint, as by `millrace predict`: a dict for each sample, in the order of the data.

    A dict has sample (its number), name, label (the class that the data give it, or None), class, class_number, probability; with
    top=K also top, a list of the likeliest. Of a network with targets: labels and probabilities, or values. A sample that cannot be
    read has an error, which says why, and None for its class.

    checkpoint  a file, a folder, whose newest is taken, or what train() gave
    data        as for train(), but it needs no labels; of data in two parts the test part
    on_row      function of such a dict, called as they come: nothing is kept then, and the list is empty. One that returns False or
                "stop" ends it
    settings    the options of the command, with _ for -; options("predict"). out="FILE" writes all rows to that file, a line of JSON each, and
                the list has one dict that describes it

    Errors are as for train()."""
    rows: List[Event] = []

    def on_event(name: str, event: Event) -> bool:
        if on_row is not None and name == "prediction":
            return _ends(on_row(event))
        rows.append(event)
        return False
    given = dict(settings, checkpoint=_checkpoint_of(checkpoint))
    child, status = _run("predict", "predict", data, given, on_event, on_message)
    if status in (0, 3) or (child.stopped and status == 130):
        return rows
    raise child.failed(status)
