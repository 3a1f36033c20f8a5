# Which samples: --take in every command that reads data, --hold-out in train: training and validation
# share no sample, both are the same in every run, and a checkpoint does not resume with others. --order balanced: a rare class comes as
# often as the others, and a run goes on with that order.
. "$(dirname "$0")/../lib.sh"

run 0 synth d --classes 4 --count 25 --test-count 8 --size 16 --quiet
set -- --model cifar-cnn --augment none --batch 16 --seed 5 --lr 1e-3 --quiet

# which
run 0 inspect d --take 0.3
out_has "samples   30"
err_has "30 of 100 samples are taken, 0:0.3 of a drawn order"
run 0 convert d low.mrec --take 0:0.5 --quiet
run 0 convert d high.mrec --take 0.5:1 --quiet
run 0 export low.mrec low --quiet
run 0 export high.mrec high --quiet
{ (cd low && find . -name '*.jpg'); (cd high && find . -name '*.jpg'); } | sort >halves
run 0 export d all --split train --quiet
(cd all && find . -name '*.jpg') | sort >whole
equal "$(wc -l <halves)" 100
same halves whole
run 0 digest d --take 0:0.5
low=$(cut -d' ' -f1 out)
run 0 digest low.mrec
equal "$(cut -d' ' -f1 out)" "$low"
run 0 verify d --take 0.1
out_has "10 of 10 samples"
for wrong in 0.5:0.2 1.5 0:2 x 0.1: :0.1 -0.1 0.2:0.2 0.1:0.2x; do
    run 2 inspect d --take "$wrong"
    err_has "--take: expected two parts of 1"
done
run 2 inspect d --take 0.001
err_has "take 0:0.001 of 100 samples: that takes no sample"

# held out
run 0 train d "$@" --epochs 2 --hold-out 0.2 --checkpoint run --json
equal "$(sed -n 's/.*"event": "epoch".*"samples": \([0-9]*\).*/\1/p' out | sort -u)" 80
loss=$(sed -n 's/.*"event": "epoch".*"val_loss": \([0-9.]*\).*/\1/p' out | tail -1)
weights=$(text weights)
err_has "80 of 100 samples are taken, 0:0.8 of a drawn order"
err_has "20 of 100 samples are taken, 0.8:1 of a drawn order"
err_has "its test or validation part is not used: --hold-out"
run 0 eval d --split train --checkpoint run --take 0.8:1 --json
equal "$(number val_loss)" "$loss"
equal "$(number samples)" 20
run 0 train d "$@" --epochs 2 --take 0:0.8 --val none --json
equal "$(text weights)" "$weights"
run 0 train d "$@" --epochs 1 --take 0:0.5 --hold-out 0.2 --json
err_has "40 of 100 samples are taken, 0:0.4 of a drawn order"
err_has "10 of 100 samples are taken, 0.4:0.5 of a drawn order"
run 1 train d --checkpoint run --resume --epochs 3 --quiet
err_has "these are not the data the checkpoint was trained on"
err_has "say which of their samples"
run 0 train d --checkpoint run --resume --epochs 3 --hold-out 0.2 --quiet
run 2 train d "$@" --hold-out 0.2 --val none
err_has "--hold-out validates on a part of the data, --val on others"
for wrong in 0 1; do
    run 2 train d "$@" --hold-out $wrong
    err_has "--hold-out: expected a part of the samples, above 0 and below 1"
done
run 2 train d "$@" --hold-out 0.001
err_has "that takes no sample"

# balanced: of 3, 25, 25 and 25 samples
rm d/train/disc/0000[3-9].jpg d/train/disc/0001?.jpg d/train/disc/0002?.jpg
run 0 train d "$@" --order balanced --epochs 4 --json
weights=$(text weights)
run 0 train d "$@" --order balanced --epochs 2 --checkpoint balanced
run 0 train d --checkpoint balanced --resume --epochs 4 --quiet --json
equal "$(text weights)" "$weights"
run 2 train d --checkpoint balanced --resume --epochs 5 --order shuffle
err_has "--order: the checkpoint was trained with balanced, found shuffle"
run 0 export d gray --split train --quiet
run 1 digest gray --classes none --order balanced
err_has "order balanced deals samples by their classes: these data tell none"
# a class all of whose samples are held out
run 0 synth rare --classes 3 --count 20 --size 16 --quiet
for picture in rare/train/disc/*; do case $picture in */00000.jpg) ;; *) rm "$picture" ;; esac; done
missing=0
for part in 0:0.5 0.5:1; do # its one picture is in one of them
    run 0 train rare --model cifar-cnn-small --epochs 1 --max-steps 1 --val none --take $part --quiet
    ! grep -q "class disc has no sample in the training data" err || missing=$((missing + 1))
done
equal $missing 1
finish
