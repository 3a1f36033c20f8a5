# tests/cli/train/test_tune.sh: --tune: its result is stored and used, given options stay, and no bit of the run changes.
. "$(dirname "$0")/../lib.sh"

XDG_CACHE_HOME=$temp/cache
export XDG_CACHE_HOME
run 0 synth set --count 12 --test-count 4 --size 24 --quiet
# steps that take long enough that the loader is ahead: one turn shows the tuner that nothing can be gained
train() {
    status=$1
    shift
    run "$status" train set --model mnist-mlp --augment "resize(28x28)" --channels 1 --batch 16 --devices sim:1,step=2ms --resident 0 \
        --val none --quiet "$@"
}

# ---- a run that is too short keeps nothing
train 0 --epochs 1 --tune
err_has "nothing is kept"
absent cache/millrace/tune
train 0 --epochs 1 --tune --prefetch off
err_has "nothing to look for with --prefetch off"

# ---- one that is long enough does
train 0 --epochs 100 --tune --workers 1 --depth 8 --readers 1 --json
cp out tuned
if grep -q "nothing is kept" err; then
    echo "the machine is too busy for 100 epochs to be enough: $(tail -1 err)"
else
    err_has "tune: workers 1, prefetch "
    kept=$(ls cache/millrace/tune)
    grep -q "^found workers 1 prefetch [0-9]* depth 8 readers 1 cache 0 bucket " "cache/millrace/tune/$kept" || fail "kept: $(cat "cache/millrace/tune/$kept")"
    [ "$(stat -c %a cache/millrace/tune)" = 700 ] || fail "mode of the folder"
    train 0 --epochs 1 --tune --workers 1 --depth 8 --readers 1
    err_has "as found before"
    # another question is not answered by it
    train 0 --epochs 1 --tune --workers 2 --depth 8 --readers 1
    ! grep -q "as found before" err || fail "$last: took the result of another setting"
    train 0 --epochs 1 --tune-again --workers 1 --depth 8 --readers 1
    ! grep -q "as found before" err || fail "$last: took the earlier result"
    # a damaged file is as good as none
    for text in "" "found workers 99999 prefetch 1 depth 1 readers 1 cache 0 bucket 0" "found workers 1 prefetch 1 depth 1 readers 1" "found"; do
        sed -i "s/^found.*/$text/" "cache/millrace/tune/$kept"
        train 0 --epochs 1 --tune --workers 1 --depth 8 --readers 1
        ! grep -q "as found before" err || fail "$last: took a damaged file"
    done
fi

# ---- the same weights with and without
train 0 --epochs 100 --workers 1 --json
hash() { sed -n 's/.*"weights": *"\([0-9a-f]*\)".*/\1/p' "$1"; }
[ -n "$(hash out)" ] || fail "no weights"
equal "$(hash tuned)" "$(hash out)"

# ---- no place to keep it
unset XDG_CACHE_HOME
(
    unset HOME
    train 0 --epochs 1 --tune
    err_has "is not stored"
    exit "$failures"
)
failures=$((failures + $?))
XDG_CACHE_HOME=$temp/file
export XDG_CACHE_HOME
: >file
train 0 --epochs 100 --tune --workers 1 --depth 8 --readers 1
grep -q "nothing is kept" err || err_has "not kept:"
finish
