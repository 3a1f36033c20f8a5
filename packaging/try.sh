#!/bin/sh
# The artefacts of a release on the machine that this runs on, each installed as a user would and used for the main job. Meant for a
# machine that is thrown away: MACHINE_FILES=FOLDER/dist sh tools/scripts/machine.sh run ROOT "sh packaging/try.sh deb".
# usage: try.sh PART...     deb, wheel, sdist, source or container; the artefacts lie in MILLRACE_DIST (default ../files)
set -eu
checkout=$(cd "$(dirname "$0")/.." && pwd)
dist=$(cd "${MILLRACE_DIST:-$checkout/../files}" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/millrace-try-XXXXXX")

fetch() {
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$@" >"$work/apt.log" 2>&1 || {
        tail -20 "$work/apt.log"
        exit 1
    }
}

main_job() { # COMMAND: convert, train with prefetch off and on, report; where the stall was
    $1 --version
    rm -rf data run
    $1 synth data --classes 4 --count 50 --size 32 --seed 1 --quiet
    $1 convert data train.mrec --split train --force --quiet
    $1 verify train.mrec
    for prefetch in off 2; do
        $1 train train.mrec --model cifar-cnn --epochs 1 --seed 1 --prefetch $prefetch --checkpoint run --force --json --quiet >$prefetch.jsonl
        sed -n 's/.*"complete": true.*"weights": "\([0-9a-f]*\)".*/\1/p' $prefetch.jsonl >$prefetch.weights
    done
    [ -s off.weights ]
    cmp off.weights 2.weights # prefetch changes no bit
    $1 report off.jsonl 2.jsonl --html report.html
    grep -q '<html' report.html
    $1 profile train.mrec --augment 'resize(32x32)' --batch 16 --devices sim:1,step=5ms --steps 8 --seconds 0.4 --quiet
}

# The block of the package's page that needs no other package, as it is written.
from_python() { # PYTHON
    "$1" - "$checkout/python/README.md" <<'EOF'
import re
import sys

import millrace

with open(sys.argv[1]) as f:
    blocks = re.findall(r"```python\n(.*?)```", f.read(), re.S)
block, = [b for b in blocks if "import millrace\n" in b]
names = {"PHOTOS": "data"}
exec(block, names)
print("Python:", millrace.__version__, names["images"].shape, len(names["labels"]))
EOF
}

try_deb() {
    apt-get update -qq
    fetch "$dist"/*.deb
    main_job millrace
    from_python python3
    [ -e "$(dpkg -L millrace | grep 'man1/millrace.1.gz')" ]
    fetch gcc libc6-dev pkg-config cmake make
    # shellcheck disable=SC2046 # lists of words
    gcc -std=c11 -Wall -Wextra -Werror $(pkg-config --cflags millrace) "$checkout/examples/loader.c" -o loader $(pkg-config --libs millrace)
    ./loader data | tee loader.out
    # shellcheck disable=SC2046
    gcc -std=c11 $(pkg-config --cflags millrace) "$checkout/examples/loader.c" -o static -l:libmillrace.a $(pkg-config --static --libs millrace | sed 's/-lmillrace//')
    ./static data | cmp - loader.out
    cmake -S "$checkout/examples" -B examples >cmake.log && cmake --build examples >>cmake.log || {
        cat cmake.log
        exit 1
    }
    examples/example_loader data
    apt-get purge -y -qq millrace python3-millrace libmillrace-dev 'libmillrace0*' >/dev/null 2>&1
    left=$(find /usr -name '*millrace*' | head -5)
    [ -z "$left" ] || {
        echo "left behind after purging: $left"
        exit 1
    }
}

environment() {
    command -v pip3 >/dev/null && python3 -c 'import ensurepip' 2>/dev/null || {
        apt-get update -qq
        fetch python3-venv
    }
    rm -rf venv
    python3 -m venv venv
}

# Training with a wheel takes oneDNN from where its error says.
with_onednn() { # COMMAND
    $1 synth data --classes 2 --count 2 --size 32 --quiet
    if $1 train data --model cifar-cnn --epochs 1 --quiet 2>refused; then
        echo "a wheel without oneDNN trained"
        exit 1
    fi
    grep 'pip install onednn-cpu-gomp' refused
    venv/bin/pip install -q --disable-pip-version-check onednn-cpu-gomp
    $1 train data --model cifar-cnn --epochs 1 --quiet 2>refused && return # where OpenMP's run time is installed
    grep 'apt install libgomp1' refused
    fetch libgomp1
}

try_wheel() {
    environment
    venv/bin/pip install -q --disable-pip-version-check --no-index "$dist"/*.whl
    with_onednn venv/bin/millrace
    main_job venv/bin/millrace
    from_python venv/bin/python
}

try_sdist() {
    environment
    # shellcheck disable=SC2086,SC2154 # a list of words, of packages.sh
    (cd "$checkout" && . tools/scripts/packages.sh && millrace_install $millrace_packages)
    venv/bin/pip install -q --disable-pip-version-check "$dist"/millrace_loader-*.tar.gz
    main_job venv/bin/millrace
    from_python venv/bin/python
}

try_source() {
    mkdir source
    tar -xf "$(find "$dist" -name 'millrace-*.tar.gz')" -C source --strip-components=1
    (cd source && tools/quickstart.sh)
}

logged() { # COMMAND: the end of its output where it fails
    "$@" >container.log 2>&1 || {
        echo "failed: $*"
        tail -20 container.log
        exit 1
    }
}

# Without a container run time: the lines of its file, one after another in this machine; between the two stages the packages that
# build go.
try_container() {
    mkdir -p /src
    cp -r "$checkout/." /src
    sed -e ':a' -e '/\\$/N; s/\\\n//; ta' "$checkout/packaging/Containerfile" | sed -n 's/^RUN //p' >lines
    [ "$(wc -l <lines)" = 3 ]
    sed -n 1,2p lines >build
    sed -n 3p lines >run
    export DEBIAN_FRONTEND=noninteractive
    logged sh -e build
    logged apt-get purge -y -qq '*-dev' gcc cmake ninja-build
    logged apt-get autoremove --purge -y -qq
    hash -r # the shell still knows where the packages had put the command
    if command -v millrace; then
        echo "the packages left their command behind"
        exit 1
    fi
    cp -r /installed/usr/local/bin/. /usr/local/bin
    logged sh -e run
    mkdir -p /data
    chown millrace /data
    cd /data
    main_job "runuser -u millrace -- millrace"
}

for part; do
    case $part in
    deb | wheel | sdist | source | container) ;;
    *)
        echo "try.sh: no such part: $part; expected deb, wheel, sdist, source or container" >&2
        exit 2
        ;;
    esac
    echo "== $part"
    mkdir "$work/$part"
    cd "$work/$part"
    "try_$part"
done
rm -rf "$work"
echo "works: $*"
