#!/bin/sh
# bench/device_ranks.sh: several processes of one run on this machine, without a launcher; the output of rank 0 is printed.
#
#   bench/device_ranks.sh [--lose RANK] N MILLRACE ARGUMENT...
#
# Each process gets an NCCL_HOSTID of its own. NCCL then takes the processes for processes of N hosts: they may share a GPU, and NCCL
# connects them by sockets. This shows that the exchange works, not the speed of a link between GPUs.
#
#   --lose RANK     end this one by SIGKILL once rank 0 has reported an epoch: the others must end with status 1 and name it
#
# Exit status: 0 when all ended as they should; 1 otherwise, and the last lines of each are on standard error.
set -u
usage() { sed -n '3,/^set -u/s/^# \{0,1\}//p' "$0" | sed '$d' >&2; exit 2; }
lose=""
[ "${1-}" != --lose ] || { lose=${2:?}; shift 2; }
[ $# -ge 3 ] || usage
count=$1
shift
work=$(mktemp -d "${TMPDIR:-/tmp}/millrace-ranks-XXXXXX") || exit 2
pids=""
ended() {
    # shellcheck disable=SC2086
    [ -z "$pids" ] || kill -9 $pids 2>/dev/null
    rm -rf "$work"
}
trap ended EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
pid_of() { echo "$pids" | cut -d' ' -f$(($1 + 2)); } # $pids begins with a blank
runs() { grep -q '^State:.[^Z]' "/proc/$1/status" 2>/dev/null; }

MILLRACE_MEET=127.0.0.1 MILLRACE_JOB=$work WORLD_SIZE=$count
export MILLRACE_MEET MILLRACE_JOB WORLD_SIZE
rank=0
while [ $rank -lt "$count" ]; do
    RANK=$rank NCCL_HOSTID=millrace-$rank "$@" >"$work/out.$rank" 2>"$work/err.$rank" &
    pids="$pids $!"
    rank=$((rank + 1))
done
if [ -n "$lose" ]; then
    while runs "$(pid_of 0)" && ! grep -q '"event": "epoch"' "$work/out.0"; do sleep 0.05; done
    kill -9 "$(pid_of "$lose")"
fi
wrong=""
rank=0
while [ $rank -lt "$count" ]; do
    wait "$(pid_of $rank)"
    got=$?
    want=0
    if [ -n "$lose" ]; then
        want=1
        [ "$rank" != "$lose" ] || want=137
        [ "$rank" = "$lose" ] || grep -q "rank $lose (host" "$work/err.$rank" || wrong="$wrong; rank $rank does not name rank $lose"
    fi
    [ $got -eq $want ] || wrong="$wrong; rank $rank ended with status $got, expected $want"
    rank=$((rank + 1))
done
pids=""
cat "$work/out.0"
[ -n "$wrong" ] || exit 0
echo "device_ranks: ${wrong#; }" >&2
tail -n 3 "$work"/err.* >&2
exit 1
