#!/usr/bin/env python3
"""Large photographs for benchmarks: mosaics of smaller ones, by libjpeg-turbo's djpeg and cjpeg.

usage: bench/mosaics.py FOLDER TO [--count 16]

Each mosaic has 4,000 x 3,000 pixels: 8 x 8 cells of 500 x 375, each the middle of a photograph of FOLDER at its own size, quality 90,
4:2:0, in the class folder `mosaic`. Photographs smaller than a cell are left out. The same FOLDER and programs give the same bytes.
"""
import argparse
import os
import re
import sys

from ours import jpeg_files
from rounds import Absent, call

CELL = 500, 375
CELLS = 8, 8
QUALITY = 90
CLASS = "mosaic"
COUNT = 16


def pixels_of(ppm):
    """Width, height and RGB bytes of a binary PPM file.

    >>> pixels_of(b"P6\\n2 1\\n255\\n......")
    (2, 1, b'......')
    """
    found = re.match(rb"P6\s+(\d+)\s+(\d+)\s+255\s", ppm)
    if not found:
        raise Absent("djpeg did not write a PPM file of 8-bit RGB")
    return int(found[1]), int(found[2]), ppm[found.end():]


def middle(width, height, pixels, cell=CELL):
    """The rows of the cell in the middle of a picture; None if the picture is smaller.

    >>> middle(3, 2, bytes(range(18)), (1, 2))
    [b'\\x03\\x04\\x05', b'\\x0c\\r\\x0e']
    >>> middle(3, 2, bytes(18), (4, 1)) is None
    True
    """
    wide, high = cell
    if width < wide or height < high:
        return None
    left, top = (width - wide) // 2, (height - high) // 2
    at = [3 * ((top + row) * width + left) for row in range(high)]
    return [pixels[k:k + 3 * wide] for k in at]


def read_pixels(path, ppm):
    """Width, height and RGB bytes of a JPEG file; ppm: the path of a temporary file."""
    call(["djpeg", "-rgb", "-pnm", "-outfile", ppm, path], 60)
    with open(ppm, "rb") as f:
        return pixels_of(f.read())


def cells(files, ppm):
    """Cells without end, from one photograph after the other."""
    found = True
    while found:
        found = False
        for path in files:
            cell = middle(*read_pixels(path, ppm))
            if cell:
                found = True
                yield cell
    raise Absent(f"expected photographs of {CELL[0]} x {CELL[1]} pixels or more, found none")


def write_mosaics(folder, to, count=COUNT):
    """`count` mosaics of the photographs in `folder`, all of one class, in the new folder `to`."""
    half = f"{to}.half"
    os.makedirs(os.path.join(half, CLASS), exist_ok=True)
    one = os.path.join(half, "one.ppm")
    cell = cells(jpeg_files(folder), one)
    width, height = CELL[0] * CELLS[0], CELL[1] * CELLS[1]
    for number in range(count):
        path = os.path.join(half, CLASS, f"{number:03}")
        with open(f"{path}.ppm", "wb") as f:
            f.write(f"P6\n{width} {height}\n255\n".encode())
            for _ in range(CELLS[1]):
                line = [next(cell) for _ in range(CELLS[0])]
                f.write(b"".join(part for row in zip(*line) for part in row))
        call(["cjpeg", "-quality", str(QUALITY), "-sample", "2x2", "-outfile", f"{path}.jpg", f"{path}.ppm"], 60)
        os.unlink(f"{path}.ppm")
    os.unlink(one)
    os.rename(half, to)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("to")
    parser.add_argument("--count", type=int, default=COUNT)
    args = parser.parse_args()
    try:
        write_mosaics(args.folder, args.to, args.count)
    except (Absent, OSError) as why:
        sys.exit(str(why))


if __name__ == "__main__":
    main()
