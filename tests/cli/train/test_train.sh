# train: header, table, JSON, checkpoints, resume, Ctrl-C; the weights depend on none of the loader's settings.
. "$(dirname "$0")/../lib.sh"

run 0 synth d --count 6 --test-count 2 --quiet
set -- --model cifar-cnn --batch 10 --epochs 2 --seed 1 --lr 1e-3 --quiet
run 0 train d "$@"
out_has "model    cifar-cnn (N1)"
out_has "validation d, 20"
out_has "verdict"
run 0 train d "$@" --json
equal "$(sed -n 1p out | cut -c1-18)" '{"event": "start",'
equal "$(grep -c '"event": "epoch"' out)" 2
for key in samples_per_s step_ms step_ms_mad wait_ms exposed_ms stall_fraction loss accuracy val_loss val_accuracy stages \
    bytes_read bytes_copied peak_rss_bytes verdict batch replicas seed warmup_steps; do
    grep '"event": "epoch"' out | grep -q "\"$key\": " || fail "$last: no \"$key\" in the epoch lines"
done
weights=$(text weights)
for how in "--prefetch off" "--workers 3 --readers 2" "--io pread --prefetch 1"; do
    # shellcheck disable=SC2086
    run 0 train d "$@" --json $how
    equal "$(text weights)" "$weights"
done

# stopped and resumed: the weights of the run that was not
run 0 train d "$@" --json --checkpoint run --max-steps 4
run 0 train d "$@" --json --checkpoint run --resume
equal "$(text weights)" "$weights"
run 2 train d --model cifar-cnn --batch 32 --epochs 2 --seed 1 --checkpoint run --resume --quiet; err_has "--batch"
run 2 train d --model cifar-cnn --batch 10 --epochs 2 --seed 2 --checkpoint run --resume --quiet; err_has "--seed"
run 2 train d --model cifar-cnn --batch 10 --epochs 2 --seed 1 --order block --checkpoint run --resume --quiet; err_has "--order: the checkpoint was trained with shuffle, found block"
run 2 train d --model cifar-cnn --batch 10 --epochs 2 --seed 1 --tail drop --checkpoint run --resume --quiet; err_has "--tail"
run 2 train d --model cifar-cnn --sync ps-async; err_has "--sync"
run 2 train d "$@" --resume; err_has "--resume needs --checkpoint"

# Ctrl-C: the step ends, a checkpoint is there, the rest of the run goes on from it
rm -f out
"$millrace" train d --model cifar-cnn --batch 10 --epochs 100000 --seed 1 --quiet --checkpoint int >out 2>err &
pid=$!
listens $pid
last="train with Ctrl-C"
shows $pid '^ *1 ' || fail "$last: it ended before an epoch was over"
kill -INT $pid
wait $pid
status=$?
equal $status 130
[ -n "$(ls int)" ] || fail "no checkpoint after Ctrl-C"
run 0 eval d --checkpoint int

# what cannot be trained
run 1 train nowhere "$@"
run 2 train d "$@" --devices gpu
run 1 train d "$@" --augment "resize(9)"; err_has "cifar-cnn"
run 2 train d "$@" --augment "twist(3)"; err_has "twist"
run 2 train d "$@" --schedule "sometimes"; err_has "sometimes"
run 0 synth sizes --count 2 --max-size 64 --quiet
run 0 train sizes "$@"; err_has "pictures are resized to 32 x 32, the input of cifar-cnn"; out_has "input 32 x 32 x 3"
run 1 train sizes "$@" --augment flip; err_has "pictures differ in size"; err_has "resize(32x32)"; out_lacks "model"
run 0 train sizes "$@" --augment "resize(24x24)"; out_has "input 24 x 24 x 3"
run 0 train sizes "$@" --checkpoint sized; run 0 eval sizes --checkpoint sized
head -c 300 d/train/disc/00001.jpg >short; cp short d/train/disc/00001.jpg
run 1 train d "$@"; err_has "00001.jpg"
run 3 train d "$@" --bad replace; err_has "takes its place"
finish
