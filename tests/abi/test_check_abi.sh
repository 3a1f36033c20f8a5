#!/bin/sh
# check_abi.sh finds each kind of change that a soname forbids, and lets those pass that it allows.
# usage: test_check_abi.sh BUILD_DIR
set -eu
build=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
command -v abidiff >/dev/null || { echo "SKIP: no abidiff (Debian and Ubuntu: apt install abigail-tools)"; exit 77; }
work=$(mktemp -d "${TMPDIR:-/tmp}/millrace-abi-XXXXXX")
trap 'rm -rf "$work"' EXIT
failures=0

# expect STATUS PART NAME HEADER SED: with this edit of a header that part of the check ends so.
expect() {
    rm -rf "$work/millrace"
    for room in base formats kernels ranks pipeline train run; do cp -r "$root/$room/include/millrace" "$work/"; done
    sed -i "$5" "$work/millrace/$4"
    ! diff -rq "$work/millrace/$4" "$(ls "$root"/*/include/millrace/"$4")" >/dev/null || [ "$3" = nothing ] ||
        { echo "FAILED: $3: the edit changes nothing"; failures=1; }
    status=0
    # shellcheck disable=SC2086 # a list of parts
    "$root/tools/scripts/check_abi.sh" "$build" --headers "$work" $2 >"$work/out" 2>&1 || status=$?
    [ "$status" -eq "$1" ] || { echo "FAILED: $3: expected status $1, found $status"; cat "$work/out"; failures=1; }
}

expect 0 "headers symbols numbers types caller" nothing base.h ''
expect 0 "headers types" "settings grow at their end" loader.h 's/^} mr_loader_config;/    uint64_t another;\n} mr_loader_config;/'
expect 0 "headers types" "a result grows at its end" loader.h 's/^} mr_batch;/    uint64_t another;\n} mr_batch;/'
expect 0 types "another function" base.h 's/^MR_STABLE const char \*mr_version(void);/&\nMR_API int mr_another(void);/'
another_kind() { # FIELDS: what it is told
    printf '%s\n' 's/^} mr_op_kind;/    MR_OP_ANOTHER,\n&/; s/MR_OP_KIND_COUNT = .*+ 1/MR_OP_KIND_COUNT = MR_OP_ANOTHER + 1/' \
        "s/^typedef struct mr_op_desc {/typedef struct mr_another_desc { $1 } mr_another_desc;\\n&/" \
        's/^        mr_one_hot_desc one_hot;/&\n        mr_another_desc another;/'
}
expect 0 "headers numbers types" "an enumeration grows at its end" kernels.h "$(another_kind 'float factor;')"
expect 1 types "what a kind is told has no room" kernels.h "$(another_kind 'double factor[100];')"
expect 1 types "a member in the middle of settings" loader.h 's/^    mr_order order;/    uint64_t another;\n&/'
expect 1 types "a member of another type" loader.h 's/^    uint32_t prefetch;/    uint64_t prefetch;/'
expect 1 types "a member less" loader.h '/^    const uint64_t \*ids;/d'
expect 1 types "a value that grows" base.h 's/^} mr_error;/    int another;\n} mr_error;/'
expect 1 types "an argument of another type" formats.h 's/mr_crc32c(uint32_t crc/mr_crc32c(uint64_t crc/'
expect 1 types "a function that is gone" formats.h 's/^MR_API uint32_t mr_crc32c/MR_API uint32_t mr_crc32d/'
expect 1 numbers "a code with another number" base.h 's/MR_SPLIT_TEST = 2/&/; s/^    MR_EEND = -1,/    MR_EEND = -31,/'
expect 1 numbers "an enumeration with other numbers" loader.h 's/MR_TAIL_KEEP = 0/MR_TAIL_NONE = 0, MR_TAIL_KEEP = 1/'
expect 1 numbers "a count that shrinks" kernels.h 's/MR_OP_KIND_COUNT = .*+ 1/MR_OP_KIND_COUNT = MR_OP_LOSS + 1/'
expect 1 headers "a header that is not C++" base.h 's/^#endif$/&\nstatic inline int mr_new(void) { int class = 0; return class; }/'
exit $failures
