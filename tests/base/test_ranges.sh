# ranges: a profiler sees every stage of a training run, each range closed on the thread that opened it, and threads by name.
# usage: sh test_ranges.sh MILLRACE LISTENER, the listener a library that counts (nvtx_listener.c).
listener=$2
. "$(dirname "$0")/../cli/lib.sh"
json_lines=true

run 0 synth d --classes 2 --count 24 --quiet
export NVTX_INJECTION64_PATH="$listener" RANGES_HEARD="$temp/heard"
heard() { # heard NAME: pushes of it, after a check that as many were closed
    read -r _ _ pushes pops deepest <<END
$(grep "^range $1 " heard)
END
    [ "${pushes:-0}" -gt 0 ] || fail "$last: no range '$1'"
    equal "$pops" "$pushes"
}

run 0 train d --model cifar-cnn --batch 16 --epochs 2 --workers 2 --devices cpu:2 --val d --checkpoint run --quiet
for name in read room decode parse augment stage copy wait host step forward backward exchange update evaluate checkpoint; do
    heard $name
done
equal "$(grep '^wrong' heard)" "wrong 0"
equal "$(grep -c '^range' heard)" 32 # and "replay", where a device records, "memory", "sum", "wait for rank", and a mark for each of the 12 causes
for cause in read decode large memory cores quota lock room copy host unknown network; do
    grep -q "^mark stall_$cause " heard || fail "$last: no mark for the cause '$cause'"
done
equal "$(awk '/^mark/ && !/stall_/ { n += $3 } END { print n }' heard)" 0
heard host; [ "$pushes" -ge 6 ] || fail "$last: 6 steps, but $pushes ranges 'host'"
heard step; equal "$pushes" 6              # 48 samples in batches of 16, twice
heard backward; equal "$pushes:$deepest" 12:3 # two replicas, inside the step, which is inside "host"
heard parse; equal "$deepest" 2            # inside a chunk's decode
heard checkpoint; equal "$pushes" 2         # the best is a hard link
for name in "worker 0" "worker 1" reader stager; do
    grep -q "^thread $name" heard || fail "$last: no thread is called '$name': $(grep ^thread heard)"
done

run 0 train d --model cifar-cnn --batch 16 --epochs 1 --prefetch off --val none --quiet
for name in read decode parse augment stage copy wait step forward backward update; do heard $name; done
equal "$(grep '^wrong' heard)" "wrong 0"

# a link that takes 5 ms a batch, for steps of 1 ms: the device waits, except for batches that were ready when an epoch began
run 0 train d --model cifar-cnn --batch 16 --epochs 4 --devices sim:1,step=1ms,h2d=10MB/s --val none --quiet
[ "$(awk '/^mark stall_/ { n += $3 } END { print n }' heard)" -gt 0 ] || fail "$last: no idle stretch was marked"

# every exit closes its ranges: damaged pictures, a stop
printf 'no picture' >"$(find d/train -name '*.jpg' | sort | head -1)"
run 1 train d --model cifar-cnn --batch 16 --epochs 1 --val none --quiet
equal "$(grep '^wrong' heard)" "wrong 0"
run 3 train d --model cifar-cnn --batch 16 --epochs 1 --val none --bad replace --quiet
equal "$(grep '^wrong' heard)" "wrong 0"
finish
