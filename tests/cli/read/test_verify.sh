# verify: finds one changed byte anywhere, names its place, and accepts whole files.
. "$(dirname "$0")/../lib.sh"

run 0 synth d --classes 3 --count 6 --quiet
run 0 convert d d.mrec --quiet
run 0 verify d.mrec; out_has "18 of 18 samples checked"; out_has "0 wrong"
run 0 verify d.mrec --no-decode; out_has "not decoded"
run 0 verify d --json; equal "$(number wrong)" 0; out_has '"checksums": false'
run 0 verify d; out_has "The format folder has no checksums of its contents"
run 0 verify d.mrec; out_lacks "no checksums"
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

# An archive that ends after a member may be cut, or its writer may omit the end mark: only other archives of the set can settle that. The
# first run reads it all, the second one its index.
mkdir alone habit
run 0 convert d alone/a.tar --to tar --no-check --quiet
run 0 verify alone --no-decode
blocks=$(($(wc -c <alone/a.tar) / 512))
while tail -c +$(((blocks - 1) * 512 + 1)) alone/a.tar | head -c 512 | cmp -s -n 512 - /dev/zero; do
    blocks=$((blocks - 1))
    truncate -s $((blocks * 512)) alone/a.tar
done
cp alone/a.tar habit/a-0.tar
cp alone/a.tar habit/a-1.tar
for round in 1 2; do
    run 1 verify alone --no-decode
    out_has "alone/a.tar: offset $((blocks * 512)): the archive has no end mark: some writers leave it out; otherwise it was cut"
    out_has ", 1 wrong"
done
run 1 verify alone/a.tar --no-decode --json; equal "$(number wrong)" 1
run 0 verify habit --no-decode; err_has "2 archives have no end mark"
head -c 512 /dev/zero >>alone/a.tar # half a mark: nothing is missing
run 0 verify alone --no-decode; err_has "1 archive has no end mark"
# the same picture in two sets, whatever it is called and wherever it lies
mkdir -p one/x one/y two/x
run 0 synth plain --classes 2 --count 4 --size 16 --quiet
set -- plain/train/*/*
cp "$1" one/x/a.jpg; cp "$2" one/x/b.jpg; cp "$5" one/y/c.jpg
cp "$3" two/x/a.jpg; cp "$2" two/x/z.jpg
run 1 verify one two; out_has "two: 1 of 2 pictures are in one, too; the first is sample 1 x/z.jpg, there sample 1 x/b.jpg"
err_has "1 pictures are in both sets"
run 1 verify one two --json; equal "$(text event) $(number same)" "same_pictures 1"
rm two/x/z.jpg
run 0 verify one two; out_has "two: 0 of 1 pictures are in one, too"
run 1 verify one nowhere; err_has "nowhere"

# a picture that needs more memory than there is for it does not keep the others from being checked
mkdir -p large/x
cp "$1" large/x/b.jpg
head -c 100 "$3" >large/x/c.jpg
python3 - <<'END' >large/x/a.png
import struct, sys, zlib
def chunk(kind, data): return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
side = 4000
rows = zlib.compress((b"\0" * (1 + 3 * side)) * side)
sys.stdout.buffer.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)) +
                        chunk(b"IDAT", rows) + chunk(b"IEND", b""))
END
run 1 verify large --memory 20M
out_has "a.png: sample 0: decoding this picture of 4000 x 4000 may take"; out_has "c.jpg: sample 2:"; out_has ": 3 of 3 samples checked"
out_has ", 2 wrong"
run 1 verify large; out_has ", 1 wrong"
finish
