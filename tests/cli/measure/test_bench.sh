# bench: one JSON line for each ceiling, with numbers in it.
. "$(dirname "$0")/../lib.sh"

run 0 synth d --count 20 --quiet
positive() { [ "$(awk "BEGIN { print ($(number "$1") > 0) }")" = 1 ] || fail "$last: $1 is not above zero"; }
run 0 bench loader d --batch 32 --seconds 0.3 --json
equal "$(text what)" loader
positive samples_per_s
run 0 bench loader d --batch 32 --seconds 0.3 --devices cpu:2; out_has "samples/s"
run 0 bench loader d --batch 32 --seconds 0.3 --prefetch off; out_has "prefetch 0"
run 0 bench trainer --model mnist-mlp --batch 64 --seconds 0.3 --json
equal "$(text net)" N9
positive samples_s
positive ms
positive steps
run 0 bench trainer --model mnist-mlp --batch 65 --devices cpu:2 --seconds 0.2; out_has "2 replicas"
run 0 bench limits d --seconds 0.4 --rounds 2 --json
equal "$(wc -l <out | tr -d ' ')" 4
positive value
finish
