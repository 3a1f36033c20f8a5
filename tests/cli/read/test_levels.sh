# Class folders with the pictures in a folder inside each (Tiny ImageNet): the level whose names differ is the classes.
. "$(dirname "$0")/../lib.sh"
command -v python3 >/dev/null || skip "python3 is not there"
make() { PYTHONPATH="$here/read" python3 -c "from made import *; $1" || fail "python3: $1"; }
note="every class folder has its pictures in a folder images/: the folders above are the classes"

make '
for c in range(4):
    put("tiny/train/n%02d/n%02d_boxes.txt" % (c, c), b"x")
    for k in range(5):
        put("tiny/train/n%02d/images/n%02d_%d.png" % (c, c, k), picture(c + 6 * k))
        put("plain/n%02d/n%02d_%d.png" % (c, c, k), picture(c + 6 * k))
rows = []
for k in range(8):
    put("tiny/val/images/val_%d.png" % k, picture(k % 4))
    put("tiny/test/images/test_%d.png" % k, picture(k))
    rows.append("val_%d.png\tn%02d\t0\t0\t9\t9\n" % (k, k % 4))
put("tiny/val/val_annotations.txt", "".join(rows).encode())
put("tiny/wnids.txt", b"n00\n")
'
run 0 digest plain; plain=$(cut -d' ' -f1 out)
for set in tiny tiny/train; do
    run 0 inspect $set; out_has "samples   20"; out_has "classes   4: n00, n01, n02, n03"; out_has "$note"
done
out_has "4 files that are no pictures (n00/n00_boxes.txt"
run 0 digest tiny/train; equal "$(cut -d' ' -f1 out)" "$plain"
run 0 convert tiny t.mrec --quiet; run 0 digest t.mrec; equal "$(cut -d' ' -f1 out)" "$plain"
run 0 inspect tiny --split train --record 7; out_has "n01/images/n01_2.png"
# the classes of its validation part stand in a table
run 1 inspect tiny --split test; err_has "all pictures lie in one folder, which says no class"; err_has "--val FILE"
run 0 train tiny --val tiny/val/val_annotations.txt --model cifar-cnn-small --augment 'resize(32)' --epochs 1 --batch 4 --quiet
run 0 train tiny --val none --model cifar-cnn-small --augment 'resize(32)' --epochs 1 --batch 4 --quiet

# both parts so, only one, and a class folder that is empty
mkdir -p v/train && cp -r tiny/train/n0* v/train && cp -r plain v/val && run 0 inspect v --split test && out_has "samples   20"
rm -r v/val && cp -r tiny/train v/val && run 0 inspect v --split test && out_has "$note"
mkdir v/train/n04
run 0 inspect v; out_has "classes   5: n00, n01, n02, n03, n04"; out_has "without pictures"

# other trees are read as before: names that differ on both levels, one folder alone
mkdir -p deep/a/cat deep/b/dog one/only && cp plain/n00/*.png deep/a/cat && cp plain/n01/*.png deep/b/dog && cp -r plain/n00 one/only/images
run 1 inspect deep; err_has "--classes depth"
run 1 inspect one; err_has "--classes depth"
run 0 inspect tiny/train --classes depth; out_has "n00/images"; out_lacks "$note"
finish
