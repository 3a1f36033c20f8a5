#!/bin/sh
# GCC and zig as one compiler for a C library as old as MILLRACE_GLIBC says.
#
# GCC compiles, against zig's headers of that C library; zig links, against its symbols. So the machine code is that of every other
# build, and a call that the old C library has not is an error here. libgcc brings what __builtin_cpu_supports() reads: zig has a
# place of the same name that is never filled, and every SIMD path would be off.
#
# MILLRACE_ZIG_FOLDER: where zig lies; MILLRACE_GLIBC: 2.17 or another
set -eu
headers=$MILLRACE_ZIG_FOLDER/lib/libc/include

compile() {
    gcc -nostdinc -isystem "$(gcc -print-file-name=include)" -isystem "$headers/x86-linux-gnu" -isystem "$headers/generic-glibc" \
        -isystem "$headers/x86-linux-any" -isystem "$headers/any-linux-any" "-D__GLIBC_MINOR__=${MILLRACE_GLIBC#2.}" "$@"
}
for word; do
    case $word in
    -c | -E | -S | -M | -MM | --version | -v | -dump* | -print-* | '-###')
        compile "$@"
        exit
        ;;
    esac
done

# A link, also of sources, as configuring scripts ask for. zig takes -fopenmp for its own library's; in a wheel none is linked.
objects=$(mktemp -d)
trap 'rm -rf "$objects"' EXIT
count=$#
while [ "$count" -gt 0 ]; do
    word=$1
    shift
    case $word in
    -fopenmp) ;;
    *.c)
        compile -c "$word" -o "$objects/$count.o"
        set -- "$@" "$objects/$count.o"
        ;;
    *) set -- "$@" "$word" ;;
    esac
    count=$((count - 1))
done
"$MILLRACE_ZIG_FOLDER/zig" cc -target "x86_64-linux-gnu.$MILLRACE_GLIBC" "$@" "$(gcc -print-libgcc-file-name)"
