# Event files read back by TensorBoard, the page of figures by prometheus_client and promtool. MRT_TENSORBOARD_PYTHON and
# MRT_PROMETHEUS_PYTHON name Pythons with these packages, MRT_PROMTOOL the program; peers without a variable are skipped.
. "$(dirname "$0")/../lib.sh"
tensorboard=${MRT_TENSORBOARD_PYTHON:-} prometheus=${MRT_PROMETHEUS_PYTHON:-} promtool=${MRT_PROMTOOL:-}
[ -n "$tensorboard$prometheus$promtool" ] || skip "none of MRT_TENSORBOARD_PYTHON, MRT_PROMETHEUS_PYTHON and MRT_PROMTOOL is set"

run 0 synth d --count 24 --quiet
set -- --model cifar-cnn --batch 40 --epochs 3 --seed 1 --lr 1e-3 --quiet --log-steps 2
wanted() { awk -F, -v tag="$2" -v column="$3" '$1 == "'"$1"'" && $column != "" {printf "%s %s %.6g\n", tag, $3, $column}' run.csv; }

if [ -n "$tensorboard" ]; then
    # killed after a checkpoint: the first run's entries for later steps no longer count
    run 0 train d "$@" --csv first.csv --tensorboard tb --checkpoint run --checkpoint-steps 4 --max-steps 10
    rm run/step-000000000010.mrck
    sleep 1.1 # another second, another name; the order of names is that of runs
    run 0 train d "$@" --csv run.csv --tensorboard tb --checkpoint run --resume
    awk -F, '$1 == "step" && $3 <= 8 || $1 == "epoch" && $3 <= 8' first.csv >early
    { head -1 run.csv; cat early; sed 1d run.csv; } >both && mv both run.csv
    for tag in step/loss:7 step/accuracy:8 step/lr:9 step/samples_per_s:6 epoch/loss:7 epoch/accuracy:8 epoch/lr:9 epoch/samples_per_s:6 \
        epoch/val_loss:10 epoch/val_accuracy:11 epoch/stall_fraction:12; do
        name=${tag%:*}
        last="TensorBoard $name"
        "$tensorboard" "$here/watch/events.py" tb "$name" >out 2>err || fail "$last"
        wanted "${name%%/*}" "$name" "${tag#*:}" >expected
        [ -s expected ] || fail "$last: nothing is expected"
        awk 'NR == FNR {want[NR] = $2; value[NR] = $3; n = NR; next}
             {d = $3 - value[FNR]; if ($2 != want[FNR] || d * d > 1e-10 * (1 + value[FNR] * value[FNR])) bad = 1; m = FNR}
             END {exit bad || m != n}' expected out || fail "$last: expected $(tr '\n' ';' <expected)"
    done
fi

if [ -n "$prometheus$promtool" ]; then
    "$millrace" train d --model cifar-cnn --batch 40 --epochs 500 --quiet --metrics 0 --csv live.csv >out 2>err &
    pid=$!
    listens $pid
    last="train --metrics"
    for i in $(seq 300); do
        awk 'END {exit NR < 2}' live.csv 2>/dev/null && break
        sleep 0.1
    done
    at=$(sed -n 's|.*metrics at http://\(.*\)/metrics$|\1|p' err)
    python=${prometheus:-python3}
    "$python" -c 'import sys, urllib.request as u
o = u.build_opener(u.ProxyHandler({}))
sys.stdout.buffer.write(o.open("http://%s/metrics" % sys.argv[1], timeout=10).read())' "$at" >page || fail "no page at $at"
    kill -INT $pid
    wait $pid
    [ -z "$promtool" ] || "$promtool" check metrics <page >out 2>&1 || fail "promtool check metrics"
    if [ -n "$prometheus" ]; then
        "$prometheus" -c 'import sys
from prometheus_client.parser import text_string_to_metric_families as parse
families = {f.name: f for f in parse(open("page").read())}
assert families["millrace_steps"].type == "counter" and families["millrace_loss"].type == "gauge"
assert len(families) > 30 and all(f.samples and f.documentation for f in families.values()), families' >out 2>&1 || fail "prometheus_client"
    fi
fi
finish
