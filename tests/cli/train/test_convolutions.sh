# train, eval, bench trainer: the convolution algorithm is reported, stored in checkpoints, and never changed silently.
. "$(dirname "$0")/../lib.sh"

run 0 synth d --count 6 --test-count 2 --quiet
set -- --model cifar-cnn --batch 10 --epochs 2 --seed 1 --lr 1e-3 --quiet

run 0 train d "$@"; out_has "kernels  convolution auto: "
run 0 train d "$@" --convolution direct; out_has "kernels  convolution direct: Winograd in 0 of 11 passes"
run 0 train d "$@" --json --convolution direct --checkpoint plain --max-steps 1
grep '"event": "start"' out | grep -q '"convolution": "direct", "convolution_passes": 11, "winograd_passes": 0' || fail "$last: convolutions are not printed"
# as on a processor without AVX2: all is direct from the first step on
limited() { # STATUS ARGUMENT...: run without vectors
    MILLRACE_SIMD=plain
    export MILLRACE_SIMD
    run "$@"
    unset MILLRACE_SIMD
}
limited 0 train d "$@"; out_has "kernels  convolution auto: Winograd in 0 of 11 passes"
limited 0 train d "$@" --checkpoint plain --resume --max-steps 1 --convolution auto # a direct run resumes on machines with no other algorithm
run 0 bench trainer --model cifar-cnn --batch 32 --seconds 0.1 --ops --convolution direct
equal "$(grep -c ' direct .* ms .* GFLOP/s$' out)" 11
run 0 bench trainer --model cifar-cnn --batch 32 --seconds 0.1 --ops --json
equal "$(grep -c '"what": "convolution".*"pass": .*"algorithm": .*"gflop_per_s": ' out)" 11
run 0 bench trainer --model mnist-mlp --seconds 0.1 --ops; out_has "no convolutions"
run 2 train d "$@" --convolution winograd; err_has "--convolution"
run 0 train d "$@" --json --checkpoint fast --max-steps 1
if ! grep -q '"winograd_passes": 0' out; then # a processor that has it
    run 2 train d "$@" --convolution direct --checkpoint fast --resume
    err_has "--convolution: the checkpoint was trained with auto, found direct; leave it out to go on with that, or add --override"
    run 2 train d "$@" --convolution auto --checkpoint plain --resume
    err_has "--convolution: the checkpoint was trained with direct, found auto; leave it out to go on with that, or add --override"
    run 0 eval d --checkpoint plain --json; loss=$(number val_loss)
    run 0 eval d --checkpoint plain --json --convolution direct; equal "$(number val_loss)" "$loss"
    cp -r plain changed
    run 0 train d "$@" --checkpoint plain --resume; out_has "kernels  convolution direct: Winograd in 0 of 11 passes"
    run 0 train d "$@" --convolution auto --override --checkpoint changed --resume --max-steps 1
    err_has "--convolution: the checkpoint was trained with direct; from here on auto"
    limited 0 train d "$@" --checkpoint fast --resume; err_has "some of its convolutions were Winograd's, which are not to be had here"
    run 0 eval d --checkpoint fast --convolution direct
    run 0 bench trainer --model cifar-cnn --batch 32 --seconds 0.1 --ops; out_has " winograd "
fi
finish
