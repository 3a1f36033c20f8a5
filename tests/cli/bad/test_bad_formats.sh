# inspect --bad of every format that can have bad samples lists all of them with file, offset and reason, and exits with status 3. A run
# that skips bad samples writes the same list, a run that stops names one of them, and a set without bad samples is reported as such.
# Several workers meet bad samples in any order; one worker meets them in sample order, and the first one stops the run. (Folders and
# RecordIO: test_bad_lists.sh. IDX, CIFAR, arrays and tables of numbers fail as a whole when they are opened: test_bad_inputs.sh.)
. "$(dirname "$0")/../lib.sh"

run 0 synth d --classes 3 --count 4 --quiet
rm -r d/test
head -c 400 d/train/disc/00001.jpg >cut.jpg
echo "this is no picture" >no.jpg

# bad DATA COUNT SAMPLES FIRST: that many bad ones; the first of them is number FIRST. Files of many samples give offsets.
bad() {
    run 3 inspect "$1" --bad; out_has "$1: $2 of $3 samples are bad"
    run 3 inspect "$1" --bad --json --workers 3; equal "$(number bad)" "$2"; equal "$(number samples)" "$3"
    grep '"event": "bad"' out >listed
    equal "$(wc -l <listed | tr -d ' ')" "$2"
    equal "$(sed -n 's/^{"event": "bad", "sample": \([0-9]*\), "file": "..*", .*"code": "..*", "reason": "..*"}$/\1/p' listed | head -1)" "$4"
    equal "$(sed -n 's/^.*"sample": \([0-9]*\),.*/\1/p' listed | sort -n | tr '\n' ' ')" "$(sed -n 's/^.*"sample": \([0-9]*\),.*/\1/p' listed | tr '\n' ' ')"
    rm -f t.jsonl
    run 3 digest "$1" --bad skip --bad-list t.jsonl --order sequential --workers 1; same t.jsonl listed
    rm t.jsonl
    run 3 digest "$1" --bad skip --bad-list t.jsonl --order sequential
    sort t.jsonl >sorted; sort listed >wanted; same sorted wanted
    run 3 digest "$1" --bad replace --max-bad "$2" --order sequential
    run 1 digest "$1" --bad replace --max-bad $(($2 - 1)) --order sequential; err_has "more than $(($2 - 1)) samples are damaged"
    run 1 digest "$1" --order sequential
    named=$(sed -n '$s/.*: sample \([0-9]*\)[,:].*/\1/p' err)
    grep -q "\"sample\": ${named:-none}," listed || fail "$last: expected a sample of the list, found '$named'"
    run 1 digest "$1" --order sequential --workers 1; err_has "sample $4"
    [ -z "${5:-}" ] || { equal "$(grep -c '"offset": [0-9]' listed)" "$2"; err_has "sample $4, offset "; }
}

# a table: one file is no picture, one is cut, one is not there
{
    echo path,label
    for k in 0 1 2 3; do echo "d/train/disc/0000$k.jpg,$k"; done
    echo no.jpg,0; echo cut.jpg,1; echo gone.jpg,2
} >t.csv
bad t.csv 3 7 4

# an archive: cut, no picture, no class, and a class that is not a number
if command -v tar >/dev/null; then
    mkdir w
    n=0
    for picture in d/train/disc/00000.jpg cut.jpg no.jpg d/train/ring/00000.jpg d/train/ring/00001.jpg d/train/ring/00002.jpg; do
        n=$((n + 1))
        cp $picture w/$n.jpg
        echo $n >w/$n.cls
    done
    rm w/4.cls
    echo one >w/5.cls
    (cd w && tar cf ../t.tar -- *)
    bad t.tar 4 6 1 offset
fi

# a record file: a byte of its picture changed
run 0 convert d t.mrec --quiet
run 0 inspect t.mrec --record 7 --json
at=$(number offset)
printf '\0125' | dd of=t.mrec bs=1 seek=$((at + 700)) conv=notrunc 2>/dev/null
bad t.mrec 1 12 7 offset

# TFRecord: a record whose data do not match their checksum, one that is no Example, one without a picture, one cut
if command -v python3 >/dev/null; then
    python3 - >tfrecord.out 2>&1 <<'PYTHON' || fail "writing TFRecords: $(cat tfrecord.out)"
import struct

table = []
for n in range(256):
    for _ in range(8):
        n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
    table.append(n)


def masked(data):
    c = 0xFFFFFFFF
    for b in data:
        c = table[(c ^ b) & 255] ^ c >> 8
    c ^= 0xFFFFFFFF
    return struct.pack("<I", ((c >> 15 | c << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, data):
    return bytes([number << 3 | 2]) + varint(len(data)) + data


def feature(name, value):
    return field(1, field(1, name) + field(2, value))


def example(picture, label):
    label = feature(b"image/class/label", field(3, field(1, varint(label))))
    picture = feature(b"image/encoded", field(1, field(1, picture))) if picture else b""
    return field(1, picture + label)


def record(data):
    head = struct.pack("<Q", len(data))
    return head + masked(head) + data + masked(data)


good = open("d/train/disc/00000.jpg", "rb").read()
cut = open("cut.jpg", "rb").read()
changed = bytearray(record(example(good, 2)))
changed[100] ^= 1
records = [record(example(good, 0)), record(example(good, 1)), bytes(changed), record(b"\xff\xff\xff no message"),
           record(example(None, 0)), record(example(cut, 1)), record(example(good, 2))]
open("t.tfrecord", "wb").write(b"".join(records))
PYTHON
    bad t.tfrecord 4 7 2 offset
fi

# and where nothing is wrong
run 0 convert d whole.mrec --quiet
run 0 inspect whole.mrec --bad; out_has "whole.mrec: 0 of 12 samples are bad"
finish
