#!/usr/bin/env python3
"""Prints a public header with comments in doxygen's form: a comment in front of a declaration begins with two stars, a comment after
a member points back, rows of arguments and return values become lists, headings of sections stay plain.
usage: header_comments.py HEADER, as an INPUT_FILTER."""
import re
import sys

# A name or several, two blanks or more, a text: " * MR_EAGAIN     nothing ready within timeout_ns"
ROW = re.compile(r"^( \* )(other < 0|\w+(?:, \w+)*)  +(?=\S)", re.M)


def row(m):
    return "%s- <b>%s</b> " % (m.group(1), m.group(2).replace("<", "&lt;"))


def marked(text):
    out, at = [], 0
    for m in re.finditer(r"/\*.*?\*/", text, re.S):
        before = text[text.rfind("\n", 0, m.start()) + 1:m.start()]
        if re.match(r"/\* ?-{4}", m.group(0)):
            continue
        comment = m.group(0)[2:]
        if m.start() == 0:
            mark, comment = "/** @file\n *", re.sub(r"^ millrace/\w+\.h:", "", comment)
        elif before.strip():
            mark = "/**<"
        else:
            mark, comment = "/**", ROW.sub(row, comment)
        comment = comment.replace("\\", "\\\\").replace(".. ", "..\\ ")  # else the dots end the first sentence
        out += [text[at:m.start()], mark, comment]
        at = m.end()
    return "".join(out) + text[at:]


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as f:
        sys.stdout.write(marked(f.read()))
