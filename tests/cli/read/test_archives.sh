# Class folders in an archive, as sets are downloaded: the same samples in the same order as the unpacked folder.
. "$(dirname "$0")/../lib.sh"
command -v python3 >/dev/null || skip "python3 is not there"
make() { PYTHONPATH="$here/read" python3 -c "from made import *
def all_files(folder):
    for where, _, files in sorted(os.walk(folder)):
        for name in files:
            path = os.path.join(where, name)
            yield os.path.relpath(path, '.'), open(path, 'rb').read()
def stored_rar(files): # the format of RAR 4; nothing is packed
    def block(kind, flags, body, data=b''):
        head = struct.pack('<BHH', kind, flags, 7 + len(body)) + body
        return struct.pack('<H', zlib.crc32(head) & 0xffff) + head + data
    def one(name, data):
        fields = len(data), len(data), 3, zlib.crc32(data), 0, 20, 0x30, len(name), 0o100644
        return block(0x74, 0x8000, struct.pack('<IIBIIBBHI', *fields) + name.encode(), data)
    return b'Rar!\\x1a\\x07\\x00' + block(0x73, 0, bytes(6)) + b''.join(one(*f) for f in files) + block(0x7b, 0x4000, b'')
$1" || fail "python3: $1"; }
make '
for part, n in (("train", 6), ("val", 2)):
    for c, name in enumerate(("ant", "bee", "cat")):
        for k in range(n):
            put("set/%s/%s/%02d.png" % (part, name, k), picture(c + 3 * k + (50 if part == "val" else 0)))
put("set/README.md", b"read me")
put("set/train/bee/notes.txt", b"no picture")
files = list(all_files("set"))[::-1] # another order than the one of names
tar("set.tar", files); tar("set.tar.gz", files, "w:gz"); zip_of("set.zip", files); zip_of("packed.zip", files, zipfile.ZIP_DEFLATED)
zip_of("mixed.zip", files[:9]); zipfile.ZipFile("mixed.zip", "a", zipfile.ZIP_DEFLATED).close()
with zipfile.ZipFile("mixed.zip", "a", zipfile.ZIP_DEFLATED) as z: [z.writestr(*one) for one in files[9:]]
tar("bare.tar", [(name[4:], data) for name, data in files])
for c in ("ant", "bee", "cat"): tar(c + ".tar", [(os.path.basename(n), d) for n, d in files if "/train/%s/" % c in n])
tar("tars.tar", [(c + ".tar", open(c + ".tar", "rb").read()) for c in ("cat", "ant", "bee")])
'
digest() { run 0 digest "$@" --index-folder off; cut -d' ' -f1 out; }
train=$(digest set); val=$(digest set --split test)
for set in set.tar set.tar.gz set.zip packed.zip mixed.zip bare.tar; do
    run 0 inspect $set; out_has "format    archive"; out_has "samples   18"; out_has "parts     train (taken), validation"
    out_has "classes   3: ant, bee, cat"; out_has "files that are no pictures (README.md, train/bee/notes.txt)"
    equal "$(digest $set)" "$train"
    equal "$(digest $set --split test)" "$val"
    equal "$(digest $set --order sequential --workers 3)" "$(digest set --order sequential)"
    run 0 verify $set; out_has "0 wrong"
    run 0 convert $set $set.mrec --quiet; equal "$(digest $set.mrec)" "$train"
    run 0 inspect $set --record 7; out_has "bee/01.png"
    run 0 train $set --model cifar-cnn-small --augment 'resize(32)' --epochs 1 --batch 6 --quiet
done
run 0 inspect set.tar; out_has "all pictures of the archive lie in set/"; run 0 inspect bare.tar; out_lacks "all pictures of the archive"
# a set of several files from a zip of deflated members, and how it follows and grows
mkdir parts
run 0 convert packed.zip parts/s.mrec --shard-size 20K --quiet; equal "$(digest parts/s.mrec)" "$train"
run 0 convert packed.zip parts/s.mrec --update --quiet; out_has "0 new, 0 changed, 0 gone, 18 the same"
run 0 manifest packed.zip files.txt; grep -q '  packed.zip$' files.txt || fail "files.txt does not list packed.zip: $(cat files.txt)"
printf 'millrace mix 1\n1 set\n1 packed.zip\n' >of.mix
run 1 inspect of.mix; err_has "packed.zip: a zip archive of deflated members cannot be part of a mix"; err_has "line 3 of"
make '
put("set/train/bee/05.png", picture(90)); put("set/train/bee/06.png", picture(91)); files = list(all_files("set"))[::-1]
zip_of("later.zip", files, zipfile.ZIP_DEFLATED)
'
run 1 convert later.zip parts/s.mrec --update --quiet; out_has "changed: train/bee/05.png"; out_has "new: train/bee/06.png"
run 0 convert later.zip parts/s.mrec --update --changed keep --quiet; out_has "19 samples, 18 before; appended 1"
run 0 append parts/s.mrec packed.zip --split test --quiet; run 0 inspect parts/s.mrec; out_has "samples   25"
make 'put("set/train/bee/05.png", picture(1 + 3 * 5)); os.remove("set/train/bee/06.png")'
# a tar of one tar for each class: ImageNet
run 0 inspect tars.tar; out_has "samples   18"; out_has "classes   3: ant, bee, cat"
equal "$(digest tars.tar)" "$(digest set/train)"
run 0 convert tars.tar t.mrec --quiet; equal "$(digest t.mrec)" "$(digest set/train)"
# pictures in two folders, each with boxes or a mask and no class, are samples and no class folders, in either order of the members
make '
for name, ending, data in ("boxes", "boxes.npy", npy(bytes(4), (1, 4))), ("mask", "mask.png", png((1, 1, 1))):
    pairs = [("%s/%d" % (c, k), k) for k in range(3) for c in ("ant", "bee")]
    for late, to in (1, name + "1.tar"), (0, name + "0.tar"):
        two = lambda key, k: [(key + ".png", picture(k)), (key + "." + ending, data)][:: 1 if late else -1]
        tar(to, [one for key, k in pairs for one in two(key, k)])
'
for to in boxes1 boxes0 mask1; do
    run 0 inspect $to.tar --index-folder off; out_has "format    tar"; out_has "samples   6"; out_has "field 1   ${to%?}"; out_lacks "classes"
done
# a table in an archive of class folders, or next to it, is compared with the folders as next to a folder
make '
def rows(*classes): return "".join(["path,label\n"] + ["%s/%02d.png,%s\n" % (f, k, c) for f, c, k in classes]).encode()
years = [("2019/%02d.png" % k, picture(k)) for k in range(4)] + [("2020/%02d.png" % k, picture(k)) for k in range(4)]
wrong = rows(("2019", "ant", 0), ("2019", "bee", 1), ("2020", "ant", 0))
tar("in.tar", years + [("labels.csv", wrong)])
zip_of("in.zip", [("y/" + n, d) for n, d in years] + [("y/metadata.jsonl", b"""{"file_name": "2019/00.png", "label": "2020"}\n""")], zipfile.ZIP_DEFLATED)
tar("same.tar", years + [("labels.csv", rows(("2019", "a", 0), ("2019", "a", 1), ("2020", "b", 0)))])
for to, table in (("next", wrong), ("other", wrong.replace(b"png", b"jpg"))): put(to + "/labels.csv", table); tar(to + "/set.tar", years)
put("one/labels.csv", b"file,label\n00.png,ant\n"); zip_of("one/set.zip", years[:4])
'
run 1 inspect in.tar; err_has "in.tar: labels.csv contradicts the class folders of the archive: it has the class bee for 2019/01.png, and ant for another"
run 1 inspect in.zip; err_has "metadata.jsonl contradicts the class folders of the archive: it has the class 2020 for 2019/00.png"
run 1 inspect next/set.tar; err_has "next/set.tar: next/labels.csv contradicts the class folders of the archive"
run 1 inspect one/set.zip; err_has "all pictures of the archive lie in 2019/, and one/labels.csv has their classes (ant for 00.png)"
for other in same.tar other/set.tar "in.tar --format archive"; do
    # shellcheck disable=SC2086
    run 0 inspect $other; out_has "samples   8"; out_has "classes   2: 2019, 2020"
done
# other rules for folders
run 0 inspect bare.tar --classes none; out_lacks "classes   "

# what libarchive unpacks; pack ENDING makes it from set.tar or set/
pack() {
    case $1 in
    bz2) command -v bzip2 >/dev/null && bzip2 -kc set.tar >set.tar.bz2 ;;
    xz) command -v xz >/dev/null && xz -kc set.tar >set.tar.xz ;;
    zst) command -v zstd >/dev/null && zstd -qc set.tar >set.tar.zst ;;
    7z) command -v 7z >/dev/null && 7z a set.tar.7z set >/dev/null ;;
    rar) make 'open("set.tar.rar", "wb").write(stored_rar(list(all_files("set"))))' ;;
    esac
}
mkdir broken; : >broken/libarchive.so.13
here_is_libarchive() { ! "$millrace" inspect --format archive none.xz 2>&1 | grep -q libarchive13; }
printf '\3757zXZ\0' >none.xz
for kind in bz2 xz zst 7z rar; do
    pack $kind || { echo "not tested: $kind, its packer is not there"; continue; }
    set=set.tar.$kind
    here_is_libarchive || { run 1 inspect $set; err_has "libarchive13"; run 1 inspect $set --format archive; err_has "apt install libarchive13"; continue; }
    run 0 inspect $set; out_has "format    archive"; out_has "samples   18"; out_has "classes   3: ant, bee, cat"
    equal "$(digest $set)" "$train"
    equal "$(digest $set --split test)" "$val"
    equal "$(digest $set --order sequential --workers 3)" "$(digest set --order sequential)"
    run 0 verify $set; out_has "0 wrong"
    run 0 convert $set $set.mrec --quiet; equal "$(digest $set.mrec)" "$train"
    LD_LIBRARY_PATH=$temp/broken run 1 inspect $set; err_has "is installed"
    LD_LIBRARY_PATH=$temp/broken run 1 inspect $set --format archive; err_has "apt install libarchive13"
    head -c $(($(wc -c <$set) * 2 / 3)) $set >cut.$kind
    run 1 inspect cut.$kind --format archive; err_has "cut.$kind"; err_has "cannot be unpacked"
done
if [ -f set.tar.xz ] && here_is_libarchive; then
    xz -kc tars.tar >tars.tar.xz; equal "$(digest tars.tar.xz)" "$(digest set/train)"
    for name in '../c/0.png' 'b/0.png'; do
        make "tar('bad.tar', [('a/0.png', picture(0)), ('a/1.png', picture(1)), ('b/0.png', picture(2)), ('$name', picture(3))])"
        xz -kc bad.tar >bad.tar.xz; run 1 inspect bad.tar.xz; err_has "member \"$name\""
    done
    make "tar('web.tar', [('%s/%s' % (f, n), d) for f in ('a', 'b') for n, d in labelled(['0', '1'])])"
    xz -kc web.tar >web.tar.xz; run 1 inspect web.tar.xz; err_has "xz -d"
    make "tar('bomb.tar', [('a/0.png', picture(0)), ('a/1.png', picture(1)), ('b/0.png', picture(2)), ('b/1.png', bytes(300 << 20))])"
    xz -0c bomb.tar >bomb.tar.xz; rm bomb.tar; run 1 inspect bomb.tar.xz; err_has "fill the disk"
fi
if here_is_libarchive; then # cut between two files; one volume of several
    make 'd = bytearray(open("set.tar.rar", "rb").read()); open("short.rar", "wb").write(d[:-7]); d[10] |= 1; open("volume.rar", "wb").write(d)'
    run 0 inspect short.rar; out_has "the archive has no end mark"; run 1 verify short.rar; out_has "no end mark"
    run 1 inspect volume.rar --format archive; err_has "one volume of a rar archive of several"
    # a block whose sizes add up to 2^64, and so to nothing: no loop
    make 'import struct; b = struct.pack("<HBHHIII", 0, 0x74, 0x8100, 7, 2**32 - 7, 0, 0); b += bytes(32 - len(b)) + struct.pack("<I", 2**32 - 1); open("wraps.rar", "wb").write(open("set.tar.rar", "rb").read()[:7 + 13] + b + bytes(100))'
    "$millrace" inspect wraps.rar --format archive >out 2>err
    "$millrace" verify wraps.rar >out 2>err
fi
if [ -f set.tar.7z ] && here_is_libarchive; then
    mkdir -p long/ant long/empty long/Bär; cp set/train/ant/00.png long/ant; cp set/train/ant/01.png "long/Bär/größe-$(printf '%0120d' 7).png"
    7z a long.7z long >/dev/null; equal "$(digest long.7z)" "$(digest long)"
    run 0 inspect long.7z; out_has "classes   3: "; LC_ALL=C run 0 inspect long.7z; out_has "Bär"
    7z a -psecret secret.7z set >/dev/null; run 1 inspect secret.7z; err_has "is encrypted"
    (cd set && ln -s ../README.md train/ant/z.png && 7z a -snl ../links.7z . >/dev/null); rm set/train/ant/z.png
    run 1 inspect links.7z; err_has 'z.png" is a symbolic link'
fi

# archives of samples keep their meaning
make 'tar("web.tar", [("%s/%s" % (f, n), d) for f in ("a", "b") for n, d in labelled(["0", "1"])])'
run 0 inspect web.tar; out_has "format    tar"; out_has "samples   4"
# class folders in which a few pictures share a stem, with each other or with a note, in the first class or the last; and members of samples
make '
cat, dog = ([("%s/%d.png" % (c, k), picture(5 * i + k)) for k in range(4)] for i, c in enumerate(("cat", "dog")))
beside = [("stem", "%s/3.jpeg", picture(30))] + [(e, "%s/3." + e, b"[1]") for e in ("txt", "json", "csv", "npy")]
for kind, name, data in beside:
    for c in ("cat", "dog"):
        tar("%s-%s.tar" % (kind, c), sorted(cat + dog + [(name % c, data)])); tar("%s-%s.tar.gz" % (kind, c), sorted(cat + dog + [(name % c, data)]), "w:gz")
for kind in "txt", "json", "cls": tar("all-%s.tar" % kind, sorted(cat + dog + [(n[:-3] + kind, b"1") for n, _ in cat + dog]))
'
for c in cat dog; do
    for kind in stem txt json csv npy; do
        for set in $kind-$c.tar $kind-$c.tar.gz; do
            run 0 inspect "$set"; out_has "format    archive"; out_has "classes   2: cat, dog"
            [ $kind = stem ] && out_has "samples   9" || out_has "samples   8"
        done
    done
    mkdir stem; tar xf stem-$c.tar -C stem; equal "$(digest stem-$c.tar)" "$(digest stem)"; rm -r stem
done
make 'tar("large.tar.gz", [("f/0.png", picture(0)), ("f/0.json", b"{}"), ("f/1.png", os.urandom(400 << 10)), ("f/1.json", b"{}")], "w:gz")'
run 0 inspect large.tar.gz; out_has "format    tar"
for kind in txt json cls; do run 0 inspect all-$kind.tar; out_has "format    tar"; out_has "samples   8"; done
make '[tar("one" + e, [("f/%d.png" % k, picture(k)) for k in range(4)], m) for e, m in ((".tar", "w"), (".tar.gz", "w:gz"))]'
for set in one.tar one.tar.gz; do run 0 inspect $set; out_has "format    tar"; out_has "samples   4"; done
make 'npz("x.npz", [("x", bytes(640), (10, 8, 8)), ("y", bytes(10), (10,))])'
run 0 inspect x.npz; out_has "format    npz"

# refused by name
bad() { # MEMBERS TEXT
    make "tar('bad.tar', [('a/0.png', picture(0)), ('a/1.png', picture(1)), ('b/0.png', picture(2))] + $1)"
    for command in inspect verify "convert --force" digest; do
        # shellcheck disable=SC2086 # options
        case $command in convert*) run 1 $command bad.tar bad.mrec ;; *) run 1 $command bad.tar ;; esac
        err_has "bad.tar"; err_has "$2"
    done
}
bad "[('../c/0.png', picture(3))]" 'member "../c/0.png" leads out of the archive'
bad "[('/c/0.png', picture(3))]" 'member "/c/0.png" leads out of the archive'
bad "[('b/0.png', picture(3))]" 'member "b/0.png" comes twice'
bad "[('b/0.png/x.png', picture(3))]" 'member "b/0.png/x.png" is a file and a folder at once'
make '
with tarfile.open("bad.tar", "w") as t:
    for name in ("a/0.png", "a/1.png", "b/0.png"):
        i = tarfile.TarInfo(name); i.size = len(picture(0)); t.addfile(i, io.BytesIO(picture(0)))
    i = tarfile.TarInfo("b/1.png"); i.type = tarfile.SYMTYPE; i.linkname = "../a/0.png"; t.addfile(i)
'
run 1 inspect bad.tar; err_has 'member "b/1.png" is a symbolic link'
make '
data = bytearray(open("set.zip", "rb").read())
at = data.index(b"PK\1\2"); data[at + 8] |= 1; data[6] |= 1
open("secret.zip", "wb").write(data)
data = bytearray(open("set.zip", "rb").read()); at = data.rindex(b"IDAT"); data[at + 6] ^= 255
open("flipped.zip", "wb").write(data)
data = bytearray(open("packed.zip", "rb").read()); at = data.index(b"PK\1\2"); data[at + 24:at + 28] = b"\xff\xff\xff\x7f"; open("bomb.zip", "wb").write(data)
'
run 1 inspect secret.zip; err_has "is encrypted"
run 1 verify flipped.zip; grep -q "CRC" out err || fail "flipped.zip: expected a report of the CRC"
run 1 inspect bomb.zip; err_has "says more bytes than it can hold"
head -c 2400 set.tar >cut.tar; run 1 inspect cut.tar; err_has "cut.tar"; err_has "is the file whole?"
head -c 12288 bare.tar >cut.tar; run 0 inspect cut.tar; out_has "the archive has no end mark"; run 1 verify cut.tar; out_has "cut between two members"
head -c 900 set.zip >cut.zip; run 1 inspect cut.zip; err_has "cut.zip"
finish
