# mix: data sets named by a text are read as one; a command's result for the mix is its result for the sets.
. "$(dirname "$0")/../lib.sh"

run 0 synth d --count 4 --quiet
mkdir "a part"
for class in $(ls d/train | head -4); do cp -r "d/train/$class" "a part/"; done
run 0 convert "a part" records.mrec --quiet
run 0 convert d/train all.tar --to tar --quiet
cat >mix.txt <<END
millrace mix 1
# four classes of ten, then all of them
3 a part
1 all.tar
END

# inspect a mix
run 0 inspect "a part" --json; part=$(number samples)
run 0 inspect all.tar --json; all=$(number samples)
run 0 inspect mix.txt --json
equal "$(text format)" mix
equal "$(number samples)" $((part + all))
equal "$(number class_count)" 10
run 0 inspect mix.txt
out_has "format    mix"
out_has "sets      2: a part (16 samples, share 0.75), all.tar (40 samples, share 0.25)"
run 0 verify mix.txt
# parts: of the sets that have any; each set is asked for the one that is wanted
printf 'millrace mix 1\n1 d\n1 all.tar\n' >parts.txt
run 0 inspect parts.txt; out_has "parts     train (taken), test"
run 1 inspect parts.txt --split test; err_has "all.tar: the data has no test part; line 3 of parts.txt names it"
printf 'millrace mix 1\n1 d\n2 d\n' >parts.txt
run 0 inspect parts.txt --split test; out_has "parts     train, test (taken)"
mkdir only
cp -r d/test only/
printf 'millrace mix 1\n1 d\n1 only\n' >parts.txt
run 1 train parts.txt --model cifar-cnn --val none --epochs 1
err_has "there is no train part: the test or validation part is all that is taken (only)"

# classes are numbered by their first appearance, and labels with them: a record file of it says the same
run 0 convert mix.txt mixed.mrec --quiet
run 0 inspect mixed.mrec --json; equal "$(number class_count)" 10
equal "$(grep -o '"classes": \[[^]]*' out | tr , '\n' | head -4 | sed 's/.*"\([^"]*\)"$/\1/' | tr '\n' ' ')" "$(ls "a part" | tr '\n' ' ')"
run 0 verify mixed.mrec
set -- --epochs 2 --seed 3 --batch 16 --training --augment cifar
run 0 digest mixed.mrec "$@" --order sequential; cp out want
run 0 digest mix.txt "$@"; cp out shuffled # by its shares, which record files do not know
cmp -s shuffled want && fail "$last: the sets are read one after another"
for how in "" "--workers 1" "--workers 5" "--prefetch off" "--io pread" "--readers 2" "--direct" "--cache ram:1G" "--split-at 3" "--cache disk:cache:1G"; do
    # shellcheck disable=SC2086
    run 0 digest mix.txt "$@" $how --order sequential
    same out want
    # shellcheck disable=SC2086
    run 0 digest mix.txt "$@" $how
    same out shuffled
done
run 2 digest mix.txt "$@" --repeats 2; err_has "a mix says which samples come"
# no set of it lies in files that samples share, or each does: the same samples
printf 'millrace mix 1\r\n3 records.mrec\r\n1 all.tar\r\n' >files.txt
printf 'millrace mix 1\n3 a part\n1 d/train\n' >folders.txt
for mix in files.txt folders.txt; do
    run 0 digest $mix "$@" --order sequential
    cp out other
    run 0 convert $mix other.mrec --force --quiet
    run 0 digest other.mrec "$@" --order sequential
    same out other
done
run 0 digest files.txt "$@" --order sequential; same out want
# a network is trained and evaluated on it as on the record file
set -- --model cifar-cnn --batch 16 --epochs 1 --seed 1 --order sequential --quiet --json
run 0 train mixed.mrec --val mixed.mrec "$@"; loss=$(number val_loss)
run 0 train mix.txt --val mix.txt "$@"
equal "$(number val_loss)" "$loss"
# some of the samples
run 0 digest mix.txt --take 0:0.5 --epochs 1; out_has " 28 samples"

# nothing that is read is written over, nor is anything written into it
run 1 convert mix.txt "a part/x.mrec"; err_has "the output would lie inside the input (a part)"
run 1 convert files.txt records.mrec --force; err_has "this is also the input (records.mrec)"
cp mix.txt same; run 1 convert same same --force; err_has "this is also the input (same)"
run 1 export mix.txt "a part/more"; err_has "this is inside the input (a part)"
run 0 export mix.txt out_folder --quiet

# a damaged sample has the number it has here, and the place where it lies
first=$(ls "a part" | head -1)
picture=$(ls "a part/$first" | head -1)
: >"a part/$first/$picture"
run 1 verify mix.txt; out_has "a part/$first/$picture: sample 0"

# wrong texts
wrong() {
    printf 'millrace mix 1\n%b\n' "$1" >wrong.txt
    run 1 inspect wrong.txt
    err_has "$2"
}
wrong "0 a part" "wrong.txt: line 2: expected a share"
wrong "1 gone" "gone: cannot look at it: No such file or directory; line 2 of wrong.txt names it"
wrong "1 mix.txt" "a mix is no part of another one: name its data sets instead; line 2 of wrong.txt names it"
printf 'path,label\n%s,0\n%s,1\n' "a part/$first/$(ls "a part/$first" | tail -1)" "a part/$first/$(ls "a part/$first" | sed -n 2p)" >numbers.csv
wrong "1 numbers.csv\n1 all.tar" "all.tar (line 3) has them ("
err_has "numbers.csv (line 2) has the numbers 0 to 1"
# names that are numbers are these numbers, in all sets of a mix
mkdir called called/1 called/01
cp "a part/$first/$(ls "a part/$first" | tail -1)" called/1/a.jpg
cp "a part/$first/$(ls "a part/$first" | tail -1)" called/01/b.jpg
mkdir padded padded/00 padded/12
cp called/1/a.jpg padded/00/a.jpg
cp called/1/a.jpg padded/12/b.jpg
printf 'millrace mix 1\n1 numbers.csv\n1 padded\n' >numbers.txt
run 0 inspect numbers.txt; out_has "classes   13"
run 0 inspect numbers.txt --record 3; out_has "label     int 12"
printf 'millrace mix 1\n1 called\n1 padded\n' >numbers.txt
run 0 inspect numbers.txt; out_has "classes   3: 01, 00, 12"
finish
