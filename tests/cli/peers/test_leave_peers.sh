# What convert --to tfrecord and --to tar write, read by the software these formats come from: MRT_TENSORFLOW_PYTHON and
# MRT_WEBDATASET_PYTHON name Pythons that have it.
. "$(dirname "$0")/../lib.sh"
XDG_CACHE_HOME=$temp/cache
export XDG_CACHE_HOME

# peer MODULE PYTHON
peer() {
    if ! "$2" -c "import $1, numpy" >/dev/null 2>&1; then
        echo "no $1 in $2"
        return
    fi
    mkdir "$1" && cp -r d ix "$1" || exit 1
    (cd "$1" && "$2" "$here/peers/leave.py" "$millrace" "$1") >out 2>err || fail "leave.py $1"
    cat out
    ran=yes
}

run 0 synth d --count 13 --size 24 --max-size 48 --quiet
mkdir ix
printf '\000\000\010\003\000\000\000\050\000\000\000\034\000\000\000\034' >ix/train-images-idx3-ubyte
head -c $((40 * 784)) "$millrace" >>ix/train-images-idx3-ubyte
printf '\000\000\010\001\000\000\000\050' >ix/train-labels-idx1-ubyte
for k in 0 1 2 3 4 5 6 7; do printf '\003\001\004\000\002'; done >>ix/train-labels-idx1-ubyte
ran=
peer tensorflow "${MRT_TENSORFLOW_PYTHON:-python3}"
peer webdataset "${MRT_WEBDATASET_PYTHON:-python3}"
[ -n "$ran" ] || skip "neither TensorFlow nor webdataset (MRT_TENSORFLOW_PYTHON and MRT_WEBDATASET_PYTHON name other Pythons)"
finish
