#!/bin/sh
# Is the shared library what its soname promises? tests/abi/SONAME/ keeps headers and symbols of the first release with that
# soname.
#   headers   every public header compiles alone, as C11 and as C++17
#   symbols   only mr_... is exported, and nothing that was kept is gone
#   numbers   every enumerator keeps its value; a count of an enumeration (MR_..._COUNT) may grow with it
#   types     no function, struct or enumeration that was kept has changed, but for members at the ends of those structs that
#             may grow (abidiff, on two objects that take the address of every function: one from each set of headers)
#   caller    a program compiled with the kept headers runs with this library, and prints the same as with today's
# A soname that is not kept yet fails: --keep writes it, once, when a series begins.
# usage: check_abi.sh BUILD_DIR [--keep | --headers DIR PART...]    DIR: instead of today's headers, and only these of the five
# parts above: for its own test. Environment: CC, CXX
set -eu
build=$(cd "$1" && pwd)
root=$(cd "$(dirname "$0")/../.." && pwd)
CC=${CC:-cc}
CXX=${CXX:-c++}
rooms="base formats kernels ranks pipeline train run"
library=$build/libmillrace.so
work=$(mktemp -d "${TMPDIR:-/tmp}/millrace-abi-XXXXXX")
trap 'rm -rf "$work"' EXIT
failures=0
fail() {
    failures=$((failures + 1))
    printf 'FAILED: %s\n' "$*"
}

soname=$(readelf -d "$library" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')
kept=$root/tests/abi/$soname
mkdir "$work/today"
parts="headers symbols numbers types caller"
if [ "${2:-}" = --headers ]; then
    cp -r "$3/millrace" "$work/today/"
    shift 3
    parts=$*
    set -- "$build"
else
    for room in $rooms; do cp -r "$root/$room/include/millrace" "$work/today/"; done
fi
today="-I$work/today"

exported() { readelf -W --dyn-syms "$1" | awk '$7 != "UND" && ($5 == "GLOBAL" || $5 == "WEAK") {sub(/@.*/, "", $8); print $8}' | sort -u; }

exported "$library" >"$work/symbols"
if [ "${2:-}" = --keep ]; then
    rm -rf "$kept"
    mkdir -p "$kept"
    cp -r "$work/today" "$kept/include"
    cp "$work/symbols" "$kept/symbols"
    echo "kept as $kept"
    exit 0
fi

# probe INCLUDE_DIR OUTPUT: an object with the types of all functions that are kept, as these headers have them.
probe() {
    {
        echo '#include <millrace/run.h>'
        sed 's/.*/extern const __typeof__(\&&) probe_&; const __typeof__(\&&) probe_& = \&&;/' "$kept/symbols"
    } >"$work/probe.c"
    $CC -std=gnu11 -g -O0 -fPIC -shared "-I$1" "$work/probe.c" -o "$2"
}

# layout INCLUDE_DIR OUTPUT: where each member that is kept lies there, how large it is, and its class of types.
layout() {
    {
        printf '#include <millrace/run.h>\n#include <stdio.h>\n#define SHOW(s, m) \\\n'
        printf '    printf("%%s.%%s: offset %%zu, %%zu bytes, class %%d\\n", #s, #m, offsetof(s, m), sizeof(((s *)0)->m), \\\n'
        printf '           __builtin_classify_type(((s *)0)->m))\nint main(void)\n{\n'
        abidw "$work/kept.so" | awk -F"'" '
            /<class-decl name=/ { name = /\/>$/ ? "" : $2 }
            /<\/class-decl>/ { name = "" }
            /<var-decl name=/ && name ~ /^mr_/ && $2 != "" { print "    SHOW(" name ", " $2 ");" }' | sort -u
        echo '    return 0; }'
    } >"$work/layout.c"
    $CC -std=gnu11 "-I$1" "$work/layout.c" -o "$work/layout" && "$work/layout" >"$2"
}

# numbers INCLUDE_DIR OUTPUT: what each enumerator that is kept stands for there.
numbers() {
    echo '#include <millrace/run.h>' >"$work/enumerators.c"
    {
        printf '#include <millrace/run.h>\n#include <stdio.h>\nint main(void)\n{\n'
        $CC -E -P "-I$kept/include" "$work/enumerators.c" | grep -oE '\bMR_[A-Z0-9_]+\b' | sort -u |
            sed 's/.*/    printf("& is %lld\\n", (long long)&);/'
        echo '    return 0; }'
    } >"$work/numbers.c"
    $CC -std=gnu11 "-I$1" "$work/numbers.c" -o "$work/numbers" && "$work/numbers" >"$2"
}

check_headers() {
    for header in "${today#-I}"/millrace/*.h; do
        name=${header##*/}
        echo "#include <millrace/$name>" >"$work/one.c"
        cp "$work/one.c" "$work/one.cc"
        $CC -std=c11 -Wall -Wextra -Wpedantic -Werror "$today" -fsyntax-only "$work/one.c" ||
            fail "millrace/$name does not compile alone as C11"
        ! command -v "$CXX" >/dev/null ||
            $CXX -std=c++17 -Wall -Wextra -Wpedantic -Werror "$today" -fsyntax-only "$work/one.cc" ||
            fail "millrace/$name does not compile alone as C++17"
    done
    command -v "$CXX" >/dev/null || echo "not run: C++17, there is no $CXX"
}

check_symbols() {
    ! grep -v '^mr_' "$work/symbols" || fail "exported, and not mr_..."
    comm -23 "$kept/symbols" "$work/symbols" >"$work/gone"
    [ ! -s "$work/gone" ] || fail "$soname had these, and they are gone: $(tr '\n' ' ' <"$work/gone")"
}

check_numbers() {
    numbers "$kept/include" "$work/kept.numbers"
    numbers "$work/today" "$work/today.numbers" || fail "an enumerator that was kept is gone"
    for which in kept today; do grep -v '^MR_[A-Z0-9_]*_COUNT is ' "$work/$which.numbers" >"$work/$which.values"; done
    diff "$work/kept.values" "$work/today.values" || fail "an enumerator has another number"
    cat "$work/kept.numbers" "$work/today.numbers" | # a count comes twice, today's after the kept one
        awk '$1 ~ /_COUNT$/ { if ($3 < kept[$1]) { print; shrinks = 1 } kept[$1] = $3 } END { exit shrinks }' ||
        fail "a count is smaller than it was"
}

check_types() {
    if ! command -v abidiff >/dev/null; then
        echo "not run: abidiff (Debian and Ubuntu: apt install abigail-tools)"
    elif probe "$kept/include" "$work/kept.so" && probe "$work/today" "$work/today.so"; then
        abidiff --suppressions "$root/tests/abi/growth.abignore" "$work/kept.so" "$work/today.so" >"$work/diff" || {
            cat "$work/diff"
            fail "the interface of $soname has changed"
        }
        # whatever a suppression lets pass: members that were there stay as they were
        layout "$kept/include" "$work/kept.layout"
        layout "$work/today" "$work/today.layout" || fail "a member that was kept is gone"
        diff "$work/kept.layout" "$work/today.layout" || fail "a member that was kept has moved or changed"
    else
        fail "a function that was kept is not in today's headers"
    fi
}

# run_caller NAME INCLUDE_DIR: compiles the program with these headers and runs it with this library.
run_caller() {
    $CC -std=c11 -Wall -Wextra -Werror "-I$2" "$root/tests/abi/old_caller.c" -o "$work/$1" "-L$build" -lmillrace -Xlinker -rpath -Xlinker "$build" &&
        "$work/$1" "$work/data" "$work/$1.mrec" >"$work/$1.out" || fail "a program compiled with the $1 headers: $(tail -1 "$work/$1.out")"
}

check_caller() {
    "$build/tools/millrace" synth "$work/data" --classes 2 --count 10 >/dev/null 2>&1
    run_caller kept "$kept/include"
    run_caller new "$work/today"
    diff "$work/kept.out" "$work/new.out" || fail "the kept headers and today's give different results"
    cmp "$work/kept.mrec" "$work/new.mrec" || fail "the kept headers and today's give different record files"
}

if [ ! -d "$kept" ]; then
    fail "$soname is not kept in tests/abi: if a series begins, run check_abi.sh $1 --keep and commit it"
    parts=headers
fi
for part in $parts; do "check_$part"; done
[ $failures -eq 0 ] && echo "$soname: $(wc -l <"$work/symbols") functions, as kept"
exit $((failures != 0))
