"""millrace.torch, where DataLoader stood."""
import gc
import os
import pickle
import subprocess
import sys

import millrace
import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")
import millrace.torch  # noqa: E402

AUGMENT = "rrc(32),flip,normalise(imagenet)"
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def loader(shapes, batch_size=16, **more):
    return millrace.torch.Loader(shapes, batch_size, **dict(dict(augment=AUGMENT, training=True, seed=3, workers=2), **more))


def plain(shapes, epochs=3, **more):
    return millrace.Loader(shapes, batch=16, augment=AUGMENT, training=True, seed=3, epochs=epochs, **more)


@pytest.mark.parametrize("memory_format", ["channels_last", "contiguous"])
def test_numbers(shapes, memory_format):
    mean, std = (torch.tensor(v).view(1, 3, 1, 1) for v in (MEAN, STD))
    for (x, y), b in zip(loader(shapes, memory_format=memory_format), plain(shapes)):
        want = (torch.from_dlpack(b.images).permute(0, 3, 1, 2).float() / 255 - mean) / std
        assert x.shape == want.shape and x.dtype == torch.float32 and y.dtype == torch.int64
        assert x.is_contiguous(memory_format=torch.channels_last if memory_format == "channels_last" else torch.contiguous_format)
        assert torch.allclose(x, want, atol=1e-5) and y.tolist() == b.labels.tolist()
        del b


@pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no GPU")
@pytest.mark.parametrize("how", [{}, {"memory_format": "contiguous"}, {"uint8": True}, {"augment": "rrc(32),standardise"}],
                         ids=["channels_last", "contiguous", "uint8", "standardise"])
def test_on_a_gpu_as_in_memory(shapes, how):
    """Kept batches stay unchanged while their pinned buffers are used again."""
    there, here = loader(shapes, device="cuda", **how), loader(shapes, **how)
    kept = [batch for _ in range(3) for batch in there]
    wanted = [(x.clone(), y) for _ in range(3) for x, y in here]
    assert len(kept) == len(wanted) > 20
    for (x, y), (want, target) in zip(kept, wanted):
        assert x.is_cuda and y.is_cuda and x.dtype == want.dtype and y.dtype == torch.int64
        assert x.stride() == want.stride() and torch.allclose(x.cpu(), want, atol=1e-5) and (y.cpu() == target).all()


def test_uint8_is_the_slot(shapes):
    for x, y in loader(shapes, uint8=True):
        assert x.dtype == torch.uint8 and x.shape[1:] == (3, 32, 32) and x.data_ptr() % 64 == 0


def test_without_normalise_it_is_as_to_tensor(shapes):
    for (x, _), b in zip(loader(shapes, augment="center(32)"), millrace.Loader(shapes, batch=16, augment="center(32)", training=True,
                                                                              seed=3)):
        assert torch.allclose(x, torch.from_dlpack(b.images).permute(0, 3, 1, 2).float() / 255)


@pytest.mark.parametrize("device", [None, pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(),
                                                                                        reason="PyTorch sees no GPU"))])
def test_mixed(shapes, device):
    mixes = AUGMENT.replace("flip", "flip,mixup(0.4),cutmix(1)")
    for (x, y), b in zip(loader(shapes, augment=mixes, device=device),
                         millrace.Loader(shapes, batch=16, augment=mixes, training=True, seed=3)):
        assert y.dtype == torch.float32 and y.shape == (b.count, 10) and (y.cpu().numpy() == b.soft_targets(10)).all()
        assert torch.allclose(y.sum(dim=1).cpu(), torch.ones(b.count)) and torch.nn.functional.cross_entropy(y * 3, y) > 0
        del b
    assert all(isinstance(b, millrace.Batch) for b in loader(shapes, augment=mixes, raw=True))


def test_standardised(shapes):
    for x, _ in loader(shapes, augment="center(32),standardise"):
        assert abs(x.mean(dim=(1, 2, 3))).max() < 1e-3


def test_epochs_as_with_a_data_loader(shapes):
    want = [b.ids.tolist() for b in plain(shapes)]
    for raw in [dict(raw=True)]:
        l = loader(shapes, **raw)
        assert len(l) == 8 and len(l.dataset) == 120 and len(l.dataset.classes) == 10 and l.batch_size == 16
        got = [[b.ids.tolist() for b in l] for _ in range(3)]  # one after the other, unasked
        assert sum(got, []) == want
        l.sampler.set_epoch(1)
        assert [b.ids.tolist() for b in l] == want[8:16]
        l.set_epoch(0)
        for b in l:
            break  # the rest is not wanted
        del b
        assert [b.ids.tolist() for b in l] == want[8:16]  # the next one


def test_resume_in_the_middle(shapes):
    want = [b.ids.tolist() for b in plain(shapes)]
    l = loader(shapes, raw=True)
    l.set_epoch(1)
    it = iter(l)
    for _ in range(3):
        next(it)
    state = l.state_dict()
    for set_epoch in (False, True):
        m = loader(shapes, raw=True)
        m.load_state_dict(state)
        if set_epoch:
            m.set_epoch(1)
        assert [b.ids.tolist() for b in m] == want[11:16]
        assert [b.ids.tolist() for b in m] == want[16:24]


def test_what_protocols_ask_for(shapes):
    l = loader(shapes)
    from torch.distributed.checkpoint.stateful import Stateful
    assert isinstance(l, Stateful)
    again = pickle.loads(pickle.dumps(l))
    assert all((a[0] == b[0]).all() for a, b in zip(l, again))


@pytest.mark.parametrize("wrong", [dict(batch=16), dict(batch_size=None), dict(epochs=2), dict(memory_format="nchw"), dict(device="meta")])
def test_settings_that_cannot_be(shapes, wrong):
    with pytest.raises(ValueError):
        loader(shapes, **wrong)


def test_a_data_loader_around_it_is_told(shapes):
    """What Ray's prepare_data_loader() makes of any loader."""
    with pytest.raises(TypeError, match="use it as it is.*prepare_data_loader"):
        next(iter(torch.utils.data.DataLoader(loader(shapes).dataset, batch_size=4)))


def test_a_rank_without_a_sample_of_the_last_batch(shapes, caplog):
    """Its mean loss would be no number: for training it is an error with advice, else a warning."""
    wrong = dict(batch_size=None, batch=119, world=3, rank=0)
    with pytest.raises(ValueError, match="fewer than there are ranks.*drop_last=True"):
        loader(shapes, **wrong)
    assert len(loader(shapes, drop_last=True, **wrong)) == 1 and len(loader(shapes, tail="pad", **wrong)) == 2
    assert not caplog.records
    assert [len(y) for _, y in loader(shapes, **dict(wrong, training=False, tail="keep"))] == [39, 0]
    assert "fewer than there are ranks" in caplog.text


def test_tensors_outlive_the_loader(shapes):
    l = loader(shapes, uint8=True)
    x, _ = next(iter(l))
    want = x.clone()
    l.close()
    del l
    gc.collect()
    assert (x == want).all()


# A rank ends by os._exit(): beside busy neighbours PyTorch 2.15.0 aborts one rank in thirty at its exit ("terminate called without an
# active exception"), in scripts of DDP and gloo alone just as with a loader.
DDP = """
import os, sys, json, torch, torch.distributed as dist, millrace.torch
dist.init_process_group("gloo")
l = millrace.torch.Loader(sys.argv[1], batch=24, augment="rrc(32),flip,normalise(imagenet)", training=True, seed=3, workers=1)
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 10)))
opt = torch.optim.SGD(model.parameters(), 0.01)
state = json.loads(sys.argv[2])
if state: l.load_state_dict(state)
out, n = [], 0
for x, y in l:
    opt.zero_grad(); torch.nn.functional.cross_entropy(model(x), y).backward(); opt.step()
    all_y = [None] * dist.get_world_size()
    dist.all_gather_object(all_y, y.tolist())
    out += [sum(all_y, [])]
    n += 1
    if n == int(sys.argv[3]): break
if dist.get_rank() == 0: print("RESULT", json.dumps([out, l.state_dict()]))
dist.destroy_process_group()
l.close()
sys.stdout.flush()
os._exit(0)
"""


@pytest.mark.skipif(not torch.distributed.is_available(), reason="torch without distributed")
def test_torchrun_stop_and_resume_in_another_world(shapes, tmp_path):
    """Two ranks train two steps under DDP, three go on; one process sees the same targets in one go."""
    import json
    (tmp_path / "main.py").write_text(DDP)

    def run(world, state, steps):
        done = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(world),
                               str(tmp_path / "main.py"), shapes, json.dumps(state), str(steps)], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=300,
                              env=dict(os.environ, OMP_NUM_THREADS="1", PYTHONFAULTHANDLER="1"))
        text = done.stdout.decode()
        assert done.returncode == 0, text[-12000:]
        return json.loads([line for line in text.splitlines() if line.startswith("RESULT")][0][7:])
    begun, state = run(2, None, 2)
    rest, _ = run(3, state, 99)
    want = [y.tolist() for _, y in millrace.torch.Loader(shapes, batch=24, augment=AUGMENT, training=True, seed=3)]
    assert begun + rest == want


def test_samplers_of_torch(shapes):
    """Each with a seed of its epoch, so that it is a function of it; tensors of numbers, too."""
    from torch.utils.data import DistributedSampler, WeightedRandomSampler
    weights, generator = torch.linspace(1, 5, 120), torch.Generator()
    spread = DistributedSampler(range(120), num_replicas=1, rank=0, seed=3)

    def weighted(epoch):
        return list(WeightedRandomSampler(weights, 50, generator=generator.manual_seed(epoch)))
    for sampler in (weighted, lambda epoch: (spread.set_epoch(epoch), list(spread))[1], torch.arange(40).flip(0)):
        batches = loader(shapes, 10, raw=True, sampler=sampler)
        assert len(batches.dataset) == 120
        for epoch in (0, 1, 4):
            batches.set_epoch(epoch)
            want = sampler(epoch) if callable(sampler) else sampler.tolist()
            assert sum((b.ids.tolist() for b in batches), []) == want and len(batches) == len(want) // 10


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
@pytest.mark.parametrize("memory_format", ["contiguous", "channels_last"])
def test_strides_are_those_of_torch(shapes, dtype, memory_format):
    """And the target is a tensor of its own, which keeps no pictures."""
    format_of = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}[memory_format]
    for n in 7, 1:
        with millrace.torch.Loader(shapes, n, augment="center(24)", dtype=dtype, memory_format=memory_format, prefetch=0) as l:
            images, target = next(iter(l))
            like = torch.empty(n, 3, 24, 24).to(memory_format=format_of)
            assert images.is_contiguous(memory_format=format_of) and (n == 1 or images.stride() == like.stride())
            del images
            assert l.held == 0 and target.dtype == torch.int64 and target.tolist() == [0] * n
