# Picture files of kinds besides JPEG and PNG (tests/pipeline/decode/odd_kinds.c, odd_libraries.c, odd_heif.c) in every format: the same pixels everywhere, the same bytes
# back, and --pictures leaves kinds out by name. `sh test_bad_kinds.sh MILLRACE JSON_LINES ODD_FILES`.
odd_files=$3
. "$(dirname "$0")/../lib.sh"

"$odd_files" odd >table || { echo "odd_files failed"; exit 1; }
tab=$(printf '\t')
mkdir -p d/animal d/plant
ln odd/jpeg/all/progressive.jpg d/animal/
ln odd/png/all/rgb-8.png d/plant/
good=2
grep -e "^kinds$tab" -e "^webp$tab" -e "^tiff$tab" -e "^heic$tab" -e "^avif$tab" table | grep "${tab}good$tab" | cut -f1,2 >names
while read -r group name; do
    good=$((good + 1))
    ln "odd/$group/all/$name" "d/$([ $((good % 2)) = 0 ] && echo animal || echo plant)/"
done <names
gifs=$(find d -name '*.gif' -o -name 'gif-named.jpg' | wc -l | tr -d ' ')
bmps=$(find d -name '*.bmp' -o -name '*.dib' | wc -l | tr -d ' ')
webps=$(find d -name '*.webp' | wc -l | tr -d ' ')
tiffs=$(find d -name '*.tif' -o -name '*.tiff' | wc -l | tr -d ' ')
heifs=$(find d -name '*.heic' -o -name '*.heif' -o -name '*.avif' | wc -l | tr -d ' ')
others=$((gifs + bmps + webps + tiffs + heifs))
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
[ "$webps" = 0 ] || equal "$(number webp)" "$webps"
[ "$tiffs" = 0 ] || equal "$(number tiff)" "$tiffs"
[ "$heifs" -lt 8 ] || { equal "$(number heic)" 2; equal "$(number avif)" $((heifs - 2)); }
run 0 inspect d.mrec --record 0 --json; out_has '"type": "'
run 0 export d.mrec back; (cd d && find . -type f) | while read -r f; do cmp "d/$f" "back/$f" || echo "$f"; done >differ
[ ! -s differ ] || fail "export: $(cat differ)"
tar tf d.tar >members; for ending in gif bmp; do grep -q "\.$ending\$" members || fail "d.tar has no member .$ending"; done

# in other forms: pixels, smaller, coefficients
run 0 convert d raw.mrec --store raw --quiet; run 0 verify raw.mrec
run 0 convert d small.mrec --resize 12 --quiet; run 0 verify small.mrec
run 0 stats small.mrec --json; equal "$(number gif)" 1; equal "$(number bmp)" 1; out_lacks '"webp"'; out_lacks '"tiff"' # the smaller ones
run 0 convert d coef.mrec --store coef --quiet
# shellcheck disable=SC2086
run 0 digest coef.mrec $how; equal "$(cut -d' ' -f1 out)" "$digest"

# kinds that are left out are bad samples, named with their kind
run 1 digest d --augment "resize(16x16)" --pictures jpeg,png; err_has "picture, and --pictures jpeg,png leaves this kind out: add "
run 3 digest d --augment "resize(16x16)" --pictures jpeg,png --bad skip --max-bad 1000 --bad-list list
equal "$(grep -c 'a GIF picture, and --pictures jpeg,png leaves this kind out: add gif to it' list)" "$gifs"
equal "$(grep -c 'a BMP picture, and --pictures jpeg,png leaves this kind out: add bmp to it' list)" "$bmps"
run 3 convert d two.mrec --pictures jpeg,png --json; equal "$(number records)" $((good - others))
run 3 convert d none.mrec --pictures gif,bmp,webp,tiff,heic,avif --no-check --json; equal "$(number bad)" 2
run 0 digest d --augment "resize(16x16)" --pictures tiff,avif,gif,bmp,heic,png,webp,jpeg --order sequential; equal "$(cut -d' ' -f1 out)" "$digest"
run 2 digest d --pictures jpeg,jpg; err_has "--pictures: expected all, or some of jpeg,png,gif,bmp,webp,tiff,heic,avif; found 'jpeg,jpg'"
run 2 digest d --pictures ""; err_has "--pictures: expected all, or some of"

# without a library its kind is missing, and says so; all else goes on
mkdir none
for file in libwebp.so.7 libwebp.so.6 libtiff.so.6 libtiff.so.5 libheif.so.1; do echo "no library" >none/$file; done
LD_LIBRARY_PATH=$PWD/none${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
run 0 --version; out_has "pictures: jpeg png gif bmp"; out_lacks "bmp webp"
out_has "not webp: a WebP picture needs libwebp (Debian and Ubuntu: apt install libwebp7), or convert it to JPEG or PNG: "
out_has "not tiff: a TIFF picture needs libtiff (Debian and Ubuntu: apt install libtiff6), or convert it to JPEG or PNG: "
for kind in heic avif; do
    out_has "not $kind: a HEIC or AVIF picture needs libheif (Debian and Ubuntu: apt install libheif1), or convert it to JPEG or PNG: "
done
mkdir -p w/all
printf 'RIFF\032\000\000\000WEBPVP8L\015\000\000\000/\000\000\000\020\007\020\021\021\210\210\376\007\000' >w/all/a.webp
printf 'II*\0\010\0\0\0\012\0\0\001\003\0\001\0\0\0\001\0\0\0\001\001\003\0\001\0\0\0\001\0\0\0\002\001\003\0\001\0\0\0\010\0\0\0\003\001\003\0\001\0\0\0\001\0\0\0\006\001\003\0\001\0\0\0\001\0\0\0\021\001\004\0\001\0\0\0\010\0\0\0\025\001\003\0\001\0\0\0\001\0\0\0\026\001\003\0\001\0\0\0\001\0\0\0\027\001\004\0\001\0\0\0\001\0\0\0\034\001\003\0\001\0\0\0\001\0\0\0\0\0\0\0' >w/all/b.tif
ln odd/png/all/rgb-8.png w/all/c.png
ln odd/kinds/all/gif-16.gif w/all/d.gif
run 1 digest w --augment "resize(8x8)" --order sequential
err_has "w/all/a.webp: sample 0: a WebP picture needs libwebp (Debian and Ubuntu: apt install libwebp7), or convert it to JPEG or PNG: "
run 3 digest w --augment "resize(8x8)" --order sequential --bad skip --max-bad 10 --bad-list list
equal "$(grep -c 'a WebP picture needs libwebp' list)" 1
equal "$(grep -c 'a TIFF picture needs libtiff' list)" 1
equal "$(wc -l <list | tr -d ' ')" 2
run 3 inspect w --bad; out_has "w: 2 of 4 samples are bad"
run 3 stats w --json; equal "$(number bad)" 2
run 0 inspect w --record 1; out_has "tiff, "; out_has "1 x 1 pixels" # headers need no library
finish
