#!/bin/sh
# bench/all.sh: makes the figures of README.md and docs/measurements.md again, on one machine, by one command.
#
# usage: bench/all.sh [--quick | --start] [--only NAME,...] BUILD DATA OUT
#        bench/all.sh --list
#
#   BUILD     the build folder of a release build; programs that it lacks are built there
#   DATA      a folder with photos/ (JPEGs in class folders), cifar/train/ and cifar/test/ (CIFAR-10 as JPEGs), mnist/ (IDX files, gzip)
#             and notes/ (train.csv.gz, val.csv.gz); a step whose data are missing is skipped
#   OUT       gets a text of each step, its record (JSON) where it has one, and all.txt: machine, date, steps, seconds
#   --list    print the steps with their sections of docs/measurements.md and their commands, and end
#   --quick   one short round of each step: shows that everything works, gives no figures to publish
#   --start   end each step after START_SECONDS (10): shows that programs, data and arguments are there
#   --only    these steps
#
# PYTHON names an interpreter with PyTorch, torchvision and TensorFlow for the comparisons (default: python3); a comparison lists those
# that are missing. Nothing else may run on the machine meanwhile. The peers step installs other loaders into a virtual environment.
# Exit status 1: a step failed. Records go to bench/results by hand, after a look at them.
set -eu
cd "$(dirname "$0")/.."

usage() {
    sed -n '4,5s/^# \{0,1\}//p' "$0" >&2
    exit 2
}

speed=full only="" build=build/release data=DATA out=OUT list=""
while [ $# -gt 0 ]; do
    case $1 in
    --list) list=yes ;;
    --quick) speed=quick ;;
    --start) speed=start ;;
    --only)
        [ $# -ge 2 ] || usage
        only=,$2,
        shift
        ;;
    --*) usage ;;
    *) break ;;
    esac
    shift
done
if [ -z "$list" ]; then
    [ $# -eq 3 ] || usage
    build=$1 data=$2 out=$3
    [ -x "$build/tools/millrace" ] || { echo "all.sh: $build/tools/millrace: no such program; build it, or name its build folder" >&2 && exit 2; }
    [ -d "$data" ] || { echo "all.sh: $data: no such folder; expected a folder with photos/, cifar/, mnist/, notes/" >&2 && exit 2; }
    mkdir -p "$out"
fi
python=${PYTHON-python3}
millrace=$build/tools/millrace
photos=$data/photos cifar=$data/cifar
job=$cifar digits=$data # of whole_job and curves; --quick and --start take a few of their pictures
[ $speed = full ] || job=$out/few digits=$out/digits

# steps: NAME|SECTION|DATA|TARGET|COMMAND|OPTIONS OF --quick, one a line, in the order of docs/measurements.md. SECTION is the page's heading;
# DATA lists folders of $data, TARGET a target to build first (-: none).
steps() {
    cat <<END
trainer_peers|Training steps|.|-|$python bench/trainer_peers.py $millrace --nets n1,n3,n9,r18 --python $python --out $out/trainer_peers.json|--rounds 1 --seconds 0.5 --nets n9
whole_job|Training steps|cifar|-|$python bench/whole_job.py $millrace $job --rounds 3 --python $python --out $out/whole_job.json|--rounds 1
convolutions|Training steps|.|-|$python bench/convolutions.py $millrace --rounds 3 --out $out/convolutions.json|--rounds 1 --seconds 0.5 --nets cifar-cnn:32
prefetch_cifar|Prefetch|cifar|-|$millrace profile $out/cifar.mrec --augment cifar --tail drop --batch 128 --steps 380 --devices sim:1,step=330us|--steps 20
prefetch_photos|Prefetch|photos|-|$millrace profile $photos --augment rrc224 --tail drop --batch 16 --steps 46 --devices sim:1,step=3.8ms|--steps 6
loader_folder|The loader alone|cifar|-|$millrace bench loader $cifar --augment cifar --training --batch 512 --seconds 3 --rounds 5|--seconds 0.2 --rounds 1
loader_records|The loader alone|cifar|-|$millrace bench loader $out/cifar.mrec --augment cifar --training --batch 512 --seconds 3 --rounds 5|--seconds 0.2 --rounds 1
loader_mnist|The loader alone|mnist|-|$millrace bench loader $data/mnist --batch 512 --seconds 3 --rounds 5|--seconds 0.2 --rounds 1
measuring|Cost of measuring|.|-|$python bench/measuring.py $millrace $build-plain/tools/millrace --json $out/measuring.json|--rounds 2 --only photos
formats|Foreign formats|photos cifar|-|$python bench/formats.py $millrace --data $photos --cifar $cifar/train --rounds 5 --json $out/formats.json|--rounds 1 --seconds 0.2
runs|Many runs in one process|.|bench_runs|$build/tests/train/bench_runs 1000|60
convert|Conversion|cifar|-|$millrace convert $cifar/train $out/again.mrec --force|
curves|Accuracy|mnist notes|-|$python bench/curves.py $millrace $digits --nets n5 --seeds 0,1 --python $python --out $out/curves.jsonl|--epochs 1 --seeds 1
peers|Other loaders|photos cifar|-|$python bench/peers.py $millrace --data $photos --cifar $cifar/train --rounds 5 --json $out/peers.json|--rounds 1 --seconds 0.3 --only ours
python_door|The Python door|photos|-|env PYTHONPATH=python MILLRACE_PYTHON_LIBRARIES=$build $python bench/python_door.py --data $photos --rounds 5 --seconds 2|--rounds 1 --seconds 0.3 --only rates
imagenet|The Python door|photos|-|env PYTHONPATH=python MILLRACE_PYTHON_LIBRARIES=$build $python bench/torch_imagenet.py $photos --workers 2|--epochs 1 --limit 1
imagenet_loaders|The Python door|photos|-|env PYTHONPATH=python MILLRACE_PYTHON_LIBRARIES=$build $python bench/torch_imagenet.py $photos --workers 2 --loaders-only --rounds 3|--epochs 1 --rounds 1 --limit 2
ratios|Our own ratios|photos|-|$python bench/ratios.py $millrace --data $photos --rounds 5 --json $out/ratios.json|--rounds 1 --seconds 0.2
difference|Pixels|photos|bench_difference|$build/tests/pipeline/bench_difference $photos rrc224 2|
limits|Limits of the machine|photos|-|sh bench/limits.sh $millrace $photos 2|
END
}

if [ -n "$list" ]; then
    millrace=MILLRACE python=PYTHON
    steps | while IFS='|' read -r name section needs target command quick; do
        printf '%-17s %-26s %s\n' "$name" "$section" "$command"
    done
    exit 0
fi

describe() {
    echo "date       $(date -u '+%Y-%m-%d %H:%M UTC')"
    echo "version    $("$millrace" --version | head -1), commit $(git describe --always --dirty 2>/dev/null || echo unknown)"
    echo "processor  $(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -1), $(nproc) cores"
    echo "kernel     $(uname -sr)"
    echo "memory     $(awk '/^MemTotal:/ { printf "%.1f GiB", $2 / 1048576 }' /proc/meminfo)"
    echo "load       $(cut -d' ' -f1-3 /proc/loadavg) when it began"
    echo "mode       $speed"
}

# ready NAME NEEDS TARGET: prints why a step cannot run
ready() {
    for folder in $2; do
        [ -d "$data/$folder" ] || { echo "$data/$folder: no such folder"; return; }
    done
    case $1 in
    measuring)
        [ -x "$build-plain/tools/millrace" ] || {
            cmake --preset release -B "$build-plain" -DMILLRACE_MEASURING=OFF -DMILLRACE_TESTS=OFF -DMILLRACE_CUDA=OFF &&
                cmake --build "$build-plain" --target millrace
        } >"$out/$1.txt" 2>&1 || echo "$build-plain: no build with -DMILLRACE_MEASURING=OFF can be made; see $out/$1.txt"
        ;;
    imagenet*) "$python" -c 'import torch, torchvision' 2>/dev/null || echo "$python has no torch and torchvision" ;;
    python_door) "$python" -c 'import numpy' 2>/dev/null || echo "$python has no numpy" ;;
    esac
    [ "$3" = - ] || cmake --build "$build" --target "$3" >"$out/$1.txt" 2>&1 || echo "the target $3 cannot be built; see $out/$1.txt"
}

describe >"$out/all.txt"
cat "$out/all.txt"
if [ -d "$cifar" ] && ! [ -f "$out/cifar.mrec" ]; then
    "$millrace" convert "$cifar/train" "$out/cifar.mrec" --quiet
fi
if [ -d "$cifar" ] && [ "$job" != "$cifar" ] && ! [ -d "$job" ]; then
    rm -rf "$job.part"
    for class in "$cifar"/*/*/; do
        to=$job.part${class#"$cifar"}
        mkdir -p "$to"
        find "$class" -name '*.jpg' | sort | head -20 | tr '\n' '\0' | xargs -0 cp -t "$to"
    done
    mv "$job.part" "$job"
fi
if [ -d "$data/mnist" ] && [ "$digits" != "$data" ] && ! [ -d "$digits" ]; then
    rm -rf "$digits.part"
    mkdir -p "$digits.part/mnist"
    python3 - "$data/mnist" "$digits.part/mnist" <<'END' # the first 512 of each file
import gzip, os, struct, sys
for name in sorted(os.listdir(sys.argv[1])):
    with gzip.open(os.path.join(sys.argv[1], name)) as whole, gzip.open(os.path.join(sys.argv[2], name), "w") as few:
        magic, count = struct.unpack(">II", whole.read(8))
        few.write(struct.pack(">II", magic, min(count, 512)))
        few.write(whole.read(8 + 512 * 784 if magic == 0x803 else 512))
END
    mv "$digits.part" "$digits"
fi
steps >"$out/steps"
failed=0
while IFS='|' read -r name section needs target command quick <&3; do
    case $only in "" | *",$name,"*) ;; *) continue ;; esac
    why=$(ready "$name" "$needs" "$target")
    if [ -n "$why" ]; then
        printf '%-17s skipped: %s\n' "$name" "$why"
        continue
    fi
    # bench_runs takes a number, the others options; the last of an option counts
    case $speed-$name in
    full-*) ;;
    *-runs) command="${command% *} $quick" ;;
    *) command="$command $quick" ;;
    esac
    begun=$(date +%s) status=0
    echo "$command" >"$out/$name.txt"
    # shellcheck disable=SC2086 # the words of a command
    if [ "$speed" = start ]; then
        timeout "${START_SECONDS-10}" $command >>"$out/$name.txt" 2>&1 </dev/null || status=$?
    else
        $command >>"$out/$name.txt" 2>&1 </dev/null || status=$?
    fi
    case $speed-$status in
    *-0) result="done" ;;
    start-124) result="started, ended after ${START_SECONDS-10} s" ;;
    *) result="FAILED, status $status: $(tail -1 "$out/$name.txt")" failed=1 ;;
    esac
    printf '%-17s %s; %d s, %s\n' "$name" "$result" $(($(date +%s) - begun)) "$section"
done 3<"$out/steps" | tee -a "$out/all.txt"
rm -f "$out/steps"
if grep -q ': FAILED\|FAILED, status' "$out/all.txt"; then
    exit 1
fi
