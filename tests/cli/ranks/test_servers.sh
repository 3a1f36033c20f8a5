# Servers of parameters: the weights of one process with --sync ps, over several servers and after a restart; ps-async ends together
# at Ctrl-C of one worker and continues; a lost server or worker ends all, with a text that says so.
. "$(dirname "$0")/../lib.sh"
. "$here/ranks/together.sh"

# served "STATUS..." N ARGUMENT...: `out` is the first worker's
served() {
    want=$1
    shift
    start "$@"
    gone "$want"
}
# gone STATUS...: of the processes, in order of ranks; 1|2: either, by who learns first
gone() {
    rank=0
    for pid in $pids; do
        wait "$pid"
        got=$? expected=${1%% *}
        [ "$expected" = "$1" ] || set -- "${1#* }"
        case "|$expected|" in
        *"|$got|"*) ;;
        *) cat err.* >err; fail "$last: expected exit status $expected of rank $rank, found $got" ;;
        esac
        rank=$((rank + 1))
    done
    cat out.* >out
    cat err.* >err
    rm -f out.* err.*
}

# 5 updates an epoch, and running statistics
run 0 synth d --count 4 --size 16 --quiet
set -- d --model cifar-resnet20 --augment "resize(16x16)" --batch 8 --epochs 2 --lr 0.01 --seed 1 --parts 2 --devices cpu:1 --json --quiet
run 0 train "$@"
weights=$(text weights)
served 0 3 train "$@" --sync ps --wire tcp
equal "$(text weights)" "$weights"
served 0 2 train "$@" --sync ps # a single worker
equal "$(text weights)" "$weights"
served 1 3 train "$@" --sync ps --servers 2
err_has "found 2 servers"
of_rank() { echo --servers "$1"; }
served 1 3 train "$@" --sync ps
err_has "rank 0 has 0, rank 1 has 1"
of_rank() { [ "$1" -ne 1 ] || echo --sync ps; }
served "2|1" 3 train "$@" # 1: of one that hears of another's end first
err_has "rank 1 has servers of parameters and rank 0 has not"
of_rank() { :; }
served 0 3 train "$@" --sync ps --checkpoint run --max-steps 3
run 2 train "$@" --checkpoint run --resume; err_has "trained with servers of parameters: give --sync ps"
served 0 3 train "$@" --sync ps --checkpoint run --resume
equal "$(text weights)" "$weights"
run 0 eval d --checkpoint run

# in the table's head, and what does not go together
run 2 train d --model mnist-mlp --sync ps; err_has "start at least two"
run 2 train d --model mnist-mlp --sync ps-async:1 --elastic 1:2; err_has "the weights of a lost server are lost"
served "1 1|2 1|2" 3 train d --model cifar-resnet20 --sync ps --clip-norm 1 --quiet
err_has "servers of parameters do not go with a limit of the norm of all gradients"
served 0 3 train d --model mnist-mlp --epochs 1 --seed 1 --val none --sync ps-async:3
grep -q "^sync     1 server of parameters, 2 workers, each at most 3 steps ahead of the slowest: another algorithm than --sync sync$" out || fail "$last: $(cat out)"
grep -q "^servers  received [1-9][0-9]* gradients, " out || fail "$last: $(cat out)"

begun() { grep -q '"event": "epoch", .*"epoch": 1,' out.1 || { sleep 0.02; false; }; }
# end SIGNAL RANK "STATUS..." ARGUMENT...: one of three processes gets the signal behind epoch 1
end() {
    signal=$1 whom=$2 want=$3
    shift 3
    start 3 train "$@"
    # shellcheck disable=SC2086
    victim=$(set -- $pids && shift "$whom" && echo "$1")
    waits "$victim" begun
    kill "-$signal" "$victim"
    gone "$want"
}
end TERM 0 "143 130 130" "$@" --sync ps --epochs 100000 # a server asks all workers
end TERM 2 "0 130 143" "$@" --sync ps-async:2 --epochs 100000 --checkpoint async
err_has "stopped on request"
steps=$(sed -n 's/.*"event": "train".*"gradients": \([0-9]*\).*/\1/p' out)
equal $((steps % 2)) 0
served 0 3 train "$@" --sync ps-async:2 --epochs 100000 --checkpoint async --resume --max-steps 4
equal "$(sed -n 's/.*"event": "train".*"gradients": \([0-9]*\).*/\1/p' out)" 8
end KILL 0 "137 1 1" "$@" --sync ps-async:2 --epochs 100000
err_has "worker 0: server 0 of parameters (rank 0 in this text"
end KILL 2 "1 1 137" "$@" --sync ps --epochs 100000
err_has "rank 1 (host"
finish
