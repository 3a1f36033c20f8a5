# --precision, --loss-scale, --graph, --bucket, --watchdog, and one network on devices of several kinds: contradictions are reported, and
# equivalent runs agree.
. "$(dirname "$0")/../lib.sh"

run 0 synth d --classes 4 --count 4 --test-count 2 --quiet

# train_on DEVICES ARGUMENT...: two epochs of a small residual network
train_on() {
    devices=$1
    shift
    run "${status:-0}" train d --model cifar-resnet20 --batch 8 --epochs 2 --val none --devices "$devices" --quiet "$@"
}
status=2 train_on cpu --loss-scale 128; err_has "goes with --precision f16"
status=2 train_on cpu --precision f16 --loss-scale 0; err_has "expected auto or a power of two"
status=2 train_on cpu --precision f64; err_has "expected one of f32, tf32, bf16, f16"
for precision in tf32 bf16 f16; do
    status=1 train_on cpu --precision $precision; err_has "offered on cuda devices"
done
status=1 train_on sim:1,step=1s --watchdog 1ms; err_has "is not over after 0.001 s"

# layers on several devices: the bits of one
on_one="--model cifar-cnn --augment none --batch 8 --epochs 2 --val none --seed 3 --quiet --json"
# shellcheck disable=SC2086
run 0 train d $on_one --devices cpu --threads 1 --checkpoint whole
weights=$(text weights)
# shellcheck disable=SC2086
run 0 train d $on_one --devices cpu:2 --threads 2 --place 0-3=0,rest=1 --checkpoint split
equal "$(text weights)" "$weights"
grep '"event": "start"' out | grep -q '"replicas": 1, "replica_devices": 2, "place": "0-3=0,rest=1"' || fail "$last: place is not printed"
found() { sed 's/.* on d: \(.*\);.*/\1/' out; }
run 0 eval d --checkpoint whole --devices cpu --threads 1; seen=$(found)
run 0 eval d --checkpoint split --devices cpu:3 --threads 3 --place 0=0,1-5=1,rest=2; equal "$(found)" "$seen"
# shellcheck disable=SC2086
run 0 train d $on_one --devices cpu:4 --threads 4 --place 0-3=0,rest=1 # two replicas of two
grep '"event": "start"' out | grep -q '"replicas": 2, "replica_devices": 2' || fail "$last: expected two replicas"
# shellcheck disable=SC2086
run 2 train d $on_one --devices cpu:3 --place 0-3=0,rest=1; err_has "needs 2 devices for each replica: expected this number"
# shellcheck disable=SC2086
run 2 train d $on_one --devices cpu:2 --place front=0,rest=1; err_has "the network has no block of that name"

run 0 digest d --batch 5 --training --augment cifar --quiet
first=$(cat out)
run 0 digest d --batch 5 --training --augment cifar --devices sim:3,step=1us --quiet; equal "$(cat out)" "$first"

emulated=$(dirname "$millrace")/../tests/cuda_emu/lib
[ -e "$emulated/libcuda.so.1" ] || finish
LD_LIBRARY_PATH=$emulated${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} MILLRACE_EMU_DEVICES=3
export LD_LIBRARY_PATH MILLRACE_EMU_DEVICES
run 0 digest d --batch 5 --training --augment cifar --devices cuda:0,1,2 --quiet; equal "$(cat out)" "$first"
status=2 train_on cuda:0 --precision f16 --loss-scale 3; err_has "a power of two from 1 to"
status=1 train_on cuda:0,0; err_has "the same GPU"
status=1 train_on cuda:3; err_has "there are 3, numbered from 0"

# weights: the last line but the seconds it took
weights() { sed -n 's/^weights *\([0-9a-f]*\).*/\1/p' out; }
train_on cuda:0,1,2 --deterministic
whole=$(weights)
train_on cuda:0,1,2 --deterministic --graph off --bucket 1000
equal "$(weights)" "$whole"
train_on cuda:0,1,2 --deterministic --checkpoint run --max-steps 3
cp -r run elsewhere
train_on cuda:0,1,2 --deterministic --checkpoint run --resume
equal "$(weights)" "$whole"
train_on cpu:2 --checkpoint elsewhere --resume; out_has "epoch 2, step 1"

# 0.00001 of the loss: sums in another order
run 0 eval d --checkpoint run --devices cpu --json
there=$(number val_loss)
for devices in cpu:3 cuda:1 cuda:0,1,2; do
    run 0 eval d --checkpoint run --devices $devices --json
    awk -v a="$there" -v b="$(number val_loss)" 'BEGIN { exit !(a > 0 && (a - b) ^ 2 < (1e-5 * a) ^ 2) }' ||
        fail "$last: loss $(number val_loss), on cpu $there"
done
finish
