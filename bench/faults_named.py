#!/usr/bin/env python3
"""Faults that are injected on purpose, and millrace's diagnosis of each.

usage: bench/faults_named.py MILLRACE [--seconds 5] [--rounds 1] [--cache DIR] [--json OUT] [--only TEXT]

A loader that is fast enough for a simulated device gets one fault at a time, a real one: threads that want the same cores, a
system call that takes longer, a lock that another thread holds. `train --json` reports the causes of the device's wait, its verdict, and
the worker or file that stuck out; `profile --json` the samples that did. A fault counts as named when the verdict is one of the verdicts
right for it, and where it is one worker, file, device or some samples, those and no others are listed. Without a fault nothing may
be named, and the device may not wait. In every round each fault has one turn, with the loader measured just before it.

If other programs use the cores during a measurement, they are named instead: the verdict "short of cores" is then right if the injected
fault comes first among the other causes (turns_busy), and so is a worker that was kept from running. The load average is printed with each.

Needs a C compiler for the shim (fault_shim.c); a quota needs a control group that may be made, progressive pictures jpegtran
(Debian: libjpeg-turbo-progs). Faults that cannot be injected are listed with the reason. Times depend on the machine, the named causes
should not."""
import argparse
import contextlib
import ctypes
import http.server
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from ours import cache_folder
from rounds import Absent, call, machine, tell

HERE = os.path.dirname(os.path.abspath(__file__))
BATCH, WORKERS = 32, 2
SLACK = 1.7  # ratio of the device's time for a batch to the loader's


class Late(Exception):
    """A run that the machine had no time for: a turn that is not counted."""


class Fault:
    """data: which set. slack: ratio of the device's time for a batch to the loader's; or step_ms, a step so long
    that the loader stays ahead whatever other programs do to it for a moment. prepare: the conditions while it
    runs, a context of (folder, data, step in ms) that returns changes of data, environment and cgroup. judge:
    further conditions on the result; it takes all lines of JSON and the conclusions from them."""

    def __init__(self, name, what, verdicts, *, env=None, options=(), spinners=0, pin=None, worker=None, file=None, data="photos",
                 slack=SLACK, step_ms=0, steps=None, profile=False, devices="sim:1,step={:.3f}ms", prepare=None, judge=None,
                 workers=WORKERS, batch=BATCH):
        self.name, self.what, self.verdicts = name, what, verdicts
        self.env, self.options, self.spinners, self.pin = env or {}, list(options), spinners, pin
        self.worker, self.file, self.data, self.slack, self.steps = worker, file, data, slack, steps
        self.step_ms = step_ms
        self.profile, self.devices, self.prepare, self.judge = profile, devices, prepare, judge
        self.workers, self.batch = workers, batch


def faults(slow_file):
    cores = os.cpu_count()
    return [
        Fault("none", "nothing", ["compute-bound"], step_ms=LONG),
        Fault("slow worker", "worker 1 is held to core 0, which four other programs of higher priority want all the time",
              ["short of cores", "input-bound", "compute-bound"], spinners=4, pin=0, worker=1, step_ms=LONG, steps=80),
        Fault("slow shard", f"each pread from {slow_file} takes ten steps more", ["storage-bound"], options=["--io", "pread"],
              prepare=slow_reads(slow_file), file=slow_file, step_ms=LONG),
        Fault("lock held", "a thread holds a lock, which workers need to take a chunk, for one step, and lets it go for 2 ms",
              ["disturbed"], prepare=held_lock, step_ms=LONG),
        Fault("noisy neighbour", f"{3 * cores} other programs want all {cores} cores all the time", ["short of cores"],
              spinners=3 * cores, slack=1.2),
        Fault("cpu quota", "a control group lets it have an eighth of a core", ["short of cores"], prepare=quota, step_ms=20, judge=quota_is_named),
        Fault("throttled device", "all preads together bring 0.4 of the bytes that the device needs", ["storage-bound"],
              options=["--io", "pread"], prepare=throttled, step_ms=LONG),
        Fault("progressive", "6 of 406 pictures of 800 x 800 are progressive", SAMPLES, data="progressive", slack=0.5,
              profile=True, judge=marked_are_slowest),
        Fault("uneven sizes", "4 of 404 pictures have 2,000 x 2,000 pixels, the others 64 x 64", SAMPLES,
              data="uneven", slack=0.5, profile=True, judge=marked_are_slowest),
        Fault("first epoch", "as throttled, and the first of two epochs fills a cache in memory",
              ["storage-bound", "compute-bound"], options=["--io", "pread", "--cache", "ram:256M", "--epochs", "2"], steps=0,
              prepare=throttled, step_ms=LONG, judge=only_the_first_is_stalled),
        Fault("prefetch 1", "as uneven sizes, and one batch is made ready ahead", PREFETCH_ONE, data="uneven",
              options=["--prefetch", "1"], slack=1.3, judge=replay_agrees),
        Fault("slow device", "one of four devices takes twice as long for a step", ["compute-bound"],
              devices="sim:4,step={:.3f}ms,slow={:.3f}ms", step_ms=LONG, judge=slow_device_is_named),
        Fault("one worker", "one worker for batches of 256; the device could take four times its rate",
              ["input-bound"], workers=1, batch=256, slack=4),
        Fault("remote", "a server sleeps 50 ms before each answer, and is asked for one range at a time", ["storage-bound"],
              data="pixels",
              options=["--depth", "1", "--readers", "1", "--epochs", "1", "--warmup-steps", "3"], steps=0, step_ms=LONG, prepare=served),
    ]


LONG = 60  # ms
# samples must be named, however long the device waits for them; two workers and staging may need more than two cores
SAMPLES = ["input-bound", "compute-bound", "short of cores"]

# the causes of the waits that the one batch ahead could not hide, in any stage
PREFETCH_ONE = ["compute-bound", "uneven", "input-bound"]


# ---- injected faults ----

def spin(count, core):
    """Programs that occupy a core until they are stopped, or this program ends in any way."""
    def begin():
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if core is not None:
            os.sched_setaffinity(0, {core})
    return [subprocess.Popen([sys.executable, "-c", "while True: pass"], preexec_fn=begin) for _ in range(count)]


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


def slow_reads(name):
    """A read that takes as long as ten steps: no number of batches ahead hides it."""
    @contextlib.contextmanager
    def prepare(folder, data, step_ms):
        yield {"env": {"FAULT_FILE": name, "FAULT_FILE_MS": str(max(25, round(10 * step_ms)))}}
    return prepare


@contextlib.contextmanager
def held_lock(folder, data, step_ms):
    yield {"env": {"FAULT_LOCK_MS": str(round(step_ms))}}


@contextlib.contextmanager
def throttled(folder, data, step_ms):
    files = [name for name in os.listdir(os.path.dirname(data)) if name.startswith(os.path.basename(data)) and name.endswith(".mrec")]
    size = sum(os.path.getsize(os.path.join(os.path.dirname(data), name)) for name in files)
    need = size / PHOTOS * 1e3 * BATCH / step_ms
    yield {"env": {"FAULT_KB_S": str(max(1, round(0.4e-3 * need)))}}


@contextlib.contextmanager
def quota(folder, data, step_ms):
    """A control group of either version, one level below ours; Absent where none may be made."""
    with open("/proc/self/cgroup", encoding="utf-8") as f:
        groups = {word: line[2] for line in (text.strip().split(":", 2) for text in f) for word in line[1].split(",")}
    name = f"faults_named.{os.getpid()}"
    one, two = "/sys/fs/cgroup/cpu" + groups.get("cpu", ""), "/sys/fs/cgroup" + groups.get("", "")
    path = os.path.join(one if "cpu" in groups else two, name)
    limits = [("cpu.cfs_period_us", "100000"), ("cpu.cfs_quota_us", "12500")] if "cpu" in groups else [("cpu.max", "12500 100000")]
    try:
        os.mkdir(path)
        try:
            for file, text in limits:
                with open(os.path.join(path, file), "w", encoding="ascii") as f:
                    f.write(text)
            yield {"cgroup": os.path.join(path, "cgroup.procs")}
        finally:
            os.rmdir(path)
    except OSError as e:
        raise Absent(f"no control group with a quota can be made here: {e}") from e


class Slow(http.server.BaseHTTPRequestHandler):
    """Files of a folder, by ranges, each answer 50 ms late."""
    protocol_version = "HTTP/1.1"
    folder = ""

    def answer(self, with_body):
        time.sleep(0.05)
        path = os.path.join(self.folder, os.path.basename(self.path))
        if not os.path.exists(path):
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        size = os.path.getsize(path)
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        begin, end = (int(asked[1]), min(int(asked[2] or size), size - 1)) if asked else (0, size - 1)
        with open(path, "rb") as f:
            f.seek(begin)
            body = f.read(end - begin + 1)
        self.send_response(206 if asked else 200)
        if asked:
            self.send_header("Content-Range", f"bytes {begin}-{end}/{size}")
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("ETag", f'"{size}-{os.path.getmtime(path)}"')
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def do_GET(self):
        self.answer(True)

    def do_HEAD(self):
        self.answer(False)

    def log_message(self, *unused):
        pass


@contextlib.contextmanager
def served(folder, data, step_ms):
    handler = type("Served", (Slow,), {"folder": os.path.dirname(data)})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with tempfile.TemporaryDirectory(dir=folder) as copies:
            yield {"data": f"http://127.0.0.1:{server.server_port}/{os.path.basename(data)}", "options": ["--remote-cache", copies]}
    finally:
        server.shutdown()
        server.server_close()


# ---- further conditions besides the verdict: None if they hold, else the fault ----

def quota_is_named(lines, row, about):
    shares = row["causes_percent"]
    return None if shares.get("quota", 0) > shares.get("cores", 0) else "other programs are blamed for the quota"


def marked_are_slowest(lines, row, about):
    """The printed samples: the slowest three that took twice the mean."""
    reported = [s for s in lines[-1]["slowest"] if s["times_mean"] >= 2][:3]
    row["slow_samples"] = [{"file": os.path.basename(s["name"]), "ms": round(s["ms"], 2), "times": round(s["times_mean"], 1)} for s in reported]
    wrong = [s["file"] for s in row["slow_samples"] if not s["file"].startswith("planted")]
    others = [name for name in row["causes_percent"] if name not in ("cores", "host")]
    if row["verdict"] == "short of cores" and others[:1] not in (["large"], ["decode"]):
        return f"next to cores: {', '.join(others[:1]) or 'nothing'}"
    return "no sample is named" if not reported else f"named: {', '.join(wrong)}" if wrong else None


def only_the_first_is_stalled(lines, row, about):
    verdicts = [line["verdict"].split(":")[0] for line in lines if line["event"] == "epoch"]
    row["epochs"] = verdicts
    return None if verdicts == ["storage-bound", "compute-bound"] else f"epochs: {', '.join(verdicts)}"


def slow_device_is_named(lines, row, about):
    return None if "sim:3" in row["text"] else "the device is not named"


def replay_agrees(lines, row, about):
    """What prefetch 8 gives, as the plan of this run says, and as a run with it has it, right after: within 15 %."""
    command = about["command"]
    plan = [json.loads(text) for text in call([command[0], "plan", *plan_options(command[2:])], 120)[0].splitlines()]
    more = next(line for line in plan if line.get("name") == "prefetch 8")["predicted_samples_per_s"]
    real = {"1": [], "8": []}
    for prefetch in ("8", "1", "1", "8"):
        changed = [prefetch if command[i - 1] == "--prefetch" else word for i, word in enumerate(command)]
        real[prefetch].append(rate_of([json.loads(text) for text in call(changed, 120)[0].splitlines()]))
    row["prefetch_8"] = {"predicted": round(more / plan[0]["predicted_samples_per_s"], 3),
                         "measured": round(sum(real["8"]) / sum(real["1"]), 3)}
    off = row["prefetch_8"]["predicted"] / row["prefetch_8"]["measured"]
    return None if 1 / 1.15 <= off <= 1.15 else f"prefetch 8 gives {row['prefetch_8']['measured']} times, the plan says " \
                                                f"{row['prefetch_8']['predicted']}"


def plan_options(words):
    """The options without those for a run's end."""
    out = list(words)
    for name in ("--val", "--epochs", "--max-steps", "--warmup-steps"):
        at = out.index(name)
        del out[at:at + 2]
    return [*out, "--no-forms", "--seconds", "2"]


def rate_of(lines):
    epochs = [line for line in lines if line["event"] == "epoch" and line["steps"] > line["warmup_steps"]]
    return statistics.median(e["samples_per_s"] for e in epochs)


# ---- data ----

PHOTOS = 1800


def convert_to_progressive(source, to):
    if not shutil.which("jpegtran"):
        raise Absent("progressive pictures need jpegtran, which is not here (Debian: libjpeg-turbo-progs)")
    call(["jpegtran", "-progressive", "-outfile", to, source], 60)


def make_planted(millrace, cache, name, size, planted_size, count, progressive):
    """A folder of 400 pictures, and some others among them whose names begin with planted."""
    folder, other = os.path.join(cache, f"faults-{name}"), os.path.join(cache, f"faults-{name}-other")
    if os.path.exists(folder + ".made"):
        return folder
    for path, side, each in ((folder, size, 40), (other, planted_size, 1)):
        call([millrace, "synth", path, "--quiet", "--force", "--size", str(side), "--count", str(each), "--test-count", "1"], 600)
    pictures = sorted(os.path.join(place, name) for place, _, names in os.walk(os.path.join(other, "train")) for name in names)
    for i, path in enumerate(pictures[:count]):
        to = os.path.join(folder, "train", os.path.basename(os.path.dirname(path)), f"planted{i}.jpg")
        if progressive:
            convert_to_progressive(path, to)
        else:
            shutil.copy(path, to)
    shutil.rmtree(other)
    open(folder + ".made", "w", encoding="utf-8").close()
    return folder


def make_data(millrace, cache, name):
    """Record files of one set, four shards and more; or a folder, or one file of pixels."""
    os.makedirs(cache, exist_ok=True)
    if name == "progressive":
        return make_planted(millrace, cache, name, 800, 800, 6, True)
    if name == "uneven":
        return make_planted(millrace, cache, name, 64, 2000, 4, False)
    if name == "pixels":
        pixels = os.path.join(cache, "faults-pixels.mrec")
        if not os.path.exists(pixels):
            make_data(millrace, cache, "photos")
            call([millrace, "convert", os.path.join(cache, f"faults{PHOTOS}"), pixels, "--quiet", "--force", "--split", "test", "--store",
                  "raw"], 600)
        return pixels
    shards = os.path.join(cache, f"faults{PHOTOS}.shards")
    if not os.path.exists(shards):
        folder = os.path.join(cache, f"faults{PHOTOS}")
        call([millrace, "synth", folder, "--quiet", "--force", "--size", "160", "--max-size", "320", "--count", str(PHOTOS // 10)], 600)
        call([millrace, "convert", folder, shards, "--quiet", "--force", "--shard-size", "4M"], 600)
    return shards


# ---- a run ----

def loader_rate(millrace, data):
    text = call([millrace, "bench", "loader", data, "--augment", "rrc224", "--training", "--batch", str(BATCH), "--workers",
                 str(WORKERS), "--resident", "0", "--seconds", "1", "--json", "--quiet"], 60)[0]
    return json.loads(text.splitlines()[-1])["samples_per_s"]


def command_of(millrace, data, fault, step_ms, seconds, options):
    steps = max(20, round(1000 * seconds / step_ms)) if fault.steps is None else fault.steps
    words = [millrace, "profile" if fault.profile else "train", data, "--model", "resnet18", "--augment", "rrc224", "--batch", str(fault.batch),
             "--workers", str(fault.workers), "--resident", "0", "--devices", fault.devices.format(step_ms, 2 * step_ms), "--json", "--quiet"]
    if fault.profile:
        words += ["--steps", "30", "--seconds", "0.3"]
    else:
        words += ["--val", "none", "--max-steps", str(steps), *([] if "--warmup-steps" in fault.options else ["--warmup-steps", "8"])]
        if "--epochs" not in fault.options:
            words += ["--epochs", "1000"]
    return [*words, *fault.options, *options]


def run(command, fault, seconds, shim, changes):
    env = {**os.environ, **fault.env, **changes.get("env", {})}
    if any(name.startswith("FAULT_") for name in env):
        env["LD_PRELOAD"] = shim

    def join():
        if "cgroup" in changes:
            with open(changes["cgroup"], "w", encoding="ascii") as f:
                f.write(str(os.getpid()))
    spinners = spin(fault.spinners, fault.pin)
    try:
        program = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=join)
        if fault.pin is not None:
            threading.Thread(target=pin_worker, args=(program, fault.worker, fault.pin), daemon=True).start()
        out, err = program.communicate(timeout=120 + 20 * seconds)
    except subprocess.TimeoutExpired as e:
        program.kill()
        program.communicate()
        raise Late(f"not over after {e.timeout:.0f} s") from e
    finally:
        stop(spinners)
    if program.returncode:
        raise Absent(f"{' '.join(command)}: {err.strip()}")
    return [json.loads(line) for line in out.splitlines()]


def kept_by_others(end):
    """Workers that other programs really keep from the cores: true, though nobody planted it."""
    return {w["worker"] for w in end["slow_workers"] if w["cause"] == "cores"} if os.getloadavg()[0] >= os.cpu_count() + 1 else set()


CAUSES_OF = {"storage-bound": {"read"}, "input-bound": {"decode", "large"}, "disturbed": {"blocked"}, "compute-bound": set()}


def is_next_cause(fault, causes):
    """Where other programs want the cores while it is measured: is the planted cause the first of all but those? Without a cause,
    are all others less than what makes a stall?"""
    if os.getloadavg()[0] < os.cpu_count() + 1:
        return False
    others = {name: part for name, part in causes.items() if name not in ("cores", "host")}
    right = set().union(*(CAUSES_OF.get(v, set()) for v in fault.verdicts))
    return max(others, key=others.get) in right if right else sum(others.values()) < 0.05


def judge(fault, lines, about):
    """Judgement of the whole run: the epochs' reports, weighted by time, and the workers and files that stuck out."""
    kind = "profile_run" if fault.profile else "epoch"
    epochs = [line for line in lines if line["event"] == kind and line["steps"] > line["warmup_steps"] and line.get("prefetch") != 0]
    end = lines[-1]
    time_of = [e["seconds"] for e in epochs]
    causes = {name: sum(e["causes"][name] * t for e, t in zip(epochs, time_of)) / sum(time_of) for name in epochs[0]["causes"]}
    verdicts, texts = {}, {}
    for e, t in zip(epochs, time_of):
        said = e["verdict"].split(":")[0]
        verdicts[said] = verdicts.get(said, 0) + t
        texts[said] = e["verdict"]
    verdict = max(verdicts, key=verdicts.get)
    workers = [w["worker"] for w in end["slow_workers"] if w["worker"] != fault.worker]
    files = [os.path.basename(f["file"]) for f in end["slow_files"]]
    row = {"fault": fault.name, "injected": fault.what, "expected": fault.verdicts, "verdict": verdict, "text": texts[verdict],
           "stall_percent": round(100 * sum(causes.values()), 1),
           "causes_percent": {n: round(100 * v, 1) for n, v in sorted(causes.items(), key=lambda c: -c[1]) if v >= 0.005},
           "slow_workers": end["slow_workers"], "slow_files": [dict(f, file=os.path.basename(f["file"])) for f in end["slow_files"]],
           "step_ms": round(about["step_ms"], 1), "load": round(os.getloadavg()[0], 1)}
    wrong = []
    if verdict not in fault.verdicts:
        wrong.append(f"verdict {verdict}")
    if set(workers) - kept_by_others(end) or fault.worker not in (None, *(w["worker"] for w in end["slow_workers"])):
        wrong.append(f"workers {workers}")
    if files != ([] if fault.file is None else [fault.file]):
        wrong.append(f"files {files}")
    wrong.append(fault.judge and fault.judge(lines, row, about))
    row["wrong"] = "; ".join(filter(None, wrong))
    row["busy"] = bool(wrong) and wrong[0] == "verdict short of cores" and not any(wrong[1:]) and is_next_cause(fault, causes)
    row["named"] = not row["wrong"] or row["busy"]
    return row


def turn(millrace, cache, fault, seconds, folder, shim):
    data = make_data(millrace, cache, fault.data)
    step_ms = fault.step_ms or min(LONG, 1000 * BATCH * fault.slack / loader_rate(millrace, data))
    with (fault.prepare or contextlib.nullcontext)(*((folder, data, step_ms) if fault.prepare else ({},))) as changes:
        command = command_of(millrace, changes.get("data", data), fault, step_ms, seconds, changes.get("options", []))
        lines = run(command, fault, seconds, shim, changes)
    return judge(fault, lines, {"command": command, "step_ms": step_ms})


def show(row):
    causes = ", ".join(f"{name} {percent:g} %" for name, percent in list(row["causes_percent"].items())[:3]) or "none"
    who = "; ".join([f"worker {w['worker']}: {w['times']:.1f} times ({w['cause']})" for w in row["slow_workers"]]
                    + [f"{f['file']}: {f['times']:.1f} times" for f in row["slow_files"]]) or "nobody"
    who += "".join(f"; {s['file']}: {s['ms']} ms, {s['times']} times" for s in row.get("slow_samples", []))
    tell(f"{row['fault']:16} {'named' if row['named'] else 'NOT NAMED':10} load {row['load']}; step {row['step_ms']} ms; verdict {row['verdict']}; stall {row['stall_percent']:g} %: "
         f"{causes}; sticks out: {who}{'; WRONG: ' + row['wrong'] if row['wrong'] else ''}")


def sum_up(rows):
    """All turns of one fault: the last typical one, how many were named, and their verdicts."""
    verdicts = {}
    for row in rows:
        verdicts[row["verdict"]] = verdicts.get(row["verdict"], 0) + 1
    named = [row for row in rows if row["named"]]
    load = [row["load"] for row in rows]
    return {**(named or rows)[-1], "turns": len(rows), "turns_named": len(named), "turns_busy": sum(row["busy"] for row in rows),
            "verdicts": verdicts,
            "named": len(named) == len(rows), "wrong": [row["wrong"] for row in rows if row["wrong"]],
            "load": [min(load), statistics.median(load), max(load)]}


def write(path, about, rows, absent):
    if not path:
        return
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"about": about, "faults": [sum_up(r) for r in rows.values()], "not_injected": absent}, f, indent=1)
        f.write("\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("millrace")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--cache", default=cache_folder("faults"))
    parser.add_argument("--json")
    parser.add_argument("--only", default="")
    a = parser.parse_args()
    millrace, rows, absent = os.path.abspath(a.millrace), {}, {}
    about = {"machine": machine(), "batch": BATCH, "workers": WORKERS, "seconds": a.seconds}
    with tempfile.TemporaryDirectory() as folder:
        shim = make_shim(folder)
        with open(make_data(millrace, a.cache, "photos"), encoding="utf-8") as f:
            names = [word for line in f for word in line.split() if word.endswith(".mrec")]
        chosen = [f for f in faults(os.path.basename(names[len(names) // 2])) if a.only in f.name]
        for _ in range(a.rounds):
            for fault in chosen:
                if fault.name in absent:
                    continue
                try:
                    row = turn(millrace, a.cache, fault, a.seconds, folder, shim)
                except Absent as e:
                    absent[fault.name] = str(e)
                    tell(f"{fault.name:16} not injected: {e}")
                    continue
                except Late as e:
                    tell(f"{fault.name:16} {e}: this turn is left out")
                    continue
                rows.setdefault(fault.name, []).append(row)
                show(row)
                write(a.json, about, rows, absent)
    return 0 if all(row["named"] for of in rows.values() for row in of) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Absent as e:
        sys.exit(f"faults_named: {e}")
