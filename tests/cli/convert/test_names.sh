# What samples were called is kept: through record files, tar archives and TFRecords, into messages and lists, and out
# again as files; and no name leads anywhere else.
. "$(dirname "$0")/../lib.sh"

run 0 synth d --classes 3 --count 4 --quiet
set -- d/train/*/00000.jpg
mv "$1" "${1%/*}/with blank.JPEG"
mv "$2" "${2%/*}/$(printf 'caf\303\251 \377.jpg')"
mv "$3" "${3%/*}/no ending"
c=${1%/*}
c=${c##*/}

# a folder comes back as it was: with its parts, or the part alone; in one file or in shards, by any number of workers
run 0 convert d d.mrec --quiet
run 0 export d.mrec back --quiet
diff -r d/train back/train || fail "a folder converted and exported is another"
run 0 convert d d.mrec --quiet --force --workers 3 --shard-size 8K
run 0 export d.mrec shards --quiet
diff -r d/train shards/train || fail "a folder converted to shards and exported is another"
run 0 export d test --split test --quiet
run 0 export d test --quiet
diff -r d test || fail "both parts exported are another folder"
run 0 convert d/train one.mrec --quiet --workers 1
run 0 convert d/train five.mrec --quiet --workers 5
same one.mrec five.mrec

# shown
run 0 inspect one.mrec --record 0 --json
out_has "\"name\": \"$c/"
run 0 inspect one.mrec --record 3
out_has "name      $c/with blank.JPEG"
run 0 inspect d/train --record 3 --json
out_has "\"name\": \"$c/with blank.JPEG\""

# archives keep their keys
run 0 convert one.mrec one.tar --to tar --quiet
tar tf one.tar >list || fail "tar cannot read it"
grep -qx "$c/with blank.jpg" list || fail "no member $c/with blank.jpg"
run 0 convert one.tar tar.mrec --quiet
run 0 convert tar.mrec two.tar --to tar --quiet
same one.tar two.tar
run 0 inspect one.tar --record 1 --json
out_has "\"name\": \"$c/00002.jpg\""
run 0 export tar.mrec fromtar --quiet
present "fromtar/$c/00002.jpg"

# TFRecord: image/filename
run 0 convert one.mrec one.tfrecord --to tfrecord --quiet
run 0 inspect one.tfrecord --record 3 --json
out_has "\"name\": \"$c/with blank.JPEG\""
run 0 convert one.tfrecord back.mrec --quiet
run 0 export back.mrec fromtfrecord --quiet
diff -r d/train fromtfrecord || fail "a folder through a TFRecord is another"

# a name goes with its sample: into messages, and into the list of bad ones. A byte in the first picture is changed.
cp one.mrec damaged.mrec
run 0 inspect one.mrec --record 0 --json
at=$(number offset)
at=$((at + 400))
printf '\125\252' | dd of=damaged.mrec bs=1 seek=$at conv=notrunc 2>/dev/null
run 3 digest damaged.mrec --bad skip --bad-list list.jsonl --quiet
err_has "; the sample is $c/"
grep -q "\"name\": \"$c/" list.jsonl || fail "the list of bad samples names none: $(cat list.jsonl)"
run 3 inspect damaged.mrec --bad --json
out_has "\"name\": \"$c/"
run 3 convert damaged.mrec again.mrec --quiet
grep -q "\"name\": \"$c/" again.mrec.bad.jsonl || fail "convert's list names none"
printf broken >"d/train/$c/broken.jpg"
run 3 convert d/train folder.mrec --quiet
grep -q "\"name\": \"$c/broken.jpg\"" folder.mrec.bad.jsonl || fail "convert's list of a folder names none"
rm "d/train/$c/broken.jpg"

# by number all the same
run 0 export one.mrec byhand --numbered --quiet
present "byhand/$c/00000000.jpg"

# without names, as files made before: numbers
run 0 convert d/train plain.mrec --quiet --no-names
run 0 inspect plain.mrec --json; out_lacks sample.name
run 0 export plain.mrec numbers --quiet
present "numbers/$c/00000000.jpg"
run 0 convert one.mrec dropped.mrec --quiet --no-names
run 0 inspect dropped.mrec --record 0 --json; out_lacks '"name": "disc'

# pixels: the ending follows the file
run 0 convert d/train raw.mrec --quiet --store raw
run 0 export raw.mrec pixels --quiet
present "pixels/$c/with blank.png"

# names that lead out of the folder, occur twice, or hold control characters of terminals
mkdir hostile
cp "d/train/$c/00002.jpg" hostile/1.jpg
cp "d/train/$c/00002.jpg" hostile/.2.jpg
cp "d/train/$c/00003.jpg" hostile/3.jpg
i=0
for name in ../../evil.jpg /tmp/millrace-evil/evil.jpg a/../../evil.jpg "$(printf 'x\033[31m\n.jpg')" twice.jpg; do
    i=$((i + 1))
    tar -cPf "hostile-$i.tar" -C hostile --transform "s,.*,$name,S" 1.jpg 2>/dev/null || continue
done
tar -cPf hostile-6.tar -C hostile --transform "s,.*,twice.jpg,S" 3.jpg
mkdir set
mv hostile-?.tar set
run 0 convert set hostile.mrec --quiet
mkdir safe
run 0 export hostile.mrec safe/inner --quiet
run 0 export hostile.mrec safe --quiet
absent evil.jpg
absent ../evil.jpg
absent /tmp/millrace-evil
equal "$(find safe -name '*.jpg' | wc -l)" 12
present safe/twice.jpg
present safe/twice-00000005.jpg
[ -z "$(find safe -name "*$(printf '\033')*")" ] || fail "a control character is in a file's name"
run 0 inspect hostile.mrec --record 3
! grep -q "$(printf '\033')" out || fail "a control character reached the terminal"
finish
