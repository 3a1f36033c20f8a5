#!/usr/bin/env python3
"""A bar chart and tables of what bench/peers.py (and bench/ratios.py) recorded; nothing is measured here.

usage: bench/chart.py PEERS.json [--svg OUT.svg] [--ratios RATIOS.json]

The chart goes to OUT.svg: a panel for each kind of input, bars in units of the yardstick, ours in colour, thin lines from the slowest to
the fastest round. It brings its own background and follows the reader's light or dark setting. The tables go to standard output as
Markdown.
"""
import argparse
import os
from html import escape

from ours import YARDSTICK
from rounds import read_rows

PANELS = [  # title, who, figure
    ("From JPEG, crop and flip to 224 x 224", ["folder", "records", "door-folder", "door-records", "door-torch", YARDSTICK, "tf-data",
                                                "dali-cpu", "torch-opencv", "torch-pillow", "torchvision", "webdataset", "streaming",
                                                "grain", "spdl", "ffcv-jpeg"], "ratio"),
    ("From files prepared for it, crop and flip to 224 x 224", ["coef", "door-coef", "raw", "ffcv-raw"], "ratio"),
    ("CIFAR-sized raw pictures, crop of the padded picture + flip", ["cifar", "ffcv-cifar"], "rate"),
]
WIDTH, LEFT, RIGHT, BAR, GAP, TITLE, MARGIN = 940, 330, 170, 18, 8, 34, 20
STYLE = """
  .ground { fill: #ffffff } .text { fill: #1f2328 } .faint { fill: #59636e } .line { stroke: #1f2328; stroke-width: 1 }
  .peer { fill: #a9b3bd } .ours { fill: #0b6bcb } .yardstick { fill: #6e7781 } .one { stroke: #59636e; stroke-dasharray: 3 3 }
  .halo { stroke: #ffffff; stroke-width: 4px; stroke-linejoin: round; paint-order: stroke }
  text { font: 13px system-ui, -apple-system, "Segoe UI", "Helvetica Neue", Arial, sans-serif }
  .title { font-weight: 600; font-size: 14px } .strong { font-weight: 600 }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #0d1117 } .text { fill: #e6edf3 } .faint { fill: #9da7b3 } .line { stroke: #e6edf3 }
    .halo { stroke: #0d1117 } .peer { fill: #4b5661 } .ours { fill: #4493f8 } .yardstick { fill: #8b949e } .one { stroke: #9da7b3 }
  }
"""


def of_kind(rows, kind):
    return [row for row in rows if row.get("row") == kind]


def bar_values(row, figure):
    """(median, least, most) in the panel's unit, or None."""
    if figure == "ratio":
        found = row.get("to_yardstick")
        return found and (found["median"], found["min"], found["max"])
    rates = [rate for rate in row["samples_per_s"] if rate]
    return row["median_samples_per_s"], min(rates), max(rates)


def bar_text(row, figure, value):
    """What stands at the end of a bar.

    >>> bar_text({"median_samples_per_s": 2433.4}, "ratio", 1.217)
    '1.22 × · 2,433/s'
    """
    rate = f"{row['median_samples_per_s']:,.0f}/s"
    return f"{value:.2f} × · {rate}" if figure == "ratio" else rate


def panel(rows, title, idents, figure, top):
    """SVG of one panel and its height; nothing where nobody is there."""
    bars = [(row, bar_values(row, figure)) for row in of_kind(rows, "contestant") if row["id"] in idents and bar_values(row, figure)]
    if not bars:
        return [], 0
    bars.sort(key=lambda bar: -bar[1][0])
    room = WIDTH - LEFT - RIGHT
    scale = room / max(most for _, (_, _, most) in bars)
    out = [f'<text class="text title" x="{MARGIN}" y="{top + 20}">{escape(title)}</text>']
    bottom = top + TITLE + len(bars) * (BAR + GAP)
    if figure == "ratio":
        one = LEFT + scale
        out.append(f'<line class="one" x1="{one:.1f}" x2="{one:.1f}" y1="{top + TITLE - 4}" y2="{bottom - GAP + 4}"/>')
    for at, (row, (middle, least, most)) in enumerate(bars):
        y = top + TITLE + at * (BAR + GAP)
        text_y, line_y, end = y + BAR - 4.5, y + BAR / 2, LEFT + most * scale
        strong = " strong" if row["kind"] == "ours" else ""
        out += [
            f'<text class="text{strong}" x="{LEFT - 10}" y="{text_y}" text-anchor="end">{escape(row["label"])}</text>',
            f'<rect class="{row["kind"]}" x="{LEFT}" y="{y}" width="{max(1, middle * scale):.1f}" height="{BAR}" rx="2"/>',
            f'<line class="line" x1="{LEFT + least * scale:.1f}" x2="{end:.1f}" y1="{line_y}" y2="{line_y}"/>',
            f'<text class="text halo{strong}" x="{end + 8:.1f}" y="{text_y}">{escape(bar_text(row, figure, middle))}</text>',
        ]
    return out, bottom - top + 10


def machine_words(run):
    m = run["machine"]
    wide = " with AVX-512" if "avx512f" in m["instruction_sets"] else " with AVX2" if "avx2" in m["instruction_sets"] else ""
    return f"{m['cpu']}{wide}, {run['threads']} threads on {run['cores']} cores, kernel {m['kernel']}"


def svg(rows):
    run = of_kind(rows, "run")[0]
    body, y = [], MARGIN
    for title, idents, figure in PANELS:
        part, height = panel(rows, title, idents, figure, y)
        body += part
        y += height
    for words in (f"{machine_words(run)}; median of {run['rounds']} rounds in turn, line: slowest to fastest round.",
                  "× is times whole-picture libjpeg-turbo decoding on the same threads, measured in the same round."):
        body.append(f'<text class="faint" x="{MARGIN}" y="{y + 14}">{escape(words)}</text>')
        y += 18
    y += MARGIN
    about = "; ".join(f"{row['label']} {row['median_samples_per_s']:,.0f}/s" for row in of_kind(rows, "contestant"))
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y}" viewBox="0 0 {WIDTH} {y}" role="img" '
        'aria-labelledby="t d">', '<title id="t">millrace beside other loaders</title>', f'<desc id="d">{escape(about)}</desc>',
        f"<style>{STYLE}</style>", f'<rect class="ground" width="{WIDTH}" height="{y}" rx="8"/>', *body, "</svg>", ""])


# ---- tables ----

def spread(found, digits=2):
    return f"{found['min']:.{digits}f}-{found['max']:.{digits}f}"


def contestants_table(rows):
    out = ["| loader | samples/s | ÷ full decode | range | CPU s per 1,000 | peak MB | version |", "|---|---|---|---|---|---|---|"]
    for row in sorted(of_kind(rows, "contestant"), key=lambda r: -r["median_samples_per_s"]):
        to, mark = row.get("to_yardstick"), "**" if row["kind"] == "ours" else ""
        out.append(f"| {mark}{row['label']}{mark} | {row['median_samples_per_s']:,.0f} | " +
                   (f"{mark}{to['median']:.2f}{mark} | {spread(to)}" if to else "| ") +
                   f" | {row['cpu_s_per_1000']:.3g} | {row['peak_rss_mb']:,.0f} | {row.get('version', '')} |")
    return out


def pairs_table(rows, labels):
    out = ["| ratio | median | range | by processor time |", "|---|---|---|---|"]
    for row in of_kind(rows, "pair"):
        names = row["id"] if "load_over_compute" in row else " ÷ ".join(labels.get(row[key], row[key]) for key in ("over", "under"))
        out.append(f"| {names} | **{row['median']:.2f}** | {spread(row)} | {row['cpu']['median']:.2f} |" if "cpu" in row else
                   f"| {names} | **{row['median']:.2f}** | {spread(row)} | |")
    return out


def absent_lines(rows):
    return [f"- not measured: {row['label']}: {row['reason']}" for row in of_kind(rows, "absent")]


def tables(rows):
    run = of_kind(rows, "run")[0]
    labels = {row["id"]: row["label"] for row in of_kind(rows, "contestant")}
    labels["best-jpeg"] = "the fastest other loader on JPEG, round by round"
    data = ", ".join(f"{about['pictures']:,} {job} ({about['bytes'] / about['pictures'] / 1e3:.1f} kB), batch {about['batch']}"
                     for job, about in run["data"].items())
    parts = [[f"{machine_words(run)}; {data}; {run['rounds']} rounds of {run['seconds_a_turn']:g} s a turn."]]
    if run["bench"] == "peers":
        parts.append(contestants_table(rows))
    return "\n\n".join("\n".join(part) for part in [*parts, pairs_table(rows, labels), absent_lines(rows)] if part)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peers")
    parser.add_argument("--svg")
    parser.add_argument("--ratios")
    args = parser.parse_args()
    rows = read_rows(args.peers)
    if args.svg:
        with open(args.svg + ".part", "w", encoding="utf-8") as f:
            f.write(svg(rows))
        os.replace(args.svg + ".part", args.svg)
    print(tables(rows))
    if args.ratios:
        print("\n" + tables(read_rows(args.ratios)))


if __name__ == "__main__":
    main()
