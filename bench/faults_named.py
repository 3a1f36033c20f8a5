#!/usr/bin/env python3
"""Faults that are injected on purpose, and what millrace names.

usage: bench/faults_named.py MILLRACE [--seconds 5] [--cache DIR] [--json OUT] [--only TEXT]

A loader that is fast enough for a simulated device gets one fault at a time, a real one: threads that want the same cores, a
system call that takes longer, a lock that somebody holds. `train --json` says what the device waited for, its verdict, and which
worker or file stuck out. A fault counts as named when the verdict is one of those that are right for it, and where it is one
worker or one file, that one and no other is listed. Without a fault nothing may be named, and the device may not wait.

Needs a C compiler for the shim (fault_shim.c). Times depend on the machine, what is named should not."""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time

from ours import cache_folder
from rounds import Absent, call, machine, tell

HERE = os.path.dirname(os.path.abspath(__file__))
BATCH, WORKERS = 32, 2
SLACK = 1.7  # the device takes so many times as long as the loader for a batch


class Fault:
    def __init__(self, name, what, verdicts, *, env=None, options=(), spinners=0, pin=None, worker=None, file=None):
        self.name, self.what, self.verdicts = name, what, verdicts
        self.env, self.options, self.spinners, self.pin = env or {}, list(options), spinners, pin
        self.worker, self.file = worker, file


def faults(slow_file):
    cores = os.cpu_count()
    return [
        Fault("none", "nothing", ["compute-bound"]),
        Fault("slow worker", "worker 1 is held to core 0, which four other programs of higher priority want all the time",
              ["short of cores", "input-bound"], spinners=4, pin=0, worker=1),
        Fault("slow shard", f"each pread from {slow_file} takes 25 ms more", ["storage-bound"], options=["--io", "pread"],
              env={"FAULT_FILE": slow_file, "FAULT_FILE_MS": "25"}, file=slow_file),
        Fault("lock held", "a thread holds a lock for 20 ms out of 22, which workers need to take a chunk", ["disturbed"],
              env={"FAULT_LOCK_MS": "20"}),
        Fault("noisy neighbour", f"{3 * cores} other programs want all {cores} cores all the time", ["short of cores"],
              spinners=3 * cores),
    ]


# ---- what is injected ----

def spin(count, core):
    pin = (lambda: os.sched_setaffinity(0, {core})) if core is not None else None
    return [subprocess.Popen([sys.executable, "-c", "while True: pass"], preexec_fn=pin) for _ in range(count)]


def stop(programs):
    for program in programs:
        program.kill()
        program.wait()


def thread_called(pid, name):
    """Its number, once it is there."""
    folder = f"/proc/{pid}/task"
    try:
        for tid in os.listdir(folder):
            with open(f"{folder}/{tid}/comm", encoding="utf-8") as f:
                if f.read().strip() == name:
                    return int(tid)
    except OSError:
        pass
    return None


def pin_worker(program, worker, core):
    """From when the thread is there until the program ends it is held to the core, and others go before it."""
    while program.poll() is None:
        tid = thread_called(program.pid, f"worker {worker}")
        if tid is not None:
            os.sched_setaffinity(tid, {core})
            os.setpriority(os.PRIO_PROCESS, tid, 10)
            return
        time.sleep(0.005)


def make_shim(folder):
    path = os.path.join(folder, "fault_shim.so")
    try:
        call([os.environ.get("CC", "cc"), "-O2", "-shared", "-fPIC", "-o", path, os.path.join(HERE, "fault_shim.c"), "-ldl", "-lpthread"],
             60)
    except OSError as e:
        raise Absent(f"no C compiler for the shim: {e}") from e
    return path


# ---- a run ----

def make_data(millrace, cache):
    """Record files of one set: four shards and more."""
    os.makedirs(cache, exist_ok=True)
    shards = os.path.join(cache, "faults.shards")
    if not os.path.exists(shards):
        folder = os.path.join(cache, "faults")
        call([millrace, "synth", folder, "--quiet", "--force", "--size", "160", "--max-size", "320", "--count", "60"], 600)
        call([millrace, "convert", folder, shards, "--quiet", "--force", "--shard-size", "1M"], 600)
    return shards


def loader_rate(millrace, data):
    text = call([millrace, "bench", "loader", data, "--augment", "rrc224", "--training", "--batch", str(BATCH), "--workers",
                 str(WORKERS), "--resident", "0", "--seconds", "1", "--json", "--quiet"], 60)[0]
    return json.loads(text.splitlines()[-1])["samples_per_s"]


def run(millrace, data, fault, step_ms, seconds, shim):
    steps = max(20, round(1000 * seconds / step_ms))
    command = [millrace, "train", data, "--model", "resnet18", "--augment", "rrc224", "--batch", str(BATCH), "--workers", str(WORKERS),
               "--resident", "0", "--val", "none", "--epochs", "1000", "--max-steps", str(steps), "--warmup-steps", "8",
               "--devices", f"sim:1,step={step_ms:.3f}ms", "--json", "--quiet", *fault.options]
    env = dict(os.environ, **fault.env, **({"LD_PRELOAD": shim} if fault.env else {}))
    spinners = spin(fault.spinners, fault.pin)
    try:
        program = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if fault.pin is not None:
            threading.Thread(target=pin_worker, args=(program, fault.worker, fault.pin), daemon=True).start()
        out, err = program.communicate(timeout=60 + 20 * seconds)
    finally:
        stop(spinners)
    if program.returncode:
        raise Absent(f"{' '.join(command)}: {err.strip()}")
    return [json.loads(line) for line in out.splitlines()]


def judge(fault, lines):
    """What was told of the whole run: the last epochs' reports by time, and who stuck out."""
    epochs = [line for line in lines if line["event"] == "epoch" and line["steps"] > line["warmup_steps"]]
    end = lines[-1]
    time_of = [e["seconds"] for e in epochs]
    causes = {name: sum(e["causes"][name] * t for e, t in zip(epochs, time_of)) / sum(time_of) for name in epochs[0]["causes"]}
    verdicts = {}
    for e, t in zip(epochs, time_of):
        kind = e["verdict"].split(":")[0]
        verdicts[kind] = verdicts.get(kind, 0) + t
    verdict = max(verdicts, key=verdicts.get)
    workers = [w["worker"] for w in end["slow_workers"]]
    files = [os.path.basename(f["file"]) for f in end["slow_files"]]
    named = verdict in fault.verdicts and workers == ([] if fault.worker is None else [fault.worker]) and \
        files == ([] if fault.file is None else [fault.file])
    return {"fault": fault.name, "injected": fault.what, "expected": fault.verdicts, "verdict": verdict,
            "stall_percent": round(100 * sum(causes.values()), 1),
            "causes_percent": {n: round(100 * v, 1) for n, v in sorted(causes.items(), key=lambda c: -c[1]) if v >= 0.005},
            "slow_workers": end["slow_workers"], "slow_files": [dict(f, file=os.path.basename(f["file"])) for f in end["slow_files"]],
            "named": named}


def show(row):
    causes = ", ".join(f"{name} {percent:g} %" for name, percent in list(row["causes_percent"].items())[:3]) or "none"
    who = "; ".join([f"worker {w['worker']}: {w['times']:.1f} times ({w['cause']})" for w in row["slow_workers"]]
                    + [f"{f['file']}: {f['times']:.1f} times" for f in row["slow_files"]]) or "nobody"
    tell(f"{row['fault']:16} {'named' if row['named'] else 'NOT NAMED':10} verdict {row['verdict']}; stall {row['stall_percent']:g} %: "
         f"{causes}; sticks out: {who}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("millrace")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--cache", default=cache_folder("faults"))
    parser.add_argument("--json")
    parser.add_argument("--only", default="")
    a = parser.parse_args()
    millrace = os.path.abspath(a.millrace)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        shim = make_shim(folder)
        data = make_data(millrace, a.cache)
        with open(data, encoding="utf-8") as f:
            names = [word for line in f for word in line.split() if word.endswith(".mrec")]
        step_ms = 1000 * BATCH * SLACK / loader_rate(millrace, data)
        for fault in faults(os.path.basename(names[len(names) // 2])):
            if a.only in fault.name:
                rows.append(judge(fault, run(millrace, data, fault, step_ms, a.seconds, shim)))
                show(rows[-1])
    if a.json:
        about = {"machine": machine(), "step_ms": round(step_ms, 2), "batch": BATCH, "workers": WORKERS, "seconds": a.seconds}
        with open(a.json, "w", encoding="utf-8") as f:
            json.dump({"about": about, "faults": rows}, f, indent=1)
            f.write("\n")
    return 0 if all(row["named"] for row in rows) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Absent as e:
        sys.exit(f"faults_named: {e}")
