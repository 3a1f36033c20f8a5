# repair: recovers the whole samples of cut, changed and incomplete sets in all formats that are written, and names the lost ones; a second
# copy and the source give it back, to the same bytes.
. "$(dirname "$0")/../lib.sh"

# change FILE OFFSET [BYTES]: other bytes there
change() { head -c "${3:-4}" /dev/zero | tr '\0' 'Z' | dd of="$1" bs=1 seek="$2" conv=notrunc status=none; }
cut_to() { head -c "$2" "$1" >short && cat short >"$1" && rm short; }
# same_files A B: folders with the same files
same_files() {
    for f in "$1"/*; do same "$f" "$2/${f##*/}"; done
    equal "$(ls "$2" | wc -l)" "$(ls "$1" | wc -l)"
}
# damaged: a fresh copy of the set to damage
damaged() { rm -rf bad out_set && cp -r "$1" bad; }

run 0 synth d --classes 3 --count 20 --quiet
mkdir mrec tar tfrecord
run 0 convert d mrec/s.mrec --shard-size 40K --quiet
run 0 convert d tar/s --to tar --shard-size 60K --quiet
run 0 convert d tfrecord/s --to tfrecord --shard-size 30K --quiet

# an undamaged set: nothing is reported as lost, nothing changes
for set in mrec/s.mrec tar/s tfrecord/s 'mrec/s-*.mrec' tar tfrecord; do
    run 0 repair "$set"; out_has "60 samples whole, nothing lost"
done

# ---- record files ----
damaged mrec
change bad/s-00001.mrec 9000
run 1 repair bad/s.mrec; out_has "1 damaged; 59 samples whole, 1 lost"; out_has "lost: sample "; out_has "Nothing was changed."
absent bad/s-00001.mrec.damaged
run 3 repair bad/s.mrec out_set; out_has "number "; out_has "train/"
run 0 verify out_set/s.mrec; out_has "59 of 59"
run 0 repair bad/s.mrec back --from mrec; out_has "1 put back, nothing lost"; same_files mrec back
rm -rf back
run 0 repair bad/s.mrec back --from d; out_has "made again from the source"; same_files mrec back
rm -rf back
run 3 repair bad/s.mrec --in-place --quiet; present bad/s-00001.mrec.damaged
run 0 verify bad/s.mrec; out_has "59 of 59"
run 0 repair bad/s.mrec; out_has "59 samples whole, nothing lost"

damaged mrec # a file that is gone: by the list, by its number, from the copy and from the source
rm bad/s-00001.mrec
run 1 repair bad/s.mrec --json
equal "$(number missing)" 1
grep -q '"event": "lost".*"samples": [1-9]' out || fail "$last: no count of the lost samples"
run 1 convert 'bad/s-*.mrec' x.mrec; err_has "millrace repair"
run 0 repair bad/s.mrec back --from d --quiet; same_files mrec back; rm -rf back
rm bad/s.mrec
run 0 repair 'bad/s-*.mrec' back --from mrec --quiet; same_files mrec back; rm -rf back
run 0 repair bad/s.mrec back --from d --quiet; same_files mrec back; rm -rf back
run 3 repair 'bad/s-*.mrec' --in-place --quiet; present bad/s.mrec; out_has "more than 0 lost"
run 0 verify bad/s.mrec

damaged mrec # cut, the header lost, the list lost
cut_to bad/s-00000.mrec 20000
change bad/s-00002.mrec 0 4096
rm bad/s.mrec
run 1 repair bad/s; out_has "the file is cut"; out_has "s.mrec: the list of the files is missing"
run 0 repair bad/s.mrec back --from d --quiet; same_files mrec back; rm -rf back
run 0 repair bad/s.mrec back --from mrec/s.mrec --quiet; same_files mrec back; rm -rf back
for bytes in 0 1 100 4095 4096 8192; do # whatever is left of it
    damaged mrec
    cut_to bad/s-00001.mrec $bytes
    run 3 repair bad/s.mrec out_set; out_has " lost"
    equal "$(sed -n 's/.*; \([0-9]*\) samples whole, .*/\1/p' out)" "$(sed -n 's/^end .* shards \([0-9]*\) records.*/\1/p' out_set/s.mrec)"
    run 0 verify out_set/s.mrec
    run 0 repair bad/s.mrec back --from d --quiet; same_files mrec back; rm -rf back
done

# the list knows each file: one of another set counts as missing, is not written, and comes back from the copy and from the source
run 0 synth stranger --classes 3 --count 20 --seed 5 --quiet
mkdir s && run 0 convert stranger s/s.mrec --shard-size 40K --quiet
here() { sed -n "s/^\([0-9]*\) .*$1\$/\1/p" mrec/s.mrec; }
damaged mrec
cp s/s-00001.mrec bad
run 1 repair bad/s.mrec; out_has "s-00001.mrec: not the file that the list knows"; out_has ", $(here s-00001.mrec) lost"
run 3 repair bad/s.mrec out_set; run 0 verify out_set/s.mrec; out_has "$((60 - $(here s-00001.mrec))) of"
for from in mrec d; do run 0 repair bad/s.mrec back --from $from; out_has "put back, nothing lost"; same_files mrec back; rm -rf back; done
run 1 repair bad/s.mrec back --from s; err_has "is no copy of it"; rm -rf back
cut_to bad/s-00001.mrec 20000 # a part of it is no part of the set either
run 0 repair bad/s.mrec --in-place --from mrec --quiet; same bad/s-00001.mrec mrec/s-00001.mrec; present bad/s-00001.mrec.damaged
damaged mrec # two files have exchanged their names
mv bad/s-00001.mrec bad/t && mv bad/s-00002.mrec bad/s-00001.mrec && mv bad/t bad/s-00002.mrec
run 1 repair bad/s.mrec; out_has "s-00002.mrec: by the list this file is s-00001.mrec"
run 1 repair bad/s.mrec --in-place; err_has "rename it back"; same bad/s-00001.mrec mrec/s-00002.mrec
run 0 repair bad/s.mrec back; same_files mrec back; rm -rf back
damaged mrec # the list of another set; an earlier repair left fewer records in a file, and its list did not come
cp s/s.mrec bad
run 1 repair bad/s.mrec back; err_has "none of the files is one that the list knows"; absent back
damaged mrec
change bad/s-00001.mrec 9000
run 3 repair bad/s.mrec --in-place --quiet; cp mrec/s.mrec bad; rm bad/s-00001.mrec.damaged
run 3 repair bad/s.mrec out_set; out_has "59 samples whole, 1 lost"; run 0 verify out_set/s.mrec
run 0 repair bad/s.mrec back --from d --quiet; same_files mrec back; rm -rf back
damaged mrec # no list, and other classes: nothing is written half way
run 0 synth stranger2 --classes 2 --count 20 --quiet
run 0 convert stranger2 t.mrec --shard-size 40K --quiet
cp t-00001.mrec bad/s-00001.mrec; rm bad/s.mrec
run 1 repair bad/s.mrec back; err_has "the files are of different sets"; absent back

# one file alone, its index gone
damaged mrec
size=$(wc -c <bad/s-00000.mrec)
change bad/s-00000.mrec $((size - 2000))
run 0 repair bad/s-00000.mrec one.mrec; out_has "nothing lost"; same one.mrec mrec/s-00000.mrec

# ---- archives and TFRecord files ----
for kind in tar tfrecord; do
    damaged $kind
    second=$(ls $kind | sed -n 2p)
    change "bad/$second" 9000
    run 1 verify bad --no-decode
    run 3 repair bad/s out_set; out_has "1 damaged; 59 samples whole, 1 lost"; out_has "lost: sample "; out_has "(train/"
    run 0 verify out_set; out_has "59 of 59"
    run 0 repair bad/s back --from $kind; same_files $kind back; rm -rf back
    for bytes in 0 100 512 9999; do
        damaged $kind
        cut_to "bad/$second" $bytes
        run 3 repair bad/s out_set; out_has "more than 0 lost"
        run 0 verify out_set
        run 0 repair bad/s back --from $kind --quiet; same_files $kind back; rm -rf back
    done
    damaged $kind
    rm "bad/$second"
    run 1 verify bad --quiet
    run 1 repair bad/s; out_has "$second: the file is missing"
    run 3 repair bad/s out_set; run 0 verify out_set
    run 0 repair bad/s back --from $kind --quiet; same_files $kind back; rm -rf back
    run 1 repair bad/s back --from d; err_has "only record files can be made again"
done
run 3 repair bad/s out_set --force; out_has "The files have new numbers"
run 1 repair bad/s --in-place; err_has "give a folder"

damaged tar # members' headers, the end mark
for at in 0 512 1536; do change "bad/s-000000.tar" $at 8; done
run 3 repair bad/s out_set; run 0 verify out_set
run 0 repair bad/s back --from tar --quiet; same_files tar back; rm -rf back

damaged tar # cut between the members of a sample, which then is not whole
cut_to bad/s-000001.tar $((512 * $(tar tRf tar/s-000001.tar | sed -n 's/^block \([0-9]*\): .*\.cls$/\1/p' | sed -n 3p)))
run 3 repair bad/s out_set; run 0 verify out_set --quiet
run 0 repair bad/s back --from tar --quiet; same_files tar back; rm -rf back

damaged tar # two bytes of a name change places: the header's own checksum still matches
printf rt | dd of=bad/s-000000.tar bs=1 seek=1024 conv=notrunc status=none
run 1 verify bad --quiet; out_has "s-000000.tar"; out_has "the name of a member is damaged"; out_has "offset 1536"
run 3 repair bad/s out_set; out_has "59 samples whole, 1 lost"
run 0 verify out_set --quiet; out_has "59 of 59"
run 0 repair bad/s back --from tar --quiet; same_files tar back; rm -rf back

damaged tar # a sample that another program added: the archive's checksums do not list it, the new archive's do
mkdir more && cp "$(find d/train/disc -name '*.jpg' | head -1)" more/added.jpg && printf 0 >more/added.cls
tar -rf bad/s-000001.tar -C more added.jpg added.cls
run 1 verify bad; out_has "millrace repair ARCHIVE NEW.tar"; out_lacks "has no checksums"
run 1 repair bad/s; out_has "s-000001.tar, offset "; out_has "members from here on were added"; out_has "61 samples whole, nothing lost"
run 0 repair bad/s out_set; run 0 verify out_set; out_has "61 of 61"

# ---- made with kinds of pictures that are left out: a setting of the set ----
mkdir kinds
run 0 convert d kinds/s.mrec --pictures jpeg,png --shard-size 40K --quiet
damaged kinds
change bad/s-00001.mrec 9000
run 0 repair bad/s.mrec back --from d --quiet; same_files kinds back; rm -rf back

# ---- refused ----
damaged mrec
change bad/s-00001.mrec 9000
run 0 synth other --classes 3 --count 20 --seed 5 --quiet
run 0 convert other other.mrec --shard-size 40K --quiet
rm other.mrec && mkdir o && mv other-*.mrec o && for f in o/*; do mv "$f" "o/s${f#o/other}"; done
run 1 repair bad/s.mrec back --from o; err_has "is no copy of it"; rm -rf back
run 1 repair bad/s.mrec back --from other; err_has "expected the source of this set"; absent back
run 2 repair bad/s.mrec back --in-place
# a set that grew has no such source: its whole samples are saved, and the lost ones appended again
cp -r d/train grown && run 0 convert grown grown.mrec --shard-size 40K --quiet
cp d/train/disc/00001.jpg grown/disc/new.jpg && run 0 convert grown grown.mrec --update --quiet
change grown-00001.mrec 9000
run 1 repair grown.mrec whole --from grown; err_has "of a set that grew, 'repair SET DST'"
run 3 repair grown.mrec whole --quiet
run 0 convert grown whole/grown.mrec --update --quiet; out_has "61 samples"
run 1 repair bad/s.mrec bad; err_has "the damaged file itself"
run 1 repair nothing; err_has "no such file"
echo text >text
for other in d text d/train/disc/00000.jpg; do run 1 repair $other; err_has "which are what can be repaired"; done
mkdir out_set; : >out_set/s-00000.mrec
run 1 repair bad/s.mrec out_set; err_has "exists already"

# ---- killed again and again, it comes to the same ----
damaged mrec
rm bad/s-00001.mrec
cut_to bad/s-00000.mrec 20000
n=0
set -- bad/s-00000.mrec.damaged bad/s-00000.mrec.part bad/s-00001.mrec.part bad/s-00001.mrec bad/s.mrec.part
until "$millrace" repair bad/s.mrec >look 2>err && grep -q "60 samples whole, nothing lost" look; do
    n=$((n + 1))
    [ $n -le 200 ] || { fail "repair --in-place does not come to its end"; break; }
    "$millrace" repair bad/s.mrec --in-place --from d >out 2>err &
    pid=$!
    [ $# -eq 0 ] || { waits $pid any "$1"; kill -9 $pid 2>/dev/null; shift; }
    wait $pid 2>/dev/null
done
# a kill between the last file and the list leaves a set that is whole and the list's part file: the same command takes it away
cp bad/s.mrec bad/s.mrec.part
chmod 1600 bad/s.mrec.part # as our writers mark theirs
run 0 repair bad/s.mrec --in-place --from d
for f in mrec/*; do same "$f" "bad/${f##*/}"; done
run 0 verify bad/s.mrec; out_has "60 of 60"
ls bad/*.part >left 2>/dev/null && fail "left behind: $(cat left)"
finish
