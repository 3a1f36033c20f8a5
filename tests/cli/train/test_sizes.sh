# A network whose last layers see one place takes pictures of any size: a run goes on with larger ones, and is evaluated on others; one
# whose dense layer knows places does not.
. "$(dirname "$0")/../lib.sh"

run 0 synth d --classes 3 --count 12 --test-count 6 --size 24 --quiet
set -- --batch 12 --seed 3 --lr 1e-3 --quiet --json
run 0 train d --model cifar-resnet20 --augment "resize(12x12),flip" --epochs 1 --checkpoint c "$@"
run 0 train d --resume --override --augment "resize(20x20),flip" --epochs 2 --checkpoint c "$@"
err_has "the checkpoint was trained with resize(12x12),flip; from here on resize(20x20),flip"
run 0 eval d --checkpoint c --json; equal "$(number samples)" 18
loss=$(number val_loss)
run 0 eval d --checkpoint c --augment "resize(20x20)" --json; equal "$(number val_loss)" "$loss"
run 0 eval d --checkpoint c --augment "resize(28x24)" --json
[ "$(number val_loss)" != "$loss" ] || fail "$last: the loss is that of another size"
run 0 predict d --checkpoint c --augment "resize(28x24)"; equal "$(sed 1d out | wc -l | tr -d ' ')" 18

run 0 train d --model cifar-cnn-small --augment "resize(16x16)" --epochs 1 --checkpoint small "$@"
run 1 eval d --checkpoint small --augment "resize(8x32)"; err_has "parameters for 16x16x3 pictures"
finish
