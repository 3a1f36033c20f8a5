# plan: measured and predicted figures, with and without a model; no file is left.
. "$(dirname "$0")/../lib.sh"

run 0 synth d --count 30 --quiet
mkdir temp
TMPDIR=$PWD/temp run 0 plan d --batch 30 --workers 1 --devices sim:1,step=2ms --seconds 0.5 --quiet
out_has "as it is"
out_has "8 workers"
out_has "prefetch off"
out_has "coefficient records"
out_has "raw records"
out_has "devices twice as fast"
equal "$(ls temp)" ""
out_has "advice  "
# pictures of 300 pixels for a device that takes no time: other records help most, and the command works as it is printed
run 0 synth big --count 8 --size 300 --quiet
run 0 plan big --augment rrc224 --batch 16 --workers 1 --devices sim:1,step=10us --seconds 0.5 --quiet --json
advice=$(sed -n 's/.*"advice": "\([^"]*\)".*/\1/p' out) command=$(sed -n 's/.*"advice_command": "millrace \([^"]*\)".*/\1/p' out)
case $advice in
convert*)
    # shellcheck disable=SC2086
    run 0 $command --quiet
    for made in big*.mrec; do run 0 verify "$made" --quiet; done ;;
*) equal "$command" "" ;; # a busy machine may make an option better
esac
run 0 plan d --batch 30 --workers 1 --devices sim:2,step=2ms --seconds 0.5 --quiet --json --no-forms
equal "$(grep -c '"event": "plan"' out)" 1
[ "$(grep -c '"event": "plan_way"' out)" -ge 15 ] || fail "too few ways"
equal "$(grep -c '"predicted_samples_per_s"' out)" "$(wc -l < out)"
equal "$(grep -c 'raw records' out)" 0
equal "$(grep -c '"name": "4 devices"' out)" 1
run 0 plan d --model cifar-cnn --batch 30 --seconds 0.3 --quiet --no-forms
out_has "measured"
run 0 plan d --batch 30 --prefetch off --devices sim:1 --seconds 0.3 --quiet --no-forms
out_has "prefetch off"
for order in balanced block sequential; do
    run 0 plan d --batch 30 --order $order --devices sim:1 --seconds 0.3 --quiet --no-forms
    out_has "measured"
done
run 2 plan d --batch 30 --seconds 0.3
err_has "simulated devices"
run 1 plan nowhere --devices sim:1
finish
