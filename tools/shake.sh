#!/bin/sh
# Finds tests that pass only sometimes: runs the tests of a build again and again, in turns next to busy neighbours and on one core,
# and prints which failed how often.
#
# usage: tools/shake.sh BUILD [ROUNDS [REGEX [ctest argument...]]]     default: 5 rounds of each kind, all tests
#   tools/shake.sh build/tsan 50 '^(cache|loader_.*)$'
#   MILLRACE_SPIN=8 tools/shake.sh build/release 20 . -L threads       8 neighbours that spin (default: two for each core)
# Exit status 1: something failed. The logs of rounds that failed are kept, and named.
set -u
case ${1-} in
"" | -*)
    sed -n '5,8s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
build=$1
rounds=${2:-5}
regex=${3:-.}
shift $(($# < 3 ? $# : 3))
cores=$(nproc)
logs=$(mktemp -d "${TMPDIR:-/tmp}/millrace-shake-XXXXXX")
spinning=""

quiet() {
    # shellcheck disable=SC2086 # a list
    [ -z "$spinning" ] || kill $spinning 2>/dev/null
    spinning=""
}
trap quiet EXIT
trap 'exit 130' INT TERM

failed=""
tests() { # LOG COMMAND...
    log=$logs/$1
    shift
    "$@" --test-dir "$build" --no-tests=error --output-on-failure -R "$regex" </dev/null >"$log" 2>&1 || failed="$failed $log"
    printf 'round %s: %s\n' "${log##*/}" "$(grep -E 'tests passed' "$log" || tail -1 "$log")"
}

one=$(taskset -cp $$ 2>/dev/null | sed 's/.*: *\([0-9]*\).*/\1/')
round=0
while [ "$round" -lt "$rounds" ]; do
    round=$((round + 1))
    count=0
    while [ "$count" -lt "${MILLRACE_SPIN:-$((2 * cores))}" ]; do
        (while :; do :; done) &
        spinning="$spinning $!"
        count=$((count + 1))
    done
    tests "$round-busy" ctest -j $((cores + 1)) "$@"
    quiet
    [ -n "$one" ] || continue # no taskset here
    tests "$round-one-core" taskset -c "$one" ctest -j 2 "$@"
done

if [ -z "$failed" ]; then
    rm -rf "$logs"
    echo "nothing failed in $rounds rounds"
    exit 0
fi
echo "-- failures over $rounds rounds of each kind"
# shellcheck disable=SC2086
sed -nE 's/^.*Test +#[0-9]+: ([^ ]+) .*\*\*\*(Failed|Timeout|Exception|Not Run).*/\2 \1/p' $failed | sort | uniq -c | sort -rn
# shellcheck disable=SC2086
printf 'log: %s\n' $failed
exit 1
