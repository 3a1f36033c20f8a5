# The outputs of a checkpoint for every sample: in the data's order, with the right ones of an evaluation, bad ones with a row of their own; with
# and without labels, as CSV and as JSON; the same on any devices.
. "$(dirname "$0")/../lib.sh"

run 0 synth d --classes 3 --count 20 --test-count 5 --size 12 --quiet
run 0 train d --model cifar-cnn-small --augment none --batch 10 --epochs 4 --seed 3 --quiet --checkpoint c
run 0 eval d --checkpoint c --json
right=$(awk "BEGIN { printf \"%d\", $(number val_accuracy) * 15 + 0.5 }")
[ "$right" -gt 6 ] || fail "$last: expected it to have learned something: $right of 15 right"

# folders of classes are labels where one asks for them; the test part is taken, as in evaluation
run 0 predict d --checkpoint c --classes first
equal "$(head -1 out)" "sample,name,label,class,probability,error"
equal "$(sed 1d out | wc -l | tr -d ' ')" 15
equal "$(sed 1d out | cut -d , -f 1 | tr '\n' ' ')" "$(seq 0 14 | tr '\n' ' ')"
equal "$(sed 1d out | awk -F , '$3 == $4' | wc -l | tr -d ' ')" "$right"
grep -q '^0,test/disc/.*,disc,[a-z]*,0\.[0-9]*,$' out || fail "$last: not a row as expected: $(sed -n 2p out)"
sed 1d out | cut -d , -f 2,4,5 >named
cp out first.csv
run 0 predict d --checkpoint c # no labels are needed; folders that are called like classes are labels
same out first.csv
run 0 convert d d.mrec --split test --quiet
run 0 predict d.mrec --checkpoint c # nobody gave a rule for class folders
err_lacks "rule for class folders"
run 0 predict d.mrec --checkpoint c --classes none
err_has "the rule for class folders is passed over"
mkdir tree tree/disc tree/disc/deep tree/other
cp "$(find d/test/disc -type f | head -1)" tree/disc/deep/a.jpg
cp tree/disc/deep/a.jpg tree/other/b.jpg
cp tree/disc/deep/a.jpg tree/disc/d.jpg
cp tree/disc/deep/a.jpg tree/c.jpg
run 0 predict tree --checkpoint c
equal "$(sed 1d out | cut -d , -f 2,3 | LC_ALL=C sort | tr '\n' ' ')" "c.jpg, disc/d.jpg,disc disc/deep/a.jpg,disc other/b.jpg,other "
mv tree/disc tree/batch # no folder has the name of a class: they are not classes
run 0 predict tree --checkpoint c
sed 1d out | awk -F , '$3 != ""' | grep -q . && fail "$last: a folder is taken for a class"
run 0 predict d --checkpoint c
sed 1d out | cut -d , -f 2,4,5 >unnamed
same named unnamed
cp out plain.csv
for devices in cpu:2 cpu:3; do
    run 0 predict d --checkpoint c --devices $devices --batch 4
    same out plain.csv
done
run 0 predict d --checkpoint c --split train; equal "$(sed 1d out | wc -l | tr -d ' ')" 60

# --top, JSON, --out
run 0 predict d --checkpoint c --top 9
equal "$(head -1 out)" "sample,name,label,class,probability,class_2,probability_2,class_3,probability_3,error"
sed 1d out | awk -F , '{ s = $5 + $7 + $9; if (s < 0.9999 || s > 1.0001 || $5 < $7 || $7 < $9) exit 1 }' || fail "$last: no distribution"
run 0 predict d --checkpoint c --top 2 --json --classes first
equal "$(wc -l <out | tr -d ' ')" 15
equal "$(sed -n 's/.*"label": "\([^"]*\)", "class": "\([^"]*\)".*/\1 \2/p' out | awk '$1 == $2' | wc -l | tr -d ' ')" "$right"
head -1 out | grep -q '"top": \[{"class": "[a-z]*", "class_number": [0-2], "probability": [0-9.e-]*}, {' || fail "$last: no top"
run 0 predict d --checkpoint c --out rows.csv; out_has "rows.csv: 15 samples of d"; same rows.csv plain.csv
run 1 predict d --checkpoint c --out rows.csv; err_has "rows.csv"; same rows.csv plain.csv
run 0 predict d --checkpoint c --out rows.csv --force --json; equal "$(number samples) $(number bad)" "15 0"
equal "$(wc -l <rows.csv | tr -d ' ')" 15

# a folder of pictures; a bad one has its row, and says so
mkdir flat
n=0
for file in d/test/*/*; do n=$((n + 1)); cp "$file" "flat/$n.${file##*.}"; done
first=$(find flat -type f | LC_ALL=C sort | head -1)
printf 'no picture' >flat/0,bad.png
run 3 predict flat --checkpoint c --out flat.csv; out_has "16 samples of flat"; out_has "1 of them bad"
err_has "bad sample: flat/0,bad.png"
grep -q '^0,"0,bad.png",,,,"\{0,1\}expected a picture' flat.csv || fail "$last: no row for the bad one: $(sed -n 2p flat.csv)"
equal "$(sed -n 3p flat.csv | cut -d , -f 1,2)" "1,${first##*/}"
equal "$(sed 1,2d flat.csv | awk -F , '$4 == ""' | wc -l | tr -d ' ')" 0
run 3 predict flat --checkpoint c --json; head -1 out | grep -q '"class": null, "error": "expected' || fail "$last: $(head -1 out)"
run 1 predict flat --checkpoint c --bad stop --out none.csv; absent none.csv
run 2 predict flat --checkpoint c --bad replace; err_has "--bad replace"

# sets of other classes, and records without any
run 0 convert d flat.mrec --classes none --quiet
run 0 predict flat.mrec --checkpoint c; equal "$(sed 1d out | wc -l | tr -d ' ')" 60
run 0 synth other --classes 5 --count 3 --size 12 --quiet
run 0 predict other --checkpoint c --classes first; equal "$(sed 1d out | cut -d , -f 3 | sort -u | wc -l | tr -d ' ')" 5

run 2 predict d; err_has "--checkpoint is needed"
run 0 train d --model mnist-vae --augment none --batch 10 --epochs 1 --quiet --checkpoint vae
run 2 predict d --checkpoint vae; err_has "mnist-vae has no classes"
run 1 predict d --checkpoint c --devices sim:1; err_has "simulated"
finish
