# watch: foreign programs: exit statuses, streams, signals, reads, children in every form, opens, GPUs of an invalid library.
# shellcheck disable=SC2016 # the shells that are watched expand these
. "$(dirname "$0")/../lib.sh"
fake_nvml=$(dirname "$3")

# value KEY: from the file of --json
value() { sed -n "s/.*\"$1\": \"\\{0,1\\}\\([-0-9.e+a-z]*\\).*/\\1/p" r.json; }
at_least() { [ -n "$1" ] && awk "BEGIN {exit !($1 >= $2)}" || fail "$last: expected at least $2, found '$1'"; }
watched() {
    want=$1
    shift
    last="millrace watch $*"
    "$millrace" watch --json r.json "$@" >out 2>err
    got=$?
    [ $got -eq "$want" ] || fail "$last: expected exit status $want, found $got"
    "$json_lines" <r.json >json_err || fail "$last: $(cat json_err)"
}

# as a shell would run it: streams, words, statuses
echo hello >in
"$millrace" watch -- cat <in >out 2>err || fail "watch -- cat"
same in out
err_has "verdict   it ran too short a time"
watched 0 -- sh -c 'printf "%s|" "$@"' sh --json "a b" -- ''
equal "$(cat out)" "--json|a b|--||"
watched 7 sh -c 'exit 7'
equal "$(value status)" 7
run 127 watch -- ./no-such-program; err_has "./no-such-program: there is no such program"
echo >plain; run 126 watch -- ./plain; err_has "cannot be executed"
watched 137 -- sh -c 'kill -9 $$'
equal "$(value status)" 137
run 2 watch; err_has "watch needs COMMAND"
run 2 watch --; err_has "watch needs COMMAND"
run 2 watch --no-such -- true; err_has "no-such"
run 2 watch --json - -- true; err_has "standard output is the program's"
run 1 watch --data no-such -- sh -c 'echo ran'; err_has "no-such"; out_lacks ran # before anything runs
watched 0 -- sh -c 'ulimit -n; trap'
equal "$(head -1 out)" "$(ulimit -n)"

# signals: passed on, and time that is over
"$millrace" watch -- sh -c 'trap "exit 9" TERM; echo >ready; while :; do sleep 0.05; done' >out 2>err &
pid=$!
while [ ! -e ready ]; do sleep 0.05; done
kill -TERM $pid
wait $pid
got=$?
last="watch, SIGTERM"
equal $got 9
watched 0 --seconds 0.3 -- sh -c 'sleep 100; true'
equal "$(value ended_by_time)" true
err_has "ended because its time was over"

# what short ones read, and those whose parents have gone, and the one that stays
head -c 4000000 /dev/zero >big
watched 0 -- sh -c 'i=0; while [ $i -lt 20 ]; do (cat big | cat >/dev/null); i=$((i + 1)); done'
at_least "$(value bytes_read)" 80000000
at_least "$(awk "BEGIN {print $(value user_seconds) + $(value system_seconds)}")" 0.001
watched 0 -- sh -c '(sh -c "cat big >/dev/null; echo >read" &); while [ ! -e read ]; do sleep 0.05; done; sleep 0.1'
at_least "$(value bytes_read)" 4000000
watched 0 -- sh -c 'setsid sleep 60 >/dev/null 2>&1 & echo $! >stays'
at_least "$(value processes_left)" 1
err_has "still run"
kill "$(cat stays)" 2>/dev/null

# samples: given, counted by opens, estimated by bytes; our loader in comparison
run 0 synth d --count 24 --quiet
files=$(find d/train -type f | wc -l)
watched 0 --data d/train --augment "resize(32x32)" --batch 8 --measure 0.2 -- sh -c 'for f in $(find d/train -type f); do cat $f; done | cat >/dev/null'
equal "$(value samples_from)" opens
equal "$(value samples)" "$files"
at_least "$(value loader_samples_per_s)" 1
err_has "files opened in"
err_has "samples/s of the same files on the same cores"
watched 0 --samples 100 -- sleep 0.3
equal "$(value samples_from) $(value samples)" "given 100"
err_has "100 samples as given"
run 0 convert d/train d.mrec --quiet
watched 0 --data d.mrec --augment "resize(32x32)" --batch 8 --measure 0.2 -- sh -c 'cat d.mrec >/dev/null'
equal "$(value samples_from)" bytes
err_has "an estimate"

# GPUs: none, busy, idle, a library that does not work
export LD_LIBRARY_PATH="$fake_nvml${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
# a look costs more time on a full machine: the program ends when there were enough of them
looked_at() { rm -f "$FAKE_NVML_SEEN"; watched 0 --interval 20ms -- sh -c 'while [ ! -e "$FAKE_NVML_SEEN" ]; do sleep 0.05; done'; }
export FAKE_NVML_BUSY=25 FAKE_NVML_COUNT=2 FAKE_NVML_SEEN="$PWD/seen"
looked_at
err_has "GPU 0     Fake 0: idle 75 %"
err_has "GPU 1     Fake 1: not used by it"
err_has "GPU idle 75 % of the time"
export FAKE_NVML_BUSY=95
looked_at
err_has "verdict   not input-bound: the GPU was busy 95 %"
export FAKE_NVML_INIT=9
watched 0 -- true
err_has "no GPU seen (NVML cannot be started (its error 9))"
finish
