# Data that are no data: every command names the file and the reason, ends with 1, takes little memory, and never waits.
. "$(dirname "$0")/../lib.sh"

run 0 synth d --classes 3 --count 4 --quiet
c=d/train/disc

# refused FILE TEXT: every command that reads data refuses it so. In the background, since a pipe must not be waited for.
refused() {
    for command in "inspect $1" "verify $1" "digest $1" "convert $1 o.mrec" "export $1 ex" "train $1 --model cifar-cnn" \
        "eval $1 --checkpoint c" "profile $1 --model cifar-cnn" "bench loader $1"; do
        case $command in eval*) [ -e c ] || continue ;; esac
        # shellcheck disable=SC2086
        run 1 $command
        err_has "$1"
        err_has "$2"
        [ "$(wc -l <err)" -eq 1 ] || fail "$last: expected one line"
        [ ! -s out ] || fail "$last: expected nothing on stdout"
        absent o.mrec; absent o.mrec.part; absent ex
    done
}
mkdir empty noclass noclass/a pipes pipes/a
mkfifo pipe pipes/a/p
: >zero
printf 'x' >one
refused nowhere "No such file"
refused empty "no class folders"
refused noclass "no pictures in any class"
refused pipes "no pictures in any class"
refused pipe "neither a file nor a folder"
refused zero "empty"
refused one "no format known here"
[ -c /dev/zero ] && refused /dev/zero "neither a file nor a folder"
for format in mrec shards idx cifar cifar10 folder; do
    run 1 inspect pipe --format $format; err_has "pipe: neither a file nor a folder"
    run 1 inspect nowhere --format $format; err_has "nowhere: "
    run 1 inspect one --format $format; err_has "one: "
done

# IDX: dimensions, sizes and labels that disagree. idx COUNTS LABELS, with four bytes of pixels.
idx() {
    rm -rf ix
    mkdir ix
    printf '\000\000\010\003%babcd' "$1" >ix/train-images-idx3-ubyte
    printf '\000\000\010\001%b' "$2" >ix/train-labels-idx1-ubyte
}
one_label='\0000\0000\0000\0001\0003'
idx '\0000\0000\0000\0001\0000\0000\0000\0002\0000\0000\0000\0002' $one_label
run 0 digest ix
idx '\0377\0377\0377\0377\0377\0377\0377\0377\0377\0377\0377\0377' $one_label; refused ix "more elements than any file"
idx '\0200\0000\0000\0000\0200\0000\0000\0000\0004\0000\0000\0000' $one_label; refused ix "more elements than any file"
idx '\0000\0001\0000\0000\0000\0001\0000\0000\0000\0001\0000\0000' $one_label; refused ix "the file has 20"
idx '\0000\0000\0000\0002\0000\0000\0000\0002\0000\0000\0000\0002' $one_label; refused ix "speaks of 2 items and 24 bytes"
idx '\0000\0000\0000\0000\0000\0000\0000\0000\0000\0000\0000\0000' $one_label; refused ix "dimension 0 is 0"
idx '\0000\0000\0000\0001\0000\0000\0000\0002\0000\0000\0000\0002' '\0000\0000\0000\0002\0003'; refused ix "labels"
idx '\0000\0000\0000\0001\0000\0000\0000\0002\0000\0000\0000\0002' '\0377\0377\0377\0377\0003'; refused ix "labels"

# CIFAR: a size that is no multiple, labels that cannot be
head -c 3073 /dev/zero >good
{ printf '\377'; head -c 3072 /dev/zero; } >bad
mkdir cf
for k in 1 2 4 5; do cp good cf/data_batch_$k.bin; done
cp good cf/test_batch.bin
run 1 inspect cf; err_has "data_batch_3.bin"
cp bad cf/data_batch_3.bin
run 1 verify cf; out_has "cf/data_batch_3.bin: sample 2, offset 0: expected a label below 10, found 255"; err_has "1 thing is wrong"
run 1 digest cf --split train; err_has "data_batch_3.bin: sample 2"
equal "$(wc -l <err | tr -d ' ')" 1
run 3 digest cf --bad replace; out_has "5 samples"
run 3 digest cf --bad skip
run 3 convert cf cf.mrec --json; equal "$(number bad)" 1; equal "$(number records)" 4
head -c 4000 good >cf/data_batch_3.bin
cat good good | head -c 4000 >cf/data_batch_3.bin
refused cf "expected a multiple of 3073 bytes (cifar10), found 4000"

# A JPEG cut anywhere is a bad sample and never grey filling; the loader says the same as convert.
mkdir -p cut/a
size=$(wc -c <$c/00000.jpg | tr -d ' ')
cp $c/00001.jpg cut/a/whole.jpg
at=0
while [ "$at" -lt "$size" ]; do
    head -c $at $c/00000.jpg >cut/a/cut-"$(printf %05d $at)".jpg
    at=$((at + 61))
done
count=$(find cut/a -name 'cut-*' | wc -l)
run 3 convert cut cut.mrec --json; equal "$(number bad)" "$count"; equal "$(number records)" 1
run 3 digest cut --bad skip --bad-list list --max-bad "$count"
equal "$(wc -l <list | tr -d ' ')" "$count"
run 1 digest cut --bad skip --max-bad $((count - 1)); err_has "samples are damaged (--max-bad)"
run 1 digest cut; err_has "cut/a/cut-"

# Pictures whose headers lie. The first of a data set says how large a batch is: damaged, it gives its place to the next.
printf '\377\330\377\300\000\021\010\377\377\377\377\003\001\042\000\002\021\001\003\021\001\377\332\000\014\003\001\000\002\021\003\021\000\077\000' >huge.jpg
printf '\377\330\377\300\000\021\010\000\000\000\000\003\001\042\000\002\021\001\003\021\001\377\332\000\014\003\001\000\002\021\003\021\000\077\000' >none.jpg
printf '\211PNG\r\n\032\n\000\000\000\rIHDR\000\000\377\377\000\000\377\377\020\006\000\000\000CRCC' >huge.png
mkdir -p lie/a
cp $c/00000.jpg lie/a/z.jpg
run 0 digest lie --epochs 2; cp out alone
for f in huge.jpg none.jpg huge.png zero one; do
    cp $f lie/a/first.jpg
    run 3 digest lie --bad replace --memory 200M; out_has "2 samples"; err_has "lie/a/first.jpg"
    run 3 digest lie --bad skip --memory 200M; err_has "lie/a/first.jpg"
    run 1 digest lie; err_has "lie/a/first.jpg: sample 0"
    run 1 verify lie; out_has "lie/a/first.jpg"; err_has "replace the files listed"
    run 3 convert lie lie.mrec --force --quiet
    run 1 profile lie --model cifar-cnn --augment none; err_has "lie/a/first.jpg"
done
rm lie/a/first.jpg
# one damaged sample stays one, however often it is met
cp one lie/a/first.jpg
run 3 digest lie --bad replace --max-bad 1 --epochs 50 --bad-list list; equal "$(wc -l <list | tr -d ' ')" 1
run 3 digest lie --bad skip --max-bad 1 --epochs 50 --batch 1; equal "$(wc -l <err | tr -d ' ')" 1
run 1 digest lie --bad skip --max-bad 0; err_has "lie/a/first.jpg: sample 0"
rm lie/a/first.jpg
# a bad first sample among bad ones only; nothing that could take a place
mkdir -p allbad/a
echo no >allbad/a/1.jpg; echo no >allbad/a/2.jpg
run 1 digest allbad --augment "resize(8x8)" --bad replace; err_has "no whole sample to put in its place"
run 1 digest allbad --bad replace; err_has "allbad/a/1.jpg"

# Memory: sizes that a header claims, or to which a compressed stream could swell, are not allocated.
mkdir -p honest/a
cp $c/*.jpg honest/a
cp huge.jpg huge.png none.jpg lie/a
as_small lie honest "verify DATA --workers 1" "convert DATA m.mrec --force --workers 1" "digest DATA --bad skip --workers 1"

# A data set of one class cannot be trained on; of one and two samples everything else can be done
mkdir -p tiny/a
cp $c/00000.jpg tiny/a/1.jpg
run 1 train tiny --model cifar-cnn; err_has "two classes or more"
mkdir tiny/b
cp $c/00001.jpg tiny/b/1.jpg
for how in "" "--batch 1" "--batch 3 --tail pad --devices cpu:7" "--prefetch off" "--prefetch 1000 --workers 100 --readers 64"; do
    # shellcheck disable=SC2086
    run 0 digest tiny --epochs 3 $how
done
run 2 digest tiny --tail drop; err_has "lower --batch"
run 0 train tiny --model cifar-cnn --epochs 1 --batch 4 --devices cpu:7 --quiet --json
equal "$(number samples)" 2
run 1 digest tiny --prefetch 1000 --memory 20M; err_has "raise --memory"

# Ten thousand classes
mkdir many
(cd many && awk 'BEGIN { for (i = 0; i < 10000; i++) printf "c%05d ", i }' | xargs mkdir)
for k in many/*; do ln "$c/00000.jpg" "$k/p.jpg" || break; done
run 0 inspect many --json; equal "$(number class_count)" 10000
run 0 convert many many.mrec --json --quiet; equal "$(number records)" 10000

# A file that may not be read: only somebody who may not read it can see that. Root becomes somebody else, who perhaps may not enter
# the folder that the program lies in: then a copy of it here is started.
if [ "$(id -u)" -eq 0 ]; then somebody="setpriv --reuid 65534 --clear-groups"; else somebody="env"; fi
chmod 755 "$temp"
cp "$millrace" ./millrace
program=
for found in "$millrace" ./millrace; do
    # shellcheck disable=SC2086 # a command and its options
    [ -n "$program" ] || ! $somebody "$found" --version >out 2>err || program=$found
done
if [ -n "$program" ]; then
    # It is no bad sample, whatever --bad says: the system refuses it, and it may be whole. Nothing is left behind.
    chmod 000 $c/00002.jpg
    mkdir anybody
    chmod 777 anybody
    for what in "verify d" "digest d --bad skip" "inspect d --bad" "convert d anybody/x.mrec" "convert d anybody/x.tar --to tar --workers 1" \
        "train d --model cifar-cnn --epochs 1 --devices cpu --bad skip --bad-list anybody/bad"; do
        # shellcheck disable=SC2086
        $somebody "$program" $what >out 2>err
        status=$? last="$what, with a file that may not be read"
        equal $status 1; err_has "00002.jpg"; err_has "cannot open: Permission denied; let this user read it (chmod)"
        if grep -q 00002.jpg out; then fail "$last: it is listed as a bad sample"; fi
        ! grep -qs 00002.jpg anybody/*.jsonl anybody/bad || fail "$last: it is in a list of bad samples"
        absent anybody/x.mrec; absent anybody/x.mrec.bad.jsonl; absent anybody/x.tar
    done
    chmod 644 $c/00002.jpg
    # nor does an unreadable file next to the pictures, whose kind only its first bytes would show
    echo x >$c/odd
    chmod 000 $c/odd
    # shellcheck disable=SC2086
    $somebody "$program" inspect d >out 2>err
    status=$? last="a file of no known name that may not be read"
    equal $status 1; err_has "$c/odd: cannot look into it: Permission denied; let this user read it (chmod)"
    rm $c/odd
else
    echo "not run: a file that may not be read: no other user can start the program ($(tail -1 err))"
fi

# Links
ln -s nothing $c/link.jpg
run 0 digest d; err_has "left out: 1 link to nothing (train/disc/link.jpg)"
rm $c/link.jpg
ln -s . $c/dir.jpg
mkdir $c/x.jpg
run 0 digest d
rm -r $c/dir.jpg $c/x.jpg
finish
