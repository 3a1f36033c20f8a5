# Who may include whom in tools/: commands/ uses cli/ and never the other way round, no command another, main.c is on top, and of the
# rooms below only the public headers are used.
. "$(dirname "$0")/../lib.sh"
tools=$here/../../tools last="the includes of tools/"

includes() { # PATTERN FILE...: lines that include what matches
    pattern=$1
    shift
    grep -nE "^#include \"$pattern" "$@"
}
includes 'tools/commands/' "$tools"/cli/*.[ch] && fail "cli/ knows commands/"
grep -nE 'command_[a-z_]+' "$tools"/cli/*.[ch] && fail "cli/ knows a command"
includes '(base|formats|kernels|pipeline|train)/' "$tools"/*.c "$tools"/*/*.[ch] && fail "tools/ uses a private header"
for file in "$tools"/commands/*.c "$tools"/sets/*.c; do
    grep -oE '\bcommand_[a-z_]+' "$file" | sort -u >named
    sed -n 's/^const command \(command_[a-z_]*\) = .*/\1/p' "$file" | sort >defined
    grep -vxFf defined named && fail "$file knows another command"
done
[ "$(ls "$tools"/*.c)" = "$tools/main.c" ] || fail "expected main.c alone on top of cli/ and commands/"
finish
