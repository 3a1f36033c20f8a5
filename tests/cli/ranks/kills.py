#!/usr/bin/env python3
"""Runs trainings in several processes, kills or stops some of them at random moments, and checks how the others end and the training's
result.

usage: tests/cli/ranks/kills.py --binary MILLRACE [--kills N] [--stops N] [--seed N] [--jobs N] [--joined] [--work DIR] [--verbose]

    --kills N   how many times ranks are killed, stopped or asked to end (1200; a day's worth of bad luck)
    --stops N   how many of them are SIGSTOP, until the others have given up (a fortieth; each takes the silence of 10 s)
    --jobs N    number of trainings at a time (1): a rank killed before it has joined keeps the others waiting for a minute
    --joined    only after the ranks have joined: no such minute
    --verbose   a line for every attempt

A training is started in 1 to 4 processes with cpu:1 or cpu:2 each, disturbed, and started again with --resume in other numbers, until
it is done. Expected every time:
    the rest ends by itself, with status 1 and one line that names a lost rank (130 where it was asked to end); 0 only where all was done
    one that was stopped and goes on too late ends as well
    in the end the weights equal the weights of the undisturbed run, and the folder holds checkpoints and nothing else
Exit status: 0 nothing was found, 1 something was, 77 it cannot run here."""

import argparse
import json
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

MODELS = [  # name, set, training options; steps
    ("cifar-resnet20", "rgb", ["--batch", "24", "--epochs", "2", "--lr", "1e-2", "--checkpoint-steps", "2"], 8),
    ("mnist-mlp", "gray", ["--batch", "24", "--epochs", "6", "--checkpoint-steps", "3"], 24),
]
PARTS = 4
LAUNCHERS = ("OMPI_", "PMI", "SLURM_", "TORCHELASTIC_", "MILLRACE_", "LOCAL_", "GROUP_")
OWN_FILES = re.compile(r"^(run\.lock|best\.mrck|step-\d+\.mrck)$")
JOIN_LIMIT_S = 100     # 60 s until all must be there, as long again to connect; nobody needs all of that
SILENCE_LIMIT_S = 40   # 10 s of silence, and to end
LIMIT_S = 30           # to end
RUN_LIMIT_S = 300
HOW = ["kill", "term", "int", "stop", "pause"]


def run_env(rank, size, port, tag):
    env = {k: v for k, v in os.environ.items() if not k.startswith(LAUNCHERS)}
    env.update(RANK=str(rank), WORLD_SIZE=str(size), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), MILLRACE_JOB=tag, LC_ALL="C")
    return env


class World:
    """The processes of one attempt."""

    def __init__(self, place, args, devices, delays):
        self.size, self.devices = len(devices), devices
        self.began = time.monotonic()
        self.processes, self.ended, self.errors = [], [None] * self.size, []
        self.lines, self.events = [], []  # of rank 0: (when, event)
        self.lock = threading.Lock()
        for rank, spec in enumerate(devices):
            time.sleep(delays[rank])
            self.errors.append(os.path.join(place.base, f"err.{rank}"))
            with open(self.errors[rank], "wb") as err:
                self.processes.append(subprocess.Popen(
                    [place.bench.millrace, *args, "--devices", spec], cwd=place.base, env=run_env(rank, self.size, place.port, place.tag),
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE if rank == 0 else subprocess.DEVNULL, stderr=err))
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.processes[0].stdout:
            try:
                event = json.loads(line)
            except ValueError:
                event = {"event": "no JSON"}  # the last line of one that was killed
            with self.lock:
                self.events.append((time.monotonic(), event))

    def seen(self, name):
        with self.lock:
            return [(at, e) for at, e in self.events if e["event"] == name]

    def poll(self):
        """How many still run."""
        now, running = time.monotonic(), 0
        for rank, p in enumerate(self.processes):
            if p.poll() is None:
                running += 1
            elif self.ended[rank] is None:
                self.ended[rank] = now
        return running

    def wait(self, ranks, seconds):
        """True: all of these have ended in that time."""
        due = time.monotonic() + seconds
        while time.monotonic() < due:
            self.poll()
            if all(self.ended[r] is not None for r in ranks):
                return True
            time.sleep(0.002)
        return False

    def send(self, ranks, number):
        for r in ranks:
            if self.processes[r].poll() is None:
                self.processes[r].send_signal(number)

    def close(self):
        for p in self.processes:
            if p.poll() is None:
                p.kill()
            p.wait()
        self.reader.join()
        self.processes[0].stdout.close()

    def said(self, rank):
        with open(self.errors[rank], "rb") as f:
            return f.read().decode("utf-8", "replace").splitlines()

    def phase(self, folder):
        """State of the run, as far as it can be seen from outside."""
        if self.seen("train"):
            return "leaving"
        if not self.seen("start"):
            return "joining"
        if os.path.isdir(folder) and any(not OWN_FILES.match(n) for n in os.listdir(folder)):
            return "writing"
        steps = self.seen("step")
        if steps and steps[-1][1]["step"] == steps[-1][1]["steps_per_epoch"] and \
                len(self.seen("epoch")) <= sum(e["step"] == e["steps_per_epoch"] for _, e in steps) - 1:
            return "epoch's end"
        return "steps"


class Bench:
    def __init__(self, options):
        self.options = options
        self.millrace = os.path.abspath(options.binary)
        base = options.work or ("/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
        self.work = tempfile.mkdtemp(prefix="millrace-kills-", dir=base)
        self.lock = threading.Lock()
        self.kinds = []  # still to do
        self.expected = {}
        self.findings = {}
        self.done = dict.fromkeys(HOW, 0)
        self.phases, self.ends, self.again = {}, {}, []
        self.ranks_hit = self.attempts = self.restarts = self.trainings = self.late = 0

    def find(self, what, place, world, event, ranks=()):
        """A finding, with the output of the ranks."""
        text = "; ".join(f"rank {r} (status {world.processes[r].returncode}): {' / '.join(world.said(r))[-400:] or 'nothing'}"
                         for r in (ranks or range(world.size)))
        with self.lock:
            self.findings.setdefault(what, []).append(f"{place.what}, {event}: {text}")
        print(f"FOUND: {what}: {place.what}, {event}\n    {text}", flush=True)

    def next_kind(self):
        with self.lock:
            return self.kinds.pop() if self.kinds else None

    def learn(self):
        """The undisturbed runs, each in one process."""
        for name, data, args, steps in MODELS:
            p = subprocess.run([self.millrace, "train", os.path.join(self.work, data), "--model", name, *args[:-2], *SHARED], cwd=self.work,
                               env=run_env(0, 1, 1, "alone"), stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=RUN_LIMIT_S)
            if p.returncode != 0:
                raise SystemExit(f"{name}: the undisturbed run ends with status {p.returncode}\n{p.stderr.decode()}")
            last = json.loads(p.stdout.decode().splitlines()[-1])
            self.expected[name] = (last["weights"], last["val_loss"])


SHARED = ["--parts", str(PARTS), "--seed", "1", "--json", "--quiet", "--log-steps", "1"]


class Place:
    """One training after the other, in a folder of its own."""

    def __init__(self, bench, number, rng):
        self.bench, self.rng, self.number = bench, rng, number
        self.base = os.path.join(bench.work, f"w{number}")
        os.makedirs(self.base)
        self.folder = os.path.join(self.base, "run")
        self.count = 0
        self.what = ""
        self.join_s, self.step_s = 0.3, {name: 0.15 for name, _, _, _ in MODELS}  # guesses, kept up to date

    def steps_made(self):
        names = os.listdir(self.folder) if os.path.isdir(self.folder) else []
        return max([int(n[5:-5]) for n in names if n.startswith("step-") and OWN_FILES.match(n)], default=0)

    def devices(self):
        """Number of devices of each rank; at most PARTS in total."""
        size = self.rng.choice([1, 2, 2, 3, 3, 4, 4])
        devices = [1] * size
        for r in self.rng.sample(range(size), size):
            if sum(devices) < PARTS and self.rng.random() < 0.5:
                devices[r] = 2
        return [f"cpu:{n}" for n in devices]

    def victims(self, size):
        most = self.rng.choice([1, 1, 1, 1, 2, 2, size])
        return sorted(self.rng.sample(range(size), min(most, size)))

    def train(self):
        """One training from its first step to its last."""
        model, data, args, steps = self.rng.choice(MODELS)
        self.count += 1
        self.tag = f"{os.path.basename(self.bench.work)}.{self.number}.{self.count}"
        shutil.rmtree(self.folder, ignore_errors=True)
        command = ["train", os.path.join(self.bench.work, data), "--model", model, *args, *SHARED, "--checkpoint", "run", "--resume"]
        finished = False
        for attempt in range(1000):
            self.port = 10000 + (self.number * 97 + attempt * 13) % 9000
            kind = self.bench.next_kind()
            finished = self.attempt(model, steps, command, kind, attempt)
            if finished is None:
                return
            if finished:
                break
            if kind is None and not finished:
                return  # found already
        with self.bench.lock:
            self.bench.trainings += 1

    def life(self, model, steps):
        return self.join_s + (steps - self.steps_made()) * self.step_s[model] + 0.1

    def until(self, world, ready, seconds):
        due = time.monotonic() + seconds
        while time.monotonic() < due and world.poll() == world.size and not ready():
            time.sleep(0.0005)

    def wait_for_moment(self, world, model, steps):
        """A random moment: half of them anywhere, the others where something short happens."""
        rng = self.rng
        aim = rng.choice(["any"] * 4 + ["steps", "writing", "epoch's end", "leaving"] + ([] if self.bench.options.joined else ["joining"]))
        if aim == "joining":
            time.sleep(rng.uniform(0, self.join_s))
            return
        if self.bench.options.joined or aim not in ("any",):
            self.until(world, lambda: world.seen("start"), RUN_LIMIT_S)
        if aim in ("any", "steps"):
            self.until(world, lambda: False, rng.uniform(0, self.life(model, steps)))
            return
        self.until(world, lambda: world.phase(self.folder) in (aim, "leaving"), RUN_LIMIT_S)
        time.sleep(rng.choice([0, 0, rng.uniform(0, 0.005), rng.uniform(0, 0.05)]))

    def attempt(self, model, steps, command, kind, attempt):
        """True: the training is done. None: nothing more can be said of it. With no kind it is left alone."""
        bench, rng = self.bench, self.rng
        devices = self.devices()
        delays = [rng.choice([0, 0, 0, rng.uniform(0, 0.1)]) for _ in devices]
        before = self.steps_made()
        self.what = f"{model} in {','.join(devices)} from step {before}"
        world = World(self, command, devices, delays)
        with bench.lock:
            bench.attempts += 1
            bench.restarts += attempt > 0
        try:
            if kind is None:
                if not world.wait(range(world.size), RUN_LIMIT_S):
                    bench.find("hang", self, world, "undisturbed")
                    return None
                ok = self.judge_whole(world, "undisturbed", model)
            else:
                self.wait_for_moment(world, model, steps)
                ok = self.disturb(world, kind, model, steps)
        finally:
            world.close()
        self.learn_times(world, model, attempt)
        if bench.options.verbose:
            print(f"{self.what}: {self.event if kind else 'undisturbed'}: {[p.returncode for p in world.processes]}, "
                  f"then at {self.steps_made()}", flush=True)
        return ok

    def learn_times(self, world, model, attempt):
        start, made = world.seen("start"), world.seen("step")
        if start:
            took = start[0][0] - world.began
            self.join_s = 0.7 * self.join_s + 0.3 * took
            if attempt > 0:
                with self.bench.lock:
                    self.bench.again.append(took)
        if len(made) > 2:
            self.step_s[model] = 0.7 * self.step_s[model] + 0.3 * (made[-1][0] - made[0][0]) / (len(made) - 1)

    # ---- how it ended ----

    def disturb(self, world, kind, model, steps):
        bench, rng = self.bench, self.rng
        phase = world.phase(self.folder)
        world.poll()
        alive = [r for r in range(world.size) if world.ended[r] is None]
        victims = [r for r in self.victims(world.size) if r in alive]
        if kind in ("stop", "pause") and len(victims) == world.size and world.size > 1:
            victims = victims[:-1]
        if not victims:  # it was faster
            with bench.lock:
                bench.late += 1
                bench.kinds.append(kind)
            world.wait(range(world.size), LIMIT_S)
            self.event = f"too late to {kind}"
            return self.judge_whole(world, self.event, model)
        self.event = f"{kind} {','.join(map(str, victims))} while {phase}"
        with bench.lock:
            bench.done[kind] += 1
            bench.ranks_hit += len(victims)
            bench.phases[phase] = bench.phases.get(phase, 0) + 1
        rest = [r for r in range(world.size) if r not in victims]
        hit = time.monotonic()
        if kind == "pause" or (kind == "stop" and not rest):
            return self.pause(world, victims, model)
        number = {"kill": signal.SIGKILL, "term": signal.SIGTERM, "int": signal.SIGINT, "stop": signal.SIGSTOP}[kind]
        world.send(victims, number)
        asked = kind in ("term", "int")
        waited = range(world.size) if asked else rest
        joining = phase == "joining"
        limit = SILENCE_LIMIT_S if kind == "stop" else LIMIT_S
        if not world.wait(waited, JOIN_LIMIT_S + LIMIT_S if joining else limit):
            bench.find("hang", self, world, self.event, [r for r in waited if world.ended[r] is None])
            return None
        if rest:
            took = max(world.ended[r] for r in rest) - hit
            with bench.lock:
                bench.ends.setdefault((kind, "joining" if joining else "joined"), []).append(took)
        if kind == "stop" and not self.go_on(world, victims):
            return None
        world.wait(range(world.size), LIMIT_S)
        return self.judge(world, kind, victims, rest, model, steps)

    def go_on(self, world, victims):
        """Resume the stopped ranks, which then find that the others are gone, or kill them."""
        if self.rng.random() < 0.5:
            world.send(victims, signal.SIGCONT)
            if not world.wait(victims, LIMIT_S + JOIN_LIMIT_S):
                self.bench.find("hang", self, world, self.event + ", continued", victims)
                return False
        world.send(victims, signal.SIGKILL)
        return True

    def pause(self, world, victims, model):
        """A rank that is slow is not lost."""
        world.send(victims, signal.SIGSTOP)
        time.sleep(self.rng.uniform(0.05, 3))
        world.send(victims, signal.SIGCONT)
        if not world.wait(range(world.size), RUN_LIMIT_S):
            self.bench.find("hang", self, world, self.event)
            return None
        return self.judge_whole(world, self.event, model)

    def complete(self, steps):
        return self.steps_made() == steps

    def judge(self, world, kind, victims, rest, model, steps):
        bench, find = self.bench, self.bench.find
        complete = self.complete(steps)
        status = [p.returncode for p in world.processes]
        number = {"term": signal.SIGTERM, "int": signal.SIGINT}.get(kind)
        for r in victims:
            if status[r] == 0 and not complete:
                find("status 0 of work that was not done", self, world, self.event, [r])
            elif number and status[r] not in (0, 128 + number, -number, 130, 1):
                find(f"status {status[r]} of one that was asked to end", self, world, self.event, [r])
            elif status[r] < 0 and status[r] not in (-signal.SIGKILL, -(number or 0)):
                find(f"ended by signal {-status[r]}", self, world, self.event, [r])
        for r in rest:
            if status[r] == 0 and not complete:
                find("status 0 of work that was not done", self, world, self.event, [r])
            elif status[r] < 0:
                find(f"ended by signal {-status[r]}", self, world, self.event, [r])
            elif status[r] not in ((0, 1, 130) if number else (0, 1)):
                find(f"status {status[r]}", self, world, self.event, [r])
            elif status[r] == 1:
                self.judge_words(world, r, victims)
        return self.judge_end(world, model) if status[0] == 0 else False

    def judge_words(self, world, rank, victims):
        lines = [re.sub(r"^millrace(, rank \d+)?: ", "", line) for line in world.said(rank)]
        lines = [line for line in lines if not re.search(r"no checkpoint yet|checkpoint \S+ written|epochs are done", line)]
        naming = [line for line in lines if any(re.search(rf"\brank {v}\b", line) for v in victims)]
        if len(naming) != 1 or len(lines) != 1:
            what = "no rank named" if not naming else "more than one line"
            self.bench.find(what, self, world, self.event, [rank])
        elif re.search(r"\brank (\d+)\b", naming[0]) and not any(
                re.search(rf"\brank {v}\b", naming[0].split(";")[0]) for v in victims):
            self.bench.find("another rank is named first", self, world, self.event, [rank])

    def judge_whole(self, world, event, model):
        """Nobody was lost."""
        if any(p.returncode for p in world.processes):
            self.bench.find("failed", self, world, event)
            return None
        return self.judge_end(world, model)

    def judge_end(self, world, model):
        world.reader.join(LIMIT_S)
        last = world.seen("train")
        weights, val_loss = self.bench.expected[model]
        if not last:
            self.bench.find("status 0 without a result", self, world, self.event)
            return None
        found = last[-1][1]
        if found["weights"] != weights:
            self.bench.find(f"other weights: {found['weights']}, expected {weights}", self, world, self.event)
        elif found.get("val_loss") is not None and found["val_loss"] != val_loss and found.get("steps"):
            self.bench.find(f"another val_loss: {found['val_loss']}, expected {val_loss}", self, world, self.event)
        foreign = [n for n in os.listdir(self.folder) if not OWN_FILES.match(n)]
        foreign += [n for n in os.listdir(self.base) if n != "run" and not n.startswith("err.")]
        if foreign:
            self.bench.find(f"left behind: {', '.join(foreign)}", self, world, self.event)
        return True


def make_kinds(options, rng):
    stops = options.kills // 40 if options.stops is None else min(options.stops, options.kills)
    others = [rng.choice(["kill"] * 16 + ["term"] * 2 + ["int"] * 2 + ["pause"]) for _ in range(options.kills - stops)]
    kinds = ["stop"] * stops + others
    rng.shuffle(kinds)
    return kinds


def spread(values):
    return f"median {statistics.median(values):.2f} s, most {max(values):.2f} s of {len(values)}"


def left_running(bench):
    """Processes that work in our folder."""
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and os.readlink(f"/proc/{name}/cwd").startswith(bench.work):
                found.append(int(name))
        except OSError:
            pass
    return found


def tell(bench, seed, seconds):
    for (kind, when), took in sorted(bench.ends.items()):
        print(f"the rest has ended after {kind} ({when}): {spread(took)}")
    if bench.again:
        print(f"started again, to the first line of the run: {spread(bench.again)}")
    print("at: " + ", ".join(f"{phase} {count}" for phase, count in sorted(bench.phases.items())))
    kinds = ", ".join(f"{kind} {count}" for kind, count in bench.done.items() if count)
    print(f"{sum(bench.done.values())} disturbed ({kinds}), {bench.ranks_hit} ranks hit, {bench.late} came too late, {bench.restarts} restarts, "
          f"{bench.trainings} trainings done, {sum(map(len, bench.findings.values()))} findings of {len(bench.findings)} kinds, seed {seed}, "
          f"{seconds:.0f} s")
    for what, cases in sorted(bench.findings.items()):
        print(f"  {what}: {len(cases)}\n      {cases[0][:600]}")


def work(bench, seed):
    rng = random.Random(seed)
    for data, more in (("rgb", []), ("gray", ["--channels", "1", "--size", "28"])):
        subprocess.run([bench.millrace, "synth", os.path.join(bench.work, data), "--count", "8", "--test-count", "4", "--quiet", *more], check=True,
                       stdout=subprocess.DEVNULL)
    bench.learn()
    bench.kinds = make_kinds(bench.options, rng)
    print(f"{len(bench.kinds)} disturbances, {bench.kinds.count('stop')} of them stops, seed {seed}", flush=True)
    began = time.monotonic()

    def one(number, own):
        place = Place(bench, number, own)
        while bench.kinds:
            place.train()

    threads = [threading.Thread(target=one, args=(n, random.Random(rng.random()))) for n in range(bench.options.jobs)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for pid in left_running(bench):
        bench.findings.setdefault("left running", []).append(str(pid))
    tell(bench, seed, time.monotonic() - began)
    return 1 if bench.findings else 0


def main():
    p = argparse.ArgumentParser(add_help=False)
    p.add_argument("--binary")
    p.add_argument("--kills", "--rounds", type=int, default=1200)
    p.add_argument("--stops", type=int)
    p.add_argument("--seed", type=int)
    p.add_argument("--jobs", type=int, default=1)
    p.add_argument("--work")
    for flag in ("joined", "verbose", "help"):
        p.add_argument("--" + flag, action="store_true")
    o = p.parse_args()
    if o.help or not o.binary:
        print(__doc__)
        return 0 if o.help else 2
    if not os.path.exists(o.binary) or not os.path.isdir("/proc/self"):
        print(f"SKIP: {o.binary} is not there, or there is no /proc")
        return 77
    bench = Bench(o)
    try:
        return work(bench, o.seed if o.seed is not None else random.SystemRandom().randrange(1 << 32))
    finally:
        shutil.rmtree(bench.work, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
