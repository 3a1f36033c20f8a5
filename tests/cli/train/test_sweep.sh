# All combinations of some options: each is run, one that fails ends nothing, finished runs are not repeated, and a sweep that is stopped
# resumes.
. "$(dirname "$0")/../lib.sh"

run 0 synth d --count 6 --size 12 --quiet
cat >study.txt <<'END'
# two networks, two sizes of batch
data    = d
model   = mnist-mlp | nonsense
batch   = 20 | 40
devices = cpu:1 | cpu:2
seed    = 0|1
epochs  = 1
augment = resize(12x12)
checkpoint = - | run-{run}
END

run 0 sweep study.txt --dry-run
equal "$(wc -l <out)" 32
out_has "open  millrace train d --model mnist-mlp --batch 20 --devices cpu:1 --seed 0 --epochs 1 --augment 'resize(12x12)' --json --quiet"
run 0 sweep study.txt --dry-run --json
equal "$(grep -c '"event": "sweep_run".*"state": "open"' out)" 32
absent sweep

sed -i '/^checkpoint/d' study.txt
run 1 sweep study.txt --json --out study
equal "$(grep -c '"event": "sweep_run"' out)" 16
equal "$(grep -c '"state": "done"' out)" 8
equal "$(grep -c '"state": "failed", "done_before": false, "status": 2' out)" 8
equal "$(number "done")" 8
equal "$(number failed)" 8
equal "$(sed -n 1p study/results.csv)" \
    "run,model,batch,devices,seed,epochs,augment,state,epochs_done,acc,val_acc,loss,val_loss,time_s,samples_per_s,speed_up,weights"
equal "$(wc -l <study/results.csv)" 17
equal "$(grep -c '^[0-9a-f]*,mnist-mlp,.*,done,1,[0-9.]*,[0-9.]*,' study/results.csv)" 8
equal "$(grep -c '^[0-9a-f]*,nonsense,.*,failed,,,,,,,,,$' study/results.csv)" 8
present study/sweep.html
grep -q '</html>' study/sweep.html || fail "sweep.html has no end"
# the same numbers as train's own, in the table
run 0 train d --model mnist-mlp --batch 40 --devices cpu:2 --seed 1 --epochs 1 --augment "resize(12x12)" --json --quiet
weights=$(text weights)
grep -q "^[0-9a-f]*,mnist-mlp,40,cpu:2,1,.*,$weights\$" study/results.csv || fail "no row with weights $weights: $(cat study/results.csv)"

# finished runs stay; failed runs are tried again; a further value adds a run
sed -i 's/| nonsense//; s/20 | 40/20 | 40 | 60/' study.txt
run 0 sweep study.txt --json --out study
equal "$(grep -c '"done_before": true' out)" 8
equal "$(number "done")" 12
equal "$(number done_before)" 8
run 0 sweep study.txt --out study
out_has "12 runs: 12 done, 0 failed, 0 open; study/results.csv, study/sweep.html"
run 0 sweep study.txt --out study --plot model
run 2 sweep study.txt --out study --plot colour
err_has "--plot colour: study.txt has no such option"

# a run that was stopped goes on from its own checkpoint
printf 'data = d\nmodel = mnist-mlp\nbatch = 20\nepochs = 3\naugment = resize(12x12)\ncheckpoint = run-{run}\nresume = +\n' >part.txt
run 0 sweep part.txt --dry-run
folder=$(sed -n 's/.*--checkpoint \([^ ]*\).*/\1/p' out)
set -- --model mnist-mlp --batch 20 --epochs 3 --augment "resize(12x12)" --quiet
run 0 train d "$@" --checkpoint "$folder" --max-steps 4
run 0 sweep part.txt --out part
err_has "$folder"
run 0 train d "$@" --json
weights=$(text weights)
grep -q ",done,.*,$weights\$" part/results.csv || fail "no row with weights $weights: $(cat part/results.csv)"

# stopped in the middle of a run, and gone on with
printf 'data = d\nmodel = mnist-mlp\nepochs = 1 | 1000000\naugment = resize(12x12)\n' >long.txt
rm -f out
"$millrace" sweep long.txt --out long >out 2>err &
pid=$!
shows $pid "1/2  epochs 1: acc" || fail "the first run is not shown: $(cat out err)"
kill -INT $pid
wait $pid
equal $? 130
grep -q "the same command goes on" err || fail "stopping is not reported: $(cat err)"
equal "$(ls long/runs | wc -l)" 1
sed -i 's/1000000/2/' long.txt
run 0 sweep long.txt --out long
out_has "(done before)"
out_has "2 runs: 2 done"

# a run that another sweep is at is left to it: none is damaged
for k in 1 2 3; do
    "$millrace" sweep study.txt --out both --quiet >out$k 2>err$k &
    eval "pid$k=\$!"
done
for k in 1 2 3; do
    eval "wait \$pid$k" || grep -q "open; both" out$k || fail "sweep $k of three failed: $(cat out$k err$k)"
done
run 0 sweep study.txt --out both
out_has "12 runs: 12 done"

# mistakes
mkdir mine
echo text >mine/letter
run 2 sweep study.txt --out mine
err_has "mine: it holds something, and no results.csv of a sweep"
equal "$(ls mine)" letter
refused() { # TEXT MESSAGE
    printf '%b' "$1" >bad.txt
    run 1 sweep bad.txt --out bad
    err_has "$2"
    absent bad
}
refused 'model = a\n' "expected a line 'data = SET'"
refused 'data = d\n' "expected a line 'model = NAME"
refused 'data = d\nmodel\n' "line 2: expected OPTION = VALUE"
refused 'data = d\n--model = a\n' "line 2: expected the name of an option of train, without dashes; found '--model'"
refused 'data = d\nmodel = a\nmodel = b\n' "line 3: 'model' stands there twice"
refused 'data = d\nmodel = a | | b\n' "line 2: 'model' has an empty value"
refused 'data = d\nmodel = a | a\n' "line 2: 'model' has the value 'a' twice"
refused 'data = d | e\nmodel = a\n' "line 1: 'data' has 2 values: one set a sweep"
refused 'data = d\nmodel = a\njson = +\n' "line 3: 'json' is not for a file"
refused 'data = d\000\nmodel = a\n' "expected text, found a byte 0"
refused '' "expected a line 'data = SET'"
run 1 sweep none.txt
err_has "none.txt"
run 1 sweep d
err_has "a folder"

finish
