#!/usr/bin/env python3
"""millrace.torch.Loader(device="cuda") on a real GPU: prints a PASS or FAIL line for each check; exit status 1 if one failed.

device_door.py [--device cuda]     (--device cpu runs what needs no GPU, to try this script)"""
import argparse
import contextlib
import os
import sys
import tempfile
import time
import traceback

import numpy as np
import torch

import millrace
import millrace.torch

AUGMENT = "rrc(64),flip,normalise(imagenet)"
N, BATCH = 400, 32
a = None
checks = []


def check(fn):
    checks.append(fn)
    return fn


class Own(torch.utils.data.Dataset):
    """Finished tensors whose values follow from their number; large enough that a batch does not fit one page."""

    def __len__(self):
        return 128

    def __getitem__(self, k):
        g = torch.Generator().manual_seed(k)
        return torch.rand(3, 96, 96, generator=g), {"boxes": torch.full((k % 4, 4), float(k)), "labels": torch.full((k % 4,), k)}


class Pair(Own):
    def __getitem__(self, k):
        return super().__getitem__(k)[0], k


def records(folder):
    path = os.path.join(folder, "a.mrec")
    rng = np.random.default_rng(1)
    coarse = rng.integers(0, 255, (N, 10, 9, 3), dtype=np.uint8)
    millrace.write_records(path, [{"image": coarse[k].repeat(8, 0).repeat(8, 1), "label": k % 10, "score": k / 4} for k in range(N)])
    return path


def loader(device=None, **more):
    return millrace.torch.Loader(a.path, **dict(dict(batch_size=BATCH, augment=AUGMENT, training=True, seed=5, num_workers=4, device=device), **more))


def cuda():
    return a.device == "cuda"


def busy(cycles=200_000_000):
    """The current stream has something to do for about 0.1 s."""
    if cuda():
        torch.cuda._sleep(cycles)


def sync():
    if cuda():
        torch.cuda.synchronize()


def same(got, want, least=True):
    assert len(got) == len(want), (len(got), len(want))
    for (x, y), (u, v) in zip(got, want):
        x = x.cpu()
        assert x.dtype == u.dtype and x.shape == u.shape and x.stride() == u.stride(), (x.dtype, u.dtype, x.stride(), u.stride())
        if not torch.equal(x, u):
            raise AssertionError("values differ by %g" % (x.float() - u.float()).abs().max())
        assert torch.equal(y.cpu(), v)


@check
def values_of_every_dtype_and_layout():
    off = []
    for dtype in "float32", "float16", "bfloat16", "uint8":
        for layout in "contiguous", "channels_last":
            with loader(dtype=dtype, memory_format=layout) as here, loader(a.device, dtype=dtype, memory_format=layout) as there:
                try:
                    got = [(x, y) if cuda() else (x.clone(), y) for x, y in there]
                    sync()
                    assert all(x.device.type == a.device and y.device.type == a.device for x, y in got)
                    count = 0
                    for pair, want in zip(got, here):
                        same([pair], [want])
                        count += 1
                    assert count == len(got) == len(here)
                except AssertionError as e:
                    off.append("%s %s: %s" % (dtype, layout, e))
    assert not off, "; ".join(off)


@check
def soft_targets_standardise_padding():
    for how in dict(augment=AUGMENT + ",mixup(0.4)", num_classes=10), dict(augment="rrc(64),standardise"), \
            dict(batch_size=None, batch=50, tail="pad"), dict(prefetch=0), dict(rank=1, world=2):
        here, there = [millrace.torch.Loader(a.path, **dict(dict(batch_size=48, augment=AUGMENT, training=True, seed=5, num_workers=4, device=d), **how))
                       for d in (None, a.device)]
        with here, there:
            for (x, y), (u, v) in zip(there, here):
                assert torch.allclose(x.cpu(), u, atol=1e-5) and torch.equal(y.cpu(), v), how


@check
def kept_tensors_stay():
    """All batches of three epochs are kept, while the stream that uses them is late."""
    with loader() as here, loader(a.device) as there:
        kept, sums = [], []
        for _ in range(3):
            for x, y in there:
                busy(20_000_000)
                sums.append((x.double().sum() + y.sum()))  # after the wait, of the values at that time
                kept.append((x, y))
        sync()
        want = [b for _ in range(3) for b in here]
    same(kept, want)
    for s, (u, v) in zip(sums, want):
        assert abs(s.item() - (u.double().sum() + v.sum()).item()) < 1e-3


@check
def other_streams():
    """The consumer computes on a stream of its own, changes it between batches, and drops tensors while kernels still read them."""
    with loader() as here, loader(a.device) as there:
        streams = [torch.cuda.Stream() for _ in range(3)] if cuda() else []
        out = []
        for k, (x, y) in enumerate(iter_under(there, streams)):
            with torch.cuda.stream(streams[k % 3]) if streams else contextlib.nullcontext():
                busy(10_000_000)
                out.append(x.double().sum() * 1 + y.double().sum())
            del x, y
        sync()
        for got, (u, v) in zip(out, here):
            want = (u.double().sum() + v.sum()).item()
            assert abs(got.item() - want) < 1e-3, (got.item(), want)


def iter_under(l, streams):
    it, k = iter(l), 0
    while True:
        with torch.cuda.stream(streams[k % 3]) if streams else contextlib.nullcontext():
            batch = next(it, None)
        if batch is None:
            return
        yield batch
        del batch
        k += 1


@check
def copies_overlap_and_are_pinned():
    """While the current stream is busy, next() returns and its copy ends."""
    if not cuda():
        return
    with loader(a.device, batch_size=40, augment="rrc(224),flip,normalise(imagenet)") as there:
        it = iter(there)
        next(it)
        sync()
        time.sleep(0.3)
        done = torch.cuda.Event()
        busy(1_000_000_000)
        done.record()
        begun = time.perf_counter()
        x, y = next(it)
        returned = time.perf_counter() - begun
        there._gpu._stream.synchronize()
        copied = time.perf_counter() - begun
        late = not done.query()
        assert late, "next() took %.3f s, the copy %.3f s, and the stream's work was over" % (returned, copied)
        sync()
        try:
            from torch.profiler import ProfilerActivity, profile
            with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as p:
                next(it)
                sync()
            names = sorted({e.key for e in p.key_averages() if "emcpy HtoD" in e.key})
        except Exception as e:
            names = ["no profiler: %r" % e]
        print("      next() %.2f ms, copy over after %.2f ms, stream busy then; copies: %s" % (returned * 1e3, copied * 1e3, names))
        large = [n for n in names if "Pageable" in n]
        assert not large, large


def of_own(make, want, **how):
    with millrace.torch.Loader(make(), 16, shuffle=True, seed=3, device=a.device, **how) as l:
        got = []
        for _ in range(2):
            for b in l:
                busy(5_000_000)
                got.append(b)
        sync()
    assert len(got) == len(want)
    for g, w in zip(got, want):
        assert g[0].device.type == a.device and torch.equal(g[0].cpu(), w[0])
        if isinstance(w[1], torch.Tensor):
            assert torch.equal(g[1].cpu(), w[1])
        else:
            assert len(g[1]) == len(w[1])
            for s, t in zip(g[1], w[1]):
                assert all(torch.equal(s[n].cpu(), t[n]) for n in t)


@check
def worker_processes_and_threads():
    """fork after CUDA began (workers must not touch it), forkserver, spawn, threads, none."""
    sync()
    for make in Own, Pair:
        with millrace.torch.Loader(make(), 16, shuffle=True, seed=3) as l:
            want = [b for _ in range(2) for b in l]
        for context in ("fork", "threads", "here") if make is Own else ("fork", "spawn", "forkserver"):
            how = {} if context == "here" else dict(num_workers=2, multiprocessing_context=context)
            try:
                of_own(make, want, **how)
            except Exception as e:
                raise AssertionError("%s, %s: %r" % (make.__name__, context, e)) from e


def net():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Conv2d(3, 8, 5, 2), torch.nn.ReLU(), torch.nn.Conv2d(8, 8, 3, 2), torch.nn.Flatten(),
                               torch.nn.Linear(8 * 14 * 14, 10)).to(a.device)


def losses(model, batches, steps=30):
    opt, out = torch.optim.SGD(model.parameters(), lr=0.01), []
    for k, (x, y) in enumerate(batches):
        if k == steps:
            break
        loss = torch.nn.functional.cross_entropy(model(x), y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        out.append(loss.detach())
    return torch.stack(out).cpu()


def endless(l, move=False):
    while True:
        for x, y in l:
            yield (x.to(a.device), y.to(a.device)) if move else (x, y)


@check
def training_plain_dataparallel_ddp():
    torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = True, False
    torch.use_deterministic_algorithms(True, warn_only=True)
    with loader() as here:
        want = losses(net(), endless(here, True))
    with loader(a.device) as there:
        got = losses(net(), endless(there))
    assert torch.allclose(got, want, rtol=1e-4), (got - want).abs().max()
    with loader(a.device) as there:
        got = losses(torch.nn.DataParallel(net()) if cuda() else net(), endless(there))
    assert torch.allclose(got, want, rtol=1e-4), (got - want).abs().max()
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29561", RANK="0", WORLD_SIZE="1", LOCAL_RANK="0")
    torch.distributed.init_process_group("nccl" if cuda() else "gloo", rank=0, world_size=1)
    try:
        model = torch.nn.parallel.DistributedDataParallel(net(), device_ids=[0] if cuda() else None)
        with loader(a.device) as there:
            got = losses(model, endless(there))
        assert torch.allclose(got, want, rtol=1e-4), (got - want).abs().max()
        # The workers of a loader that is made after NCCL began
        with millrace.torch.Loader(Pair(), 16, seed=3) as l:
            plain = [b for _ in range(2) for b in l]
        with millrace.torch.Loader(Pair(), 16, seed=3, device=a.device, num_workers=2, multiprocessing_context="fork") as l:
            got = [b for _ in range(2) for b in l]
        assert all(torch.equal(g[0].cpu(), w[0]) for g, w in zip(got, plain))
    finally:
        torch.distributed.destroy_process_group()
        for name in "RANK", "WORLD_SIZE", "LOCAL_RANK":
            os.environ.pop(name)


@check
def graph_and_autocast():
    """A captured step is replayed on copies of batches; next() runs between the replays."""
    if not cuda():
        return
    with loader() as here:
        want = [x.double().sum().item() for x, _ in here]
    with loader(a.device) as there:
        still = torch.zeros((BATCH, 3, 64, 64), device="cuda")
        s = torch.cuda.Stream()
        s.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(s):
            still.double().sum()
        torch.cuda.current_stream().wait_stream(s)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            total = still.double().sum()
        got = []
        for x, _ in there:
            still.copy_(x)
            graph.replay()
            got.append(total.clone())
            with torch.autocast("cuda", dtype=torch.bfloat16):
                torch.nn.functional.conv2d(x, torch.ones(1, 3, 3, 3, device="cuda"))
        assert len(got) == len(want) and all(abs(g.item() - w) < 1e-3 for g, w in zip(got, want))


@check
def next_while_a_graph_is_captured():
    """A background thread of the loader copies and records events meanwhile: the capture of another thread must hold."""
    if not cuda():
        return
    with millrace.torch.Loader(Pair(), 16, seed=3, device="cuda", num_workers=2, multiprocessing_context="fork") as l:
        with millrace.torch.Loader(Pair(), 16, seed=3) as p:
            want = list(p)
        it = iter(l)
        got = [next(it)]
        w = torch.ones(3, 96, 96, device="cuda")
        for k in range(1, len(want)):
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                v = w * 2
                time.sleep(0.01)  # the thread of batches works now
            got.append(next(it))
            graph.replay()
        sync()
        assert all(torch.equal(g[0].cpu(), u[0]) for g, u in zip(got, want)) and v.sum().item() == 2 * w.numel()


@check
def memory_is_flat():
    with loader(a.device) as there:
        def epoch():
            for x, y in there:
                pass
            sync()
        for _ in range(3):
            epoch()
        if cuda():
            before, rss = torch.cuda.memory_allocated(), resident()
            reserved = torch.cuda.memory_reserved()
        else:
            before, rss, reserved = 0, resident(), 0
        for _ in range(25):
            epoch()
        grown = resident() - rss
        assert grown < 32 << 20, grown
        if cuda():
            assert torch.cuda.memory_allocated() <= before + (8 << 20), torch.cuda.memory_allocated() - before
            assert torch.cuda.memory_reserved() <= reserved + (64 << 20), torch.cuda.memory_reserved() - reserved


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@check
def another_thread_and_closing():
    """A thread takes batches; the loader is closed while its last copies are under way; tensors stay."""
    import threading
    with loader() as here:
        want = list(here)
    there, got = loader(a.device), []

    def body():
        for k, b in enumerate(there):
            busy(20_000_000)
            got.append(b)
            if k == 9:
                return
    t = threading.Thread(target=body)
    t.start()
    t.join()
    there.close()
    sync()
    same(got, want[:10])


@check
def resume_on_the_gpu():
    with loader(a.device) as l:
        it = iter(l)
        for _ in range(7):
            next(it)
        state, rest = l.state_dict(), [(x, y) for x, y in it]
    with loader(a.device) as l:
        l.load_state_dict(state)
        again = list(l)
    assert len(again) == len(rest) and all(torch.equal(x, u) and torch.equal(y, v) for (x, y), (u, v) in zip(rest, again))


@check
def costs_of_next():
    """No verdict: milliseconds of next() with a ready batch."""
    with loader(a.device, batch_size=40, augment="rrc(224),flip,normalise(imagenet)") as l, \
            millrace.torch.Loader(Pair(), 8, device=a.device, num_workers=3, multiprocessing_context="fork") as o:
        for name, one in (("library", l), ("worker processes", o)):
            it, wall, own = iter(one), [], []
            for k in range(9 if name == "library" else 22):
                time.sleep(0.1)
                b, t = time.perf_counter(), time.thread_time()
                if next(it, None) is None:
                    break
                if k:
                    wall.append((time.perf_counter() - b) * 1e3)
                    own.append((time.thread_time() - t) * 1e3)
            print("      %s: wall median %.3f most %.3f ms, own median %.3f most %.3f ms" % (
                name, sorted(wall)[len(wall) // 2], max(wall), sorted(own)[len(own) // 2], max(own)))


def main():
    global a
    p = argparse.ArgumentParser()
    p.add_argument("--device", default="cuda")
    a = p.parse_args()
    print("torch", torch.__version__, "python", sys.version.split()[0], "millrace", getattr(millrace, "__version__", "?"),
          torch.cuda.get_device_name() if a.device == "cuda" else "")
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        a.path = records(folder)
        for fn in checks:
            begun = time.perf_counter()
            try:
                fn()
                print("PASS  %s (%.1f s)" % (fn.__name__, time.perf_counter() - begun), flush=True)
            except Exception as e:
                failed += 1
                print("FAIL  %s (%.1f s): %s: %s" % (fn.__name__, time.perf_counter() - begun, type(e).__name__, str(e)[:500]), flush=True)
                traceback.print_exc(limit=-4, file=sys.stdout)
    print("%d of %d passed" % (len(checks) - failed, len(checks)))
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
