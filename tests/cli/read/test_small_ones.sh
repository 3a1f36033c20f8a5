# Files that are no data sets are named with the way there; very thin pictures; lists in patterns.
. "$(dirname "$0")/../lib.sh"
command -v python3 >/dev/null || skip "python3 is not there"
make() { PYTHONPATH="$here/read" python3 -c "from made import *; $1" || fail "python3: $1"; }
other() { # FILE BYTES TEXT
    make "put('$1', $2)"
    for command in inspect verify digest; do run 1 $command "$1"; err_has "$1: offset 0: this is $3"; done
}
make 'zip_of("a.zip", [("x.bin", b"x")])'
run 1 inspect a.zip; err_has "a.zip: offset 0: this is a zip archive"; err_has "unzip"
other p.parquet 'b"PAR1" + bytes(60)' "a Parquet file"; err_has "from_parquet()"
other a.arrow 'b"ARROW1" + bytes(60)' "an Arrow file"
other k.pkl 'b"\x80\x04\x95" + bytes(60)' "a pickle of Python"; err_has "numpy.savez"
other s.tar.zst 'b"\x28\xb5\x2f\xfd" + bytes(60)' "packed by zstd"; err_has "zstd -d"
other x.tar.xz 'b"\xfd7zXZ\0" + bytes(60)' "packed by xz"; err_has "xz -d"
other b.tar.bz2 'b"BZh91AY" + bytes(60)' "packed by bzip2"; err_has "bzip2 -d"
other h.h5 'b"\x89HDF\r\n\x1a\n" + bytes(60)' "an HDF5 file"
other u.csv '"path,label\na.jpg,1\n".encode("utf-16")' "text in UTF-16"; err_has "iconv -f UTF-16 -t UTF-8"

# thinner than 1 in 4,096 once its shorter side is as long as asked for: the crop is there
make 'put("thin/a/0.png", png((1, 2, 3), 9000, 1)); put("thin/b/0.png", png((1, 2, 3), 1, 9000)); put("thin/b/1.png", png((1, 2, 3), 300, 300))'
run 0 digest thin --augment center224 --order sequential; thin=$(cut -d' ' -f1 out)
make '[put("thick/" + n, png((1, 2, 3), 300, 300)) for n in ("a/0.png", "b/0.png", "b/1.png")]'
run 0 digest thick --augment center224 --order sequential; equal "$(cut -d' ' -f1 out)" "$thin"

# {a,b} as a shell has it
make '[tar(n, labelled(["%s%d" % (n[0], k) for k in range(3)])) for n in ("x.tar", "y.tar", "z0.tar", "z1.tar")]'
run 0 inspect '{x,y}.tar'; out_has "samples   6"
run 0 inspect '{x,z{0..1}}.tar'; out_has "samples   9"
run 1 inspect '{x,w}.tar'; err_has "w.tar"; err_has "the pattern asks for it"

# class folders whose accents are written in two forms of Unicode
make '
for part, name in (("train", "caf\u00e9"), ("val", "cafe\u0301")):
    [put("accents/%s/%s/%d.png" % (part, c, k), picture(k)) for c in (name, "tea") for k in range(3)]
'
run 1 inspect accents --split test; err_has "one that looks the same"; err_has "NFC, NFD"
mv accents/val/caf* accents/train
run 0 inspect accents; out_has "two classes look the same"; out_has "classes   3"

# MNIST as Kaggle has it: files with dots in their names beside folders of the same names
make '
for base, kind, magic, n in (("train-images", "idx3-ubyte", 0x803, 20), ("train-labels", "idx1-ubyte", 0x801, 20), ("t10k-images", "idx3-ubyte", 0x803, 10), ("t10k-labels", "idx1-ubyte", 0x801, 10)):
    data = struct.pack(">II", magic, n) + (struct.pack(">II", 4, 4) + bytes(16 * n) if magic == 0x803 else bytes(k % 10 for k in range(n)))
    put("mnist/%s.%s" % (base, kind), data); put("mnist/%s-%s/%s-%s" % (base, kind, base, kind), data)
'
run 0 inspect mnist; out_has "format    idx"; out_has "samples   20"; run 0 inspect mnist --split test; out_has "samples   10"
finish
