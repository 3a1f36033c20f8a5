# Outputs never overwrite inputs, other people's files, links or devices; nothing is discarded without --force.
. "$(dirname "$0")/../lib.sh"

run 0 synth d --classes 3 --count 6 --quiet
run 0 convert d d.mrec --quiet
cp d.mrec want

# an index that spills: its input, and a file that is called like it, stay
{ printf '\0\0\010\003\0\0\202\350\0\0\0\001\0\0\0\001'; head -c 33512 /dev/zero; } >many-images-idx3-ubyte
{ printf '\0\0\010\001\0\0\202\350'; head -c 33512 /dev/zero; } >many-labels-idx1-ubyte
run 0 convert many-images-idx3-ubyte x.index --quiet
cp x.index kept; echo mine >y.index
run 0 convert x.index x --quiet; same x.index kept
run 0 verify x --quiet
run 0 convert x.index y --quiet; equal "$(cat y.index)" mine

# lists of bad samples: another file of that name is refused, and stays
cp -r d b; echo "this is no picture" >b/train/ring/a.jpg
echo precious >b.mrec.bad.jsonl
run 1 convert b b.mrec; err_has "b.mrec.bad.jsonl: this file is there and is no list of bad samples"
equal "$(cat b.mrec.bad.jsonl)" precious; absent b.mrec; absent b.mrec.part
run 1 digest b --bad skip --bad-list b.mrec.bad.jsonl; err_has "no list of bad samples"
equal "$(cat b.mrec.bad.jsonl)" precious
run 3 convert b b.mrec --force --quiet; equal "$(wc -l <b.mrec.bad.jsonl | tr -d ' ')" 1
cp b.mrec.bad.jsonl list
run 1 convert b b.mrec; same b.mrec.bad.jsonl list # refused: the list of the existing file stays
run 3 convert b b.mrec --force --quiet; same b.mrec.bad.jsonl list
run 0 convert d b.mrec --force --quiet; absent b.mrec.bad.jsonl # none are bad any more

# the input, by any name
ln d.mrec hard
for out in d.mrec ./d.mrec hard; do
    run 1 digest d.mrec --bad-list $out; err_has "$out"; err_has "input"
    run 1 train d.mrec --model cifar-cnn --batch 6 --epochs 1 --trace $out --quiet; err_has "$out"; err_has "input"
    run 1 profile d.mrec --model cifar-cnn --batch 6 --steps 2 --html $out --quiet; err_has "$out"; err_has "input"
    run 1 profile d.mrec --model cifar-cnn --batch 6 --steps 2 --trace $out --quiet; err_has "$out"; err_has "input"
    same d.mrec want
done
picture=d/train/ring/00003.jpg
cp $picture picture
run 1 digest d --bad-list $picture; same $picture picture
run 1 train d --model cifar-cnn --batch 6 --epochs 1 --trace $picture --quiet; err_has "input"; same $picture picture
rm hard

# planted links where something is written aside
echo precious >victim
plant() { rm -f "$1"; ln -s "$temp/victim" "$1"; }
plant l.mrec.part; run 1 convert d l.mrec; err_has "l.mrec.part"
run 1 convert d l.mrec --shard-size 12K; err_has "l.mrec.part"
plant l-00000.mrec.part; rm l.mrec.part; run 1 convert d l.mrec --shard-size 12K; err_has "l-00000.mrec.part"
plant l.mrec.conversion.part; run 1 convert d l.mrec --shard-size 12K; err_has "l.mrec.conversion.part"
plant t.json.part; run 1 train d --model cifar-cnn --batch 6 --epochs 1 --max-steps 1 --trace t.json --quiet; err_has "t.json.part"
plant p.html.part; run 1 profile d --model cifar-cnn --batch 6 --steps 2 --html p.html --quiet; err_has "p.html.part"
plant s.jsonl; run 1 digest b --bad skip --bad-list s.jsonl; err_has "s.jsonl"
mkdir -p e/disc; plant e/disc/00000000.jpg.part; run 1 export d.mrec e --numbered; err_has "00000000.jpg.part"
mkdir -p s/train/disc; plant s/train/disc/00000.jpg; run 1 synth s --force --quiet; err_has "00000.jpg"
plant o-00001.part; run 1 convert d o --to tfrecord --shard-size 4K; err_has "o-00001.part"
equal "$(cat victim)" precious

# the ending of DST chooses the format; one that --to contradicts, or that is no format to write, is refused
mkdir endings
run 0 convert d endings/a.tar --quiet; tar tf endings/a.tar >/dev/null || fail "endings/a.tar: no tar archive"
run 0 convert d endings/b.TFRecord --quiet; run 0 inspect endings/b.TFRecord; out_has "format    tfrecord"
run 0 convert d endings/c --quiet; run 0 inspect endings/c; out_has "format    mrec"
run 0 convert d endings/c.tar --to tar --quiet
run 2 convert d endings/d.tar --to mrec; err_has "the name ends in .tar, and --to is mrec"
run 2 convert d endings/d.npz; err_has "convert cannot write .npz files; expected a name that ends in .mrec, .tfrecord, .tar, .mds or .rec"
run 2 convert d -; err_has "cannot write to standard output"
run 2 convert d endings/d.jsonl; err_has "convert cannot write .jsonl files"
run 1 convert d no/where/x.mrec; err_has "the folder no/where is missing"
run 0 convert d endings/d.tfrec --quiet; run 0 inspect endings/d.tfrec; out_has "format    tfrecord"
run 0 convert d endings/none.rec --classes none --quiet; err_has "the data have no classes, and RecordIO has a label for each picture: 0 was written"
absent endings/d.tar; absent endings/d.npz; absent ./-

# MDS: a folder, whose list is the last file to come and the first to go; RecordIO: with its index
run 0 convert d endings/e.mds --shard-size 2K --quiet; run 0 inspect endings/e.mds; out_has "format    mds"; out_has "classes"
mkdir latin && cp -r d/train/disc latin/a && cp -r d/train/ring "latin/$(printf 'b\344r')" # JSON is UTF-8
run 0 convert latin endings/l.mds --quiet
iconv -f UTF-8 -t UTF-8 endings/l.mds/index.json >json || fail "endings/l.mds/index.json is no UTF-8"
grep -qF "[\"a\",\"$(printf 'b\303\244r')\"]" json || fail "endings/l.mds/index.json: other classes"
test -f endings/e.mds/shard.00001.mds || fail "endings/e.mds: one shard"
run 0 verify endings/e.mds; out_has " 0 wrong"
run 1 convert d endings/e.mds; err_has "it exists already"
run 0 convert d endings/e.mds --force --quiet; absent endings/e.mds/shard.00001.mds
cp -r d endings/d8; mv endings/d8/train/disc "endings/d8/train/d$(printf '\344')sc"
run 0 convert endings/d8 endings/e8.mds --to mds --quiet; run 0 inspect endings/e8.mds; out_has "däsc"
grep -q däsc endings/e8.mds/index.json || fail "index.json: the name of a class is no UTF-8"
rm endings/e.mds/index.json; run 1 inspect endings/e.mds
echo "half a download" >endings/e.mds/shard-00000.part
run 1 convert d endings/e.mds --force --shard-size 5G; err_has "less than 4 GiB"
plant endings/g; run 1 convert d endings/g --to mds; err_has "MDS needs a folder"
run 0 convert d endings/f.rec --quiet; run 0 inspect endings/f.rec; out_has "format    recordio"
equal "$(wc -l <endings/f.idx)" "$("$millrace" inspect endings/f.rec --json | sed 's/.*"samples": \([0-9]*\).*/\1/')"
run 1 convert d endings/f.rec; err_has "f.idx"
rm endings/f.rec; run 1 convert d endings/f.rec; err_has "f.idx"; absent endings/f.rec
run 0 convert d endings/s --to recordio --shard-size 2K --quiet; test -f endings/s-00001.idx || fail "no index of the second file"
run 0 digest endings/s-00000.rec
equal "$(wc -l <endings/s-00001.lst)" "$(wc -l <endings/s-00001.idx)"
run 0 inspect endings/s-00000.rec --record 0; out_has "$(head -1 endings/s-00000.lst | cut -f3)"; test -f "d/$(head -1 endings/s-00000.lst | cut -f3)" || fail "another name"

# WIDS: an index of the archives of a set
run 0 convert d endings/w --to tar --shard-size 12K --index wids --quiet
python3 - <<'END' || fail "another index"
import glob, json, os, tarfile
index = json.load(open("endings/w.wids.json"))
assert index["__kind__"] == "wids-shard-index-v1" and index["wids_version"] == 1, index
names = sorted(glob.glob("endings/w-*.tar"))
assert [one["url"] for one in index["shardlist"]] == [os.path.basename(name) for name in names] and len(names) > 1, index
for one, name in zip(index["shardlist"], names):
    assert one["filesize"] == os.path.getsize(name) and one["nsamples"] == sum(m.endswith(".cls") for m in tarfile.open(name).getnames()), one
END
run 0 digest 'endings/w-*.tar'
run 1 convert d endings/w --to tar --shard-size 12K --index wids; err_has "it exists already"
run 0 convert d endings/w --to tar --shard-size 1M --force --quiet; absent endings/w.wids.json
run 2 convert d endings/x.rec --index wids; err_has "add --to tar"
mkdir -p long/a; cp "$(find d -name '*.jpg' | head -1)" "long/a/$(printf '%0120d' 1).jpg"
run 1 convert long endings/y.tar --index wids; err_has "a WIDS index needs up to 100"; absent endings/y.tar; absent endings/y.wids.json
run 0 convert long endings/y.tar --index wids --no-names --quiet; present endings/y.wids.json

# a second name is as good as a link
ln victim m.mrec.part; run 1 convert d m.mrec --force; err_has "other names"; equal "$(cat victim)" precious
rm m.mrec.part

# a part file that no run of ours left: somebody's download, say
for to in mrec tfrecord tar; do
    echo "half a download" >f.$to.part
    run 1 convert d f.$to --to $to; err_has "f.$to.part"; err_has "--force"; absent f.$to
    equal "$(cat f.$to.part)" "half a download"
    run 0 convert d f.$to --to $to --force --quiet; absent f.$to.part
done
echo "half a download" >r.mrec.part
run 1 convert d r.mrec --resume; err_has "r.mrec.part"; equal "$(cat r.mrec.part)" "half a download"
head -c 20000 d.mrec | tr 0-9 1-90 >r.mrec.part; cp r.mrec.part part
run 1 convert d r.mrec --resume; err_has "r.mrec.part"; same r.mrec.part part
echo mine >s-00001.mrec.part; echo mine >s-00000.mrec.part
run 1 convert d s.mrec --shard-size 12K; err_has "s-0000"; equal "$(cat s-0000*.mrec.part)" "mine
mine"
echo mine >t.jsonl.part; run 1 train d --model cifar-cnn --batch 6 --epochs 1 --max-steps 1 --trace t.jsonl --quiet
err_has "t.jsonl.part"; equal "$(cat t.jsonl.part)" mine
rm ./*.part

# devices
if [ "$(id -u)" -eq 0 ] && mknod null c 1 3 2>err; then
    run 1 convert d null --shard-size 12K --force; err_has "device"
    run 1 convert d null --force; err_has "device"
    run 1 train d --model cifar-cnn --batch 6 --epochs 1 --trace null --quiet; err_has "device"
    [ -c null ] || fail "the device was replaced"
else
    echo "not tried here: a device that is named as output (it needs to make one)"
fi

# records of an interrupted run are not thrown away unasked
run 1 convert b k.mrec --bad stop --workers 1 --quiet; present k.mrec.part
cp k.mrec.part part
run 1 convert b k.mrec; err_has "--resume"; err_has "--force"; same k.mrec.part part
run 3 convert b k.mrec --resume --quiet; absent k.mrec.part
run 3 convert b w.mrec --quiet; same k.mrec w.mrec; same k.mrec.bad.jsonl w.mrec.bad.jsonl
run 1 convert b j.mrec --bad stop --workers 1 --shard-size 12K --quiet; present j-00000.mrec.part; absent j-00000.mrec
run 1 convert b j.mrec --shard-size 12K; err_has "--resume"; err_has "--force"; present j-00000.mrec.part
run 3 convert b j.mrec --shard-size 12K --resume --quiet
run 0 verify j.mrec --quiet
equal "$(find . -name 'j*.part' | wc -l | tr -d ' ')" 0

# a full disk: no file that is not whole
mkdir small
if [ "$(id -u)" -eq 0 ] && mount -t tmpfs -o size=16k tmpfs small 2>err; then
    trap 'umount "$temp/small" 2>err; rm -rf "$temp"' EXIT
    run 1 synth small/s --quiet; err_has "No space left"
    find small -type f >made
    while read -r f; do
        case $f in
        *.jpg) [ "$(tail -c 2 "$f" | od -An -tx1 | tr -d ' ')" = ffd9 ] || fail "$f is cut" ;;
        *) fail "$f was left" ;;
        esac
    done <made
    rm -rf small/*
    run 1 convert d small/x.mrec --store raw --resize 96 --quiet; err_has "are to be written, and 16.0 KiB are free"
    equal "$(ls small)" ""
    run 1 convert d small/x.mrec --store raw --resize 96 --quiet --no-space-check; err_has "which may be too little"
    rm -rf small/*
    run 1 train d --model cifar-cnn --batch 1 --epochs 20 --trace small/t.json --quiet; err_has "No space left"
    equal "$(ls small)" ""
    umount small
else
    echo "not tried here: a full disk (it needs to mount a small one)"
fi
finish
