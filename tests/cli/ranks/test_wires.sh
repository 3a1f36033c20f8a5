# Wires between processes: the same weights over each of them; what cannot be had is refused, and nobody hangs on one that is lost.
. "$(dirname "$0")/../lib.sh"
. "$here/ranks/together.sh"

run 0 synth d --count 12 --size 16 --quiet
set -- --model cifar-cnn --augment "resize(16x16)" --batch 40 --epochs 2 --seed 1 --parts 8 --json --quiet
run 0 train d "$@"
weights=$(text weights)
absent_wire=$(grep -c '"wire"' out)
equal "$absent_wire" 0

# of_rank makes the ranks of two hosts of two or three: even and odd numbers
two_hosts() {
    cat >wrapped <<END
#!/bin/sh
MILLRACE_HOST_ID=host\$((RANK % 2)) exec "$1" "\$@"
END
    chmod +x wrapped
}
plain=$millrace
two_hosts "$plain"
ucx=$(ucx_if_there)
for n in 2 3 4; do
    for wire in tcp shm auto $ucx; do
        together 0 $n train d "$@" --devices cpu:1 --wire "$wire"
        equal "$(text weights)" "$weights"
        case $wire in tcp | ucx) want=$wire ;; *) want=shm ;; esac
        equal "$(sed -n 's/.*"wire": "\([^"]*\)".*/\1/p' out)" "$want"
    done
    millrace=$PWD/wrapped
    together 0 $n train d "$@" --devices cpu:1
    millrace=$plain
    equal "$(text weights)" "$weights"
    [ $n -eq 2 ] && want=tcp || want="shm and tcp"
    equal "$(sed -n 's/.*"wire": "\([^"]*\)".*/\1/p' out)" "$want"
    [ ! -s err ] || fail "$last: $(cat err)" # hosts that differ are nothing to speak of
done

# two hosts of two neighbours each, which add first
sed 's/% 2/\/ 2/' wrapped >paired
chmod +x paired
millrace=$PWD/paired
together 0 4 train d "$@" --devices cpu:1 --bucket 64K --trace hosts.json
millrace=$plain
equal "$(text weights)" "$weights"
for span in '"exchange"' '"sum"'; do
    grep -q "\"name\":$span" hosts.json || fail "the trace has no span $span"
done

# small buckets, and sums in steps of other sizes than a ring
together 0 2 train d "$@" --devices cpu:1 --wire shm --bucket 64K
equal "$(text weights)" "$weights"

# in the table's head
together 0 2 train d --model cifar-cnn --augment "resize(16x16)" --max-steps 1 --seed 1 --parts 2 --keep 2
equal "$(grep -c "no effect without --checkpoint" err)" 1 # not of each process
grep -q "^ranks    2, started by .*, wire shm$" out || fail "$last: no wire in the head: $(cat out)"

# what cannot be
millrace=$PWD/wrapped
set -- --model cifar-cnn --augment "resize(16x16)" --batch 40 --epochs 2 --seed 1 --parts 8 --quiet
together 1 2 train d "$@" --wire shm
err_has "millrace, rank 0: rank 0 (host "; err_has "cannot share memory: they run on different hosts; wire auto uses tcp there"
millrace=$plain
of_rank() { [ "$1" -eq 1 ] && echo --wire tcp; }
together 1 2 train d "$@"
err_has "has wire tcp, rank 0 (host "; err_has "has wire auto: give all ranks the same"
of_rank() { :; }
# each process alone in its MPI, or no MPI, or no UCX
MILLRACE_MPI=$temp/none.so
export MILLRACE_MPI
together 1 2 train d "$@" --wire mpi
err_has "millrace, rank 0: rank 0 (host "; err_has "cannot use wire mpi: no MPI library can be opened: install Open MPI or MPICH"
unset MILLRACE_MPI
run 2 train d "$@" --wire mpi --elastic 1:2; err_has "MPI ends all processes of a run when one is lost"
run 2 train d "$@" --wire ucx --sync ps; err_has "servers and workers are connected by tcp"
run 2 train d --wire pigeon; err_has "expected one of auto, tcp, shm, nccl, mpi, ucx; found 'pigeon'"

# the trace has the spans of the exchange over shared memory, too
together 0 3 train d "$@" --wire shm --trace all.json
for span in '"exchange"' '"sum"' '"wait for rank'; do
    grep -q "\"name\":$span" all.json || fail "the trace has no span $span"
done

# one is killed; Ctrl-C to one ends all
steps_are_made() {
    for _ in $(seq 600); do
        [ "$(find run2 -name 'step-*.mrck' 2>/dev/null | wc -l)" -gt 0 ] && return
        sleep 0.1
    done
    fail "$last: no checkpoint in a minute"
}
for wire in shm auto $ucx; do
    rm -rf run2
    start 3 train d --model cifar-cnn --augment "resize(16x16)" --batch 40 --epochs 10000 --seed 1 --quiet --wire "$wire" --checkpoint run2 --checkpoint-steps 3
    steps_are_made
    victim=$(echo "$pids" | awk '{print $2}')
    kill -9 "$victim"
    rank=0
    for pid in $pids; do
        wait "$pid"
        got=$?
        [ "$pid" = "$victim" ] || equal "$got" 1
        [ "$pid" = "$victim" ] || grep -q "rank 1 " err.$rank || { cp err.$rank err; fail "$last: rank $rank does not name rank 1"; }
        rank=$((rank + 1))
    done
done
rm -rf run2
start 3 train d --model cifar-cnn --augment "resize(16x16)" --batch 40 --epochs 10000 --seed 1 --quiet --wire shm --checkpoint run2 --checkpoint-steps 3
steps_are_made
kill -INT "$(echo "$pids" | awk '{print $3}')"
ended 130

# bench exchange: own sizes, wires in turns
together 0 2 bench exchange --sizes 64K,1000001 --wires tcp,shm --rounds 2 --json
equal "$(wc -l <out)" 4
for line in '"wire": "tcp", "bytes": 65536' '"wire": "shm", "bytes": 65536' '"wire": "tcp", "bytes": 1000001' '"wire": "shm", "bytes": 1000001'; do
    grep -q "$line" out || fail "$last: no line with $line: $(cat out)"
done
run 0 bench exchange --sizes 64K --rounds 1 --json
equal "$(number ranks)" 1
run 2 bench exchange --sizes 64K,x; err_has "sizes"
run 2 bench exchange --sizes 1; err_has "sizes"
run 2 bench exchange --wires tcp,pigeon; err_has "expected one of auto, tcp, shm, nccl, mpi, ucx; found 'pigeon'"
run 2 bench exchange --sizes 1K,1K,1K,1K,1K,1K,1K,1K,1K,1K,1K,1K,1K,1K,1K,1K,1K; err_has "more than 16"
finish
