#!/bin/sh
# Numbers in texts are read by mri_strtod() alone: strtod() and its kin follow the locale of the program.
# usage: test_numbers.sh ROOT
set -eu
cd "$1"
found=$(grep -rnE '\b(strto(f|d|ld)|atof|scanf)\(' base formats kernels pipeline ranks settings train python/native --include=*.c --include=*.h |
    grep -vE '^base/number\.[ch]:|:[0-9]+: *(/\*|\*)' || true)
[ -z "$found" ] || { echo "FAILED: base/number.h reads numbers:"; echo "$found"; exit 1; }
