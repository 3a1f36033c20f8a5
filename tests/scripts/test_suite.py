#!/usr/bin/env python3
"""tools/scripts/suite.py and tests/launch.c on small test folders with planted failures, hangs and flakes.

usage: test_suite.py SUITE.PY MRT_LAUNCH"""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

SUITE, LAUNCH = sys.argv[1:3]


class Folder(unittest.TestCase):
    def setUp(self):
        self.temp = tempfile.TemporaryDirectory()
        self.addCleanup(self.temp.cleanup)
        self.path = pathlib.Path(self.temp.name)
        self.results = self.path / "results"

    def call(self, *words):
        done = subprocess.run([sys.executable, "-B", SUITE, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False, stdin=subprocess.DEVNULL)
        return done.returncode, done.stdout

    def run_tests(self, tests, *options, name="release", seconds=100):
        """tests: {name: shell text}, run under mrt_launch."""
        build = self.path / name
        build.mkdir()
        lines = []
        for test, text in tests.items():
            script = build / f"{test}.sh"
            script.write_text(text)
            lines.append(f'add_test({test} "{LAUNCH}" "{seconds}" "sh" "{script}" "{build}")\n'
                         f"set_tests_properties({test} PROPERTIES SKIP_RETURN_CODE 77)\n")
        (build / "CTestTestfile.cmake").write_text("".join(lines))
        return self.call("test", self.results, name, build, *options)

    def result(self):
        status, text = self.call("result", self.results)
        return status, text.rstrip().splitlines()


FLAKE = 'test -e "$1/seen" || { touch "$1/seen"; echo "only the first time"; exit 1; }'


class Suite(Folder):
    def test_all_pass(self):
        status, _ = self.run_tests({"a": "true", "b": "echo 'SKIP: no such card'; exit 77"})
        self.assertEqual(status, 0)
        status, lines = self.result()
        self.assertEqual(status, 0)
        self.assertEqual(lines[-1], "1 passed, 0 failed, 1 skipped")
        self.assertTrue(any("skipped b: no such card" in line for line in lines))

    def test_a_failure_is_told_at_the_end(self):
        status, _ = self.run_tests({"good": "true", "bad": "seq 1 100; exit 3"})
        self.assertEqual(status, 1)
        status, lines = self.result()
        self.assertEqual(status, 1)
        self.assertEqual(lines[-1], "1 passed, 1 failed, 0 skipped")
        self.assertEqual(lines[-2], "FAILED release bad")
        end = "\n".join(lines[-45:])
        self.assertIn("    launch: exit status 3 after 0", end)
        self.assertIn("bad.sh", end)
        self.assertIn("\n    100\n", end)
        self.assertNotIn("\n    60\n", end)

    def test_a_signal_is_named(self):
        self.run_tests({"bad": "kill -ABRT $$"})
        self.assertIn("launch: signal 6 (Aborted)", "\n".join(self.result()[1]))

    def test_a_flake_is_green_and_told(self):
        status, _ = self.run_tests({"good": "true", "odd": FLAKE})
        self.assertEqual(status, 0)
        status, lines = self.result()
        self.assertEqual(status, 0)
        self.assertEqual(lines[-2:], ["FLAKY release odd", "2 passed, 0 failed, 0 skipped"])
        self.assertIn("    only the first time", lines)
        kept = (self.results.parent / "flaky.txt").read_text()
        self.assertIn("FLAKY release odd\n", kept)
        self.assertIn("only the first time", kept)

    def test_strict_takes_no_second_try(self):
        status, _ = self.run_tests({"odd": FLAKE}, "--strict")
        self.assertEqual(status, 1)
        self.assertEqual(self.result()[0], 1)

    def test_a_sanitizers_report_stays(self):
        status, _ = self.run_tests({"race": 'test -e "$1/seen" || { touch "$1/seen"; echo "WARNING: ThreadSanitizer: data race"; exit 66; }'})
        self.assertEqual(status, 1)
        self.assertEqual(self.result()[1][-2], "FAILED release race")

    def test_many_failures_are_no_flakes(self):
        tests = {f"t{k}": FLAKE.replace("seen", f"seen{k}") for k in range(9)}
        self.assertEqual(self.run_tests(tests)[0], 1)

    def test_a_hang_shows_what_it_does(self):
        status, _ = self.run_tests({"stuck": "sleep 1000"}, "--strict", seconds=1)
        self.assertEqual(status, 1)
        text = "\n".join(self.result()[1])
        self.assertIn("launch: not over after 1 s. Its threads:", text)
        self.assertIn(": sleep 1000", text)
        self.assertIn("launch: its time was over", text)

    def test_builds_stand_side_by_side(self):
        self.run_tests({"a": "true"})
        self.run_tests({"a": "exit 1"}, "--strict", name="asan")
        log = self.path / "log"
        log.write_text("no such header\n")
        self.call("part", self.results, "build-tsan", 3, 2, log)
        self.call("part", self.results, "tidy", 3, 0, log)
        log.write_text("SKIP: not installed\n")
        self.call("part", self.results, "quickstart", 3, 77, log)
        status, lines = self.result()
        self.assertEqual(status, 1)
        self.assertEqual(lines[-3:], ["FAILED asan a", "FAILED build-tsan", "2 passed, 2 failed, 1 skipped"])
        self.assertTrue(any("skipped: not installed, 3 s" in line for line in lines))
        self.assertIn("    no such header", lines)

    def test_nothing_is_a_failure(self):
        self.assertEqual(self.run_tests({})[0], 1)
        self.assertEqual(self.result()[0], 1)
        self.assertEqual(self.call("result", self.path / "nowhere")[0], 1)


class Launch(Folder):
    def launch(self, text, seconds="100", **options):
        environment = {**os.environ, "TMPDIR": str(self.path), "https_proxy": "http://nobody:1", "MILLRACE_SIMD": "plain"}
        return subprocess.run([LAUNCH, seconds, "sh", "-c", text], stdout=subprocess.PIPE, text=True, check=False,
                              env=environment, **options)

    def test_surroundings(self):
        done = self.launch('cat; umask; echo "$LC_ALL $TZ ${https_proxy-none} ${MILLRACE_SIMD-none}"; cd "$TMPDIR" && cd "$HOME" && '
                           'cd "$XDG_CACHE_HOME" && mkdir -p a/b && chmod 0 a; echo "$TMPDIR"', input="not for the test")
        lines = done.stdout.splitlines()
        self.assertEqual(done.returncode, 0)
        self.assertEqual(lines[:2], ["0022", "C UTC none none"])
        self.assertTrue(lines[2].startswith(str(self.path)))
        self.assertEqual(list(self.path.iterdir()), [])  # removed after it

    def test_what_is_left_running_ends(self):
        done = self.launch("(trap '' TERM; setsid sleep 1000) & echo $!")
        number = int(done.stdout.splitlines()[0])
        self.assertEqual(done.returncode, 0)
        self.assertIn("launch: left running, killed now", done.stdout)
        with self.assertRaises(ProcessLookupError):
            os.kill(number, 0)

    def test_blocked_and_ignored_signals_do_not_come_through(self):
        def deaf():
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        self.assertEqual(self.launch("kill -INT $$", preexec_fn=deaf).returncode, 130)
        self.assertEqual(self.launch("kill -TERM $$", preexec_fn=deaf).returncode, 143)

    def test_no_such_command(self):
        done = subprocess.run([LAUNCH, "5", "/no/such/program"], stdout=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 126)
        self.assertIn("launch: /no/such/program: No such file or directory", done.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
