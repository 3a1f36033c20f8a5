# convert --advise: every form of a sample measured, one command recommended, nothing left behind, nothing written.
. "$(dirname "$0")/../lib.sh"

advise() { want_status=$1; shift; run "$want_status" convert "$@" --advise --quiet; }
mkdir temp
TMPDIR=$PWD/temp
export TMPDIR

run 0 synth d --count 12 --quiet
cp -r d/train "it's one" # a name that a shell would take apart
advise 0 "it's one"
out_has "as they are"
out_has "jpeg records"
out_has "coefficient records"
out_has "raw records"
out_has "advice "
out_has "because "
equal "$(ls temp)" ""
advise 0 d/train --json
equal "$(grep -c '"event": "convert_form"' out)" 4
equal "$(grep -c '"chosen": true' out)" 1
equal "$(tail -1 out | grep -c '"event": "convert_advice"')" 1
equal "$(number samples)" "$(find d/train -type f | wc -l | tr -d ' ')"
grep -q '"resized": null' out || fail "$last: these pictures are too small to be made smaller"
equal "$(ls temp)" ""

# the printed command does its work, with the options it names, and writes a file that does not exist yet
command=$(text command)
if [ -n "$command" ]; then
    (eval "$(printf '%s\n' "$command" | sed "s#^millrace#'$millrace'#")" >out 2>err) || fail "$command"
    present "$(printf '%s\n' "$command" | sed 's/.* \([^ ]*\.mrec\).*/\1/')"
fi

# of a record file
run 0 convert d/train r.mrec --quiet
advise 0 r.mrec --json
! tail -1 out | grep -q '"command": "millrace convert r.mrec r.mrec' || fail "$last: it recommends to write over the input"

# pixels: no JPEG, nothing to decode
printf '\000\000\010\003\000\000\000\004\000\000\000\004\000\000\000\004' >images-idx3-ubyte
head -c 64 /dev/zero >>images-idx3-ubyte
printf '\000\000\010\001\000\000\000\004\000\001\000\001' >labels-idx1-ubyte
mkdir idx && mv images-idx3-ubyte idx/train-images-idx3-ubyte && mv labels-idx1-ubyte idx/train-labels-idx1-ubyte
advise 0 idx --json
! grep -q '"name": "jpeg records"' out || fail "$last: pixels have no JPEG form"

# no pictures at all
printf '1,2,3\n4,5,6\n' >numbers.csv
advise 0 numbers.csv
out_has "there are no pictures in it"
advise 0 numbers.csv --json
equal "$(text form)" "as they are"

# pictures that cannot be read
mkdir -p broken/a && head -c 100 "$(find d/train -type f | head -1)" | tail -c 40 >broken/a/x.jpg
! "$millrace" convert broken --advise --quiet >out 2>err || fail "convert broken --advise: there is nothing to measure"

# what does not go together
advise 2 d/train x.mrec; err_has "leave x.mrec out"
absent x.mrec
advise 2 d/train --store coef; err_has "--store"
run 2 convert d/train; err_has "--advise"
run 2 convert d/train x.mrec --augment rrc224; err_has "--augment goes with --advise"
advise 2 d/train --augment "flop"
advise 1 nowhere
equal "$(ls temp)" ""
mkdir closed && chmod 500 closed
if ! touch closed/x 2>/dev/null; then # root writes anywhere
    TMPDIR=$PWD/closed advise 1 d/train; err_has "set TMPDIR"
fi
TMPDIR=$PWD/not-there advise 1 d/train
err_has "set TMPDIR"

# Ctrl-C leaves nothing
"$millrace" convert d/train --advise --quiet >out 2>err &
child=$!
listens $child
for _ in 1 2 3 4 5 6 7 8 9 10; do [ -n "$(ls temp)" ] && break; sleep 0.05; done
kill -INT $child 2>/dev/null
wait $child
got=$?
[ $got -eq 130 ] || [ $got -eq 0 ] || fail "convert --advise, interrupted: exit status $got"
equal "$(ls temp)" ""
finish
