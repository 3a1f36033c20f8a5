"""What Accelerate's accumulate() and gather_for_metrics() read of the loop that runs, with a GradientState that stands for Accelerate's."""
import sys
import types
import weakref

import pytest

torch = pytest.importorskip("torch")
import millrace.torch  # noqa: E402


class GradientState:
    """As Accelerate's: one for the program, and weak references to the loaders of the loops that run."""
    refs = [None]

    @property
    def dataloader_references(self):
        return [r if r is None else r() for r in type(self).refs]

    @dataloader_references.setter
    def dataloader_references(self, loaders):
        type(self).refs = [r if r is None else weakref.ref(r) for r in loaders]


@pytest.fixture
def state(monkeypatch):
    module = types.ModuleType("accelerate.state")
    module.GradientState = GradientState
    monkeypatch.setitem(sys.modules, "accelerate.state", module)
    monkeypatch.setattr(GradientState, "refs", [None])
    return GradientState()


def active(state):
    """(is this the last batch, samples of it that are no padding)"""
    now = state.dataloader_references[-1]
    return None if now is None else (now.end_of_dataloader, now.remainder)


def loader(data, batch_size=50, **more):
    return millrace.torch.Loader(data, batch_size, **dict(dict(augment="center(32)", workers=1), **more))


@pytest.mark.parametrize("more", [dict(augment="center(32)", workers=1), dict(transform=lambda picture: torch.zeros(3, 8, 8), num_workers=0)],
                         ids=["files", "Python"])
def test_the_last_batch_of_a_loop(shapes, state, more):
    l = millrace.torch.Loader(shapes, 50, **more)
    for _ in range(2):
        assert active(state) is None
        assert [active(state) for _ in l] == [(False, 20), (False, 20), (True, 20)]
    assert state.dataloader_references == [None]


@pytest.mark.parametrize("more,remainder", [(dict(drop_last=True), 0), (dict(batch_size=40), 0), (dict(tail="pad"), 20),
                                            (dict(tail="pad", rank=1, world=2, batch_size=25), 20)])
def test_samples_of_the_last_batch_that_are_no_padding(shapes, state, more, remainder):
    seen = [active(state) for _ in loader(shapes, **more)]
    assert seen[-1] == (True, remainder)


def test_a_loop_within_a_loop(shapes, state):
    """Also one that is left, and one that takes no more than there is."""
    outer, inner = loader(shapes), loader(shapes, 60)
    for _ in outer:
        for _ in inner:
            assert active(state)[1] == 0 and len(state.dataloader_references) == 3
            break
        it = iter(inner)
        assert [active(state) for _ in range(len(it)) if next(it) is not None] == [(False, 0), (True, 0)]
        del it
        assert active(state)[1] == 20 and len(state.dataloader_references) == 2


def test_batches_that_are_left_out(shapes, state):
    """As skip_first_batches() does."""
    l = loader(shapes)
    rest = torch.utils.data.DataLoader(l.dataset, batch_sampler=list(l.batch_sampler)[1:], collate_fn=l.collate_fn)
    assert [active(state) for _ in rest] == [(False, 20), (True, 20)]


UNEQUAL = dict(batch_size=25, sampler=range(119), rank=0, world=2)  # 50, 50, 19


def test_shares_that_cannot_be_gathered_are_refused(shapes, state, caplog):
    """When the loader is made, not after an epoch; whoever says what becomes of the last batch gets it."""
    with pytest.raises(millrace.ArgumentError, match="the last batch of an epoch has 19 samples, which 2 ranks cannot share equally.*tail=\"pad\""):
        loader(shapes, **UNEQUAL)
    sizes = {tail: [len(y) for _, y in loader(shapes, tail=tail, **UNEQUAL)] for tail in ("keep", "pad", "drop")}
    assert sizes == {"keep": [25, 25, 9], "pad": [25, 25, 25], "drop": [25, 25]}
    assert [len(y) for _, y in loader(shapes, drop_last=True, **UNEQUAL)] == [25, 25]
    assert [len(y) for _, y in loader(shapes, training=True, **UNEQUAL)] == [25, 25, 9]  # gradients are averaged, nothing is gathered
    assert [len(y) for _, y in loader(shapes, **dict(UNEQUAL, sampler=range(118)))] == [25, 25, 9]
    assert not caplog.records


def test_unequal_shares_are_told_without_accelerate(shapes, caplog, monkeypatch):
    monkeypatch.delitem(sys.modules, "accelerate.state", raising=False)
    for more in (dict(tail="keep"), dict(drop_last=True), dict(training=True)):
        loader(shapes, **dict(UNEQUAL, **more))
    assert not caplog.records
    loader(shapes, **UNEQUAL)
    assert "cannot share equally" in caplog.text and "tail=\"keep\" if nothing is gathered" in caplog.text


def test_a_loader_in_place_of_a_data_set(shapes):
    """As in Trainer(train_dataset=loader), which makes a DataLoader of it."""
    for data in (loader(shapes), loader(shapes).dataset):
        with pytest.raises(TypeError, match="get_train_dataloader"):
            next(iter(torch.utils.data.DataLoader(data, batch_size=4)))


def test_without_accelerate_nothing_is_noted(shapes, monkeypatch):
    monkeypatch.setattr(GradientState, "refs", [None])
    monkeypatch.delitem(sys.modules, "accelerate.state", raising=False)
    for _ in loader(shapes):
        assert GradientState().dataloader_references == [None]
