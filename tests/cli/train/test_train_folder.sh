# A folder of checkpoints belongs to one run: another one is refused or moves it aside; two at once are refused; the states from which
# --resume goes on, its errors, and the changes that --override allows; a run that is killed again and again ends with the files of the
# undisturbed one.
. "$(dirname "$0")/../lib.sh"

run 0 synth d --classes 4 --count 20 --test-count 8 --size 16 --quiet
set -- --model cifar-cnn --augment none --batch 16 --seed 5 --quiet
# state FILE: a checkpoint but for the name of its run and the checksum that it is part of
state() {
    head -c 744 "$1"
    tail -c +761 "$1" | head -c 260
    tail -c +1025 "$1"
}
same_state() {
    state "$1" >one
    state "$2" >two
    cmp -s one two || fail "$last: $1 and $2 differ"
}

# a used folder
run 0 train d "$@" --epochs 4 --patience 9 --checkpoint whole --json
weights=$(text weights)
find whole -type f -exec cksum {} + | sort >before
run 1 train d "$@" --epochs 4 --checkpoint whole; err_has "holds the checkpoints of a run; --resume goes on with it, --force"
run 1 train d "$@" --epochs 4 --lr 0.5 --checkpoint whole; err_has "whole/step-000000000020.mrck"
find whole -type f -exec cksum {} + | sort >after
sed '/run.lock/d' before >x; sed '/run.lock/d' after >y; same x y
run 2 train d "$@" --force; err_has "--force needs --checkpoint"
run 2 train d "$@" --override --checkpoint whole; err_has "--override needs --resume"

# a shorter run takes the older one's place: eval takes its newest, the older one's are there still
cp -r whole used
run 0 train d "$@" --epochs 2 --lr 1e-5 --checkpoint used --force; err_has "moved to used/old-1"
run 0 eval d --checkpoint used; out_has "used/step-000000000010.mrck"
equal "$(ls used)" "$(printf 'best.mrck\nold-1\nrun.lock\nstep-000000000005.mrck\nstep-000000000010.mrck')"
same_state used/old-1/best.mrck whole/best.mrck
cp used/old-1/step-000000000020.mrck used # by hand
run 0 eval d --checkpoint used; out_has "used/step-000000000010.mrck"; err_has "a checkpoint of another run"
run 1 train d --checkpoint used --resume --epochs 3 --quiet; err_has "another run"; err_has "--force moves"
present used/step-000000000020.mrck
run 0 train d --checkpoint used --resume --epochs 3 --force --quiet; err_has "moved to used/old-2"
present used/step-000000000015.mrck

# two at once
"$millrace" train d "$@" --epochs 100000 --checkpoint busy >out1 2>err1 &
pid=$!
listens $pid
n=0
while [ ! -s busy/run.lock ] && [ $n -lt 500 ]; do n=$((n + 1)); sleep 0.02; done
for how in --resume --force ""; do
    # shellcheck disable=SC2086
    run 1 train d "$@" --epochs 3 --checkpoint busy --trace trace.json $how; err_has "another run writes its checkpoints into this folder, process $pid on"
    absent trace.json
done
kill -INT $pid
wait $pid
rm -rf busy

# stopped early: it stays so, until more is asked for
run 0 train d "$@" --epochs 30 --lr 1e-30 --patience 2 --checkpoint early; err_has "stopped early"
run 0 train d --checkpoint early --resume --quiet; err_has "this run was stopped early"
equal "$(find early -name 'step-*' | sort | tail -1)" early/step-000000000015.mrck
run 0 train d --checkpoint early --resume --patience 3 --quiet
equal "$(find early -name 'step-*' | sort | tail -1)" early/step-000000000020.mrck

# settings come from the checkpoint
run 0 train d "$@" --epochs 4 --patience 9 --checkpoint half --max-steps 7
cp -r half half2
run 0 train d --checkpoint half --resume --json --quiet
equal "$(text weights)" "$weights"
same_state half/best.mrck whole/best.mrck
same_state half/step-000000000020.mrck whole/step-000000000020.mrck
run 2 train d --checkpoint half2 --resume --quiet --lr 0.01; err_has "--lr: the checkpoint was trained with 0.0001, found 0.01"
run 2 train d --checkpoint half2 --resume --quiet --schedule cosine,warmup=1; err_has "--schedule: the checkpoint was trained with decay:1e-06, found cosine,warmup=1"
run 2 train d --checkpoint half2 --resume --quiet --momentum 0.3; err_has "--momentum: rmsprop takes none, and would ignore 0.3; --optimizer rmsprop-momentum does"
run 2 train d --checkpoint half2 --resume --quiet --weight-decay 0.3; err_has "--weight-decay: the checkpoint was trained with 0, found 0.3"
run 2 train d --checkpoint half2 --resume --quiet --exif ignore; err_has "--exif: the checkpoint was trained with apply, found ignore"
run 2 train d --checkpoint half2 --resume --quiet --pixels libjpeg; err_has "--pixels"
run 2 train d --checkpoint half2 --resume --quiet --augment flip; err_has "--augment: the checkpoint was trained with none, found flip"
run 2 train d --checkpoint half2 --resume --quiet --batch 20; err_has "--batch: the checkpoint was trained with 16, found 20"
run 2 train d --checkpoint half2 --resume --quiet --order sequential --override; err_has "--order"
run 0 train d --checkpoint half2 --resume --quiet --schedule constant --lr 0.001 --augment flip --exif ignore --override
err_has "--lr: the checkpoint was trained with 0.0001; from here on 0.001"
err_has "--augment: the checkpoint was trained with none; from here on flip"
run 0 train d --checkpoint half2 --resume --quiet --epochs 5; out_has "lr 0.001, schedule constant"
run 0 train d --checkpoint half2 --resume --quiet --epochs 6 --json; grep -q '"lr": 0.001[,}]' out || fail "$last: lr is not 0.001"

# killed at random moments: weights, newest and best equal the undisturbed run's; when every run was killed, one more ends by itself
run 0 train d "$@" --epochs 16 --lr 1e-3 --patience 9 --checkpoint long --checkpoint-steps 2 --json
weights=$(text weights)
n=0 status=1
while [ $n -lt 20 ] && [ $status -ne 0 ]; do
    n=$((n + 1))
    "$millrace" train d "$@" --epochs 16 --lr 1e-3 --patience 9 --checkpoint killed --checkpoint-steps 2 --resume --json >out 2>err &
    pid=$!
    sleep "$((n / 15)).$(printf %03d $((n * 137 % 290 + 40)))"
    kill -9 $pid 2>/dev/null
    wait $pid 2>/dev/null
    status=$?
done
if [ $status -ne 0 ]; then
    n=$((n + 1)) status=0
    "$millrace" train d "$@" --epochs 16 --lr 1e-3 --patience 9 --checkpoint killed --checkpoint-steps 2 --resume --json >out 2>err || status=$?
fi
last="train killed $((n - 1)) times"
echo "$last"
equal $status 0
equal "$(text weights)" "$weights"
same_state killed/best.mrck long/best.mrck
same_state killed/step-000000000080.mrck long/step-000000000080.mrck

# killed between a checkpoint and its second name
cp -r whole behind
best=$(find whole -samefile whole/best.mrck -name 'step-*')
if [ -n "$best" ]; then
    cp "$(find whole -name 'step-*' ! -name "${best##*/}" | head -1)" behind/best.mrck
    run 0 train d --checkpoint behind --resume --quiet
    same_state behind/best.mrck whole/best.mrck
fi

# a pipe does not block, the newest damaged does not cost the others
cp -r half pipe
mkfifo pipe/step-000000000999.mrck
run 0 eval d --checkpoint pipe; out_has "pipe/step-000000000020.mrck"
run 0 train d --checkpoint pipe --resume --quiet --epochs 5
cp -r whole cut
head -c 9000 whole/step-000000000020.mrck >cut/step-000000000020.mrck
cp cut/step-000000000020.mrck cut/step-000000000900.mrck
run 0 train d --checkpoint cut --resume --keep 1 --epochs 4 --quiet; err_has "passed over cut/step-000000000900.mrck"
same_state cut/step-000000000020.mrck whole/step-000000000020.mrck
run 0 eval d --checkpoint cut

# a run that diverges
run 1 train d "$@" --epochs 2 --optimizer sgd --lr 100 --checkpoint wild; err_has "diverge"; absent wild/best.mrck
run 1 train d "$@" --epochs 2 --optimizer sgd --lr 100 --json; grep -q '"diverged": true' out || fail "$last: no \"diverged\": true"

# stopped in the middle: the row keeps its columns
run 0 train d "$@" --epochs 2 --max-steps 3
equal "$(sed -n 's/^ *1 .* - .*/yes/p' out)" yes
equal "$(awk '/^epoch/ { n = NF - 4 } /^ *1 / { print NF == n ? "even" : "odd" }' out)" even
finish
