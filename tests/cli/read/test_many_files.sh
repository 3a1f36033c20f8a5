# Data sets of more files than a process may have open: the loader uses the system's limit, and reports when it is too low.
. "$(dirname "$0")/../lib.sh"

command -v tar >/dev/null || skip "no tar"
run 0 synth d --count 20 --quiet
run 0 convert d shards --shard-size 2K --quiet
mkdir tars
n=0
for picture in $(find d/train -type f | head -90); do
    n=$((n + 1))
    mkdir one
    cp "$picture" "one/$n.jpg"
    echo $((n % 3)) >one/$n.cls
    (cd one && tar cf "../tars/$n.tar" -- *)
    rm -r one
done
[ "$(wc -l <shards)" -gt 80 ] || fail "$last: expected more than 80 shards, found $(wc -l <shards)"

for data in shards tars; do
    run 0 digest $data; cp out want_$data
    for limit in "-Sn 50" "-n 50"; do # the first is raised to the hard limit
        for how in "--prefetch off --resident 0" "--io pread --resident 0" "--readers 4 --resident 0" "--direct --readers 4 --resident 0"; do
            # shellcheck disable=SC2086
            ( ulimit $limit; exec "$millrace" digest $data $how >out 2>err )
            status=$?
            last="ulimit $limit; digest $data $how"
            equal $status 0
            same out want_$data
        done
    done
done
( ulimit -n 50; exec "$millrace" verify shards >out 2>err )
equal $? 0
( ulimit -n 50; exec "$millrace" convert tars one.mrec --quiet >out 2>err )
equal $? 0
run 0 digest one.mrec

# Many more, with little memory: a bound that holds for any number.
mkdir many many_tars
first=$(sed -n '3s/^[0-9]* [0-9]* [0-9a-f]* //p' shards) # its first shard
records=$(sed -n '3s/ .*//p' shards)
{
    echo "millrace shards 1"
    for k in $(seq 2000); do
        ln "$first" "many/$k.mrec"
        echo "$records $k.mrec"
    done
    echo "end 2000 shards $((2000 * records)) records"
} >many/list
for k in $(seq 2000); do ln tars/1.tar "many_tars/$k.tar"; done
for data in many/list many_tars; do
    ( ulimit -n 8192 2>/dev/null; exec "$millrace" digest $data --resident 0 >want 2>err )
    ( ulimit -n 256; exec "$millrace" digest $data --resident 0 >out 2>err )
    status=$?
    last="digest $data with 256 files"
    equal $status 0
    same out want
done

# A shard that is not the one its list names ends every command, whoever touches it first: no sample is bad.
set -- shards-000*.mrec
fifth=$5
cp "$6" kept
mv "$fifth" aside
for change in gone swapped cut; do
    case $change in
    gone) ;;
    swapped) cp kept "$fifth" ;;
    cut) head -c 8192 aside >"$fifth" ;;
    esac
    for how in "--prefetch off --resident 0" "--io pread --resident 0" "--readers 4 --resident 0" "--direct --resident 0" ""; do
        # shellcheck disable=SC2086
        ( ulimit -n 50; exec "$millrace" digest shards --bad skip $how >out 2>err )
        status=$?
        last="digest shards --bad skip $how, $change"
        equal $status 1
        grep -q "$fifth" err || fail "$last: the shard is not named: $(cat err)"
        grep -q "the list is shards: " err || fail "$last: the list is not named: $(cat err)"
    done
    ( ulimit -n 50; exec "$millrace" verify shards >out 2>err )
    status=$?
    last="verify shards, $change"
    equal $status 1
    grep -q "$fifth.*the list is shards: " out || fail "$last: not reported: $(cat out err)"
    ( ulimit -n 50; exec "$millrace" convert shards again.mrec --bad skip --quiet >out 2>err )
    status=$?
    last="convert shards --bad skip, $change"
    equal $status 1
    rm -f "$fifth" again.mrec*
done
mv aside "$fifth"
( ulimit -n 50; exec "$millrace" verify shards >out 2>err )
status=$?
last="verify shards, all there"
equal $status 0
finish
