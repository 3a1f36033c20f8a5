# train --live: on a pseudo-terminal, whose screen is looked at (live.py, terminal.py); not on one, and with options that contradict.
. "$(dirname "$0")/../lib.sh"
command -v python3 >/dev/null || skip "no python3"
run 0 synth d --count 24 --quiet

run 0 train d --model cifar-cnn --batch 40 --epochs 1 --seed 1
weights=$(sed -n 's/^weights *\([0-9a-f]*\).*/\1/p' out)
run 0 train d --model cifar-cnn --batch 40 --epochs 1 --seed 1 --live
err_has "millrace: --live: standard error is no terminal: the usual progress is shown instead"
equal "$(grep -c -- --live err)" 1
equal "$(sed -n 's/^weights *\([0-9a-f]*\).*/\1/p' out)" "$weights"
run 2 train d --model cifar-cnn --live --quiet; err_has "--live and --quiet"
run 0 bench loader d --augment "resize(32x32)" --seconds 0.2 --live; err_has "there is no view"; out_has "samples/s"
run 2 bench limits d --live; err_has "bench loader has it"

last="train --live on a terminal"
python3 "$here/watch/live.py" "$millrace" d >out 2>err || fail "$last"
finish
