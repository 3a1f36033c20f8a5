# device_suite: the suite that needs a device, rehearsed: on the emulated CUDA where this build has it, else on the processor. Every
# section runs or says why not, nothing fails, and no speed is claimed.
# usage: sh test_device_suite.sh MILLRACE JSON_LINES
command -v python3 >/dev/null || { echo "SKIP: python3 is not installed"; exit 77; }
. "$(dirname "$0")/../lib.sh"
bench=$here/../../bench
build=$(cd "$(dirname "$millrace")/.." && pwd)
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE

last=test_device_suite.py
python3 "$bench/test_device_suite.py" >out 2>err || fail "it failed"

# misuse
suite() { last="device_suite.sh $*"; sh "$bench/device_suite.sh" "$@" >out 2>err; got=$?; }
suite; equal "$got" 2; err_has "BUILD is a build folder"
suite "$temp" data results; equal "$got" 2; err_has "no program millrace below $temp"
suite "$build" data results nonsense; equal "$got" 2; err_has "no section 'nonsense'"

# one section alone, on the processor; its output is kept
suite --quick --device cpu "$build" "$temp/none" results h2d; equal "$got" 0
grep -q '"h2d"' results/device_suite.json || fail "no h2d in the JSON"
tar tzf results/device_suite_raw.tar.gz | grep -q raw/001/stdout || fail "the output is not kept"
suite --quick --device cpu --budget 0 "$build" "$temp/none" results h2d; equal "$got" 0; out_has "not run: pinned: no time left"

# all of it
device=cpu
if [ -e "$build/tests/cuda_emu/lib/libcuda.so.1" ]; then
    device=cuda:0
    LD_LIBRARY_PATH=$build/tests/cuda_emu/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export LD_LIBRARY_PATH
fi
suite --quick --device $device "$build" "$temp/none" results; equal "$got" 0
for section in info kernels train h2d resnet loader real ranks door sanitize profile; do
    grep -q "^$section: " out || fail "$last: no section $section"
    ! grep -q "^$section: failed" out || fail "$last: $section failed"
done
for section in train h2d resnet loader real ranks; do grep -Eq "^$section: (passed|incomplete)" out || fail "$last: $section did not run"; done
out_has "  ok   digest of what arrives"
out_has "  ok   mnist-cnn, loss after 3 steps"
out_has "  ok   weights of a run, of whatever processes and wires"
[ $device = cpu ] || out_has "EMULATED: shows that everything runs, and no speed"
! grep -q '^claims' out || fail "$last: a rehearsal claims something"
finish
