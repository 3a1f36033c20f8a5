#!/usr/bin/env python3
"""Loss and accuracy of each way to train together, after equal samples.

usage: bench/together_accuracy.py MILLRACE TRAIN TEST [--seeds 1,2,3] [--only TEXT] [--out FILE]

TRAIN and TEST are CIFAR-10. Two processes train mnist-cnn on a fifth of TRAIN for three epochs, in batches of 64 cut into four shares, with
momentum 0.9 and a rate of 0.01; with ps a third process serves the parameters.
Printed for each way: training loss, test loss and test accuracy of each seed, and their means.
"""
import argparse
import json
import os
import statistics
import subprocess

WAYS = {
    "sync": [],
    "average:8": ["--sync", "average:8"],
    "average:64": ["--sync", "average:64"],
    "average:8, outer 0.7, 0.9": ["--sync", "average:8", "--outer-lr", "0.7", "--outer-momentum", "0.9"],
    "independent": ["--sync", "independent"],
    "delayed": ["--sync", "delayed"],
    "ps": ["--sync", "ps"],
    "ps-async:1": ["--sync", "ps-async:1"],
    "ps-async:8": ["--sync", "ps-async:8"],
    "bf16": ["--exchange", "bf16"],
    "f16": ["--exchange", "f16"],
    "int8": ["--exchange", "int8"],
    "1bit": ["--exchange", "1bit"],
}


def train(args, way, seed):
    command = [args.millrace, "train", args.train, "--take", "0:0.2", "--val", args.test, "--model", "mnist-cnn", "--augment", "none",
               "--batch", "64", "--epochs", "3", "--parts", "4", "--seed", str(seed), "--optimizer", "momentum", "--lr", "0.01",
               "--devices", "cpu:1", "--json", "--quiet", *WAYS[way]]
    job = "accuracy%d" % os.getpid()
    size = 3 if way.startswith("ps") else 2  # the first one is the server
    env = dict(os.environ, WORLD_SIZE=str(size), MILLRACE_MEET="127.0.0.1", MILLRACE_JOB=job)
    ranks = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(env, RANK=str(r))) for r in range(size)]
    out = [p.communicate()[0] for p in ranks]
    if any(p.returncode for p in ranks):
        raise SystemExit("%s: exit %s" % (" ".join(command), [p.returncode for p in ranks]))
    end = json.loads("".join(out).splitlines()[-1])
    return end["loss"], end["val_loss"], end["val_accuracy"]


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("millrace")
    p.add_argument("train")
    p.add_argument("test")
    p.add_argument("--seeds", default="1,2,3")
    p.add_argument("--only", default="")
    p.add_argument("--out")
    args = p.parse_args()
    rows = []
    for way in WAYS:
        if args.only not in way:
            continue
        runs = [train(args, way, int(seed)) for seed in args.seeds.split(",")]
        rows.append({"way": way, "seeds": args.seeds, "runs": runs, "means": [round(statistics.mean(v), 4) for v in zip(*runs)]})
        print(json.dumps(rows[-1]), flush=True)
        if args.out:
            with open(args.out, "w", encoding="utf-8") as f:
                json.dump(rows, f, indent=1)


if __name__ == "__main__":
    main()
