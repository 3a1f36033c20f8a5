"""Shared by the comparisons of this folder: contestants that take turns, ratios taken inside each round, and the record of results.

A shared machine's clock and load move by many per cent in minutes. So nobody is measured alone: in every round each contestant has one
turn, in an order drawn anew, and only the ratio of two turns of one round is trusted; the median of these ratios is reported, with the
smallest and the largest. The yardstick has two turns a round (at its start and in its middle) and counts with their
mean, because every ratio leans on it.
"""
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile

ROUNDS_FEWEST = 5


class Absent(Exception):
    """A contestant that is not offered, cannot be installed, or does not run; the text says why. It is listed, never left out."""


# ---- numbers ----

def summary(values):
    """
    >>> summary([3.0, 1.0, 2.0])
    {'median': 2.0, 'min': 1.0, 'max': 3.0, 'rounds': 3}
    """
    return {"median": statistics.median(values), "min": min(values), "max": max(values), "rounds": len(values)}


def ratios(over, under):
    """Round by round; a round that one of the two has missed gives nothing.

    >>> ratios([2.0, None, 6.0], [1.0, 2.0, 4.0])
    [2.0, 1.5]
    """
    return [a / b for a, b in zip(over, under) if a and b]


def best_turns(results):
    """The fastest of several contestants in each round, whoever that is there.

    >>> best_turns([[{"samples_per_s": 1}, {"samples_per_s": 5}, None], [{"samples_per_s": 2}, None, None]])
    [{'samples_per_s': 2}, {'samples_per_s': 5}, None]
    """
    return [max(filter(None, one_round), key=lambda figures: figures["samples_per_s"], default=None) for one_round in zip(*results)]


# ---- the machine ----

def first_line(path, default=""):
    try:
        with open(path, encoding="utf-8") as f:
            return f.readline().strip()
    except OSError:
        return default


def machine():
    fields = {}
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        for line in f:
            key, _, value = line.partition(":")
            fields.setdefault(key.strip(), value.strip())
    with open("/proc/meminfo", encoding="utf-8") as f:
        memory_kib = int(f.readline().split()[1])
    flags = set(fields.get("flags", fields.get("Features", "")).split())
    return {"cpu": fields.get("model name", platform.machine()), "logical_cores": os.cpu_count(),
            "instruction_sets": [s for s in ("avx2", "avx512f", "avx512_vbmi2", "avx512_vnni", "asimd") if s in flags],
            "memory_gib": round(memory_kib / 2**20, 1), "kernel": platform.release()}


def use_cores(count):
    """Hold this process and all it starts to `count` cores, different physical ones first. Further threads, which
    every contestant has a few of, then cost the contestant that has them. Returns the cores."""
    allowed = sorted(os.sched_getaffinity(0))
    later = set()
    for core in allowed:
        siblings = first_line(f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list", str(core))
        if core != int(siblings.replace("-", ",").split(",")[0]):
            later.add(core)
    chosen = sorted(allowed, key=lambda core: (core in later, core))[:count]
    if len(chosen) < count:
        print(f"{count} threads asked for, {len(chosen)} cores allowed: everyone shares those", file=sys.stderr)
    os.sched_setaffinity(0, chosen)
    return sorted(chosen)


# ---- contestants that are programs: one process a turn ----

def last_words(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "it said nothing"


def call(command, seconds_most, env=None):
    """Standard output and resource usage of the process. Absent when it fails, with its last output."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        try:
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env={**os.environ, **(env or {})})
        except OSError as e:
            raise Absent(f"{command[0]}: {e.strerror}") from e
        try:
            status, cost = wait_for(child, seconds_most)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
            raise Absent(f"{command[0]} did not end within {seconds_most:.0f} s") from None
        out.seek(0)
        err.seek(0)
        if status:
            raise Absent(last_words(err.read()))
        return out.read(), cost


def wait_for(child, seconds_most):
    """Exit status and resource use of one child alone."""
    import threading
    late = threading.Event()

    def end_it():
        late.set()
        child.kill()
    timer = threading.Timer(seconds_most, end_it)
    timer.start()
    try:
        _, status, cost = os.wait4(child.pid, 0)
    finally:
        timer.cancel()
    child.returncode = os.waitstatus_to_exitcode(status)
    if late.is_set():
        raise subprocess.TimeoutExpired(child.args, seconds_most)
    return child.returncode, cost


def last_object(text):
    lines = [line for line in text.splitlines() if line.startswith("{")]
    if not lines:
        raise Absent("it printed no result")
    return json.loads(lines[-1])


class Program:
    """A contestant that runs anew each turn. command(seconds) gives its arguments; its last line of JSON has the figures."""

    def __init__(self, ident, label, kind, command, env=None, **about):
        self.ident, self.label, self.kind, self.command, self.env, self.about = ident, label, kind, command, env, about

    def turn(self, seconds):
        text, cost = call(self.command(seconds), 60 + 10 * seconds, self.env)
        return self.figures(last_object(text), cost)

    def figures(self, found, cost):
        """Of the yardstick, which counts its own processor time, reading the files apart."""
        return {key: found[key] for key in ("samples_per_s", "cpu_s_per_1000", "peak_rss_mb")}

    def close(self):
        pass


class Loader(Program):
    """`millrace bench loader`. Its processor time is the whole process's, start and warm-up included, over all samples it decoded,
    including the warm-up's."""

    def __init__(self, ident, label, millrace, data, threads, augment, batch, extra=(), **more):
        fixed = [millrace, "bench", "loader", data, "--augment", augment, "--training", "--batch", str(batch),
                 "--workers", str(threads), "--rounds", "1", "--json", "--quiet", *extra]
        super().__init__(ident, label, "ours", lambda seconds: [*fixed, "--seconds", f"{seconds:g}"], **more)

    def figures(self, found, cost):
        stages = found["stages"]
        self.about["threads"] = {"decode": stages["decode"]["threads"], "read": stages["read"]["threads"],
                                 "read_busy": round(stages["read"]["busy"], 3), "main": 1}
        made = max(stages["decode"]["items"], 1)
        return {"samples_per_s": found["samples_per_s"], "cpu_s_per_1000": 1e3 * (cost.ru_utime + cost.ru_stime) / made,
                "peak_rss_mb": cost.ru_maxrss / 1024}


# ---- rounds ----

def order_of(idents, yardstick, number):
    """Who has turns in round `number`, in which order; the yardstick first and in the middle.

    >>> order = order_of(["a", "b", "c", "y"], "y", 1)
    >>> order[0], order[2], sorted(order)
    ('y', 'y', ['a', 'b', 'c', 'y', 'y'])
    """
    others = sorted(ident for ident in idents if ident != yardstick)
    random.Random(number).shuffle(others)
    if yardstick not in idents:
        return others
    half = len(others) // 2
    return [yardstick, *others[:half], yardstick, *others[half:]]


def mean_turn(turns):
    """One turn's figures from several."""
    return {key: statistics.fmean(turn[key] for turn in turns) for key in turns[0]}


def run_rounds(contestants, rounds, seconds, yardstick, tell):
    """{ident: [figures or None, a round each]}, {ident: why it dropped out}."""
    there = {c.ident: c for c in contestants}
    results, absent = {ident: [] for ident in there}, {}
    for number in range(rounds + 1):  # round 0 warms up: page cache, pools, clocks
        turns = {ident: [] for ident in there}
        for ident in order_of(list(there), yardstick, number):
            if ident in absent:
                continue
            try:
                turns[ident].append(there[ident].turn(seconds if number else min(seconds, 1)))
            except Absent as why:
                absent[ident] = str(why)
                tell(f"{ident}: {why}")
        if number:
            for ident, found in turns.items():
                results[ident].append(mean_turn(found) if found and ident not in absent else None)
        tell(f"round {number} of {rounds}: " + ("warmed up" if not number else
             ", ".join(f"{ident} {results[ident][-1]['samples_per_s']:,.0f}" for ident in there if results[ident][-1])))
    return results, absent


def column(results, ident, key="samples_per_s"):
    """One figure of a contestant, round by round; None where it is missing."""
    return [figures and figures.get(key) for figures in results.get(ident, [])]


def cores_used(turns):
    """How many cores the yardstick, which never waits, had on the whole; fewer than it has threads means that others had them.

    >>> cores_used([{"samples_per_s": 1000.0, "cpu_s_per_1000": 1.5}, None])
    1.5
    """
    used = [figures["samples_per_s"] * figures["cpu_s_per_1000"] / 1e3 for figures in turns if figures]
    return round(statistics.median(used), 2) if used else None


def warn_if_shared(run):
    if run["yardstick_cores"] and run["yardstick_cores"] < 0.95 * run["threads"]:
        tell(f"others used this machine: of {run['threads']} cores the yardstick got {run['yardstick_cores']}; judge by processor time, or "
             "measure again")


def run_row(bench, args, cores, yardstick_turns, took_s):
    return {"event": "bench", "bench": bench, "row": "run", "threads": args.threads, "cores": len(cores), "rounds": args.rounds,
            "seconds_a_turn": args.seconds, "took_s": round(took_s), "yardstick_cores": cores_used(yardstick_turns), "machine": machine(),
            "python": platform.python_version()}


def contestant_row(bench, contestant, found, yardstick_rates):
    """The row of a contestant that finished at least one round."""
    present = [figures for figures in found if figures]
    rates = [figures and figures["samples_per_s"] for figures in found]
    row = {"event": "bench", "bench": bench, "row": "contestant", "id": contestant.ident, "label": contestant.label,
           "kind": contestant.kind, **contestant.about, "samples_per_s": [rate and round(rate, 1) for rate in rates],
           "median_samples_per_s": round(statistics.median(r for r in rates if r), 1)}
    for key in ("cpu_s_per_1000", "peak_rss_mb", "pss_mb"):
        values = [figures[key] for figures in present if key in figures]
        if values:
            row[key] = round(max(values), 1) if key.endswith("mb") else round(statistics.median(values), 6)
    to_yardstick = ratios(rates, yardstick_rates)
    if to_yardstick:
        row["to_yardstick"] = rounded(summary(to_yardstick))
    return row


def pair_row(bench, name, over, under, values, cpu=()):
    """A ratio of rates. `cpu` are the rounds' ratios of processor time a sample, upside down so that more is better there too: they
    keep still when others use the machine."""
    row = {"event": "bench", "bench": bench, "row": "pair", "id": name, "over": over, "under": under, **rounded(summary(values))}
    return {**row, "cpu": rounded(summary(cpu))} if cpu else row


def absent_row(bench, ident, label, why):
    return {"event": "bench", "bench": bench, "row": "absent", "id": ident, "label": label, "reason": why}


def rounded(values):
    return {key: round(value, 4) if isinstance(value, float) else value for key, value in values.items()}


def write_rows(path, rows):
    """One object a line; under its name only when it is whole."""
    with open(path + ".part", "w", encoding="utf-8") as f:
        for row in rows:
            f.write(json.dumps(row, ensure_ascii=False) + "\n")
    os.replace(path + ".part", path)


def read_rows(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f if line.strip()]


def tell(text):
    print(text, file=sys.stderr, flush=True)
