# Several processes with emulated GPUs: the weights of one, whoever has which GPUs; the GPUs of a host dealt to its processes; one
# that dies ends the others.
. "$(dirname "$0")/../lib.sh"
. "$here/gpu/gpus.sh"
. "$here/ranks/together.sh"
MILLRACE_EMU_DEVICES=3
export MILLRACE_EMU_DEVICES
err_lacks() { ! grep -qF -- "$1" err || fail "$last: not expected on stderr: $1"; }
digits_of digits 36 some_bytes some_labels
set -- train digits --model mnist-cnn --batch 12 --parts 6 --deterministic --seed 3 --epochs 1 --val none --json

run 0 "$@" --devices cuda:0 --quiet
expected=$(text weights)
[ -n "$expected" ] || fail "$last: no weights"

# one GPU each; dealt whole; by number; three processes on one
for how in "3 cuda" "2 cuda:all" "2 cuda:2,0" "3 cuda:1"; do
    for seed in 1 2; do
        MILLRACE_EMU_SEED=$seed together 0 "${how% *}" "$@" --devices "${how#* }"
        equal "$(text weights)" "$expected"
        case $how in
        "2 cuda:2,0" | "3 cuda:1") err_has "compute on the same GPU, cuda:" ;;
        *) err_lacks "same GPU" ;;
        esac
    done
done

# cuda and cuda:all alone: the first, and all
for how in "cuda 1" "cuda:all 3"; do
    run 0 "$@" --devices "${how% *}"
    out_has "\"replicas\": ${how#* },"
done

# what each sees, as launchers set it
cat >seeing <<'EOF'
#!/bin/sh
case $RANK in
0) CUDA_VISIBLE_DEVICES=$SEES_0 ;;
1) CUDA_VISIBLE_DEVICES=$SEES_1 ;;
esac
export CUDA_VISIBLE_DEVICES
exec "$REAL_MILLRACE" "$@"
EOF
chmod +x seeing
REAL_MILLRACE=$millrace
export REAL_MILLRACE
millrace=$PWD/seeing
SEES_0=1,0 SEES_1=2
export SEES_0 SEES_1
together 0 2 "$@" --devices cuda:all
equal "$(text weights)" "$expected"
err_lacks "same GPU"
SEES_1=1,2
together "1 2" 2 "$@" --devices cuda
err_has "1 of them the same: give each the same or its own (CUDA_VISIBLE_DEVICES)"
millrace=$REAL_MILLRACE

# one dies in the middle
start 3 "$@" --devices cuda --epochs 100000
pid=${pids# }
first=${pid%% *}
pid=${pid#* }
shows "$first" '"event": "epoch"' out.0 || fail "$last: no epoch was over"
kill -9 "${pid%% *}"
ended "1 137"
err_has "rank 1"
finish
