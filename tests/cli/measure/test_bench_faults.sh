# bench_faults: faults_named.py injects every fault that needs no preloaded library (a sanitizer's runtime must be the first one) and
# reports all of them. The causes named in so short a run depend on the machine and are not checked: see bench/results/faults_named.json.
command -v python3 >/dev/null || { echo "SKIP: python3 is not installed"; exit 77; }
command -v "${CC:-cc}" >/dev/null || { echo "SKIP: no C compiler for the shim"; exit 77; }
. "$(dirname "$0")/../lib.sh"

last="bench/faults_named.py"
python3 "$here/../../bench/faults_named.py" "$millrace" --cache "$temp/faults" --seconds 0.3 --only no --json faults.json >out 2>err
[ $? -le 1 ] && [ -s faults.json ] || fail "it failed"
python3 - <<'EOF' || fail "faults.json"
import json
rows = json.load(open("faults.json"))["faults"]
assert [r["fault"] for r in rows] == ["none", "noisy neighbour"], rows
for r in rows:
    assert r["verdict"] and r["injected"] and isinstance(r["named"], bool) and isinstance(r["slow_workers"], list), r
    assert abs(sum(r["causes_percent"].values()) - r["stall_percent"]) < 6, r
EOF
finish
