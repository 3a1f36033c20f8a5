# A network from the builder, which has no name here: its checkpoint brings it, so that every command goes on with it, to the
# same bits.
. "$(dirname "$0")/../lib.sh"
. "$here/ranks/together.sh"
own_nets=$3
near() { # of floats that were added up in another order
    awk -v a="$1" -v b="$2" 'BEGIN { d = a > b ? a - b : b - a; exit !(b > 0 && d <= 1e-5 * b) }' || fail "$last: expected about $2, found $1"
}
trained() { # KIND DATA FOLDER EPOCHS STEPS: the hash of its weights
    last="own_nets $*"
    "$own_nets" "$@" >hash.txt 2>err || fail "$last"
    cut -d' ' -f1 hash.txt
}

run 0 synth d --classes 3 --count 20 --seed 1 --quiet
d=d/train
whole=$(trained classes $d whole 3 0)
part=$(trained classes $d part 3 2)
[ -n "$whole" ] && [ "$whole" != "$part" ] || fail "own_nets: expected two runs, found '$whole' and '$part'"

run 0 inspect --model whole
out_has "batch_norm relu"
out_has "loss x 0.5"
run 0 inspect --model part --json --svg part.svg
out_has '"model": "of-classes"'
present part.svg
run 0 eval $d --checkpoint whole --json
val_loss=$(number val_loss)
equal "$(number samples)" 60
run 0 eval $d --checkpoint whole --devices cpu:3 --json
near "$(number val_loss)" "$val_loss"
run 0 eval $d --checkpoint whole --confusion c.csv
run 0 predict $d --checkpoint whole
equal "$(wc -l <out)" 61
run 0 export-weights whole w.safetensors
run 0 verify $d --quiet

# resumed to the weights that its own program comes to, here alone and by two processes
cp -r part two
cp -r part again
run 0 train $d --checkpoint part --resume --devices cpu:1 --json
equal "$(text weights)" "$whole"
equal "$(sed -n 's/.*"model_id": "\([a-z]*\)".*/\1/p' out)" own
together 0 2 train $d --checkpoint two --resume --devices cpu:1 --json --quiet
out_has '"model_id": "own"'
out_has '"complete": true'
run 0 eval $d --checkpoint two --quiet
# and by its own program, after the command's steps
run 0 train $d --checkpoint again --resume --devices cpu:1 --max-steps 2 --quiet
run 0 inspect --model again

# what does not fit is refused
run 1 eval $d --checkpoint whole --augment "resize(24x24)"; err_has 'takes pictures of 16 x 16 in 3 channels, found 24 x 24 in 3; --augment "resize(16x16)"'
run 2 train $d --checkpoint part --resume --model cifar-cnn; err_has "--model: the checkpoint was trained with of-classes, found cifar-cnn"
run 1 export-weights whole t.npz --names torchvision; err_has "not of of-classes"
run 0 synth four --classes 4 --count 4 --quiet
run 1 eval four --checkpoint whole --split train; err_has "class frame is not among the 3 expected"

# targets, which the network asks of the data, and whose values predict prints
printf 'path,position\n' >t.csv
n=0
for f in "$d"/*/*.jpg; do
    printf '%s,%s\n' "$f" "0.$((n % 9))" >>t.csv
    n=$((n + 1))
done
run 0 convert t.csv t.mrec --target-key position --quiet
whole=$(trained targets t.mrec numbers 2 0)
trained targets t.mrec numbers-part 2 2 >/dev/null
run 0 eval t.mrec --checkpoint numbers --json
equal "$(text loss_name) $(text targets)" "huber position"
run 0 predict $d --checkpoint numbers
equal "$(head -1 out)" "sample,name,value_0,error"
run 0 train t.mrec --checkpoint numbers-part --resume --devices cpu:1 --json
equal "$(text weights)" "$whole"

# fields alone, of data without pictures
"$own_nets" write bare.mrec || fail "own_nets write"
whole=$(trained bare bare.mrec bare 4 0)
trained bare bare.mrec bare-part 4 5 >/dev/null
run 0 eval bare.mrec --checkpoint bare --json
equal "$(number samples)" 60
run 0 predict bare.mrec --checkpoint bare
equal "$(wc -l <out)" 61
run 0 train bare.mrec --checkpoint bare-part --resume --devices cpu:1 --json
equal "$(text weights)" "$whole"
# sequences of numbers with 3 distinct values, one for each channel of a picture
awk 'BEGIN { for (k = 0; k < 60; k++) { for (i = 0; i < 5; i++) printf "%d ", (k * 3 + i * (k % 3)) % 3; print k % 3 } }' >words.txt
run 0 convert words.txt words.mrec --quiet
whole=$(trained numbers words.mrec words 3 0)
trained numbers words.mrec words-part 3 4 >/dev/null
run 0 eval words.mrec --checkpoint words --json
equal "$(number samples)" 60
run 0 train words.mrec --checkpoint words-part --resume --devices cpu:1 --json
equal "$(text weights)" "$whole"

"$own_nets" others others.mrec || fail "own_nets others"
run 1 eval others.mrec --checkpoint bare; err_has "no field numbers, which network of-numbers takes"
finish
