#!/usr/bin/env python3
"""page_blocks.py and the rules of page_run.py: blocks, marks, commands, shapes; and the errors of wrong pages."""
import os
import tempfile
import unittest

import page_blocks
import page_run

PAGE = """# A page

<!-- not run: needs a GPU -->
```
one
```

<!-- not run, lines with "srun": needs a
cluster -->
<!-- file: a.txt -->
- text
  ```c
  int x;
    int y;
  ```
<!-- output of: echo 12 files -->
```
7 files
```
"""


class Marks(unittest.TestCase):
    def test_blocks_and_their_marks(self):
        gpu, c, shown = page_blocks.blocks_of_text("p.md", PAGE)
        self.assertEqual((gpu.skip, gpu.number, gpu.lines), ("needs a GPU", 5, ["one"]))
        self.assertEqual((c.skip_lines, c.file, c.language, c.lines), ([], None, "c", ["int x;", "  int y;"]))  # text stands between
        self.assertEqual(shown.output_of, "echo 12 files")
        block, = page_blocks.blocks_of_text("p.md", PAGE.replace("- text\n", "").split("needs a GPU -->\n```\none\n```\n")[1].split("<!-- output")[0])
        self.assertEqual((block.skip_lines, block.file), ([("srun", "needs a cluster")], "a.txt"))

    def test_a_block_without_an_end(self):
        with self.assertRaises(ValueError):
            page_blocks.blocks_of_text("p.md", "```\none\n")

    def commands(self, text):
        return [(n, c, o) for n, c, o in page_blocks.commands(page_blocks.blocks_of_text("p.md", f"```\n{text}\n```\n")[0])]

    def test_commands(self):
        self.assertEqual(self.commands("# only a comment\na b   # c\nd \\\n  e |\n  f"), [(3, "a b", []), (4, "d    e |   f", [])])
        self.assertEqual(self.commands("for x in 1 2; do\n    y\ndone\nz"), [(2, "for x in 1 2; do\n    y\ndone", []), (5, "z", [])])
        self.assertEqual(self.commands("$ a\nout 1\nout 2\n$ b"), [(2, "a", ["out 1", "out 2"]), (5, "b", [])])

    def test_output_before_the_first_command(self):
        with self.assertRaises(ValueError):
            self.commands("out 1\n$ a")

    def test_shapes(self):
        self.assertIsNone(page_blocks.missing(["took 3.5  s", "...", "4 files"], "x\ntook 10 s\ny\n1,234 files\n"))
        self.assertEqual(page_blocks.missing(["4 files", "took 3 s"], "took 10 s\n4 files\n"), "took 3 s")  # another order
        self.assertEqual(page_blocks.missing(["4 files"], "4 folders\n"), "4 files")


class Rooms:
    """The surroundings of a block, without data and library."""
    environment = {"PATH": os.environ["PATH"]}

    def __init__(self, folder):
        self.folder, self.prelude, self.data = os.path.join(folder, "work"), [], self
        self.checkout, self.room = page_run.Checkout(os.path.join(folder, "top"), "build"), folder
        os.makedirs(self.folder)

    def checkpoint(self, *_):
        pass

    def new_folder(self, _):
        pass

    bash = page_run.House.bash


class Runs(unittest.TestCase):
    def faults(self, text):
        with tempfile.TemporaryDirectory() as folder:
            tally, self.expected = page_run.Tally(), os.path.join(folder, "top", "tests", "expected")
            os.makedirs(os.path.dirname(self.expected))
            with open(self.expected, "w", encoding="utf-8") as file:
                file.write("old\n")
            page_run.run_page(Rooms(folder), page_blocks.blocks_of_text("p.md", text), tally)
            with open(self.expected, encoding="utf-8") as file:
                self.content = file.read()
            return tally

    def test_a_line_that_fails_is_named(self):
        tally = self.faults("```\ntrue\nfalse\n```\n")
        self.assertEqual((tally.lines, len(tally.wrong)), (2, 1))
        self.assertIn("p.md:3: false: expected status 0, found 1", tally.wrong[0])

    def test_output_that_is_not_printed(self):
        self.assertEqual(self.faults("```\n$ echo 12 files\n7 files\n```\n").wrong, [])
        self.assertIn("not printed: 7 folders", self.faults("```\n$ echo 12 files\n7 folders\n```\n").wrong[0])
        self.assertIn("not printed: 7 folders", self.faults("<!-- output of: echo 12 files -->\n```\n7 folders\n```\n").wrong[0])

    def test_a_language_without_a_rule(self):
        self.assertIn("without a rule", self.faults("```c\nint x;\n```\n").wrong[0])

    def test_reasons_are_kept(self):
        tally = self.faults("<!-- not run: needs a GPU -->\n```\nfalse\n```\n<!-- not run, lines with \"srun\": needs a cluster -->\n```\nsrun x\ntrue\n```\n")
        self.assertEqual((tally.wrong, tally.reasons), ([], {"needs a GPU": ["p.md:3"], "needs a cluster": ["p.md:7"]}))

    def test_a_file_for_later_blocks(self):
        self.assertEqual(self.faults("```\n# a.txt\nx\n```\n```\ngrep x a.txt\n```\n").wrong, [])

    def test_a_line_for_new_expected_files_does_not_run(self):
        tally = self.faults("```\nMILLRACE_UPDATE=1 sh -c 'echo new >../top/tests/expected'\n```\n")
        self.assertIn("p.md:2: MILLRACE_UPDATE=1", tally.wrong[0])
        self.assertIn("not run, since it writes files of the checkout", tally.wrong[0])
        self.assertEqual((len(tally.wrong), self.content), (1, "old\n"))

    def test_a_page_that_changes_the_checkout_fails(self):
        for line, name in (("echo new >../top/tests/expected", "tests/expected"), ("touch ../top/more", "more"), ("rm ../top/tests/expected; "
                           "echo old >../top/tests/expected", "tests/expected"), ("chmod +x ../top/tests/expected", "tests/expected")):
            with self.subTest(line=line):
                tally = self.faults(f"```\ntrue\n{line}\n```\n")
                self.assertEqual(len(tally.wrong), 1)
                self.assertIn(f"p.md: files of the checkout changed while its blocks ran: {name};", tally.wrong[0])

    def test_a_copy_of_the_checkout_may_change(self):
        with tempfile.TemporaryDirectory() as folder:
            os.makedirs(os.path.join(folder, "top", "tests", "corpus"))
            checkout = page_run.Checkout(os.path.join(folder, "top"), "build")
            checkout.copy("tests", os.path.join(folder, "tests"))
            os.makedirs(os.path.join(folder, "tests", "new"))
            self.assertEqual((checkout.changed(), sorted(os.listdir(os.path.join(folder, "tests")))), ([], ["new"]))


if __name__ == "__main__":
    unittest.main()
