# convert that chooses: each step takes exactly the samples it names, skipped samples are counted, classes keep their samples.
. "$(dirname "$0")/../lib.sh"

run 0 synth d --classes 4 --count 10 --size 40 --quiet
mv d/train s
cp s/disc/00000.jpg s/ring/zcopy.jpg # the bytes of another class's picture
names() { "$millrace" export "$1" names-of --force --quiet >/dev/null 2>&1; (cd names-of && find . -type f | sort); rm -rf names-of; }

run 0 convert s only.mrec --only-classes ring,disc --quiet
err_has "21 of 41 samples are taken"; err_has "left out: 20 of other classes"; err_has "class ring, number 2, is ring, number 1 now"
run 0 inspect only.mrec; out_has "classes   2: disc, ring"
names only.mrec >got; (cd s && find ./disc ./ring -type f | sort) >want; same got want
run 0 stats only.mrec --quiet; out_has "      10  disc"; out_has "      11  ring"

# every condition, alone and together
run 0 convert s w.mrec --where 'key~ring/*' --quiet --json --force; equal "$(number records)" 11; equal "$(number where)" 30
run 0 convert s w.mrec --where 'key!~ring/*' --quiet --json --force; equal "$(number records)" 30
run 0 convert s w.mrec --where 'key=ring/zcopy.jpg' --quiet --json --force; equal "$(number records)" 1
run 0 convert s w.mrec --where 'class!=ring' --quiet --json --force; equal "$(number records)" 30
run 0 convert s w.mrec --where 'label>=1,label<3' --quiet --json --force; equal "$(number records)" 21
run 0 convert s w.mrec --where 'width=40,height<=40,bytes>0,bytes<1m' --quiet --json --force; equal "$(number records)" 41
size=$(wc -c <s/disc/00003.jpg)
run 0 convert s w.mrec --where "bytes=$size" --quiet --json --force
equal "$(number records)" "$(find s -name '*.jpg' -size "${size}c" | wc -l)"
run 1 convert s x.mrec --where 'width>4K'; err_has "no sample is left of 41"
for wrong in wid=3 'width~3' 'key<3' width= 'width=x' 'width=3,' '' 'width=99999999999999999999'; do
    run 2 convert s x.mrec --where "$wrong"; err_has "--where"
done
absent x.mrec

run 0 convert s dedup.mrec --dedup bytes --quiet
err_has "left out: 1 with the same bytes as an earlier sample, 1 of them in another class"
names dedup.mrec | grep -q zcopy && fail "the copy was kept"
run 0 export dedup.mrec png --quiet
run 0 convert s dedup.tar --dedup pixels --quiet; err_has "left out: 1 with the same pixels"

# shares of each class: no sample twice, none missing, and of each class as many
run 0 convert s a.mrec --take-each 0:0.7 --quiet
run 0 convert s b.mrec --take-each 0.7:1 --quiet
{ names a.mrec; names b.mrec; } | sort >got; (cd s && find . -type f | sort) >want; same got want
run 0 stats a.mrec --quiet; out_has "       7  disc"; out_has "       8  ring"
run 0 convert s n.mrec --sample 7 --seed 3 --quiet --json; equal "$(number records)" 7; equal "$(number drawn)" 34
run 0 convert s n2.mrec --sample 7 --seed 3 --workers 3 --quiet; same n.mrec n2.mrec
run 0 convert s n3.mrec --sample 7 --seed 4 --quiet
cmp -s n.mrec n3.mrec && fail "another seed draws the same"
run 0 convert s all.mrec --sample 100 --quiet; err_has "the data have 41, and all are taken"
run 0 convert s plain.mrec --quiet; same all.mrec plain.mrec

# an update takes samples that the choice of the set takes, and no others
cp -r s grown; run 0 convert s fit.mrec --take-each 0:0.7 --shard-size 20K --quiet
run 0 convert s wide.mrec --where 'key!~ring/*' --shard-size 20K --quiet
cp s/disc/00003.jpg grown/disc/more.jpg; cp s/ring/00003.jpg grown/ring/more.jpg
for how in "convert grown fit.mrec --update" "append fit.mrec grown --update" "convert grown fit.mrec --update --take-each 0:0.7"; do
    # shellcheck disable=SC2086 # words
    run 1 $how; err_has "the set was made with --take-each '0:0.7', which draws from all samples"
done
run 1 convert grown wide.mrec --update; err_has "the set was made with --where 'key!~ring/*', and an update without it"
run 1 convert grown wide.mrec --update --where 'key~ring/*'; err_has "expected the same options, found --where 'key~ring/*'"
run 1 append wide.mrec grown --update; err_has "update it by convert, with the same options (convert SRC SET --update)"
run 0 convert grown wide.mrec --update --where 'key!~ring/*'; out_has "wide.mrec: 31 samples, 30 before"
mkdir -p new/disc new/ring new/square new/frame; cp grown/disc/more.jpg new/disc; run 0 append fit.mrec new --quiet
# the options stay in the set: records made again say the same
run 0 convert s half.mrec --take 0:0.5 --shard-size 20K --quiet; cp half-00000.mrec kept; rm half-00000.mrec
run 0 repair half.mrec whole --from s --take 0:0.5 --quiet; same whole/half-00000.mrec kept

# names
printf 'ring\tround\ndisc\tround\n# a comment\nsquare\tbox\n' >rename
run 0 convert s r.mrec --rename-classes rename --quiet
err_has "1 class becomes one with another"; err_has "class square, number 3, is box, number 2 now"
run 0 inspect r.mrec; out_has "classes   3: round, frame, box"
run 0 stats r.mrec --quiet; out_has "      21  round"
run 0 convert s r2.mrec --rename-classes rename --only-classes box,round --where 'class=box' --quiet
run 0 inspect r2.mrec; out_has "classes   2: round, box"; out_has "samples   10"
# a mark of UTF-8 in front, as Windows' editors write it; commas and blanks
mark=$(printf '\357\273\277')
printf '%sring\tround\r\n' "$mark" >marked; run 0 convert s mark.mrec --rename-classes marked --quiet --force
run 0 inspect mark.mrec; out_has "classes   4: disc, frame, round, square"
printf '%sring/00000.jpg\r\n' "$mark" >marked; cp -r s k; run 0 withdraw k --keys marked --quiet; run 0 inspect k; out_has "samples   40"
printf '%smillrace mix 1\r\n1 s\r\n' "$mark" >mixed.txt; run 0 inspect mixed.txt; out_has "samples   41"
mkdir c; for name in "tench, Tinca" eel; do cp -r s/ring "c/$name"; done
run 0 convert c mark.mrec --only-classes 'tench\, Tinca' --quiet --force; run 0 inspect mark.mrec; out_has "classes   1: tench, Tinca"
run 1 convert c mark.mrec --only-classes 'tench, Tinca' --quiet --force; err_has 'write \, for a comma in a name'
run 0 convert c mark.mrec --where ' class = tench\, Tinca , key ~ */0000[0-4].jpg' --quiet --force --json; equal "$(number records)" 5
printf 'ring round\n' >bad; run 1 convert s x.mrec --rename-classes bad; err_has "line 1: expected"
printf 'cat\tdog\n' >bad; run 1 convert s x.mrec --rename-classes bad; err_has 'no class "cat"'
run 1 convert s x.mrec --only-classes ring,cat; err_has 'no class "cat"'
run 1 convert s x.mrec --classes-from rename; err_has "have names"
mkdir m
printf '\0\0\010\003\0\0\0\003\0\0\0\002\0\0\0\002\012\036\012\036\012\036\012\036\001\001\001\001' >m/train-images-idx3-ubyte
printf '\0\0\010\001\0\0\0\003\0\001\002' >m/train-labels-idx1-ubyte
printf 'zero\none\ntwo\n' >three
run 0 convert m m.mrec --classes-from three --quiet; run 0 inspect m.mrec; out_has "classes   3: zero, one, two"
printf 'zero\none\n' >two; run 1 convert m x.mrec --classes-from two; err_has "expected 3 names"
mkdir one; cp m/train-images-idx3-ubyte one # labels from 1 on: a list may begin with the first one that is there
printf '\0\0\010\001\0\0\0\003\001\002\003' >one/train-labels-idx1-ubyte
run 0 convert one one.mrec --classes-from three --label-offset 0 --quiet; run 0 stats one.mrec --quiet
equal "$(grep -cE '^ +1  (zero|one|two)$' out)" 3
run 0 convert m m2.mrec --only-classes 0,2 --quiet; run 0 digest m2.mrec # numbers stay numbers
run 0 stats m2.mrec --quiet; out_has "       1  2"; out_has "       0  1"

# what cannot be read is not judged: it is listed as ever
head -c 100 s/ring/00003.jpg >short && cp short s/ring/00003.jpg
run 3 convert s bad.mrec --where 'width>=1' --dedup bytes --quiet; out_has "1 bad sample"; grep -q 00003.jpg bad.mrec.bad.jsonl || fail "it is not listed"
run 2 convert s --advise --sample 3

# an interrupted run goes on with the same choice only
run 1 convert s stop.mrec --where 'class!=frame' --bad stop --quiet
run 1 convert s stop.mrec --resume --quiet
run 3 convert s stop.mrec --where 'class!=frame' --resume --quiet
finish
