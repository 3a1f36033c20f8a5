#!/bin/sh
# From a bare machine to a trained network: installs what is missing, builds, makes a small data set, converts it, trains with
# prefetch off and on, and prints the comparison. Needs less than 5 minutes on two cores.
# usage: tools/quickstart.sh [FOLDER]     FOLDER keeps the data and results (default build/quickstart)
set -eu
cd "$(dirname "$0")/.."
. tools/scripts/packages.sh
# shellcheck disable=SC2086
command -v dpkg >/dev/null && millrace_install $millrace_packages

say() { printf '\n== %s\n' "$*"; }
say "build"
mkdir -p build
cmake --preset release -DMILLRACE_TESTS=OFF >build/quickstart.log 2>&1 && cmake --build --preset release >>build/quickstart.log 2>&1 ||
    { cat build/quickstart.log; exit 1; }
millrace=$PWD/build/release/tools/millrace
work=${1:-build/quickstart}
mkdir -p "$work"

say "a small labelled JPEG data set: $work/data"
rm -rf "$work/data"
"$millrace" synth "$work/data" --classes 10 --count 400 --size 32 --seed 1
say "convert it to record files"
"$millrace" convert "$work/data" "$work/train.mrec" --split train --force
"$millrace" convert "$work/data" "$work/test.mrec" --split test --force
"$millrace" inspect "$work/train.mrec"
say "train with prefetch off: read, decode, copy and compute one after the other"
"$millrace" train "$work/train.mrec" --val "$work/test.mrec" --model cifar-cnn --lr 1e-3 --epochs 2 --seed 1 --prefetch off
say "train with prefetch on: the same batches, the loader ahead of the trainer"
"$millrace" train "$work/train.mrec" --val "$work/test.mrec" --model cifar-cnn --lr 1e-3 --epochs 2 --seed 1 --prefetch 4 \
    --checkpoint "$work/checkpoint"
say "where the time went"
"$millrace" profile "$work/train.mrec" --model cifar-cnn --steps 30 --trace "$work/trace.json"
say "photographs and a fast accelerator (simulated: 5 ms a step): decoding cannot keep up"
rm -rf "$work/photos"
"$millrace" synth "$work/photos" --classes 4 --count 400 --size 320 --seed 1 --quiet
"$millrace" profile "$work/photos" --model cifar-cnn --augment "resize(64x64)" --batch 32 --devices sim:1,step=5ms --html "$work/before.html"
say "the advice followed: small pixels in record files, decoded once"
"$millrace" convert "$work/photos" "$work/small.mrec" --split train --store raw --resize 64 --center-square --force
"$millrace" profile "$work/small.mrec" --model cifar-cnn --augment "resize(64x64)" --batch 32 --devices sim:1,step=5ms --html "$work/after.html"
printf '\nBefore and after as pictures: %s, %s\n' "$work/before.html" "$work/after.html"
printf '\nThe trace of the run is %s (open it in https://ui.perfetto.dev).\nYour own images: %s train FOLDER --model cifar-cnn --augment "resize(32x32)"\n' \
    "$work/trace.json" "$millrace"
