# SIGINT and SIGTERM at any moment in any command: it ends soon, in order, and says so by its status. A closed pipe ends it, too.
# shellcheck disable=SC2086 # numbers and words of this file
. "$(dirname "$0")/../lib.sh"

run 0 synth d --count 40 --quiet
run 0 convert d d.mrec --quiet
run 0 train d --model cifar-cnn --batch 40 --epochs 1 --max-steps 1 --checkpoint c --quiet

# stopped SIGNAL SECONDS ARGUMENT...: ended by the signal, or was done before it came
stopped() {
    signal=$1 seconds=$2
    shift 2
    last="millrace $* with SIG$signal after $seconds s"
    "$millrace" "$@" >out 2>err &
    pid=$!
    listens $pid
    sleep "$seconds"
    kill "-$signal" $pid 2>/dev/null
    wait $pid
    status=$?
    case $signal in INT) want=130 ;; TERM) want=143 ;; esac
    [ $status -eq $want ] || { [ -z "$endless" ] && [ $status -eq 0 ]; } || fail "$last: expected exit status $want, found $status"
}
for how in "INT 0.02" "TERM 0.25"; do
    signal=${how% *} seconds=${how#* }
    endless=yes
    stopped $signal $seconds train d --model cifar-cnn --epochs 100000 --batch 40 --quiet
    stopped $signal $seconds train d.mrec --model cifar-cnn --epochs 100000 --batch 40 --quiet --prefetch off --devices cpu:3
    stopped $signal $seconds digest d --epochs 10000000 --devices cpu:2
    stopped $signal $seconds digest d.mrec --epochs 10000000 --prefetch off
    stopped $signal $seconds profile d --model cifar-cnn --batch 2 --steps 1000000 --quiet --seconds 60
    stopped $signal $seconds bench loader d --seconds 100
    stopped $signal $seconds bench trainer --model cifar-cnn --seconds 100
    stopped $signal $seconds bench limits d --seconds 100
    stopped $signal $seconds eval d --split train --checkpoint c --batch 1 --devices sim:1,step=50ms
    endless=
    stopped $signal $seconds verify d
    rm -rf x.mrec* e s
    stopped $signal $seconds convert d x.mrec --resize 24 --quiet
    [ $status -eq 0 ] || absent x.mrec
    stopped $signal $seconds export d e
    stopped $signal $seconds synth s --count 2000 --quiet
done

# the second one does not wait: for a step that outlasts this test. Two that come close together may be one to it, so there are more of them.
rm -f out
"$millrace" train d --model cifar-cnn --epochs 100000 --batch 40 --quiet --devices sim:1,step=3600s >out 2>err &
pid=$!
listens $pid
last="train with a second Ctrl-C"
shows $pid '^ *epoch' || fail "$last: it ended before a step had begun"
while runs $pid; do
    kill -INT $pid 2>/dev/null
    sleep 0.2
done
wait $pid
status=$?
equal $status 130

# a reader that goes away, whenever it does: it would write for hours
{ "$millrace" train d --model cifar-cnn --epochs 100000 --batch 40 --quiet 2>err; echo $? >status; } | head -1 >first
last="train | head -1"
[ -s first ] || fail "$last: no first line"
[ "$(cat status)" -ne 0 ] || fail "$last: exit status 0, though not all could be written"
finish
