"""check_graph.py finds its faults: a small made-up tree for each finding, and a clean one that passes."""

import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPT = os.path.join(HERE, "..", "..", "tools", "scripts", "check_graph.py")

RULES = """
house
    tools
    run
    pipeline
    formats
    base
public-only tools
floors tools
    tools
floors run
    run
floors pipeline
    pipeline
floors formats
    formats
    formats/tar formats/csv
    formats/store
    formats/public
floors base
    base
limit files-in-a-folder 6
limit units-in-a-circle 4
limit members-of-a-struct 7
limit fields-of-a-shared-struct 3
limit writers-of-a-large-struct 2
"""

CLEAN = {
    "tools/main.c": '#include "millrace/formats.h"\nint main(void) { return mr_open("a"); }\n',
    "formats/include/millrace/formats.h": "int mr_open(const char *path);\n",
    "formats/open.c": """
        #include "formats/tar/tar.h"
        #include "millrace/formats.h"
        extern const struct kind kind_csv, kind_tar;
        int mr_open(const char *path) { return tar_open(path); }
        """,
    "formats/tar/tar.h": "int tar_open(const char *path);\n",
    "formats/tar/tar.c": """
        #include "formats/store/store.h"
        #include "tar.h"
        const struct kind kind_tar = {.open = tar_open};
        int tar_open(const char *path) { return store_read(path); }
        """,
    "formats/csv/csv.c": "const struct kind kind_csv = {0};\n",
    "formats/store/store.h": "int store_read(const char *path); extern int store_count;\n",
    "formats/store/store.c": """
        #include "store.h"
        int store_count = 0, store_more;
        int store_read(const char *path) { return 0; }
        """,
    "base/util.c": "static int tar_open(void) { return 0; }\n",
}


def check(files, *arguments, rules=RULES):
    """(exit status, lines) of the script on a tree of these files."""
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            path = os.path.join(root, path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        with open(os.path.join(root, "rules"), "w", encoding="utf-8") as file:
            file.write(rules)
        ran = subprocess.run(
            [
                sys.executable,
                "-B",
                SCRIPT,
                "--root",
                root,
                "--rules",
                os.path.join(root, "rules"),
                *arguments,
            ],
            cwd=root,
            text=True,
            capture_output=True,
            check=False,
        )
        drawn = os.path.join(root, "drawn.txt")
        if os.path.exists(drawn):
            with open(drawn, encoding="utf-8") as file:
                return ran.returncode, file.read().splitlines()
        return ran.returncode, (ran.stdout + ran.stderr).splitlines()


class CheckGraph(unittest.TestCase):
    def found(self, files, *expected, rules=RULES):
        """The clean tree with these files has exactly these findings."""
        status, lines = check({**CLEAN, **files}, rules=rules)
        self.assertEqual(status, 1 if expected else 0, lines)
        self.assertEqual(lines, list(expected))

    def test_clean(self):
        self.found({})

    def test_include_upwards(self):
        self.found(
            {"formats/store/store.c": '#include "formats/tar/tar.h"\n'},
            "formats/store/store.c -> formats/tar/tar.h: include (formats/tar stands above formats/store)",
        )

    def test_call_upwards(self):
        self.found(
            {"formats/store/more.c": "void more(void) { tar_open(0); }\n"},
            "formats/store/more.c -> formats/tar/tar.c: tar_open (formats/tar stands above formats/store)",
        )

    def test_call_to_the_side(self):
        self.found(
            {"formats/csv/more.c": "void more(void) { tar_open(0); }\n"},
            "formats/csv/more.c -> formats/tar/tar.c: tar_open (formats/tar stands beside formats/csv)",
        )

    def test_function_by_pointer_and_global(self):
        self.found(
            {"base/more.c": """
            static int (*const f)(const char *) = store_read;
            int g(void) { return store_count; }
            """},
            "base/more.c -> formats/store/store.c: store_count, store_read (formats stands above base)",
        )

    def test_inline_function_of_a_header(self):
        self.found(
            {"base/more.h": "static inline int more(void) { return store_read(0); }\n"},
            "base/more.h -> formats/store/store.c: store_read (formats stands above base)",
        )

    def test_what_is_no_use(self):
        self.found({"base/more.c": """
            /* store_read(0) */ // store_read(0)
            static const char *const text = "store_read(0)";
            struct s { int store_read; };
            int of(struct s *s) { return s->store_read; }
            int with(int store_count) { return store_count; }
            static int tar_open(void) { return 0; }
            int own(void) { return tar_open(); }
            """})

    def test_branches_of_the_preprocessor(self):
        self.found(
            {"base/more.c": """
            #ifdef A
            int more(void) {
            #else
            int more(int unused) {
            #endif
                return 0;
            }
            int again(void) { return store_read(0); }
            """},
            "base/more.c -> formats/store/store.c: store_read (formats stands above base)",
        )

    def test_tools_use_public_headers(self):
        self.found(
            {"tools/more.c": '#include "formats/store/store.h"\n'},
            "tools/more.c -> formats/store/store.h: include (tools uses only public headers)",
        )

    def test_open_folders_are_for_all_above(self):
        files = {"tools/more.c": '#include "formats/store/store.h"\n'}
        self.found(files, rules=RULES + "open formats\n")

    def test_circle_across_rooms(self):
        status, lines = check(
            {
                **CLEAN,
                "formats/store/store.c": """
            int store_count;
            int store_read(const char *path) { return tar_open(path); }
            """,
            }
        )
        self.assertEqual(status, 1)
        self.assertEqual(
            lines[1:],
            [
                "formats/store, formats/tar: 2 files call one another in circles across rooms, such as "
                "formats/store/store -> formats/tar/tar (tar_open) -> formats/store/store (store_read)"
            ],
        )

    def test_circle_through_a_header(self):
        status, lines = check(
            {
                **CLEAN,
                "formats/store/more.h": "static inline int more(void) { return tar_open(0); }\n",
                "formats/store/store.c": """
                    #include "more.h"
                    int store_count, store_read(const char *);
                    int store_read(const char *path) { return more(); }
                    """,
            }
        )
        self.assertEqual(status, 1)
        self.assertIn("3 files call one another in circles across rooms", lines[1])
        self.assertIn("formats/store/store (store_read) -> formats/store/more.h (more)", lines[1])

    def test_circle_within_a_room(self):
        ring = {}
        for i in range(5):
            after = f"ring{(i + 1) % 5}"
            ring[f"formats/csv/ring{i}.c"] = (
                f"int {after}(void);\nint ring{i}(void) {{ return {after}(); }}\n"
            )
        status, lines = check({**CLEAN, **ring})
        self.assertEqual(status, 1)
        self.assertEqual(len(lines), 1)
        self.assertIn("formats/csv: 5 files call one another in circles", lines[0])
        ring["formats/csv/ring4.c"] = "int ring4(void) { return 0; }\n"
        self.found(ring)

    def test_crowded_folder(self):
        self.found({f"base/b{i}.c": "" for i in range(6)}, "base: 7 source files in one folder, more than 6")

    def test_room_without_a_floor(self):
        self.found({"formats/zip/zip.c": ""}, "formats/zip: a room that rules has no floor for")

    def test_struct_that_many_write(self):
        files = {
            "base/box.h": "struct box { int a, *b; struct { int c[2]; } in; int d; };\n",
            "base/one.c": "int one(struct box *x) { x->a = 1; return x->d == 2; }\n",
            "base/two.c": "int two(struct box *const *x) { return (*x)->d == 1; }\n"
            "int three(struct box *x) { x->in.c[1]++; return 0; }\n",
            "base/three.c": "int four(const int *p);\nint five(struct box *x) { return four(&x->d); }\n",
            "base/four.c": "static const struct box all = {.a = 1};\n"
            "int other(struct crate *y) { y->d = 1; return 0; }\n",
        }
        self.found(files)
        files["base/three.c"] = "int four(int *p);\nint five(struct box *x) { return four(&x->d); }\n"
        self.found(
            files,
            "base/box.h: struct box has 4 fields and is written by 3 files: "
            "base/one, base/three, base/two",
        )
        files["base/box.h"] = "struct box { int a, *b; union { struct { int c[2]; } in; int d; }; };\n"
        self.found(files)  # the members of a union are one field
        files["base/box.h"] = "struct box { int a, *b; union { struct { int c[2]; } in; int d; }; int e; };\n"
        self.found(
            files,
            "base/box.h: struct box has 4 fields and is written by 3 files: "
            "base/one, base/three, base/two",
        )

    def test_struct_of_many_members(self):
        grouped = "struct box {{ int a, b[2], c : 1; void (*d)(int, int); struct {{ int x, y; }} e, f; {} }};\n"
        files = {
            "base/box.c": grouped.format("union { struct { int z, zz; } h; }; enum { ONE };"),
            "tools/box.c": grouped.format("int g, h;"),
            "formats/include/millrace/formats.h": "int mr_open(const char *path);\n" + grouped.format("int g, h;"),
        }
        self.found(files)
        files["pipeline/box.c"] = grouped.format("union { int g; struct { int z, zz; } h; };")
        self.found(
            files,
            "pipeline/box.c: struct box has 8 members, more than 7: "
            "group them by subject into structs within it",
        )

    def test_settings_are_for_callers_to_fill(self):
        settings = "typedef struct mr_settings { int a, b, c, d; } mr_settings;\n"
        files = {"formats/include/millrace/formats.h": "int mr_open(const char *path);\n" + settings}
        for i in range(3):
            files[f"{'run' if i else 'tools'}/t{i}.c"] = f"void t{i}(mr_settings *s) {{ s->a = {i}; }}\n"
        self.found(files)

    def test_list_is_grouped(self):
        status, lines = check({**CLEAN, "formats/zip/zip.c": ""}, "--list")
        self.assertEqual((status, lines[0]), (1, "formats: 1"))

    def test_structs(self):
        status, lines = check(
            {
                **CLEAN,
                "base/box.h": "struct box { int a, b, c, d; };\n",
                "base/one.c": "void one(struct box *x) { x->a = 1; x->b = 2; }\n",
            },
            "--structs",
        )
        self.assertEqual((status, lines), (0, ["box: 4 fields (base/box.h)", "    base/one: a, b"]))

    def test_draw(self):
        status, lines = check(
            {**CLEAN, "formats/csv/more.c": "void more(void) { tar_open(0); }\n"}, "--draw", "drawn.txt"
        )
        self.assertEqual(status, 0)
        self.assertIn("        -> formats/store 1", lines)
        self.assertIn("        -> !formats/tar 1", lines)

    def test_wrong_rules_and_empty_tree(self):
        status, lines = check(CLEAN, rules=RULES + "roof tools\n")
        self.assertEqual(status, 2)
        self.assertIn("found 'roof tools'", lines[0])
        self.assertEqual(check({})[0], 2)


if __name__ == "__main__":
    unittest.main()
