#!/bin/sh
# Each program of examples/ runs on a set that `millrace synth` makes, and prints the right lines.
# usage: test_examples.sh MILLRACE FOLDER     FOLDER has the programs
set -eu
millrace=$1 programs=$2
scratch=$(mktemp -d "${TMPDIR:-/tmp}/millrace-examples-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
failures=0
fail() { failures=$((failures + 1)); echo "FAILED: $*"; sed 's/^/    /' "$scratch/out"; }
example() { # NAME ARGUMENT...
    name=$1
    shift
    "$programs/example_$name" "$@" >"$scratch/out" 2>&1
}

"$millrace" synth "$scratch/data" --classes 3 --count 64 --seed 1 --quiet >/dev/null
data=$scratch/data/train

example loader "$data" || fail "loader"
[ "$(grep -c '^batch [0-9]*: [0-9]* samples' "$scratch/out")" -eq 2 ] || fail "loader: expected two batches of 128 and 64"
example loader "$scratch/nothing" && fail "loader: expected a failure where nothing is"
grep -q "$scratch/nothing" "$scratch/out" || fail "loader: expected the name of the missing file"

example custom_network "$data" 120 || fail "custom_network"
accuracy=$(sed -n 's/^two-convolutions: 11235 parameters, .* accuracy \([0-9.]*\)$/\1/p' "$scratch/out")
[ -n "$accuracy" ] && awk "BEGIN { exit !($accuracy > 0.5) }" || fail "custom_network: expected an accuracy above 0.5"
cp "$scratch/out" "$scratch/once"
example custom_network "$data" 120 && cmp -s "$scratch/out" "$scratch/once" || fail "custom_network: another result the second time"

run=$scratch/run # its checkpoint brings the network, so the command takes it
example custom_network "$data" 120 "$run" && "$millrace" eval "$data" --checkpoint "$run" >"$scratch/out" 2>&1 || fail "custom_network: eval of its checkpoint"
grep -q "192 samples, loss" "$scratch/out" || fail "custom_network: expected an evaluation of 192 samples"
"$millrace" inspect --model "$run" >"$scratch/out" 2>&1 && grep -q "conv2d 3x3/1 32 relu" "$scratch/out" || fail "custom_network: its layers"

example own_training_loop "$data" || fail "own_training_loop"
loss() { sed -n "s/^epoch $1: loss //p" "$scratch/out"; }
awk "BEGIN { exit !($(loss 8) < 0.8 * $(loss 1)) }" || fail "own_training_loop: expected the loss to fall by a fifth"

for devices in cpu cpu:3; do # the same on any number of them, but for the order of sums
    example own_data $devices "$scratch/own.mrck" || fail "own_data on $devices"
    first=$(sed -n 's/^step  1: loss \([0-9.]*\),.*/\1/p' "$scratch/out") last=$(sed -n 's/^step 60: loss \([0-9.]*\),.*/\1/p' "$scratch/out")
    awk "BEGIN { exit !($last < 0.2 * $first) }" || fail "own_data on $devices: expected the loss to fall to a fifth"
    grep -q '^evaluation: 112 samples, .* accuracy \(1.000\|0.9\)' "$scratch/out" || fail "own_data on $devices: expected nearly all right"
done
"$millrace" synth "$scratch/gray" --classes 4 --count 2 --channels 1 --quiet >/dev/null
"$millrace" predict "$scratch/gray" --checkpoint "$scratch/own.mrck" --augment "resize(8x8),normalise(110/50)" >"$scratch/out" 2>"$scratch/err" || fail "own_data: its checkpoint"
[ "$(head -1 "$scratch/out")" = "sample,name,label,class,probability,error" ] || fail "own_data: expected rows of its checkpoint"

example convert "$data" "$scratch/out.mrec" || fail "convert"
grep -q "out.mrec: 192 records" "$scratch/out" || fail "convert: expected 192 records"
"$millrace" verify "$scratch/out.mrec" >"$scratch/out" 2>&1 || fail "convert: its output is damaged"
for from in "$data" "$scratch/out.mrec"; do "$millrace" digest "$from" --augment "resize(32x32)" --quiet; done >"$scratch/out"
[ "$(cut -d' ' -f1 "$scratch/out" | sort -u | wc -l)" -eq 1 ] || fail "convert: other batches than from the data"

example two_inputs "$scratch/out.mrec" 120 || fail "two_inputs"
accuracy=$(sed -n 's/^two-inputs: [0-9]* parameters, .* accuracy \([0-9.]*\)$/\1/p' "$scratch/out")
[ -n "$accuracy" ] && awk "BEGIN { exit !($accuracy > 0.6) }" || fail "two_inputs: expected an accuracy above 0.6"
grep -q '^ 3 field position  *1x1x1$' "$scratch/out" || fail "two_inputs: expected the second input as layer 3"
example two_inputs "$scratch/out.mrec" 60 "$scratch/two" && "$millrace" eval "$scratch/out.mrec" --checkpoint "$scratch/two" >"$scratch/out" 2>&1 ||
    fail "two_inputs: eval of its checkpoint"
grep -q "192 samples, loss" "$scratch/out" || fail "two_inputs: expected an evaluation of 192 samples"
example two_inputs "$data" && fail "two_inputs: expected a failure without the field"
grep -q "position" "$scratch/out" || fail "two_inputs: expected the name of the field that is missing"

example own_operation "$data" 1 || fail "own_operation"
grep -q '^rrc(32,.*),my_salt(0.1),flip: 192 pictures, sum [1-9]' "$scratch/out" || fail "own_operation: expected 192 pictures"
cp "$scratch/out" "$scratch/once"
example own_operation "$data" 5 && cmp -s "$scratch/out" "$scratch/once" || fail "own_operation: other batches by five workers than by one"

example own_source 192 || fail "own_source"
[ "$(cat "$scratch/out")" = "left: 96, right: 96" ] || fail "own_source: expected as many squares on the left as on the right"

example own_order "$data" || fail "own_order"
printf 'epoch 0: samples 0 to 63\nepoch 1: samples 0 to 127\nepoch 2: samples 0 to 191\n' | cmp -s - "$scratch/out" ||
    fail "own_order: expected a third more samples in each epoch"

# a run that stops inside an epoch, and its checkpoint in other programs: the command's own figures
set -- --model mnist-cnn --augment "rrc(28),flip" --batch 20 --lr 1e-3 --seed 3 --quiet
"$millrace" train "$data" "$@" --epochs 3 --checkpoint "$scratch/whole" >"$scratch/out" 2>&1 || fail "train"
weights=$(sed -n 's/^weights *\([0-9a-f]*\).*/\1/p' "$scratch/out")
"$millrace" train "$data" "$@" --epochs 2 --max-steps 13 --checkpoint "$scratch/part" >"$scratch/out" 2>&1 || fail "train, stopped"
example resume "$scratch/part" "$data" 3 || fail "resume"
"$millrace" train "$data" --checkpoint "$scratch/part" --resume --quiet >"$scratch/out" 2>&1 || fail "train --resume behind resume"
[ -n "$weights" ] && grep -q "^weights *$weights" "$scratch/out" || fail "resume: expected the weights of the whole run, $weights"
example resume "$scratch/part" "$scratch/gray" 4 && fail "resume: expected a failure with other data"
grep -q "these are not the data" "$scratch/out" || fail "resume: expected other data to be named"

# the command's own weights, of a run that is stopped in between, with validation
"$millrace" train "$scratch/data" --model mnist-cnn --epochs 2 --quiet >"$scratch/out" 2>&1 || fail "train with a test part"
weights=$(sed -n 's/^weights *\([0-9a-f]*\).*/\1/p' "$scratch/out")
"$millrace" train "$scratch/data" --model mnist-cnn --epochs 2 --max-steps 1 --checkpoint "$scratch/begun" --quiet >"$scratch/out" 2>&1 ||
    fail "train, stopped after a step"
example train "$scratch/data" mnist-cnn "$scratch/begun" 2 || fail "train, resumed"
example train "$scratch/data" mnist-cnn "$scratch/own" 2 || fail "train"
grep -q '^epoch 2: loss [0-9.]*, accuracy [0-9.]*, validation 0' "$scratch/out" || fail "train: expected two epochs with validation"
for folder in begun own; do
    "$millrace" train "$scratch/data" --checkpoint "$scratch/$folder" --resume --quiet >"$scratch/out" 2>&1 || fail "train --resume behind train"
    [ -n "$weights" ] && grep -q "^weights *$weights" "$scratch/out" || fail "train ($folder): expected the command's weights, $weights"
done
example train "$scratch/nothing" mnist-cnn "$scratch/none" && fail "train: expected a failure where nothing is"
grep -q "$scratch/nothing" "$scratch/out" || fail "train: expected the name of the missing data"

"$millrace" eval "$data" --checkpoint "$scratch/whole" >"$scratch/out" 2>&1 || fail "eval"
figures=$(sed -n 's/.*192 samples, loss \([0-9.]*\), accuracy \([0-9.]*\).*/192 samples: loss \1, accuracy \2/p' "$scratch/out")
example evaluate "$scratch/whole" "$data" || fail "evaluate"
[ -n "$figures" ] && [ "$(cat "$scratch/out")" = "$figures" ] || fail "evaluate: expected $figures, as the command's"
"$millrace" predict "$data" --checkpoint "$scratch/whole" >"$scratch/out" 2>"$scratch/err" || fail "predict"
awk -F, -v names="$(ls "$data")" 'BEGIN { for (k = split(names, name, "\n"); k; k--) number[name[k]] = k - 1 } NR > 1 { print $1, number[$4] }' \
    "$scratch/out" >"$scratch/command"
example predict "$scratch/whole" "$data" || fail "predict"
cut -d' ' -f1-2 "$scratch/out" | cmp - "$scratch/command" || fail "predict: expected the classes that the command prints"

[ "$failures" -eq 0 ] || exit 1
echo "the examples work"
