# manifest: names, sizes and sums that sha256sum reads; verify --manifest finds changed, missing and extra files.
. "$(dirname "$0")/../lib.sh"

run 0 synth d --classes 2 --count 5 --quiet
odd="d/train/disc/a
b\\c.jpg"
cp d/train/disc/00001.jpg "$odd"
run 0 manifest d d.sha256 --quiet; out_has "files"
if command -v sha256sum >/dev/null; then
    sha256sum -c --quiet --strict d.sha256 || fail "sha256sum does not read it"
    sha256sum d/train/*/*.jpg d/test/*/*.jpg >plain.sha256
    run 0 verify d/train --manifest plain.sha256 --quiet
fi
run 0 verify d --manifest d.sha256 --quiet; out_has "compared, 0 wrong"; out_lacks "no checksums"
run 1 manifest d d.sha256 --quiet; err_has "exists already"
run 0 manifest d d.sha256 --quiet --force --json; equal "$(number files)" "$(find d -type f -exec echo x \; | wc -l)"
mkdir e && run 0 manifest d e/d.sha256 --quiet # from another folder: names that hold anywhere
run 0 verify d --manifest e/d.sha256 --quiet

# changed, missing, more
cp d/train/disc/00000.jpg kept
printf x | dd of=d/train/disc/00000.jpg bs=1 seek=300 conv=notrunc status=none
mv d/train/ring/00002.jpg gone
cp kept d/train/ring/new.jpg
run 1 verify d --manifest d.sha256 --no-decode --quiet
out_has "d/train/disc/00000.jpg: expected SHA-256"
out_has "d/train/ring/00002.jpg: cannot open"
out_has "d/train/ring/new.jpg: the manifest does not name this file"
out_has "compared, 3 wrong"
printf more >>d/train/disc/00001.jpg
run 1 verify d --manifest d.sha256 --no-decode --quiet --json; grep -q '00001.jpg.*expected [0-9]* bytes as in the manifest' out || fail "no size"

# record files: the list and its files
cp kept d/train/disc/00000.jpg
run 0 convert d/train s.mrec --shard-size 20K --quiet
run 0 manifest s.mrec s.sha256 --quiet
run 0 verify s.mrec --manifest s.sha256 --quiet
equal "$(grep -c '\.mrec$' s.sha256)" "$(ls s*.mrec | wc -l)"

# a manifest that is damaged or none
head -n 5 s.sha256 >cut.sha256; run 1 verify s.mrec --manifest cut.sha256 --quiet; err_has "the end line is missing"
sed 3d s.sha256 >less.sha256; run 1 verify s.mrec --manifest less.sha256 --quiet; err_has "line "
echo nothing >none.sha256; run 1 verify s.mrec --manifest none.sha256 --quiet; err_has "line 1: expected"
: >empty.sha256; run 1 verify s.mrec --manifest empty.sha256 --quiet; err_has "found no file"
run 1 verify s.mrec --manifest nowhere --quiet

# cards: facts, with names from the card's folder
run 0 manifest d --card d/README.md; err_has "add what only you know: license"
sed -n '2,/^---/p' d/README.md >yaml
grep -q "^# license:" yaml || fail "no place for a licence"
for line in "- image-classification" "    path: \"train/\*\*\"" "          '1': \"ring\"" "  - name: test" "    num_examples: $("$millrace" inspect d --json 2>/dev/null | sed 's/.*"samples": \([0-9]*\).*/\1/')"; do
    grep -qx -- "$line" yaml || fail "README.md: no line $line"
done
run 1 manifest d --card d/README.md; err_has "exists already"; run 0 manifest d --card d/README.md --force --quiet
run 0 manifest d --card d/README.md --force --quiet --json
equal "$(cat out)" '{"event": "manifest", "data": "d", "output": null, "card": "d/README.md"}'
run 0 manifest d c.sha256 --card d/README.md --force --quiet --json
out_has '"output": "c.sha256", "files": '; out_has '"card": "d/README.md"}'; equal "$(wc -l <out | tr -d ' ')" 1
run 2 manifest d; err_has "--card FILE"
run 2 manifest d --card d.txt; err_has "expected a name that ends in .md"
run 2 manifest d/train --card e/croissant.json; err_has "put it into the folder of"
run 0 manifest s.mrec s2.sha256 --card s.json --quiet
python3 - s2.sha256 <<'END' || fail "another description"
import json, sys
card = json.load(open("s.json"))
assert card["conformsTo"] == "http://mlcommons.org/croissant/1.0" and "license" not in card, card
sums = {line.split("  ")[1].strip(): line.split("  ")[0] for line in open(sys.argv[1]) if line[0] != "#"}
assert {one["name"]: one["sha256"] for one in card["distribution"]} == sums, (card["distribution"], sums)
assert [one["classes/name"] for one in card["recordSet"][0]["data"]] == ["disc", "ring"], card["recordSet"]
END
run 0 convert d t.tar --card t.json --quiet; run 0 manifest t.tar --card t2.json --quiet; same t.json t2.json
run 0 export t.tar back --card back/README.md --quiet; present back/README.md
run 2 convert d u.tar --card e/u.json; absent u.tar

# labels and names of samples in files of their own; a card does not lead other programs to withdrawn samples
run 0 convert d m.rec --quiet; run 0 manifest m.rec rec.sha --quiet; equal "$(grep -c ' m\.\(rec\|idx\|lst\)$' rec.sha)" 3
python3 - <<'END'
header = b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little")
def put(name, kind, shape, data):
    open(name, "wb").write(header + f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117).encode() + b"\n" + data)
put("x_train.npy", "|u1", "(4, 8, 8, 3)", bytes(4 * 192))
put("y_train.npy", "|u1", "(4,)", bytes([0, 1, 0, 1]))
END
run 0 manifest x_train.npy arrays.sha --quiet; equal "$(grep -c ' [xy]_train.npy$' arrays.sha)" 2
cp -r d private; run 0 withdraw private --where 'key~*/00001.jpg' --quiet
run 1 manifest private --card private.json --quiet; err_has "withdrawn from the set, and programs that read a card would take them"; absent private.json

# a mix: the pictures of its folders, too
run 0 convert d m.mrec --quiet; cp -r d/train mixed; printf 'millrace mix 1\n0.5 mixed\n0.5 m.mrec\n' >mix.txt
run 0 manifest mix.txt mix.sha --quiet; equal "$(grep -vc '^#' mix.sha)" $(($(find mixed -type f -exec echo x \; | wc -l) + 2))
run 0 verify mix.txt --manifest mix.sha --quiet
printf x >>mixed/disc/00001.jpg
run 1 verify mix.txt --manifest mix.sha --quiet; out_has "13 files, 46.8 KiB compared, 1 wrong"

# the set itself is never written over, and a list that was made elsewhere is no list of wrong files
run 0 convert d o.mrec --quiet; cp o.mrec kept
run 1 manifest o.mrec o.mrec --force --quiet; err_has "this is also the input"; same o.mrec kept
run 1 manifest d d/train/ring/00001.jpg --force --quiet; err_has "this is a file of the set, and no manifest"
run 0 manifest d d/sums --quiet; run 0 manifest d d/sums --force --quiet; rm d/sums
printf '{"path": "d/train/ring/00001.jpg", "label": 1}\n' >t.json; cp t.json kept
run 1 convert t.json card.mrec --card t.json --force --quiet; err_has "this is also the input"; same t.json kept
run 0 manifest d/train moved.sha --quiet; mkdir away; mv moved.sha away
run 1 verify d/train --manifest away/moved.sha --quiet; err_has "files is there"; err_has "names are relative to the folder of the manifest"

# splits in files of their own: each file once, in its split
mkdir -p parts/train parts/test
run 0 convert d parts/train/a.tar --to tar --shard-size 4k --quiet
run 0 convert d parts/test/b.tar --split test --to tar --shard-size 4k --quiet
run 0 manifest parts --card parts/README.md --quiet; run 0 manifest parts --card parts/c.json --quiet
python3 - <<'END' || fail "the files of the splits"
import glob, json
text = open("parts/README.md").read().split("data_files:")[1].split("dataset_info:")[0]
for split, files in ((part.split("\n")[0].strip(), part.split('"')[1::2]) for part in text.split("- split:")[1:]):
    expected = sorted(name[len("parts/"):] for name in glob.glob(f"parts/{split}/*.tar"))
    assert len(expected) > 1 and sorted(files) == expected, (split, files, expected)
card = json.load(open("parts/c.json"))
sets = {one["@id"]: [file["@id"] for file in one["containedIn"]] for one in card["distribution"] if one["@type"] == "cr:FileSet"}
for split in ("train", "test"):
    expected = sorted(name[len("parts/"):] for name in glob.glob(f"parts/{split}/*.tar"))
    assert sorted(sets[split + "-picture-files"]) == sorted(sets[split + "-label-files"]) == expected, sets
assert [one["@id"] for one in card["recordSet"]] == ["train-pictures", "train-labels", "test-pictures", "test-labels", "classes"], card
names = [one["name"] for one in card["distribution"] if one["@type"] == "cr:FileObject"]
assert sorted(names) == sorted(name[len("parts/"):] for name in glob.glob("parts/*/*.tar")), names
END
finish
