#!/usr/bin/env python3
"""Finds functions and variables that are global and used in no other file: they should be static, or go.

check_globals.py BUILD    one line a finding; exit status 1 when there is one

Reads the object files of a build without sanitizers. Public names (mr_, mrp_) are the programs'; what tests use is used."""

import collections
import os
import re
import subprocess
import sys

ROOMS = ("base", "settings", "formats", "kernels", "ranks", "pipeline", "train", "tools", "python")
# public, main(), and symbols that the assembler takes by name in its own file
USED_ELSEWHERE = re.compile(r"(mr_|mrp_|mri_cuda_image_|main$)")


def objects(build):
    """Object files below a folder, by their names in it."""
    for folder, _, names in os.walk(build):
        yield from (os.path.relpath(os.path.join(folder, n), build) for n in names if n.endswith(".o"))


def symbols(build):
    """(object file, symbol, its letter) of all global symbols; many files a call, since starting nm takes longest."""
    files = sorted(objects(build))
    for at in range(0, len(files), 200):
        call = ["nm", "-A", "-P", "-g", *files[at : at + 200]]
        for line in subprocess.run(call, cwd=build, capture_output=True, text=True, check=True).stdout.splitlines():
            path, symbol, letter = line.split()[:3]
            yield path.rstrip(":"), symbol, letter


def main():
    if len(sys.argv) != 2 or not os.path.isdir(sys.argv[1]):
        print(__doc__, file=sys.stderr)
        return 2
    defined, users = {}, collections.Counter()
    for path, symbol, letter in symbols(sys.argv[1]):
        if letter == "U":
            users[symbol] += 1
        elif letter in "TDBRC" and path.split(os.sep)[0] in ROOMS:
            defined[symbol] = path
    if not defined:
        print(f"{sys.argv[1]}: no object files of {', '.join(ROOMS)}", file=sys.stderr)
        return 2
    found = [(path, s) for s, path in defined.items() if not users[s] and not USED_ELSEWHERE.match(s)]
    for path, symbol in sorted(found):
        source = re.sub(r"CMakeFiles/[^/]*\.dir/", "", path)[: -len(".o")]
        print(f"{source}: {symbol} is global and used in no other file: make it static, or remove it")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
