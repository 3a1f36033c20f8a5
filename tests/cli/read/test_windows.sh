# --length-window: one order for texts and the record files made of them, whatever the loader's settings; who refuses it.
. "$(dirname "$0")/../lib.sh"

awk 'BEGIN { for (i = 0; i < 203; i++) { for (k = 0; k < 1 + i * 7919 % 101; k++) printf "%d,", (i * k) % 50; print i % 10 } }' >lines.csv
run 0 convert lines.csv lines.mrec --quiet
run 0 convert lines.csv lines.shards --shard-size 8K --quiet
run 0 inspect lines.mrec; out_has "field 1   tokens" # after the label: record sizes give the lengths
set -- --epochs 2 --seed 3 --batch 8 --length-window 4
run 0 digest lines.csv "$@"; cp out want
for data in lines.mrec lines.shards; do
    run 0 digest $data "$@"
    same out want
done
for how in "--workers 1" "--workers 5" "--prefetch off" "--prefetch 9" "--io pread" "--parts 3" "--devices cpu:3" "--split-at 2" "--split-at 27" \
    "--resident 0" "--split-at 31 --prefetch off --resident 0"; do
    # shellcheck disable=SC2086
    run 0 digest lines.mrec "$@" $how
    same out want
done
for how in "--length-window off" "--length-window 5" "--seed 4" "--tail drop" "--tail pad" "--order sequential"; do
    # shellcheck disable=SC2086
    run 0 digest lines.mrec "$@" $how
    cmp -s out want && fail "$last: the same digest"
done
run 0 digest lines.mrec "$@" --json; out_has '"length_window": 4'
run 0 bench loader lines.mrec --length-window 3 --seconds 0.05 --rounds 1

# what has no lengths, who takes none, how much is too much
run 0 synth d --count 2 --quiet
run 1 digest d --length-window 2; err_has "does not tell them without reading"
run 2 train d --model cifar-cnn --length-window 2; err_has "--length-window: model cifar-cnn takes pictures"
run 2 digest lines.csv --length-window 4294967296; err_has "length-window"
run 1 digest lines.csv --batch 1048576 --length-window 1048576 --memory 1M; err_has "--length-window"

# training: a run that is resumed has the same window, and then ends as one that was never stopped
awk 'BEGIN { for (i = 0; i < 67; i++) { for (k = 0; k < 1 + i * 7 % 6; k++) printf "%d,", (i * k) % 50; print i % 10 } }' >short.csv
set -- --model notes-mlp --seed 3 --batch 8 --quiet --json
run 0 train short.csv "$@" --epochs 2 --length-window 4 --checkpoint whole; grep -o '"weights": "[^"]*"' out >want || fail "no weights are printed"
run 0 train short.csv "$@" --epochs 2 --length-window 4 --checkpoint cp --max-steps 11
for how in 5 off; do
    run 2 train short.csv "$@" --epochs 2 --checkpoint cp --resume --length-window $how
    err_has "--length-window: the checkpoint was trained with 4, found"
done
run 0 train short.csv "$@" --epochs 2 --checkpoint cp --resume # as the checkpoint says
grep -o '"weights": "[^"]*"' out >got; cmp -s got want || fail "resumed inside a window: other weights: $(cat got), expected $(cat want)"

notes=${MILLRACE_DATA:-}/notes/train.csv.gz
if [ -f "$notes" ]; then # all of one length: still an order
    run 0 digest "$notes" --length-window 8; cp out want
    run 0 convert "$notes" notes.mrec --quiet
    run 0 digest notes.mrec --length-window 8; same out want
fi
finish
