#!/usr/bin/env python3
"""The settings that `--tune` finds, compared with a grid of settings and the defaults.

usage: bench/tune.py MILLRACE [--rounds 5] [--seconds 1] [--patience 900] [--cache DIR] [--json OUT] [--only TEXT]

Data and a simulated device, as in planner.py, are trained with --tune until it is done, for 30 s at most. Every point of a grid is then
measured once, and again in the opposite order; the best three points take turns with the tuned settings and the defaults, --rounds times. A
rate is measured as by `millrace plan`. Ratios are medians over these rounds; the best is the point with the highest median of all five, so
it is a little lucky. A cache that --tune also sets up is not in these figures. Time taken by a virtual machine's host is handled as in
planner.py.
"""
import argparse
import itertools
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import planner
from ours import cache_folder
from planner import Base, Groups, cpu_ticks
from rounds import Absent, call, machine, tell, write_rows

SETTINGS = ("workers", "prefetch", "depth", "readers")
BASES = [
    Base(set="photos", step_ms=20),
    Base(set="photos", step_ms=2),
    Base(set="photos", form="coef", step_ms=1),
    Base(set="photos", form="raw", step_ms=1),
    Base(set="png", augment="rrc(128)", step_ms=5),
    Base(set="uneven", step_ms=8, batch=16),
    Base(set="tiny", augment="none", batch=64, step_ms=1),
    Base(set="tiny", augment="none", form="raw", batch=256, step_ms=0.5),
    Base(set="photos", form="jpeg", step_ms=5, direct=True),
    Base(set="photos", form="jpeg", step_ms=10, direct=True, read_mb=50),
    Base(set="progressive", step_ms=5),
]
FINALISTS = 3
TUNE_SECONDS = 30  # of training; a tuner that is not done by then is reported
DEFAULTS = {"workers": os.cpu_count(), "prefetch": 4, "depth": 32, "readers": 1}
GRID = [dict(zip(SETTINGS, p)) for p in itertools.product((1, 2, 4), (1, 4, 16), (32,), (1,))] + [
    {**DEFAULTS, "depth": depth, "readers": readers} for depth in (8, 128) for readers in (1, 4)]


def options(settings):
    return [word for name, value in settings.items() for word in (f"--{name}", str(value))]


def command(base, cache, args, *more):
    words = base.command(cache, args.seconds, False)
    for name in ("--workers", "--prefetch"):
        at = words.index(name)
        del words[at:at + 2]
    return [*words, *more]


def rate(base, cache, args, settings):
    """samples/s of one run, and the part of the cores' time that the host took."""
    before = cpu_ticks()
    with Groups(base.group(cache)) as groups:
        text = call(groups.command(command(base, cache, args, *options(settings))), 60 + 4 * args.seconds)[0]
    after = cpu_ticks()
    return json.loads(text.splitlines()[0])["measured_samples_per_s"], (after[0] - before[0]) / max(1, after[1] - before[1])


def remembered(folder):
    """The file that --tune has written; None: not yet."""
    whole = [name for name in (os.listdir(folder) if os.path.isdir(folder) else ()) if not name.endswith(".part")]
    return os.path.join(folder, whole[0]) if whole else None


def found(base, cache, args):
    """What --tune finds."""
    words = command(base, cache, args)
    data = words[2]
    keep = [words[i:i + 2] for i in range(3, len(words) - 1) if words[i] in ("--augment", "--batch", "--resident", "--devices")]
    with tempfile.TemporaryDirectory() as kept, Groups(base.group(cache)) as groups:
        train = [planner.MILLRACE, "train", data, "--model", "resnet18", *itertools.chain(*keep), *(["--direct"] if base.s["direct"] else []),
                 "--val", "none", "--tune", "--epochs", "1000000", "--json", "--quiet"]
        folder = os.path.join(kept, "millrace", "tune")
        with subprocess.Popen(groups.command(train), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              env={**os.environ, "XDG_CACHE_HOME": kept}) as child:
            end = time.monotonic() + TUNE_SECONDS
            while time.monotonic() < end and child.poll() is None and not remembered(folder):
                time.sleep(0.1)
            child.send_signal(signal.SIGINT)
        if not remembered(folder):
            raise Absent(f"{base.name()}: --tune is not done after {TUNE_SECONDS} s")
        with open(remembered(folder), encoding="utf-8") as f:
            numbers = re.search(r"^found workers (\d+) prefetch (\d+) depth (\d+) readers (\d+) ", f.read(), re.M)
    return dict(zip(SETTINGS, map(int, numbers.groups())))


def name_of(settings):
    return " ".join(str(settings[name]) for name in SETTINGS)


def measured(base, cache, args, points, rounds, patience):
    """Rates of all points in turns, every second time in the opposite order: a list for each name."""
    rates = {name: [] for name in points}
    for number in range(rounds):
        order = list(points.items())
        for name, settings in order if number % 2 == 0 else order[::-1]:
            rates[name].append(patience.quietest(lambda settings=settings: rate(base, cache, args, settings))[0])
    return rates


def run_base(base, cache, args, patience):
    """Equal settings are one point: the tuned ones may be the defaults, or in the grid."""
    patience.wait()
    tuned = found(base, cache, args)
    points = {name_of(settings): settings for settings in (DEFAULTS, *GRID, tuned)}
    first = measured(base, cache, args, points, 2, patience)
    order = sorted(points, key=lambda name: -sum(first[name]))
    last = dict.fromkeys((name_of(tuned), name_of(DEFAULTS), *order[:FINALISTS]))
    rates = measured(base, cache, args, {name: points[name] for name in last}, args.rounds, patience)
    middle = {name: statistics.median(values) for name, values in rates.items()}
    mine, usual, best = name_of(tuned), name_of(DEFAULTS), max(middle, key=middle.get)
    ratio = lambda over: statistics.median(a / b for a, b in zip(rates[mine], rates[over]))
    return {"event": "bench", "bench": "tune", "row": "base", "base": base.name().replace("w1 p4 ", ""), "tuned": tuned,
            "tuned_samples_per_s": round(middle[mine], 1), "defaults_samples_per_s": round(middle[usual], 1),
            "best": best, "best_samples_per_s": round(middle[best], 1), "tuned_over_best": round(ratio(best), 3),
            "tuned_over_defaults": round(ratio(usual), 3)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("millrace")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--patience", type=float, default=900)
    parser.add_argument("--cache", default=cache_folder("planner"))
    parser.add_argument("--json")
    parser.add_argument("--only", default="", help="bases whose name has this text")
    args = parser.parse_args()
    planner.MILLRACE = os.path.abspath(args.millrace)
    planner.make_data(args.cache)
    rows, begun, patience = [], time.monotonic(), planner.Patience(args.patience)
    print(f"{'base':48} {'tuned to':16} {'tuned':>9} {'defaults':>9} {'best':>9} {'of best':>8} {'of def.':>8}  best: workers prefetch depth readers")
    for base in BASES:
        if args.only not in base.name():
            continue
        try:
            r = run_base(base, args.cache, args, patience)
        except Absent as e:
            tell(str(e))
            continue
        rows.append(r)
        print(f"{r['base'][:48]:48} {' '.join(map(str, r['tuned'].values())):16} {r['tuned_samples_per_s']:9.0f} {r['defaults_samples_per_s']:9.0f} "
              f"{r['best_samples_per_s']:9.0f} {r['tuned_over_best']:8.3f} {r['tuned_over_defaults']:8.3f}  {r['best']}", flush=True)
    if not rows:
        return 1
    run = {"event": "bench", "bench": "tune", "row": "run", "rounds": args.rounds, "seconds": args.seconds,
           "took_s": round(time.monotonic() - begun), "load_average": os.getloadavg(), "machine": machine()}
    if args.json:
        write_rows(args.json, [run, *rows])
    return 0


if __name__ == "__main__":
    sys.exit(main())
