# Odd and broken pictures, all of them (tests/pipeline/decode/odd.h): convert, verify, inspect, digest and train agree on which are bad and say
# the fault of each; records with such bytes are reported as well. `sh test_bad_pictures.sh MILLRACE JSON_LINES ODD_FILES`.
odd_files=$3
. "$(dirname "$0")/../lib.sh"

"$odd_files" odd >table || { echo "odd_files failed"; exit 1; }
tab=$(printf '\t')
count() { grep -c "^$1$tab.*$tab$2$tab" table; } # GROUP VERDICT

# names_all LIST [own]: it names the fault of each bad picture of the group, and no good one; own: nor one that libjpeg refuses.
names_all() {
    grep "^$group$tab" table | while IFS="$tab" read -r _ name verdict says otherwise; do
        if [ "$verdict" = bad ] || { [ "$verdict" = own ] && [ "${2:-}" != own ]; }; then
            grep -F "/$name: " "$1" | grep -qF -e "$says" -e "$otherwise" ||
                { grep -F "/$name: " "$1" || true; echo "of $name expected: $says"; }
        elif grep -qF "/$name: " "$1"; then
            echo "$name is good"
        fi
    done >untold
    [ ! -s untold ] || fail "$last: $(cat untold)"
}

# reasons LIST: the lines of a list as verify would print them.
reasons() { sed -n 's/.*"file": "\([^"]*\)".*"reason": "\(.*\)".*/\1: \2/p' "$1" | sed 's/\\"/"/g' >reasons; }

for group in jpeg damage png other exif kinds webp tiff heic avif; do
    [ -d "odd/$group" ] || continue # its library is not here
    for k in 0 1 2 3 4 5 6 7 8 9; do # for groups that are all damaged: samples that can take a place
        for j in 0 1 2 3; do ln odd/jpeg/all/progressive.jpg odd/$group/all/whole-$j$k.jpg; done
    done
    own=$(count $group own)
    good=$(($(count $group good) + own + 40))
    bad=$(count $group bad)
    whole=0 partly=3 # exit statuses of what looks at all of it, and of what goes on
    [ "$bad" -eq 0 ] && partly=0
    [ "$bad" -eq 0 ] || whole=1
    data=odd/$group

    run $partly inspect $data --bad; names_all out own; out_has "$data: $bad of $((good + bad)) samples are bad"
    run $partly inspect $data --bad --json; grep '"event": "bad"' out >inspected
    run $whole verify $data; names_all out own
    run $partly convert $data $group.mrec --json
    equal "$(number bad)" "$bad"
    equal "$(number records)" "$good"
    if [ "$bad" -gt 0 ]; then same $group.mrec.bad.jsonl inspected; else absent $group.mrec.bad.jsonl; fi
    run 0 verify $group.mrec
    run 0 digest $group.mrec --augment "resize(8x8)" --order sequential
    for how in "--pixels own" "--pixels libjpeg" "--workers 3 --bad replace" "--order shuffle --epochs 2"; do
        # shellcheck disable=SC2086
        run $partly digest $data --bad skip --max-bad 1000 --augment "resize(8x8)" --order sequential --bad-list list $how
        [ "$bad" -gt 0 ] || continue
        reasons list
        case $how in
        *libjpeg*) # in its own words
            names_all reasons
            equal "$(wc -l <list | tr -d ' ')" $((bad + own)) ;;
        *) names_all reasons own
            sort list >sorted; sort inspected | cmp -s - sorted || fail "$last: not the list of inspect --bad" ;;
        esac
        rm list
    done
    [ "$bad" -gt 0 ] || continue
    run 1 digest $data --augment "resize(8x8)" --order sequential --prefetch off; equal "$(wc -l <err | tr -d ' ')" 1
    first=$(sed -n '1s/.*"file": "\([^"]*\)".*/\1/p' inspected)
    err_has "$first: sample "
    run 1 digest $data --bad skip --max-bad $((bad - 1)) --augment "resize(8x8)"; err_has "samples are damaged (--max-bad)"

    # the same bytes inside records
    case $group in damage | other | kinds) stays=3 ;; *) stays=0 ;; esac # some have no header of a picture at all
    run $stays convert $data held.mrec --no-check --force --json
    held=$(($(number records) - good))
    [ "$group" = other ] || [ $held -gt 0 ] || fail "$last: nothing that is bad was stored"
    [ $held -gt 0 ] || continue
    run 1 verify held.mrec --json
    equal "$(grep -c '"event": "wrong"' out)" $held
    run 3 inspect held.mrec --bad; out_has "held.mrec: $held of $((good + held)) samples are bad"
    run 3 digest held.mrec --bad skip --max-bad 1000 --augment "resize(8x8)"
    run 1 digest held.mrec --augment "resize(8x8)"; err_has "held.mrec: sample "
done

# what unpacks to far more than the file, or says that it will, takes no memory: no more than good pictures
mkdir -p bombs/all
run 0 synth pngs --classes 2 --count 8 --image png --quiet
for name in text-bomb profile-bomb bomb bomb-inside widest largest large; do ln odd/png/all/$name.png bombs/all/; done
as_small bombs pngs "inspect DATA --bad --workers 1" "digest DATA --bad skip --workers 1 --augment resize(8x8)" \
    "convert DATA b.mrec --force --workers 1"

# a training run that meets all of them goes on, and names each once
mkdir -p mixed
run 0 synth mixed/d --classes 2 --count 8 --quiet
mv mixed/d/train mixed/train
for group in jpeg damage png other exif kinds webp tiff heic avif; do
    [ ! -d "odd/$group" ] || cp odd/$group/all/* "$(find mixed/train -mindepth 1 -maxdepth 1 | head -1)"
done
bad=$(grep -c "${tab}bad$tab" table)
run 3 inspect mixed/train --bad --json; grep '"event": "bad"' out | sort >inspected
equal "$(wc -l <inspected | tr -d ' ')" "$bad"
run 3 train mixed/train --model mnist-mlp --augment "resize(28x28)" --epochs 2 --batch 16 --bad replace --max-bad 1000 --bad-list t.jsonl --quiet
sort -u t.jsonl >trained
same trained inspected
finish
