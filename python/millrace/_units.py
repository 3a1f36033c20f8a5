"""Means and deviations, in the units of pixels (0 to 255) and in other programs' units (0 to 1)."""
from __future__ import annotations

from typing import Any, Dict

from ._errors import ArgumentError


def augmentation(g: Dict[str, Any]) -> str:
    """augment=, with what normalise= says at its end."""
    text, moments = str(g["augment"]), g["normalise"]
    if moments is None:
        return text
    if "normalise(" in text or "normalise01(" in text or "standardise" in text:
        raise ArgumentError("normalise= and augment=%r: both say how pixels become floats; give one of them" % text)
    try:
        mean, std = ([float(v) for v in (part if hasattr(part, "__iter__") else [part])] for part in moments)
    except (TypeError, ValueError):
        raise ArgumentError("normalise=%r: expected (means, deviations) of pixels from 0 to 1, one number for each channel" % (moments,)) from None
    if not 1 <= len(mean) == len(std) <= 4 or not all(0 <= m <= 1 for m in mean) or not all(0 < s <= 1 for s in std):
        raise ArgumentError("normalise=%r: expected equally many means and deviations, of pixels from 0 to 1; values for 0 to 255 are "
                            "augment=\"...,normalise(means/deviations)\"" % (moments,))
    numbers = "/".join(":".join(("%.9f" % v).rstrip("0").rstrip(".") for v in values) for values in (mean, std))
    return "%snormalise01(%s)" % ("" if text in ("", "none") else text + ",", numbers)
