# convert --store coef and entry points: what inspect, verify and export make of them, and a conversion killed at any moment.
. "$(dirname "$0")/../lib.sh"

run 0 synth d --count 60 --size 48 --quiet
run 0 synth p --classes 2 --count 1 --image png --quiet
cp p/train/disc/00000.png d/train/disc/picture.png
jpegs=$(find d/train -name '*.jpg' | wc -l | tr -d ' ')

run 0 convert d want.mrec --store coef --workers 1
out_has "$jpegs pictures stored as coefficients"; out_has "1 pictures that cannot be coefficients"
run 0 convert d again.mrec --store coef --workers 3 --json
equal "$(number coefficients)" "$jpegs"; equal "$(number kept)" 1; equal "$(number with_entries)" 0
same again.mrec want.mrec
run 0 inspect want.mrec; out_has "version 1.3"; out_has '"store": "coef"'
run 0 inspect want.mrec --record 3; out_has "image     coef, "; out_has "48 x 48 pixels, 3 channels of 8 bits, orientation 1, 4:"
run 0 inspect want.mrec --record 3 --json; equal "$(text type)" bytes; grep -q '"type": "coef"' out || fail "the type is not printed"
run 0 verify want.mrec; out_has "0 wrong"

# the way back: baseline files with the same pixels, and as record files the same again
run 0 export want.mrec files
for f in files/train/*/*.jpg; do [ "$(od -An -tx1 -N3 "$f" | tr -d ' ')" = ffd8ff ] || fail "$f is no JPEG"; done
equal "$(find files -name '*.jpg' | wc -l | tr -d ' ')" "$jpegs"
rm -r files/train/*/*.png
run 0 convert files back.mrec --store coef
run 0 verify back.mrec
rm d/train/disc/picture.png
run 0 digest d; cp out digest
run 0 digest files; same out digest

# one changed byte in a record is found, wherever it is
size=$(wc -c <want.mrec | tr -d ' ')
at=9000
while [ $at -lt "$size" ]; do
    cp want.mrec changed.mrec
    was=$(dd if=want.mrec bs=1 skip=$at count=1 2>/dev/null | od -An -tu1 | tr -d ' ')
    # shellcheck disable=SC2059
    printf "\\$(printf %o $(((was + 1) % 256)))" | dd of=changed.mrec bs=1 seek=$at conv=notrunc 2>/dev/null
    "$millrace" verify changed.mrec --quiet >out 2>err
    status=$? last="verify with byte $at changed"
    equal $status 1
    at=$((at + 20011))
done

# killed and resumed
cp p/train/disc/00000.png d/train/disc/picture.png
for ms in 4 9 15 2 22 31 7 40; do
    "$millrace" convert d k.mrec --store coef --resume --quiet --workers 2 >out 2>err &
    pid=$!
    sleep "$(printf '0.%03d' "$ms")"
    kill -9 $pid 2>/dev/null
    wait $pid 2>/dev/null
    last="convert --store coef killed after $ms ms"
    [ -e k.mrec ] && same k.mrec want.mrec
done
run 0 convert d k.mrec --store coef --resume
same k.mrec want.mrec

# entry points: reported, checked, left out on request
run 0 convert d e.mrec --json; equal "$(number with_entries)" "$jpegs"; equal "$(number coefficients)" 0
run 0 verify e.mrec; out_has "0 wrong"
run 0 inspect e.mrec --record 0; out_has "entry points of"; out_has "image.entries bytes, "
run 0 export e.mrec e
cat d/train/*/*.jpg >want
cat e/train/*/*.jpg >got
same got want
run 0 convert d n.mrec --no-entries --json; equal "$(number with_entries)" 0
run 0 inspect n.mrec; out_lacks "image.entries"

# a damaged picture is passed over and listed
head -c 700 d/train/disc/00001.jpg >short && cp short d/train/disc/00001.jpg
run 3 convert d bad.mrec --store coef; grep -q 00001.jpg bad.mrec.bad.jsonl || fail "the damaged picture is not listed"
finish
