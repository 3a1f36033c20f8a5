# TFRecords written by TensorFlow: the loader's batches equal the batches of the source folder.
. "$(dirname "$0")/../lib.sh"

python=${MRT_TENSORFLOW_PYTHON:-python3}
"$python" -c 'import tensorflow' >/dev/null 2>&1 || {
    echo "SKIP: no TensorFlow in $python (MRT_TENSORFLOW_PYTHON names another Python)"
    exit 77
}
run 0 synth d --count 13 --quiet
"$python" "$here/peers/tfrecord.py" d/train >out 2>err || fail "tfrecord.py"
set -- --epochs 2 --seed 3 --batch 32 --training --augment cifar
run 0 digest d "$@"; cp out want
for data in plain gzip zlib one plain/train-00003-of-00005 "gzip/train-{00000..00004}-of-*"; do
    run 0 digest "$data" "$@"; same out want # scanned
    run 0 digest "$data" "$@" --workers 3 --io pread; same out want # from the index
done
run 0 digest from1 "$@" --label-offset 1; same out want # labels from 1 stay as they are by default
run 0 digest from1 "$@"; cmp -s out want && fail "labels from 1 became labels from 0"
present plain/.train-00000-of-00005.mridx
present .one.mridx
run 0 digest png --augment none --batch 7; cp out want_noise
run 0 digest raw --augment none --batch 7; same out want_noise

run 0 inspect gzip --json
equal "$(text format)" tfrecord
equal "$(number samples)$(number count)" 130
run 0 convert gzip c.mrec --quiet
run 0 verify c.mrec
run 0 digest c.mrec "$@"; same out want
run 0 train plain --model cifar-cnn --epochs 1 --batch 32 --quiet
run 1 digest "plain/train-{00000..00007}-of-00005" "$@"; err_has "train-00005-of-00005"
finish
