# The made data set: counts, the same bytes for the same seed, nothing overwritten unasked.
. "$(dirname "$0")/../lib.sh"

run 0 synth a --classes 3 --count 10 --seed 5
out_has "3 classes, 30 pictures to train on, 6 to test with"
equal "$(find a/train -name '*.jpg' | wc -l)" 30
equal "$(find a/test -name '*.jpg' | wc -l)" 6
run 0 synth b --classes 3 --count 10 --seed 5 --json
equal "$(number train)" 30
diff -r a b >/dev/null || fail "the same seed made other files"
run 0 synth c --classes 3 --count 10 --seed 6
cmp -s a/train/disc/00000.jpg c/train/disc/00000.jpg && fail "another seed made the same file"
run 1 synth a --classes 3 --count 10
err_has "not empty"
run 0 synth a --classes 3 --count 12 --seed 5 --force
equal "$(find a/train -name '*.jpg' | wc -l)" 36
run 0 synth p --classes 12 --count 2 --image png --channels 1 --size 16 --max-size 40
run 0 inspect p --json
equal "$(number class_count)" 12
run 0 verify p
echo text >no-folder
run 1 synth no-folder/below
err_has "cannot make the folder"
finish
