"""millrace.adapters: samples of data sets that other libraries read, for write_records() and cache_records().

    import datasets, millrace.adapters
    photos = millrace.adapters.from_datasets(datasets.load_dataset("someone/photos", split="train"))
    millrace.write_records("photos.mrec", photos)

The libraries are imported when a function here is called. Pictures keep the bytes of their files."""
from __future__ import annotations

import json
import os
import re
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, Union

from ._errors import ArgumentError
from ._loader import log
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


def _named_all(names: Sequence[str], classes: Sequence[str], what: str) -> None:
    """The labels go by their names: has each name of the data a number in classes=?"""
    lacking = [n for n in names if n not in classes]
    if lacking:
        raise ArgumentError("classes=: %s names its classes %s, and %s %s not among the names given: %s. Leave classes= out, or write records "
                            "and give rename_classes= when they are read"
                            % (what, ", ".join(map(repr, names)), ", ".join(map(repr, lacking)), "are" if len(lacking) > 1 else "is",
                               ", ".join(map(repr, classes))))


def _sample(row: Dict[str, Any], image: str, label: Optional[str], fields: Optional[Dict[str, str]], read: Any,
            names: Optional[Sequence[str]]) -> Dict[str, Any]:
    """names: of the numbers in `row`. The label is then the name, so that it does not depend on the order of these names."""
    cell, path = row[image], None
    if isinstance(cell, dict):
        path, cell = cell.get("path"), cell.get("bytes")
        if cell is None and path:
            cell = read(path)
    out = {name: row[name] for name in fields or ()}
    out.update({"image": cell, "sample.name": _name_of(path)})
    if label is not None:
        number = row[label]
        out["label"] = names[number] if names and isinstance(number, int) and 0 <= number < len(names) else number
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
    classes  names of the classes in the order of their numbers. The labels of a ClassLabel and of texts go by name: each name of the
             data must be among these. None: the names of the ClassLabel; else the sorted texts there are, for which a Dataset is
             gone through

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
    names: Optional[List[str]] = None
    if label is not None:
        kind = features[label]
        if isinstance(kind, datasets.ClassLabel):
            names = list(kind.names)
            classes = names if classes is None else list(classes)
            _named_all(names, classes, "the data set")
        elif getattr(kind, "dtype", "").endswith("string") and classes is None:
            if not hasattr(ds, "unique"):
                raise ArgumentError("column %r has texts, and the data set is read as a stream: say classes=, their names" % label)
            classes = sorted(ds.unique(label))

    def begin() -> Iterator[Any]:
        return (_sample(row, image, label, fields, _read, names) for row in ds)
    mark = getattr(ds, "_fingerprint", None)
    return Samples(begin, _schema(label, fields), classes, len(ds) if hasattr(ds, "__len__") else None,
                   "datasets%s %s" % (" by name" if names else "", mark) if mark else None)


# ---------------------------------------------------------------------- Parquet

_PARTS = {"train": "train", "training": "train", "val": "validation", "valid": "validation", "validation": "validation",
          "validating": "validation", "eval": "validation", "dev": "validation", "test": "test", "testing": "test"}


def _part_of(name: str) -> str:
    """The split that a file's name says, "" where it says none or several."""
    words = re.findall(r"[^\W\d_]+", os.path.basename(name).lower())
    found = {_PARTS[w] for w in words if w in _PARTS}
    return found.pop() if len(found) == 1 else ""


def _taken(files: List[str], split: str, what: str) -> List[str]:
    """The files of the split that is asked for. A line says what else is there."""
    if split not in ("auto", "train", "test"):
        raise ArgumentError("split=%r: expected 'auto', 'train' or 'test'" % (split,))
    parts: Dict[str, List[str]] = {}
    for f in files:
        parts.setdefault(_part_of(f), []).append(f)
    if "" in parts and "train" not in parts and len(parts) > 1:  # what names no split is not to be left out
        parts["train"] = parts.pop("")
    there = [p for p in ("train", "validation", "test") if p in parts]
    part = "train" if split != "test" else "validation" if "validation" in there else "test"
    if split == "auto" and len(there) == 1:
        part = there[0]
    if split == "auto" and not there:
        return files
    if part not in parts:
        raise ArgumentError("%s: no files of the split %r; there are: %s. Name another split, leave split= out, or give the list of files"
                            % (what, part, ", ".join(os.path.basename(f) for f in files)))
    left = [f for f in files if f not in parts[part]]
    if left:
        log.warning("%s: %d files are the split %r; left out: %s. split='test' takes validation data; a list of files takes these files",
                    what, len(parts[part]), part, ", ".join(os.path.basename(f) for f in left))
    return parts[part]


def _files(path: Any, split: str) -> List[str]:
    if isinstance(path, (str, bytes, os.PathLike)):
        one = os.fsdecode(path)
        if not os.path.isdir(one):
            return [one] if split == "auto" else _taken([one], split, one)
        found = sorted(os.path.join(one, n) for n in os.listdir(one) if n.endswith(".parquet"))
        if not found:
            raise ArgumentError("%s: no files *.parquet in this folder" % one)
        return _taken(found, split, one)
    files = [os.fsdecode(p) for p in path]
    if not files:
        raise ArgumentError("an empty list of Parquet files")
    if split != "auto":
        return _taken(files, split, "the list of files")
    parts = sorted({_part_of(f) for f in files} - {""})
    if len(parts) > 1:
        log.warning("the list of files has files of several splits: %s; all are taken. split= takes one", ", ".join(parts))
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


def _kind_of(schema: Any, label: str) -> str:
    import pyarrow
    kind = schema.field(label).type
    kind = kind.value_type if pyarrow.types.is_dictionary(kind) else kind
    return "texts" if pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind) else "numbers"


class _Labels:
    """What the labels of several files are: texts, numbers with names, which are taken by name, or numbers alone."""

    def __init__(self) -> None:
        self.names: List[Optional[List[str]]] = []  # of each file's numbers
        self._first = self._kind = ""

    def add(self, schema: Any, label: str, file: str) -> None:
        names = _names_kept(schema, label)
        kind = "numbers with names" if names else _kind_of(schema, label)
        if not self._kind:
            self._first, self._kind = file, kind
        elif (kind == "numbers") != (self._kind == "numbers"):
            raise ArgumentError("column %r: %s has %s, and %s has %s: nothing says which are the same classes. Give files of one kind"
                                % (label, self._first, self._kind, file, kind))
        self.names.append(names)

    def classes(self, files: List[str], label: str, given: Optional[Sequence[str]]) -> Optional[List[str]]:
        if given is not None:
            for file, names in zip(files, self.names):
                _named_all(names or [], list(given), file)
            return list(given)
        if self._kind == "numbers":
            return None
        all_names = list(dict.fromkeys(n for names in self.names for n in names or []))  # as the first file has them, then others
        texts = _classes_in([f for f, names in zip(files, self.names) if not names], label)
        return all_names + [t for t in texts if t not in all_names]


def _look(files: List[str], image: str, label: Optional[str],
          fields: Optional[Dict[str, str]]) -> Tuple[int, _Labels, List[str]]:
    """Rows, labels, columns."""
    import pyarrow.parquet
    rows, labels, wanted = 0, _Labels(), []
    for name in files:
        with pyarrow.parquet.ParquetFile(name) as f:
            rows += f.metadata.num_rows
            wanted = _columns(f.schema_arrow.names, image, label, fields, name)
            if label is not None:
                labels.add(f.schema_arrow, label, name)
    return rows, labels, wanted


def from_parquet(path: Union[Any, Sequence[Any]], *, image: str = "image", label: Optional[str] = "label",
                 fields: Optional[Dict[str, str]] = None, classes: Optional[Sequence[str]] = None, split: str = "auto") -> Samples:
    """Samples of Parquet files, read by pyarrow some rows at a time.

    path     a file, a list of files in order, or a folder, whose *.parquet are taken in the order of their names
    split    of files whose names say splits ("train-00000-of-00002.parquet"), as for Loader: "train"; "test", the validation files,
             and the test files only without validation files; "auto", of a folder the train split, of a list all. A line in the log
             of "millrace" names the files that are left out
    image    the column with pictures: binary, or a struct of bytes and path, as Hugging Face's library writes it. A path without
             bytes is a file below the Parquet file's folder
    label    the column with the class: whole numbers, or texts. None: no labels
    fields   {column: kind} of columns to keep beside these, kinds as for write_records(); lists of numbers become arrays
    classes  names of the classes in the order of their numbers. None: the names that the files store for the column as Hugging
             Face's library does, the first file's first; else, of a column of texts, the sorted texts there are, for which it is
             gone through. Labels with names go by name: files may have the names in different orders, and each name must be
             among classes=

    Gives Samples, whose key are the files' paths, sizes and times."""
    import pyarrow.parquet
    files = _files(path, split)
    rows, labels, wanted = _look(files, image, label, fields)
    if label is not None:
        classes = labels.classes(files, label, classes)
    names = labels.names if label is not None else [None] * len(files)

    def begin() -> Iterator[Any]:
        for name, own in zip(files, names):
            folder = os.path.dirname(os.path.abspath(name))
            with pyarrow.parquet.ParquetFile(name) as f:
                for batch in f.iter_batches(batch_size=_ROWS, columns=wanted):
                    for row in batch.to_pylist():
                        yield _sample(row, image, label, fields, lambda p, folder=folder: _below(folder, p), own)
    stats = [os.stat(name) for name in files]
    key = json.dumps(["parquet by name", image, label, [(os.path.abspath(n), s.st_size, s.st_mtime_ns) for n, s in zip(files, stats)]])
    return Samples(begin, _schema(label, fields), classes, rows, key)
