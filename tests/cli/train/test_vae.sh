# A network that reproduces its input: trained, stopped, resumed, evaluated and drawn; undrawable outputs are refused before anything is
# computed.
. "$(dirname "$0")/../lib.sh"

run 0 synth d --classes 3 --count 12 --test-count 5 --size 12 --quiet
set -- --model mnist-vae --augment none --batch 16 --seed 5 --quiet

run 0 train d "$@" --epochs 2 --json --checkpoint whole
grep '"event": "epoch"' out | grep -q '"accuracy": null.*"val_accuracy": null' || fail "$last: it prints an accuracy"
weights=$(text weights)
run 0 train d "$@" --epochs 2 --max-steps 3 --checkpoint parts
run 0 train d --quiet --checkpoint parts --resume --json
equal "$(text weights)" "$weights"
run 0 train d "$@" --epochs 1 --csv run.csv
out_has "    -"
grep -q '^epoch,0,.*,,' run.csv || fail "$last: an accuracy in the log: $(tail -1 run.csv)"

# an evaluation draws the same samples as the validation of the training
run 0 train d "$@" --epochs 1 --json --checkpoint once
seen=$(sed -n 's/.*"val_loss": \([0-9.]*\).*/\1/p' out | head -1)
run 0 eval d --checkpoint once --json
equal "$(sed -n 's/.*"val_loss": \([0-9.]*\).*/\1/p' out)" "$seen"

run 0 eval d --checkpoint whole; out_has "15 samples, loss "; out_lacks "accuracy"
loss=$(sed "s/.*loss \([0-9.]*\);.*/\1/" out)
run 0 eval d --checkpoint whole --draw seen.png
equal "$(sed "s/.*loss \([0-9.]*\);.*/\1/" out)" "$loss"
mkdir -p drawn/one && cp seen.png drawn/one
run 0 verify drawn # a whole PNG
run 1 eval d --checkpoint whole --draw seen.png; err_has "seen.png"
out_lacks "loss" # refused before it was computed
run 0 eval d --checkpoint whole --draw seen.png --force
run 2 eval d --checkpoint whole --draw seen.png --force --devices sim:1; err_has "--draw: mnist-vae gives back no pictures"

# one channel, which convolutions hold in blocks of 16
run 0 train d --channels 1 "$@" --epochs 1 --checkpoint grey
run 0 eval d --checkpoint grey --draw grey.png; present grey.png

# it needs no classes: pictures directly in a folder, or records without labels, in training and in validation
mkdir flat
find d/train -type f | sort | while read -r file; do cp "$file" "flat/$(echo "$file" | tr / _)"; done
run 1 train flat "$@" --epochs 2; err_has "--classes none takes them without classes"
run 0 train flat --classes none "$@" --epochs 2 --json --checkpoint bare
weights=$(text weights) loss=$(number loss)
equal "$(number samples)" 36
run 0 convert flat flat.mrec --classes none --quiet
run 0 train flat.mrec "$@" --epochs 2 --json --val flat.mrec
equal "$(text weights) $(number loss) $(number samples)" "$weights $loss 36"
grep '"event": "epoch"' out | grep -q '"accuracy": null.*"val_loss": [0-9.]*, "val_accuracy": null' || fail "$last: it was not validated"
run 0 train flat.mrec "$@" --epochs 2 --json --tail pad
equal "$(number samples)" 36
run 0 eval flat.mrec --checkpoint bare; out_has "36 samples, loss "
run 0 eval flat --classes none --checkpoint bare --draw bare.png; present bare.png
run 0 eval d --checkpoint bare
run 0 train d "$@" --epochs 1 --val flat.mrec
run 0 train flat.mrec "$@" --epochs 1 --val d
run 0 train flat --classes none --checkpoint bare --resume --epochs 3 --quiet
run 0 profile flat.mrec "$@" --seconds 0.01
run 1 train flat.mrec --model cifar-cnn --quiet; err_has "flat.mrec: expected a class for each picture, found none"
run 1 train d --val flat.mrec --model cifar-cnn --augment none --quiet; err_has "flat.mrec: expected 3 classes as in d, found 0"

run 0 train d --model cifar-cnn --augment none --batch 16 --quiet --epochs 1 --checkpoint other
run 2 eval d --checkpoint other --draw other.png; err_has "--draw: cifar-cnn gives back no pictures"
absent other.png
finish
