#!/bin/sh
# bench/device_suite.sh: everything that only a machine with the device can show, in one go and without a network.
#
#   bench/device_suite.sh [OPTION...] BUILD DATA OUT [SECTION...]
#
# BUILD is a build folder, or the portable folder of one (MILLRACE_STATIC_DEPS). DATA is a folder with `mnist` (the four IDX files),
# `cifar10` (a folder of pictures, its train/ too, or a record file cifar10.mrec) and `imagenet` (likewise); missing ones are replaced
# by pictures that `millrace synth` draws, and the results say so. OUT gets device_suite.json, device_suite.txt and everything that was
# said in device_suite_raw.tar.gz.
#
#   info      GPU, driver, libraries, clocks, topology, processor     train     losses beside cpu's, digests, recorded steps
#   kernels   every operation beside its plain C reference            h2d       pinned and pageable copies
#   resnet    ResNet-50 on synthetic data, beside PyTorch             loader    this machine's cores: folder, records, coef, raw
#   real      ResNet-50 on photographs, prefetch off and on           sanitize  compute-sanitizer over the kernel tests
#   ranks     sums between processes, by TCP and by NCCL              door      batches of the Python package in PyTorch
#   profile   ncu and nsys
#
# Without a SECTION: all, in this order. Each has a limit of its own, and the run one of --budget seconds (540): a section with too little
# time left is not begun. A command that fails is recorded and the rest goes on. Exit status: 0; 1 when something of millrace failed
# or gave a wrong result (a figure that falls short is a result, not a failure); 2 misused.
#
#   --device D       as in --devices, one device (cuda:0)     --quick       tiny sizes: to see that everything runs; measures nothing
#   --budget S       seconds for all of it                    --python P    an interpreter, for PyTorch and the summary (python3)
#   --resnet "..."   options of device_resnet.py, such as --batches 256, in place of the suite's
# shellcheck disable=SC2086 # lists of options and of names without spaces
set -u
usage() { sed -n '3,/^set -u/s/^# \{0,1\}//p' "$0" | sed '$d' >&2; exit 2; }

device=cuda:0 quick="" budget=540 python=python3 resnet_options=""
while [ $# -gt 0 ]; do
    case $1 in
    --device) device=${2:?}; shift 2 ;;
    --budget) budget=${2:?}; shift 2 ;;
    --python) python=${2:?}; shift 2 ;;
    --resnet) resnet_options=${2:?}; shift 2 ;;
    --quick) quick=yes; shift ;;
    -*) usage ;;
    *) break ;;
    esac
done
[ $# -ge 3 ] || usage
build=$1 data=$2 out=$3
shift 3
every="info kernels train h2d resnet loader real ranks door sanitize profile"
chosen=${*:-$every}
for section in $chosen; do
    case " $every " in *" $section "*) ;; *) echo "device_suite: no section '$section'; there are: $every" >&2; exit 2 ;; esac
done
command -v "$python" >/dev/null || { echo "device_suite: $python is not here; the summary needs python3 (--python)" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$out" && out=$(cd "$out" && pwd) && raw=$out/raw && rm -rf "$raw" && mkdir -p "$raw" || exit 2
work=$(mktemp -d "${TMPDIR:-/tmp}/millrace-suite-XXXXXX") || exit 2
running=""
ended() {
    [ -z "$running" ] || kill -TERM "$running" 2>/dev/null
    rm -rf "$work"
}
trap ended EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

program() { # program NAME: where it lies in a build folder or a portable one
    for place in "$build/bin" "$build/tools" "$build/bench" "$build/tests/kernels" "$build/tests"/*; do
        [ -f "$place/$1" ] && [ -x "$place/$1" ] && { (cd "$place" && printf '%s/%s\n' "$(pwd)" "$1"); return; }
    done
    return 1
}
millrace=$(program millrace) || { echo "device_suite: no program millrace below $build: expected a build folder or a portable one" >&2; exit 2; }

# ---- cases ----
# A case is a folder RAW/NNN with: section, name, command (one argument a line), stdout, stderr, status, seconds; or `absent`, why not.

started=$(date +%s)
number=0
left() { echo $((started + budget - $(date +%s))); }
case_folder() { # case_folder SECTION NAME
    number=$((number + 1))
    place=$raw/$(printf %03d $number)
    mkdir -p "$place"
    printf '%s\n' "$1" >"$place/section"
    printf '%s\n' "$2" >"$place/name"
}
absent() { # absent SECTION NAME WHY
    case_folder "$1" "$2"
    printf '%s\n' "$3" >"$place/absent"
    printf '    %-28s not run: %s\n' "$2" "$3" >&2
}
run() { # run SECTION NAME LIMIT COMMAND...: false when it failed or was not begun
    limit=$3
    [ "$(left)" -ge "$limit" ] || limit=$(left)
    if [ "$limit" -lt 2 ]; then
        absent "$1" "$2" "no time left"
        return 1
    fi
    case_folder "$1" "$2"
    shift 3
    printf '%s\n' "$@" >"$place/command"
    begun=$(date +%s.%N)
    timeout -k 10 "$limit" "$@" >"$place/stdout" 2>"$place/stderr" &
    running=$!
    wait "$running"
    status=$?
    running=""
    printf '%s\n' "$status" >"$place/status"
    printf '%s %s\n' "$begun" "$(date +%s.%N)" >"$place/times"
    if [ $status -ne 0 ]; then
        printf '    %-28s exit status %s: %s\n' "$(cat "$place/name")" "$status" "$(tail -1 "$place/stderr" | cut -c1-160)" >&2
    fi
    return $status
}
has() { "$millrace" "$1" --help --all 2>/dev/null | grep -q -- "^  $2"; }

# ---- the device, and the libraries it needs ----

ready() { "$millrace" devices --json 2>/dev/null | grep "\"kind\": \"${device%%:*}\"" | grep -q '"state": "ready'; }
if ! ready; then # CUDA's libraries may lie in Python packages
    found=$("$python" "$here/device_summary.py" --library-path 2>/dev/null)
    if [ -n "$found" ]; then
        LD_LIBRARY_PATH=$found${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
        export LD_LIBRARY_PATH
    fi
fi
emulated=""
"$millrace" devices --json 2>/dev/null | grep "\"kind\": \"${device%%:*}\"" | grep -qi emulated && emulated=yes
if [ -n "$emulated" ] && [ -z "$quick" ]; then
    echo "device_suite: $device is emulated; only --quick makes sense there" >&2
    exit 2
fi

# ---- sizes ----

if [ -n "$quick" ]; then
    net=cifar-resnet20 size=16 batches=4,2 real_batch=4 real_steps=4 real_warmup=1 repeats=2 steps="1 3" train_batch=8 torch_options="--width 4 --blocks 1,1,1,1"
    seconds=0.05 rounds=1 resnet_most=200 h2d_most=1048576 precisions=bf16,f32 variants=eager copy_seconds=0.005 whole_epoch=""
    MRT_QUICK=1
    export MRT_QUICK
else
    net=resnet50 size=224 batches=256,128,64 real_batch=256 real_steps=80 real_warmup=10 repeats=128 steps="1 8 64" train_batch=128 torch_options=""
    seconds=1.5 rounds=3 resnet_most=230 h2d_most=268435456 precisions=bf16,tf32,f32 variants=eager,compile,graphs copy_seconds=0.2 whole_epoch=yes
fi
case $device in cuda*) torch_device=$device ;; *) torch_device=cpu precisions=f32 ;; esac
[ -z "$emulated" ] || torch_device=cpu

# ---- data ----

# find_data NAME CLASSES COUNT SIZE MOST: sets `found`, and `made` when it had to be drawn
find_data() {
    made=""
    for found in "$data/$1.mrec" "$data/$1/$1.mrec" "$data/$1/train" "$data/$1"; do
        [ ! -e "$found" ] || return 0
    done
    found=$work/$1/train made=yes
    [ -d "$found" ] || "$millrace" synth "$work/$1" --classes "$2" --count "$3" --size "$4" --max-size "$5" --quiet >/dev/null 2>"$work/said"
}
photos() { # sets `photographs`: a folder or a record file, and `list`, the same many times over, with entry points
    if [ -n "$quick" ]; then find_data none 2 6 40 64; else find_data imagenet 10 60 400 600; fi
    photographs=$found
    [ -z "$made" ] || touch "$raw/photographs_drawn"
    list=$work/photographs.list
    [ -s "$list" ] && return
    case $found in
    *.mrec) record=$found count=$("$millrace" inspect "$found" --json | sed -n 's/.*"samples": \([0-9]*\).*/\1/p' | head -1) ;;
    *)
        record=$work/photographs.mrec
        "$millrace" convert "$found" "$record" --quiet --json >"$work/said" 2>&1
        count=$(sed -n 's/.*"records": \([0-9]*\).*/\1/p' "$work/said" | tail -1)
        ;;
    esac
    {
        echo "millrace shards 1"
        at=0
        while [ $at -lt $repeats ]; do
            echo "$count $record"
            at=$((at + 1))
        done
        echo "end $repeats shards $((count * repeats)) records"
    } >"$list"
}

# ---- sections ----

section_info() {
    run info version 10 "$millrace" --version
    run info devices 30 "$millrace" devices --json
    run info libraries 20 "$python" "$here/device_summary.py" --libraries
    if command -v nvidia-smi >/dev/null; then
        run info gpu 20 nvidia-smi --format=csv --query-gpu=name,driver_version,memory.total,compute_cap,pcie.link.gen.current,pcie.link.width.current,clocks.sm,clocks.max.sm,clocks.mem,clocks.max.mem,power.limit,temperature.gpu,ecc.mode.current
        run info topology 20 nvidia-smi topo -m
    else
        absent info gpu "nvidia-smi is not here"
    fi
    if command -v lscpu >/dev/null; then run info processor 10 lscpu; else run info processor 10 sed -n 1,30p /proc/cpuinfo; fi
    run info memory 10 sed -n 1,3p /proc/meminfo
}

section_kernels() {
    for name in test_device_net test_device_ops; do
        if test=$(program $name); then
            run kernels "$name, f32" 180 env MRT_DEVICES="$device" "$test"
            # a rehearsal need not compute all operations three times; the networks show that the other two run
            [ -z "$quick" ] || [ $name = test_device_net ] || continue
            run kernels "$name, tf32" 60 env MRT_DEVICES="$device" MRT_TF32=1 MRT_QUICK=1 "$test"
            run kernels "$name, deterministic" 60 env MRT_DEVICES="$device" MRT_DETERMINISTIC=1 MRT_QUICK=1 "$test"
        else
            absent kernels $name "not in this build"
        fi
    done
    for name in device order group kernels linear; do # of the cuda device itself
        if [ -n "$emulated" ]; then
            absent kernels test_cuda_$name "the device is emulated: ctest runs it there"
        elif test=$(program test_cuda_$name); then
            run kernels test_cuda_$name 100 env MRT_DEVICES="$device" "$test"
        else
            absent kernels test_cuda_$name "not in this build"
        fi
    done
}

train_on() { # train_on NAME DATA MODEL DEVICE OPTION...
    title=$1 set_of=$2 model=$3 where=$4
    shift 4
    run train "$title" 90 "$millrace" train "$set_of" --model "$model" --batch $train_batch --seed 7 --devices "$where" --json --quiet "$@"
}
section_train() {
    for model in mnist-cnn cifar-cnn; do
        case $model in
        mnist-cnn) found=$data/mnist made="" && { [ -z "$quick" ] && [ -e "$found" ] || find_data none 2 12 32 32; } ;;
        cifar-cnn) if [ -n "$quick" ]; then find_data none 2 12 32 32; else find_data cifar10 10 400 32 32; fi ;;
        esac
        set_of=$found
        [ -z "$made" ] || touch "$raw/small_pictures_drawn"
        for n in $steps; do # by sgd: the models' own RMSprop makes whole steps of gradients that are nothing but rounding
            set -- --optimizer sgd --lr 0.05 --epochs 1 --val none --max-steps "$n"
            train_on "$model, $n steps, reference" "$set_of" $model cpu "$@"
            train_on "$model, $n steps, device" "$set_of" $model "$device" "$@"
        done
        if [ -n "$whole_epoch" ]; then
            train_on "$model, an epoch, reference" "$set_of" $model cpu --epochs 1
            train_on "$model, an epoch, device" "$set_of" $model "$device" --epochs 1
        fi
        n=${steps##* }
        if has train --deterministic; then
            for graph in on off; do
                train_on "$model, recorded steps $graph" "$set_of" $model "$device" --epochs 1 --val none --max-steps "$n" --deterministic --graph $graph
            done
            train_on "$model, prefetch off" "$set_of" $model "$device" --epochs 1 --val none --max-steps "$n" --deterministic --prefetch off
        fi
    done
    for prefetch in off 4; do
        run train "digest, prefetch $prefetch" 60 "$millrace" digest "$set_of" --devices "$device" --batch 100 --training --augment cifar --prefetch $prefetch --json --quiet
    done
    run train "digest, host" 60 "$millrace" digest "$set_of" --batch 100 --training --augment cifar --json --quiet
}

section_h2d() {
    bench=$(program bench_h2d) || { absent h2d bench_h2d "not in this build"; return; }
    run h2d pinned 60 "$bench" "$device" --seconds $copy_seconds --most $h2d_most
    if [ -n "$emulated" ]; then # it takes a copy from ordinary memory for a mistake
        absent h2d pageable "the device is emulated"
    else
        run h2d pageable 60 "$bench" "$device" --pageable --seconds $copy_seconds --most $h2d_most
    fi
}

section_resnet() {
    run resnet turns $((resnet_most + 20)) "$python" "$here/device_resnet.py" "$millrace" "$device" --python "$python" --rounds $rounds \
        --seconds $seconds --most $resnet_most --batches $batches --precisions $precisions --variants $variants --model $net --size $size \
        --torch-device "$torch_device" --torch-options="$torch_options" $resnet_options
}

load() { # load NAME DATA: the loader's rate without training
    run loader "$1" 40 "$millrace" bench loader "$2" --augment "rrc($size),flip" --training --batch $real_batch --seconds $seconds --rounds 3 --json --quiet
}
section_loader() {
    photos
    case $photographs in
    *.mrec)
        "$millrace" export "$photographs" "$work/files" --quiet >/dev/null 2>&1 && photographs=$work/files
        ;;
    esac
    [ -d "$photographs" ] && load folder "$photographs"
    if decode=$(program bench_decode) && [ -d "$photographs" ]; then
        run loader "full decode alone" 40 "$decode" "$photographs" "$(nproc)" $seconds
    fi
    load records "$record"
    for store in coef raw; do
        shrink=""
        [ $store = coef ] || shrink="--resize $((size + 32))"
        # shellcheck disable=SC2086
        run loader "convert to $store" 60 "$millrace" convert "$photographs" "$work/$store.mrec" --store $store $shrink --force --json --quiet &&
            load $store "$work/$store.mrec"
    done
}

section_real() {
    photos
    set -- --model $net --batch $real_batch --devices "$device" --augment "rrc($size),flip,normalise(imagenet)" --json --quiet
    precision="--precision bf16"
    case $device in cuda*) ;; *) precision="" ;; esac
    for prefetch in 4 off; do
        # shellcheck disable=SC2086
        run real "prefetch $prefetch" 60 "$millrace" train "$list" "$@" $precision --val none --epochs 64 --max-steps $real_steps --warmup-steps $real_warmup \
            --prefetch $prefetch --trace "$raw/trace-$prefetch.json"
    done
    run real "loader ceiling" 40 "$millrace" bench loader "$list" --training --seconds $seconds --rounds 3 --batch $real_batch --devices "$device" \
        --augment "rrc($size),flip,normalise(imagenet)" --json --quiet
    # shellcheck disable=SC2086
    run real "trainer ceiling" 40 "$millrace" bench trainer --model $net --batch $real_batch --size $size --devices "$device" $precision --seconds $seconds --json --quiet
}

section_ranks() {
    found=$data/mnist
    if [ -n "$quick" ] || [ ! -e "$found" ]; then find_data none 2 12 32 32; touch "$raw/small_pictures_drawn"; fi
    set -- --model mnist-cnn --batch 24 --parts 6 --seed 3 --val none --devices "$device" --json --quiet
    once="--epochs 1 --max-steps ${steps##* }"
    together="sh $here/device_ranks.sh"
    # shellcheck disable=SC2086
    run ranks "weights, 1 process" 60 "$millrace" train "$found" "$@" $once --deterministic
    for how in "2 tcp" "2 shm" "2 nccl" "3 nccl"; do
        by=${how#* }
        case $by:$device in
        nccl:cuda*) ;;
        nccl:*) absent ranks "weights, ${how% *} processes, nccl" "$device is no GPU"; continue ;;
        esac
        # shellcheck disable=SC2086
        run ranks "weights, ${how% *} processes, $by" 60 $together "${how% *}" "$millrace" train "$found" "$@" $once --deterministic --wire "$by"
    done
    case $device in
    cuda*)
        # shellcheck disable=SC2086
        run ranks "fast, 2 processes, nccl" 60 $together 2 "$millrace" train "$found" "$@" $once --wire nccl
        # shellcheck disable=SC2086
        [ -n "$quick" ] || run ranks "exchange, 2 processes" 100 $together 2 "$millrace" bench exchange --devices "$device" --wires shm,nccl \
            --sizes 64K,25M,100M --rounds 5 --json
        for by in shm nccl; do
            # shellcheck disable=SC2086
            run ranks "lost process, $by" 90 $together --lose 1 2 "$millrace" train "$found" "$@" --epochs 100000 --wire $by
        done
        ;;
    esac
}

section_door() {
    if ! "$python" -c 'import millrace, torch' 2>/dev/null; then
        absent door device_door.py "$python has no module millrace or torch"
    elif [ "$torch_device" = cpu ] && [ -z "$quick" ]; then
        absent door device_door.py "$device is no GPU"
    else
        run door device_door.py 120 "$python" "$here/device_door.py" --device "${torch_device%%:*}"
    fi
}

section_sanitize() {
    tool=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)
    test=$(program test_device_ops) || { absent sanitize test_device_ops "not in this build"; return; }
    if [ -z "$tool" ]; then
        absent sanitize memcheck "compute-sanitizer is not here"
        return
    elif [ -n "$emulated" ]; then
        absent sanitize memcheck "the device is emulated"
        return
    fi
    for check in memcheck racecheck; do # kernels are looked for in one image after the other, which is no error
        run sanitize $check 100 "$tool" --tool $check --report-api-errors no --error-exitcode 99 --print-limit 20 env MRT_DEVICES="$device" MRT_QUICK=1 "$test"
    done
}

section_profile() {
    tool=$(command -v ncu || ls /usr/local/cuda/bin/ncu 2>/dev/null)
    if [ -n "$emulated" ]; then
        absent profile ncu "the device is emulated"
        return
    fi
    # shellcheck disable=SC2086
    set -- "$millrace" bench trainer --model $net --batch 64 --size $size --devices "$device" --precision bf16 --graph off --seconds 0.01 --json --quiet
    if [ -n "$tool" ]; then
        run profile ncu 80 "$tool" --clock-control none --csv --launch-skip 900 --launch-count 260 \
            --metrics gpu__time_duration.sum,dram__throughput.avg.pct_of_peak_sustained_elapsed,sm__throughput.avg.pct_of_peak_sustained_elapsed "$@"
    else
        absent profile ncu "ncu is not here"
    fi
    if command -v nsys >/dev/null; then
        run profile nsys 80 nsys profile --trace cuda,nvtx --stats true --force-overwrite true --output "$work/nsys" "$@"
    else
        absent profile nsys "nsys is not here"
    fi
}

# ---- all of it ----

for section in $chosen; do
    echo "== $section ($(left) s left)" >&2
    "section_$section" || true
done
printf '%s\n' "$chosen" >"$raw/chosen"
printf '%s\n' "$device" >"$raw/device"
[ -z "$quick" ] || touch "$raw/quick"
[ -z "$emulated" ] || touch "$raw/emulated"
"$python" "$here/device_summary.py" "$raw" "$out"
status=$?
(cd "$out" && tar czf device_suite_raw.tar.gz raw && rm -rf raw)
exit $status
