# Networks of the ancestors with special needs: one logit for two classes, layers that set their own decay, response normalisation. Trained,
# evaluated from a checkpoint, and described by the header.
. "$(dirname "$0")/../lib.sh"

mkdir two
python3 - <<'P'
import random, struct
random.seed(1)
for part, count in (("train", 96), ("t10k", 32)):
    labels = bytes(i % 2 for i in range(count))
    pixels = b"".join(bytes(random.randrange(128) + 96 * c for _ in range(64)) for c in labels) # class 1 is the brighter one
    open(f"two/{part}-labels-idx1-ubyte", "wb").write(struct.pack(">II", 0x801, count) + labels)
    open(f"two/{part}-images-idx3-ubyte", "wb").write(struct.pack(">IIII", 0x803, count, 8, 8) + pixels)
P
run 0 train two --model noise-mlp --augment none --batch 8 --epochs 6 --lr 3e-4 --seed 3 --quiet --json --checkpoint noise
grep '"event": "start"' out | grep -q '"classes": 2' || fail "$last: expected two classes"
python3 - <<'P' || fail "$last: it should learn"
import json
epochs = [json.loads(l) for l in open("out") if '"event": "epoch"' in l]
assert epochs[-1]["val_loss"] < 0.4 and epochs[-1]["val_accuracy"] > 0.8, epochs[-1] # by chance: 0.69, a half
P
run 0 eval two --checkpoint noise --quiet

run 0 synth d --classes 3 --count 8 --test-count 3 --size 26 --quiet
set -- --model cifar-lrn --batch 12 --epochs 1 --seed 2 --quiet
run 0 train d "$@"
out_has "model    cifar-lrn (N6)"; out_has "input 24 x 24 x 3"; out_has "weight decay 0.004 on weights of some layers"
run 0 train d "$@" --json; weights=$(text weights)
run 0 train d "$@" --json --decay-on weights
equal "$(text weights)" "$weights"
run 0 train d "$@" --json --weight-decay 0
[ "$(text weights)" != "$weights" ] || fail "$last: the decay of its layers does nothing"
finish
