"""Batches that a thread makes ready ahead of the loop: their numbers, and who has their memory."""
import gc
import hashlib
import os
import subprocess
import sys

import millrace
import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")
import millrace.torch  # noqa: E402

DTYPES = [torch.float32, torch.float16, torch.bfloat16, torch.uint8]
FORMATS = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}
AUGMENT = "resize(37x19),flip,normalise(imagenet)"  # 703 pixels: not a multiple of a vector's width


def loader(data, batch_size=16, **more):
    return millrace.torch.Loader(data, batch_size, **dict(dict(augment=AUGMENT, training=True, seed=3, workers=2), **more))


def plain(data, **more):
    return millrace.Loader(data, **dict(dict(batch=16, augment=AUGMENT, training=True, seed=3, rank=0, world=1), **more))


@pytest.mark.parametrize("memory_format", FORMATS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("channels", [3, 1])
def test_numbers_are_those_of_torch(shapes, dtype, memory_format, channels):
    l = loader(shapes, dtype=dtype, memory_format=memory_format, channels=channels)
    mean, std = (torch.tensor(v).view(1, -1, 1, 1) for v in (l.mean, l.std))
    for (x, y), b in zip(l, plain(shapes, channels=channels)):
        pixels = torch.from_dlpack(b.images).permute(0, 3, 1, 2)
        want = pixels if dtype is torch.uint8 else ((pixels.float() - mean) / std).to(dtype)
        assert x.dtype is dtype and torch.equal(x, want) and x.is_contiguous(memory_format=FORMATS[memory_format])
        assert y.dtype is torch.int64 and y.tolist() == b.labels.tolist()
        del b


@pytest.mark.parametrize("memory_format", FORMATS)
@pytest.mark.parametrize("dtype", DTYPES[:3], ids=str)
def test_standardised_numbers(shapes, dtype, memory_format):
    augment = "resize(37x19),standardise"
    for (x, _), b in zip(loader(shapes, augment=augment, dtype=dtype, memory_format=memory_format), plain(shapes, augment=augment)):
        a = torch.from_dlpack(b.affine)
        want = torch.from_dlpack(b.images).permute(0, 3, 1, 2).float() * a[:, :1, None, None] + a[:, 1:, None, None]
        assert torch.equal(x, want.to(dtype))
        del b


def test_float16_of_numbers_of_all_sizes(tmp_path):
    """Rounded to even, infinite, subnormal and 0, as torch does it, in whole vectors and in the rest."""
    pixels = np.arange(256, dtype="uint8").repeat(3).reshape(16, 16, 3)
    path = str(tmp_path / "all.mrec")
    millrace.write_records(path, [dict(image=pixels, label=0)])
    for std in ("1.5", "400000", "30000000", "700000000"):
        for crop in ("none", "center(5)"):
            augment = "%snormalise(0/%s)" % ("" if crop == "none" else crop + ",", std)
            for dtype in (torch.float16, torch.bfloat16):
                x, _ = next(iter(loader(path, 1, augment=augment, dtype=dtype, training=False)))
                b = next(iter(plain(path, batch=1, augment=augment, training=False)))
                want = torch.from_dlpack(b.images).permute(0, 3, 1, 2).float() / torch.tensor(float(std), dtype=torch.float32)
                assert torch.equal(x, want.to(dtype))


SUM = """
import hashlib, itertools, sys, millrace.torch, torch
h = hashlib.sha256()
for dtype, form, channels, augment in itertools.product(["float32", "float16", "bfloat16", "uint8"], ["contiguous", "channels_last"], [3, 1], sys.argv[2:]):
    for x, y in millrace.torch.Loader(sys.argv[1], 16, augment=augment, dtype=dtype, memory_format=form, channels=channels):
        h.update(x.contiguous(memory_format=torch.contiguous_format).view(torch.uint8).numpy().tobytes())
print(h.hexdigest())
"""


def test_bits_do_not_depend_on_the_processor(shapes):
    sums = {simd: subprocess.run([sys.executable, "-c", SUM, shapes, "resize(37x19),normalise(imagenet)", "resize(37x19),standardise"],
                                 env=dict(os.environ, MILLRACE_SIMD=simd), stdout=subprocess.PIPE, check=True).stdout
            for simd in ("plain", "avx2") if simd == "plain" or "avx2" in open("/proc/cpuinfo").read()}
    assert len(set(sums.values())) == 1 and len(sums["plain"]) == 65


# ---------------------------------------------------------------------- memory

def finisher(l):
    return l._stream.running.finisher


def size_of(l):
    import ctypes
    from millrace import _library
    size = ctypes.c_uint64()
    _library.quick.mrp_finisher_held(finisher(l).pointer, ctypes.byref(size))
    return size.value


@pytest.mark.parametrize("how", [{}, {"dtype": "float16", "memory_format": "channels_last"}, {"uint8": True, "memory_format": "contiguous"}],
                         ids=str)
def test_tensors_that_are_kept_stay(shapes, how):
    """All of some epochs: none is overwritten when the buffers of others come back."""
    l = loader(shapes, **how)
    kept, copies = [], []
    for _ in range(4):
        for x, y in l:
            kept.append((x, y))
            copies.append((x.clone(), y.clone()))
            if len(kept) % 3 == 0:
                kept[-1] = copies[-1]  # every third one goes back
    assert all(torch.equal(a, b) and torch.equal(c, d) for (a, c), (b, d) in zip(kept, copies))
    assert l.held >= 2 * len(kept) // 3


def test_who_keeps_targets_keeps_no_pictures(shapes):
    l = loader(shapes)
    targets = [y for _ in range(5) for _, y in l]
    gc.collect()
    assert l.held <= 1 and len(torch.cat(targets)) == 600


def test_a_part_of_a_tensor_keeps_its_memory(shapes):
    l = loader(shapes)
    kept, want = [], []
    for x, _ in l:
        kept.append(x[3, 1])
        want.append(x[3, 1].clone())
    assert all(torch.equal(a, b) for a, b in zip(kept, want))


def test_memory_stays_as_it_is(shapes):
    """Of a loop that keeps nothing: the same buffers over and over."""
    l = loader(shapes)
    for x, y in l:
        pass
    before = size_of(l)
    for _ in range(30):
        for x, y in l:
            pass
    del x, y
    assert size_of(l) <= before + 2 * 16 * 3 * 37 * 19 * 4 and l.held == 0


def test_too_many_that_are_kept_are_an_error_and_the_loop_may_go_on(tmp_path):
    millrace.write_records(str(tmp_path / "large.mrec"), ((np.zeros((256, 256, 3), "uint8"), k % 2) for k in range(256)))
    want = [b.ids.tolist() for b in millrace.Loader(str(tmp_path / "large.mrec"), batch=4, training=True, workers=1, prefetch=2)]
    l = loader(str(tmp_path / "large.mrec"), 4, augment="none", workers=1, prefetch=2, memory=96 << 20, seed=0)  # a batch is 3 MiB
    kept, got = [], []
    it = iter(l)
    with pytest.raises(millrace.HeldError, match="of at most 96 MiB.*memory="):
        while True:
            kept.append(next(it))
    assert 26 <= len(kept) <= 32
    got = [y for _, y in kept]
    kept.clear()
    got += [y for _, y in it]
    assert sum((y.tolist() for y in got), []) == [n % 2 for ids in want for n in ids]


def test_tensors_outlive_the_loader(shapes):
    l = loader(shapes)
    batches = [x for x, _ in l]
    want = [x.clone() for x in batches]
    l.close()
    del l
    gc.collect()
    assert all(torch.equal(a, b) for a, b in zip(batches, want))


def test_without_prefetch_there_is_no_thread(shapes):
    l = loader(shapes, prefetch=0)
    gc.collect()
    threads = len(os.listdir("/proc/self/task"))
    got = [(x.clone(), y.tolist()) for x, y in l]
    assert len(os.listdir("/proc/self/task")) <= threads
    assert all(torch.equal(a, b) and c == d.tolist() for (a, c), (b, d) in zip(got, loader(shapes)))


def test_closing_while_batches_are_made_ready(shapes):
    for k in range(30):
        l = loader(shapes)
        it = iter(l)
        for _ in range(k % 4):
            kept = next(it)
        l.close()
        with pytest.raises(millrace.ClosedError):
            next(it)


def test_what_goes_wrong_comes_in_its_place(shapes, tmp_path):
    path = str(tmp_path / "damaged.mrec")
    picture = subprocess.run(["cat", os.path.join(shapes, sorted(os.listdir(shapes))[0], "00000.jpg")], stdout=subprocess.PIPE).stdout
    millrace.write_records(path, [dict(image=picture if k != 9 else picture[:40], label=k) for k in range(20)])
    l, got = loader(path, 4, training=False), []
    with pytest.raises(millrace.BadSampleError) as e:
        for _, y in l:
            got += y.tolist()
    assert got == list(range(len(got))) and len(got) <= 8 and e.value.sample == 9
    found = sum((y.tolist() for _, y in loader(path, 4, training=False, bad="skip")), [])
    assert -1 not in found and 9 not in found


@pytest.mark.parametrize("prefetch", [0, 1, 4])
def test_bytes_in_the_order_of_decoding_are_not_copied(shapes, prefetch):
    """They stay in the loader's memory, whose size hold= sets; next() only hands them out."""
    l = loader(shapes, uint8=True, hold=3, prefetch=prefetch)
    plan = [(torch.from_dlpack(b.images).clone(), b.labels.tolist()) for b in plain(shapes)]
    it, kept, got = iter(l), [], []
    with pytest.raises(millrace.HeldError, match="all 3 batches.*hold=3"):
        while True:
            kept.append(next(it))
    assert len(kept) == 3 and l.held == 3 and size_of(l) <= 8 * 16 * 8 + 4096
    with pytest.raises(millrace.HeldError):
        next(it)
    while True:
        got += [(x.clone(), y) for x, y in kept]  # targets are copies, and hold nothing
        kept.clear()
        kept = [b for b in [next(it, None)] if b is not None]
        if not kept:
            break
    assert len(got) == len(plan) and all(torch.equal(x.permute(0, 2, 3, 1), p) and y.tolist() == q for (x, y), (p, q) in zip(got, plan))


@pytest.mark.parametrize("early", [False, True], ids=["after the loop", "within it"])
def test_bytes_outlive_the_loader(shapes, early):
    l = loader(shapes, uint8=True, hold=8)
    it = iter(l)
    kept = [next(it)[0] for _ in range(4)] if early else [x for x, _ in it]
    want = [x.clone() for x in kept]
    l.close()
    del l, it
    gc.collect()
    again = loader(shapes, uint8=True, augment="resize(9x9)")  # takes memory that was given back
    assert sum(len(y) for _, y in again) == 120 and all(torch.equal(a, b) for a, b in zip(kept, want))


def test_bytes_with_fields_and_shares_of_classes(tmp_path):
    path = str(tmp_path / "f.mrec")
    millrace.write_records(path, (dict(image=np.full((8, 8, 3), k, "uint8"), label=k % 3, tokens=np.arange(k % 5, dtype="int16")) for k in range(40)))
    how = dict(augment="mixup(0.4)", training=True, seed=2)
    mixed = millrace.torch.Loader(path, 8, uint8=True, num_classes=3, hold=8, **how)
    for (x, y), (u, v) in zip(list(mixed), millrace.torch.Loader(path, 8, uint8=True, memory_format="contiguous", num_classes=3, **how)):
        assert torch.equal(x, u) and torch.equal(y, v) and y.shape == (8, 3)
    l = millrace.torch.Loader(path, 8, uint8=True, fields=["tokens"], hold=8)
    for k, (x, y, f) in enumerate(list(l)):
        assert y.tolist() == [n % 3 for n in range(8 * k, 8 * k + 8)] and f["tokens.length"].tolist() == [n % 5 for n in range(8 * k, 8 * k + 8)]
        assert x[:, 0, 0, 0].tolist() == list(range(8 * k, 8 * k + 8))


def test_labels_beyond_the_classes(shapes):
    with pytest.raises(millrace.ArgumentError, match="num_classes="):
        list(loader(shapes, augment="rrc(32),mixup(0.4)", num_classes=3))


def test_an_order_by_a_function(shapes):
    orders = {}

    def order(epoch):
        orders[epoch] = np.random.default_rng(epoch).permutation(120)[:30]
        return orders[epoch]
    l = loader(shapes, 10, sampler=order)
    labels = l.targets
    for epoch in range(6):
        assert sum((y.tolist() for _, y in l), []) == [labels[k] for k in orders[epoch]]


def test_fields_come_along(tmp_path):
    path = str(tmp_path / "f.mrec")
    millrace.write_records(path, (dict(image=np.full((8, 8, 3), k, "uint8"), label=k % 3, matrix=np.full((2, 3), k / 7, "float32"),
                                       tokens=np.arange(k % 5, dtype="int16")) for k in range(40)))
    l = millrace.torch.Loader(path, 8, fields=["matrix", "tokens"], training=True)
    kept = list(l)
    for (x, y, f), b in zip(kept, millrace.Loader(path, batch=8, fields=["matrix", "tokens"], training=True)):
        for name in f:
            want = b.lengths[name[:-7]] if name.endswith(".length") else b.fields[name]
            assert torch.equal(f[name], torch.from_dlpack(want))
        del b, want
