# io_uring refused, as by old kernels and by container policies: said once, and the batches are the same bits.
. "$(dirname "$0")/../lib.sh"
refuse=$3

"$refuse" EPERM /bin/true 2>err || skip "$(cat err)"
run 0 synth d --count 5 --quiet
run 0 convert d d.mrec --quiet
run 0 digest d --epochs 2 --training --augment cifar; cp out want
for why in EPERM ENOSYS; do
    for data in d d.mrec; do
        for how in "" "--prefetch off" "--devices cpu:3 --readers 2"; do
            last="digest $data $how with io_uring refused ($why)"
            # shellcheck disable=SC2086
            "$refuse" $why "$millrace" digest $data --epochs 2 --training --augment cifar $how >out 2>err || fail "$last: failed"
            same out want
            equal "$(grep -c 'io_uring is not usable here' err)" 1
        done
    done
    last="train with io_uring refused ($why)"
    "$refuse" $why "$millrace" train d --model cifar-cnn --epochs 1 --batch 25 --quiet >out 2>err || fail "$last: failed"
    equal "$(cat out err | grep -c 'io_uring is not usable here')" 1
    out_has ", pread ("
    last="digest --io uring with io_uring refused ($why)"
    "$refuse" $why "$millrace" digest d --epochs 2 --training --augment cifar --io uring >out 2>err || fail "$last: failed"
    same out want
done
finish
