# Classes and labels of data given separately: validation and evaluation data are numbered as the training data.
. "$(dirname "$0")/../lib.sh"

run 0 synth d --count 8 --quiet
set -- --model cifar-cnn --batch 40 --epochs 1 --seed 1 --quiet

# table FOLDER FIRST FROM: its pictures and the numbers of their classes, which begin at FROM; only classes from the FIRST-th, from 0
table() {
    n=0
    echo "path,label"
    for class in "$1"/*; do
        [ "$n" -lt "$2" ] || for picture in "$class"/*; do echo "$picture,$((n + $3))"; done
        n=$((n + 1))
    done
}
# and with their names
named() {
    echo "path,label"
    for class in "$1"/*; do
        for picture in "$class"/*; do echo "$picture,${class##*/}"; done
    done
}
table d/test 0 0 >test.csv
table d/test 1 0 >test_lacks.csv
table d/train 0 0 >train.csv
table d/train 0 1 >train_from1.csv
table d/test 1 1 >test_from2.csv
named d/train >train_named.csv
named d/test | grep -v "$(ls d/test | head -1)" >test_named.csv
cp -r d/test lacks
rm -r "lacks/$(ls lacks | head -1)"
cp -r lacks more
mkdir more/zebra
cp "$(find lacks -type f | head -1)" more/zebra/

# by name: a folder, a table, a record file that lack the first class
run 0 train train.csv "$@" --val test_lacks.csv --json
loss=$(number val_loss)
run 0 train d "$@" --val none --checkpoint run
run 0 convert lacks lacks.mrec --quiet
run 0 convert lacks lacks.tar --to tar --quiet
run 0 convert lacks lacks.tfrecord --to tfrecord --quiet
for val in lacks test_named.csv lacks.mrec lacks.tar lacks.tfrecord; do
    run 0 train d "$@" --val $val --json
    equal "$(number val_loss)" "$loss"
    run 0 eval $val --checkpoint run --json
    equal "$(number val_loss)" "$loss"
done
run 0 convert d/train train.tar --to tar --quiet
for data in train_named.csv train.tar; do
    for val in lacks lacks.tar lacks.mrec test_named.csv; do
        run 0 train $data "$@" --val $val --json
        equal "$(number val_loss)" "$loss"
    done
done
run 1 train d "$@" --val more; err_has "more: class zebra is not among the 10 expected"
run 1 eval more --checkpoint run; err_has "class zebra is not among the 10 expected"
out_lacks "accuracy"

# the last archive of a set has neither the first class nor all the others, and knows their names
run 0 convert d/test set.tar --to tar --shard-size 25K --quiet
shard=$(ls set-*.tar | tail -1)
run 0 inspect "$shard"; out_has "classes   10: checks, "
run 0 eval "$shard" --checkpoint run --json; part=$(number val_loss)
mkdir x && tar -xf "$shard" -C x --exclude '*.cls' --exclude __classes__ || fail "tar"
[ "$(find x -name '*.jpg' | sed 's|/[^/]*$||' | sort -u | wc -l)" -lt 9 ] || fail "all classes are in $shard"
set_of=$(dirname "$(dirname "$(find x -name '*.jpg' | head -1)")")
run 0 eval "$set_of" --checkpoint run --json
equal "$(number val_loss)" "$part"
run 0 train train.tar "$@" --val "$shard" --json
equal "$(number val_loss)" "$part"

# names on one side only do not say which class is which
run 0 train train.csv "$@" --val none --checkpoint numbers
for val in d/test lacks; do
    run 1 train train.csv "$@" --val $val
    err_has "$val: names of classes on one side, numbers on the other: expected 10 classes as in train.csv (the numbers 0 to 9), found "
    err_has "--match-classes order"
    run 1 eval $val --checkpoint numbers; err_has "expected 10 classes as in numbers/step-"
done
run 1 train d "$@" --val test_lacks.csv; err_has "numbers of classes here, names on the other side: expected 10 classes as in d"
err_has "found the numbers 1 to 9"
run 0 train train.csv "$@" --val d/test --match-classes order --json
whole=$(number val_loss)
run 0 train train.csv "$@" --val test.csv --json
equal "$(number val_loss)" "$whole"
run 1 train train.csv "$@" --val lacks --match-classes order; err_has "as many classes on both sides"

# a class without samples, and names that no line can hold: names that a format cannot store are reported, and --classes-from gives them again
mkdir gaps gaps/b && cp -r d/test/disc "gaps/a
\\x0a" && cp -r d/test/ring gaps/c
run 0 inspect gaps --json; names=$(grep -o '"classes": [^]]*' out)
for to in mrec tar mds; do
    run 0 convert gaps gaps.$to --quiet; out_lacks "not written"
    run 0 inspect gaps.$to --json; out_has "$names"
done
run 0 convert gaps.mrec gaps.tfrecord --quiet; out_has "the name of 1 class without samples was not written"
run 0 inspect gaps.tfrecord --json; out_has "$(echo "$names" | sed 's/"b"/""/')"
run 0 convert gaps.tfrecord unnamed.tar --quiet
run 0 inspect unnamed.tar --json; out_has "$(echo "$names" | sed 's/"b"/""/')"
run 0 convert gaps gaps.rec --json --quiet; equal "$(number class_names_lost)" 3
rm -r gaps/a* && cp -r d/test/disc gaps/a
run 0 convert gaps simple.tfrecord --quiet
printf 'a\nb\nc\n' >abc; printf 'a\nb\nd\n' >abd
for lacks in gaps.rec simple.tfrecord; do
    run 0 convert $lacks again.mrec --classes-from abc --force --quiet
    run 0 inspect again.mrec; out_has "classes   3: a, b, c"
done
run 1 convert simple.tfrecord x.mrec --classes-from abd --quiet; err_has 'line 3: expected "c", the name that the class has, found "d"'
run 1 convert again.mrec x.mrec --classes-from abc --quiet; err_has "have names"
run 0 export gaps.mrec back --quiet
equal "$(ls back | wc -l)" 3; present back/b
run 0 export again.mrec back2 --quiet
run 0 inspect back2; out_has "classes   3: a, b, c"

# folders that are called by numbers, more than an alphabet has in order, are these numbers
mkdir numbered padded
n=0
for class in d/test/*; do
    cp -r "$class" "numbered/$((n + 3))"
    cp -r "$class" "padded/$(printf '%03d' $((n + 3)))"
    n=$((n + 1))
done
table d/test 0 3 >test_from3.csv
table d/train 0 3 >train_from3.csv
run 0 train train_from3.csv "$@" --val test_from3.csv --json --checkpoint from3
whole=$(number val_loss)
run 0 convert numbered numbered.mrec --quiet
for val in numbered padded numbered.mrec; do
    run 0 train train_from3.csv "$@" --val $val --json
    equal "$(number val_loss)" "$whole"
    run 0 eval $val --checkpoint from3 --json
    equal "$(number val_loss)" "$whole"
done
run 0 train padded "$@" --val none --checkpoint padded_run
run 0 eval numbered --checkpoint padded_run --json
whole=$(number val_loss)
run 0 eval test_from3.csv --checkpoint padded_run --json
equal "$(number val_loss)" "$whole"
run 1 eval test.csv --checkpoint padded_run; err_has "a class is not among those expected"

# labels begin where those trained on do, whatever the smallest here is
run 0 train train.csv "$@" --val test_lacks.csv --label-offset 0 --json --checkpoint from0
loss=$(number val_loss)
run 0 train train.csv "$@" --val test_lacks.csv --json
equal "$(number val_loss)" "$loss"
! grep -q "is subtracted" err || fail "$last: reports an offset that was not taken"
run 0 eval test_lacks.csv --checkpoint from0 --json
equal "$(number val_loss)" "$loss"
run 0 train train_from1.csv "$@" --val test_from2.csv --json --checkpoint from1
equal "$(number val_loss)" "$loss"
run 0 eval test_from2.csv --checkpoint from1 --json
equal "$(number val_loss)" "$loss"
run 1 eval test_from2.csv --checkpoint from1 --label-offset 0; err_has "expected 10 classes as in from1"
err_has "(the numbers 0 to 9), found the numbers 2 to 10"

# where classes begin is decided over all data that are used together, and a record file keeps the numbers
run 0 train train.csv "$@" --val test_lacks.csv --json
loss=$(number val_loss)
run 0 convert train.csv train.mrec --quiet
run 0 convert test_lacks.csv test_lacks.mrec --quiet
for val in test_lacks.csv test_lacks.mrec; do
    run 0 train train.mrec "$@" --val $val --json
    equal "$(number val_loss)" "$loss"
    run 0 train test_lacks.csv "$@" --val train.csv # the first class is missing where it trains
    out_has "10 classes"
    ! grep -q "is subtracted" err || fail "$last: reports an offset that was not taken"
done
run 0 train train_from1.csv "$@" --val test_from2.csv; err_has "train_from1.csv: labels start at 1: 1 is subtracted"
out_has "10 classes"
run 0 train train_from1.csv "$@" --val test_from2.csv --epochs 2
whole=$(sed -n 's/^weights *\([0-9a-f]*\).*/\1/p' out)
run 0 train train_from1.csv "$@" --val test_from2.csv --checkpoint half
run 0 train train_from1.csv "$@" --val test_from2.csv --epochs 2 --checkpoint half --resume
equal "$(sed -n 's/^weights *\([0-9a-f]*\).*/\1/p' out)" "$whole"
run 0 predict test_from2.csv --checkpoint half
equal "$(sed 1d out | cut -d , -f 3 | sort -n | uniq | tr '\n' ' ')" "2 3 4 5 6 7 8 9 10 "
run 0 convert train_from1.csv declared.mrec --label-offset 1 --quiet # said once, it stays said
run 0 train declared.mrec "$@" --val none; err_has "labels start at 1"
run 0 convert declared.mrec again.tar --to tar --quiet
run 0 train again.tar "$@" --val none; err_has "labels start at 1"
run 0 inspect again.tar --record 0; out_has "label     int 1"

# labels that are no classes are named by every command
printf 'cat' >n.cls
printf '{"label": "cat"}' >n.json
cp "$(find d/test -type f | head -1)" n.jpg
cp n.jpg m.jpg
tar -cf text.tar n.jpg n.cls
tar -cf json.tar n.jpg n.json
for command in inspect "train --model cifar-cnn"; do
    # shellcheck disable=SC2086 # a command and its options
    run 1 $command text.tar
    err_has "text.tar: sample 0, offset"
    err_has "no sample has a label that is a class; the first: member .cls: expected a class as whole number, found \"cat\""
done
run 0 inspect json.tar
out_has "no class is taken: member .json, field \"label\": expected a class as whole number, found a text, as in the first sample"
run 1 train json.tar --model cifar-cnn; err_has "no class is taken"
printf 'path,label\nn.jpg,100\nm.jpg,200\n' >gaps.csv
run 0 inspect gaps.csv; out_has "classes are the numbers 0 to 200; 199 of these 201 have no sample: 0, 1, 2 and 196 more"
printf 'path,label\nn.jpg,20231106\nm.jpg,20231107\n' >dates.csv
run 0 inspect dates.csv; out_has "20231106 of these 20231108 have no sample"
printf 'path,label\nn.jpg,4\nm.jpg,4\n' >same.csv
run 0 inspect same.csv; out_has "all 2 samples have one class, 4"
# archives and records with other classes under the same numbers are no set; a mix matches them by name, whoever wants them takes numbers
mkdir part && cp -r "$(ls -d d/test/* | sed -n 2p)" part && cp -r "$(ls -d d/test/* | sed -n 3p)" part
mkdir three && for k in 1 2 3; do cp -r "$(ls -d d/train/* | sed -n ${k}p)" three; done
for to in tar tfrecord; do
    run 0 convert three a.$to --quiet; run 0 convert part b.$to --quiet
    key=cls; [ $to = tar ] || key=image/class/label
    run 1 inspect "{a,b}.$to"; err_has "--label-key $key"; err_has "b.$to"; err_has "open them as a mix"
    run 0 inspect "{a,b}.$to" --label-key $key; out_has "classes   3"; out_lacks "classes   3:"
    printf 'millrace mix 1\n1 a.%s\n1 b.%s\n' $to $to >ab.mix
    run 0 convert ab.mix ab.mrec --quiet --force; run 0 export ab.mrec ab-$to --quiet
    for class in part/*; do
        name=${class##*/}
        equal "$(find ab-$to -path "*$name/*" -type f -exec cat {} + | wc -c)" "$(cat "three/$name"/* "$class"/* | wc -c)"
    done
    run 0 convert three c.$to --quiet; run 0 inspect "{a,c}.$to"; out_has "classes   3: "
done
finish
