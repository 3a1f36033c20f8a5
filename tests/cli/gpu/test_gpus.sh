# Emulated GPUs under every command: real digits and pictures (where available), trained on one, two and seven GPUs as on cpu devices.
# Integers and the loader's batches are the same; losses agree to 1e-5, with batch normalisation over the few samples
# of one of seven parts to 1e-3; with --deterministic, loader settings, recording and buckets change no bit of the weights.
. "$(dirname "$0")/../lib.sh"
. "$here/gpu/gpus.sh"
real=${MILLRACE_DATA:-$here/../../../shared/data}
MILLRACE_EMU_DEVICES=7
export MILLRACE_EMU_DEVICES
seven=cuda:0,1,2,3,4,5,6

# close A B TOLERANCE
near() { awk -v a="$1" -v b="$2" -v t="$3" 'BEGIN { d = a - b; exit !(b != "" && (d < 0 ? -d : d) <= t * b) }' || fail "$last: expected $2, found $1"; }

mnist_pictures() { gzip -dc "$real/mnist/train-images-idx3-ubyte.gz" | tail -c +17; }
mnist_labels() { gzip -dc "$real/mnist/train-labels-idx1-ubyte.gz" | tail -c +9; }
if [ -r "$real/mnist/train-images-idx3-ubyte.gz" ]; then
    digits_of digits 40 mnist_pictures mnist_labels 2>broken_pipes
else
    digits_of digits 40 some_bytes some_labels
fi
if [ -r "$real/cifar10/cifar10-jpeg.tar.gz" ]; then
    tar xzf "$real/cifar10/cifar10-jpeg.tar.gz" --wildcards 'train/*/000[0-2].jpg' && mv train pictures
else
    run 0 synth drawn --count 3 --quiet && mv drawn/train pictures
fi

# trained DATA MODEL DEVICES OPTION...: sets loss, samples, steps, accuracy, weights; with direct convolutions on cpu devices, since
# Winograd's round otherwise than the GPUs' own
trained() {
    data=$1 model=$2 devices=$3
    shift 3
    run 0 train "$data" --model "$model" --devices "$devices" --seed 3 --epochs 1 --val none --quiet --json --deterministic \
        --convolution direct "$@"
    loss=$(number loss) whole="$(number samples) samples, $(number steps) steps, accuracy $(number accuracy)" weights=$(text weights)
}
# as_cpu TOLERANCE DATA MODEL OPTION...: 1, 2 and 7 GPUs beside as many cpu devices
as_cpu() {
    tolerance=$1
    shift
    for pair in "cpu cuda:0" "cpu:2 cuda:0,1" "cpu:7 $seven"; do
        data=$1 model=$2
        shift 2
        trained "$data" "$model" "${pair% *}" "$@"
        cpu_loss=$loss cpu_whole=$whole
        trained "$data" "$model" "${pair#* }" "$@"
        equal "$whole" "$cpu_whole"
        near "$loss" "$cpu_loss" "$tolerance"
        set -- "$data" "$model" "$@"
    done
}
as_cpu 1e-5 digits mnist-cnn --batch 18 --optimizer adam --lr 1e-3                 # 18 18 4: some of 7 devices have no sample of the last batch, which has 4
as_cpu 1e-5 digits mnist-mlp --batch 5 --tail pad --optimizer sgd --lr 0.1         # always fewer samples than seven devices
as_cpu 1e-5 pictures cifar-cnn --batch 12 --tail drop --optimizer sgd --lr 1e-2
as_cpu 1e-3 pictures cifar-resnet20 --batch 14 --max-steps 1 --augment cifar

# what changes no bit
for devices in cuda:0 $seven; do
    # shellcheck disable=SC2086 # options
    trained digits mnist-mlp $devices --batch 16
    expected=$weights
    for how in "--prefetch off" "--graph off --bucket 0" "--bucket 50K --prefetch 1 --workers 3"; do
        # shellcheck disable=SC2086
        MILLRACE_EMU_SEED=${#how} trained digits mnist-mlp $devices --batch 16 $how
        equal "$weights" "$expected"
    done
done

# what arrives on the devices
for options in "--batch 9" "--batch 5 --tail pad" "--batch 16 --tail drop --training --augment flip --epochs 2"; do
    # shellcheck disable=SC2086
    run 0 digest pictures --seed 2 --quiet --json $options
    expected=$(text digest)
    [ -n "$expected" ] || fail "$last: no digest"
    for how in "cuda:0 --prefetch off" "cuda:0,1 --workers 3" "$seven"; do
        # shellcheck disable=SC2086
        run 0 digest pictures --seed 2 --quiet --json $options --devices $how
        equal "$(text digest)" "$expected"
    done
done

# every other command
trained digits mnist-mlp cuda:0,1 --batch 16 --checkpoint kept
run 0 eval digits --checkpoint kept --devices cpu --json --quiet
on_cpu=$(number val_loss)
run 0 eval digits --checkpoint kept --devices $seven --json --quiet
near "$(number val_loss)" "$on_cpu" 1e-5
run 0 bench loader digits --batch 16 --seconds 0.2 --devices cuda:0 --json --quiet
run 0 profile digits --model mnist-mlp --batch 16 --steps 2 --seconds 0.1 --devices cuda:0,1 --json --quiet
finish
