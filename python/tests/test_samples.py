"""millrace.adapters: Hugging Face's data sets and Parquet files."""
import os

import millrace
import pytest

np = pytest.importorskip("numpy")


def missing(name):
    """Import it, or skip and name it; any failure to import counts, since these have parts in C."""
    try:
        return __import__(name)
    except Exception as e:
        pytest.skip("%s cannot be imported: %s: %s" % (name, type(e).__name__, e))


def pictures(folder):
    """[(path, bytes, class)]"""
    out = []
    for kind in sorted(os.listdir(folder)):
        for name in sorted(os.listdir(os.path.join(folder, kind))):
            path = os.path.join(folder, kind, name)
            with open(path, "rb") as f:
                out.append((path, f.read(), kind))
    return out


def drain(path, settings):
    return [(b.ids.tolist(), b.labels.tolist(), np.asarray(b.images).tobytes()) for b in millrace.Loader(path, **settings)]


# ---------------------------------------------------------------------- Parquet

def table(shapes, form, labels="names"):
    pa = missing("pyarrow")
    there = pictures(shapes)
    kinds = sorted({p[2] for p in there})
    image = {"struct": [{"bytes": p[1], "path": os.path.basename(p[0])} for p in there], "binary": [p[1] for p in there],
             "path": [{"bytes": None, "path": os.path.relpath(p[0], shapes)} for p in there]}[form]
    label = [p[2] if labels == "names" else kinds.index(p[2]) for p in there]
    kind = pa.binary() if form == "binary" else pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    columns = {"image": pa.array(image, kind), "label": pa.array(label), "box": pa.array([[0.0, 0.5, float(k), 1.0] for k in range(len(there))],
                                                                                   pa.list_(pa.float32()))}
    return pa.table(columns), kinds


def write(table, path, **more):
    import pyarrow.parquet
    pyarrow.parquet.write_table(table, path, **more)


@pytest.mark.parametrize("form", ["struct", "binary"])
@pytest.mark.parametrize("labels", ["names", "numbers", "dictionary"])
def test_parquet(shapes, settings, tmp_path, form, labels):
    """Batches equal the batches of the folder that the table was made from."""
    import millrace.adapters
    t, kinds = table(shapes, form, "numbers" if labels == "numbers" else "names")
    if labels == "dictionary":
        t = t.set_column(1, "label", t["label"].dictionary_encode())
    write(t, tmp_path / "t.parquet", row_group_size=37)
    samples = millrace.adapters.from_parquet(tmp_path / "t.parquet", fields={"box": "float32[4]"})
    assert samples.count == 120 and samples.classes == (None if labels == "numbers" else kinds)
    out = tmp_path / "o.mrec"
    assert millrace.write_records(out, samples)["records"] == 120
    assert drain(out, settings) == drain(shapes, settings)
    for b in millrace.Loader(out, fields=[{"name": "box", "role": "plain"}], **dict(settings, order="sequential")):
        assert [r[2] for r in b.fields["box"].tolist()] == b.ids.tolist()
        names = [os.path.basename(pictures(shapes)[i][0]) if form == "struct" else "" for i in b.ids.tolist()]
        assert b.names == names
        del b
    assert millrace.Loader(out, **settings).classes == (samples.classes or [])


def test_parquet_of_several_files(shapes, settings, tmp_path):
    import millrace.adapters
    t, kinds = table(shapes, "struct")
    folder = tmp_path / "parts"
    folder.mkdir()
    write(t.slice(0, 50), folder / "t-00000.parquet")
    write(t.slice(50), folder / "t-00001.parquet")
    (folder / "README.md").write_text("not one of them")
    want = drain(shapes, settings)
    for path in (folder, str(folder), sorted(folder.glob("*.parquet"))):
        samples = millrace.adapters.from_parquet(path)
        assert samples.classes == kinds
        assert drain(millrace.cache_records(samples, tmp_path / "kept"), settings) == want
    assert len(os.listdir(tmp_path / "kept")) == 1  # they know which data they are


def test_parquet_that_names_files(shapes, settings, tmp_path):
    """Files below the table's folder are read, others are not."""
    import shutil
    import millrace.adapters
    copy = tmp_path / "photos"
    shutil.copytree(shapes, copy)
    t, _ = table(shapes, "path")
    write(t, copy / "t.parquet")
    out = tmp_path / "o.mrec"
    millrace.write_records(out, millrace.adapters.from_parquet(copy / "t.parquet"))
    assert drain(out, settings) == drain(shapes, settings)
    write(t, tmp_path / "t.parquet")
    (tmp_path / "elsewhere").mkdir()
    shutil.copy(tmp_path / "t.parquet", tmp_path / "elsewhere" / "t.parquet")
    with pytest.raises(FileNotFoundError):
        millrace.write_records(out, millrace.adapters.from_parquet(tmp_path / "elsewhere" / "t.parquet"), force=True)
    import pyarrow as pa
    outside = pa.table({"image": pa.array([{"bytes": None, "path": "../photos/t.parquet"}])})
    write(outside, tmp_path / "elsewhere" / "out.parquet")
    with pytest.raises(millrace.ArgumentError, match="outside of its folder"):
        millrace.write_records(out, millrace.adapters.from_parquet(tmp_path / "elsewhere" / "out.parquet", label=None), force=True)


def test_parquet_errors(shapes, tmp_path):
    import millrace.adapters
    t, _ = table(shapes, "binary")
    write(t, tmp_path / "t.parquet")
    of = millrace.adapters.from_parquet
    with pytest.raises(millrace.ArgumentError, match="no column 'img'; there are: 'image', 'label', 'box'"):
        of(tmp_path / "t.parquet", image="img")
    with pytest.raises(millrace.ArgumentError, match="named twice"):
        of(tmp_path / "t.parquet", label="image")
    with pytest.raises(millrace.ArgumentError, match=r"no files \*.parquet"):
        (tmp_path / "empty").mkdir()
        of(tmp_path / "empty")
    with pytest.raises(millrace.ArgumentError, match="empty list"):
        of([])
    with pytest.raises(millrace.ArgumentError, match="sample 0, field 'label': found class .*, which is not one of the 1"):
        millrace.write_records(tmp_path / "o.mrec", of(tmp_path / "t.parquet", classes=["none of them"]))
    with pytest.raises(FileNotFoundError):
        of(tmp_path / "nothing.parquet")


# ---------------------------------------------------------------------- Hugging Face datasets

def dataset(shapes, kind):
    datasets = missing("datasets")
    there = pictures(shapes)
    kinds = sorted({p[2] for p in there})
    label = {"class": datasets.ClassLabel(names=kinds), "number": datasets.Value("int64"), "text": datasets.Value("string")}[kind]
    features = datasets.Features({"image": datasets.Image(), "label": label, "score": datasets.Value("float32")})
    rows = {"image": [{"bytes": p[1], "path": os.path.basename(p[0])} for p in there], "score": [k / 8 for k in range(len(there))],
            "label": [p[2] if kind == "text" else kinds.index(p[2]) for p in there]}
    return datasets.Dataset.from_dict(rows, features=features), kinds


@pytest.mark.parametrize("kind", ["class", "number", "text"])
def test_datasets(shapes, settings, tmp_path, kind):
    """The bytes of the pictures are kept, so batches equal the folder's."""
    import millrace.adapters
    ds, kinds = dataset(shapes, kind)
    samples = millrace.adapters.from_datasets(ds.with_format("numpy"), fields={"score": "float"})
    assert samples.count == 120 and samples.classes == (None if kind == "number" else kinds)
    out = tmp_path / "o.mrec"
    millrace.write_records(out, samples)
    assert drain(out, settings) == drain(shapes, settings)
    for b in millrace.Loader(out, fields=["score"], **dict(settings, order="sequential")):
        assert b.fields["score"].tolist() == [i / 8 for i in b.ids.tolist()]
        assert b.names == [os.path.basename(pictures(shapes)[i][0]) for i in b.ids.tolist()]
        del b


def test_datasets_of_files_and_kept(shapes, settings, tmp_path):
    """Pictures that are files, a shuffled part of the set, and the key that identifies them."""
    import millrace.adapters
    datasets = missing("datasets")
    there = pictures(shapes)
    kinds = sorted({p[2] for p in there})
    features = datasets.Features({"pic": datasets.Image(), "y": datasets.ClassLabel(names=kinds)})
    ds = datasets.Dataset.from_dict({"pic": [p[0] for p in there], "y": [p[2] for p in there]}, features=features)
    kept = tmp_path / "kept"
    path = millrace.cache_records(millrace.adapters.from_datasets(ds, image="pic", label="y"), kept)
    assert drain(path, settings) == drain(shapes, settings)
    assert millrace.cache_records(millrace.adapters.from_datasets(ds, image="pic", label="y"), kept) == path
    part = ds.shuffle(seed=1).select(range(50))
    other = millrace.cache_records(millrace.adapters.from_datasets(part, image="pic", label="y"), kept)
    assert other != path and millrace.inspect(other)["count"] == 50
    labels = sum((b.labels.tolist() for b in millrace.Loader(other, **dict(settings, order="sequential"))), [])
    assert labels == part["y"][:]


def test_datasets_streamed(shapes, settings, tmp_path):
    import millrace.adapters
    ds, _ = dataset(shapes, "class")
    samples = millrace.adapters.from_datasets(ds.to_iterable_dataset(num_shards=3))
    assert samples.count is None
    millrace.write_records(tmp_path / "o.mrec", samples)
    assert drain(tmp_path / "o.mrec", settings) == drain(shapes, settings)
    texts, kinds = dataset(shapes, "text")
    with pytest.raises(millrace.ArgumentError, match="say classes="):
        millrace.adapters.from_datasets(texts.to_iterable_dataset())
    assert millrace.adapters.from_datasets(texts.to_iterable_dataset(), classes=kinds).classes == kinds


def test_parquet_of_datasets(shapes, settings, tmp_path):
    """Class names stand in the file where Hugging Face's library wrote it."""
    import millrace.adapters
    ds, kinds = dataset(shapes, "class")
    ds.to_parquet(str(tmp_path / "t.parquet"))
    samples = millrace.adapters.from_parquet(tmp_path / "t.parquet")
    assert samples.classes == kinds
    millrace.write_records(tmp_path / "o.mrec", samples)
    assert drain(tmp_path / "o.mrec", settings) == drain(shapes, settings)


def named_file(path, texts, names):
    """Rows of one pixel each, whose label is texts[k], with the names in this order in the file's words."""
    pa = missing("pyarrow")
    about = {"info": {"features": {"label": {"names": names, "_type": "ClassLabel"}}}}
    rows = {"image": [b"\xff\xd8\xff"] * len(texts), "label": [names.index(t) for t in texts] if names else texts}
    write(pa.table(rows).replace_schema_metadata({"huggingface": __import__("json").dumps(about)} if names else None), path)
    return texts


def numbered(samples):
    """The names that write_records() gives the labels."""
    return [s["label"] if isinstance(s["label"], str) else samples.classes[s["label"]] for s in samples]


def test_names_in_other_orders(shapes, settings, tmp_path):
    """Labels go by name, whatever the order of the names in each file and in classes=."""
    import millrace.adapters
    of = millrace.adapters.from_parquet
    want = named_file(tmp_path / "0.parquet", ["cat", "dog", "bird"], ["cat", "dog", "bird"])
    want = want + named_file(tmp_path / "1.parquet", ["cat", "fox", "bird"], ["bird", "fox", "cat"])
    files = [tmp_path / "0.parquet", tmp_path / "1.parquet"]
    assert of(files).classes == ["cat", "dog", "bird", "fox"] and numbered(of(files)) == want
    other = ["fox", "bird", "dog", "cat"]
    assert of(files, classes=other).classes == other and numbered(of(files, classes=other)) == want
    with pytest.raises(millrace.ArgumentError, match="1.parquet names its classes .*'fox' is not among the names given"):
        of(files, classes=["cat", "dog", "bird"])
    named_file(tmp_path / "2.parquet", [0, 1], None)
    with pytest.raises(millrace.ArgumentError, match="0.parquet has numbers with names, and .*2.parquet has numbers: nothing says"):
        of(files + [tmp_path / "2.parquet"])
    ds, kinds = dataset(shapes, "class")
    turned = kinds[::-1]
    for samples in (millrace.adapters.from_datasets(ds, classes=turned), millrace.adapters.from_datasets(ds)):
        millrace.write_records(tmp_path / "o.mrec", samples, classes=turned, force=True)
        loader = millrace.Loader(tmp_path / "o.mrec", **dict(settings, order="sequential"))
        assert loader.classes == turned
        assert sum(([turned[k] for k in b.labels.tolist()] for b in loader), []) == [kinds[k] for k in ds["label"]]
    with pytest.raises(millrace.ArgumentError, match="the data set names its classes"):
        millrace.adapters.from_datasets(ds, classes=["none of them"])


def test_splits_of_a_folder(tmp_path, caplog):
    """A folder as Hugging Face's data come: one split is taken, and a line names the others."""
    import millrace.adapters
    of = millrace.adapters.from_parquet
    for name in ("train-00000-of-00002", "train-00001-of-00002", "validation-00000-of-00001", "test-00000-of-00001"):
        named_file(tmp_path / (name + ".parquet"), [name], [name])
    assert numbered(of(tmp_path)) == ["train-00000-of-00002", "train-00001-of-00002"]
    assert "left out: test-00000-of-00001.parquet, validation-00000-of-00001.parquet" in caplog.text
    assert numbered(of(tmp_path, split="test")) == ["validation-00000-of-00001"]
    assert numbered(of(sorted(tmp_path.glob("t*.parquet")), split="test")) == ["test-00000-of-00001"]
    caplog.clear()
    assert of(sorted(tmp_path.glob("*.parquet"))).count == 4 and "several splits: test, train, validation" in caplog.text
    with pytest.raises(millrace.ArgumentError, match="split='val': expected 'auto', 'train' or 'test'"):
        of(tmp_path, split="val")
    for f in tmp_path.glob("train*"):
        f.unlink()
    with pytest.raises(millrace.ArgumentError, match="no files of the split 'train'; there are: test-00000"):
        of(tmp_path)


def test_datasets_errors(shapes):
    import millrace.adapters
    ds, _ = dataset(shapes, "number")
    of = millrace.adapters.from_datasets
    import datasets
    with pytest.raises(millrace.ArgumentError, match=r"2 splits: give one of them, such as ds\['train'\]"):
        of(datasets.DatasetDict({"train": ds, "test": ds}))
    with pytest.raises(millrace.ArgumentError, match="no column 'x'; there are: 'image', 'score', 'label'"):
        of(ds, label="x")
    with pytest.raises(millrace.ArgumentError, match="would be taken for another"):
        of(ds.rename_column("label", "y").rename_column("score", "label"), label="y", fields={"label": "float"})
