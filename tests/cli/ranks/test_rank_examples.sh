# examples/ranks/, with a launcher of this test. keras_mnist.sh: the rate and batch are scaled, warm-up goes over epochs, the figures are
# of all processes, and weights equal the weights of one process; an interrupted run continues.
. "$(dirname "$0")/../lib.sh"

cat >launcher <<'END'
#!/bin/sh
# -n N COMMAND...
n=$2 status=0 pids=
shift 2
rank=0
while [ $rank -lt "$n" ]; do
    RANK=$rank WORLD_SIZE=$n MILLRACE_MEET=127.0.0.1 MILLRACE_HOST_ID=h$((rank / ${EACH:-99})) "$@" &
    pids="$pids $!"
    rank=$((rank + 1))
done
for pid in $pids; do wait "$pid" || status=$?; done
exit $status
END
chmod +x launcher
MILLRACE=$millrace MPIRUN=$PWD/launcher MILLRACE_JOB=$temp EPOCHS=6
export MILLRACE MPIRUN MILLRACE_JOB EPOCHS

# example STATUS ARGUMENT...
example() {
    want=$1
    shift
    last="${script:-keras_mnist.sh} $*"
    sh "$here/../../examples/ranks/${script:-keras_mnist.sh}" "$@" >out 2>err
    got=$?
    [ $got -eq "$want" ] || fail "$last: expected exit status $want, found $got"
}

run 0 synth mnist --count 12 --test-count 3 --channels 1 --size 28 --quiet
example 0 2 mnist --seed 1 --devices cpu:1 --quiet --json
weights=$(text weights)
equal "$(grep -c '"event": "epoch"' out)" 6
python3 - <<'END' || fail "batch, rate, warm-up or figures"
import json
start, *epochs, end = [json.loads(line) for line in open("out")]
epochs = [e for e in epochs if e["event"] == "epoch"]
assert start["ranks"] == 2 and start["batch"] == 256 and start["lr"] == 2, start
assert [round(e["lr"], 6) for e in epochs] == [0.4, 0.8, 1.2, 1.6, 2, 2], [e["lr"] for e in epochs]
assert all(e["samples"] == 120 and 0 <= e["val_accuracy"] <= 1 for e in epochs), epochs
END
present mnist-run
run 0 train mnist --model mnist-cnn --parts 2 --batch 256 --optimizer adadelta --lr 2 --schedule constant,warmup=5 --epochs 6 --seed 1 --devices cpu:1 --quiet --json
equal "$(text weights)" "$weights"

# three epochs, then the rest in one process
rm -rf mnist-run
example 0 2 mnist --seed 1 --devices cpu:1 --quiet --max-steps 3
example 0 1 mnist --seed 1 --devices cpu:1 --quiet --json --parts 2 --batch 256 --lr 2
equal "$(text weights)" "$weights"

# async_mnist.sh: two machines with two and with five processes; the first of each serves; every gradient reaches both servers
script=async_mnist.sh
export EACH
for EACH in 2 5; do
    workers=$((2 * EACH - 2))
    epochs=$((EACH == 2 ? 2 : 1))
    EPOCHS=$epochs example 0 2 $EACH mnist --take 0:0.4 --seed 1 --devices cpu:1 --batch 24 --quiet --json
    python3 - $workers $epochs <<'END' || fail "servers, workers, gradients or staleness"
import json, sys
workers, count = map(int, sys.argv[1:])
lines = [json.loads(line) for line in open("out")]
start, end = lines[0], [e for e in lines if e["event"] == "train"][0]
epochs = [e for e in lines if e["event"] == "epoch"]
assert (start["servers"], start["ranks"], start["parts"], start["sync"]) == (2, workers, workers, "ps-async:8"), start
assert [e["samples"] for e in epochs] == [48] * count, epochs
assert end["gradients"] == 2 * workers * 2 * count and 0 <= end["staleness"] <= end["staleness_most"] <= 16 * (workers - 1), end
assert 0 <= epochs[-1]["val_accuracy"] <= 1 and epochs[-1]["loss"] > 0, epochs
END
done
finish
