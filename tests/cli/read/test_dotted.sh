# Names of members in tar archives with dots in them: no sample is folded into another, and no class is lost.
. "$(dirname "$0")/../lib.sh"
command -v python3 >/dev/null || skip "python3 is not there"
make() { PYTHONPATH="$here/read" python3 -c "from made import *; $1" || fail "python3: $1"; }
note="the last dot ends the name of a sample"

# what people have, and the same with plain names: the same samples
make 'tar("plain.tar", labelled(["%d" % k for k in range(20)]))'
run 0 digest plain.tar; plain=$(cut -d' ' -f1 out)
make 'tar("cat.tar", labelled(["%s.%04d" % (c, k) for c in ("cat", "dog") for k in range(10)]))'
make 'tar("dose.tar", labelled(["dose_%d.5" % k for k in range(20)]))'
make 'tar("date.tar", labelled(["2024.%02d.05" % k for k in range(20)]))'
make 'tar("rf.tar", labelled(["x%d_jpg.rf.%08x" % (k, k * 77) for k in range(20)]))'
for set in cat dose date rf; do
    for again in index and from it; do
        run 0 inspect $set.tar; out_has "samples   20"; out_has "$note"
        run 0 digest $set.tar; equal "$(cut -d' ' -f1 out)" "$plain"
    done
    run 0 verify $set.tar; err_has "$note"
    run 0 convert $set.tar $set.mrec --quiet
    run 0 digest $set.mrec; equal "$(cut -d' ' -f1 out)" "$plain"
done
run 0 inspect cat.mrec --record 3; out_has "cat.0003.png"

# many of one name, more than a sample may have members; only in the last archive of a set
make 'tar("many.tar", labelled(["cat.%04d" % k for k in range(200)]))'
run 0 inspect many.tar; out_has "samples   200"; out_has "$note"
make 'tar("set-0.tar", labelled(["%d" % k for k in range(9)])); tar("set-1.tar", labelled(["%d" % k for k in range(8)] + ["a.1", "a.2"]))'
run 0 inspect 'set-*.tar'; out_has "samples   19"; out_has "$note"

# pictures without classes, classes in json
make 'tar("bare.tar", [("cat.%d.png" % k, picture(k)) for k in range(9)])'
run 0 inspect bare.tar; out_has "samples   9"; out_has "$note"
make 'tar("json.tar", [m for k in range(9) for m in (("a.%d.png" % k, picture(k)), ("a.%d.json" % k, b"{\"label\": %d}" % (k % 2)))])'
run 0 inspect json.tar; out_has "samples   9"; out_has "classes   2"

# archives for which the first dot is right keep it: further members of a sample, two pictures where one is called .png alone
make 'tar("more.tar", [m for k in range(3) for m in (("%d.png" % k, picture(k)), ("%d.mask.png" % k, picture(k)), ("%d.side.png" % k, picture(k)), ("%d.a.txt" % k, b"x"), ("%d.b.txt" % k, b"y"), ("%d.cls" % k, b"1"))])'
run 0 inspect more.tar; out_has "samples   3"; out_lacks "$note"; out_has "side.png"
# a field that does not follow a resized picture, because of its name, is reported
run 0 convert more.tar resized.mrec --resize 8 --quiet; err_has "more.tar: --resize leaves these fields as they are: side.png. Masks and boxes follow"

# two pictures of equal rank: somebody has to say which
make 'tar("pair.tar", [m for k in range(3) for m in (("%d.left.png" % k, picture(k)), ("%d.right.png" % k, picture(k)), ("%d.cls" % k, b"1"))])'
for command in inspect verify digest; do
    run 1 $command pair.tar; err_has "pair.tar"; err_has 'sample "0" has several pictures or classes of one ending (.left.png, .right.png, .cls)'
    err_has "--image-key left.png"
done
run 1 convert pair.tar pair.mrec; absent pair.mrec
run 0 inspect pair.tar --image-key left.png; out_has "samples   3"; out_has "right.png"

# members that are no neighbours, and names of both kinds
make 'tar("apart.tar", [("a.%d.png" % k, picture(k)) for k in range(3)] + [("a.%d.cls" % k, b"1") for k in range(3)])'
run 1 inspect apart.tar; err_has "neither the first nor the last dot"; err_has "side by side"
make 'tar("both.tar", labelled(["a.1", "a.2"]) + [("b.png", picture(1)), ("b.boxes.npy", b"x")])'
run 1 inspect both.tar; err_has 'leaves sample "b.boxes" without a picture (.npy)'
finish
