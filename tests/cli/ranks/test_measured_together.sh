# profile in several processes: one report of all, the exchange of gradients in it, one trace on one clock.
. "$(dirname "$0")/../lib.sh"
. "$here/ranks/together.sh"

run 0 synth d --count 24 --quiet
set -- --model cifar-cnn --batch 24 --steps 6 --seconds 0.1 --seed 1 --lr 1e-4 --devices cpu:1 --quiet

together 0 2 profile d "$@" --trace t.json --html p.html
out_has "2 ranks; workers, devices and stages are rank 0's"
out_has "exchange of 4.8 MiB a step between 2 ranks by shm, in "
out_has "  exposed with prefetch on "
out_has "(of the slowest rank, without exchange)"
out_has "the same bits after both runs"
for r in 0 1; do
    grep -q "\"process_name\",\"args\":{\"name\":\"rank $r\"" t.json || fail "the trace lacks rank $r"
done
grep -q '"name":"exchange"' t.json || fail "the trace has no span of the exchange"
grep -q '<svg' p.html || fail "the page has no timeline"
absent t.json.rank1

together 0 3 profile d "$@" --wire tcp --bucket 1M --json
equal "$(grep -c '"event": "profile_run"' out)" 2
equal "$(number ranks)" 3
equal "$(text wire)" tcp
python3 - <<'END' || fail "figures of the exchange"
import json
runs = [json.loads(line) for line in open("out")]
on, all = runs[1], runs[2]
assert all["event"] == "profile" and all["same_weights"], all
assert all["network"]["bucket_bytes"] == 1 << 20 and all["network"]["buckets"] > 1, all
assert all["network"]["latency_ms"] > 0 and all["network"]["sum_ms"] > 0, all
assert 0 <= all["exchange_late_ms"] <= all["exchange_exposed_ms"], all
assert abs(all["exchange_exposed"] - on["causes"]["network"]) < 1e-9, (all, on)
END

# one process has no exchange
run 0 profile d "$@"
out_lacks "exchange of"

# files are rank 0's: where it cannot write, all end
together "1 2" 2 profile d "$@" --trace nowhere/t.json
err_has "nowhere"
finish
