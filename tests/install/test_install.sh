#!/bin/sh
# Install into a scratch prefix; check the shared library's name and exports; then build the ten-line program against that copy
# with pkg-config, shared and static, and all of examples/ with the CMake package. Each must run on the data set that `millrace synth`
# makes, and print the same as the program of the build tree.
# usage: test_install.sh BUILD_DIR CC
set -eu
build=$1 cc=$2
examples=$(cd "$(dirname "$0")/../../examples" && pwd)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/millrace-install-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
prefix=$scratch/prefix

cmake --install "$build" --prefix "$prefix" >"$scratch/log" || { cat "$scratch/log"; exit 1; }
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name millrace.pc)")
export PKG_CONFIG_PATH
pc() { pkg-config "$@" millrace; }
variable() { eval "printf '%s\\n' $(pc --variable="$1")"; } # what pkg-config answers is quoted for a shell

if grep -q '^MILLRACE_SANITIZE:.*=.' "$build/CMakeCache.txt"; then
    echo "SKIP: a sanitizer build is not linked into foreign programs"
    exit 0
fi
version=$("$prefix/bin/millrace" --version | sed -n 's/^millrace //p')
[ "$(pc --modversion)" = "$version" ] || { echo "pkg-config prints version $(pc --modversion), the program $version"; exit 1; }
case $version in # while the major number is 0, a minor one may change the interface
0.*) soname=libmillrace.so.${version%.*} ;;
*) soname=libmillrace.so.${version%%.*} ;;
esac
libdir=$(variable libdir)
library=$libdir/libmillrace.so.$version
found=$(readelf -d "$library" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')
[ "$found" = "$soname" ] || { echo "the shared library is called $found: expected $soname"; exit 1; }
foreign=$(nm -D --defined-only "$library" | sed 's/.* //' | grep -v '^mr_') && { echo "the shared library exports: $foreign"; exit 1; }

"$prefix/bin/millrace" synth "$scratch/data" --classes 2 --count 10 >/dev/null
LD_LIBRARY_PATH=$libdir
export LD_LIBRARY_PATH

alone() { PKG_CONFIG_LIBDIR=$PKG_CONFIG_PATH pc "$@"; } # whoever links the shared library needs the files of no other package
eval "\$cc -std=c11 -Wall -Wextra -Werror $(alone --cflags) \"\$examples/loader.c\" -o \"\$scratch/shared\" $(alone --libs)"
"$scratch/shared" "$scratch/data" | tee "$scratch/out"
grep -q 'batch 0: ' "$scratch/out"

eval "\$cc -std=c11 $(pc --cflags) \"\$examples/loader.c\" -o \"\$scratch/static\" \"\$libdir/libmillrace.a\" \
    $(pc --static --libs | sed 's/-lmillrace//')"
"$scratch/static" "$scratch/data" | cmp - "$scratch/out"

# Nothing of the tree is left. CMake writes a path of libraries in a way that ends at a comma; LD_LIBRARY_PATH stands for it.
cp -r "$examples" "$scratch/project"
cmake -S "$scratch/project" -B "$scratch/project/build" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$cc" -DCMAKE_SKIP_RPATH=ON \
    -DCMAKE_C_FLAGS="-Wall -Wextra -Werror" >"$scratch/log" || { cat "$scratch/log"; exit 1; }
cmake --build "$scratch/project/build" >"$scratch/log" || { cat "$scratch/log"; exit 1; }
"$scratch/project/build/example_loader" "$scratch/data" | cmp - "$scratch/out"
sh "$(dirname "$0")/test_examples.sh" "$prefix/bin/millrace" "$scratch/project/build"
echo "installed copy works: shared, static, CMake package with the examples"
