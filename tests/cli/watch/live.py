"""live.py MILLRACE DATA: `train --live` on terminals of many sizes, looked at as a person would."""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import terminal  # noqa: E402

MILLRACE, DATA = sys.argv[1:3]
UTF8 = {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "NO_COLOR": None}
STAGE = re.compile(r"^(read|decode|copy) +(\d+) (.*?) +(\d+) busy +(\d+) starved +(\d+) held, queue +(\d+)$")
BLOCKS = "\u2588\u2592\u00b7"
failures = []


def check(condition, text):
    if not condition:
        failures.append(text)
        print("FAILED:", text)


def train(*more, epochs=3):
    return [MILLRACE, "train", DATA, "--model", "cifar-cnn", "--batch", "40", "--epochs", str(epochs), "--seed", "1",
            "--devices", "sim:1,step=60ms", "--live", *more]


def of_view(line):
    return bool(re.match(r"(millrace train: |\[.*\] |\d[\d,]* samples/s|read +\d|decode +\d|copy +\d|device +\d|slowest |bad samples )", line))


def is_clean(t, name, status, wanted=0):
    lines = t.lines()
    check(status == wanted, "%s: exit status %d" % (name, status))
    check(not [x for x in lines if of_view(x)], "%s: left on the terminal: %r" % (name, [x for x in lines if of_view(x)]))
    check(len([x for x in lines if x.startswith("weights ")]) == 1, "%s: no last line: %r" % (name, lines[-3:]))
    check(lines[-1] == "", "%s: the cursor is not below the output" % name)
    return lines


def frames(columns, rows, *more, environment=UTF8, **keys):
    """Every screen that showed the whole view, and the last screen."""
    seen = []

    def look(t, fd, pid, seconds):
        if t.sequence is None and t.sequences and t.sequences[-1] == "[J":
            seen.append([x for x in t.screen() if of_view(x)])

    status, t = terminal.run(train(*more, **keys), columns, rows, look, environment)
    return [x for x in seen if x], status, t


def usual():
    seen, status, t = frames(95, 30)
    lines = is_clean(t, "95 x 30", status)
    check(not any(of_view(x) for x in t.wraps), "95 x 30: too long: %r" % t.wraps)
    check(len([x for x in lines if re.match(r" +[123] ", x)]) == 3, "95 x 30: expected three rows of epochs: %r" % lines)
    check(max(map(len, seen)) == 9, "95 x 30: expected nine lines, found %d" % max(map(len, seen)))
    full = [x for x in seen if len(x) == 9]
    check(any(re.search(r"\] \d+/18 steps, epoch [123]/3, 0:0\d left$", x[1]) for x in full), "no line of progress: %r" % full[-1])
    check(any(re.match(r"device   1 .* \d+ computing +\d+ idle", x[6]) for x in full), "no line of the device: %r" % full[-1])
    check(any("slowest " in x[7] and "the mean" in x[7] for x in full) or "none was timed" in full[-1][7], "no slowest: %r" % full[-1])
    shares = 0
    for view in full:
        for line in view[3:6]:
            m = STAGE.match(line)
            check(m, "not a stage: %r" % line)
            if not m:
                continue
            cells = [m.group(3).count(c) for c in BLOCKS]
            parts = [int(m.group(k)) for k in (4, 5, 6)]
            check(sum(parts) <= 100, "more than a whole: %r" % line)
            bar = line[11:line.index(" busy") - 4]
            check(len(bar) == 95 - 1 - 11 - 41, "the bar has %d cells: %r" % (len(bar), line))
            for cell, part in zip(cells, parts):
                check(abs(cell * 100 / len(bar) - part) <= 100 / len(bar) + 1, "bar and figure differ: %r" % line)
            shares += sum(parts) >= 98
    check(shares > 0, "no stage whose parts add up to a whole: %r" % full[-1])


def sizes():
    for columns, rows in ((40, 5), (41, 12), (20, 4), (7, 2), (1, 1), (250, 60)):
        name = "%d x %d" % (columns, rows)
        seen, status, t = frames(columns, rows, epochs=1)
        check(status == 0, "%s: exit status %d" % (name, status))
        if columns < 90:  # the results are wider than that: the rows they took are not the view's fault
            check(all(len(x) < max(rows, 2) for x in seen), "%s: more lines than fit: %r" % (name, seen[-1:]))
        check(all(len(line) < columns for view in seen for line in view), "%s: a line that is too wide" % name)
        if columns == 40:
            check(any(len(x) == 4 for x in seen), "%s: expected four lines: %r" % (name, seen[-1:]))
            check(not any(of_view(x) for x in t.lines()), "%s: left: %r" % (name, t.lines()))


def resized():
    widths = [50, 120, 61, 90]

    def look(t, fd, pid, seconds):
        if widths and seconds > 0.5 * (5 - len(widths)) and t.sequence is None:
            if terminal.resize_between_views(fd, t, pid, widths[0], 20):
                widths.pop(0)

    status, t = terminal.run(train(epochs=10), 95, 30, look, UTF8)
    check(not widths, "the run was over before all sizes were seen")
    check(status == 0 and not [x for x in t.lines() if of_view(x)], "resized: left on the terminal: %r" % t.lines())


def messages():
    folder = "run-live"
    seen, status, t = frames(100, 20, "--checkpoint", folder)
    lines = is_clean(t, "messages", status)
    reported = [x for x in lines if x.startswith("millrace: checkpoint ")]
    check(len(reported) == 3 and all("written" in x for x in reported), "messages: %r" % lines)


def kinds():
    seen, status, t = frames(90, 30, environment=dict(UTF8, NO_COLOR="1"), epochs=1)
    check(not [s for s in t.sequences if s[-1] == "m"], "NO_COLOR: there are colours")
    check(seen and any(c in "".join(seen[-1]) for c in BLOCKS), "UTF-8: no blocks: %r" % seen[-1:])
    seen, status, t = frames(90, 30, environment=dict(UTF8, LC_ALL="C"), epochs=1)
    check([s for s in t.sequences if s[-1] == "m"], "no colours")
    check(seen and all(x.isascii() for view in seen for x in view), "not UTF-8: more than ASCII")
    for term in ("dumb", ""):
        seen, status, t = frames(90, 30, environment=dict(UTF8, TERM=term), epochs=1)
        check(not seen and (term == "" or not t.sequences), "TERM=%s: %r" % (term, t.sequences))
        check(len([x for x in t.lines() if x.startswith("millrace: --live: TERM is ")]) == 1, "TERM=%s: %r" % (term, t.lines()))


def interrupted():
    for again in (False, True):
        sent = []

        def look(t, fd, pid, seconds):
            if len(sent) < 1 + again and any(of_view(x) for x in t.screen()) and t.sequence is None:
                sent.append(seconds)
                os.write(fd, b"\x03")

        status, t = terminal.run(train(epochs=200), 90, 30, look, UTF8)
        check(status == 130, "Ctrl-C: exit status %d" % status)
        if not again:
            check(not [x for x in t.lines() if of_view(x)], "Ctrl-C: left on the terminal: %r" % t.lines())
            check(any("stopped by signal 2" in x for x in t.lines()), "Ctrl-C: not reported: %r" % t.lines())
        else:
            check(t.column == 0, "twice Ctrl-C: the cursor is in the middle of a line")


for test in (usual, sizes, resized, messages, kinds, interrupted):
    test()
print("%d checks failed" % len(failures) if failures else "clean")
sys.exit(1 if failures else 0)
