"""Makes tests/fuzz/corpus/archive: corpus_archive.py FOLDER. Class folders in tar and zip archives."""
import gzip
import io
import os
import sys
import tarfile
import zipfile

JPEG = b"\xff\xd8\xff\xe0"
PNG = b"\x89PNG\r\n\x1a\n"
SET = [("d/train/a/0.jpg", JPEG), ("d/train/a/1.png", PNG), ("d/train/b/0", PNG), ("d/train/b/1.gif", JPEG), ("d/val/b/0.jpg", JPEG), ("d/x.txt", b"x")]


def tar(members, kind=None):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        if kind:
            info = tarfile.TarInfo("d/train/a/link.jpg")
            info.type, info.linkname = kind, "0.jpg"
            archive.addfile(info)
        end = archive.offset
    return out.getvalue()[:end + 1024]


def packed(members, method):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in members:
            archive.writestr(zipfile.ZipInfo(name), data, method)
    return out.getvalue()


FILES = {
    "tar": (0, tar(SET)),
    "tar-sums": (1, tar(SET)),
    "tar-depth": (7, tar(SET)),
    "tar-links": (3, tar(SET, tarfile.SYMTYPE)),
    "tar-twice": (3, tar(SET + SET[:1])),
    "tar-out": (3, tar(SET + [("../e/0.jpg", JPEG), ("/f/0.jpg", JPEG)])),
    "tar-inner": (2, tar([("a/images/0.jpg", JPEG), ("b/images/1.jpg", JPEG)])),
    "tars": (1, tar([("a.tar", tar([("0.jpg", JPEG)])), ("b.tar", tar([("0.jpg", PNG)]))])),
    "tar-gz": (0, gzip.compress(tar(SET), mtime=0)),
    "zip": (0, packed(SET, zipfile.ZIP_STORED)),
    "zip-deflated": (2, packed(SET, zipfile.ZIP_DEFLATED)),
    "zip-mac": (2, packed(SET + [("__MACOSX/d/train/a/._0.jpg", b"x"), ("d/empty/", b"")], zipfile.ZIP_STORED)),
}

os.makedirs(sys.argv[1], exist_ok=True)
for name, (mode, data) in FILES.items():
    with open(os.path.join(sys.argv[1], name), "wb") as f:
        f.write(bytes([mode]) + data)
