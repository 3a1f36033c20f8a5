# pixels: the same batches from a folder of JPEGs, records with and without entry points, coefficient records and caches, for every
# instruction set; libjpeg's pixels are others; a wrong MILLRACE_SIMD is said.
. "$(dirname "$0")/../lib.sh"

run 0 synth p --classes 3 --count 7 --size 24 --max-size 420 --quiet
run 0 convert p p.mrec --quiet
run 0 convert p plain.mrec --no-entries --quiet
run 0 convert p coef.mrec --store coef --quiet
[ "$(wc -c <p.mrec)" -gt "$(wc -c <plain.mrec)" ] || fail "entry points take no room"
for augment in "rrc(32),flip" "resize(40),center(32),flip" "rrc(17,filter=bicubic)" "padcrop(2,40),flip" "flip,rrc(24),brightness(20)"; do
    set -- --epochs 2 --seed 3 --batch 8 --training --augment "$augment"
    run 0 digest p "$@"; cp out want
    for data in p.mrec plain.mrec coef.mrec; do
        run 0 digest $data "$@"
        same out want
    done
    run 0 digest p "$@" --cache ram:64M
    same out want
    for round in fill use; do
        run 0 digest p "$@" --cache disk:kept:64M
        same out want
    done
    rm -r kept
    for simd in plain avx2 avx512 neon; do
        for data in p p.mrec coef.mrec; do
            MILLRACE_SIMD=$simd run 0 digest $data "$@"
            same out want
        done
    done
    run 0 digest p "$@" --pixels libjpeg
    cmp -s out want && fail "$last: the same pixels as our own"
    cp out theirs
    run 0 digest p.mrec "$@" --pixels libjpeg --cache ram:64M
    same out theirs
    run 0 digest coef.mrec "$@" --pixels libjpeg # coefficients are made a JPEG again
    same out theirs
done

# pictures of one size that nothing resamples: the first one gives the size, in every stored form
run 0 synth s --classes 3 --count 11 --quiet
run 0 convert s s.coef.mrec --store coef --quiet
run 0 convert s s.raw.mrec --store raw --quiet
for augment in none cifar; do
    set -- --epochs 2 --batch 8 --training --augment $augment
    run 0 digest s "$@"; cp out want
    for data in s.coef.mrec s.raw.mrec; do
        run 0 digest $data "$@"
        same out want
        run 0 digest $data "$@" --cache ram:64M
        same out want
    done
    run 0 digest s "$@" --cache ram:64M
    same out want
done
MILLRACE_SIMD=mmx run 0 --version
err_has "MILLRACE_SIMD=mmx"
MILLRACE_SIMD=plain run 0 --version
[ ! -s err ] || fail "MILLRACE_SIMD=plain: $(cat err)"
finish
