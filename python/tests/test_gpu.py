"""The way of batches to a GPU, with a GPU that stands for one: its copies happen when somebody waits for them, and not before."""
import collections
import dataclasses
import gc
import os
import signal
import threading
import weakref

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")
import millrace  # noqa: E402
import millrace.torch  # noqa: E402
from millrace import _across, _gpu  # noqa: E402

AUGMENT = "rrc(32),flip,normalise(imagenet)"


class Stream:
    def __init__(self, device=None):
        pass

    def wait_stream(self, other):
        pass

    def wait_event(self, event):
        assert event.behind is not None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


class Pretended:
    """A device whose copies are late: each is done when an event after it is waited for.

    late  False: copies are done at once"""

    def __init__(self):
        self.late, self.queue, self.allocated, self.waits = True, [], [], 0

    def send(self, host, device):
        out = torch.full_like(host, 7)
        self.queue.append((out, host))
        if not self.late:
            self.run(len(self.queue))
        return out

    def run(self, until):
        while until > 0 and self.queue:
            out, host = self.queue.pop(0)
            out.copy_(host)
            until -= 1

    def pinned(self, size):
        self.allocated.append(torch.empty(size, dtype=torch.uint8))
        return self.allocated[-1]

    def event(self):
        gpu = self

        class Event:
            behind = None

            def record(self, stream):
                self.behind = [out for out, _ in gpu.queue]

            def left(self):
                return sum(any(out is b for b in self.behind) for out, _ in gpu.queue)

            def query(self):
                return not self.left()

            def synchronize(self):
                gpu.waits += bool(self.left())
                gpu.run(self.left())
        return Event()


@pytest.fixture
def gpu(monkeypatch):
    g = Pretended()
    monkeypatch.setattr(_gpu, "send", g.send)
    monkeypatch.setattr(_gpu, "pinned", g.pinned)
    for name, what in (("Stream", Stream), ("stream", lambda s: s), ("current_stream", Stream), ("Event", g.event),
                       ("current_device", lambda: 0)):
        monkeypatch.setattr(torch.cuda, name, what)
    monkeypatch.setattr(torch.Tensor, "record_stream", lambda self, stream: None)
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda self: pytest.fail("memory is pinned inside next()"))
    return g


def loader(data, batch_size=16, **more):
    return millrace.torch.Loader(data, batch_size, **dict(dict(augment=AUGMENT, training=True, seed=3, workers=2), **more))


def test_next_pins_nothing_and_nothing_is_overwritten_under_way(shapes, gpu):
    """Memory is allocated once, a few batches of it; memory that the GPU has not read yet stays unchanged."""
    there, here = loader(shapes, device="cuda", uint8=True), loader(shapes, uint8=True)
    got = [batch for _ in range(4) for batch in there]
    there.close()
    assert len(gpu.allocated) == 6 and not gpu.queue and gpu.waits
    assert sum(m.numel() for m in gpu.allocated) < 6 * (16 * (32 * 32 * 3 + 100) + 1000)
    for (x, y), (a, b) in zip(got, (pair for _ in range(4) for pair in here)):
        assert torch.equal(x, a) and torch.equal(y, b) and x.stride() == a.stride()


def test_memory_is_held_until_its_copy_ends():
    class Source:
        pass

    class Copied:
        def __init__(self, source):
            self.source = weakref.ref(source)

        def synchronize(self):
            held.append(self.source() is not None)

    held, way = [], _gpu.Gpu("cpu", torch.uint8, False, [], [])
    for _ in range(3):
        source = Source()
        way._under_way.append((Copied(source), source))
    del source
    way.close()
    assert held == [True] * 3 and not way._under_way


@pytest.mark.parametrize("how", [{}, {"memory_format": "channels_last"}, {"dtype": "float16"}, {"augment": "rrc(32),standardise"}, {"prefetch": 0},
                                 {"augment": "rrc(32),flip,mixup(0.4)"}, {"tail": "pad"}, {"batch_size": 50}, {"rank": 1, "world": 3}], ids=str)
def test_numbers_are_those_of_host_memory(shapes, gpu, how):
    gpu.late = False
    there, here = loader(shapes, **dict(how, device="cuda")), loader(shapes, **how)
    there._gpu._device = "cpu"
    count = 0
    for _ in range(2):
        for (x, y), (a, b) in zip(there, here):
            assert x.dtype == a.dtype and x.stride() == a.stride() and torch.allclose(x.float(), a.float(), atol=1e-2 if "dtype" in how else 1e-5)
            assert torch.equal(y, b)
            count += 1
    assert count == 2 * len(here) and len(gpu.allocated) == (4 if how.get("prefetch") == 0 else 6)


def test_iterations_within_iterations(shapes, gpu):
    """Each has memory of its own, and an iteration that ends takes no copy under way."""
    l, want = loader(shapes, device="cuda", uint8=True), [[y for _, y in loader(shapes, uint8=True, seed=3)] for _ in range(1)]
    outer = []
    for k, (_, y) in enumerate(l):
        outer.append(y)
        if k % 3 == 0:
            next(iter(l))
    l.close()
    assert [y.tolist() for y in outer] == [y.tolist() for y in want[0]]


def test_fields_have_memory_of_their_own(tmp_path, gpu):
    """They stay in host memory, longer than the loader."""
    path, n = str(tmp_path / "a.mrec"), 40
    samples = [{"image": np.full((8, 8, 3), k, "uint8"), "label": k % 3, "score": k / 4, "wide": np.full(20000, k, "float32")} for k in range(n)]
    millrace.write_records(path, samples)
    l = millrace.torch.Loader(path, 20, fields=["score", "wide"], device="cuda", uint8=True)
    kept = [fields for _, _, fields in l]
    l.close()
    del l
    gc.collect()
    for m in gpu.allocated:
        m.fill_(255)
    assert torch.cat([f["score"] for f in kept]).tolist() == [k / 4 for k in range(n)]
    assert [float(row[0]) for f in kept for row in f["wide"]] == list(range(n))


def test_a_loader_that_is_dropped_ends(shapes, gpu):
    """Copies under way do not keep it."""
    import weakref
    l = loader(shapes, device="cuda", uint8=True)
    seen = weakref.ref(l)
    it = iter(l)
    x, _ = next(it)
    del it, l
    assert seen() is None and not gpu.queue and (x != 7).any()


# ---------------------------------------------------------------------- batches that Python makes

class Forms(torch.utils.data.Dataset):
    """Samples of large and small members, in every layout."""

    def __init__(self, count=40):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, k):
        picture = torch.full((3, 96, 96), float(k))
        boxes = {"boxes": torch.full((k % 3, 4), float(k)), "labels": torch.full((k % 3,), k)}
        return picture, boxes, picture.to(torch.bfloat16), picture.to(torch.uint8)[0], k, "name %d" % k


def last(batch):
    """collate_fn=: the pictures channels_last."""
    made = torch.utils.data.default_collate([s[:1] + s[2:] for s in batch])
    made[0] = made[0].contiguous(memory_format=torch.channels_last)
    return {"x": made[0], "boxes": [s[1] for s in batch], "rest": made[1:], "none": torch.empty(0, 3)}


def leaves(made, out=None):
    out = [] if out is None else out
    if isinstance(made, dict):
        made = list(made.values())
    if isinstance(made, (list, tuple)):
        for v in made:
            leaves(v, out)
    else:
        out.append(made)
    return out


def same(a, b):
    a, b = leaves(a), leaves(b)
    return len(a) == len(b) and all(torch.equal(x, y) and x.dtype == y.dtype and x.stride() == y.stride() if isinstance(x, torch.Tensor)
                                    else x == y for x, y in zip(a, b))


@pytest.mark.parametrize("late", [True, False], ids=["late", "at once"])
@pytest.mark.parametrize("collate", [None, last], ids=["default", "collate_fn"])
@pytest.mark.parametrize("how", [dict(num_workers=2, multiprocessing_context="fork"), dict(num_workers=2, multiprocessing_context="threads"), {}],
                         ids=["processes", "threads", "here"])
def test_batches_of_python_are_copied_ahead(gpu, monkeypatch, how, collate, late):
    """By a thread, from a few pieces of pinned memory that no copy under way is taken from; a delivered batch was not changed meanwhile."""
    gpu.late = late
    senders = set()
    monkeypatch.setattr(_gpu, "send", lambda host, device: (senders.add(threading.current_thread().name), gpu.send(host, device))[1])
    usual = millrace.torch.Loader(Forms(), 8, shuffle=True, seed=3, collate_fn=collate)
    want = [b for _ in range(2) for b in usual]
    loader = millrace.torch.Loader(Forms(), 8, shuffle=True, seed=3, collate_fn=collate, device="cuda", **how)
    got = [b for _ in range(2) for b in loader]
    loader.close()
    assert not gpu.queue and len(got) == len(want) and all(map(same, got, want))
    assert len(gpu.allocated) <= 3 and bool(gpu.waits) == late
    assert senders == ({"millrace batches"} if how else {"MainThread"})


def test_next_takes_what_was_sent(gpu, monkeypatch):
    """It neither copies nor pins, and small tensors share one copy; the device has two batches that nobody took, and no more."""
    here, crossing = threading.get_ident(), _across.Crossing.send

    def send(self, made):
        assert threading.get_ident() != here
        return crossing(self, made)
    monkeypatch.setattr(_across.Crossing, "send", send)
    gpu.late = False
    with millrace.torch.Loader(Forms(80), 8, device="cuda", num_workers=2, multiprocessing_context="fork", collate_fn=last) as loader:
        it = iter(loader)
        next(it)
        pool = loader._makers.pool
        for _ in range(3):
            with pool._come:
                pool._come.wait_for(lambda: len(pool._sent) == 2)
            x = next(it)
        assert len(pool._sent) <= 2 and len(gpu.allocated) <= 3
        boxes = x["boxes"]
        assert len({t.untyped_storage().data_ptr() for t in (b["boxes"] for b in boxes) if t.numel()}) == 1
        boxes[1]["boxes"].add_(1)
        assert boxes[2]["boxes"]._version == 0  # autograd takes them for tensors of their own


def test_iterations_within_iterations_of_python(gpu):
    gpu.late = False
    with millrace.torch.Loader(Forms(), 8, device="cuda", num_workers=2, multiprocessing_context="fork", collate_fn=last) as loader:
        want = list(loader)
        got = []
        for b in loader:
            got.append(b)
            assert same(next(iter(loader)), want[0])
        assert all(map(same, got, want))
        it, thread = iter(loader), loader._makers.pool._thread
        next(it)
    with pytest.raises(millrace.ClosedError):
        next(it)
    assert not thread.is_alive()
    loader = millrace.torch.Loader(Forms(), 8, device="cuda", num_workers=1, multiprocessing_context="fork", collate_fn=last)
    assert same(next(iter(loader)), want[0])
    thread = loader._makers.pool._thread
    del loader
    gc.collect()
    assert not thread.is_alive()  # it does not keep the loader


class Named(dict):
    def names(self):
        return sorted(self)


@dataclasses.dataclass(frozen=True)
class Record:
    x: torch.Tensor
    note: str


class Itself:
    """Moves its tensors itself."""

    def __init__(self, x, device=None):
        self.x, self.device = x, device

    def to(self, device):
        return Itself(self.x, device)


class Opaque:
    def __init__(self, x):
        self.x = x


def of_every_type(samples):
    x = torch.stack([s[0] for s in samples])
    named = Named(x=x)
    named.more = 3
    return {"named": named, "user": collections.UserDict(x=x), "record": Record(x, "a"), "itself": [Itself(x)], "opaque": Opaque("text")}


@pytest.mark.parametrize("how", [dict(num_workers=1, multiprocessing_context="fork"), {}], ids=["processes", "here"])
def test_types_of_batches_stay(gpu, monkeypatch, how):
    """Also types that PyTorch's pin_memory= turns into plain dicts; no tensor is left in host memory in silence."""
    moved = []
    monkeypatch.setattr(_gpu, "send", lambda host, device: (moved.append(host.numel()), gpu.send(host, device))[1])
    with millrace.torch.Loader(Forms(8), 8, device="cuda", collate_fn=of_every_type, **how) as loader:
        b = next(iter(loader))
    x = torch.stack([Forms()[k][0] for k in range(8)])
    assert type(b["named"]) is Named and b["named"].more == 3 and b["named"].names() == ["x"] and type(b["user"]) is collections.UserDict
    assert all(torch.equal(t, x) for t in (b["named"]["x"], b["user"]["x"], b["record"].x, b["itself"][0].x)) and len(moved) == 3
    assert b["record"].note == "a" and b["itself"][0].device.type == "cuda" and b["opaque"].x == "text"
    with millrace.torch.Loader(Forms(8), 8, device="cuda", collate_fn=lambda samples: Opaque(samples[0][0]), **how) as loader:
        with pytest.raises(millrace.ArgumentError, match="class Opaque.*to\\(device\\)"):
            next(iter(loader))


class Fails(Forms):
    def __getitem__(self, k):
        if k == 13:
            raise KeyError("no such sample")
        if k == 29:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__getitem__(k)


def test_errors_come_with_their_batch(gpu):
    """And the loop can go on after them."""
    gpu.late = False
    with millrace.torch.Loader(Fails(), 4, device="cuda", num_workers=2, multiprocessing_context="fork", collate_fn=last) as loader:
        it = iter(loader)
        assert [next(it)["rest"][2][0].item() for _ in range(3)] == [0, 4, 8]
        for _ in range(2):
            with pytest.raises(KeyError, match="no such sample"):
                next(it)
        it.skip_to(4)
        assert [next(it)["rest"][2][0].item() for _ in range(3)] == [16, 20, 24]
        with pytest.raises(millrace.WorkerError, match="29"):
            next(it)
        it.skip_to(8)
        assert [next(it)["rest"][2][0].item() for _ in range(2)] == [32, 36]
        assert next(it, None) is None
