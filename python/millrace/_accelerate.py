"""What Accelerate needs to know of a loop: is this batch the last one, and how many of its samples are no padding?

Accelerate's own loaders register with its GradientState. Accelerator.accumulate() reads there that an epoch ends, gather_for_metrics() which
samples to leave out, Hugging Face's Trainer when to compute metrics. An iteration over a loader of ours registers itself, from its first batch
until it ends. A program that has not imported Accelerate is not affected."""
from __future__ import annotations

import sys
from typing import Any


def imported() -> bool:
    """Does the program use Accelerate?"""
    return hasattr(sys.modules.get("accelerate.state"), "GradientState")


def _change(of: Any, add: bool) -> bool:
    kind = getattr(sys.modules.get("accelerate.state"), "GradientState", None)
    if kind is None:
        return False
    state = kind()  # there is one of them
    others = [r for r in state.dataloader_references if r is not None and r is not of]
    state.dataloader_references = [None] + others + [of] * add
    return True


def enter(of: Any) -> bool:
    """This iteration is the one that runs now. of has end_of_dataloader, and remainder: samples of the last batch of all ranks, or 0 when
    its number equals the others'. Returns False where there is no Accelerate."""
    return _change(of, True)


def leave(of: Any) -> None:
    _change(of, False)


__all__ = ["enter", "imported", "leave"]
