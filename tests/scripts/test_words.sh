#!/bin/sh
# tools/scripts/words.sh finds each of its turns in the comment of a header and in the paragraph of a page, with file and line,
# and nothing in code, `code`, headings and blocks of code.
# usage: test_words.sh WORDS_SH
set -eu
words=$1
work=$(mktemp -d "${TMPDIR:-/tmp}/millrace-words-XXXXXX")
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*"; exit 1; }

turns='the user is told
the file tells the name
behind the step
so many samples
as many as there are
three of which are read
those that remain
that of the loader
what is read
values are none
neither yes nor no
a pass wants memory
beside the weights
whoever calls it
whatever it holds
a run goes on
a header is believed
as ever the same
a rule and its kin'

# found FILE LINE: the script fails, and names this line.
found() {
    if sh "$words" "$1" >"$work/out" 2>&1; then fail "no complaint about: $(cat "$1")"; fi
    grep -q "^$1:$2: " "$work/out" || fail "expected a complaint about $1, line $2, found: $(cat "$work/out")"
}
clean() { sh "$words" "$1" >"$work/out" 2>&1 || fail "expected no complaint, found: $(cat "$work/out")"; }

echo "$turns" | while IFS= read -r turn; do
    printf '# Page\n\nText.\nHere %s.\n' "$turn" >"$work/page.md"
    found "$work/page.md" 4
    printf '#define X 1\nint x; /* first\n * here %s */\n' "$turn" >"$work/header.h"
    found "$work/header.h" 3
done

printf 'The loader reads those\nthat remain.\n' >"$work/broken.md" # a turn over two lines
found "$work/broken.md" 1
printf 'int told; /* the\n * lines; what\n * is read */\n' >"$work/broken.h"
found "$work/broken.h" 2

# shellcheck disable=SC2016 # the backquotes of Markdown
printf '# What is told\n\nThe key `told` is a list.\n\n```\nwhat is told\n```\n\n| are | none |\n| that | of |\n[a page](what-is-told.md)\n' >"$work/clean.md"
clean "$work/clean.md"
printf 'int told; /* lines for the user */\nint those, that; /* two numbers */\n' >"$work/clean.h"
clean "$work/clean.h"

printf 'A clean page.\n' >"$work/one.md"
printf 'It is told.\n' >"$work/two.md"
if sh "$words" "$work/one.md" "$work/two.md" >"$work/out"; then fail "no complaint about the second of two files"; fi
grep -q "^$work/two.md:1: " "$work/out" || fail "expected the second file, found: $(cat "$work/out")"
echo "all turns are found"
