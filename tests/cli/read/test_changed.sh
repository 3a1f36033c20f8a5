# Data that change while they are read: an error that names the file, or the end of a run that had it already; never a crash or a
# wait. Slowed by a simulated device, so that the change comes in the middle: the whole run would take minutes.
. "$(dirname "$0")/../lib.sh"

run 0 synth d --count 40 --quiet
run 0 convert d d.mrec --quiet

# changed DATA NAME COMMAND...: run on a copy of DATA, the command changes it once training has begun; `known` says what shows that.
# What waits for ever is killed in the end.
changed() {
    rm -rf copy copy.mrec out # drop the output of the run before
    cp -r "$1" "$2"
    data=$2
    shift 2
    last="train while: $*"
    # shellcheck disable=SC2086 # options
    timeout -s KILL 120 "$millrace" train $data --model cifar-cnn --batch 20 --epochs 1000 --val none --devices sim:1,step=5ms --quiet --resident $resident $io >out 2>err &
    pid=$!
    shows $pid "$known" || fail "$last: training did not begin"
    sh -c "$*"
}
ends() { # TEXT: with an error that names it
    wait $pid
    status=$?
    equal $status 1
    err_has "$1"
}
goes_on() { # two more epochs
    epochs=$(grep -c '^ *[0-9][0-9]* ' out)
    shows $pid "^ *$((epochs + 2)) " || fail "$last: it did not go on"
    kill -TERM $pid
    wait $pid
    status=$?
    equal $status 143
}
known='^ *epoch'
resident=0
for io in "--io pread" "" "--direct"; do
    changed d copy "rm copy/train/disc/00007.jpg"; ends "00007.jpg"
    changed d.mrec copy.mrec "head -c 20000 d.mrec >copy.mrec"; ends "copy.mrec"
done
io=
changed d copy "rm -r copy/train/ring"; ends "copy/train/ring/"
changed d copy "head -c 100 d/train/disc/00007.jpg >copy/train/disc/00007.jpg"; ends "00007.jpg"
changed d copy ": >copy/train/disc/00007.jpg"; ends "00007.jpg"
changed d copy "rm copy/train/disc/00007.jpg; mkdir copy/train/disc/00007.jpg"; ends "00007.jpg"
changed d.mrec copy.mrec ": >copy.mrec"; ends "copy.mrec"
changed d.mrec copy.mrec "head -c 200000 /dev/zero | dd of=copy.mrec bs=1000 seek=100 conv=notrunc 2>err.dd"; ends "copy.mrec"
for io in "" "--io pread"; do
    changed d copy "rm copy/train/disc/00007.jpg; mkfifo copy/train/disc/00007.jpg"; ends "00007.jpg"
done
# samples read in the first epoch are not checked again
known='^ *1 '
resident=1G
changed d.mrec copy.mrec ": >copy.mrec"; goes_on
# an open file stays readable when its name is gone, or goes to another
changed d.mrec copy.mrec "rm copy.mrec"; goes_on
changed d.mrec copy.mrec "head -c 100 d.mrec >new; mv new copy.mrec"; goes_on
finish
