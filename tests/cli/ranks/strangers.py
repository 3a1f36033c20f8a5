#!/usr/bin/env python3
"""Runs with a secret among strangers, on this host: words without a proof, wrong, old, replayed, reflected, altered, cut and repeated
ones, slow ones, crowds; somebody who takes a port that a lost process had; processes with an old secret, or none.

usage: tests/cli/ranks/strangers.py --binary MILLRACE [--few] [--rounds N] [--seed N] [--work DIR]

    --few        a dozen attacks on one port of an elastic run, and on a meeting
    --rounds N   every attack so often, in another order each time (1)

Expected every time: no step is lost and no rank ends by it; the weights equal the undisturbed run's; memory does not grow; each
kind of stranger is reported once by each process. Exit status: 0 nothing was found, 1 something was."""

import argparse
import json
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

from rank_words import (BEAT, BLAME, CALL, CHALLENGE, DONE, FAREWELL, GO, Guest, HELLO, JOIN, KNOCK, MUSTER, MUSTERED, OTHER,
                        PROOF, PROVED, REFUSED, WELCOME, connect, hello, job_key, message, muster, port_is_open, receive, text,
                        until_closed)

TRAIN = ["train", "set", "--model", "mnist-mlp", "--batch", "24", "--epochs", "100000000", "--seed", "1", "--parts", "4", "--json",
         "--quiet", "--devices", "cpu:1", "--val", "none"]
LAUNCHERS = ("OMPI_", "PMI", "SLURM_", "TORCHELASTIC_", "MILLRACE_", "LOCAL_", "GROUP_", "RANK", "WORLD_SIZE")
LIMIT_S = 120
MORE_BYTES = 64 << 20  # memory that a process may take in the course of a run

# ---- the attacks: each takes a port, the job's key and the secret ----


def words(*all_of_them):
    def attack(port, key, secret):
        for word in all_of_them:
            s = connect(port)
            s.sendall(word(key) if callable(word) else word)
            until_closed(s)
    return attack


def silence(first):
    def attack(port, key, secret):
        s = connect(port)
        s.sendall(first)
        until_closed(s)  # by the other end, after its time
    return attack


def slow(port, key, secret):
    s = connect(port)
    for byte in message(KNOCK, bytes(16))[:20]:
        s.sendall(bytes([byte]))
        time.sleep(0.02)
    until_closed(s)


def crowd(port, key, secret, count=400):
    all_of_them = []
    for k in range(count):
        try:
            s = connect(port)
            s.sendall([b"", b"\0", message(KNOCK, bytes(16)), message(MUSTER, muster(key))][k % 4])
            all_of_them.append(s)
        except OSError:
            pass
    for s in all_of_them:
        s.close()


def passers_by(port, key, secret, count=400):
    for k in range(count):
        s = connect(port)
        if k % 2:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # reset
        s.close()


def proof(make):
    def attack(port, key, secret):
        g = Guest(port, secret)
        if g.knock():
            g.say(message(PROOF, make(g)))
        assert g.hear()[0] in (OTHER, 0), "a wrong proof was taken"
        until_closed(g.sock)
    return attack


def proven(port, secret):
    """Others crowd it out now and then, as they do a rank, which comes again."""
    for _ in range(200):
        g = Guest(port, secret)
        try:
            if g.prove():
                return g
        except OSError:
            pass
        g.sock.close()
        time.sleep(0.05)
    raise AssertionError("a right proof was not taken")


def old_secret(port, key, secret):
    g = Guest(port, "the secret of an earlier run of it")
    assert not g.prove(), "an old secret was taken"
    until_closed(g.sock)


def replay(port, key, secret):
    g = proven(port, secret)
    g.say(g.sealed(MUSTER, muster(b"another job's ke", 1 << 40)))
    until_closed(g.sock)
    for cut in (len(g.sent), 12 + 16 + 12 + 32, 40):
        s = connect(port)
        try:
            s.sendall(g.sent[:cut])
            s.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        assert struct.pack("<HI", PROVED, 32) not in receive(s, 4096), "the answer is a proof"
        until_closed(s)


def inside(say):
    """A peer that knows the secret and sends an invalid message after the proof."""
    def attack(port, key, secret):
        g = proven(port, secret)
        try:
            for word in say(g, key):
                g.say(word)
        except OSError:
            pass  # it has hung up
        until_closed(g.sock)
    return attack


def altered(word, at=20):
    return word[:at] + bytes([word[at] ^ 1]) + word[at + 1:]


def out_of_order(g, key):
    g.count = 1
    return [g.sealed(MUSTER, muster(key))]


ATTACKS = {
    "a word of the muster": words(lambda key: message(MUSTER, muster(key))),
    "a claim of progress": words(lambda key: message(MUSTER, muster(key, 1 << 40)), lambda key: message(CALL, muster(key, 1 << 63))),
    "a rank of this world": words(lambda key: message(HELLO, hello(key, 1, 2)), lambda key: message(HELLO, hello(key, 1, 7))),
    "joining": words(message(JOIN, bytes(28)), message(JOIN, os.urandom(28))),
    "verdicts": words(message(BLAME, bytes(12) + text("it is dead")), message(FAREWELL), message(BEAT), message(GO), message(DONE)),
    "a welcome": words(message(WELCOME, bytes(20)), message(MUSTERED, bytes(200)), message(REFUSED, bytes(4) + text("go away"))),
    "noise": words(os.urandom(4096), b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
    "large promises": words(message(MUSTER, b"", size=0xFFFFFFF0), message(KNOCK, b"", size=0x7FFFFFFF), message(99, b"", size=1 << 20)),
    "other versions": words(lambda key: message(MUSTER, muster(key), 1), message(KNOCK, bytes(16), 1), message(KNOCK, bytes(16), 65535)),
    "proofs out of turn": words(message(PROOF, bytes(32)), message(PROVED, bytes(32)), message(CHALLENGE, bytes(16)),
                                message(KNOCK, bytes(16)) * 2, message(KNOCK, bytes(15)), message(KNOCK, bytes(17)), message(KNOCK)),
    "half a head": silence(message(KNOCK)[:7]),
    "half a word": silence(message(MUSTER, bytes(60))[:40]),
    "nothing": silence(b""),
    "a knock, and no more": silence(message(KNOCK, bytes(16))),
    "slow words": slow,
    "a crowd": crowd,
    "passers-by": passers_by,
    "a guess": proof(lambda g: os.urandom(32)),
    "zeros": proof(lambda g: bytes(32)),
    "its challenge sent back": proof(lambda g: g.challenge * 2),
    "the host's own proof": proof(lambda g: g.of(b"host proves")),
    "half a proof": proof(lambda g: g.of(b"guest proves")[:16]),
    "one bit of it": proof(lambda g: altered(g.of(b"guest proves"), 31)),
    "an old secret": old_secret,
    "a replay": replay,
    "words without a tag": inside(lambda g, key: [message(MUSTER, muster(key))]),
    "an altered word": inside(lambda g, key: [altered(g.sealed(MUSTER, muster(key)))]),
    "an altered tag": inside(lambda g, key: [altered(g.sealed(MUSTER, muster(key)), -1)[:-1]]),
    "a cut word": inside(lambda g, key: [message(MUSTER, bytes(8))]),
    "a word out of order": inside(out_of_order),
    "the other direction": inside(lambda g, key: [g.sealed(MUSTER, muster(key), b"host says")]),
    "noise after a proof": inside(lambda g, key: [os.urandom(2000)]),
    "silence after a proof": inside(lambda g, key: []),
    "another job": inside(lambda g, key: [g.sealed(MUSTER, muster(os.urandom(16), 1 << 40))]),
    "another run": inside(lambda g, key: [g.sealed(MUSTER, muster(key, 1 << 40, os.urandom(16)))]),
    "another run's call": inside(lambda g, key: [g.sealed(CALL, muster(key, 1 << 40, os.urandom(16)))]),
}

# ---- somebody between two processes ----


class Relay:
    """Passes on what comes to its port. change(of_guest, number, message) says what becomes of each message: what to send instead."""

    def __init__(self, to, change=lambda of_guest, number, whole: whole):
        self.to, self.change, self.heard = to, change, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        while True:
            try:
                guest, _ = self.listener.accept()
                host = socket.create_connection(("127.0.0.1", self.to))
            except OSError:
                return
            words = []
            self.heard.append(words)
            for args in ((guest, host, True, words), (host, guest, False, [])):
                threading.Thread(target=self.pass_on, args=args, daemon=True).start()

    def pass_on(self, from_, to, of_guest, words):
        try:
            while True:
                head = receive(from_, 12)
                if len(head) < 12:
                    break
                words.append(head + receive(from_, struct.unpack("<8xI", head)[0]))
                changed = self.change(of_guest, len(words) - 1, words[-1])
                if changed is None:
                    break
                to.sendall(changed)
        except OSError:
            pass
        for s in (from_, to):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        self.listener.close()


def change_one(of_guest, number, how):
    return lambda guest, at, whole: how(whole) if (guest, at) == (of_guest, number) else whole


# ---- processes of a run ----


class Process:
    def __init__(self, run, number, **more):
        self.run, self.number = run, number
        self.out, self.err = (os.path.join(run.folder, f"{name}.{number}") for name in ("out", "err"))
        arguments = more.pop("arguments", [])
        with open(self.out, "wb") as out, open(self.err, "wb") as err:
            self.process = subprocess.Popen([run.millrace, *TRAIN, *run.arguments, *arguments], cwd=run.work,
                                            env={**run.env, **more}, stdin=subprocess.DEVNULL, stdout=out, stderr=err)

    def said(self):
        with open(self.err, encoding="utf-8", errors="replace") as f:
            return f.read()

    def events(self, name=None):
        found = []
        with open(self.out, encoding="utf-8") as f:
            for line in f:
                if line.endswith("\n"):
                    event = json.loads(line)
                    if name in (None, event["event"]):
                        found.append(event)
        return found

    def status(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as f:
            return int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1)) << 10

    def ports(self):
        """Where it listens."""
        own = set()
        for fd in os.listdir(f"/proc/{self.process.pid}/fd"):
            try:
                found = re.match(r"socket:\[(\d+)\]", os.readlink(f"/proc/{self.process.pid}/fd/{fd}"))
            except OSError:
                continue
            if found:
                own.add(found.group(1))
        ports = set()
        for table in ("tcp", "tcp6"):
            with open(f"/proc/{self.process.pid}/net/{table}", encoding="ascii") as f:
                for line in f.readlines()[1:]:
                    part = line.split()
                    if part[3] == "0A" and part[9] in own:
                        ports.add(int(part[1].rsplit(":", 1)[1], 16))
        return ports


class Run:
    def __init__(self, judge, arguments, secret="the secret of these tests, 32 b."):
        self.millrace, self.work, self.judge, self.secret = judge.millrace, judge.work, judge, secret
        self.folder = tempfile.mkdtemp(prefix="run-", dir=judge.work)
        self.port = judge.free_port()
        path = os.path.join(self.folder, "secret")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as f:
            f.write(secret + "\n")
        self.arguments = arguments
        self.env = {**judge.env, "MILLRACE_MEET": f"127.0.0.1:{self.port}", "MILLRACE_SECRET_FILE": path}
        self.processes = []

    def start(self, **more):
        self.processes.append(Process(self, len(self.processes), **more))
        return self.processes[-1]

    def start_all(self, size):
        """As a launcher does, so that nobody waits for more."""
        return [self.start(RANK=str(r), WORLD_SIZE=str(size)) for r in range(size)]

    def wait_for(self, what, condition):
        due = time.monotonic() + LIMIT_S
        while not condition():
            if time.monotonic() > due or all(p.process.poll() is not None for p in self.processes):
                raise AssertionError(f"{what}: not in time: " + " / ".join(p.said() for p in self.processes))
            time.sleep(0.02)

    def worlds(self, of=None):
        return [e for p in of or self.processes for e in p.events("world")]

    def steps(self):
        return max((e["updates"] for p in self.processes for e in p.events("step")), default=0)

    def go_on(self, by=3):
        """It makes steps."""
        begun = self.steps()
        self.wait_for("more steps", lambda: self.steps() >= begun + by)

    def end(self, who, status=130):
        """Ctrl-C to one of them; the weights of all its steps."""
        who[0].process.send_signal(signal.SIGINT)
        for p in who:
            got = p.process.wait(LIMIT_S)
            assert got == status, f"process {p.number} ends with status {got}: {p.said()}"
        done = [e for p in who for e in p.events("train")]
        assert len(done) == 1, f"{len(done)} results"
        self.judge.same_weights(self.steps(), done[0]["weights"])

    def kill(self):
        for p in self.processes:
            if p.process.poll() is None:
                p.process.kill()
                p.process.wait()


class Judge:
    def __init__(self, options, work):
        self.millrace, self.work, self.rng = os.path.abspath(options.binary), work, random.Random(options.seed)
        self.few, self.rounds = options.few, options.rounds
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(LAUNCHERS)}
        self.env["ASAN_OPTIONS"] = ":".join(filter(None, (self.env.get("ASAN_OPTIONS"), "quarantine_size_mb=8")))
        self.call("synth", "set", "--count", "40", "--channels", "1", "--size", "28", "--quiet")

    def call(self, *arguments):
        done = subprocess.run([self.millrace, *arguments], cwd=self.work, env=self.env, check=True, capture_output=True, text=True)
        return done.stdout

    def free_port(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            return s.getsockname()[1]

    def same_weights(self, updates, weights):
        quiet = json.loads(self.call(*TRAIN, "--max-steps", str(updates)).splitlines()[-1])
        assert quiet["weights"] == weights, f"after {updates} steps {weights}, expected {quiet['weights']}"


def each_once(p):
    lines = [line for line in p.said().splitlines() if "turned away" in line]
    assert lines, f"process {p.number} reported no stranger"
    assert len(lines) == len(set(lines)), f"process {p.number} says something twice: {lines}"
    assert len(lines) <= 17, f"process {p.number} has {len(lines)} lines"


def attack_all(judge, ports, key, secret):
    """Every attack on every port, several at once. What went wrong."""
    names = sorted(ATTACKS)[::3] if judge.few else list(ATTACKS)
    todo = [(name, port) for _ in range(judge.rounds) for name in names for port in (ports[:1] if judge.few else ports)]
    judge.rng.shuffle(todo)
    wrong, lock = [], threading.Lock()

    def work():
        while True:
            with lock:
                if not todo:
                    return
                name, port = todo.pop()
            try:
                ATTACKS[name](port, key, secret)
            except AssertionError as e:
                wrong.append(f"{name}: {e}")
            except OSError:
                pass  # the port is closed for it: what counts is how the run fares

    threads = [threading.Thread(target=work, daemon=True) for _ in range(12)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return wrong


# ---- runs ----


def an_elastic_run(judge):
    run = Run(judge, ["--elastic", "2:4", "--log-steps", "1"])
    try:
        ranks = run.start_all(2)
        run.wait_for("steps", lambda: run.steps() >= 5)
        before = [p.status() for p in ranks]
        ports = sorted({port for p in ranks for port in p.ports()} | {run.port})
        old = {"MILLRACE_SECRET_FILE": "", "MILLRACE_SECRET": "the secret of an earlier run", "arguments": ["--meet-wait", "2"]}
        late = [run.start(MILLRACE_SECRET_FILE="", arguments=["--meet-wait", "2"]), run.start(**old), run.start(**old)]
        wrong = attack_all(judge, ports, job_key("muster", ""), run.secret)
        assert not wrong, " / ".join(wrong)
        for p in late:
            assert p.process.wait(LIMIT_S) == 1, f"process {p.number} without the secret: {p.said()}"
            assert "secret" in p.said(), p.said()
        run.go_on()
        assert not run.worlds(ranks), f"a stranger has changed the world: {run.worlds(ranks)}"
        for p, bytes_before in zip(ranks, before):
            assert p.status() < bytes_before + MORE_BYTES, f"process {p.number} took {p.status() - bytes_before} bytes more"
            assert len(p.ports()) <= 2
        run.end(ranks)
        for p in ranks:
            if not judge.few or "turned away" in p.said():
                each_once(p)
    finally:
        run.kill()


def a_port_that_was_left(judge):
    """Who has the port of the run is killed, and a stranger takes it: it says that it will look, and never ends a run by it."""
    run = Run(judge, ["--elastic", "1:4", "--log-steps", "1", "--leave-out", "0"])
    ended = threading.Event()
    try:
        ranks = run.start_all(3)
        run.wait_for("a world of three", lambda: any(e["ranks"] == 3 for p in ranks for e in p.events("start") + p.events("world")))
        run.go_on()
        first = next(p for p in ranks if run.port in p.ports())
        first.process.kill()
        first.process.wait()
        taken = socket.socket()
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(("127.0.0.1", run.port))
            taken.listen(64)
        except OSError:
            pass  # one of the run was faster

        def squat():
            taken.settimeout(0.2)
            while not ended.is_set():
                try:
                    s, _ = taken.accept()
                    s.sendall(judge.rng.choice([message(OTHER, struct.pack("<I", 2) + text("it looks for the others itself")),
                                                message(WELCOME, bytes(20)), message(CHALLENGE, bytes(16)) + message(PROVED, bytes(32)),
                                                b"noise" * 9, b""]))
                except OSError:
                    continue

        threading.Thread(target=squat, daemon=True).start()
        rest = [p for p in ranks if p is not first]
        run.wait_for("a world of two", lambda: any(e["ranks"] == 2 for e in run.worlds(rest)))
        run.go_on()
        run.end(rest)
    finally:
        ended.set()
        run.kill()


CHANGES = {
    "altered": lambda whole: altered(whole, len(whole) - 1),
    "another kind": lambda whole: altered(whole, 6),
    "another length": lambda whole: altered(whole, 8),
    "in the middle": lambda whole: altered(whole, 12 + (len(whole) - 12) // 2),
    "repeated": lambda whole: whole * 2,
    "left out": lambda whole: b"",
    "cut": lambda whole: whole[:-3],
    "cut off": lambda whole: None,
}


def a_relay(judge):
    """Somebody sits between a new process and the run. It can keep the process out, and no more."""
    run = Run(judge, ["--elastic", "2:4", "--log-steps", "1", "--leave-out", "0"])
    relays = []

    def come_by(change=None, **more):
        relays.append(Relay(run.port, change) if change else Relay(run.port))
        return run.start(MILLRACE_MEET=f"127.0.0.1:{relays[-1].port}", **more)

    try:
        ranks = run.start_all(2)
        run.wait_for("steps", lambda: run.steps() >= 5)
        late = [come_by(change_one(of_guest, number, CHANGES[how]), arguments=["--meet-wait", "1"])
                for of_guest, number in ((True, 0), (True, 1), (True, 2), (False, 0), (False, 1)) for how in CHANGES
                if how != "repeated" or (of_guest, number) not in ((True, 2), (False, 1))]  # the process is there before it shows
        for p in late:
            assert p.process.wait(LIMIT_S) == 1, f"process {p.number} came by a relay that alters words: {p.said()}"
        run.go_on()
        assert not run.worlds(ranks), f"a relay has changed the world: {run.worlds(ranks)}"
        guest = come_by(lambda of_guest, number, whole: whole)
        run.wait_for("a world of three", lambda: any(e["ranks"] == 3 for e in run.worlds()))
        guest.process.kill()
        guest.process.wait()
        run.wait_for("two again", lambda: run.worlds(ranks) and run.worlds(ranks)[-1]["ranks"] == 2)
        run.go_on()
        before = len(run.worlds())
        for words_heard in relays[-1].heard:
            for _ in range(10):
                s = connect(run.port)
                try:
                    s.sendall(b"".join(words_heard))
                    s.shutdown(socket.SHUT_WR)
                except OSError:
                    pass  # it has hung up
                until_closed(s)
        run.go_on()
        assert len(run.worlds()) == before, "a repeated message of a process has changed the world"
        run.end(ranks)
    finally:
        for relay in relays:
            relay.close()
        run.kill()


def a_meeting(judge):
    """Ranks that a launcher started: strangers come before the second one does."""
    run = Run(judge, ["--max-steps", "40", "--meet-wait", "100"])
    try:
        run.env.update(RANK="0", WORLD_SIZE="2")
        ranks = [run.start()]
        run.wait_for("its port", lambda: port_is_open(run.port))
        wrong = attack_all(judge, [run.port], job_key("RANK and WORLD_SIZE", "", "", ""), run.secret)
        assert not wrong, " / ".join(wrong)
        crowding = threading.Thread(target=lambda: [crowd(run.port, bytes(16), "") for _ in range(2)], daemon=True)
        crowding.start()
        ranks.append(run.start(RANK="1"))
        for p in ranks:
            assert p.process.wait(LIMIT_S) == 0, f"rank {p.number}: {p.said()}"
        crowding.join()
        each_once(ranks[0])
        judge.same_weights(40, ranks[0].events("train")[-1]["weights"])
    finally:
        run.kill()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--few", action="store_true")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--work")
    options = parser.parse_args()
    work, bad = tempfile.mkdtemp(prefix="millrace-strangers-", dir=options.work), 0
    judge = Judge(options, work)
    try:
        for run in (an_elastic_run, a_meeting) if options.few else (an_elastic_run, a_meeting, a_port_that_was_left, a_relay):
            begun = time.monotonic()
            try:
                run(judge)
                print(f"{run.__name__}: as expected, {time.monotonic() - begun:.1f} s", flush=True)
            except (AssertionError, LookupError, OSError, subprocess.SubprocessError) as e:
                bad += 1
                print(f"FAILED {run.__name__}: {e}", flush=True)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(f"{len(ATTACKS)} attacks")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
