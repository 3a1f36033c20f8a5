# Evaluation inside epochs, and stopping at an accuracy: the epoch that reaches it is the last, its cost is reported, a resumed run knows
# it, ranks agree, and a sweep has it in its table.
. "$(dirname "$0")/../lib.sh"
. "$here/ranks/together.sh"

run 0 synth d --classes 4 --count 20 --test-count 8 --size 16 --quiet
set -- --model cifar-cnn --augment none --batch 16 --seed 5 --lr 1e-3 --quiet

# where an epoch is better than the first one: there it stops
run 0 train d "$@" --epochs 12 --json
grep -q '"stop_at_accuracy"' out && fail "$last: nobody asked for an accuracy"
sed -n 's/.*"event": "epoch".*"val_accuracy": \([0-9.]*\).*/\1/p' out >accuracies
equal "$(wc -l <accuracies)" 12
goal=$(awk 'NR == 1 { a = $1 } $1 > a { print $1; exit }' accuracies)
at=$(awk 'NR == 1 { a = $1 } $1 > a { print NR; exit }' accuracies)
[ -n "$goal" ] || fail "no epoch is better than the first: $(cat accuracies)"
run 0 train d "$@" --epochs 12 --json --stop-at-accuracy "$goal" --checkpoint run
equal "$(grep -c '"event": "epoch"' out)" "$at"
err_has "stopped: accuracy $(awk -v g="$goal" 'BEGIN { printf "%.4f", g }') after $((5 * at)) steps, at least $goal was asked for"
equal "$(number stop_at_accuracy) $(number reached_accuracy) $(number reached_epochs) $(number reached_steps)" \
    "$goal $goal $at $((5 * at))"
tail -1 out | grep -q '"complete": true.*"reached": true' || fail "$last: not reported as reached"
seconds=$(number reached_seconds) evaluation=$(number reached_eval_seconds)
awk -v a="$seconds" -v b="$evaluation" -v all="$(number total_seconds)" 'BEGIN { exit !(a > 0 && b > 0 && a + b <= all) }' ||
    fail "$last: $seconds s and $evaluation s of $(number total_seconds)"

# a resumed run takes the accuracy from the checkpoint and stays where it is; a higher one lets it go on
run 0 train d --checkpoint run --resume --quiet
err_has "this run has ended before: accuracy"
out_has "goal     accuracy $goal reached ($(awk -v g="$goal" 'BEGIN { printf "%.4f", g }')) after $at epochs, $((5 * at)) steps, $(awk -v s="$seconds" 'BEGIN { printf "%.2f", s }') s of training"
run 0 train d --checkpoint run --resume --quiet --json --stop-at-accuracy 1 --max-steps 2
tail -1 out | grep -q '"reached": false, "reached_accuracy": null, "reached_epochs": null, "reached_steps": null, "reached_seconds": null' ||
    fail "$last: reported as reached"
awk -v a="$(number train_seconds)" -v b="$seconds" 'BEGIN { exit !(a > b) }' || fail "$last: the seconds before are not counted"
run 0 train d --checkpoint run --resume --quiet --stop-at-accuracy 1 --max-steps 1
out_has "goal     accuracy 1 not reached in"
run 0 train d --checkpoint run --resume --quiet --stop-at-accuracy 0 --max-steps 1
out_lacks "goal "
run 0 train d --checkpoint run --resume --quiet --max-steps 1
out_lacks "goal "

# processes together stop together
set -- "$@" --parts 2
run 0 train d "$@" --epochs 12 --json
sed -n 's/.*"event": "epoch".*"val_accuracy": \([0-9.]*\).*/\1/p' out >accuracies
goal=$(awk 'NR == 1 { a = $1 } $1 > a { print $1; exit }' accuracies)
at=$(awk 'NR == 1 { a = $1 } $1 > a { print NR; exit }' accuracies)
together 0 2 train d "$@" --epochs 12 --json --stop-at-accuracy "$goal" --checkpoint ranks
equal "$(grep -c '"event": "epoch"' out) $(number reached_steps)" "$at $((5 * at))"
reached=$(text weights)
together 0 2 train d "$@" --epochs 12 --json --checkpoint ranks --resume
equal "$(text weights) $(number reached_steps) $(number steps)" "$reached $((5 * at)) 0"
of_rank() { [ "$1" -eq 0 ] || echo --stop-at-accuracy 0.9; }
together 2 2 train d "$@" --epochs 12 --stop-at-accuracy 0.8
of_rank() { :; }

# evaluations inside epochs change no weight, are reported at their position, and lie between the epochs
run 0 train d "$@" --epochs 2 --json
weights=$(text weights)
run 0 train d "$@" --epochs 2 --json --eval-steps 2 --eval-at 0.1/1.5/2 --csv evals.csv --tensorboard tb --checkpoint evals
equal "$(text weights)" "$weights"
equal "$(sed -n 's/.*"event": "\([a-z]*\)".*/\1/p' out | tr '\n' ' ')" "start eval eval eval epoch eval eval epoch train "
equal "$(sed -n 's/.*"event": "eval", "epoch": \([0-9]*\), "step": \([0-9]*\), "steps_per_epoch": 5, "updates": \([0-9]*\), "samples": 32,.*/\1 \2 \3/p' out | tr '\n' ',')" \
    "0 1 1,0 2 2,0 4 4,1 1 6,1 3 8,"
grep '"event": "eval"' out | grep -qv '"val_loss": [0-9.]*, "val_accuracy": [0-9.]*, "seconds": [0-9.e-]*, "best": [a-z]*, "diverged": false, "simulated": false' &&
    fail "$last: an evaluation lacks something"
equal "$(grep -c '^eval,' evals.csv)" 5
equal "$(awk -F, '{ print NF }' evals.csv | sort -u)" 14
cp out one.jsonl
run 0 report one.jsonl --html one.html
run 0 train d "$@" --epochs 1 --eval-at 0.4
equal "$(sed -n 's/^ *0.40 .* - .*/yes/p' out)" yes
equal "$(awk '/^epoch/ { n = NF - 4 } /^ *[01](\.[0-9]*)? / { print NF == n ? "even" : "odd" }' out | sort -u)" even
together 0 2 train d "$@" --epochs 2 --json --eval-steps 2 --eval-at 0.1/1.5/2
equal "$(text weights)" "$weights"
sed -n 's/.*"event": "eval".*"updates": \([0-9]*\).*"val_loss": \([0-9.]*\).*/\1 \2/p' out >two
sed -n 's/.*"event": "eval".*"updates": \([0-9]*\).*"val_loss": \([0-9.]*\).*/\1 \2/p' one.jsonl >one
same one two

# stopped and gone on with: none is lost, none comes twice
run 0 train d "$@" --epochs 2 --json --eval-steps 3 --checkpoint whole
sed -n 's/.*"event": "eval".*"updates": \([0-9]*\).*"val_loss": \([0-9.]*\).*/\1 \2/p' out >one
equal "$(wc -l <one)" 3
run 0 train d "$@" --epochs 2 --json --eval-steps 3 --checkpoint parts --max-steps 4
sed -n 's/.*"event": "eval".*"updates": \([0-9]*\).*"val_loss": \([0-9.]*\).*/\1 \2/p' out >two
run 0 train d --checkpoint parts --resume --json --eval-steps 3 --parts 2 --quiet
equal "$(text weights)" "$weights"
sed -n 's/.*"event": "eval".*"updates": \([0-9]*\).*"val_loss": \([0-9.]*\).*/\1 \2/p' out >>two
same one two

# an accuracy that is there before the epoch ends
first=$(sed -n 's/.*"event": "eval".*"val_accuracy": \([0-9.]*\).*/\1/p' one.jsonl | head -1)
run 0 train d "$@" --epochs 2 --json --eval-at 0.1 --stop-at-accuracy "$first" --checkpoint early
equal "$(number reached_steps) $(number reached_epochs)" "1 0.2"
run 0 train d --checkpoint early --resume --quiet
err_has "this run has ended before"

# a sweep
printf 'data = d\nmodel = cifar-cnn\naugment = none\nbatch = 16\nlr = 1e-3 | 1e-30\nseed = 5\nparts = 2\nepochs = %s\nstop-at-accuracy = %s\n' \
    "$at" "$goal" >study.txt
run 0 sweep study.txt --out study
out_has "s of training to the accuracy"
out_has "the accuracy not reached"
equal "$(sed -n 1p study/results.csv)" \
    "run,model,augment,batch,lr,seed,parts,epochs,stop-at-accuracy,state,epochs_done,acc,val_acc,loss,val_loss,time_s,samples_per_s,speed_up,reached_s,reached_steps,weights"
equal "$(grep -c ",1e-3,5,.*,,[0-9.]*,$((5 * at)),$reached\$" study/results.csv)" 1
equal "$(grep -c ',1e-30,5,.*,,,,[0-9a-f]*$' study/results.csv)" 1
grep -q 'training to the accuracy, s' study/sweep.html || fail "the page lacks the column"
run 0 sweep study.txt --out study --json
equal "$(grep -c '"reached_s": [0-9.]*, "reached_steps": [0-9]' out)" 1
equal "$(grep -c '"reached_s": null, "reached_steps": null' out)" 1

# what makes no sense
run 2 train d "$@" --eval-at 0.5/x
err_has "--eval-at: expected numbers of epochs above 0 with / between them, such as 0.5/1.25, found '0.5/x'"
for at in 0 -1 1/ /1 1//2 nan inf ""; do run 2 train d "$@" --eval-at="$at"; done
run 2 train d "$@" --eval-steps 2 --val none
err_has "--eval-steps: there is no validation data; --val DATA names them"
run 2 train d "$@" --eval-at 0.5 --val none
err_has "--eval-at: there is no validation data"
run 2 train d "$@" --stop-at-accuracy 92
err_has "--stop-at-accuracy: expected 0 to 1, found '92'"
run 1 train d --model mnist-vae --augment none --quiet --stop-at-accuracy 0.5
err_has "has no classes: there is no accuracy to stop at"
finish
