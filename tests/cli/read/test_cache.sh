# --cache, --resident, --checks change no batch; wrong values are reported before anything runs.
. "$(dirname "$0")/../lib.sh"

run 0 synth d --count 20 --quiet
run 0 convert d d.mrec --quiet
for data in d d.mrec; do
    run 0 digest $data --epochs 3 --training --augment cifar --batch 30
    cp out plain
    for how in "--resident 0" "--cache ram:64M" "--cache ram:20K" "--cache disk:kept:64M" "--cache disk:kept:64M --prefetch off" \
        "--cache disk:kept:64M --io pread" "--checks off" "--resident 0 --checks off"; do
        # shellcheck disable=SC2086 # options
        run 0 digest $data --epochs 3 --training --augment cifar --batch 30 $how; same out plain
    done
done
run 0 digest d --cache ram:20K --batch 30; err_has "the cache is full"
run 0 digest d --checks off --batch 30; err_has "--checks off"
equal "$(ls kept | wc -l | tr -d ' ')" 4 # two sets, two files each

run 0 bench loader d --cache ram:64M --seconds 0.2 --rounds 1 --json
equal "$(number cache_entries)" 200
run 0 bench loader d --cache ram:64M --seconds 0.2 --rounds 1; out_has "came from it"
run 0 bench loader d.mrec --seconds 0.2 --rounds 1; out_has "lies in memory"
run 0 bench loader d.mrec --resident 0 --seconds 0.2 --rounds 1 --json
equal "$(number resident_bytes)" 0
run 0 train d --model cifar-cnn --batch 20 --epochs 2 --cache disk:kept:64M --quiet --json; out_has '"cache_entries": 200'
out_lacks '"cache_hits": 0,' # the runs above cached all of it; the number of hits per epoch depends on reading ahead

run 0 digest d; cp out plain
run 0 digest d --cache ram; equal "$(cat plain)" "$(cat out)"
run 0 bench loader d --cache ram --seconds 0.2 --rounds 1 --json
equal "$(number cache_entries)" 200
for spec in ram: ram:0 ram:x disk disk: disk::1G disk:dir disk:dir:x 8G ram:1G:1G on; do
    run 2 digest d --cache $spec; err_has "--cache: expected off, ram, ram:SIZE or disk:FOLDER:SIZE"
done
run 1 digest d --cache disk:no/such:1G; err_has "no/such"
run 1 digest d --cache ram:100G --memory 1G; err_has "--cache"
printf 'mine' >"$(ls kept/*-colour.mrcache | head -1)"
cp "$(ls kept/*-colour.mrcache | head -1)" before
for data in d d.mrec; do "$millrace" digest $data --cache disk:kept:64M >out 2>>all; done
grep -q "is no cache of this data" all || fail "a file that is no cache was taken for one"
same "$(ls kept/*-colour.mrcache | head -1)" before
# a run that checks does not use samples that a run without checks cached
run 0 synth u --count 5 --quiet
run 0 convert u u.mrec --store raw --quiet
run 0 digest u.mrec --augment "rrc(32)" --resident 0 --cache disk:unchecked:64M --checks off
printf '\377\376\375\374' | dd of=u.mrec bs=1 seek=8400 conv=notrunc 2>/dev/null
run 0 digest u.mrec --augment "rrc(32)" --resident 0 --cache disk:unchecked:64M --checks off
run 1 digest u.mrec --augment "rrc(32)" --resident 0 --cache disk:unchecked:64M
finish
