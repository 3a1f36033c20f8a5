"""augment= together with transform=, target_transform= and collate_fn=: the library makes the pictures, workers call the functions."""
import random
import shutil

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")
import millrace  # noqa: E402
import millrace.torch as mt  # noqa: E402
from millrace import _ranks  # noqa: E402

AUGMENT = "rrc(32),flip,normalise(imagenet)"
FORK = dict(num_workers=2, multiprocessing_context="fork")
HOW = dict(augment=AUGMENT, training=True, seed=3)


def twice(picture):
    return picture * 2


def noisy(picture):
    return picture + torch.randn(1) + random.random() + np.random.rand()


def flat(pair):
    return torch.cat([t.flatten().float() for t in pair])


@pytest.mark.parametrize("workers", [dict(num_workers=0), FORK, dict(num_workers=2, multiprocessing_context="spawn"),
                                     dict(num_workers=2, multiprocessing_context="threads")], ids=lambda w: "-".join(map(str, w.values())))
def test_pictures_are_those_without_functions(shapes, workers):
    with mt.Loader(shapes, 16, **HOW) as plain, mt.Loader(shapes, 16, transform=twice, **HOW, **workers) as loader:
        for _ in range(2):
            pairs = list(zip(plain, loader))
            assert len(pairs) == 8 and all(torch.equal(2 * x, u) and torch.equal(y, v) for (x, y), (u, v) in pairs)


@pytest.mark.parametrize("how", [dict(dtype="float16", memory_format="channels_last"), dict(uint8=True), dict(dtype="uint8", memory_format="contiguous"),
                                 dict(augment="rrc(32),standardise"), dict(channels=1), dict(repeats=2), dict(tail="pad", batch_size=50),
                                 dict(augment="rrc(32),flip,mixup(0.4)", drop_last=True), dict(take=(0, 0.5)), dict(sampler=[5, 3, 3, 99] * 8)], ids=str)
def test_every_form_of_batches(shapes, how):
    settings = dict(dict(HOW, batch_size=16), **how)
    for (x, y), samples in zip(mt.Loader(shapes, **settings), mt.Loader(shapes, collate_fn=list, **settings)):
        assert len([n for n in y.reshape(len(y), -1)[:, 0].tolist() if n != -100]) == len(samples)
        assert all(torch.equal(a, p) and a.stride() == p.stride() and b.tolist() == (t if isinstance(t, int) else t.tolist())
                   for a, b, (p, t) in zip(x, y, samples))
    for (x, y), (u, v) in zip(mt.Loader(shapes, **settings), mt.Loader(shapes, target_transform=lambda t: t, **settings)):
        counts = y.reshape(len(y), -1)[:, 0] != -100
        assert torch.equal(x[counts], u[counts]) and torch.equal(y, v) and not u[~counts].any()


def test_draws_do_not_depend_on_workers_ranks_or_where_a_run_goes_on(shapes):
    def run(skip=0, **more):
        with mt.Loader(shapes, batch=20, transform=noisy, **HOW, **more) as loader:
            if skip:
                loader.load_state_dict(dict(states[skip]))
            return [flat(b) for b in loader] + [flat(b) for b in loader]
    states = []
    with mt.Loader(shapes, batch=20, transform=noisy, **HOW) as loader:
        for _ in loader:
            states.append(loader.state_dict())
    want = run()
    assert all(torch.equal(a, b) for a, b in zip(want, run(**FORK)))
    assert all(torch.equal(a, b) for a, b in zip(want[3:], run(2, **FORK)))
    shares = [run(rank=r, world=2, **(FORK if r else {})) for r in range(2)]
    assert all(sum(float(t.double().sum()) for t in parts) == pytest.approx(float(w.double().sum()), rel=1e-4) for parts, w in zip(zip(*shares), want))
    with mt.Loader(shapes, batch=20, transform=noisy, **dict(HOW, augment="rrc(32),normalise(imagenet)")) as other, pytest.raises(millrace.StateError):
        other.load_state_dict(states[2])


def test_ranks_that_get_nothing_of_the_last_batch(shapes):
    for rank, sizes in ((0, [25, 0]), (1, [25, 1])):
        with mt.Loader(shapes, batch=50, sampler=range(51), augment="center(32)", rank=rank, world=2, transform=twice, tail="keep") as loader:
            assert [len(y) for _, y in loader] == sizes


def test_a_group_that_comes_up_after_the_loader(shapes, monkeypatch):
    with mt.Loader(shapes, 10, transform=twice, **HOW, **FORK) as loader, mt.Loader(shapes, 10, rank=1, world=2, **HOW) as want:
        assert len(list(loader)) == 12  # workers are there, for one rank
        monkeypatch.setattr(_ranks, "of_group", lambda: (1, 2))
        loader.set_epoch(0)
        pairs = list(zip(loader, want))
        assert len(pairs) == 6 and all(torch.equal(u, 2 * x) and torch.equal(v, y) for (u, v), (x, y) in pairs)


@pytest.mark.parametrize("workers", [{}, FORK], ids=["here", "processes"])
def test_boxes_come_with_their_pictures(tmp_path, workers):
    path = str(tmp_path / "boxes.mrec")
    rng = np.random.default_rng(1)

    def corners(k):
        return np.sort(rng.random((k, 2, 2), dtype="float32"), 1).reshape(k, 4)
    millrace.write_records(path, [dict(image=rng.integers(0, 256, (20, 30, 3), dtype="uint8"), label=k % 3, boxes=corners(k % 4))
                                  for k in range(24)])
    how = dict(augment="resize(16x16),flip", training=True, seed=4, fields=["boxes"])
    for (x, y, f), (pictures, targets, fields) in zip(mt.Loader(path, 8, **how), mt.Loader(path, 8, collate_fn=mt.as_lists, **how, **workers)):
        assert torch.equal(x, torch.stack(pictures)) and y.tolist() == targets
        for k, members in enumerate(fields):
            assert torch.equal(members["boxes"], f["boxes"][k, :f["boxes.length"][k]])


class Drawn:
    """Pictures that differ each time, unless somebody seeds."""
    classes = ["even", "odd"]

    def __len__(self):
        return 40

    def __getitem__(self, k):
        return np.full((9, 9, 3), random.randrange(256), "uint8"), k % 2


def test_pictures_of_a_python_object():
    how = dict(augment="resize(8x8)", training=True, seed=5, transform=twice)
    with mt.Loader(Drawn(), 8, **how) as here, mt.Loader(Drawn(), 8, **how, **FORK) as loader:
        assert loader.classes == ["even", "odd"] and loader.dataset[3][1] == 1
        epochs = [[(x, y) for x, y in loader] for _ in range(2)]
        assert all(torch.equal(x, u) and torch.equal(y, v) for (x, y), (u, v) in zip(here, epochs[0]))
    assert not torch.equal(epochs[0][0][0].sum((1, 2, 3)).sort()[0], epochs[1][0][0].sum((1, 2, 3)).sort()[0])


def test_a_function_of_python_in_the_augmentation(shapes):
    def black(pixels, arguments, draws):
        np.asarray(pixels)[:] = 0
    how = dict(augment="rrc(32),my_black,normalise(none)", training=True, operations={"my_black": black}, collate_fn=lambda s: torch.stack([p for p, _ in s]))
    for more in ({}, FORK):
        with mt.Loader(shapes, 16, **how, **more) as loader:
            assert all(not x.any() and len(x) for x in loader)


@pytest.mark.parametrize("workers", [{}, FORK], ids=["here", "processes"])
def test_damaged_pictures_and_functions_that_fail(shapes, tmp_path, workers):
    copy = tmp_path / "copy"
    shutil.copytree(shapes, copy)
    victim = sorted(copy.glob("*/*"))[5]
    victim.write_bytes(victim.read_bytes()[:300])
    reported = []
    how = dict(augment="center(32)", on_bad=lambda e, other: reported.append((e.sample, other)), **workers)
    with mt.Loader(copy, 16, transform=twice, bad="skip", **how) as loader:
        assert (torch.cat([y for _, y in loader]) == -100).nonzero().flatten().tolist() == [5] and reported == [(5, None)]
    with mt.Loader(copy, 16, collate_fn=len, bad="skip", **how) as loader:
        assert list(loader) == [15] + 6 * [16] + [8]
    with mt.Loader(copy, 16, transform=twice, bad="replace", **how) as a, mt.Loader(copy, 16, augment="center(32)", bad="replace") as b:
        assert all(torch.equal(x, 2 * u) and torch.equal(y, v) for (x, y), (u, v) in zip(a, b)) and reported[-1][0] == 5 and reported[-1][1] is not None
    with pytest.raises(millrace.Error, match=victim.name) as e:
        list(mt.Loader(copy, 16, transform=twice, **how))
    assert e.value.sample == 5

    def fails(picture):
        raise KeyError("mine")
    with pytest.raises(KeyError, match="mine"):
        list(mt.Loader(shapes, 16, transform=fails, augment="center(32)", **workers))
    with pytest.raises(millrace.BadSampleError, match="more than max_bad=3"):
        list(mt.Loader(shapes, 16, transform=fails, augment="center(32)", bad="skip", max_bad=3, collate_fn=len, **workers))


def test_what_does_not_go_together(shapes):
    for wrong, match in ((dict(cache="memory"), "leave out cache="), (dict(tune=True), "leave out tune="), (dict(order="balanced"), "sampler="),
                         (dict(augment="rcr(32)"), "rcr"), (dict(augment="none,flip", raw=True), "collate_fn="),
                         (dict(augment="flip,mixup(1)", tail="pad", batch_size=50, transform=twice), "no value of it means")):
        with pytest.raises(millrace.ArgumentError, match=match):
            list(mt.Loader(shapes, **dict(dict(batch_size=16, transform=twice, augment="center(32)", training=True), **wrong)))
    with pytest.raises(millrace.ArgumentError, match="do all of it in __getitem__"):
        mt.Loader([(torch.zeros(3, 4, 4), 0)], 1, augment="flip", transform=twice)


def test_left_in_the_middle(shapes):
    for _ in range(5):
        loader = mt.Loader(shapes, 8, transform=twice, **HOW, **FORK)
        for _ in zip(range(3), loader):
            pass
        loader.close()
