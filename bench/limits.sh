#!/bin/sh
# bench/limits.sh: the limits of this machine, one JSON line each: full libjpeg-turbo decoding, memory copy,
# CRC32C and reading of the data's files on N threads, and fio's rates from the disk and from the page cache.
#
#   bench/limits.sh MILLRACE DATA [THREADS] [FOLDER]
#
# MILLRACE is the built command. DATA is a folder of JPEG files. FOLDER is where fio lays a file of FIO_SIZE (default 1G) that is
# removed at the end; without it, or without fio, the disk is not measured and a line says so. SECONDS_EACH (default 3) a figure; the
# median of RUNS (default 3) is printed.
# shellcheck disable=SC2086 # $random and $sequential hold several options each
set -eu
[ $# -ge 2 ] || { sed -n '5,9s/^# \{0,1\}//p' "$0" >&2; exit 2; }
millrace=$1 data=$2 threads=${3:-$(nproc)} folder=${4:-}
seconds=${SECONDS_EACH:-3} runs=${RUNS:-3} size=${FIO_SIZE:-1G}
decode=$(dirname "$(dirname "$millrace")")/bench/bench_decode

line() { printf '{"event":"bench","what":"limits","limit":"%s","unit":"%s","value":%s,"threads":%s,"runs":%s%s}\n' "$@"; }
absent() { printf '{"event":"bench","what":"limits","limit":"%s","value":null,"reason":"%s"}\n' "$1" "$2"; }
middle() { sort -n | sed -n "$(((runs + 1) / 2))p"; }
repeat() { # repeat COMMAND...: its lines, RUNS times
    n=0
    while [ $n -lt "$runs" ]; do
        "$@"
        n=$((n + 1))
    done
}

decode_once() { "$decode" "$data" "$threads" "$seconds" | sed -n 's/.*"samples_per_s":\([0-9.]*\).*/\1/p'; }
if [ -x "$decode" ]; then
    rates=$(repeat decode_once)
    line "full decode" "pictures/s" "$(printf '%s\n' "$rates" | middle)" "$threads" "$runs" ""
else
    absent "full decode" "$decode is not built: cmake --build BUILD --target bench_decode"
fi
"$millrace" bench limits "$data" --workers "$threads" --seconds "$((4 * seconds))" --rounds "$runs" --json --quiet

# ---- fio ----
if [ -z "$folder" ]; then
    absent "disk" "no FOLDER was given"
    exit 0
elif ! command -v fio >/dev/null; then
    absent "disk" "fio is not installed: apt install fio"
    exit 0
fi
file=$folder/millrace-limits.fio
trap 'rm -f "$file"' EXIT
trap 'exit 1' INT TERM
fio --name=lay --filename="$file" --size="$size" --rw=write --bs=1M --direct=1 --ioengine=psync --end_fsync=1 >/dev/null ||
    { absent "disk" "fio could not lay $file (no O_DIRECT there, or no room)"; exit 0; }

fio_once() { # MB/s of reading; field 7 of fio's terse line is KiB/s
    fio --name=read --filename="$file" --size="$size" --readonly --runtime="$seconds" --time_based --minimal --terse-version=3 \
        --randrepeat=0 --norandommap "$@" 2>/dev/null | tail -1 |
        awk -F';' '$5 == 0 && $7 > 0 { printf "%.1f\n", $7 * 1024 / 1e6; found = 1 } END { exit !found }'
}
case_of() { # case_of NAME JOBS FIO_OPTION...
    name=$1 jobs=$2
    shift 2
    if fio_once "$@" >/dev/null; then # once to see that it runs at all
        rates=$(repeat fio_once "$@")
        line "$name" "MB/s" "$(printf '%s\n' "$rates" | middle)" "$jobs" "$runs" ""
    else
        absent "$name" "fio cannot do this here"
    fi
}
random="--rw=randread --bs=112k" sequential="--rw=read --bs=1M"
case_of "disk, 112 KiB at random, pread, 1 thread" 1 $random --direct=1 --ioengine=psync
case_of "disk, 112 KiB at random, pread, 8 threads" 8 $random --direct=1 --ioengine=psync --numjobs=8 --thread --group_reporting
for depth in 1 8 32; do
    case_of "disk, 112 KiB at random, io_uring, depth $depth" 1 $random --direct=1 --ioengine=io_uring --iodepth=$depth
done
case_of "disk, 112 KiB at random, io_uring, depth 32, registered" 1 $random --direct=1 --ioengine=io_uring --iodepth=32 --fixedbufs \
    --registerfiles
case_of "disk, 1 MiB in order, io_uring, depth 8" 1 $sequential --direct=1 --ioengine=io_uring --iodepth=8
cat "$file" >/dev/null # into the page cache
case_of "page cache, 112 KiB at random, pread, 1 thread" 1 $random --direct=0 --invalidate=0 --ioengine=psync
case_of "page cache, 112 KiB at random, pread, $threads threads" "$threads" $random --direct=0 --invalidate=0 --ioengine=psync \
    --numjobs="$threads" --thread --group_reporting
case_of "page cache, 112 KiB at random, io_uring, depth 32" 1 $random --direct=0 --invalidate=0 --ioengine=io_uring --iodepth=32
