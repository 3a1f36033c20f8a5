#!/bin/sh
# The words of the public headers, of the help texts, of docs/ and of all other pages: turns of phrase that a reader must read twice.
# Comments of headers and paragraphs of pages are checked; code, `code`, headings (other pages link to them) and blocks of code are not.
# usage: tools/scripts/words.sh             all of them
#        tools/scripts/words.sh FILE...     these files
# exit status 1: turns were found; each is printed with its line and a better word
set -eu

pages() {
    find ./*/include/millrace ./*.md docs formats/record train/state python/README.md tests/faults tests/fuzz/README.md \
        tests/cli/expected \( -path '*/include/*.h' -o -name '*.md' -o -path '*/expected/*.txt' \) -print |
        sed 's|^\./||' | sort
}

# TURN|BETTER: TURN is a regular expression over words in lower case with one blank around each.
TURNS='
 (told|tells) |reported, printed, returned, named: things do not tell
 behind |after
 (so many|as many as) |the number itself
 of which |a sentence of its own
 those |the noun itself
 that of |the noun itself
 what |the noun itself
 (is|are|was|were|has|have) none |is not a ..., is missing, is invalid
 neither yes |the valid values
 (want|wants|wanted) |need, require, request
 beside |next to, in parallel with, compared with
 (whoever|whatever) |the caller, the program, for every
 (go|goes|going|went) on |continue, resume
 (believed|believes) |trusted
 as ever |unchanged
 (its|their) (kin|likes) |the noun itself
'

if [ $# -eq 0 ]; then
    cd "$(dirname "$0")/../.."
    # shellcheck disable=SC2046 # no name has a space
    set -- $(pages)
fi
awk -v turns="$TURNS" '
    function check(    words, next_words, both, i, at, from) {
        if (held == "") return
        words = plain(held); next_words = plain(line)
        both = " " words " " next_words " "   # a turn may be broken over two lines
        for (i = 1; i <= count; i++)
            for (from = 1; match(substr(both, from), turn[i]); from = at + 1) {
                at = from + RSTART - 1
                if (at > length(words)) break   # it stands in the next line alone
                printf "%s:%d: \"%s\": better %s\n", held_file, held_number, trim(substr(both, at, RLENGTH)), better[i]
                found++
            }
    }
    function trim(text) { gsub(/^ +| +$/, "", text); return text }
    function plain(text) {
        gsub(/`[^`]*`/, " x ", text)
        gsub(/\]\([^)]*\)/, " ", text) # where a link leads
        text = tolower(text)
        gsub(/[.:;|()?!]+/, " . ", text) # a turn does not pass the end of a clause or cell
        gsub(/[^a-z0-9_.\047-]+/, " ", text)
        return trim(text)
    }
    function give(text) { line = text; check(); held = text; held_file = FILENAME; held_number = FNR }
    BEGIN {
        rows = split(turns, row, "\n")
        for (i = 1; i <= rows; i++)
            if (row[i] != "") {
                cut = match(row[i], / \|[^|]*$/) # the last bar: turns have bars of their own
                count++
                turn[count] = substr(row[i], 1, cut)
                better[count] = substr(row[i], cut + 2)
            }
    }
    FNR == 1 { give(""); held = ""; inside = 0; fence = 0 }
    FILENAME ~ /\.h$/ { # comments alone
        text = ""
        rest = $0
        while (rest != "") {
            if (inside) {
                end = index(rest, "*/")
                if (!end) { text = text " " rest; break }
                text = text " " substr(rest, 1, end - 1)
                rest = substr(rest, end + 2); inside = 0
            } else {
                start = index(rest, "/*")
                if (!start) break
                rest = substr(rest, start + 2); inside = 1
            }
        }
        give(text)
        next
    }
    /^ *(```|~~~)/ { fence = !fence; give(""); next }
    fence || /^#/ { give(""); next }
    { give($0) }
    END { give(""); exit found > 0 }
' "$@" || exit 1
echo "no complaints"
