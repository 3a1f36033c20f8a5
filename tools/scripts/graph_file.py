"""Reads a source file: its includes, and the functions and globals that it defines and uses.

A light reading of C, not a compiler: comments and strings are dropped, every branch of an #if is read, macros
are not expanded. It may miss a function whose name a macro makes; all that it finds exists.
"""

import os
import re

LEXER = re.compile(
    r"""(?P<skip>/\*.*?\*/ | //(?:[^\n\\]|\\.)*)
      | (?P<directive>^[ \t]*\#(?:[^\n\\/]|\\.|/(?![*/])|/\*.*?\*/|//[^\n]*)*)
      | (?P<text>"(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*')
      | (?P<name>[A-Za-z_]\w*)
      | (?P<number>\.?[0-9](?:[eEpP][+-]|[\w.])*)
      | (?P<mark>->|\+\+|--|<<=|>>=|[-+*/%&|^=!<>]=|&&|\|\||<<|>>|\.\.\.|[^\s])""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)

KEYWORDS = frozenset(
    "auto break case char const continue default do double else enum extern float for goto if inline int "
    "long register restrict return short signed sizeof static struct switch typedef union unsigned void "
    "volatile while _Atomic _Bool _Static_assert _Thread_local __attribute__ bool".split()
)


STATEMENTS = ("return", "goto", "else", "case", "sizeof")


class Statement:
    """One thing at the top of a file: head, the tokens before its body or ';', and body, those in braces."""

    def __init__(self, head, body):
        self.head, self.body = head, body


class File:
    """One file: path from the root, unit (path without ending), room, includes and statements."""

    def __init__(self, path, text):
        self.path = path
        self.unit = os.path.splitext(path)[0]
        self.top = path.split("/", 1)[0]
        self.room = room_of(path)
        self.includes = []
        self.macros = {}  # name: tokens of its body
        self.statements = statements(self.tokens(text))
        self.defines, self.own = definitions(self)

    def tokens(self, text):
        found = []
        for match in LEXER.finditer(text):
            kind, token = match.lastgroup, match.group()
            if kind == "directive":
                self.directive(token, found)
            elif kind == "text":
                found.append('""')
            elif kind != "skip":
                found.append(token)
        return found

    def directive(self, line, found):
        """Notes includes and macros; a branch leaves its mark for statements()."""
        include = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
        macro = re.match(r"\s*#\s*define\s+(\w+)(?:\([^)]*\))?(.*)", line, re.DOTALL)
        branch = re.match(r"\s*#\s*(if|ifdef|ifndef|elif|else|endif)\b", line)
        if include:
            self.includes.append(include.group(1))
        elif macro:
            tokens = [m.group() for m in LEXER.finditer(macro.group(2)) if m.lastgroup in ("name", "mark")]
            self.macros.setdefault(macro.group(1), []).extend(tokens)
        elif branch:
            found.append({"elif": "#else", "else": "#else", "endif": "#endif"}.get(branch.group(1), "#if"))

    def macro_tokens(self):
        return [token for tokens in self.macros.values() for token in tokens]

    def is_header(self):
        return self.path.endswith((".h", ".cuh"))

    def inline_functions(self):
        """Of a header."""
        heads = [s.head for s in self.statements if self.is_header() and s.body and is_function(s.head)]
        return {function_name(head) for head in heads}

    def uses(self):
        """Names of functions and globals that it may use: in a header only those inside bodies, since a
        declaration is no use."""
        names = set()
        for statement in self.statements:
            names.update(names_in(statement.body))
            if not self.is_header():
                names.update(names_in(statement.head))
        return (names | names_in(self.macro_tokens())) - self.own - KEYWORDS


def names_in(tokens):
    """Identifiers but for members, which follow '.' or '->'."""
    return {
        token
        for before, token in zip([""] + tokens, tokens)
        if (token[0].isalpha() or token[0] == "_") and before not in (".", "->")
    }


def room_of(path):
    """formats/tar/x.c lies in formats/tar, formats/open.c in formats, a public header in formats/public."""
    parts = path.split("/")
    return parts[0] + "/public" if "include" in parts[1:-1] else "/".join(parts[:-1])


def statements(tokens):
    """The tokens of a file as a list of Statement. After '#else' the depth is the same as at '#if'."""
    found, head, body, depth, branches = [], [], [], 0, []
    for token in tokens:
        if token == "#if":
            branches.append(depth)
        elif token == "#else":
            depth = branches[-1] if branches else depth
        elif token == "#endif":
            branches and branches.pop()
        elif token == "{":
            if depth == 0 and head == ["extern", '""']:
                head = []
                continue
            depth += 1
            body.append(token)
        elif token == "}":
            depth = max(depth - 1, 0)
            body.append(token)
            if depth == 0 and is_function(head):
                found.append(Statement(head, body))
                head, body = [], []
        elif depth > 0:
            body.append(token)
        elif token == ";":
            found.append(Statement(head, body))
            head, body = [], []
        else:
            head.append(token)
    return found


def is_function(head):
    return "(" in head and "=" not in head and function_name(head) is not None


def function_name(head):
    """The name before the first '(' that is no attribute and no macro in front of a type."""
    depth = 0
    for at, token in enumerate(head):
        if token == "(":
            before = head[at - 1] if at else ""
            if depth == 0 and (before[:1].isalpha() or before[:1] == "_") and before not in KEYWORDS:
                if at >= 2:
                    return before
            depth += 1
        elif token == ")":
            depth -= 1
    return None


def declarators(head):
    """Names that 'int a = 3, *b[2]' makes."""
    parts, depth = [[]], 0
    for token in head:
        depth += (token in "([{") - (token in ")]}")
        if depth == 0 and token == ",":
            parts.append([])
        else:
            parts[-1].append(token)
    found = []
    for part in parts:
        before = part[: part.index("=")] if "=" in part else part
        outside, depth = [], 0
        for token in before:
            depth += (token in "([") - (token in ")]")
            if depth == 0 and token.isidentifier() and token not in KEYWORDS:
                outside.append(token)
        found += outside[-1:]
    return found


def definitions(file):
    """(names of functions and globals that others may use, names that mean something of the file's own)"""
    shared, own = set(), shadows(file)
    for statement in file.statements:
        head = statement.head
        if not head or head[0] in ("typedef", "extern", "_Static_assert", "using"):
            continue
        if statement.body and is_function(head):
            names = [function_name(head)]
        elif "=" in head or not (statement.body or "(" in head):
            names = declarators(head) if len(head) > 1 and head[-2] != "struct" else []
        else:
            names = []
        own.update(names)
        # Device code is launched by the text of its name.
        if "static" not in head and not file.is_header() and not file.path.endswith(".cu"):
            shared.update(names)
    return shared, own


def shadows(file):
    """Names of parameters and local variables: declared within a function, and never called."""
    declared, called = set(), set()
    for statement in file.statements:
        tokens = (statement.head if is_function(statement.head) else []) + statement.body
        for before, name, after in zip(tokens, tokens[1:], tokens[2:]):
            if not name.isidentifier():
                continue
            if after == "(":
                called.add(name)
            elif after in ("=", ";", ",", ")", "["):
                if before == "*" or (before.isidentifier() and before not in STATEMENTS):
                    declared.add(name)
    return declared - called


def declarations(file):
    """Names that the file says another may define: prototypes, extern variables, and what its macros list."""
    names = names_in(file.macro_tokens())
    for statement in file.statements:
        head = [token for token in statement.head if token != "extern"]
        if head and not statement.body and head[0] != "typedef":
            function = function_name(head)
            names.update([function] if function else declarators(head))
    return names
