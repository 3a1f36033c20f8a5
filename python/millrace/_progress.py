"""Progress of train() in a terminal or a notebook: a bar of tqdm where it is installed, else a line that is written again."""
from __future__ import annotations

import sys
import time
from typing import Any, Dict, Optional

Event = Dict[str, Any]
STEPS = 10  # between two reports of the command, where nobody asked for others
_SECONDS = 0.2  # between two lines


def in_notebook() -> bool:
    """A kernel of Jupyter or the like runs this program: its output is shown as it comes, though it is no terminal."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


def wanted(progress: Optional[bool]) -> bool:
    """progress= of train(): None is yes where somebody looks."""
    if progress is not None:
        return bool(progress)
    try:
        return sys.stderr.isatty() or in_notebook()
    except (AttributeError, ValueError):  # it is missing or closed
        return False


def _bar(total: int) -> Any:
    try:
        from tqdm.auto import tqdm
        return tqdm(total=total, unit="step", dynamic_ncols=True)
    except ImportError:  # it, or its support for notebooks, is missing
        return _Line(total)


class _Line:
    """What Progress needs of tqdm, on one line of standard error."""

    def __init__(self, total: int) -> None:
        self._total, self.n, self._before, self._text, self._width = total, 0, "", "", 0
        self._shown = 0.0

    def set_description(self, text: str, refresh: bool = True) -> None:
        self._before = text

    def set_postfix_str(self, text: str, refresh: bool = True) -> None:
        self._text = text

    def update(self, steps: int) -> None:
        self.n += steps
        if time.monotonic() - self._shown >= _SECONDS:
            self._show()

    def _show(self) -> None:
        self._shown = time.monotonic()
        line = "%s: step %d of %d%s" % (self._before, self.n, self._total, ", " + self._text if self._text else "")
        sys.stderr.write("\r" + line.ljust(self._width))
        sys.stderr.flush()
        self._width = len(line)

    def close(self) -> None:
        self._show()
        sys.stderr.write("\n")
        sys.stderr.flush()


class Progress:
    """A bar for each epoch. Failing to write never ends a run: nobody looks any more, then."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._epoch, self._epochs, self._steps = -1, 0, 0
        self._lost = False

    def take(self, name: str, event: Event) -> None:
        """An event of the command."""
        if self._lost:
            return
        try:
            if name == "start":
                self._epochs = event.get("epochs") or 0
            elif name == "step":
                self._move(event["epoch"], event["step"], event["steps_per_epoch"], event)
            elif name == "epoch":
                self._end(event)
        except (OSError, ValueError):
            self._lost = True

    def _move(self, epoch: int, step: int, steps: int, event: Event) -> None:
        if epoch != self._epoch:
            self._over()
            self._bar, self._epoch, self._steps = _bar(steps), epoch, steps
            self._bar.set_description("epoch %d of %d" % (epoch + 1, self._epochs) if self._epochs else "epoch %d" % (epoch + 1))
        rate, loss = event.get("samples_per_s"), event.get("loss")
        self._bar.set_postfix_str(", ".join(text for text in (
            "" if loss is None else "loss %.4g" % loss, "" if rate is None else "%.0f/s" % rate) if text), refresh=False)
        self._bar.update(step - self._bar.n)

    def _end(self, event: Event) -> None:
        if self._bar is None or self._epoch != event["epoch"]:  # shorter than the steps between two reports
            self._over()
            self._bar, self._epoch, self._steps = _bar(event["steps"]), event["epoch"], event["steps"]
            self._bar.set_description("epoch %d of %d" % (self._epoch + 1, self._epochs) if self._epochs else "epoch %d" % (self._epoch + 1))
        parts = [("loss", event.get("loss"), "%.4g"), ("val_loss", event.get("val_loss"), "%.4g"),
                 ("val_accuracy", event.get("val_accuracy"), "%.4f")]
        text = ", ".join("%s %s" % (name, form % value) for name, value, form in parts if value is not None)
        stalled = event.get("stall_fraction")
        if stalled:
            text += ", %.0f %% waiting for data" % (100 * stalled)
        self._bar.set_postfix_str(text, refresh=False)
        self._bar.update(max(0, min(self._steps, event.get("first_step", 0) + event["steps"]) - self._bar.n))
        self._over()

    def _over(self) -> None:
        bar, self._bar = self._bar, None
        if bar is not None:
            bar.close()

    def close(self) -> None:
        try:
            self._over()
        except (OSError, ValueError):
            pass


__all__ = ["Progress", "STEPS", "wanted"]
