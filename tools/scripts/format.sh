#!/bin/sh
# clang-format over every source of the tree. Its result depends on its version, so only the one that .clang-format names is used;
# tests/abi/*/include is a kept copy and stays as it was.
# usage: tools/scripts/format.sh             format the tree
#        tools/scripts/format.sh --check     list the files that would change, and the lines that are too wide
# exit status 1: --check found some; 77: this version of clang-format is not here
set -eu
cd "$(dirname "$0")/../.."
version=$(sed -n 's/^# clang-format \([0-9]*\).*/\1/p' .clang-format)
columns=$(sed -n 's/^ColumnLimit: *//p' .clang-format)

format=clang-format-$version
command -v "$format" >/dev/null || format=clang-format
command -v "$format" >/dev/null || { echo "SKIP: clang-format is not installed"; exit 77; }
found=$("$format" --version | sed 's/.*version \([0-9]*\).*/\1/')
[ "$found" = "$version" ] || { echo "SKIP: clang-format is version $found, the tree is formatted with $version"; exit 77; }

each_source() { # command... with as many names as fit
    find . \( -name .git -o -path './build*' -o -path './tests/abi/*/include' \) -prune -o \
        \( -name '*.c' -o -name '*.h' -o -name '*.cu' -o -name '*.cc' \) -exec "$@" {} +
}

case ${1-} in
'') each_source "$format" -i ;;
--check)
    # A column is a character: the bytes that continue one in UTF-8 do not count.
    # shellcheck disable=SC2016 # awk's words
    complaints=$(
        each_source "$format" --dry-run 2>&1 |
            sed -n -e 's/^\(.*\):[0-9]*:[0-9]*: warning: .*/\1: not as clang-format leaves it/p' -e '/^Error/p' | uniq
        LC_ALL=C each_source awk -v most="$columns" '{
            gsub(/[\200-\277]/, "")
            if (length($0) > most) print FILENAME ":" FNR ": " length($0) " columns, " most " at most"
        }'
    )
    [ -z "$complaints" ] || { echo "$complaints"; exit 1; }
    echo "no complaints"
    ;;
*) echo "usage: tools/scripts/format.sh [--check]" >&2; exit 2 ;;
esac
