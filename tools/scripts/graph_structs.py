"""Structs of a tree: their fields, and which units write them.

A write is an assignment, ++ or --, a designated initialiser of an object that is not const, or the address of a plain
field handed to a function that may write there. Whose field it is follows from the declared type of the
variable and of the fields on the way; where that is not known, from a field name that only one struct has.
The address of a field that is a struct itself is no write: its own functions get it.
"""

from graph_file import KEYWORDS, function_name

ASSIGNMENTS = frozenset("= += -= *= /= %= &= |= ^= <<= >>= ++ --".split())
LOCKS = ("pthread_mutex_t", "pthread_cond_t")
READERS = ("atomic_load", "atomic_load_explicit", "__atomic_load_n", "__atomic_load")
SHORT = 4  # a field name shorter than this says nothing about its struct


class Struct:
    def __init__(self, names, file, tokens):
        self.names, self.file, self.name = names, file, names[0]
        self.fields = {}  # name: type as far as one word says it
        self.alternatives = 0  # fields of unions within that share their place with another field
        self.members = count_members(tokens)
        self.writers = {}  # unit: names of fields
        self.take_fields(tokens)

    def take_fields(self, tokens):
        """Tokens between the braces; the fields of a struct within count as this one's."""
        declaration, depth, at, within = [], 0, 0, False
        while at < len(tokens):
            token = tokens[at]
            if token == "{" and declaration and ("struct" in declaration or "union" in declaration):
                end, before = closing(tokens, at), len(self.fields)
                self.take_fields(tokens[at + 1 : end])
                if "union" in declaration:
                    self.alternatives += max(len(self.fields) - before - 1, 0)
                at = end
                within = True
            elif token == ";" and depth == 0:
                if not within:
                    self.take_declaration(declaration)
                declaration, within = [], False
            else:
                depth += (token in "([{") - (token in ")]}")
                declaration.append(token)
            at += 1

    @property
    def size(self):
        """Number of fields; a union counts as one."""
        return len(self.fields) - self.alternatives

    def take_declaration(self, tokens):
        words = [t for t in tokens if t.isidentifier() and t not in KEYWORDS]
        kind = words[0] if words else ""
        if "(" in tokens and "*" in tokens[tokens.index("(") :][:2]:  # a pointer to a function
            inner = [t for t in tokens[tokens.index("(") :] if t.isidentifier()]
            self.fields[inner[0]] = "()"
            return
        names, depth, last = [], 0, None
        for token in tokens + [","]:
            depth += (token in "([") - (token in ")]")
            if depth:
                continue
            if token == ",":
                names.append(last)
                last = None
            elif token.isidentifier() and token not in KEYWORDS and last is not False:
                last = token
            elif token == ":":
                names.append(last)
                last = None
        self.fields.update((name, kind) for name in names if name)


def closing(tokens, at):
    depth = 0
    for end in range(at, len(tokens)):
        depth += (tokens[end] == "{") - (tokens[end] == "}")
        if depth == 0:
            return end
    return len(tokens)


def count_members(tokens):
    """Members that a struct's tokens between its braces declare. A struct or union within counts as one member if
    it has a name, else as its members."""
    count, declaration, at = 0, [], 0
    while at < len(tokens):
        if tokens[at] == ";":
            count += count_declared(declaration)
            declaration = []
        elif tokens[at] == "{":
            end = closing(tokens, at)
            declaration.append(tokens[at + 1 : end])
            at = end
        else:
            declaration.append(tokens[at])
        at += 1
    return count


def count_declared(declaration):
    """declaration: tokens; the tokens between braces are a list."""
    if not declaration:
        return 0
    if isinstance(declaration[-1], list):  # no name follows
        return 0 if "enum" in declaration else count_members(declaration[-1])
    depth, count = 0, 1
    for token in declaration:
        depth += (token in ("(", "[")) - (token in (")", "]"))
        count += token == "," and depth == 0
    return count


def all_structs(tree):
    """Every Struct with a name; several files may have one of the same name."""
    for file in tree.files.values():
        for statement in file.statements:
            head, body = statement.head, statement.body
            plain = [t for t in head if t.isidentifier() and t not in KEYWORDS]
            if body and plain and "struct" in head and not ("(" in head or "=" in head):
                yield Struct(list(reversed(plain)) if "typedef" in head else plain[:1], file, body[1:-1])


def find_structs(tree):
    """{name: Struct}; a tag and its typedef name the same."""
    found = {}
    for struct in all_structs(tree):
        found.update((name, struct) for name in struct.names if name not in found)
    return found


class Writes:
    """Fills in the writers of every struct."""

    def __init__(self, tree, structs):
        self.structs = structs
        owners = {}
        for struct in set(structs.values()):
            for field in struct.fields:
                owners.setdefault(field, []).append(struct)
        self.alone = {
            field: found[0] for field, found in owners.items() if len(found) == 1 and len(field) >= SHORT
        }
        self.takes_const = const_parameters(tree)
        for file in tree.files.values():
            for statement in file.statements:
                if statement.body and "typedef" not in statement.head:
                    self.read(file, statement.head + statement.body)

    def read(self, file, tokens):
        kinds = self.variables(tokens)
        for at, token in enumerate(tokens):
            if (
                token in (".", "->")
                and at
                and (tokens[at - 1].isidentifier() or tokens[at - 1] in (")", "]"))
            ):
                if at + 2 < len(tokens) and tokens[at + 2] not in (".", "->"):
                    self.member(file, tokens, at, kinds)
            elif token == "." and tokens[at - 1] in ("{", ","):
                self.initialised(file, tokens, at, kinds)

    def variables(self, tokens):
        """{name: Struct} from 'type *name' and 'type name'."""
        kinds = {}
        for at, token in enumerate(tokens[:-1]):
            if token in self.structs and tokens[at - 1] not in (".", "->"):
                then = at + 1
                while then < len(tokens) and tokens[then] in ("*", "const", "restrict"):
                    then += 1
                while then < len(tokens) and tokens[then].isidentifier():
                    kinds[tokens[then]] = self.structs[token]
                    if tokens[then + 1 : then + 2] != [","]:
                        break
                    then += 2 + (tokens[then + 2 : then + 3] == ["*"])
        return kinds

    def member(self, file, tokens, at, kinds):
        """tokens[at] is the last '.' or '->' of a chain."""
        chain, links, first = chain_before(tokens, at)
        after = skip_index(tokens, at + 2)
        then = tokens[after] if after < len(tokens) else ""
        before = tokens[first - 1] if first else ""
        struct, path = self.resolve(chain, kinds)
        if struct is None:
            return
        kind = struct.fields.get(chain[-1])
        handed = (
            before == "&"
            and tokens[first - 2] in ("(", ",")
            and kind not in self.structs
            and kind not in LOCKS
            and not self.only_read(tokens, first - 1)
        )
        if then in ASSIGNMENTS or before in ("++", "--") or handed:
            self.note(struct, file, chain[-1])
            for outer, field, link in zip(reversed(path), reversed(chain[:-1]), reversed(links)):
                if link != ".":
                    break
                self.note(outer, file, field)

    def only_read(self, tokens, at):
        """Does the function that gets the argument beginning at tokens[at] promise not to write there?"""
        depth, number = 0, 0
        while at > 0 and depth >= 0:
            at -= 1
            depth += (tokens[at] in ")]}") - (tokens[at] in "([{")
            number += tokens[at] == "," and depth == 0
        function = tokens[at - 1] if at else ""
        return function in READERS or number in self.takes_const.get(function, ())

    def resolve(self, chain, kinds):
        """(struct of the last field, structs of the fields before it).

        A struct that is spelled out within another counts as part of that one."""
        struct, path = kinds.get(chain[0]), []
        if struct is None and len(chain) == 2:
            return self.alone.get(chain[1]), []
        for field in chain[1:-1]:
            owner = struct or self.alone.get(field)
            path.append(owner)
            if owner and field in owner.fields:
                struct = self.structs.get(owner.fields[field])
                if struct is None:
                    return None, []
        found = struct if struct and chain[-1] in struct.fields else None
        return found or (None if struct else self.alone.get(chain[-1])), (
            [p for p in path if p] if found else []
        )

    def initialised(self, file, tokens, at, kinds):
        """'.field =' within braces: the type before them, or the type of the variable that takes them."""
        depth, begin = 0, at
        while begin > 0 and depth >= 0:
            begin -= 1
            depth += (tokens[begin] == "}") - (tokens[begin] == "{")
        before = tokens[max(begin - 2, 0) : begin]
        struct = None
        if "const" in tokens[max(begin - 8, 0) : begin] and before[-1:] == ["="]:
            return
        if before and before[-1] == ")":
            struct = self.structs.get(before[0])
        elif before and before[-1] == "=":
            struct = kinds.get(before[0])
        if struct and tokens[at + 1] in struct.fields:
            self.note(struct, file, tokens[at + 1])

    @staticmethod
    def note(struct, file, field):
        struct.writers.setdefault(file.unit, set()).add(field)


def const_parameters(tree):
    """{function: numbers of its parameters that point to const}"""
    found = {}
    for file in tree.files.values():
        for statement in file.statements:
            name = function_name(statement.head)
            if name and "=" not in statement.head and statement.head[0] != "typedef":
                begin = statement.head.index("(", statement.head.index(name))
                depth, number, const = 0, 0, set()
                for token in statement.head[begin + 1 :]:
                    depth += (token == "(") - (token == ")")
                    number += token == "," and depth == 0
                    if depth < 0:
                        break
                    if token == "const":
                        const.add(number)
                found.setdefault(name, const)
    return found


def chain_before(tokens, at):
    """For 'a->b[i].c' with tokens[at] its last link: (['a', 'b', 'c'], links but the last, index of 'a')."""
    chain, links, first = [tokens[at + 1]], [], at
    while first > 0:
        first -= 1
        while first > 0 and tokens[first] in ("]", ")"):
            first = opening(tokens, first) - 1
        chain.insert(0, tokens[first])
        if first == 0 or tokens[first - 1] not in (".", "->"):
            break
        first -= 1
        links.insert(0, tokens[first])
    links.append(tokens[at])
    return chain, links[1:], max(first, 0)


def opening(tokens, at):
    depth = 0
    while at >= 0:
        depth += (tokens[at] in ")]") - (tokens[at] in "([")
        if depth == 0:
            return at
        at -= 1
    return 0


def skip_index(tokens, at):
    while at < len(tokens) and tokens[at] == "[":
        depth = 0
        while at < len(tokens):
            depth += (tokens[at] == "[") - (tokens[at] == "]")
            at += 1
            if depth == 0:
                break
    return at


def large_structs(tree, at_least):
    """Structs of more than at_least fields, a union counted as one, with their writers: the largest first."""
    structs = find_structs(tree)
    Writes(tree, structs)
    return sorted(
        (s for s in set(structs.values()) if s.size > at_least), key=lambda s: (-s.size, s.name)
    )


def judged_writers(struct):
    """Settings of the public headers are for callers to fill, such as tools/ and run/: only the other files of the
    library are judged.

    An inline function of a public header is its caller's, too.
    """
    public = struct.file.room.endswith("/public")
    callers = tuple(top for top in ("tools/", "run/") if not struct.file.path.startswith(top))
    return sorted(
        unit
        for unit in struct.writers
        if not (public and unit.startswith(callers)) and "/include/" not in unit
    )
