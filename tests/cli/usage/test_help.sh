# Help, version and manual page: compared with files. Short help shows a command's own options and names the others; --all shows every
# option that the command accepts, and the manual page the same. Groups of options that commands share are compared with files of
# their own (group-TITLE), so that another option of one changes one file; in the others a group is its title in brackets.
. "$(dirname "$0")/../lib.sh"

part() { sed -n "s/^#define MR_VERSION_$1 *\([0-9]*\)$/\1/p" "$here/../../base/include/millrace/base.h"; }
version=$(part MAJOR).$(part MINOR).$(part PATCH) # written there, and nowhere else

run 0 --help; compare help
run 0 help; compare help
run 0 --version; equal "$(head -1 out)" "millrace $version"; out_has "pictures: jpeg png gif bmp"
run 2; err_has "usage: millrace COMMAND"
run 2 help convrt; err_has "did you mean 'convert'?"
run 0 man; cp out man.1
grep -q '^\.TH MILLRACE 1' man.1 || fail "no title in the manual page"
run 1 inspect man.1 --format nosuch # its error lists all formats, and so does the manual page
sed -n 's/.*known formats: //p' err | tr -d ' ' | tr ',' '\n' >formats
[ "$(wc -l <formats)" -gt 9 ] || fail "expected the known formats: $(cat err)"
while read -r name; do grep -q "^\.B $name$" man.1 || fail "the manual page does not name the format $name"; done <formats

options_of() { sed -n 's/^  --\([a-z-]*\).*/\1/p' "$1" | sort; }                 # options that help explains
manual_of() { sed 's/\\//g' man.1 | sed -n "/^\.SS millrace $1 /,/^\.S[SH]/p" | sed -n 's/^\.B --\([a-z-]*\).*/\1/p' | sort; }

# fold short.txt all.txt: short and all have titles in place of common groups; group-TITLE has the lines of each.
fold() {
    rm -f group-*
    awk '/^Common options/ { common = 1; print; next }
         common && /^$/ { common = 0 }
         common { if (/^  [A-Z]/) { sub(/  +--.*/, ""); print "  [" substr($0, 3) "]" } next }
         { print }' "$1" >short
    sed -n 's/^  \[\(.*\)\]$/\1/p' short >titles
    awk 'NR == FNR { common[$0] = 1; next }
         /^$/ { file = "" }
         file { print >file; next }
         { title = $0; sub(/( \(.*)?:$/, "", title) }
         /^[A-Z].*:$/ && title in common {
             print "[" title "]"; file = title; gsub(/ /, "-", file); file = "group-" tolower(file); print >file; next }
         { print }' titles "$2" >all
}

run 0 help
commands=$(sed -n '/^Commands:/,/^$/s/^  \([a-z-]*\) .*/\1/p' out)
[ "$(printf '%s\n' "$commands" | wc -l)" -ge 11 ] || fail "expected 11 commands or more, found: $commands"
for c in $commands; do
    run 0 help "$c" --all
    cp out all.txt
    run 0 "$c" --help --all; same out all.txt
    run 0 "$c" -h --all; same out all.txt
    run 0 help "$c"
    cp out short.txt
    run 0 "$c" --help; same out short.txt
    run 0 "$c" -h; same out short.txt
    fold short.txt all.txt
    for what in short all; do
        cp $what out
        last="help $c"
        compare "$(echo $what | sed s/all/help/)-$c"
    done
    for group in group-*; do
        [ -f "$group" ] || continue # the command shares none
        cp "$group" out
        compare "$group"
    done
    [ "$(awk 'length > 96' all.txt short.txt | wc -l)" -eq 0 ] || fail "help of $c has lines longer than 96 characters"
    [ "$(wc -l <short.txt)" -lt 66 ] || fail "short help of $c has $(wc -l <short.txt) lines: expected below 66"
    options_of all.txt >names
    manual_of "$c" >manual
    cmp -s names manual || fail "$c: the manual page and help --all differ: $(diff names manual)"
    while read -r name; do # what --all shows is accepted, and short help explains or names it
        run 2 "$c" "--$name="
        grep -q "has no option" err && fail "$c: --all shows --$name, which is not accepted"
        grep -qw -- "--$name" short.txt || fail "short help of $c does not name --$name"
    done <names
    run 0 help "$c" --json # for programs: the same options
    sed -n 's/^{"event": "option", "name": "\([a-z-]*\)".*/\1/p' out | sort >listed
    cmp -s names listed || fail "$c: help --json and help --all differ: $(diff names listed)"
    if grep '"event": "option"' out | grep -v '"since": "'; then fail "$c: an option of help --json is not a whole row"; fi
    options_of short.txt >own
    if ! cmp -s names own; then
        grep -qF "millrace help $c --all" short.txt || fail "short help of $c does not say how to see the other options"
    fi
done


# the manual of the augmentation language is printed from its table: it has every operation that the error for an unknown one lists
run 0 synth pictures --classes 2 --count 2 --quiet
run 2 digest pictures --augment nosuch
names=$(sed -n 's/.*operations are \([^;]*\);.*/\1/p' err | tr -d ,)
[ "$(echo "$names" | wc -w)" -ge 10 ] || fail "$last: expected the names of the operations"
run 0 help augment
out_has "--augment SPEC: operations in order, separated by commas, or a preset."
for name in $names; do grep -Eq "^  $name(\(| |\$)" out || fail "$last: nothing about $name"; done
! grep -E '^.{81}' out || fail "$last: a line of more than 80 columns"
command -v man >/dev/null 2>&1 && man --warnings -l man.1 >/dev/null 2>warnings && [ -s warnings ] && fail "man: $(cat warnings)"
finish
