#!/usr/bin/env python3
"""Runs every command with one call after the other failing, and judges how it ends.

usage: tests/faults/run.py BUILD [--full] [--job NAME] [--class NAME] [--error NAME] [--at N] [--seed N] [--seconds N] [--jobs N]
                                 [--cases N] [--kill | --power | --pairs] [--work DIR] [--list] [--all]

    (nothing)   the n-th allocation, read, write, open, ... fails: the run ends as the undisturbed one, stdout and files compared,
                or with a message and an exit status other than 0, and nothing half under a final name; then it is repeated
                (--resume, --force as the manual says) and comes to the same bytes
    --kill      killed at the n-th call that changes a file, and repeated
    --power     the same, and changes not fsynced by then are taken back; also after the end of a run, which has to be durable
    --pairs     the same command twice at once in one folder
    --full      every place and every error; otherwise a sample for --seconds (60), drawn with --seed, which is printed
    --cases N   the first N of the sample, however long they take: the same ones on every machine where the places are the same
    --all       tell what fault_known.py knows as well
    --at N      that place only, with the run's output

README.md says more. Exit status: 0 nothing was found, 1 something was, 77 it cannot run here."""

import argparse
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from fault_jobs import CAN_DO_WITHOUT, JOBS, PAIRS, make_inputs  # noqa: E402
from fault_known import why_known  # noqa: E402
from fault_judge import Expected, matches, message_lacks, restore, said, reports, tree  # noqa: E402

CLASSES = ["alloc", "read", "write", "print", "open", "list", "name", "sync", "space", "stat", "folder", "close", "lock", "meta", "thread",
           "ring", "request", "change"]  # in the order of inject.h
REPORT_BYTES = 8 + 32 * 8 + 8 + 8184
ERRORS = {"alloc": ["ENOMEM", "ENOMEM+"], "read": ["EIO", "EINTR", "short"], "write": ["ENOSPC", "EIO", "EINTR", "short", "ENOSPC+"],
          "print": ["ENOSPC"], "open": ["EMFILE", "EIO", "EACCES", "EINTR", "EMFILE+"], "list": ["EIO"], "name": ["EIO"], "sync": ["EIO"], "space": ["ENOSPC"],
          "stat": ["EIO"], "folder": ["ENOSPC"], "close": ["EIO"], "lock": ["ENOLCK", "EINTR"], "meta": ["EPERM"],
          "thread": ["EAGAIN", "EAGAIN+"], "ring": ["EIO", "ENOMEM", "EINTR", "EAGAIN"], "request": ["EIO", "EINTR", "EAGAIN", "short"]}
MUST_NOT_PASS = {"sync", "space", "write", "print", "name"}  # a success in spite of these is reported; calls with MAY_PASS errors are repeated
MAY_PASS = {"EINTR", "short", "EAGAIN"}
KILLS = ["kill", "torn"]
LOSSES = ["data", "names", "all"]
PRINT_MOST = 200  # places of class print that are tried in a job: each number of a JSON line is one
TIMEOUT_S = 60


class Run:
    """One run of a command, and its output."""

    def __init__(self, place, args, fault=None, journal=None, keep=False, contents=True):
        self.place, self.args = place, args
        report = place.scratch("report")
        with open(report, "wb") as f:
            f.truncate(REPORT_BYTES)
        env = dict(place.env, FAULTS=fault or "", FAULTS_REPORT=report, FAULTS_JOURNAL=journal or "")
        self.hung = False
        process = subprocess.Popen([place.millrace, *args], cwd=place.folder, env=env, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            self.stdout, self.stderr = process.communicate(timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.hung = True
            process.kill()
            self.stdout, self.stderr = process.communicate()
        self.status = process.returncode
        with open(report, "rb") as f:
            data = f.read()
        assert data[:8] == b"faults1\0", "the library was not loaded"
        self.counts = dict(zip(CLASSES, struct.unpack_from(f"<{len(CLASSES)}Q", data, 8)))
        self.hits = struct.unpack_from("<Q", data, 8 + 32 * 8)[0]
        self.where = data[8 + 33 * 8:].rstrip(b"\0").decode().splitlines()
        self.files = tree(place.folder) if contents else {}


class Place:
    """A folder in which one run after the other is made, each in an empty one."""

    def __init__(self, bench, number):
        self.bench, self.millrace = bench, bench.millrace
        self.base = os.path.join(bench.work, f"w{number}")
        os.makedirs(self.base)
        self.folder = os.path.join(bench.work, f"run{number}")
        self.env = dict(os.environ, LD_PRELOAD=bench.library, LC_ALL="C", HOME=self.folder, XDG_CACHE_HOME=os.path.join(self.folder, "xdg"),
                        OMP_NUM_THREADS="1", MALLOC_CHECK_="3", MALLOC_PERTURB_="165")

    def scratch(self, name):
        return os.path.join(self.base, name)

    def fresh(self, job):
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)
        for name in job.copies:
            source, to = os.path.join(self.bench.inputs, name), os.path.join(self.folder, name)
            shutil.copytree(source, to) if os.path.isdir(source) else shutil.copy2(source, to)

    def accepts(self, args):
        env = dict(self.env)
        env.pop("LD_PRELOAD")
        return subprocess.run([self.millrace, *args], cwd=self.folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, check=False, timeout=TIMEOUT_S).returncode == 0

    def journal(self):
        path = self.scratch("journal")
        shutil.rmtree(path, ignore_errors=True)
        os.makedirs(path)
        return path


class Bench:
    def __init__(self, options):
        self.options = options
        self.millrace = os.path.abspath(os.path.join(options.build, "tools", "millrace"))
        self.library = os.path.abspath(os.path.join(options.build, "tests", "faults", "libmrt_inject.so"))
        for path in (self.millrace, self.library):
            if not os.path.exists(path):
                print(f"SKIP: {path} is not there; build the targets millrace and mrt_inject")
                sys.exit(77)
        base = options.work or ("/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
        self.work = tempfile.mkdtemp(prefix="millrace-faults-", dir=base)
        self.inputs = os.path.join(self.work, "in")
        self.findings = {}
        self.passed = {}
        self.runs = self.hits = 0
        self.lock = threading.Lock()
        self.names = {}

    def close(self):
        shutil.rmtree(self.work, ignore_errors=True)

    def name_of(self, frames, most=4):
        """The innermost functions of our own among them."""
        own = [f.rsplit("+", 1) for f in frames if "libmrt_inject" not in f.split("+")[0]]
        ours = [(m, o) for m, o in own if os.path.basename(m) == "millrace" or "libmillrace" in m]
        out = []
        for module, offset in ours[:most]:
            if (module, offset) not in self.names:
                at = hex(int(offset, 16) - 1)
                text = subprocess.run(["addr2line", "-f", "-e", self.millrace, at], capture_output=True, text=True, check=False)
                self.names[module, offset] = text.stdout.split("\n")[0] or offset
            out.append(self.names[module, offset].split(".")[0])
        return " < ".join(out)

    def find(self, kind, job, fault, run, text=""):
        site = self.name_of(run.where)
        cls, at, error = fault.split(":")
        why = why_known(kind, cls, self.name_of(run.where, most=6), job.name)
        text = re.sub(r"(mridx|part|index)\.[A-Za-z0-9]{6}$", r"\1.XXXXXX", text)
        with self.lock:
            case = (job.name, at, run.stderr.decode("utf-8", "replace").strip()[-300:])
            self.findings.setdefault((kind, cls, site, text, why), {}).setdefault(error, []).append(case)

    def count(self, run):
        with self.lock:
            self.runs += 1
            self.hits += run.hits > 0


def learn(bench, place, job, times=3):
    runs = []
    for _ in range(times):
        place.fresh(job)
        run = Run(place, job.args)
        if run.status != job.exit or run.hung:
            raise SystemExit(f"{job.name}: undisturbed: expected exit status {job.exit}, found {run.status}\n{run.stderr.decode()}")
        runs.append(run)
    counts = {c: max(r.counts[c] for r in runs) for c in CLASSES}
    return Expected(job, runs), counts


def repeat(bench, place, job, expected, fault, first):
    """After a failure or a kill: the command, repeated, gives the undisturbed result."""
    run = Run(place, job.again)
    text = None
    if run.hung:
        text = "hangs"
    elif run.status != job.exit:
        text = f"exit status {run.status}"
    else:  # files left by the first run have been reported
        left = {p: d for p, d in run.files.items() if p in expected.outputs or p not in first.files or matches(p, job.parts)}
        text = expected.files_of_success(left)
    if text:
        run.where = first.where
        bench.find("repeated", job, fault, run, text)


def passes(site):
    return any(name in site.split(" < ") for name in CAN_DO_WITHOUT)


def disturb(bench, place, job, expected, copies, fault):
    """One run with one fault."""
    cls, _, error = fault.split(":")
    place.fresh(job)
    run = Run(place, job.args, fault)
    bench.count(run)
    if run.hung:
        bench.find("hang", job, fault, run)
    elif run.status < 0:
        bench.find("crash", job, fault, run, signal.Signals(-run.status).name)
    elif run.status == job.exit and run.status in (0, 3):
        text = None if expected_said(expected, run) else "other stdout"
        text = text or expected.files_of_success(run.files)
        if text and text.startswith("left ") and reports(cls, run.stderr, run.stdout, error, text[len("left "):]):
            text = None
        if text:
            bench.find("wrong", job, fault, run, text)
        elif run.hits and cls in MUST_NOT_PASS and error not in MAY_PASS and not passes(bench.name_of(run.where)) \
                and not reports(cls, run.stderr, run.stdout, error):
            bench.find("ignored", job, fault, run)
        else:
            with bench.lock:
                bench.passed[job.name, cls] = bench.passed.get((job.name, cls), 0) + 1
    elif run.status != 1 or (job.exit == 1 and expected_said(expected, run) and not run.hits):
        if not run.hits and run.status == job.exit:
            return run
        bench.find("status", job, fault, run, f"exit status {run.status}")
    else:
        lacks = message_lacks(cls, run.stderr, run.stdout, error) if job.exit != 1 or not expected_said(expected, run) else None
        if lacks:
            bench.find("message", job, fault, run, lacks)
        text = expected.files_of_failure(run.files, copies, place.accepts)
        if text:
            bench.find("left", job, fault, run, text)
        elif expected.outputs:
            repeat(bench, place, job, expected, fault, run)
    if tree(bench.inputs, contents=False) != bench.inputs_tree:
        bench.find("input", job, fault, run, "an input was changed")
        bench.inputs_tree = tree(bench.inputs, contents=False)
    return run


def expected_said(expected, run):
    return said(run.stdout) == expected.stdout


def kill(bench, place, job, expected, copies, fault, loss):
    cls, at, error = fault.split(":")
    place.fresh(job)
    journal = place.journal() if loss else None
    run = Run(place, job.args, fault, journal=journal)
    bench.count(run)
    if run.hung:
        bench.find("hang", job, fault, run)
        return run
    label = f"{cls}:{at}:{error}" + (f",lost={loss}" if loss else "")
    if run.status != -signal.SIGKILL:
        if run.hits:
            bench.find("status", job, fault, run, f"exit status {run.status} instead of the kill")
        elif loss and run.status == job.exit and job.exit != 1:
            restore(place.folder, journal, loss)
            files = tree(place.folder)
            text = expected.files_of_success({p: d for p, d in files.items() if not matches(p, job.returning) or p in expected.outputs})
            if text:
                bench.find("lost", job, label, run, text)
        return run
    if loss:
        restore(place.folder, journal, loss)
        run.files = tree(place.folder)
    text = expected.files_of_failure(run.files, copies, place.accepts, killed=True)
    if text and not (loss and job.unsynced and text.startswith("half")):
        bench.find("left", job, label, run, text)
    repeat(bench, place, job, expected, label, run)
    return run


def pair(bench, place, job, expected, copies, number, rng):
    """Two at once: each ends well or says why not, and what has a final name is whole."""
    place.fresh(job)
    delay = rng.choice([0, 0, 0.001, 0.003, 0.01, 0.03])
    started = []
    for i in range(2):
        env = dict(place.env)
        env.pop("LD_PRELOAD")
        started.append(subprocess.Popen([bench.millrace, *job.args], cwd=place.folder, env=env, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        if i == 0:
            time.sleep(delay)
    ends = []
    for p in started:
        try:
            out, err = p.communicate(timeout=TIMEOUT_S)
            ends.append((p.returncode, out, err))
        except subprocess.TimeoutExpired:
            p.kill()
            ends.append((None, *p.communicate()))
    bench.runs += 1
    shown = type("Ended", (), {})()
    shown.where, shown.hits = [], 1
    shown.stderr = b" | ".join(e[2].strip()[-140:] for e in ends)
    fault = f"pair:{number}:two"
    for status, out, err in ends:
        shown.stdout = out
        if status is None:
            bench.find("hang", job, fault, shown)
        elif status < 0:
            bench.find("crash", job, fault, shown, signal.Signals(-status).name)
        elif status == job.exit:
            late = b" epochs are done" in err  # the other one had come to its end before this one looked
            if not expected_said(expected, shown) and not late and "resumed" not in out.decode():
                bench.find("wrong", job, fault, shown, "other stdout")
        elif status not in (1, 2):
            bench.find("status", job, fault, shown, f"exit status {status}")
        elif b"millrace: " not in err:
            bench.find("message", job, fault, shown, "no message")
    files = tree(place.folder)
    won = any(e[0] == job.exit for e in ends)
    if not won:
        bench.find("pair", job, fault, shown, "both failed")
    text = expected.files_of_success(files) if won else expected.files_of_failure(files, copies, place.accepts)
    if text:
        bench.find("left", job, fault, shown, text)


def copies_of(bench, job):
    out = {}
    for name in job.copies:
        path = os.path.join(bench.inputs, name)
        if os.path.isdir(path):
            out[name] = None
            out.update({os.path.join(name, k): v for k, v in tree(path).items()})
        else:
            with open(path, "rb") as f:
                out[name] = f.read()
    return out


def plan(bench, jobs, counts, rng):
    """Every (job, fault, loss), in the order in which they are run."""
    o = bench.options
    out = []
    for job in jobs:
        if o.pairs:
            out += [(job, f"pair:{n}:two", None) for n in range(o.rounds)]
            continue
        for cls in (["change"] if o.kill or o.power else CLASSES[:-1]):
            if o.cls and cls != o.cls:
                continue
            for error in (KILLS if o.kill or o.power else ERRORS[cls]):
                if o.error and o.error != error:
                    continue
                plus = "+" if error.endswith("+") else ""
                places = range(1, counts[job.name][cls] + (2 if o.power else 1))  # power is lost after the end, too
                if cls == "print" and len(places) > PRINT_MOST:
                    places = sorted(rng.sample(places, PRINT_MOST))
                for n in ([o.at] if o.at else places):
                    for loss in (LOSSES if o.power else [None]):
                        out.append((job, f"{cls}:{n}{plus}:{error.rstrip('+')}", loss))
    if o.full:
        return out
    # a sample: first one of each command, class and error, then of each job, then whatever there is time for
    rng.shuffle(out)
    of_command, left = one_of_each(out, lambda job: job.args[0])
    of_job, rest = one_of_each(left, lambda job: job.name)
    return of_command + of_job + rest


def one_of_each(items, kind):
    """The first of each kind of job, class and error, and the others."""
    seen, first, rest = set(), [], []
    for item in items:
        key = (kind(item[0]), item[1].split(":")[0], item[1].split(":")[2], item[2])
        (rest if key in seen else first).append(item)
        seen.add(key)
    return first, rest


def table(bench, jobs, counts):
    used = [c for c in CLASSES if any(counts[j.name][c] for j in jobs)]
    print("\nplaces in an undisturbed run")
    print(f"{'job':18}" + "".join(f"{c:>8}" for c in used))
    for job in jobs:
        print(f"{job.name:18}" + "".join(f"{counts[job.name][c] or '-':>8}" for c in used))
    print(f"{'all':18}" + "".join(f"{sum(counts[j.name][c] for j in jobs):>8}" for c in used))


def tell(bench):
    """Prints the findings; returns how many kinds of them are new."""
    order = ["crash", "hang", "wrong", "input", "left", "lost", "repeated", "status", "pair", "message", "ignored"]
    new, known = 0, {}
    for kind in order:
        found = []
        for key, errors in sorted(bench.findings.items(), key=lambda item: item[0][:4]):
            if key[0] != kind:
                continue
            why = key[4]
            if why and not bench.options.all:
                known[why] = known.get(why, 0) + sum(len(c) for c in errors.values())
            else:
                found.append((key, errors))
        if found:
            print(f"\n{kind}: {sum(len(c) for _, v in found for c in v.values())} runs of {len(found)} kinds")
        for key, errors in found:
            tell_one(key, errors)
        new += len(found)
    for why, runs in sorted(known.items()):
        print(f"known: {runs} runs: {why}")
    return new


def tell_one(key, errors):
    _, cls, site, text, _ = key
    print(f"  {cls}: {text}\n      {site or '(place unknown)'}")
    for error, cases in errors.items():
        places = {}
        for job, at, _ in cases:
            places.setdefault(job, []).append(at)
        for at in places.values():
            at.sort(key=lambda n: int(n.rstrip("+")))
        label = "; ".join(f"{job} {','.join(at[:5])}" for job, at in list(places.items())[:6])
        print(f"      {error}, {len(cases)} runs: {label}\n      {cases[0][2][-260:]!r}")


def main():
    p = argparse.ArgumentParser(add_help=False)
    p.add_argument("build", nargs="?")
    for flag in ("full", "all", "kill", "power", "pairs", "list", "help"):
        p.add_argument("--" + flag, action="store_true")
    p.add_argument("--job")
    p.add_argument("--class", dest="cls")
    p.add_argument("--error")
    p.add_argument("--at", type=int)
    p.add_argument("--seed", type=int)
    p.add_argument("--seconds", type=float, default=60)
    p.add_argument("--cases", type=int)
    p.add_argument("--jobs", type=int, default=1)
    p.add_argument("--rounds", type=int, default=8)
    p.add_argument("--work")
    o = p.parse_args()
    if o.help or not o.build:
        print(__doc__)
        return 0
    jobs = [j for j in JOBS if (not o.job or j.name in o.job.split(",")) and (not o.pairs or j.name in PAIRS)]
    if not jobs:
        print(f"no job {o.job}; there are {', '.join(j.name for j in JOBS)}")
        return 2
    bench = Bench(o)
    seed = o.seed if o.seed is not None else random.SystemRandom().randrange(1 << 32)
    rng = random.Random(seed)
    try:
        return work(bench, jobs, rng, seed)
    finally:
        bench.close()


def work(bench, jobs, rng, seed):
    o = bench.options
    began = time.monotonic()
    make_inputs(bench.millrace, bench.inputs)
    bench.inputs_tree = tree(bench.inputs, contents=False)
    places = [Place(bench, i) for i in range(o.jobs)]
    expected, counts, copies = {}, {}, {}
    for job in jobs:
        expected[job.name], counts[job.name] = learn(bench, places[0], job)
        copies[job.name] = copies_of(bench, job)
    if o.list:
        table(bench, jobs, counts)
        return 0
    todo = plan(bench, jobs, counts, rng)
    sample = "" if o.full else f", a sample of {o.cases}" if o.cases else f", a sample for {o.seconds:g} s"
    print(f"{len(todo)} cases, seed {seed}{sample}", flush=True)
    todo, all_cases = todo[:o.cases], len(todo)
    free = list(places)
    done = 0

    def one(item):
        nonlocal done
        job, fault, loss = item
        if not (o.full or o.at or o.cases) and time.monotonic() - began > o.seconds:
            return
        with bench.lock:
            place = free.pop()
        try:
            with_what = (bench, place, job, expected[job.name], copies[job.name])
            if o.pairs:
                pair(*with_what, fault.split(":")[1], rng)
            else:
                run = kill(*with_what, fault, loss) if o.kill or o.power else disturb(*with_what, fault)
                if o.at:
                    print(f"{job.name} {fault} {loss or ''}: exit status {run.status}, {bench.name_of(run.where)}")
                    print(run.stderr.decode("utf-8", "replace"), end="")
        finally:
            with bench.lock:
                free.append(place)
                done += 1
                if done % 2000 == 0:
                    print(f"{done} of {len(todo)}, {len(bench.findings)} kinds of findings, {time.monotonic() - began:.0f} s", flush=True)

    try:
        with ThreadPoolExecutor(o.jobs) as pool:
            list(pool.map(one, todo))
    except KeyboardInterrupt:
        pass
    table(bench, jobs, counts)
    new = tell(bench)
    print(f"\n{done} of {all_cases} cases, {bench.hits} reached their place, {sum(len(c) for v in bench.findings.values() for c in v.values())} findings of "
          f"{len(bench.findings)} kinds, {sum(bench.passed.values())} tolerated, seed {seed}, {time.monotonic() - began:.0f} s")
    return 1 if new else 0


if __name__ == "__main__":
    sys.exit(main())
