#!/usr/bin/env python3
"""tools/scripts/check_writes.py on small trees with planted calls.

usage: test_check_writes.py CHECK_WRITES.PY"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = sys.argv.pop(1)
MADE = ["open(path, O_RDWR | O_CREAT, 0600)", 'fopen(path, "we")', 'fopen(path, "r+")', "rename(a, b)", "renameat2(x, a, y, b, 0)",
        "mkostemp(name, 0)", "creat(path, 0600)", "open(folder, O_TMPFILE | O_RDWR)", "symlink(a, b)", "link(a, b)", "tmpfile()"]
READ = ["open(path, O_RDONLY)", 'fopen(path, "re")', "mri_kept_rename(a, b)", "/* rename(a, b) */ f()", "// O_CREAT\n", "unlink(path)"]


def check(name, call):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "formats").mkdir()
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"int f(void)\n{{\n    {call};\n}}\n", encoding="utf-8")
        return subprocess.run([sys.executable, "-B", SCRIPT, folder], capture_output=True, text=True, check=False)


class Writes(unittest.TestCase):
    def test_what_makes_a_file_is_named(self):
        for call in MADE:
            done = check("train/state/x.c", call)
            self.assertEqual(done.returncode, 1, call)
            self.assertIn("train/state/x.c:3: ", done.stdout)

    def test_what_reads_is_not(self):
        for call in READ:
            done = check("tools/cli/x.c", call)
            self.assertEqual((done.returncode, done.stdout), (0, "no complaints\n"), call)

    def test_the_road_itself_may(self):
        for call in MADE:
            self.assertEqual(check("formats/storage/kept.c", call).returncode, 0, call)

    def test_another_folder_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, "-B", SCRIPT, folder], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)


if __name__ == "__main__":
    unittest.main()
