#!/bin/sh
# Sets as people have them (trees.txt): the output of `inspect` for each, as text and as JSON, equals the table word for word; and the
# blocks of docs/sets.md, each made and run as printed. MILLRACE_UPDATE=1 rewrites the table's answers.
# usage: test_trees.sh MILLRACE [JSON_LINES]
. "$(dirname "$0")/../lib.sh"
table=$here/read/trees.txt
page=$here/../../docs/sets.md

# ---- contents of files: two samples each, or the number in their line ----
# No two of a tree are the same: the n-th entry has the pictures of variant n (0 and the others in turn).
run 0 synth made --classes 3 --count 8 --size 16 --quiet
variants='0 1 2 3 4 5 6'
set -- made/train/disc/*
for variant in $variants; do
    for many in 2 3; do
        of=of$many.$variant
        mkdir -p "$of/disc" "$of/ring"
        cp "made/train/disc/0000$variant.jpg" "$of/disc"
        [ "$many" -eq 2 ] || cp "made/train/disc/00007.jpg" "$of/disc"
        cp "made/train/ring/0000$variant.jpg" "$of/ring"
        run 0 convert "$of" "$of.tar" --to tar --quiet
        run 0 convert "$of" "$of.tfrecord" --to tfrecord --quiet
        run 0 convert "$of" "$of.mrec" --quiet
    done
done
for many in 2 3; do
    head -c $((many * 3073)) /dev/zero >"of$many.bin"
    head -c $((many * 3074)) /dev/zero >"of$many.100"
done

# little BYTES NUMBER: the lowest byte first
little() {
    bytes=$1 rest=$2
    while [ "$bytes" -gt 0 ]; do
        # shellcheck disable=SC2059 # an octal escape
        printf "\\$(printf %03o $((rest & 255)))"
        rest=$((rest >> 8)) bytes=$((bytes - 1))
    done
}
# framed FILE: its bytes as a record of RecordIO, up to a multiple of four
framed() {
    size=$(wc -c <"$1")
    little 4 $((0xced7230a))
    little 4 "$size"
    cat "$1"
    little $(((4 - size % 4) % 4)) 0
}
# A float32 is made of its bits: 0, 1, 2, 5, 0.25, 0.75
zero=0 one=$((0x3f800000)) two=$((0x40000000)) five=$((0x40a00000)) quarter=$((0x3e800000)) most=$((0x3f400000))
for variant in $variants; do
    for many in 2 3; do
        number=0
        : >"of$many.$variant.rec"
        for picture in "of$many.$variant"/*/*; do
            label=$zero
            case $picture in */ring/*) label=$one ;; esac
            { little 4 0; little 4 "$label"; little 8 "$number"; little 8 0; cat "$picture"; } >record
            framed record >>"of$many.$variant.rec"
            number=$((number + 1))
        done
    done
done
# a head of two numbers (its own width, the width of an object), then one object: class, box
{
    little 4 7; little 4 0; little 8 0; little 8 0
    for value in $two $five $one $quarter $quarter $most $most; do little 4 "$value"; done
    cat "$1"
} >record
framed record >detection.rec
# the protobuf message of SageMaker: features { values { float32_tensor } }
printf '\012\031\012\006values\022\017\022\015\012\013\000\000\200\077\000\000\200\077\000\000\000' >record
framed record >sagemaker.rec
# archives with a picture of the first sample twice: next to the first, and after all others
mkdir again
tar xf of2.0.tar -C again
(cd again && tar cf ../twice.tar disc/00000.jpg && tar rf ../twice.tar disc/00000.jpg && tar rf ../twice.tar disc/00000.cls ring)
cp twice.tar later.tar
(cd again && tar cf ../later.tar disc ring && tar rf ../later.tar disc/00000.jpg)

# an archive that ends behind its first sample: the list of classes, the picture, its class
head -c $((7 * 512)) of2.0.tar >between.0.tar
head -c $((7 * 512)) of2.1.tar >between.1.tar
# big NUMBER: as IDX has it, four bytes, the highest first
big() {
    for shift in 24 16 8 0; do
        # shellcheck disable=SC2059 # an octal escape
        printf "\\$(printf %03o $((($1 >> shift) & 255)))"
    done
}
# NumPy's head is filled with spaces up to 128 bytes
numpy() {
    printf '\223NUMPY\001\000\166\000'
    printf '%-117s\n' "{'descr': '|u1', 'fortran_order': False, 'shape': $1, }"
    head -c "$2" /dev/zero
}
for many in 2 3; do
    { big $((0x803)); big "$many"; big 4; big 4; head -c $((many * 16)) /dev/zero | tr '\000' x; } >"of$many.images"
    { big $((0x801)); big "$many"; head -c "$many" /dev/zero; } >"of$many.labels"
done
numpy '(2, 4, 4, 3)' 96 >images
numpy '(2,)' 2 >labels

# A mask of two values, in gray and indexed: of the size of the pictures, and of another one
{
    echo iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAAAAAA6mKC9AAAAEUlEQVR42mNggAJGKGAY2QIAQxAAge0p4IMAAAAASUVORK5CYII=
    echo iVBORw0KGgoAAAANSUhEUgAAABAAAAAQAQMAAAAlPW0iAAAABlBMVEUAAADIAAA62343AAAADklEQVR42mPg/8BACgIAd7cP8V8mgawAAAAASUVORK5CYII=
    echo iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAAAAADhZOFXAAAADElEQVR42mNgoA4AAABIAAEQRe/SAAAAAElFTkSuQmCC
} >masks
for mask in gray indexed small; do
    read -r line
    echo "$line" | base64 -d >"$mask.png"
done <masks
# ---- trees ----
# content NAME COUNT: the content for any form of the name, with COUNT samples, in this variant.
content() {
    of=of$2.$variant
    case $1 in
    *images*idx3*.gz) gzip -nc "of$2.images" ;;
    *labels*idx1*.gz) gzip -nc "of$2.labels" ;;
    *images*idx3*) cat "of$2.images" ;;
    *labels*idx1*) cat "of$2.labels" ;;
    *.tar.gz | *.tgz) gzip -nc "$of.tar" ;;
    *.tar) cat "$of.tar" ;;
    *.idx | *.lst | *.json) echo text ;;
    *tfrecord*) cat "$of.tfrecord" ;;
    *.mrec) cat "$of.mrec" ;;
    *.rec) cat "$of.rec" ;;
    *.bin) cat "of$2.bin" ;;
    *.psd) printf '8BPS\000\001\000\000' ;;
    *.[jJ][pP][gG] | *.[jJ][pP][eE][gG]) cat made/train/disc/00000.jpg ;;
    *) echo text ;;
    esac
}

# plant LINE: one entry of a tree: PATH, PATH/, PATH -> TARGET, PATH (KIND) or PATH "CONTENT"
plant() {
    path=${1%% -> *} kind=
    case $1 in
    *' -> '*) kind='link' ;;
    *' ('*')') kind=${1##* \(} kind=${kind%\)} path=${1% \(*} ;;
    *' "'*'"') kind=text path=${1%% \"*} ;;
    esac
    case $path in
    */) mkdir -p "$path"; return ;;
    */*) mkdir -p "${path%/*}" ;;
    esac
    # shellcheck disable=SC2094 # content() looks at the name alone
    case $kind in
    link) ln -s "${1##* -> }" "$path" ;;
    text) text=${1#*\"}; printf %b "${text%\"}" >"$path" ;;
    empty) : >"$path" ;;
    damaged) head -c 300 /dev/zero >"$path" ;;
    cut) content "$path" 2 | head -c 2000 >"$path" ;;
    tar | tfrecord | mrec | rec | jpg | bin | 100) content "x.$kind" 2 >"$path" ;;
    gray | indexed | small) cat "$kind.png" >"$path" ;;
    detection | sagemaker) cat "$kind.rec" >"$path" ;;
    twice | later) cat "$kind.tar" >"$path" ;;
    between) cat "between.$variant.tar" >"$path" ;;
    as:*) cat "set/${kind#as:}" >"$path" ;;
    images | labels) cat "$kind" >"$path" ;;
    cifar-100) cat of2.100 >"$path" ;;
    locked) content "$path" 2 >"$path"; chmod 0 "$path" ;;
    archive:*) tar cf "$path" -C set "${kind#archive:}" ;;
    [23]) content "$path" "$kind" >"$path" ;;
    '') content "$path" 2 >"$path" ;;
    *) fail "what is '$kind' in: $1" ;;
    esac
    planted=$((planted + 1)) variant=$((planted % 7))
}

# ---- what inspect says, in the words of the table ----
as_text() {
    for key in format samples parts files classes 'left out' note; do
        sed -n "s/^\\($key\\)  *\\([^ ].*\\)/\\1 \\2/p" out
    done | sed 's/^samples \([0-9]*\).*/samples \1/'
    sed -n -e 's/^name  *//p' out | sed 's/^/name /'
    sed -n 's/^[^:]*: \([0-9]* of [0-9]*\) samples are bad$/bad \1/p' out
}
# list KEY: the strings of that array, one a line
list() { sed -n "s/.*\"$1\": \\[\"\\([^]]*\\)\"\\].*/\\1/p" out | sed -e 's/", "/\n/g' -e 's/\\"/"/g'; }
comma() { sed -e ':a' -e 'N' -e '$!ba' -e 's/\n/, /g'; }
as_json() {
    case $(sed -n '$s/^{"event": "\([a-z_]*\)".*/\1/p' out) in
    inspect) ;;
    record) sed -n 's/.*"file": "[^"]*", "name": "\([^"]*\)".*/name \1/p' out; return 0 ;;
    inspect_bad) echo "bad $(number bad) of $(number samples)"; return 0 ;;
    *) return 0 ;;
    esac
    echo "format $(text format)"
    echo "samples $(number samples)"
    part=$(text part)
    all=
    [ -n "$part" ] || all=' (all taken)'
    [ -z "$(list parts)" ] || echo "parts $(list parts | sed "s/^$part\$/& (taken)/" | comma)$all"
    [ "$(number files)" = 0 ] || echo "files $(number files): $(list file_names | comma)"
    [ "$(number class_count)" = 0 ] || echo "classes $(number class_count)$(list classes | comma | sed 's/^./: &/')"
    list left_out | sed 's/^/left out /'
    list notes | sed 's/^/note /'
}
# Errors lose the program's name in front; reports on standard output are compared as well.
as_error() { [ "$got" -eq 0 ] || sed -n 's/^millrace: /error /p' err; }

answer() {
    set -f # words, but no pattern of the shell's
    # shellcheck disable=SC2086
    "$millrace" $1 --quiet --index-folder off >out 2>err
    got=$?
    last="millrace $1"
    { [ "$got" -eq 0 ] || echo "exit $got"; as_text; as_error; } >text
    # shellcheck disable=SC2086
    run "$got" $1 --json --quiet --index-folder off
    set +f
    { [ "$got" -eq 0 ] || echo "exit $got"; as_json; as_error; } >json
    case "$got, $1" in [!0]* | *' --record '*) return 0 ;; esac
    # standard error has the same lines, and no others
    sed -n -e 's/^left out /left out: /p' -e 's/^note //p' text >lines
    sed 's/^millrace: [^:]*: //' err >err_lines
    cmp -s lines err_lines || { diff lines err_lines; fail "$last: standard error says something else"; }
}

check() {
    [ -n "$command" ] || return 0
    case $skipped in yes) return 0 ;; esac
    answer "$command"
    checked=$((checked + 1))
    if [ -n "${MILLRACE_UPDATE:-}" ]; then
        cat text >>new
    elif ! cmp -s want text; then
        diff want text
        fail "$tree: $last: the text is not as in trees.txt"
    fi
    cmp -s text json || { diff text json; fail "$tree: $last: --json says something else than the text"; }
}

tree='' command='' trees=0 checked=0 skipped=no
while IFS= read -r line; do
    case $line in
    'tree '* | 'inspect '* | '') check; command= ;;
    esac
    case $line in
    '#'*) ;;
    'tree '*)
        tree=${line#tree } trees=$((trees + 1)) skipped=no
        chmod -R u+rwx set 2>/dev/null
        rm -rf set
        mkdir set
        planted=0 variant=0
        ;;
    '  '*)
        entry=${line#  }
        case $entry in *'(locked)') [ "$(id -u)" -ne 0 ] || skipped=yes ;; esac
        plant "set/$entry"
        ;;
    'inspect '*) command=$line; : >want ;;
    ?*) printf '%s\n' "$line" >>want ;;
    esac
    case $line in
    '#'* | 'tree '* | '  '* | 'inspect '* | '') keep=yes ;;
    *) keep=$skipped ;; # what cannot be seen here stays as it is
    esac
    [ -z "${MILLRACE_UPDATE:-}" ] || [ "$keep" = no ] || printf '%s\n' "$line" >>new
done <"$table"
check
chmod -R u+rwx set
[ -z "${MILLRACE_UPDATE:-}" ] || cp new "$table"
{ [ "$trees" -ge 40 ] && [ "$checked" -ge 40 ]; } || fail "expected 40 trees or more, found $trees, checked $checked"

# ---- the page ----
# A block between ``` is a tree, then `$ millrace ...` and what that prints, on both streams; `...` stands for lines left out.
# in_order SHOWN SAID: expect the lines of SHOWN among the lines of SAID, in this order
in_order() {
    awk 'NR == FNR { shown[++count] = $0; next }
         { said[++lines] = $0 }
         END {
             at = 1; gap = 0
             for (k = 1; k <= lines; k++) {
                 while (at <= count && shown[at] == "...") { gap = 1; at++ }
                 if (at <= count && shown[at] == said[k]) { at++; gap = 0; continue }
                 if (!gap) { print "not on the page: " said[k]; exit 1 }
             }
             while (at <= count && shown[at] == "...") at++
             if (at <= count) { print "not printed: " shown[at]; exit 1 }
         }' "$1" "$2"
}

show() {
    set -f
    # shellcheck disable=SC2086
    "$millrace" $1 >out 2>err
    set +f
    last="millrace $1"
    cat err out >said
    in_order shown said >differs || fail "docs/sets.md: $last: $(cat differs)"
    blocks=$((blocks + 1))
}

blocks=0 inside=no command=''
while IFS= read -r line; do
    case $inside,$line in
    no,'```') inside=yes command=''; rm -rf set; mkdir set; planted=0 variant=0 ;;
    yes,'```') inside=no; [ -z "$command" ] || show "$command" ;;
    yes,'$ millrace '*) [ -z "$command" ] || show "$command"; command=${line#'$ millrace '}; : >shown ;;
    yes,set/*) [ -n "$command" ] || plant "$line" ;;
    esac
    case $inside,$line in
    no,* | yes,'```' | yes,'$ '*) ;;
    yes,*) [ -z "$command" ] || printf '%s\n' "$line" >>shown ;;
    esac
done <"$page"
[ "$blocks" -ge 8 ] || fail "docs/sets.md: expected 8 blocks or more, found $blocks"
finish
