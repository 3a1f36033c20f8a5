# Data sets of more files than a process may have open: what the system allows is used, and what it does not is told.
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
    ( ulimit -Sn 50; exec "$millrace" digest $data >out 2>err ) # raised to the hard limit
    equal $? 0
    same out want_$data
    ( ulimit -n 50; exec "$millrace" digest $data >out 2>err )
    equal $? 1
    last="digest $data with 50 files"
    err_has "files of this data set are open together, and this process may have 50 (RLIMIT_NOFILE, at most 50"
done
err_has "the 90 files"; err_has "allow 154 (ulimit -n)"
finish
