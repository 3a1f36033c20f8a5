"""Makes tests/fuzz/corpus/tar: corpus_tar.py FOLDER. Archives as Python's tarfile writes them, in each of its formats."""
import gzip
import io
import os
import sys
import tarfile

JPEG = b"\xff\xd8\xff\xe0"
PNG = b"\x89PNG\r\n\x1a\n"


def archive(members, form=tarfile.USTAR_FORMAT, blocks=2, **kw):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form, **kw) as tar:
        for name, data in members:
            info = tarfile.TarInfo(name)
            if isinstance(data, bytes):
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
            else:
                info.type = data
                info.linkname = "a.jpg"
                tar.addfile(info)
        end = tar.offset
    return out.getvalue()[:end + 512 * blocks]


PAIR = [("a.jpg", JPEG), ("a.cls", b"3"), ("b.png", PNG), ("b.cls", b"0\n")]
LONG = "d/" * 70 + "n" * 120
FILES = {
    "pair": (1, archive(PAIR)),
    "json": (3, archive([("a.seg.png", PNG), ("a.json", b'{"Species": 4, "label": [1, {"x": null}]}'), ("a.txt", "ü".encode())])),
    "gnu": (1, archive([(LONG + ".jpg", JPEG), (LONG + ".cls", b"1")], tarfile.GNU_FORMAT)),
    "pax": (1, archive([(LONG + ".jpg", JPEG), (LONG + ".cls", b"1")], tarfile.PAX_FORMAT, pax_headers={"comment": "x"})),
    "classes": (1, archive([("__classes__", b"ant\nbee\ncat\ndog\n"), *PAIR])),
    "classes-twice": (1, archive([("__classes__", b"ant\nbee\n"), ("a.jpg", JPEG), ("__classes__", b"ant\n\0")])),
    "link-first": (1, archive([("a.jpg", tarfile.SYMTYPE), ("b.jpg", tarfile.LNKTYPE), ("b.cls", b"1"), ("a.png", tarfile.SYMTYPE), ("a.cls", b"0")])),
    "prefix": (1, archive([("d" * 90 + "/" + "n" * 80 + ".jpg", JPEG)])),
    "links": (1, archive([("a.jpg", JPEG), ("a.l", tarfile.LNKTYPE), ("a.s", tarfile.SYMTYPE), ("a.f", tarfile.FIFOTYPE),
                          ("a.c", tarfile.CHRTYPE), ("d", tarfile.DIRTYPE), ("a.cls", b"1")])),
    "again": (1, archive([("../a.jpg", JPEG), ("/b.jpg", JPEG), ("../a.cls", b"-1"), ("c.jpg", b""), ("c.JPG", JPEG), (".h", b"")], blocks=0)),
    "dotted": (1, archive([(f"cat.{k}.{e}", d) for k in range(3) for e, d in (("jpg", JPEG), ("cls", b"1"))])),
    "dotted-pair": (1, archive([("a.left.jpg", JPEG), ("a.right.jpg", JPEG), ("a.cls", b"1")])),
    "dotted-both": (1, archive([("x.rf.1.jpg", JPEG), ("x.rf.1.cls", b"1"), ("b.jpg", JPEG), ("b.boxes.npy", b"x")])),
    "packed": (0, gzip.compress(archive(PAIR), mtime=0)),
    "sparse": (1, archive([("a.jpg", JPEG)]).replace(b"0" + bytes(100) + b"ustar", b"S" + bytes(100) + b"ustar")),
    "base256": (1, archive([("a.jpg", JPEG)]).replace(b"00000000004\0", b"\x80" + bytes(10) + b"\4")),
    "name": (4, bytes(5) + b"\2\0\0" + ("d/" * 100 + "ü" * 40).encode()),
}

os.makedirs(sys.argv[1], exist_ok=True)
for name, (mode, data) in FILES.items():
    with open(os.path.join(sys.argv[1], name), "wb") as f:
        f.write(bytes([mode]) + data)
