#!/bin/sh
# Install into a scratch prefix, then build the ten-line program against that copy three ways: pkg-config shared,
# pkg-config static, CMake package. Each must run and read the data set that `millrace synth` makes.
# usage: test_install.sh BUILD_DIR CC
set -eu
build=$1 cc=$2
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/millrace-install-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
prefix=$scratch/prefix

cmake --install "$build" --prefix "$prefix" >"$scratch/log" || { cat "$scratch/log"; exit 1; }
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name millrace.pc)")
export PKG_CONFIG_PATH
pc() { pkg-config "$@"; }

if grep -q '^MILLRACE_SANITIZE:.*=.' "$build/CMakeCache.txt"; then
    echo "SKIP: a sanitizer build is not linked into foreign programs"
    exit 0
fi
"$prefix/bin/millrace" synth "$scratch/data" --classes 2 --count 10 >/dev/null
export LD_LIBRARY_PATH="$(pc --variable=libdir millrace)"

$cc -std=c11 -Wall -Wextra -Werror $(pc --cflags millrace) "$here/loader.c" -o "$scratch/shared" $(pc --libs millrace)
"$scratch/shared" "$scratch/data" | tee "$scratch/out"
grep -q 'batch 0: ' "$scratch/out"

libdir=$(pc --variable=libdir millrace)
$cc -std=c11 $(pc --cflags millrace) "$here/loader.c" -o "$scratch/static" "$libdir/libmillrace.a" \
    $(pc --static --libs millrace | sed 's/-lmillrace//')
"$scratch/static" "$scratch/data" | cmp - "$scratch/out"

mkdir "$scratch/project"
cp "$here/loader.c" "$scratch/project"
cat >"$scratch/project/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(example C)
find_package(millrace 0.4 REQUIRED)
add_executable(example loader.c)
target_link_libraries(example PRIVATE millrace::millrace)
END
cmake -S "$scratch/project" -B "$scratch/project/build" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$cc" >"$scratch/log" ||
    { cat "$scratch/log"; exit 1; }
cmake --build "$scratch/project/build" >"$scratch/log" || { cat "$scratch/log"; exit 1; }
"$scratch/project/build/example" "$scratch/data" | cmp - "$scratch/out"
echo "installed copy works: shared, static, CMake package"
