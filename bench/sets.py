#!/usr/bin/env python3
"""The work of somebody who prepares data sets for others, step by step, each with its result.

usage: bench/sets.py MILLRACE [--photographs DATA] [--only N,LETTER,...] [--list] [--json FILE] [--work DIR] [--keep]

    --photographs DATA   any data set of pictures, which is exported to a folder first; without it a small set (`millrace synth`)
    --only 3,12,H        these steps, by number or letter
    --list               print the steps, and end
    --work DIR           folder for the files of the run (default: a temporary folder); 15 times the bytes of the set are needed
    --keep               leave these files

Each step prints its command, the exit status, seconds, peak memory (ru_maxrss of the process), and the line of its output that matters.
A step is as expected if its status, its output and its files are: names, bytes and counts are compared with the pictures
themselves, which Python reads. The last line is "N of M steps as expected"; the exit status is 1 unless all are.
Times depend on the machine; no step is judged by them."""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile

from rounds import Absent, last_words, write_rows
from set_journey import Journey, Unexpected
from set_steps import STEPS


def small_set(millrace, to):
    call = subprocess.run([millrace, "synth", to, "--classes", "5", "--count", "30", "--size", "48", "--max-size", "96", "--quiet"],
                          capture_output=True, text=True, check=False)
    if call.returncode:
        raise Absent(last_words(call.stderr))
    return os.path.join(to, "train")


def folder_of(millrace, data, to):
    call = subprocess.run([millrace, "export", data, to, "--quiet"], capture_output=True, text=True, check=False)
    if call.returncode:
        raise Absent(last_words(call.stderr))
    return to


def take(step, number, journey, keep):
    """Run one step; returns its rows."""
    print(f"{number:2} {step.letter}  {step.what}", flush=True)
    journey.begin(number)
    why = None
    try:
        step.function(journey)
    except Unexpected as e:
        why = str(e)
    except (OSError, ValueError, LookupError, TypeError) as e:
        why = f"{type(e).__name__}: {e}"
    for run in journey.runs:
        print(f"      $ {run.command[:300]}\n        status {run.status}, {run.seconds:.2f} s, {run.peak_mb:.0f} MB: {run.line}")
    print(f"      NOT AS EXPECTED: {why}" if why else "      as expected", flush=True)
    journey.end(keep)
    return {"event": "bench", "bench": "sets", "row": "step", "number": number, "letter": step.letter, "what": step.what,
            "as_expected": why is None, "why": why,
            "commands": [{"command": r.command, "status": r.status, "seconds": round(r.seconds, 3), "peak_mb": round(r.peak_mb, 1),
                          "line": r.line} for r in journey.runs]}


def travel(args, steps, work):
    photos = folder_of(args.millrace, args.photographs, os.path.join(work, "photos")) if args.photographs else \
        small_set(args.millrace, os.path.join(work, "small"))
    journey = Journey(args.millrace, work, photos)
    print(f"{len(journey.names)} pictures of {len(journey.classes)} classes, {journey.bytes / 1e6:.1f} MB")
    try:
        return [take(step, number, journey, args.keep) for number, step in steps]
    finally:
        journey.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("millrace")
    parser.add_argument("--photographs")
    parser.add_argument("--only")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("--work")
    parser.add_argument("--keep", action="store_true")
    args = parser.parse_args()
    only = args.only.split(",") if args.only else []
    steps = [(k, step) for k, step in enumerate(STEPS, 1) if not only or str(k) in only or step.letter in only]
    if not steps:
        parser.error(f"--only {args.only}: expected numbers from 1 to {len(STEPS)}, or letters of the steps (--list)")
    if args.list:
        print("\n".join(f"{number:2} {step.letter}  {step.what}" for number, step in steps))
        return 0
    work = os.path.abspath(tempfile.mkdtemp(prefix="millrace-sets-", dir=args.work))
    try:
        rows = travel(args, steps, work)
    except Absent as why:
        sys.exit(str(why))
    finally:
        if not args.keep:
            shutil.rmtree(work, ignore_errors=True)
    good = sum(row["as_expected"] for row in rows)
    if args.json:
        write_rows(args.json, rows)
    print(f"{good} of {len(rows)} steps as expected")
    return 0 if good == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
