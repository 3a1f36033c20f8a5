"""Samples that a Python object gives while they are loaded."""
import gc
import json
import os
import pickle
import threading

import millrace
import pytest
from drained import drain

np = pytest.importorskip("numpy")


class Photos:
    """The files of a folder data set, as a PyTorch data set would give them."""

    def __init__(self, folder):
        self.kinds = sorted(os.listdir(folder))
        self.paths = [(os.path.join(folder, kind, name), k) for k, kind in enumerate(self.kinds)
                      for name in sorted(os.listdir(os.path.join(folder, kind)))]
        self.asked, self.threads = [], set()

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, k):
        self.asked.append(k)
        self.threads.add(threading.get_ident())
        with open(self.paths[k][0], "rb") as f:
            return f.read(), self.paths[k][1]


@pytest.mark.parametrize("more", [{}, {"workers": 1}, {"workers": 5}, {"prefetch": 0}, {"hold": 1, "prefetch": 1}, {"order": "sequential"}])
def test_the_same_as_the_files(shapes, settings, more):
    """Batches equal the folder's, to the bit; the object is asked in one thread, which is not ours."""
    settings.update(more)
    photos = Photos(shapes)
    want = drain(millrace.Loader(shapes, epochs=2, **settings))
    loader = millrace.Loader(photos, epochs=2, **settings)
    assert loader.sample_count == 120 and drain(loader) == want
    assert len(photos.threads) == 1 and photos.threads != {threading.get_ident()}
    order = sum((w[2] for w in want), [])
    asked = photos.asked[-len(order):]
    assert sorted(asked) == sorted(order)
    if settings["workers"] == 1 or settings.get("prefetch") == 0:
        assert asked == order
    else:  # none before the batches that are under way then
        under_way = 16 * (settings.get("prefetch", 4) + 1 + settings.get("hold", 4))
        assert all(n in order[max(0, k - under_way):k + under_way] for k, n in enumerate(asked))


def test_classes_state_ranks(shapes, settings):
    photos = Photos(shapes)

    def make(**more):
        return millrace.Loader(millrace.Live(Photos(shapes), classes=photos.kinds, key="x"), epochs=2, **dict(settings, **more))
    loader = make()
    assert loader.classes == photos.kinds
    want = drain(make())
    assert drain(loader, 5) == want[:5]
    again = pickle.loads(pickle.dumps(loader))
    again.load_state_dict(json.loads(json.dumps(loader.state_dict())))
    assert drain(again) == want[5:]
    parts = [drain(make(rank=r, world=2)) for r in range(2)]
    assert [a[2] + b[2] for a, b in zip(*parts)] == [w[2] for w in want]
    for other in (millrace.Live(Photos(shapes), classes=photos.kinds, key="y"), Photos(shapes)):
        with pytest.raises(millrace.StateError, match="another data set"):
            millrace.Loader(other, epochs=2, **settings).load_state_dict(loader.state_dict())


def test_with_a_sampler_a_cache_and_fields(shapes, settings, tmp_path):
    photos = Photos(shapes)
    listed = [5] * 10 + list(range(30))
    want = drain(millrace.Loader(shapes, sampler=listed, epochs=3, **settings))
    assert drain(millrace.Loader(photos, sampler=listed, epochs=3, **settings)) == want
    photos.asked.clear()
    assert drain(millrace.Loader(photos, sampler=listed, epochs=3, cache="memory", **settings)) == want
    # In later epochs a sample is asked for only where the first epoch had not kept it yet when the loader read ahead.
    assert len(photos.asked) < 2.5 * len(listed)
    with pytest.raises(millrace.ArgumentError, match="key="):
        millrace.Loader(photos, cache="disk", cache_folder=tmp_path, cache_bytes=1 << 20, **settings)
    rows = [{"image": np.full((4, 4, 3), k, np.uint8), "label": k, "tokens": list(range(k))} for k in range(6)]
    live = millrace.Live(rows, {"image": "pixels[4,4,3]", "label": "int", "tokens": "int32"})
    for b in millrace.Loader(live, batch=6, order="sequential", fields=["tokens"]):
        assert b.lengths["tokens"].tolist() == list(range(6)) and b.images.numpy()[5, 0, 0, 0] == 5


def test_names(shapes, settings, tmp_path):
    photos = Photos(shapes)
    names = ["%03d.jpg" % k for k in range(120)]
    rows = [dict(zip(("image", "label", "sample.name"), photos[k] + (names[k],))) for k in range(120)]
    millrace.convert(rows, tmp_path / "o.mrec")
    for data in (rows, tmp_path / "o.mrec"):
        for b in millrace.Loader(data, **settings):
            assert b.names == [names[i] for i in b.ids.tolist()]
    rows[77]["image"] = b"no picture"
    with pytest.raises(millrace.BadSampleError, match="sample 77"):
        drain(millrace.Loader(rows, **settings))


def test_the_jobs(shapes, settings, tmp_path):
    photos = Photos(shapes)
    live = millrace.Live(photos, classes=photos.kinds)
    assert millrace.digest(live, **settings) == millrace.digest(shapes, **settings)
    info = millrace.inspect(live)
    assert (info["count"], info["format"], info["classes"]) == (120, "own", photos.kinds)
    millrace.convert(live, tmp_path / "o.mrec")
    assert drain(millrace.Loader(tmp_path / "o.mrec", **settings)) == drain(millrace.Loader(shapes, **settings))
    assert millrace.verify(live) == []


class Fails(Photos):
    def __init__(self, folder, at, what):
        super().__init__(folder)
        self.at, self.what = at, what

    def __getitem__(self, k):
        if k == self.at:
            if isinstance(self.what, BaseException):
                raise self.what
            return self.what
        return super().__getitem__(k)


@pytest.mark.parametrize("more", [{}, {"prefetch": 0}])
@pytest.mark.parametrize("what", [KeyError("mine"), MemoryError("mine"), SystemExit("mine")])
def test_an_exception_is_raised_by_next(shapes, settings, more, what):
    settings.update(more)
    loader = millrace.Loader(Fails(shapes, 77, what), bad="skip", **settings)
    with pytest.raises(type(what), match="mine"):
        drain(loader)
    loader.close()
    with pytest.raises(type(what), match="mine"):
        millrace.digest(Fails(shapes, 77, what), **settings)


class Mute(Exception):
    def __str__(self):
        raise ValueError("no text")


def test_an_exception_that_cannot_say_what_it_is(shapes, settings):
    with pytest.raises(Mute):
        drain(millrace.Loader(Fails(shapes, 77, Mute()), **settings))


def test_exceptions_at_the_start(shapes, settings):
    with pytest.raises(KeyError, match="mine"):
        millrace.Loader(Fails(shapes, 0, KeyError("mine")), **settings)
    with pytest.raises(RuntimeError, match="StopIteration"):
        millrace.Loader(Fails(shapes, 0, StopIteration()), **settings)
    with pytest.raises(millrace.ArgumentError, match="sample 0, field 'image'"):
        millrace.Loader(Fails(shapes, 0, (object(), 1)), **settings)
    with pytest.raises(millrace.ArgumentError, match="no samples"):
        millrace.Loader([], **settings)
    with pytest.raises(millrace.ArgumentError, match="list of paths"):
        millrace.Loader(["a.mrec", "b.mrec"], **settings)
    with pytest.raises(millrace.ArgumentError, match="take=: of data that are files"):
        millrace.Loader(Photos(shapes), take=0.5, **settings)
    with pytest.raises(millrace.Error, match="labels|classes"):
        millrace.Loader(Photos(shapes), order="balanced", **settings)


@pytest.mark.parametrize("what, text", [((b"no picture", 1), "sample 77, field 'image': found 10 bytes"), (None, "sample 77: found NoneType"),
                                        ((b"\xff\xd8\xff\xe0 cut off", 1), "sample 77: JPEG"), (("x",), "tuple of 1")])
def test_a_sample_that_does_not_fit_is_a_damaged_one(shapes, settings, what, text):
    """It is reported, and passed over as `bad` says."""
    with pytest.raises(millrace.BadSampleError, match=text) as caught:
        drain(millrace.Loader(Fails(shapes, 77, what), **settings))
    assert caught.value.sample == 77
    reported = []
    loader = millrace.Loader(Fails(shapes, 77, what), bad="skip", on_bad=lambda e, other: reported.append(e), **settings)
    labels = sum((b[3] for b in drain(loader)), [])
    assert labels.count(-1) == 1 and len(labels) == 120 and len(reported) == 1 and text.split(":")[0] in str(reported[0])


def test_closed_while_samples_are_made(shapes, settings):
    """Closing waits for none, also not for one that takes as long as this test."""
    gate, inside = threading.Event(), threading.Event()

    class Slow(Photos):
        def __getitem__(self, k):
            if len(self.asked) > 40:
                inside.set()
                gate.wait()
            return super().__getitem__(k)
    loader = millrace.Loader(Slow(shapes), **settings)
    drain(loader, 1)
    assert inside.wait(60)
    loader.close()
    gate.set()
    for take in range(1, 8):
        loader = millrace.Loader(Photos(shapes), epochs=None, **settings)
        drain(loader, take)
        if take % 2:
            loader.close()
        del loader
    gc.collect()


def test_threads_end(shapes, settings):
    def there():
        return [t for t in threading.enumerate() if t.name == "millrace samples"]
    before = there()
    loaders = [millrace.Loader(Photos(shapes), **settings) for _ in range(3)]
    mine = [t for t in there() if t not in before]
    assert len(mine) == 3
    for loader in loaders:
        loader.close()
    for t in mine:
        t.join(60)
        assert not t.is_alive()


@pytest.mark.parametrize("sample,way", [((np.zeros((3, 4, 4), "float32"), 1), "finished tensors"), ((np.zeros((4, 4, 3), "uint8"), 0.5), "another name")])
def test_what_a_loader_cannot_deliver_is_refused(sample, way):
    """Not left out in silence."""
    with pytest.raises(millrace.ArgumentError, match=way):
        millrace.Loader([sample] * 4, batch=2)
