"""A run of train() as a notebook shows it: curves, causes of waiting, the last figures. HTML and SVG without scripts."""
from __future__ import annotations

from html import escape
from typing import Any, Dict, List, Optional, Sequence, Tuple

Event = Dict[str, Any]
Curve = Tuple[str, str, List[Tuple[float, float]]]  # name, colour, points

_WIDTH, _HEIGHT, _LEFT, _EDGE = 340, 180, 52, 18
_COLOURS = {"read": "#4e79a7", "decode": "#f28e2b", "large": "#e15759", "memory": "#76b7b2", "cores": "#59a14f", "quota": "#edc948",
            "blocked": "#b07aa1", "room": "#ff9da7", "copy": "#9c755f", "host": "#86bcb6", "unknown": "#bab0ac",
            "network": "#2f6f9f"}
_SHOWN = 0.005  # part of the time that a cause needs to be named


def _finite(value: Any) -> bool:
    return isinstance(value, (int, float)) and value == value and abs(value) != float("inf")


def _points(epochs: Sequence[Event], key: str) -> List[Tuple[float, float]]:
    return [(e["epoch"] + 1, e[key]) for e in epochs if _finite(e.get(key))]


def _text(x: float, y: float, text: str, anchor: str = "start", colour: str = "currentColor") -> str:
    return '<text x="%.1f" y="%.1f" text-anchor="%s" fill="%s">%s</text>' % (x, y, anchor, colour, escape(text))


def _frame(title: str, inner: str) -> str:
    return ('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-size="11" font-family="sans-serif" '
            'role="img" aria-label="%s">%s%s</svg>' % (_WIDTH, _HEIGHT, _WIDTH, _HEIGHT, escape(title, True), _text(_LEFT, 12, title), inner))


def _chart(title: str, curves: Sequence[Curve]) -> str:
    """Lines over epochs; "" where no curve has a point."""
    curves = [c for c in curves if c[2]]
    if not curves:
        return ""
    xs, ys = [[p[k] for c in curves for p in c[2]] for k in (0, 1)]
    (x0, x1), (y0, y1) = [(min(v), max(v)) if max(v) > min(v) else (min(v) - 0.5, max(v) + 0.5) for v in (xs, ys)]
    right, low = _WIDTH - _EDGE, _HEIGHT - 2 * _EDGE

    def place(x: float, y: float) -> Tuple[float, float]:
        return _LEFT + (x - x0) / (x1 - x0) * (right - _LEFT), low - (y - y0) / (y1 - y0) * (low - _EDGE - 4)
    out = ['<path d="M%d %dV%dH%d" fill="none" stroke="currentColor" opacity=".4"/>' % (_LEFT, _EDGE, low, right)]
    out += [_text(_LEFT - 4, place(x0, v)[1] + 4, "%.3g" % v, "end") for v in (y0, y1)]
    out += [_text(place(v, y0)[0], low + 13, "%g" % v, "middle") for v in sorted({min(xs), max(xs)})]
    for k, (name, colour, points) in enumerate(curves):
        at = [place(*p) for p in points]
        if len(at) == 1:
            out.append('<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>' % (at[0] + (colour,)))
        else:
            out.append('<polyline points="%s" fill="none" stroke="%s" stroke-width="1.5"/>' % (" ".join("%.1f,%.1f" % p for p in at), colour))
        out.append(_text(_LEFT + 90 * k, _HEIGHT - 6, name, colour=colour))
    return _frame(title, "".join(out))


def _causes(epochs: Sequence[Event]) -> str:
    """A bar for each epoch: which part of the time the devices waited, and for what. "" where they did not."""
    most = max((e.get("stall_fraction") or 0 for e in epochs), default=0)
    names = [n for n in _COLOURS if any((e.get("causes") or {}).get(n, 0) >= _SHOWN for e in epochs)]
    if most < _SHOWN or not names:
        return ""
    low, step = _HEIGHT - 2 * _EDGE, (_WIDTH - _EDGE - _LEFT) / len(epochs)
    out = ['<path d="M%d %dV%dH%d" fill="none" stroke="currentColor" opacity=".4"/>' % (_LEFT, _EDGE, low, _WIDTH - _EDGE),
           _text(_LEFT - 4, _EDGE + 8, "%.0f %%" % (100 * most), "end"), _text(_LEFT - 4, low + 4, "0", "end")]
    for k, e in enumerate(epochs):
        y = float(low)
        for name in names:
            tall = (e.get("causes") or {}).get(name, 0) / most * (low - _EDGE - 4)
            y -= tall
            out.append('<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"><title>epoch %d: %s %.1f %%</title></rect>' % (
                _LEFT + k * step, y, max(1.0, step - 1), tall, _COLOURS[name], e["epoch"] + 1, name, 100 * e["causes"][name]))
    x = float(_LEFT)
    for name in names:
        out.append(_text(x, _HEIGHT - 6, name, colour=_COLOURS[name]))
        x += 8 * len(name) + 8
    return _frame("time that devices waited, by cause", "".join(out))


def _number(value: Optional[Any], form: str = "%.4f") -> str:
    return form % value if _finite(value) else "-"


def html_of(result: Any) -> str:
    """Of a TrainResult."""
    epochs, start = result.epochs, result.start
    charts = [_chart("loss", [("training", "#4e79a7", _points(epochs, "loss")), ("validation", "#f28e2b", _points(epochs, "val_loss"))]),
              _chart("accuracy", [("training", "#4e79a7", _points(epochs, "accuracy")),
                                  ("validation", "#f28e2b", _points(epochs, "val_accuracy"))]), _causes(epochs)]
    rows = [("model", str(start.get("model") or "-")), ("data", str(start.get("data") or "-")),
            ("epochs", "%d%s" % (len(epochs), "" if result.complete else ", not complete")),
            ("loss", _number(result.loss)), ("accuracy", _number(result.accuracy)), ("validation loss", _number(result.val_loss)),
            ("validation accuracy", _number(result.val_accuracy))]
    if epochs:
        rows += [("samples/s", _number(epochs[-1].get("samples_per_s"), "%.0f")), ("verdict", str(epochs[-1].get("verdict") or "-"))]
    if result.checkpoint:
        rows.append(("checkpoint", result.checkpoint))
    table = "".join('<tr><th style="text-align:left">%s</th><td style="text-align:left">%s</td></tr>' % (escape(a), escape(b)) for a, b in rows)
    return "<div>%s<table>%s</table></div>" % ("".join(charts), table)


__all__ = ["html_of"]
