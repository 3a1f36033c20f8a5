"""The batches of a loader, and how it resumes."""
import gc
import io
import json
import os
import pickle
import tarfile
from pathlib import Path

import millrace
import pytest
from drained import drain
from millrace import _library

np = pytest.importorskip("numpy")


def test_an_epoch(shapes, settings):
    with millrace.Loader(shapes, **settings) as loader:
        assert len(loader) == 8 and loader.steps_per_epoch == 8 and loader.sample_count == 120
        assert loader.shape == (32, 32, 3) and len(loader.classes) == 10
        seen = []
        for k, batch in enumerate(loader):
            assert (batch.epoch, batch.step, batch.last) == (0, k, k == 7)
            assert batch.images.shape == (len(batch), 32, 32, 3) and batch.images.dtype == "uint8"
            x, y = batch
            assert np.asarray(x).shape == batch.images.shape and np.asarray(y).tolist() == y.tolist()
            for i, name in zip(y.tolist(), batch.names):
                assert name.split("/")[0] == loader.classes[i]
            seen += batch.ids.tolist()
            assert batch.affine is None and batch.fields == {} and batch.labels2 is None and batch.share2 is None
        assert sorted(seen) == list(range(120))
        assert loader.stats()["batches"] == 8 and (loader.epoch, loader.step) == (1, 0)


def test_same_bits_for_any_threads(shapes, settings):
    want = drain(millrace.Loader(shapes, epochs=2, **settings))
    settings["workers"] = 1
    assert drain(millrace.Loader(shapes, epochs=2, prefetch=0, **settings)) == want
    assert drain(millrace.Loader(shapes, epochs=2, prefetch=1, hold=1, **settings)) == want
    settings["seed"] = 4
    assert drain(millrace.Loader(shapes, epochs=2, **settings)) != want


def test_folder_and_records_agree(shapes, records, settings):
    assert drain(millrace.Loader(shapes, **settings)) == drain(millrace.Loader(records, **settings))


def test_epoch_by_epoch_and_anew(shapes, settings):
    loader = millrace.Loader(shapes, epochs=3, **settings)
    want = drain(loader)
    assert len(want) == 24 == len(loader)
    assert drain(loader) == want  # from the beginning again
    got = []
    for epoch, batches in loader.by_epoch():
        for batch in batches:
            assert batch.epoch == epoch
            got.append(batch.ids.tolist())
            if epoch == 1 and batch.step == 2:
                break  # the rest of this epoch is not wanted
    assert got == [w[2] for w in want[:8] + want[8:11] + want[16:]]


def test_iterating_goes_on(shapes, settings):
    loader = millrace.Loader(shapes, **settings)
    want = drain(millrace.Loader(shapes, **settings))
    assert drain(loader, 3) + drain(loader) == want


def test_endless(shapes, settings):
    loader = millrace.Loader(shapes, epochs=None, **settings)
    with pytest.raises(TypeError, match="without end"):
        len(loader)
    assert [g[0] for g in drain(loader, 20)] == [0] * 8 + [1] * 8 + [2] * 4


def test_tails(shapes, settings):
    settings["batch"] = 50
    assert [len(b) for b in millrace.Loader(shapes, tail="keep", hold=3, **settings)] == [50, 50, 20]
    assert [len(b) for b in millrace.Loader(shapes, tail="drop", **settings)] == [50, 50]
    last = None
    for last in millrace.Loader(shapes, tail="pad", **settings):
        pass
    assert len(last) == 50 and last.counted == 20 and last.labels.tolist().count(-1) == 30


@pytest.mark.parametrize("stop", [0, 1, 7, 8, 13])
def test_state(shapes, settings, stop):
    want = drain(millrace.Loader(shapes, epochs=2, **settings))
    first = millrace.Loader(shapes, epochs=2, **settings)
    assert (drain(first, stop) if stop else []) == want[:stop]
    state = first.state_dict()
    assert len(json.dumps(state)) <= 200 and "rank" not in json.dumps(state)
    second = millrace.Loader(shapes, epochs=2, **settings)
    second.load_state_dict(json.loads(json.dumps(state)))
    assert drain(second) == want[stop:]


def test_state_for_another_world(shapes, settings):
    """Three ranks stop, two go on: together they deliver what one does alone."""
    want = drain(millrace.Loader(shapes, **settings))

    def together(world, state, most):
        ranks = [millrace.Loader(shapes, rank=r, world=world, **settings) for r in range(world)]
        for r in ranks:
            if state:
                r.load_state_dict(state)
        out = []
        for _ in range(most):
            parts = [next(iter(r)) for r in ranks]
            assert [p.first for p in parts] == [sum(len(q) for q in parts[:k]) for k in range(world)]
            out.append((parts[0].epoch, parts[0].step, sum((p.ids.tolist() for p in parts), []),
                        sum((p.labels.tolist() for p in parts), []), b"".join(np.asarray(p.images).tobytes() for p in parts)))
        states = [r.state_dict() for r in ranks]
        assert all(s == states[0] for s in states)
        return out, states[0]
    begun, state = together(3, None, 3)
    rest, _ = together(2, state, 5)
    assert begun + rest == want


def test_states_that_do_not_fit(shapes, records, settings):
    loader = millrace.Loader(shapes, **settings)
    state = loader.state_dict()
    for change, text in (({"seed": 9}, "seed"), ({"batch": 9}, "batch"), ({"data": "0"}, "data set"), ({"how": "0"}, "augmentation"),
                         ({"step": 8}, "step"), ({"step": "1"}, "step"), ({"epoch": -1}, "epoch"), ({"millrace": 2}, "not a state")):
        with pytest.raises(millrace.StateError, match=text):
            loader.load_state_dict(dict(state, **change))
    with pytest.raises(millrace.StateError):
        loader.load_state_dict(None)
    with pytest.raises(millrace.StateError, match="augmentation"):
        millrace.Loader(shapes, **dict(settings, augment="rrc(32)")).load_state_dict(state)


@pytest.mark.parametrize("variables", [{"RANK": "1", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"},
                                       {"SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2"},
                                       {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}])
def test_ranks_from_launchers(shapes, settings, monkeypatch, variables):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    loader = millrace.Loader(shapes, **settings)
    assert (loader.rank, loader.world) == (1, 2)
    assert next(iter(loader)).first == 8
    assert millrace.Loader(shapes, rank=0, world=1, **settings).world == 1


def test_a_batch_script_is_no_rank(shapes, settings, monkeypatch):
    monkeypatch.setenv("SLURM_PROCID", "0")
    monkeypatch.setenv("SLURM_NTASKS", "4")  # of the job, not of a step
    assert millrace.Loader(shapes, **settings).world == 1


def test_ranks_that_cannot_be(shapes, settings, monkeypatch):
    for rank, world in ((0, None), (None, 2), (2, 2), (-1, 2)):
        with pytest.raises(millrace.ArgumentError, match="rank"):
            millrace.Loader(shapes, rank=rank, world=world, **settings)
    monkeypatch.setenv("RANK", "x")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(millrace.ArgumentError, match="RANK=x"):
        millrace.Loader(shapes, **settings)


@pytest.mark.parametrize("wrong, text", [({"batch": 0}, "batch=0"), ({"batch": 1.5}, "whole number"), ({"order": "random"}, "order"),
                                         ({"augment": "rcr(32)"}, "rcr"), ({"hold": 0}, "hold"), ({"epochs": 0}, "epochs"),
                                         ({"channels": 2}, "channels"), ({"fields": "boxes"}, "list"), ({"seed": -1}, "seed"),
                                         ({"cache": "disk"}, "cache"), ({"fields": [{"name": "image", "rle": 1}]}, "rle")])
def test_settings_that_cannot_be(shapes, settings, wrong, text):
    with pytest.raises(millrace.Error, match=text) as caught:
        millrace.Loader(shapes, **dict(settings, **wrong))
    assert isinstance(caught.value, ValueError)


def test_errors_by_kind(shapes, tmp_path, settings):
    with pytest.raises(FileNotFoundError) as caught:
        millrace.Loader(tmp_path / "nothing", **settings)
    assert isinstance(caught.value, millrace.NotFoundError) and caught.value.path.endswith("nothing") and caught.value.errno == 2
    (tmp_path / "noise").write_bytes(b"some noise. " * 10)
    with pytest.raises(millrace.Error):
        millrace.Loader(tmp_path / "noise", **settings)
    with pytest.raises(millrace.ArgumentError, match="zero byte"):
        millrace.Loader("a\0b", **settings)


def spoil(shapes, folder):
    """A copy of the set with one damaged picture; its path."""
    import shutil
    shutil.copytree(shapes, folder)
    kind = sorted(os.listdir(folder))[0]
    path = os.path.join(str(folder), kind, sorted(os.listdir(folder / kind))[0])
    with open(path, "r+b") as f:
        f.truncate(700)
    return path


def test_damage_is_named(shapes, tmp_path, settings):
    path = spoil(shapes, tmp_path / "copy")
    with pytest.raises(millrace.BadSampleError) as caught:
        drain(millrace.Loader(tmp_path / "copy", **settings))
    assert caught.value.path == path and caught.value.sample == 0
    reported = []
    loader = millrace.Loader(tmp_path / "copy", bad="replace", on_bad=lambda e, other: reported.append((e, other)), **settings)
    ids = sum((g[2] for g in drain(loader)), [])
    assert len(ids) == 120 and len(reported) == 1 and reported[0][0].path == path and reported[0][1] is not None


def test_an_exception_in_a_callback(shapes, tmp_path, settings):
    spoil(shapes, tmp_path / "copy")

    def on_bad(e, other):
        raise KeyError("mine")
    loader = millrace.Loader(tmp_path / "copy", bad="skip", on_bad=on_bad, **settings)
    with pytest.raises(KeyError, match="mine"):
        drain(loader)
    loader.close()


def test_a_callback_that_closes(shapes, tmp_path, settings):
    spoil(shapes, tmp_path / "copy")
    loader = millrace.Loader(tmp_path / "copy", bad="skip", on_bad=lambda e, other: loader.close(), **settings)
    with pytest.raises(millrace.ClosedError):
        drain(loader)


def test_pickled_it_is_its_arguments(shapes, settings):
    loader = millrace.Loader(shapes, **settings)
    again = pickle.loads(pickle.dumps(loader))
    assert drain(again) == drain(loader)


def test_sequences(tmp_path, settings):
    """Fields whose rows differ in length."""
    rows = [[5, 6, 7], [8], [9, 10, 11, 12], [13, 14]]
    (tmp_path / "rows.txt").write_text("".join(", ".join(map(str, r + [k])) + "\n" for k, r in enumerate(rows)))
    loader = millrace.Loader(tmp_path / "rows.txt", batch=4, order="sequential", fields=["tokens"])
    assert loader.shape == ()
    for batch in loader:
        assert batch.images is None and batch.labels.tolist() == [0, 1, 2, 3]
        tokens, lengths = batch.fields["tokens"], batch.lengths["tokens"]
        assert tokens.shape == (4, 4) and lengths.tolist() == [3, 1, 4, 2] and tokens.dtype == "int32"
        assert [r[:n] for r, n in zip(tokens.tolist(), lengths.tolist())] == rows
    fields = [{"name": "tokens", "role": "plain", "pad": 99}]
    for batch in millrace.Loader(tmp_path / "rows.txt", batch=4, order="sequential", fields=fields):
        assert batch.fields["tokens"].tolist()[1] == [8, 99, 99, 99]
    with pytest.raises(millrace.Error, match="boxes"):
        millrace.Loader(tmp_path / "rows.txt", batch=4, fields=["boxes"])


def test_fields_without_their_ending(shapes, tmp_path):
    """A tar archive's boxes.npy is "boxes", in the command and here, and batches have the name that was given."""
    def npy(*numbers, kind="float32"):
        out = io.BytesIO()
        np.save(out, np.array(numbers, kind))
        return out.getvalue()

    members = {"jpg": sorted(Path(shapes).rglob("*.jpg"))[0].read_bytes(), "cls": b"1", "a.txt": b"x", "a.text": b"y",
               "boxes.npy": npy([.25, .5, .75, 1]), "corners.npy": npy([8, 16, 24, 32]), "box_labels.npy": npy(7, kind="int64")}
    with tarfile.open(tmp_path / "boxes.tar", "w") as archive:
        for k in range(4):
            for name, data in members.items():
                member = tarfile.TarInfo("%d.%s" % (k, name))
                member.size = len(data)
                if k or not name.endswith("npy"):  # the first sample has none
                    archive.addfile(member, io.BytesIO(data))
    settings = {"batch": 4, "order": "sequential"}
    for fields in ["boxes"], ["boxes.npy"], [{"name": "boxes", "role": "boxes", "most": 3}]:
        name = fields[0] if isinstance(fields[0], str) else "boxes"
        batch = next(iter(millrace.Loader(tmp_path / "boxes.tar", fields=fields, **settings)))
        assert list(batch.fields) == [name] and batch.lengths[name].tolist() == [0, 1, 1, 1]
        assert batch.fields[name].tolist()[1][0] == [.25, .5, .75, 1]
    for name in "a", "box":  # of two members, and of none
        with pytest.raises(millrace.Error, match="there is no field '%s'" % name):
            millrace.Loader(tmp_path / "boxes.tar", fields=[name], **settings)
    for role, pixels in ("values", "pixels"), ("box_values", "in_pixels"):  # the command's words and Python's
        fields = [{"name": "corners", "role": "boxes", pixels: True}, {"name": "box_labels", "role": role}]
        batch = next(iter(millrace.Loader(tmp_path / "boxes.tar", fields=fields, **settings)))
        corners = np.asarray(batch.fields["corners"])[1, 0] * batch.images.shape[1]
        assert np.allclose(corners, [8, 16, 24, 32])
        assert batch.fields["box_labels"].tolist() == [[0], [7], [7], [7]]


def test_mixed(shapes, settings):
    """Pictures that are mixed say how, and do not pass for unmixed ones."""
    mixed = millrace.Loader(shapes, **dict(settings, augment="rrc(32),mixup(1)", training=True))
    plain = millrace.Loader(shapes, **dict(settings, augment="rrc(32)", training=True))
    assert mixed.mixes and not plain.mixes
    pairs = 0
    for a, b in zip(mixed, plain):
        with pytest.raises(millrace.ArgumentError, match="labels2"):
            images, labels = a
        x, y = a.images.numpy().astype(np.int32), b.images.numpy().astype(np.int32)
        share, second = a.share2.numpy(), a.labels2.numpy()
        for i in range(a.count):
            other = i ^ 1
            if other >= a.count:
                assert share[i] == 0 and second[i] == -1
                continue
            w = int(share[i] * 256)
            assert share[i] == w / 256 == share[other] and second[i] == (b.labels.numpy()[other] if w else -1)
            assert (x[i] == ((256 - w) * y[i] + w * y[other] + 128) // 256).all()
            pairs += 1
        one = np.eye(10, dtype=np.float32)
        want = one[a.labels.numpy()] * (1 - share)[:, None] + one[second] * share[:, None]
        assert (a.soft_targets(10) == want).all() and (b.soft_targets(10) == one[b.labels.numpy()]).all()
        with pytest.raises(millrace.ArgumentError, match="not below the 1 classes"):
            a.soft_targets(1)
        del a, b
    assert pairs > 20


def test_take(shapes):
    """Parts of the samples share none and are all together, in every run."""
    def pictures(take):
        loader = millrace.Loader(shapes, batch=16, augment="center(32)", order="sequential", take=take)
        return loader.sample_count, [p.tobytes() for b in loader for p in b.images.numpy().copy()]
    all_of_them, whole = pictures(None)
    (low, a), (high, b) = pictures(0.8), pictures((0.8, 1))
    assert low + high == all_of_them == len(a) + len(b) and low == round(0.8 * all_of_them)
    assert sorted(a + b) == sorted(whole) and a == pictures((0, 0.8))[1] != whole[:low]
    for wrong in [(0.5, 0.2), (0, 1.5), "half", (0, 0.1, 0.2)]:
        with pytest.raises(millrace.ArgumentError):
            millrace.Loader(shapes, batch=16, augment="center(32)", take=wrong)


def test_targets_of_an_archive(tmp_path):
    pictures = np.random.default_rng(1).integers(0, 255, (20, 6, 5), dtype=np.uint8)
    traits = (pictures.reshape(20, 30)[:, :3] > 100).astype(np.uint8)
    np.savez(tmp_path / "set.npz", images=pictures, traits=traits)
    found = {}
    with millrace.Loader(tmp_path / "set.npz", batch=7, target_key="traits", fields=["traits"]) as loader:
        for batch in loader:
            for k, sample in enumerate(batch.ids.tolist()):
                found[sample] = (np.asarray(batch.images)[k, :, :, 0].tolist(), np.asarray(batch.fields["traits"])[k].tolist())
    assert [found[k] for k in range(20)] == [(p.tolist(), t.tolist()) for p, t in zip(pictures, traits)]


def test_an_interrupt_as_it_begins(shapes, settings, monkeypatch):
    """What has begun goes on: no second one runs with it, which nobody would end."""
    want = drain(millrace.Loader(shapes, **settings))
    loader = millrace.Loader(shapes, **settings)

    class Interrupted:
        def __getattr__(self, name):
            return getattr(lib, name)

        def mr_loader_open(self, *arguments):
            assert lib.mr_loader_open(*arguments) == 0
            raise KeyboardInterrupt
    lib = _library.lib
    with monkeypatch.context() as m, pytest.raises(KeyboardInterrupt):
        m.setattr(_library, "lib", Interrupted())
        next(iter(loader))
    assert drain(loader) == want
    assert len(loader._source._running) == 1
    loader.close()
    assert loader._source._running == []


def test_the_last_reference_closes_it(shapes, settings):
    """No cycle holds it: its threads end at once."""
    gc.disable()
    try:
        loader = millrace.Loader(shapes, **settings)
        next(iter(loader))
        source = loader._source
        assert len(source._running) == 1
        del loader
        assert source._running == []
    finally:
        gc.enable()


def test_cycles_are_collected_in_any_order(shapes, settings):
    """The collector finalises a loader's parts in an order of its own while threads of the library write to them."""
    for k in range(40):
        loader = millrace.Loader(shapes, **dict(settings, epochs=None, sampler=lambda epoch: list(range(40))))
        next(iter(loader))
        loader.itself = loader, loader._stream.running, loader._inbox, loader._source
        del loader
        gc.collect()
