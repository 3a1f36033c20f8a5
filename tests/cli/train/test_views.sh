# Several views of each sample: the prediction is the mean of the predictions of the views; `eval` counts the predictions of `predict`, on
# any devices; impossible requests are refused.
. "$(dirname "$0")/../lib.sh"
command -v python3 >/dev/null || { echo "SKIP: python3 is not here"; exit 77; }

# pictures of 12 x 20 pixels, and each view of 12 x 12 as a set of its own
cat >sets.py <<'EOF'
import os, random, struct
random.seed(1)
wide = [[[random.randrange(256) if (x + y + k) % 3 else 20 * (k % 5) for x in range(20)] for y in range(12)] for k in range(25)]
parts = {"wide": wide}
for name, at in (("left", 0), ("middle", 4), ("right", 8)):
    parts[name] = [[row[at:at + 12] for row in p] for p in wide]
    parts[name + "_mirrored"] = [[row[at:at + 12][::-1] for row in p] for p in wide]
for name, pictures in parts.items():
    os.mkdir(name)
    with open(name + "/t10k-images-idx3-ubyte", "wb") as f:
        f.write(struct.pack(">4I", 2051, len(pictures), 12, len(pictures[0][0])))
        for p in pictures:
            f.write(bytes(v for row in p for v in row))
    with open(name + "/t10k-labels-idx1-ubyte", "wb") as f:
        f.write(struct.pack(">2I", 2049, len(pictures)) + bytes(k % 5 for k in range(len(pictures))))
EOF
python3 sets.py || fail "no sets"
run 0 train middle/t10k-images-idx3-ubyte --val none --model mnist-cnn-small --augment none --batch 5 --epochs 3 --seed 3 --quiet --checkpoint c

said() { # said DATA OUT OPTION...: a line for each sample, the probability of each class
    data=$1 to=$2
    shift 2
    run 0 predict "$data/t10k-images-idx3-ubyte" --checkpoint c --top 5 --json "$@"
    python3 -c '
import json, sys
for line in sys.stdin:
    print(*(t["probability"] for t in sorted(json.loads(line)["top"], key=lambda t: t["class_number"])))' <out >"$to"
}
for part in left middle right left_mirrored middle_mirrored right_mirrored; do said $part $part.said; done
said wide plain.said --augment "center(12)"; same plain.said middle.said
for kind in flip five ten; do said wide $kind.said --augment "center(12)" --views $kind; done
python3 - <<'EOF' || fail "a mean is not that of its views"
def read(name):
    return [[float(v) for v in line.split()] for line in open(name + ".said")]
views = {"flip": ["middle", "middle_mirrored"], "five": ["middle"] + 2 * ["left", "right"]}
views["ten"] = views["five"] + [v + "_mirrored" for v in views["five"]]
for kind, names in views.items():
    parts = [read(n) for n in names]
    found = read(kind)
    assert len(found) == 25
    for i, row in enumerate(found):
        for k, p in enumerate(row):
            mean = sum(part[i][k] for part in parts) / len(parts)
            assert abs(p - mean) < 1e-5, (kind, i, k, p, mean)
assert read("flip") != read("middle") and read("five") != read("middle")
EOF

# eval counts what predict says
wide=wide/t10k-images-idx3-ubyte
run 0 predict $wide --checkpoint c --augment "center(12)" --views ten --classes first
right=$(sed 1d out | awk -F , '$3 == $4' | wc -l)
cp out ten.csv
run 0 eval $wide --checkpoint c --augment "center(12)" --views ten --json --confusion m.csv
loss=$(number val_loss)
equal "$(sed -n 's/.*"samples": \([0-9]*\), "average".*/\1/p' out)" 25
awk "BEGIN { exit ($(number val_accuracy) - $right / 25) ^ 2 > 1e-9 }" || fail "$last: $right of 25 are right"
sed 1d m.csv | awk -F , '{ for (i = 2; i <= 6; i++) all += $i } END { exit all != 25 }' || fail "$last: $(cat m.csv)"
for devices in cpu:2 cpu:3; do
    run 0 eval $wide --checkpoint c --augment "center(12)" --views ten --json --devices $devices --batch 7
    awk "BEGIN { exit ($(number val_loss) - $loss) ^ 2 > 1e-10 }" || fail "$last: loss $(number val_loss), not $loss"
    run 0 predict $wide --checkpoint c --augment "center(12)" --views ten --classes first --devices $devices --batch 4
    same out ten.csv
done

run 2 eval $wide --checkpoint c --views five; err_has "no crop stands before it"
run 2 predict $wide --checkpoint c --views six; err_has "expected views(flip|five|ten)"
run 2 train middle/t10k-images-idx3-ubyte --model mnist-cnn-small --augment "views(flip)"; err_has "views is of evaluations alone"
run 0 train middle/t10k-images-idx3-ubyte --val none --model mnist-vae --augment none --batch 5 --epochs 1 --quiet --checkpoint vae
run 2 eval $wide --checkpoint vae --views flip; err_has "--views: mnist-vae has no classes"
finish
