# export: JPEG and PNG come back byte for byte, pixels as PNG with the same pixels.
. "$(dirname "$0")/../lib.sh"

run 0 synth d --classes 3 --count 5 --quiet
run 0 convert d d.mrec --quiet
run 0 export d.mrec back; out_has "15 files"
cat d/train/*/*.jpg >want
cat back/train/*/*.jpg >got
same got want
equal "$(ls back/train | tr '\n' ' ')" "disc ring square "
run 1 export d.mrec back; err_has "--force"
run 0 export d.mrec back --force --json; equal "$(number files)" 15
run 0 convert d raw.mrec --store raw --quiet
run 0 export raw.mrec pixels
run 0 digest raw.mrec; cp out want
run 0 digest pixels; same out want
run 1 export nowhere x

# an interrupted export is resumed: existing files stay, missing files are written, a file with other content is refused
find back -type f | sort >all
sed -n '1~3p' all | while read -r f; do rm "$f"; done
run 0 export d.mrec back --resume --json; equal "$(number resumed)" 10; equal "$(number files)" 15
find back -type f | sort >again; same again all
cat back/train/*/*.jpg >got; cat d/train/*/*.jpg >want; same got want
printf x | dd of=back/train/disc/00001.jpg bs=1 seek=100 conv=notrunc status=none
run 1 export d.mrec back --resume; err_has "differs from the data"; err_has "00001.jpg"
rm -r back
for n in 1 6 11; do
    name=$(sed -n "${n}p" all)
    "$millrace" export d.mrec back --resume --quiet >out 2>err &
    pid=$!
    waits $pid any "$name" "$name.part"
    kill -9 $pid 2>/dev/null
    wait $pid 2>/dev/null
done
run 0 export d.mrec back --resume
find back -type f | sort >again; same again all

# names that no file can have here: another one in the same folder, counted and listed; two of them stay two
long=$(printf 'a%.0s' $(seq 240))
mv d/train/disc/00000.jpg "d/train/disc/${long}1.jpg"
mv d/train/disc/00001.jpg "d/train/disc/${long}2.jpg"
mv d/train/disc/00002.jpg "d/train/disc/new
line.jpg"
run 0 convert d odd.mrec --quiet
run 0 export odd.mrec odd --quiet; out_has "3 files have another name than the sample; listed in odd.names.jsonl"
equal "$(find odd/train/disc -name 'a*.jpg' | wc -l)" 2
present odd/train/disc/new_line.jpg
equal "$(grep -c '"event": "renamed"' odd.names.jsonl)" 3
grep -qF '"name": "train/disc/new\nline.jpg", "file": "train/disc/new_line.jpg"}' odd.names.jsonl || fail "odd.names.jsonl: no new line"
run 0 digest odd.mrec; cut -d' ' -f1 out >want
run 0 inspect odd; out_has "samples   15"; out_has "classes   3: disc, ring, square"
# classes that got other names, and names with more folders: each file lies in the folder of its class, below one root
mkdir tree; cp -r d/train/disc tree/disc; cp -r d/train/ring tree/ring; cp -r d/train/square tree/square; rm -f tree/disc/new* tree/disc/aaa*
cp d/train/ring/00002.jpg tree/disc/00002.jpg
printf 'ring\tdisc\ndisc\tring\n' >swap; printf 'ring\tdisc\n' >merge
classes_of() { # FOLDER FILE: the classes of the pictures whose bytes FILE has
    find "$1" -name '*.jpg' -exec cmp -s {} "$2" ';' -print | sed 's,/[^/]*$,,' | sort | paste -sd' '
}
reopened() { # FOLDER SAMPLES CLASSES
    run 0 inspect "$1"; out_has "samples   $2"; out_has "classes   $3"; out_lacks "left out"; out_lacks "ignored"
}
run 0 convert tree swapped.mrec --rename-classes swap --quiet; run 0 export swapped.mrec swapped --quiet
reopened swapped 13 "3: disc, ring, square"; equal "$(classes_of swapped tree/ring/00001.jpg)" swapped/disc
equal "$(wc -l <swapped.names.jsonl)" 8
run 0 convert tree merged.mrec --rename-classes merge --quiet; run 0 export merged.mrec merged --quiet
reopened merged 13 "2: disc, square"; equal "$(classes_of merged tree/ring/00001.jpg)" merged/disc
run 0 convert d parts.mrec --rename-classes merge --quiet; run 0 export parts.mrec parts --quiet
equal "$(classes_of parts d/train/ring/00001.jpg)" parts/train/disc
mkdir rooted; cp -r tree rooted/photos; tar -C rooted -cf rooted.tar --sort=name photos; run 0 export rooted.tar root --quiet
reopened root 13 "3: disc, ring, square"; absent root.names.jsonl
mkdir tables tables/one tables/two; cp tree/ring/0000[01].jpg tables/one; cp tree/square/0000[01].jpg tables/two
printf 'path,class\none/00000.jpg,ring\none/00001.jpg,square\ntwo/00000.jpg,square\ntwo/00001.jpg,ring\n' >tables/t.csv
run 0 export tables/t.csv table --quiet; out_has "4 files have another name than the sample"
reopened table 4 "2: ring, square"; equal "$(classes_of table tables/one/00001.jpg)" table/square
# names of classes that no folder can have, and fields that are no pictures
printf 'path,class\none/00000.jpg,n/a\none/00001.jpg,.ring\ntwo/00000.jpg,_ring\n' >tables/odd.csv
run 0 export tables/odd.csv oddly --quiet; out_has "2 classes have a folder of another name; listed in oddly.names.jsonl"
reopened oddly 3 "3: _ring, _ring-0, n_a"
grep -qF '"event": "renamed_class", "name": "n/a", "folder": "n_a"}' oddly.names.jsonl || fail "oddly.names.jsonl: no n/a"
printf 'path,class\none/00000.jpg,a/b\none/00001.jpg,a_b\ntwo/00000.jpg,a_b-0\n' >tables/meet.csv
run 0 export tables/meet.csv meet --quiet; reopened meet 3 "3: a_b, a_b-0, a_b-0-1"
printf 'path,class\none/00000.jpg,w/ mask\none/00001.jpg,w/o mask\n' >tables/mask.csv
run 0 export tables/mask.csv mask --quiet; reopened mask 2 "2: w_ mask, w_o mask"
mkdir -p tables/train/photos/cat tables/val/photos/dog; cp tree/ring/00000.jpg tables/train/photos/cat/1.jpg; cp tree/ring/00001.jpg tables/val/photos/dog/2.jpg
printf 'path,class\ntrain/photos/cat/1.jpg,cat\nval/photos/dog/2.jpg,dog\n' >tables/parts.csv
run 0 export tables/parts.csv split --quiet; present split/train/cat/1.jpg; present split/val/dog/2.jpg
mkdir wds; cp tree/ring/00000.jpg wds/1.jpg; echo 1 >wds/1.cls; echo "a ring" >wds/1.txt; tar -C wds -cf wds.tar --sort=name .
run 0 export wds.tar fields --quiet; out_has "left out: txt of each sample, as only pictures become files"
# an older list does not stay beside a folder that needs none
run 0 export tree table --force --quiet; absent table.names.jsonl
# keys of an archive: without points, and each once
for k in 1 2; do tar -C d/train -cf two$k.tar --sort=name ring; done
run 0 convert two1.tar once.tar --quiet; out_lacks "another key"
run 0 convert 'two?.tar' twice.tar --quiet --json; equal "$(number renamed)" 5
run 0 convert 'two?.tar' twice.tar --quiet --force; out_has "5 samples have another key than their names"
out_has "sample 5, ring/00000.jpg"; out_has "sample 7, ring/00002.jpg"; out_lacks "sample 8"; out_has "and 2 more"
run 0 convert 'two?.tar' twice.tar --no-names --quiet --force; out_lacks "another key"
mv d/train/ring/00000.jpg d/train/ring/a.b.jpg
run 0 convert d keys.tar --quiet; out_has "1 sample has another key than its name"; out_has "train/ring/a.b.jpg"
run 0 export d.mrec none --quiet --json; equal "$(number renamed)" 0; absent none.names.jsonl
finish
