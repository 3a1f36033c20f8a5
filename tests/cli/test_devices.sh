# devices: at least the processor is ready.
. "$(dirname "$0")/lib.sh"

run 0 devices
grep -Eq '^cpu .*ready' out || fail "the processor is not ready"
run 0 devices --json
grep -q '"event": "device", "kind": "cpu"' out || fail "no cpu in the JSON lines"
run 0 synth d --classes 2 --count 2 --quiet
run 2 digest d --devices gpu; err_has "gpu"
run 2 digest d --devices cpu:0
finish
