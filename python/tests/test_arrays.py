"""Arrays: no copy, aligned, and memory that never changes under one."""
import gc
import sys

import millrace
import pytest

np = pytest.importorskip("numpy")
CPYTHON = sys.implementation.name == "cpython"
capsules = pytest.mark.skipif(not CPYTHON, reason="this interpreter has no capsules")


def collect():
    """Everything that nobody names is gone afterwards."""
    for _ in range(1 if CPYTHON else 5):
        gc.collect()


def first(shapes, settings, **more):
    loader = millrace.Loader(shapes, **dict(settings, **more))
    return loader, next(iter(loader))


def test_numpy_sees_the_same_memory(shapes, settings):
    loader, batch = first(shapes, settings)
    for a in (batch.images, batch.labels, batch.ids):
        n = np.asarray(a)
        assert n.ctypes.data == a.data_ptr and a.data_ptr % 64 == 0 and n.shape == a.shape and str(n.dtype) == a.dtype
        assert n.nbytes == a.nbytes and n.flags.writeable and n.tolist() == a.tolist()


@capsules
@pytest.mark.skipif(not hasattr(np, "from_dlpack"), reason="this NumPy knows no DLPack")
def test_dlpack_to_numpy(shapes, settings):
    loader, batch = first(shapes, settings)
    n = np.from_dlpack(batch.images)
    assert n.ctypes.data == batch.images.data_ptr and (n == np.asarray(batch.images)).all()
    assert batch.images.__dlpack_device__() == (1, 0)


@capsules
def test_capsules_that_nobody_takes(shapes, settings):
    loader, batch = first(shapes, settings)
    kinds = [batch.images.__dlpack__(), batch.images.__dlpack__(max_version=(1, 0)), batch.images.__dlpack__(max_version=(0, 8))]
    assert ["versioned" in repr(k) for k in kinds] == [False, True, False]
    assert loader.held == 1
    del batch
    collect()
    assert loader.held == 1  # the capsules hold it
    del kinds
    collect()
    assert loader.held == 0


@capsules
@pytest.mark.parametrize("wrong", [{"copy": True}, {"dl_device": (2, 0)}])
def test_what_cannot_be_handed_out(shapes, settings, wrong):
    loader, batch = first(shapes, settings)
    with pytest.raises(BufferError):
        batch.images.__dlpack__(**wrong)
    batch.images.__dlpack__(dl_device=(1, 0), copy=False)


def test_kept_memory_never_changes(shapes, settings):
    loader = millrace.Loader(shapes, epochs=4, hold=6, **settings)
    it = iter(loader)
    kept = [np.asarray(next(it).images) for _ in range(4)]
    copies = [k.copy() for k in kept]
    for batch in it:
        assert all(np.asarray(batch.images).ctypes.data != k.ctypes.data for k in kept)
        np.asarray(batch.images)[:] = 255  # writing into a batch changes no other
    assert all((k == c).all() for k, c in zip(kept, copies))
    loader.close()
    del loader, batch, it
    collect()
    assert all((k == c).all() for k, c in zip(kept, copies))  # longer than the loader, too


def test_the_slot_comes_back_with_the_last_array(shapes, settings):
    loader, batch = first(shapes, settings)
    labels, part = batch.labels, np.asarray(batch.images)[3, 4:]
    del batch
    collect()
    assert loader.held == 1
    del labels
    collect()
    assert loader.held == 1
    del part
    collect()
    assert loader.held == 0


def test_all_held_is_an_error(shapes, settings):
    loader = millrace.Loader(shapes, hold=3, **settings)
    it = iter(loader)
    kept = [next(it) for _ in range(3)]
    for _ in range(2):
        with pytest.raises(millrace.HeldError, match="all 3 batches.*hold=3"):
            next(it)
    ids = kept[1].ids.tolist()
    kept[0] = None  # not in order
    more = next(it)
    assert more.step == 3 and kept[1].ids.tolist() == ids  # nothing was lost by the refusals
    assert loader.held == 3


def test_what_hangs_in_circles_is_found(shapes, settings):
    loader = millrace.Loader(shapes, hold=2, **settings)
    gc.disable()
    try:
        n = 0
        for batch in loader:
            circle = [batch]
            circle.append(circle)
            n += 1
            del batch, circle
    finally:
        gc.enable()
    assert n == 8


def test_a_batch_without_its_loader(shapes, settings):
    loader, batch = first(shapes, settings)
    want = batch.images.tolist()
    loader.close()
    assert batch.images.tolist() == want
    with pytest.raises(millrace.ClosedError):
        batch.names


@capsules
def test_torch(shapes, settings):
    torch = pytest.importorskip("torch")
    loader, batch = first(shapes, settings)
    t = torch.from_dlpack(batch.images)
    assert t.data_ptr() == batch.images.data_ptr and t.dtype == torch.uint8 and tuple(t.shape) == batch.images.shape
    del batch
    collect()
    assert loader.held == 1
    del t
    assert loader.held == 0


@capsules
def test_jax(shapes, settings):
    jax = pytest.importorskip("jax")
    loader, batch = first(shapes, settings)
    a = jax.dlpack.from_dlpack(batch.images)
    assert a.unsafe_buffer_pointer() == batch.images.data_ptr


def test_copies_and_pickles_are_refused(shapes, settings):
    """They would be of the loader's memory; the error says what to take."""
    import copy
    import pickle
    batch = next(iter(millrace.Loader(shapes, **settings)))
    for what in batch, batch.images:
        for do in copy.copy, copy.deepcopy, pickle.dumps:
            with pytest.raises(TypeError, match="numpy.array"):
                do(what)
    with pytest.raises(AttributeError, match="no attribute 'image'"):
        batch.image
    assert batch.labels is batch.labels and not hasattr(batch, "pixels")
