# devices: at least the processor is ready; GPUs are listed, or the reason for their absence.
. "$(dirname "$0")/../lib.sh"

run 0 devices
grep -Eq '^cpu .*ready' out || fail "the processor is not ready"
run 0 devices --json
grep -q '"event": "device", "kind": "cpu"' out || fail "no cpu in the JSON lines"
grep '"kind": "cuda"' out | grep -q '"state": "[a-z]' || fail "no word about cuda"
run 0 synth d --classes 2 --count 2 --quiet
run 2 digest d --devices gpu; err_has "gpu"
run 2 digest d --devices cpu:0

# on the emulation: all its devices, or the ones that the mask leaves
emulated=$(dirname "$millrace")/../tests/cuda_emu/lib
if [ -e "$emulated/libcuda.so.1" ]; then
    LD_LIBRARY_PATH=$emulated${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} MILLRACE_EMU_DEVICES=3
    export LD_LIBRARY_PATH MILLRACE_EMU_DEVICES
    run 0 devices --json
    equal "$(grep -c '"kind": "cuda".*emulated.*"state": "ready' out)" 3
    run 0 devices; out_has "cuda:2"
fi
finish
