# stats: the counts of a set whose samples are known; the same numbers for any number of threads and in every format.
. "$(dirname "$0")/../lib.sh"

run 0 synth d --classes 3 --count 10 --size 48 --quiet
mv d/train s
rm -r d
cp s/disc/00000.jpg s/ring/copy.jpg # in another class
cp s/disc/00001.jpg s/disc/copy.jpg
run 0 stats s --quiet --seconds 0
out_has "samples     32"
out_has "classes     3; 10 to 11 samples each, the most are 1.1 times the fewest"
out_has "      11  disc"
out_has "pictures    32 jpeg (100.0 %)"
out_has "duplicates  2 samples have the bytes of an earlier one, 1 of them in another class"
out_has "disc/copy.jpg is disc/00001.jpg"
out_has "ring/copy.jpg is disc/00000.jpg"
out_has "of 32 pictures"
run 0 stats s --workers 1 --quiet --json --seconds 0
cp out one
run 0 stats s --workers 5 --quiet --json --seconds 0
same out one
equal "$(number duplicates)" 2
equal "$(number samples)" 32
for dst in t.mrec t.tar t.tfrecord; do # the same pictures, the same numbers
    run 0 convert s $dst --quiet
    run 0 stats $dst --quiet --json --seconds 0
    for key in samples progressive duplicates duplicates_in_other_classes mean deviation width height class_samples; do
        equal "$(grep -o "\"$key\": [^\"]*" out)" "$(grep -o "\"$key\": [^\"]*" one)"
    done
done
run 0 stats s --decode 0 --quiet --seconds 0; out_lacks "normalise("
run 0 stats s --decode 5 --quiet --seconds 0; out_has "of 5 pictures"
run 2 stats s --channels 5; err_has "did you mean --decode?"

# the estimate: rates differ from machine to machine, what follows from them does not
run 0 stats s --quiet --seconds 1ms --step 1h --batch 4
out_has "the given device takes 3600000.000 ms for a step of 4, 0 samples/s alone"
out_has "bound       by the step of the network, estimated"
run 0 stats s --quiet --seconds 1ms --step 1us --batch 128 --augment "resize(8x8)" --json # no loader gives 10^8 samples/s
out_has '"augment": "resize(8x8)"'
out_has '"batch": 128'
out_lacks '"by": "step"'
out_has '"trainer_samples_per_s": 128000000'
run 0 stats s --quiet --seconds 1ms
out_has "and --augment none, from memory"
out_has "if the device takes more than"
run 0 stats s --quiet --seconds 1ms --model cifar-cnn --batch 4 --json
out_has '"model": "cifar-cnn"'
out_lacks '"step_ms": null'
run 2 stats s --model cifar-cnn --step 1s; err_has "--model and --step exclude each other"
run 2 stats s --batch 4; err_has "--batch needs --model or --step"
run 2 stats s --seconds 0 --step 1s; err_has "--seconds 0 makes no estimate"
run 2 stats s --model nothing; err_has "there is no model 'nothing'"

# the page: its pictures are in it, names are escaped, and a file that is no page stays
mv s/disc/copy.jpg "s/disc/a<b.jpg"
run 0 stats s --quiet --seconds 0 --html page.html
equal "$(grep -c '^<figure><img alt="" src="data:image/jpeg;base64,/9j/' page.html)" "$(grep -c '<figure><img' page.html)"
[ "$(grep -c '<figure><img' page.html)" -ge 18 ] || fail "page.html: expected six pictures of each of three classes"
grep -q 'a&lt;b.jpg' page.html || fail "page.html: expected the duplicate's name, escaped"
grep -q '<h2>Outliers' page.html || fail "page.html: expected outliers"
cp page.html before.html
run 0 stats s --quiet --seconds 0 --html page.html --workers 3; same page.html before.html
echo mine >mine.html; run 2 stats s --html mine.html; err_has "is no page of millrace report"; equal "$(cat mine.html)" mine
run 0 stats s --quiet --seconds 0 --html mine.html --force; same mine.html page.html
run 1 stats s --html nowhere/page.html

# mean and deviation of pixels that are known: half 10, half 30
printf '\0\0\010\003\0\0\0\002\0\0\0\002\0\0\0\002\012\036\012\036\012\036\012\036' >i.idx3-ubyte
printf '\0\0\010\001\0\0\0\002\0\001' >i.idx1-ubyte
mkdir m && mv i.idx3-ubyte m/train-images-idx3-ubyte && mv i.idx1-ubyte m/train-labels-idx1-ubyte
run 0 stats m --quiet --seconds 0; out_has "normalise(20.00:20.00:20.00/10.00:10.00:10.00)"; out_has "pixels"; out_has "duplicates  1 sample has"

# samples that the part to test with has, too
run 0 synth parts --classes 2 --count 4 --size 16 --quiet
run 0 stats parts --quiet --seconds 0; out_has "test part   none of its 2 samples has"
cp parts/train/disc/00002.jpg parts/test/ring/again.jpg
run 0 stats parts --quiet --seconds 0 --html parts.html; out_has "test part   1 of its 3 samples has"
out_has "test/ring/again.jpg is train/disc/00002.jpg"
grep -q "one of these: 1 of 3" parts.html || fail "parts.html: expected the part to test with"
run 0 stats parts --quiet --seconds 0 --json; equal "$(number test_samples_shared)" 1
run 0 stats parts --split test --quiet --seconds 0; out_lacks "test part"
head -c 100 parts/test/ring/again.jpg >short && cp short parts/test/ring/again.jpg
run 3 stats parts --quiet --seconds 0; out_has "none of its 3 samples has"; out_has "1 of its samples cannot be read: --split test"

# unreadable samples are reported, and not counted
head -c 100 s/ring/00003.jpg >short && cp short s/ring/00003.jpg
run 3 stats s --quiet --html page.html --seconds 1ms; out_has "samples     31, and 1 that cannot be read"; err_has "ring/00003.jpg"
run 1 stats nowhere
finish
