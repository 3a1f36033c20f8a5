# Damaged samples: each is named with its reason, the rest is converted, the exit status is 3. Headers that lie cost no memory.
. "$(dirname "$0")/../lib.sh"

run 0 synth d --classes 3 --count 8 --quiet
rm -r d/test
c=d/train/disc
echo "this is no picture" >$c/a-text.jpg
: >$c/b-empty.jpg
head -c 300 $c/00000.jpg >$c/c-cut.jpg
head -c -2 $c/00001.jpg >$c/d-no-end.jpg
# a baseline JPEG header of 65535 x 65535 pixels and nothing behind it
printf '\377\330\377\300\000\021\010\377\377\377\377\003\001\042\000\002\021\001\003\021\001\377\332\000\014\003\001\000\002\021\003\021\000\077\000' >$c/e-huge.jpg
# a PNG header of 65535 x 65535 pixels, 16-bit RGBA
printf '\211PNG\r\n\032\n\000\000\000\rIHDR\000\000\377\377\000\000\377\377\020\006\000\000\000CRCC' >$c/f-huge.png
echo no >"$c/$(printf 'h-"\\\\\377\nx.jpg')" # a name that must be escaped in the list
run 0 synth p --classes 2 --count 1 --image png --quiet
cp p/train/disc/00000.png $c/g-really-png.jpg # fine: what a file is comes from its content
ln -s . $c/itself
mkfifo $c/pipe
ln -s loop $c/loop
run 1 convert d x.mrec; err_has "leads back to itself"; absent x.mrec
rm $c/loop

(
    # address space, not just resident memory: what a header claims is not even asked for
    grep -q __asan_init "$millrace" || grep -q __tsan_init "$millrace" || ulimit -v 1500000
    "$millrace" convert d x.mrec --workers 2 --json >out 2>err
)
status=$? last="convert with damaged samples"
equal $status 3
equal "$(number records)" 25
equal "$(number bad)" 7
equal "$(wc -l <x.mrec.bad.jsonl | tr -d ' ')" 7
for name in a-text.jpg b-empty.jpg c-cut.jpg d-no-end.jpg e-huge.jpg f-huge.png; do
    grep -q "\"file\": \"[^\"]*$name\"" x.mrec.bad.jsonl || fail "$name is not in the list"
done
"$json_lines" <x.mrec.bad.jsonl || fail "the list is no JSON"
grep -q '"sample": [0-9]*.*"reason": "..*"' x.mrec.bad.jsonl || fail "the list has no reasons"
cp out kept; cp x.mrec.bad.jsonl want.jsonl
run 0 verify x.mrec
run 1 verify d; out_has "a-text.jpg"
run 3 convert d y.mrec --workers 1; out_has "7 bad samples passed over, listed in y.mrec.bad.jsonl"
same x.mrec y.mrec
same y.mrec.bad.jsonl want.jsonl
run 3 convert d y.mrec --resume; same y.mrec.bad.jsonl want.jsonl

run 1 convert d z.mrec --bad stop; err_has "more than 0 bad samples"; absent z.mrec
run 1 convert d z.mrec --max-bad 3; err_has "more than 3 bad samples"
absent z.mrec.bad.jsonl.bad.jsonl
# without the check only what has no picture's header at all is found
run 3 convert d n.mrec --no-check --json; equal "$(number bad)" 3

# a clean conversion leaves no list behind, and a refused one touches nothing
rm "$c"/?-*
run 1 convert d y.mrec; err_has "exists"; same y.mrec.bad.jsonl want.jsonl
run 0 convert d y.mrec --force; absent y.mrec.bad.jsonl

# nothing but damaged samples
mkdir -p b/one
echo no >b/one/1.jpg
run 1 convert b b.mrec; err_has "none of the 1 samples"; absent b.mrec; absent b.mrec.part

if [ "$(id -u)" -ne 0 ]; then
    chmod 000 $c/00003.jpg
    run 3 convert d locked.mrec; grep -q 00003.jpg locked.mrec.bad.jsonl || fail "the unreadable file is not listed"
    chmod 644 $c/00003.jpg
fi
finish
