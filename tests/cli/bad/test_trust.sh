# What others wrote is not trusted: paths in tables that lead out, names that are commands to a terminal, addresses with secrets.
. "$(dirname "$0")/../lib.sh"

run 0 synth d --classes 2 --count 6 --size 32 --quiet
picture=$(find d/train -name '*.jpg' | head -1)

# ---- a table does not choose which files of this machine are read ----
mkdir table aside
cp "$picture" table/a.jpg
cp "$picture" aside/b.jpg
printf 'user:x:secret-of-somebody\n' >aside/words
ln -s ../aside/b.jpg table/link.jpg
for path in "$temp/aside/words" ../aside/words /etc/passwd link.jpg table/../../aside/b.jpg; do
    printf 'path,label\na.jpg,0\n%s,1\n' "$path" >table/list.csv
    for words in inspect verify digest "inspect --bad"; do
        # shellcheck disable=SC2086 # two words
        run 2 $words table/list.csv
        err_has "line 3"; err_has "$path"; err_has "--outside take"
        ! grep -q "secret\|root:" out err || fail "$last: the contents of $path are shown"
    done
done
printf 'path,label\na.jpg,0\n../aside/b.jpg,1\n' >table/list.csv
run 0 verify table/list.csv --outside take; out_has "0 wrong"; err_has "1 of 2 files lie outside"
printf 'path,label\na.jpg,0\n../aside/words,1\n' >table/list.csv
for words in verify "inspect --bad"; do
    # shellcheck disable=SC2086 # a command and its option
    "$millrace" $words table/list.csv --outside take >out 2>err
    last="millrace $words"
    out_has "not quoted"
    ! grep -q "secret" out err || fail "$last: the contents of a file outside are shown"
done
run 3 convert table/list.csv t.mrec --outside take
! grep -q "secret" out err t.mrec.bad.jsonl || fail "$last: the contents of a file outside are shown"
run 2 inspect table/list.csv --outside perhaps; err_has "--outside: expected one of refuse, take"

# ---- names are no commands to a terminal, on stdout neither ----
# clean FILE: no control characters but line ends
clean() { [ "$(tr -d '\000-\011\013-\037\177' <"$1" | wc -c)" -eq "$(wc -c <"$1")" ] || fail "$last: control characters in $1"; }
esc=$(printf '\033]0;owned\007\033[31m')
mv d "d$esc"
printf 'path,label\na.jpg,0\na2.jpg,1\n' >"table/list$esc.csv"
cp table/a.jpg table/a2.jpg
for data in "d$esc" "table/list$esc.csv"; do
    for words in inspect "inspect --bad" "inspect --record 0" verify digest "bench loader --seconds 0.1 --rounds 1"; do
        # shellcheck disable=SC2086 # several words
        run 0 $words "$data"; clean out; clean err
        # shellcheck disable=SC2086
        run 0 $words "$data" --json; clean out; clean err
    done
done
data="d$esc"
run 0 convert "$data" "m$esc.mrec"; clean out; clean err; out_has 'm\x1b]0;owned\x07'
run 0 convert "$data" "m$esc.tar" --to tar --shard-size 1M; clean out; clean err
run 0 convert "$data" "m$esc" --to tfrecord --shard-size 1M; clean out; clean err
run 0 inspect "m$esc.mrec"; clean out; clean err
run 0 export "m$esc.mrec" "back$esc"; clean out; clean err
run 0 synth "s$esc" --classes 2 --count 1 --size 16; clean out; clean err
run 0 train "$data" --model cifar-cnn --epochs 1 --batch 4 --checkpoint "run$esc"; clean out; clean err
run 0 train "$data" --model cifar-cnn --epochs 2 --batch 4 --checkpoint "run$esc" --resume; clean out; clean err
run 0 eval "$data" --checkpoint "run$esc"; clean out; clean err
run 0 profile "$data" --model cifar-cnn --batch 4 --steps 4 --seconds 0.01 --html page.html; clean out; clean err; clean page.html
out_has 'd\x1b]0;owned\x07'
! grep -q "<b>x" page.html || fail "a name is markup"

# ---- what may be a password is in no message, and the address is refused ----
for address in 'http://me:sesame/street@127.0.0.1:1/x' 'http://me:pass#word@127.0.0.1:1/x' 'http://me:pass?word@127.0.0.1:1/x' \
    'http://me:s@sa/street@127.0.0.1:1/x'; do
    run 2 inspect "$address"
    grep -q "libcurl" err && continue
    err_has "%2F"
    ! grep -q "sesame\|street\|s@sa" out err || fail "$last: a part of a password is shown: $(cat err)"
done
finish
