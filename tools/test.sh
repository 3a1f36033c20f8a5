#!/bin/sh
# The whole test suite from a bare machine: installs what is missing, then for every build below configures, builds with warnings
# as errors, and runs the tests.
#   release   gcc, everything, the installed copy, and the folder that runs without the libraries millrace stands on
#   asan      gcc, address + undefined sanitizers, assertions, everything; of the seeds of emulated GPUs the first
#   tsan      gcc, thread sanitizer, the tests that use threads
#   clang     clang, debug, everything but command lines and emulated GPUs, which the first two have run
# Each build ends with its slowest tests.
# usage: tools/test.sh [BUILD...]     default: all four
set -eu
cd "$(dirname "$0")/.."
. tools/scripts/packages.sh
# shellcheck disable=SC2086
command -v dpkg >/dev/null && millrace_install $millrace_packages $millrace_test_packages

jobs=$(nproc)
builds=${*:-release asan tsan clang}
for build in $builds; do
    printf '\n== %s\n' "$build"
    preset=$build
    select=""
    set --
    case $build in
    release)
        set -- -DMILLRACE_STATIC_DEPS=ON
        ;;
    asan)
        set -- -DMILLRACE_TEST_SEEDS=first
        ;;
    tsan)
        select="-L threads"
        ;;
    clang)
        command -v dpkg >/dev/null && millrace_install clang libomp-dev
        preset=debug
        set -- -B build/clang -DCMAKE_C_COMPILER=clang -DMILLRACE_TEST_SEEDS=first
        select="-LE cli|emulated"
        ;;
    esac
    dir=build/$build
    cmake --preset "$preset" "$@" -DMILLRACE_TESTS=ON -DMILLRACE_WERROR=ON >"build-$build.log" 2>&1 && cmake --build "$dir" -j "$jobs" >>"build-$build.log" 2>&1 ||
        { cat "build-$build.log"; exit 1; }
    rm -f "build-$build.log"
    # shellcheck disable=SC2086
    ctest --test-dir "$dir" --no-tests=error --output-on-failure -j $((jobs + 1)) $select # one of them often waits
    printf 'slowest:'
    sed -n 's/^\([^ ]*\) [0-9]* \([0-9.]*\)$/\2 \1/p' "$dir/Testing/Temporary/CTestCostData.txt" | sort -rn | head -8 |
        while read -r seconds name; do printf ' %s %.0f s,' "$name" "$seconds"; done
    echo
    # tests that could not run here say why
    grep -hE '^(SKIP|not run):' "$dir/Testing/Temporary/LastTest.log" 2>/dev/null | sort -u || true
done
