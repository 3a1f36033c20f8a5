# append: numbers and bytes of the old samples stay, the new ones are in the set once, whatever happens in between; the set is the one
# that is made when all samples are converted at once, but for where files begin.
. "$(dirname "$0")/../lib.sh"

run 0 synth d --classes 3 --count 30 --size 48 --quiet
mkdir a b
for c in disc ring square; do
    mkdir a/$c b/$c
    cp d/train/$c/0000?.jpg d/train/$c/0001?.jpg a/$c
    cp d/train/$c/0002?.jpg b/$c
done
mkdir first
run 0 convert a first/s.mrec --shard-size 30K --quiet
fresh() { rm -rf set && cp -r first set; }
old_files_same() { for f in first/s-*.mrec; do same "$f" "set/${f##*/}"; done; }
listed() { "$millrace" export "$1" out_names --force --quiet >/dev/null 2>&1; (cd out_names && find . -type f | sort); rm -rf out_names; }

fresh
run 0 append set/s.mrec b --quiet; out_has "90 samples, 30 of them new"
old_files_same
run 0 verify set/s.mrec --quiet; out_has "90 of 90"
listed set/s.mrec >got; (cd d/train && find . -type f | sort) >want; same got want
for i in 0 17 59; do # the old numbers
    run 0 inspect first/s.mrec --record $i --quiet; grep -v '^data' out >want_record
    run 0 inspect set/s.mrec --record $i --quiet; grep -v '^data' out >got_record
    equal "$(grep 'sample.name' got_record)" "$(grep 'sample.name' want_record)"
done
cp -r set whole
run 0 append set/s.mrec b --update --quiet --json; equal "$(number known)" 30; equal "$(number after)" 90
run 0 append set/s.mrec d/train --update --quiet; out_has "nothing to add"
for f in whole/*; do same "$f" "set/${f##*/}"; done
equal "$(ls -A set | wc -l)" "$(ls -A whole | wc -l)"

# the same command again, as after a kill at its very end: the samples are in the set once, unless twice is wanted
run 0 append set/s.mrec b --quiet; out_has "90 samples, 0 of them new"; out_has "was made from this source already"
run 0 append set/s.mrec b --quiet --json; equal "$(number after)" 90; out_has '"present": true'
for f in whole/*; do same "$f" "set/${f##*/}"; done
equal "$(ls -A set | wc -l)" "$(ls -A whole | wc -l)"
run 0 append set/s.mrec b --again --quiet; out_has "120 samples, 30 of them new"
run 0 verify set/s.mrec --quiet; out_has "120 of 120"

# a link to the list, and a copy of the list from before: the next name is taken by a file that this list does not have
run 0 synth e2 --classes 3 --count 2 --seed 77 --quiet
ln -s set/s.mrec latest.mrec
run 0 verify latest.mrec --quiet; out_has "120 of 120"
cp first/s.mrec set/before.mrec
ls -A set >was
run 1 append set/before.mrec e2 --quiet; err_has "before.mrec does not list it"
ls -A set >is; same was is; rm set/before.mrec latest.mrec

# A source that was appended before and has changed since is not taken for a new one: nothing is appended twice unless that is wanted.
unchanged() {
    for f in whole/*; do same "$f" "set/${f##*/}"; done
    equal "$(ls -A set | wc -l)" "$(ls -A whole | wc -l)"
}
refused() { # refused THERE LOOKED SRC
    run 1 append set/s.mrec "$3" --quiet
    err_has "$1 of $2 samples"; err_has "are in the set already"; err_has "(--update)"; err_has "(--again)"; unchanged
}
rm -rf set && cp -r whole set
cp -rp b kept_b
touch -d "2 hours ago" b/*/*.jpg b/* b # times and folders are nothing by which samples differ
run 0 append set/s.mrec b --quiet; out_has "0 of them new"; unchanged
cp -r b elsewhere
run 0 append set/s.mrec elsewhere --quiet; out_has "0 of them new"; unchanged
run 0 synth other --classes 3 --count 40 --size 48 --seed 5 --quiet
cp other/train/disc/00000.jpg b/disc/new.jpg # one more
refused 30 31 b; err_has "(one is disc/00020.jpg)"
run 0 append set/s.mrec b --update --quiet; out_has "91 samples, 1 of them new"
run 1 append set/s.mrec b --quiet; err_has "31 of 31 samples are in the set already"
run 0 append set/s.mrec b --again --quiet; out_has "122 samples, 31 of them new"
rm -rf set && cp -r whole set
rm b/disc/new.jpg b/disc/00020.jpg # one less
refused 29 29 b
run 0 append set/s.mrec b --update --quiet; out_has "nothing to add"; unchanged
run 0 withdraw elsewhere --samples 3,4 --quiet
refused 28 28 elsewhere
run 0 withdraw set/s.mrec --samples 70 --quiet # a withdrawn sample of the set is not new
rm set/.millrace.withdrawn
run 0 convert kept_b b.tar --quiet # another format
refused 30 30 b.tar
rm -rf b elsewhere && cp -rp kept_b b

# the same names, sizes and labels, but other pictures
cp -r b altered
for f in altered/*/*.jpg; do printf x | dd of="$f" bs=1 seek=600 conv=notrunc status=none; done
run 1 append set/s.mrec altered --quiet
err_has "the same names, sizes and labels, but with other contents"; err_has "(--again)"; unchanged
cp b/ring/00021.jpg altered/ring/00021.jpg
refused 1 30 altered
rm -rf altered

# one of many, not among the ones compared before the conversion: found after it, and nothing is left
rm -rf many && mkdir many
for c in disc ring square; do cp -r other/train/$c many/$c; done # 120
cp b/ring/00022.jpg many/ring/00022.jpg
refused 1 120 many; err_has "(one is ring/00022.jpg)"; absent set/.s.append.mrec
run 0 append set/s.mrec many --update --quiet; out_has "new"
rm -rf set && cp -r whole set
run 0 append set/s.mrec many --again --quiet; out_has "210 samples, 120 of them new"

# killed while a refused call removes its files, the next call removes the rest; killed before, it finds the same samples
run 0 convert many one_more.mrec --shard-size 30K --quiet
for left in 0 1 2; do
    rm -rf set && cp -r whole set
    for f in one_more-*.mrec; do cp "$f" "set/.s.append${f#one_more}"; done
    run 0 repair 'set/.s.append-*.mrec' --in-place --quiet
    for f in set/.s.append-*.mrec; do
        [ $left -eq 2 ] || [ $left -eq 1 ] && [ "$f" = set/.s.append-00000.mrec ] || rm "$f"
    done
    refused 1 120 many; absent set/.s.append.mrec
done
rm -rf set && cp -r whole set
for f in one_more-*.mrec; do cp "$f" "set/.s.append${f#one_more}"; done
run 0 repair 'set/.s.append-*.mrec' --in-place --quiet
run 1 append set/s.mrec b --quiet; err_has "an interrupted call had converted other samples, and was undone: 1 of 120"; unchanged
run 0 append set/s.mrec b --quiet; out_has "0 of them new"

# samples without names: contents and labels
mkdir n
printf '\0\0\010\003\0\0\0\003\0\0\0\002\0\0\0\002\012\036\012\036\012\036\012\036\001\001\001\001' >n/train-images-idx3-ubyte
printf '\0\0\010\001\0\0\0\003\0\001\002' >n/train-labels-idx1-ubyte
run 0 convert n n.mrec --shard-size 1K --quiet
run 0 append n.mrec n --quiet; out_has "0 of them new"
printf '\0\0\010\003\0\0\0\003\0\0\0\002\0\0\0\002\012\036\012\036\012\037\012\036\001\002\001\001' >n/train-images-idx3-ubyte
run 1 append n.mrec n --quiet; err_has "1 of 3 samples are in the set already: append"; err_has "(--again)"
printf '\0\0\010\003\0\0\0\003\0\0\0\002\0\0\0\002\013\036\012\036\012\037\012\036\001\002\001\001' >n/train-images-idx3-ubyte
run 1 append n.mrec n --quiet; err_has "with other contents"
run 0 append n.mrec n --again --quiet; out_has "6 samples, 3 of them new"

# options of the source are no options of the set: a part, a format, part of the samples
fresh
run 0 append set/s.mrec d --split test --format folder --quiet; out_has "78 samples, 18 of them new"
fresh
run 0 append set/s.mrec b --take 0:0.5 --quiet; out_has "75 samples, 15 of them new"
run 0 append set/s.mrec b --take 0.5:1 --quiet; out_has "90 samples, 15 of them new"
run 0 append set/s.mrec b --take 0.5:1 --quiet; out_has "90 samples, 0 of them new"

# only some of them are new
fresh
cp a/disc/00001.jpg b/disc/00001.jpg
run 0 append set/s.mrec b --update --quiet; out_has "90 samples, 30 of them new"; rm b/disc/00001.jpg

# what does not fit changes nothing
fresh
cp -r b c && mv c/ring c/zebra
run 1 append set/s.mrec c --quiet; err_has 'its class "zebra" is not a class of set/s.mrec'
run 0 convert b one.mrec --quiet
run 1 append one.mrec b --quiet; err_has "expected the list of a set of record files"
run 1 append a b --quiet; err_has "a: expected the list of a set of record files, found a folder of format folder"
run 1 append set/s.mrec b --classes none --quiet; err_has "the samples to add have no classes, the set has 3 (the first is \"disc\")"
grep -q "passed over" err && fail "append: classes none is no rule of the set"
mkdir m
printf '\0\0\010\003\0\0\0\003\0\0\0\002\0\0\0\002\012\036\012\036\012\036\012\036\001\001\001\001' >m/train-images-idx3-ubyte
printf '\0\0\010\001\0\0\0\003\0\001\002' >m/train-labels-idx1-ubyte
run 1 append set/s.mrec m --quiet; err_has "classes are numbers"
run 1 append set/s.mrec nowhere --quiet
run 1 append nowhere.mrec b --quiet
for f in first/*; do same "$f" "set/${f##*/}"; done
equal "$(ls -A set | wc -l)" "$(ls -A first | wc -l)"
run 0 append set/s.mrec one.mrec --quiet; out_has "30 of them new" # from another format

# a bad sample is left out and reported
fresh
cp -r b bad && head -c 300 bad/ring/00025.jpg >short && cp short bad/ring/00025.jpg
run 3 append set/s.mrec bad --quiet; out_has "89 samples, 29 of them new"; out_has "1 bad sample was left out"; err_has "00025.jpg"

# killed at any moment, the set is the old one or the new one; the same command comes to the same bytes, and adds nothing twice
for moment in .s.append.mrec.conversion.part .s.append-00000.mrec.part .s.append-00001.mrec.part .s.append-00002.mrec.part \
    .s.append-00000.mrec .s.append-00002.mrec .s.append.mrec s-00007.mrec s-00008.mrec s-00009.mrec; do
    fresh
    "$millrace" append set/s.mrec b --quiet >out 2>err &
    pid=$!
    waits $pid any "set/$moment"
    kill -9 $pid 2>/dev/null
    wait $pid 2>/dev/null
    last="append killed at $moment"
    "$millrace" verify set/s.mrec --quiet --no-decode >out 2>err || fail "the set is neither the old nor the new one"
    grep -q "60 of 60" out || grep -q "90 of 90" out || fail "neither 60 nor 90 samples"
    run 0 append set/s.mrec b --quiet
    for f in whole/*; do same "$f" "set/${f##*/}"; done
    for f in set/* set/.[!.]*; do
        case ${f#set/} in
        s* | '*' | '.[!.]*') ;;
        *) fail "left behind: $f" ;;
        esac
    done
done

# a step at a time, as a kill leaves it: converted; some have their names; all and the list
run 0 convert b aside.mrec --shard-size 30K --quiet
fresh
for f in aside-*.mrec; do cp "$f" "set/.s.append${f#aside}"; done
sed 's/aside/.s.append/' aside.mrec >set/x
(cd set && for f in .s.append-*.mrec; do echo "$f"; done >../parts)
run 0 repair 'set/.s.append-*.mrec' --in-place --quiet; rm -f set/x
mv "set/.s.append-00000.mrec" set/s-00007.mrec
run 0 append set/s.mrec b --quiet; out_has "An interrupted run was finished"; out_has "90 samples, 30 of them new"
for f in whole/*; do same "$f" "set/${f##*/}"; done

# an interrupted append of other samples: the command first finishes it, and reports that
fresh
for f in aside-*.mrec; do cp "$f" "set/.s.append${f#aside}"; done
run 0 repair 'set/.s.append-*.mrec' --in-place --quiet
run 1 append set/s.mrec a --quiet; err_has "an interrupted call had converted other samples, 30 of them: they are in the set now"
for f in whole/*; do same "$f" "set/${f##*/}"; done

# two at once: one is done, the other is done or refused, nothing is lost
fresh
"$millrace" append set/s.mrec b --quiet >out1 2>err1 & one=$!
"$millrace" append set/s.mrec one.mrec --quiet >out2 2>err2 & two=$!
wait $one; r1=$?
wait $two; r2=$?
last="two appends at once ($r1, $r2)"
[ $r1 -eq 0 ] || [ $r2 -eq 0 ] || { cat err1 err2; fail "none of both was done"; }
expected=60
[ $r1 -eq 0 ] && expected=$((expected + 30))
[ $r2 -eq 0 ] && expected=$((expected + 30))
run 0 verify set/s.mrec --quiet; out_has "$expected of $expected"

# a set that grew is repaired from the source that a file was made of, and from no other
cp -r whole grown
printf XXXX | dd of=grown/s-00008.mrec bs=1 seek=9000 conv=notrunc status=none
run 3 repair grown/s.mrec from_a --from a --quiet; out_has "1 lost"; rm -rf from_a
run 0 repair grown/s.mrec from_b --from b --quiet; for f in whole/*; do same "$f" "from_b/${f##*/}"; done
rm grown/s-00008.mrec grown/s-00002.mrec
run 3 repair grown/s.mrec from_a2 --from a --quiet; out_has "s-00008.mrec: lost"; same from_a2/s-00002.mrec whole/s-00002.mrec
finish
