#!/usr/bin/env python3
"""ResNet-50 training steps on synthetic data, millrace and PyTorch on the same device, in turns; a section of bench/device_suite.sh.

usage: bench/device_resnet.py MILLRACE DEVICE [--python PYTHON] [--rounds 3] [--seconds 1.5] [--most 240] [--batches 256,128,64]
                              [--precisions bf16,tf32,f32] [--variants eager,compile,graphs] [--model resnet50] [--size 224]
                              [--torch-device cuda:0] [--torch-options "--width 8 ..."]

For each precision and batch, in every round, `millrace bench trainer` and each variant of torch_resnet.py have one turn, millrace first
in even rounds and last in odd ones; ratios are taken inside a round, and the median is printed. PyTorch's networks live in one process that
waits between turns, so that only the first turn pays for compiling; millrace starts anew each time, outside its own clock. Variants that
compile are asked for in bf16 alone. Everything that does not run is listed with its reason. After MOST seconds no new work is begun.

Prints one JSON object per line: "turn" rows as they come, then a "resnet" row for each precision and batch. Needs python3 alone; PYTHON
is an interpreter with torch, and without one millrace is measured by itself.
"""
import argparse
import json
import os
import select
import statistics
import subprocess
import sys
import time

COMPILED = ("compile", "graphs")
NO_TIME = "no time left"


def tell(row):
    print(json.dumps(row), flush=True)


def ratios(ours, peers):
    """Per round: ours over the fastest peer there; rounds where one side is missing give nothing.

    >>> ratios([3.0, None, 8.0], {"eager": [1.0, 1.0, 4.0], "compile": [2.0, 5.0, None]})
    [1.5, 2.0]
    """
    found = []
    for at, our in enumerate(ours):
        best = max((rates[at] for rates in peers.values() if rates[at]), default=None)
        if our and best:
            found.append(our / best)
    return found


def order(names, number):
    """
    >>> order(["millrace", "eager"], 0), order(["millrace", "eager"], 1)
    (['millrace', 'eager'], ['eager', 'millrace'])
    """
    return list(names) if number % 2 == 0 else list(reversed(names))


def last_object(text):
    lines = [line for line in text.splitlines() if line.startswith("{")]
    return json.loads(lines[-1]) if lines else None


class Ours:
    def __init__(self, args):
        self.args = args

    def command(self, precision, batch):
        a = self.args
        command = [a.millrace, "bench", "trainer", "--model", a.model, "--batch", str(batch), "--devices", a.device, "--seconds",
                   f"{a.seconds:g}", "--json", "--quiet"]
        if a.size != 224:
            command += ["--size", str(a.size)]
        return command + (["--precision", precision] if precision != "f32" else [])

    def turn(self, precision, batch, most):
        start = time.monotonic()
        try:
            done = subprocess.run(self.command(precision, batch), capture_output=True, text=True, timeout=most, check=False)
        except subprocess.TimeoutExpired:
            return {"error": f"no end in {most:.0f} s"}
        found = last_object(done.stdout) if done.returncode == 0 else None
        if not found:
            said = (done.stderr.strip() or done.stdout.strip() or "nothing").splitlines()[-1]
            return {"error": f"exit status {done.returncode}: {said}"[:300]}
        return {"ms": found["ms"], "ms_mad": found["ms_mad"], "samples_s": found["samples_s"], "steps": found["steps"],
                "turn_s": time.monotonic() - start}


class Torch:
    """torch_resnet.py, waiting for requests; about: None, with the reason, if it does not start."""

    def __init__(self, args, most):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_resnet.py")
        command = [args.python, script, "--device", args.torch_device, "--size", str(args.size), *args.torch_options.split()]
        self.about, self.reason, self.child, self.rest = None, "", None, b""
        try:
            self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            os.set_blocking(self.child.stderr.fileno(), False)
            self.about = self.line(most)
        except OSError as error:
            self.reason = str(error)

    def line(self, most):
        """Its next line, or None when none comes in time; its standard error is drained meanwhile."""
        end, said = time.monotonic() + most, b""
        while b"\n" not in self.rest:
            left = end - time.monotonic()
            ready = select.select([self.child.stdout, self.child.stderr], [], [], max(0, left))[0] if left > 0 else []
            if not ready:
                self.close(f"no answer in {most:.0f} s")
                return None
            if self.child.stderr in ready:
                said = (said + (self.child.stderr.read() or b""))[-2000:]
            if self.child.stdout in ready:
                got = os.read(self.child.stdout.fileno(), 65536)
                if not got:
                    said += self.child.stderr.read() or b""
                    self.close(said.decode(errors="replace").strip().splitlines()[-1][:300] if said.strip() else "it ended")
                    return None
                self.rest += got
        line, self.rest = self.rest.split(b"\n", 1)
        return json.loads(line)

    def turn(self, precision, variant, batch, seconds, most):
        if not self.about:
            return {"error": self.reason}
        ask = {"precision": precision, "variant": variant, "batch": batch, "seconds": seconds}
        try:
            self.child.stdin.write(json.dumps(ask).encode() + b"\n")
            self.child.stdin.flush()
        except OSError as error:
            self.close(str(error))
            return {"error": self.reason}
        return self.line(most) or {"error": self.reason}

    def close(self, reason="closed"):
        if self.child and self.child.poll() is None:
            self.child.kill()
        if self.child:
            self.child.wait()
        self.about, self.reason = None, reason


def one_config(args, ours, torch, precision, batch, end):
    """Rounds of one precision and batch; what failed once is not asked again."""
    variants = [v for v in args.variants.split(",") if v not in COMPILED or precision == "bf16"]
    rates, errors = {name: [] for name in ["millrace", *variants]}, {}
    steps = {name: [] for name in rates}
    for number in range(args.rounds):
        for name in order(rates, number):
            left = end - time.monotonic()
            found = {"error": errors[name]} if name in errors else {"error": NO_TIME} if left < 5 else None
            if found is None:
                found = ours.turn(precision, batch, left) if name == "millrace" else torch.turn(precision, name, batch, args.seconds, left)
                tell({"event": "turn", "who": name, "precision": precision, "batch": batch, "round": number, **found})
            if "error" in found:
                errors.setdefault(name, found["error"])
            rates[name].append(found.get("samples_s"))
            steps[name].append(found.get("ms"))
    found = ratios(rates["millrace"], {v: rates[v] for v in variants})
    middle = {name: statistics.median([r for r in rows if r]) for name, rows in rates.items() if any(rows)}
    tell({"event": "resnet", "model": args.model, "precision": precision, "batch": batch, "size": args.size, "rounds": args.rounds,
          "samples_s": middle, "ms": {name: statistics.median([m for m in rows if m]) for name, rows in steps.items() if any(rows)},
          "rates": rates, "absent": errors, "ratios": found, "ratio": statistics.median(found) if found else None})
    return errors.get("millrace", NO_TIME) == NO_TIME


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("millrace")
    parser.add_argument("device")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--most", type=float, default=240)
    parser.add_argument("--batches", default="256,128,64")
    parser.add_argument("--precisions", default="bf16,tf32,f32")
    parser.add_argument("--variants", default="eager,compile,graphs")
    parser.add_argument("--model", default="resnet50")
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--torch-device", default="cuda:0")
    parser.add_argument("--torch-options", default="")
    args = parser.parse_args()
    end = time.monotonic() + args.most
    ours, torch = Ours(args), Torch(args, min(90, args.most))
    tell({"event": "torch", "about": torch.about, "absent": None if torch.about else torch.reason})
    fine = True
    for precision in args.precisions.split(","):
        for batch in args.batches.split(","):
            fine = one_config(args, ours, torch, precision, int(batch), end) and fine
    torch.close()
    sys.exit(0 if fine else 1)


if __name__ == "__main__":
    main()
