#!/usr/bin/env python3
"""The cost of the Python door: batches through Python and through the C loader alone, in turns on the same cores.

python_door.py --data PHOTOS [--records FILE.mrec ...] [--rounds 5] [--seconds 3] [--workers 2] [--only rates,costs,next,made,rival,operation,own,augmented] [--json]

For each batch size and each form of the data: samples per second of `millrace bench loader` (the command of the same package),
of a loop over millrace.Loader that makes a NumPy array of every batch, and their ratio, medians over the rounds; the range of
the ratios stands beside. The same for a second of processor time of all threads, which other programs disturb less (the
command's start is in it, Python's is not). Then microseconds of the consumer's processor time: of a batch that is ready, from
the call to the arrays; of one export to each array library that can be imported. With PyTorch
the same for every dtype and memory_format of millrace.torch.Loader, after a pause in which other programs used the caches (next), and for
batches that worker processes make of a Python object, in host memory and on a GPU, or without one on a device whose copies are done at
once (made).
Then the cost of a Python function in an augmentation, for each picture. With PyTorch and torchvision also DataLoader with as many worker processes, and millrace.torch.Loader with
its floats, a Dataset of PIL and torchvision by worker processes of both (own), and a function of Python's own after the augmentation (augmented). No figure means anything alone: all of them are of one run on one machine.
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time

import millrace

AUGMENT = "rrc224"


def c_rate(data, batch, a):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-m", "millrace", "bench", "loader", data, "--augment", AUGMENT, "--training", "--batch",
                           str(batch), "--workers", str(a.workers), "--seconds", str(a.seconds), "--json", "--quiet"],
                          stdout=subprocess.PIPE, check=True)
    rows = [json.loads(line) for line in done.stdout.decode().splitlines()]
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    last = [r for r in rows if "samples_per_s" in r][-1]
    return last["samples_per_s"], last["stages"]["decode"]["items"] / (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def timed(batches, count, seconds, warm=3):
    """Samples per second, and per second of processor time, without the first few."""
    n = begun = used = 0
    for k, batch in enumerate(batches):
        n += count(batch)
        del batch
        now = time.perf_counter()
        if k == warm - 1:
            n, begun, used = 0, now, time.process_time()
        if k >= warm and now - begun >= seconds:
            return n / (now - begun), n / (time.process_time() - used)
    raise SystemExit("the data set is too small")


def python_rate(data, batch, a):
    import numpy
    with millrace.Loader(data, batch=batch, augment=AUGMENT, training=True, epochs=None, workers=a.workers, entry_bytes=0, rank=0, world=1) as loader:
        return timed(loader, lambda b: len(numpy.asarray(b.images)) + 0 * len(numpy.asarray(b.labels)), a.seconds)


def door_rate(data, batch, a):
    import millrace.torch
    with millrace.torch.Loader(data, batch, augment=AUGMENT, training=True, workers=a.workers) as loader:
        def epochs():
            while True:
                yield from loader
        return timed(epochs(), lambda b: len(b[1]), a.seconds)


def rival_rate(data, batch, a):
    """PyTorch's ImageNet example's loader."""
    import torch
    import torchvision.datasets as datasets
    import torchvision.transforms as t
    torch.set_num_threads(1)
    data_set = datasets.ImageFolder(data, t.Compose([t.RandomResizedCrop(224), t.RandomHorizontalFlip(), t.ToTensor(),
                                                     t.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])]))
    loader = torch.utils.data.DataLoader(data_set, batch_size=batch, shuffle=True, num_workers=a.workers, persistent_workers=True)

    def epochs():
        while True:
            yield from loader
    return timed(epochs(), lambda b: len(b[1]), a.seconds)


def own_data(data, *more):
    """Pictures opened by PIL and changed by torchvision, as public scripts do."""
    import torchvision.datasets as datasets
    import torchvision.transforms as t
    return datasets.ImageFolder(data, t.Compose([t.RandomResizedCrop(224), t.RandomHorizontalFlip(), t.ToTensor(),
                                                 t.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]), *more]))


def halved(picture):
    return picture * 0.5


def without_end(loader):
    while True:
        yield from loader


def processor_seconds(pids):
    """Of these processes so far."""
    ticks = 0
    for pid in pids:
        with open("/proc/%d/stat" % pid) as f:
            ticks += sum(map(int, f.read().rsplit(")", 1)[1].split()[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def own_python_rates(a, augmented=False):
    """The same Dataset by worker processes of DataLoader and of millrace.torch.Loader, which stay from round to round: samples per
    second, and per second of processor time of workers and consumer. While one has its turn, the other's workers have nothing to do.
    augmented: of ours the library decodes and augments, and in both a function of Python's own halves the finished tensors."""
    import torch
    import millrace.torch
    torch.set_num_threads(1)
    data_set = torch.utils.data.ConcatDataset([own_data(a.data, *([halved] if augmented else []))] * 1000)  # an epoch that does not end
    theirs = torch.utils.data.DataLoader(data_set, batch_size=64, shuffle=True, num_workers=a.workers, persistent_workers=True)
    how = dict(augment=AUGMENT, training=True, transform=halved) if augmented else dict(shuffle=True)
    ours = millrace.torch.Loader(a.data if augmented else data_set, 64, num_workers=a.workers, **how)
    loops = iter(theirs), without_end(ours)
    for loop in loops:
        next(loop)
    pids = [w.pid for w in loops[0]._workers], [w.process.pid for w in ours._makers.pool._workers]

    def turn(loop, pids):
        for _ in range(2 * a.workers + 1):  # made while the other one had its turn
            next(loop)
        n, begun, used = 0, time.perf_counter(), processor_seconds(pids) + time.process_time()
        while time.perf_counter() - begun < a.seconds:
            n += len(next(loop)[1])
        return n / (time.perf_counter() - begun), n / (processor_seconds(pids) + time.process_time() - used)
    got = turns(a, *(lambda loop=loop, p=p: turn(loop, p) for loop, p in zip(loops, pids)))
    ours.close()
    return got


def turns(a, *ways):
    """What each way gave, in turns."""
    got = [[] for _ in ways]
    for _ in range(a.rounds):
        for k, way in enumerate(ways):
            got[k].append(way())
    return got


def compare(ours, theirs, which):
    """Medians of both, of their ratio, and its range."""
    ours, theirs = [o[which] for o in ours], [t[which] for t in theirs]
    ratios = [o / t for o, t in zip(ours, theirs)]
    return {"ours": statistics.median(ours), "theirs": statistics.median(theirs), "ratio": statistics.median(ratios),
            "least": min(ratios), "most": max(ratios)}


def per_call(fn, n=2000, rounds=7):
    """Microseconds of this thread's processor time."""
    took = []
    for _ in range(rounds):
        begun = time.thread_time()
        for _ in range(n):
            fn()
        took.append((time.thread_time() - begun) / n * 1e6)
    return statistics.median(took)


def small_costs(data, a):
    """The door alone: of batches that are there already."""
    out = {}
    with millrace.Loader(data, batch=1, augment="rrc224", training=True, epochs=None, hold=8, prefetch=64, workers=a.workers) as loader:
        batch = next(iter(loader))
        import numpy
        out["numpy.asarray"] = per_call(lambda: numpy.asarray(batch.images))
        out["numpy.from_dlpack"] = per_call(lambda: numpy.from_dlpack(batch.images))
        try:
            import torch
            out["torch.from_dlpack"] = per_call(lambda: torch.from_dlpack(batch.images))
        except ImportError:
            pass
        try:
            import jax
            out["jax.dlpack.from_dlpack"] = per_call(lambda: jax.dlpack.from_dlpack(batch.images), 500)
        except ImportError:
            pass
        times = []
        it = iter(loader)
        for _ in range(40):
            time.sleep(0.2)  # so that they are ready
            for _ in range(30):
                begun = time.thread_time()
                b = next(it)
                numpy.asarray(b.images), numpy.asarray(b.labels)
                times.append((time.thread_time() - begun) * 1e6)
                del b
        out["a batch that is ready, with two arrays"] = statistics.median(times)
    return out


def next_costs(data, a):
    """Microseconds of the consumer's processor time for next() of millrace.torch.Loader with a ready batch, from the second batch of the
    first epoch on. The consumer sleeps before each one, so its caches are cold."""
    import millrace.torch
    out = {}
    for dtype in "float32", "float16", "bfloat16", "uint8":
        for layout in "contiguous", "channels_last":
            times = []
            with millrace.torch.Loader(data, 64, augment=AUGMENT, training=True, workers=a.workers, dtype=dtype, memory_format=layout) as loader:
                it = iter(loader)
                next(it)
                while len(times) < 4 * a.rounds:
                    time.sleep(0.3)
                    begun = time.thread_time()
                    batch = next(it, None)
                    times.append((time.thread_time() - begun) * 1e6)
                    if batch is None:  # the end of an epoch
                        times.pop()
                        it = iter(loader)
                        next(it)
                    del batch
            out["next() of %s, %s" % (dtype, layout)] = statistics.median(times)
    return out


class Noise:
    """Finished tensors, so that a sample costs nothing."""

    def __init__(self, dtype):
        import torch
        self.picture = torch.randint(0, 255, (3, 224, 224)).to(dtype)

    def __len__(self):
        return 64 * 60

    def __getitem__(self, k):
        return self.picture, k


def channels_last(samples):
    import torch
    images, targets = torch.utils.data.default_collate(samples)
    return images.contiguous(memory_format=torch.channels_last), targets


class NoGpu:
    """Stands for a stream, an event, and what PyTorch's functions of streams return, where there is no GPU."""

    def __init__(self, *_):
        pass

    def nothing(self, *_):
        pass

    record = wait_event = synchronize = __exit__ = nothing

    def query(self):
        return True

    def __enter__(self):
        return self


def without_gpu():
    """Copies to a GPU become copies within host memory."""
    import torch
    from millrace import _gpu
    _gpu.send, _gpu.pinned = lambda host, device: host.clone(), lambda size: torch.empty(size, dtype=torch.uint8)
    for name in "Stream", "stream", "current_stream", "Event":
        setattr(torch.cuda, name, NoGpu)
    torch.cuda.current_device = lambda: 0


def made_costs(a):
    """Microseconds of the consumer's processor time for next() with a ready batch that worker processes made: medians, and the most. The
    consumer sleeps before each one."""
    import torch
    import millrace.torch
    out, device = {}, "cuda"
    if not torch.cuda.is_available():
        without_gpu()
        device = "cuda, pretended"
    for where in None, "cuda":
        for dtype in torch.float32, torch.float16, torch.bfloat16, torch.uint8:
            for collate in None if dtype.is_floating_point else torch.utils.data.default_collate, channels_last:
                times = []
                with millrace.torch.Loader(Noise(dtype), 64, num_workers=a.workers, device=where, collate_fn=collate) as loader:
                    it = iter(loader)
                    next(it)
                    for _ in range(4 * a.rounds):
                        time.sleep(0.3)
                        begun = time.thread_time()
                        batch = next(it)
                        times.append((time.thread_time() - begun) * 1e6)
                        del batch
                name = "next() of %s, %s, by worker processes, %s" % (
                    str(dtype)[6:], "channels_last" if collate is channels_last else "contiguous", device if where else "in host memory")
                out[name], out[name + ": the most"] = statistics.median(times), max(times)
    return out


def operation_cost(data, a):
    """Microseconds of wall time that calling a Python function costs each picture: of a function that does nothing, by one
    worker."""
    def nothing(pixels, arguments, draws):
        pass

    def rate(spec):
        with millrace.Loader(data, batch=64, augment=spec, training=True, epochs=None, workers=1, operations={"my_nothing": nothing}) as l:
            return timed(l, len, a.seconds)[0]
    without, with_it = turns(a, lambda: rate("rrc(224)"), lambda: rate("rrc(224),my_nothing"))
    return {"a function of Python for a picture of 224 x 224, in an augmentation": statistics.median(
        (1 / w - 1 / o) * 1e6 for w, o in zip(with_it, without))}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--data", required=True)
    p.add_argument("--records", nargs="*", default=[], help="record files of the same pictures")
    p.add_argument("--only", default="rates,costs,next,made,rival,operation,own,augmented")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=3)
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--batches", default="64,256")
    p.add_argument("--json", action="store_true")
    a = p.parse_args()
    rows = []
    wanted = a.only.split(",")
    for data in [a.data] + a.records if "rates" in wanted else []:
        for batch in map(int, a.batches.split(",")):
            c, python = turns(a, lambda: c_rate(data, batch, a), lambda: python_rate(data, batch, a))
            rows.append({"data": os.path.basename(data), "batch": batch, "wall": compare(python, c, 0), "processor": compare(python, c, 1)})
    costs = small_costs((a.records or [a.data])[0], a) if "costs" in wanted else {}
    for name, measured in (("next", lambda: next_costs((a.records or [a.data])[0], a)), ("made", lambda: made_costs(a))):
        try:
            costs.update(measured() if name in wanted else {})
        except ImportError as e:
            print("SKIP: next() of millrace.torch.Loader: %s" % e, file=sys.stderr)
    if "operation" in wanted:
        costs.update(operation_cost((a.records or [a.data])[0], a))
    rival, own = None, {}
    for name, augmented in (("own", False), ("augmented", True)):
        if name in wanted:
            theirs, ours = own_python_rates(a, augmented)
            own[name] = {"wall": compare(ours, theirs, 0), "processor": compare(ours, theirs, 1)}
    try:
        if "rival" not in wanted:
            raise ImportError("not asked for")
        import torch  # noqa: F401
        import torchvision  # noqa: F401
        theirs, ours = turns(a, lambda: rival_rate(a.data, 64, a), lambda: door_rate(a.data, 64, a))
        rival = dict(compare(ours, theirs, 0), torch=torch.__version__, torchvision=torchvision.__version__)
    except ImportError as e:
        print("SKIP: beside DataLoader: %s" % e, file=sys.stderr)
    if a.json:
        print(json.dumps({"event": "python_door", "python": sys.version.split()[0], "rates": rows, "microseconds": costs, "rival": rival,
                          "own": own}))
        return
    for r in rows:
        for what in ("wall", "processor"):
            x = r[what]
            print("%-20s batch %3d  %-9s  C %6.0f/s   Python %6.0f/s   ratio %.3f (%.3f to %.3f)" %
                  (r["data"], r["batch"], what, x["theirs"], x["ours"], x["ratio"], x["least"], x["most"]))
    for name, us in costs.items():
        print("%8.1f us   %s" % (us, name))
    titles = {"own": "a Dataset of PIL and torchvision", "augmented": "a function after the augmentation"}
    for name, what, x in ((name, what, x) for name, both in own.items() for what, x in both.items()):
        print("%s, batch 64, %-9s  DataLoader %.1f/s, millrace.torch %.1f/s: %.3f times (%.3f to %.3f)" %
              (titles[name], what, x["theirs"], x["ours"], x["ratio"], x["least"], x["most"]))
    if rival:
        print("floats, batch 64: DataLoader + torchvision %.0f/s, millrace.torch %.0f/s: %.2f times (%.2f to %.2f); torch %s" %
              (rival["theirs"], rival["ours"], rival["ratio"], rival["least"], rival["most"], rival["torch"]))


if __name__ == "__main__":
    main()
