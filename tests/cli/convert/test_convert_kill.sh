# convert killed at any moment, again and again: resumed it comes to the same bytes and the same list of bad samples, and
# until then there is nothing under the final name, or the whole file.
. "$(dirname "$0")/../lib.sh"

run 0 synth d --count 120 --size 48 --quiet
for f in d/train/*/0005?.jpg; do head -c 500 "$f" >short && cp short "$f"; done
run 3 convert d want.mrec --resize 40 --workers 1 --quiet
run 3 convert d shards.mrec --resize 40 --workers 1 --shard-size 300K --quiet

# killed_at MILLISECONDS DST OPTION...
killed_at() {
    ms=$1 dst=$2
    shift 2
    "$millrace" convert d "$dst" --resize 40 --resume --quiet "$@" >out 2>err &
    pid=$!
    sleep "$(printf '0.%03d' "$ms")"
    kill -9 $pid 2>/dev/null
    wait $pid 2>/dev/null
    status=$?
    last="convert $dst killed after $ms ms"
}

n=0
for ms in 4 9 15 2 22 31 7 40 12 55; do
    n=$((n + 1))
    killed_at "$ms" k.mrec --workers 2
    [ -e k.mrec ] && same k.mrec want.mrec
    killed_at "$ms" s.mrec --workers 2 --shard-size 300K
done
run 3 convert d k.mrec --resize 40 --resume
same k.mrec want.mrec
same k.mrec.bad.jsonl want.mrec.bad.jsonl
absent k.mrec.part
run 3 convert d s.mrec --resize 40 --shard-size 300K --resume
for f in shards-*.mrec; do same "$f" "s${f#shards}"; done
same s.mrec.bad.jsonl shards.mrec.bad.jsonl
run 0 verify s.mrec

# Ctrl-C: stops in order, says so, goes on later
"$millrace" convert d i.mrec --resize 40 --workers 1 --quiet >out 2>err &
pid=$!
listens $pid
sleep 0.03
kill -INT $pid 2>/dev/null
wait $pid
status=$?
last="convert with Ctrl-C"
[ $status -eq 130 ] || [ $status -eq 3 ] || fail "expected exit status 130, found $status"
[ $status -eq 3 ] || absent i.mrec
run 3 convert d i.mrec --resize 40 --resume
same i.mrec want.mrec
same i.mrec.bad.jsonl want.mrec.bad.jsonl
# an interrupted run to a set is not begun anew as one file
printf 'millrace conversion 1\n' >set.mrec.conversion.part
for more in --resume "--resume --force" ""; do
    # shellcheck disable=SC2086
    run 1 convert d set.mrec --resize 40 $more; err_has "an interrupted run made a set of files here (--shard-size)"; absent set.mrec
done

# A run resumes only while the inputs it has read are unchanged. Here a picture has the same size and other bytes.
run 0 synth e --count 60 --size 48 --quiet
first=$(find e/train -name '*.jpg' | sort | head -n 1) last_one=$(find e/train -name '*.jpg' | sort | tail -n 1)
cp -p "$last_one" whole && head -c 500 whole >"$last_one"
for shards in "" "--shard-size 100K"; do
    # shellcheck disable=SC2086 # options
    run 1 convert e "c$shards.mrec" --resize 40 --bad stop --workers 2 $shards
    cp -p "$first" kept && printf x | dd of="$first" bs=1 seek=600 conv=notrunc status=none
    # shellcheck disable=SC2086
    run 1 convert e "c$shards.mrec" --resize 40 --workers 2 --resume $shards
    if [ -n "$shards" ]; then
        err_has "the data changed since this conversion was interrupted: sample 0 is now $first, another file or version"
    else
        err_has "$first"; err_has "was replaced or changed after the interrupted run had read it"; err_has ", 1 of the samples so far"
    fi
    printf x >>"$first" # another size
    # shellcheck disable=SC2086
    run 1 convert e "c$shards.mrec" --resize 40 --workers 2 --resume $shards; err_has "sample 0 is now $first, another file or version"
    # shellcheck disable=SC2086
    run 3 convert e "c$shards.mrec" --resize 40 --workers 2 --force $shards
    cp -p kept "$first"
done
ls ./*taken* >left 2>/dev/null && fail "left behind: $(cat left)"
finish
