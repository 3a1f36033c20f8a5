# tests/cli/ranks/hosts.sh: several hosts on this machine. Sourced behind lib.sh.
#
#   hosts_up N RATE       network namespaces with the addresses 10.79.0.1, .2, ..., each on a port of a switch that lets RATE through
#   on_host I COMMAND...  on host I, under the host name hI; becomes the command, so that $! of it in the background is the command's
#   pull I, mend I        pull its cable, which closes no connection
#   hosts_down            ends what runs there, and removes all
#
# The switch is a bridge in a namespace of its own: nothing reaches the machine's own network, and no name can be taken there. Needs
# root, iproute2, and unshare.
hosts="mrt$$" host_count=0

address() { echo "10.79.0.$(($1 + 1))"; }

hosts_up() {
    ip netns add "$hosts-sw" || return
    ip -n "$hosts-sw" link add br0 type bridge && ip -n "$hosts-sw" link set br0 up || return
    for i in $(seq 0 $(($1 - 1))); do
        ip netns add "$hosts-$i" || return
        host_count=$((i + 1))
        ip -n "$hosts-$i" link set lo up || return
        ip -n "$hosts-sw" link add "port$i" type veth peer name eth0 netns "$hosts-$i" || return
        ip -n "$hosts-sw" link set "port$i" master br0 up || return
        ip -n "$hosts-$i" addr add "$(address "$i")/24" dev eth0 && ip -n "$hosts-$i" link set eth0 up || return
        rate "$i" "$2" || return
    done
}

rate() { # I RATE: of the cable to host I
    for end in "$hosts-sw port$1" "$hosts-$1 eth0"; do
        # shellcheck disable=SC2086 # two words
        set -- "$1" "$2" $end
        ip netns exec "$3" tc qdisc replace dev "$4" root tbf rate "$2" burst 64k latency 400ms || return
    done
}

on_host() {
    at=$1
    shift
    # shellcheck disable=SC2016
    exec ip netns exec "$hosts-$at" unshare --uts sh -c 'hostname "$0" && exec "$@"' "h$at" "$@"
}

pull() { ip -n "$hosts-sw" link set "port$1" down; }
mend() { ip -n "$hosts-sw" link set "port$1" up; }

hosts_down() {
    while [ $host_count -gt 0 ]; do
        host_count=$((host_count - 1))
        for pid in $(ip netns pids "$hosts-$host_count" 2>/dev/null); do kill -KILL "$pid" 2>/dev/null; done
        ip netns del "$hosts-$host_count"
    done
    ip netns del "$hosts-sw" 2>/dev/null
}
