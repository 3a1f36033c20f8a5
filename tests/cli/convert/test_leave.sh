# convert --to tfrecord and --to tar: what leaves comes back the same, in one file or many, and half an output is no output.
. "$(dirname "$0")/../lib.sh"
XDG_CACHE_HOME=$temp/cache
export XDG_CACHE_HOME

# ---- data: a folder of JPEGs of many sizes, one of PNGs, IDX, a list of files, record files ----
run 0 synth d --count 12 --size 24 --max-size 60 --quiet
run 0 synth p --count 5 --image png --channels 1 --quiet
mkdir ix
printf '\000\000\010\003\000\000\000\050\000\000\000\034\000\000\000\034' >ix/train-images-idx3-ubyte
head -c $((40 * 784)) "$millrace" >>ix/train-images-idx3-ubyte
printf '\000\000\010\001\000\000\000\050' >ix/train-labels-idx1-ubyte
for k in 0 1 2 3 4 5 6 7; do printf '\003\001\004\000\002'; done >>ix/train-labels-idx1-ubyte
{ echo path,label; find d/train -name '0000?.jpg' | sort | awk '{ print $0 "," NR % 3 }'; } >list.csv
run 0 convert d coef.mrec --store coef --quiet
run 0 convert d raw.mrec --store raw --quiet
run 0 convert d shards.mrec --shard-size 40K --quiet

# digests DATA: of pixels, labels and order
set -- --augment "resize(20x20)" --batch 7 --channels 3
for data in d p ix list.csv coef.mrec raw.mrec shards.mrec; do
    run 0 digest $data "$@" --quiet; cp out want
    for to in tfrecord tar; do
        run 0 convert $data one.$to --to $to --quiet --force; cp one.$to again.$to
        run 0 digest one.$to "$@" --quiet; same out want
        run 0 convert $data one.$to --to $to --quiet --force --workers 3; same one.$to again.$to
        rm -rf many; mkdir many
        run 0 convert $data many/x --to $to --shard-size 15K --json
        equal "$(text to)" $to
        shards=$(number shards)
        equal "$(find many -type f | wc -l | tr -d ' ')" "$shards"
        [ "$shards" -gt 1 ] || fail "$last: expected several files"
        names=$(printf 'many/x-00000-of-%05d' "$shards"); [ $to = tfrecord ] || names=$(printf 'many/x-{000000..%06d}.tar' $((shards - 1)))
        run 0 digest "$names" "$@" --quiet; same out want
        rm -f many/.*.mridx
        run 0 digest many "$@" --quiet; same out want
    done
    # one to the other and on to record files: still the same
    run 0 convert one.tar t.tfrecord --to tfrecord --quiet --force
    run 0 convert t.tfrecord r.mrec --quiet --force
    run 0 digest r.mrec "$@" --quiet; same out want
    run 0 convert r.mrec t2.tfrecord --to tfrecord --quiet --force; same t.tfrecord t2.tfrecord
done
run 0 convert ix rawix --to tfrecord --store raw --quiet
run 0 digest ix --quiet; cp out want
run 0 digest rawix --quiet; same out want

# numbers, where the real notes are
notes=${MILLRACE_DATA:-$here/../../../shared/data}/notes/train.csv.gz
if [ -e "$notes" ]; then
    gzip -dc "$notes" | head -200 >notes.csv
    for to in tfrecord tar; do run 0 convert notes.csv n.$to --to $to --quiet; present n.$to; done
fi

# ---- the archive is what tar takes it for ----
run 0 convert d k.tar --to tar
out_has "k.tar: 120 records"
tar tf k.tar >names || fail "tar tf k.tar"
equal "$(head -2 names | tr '\n' ' ')" "__classes__ train/checks/00000.jpg "
equal "$(wc -l <names | tr -d ' ')" 242
mkdir x; tar xf k.tar -C x; same x/train/disc/00003.jpg d/train/disc/00003.jpg
equal "$(cat x/train/columns/00000.cls)" 1
equal "$(sed -n 4p x/__classes__)" disc

# ---- refused before anything is touched ----
run 2 convert d z --to tfrecord --resume; err_has "--resume"
run 2 convert d z --to tar --store coef; err_has "--store coef"
run 2 convert d z --to tar --store raw; err_has "--store raw"
run 2 convert d z --to zip; err_has "--to"
run 1 convert d k.tar --to tar; err_has "k.tar: "; err_has "exists"
run 1 convert k.tar k.tar --to tar --force; err_has "also the input"
run 1 convert d d/z --to tar; err_has "inside the input"
absent z; absent z.part

# ---- bad samples are passed over and listed ----
cp -r d bad
for f in bad/train/*/00005.jpg; do head -c 300 "$f" >short && cp short "$f"; done
for to in tfrecord tar; do
    run 3 convert bad b.$to --to $to --json --quiet
    equal "$(number bad)$(number records)" 10110
    equal "$(wc -l <b.$to.bad.jsonl | tr -d ' ')" 10
    run 1 convert bad s.$to --to $to --bad stop --quiet; absent s.$to; absent s.$to.part
done

# ---- a full disk, Ctrl-C, kill -9: nothing under the final name; after a kill the next run takes over ----
run 0 synth e --count 100 --size 64 --quiet
for to in tfrecord tar; do
    run 0 convert e want.$to --to $to --quiet
    mkdir set.$to; run 0 convert e set.$to/x --to $to --shard-size 200K --quiet
    for more in "" "--shard-size 150K"; do
        mkdir f
        # shellcheck disable=SC2086
        ( trap '' XFSZ; ulimit -f 64; "$millrace" convert e f/x --to $to --quiet $more >out 2>err )
        status=$? last="convert --to $to $more on a full disk"
        equal "$status $(find f -type f | wc -l | tr -d ' ')" "1 0"
        err_has ".part"; err_has "File too large"
        rm -rf f
    done
    for seconds in 0.005 0.02 0.04 0.08; do
        for signal in INT KILL; do
            for more in "" "--shard-size 200K"; do
                rm -rf f; mkdir f
                # shellcheck disable=SC2086
                "$millrace" convert e f/x --to $to --quiet $more >out 2>err &
                pid=$!
                listens $pid
                sleep $seconds
                kill -$signal $pid 2>/dev/null
                wait $pid 2>/dev/null
                status=$? last="convert --to $to $more, SIG$signal after $seconds s"
                left=$(find f -type f ! -name '*.part' | wc -l | tr -d ' ')
                if [ $status -ne 0 ]; then
                    [ $signal = KILL ] || equal "$status $(find f -type f | wc -l | tr -d ' ')" "130 0"
                    [ $signal = INT ] || [ "$left" -eq 0 ] || [ -n "$more" ] || same f/x want.$to
                fi
                # shellcheck disable=SC2086
                run 0 convert e f/x --to $to --quiet --force $more
                equal "$(find f -name '*.part' | wc -l | tr -d ' ')" 0
                if [ -z "$more" ]; then same f/x want.$to
                else for f in "set.$to"/*; do same "$f" "f/${f##*/}"; done
                fi
            done
        done
    done
    rm -rf f
done
finish
