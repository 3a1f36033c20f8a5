"""The code blocks of a page, with the marks that stand before them in its source.

A mark is an HTML comment, which no reader of the page sees. Marks stand directly before the block that they describe:

    <!-- not run: REASON -->                      the block; the test prints the reason
    <!-- not run, lines with "TEXT": REASON -->   the lines of a shell block that contain TEXT
    <!-- output of: COMMAND -->                   the block shows lines that this command prints; numbers may differ
    <!-- file: NAME -->                           the block is this file, which later blocks of the page read
    <!-- frame: NAME -->                          the block is compiled inside of frames/NAME, which includes its paragraphs

and one mark describes a whole page: <!-- blocks run by: TEST -->."""
import re

FENCE = re.compile(r"^( *)```(\w*)\s*$")
MARK = re.compile(r"<!-- (not run|output of|file|frame|blocks run by)(?:, lines with \"([^\"]+)\")?: (.*?) -->", re.S)


class Block:
    def __init__(self, page, number, language, lines, marks):
        self.page, self.number, self.language, self.lines = page, number, language, lines  # number: of the first line inside
        self.skip = next((text for kind, where, text in marks if kind == "not run" and not where), None)
        self.skip_lines = [(where, text) for kind, where, text in marks if kind == "not run" and where]
        self.output_of = next((text for kind, _, text in marks if kind == "output of"), None)
        self.file = next((text for kind, _, text in marks if kind == "file"), None)
        self.frame = next((text for kind, _, text in marks if kind == "frame"), None)

    @property
    def place(self):
        return f"{self.page}:{self.number}"

    @property
    def text(self):
        return "\n".join(self.lines) + "\n"


def marks_before(text):
    """The marks at the end of text: other text may not follow them."""
    end = re.search(r"((?:<!--(?:(?!-->).)*-->\s*)*)\Z", text, re.S).group(1)
    return [(kind, where, re.sub(r"\s+", " ", what)) for kind, where, what in MARK.findall(end)]


def blocks_of_text(page, text):
    """All blocks of a page in their order."""
    found, lines, inside, before = [], text.split("\n"), None, []
    for number, line in enumerate(lines, 1):
        fence = FENCE.match(line)
        if inside is None and fence:
            inside, body = fence, []
            marks, before = marks_before("\n".join(before)), []
        elif inside is not None and re.match(r"^ *```\s*$", line):
            found.append(Block(page, number - len(body), inside.group(2), body, marks))
            inside = None
        elif inside is not None:
            body.append(line[len(inside.group(1)):])
        else:
            before.append(line)
    if inside is not None:
        raise ValueError(f"{page}: the block at line {number - len(body)} does not end")
    return found


def blocks_of(page, path):
    with open(path, encoding="utf-8") as file:
        return blocks_of_text(page, file.read())


def run_elsewhere(path):
    """The test that runs all blocks of a page, or None."""
    with open(path, encoding="utf-8") as file:
        return next((text for kind, _, text in MARK.findall(file.read()) if kind == "blocks run by"), None)


# ---- lines of shell blocks ----
OPENS = {"for": "done", "while": "done", "until": "done", "if": "fi", "case": "esac"}


def commands(block):
    """The commands of a shell block: (line number, text, lines of output that the page shows under it).

    A command goes on after a backslash or a pipe, and up to the end of a loop. In a block with a line that begins with `$ ` such
    lines are commands and all others output."""
    shown = any(line.startswith("$ ") for line in block.lines)
    out, whole, first, closing = [], "", 0, None
    for number, line in enumerate(block.lines, block.number):
        if shown and not whole and not line.startswith("$ "):
            if not out:
                raise ValueError(f"{block.page}:{number}: output stands before the first command")
            out[-1][2].append(line)
            continue
        if not whole:
            first, closing = number, None
        text = line[2:] if shown and not whole else line
        bare = re.sub(r"(^|\s)#.*$", "", text) if not re.search(r"['\"].*#.*['\"]", text) else text
        if not whole:
            closing = OPENS.get(bare.split(" ", 1)[0])
        whole += bare.rstrip().rstrip("\\") if bare.rstrip().endswith("\\") else bare.rstrip()
        if closing and bare.rstrip() != closing:
            whole += "\n"
            continue
        if bare.rstrip().endswith(("\\", "|")):
            whole += " "
            continue
        if whole.strip():
            out.append((first, whole.strip(), []))
        whole = ""
    return out


def shape(line):
    """A line of output with its numbers replaced and its blanks made one."""
    return re.sub(r"\s+", " ", re.sub(r"\d+(?:[.,]\d+)*", "N", line)).strip()


def missing(shown, printed):
    """The first line of a page that the printed output does not have in this order, or None."""
    rest = iter([shape(line) for line in printed.split("\n")])
    for line in shown:
        if line.strip() not in ("", "...") and shape(line) not in rest:
            return line
    return None
