# A tar archive whose classes were changed in place, with its size and time unchanged: the loader returns the archive's classes, not those
# in the old index.
. "$(dirname "$0")/../lib.sh"
command -v python3 >/dev/null || skip "python3 is not there"
make() { PYTHONPATH="$here/read" python3 -c "from made import *
def members(kind, labels, other=False):
    for k, label in enumerate(labels):
        pair = [('%d.png' % k, picture(k)), ('%d.%s' % (k, kind), (b'%d' if kind == 'cls' else b'{\"label\": %d}') % label)]
        yield from (pair[::-1] if other else pair)
$1" || fail "python3: $1"; }
for kind in cls json; do
    make "tar('x.tar', members('$kind', [0, 1, 2, 0])); os.utime('x.tar', (10**9, 10**9))"
    run 0 digest x.tar; old=$(cut -d' ' -f1 out); present .x.tar.mridx
    for other in False True; do # the same order of members, and another one
        make "tar('x.tar', members('$kind', [2, 0, 1, 1], $other)); os.utime('x.tar', (10**9, 10**9))"
        make "tar('y.tar', members('$kind', [2, 0, 1, 1], $other))"
        run 0 digest x.tar; new=$(cut -d' ' -f1 out)
        run 0 digest y.tar; equal "$new" "$(cut -d' ' -f1 out)"
        [ "$new" != "$old" ] || fail "the labels come from the index"
        run 0 convert x.tar x.mrec --quiet --force; run 0 digest x.mrec; equal "$(cut -d' ' -f1 out)" "$new"
        make "tar('x.tar', members('$kind', [0, 1, 2, 0])); os.utime('x.tar', (10**9, 10**9))"
        run 0 digest x.tar; equal "$(cut -d' ' -f1 out)" "$old"
    done
    rm -f .*.mridx
done
# the index is used when nothing was changed
run 0 inspect x.tar; run 0 inspect x.tar; out_lacks "index kept"
finish
