# Cards of sets (--card), read by mlcroissant and huggingface_hub: MRT_CARDS_PYTHON names a Python that has both (and pillow; with `datasets`
# the sets are loaded, too).
. "$(dirname "$0")/../lib.sh"
python=${MRT_CARDS_PYTHON:-python3}
"$python" -c "import mlcroissant, huggingface_hub, PIL" 2>/dev/null ||
    skip "no mlcroissant, huggingface_hub and pillow in $python (MRT_CARDS_PYTHON names another Python)"
run 0 synth d --classes 3 --count 4 --test-count 2 --size 12 --quiet
run 0 manifest d --card d/README.md --quiet
run 0 manifest d --card d/croissant.json --quiet
cards="d/README.md d/croissant.json"
for to in mrec tar tfrecord mds recordio; do
    set -- --to $to --shard-size 12K
    mkdir $to
    dst=$to/s; folder=$to
    [ $to = mds ] && { dst=$to/s.mds; folder=$dst; }
    run 0 convert d $dst "$@" --card $folder/README.md --quiet
    case $to in
    tar) dst='tar/s-*.tar' ;;
    recordio) dst='recordio/s-*.rec' ;;
    tfrecord) dst=$(ls tfrecord/s-00000-of-*) ;;
    esac
    run 0 manifest "$dst" --card $folder/croissant.json --quiet
    cards="$cards $folder/README.md $folder/croissant.json"
done
for part in train test; do
    mkdir -p parts/$part
    run 0 convert d parts/$part/s.tar --split $part --to tar --shard-size 12K --quiet
done
for card in README.md croissant.json; do
    run 0 manifest parts --card parts/$card --quiet
    cards="$cards parts/$card"
done
# shellcheck disable=SC2086 # a list of names without blanks
XDG_CACHE_HOME=$temp/cache HF_HUB_OFFLINE=1 HF_DATASETS_OFFLINE=1 "$python" "$here/peers/cards.py" . $cards >out 2>err || fail "cards.py"
last=cards.py
cat out
equal "$(wc -l <out | tr -d ' ')" 14
out_has 'd/croissant.json {"records": {"classes": 3, "test": 6, "test/class": 3, "train": 12, "train/class": 3}'
out_has 'tar/croissant.json {"records": {"classes": 3, "labels": 12, "labels/label": 3, "pictures": 12}'
out_has '"test-labels": 6, "test-labels/label": 3, "test-pictures": 6, "train-labels": 12, "train-labels/label": 3, "train-pictures": 12}'
grep -q '^parts/README.md .*"splits": {"test": 6, "train": 12}' out || fail "parts/README.md"
out_has 'mrec/croissant.json {"records": {"classes": 3}'
grep -q '^d/README.md .*"splits": {"test": 6, "train": 12}' out || fail "d/README.md"
grep -q '^tar/README.md .*"splits": {"train": 12}' out || fail "tar/README.md"
finish
