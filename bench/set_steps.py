"""The steps of sets.py, in their order. Each is a function of a Journey; it raises Unexpected if a result is not the expected one."""
import collections
import glob
import json
import os
import re
import shutil
import zlib

from set_journey import expect, files_below, flat_jpeg, flip, same, sum_of, sums

STEPS = []
Step = collections.namedtuple("Step", "letter what function")


def step(letter, what):
    def add(function):
        STEPS.append(Step(letter, what, function))
        return function
    return add


def last_json(run):
    return json.loads([line for line in run.out.splitlines() if line.startswith("{")][-1])


def shards(path):
    return sorted(glob.glob(path))


def sized(journey, name, *, to, count=8, photos=None):
    """The set in about `count` files; returns the common beginning of their names."""
    journey.prepare("convert", photos or journey.photos, journey.at(name), "--to", to, "--shard-size", journey.shard_bytes(count))
    return journey.at(name)


def without_class(names):
    return sorted(name for name in names if "/" not in name)


# ---- A to L: facts that were reported wrongly, or not at all ----

@step("A", "archives of one size: none is called a copy of another")
def row_a(j):
    sized(j, "t", to="tar")
    run = j.run("inspect", j.at("t-*.tar"), says=rf"^samples +{len(j.names)}$", lacks=["same bytes as another", "remove"])
    expect(f"{len(shards(j.at('t-*.tar')))}:" in run.out, "the number of files is not in the output")


@step("A", "an archive that is there twice is called a copy")
def row_a_copy(j):
    sized(j, "t", to="tar")
    first = shards(j.at("t-*.tar"))[0]
    shutil.copy(first, j.at("t-900000.tar"))
    j.run("inspect", j.at("t-*.tar"), says=["has the same bytes as another"])


@step("B", "each line of progress has a rate above 0")
def row_b(j):
    run = j.run("convert", j.photos, j.at("o.mrec"))
    lines = [line for line in run.err.splitlines() if re.search(r"\d of \d+ samples", line)]
    expect(not any(re.search(r", 0/s", line) for line in lines), f"a rate of 0: {lines}")
    expect(all("left" in line for line in lines[1:-1] if "/s" in line), f"a line of progress without a time left: {lines}")
    j.is_whole(j.at("o.mrec"))


@step("C", "killed, a picture already taken changes at the same size: --resume refuses and names it")
def row_c(j):
    many, part, out = j.at("many"), j.at("c.mrec.part"), j.at("c.mrec")
    copies = max(1, 3000 // len(j.names))  # enough samples to be killed among them
    for k in range(copies):
        for name in j.names:
            to = os.path.join(many, os.path.dirname(name), f"{k:03}-{os.path.basename(name)}")
            os.makedirs(os.path.dirname(to), exist_ok=True)
            shutil.copy2(os.path.join(j.photos, name), to)
    for _ in range(20):
        if j.kill_when(lambda: os.path.exists(part) and os.path.getsize(part) > j.bytes * copies // 3, "convert", many, out) and \
                os.path.exists(part):
            break
        for old in glob.glob(j.at("c.mrec*")):
            os.remove(old)
    else:
        expect(False, "it ended before it could be killed")
    first = files_below(many)[0]
    with open(os.path.join(many, first), "r+b") as f:
        f.seek(-3, os.SEEK_END)
        f.write(b"\x55")
    j.run("convert", many, out, "--resume", status=1, says=re.escape(os.path.basename(first)))
    expect(not os.path.exists(out), "an output was written")


@step("D", "a picture of 8,000 x 8,000 pixels with little memory: converted, or left out, but the run does not end")
def row_d(j):
    photos = j.copy("photos", j.names[:20])
    with open(os.path.join(photos, os.path.dirname(j.names[0]), "zz-large.jpg"), "wb") as f:
        f.write(flat_jpeg(8000))
    run = j.run("convert", photos, j.at("d.mrec"), "--max-pixels", "500000000", "--memory", "64M", says=r"21 records")
    expect(run.peak_mb < 64 + 32, f"{run.peak_mb:.0f} MB for --memory 64M")
    j.is_whole(j.at("d.mrec"), sums(photos))


@step("E", "names that are no file names: the changed ones are counted and listed")
def row_e(j):
    photos, first = j.copy("photos", j.names[:6]), j.names[:3]
    for old, new in zip(first, ("new\nline.jpg", "n" * 251 + ".jpg", "tab\t.jpg")):
        os.rename(os.path.join(photos, old), os.path.join(photos, os.path.dirname(old), new))
    j.prepare("convert", photos, j.at("e.mrec"))
    run = j.run("export", j.at("e.mrec"), j.at("back"), says=r"names? (was|were) changed")
    with open(j.at("back.names.jsonl"), encoding="utf-8") as f:
        rows = [json.loads(line) for line in f]
    changed = [row for row in rows if row["event"] == "renamed"]
    same(len(changed), int(re.search(r"(\d+) names? (?:was|were) changed", run.out)[1]), "rows of the list")
    same(sorted(sums(j.at("back")).values()), sorted(sums(photos).values()), "pictures")


@step("F", "a changed byte in a picture of an archive: verify finds it")
def row_f_tar(j):
    j.prepare("convert", j.photos, j.at("f.tar"))
    with open(os.path.join(j.photos, j.names[-1]), "rb") as f:
        picture = f.read()
    with open(j.at("f.tar"), "rb") as f:
        at = f.read().index(picture)
    flip(j.at("f.tar"), at + len(picture) - 1)
    j.run("verify", j.at("f.tar"), "--no-decode", status=1, says=r"checksum does not match")


@step("F", "a changed byte in a folder: verify names the limit of its check, and finds the byte by a manifest")
def row_f_folder(j):
    photos = j.copy("photos")
    j.prepare("manifest", photos, j.at("m.sha256"))
    at = os.path.join(photos, j.names[1])
    flip(at, os.path.getsize(at) - 1)
    j.run("verify", photos, "--no-decode", says="has no checksums of its contents")
    j.run("verify", photos, "--no-decode", "--manifest", j.at("m.sha256"), status=1, says=re.escape(j.names[1]) + ".*SHA-256")


@step("G", "an index has a hidden name: patterns of other programs match the data alone")
def row_g(j):
    sized(j, "r.tfrecord", to="tfrecord")
    before = shards(j.at("r.tfrecord-*"))
    j.run("inspect", before[0], says="index kept in")
    same(shards(j.at("r.tfrecord-*")), before, "files of the pattern")
    expect(shards(j.at(".r.tfrecord-*.mridx")), "there is no index with a hidden name")


@step("G", "a damaged index is not used, and a line says why")
def row_g_damaged(j):
    first = shards(sized(j, "r.tfrecord", to="tfrecord") + "-*")[0]
    j.prepare("inspect", first)
    index = shards(j.at(".r.tfrecord-*.mridx"))[0]
    flip(index, os.path.getsize(index) // 2)
    j.run("inspect", first, says=[r"\.mridx", rf"^samples +{len(j.names)}$"])


@step("H", "a lost shard: the remaining samples are written and listed, the lost ones counted")
def row_h_shard(j):
    whole = sized(j, "h.mrec", to="mrec")
    os.remove(shards(j.at("h-*.mrec"))[1])
    run = j.run("repair", whole, j.at("out"), status=3, says=r"samples whole, \d+ lost")
    good, lost = map(int, re.search(r"(\d+) samples whole, (\d+) lost", run.out).groups())
    same(good + lost, len(j.names), "samples whole and lost")
    found = j.exported(j.at("out/h.mrec"))
    same((len(found), set(found.items()) <= set(j.sums.items())), (good, True), "samples of the repaired set")


@step("H", "a lost list: repair makes it again")
def row_h_list(j):
    whole = sized(j, "h.mrec", to="mrec")
    with open(whole, "rb") as f:
        before = f.read()
    os.remove(whole)
    j.run("repair", j.at("h-*.mrec"), "--in-place", says="nothing lost")
    with open(whole, "rb") as f:
        same(f.read(), before, "the list")
    j.is_whole(whole)


@step("H", "a cut record file, archive or TFRecord file: the samples before the cut are there")
def row_h_cut(j):
    for name in ("x.mrec", "x.tar", "x.tfrecord"):
        j.prepare("convert", j.photos, j.at(name))
        os.truncate(j.at(name), os.path.getsize(j.at(name)) * 2 // 3)
        j.run("repair", j.at(name), j.at("whole-" + name), status=3, says="samples whole, ")
        found = j.exported(j.at("whole-" + name))
        expect(len(found) > len(j.names) // 3 and set(found.values()) <= set(j.sums.values()),
               f"{name}: {len(found)} samples were recovered")


@step("I", "folders and files of an operating system are no classes")
def row_i(j):
    photos = j.copy("photos")
    for place in ("__MACOSX", os.path.join("__MACOSX", j.classes[0])):
        os.makedirs(os.path.join(photos, place), exist_ok=True)
        shutil.copy(os.path.join(photos, j.names[0]), os.path.join(photos, place, "._a.jpg"))
    j.run("inspect", photos, says=[r"^left out", rf"^samples +{len(j.names)}$", rf"^classes +{len(j.classes)}[: ]"])


@step("J", "the ending of the output chooses the format, or is refused")
def row_j(j):
    j.run("convert", j.photos, j.at("y.tar"), says=f"{len(j.names)} records")
    with open(j.at("y.tar"), "rb") as f:
        same(f.read(262)[257:], b"ustar", "the magic of y.tar")
    j.run("convert", j.photos, j.at("y.npz"), status=2, says="cannot write .npz")
    j.run("convert", j.photos, "-", status=2, says="standard output")
    expect(not os.path.exists(j.at("-")), "a file called - was made")


@step("K", "files of 4 KiB at most are taken")
def row_k_small(j):
    photos = j.copy("photos", j.names[:20])
    j.run("convert", photos, j.at("k.mrec"), "--shard-size", "4k", says="20 records in ")
    j.is_whole(j.at("k.mrec"), sums(photos))


@step("K", "an export that was killed goes on")
def row_k_export(j):
    j.prepare("convert", j.photos, j.at("k.mrec"))
    half = len(j.names) // 2
    j.kill_when(lambda: len(files_below(j.at("back"))) > half, "export", j.at("k.mrec"), j.at("back"), "--quiet")
    j.run("export", j.at("k.mrec"), j.at("back"), "--resume", says="files")
    same(sums(j.at("back")), j.sums, "files")


@step("K", "a conversion that was finished already says so; one that does not fit says what differs, by name")
def row_k_resume(j):
    j.prepare("convert", j.photos, j.at("k.mrec"))
    before = sum_of(j.at("k.mrec"))
    j.run("convert", j.photos, j.at("k.mrec"), "--resume", says="was finished already")
    j.run("convert", j.photos, j.at("k.mrec"), "--resume", "--quality", "50", status=1, says="--quality was 90, is 50")
    same(sum_of(j.at("k.mrec")), before, "the file")


@step("L", "a missing file of a set is an error in every format")
def row_l_missing(j):
    for to in ("mrec", "tar", "tfrecord", "mds"):
        whole = sized(j, f"l.{to}", to=to)
        files = {"mrec": j.at("l-*.mrec"), "tar": j.at("l-*.tar"), "tfrecord": j.at("l.tfrecord-*"), "mds": j.at("l.mds/*.mds")}[to]
        files = shards(files)
        os.remove(files[len(files) // 2])
        data = {"tar": j.at("l-*.tar"), "tfrecord": files[0]}.get(to, whole)
        j.run("verify", data, "--no-decode", status=1, says="missing|cannot open|No such file")


@step("L", "two files that exchanged names: found by the list, and by a manifest in every format")
def row_l_swapped(j):
    for to, pattern in (("mrec", "l-*.mrec"), ("tar", "l-*.tar"), ("tfrecord", "l.tfrecord-*")):
        whole = sized(j, f"l.{to}", to=to)
        data = {"tar": j.at(pattern), "tfrecord": shards(j.at(pattern))[0]}.get(to, whole)
        j.prepare("manifest", data, j.at(f"{to}.sha256"))
        first, second = shards(j.at(pattern))[:2]
        for old, new in ((first, "aside"), (second, first), ("aside", second)):
            os.rename(j.at(old), j.at(new))
        how = [] if to == "mrec" else ["--manifest", j.at(f"{to}.sha256")]
        j.run("verify", data, "--no-decode", *how, status=1, says=re.escape(os.path.basename(first)))


# ---- a set that lives ----

@step("M", "append: new files, the old ones unchanged, nothing twice")
def append(j):
    old, new = j.copy("old", j.names[::2] + other_classes(j)), j.copy("new", j.names)
    whole = sized(j, "set.mrec", to="mrec", photos=old)
    before = {path: sum_of(path) for path in shards(j.at("set-*.mrec"))}
    j.run("append", whole, new, "--update", says=f"{len(j.names)} samples")
    same({path: sum_of(path) for path in before}, before, "the old files")
    j.is_whole(whole)
    j.run("append", whole, new, "--update", says="nothing to add")


def other_classes(j):
    """The first picture of each class, with every second name missing."""
    there = {os.path.dirname(name) for name in j.names[::2]}
    return [next(name for name in j.names if os.path.dirname(name) == one) for one in j.classes if one not in there]


@step("N", "convert --update: new, changed and gone samples of the source")
def update(j):
    photos = j.copy("photos")
    whole = sized(j, "set.mrec", to="mrec", photos=photos)
    of_class = collections.Counter(map(os.path.dirname, j.names))
    gone = next((name for name in j.names if of_class[os.path.dirname(name)] > 1), None)
    shutil.copy(os.path.join(j.photos, j.names[-1]), os.path.join(photos, j.names[1]))
    shutil.copy(os.path.join(j.photos, j.names[0]), os.path.join(photos, os.path.dirname(j.names[0]), "zz-new.jpg"))
    if gone and gone != j.names[1]:
        os.remove(os.path.join(photos, gone))
    j.run("convert", photos, whole, "--update", status=1, says="changed: " + re.escape(j.names[1]))
    j.run("convert", photos, whole, "--update", "--changed", "withdraw", "--gone", "withdraw", says="appended 2 ")
    j.is_whole(whole, sums(photos))
    j.run("convert", photos, whole, "--update", says="0 new, 0 changed, 0 gone")


@step("O", "a mix of 70 sets")
def mix(j):
    names = j.names[:70] if len(j.names) >= 70 else [j.names[k % len(j.names)] for k in range(70)]
    lines = ["millrace mix 1"]
    for k, name in enumerate(names):
        j.copy(f"m{k}", [name])
        lines.append(f"1 m{k}")
    with open(j.at("all.mix"), "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")
    j.run("inspect", j.at("all.mix"), says=[r"^sets +70", r"^samples +70$", rf"^classes +{len(set(map(os.path.dirname, names)))}[: ]"])
    j.prepare("convert", j.at("all.mix"), j.at("all.mrec"))
    j.run("verify", j.at("all.mrec"), says="70 of 70 samples checked")


# ---- choice ----

@step("P", "--classes-from: names for a set that has numbers")
def classes_from(j):
    with open(j.at("list.csv"), "w", encoding="utf-8") as f:
        f.write("path,label\n")
        f.writelines(f'"{os.path.join(j.photos, name)}",{j.classes.index(os.path.dirname(name))}\n' for name in j.names)
    with open(j.at("names"), "w", encoding="utf-8") as f:
        f.write("".join(f"{name}\n" for name in j.classes))
    j.run("convert", j.at("list.csv"), j.at("named.mrec"), "--outside", "take", "--classes-from", j.at("names"), says="records")
    found = last_json(j.prepare("inspect", j.at("named.mrec"), "--json"))
    same(found["classes"], j.classes, "classes")


@step("P", "--only-classes")
def only_classes(j):
    some = [j.classes[-1], j.classes[0]]
    j.run("convert", j.photos, j.at("only.mrec"), "--only-classes", ",".join(some), says=r"samples are taken")
    j.is_whole(j.at("only.mrec"), {name: one for name, one in j.sums.items() if os.path.dirname(name) in some})


@step("P", "--rename-classes: two become one, no sample is lost")
def rename_classes(j):
    with open(j.at("names"), "w", encoding="utf-8") as f:
        f.write(f"{j.classes[0]}\tnew name\n{j.classes[1]}\tnew name\n")
    j.run("convert", j.photos, j.at("renamed.mrec"), "--rename-classes", j.at("names"), says="becomes one with another")
    found = last_json(j.prepare("stats", j.at("renamed.mrec"), "--decode", "0", "--seconds", "0", "--json"))
    same((found["samples"], len(found["class_samples"])), (len(j.names), len(j.classes) - 1), "samples and classes")
    wanted = sum(os.path.dirname(name) in j.classes[:2] for name in j.names)
    same(class_counts(found).get("new name"), wanted, "samples of the new class")


def class_counts(stats):
    return dict(zip(stats["classes"], stats["class_samples"]))


@step("P", "--where: bytes and key")
def where(j):
    middle = sorted(j.sizes.values())[len(j.names) // 2]
    j.run("convert", j.photos, j.at("large.mrec"), "--where", f"bytes>={middle},key~{j.classes[0][:1]}*", says="samples are taken|records")
    wanted = {name: one for name, one in j.sums.items() if j.sizes[name] >= middle and name.startswith(j.classes[0][:1])}
    j.is_whole(j.at("large.mrec"), wanted)


@step("P", "--dedup bytes: of equal pictures the first is taken")
def dedup(j):
    photos = j.copy("photos")
    shutil.copy(os.path.join(photos, j.names[0]), os.path.join(photos, j.classes[-1], "zz-copy.jpg"))
    j.run("convert", photos, j.at("once.mrec"), "--dedup", "bytes", says="with the same bytes as an earlier sample")
    found = j.exported(j.at("once.mrec"))
    same(sorted(found.values()), sorted(set(j.sums.values())), "pictures")
    expect(os.path.join(j.classes[-1], "zz-copy.jpg") not in found, "the copy was taken, not the first")


@step("P", "--sample N: the same samples for the same seed, others for another")
def sample(j):
    some = len(j.names) // 3
    j.run("convert", j.photos, j.at("a.mrec"), "--sample", str(some), "--seed", "1", says=f"{some} records")
    j.prepare("convert", j.photos, j.at("b.mrec"), "--sample", str(some), "--seed", "1", "--workers", "1")
    j.prepare("convert", j.photos, j.at("c.mrec"), "--sample", str(some), "--seed", "2")
    first, again, other = (j.exported(j.at(f"{name}.mrec")) for name in "abc")
    same((len(first), first == again, first == other, first.items() <= j.sums.items()), (some, True, False, True),
         "samples; the same seed; another seed; all of the set")


@step("P", "--take-each 0:0.8 and 0.8:1: no sample in both, none missing, classes divided alike")
def take_each(j):
    j.run("convert", j.photos, j.at("fit.mrec"), "--take-each", "0:0.8", says="records")
    fit = j.exported(j.at("fit.mrec"))
    per_class = collections.Counter(map(os.path.dirname, j.names))
    for one, count in collections.Counter(map(os.path.dirname, fit)).items():
        expect(abs(count - 0.8 * per_class[one]) <= 1, f"class {one}: {count} of {per_class[one]}")
    if len(fit) < len(j.names):
        j.run("convert", j.photos, j.at("held.mrec"), "--take-each", "0.8:1", says="records")
        held = j.exported(j.at("held.mrec"))
        same(({**fit, **held}, set(fit) & set(held)), (j.sums, set()), "both parts; samples in both")


@step("P", "train --hold-out --stratify: trains on the rest of each class")
def hold_out(j):
    photos = j.copy("photos")
    for name in j.names:  # a class of one sample cannot be divided
        shutil.copy(os.path.join(photos, name), os.path.join(photos, os.path.dirname(name), "again-" + os.path.basename(name)))
    half = len(j.names)
    j.run("train", photos, "--model", "cifar-cnn", "--hold-out", "0.5", "--stratify", "--epochs", "1", "--max-steps", "2", "--batch", "8",
          "--augment", "resize(32x32)", says=rf" {half} samples, .* validation .*, {half}$")


# ---- bad and lost samples ----

@step("Q", "withdraw: every reader leaves the sample out, the files stay unchanged; restore brings it back")
def withdraw(j):
    whole = sized(j, "set.mrec", to="mrec")
    before = {path: sum_of(path) for path in shards(j.at("set*.mrec"))}
    j.run("withdraw", whole, "--samples", "0,3", "--reason", "wrong label", says=f"2 of {len(j.names)} samples are withdrawn")
    j.is_whole(whole, {name: one for name, one in j.sums.items() if name not in (j.names[0], j.names[3])})
    j.run("inspect", whole, says="samples are withdrawn")
    same({path: sum_of(path) for path in before}, before, "the files")
    j.run("restore", whole, "--all", says="0 of ")
    j.is_whole(whole)


@step("R", "repair: a changed record is put back from a second copy, and from the source")
def repair(j):
    whole = sized(j, "set.mrec", to="mrec")
    wanted = sums(j.folder)
    shutil.copytree(j.folder, os.path.join(j.work, "second"))
    second = shards(j.at("set-*.mrec"))[1]
    flip(second, os.path.getsize(second) // 2)
    try:
        j.run("repair", whole, status=1, says="1 lost")
        for n, source in enumerate((os.path.join(j.work, "second"), j.photos)):
            j.run("repair", whole, j.at(f"out{n}"), "--from", source, says="1 put back, nothing lost")
            same(sums(j.at(f"out{n}")), wanted, "files")
    finally:
        shutil.rmtree(os.path.join(j.work, "second"))


# ---- knowing a set ----

@step("S", "stats: classes, sizes and copies, in text, JSON and HTML; the same in every format")
def stats(j):
    j.run("stats", j.photos, "--seconds", "0", "--html", j.at("page.html"), says=rf"^samples +{len(j.names)}")
    found = last_json(j.prepare("stats", j.photos, "--seconds", "0", "--json"))
    same(class_counts(found), dict(collections.Counter(map(os.path.dirname, j.names))), "samples of classes")
    same(found["duplicates"], len(j.names) - len(set(j.sums.values())), "copies")
    expect(os.path.getsize(j.at("page.html")) > 1000, "no page")
    j.prepare("convert", j.photos, j.at("s.tar"))
    again = last_json(j.prepare("stats", j.at("s.tar"), "--seconds", "0", "--json"))
    for key in ("samples", "mean", "deviation", "class_samples", "duplicates"):
        same(again[key], found[key], key)


@step("T", "manifest: sums as sha256sum makes them; verify --manifest")
def manifest(j):
    j.run("manifest", j.photos, j.at("m.sha256"), says=f"{len(j.names)} files")
    with open(j.at("m.sha256"), encoding="utf-8", errors="surrogateescape") as f:
        rows = dict(reversed(line.rstrip("\n").split("  ", 1)) for line in f if re.match("[0-9a-f]{64}  ", line))
    same({os.path.relpath(os.path.normpath(os.path.join(j.folder, name)), j.photos): one for name, one in rows.items()}, j.sums, "sums")
    j.run("verify", j.photos, "--manifest", j.at("m.sha256"), says="0 wrong")


# ---- out ----

def exporter(to, name, *options):
    def run(j):
        j.run("convert", j.photos, j.at(name), *options, says=f"{len(j.names)} records")
        found = j.exported(j.at(name))
        if to == "recordio":  # it has no names
            return same(sorted(found.values()), sorted(j.sums.values()), "pictures")
        if to == "tar":  # its endings follow from the kinds of the pictures
            return same({os.path.splitext(name)[0]: one for name, one in found.items()},
                        {os.path.splitext(name)[0]: one for name, one in j.sums.items()}, "names and pictures")
        return same(found, j.sums, "names and pictures")
    return run


step("U", "to a record file and back: names and bytes")(exporter("mrec", "u.mrec"))
step("U", "to coefficients and back: the same pictures")(lambda j: coefficients(j))
step("U", "to TFRecord and back: names and bytes")(exporter("tfrecord", "u.tfrecord"))
step("U", "to a WebDataset archive and back: names but for endings, and bytes")(exporter("tar", "u.tar"))
step("U", "to MDS and back: names and bytes")(exporter("mds", "u.mds"))
step("U", "to RecordIO and back: bytes")(exporter("recordio", "u.rec"))


def coefficients(j):
    j.run("convert", j.photos, j.at("u.mrec"), "--store", "coef", says=f"{len(j.names)} records")
    digests = [j.prepare("digest", data, "--augment", "resize(32x32)", "--batch", "16", "--channels", "3").out.split()[0]
               for data in (j.photos, j.at("u.mrec"))]
    same(digests[1], digests[0], "the digest of all batches")


@step("U", "an archive is what Python's tarfile takes it for")
def python_tar(j):
    import tarfile
    j.run("convert", j.photos, j.at("u.tar"), says="records")
    with tarfile.open(j.at("u.tar")) as archive:
        found = {m.name: zlib.crc32(archive.extractfile(m).read()) for m in archive
                 if m.isfile() and not m.name.startswith("__") and not m.name.endswith(".cls")}
    wanted = {name: zlib.crc32(open_bytes(os.path.join(j.photos, name))) for name in j.names}
    same(sorted(found.values()), sorted(wanted.values()), "pictures")


def open_bytes(path):
    with open(path, "rb") as f:
        return f.read()
