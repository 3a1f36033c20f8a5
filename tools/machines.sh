#!/bin/sh
# The README's two commands on machines that people have, each laid over this one as a container lays it. One line a machine.
#
# usage: tools/machines.sh [--list] [NAME...]     default: all machines; needs root and debootstrap
#   debian12, debian13      tools/quickstart.sh and tools/test.sh release as root, from a bare root on overlayfs
#   sid                     the same on Debian's unstable suite: what fails there is written down, not mended at once
#   user                    Debian 13, another user, packages installed
#   no-uring                Debian 13, io_uring_setup() refused with EPERM, as container run times do
#   one-core                Debian 13, one processor
#   1-gib, 300-mib          Debian 13, built without a limit, then the tests (the quickstart's commands) with that much memory
#   no-shm                  Debian 13 without /dev/shm
#   read-only               Debian 13, a read-only checkout, the build folder elsewhere
#   no-home                 Debian 13, LANG=C, no HOME
#   clang                   Debian 13, its clang
#   no-dnnl                 Debian 13, -DMILLRACE_DNNL=OFF
#   packages                Debian 13: tools/release.sh makes its packages; they are installed and used, and so is the container's file
#   kernels                 Debian 13 with packages: the quickstart, and the tests that touch kernels (what .ci/run asks for)
# Roots, packages of kernels and compiled objects are kept in MILLRACE_MACHINES (default /var/tmp/millrace-machines), logs in build/machines.
# Exit status: 1 when a machine failed, 77 when none could be laid.
set -u
cd "$(dirname "$0")/.." || exit
. tools/scripts/packages.sh
kept=${MILLRACE_MACHINES:-/var/tmp/millrace-machines}
logs=build/machines
layer=""
names="debian12 debian13 user no-uring one-core 1-gib 300-mib no-shm read-only no-home clang no-dnnl packages kernels sid"

both='tools/quickstart.sh && tools/test.sh release'
# shellcheck disable=SC2016 # the machine's shell expands it
install='. tools/scripts/packages.sh && millrace_install $millrace_packages $millrace_test_packages'
tests='ctest --test-dir build/release -LE "^large$" -j4 --output-on-failure'
kernel_tests='ctest --test-dir build/release -R "^(kernels_.*|device_.*|train_(trainer|winograd))$" -j2 --output-on-failure'

# By hand, where tools/test.sh cannot install or write.
build() { # FOLDER [cmake argument...]
    folder=$1
    shift
    echo "{ cmake --preset release -B $folder $* && cmake --build $folder; } >/tmp/build.log 2>&1 || { tail -n 40 /tmp/build.log; exit 1; }"
}

machine() { # SUITE COMMAND
    root=$kept/$1
    sh tools/scripts/machine.sh root "$root" "$1" || return
    MACHINE_CACHE=$kept/ccache-$1 sh tools/scripts/machine.sh run "${layer:+$layer:}$root" "$2"
}

# The packages of the build and of the tests on SUITE; installed on the bare root every month, and when packages.sh changes.
with_packages() { # SUITE
    layer=$kept/$1-packages
    sh tools/scripts/machine.sh root "$kept/$1" "$1" &&
        KEY="$(date +%Y-%m) $(sha256sum <tools/scripts/packages.sh)" sh tools/scripts/machine.sh layer "$layer" "$kept/$1" "$install"
}

# Builds without a limit, then runs COMMAND in a control group with that much memory.
small() { # MEGABYTES COMMAND
    group=/sys/fs/cgroup/millrace-machine-$$
    limit=memory.max
    if [ -d /sys/fs/cgroup/memory ]; then
        group=/sys/fs/cgroup/memory/millrace-machine-$$
        limit=memory.limit_in_bytes
    fi
    mkdir "$group" 2>/dev/null && echo "$(($1 << 20))" >"$group/$limit" 2>/dev/null || {
        echo "SKIP: no control group for memory can be made here"
        return 77
    }
    status=0
    MACHINE_ROOT_FIRST="$install && $(build build/release -DMILLRACE_TESTS=ON)" \
        MACHINE_PREFIX="sh $PWD/tools/scripts/machine.sh join $group" machine trixie "$2" || status=$?
    rmdir "$group"
    return "$status"
}

run_one() { # NAME
    case $1 in
    debian12) machine bookworm "$both" ;;
    debian13) machine trixie "$both" ;;
    sid) machine sid "$both" ;;
    user) MACHINE_USER=nobody MACHINE_ROOT_FIRST=$install machine trixie "$both" ;;
    no-uring)
        cc -o "$kept/no_uring" tests/cli/read/no_uring.c || return
        MACHINE_ROOT_FIRST=$install MACHINE_PREFIX="$kept/no_uring EPERM" machine trixie "$both"
        ;;
    one-core) MACHINE_PREFIX="taskset -c 0" machine trixie "$both" ;;
    1-gib) small 1024 "$tests" ;;
    300-mib) small 300 "tools/quickstart.sh" ;;
    no-shm) MACHINE_NO_SHM=1 machine trixie "$both" ;;
    read-only)
        MACHINE_READ_ONLY=1 MACHINE_ROOT_FIRST=$install \
            machine trixie "$(build /tmp/b/release -DMILLRACE_TESTS=ON) && cd /tmp/b && mkdir build && ln -s ../release build && $tests"
        ;;
    no-home) MACHINE_ENV="LANG=C" machine trixie "$both" ;;
    clang)
        MACHINE_ROOT_FIRST="$install && millrace_install clang libomp-dev" \
            machine trixie "$(build build/release -DMILLRACE_TESTS=ON -DCMAKE_C_COMPILER=clang) && $tests"
        ;;
    no-dnnl) MACHINE_ROOT_FIRST=$install machine trixie "$(build build/release -DMILLRACE_TESTS=ON -DMILLRACE_DNNL=OFF) && $tests" ;;
    packages)
        MACHINE_ROOT_FIRST="$install && millrace_install git build-essential debhelper dh-python lintian" machine trixie \
            "tools/release.sh /tmp/release source deb && MILLRACE_DIST=/tmp/release/dist sh packaging/try.sh deb container"
        ;;
    kernels)
        with_packages trixie || return
        MACHINE_ENV="HOME=/home/millrace LANG=C.UTF-8 CMAKE_C_COMPILER_LAUNCHER=ccache" machine trixie "tools/quickstart.sh && cmake --preset release -DMILLRACE_TESTS=ON >/tmp/build.log &&
            cmake --build build/release --target mrt_launch tests/kernels/all test_train_trainer test_train_winograd >>/tmp/build.log && $kernel_tests"
        ;;
    esac
}

case ${1-} in
--list)
    echo "$names"
    exit
    ;;
-*)
    sed -n '2,21s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
for name in "$@"; do
    case " $names " in
    *" $name "*) ;;
    *)
        echo "no such machine: $name; expected some of $names" >&2
        exit 2
        ;;
    esac
done
mkdir -p "$kept" "$logs" || exit 1
command -v dpkg >/dev/null && [ "$(id -u)" = 0 ] && millrace_install debootstrap
failed=0 passed=0
[ $# -gt 0 ] || {
    # shellcheck disable=SC2086 # a list of words
    set -- $names
}
for name in "$@"; do
    begun=$(date +%s)
    status=0
    run_one "$name" >"$logs/$name.log" 2>&1 || status=$?
    minutes=$(($(date +%s) - begun))
    case $status in
    0) said=passed passed=$((passed + 1)) ;;
    77) said="skipped: $(sed -n 's/^SKIP: //p' "$logs/$name.log" | tail -n 1)" ;;
    *)
        said="FAILED with status $status: $logs/$name.log" failed=$((failed + 1))
        tail -n 30 "$logs/$name.log"
        ;;
    esac
    printf '%-10s %s, %d:%02d minutes; %s\n' "$name" "$said" $((minutes / 60)) $((minutes % 60)) \
        "$(grep -E '^[0-9]+ passed, [0-9]+ failed|tests passed' "$logs/$name.log" | tail -n 1)"
done
[ "$failed" -eq 0 ] || exit 1
[ "$passed" -gt 0 ] || exit 77
