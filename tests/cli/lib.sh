# tests/cli/lib.sh: shared by the scripts of this folder. Run as `sh test_NAME.sh MILLRACE [JSON_LINES]`, each works in a folder of its own
# that is removed at the end. A failed check prints the command and its output, and the script goes on;
# `finish` gives the exit status. MILLRACE_UPDATE=1 writes tests/cli/expected/ anew instead of comparing with it.
case $1 in
/*) millrace=$1 ;;
*) millrace=$PWD/$1 ;;
esac
case ${2:-true} in # checks the lines of --json
/* | true) json_lines=${2:-true} ;;
*) json_lines=$PWD/$2 ;;
esac
here=$(cd "$(dirname "$0")/.." && pwd) # tests/cli: the script lies in a folder of it
temp=$(mktemp -d "${TMPDIR:-/tmp}/millrace-cli-XXXXXX") || exit 1
umask 022 # of whoever runs the tests anything may come: files that others may not read, a closed stdin, no home
exec </dev/null
XDG_CACHE_HOME=$temp/cache-home
trap 'rm -rf "$temp"' EXIT
trap 'exit 1' INT TERM
cd "$temp" || exit 1
failures=0
LC_ALL=C
PYTHONDONTWRITEBYTECODE=1 # no __pycache__ next to the sources
export LC_ALL PYTHONDONTWRITEBYTECODE XDG_CACHE_HOME

fail() {
    failures=$((failures + 1))
    printf 'FAILED: %s\n' "$*"
    [ -s out ] && { echo "  stdout:"; head -20 out | sed 's/^/    /'; }
    [ -s err ] && { echo "  stderr:"; head -20 err | sed 's/^/    /'; }
}

# Where the system refuses io_uring, every run says so in a line more than the test expects; keep_uring_note=1 leaves it.
drop_uring_note() {
    [ -z "${keep_uring_note-}" ] && grep -q '^millrace: io_uring is not usable here' err || return 0
    grep -v '^millrace: io_uring is not usable here' err >.err
    cat .err >err
    rm .err
}

# run STATUS ARGUMENT...: run millrace with these arguments and expect this exit status; its output is in the files out and err.
run() {
    want=$1
    shift
    last="millrace $*"
    "$millrace" "$@" >out 2>err
    got=$?
    drop_uring_note
    [ "$got" -eq "$want" ] || fail "$last: expected exit status $want, found $got"
    case " $* " in
    *" --json "*) [ ! -s out ] || "$json_lines" <out >json_err || fail "$last: $(cat json_err)" ;;
    esac
}

out_has() { grep -qF -- "$1" out || fail "$last: expected on stdout: $1"; }
err_has() { grep -qF -- "$1" err || fail "$last: expected on stderr: $1"; }
out_lacks() { ! grep -qF -- "$1" out || fail "$last: not expected on stdout: $1"; }
same() { cmp -s "$1" "$2" || fail "$last: $1 and $2 differ"; }
absent() { [ ! -e "$1" ] || fail "$last: $1 should not be there"; }
present() { [ -e "$1" ] || fail "$last: $1 should be there"; }
equal() { [ "$1" = "$2" ] || fail "$last: expected '$2', found '$1'"; }

# runs PID: this program in the background is not over.
runs() { kill -0 "$1" 2>/dev/null && ! grep -q '^State:.*Z' "/proc/$1/status" 2>/dev/null; }

# shows PID PATTERN [FILE]: wait until a line of FILE (out) matches; false when the program ends without such a line. It waits without a
# limit, since machines differ in speed; the time limit of the whole test ends a program that hangs. First remove a FILE left by an earlier
# program: the new one may not have begun to write.
shows() {
    while ! grep -q -- "$2" "${3:-out}" 2>/dev/null; do
        runs "$1" || { grep -q -- "$2" "${3:-out}" 2>/dev/null; return; }
        sleep 0.02
    done
}

# waits PID COMMAND...: wait until the command succeeds, or the program is over. The command should stay true once it was.
waits() {
    waited=$1
    shift
    while ! "$@"; do runs "$waited" || return 0; done
}

# any FILE...: one of the files exists; for patterns.
any() {
    for file; do [ ! -e "$file" ] || return 0; done
    return 1
}

# listens PID: wait until the program has set its signal handlers, or is over. Before that a SIGINT is lost: a shell starts what runs
# in the background with SIGINT ignored.
listens() {
    while runs "$1"; do
        # before it is the program it is a copy of this shell, whose own handler does not count
        case $(sed -n 's/^SigCgt:.*\(.\)$/\1/p' "/proc/$1/status" 2>/dev/null) in
        [2367abef]) [ "$(cat "/proc/$1/comm" 2>/dev/null)" != "${millrace##*/}" ] || return ;;
        esac
        sleep 0.01
    done
}

# number KEY: the number behind "KEY": in the last line of out.
number() { tail -1 out | sed -n "s/.*\"$1\": \\([-0-9.e+]*\\).*/\\1/p"; }
text() { tail -1 out | sed -n "s/.*\"$1\": \"\\([^\"]*\\)\".*/\\1/p"; }

# as_small BAD GOOD COMMAND...: each command, DATA in it the set BAD, takes no more memory than with the set GOOD, but for 20 MiB. What
# the program and its libraries take by themselves counts on both sides.
as_small() {
    bad=$1
    good=$2
    shift 2
    [ -x /usr/bin/time ] && ! grep -q __asan_init "$millrace" && ! grep -q __tsan_init "$millrace" || return 0
    for command; do
        for data in "$good" "$bad"; do
            last="millrace $(echo "$command" | sed "s/DATA/$data/")"
            # shellcheck disable=SC2046 # words without spaces
            /usr/bin/time -f %M -o "$data.kib" "$millrace" $(echo "$command" | sed "s/DATA/$data/") >out 2>err
        done
        [ "$(tail -1 "$bad.kib")" -lt $(($(tail -1 "$good.kib") + 20480)) ] ||
            fail "$last: took $(tail -1 "$bad.kib") KiB, with good pictures $(tail -1 "$good.kib")"
    done
}

# compare NAME: out is what expected/NAME.txt says.
compare() {
    if [ -n "${MILLRACE_UPDATE:-}" ]; then
        cp out "$here/expected/$1.txt"
    elif ! cmp -s out "$here/expected/$1.txt"; then
        diff "$here/expected/$1.txt" out | head -20
        fail "$last: not as in tests/cli/expected/$1.txt (MILLRACE_UPDATE=1 writes it anew)"
    fi
}

skip() {
    echo "SKIP: $*"
    exit 77
}

finish() {
    [ "$failures" -eq 0 ] || { echo "$failures checks failed"; exit 1; }
    exit 0
}
