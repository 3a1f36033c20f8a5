# bench_faults: faults_named.py injects what it can without a library loaded first (a sanitizer's wants to be), and tells all of it.
# What is named in so little time, on whatever machine, is not asked: bench/results/faults_named.json is for that.
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
