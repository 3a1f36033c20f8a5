#!/bin/sh
# The portable folder: small enough to carry, every library in it or one that every system has, and it trains in a place where nothing
# else is installed: a root folder with the C library and GCC's run-time libraries alone (where this system lets us make one).
# usage: test_portable.sh BUILD_DIR
set -eu
build=$1
scratch=$(mktemp -d "${TMPDIR:-/tmp}/millrace-portable-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
folder=$scratch/bare/millrace
failures=0
fail() { failures=$((failures + 1)); echo "FAILED: $*"; }

cmake --install "$build" --component portable --prefix "$folder" --strip >"$scratch/log" || { cat "$scratch/log"; exit 1; }
bytes=$(du -sb "$folder" | cut -f1)
[ "$bytes" -le $((80 << 20)) ] || fail "the folder has $bytes bytes: expected at most 80 MiB"
[ -x "$folder/bin/millrace" ] || fail "no bin/millrace"

# ---- needed libraries ----
glibc=$(getconf GNU_LIBC_VERSION | sed 's/^glibc 2\.//')
[ "$glibc" -le 36 ] || echo "not checked: for which machines the C library 2.$glibc of this one is too new; Debian 12 has 2.36"
system='^(lib(c|m|stdc\+\+|gcc_s)\.so\.[0-9]+|ld-linux[-_a-z0-9]*\.so\.[0-9]+)$'
for file in "$folder"/bin/* "$folder"/lib/*; do
    name=${file#"$folder"/}
    for needed in $(readelf -d "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
        [ -e "$folder/lib/$needed" ] || printf '%s\n' "$needed" | grep -Eq "$system" ||
            fail "$name needs $needed, which is neither in lib/ nor on every system"
    done
    newest=$(readelf -V "$file" | grep -o 'GLIBC_2\.[0-9]*' | sort -t. -k2 -n -u | tail -1)
    [ "$glibc" -gt 36 ] || [ "${newest#GLIBC_2.}" -le 36 ] || fail "$name needs $newest: expected 2.36 at most"
done
for file in "$folder"/bin/*; do
    path=$(readelf -d "$file" | sed -n 's/.*(R[UN]*PATH).*\[\(.*\)\]/\1/p')
    case :$path: in
    :\$ORIGIN/../lib:*) ;;
    *) fail "${file#"$folder"/} looks for libraries in '$path'" ;;
    esac
    case :$path: in *::* | *:/*) fail "${file#"$folder"/} looks for libraries in '$path'" ;; esac
    if env -i ldd "$file" | grep -E '=> (not found|/)' | grep -v "=> $folder/" |
        grep -Ev '=> /[^ ]*/(lib(c|m|stdc\+\+|gcc_s)\.so\.[0-9]+|ld-linux[^ ]*) '; then
        fail "${file#"$folder"/} takes these from elsewhere"
    fi
done

# ---- in a bare root ----
root=$scratch/bare
mkdir -p "$root/tmp" "$root/proc" "$root/dev"
for file in $(env -i ldd "$folder/bin/millrace" | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p; s/^\t\(\/[^ ]*\) .*/\1/p'); do
    case $file in
    "$folder"/*) ;;
    *) mkdir -p "$root$(dirname "$file")" && cp -L "$file" "$root$file" ;;
    esac
done
here=/millrace/bin there=/tmp
bare() { env -i LD_ORIGIN_PATH="$here" "$@"; } # stands for /proc, where a program finds its own path
in_namespace() { bare "$(command -v unshare)" --map-root-user --root "$root" "$@"; }
in_chroot() { bare "$(command -v chroot)" "$root" "$@"; }
if in_namespace $here/millrace --version >"$scratch/out" 2>&1; then
    inside() { in_namespace "$@"; }
elif in_chroot $here/millrace --version >>"$scratch/out" 2>&1; then
    inside() { in_chroot "$@"; }
else
    echo "not run: a bare root folder cannot be entered here ($(tail -1 "$scratch/out")); run with an empty environment instead"
    here=$folder/bin there=$scratch
    inside() { env -i "$@"; }
fi
inside "$here/millrace" devices >"$scratch/out" || fail "millrace devices"
grep -q '^cpu .*ready' "$scratch/out" || fail "no processor: $(cat "$scratch/out")"
inside "$here/millrace" synth "$there/data" --classes 2 --count 8 --quiet || fail "millrace synth"
inside "$here/millrace" convert "$there/data/train" "$there/data.mrec" --quiet >/dev/null || fail "millrace convert"
inside "$here/millrace" train "$there/data.mrec" --model cifar-cnn --batch 8 --epochs 1 --quiet >"$scratch/out" || fail "millrace train"
grep -q '^ *1 ' "$scratch/out" || fail "no epoch: $(cat "$scratch/out")"

[ "$failures" = 0 ] || { echo "$failures checks failed"; exit 1; }
echo "the portable folder runs by itself: $bytes bytes, $(ls "$folder/bin" | wc -l) programs, $(ls "$folder/lib" | wc -l) libraries"
