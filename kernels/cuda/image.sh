#!/bin/sh
# Compiles a file of kernels to an image, or copies the image that an earlier build of the same contents has kept: these images take
# more time than all other objects, and compiler caches do not know them.
# usage: image.sh STORE IMAGE SOURCE NVCC OPTION...     IMAGE.d lists the files that IMAGE depends on
# The name in STORE is the sum of the compiler's version, the options, and all files that SOURCE includes. The newest 200 are kept.
set -eu
store=$1 image=$2 source=$3
shift 3
"$@" -M -MT "${image##*/}" -MF "$image.d" "$source"
included() { sed -e '1s/^[^:]*: *//' -e 's/ *\\$//' -e 's/^ *//' -e 's/\\ / /g' -e '/^$/d' "$image.d" | tr '\n' '\0' | xargs -0 sha256sum; }
sums=$(included)
key=$({ "$1" --version && echo "$@" && echo "$sums" | cut -c1-64; } | sha256sum | cut -c1-64)
if [ -f "$store/$key" ]; then
    touch "$store/$key"
    cp "$store/$key" "$image"
    exit
fi
"$@" -fatbin -o "$image" "$source"
mkdir -p "$store"
cp "$image" "$store/$key.$$" && mv "$store/$key.$$" "$store/$key"
find "$store" -type f -printf '%T@ %p\n' | sort -rn | sed -e '1,200d' -e 's/^[^ ]* //' | tr '\n' '\0' | xargs -0 -r rm -f
