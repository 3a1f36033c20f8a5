#!/bin/sh
# The test suite from a bare machine: installs missing packages, builds with warnings as errors, runs the tests of every build, and
# says at the end what failed and why.
#
# usage: tools/test.sh [--strict] [all | PART...]
#   without PART   what every change must pass: release asan-short tsan
#   all            release large asan tsan clang, all tests of each
#   release        gcc, optimised: everything but large, the installed copy, and the folder that runs without the libraries it stands on
#   large          what release leaves out: several hosts and launchers, runs that lose processes, thousands of faults
#   asan           gcc, address and undefined sanitizers, assertions; of the seeds of emulated GPUs the first
#   asan-short     the same without scripts and the command lines that release runs, but with the command lines that read bad input
#   tsan           gcc, thread sanitizer: the tests that use threads
#   clang          clang, debug: everything but command lines and emulated GPUs
#   tidy           clang-tidy over the tree, with the settings of the release build
#   quickstart     tools/quickstart.sh, as a new user runs it
#   debian13       tools/machines.sh kernels: the quickstart and the tests of kernels on a bare Debian 13; quickstart where none can be
#                  laid over this machine
#   --strict       a test that fails has failed; without it, one that passes when it is run again, alone, counts as FLAKY
#
# A part that fails does not keep the others from running. build/results has what each said, build/flaky.txt the tests that passed
# only the second time.
set -eu
cd "$(dirname "$0")/.."
. tools/scripts/packages.sh
umask 022

strict=""
if [ "${1-}" = --strict ]; then
    strict=--strict
    shift
fi
case $* in
"") parts="release asan-short tsan" ;;
all) parts="release large asan tsan clang" ;;
*) parts=$* ;;
esac
for part in $parts; do
    case $part in
    release | large | asan | asan-short | tsan | clang | tidy | quickstart | debian13) ;;
    *)
        sed -n '5,19s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
    esac
done

results=build/results
rm -rf "$results" build/flaky.txt
mkdir -p "$results"
TMPDIR=$(mktemp -d "${TMPDIR:-/tmp}/millrace-suite-XXXXXX")
chmod 755 "$TMPDIR" # tests become other users
export TMPDIR
beside=""
trap '[ -z "$beside" ] || kill -- "-$beside"; chmod -R u+rwX "$TMPDIR" 2>/dev/null; rm -rf "$TMPDIR"' EXIT
trap 'exit 130' INT TERM

now() { date +%s; }

describe_machine() {
    echo "== machine"
    echo "cores $(nproc) of $(getconf _NPROCESSORS_ONLN), quota $(cat /sys/fs/cgroup/cpu.max 2>/dev/null || echo none), $(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -1)"
    echo "kernel $(uname -sr), user $(id -un), transparent huge pages $(sed 's/.*\[\(.*\)\].*/\1/' /sys/kernel/mm/transparent_hugepage/enabled 2>/dev/null || echo unknown)"
    awk '/^(MemTotal|MemAvailable):/ { printf "%s %.1f GiB  ", $1, $2 / 1048576 } END { print "" }' /proc/meminfo
    df -PhT "$TMPDIR" . | awk 'NR > 1 { print "disk " $7 ": " $2 ", " $5 " free" }' | sort -u
    echo "open files $(ulimit -n), load $(cut -d' ' -f1-3 /proc/loadavg)"
}

# step NAME COMMAND...: run it with its output in a log; the output is printed when it fails, and in the result.
step() {
    name=$1
    shift
    log=$results/$name.log
    begun=$(now)
    status=0
    printf '\n== %s\n' "$name"
    "$@" >"$log" 2>&1 || status=$?
    [ "$status" -eq 0 ] || tail -40 "$log"
    python3 tools/scripts/suite.py part "$results" "$name" $(($(now) - begun)) "$status" "$log"
    return "$status"
}

install_packages() {
    command -v dpkg >/dev/null || return 0
    # shellcheck disable=SC2086 # lists of words
    millrace_install $millrace_packages $millrace_test_packages
    case " $parts " in *" clang "*) millrace_install clang libomp-dev ;; esac
    # shellcheck disable=SC2086 # the start scripts of services fail where none can run; the tests report missing services
    case " $parts " in *" large "*) millrace_install $millrace_launcher_packages || true ;; esac
    # shellcheck disable=SC2086
    case " $parts " in *" tidy "*) millrace_install $millrace_tidy_packages ;; esac
}

# One store of compiled objects, images of kernels among them, for all builds and clones, where there is room for it.
find_ccache() {
    launcher="" store=""
    command -v ccache >/dev/null || return 0
    : "${CCACHE_DIR:=${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/ccache}"
    mkdir -p "$CCACHE_DIR" 2>/dev/null && [ -w "$CCACHE_DIR" ] || return 0
    export CCACHE_DIR CCACHE_BASEDIR="$PWD" CCACHE_NOHASHDIR=1
    launcher="-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache"
    store=$CCACHE_DIR/cuda-images
}

build() { # FOLDER PRESET [cmake argument...]
    dir=$1
    preset=$2
    shift 2
    # shellcheck disable=SC2086
    cmake --preset "$preset" -B "$dir" -DMILLRACE_TESTS=ON -DMILLRACE_WERROR=ON $launcher ${store:+"-DMILLRACE_CUDA_STORE=$store"} "$@" &&
        cmake --build "$dir" -j "$(nproc)"
}

build_part() {
    images=""
    case $built in # machine code of GPUs does not differ between builds of one tree
    *" release"*) images=-DMILLRACE_CUDA_IMAGES=$PWD/build/release/kernels/cuda ;;
    esac
    case $1 in
    release | large) step build-release build build/release release -DMILLRACE_STATIC_DEPS=ON ;;
    asan | asan-short) step build-asan build build/asan asan -DMILLRACE_TEST_SEEDS=first ${images:+"$images"} ;;
    tsan) step build-tsan build build/tsan tsan ${images:+"$images"} ;;
    clang) step build-clang build build/clang debug -DCMAKE_C_COMPILER=clang -DMILLRACE_TEST_SEEDS=first ${images:+"$images"} ;;
    esac
}

run_tests() { # NAME BUILD [ctest argument...]
    name=$1
    dir=$2
    shift 2
    printf '\n== %s\n' "$name"
    # shellcheck disable=SC2086
    python3 tools/scripts/suite.py test "$results" "$name" "$dir" $strict -j "$(($(nproc) + 2))" "$@" # some of them often wait
}

run_part() {
    case $1 in
    release) run_tests release build/release -LE '^large$' ;;
    large) run_tests large build/release -L '^large$' ;;
    asan) run_tests asan build/asan ;;
    asan-short) run_tests asan-short build/asan -LE '^(cli|large|scripts)$' ;;
    tsan) run_tests tsan build/tsan -L threads -LE '^large$' ;;
    clang) run_tests clang build/clang -LE 'cli|emulated|large' ;;
    tidy) step tidy tools/scripts/tidy.sh build/release ;;
    quickstart) step quickstart tools/quickstart.sh ;;
    debian13) end_debian13 ;;
    esac
}

# In parallel with the other parts: for half of its time it waits for packages and disks. In a session of its own, so that all of it can be ended.
begin_debian13() {
    beside_begun=$(now)
    # shellcheck disable=SC2016 # that shell expands it
    setsid sh -c 'tools/machines.sh kernels; status=$?; date +%s >"$1"; exit "$status"' - "$TMPDIR/debian13.ended" >"$results/debian13.log" 2>&1 &
    beside=$!
}

end_debian13() {
    status=0
    wait "$beside" || status=$?
    beside=""
    printf '\n== debian13\n'
    [ "$status" -eq 0 ] || tail -40 "$results/debian13.log"
    ended=$(cat "$TMPDIR/debian13.ended" 2>/dev/null || now)
    python3 tools/scripts/suite.py part "$results" debian13 $((ended - beside_begun)) "$status" "$results/debian13.log"
    [ "$status" -ne 77 ] || step quickstart tools/quickstart.sh
}

describe_machine
step packages install_packages || true
find_ccache
built=""
for part in $parts; do
    build_part "$part" && built="$built $part"
done
case " $parts " in *" debian13 "*) begin_debian13 ;; esac
for part in $built; do
    run_part "$part" || true
done
python3 tools/scripts/suite.py result "$results"
