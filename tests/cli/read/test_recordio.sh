# RecordIO files packed by other programs: the same batches as from the folder they were packed from; each fault is reported. With MXNet
# at hand (MRT_MXNET_PYTHON names a Python that has it) its writer and reader take part.
. "$(dirname "$0")/../lib.sh"
command -v python3 >/dev/null || skip "python3 is not installed"
pack="$here/peers/recordio.py"

run 0 synth d --classes 3 --count 20 --quiet
python3 "$pack" own d/train r || fail "packing failed"
run 0 digest d --epochs 2; batches=$(cut -d' ' -f1 out)
for lists in both idx lst none; do
    mkdir $lists; cp r.rec $lists/
    case $lists in both | idx) cp r.idx $lists/ ;; esac
    case $lists in both | lst) cp r.lst $lists/ ;; esac
    for again in 1 2; do # the second time from the index stored next to it
        run 0 digest $lists/r.rec --epochs 2; equal "$(cut -d' ' -f1 out)" "$batches"
    done
    present $lists/.r.rec.mridx
done
run 0 inspect both; out_has "format    recordio"; out_has "samples   60"; out_has "classes   3"
run 0 inspect both/r.rec --record 59; out_has "label     int 2"
run 0 convert both/r.rec r.mrec --quiet; run 0 digest r.mrec --epochs 2; equal "$(cut -d' ' -f1 out)" "$batches"
run 0 train both/r.rec --model mnist-mlp --epochs 1 --batch 20 --quiet
gzip -c r.rec >packed.rec.gz
run 0 digest packed.rec.gz --epochs 2; equal "$(cut -d' ' -f1 out)" "$batches"

# the list has the names of the pictures
run 0 inspect r.mrec --json; out_has sample.name
run 0 export r.mrec named --quiet
out_has "60 files have another name than the sample" # the folder of a class is its number
(cd d/train && find . -type f | sort | sed 's,^./disc,./0,; s,^./ring,./1,; s,^./square,./2,') >want; (cd named && find . -type f | sort) >got; same got want
run 0 convert idx/r.rec plain.mrec --quiet; run 0 inspect plain.mrec --json; out_lacks sample.name

# object detection: the boxes follow their picture, as in any other format
python3 - "$here/peers" <<'END' || fail "packing failed"
import glob, struct, sys
sys.path.insert(0, sys.argv[1])
from formats_lib import rec_frame
for name, bad in ("det", -1), ("baddet", 7):
    with open(name + ".rec", "wb") as rec:
        for number, path in enumerate(sorted(glob.glob("d/train/*/*.jpg"))):
            labels = [2, 5]
            for k in range(number % 3 + 1):
                labels += [k, 0.125 * k, 0.25, 0.125 * k + 0.25, 12 if number == bad else 0.75]
            rec.write(rec_frame(struct.pack("<IfQQ%df" % len(labels), len(labels), 0, number, 0, *labels) + open(path, "rb").read()))
END
run 0 convert det.rec det.mrec --quiet
run 0 convert det.rec det --to tar --quiet; run 0 convert det.rec det2 --to tfrecord --quiet
for augment in none flip "rrc(32)"; do
    set -- --fields boxes,box_labels --epochs 2 --augment "$augment" --training
    [ "$augment" = none ] && set -- --fields boxes,box_labels --epochs 2
    run 0 digest det.rec "$@"; cut -d' ' -f1 out >"det.$augment"
    run 0 digest det.mrec "$@"; cut -d' ' -f1 out >got; same got "det.$augment"
done
cmp -s det.none det.flip && fail "no box was flipped"
run 0 digest det.rec --fields boxes,box_labels --json
out_has '"name": "boxes", "role": "boxes"'; out_has '"name": "box_labels", "role": "values"'
run 1 digest baddet.rec --fields boxes; err_has "sample 7"; err_has "object 0: expected a class and a box"
run 3 convert baddet.rec baddet.mrec --quiet; equal "$(wc -l <baddet.mrec.bad.jsonl | tr -d ' ')" 1

# a picture that holds the magic number: stored in parts, read as one
mkdir -p s/one s/two
cp d/train/disc/00000.jpg s/two/
python3 - <<'END'
import struct
data = open("s/two/00000.jpg", "rb").read()
comment = b"\xff\xfe" + struct.pack(">H", 2 + 14) + b"ab" + 3 * struct.pack("<I", 0xCED7230A)
open("s/one/0.jpg", "wb").write(data[:2] + comment + data[2:]) # 24 bytes before it: the first magic lies at a multiple of 4
END
python3 "$pack" own s s || fail "packing failed"
equal "$(od -An -tx4 -v s.rec | tr ' ' '\n' | grep -c ced7230a)" 5
run 0 digest s; parts=$(cut -d' ' -f1 out)
rm s.lst s.idx
run 0 digest s.rec; equal "$(cut -d' ' -f1 out)" "$parts"
run 0 convert s.rec s.mrec --quiet; run 0 export s.mrec back --quiet
cmp -s s/one/0.jpg "$(find back -name '*.jpg' | sort | head -1)" || fail "the picture in parts came back changed"

# faults
size=$(wc -c <r.rec | tr -d ' ')
bad() { rm -rf b; mkdir b; cp r.rec b/; }
bad; head -c $((size - 2)) r.rec >b/r.rec; run 1 inspect b/r.rec; err_has "b/r.rec: sample 59"; err_has "cut"
bad; head -c $((size - 3000)) r.rec >b/r.rec; cp r.idx b; run 1 digest b/r.rec; err_has "b/r.idx"; err_has "past the end"
bad; printf 'x' | dd of=b/r.rec bs=1 seek="$(sed -n '31s/.*	//p' r.idx)" conv=notrunc 2>/dev/null
run 1 digest b/r.rec; err_has "sample 30, offset $(sed -n '31s/.*	//p' r.idx): no record starts here"
bad; sed '$d' r.idx >b/r.idx; run 1 inspect b/r.rec; err_has "(59 are listed)"
bad; cp r.lst b; printf '60\t1.0\tmore.jpg\n' >>b/r.lst; run 0 inspect b/r.rec; err_has "list beside r.rec is not used: 61 pictures are listed, and there are 60 records"
bad; printf '\377\377\377\037' | dd of=b/r.rec bs=1 seek=4 conv=notrunc 2>/dev/null
run 1 convert b/r.rec b.mrec; err_has "sample 0, offset 4: a record of 536870911 bytes"; absent b.mrec
# one damaged picture is a bad sample, not a bad file
bad; printf '8BPS..' | dd of=b/r.rec bs=1 seek=32 conv=notrunc 2>/dev/null
run 3 convert b/r.rec b.mrec --quiet; grep -q '"sample": 0,.*b/r.rec.*expected a picture' b.mrec.bad.jsonl || fail "not listed"
run 1 digest b/r.rec; err_has "sample 0"

mxnet=${MRT_MXNET_PYTHON:-python3}
if "$mxnet" -c 'import mxnet' 2>/dev/null; then
    "$mxnet" "$pack" mxnet d/train m || fail "MXNet cannot pack"
    run 0 digest m.rec --epochs 2; equal "$(cut -d' ' -f1 out)" "$batches"
    same m.rec r.rec
    same m.idx r.idx
    "$mxnet" "$pack" mxnet s ms || fail "MXNet cannot pack"
    same ms.rec s.rec
    equal "$("$mxnet" "$pack" compare ms s)" 2
else
    echo "not run: MXNet's own files (MRT_MXNET_PYTHON names a Python that has it)"
fi
finish
