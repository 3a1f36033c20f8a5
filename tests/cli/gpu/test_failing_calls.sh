# Every call of the driver and the libraries fails in turn in a short training: one clear line, nothing left behind, no waiting.
# usage: sh test_failing_calls.sh MILLRACE JSON_LINES FAILING_CALLS DEVICES
# FAILING_EVERY=1 tries every call (minutes), FAILING_EVERY=N every Nth from FAILING_FIRST on.
program=$3
export FAILING_DEVICES="$4"
. "$(dirname "$0")/../lib.sh"
. "$here/gpu/gpus.sh"
digits_of data 23 some_bytes some_labels
[ -n "${FAILING_EVERY:-}" ] || FAILING_EVERY=$((17 * FAILING_DEVICES))
export FAILING_EVERY
last=failing_calls
"$program" "$millrace" . >out 2>err || fail "it failed"
tail -1 out
finish
