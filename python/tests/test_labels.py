"""Labels keep the numbers, or the names, that the data give them."""
import io
import struct
import tarfile
import zlib

import millrace
import millrace.adapters
import pytest

KINDS = {
    "from 0": ([0, 1, 2, 3], None),
    "from 1": ([1, 2, 3, 1], None),
    "class 0 missing": ([2, 1, 3, 3], None),
    "gaps": ([100, 200, 100, 300], None),
    "names": (["cat", "dog", "ant", "cat"], ["ant", "cat", "dog"]),
    "numbers as names": (["0", "10", "2", "11"], ["0", "10", "11", "2"]),
    "padded": (["007", "010", "002", "007"], ["002", "007", "010"]),
}


def picture(value):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    row = b"\0" + bytes([value] * 4)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 4, 4, 8, 0, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(row * 4)) + chunk(b"IEND", b""))


def write_tar(path, labels):
    with tarfile.open(path, "w") as tar:
        for k, label in enumerate(labels):
            for name, data in (("%d.png" % k, picture(k)), ("%d.cls" % k, b"%d" % label)):
                info = tarfile.TarInfo(name)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))


def delivered(path):
    """A loader's name of each sample's class, in the data's order."""
    with millrace.Loader(path, batch=8, augment="resize(4x4)", order="sequential") as loader:
        labels = [label for batch in loader for label in batch.labels.tolist()]
        return [loader.classes[label] for label in labels] if loader.classes else labels


@pytest.mark.parametrize("labels", [KINDS[k][0] for k in ("from 0", "from 1", "class 0 missing", "gaps")])
def test_numbers_of_a_tar_stay(labels, tmp_path):
    path = tmp_path / "a.tar"
    write_tar(path, labels)
    assert delivered(path) == labels
    millrace.convert(path, tmp_path / "a.mrec")
    assert delivered(tmp_path / "a.mrec") == labels
    millrace.convert(tmp_path / "a.mrec", tmp_path / "b.tar", kind="tar")
    assert delivered(tmp_path / "b.tar") == labels
    assert millrace.inspect(tmp_path / "b.tar")["label_offset"] == 0


@pytest.mark.parametrize("kind", KINDS)
def test_parquet(kind, tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    labels, names = KINDS[kind]
    table = pa.table({"image": [picture(k) for k in range(len(labels))], "label": labels})
    parquet.write_table(table, tmp_path / "a.parquet")
    samples = millrace.adapters.from_parquet(tmp_path / "a.parquet")
    millrace.write_records(tmp_path / "a.mrec", samples, schema=samples.schema, classes=samples.classes)
    assert delivered(tmp_path / "a.mrec") == labels
    assert millrace.inspect(tmp_path / "a.mrec")["classes"] == (names or [])
    millrace.convert(tmp_path / "a.mrec", tmp_path / "b.tar", kind="tar")
    assert delivered(tmp_path / "b.tar") == labels


def test_one_class_is_told(tmp_path):
    write_tar(tmp_path / "a.tar", [4, 4, 4])
    assert "all 3 samples have one class, 4" in millrace.inspect(tmp_path / "a.tar")["told"]
