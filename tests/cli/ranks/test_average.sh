# Shares that train weights of their own and are averaged: the same weights in every world, over every wire, after a restart between
# two averages, and when a process is lost. The header says that it is another algorithm.
. "$(dirname "$0")/../lib.sh"
. "$here/ranks/together.sh"

run 0 synth d --count 24 --quiet
set -- --model cifar-cnn --batch 40 --epochs 4 --seed 1 --parts 4 --sync average:4 --outer-lr 0.7 --outer-momentum 0.9 --json --quiet
run 0 train d "$@" --devices cpu:1
weights=$(text weights)
equal "$(text sync)" average:4
run 0 train d --model cifar-cnn --batch 40 --epochs 4 --seed 1 --parts 4 --json --quiet
[ "$(text weights)" != "$weights" ] || fail "averages trained the weights of sums"

for n in 2 3 4; do
    for wire in tcp shm; do
        together 0 $n train d "$@" --devices cpu:1 --wire $wire
        equal "$(text weights)" "$weights"
    done
done
together 0 2 train d "$@" --devices cpu:2
equal "$(text weights)" "$weights"

# 6 updates an epoch: stopped inside a round and inside an epoch, continued by other worlds
for n in 1 3 2 4; do
    together 0 $n train d "$@" --devices cpu:1 --checkpoint run --resume --max-steps 5
done
together 0 2 train d "$@" --devices cpu:1 --checkpoint run --resume
equal "$(text weights)" "$weights"
run 0 eval d --checkpoint run
run 2 train d --model cifar-cnn --quiet --checkpoint run --resume --epochs 9 --sync sync; err_has "--sync: the checkpoint was trained with average:4"

# what a lost process has trained since the newest stored state is trained again by the remaining ones
jobs_made=0
for lost in 0 2; do
    jobs_made=$((jobs_made + 1))
    rm -f out.* err.*
    for rank in 0 1 2; do
        RANK=$rank WORLD_SIZE=3 MILLRACE_MEET=127.0.0.1 MILLRACE_JOB="$temp.lost.$jobs_made" \
            "$millrace" train d "$@" --epochs 12 --elastic 1:4 >out.$rank 2>err.$rank &
        eval "pid$rank=$!"
    done
    until cat out.* | grep -q '"event": "epoch", .*"epoch": 1,\|"epoch": 1,'; do
        eval "kill -0 \$pid$lost" 2>/dev/null || fail "process $lost ended early: $(cat err.$lost)"
        sleep 0.05
    done
    eval "kill -9 \$pid$lost; wait \$pid$lost" 2>/dev/null
    for rank in 0 1 2; do
        [ $rank -eq $lost ] && continue
        eval "wait \$pid$rank" || fail "process $rank: $(cat err.$rank)"
    done
    cat out.* >out
    equal "$(grep -c '"event": "world"' out)" 1
    found=$(grep '"event": "train"' out | sed 's/.*"weights": "\([^"]*\)".*/\1/')
    run 0 train d "$@" --epochs 12
    equal "$found" "$(text weights)"
done

# in the table's head, and what does not go together
together 0 2 train d --model cifar-cnn --max-steps 1 --seed 1 --parts 2 --sync average:8 --outer-momentum 0.9
grep -q "^sync     the weights of 2 shares are averaged after 8 updates, outer momentum 0.9 (Nesterov): another algorithm than --sync sync$" out ||
    fail "$last: $(cat out)"
run 2 train d --model cifar-cnn --sync average; err_has "--sync: expected average:N with N from 1 to 1000000, found 'average'"
run 2 train d --model cifar-cnn --sync pigeon; err_has "--sync: expected one of sync, average:N; found 'pigeon'"
run 1 train d --model cifar-cnn --sync average:2 --lookahead 2; err_has "lookahead"
run 1 train d --model cifar-cnn --sync average:2 --average 0.9; err_has "average"
