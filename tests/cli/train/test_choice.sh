# digest, profile, bench, train, eval and predict that choose samples: the same batches as from the set that convert makes with the same options, in every
# process; validation follows; a run resumes with the same choice only.
. "$(dirname "$0")/../lib.sh"
. "$here/ranks/together.sh"
of_rank() { :; }

run 0 synth d --classes 4 --count 20 --test-count 5 --size 32 --quiet
cp d/train/disc/00000.jpg d/train/ring/zcopy.jpg # the bytes of another class's picture
printf 'ring\tround\ndisc\tround\n' >rename
digest() { run 0 digest "$@" --quiet --batch 7 --epochs 2; cut -d ' ' -f 1 out; }
# chosen OPTION...: the set made of the choice and the choice itself give the same batches
chosen() {
    run 0 convert d made.mrec "$@" --quiet --force
    of_made=$(digest made.mrec)
    equal "$(digest d "$@")" "$of_made"
    together 0 2 digest d "$@" --quiet --batch 7 --epochs 2
    equal "$(cut -d ' ' -f 1 out)" "$of_made"
    ! grep -q 'rank 1.*are taken' err || fail "more than one process names the samples taken"
}
chosen --only-classes ring,disc
chosen --where 'label>0,key!~*/00003.jpg'
chosen --dedup bytes
chosen --rename-classes rename --dedup pixels --take-each 0.25:1
chosen --only-classes ring,square --take-each 0:0.5
run 0 digest d --sample 30 --sample-seed 5 --quiet; err_has "30 of 81 samples are taken"; drawn=$(cat out)
run 0 digest d --sample 30 --sample-seed 5 --quiet --seed 0 --workers 1; equal "$(cat out)" "$drawn"
run 0 convert d made.mrec --sample 30 --seed 5 --quiet --force
run 0 digest made.mrec --quiet; equal "$(cat out)" "$drawn"
run 0 digest d --only-classes disc --quiet; equal "$(grep -c 'samples are taken' err)" 1 # said once
run 1 digest d --only-classes cat --quiet; err_has 'no class "cat"'
run 2 digest d --where 'wide>3' --quiet; err_has "--where"
run 1 digest d --where 'label>9' --quiet; err_has "no sample is left of 81"

# a mix, an archive, and samples that were withdrawn
printf '%s\n' "millrace mix 1" "3 d/train" "1 d/test" >two.txt
run 0 digest two.txt --where 'class=disc' --quiet; err_has "25 of 101 samples are taken"; drawn=$(cat out)
run 0 digest two.txt --where 'class=disc' --quiet --workers 1 --io pread; equal "$(cat out)" "$drawn"
run 1 digest two.txt --where 'key=ring/zcopy.jpg' --quiet; err_has "d/test" # of each set some
run 0 convert d d.tar --quiet
run 0 digest d.tar --only-classes disc --quiet; err_has "20 of 81 samples are taken"
run 0 withdraw d/train --where 'key~ring/0000[0-4].jpg' --quiet
run 0 digest d --only-classes ring --quiet; err_has "16 of 76 samples are taken"
chosen --only-classes ring,disc --take-each 0:0.5
run 0 restore d/train --all --quiet

run 0 profile d --only-classes ring,disc --devices sim:1,step=1ms --augment 'resize(32x32)' --batch 8 --steps 3 --seconds 0.05 --quiet
err_has "41 of 81 samples are taken"

run 0 bench loader d --where class=ring --batch 8 --seconds 0.05 --rounds 1 --json --quiet; err_has "21 of 81 samples are taken"
run 2 bench trainer --sample 4; err_has "it reads no data"

# training: the weights of the set that convert makes, validation by the names of the classes
set -- --model cifar-cnn --augment 'resize(16x16)' --batch 8 --epochs 2 --threads 1 --json --quiet
for option in "--only-classes ring,disc" "--rename-classes rename --where key!~*/00003.jpg" "--rename-classes rename --only-classes round,frame"; do
    # shellcheck disable=SC2086 # options
    run 0 convert d made.mrec $option --quiet --force
    # shellcheck disable=SC2086
    run 0 convert d test.mrec --split test ${option%--where*} --quiet --force
    run 0 train made.mrec --val test.mrec "$@"
    weights=$(text weights) loss=$(number val_loss)
    # shellcheck disable=SC2086
    run 0 train d $option "$@"
    equal "$(text weights) $(number val_loss)" "$weights $loss"
    # shellcheck disable=SC2086
    run 0 train d --val d/test $option "$@"
    equal "$(text weights) $(number val_loss)" "$weights $loss"
done

# held-out samples: of each class the same share, no copy on both sides
run 0 train d --hold-out 0.25 --stratify --only-classes frame,square "$@"; err_has "30 of 81 samples are taken"
run 0 convert d made.mrec --only-classes frame,square --take-each 0:0.75 --quiet --force
run 0 convert d held.mrec --only-classes frame,square --take-each 0.75:1 --quiet --force
weights=$(text weights)
run 0 train d --hold-out 0.25 --stratify --only-classes frame,square "$@"
weights=$(text weights) loss=$(number val_loss)
run 0 train made.mrec --val held.mrec "$@"
equal "$(text weights) $(number val_loss)" "$weights $loss"
run 0 train d --hold-out 0.25 --stratify --dedup bytes "$@"; err_has "left out: 1 with the same bytes"
run 2 train d --hold-out 0.25 --dedup bytes "$@"; err_has "--dedup with --hold-out needs --stratify"
run 2 train d --stratify "$@"; err_has "--stratify needs --hold-out"
run 2 train d --stratify --hold-out 0.25 --take-each 0:0.5 "$@"; err_has "give one of them"
run 0 train d --hold-out 0.25 --where 'class=disc' "$@" # both sides

# in several processes, and interrupted
set -- --model cifar-cnn --augment 'resize(16x16)' --batch 8 --epochs 2 --json --quiet
run 0 train d --only-classes ring,disc --parts 2 "$@"
weights=$(text weights)
together 0 2 train d --only-classes ring,disc --parts 2 "$@" --devices cpu:1
equal "$(text weights)" "$weights"
run 0 train d --only-classes ring,disc --parts 2 "$@" --checkpoint run --checkpoint-steps 1 --max-steps 4
for other in "" "--only-classes ring" "--only-classes ring,disc --where label=0" "--only-classes ring,disc --sample 20"; do
    # shellcheck disable=SC2086
    run 1 train d $other "$@" --parts 2 --checkpoint run --resume
    err_has "these are not the data the checkpoint was trained on"; err_has "--only-classes"; err_has "--sample"
done
run 0 train d --only-classes ring,disc --parts 2 "$@" --checkpoint run --resume
equal "$(text weights)" "$weights"

# names alone that change are another choice: numbers and samples are the same
printf 'ring\tround\n' >names
run 1 train d --only-classes ring,disc --parts 2 "$@" --checkpoint run --resume --rename-classes names; err_has '"ring"'
printf 'ring\tzero\n' >names
run 1 train d --only-classes zero,disc --parts 2 "$@" --checkpoint run --resume --rename-classes names
err_has "these are not the data the checkpoint was trained on"

# evaluation and prediction: as of the set that convert makes; a choice of other classes is refused
evaluated() { run 0 eval "$@" --json --quiet; echo "$(number samples) $(number val_loss) $(number val_accuracy)"; }
run 0 convert d made.mrec --split test --only-classes ring,disc --where 'key!~*/00003.jpg' --quiet --force
of_made=$(evaluated made.mrec --checkpoint run)
equal "$(evaluated d --checkpoint run --only-classes ring,disc --where 'key!~*/00003.jpg')" "$of_made"
equal "$(grep -c 'samples are taken' err)" 1
run 0 convert d made.mrec --split test --only-classes disc --quiet --force # a set without one of the classes
of_made=$(evaluated made.mrec --checkpoint run)
equal "$(evaluated made.mrec --checkpoint run --only-classes ring,disc)" "$of_made"
run 1 eval made.mrec --checkpoint run --only-classes rign,disc --quiet; err_has 'no class "rign"'
run 1 eval d --checkpoint run --quiet; err_has "class frame is not among the 2 expected"
run 1 eval d --checkpoint run --only-classes ring,square --quiet; err_has 'found "square"'
run 1 eval d --checkpoint run --rename-classes rename --quiet; err_has 'found "round"'
run 0 train d --rename-classes rename "$@" --checkpoint merged
run 1 eval d --checkpoint merged --quiet; err_has "class disc is not among the 3 expected"
run 0 convert d made.mrec --split test --rename-classes rename --quiet --force
of_made=$(evaluated made.mrec --checkpoint merged)
equal "$(evaluated d --checkpoint merged --rename-classes rename)" "$of_made"
{
    echo "path,label" # classes are numbers
    n=0
    for class in d/test/*; do
        for picture in "$class"/*; do echo "$picture,$n"; done
        n=$((n + 1))
    done
} >numbers.csv
run 0 train numbers.csv --val none "$@" --checkpoint numbered
printf '%s\n' a b c d >four
run 1 eval numbers.csv --checkpoint numbered --classes-from four --quiet; err_has "which are numbers"
run 0 convert numbers.csv made.mrec --only-classes 1,3 --quiet --force
of_made=$(evaluated made.mrec --checkpoint numbered)
equal "$(evaluated numbers.csv --checkpoint numbered --only-classes 1,3)" "$of_made"

run 0 predict d --checkpoint run --quiet --out all.csv
run 0 predict d --checkpoint run --quiet --where 'key~*/00001.jpg' --out some.csv # numbers and names as in the set
grep '/00001.jpg' all.csv >expected
sed 1d some.csv >found; cmp expected found || fail "other rows: $(diff expected found)"
equal "$(sed -n 2p some.csv | cut -d , -f 1-2)" "1,test/disc/00001.jpg"
run 0 predict d --checkpoint run --quiet --only-classes ring --sample 2 --json
equal "$(grep -c '"sample": 1[0-4], .*"label": "ring"' out)" 2
run 0 predict d --checkpoint run --quiet --take 0.5:1
sed 1d out >found; equal "$(grep -cxFf found all.csv)" 10

# a damaged sample among the chosen ones has the number and the name that it has in the data
head -c 300 d/train/ring/00002.jpg >short && cp short d/train/ring/00002.jpg
run 3 digest d --only-classes ring --bad skip --bad-list bad.jsonl --quiet
equal "$(grep -c . bad.jsonl)" 1; grep -q 'ring/00002.jpg' bad.jsonl || fail "the damaged sample is not in the list: $(cat bad.jsonl)"
run 3 digest d --only-classes disc,ring --where 'class=ring' --bad skip --bad-list bad.jsonl --quiet
run 0 digest d --only-classes disc --bad skip --quiet # not among them
finish
