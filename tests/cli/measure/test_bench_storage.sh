# bench storage: the number of accelerators fed, from the page cache and cold, in text and JSON, and its errors. No check depends on the
# machine's speed: any machine feeds a long step, none feeds a step of no time.
. "$(dirname "$0")/../lib.sh"

run 0 synth d --count 40 --quiet
storage() { want_status=$1; shift; run "$want_status" bench storage "$@" --workers 2; }
is() { [ "$(awk "BEGIN { print ($(number "$1") $2) }")" = 1 ] || fail "$last: expected $1 $2, found $(number "$1")"; }

# a step so short that no loader keeps up
storage 0 d/train --batch 64 --step 0.1ms --seconds 0.2 --from cache --augment none --json
equal "$(wc -l <out | tr -d ' ')" 1
equal "$(text what)" storage
equal "$(text from)" cache
equal "$(number accelerators)" 0
equal "$(number more_accelerators)" 1
is more_utilisation "< 0.9"
is accelerators_by_rate "< 1"
grep -q '"as_published": false, "verified": false' out || fail "$last: who says that this is verified?"
grep -q '"utilisation": null' out || fail "$last: no accelerator is fed, so none has a utilisation"
storage 0 d/train --batch 64 --step 0.1ms --seconds 0.2 --from cache --augment none
out_has "0 accelerators fed: one is busy"
out_has "unverified"
out_has "by the loader's rate alone"

# one picture in half a second: every accelerator is fed, up to the loader's limit on shares
storage 0 d/train --batch 1 --step 500ms --seconds 0.1 --from cache --augment none --json
is accelerators ">= 1"
is utilisation ">= 0.9"
is utilisation "< 1.001"
is accelerators_by_rate "> 1"

# cold, from a folder and from one file
run 0 convert d/train d.mrec --quiet
storage 0 d/train --batch 16 --step 1ms --seconds 0.1 --from cold --augment none --json
equal "$(text cold_method)" DONTNEED
storage 0 d.mrec --batch 16 --step 1ms --seconds 0.1 --augment none --json
equal "$(wc -l <out | tr -d ' ')" 2
equal "$(text from)" cold
equal "$(text cold_method)" O_DIRECT
storage 0 d.mrec --batch 16 --step 1ms --seconds 0.1 --augment none
out_has "came from storage"

# more samples in a batch than there are, of the published unit
storage 2 d.mrec --accelerator v100
err_has "resnet50 on h100"
storage 2 d.mrec --accelerator h100 --workload retinanet
err_has "there is no definition of it"
storage 2 d.mrec --devices cpu
err_has "--devices"
storage 2 d.mrec --cache ram:1M
err_has "--cache"
storage 2 d.mrec --prefetch off
err_has "--prefetch"
storage 2 d.mrec --direct
err_has "--from cold"
storage 1 nowhere
run 2 bench storage
err_has "needs DATA"
printf '1,2,3\n4,5,6\n' >numbers.csv
storage 1 numbers.csv --label-key 2
err_has "expected pictures"

# Ctrl-C ends it soon
"$millrace" bench storage d.mrec --batch 16 --step 1ms --seconds 60 --augment none >out 2>err &
child=$!
listens $child
kill -INT $child
wait $child
equal $? 130
finish
