# Several processes with emulated GPUs: the weights of one, whoever has which GPUs; the GPUs of a host dealt to its processes; one
# that dies ends the others. The same with sums by NCCL.
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

wire() { sed -n 's/.*"wire": "\([^"]*\)".*/\1/p' out; }

# one GPU each; dealt whole; by number; three processes on one. NCCL sums where each process has its own GPUs
for how in "3 cuda" "2 cuda:all" "2 cuda:2,0" "3 cuda:1"; do
    for wire in shm auto; do
        together 0 "${how% *}" "$@" --devices "${how#* }" --wire $wire
        equal "$(text weights)" "$expected"
        case "$wire $how" in
        "auto 3 cuda" | "auto 2 cuda:all") equal "$(wire)" nccl ;;
        *) equal "$(wire)" shm ;;
        esac
        case $how in
        "2 cuda:2,0" | "3 cuda:1") err_has "compute on the same GPU, cuda:" ;;
        *) err_lacks "same GPU" ;;
        esac
    done
done

# NCCL between the processes, in the order of the tree; shares that do not make one node each
for how in "2 3 cuda" "3 2 cuda:all"; do
    ranks=${how#* }
    MILLRACE_EMU_SEED=${how%% *} together 0 "${ranks% *}" "$@" --devices "${how##* }" --wire nccl
    equal "$(text weights)" "$expected"
    equal "$(wire)" nccl
done
run 0 "$@" --devices cuda:0 --quiet --parts 5 --batch 10
uneven=$(text weights)
together 0 2 "$@" --devices cuda:all --wire nccl --parts 5 --batch 10 --bucket 64K
equal "$(text weights)" "$uneven"

# NCCL takes one GPU of two hosts for two
cat >hosts <<'EOF'
#!/bin/sh
NCCL_HOSTID=n$RANK
export NCCL_HOSTID
exec "$REAL_MILLRACE" "$@"
EOF
chmod +x hosts
REAL_MILLRACE=$millrace
export REAL_MILLRACE
millrace=$PWD/hosts
together 0 2 "$@" --devices cuda:0 --wire nccl --parts 5 --batch 10
equal "$(text weights)" "$uneven"
millrace=$REAL_MILLRACE

# in NCCL's order: another rounding
loss_of() { sed -n 's/.*"event": "epoch".*"loss": \([-+0-9.einfa]*\),.*/\1/p' out; }
together 0 3 "$@" --devices cuda --wire nccl
loss_of >loss.tree
set -- train digits --model mnist-cnn --batch 12 --parts 6 --seed 3 --epochs 1 --val none --json
together 0 3 "$@" --devices cuda --wire nccl
loss_of | paste loss.tree - | awk '!($1 > 0 && ($1 - $2) ^ 2 < ($1 * 1e-3) ^ 2) { exit 1 }' ||
    fail "$last: loss $(loss_of), in the order of the tree $(cat loss.tree)"
set -- "$@" --deterministic

# what cannot be: all say it, and nobody waits
together 1 3 "$@" --devices cuda:1 --wire nccl
err_has "ranks 0 and 1 compute on the same GPU, and NCCL wants each GPU of a run once"
together 1 2 "$@" --devices cpu:1 --wire nccl; err_has "NCCL sums between GPUs only"
together 1 2 "$@" --devices cuda --wire nccl --exchange bf16; err_has "wire nccl sums in f32 only"

# what it costs, in the header, the trace and the plan
together 0 2 "$@" --devices cuda --wire nccl --trace t.json
out_has '"network": {"latency_ms": '
for pid in 1 2; do
    grep -q "\"pid\":$pid,\"tid\":[0-9]*,\"name\":\"exchange\"" t.json || fail "$last: the trace has no exchange of process $pid"
done
together 0 2 plan digits --model mnist-cnn --batch 12 --seconds 0.1 --devices cuda --no-forms
out_has "between 2 ranks by nccl, "

# not all connect: the memory of the hosts
export MILLRACE_EMU_HANG=ncclCommInitRankConfig
together 0 2 "$@" --devices cuda --meet-wait 8; err_has "cannot use NCCL: "; err_has "NCCL has not connected all GPUs in time"
equal "$(text weights) $(wire)" "$expected shm"
unset MILLRACE_EMU_HANG
mkdir without
for library in libcuda.so.1 libcublas.so.13 libcudnn.so.9; do ln -s "$LD_LIBRARY_PATH/$library" without; done
ln -s "$LD_LIBRARY_PATH/../../cuda/old/libcuda.so.1" without/libnccl.so.2
cat >lacking <<'EOF'
#!/bin/sh
[ "$RANK" -ne 1 ] || LD_LIBRARY_PATH=$PWD/without
exec "$REAL_MILLRACE" "$@"
EOF
chmod +x lacking
REAL_MILLRACE=$millrace
export REAL_MILLRACE
millrace=$PWD/lacking
together 1 3 "$@" --devices cuda --wire nccl
err_has "rank 0: "; err_has "rank 1 cannot use wire nccl: "; err_has "libnccl.so.2"
together 0 3 "$@" --devices cuda
err_has "the memory of the hosts (wire shm): rank 1 cannot use NCCL: "
equal "$(text weights)" "$expected"
millrace=$REAL_MILLRACE

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
millrace=$PWD/seeing
SEES_0=1,0 SEES_1=2
export SEES_0 SEES_1
together 0 2 "$@" --devices cuda:all
equal "$(text weights)" "$expected"
err_lacks "same GPU"
SEES_1=1,2
together 1 2 "$@" --devices cuda
err_has "1 of them the same: give each the same or its own (CUDA_VISIBLE_DEVICES)"
millrace=$REAL_MILLRACE

# one process dies in the middle; with sums by NCCL, without and with a message of NCCL; the others continue, too
lose_rank_1() {
    pid=${pids# }
    first=${pid%% *}
    pid=${pid#* }
    shows "$first" '"event": "epoch"' out.0 || fail "$last: no epoch was over"
    kill -9 "${pid%% *}"
}
for how in "shm none" "nccl none" "nccl report"; do
    export MILLRACE_EMU_PEER_LOST="${how#* }"
    start 3 "$@" --devices cuda --epochs 100000 --wire "${how% *}"
    lose_rank_1
    ended "1 137"
    err_has "rank 1 (host "
done
run 0 "$@" --devices cuda:0 --quiet --epochs 8
expected=$(text weights)
rm -f out.*
start 3 "$@" --devices cuda --wire nccl --elastic 2:3 --epochs 8
victim=$(echo "$pids" | awk '{print $2}')
while runs "$victim" && ! cat out.* | grep -q '"event": "epoch"'; do sleep 0.02; done
kill -9 "$victim"
for pid in $pids; do
    wait "$pid"
    got=$?
    [ "$pid" = "$victim" ] || equal "$got" 0
done
cat out.* | grep '"event": "train"' >out
cat err.* >err
equal "$(text weights)" "$expected"
grep -q '"event": "world"' out.* || fail "$last: nobody has lost a process"
finish
