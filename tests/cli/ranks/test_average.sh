# Shares that train weights of their own and are averaged: the same weights in every world, over every wire, after a restart between
# two averages, and when a process is lost. The header says that it is another algorithm.
. "$(dirname "$0")/../lib.sh"
. "$here/ranks/together.sh"
started() { sed -n "s/.*\"event\": \"start\".*\"$1\": \"\\([^\"]*\\)\".*/\\1/p" out; }

# 5 updates an epoch, and running statistics
run 0 synth d --count 4 --size 16 --quiet
set -- --model cifar-resnet20 --augment "resize(16x16)" --batch 8 --epochs 4 --lr 0.01 --seed 1 --parts 4 --json --quiet
run 0 train d "$@" --devices cpu:1
sums=$(text weights)
set -- "$@" --sync average:4 --outer-lr 0.7 --outer-momentum 0.9
run 0 train d "$@" --devices cpu:1
weights=$(text weights)
equal "$(started sync)" average:4
[ "$sums" != "$weights" ] || fail "averages trained the weights of sums"

for how in "2 tcp" "3 shm" "4 tcp" "4 shm"; do
    together 0 "${how% *}" train d "$@" --devices cpu:1 --wire "${how#* }"
    equal "$(text weights)" "$weights"
done
together 0 2 train d "$@" --devices cpu:2
equal "$(text weights)" "$weights"

# stopped inside a round and inside an epoch, continued by other worlds
for n in 1 3 2; do
    together 0 $n train d "$@" --devices cpu:1 --checkpoint run --resume --max-steps 6
done
together 0 4 train d "$@" --devices cpu:1 --checkpoint run --resume
equal "$(text weights)" "$weights"
run 0 eval d --checkpoint run
run 2 train d --model cifar-resnet20 --quiet --checkpoint run --resume --epochs 9 --sync sync; err_has "--sync: the checkpoint was trained with average:4"

begun() { cat out.? | grep -q '"event": "epoch", .*"epoch": 1,' || { sleep 0.02; false; }; }
# lose ARGUMENT...: three processes, number $lost is killed after epoch 1; false: all were over before
lose() {
    jobs_made=$((jobs_made + 1))
    rm -f out.* err.*
    for rank in 0 1 2; do
        RANK=$rank WORLD_SIZE=3 MILLRACE_MEET=127.0.0.1 MILLRACE_JOB="$temp.lost.$jobs_made" \
            "$millrace" train d "$@" --elastic 1:4 >out.$rank 2>err.$rank &
        eval "pid$rank=$!"
    done
    eval "victim=\$pid$lost"
    waits "$victim" begun
    kill -9 "$victim" 2>/dev/null
    wait "$victim" 2>/dev/null
    for rank in 0 1 2; do
        [ $rank -eq "$lost" ] && continue
        eval "wait \$pid$rank" || fail "process $rank: $(cat err.$rank)"
    done
    cat out.* >out
    grep -q '"event": "world"' out
}
# the remaining processes train again the samples that a lost one trained on since the newest stored state
for lost in 0 2; do
    for epochs in 8 32 128 512; do # as long as none is killed in time
        lose "$@" --epochs "$epochs" && break
    done
    equal "$(grep -c '"event": "world"' out)" 1
    found=$(grep '"event": "train"' out | sed 's/.*"weights": "\([^"]*\)".*/\1/')
    [ "$epochs" = "${known-}" ] || run 0 train d "$@" --epochs "$epochs"
    [ "$epochs" = "${known-}" ] || of_known=$(text weights)
    known=$epochs
    equal "$found" "$of_known"
done

# other ways without a wait for sums: the same rules
of_sums=$weights
for way in delayed independent; do
    set -- --model cifar-resnet20 --augment "resize(16x16)" --batch 8 --epochs 2 --lr 0.01 --seed 1 --parts 4 --json --quiet --sync $way
    run 0 train d "$@" --devices cpu:1
    weights=$(text weights)
    equal "$(started sync)" $way
    [ "$weights" != "$of_sums" ] || fail "$way trained the weights of another way"
    of_sums=$weights
    together 0 3 train d "$@" --devices cpu:1 --wire tcp --checkpoint $way --resume --max-steps 7
    together 0 2 train d "$@" --devices cpu:1 --wire shm --checkpoint $way --resume
    equal "$(text weights)" "$weights"
done
run 2 train d --model cifar-resnet20 --quiet --checkpoint delayed --resume --epochs 9 --sync independent
err_has "--sync: the checkpoint was trained with delayed"
# independent: the state of every share is stored, so a lost one's continues
lost=1
for epochs in 8 32 128 512; do
    lose "$@" --epochs "$epochs" && break
done
found=$(grep '"event": "train"' out | sed 's/.*"weights": "\([^"]*\)".*/\1/')
run 0 train d "$@" --epochs "$epochs"
equal "$found" "$(text weights)"

# in the table's head, and what does not go together
together 0 2 train d --model mnist-mlp --max-steps 1 --seed 1 --parts 2 --val none --sync independent
grep -q "^sync     independent weights of 2 shares, share 0's are evaluated and stored: another algorithm than --sync sync$" out || fail "$last: $(cat out)"
together 0 2 train d --model mnist-mlp --max-steps 1 --seed 1 --parts 2 --val none --sync delayed
grep -q "^sync     each update uses the gradients of the batch before: another algorithm than --sync sync$" out || fail "$last: $(cat out)"
together 0 2 train d --model mnist-mlp --max-steps 1 --seed 1 --parts 2 --val none --sync average:8 --outer-momentum 0.9
grep -q "^sync     the weights of 2 shares are averaged after 8 updates, outer momentum 0.9 (Nesterov): another algorithm than --sync sync$" out ||
    fail "$last: $(cat out)"
run 2 train d --model mnist-mlp --sync average; err_has "--sync: expected average:N with N from 1 to 1000000, found 'average'"
run 2 train d --model mnist-mlp --sync pigeon; err_has "--sync: expected one of sync, average:N, independent, delayed, ps, ps-async:N; found 'pigeon'"
run 2 train d --model mnist-mlp --sync average:2 --lookahead 2; err_has "lookahead"
run 2 train d --model mnist-mlp --sync average:2 --average 0.9; err_has "average"
finish
