# Gradients in fewer bits between processes: other weights than in f32, the same over every wire and in every run of a world; they
# learn; averages take it, too; elastic and resumed runs go on.
. "$(dirname "$0")/../lib.sh"
. "$here/ranks/together.sh"

run 0 synth d --count 24 --quiet
set -- --model cifar-cnn --batch 40 --epochs 3 --seed 1 --parts 4 --json --quiet --devices cpu:1
together 0 2 train d "$@"
usual=$(text weights)
all=$usual
for how in bf16 f16 int8 1bit; do
    together 0 2 train d "$@" --exchange $how --wire tcp
    weights=$(text weights)
    equal "$(text exchange)" $how
    case " $all " in *" $weights "*) fail "$how: the weights of another exchange" ;; esac
    all="$all $weights"
    for n in 2 3; do
        together 0 $n train d "$@" --exchange $how --wire shm
        [ $n -eq 3 ] || equal "$(text weights)" "$weights"
    done
    # the residual keeps a run from growing: the last loss is at most a little above the loss of a guess
    grep '"event": "epoch"' out | tail -1 | sed 's/.*"loss": \([0-9.]*\).*/\1/' >losses.$how
    awk -v how=$how '$1 > 2.6 { print how ": loss " $1; exit 1 }' losses.$how || fail "$how does not learn"
done
together 0 2 train d "$@" --exchange int8 --sync average:3 --outer-momentum 0.9 --outer-lr 0.7 --wire tcp
weights=$(text weights)
together 0 2 train d "$@" --exchange int8 --sync average:3 --outer-momentum 0.9 --outer-lr 0.7 --wire shm
equal "$(text weights)" "$weights"

# residuals are no part of a checkpoint: the run goes on, and takes the setting from it
together 0 2 train d "$@" --exchange int8 --checkpoint run --max-steps 5
together 0 2 train d --json --quiet --devices cpu:1 --checkpoint run --resume
equal "$(text exchange)" int8
together 2 2 train d --quiet --devices cpu:1 --checkpoint run --resume --epochs 5 --exchange bf16
err_has "--exchange"

# one process has nobody to send to, and says so
run 0 train d "$@"
equal "$(text weights)" "$usual"
run 0 train d "$@" --exchange 1bit
equal "$(text weights)" "$usual"
run 0 train d --model cifar-cnn --max-steps 1 --seed 1 --exchange 1bit
grep -q "^exchange nothing in one process: --exchange 1bit has no effect$" out || fail "$last: $(cat out)"
together 0 2 train d --model cifar-cnn --max-steps 1 --seed 1 --exchange 1bit
grep -q "^exchange 1bit, the rest with the next step: another algorithm than --exchange f32, " out || fail "$last: $(cat out)"
