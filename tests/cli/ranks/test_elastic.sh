# A run that goes on when a process of it is lost, and takes in others: the weights of the undisturbed run.
. "$(dirname "$0")/../lib.sh"
. "$here/ranks/together.sh"

run 0 synth d --count 24 --quiet
set -- --model cifar-cnn --batch 40 --seed 1 --epochs 8 --parts 4 --json --quiet
run 0 train d "$@"
weights=$(text weights)

jobs_made=0
pids=
# begin N ARGUMENT...: one more process of the run, number N, as somebody would start it by hand
begin() {
    number=$1
    shift
    last="process $number: millrace $*"
    MILLRACE_MEET=127.0.0.1:$port MILLRACE_JOB="$temp.$jobs_made" "$millrace" "$@" >"out.$number" 2>"err.$number" &
    eval "pid$number=$!"
}
new_run() {
    rm -f out.* err.*
    jobs_made=$((jobs_made + 1))
    port=$((20000 + ($$ * 7 + jobs_made * 31) % 12000))
}
# until PATTERN is in one of the outputs
until_said() {
    for _ in $(seq 1200); do
        cat out.* 2>/dev/null | grep -q "$1" && return
        sleep 0.05
    done
    cat out.* >out
    cat err.* >err
    fail "nobody said '$1' in a minute"
}
lose() {
    eval "kill -9 \$pid$1; wait \$pid$1 2>/dev/null"
}
# ends N: it is done; all that ended say the same weights, one of them
ends() {
    eval "wait \$pid$1"
    got=$?
    cp "out.$1" out
    cp "err.$1" err
    [ $got -eq 0 ] || fail "process $1 ended with $got"
}
same_weights() {
    cat out.* | grep '"event": "train"' >out
    equal "$(wc -l <out)" 1
    equal "$(text weights)" "$weights"
}

# whoever is lost, the first or the last: the others go on
ucx=$(ucx_if_there)
for lost in 0 2; do
    new_run
    [ $lost -eq 2 ] && wire=${ucx:-auto} || wire=auto
    for n in 0 1 2; do
        RANK=$n WORLD_SIZE=3 begin $n train d "$@" --elastic 1:4 --wire "$wire"
    done
    until_said '"epoch": 1,'
    lose $lost
    for n in 0 1 2; do
        [ $n -eq $lost ] || ends $n
    done
    cat out.* >out
    equal "$(grep '"event": "start"' out | sed 's/.*"ranks": \([0-9]*\).*/\1/')" 3
    equal "$(grep -c '"event": "world"' out)" 1
    equal "$(grep '"event": "world"' out | sed 's/.*"ranks": \([0-9]*\).*/\1/')" 2
    same_weights
done

# one alone; a second comes; the first is lost; a third comes
new_run
begin 0 train d "$@" --elastic 1:4 --checkpoint run --checkpoint-steps 4
until_said '"epoch": 1,'
begin 1 train d "$@" --elastic 1:4 --checkpoint run --checkpoint-steps 4
until_said '"event": "world", .*"ranks": 2'
lose 0
until_said '"event": "world", .*"ranks": 1'
begin 2 train d "$@" --elastic 1:4 --checkpoint run --checkpoint-steps 4
ends 1
ends 2
same_weights
run 0 eval d --checkpoint run

# --max-steps counts from the beginning of the run, also after a process was lost and updates were done again
run 0 train d "$@" --max-steps 21
usual=$weights
weights=$(text weights)
for lost in 0 1; do
    new_run
    for n in 0 1 2; do
        RANK=$n WORLD_SIZE=3 begin $n train d "$@" --max-steps 21 --elastic 1:4
    done
    until_said '"epoch": 1,'
    lose $lost
    for n in 0 1 2; do
        [ $n -eq $lost ] || ends $n
    done
    same_weights
done
weights=$usual

# two that are started by hand, without a launcher: the guest asks again while the host waits for more
new_run
for n in 0 1; do
    begin $n train d "$@" --elastic 1:4
done
ends 0
ends 1
cat out.* >out
equal "$(grep -c '"event": "start"' out)" 1
same_weights

# the one that writes the checkpoints is stopped: the others go on with its folder; then it is one of them again
new_run
rm -rf run
for n in 0 1 2; do
    RANK=$n WORLD_SIZE=3 begin $n train d "$@" --elastic 1:4 --epochs 24 --silence 1 --checkpoint run --checkpoint-steps 4
done
until_said '"epoch": 1,'
first=$(grep -l '"event": "start"' out.*)
first=${first#out.}
eval "stopped=\$pid$first"
kill -STOP "$stopped"
until_said '"event": "world", .*"ranks": 2'
kill -CONT "$stopped"
until_said '"event": "world", .*"ranks": 3'
for n in 0 1 2; do ends $n; done
usual=$weights
run 0 train d "$@" --epochs 24
weights=$(text weights)
longer=$weights
same_weights
weights=$usual
run 0 eval d --checkpoint run
[ -z "$(find run -name '*.part')" ] || fail "left: $(ls run)"

# one with another seed, one with other data, one with another silence, one with another wire: they end, the run goes on
run 0 synth other --count 9 --quiet
new_run
RANK=0 WORLD_SIZE=1 begin 0 train d "$@" --elastic 1:4 --epochs 24
until_said '"epoch": 1,'
begin 1 train d "$@" --elastic 1:4 --epochs 24 --seed 2
begin 2 train other "$@" --elastic 1:4 --epochs 24
begin 3 train d "$@" --elastic 1:4 --epochs 24 --silence 7
begin 4 train d "$@" --elastic 1:4 --epochs 24 --wire tcp
reason_1="--seed: .* with 1, found 2" reason_2="these are not the data" reason_3="--silence is 10s for rank 0 and 7s for rank"
reason_4="has wire tcp, rank 0 .* has wire auto"
for n in 1 2 3 4; do
    eval "wait \$pid$n" && fail "process $n took part"
    eval "reason=\$reason_$n"
    grep -q -e "$reason" err.$n || fail "process $n: $(cat err.$n)" # whatever else it has seen others end for
done
ends 0
weights=$longer
same_weights
weights=$usual

# all are to share memory: one of another host ends, one of this host takes part
new_run
RANK=0 WORLD_SIZE=1 begin 0 train d "$@" --elastic 1:4 --epochs 24 --wire shm
until_said '"epoch": 1,'
MILLRACE_HOST_ID=another
export MILLRACE_HOST_ID
begin 1 train d "$@" --elastic 1:4 --epochs 24 --wire shm
unset MILLRACE_HOST_ID
eval "wait \$pid1" && fail "a process of another host took part"
grep -q "cannot share memory: they run on different hosts" err.1 || fail "process 1: $(cat err.1)"
begin 2 train d "$@" --elastic 1:4 --epochs 24 --wire shm
until_said '"event": "world", .*"ranks": 2'
lose 0
ends 2
weights=$longer
same_weights
weights=$usual

# what all must agree on
new_run
RANK=0 WORLD_SIZE=2 begin 0 train d "$@" --silence 3
RANK=1 WORLD_SIZE=2 MILLRACE_MEET=127.0.0.1:$port MILLRACE_JOB="$temp.$jobs_made" run 2 train d "$@" --silence 1.5
err_has "--silence is 3s for rank 0 and 1.5s for rank 1"
eval "wait \$pid0"
equal $? 2

# Ctrl-C to one of them stops all, as ever
new_run
for n in 0 1; do
    RANK=$n WORLD_SIZE=2 begin $n train d "$@" --elastic 1:4 --epochs 1000
done
until_said '"event": "epoch"'
kill -INT "$pid1"
for n in 0 1; do
    eval "wait \$pid$n"
    equal $? 130
done

# what does not fit
for range in 3 0:4 3:2 1:1000 1:x :; do
    run 2 train d --model cifar-cnn --elastic $range; err_has "expected MIN:MAX"
done
run 2 train d --model cifar-cnn --elastic 1:2 --trace t; err_has "--elastic writes no --trace"
finish
