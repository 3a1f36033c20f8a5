"""Iterations as a DataLoader has them: every `for` is one epoch, and each has its own position."""
from __future__ import annotations

import os
import weakref
from typing import Any, Dict, Iterator, List, Optional, Tuple

from ._accelerate import leave
from ._arrays import Batch, refuse_copy
from ._loader import Loader
from ._stream import Stream, check_step, ending


class Pass:
    """One iteration over one epoch. Its position is its own: another iteration over the same loader does not move it."""

    _no_copy = "it is a position in a loader under way; the loader can be pickled, and state_dict() is its position"

    def __reduce_ex__(self, protocol: Any) -> Any:
        return refuse_copy(self)

    def __init__(self, loader: "Passes", epoch: int, step: int, before: int) -> None:
        self._loader, self._stream = loader, loader._free_stream(epoch, step)
        self.epoch, self.step, self.start, self.taken = epoch, step, step, False
        self.before = before  # the number of the next epoch as it was without this pass
        self.over, self._pid = False, os.getpid()
        self.end_of_dataloader, self.remainder = False, 0  # for Accelerate
        self._entered: Optional[bool] = None

    def __iter__(self) -> "Pass":
        return self

    def __len__(self) -> int:
        """Batches that are left."""
        return 0 if self.over else self._loader._steps - self.step

    def __next__(self) -> Any:
        with self._stream.lock:
            if self.over:
                self._leave()
                raise StopIteration
            batch = self._stream.next()
            self.taken, self.step = True, batch.step + 1
            if batch.last:
                self.close(True)
            self._enter(batch.last)
        return self._loader._deliver(batch)

    def _enter(self, last: bool) -> None:
        """A batch is delivered."""
        if self._entered is None:
            self._entered = self._loader._entering(self)
        self.end_of_dataloader = bool(last)

    def _leave(self) -> None:
        """The loop is over, or its caller dropped it."""
        if self._entered:
            self._entered = False
            leave(self)

    def skip_to(self, step: int) -> None:
        """The batch that comes next is this one of the epoch."""
        if step != self.step:
            self._stream.seek(self.epoch, step)
            self.step = step

    def close(self, whole: bool = False) -> None:
        """No batch of it is wanted any more. whole: all were delivered."""
        if not self.over:
            self.over = True
            self._loader._pass_over(self, whole)
        if not whole:
            self._leave()

    def __del__(self, ending: Any = ending, pid: Any = os.getpid) -> None:
        if not ending() and hasattr(self, "_entered") and self._pid == pid():
            self.close()


class Passes(Loader):
    """A loader whose iterations are epochs. Which one: that of set_epoch(), else the one after the last that was begun; after
    load_state_dict() the first iteration goes on in the middle of its epoch.

    Its state is the position of the newest iteration that is still under way, else the end of the last one."""

    _parts_count = True  # an iteration that ends before its epoch does has had this epoch; else the next one begins it again

    def _begin(self, given: Dict[str, Any]) -> None:
        self._rest, self._next_epoch = (0, 0), 0
        self._wanted: Optional[int] = None  # epoch, by set_epoch()
        self._resumed = False
        self._passes: List["weakref.ref[Pass]"] = []  # in the order in which they began
        self._more: List[Stream] = []                # of iterations within iterations
        super()._begin(given)

    # ------------------------------------------------------------------ positions

    def _under_way(self) -> List[Pass]:
        return [p for p in (r() for r in self._passes) if p is not None and not p.over]

    def _place(self) -> Tuple[int, int]:
        passes = [] if self._resumed else self._under_way()
        return (passes[-1].epoch, passes[-1].step) if passes else self._rest

    def _streams(self) -> List[Stream]:
        return [self._stream] + self._more

    def _free_stream(self, epoch: int, step: int) -> Stream:
        if all(p._stream is not self._stream for p in self._under_way()):
            self._stream.seek(epoch, step)
            if self._order and self._order.changed(epoch):
                self._stream.stop()  # batches made ahead have another order; the position stays
            return self._stream
        stream = Stream(self, epoch, step, cached=False)
        self._more.append(stream)
        return stream

    def _pass_over(self, of: Pass, whole: bool) -> None:
        self._passes = [r for r in self._passes if r() is not None and r() is not of]
        if whole:
            self._rest = (self._next_epoch, 0)
        elif of.taken and self._parts_count:
            self._rest = (of.epoch, of.step)
        else:  # as if it had not been begun
            self._rest, self._resumed = (of.epoch, of.start), self._resumed or of.start > 0
            if self._next_epoch == of.epoch + 1:
                self._next_epoch = of.before
        if of._stream is not self._stream:
            if of._stream in self._more:
                self._more.remove(of._stream)
            of._stream.stop()
        elif not whole and self._passes:
            of._stream.stop()  # the next iteration begins elsewhere, and others need memory now

    def set_epoch(self, epoch: int) -> None:
        """The next `for` delivers this epoch."""
        self._wanted = int(epoch)

    def seek(self, epoch: int, step: int = 0) -> None:
        """The next `for` delivers the rest of this epoch, from this step on."""
        self._check()
        check_step(step, self._steps)
        self._rest, self._next_epoch, self._resumed = (epoch, step), epoch + 1, True

    def state_dict(self) -> Dict[str, Any]:
        state = super().state_dict()
        if state["step"] and self._next_epoch != state["epoch"] + 1:
            state["next"] = self._next_epoch  # iterations within iterations have had those between
        return state

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        super().load_state_dict(state)
        following = state.get("next")
        if isinstance(following, int) and following > state["epoch"]:
            self._next_epoch = following

    # ------------------------------------------------------------------ iterating

    def __len__(self) -> int:
        return self._steps

    def _settle(self) -> None:
        """Before anything is delivered: what may have become known since the loader was made."""

    def _begin_pass(self) -> Pass:
        self._check()
        self._settle()
        self._source.see_count()
        wanted, self._wanted = self._wanted, None
        before = self._next_epoch
        if self._resumed and wanted in (None, self._rest[0]):
            epoch, step = self._rest  # in the middle of it
        else:
            epoch, step = (self._next_epoch if wanted is None else wanted), 0
            self._next_epoch = epoch + 1
        self._resumed = False
        self._source.epoch_begins(epoch)
        began = self._pass_of(epoch, step, before)
        self._passes.append(weakref.ref(began))
        return began

    def _pass_of(self, epoch: int, step: int, before: int) -> Pass:
        return Pass(self, epoch, step, before)

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        return self._begin_pass()

    def by_epoch(self) -> Iterator[Tuple[int, Iterator[Any]]]:
        """(epoch, its batches), without end."""
        while True:
            began = self._begin_pass()
            yield began.epoch, began
            began.close()

    def _entering(self, of: Pass) -> bool:
        """The first batch of an iteration is delivered. True: leave() is called when it ends."""
        return False

    def _deliver(self, batch: Batch) -> Any:
        """What an iteration gives for a batch."""
        return batch


__all__ = ["Pass", "Passes"]
