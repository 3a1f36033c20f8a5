#!/usr/bin/env python3
"""Every file that the library or the command makes, or gives a name, goes through formats/storage/output.c or kept.c. Fails on a
call elsewhere in C sources that makes, truncates or renames a file; comments and texts do not count.

usage: check_writes.py [FOLDER]      default: the tree this script belongs to"""
import pathlib
import re
import sys

ROOMS = ("base", "formats", "kernels", "pipeline", "ranks", "settings", "tools", "train")
ROAD = {"formats/storage/output.c", "formats/storage/kept.c"}
CALLS = re.compile(
    r"\bO_CREAT\b|\bO_TMPFILE\b|\bO_TRUNC\b|\bfopen(64)?\s*\([^;]*\"[rbe]*[wa+][^\"]*\"|\bfreopen\s*\(|\bcreat\s*\(|\brename(at2?)?\s*\("
    r"|\blink(at)?\s*\(|\bsymlink(at)?\s*\(|\bmk(o?s?temps?|nod|nodat|fifo)\s*\(|\btmpfile\s*\(")
# Calls that only give a name, and why they may.
ELSEWHERE = {
    ("train/state/folder.c", "link"): "a second name for a checkpoint that is whole; the name it takes goes through kept.c",
    ("formats/remote/remote_view.c", "symlinkat"): "names in a private folder for files that kept.c has made",
}


def without_comments(text):
    """The same lines; of texts only the modes of fopen() are looked at, so texts stay."""
    return re.sub(r"/\*.*?\*/|//[^\n]*", lambda found: re.sub(r"[^\n]", " ", found.group()), text, flags=re.DOTALL)


def found_in(root):
    for room in ROOMS:
        for path in sorted((root / room).rglob("*.[ch]")):
            name = path.relative_to(root).as_posix()
            if name in ROAD:
                continue
            text = without_comments(path.read_text(encoding="utf-8"))
            for call in CALLS.finditer(text):
                word = re.match(r"\w+", call.group()).group()
                if (name, word) not in ELSEWHERE:
                    yield f"{name}:{text.count(chr(10), 0, call.start()) + 1}: {word}: files are made by formats/storage/output.h or kept.h"


def main():
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2]
    if not (root / "formats").is_dir():
        print(f"{root}: no tree of this project", file=sys.stderr)
        return 2
    complaints = list(found_in(root))
    print("\n".join(complaints) or "no complaints")
    return bool(complaints)


if __name__ == "__main__":
    sys.exit(main())
