"""nsys_correlate.py on the committed export (nsys/export.sql, made by hand, with nsys/trace.json): idle times and their causes, the
merged page, every kind of clock, and errors of files that do not fit."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

try:
    import sqlite3
except ImportError:
    print("SKIP: this Python has no sqlite3")
    sys.exit(77)

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPT = os.path.join(HERE, "..", "..", "tools", "scripts", "nsys_correlate.py")
TRACE = os.path.join(HERE, "nsys", "trace.json")
ZERO, UTC, MS = 5_000_000_000_000, 1_790_000_000_000_000_000, 1_000_000


class Correlate(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def export(self, *changes):
        path = self.path("run.sqlite")
        if os.path.exists(path):
            os.remove(path)
        with open(os.path.join(HERE, "nsys", "export.sql"), encoding="utf-8") as f:
            script = f.read()
        db = sqlite3.connect(path)
        db.executescript(script + ";\n".join(changes))
        db.commit()
        db.close()
        return path

    def trace(self, change):
        with open(TRACE, encoding="utf-8") as f:
            content = json.load(f)
        change(content)
        with open(self.path("trace.json"), "w", encoding="utf-8") as f:
            json.dump(content, f)
        return self.path("trace.json")

    def call(self, trace, export, *options):
        return subprocess.run([sys.executable, "-B", SCRIPT, trace, export, *options], capture_output=True, text=True, check=False)

    def found(self, trace, export, *options):
        done = self.call(trace, export, "--json", *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def refused(self, words, trace, export, *options):
        done = self.call(trace, export, *options)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertNotIn("Traceback", done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def test_idle_by_cause(self):
        got = self.found(TRACE, self.export())
        self.assertEqual(got["offset_ns"], ZERO)
        self.assertEqual((got["checked_ranges"], got["median_ns"], got["within_ns"]), (5, 400, 0))
        self.assertEqual(got["window_ns"], 83_499_600)  # from the first range on
        self.assertEqual(got["notes"], [])
        (device,) = got["devices"]
        self.assertEqual(device["causes_ns"], {"decode": 10 * MS, "read": 3 * MS, "host": MS // 2})
        self.assertEqual(list(device["causes_ns"]), ["decode", "read", "host"])
        self.assertEqual(device["in_steps_ns"], 5 * MS // 4)  # between the two kernels of each step
        self.assertEqual(device["other_ns"], 20 * MS - 400)  # before the first step
        self.assertEqual(device["idle_ns"], 13_500_000 + 1_250_000 + 20 * MS - 400)
        self.assertEqual((device["kernels"], device["device"], device["name"]), (10, 0, "cuda:0"))

    def test_text(self):
        out = self.call(TRACE, self.export()).stdout
        for words in ("CLOCK_MONOTONIC on both sides", "export time 0 is 5000.000000 s", "+0.4 us later", "idle, waiting: decode",
                      "of the domain millrace"):
            self.assertIn(words, out)
        self.assertNotIn("WARNING", out)

    def test_merged(self):
        merged = self.path("merged.json")
        self.found(TRACE, self.export(), "-o", merged)
        with open(merged, encoding="utf-8") as f:
            content = json.load(f)
        events = content["traceEvents"]
        names = {e["args"]["name"] for e in events if e["ph"] == "M"}
        self.assertLessEqual({"stall 0", "worker 0", "GPU 0 (export)", "NVTX, domain millrace (export)"}, names)
        self.assertNotIn("of another domain", {e["name"] for e in events})
        kernel = next(e for e in events if e["name"] == "conv_forward")
        step = next(e for e in events if e["name"] == "compute")
        self.assertEqual(kernel["ts"], step["ts"])
        self.assertEqual(len([e for e in events if e["ph"] == "i"]), 4)
        self.assertTrue(all(e["ts"] >= 0 and e.get("dur", 0) >= 0 for e in events if e["ph"] != "M"))

    def test_wall_clock(self):
        export = self.export("UPDATE TARGET_INFO_SESSION_START_TIME SET systemClockNs = NULL")
        got = self.found(TRACE, export)
        self.assertEqual(got["offset_ns"], ZERO)
        self.assertIn("wall clock", got["clock"])
        older = self.export("CREATE TABLE t AS SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME",
                            "DROP TABLE TARGET_INFO_SESSION_START_TIME",
                            "ALTER TABLE t RENAME TO TARGET_INFO_SESSION_START_TIME")
        self.assertEqual(self.found(TRACE, older)["offset_ns"], ZERO)

    def test_wall_clock_that_was_set(self):
        def move(content):
            content["otherData"]["anchors"][1]["realtime_ns"] += 3 * 10**9
        got = self.found(self.trace(move), self.export("UPDATE TARGET_INFO_SESSION_START_TIME SET systemClockNs = NULL"))
        self.assertIn("moved by 3000.000 ms", got["notes"][0])
        done = self.call(TRACE, self.export(f"UPDATE TARGET_INFO_SESSION_START_TIME SET utcEpochNs = {UTC + 5 * MS}"))
        self.assertIn("disagrees by 5.000 ms", done.stdout)

    def test_clock_that_ranges_contradict(self):
        export = self.export(f"UPDATE TARGET_INFO_SESSION_START_TIME SET systemClockNs = {ZERO + 7 * MS}, utcEpochNs = {UTC}")
        done = self.call(TRACE, export)
        self.assertIn("WARNING: the clocks are 7.000 ms apart", done.stdout)
        got = self.found(TRACE, export, "--align", "ranges")
        self.assertEqual(got["offset_ns"], ZERO - 400)

    def test_times_of_the_clock_itself(self):
        shift = [f"UPDATE {t} SET start = start + {ZERO}, end = end + {ZERO}" for t in
                 ("NVTX_EVENTS", "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY")]
        got = self.found(TRACE, self.export("DROP TABLE TARGET_INFO_SESSION_START_TIME",
                                            "DELETE FROM NVTX_EVENTS WHERE text IS NOT NULL", *shift))
        self.assertEqual(got["offset_ns"], 0)
        shift = [s.replace(str(ZERO), str(UTC)) for s in shift]
        got = self.found(TRACE, self.export("DROP TABLE TARGET_INFO_SESSION_START_TIME", *shift))
        self.assertEqual(got["offset_ns"], ZERO - UTC)
        self.refused(["TARGET_INFO_SESSION_START_TIME", "anew"], TRACE, self.export("DROP TABLE TARGET_INFO_SESSION_START_TIME"))

    def test_no_ranges(self):
        done = self.call(TRACE, self.export("DROP TABLE NVTX_EVENTS"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("check    none", done.stdout)
        self.refused(["--trace", "same run"], TRACE, self.export("DROP TABLE NVTX_EVENTS"), "--align", "ranges")

    def test_more_passes_than_were_traced(self):
        again = self.export("INSERT INTO NVTX_EVENTS SELECT start - 95000000, end - 95000000, eventType, rangeId, category, color, "
                            "text, globalTid, endGlobalTid, textId, domainId, uint64Value FROM NVTX_EVENTS WHERE textId = 1")
        got = self.found(TRACE, again)
        self.assertEqual((got["checked_ranges"], got["median_ns"], got["within_ns"]), (5, 400, 0))

    def test_a_second_device(self):
        export = self.export("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT start, end, 3, contextId, streamId, correlationId, "
                             "globalPid, demangledName, shortName FROM CUPTI_ACTIVITY_KIND_KERNEL")

        def rename(content):
            for e in content["traceEvents"]:
                if e["ph"] == "M":
                    e["args"]["name"] = e["args"]["name"].replace("cuda:0", "cuda:3")
        self.assertEqual(self.found(TRACE, export)["devices"][0]["device"], 0)
        self.assertEqual(self.found(self.trace(rename), export)["devices"][0]["device"], 3)

    def test_files_that_are_none(self):
        text = self.path("text")
        with open(text, "w", encoding="utf-8") as f:
            f.write("no database")
        self.refused(["offset 0", "signature", "nsys export"], TRACE, text)
        self.refused(["No such file"], TRACE, self.path("nowhere.sqlite"))
        self.refused(["No such file"], self.path("nowhere.json"), self.export())
        self.refused(["expected a Chrome trace"], text, self.export())
        with open(text, "wb") as f:
            f.write(b"SQLite format 3\0" + b"\xff" * 4096)
        self.refused(["cannot be read"], TRACE, text)

    def test_exports_that_lack_something(self):
        self.refused(["CUPTI_ACTIVITY_KIND_KERNEL", "cuda in --trace"], TRACE, self.export("DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL"))
        self.refused(["no kernel"], TRACE, self.export("DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL"))
        self.refused(["column start"], TRACE, self.export("ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL RENAME COLUMN start TO begin"))
        self.refused(["one session"], TRACE, self.export("INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1, '', '', 2)"))

    def test_traces_that_lack_something(self):
        def no_clock(content):
            del content["otherData"]["anchors"]

        def no_span(content):
            content["traceEvents"] = content["traceEvents"][:4]

        def no_times(content):
            del content["traceEvents"][5]["dur"]
        self.refused(["otherData.anchors", "0.5.0"], self.trace(no_clock), self.export())
        self.refused(["no span", "--trace-steps"], self.trace(no_span), self.export())
        self.refused(["damaged"], self.trace(no_times), self.export())

    def test_another_machine_or_time(self):
        other = self.export("UPDATE TARGET_INFO_SYSTEM_ENV SET value = 'elsewhere'")
        self.refused(["elsewhere", "mill", "--other-host"], TRACE, other)
        self.found(TRACE, other, "--other-host")
        self.refused(["do not overlap", "one run"], TRACE,
                     self.export(f"UPDATE TARGET_INFO_SESSION_START_TIME SET systemClockNs = {ZERO * 2}"))


if __name__ == "__main__":
    unittest.main()
