# digest: no setting of the loader changes it, everything that should does.
. "$(dirname "$0")/../lib.sh"

run 0 synth d --count 13 --quiet
run 0 convert d d.mrec --quiet
set -- --epochs 2 --seed 3 --batch 32 --training --augment cifar
run 0 digest d.mrec "$@"; cp out want
grep -Eq '^[0-9a-f]{32}  10 batches, 260 samples$' want || fail "digest: not 32 hex digits and counts: $(cat want)"
for how in "--workers 1" "--workers 5" "--prefetch off" "--prefetch 1" "--readers 2" "--depth 1" "--io pread" "--parts 3" \
    "--parts 7" "--devices cpu" "--devices cpu:3" "--devices sim:2,step=1us" "--split-at 1" "--split-at 5" "--split-at 7" \
    "--split-at 9 --devices cpu:2 --prefetch off"; do
    # shellcheck disable=SC2086
    run 0 digest d.mrec "$@" $how
    same out want
done
run 0 digest d "$@"; same out want
for how in "--seed 4" "--batch 31" "--order sequential" "--order block" "--augment none" "--epochs 1" "--tail drop" "--tail pad" \
    "--start-step 1"; do
    # shellcheck disable=SC2086
    run 0 digest d.mrec "$@" $how
    cmp -s out want && fail "$last: the same digest"
done

# pictures of many sizes cut and resized by chance, and gray pixels from IDX files: every setting with every other's neighbours,
# stopped and taken up in between
run 0 synth p --classes 3 --count 17 --max-size 72 --quiet
mkdir ix
{ printf '\000\000\010\003\000\000\000\055\000\000\000\010\000\000\000\010'; head -c 2880 d.mrec; } >ix/train-images-idx3-ubyte
{ printf '\000\000\010\001\000\000\000\055'; printf '%45s' ' ' | tr ' ' '\003'; } >ix/train-labels-idx1-ubyte
for data in p ix; do
    case $data in p) augment="rrc(24),flip" ;; ix) augment=none ;; esac
    set -- --epochs 3 --seed 5 --batch 8 --training --augment "$augment"
    run 0 digest $data "$@"; cp out want
    k=0
    for workers in 1 2 3 7; do
        for prefetch in off 2 8; do
            for io in uring pread; do
                k=$((k + 1))
                run 0 digest $data "$@" --workers $workers --prefetch $prefetch --io $io --readers $((1 + k / 2 % 2 * 2)) \
                    --devices cpu:$((1 + k % 5)) --split-at $((1 + k * 5 % 17))
                same out want
            done
        done
    done
done
set -- --epochs 2 --seed 3 --batch 32 --training --augment cifar
run 0 digest d.mrec "$@"; cp out want
run 0 digest d.mrec "$@" --json
equal "$(text digest)" "$(cut -c1-32 want)"
run 1 digest nowhere

# a damaged sample: stop, replace, skip
head -c 300 d/train/disc/00004.jpg >short; cp short d/train/disc/00004.jpg
run 1 digest d; err_has "00004.jpg"
run 3 digest d --bad replace --bad-list bad.jsonl; out_has "130 samples"; err_has "takes its place"
grep -q '00004.jpg' bad.jsonl || fail "the damaged sample is not listed"
run 3 digest d --bad skip
finish
