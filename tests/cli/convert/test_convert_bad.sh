# Damaged samples: each is named with its reason, the rest is converted, the exit status is 3. Headers that lie cost no memory.
. "$(dirname "$0")/../lib.sh"

run 0 synth d --classes 3 --count 8 --quiet
rm -r d/test
c=d/train/disc
echo "this is no picture" >$c/a-text.jpg
: >$c/b-empty.jpg
head -c 300 $c/00000.jpg >$c/c-cut.jpg
head -c -2 $c/00001.jpg >$c/d-no-end.jpg
# a baseline JPEG header of 65535 x 65535 pixels and no data after it
printf '\377\330\377\300\000\021\010\377\377\377\377\003\001\042\000\002\021\001\003\021\001\377\332\000\014\003\001\000\002\021\003\021\000\077\000' >$c/e-huge.jpg
# a PNG header of 65535 x 65535 pixels, 16-bit RGBA
printf '\211PNG\r\n\032\n\000\000\000\rIHDR\000\000\377\377\000\000\377\377\020\006\000\000\000CRCC' >$c/f-huge.png
echo no >"$c/$(printf 'h-"\\\\\377\nx.jpg')" # a name that must be escaped in the list
run 0 synth p --classes 2 --count 1 --image png --quiet
cp p/train/disc/00000.png $c/g-really-png.jpg # fine: the content decides the kind of a file
ln -s . $c/itself
mkfifo $c/pipe
ln -s loop $c/loop
run 0 inspect d; err_has "left out: 1 link to nothing (train/disc/loop)"
rm $c/loop

(
    # limits address space, not just resident memory: the sizes that a header claims are not even reserved
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

# whatever became of the list of an interrupted run, resuming makes it whole: the gaps between records say who was passed over
for spoil in "rm y.mrec.bad.jsonl" ": >y.mrec.bad.jsonl" "sed -i 3d y.mrec.bad.jsonl" "sed -i '1d;5d' y.mrec.bad.jsonl" \
    "truncate -s -9 y.mrec.bad.jsonl" "sed -i '2{h;d};4G' y.mrec.bad.jsonl"; do
    eval "$spoil"
    run 3 convert d y.mrec --resume; same y.mrec.bad.jsonl want.jsonl; same x.mrec y.mrec
done
run 3 convert d s.mrec --shard-size 20K --workers 1; same s.mrec.bad.jsonl want.jsonl
rm s.mrec.bad.jsonl
run 3 convert d s.mrec --shard-size 20K --resume; same s.mrec.bad.jsonl want.jsonl
# half a conversion, without its list: the same
half=$(($(wc -c <x.mrec) / 2))
rm y.mrec y.mrec.bad.jsonl
head -c $half x.mrec >y.mrec.part
run 3 convert d y.mrec --resume; same y.mrec.bad.jsonl want.jsonl; same x.mrec y.mrec
# a sample that is sound by now is not left out without a word
mkdir -p m/one
for i in 1 2 3 4; do cp $c/00001.jpg m/one/$i.jpg; done
printf '\377\377' | dd of=m/one/2.jpg conv=notrunc status=none
touch -d 2020-01-01 m/one/2.jpg
run 3 convert m m.mrec; rm m.mrec.bad.jsonl
cp $c/00001.jpg m/one/2.jpg; touch -d 2020-01-01 m/one/2.jpg
run 1 convert m m.mrec --resume; err_has "sample 1"; err_has "is sound now"; err_has "begin anew"
run 0 convert m m.mrec --force; out_has "4 records"

run 1 convert d z.mrec --bad stop; err_has "more than 0 bad samples"; absent z.mrec
run 1 convert d z.mrec --max-bad 3 --force; err_has "more than 3 bad samples"
absent z.mrec.bad.jsonl.bad.jsonl
# without the check only what has no picture's header at all is found
run 3 convert d n.mrec --no-check --json; equal "$(number bad)" 3

# a clean conversion leaves no list behind, and a refused one touches nothing
rm "$c"/?-*
run 1 convert d y.mrec; err_has "exists"; same y.mrec.bad.jsonl want.jsonl
run 0 convert d y.mrec --force; absent y.mrec.bad.jsonl

# a picture that is too large for the memory is a bad sample, not the end; where it stays as it is, it needs no memory
run 0 synth large --count 1 --size 1800 --quiet
run 0 synth small --count 1 --size 40 --quiet
cp large/train/disc/00000.jpg small/train/disc/large.jpg
run 0 convert small l.mrec --memory 64M
run 3 convert small r.mrec --memory 64M --resize 32
grep -q "large.jpg.*may take .* MiB" r.mrec.bad.jsonl || fail "$last: $(cat r.mrec.bad.jsonl)"
run 0 verify small --memory 64M

# nothing but damaged samples
mkdir -p b/one
echo no >b/one/1.jpg
run 1 convert b b.mrec; err_has "none of the 1 samples"; absent b.mrec; absent b.mrec.part

finish
