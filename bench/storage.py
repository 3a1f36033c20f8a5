#!/usr/bin/env python3
"""Accelerators fed by `millrace bench storage`, compared with DLIO (dlio_benchmark), the program of MLPerf Storage, taking turns.

usage: bench/storage.py MILLRACE --data FOLDER [--accelerator a100] [--rounds 3] [--seconds 3] [--threads 2] [--copies 5]
                        [--dlio PYTHON] [--json OUT] [--add] [--cache DIR]

The JPEGs of FOLDER are linked into one folder, --copies times, so that an epoch has steps enough; all contestants get these files or
records made of them, the same cores, and data in the page cache. DLIO runs one accelerator with --threads worker processes; PYTHON is
one of a virtual environment that has dlio_benchmark, torch, tensorflow and mpi4py, with mpirun in the path. Without it DLIO is listed as
absent.

What each contestant is counted in:

    accelerators   DLIO: measured over required utilisation of one accelerator. Ours: accelerators_by_rate, the same number from
                   the loader's rate. Both may be below 1
    fed            ours alone: the whole number of accelerators that a simulated run with this number confirms, and their utilisation

Where DLIO's one accelerator is nearly always busy its step is made eight times shorter, and the number goes up in proportion.

Not equal: DLIO decodes the whole JPEG with Pillow, keeps nothing of it, and gives the step a picture of noise that is there already; no
crop, no resize, no flip. Ours decodes the part that a random crop needs, resizes, flips, and copies batches to the device. DLIO's first
epoch begins with an empty queue, like ours, and its figure is of a few steps only.

A virtual machine's host may give its cores to others ("steal"); what each turn lost is in the record, and every turn counts.

With --add the rounds of an earlier OUT count, too: a short run now and one later are better than a long one on a machine that others
use. Ratios are medians of ratios inside a round.
"""
import argparse
import glob
import json
import os
import shutil
import statistics
import sys
import tempfile
import time

from ours import cache_folder, jpeg_files
from rounds import Absent, call, last_object, machine, ratios, summary, tell, use_cores, write_rows

UNITS = {"a100": (400, 0.435, 0.9), "h100": (400, 0.224, 0.9), "b200": (24, 0.04755, 0.85), "mi355": (32, 0.0634, 0.85)}
FORMS = {  # name: (label, how `convert` makes it)
    "folder": ("the folder itself", None),
    "jpeg": ("JPEG records", []),
    "coef": ("coefficient records", ["--store", "coef"]),
    "raw256": ("raw records, shorter side 256", ["--store", "raw", "--resize", "256"]),
}


# ---- the files ----

def link_pictures(files, folder, copies):
    """folder/train/img_K.jpeg, hard links where the file system allows it."""
    wanted = len(files) * copies
    train = os.path.join(folder, "train")
    if os.path.isdir(train) and len(os.listdir(train)) == wanted:
        return wanted
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(train)
    os.makedirs(os.path.join(folder, "valid"))
    for k in range(wanted):
        name = os.path.join(train, f"img_{k}.jpeg")
        try:
            os.link(files[k % len(files)], name)
        except OSError:
            shutil.copyfile(files[k % len(files)], name)
    return wanted


def make_form(args, train, form, count):
    if FORMS[form][1] is None:
        return [train, "--classes", "none"]
    out = os.path.join(args.cache, f"{form}-{count}.mrec")
    if not os.path.exists(out):
        tell(f"converting to {form}")
        call([args.millrace, "convert", train, out, "--classes", "none", "--quiet", "--no-verify", *FORMS[form][1]], 600)
    return [out]


# ---- contestants ----

class Ours:
    def __init__(self, args, ident, data):
        self.args, self.ident, self.label, self.data = args, ident, f"millrace, {FORMS[ident][0]}", data

    def turn(self):
        a = self.args
        found = last_object(call([a.millrace, "bench", "storage", *self.data, "--accelerator", a.accelerator, "--from", "cache",
                                  "--seconds", str(a.seconds), "--workers", str(a.threads), "--json", "--quiet"], 300)[0])
        return {"accelerators": found["accelerators_by_rate"], "samples_per_s": found["loader_samples_per_s"],
                "fed": found["accelerators"], "utilisation": found["utilisation"], "more_utilisation": found.get("more_utilisation"),
                "cores_used": found["cores_used"], "read_bytes_per_s": found["read_bytes_per_s"]}


def au_of(folder):
    """Utilisation in percent of each epoch, from DLIO's summary."""
    found = glob.glob(os.path.join(folder, "**", "summary.json"), recursive=True)
    if not found:
        raise Absent("dlio_benchmark left no summary.json")
    with open(found[0], encoding="utf-8") as f:
        return json.load(f)["metric"]["train_au_percentage"]


class Dlio:
    ident, label = "dlio", "DLIO, PyTorch, JPEG"

    def __init__(self, args, folder, count):
        self.args, self.folder, self.count = args, folder, count
        if not args.dlio:
            raise Absent("no --dlio PYTHON was given")
        if not shutil.which("mpirun"):
            raise Absent("no mpirun (apt install openmpi-bin)")
        code = "import importlib.metadata as m, torch, tensorflow, dlio_benchmark, PIL; print(m.version('dlio-benchmark'), torch.__version__)"
        self.about = call([args.dlio, "-c", code], 120)[0].split()

    def utilisation(self, step):
        batch = UNITS[self.args.accelerator][0]
        settings = {"framework": "pytorch", "dataset.format": "jpeg", "dataset.num_files_train": self.count,
                    "dataset.num_samples_per_file": 1, "dataset.data_folder": self.folder, "reader.data_loader": "pytorch",
                    "reader.read_threads": self.args.threads, "reader.batch_size": batch, "train.epochs": 1,
                    "train.computation_time": step, "workflow.generate_data": "False", "workflow.train": "True",
                    "workflow.evaluation": "False"}
        program = os.path.join(os.path.dirname(self.args.dlio), "dlio_benchmark")
        with tempfile.TemporaryDirectory() as out:
            # without this mpirun holds the one rank, and so its workers, to one core
            call(["mpirun", "--bind-to", "none", "-np", "1", program, "workload=resnet50_v100", *[f"++workload.{k}={v}" for k, v in settings.items()],
                  f"++hydra.run.dir={out}"], 280,
                 {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMP_NUM_THREADS": "1"})
            return statistics.median(au_of(out)) / 100

    def turn(self):
        batch, step, required = UNITS[self.args.accelerator]
        busy, shorter = self.utilisation(step), 1
        if busy > 0.9:
            shorter = 8
            busy = self.utilisation(step / shorter)
        return {"accelerators": busy * shorter / required, "samples_per_s": busy * shorter * batch / step,
                "utilisation": busy if shorter == 1 else None}


# ---- rounds and rows ----

def earlier_turns(path):
    """{ident: turns} of an earlier record.

    >>> earlier_turns("/nowhere")
    {}
    """
    try:
        with open(path, encoding="utf-8") as f:
            rows = [json.loads(line) for line in f]
    except OSError:
        return {}
    return {row["id"]: row["turns"] for row in rows if row["row"] == "contestant"}


def accelerators(turns):
    """
    >>> accelerators([{"accelerators": 2.0}, None])
    [2.0, None]
    """
    return [turn and turn["accelerators"] for turn in turns]


def core_ticks():
    """Of all cores since the machine began: (taken by the host of a virtual machine, all)."""
    with open("/proc/stat", encoding="utf-8") as f:
        ticks = [int(n) for n in f.readline().split()[1:9]]
    return ticks[7], sum(ticks)


def watched_turn(contestant):
    """A turn, and the part of the cores' time in it that the host gave to others."""
    stolen, ticks = core_ticks()
    figures = contestant.turn()
    after, ticks_after = core_ticks()
    return {**figures, "steal": round((after - stolen) / max(1, ticks_after - ticks), 4)}


def run_rounds(contestants, rounds, turns):
    """turns[ident] gets another turn for each round, None for one that failed."""
    before = max((len(t) for t in turns.values()), default=0)
    for number in range(rounds):
        for c in contestants if number % 2 == 0 else contestants[::-1]:
            mine = turns.setdefault(c.ident, [])
            mine += [None] * (before + number - len(mine))
            try:
                mine.append(watched_turn(c))
                tell(f"round {number + 1}: {c.label}: {mine[-1]['accelerators']:.2f} accelerators, steal {100 * mine[-1]['steal']:.1f} %")
            except Absent as why:
                mine.append(None)
                tell(f"round {number + 1}: {c.label}: {why}")


def rows_of(args, contestants, absent, turns, about):
    yield {"row": "run", **about}
    for ident, why in absent.items():
        yield {"row": "absent", "id": ident, "why": why}
    under = accelerators(turns.get("dlio", []))
    for c in contestants:
        mine = [n for n in accelerators(turns[c.ident]) if n]
        row = {"row": "contestant", "id": c.ident, "label": c.label, "turns": turns[c.ident]}
        if mine:
            row["accelerators"] = summary(mine)
        over = ratios(accelerators(turns[c.ident]), under)
        if over and c.ident != "dlio":
            row["to_dlio"] = summary(over)
        yield row


def print_rows(rows):
    for row in rows:
        if row["row"] == "absent":
            print(f"{row['id']:8} absent: {row['why']}")
        if row["row"] == "contestant" and "accelerators" in row:
            n, to = row["accelerators"], row.get("to_dlio")
            fed = [str(t["fed"]) for t in row["turns"] if t and "fed" in t]
            print(f"{row['label']:42} {n['median']:7.2f} accelerators ({n['min']:.2f} to {n['max']:.2f})"
                  f"{'; fed ' + ', '.join(fed) if fed else ''}{'; / DLIO %.1f (%.1f to %.1f)' % (to['median'], to['min'], to['max']) if to else ''}")


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("millrace")
    p.add_argument("--data", required=True)
    p.add_argument("--accelerator", choices=sorted(UNITS), default="a100")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--seconds", type=float, default=3)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--copies", type=int, default=5)
    p.add_argument("--forms", default=",".join(FORMS))
    p.add_argument("--dlio", metavar="PYTHON")
    p.add_argument("--json", metavar="OUT")
    p.add_argument("--add", action="store_true")
    p.add_argument("--cache", default=cache_folder("storage"))
    return p.parse_args()


def main():
    args = parse()
    args.millrace, args.cache = os.path.abspath(args.millrace), os.path.abspath(args.cache)
    files = jpeg_files(args.data)
    unknown = [form for form in args.forms.split(",") if form not in FORMS]
    if not files or unknown:
        sys.exit(f"{args.data}: no JPEG files in it" if not files else f"--forms: expected {', '.join(FORMS)}; found {unknown[0]}")
    start, cores = time.time(), use_cores(args.threads)
    folder = os.path.join(args.cache, "pictures")
    count = link_pictures(files, folder, args.copies)
    contestants, absent = [], {}
    try:
        contestants.append(Dlio(args, folder, count))
    except Absent as why:
        absent["dlio"] = str(why)
    contestants += [Ours(args, form, make_form(args, os.path.join(folder, "train"), form, count)) for form in args.forms.split(",")]
    turns = earlier_turns(args.json) if args.add and args.json else {}
    run_rounds(contestants, args.rounds, turns)
    batch, step, required = UNITS[args.accelerator]
    about = {"accelerator": args.accelerator, "batch": batch, "step_ms": 1e3 * step, "required_utilisation": required,
             "verified": False, "cores": len(cores), "threads": args.threads, "pictures": len(files), "copies": args.copies,
             "bytes": sum(os.path.getsize(f) for f in files) * args.copies, "rounds": max(len(t) for t in turns.values()),
             "seconds_a_run": args.seconds, "took_s": round(time.time() - start), "machine": machine(),
             "dlio": contestants[0].about if contestants[0].ident == "dlio" else None}
    rows = list(rows_of(args, contestants, absent, turns, about))
    print_rows(rows)
    if args.json:
        write_rows(args.json, [{"event": "bench", "bench": "storage", **row} for row in rows])


if __name__ == "__main__":
    try:
        main()
    except Absent as failure:
        sys.exit(str(failure))
