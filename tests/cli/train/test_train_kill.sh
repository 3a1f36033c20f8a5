# train killed again and again and resumed: the weights of the run that was not. Checkpoints that are damaged, of another run, or
# of another model are named.
. "$(dirname "$0")/../lib.sh"

run 0 synth d --count 20 --quiet
set -- --model cifar-cnn --batch 20 --epochs 6 --seed 3 --val none --augment cifar --quiet --json
run 0 train d "$@"
weights=$(text weights)
# each time it is killed after 0.1 to 0.5 s; where the machine makes no new checkpoint in that time, it gets twice as long from then on
n=0 status=137 patience=1 newest=
while [ $status -eq 137 ]; do
    n=$((n + 1))
    before=$newest
    centiseconds=$((patience * (n * 37 % 40 + 10)))
    "$millrace" train d "$@" --checkpoint run --checkpoint-steps 5 --resume >out 2>err &
    pid=$!
    sleep "$((centiseconds / 100)).$(printf %02d $((centiseconds % 100)))"
    kill -9 $pid 2>/dev/null
    wait $pid 2>/dev/null
    status=$?
    newest=$(find run -name 'step-*.mrck' 2>/dev/null | sort | tail -1)
    [ "$newest" != "$before" ] || patience=$((patience * 2))
done
last="train killed $((n - 1)) times"
equal $status 0
equal "$(text weights)" "$weights"

# resuming a finished run succeeds
run 0 train d "$@" --checkpoint run --resume; err_has "all 6 epochs are done"
equal "$(text weights)" "$weights"
equal "$(find run -name 'step-*.mrck' | wc -l | tr -d ' ')" 3

# the newest is damaged: the one before; all are: nothing is replaced
newest=$(ls run/step-* | tail -1)
cp -r run cut
head -c 100000 "$newest" >"cut/${newest##*/}"
run 0 train d "$@" --checkpoint cut --resume; err_has "passed over cut/${newest##*/}"
equal "$(text weights)" "$weights"
cp -r run allcut
for f in allcut/*; do head -c 1000 "$f" >x; cp x "$f"; done
run 1 train d "$@" --checkpoint allcut --resume; err_has "no whole checkpoint"
run 1 eval d --checkpoint allcut; err_has "no whole checkpoint"
cmp -s x "allcut/${newest##*/}" || fail "$last: the damaged checkpoint was replaced"
run 1 eval d --checkpoint "allcut/${newest##*/}"; err_has "allcut/${newest##*/}"
run 1 eval d --checkpoint d/train/disc/00000.jpg; err_has "not a checkpoint"

# of another run
run 0 synth other --count 21 --quiet
run 0 synth fewer --count 20 --classes 3 --quiet
run 0 synth gray --count 5 --channels 1 --size 28 --quiet
run 1 train other "$@" --checkpoint run --resume; err_has "not the data"
run 2 train d "$@" --checkpoint run --resume --model mnist-cnn; err_has "cifar-cnn"
run 2 train d "$@" --checkpoint run --resume --batch 21; err_has "--batch"
run 2 train d "$@" --checkpoint run --resume --seed 4; err_has "--seed"
run 2 train d "$@" --checkpoint run --resume --augment none; err_has "--augment: the checkpoint was trained with padcrop"
run 2 train d "$@" --checkpoint run --resume --pixels libjpeg; err_has "--pixels: the checkpoint was trained with own"
run 2 train d "$@" --checkpoint run --resume --epochs 9 --optimizer adam; err_has "--optimizer: the checkpoint was trained with rmsprop, found adam"
mv fewer/train/disc fewer/train/disk; mv fewer/test/disc fewer/test/disk
run 1 eval fewer --checkpoint run; err_has "class disk is not among the 10 expected"
run 1 eval gray --checkpoint run
mkdir none
run 1 eval d --checkpoint none; err_has "no whole checkpoint"
finish
