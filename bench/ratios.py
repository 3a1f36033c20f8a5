#!/usr/bin/env python3
"""Our own ratios, with nobody else installed, taking turns.

usage: bench/ratios.py MILLRACE --data FOLDER [--rounds 5] [--seconds 2] [--threads 2] [--json OUT] [--cache DIR]

    folder, records, coef, raw / full decode    RandomResizedCrop(224) + flip to batches of 64, beside plain libjpeg-turbo decoding;
                                                the folder as in a first epoch
    folder@kept                                 the folder with entry points kept in memory: a turn begins with its first epoch
    folder@progressive / full decode of it      both with progressive copies of the pictures (jpegtran -copy none -progressive)
    folder@large, records@large                 mosaics of 4,000 x 3,000 pixels (mosaics.py) / full decode of them
    folder@large-reduced, records@large-reduced the same with --pixels reduced
    avx2 / avx512                               each of them with MILLRACE_SIMD set
    order / free order, checks / no checks      the cost of these guarantees, where this version can switch them off
    overlap                                     time of an overlapped epoch / the longer of loading alone and computing alone, on a
                                                simulated device, with load : compute of 1:4, 1:1 and 4:1 (1 is perfect, 2 is no overlap)
    convert / jpegtran                          JPEG bytes a second into coefficient records, over as many jpegtran -optimize at once

Contestants that this version does not offer are listed as absent, with its error. See rounds.py for how rounds and ratios are made.
"""
import argparse
import os
import re
import statistics
import sys
import time

import mosaics
from ours import OURS, YARDSTICK, cache_folder, convert_command, job_about, first_epoch, jpeg_files, our_loader, write_job, yardstick
from rounds import (Absent, ROUNDS_FEWEST, absent_row, call, column, contestant_row, last_object, machine, pair_row, ratios,
                    run_rounds, run_row, tell, use_cores, warn_if_shared, write_rows)

PHOTOS = [name for name, (_, _, job) in OURS.items() if job == "photos"]
OVERLAPS = {"1:4": 4.0, "1:1": 1.0, "4:1": 0.25}  # load : compute, and compute / load
OVERLAP_BATCH = 16
PROGRESSIVE, LARGE = f"{YARDSTICK}@progressive", f"{YARDSTICK}@large"
LARGE_BATCH = 16


# ---- contestants other than the loaders ----

class Overlap:
    """`millrace profile` on a simulated device whose step takes `compute_over_load` times what loading its batch does. Loading alone is
    measured before the run and, by the run itself, after it: the faster of the two counts."""
    kind = "ours"

    def __init__(self, ident, millrace, data, samples, threads, compute_over_load):
        self.ident, self.label, self.about = f"overlap {ident}", f"overlapped epoch, load : compute {ident}", {}
        self.compute_over_load, self.steps_most = compute_over_load, max(8, samples // OVERLAP_BATCH - 3)
        common = ["--augment", "rrc224", "--batch", str(OVERLAP_BATCH), "--workers", str(threads), "--json", "--quiet", "--seconds", "1"]
        self.alone = [millrace, "bench", "loader", data, "--training", *common]
        self.profile = [millrace, "profile", data, "--model", "cifar-cnn", "--tail", "drop", *common]

    def turn(self, seconds):
        load = last_object(call(self.alone, 300)[0])["samples_per_s"]
        load_s = OVERLAP_BATCH / load
        compute_s = load_s * self.compute_over_load
        steps = min(self.steps_most, max(40, int(seconds / max(compute_s, load_s))))
        found = last_object(call([*self.profile, "--steps", str(steps), "--devices", f"sim:1,step={1e6 * compute_s:.0f}us"], 300)[0])
        load = max(load, found["loader_samples_per_s"])
        return {"samples_per_s": found["on_samples_per_s"], "ceiling_samples_per_s": min(load, found["trainer_samples_per_s"]),
                "load_over_compute": found["trainer_samples_per_s"] / load}

    def close(self):
        pass


def many_times(job, times):
    """A list that names the records `times` times: an epoch long enough that work done before its start does not count."""
    records = job["made"]["records"][0]
    path = os.path.join(job["cache"], f"millrace-records-{times}.mrec")
    with open(path, "w", encoding="utf-8") as f:
        f.write("millrace shards 1\n" + f"{job['pictures']} {os.path.basename(records)}\n" * times +
                f"end {times} shards {times * job['pictures']} records\n")
    return path, times * job["pictures"]


class Work:
    """A fixed piece of work on all pictures, by the clock."""

    def __init__(self, ident, label, kind, command, job, env=None, **about):
        self.ident, self.label, self.kind, self.command, self.job, self.env, self.about = ident, label, kind, command, job, env, about

    def turn(self, _seconds):
        start = time.perf_counter()
        _, cost = call(self.command, 900, self.env)
        took = time.perf_counter() - start
        return {"samples_per_s": self.job["pictures"] / took, "mb_per_s": self.job["bytes"] / took / 1e6,
                "cpu_s_per_1000": 1e3 * (cost.ru_utime + cost.ru_stime) / self.job["pictures"], "peak_rss_mb": cost.ru_maxrss / 1024}

    def close(self):
        pass


def jpegtran(job, threads):
    """Losslessly optimised JPEG files, discarded: the cost of the same reading and entropy coding with libjpeg-turbo's own program."""
    names = os.path.join(job["cache"], "names")
    with open(names, "w", encoding="utf-8") as f:
        f.write("".join(f"{path}\0" for path in jpeg_files(job["folder"])))
    call(["jpegtran", "-version"], 10)
    return Work("jpegtran", f"jpegtran -optimize, {threads} at once", "peer",
                ["xargs", "-0", "-a", names, "-P", str(threads), "-n", "1", "jpegtran", "-optimize", "-outfile", os.devnull], job)


def progressive_job(job):
    """The job with progressive copies of its pictures, made once."""
    folder = os.path.join(job["cache"], "progressive")
    if not os.path.isdir(folder):
        half = f"{folder}.half"
        for path in jpeg_files(job["folder"]):
            to = os.path.join(half, os.path.relpath(path, os.path.abspath(job["folder"])))
            os.makedirs(os.path.dirname(to), exist_ok=True)
            call(["jpegtran", "-copy", "none", "-progressive", "-outfile", to, path], 60)
        os.rename(half, folder)
    return job_of(job, folder)


def large_job(job):
    """The job with mosaics of its pictures, made once."""
    place = os.path.join(job["cache"], "large")
    folder = os.path.join(place, "mosaics")
    if not os.path.isdir(folder):
        os.makedirs(place, exist_ok=True)
        mosaics.write_mosaics(job["folder"], folder)
    return {**job_of(job, folder), "cache": place, "batch": LARGE_BATCH}


def job_of(job, folder):
    """The job with the pictures of another folder."""
    files = jpeg_files(folder)
    return {**job, "folder": folder, "pictures": len(files), "bytes": sum(map(os.path.getsize, files)), "made": {}}


def yardstick_of(millrace, jobs, threads, ident, label):
    found = yardstick(millrace, jobs, threads)
    found.ident, found.label = ident, label
    return found


# ---- what this version offers ----

def free_order(help_text):
    """The options for batches in the order they become ready.

    >>> free_order("  --order shuffle|free|block   of samples")
    ['--order', 'free']
    >>> free_order("  --order shuffle|block|sequential") is None
    True
    """
    found = re.search(r"--order \S*\b(free|any|ready|arrival)\b", help_text)
    return ["--order", found[1]] if found else ["--free-order"] if "--free-order" in help_text else None


def no_checks(help_text):
    """The options for reading without checksums.

    >>> no_checks("  --checks on|off   checksums of the bytes read"), no_checks("  --no-check  do not")
    (['--checks', 'off'], ['--no-check'])
    """
    found = re.search(r"(--(?:checks?|checksums?|verify)) \S*\boff\b", help_text)
    if found:
        return [found[1], "off"]
    found = re.search(r"--(?:no-check|no-checks|no-checksums?|no-verify|unchecked)\b", help_text)
    return [found[0]] if found else None


def reduced(help_text):
    r"""The options for large reductions computed from means of blocks.

    >>> reduced("  --pixels HOW  a JPEG's pixels: own; libjpeg: its\n  RGB; reduced: as own, but")
    ['--pixels', 'reduced']
    >>> reduced("  --pixels own|libjpeg  a JPEG's pixels\n  --exif X  x\n reduced") is None
    True
    """
    return ["--pixels", "reduced"] if re.search(r"--pixels (?:(?!--).)*\breduced:", help_text, re.DOTALL) else None


def without(option, what):
    if not option:
        raise Absent(f"this version has no {what}")
    return option


# ---- the run ----

def gather(args, jobs):
    """Contestants that are ready, and {name: why} of the absent ones."""
    ready, absent, job = [], {}, jobs["photos"]
    help_text = call([args.millrace, "bench", "--help", "--all"], 60)[0]

    def add(name, make):
        try:
            ready.append(make())
            tell(f"{name}: ready")
        except Absent as why:
            absent[name] = str(why)
            tell(f"{name}: absent: {why}")

    def loader(name, variant="", **how):
        return lambda: our_loader(args.millrace, name, jobs, args.threads, variant, **how)

    def others(variant, make, names, more=None):
        """Contestants that read other pictures made of these, and their yardstick; more: {suffix: options of further contestants}."""
        ident, made = f"{YARDSTICK}@{variant}", []

        def made_jobs():
            if not made:
                made.append({"photos": make(job)})
            return made[0]
        add(ident, lambda: yardstick_of(args.millrace, made_jobs(), args.threads, ident, f"full libjpeg-turbo decode of {variant} pictures"))
        for suffix, options in {"": lambda: [], **(more or {})}.items():
            for name in names:
                add(f"{name}@{variant}{suffix}",
                    lambda: our_loader(args.millrace, name, made_jobs(), args.threads, variant + suffix, extra=options()))
    add(YARDSTICK, lambda: yardstick(args.millrace, jobs, args.threads))
    sets = machine()["instruction_sets"]
    for name in PHOTOS:
        add(name, loader(name))
        for level, flag in (("avx2", "avx2"), ("avx512", "avx512_vbmi2")):
            if flag in sets:
                add(f"{name}@{level}", loader(name, level, env={"MILLRACE_SIMD": level}))
            else:
                absent[f"{name}@{level}"] = f"this processor has no {flag}"
    others("progressive", progressive_job, ["folder"])
    others("large", large_job, ["folder", "records"], {"-reduced": lambda: without(reduced(help_text), "--pixels reduced")})
    if first_epoch(args.millrace):
        add("folder@kept", loader("folder", "kept"))
    else:
        absent["folder@kept"] = "this version keeps no entry points in memory"
    add("folder@free", lambda: loader("folder", "free", extra=without(free_order(help_text), "free order"))())
    add("records@unchecked", lambda: loader("records", "unchecked", extra=without(no_checks(help_text), "reading without checks"))())
    for ident, over in OVERLAPS.items():
        add(f"overlap {ident}", lambda ident=ident, over=over: Overlap(ident, args.millrace, *many_times(job, 1 + 8000 // job["pictures"]),
                                                                       args.threads, over))
    to = os.path.join(job["cache"], "millrace-convert.mrec")
    add("convert", lambda: without("coef" in job["made"], "coefficient records") and
        Work("convert", "millrace convert --store coef", "ours", convert_command(args.millrace, "coef", job, args.threads, to), job))
    add("jpegtran", lambda: jpegtran(job, args.threads))
    return ready, absent


PAIRS = ([(name, YARDSTICK) for name in PHOTOS] + [(f"{name}@avx2", f"{name}@avx512") for name in PHOTOS] +
         [("folder@kept", YARDSTICK), ("folder@progressive", PROGRESSIVE), ("folder@large", LARGE), ("records@large", LARGE),
          ("folder@large-reduced", LARGE), ("records@large-reduced", LARGE),
          ("folder", "folder@free"), ("records", "records@unchecked"), ("convert", "jpegtran")])


def rows_of(args, cores, jobs, contestants, results, absent, took):
    rows = [{**run_row("ratios", args, cores, results.get(YARDSTICK, []), took), "data": job_about(jobs)}]
    base = column(results, YARDSTICK)
    for c in contestants:
        if any(results[c.ident]):
            rows.append(contestant_row("ratios", c, results[c.ident], [] if isinstance(c, Overlap) else base))
    for over, under in PAIRS:
        values = ratios(column(results, over), column(results, under))
        if values:
            cpu = ratios(column(results, under, "cpu_s_per_1000"), column(results, over, "cpu_s_per_1000"))
            rows.append(pair_row("ratios", f"{over} / {under}", over, under, values, cpu))
    for ident in OVERLAPS:
        found = results.get(f"overlap {ident}", [])
        values = [figures["ceiling_samples_per_s"] / figures["samples_per_s"] for figures in found if figures]
        if values:
            rows.append({**pair_row("ratios", f"overlapped epoch / max(load, compute), {ident}", f"overlap {ident}", "ceiling", values),
                         "load_over_compute": round(statistics.median(f["load_over_compute"] for f in found if f), 3)})
    return rows + [absent_row("ratios", name, name, why) for name, why in absent.items()]


def show(rows):
    for row in rows:
        if row["row"] == "contestant":
            print(f"{row['label']:52} {row['median_samples_per_s']:>10,.0f} samples/s")
    for row in rows:
        if row["row"] == "pair":
            cpu = f"; by processor time {row['cpu']['median']:.2f}" if "cpu" in row else ""
            print(f"{row['id']:52} {row['median']:.3f}  ({row['min']:.3f}-{row['max']:.3f}, {row['rounds']} rounds{cpu})")
    for row in rows:
        if row["row"] == "absent":
            print(f"absent: {row['id']}: {row['reason']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("millrace")
    parser.add_argument("--data", required=True)
    parser.add_argument("--rounds", type=int, default=ROUNDS_FEWEST)
    parser.add_argument("--seconds", type=float, default=2, help="of a turn")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json")
    parser.add_argument("--cache", default=cache_folder("data"))
    args, start = parser.parse_args(), time.monotonic()
    cores = use_cores(args.threads)
    try:
        jobs = {"photos": write_job(args.cache, "photos", args.data, args.threads)}
    except (Absent, OSError) as why:
        sys.exit(str(why))
    contestants, absent = gather(args, jobs)
    results, dropped = run_rounds(contestants, args.rounds, args.seconds, YARDSTICK, tell)
    rows = rows_of(args, cores, jobs, contestants, results, {**absent, **dropped}, time.monotonic() - start)
    show(rows)
    warn_if_shared(rows[0])
    if args.json:
        write_rows(args.json, rows)


if __name__ == "__main__":
    main()
