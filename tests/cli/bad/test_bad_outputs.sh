# Outputs that cannot or must not be written: no existing file is touched, and the error comes before the work.
. "$(dirname "$0")/../lib.sh"

run 0 synth d --classes 3 --count 6 --quiet
run 0 convert d d.mrec --quiet
cp d.mrec want
ln -s d.mrec soft; ln d.mrec hard
for out in d.mrec soft hard ./d.mrec; do run 1 convert d.mrec $out --force; err_has "$out: "; done
same d.mrec want
cp d.mrec z.mrec.part; run 1 convert z.mrec.part z.mrec --force; same z.mrec.part want
for out in d d/x.mrec d/train/disc/x.mrec; do run 1 convert d $out --force; err_has "input"; done
for out in d d/ d/x d/train/disc; do run 1 export d $out; err_has "inside the input"; done
equal "$(find d -name '*.jpg' | wc -l | tr -d ' ')" 24
run 1 convert d nowhere/x.mrec; err_has "nowhere/x.mrec"
mkdir folder pretend; mkfifo pipe; ln -s nothing link; echo mine >mine
run 1 convert d folder; run 1 convert d folder --force; err_has "folder: "
run 1 convert d mine; err_has "mine: "; equal "$(cat mine)" mine
for out in pipe link; do run 1 convert d $out --force; err_has "link, device, pipe or socket"; done
[ -p pipe ] || fail "the pipe was replaced"
[ -L link ] || fail "the link was replaced"
[ -c /dev/zero ] && [ "$(id -u)" -ne 0 ] && { run 1 convert d /dev/zero --force; err_has "device"; }

# files of train, digest and profile: asked for before the work
for how in "train d --model cifar-cnn --trace" "profile d --model cifar-cnn --trace" "profile d --model cifar-cnn --html" \
    "digest d --bad-list"; do
    for file in nowhere/x folder link pipe; do
        # shellcheck disable=SC2086
        run 1 $how $file; err_has "$file: "
        [ ! -s out ] || fail "$last: expected nothing on stdout"
    done
done
run 1 train d --model cifar-cnn --checkpoint mine; err_has "mine: expected a folder for checkpoints, found a file"
run 1 train d --model cifar-cnn --checkpoint mine/below; err_has "mine/below: cannot make the folder"
equal "$(cat mine)" mine

# every command fails when it cannot write its output
if [ -c /dev/full ]; then
    run 0 train d --model cifar-cnn --batch 9 --epochs 1 --max-steps 1 --checkpoint c --quiet
    for command in "inspect d" "verify d" "digest d" "train d --model cifar-cnn --epochs 1 --quiet" "eval d --checkpoint c" "devices" \
        "convert d f.mrec --quiet" "export d f" "help" "man" "--version" "digest d --json" "bench loader d --seconds 0.05 --quiet"; do
        # shellcheck disable=SC2086
        "$millrace" $command >/dev/full 2>err
        status=$? last="$command on a full device"
        equal $status 1; err_has "cannot write the results"
    done
fi

# a full disk
mkdir small
if [ "$(id -u)" -eq 0 ] && mount -t tmpfs -o size=64k tmpfs small 2>err; then
    trap 'umount "$temp/small" 2>err; rm -rf "$temp"' EXIT
    run 0 synth big --count 30 --quiet
    # Reported before the first byte, with both sizes; with --no-space-check the command fails at the full disk.
    refuses_early() {
        run 1 "$@" --quiet
        err_has "are to be written, and 64.0 KiB are free"; err_has "(--no-space-check)"; err_has "No space left"
        equal "$(find small -mindepth 1 | head -1)" ""
    }
    in_spite() {
        run 1 "$@" --no-space-check --quiet
        err_has "No space left"; absent small/x.mrec
        equal "$(find small -name '*.jpg.part' | wc -l | tr -d ' ')" 0
        rm -rf small/*
    }
    run 0 convert big set.mrec --shard-size 100K --quiet
    for options in "" "--shard-size 12K" "--to tar" "--to tfrecord" "--store coef" "--store raw" "--resize 24"; do
        to=small/x.mrec
        case $options in --to*) to=small/x ;; esac
        # shellcheck disable=SC2086
        refuses_early convert big $to $options
        # shellcheck disable=SC2086
        in_spite convert big $to $options
    done
    refuses_early export big small/e
    in_spite export big small/e
    mkdir broken && cp set* broken && rm broken/set-00001.mrec
    refuses_early repair broken/set.mrec small/r
    in_spite repair broken/set.mrec small/r
    # an estimate above the free space is no reason to refuse: the least possible size is
    cp set-00000.mrec lost.mrec && head -c 88000 /dev/zero | dd of=lost.mrec bs=1000 seek=9 conv=notrunc status=none
    run 3 repair lost.mrec small/r.mrec --quiet; err_has "which may be too little"; out_has " lost"
    rm -rf small/*
    mkdir flat && { printf '\0\0\010\003\0\0\0\012\0\0\0\144\0\0\0\144'; head -c 100000 /dev/zero; } >flat/train-images-idx3-ubyte
    { printf '\0\0\010\001\0\0\0\012'; head -c 10 /dev/zero; } >flat/train-labels-idx1-ubyte
    run 0 export flat small/e --quiet # 100 kB of pixels, as PNG 1 kB
    rm -rf small/*
    mkdir few && cp -r big/train/* few && find few -name '0000[1-9].jpg' -delete && find few -name '000[1-9]?.jpg' -delete
    run 0 convert few small/f.mrec --shard-size 100K --quiet
    cp small/* .
    for command in "append small/f.mrec big" "convert big/train small/f.mrec --update"; do
        # shellcheck disable=SC2086
        run 1 $command --quiet
        err_has "are to be written, and"; err_has "(--no-space-check)"
        for f in f*.mrec; do same "$f" "small/$f"; done
        equal "$(find small -mindepth 1 | wc -l)" "$(find . -maxdepth 1 -name 'f*.mrec' | wc -l)"
    done
    rm -rf small/*
    run 1 synth small/s; err_has "No space left"
    rm -rf small/*
    run 1 train d --model cifar-cnn --epochs 1 --checkpoint small/c --quiet; err_has "No space left"
    equal "$(ls small/c)" run.lock
    umount small
else
    echo "not tried here: a full disk (it needs to mount a small one)"
fi
finish
