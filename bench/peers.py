#!/usr/bin/env python3
"""millrace and the loaders people can install, on the same files and cores, taking turns.

usage: bench/peers.py MILLRACE --data FOLDER [--cifar FOLDER] [--rounds 5] [--seconds 3] [--threads 2] [--only a,b] [--json OUT]
                      [--venv DIR] [--cache DIR] [--no-install]

MILLRACE is the built command (build/release/tools/millrace; build/release/bench/bench_decode is built with it). FOLDER holds the pictures,
one sub-folder per class; --cifar a folder of the same kind with CIFAR-sized pictures. --only takes names (--list prints them), `ours` and
`peers`.

The job: JPEG files in the page cache -> RandomResizedCrop(224) + flip -> shuffled uint8 NHWC batches of 64 in host memory. Every contestant
is confined to the same `threads` cores and configured to use the same number of threads (or worker processes) there; the further threads
that a loader starts run on those cores, too. Ours has one reading thread and the main thread besides its workers, the peers have their main
thread or process and the threads that their libraries start. Our loader used through Python has that in its label. The peers and it run in
a virtual environment that this program makes, with the versions below; each is a process that is stopped (SIGSTOP) between its turns. A
turn is 6 batches to get going and then whole batches for --seconds. See rounds.py for how rounds and ratios are made, peer_loaders.py for
how each peer is set up.

Processor time and peak memory count all processes of a contestant; pages that processes share count in each of them (peak_rss_mb), or
once (pss_mb).

Printed and written with --json: a line for the run, one for each contestant, each ratio, and each contestant that is absent, and why.
"""
import argparse
import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time

from ours import DOORS, OURS, YARDSTICK, cache_folder, job_about, made_by_convert, our_loader, write_door_job, write_job, yardstick
from rounds import (Absent, ROUNDS_FEWEST, absent_row, best_turns, call, column, contestant_row, last_words, pair_row, ratios, run_rounds,
                    run_row, tell, use_cores, warn_if_shared, write_rows)

HERE = os.path.dirname(os.path.abspath(__file__))
SKIP = 6  # batches at the start of a turn, the same number as `millrace bench loader` skips

PINS = {  # what pip is asked for; of the second name of a pair the same version does as well
    "nvidia-dali-cuda130": "2.4.0", "tensorflow-cpu": "2.21.0", "torch": "2.15.0", "torchvision": "0.29.2", "spdl": "0.8.0",
    "grain": "0.2.18", "ffcv": "1.0.2", "webdataset": "1.0.2", "mosaicml-streaming": "0.13.0", "opencv-python-headless": "5.0.0.93",
    "pillow": "13.0.0",
}
SAME_AS = {"tensorflow-cpu": "tensorflow", "opencv-python-headless": "opencv-python"}
SYSTEM_PACKAGES = {  # Debian's and Ubuntu's, for what pip builds or loads
    "ffcv": "libopencv-dev libturbojpeg0-dev pkg-config g++ python3-dev", "spdl": "libavdevice59 libavfilter8 (FFmpeg's libraries)",
}
PEERS = {  # name: label, required packages (its version is the first one's), the job
    "tf-data": ("tf.data, decode_and_crop_jpeg", ["tensorflow-cpu"], "photos"),
    "dali-cpu": ("DALI, CPU operators", ["nvidia-dali-cuda130"], "photos"),
    "torch-opencv": ("torch DataLoader + OpenCV", ["torch", "opencv-python-headless"], "photos"),
    "torch-pillow": ("torch DataLoader + Pillow", ["torch", "pillow", "opencv-python-headless"], "photos"),
    "torchvision": ("torch DataLoader + torchvision v2", ["torchvision", "torch", "opencv-python-headless"], "photos"),
    "webdataset": ("WebDataset + OpenCV", ["webdataset", "torch", "opencv-python-headless"], "photos"),
    "streaming": ("MosaicML Streaming + OpenCV", ["mosaicml-streaming", "torch", "opencv-python-headless"], "photos"),
    "grain": ("Grain + OpenCV, threads", ["grain", "opencv-python-headless"], "photos"),
    "spdl": ("SPDL", ["spdl"], "photos"),
    "ffcv-jpeg": ("FFCV, its own q90 file of side 512", ["ffcv", "torch", "opencv-python-headless", "pillow"], "photos"),
    "ffcv-raw": ("FFCV RAW, longer side 256", ["ffcv", "torch", "opencv-python-headless", "pillow"], "photos"),
    "ffcv-cifar": ("FFCV RAW, CIFAR pictures", ["ffcv", "torch", "opencv-python-headless", "pillow"], "cifar"),
}
JPEG_PEERS = [name for name, (_, _, job) in PEERS.items() if job == "photos" and name != "ffcv-raw"]
PAIRS = [("door-folder", "folder"), ("door-records", "records"), ("door-coef", "coef"), ("door-folder", "best-jpeg"),
         ("door-records", "best-jpeg"), ("door-torch", "torchvision"), ("folder", "tf-data"), ("folder", "dali-cpu"), ("folder", "torch-opencv"), ("folder", "torch-pillow"),
         ("folder", "best-jpeg"), ("records", "best-jpeg"), ("coef", "ffcv-raw"), ("raw", "ffcv-raw"), ("cifar", "ffcv-cifar")]


# ---- the virtual environment ----

def installed(python, package):
    """Its version there, or None."""
    asked = "import importlib.metadata as m, sys; print(m.version(sys.argv[1]))"
    done = subprocess.run([python, "-c", asked, package], capture_output=True, text=True, check=False)
    return done.stdout.strip().split("+")[0] if done.returncode == 0 else None


def version_of(python, package):
    for name in (package, SAME_AS.get(package)):
        if name and installed(python, name) == PINS[package]:
            return PINS[package]
    return None


def make_venv(folder, may_install):
    python = os.path.join(folder, "bin", "python")
    if not os.path.exists(python):
        if not may_install:
            raise Absent(f"no virtual environment in {folder}")
        done = subprocess.run([sys.executable, "-m", "venv", folder], capture_output=True, text=True, check=False)
        if done.returncode:
            raise Absent(f"no virtual environment: {last_words(done.stdout + done.stderr)} (apt install python3-venv)")
    return python


def install(python, packages, may_install):
    """All of them with the pinned versions, or Absent."""
    for package in packages:
        if version_of(python, package):
            continue
        if not may_install:
            raise Absent(f"{package} {PINS[package]} is not installed")
        tell(f"installing {package} {PINS[package]}")
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as limits:
            limits.write("".join(f"{name}=={pin}\n" for name, pin in PINS.items()))
            limits.flush()
            done = subprocess.run([python, "-m", "pip", "install", "--disable-pip-version-check", "-q", "-c", limits.name,
                                   f"{package}=={PINS[package]}"], capture_output=True, text=True, check=False)
        if done.returncode:
            needs = f"; it may need: apt install {SYSTEM_PACKAGES[package]}" if package in SYSTEM_PACKAGES else ""
            raise Absent(f"pip install {package}=={PINS[package]} failed: {last_words(done.stderr)}{needs}")


# ---- contestants that are peers ----

class Peer:
    """One process over all rounds, stopped between its turns."""

    def __init__(self, ident, label, command, hint="", seconds_most=900, env=None, kind="peer", **about):
        self.ident, self.label, self.about, self.hint, self.kind = ident, label, about, hint, kind
        self.log = tempfile.TemporaryFile("w+")
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True, bufsize=1,
                                      start_new_session=True, env={**os.environ, **(env or {})})
        self.answer(seconds_most)  # making files of its own is part of it
        self.signal(signal.SIGSTOP)

    def signal(self, number):
        try:
            os.killpg(self.child.pid, number)
        except ProcessLookupError:
            pass

    def answer(self, seconds_most):
        ready, _, _ = select.select([self.child.stdout], [], [], seconds_most)
        line = self.child.stdout.readline() if ready else ""
        if line:
            return json.loads(line)
        self.close(patience_s=0.5)
        with self.log:
            self.log.seek(0)
            why = last_words(self.log.read()) if ready else f"no answer within {seconds_most:.0f} s"
        raise Absent(f"{why}{self.hint}")

    def turn(self, seconds):
        self.signal(signal.SIGCONT)
        try:
            self.child.stdin.write(json.dumps({"skip": SKIP, "seconds": seconds}) + "\n")
        except OSError:
            pass  # it is gone; its last output is read below
        found = self.answer(60 + 10 * seconds)
        self.signal(signal.SIGSTOP)
        return {"samples_per_s": found["samples"] / found["seconds"], "cpu_s_per_1000": 1e3 * found["cpu_s"] / found["samples"],
                "peak_rss_mb": found["peak_rss_mb"], "pss_mb": found["pss_mb"]}

    def close(self, patience_s=5):
        try:
            self.child.stdin.close()
        except OSError:
            pass  # unwritten input has no reader
        self.signal(signal.SIGCONT)
        try:
            self.child.wait(patience_s)
        except subprocess.TimeoutExpired:
            pass
        self.signal(signal.SIGKILL)  # and its remaining children
        self.child.wait()
        self.child.stdout.close()


def peer_contestant(args, name, jobs):
    label, packages, job = PEERS[name]
    if job not in jobs:
        raise Absent("no --cifar FOLDER was given")
    python = make_venv(args.venv, not args.no_install)
    install(python, packages, not args.no_install)
    hint = f" (apt install {SYSTEM_PACKAGES[packages[0]]})" if packages[0] in SYSTEM_PACKAGES else ""
    versions = ", ".join(f"{package} {PINS[package]}" for package in packages[:2])
    command = [python, os.path.join(HERE, "peer_loaders.py"), name, jobs[job]["file"]]
    return Peer(name, label, command, hint, version=versions, job=job)


def door_contestant(args, name, jobs):
    """The library of MILLRACE's build folder through python/ of this tree."""
    label, data = DOORS[name]
    python = make_venv(args.venv, not args.no_install)
    for package in ("numpy", *(["torch"] if name == "door-torch" else [])):
        if package in PINS:
            install(python, [package], not args.no_install)
        elif not installed(python, package):
            raise Absent(f"{package} is not installed in {args.venv}")
    job, build = jobs["photos"], os.path.dirname(os.path.dirname(os.path.abspath(args.millrace)))
    path = job["folder"] if data == "folder" else made_by_convert(args.millrace, data, job, args.threads)[0]
    command = [python, os.path.join(HERE, "peer_loaders.py"), name, write_door_job(job, name, os.path.abspath(path), args.threads)]
    tree = os.path.join(os.path.dirname(HERE), "python")
    version = call([args.millrace, "--version"], 60)[0].splitlines()[0]
    return Peer(name, label, command, kind="ours", version=version, job="photos",
                env={"MILLRACE_PYTHON_LIBRARIES": build, "PYTHONPATH": tree})


# ---- the comparison ----

def gather(args, names, jobs, ready):
    """Contestants that are ready, appended to `ready`; {name: why} of the absent ones."""
    absent = {}
    for name in [YARDSTICK, *names]:
        try:
            ready.append(yardstick(args.millrace, jobs, args.threads) if name == YARDSTICK else
                         our_loader(args.millrace, name, jobs, args.threads) if name in OURS else
                         door_contestant(args, name, jobs) if name in DOORS else peer_contestant(args, name, jobs))
            tell(f"{name}: ready")
        except Absent as why:
            absent[name] = str(why)
            tell(f"{name}: absent: {why}")
    return absent


def label_of(name):
    return OURS[name][0] if name in OURS else DOORS[name][0] if name in DOORS else PEERS[name][0] if name in PEERS else YARDSTICK


def rows_of(args, cores, jobs, contestants, results, absent, took):
    rows = [{**run_row("peers", args, cores, results.get(YARDSTICK, []), took), "data": job_about(jobs), "pins": PINS}]
    base = column(results, YARDSTICK)
    for c in contestants:
        if any(results[c.ident]):
            rows.append(contestant_row("peers", c, results[c.ident], base if c.about.get("job") != "cifar" else []))
    results = {**results, "best-jpeg": best_turns([results[name] for name in JPEG_PEERS if name in results])}
    for over, under in PAIRS:
        values = ratios(column(results, over), column(results, under))
        if values:
            cpu = ratios(column(results, under, "cpu_s_per_1000"), column(results, over, "cpu_s_per_1000"))
            rows.append(pair_row("peers", f"{over} / {under}", over, under, values, cpu))
    return rows + [absent_row("peers", name, label_of(name), why) for name, why in absent.items()]


def show(rows):
    line = "{:52} {:>10} {:>8} {:>13} {:>10} {:>8}".format
    print(line("", "samples/s", "÷ full", "range", "CPU s/1000", "MB"))
    for row in sorted((r for r in rows if r["row"] == "contestant"), key=lambda r: -r["median_samples_per_s"]):
        to = row.get("to_yardstick")
        print(line(row["label"], f"{row['median_samples_per_s']:,.0f}", *([f"{to['median']:.2f}", f"{to['min']:.2f}-{to['max']:.2f}"]
                                                                          if to else ["", ""]),
                   f"{row['cpu_s_per_1000']:.3f}", f"{row['peak_rss_mb']:,.0f}"))
    for row in rows:
        if row["row"] == "pair":
            print(f"{row['id']:52} {row['median']:.2f}  ({row['min']:.2f}-{row['max']:.2f}, {row['rounds']} rounds; by processor time "
                  f"{row['cpu']['median']:.2f})")
    for row in rows:
        if row["row"] == "absent":
            print(f"absent: {row['label']}: {row['reason']}")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("millrace", nargs="?")
    parser.add_argument("--data")
    parser.add_argument("--cifar")
    parser.add_argument("--rounds", type=int, default=ROUNDS_FEWEST)
    parser.add_argument("--seconds", type=float, default=3, help="of a turn")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", help="names, ours, peers; comma between them")
    parser.add_argument("--json")
    parser.add_argument("--venv", default=cache_folder("venv"))
    parser.add_argument("--cache", default=cache_folder("data"), help="files made from the data (about four times its size)")
    parser.add_argument("--no-install", action="store_true")
    parser.add_argument("--list", action="store_true", help="the contestants' names")
    args = parser.parse_args()
    if args.list:
        print("\n".join(f"{name:14} {label_of(name)}" for name in [*OURS, *DOORS, *PEERS]))
        sys.exit(0)
    if not args.millrace or not args.data:
        parser.error("MILLRACE and --data FOLDER are needed")
    return args


def chosen(only):
    """
    >>> chosen("ours,tf-data")
    ['folder', 'records', 'coef', 'raw', 'cifar', 'door-folder', 'door-records', 'door-coef', 'door-torch', 'tf-data']
    """
    names = [*OURS, *DOORS, *PEERS]
    if not only:
        return names
    wanted = re.split(r"[,\s]+", only)
    unknown = [name for name in wanted if name not in names and name not in ("ours", "peers")]
    if unknown:
        sys.exit(f"--only: expected {', '.join(names)}, ours or peers; found {', '.join(unknown)}")
    return [name for name in names if name in wanted or ("peers" if name in PEERS else "ours") in wanted]


def main():
    args = parse()
    names, start = chosen(args.only), time.monotonic()
    if args.rounds < ROUNDS_FEWEST:
        tell(f"--rounds {args.rounds}: fewer than {ROUNDS_FEWEST} are a rehearsal, not a result")
    cores = use_cores(args.threads)
    try:
        jobs = {"photos": write_job(args.cache, "photos", args.data, args.threads)}
        if args.cifar:
            jobs["cifar"] = write_job(args.cache, "cifar", args.cifar, args.threads)
    except (Absent, OSError) as why:
        sys.exit(str(why))
    contestants = []
    try:
        absent = gather(args, names, jobs, contestants)
        results, dropped = run_rounds(contestants, args.rounds, args.seconds, YARDSTICK, tell)
    finally:
        for c in contestants:
            c.close()
    rows = rows_of(args, cores, jobs, contestants, results, {**absent, **dropped}, time.monotonic() - start)
    show(rows)
    warn_if_shared(rows[0])
    if args.json:
        write_rows(args.json, rows)
    if YARDSTICK in {**absent, **dropped}:
        sys.exit("without the yardstick there are no ratios to full decode")


if __name__ == "__main__":
    main()
