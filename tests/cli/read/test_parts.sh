# Train, validation and test part of arrays and tables: which is taken, and what is said.
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
        run 0 inspect $set; out_has "samples   10"; out_has "parts     train (taken), validation, test"; out_has "classes   3"
        run 0 inspect $set --split test; out_has "samples   6"; out_has "parts     train, validation (taken), test"
        out_has "the part to test with is"; out_has "takes the other"; out_has "classes   3"
    done
done
run 0 inspect 0.npz --image-key test_images; out_has "samples   4"
run 0 train 0.npz --model mnist-mlp --epochs 1 --batch 5 --quiet; err_has "the part to test with is val_images"
make 'npz("no_val.npz", [("x_train", bytes(640), (10, 8, 8)), ("y_train", bytes(10), (10,)), ("x_test", bytes(256), (4, 8, 8)), ("y_test", bytes(4), (4,))])'
run 0 inspect no_val.npz --split test; out_has "samples   4"; out_has "parts     train, test (taken)"
finish
