#!/usr/bin/env python3
"""The pictures of docs/report.md: charts and timeline of a recorded run, as `millrace report` draws them.

usage: pictures.py MILLRACE TOP     compare docs/pictures/report.svg and timeline.svg with the pictures drawn now
MILLRACE_UPDATE=1 writes them. recorded/ has the output of a training on a simulated accelerator and its trace. Exit status 1: a picture
is not what `report` draws; the first line that differs is printed."""
import html
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
CHARTS = ["Rate, samples/s", "Idle, % of the device's time"]  # captions
WIDTH, HEIGHT, HEAD, LINE, GAP = 640, 240, 26, 20, 20         # of a chart, its caption and a line of its key, and between two charts
LINES = 2                                                     # of a key


def page_of(millrace):
    with tempfile.TemporaryDirectory(prefix="millrace-pictures-") as room:
        out = os.path.join(room, "report.html")
        recorded = [os.path.join(HERE, "recorded", name) for name in ("run.jsonl", "trace.json")]
        subprocess.run([millrace, "report", recorded[0], "--trace", recorded[1], "--html", out], check=True, stdout=subprocess.DEVNULL)
        with open(out, encoding="utf-8") as file:
            text = re.sub(r"&(?!amp;|lt;|gt;|quot;)\w+;", lambda m: html.unescape(m.group(0)), file.read())  # XML knows these four
            return re.sub(r"(?<=>)<title>[^<]*</title>(?=</rect>)", "", text)  # nobody can point at a part of a picture


def style_of(page):
    """Colours and strokes of the page; its rules about layout would change the pictures."""
    style = re.search(r"<style>\n(.*?)</style>", page, re.S).group(1)
    rules = re.findall(r"@media\(prefers-color-scheme:dark\)\{:root\{[^}]*\}\}|(?::root|polyline|rect\.v,circle|\.(?:grid|axis|dash|[a-d]|c\d+))\{[^}]*\}", style)
    return "\n".join(rules) + "\n.ground{fill:var(--box)}text{font:13px system-ui,sans-serif;fill:var(--dim)}.key{fill:var(--k)}"


def picture(page, width, height, about, parts):
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">',
             f"<title>{about}</title>", f"<style>\n{style_of(page)}\n</style>", f'<rect class="ground" width="{width}" height="{height}" rx="6"/>', *parts, "</svg>"]
    return "\n".join(lines) + "\n"


def chart(page, caption, left):
    figure = re.search(rf"<figcaption>{re.escape(caption)}</figcaption>\n<svg [^>]*>(.*?)</svg>(.*?)</figure>", page, re.S)
    parts = [f'<text x="{left + 10}" y="18">{caption}</text>',
             f'<svg x="{left}" y="{HEAD}" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}">{figure.group(1)}</svg>']
    at, line = 80, 0
    for mark, text in re.findall(r'<span class="key"><i class="(\w+)"></i>(.*?)</span>', figure.group(2)):
        if at + 40 + 7 * len(text) > WIDTH:
            at, line = 80, line + 1
        top = HEAD + HEIGHT + LINE * line
        parts.append(f'<rect class="key {mark}" x="{left + at}" y="{top + 4}" width="11" height="11" rx="2"/>'
                     f'<text x="{left + at + 16}" y="{top + 14}">{text}</text>')
        at += 40 + 7 * len(text)
    return parts


def charts(page):
    parts = [line for number, caption in enumerate(CHARTS) for line in chart(page, caption, number * (WIDTH + GAP))]
    return picture(page, 2 * WIDTH + GAP, HEAD + HEIGHT + LINE * LINES + 6, "Rate of a run, and the causes of the device's waits in each epoch", parts)


def timeline(page):
    width, height, inside = re.search(r'<div class="time".*?<svg viewBox="0 0 (\d+) (\d+)" role="img">\n(.*?)</svg></div>', page, re.S).groups()
    return picture(page, width, height, "Spans of three steps: reader, worker, copies, waits and computing", [inside.strip()])


def main():
    if len(sys.argv) != 3:
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        return 2
    page, wrong = page_of(os.path.abspath(sys.argv[1])), 0
    for name, drawn in (("report.svg", charts(page)), ("timeline.svg", timeline(page))):
        path = os.path.join(sys.argv[2], "docs", "pictures", name)
        if os.environ.get("MILLRACE_UPDATE"):
            with open(path, "w", encoding="utf-8") as file:
                file.write(drawn)
        with open(path, encoding="utf-8") as file:
            stored = file.read()
        if stored != drawn:
            pairs = list(zip(stored.split("\n"), drawn.split("\n")))
            first = next((pair for pair in pairs if pair[0] != pair[1]), (stored[-80:], drawn[-80:]))
            print(f"docs/pictures/{name}: expected {first[1][:200]}\nfound {first[0][:200]}\nMILLRACE_UPDATE=1 writes it")
            wrong = 1
    return wrong


if __name__ == "__main__":
    sys.exit(main())
