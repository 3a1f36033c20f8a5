# Data that change while they are read: an error that names the file, or the end of a run that had it already; never a crash or a
# wait. Slowed by a simulated device, so that the change comes in the middle.
. "$(dirname "$0")/../lib.sh"

run 0 synth d --count 40 --quiet
run 0 convert d d.mrec --quiet

# changed DATA NAME COMMAND...: run on a copy of DATA, the command changes it once training has begun
changed() {
    rm -rf copy copy.mrec
    cp -r "$1" "$2"
    data=$2
    shift 2
    last="train while: $*"
    # shellcheck disable=SC2086 # options
    "$millrace" train $data --model cifar-cnn --batch 20 --epochs 1000 --val none --devices sim:1,step=5ms --quiet --resident $resident $io >out 2>err &
    pid=$!
    for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        sleep 0.05
        grep -q '^ *epoch' out && break
    done
    sh -c "$*"
    for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        kill -0 $pid 2>/dev/null || break
        [ $i -eq 20 ] || sleep "$patience"
    done
    kill -TERM $pid 2>/dev/null
    (sleep 5; kill -9 $pid) >guarded 2>&1 & # what still waits then would wait for ever
    guard=$!
    wait $pid
    status=$?
    kill $guard 2>guarded
}
ends() { # TEXT: with an error that names it
    equal $status 1
    err_has "$1"
}
patience=0.1
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
# what was read before the first step is not looked at again
patience=0.01
resident=1G
changed d.mrec copy.mrec ": >copy.mrec"; equal $status 143
# an open file stays readable when its name is gone, or goes to another
changed d.mrec copy.mrec "rm copy.mrec"; equal $status 143
changed d.mrec copy.mrec "head -c 100 d.mrec >new; mv new copy.mrec"; equal $status 143
finish
