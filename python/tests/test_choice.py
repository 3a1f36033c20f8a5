"""Loaders that choose samples: the same as in the set that the command makes with the same options."""
import os
import pickle
import subprocess
import sys

import millrace
import pytest

CASES = [
    (dict(only_classes=["ring", "disc"]), ["--only-classes", "ring,disc"]),
    (dict(only_classes="ring,disc", where="key!~*/00003.jpg"), ["--only-classes", "ring,disc", "--where", "key!~*/00003.jpg"]),
    (dict(rename_classes={"ring": "round", "disc": "round"}, take_each=(0.25, 1)), ["--rename-classes", "FILE", "--take-each", "0.25:1"]),
    (dict(dedup="bytes"), ["--dedup", "bytes"]),
    (dict(dedup="pixels", sample=30, sample_seed=5), ["--dedup", "pixels", "--sample", "30", "--seed", "5"]),
]


def convert(source, to, *options):
    subprocess.run([sys.executable, "-m", "millrace", "convert", source, to, "--quiet", *options], check=True, stdout=subprocess.DEVNULL)
    return to


@pytest.fixture(scope="module")
def copies(tmp_path_factory):
    """Pictures of ten classes, one of them twice."""
    folder = str(tmp_path_factory.mktemp("data") / "shapes")
    subprocess.run([sys.executable, "-m", "millrace", "synth", folder, "--count", "6", "--size", "32"], check=True, stdout=subprocess.DEVNULL)
    data = os.path.join(folder, "train")
    with open(os.path.join(data, "disc", "00000.jpg"), "rb") as first, open(os.path.join(data, "ring", "zcopy.jpg"), "wb") as second:
        second.write(first.read())
    return data


def batches(loader):
    return [(b.images.numpy().tobytes(), b.labels.tolist()) for b in loader]


@pytest.mark.parametrize("chosen,options", CASES, ids=lambda c: "-".join(c) if isinstance(c, dict) else "command")
def test_is_the_converted_set(copies, tmp_path, chosen, options):
    names = tmp_path / "names"
    names.write_text("ring\tround\ndisc\tround\n")
    made = convert(copies, str(tmp_path / "made.mrec"), *(str(names) if o == "FILE" else o for o in options))
    how = dict(batch=7, augment="rrc(16),flip", training=True, seed=3, epochs=2, workers=2)
    with millrace.Loader(copies, **how, **chosen) as mine, millrace.Loader(made, **how) as theirs:
        assert len(mine) == len(theirs) and mine.sample_count == theirs.sample_count < 61
        assert mine.classes == theirs.classes and mine.targets == theirs.targets
        assert "are taken" in mine.notes
        assert batches(mine) == batches(theirs)
    assert millrace.digest(copies, batch=7, seed=3, **chosen) == millrace.digest(made, batch=7, seed=3)
    info = millrace.inspect(copies, **chosen)
    assert info["count"] == millrace.inspect(made)["count"]
    again = millrace.convert(copies, str(tmp_path / "again.mrec"), **chosen)
    assert again["records"] == info["count"]


def test_files_and_lists_say_the_same(copies, tmp_path):
    names = tmp_path / "names"
    names.write_text("ring\tround\n")
    with millrace.Loader(copies, rename_classes=names) as a, millrace.Loader(copies, rename_classes={"ring": "round"}) as b:
        assert a.classes == b.classes and "round" in a.classes and "ring" not in a.classes
    numbers = convert(copies, str(tmp_path / "numbers.tfrecord"), "--to", "tfrecord")
    if not millrace.inspect(numbers)["classes"]:
        few = ["c%d" % k for k in range(10)]
        with millrace.Loader(numbers, classes_from=few) as a:
            assert a.classes == few


def test_stratify_is_a_share_of_each_class(copies):
    with millrace.Loader(copies, take=(0, 0.5), stratify=True) as a, millrace.Loader(copies, take_each=(0, 0.5)) as b, \
            millrace.Loader(copies, take=(0.5, 1), stratify=True) as c:
        assert a.targets == b.targets and a.sample_count + c.sample_count == 61
        assert {a.targets.count(k) for k in range(10)} <= {3, 4}


def test_state_goes_on_with_the_same_choice_only(copies):
    how = dict(batch=4, training=True, augment="resize(16x16)", seed=1, only_classes="ring,disc")
    with millrace.Loader(copies, **how) as a:
        whole = batches(a)
    with millrace.Loader(copies, **how) as a, pickle.loads(pickle.dumps(a)) as b:
        it = iter(a)
        next(it)
        b.load_state_dict(a.state_dict())
        assert batches(b) == whole[1:]
        for other in (dict(only_classes="ring,square"), dict(only_classes=None), dict(where="key!~*zcopy*"),
                      dict(rename_classes={"disc": "dish"}, only_classes="ring,dish")):
            with millrace.Loader(copies, **dict(how, **other)) as c, pytest.raises(millrace.StateError, match="another data set"):
                c.load_state_dict(a.state_dict())


def test_ranks_share_what_is_chosen(copies):
    how = dict(batch=8, augment="resize(16x16)", where="class=ring", tail="keep")
    with millrace.Loader(copies, **how) as whole:
        ids = [i for b in whole for i in b.ids.tolist()]
    parts = []
    for rank in range(2):
        with millrace.Loader(copies, rank=rank, world=2, **how) as part:
            parts += [i for b in part for i in b.ids.tolist()]
    assert sorted(parts) == sorted(ids) and len(ids) == 7


@pytest.mark.parametrize("wrong,words", [
    (dict(only_classes=["cat"]), 'only_classes=: .* has no class "cat"'), (dict(where="wide>3"), 'where=: expected key, class'),
    (dict(where="label>99"), "no sample is left of 61"), (dict(dedup="hash"), "dedup='hash'"), (dict(take_each=(0.5, 0.2)), "take_each="),
    (dict(sample=-1), "sample=-1"), (dict(stratify=True), "stratify=True: take="), (dict(rename_classes={"ring": "a\tb"}), "without tabs"),
    (dict(only_classes=["a\nb"]), "one line each"), (dict(take_each="half"), "take_each='half'")])
def test_wrong_choices(copies, wrong, words):
    with pytest.raises(millrace.Error, match=words):
        millrace.Loader(copies, **wrong)


def test_objects_have_no_choice():
    with pytest.raises(millrace.ArgumentError, match="where="):
        millrace.Loader([(b"", 1)] * 4, where="label=1")


def test_torch(copies, tmp_path):
    pytest.importorskip("torch")
    import millrace.torch as mt
    made = convert(copies, str(tmp_path / "made.mrec"), "--only-classes", "ring,disc")
    how = dict(batch_size=4, augment="resize(16x16)", shuffle=True, seed=2)
    with mt.Loader(copies, only_classes="ring,disc", **how) as a, mt.Loader(made, **how) as b:
        assert len(a) == len(b) and len(a.sampler) == len(b.sampler) and len(a.dataset) == len(b.dataset) == 13
        assert a.dataset.classes == ["disc", "ring"] and a.dataset.class_to_idx == {"disc": 0, "ring": 1} and a.dataset.targets == b.dataset.targets
        for (x, y), (u, v) in zip(a, b):
            assert (x == u).all() and (y == v).all()
    own = mt.Loader(copies, only_classes="ring,disc", batch_size=4, transform=lambda picture: __import__("torch").zeros(3, 4, 4))  # Python's own transforms
    assert len(own.dataset) == 13 and own.dataset.classes == ["disc", "ring"]
    own.close()
