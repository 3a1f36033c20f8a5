# verify: finds one changed byte wherever it is, names the place, and passes what is whole.
. "$(dirname "$0")/../lib.sh"

run 0 synth d --classes 3 --count 6 --quiet
run 0 convert d d.mrec --quiet
run 0 verify d.mrec; out_has "18 of 18 samples checked"; out_has "0 wrong"
run 0 verify d.mrec --no-decode; out_has "not decoded"
run 0 verify d --json; equal "$(number wrong)" 0
size=$(wc -c <d.mrec | tr -d ' ')
at=0
while [ $at -lt "$size" ]; do
    cp d.mrec changed.mrec
    was=$(dd if=d.mrec bs=1 skip=$at count=1 2>/dev/null | od -An -tu1 | tr -d ' ')
    # shellcheck disable=SC2059
    printf "\\$(printf %o $(((was + 1) % 256)))" | dd of=changed.mrec bs=1 seek=$at conv=notrunc 2>/dev/null
    "$millrace" verify changed.mrec --quiet >out 2>err
    status=$? last="verify with byte $at changed"
    equal $status 1
    at=$((at + 1237))
done
cat d.mrec d/train/disc/00000.jpg >long.mrec
run 1 verify long.mrec
run 0 convert d s.mrec --shard-size 12K --quiet
run 0 verify s.mrec
printf 'X' | dd of=s-00001.mrec bs=1 seek=9000 conv=notrunc 2>/dev/null
run 1 verify s.mrec --json
grep -q 's-00001.mrec' out || fail "the damaged shard is not named"
head -c 400 d/train/ring/00002.jpg >short; cp short d/train/ring/00002.jpg
run 1 verify d; out_has "00002.jpg"; out_has "1 wrong"
run 0 verify d --no-decode
run 1 verify nowhere
finish
