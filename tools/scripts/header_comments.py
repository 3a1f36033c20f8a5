#!/usr/bin/env python3
"""A public header with its comments as doxygen wants them, on standard output: one in front of a declaration begins with two stars,
one after a member points back. usage: header_comments.py HEADER, as an INPUT_FILTER."""
import re
import sys


def marked(text):
    out, at = [], 0
    for m in re.finditer(r"/\*.*?\*/", text, re.S):
        before = text[text.rfind("\n", 0, m.start()) + 1:m.start()]
        mark = "/** @file\n *" if m.start() == 0 else "/**<" if before.strip() else "/**"
        comment = m.group(0)[2:].replace("\\", "\\\\").replace(".. ", "..\\ ")  # else the dots end the first sentence
        out += [text[at:m.start()], mark, comment]
        at = m.end()
    return "".join(out) + text[at:]


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as f:
        sys.stdout.write(marked(f.read()))
