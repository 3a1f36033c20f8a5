"""millrace.adapters: samples of data sets that other libraries read, for write_records() and cache_records().

    import datasets, millrace.adapters
    photos = millrace.adapters.from_datasets(datasets.load_dataset("someone/photos", split="train"))
    millrace.write_records("photos.mrec", photos)

The libraries are imported when a function here is called. Pictures keep the bytes of their files."""
from __future__ import annotations

import json
import os
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, Union

from ._errors import ArgumentError
from ._records import Samples

__all__ = ["from_datasets", "from_parquet"]

_ROWS = 64  # of a Parquet file in memory at a time, in addition to its packed row group


def _columns(there: Iterable[str], image: str, label: Optional[str], fields: Optional[Dict[str, str]], what: str) -> List[str]:
    wanted = [image] + ([label] if label is not None else []) + list(fields or ())
    known = list(there)
    for name in wanted:
        if name not in known:
            raise ArgumentError("%s has no column %r; there are: %s" % (what, name, ", ".join(map(repr, known))))
    if len(set(wanted)) != len(wanted):
        raise ArgumentError("a column is named twice: %s" % ", ".join(map(repr, wanted)))
    return wanted


def _schema(label: Optional[str], fields: Optional[Dict[str, str]]) -> Dict[str, str]:
    schema = {"image": "image"}
    if label is not None:
        schema["label"] = "int"
    for name, kind in (fields or {}).items():
        if name in ("image", "label", "sample.name"):
            raise ArgumentError("fields: a column called %r would be taken for another one; rename it" % name)
        schema[name] = kind
    schema["sample.name"] = "bytes"
    return schema


def _name_of(path: Any) -> str:
    return os.path.basename(path) if isinstance(path, str) else ""


def _sample(row: Dict[str, Any], image: str, label: Optional[str], fields: Optional[Dict[str, str]], read: Any) -> Dict[str, Any]:
    cell, path = row[image], None
    if isinstance(cell, dict):
        path, cell = cell.get("path"), cell.get("bytes")
        if cell is None and path:
            cell = read(path)
    out = {name: row[name] for name in fields or ()}
    out.update({"image": cell, "sample.name": _name_of(path)})
    if label is not None:
        out["label"] = row[label]
    return out


def _read(path: str) -> bytes:
    with open(path, "rb") as f:
        return f.read()


# ---------------------------------------------------------------------- Hugging Face datasets

def from_datasets(ds: Any, *, image: str = "image", label: Optional[str] = "label", fields: Optional[Dict[str, str]] = None,
                  classes: Optional[Sequence[str]] = None) -> Samples:
    """Samples of a Hugging Face `datasets.Dataset` or `IterableDataset`, one split of it.

    image    the column with pictures: an Image feature, whose files are not decoded, or bytes
    label    the column with the class: a ClassLabel, which has names, numbers, or texts. None: no labels, also for a split whose
             labels are all -1
    fields   {column: kind} of columns to keep beside these, kinds as for write_records()
    classes  names of the classes in the order of their numbers, where the column has texts; None: the sorted texts there are, for
             which a Dataset is gone through

    Gives Samples, with the data set's fingerprint as their key. Where the pictures' files have names, batch.names has them."""
    import datasets
    if isinstance(ds, dict):
        raise ArgumentError("these are %d splits: give one of them, such as ds[%r]" % (len(ds), next(iter(ds), "train")))
    features = ds.features
    if features is None:
        raise ArgumentError("the data set does not know its columns: ds.cast(features) says them")
    wanted = _columns(features, image, label, fields, "the data set")
    if isinstance(features[image], datasets.Image):
        ds = ds.cast_column(image, datasets.Image(decode=False))
    ds = ds.select_columns(wanted).with_format(None)
    if label is not None:
        kind = features[label]
        if isinstance(kind, datasets.ClassLabel):
            classes = kind.names if classes is None else classes
        elif getattr(kind, "dtype", "").endswith("string") and classes is None:
            if not hasattr(ds, "unique"):
                raise ArgumentError("column %r has texts, and the data set is read as a stream: say classes=, their names" % label)
            classes = sorted(ds.unique(label))

    def begin() -> Iterator[Any]:
        return (_sample(row, image, label, fields, _read) for row in ds)
    mark = getattr(ds, "_fingerprint", None)
    return Samples(begin, _schema(label, fields), classes, len(ds) if hasattr(ds, "__len__") else None,
                   "datasets %s" % mark if mark else None)


# ---------------------------------------------------------------------- Parquet

def _files(path: Any) -> List[str]:
    if isinstance(path, (str, bytes, os.PathLike)):
        one = os.fsdecode(path)
        if not os.path.isdir(one):
            return [one]
        found = sorted(os.path.join(one, n) for n in os.listdir(one) if n.endswith(".parquet"))
        if not found:
            raise ArgumentError("%s: no files *.parquet in this folder" % one)
        return found
    files = [os.fsdecode(p) for p in path]
    if not files:
        raise ArgumentError("an empty list of Parquet files")
    return files


def _names_kept(schema: Any, label: str) -> Optional[List[str]]:
    """Class names that Hugging Face's library keeps in a Parquet file's own words."""
    try:
        about = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"][label]
        return list(about["names"]) if about.get("_type") == "ClassLabel" else None
    except (KeyError, TypeError, ValueError):
        return None


def _below(folder: str, path: str) -> bytes:
    """A file that a table names: only one of its own folder, because the author of the table must not choose the files that are read here."""
    root = os.path.realpath(folder)
    real = os.path.realpath(os.path.join(root, path))
    if os.path.commonpath([root, real]) != root:
        raise ArgumentError("the table names the file %r, which is outside of its folder %s" % (path, root))
    return _read(real)


def _classes_in(files: List[str], label: str) -> List[str]:
    import pyarrow.compute
    import pyarrow.parquet
    found = set()
    for name in files:
        with pyarrow.parquet.ParquetFile(name) as f:
            for batch in f.iter_batches(columns=[label]):
                found.update(pyarrow.compute.unique(batch.column(0)).to_pylist())
    found.discard(None)
    return sorted(found)


def _look(files: List[str], image: str, label: Optional[str], fields: Optional[Dict[str, str]],
          classes: Optional[Sequence[str]]) -> Tuple[int, Optional[Sequence[str]], List[str]]:
    """Rows, classes, columns."""
    import pyarrow
    import pyarrow.parquet
    rows, wanted = 0, []
    for name in files:
        with pyarrow.parquet.ParquetFile(name) as f:
            schema = f.schema_arrow
            rows += f.metadata.num_rows
            wanted = _columns(schema.names, image, label, fields, name)
            if label is not None and classes is None:
                kind = schema.field(label).type
                kind = kind.value_type if pyarrow.types.is_dictionary(kind) else kind
                classes = _names_kept(schema, label)
                if classes is None and (pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind)):
                    classes = _classes_in(files, label)
    return rows, classes, wanted


def from_parquet(path: Union[Any, Sequence[Any]], *, image: str = "image", label: Optional[str] = "label",
                 fields: Optional[Dict[str, str]] = None, classes: Optional[Sequence[str]] = None) -> Samples:
    """Samples of Parquet files, read by pyarrow some rows at a time.

    path     a file, a list of files in order, or a folder, whose *.parquet are taken in the order of their names
    image    the column with pictures: binary, or a struct of bytes and path, as Hugging Face's library writes it. A path without
             bytes is a file below the Parquet file's folder
    label    the column with the class: whole numbers, or texts. None: no labels
    fields   {column: kind} of columns to keep beside these, kinds as for write_records(); lists of numbers become arrays
    classes  names of the classes in the order of their numbers. None: the names that the file stores for the column as Hugging Face's
             library does; else, of a column of texts, the sorted texts there are, for which it is gone through

    Gives Samples, whose key are the files' paths, sizes and times."""
    import pyarrow.parquet
    files = _files(path)
    rows, classes, wanted = _look(files, image, label, fields, classes)

    def begin() -> Iterator[Any]:
        for name in files:
            folder = os.path.dirname(os.path.abspath(name))
            with pyarrow.parquet.ParquetFile(name) as f:
                for batch in f.iter_batches(batch_size=_ROWS, columns=wanted):
                    for row in batch.to_pylist():
                        yield _sample(row, image, label, fields, lambda p, folder=folder: _below(folder, p))
    stats = [os.stat(name) for name in files]
    key = json.dumps(["parquet", image, label, [(os.path.abspath(n), s.st_size, s.st_mtime_ns) for n, s in zip(files, stats)]])
    return Samples(begin, _schema(label, fields), classes, rows, key)
