"""An order of one's own."""
import array
import gc
import json
import pickle
import threading

import millrace
import pytest
from drained import drain

np = pytest.importorskip("numpy")

COUNT = 120  # of the shapes


def ids(batches):
    return sum((b[2] for b in batches), [])


def weighted(epoch, n=70):
    """Repeats samples; another one for every epoch."""
    return np.random.default_rng(epoch).integers(0, COUNT, n)


@pytest.mark.parametrize("numbers", [list(range(30))[::-1], range(3, 120, 7), np.arange(40, dtype=np.int16)[::2], (5,) * 33,
                                     array.array("i", [1, 2, 3]), [np.int64(4), 5], np.arange(COUNT * 2) % COUNT],
                         ids=["list", "range", "strided", "tuple", "array", "scalars", "longer"])
def test_sequences(shapes, settings, numbers):
    """Any sequence, of any length, in every epoch."""
    loader = millrace.Loader(shapes, sampler=numbers, epochs=2, **settings)
    assert loader.sample_count == COUNT and loader.steps_per_epoch == -(-len(numbers) // 16)
    got = drain(loader)
    assert ids(got) == [int(n) for n in numbers] * 2 and len(got) == len(loader)


def test_labels_are_those_of_the_samples(shapes, settings):
    known = {i: label for b in drain(millrace.Loader(shapes, **settings)) for i, label in zip(b[2], b[3])}
    got = drain(millrace.Loader(shapes, sampler=weighted(0), **settings))
    assert all(known[i] == label for b in got for i, label in zip(b[2], b[3]))


@pytest.mark.parametrize("more", [{}, {"workers": 1, "prefetch": 0}, {"prefetch": 1, "hold": 1}, {"prefetch": 40, "hold": 40},
                                  {"tune": True}, {"tail": "drop"}])
def test_a_function_of_the_epoch(shapes, settings, more):
    """Called in this thread, once an epoch and for the first when the loader is made; small epochs are under way several at a time."""
    asked, threads = [], set()

    def sampler(epoch):
        asked.append(epoch)
        threads.add(threading.get_ident())
        return weighted(epoch)
    settings.update(more)
    got = drain(millrace.Loader(shapes, sampler=sampler, epochs=9, **settings))
    kept = 64 if more.get("tail") else 70
    assert ids(got) == sum((weighted(e)[:kept].tolist() for e in range(9)), [])
    assert asked == [0] + list(range(9)) and threads == {threading.get_ident()}


def test_same_bits_for_any_threads(shapes, settings):
    """A sample that comes again has draws of its own, which no thread changes."""
    settings["augment"] = "rrc(32),flip,erase(1,value=random)"
    numbers = [7] * 20 + [9] * 5
    want = drain(millrace.Loader(shapes, sampler=numbers, epochs=2, **settings))
    size = 32 * 32 * 3
    pictures = [b[4][k * size:(k + 1) * size] for b in want for k in range(len(b[2]))]
    assert len(pictures) == 50 == len(set(pictures))
    for more in ({"workers": 1}, {"prefetch": 0}, {"cache": "memory"}):
        assert drain(millrace.Loader(shapes, sampler=numbers, epochs=2, **dict(settings, **more))) == want
    assert drain(millrace.Loader(shapes, sampler=lambda e: numbers, epochs=2, **settings)) == want


@pytest.mark.parametrize("stop", [0, 2, 5, 8, 13])
def test_state(shapes, settings, stop):
    """Stopped and resumed anywhere it is the identical stream."""
    def make():
        return millrace.Loader(shapes, sampler=weighted, epochs=3, **settings)
    want, first = drain(make()), make()
    assert (drain(first, stop) if stop else []) == want[:stop]
    state = first.state_dict()
    assert len(json.dumps(state)) <= 200
    second = make()
    second.load_state_dict(json.loads(json.dumps(state)))
    assert drain(second) == want[stop:]
    assert drain(first) == want[stop:] and drain(first) == want  # and goes on itself


def test_ranks_take_parts_of_one_order(shapes, settings):
    want = drain(millrace.Loader(shapes, sampler=weighted, epochs=2, **settings))
    ranks = [millrace.Loader(shapes, sampler=weighted, epochs=2, rank=r, world=3, **settings) for r in range(3)]
    got = []
    for parts in zip(*map(drain, ranks)):
        got.append((parts[0][0], parts[0][1], sum((p[2] for p in parts), []), sum((p[3] for p in parts), []),
                    b"".join(p[4] for p in parts)))
    assert got == want


def test_states_of_other_samplers(shapes, settings):
    """What can be known is refused: another sampler in epoch 0, one against none, in both directions."""
    state = millrace.Loader(shapes, sampler=weighted, **settings).state_dict()
    millrace.Loader(shapes, sampler=weighted(0), **settings).load_state_dict(state)
    for other in ({}, {"sampler": lambda e: weighted(e + 1)}, {"sampler": range(70)}, {"sampler": lambda e: weighted(e, 71)}):
        loader = millrace.Loader(shapes, **dict(settings, **other))
        with pytest.raises(millrace.StateError, match="order"):
            loader.load_state_dict(state)
        with pytest.raises(millrace.StateError, match="order"):
            millrace.Loader(shapes, sampler=weighted, **settings).load_state_dict(loader.state_dict())


@pytest.mark.parametrize("wrong, text", [
    ([0, 1, 120], "sample 120 at position 2: the data have 120, numbered from 0"), ([0, -1], "sample -1 at position 1"),
    (np.array([3, 400, 500]), "sample 400 at position 1"), (np.array([3, -4]), "sample -4 at position 1"),
    ([0, 2**70], "at position 1"), ([0, 1.5], "1.5 at position 1"), ([0, None], "None at position 1"), (np.zeros(2), "float64"),
    (np.zeros((2, 2), int), "one dimension"), ([], "no samples"), (np.zeros(0, int), "no samples"), ("abc", "found str"),
    (iter([1]), "set_epoch"), ({0: 1}, "found dict"), (3, "found int"), (lambda e: 3, "epoch 0: found int"),
    (lambda e: [121], "epoch 0: sample 121 at position 0")])
def test_samplers_that_cannot_be(shapes, settings, wrong, text):
    with pytest.raises(millrace.ArgumentError, match=text):
        millrace.Loader(shapes, sampler=wrong, **settings)


def test_settings_that_do_not_go_with_it(shapes, settings):
    for more in ({"order": "balanced"}, {"order": "sequential"}, {"length_window": 4}):
        with pytest.raises(millrace.ArgumentError, match="leave out"):
            millrace.Loader(shapes, sampler=[1], **dict(settings, **more))


def test_wrong_in_a_later_epoch(shapes, settings):
    """The error comes from next(), and names epoch, position, sample and count; the loader can be closed."""
    for later, text in (([0] * 69 + [999], "epoch 2: sample 999 at position 69: the data have 120"),
                        ([0] * 71, "epoch 2: 71 samples, and epoch 0 had 70"), (None, "epoch 2: found NoneType")):
        loader = millrace.Loader(shapes, sampler=lambda e: weighted(e) if e < 2 else later, epochs=4, **settings)
        with pytest.raises(millrace.ArgumentError, match=text):
            drain(loader)
        loader.close()

    def fails(epoch):
        if epoch == 1:
            raise KeyError("mine")
        return weighted(epoch)
    loader = millrace.Loader(shapes, sampler=fails, epochs=2, **settings)
    with pytest.raises(KeyError, match="mine"):
        drain(loader)


def test_closed_while_an_order_is_awaited(shapes, settings):
    """The library's threads wait for epochs that Python has not given: closing ends that, at any moment."""
    for take in range(1, 12):
        loader = millrace.Loader(shapes, sampler=lambda e: [e, 5, 7], epochs=None, **dict(settings, batch=2, prefetch=30))
        drain(loader, take)
        if take % 2:
            loader.close()
        del loader
    gc.collect()


def test_digest(shapes, settings):
    """The same for a function and for its results, over many epochs; an exception from it ends the call."""
    numbers = weighted(0, 20).tolist()
    settings.update(batch=4, epochs=30)
    want = millrace.digest(shapes, sampler=numbers, **settings)
    for more in ({}, {"prefetch": 0}, {"prefetch": 60}):
        asked = []
        assert millrace.digest(shapes, sampler=lambda e: asked.append(e) or numbers, **dict(settings, **more)) == want
        assert asked == [0] + list(range(30))

    def fails(epoch):
        if epoch == 5:
            raise KeyError("mine")
        return numbers
    with pytest.raises(KeyError, match="mine"):
        millrace.digest(shapes, sampler=fails, **settings)


def test_the_sequence_is_copied(shapes, settings):
    numbers = np.arange(64, dtype=np.uint64)
    loader = millrace.Loader(shapes, sampler=numbers, **settings)
    numbers[:] = 10**9
    assert ids(drain(loader)) == list(range(64))


def test_pickled(shapes, settings):
    loader = millrace.Loader(shapes, sampler=weighted, epochs=2, **settings)
    assert drain(pickle.loads(pickle.dumps(loader))) == drain(loader)


def test_of_a_part_of_the_samples(shapes, settings):
    """Numbers count the taken samples."""
    loader = millrace.Loader(shapes, take=0.5, sampler=range(60), **settings)
    assert loader.sample_count == 60 and ids(drain(loader)) == list(range(60))
    with pytest.raises(millrace.ArgumentError, match="the data have 60"):
        millrace.Loader(shapes, take=0.5, sampler=[60], **settings)


def test_seeking_without_threads_asks_for_each_order_once(shapes, settings):
    """prefetch=0, as in worker processes, which take every n-th batch: the run stays, and so does the order that it has."""
    asked = []

    def order(epoch):
        asked.append(epoch)
        return weighted(epoch)

    settings = dict(settings, prefetch=0, epochs=4)
    loader = millrace.Loader(shapes, sampler=weighted, **settings)
    wanted = {(b.epoch, b.step): (b.ids.tolist(), np.asarray(b.images).tobytes()) for b in loader}
    loader = millrace.Loader(shapes, sampler=order, **settings)
    del asked[:]
    for place in [(0, 0), (0, 2), (0, 4), (0, 1), (2, 3), (2, 0), (3, 4)]:
        loader.seek(*place)
        b = next(iter(loader))
        assert (b.epoch, b.step) == place and (b.ids.tolist(), np.asarray(b.images).tobytes()) == wanted[place]
    assert asked == [0, 2, 3]
    loader.seek(1, 1)  # backwards to an order that was given and dropped
    b = next(iter(loader))
    assert (b.ids.tolist(), np.asarray(b.images).tobytes()) == wanted[1, 1] and asked == [0, 2, 3, 1]
