"""What tools/scripts/check_globals.py finds in objects made for it: test_check_globals.py SCRIPT COMPILER."""

import os
import subprocess
import sys
import tempfile
import unittest

SCRIPT, COMPILER = sys.argv[1:3]
CLEAN = {
    "base/a.c": "int mri_used(void) { return 1; } int mr_public(void) { return 2; } static int own = 3; int mr_own(void) { return own; }",
    "pipeline/b.c": "int mri_used(void); int mri_tested(void) { return mri_used(); } int mri_count;",
    "tests/c.c": "int mri_tested(void); extern int mri_count; int main(void) { return mri_tested() + mri_count; }",
}


def check(files):
    with tempfile.TemporaryDirectory(prefix="millrace-globals-") as build:
        for name, text in files.items():
            os.makedirs(os.path.join(build, os.path.dirname(name)), exist_ok=True)
            source = os.path.join(build, name)
            with open(source, "w", encoding="utf-8") as file:
                file.write(text)
            subprocess.run([COMPILER, "-c", "-o", source + ".o", source], check=True)
        ran = subprocess.run([sys.executable, "-B", SCRIPT, build], capture_output=True, text=True)
        return ran.returncode, ran.stdout.splitlines()


class CheckGlobals(unittest.TestCase):
    def test_clean(self):
        self.assertEqual(check(CLEAN), (0, []))

    def test_function_and_variable_of_one_file(self):
        status, lines = check({**CLEAN, "train/d.c": "int mri_alone(void) { return 0; } int mri_state = 1;"})
        self.assertEqual(status, 1)
        self.assertEqual([line.split(" is ")[0] for line in lines], ["train/d.c: mri_alone", "train/d.c: mri_state"])

    def test_what_tests_define_is_theirs(self):
        self.assertEqual(check({**CLEAN, "tests/d.c": "int helper(void) { return 0; }"}), (0, []))

    def test_no_build(self):
        self.assertEqual(check({})[0], 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
