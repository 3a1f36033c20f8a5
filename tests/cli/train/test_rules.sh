# Optimizers, gradient limits, decayed tensors, averages and schedules: their report, and that a run which was stopped and resumed ends with
# the bits of the uninterrupted one, also on another number of devices.
. "$(dirname "$0")/../lib.sh"

run 0 synth d --classes 4 --count 20 --test-count 8 --size 16 --quiet
set -- --model cifar-cnn --augment none --batch 16 --seed 5 --quiet

# every rule: named, and the same bits when it was stopped in between
for rule in sgd momentum nesterov rmsprop rmsprop-momentum adam adamw lamb muon nadam adamax adagrad adadelta; do
    run 0 train d "$@" --optimizer $rule --lr 1e-3 --epochs 2 --json
    grep '"event": "start"' out | grep -q "\"optimizer\": \"$rule\"" || fail "$last: $rule is not named"
    weights=$(text weights)
    run 0 train d "$@" --optimizer $rule --lr 1e-3 --epochs 2 --max-steps 3 --checkpoint $rule
    run 0 train d --quiet --checkpoint $rule --resume --json
    equal "$(text weights)" "$weights"
    run 0 train d "$@" --optimizer $rule --lr 1e-3 --epochs 1
    out_has "rule     $rule, lr 0.001"
done
run 2 train d "$@" --optimizer adamv; err_has "found 'adamv'; did you mean 'adam"
run 2 train d --quiet --checkpoint adamw --resume --epochs 3 --optimizer nadam; err_has "--optimizer: the checkpoint was trained with adamw, found nadam; leave it out"

# a momentum where the rule has one is taken, and any other is an error before anything is trained
for rule in sgd rmsprop adam adamw lamb nadam adamax adagrad adadelta; do
    run 2 train d "$@" --optimizer $rule --momentum 0.9; err_has "--momentum: $rule takes none, and would ignore 0.9; "
done
run 2 train d "$@" --optimizer rmsprop --momentum 0.5; err_has "--optimizer rmsprop-momentum does"
run 2 train d "$@" --optimizer adam --momentum 0.5; err_has "of --optimizer these do: momentum, nesterov, rmsprop-momentum, muon"
run 2 train d --model mnist-mlp --augment "rrc(28)" --quiet --momentum 0.5; err_has "--momentum: sgd takes none"
run 2 train d "$@" --show --optimizer adam --momentum 0.5; err_has "--momentum: adam takes none"
run 2 bench trainer --model mnist-mlp --seconds 0.2 --momentum 0.5 --quiet; err_has "--momentum: sgd takes none"
for rule in momentum nesterov rmsprop-momentum muon; do
    run 0 train d "$@" --optimizer $rule --lr 1e-3 --momentum 0.5 --epochs 1 --json
    weights=$(text weights)
    run 0 train d "$@" --optimizer $rule --lr 1e-3 --epochs 1 --json
    [ "$(text weights)" != "$weights" ] || fail "$last: the momentum of $rule changes nothing"
done
# each sample several times in its batch
run 0 train d "$@" --augment "padcrop(2)" --repeats 4 --epochs 2 --json; weights=$(text weights)
run 0 train d "$@" --augment "padcrop(2)" --epochs 2 --json
[ "$(text weights)" != "$weights" ] || fail "$last: --repeats changes nothing"
run 0 train d "$@" --augment "padcrop(2)" --repeats 4 --epochs 2 --max-steps 3 --checkpoint repeats
run 2 train d --quiet --checkpoint repeats --resume --repeats 2; err_has "--repeats"
run 0 train d --quiet --checkpoint repeats --resume --json; equal "$(text weights)" "$weights"
run 2 eval d --checkpoint repeats --repeats 2; err_has "of training alone"
run 2 predict d --checkpoint repeats --repeats 2; err_has "of training alone"
run 0 eval d --checkpoint repeats --json; equal "$(number samples)" 32

# of a run that goes on the checkpoint's rule counts, not the model's
run 0 train d --quiet --checkpoint nesterov --resume --epochs 3 --momentum 0.5 --override
err_has "--momentum: the checkpoint was trained with 0.9; from here on 0.5"
run 2 train d --quiet --checkpoint adam --resume --epochs 3 --momentum 0.5; err_has "--momentum: adam takes none"
run 2 train d "$@" --nesterov; err_has "--optimizer nesterov"

# all of the rest at once: one part after the other on one device, on two, and stopped in between
all="--optimizer adamw --weight-decay 0.05 --decay-on weights --clip-value 0.01 --clip-norm 0.05 --average 0.9 --lookahead 2 --label-smoothing 0.1 --parts 2"
# shellcheck disable=SC2086
run 0 train d "$@" $all --epochs 3 --checkpoint one --devices cpu:1
out_has "weight decay 0.05 on weights alone, labels smoothed by 0.1, gradients clipped at 0.01, gradient norm at most 0.05, lookahead 2, average 0.9 is evaluated"
# shellcheck disable=SC2086
run 0 train d "$@" $all --epochs 3 --checkpoint two --devices cpu:2 --max-steps 7 --bucket 100K
run 0 train d --quiet --checkpoint two --resume --devices cpu:2 --parts 2 --json
weights=$(text weights)
for key in average clip_value clip_norm weight_decay label_smoothing; do
    grep '"event": "start"' out | grep -q "\"$key\": 0\.[0-9]" || fail "$last: no $key"
done
grep '"event": "start"' out | grep -q '"decay_on": "weights"' || fail "$last: not on weights"
run 0 train d --quiet --checkpoint one --resume --epochs 3 --json
equal "$(text weights)" "$weights"
# the checkpoint's parts stay, whatever devices compute them
# shellcheck disable=SC2086
run 0 train d "$@" $all --epochs 3 --checkpoint three --devices cpu:2 --max-steps 7
run 2 train d --quiet --checkpoint three --resume --threads 2; err_has "--threads: the checkpoint's batches have 2 parts"
run 0 train d --quiet --checkpoint three --resume --devices cpu:1 --json
equal "$(text weights)" "$weights"

# the average is evaluated, and named
run 0 eval d --checkpoint one; out_has "(average of weights)"
loss=$(sed "s/.*loss \([0-9.]*\),.*/\1/" out)
run 0 eval d --checkpoint two
equal "$(sed "s/.*loss \([0-9.]*\),.*/\1/" out)" "$loss"
run 0 eval d --checkpoint adamw; out_lacks "average"
run 0 eval d --checkpoint one --json; grep -q '"average": 0.9[,}]' out || fail "$last: no average"

# changes on resume are refused, or reported
cp -r one other
for change in "average 0.5" "clip-norm 1" "clip-value 0" "decay-on all" "label-smoothing 0.2"; do
    # shellcheck disable=SC2086
    run 2 train d --quiet --checkpoint other --resume --epochs 4 --${change% *} ${change#* }
    err_has "--${change% *}: the checkpoint was trained with"
done
run 0 train d --quiet --checkpoint other --resume --epochs 4 --override --average 0 --clip-norm 1 --decay-on all
err_has "--average: the checkpoint was trained with 0.9; from here on 0"
err_has "--clip-norm: the checkpoint was trained with 0.05; from here on 1"
err_has "--decay-on: the checkpoint was trained with weights; from here on all"
run 0 eval d --checkpoint other; out_lacks "average"
run 0 train d --quiet --checkpoint other --resume --epochs 5 --override --average 0.75
run 0 eval d --checkpoint other; out_has "(average of weights)"
run 2 train d "$@" --average 1; err_has "--average: expected 0 to below 1"
run 2 train d "$@" --label-smoothing 1; err_has "--label-smoothing: expected 0 to below 1"
run 2 train d "$@" --clip-norm -1; err_has "--clip-norm"
run 2 train d "$@" --max-grad-norm 1; err_has "--clip-norm"
run 0 bench trainer --model mnist-mlp --seconds 0.2 --optimizer nadam --clip-norm 1 --average 0.99 --decay-on weights --weight-decay 0.1 --quiet

run 2 train d --quiet --checkpoint other --resume --epochs 6 --lookahead 3; err_has "--lookahead: the checkpoint was trained with 2, found 3"

# schedules
run 0 train d "$@" --show --schedule piecewise:0.01@1/0.001@2.5 --lr 0.1 --epochs 4
equal "$(awk 'NR > 2 {printf "%s:%s ", $3, $4}' out)" "0:0.1 5:0.01 10:0.01 15:0.001 19:0.001 "
out_has "piecewise:0.01@1/0.001@2.5, lr 0.1, 4 epochs of 5 updates"
run 0 train nowhere "$@" --show --show-steps 100 --schedule onecycle:2:0.125,up=0.25 --lr 0.5 --epochs 2 --log-steps 50 --json
equal "$(sed 's/.*"lr": \([0-9.e-]*\).*/\1/' out | tr '\n' ' ')" "0.25 0.5 0.25 0.1875 0.12625 "
run 0 train nowhere "$@" --show --show-steps 10 --schedule exponential:0.5:0.1 --lr 0.8 --epochs 5
equal "$(awk 'NR > 2 {printf "%s ", $4}' out | cut -d' ' -f1-5)" "0.8 0.4 0.2 0.1 0.1"
run 1 train nowhere "$@" --show
run 2 train nowhere "$@" --show --show-steps 10 --schedule onecycle,warmup=1; err_has "brings its own warm-up"
run 2 train d "$@" --show --checkpoint one --resume; err_has "--show and --resume"
run 0 train d "$@" --schedule onecycle --lr 1e-3 --epochs 2 --json
weights=$(text weights)
run 0 train d "$@" --schedule onecycle --lr 1e-3 --epochs 2 --checkpoint cycle --max-steps 4
run 0 train d --quiet --checkpoint cycle --resume --json
equal "$(text weights)" "$weights"
run 2 train d --quiet --checkpoint cycle --resume --schedule exponential:0.9
err_has "--schedule: the checkpoint was trained with onecycle:10:"; err_has ",up=0.45, found exponential:0.9"
finish
