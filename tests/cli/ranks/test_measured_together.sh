# profile and plan in several processes: one report of all, the exchange of gradients in it, one trace on one clock.
. "$(dirname "$0")/../lib.sh"
. "$here/ranks/together.sh"

run 0 synth d --count 24 --channels 1 --size 28 --quiet
set -- --model mnist-mlp --batch 24 --steps 6 --seconds 0.1 --seed 1 --lr 1e-4 --devices cpu:1 --quiet

together 0 2 profile d "$@" --trace t.json --html p.html
out_has "2 ranks; workers, devices and stages are rank 0's"
out_has "exchange of 4.6 MiB a step between 2 ranks by shm, in "
out_has "  exposed with prefetch on "
out_has "(of the slowest rank, without exchange)"
out_has "the same bits after both runs"
for r in 0 1; do
    grep -q "\"process_name\",\"args\":{\"name\":\"rank $r\"" t.json || fail "the trace lacks rank $r"
done
grep -q '"name":"exchange"' t.json || fail "the trace has no span of the exchange"
grep -q '<svg' p.html || fail "the page has no timeline"
absent t.json.rank1

together 0 3 profile d "$@" --wire tcp --bucket 256K --json
equal "$(grep -c '"event": "profile_run"' out)" 2
equal "$(number ranks)" 3
equal "$(text wire)" tcp
python3 - <<'END' || fail "figures of the exchange"
import json
runs = [json.loads(line) for line in open("out")]
on, all = runs[1], runs[2]
assert all["event"] == "profile" and all["same_weights"], all
assert all["network"]["bucket_bytes"] == 256 << 10 and all["network"]["buckets"] >= 1, all
assert all["network"]["latency_ms"] > 0 and all["network"]["sum_ms"] > 0, all
assert 0 <= all["exchange_late_ms"] <= all["exchange_exposed_ms"], all
assert abs(all["exchange_exposed"] - on["causes"]["network"]) < 1e-9, (all, on)
END

# one process has no exchange
run 0 profile d "$@"
out_lacks "exchange of"

# files are rank 0's: where it cannot write, all end
together 1 2 profile d "$@" --trace nowhere/t.json
err_has "nowhere"

# plan: the present number of processes is "as it is", others are predicted over the same network, or over a given one
set -- --model mnist-mlp --batch 24 --seconds 0.3 --seed 1 --lr 1e-4 --devices cpu:1 --no-forms --quiet
together 0 2 plan d "$@"
out_has "exchange  between 2 ranks by shm, "
out_has "for late ranks; predicted "
out_has "4 ranks at "
out_lacks "2 ranks at "
together 0 3 plan d "$@" --link 100Mbit,1ms --json
python3 - <<'END' || fail "predictions for several processes"
import json
now, *ways = [json.loads(line) for line in open("out")]
assert now["ranks"] == 3 and now["measured_late_ms"] <= now["measured_exposed_ms"], now
assert now["exchange"]["gradient_bytes"] == 4839464 and now["exchange"]["sum_ms"] > 0, now
assert 0 < now["exchange"]["exposed_ms"] <= now["exchange"]["sum_ms"] * (1 + 1e-9), now
assert ways[0]["name"] == "as it is" and ways[0]["ranks"] == 3, ways[0]
of = {w["ranks"]: w for w in ways if "rank" in w["name"]}
assert sorted(of) == [1, 2, 4, 8] and "exchange" not in of[1], of
for n in (2, 4, 8): # at 12.5 MB/s: 2 (n - 1) / n of them are sent, and each sum takes two latencies
    x = of[n]["exchange"]
    least = 2e3 * (n - 1) / n * x["gradient_bytes"] / 12.5e6
    assert abs(x["sum_ms"] - least - 2 * x["buckets"] * 1) < 0.01, x
    assert 0 < x["exposed_ms"] <= x["sum_ms"], x
    assert of[n]["predicted_limit"] == "network", of[n]
assert of[1]["predicted_samples_per_s"] > 0, of[1]
END

# one process, and a network that it does not have; a simulated device overlaps nothing
run 0 plan d --batch 30 --devices sim:1,step=2ms --seconds 0.3 --no-forms --quiet
out_lacks "ranks at"
run 0 plan d --model mnist-mlp --batch 30 --devices sim:1,step=2ms --seconds 0.3 --no-forms --quiet --json --link 1Gbit,0.1ms
python3 - <<'END' || fail "no overlap on simulated devices"
import json
of = {w["ranks"]: w for w in map(json.loads, open("out")) if w["event"] == "plan_way" and "ranks at" in w["name"]}
assert sorted(of) == [2, 4, 8], of
assert all(abs(w["exchange"]["exposed_ms"] - w["exchange"]["sum_ms"]) < 1e-9 for w in of.values()), of
END
for bad in 1Gbit '1Gbit,' ',1ms' 1Gbit,x 0bit,1ms -1Gbit,1ms 1Tbit,1ms 1Gbit/h,1ms; do
    run 2 plan d --devices sim:1 --link=$bad
    err_has "expected RATE,LATENCY such as 1Gbit,0.1ms"
done
run 0 plan d --model mnist-mlp --batch 30 --devices sim:1 --seconds 0.1 --no-forms --quiet --link 12.5M,100us
out_has "2 ranks at 105 Mbit/s"
finish
