# profile: both runs, the ceilings, the trace and the page.
. "$(dirname "$0")/../lib.sh"

run 0 synth d --count 30 --quiet
run 0 profile d --model cifar-cnn --batch 30 --steps 6 --lr 1e-4 --seconds 0.2 --quiet --trace t.json --html p.html
out_has "stages with prefetch off"
out_has "loader alone"
out_has "trainer alone"
out_has "the same bits after both runs"
out_has "verdict"
grep -q '"ph"' t.json || fail "the trace has no events"
grep -q '<svg' p.html || fail "the page has no timeline"
run 0 profile d --model cifar-cnn --batch 30 --steps 6 --seconds 0.2 --quiet --json --devices sim:2,step=2ms
equal "$(grep -c '"event": "profile_run"' out)" 2
equal "$(text model)" cifar-cnn
[ "$(awk "BEGIN { print ($(number ceiling_samples_per_s) > 0) }")" = 1 ] || fail "no ceiling"
run 1 profile nowhere --model cifar-cnn
finish
