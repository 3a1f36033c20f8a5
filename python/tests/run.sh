#!/bin/sh
# Build the wheel, install it in a fresh virtual environment, and run the tests there.
#
# usage: run.sh PYTHON FOLDER [PYTEST-ARGUMENT...]    FOLDER keeps the wheel and its build for the next time
# MILLRACE_WHEEL: a wheel to test; none is built then. MILLRACE_WHEEL_LAUNCHER: ccache or the like; MILLRACE_WHEEL_CC: the compiler;
# MILLRACE_WHEEL_WERROR: 1 or 0; MILLRACE_WHEEL_LOCALE: LANG=... and the like, which ccache counts among what decides an object.
# MILLRACE_WHEELHOUSE: a folder with the wheels of numpy and pytest, where no index can be asked.
set -eu
python=$1 folder=$2
shift 2
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/millrace-python-XXXXXX")
trap 'rm -rf "$work"' EXIT

skip() {
    echo "SKIP: $1"
    exit 77
}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 9))' || skip "Python 3.9 or newer is needed: $("$python" --version)"
# A pip of 22.3 or newer installs into another environment, which then needs none of its own.
if "$python" -m pip --python "$python" --version >"$work/log" 2>&1; then
    "$python" -m venv --without-pip "$work/venv" >"$work/log" 2>&1 || skip "no virtual environment: $(tail -1 "$work/log")"
    pip="$python -m pip --disable-pip-version-check --python $work/venv/bin/python"
else
    "$python" -m venv "$work/venv" >"$work/log" 2>&1 || skip "no virtual environment (apt install python3-venv): $(tail -1 "$work/log")"
    pip="$work/venv/bin/python -m pip --disable-pip-version-check"
fi
wheel=${MILLRACE_WHEEL-}
needed="numpy pytest"
[ -n "$wheel" ] || needed="$needed scikit-build-core"
from=""
[ -z "${MILLRACE_WHEELHOUSE-}" ] || from="--no-index --find-links=$MILLRACE_WHEELHOUSE"
# shellcheck disable=SC2086
$pip install -q $from $needed >"$work/log" 2>&1 || skip "$needed cannot be had from the package index: $(tail -1 "$work/log")"

if [ -z "$wheel" ]; then
    mkdir -p "$folder/dist"
    rm -f "$folder"/dist/*.whl
    export CCACHE_BASEDIR="${CCACHE_BASEDIR:-$root}" CCACHE_NOHASHDIR=1
    # shellcheck disable=SC2086
    env -u LANG -u LC_ALL -u LC_CTYPE -u LC_MESSAGES PYTHONCOERCECLOCALE=0 ${MILLRACE_WHEEL_LOCALE-} \
        $pip wheel "$root" --no-build-isolation --no-deps -w "$folder/dist" --config-settings=build-dir="$folder" \
        --config-settings=cmake.define.CMAKE_C_COMPILER_LAUNCHER="${MILLRACE_WHEEL_LAUNCHER-}" \
        --config-settings=cmake.define.CMAKE_C_COMPILER="${MILLRACE_WHEEL_CC:-cc}" \
        --config-settings=cmake.define.MILLRACE_WERROR="${MILLRACE_WHEEL_WERROR-0}" >"$work/log" 2>&1 || {
        tail -50 "$work/log"
        exit 1
    }
    wheel=$(echo "$folder"/dist/*.whl)
fi
case $wheel in
*/millrace_loader-*-py3-none-*.whl) ;;
*) echo "the wheel's name is not that of one for every Python: $wheel" && exit 1 ;;
esac
mkdir "$work/wheels"
cp "$wheel" "$work/wheels"
$pip install -q --no-index --find-links "$work/wheels" millrace-loader # as from a folder of wheels
cd "$work" # not the tree: the installed package is tested
"$work/venv/bin/python" -m pytest -q -rs -p no:cacheprovider --rootdir "$root/python/tests" "$root/python/tests" "$@"
