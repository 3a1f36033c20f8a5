#!/bin/sh
# From a bare machine to a stall that is found, explained and gone: installs missing packages, builds, makes data, trains on the
# processor with prefetch off and on, then feeds photographs to a simulated accelerator, asks what would help, does it, and looks
# again. Needs less than 5 minutes on two cores, most of them for the build.
# usage: tools/quickstart.sh [FOLDER]     FOLDER keeps the data and results (default build/quickstart)
set -eu
cd "$(dirname "$0")/.."
. tools/scripts/packages.sh
# shellcheck disable=SC2086
command -v dpkg >/dev/null && millrace_install $millrace_packages

say() { printf '\n== %s\n' "$*"; }

# of a file of JSON lines: the last line of a kind, and one of its values
line_of() { grep "\"event\": \"$2\"" "$1" | tail -1; }
text_of() { line_of "$1" "$2" | sed -n "s/.*\"$3\": \"\([^\"]*\)\".*/\1/p"; }
number_of() { line_of "$1" "$2" | sed -n "s/.*\"$3\": \([-+.0-9e]*\).*/\1/p"; }

# what `profile --json` found: both runs, and the verdict
show_profile() {
    grep '"event": "profile_run"' "$1" | sed 's/.*"prefetch": \([0-9]*\).*"samples_per_s": \([-+.0-9e]*\).*"stall_fraction": \([-+.0-9e]*\).*/\1 \2 \3/' |
        awk '{ printf "  prefetch %-4s %8.0f samples/s; the device waits for data %5.1f %% of the time\n", $1 ? $1 : "off", $2, 100 * $3 }'
    printf '  verdict: %s\n' "$(text_of "$1" profile verdict)"
}

# with prefetch on
stall_of() { number_of "$1" profile_run stall_fraction | awk '{ printf "%.1f %% of the time", 100 * $1 }'; }

say "build"
mkdir -p build
cmake --preset release -DMILLRACE_TESTS=OFF >build/quickstart.log 2>&1 && cmake --build --preset release >>build/quickstart.log 2>&1 ||
    { cat build/quickstart.log; exit 1; }
PATH=$PWD/build/release/tools:$PATH
work=${1:-build/quickstart}
mkdir -p "$work"
cd "$work"
work=$PWD

say "a small labelled JPEG data set in $work, converted to record files"
rm -rf data photos photos*.mrec checkpoint
millrace synth data --classes 10 --count 200 --size 32 --seed 1 --quiet
millrace convert data train.mrec --split train --force --quiet
millrace convert data test.mrec --split test --force --quiet
millrace inspect train.mrec
say "a network learns it on the processor"
millrace train train.mrec --val test.mrec --model cifar-cnn --lr 1e-3 --epochs 2 --seed 1 --checkpoint checkpoint
say "prefetch off and on, on the processor: loading and computing share its cores"
millrace profile train.mrec --model cifar-cnn --steps 12 --seconds 0.6 --trace trace.json --json --quiet >processor.jsonl
show_profile processor.jsonl
printf '  here prefetch gives at most about %.2f times prefetch off: what computes also loads\n' "$(number_of processor.jsonl profile most_over_off)"

say "photographs, and an accelerator (simulated: 10 ms a step of 64)"
millrace synth photos --classes 4 --count 300 --test-count 1 --size 300 --max-size 600 --seed 1 --quiet
set -- --augment rrc224 --batch 64 --devices sim:1,step=10ms
millrace profile photos --model resnet18 "$@" --seconds 0.6 --json --quiet >before.jsonl
show_profile before.jsonl
say "what would help? millrace plan photos $*"
millrace plan photos "$@" --seconds 2 --json --quiet >plan.jsonl
command=$(text_of plan.jsonl plan advice_command) # makes other data; or there is an option that helps
options=
[ -n "$command" ] || options=$(text_of plan.jsonl plan advice)
printf '  its advice: %s\n  with that %.0f samples/s instead of %.0f, it says\n' "${command:-${options:-leave it as it is}}" \
    "$(number_of plan.jsonl plan advice_samples_per_s)" "$(number_of plan.jsonl plan predicted_samples_per_s)"
say "the advice followed"
eval "$command"
made=photos
for file in photos*.mrec; do [ ! -e "$file" ] || made=$file; done
# shellcheck disable=SC2086
millrace profile "$made" --model resnet18 "$@" $options --seconds 0.6 --json --quiet >after.jsonl
show_profile after.jsonl
printf '  the stall was %s, and is %s\n' "$(stall_of before.jsonl)" "$(stall_of after.jsonl)"
millrace report before.jsonl after.jsonl --html report.html --force >/dev/null
printf '\nBoth as one page: %s\nThe trace of the first profile: %s (open it in https://ui.perfetto.dev)\n' "$work/report.html" "$work/trace.json"
printf 'Your own images: %s train FOLDER --model cifar-cnn --augment "resize(32x32)"\n' "$(command -v millrace)"
