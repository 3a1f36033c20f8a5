#!/usr/bin/env python3
"""What measuring costs: the same loader with and without it, in turns.

usage: bench/measuring.py MILLRACE WITHOUT [--rounds 100] [--seconds 0.4] [--only TEXT] [--cache DIR] [--json OUT]

WITHOUT is the command of a build with -DMILLRACE_MEASURING=OFF: the loader's clock stands still there, and no thread asks how long it
ran or waited for a core. `bench loader` on two workers: photographs of a folder, coefficient records, and raw records of pictures so
small that a batch takes less than a tenth of a millisecond, which is where measuring costs most. Then training on a simulated device without and
with `--metrics` (asked four times a second) and `--live` (drawn on a terminal).

    rate    samples a second with measuring / without: the median over rounds, with its 95 % interval
    cpu     the same of samples per second of processor time, which keeps still when others use the machine

A single pair is off by several per cent on a virtual machine, so there are many short ones: each round has both, in changing order. One in
which the host took more than 1 % of the cores' time ("steal" in /proc/stat) is left out, and their number is printed. With fewer than
6 rounds none is left out: such a run shows that the program works, and gives no figures.
"""
import argparse
import json
import math
import os
import pty
import socket
import statistics
import sys
import threading
import time
import urllib.request

import planner
from ours import cache_folder
from rounds import Absent, call, last_object, machine, tell, write_rows

STEAL_MOST = 0.01
FEWEST = 6  # rounds with an interval
LOADS = {
    "photos": ("photos", "rrc224", 64, 3),
    "coefficient records": ("photos-coef.mrec", "rrc224", 64, 3),
    "tiny raw records": ("tiny-raw.mrec", "none", 256, 3),
    "784-byte samples": ("gray28-raw.mrec", "none", 256, 1),  # as the networks of MNIST read them
}


def make_gray(millrace, cache):
    """Pictures of 28 x 28 in gray, as MNIST has them."""
    folder, records = os.path.join(cache, "gray28"), os.path.join(cache, "gray28-raw.mrec")
    if not os.path.exists(records):
        call([millrace, "synth", folder, "--quiet", "--force", "--size", "28", "--channels", "1", "--count", "1000"], 600)
        call([millrace, "convert", folder, records, "--quiet", "--store", "raw"], 600)


def make_data(millrace, cache, chosen):
    """The sets of these pairs alone."""
    photos = [name for name in chosen if name in ("photos", "coefficient records")]
    tiny = [name for name in chosen if name not in (*photos, "784-byte samples")]
    planner.make_data(cache, ["photos"] * bool(photos) + ["tiny"] * bool(tiny))
    if "784-byte samples" in chosen:
        make_gray(millrace, cache)


def bench_turn(program, data, augment, batch, channels, seconds):
    """samples/s, and samples per second of processor time."""
    words = [program, "bench", "loader", data, "--augment", augment, "--training", "--batch", str(batch), "--channels", str(channels), "--workers", "2",
             "--rounds", "1", "--seconds", f"{seconds:g}", "--json", "--quiet"]
    text, cost = call(words, 60 + 4 * seconds)
    found = last_object(text)
    return found["samples_per_s"], found["stages"]["decode"]["items"] / (cost.ru_utime + cost.ru_stime)


class Terminal:
    """A terminal whose output is read and discarded."""

    def __enter__(self):
        self.ours, self.theirs = pty.openpty()
        self.reader = threading.Thread(target=self.read)
        self.reader.start()
        return self.theirs

    def read(self):
        try:
            while os.read(self.ours, 65536):
                pass
        except OSError:
            pass

    def __exit__(self, *_):
        os.close(self.theirs)
        self.reader.join()
        os.close(self.ours)


class Scraper:
    """Requests the metrics until the block ends; counts the answers."""

    def __init__(self, port):
        self.port, self.over, self.answers = port, threading.Event(), 0

    def __enter__(self):
        self.thread = threading.Thread(target=self.ask)
        self.thread.start()
        return self

    def ask(self):
        while not self.over.wait(0.25):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=1) as answer:
                    self.answers += answer.status == 200
            except OSError:
                pass

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def run_train(words, terminal=None):
    """Seconds and processor seconds of a command whose standard error is a terminal, or nothing."""
    start = time.monotonic()
    actions = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
               (os.POSIX_SPAWN_DUP2, terminal, 2) if terminal is not None else (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)]
    pid = os.posix_spawn(words[0], words, {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"}, file_actions=actions)
    _, status, cost = os.wait4(pid, 0)
    if status:
        raise Absent(f"{' '.join(words)}: status {os.waitstatus_to_exitcode(status)}")
    return time.monotonic() - start, cost.ru_utime + cost.ru_stime


def train_turn(program, data, how, steps):
    words = [program, "train", data, "--model", "cifar-cnn", "--augment", "none", "--val", "none", "--devices", "sim:1,step=500us", "--batch", "64",
             "--max-steps", str(steps), "--epochs", "1000000", "--quiet"]
    if how == "--metrics":
        port = free_port()
        with Scraper(port) as scraper:
            seconds, cpu = run_train([*words, "--metrics", str(port)])
        if not scraper.answers:
            raise Absent("--metrics: nobody answered")
    elif how == "--live":
        with Terminal() as terminal:
            seconds, cpu = run_train([*words[:-1], "--live"], terminal)
    else:
        seconds, cpu = run_train(words)
    return 64 * steps / seconds, 64 * steps / cpu


def interval(values):
    """Of the median, 95 %: the values between which it lies, by their ranks alone (binomial)."""
    ranked, n, below, rank = sorted(values), len(values), 0.0, 0
    while rank < n // 2 and below + math.comb(n, rank) / 2 ** n <= 0.025:
        below += math.comb(n, rank) / 2 ** n
        rank += 1
    return ranked[max(0, rank - 1)], ranked[min(n - 1, n - rank)]


def compare(name, turns, rounds):
    """turns: {"with": function, "without": function}, both give rate and rate by processor time."""
    found, stolen = {key: [] for key in turns}, 0
    for number in range(rounds + 1):
        order = sorted(turns) if number % 2 else sorted(turns, reverse=True)
        before = planner.cpu_ticks()
        one = {key: turns[key]() for key in order}
        after = planner.cpu_ticks()
        if number == 0:  # it warms up
            continue
        if rounds >= FEWEST and after[0] - before[0] > STEAL_MOST * (after[1] - before[1]):
            stolen += 1
            continue
        for key in turns:
            found[key].append(one[key])
    if len(found["with"]) < min(FEWEST, rounds):
        raise Absent(f"the host took the cores in {stolen} of {rounds} rounds")
    row = {"event": "bench", "bench": "measuring", "row": "pair", "id": name, "rounds": len(found["with"]), "left_out": stolen}
    for place, key in enumerate(("rate", "cpu")):
        values = [a[place] / b[place] for a, b in zip(found["with"], found["without"])]
        low, middle, high = statistics.quantiles(values, n=4)
        row[key] = {"median": round(middle, 4), "interval": [round(end, 4) for end in interval(values)],
                    "quartiles": [round(low, 4), round(high, 4)]}
    row["with_samples_per_s"] = round(statistics.median(rate for rate, _ in found["with"]), 1)
    row["without_samples_per_s"] = round(statistics.median(rate for rate, _ in found["without"]), 1)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("millrace")
    parser.add_argument("without")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=0.4)
    parser.add_argument("--only", default="", help="pairs whose name has this text")
    parser.add_argument("--cache", default=cache_folder("planner"))
    parser.add_argument("--json")
    args = parser.parse_args()
    ours, without = os.path.abspath(args.millrace), os.path.abspath(args.without)
    planner.MILLRACE = ours
    chosen = [name for name in [*LOADS, "--metrics", "--live"] if args.only in name]
    if args.rounds < 2:
        parser.error(f"--rounds {args.rounds}: expected 2 or more")
    if not chosen:
        parser.error(f"--only {args.only}: no such pair; expected a part of one of {', '.join(LOADS)}, --metrics, --live")
    make_data(ours, args.cache, chosen)
    pairs = {}
    for name, (data, augment, batch, channels) in LOADS.items():
        about = (os.path.join(args.cache, data), augment, batch, channels, args.seconds)
        pairs[name] = {"with": lambda about=about: bench_turn(ours, *about), "without": lambda about=about: bench_turn(without, *about)}
    tiny, steps = os.path.join(args.cache, "tiny-raw.mrec"), max(100, round(args.seconds / 0.0005))
    for how in ("--metrics", "--live"):
        pairs[how] = {"with": lambda how=how: train_turn(ours, tiny, how, steps), "without": lambda: train_turn(ours, tiny, None, steps)}
    rows, begun = [], time.monotonic()
    print(f"{'':24} {'rate':>7} {'95 %':>16} {'cpu':>7} {'95 %':>16}  rounds  left out")
    for name in chosen:
        try:
            r = compare(name, pairs[name], args.rounds)
        except Absent as why:
            tell(f"{name}: {why}")
            continue
        rows.append(r)
        print(f"{name:24} " + " ".join(f"{r[key]['median']:7.4f} {r[key]['interval'][0]:8.4f}{r[key]['interval'][1]:8.4f}"
                                       for key in ("rate", "cpu")) + f"  {r['rounds']:6} {r['left_out']:9}", flush=True)
    run = {"event": "bench", "bench": "measuring", "row": "run", "rounds": args.rounds, "seconds": args.seconds,
           "took_s": round(time.monotonic() - begun), "load_average": os.getloadavg(), "machine": machine()}
    if args.json:
        write_rows(args.json, [run, *rows])
    return 0 if rows else 1


if __name__ == "__main__":
    sys.exit(main())
