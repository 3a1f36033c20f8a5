# Picture files of kinds besides JPEG and PNG (tests/pipeline/decode/odd_kinds.c) in every format: the same pixels everywhere, the same bytes
# back, and --pictures leaves kinds out by name. `sh test_bad_kinds.sh MILLRACE JSON_LINES ODD_FILES`.
odd_files=$3
. "$(dirname "$0")/../lib.sh"

"$odd_files" odd >table || { echo "odd_files failed"; exit 1; }
tab=$(printf '\t')
mkdir -p d/animal d/plant
ln odd/jpeg/all/progressive.jpg d/animal/
ln odd/png/all/rgb-8.png d/plant/
good=2
sed -n "s/^kinds$tab\([^$tab]*\)${tab}good$tab.*/\1/p" table >names
while read -r name; do
    good=$((good + 1))
    ln "odd/kinds/all/$name" "d/$([ $((good % 2)) = 0 ] && echo animal || echo plant)/"
done <names
gifs=$(find d -name '*.gif' -o -name 'gif-named.jpg' | wc -l | tr -d ' ')
bmps=$(find d -name '*.bmp' -o -name '*.dib' | wc -l | tr -d ' ')
[ "$gifs" -gt 10 ] && [ "$bmps" -gt 10 ] || fail "odd_files made $gifs GIF and $bmps BMP files"

# the same samples from a folder, a table and every kind of file that is written
how="--augment resize(16x16) --order sequential"
# shellcheck disable=SC2086
run 0 digest d $how
digest=$(cut -d' ' -f1 out)
out_has ", $good samples"
{ echo path,label && find d -type f | sort | sed 's|^d/\([a-z]*\)/.*|&,\1|'; } >table.csv
run 0 convert d d.mrec --json
equal "$(number records)" "$good"
run 0 convert d d.tar
run 0 convert d t --to tfrecord
run 0 convert d.mrec again.mrec
for set in table.csv d.mrec d.tar t again.mrec; do
    run 0 inspect $set --json; equal "$(number samples)" "$good"
    # shellcheck disable=SC2086
    run 0 digest $set $how; equal "$(cut -d' ' -f1 out)" "$digest"
    run 0 verify $set
done
run 0 stats d --json; equal "$(number gif)" "$gifs"; equal "$(number bmp)" "$bmps"
run 0 inspect d.mrec --record 0 --json; out_has '"type": "'
run 0 export d.mrec back; (cd d && find . -type f) | while read -r f; do cmp "d/$f" "back/$f" || echo "$f"; done >differ
[ ! -s differ ] || fail "export: $(cat differ)"
tar tf d.tar >members; for ending in gif bmp; do grep -q "\.$ending\$" members || fail "d.tar has no member .$ending"; done

# in other forms: pixels, smaller, coefficients
run 0 convert d raw.mrec --store raw --quiet; run 0 verify raw.mrec
run 0 convert d small.mrec --resize 12 --quiet; run 0 verify small.mrec
run 0 stats small.mrec --json; equal "$(number gif)" 1; equal "$(number bmp)" 1 # those that were smaller
run 0 convert d coef.mrec --store coef --quiet
# shellcheck disable=SC2086
run 0 digest coef.mrec $how; equal "$(cut -d' ' -f1 out)" "$digest"

# kinds that are left out are bad samples, named with their kind
run 1 digest d --augment "resize(16x16)" --pictures jpeg,png; err_has "picture, and --pictures jpeg,png leaves this kind out: add "
run 3 digest d --augment "resize(16x16)" --pictures jpeg,png --bad skip --max-bad 1000 --bad-list list
equal "$(grep -c 'a GIF picture, and --pictures jpeg,png leaves this kind out: add gif to it' list)" "$gifs"
equal "$(grep -c 'a BMP picture, and --pictures jpeg,png leaves this kind out: add bmp to it' list)" "$bmps"
run 3 convert d two.mrec --pictures jpeg,png --json; equal "$(number records)" $((good - gifs - bmps))
run 3 convert d none.mrec --pictures gif,bmp --no-check --json; equal "$(number bad)" 2
run 0 digest d --augment "resize(16x16)" --pictures gif,bmp,png,jpeg --order sequential; equal "$(cut -d' ' -f1 out)" "$digest"
run 2 digest d --pictures jpeg,jpg; err_has "--pictures: expected all, or some of jpeg,png,gif,bmp; found 'jpeg,jpg'"
run 2 digest d --pictures ""; err_has "--pictures: expected all, or some of"
finish
