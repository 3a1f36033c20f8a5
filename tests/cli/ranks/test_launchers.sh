# The same run under real launchers: Open MPI's and MPICH's mpirun, torchrun (MRT_TORCH_PYTHON names a Python that has torch),
# srun on a Slurm of three nodes. Missing launchers are reported.
. "$(dirname "$0")/../lib.sh"
ran=

examples=$here/../../examples/ranks
MILLRACE=$millrace
export MILLRACE

run 0 synth d --count 24 --quiet
set -- --model cifar-resnet20 --batch 40 --epochs 1 --seed 1 --lr 1e-2 --parts 8 --quiet --json
run 0 train d "$@"
weights=$(text weights)
TMPDIR=$temp # launchers leave things there
export TMPDIR

# launched STATUS COMMAND...: within two minutes; an orphan holds no pipe of ours
launched() {
    want=$1
    shift
    last="$*"
    timeout -k 5 120 "$@" >out 2>err </dev/null
    got=$?
    [ "$got" = "$want" ] || { [ "$want" = some ] && [ "$got" -ne 0 ]; } || fail "$last: expected exit status $want, found $got"
}

# the_same SIZE LAUNCHER COMMAND...: one run, with the weights of one process
the_same() {
    size=$1 name=$2
    shift 2
    launched 0 "$@"
    equal "$(text weights)" "$weights"
    equal "$(grep -c '"event": "start"' out)" 1
    grep -q "\"ranks\": $size" out || fail "$last: expected $size ranks"
    ran="$ran, $name"
}

# by_mpi MPIRUN N NAME ARGUMENT...: the same over --wire mpi. A sanitizer does not know MPI's memory.
by_mpi() {
    mpirun=$1 size=$2 name=$3
    shift 3
    if grep -q -e __asan_init -e __tsan_init "$millrace"; then return; fi
    # shellcheck disable=SC2086
    the_same "$size" "$name" $mpirun -n "$size" "$millrace" train d "$@" --devices cpu:1 --wire mpi
    grep -q '"wire": "mpi"' out || fail "$last: $(cat out)"
}

if command -v mpirun.openmpi >/dev/null; then
    openmpi="mpirun.openmpi --allow-run-as-root --oversubscribe --mca oob_tcp_if_include lo --mca btl_tcp_if_include lo"
    MPIRUN=$openmpi the_same 3 "Open MPI" sh "$examples/train_mpirun.sh" 3 d "$@"
    # shellcheck disable=SC2086
    launched some $openmpi -n 2 "$millrace" train d "$@" --parts 1
    err_has "2 devices for the 1 parts"
    # shellcheck disable=SC2086
    if [ "$(nproc)" -gt 1 ]; then
        launched 0 $openmpi --bind-to none -n 2 taskset -c "$(taskset -pc $$ | sed 's/.*: //; s/[,-].*//')" "$millrace" train d "$@" --devices cpu:1
        err_has "millrace, rank 0: Open MPI has bound the 2 processes on "; err_has "--bind-to none"
        equal "$(grep -c 'has bound' err)" 1
    fi
    by_mpi "$openmpi" 2 "Open MPI's messages" "$@"
    by_mpi "$openmpi" 4 "Open MPI's messages" "$@"
    # shellcheck disable=SC2086
    MILLRACE_MPI=libmpich.so.12 launched some $openmpi -n 2 "$millrace" train d "$@" --wire mpi
    grep -q -e "both are process 0 of 1 of" -e "no MPI library can be opened" err || fail "$last: $(cat err)"
else
    echo "no mpirun.openmpi"
fi
if command -v mpirun.mpich >/dev/null; then
    MPIRUN="mpirun.mpich -iface lo" the_same 3 MPICH sh "$examples/train_mpirun.sh" 3 d "$@"
    by_mpi "mpirun.mpich -iface lo" 3 "MPICH's messages" "$@"
else
    echo "no mpirun.mpich"
fi
torch=${MRT_TORCH_PYTHON:-python3}
if "$torch" -c 'import torch' >/dev/null 2>&1; then
    TORCHRUN="$torch -m torch.distributed.run" the_same 2 torchrun sh "$examples/train_torchrun.sh" 2 d "$@"
else
    echo "no torch in $torch"
fi
if [ "$(id -u)" -ne 0 ] || ! command -v slurmctld >/dev/null || ! unshare --uts --mount true 2>/dev/null; then
    echo "no Slurm, or not allowed to start nodes of one"
elif ! bash "$here/ranks/slurm.sh" start "$temp/slurm" 1 3 3 >slurm.log 2>&1; then
    echo "Slurm does not start here: $(tail -1 slurm.log)"
else
    trap 'bash "$here/ranks/slurm.sh" stop "$temp/slurm"; rm -rf "$temp"' EXIT
    . "$temp/slurm/env"
    the_same 7 srun srun -N3 -n7 "$millrace" train d "$@"
    the_same 4 "srun with a suffix" env MILLRACE_HOST_SUFFIX=-ib srun -N2 -n4 "$millrace" train d "$@"
    launched some env MILLRACE_HOST_SUFFIX=/ib srun -N2 -n4 "$millrace" train d "$@"
    err_has "MILLRACE_HOST_SUFFIX: expected letters"
    # rank 0 is on n2, the first of the list is n1
    launched some srun -N1 -n2 -w n2 "$millrace" train d "$@" : -N1 -n1 -w n1 "$millrace" train d "$@"
    err_has "SLURMD_NODENAME: expected n1, host 0 of SLURM_STEP_NODELIST"
    job=$(sbatch --parsable -N3 -n7 -o batch.out "$examples/train.sbatch" d "$@") || fail "sbatch: $job"
    for i in $(seq 600); do
        [ -n "$(squeue -h -j "$job" 2>/dev/null)" ] || break
        sleep 0.2
    done
    last="sbatch train.sbatch"
    grep '^{' batch.out >out
    cp batch.out err
    equal "$(text weights)" "$weights"
    # a rank that dies ends all others, whatever srun does about it
    cat >die.sh <<'END'
[ "$SLURM_PROCID" != 2 ] || { (sleep 3; pkill -KILL -P $$) & }
"$@"
status=$?
echo "rank $SLURM_PROCID: status $status" >&2
exit $status
END
    launched some srun --no-kill -K0 -N3 -n4 sh die.sh "$millrace" train d "$@" --epochs 10000 --model cifar-cnn
    equal "$(grep -c 'rank [013]: status 1$' err)" 3
    err_has "rank 2 "
fi
[ -n "$ran" ] || skip "none of the launchers is here"
echo "the same weights under${ran#,}"
finish
