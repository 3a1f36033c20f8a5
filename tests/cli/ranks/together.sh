# tests/cli/ranks/together.sh: several processes of one run, started here as a launcher would. Sourced behind lib.sh.
jobs_made=0

# start N ARGUMENT...: N processes; their output goes to out.R and err.R, their numbers to $pids. `of_rank R` may print
# further arguments of one of them.
of_rank() { :; }
start() {
    size=$1
    shift
    last="$size ranks: millrace $*"
    jobs_made=$((jobs_made + 1))
    pids=
    rank=0
    while [ $rank -lt "$size" ]; do
        # shellcheck disable=SC2046
        RANK=$rank WORLD_SIZE=$size MILLRACE_MEET=127.0.0.1 MILLRACE_JOB="$temp.$jobs_made" \
            "$millrace" "$@" $(of_rank $rank) >out.$rank 2>err.$rank &
        pids="$pids $!"
        rank=$((rank + 1))
    done
}

# ended STATUS...: all of them end so, or each with one of these.
ended() {
    rank=0
    for pid in $pids; do
        wait "$pid"
        got=$?
        case " $1 " in
        *" $got "*) ;;
        *)
            cat err.$rank >err
            : >out
            fail "$last: expected exit status $1 of rank $rank, found $got"
            ;;
        esac
        rank=$((rank + 1))
    done
    [ ! -s out.1 ] || { cp out.1 out; fail "$last: rank 1 has printed something"; }
    cp out.0 out
    cat err.* >err
    rm -f out.* err.*
}

together() { # "STATUS..." N ARGUMENT...
    want=$1
    shift
    start "$@"
    ended "$want"
}

# "ucx" if the wire can be used here. A sanitizer does not know UCX's memory.
ucx_if_there() {
    if grep -q -e __asan_init -e __tsan_init "$millrace"; then return; fi
    for folder in /lib /usr/lib /usr/local/lib; do
        [ -z "$(find $folder -name libucp.so.0 2>/dev/null)" ] || { echo ucx; return; }
    done
}
