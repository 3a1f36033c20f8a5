#!/usr/bin/env python3
"""Tests of the comparison programs themselves, with made-up contestants: python3 bench/test_bench.py"""
import doctest
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree as ElementTree

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import chart  # noqa: E402
import formats  # noqa: E402
import measuring  # noqa: E402
import mosaics  # noqa: E402
import ours  # noqa: E402
import peer_loaders  # noqa: E402
import peers  # noqa: E402
import public_scripts  # noqa: E402
import ratios  # noqa: E402
import rounds  # noqa: E402
import set_journey  # noqa: E402
import storage  # noqa: E402


def load_tests(_loader, tests, _pattern):
    for module in (rounds, ours, peers, ratios, formats, mosaics, chart, storage, set_journey):
        tests.addTests(doctest.DocTestSuite(module))
    return tests


class Fake:
    """Returns the given rates, one a turn; a text makes it drop out with that reason."""
    label, kind = "a fake", "peer"

    def __init__(self, ident, *rates):
        self.ident, self.rates, self.about, self.turns = ident, list(rates), {}, 0

    def turn(self, _seconds):
        rate = self.rates[min(self.turns, len(self.rates) - 1)]
        self.turns += 1
        if isinstance(rate, str):
            raise rounds.Absent(rate)
        return {"samples_per_s": rate, "cpu_s_per_1000": 1.0, "peak_rss_mb": 10.0 * self.turns}


def quiet(_text):
    pass


class Measuring(unittest.TestCase):
    TURNS = {"with": lambda: (99.0, 9.0), "without": lambda: (100.0, 10.0)}

    def stolen(self, rounds):
        """compare() with a host that takes half of the time of every round."""
        ticks = iter(range(2 * rounds + 2))
        before, measuring.planner.cpu_ticks = measuring.planner.cpu_ticks, lambda: (next(ticks),) * 2
        try:
            return measuring.compare("x", self.TURNS, rounds)
        finally:
            measuring.planner.cpu_ticks = before

    def test_few_rounds_show_that_it_works(self):
        row = self.stolen(2)
        self.assertEqual((row["rounds"], row["left_out"], row["rate"]["median"], row["cpu"]["median"]), (2, 0, 0.99, 0.9))

    def test_rounds_of_a_taken_host_are_left_out(self):
        with self.assertRaisesRegex(rounds.Absent, "in 6 of 6 rounds"):
            self.stolen(6)

    def test_the_quick_run_has_a_pair(self):
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "all.sh"), encoding="utf-8") as script:
            step, = [line for line in script if line.startswith("measuring|")]
        self.assertIn(step.split("--only ")[1].strip(), measuring.LOADS)


class Rounds(unittest.TestCase):
    def test_the_warm_up_does_not_count(self):
        results, absent = rounds.run_rounds([Fake("a", 1000.0, 5.0, 7.0)], 2, 1, "y", quiet)
        self.assertEqual(rounds.column(results, "a"), [5.0, 7.0])
        self.assertEqual(absent, {})

    def test_the_yardstick_counts_with_the_mean_of_its_two_turns(self):
        yardstick = Fake("y", 9.0, 9.0, 10.0, 20.0)
        results, _ = rounds.run_rounds([Fake("a", 1.0), yardstick], 1, 1, "y", quiet)
        self.assertEqual(rounds.column(results, "y"), [15.0])
        self.assertEqual(yardstick.turns, 4)

    def test_who_drops_out_is_told_and_keeps_earlier_rounds(self):
        results, absent = rounds.run_rounds([Fake("a", 1.0, 2.0, "it broke"), Fake("b", 4.0)], 3, 1, "y", quiet)
        self.assertEqual(rounds.column(results, "a"), [2.0, None, None])
        self.assertEqual(absent, {"a": "it broke"})
        self.assertEqual(rounds.ratios(rounds.column(results, "b"), rounds.column(results, "a")), [2.0])

    def test_every_round_has_everybody_once_in_changing_order(self):
        orders = [rounds.order_of(list("abcdef"), "y", number) for number in range(8)]
        self.assertTrue(all(sorted(order) == list("abcdef") for order in orders))
        self.assertGreater(len(set(map(tuple, orders))), 4)

    def test_a_row_keeps_the_most_memory_and_the_median_rate(self):
        fake = Fake("a", 0.0)
        found = [{"samples_per_s": s, "cpu_s_per_1000": 2.0, "peak_rss_mb": m} for s, m in ((1.0, 3.0), (3.0, 9.0), (2.0, 4.0))]
        row = rounds.contestant_row("t", fake, found, [1.0, 1.0, 4.0])
        self.assertEqual((row["median_samples_per_s"], row["peak_rss_mb"], row["cpu_s_per_1000"]), (2.0, 9.0, 2.0))
        self.assertEqual(row["to_yardstick"], {"median": 1.0, "min": 0.5, "max": 3.0, "rounds": 3})

    def test_rows_come_back_as_written(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "rows.json")
            rows = [{"row": "run", "x": 1}, {"row": "absent", "reason": "ß"}]
            rounds.write_rows(path, rows)
            self.assertEqual(rounds.read_rows(path), rows)
            self.assertEqual(os.listdir(folder), ["rows.json"])


class Programs(unittest.TestCase):
    def test_a_program_that_fails_gives_its_last_words(self):
        with self.assertRaisesRegex(rounds.Absent, "^out of luck$"):
            rounds.call(["sh", "-c", "echo first >&2; echo out of luck >&2; exit 3"], 10)

    def test_a_program_that_is_not_there_is_absent(self):
        with self.assertRaisesRegex(rounds.Absent, "No such file"):
            rounds.call(["/no/such/program"], 10)

    def test_a_program_that_hangs_is_ended(self):
        with self.assertRaisesRegex(rounds.Absent, "did not end"):
            rounds.call(["sleep", "100000"], 0.2)

    def test_the_environment_reaches_it_and_its_cost_is_its_own(self):
        text, cost = rounds.call(["sh", "-c", "echo $MILLRACE_SIMD"], 10, {"MILLRACE_SIMD": "avx2"})
        self.assertEqual(text, "avx2\n")
        self.assertLess(cost.ru_utime, 5)

    def test_no_result_is_absent(self):
        with self.assertRaises(rounds.Absent):
            rounds.last_object("nothing here\n")


ANSWERS = """
import json, sys
print(json.dumps({"ready": True}), flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    print(json.dumps({"samples": 640, "seconds": 2.0, "cpu_s": 1.28, "peak_rss_mb": asked["skip"], "pss_mb": 1.0}), flush=True)
"""


def state_of(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        return f.read().rpartition(")")[2].split()[0]


class Peers(unittest.TestCase):
    def test_a_turn_and_stopped_before_and_after(self):
        peer = peers.Peer("p", "p", [sys.executable, "-c", ANSWERS])
        try:
            for _ in range(2):
                while state_of(peer.child.pid) != "T":
                    time.sleep(0.01)
                self.assertEqual(peer.turn(1), {"samples_per_s": 320.0, "cpu_s_per_1000": 2.0, "peak_rss_mb": peers.SKIP, "pss_mb": 1.0})
        finally:
            peer.close()
        self.assertIsNotNone(peer.child.returncode)

    def test_one_that_does_not_start_gives_its_reason_and_what_to_install(self):
        with self.assertRaisesRegex(rounds.Absent, r"^ImportError: no such loader \(apt install x\)$"):
            peers.Peer("p", "p", [sys.executable, "-c", "raise ImportError('no such loader')"], " (apt install x)")

    def test_one_that_dies_between_turns_is_absent(self):
        peer = peers.Peer("p", "p", [sys.executable, "-c", "print('{}', flush=True); input(); raise SystemExit('gone')"])
        with self.assertRaisesRegex(rounds.Absent, "gone"):
            peer.turn(0.1)
        peer.close()

    def test_one_that_never_gets_ready_is_ended(self):
        with self.assertRaisesRegex(rounds.Absent, "no answer"):
            peers.Peer("p", "p", [sys.executable, "-c", "import time; time.sleep(100000)"], seconds_most=0.3)

    def test_every_peer_can_be_made_and_no_name_is_taken_twice(self):
        self.assertEqual({*peers.PEERS, *ours.DOORS}, set(peer_loaders.LOADERS))
        self.assertFalse(set(peers.PEERS) & {*ours.OURS, *ours.DOORS})
        self.assertTrue(all(data in ours.OURS for _, data in ours.DOORS.values()))
        self.assertTrue(all(package in peers.PINS for _, needs, _ in peers.PEERS.values() for package in needs))
        names = {*peers.PEERS, *ours.OURS, *ours.DOORS, "best-jpeg"}
        self.assertTrue(all(name in names for pair in peers.PAIRS for name in pair))

    def test_a_turn_of_a_stream_skips_and_counts_whole_batches(self):
        taken = []

        def stream():
            while True:
                time.sleep(0.001)
                taken.append(1)
                yield 4
        found = peer_loaders.one_turn(stream(), 3, 0.05)
        self.assertEqual(found["samples"], 4 * (len(taken) - 3))
        self.assertGreaterEqual(found["seconds"], 0.05)
        self.assertGreater(found["peak_rss_mb"], 1)

    def test_children_count(self):
        burn = "import time; end = time.process_time() + 0.3\nwhile time.process_time() < end: pass\nprint(1, flush=True); input()"
        before = peer_loaders.cpu_seconds(os.getpid())
        child = subprocess.Popen([sys.executable, "-c", burn], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        child.stdout.readline()
        self.assertIn(child.pid, peer_loaders.family(os.getpid()))
        alive = peer_loaders.cpu_seconds(os.getpid()) - before
        child.communicate(b"\n")
        self.assertGreater(alive, 0.25)
        self.assertGreater(peer_loaders.cpu_seconds(os.getpid()) - before, 0.25)

    def test_windows_lie_inside_the_picture(self):
        for height, width in ((1, 1), (5, 900), (333, 500), (224, 224)):
            for _ in range(200):
                top, left, h, w = peer_loaders.random_window(height, width)
                self.assertTrue(0 <= top and 0 <= left and h >= 1 and w >= 1 and top + h <= height and left + w <= width)

    def test_epochs_have_everything_once(self):
        order = iter(peer_loaders.Endless(50))
        for _ in range(3):
            self.assertEqual(sorted(next(order) for _ in range(50)), list(range(50)))


class Data(unittest.TestCase):
    def test_jpeg_files_are_known_by_content_and_the_cache_by_the_files(self):
        with tempfile.TemporaryDirectory() as folder:
            data, cache = os.path.join(folder, "data", "cat"), os.path.join(folder, "cache")
            os.makedirs(data)
            for name, head in (("a.JPEG", b"\xff\xd8\xff\xe0"), ("b.jpg", b"not a picture"), ("c", b"\xff\xd8\xff\xdb")):
                with open(os.path.join(data, name), "wb") as f:
                    f.write(head)
            os.symlink("a.JPEG", os.path.join(data, "d.jpg"))
            job = ours.write_job(cache, "photos", data, 2)
            with open(job["file"], encoding="utf-8") as f:
                self.assertEqual([os.path.basename(path) for path in json.load(f)["files"]], ["a.JPEG", "c"])
            self.assertEqual((job["pictures"], job["bytes"]), (2, 8))
            os.remove(os.path.join(data, "c"))
            self.assertNotEqual(ours.write_job(cache, "photos", data, 2)["cache"], job["cache"])
            with self.assertRaises(rounds.Absent):
                ours.write_job(cache, "photos", cache, 2)


def contestant(ident, label, kind, rate, ratio, most=2):
    return {"row": "contestant", "id": ident, "label": label, "kind": kind, "samples_per_s": [rate, rate * 2],
            "median_samples_per_s": rate * 1.5, "cpu_s_per_1000": 1.0, "peak_rss_mb": 100.0,
            "to_yardstick": {"median": ratio, "min": ratio / 2, "max": ratio * most}}


RUN = {"row": "run", "bench": "peers", "threads": 2, "cores": 2, "rounds": 5, "seconds_a_turn": 3, "data": {"photos": {
    "pictures": 797, "bytes": 797000, "batch": 64}}, "machine": {"cpu": "A <CPU>", "instruction_sets": [], "kernel": "6"}}


class Chart(unittest.TestCase):
    def test_bars_are_as_long_as_their_ratios(self):
        rows = [RUN, contestant("folder", "ours & theirs", "ours", 100.0, 2.0), contestant("spdl", "SPDL", "peer", 50.0, 1.0, 3)]
        root = ElementTree.fromstring(chart.svg(rows))
        bars = [e for e in root.iter("{http://www.w3.org/2000/svg}rect") if e.get("class") != "ground"]
        self.assertEqual([bar.get("class") for bar in bars], ["ours", "peer"])
        self.assertAlmostEqual(float(bars[0].get("width")) / float(bars[1].get("width")), 2, places=2)
        for element in root.iter():
            for key in ("x", "x1", "x2"):
                self.assertLessEqual(float(element.get(key, 0)), chart.WIDTH)
        self.assertIn("prefers-color-scheme: dark", chart.svg(rows))

    def test_an_empty_panel_takes_no_room(self):
        self.assertEqual(chart.panel([RUN], "t", ["folder"], "ratio", 0), ([], 0))

    def test_tables_name_the_absent(self):
        text = chart.tables([RUN, contestant("folder", "ours", "ours", 100.0, 2.0),
                             {"row": "absent", "id": "spdl", "label": "SPDL", "reason": "no FFmpeg"}])
        self.assertIn("| **ours** | 150 | **2.00** | 1.00-4.00 |", text)
        self.assertIn("- not measured: SPDL: no FFmpeg", text)


class PublicScripts(unittest.TestCase):
    TEXT = "import torch\nloader = DataLoader(data,\n                    64)\ntrain(loader)\n"

    def test_lines_that_change_are_counted_once(self):
        ours = public_scripts.edited(self.TEXT, [("import torch\n", "import torch\nimport millrace.torch\n"),
                                                 ("DataLoader(data,\n                    64)", "Loader({data})")], {"data": "d"}, "script")
        self.assertIn("loader = Loader(d)\n", ours)
        self.assertEqual(public_scripts.changed(self.TEXT, ours), 2)

    def test_another_version_of_a_script_is_an_error(self):
        for absent_or_twice in "DataLoader(other", "loader":
            with self.assertRaises(SystemExit):
                public_scripts.edited(self.TEXT, [(absent_or_twice, "x")], {}, "script")


if __name__ == "__main__":
    unittest.main()
