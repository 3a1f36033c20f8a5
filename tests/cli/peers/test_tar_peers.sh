# tar archives of other writers, read by us and by other readers; MRT_WEBDATASET_PYTHON names a Python that has webdataset.
. "$(dirname "$0")/../lib.sh"

python=${MRT_WEBDATASET_PYTHON:-python3}
command -v "$python" >/dev/null || { echo "SKIP: no $python"; exit 77; }
XDG_CACHE_HOME=$temp/cache "$python" "$here/peers/tar_peers.py" "$millrace" "$temp"
