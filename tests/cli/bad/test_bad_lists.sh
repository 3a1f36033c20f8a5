# Bad samples of any format: inspect --bad, convert and train name the same ones in the same words, with file, offset and reason.
. "$(dirname "$0")/../lib.sh"

run 0 synth d --classes 3 --count 8 --quiet
rm -r d/test
echo "this is no picture" >d/train/ring/a.jpg
head -c 400 d/train/disc/00003.jpg >d/train/disc/cut.jpg

# a folder: each sample is a file
run 3 inspect d --bad; out_has "cut.jpg: sample "; out_has "a.jpg: sample "; out_has "d: 2 of 26 samples are bad"
run 3 inspect d --bad --json; equal "$(number bad)" 2; equal "$(number samples)" 26
grep '"event": "bad"' out >inspected
cp inspected inspected_all
run 3 convert d d.mrec --quiet; same d.mrec.bad.jsonl inspected
for workers in 1 2 7; do
    run 3 inspect d --bad --json --workers $workers; grep '"event": "bad"' out >again; same again inspected
done
run 0 inspect d.mrec --bad; out_has "0 of 24 samples are bad"
run 3 train d --model mnist-mlp --epochs 2 --batch 8 --bad replace --bad-list t.jsonl --quiet
sort -u t.jsonl >trained; sort inspected >wanted; same trained wanted
# listed DATA: bad samples are listed as they are met; only a single worker meets them all in sample order
listed() {
    run 3 digest "$1" --bad skip --bad-list t.jsonl --order sequential --workers 1; same t.jsonl inspected
    run 3 digest "$1" --bad skip --bad-list t.jsonl --order sequential
    sort t.jsonl >sorted; sort inspected >wanted; same sorted wanted
}
listed d
run 1 digest d; err_has "sample"
run 2 inspect d --bad --record 0; err_has "expected one of them"

# RecordIO: several samples in one file, and the offset says where
if command -v python3 >/dev/null; then
    python3 "$here/peers/recordio.py" own d/train r || fail "packing failed"
    rm r.idx r.lst
    run 3 inspect r.rec --bad --json --index-folder off; equal "$(number bad)" 2; absent .r.rec.mridx
    grep '"event": "bad"' out >inspected
    equal "$(grep -c '"file": "r.rec", "offset": [0-9]*, "code": "..*", "reason": "..*"' inspected)" 2
    run 3 convert r.rec r.mrec --quiet; same r.mrec.bad.jsonl inspected
    listed r.rec
    run 1 train r.rec --model mnist-mlp --epochs 1 --batch 8 --bad replace --max-bad 1 --quiet; err_has "more than 1 samples are damaged (--max-bad)"
    # options of foreign formats, and what their sources tell
    rm -f .r.rec.mridx
    run 0 inspect r.rec; err_has "r.rec: index kept in"; err_has ".r.rec.mridx"
    run 0 inspect r.rec; equal "$(cat err)" ""
    run 2 inspect r.rec --image-key image; err_has "one picture"
    run 2 inspect r.rec --label-key name; err_has "found 'name'"
    run 2 inspect r.rec --label-offset one; err_has "--label-offset: expected auto or a whole number, found 'one'"
    run 2 inspect r.rec --label-offset 99999999999999999999; err_has "--label-offset"
    run 0 inspect r.rec --record 25 --label-offset 1; out_has "label     int 1"
    run 0 inspect r.rec --record 25 --label-offset -3; out_has "label     int 5"
    run 3 train r.rec --val r.rec --model mnist-mlp --epochs 1 --batch 8 --bad skip --quiet
    if [ "$(id -u)" -ne 0 ]; then
        mkdir locked; cp r.rec locked/; chmod 555 locked
        run 0 inspect locked/r.rec --index-folder kept; err_has "index kept in kept/"
        equal "$(ls kept | wc -l | tr -d ' ')" 1
        run 0 inspect locked/r.rec --index-folder kept; equal "$(cat err)" ""
        chmod 755 locked
    fi
fi
# the sample that ends the run is in the list, too
run 1 digest d --bad skip --max-bad 1 --bad-list t.jsonl --order sequential --workers 1
err_has "a.jpg: sample 17"; err_has "more than 1 samples are damaged (--max-bad)"
head -2 inspected_all >wanted; same t.jsonl wanted

# pictures of different sizes are no damage, in any format and whatever is done with damage; one that only the last of many differs in
run 0 synth sizes --classes 2 --count 60 --size 20 --quiet
rm -r sizes/test
run 0 synth other --classes 2 --count 1 --size 32 --quiet
for at in 00000 00031; do # the first picture, and one that no look before the run meets
    cp other/train/disc/00000.jpg sizes/train/ring/$at.jpg
    for data in sizes sizes.mrec sizes.tar sizes.tfrecord; do
        [ $data = sizes ] || run 0 convert sizes $data --force --quiet
        for bad in stop replace skip; do
            run "$([ $at = 00000 ] && echo 2 || echo 1)" digest $data --bad $bad --bad-list t.jsonl
            err_has "pictures differ in size"; err_has "32 x 32"; err_has "20 x 20"; err_has "resize(20x20)"; err_has "sample "
            absent t.jsonl
        done
    done
    run 1 train sizes --model cifar-cnn --augment flip --bad replace; err_has "pictures differ in size"
    cp sizes/train/ring/00001.jpg sizes/train/ring/$at.jpg
done
run 0 convert sizes sizes.mrec --force --quiet; run 0 convert other other.mrec --force --quiet
printf 'millrace mix 1\n0.5 sizes.mrec\n0.5 other.mrec\n' >mix.txt
run 2 digest mix.txt --bad skip; err_has "pictures differ in size"; err_has "other.mrec: sample"
run 0 digest mix.txt --augment "resize(16x16)"

# formats with nothing to choose say so
run 2 inspect d --image-key picture; err_has "folder"; err_has "--image-key"
run 2 digest d.mrec --label-offset 1; err_has "--label-offset"
finish
