#!/usr/bin/env python3
"""Training-step rate with Winograd's convolutions and with direct ones, taking turns.

usage: bench/convolutions.py MILLRACE [--before OTHER] [--rounds 5] [--seconds 3] [--threads N] [--nets NAME:BATCH,...]
                             [--out FILE]

MILLRACE is the built command (build/release/tools/millrace). Without --before it runs against itself with --convolution
direct; OTHER is a command built from an earlier tree, which runs with its own defaults. In every round both train each
network for SECONDS on one resident batch, as processes of their own; the figure of a run is the median step. Printed: the
medians over rounds, and the median and range of the per-round ratio of steps a second.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

NETS = "cifar-cnn:128,mnist-cnn:128,resnet18:32,cifar-resnet20:128,vgg16:8"


def step(command, net, batch, seconds, threads, more):
    """The object that `bench trainer` prints; ends the program when it prints none."""
    line = [command, "bench", "trainer", "--model", net, "--batch", str(batch), "--seconds", str(seconds), "--threads", str(threads),
            "--json", *more]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(line)}: {done.stderr.strip()}")
    return json.loads(done.stdout.splitlines()[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("millrace")
    parser.add_argument("--before")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--nets", default=NETS)
    parser.add_argument("--out")
    args = parser.parse_args()
    rows = []
    for net, batch in (item.split(":") for item in args.nets.split(",")):
        new, old = [], []
        for _ in range(args.rounds):
            old.append(step(args.before or args.millrace, net, batch, args.seconds, args.threads,
                            [] if args.before else ["--convolution", "direct"]))
            new.append(step(args.millrace, net, batch, args.seconds, args.threads, []))
        ratios = [o["ms"] / n["ms"] for o, n in zip(old, new)]
        row = {"event": "bench", "bench": "convolutions", "net": net, "batch": int(batch), "threads": args.threads,
               "rounds": args.rounds, "against": "before" if args.before else "direct",
               "winograd_passes": new[0]["winograd_passes"], "convolution_passes": new[0]["convolution_passes"],
               "scratch_bytes": new[0]["scratch_bytes"], "old_ms": [o["ms"] for o in old], "new_ms": [n["ms"] for n in new],
               "ratio_median": statistics.median(ratios), "ratio_range": [min(ratios), max(ratios)]}
        rows.append(row)
        print(f"{net:15} batch {batch:>4}  {statistics.median(row['old_ms']):9.2f} ms  {statistics.median(row['new_ms']):9.2f} ms  "
              f"{row['ratio_median']:.2f} times as fast ({min(ratios):.2f} to {max(ratios):.2f}); Winograd in "
              f"{row['winograd_passes']} of {row['convolution_passes']} passes", flush=True)
    if args.out:
        with open(args.out, "w", encoding="utf-8") as f:
            for row in rows:
                f.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
