#!/usr/bin/env python3
"""A training step of ResNet-50 (v1.5) in PyTorch, the yardstick of bench/device_resnet.py, which starts this and gives it turns.

usage: bench/torch_resnet.py [--device cuda] [--classes 1000] [--size 224] [--width 64] [--blocks 3,4,6,3]

One JSON object per line on standard input asks for a turn:  {"precision": "bf16", "variant": "compile", "batch": 256, "seconds": 2}
and one per line on standard output answers it: the median time of a step and its spread, or {"error": "..."}; the first line has the
versions. precision: bf16 (autocast), f16 (autocast and gradient scaling), tf32, f32. variant: eager; compile, torch.compile as it
comes; graphs, torch.compile(mode="reduce-overhead"), which records CUDA graphs. What an ask needs is built when it is first asked for
and kept, and a turn's steps begin after warm-up ones, so that no turn pays for building, compiling or choosing algorithms.

Given the best of what PyTorch offers: channels_last everywhere, cudnn.benchmark, the fused SGD with momentum 0.9 and weight decay, and
synthetic input that is on the device already, normalised and, like the parameters, in the right layout. Steps are timed by events on
the device, from the end of one to the end of the next, while the host runs ahead as it can.
"""
import argparse
import contextlib
import json
import statistics
import sys
import time

import torch
import torch._dynamo
from torch import nn


class Bottleneck(nn.Module):
    def __init__(self, into, width, stride):
        super().__init__()
        out = 4 * width
        self.body = nn.Sequential(
            nn.Conv2d(into, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),  # v1.5: the stride is here
            nn.Conv2d(width, out, 1, bias=False), nn.BatchNorm2d(out))
        self.way = nn.Identity()
        if stride != 1 or into != out:
            self.way = nn.Sequential(nn.Conv2d(into, out, 1, stride, bias=False), nn.BatchNorm2d(out))
        self.last = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.last(self.body(x) + self.way(x))


def resnet(blocks, width, classes):
    layers = [nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    into = width
    for stage, count in enumerate(blocks):
        for at in range(count):
            layers.append(Bottleneck(into, width << stage, 2 if stage and not at else 1))
            into = 4 * (width << stage)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(into, classes))


class Trainer:
    """The network and its optimizer in one precision and variant, for one batch size."""

    def __init__(self, args, precision, variant, batch):
        self.cuda = args.device.startswith("cuda")
        torch.manual_seed(0)
        model = resnet([int(n) for n in args.blocks.split(",")], args.width, args.classes)
        model = model.to(args.device, memory_format=torch.channels_last).train()
        self.optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=1e-4, fused=True)
        self.loss = nn.CrossEntropyLoss()
        if variant == "graphs" and not self.cuda:
            raise ValueError("CUDA graphs need a GPU")
        modes = {"eager": None, "compile": "default", "graphs": "reduce-overhead"}
        self.model = model if modes[variant] is None else torch.compile(model, mode=modes[variant], dynamic=False)
        self.x = torch.randn(batch, 3, args.size, args.size, device=args.device).contiguous(memory_format=torch.channels_last)
        self.y = torch.randint(0, args.classes, (batch,), device=args.device)
        kinds = {"bf16": torch.bfloat16, "f16": torch.float16}
        self.tf32 = precision == "tf32"
        self.cast = (lambda: torch.autocast(args.device.split(":")[0], kinds[precision])) if precision in kinds else contextlib.nullcontext
        self.scaler = torch.amp.GradScaler(args.device.split(":")[0]) if precision == "f16" else None

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        with self.cast():
            loss = self.loss(self.model(self.x), self.y)
        if self.scaler:
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()
        else:
            loss.backward()
            self.optimizer.step()

    def allow(self):
        torch.backends.cuda.matmul.allow_tf32 = self.tf32
        torch.backends.cudnn.allow_tf32 = self.tf32

    def steps_timed(self, count):
        """Milliseconds of each of `count` steps."""
        if not self.cuda:
            times = []
            for _ in range(count):
                start = time.perf_counter()
                self.step()
                times.append(1e3 * (time.perf_counter() - start))
            return times
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(count + 1)]
        marks[0].record()
        for mark in marks[1:]:
            self.step()
            mark.record()
        torch.cuda.synchronize()
        return [a.elapsed_time(b) for a, b in zip(marks, marks[1:])]


def turn(trainer, seconds, warmup):
    """
    >>> class Fake:
    ...     def allow(self): pass
    ...     def steps_timed(self, count): return [2.0] * count
    >>> turn(Fake(), 0.02, 3)["ms"], turn(Fake(), 0.02, 3)["steps"]
    (2.0, 10)
    """
    trainer.allow()
    trainer.steps_timed(warmup)
    guess = statistics.median(trainer.steps_timed(3))
    times = trainer.steps_timed(max(5, min(10000, round(1e3 * seconds / guess))))
    middle = statistics.median(times)
    return {"ms": middle, "ms_mad": 1.4826 * statistics.median(abs(t - middle) for t in times), "steps": len(times)}


def answer(args, trainers, ask):
    key = (ask["precision"], ask["variant"], ask["batch"])
    first = key not in trainers
    start = time.perf_counter()
    if first:
        trainers[key] = Trainer(args, *key)
    found = turn(trainers[key], ask["seconds"], args.warmup if first else 2)
    found.update(samples_s=1e3 * ask["batch"] / found["ms"], turn_s=time.perf_counter() - start)
    if trainers[key].cuda:
        found["peak_bytes"] = torch.cuda.max_memory_allocated()
        torch.cuda.empty_cache()
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--blocks", default="3,4,6,3")
    parser.add_argument("--warmup", type=int, default=12)
    args = parser.parse_args()
    out, sys.stdout = sys.stdout, sys.stderr  # answers alone go to standard output
    if args.device.startswith("cuda") and not torch.cuda.is_available():
        sys.exit("this PyTorch sees no GPU")
    torch.backends.cudnn.benchmark = True
    for limit in ("recompile_limit", "cache_size_limit"):  # one network per batch size and variant, all of the same code
        if hasattr(torch._dynamo.config, limit):
            setattr(torch._dynamo.config, limit, 64)
    about = {"torch": torch.__version__, "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version()}
    about["hardware"] = torch.cuda.get_device_name() if args.device.startswith("cuda") else "processor"
    about["parameters"] = sum(p.numel() for p in resnet([int(n) for n in args.blocks.split(",")], args.width, args.classes).parameters())
    print(json.dumps(about), file=out, flush=True)
    trainers = {}
    for line in sys.stdin:
        try:
            found = answer(args, trainers, json.loads(line))
        except Exception as error:  # out of memory, a compiler that is missing: the asker lists it
            found = {"error": f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"[:300]}
        print(json.dumps(found), file=out, flush=True)


if __name__ == "__main__":
    main()
