# train, watched: the event `step`, CSV, event files, the page for Prometheus; resumed, refused, a full disk.
. "$(dirname "$0")/../lib.sh"
metrics_check=$3

run 0 synth d --count 6 --test-count 2 --size 16 --quiet
set -- --model cifar-cnn --batch 10 --epochs 3 --seed 1 --lr 1e-3 --quiet

# the weights equal the weights of an unwatched run
run 0 train d "$@" --json
weights=$(text weights)
equal "$(grep -c '"event": "step"' out)" 0
run 0 train d "$@" --json --log-steps 2 --csv whole.csv --tensorboard whole
equal "$(text weights)" "$weights"
equal "$(grep -c '"event": "step"' out)" 9
equal "$(grep '"event": "step"' out | sed -n '4s/.*"updates": \([0-9]*\), "steps": \([0-9]*\), "samples": \([0-9]*\).*/\1 \2 \3/p')" "8 2 20"
for key in epoch step steps_per_epoch loss accuracy lr samples_per_s seconds_left; do
    grep '"event": "step"' out | grep -q "\"$key\": " || fail "$last: no \"$key\" in the lines of steps"
done
equal "$(sed -n '1s/,.*//p' whole.csv)" event
equal "$(cut -d, -f1 whole.csv | sort | uniq -c | tr -s ' \n' ' ')" " 3 epoch 1 event 9 step "
equal "$(awk -F, '{print NF}' whole.csv | sort -u)" 14
equal "$(awk -F, '$1 == "epoch" {printf "%s:%s:%s ", $2, $3, $5}' whole.csv)" "0:6:60 1:12:60 2:18:60 "
present whole/events.out.tfevents.[0-9]*.*
run 0 train d "$@" --json --csv epochs.csv
equal "$(cut -d, -f1 epochs.csv | tr '\n' ' ')" "event epoch epoch epoch "

# stopped and resumed: the same lines, but for times, and another event file
losses() { awk -F, '$1 == "'"$1"'" && NF == 14 {print $2, $3, $7, $8, $9}' "$2"; }
run 0 train d "$@" --log-steps 2 --csv two.csv --tensorboard two --checkpoint run --max-steps 8
printf 'epoch,1,9' >>two.csv # killed in the middle of a line
run 0 train d "$@" --log-steps 2 --csv two.csv --tensorboard two --checkpoint run --resume
equal "$(losses step two.csv)" "$(losses step whole.csv)"
equal "$(grep -c '^event,' two.csv)" 1
equal "$(awk -F, '{print NF}' two.csv | sort -u)" 14
equal "$(ls two | wc -l)" 2
run 0 train d "$@" --csv two.csv --tensorboard two --checkpoint run --resume # nothing is left to do, nothing is left
equal "$(ls two | wc -l)" 2
run 0 train d "$@" --csv none.csv --tensorboard none --checkpoint run --resume
absent none.csv
absent none

# existing files
cp two.csv before
run 1 train d "$@" --csv two.csv; err_has "two.csv: it exists already"; same two.csv before
echo "a,b" >other.csv
cp other.csv before
run 1 train d "$@" --csv other.csv --checkpoint run2 --resume; err_has "expected to go on with a file whose first line is 'event,epoch"; same other.csv before
head -c 5 whole.csv >cut.csv
run 0 train d "$@" --csv cut.csv --checkpoint run2 --resume; equal "$(cut -d, -f1 cut.csv | tr '\n' ' ')" "event epoch epoch epoch "
run 1 train d "$@" --csv d/train/disc/00001.jpg --checkpoint run3 --resume; err_has "input"
run 1 train d "$@" --csv nowhere/x.csv; err_has "nowhere/x.csv"; out_lacks "model"
run 1 train d "$@" --csv /dev/null --checkpoint run3 --resume; err_has "/dev/null"
ln -s whole.csv link.csv
run 1 train d "$@" --csv link.csv --checkpoint run3 --resume; err_has "link.csv"
run 1 train d "$@" --tensorboard whole.csv; err_has "expected a folder"; out_lacks "model"
run 1 train d "$@" --tensorboard whole.csv/below; err_has "whole.csv/below: cannot make the folder"
run 0 train d "$@" --tensorboard runs/new; present runs/new
run 2 train d "$@" --trace same --csv same; err_has "--trace and --csv both name"
run 2 train d "$@" --metrics 65536; err_has "from 0 to 65535"; out_lacks "model"
run 1 train d "$@" --metrics nowhere.invalid:9100; err_has "cannot find the host"
run 1 train d "$@" --csv kept.csv --metrics nowhere.invalid:1; absent kept.csv

# a full disk: reported once, the run goes on, exit status 1 at its end; the file holds whole lines
full() {
    last="train $* with a full disk"
    (
        trap '' XFSZ
        ulimit -f 1
        { "$millrace" train d --model cifar-cnn --batch 10 --epochs 3 --seed 1 --lr 1e-3 --quiet --log-steps 1 "$@" 2>&1; echo "status $?"; } | cat
    ) | cat >out
    out_has "nothing more is written to "
    out_has "verdict"
    out_has "status 1"
    equal "$(grep -c 'nothing more is written' out)" 1
}
full --csv full.csv
equal "$(tail -c 1 full.csv | od -An -c | tr -d ' ')" '\n'
equal "$(awk -F, '{print NF}' full.csv | sort -u)" 14
full --tensorboard full

# a loss that is NaN: every update makes weights 999 times as large
run 1 train d --model cifar-cnn --batch 10 --epochs 2 --lr 1000 --weight-decay 1 --optimizer sgd --quiet --json --log-steps 1 --csv nan.csv --tensorboard nan
out_has '"loss": null'
grep -q '^epoch,.*nan' nan.csv || fail "$last: no nan in nan.csv"
equal "$(awk -F, '{print NF}' nan.csv | sort -u)" 14

# figures while it goes on
command -v curl >/dev/null || { finish; }
"$millrace" train d --model cifar-cnn --batch 10 --epochs 100000 --seed 1 --quiet --metrics 0 --csv live.csv --checkpoint live >live_out 2>live_err &
pid=$!
listens $pid
last="train --metrics"
for i in $(seq 300); do
    awk 'END {exit NR < 2}' live.csv 2>/dev/null && break
    sleep 0.1
done
at=$(sed -n 's|.*metrics at http://\(.*\)/metrics$|\1|p' live_err)
curl -s -m 10 --noproxy '*' "http://$at/metrics" >page || fail "no page at $at"
"$metrics_check" <page >wrong || fail "$last: $(cat wrong)"
for name in info epoch updates steps_total step_loss step_accuracy lr samples_per_second left_seconds loss accuracy val_loss \
    stall_fraction read_bytes_total samples_total stage_busy_seconds_total wait_cause_seconds_total peak_rss_bytes; do
    grep -q "^millrace_${name}[ {]" page || fail "$last: no millrace_$name on the page"
done
grep -q '^millrace_info{version="[0-9.]*",model="cifar-cnn",data="d",device="cpu:0"} 1$' page || fail "$last: millrace_info"
run 1 train d "$@" --metrics "$at"; err_has "another program listens there"; out_lacks "model"
kill -INT $pid
wait $pid
equal $? 130
curl -s -m 10 --noproxy '*' "http://$at/metrics" >page && fail "there is still a page after the end"
finish
