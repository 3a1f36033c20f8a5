# convert --update: a set follows its source. New samples are taken once, changed and gone ones are named and refused unless an option says
# what to do; whatever is killed in between, the same command comes to the same set.
. "$(dirname "$0")/../lib.sh"

run 0 synth d --classes 2 --count 16 --size 48 --quiet
mkdir a first
for c in disc ring; do
    mkdir a/$c
    cp d/train/$c/0000?.jpg a/$c
done
run 0 convert a first/s.mrec --shard-size 16K --quiet
fresh() { rm -rf set && cp -r first set; }
names() { "$millrace" export "$1" out_names --force --quiet >/dev/null 2>&1; (cd out_names && find . -type f | sort | xargs cksum); rm -rf out_names; }
unchanged() { for f in "$1"/*; do same "$f" "set/${f##*/}"; done; equal "$(ls -A set | wc -l)" "$(ls -A "$1" | wc -l)"; }

# nothing new; then new files only: the same bytes as of append, and once
fresh
run 0 convert a set/s.mrec --update --quiet; out_has "20 samples, 20 before; appended 0"; unchanged first
for c in disc ring; do cp d/train/$c/0001?.jpg a/$c; done
run 0 append set/s.mrec a --update --quiet
cp -r set appended
grown=$("$millrace" digest set/s.mrec --quiet | grep -o '[0-9a-f]\{16\}' | head -1)
fresh
run 0 convert a set/s.mrec --update --quiet
out_has "new: disc/00010.jpg"; out_has "new: 2 more"; out_has "32 samples, 20 before; appended 12 in"; unchanged appended
equal "$("$millrace" digest set/s.mrec --quiet | grep -o '[0-9a-f]\{16\}' | head -1)" "$grown"
run 0 convert a set/s.mrec --update --quiet --json; equal "$(number same)" 32; equal "$(number appended)" 0; unchanged appended

# changed and gone: refused with names; kept; withdrawn and taken anew; back
cp d/train/disc/00012.jpg a/disc/00003.jpg
rm a/ring/00001.jpg a/ring/00002.jpg
cp d/test/ring/00000.jpg a/ring/00020.jpg
run 1 convert a set/s.mrec --update --quiet
out_has "changed: disc/00003.jpg"; out_has "gone: ring/00001.jpg"; out_has "new: ring/00020.jpg"
err_has "1 sample was changed in the source, and 2 samples are gone from the source; nothing was written"
err_has "(--changed withdraw, --gone withdraw)"; err_has "(--changed keep, --gone keep)"; unchanged appended
run 1 convert a set/s.mrec --update --gone keep --quiet; err_has "(--changed withdraw)"; unchanged appended
run 0 convert a set/s.mrec --update --changed keep --gone keep --quiet; out_has "33 samples, 32 before; appended 1 "
rm -rf set && cp -r appended set
run 0 convert a set/s.mrec --update --changed withdraw --gone withdraw --quiet
out_has "31 samples, 32 before; appended 2 in 1 file, withdrew 3, restored 0"
for f in appended/s-*; do same "$f" "set/${f##*/}"; done
run 0 withdraw set/s.mrec; equal "$(cut -d' ' -f1,2 out | tr '\n' ' ')" "3 disc/00003.jpg: 11 ring/00001.jpg: 12 ring/00002.jpg: "
names set/s.mrec >got; names a >want; same got want
cp -r set followed
run 0 convert a set/s.mrec --update --quiet; out_has "0 new, 0 changed, 0 gone, 31 the same"
for f in followed/*; do same "$f" "set/${f##*/}"; done
cp -r a later
cp d/train/disc/00003.jpg a/disc/; cp d/train/ring/00001.jpg a/ring # its first form again: the old records return
run 0 convert a set/s.mrec --update --changed withdraw --quiet
out_has "back: ring/00001.jpg"; out_has "appended 0 in 0 files, withdrew 1, restored 2"
names set/s.mrec >got; names a >want; same got want

# a sample that was withdrawn for another reason stays so; a changed one that is damaged now keeps its old record
run 0 withdraw set/s.mrec --keys /dev/stdin --reason "wrong label" --quiet <<.
ring/00004.jpg
.
run 0 convert a set/s.mrec --update --quiet; out_has "1 sample of SRC was withdrawn from the set before, and stays so"
head -c 300 d/train/disc/00007.jpg >a/disc/00007.jpg
run 3 convert a set/s.mrec --update --changed withdraw --quiet
err_has "a/disc/00007.jpg: sample 7:"; out_has "appended 0 in 0 files, withdrew 0"; out_has "1 bad sample was left out"

# records that `append --again` repeated are not changed ones
rm -rf set && cp -r first set
mkdir once && cp -r a/. once && rm once/*/0001?.jpg once/*/0002?.jpg; cp d/train/disc/0000?.jpg once/disc; cp d/train/ring/0000?.jpg once/ring
run 0 append set/s.mrec once --again --quiet
run 0 convert once set/s.mrec --update --changed withdraw --quiet
out_has "0 new, 0 changed, 0 gone, 20 the same"; out_has "20 records of the set repeat another sample, and stay"
out_has "withdrew 0"; out_has "repeated: disc/00000.jpg"

# two samples of one name, one changed and damaged: its old record stays, also next to the present form of the other
mkdir -p two/x/disc two/y/disc
cp d/train/disc/0000[12].jpg two/x/disc; cp d/train/disc/00003.jpg two/y/disc/00001.jpg
tar -C two/x -cf two/0.tar disc; tar -C two/y -cf two/1.tar disc
mkdir pair
run 0 convert 'two/?.tar' pair/s.mrec --shard-size 16K --quiet
cp d/train/disc/00004.jpg two/x/disc/00001.jpg; head -c 300 d/train/disc/00005.jpg >two/y/disc/00001.jpg
tar -C two/x -cf two/0.tar disc; tar -C two/y -cf two/1.tar disc
run 3 convert 'two/?.tar' pair/s.mrec --update --changed withdraw --quiet
out_has "appended 1 in 1 file, withdrew 0"; out_has "1 bad sample was left out"
cp d/train/disc/00005.jpg two/y/disc/00001.jpg; tar -C two/y -cf two/1.tar disc
run 0 convert 'two/?.tar' pair/s.mrec --update --changed withdraw --quiet
out_has "appended 1 in 1 file, withdrew 2"

# a damaged sample without a readable name may be one of the samples that seem to be gone
mkdir unnamed
run 3 convert a unnamed/a.tfrecord --quiet
run 0 convert unnamed/a.tfrecord unnamed/s.mrec --shard-size 16K --quiet
mv a/ring/00005.jpg keep
run 3 convert a unnamed/a.tfrecord --quiet --force
run 0 inspect unnamed/a.tfrecord --record 4 --quiet --json
head -c 600 /dev/zero | dd of=unnamed/a.tfrecord bs=1 seek=$(($(number offset) + 12)) conv=notrunc status=none
run 1 convert unnamed/a.tfrecord unnamed/s.mrec --update --gone withdraw --quiet
err_has "1 bad sample of the source has no readable name and may be among the 2 that seem to be gone"; err_has "(--gone keep)"
absent unnamed/.millrace.withdrawn
run 3 convert unnamed/a.tfrecord unnamed/s.mrec --update --gone keep --quiet; out_has "1 bad sample was left out"
mv keep a/ring/00005.jpg

# options that exclude each other, and data that are not such a set
run 2 convert a set/s.mrec --update --resize 8 --quiet; err_has "--resize does not go with --update"
run 2 convert a x.mrec --gone keep --quiet; err_has "--changed and --gone go with --update"
run 0 convert later one.mrec --quiet
run 1 convert later one.mrec --update --quiet; err_has "expected the list of a set of record files"
run 1 convert later nowhere.mrec --update --quiet
run 0 convert later nameless.mrec --no-names --shard-size 16K --quiet
run 1 convert later nameless.mrec --update --quiet; err_has "the samples have no names"
mv later/ring later/zebra
run 1 convert later followed/s.mrec --update --quiet; err_has 'its class "zebra" is not a class of followed/s.mrec'
err_has "a set gets no new classes by --update"
run 1 convert later never.mrec --update --quiet; err_has "never.mrec: there is no set yet: make it with 'convert SRC DST --shard-size SIZE'"
mv later/zebra later/ring

# pixels and coefficients are compared in the form that the set stores
for store in raw coef; do
    run 0 convert later of_$store.mrec --store $store --resize 20 --shard-size 16K --quiet
    run 0 convert later of_$store.mrec --update --quiet; out_has "0 new, 0 changed, 0 gone, 31 the same"
    cp later/disc/00001.jpg keep; cp d/train/disc/00002.jpg later/disc/00001.jpg
    run 1 convert later of_$store.mrec --update --quiet; out_has "changed: disc/00001.jpg"
    cp keep later/disc/00001.jpg
done

# killed at any step, the same command does the rest
for moment in .s.append.mrec.conversion.part .s.append-00000.mrec.part .s.append.mrec s-first.mrec s.mrec.part .millrace.withdrawn; do
    rm -rf set && cp -r appended set
    case $moment in s-first.mrec) set -- appended/s-*.mrec; moment=s-$(printf %05d $#).mrec ;; esac
    "$millrace" convert later set/s.mrec --update --changed withdraw --gone withdraw --quiet >out 2>err &
    pid=$!
    waits $pid any "set/$moment"
    kill -9 $pid 2>/dev/null
    wait $pid 2>/dev/null
    last="update killed at $moment"
    "$millrace" verify set/s.mrec --quiet --no-decode >out 2>err || fail "the set is not whole"
    run 0 convert later set/s.mrec --update --changed withdraw --gone withdraw --quiet
    for f in followed/s*; do same "$f" "set/${f##*/}"; done
    names set/s.mrec >got; names later >want; same got want
    equal "$(ls -A set | wc -l)" "$(ls -A followed | wc -l)"
done

# two at once: each is done or refused, and nothing is twice in the set
rm -rf set && cp -r appended set
for n in 1 2; do
    "$millrace" convert later set/s.mrec --update --changed withdraw --gone withdraw --quiet >out$n 2>err$n &
    eval "p$n=$!"
done
wait "$p1"; r1=$?
wait "$p2"; r2=$?
last="two updates at once ($r1, $r2)"
[ $r1 -eq 0 ] || [ $r2 -eq 0 ] || { cat err1 err2; fail "none of both was done"; }
run 0 convert later set/s.mrec --update --changed withdraw --gone withdraw --quiet
names set/s.mrec >got; names later >want; same got want
finish
