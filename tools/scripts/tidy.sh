#!/bin/sh
# clang-tidy with the rules of .clang-tidy over the sources of the library, the command and the examples; a header is looked at with
# the sources that include it.
# usage: tools/scripts/tidy.sh BUILD [--since REVISION | FILE...]     BUILD: a configured build folder. Exit status 77: no clang-tidy here
set -eu
cd "$(dirname "$0")/../.."
command -v clang-tidy >/dev/null || { echo "SKIP: clang-tidy is not installed"; exit 77; }
build=${1:-build/release}
[ -e "$build/compile_commands.json" ] || { echo "$build has no compile_commands.json: cmake --preset release"; exit 1; }
[ $# -eq 0 ] || shift

known=$(mktemp)
trap 'rm -f "$known"' EXIT
trap 'exit 1' INT TERM
sed -n "s|^ *\"file\": \"$PWD/\(.*\.c\)\".*|\1|p" "$build/compile_commands.json" |
    grep -E '^(base|formats|kernels|ranks|settings|pipeline|train|run|tools|examples)/' | sort -u >"$known"
[ -s "$known" ] || { echo "$build knows no source of this tree: was it configured under another path?"; exit 1; }
case ${1:-} in
--since) git diff --name-only --diff-filter=d "$2" -- '*.c' ;;
'') cat "$known" ;;
*) printf '%s\n' "$@" ;;
esac | grep -xFf "$known" | xargs -r -P "$(nproc)" -n 4 clang-tidy -p "$build" --quiet 2>/dev/null
echo "no complaints"
