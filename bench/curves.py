#!/usr/bin/env python3
"""Learning curves of whole networks on real data, millrace compared with PyTorch with the same settings and several seeds.

usage: bench/curves.py MILLRACE DATA [--nets n5,n11] [--seeds 1,2,3] [--epochs N] [--threads N] [--device cpu|cuda:0]
                       [--python PYTHON] [--out FILE]

DATA is a folder with mnist/ (IDX files, gzip) and notes/ (train.csv.gz, val.csv.gz). PYTHON is an interpreter with torch.
n5 is `mnist-vae` (batch 128, RMSprop 1e-3, 5 epochs), n11 `gru-notes` (batch 64, Adam 1e-3, decay of the recurrent weights, 15
epochs). Both begin with weights of the same distributions (Glorot's, orthogonal recurrent ones, biases zero) from seeds of
their own, shuffle, and validate after each epoch. FILE (JSON lines) records finished runs: a repeated command goes on
with the next run. Printed: for each epoch the mean of each program's losses over the seeds, their range, and how far the
means are apart in standard errors.
"""
import argparse
import gzip
import json
import math
import os
import statistics
import subprocess
import sys
import time

NETS = {"n4": ("mnist-cnn-small", "mnist", 12), "n5": ("mnist-vae", "mnist", 5), "n11": ("gru-notes", "notes", 15)}
CURVES = ("loss", "val_loss", "acc", "val_acc")


def pictures(folder, part):
    import numpy
    import torch

    def numbers(name, skip):
        with gzip.open(os.path.join(folder, "mnist", name)) as f:
            return numpy.frombuffer(f.read(), numpy.uint8, offset=skip)
    x = numbers(part + "-images-idx3-ubyte.gz", 16).reshape(-1, 1, 28, 28)
    return torch.from_numpy(x.copy()).float() / 255, torch.from_numpy(numbers(part + "-labels-idx1-ubyte.gz", 8).copy()).long()


def rows(folder, part):
    import numpy
    import torch
    with gzip.open(os.path.join(folder, "notes", part + ".csv.gz"), "rt") as f:
        table = torch.from_numpy(numpy.loadtxt(f, delimiter=",", dtype="int64"))
    return table[:, :-1], table[:, -1]


def glorot(module):
    """Keras' first weights, which are ours, too."""
    from torch import nn
    for m in module.modules():
        if isinstance(m, (nn.Conv2d, nn.ConvTranspose2d, nn.Linear)):
            nn.init.xavier_uniform_(m.weight)
            nn.init.zeros_(m.bias)
        if isinstance(m, nn.GRU):
            for name, p in m.named_parameters():
                for gate in p.chunk(3):
                    (nn.init.zeros_ if "bias" in name else nn.init.orthogonal_ if "_hh" in name else nn.init.xavier_uniform_)(gate)
                if name.startswith("weight_ih"):  # one matrix of three gates in Keras
                    bound = math.sqrt(6 / (p.shape[0] + p.shape[1]))
                    nn.init.uniform_(p, -bound, bound)


def autoencoder(torch):
    """N5, and the loss of a batch."""
    from torch import nn
    functional = nn.functional
    down = nn.Sequential(nn.ZeroPad2d((0, 1, 0, 1)), nn.Conv2d(1, 1, 2), nn.ReLU(), nn.Conv2d(1, 64, 2, 2), nn.ReLU(),
                         nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(),
                         nn.Flatten(), nn.Linear(12544, 128), nn.ReLU())
    mean, spread = nn.Linear(128, 2), nn.Linear(128, 2)
    up = nn.Sequential(nn.Linear(2, 128), nn.ReLU(), nn.Linear(128, 12544), nn.ReLU(), nn.Unflatten(1, (64, 14, 14)),
                       nn.ConvTranspose2d(64, 64, 3, padding=1), nn.ReLU(), nn.ConvTranspose2d(64, 64, 3, padding=1), nn.ReLU(),
                       nn.ConvTranspose2d(64, 64, 3, 2), nn.ReLU(), nn.Conv2d(64, 1, 2))
    model = nn.ModuleList([down, mean, spread, up])

    def loss(x, _):
        code = down(x)
        m, v = mean(code), spread(code)
        out = up(m + torch.exp(v) * torch.randn_like(m))
        pixels = functional.binary_cross_entropy_with_logits(out, x, reduction="none").flatten(1).sum(1).mean()
        return pixels - 0.5 * (1 + v - m * m - torch.exp(v)).mean(), None
    return model, loss, torch.optim.RMSprop(model.parameters(), 1e-3, alpha=0.9, eps=1e-7), 128


def small(torch):
    """N4, and the loss of a batch."""
    from torch import nn
    model = nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.25),
                          nn.Flatten(), nn.Linear(4608, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, 10))

    def loss(x, y):
        out = model(x)
        return nn.functional.cross_entropy(out, y), (out.argmax(1) == y).sum().item()
    return model, loss, torch.optim.Adadelta(model.parameters(), 1.0, rho=0.95, eps=1e-7), 128


def study(torch):
    """N11, and the loss of a batch."""
    from torch import nn
    gru = nn.GRU(128, 1024, 4, batch_first=True)
    head = nn.Sequential(nn.Linear(1024, 512), nn.ReLU(), nn.Linear(512, 128))
    model = nn.ModuleList([gru, head])

    def loss(x, y):
        out = head(gru(nn.functional.one_hot(x, 128).float())[0][:, -1])
        return nn.functional.cross_entropy(out, y), (out.argmax(1) == y).sum().item()
    decayed = [p for name, p in gru.named_parameters() if name.startswith("weight")]
    others = [p for name, p in gru.named_parameters() if name.startswith("bias")] + list(head.parameters())
    return model, loss, torch.optim.Adam([{"params": decayed, "weight_decay": 2e-6}, {"params": others}], 1e-3, eps=1e-7), 64


def run_torch(net, folder, seed, epochs, threads, device):
    """Trains, and prints the epochs as JSON lines. On a GPU the whole set lies there from the beginning."""
    import torch
    torch.set_num_threads(threads)
    torch.manual_seed(seed)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = device != "cpu"
    train, val = (pictures(folder, "train"), pictures(folder, "t10k")) if NETS[net][1] == "mnist" else \
        (rows(folder, "train"), rows(folder, "val"))
    model, loss, optimizer, batch = {"n4": small, "n5": autoencoder, "n11": study}[net](torch)
    glorot(model)
    model.to(device)
    train, val = ([t.to(device) for t in part] for part in (train, val))
    for epoch in range(1, epochs + 1):
        row, start = {"epoch": epoch}, time.perf_counter()
        for name, (x, y), learning in (("", train, True), ("val_", val, False)):
            model.train(learning)
            total, right = 0.0, 0
            with torch.set_grad_enabled(learning):
                for at in (torch.randperm(len(x)) if learning else torch.arange(len(x))).to(device).split(batch):
                    value, hits = loss(x[at], y[at])
                    if learning:
                        optimizer.zero_grad(set_to_none=True)
                        value.backward()
                        optimizer.step()
                    total += value.item() * len(at)
                    right = None if hits is None else right + hits
            row[name + "loss"], row[name + "acc"] = total / len(x), None if right is None else right / len(x)
            if learning:
                row["samples_per_s"] = len(x) / (time.perf_counter() - start)
        print(json.dumps({**row, "version": "torch " + torch.__version__}), flush=True)


def ours(lines):
    """The epochs among the JSON lines of `millrace train`."""
    for line in map(json.loads, lines):
        if line.get("event") == "epoch":
            yield {"epoch": line["epoch"] + 1, "samples_per_s": line["samples_per_s"], "version": "millrace",
                   **{ours: line.get(theirs) for ours, theirs in zip(CURVES, ("loss", "val_loss", "accuracy", "val_accuracy"))}}


def table(net, done):
    print(f"\n{net} `{NETS[net][0]}`")
    print("epoch  curve     millrace (range)               PyTorch (range)                apart, standard errors")
    for epoch in sorted({r["epoch"] for r in done}):
        for curve in CURVES:
            values = {who: [r[curve] for r in done if r["who"] == who and r["epoch"] == epoch and r[curve] is not None]
                      for who in ("millrace", "torch")}
            if not any(values.values()):
                continue
            cells = [f"{statistics.mean(v):9.4f} ({min(v):.4f} to {max(v):.4f})" if v else "-" for v in values.values()]
            error = math.sqrt(sum(statistics.variance(v) / len(v) for v in values.values())) if min(map(len, values.values())) > 1 else 0
            apart = abs(statistics.mean(values["millrace"]) - statistics.mean(values["torch"])) / error if error else None
            print(f"{epoch:5d}  {curve:8s}  {cells[0]:30s} {cells[1]:30s} {'-' if apart is None else f'{apart:.1f}'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("millrace")
    parser.add_argument("data")
    parser.add_argument("--nets", default="n5,n11")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--epochs", type=int, help="without it each network's own")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--who", default="millrace,torch")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--out", default="curves.jsonl")
    args = parser.parse_args()
    done = []
    if os.path.exists(args.out):
        with open(args.out, encoding="utf-8") as f:
            done = [json.loads(line) for line in f]
    for net in args.nets.split(","):
        model, folder, epochs = NETS[net]
        epochs = args.epochs or epochs
        data = os.path.join(args.data, folder)
        source = [data] if folder == "mnist" else [os.path.join(data, "train.csv.gz"), "--val", os.path.join(data, "val.csv.gz")]
        for seed in args.seeds.split(","):
            for who in args.who.split(","):
                key = (net, who, seed, epochs, args.device)
                if any((r["net"], r["who"], r["seed"], r["epochs"], r.get("device", "cpu")) == key for r in done):
                    continue
                command = {"millrace": [args.millrace, "train", *source, "--model", model, "--epochs", str(epochs), "--seed", seed,
                                        "--threads", str(args.threads), "--json", "--quiet", "--devices", args.device,
                                        *([] if args.device == "cpu" else ["--precision", "tf32"])],
                           "torch": [args.python, __file__, "--torch", net, args.data, seed, str(epochs), str(args.threads),
                                     args.device]}[who]
                got = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
                new = [{"net": net, "who": who, "seed": seed, "epochs": epochs, "threads": args.threads, "device": args.device, **row}
                       for row in (ours(got) if who == "millrace" else map(json.loads, got))]
                done += new
                with open(args.out, "a", encoding="utf-8") as f:
                    f.writelines(json.dumps(row) + "\n" for row in new)
        table(net, [r for r in done if r["net"] == net and r["epochs"] == epochs and r.get("device", "cpu") == args.device])


if __name__ == "__main__":
    if len(sys.argv) == 8 and sys.argv[1] == "--torch":
        run_torch(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]), int(sys.argv[6]), sys.argv[7])
    else:
        main()
