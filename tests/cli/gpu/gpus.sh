# tests/cli/gpu/gpus.sh: for scripts that need emulated GPUs; sourced behind lib.sh. CUDA_VISIBLE_DEVICES of the user does not count.
export LD_LIBRARY_PATH
LD_LIBRARY_PATH=$(cd "$(dirname "$millrace")/../tests/cuda_emu/lib" && pwd)
unset CUDA_VISIBLE_DEVICES

# be32 N: a number as IDX files have it
# shellcheck disable=SC2059 # the octal escapes are the format
be32() { printf "\\$(printf %03o $(($1 >> 24)))\\$(printf %03o $(($1 >> 16 & 255)))\\$(printf %03o $(($1 >> 8 & 255)))\\$(printf %03o $(($1 & 255)))"; }

# digits_of FOLDER COUNT PICTURES LABELS: COUNT samples as IDX files; PICTURES and LABELS give their bytes
digits_of() {
    mkdir -p "$1"
    { be32 2051; be32 "$2"; be32 28; be32 28; $3 | head -c $(($2 * 784)); } >"$1/train-images-idx3-ubyte"
    { be32 2049; be32 "$2"; $4 | head -c "$2"; } >"$1/train-labels-idx1-ubyte"
}
some_bytes() { cat "$millrace"; }
some_labels() { while :; do printf '\001\007\003\000\011\004\002\010\005\006'; done 2>/dev/null; }
