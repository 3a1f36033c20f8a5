#!/usr/bin/env python3
"""A whole training job beside Keras and PyTorch: from the start of the process to its end, taking turns.

usage: bench/whole_job.py MILLRACE CIFAR [--rounds 5] [--threads N] [--python PYTHON] [--out FILE]

CIFAR is a folder with train/CLASS/*.jpg and test/CLASS/*.jpg of 32 x 32 pictures (CIFAR-10 as JPEG). Everybody trains the
network N1 (cifar-cnn) for one epoch in batches of 128, RMSprop at its own rate, shuffled, without augmentation, and then
evaluates the test part; PYTHON is an interpreter with tensorflow and torch with torchvision (one that is missing is listed
and left out). Keras reads by image_dataset_from_directory, PyTorch by ImageFolder and a DataLoader with one worker for each
thread, channels last. Printed: medians over rounds of seconds, and of the per-round ratio of the faster peer's to ours.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

BATCH, RATE = 128, 1e-4


def run_torch(folder, threads):
    import torch
    from torch import nn
    from torchvision import datasets, transforms
    torch.set_num_threads(threads)
    to_tensor = transforms.ToTensor()
    part = {p: torch.utils.data.DataLoader(datasets.ImageFolder(os.path.join(folder, p), to_tensor), BATCH, shuffle=p == "train",
                                           num_workers=threads) for p in ("train", "test")}

    def conv(inputs, outputs, pad):
        return [nn.Conv2d(inputs, outputs, 3, padding=pad), nn.ReLU()]
    model = nn.Sequential(*conv(3, 32, 1), *conv(32, 32, 0), nn.MaxPool2d(2), nn.Dropout(0.25),
                          *conv(32, 64, 1), *conv(64, 64, 0), nn.MaxPool2d(2), nn.Dropout(0.25),
                          nn.Flatten(), nn.Linear(2304, 512), nn.ReLU(), nn.Dropout(0.5), nn.Linear(512, 10))
    model = model.to(memory_format=torch.channels_last)
    optimizer, loss = torch.optim.RMSprop(model.parameters(), RATE, alpha=0.9), nn.CrossEntropyLoss()
    for x, y in part["train"]:
        optimizer.zero_grad(set_to_none=True)
        loss(model(x.to(memory_format=torch.channels_last)), y).backward()
        optimizer.step()
    model.eval()
    right = 0
    with torch.no_grad():
        for x, y in part["test"]:
            right += int((model(x.to(memory_format=torch.channels_last)).argmax(1) == y).sum())
    return "torch " + torch.__version__, right / len(part["test"].dataset)


def run_keras(folder, threads):
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    from tensorflow import keras
    part = {p: keras.utils.image_dataset_from_directory(os.path.join(folder, p), image_size=(32, 32), batch_size=BATCH,
                                                        shuffle=p == "train", verbose=False).prefetch(tf.data.AUTOTUNE)
            for p in ("train", "test")}
    layers = keras.layers
    model = keras.Sequential([
        keras.Input((32, 32, 3)), layers.Rescaling(1 / 255),
        layers.Conv2D(32, 3, padding="same", activation="relu"), layers.Conv2D(32, 3, activation="relu"),
        layers.MaxPooling2D(), layers.Dropout(0.25),
        layers.Conv2D(64, 3, padding="same", activation="relu"), layers.Conv2D(64, 3, activation="relu"),
        layers.MaxPooling2D(), layers.Dropout(0.25), layers.Flatten(),
        layers.Dense(512, activation="relu"), layers.Dropout(0.5), layers.Dense(10)])
    model.compile(keras.optimizers.RMSprop(RATE), keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    fitted = model.fit(part["train"], validation_data=part["test"], epochs=1, verbose=0)
    return f"keras {keras.__version__} on tensorflow {tf.__version__}", fitted.history["val_accuracy"][-1]


def timed(command, environment):
    """Seconds, and the last JSON object on its output; None when it failed."""
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})
    took = time.perf_counter() - start
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    return (took, json.loads(lines[-1])) if done.returncode == 0 and lines else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("millrace")
    parser.add_argument("cifar")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--out")
    args = parser.parse_args()
    threads = str(args.threads)
    commands = {"millrace": [args.millrace, "train", args.cifar, "--model", "cifar-cnn", "--batch", str(BATCH), "--lr", str(RATE),
                             "--epochs", "1", "--augment", "none", "--threads", threads, "--workers", threads, "--json", "--quiet"]}
    for peer in ("keras", "torch"):
        commands[peer] = [args.python, __file__, "--peer", peer, args.cifar, threads]
    seconds, versions, accuracy = {name: [] for name in commands}, {}, {name: [] for name in commands}
    for _ in range(args.rounds):
        for name, command in commands.items():
            got = timed(command, {"OMP_NUM_THREADS": threads} if name != "millrace" else {})
            if got is None and name == "millrace":
                sys.exit(f"{' '.join(command)} failed")
            if got:
                seconds[name].append(got[0])
                versions[name] = got[1].get("version", "")
                accuracy[name].append(got[1].get("val_accuracy"))
    peers = [p for p in ("keras", "torch") if len(seconds[p]) == args.rounds]
    ratios = [min(seconds[p][i] for p in peers) / ours for i, ours in enumerate(seconds["millrace"])] if peers else []
    for name, all_seconds in seconds.items():
        shown = f"{statistics.median(all_seconds):7.1f} s  {versions[name]}" if all_seconds else "not installed"
        print(f"{name:9} {shown}")
    if ratios:
        print(f"faster peer / ours {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")
    if args.out:
        with open(args.out, "w", encoding="utf-8") as f:
            f.write(json.dumps({"event": "bench", "bench": "whole_job", "threads": args.threads, "rounds": args.rounds,
                                "versions": versions, "seconds": seconds, "val_accuracy": accuracy,
                                "ratio_median": statistics.median(ratios) if ratios else None}) + "\n")


if __name__ == "__main__":
    if len(sys.argv) == 5 and sys.argv[1] == "--peer":
        about, right = {"torch": run_torch, "keras": run_keras}[sys.argv[2]](sys.argv[3], int(sys.argv[4]))
        print(json.dumps({"version": about, "val_accuracy": right}))
    else:
        main()
