#!/usr/bin/env python3
"""Predictions of `millrace plan`, compared with measurements after the change is made.

usage: bench/planner.py MILLRACE [--rounds 2] [--seconds 2] [--patience 900] [--cache DIR] [--json OUT] [--only TEXT]

Each base (data, loader settings, a simulated device) is planned, and each of its ways out is made and measured: other workers,
prefetch, memory, forms of the data, link, device, number of devices. Base and ways take turns, so that a busy machine hurts all of
them. Prediction and measurement are medians over rounds. A prediction of the base itself ("as it is") is listed apart: it only
shows that the model can repeat its input.

A virtual machine's host may give its cores to others ("steal" in /proc/stat). Before each run the cores are tried for a moment, and a run
that would lose time waits; one that lost more than 3 % of the cores' time is repeated, up to four times, and the least disturbed one
counts. --patience is how many seconds may be spent on waiting and repeating in all; the record has each run's loss.

    error       predicted / measured - 1
    repeat      spread of the measurement itself over rounds: half of (most - least) / median
    steal       the largest part of the cores' time that was lost in a run that counts
    limit       the limiting stage that was predicted most often, and whether it was measured most often. Devices that idle less than
                5 % of the time are said to be the limit; where they idle less than 10 % both by prediction and measured, either of
                "compute" and the stage is right. "about": devices waited for it measured at least 0.7 times as long as for the
                limit that was measured; two stages hold the devices up about equally then

Bases with a quota or a throttled device need root and control groups, progressive pictures need jpegtran (Debian:
libjpeg-turbo-progs); without them they are listed as not measured.
"""
import argparse
import json
import multiprocessing
import os
import shutil
import statistics
import subprocess
import sys
import time

from ours import cache_folder
from rounds import Absent, call, machine, tell, write_rows

MILLRACE = None
STEAL_MOST, TRIES = 0.03, 4
NEAR_LIMIT = 0.7  # of the largest cause
SETS = {  # name: how `millrace synth` makes it
    "tiny": ["--size", "32", "--count", "600"],
    "photos": ["--size", "200", "--max-size", "400", "--count", "60"],
    "uneven": ["--size", "64", "--max-size", "900", "--count", "40"],
    "png": ["--size", "128", "--max-size", "256", "--count", "60", "--image", "png"],
    "phone": ["--size", "3000", "--max-size", "4000", "--count", "4"],
    "progressive": ["--size", "200", "--max-size", "400", "--count", "60"],
}
NO_FORM = {("png", "coef"), ("progressive", "coef")}
FORMS = {"jpeg": ["--store", "jpeg"], "coef": ["--store", "coef"], "raw": ["--store", "raw"]}
FORM_WAYS = {"jpeg": "jpeg records", "coef": "coefficient records", "raw": "raw records"}


class Base:
    """Settings of one run; with() gives another one with some of them changed."""

    def __init__(self, **settings):
        self.s = {"set": "photos", "form": None, "augment": "rrc224", "batch": 32, "workers": 1, "prefetch": 4, "step_ms": 10.0,
                  "h2d_mb": 10000, "devices": 1, "resident": "0", "direct": False, "quota": None, "read_mb": None, **settings}

    def changed(self, **settings):
        return Base(**{**self.s, **settings})

    def data(self, cache):
        return os.path.join(cache, self.s["set"] + (f"-{self.s['form']}.mrec" if self.s["form"] else ""))

    def command(self, cache, seconds, forms):
        s = self.s
        return [MILLRACE, "plan", self.data(cache), "--augment", s["augment"], "--batch", str(s["batch"]), "--workers", str(s["workers"]),
                "--prefetch", str(s["prefetch"] or "off"), "--resident", s["resident"], "--seconds", str(seconds), "--devices",
                f"sim:{s['devices']},step={s['step_ms']:g}ms,h2d={s['h2d_mb']:g}MB/s", "--json", "--quiet",
                *(["--direct"] if s["direct"] else []), *([] if forms else ["--no-forms"])]

    def group(self, cache):
        """What to write into which file of the control groups."""
        s, found = self.s, []
        if s["quota"]:
            found.append(("cpu", ("cpu.max", f"{round(100000 * s['quota'])} 100000"), ("cpu.cfs_quota_us", str(round(100000 * s["quota"])))))
        if s["read_mb"]:
            device = os.stat(cache).st_dev
            name = f"{os.major(device)}:{os.minor(device)}"
            found.append(("blkio", ("io.max", f"{name} rbps={s['read_mb'] * 1000000}"),
                          ("blkio.throttle.read_bps_device", f"{name} {s['read_mb'] * 1000000}")))
        return found

    def name(self):
        s = self.s
        return (f"{s['set']}{'/' + s['form'] if s['form'] else ''} {s['augment']} b{s['batch']} w{s['workers']} p{s['prefetch']} "
                f"sim:{s['devices']} {s['step_ms']:g} ms"
                f"{'' if s['h2d_mb'] == 10000 else ' link %g MB/s' % s['h2d_mb']}{' in memory' if s['resident'] != '0' else ''}"
                f"{' direct' if s['direct'] else ''}{' quota %g' % s['quota'] if s['quota'] else ''}"
                f"{' disk %d MB/s' % s['read_mb'] if s['read_mb'] else ''}")


def ways_of(base, wanted):
    """Name of the way in the plan, and the run that makes it true."""
    s = base.s
    made = {"as it is": base, "reads from memory": base.changed(resident="1G"), "twice the link": base.changed(h2d_mb=2 * s["h2d_mb"]),
            "devices twice as fast": base.changed(step_ms=s["step_ms"] / 2), "prefetch off": base.changed(prefetch=0)}
    for n in (1, 2, 4, 8, 16):
        made[f"prefetch {n}"] = base.changed(prefetch=n)
        made[f"{n} worker{'s' if n > 1 else ''}"] = base.changed(workers=n)
        made[f"{n * s['devices']} devices"] = base.changed(devices=n * s["devices"], batch=n * s["batch"])
    for form, way in FORM_WAYS.items():
        made[way] = base.changed(form=form)
    return {name: made[name] for name in ["as it is", *wanted]}


BASES = [
    (Base(set="photos", step_ms=20), ["2 workers", "prefetch off", "prefetch 1", "devices twice as fast", "2 devices"]),
    (Base(set="photos", step_ms=2), ["2 workers", "4 workers", "jpeg records", "coefficient records", "raw records"]),
    (Base(set="photos", step_ms=10, workers=2), ["1 worker", "prefetch off", "coefficient records", "2 devices", "4 devices"]),
    (Base(set="photos", form="jpeg", step_ms=8, workers=2), ["1 worker", "prefetch 1", "prefetch 16", "devices twice as fast"]),
    (Base(set="photos", form="raw", step_ms=5, h2d_mb=200), ["twice the link", "2 workers", "prefetch off", "devices twice as fast"]),
    (Base(set="photos", form="coef", step_ms=50), ["prefetch off", "devices twice as fast", "4 devices"]),
    (Base(set="uneven", step_ms=40, batch=16, prefetch=1), ["prefetch 4", "prefetch 16", "2 workers", "prefetch off"]),
    (Base(set="png", augment="rrc(128)", step_ms=10), ["2 workers", "raw records", "prefetch off", "devices twice as fast"]),
    (Base(set="tiny", augment="none", batch=64, step_ms=1), ["2 workers", "reads from memory", "raw records", "prefetch off",
                                                            "2 devices"]),
    (Base(set="tiny", augment="none", form="raw", batch=256, step_ms=0.5), ["reads from memory", "2 workers", "prefetch 1"]),
    (Base(set="tiny", augment="none", form="raw", batch=64, step_ms=0.2, resident="1G"), ["devices twice as fast", "prefetch 16"]),
]

# Not looked at while the model was made.
HELD_OUT = [
    (Base(set="phone", batch=8, step_ms=50, workers=2), ["1 worker", "raw records", "coefficient records", "jpeg records"]),
    (Base(set="phone", form="jpeg", batch=8, step_ms=10, workers=1, prefetch=2), ["2 workers", "prefetch off", "prefetch 8"]),
    (Base(set="progressive", step_ms=5), ["2 workers", "prefetch off", "raw records", "2 devices"]),
    (Base(set="photos", form="coef", step_ms=1, workers=2), ["1 worker", "prefetch 2", "prefetch off", "devices twice as fast"]),
    (Base(set="photos", step_ms=4, workers=2, quota=1), ["1 worker", "prefetch off", "coefficient records", "devices twice as fast"]),
    (Base(set="photos", form="jpeg", step_ms=20, workers=1, quota=0.5), ["2 workers", "coefficient records", "devices twice as fast"]),
    (Base(set="photos", form="raw", step_ms=5, direct=True, read_mb=100), ["2 workers", "prefetch 8", "devices twice as fast"]),
    (Base(set="photos", form="jpeg", step_ms=10, direct=True, read_mb=20), ["reads from memory", "prefetch 16", "coefficient records"]),
    (Base(set="uneven", form="coef", step_ms=0.5, batch=16, prefetch=8), ["2 workers", "prefetch 1", "2 devices", "prefetch off"]),
    (Base(set="png", form="raw", augment="rrc(64)", step_ms=3, batch=128, devices=2), ["4 devices", "2 workers", "prefetch off"]),
]


# ---- data ----

def make_progressive(folder):
    if not shutil.which("jpegtran"):
        tell("progressive pictures: no jpegtran here (Debian: libjpeg-turbo-progs); they are not measured")
        return False
    for place, _, names in os.walk(folder):
        for path in (os.path.join(place, name) for name in names if name.endswith(".jpg")):
            subprocess.run(["jpegtran", "-progressive", "-outfile", path + ".new", path], check=True)
            os.replace(path + ".new", path)
    return True


def make_data(cache, names=tuple(SETS)):
    os.makedirs(cache, exist_ok=True)
    for name in names:
        folder = os.path.join(cache, name)
        if not os.path.exists(folder + ".made"):
            call([MILLRACE, "synth", folder, "--quiet", "--force", *SETS[name]], 600)
            if name == "progressive" and not make_progressive(folder):
                shutil.rmtree(folder)
                continue
            open(folder + ".made", "w", encoding="utf-8").close()
        for form, options in FORMS.items():
            path = f"{folder}-{form}.mrec"
            if not os.path.exists(path) and (name, form) not in NO_FORM:
                call([MILLRACE, "convert", folder, path, "--quiet", *options], 600)


# ---- turns ----

def cpu_ticks():
    """Of all cores: stolen by the host, all."""
    with open("/proc/stat", encoding="utf-8") as f:
        ticks = [int(word) for word in f.readline().split()[1:9]]
    return ticks[7], sum(ticks)


def burn(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


class Patience:
    """What may still be waited for cores that are not stolen."""

    def __init__(self, seconds):
        self.left = seconds

    def wait(self):
        """Until the cores are ours, as far as a moment's work can tell."""
        begun = time.monotonic()
        while time.monotonic() - begun < self.left:
            before = cpu_ticks()
            busy = [multiprocessing.Process(target=burn, args=(0.4,)) for _ in range(os.cpu_count())]
            for one in busy:
                one.start()
            for one in busy:
                one.join()
            after = cpu_ticks()
            if after[0] - before[0] <= STEAL_MOST * (after[1] - before[1]):
                break
            time.sleep(2)
        self.left -= time.monotonic() - begun

    def quietest(self, measure):
        """measure() returns a sequence whose last entry is the stolen share; returns the least disturbed of up to TRIES."""
        best = None
        for _ in range(TRIES):
            self.wait()
            begun = time.monotonic()
            found = measure()
            if best is None or found[-1] < best[-1]:
                best = found
            if best[-1] <= STEAL_MOST or self.left <= 0:
                break
            self.left -= time.monotonic() - begun
        return best


class Groups:
    """Control groups, of either version, for as long as the block lasts; entered by a shell that becomes the program."""

    def __init__(self, wanted):
        self.wanted, self.made = wanted, []

    def __enter__(self):
        for controller, second, first in self.wanted:
            old = os.path.isdir(f"/sys/fs/cgroup/{controller}")
            folder = f"/sys/fs/cgroup/{controller if old else ''}/millrace-planner-{controller}"
            try:
                os.makedirs(folder, exist_ok=True)
                self.made.append(folder)
                name, text = first if old else second
                with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                    f.write(text)
            except OSError as e:
                self.__exit__()
                raise Absent(f"{folder}: {e.strerror}; quotas and throttled devices need root and control groups") from e
        return self

    def command(self, command):
        if not self.made:
            return command
        enter = "".join(f"echo $$ >{folder}/cgroup.procs && " for folder in self.made)
        return ["sh", "-c", enter + 'exec "$0" "$@"', *command]

    def __exit__(self, *_):
        for folder in self.made:
            for _ in range(50):
                try:
                    os.rmdir(folder)
                    break
                except OSError:
                    time.sleep(0.02)


def planned_once(base, cache, seconds, forms):
    before = cpu_ticks()
    with Groups(base.group(cache)) as groups:
        text = call(groups.command(base.command(cache, seconds, forms)), 60 + 4 * seconds)[0]
    after = cpu_ticks()
    lines = [json.loads(line) for line in text.splitlines()]
    steal = (after[0] - before[0]) / max(1, after[1] - before[1])
    return lines[0], {line["name"]: line for line in lines[1:]}, steal


def planned(base, cache, seconds, forms, patience):
    """Results of one run, its predictions for the changes, and the share of the cores' time that the host took; the least disturbed try."""
    return patience.quietest(lambda: planned_once(base, cache, seconds, forms))


def read_all(path):
    """So that it lies in the page cache, whatever was read since it was made: the first run is no slower than the others."""
    for place, _, names in os.walk(path) if os.path.isdir(path) else [(os.path.dirname(path), [], [os.path.basename(path)])]:
        for name in names:
            with open(os.path.join(place, name), "rb") as f:
                while f.read(1 << 20):
                    pass


def run_base(base, wanted, args, patience):
    """Figures of every way: predictions, measurements, limits, over the rounds."""
    ways = ways_of(base, wanted)
    read_all(base.data(args.cache))
    found = {way: {"predicted": [], "error": [], "measured": [], "predicted_limit": [], "measured_limit": [], "steal": [],
                   "predicted_idle": [], "measured_idle": [], "causes": []} for way in ways}
    for number in range(args.rounds):
        plan = {}
        order = list(ways.items())
        for way, run in order if number % 2 == 0 else order[:1] + order[:0:-1]:
            forms = way == "as it is" and any(w in FORM_WAYS.values() for w in wanted)
            now, said, steal = planned(run, args.cache, args.seconds, forms, patience)
            plan = said if way == "as it is" else plan
            found[way]["measured"].append(now["measured_samples_per_s"])
            found[way]["measured_limit"].append(now["measured_limit"])
            found[way]["measured_idle"].append(now["measured_idle"])
            found[way]["causes"].append(now["measured_causes"])
            found[way]["steal"].append(steal)
        for way in ways:
            if way not in plan:
                raise Absent(f"{base.name()}: the plan has no way \"{way}\"")
            found[way]["predicted"].append(plan[way]["predicted_samples_per_s"])
            found[way]["error"].append(plan[way]["predicted_samples_per_s_error"])
            found[way]["predicted_limit"].append(plan[way]["predicted_limit"])
            found[way]["predicted_idle"].append(plan[way]["predicted_idle"])
    return found


def limit_is_right(f):
    """"yes", "about" or "no"."""
    predicted, measured = statistics.mode(f["predicted_limit"]), statistics.mode(f["measured_limit"])
    small = max(statistics.median(f["predicted_idle"]), statistics.median(f["measured_idle"])) < 0.1
    if predicted == measured or (small and "compute" in (predicted, measured)):
        return "yes"
    idle = {cause: statistics.median(one[cause] for one in f["causes"]) for cause in f["causes"][0]}
    for part, whole in (("large", "decode"), ("quota", "cores")):  # as the limits themselves have it
        idle[whole] = idle.get(whole, 0) + idle.pop(part, 0)
    return "about" if idle.get(predicted, 0) >= NEAR_LIMIT * max(idle.values()) else "no"


def row_of(base, way, f):
    measured, predicted = statistics.median(f["measured"]), statistics.median(f["predicted"])
    return {"event": "bench", "bench": "planner", "row": "way", "base": base.name(), "way": way, "predicted_samples_per_s": round(predicted, 1),
            "predicted_error": round(statistics.median(f["error"]), 1), "measured_samples_per_s": round(measured, 1),
            "relative_error": round(predicted / measured - 1, 4),
            "repeat": round((max(f["measured"]) - min(f["measured"])) / 2 / measured, 4), "steal": round(max(f["steal"]), 4),
            "predicted_limit": statistics.mode(f["predicted_limit"]), "measured_limit": statistics.mode(f["measured_limit"]),
            "predicted_idle": round(statistics.median(f["predicted_idle"]), 4), "measured_idle": round(statistics.median(f["measured_idle"]), 4),
            "limit_is_right": limit_is_right(f)}


# ---- what comes of it ----

def print_row(r):
    print(f"{r['base'][:52]:52} {r['way']:22} {r['predicted_samples_per_s']:9.0f} {r['measured_samples_per_s']:9.0f} "
          f"{100 * r['relative_error']:+7.1f} {100 * r['repeat']:7.1f} {100 * r['steal']:6.1f}  {r['predicted_limit']:8} {r['measured_limit']:8} "
          f"{ {'yes': '', 'no': 'other'}.get(r['limit_is_right'], r['limit_is_right'])}", flush=True)


def summary_of(rows, which):
    errors = sorted(abs(r["relative_error"]) for r in rows)
    within = {str(limit): sum(e <= limit for e in errors) for limit in (0.08, 0.15, 0.3)}
    return {"event": "bench", "bench": "planner", "row": "summary", "of": which, "count": len(rows),
            "median_error": round(statistics.median(errors), 4), "p90_error": round(errors[int(0.9 * (len(errors) - 1))], 4),
            "within": within, "median_repeat": round(statistics.median(r["repeat"] for r in rows), 4),
            "limits_right": sum(r["limit_is_right"] == "yes" for r in rows), "limits_about": sum(r["limit_is_right"] == "about" for r in rows)}


def print_summary(s):
    print(f"{s['of']}: {s['count']} runs, error median {100 * s['median_error']:.1f} %, 9 of 10 within {100 * s['p90_error']:.1f} %; "
          f"{s['within']['0.08']} within 8 %, {s['within']['0.15']} within 15 %; the measurement itself repeats within "
          f"{100 * s['median_repeat']:.1f} % (median); limiting stage right in {s['limits_right']}, "
          f"about in {s['limits_about']}")


def main():
    global MILLRACE
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("millrace")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--patience", type=float, default=900)
    parser.add_argument("--cache", default=cache_folder("planner"))
    parser.add_argument("--json")
    parser.add_argument("--only", default="", help="bases whose name has this text")
    args = parser.parse_args()
    MILLRACE = os.path.abspath(args.millrace)
    begun, rows, patience = time.monotonic(), [], Patience(args.patience)
    make_data(args.cache)
    print(f"{'base':52} {'way':22} {'predicted':>9} {'measured':>9} {'error %':>7} {'repeat':>7} {'steal':>6}  {'limit':8} {'measured':8}")
    for base, wanted in BASES + HELD_OUT:
        if args.only not in base.name():
            continue
        try:
            found = run_base(base, wanted, args, patience)
        except Absent as e:
            tell(f"{base.name()}: {e}")
            continue
        for way, figures in found.items():
            rows.append({**row_of(base, way, figures), "held_out": (base, wanted) in HELD_OUT})
            print_row(rows[-1])
    if not rows:
        tell(f"--only {args.only}: no base was measured")
        return 1
    changes, held_out = [r for r in rows if r["way"] != "as it is"], [r for r in rows if r["held_out"] and r["way"] != "as it is"]
    parts = {"changes": changes, "of them held out": held_out, "as it is": [r for r in rows if r["way"] == "as it is"]}
    summaries = [summary_of(part, name) for name, part in parts.items() if part]
    for s in summaries:
        print_summary(s)
    run = {"event": "bench", "bench": "planner", "row": "run", "rounds": args.rounds, "seconds": args.seconds,
           "took_s": round(time.monotonic() - begun), "load_average": os.getloadavg(), "machine": machine()}
    if args.json:
        write_rows(args.json, [run, *summaries, *rows])
    return 0


if __name__ == "__main__":
    sys.exit(main())
