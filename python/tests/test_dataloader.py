"""millrace.torch.Loader as code that was written for DataLoader reads it: arguments, attributes, iterations within iterations."""
import gc
import itertools
import os
import pickle

import millrace
import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")
import millrace.torch  # noqa: E402
from millrace import _arguments  # noqa: E402
from torch.utils.data import (BatchSampler, DataLoader, DistributedSampler, RandomSampler, SequentialSampler, SubsetRandomSampler,  # noqa: E402
                              WeightedRandomSampler)

AUGMENT = "rrc(32),flip,normalise(imagenet)"


def loader(data, batch_size=16, **more):
    return millrace.torch.Loader(data, batch_size, **dict(dict(augment=AUGMENT, training=True, seed=3, workers=2), **more))


def ids(batches):
    return [b.ids.tolist() for b in batches]


def epochs(data, count=4, **more):
    """Sample numbers of each batch of each epoch, by the plain loader."""
    plain = millrace.Loader(data, **dict(dict(batch=16, augment=AUGMENT, training=True, seed=3, epochs=count, rank=0, world=1), **more))
    return [ids(batches) for _, batches in plain.by_epoch()]


# ---------------------------------------------------------------------- iterations

def test_an_iteration_within_an_iteration_takes_nothing_from_it(shapes):
    """As callbacks do that log a batch: next(iter(loader)) in the loop over the loader."""
    want, l = epochs(shapes), loader(shapes, raw=True)
    got = []
    for k, batch in enumerate(l):
        got.append(batch.ids.tolist())
        if k % 3 == 0:
            assert next(iter(l)).ids.tolist() == want[1 + k // 3][0]
    assert got == want[0]


def test_two_iterations_at_once_are_two_epochs(shapes):
    want = epochs(shapes)
    l = loader(shapes, raw=True)
    got = [(a.ids.tolist(), b.ids.tolist()) for a, b in zip(l, l)]
    assert got == list(zip(want[0], want[1]))
    assert ids(l) == want[2]


def test_iterations_that_end_give_their_threads_back(shapes):
    l = loader(shapes, raw=True, hold=16)
    outer = iter(l)
    next(outer)
    for _ in range(5):
        next(iter(l))
    gc.collect()
    assert len(l._streams()) == 1 and len(l._source._running) == 1
    inner = iter(l)
    next(inner)
    assert len(l._source._running) == 2
    del inner, outer
    gc.collect()
    assert len(l._streams()) == 1 and len(l._under_way()) == 0


def test_the_state_is_that_of_the_iteration_that_is_under_way(shapes):
    """A batch that was looked at in between changes neither the position nor the batches of a resumed run."""
    l = loader(shapes, raw=True)
    got = []
    for k, batch in enumerate(l):
        got.append(batch.ids.tolist())
        if k == 2:
            next(iter(l))
            state = pickle.loads(pickle.dumps(l.state_dict()))
    assert (state["epoch"], state["step"]) == (0, 3)
    rest = ids(l)  # the epoch that follows
    again = loader(shapes, raw=True)
    again.load_state_dict(state)
    assert ids(again) == got[3:] and ids(again) == rest


def test_an_iteration_of_which_nothing_was_taken_did_not_begin(shapes):
    want, l = epochs(shapes), loader(shapes, raw=True)
    iter(l)
    assert ids(l) == want[0]
    state = l.state_dict()
    l.load_state_dict(dict(state, epoch=1, step=5))
    iter(l)
    assert ids(l) == want[1][5:]


def test_by_epoch(shapes):
    want, l = epochs(shapes), loader(shapes, raw=True)
    got = []
    for epoch, batches in itertools.islice(l.by_epoch(), 3):
        got.append([b.ids.tolist() for b in itertools.islice(batches, 2)])
    assert got == [w[:2] for w in want[:3]] and len(l._streams()) == 1


# ---------------------------------------------------------------------- attributes of a loader

def test_attributes(shapes):
    l = loader(shapes, rank=1, world=4, drop_last=True)
    assert len(l.sampler) == 30 and len(l.batch_sampler) == len(l) == 1 and l.batch_sampler.batch_size == l.batch_size == 16
    assert l.drop_last and l.batch_sampler.drop_last and not loader(shapes).drop_last
    assert (l.num_workers, l.pin_memory, l.timeout, l.persistent_workers, l.prefetch_factor, l.multiprocessing_context) == (
        0, False, 0, False, None, None)
    assert l.worker_init_fn is None and l.generator is None and l.collate_fn([3]) == 3
    d = l.dataset
    assert len(d) == 120 and d.class_to_idx == {name: k for k, name in enumerate(d.classes)}
    assert d.targets == [k for k in range(10) for _ in range(12)]
    assert isinstance(d, torch.utils.data.Dataset) and isinstance(l.sampler, torch.utils.data.Sampler)
    l.worker_init_fn = print  # as Lightning's seed_everything(workers=True) sets it


def test_attributes_of_samplers_and_data_sets(shapes):
    """As code reads them that was written for DistributedSampler, RandomSampler and ImageFolder."""
    l = loader(shapes, rank=1, world=4, drop_last=True)
    s, d = l.sampler, l.dataset
    assert (s.num_replicas, s.rank, s.shuffle, s.drop_last, s.num_samples, s.generator) == (4, 1, True, True, 30, None)
    assert len(s.data_source) == 120 and not loader(shapes, training=False).sampler.shuffle
    assert len(d.samples) == 120 and d.samples == d.imgs and [c for _, c in d.samples] == d.targets
    assert os.path.basename(d.samples[13][0]).endswith(".jpg") and d.transform is None


@pytest.mark.parametrize("name", ["dataset", "sampler", "batch_sampler", "batch_size", "drop_last"])
def test_what_a_loader_was_made_with_stays(shapes, name):
    with pytest.raises(AttributeError, match="make another"):
        setattr(loader(shapes), name, 3)


def test_what_a_data_set_does_not_have_is_told(shapes):
    d = loader(shapes).dataset
    with pytest.raises(AttributeError, match="no 'data'.*targets"):
        d.data
    with pytest.raises(AttributeError, match="augment="):
        d.transform = abs
    assert not hasattr(d, "indices")


@pytest.mark.parametrize("world", [1, 2, 3, 7])
def test_samplers_of_all_ranks_cover_the_data(shapes, world):
    """PyTorch's ImageNet example validates the samples they leave with a DataLoader of loader.dataset: none may be left."""
    ranks = [loader(shapes, rank=rank, world=world, training=False) for rank in range(world)]
    assert len(ranks[0].sampler) * world >= len(ranks[0].dataset)
    assert max(sum(len(y) for _, y in l) for l in ranks) <= len(ranks[0].sampler)


def test_a_subset_of_its_data_set_is_told(shapes):
    with pytest.raises(TypeError, match="take=.*sampler="):
        torch.utils.data.Subset(loader(shapes).dataset, [3, 4])[0]


def test_samplers_are_of_the_classes_that_others_require(shapes):
    """Ignite's handlers refuse a sampler of several ranks that is no DistributedSampler; loops ask for the class before set_epoch()."""
    alone, l = loader(shapes), loader(shapes, rank=1, world=2)
    assert not isinstance(alone.sampler, DistributedSampler) and isinstance(alone.batch_sampler, BatchSampler)
    for s in (l.sampler, l.batch_sampler.sampler):
        assert isinstance(s, DistributedSampler) and (s.rank, s.num_replicas, s.seed, s.shuffle) == (1, 2, 3, True)
        assert s.total_size == 2 * len(s) and len(s.dataset) == 120
    l.sampler.set_epoch(3)
    assert l.sampler.epoch == 3 and next(iter(l)) and l.sampler.epoch == 4


class Skipping:
    """accelerate.data_loader.SkipBatchSampler, as its caller needs it."""

    def __init__(self, batch_sampler, skipped):
        self.batch_sampler, self.skipped = batch_sampler, skipped

    def __iter__(self):
        return itertools.islice(self.batch_sampler, self.skipped, None)

    def __len__(self):
        return len(self.batch_sampler) - self.skipped


def test_batches_are_left_out_as_by_accelerate(shapes):
    """A DataLoader of data set, batch sampler and collate_fn gives the loader's batches, left-out samples are not made; and
    Hugging Face's Trainer says the epoch to the batch sampler that is wrapped."""
    want = epochs(shapes)
    l = loader(shapes, raw=True)
    around = DataLoader(l.dataset, batch_sampler=Skipping(l.batch_sampler, 5), num_workers=l.num_workers, collate_fn=l.collate_fn)
    assert len(around) == 3 and ids(around) == want[0][5:] and l.stats()["batches"] < 8
    around.batch_sampler.batch_sampler.set_epoch(2)
    assert ids(around) == want[2][5:]
    images, target = next(iter(DataLoader(loader(shapes).dataset, batch_sampler=loader(shapes).batch_sampler,
                                          collate_fn=millrace.torch.Loader.collate_fn)))
    assert images.shape == (16, 3, 32, 32) and target.dtype == torch.int64


def test_a_loader_as_lightning_reads_those_for_validation(shapes):
    l = loader(shapes, training=False)
    sampler = l.batch_sampler.sampler if l.batch_sampler is not None else l.sampler  # _is_dataloader_shuffled()
    assert not isinstance(sampler, RandomSampler) and hasattr(sampler, "set_epoch")


# ---------------------------------------------------------------------- arguments

@pytest.mark.parametrize("theirs,ours", [
    (dict(shuffle=True), dict(order="shuffle")), (dict(shuffle=False), dict(order="sequential")), (dict(shuffle=None), {}),
    (dict(num_workers=3), dict(workers=3)), (dict(num_workers=0), dict(workers=0)), (dict(prefetch_factor=2), dict(prefetch=2)),
    (dict(prefetch_factor=None), {}), (dict(drop_last=True), dict(tail="drop")), (dict(collate_fn=None), {}),
    (dict(generator=torch.Generator().manual_seed(9)), dict(seed=9)), (dict(pin_memory=True, persistent_workers=True, timeout=30), {}),
    (dict(worker_init_fn=print, multiprocessing_context="fork", pin_memory_device="cuda", in_order=False), {}),
    (dict(sampler=SequentialSampler(range(120))), dict(order="sequential")), (dict(sampler=RandomSampler(range(120))), dict(order="shuffle")),
    (dict(sampler=DistributedSampler(range(120), 2, 1, seed=7)), dict(order="shuffle", seed=7, rank=1, world=2)),
    (dict(sampler=DistributedSampler(range(120), 2, 0, shuffle=False, drop_last=True)), dict(order="sequential", tail="drop", rank=0, world=2)),
    (dict(batch_size=None, batch_sampler=BatchSampler(SequentialSampler(range(120)), 16, True)), dict(order="sequential", tail="drop")),
    (dict(memory_format=torch.channels_last), dict(memory_format="channels_last"))])
def test_names_of_data_loader(shapes, theirs, ours):
    a, b = (millrace.torch.Loader(shapes, **dict(dict(batch_size=16, augment=AUGMENT, training=True, raw=True), **more))
            for more in (theirs, ours))
    assert ids(a) == ids(b) and a._cfg.workers == b._cfg.workers and a._cfg.prefetch == b._cfg.prefetch


def test_what_changes_nothing_is_told_once(shapes, caplog, monkeypatch):
    monkeypatch.setattr(_arguments, "_told", set())
    for _ in range(2):
        loader(shapes, persistent_workers=True, worker_init_fn=print, pin_memory=False, timeout=0)
    assert [r.getMessage().split("=")[0] for r in caplog.records] == ["persistent_workers", "worker_init_fn"]


@pytest.mark.parametrize("wrong,way", [
    (dict(transform=abs, cache="memory"), "leave out cache="), (dict(shuffle=True, order="block"), "one of them"),
    (dict(shuffle=True, sampler=[1, 2]), "leave out shuffle="), (dict(batch_sampler=[[1, 2]]), "sampler="),
    (dict(batch_sampler=BatchSampler(SequentialSampler(range(9)), 3, False)), "batch_size="), (dict(prefetch_factor=2, prefetch=3), "one of them"),
    (dict(num_workers=2, workers=2), "one of them"), (dict(generator=7), "seed="), (dict(sampler=7), "sampler"), (dict(keys="image"), "two names"),
    (dict(memory_format="nchw"), "channels_last"), (dict(batch_size=0), "batch_size=0"), (dict(batch_size="3"), "batch_size='3'"),
    (dict(batch_size=None, batch_sampler=[[1, 2], [3], [4, 5]]), "batch 1 of list has 1 samples, and batch 0 has 2"),
    (dict(batch_size=None, batch_sampler=[[1, 2], [3, 4, 5]]), "batch 1 of list has 3 samples, and batch 0 has 2"),
    (dict(batch_size=None, batch_sampler=[]), "found no batch"), (dict(batch_size=None, batch_sampler=[3]), "found 3, expected lists"),
    (dict(sampler=RandomSampler(range(50))), "of 50 samples, and the data have 120"),
    (dict(sampler=DistributedSampler(range(50), 2, 0)), "of 50 samples, and the data have 120"),
    (dict(sampler=DistributedSampler(range(120), 2, 0), rank=1, world=2), "rank=1 and sampler="),
    (dict(num_workers=-1), "num_workers=-1"), (dict(num_workers="2"), "num_workers='2'"), (dict(dataset=[1]), "first argument and dataset=")])
def test_what_is_refused_says_the_way(shapes, wrong, way):
    with pytest.raises(millrace.ArgumentError, match=way):
        millrace.torch.Loader(shapes, **dict(dict(batch_size=16, augment=AUGMENT, training=True), **wrong))


def test_a_seed_of_pytorch_is_told(shapes, caplog, monkeypatch):
    def told(**how):
        monkeypatch.setattr(_arguments, "_told", set())
        caplog.clear()
        millrace.torch.Loader(shapes, 16, **dict(dict(augment=AUGMENT), **how))
        return [r.getMessage() for r in caplog.records if "manual_seed" in r.getMessage()]
    with torch.random.fork_rng(devices=[]):
        assert not told(training=True)
        torch.manual_seed(7)
        assert ["seed=7, or seed=0" in m for m in told(training=True) + told(shuffle=True) + told(sampler=RandomSampler(range(120)))] == [True] * 3
        assert not told(training=True, seed=0) and not told(shuffle=True, generator=torch.Generator()) and not told()


def test_dataloaders_way_to_give_the_data(shapes):
    a, b = (millrace.torch.Loader(batch_size=16, augment=AUGMENT, **{name: shapes}) for name in ("path", "dataset"))
    assert all(torch.equal(x[0], y[0]) for x, y in zip(a, b)) and len(pickle.loads(pickle.dumps(b))) == len(a)
    with pytest.raises(millrace.ArgumentError, match="by name: sampler=None, batch_sampler=None, num_workers=2, collate_fn=..., pin_memory=True"):
        millrace.torch.Loader(shapes, 16, True, None, None, 2, list, True)
    with pytest.raises(millrace.ArgumentError, match="no data: give"):
        millrace.torch.Loader(batch_size=16)


def test_a_name_that_is_none(shapes):
    with pytest.raises(TypeError, match="'agument': did you mean 'augment'"):
        millrace.torch.Loader(shapes, 16, agument="rrc224")


class Backwards(torch.utils.data.Sampler):
    def __len__(self):
        return 40

    def __iter__(self):
        return iter(range(39, -1, -1))


class Restless(Backwards):
    def __iter__(self):
        return iter(np.random.default_rng().permutation(40))


@pytest.mark.parametrize("make", [
    lambda: WeightedRandomSampler(torch.linspace(1, 5, 120), 50), lambda: SubsetRandomSampler(range(20, 60)), Backwards,
    lambda: RandomSampler(range(120), replacement=True, num_samples=70), lambda: torch.arange(40).flip(0), lambda: range(7, 47),
    lambda: WeightedRandomSampler(torch.linspace(1, 5, 120), 50, generator=torch.Generator())], ids=str)
def test_samplers_of_pytorch(shapes, make):
    """As they are: each epoch has an order of its own, the same again in another run, and torch's generator stays as it was."""
    before = torch.random.get_rng_state()
    a, b = (loader(shapes, 10, raw=True, sampler=make()) for _ in range(2))
    first, second = [sum(ids(a), []) for _ in range(2)]
    assert (torch.random.get_rng_state() == before).all()
    b.set_epoch(1)
    assert sum(ids(b), []) == second and len(first) == len(list(make()))
    assert (first == second) == isinstance(make(), (Backwards, torch.Tensor, range))


def test_a_sampler_that_cannot_be_asked_again(shapes):
    with pytest.raises(millrace.ArgumentError, match="function of the epoch"):
        loader(shapes, sampler=Restless())


class OneRank(Backwards):
    """A share of the samples, as samplers of other projects give it."""

    def __init__(self, sampler=None):
        self._world_size, self._rank, self.sampler = 4, 1, sampler


class Endless(Backwards):
    def __iter__(self):
        return itertools.cycle(range(40))


def test_samplers_that_are_not_of_one_whole_epoch(shapes, monkeypatch):
    """Ranks would share one rank's share; and an endless sampler would fill the memory."""
    for sampler in (OneRank(), BatchSampler(OneRank(), 4, False)):
        with pytest.raises(millrace.ArgumentError, match="OneRank gives one rank's share"):
            loader(shapes, None, batch_sampler=sampler) if isinstance(sampler, BatchSampler) else loader(shapes, sampler=sampler)
    monkeypatch.setattr(_arguments, "_MOST", 1000)
    with pytest.raises(millrace.ArgumentError, match="Endless gives more than 1000 samples"):
        loader(shapes, sampler=Endless())
    assert len(ids(loader(shapes, raw=True, sampler=range(100)))) == 7


def test_a_distributed_sampler_says_the_share(shapes, monkeypatch):
    """Also where the group is another one: several processes that train one replica get the same samples."""
    def share(rank):
        return ids(loader(shapes, 10, raw=True, sampler=DistributedSampler(range(120), 2, rank, seed=3)))
    whole = ids(loader(shapes, 20, raw=True))
    assert [a + b for a, b in zip(share(0), share(1))] == whole
    made = loader(shapes, 10, raw=True, sampler=DistributedSampler(range(120), 2, 1, seed=3))
    monkeypatch.setattr(millrace._ranks, "of_group", lambda: (3, 4))
    assert ids(made) == share(1) and made.world == 2 and made.rank == 1


class OfOneClass(BatchSampler):
    """Batches of six, of one class each, in an order of their own in each epoch."""

    def __iter__(self):
        classes = torch.randperm(10).tolist()
        return iter([[12 * c + 6 * half + k for k in range(6)] for c in classes for half in range(2)])


class Grouped:
    """The same without PyTorch's class."""

    def __init__(self):
        self._batches = OfOneClass(range(120), 6, False)

    def __iter__(self):
        return iter(self._batches)


@pytest.mark.parametrize("world", [1, 2])
@pytest.mark.parametrize("make", [lambda: OfOneClass(range(120), 6, False), Grouped], ids=["subclass", "other"])
def test_batches_of_a_batch_sampler(shapes, make, world):
    """The batch sampler, not its sampler, decides the samples of a batch."""
    ranks = [loader(shapes, None, raw=True, batch_sampler=make(), rank=r, world=world) for r in range(world)]
    firsts = set()
    for _ in range(3):
        got = [[b.ids.tolist() for b in batches] for batches in ranks]
        assert all(len(batch) == 6 and len({k // 12 for k in batch}) == 1 for batches in got for batch in batches)
        assert sorted(sum(sum(got, []), [])) == list(range(120))
        firsts.add(tuple(got[0][0]))
    assert len(firsts) > 1
    assert loader(shapes, None, batch_sampler=[[3, 4], [5, 60], [8]]).batch_size == 2
    assert ids(loader(shapes, None, raw=True, batch_sampler=[[3, 4], [5, 60], [8]])) == [[3, 4], [5, 60], [8]]


class Easy(torch.utils.data.Sampler):
    """The first samples; the program says how many count."""

    def __init__(self):
        self.most = 10

    def __len__(self):
        return 120

    def __iter__(self):
        return iter((torch.randperm(120) % self.most).tolist())


def halved(picture):
    return picture / 2


@pytest.mark.parametrize("more", [dict(), dict(prefetch=0), dict(prefetch=30, batch_size=60), dict(transform=halved, num_workers=0),
                                  dict(transform=halved, num_workers=2, multiprocessing_context="fork")], ids=str)
def test_a_sampler_that_the_program_changes_between_epochs(shapes, more):
    """Batches made ahead are not of the order of before: the sampler's state at the beginning of an epoch counts."""
    easy, weighted = Easy(), WeightedRandomSampler(torch.ones(120), 40)
    a = millrace.torch.Loader(shapes, **dict(dict(batch_size=16, augment=AUGMENT, sampler=easy), **more))
    b = millrace.torch.Loader(shapes, **dict(dict(batch_size=16, augment=AUGMENT, sampler=weighted), **more))
    for epoch in range(4):
        easy.most = 12 * (2 * epoch + 1)
        weighted.weights.copy_(torch.arange(120) // 12 == epoch)  # in place: no attribute changes
        assert set(torch.cat([y for _, y in a]).tolist()) == set(range(2 * epoch + 1))
        assert set(torch.cat([y for _, y in b]).tolist()) == {epoch}


def test_a_sampler_that_does_not_change_costs_no_batch(shapes):
    """Batches made ahead of the epoch are delivered."""
    l = loader(shapes, raw=True, sampler=Backwards())
    ids(l)
    running = l._stream.running
    ids(l)
    assert l._stream.running is running is not None


def test_a_data_set_that_can_only_be_iterated(shapes):
    class Streamed(torch.utils.data.IterableDataset):
        def __len__(self):
            return 3

        def __iter__(self):
            return iter([1, 2, 3])
    for data in (Streamed(), torch.utils.data.ChainDataset([Streamed()])):
        with pytest.raises(millrace.ArgumentError, match="cache_records.. takes any iterable"):
            millrace.torch.Loader(data, 2)


# ---------------------------------------------------------------------- evaluation, targets, fields

def test_evaluation_is_in_the_order_of_the_data(shapes):
    for make in (lambda **how: millrace.Loader(shapes, batch=16, augment="center(32)", **how), lambda **how: loader(
            shapes, augment="center(32)", raw=True, **dict(dict(training=False), **how))):
        assert sum(ids(make()), []) == list(range(120))
        assert sum(ids(make(order="shuffle")), []) != list(range(120))
        assert sum(ids(make(training=True)), []) != list(range(120))


def test_targets_that_do_not_count_are_left_out_by_losses(shapes):
    """Padding, and samples that are damaged."""
    batches = list(loader(shapes, 9, tail="pad", training=False))
    last = batches[-1][1]
    assert last.tolist()[3:] == [-100] * 6 and (last[:3] >= 0).all()
    assert torch.nn.functional.cross_entropy(torch.zeros(9, 10), last) == pytest.approx(np.log(10))
    assert list(loader(shapes, 9, tail="pad", ignore_index=255))[-1][1].tolist()[3:] == [255] * 6
    assert [b.labels.tolist()[3:] for b in loader(shapes, 9, tail="pad", raw=True)][-1] == [-1] * 6


def test_numbers_of_torchvision_are_told(shapes):
    """Means and deviations of pixels from 0 to 1; the error has the operation that takes them."""
    with pytest.raises(millrace.ArgumentError, match=r"write normalise01\((.*)\)") as e:
        loader(shapes, augment="rrc(32),normalise(0.4914:0.4822:0.4465/0.2023:0.1994:0.2010)")
    images, _ = next(iter(loader(shapes, augment="rrc(32)," + str(e.value).split("write ")[1])))
    assert abs(images).max() < 4
    loader(shapes, augment="rrc(32),normalise(none)"), loader(shapes, augment="rrc(32),standardise")


class Made:
    classes = ["even", "odd"]

    def __init__(self, make):
        self.make = make

    def __len__(self):
        return 20

    def __getitem__(self, k):
        return self.make(k), k % 2


@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy], ids=["numpy", "torch"])
def test_a_data_set_of_planes(kind):
    """(channels, height, width), as torch has pictures."""
    rng = np.random.default_rng(1)
    pixels = rng.integers(0, 256, (20, 3, 8, 9), dtype="uint8")
    l = millrace.torch.Loader(Made(lambda k: kind(pixels[k])), 20, uint8=True)
    assert (next(iter(l))[0].numpy() == pixels).all() and l.dataset.classes == ["even", "odd"]


def test_a_data_set_of_pil_pictures_of_several_sizes():
    pil = pytest.importorskip("PIL.Image")
    of = Made(lambda k: pil.new("RGB", (9 + k, 8), (k, 2 * k, 3 * k)))
    images, _ = next(iter(millrace.torch.Loader(of, 20, uint8=True, augment="resize(8x8)")))
    assert images.shape == (20, 3, 8, 8) and images[:, :, 3, 3].tolist() == [[k, 2 * k, 3 * k] for k in range(20)]
    assert next(iter(millrace.torch.Loader(Made(lambda k: pil.new("RGB", (9, 8))), 4)))[0].shape == (4, 3, 8, 9)


@pytest.fixture
def scored(tmp_path):
    path = str(tmp_path / "scored.mrec")
    millrace.write_records(path, (dict(image=np.full((8, 8, 3), k, "uint8"), label=k % 3, score=k / 100, tokens=np.arange(k % 4 + 1, dtype="int32"))
                                  for k in range(20)))
    return path


def test_fields_are_delivered(scored):
    images, target, fields = next(iter(millrace.torch.Loader(scored, 4, fields=["score", "tokens"])))
    assert torch.allclose(fields["score"].flatten().float(), torch.arange(4) / 100) and fields["tokens.length"].tolist() == [1, 2, 3, 4]
    assert fields["tokens"].shape == (4, 4) and sorted(fields) == ["score", "tokens", "tokens.length"]


def test_texts_and_bytes_are_lists(tmp_path):
    captions, blobs = ["", "a dog", "ein Bär", "x" * 4096], [b"", b"\0", b"\xff\0\xff", b"abc"]
    path = str(tmp_path / "captions.mrec")
    millrace.write_records(path, ({"image": np.full((8, 8, 3), k, "uint8"), "label": 0, "caption": captions[k % 4], "blob": blobs[k % 4]}
                                  for k in range(10)))
    asked, want = ["caption", "blob"], {"caption": captions, "blob": blobs}
    for batch in millrace.Loader(path, batch=4, fields=asked):
        assert batch.fields == {n: want[n][:batch.count] for n in asked} and batch.lengths == {}
    assert batch.count == 2
    assert next(iter(millrace.torch.Loader(path, 4, fields=asked)))[2] == want
    _, _, fields = next(iter(millrace.torch.Loader(path, 4, augment="resize(4x4)", fields=asked, transform=lambda x: x + 1)))
    assert fields == want
    with pytest.raises(millrace.BadSampleError, match="field caption: expected at most 100 bytes, found 4096: raise the field's most"):
        list(millrace.Loader(path, batch=4, fields=[{"name": "caption", "most": 100}]))


def test_a_label_that_is_a_fraction(tmp_path):
    path = str(tmp_path / "ages.mrec")
    millrace.write_records(path, [dict(image=np.zeros((4, 4, 3), "uint8"), label=k / 4) for k in range(4)])
    with pytest.raises(millrace.ArgumentError, match="field 'label' holds fractions.*fields="):
        millrace.torch.Loader(path, 4)
    assert next(iter(millrace.torch.Loader(path, 4, fields=["label"])))[2]["label"].flatten().tolist() == [0, 0.25, 0.5, 0.75]


def test_batches_as_dicts(scored):
    batch = next(iter(millrace.torch.Loader(scored, 4, fields=["score"], keys=("pixel_values", "labels"))))
    assert sorted(batch) == ["labels", "pixel_values", "score"] and batch["labels"].tolist() == [0, 1, 2, 0]
    assert sorted(next(iter(millrace.torch.Loader(scored, 4, keys=["x", "y"])))) == ["x", "y"]
