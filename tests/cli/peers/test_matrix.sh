# Writers x readers: what TensorFlow, webdataset, MXNet, Mosaic Streaming, Python's tarfile and we write, read by all of us; see matrix.py.
# MRT_TENSORFLOW_PYTHON, MRT_WEBDATASET_PYTHON, MRT_MXNET_PYTHON, MRT_STREAMING_PYTHON (mosaicml-streaming) and MRT_WIDS_PYTHON name Pythons
# with these packages; the table omits missing ones.
. "$(dirname "$0")/../lib.sh"
command -v python3 >/dev/null || skip "python3 is not installed"
XDG_CACHE_HOME=$temp/cache
export XDG_CACHE_HOME
python3 "$here/peers/matrix.py" "$millrace" || fail "matrix.py"
finish
