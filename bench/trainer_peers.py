#!/usr/bin/env python3
"""Training-step rate of millrace, Keras/TensorFlow and PyTorch on the same cores, taking turns.

usage: bench/trainer_peers.py MILLRACE [--rounds 5] [--threads N] [--seconds 4] [--nets n1,n3,n9] [--python PYTHON] [--out FILE]

MILLRACE is the built command (build/release/tools/millrace). PYTHON is an interpreter with tensorflow and torch (one that is
missing is listed and left out). All train the same network on one resident batch of 128 with the optimizer of its
reference settings. In every round each program runs once, as a process of its own, for SECONDS; the figure of a run is
batch / median step. Printed: medians over rounds, and the median of the per-round ratio ours / the faster peer.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

BATCH = 128
NETS = {  # name of ours, input h w c, layers, optimizer
    "n1": ("cifar-cnn", (32, 32, 3), "c32s c32 p d.25 c64s c64 p d.25 f512 d.5 f10", "rmsprop"),
    "n3": ("mnist-cnn", (28, 28, 1), "c32 c64 p d.25 f128 d.5 f10", "rmsprop"),
    "n9": ("mnist-mlp", (28, 28, 1), "f512 f10", "sgd"),
}
RATES = {"n1": 1e-4, "n3": 2e-3, "n9": 1e-2}


def layers(text):
    """Words of the table above: cN conv3x3 (s: same padding) + relu, p max pool 2, dR dropout, fN dense (+ relu but for the last)."""
    words = text.split()
    for at, word in enumerate(words):
        kind, rest = word[0], word[1:]
        if kind == "c":
            yield "conv", int(rest.rstrip("s")), rest.endswith("s")
        elif kind == "p":
            yield ("pool",)
        elif kind == "d":
            yield "drop", float(rest)
        else:
            yield "dense", int(rest), at + 1 < len(words)


def torch_step(net, threads):
    import torch
    from torch import nn
    torch.set_num_threads(threads)
    _, (h, w, c), text, rule = NETS[net]
    stack, channels, flat = [], c, False
    for kind, *rest in layers(text):
        if kind == "conv":
            stack += [nn.Conv2d(channels, rest[0], 3, padding=int(rest[1])), nn.ReLU()]
            channels = rest[0]
        elif kind == "pool":
            stack.append(nn.MaxPool2d(2))
        elif kind == "drop":
            stack.append(nn.Dropout(rest[0]))
        else:
            stack += [] if flat else [nn.Flatten()]
            flat = True
            stack += [nn.LazyLinear(rest[0])] + ([nn.ReLU()] if rest[1] else [])
    model = nn.Sequential(*stack).train()
    x, y = torch.rand(BATCH, c, h, w), torch.randint(0, 10, (BATCH,))
    model(x)
    make = {"rmsprop": lambda p: torch.optim.RMSprop(p, RATES[net], alpha=0.9), "sgd": lambda p: torch.optim.SGD(p, RATES[net])}
    optimizer, loss = make[rule](model.parameters()), nn.CrossEntropyLoss()

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss(model(x), y).backward()
        optimizer.step()
    return step, "torch " + torch.__version__


def keras_step(net, threads):
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import numpy as np
    import tensorflow as tf
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    from tensorflow import keras
    _, shape, text, rule = NETS[net]
    stack, flat = [keras.Input(shape)], False
    for kind, *rest in layers(text):
        if kind == "conv":
            stack.append(keras.layers.Conv2D(rest[0], 3, padding="same" if rest[1] else "valid", activation="relu"))
        elif kind == "pool":
            stack.append(keras.layers.MaxPooling2D())
        elif kind == "drop":
            stack.append(keras.layers.Dropout(rest[0]))
        else:
            stack += [] if flat else [keras.layers.Flatten()]
            flat = True
            stack.append(keras.layers.Dense(rest[0], activation="relu" if rest[1] else None))
    model = keras.Sequential(stack)
    make = {"rmsprop": keras.optimizers.RMSprop, "sgd": keras.optimizers.SGD}[rule]
    model.compile(make(RATES[net]), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    x = tf.constant(np.random.rand(BATCH, *shape).astype("float32"))
    y = tf.constant(np.random.randint(0, 10, BATCH))
    model.optimizer.build(model.trainable_variables)
    return tf.function(lambda: model.train_step((x, y))), f"keras {keras.__version__} on tensorflow {tf.__version__}"


def run_peer(which, net, threads, seconds):
    os.environ["OMP_NUM_THREADS"] = str(threads)
    step, version = {"torch": torch_step, "keras": keras_step}[which](net, threads)
    for _ in range(3):
        step()
    times, end = [], time.perf_counter() + seconds
    while len(times) < 5 or time.perf_counter() < end:
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    print(json.dumps({"version": version, "samples_s": BATCH / statistics.median(times)}))


def last_object(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    return json.loads(lines[-1]) if done.returncode == 0 and lines else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("millrace")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--nets", default="n1,n3,n9")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--out")
    args = parser.parse_args()
    results = []
    for net in args.nets.split(","):
        rates, versions = {"millrace": [], "keras": [], "torch": []}, {}
        for _ in range(args.rounds):
            ours = last_object([args.millrace, "bench", "trainer", "--model", NETS[net][0], "--batch", str(BATCH), "--seconds",
                                str(args.seconds), "--threads", str(args.threads), "--json"])
            if not ours:
                sys.exit(f"{args.millrace} bench trainer failed")
            rates["millrace"].append(ours["samples_s"])
            for peer in ("keras", "torch"):
                got = last_object([args.python, __file__, "--peer", peer, net, str(args.threads), str(args.seconds)])
                if got:
                    rates[peer].append(got["samples_s"])
                    versions[peer] = got["version"]
        peers = [p for p in ("keras", "torch") if len(rates[p]) == args.rounds]
        ratios = [ours / max(rates[p][i] for p in peers) for i, ours in enumerate(rates["millrace"])] if peers else []
        row = {"event": "bench", "bench": "trainer_peers", "net": net, "batch": BATCH, "threads": args.threads, "rounds": args.rounds,
               "versions": versions, "rates": rates, "ratio_median": statistics.median(ratios) if ratios else None,
               "ratio_range": [min(ratios), max(ratios)] if ratios else None}
        results.append(row)
        shown = "  ".join(f"{p} {statistics.median(r):,.0f}/s" if r else f"{p}: not installed" for p, r in rates.items())
        print(f"{net}: {shown}  ours / faster peer {row['ratio_median'] or float('nan'):.2f}", flush=True)
    if args.out:
        with open(args.out, "w", encoding="utf-8") as f:
            for row in results:
                f.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    if len(sys.argv) == 6 and sys.argv[1] == "--peer":
        run_peer(sys.argv[2], sys.argv[3], int(sys.argv[4]), float(sys.argv[5]))
    else:
        main()
