"""Record files from samples of Python's own: a loader delivers the given samples."""
import os
import subprocess
import sys

import millrace
import pytest

np = pytest.importorskip("numpy")


def pictures(folder):
    """(bytes, class) of the files of a folder data set, in the order of its names."""
    out = []
    for kind in sorted(os.listdir(folder)):
        for name in sorted(os.listdir(os.path.join(folder, kind))):
            with open(os.path.join(folder, kind, name), "rb") as f:
                out.append((f.read(), kind, "%s/%s" % (kind, name)))
    return out


def drain(path, **settings):
    """[(ids, labels, pixels as bytes, names)]"""
    loader = millrace.Loader(path, **settings)
    return [(b.ids.tolist(), b.labels.tolist(), np.asarray(b.images).tobytes(), b.names) for b in loader]


def test_encoded_pictures(shapes, settings, tmp_path):
    """The batches equal the batches of the folder that the pictures came from, to the bit."""
    there = pictures(shapes)
    classes = sorted({kind for _, kind, _ in there})
    path = tmp_path / "out.mrec"
    result = millrace.write_records(path, ({"image": data, "label": kind, "sample.name": name} for data, kind, name in there),
                                  classes=classes)
    assert result["records"] == len(there) and os.path.getsize(path) >= result["bytes_out"] > sum(len(p[0]) for p in there)
    assert drain(path, **settings) == drain(shapes, **settings)
    assert millrace.Loader(path, **settings).classes == classes and millrace.verify(path) == []
    info = millrace.inspect(path)
    assert [(f["name"], f["type"]) for f in info["fields"]] == [("image", "image"), ("label", "int"), ("sample.name", "bytes")]
    assert not os.path.exists(str(path) + ".part")
    numbers = tmp_path / "numbers.mrec"
    millrace.write_records(numbers, ((bytearray(data), np.int64(classes.index(kind))) for data, kind, _ in there), classes=classes)
    assert [b[:3] for b in drain(numbers, **settings)] == [b[:3] for b in drain(shapes, **settings)]


@pytest.mark.parametrize("shape", [(5, 7, 3), (5, 7, 1), (5, 7)])
def test_pixels(tmp_path, shape):
    """Arrays come back as they were, gray ones too, whatever their memory looks like."""
    rng = np.random.default_rng(1)
    all_of_them = rng.integers(0, 256, (9,) + shape, dtype=np.uint8)
    turned = [np.asfortranarray(a) if k % 2 else a[::-1][::-1] for k, a in enumerate(all_of_them)]
    path = tmp_path / "pixels.mrec"
    millrace.write_records(path, zip(turned, range(9)))
    for batch in millrace.Loader(path, batch=9, order="sequential"):
        assert (batch.images.numpy() == all_of_them.reshape(9, 5, 7, -1)).all() and batch.labels.tolist() == list(range(9))
    alone = tmp_path / "alone.mrec"
    millrace.write_records(alone, all_of_them)
    for batch in millrace.Loader(alone, batch=9, order="sequential"):
        assert (batch.images.numpy() == all_of_them.reshape(9, 5, 7, -1)).all() and batch.labels.tolist() == [-1] * 9


def test_every_kind(tmp_path):
    """Each kind of field, inferred and said."""
    rng = np.random.default_rng(2)
    count = 6
    samples = [{"image": rng.integers(0, 256, (4, 4, 3), dtype=np.uint8), "label": k, "score": k / 3, "table": np.full((2, 3), k, "f4"),
                "tokens": np.arange(k, dtype=np.int32), "text": "\u00fc%d" % k, "raw": bytes([k, 0, k])} for k in range(count)]
    path = tmp_path / "all.mrec"
    millrace.write_records(path, samples)
    kinds = {f["name"]: (f["type"], f.get("dtype"), f["shape"]) for f in millrace.inspect(path)["fields"]}
    assert kinds == {"image": ("pixels", None, (4, 4, 3)), "label": ("int", None, ()), "score": ("float", None, ()),
                     "table": ("tensor", "f32", (2, 3)), "tokens": ("tensor", "i32", ()), "text": ("text", None, ()),
                     "raw": ("bytes", None, ())}
    loader = millrace.Loader(path, batch=count, order="sequential", fields=["score", "table", "tokens"])
    for b in loader:
        assert (b.images.numpy() == np.stack([s["image"] for s in samples])).all()
        assert b.fields["score"].tolist() == [s["score"] for s in samples]
        assert (b.fields["table"].numpy() == np.stack([s["table"] for s in samples])).all()
        assert b.lengths["tokens"].tolist() == list(range(count))
        assert [r[:k] for k, r in enumerate(b.fields["tokens"].tolist())] == [list(range(k)) for k in range(count)]
    said = {"image": "pixels[4,4,3]", "label": "int", "score": "float", "table": "float32[2,3]", "tokens": "int32", "text": "text",
            "raw": "bytes"}
    again = tmp_path / "again.mrec"
    millrace.write_records(again, (tuple(s.values()) for s in samples), said)
    assert again.read_bytes() == path.read_bytes()
    lists = tmp_path / "lists.mrec"
    millrace.write_records(lists, (dict(s, table=s["table"].tolist(), tokens=s["tokens"].tolist()) for s in samples), said)
    assert lists.read_bytes() == path.read_bytes()
    dtypes = ["uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]
    one = tmp_path / "dtypes.mrec"
    millrace.write_records(one, [{d: np.arange(3).astype(d) for d in dtypes} for _ in range(2)])
    assert [f["dtype"] for f in millrace.inspect(one)["fields"]] == ["u8", "i8", "i16", "i32", "i64", "f16", "f32", "f64"]


def test_sequences_have_lengths(tmp_path):
    """The array whose length differs goes last, so that a length window can sort by it."""
    path = tmp_path / "rows.mrec"
    millrace.write_records(path, ({"tokens": np.arange(k % 5 + 1, dtype=np.int32), "label": k} for k in range(40)))
    assert [f["name"] for f in millrace.inspect(path)["fields"]] == ["label", "tokens"]
    for b in millrace.Loader(path, batch=8, fields=["tokens"], length_window=5, hold=5):
        assert len(set(b.lengths["tokens"].tolist())) == 1


def test_boxes_and_masks(tmp_path):
    """Their number differs from picture to picture."""
    def sample(k):
        return {"image": np.full((8, 8, 3), k, np.uint8), "label": k, "boxes": np.full((k, 4), [0, 0, 1, 0.5], np.float32).reshape(k, 4),
                "box_labels": np.arange(k, dtype=np.int64), "mask": np.full((8, 8), k, np.uint8)}
    path = tmp_path / "boxes.mrec"
    millrace.write_records(path, map(sample, range(1, 4)))
    for b in millrace.Loader(path, batch=3, order="sequential", augment="center(4)", fields=["boxes", "box_labels", "mask"]):
        assert b.lengths["boxes"].tolist() == [1, 2, 3] and b.fields["box_labels"].tolist()[2] == [0, 1, 2]
        assert b.fields["mask"].shape == (3, 4, 4) and b.fields["mask"].tolist()[1][0] == [2] * 4


@pytest.mark.parametrize("wrong, text", [
    ({"image": b"RIFF....WEBP", "label": 1}, r"sample 2, field 'image': found 12 bytes that begin with b'RIFF.*picture file"),
    ({"image": np.zeros((5, 9, 9), np.uint8), "label": 1}, r"sample 2, field 'image': found ndarray of uint8, shape \(5, 9, 9\)"),
    ({"image": np.zeros((2, 2, 3), np.float32), "label": 1}, r"sample 2, field 'image': found ndarray of float32.*array of uint8"),
    ({"image": None, "label": 1}, r"sample 2, field 'image': found NoneType None"),
    ({"image": np.zeros((2, 2, 3), np.uint8), "label": 1.5}, r"sample 2, field 'label': found float 1.5; expected a whole number"),
    ({"image": np.zeros((2, 2, 3), np.uint8), "label": "cow"}, r"sample 2, field 'label': found class 'cow', which is not one of the 3"),
    ({"image": np.zeros((2, 2, 3), np.uint8), "label": 3}, r"label 3 is outside the 3 classes"),
    ({"image": np.zeros((2, 2, 3), np.uint8), "label": 2**63}, r"sample 2, field 'label': found int 9223372036854775808"),
    ({"image": np.zeros((2, 2, 3), np.uint8)}, r"sample 2: field 'label' is missing; expected fields image, label"),
    ({"image": np.zeros((2, 2, 3), np.uint8), "label": 1, "x": 1}, r"sample 2: field 'x' is not in the schema"),
    ((np.zeros((2, 2, 3), np.uint8),), r"sample 2: found a tuple of 1, expected 2: image, label"),
    (np.zeros((2, 2, 3), np.uint8), r"sample 2: found ndarray.*expected a dict or a tuple of 2"),
])
def test_what_does_not_fit(tmp_path, wrong, text):
    """Number, field, found and expected are named, and nothing is left."""
    path = tmp_path / "wrong.mrec"
    good = (np.zeros((2, 2, 3), np.uint8), "cat")
    asked = []

    def samples():
        for k, s in enumerate([good, good, wrong, good]):
            asked.append(k)
            yield s
    with pytest.raises(millrace.ArgumentError, match="(?s)" + text) as caught:
        millrace.write_records(path, samples(), {"image": "image", "label": "int"}, classes=["ant", "bee", "cat"])
    assert caught.value.sample == 2 and asked == [0, 1, 2]
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("kind, wrong, text", [
    ("float32", np.zeros(2), "ndarray of float64.*an array of float32"), ("float32", [1, "a"], "list"),
    ("uint8", [256], r"list \[256\]"), ("int32", [1.5], r"list \[1.5\]"), ("float32[2]", np.zeros(3, "f4"), r"shape \(3,\).*shape \(2,\)"),
    ("float16", [1e9], "list"), ("text", b"x", "bytes.*a str"), ("text", "\ud800", "no text"), ("bytes", "x", "str 'x'.*bytes"),
    ("float", "1", "str '1'.*a number"), ("float", np.zeros(1), r"shape \(1,\)"), ("int", np.float32(1), "float32"),
    ("jpeg", np.zeros((2, 2), np.uint8), "bytes of a JPEG"), ("png", b"\xff\xd8\xff\xe0", "a JPEG; expected the bytes of a PNG"),
    ("pixels", b"\xff\xd8\xff\xe0", "array of uint8"), ("pixels[2,2,3]", np.zeros((2, 2, 1), np.uint8), r"shape \(2, 2, 3\)"),
    ("int64", np.zeros(2, bool), "of bool"), ("int64", np.zeros(2, "u4"), "of uint32")])
def test_kinds_that_do_not_fit(tmp_path, kind, wrong, text):
    with pytest.raises(millrace.ArgumentError, match="(?s)sample 0, field 'x': found .*" + text):
        millrace.write_records(tmp_path / "wrong.mrec", [{"x": wrong}], {"x": kind})
    assert os.listdir(tmp_path) == []


def test_lists_that_fit(tmp_path):
    for kind, value in (("float32", [1, 2.5, float("inf"), float("nan")]), ("uint8", [0, 255]), ("int8[2]", (-128, 127)),
                        ("float64", []), ("bfloat16", np.zeros(0))):
        if kind == "bfloat16":
            with pytest.raises(millrace.ArgumentError, match="bfloat16"):
                millrace.write_records(tmp_path / "l.mrec", [{"x": value}], {"x": kind}, force=True)
            continue
        assert millrace.write_records(tmp_path / "l.mrec", [{"x": value}], {"x": kind}, force=True)["records"] == 1


@pytest.mark.parametrize("schema, text", [
    ({}, "1 to 32 fields"), ({"x": "jpg"}, "'jpg': expected one of bytes, float, image"), ({"x": "float32[0]"}, "without zeros"),
    ({"x": "image[2,2,3]"}, "pixels"), ({"": "int"}, "a name of 1 to 63 bytes"), ({"a" * 64: "int"}, "63"), ({"x": 3}, "kind 3"),
    ({1: "int"}, "field 1"), ({"x": "pixels[3,3]"}, "three"), ("image", "dict")])
def test_schemas_that_cannot_be(tmp_path, schema, text):
    with pytest.raises(millrace.ArgumentError, match=text):
        millrace.write_records(tmp_path / "wrong.mrec", [], schema)
    assert os.listdir(tmp_path) == []


def test_pictures_of_pillow(tmp_path):
    image = pytest.importorskip("PIL.Image")
    path = tmp_path / "o.mrec"
    a = np.random.default_rng(3).integers(0, 256, (2, 6, 5, 3), dtype=np.uint8)
    millrace.write_records(path, [(image.fromarray(p), k) for k, p in enumerate(a)])
    for b in millrace.Loader(path, batch=2, order="sequential"):
        assert (b.images.numpy() == a).all()
    with pytest.raises(millrace.ArgumentError, match="sample 1, field 'image': found a picture of mode P: convert"):
        millrace.write_records(path, [image.fromarray(a[0]), image.fromarray(a[0]).convert("P")], force=True)


def test_what_cannot_be_written(tmp_path):
    path = tmp_path / "o.mrec"
    for samples, more, text in (([], {}, "there are no samples"), ("photos", {}, "convert"), ([(b"\x89PNG", "cat")], {}, "classes="),
                                ([b"\x89PNG\r\n\x1a\n"], {"classes": ["a"]}, "goes with a field \"label\""),
                                ([1], {"classes": "ab"}, "list of names"), ([1], {"classes": ["a", "a"]}, "more than once"),
                                ([{"x": np.zeros(2, "u2")}], {}, "uint16"), ([{"x": object()}], {}, "object")):
        with pytest.raises(millrace.ArgumentError, match=text):
            millrace.write_records(path, samples, **more)
    assert os.listdir(tmp_path) == []
    with pytest.raises(TypeError):
        millrace.write_records(path, 3)


def test_an_exception_from_the_samples(tmp_path):
    def samples():
        yield {"x": 1}
        raise KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt):
        millrace.write_records(tmp_path / "o.mrec", samples())
    assert os.listdir(tmp_path) == []


def test_a_file_that_is_there(tmp_path):
    """It is replaced only when that is asked for, and only by a whole one."""
    path = tmp_path / "o.mrec"
    millrace.write_records(path, [{"x": 1}])
    before = path.read_bytes()
    asked = []
    with pytest.raises(millrace.ExistsError):
        millrace.write_records(path, (asked.append(k) or {"x": k} for k in range(3)))
    assert asked == [] and path.read_bytes() == before
    with pytest.raises(millrace.ArgumentError, match="sample 1"):
        millrace.write_records(path, [{"x": 1}, {"x": "a"}], force=True)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["o.mrec"]
    assert millrace.write_records(path, ({"x": k} for k in range(3)), force=True)["records"] == 3
    assert millrace.inspect(path)["count"] == 3
    with pytest.raises(millrace.Error):
        millrace.write_records(tmp_path, [{"x": 1}], force=True)
    with pytest.raises(millrace.Error):
        millrace.write_records(tmp_path / "no" / "o.mrec", [{"x": 1}])


def test_the_same_samples_give_the_same_file(tmp_path):
    for name in ("a", "b"):
        millrace.write_records(tmp_path / name, ((np.full((2, 2, 3), k, np.uint8), k) for k in range(200)), provenance="{}")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_numpy_is_asked_for_late():
    """`import millrace` and writing bytes need none of it."""
    text = ("import sys, millrace\nassert 'numpy' not in sys.modules and 'pyarrow' not in sys.modules\n"
            "millrace.write_records(sys.argv[1], [{'label': 1, 'raw': b'x'}])\nassert 'numpy' not in sys.modules")
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-c", text, os.path.join(folder, "o.mrec")], check=True)
