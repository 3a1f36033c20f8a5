# synth, convert, verify, train, eval, digest: the whole way, and a small network learns.
. "$(dirname "$0")/../lib.sh"

run 0 synth d --count 150 --seed 1 --quiet
run 0 convert d train.mrec --split train --quiet
run 0 convert d test.mrec --split test --quiet
run 0 verify train.mrec --quiet
run 0 digest train.mrec; cp out want
run 0 digest d; same out want
run 0 train train.mrec --val test.mrec --model cifar-cnn --optimizer adam --lr 1e-3 --batch 50 --epochs 3 --seed 1 --checkpoint c --json --quiet
grep '"event": "epoch"' out | tail -1 >last
accuracy=$(sed -n 's/.*"val_accuracy": \([0-9.]*\).*/\1/p' last)
loss=$(sed -n 's/.*"val_loss": \([0-9.]*\).*/\1/p' last)
[ "$(awk "BEGIN { print ($accuracy > 0.3) }")" = 1 ] || fail "expected an accuracy above 0.3 after three epochs, found $accuracy"
run 0 eval test.mrec --checkpoint c --json
equal "$(number samples)" 300
equal "$(number val_accuracy)" "$accuracy"
equal "$(number val_loss)" "$loss"
run 0 eval d --checkpoint c --json --devices cpu:2 --batch 17 --prefetch off
equal "$(number val_accuracy)" "$accuracy"
run 1 eval test.mrec --checkpoint nowhere
finish
