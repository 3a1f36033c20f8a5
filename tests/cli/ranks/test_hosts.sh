# One run on several hosts, which are network namespaces with slow cables between them: the same weights; a pulled cable, a stopped or
# killed rank, a wrong address, another job at the same port, other data, a full disk end all of them, and they say whose fault it was.
# shellcheck disable=SC2086 # words of this file
. "$(dirname "$0")/../lib.sh"
. "$here/ranks/hosts.sh"

[ "$(id -u)" -eq 0 ] || skip "not root: no hosts can be made"
for tool in ip tc unshare; do
    command -v $tool >/dev/null || skip "$tool is not installed"
done
trap 'hosts_down 2>/dev/null; rm -rf "$temp"' EXIT
hosts_up 4 200mbit 2>err || skip "no hosts can be made here: $(tail -1 err)"

# ---- a run with a rank on each host ----

jobs_made=0
master_of() { address 0; } # RANK: where it looks for rank 0
of_rank() { :; }           # RANK: further arguments of it
under() { :; }             # RANK: a command before it

# start N ARGUMENT...: rank R on host R; its output goes to out.R and err.R, the process numbers to $pids.
start() {
    size=$1
    shift
    last="$size hosts: millrace $*"
    jobs_made=$((jobs_made + 1))
    port=$((18000 + ($$ + jobs_made) % 1000))
    pids=
    : >out.0.began
    for rank in $(seq 0 $((size - 1))); do
        # shellcheck disable=SC2046
        on_host $rank env RANK=$rank WORLD_SIZE=$size MASTER_ADDR="$(master_of $rank)" MASTER_PORT=${fixed_port:-$port} \
            MILLRACE_JOB="$jobs_made" $(under $rank) "$millrace" "$@" $(of_rank $rank) >out.$rank 2>err.$rank &
        pids="$pids $!"
    done
}

pid_of() { echo "$pids" | awk -v at=$(($1 + 1)) '{print $at}'; }
is_over() { ! kill -0 "$1" 2>/dev/null || grep -q '^State:.*Z' "/proc/$1/status" 2>/dev/null; }

# over_in SECONDS PID...: expect these processes to end within SECONDS. Kills and reports the others.
over_in() {
    due=$(($(date +%s) + $1))
    shift
    for pid in "$@"; do
        until is_over "$pid"; do
            if [ "$(date +%s)" -ge $due ]; then
                fail "$last: process $pid still runs: $(cat err.*)"
                kill -KILL "$pid"
                break
            fi
            sleep 0.05
        done
    done
}

# ended SECONDS STATUS...: all end within that time, each rank with its status.
ended() {
    seconds=$1
    shift
    over_in $seconds $pids
    rank=0
    for pid in $pids; do
        wait $pid
        got=$?
        : >out
        cp err.$rank err
        [ $got -eq $1 ] || fail "$last: expected exit status $1 of rank $rank, found $got"
        rank=$((rank + 1))
        shift
    done
    cp out.0 out
    cat err.? >err
}

# names RANK WORDS: the rank's error is one line with these words.
names() {
    cp err.$1 err
    grep -v 'checkpoint .* written\|no checkpoint yet\|cannot share memory' err >line
    [ "$(wc -l <line)" -eq 1 ] || fail "$last: expected one line of rank $1, found: $(cat line)"
    grep -q -- "$2" line || fail "$last: expected of rank $1: $2"
}

# A checkpoint newer than the start is there: the first step is over.
steps_are_made() {
    for _ in $(seq 600); do
        [ -z "$(find run -name 'step-*.mrck' -newer out.0.began 2>/dev/null)" ] || return
        sleep 0.1
    done
    fail "$last: no checkpoint in a minute"
}

run 0 synth d --count 8 --test-count 4 --channels 1 --size 28 --quiet
run 0 synth e --count 9 --test-count 4 --channels 1 --size 28 --quiet
few="--model mnist-mlp --batch 24 --epochs 2 --seed 1 --parts 4 --quiet --json --devices cpu:1"
many="--model mnist-mlp --batch 24 --epochs 100000 --seed 1 --parts 4 --quiet --devices cpu:1 --checkpoint run --checkpoint-steps 2"
run 0 train d $few
weights=$(text weights)

# ---- well ----

for n in 3 4; do
    start $n train d $few
    ended 120 0 0 0 0
    equal "$(text weights)" "$weights"
    equal "$(sed -n 's/.*"ranks": \([0-9]*\).*/\1/p' out)" $n
    [ $n = 4 ] || equal "$(grep -c "no secret: whoever reaches a port" err)" 1
    MILLRACE_SECRET="what all ranks of these hosts know" # from here on
    export MILLRACE_SECRET
done
! grep -q "no secret" err || fail "$last: a run with a secret says that it is open"

# two jobs at one place and port; and a port that somebody else has
fixed_port=17999
start 4 train d $few
first=$pids
for r in 0 1 2 3; do mv out.$r first.$r; done
start 4 train d $few
over_in 120 $first
for pid in $first; do
    wait $pid || fail "$last: the first of two jobs at one port: status $?"
done
equal "$(tail -1 first.0 | sed -n 's/.*"weights": "\([^"]*\)".*/\1/p')" "$weights"
ended 120 0 0 0 0
equal "$(text weights)" "$weights"
if command -v python3 >/dev/null; then
    on_host 0 python3 -c 'import socket, time
s = socket.create_server(("", 17999))
print("here", flush=True)
time.sleep(600)' >there &
    somebody=$!
    until grep -q here there; do sleep 0.05; done
    start 3 train d $few
    ended 120 0 0 0
    equal "$(text weights)" "$weights"
    kill -KILL $somebody
    wait $somebody
fi
fixed_port=

# ---- one is lost ----

# kill -9 on another host
start 4 train d $many
steps_are_made
kill -KILL "$(pid_of 3)"
ended 20 1 1 1 137
for r in 0 1 2; do names $r "rank 3 (host h3)"; done

# a pulled cable: the machine it connected is alone
start 4 train d $many --resume
steps_are_made
pull 2
ended 30 1 1 1 1
for r in 0 1 3; do names $r "rank 2 (host h2) was not heard of"; done
names 2 "rank [013] (host h[013]) was not heard of"
mend 2

# rank 0's
start 3 train d $many --resume
steps_are_made
pull 0
ended 30 1 1 1
for r in 1 2; do names $r "rank 0 (host h0) was not heard of"; done
names 0 "rank [12] (host h[12]) was not heard of"
mend 0

# a cable that leads one way, between two of them: all come to one verdict
start 4 train d $many --resume
steps_are_made
ip -n "$hosts-3" neigh replace "$(address 1)" lladdr 02:00:00:00:00:01 dev eth0 nud permanent
ended 30 1 1 1 1
for r in 0 2; do names $r "rank [13] (host h[13]) was not heard of"; done
names 1 "rank [13][, ]"
names 3 "rank [13][, ]"
ip -n "$hosts-3" neigh del "$(address 1)" dev eth0

# stopped, and going on when all others have given up
start 4 train d $many --resume
steps_are_made
stopped=$(pid_of 1)
kill -STOP $stopped
over_in 30 "$(pid_of 0)" "$(pid_of 2)" "$(pid_of 3)"
kill -CONT $stopped
ended 20 1 1 1 1
for r in 0 2 3; do names $r "rank 1 (host h1) was not heard of"; done
names 1 "this rank, 1,"

# a pause, and a cable that was out for a while, are nobody's end
rm -rf run
start 4 train d $few --checkpoint run --epochs 20 --val none
steps_are_made
kill -STOP "$(pid_of 2)"
pull 3
sleep 4
kill -CONT "$(pid_of 2)"
mend 3
ended 120 0 0 0 0
rm -rf run

# a cable so slow that a step takes longer than the silence that ends a run: beats get through
for i in 0 1 2 3; do rate $i 4mbit; done
start 4 train d $few --max-steps 1 --val none
ended 120 0 0 0 0
for i in 0 1 2 3; do rate $i 200mbit; done

# ---- what does not fit ----

data_of() { [ "$1" -eq 2 ] && echo e || echo d; }
of_rank() { data_of "$1"; }
start 4 train $few
ended 30 2 2 2 2
for r in 0 1 2 3; do names $r "rank 2"; done
of_rank() { [ "$1" -ne 3 ] || echo --seed 9; }
start 4 train d $few
ended 30 2 2 2 2
for r in 0 1 2 3; do names $r "rank 3 .*seed 9"; done
of_rank() { :; }

# no room for rank 0's checkpoints
cat >full.sh <<'END'
[ "$RANK" != 0 ] || { mkdir -p run && mount -t tmpfs -o size=1m tmpfs run; } || exit 99
exec "$@"
END
under() { echo unshare --mount sh full.sh; }
start 3 train d $few --checkpoint run
ended 30 1 1 1
names 0 "No space left"
for r in 1 2; do names $r "rank 0 (host h0).*No space left"; done
under() { :; }

# ---- nobody at the address: a minute each, so all at once ----

begun=$(date +%s)
for lie in neighbour nobody all; do
    mkdir $lie && cd $lie || exit 1
    cp -r ../d .
    case $lie in
    neighbour) master_of() { [ "$1" -eq 1 ] && address 3 || address 0; } ;; # rank 1 looks where rank 3 is
    nobody) master_of() { [ "$1" -eq 1 ] && address 90 || address 0; } ;;
    all) master_of() { address 1; } ;; # rank 0 is not there
    esac
    start 3 train d $few
    echo "$pids" >pids
    cd ..
done
for lie in neighbour nobody all; do
    cd $lie || exit 1
    pids=$(cat pids) last="MASTER_ADDR: $lie"
    ended $((begun + 90 - $(date +%s))) 1 1 1
    names 0 "rank 1"
    names 1 "rank 0 did not answer at $(case $lie in neighbour) address 3 ;; nobody) address 90 ;; all) address 1 ;; esac)"
    [ $lie = all ] || names 2 "rank 1"
    [ $lie != all ] || names 2 "rank 0 did not answer"
    cd ..
done
finish
