# profile: both runs, the ceilings, the trace and the page.
. "$(dirname "$0")/../lib.sh"

run 0 synth d --count 30 --quiet
run 0 profile d --model cifar-cnn --batch 30 --steps 6 --lr 1e-4 --seconds 0.2 --quiet --trace t.json --html p.html
out_has "stages with prefetch off"
out_has "loader alone"
out_has "trainer alone"
out_has "loading and computing share the"
out_has "the same bits after both runs"
out_has "verdict"
grep -q '"ph"' t.json || fail "the trace has no events"
grep -q '<svg' p.html || fail "the page has no timeline"
run 0 profile d --model cifar-cnn --batch 30 --steps 6 --seconds 0.2 --quiet --json --devices sim:2,step=2ms
equal "$(grep -c '"event": "profile_run"' out)" 2
equal "$(text model)" cifar-cnn
[ "$(awk "BEGIN { print ($(number ceiling_samples_per_s) > 0) }")" = 1 ] || fail "no ceiling"
# the causes of the device's waits add up to its wait time, and no stage is busy for more than 100 % of it
python3 - <<'EOF' || fail "causes, or shares over 100 %"
import json
for line in open("out"):
    run = json.loads(line)
    if run["event"] == "profile": # who sticks out: on a busy machine somebody may
        for w in run["slow_workers"]:
            assert w["times"] >= 2 and w["cause"] in ("cores", "blocked", "decode") and w["samples"] >= 16, w
        assert run["slow_files"] == [], run # pictures in a folder are not compared
    if run["event"] == "profile_run":
        assert abs(sum(run["causes"].values()) - run["stall_fraction"]) < 1e-6, run
        assert run["causes"]["unknown"] == 0, run
        for stage in ("read", "decode"):
            assert all(0 <= run["stages"][stage][k] <= 1.05 for k in ("busy", "blocked_in", "blocked_out")), run
EOF
run 0 profile d --model cifar-cnn --batch 30 --steps 6 --seconds 0.2 --quiet --devices sim:1,step=20ms
out_has "the device waited for"
run 0 profile d --augment "resize(16x16)" --batch 30 --steps 6 --seconds 0.2 --quiet --devices sim:1,step=20ms
out_has "timed step on"
run 2 profile d --augment "resize(16x16)" --devices cpu
err_has "simulated devices"
run 1 profile nowhere --model cifar-cnn
finish
