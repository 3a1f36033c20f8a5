#!/usr/bin/env python3
"""The verdict of two processes over slow networks: how often it names the network.

usage: bench/network_verdicts.py MILLRACE DATA NET [--rates 0.1,1,10] [--delays 0.1,5,50] [--runs 20] [--options "..."] [--out FILE]

Each cell is a rate in Gbit/s and a delay in ms; a run of two processes on two hosts trains cifar-cnn for 12 steps there. NET is a program
that makes hosts with such a network between them, out of network namespaces for example:

    NET up 2 RATE DELAY     two hosts with the addresses 10.77.0.1 and .2; RATE in bit/s, DELAY of a packet like 5000us
    NET run I COMMAND...    on host I, from 0
    NET down

Printed as each run ends, and written to --out: verdicts of each cell, and medians of the waiting time and of the time that the sums need
without overlap, as the run prints it.
"""
import argparse
import collections
import json
import os
import statistics
import subprocess


def run_pair(args, number):
    """The last line of rank 0's --json, and its first."""
    found = []
    for rank in (0, 1):
        place = dict(os.environ, RANK=str(rank), WORLD_SIZE="2", MILLRACE_MEET="10.77.0.1:23456", MILLRACE_JOB="verdict%d" % number)
        command = [args.net, "run", str(rank), args.millrace, "train", args.data, *args.options.split(), "--json", "--quiet"]
        found.append(subprocess.Popen(command, env=place, stdout=subprocess.PIPE, text=True))
    lines = [p.communicate(timeout=600)[0].splitlines() for p in found]
    if any(p.returncode for p in found):
        raise SystemExit("%s: exit %s" % (" ".join(command), [p.returncode for p in found]))
    return json.loads(lines[0][0]), json.loads(lines[0][-1])


def measure_cell(args, rate, delay):
    verdicts, shares, needs = collections.Counter(), [], []
    subprocess.run([args.net, "down"], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    subprocess.run([args.net, "up", "2", "%d" % round(1e9 * rate), "%dus" % round(1000 * delay)], check=True,
                   stdout=subprocess.DEVNULL)
    try:
        for number in range(args.runs):
            start, end = run_pair(args, number)
            verdicts[end["verdict"].split(":")[0]] += 1
            shares.append(100 * end["causes"]["network"])
            needs.append(start["network"]["sum_ms"])
    finally:
        subprocess.run([args.net, "down"], stdout=subprocess.DEVNULL)
    return {"rate_gbit": rate, "delay_ms": delay, "runs": args.runs, "verdicts": dict(verdicts),
            "network_percent": round(statistics.median(shares), 1), "sum_ms": round(statistics.median(needs), 2)}


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("millrace")
    p.add_argument("data")
    p.add_argument("net")
    p.add_argument("--rates", default="0.1,1,10")
    p.add_argument("--delays", default="0.1,5,50")
    p.add_argument("--runs", type=int, default=20)
    p.add_argument("--options", default="--model cifar-cnn --val none --batch 32 --seed 1 --devices cpu --threads 1 --max-steps 12")
    p.add_argument("--out")
    args = p.parse_args()
    cells = []
    for rate in map(float, args.rates.split(",")):
        for delay in map(float, args.delays.split(",")):
            cells.append(measure_cell(args, rate, delay))
            print(json.dumps(cells[-1]), flush=True)
            if args.out:
                with open(args.out, "w", encoding="utf-8") as f:
                    json.dump({"command": args.options, "cells": cells}, f, indent=1)


if __name__ == "__main__":
    main()
