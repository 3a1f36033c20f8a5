#!/bin/sh
# The artefacts of a release, from the newest commit of this checkout: they have no uncommitted changes.
#
# usage: tools/release.sh [--twice] FOLDER [PART...]     default: source sdist wheel deb container sbom
#   source      millrace-VERSION.tar.gz, the tree as git has it
#   sdist       millrace_loader-VERSION.tar.gz, what PyPI builds from
#   wheel       millrace_loader-VERSION-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl (python/manylinux/build.sh)
#   deb         millrace, libmillrace, libmillrace-dev and python3-millrace for this Debian, looked at by lintian
#   container   an image, where podman or docker is; the file it is made from in any case
#   sbom        millrace-VERSION.cdx.json: the dependencies of the programs and of the wheel, with versions (CycloneDX 1.5)
#   --twice     make everything a second time, and compare: exit status 1 where a byte differs
# The artefacts come to FOLDER/dist, with SHA256SUMS; FOLDER/work is kept for the next time. Their times are the time of the commit.
# Needs build-essential, debhelper, dh-python and lintian for deb; for sdist and wheel a package index and the packages that
# python/manylinux/build.sh lists.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
twice=""
if [ "${1-}" = --twice ]; then
    twice=1
    shift
fi
case ${1-} in
"" | -*)
    sed -n '4,15s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
folder=$(mkdir -p "$1" && cd "$1" && pwd)
shift
parts=${*:-source sdist wheel deb container sbom}
for part in $parts; do
    case $part in
    source | sdist | wheel | deb | container | sbom) ;;
    *)
        echo "release.sh: no such part: $part; expected source, sdist, wheel, deb, container or sbom" >&2
        exit 2
        ;;
    esac
done

cd "$root"
umask 022
export LC_ALL=C TZ=UTC
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
version=$(sed -n 's/^#define MR_VERSION_\(MAJOR\|MINOR\|PATCH\) *\([0-9]*\)$/\2/p' base/include/millrace/base.h | paste -sd.)
[ -z "$(git status --porcelain --untracked-files=no)" ] || echo "release.sh: changes that are not committed are not part of this release" >&2
work=$folder/work
mkdir -p "$work"

fail() {
    echo "release.sh: $1" >&2
    exit 1
}

# unpack WHERE: the tree of the commit, in a folder that was empty
unpack() {
    rm -rf "$1"
    mkdir -p "$1"
    git archive --format=tar HEAD | tar -x -C "$1"
}

tools_of_python() {
    [ -x "$work/venv/bin/python" ] || python3 -m venv "$work/venv"
    "$work/venv/bin/python" -m pip install -q --disable-pip-version-check build scikit-build-core ||
        fail "build and scikit-build-core cannot be had from the package index"
}

make_source() {
    git archive --format=tar --prefix="millrace-$version/" HEAD | gzip -9n >"$dist/millrace-$version.tar.gz"
}

make_sdist() {
    tools_of_python
    unpack "$work/tree"
    "$work/venv/bin/python" -m build --sdist --no-isolation --outdir "$dist" "$work/tree" >"$work/sdist.log" 2>&1 || {
        tail -20 "$work/sdist.log" >&2
        fail "no sdist was made"
    }
}

make_wheel() {
    unpack "$work/tree"
    rm -rf "$work/wheel/dist"
    sh "$work/tree/python/manylinux/build.sh" "$work/wheel" >"$work/wheel.log" 2>&1 || {
        tail -20 "$work/wheel.log" >&2
        fail "no wheel was made"
    }
    cp "$work"/wheel/dist/*.whl "$dist"
}

# The tree of the commit with packaging/debian filled in, at a place that is the same each time.
lay_debian() { # WHERE
    soversion=$(echo "$version" | cut -d. -f1-2)
    unpack "$1"
    cp -r packaging/debian "$1/debian"
    mv "$1/debian/libmillrace@SOVERSION@.install" "$1/debian/libmillrace$soversion.install"
    maintainer="${DEBFULLNAME:-$(git log -1 --format=%an)} <${DEBEMAIL:-$(git log -1 --format=%ae)}>"
    sed "s/@SOVERSION@/$soversion/; s/@MAINTAINER@/$maintainer/" "$1/debian/control.in" >"$1/debian/control"
    rm "$1/debian/control.in"
    {
        printf 'millrace (%s) unstable; urgency=medium\n\n' "$version"
        printf '  * Release %s: CHANGELOG.md lists the changes.\n\n' "$version"
        printf ' -- %s  %s\n' "$maintainer" "$(date -R -d "@$SOURCE_DATE_EPOCH")"
    } >"$1/debian/changelog"
}

make_deb() {
    for package in build-essential debhelper dh-python lintian; do
        dpkg -s $package >/dev/null 2>&1 || fail "$package is missing (apt install build-essential debhelper dh-python lintian)"
    done
    rm -rf "$work/deb"
    lay_debian "$work/deb/millrace-$version"
    (cd "$work/deb/millrace-$version" && dpkg-buildpackage -b -us -uc) >"$work/deb.log" 2>&1 || {
        tail -40 "$work/deb.log" >&2
        fail "no packages were made; $work/deb.log"
    }
    find "$work/deb" -maxdepth 1 -name '*.deb' ! -name '*-dbgsym_*' -exec cp {} "$dist" \;
    # No package of a distribution closes a bug of it; everything else counts.
    lintian --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs "$work"/deb/*.changes >"$work/lintian.log" 2>&1 || {
        cat "$work/lintian.log" >&2
        fail "lintian has complaints"
    }
}

make_container() {
    cp packaging/Containerfile "$dist/Containerfile"
    for builder in podman docker; do
        $builder info >/dev/null 2>&1 || continue
        unpack "$work/tree"
        $builder build -f "$work/tree/packaging/Containerfile" -t "millrace:$version" "$work/tree" >"$work/container.log" 2>&1 || {
            tail -20 "$work/container.log" >&2
            fail "no image was made"
        }
        echo "image millrace:$version"
        return
    done
    echo "SKIP: neither podman nor docker runs here: no image, only its file"
}

make_sbom() {
    python3 tools/scripts/sbom.py --version "$version" --time "$SOURCE_DATE_EPOCH" --wheel-sources "$work/wheel/src" \
        "$dist" >"$work/sbom.json" || fail "no list of the artefacts' dependencies was made"
    mv "$work/sbom.json" "$dist/millrace-$version.cdx.json"
}

make_all() { # WHERE
    dist=$1
    rm -rf "$dist"
    mkdir -p "$dist"
    for part in $parts; do
        echo "== $part"
        "make_$part"
    done
    (cd "$dist" && sha256sum -- *) >"$work/sums"
    mv "$work/sums" "$dist/SHA256SUMS"
}

make_all "$folder/dist"
cat "$folder/dist/SHA256SUMS"
if [ -n "$twice" ]; then
    make_all "$work/again"
    diff "$folder/dist/SHA256SUMS" "$work/again/SHA256SUMS" || fail "made twice, these differ"
    echo "made twice: the same bytes"
fi
