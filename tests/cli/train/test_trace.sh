# --trace and --trace-steps: the contents of the file, and the message on a window that was not reached, or only in part.
. "$(dirname "$0")/../lib.sh"

run 0 synth d --count 30 --quiet
sim="--devices sim:2,step=1ms,h2d=30MB/s" # a batch takes 1.5 ms to get there: no step begins without a stall
# shellcheck disable=SC2086 # the options are words
traced() { run 0 train d --model cifar-cnn --batch 30 --quiet --val none $sim --trace t.json "$@"; }

# every idle stretch of a device is a span of the track "stall N", named after its cause; they add up to the reported stall
traced --epochs 1 --warmup-steps 0 --json
python3 - <<'EOF' || fail "$last: the stall tracks"
import json
trace = json.load(open("t.json"))
track = {e["tid"]: e["args"]["name"] for e in trace["traceEvents"] if e["ph"] == "M"}
spans = [dict(e, track=track[e["tid"]]) for e in trace["traceEvents"] if e["ph"] == "X"]
report = [e for e in map(json.loads, open("out")) if e["event"] == "epoch"][0]
stalls = [s for s in spans if s["track"].startswith("stall ")]
assert {s["track"] for s in stalls} == {"stall 0", "stall 1"}, {s["track"] for s in spans}
assert {s["name"] for s in stalls} <= set(report["causes"]), stalls
ms = sum(s["dur"] for s in stalls) / 1000 / 2
assert abs(ms - report["exposed_ms"]) < 0.01 + 1e-3 * ms, (ms, report["exposed_ms"])
about = trace["otherData"]
assert about["clock"] == "CLOCK_MONOTONIC" and len(about["anchors"]) == 2 and about["host"], about
assert "batches" not in about, about
# a stall ends where a step begins
begins = {(s["track"].split("sim:")[1][0], s["args"]["batch"]): s["ts"] for s in spans if s["track"].startswith("compute")}
for s in stalls:
    assert abs(s["ts"] + s["dur"] - begins[s["track"][-1], s["args"]["batch"]]) < 0.01, s
EOF

# the trace has all that laying it over a profiler's export needs: one made of it here has the same idle times by cause
python3 - "$here/../../tools/scripts/nsys_correlate.py" <<'EOF' || fail "$last: the trace does not fit an export of it"
import json, subprocess, sys
try:
    import sqlite3
except ImportError:
    print("SKIP: this Python has no sqlite3: no export is made")
    sys.exit(0)
trace = json.load(open("t.json"))
about, track = trace["otherData"], {e["tid"]: e["args"]["name"] for e in trace["traceEvents"] if e["ph"] == "M"}
spans = [(track[e["tid"]], e["name"], round(1000 * e["ts"]), round(1000 * (e["ts"] + e["dur"])), e["args"].get("batch"))
         for e in trace["traceEvents"] if e["ph"] == "X"]
db = sqlite3.connect("run.sqlite")
db.executescript("""CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs, systemClockNs);
CREATE TABLE StringIds (id, value);
CREATE TABLE NVTX_EVENTS (start, end, eventType, text, globalTid, domainId, uint64Value);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, shortName)""")
late = 5_000_000_000  # the profiler began so much earlier
real = about["anchors"][0]["realtime_ns"] - about["anchors"][0]["monotonic_ns"] + about["base_ns"]
db.execute("INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (?, NULL)", (real - late,))
for name, what, start, end, batch in spans:
    if name.startswith("compute"):
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?, 7, 1)", (start + late, end + late, int(name.split("sim:")[1][0])))
    if what == "decode" and name.startswith("worker"):
        db.execute("INSERT INTO NVTX_EVENTS VALUES (?, ?, 59, 'decode', ?, 0, ?)", (start + late, end + late, about["pid"] << 24, batch))
db.commit()
done = subprocess.run([sys.executable, "-B", sys.argv[1], "t.json", "run.sqlite", "--json", "-o", "merged.json"], capture_output=True, text=True)
assert done.returncode == 0, done.stderr
got = json.loads(done.stdout)
assert abs(got["median_ns"]) < 100_000 and got["checked_ranges"] > 5, got  # the two clocks' anchors
for d in got["devices"]:
    stalls = sum(end - start for name, _, start, end, _ in spans if name == f"stall {d['replica']}")
    assert d["device"] == d["replica"] and abs(sum(d["causes_ns"].values()) - stalls) < 1_000_000 + stalls / 50, (d, stalls)
EOF

# steps are counted over the whole run, from 1; the batch of step 1 is number 0
traced --epochs 2 --trace-steps 9:3
python3 - <<'EOF' || fail "$last: the window"
import json
trace = json.load(open("t.json"))
spans = [e for e in trace["traceEvents"] if e["ph"] == "X"]
assert {e["args"]["batch"] for e in spans} == {8, 9, 10}, spans
assert {"read", "decode", "copy", "compute"} <= {e["name"] for e in spans}, {e["name"] for e in spans}
assert trace["otherData"]["first_batch"] == 8 and trace["otherData"]["batches"] == 3
EOF
[ ! -s err ] || fail "$last: nothing was to be said"

traced --epochs 1 --trace-steps 500:10
err_has "--trace-steps 500:10: no step of these came: the run went from step 1 to 10"
python3 -c 'import json; assert not [e for e in json.load(open("t.json"))["traceEvents"] if e["ph"] == "X"]' ||
    fail "$last: a trace of steps that did not come"
traced --epochs 1 --trace-steps 8:18446744073709551000
err_has "the run went from step 1 to 10, and the trace has steps 8 to 10"
# shellcheck disable=SC2086
run 0 train d --model cifar-cnn --batch 30 --quiet --val none --epochs 1 --checkpoint run $sim
traced --epochs 2 --checkpoint run --resume --trace-steps 4:10
err_has "the run went from step 11 to 20, and the trace has steps 11 to 13"

for wrong in 0:3 3:0 3 :3 3: 1:2:3 -1:4 a:b 1:99999999999999999999; do
    run 2 train d --model cifar-cnn --trace t.json --trace-steps "$wrong"
    err_has "expected FIRST:COUNT"
done
run 2 train d --model cifar-cnn --trace-steps 1:2
err_has "--trace-steps needs --trace FILE"
run 2 profile d --model cifar-cnn --trace-steps 1:2
err_has "--trace-steps needs --trace FILE or --html FILE"
# shellcheck disable=SC2086
run 0 profile d --model cifar-cnn --batch 30 --steps 6 --seconds 0.1 --quiet $sim --trace t.json --trace-steps 3:900
err_has "and the trace has steps 3 to "
finish
