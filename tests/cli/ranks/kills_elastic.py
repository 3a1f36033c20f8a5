#!/usr/bin/env python3
"""Elastic runs of 1 to 4 processes: some are killed or stopped at random moments while others join; checks the outcome.

usage: tests/cli/ranks/kills_elastic.py --binary MILLRACE [--kills N] [--stops SHARE] [--seed N] [--checkpoint] [--max-steps N] [--work DIR]

    --kills N      at least N kills and stops, over the number of runs that this takes (300)
    --stops SHARE  share of the disturbances that are stops of 0.5 to 8 s; a process counts as lost after 1 s (0)
    --checkpoint   with a folder of checkpoints, too
    --max-steps N  end after N steps (0: after 8 epochs)

Of three runs one has no secret, one has a secret, and one has a secret and TLS.

Expected every time: whoever is not killed ends with status 0 within the limit, one of them prints the result, and its weights are those
of the undisturbed run. Exit status: 0 nothing was found, 1 something was."""

import argparse
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

TRAIN = ["train", "set", "--model", "cifar-cnn", "--batch", "40", "--epochs", "8", "--seed", "1", "--parts", "4", "--json", "--quiet"]
MOST = 4          # processes at a time
STARTS_MOST = 12  # in a run
DISTURBED_S = 60
LIMIT_S = 120     # to end, then
LAUNCHERS = ("OMPI_", "PMI", "SLURM_", "TORCHELASTIC_", "MILLRACE_", "LOCAL_", "GROUP_", "RANK", "WORLD_SIZE")


class Process:
    """A process of a run, and its output."""

    def __init__(self, number, command, folder, env):
        self.number, self.killed, self.stopped_until = number, False, None
        self.out, self.err = (os.path.join(folder, f"{name}.{number}") for name in ("out", "err"))
        with open(self.out, "wb") as out, open(self.err, "wb") as err:
            self.process = subprocess.Popen(command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err)

    def runs(self):
        return self.process.poll() is None

    def stop(self, seconds):
        self.process.send_signal(signal.SIGSTOP)
        self.stopped_until = time.monotonic() + seconds

    def go_on(self, at=float("inf")):
        if self.stopped_until is not None and at >= self.stopped_until:
            self.process.send_signal(signal.SIGCONT)
            self.stopped_until = None

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.killed = True

    def events(self, name):
        found = []
        with open(self.out, encoding="utf-8") as f:
            for line in f:
                try:
                    event = json.loads(line)
                except ValueError:
                    continue  # the last line of one that was killed
                if event["event"] == name:
                    found.append(event)
        return found

    def said(self):
        with open(self.err, encoding="utf-8", errors="replace") as f:
            return " / ".join(f.read().splitlines())[-600:]


def disturb(rng, processes, start, share):
    """Until the run is over, or has had enough. How many were killed, and stopped."""
    kills, stops, due = 0, 0, time.monotonic() + DISTURBED_S
    while time.monotonic() < due:
        time.sleep(rng.uniform(0.05, 1.2))
        for p in processes:
            p.go_on(time.monotonic())
        live = [p for p in processes if p.runs()]
        if not live or any(p.process.poll() == 0 for p in processes):
            break
        awake = [p for p in live if p.stopped_until is None]
        choice = rng.random()
        if choice < 0.5 and len(awake) > 1 and rng.random() < share:
            rng.choice(awake).stop(rng.uniform(0.5, 8))
            stops += 1
        elif choice < 0.5 and len(awake) > 1:
            rng.choice(awake).kill()
            kills += 1
        elif choice < 0.85 and len(live) < MOST and len(processes) < STARTS_MOST:
            start()
    for p in processes:
        p.go_on()
    return kills, stops


def findings(processes, expected):
    """Faults in how the processes ended."""
    found = []
    due = time.monotonic() + LIMIT_S
    for p in processes:
        try:
            p.process.wait(max(0.1, due - time.monotonic()))
        except subprocess.TimeoutExpired:
            found.append(f"process {p.number} hangs: {p.said()}")
            p.kill()
    results = [e["weights"] for p in processes for e in p.events("train")]
    for p in processes:
        if not p.killed and p.process.returncode != 0:
            found.append(f"process {p.number} ends with status {p.process.returncode}: {p.said()}")
    if not results or any(r != expected for r in results):
        found.append(f"weights {results}, expected {expected}")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--stops", type=float, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--checkpoint", action="store_true")
    parser.add_argument("--max-steps", type=int, default=0)
    parser.add_argument("--work")
    options = parser.parse_args()
    train = TRAIN + (["--max-steps", str(options.max_steps)] if options.max_steps else [])
    millrace, rng = os.path.abspath(options.binary), random.Random(options.seed)
    work = tempfile.mkdtemp(prefix="millrace-elastic-", dir=options.work)
    env = {k: v for k, v in os.environ.items() if not k.startswith(LAUNCHERS)}
    subprocess.run([millrace, "synth", "set", "--count", "24", "--quiet"], cwd=work, env=env, check=True, stdout=subprocess.DEVNULL)
    alone = subprocess.run([millrace, *train], cwd=work, env=env, check=True, capture_output=True, text=True)
    expected = json.loads(alone.stdout.splitlines()[-1])["weights"]
    kills = stops = runs = joined = bad = 0
    seconds = []
    try:
        while kills + stops < options.kills:
            shutil.rmtree(os.path.join(work, "run"), ignore_errors=True)
            more = ["--elastic", f"1:{MOST}", "--leave-out", "0"] + (["--silence", "1"] if options.stops else [])
            more += ["--checkpoint", "run", "--checkpoint-steps", "5"] if options.checkpoint else []
            own = {**env, "MILLRACE_MEET": f"127.0.0.1:{rng.randrange(20000, 32000)}", "MILLRACE_JOB": f"{work}.{runs}"}
            if runs % 3:
                own["MILLRACE_SECRET"] = "two runs of three have a secret"
            if runs % 3 == 2:
                own["MILLRACE_TLS"] = "1"
            processes = []

            def start(processes=processes, own=own, more=more):
                processes.append(Process(len(processes), [millrace, *train, *more], work, own))

            for _ in range(rng.randrange(2, MOST + 1)):
                start()
            begun = len(processes)
            killed, stopped = disturb(rng, processes, start, options.stops)
            kills, stops = kills + killed, stops + stopped
            found = findings(processes, expected)
            seconds += [e["seconds"] for p in processes for e in p.events("world") if e["seconds"]]
            runs, joined, bad = runs + 1, joined + len(processes) - begun, bad + len(found)
            for text in found:
                print(f"FOUND: run {runs}: {text}", flush=True)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    took = f", going on took {statistics.median(seconds):.2f} s in the middle, {max(seconds):.2f} at most" if seconds else ""
    print(f"{runs} runs, {kills} kills, {stops} stops, {joined} joined later, {len(seconds)} times observed going on{took}: {bad} findings, seed {options.seed}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
