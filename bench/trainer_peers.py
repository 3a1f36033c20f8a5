#!/usr/bin/env python3
"""Training-step rate of millrace, Keras/TensorFlow and PyTorch on the same cores, taking turns.

usage: bench/trainer_peers.py MILLRACE [--rounds 5] [--threads N] [--seconds 4] [--nets n1,n3,n9,n11,r18] [--python PYTHON] [--out FILE]

MILLRACE is the built command (build/release/tools/millrace). PYTHON is an interpreter with tensorflow and torch (one that is
missing is listed and left out). All train the same network on one resident batch (128 pictures, 64 sequences, 32 pictures of
224 x 224 for ResNet-18, which needs torchvision, too) with the optimizer of its reference settings (ResNet-18 in Keras without
weight decay, which makes its step no longer). In every round each program runs once, as a process of its own, for SECONDS; the
figure of a run is batch / median step. Printed: medians over rounds, and the median of the per-round ratio ours / the faster peer.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

NETS = {  # name of ours, input h w c (or steps, values: rows with a single 1), layers, optimizer, batch, classes
    "n1": ("cifar-cnn", (32, 32, 3), "c32s c32 p d.25 c64s c64 p d.25 f512 d.5 f10", "rmsprop", 128, 10),
    "n3": ("mnist-cnn", (28, 28, 1), "c32 c64 p d.25 f128 d.5 f10", "rmsprop", 128, 10),
    "n9": ("mnist-mlp", (28, 28, 1), "f512 f10", "sgd", 128, 10),
    "n11": ("gru-notes", (49, 128), "g1024x4 f512 f128", "adam", 64, 128),
    "r18": ("resnet18", (224, 224, 3), "", "momentum", 32, 1000),
}
RATES = {"n1": 1e-4, "n3": 2e-3, "n9": 1e-2, "n11": 1e-3, "r18": 0.1}
DECAY = {"n11": 2e-6, "r18": 1e-4}


def layers(text):
    """Words of the table above: cN conv3x3 (s: same padding) + relu, p max pool 2, dR dropout, fN dense (+ relu but for the last),
    gNxM M layers of N gated recurrent units; the last layer returns its last state."""
    words = text.split()
    for at, word in enumerate(words):
        kind, rest = word[0], word[1:]
        if kind == "c":
            yield "conv", int(rest.rstrip("s")), rest.endswith("s")
        elif kind == "p":
            yield ("pool",)
        elif kind == "g":
            yield ("gru", *map(int, rest.split("x")))
        elif kind == "d":
            yield "drop", float(rest)
        else:
            yield "dense", int(rest), at + 1 < len(words)


def torch_step(net, threads):
    import torch
    from torch import nn
    torch.set_num_threads(threads)
    _, shape, text, rule, batch, classes = NETS[net]
    stack, channels, flat = [], shape[-1], False

    class LastState(nn.Module):
        def __init__(self, values, units, count):
            super().__init__()
            self.layers = nn.GRU(values, units, count, batch_first=True)

        def forward(self, rows):
            return self.layers(rows)[0][:, -1]
    for kind, *rest in layers(text):
        if kind == "conv":
            stack += [nn.Conv2d(channels, rest[0], 3, padding=int(rest[1])), nn.ReLU()]
            channels = rest[0]
        elif kind == "pool":
            stack.append(nn.MaxPool2d(2))
        elif kind == "gru":
            stack.append(LastState(channels, *rest))
        elif kind == "drop":
            stack.append(nn.Dropout(rest[0]))
        else:
            stack += [] if flat else [nn.Flatten()]
            flat = True
            stack += [nn.LazyLinear(rest[0])] + ([nn.ReLU()] if rest[1] else [])
    model = nn.Sequential(*stack).train()
    if net == "r18":
        import torchvision
        model = torchvision.models.resnet18().train().to(memory_format=torch.channels_last)
    y = torch.randint(0, classes, (batch,))
    if len(shape) == 2:
        x = nn.functional.one_hot(torch.randint(0, shape[1], (batch, shape[0])), shape[1]).float()
    else:
        x = torch.rand(batch, shape[2], *shape[:2])
        x = x.to(memory_format=torch.channels_last) if net == "r18" else x
    model(x)
    make = {"rmsprop": lambda p: torch.optim.RMSprop(p, RATES[net], alpha=0.9), "sgd": lambda p: torch.optim.SGD(p, RATES[net]),
            "momentum": lambda p: torch.optim.SGD(p, RATES[net], momentum=0.9, weight_decay=DECAY[net]),
            "adam": lambda p: torch.optim.Adam(p, RATES[net], eps=1e-7, weight_decay=DECAY[net])}
    optimizer, loss = make[rule](model.parameters()), nn.CrossEntropyLoss()

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss(model(x), y).backward()
        optimizer.step()
    return step, "torch " + torch.__version__


def keras_resnet18(keras, shape, classes):
    """As torchvision builds it, without weight decay."""
    layers = keras.layers

    def norm(x, relu=True):
        x = layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x)
        return layers.ReLU()(x) if relu else x

    def conv(x, filters, side, stride=1):
        x = layers.ZeroPadding2D(side // 2)(x) if side > 1 else x
        return layers.Conv2D(filters, side, stride, use_bias=False)(x)
    start = keras.Input(shape)
    x = layers.MaxPooling2D(3, 2)(layers.ZeroPadding2D(1)(norm(conv(start, 64, 7, 2))))
    for stage in range(4):
        for block in range(2):
            filters, stride = 64 << stage, 2 if stage and not block else 1
            way = norm(conv(x, filters, 1, stride), False) if stride > 1 else x
            x = norm(conv(norm(conv(x, filters, 3, stride)), filters, 3), False)
            x = layers.ReLU()(layers.Add()([x, way]))
    return keras.Model(start, layers.Dense(classes)(layers.GlobalAveragePooling2D()(x)))


def keras_step(net, threads):
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import numpy as np
    import tensorflow as tf
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    from tensorflow import keras
    _, shape, text, rule, batch, classes = NETS[net]
    stack, flat = [keras.Input(shape)], False
    decay = keras.regularizers.L2(DECAY[net] / 2) if net in DECAY else None
    for kind, *rest in layers(text):
        if kind == "conv":
            stack.append(keras.layers.Conv2D(rest[0], 3, padding="same" if rest[1] else "valid", activation="relu"))
        elif kind == "pool":
            stack.append(keras.layers.MaxPooling2D())
        elif kind == "gru":
            units, count = rest
            stack += [keras.layers.GRU(units, return_sequences=at + 1 < count, kernel_regularizer=decay, recurrent_regularizer=decay)
                      for at in range(count)]
        elif kind == "drop":
            stack.append(keras.layers.Dropout(rest[0]))
        else:
            stack += [] if flat else [keras.layers.Flatten()]
            flat = True
            stack.append(keras.layers.Dense(rest[0], activation="relu" if rest[1] else None))
    model = keras_resnet18(keras, shape, classes) if net == "r18" else keras.Sequential(stack)
    make = {"rmsprop": keras.optimizers.RMSprop, "sgd": keras.optimizers.SGD, "adam": keras.optimizers.Adam,
            "momentum": lambda lr: keras.optimizers.SGD(lr, momentum=0.9)}[rule]
    model.compile(make(RATES[net]), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    x = np.random.rand(batch, *shape).astype("float32")
    if len(shape) == 2:
        x = np.eye(shape[1], dtype="float32")[np.random.randint(0, shape[1], (batch, shape[0]))]
    x, y = tf.constant(x), tf.constant(np.random.randint(0, classes, batch))
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
    print(json.dumps({"version": version, "samples_s": NETS[net][4] / statistics.median(times)}))


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
    parser.add_argument("--nets", default="n1,n3,n9,n11")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--out")
    args = parser.parse_args()
    results = []
    for net in args.nets.split(","):
        rates, versions = {"millrace": [], "keras": [], "torch": []}, {}
        for _ in range(args.rounds):
            ours = last_object([args.millrace, "bench", "trainer", "--model", NETS[net][0], "--batch", str(NETS[net][4]), "--seconds",
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
        row = {"event": "bench", "bench": "trainer_peers", "net": net, "batch": NETS[net][4], "threads": args.threads, "rounds": args.rounds,
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
