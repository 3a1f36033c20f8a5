# GPUs that are not there, hidden, too small, or that hang: one line that says so, status 1, soon.
. "$(dirname "$0")/../lib.sh"
. "$here/gpu/gpus.sh"
digits_of data 23 some_bytes some_labels
MILLRACE_EMU_DEVICES=2
export MILLRACE_EMU_DEVICES
one_line() { equal "$(wc -l <err)" 1; }
set -- train data --batch 9 --epochs 1 --seed 1 --quiet --json

# not there
run 1 "$@" --model mnist-mlp --devices cuda:9; one_line; err_has "asked for cuda:9, there are 2"
run 1 "$@" --model mnist-mlp --devices cuda:0,2; one_line; err_has "asked for cuda:2, there are 2"
run 1 digest data --devices cuda:2; err_has "asked for cuda:2, there are 2"

# masks
run 0 "$@" --model mnist-mlp --devices cuda:0; weights=$(text weights)
with_mask() {
    export CUDA_VISIBLE_DEVICES="$1"
    shift
    run "$@"
    unset CUDA_VISIBLE_DEVICES
}
with_mask 1 0 devices; out_has "emulated GPU 1"; out_lacks "cuda:1"
with_mask 1,0 0 devices; grep -q "cuda:0 *emulated GPU 1" out || fail "$last: expected GPU 1 first"
with_mask 1 0 "$@" --model mnist-mlp --devices cuda:0; equal "$(text weights)" "$weights"
with_mask 1 1 "$@" --model mnist-mlp --devices cuda:1; one_line; err_has "asked for cuda:1, there is 1"; err_has "CUDA_VISIBLE_DEVICES=1"
with_mask "" 1 "$@" --model mnist-mlp --devices cuda:0; one_line; err_has "there is no GPU (CUDA_VISIBLE_DEVICES=)"
with_mask "" 0 "$@" --model mnist-mlp --devices cpu

# too small
with_memory() {
    export MILLRACE_EMU_MEMORY="$1"
    shift
    run "$@"
    unset MILLRACE_EMU_MEMORY
}
with_memory 2000000 1 "$@" --model mnist-mlp --devices cuda:0; one_line; err_has "not even a batch of one would fit"
with_memory 40000000 1 "$@" --model mnist-cnn --batch 100 --devices cuda:0,1; one_line; err_has "a global batch of about"
fits=$(sed -n 's/.*a global batch of about \([0-9]*\) would fit.*/\1/p' err)
[ "${fits:-0}" -gt 1 ] && [ "$fits" -lt 100 ] || fail "$last: a batch of '$fits'"
with_memory 12000000 1 "$@" --model mnist-mlp --devices cuda:0; one_line; err_has "bytes of GPU memory"; err_has "try a smaller batch"

# hangs: what does not hang is over long before the watchdog says so
with_hang() {
    export MILLRACE_EMU_HANG="$1"
    shift
    run "$@"
    unset MILLRACE_EMU_HANG
    one_line
    err_has "is not over after 5 s"
}
with_hang ncclAllReduce 1 "$@" --model mnist-mlp --watchdog 5 --devices cuda:0,1; err_has "their exchange does not end"
with_hang cublasGemmEx 1 "$@" --model mnist-mlp --watchdog 5 --devices cuda:0; err_has "still at work: replica 0 (cuda:0)"
with_hang cublasGemmEx 1 "$@" --model mnist-mlp --watchdog 5 --devices cuda:0,1; err_has "replica 1 (cuda:1)"
finish
