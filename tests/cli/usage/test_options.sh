# Misuse is reported before any work: exit status 2, one line, the nearest name.
. "$(dirname "$0")/../lib.sh"

wrong() { # MESSAGE ARGUMENT...
    message=$1
    shift
    run 2 "$@"
    err_has "$message"
    [ "$(wc -l <err)" -eq 1 ] || fail "$last: expected one line"
    [ ! -s out ] || fail "$last: expected nothing on stdout"
}
wrong "did you mean 'inspect'?" inpsect x
wrong "there is no command 'xyzzyx'" xyzzyx
wrong "convert needs SRC" convert
wrong "convert needs DST" convert a
wrong "takes 2 arguments, found another: 'c'" convert a b c
wrong "did you mean --resize?" convert a b --reszie 3
wrong "did you mean --workers?" train a --wrokers 3
# what other programs call it
wrong "train has no option --batch-size; did you mean --batch?" train a --batch-size 32
wrong "did you mean --batch?" train a --batch_size=32
wrong "did you mean --devices cuda:0?" train a --gpu 0
wrong "did you mean --workers?" train a --num-workers 4
wrong "did you mean --workers?" convert a b --num-workers 4
wrong "did you mean --lr?" train a --learning-rate 0.1
wrong "did you mean --force?" convert a b --overwrite
wrong "inspect has no option --gpu; 'millrace inspect --help' lists them" inspect a --gpu 0
wrong "convert has no option --frobnicate" convert a b --frobnicate
wrong "--resize needs a value" convert a b --resize
wrong "--resize needs a value, found '--force'" convert a b --resize --force
wrong "--checkpoint: expected a value, found ''" train a --checkpoint=
wrong "inspect: expected a name, found ''" inspect ""
wrong "--resume takes no value" convert a b --resume=yes
wrong "expected a whole number, found '-1'" convert a b --resize=-1
wrong "expected a whole number, found '3x'" convert a b --resize 3x
wrong "expected a whole number, found ''" convert a b --resize=
wrong "expected 0 to 65535, found '65536'" convert a b --resize 65536
wrong "expected 1 to 100, found '0'" convert a b --quality 0
wrong "found '99999999999999999999'" digest a --seed 99999999999999999999
run 0 synth sizes --classes 2 --count 2 --size 16 --quiet; run 0 convert sizes sizes.mrec --shard-size 64k --quiet
wrong "a size such as 4096, 64K or 1.5G, found '1Q'" convert a b --shard-size 1Q
wrong "a time such as 10s or 250ms, found 'soon'" bench loader a --seconds soon
wrong "a whole number or off, found 'on'" train a --prefetch on
wrong "expected one of jpeg, raw, coef; found 'tiff'" convert a b --store tiff
wrong "--center-square needs --store raw" convert a b --center-square
wrong "options are written --name, found '-v'" convert a b -v
wrong "--record: expected a whole number" inspect a --record x
wrong "--model is needed" train a
wrong "did you mean 'cifar-cnn'?" train a --model cifar-cmn
wrong "expected loader, trainer, limits, storage or exchange" bench everything
wrong "bench loader needs DATA" bench loader
wrong "--checkpoint is needed" eval a
wrong "profile compares off with on" profile a --model cifar-cnn --prefetch off
wrong "--channels: expected 0, 1 or 3, found 2" convert a b --channels 2
wrong "--channels: expected 1 or 3, found 2" synth d --channels 2
wrong "--max-size: expected 32 or more" synth d --max-size 16
absent d

# --name value and --name=value are the same; -- ends the options
run 0 synth one --count 2 --classes 2 --quiet
run 0 synth two --count=2 --classes=2 --quiet
diff -r one two >/dev/null || fail "--count 2 and --count=2 differ"
run 1 inspect -- --not-there
err_has "--not-there"

# results that cannot be written are a failure
if [ -c /dev/full ]; then
    "$millrace" inspect one >/dev/full 2>err
    status=$? last="inspect on a full device"
    equal $status 1
    err_has "cannot write the results"
fi

# with --json the last line is the error in machine-readable form
run 1 train nowhere --model cifar-cnn --json
equal "$(tail -1 out)" '{"event": "error", "status": 1, "code": -10, "text": "nowhere: cannot look at it: No such file or directory", "file": "nowhere", "errno": 2}'
run 2 train nowhere --batch many --json
equal "$(cat out)" '{"event": "error", "status": 2, "code": -5, "text": "--batch: expected a whole number, found '"'many'"'", "file": null}'
run 2 watch --json j.json --nosuch
out_lacks '"event"' # that --json names a file
run 0 devices --json
out_lacks '"error"'

# who starts it and says so is not outlived
last="a run whose parent has ended"
MILLRACE_PARENT=1 "$millrace" digest nowhere >out 2>err
[ $? -eq 143 ] || fail "$last: expected to be stopped by SIGTERM"
err_has "process 1, which MILLRACE_PARENT names"
MILLRACE_PARENT=$$ "$millrace" digest nowhere >out 2>err
[ $? -eq 1 ] || fail "$last: its parent is there"
MILLRACE_PARENT=$$ "$millrace" watch --json k.json -- "$millrace" digest nowhere >out 2>err
[ $? -eq 1 ] || fail "$last: a process that it starts has another parent"
finish
