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
    run 1 convert big small/x.mrec; err_has "small/x.mrec"; err_has "No space left"; absent small/x.mrec
    rm -f small/*
    run 1 convert big small/s.mrec --shard-size 12K; err_has "No space left"; absent small/s.mrec
    rm -f small/*
    run 1 export big small/e; err_has "No space left"
    equal "$(find small -name '*.part' | wc -l | tr -d ' ')" 0
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
