# Targets of a network: several labels a sample, numbers, weighted classes. From a table of pictures to the predictions; a checkpoint
# remembers them; replicas, shares and record files give the same result; errors list the available targets.
. "$(dirname "$0")/../lib.sh"

run 0 synth d --classes 4 --count 30 --test-count 6 --size 12 --quiet
# table FOLDER: a row for each picture, with two labels and a number that follow from its class
table() {
    echo path,round,corner,tilt
    find "$1" -type f | sort | awk -F / '{ if (!($3 in k)) k[$3] = m++; print $0 "," k[$3] % 2 "," (k[$3] >= 2) "," (k[$3] - 1.5) / 2 }'
}
table d/train >t.csv
table d/test >e.csv
set -- --model mnist-mlp --augment none --batch 25 --optimizer adam --lr 1e-3 --seed 3 --quiet

# several labels: correct more often than guessing, which is correct for 0.5
run 0 train t.csv "$@" --epochs 25 --loss bce --targets round..corner --val e.csv --checkpoint c --keep 1
out_has "2 labels of round..corner by bce"
run 0 eval t.csv --checkpoint c --json; accuracy=$(number val_accuracy)
equal "$(text loss_name) $(text targets)" "bce round..corner"
awk -v a="$accuracy" 'BEGIN { exit !(a > 0.75) }' || fail "$last: accuracy $accuracy"
run 0 eval t.csv --checkpoint c; out_has "of all labels"
run 0 predict t.csv --checkpoint c; cp out rows
equal "$(head -1 rows)" "sample,name,labels,probability_0,probability_1,error"
equal "$(wc -l <rows | tr -d ' ')" 121
# the labels are the probabilities above 0.5, and as many are right as evaluation says
sed 1d t.csv | cut -d , -f 2,3 >wanted
sed 1d rows | cut -d , -f 3-5 | paste -d , - wanted | awk -F , -v accuracy="$accuracy" '{
    found = ""
    if ($2 > 0.5) found = "0"
    if ($3 > 0.5) found = found (found == "" ? "" : " ") "1"
    if (found != $1) exit 1
    right += (($2 > 0.5) == $4) + (($3 > 0.5) == $5) }
    END { if ((right / (2 * NR) - accuracy) ^ 2 > 1e-9) exit 1 }' || fail "$last: rows and evaluation differ: $(head -5 rows)"
run 0 predict e.csv --checkpoint c --json
head -1 out | grep -q '"labels": \[.*\], "probabilities": \[[0-9.e-]*, [0-9.e-]*\], "error": null' || fail "$last: $(head -1 out)"
run 0 predict d --split train --checkpoint c --out folder.csv; equal "$(sed 1d folder.csv | cut -d , -f 3-)" "$(sed 1d rows | cut -d , -f 3-)"
run 2 predict e.csv --checkpoint c --top 2; err_has "--top"
run 2 eval e.csv --checkpoint c --confusion m.csv; err_has "has no classes"

# a resumed run needs no options, takes no others, and is the run that was not stopped
run 0 train t.csv "$@" --epochs 3 --loss bce --targets round..corner --val none --checkpoint r
run 0 train t.csv --epochs 6 --checkpoint r --resume --val none --quiet --json; resumed=$(text weights)
run 0 train t.csv "$@" --epochs 6 --loss bce --targets round..corner --val none --json; equal "$(text weights)" "$resumed"
run 2 train t.csv --epochs 7 --checkpoint r --resume --loss mse; err_has "--loss: the checkpoint was trained with bce, found mse"
run 2 train t.csv --epochs 7 --checkpoint r --resume --targets tilt; err_has "--targets: the checkpoint was trained with round..corner"

# numbers: their mean square, the loss of an untrained guess of 0, is 0.31
run 0 train t.csv "$@" --epochs 25 --loss mse --targets tilt --val e.csv --checkpoint n --keep 1
run 0 eval t.csv --checkpoint n --json; loss=$(number val_loss)
awk -v l="$loss" 'BEGIN { exit !(l < 0.25) }' || fail "$last: loss $loss"
run 0 predict t.csv --checkpoint n; equal "$(head -1 out)" "sample,name,value_0,error"
sed 1d t.csv | cut -d , -f 4 >wanted
sed 1d out | cut -d , -f 3 | paste -d , - wanted | awk -F , -v loss="$loss" '{ sum += ($1 - $2) ^ 2 }
    END { if ((sum / NR - loss) ^ 2 > 1e-8) exit 1 }' || fail "$last: values and evaluation differ"
# one wild number: the mean of the epoch is huge, but the loss has come down again
awk -F , -v OFS=, 'NR == 40 { $4 = 1000000 } 1' t.csv >wild.csv
run 0 train wild.csv --model mnist-mlp --augment none --batch 25 --optimizer adam --lr 1e-3 --seed 3 --order sequential --epochs 1 --loss mse --targets tilt --val none --json
err_has "the run diverges"; err_has "has come down again"
grep '"event": "epoch"' out | grep -q '"diverged": false' || fail "$last: $(grep '"event": "epoch"' out)"
for loss in l1 huber; do run 0 train t.csv "$@" --epochs 1 --loss $loss --targets tilt --val none; done
run 0 lr-find t.csv "$@" --loss mse --targets tilt --steps 20; out_has "suggested"

# the columns between FIRST and LAST are known by their names, in tables and in records of them
three="--loss bce --targets round..mid"
awk -F , -v OFS=, '{ print $1, $2, $3, NR == 1 ? "mid" : $2 }' t.csv >abc.csv
awk -F , -v OFS=, '{ print $1, $2, $4, $3 }' abc.csv | sed '1s/.*/path,round,mid2,mid/' >other.csv
# shellcheck disable=SC2086
run 0 train abc.csv "$@" --epochs 1 $three --val none --checkpoint names
run 1 eval other.csv --checkpoint names
err_has "other.csv: the columns of the targets (field round..mid) are round, mid2, mid; expected the columns of names/step-"
err_has "in the same order: round, corner, mid (number 2 differs)"
# shellcheck disable=SC2086
run 1 train abc.csv "$@" --epochs 1 $three --val other.csv; err_has "expected the columns of abc.csv in the same order"
run 1 train other.csv --epochs 2 --checkpoint names --resume --override --val none; err_has "(number 2 differs)"
run 0 convert abc.csv abc.mrec --target-key round..mid --shard-size 20K --quiet
run 0 convert other.csv other.mrec --target-key round..mid --quiet
run 1 eval other.mrec --checkpoint names; err_has "other.mrec: the columns of the targets"
run 1 append abc.mrec other.csv --target-key round..mid; err_has "expected the columns of abc.mrec in the same order"
run 1 append abc.mrec other.mrec; err_has "expected the columns of abc.mrec in the same order"
run 0 eval abc.mrec --checkpoint names --quiet; equal "$(grep -c "target columns" err)" 0
run 0 predict other.csv --checkpoint names --quiet
# the numbers are the same in every format; only record files keep the names
run 0 eval abc.mrec --checkpoint names --quiet --json; loss=$(number loss)
for to in tar tfrecord mds; do
    run 0 convert abc.csv abc.$to --target-key round..mid --quiet
    out_has "the names of 3 columns of targets were not written"
    run 0 eval abc.$to --checkpoint names --quiet --json; equal "$(number loss)" "$loss"
done
sed '1s/round/boxes/' abc.csv >taken.csv
run 1 convert taken.csv taken.tfrecord --target-key boxes; err_has "a feature of this name in a TFRecord is taken for something else"
sed '1s/round/image/' abc.csv >taken.csv
run 1 convert taken.csv taken.tar --target-key image; err_has "two fields would be named"
run 0 eval abc.mds --checkpoint names --quiet; err_has "abc.mds: no names of target columns here: their order is taken to be that of names/step-"
# shellcheck disable=SC2086
run 0 train abc.mds "$@" --epochs 1 $three --val none --checkpoint nameless
run 0 eval abc.csv --checkpoint nameless --quiet; err_has "has no names of target columns"

# another augmentation than in training is reported
run 0 eval abc.csv --checkpoint names --augment 'normalise(imagenet)' --pixels libjpeg --quiet
err_has "--augment: the checkpoint was trained with none; here normalise("
err_has "--pixels: the checkpoint was trained with own; here libjpeg"
run 0 predict abc.csv --checkpoint names --augment 'normalise(imagenet)' --quiet; err_has "--augment: the checkpoint was trained with"

# settings without an effect are reported
run 0 inspect d --target-key nosuch; out_has "target key nosuch is passed over: it goes with tables and NumPy arrays"
run 0 inspect abc.mrec --target-key round..mid; out_lacks "passed over"
run 0 predict d --split train --checkpoint names --quiet; equal "$(grep -c "passed over" err)" 0
run 0 train abc.csv --epochs 1 --checkpoint names --resume --patience 2 --val none --quiet
err_has "--patience: there is no validation data, so the run goes through all epochs"

# parts give the same bits on any replicas, with a last batch that is short; record files are the table
run 0 convert t.csv t.mrec --target-key round..corner --quiet
for what in "--loss bce --targets round..corner" "--loss huber --targets tilt"; do
    # shellcheck disable=SC2086 # options
    run 0 train t.csv "$@" --epochs 2 --val none --parts 3 --devices cpu --json $what; one=$(text weights)
    # shellcheck disable=SC2086
    run 0 train t.csv "$@" --epochs 2 --val none --parts 3 --devices cpu:3 --json $what; equal "$(text weights)" "$one"
done
run 0 train t.csv "$@" --epochs 1 --loss bce --targets round..corner --val none --json; one=$(text weights)
run 0 train t.mrec "$@" --epochs 1 --loss bce --targets round..corner --val none --json; equal "$(text weights)" "$one"

# the same of NumPy, in two parts; pictures whose mean is the target
if command -v python3 >/dev/null; then
    python3 - <<'EOF' || fail "cannot make the archive"
import random, struct, zipfile
def npy(kind, shape, data):
    head = str({"descr": kind, "fortran_order": False, "shape": shape}) + "\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head.encode() + data
random.seed(1)
with zipfile.ZipFile("ink.npz", "w") as z:
    for part, count in (("train", 96), ("test", 32)):
        pixels = [bytes(random.randrange(1 + i * 2) for _ in range(64)) for i in range(count)]
        ink = [sum(p) / 64 / 255 for p in pixels]
        z.writestr(f"x_{part}.npy", npy("|u1", (count, 8, 8), b"".join(pixels)))
        z.writestr(f"ink_{part}.npy", npy("<f4", (count, 2), b"".join(struct.pack("<ff", v, 1 - v) for v in ink)))
EOF
    run 0 train ink.npz "$@" --epochs 20 --loss mse --targets ink --checkpoint z --keep 1; out_has "2 numbers of ink by mse"
    run 0 eval ink.npz --checkpoint z --json
    awk -v l="$(number val_loss)" 'BEGIN { exit !(l < 0.02) }' || fail "$last: loss $(number val_loss)"
    run 0 inspect ink.npz --target-key ink; out_has "ink: tensor f32, 2"
fi

# ---- classes that weigh ----
cp -r d rare; find rare/train -path '*disc*' -name '*[3-9].jpg' -exec rm {} +
run 0 train rare "$@" --epochs 2 --class-weights balanced --val none --json --checkpoint w; first=$(text weights)
grep '"start"' out | grep -q '"class_weights": true' || fail "$last: no weights of classes"
run 0 train rare "$@" --epochs 2 --val none --json
[ "$(text weights)" != "$first" ] || fail "$last: weights of classes change nothing"
run 0 train rare --epochs 3 --checkpoint w --resume --val none --quiet --json; resumed=$(text weights)
run 0 train rare "$@" --epochs 3 --class-weights balanced --val none --json; equal "$(text weights)" "$resumed"
run 2 train rare --epochs 4 --checkpoint w --resume --class-weights 1/1/1/1
err_has "--class-weights: the checkpoint was trained with others, found 1/1/1/1"
run 0 train rare --epochs 4 --checkpoint w --resume --override --class-weights none --val none --quiet
printf '0.5 2\n1, 1\n' >four.txt
run 0 train rare "$@" --epochs 1 --class-weights four.txt --val none --json; first=$(text weights)
run 0 train rare "$@" --epochs 1 --class-weights 0.5/2/1/1 --val none --json; equal "$(text weights)" "$first"
run 0 train rare "$@" --epochs 1 --class-weights 0.5/2/1/1 --val none --parts 3 --devices cpu:3 --json; first=$(text weights)
run 0 train rare "$@" --epochs 1 --class-weights 0.5/2/1/1 --val none --parts 3 --devices cpu --json; equal "$(text weights)" "$first"

# ---- what cannot be ----
run 2 train d "$@" --class-weights 1/2; err_has "expected 4, one for each class of the network, found 2"
run 2 train d "$@" --class-weights 1/2/3/4/5; err_has "found more than 4"
run 2 train d "$@" --class-weights nowhere.txt; err_has "'nowhere.txt' is not one"
run 2 train d "$@" --class-weights 0/0/0/0; err_has "nothing would be trained"
run 2 train t.csv "$@" --loss bce; err_has "--loss bce needs --targets"
run 2 train t.csv "$@" --targets tilt; err_has "--targets tilt needs --loss"
run 2 train t.csv "$@" --loss bce --targets tilt --class-weights balanced; err_has "no classes to weigh"
run 1 train t.csv "$@" --loss bce --targets tilt --val none; err_has "has a target of -0.75: expected 0 to 1"
err_has "field tilt (f32, 1), for --loss bce"
run 1 train t.csv "$@" --loss bce --targets cap; err_has "there are: path, round, corner, tilt"
run 1 train d "$@" --loss bce --targets cap; err_has "no field cap for --targets; there are: image (image), label (int)"
run 1 train t.mrec "$@" --loss mse --targets tilt; err_has "round..corner (f32, 2)"
run 2 train d --model mnist-vae --loss mse --targets tilt; err_has "mnist-vae has losses of its own"
run 1 train t.csv "$@" --loss mse --targets tilt --stop-at-accuracy 0.5 --val none; err_has "no accuracy to stop at"
table d/test | sed 's/,corner,tilt/,corner,other,tilt/; 1!s/$/,1/' >wide.csv
run 1 eval wide.csv --checkpoint c --target-key round..other; err_has "no field round..corner"
finish
