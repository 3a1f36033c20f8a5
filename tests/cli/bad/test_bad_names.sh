# Names that hold what names may hold: nothing of it reaches the terminal, JSON stays JSON, and pictures keep their bytes.
. "$(dirname "$0")/../lib.sh"

run 0 synth d --classes 2 --count 1 --quiet
picture=$(find d/train -name '*.jpg' | head -1)
class=$(printf 'cl\033[41m\nass\377"')
mkdir -p n/a "n/$class"
cp "$picture" n/a/ok.jpg
cp "$picture" "n/$class/1.jpg"
long=$(awk 'BEGIN { for (i = 0; i < 251; i++) printf "x" }').jpg
for name in "$(printf '\033[31mred\033[0m.jpg')" "$(printf 'new\nline.jpg')" "$(printf 'q"uo\047te\\.jpg')" \
    "$(printf 'no\377\376utf8\233.jpg')" "$(printf 'c1\302\2331;31m.jpg')" "$(printf 'caf\303\251.jpg')" "$long" " .jpg" "-rf.jpg"; do
    echo bad >"n/a/$name" || fail "cannot make a file for this test"
done
# clean FILE: no control characters but line ends, and all of it is UTF-8
clean() {
    [ "$(tr -d '\n' <"$1" | tr -d '\000-\037\177' | wc -c)" -eq "$(tr -d '\n' <"$1" | wc -c)" ] || fail "$last: control characters in $1"
    grep -q "$(printf '\302\233')" "$1" && fail "$last: a C1 control character in $1"
    iconv -f UTF-8 -t UTF-8 "$1" >cleaned 2>&1 || fail "$last: $1 is not UTF-8"
}
run 1 verify n; clean out; clean err
out_has 'n/a/\x1b[31mred\x1b[0m.jpg'
out_has 'n/a/new\x0aline.jpg'
out_has 'n/a/no\xff\xfeutf8\x9b.jpg'
out_has 'n/a/c1\xc2\x9b1;31m.jpg'
out_has "n/a/$(printf 'caf\303\251').jpg"
out_has ", 9 wrong"
run 1 verify n --json; clean out
equal "$(grep -c '^{"event": "wrong", .*}$' out)" 9
run 3 digest n --bad skip; clean err
run 3 convert n n.mrec; clean out; clean n.mrec.bad.jsonl
equal "$(wc -l <n.mrec.bad.jsonl | tr -d ' ')" 9
for data in n n.mrec; do
    run 0 inspect $data; clean out; out_has 'cl\x1b[41m\x0aass\xff"'
    run 0 inspect $data --json; clean out; out_has 'cl\u001b[41m\nass\u00ff\"'
done
run 0 inspect n.mrec --record 1; clean out; out_has 'cl\x1b[41m\x0aass\xff"'
run 0 export n.mrec back
cmp -s "$picture" "back/$(printf 'cl_[41m_ass\377"')/1.jpg" || fail "$last: the picture of a class with an odd name"
odd=$(printf 'odd\033[1m\nname')
run 1 inspect "$odd"; clean err; equal "$(wc -l <err | tr -d ' ')" 1
run 2 inspect d "--$odd"; clean err; equal "$(wc -l <err | tr -d ' ')" 1
run 2 "$odd"; clean err
run 2 train d --model "$odd"; clean err
finish
