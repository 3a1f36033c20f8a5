# One run in several processes: the same digest, the same weights, one checkpoint; what does not fit is refused, and a
# process that is lost is named.
. "$(dirname "$0")/../lib.sh"
. "$here/ranks/together.sh"

run 0 synth d --count 24 --quiet
run 0 synth e --count 25 --quiet

# a digest
run 0 digest d --training --epochs 2 --batch 31 --seed 5 --json
digest=$(text digest)
for n in 2 4; do
    together 0 $n digest d --training --epochs 2 --batch 31 --seed 5 --json
    equal "$(text digest)" "$digest"
    equal "$(number samples)" 480
done
together 0 3 digest d --training --epochs 2 --batch 31 --seed 5 --json --devices cpu:2
equal "$(text digest)" "$digest"

near() { # of floats that were added up in another order
    awk -v a="$1" -v b="$2" 'BEGIN { d = a > b ? a - b : b - a; exit !(b > 0 && d <= 1e-6 * b) }' || fail "$last: expected about $2, found $1"
}

# weights: batch normalisation, a last batch with fewer samples than the others, validation
set -- --model cifar-resnet20 --augment "resize(16x16)" --batch 40 --epochs 2 --seed 1 --lr 1e-2 --parts 8 --json --quiet
run 0 train d "$@"
weights=$(text weights) loss=$(number loss) val_loss=$(number val_loss)
for n in 2 7; do
    together 0 $n train d "$@" --devices cpu:1
    equal "$(text weights)" "$weights"
    equal "$(number loss) $(number val_loss)" "$loss $val_loss"
    equal "$(grep -c '"event": "start"' out)" 1
    equal "$(grep -c '"event": "epoch"' out)" 2
    equal "$(sed -n 's/.*"ranks": \([0-9]*\).*/\1/p' out)" $n
done
of_rank() { [ "$1" -eq 0 ] && echo --devices cpu:3 || echo --devices cpu:1; }
together 0 3 train d "$@"
equal "$(text weights)" "$weights"
of_rank() { :; }

# stopped, and resumed in other numbers
together 0 3 train d "$@" --checkpoint run --max-steps 2
together 0 2 train d "$@" --checkpoint run --resume --max-steps 3
run 0 train d --model cifar-resnet20 --augment "resize(16x16)" --lr 1e-2 --checkpoint run --resume --max-steps 2 --json --quiet --devices cpu:2 --parts 8
together 0 4 train d "$@" --checkpoint run --resume
equal "$(text weights)" "$weights"
present run/best.mrck
together 0 2 eval d --checkpoint run --json # other parts: products of a batch may add up in another order
near "$(number val_loss)" "$val_loss"

# all ranks count the confusion matrix and one writes it; rank 0 reads the files with which a run begins
run 0 eval d --checkpoint run --confusion one.csv
together 0 3 eval d --checkpoint run --confusion all.csv
sed 1d one.csv | awk -F , '{ print $1, $(NF - 1) }' >one.samples
sed 1d all.csv | awk -F , '{ for (i = 2; i < NF - 1; i++) n += $i; print $1, n; n = 0 }' >all.samples
same one.samples all.samples
run 0 eval d --checkpoint run --views flip --json; val_loss=$(number val_loss)
together 0 3 eval d --checkpoint run --views flip --json
near "$(number val_loss)" "$val_loss"
run 0 export-weights run run.npz
run 0 train d "$@" --init run.npz --freeze backbone --max-steps 3; weights=$(text weights)
together 0 2 train d "$@" --init run.npz --freeze backbone --max-steps 3 --devices cpu:1
equal "$(text weights)" "$weights"
together 1 2 train d "$@" --init nothing.npz --devices cpu:1; err_has "nothing.npz"

# one trace of all, on one clock, which the report draws; a step is at the same time in all of them
together 0 3 train d "$@" --trace all.json
for r in 0 1 2; do
    grep -q "\"process_name\",\"args\":{\"name\":\"rank $r\"" all.json || fail "the trace lacks rank $r"
done
for span in '"exchange"' '"sum"' '"wait for rank'; do
    grep -q "\"name\":$span" all.json || fail "the trace has no span $span"
done
"$here/ranks/steps_together.py" all.json 3 || fail "steps of the ranks lie apart"
cp out run.jsonl
run 0 report run.jsonl --trace all.json --html all.html
grep -q "rank 2 worker" all.html || fail "the report lacks rank 2"

# damaged samples, met by whoever has them: the same weights as one process; what one process does is refused
cp -r d f
head -c 300 f/train/disc/00003.jpg >f/cut && mv f/cut f/train/disc/00003.jpg
for bad in replace skip; do
    run 3 train f --model cifar-cnn --batch 32 --epochs 1 --seed 1 --parts 4 --json --quiet --bad $bad
    weights=$(text weights)
    together 3 2 train f --model cifar-cnn --batch 32 --epochs 1 --seed 1 --parts 4 --json --quiet --bad $bad --bad-list bad.$bad
    equal "$(text weights)" "$weights"
    equal "$(cat bad.$bad bad.$bad.rank1 2>/dev/null | grep -c 00003)" 1
done
RANK=0 WORLD_SIZE=2 run 2 convert d d.mrec; err_has "convert is done by one process"
absent d.mrec

# who may join: a run that listens to other hosts says that it is open, unless it has a secret; the same weights with one
open="no secret: whoever reaches a port of this run"
short="train d --model cifar-cnn --quiet --max-steps 2 --seed 1 --parts 2 --json"
# shellcheck disable=SC2086 # words
{
    run 0 $short
    quiet=$(text weights)
    together 0 2 $short
    equal "$(text weights)" "$quiet"
    ! grep -q "no secret" err || fail "$last: a run on this host alone says that it is open"
    of_rank() { echo "--meet 0.0.0.0:$((21000 + $$ % 9000))"; }
    together 0 2 $short
    equal "$(grep -c "millrace, rank 0: $open" err)" 1
    equal "$(grep -c "$open" err)" 1
    (umask 077; echo "the secret of this test's ranks" >secret)
    MILLRACE_SECRET_FILE=$PWD/secret
    export MILLRACE_SECRET_FILE
    together 0 2 $short
    equal "$(text weights)" "$quiet"
    ! grep -q "no secret" err || fail "$last: a run with a secret says that it is open"
    of_rank() { :; }
    chmod 644 secret
    RANK=0 WORLD_SIZE=2 run 1 $short --meet 127.0.0.1; err_has "secret: MILLRACE_SECRET_FILE: others can read or write it (mode 644)"
    RANK=0 WORLD_SIZE=1 run 2 $short --elastic 1:2 --meet 127.0.0.1:1; err_has "others can read or write it"
    unset MILLRACE_SECRET_FILE
    MILLRACE_SECRET=short
    export MILLRACE_SECRET
    RANK=0 WORLD_SIZE=2 run 1 $short --meet 127.0.0.1; err_has "MILLRACE_SECRET: a secret of 5 bytes: expected 16"
    unset MILLRACE_SECRET
}

# what does not fit
of_rank() { [ "$1" -eq 1 ] && echo --batch 41; }
together 2 2 train d --model cifar-cnn --quiet --epochs 1; err_has "batch 41"; err_has "rank 1"
of_rank() { [ "$1" -eq 2 ] && echo --seed 9; }
together 2 3 train d --model cifar-cnn --quiet --epochs 1; err_has "seed 9"
of_rank() { [ "$1" -eq 1 ] && echo --augment none; }
together 2 2 train d --model cifar-cnn --quiet --epochs 1 --seed 1; err_has "augment none"
run 0 train d --model cifar-cnn --quiet --max-steps 1 --json
if ! grep -q '"winograd_passes": 0' out; then # a processor that has them
    of_rank() { [ "$1" -eq 1 ] && echo --convolution direct; }
    together 2 2 train d --model cifar-cnn --quiet --epochs 1; err_has "rank 1"; err_has "'convolutions 1'"
fi
of_rank() { :; }
together 2 3 train d --model cifar-cnn --quiet --parts 2; err_has "3 devices for the 2 parts"
RANK=1 WORLD_SIZE=2 run 1 train d --model cifar-cnn --quiet --meet nowhere.invalid:1 --meet-wait 1; err_has "nowhere.invalid"
RANK=5 WORLD_SIZE=2 run 2 train d --model cifar-cnn --quiet; err_has "expected a rank below"
# variables that another job has left, and an address that leads each machine to itself
MASTER_ADDR=localhost RANK=0 WORLD_SIZE=3 run 1 train d --model cifar-cnn --quiet --meet-wait 0.3
err_has "started by RANK and WORLD_SIZE as one of 3 ranks: for a run of one process clear its variables"
err_has "MASTER_ADDR is localhost, which is each machine itself: ranks on other machines need rank 0's address"
MASTER_ADDR=localhost RANK=1 WORLD_SIZE=3 run 1 train d --model cifar-cnn --quiet --meet-wait 0.3
err_has "MASTER_ADDR is localhost, which is each machine itself"; err_lacks "for a run of one process"
run 2 train d --model cifar-cnn --quiet --meet 127.0.0.1:1; err_has "no launcher gave this process a rank"

# when rank 0 fails, every other rank reports it, with rank 0's host
of_all_others() { equal "$(grep -c "millrace, rank [123]: rank 0 (host .*$1" err)" 3; }
together 1 4 train d --model cifar-cnn --quiet --epochs 1 --checkpoint run; err_has "holds the checkpoints of a run"
of_all_others "has given up, with status 1"
ulimit -S -f 2000 # no whole checkpoint
together 1 4 train d --model cifar-cnn --batch 40 --quiet --epochs 1 --seed 1 --checkpoint run3
ulimit -S -f unlimited
of_all_others "cannot write .*: File too large"

# one is lost; one is stopped
set -- --model cifar-cnn --batch 40 --epochs 10000 --seed 1 --quiet
steps_are_made() {
    for _ in $(seq 600); do
        [ "$(find run2 -name 'step-*.mrck' 2>/dev/null | wc -l)" -gt 0 ] && return
        sleep 0.1
    done
    fail "$last: no checkpoint in a minute"
}
rm -rf run2
start 3 train d "$@" --checkpoint run2 --checkpoint-steps 3
steps_are_made
victim=$(echo "$pids" | awk '{print $2}')
kill -9 "$victim"
rank=0
for pid in $pids; do
    wait "$pid"
    got=$?
    [ "$pid" = "$victim" ] || equal "$got" 1
    [ "$pid" = "$victim" ] || grep -q "rank 1 " err.$rank || { cp err.$rank err; fail "$last: rank $rank does not name rank 1"; }
    rank=$((rank + 1))
done
rm -rf run2
start 3 train d "$@" --checkpoint run2 --checkpoint-steps 3
steps_are_made
kill -INT "$(echo "$pids" | awk '{print $3}')"
ended 130
run 0 eval d --checkpoint run2
together 0 2 train d "$@" --checkpoint run2 --resume --max-steps 2
finish
