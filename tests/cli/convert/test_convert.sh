# convert: the same bytes for any number of workers, from every source, with every setting; refusals.
. "$(dirname "$0")/../lib.sh"

run 0 synth d --count 30 --seed 1 --quiet
run 0 convert d one.mrec --workers 1 --json
equal "$(number records)" 300
equal "$(number bad)" 0
equal "$(number bytes_out)" "$(wc -c <one.mrec | tr -d ' ')"
run 0 convert d three.mrec --workers 3; same one.mrec three.mrec
run 0 convert d/train four.mrec --workers 4 --quiet
absent one.mrec.part
absent one.mrec.bad.jsonl
run 0 convert d test.mrec --split test --json
equal "$(number records)" 60

# an output that exists
run 1 convert d one.mrec; err_has "exists"
run 0 convert d one.mrec --force; same one.mrec three.mrec
run 0 convert d one.mrec --resume --json; equal "$(number resumed)" 300
run 1 convert d one.mrec --resume --quality 50; err_has "--quality was 90, is 50"
run 0 convert d one.mrec --resume; out_has "was finished already"

# input is not output
run 1 convert one.mrec one.mrec --force; err_has "also the input"
ln -s one.mrec link.mrec
run 1 convert one.mrec link.mrec --force; err_has "also the input"
run 1 convert d d/x.mrec; err_has "inside the input"; absent d/x.mrec
run 1 convert d/train d/train/disc/x.mrec; err_has "inside the input"
same one.mrec three.mrec

# shards: a list and its files, read as one
run 0 convert d shards.mrec --shard-size 64K --json
[ "$(number shards)" -gt 3 ] || fail "expected several shards"
run 0 verify shards.mrec --json; equal "$(number checked)" 300
run 0 convert shards.mrec again.mrec --json; equal "$(number records)" 300
run 0 digest one.mrec; cp out want
run 0 digest shards.mrec; same out want
run 0 digest again.mrec; same out want
run 0 digest d; same out want

# pixels
run 0 convert d raw.mrec --store raw; run 0 digest raw.mrec; same out want
run 0 convert d small.mrec --store raw --resize 16 --center-square --channels 3
run 0 inspect small.mrec --json; equal "$(number height)" 16
run 0 convert d jpeg16.mrec --resize 16 --quality 80
run 0 inspect jpeg16.mrec --record 0 --json; equal "$(number width)" 16

# a missing input, and inputs that are not data sets
run 1 convert nowhere x.mrec; err_has "nowhere"
mkdir empty empty-class empty-class/a
run 1 convert empty x.mrec; err_has "empty"
run 1 convert empty-class x.mrec
echo "hello" >text
run 1 convert text x.mrec; err_has "text"
: >nothing
run 1 convert nothing x.mrec
run 1 convert d no/such/folder/x.mrec
head -c 100000 one.mrec >cut.mrec
run 1 convert cut.mrec x.mrec; err_has "cut.mrec"
printf '\000\000\010\003\000\000\000\012\000\000\000\034\000\000\000\034abc' >cut-images-idx3-ubyte
run 1 convert cut-images-idx3-ubyte x.mrec
absent x.mrec

# a full disk: the temporary file stays for --resume, and nothing has the final name
( ulimit -f 64 2>/dev/null; "$millrace" convert d full.mrec >out 2>err )
status=$? last="convert on a full disk"
equal $status 1
err_has "full.mrec"
absent full.mrec
run 0 convert d full.mrec --resume; same one.mrec full.mrec
finish
