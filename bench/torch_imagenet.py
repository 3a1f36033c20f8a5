#!/usr/bin/env python3
"""A ResNet on photographs in PyTorch, with millrace.torch.Loader and with DataLoader + torchvision, in turns: time and images/s.

torch_imagenet.py DATA [--device cpu] [--network resnet18] [--bf16] [--epochs 2] [--rounds 1] [--batch-size 64] [--workers 2]
                       [--threads 0] [--freeze] [--limit BATCHES] [--loaders-only] [--json]

DATA is a folder with one sub-folder per class, as ImageNet's train/. The two ways differ by the lines that make the loader, marked
below, and by nothing else: the network, the optimizer (SGD 0.1, momentum 0.9, decay 1e-4), the loop that trains are the same. Both
deliver RandomResizedCrop(224) and flip, normalised, float32. The loop is the usual one: epoch, step, loss, with a line every ten steps
on standard error. After each way's epochs the loaders are gone, so that the next one has the cores for itself.

If the processor also trains, training takes nearly all of the time: `--freeze` trains the last layer only, on the output of the rest of
the network, and `--loaders-only` goes through the batches without a network; both show how much of the difference remains as training
gets quicker. On a GPU (`--device cuda`) DataLoader pins its memory, and copies are not waited for. Figures are of one run on one
machine. Needs torch and torchvision.
"""
import argparse
import json
import platform
import statistics
import sys
import time

import torch
from torch import nn


# ---- the two variants: the lines that a user changes ----

def with_millrace(a):
    import millrace.torch
    return millrace.torch.Loader(a.data, a.batch_size, augment="rrc224", training=True, workers=a.workers, seed=a.seed,
                                 device=None if a.device == "cpu" else a.device)


def with_data_loader(a):
    from torchvision import datasets
    from torchvision import transforms as t
    normalise = t.Normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])
    train = datasets.ImageFolder(a.data, t.Compose([t.RandomResizedCrop(224), t.RandomHorizontalFlip(), t.ToTensor(), normalise]))
    return torch.utils.data.DataLoader(train, batch_size=a.batch_size, shuffle=True, num_workers=a.workers, persistent_workers=True,
                                       pin_memory=a.device != "cpu")


WAYS = {"millrace.torch.Loader": with_millrace, "DataLoader + torchvision": with_data_loader}


# ---- what stays as it was ----

def network(a, classes):
    import torchvision
    torch.manual_seed(a.seed)
    net = getattr(torchvision.models, a.network)(num_classes=classes).to(a.device, memory_format=torch.channels_last)
    if a.freeze:
        for name, p in net.named_parameters():
            p.requires_grad_(name.startswith("fc."))
    return net


def train(a, loader, net, optimizer, name):
    """Images, and the last loss."""
    loss_of = nn.CrossEntropyLoss()
    images_seen, loss = 0, None
    for epoch in range(a.epochs):
        if hasattr(loader, "set_epoch"):
            loader.set_epoch(epoch)
        for step, (images, target) in enumerate(loader):
            images_seen += len(target)
            images, target = images.to(a.device, non_blocking=True), target.to(a.device, non_blocking=True)
            if net is None:
                continue
            images = images.to(memory_format=torch.channels_last)
            with torch.autocast(torch.device(a.device).type, torch.bfloat16, enabled=a.bf16):
                loss = loss_of(net(images), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 10 == 0:
                print("%s: epoch %d step %d of %d loss %.3f" % (name, epoch, step, len(loader), loss.item()), file=sys.stderr, flush=True)
            if a.limit and step + 1 == a.limit:
                break
    return images_seen, loss.item() if loss is not None else None


def warm_up(a):
    """Whatever a GPU's libraries do once in a process is neither way's."""
    net = network(a, 1000)
    with torch.autocast(torch.device(a.device).type, torch.bfloat16, enabled=a.bf16):
        net(torch.zeros(a.batch_size, 3, 224, 224, device=a.device).contiguous(memory_format=torch.channels_last)).sum().backward()
    torch.cuda.synchronize()


def one_way(a, name):
    begun = time.perf_counter()
    loader = WAYS[name](a)
    net = network(a, len(loader.dataset.classes)) if not a.loaders_only else None
    optimizer = None
    if net is not None:
        optimizer = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], 0.1, momentum=0.9, weight_decay=1e-4)
    images, loss = train(a, loader, net, optimizer, name)
    if a.device != "cpu":
        torch.cuda.synchronize()
    seconds = time.perf_counter() - begun
    del loader
    return {"seconds": seconds, "images": images, "images_per_s": images / seconds, "loss": loss}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("data")
    p.add_argument("--device", default="cpu")
    p.add_argument("--network", default="resnet18", help="of torchvision.models")
    p.add_argument("--bf16", action="store_true", help="autocast")
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--rounds", type=int, default=1)
    p.add_argument("--batch-size", type=int, default=64)
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--threads", type=int, default=0, help="of torch; 0: its own choice")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--freeze", action="store_true")
    p.add_argument("--limit", type=int, help="batches of each epoch")
    p.add_argument("--loaders-only", action="store_true", help="without a network")
    p.add_argument("--json", action="store_true")
    a = p.parse_args()
    if a.threads:
        torch.set_num_threads(a.threads)
    if a.device != "cpu":
        warm_up(a)
    got = {name: [] for name in WAYS}
    for k in range(a.rounds):
        for name in sorted(WAYS, reverse=bool(k % 2)):
            got[name].append(one_way(a, name))
    ours, theirs = got["millrace.torch.Loader"], got["DataLoader + torchvision"]
    ratio = statistics.median(o["images_per_s"] / t["images_per_s"] for o, t in zip(ours, theirs))
    import torchvision
    line = {"event": "torch_imagenet", "torch": torch.__version__, "torchvision": torchvision.__version__,
            "python": platform.python_version(), "epochs": a.epochs, "freeze": a.freeze, "bf16": a.bf16,
            "network": None if a.loaders_only else a.network, "device": a.device,
            "hardware": torch.cuda.get_device_name(a.device) if a.device != "cpu" else platform.machine(), "ways": got,
            "ratio": ratio}
    if a.json:
        print(json.dumps(line))
        return
    for name, rows in got.items():
        print("%-26s %6.1f s  %7.1f images/s   last loss %s" % (name, statistics.median(r["seconds"] for r in rows),
              statistics.median(r["images_per_s"] for r in rows), ", ".join("%.3f" % r["loss"] for r in rows if r["loss"]) or "none"))
    print("millrace.torch.Loader ÷ DataLoader: %.2f; %d epochs of %d images, torch %s" %
          (ratio, a.epochs, ours[0]["images"] // a.epochs, torch.__version__))


if __name__ == "__main__":
    main()
