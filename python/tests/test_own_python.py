"""millrace.torch.Loader over code of Python's own: finished tensors, transforms, collation, in this process and in worker processes."""
import collections
import functools
import multiprocessing.reduction
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
import time
import types

import millrace
import pytest

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")
import millrace.torch as mt  # noqa: E402
from millrace import _packing  # noqa: E402

FORK = dict(num_workers=2, multiprocessing_context="fork")


class Drawn(torch.utils.data.Dataset):
    """Tensors that depend on the sample and on all global generators."""

    def __init__(self, count=40):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, k):
        draws = [torch.rand(1).item(), np.random.rand(), random.random(), millrace.sample_seed() % 1000]
        return torch.tensor([float(k)] + draws), k % 5


class Failing(Drawn):
    def __init__(self, which, how):
        super().__init__()
        self.which, self.how = which, how

    def __getitem__(self, k):
        if k in self.which:
            self.how()
        return torch.full((2, 3), float(k)), k % 5


def raises():
    raise KeyError("no such picture")


def all_of(loader):
    return [[m.clone() if isinstance(m, torch.Tensor) else m for m in b] for b in loader]


def same(a, b):
    return len(a) == len(b) and all(torch.equal(x, y) for p, q in zip(a, b) for x, y in zip(p, q))


class Lists(torch.utils.data.Dataset):
    """Gives lists of samples only."""

    def __init__(self):
        self.more, self.of = 0, types.SimpleNamespace(more=0)

    def __len__(self):
        return 30

    def __getitems__(self, numbers):
        return [(torch.full((2,), float(k + self.more + self.of.more)), k % 5) for k in numbers]


@pytest.mark.parametrize("how", [{}, FORK, dict(num_workers=1, multiprocessing_context="spawn")], ids=str)
def test_data_that_give_lists_of_samples(how):
    for data, want in (Lists(), range(30)), (torch.utils.data.Subset(Lists(), range(3, 30, 3)), range(3, 30, 3)):
        with mt.Loader(data, 4, **how) as loader:
            assert [k for x, _ in loader for k in x[:, 0].tolist()] == list(want)
            assert loader.dataset[1][0].tolist() == [float(want[1])] * 2
            if isinstance(data, Lists) and "spawn" not in how.values():
                loader.dataset.more = 1
                assert data.more == 1 and [x[0, 0].item() for x, _ in loader] == list(range(1, 31, 4))
                data.of.more, data.more = 5, 0
                assert [x[0, 0].item() for x, _ in loader] == list(range(5, 35, 4))
                data.of.more = 0
        assert "Lists" in repr(loader) or "Subset" in repr(loader)


def test_any_number_of_workers():
    """Batches and draws follow from seed, epoch and sample; the caller's generators are left alone."""
    torch.manual_seed(7)
    before = torch.default_generator.get_state()
    got = []
    for settings in ({}, FORK, dict(FORK, num_workers=3)):
        with mt.Loader(Drawn(), 8, shuffle=True, seed=3, **settings) as loader:
            got.append(all_of(loader) + all_of(loader))
    assert torch.equal(before, torch.default_generator.get_state())
    assert same(got[0], got[1]) and same(got[0], got[2])
    first, second = got[0][:5], got[0][5:]
    ids = [torch.cat([b[0][:, 0] for b in e]).tolist() for e in (first, second)]
    assert sorted(ids[0]) == sorted(ids[1]) == list(range(40)) and ids[0] != ids[1]
    draws = torch.cat([b[0][:, 1:] for b in got[0]])
    assert all(len(set(draws[:, k].tolist())) == 80 for k in range(3))


def test_resume_and_ranks():
    """A state taken in the middle, while batches are ahead of the loop, goes on exactly, also as two ranks."""
    with mt.Loader(Drawn(), batch=8, shuffle=True, seed=3, **FORK) as loader:
        whole = all_of(loader) + all_of(loader)
        it = iter(loader)
        for _ in range(2):
            next(it)
        state = loader.state_dict()
        rest = all_of(it)
    with mt.Loader(Drawn(), batch=8, shuffle=True, seed=3) as loader:
        loader.load_state_dict(state)
        assert same(all_of(loader), rest)
    parts = []
    for rank in range(2):
        with mt.Loader(Drawn(), batch=8, shuffle=True, seed=3, rank=rank, world=2, **FORK) as loader:
            parts.append(all_of(loader))
    joined = [[torch.cat([a, b]) for a, b in zip(x, y)] for x, y in zip(*parts)]
    assert same(joined, whole[:5])


def test_an_epoch_of_many_batches():
    """Workers have orders of some of them only, wherever an iteration begins, and also after one that was dropped."""
    with mt.Loader(Drawn(), 1, shuffle=True, seed=3) as loader:
        want = [all_of(loader) for _ in range(2)]
    with mt.Loader(Drawn(), 1, shuffle=True, seed=3, **FORK) as loader:
        it = iter(loader)
        got = [next(it) for _ in range(17)]
        it.skip_to(3)
        assert same([next(it) for _ in range(30)], want[0][3:33]) and same(got, want[0][:17])
        it.close()
        assert same(all_of(loader), want[1])


def test_iterations_within_iterations():
    with mt.Loader(Drawn(), 8, shuffle=True, seed=3, **FORK) as loader:
        want = all_of(loader)
        loader.set_epoch(0)
        got = []
        for b in loader:
            got.append([m.clone() for m in b])
            next(iter(loader))
        assert same(got, want)


def test_kept_batches_never_change(monkeypatch):
    """Memory is used again when nobody has it, and not before; kept batches outlive the workers."""
    monkeypatch.setattr(multiprocessing.reduction, "ACKNOWLEDGE", True, raising=False)  # as Python 3.14 sends descriptors

    class Large(Drawn):
        def __getitem__(self, k):
            return torch.full((3, 128, 128), float(k)), k

    with mt.Loader(Large(), 4, **FORK) as loader:
        kept = [x for x, _ in loader] + [x[1:2] for x, _ in loader]
        fds = len(os.listdir("/proc/self/fd"))
    for k, x in enumerate(kept):
        first = 4 * (k % 10) + k // 10
        assert x[:, 0, 0, 0].tolist() == list(range(first, first + len(x))) and (x == x[:, :1, :1, :1]).all()
    assert fds < 60


def test_exceptions_name_the_sample():
    for settings in ({}, FORK):
        with mt.Loader(Failing({13}, raises), 8, **settings) as loader:
            it = iter(loader)
            assert next(it)[0][0, 0, 0] == 0
            with pytest.raises(KeyError, match="no such picture") as e:
                next(it)
            reason = str(e.value.__cause__) + "".join(getattr(e.value, "__notes__", []))
            assert "sample 13" in reason
            if settings:
                assert "worker process" in reason and 'raise KeyError("no such picture")' in reason


def test_bad_samples_are_counted():
    bad = []
    for settings in ({}, FORK):
        with mt.Loader(Failing({3, 13}, raises), 8, bad="skip", on_bad=lambda e, s: bad.append((e.sample, s)), **settings) as loader:
            got = all_of(loader)
        assert torch.cat([b[1] for b in got]).tolist() == [-100 if k in (3, 13) else k % 5 for k in range(40)]
        assert got[0][0][3].eq(0).all()
        assert sorted(bad) == [(3, None), (13, None)]
        bad.clear()
    with mt.Loader(Failing({3, 4}, raises), 8, bad="replace", on_bad=lambda e, s: bad.append((e.sample, s)), **FORK) as loader:
        assert next(iter(loader))[0][:, 0, 0].tolist() == [0, 1, 2, 5, 5, 5, 6, 7]
    assert bad == [(3, 5), (4, 5)]
    with mt.Loader(Failing({3, 4}, raises), 8, bad="skip", collate_fn=lambda samples: len(samples)) as loader:
        assert list(loader) == [6, 8, 8, 8, 8]
    with mt.Loader(Failing({3, 13}, raises), 8, bad="skip", max_bad=1) as loader:
        with pytest.raises(millrace.BadSampleError, match="max_bad=1"):
            list(loader)


@pytest.mark.parametrize("how", ["kill", "exit", "segfault"])
def test_a_worker_that_dies(how):
    def die():
        if how == "exit":
            os._exit(3)
        number = signal.SIGKILL if how == "kill" else signal.SIGSEGV
        if how == "segfault":
            signal.signal(number, signal.SIG_DFL)  # pytest's handler would print
        os.kill(os.getpid(), number)
    data = Failing({13}, die)
    with mt.Loader(data, 4, **FORK) as loader:
        it, had = iter(loader), 0
        with pytest.raises(millrace.WorkerError, match="sample 13") as e:
            while True:
                had += len(next(it)[0])
        assert e.value.sample == 13
        assert {"kill": "SIGKILL", "exit": "status 3", "segfault": "SIGSEGV"}[how] in str(e.value)
        data.which = set()
        assert had <= 12 and torch.cat([x for x, _ in it])[:, 0, 0].tolist() == list(range(had, 40))  # workers that are begun anew go on


class Outlived(Drawn):
    """Sample 1 waits until the process that has sample 4 is gone."""

    def __init__(self, folder):
        super().__init__(16)
        self.path = os.path.join(folder, "pid")

    def __getitem__(self, k):
        if k == 4 and not os.path.exists(self.path):
            with open(self.path + ".new", "w") as f:
                f.write(str(os.getpid()))
            os.rename(self.path + ".new", self.path)
            os.kill(os.getpid(), signal.SIGKILL)
        while k == 1 and not (os.path.exists(self.path) and ended(int(open(self.path).read()))):
            time.sleep(0.01)
        return torch.full((2,), float(k)), k


def test_a_dead_worker_takes_no_earlier_batch_with_it(tmp_path):
    with mt.Loader(Outlived(str(tmp_path)), 4, **FORK) as loader:
        it = iter(loader)
        assert next(it)[1].tolist() == [0, 1, 2, 3]
        with pytest.raises(millrace.WorkerError, match="SIGKILL while it made sample 4"):
            next(it)
        assert torch.cat([y for _, y in it]).tolist() == list(range(4, 16))
    os.unlink(tmp_path / "pid")
    with mt.Loader(Outlived(str(tmp_path)), 4, **FORK) as loader:
        it = iter(loader)
        next(it)
        it.close()  # nobody asks for the batch that it died in
        numbers = []
        for _ in range(20):  # its end is noticed in one of the first epochs; then another one begins with the next
            assert torch.cat([y for _, y in loader]).tolist() == list(range(16))
            numbers.append(sorted(w.number for w in loader._makers.pool._pool._workers))
        assert numbers[-1] == [0, 1], numbers


def test_a_loop_that_is_dropped_waits_for_no_lock():
    """The collector may drop it anywhere, also where another thread reads messages of workers."""
    with mt.Loader(Drawn(), 8, **FORK) as loader:
        it = iter(loader)
        next(it)
        with loader._makers.pool._pool._lock:
            dropping = threading.Thread(target=it.close)
            dropping.start()
            dropping.join()
        assert len(list(loader)) == 5


def test_targets_of_every_kind():
    class Of(Drawn):
        def __init__(self, target):
            super().__init__(6)
            self.target = target

        def __getitem__(self, k):
            return (torch.full((2, 2), float(k)),) + self.target(k)

    def batch(target, **more):
        with mt.Loader(Of(target), 3, **more) as loader:
            return next(iter(loader))
    x, y = batch(lambda k: (k / 2,))
    assert y.dtype == torch.float64 and y.tolist() == [0, 0.5, 1]
    x, y = batch(lambda k: (np.arange(3) + k,))
    assert y.tolist() == [[0, 1, 2], [1, 2, 3], [2, 3, 4]]
    x, y, name, more = batch(lambda k: (k, "p%d" % k, {"w": torch.tensor(k), "s": (k, 2.5)}), **FORK)
    assert name == ["p0", "p1", "p2"] and more["w"].tolist() == [0, 1, 2] and more["s"][1].tolist() == [2.5] * 3
    x, y = batch(lambda k: ({"boxes": torch.ones(2, 4), "labels": torch.tensor([k, k])},))
    assert isinstance(y, list) and [t["labels"].tolist() for t in y] == [[0, 0], [1, 1], [2, 2]]  # also where all have as many
    x, y = batch(lambda k: ({"points": np.ones((k, 2), "float32")},), **FORK)
    assert [tuple(t["points"].shape) for t in y] == [(0, 2), (1, 2), (2, 2)] and isinstance(y[0]["points"], torch.Tensor)
    d = mt.Loader([{"pixel_values": torch.ones(3, 2, 2), "labels": k} for k in range(4)], 2)
    assert next(iter(d))["labels"].tolist() == [0, 1]


def test_finished_tensors_keep_their_bits():
    values = torch.tensor([[-0.0, float("nan"), 1e-45], [float("inf"), -3.5, 2.0]])
    for kind in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
        data = [(values.to(kind).expand(3, 2, 3).contiguous(), k) for k in range(4)]
        for settings in ({}, FORK):
            with mt.Loader(data, 4, **settings) as loader:
                x, y = next(iter(loader))
            want = torch.stack([d[0] for d in data])
            assert x.dtype == kind and x.view(torch.uint8).equal(want.view(torch.uint8))


def test_unequal_shapes_are_refused():
    data = [(torch.zeros(3, 4, 4 + k), k) for k in range(4)]
    with pytest.raises(millrace.ArgumentError, match="3x4x4 and 3x4x5.*Resize"):
        next(iter(mt.Loader(data, 2)))
    images, targets = next(iter(mt.Loader(data, 2, collate_fn=mt.as_lists)))
    assert [i.shape[2] for i in images] == [4, 5] and targets == [0, 1]


def test_worker_init_and_info():
    seen = []

    class Info(Drawn):
        def __getitem__(self, k):
            info = torch.utils.data.get_worker_info()
            return torch.tensor([info.id, info.num_workers, self.mine])

        mine = 0

    data = Info()

    def begin(number):
        torch.utils.data.get_worker_info().dataset.mine = number + 10
    with mt.Loader(data, 8, worker_init_fn=begin, **FORK) as loader:
        for b in loader:
            seen += b.tolist()
    assert {tuple(s) for s in seen} <= {(0, 2, 10), (1, 2, 11)} and len(seen) == 40


def test_worker_threads_do_not_begin_with_a_function(caplog, monkeypatch):
    """They share this process, whose generators and objects it would change; a message says so."""
    monkeypatch.setattr(millrace._arguments, "_told", set())
    with mt.Loader(Failing(set(), raises), 8, worker_init_fn=lambda number: pytest.fail("called"), num_workers=2,
                   multiprocessing_context="threads") as loader:
        assert len(list(loader)) == 5
    assert [r.getMessage().split(":")[0] for r in caplog.records] == ["worker_init_fn= changes nothing here"]


@pytest.mark.parametrize("context", ["spawn", "forkserver"])
def test_classes_of_a_notebook(monkeypatch, context):
    """Workers that are not forked cannot import them."""
    session = types.ModuleType("__main__")
    session.Mine = type("Mine", (Failing,), {"__module__": "__main__", "__qualname__": "Mine"})
    monkeypatch.setitem(sys.modules, "__main__", session)
    with pytest.raises(millrace.ArgumentError, match="and Mine was defined in a notebook or at a prompt.*\"fork\""):
        mt.Loader(session.Mine(set(), abs), 8, num_workers=1, multiprocessing_context=context)
    with mt.Loader(session.Mine(set(), abs), 8, num_workers=1, multiprocessing_context="fork") as loader:
        assert len(list(loader)) == 5
    # A text is no name of a class, and a class that a pickle names once more is one of this module or of the session.
    for what, name in ((["__main__", "Mine"], None), ({"__main__": collections.OrderedDict(a="__main__")}, None),
                       ([collections.OrderedDict(), "__main__", session.Mine, session.Mine(set(), abs)], "Mine"), (session.Mine(set(), abs), "Mine")):
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            assert _packing.of_a_session(pickle.dumps(what, protocol)) == name, (what, protocol)


def test_changed_data_reach_the_workers():
    data = Failing(set(), raises)
    with mt.Loader(data, 8, **FORK) as loader:
        list(loader)
        data.which = {0}
        with pytest.raises(KeyError):
            next(iter(loader))


@pytest.mark.parametrize("more", [{}, FORK, dict(augment="flip")], ids=str)
def test_data_that_grow_or_shrink_are_told(more):
    """New samples would never come, and there would be no end of those that are gone."""
    data = Made() if "augment" in more else Drawn()
    with mt.Loader(data, 8, **more) as loader:
        for count in 50, 30:
            assert len(list(loader)) == 5
            data.count = count
            with pytest.raises(millrace.StateError, match="have %d samples, and had 40" % count):
                iter(loader)
            data.count = 40


def test_generators_that_workers_copy_are_told(caplog, monkeypatch):
    monkeypatch.setattr(millrace._arguments, "_told", set())
    for kind, of in ((Drawn, {}), (Made, dict(augment="flip"))):
        data = kind()
        data.more = types.SimpleNamespace(rng=np.random.default_rng(1))
        for how in ({}, dict(FORK, num_workers=1), FORK):
            caplog.clear()
            mt.Loader(data, 8, **how, **of).close()
            assert ["data.more.rng: every worker" in r.getMessage() for r in caplog.records] == ([True] if how == FORK else [])
        monkeypatch.setattr(millrace._arguments, "_told", set())


def ended(pid):
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


class Endless(Drawn):
    """Samples that never come, from the sixth on; who makes one says so."""

    def __init__(self, seen):
        super().__init__()
        self.seen = seen

    def __getitem__(self, k):
        open(os.path.join(self.seen, str(os.getpid())), "w").close()
        while k > 4:
            signal.pause()
        return torch.zeros(3, 64, 64), k


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_no_worker_is_left(tmp_path, how):
    """After Ctrl-C and after the parent was killed, with workers in the middle of a sample."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            with mt.Loader(Endless(str(tmp_path)), 2, **FORK) as loader:
                it = iter(loader)
                kept = next(it)
                os.write(write, b"ready")
                list(it)
        except KeyboardInterrupt:
            os._exit(7 + len(kept))
        finally:
            os._exit(1)
    os.close(write)
    try:
        assert os.read(read, 5) == b"ready"
        workers = [int(n) for n in os.listdir(tmp_path)]
        assert workers
        os.kill(pid, how)
        assert os.waitpid(pid, 0)[1] == (9 << 8 if how == signal.SIGINT else signal.SIGKILL)
        while not all(ended(w) for w in workers):  # the test's time limit ends it
            pass
    finally:
        os.close(read)


def plain(picture):
    """A transform without torchvision."""
    a = np.asarray(picture)
    assert a.dtype == np.uint8
    return torch.from_numpy(a[:32, :32].copy()).permute(2, 0, 1).float() / 255


@pytest.mark.parametrize("data", ["folder", "records"])
def test_transform_on_files(shapes, records, data):
    """The library decodes, in whichever process; names, labels and pixels equal a loader's without transform."""
    path = shapes if data == "folder" else records
    with mt.Loader(path, 16, channels=3) as want:
        whole = {}
        k = 0
        for images, target in want:
            for x, y in zip(images, target):
                whole[k] = (x[:, :32, :32].clone(), int(y))
                k += 1
        classes, targets = want.classes, want.targets
    for settings in ({}, FORK):
        with mt.Loader(path, 16, transform=plain, channels=3, **settings) as loader:
            assert loader.classes == classes and loader.dataset.targets == targets and len(loader.dataset) == len(whole)
            k = 0
            for images, target in loader:
                for x, y in zip(images, target):
                    assert int(y) == whole[k][1] and torch.allclose(x, whole[k][0], atol=1e-6)
                    k += 1
            assert k == len(whole)


def test_transform_on_damaged_files(shapes, tmp_path):
    import shutil
    copy = tmp_path / "photos"
    shutil.copytree(shapes, copy)
    victim = sorted(copy.glob("*/*"))[5]
    victim.write_bytes(victim.read_bytes()[:300])
    with mt.Loader(copy, 16, transform=plain, channels=3, bad="skip", **FORK) as loader:
        targets = torch.cat([y for _, y in loader])
    assert (targets == -100).nonzero().flatten().tolist() == [5]
    with pytest.raises(millrace.Error, match=victim.name) as e:
        list(mt.Loader(copy, 16, transform=plain, channels=3, **FORK))
    assert e.value.path


def test_target_transform_and_names(shapes):
    with mt.Loader(shapes, 16, transform=plain, target_transform=lambda y: y + 100, channels=3, keys=("pixel_values", "labels")) as loader:
        b = next(iter(loader))
    assert set(b) == {"pixel_values", "labels"} and int(b["labels"].min()) >= 100
    for wrong, match in (({"transform": 3}, "expected a function"),
                         ({"transform": plain, "raw": True}, "collate_fn="), ({"transform": plain, "operations": {"my_x": print}}, "operations="),
                         ({"transform": plain, "num_workers": 1, "multiprocessing_context": "thread"}, "expected \"fork\"")):
        with pytest.raises(millrace.ArgumentError, match=match):
            next(iter(mt.Loader(shapes, 16, **wrong)))


# ---------------------------------------------------------------------- pictures that the library augments

def pictures(target=lambda k: k, count=6):
    rng = np.random.default_rng(0)
    return [(rng.integers(0, 256, (3, 8, 9), dtype="uint8"), target(k)) for k in range(count)]


def test_pictures_in_every_layout():
    """(channels, height, width), as tensors and arrays; gray ones of two dimensions."""
    data, F32 = pictures(), dict(dtype="float32")
    want = next(iter(mt.Loader([(a.transpose(1, 2, 0).copy(), k) for a, k in data], 6, **F32)))[0]
    for change in (lambda a: a, torch.from_numpy, lambda a: torch.from_numpy(a).permute(1, 2, 0)):
        for more in (F32, dict(augment="resize(8x9)"), dict(FORK, **F32)):
            assert torch.equal(next(iter(mt.Loader([(change(a), k) for a, k in data], 6, **more)))[0], want)
    gray = next(iter(mt.Loader([(a[0], k) for a, k in data], 6, **F32)))[0]
    assert gray.shape == (6, 1, 8, 9)
    assert torch.equal(gray, next(iter(mt.Loader([(torch.from_numpy(a[:1]), k) for a, k in data], 6, **F32)))[0])


@pytest.mark.parametrize("shape", [(3, 8, 9), (8, 9, 3), (8, 9), (4, 8, 9), (2, 8, 9), (12, 8, 9), (5, 3, 8, 9), (7,)], ids=str)
def test_arrays_of_bytes_are_what_dataloader_gives(shape):
    """Nothing says that they are pictures."""
    rng = np.random.default_rng(2)
    data = [rng.integers(0, 256, shape, dtype="uint8") for _ in range(6)]
    for change in (lambda a, k: (a, k), lambda a, k: (torch.from_numpy(a), k / 4), lambda a, k: (a, a), lambda a, k: {"image": a, "label": k}, lambda a, k: a):
        given = [change(a, k) for k, a in enumerate(data)]
        for more in {}, FORK:
            want, got = next(iter(torch.utils.data.DataLoader(given, 4))), next(iter(mt.Loader(given, 4, **more)))
            pairs = [(want, got)] if isinstance(got, torch.Tensor) else list(zip(want.values(), got.values())) if isinstance(got, dict) else list(zip(want, got))
            assert len(pairs) == (2 if isinstance(given[0], (tuple, dict)) else 1)
            for w, g in pairs:
                assert w.dtype == g.dtype and torch.equal(w, g)


def test_channels_that_no_batch_has_are_refused():
    four = [(np.full((8, 9, 4), k, "uint8"), k) for k in range(4)]
    for make in (lambda **more: mt.Loader(four, 4, dtype="float32", **more), lambda **more: millrace.Loader(four, batch=4, **more)):
        with pytest.raises(millrace.ArgumentError, match="4 channels, and batches have 1 or 3: channels=3 leaves out"):
            make()
        assert make(channels=3).shape == (8, 9, 3)
    with pytest.raises(millrace.ArgumentError, match=r"found ndarray of uint8, shape \(12, 8, 9\); expected a picture.*without augment="):
        mt.Loader([(np.zeros((12, 8, 9), "uint8"), 1)], 1, augment="resize(8x8)")


@pytest.mark.parametrize("more,text", [(dict(dtype="float16"), "dtype=torch.float16: .* tensors of torch.float32"), (dict(uint8=True), "torch.uint8"),
                                       (dict(memory_format="channels_last"), "images.to")], ids=["dtype", "uint8", "format"])
def test_a_form_that_finished_tensors_have_not(more, text):
    data = [(torch.rand(3, 4, 4), k) for k in range(4)]
    for how in {}, FORK, dict(transform=lambda x: x):
        with pytest.raises(millrace.ArgumentError, match=text):
            next(iter(mt.Loader(data, 4, **more, **how)))
    assert next(iter(mt.Loader(data, 4, dtype="float32", memory_format="contiguous")))[0].shape == (4, 3, 4, 4)
    with pytest.raises(millrace.ArgumentError, match="and collate_fn=: the function makes the batch"):
        mt.Loader(data, 4, collate_fn=list, **more)


def test_pictures_of_pil_in_every_mode():
    Image = pytest.importorskip("PIL.Image")
    colour = Image.fromarray(np.random.default_rng(0).integers(0, 256, (8, 9, 3), dtype="uint8"))
    data = [(colour.convert(mode).resize((9 + k, 8)), k) for k, mode in enumerate(("RGB", "L", "P", "RGBA", "CMYK", "LA", "1", "YCbCr"))]
    x, y = next(iter(mt.Loader(data, 8, augment="resize(8x8)")))
    assert x.shape == (8, 3, 8, 8) and y.tolist() == list(range(8))
    for k, (picture, _) in enumerate(data):
        plain_one = picture if picture.mode == "L" else picture.convert("L" if picture.mode in ("1", "LA") else "RGB")
        one = next(iter(mt.Loader([(plain_one, 0)], 1, augment="resize(8x8)", channels=3)))[0]
        assert torch.equal(one[0], x[k])
    with pytest.raises(millrace.ArgumentError, match="I;16.*8 bits"):
        mt.Loader([(Image.fromarray(np.zeros((4, 4), "uint16")), 0)], 1, augment="resize(8x8)")


def test_targets_with_augmentation():
    """Numbers and arrays come as they are, and never as the target of a sample that does not count."""
    y = next(iter(mt.Loader(pictures(lambda k: k / 2), 6, augment="flip", training=True, order="sequential")))[1]
    assert y.dtype == torch.float64 and y.tolist() == [k / 2 for k in range(6)]
    for target in (lambda k: torch.full((4,), k / 2), lambda k: torch.full((2, 2), k), lambda k: np.array([k, 1], "float32")):
        y = next(iter(mt.Loader(pictures(target), 6, augment="flip")))[1]
        assert torch.equal(y, torch.stack([torch.as_tensor(target(k)) for k in range(6)]))
    for target, more, match in ((lambda k: {"boxes": torch.ones(k, 4)}, {}, "named fields"), (lambda k: k / 2, {"bad": "skip"}, "does not count")):
        with pytest.raises(millrace.ArgumentError, match=match):
            mt.Loader(pictures(target), 2, augment="flip", **more)
    with pytest.raises(millrace.ArgumentError, match="other lengths"):
        list(mt.Loader(pictures(lambda k: np.ones(k + 1)), 2, augment="flip"))
    with pytest.raises(millrace.ArgumentError, match="finished tensors"):
        mt.Loader([(torch.zeros(3, 4, 4), 0)], 1, augment="flip")


def test_normalise_of_torchvision(shapes):
    mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    with mt.Loader(shapes, 16, augment="center(32)", normalise=(mean, std)) as a, mt.Loader(shapes, 16, augment="center(32)") as b:
        x, y = next(iter(a))[0], next(iter(b))[0]
        assert torch.allclose(x, (y - torch.tensor(mean).view(3, 1, 1)) / torch.tensor(std).view(3, 1, 1), atol=1e-5)
    with mt.Loader(shapes, 16, augment="center(32)", normalise=(mean, std)) as a, \
            mt.Loader(shapes, 16, augment="center(32),normalise01(0.485:0.456:0.406/0.229:0.224:0.225)") as b:
        x, y = next(iter(a))[0], next(iter(b))[0]
        assert a.augment == b.augment and a.state_dict() == b.state_dict() and torch.equal(x, y)
    with mt.Loader(shapes, 16, augment="center(32),normalise(imagenet)") as b:
        assert torch.equal(x, next(iter(b))[0])
    for wrong in (dict(augment="center(32),normalise(imagenet)", normalise=(mean, std)),
                  dict(augment="center(32),normalise01(0.5/0.5)", normalise=(mean, std)), dict(normalise=((124, 116, 104), (58, 57, 57))),
                  dict(normalise=7), dict(normalise=((0.5,), (0.5, 0.5)))):
        with pytest.raises(millrace.ArgumentError, match="normalise="):
            mt.Loader(shapes, 16, **wrong)


def test_copies_are_refused(shapes):
    import copy
    import pickle
    with millrace.Loader(shapes, batch=16, augment="center(32)") as loader, mt.Loader(shapes, 16, augment="center(32)") as other:
        its = iter(loader), iter(other)
        batch = next(its[0])
        for what in (batch, batch.images) + its:
            for way in (copy.copy, copy.deepcopy, pickle.dumps):
                with pytest.raises(TypeError, match="cannot be copied or pickled"):
                    way(what)
        assert len(copy.deepcopy(other)) == len(other)  # its arguments


class Made(Drawn):
    """Pictures of several sizes, deterministic."""
    classes = ["a", "b", "c"]

    def __init__(self, at=None, how=None):
        super().__init__()
        self.at, self.how = at, how

    def __getitem__(self, k):
        if k == self.at:
            self.how()
        return np.random.default_rng(k).integers(0, 256, (40, 40, 3), dtype="uint8"), k % 3


class Together:
    """Pictures that are there only while two threads ask for them."""

    def __init__(self):
        self.both = None

    def __len__(self):
        return 24

    def __getitem__(self, k):
        if self.both is not None:
            self.both.wait()
        return np.full((6, 6, 3), k, "uint8"), k % 3


def test_threads_for_pictures_that_the_library_augments():
    """num_workers= processes call the object at the same time."""
    data = Together()
    with mt.Loader(data, 8, augment="flip", num_workers=2, multiprocessing_context="threads") as loader:
        data.both = threading.Barrier(2)
        got = [(x[:, 0, 0, 0] * 255, y) for x, y in loader]
        data.both.abort()
        data.both = None
    assert [torch.equal(x.round().long() % 3, y) for x, y in got] == [True] * 3 and torch.cat([x for x, _ in got]).round().tolist() == list(range(24))


def test_workers_for_pictures_that_the_library_augments():
    """num_workers= makes samples in processes; decoding, order and draws stay the library's."""
    got = []
    for more in ({}, FORK):
        with mt.Loader(Made(), 8, augment="rrc(32),flip", training=True, seed=3, **more) as loader:
            assert loader.classes == ["a", "b", "c"]
            got.append(all_of(loader) + all_of(loader))
    assert same(*got)
    y = next(iter(mt.Loader(pictures(lambda k: k / 2), 6, augment="flip", **FORK)))[1]
    assert y.tolist() == [k / 2 for k in range(6)]
    with mt.Loader(Made(13, raises), 8, augment="flip", **FORK) as loader, pytest.raises(KeyError) as e:
        list(loader)
    assert "sample 13" in str(e.value.__cause__)
    with mt.Loader(Made(13, lambda: os._exit(3)), 8, augment="flip", **FORK) as loader:
        with pytest.raises(millrace.WorkerError, match="status 3 while it made sample 13"):
            list(loader)


class Chance(Drawn):
    """Pictures that are drawn, by sample_seed() and by a global generator."""

    def __init__(self, how):
        super().__init__(120)
        self.how = how

    def __getitem__(self, k):
        return np.full((4, 4, 3), (millrace.sample_seed() if self.how == "seed" else np.random.randint(1 << 30)) % 251, "uint8"), k % 3


@pytest.mark.parametrize("how", ["seed", "global"])
def test_draws_of_pictures_differ_between_epochs(how):
    """They follow from seed, epoch and sample, also in a run that goes on; by sample_seed() in this process, too."""
    got = []
    for more in (FORK, dict(FORK, num_workers=1), {})[:3 if how == "seed" else 2]:
        with mt.Loader(Chance(how), 8, seed=3, **more) as loader:
            loader.set_epoch(1)
            got.append([torch.cat([x[:, 0, 0, 0] for x, _ in loader]) for _ in range(2)])
            loader.set_epoch(1)
            got[-1].append(torch.cat([x[:, 0, 0, 0] for x, _ in loader]))
            it = iter(loader)
            next(it)
            state = loader.state_dict()
            it.close()
            loader.load_state_dict(state)
            got[-1].append(torch.cat([x[:, 0, 0, 0] for x, _ in loader]))
        assert (got[-1][0] != got[-1][1]).sum() > 100 and torch.equal(got[-1][0], got[-1][2]) and torch.equal(got[-1][1][8:], got[-1][3])
        assert all(map(torch.equal, got[0], got[-1])), more
    with mt.Loader(Chance(how), 8, seed=4, **FORK) as loader:
        loader.set_epoch(1)
        assert (torch.cat([x[:, 0, 0, 0] for x, _ in loader]) != got[0][0]).sum() > 100


def test_without_shared_memory(monkeypatch, caplog):
    """Without such memory, batches go through files without a name, with a note."""
    monkeypatch.setattr(os, "memfd_create", lambda name: (_ for _ in ()).throw(OSError(38, "not there")))
    data = [(torch.full((3, 128, 128), float(k)), k) for k in range(8)]
    with caplog.at_level("INFO", "millrace"), mt.Loader(data, 4, **FORK) as loader:
        assert [x[:, 0, 0, 0].tolist() for x, _ in loader] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert any("temporary folder" in r.getMessage() for r in caplog.records)


def test_what_cannot_be_sent_is_told():
    with pytest.raises(millrace.ArgumentError, match="cannot be pickled.*\"fork\""):
        next(iter(mt.Loader(Drawn(), 4, num_workers=1, multiprocessing_context="spawn", collate_fn=lambda samples: samples)))
    with pytest.raises(millrace.WorkerError, match="timeout=0.5 seconds"):
        next(iter(mt.Loader(Failing({3}, lambda: __import__("time").sleep(1000)), 4, timeout=0.5, collate_fn=len, **FORK)))


SPAWNED = """
import random, sys, numpy, torch, millrace, millrace.torch as mt
class Drawn:
    def __len__(self): return 16
    def __getitem__(self, k):
        return torch.tensor([float(k), torch.rand(1).item(), numpy.random.rand(), random.random()]), k
if __name__ == "__main__":
    got = []
    for more in (dict(num_workers=1, multiprocessing_context="spawn"), {}):
        with mt.Loader(Drawn(), 8, seed=3, transform=torch.neg, **more) as loader:
            got.append([x.tolist() for x, _ in loader])
    print(got[0] == got[1], len(got[0]))
"""


def test_spawned_workers_make_the_same(tmp_path):
    """Data and functions are sent; the first sample draws from generators that were not loaded before."""
    (tmp_path / "main.py").write_text(SPAWNED)
    done = subprocess.run([sys.executable, str(tmp_path / "main.py")], stdout=subprocess.PIPE, timeout=300)
    assert done.stdout == b"True 2\n"


def test_a_rank_without_samples():
    """Of a last batch that does not go round."""
    data = [(torch.zeros(2), {"boxes": torch.zeros(k, 4)}, "x") for k in range(5)]
    x, y, name = list(mt.Loader(data, batch=4, rank=0, world=2, tail="keep"))[-1]
    assert x.shape == (0, 2) and y == [] and name == []


def test_the_data_set_behind_a_loader():
    data = Failing({3}, raises)
    with mt.Loader(data, 8) as loader:
        assert loader.dataset.count == 40 and loader.dataset[5][1] == 0 and loader.dataset.transform is None
        loader.dataset.which = set()
        assert data.which == set() and len(list(loader)) == 5
        with pytest.raises(AttributeError):
            loader.dataset.nothing
        with pytest.raises(AttributeError, match="millrace.Live"):
            loader.dataset.classes = ["a"]
    with mt.Loader(Made(), 8, augment="flip") as loader:
        loader.dataset.at = 50
        assert loader.dataset.at == 50 and next(iter(loader))
    with mt.Loader(Made(), 8, augment="flip", **FORK) as loader, pytest.raises(AttributeError, match="at cannot be set.*copies of the data"):
        loader.dataset.at = 3


def test_threads():
    """As usual without the GIL: the same order, errors and draws by sample_seed()."""
    class Seeds(Failing):
        def __getitem__(self, k):
            super().__getitem__(k)
            return torch.tensor([k, millrace.sample_seed() >> 1]), k
    got = []
    for more in ({}, dict(num_workers=3, multiprocessing_context="threads")):
        with mt.Loader(Seeds(set(), raises), 8, shuffle=True, seed=3, **more) as loader:
            got.append(all_of(loader) + all_of(loader))
            loader.dataset.which = {13}
            with pytest.raises(KeyError, match="no such picture"):
                list(loader)
            loader.dataset.which = set()
            next(iter(loader))
    assert same(*got)


def test_further_fields_and_names():
    """Of samples that the library augments, and of samples that Python makes."""
    data = [{"image": a, "label": k, "score": k / 2, "v": np.arange(k)} for a, k in pictures()]
    for more in ({}, FORK):
        x, y, fields = next(iter(mt.Loader(data, 3, augment="flip", fields=["score", "v"], **more)))
        assert fields["score"].tolist() == [0, 0.5, 1] and fields["v.length"].tolist() == [0, 1, 2] and fields["v"].shape == (3, 2)
        b = next(iter(mt.Loader(data, 3, augment="flip", fields=["score"], keys=("pixel_values", "labels"), **more)))
        assert set(b) == {"pixel_values", "labels", "score"}
    made = [(torch.zeros(2), k, {"score": k / 2}) for k in range(4)]
    assert next(iter(mt.Loader(made, 4)))[2]["score"].tolist() == [0, 0.5, 1, 1.5]
    assert set(next(iter(mt.Loader(made, 4, keys=("x", "y"))))) == {"x", "y", "score"}
    with pytest.raises(millrace.ArgumentError, match="keys="):
        next(iter(mt.Loader([m[:2] + (1, 2) for m in made], 4, keys=("x", "y"))))


@pytest.mark.parametrize("more", [{}, FORK], ids=["one process", "workers"])
def test_names_that_dicts_of_pictures_have_elsewhere(more, caplog):
    """As Hugging Face's data sets have them: without them every target would be -100."""
    for names in (("image", "labels"), ("img", "label"), ("img", "target"), ("pixel_values", "labels")):
        y = next(iter(mt.Loader([dict(zip(names, sample)) for sample in pictures()], 3, augment="flip", **more)))[1]
        assert y.tolist() == [0, 1, 2], names
    data = [{"image": a, "target": k} for a, k in pictures()]
    assert next(iter(mt.Loader(data, 3, augment="flip", fields=["target"], **more)))[2]["target"].tolist() == [0, 1, 2]
    y = next(iter(mt.Loader([{"img": a, "fine_label": k} for a, k in pictures()], 3, augment="flip", **more)))[1]
    assert y.tolist() == [-100] * 3 and "they have 'fine_label'" in caplog.text


class Folder(torch.utils.data.Dataset):
    """As torchvision's ImageFolder."""
    classes, transform = ["ant", "bee", "cat"], None

    def __init__(self, finished):
        self.finished, self.targets = finished, [k % 3 for k in range(24)]

    def __len__(self):
        return 24

    def __getitem__(self, k):
        picture = torch.full((8, 8, 3), k, dtype=torch.uint8)
        return picture.permute(2, 0, 1).float() if self.finished else picture.numpy(), self.targets[k]


@pytest.mark.parametrize("more", [dict(augment="rrc(8)", training=True), {}, dict(num_workers=2)], ids=str)
def test_parts_of_a_data_set_know_their_classes(more):
    """Of random_split(), of parts of parts, and put together again; so a sampler can be made of loader.targets."""
    data = Folder("augment" not in more)
    a, b = torch.utils.data.random_split(data, [15, 9], generator=torch.Generator().manual_seed(1))
    for part in a, torch.utils.data.Subset(a, range(0, 15, 2)), torch.utils.data.ConcatDataset([b, a, data]):
        loader = mt.Loader(part, 4, **more)
        want = [part[k][1] for k in range(len(part))]
        assert loader.classes == data.classes and loader.dataset.class_to_idx == {"ant": 0, "bee": 1, "cat": 2}
        assert loader.targets == loader.dataset.targets == want
        loader.close()
        loader = mt.Loader(part, 4, shuffle=False, **more)
        assert torch.cat([y for _, y in loader]).tolist() == want and isinstance(loader.sampler, torch.utils.data.SequentialSampler)
        loader.close()
    with pytest.raises(millrace.UnsupportedError, match="take them from the batches"):
        mt.Loader(torch.utils.data.ConcatDataset([Drawn(), Drawn()]), 4).targets


@pytest.mark.parametrize("data,text", [({"image": [1, 2], "label": [0, 1]}, "StackDataset"),
                                       ((torch.zeros(10, 3), torch.zeros(10)), "tuple of 2 arrays of 10 rows: .*TensorDataset"),
                                       (torch.utils.data.DataLoader(Drawn(), 4), "other.dataset")], ids=["columns", "arrays", "loader"])
def test_what_is_no_data_set_says_what_to_write(data, text):
    with pytest.raises(ValueError, match=text):
        mt.Loader(data, 2)


class Kept:
    """Data and a transform with state of every kind, which the program changes in place."""

    def __init__(self):
        self.list, self.array, self.tensor, self.dict, self.part = [0] * 8, np.zeros(8, int), torch.zeros(8, dtype=torch.long), {"a": {"b": 0}}, Sized(0)

    def __len__(self):
        return 8

    def __getitem__(self, k):
        return torch.tensor([self.list[k], int(self.array[k]), int(self.tensor[k]), self.dict["a"]["b"], self.part.size]), os.getpid()


class Sized:
    def __init__(self, size):
        self.size = size

    def __call__(self, x):
        return torch.cat([x, torch.tensor([self.size])])


def test_changes_in_place_reach_the_workers():
    """As with a DataLoader, whose workers begin anew in every epoch; without a change they stay."""
    data, own = Kept(), Sized(0)
    with mt.Loader(data, 4, transform=own, **FORK) as loader:
        def epoch():
            batches = list(loader)
            return torch.cat([x for x, _ in batches]).unique(dim=0).tolist(), {int(p) for _, y in batches for p in y}
        seen, first = epoch()
        assert seen == [[0] * 6] and epoch() == (seen, first)
        for k, change in enumerate((lambda: data.list.__setitem__(slice(None), [1] * 8), lambda: data.array.fill(1), lambda: data.tensor.fill_(1),
                                    lambda: data.dict["a"].update(b=1), lambda: setattr(data.part, "size", 1), lambda: setattr(own, "size", 1))):
            change()
            now, workers = epoch()
            assert now == [[1] * (k + 1) + [0] * (5 - k)] and not workers & first
    with mt.Loader(data, 4, persistent_workers=True, **FORK) as loader:
        list(loader)
        data.list[:] = [2] * 8
        assert all((x[:, 0] == 1).all() for x, _ in loader)


def test_a_mark_of_what_cannot_be_written_differs():
    """One member that pickle refuses does not hide a change of another one."""
    from millrace._marks import mark_of

    class Holds:
        pass
    data, deep = Holds(), None
    data.f, data.labels = functools.lru_cache(None)(lambda x: x), [1]
    assert mark_of([data]) == mark_of([data])
    before = mark_of([data])
    data.labels.append(2)
    assert mark_of([data]) != before
    for _ in range(5000):
        deep = [deep]
    assert mark_of([deep]) != mark_of([deep])


def test_what_augmentation_would_leave_behind_is_told(caplog):
    rng = np.random.default_rng(0)
    pictures = [rng.integers(0, 256, (8, 9, 3), dtype="uint8") for _ in range(4)]
    for mask in (lambda p: p[:, :, 0].copy(), lambda p: torch.zeros(1, 8, 9), lambda p: np.zeros((5, 8, 9), "float32")):
        with pytest.raises(millrace.ArgumentError, match="picture's own height and width.*fields="):
            mt.Loader([(p, mask(p)) for p in pictures], 4, augment="resize(4x4),flip")
    with pytest.raises(millrace.ArgumentError, match="picture's own height and width"):
        mt.Loader([(p, p.copy()) for p in pictures], 4, augment="rrc(4)")
    data = [(p, p[:, :, 0].copy()) for p in pictures]
    for stays in ("normalise(imagenet)", "jitter(0.4,0.4,0.4,0.1), gray(0.5),normalise(imagenet)"):
        assert next(iter(mt.Loader(data, 4, augment=stays)))[1].shape == (4, 8, 9)
    for sample, left, label in ((dict(y=1), "'y'", False), (dict(label=1, caption="a"), "'caption'", True), (dict(label=1), "", True)):
        caplog.clear()
        mt.Loader([dict(image=p, **sample) for p in pictures], 4, augment="flip").close()
        assert (left + "; fields=" in caplog.text) == bool(left) and ("no target counts" in caplog.text) == (not label)
