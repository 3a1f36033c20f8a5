# TFRecord, tar and RecordIO files with one thing wrong each (bad_containers.c says what): every command refuses the file, or passes over
# the sample, and says file, offset and reason. `sh test_bad_containers.sh MILLRACE JSON_LINES BAD_CONTAINERS`.
# shellcheck disable=SC2086 # $data and $command are words of this file
bad_containers=$3
. "$(dirname "$0")/../lib.sh"

"$bad_containers" c >table || { echo "bad_containers failed"; exit 1; }
tab=$(printf '\t')
how='--augment resize(8x8)'
while IFS="$tab" read -r name what offset words; do
    data=c/$name
    case $what in
    file)
        for command in "inspect $data" "verify $data" "digest $data $how" "convert $data n.mrec" "train $data --model mnist-mlp"; do
            # shellcheck disable=SC2086
            run 1 $command
            err_has "c/${name%.*}." # the file or a list next to it
            err_has "$words"
            [ "$offset" = - ] || err_has "offset $offset"
            equal "$(wc -l <err | tr -d ' ')" 1
            absent n.mrec
        done
        ;;
    sample)
        # shellcheck disable=SC2086
        for command in "inspect $data --bad" "digest $data $how --bad skip" "digest $data $how --bad replace" "convert $data o.mrec --force"; do
            run 3 $command
            case $command in
            convert*) reason=$(sed 's/\\"/"/g; s/\\\\/\\/g' o.mrec.bad.jsonl) ;;
            *) reason=$(cat out err) ;;
            esac
            case $reason in *"$words"*) ;; *) fail "$last: expected '$words' in '$reason'" ;; esac
            case $reason in *"$name"*) ;; *) fail "$last: expected '$name' in '$reason'" ;; esac
        done
        run 3 inspect $data --bad --json; equal "$(number samples)/$(number bad)" 3/1
        grep -q "\"sample\": 1, \"file\": \"$data\", \"offset\": $offset" out || fail "$last: expected sample 1, offset $offset"
        # shellcheck disable=SC2086
        run 1 digest $data $how; err_has "$data: sample 1, offset $offset: "; err_has "$words"
        run 1 verify $data; out_has "$words"
        ;;
    odd)
        run 0 inspect $data; err_has "$data: "; err_has "$words"
        # shellcheck disable=SC2086
        run 0 digest $data $how
        run 0 convert $data o.mrec --force --quiet
        ;;
    good)
        # shellcheck disable=SC2086
        run 0 digest $data $how
        run 0 verify $data
        ;;
    esac
done <table
run 3 train c/psd.rec --model mnist-mlp --augment "resize(28x28)" --epochs 1 --batch 2 --bad skip --bad-list list --quiet
grep -q '"sample": 1, "file": "c/psd.rec"' list || fail "$last: not listed"
finish
