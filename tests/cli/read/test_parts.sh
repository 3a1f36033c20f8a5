# Train, validation and test split of arrays and tables: the chosen one, and the messages.
. "$(dirname "$0")/../lib.sh"
command -v python3 >/dev/null || skip "python3 is not there"
make() { PYTHONPATH="$here/read" python3 -c "from made import *; $1" || fail "python3: $1"; }

# ---- arrays of NumPy: x_train, x_val and x_test in whatever way they are written ----
make '
for k, (one, word) in enumerate([("%s_images", "val"), ("x_%s", "val"), ("x_%s", "valid"), ("X_%s", "val"), ("images_%s", "validation"), ("%s_data", "dev")]):
    arrays = []
    for part, n, colour in (("train", 10, 1), ("test", 4, 2), (word, 6, 3)):
        name = one % part
        y = name.replace("images", "labels").replace("data", "labels").replace("x_", "y_").replace("X_", "y_")
        arrays += [(name, bytes([colour]) * (n * 64), (n, 8, 8)), (y, bytes(i % (3 if part == "test" else 2) for i in range(n)), (n,))]
    npz("%d.npz" % k, arrays)
    zipfile.ZipFile("%d.npz" % k).extractall("%d" % k)
'
for k in 0 1 2 3 4 5; do
    for set in $k.npz $k; do
        run 0 inspect "$set"; out_has "samples   10"; out_has "parts     train (taken), validation, test"; out_has "classes   3"
        run 0 inspect "$set" --split test; out_has "samples   6"; out_has "parts     train, validation (taken), test"
        out_has "the part to test with is"; out_has "takes the other"; out_has "classes   3"
    done
done
run 0 inspect 0.npz --image-key test_images; out_has "samples   4"
run 0 train 0.npz --model mnist-mlp --epochs 1 --batch 5 --quiet; err_has "the part to test with is val_images"
make 'npz("no_val.npz", [("x_train", bytes(640), (10, 8, 8)), ("y_train", bytes(10), (10,)), ("x_test", bytes(256), (4, 8, 8)), ("y_test", bytes(4), (4,))])'
run 0 inspect no_val.npz --split test; out_has "samples   4"; out_has "parts     train, test (taken)"

# ---- a column of a table ----
make '[put("t/%d.png" % k, picture(k)) for k in range(12)]'
table() { # table COLUMN VALUE...: twelve rows, the values in turn
    column=$1
    shift
    echo "path,label,$column"
    k=0
    while [ $k -lt 12 ]; do
        echo "t/$k.png,$((k % 3)),$1"
        first=$1
        shift
        set -- "$@" "$first"
        k=$((k + 1))
    done
}
table split train val train test >split.csv
table Subset Training VALIDATION training Testing >subset.csv
run 0 inspect split.csv; out_has "samples   6"; out_has "parts     train (taken), validation, test"; out_has "classes   3"
out_has "column split says the part of a row: 6 of 12 rows are taken (train)"
run 0 inspect subset.csv --split train; out_has "samples   6"
for set in split subset; do
    run 0 inspect $set.csv --split test; out_has "samples   3"; out_has "validation (taken)"; out_has "rows of the test part are left out"
done
# the same as folders
for part in train val test; do
    k=0
    while [ $k -lt 12 ]; do
        case $part:$((k % 4)) in train:0 | train:2 | val:1 | test:3)
            mkdir -p f/$part/$((k % 3)); cp t/$k.png f/$part/$((k % 3))/$((k / 10))$((k % 10)).png ;;
        esac
        k=$((k + 1))
    done
done
for split in train test; do
    run 0 inspect f --split $split --json; count=$(number samples)
    run 0 inspect split.csv --split $split --json; equal "$(number samples)" "$count"
done
run 0 train split.csv --model mnist-mlp --epochs 1 --batch 3 --quiet
err_has "6 of 12 rows are taken (train)"
run 0 convert split.csv split.mrec --quiet; run 0 inspect split.mrec; out_has "samples   6"
run 0 inspect split.csv --split-key none; out_has "samples   12"

table is_train 1 1 0 >is_train.csv
run 0 inspect is_train.csv; out_has "samples   8"
run 0 inspect is_train.csv --split test; out_has "samples   4"; out_has "parts     train, test (taken)"
table is_valid False False True >is_valid.csv
run 0 inspect is_valid.csv; out_has "samples   8"
run 0 inspect is_valid.csv --split test; out_has "samples   4"; out_has "parts     train, validation (taken)"

# a column that is not a split is reported, with the remedy
table fold 0 1 2 3 4 >fold.csv
run 0 inspect fold.csv; out_has "samples   12"; out_has "column fold is called like one of parts, but has 0, 1, 2, 3, ...: all rows are taken"
out_has "--split-key fold=VALUE"
run 0 inspect fold.csv --split-key fold=1; out_has "samples   9"
run 0 inspect fold.csv --split-key fold=1 --split test; out_has "samples   3"
run 0 inspect fold.csv --split-key none; out_has "samples   12"; out_lacks "column fold"
run 1 inspect fold.csv --split-key fold; err_has "column fold says no part"; err_has "--split-key fold=VALUE"
run 1 inspect fold.csv --split-key fold=9; err_has "no row has 9"
run 2 inspect fold.csv --split-key other; err_has "no column other"
run 2 inspect fold.csv --split-key label; err_has "cannot say the part"
table set train val extra >extra.csv
run 0 inspect extra.csv; out_has "samples   4"; out_has "4 rows of no part (column set has extra)"
table set red blue dev >colours.csv
run 0 inspect colours.csv; out_has "samples   12"; out_has "column set is called like one of parts, but has red, blue"

# only one part; a column with another use; no names; another format
table split val >val.csv
run 0 inspect val.csv; out_has "samples   12"; out_has "there is no train part"
run 1 inspect val.csv --split train; err_has "the data has no train part"
run 0 inspect split.csv --label-key split; out_has "samples   12"; out_has "classes   3: test, train, val"
sed 1d split.csv >bare.csv
run 0 inspect bare.csv; out_has "samples   12"
run 0 inspect bare.csv --split-key 3; out_has "samples   6"
run 0 inspect f --split-key split; out_has "--split-key is passed over"

# pictures of other parts need not be there, nor their classes
sed 's|t/3.png,0|gone/3.png,|' split.csv >hidden.csv
run 0 verify hidden.csv; out_has "0 wrong"
run 0 digest hidden.csv; hidden=$(cut -d' ' -f1 out); run 0 digest split.csv; equal "$(cut -d' ' -f1 out)" "$hidden"

# tables beside each other whose names say the part, too
mkdir both && cp -r t both && table split train >both/train.csv && table split val | sed 's/t\//t\/..\/t\//' >both/val.csv
run 0 inspect both; out_has "samples   12"; run 0 inspect both --split test; out_has "samples   12"
finish
