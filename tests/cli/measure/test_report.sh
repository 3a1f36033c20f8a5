# report: pages of one run, of two, of a profile; missing and surplus entries of a log are reported. Their looks: test_report_drawn.sh.
. "$(dirname "$0")/../lib.sh"

run 0 synth d --count 30 --quiet
run 0 train d --model cifar-cnn --batch 30 --epochs 4 --log-steps 2 --json --quiet --devices sim:2,step=2ms --trace t.json; mv out a.jsonl
run 0 train d --model mnist-mlp --augment "rrc(28)" --batch 30 --epochs 3 --json --quiet --seed 18446744073709551615 --workers 1; mv out b.jsonl
run 0 report a.jsonl --trace t.json --samples 5 --html a.html; equal "$(cat out)" a.html
run 0 report b.jsonl --samples 64 --html b.html
run 0 report a.jsonl b.jsonl --html two.html
run 0 report a.jsonl --html a.html # a page of ours is replaced
run 0 report a.jsonl --trace t.json --samples 5 --html a.html
run 0 report b.jsonl; present report.html
run 0 profile d --model cifar-cnn --batch 30 --steps 6 --seconds 0.2 --quiet --json --devices sim:1,step=2ms --html p.html; mv out p.jsonl
run 0 report p.jsonl --html q.html
for page in a b two p q; do
    grep -q '</html>' $page.html || fail "$page.html has no end"
    ! grep -E -q '(src|href)="?(https?:|//|/)|@import|url\(' $page.html || fail "$page.html fetches something"
done
equal "$(grep -c '<img' a.html)" 5
grep -q 'class="time"' a.html || fail "no timeline in a.html"
grep -q 'class="time"' p.html || fail "no timeline in p.html"
grep -q '<h2>Ceilings' q.html || fail "no ceilings in q.html"
# of two runs the one that computes has its curves
grep -q 'a.jsonl ran on simulated devices' two.html || fail "what a.jsonl lacks is not said"
for chart in Loss Accuracy; do
    grep -q "<figcaption>$chart" two.html || fail "b.jsonl has no $chart"
    ! grep -q "<figcaption>$chart" a.html || fail "a simulated device has a $chart"
done
! grep -q 'a.jsonl: validation' two.html || fail "a simulated run has a validation"
grep -q 'class="differs"><td>seed' two.html || fail "seeds are not marked"

# a validation inside an epoch is drawn at its place among the validations after epochs: ten steps an epoch
marks() { awk -v chart="<figcaption>$1" 'index($0, chart) {on = 1} /<\/figure>/ {on = 0} on' "$2" | sed -n 's/.*<circle class="b".*<title>\([^:]*\): .*/\1/p' | tr '\n' ' '; }
run 0 train d --model mnist-mlp --augment "rrc(28)" --batch 30 --epochs 3 --json --quiet --eval-at 0.5/1.25/2.75; mv out e.jsonl
run 0 report e.jsonl --html e.html
for chart in Loss Accuracy; do equal "$(marks $chart e.html)" "0.5 1 1.3 2 2.8 3 "; done
! grep -q 'are not about a run' e.html || fail "validations are said to be left out"
grep -o '"val_loss": [0-9.]*' e.jsonl | head -6 | sed 's/.* //' | while read -r loss; do
    awk -v loss="$loss" 'match($0, /<title>[0-9.]+: [0-9.]+/) {split(substr($0, RSTART, RLENGTH), a, ": "); d = a[2] - loss; if (d < 0.001 * loss && -d < 0.001 * loss) found = 1}
                         END {exit !found}' e.html || echo "$loss"
done >missing
[ ! -s missing ] || fail "losses that are not drawn: $(cat missing)"
grep '"event": "eval"\|"event": "start"' e.jsonl >early.jsonl # stopped inside the first epoch
run 0 report early.jsonl --html early.html; equal "$(marks Loss early.html)" "0.5 1.3 2.8 "
equal "$(marks Loss b.html)" ""

# defects that a log may have
head -c 1500 a.jsonl >cut.jsonl
run 0 report cut.jsonl --html cut.html; err_has "the last line is cut off"
grep -q 'log has no end' cut.html || fail "that the log has no end is not said"
{ echo "warning: <b>words</b>"; cat a.jsonl; echo "more"; } >mixed.jsonl
run 0 report mixed.jsonl --html mixed.html; err_has "2 of 28 lines are no JSON and left out, the first is line 1"
grep -q '2 of its 28 lines' mixed.html || fail "the lines left out are not counted"
cat a.jsonl b.jsonl >twice.jsonl
run 0 report twice.jsonl --html twice.html; grep -q 'has 2 runs; this is the last' twice.html || fail "two runs are mixed silently"
sed 's/"d"/"<script>x"/; s/"sim:0/"<i>\&amp;/' a.jsonl >names.jsonl
run 0 report names.jsonl --html names.html
! grep -q '<script>x' names.html || fail "names are not escaped"
sed 's/: [0-9][0-9.e-]*/: null/g' a.jsonl >null.jsonl
run 0 report null.jsonl --html null.html
sed 's/: [0-9][0-9.e-]*/: 1e999/g' a.jsonl >huge.jsonl
run 0 report huge.jsonl --html huge.html
sed 's/: {/: [{/g; s/}/}]/g' a.jsonl | sed 's/]$//' >odd.jsonl
run 0 report odd.jsonl --html odd.html
: >empty; run 1 report empty --html no.html; err_has "the file is empty"
echo '{"event": "digest"}' >other.jsonl; run 1 report other.jsonl --html no.html; err_has "found 1 line without a run"
head -c 65536 /dev/urandom >noise; run 1 report noise --html no.html; err_has "no JSON"
run 1 report nowhere.jsonl --html no.html; err_has "nowhere.jsonl"
run 1 report d --html no.html; err_has "a folder"
run 1 report a.jsonl --trace b.jsonl --html no.html; err_has "expected a trace"
run 1 report a.jsonl p.jsonl --html no.html; err_has "cannot stand side by side"
run 1 report a.jsonl --bad-list a.jsonl --html no.html; err_has "expected a list of bad samples"
run 1 report p.jsonl --samples 4 --html no.html; err_has "does not say which data"
absent no.html
run 2 report a.jsonl --html a.jsonl; err_has "which is read"
echo mine >mine.html; run 2 report a.jsonl --html mine.html; err_has "is no page of millrace report"; equal "$(cat mine.html)" mine
run 0 report a.jsonl --html mine.html --force
run 2 report a.jsonl --samples 65 --html no.html
run 1 report a.jsonl --html nowhere/no.html

# bad samples by name
echo broken >"$(find d/train -name '*.png' -o -name '*.jpg' | head -1)"
run 3 train d/train --model mnist-mlp --augment "resize(28x28)" --batch 30 --epochs 1 --json --quiet --bad skip --bad-list bad.jsonl; mv out c.jsonl
run 0 report c.jsonl --html c.html; grep -q '1 were met' c.html || fail "bad samples are not counted"
run 0 report c.jsonl --bad-list bad.jsonl --html c.html; grep -q "$(sed 's/.*"reason": "\([^"<&]*\).*/\1/' bad.jsonl | head -c 30)" c.html || fail "bad samples are not named"

finish
