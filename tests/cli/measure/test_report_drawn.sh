# report: how its pages look. Headless Chromium lays them out narrow and wide, in light and dark: text fits and can be read, every chart has
# marks, nothing is fetched (report_drawn.py, which takes pages with planted faults along).
browser=${MILLRACE_CHROMIUM:-chromium}
command -v "$browser" >/dev/null || { echo "SKIP: no $browser here (Debian: chromium)"; exit 77; }
command -v python3 >/dev/null || { echo "SKIP: no python3 here"; exit 77; }
. "$(dirname "$0")/../lib.sh"
drawn=$here/measure/report_drawn.py

long="a run with quite a long name, of the second of September, on photographs"
run 0 synth d --count 30 --quiet
run 0 train d --model mnist-mlp --augment "rrc(28)" --batch 30 --epochs 3 --json --quiet --log-steps 2 --eval-at 0.5/1.25 --trace t.json; mv out a.jsonl
run 0 train d --model mnist-mlp --augment "rrc(28)" --batch 30 --epochs 12 --json --quiet --seed 18446744073709551615 --lr 1e-5; mv out "$long.jsonl"
run 0 train d --model cifar-cnn --batch 30 --epochs 2 --json --quiet --devices sim:2,step=2ms,h2d=100MB/s --trace s.json; mv out s.jsonl
run 0 profile d --model cifar-cnn --batch 30 --steps 6 --seconds 0.2 --quiet --json --devices sim:1,step=2ms,h2d=20MB/s --html profile.html
file=$(find d/train -name '*.png' -o -name '*.jpg' | head -1)
mv "$file" "${file%/*}/a picture with quite a long name and_with_more_of_it_that_has_no_spaces_so_that_nothing_can_be_broken.jpg"
echo broken >"${file%/*}/a picture with quite a long name and_with_more_of_it_that_has_no_spaces_so_that_nothing_can_be_broken.jpg"
run 3 train d/train --model mnist-mlp --augment "resize(28x28)" --batch 30 --epochs 1 --json --quiet --bad skip --bad-list bad.jsonl; mv out bad-run.jsonl

run 0 report a.jsonl --trace t.json --samples 12 --html one.html
run 0 report "$long.jsonl" a.jsonl --html two.html
run 0 report s.jsonl --trace s.json --html simulated.html
run 0 report bad-run.jsonl --bad-list bad.jsonl --html bad.html
set --
[ -z "${MILLRACE_KEEP:-}" ] || set -- --keep "$MILLRACE_KEEP"
[ "$failures" -ne 0 ] || python3 "$drawn" "$@" one.html two.html simulated.html profile.html bad.html >said 2>&1 || fail "$(cat said)"
[ "$failures" -ne 0 ] || cat said
finish
