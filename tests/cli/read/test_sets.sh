#!/bin/sh
# Sets of several files as people have them: the files that are taken, the report on the others, and the errors.
# usage: test_sets.sh MILLRACE [JSON_LINES]
. "$(dirname "$0")/../lib.sh"

run 0 synth small --count 6 --test-count 3 --classes 4 --size 32 --quiet
run 0 convert small one.tar --to tar --quiet
run 0 convert small two.tar --to tar --split test --quiet

# Names of webdataset's own examples.
mkdir net
cp one.tar net/imagenet-train-000000.tar
cp two.tar net/imagenet-val-000000.tar
run 0 inspect net
out_has "samples   24 (a test part is there too: --split test)"
run 0 inspect net --split test
out_has "samples   12"
for command in "convert net net.mrec" "digest net" "verify net" "export net back"; do
    # shellcheck disable=SC2086 # words
    run 0 $command
    err_has "net: the train part is taken; --split test takes the other"
done
run 0 digest net --split train
[ ! -s err ] || fail "$last: expected nothing on stderr"
run 0 digest small
err_has "small: the train part is taken; --split test takes the other"
run 0 train net --model cifar-cnn --epochs 1 --batch 8 --val net.mrec --quiet
err_has "net: its test or validation part is not used: --val net.mrec"
run 0 train net --model cifar-cnn --epochs 1 --batch 8 --val none --quiet
[ ! -s err ] || fail "$last: a note, though --val none asked for no validation"
run 0 train net --model cifar-cnn --epochs 1 --batch 8 --quiet
out_has "validation"

# A test split alone is not trained on without --split test, and a run does not validate on its training data.
mkdir only
cp two.tar only/imagenet-val-000000.tar
run 1 train only --model cifar-cnn --epochs 1 --batch 4 --quiet
err_has "only: there is a test or validation part here, but no train part"
err_has "--split test"
run 0 digest only
err_has "there is no train part: the test or validation part is all that is taken"
run 0 train only --split test --model cifar-cnn --epochs 1 --batch 4 --quiet
run 0 train net --val only --model cifar-cnn --epochs 1 --batch 8 --quiet

# A file named like the others was meant to belong to the set.
: >net/imagenet-train-000001.tar
run 1 inspect net
err_has "net/imagenet-train-000001.tar: named like the files of this data set, but it is not one (it is empty (0 bytes))"
head -c 300 /dev/zero >net/imagenet-train-000001.tar
run 1 digest net
err_has "its first bytes are not of this format"
rm net/imagenet-train-000001.tar
echo "read me" >net/README.md
echo "{}" >net/meta.json
run 0 inspect net
err_has "left out: README.md, meta.json"

# A pattern takes all that it names.
run 0 digest "net/*.tar"
err_has "files of several parts are taken together, as the pattern says: 1 of train, 1 of validation"
mkdir net/imagenet-more.tar
run 1 digest "net/*.tar"
err_has "net/imagenet-more.tar: the pattern names it, and it is no file"
rmdir net/imagenet-more.tar

# Addresses that are not supported, and the pieces of one split file.
run 1 inspect s3://bucket/train.tar
err_has "s3://bucket/train.tar: addresses of this kind are not read: expected a file, a folder"
run 1 inspect gs://bucket/train.mrec
err_has "http:// or https://"
run 0 convert small parts.mrec --shard-size 4096 --quiet
rm -f parts.mrec
run 1 inspect parts.mrec
err_has "there is no file of this name, but pieces of one, the first is parts-00000.mrec"
run 0 convert small set --to tfrecord --shard-size 4096 --quiet
run 1 digest set
err_has "the first is set-00000-of-"

# Where a class is expected, in the words of the format.
mkdir plain
cp small/train/*/00000.jpg plain/ 2>/dev/null
tar cf plain.tar -C plain .
run 1 train plain.tar --model cifar-cnn --quiet
err_has "expected a class for each picture, found none; a member KEY.cls beside each KEY.jpg"

# Fields by their names without the ending that an archive gives them.
if command -v python3 >/dev/null; then
    python3 - <<'END'
import struct, tarfile, io
pictures = sorted(__import__("glob").glob("small/train/*/0000*.jpg"))[:6]
head = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 4), }"
head += b" " * (117 - len(head)) + b"\n"
boxes = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + struct.pack("<4f", 0, 0, 0.5, 0.5)
with tarfile.open("boxes.tar", "w") as t:
    for k, path in enumerate(pictures):
        for name, data in (("jpg", open(path, "rb").read()), ("cls", b"1"), ("boxes.npy", boxes)):
            info = tarfile.TarInfo("%04d.%s" % (k, name))
            info.size = len(data)
            t.addfile(info, io.BytesIO(data))
END
    run 0 digest boxes.tar --fields boxes
    full=$(cat out)
    run 0 digest boxes.tar --fields boxes.npy
    equal "$(cut -d' ' -f1 out)" "$(echo "$full" | cut -d' ' -f1)"
    run 0 convert boxes.tar boxes.mrec --quiet
    run 0 digest boxes.mrec --fields boxes
    run 0 convert boxes.mrec again.tar --to tar --quiet
    run 0 digest again.tar --fields boxes
    run 2 digest boxes.tar --fields box
    err_has "there is no field 'box' in the data"
fi

# a second download of an archive: reported to readers of the set, and nothing is left out
mkdir twice
run 0 convert small twice/a.tar --to tar --quiet
cp twice/a.tar "twice/a (1).tar"
samples=$(tar tf twice/a.tar | grep -c 'jpg$')
run 0 convert twice twice.mrec --json; equal "$(number records)" $((2 * samples))
err_has "1 of 2 files has the same bytes as another (a.tar as a (1).tar): every sample in it counts twice"
run 0 train twice --model cifar-cnn --epochs 1 --quiet; err_has "1 of 2 files has the same bytes as another"
run 0 train twice/a.tar --model cifar-cnn --epochs 1 --quiet
! grep -q "of another" err || fail "$last: reports one archive"

finish
