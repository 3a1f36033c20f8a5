#!/usr/bin/env python3
"""Whole passes over a set of files, compared with the system's own programs that move the same bytes, taking turns.

usage: bench/set_ratios.py MILLRACE --photographs FOLDER [--copies N] [--rounds 5] [--threads 2] [--work DIR] [--json OUT] [--only TEXT]

    convert / cp -r     time of `convert FOLDER x.mrec` (check, entry points, read back) over time of `cp -r FOLDER`
    export / cp -r      the way back, `export x.mrec FOLDER`, over `cp -r` of the same files
    stats / read        `stats FOLDER --seconds 0` over `cat` of all files to nowhere

    --copies N          make a folder with N copies of each file first, each a file of its own (default: the folder as it is)
    --work DIR          folder for copies and outputs, on the disk to be measured (default: a temporary folder); three times the bytes
                        of the set are needed
    --only TEXT         pairs whose name has this text

A turn begins with `sync`, outside of its time. convert and export wait until their files are on the disk and cp does not: the pairs with
"+ sync" count `sync -f` after cp, too. Inputs are in the page cache after the first round, which does not count. A ratio is of times:
smaller is faster. See rounds.py for how rounds and ratios are made."""
import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time

from rounds import (Absent, ROUNDS_FEWEST, absent_row, call, column, contestant_row, pair_row, ratios, run_row, run_rounds, tell, use_cores,
                    write_rows)

SECONDS_MOST = 1800
PAIRS = [("convert", "cp"), ("convert", "cp+sync"), ("export", "cp"), ("export", "cp+sync"), ("stats", "read")]


class Pass:
    """One command over the whole set; `made` is removed after each turn unless keep."""
    kind = "pass"

    def __init__(self, ident, label, command, job, made=None, keep=False):
        self.ident, self.label, self.command, self.job, self.made, self.keep, self.about = ident, label, command, job, made, keep, {}

    def turn(self, _seconds):
        remove(self.made)
        call(["sync"], SECONDS_MOST)
        start = time.perf_counter()
        _, cost = call(self.command, SECONDS_MOST)
        took = time.perf_counter() - start
        if not self.keep:
            remove(self.made)
        return {"samples_per_s": self.job["files"] / took, "seconds": took, "peak_rss_mb": cost.ru_maxrss / 1024,
                "cpu_s_per_1000": 1e3 * (cost.ru_utime + cost.ru_stime) / self.job["files"]}

    def close(self):
        remove(self.made)


def remove(path):
    if path and os.path.isdir(path):
        shutil.rmtree(path)
    elif path and os.path.exists(path):
        os.remove(path)


def copies(folder, to, count):
    """`count` files for each file of the folder."""
    for place, _, names in os.walk(folder):
        for name in names:
            for k in range(count):
                path = os.path.join(to, os.path.relpath(place, folder), f"{k:04}-{name}")
                os.makedirs(os.path.dirname(path), exist_ok=True)
                shutil.copyfile(os.path.join(place, name), path)
    return to


def passes(args, folder, work):
    sizes = [os.path.getsize(os.path.join(place, name)) for place, _, names in os.walk(folder) for name in names]
    job = {"files": len(sizes), "bytes": sum(sizes)}
    copy, back, records = (os.path.join(work, name) for name in ("copy", "back", "x.mrec"))
    threads = str(args.threads)
    found = [
        Pass("cp", "cp -r", ["cp", "-r", folder, copy], job, copy),
        Pass("cp+sync", "cp -r + sync", ["sh", "-c", 'cp -r "$1" "$2" && sync -f "$2"', "sh", folder, copy], job, copy),
        Pass("convert", "convert", [args.millrace, "convert", folder, records, "--workers", threads, "--quiet"], job, records, keep=True),
        Pass("export", "export", [args.millrace, "export", records, back, "--quiet"], job, back),
        Pass("read", "cat of all files", ["sh", "-c", 'find "$1" -type f -print0 | xargs -0 cat >/dev/null', "sh", folder], job),
        Pass("stats", "stats", [args.millrace, "stats", folder, "--workers", threads, "--seconds", "0", "--quiet"], job),
    ]
    wanted = {ident for pair in PAIRS if not args.only or args.only in " / ".join(pair) for ident in pair}
    if "export" in wanted and "convert" not in wanted:
        call([args.millrace, "convert", folder, records, "--workers", threads, "--quiet"], SECONDS_MOST)
    return job, [one for one in found if one.ident in wanted]


def rows_of(args, cores, job, found, results, absent, took):
    rows = [{**run_row("set_ratios", args, cores, [], took), **job}]
    rows += [{**contestant_row("set_ratios", one, results[one.ident], []),
              "seconds": [round(turn["seconds"], 3) for turn in results[one.ident] if turn]} for one in found if any(results[one.ident])]
    for over, under in PAIRS:
        values = ratios(column(results, over, "seconds"), column(results, under, "seconds"))
        if values:
            cpu = ratios(column(results, over, "cpu_s_per_1000"), column(results, under, "cpu_s_per_1000"))
            rows.append(pair_row("set_ratios", f"{over} / {under}", over, under, values, cpu))
    return rows + [absent_row("set_ratios", name, name, why) for name, why in absent.items()]


def show(rows):
    print(f"{rows[0]['files']:,} files, {rows[0]['bytes'] / 1e6:,.0f} MB")
    for row in rows:
        if row["row"] == "contestant":
            processors = row["cpu_s_per_1000"] * rows[0]["files"] / 1e3
            print(f"{row['label']:20} {statistics.median(row['seconds']):>8.2f} s, {processors:>6.2f} s of processors, "
                  f"{row['peak_rss_mb']:.0f} MB")
        elif row["row"] == "pair":
            print(f"{row['id']:20} {row['median']:>8.2f}  ({row['min']:.2f}-{row['max']:.2f}, {row['rounds']} rounds; of processor time "
                  f"{row['cpu']['median']:.2f})")
        elif row["row"] == "absent":
            print(f"absent: {row['id']}: {row['reason']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("millrace")
    parser.add_argument("--photographs", required=True)
    parser.add_argument("--copies", type=int)
    parser.add_argument("--rounds", type=int, default=ROUNDS_FEWEST)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--work")
    parser.add_argument("--json")
    parser.add_argument("--only")
    args, start = parser.parse_args(), time.monotonic()
    args.millrace, args.seconds = os.path.abspath(args.millrace), 0
    cores = use_cores(args.threads)
    work = os.path.abspath(tempfile.mkdtemp(prefix="millrace-set-ratios-", dir=args.work))
    try:
        folder = os.path.abspath(args.photographs)
        folder = copies(folder, os.path.join(work, "photographs"), args.copies) if args.copies else folder
        job, found = passes(args, folder, work)
        if not found:
            parser.error(f"--only {args.only}: expected a part of one of {', '.join(' / '.join(pair) for pair in PAIRS)}")
        results, absent = run_rounds(found, args.rounds, 0, None, tell)
        rows = rows_of(args, cores, job, found, results, absent, time.monotonic() - start)
    except Absent as why:
        sys.exit(str(why))
    finally:
        shutil.rmtree(work, ignore_errors=True)
    show(rows)
    if args.json:
        write_rows(args.json, rows)
    return 1 if absent else 0


if __name__ == "__main__":
    sys.exit(main())
