# withdraw, restore: every reader leaves the listed samples out, the others stay unchanged, and a list is never applied to other
# data.
. "$(dirname "$0")/../lib.sh"

run 0 synth d --classes 3 --count 20 --size 24 --channels 1 --quiet
mv d/train p
run 0 convert p one.mrec --quiet
run 0 convert p s.mrec --shard-size 30K --quiet
run 0 convert p t.tar --to tar --quiet
run 0 convert p r.tfrecord --to tfrecord --quiet
mkdir want && cp -r p want/p && rm want/p/disc/00003.jpg want/p/disc/00007.jpg want/p/ring/00000.jpg
list=.millrace.withdrawn
digest() { "$millrace" digest "$1" --epochs 2 --batch 8 --seed 5 --quiet 2>/dev/null | cut -d' ' -f1; }
samples() { "$millrace" inspect "$1" --quiet 2>/dev/null | sed -n 's/^samples *//p'; }

# every format: the same samples, in the same order, as of a set that never had them
numbers=3,7,20
for set in p one.mrec s.mrec t.tar r.tfrecord; do
    case $set in # tar and TFRecord decode no differently, but their pictures lie otherwise: compared with themselves
    p) from=want/p ;;
    *) rm -rf want/c*; run 0 convert want/p "want/${set%.*}" --to "$(case $set in *.tar) echo tar ;; *.tfrecord) echo tfrecord ;; *) echo mrec ;; esac)" --quiet
        from=want/${set%.*}; [ -e "$from" ] || from=$(echo want/"${set%.*}"[-.]*) ;;
    esac
    run 0 inspect "$set" --record 8; grep '^name' out >name8
    run 0 inspect "$set" --quiet --json; before=$(text fingerprint)
    run 0 withdraw "$set" --samples $numbers --reason "label	is \\wrong" --quiet; out_has "3 of 60 samples are withdrawn; this run withdrew 3"
    equal "$(samples "$set")" 57
    run 0 inspect "$set" --quiet; out_has "3 of 60 samples are withdrawn"
    equal "$(digest "$set")" "$(digest "$from")"
    run 0 inspect "$set" --quiet --json; equal "$(number withdrawn)" 3; [ "$(text fingerprint)" != "$before" ] || fail "$set: the same fingerprint"
    run 0 inspect "$set" --record 8; grep '^name' out >name8_after; same name8 name8_after # numbers stay
    run 0 inspect "$set" --record 7; out_has "withdrawn label"
    run 0 inspect "$set" --record 7 --json; out_has '"withdrawn": true, "reason": "label\u0009is \\wrong"'
    run 0 stats "$set" --quiet; out_has "samples     57, and 3 withdrawn"
    run 0 stats "$set" --quiet --json; equal "$(number withdrawn)" 3; equal "$(number samples)" 57
    run 0 verify "$set" --quiet; out_has "57 of 57 samples checked"; out_has "3 samples are withdrawn, and not decoded"
    run 0 verify "$set" --quiet --json; equal "$(number withdrawn)" 3
    run 0 withdraw "$set" --quiet; equal "$(wc -l <out)" 3; out_has "20 "
    run 0 withdraw "$set" --quiet --json; equal "$(grep -c '"event": "withdrawn"' out)" 3
    run 0 withdraw "$set" --samples 3 --reason other --quiet; out_has "this run withdrew 0"
    run 0 withdraw "$set" --quiet; out_lacks other
    run 0 restore "$set" --samples 7,8 --quiet; out_has "2 of 60 samples are withdrawn; this run restored 1"
    run 0 restore "$set" --all --quiet; out_has "0 of 60 samples are withdrawn; this run restored 2"
    run 0 inspect "$set" --quiet --json; equal "$(text fingerprint)" "$before"
    [ -z "$(find . -name "$list*")" ] || fail "a list is left"
done

# other readers
run 0 withdraw s.mrec --samples $numbers --quiet
run 0 export s.mrec back --quiet; (cd back && find . -type f | sort) >got; (cd want/p && find . -type f | sort) >wanted; same got wanted
run 0 convert s.mrec c.mrec --quiet; run 0 inspect c.mrec --quiet --json; equal "$(number samples)" 57
run 0 train s.mrec --model mnist-mlp --val none --epochs 2 --batch 8 --augment none --threads 1 --checkpoint run --quiet --json
run 0 profile s.mrec --model mnist-mlp --batch 8 --steps 6 --seconds 0.01 --augment none --threads 1 --quiet
err_has "3 of 60 samples are withdrawn"
# a resumed run over another list is refused
run 0 withdraw s.mrec --samples 9 --quiet
run 1 train s.mrec --model mnist-mlp --val none --epochs 3 --batch 8 --augment none --threads 1 --checkpoint run --resume --quiet
err_has "these are not the data the checkpoint was trained on"; err_has "millrace withdraw"
run 0 restore s.mrec --samples 9 --quiet
run 0 train s.mrec --model mnist-mlp --val none --epochs 3 --batch 8 --augment none --threads 1 --checkpoint run --resume --quiet

printf 'millrace mix 1\n0.5 s.mrec\n0.5 want/p\n' >m.mix
run 0 inspect m.mix --quiet --json; equal "$(number samples)" 114; equal "$(number withdrawn)" 3
run 1 withdraw m.mix --samples 1 --quiet; err_has "withdrawn from its data sets"
[ ! -e "$list.part" ] || fail "a temporary file is left"

# the list belongs to the files: one of them by itself, and a set that grew
run 0 inspect s-00000.mrec --quiet; out_has "samples are withdrawn"
run 0 synth more --classes 3 --count 2 --seed 8 --size 24 --channels 1 --quiet
run 0 append s.mrec more/train --again --quiet; equal "$(samples s.mrec)" 63
rm -rf more2 && mkdir more2 && cp -r p more2/p
run 0 append s.mrec more2/p --update --quiet; out_has "nothing to add" # withdrawn ones do not come back

run 0 restore s.mrec --all --quiet

# splits: a sample that is withdrawn moves no other one from one part to the other
run 0 export one.mrec a1 --take 0:0.7 --quiet; run 0 export one.mrec b1 --take 0.7:1 --quiet
run 0 withdraw one.mrec --samples $numbers --quiet
run 0 export one.mrec a2 --take 0:0.7 --quiet; run 0 export one.mrec b2 --take 0.7:1 --quiet
for part in a b; do
    (cd ${part}1 && find . -type f | grep -v -e disc/00003 -e disc/00007 -e ring/00000 | sort) >wanted
    (cd ${part}2 && find . -type f | sort) >got
    same got wanted
done
run 2 withdraw one.mrec --samples 1 --take 0:0.5; err_has "--take does not go with this command"

# names and conditions
run 0 restore one.mrec --all --quiet
printf 'disc/00003.jpg\r\n\nring/00000.jpg\ndisc/00003.jpg\n' >keys
run 0 withdraw one.mrec --keys keys --quiet; out_has "this run withdrew 2"
run 0 withdraw one.mrec --where "class=square,key~*/0000[12].jpg" --quiet; out_has "4 of 60 samples are withdrawn; this run withdrew 2"
run 0 withdraw one.mrec; out_has "41 square/00001.jpg: class=square,key~*/0000[12].jpg"
run 0 restore one.mrec --where "class=disc" --quiet; out_has "this run restored 1"
run 0 restore one.mrec --keys keys --quiet; out_has "this run restored 1"
printf 'disc/00003.jpg\nnone.jpg\n' >keys
run 1 withdraw one.mrec --keys keys; err_has "no sample named none.jpg"
: >keys; run 1 withdraw one.mrec --keys keys; err_has "no name is in it"
run 1 withdraw one.mrec --keys nowhere; err_has "No such file"
run 1 withdraw one.mrec --where "width>1000"; err_has "hold for no sample"
run 2 withdraw one.mrec --where "width>>1"
run 2 withdraw one.mrec --where "width>1" --samples 1; err_has "found 2 of them"
run 2 restore one.mrec; err_has "found 0 of them"
run 2 withdraw one.mrec --reason x
for wrong in 60 '1,' 5-3 -1 a 1-; do run 2 withdraw one.mrec --samples "$wrong"; err_has "--samples"; done
run 1 withdraw one.mrec --samples 0-59; err_has "no sample would be left of 60"
equal "$(samples one.mrec)" 58
run 0 restore one.mrec --all --quiet
absent "$list"

# data that changed: refused with the name, until the entries are taken out; never another sample left out
run 0 withdraw one.mrec --samples 5 --quiet
cp one.mrec kept && cp -p "$list" kept_list
cp s-00001.mrec one.mrec
run 1 inspect one.mrec; err_has "does not belong to these data"; err_has "disc/00005.jpg"; err_has "$list"
run 1 train one.mrec --model mnist-mlp
run 1 withdraw one.mrec --samples 1; err_has "does not belong to these data"
run 0 withdraw one.mrec; err_has "does not belong to these data"
run 0 restore one.mrec --all --quiet; absent "$list"
run 0 inspect one.mrec --quiet
cp kept one.mrec && cp kept_list "$list" # a copy has other times: the bytes decide
run 0 inspect one.mrec --quiet; out_has "1 of 60 samples are withdrawn"
cp p/disc/00005.jpg kept_picture
run 0 withdraw p --samples 5 --quiet
cp p/disc/00006.jpg p/disc/00005.jpg
run 1 digest p; err_has "disc/.millrace.withdrawn"; err_has "00005.jpg"
cp kept_picture p/disc/00005.jpg
equal "$(samples p)" 59
rm p/disc/00005.jpg
run 0 inspect p --quiet; out_has "lists 1 withdrawn samples of files that are not there (00005.jpg)"
run 0 restore p --all --quiet; out_has "restored 1"
cp kept_picture p/disc/00005.jpg
mv one.mrec two.mrec
run 0 inspect two.mrec --quiet; out_has "1 of 60 samples are withdrawn" # found by its bytes
mv two.mrec one.mrec

# a list that is damaged: refused
# shellcheck disable=SC2016 # $d is sed's
for damage in 's/5 /6 /' '$d' 's/withdrawn 1/withdrawn 2/' '2d' 's/^end 1/end 2/' 's/one/two/'; do
    sed "$damage" kept_list >"$list"
    run 1 inspect one.mrec --quiet; err_has "$list"
done
: >"$list"; run 1 inspect one.mrec; err_has "an empty file"
rm "$list"; mkdir "$list"; run 1 inspect one.mrec; err_has "$list"; rmdir "$list"

# what repair writes has no list
cp kept_list "$list"
run 0 repair one.mrec fixed.mrec --quiet; out_has "copy $list"
rm "$list"

# two at once: each is done or refused, and the finished ones are in the list
for n in 1 2 3 4 5; do
    "$millrace" withdraw s.mrec --samples 1 --quiet >out1 2>err1 & one=$!
    "$millrace" withdraw s.mrec --samples 2 --quiet >out2 2>err2 & two=$!
    wait $one; r1=$?
    wait $two; r2=$?
    last="two at once ($r1, $r2)"
    [ $r1 -eq 0 ] || [ $r2 -eq 0 ] || { cat err1 err2; fail "none of both was done"; }
    expected=0
    [ $r1 -eq 0 ] && expected=$((expected + 1))
    [ $r2 -eq 0 ] && expected=$((expected + 1))
    run 0 withdraw s.mrec --quiet; equal "$(wc -l <out)" $expected
    run 0 restore s.mrec --all --quiet
done

# a killed run leaves a temporary file; the same command does the rest
printf 'half' >"$list.part"
run 0 withdraw one.mrec --samples 4 --quiet; absent "$list.part"
run 0 restore one.mrec --all --quiet

# through links to the files: the list of the folder to which they lead counts, and one next to the links
mkdir -p view/one view/p/disc view/p/ring
all=$(samples s.mrec)
run 0 withdraw s.mrec --samples 3 --quiet
for f in s.mrec s-*.mrec; do ln -s "../../$f" view/one/; done
equal "$(samples view/one/s.mrec)" $((all - 1))
run 0 withdraw view/one/s.mrec --samples 59 --quiet; equal "$(samples view/one/s.mrec)" $((all - 2)); equal "$(samples s.mrec)" $((all - 1))
run 0 restore view/one/s.mrec --all --quiet; equal "$(samples s.mrec)" "$all"
run 0 withdraw p --samples 3,25 --quiet
for class in disc ring; do for f in p/"$class"/*; do ln -s "../../../$f" view/p/$class/; done; done
equal "$(samples view/p)" $(($(find view/p -name '*.jpg' | wc -l) - 2))
run 0 restore view/p --samples 3 --quiet; out_has "restored 1"
absent p/disc/.millrace.withdrawn; present p/ring/.millrace.withdrawn

# a picture that was corrected is taken back alone; an archive of a folder with a list is refused
run 0 withdraw p --samples 1 --quiet
cp p/disc/00002.jpg p/disc/00001.jpg
run 1 inspect p; err_has "'millrace restore SET --samples 1' takes it back"
run 0 restore p --samples 1 --quiet; out_has "restored 1"
tar cf packed.tar p
run 1 inspect packed.tar; err_has "the archive has a list of withdrawn samples (ring/.millrace.withdrawn)"
run 0 restore p --all --quiet; absent p/ring/.millrace.withdrawn

# a set that is repaired or made again in other files has the same samples withdrawn, found by their bytes; lost ones are reported
rm -rf moved && mkdir moved
run 0 convert d/test moved/s.mrec --shard-size 20K --quiet
run 0 convert d/test moved/t --to tar --shard-size 30K --quiet
run 0 withdraw moved/s.mrec --samples 3,7,11 --quiet; run 0 withdraw 'moved/t-*.tar' --samples 3,7 --quiet
names() { "$millrace" withdraw "$1" --quiet 2>/dev/null | sed 's/^[0-9]* //'; }
names moved/s.mrec >names_s && names 'moved/t-*.tar' >names_t
for size in 10K 90K; do
    run 0 convert d/test moved/t --to tar --shard-size $size --force --quiet; names 'moved/t-*.tar' >again; same again names_t
    run 0 convert d/test moved/s.mrec --shard-size $size --force --quiet; names moved/s.mrec >again; same again names_s
done
run 0 inspect moved/s.mrec --record 5 --json; at=$(number offset)
file=$(text file)
printf 'ZZZZ' | dd of="$file" bs=1 seek=$((at + 300)) conv=notrunc status=none
run 3 repair moved/s.mrec --in-place --quiet; names moved/s.mrec >again; same again names_s
# a withdrawn one is lost itself: the others are found, and it is counted
run 0 convert d/test moved/lost.mrec --quiet
run 0 withdraw moved/lost.mrec --samples 3,7 --quiet
at=$(sed -n 's/^3 \([0-9]*\) .*lost.mrec.*/\1/p' "moved/$list")
printf 'ZZZZ' | dd of=moved/lost.mrec bs=1 seek=$((at + 300)) conv=notrunc status=none
run 3 repair moved/lost.mrec --in-place --quiet
run 0 inspect moved/lost.mrec --quiet; out_has "1 withdrawn sample is in these files no more"; out_has "1 of 11 samples are withdrawn"
# samples without names (NumPy): an entry is applied to no other sample of the same bytes
npy() { # FILE CHARACTER...: a picture of each character, all of one class
    file=$1
    shift
    { printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '|u1', 'fortran_order': False, 'shape': ($#,), }"; head -c $# /dev/zero; } >"${file%.npy}_labels.npy"
    { printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '|u1', 'fortran_order': False, 'shape': ($#, 4, 4), }"
    for character; do printf '%016d' 0 | tr 0 "$character"; done; } >"$file"
}
withdrawn() { "$millrace" withdraw "$1" --quiet 2>/dev/null | sed 's/[^0-9].*//' | tr '\n' ' '; }
rm -rf arrays && mkdir arrays && cd arrays || exit 1
# a duplicate of a sample that is withdrawn where it was: the other one of them moved
npy a.npy a b c x e f g x i; run 0 withdraw a.npy --samples 3,7 --quiet
npy a.npy a b c x e g x i; equal "$(withdrawn a.npy)" "3 6 "; equal "$(samples a.npy)" 6
run 0 withdraw a.npy --samples 6 --quiet; out_has "this run withdrew 0"; equal "$(withdrawn a.npy)" "3 6 " # its entry stays the only one
# both moved; then one is removed, and nobody knows which
npy a.npy a b x g x i; equal "$(withdrawn a.npy)" "2 4 "
npy a.npy a x b g i; run 1 inspect a.npy; err_has "and other samples have the same bytes"; run 0 restore a.npy --all --quiet
# the mislabelled one of two equal pictures: the right one stays, and so does its entry
npy a.npy a b c x e f g x i; run 0 withdraw a.npy --samples 7 --quiet
npy a.npy a b c x e g x i; run 1 inspect a.npy; err_has "and other samples have the same bytes"
npy a.npy a b c y e f x i; equal "$(withdrawn a.npy)" "6 " # only one has the bytes
npy a.npy a b c y e f g i; run 1 inspect a.npy; err_has "its bytes changed or were removed"
run 0 restore a.npy --all --quiet; absent "$list"
# more than 10,000 samples have the size: none is searched
npy a.npy a b x; run 0 withdraw a.npy --samples 2 --quiet
many=a; while [ ${#many} -lt 160016 ]; do many=$many$many; done
{ printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '|u1', 'fortran_order': False, 'shape': (10001, 4, 4), }"
    printf x; printf '%s' "$many" | head -c 160015; } >a.npy
{ printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '|u1', 'fortran_order': False, 'shape': (10001,), }"; head -c 10001 /dev/zero; } >a_labels.npy
run 1 inspect a.npy; err_has "more than 10,000 samples or 1 GiB"
run 0 restore a.npy --all --quiet
# entries of a file that is gone: of another file with some of these pictures, and of a renamed one
npy a.npy x x p q; npy b.npy x g h; run 0 withdraw a.npy --samples 0,1,2 --quiet; rm a.npy
run 0 inspect b.npy --quiet; equal "$(samples b.npy)" 3; out_has "lists 3 withdrawn samples of files that are not there (a.npy)"
npy b.npy x g x x p; equal "$(samples b.npy)" 5 # three of two
npy b.npy x g p; equal "$(samples b.npy)" 3 # one of two
npy b.npy g x p x; equal "$(withdrawn b.npy)" "1 2 3 "; run 0 inspect b.npy --quiet
out_has "3 withdrawn samples of a.npy, which is gone, are taken as these"; out_lacks "not there"
run 0 restore b.npy --samples 1,2,3 --quiet; out_has "restored 3"; absent "$list"
# two files that are gone: the one that is not here whole takes nothing from the other
npy a.npy x q r; npy c.npy x p; run 0 withdraw a.npy --samples 0,1 --quiet; run 0 withdraw c.npy --samples 0 --quiet; rm a.npy c.npy
npy b.npy g x p; equal "$(withdrawn b.npy)" "1 "; run 0 inspect b.npy --quiet; out_has "1 withdrawn sample of c.npy, which is gone, is taken"; out_has "lists 2 withdrawn samples"
rm "$list"
cd .. || exit 1
# names decide between equal pictures
rm -rf twins && mkdir -p twins/in/c && for n in 0 1 2 3 4; do cp "p/disc/0000$n.jpg" twins/in/c/$n.jpg; done
cp twins/in/c/1.jpg twins/in/c/3.jpg
run 0 convert twins/in twins/t.tar --to tar --quiet; run 0 withdraw twins/t.tar --samples 3 --quiet
rm twins/in/c/0.jpg; run 0 convert twins/in twins/t.tar --to tar --force --quiet
equal "$(withdrawn twins/t.tar)" "2 "; equal "$(names twins/t.tar)" c/3.jpg
rm twins/in/c/3.jpg; run 0 convert twins/in twins/t.tar --to tar --force --quiet; run 1 inspect twins/t.tar; err_has "its bytes changed or were removed"
# in the list of a link and in that of its file: restored from both
run 0 restore s.mrec --all --quiet
run 0 withdraw view/one/s.mrec --samples 3 --quiet; run 0 withdraw s.mrec --samples 3,4 --quiet
run 0 restore view/one/s.mrec --samples 3 --quiet; out_has "1 of $all samples are withdrawn; this run restored 1"
equal "$(samples s.mrec)" $((all - 1)); equal "$(samples view/one/s.mrec)" $((all - 1)); run 0 restore s.mrec --all --quiet
# a list that is a link whose file is not here, as tools that keep versions of sets leave it
run 0 synth linked --classes 2 --count 3 --quiet; run 0 withdraw linked --samples 1 --quiet
where=$(find linked -name $list | head -1); mv "$where" kept.list; ln -s nowhere "$where"
run 1 inspect linked; err_has "cannot open the list of withdrawn samples"
finish
