"""The judge and the journal of tests/faults: accepted runs and findings, on runs made by hand."""

import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from fault_jobs import Job  # noqa: E402
from fault_judge import Expected, lines_of, message_lacks, restore, said, reports, tree  # noqa: E402


class Ran:
    def __init__(self, stdout, files):
        self.stdout, self.files = stdout, files


class Judge(unittest.TestCase):
    def expected(self):
        job = Job("x", "x", parts=["*.part"], optional=["*.idx"])
        return Expected(job, [Ran(b"4 records in 0.11 s\n", {"a": b"1234567", "b": None}),
                              Ran(b"4 records in 0.32 s\n", {"a": b"12x4567", "b": None})])

    def test_measured_values_are_masked(self):
        self.assertEqual(said(b'{"samples": 3, "seconds": 1.5}'), said(b'{"samples": 3, "seconds": 2}'))
        self.assertNotEqual(said(b'{"samples": 3}'), said(b'{"samples": 4}'))
        self.assertNotEqual(said(b"4 records in 0.1 s"), said(b"5 records in 0.1 s"))

    def test_success(self):
        e = self.expected()
        self.assertIsNone(e.files_of_success({"a": b"12y4567", "b": None}))  # differed between undisturbed runs, too
        self.assertIsNone(e.files_of_success({"a": b"1234567", "b": None, "a.idx": b"?"}))
        self.assertIn("other bytes", e.files_of_success({"a": b"1234568", "b": None}))
        self.assertIn("other bytes", e.files_of_success({"a": b"123", "b": None}))
        self.assertIsNone(e.files_of_success({"a": b"9999567", "b": None}))  # of one word, which two runs drew
        self.assertIn("other bytes", e.files_of_success({"a": b"1239967", "b": None}))
        self.assertIn("no a", e.files_of_success({"b": None}))
        self.assertIn("left", e.files_of_success({"a": b"1234567", "b": None, "a.part": b""}))

    def test_failure(self):
        e = self.expected()
        never = lambda args: False  # noqa: E731
        self.assertIsNone(e.files_of_failure({"a.part": b"12"}, {}, never))
        self.assertIsNone(e.files_of_failure({"a": b"1234567"}, {}, never))
        self.assertIn("half", e.files_of_failure({"a": b"123"}, {}, never))
        self.assertIn("left", e.files_of_failure({"other": b""}, {}, never))
        self.assertIsNone(e.files_of_failure({"a": b"old"}, {"a": b"old"}, never))
        self.assertIn("any more", e.files_of_failure({}, {"a": b"old"}, never))

    def test_a_list_may_lack_lines_of_a_failed_run(self):
        self.assertTrue(lines_of(b"one\nthree\n", b"one\ntwo\nthree\n", killed=False))
        self.assertTrue(lines_of(b"", b"one\n", killed=False))
        self.assertFalse(lines_of(b"one\ntw", b"one\ntwo\n", killed=False))
        self.assertTrue(lines_of(b"one\ntw", b"one\ntwo\n", killed=True))
        self.assertFalse(lines_of(b"two\none\n", b"one\ntwo\n", killed=True))
        self.assertFalse(lines_of(b"other\n", b"one\ntwo\n", killed=True))

    def test_told_in_spite_of_success(self):
        self.assertTrue(reports("name", b"millrace: r/a: cannot remove it: Input/output error", b"", "EIO", "r/a"))
        self.assertFalse(reports("name", b"millrace: r/a: cannot remove it: Input/output error", b"", "EIO", "r/b"))
        self.assertFalse(reports("name", b"millrace: r/a written", b"", "EIO", "r/a"))
        self.assertFalse(reports("name", b"", b"", "EIO"))

    def test_messages(self):
        self.assertIsNone(message_lacks("read", b"millrace: x: Input/output error", b"", "EIO"))
        self.assertIsNotNone(message_lacks("read", b"millrace: x is damaged", b"", "EIO"))
        self.assertIsNotNone(message_lacks("read", b"", b"", "EIO"))


class PowerCut(unittest.TestCase):
    """A part file is written, synced, renamed over an old file; nobody synced the folder."""

    def setUp(self):
        self.temp = tempfile.TemporaryDirectory()
        self.folder, self.journal = (os.path.join(self.temp.name, n) for n in ("run", "journal"))
        os.mkdir(self.folder)
        os.mkdir(self.journal)
        self.write(self.folder, "a", b"old")
        self.write(self.folder, "a.part", b"new")
        inode = os.stat(self.path("a.part")).st_ino
        os.link(self.path("a"), os.path.join(self.journal, "kept-1"))
        os.rename(self.path("a.part"), self.path("a"))
        self.write(self.journal, str(inode), b"ne")  # synced before the last byte
        self.log = f"c\t{self.path('a.part')}\ns\t{inode}\nr\t{self.path('a.part')}\t{self.path('a')}\t1\n"

    def tearDown(self):
        self.temp.cleanup()

    def path(self, name):
        return os.path.join(self.folder, name)

    @staticmethod
    def write(folder, name, data):
        with open(os.path.join(folder, name), "wb") as f:
            f.write(data)

    def after(self, what, more=""):
        self.write(self.journal, "log", (self.log + more).encode())
        restore(self.folder, self.journal, what)
        return tree(self.folder)

    def test_data(self):
        self.assertEqual(self.after("data"), {"a": b"ne"})

    def test_names(self):
        self.assertEqual(self.after("names"), {"a": b"old"})
        self.assertEqual(os.stat(self.path("a")).st_nlink, 1)

    def test_names_that_were_synced(self):
        self.assertEqual(self.after("names", f"f\t{self.folder}\n"), {"a": b"new"})


if __name__ == "__main__":
    unittest.main()
