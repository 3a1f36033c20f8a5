# stats: the counts of a set whose samples are known; the same numbers for any number of threads and in every format.
. "$(dirname "$0")/../lib.sh"

run 0 synth d --classes 3 --count 10 --size 48 --quiet
mv d/train s
rm -r d
cp s/disc/00000.jpg s/ring/copy.jpg # in another class
cp s/disc/00001.jpg s/disc/copy.jpg
run 0 stats s --quiet
out_has "samples     32"
out_has "classes     3; 10 to 11 samples each, the most are 1.1 times the fewest"
out_has "      11  disc"
out_has "pictures    32 jpeg (100.0 %)"
out_has "duplicates  2 samples have the bytes of an earlier one, 1 of them in another class"
out_has "disc/copy.jpg is disc/00001.jpg"
out_has "ring/copy.jpg is disc/00000.jpg"
out_has "of 32 pictures"
run 0 stats s --workers 1 --quiet --json
cp out one
run 0 stats s --workers 5 --quiet --json
same out one
equal "$(number duplicates)" 2
equal "$(number samples)" 32
for dst in t.mrec t.tar t.tfrecord; do # the same pictures, the same numbers
    run 0 convert s $dst --quiet
    run 0 stats $dst --quiet --json
    for key in samples progressive duplicates duplicates_in_other_classes mean deviation width height class_samples; do
        equal "$(grep -o "\"$key\": [^\"]*" out)" "$(grep -o "\"$key\": [^\"]*" one)"
    done
done
run 0 stats s --decode 0 --quiet; out_lacks "normalise("
run 0 stats s --decode 5 --quiet; out_has "of 5 pictures"
run 2 stats s --channels 5; err_has "did you mean --decode?"

# mean and deviation of pixels that are known: half 10, half 30
printf '\0\0\010\003\0\0\0\002\0\0\0\002\0\0\0\002\012\036\012\036\012\036\012\036' >i.idx3-ubyte
printf '\0\0\010\001\0\0\0\002\0\001' >i.idx1-ubyte
mkdir m && mv i.idx3-ubyte m/train-images-idx3-ubyte && mv i.idx1-ubyte m/train-labels-idx1-ubyte
run 0 stats m --quiet; out_has "normalise(20.00:20.00:20.00/10.00:10.00:10.00)"; out_has "pixels"; out_has "duplicates  1 sample has"

# unreadable samples are reported, and not counted
head -c 100 s/ring/00003.jpg >short && cp short s/ring/00003.jpg
run 3 stats s --quiet; out_has "samples     31, and 1 that cannot be read"; err_has "ring/00003.jpg"
run 1 stats nowhere
finish
