# Which learning rate: rates grow by one factor from step to step, a second run prints the same, no file is left; a rate is suggested where
# the loss fell and rose again, and otherwise the reason for its absence is printed.
. "$(dirname "$0")/../lib.sh"

run 0 synth d --classes 3 --count 40 --size 12 --quiet
set -- --model cifar-resnet20 --augment none --batch 20 --seed 2 --quiet
cp -r d before
run 0 lr-find d "$@" --optimizer momentum --from 1e-4 --to 100 --steps 60 --csv rates.csv
out_has "the loss has diverged"
suggested=$(sed -n 's/^suggested  --lr \([0-9.e-]*\): a tenth of .*/\1/p' out)
awk -v s="$suggested" 'BEGIN { exit !(s > 1e-4 && s < 10) }' || fail "$last: a useless suggestion: '$suggested'"
equal "$(head -1 rates.csv)" "step,lr,loss,smoothed"
awk -F , 'NR == 2 { if (($2 / 1e-4 - 1) ^ 2 > 1e-8) exit 1; lr = $2 }
    NR > 2 { if ($1 != NR - 2 || ($2 / lr / 1e6 ^ (1 / 59) - 1) ^ 2 > 1e-8) exit 1; lr = $2 }' rates.csv ||
    fail "$last: rates do not grow by one factor: $(head -4 rates.csv)"
[ "$(wc -l <rates.csv)" -lt 61 ] || fail "$last: it went on when the loss had diverged"
diff -r d before >/dev/null || fail "$last: the data have changed"
equal "$(find . -name '*.mrck' | wc -l | tr -d ' ')" 0

run 0 lr-find d "$@" --optimizer momentum --from 1e-4 --to 100 --steps 60 --json
head -1 out | grep -q '^{"event": "lr_step", "step": 0, "lr": ' || fail "$last: $(head -1 out)"
grep '"lr_step"' out | sed 's/.*"loss": \([0-9.e-]*\),.*/\1/' | awk '{ printf "%.5g\n", $1 }' >losses
sed 1d rates.csv | cut -d , -f 3 | awk '{ printf "%.5g\n", $1 }' >losses.before
same losses losses.before
tail -1 out | grep -q '"diverged": true, "suggested": [0-9.e-]*, "lowest_lr": [0-9.e-]*, ' || fail "$last: $(tail -1 out)"

run 0 lr-find d "$@" --from 1e-9 --to 1e-4 --optimizer sgd --steps 40
out_has "suggested  none: the loss has not risen at the highest rate"
run 0 lr-find d "$@" --optimizer sgd --from 900 --to 1000 --steps 20; out_has "suggested  none: no rate lowered the loss"
run 1 lr-find d "$@" --csv rates.csv; err_has "rates.csv"; out_lacks "suggested"
run 2 lr-find d "$@" --from 1 --to 0.1; err_has "--from 1, --to 0.1: expected"

# with weights from elsewhere, and frozen ones
run 0 train d "$@" --epochs 1 --checkpoint c
run 0 lr-find d "$@" --init c --freeze backbone --steps 12 --from 1e-5 --to 1; out_has "suggested"
finish
