"""Writers x readers: every file that one of them wrote, read by all who know its format. See test_matrix.sh.

matrix.py MILLRACE            writes and reads everything, prints the table, and fails where a cell differs from the input
matrix.py PEER write|read     the mode above starts this one in the Python that has the peer's software. read: jobs as JSON on stdin,
                              results as JSON on stdout

Pictures are JPEG and PNG, colour and gray, of several sizes, in three sets: all of them, all without class 0, and the PNGs alone for
writers that store pixels. Equal means the same number of samples, order, labels and encoded bytes; for PNGs and pixels, where a reader has
a decoder, also the decoded values, compared with the output of png() below. For JPEG the bytes are enough. Our own reading also goes
through the loader: its digest of labels and pixels equals the digest of the picture files."""
import json
import os
import shutil
import struct
import subprocess
import sys
import tarfile
import zlib

import formats_lib as lib

CLASSES, SHARDS = 4, 3
SETS = {"all": "all classes", "from1": "without class 0", "png": "PNG only"}
PEERS = {"tensorflow": "MRT_TENSORFLOW_PYTHON", "webdataset": "MRT_WEBDATASET_PYTHON", "mxnet": "MRT_MXNET_PYTHON",
         "streaming": "MRT_STREAMING_PYTHON", "wids": "MRT_WIDS_PYTHON"}
READERS = {"millrace": {"tfrecord", "tar", "rec", "mds", "mds.gz", "mrec"}, "tensorflow": {"tfrecord"}, "webdataset": {"tar"}, "tarfile": {"tar"},
           "mxnet": {"rec"}, "streaming": {"mds"}, "wids": {"tar"}}


def samples_of(which):
    """(label, path, name of the class, bytes), as the one above put them down."""
    with open(which + ".json") as f:
        return [(label, path, name, lib.contents(path)) for label, path, name in json.load(f)]


def class_names():
    return sorted({name for _, _, name, _ in samples_of("all")})


def ending(data):
    return "jpg" if data[:2] == b"\xff\xd8" else "png"


def values(height, width, channels, data):
    """A picture's values as all compare them: colour, rows first."""
    if channels == 1:
        data = bytes(v for v in data for _ in range(3))
    assert len(data) == 3 * height * width, (height, width, channels, len(data))
    return lib.digest(struct.pack("<II", height, width) + data)


def found(label, data, pixels=None):
    return [int(label), lib.digest(data) if data else None, pixels]


# ---- the rows
def rows(which):
    """name, who writes it, its format, the file or folder given to us, the files given to others, and whether it names its classes."""
    t, shards = which + "/", range(SHARDS)
    if which == "png":
        yield "TensorFlow, pixels", "tensorflow", "tfrecord", t + "tf.raw", [t + "tf.raw"], False
        yield "millrace, TFRecord of pixels", "millrace", "tfrecord", t + "raw.tfrecord", [t + "raw.tfrecord"], False
        yield "millrace, record file of pixels", "millrace", "mrec", t + "raw.mrec", [], True
        return
    yield "TensorFlow", "tensorflow", "tfrecord", t + "tf", [t + "tf"], False
    yield "TensorFlow, gzip", "tensorflow", "tfrecord", t + "tf.gz", [t + "tf.gz"], False
    yield f"TensorFlow, {SHARDS} shards", "tensorflow", "tfrecord", t + "tf.set", [t + f"tf.set/s-{k:05d}-of-{SHARDS:05d}" for k in shards], False
    for kind in ("tar", "tar.gz"):
        yield f"webdataset, shards, .{kind}", "webdataset", "tar", t + kind + ".set", t + kind + ".set", False
    yield "Python tarfile, PAX", "tarfile", "tar", t + "pax.tar", [t + "pax.tar"], False
    yield "Python tarfile, GNU, with `__classes__`", "tarfile", "tar", t + "named.tar", [t + "named.tar"], True
    yield "MXNet im2rec: .lst, .rec, .idx", "mxnet", "rec", t + "im2rec.rec", [t + "im2rec"], False
    yield "MXNet MXIndexedRecordIO", "mxnet", "rec", t + "indexed/m.rec", [t + "indexed/m"], False
    yield "RecordIO by these scripts", "tarfile", "rec", t + "own.rec", [t + "own"], False
    yield "millrace, TFRecord", "millrace", "tfrecord", t + "m.tfrecord", [t + "m.tfrecord"], False
    yield "millrace, TFRecord shards", "millrace", "tfrecord", t + "m.tfset", t + "m.tfset", False
    yield "millrace, tar", "millrace", "tar", t + "m.tar", [t + "m.tar"], True
    yield "millrace, tar shards", "millrace", "tar", t + "m.tarset", t + "m.tarset", True
    for kind in ("plain", "gz"):  # LocalDataset reads no packed shards
        files_ = [t + kind + ".mds"]
        yield f"Mosaic MDSWriter, {kind}", "streaming", "mds" if kind == "plain" else "mds.gz", files_[0], files_, False
    yield "millrace, MDS", "millrace", "mds", t + "m.mds", [t + "m.mds"], True
    yield "millrace, MDS shards", "millrace", "mds", t + "m.shards.mds", [t + "m.shards.mds"], True
    yield "millrace, RecordIO", "millrace", "rec", t + "m.rec", [t + "m"], False
    yield "millrace, record file", "millrace", "mrec", t + "m.mrec", [], True


def index_of(row):
    """The sample index next to archives that we wrote; None: the row is without one."""
    if row[1] != "millrace" or row[2] != "tar":
        return None
    return row[4][0].removesuffix(".tar") + ".wids.json" if isinstance(row[4], list) else row[4] + "/m.wids.json"


def files(paths):
    """A list as it is, or what lies in a folder."""
    return paths if isinstance(paths, list) else sorted(os.path.join(paths, name) for name in os.listdir(paths) if not name.endswith((".mridx", ".json")))


# ---- writers
def write_tensorflow():
    tf = lib.tensorflow()
    for which in ("all", "from1"):
        examples = [lib.tf_example({"image/encoded": data, "image/class/label": [label]}) for label, _, _, data in samples_of(which)]
        lib.write_tfrecords([which + "/tf"], examples)
        lib.write_tfrecords([which + "/tf.gz"], examples, "GZIP")
        lib.write_tfrecords([f"{which}/tf.set/s-{k:05d}-of-{SHARDS:05d}" for k in range(SHARDS)], examples)
    examples = []
    for label, _, _, data in samples_of("png"):
        image = tf.io.decode_png(data).numpy()
        examples.append(lib.tf_example({"image_raw": image.tobytes(), "label": [label], "height": [image.shape[0]],
                                        "width": [image.shape[1]], "depth": [image.shape[2]]}))
    lib.write_tfrecords(["png/tf.raw"], examples)


def write_webdataset():
    import webdataset

    for which in ("all", "from1"):
        for kind in ("tar", "tar.gz"):
            os.makedirs(f"{which}/{kind}.set")
            samples = samples_of(which)
            with webdataset.ShardWriter(f"{which}/{kind}.set/%06d.{kind}", maxcount=-(-len(samples) // SHARDS), verbose=0) as out:
                for k, (label, _, _, data) in enumerate(samples):
                    out.write({"__key__": f"dir/{k:06d}", ending(data): data, "cls": label})


def write_mxnet():
    import mxnet

    im2rec = os.path.join(os.path.dirname(mxnet.__file__), "tools", "im2rec.py")
    for which in ("all", "from1"):
        samples = samples_of(which)
        lib.write_list(which + "/im2rec", [(label, path) for label, path, _, _ in samples])
        subprocess.run([sys.executable, im2rec, which + "/im2rec.lst", ".", "--pass-through"], check=True, stdout=subprocess.DEVNULL)
        os.makedirs(which + "/indexed")
        writer = mxnet.recordio.MXIndexedRecordIO(which + "/indexed/m.idx", which + "/indexed/m.rec", "w")
        for k, (label, _, _, data) in enumerate(samples):
            writer.write_idx(k, mxnet.recordio.pack(mxnet.recordio.IRHeader(0, label, k, 0), data))
        writer.close()


def write_streaming():
    """Bytes of pictures in a column of bytes: its jpeg column would encode them anew."""
    from streaming import MDSWriter

    for which in ("all", "from1"):
        for kind, compression in (("plain", None), ("gz", "gz")):
            columns = {"cls": "int", "jpg": "bytes"}
            with MDSWriter(out=f"{which}/{kind}.mds", columns=columns, compression=compression, hashes=["xxh64"], size_limit=30000) as out:
                for label, _, _, data in samples_of(which):
                    out.write({"cls": label, "jpg": data})


def write_tarfile():
    for which in ("all", "from1"):
        samples = samples_of(which)
        members = [(f"{k:06d}.{end}", value) for k, (label, _, _, data) in enumerate(samples)
                   for end, value in ((ending(data), data), ("cls", str(label).encode()))]
        lib.write_tar(which + "/pax.tar", members)
        lib.write_tar(which + "/named.tar", [("__classes__", "".join(n + "\n" for n in class_names()).encode()), *members], tarfile.GNU_FORMAT)
        lib.write_rec(which + "/own", [(label, path, data) for label, path, _, data in samples])


def write_millrace(run):
    """From files with names of classes: a folder, and an archive, since a folder without its first class would be numbered anew."""
    for which, source in (("all", "pics"), ("from1", "from1/named.tar")):
        run("convert", source, which + "/m.mrec", "--quiet")
        for to, ending_, folder in (("tfrecord", ".tfrecord", "m.tfset"), ("tar", ".tar", "m.tarset")):
            os.makedirs(f"{which}/{folder}")
            index = ["--index", "wids"] if to == "tar" else []
            run("convert", source, which + "/m" + ending_, "--to", to, "--quiet", *index)
            run("convert", source, f"{which}/{folder}/m" + (".tar" if to == "tar" else ""), "--to", to, "--shard-size", "30K", "--quiet", *index)
            assert len(files(f"{which}/{folder}")) > 1, folder
        run("convert", source, which + "/m.rec", "--quiet")
        run("convert", source, which + "/m.mds", "--quiet")
        run("convert", source, which + "/m.shards.mds", "--shard-size", "30K", "--quiet")
        assert len(os.listdir(which + "/m.shards.mds")) > 2
    run("convert", "pngs", "png/raw.tfrecord", "--to", "tfrecord", "--store", "raw", "--quiet")
    run("convert", "pngs", "png/raw.mrec", "--store", "raw", "--quiet")


# ---- readers: a list of found() for each job
def read_tensorflow(paths):
    tf = lib.tensorflow()
    first = lambda features, *names: next((features[n] for n in names if n in features), None)
    out = []
    for record in tf.data.TFRecordDataset(paths, "GZIP" if paths[0].endswith(".gz") else ""):
        features = tf.train.Example.FromString(record.numpy()).features.feature
        number = lambda *names: first(features, *names).int64_list.value[0]
        data = first(features, "image/encoded", "image_raw").bytes_list.value[0]
        label = number("image/class/label", "label")
        if "image_raw" in features or ("image/format" in features and features["image/format"].bytes_list.value[0] == b"raw"):
            sizes = [number("image/" + name, other) for name, other in (("height", "height"), ("width", "width"), ("channels", "depth"))]
            out.append(found(label, None, values(*sizes, tf.io.decode_raw(data, tf.uint8).numpy().tobytes())))
        elif ending(data) == "png":
            image = tf.io.decode_png(data).numpy()
            out.append(found(label, data, values(*image.shape, image.tobytes())))
        else:
            out.append(found(label, data))
    return out


def read_webdataset(paths):
    import io

    import webdataset
    from PIL import Image

    out = []
    for one in webdataset.WebDataset(paths, shardshuffle=False):
        pixels = None
        if "png" in one:
            image = Image.open(io.BytesIO(one["png"])).convert("RGB")
            pixels = values(image.height, image.width, 3, image.tobytes())
        out.append(found(one["cls"], one.get("jpg") or one["png"], pixels))
    return out


def read_mxnet(paths):
    import mxnet

    reader = mxnet.recordio.MXIndexedRecordIO(paths[0] + ".idx", paths[0] + ".rec", "r")
    out = []
    for key in reader.keys:
        head, data = mxnet.recordio.unpack(reader.read_idx(key))
        pixels = None
        if ending(data) == "png":
            image = mxnet.image.imdecode(data).asnumpy()
            pixels = values(*image.shape, image.tobytes())
        out.append(found(head.label, data, pixels))
    reader.close()
    if os.path.exists(paths[0] + ".lst"):
        for one, (label, data) in zip(out, read_mxnet_list(paths[0]), strict=True):
            assert [float(label), lib.digest(data)] == one[:2], (paths[0], "the list says another label, or the index another picture", label, one)
    return out


def read_mxnet_list(name):
    """(label, bytes) as an iterator of pictures has them: the labels of the list, the picture by the index."""
    import mxnet

    pictures = mxnet.image.ImageIter(1, (3, 8, 8), path_imgrec=name + ".rec", path_imgidx=name + ".idx", path_imglist=name + ".lst")
    while True:
        try:
            label, data = pictures.next_sample()
        except StopIteration:
            return
        yield label.asnumpy()[0], data


def read_streaming(paths):
    """Its samples, and the bytes that it decodes pictures from."""
    import numpy
    from streaming import LocalDataset

    out = []
    for one in LocalDataset(paths[0]):
        picture = one.get("image", one.get("jpg"))
        data, pixels = picture, None
        if not isinstance(picture, bytes):
            data = picture.fp.getvalue() if picture.fp else None
            if picture.format == "PNG":
                rgb = numpy.asarray(picture.convert("RGB"))
                pixels = values(*rgb.shape, rgb.tobytes())
        out.append(found(one.get("label", one.get("cls")), data, pixels))
    return out


def read_wids(paths):
    """By the index: each sample by its number, last one first; only this package knows the index."""
    import contextlib

    import wids

    with contextlib.redirect_stdout(sys.stderr):
        data = wids.ShardListDataset(paths[0], transformations=[lambda one: one])
        out = []
        for k in reversed(range(len(data))):
            one = {name: value.read() for name, value in data[k].items() if name.startswith(".")}
            out.append(found(one[".cls"], one.get(".jpg") or one[".png"]))
    return out[::-1]


def read_tarfile(paths):
    out = []
    for path in paths:
        keys = {}
        with tarfile.open(path) as tar:
            for member in tar:
                key, _, end = member.name.rpartition(".")
                if not member.name.startswith("__"):
                    keys.setdefault(key, {})[end] = tar.extractfile(member).read()
        out += [found(one["cls"], one.get("jpg") or one["png"]) for one in keys.values()]
    return out


def png(data):
    """The values of a PNG of 8 bits without palette: enough to compare others with."""
    at, packed, head = 8, b"", None
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        if kind == b"IHDR":
            head = struct.unpack(">IIBBBBB", data[at + 8:at + 8 + size])
        packed += data[at + 8:at + 8 + size] if kind == b"IDAT" else b""
        at += 12 + size
    width, height, bits, colour, _, _, interlaced = head
    assert bits == 8 and colour in (0, 2) and not interlaced, head
    channels = 3 if colour == 2 else 1
    stride, raw, above, out = width * channels, zlib.decompress(packed), bytes(width * channels), b""
    for y in range(height):
        row, kind = bytearray(raw[y * (stride + 1) + 1:(y + 1) * (stride + 1)]), raw[y * (stride + 1)]
        for x in range(stride):
            left, corner = (row[x - channels], above[x - channels]) if x >= channels else (0, 0)
            guess = left + above[x] - corner
            nearest = min((left, above[x], corner), key=lambda v: abs(guess - v))
            row[x] = (row[x] + (0, left, above[x], (left + above[x]) // 2, nearest)[kind]) & 255
        out, above = out + bytes(row), bytes(row)
    return values(height, width, channels, out)


def read_millrace(run, data, offset, named):
    """Read DATA twice: the files' contents by export, and the loader's batches. Class names map labels."""
    about = json.loads(run("inspect", data, *offset, "--json"))
    assert not named or about["classes"] == class_names(), (data, about["classes"])
    names = {name: label for label, name in enumerate(about["classes"])}
    shutil.rmtree("exported", ignore_errors=True)
    run("export", data, "exported", *offset, "--numbered", "--quiet")
    samples = {}
    for picture, _, name, path in lib.listed("exported"):
        pixels = png(picture) if ending(picture) == "png" else None
        samples[int(os.path.basename(path)[:-4])] = found(names.get(name, -1) if names else name, picture, pixels)
    assert about["samples"] == len(samples) == max(samples) + 1, (about["samples"], len(samples))
    return [samples[k] for k in sorted(samples)], sequential(run, data, *offset)


def sequential(run, data, *options):
    return run("digest", data, *options, "--order", "sequential", "--augment", "resize(20x20)", "--channels", "3", "--batch", "7").split()[0]


# ---- all of it
def make_pictures(run):
    """pics/, pngs/ and the sets; each set also as a table, which the loader's digests are compared with."""
    kinds = (("jpeg", "3"), ("jpeg", "1"), ("png", "3"), ("png", "1"))
    for k, (kind, channels) in enumerate(kinds):
        run("synth", f"synth{k}", "--count", "3", "--classes", str(CLASSES), "--size", "16", "--max-size", "28", "--image", kind,
            "--channels", channels, "--seed", str(k), "--quiet")
        for _, _, name, path in lib.listed(f"synth{k}/train"):
            for folder in ("pics", "pngs") if kind == "png" else ("pics",):
                os.makedirs(f"{folder}/{name}", exist_ok=True)
                shutil.copy(f"synth{k}/train/{path}", f"{folder}/{name}/{k}-{os.path.basename(path)}")
    everything = [(label, "pics/" + path, name) for _, label, name, path in lib.listed("pics")]
    sets = {"all": everything, "from1": [one for one in everything if one[0] > 0], "png": [one for one in everything if one[1].endswith(".png")]}
    for which, samples in sets.items():
        os.makedirs(which)
        with open(which + ".json", "w") as f:
            json.dump(samples, f)
        with open(which + ".csv", "w") as f:
            f.write("path,label\n" + "".join(f"{path},{label}\n" for label, path, _ in samples))


def peer(python, name, what, jobs=None):
    done = subprocess.run([python, __file__, name, what], input=json.dumps(jobs), capture_output=True, text=True)
    assert done.returncode == 0, (name, what, done.stderr[-2000:])
    return json.loads(done.stdout) if what == "read" else None


def find_peers():
    """name -> Python, for the peers that are installed."""
    there = {}
    for name, variable in PEERS.items():
        python = os.environ.get(variable) or "python3"
        wants = name + (", PIL" if name == "webdataset" else "")
        if subprocess.run([python, "-c", "import " + wants], capture_output=True).returncode == 0:
            there[name] = python
        else:
            print(f"skipped: {name}, which {python} has not ({variable} names another Python)")
    return there


def unequal(read, want):
    """Why, or None."""
    if isinstance(read, str):
        return read
    if len(read) != len(want):
        return f"{len(read)} samples instead of {len(want)}"
    for what, at in (("label", 0), ("bytes", 1), ("pixels", 2)):
        bad = [k for k, (a, b) in enumerate(zip(read, want)) if a[at] is not None and b[at] is not None and a[at] != b[at]]
        if bad:
            return f"{what} of {len(bad)} samples, first {bad[0]}: {read[bad[0]][at]} instead of {want[bad[0]][at]}"
    unseen = [k for k, one in enumerate(read) if one[1] is None and one[2] is None]
    return f"nothing of sample {unseen[0]} was compared" if unseen else None


def read_all(run, there, table):
    """(set, row, reader) -> (found, or why not; digest or None)"""
    cells = {}
    for reader, formats in READERS.items():
        jobs = {(which, row[0]): row for which, row in table if row[2] in formats and (reader != "wids" or index_of(row))}
        if reader == "millrace":
            for (which, name), row in jobs.items():
                offset = ("--label-offset", "0") if which != "all" and not row[5] else ()
                try:
                    cells[which, name, reader] = read_millrace(run, row[3], offset, row[5])
                except AssertionError as why:
                    cells[which, name, reader] = f"not read: {why}", None
        elif reader == "tarfile" or reader in there:
            lists = [[index_of(row)] if reader == "wids" else files(row[4]) for row in jobs.values()]
            answers = [read_tarfile(paths) for paths in lists] if reader == "tarfile" else peer(there[reader], reader, "read", lists)
            for key, answer in zip(jobs, answers):
                cells[(*key, reader)] = answer, None
    return cells


def wanted(which, pixels_only):
    out = []
    for label, _, _, data in samples_of(which):
        out.append(found(label, None if pixels_only else data, png(data) if ending(data) == "png" else None))
    return out


def show(run, table, cells, there):
    """The table; how many cells are wrong."""
    wrong = 0
    readers = [reader for reader in READERS if reader in ("millrace", "tarfile") or reader in there]
    want = {which: wanted(which, which == "png") for which in SETS}
    digests = {which: sequential(run, which + ".csv", "--label-offset", "0") for which in SETS}
    assert digests["all"] == sequential(run, "pics") and digests["png"] == sequential(run, "pngs")
    print("\n| written by | " + " | ".join(readers) + " |\n|---|" + "---|" * len(readers))
    for name in dict.fromkeys(row[0] for _, row in table):
        texts = []
        for reader in readers:
            text = []
            for which, row in table:
                if row[0] != name or (which, name, reader) not in cells:
                    continue
                read, digest = cells[which, name, reader]
                why = unequal(read, want[which]) or ("another digest" if digest not in (None, digests[which]) else None)
                wrong += why is not None
                text.append(f"WRONG: {SETS[which]}: {why}" if why else f"{len(read)}")
            texts.append(" + ".join(text) or "-")
        print(f"| {name} | " + " | ".join(texts) + " |")
    counts = ", ".join(f"{len(want[which])} {what}" for which, what in SETS.items())
    print(f"\nSamples equal in order, label, bytes and pixels ({counts}); -: no reader of that format\n")
    return wrong


def main(millrace):
    run = lib.command(millrace)
    there = find_peers()
    make_pictures(run)
    write_tarfile()
    write_millrace(run)
    for name, python in there.items():
        if name != "wids":
            peer(python, name, "write")
    table = [(which, row) for which in SETS for row in rows(which) if row[1] in ("millrace", "tarfile") or row[1] in there]
    wrong = show(run, table, read_all(run, there, table), there)
    sys.exit(f"{wrong} cells are wrong" if wrong else 0)


if len(sys.argv) == 2:
    main(sys.argv[1])
elif sys.argv[2] == "write":
    {"tensorflow": write_tensorflow, "webdataset": write_webdataset, "mxnet": write_mxnet, "streaming": write_streaming}[sys.argv[1]]()
else:
    read = {"tensorflow": read_tensorflow, "webdataset": read_webdataset, "mxnet": read_mxnet, "streaming": read_streaming,
            "wids": read_wids}[sys.argv[1]]
    print(json.dumps([read(paths) for paths in json.load(sys.stdin)]))
