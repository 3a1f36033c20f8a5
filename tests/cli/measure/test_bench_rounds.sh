# bench_rounds: the comparison programs of bench/ on made-up contestants, then on ours: every figure is printed, missing programs are named.
command -v python3 >/dev/null || { echo "python3 is not installed"; exit 77; }
. "$(dirname "$0")/../lib.sh"

bench=$here/../../bench
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE
python3 "$bench/test_bench.py" >out 2>err || fail "test_bench.py"

run 0 synth d --count 40 --quiet
last="bench_decode" # whole passes over what can be decoded; what cannot is named
count=$(find d -type f | wc -l)
echo "no picture" >d/notes.txt
printf '\377\330\377 and then nothing' >d/broken.jpg
"$(dirname "$(dirname "$millrace")")/bench/bench_decode" d 2 0.1 >out 2>err || fail "it failed"
rm d/notes.txt d/broken.jpg
err_has "d/broken.jpg: left out"
out_has "\"threads\":2,\"pictures\":$((count)),"
whole=$(sed -n 's/.*"samples":\([0-9]*\),.*/\1/p' out)
[ "${whole:-0}" -gt 0 ] && [ $((whole % count)) -eq 0 ] || fail "expected whole passes over $count pictures"

rows() { grep -c "\"row\": \"$1\"" "$2"; }
last="bench/peers.py --only ours"
python3 "$bench/peers.py" "$millrace" --data d --cifar d --only ours,spdl --no-install --venv "$temp/venv" --cache "$temp/cache" \
    --rounds 1 --seconds 0.1 --threads 1 --json peers.json >out 2>err || fail "it failed"
equal "$(rows run peers.json)" 1
equal "$(($(rows contestant peers.json) + $(rows absent peers.json)))" 11 # five of ours, four through Python, the yardstick, the peer that is not installed
grep -q '"id": "full-decode".*"samples_per_s": \[[1-9]' peers.json || fail "the yardstick has no rate"
grep -q '"id": "folder".*"to_yardstick": {"median": [0-9]' peers.json || fail "no ratio to the yardstick"
grep -q '"row": "absent", "id": "spdl".*no virtual environment' peers.json || fail "a peer that is absent has to be named"

last="bench/formats.py"
python3 "$bench/formats.py" "$millrace" --data d --rounds 1 --seconds 0.1 --threads 1 --cache "$temp/cache" --json formats.json >out 2>err ||
    fail "it failed"
equal "$(($(rows contestant formats.json) + $(rows absent formats.json)))" 7
equal "$(rows absent formats.json)" 0
out_has "photos: recordio / records"

last="bench/storage.py"
python3 "$bench/storage.py" "$millrace" --data d --rounds 1 --seconds 0.05 --threads 1 --copies 1 --forms folder --accelerator b200 \
    --cache "$temp/cache/storage" --json storage.json >out 2>err || fail "it failed"
equal "$(rows contestant storage.json)" 1
grep -q '"row": "absent", "id": "dlio".*no --dlio' storage.json || fail "DLIO, absent, has to be named"
grep -q '"verified": false' storage.json || fail "nobody has verified it"
out_has "millrace, the folder itself"

last="bench/sets.py" # some steps of it; of a program that does nothing no step is as expected
python3 "$bench/sets.py" "$millrace" --work . --only F,J,27,32 --json sets.json >out 2>err || fail "it failed"
out_has "5 of 5 steps as expected"
equal "$(rows step sets.json)" 5
equal "$(find . -maxdepth 1 -name 'millrace-sets-*' | wc -l)" 0
cat >idle <<END
#!/bin/sh
case \$1 in synth | export) exec "$millrace" "\$@" ;; esac
END
chmod +x idle
! python3 "$bench/sets.py" ./idle --work . >out 2>err || fail "expected to fail"
out_has "0 of 42 steps as expected"

last="bench/chart.py"
python3 "$bench/chart.py" peers.json --svg peers.svg >out 2>err || fail "it failed"
out_has "millrace, the folder"
out_has "not measured: SPDL"
grep -q '<rect class="ours"' peers.svg || fail "no bar of ours"

last="bench/peers.py --only nobody"
! python3 "$bench/peers.py" "$millrace" --data d --only nobody >out 2>err || fail "expected to fail"
err_has "found nobody"
finish
