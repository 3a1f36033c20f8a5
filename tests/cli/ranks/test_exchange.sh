# Gradients in fewer bits between processes: other weights than in f32, the same over every wire and in every run of a world; they
# learn as f32 does; averages take it, too; elastic and resumed runs go on.
. "$(dirname "$0")/../lib.sh"
. "$here/ranks/together.sh"
started() { sed -n "s/.*\"event\": \"start\".*\"$1\": \"\\([^\"]*\\)\".*/\\1/p" out; }

# learned: how far the training loss has fallen from the first epoch to the last.
learned() { sed -n 's/.*"event": "epoch".*"loss": \([-+0-9.einfa]*\),.*/\1/p' out | awk 'NR == 1 { first = $1 } END { print first - $1 }'; }

# The whole set is one batch, so a step's gradient is much like the one before. A residual that is dropped, added twice or given to
# other gradients shows in the loss: 1bit without one learns 0.71 of what f32 does, with
# one 0.95.
run 0 synth d --count 4 --size 28 --channels 1 --quiet
set -- --model mnist-mlp --batch 40 --epochs 24 --seed 1 --parts 4 --optimizer sgd --schedule constant --lr 0.01 --val none \
    --json --quiet --devices cpu:1
together 0 2 train d "$@"
usual=$(text weights)
all=$usual
learned >learned.f32
for how in bf16 f16 int8 1bit; do
    together 0 2 train d "$@" --exchange $how --wire tcp
    weights=$(text weights)
    equal "$(started exchange)" $how
    case " $all " in *" $weights "*) fail "$how: the weights of another exchange" ;; esac
    all="$all $weights"
    learned >learned.$how
    least=0.999
    [ $how != 1bit ] || least=0.9
    paste learned.f32 learned.$how | awk -v least=$least '!($1 > 0.5 && $2 > least * $1 && $2 < (2 - least) * $1) { exit 1 }' ||
        fail "$how: the loss fell by $(cat learned.$how), with f32 by $(cat learned.f32)"
done
together 0 2 train d "$@" --exchange 1bit --wire shm
equal "$(text weights)" "$weights"
together 0 3 train d "$@" --exchange int8 --epochs 2
together 0 2 train d "$@" --exchange int8 --sync average:3 --outer-momentum 0.9 --outer-lr 0.7 --epochs 5 --wire tcp
weights=$(text weights)
together 0 2 train d "$@" --exchange int8 --sync average:3 --outer-momentum 0.9 --outer-lr 0.7 --epochs 5 --wire shm
equal "$(text weights)" "$weights"
cp out log.jsonl
run 0 report log.jsonl --html page.html
grep -q "<p>Trained with --sync average:3 and --exchange int8: another algorithm than " page.html || fail "the page does not name the algorithm"

# residuals are no part of a checkpoint: the run goes on, and takes the setting from it
together 0 2 train d "$@" --exchange int8 --checkpoint run --max-steps 3
together 0 2 train d --json --quiet --devices cpu:1 --checkpoint run --resume --epochs 5
equal "$(started exchange)" int8
together 2 2 train d --quiet --devices cpu:1 --checkpoint run --resume --epochs 7 --exchange bf16
err_has "--exchange"

# one process has nobody to send to, and says so
run 0 train d "$@" --exchange 1bit
equal "$(text weights)" "$usual"
set -- --model mnist-mlp --batch 40 --max-steps 1 --seed 1 --val none --exchange 1bit
run 0 train d "$@"
grep -q "^exchange nothing in one process: --exchange 1bit has no effect$" out || fail "$last: $(cat out)"
together 0 2 train d "$@"
grep -q "^exchange 1bit, the rest with the next step: another algorithm than --exchange f32, " out || fail "$last: $(cat out)"
run 2 train d "$@" --freeze 1; err_has "exchange: 1bit sends no zeros, and frozen layers need gradients of zero"
finish
