# Help, version and manual page: compared with files; every option that help names is in the manual page, too.
. "$(dirname "$0")/../lib.sh"

run 0 --help; compare help
run 0 help; compare help
run 0 --version; equal "$(cat out)" "millrace 0.4.0"
run 2; err_has "usage: millrace COMMAND"
run 2 help convrt; err_has "did you mean 'convert'?"
run 0 man; cp out man.1
grep -q '^\.TH MILLRACE 1' man.1 || fail "no title in the manual page"
for c in convert export inspect verify train eval profile bench digest devices synth; do
    run 0 help "$c"; compare "help-$c"
    cp out help.txt
    run 0 "$c" --help; same out help.txt
    run 0 "$c" -h; same out help.txt
    sed -n 's/^  --\([a-z-]*\).*/\1/p' help.txt | sed 's/-/\\\\-/g' >names
    while read -r name; do
        grep -q -- "^\.B \\\\-\\\\-$name" man.1 || fail "--$name of $c is not in the manual page"
    done <names
    [ "$(awk 'length > 96' help.txt | wc -l)" -eq 0 ] || fail "help of $c has lines longer than 96 characters"
done
command -v man >/dev/null 2>&1 && man --warnings -l man.1 >/dev/null 2>warnings && [ -s warnings ] && fail "man: $(cat warnings)"
finish
