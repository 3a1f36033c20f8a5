#!/bin/bash
# tests/cli/ranks/slurm.sh: a real Slurm on this machine, in one folder, without systemd: controller, nodes n0, n1, ... and munge.
#
#   slurm.sh start DIR CPUS...    a node for each number; then `. DIR/env; srun -N3 -n7 hostname`
#   slurm.sh stop DIR
#
# A node is this machine under another name and port, with a host name and a /dev/shm of its own. Cores are promised many times
# over. n0 is n0-ib, too, as in a second network. Needs root, unshare, and Debian's slurmctld slurmd slurm-client
# slurm-wlm-basic-plugins munge.
set -eu
verb=$1 dir=$2
shift 2
export SLURM_CONF="$dir/slurm.conf"

end_of() { # PIDFILE
    [ -s "$1" ] || return 0
    pid=$(cat "$1")
    kill -TERM "$pid" 2>/dev/null || return 0
    for _ in $(seq 100); do
        case $(sed 's/.*) //' "/proc/$pid/stat" 2>/dev/null) in Z* | "") return 0 ;; esac
        sleep 0.05
    done
    kill -KILL "$pid" 2>/dev/null || true
}

stop() {
    for step in $(pgrep -f '^slurmstepd: ' || true); do
        readlink "/proc/$step/fd/"* 2>/dev/null | grep -qF "$dir/" && kill -KILL "$step" 2>/dev/null
    done
    for file in "$dir"/slurmd.*.pid "$dir/slurmctld.pid" "$dir/munge/pid"; do end_of "$file"; done
}

write_settings() { # PORT CPUS...
    port=$1
    shift
    cat <<END
ClusterName=test
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmctldPort=$port
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge/socket,cred_expire=5
StateSaveLocation=$dir/state
SlurmctldPidFile=$dir/slurmctld.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdPidFile=$dir/slurmd.%n.pid
SlurmdSpoolDir=$dir/spool.%n
SlurmdLogFile=$dir/slurmd.%n.log
SlurmdParameters=config_overrides
TmpFS=$dir/tmp.%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
ReturnToService=2
KillWait=2
END
    node=0
    for cpus in "$@"; do
        port=$((port + 1))
        echo "NodeName=n$node NodeHostname=n$node NodeAddr=127.0.0.1 Port=$port CPUs=$cpus RealMemory=1024"
        node=$((node + 1))
    done
    echo "PartitionName=all Nodes=n[0-$((node - 1))] Default=YES MaxTime=INFINITE State=UP"
}

start() {
    mkdir -p "$dir/state" "$dir/munge"
    chmod 700 "$dir/munge"
    (umask 077 && head -c 128 /dev/urandom >"$dir/munge/key")
    write_settings $((21000 + $$ % 9000)) "$@" >"$SLURM_CONF"
    echo CgroupPlugin=cgroup/v1 >"$dir/cgroup.conf" # named, so that it is not looked for: nothing needs to be mounted
    echo "export SLURM_CONF=$SLURM_CONF" >"$dir/env"
    echo "127.0.0.1 localhost $(hostname)" >"$dir/hosts"
    munged --force --key-file="$dir/munge/key" --socket="$dir/munge/socket" --pid-file="$dir/munge/pid" \
        --log-file="$dir/munge/log" --seed-file="$dir/munge/seed" --num-threads=1
    slurmctld -i -f "$SLURM_CONF"
    node=0
    for _ in "$@"; do
        mkdir -p "$dir/tmp.n$node" "$dir/spool.n$node"
        echo "127.0.0.1 n$node n$node-ib" >>"$dir/hosts"
        node=$((node + 1))
    done
    for i in $(seq 0 $((node - 1))); do
        # shellcheck disable=SC2016
        unshare --uts --mount sh -c 'mount --bind "$0/hosts" /etc/hosts; mount -t tmpfs tmpfs /dev/shm; hostname "$1"
            exec slurmd -f "$0/slurm.conf" -N "$1"' "$dir" "n$i"
    done
    for _ in $(seq 200); do
        [ "$(sinfo -h -t idle -o %D 2>/dev/null)" != "$node" ] || return 0
        sleep 0.1
    done
    tail -n 3 "$dir"/*.log
    return 1
}

case $verb in
start) start "$@" || { stop; exit 1; } ;;
stop) stop ;;
esac
