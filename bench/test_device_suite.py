#!/usr/bin/env python3
"""Tests of the device suite's own programs, with made-up cases: python3 bench/test_device_suite.py"""
import doctest
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import device_resnet  # noqa: E402
import device_summary  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))


def load_tests(_loader, tests, _pattern):
    for module in (device_resnet, device_summary):
        tests.addTests(doctest.DocTestSuite(module))
    return tests


def lay(raw, section, name, stdout="", status=0, absent=None, stderr=""):
    """One case as device_suite.sh lays it down."""
    folder = os.path.join(raw, f"{1 + len([n for n in os.listdir(raw) if n.isdigit()]):03d}")
    os.mkdir(folder)
    parts = {"section": section, "name": name}
    if absent:
        parts["absent"] = absent
    else:
        parts.update(command="millrace\nsome thing\n", stdout=stdout, stderr=stderr, status=str(status), times="10.5 12.75")
    for part, text in parts.items():
        with open(os.path.join(folder, part), "w", encoding="utf-8") as f:
            f.write(text)


def loss_row(loss, accuracy=0.9):
    return json.dumps({"event": "train", "loss": loss, "accuracy": 0.5, "val_accuracy": accuracy, "weights": "ab", "samples_per_s": 1, "step_ms": 1})


class Summary(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.raw, self.out = os.path.join(self.folder.name, "raw"), os.path.join(self.folder.name, "out")
        os.mkdir(self.raw)
        os.mkdir(self.out)
        self.mark("device", "cuda:0")

    def tearDown(self):
        self.folder.cleanup()

    def mark(self, name, text=""):
        with open(os.path.join(self.raw, name), "w", encoding="utf-8") as f:
            f.write(text)

    def run_it(self, sections):
        self.mark("chosen", sections)
        done = subprocess.run([sys.executable, os.path.join(HERE, "device_summary.py"), self.raw, self.out], capture_output=True, text=True, check=False)
        with open(os.path.join(self.out, "device_suite.json"), encoding="utf-8") as f:
            summary = json.load(f)
        with open(os.path.join(self.out, "device_suite.txt"), encoding="utf-8") as f:
            self.assertEqual(f.read(), done.stdout)
        return done.returncode, summary, done.stdout

    def test_losses_within_tolerance_pass_and_others_fail(self):
        for length, on_device, fine in (("1 steps", 2.30001, True), ("1 steps", 2.31, False), ("64 steps", 2.31, True), ("an epoch", 2.6, False)):
            with self.subTest(length=length, on_device=on_device):
                self.tearDown()
                self.setUp()
                lay(self.raw, "train", f"mnist-cnn, {length}, reference", loss_row(2.3))
                lay(self.raw, "train", f"mnist-cnn, {length}, device", loss_row(on_device))
                code, summary, _ = self.run_it("train")
                self.assertEqual((code, summary["sections"]["train"]["status"]), (0, "passed") if fine else (1, "failed"))

    def test_accuracy_that_differs_fails(self):
        lay(self.raw, "train", "mnist-cnn, an epoch, reference", loss_row(2.3, 0.98))
        lay(self.raw, "train", "mnist-cnn, an epoch, device", loss_row(2.3, 0.9))
        self.assertEqual(self.run_it("train")[0], 1)

    def test_a_nan_is_no_agreement(self):
        lay(self.raw, "train", "mnist-cnn, 64 steps, reference", loss_row(2.3))
        lay(self.raw, "train", "mnist-cnn, 64 steps, device", loss_row(float("nan")))
        self.assertEqual(self.run_it("train")[0], 1)

    def test_digests_and_weights_must_be_equal(self):
        for last, code in (("aa", 0), ("bb", 1)):
            with self.subTest(last=last):
                self.tearDown()
                self.setUp()
                lay(self.raw, "train", "digest, prefetch off", '{"event": "digest", "digest": "aa"}')
                lay(self.raw, "train", "digest, host", json.dumps({"event": "digest", "digest": last}))
                self.assertEqual(self.run_it("train")[0], code)
        lay(self.raw, "train", "cifar-cnn, recorded steps on", '{"event": "train", "weights": "11"}')
        lay(self.raw, "train", "cifar-cnn, recorded steps off", '{"event": "train", "weights": "12"}')
        code, _, text = self.run_it("train")
        self.assertEqual(code, 1)
        self.assertIn("WRONG cifar-cnn, weights", text)

    def test_a_command_that_fails_is_told_and_the_rest_counts(self):
        lay(self.raw, "kernels", "test_device_ops, f32", "[  PASSED  ] 3 test(s).\n")
        lay(self.raw, "kernels", "test_device_ops, tf32", "", 1, stderr="first\nout of luck\n")
        lay(self.raw, "h2d", "pinned", json.dumps({"memory": "pinned", "direction": "h2d", "gb_per_s": 50.5}))
        code, summary, text = self.run_it("kernels h2d loader")
        self.assertEqual(code, 1)
        self.assertEqual({k: v["status"] for k, v in summary["sections"].items()}, {"kernels": "failed", "h2d": "passed", "loader": "not run"})
        self.assertIn("FAILED: test_device_ops, tf32: exit status 1: first | out of luck", text)
        self.assertEqual(summary["sections"]["kernels"]["cases"][0]["command"], ["millrace", "some thing"])
        self.assertEqual(summary["sections"]["kernels"]["cases"][0]["seconds"], 2.25)

    def test_what_is_absent_or_skipped_is_listed_and_no_failure(self):
        lay(self.raw, "sanitize", "memcheck", absent="compute-sanitizer is not here")
        lay(self.raw, "kernels", "test_device_ops, f32", "SKIP: no such device\n", 77)
        code, summary, text = self.run_it("kernels sanitize")
        self.assertEqual((code, summary["sections"]["sanitize"]["status"], summary["sections"]["kernels"]["status"]), (0, "not run", "not run"))
        self.assertIn("not run: memcheck: compute-sanitizer is not here", text)
        self.assertIn("SKIP: no such device", text)

    def test_tools_of_others_may_fail(self):
        lay(self.raw, "profile", "nsys", "", 1)
        self.assertEqual(self.run_it("profile")[0], 0)

    def test_claims_are_judged_and_fall_short_without_failing(self):
        lay(self.raw, "h2d", "pinned", json.dumps({"memory": "pinned", "direction": "h2d", "gb_per_s": 50.0}))
        row = {"event": "resnet", "precision": "bf16", "batch": 256, "samples_s": {"millrace": 9, "eager": 10}, "absent": {}, "ratio": 0.9}
        lay(self.raw, "resnet", "turns", json.dumps({"event": "torch", "about": None, "absent": "none"}) + "\n" + json.dumps(row))
        epoch = {"event": "epoch", "stages": {"copy": {"items": 4}}, "bytes_copied": [4e6]}
        end = {"event": "train", "stall_fraction": 0.005, "samples_per_s": 100, "step_ms": 4}
        lay(self.raw, "real", "prefetch 4", json.dumps(epoch) + "\n" + json.dumps(end))
        self.mark("trace-4.json", json.dumps({"traceEvents": [{"ph": "X", "name": "copy", "dur": us} for us in (20.0, 21.0, 90.0)]}))
        code, summary, text = self.run_it("h2d resnet real")
        self.assertEqual(code, 0)
        held = {c["claim"].split(":")[0].split(",")[0]: (c["found"], c["held"]) for c in summary["claims"]}
        self.assertEqual(held["exposed stall of real-data training"], (0.005, True))
        self.assertAlmostEqual(held["the copy stream reaches 90 % of the measured pinned peak"][0], 1e6 / 21e3 / 50)
        self.assertEqual(held["ResNet-50 bf16"], (0.9, False))
        self.assertEqual(held["kernel tests clean under compute-sanitizer"], (None, None))
        self.assertIn("fell short", text)

    def test_an_emulated_device_makes_no_claims(self):
        self.mark("quick")
        self.mark("emulated")
        lay(self.raw, "h2d", "pinned", json.dumps({"memory": "pinned", "direction": "h2d", "gb_per_s": 50.0}))
        _, summary, text = self.run_it("h2d")
        self.assertEqual((summary["claims"], summary["emulated"]), ([], True))
        self.assertIn("EMULATED", text.splitlines()[0])

    def test_kernels_of_a_profile_are_summed(self):
        lines = ["==PROF== noise", '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"',
                 '"0","mrk_update(args)","gpu__time_duration.sum","us","1,000.5"', '"1","mrk_update(args)","gpu__time_duration.sum","us","2"',
                 '"0","mrk_update(args)","dram__throughput.avg.pct_of_peak_sustained_elapsed","%","81"']
        lay(self.raw, "profile", "ncu", "\n".join(lines))
        _, summary, _ = self.run_it("profile")
        self.assertEqual(summary["sections"]["profile"]["figures"]["kernels"],
                         [{"kernel": "mrk_update", "launches": 2, "ns": 1002500.0, "dram_percent": 81.0, "sm_percent": None}])


class Libraries(unittest.TestCase):
    def test_folders_of_packages(self):
        with tempfile.TemporaryDirectory() as root:
            for path in ("nvidia/cu13/lib/libcublas.so.13", "nvidia/cudnn/lib/libcudnn.so.9", "nvidia/other/lib/libother.so"):
                os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                open(os.path.join(root, path), "w").close()
            self.assertEqual(device_summary.library_folders([root, root, "/nowhere"]),
                             [os.path.join(root, "nvidia/cu13/lib"), os.path.join(root, "nvidia/cudnn/lib")])


FAKE_TORCH = """
import json, sys
print(json.dumps({"torch": "0"}), flush=True)
for line in sys.stdin:
    ask = json.loads(line)
    print(json.dumps({"error": "no compiler"} if ask["variant"] == "compile" else {"ms": 2.0, "samples_s": 500.0 * ask["batch"]}), flush=True)
"""
FAKE_MILLRACE = """#!/bin/sh
echo '{"event": "bench", "ms": 1.0, "ms_mad": 0.1, "samples_s": 4000, "steps": 10}'
"""


class Turns(unittest.TestCase):
    def run_it(self, torch, millrace, *options):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (("torch_resnet.py", torch), ("millrace", millrace)):
                with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                    f.write(text)
                os.chmod(os.path.join(folder, name), 0o755)
            script = os.path.join(folder, "device_resnet.py")
            with open(os.path.join(HERE, "device_resnet.py"), encoding="utf-8") as source, open(script, "w", encoding="utf-8") as f:
                f.write(source.read())
            done = subprocess.run([sys.executable, script, os.path.join(folder, "millrace"), "cuda:0", "--batches", "4", "--precisions", "bf16", "--rounds", "2",
                                   *options], capture_output=True, text=True, check=False)
        return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]

    def test_ours_over_the_best_that_ran(self):
        code, rows = self.run_it(FAKE_TORCH, FAKE_MILLRACE, "--variants", "eager,compile")
        self.assertEqual((code, rows[-1]["ratio"], rows[-1]["absent"]), (0, 2.0, {"compile": "no compiler"}))
        self.assertEqual([row["who"] for row in rows if row["event"] == "turn"], ["millrace", "eager", "compile", "eager", "millrace"])

    def test_a_yardstick_that_does_not_start_is_listed(self):
        code, rows = self.run_it("raise ImportError('no torch')", FAKE_MILLRACE, "--variants", "eager")
        self.assertEqual((code, rows[0]["absent"], rows[-1]["ratio"], rows[-1]["samples_s"]), (0, "ImportError: no torch", None, {"millrace": 4000}))

    def test_millrace_that_fails_fails(self):
        code, rows = self.run_it(FAKE_TORCH, "#!/bin/sh\necho 'millrace: no memory' >&2; exit 1\n", "--variants", "eager")
        self.assertEqual((code, rows[-1]["absent"]["millrace"]), (1, "exit status 1: millrace: no memory"))

    def test_without_time_nothing_is_begun_and_nothing_failed(self):
        code, rows = self.run_it(FAKE_TORCH, FAKE_MILLRACE, "--variants", "eager", "--most", "1")
        self.assertEqual((code, rows[-1]["absent"]["millrace"]), (0, "no time left"))


if __name__ == "__main__":
    unittest.main()
