"""Makes the cells of test_library_table.c from the headers: every public function times every wrong argument.

    table.py SOURCE_FOLDER ROWS OUT

ROWS has a row for each function of the headers: its name, the word "stable" if the header declares it MR_STABLE, its result when an
argument is refused if that does not follow from the type of its result (=VALUE), and a word for each argument that can be wrong:

    NAME!        a pointer: NULL is refused            NAME?        a pointer: NULL is taken
    NAME>CODE    a number: the largest of its type gives this code, or is taken (OK)
    NAME-        a number of elements that the caller has: it is not to be wrong

Enumerations, settings and results need no word: 99 in place of an enumeration, and of each enumeration in settings, is refused; settings
and results are given with the size of an older and of a newer header, and with none. A function without a row, a row without a function,
an argument without a word, and a function that is stable in one place alone (row, header, its inline caller) end the build. Each cell
runs in a process of its own (test_library_table.c)."""
import glob
import os
import re
import sys

NUMBERS = {"uint32_t": "UINT32_MAX", "uint64_t": "UINT64_MAX", "mr_point": "UINT32_MAX", "int": "INT_MAX", "float": "NAN"}
MEMBERS = {"uint32_t": ("0", "UINT32_MAX"), "uint64_t": ("0", "UINT64_MAX"), "int64_t": ("INT64_MIN", "INT64_MAX"),
           "float": ("NAN", "-1"), "double": ("NAN", "-1"), "size_t": ("0", "SIZE_MAX")}
ERROR = "mr_error*"
ELEMENTS = {"class_count"}  # of an array that the caller gives: a larger number is read beyond it, and nobody can know
# Places where the program's functions are called: a call made there with all other arguments valid.
TIMES = {"mr_loader": (("by a worker's function", "rig_in_worker"), ("by on_bad", "rig_in_on_bad"),
                       ("after mr_loader_stop()", "rig_after_stop")),
         "mr_trainer": (("by on_step of mr_fit()", "rig_in_on_step"),)}


def headers(root):
    for path in sorted(glob.glob(os.path.join(root, "*", "include", "millrace", "*.h"))):
        with open(path) as f:
            yield re.sub(r"/\*.*?\*/", " ", f.read(), flags=re.S)


def functions(text):
    """(name, whether it is stable, result, [(type, name)]) of every exported function."""
    for m in re.finditer(r"\bMR_(API|STABLE)\s+([^;{()]*?)\b(mr_\w+)\s*\(([^;{]*?)\)\s*(?:MR_PRINTF\([^)]*\))?\s*;", text):
        params = []
        for p in (re.sub(r"\s+", " ", x).strip() for x in m.group(4).split(",")):
            if p in ("void", "", "..."):
                continue
            q = re.match(r"^(.*?)(\w+)(\[\d*\])?$", p)
            params.append(((q.group(1).strip() + ("*" if q.group(3) else "")).replace(" *", "*"), q.group(2)))
        yield m.group(3), m.group(1) == "STABLE", re.sub(r"\s+", " ", m.group(2).strip()).replace(" *", "*"), params


def stable_callers(text):
    """Names of the stable inline functions; each calls the exported NAME_sized."""
    return set(re.findall(r"\bMR_STABLE_INLINE\s+[^;{()]*?\b(mr_\w+)\s*\(", text))


def enumerations(text):
    return set(re.findall(r"typedef enum (mr_\w+)", text))


def choices_of(struct, structs, enums):
    """Members that are enumerations; members of nested structs as "a.b"."""
    found = []
    for q in re.finditer(r"\n\s*(mr_\w+) (\w+);", structs[struct]):
        if q.group(1) in enums:
            found.append(q.group(2))
        elif q.group(1) in structs:
            found += ["%s.%s" % (q.group(2), inner) for inner in choices_of(q.group(1), structs, enums)]
    return found


def numbers_of(struct, structs):
    """(member, type) of the members that are numbers, in the same way."""
    found = []
    for q in re.finditer(r"\n\s*(\w+) ([\w, ]+);", structs[struct]):
        for member in re.split(r",\s*", q.group(2)):
            if q.group(1) in MEMBERS:
                found.append((member, q.group(1)))
            elif q.group(1) in structs:
                found += [("%s.%s" % (member, inner), kind) for inner, kind in numbers_of(q.group(1), structs)]
    return [(m, k) for m, k in found if not m.endswith("struct_size")]


def sized(text, enums):
    """{struct: ([members that are enumerations], [(member, type) of numbers])} of the structs that begin with their size."""
    structs = {m.group(1): m.group(2) for m in re.finditer(r"typedef struct (mr_\w+) \{(.*?)\n\} \1;", text, flags=re.S)}
    return {name: (choices_of(name, structs, enums), numbers_of(name, structs)) for name, body in structs.items() if re.match(r"\s*size_t struct_size;", body)}


def read_rows(path):
    rows = {}
    with open(path) as f:
        for number, line in enumerate(f, 1):
            words = line.split("#")[0].split()
            if not words:
                continue
            if words[0] in rows:
                sys.exit("%s:%d: a second row for %s" % (path, number, words[0]))
            rows[words[0]] = words[1:]
    return rows


def builds(result, params):
    """A call of the network builder, which keeps the first error."""
    return result == "void" and params[:1] == [("mr_net*", "net")] and len(params) > 1


class Maker:
    def __init__(self, sizes, enums):
        self.sizes, self.enums, self.cells = sizes, enums, []

    def bare(self, kind):
        return kind.replace("const ", "").rstrip("*")

    def value(self, function, kind, name):
        """A right value for this argument."""
        bare = self.bare(kind)
        own = "RIG_" + function + "_" + name
        if kind in self.enums:
            right = "(%s)0" % kind
        elif not kind.endswith("*"):
            right = "(%s)1" % kind
        elif kind.count("*") > 1:
            right = "rig_out()"
        elif bare in self.sizes:
            right = "rig_%s()" % bare[3:]
        elif re.match(r"^(const )?(void|volatile int|char|bool|int|float|double|u?int\d+_t|size_t|mr_(sample|extent|image|causes|metrics|"
                      r"digest|copy_mark|schedule|slow_sample|odd|step_values|sum_node|field_input|point|guess|world_piece))\*$", kind):
            right = "rig_room()"
        else:
            right = "rig_%s()" % bare[3:]
        return right, own

    def add(self, what, function, result, params, wrong, want, before="", inherited=False, time=""):
        """wrong: {name: expression}."""
        number = len(self.cells)
        args = ", ".join(wrong.get(n) or "a%d" % i for i, (_, n) in enumerate(params))
        decls = []
        for i, (kind, n) in enumerate(params):
            if n in wrong:
                continue
            right, own = self.value(function, kind, n)
            const = "" if kind.endswith("*") else "const "
            decls.append("#ifdef %s\n    %s%s a%d = %s;\n#else\n    %s%s a%d = %s;\n#endif" % (own, const, kind, i, own, const, kind, i, right))
        call = "%s(%s)" % (function, args)
        if builds(result, params) and "net" not in wrong:
            run = "    %s;\n    return mr_net_check(a0, &err);" % call
        elif result == "void":
            run = "    %s;\n    return RIG_NOTHING;" % call
        elif result.endswith("*"):
            run = "    return %s != NULL;" % call
        elif result in ("mr_wire", "mr_digest"):
            run = "    (void)%s;\n    return RIG_NOTHING;" % call
        elif result == "float":
            run = "    return %s != 0;" % call
        else:
            run = "    return (long)%s;" % call
        if before:
            decls.append("    " + before)
        if inherited:
            decls.append("    rig_fork();")
        body = "static long cell_%d%s(void)\n{\n%s\n%s\n}\n" % (number, "_then" if time else "", "\n".join(decls), run)
        if time:
            body += "static long cell_%d(void) { return %s(cell_%d_then); }\n" % (number, time, number)
        self.cells.append((what, body, want))

    def refused(self, result, row):
        for w in row:
            if w.startswith("="):
                return "%s" % w[1:]
        if result == "int":
            return "MR_EINVAL"
        if result == "void" or result in ("mr_wire", "mr_digest"):
            return "RIG_NOTHING"
        return "0"

    def function(self, name, result, params, row):
        words = {re.match(r"^\w+", w).group(0): w[len(re.match(r"^\w+", w).group(0)):] for w in row if re.match(r"^\w+", w)}
        no = self.refused(result, row)
        missing = [n for k, n in params if k.endswith("*") and n not in words and k != ERROR]
        unknown = [w for w in words if w not in [n for _, n in params]]
        if missing or unknown:
            sys.exit("row of %s: no word for %s; no such argument: %s" % (name, missing, unknown))
        self.add("%s: as it should be" % name, name, result, params, {}, "RIG_ANY")
        owned = [n for k, n in params if k.endswith("*") and k.count("*") == 1 and self.bare(k) in OWNED]
        for kind, n in params:
            word, bare = words.get(n, ""), self.bare(kind)
            no = "RIG_NOTHING" if n == "net" and result == "void" else "MR_EINVAL" if builds(result, params) else self.refused(result, row)
            if kind.endswith("*"):
                want = no if word.startswith("!") else "RIG_ANY"
                self.add("%s: %s is NULL" % (name, n), name, result, params, {n: "NULL"}, want)
            elif kind in self.enums:
                self.add("%s: %s is 99" % (name, n), name, result, params, {n: "(%s)99" % kind}, no if word != "?" else "RIG_ANY")
            elif word.startswith(">") and kind in NUMBERS:
                code = word[1:]
                self.add("%s: %s is %s" % (name, n, NUMBERS[kind]), name, result, params, {n: NUMBERS[kind]},
                         "RIG_ANY" if code in ("", "OK") else code)
            elif kind in NUMBERS and kind != "float" and word != "-":
                self.add("%s: %s is 0" % (name, n), name, result, params, {n: "0"}, "RIG_ANY")
                self.add("%s: %s is %s" % (name, n, NUMBERS[kind]), name, result, params, {n: NUMBERS[kind]}, "RIG_ANY")
            elif kind == "float":
                self.add("%s: %s is not a number" % (name, n), name, result, params, {n: "NAN"}, "RIG_ANY")
            if bare in self.sizes and kind.count("*") == 1 and not name.endswith("_defaults_sized"):
                right, own = self.value(name, kind, n)
                settings = kind.startswith("const ") and (bare.endswith("_config") or bare == "mr_image_part")
                for what, edit, want in (("has no size", "rig_resize(rig_value, 0)", no),
                                         ("has the size of an older header", "rig_resize(rig_value, 2 * sizeof(size_t))", "RIG_ANY"),
                                         ("has the size of a newer header", "rig_grow(rig_value, sizeof(%s), 0)" % bare, "RIG_ANY"),
                                         ("has something newer set", "rig_grow(rig_value, sizeof(%s), 1)" % bare,
                                          no if settings else "RIG_ANY")):
                    if bare == "mr_own_picture" or (bare == "mr_batch" and name != "mr_loader_next_sized"):
                        continue  # made by the library
                    self.with_value(name, result, params, n, kind, edit, "%s: %s %s" % (name, n, what), want)
                for member in self.sizes[bare][0] if settings else []:
                    self.with_value(name, result, params, n, kind, "((%s *)rig_value)->%s = 99" % (bare, member),
                                    "%s: %s.%s is 99" % (name, n, member), no)
                for member, number in self.sizes[bare][1] if settings else []:
                    for value in MEMBERS[number][:1] if member in ELEMENTS else MEMBERS[number]:
                        self.with_value(name, result, params, n, kind, "((%s *)rig_value)->%s = %s" % (bare, member, value),
                                        "%s: %s.%s is %s" % (name, n, member, value), "RIG_ANY")
        if owned and not name.endswith(("_info_of", "_labels_of")):
            closes = re.search(r"_(close|destroy|abandon|abort|drop|free|release)$", name)
            self.add("%s: after fork()" % name, name, result, params, {}, no if result == "int" and not closes else "RIG_ANY", inherited=True)

        for bare, times in TIMES.items():
            for when, how in times if bare in [self.bare(k) for k, _ in params if k.count("*") == 1] else ():
                self.add("%s: %s" % (name, when), name, result, params, {}, "RIG_ANY", time=how)

    def with_value(self, name, result, params, n, kind, edit, what, want):
        right, own = self.value(name, kind, n)
        before = "\n#ifdef %s\n    void *rig_value = (void *)(uintptr_t)%s;\n#else\n    void *rig_value = (void *)(uintptr_t)%s;\n#endif\n    %s;" % (
            own, own, right, edit)
        self.add(what, name, result, params, {n: "rig_value"}, want, before=before)


# Handles that belong to the process that opened them.
OWNED = {"mr_source", "mr_loader", "mr_trainer", "mr_device", "mr_stream", "mr_event", "mr_op", "mr_group", "mr_graph", "mr_writer", "mr_output",
         "mr_run_folder", "mr_kept", "mr_trace", "mr_record", "mr_checker", "mr_budget", "mr_world", "mr_muster", "mr_crew", "mr_logger", "mr_page_dropper",
         "mr_bad_list", "mr_form_trial", "mr_run"}


def main():
    root, rows_path, out = sys.argv[1:]
    rows, text = read_rows(rows_path), "\n".join(headers(root))
    enums = enumerations(text)
    maker, known = Maker(sized(text, enums), enums), set()
    callers = stable_callers(text)
    for name, stable, result, params in functions(text):
        known.add(name)
        if name not in rows:
            sys.exit("%s: no row for %s: say of each of its arguments what NULL and the largest number do" % (rows_path, name))
        if stable != (rows[name][:1] == ["stable"]):
            sys.exit("%s: row of %s: the word \"stable\" comes first if the header says MR_STABLE, else not at all" % (rows_path, name))
        if name.endswith("_sized") and stable != (name[:-len("_sized")] in callers):
            sys.exit("%s: MR_STABLE and the MR_STABLE_INLINE of its caller go together" % name)
        maker.function(name, result, params, rows[name][stable:])
    alone = sorted(c for c in callers if c + "_sized" not in known)
    if alone:
        sys.exit("MR_STABLE_INLINE of functions that have no ..._sized: %s" % ", ".join(alone))
    gone = sorted(set(rows) - known)
    if gone:
        sys.exit("%s: rows of functions that are in no header: %s" % (rows_path, ", ".join(gone)))
    with open(out, "w") as f:
        f.write("/* Made by tests/library/table.py. */\n")
        for _, body, _ in maker.cells:
            f.write(body + "\n")
        f.write("static const struct cell cells[] = {\n")
        for i, (what, _, want) in enumerate(maker.cells):
            f.write('    {"%s", cell_%d, %s},\n' % (what, i, want))
        f.write("};\n")


main()
