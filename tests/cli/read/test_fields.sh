# --fields: the fields in batches, under any loader settings, and the errors. Sequences need no --fields.
. "$(dirname "$0")/../lib.sh"

# sequences: the tokens are taken by themselves, and no setting of the loader shows
awk 'BEGIN { for (i = 0; i < 90; i++) { for (k = 0; k < 1 + i * 7 % 23; k++) printf "%d,", (i * k) % 50; print i % 10 } }' >notes.csv
run 0 convert notes.csv notes.mrec --quiet
set -- --epochs 2 --seed 3 --batch 8 --width-multiple 4
run 0 digest notes.mrec "$@"; cp out want
for how in "--workers 1" "--workers 5" "--prefetch off" "--io pread" "--parts 3" "--devices cpu:3" "--split-at 5" "--fields tokens"; do
    # shellcheck disable=SC2086
    run 0 digest notes.mrec "$@" $how
    same out want
done
run 0 digest notes.csv "$@"; same out want
for how in "--width-multiple 5" "--fields tokens:pad=1" "--fields tokens,label" "--fields label"; do
    # shellcheck disable=SC2086
    run 0 digest notes.mrec "$@" $how
    cmp -s out want && fail "$last: the same digest"
done
run 0 digest notes.csv "$@" --json; out_has '"fields": [{"name": "tokens", "role": "plain", "dtype": "i32", "most": 24}]'
run 0 bench loader notes.mrec --seconds 0.05 --rounds 1; out_has "fields tokens (plain, i32, at most "

# what cannot be
run 2 digest notes.csv --fields nothing; err_has "there is no field 'nothing' in the data; there are: tokens, label"
run 2 digest notes.csv --fields tokens:boxes; err_has "no pictures that it could follow"
run 2 digest notes.csv --fields tokens:box_values; err_has "name the boxes that they belong to before it" # Python's names are known
run 2 digest notes.csv --fields tokens:in_pixels; err_has "only boxes can be given in pixels"
run 2 digest notes.csv --fields tokens:wide; err_has "--fields: of tokens: expected plain, boxes, values, mask, most=N (N from 1), pad=X or pixels; found 'wide'"
run 2 digest notes.csv --fields tokens:most=0; err_has "found 'most=0'"
run 2 digest notes.csv --fields tokens:pad=; err_has "found 'pad='"
run 2 digest notes.csv --fields tokens:pad=0.5; err_has "padding with 0.5 is not possible, its elements are i32"
run 2 digest notes.csv --fields a,b,c,d,e; err_has "--fields: expected at most 4 fields, found more"
run 2 digest notes.csv --augment flip; err_has "has no pictures to augment"
run 2 digest notes.csv --cache ram:1M; err_has "leave out --cache or --fields"
run 1 digest notes.csv --fields tokens:most=20; err_has "field tokens: expected at most 20 elements, found 2"
run 3 digest notes.csv --fields tokens:most=20 --bad replace; err_has "takes its place"

# a batch that has nothing but a sample to skip is no reason to stop: its rows are padding, as wide as all
awk 'BEGIN { for (i = 0; i < 20; i++) { for (k = 0; k < 1 + i % 5; k++) printf "%d,", (i * k) % 50; print i % 10 } }' >short.csv
run 0 train short.csv --model notes-mlp --epochs 1 --batch 4 --checkpoint cp --quiet
run 3 eval notes.csv --checkpoint cp --bad skip --batch 1; err_has "expected at most 5 elements"

# recurrent networks take sequences, too
run 0 train short.csv --model gru-notes --epochs 1 --batch 4 --max-steps 2 --quiet --json; out_has '"model": "gru-notes"'

# networks take pictures
run 1 train notes.csv --model mnist-cnn --epochs 1; err_has "expected pictures, found none; networks of sequences"
run 0 synth d --count 2 --quiet
run 2 train d --model cifar-cnn --fields label; err_has "--fields: a network takes its pictures or sequences and no more"
run 0 digest d --fields label --json; out_has '"fields": [{"name": "label", "role": "plain", "dtype": "i64"}]'
run 2 digest d --training --augment "rrc(24,covers=0.1),flip"; err_has "augment covers= needs boxes: no field of "
run 2 digest d --training --augment "rrc(24,covers=2),flip"; err_has "expected the part of a box's area that a crop covers at least: above 0, at most 1"
finish
