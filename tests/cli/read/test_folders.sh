# Folders as people have them: clutter, empty classes and dangling links are reported and left out; nested trees, flat
# ones and downloads of COCO are read by --classes.
. "$(dirname "$0")/../lib.sh"

run 0 synth d --classes 3 --count 4 --quiet
set -- d/train/*
a=${1##*/} b=${2##*/} c=${3##*/}

# clutter changes no sample
run 0 digest d/train --batch 4 --quiet
plain=$(cat out)
cp -r d/train clutter
echo hello >"clutter/$a/notes.txt"
echo hello >"clutter/$a/Thumbs.db"
echo hello >"clutter/$b/.DS_Store"
printf '8BPS........' >"clutter/$b/a.psd"
echo a,b >clutter/labels.csv
ln -s /no/such/file "clutter/$c/gone.jpg"
run 0 digest clutter --batch 4 --quiet
equal "$(sed 's/clutter/d\/train/' out)" "$plain"
err_has "left out: 4 files that are no pictures"
err_has "a.psd: PSD is not decoded"
err_has "left out: 1 link to nothing ($c/gone.jpg)"
run 0 train clutter --model cifar-cnn --augment "resize(32x32)" --epochs 1 --batch 8 --quiet
run 0 verify clutter --quiet
run 0 convert clutter clutter.mrec --quiet
absent clutter.mrec.bad.jsonl

# an empty class keeps its number
mkdir clutter/zebra
run 0 inspect clutter --json
out_has '"class_count": 4'
out_has '"zebra"'
err_has "1 class folder (zebra/) without pictures"

# an unreadable folder is an error (root may read all)
if [ "$(id -u)" -ne 0 ]; then
    chmod 0 clutter/zebra
    run 1 inspect clutter; err_has "zebra: cannot open the folder"
    chmod 755 clutter/zebra
fi
rmdir clutter/zebra

# a link makes one folder two classes, or puts its pictures into both splits
cp -r d linked
ln -s "$a" linked/train/zebra
ln -s "../train/$b" linked/test/zebra
run 0 inspect linked --json
err_has "1 folder has two names (train/$a and train/zebra are the same folder): their pictures are taken twice"
err_has "1 folder has two names (train/$b and test/zebra are the same folder): the part to train on and the one to test with share"
run 0 inspect linked --split test --json
err_lacks "taken twice"; err_has "(test/zebra and train/$b are the same folder)"
rm linked/train/zebra && ln -s ../elsewhere linked/train/zebra && cp -r "linked/train/$c" linked/elsewhere
run 0 inspect linked --json
err_lacks "taken twice"; err_has "test/zebra"

# a nested tree is reported, and read by the path
mkdir -p deep/x/y deep/z
cp -r "d/train/$a" "d/train/$b" deep/x/y
cp -r "d/train/$c" deep/z
run 1 inspect deep
err_has "no pictures in the first level of folders"
err_has "--classes depth"
run 0 inspect deep --classes depth --json
out_has "\"classes\": [\"x/y/$a\", \"x/y/$b\", \"z/$c\"]"
run 0 train deep --classes depth --model cifar-cnn --augment "resize(32x32)" --epochs 1 --batch 8 --quiet
run 0 convert deep deep.mrec --classes depth --quiet
run 0 inspect deep.mrec --json
out_has "\"x/y/$a\""

# a flat folder: everything but training takes it
mkdir flat
i=0
for f in d/train/*/*; do i=$((i + 1)); cp "$f" "flat/$i.jpg"; done
run 1 inspect flat
err_has "--classes none"
for command in "digest flat --batch 4" "inspect flat" "bench loader flat --seconds 0.1" "convert flat flat.mrec" "verify flat"; do
    # shellcheck disable=SC2086
    run 0 $command --classes none --quiet
done
run 0 inspect flat.mrec --json
equal "$(number samples)" "$i"
run 0 export flat.mrec back --quiet
run 1 train flat --classes none --model cifar-cnn --augment "resize(32x32)"
err_has "expected a class for each picture"
run 0 digest flat.mrec --classes none --batch 4 --quiet
err_has "passed over"

# COCO as downloaded
mkdir -p coco/train2017 coco/val2017 coco/annotations
cp flat/1.jpg flat/2.jpg coco/train2017
cp flat/3.jpg coco/val2017
echo '{}' >coco/annotations/instances_val2017.json
for command in "inspect coco" "train coco --model cifar-cnn" "convert coco coco.mrec"; do
    # shellcheck disable=SC2086
    run 1 $command
    err_has "no class folders"
    err_has "--classes none"
done
run 0 inspect coco --classes none --json; equal "$(number samples)" 2
run 0 inspect coco --classes none --split test --json; equal "$(number samples)" 1
err_has "left out: 1 folder that is no part (annotations)"

# only a part to test with
mkdir only
cp -r d/test only/test
run 0 inspect only; err_has "there is no train part"; out_lacks "--split test"
run 0 digest only --split test --batch 4 --quiet
run 1 inspect only --split train; err_has "no train part"
finish
