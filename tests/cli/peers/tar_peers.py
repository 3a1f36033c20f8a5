"""Archives by other writers, read by us and by other readers: Python's tarfile in its three formats, webdataset's ShardWriter.

tar_peers.py MILLRACE FOLDER. What each reader finds must be the same bytes, classes and order. Exit 77, saying why, without webdataset."""
import json
import os
import random
import shutil
import sys
import tarfile

from formats_lib import command, digest, listed, write_tar

try:
    import webdataset
except ImportError:
    print("SKIP: no webdataset for this Python; set MRT_WEBDATASET_PYTHON to one that has it")
    sys.exit(77)

millrace, folder = sys.argv[1:]
os.chdir(folder)
run = command(millrace)


def pictures():
    run("synth", "pictures", "--count", "6", "--classes", "4", "--size", "16", "--force")
    found = [(data, label) for data, label, _, _ in listed("pictures/train")]
    random.Random(3).shuffle(found)
    return found


def by_tarfile(path, samples, form, name, mode):
    write_tar(path, [(f"{name}{k:04d}.{ext}", value) for k, (data, label) in enumerate(samples)
                     for ext, value in (("jpg", data), ("cls", str(label).encode()), ("txt", "ä caption".encode()))], form, mode)


def by_webdataset(pattern, samples):
    with webdataset.ShardWriter(pattern, maxcount=7, verbose=0) as out:
        for k, (data, label) in enumerate(samples):
            out.write({"__key__": f"dir/{k:04d}", "jpg": data, "cls": label, "json": {"k": k}})


def read_by_webdataset(paths):
    data = webdataset.WebDataset(paths, shardshuffle=False)
    return [(s["jpg"], int(s["cls"])) for s in data]


def read_by_us(data, count):
    info = json.loads(run("inspect", data, "--json"))
    assert info["format"] == "tar" and info["samples"] == count, info
    run("convert", data, "out.mrec", "--force")
    run("export", "out.mrec", "exported", "--numbered", "--force")
    found = {}
    for top, _, names in os.walk("exported"):
        for name in names:
            if name.endswith(".jpg"):
                with open(os.path.join(top, name), "rb") as f:
                    found[int(name[:-4])] = (f.read(), os.path.basename(top))
    shutil.rmtree("exported")
    return [found[k] for k in sorted(found)]


def same(what, data, paths, samples):
    theirs, ours = read_by_webdataset(paths), read_by_us(data, len(samples))
    assert theirs == samples, f"{what}: webdataset finds something else"
    assert [d for d, _ in ours] == [d for d, _ in samples], f"{what}: we find other pictures"
    assert [int("".join(c for c in label if c.isdigit())) for _, label in ours] == [label for _, label in samples], f"{what}: other classes"
    print(f"{what}: {len(samples)} samples, {digest(b''.join(d for d, _ in ours))[:16]}")


samples = pictures()
assert len(samples) >= 24, len(samples)
names = {"short": "", "long": "d" * 80 + "/" + "n" * 90 + "/", "longer": "long folder/" * 30 + "ü"}
for form, form_name in ((tarfile.USTAR_FORMAT, "ustar"), (tarfile.GNU_FORMAT, "gnu"), (tarfile.PAX_FORMAT, "pax")):
    for kind, prefix in names.items():
        if form == tarfile.USTAR_FORMAT and kind == "longer":
            continue
        for mode, ending in (("w", "tar"), ("w:gz", "tar.gz")):
            path = f"{form_name}-{kind}.{ending}"
            by_tarfile(path, samples, form, prefix, mode)
            same(f"tarfile {path}", path, [path], samples)
for ending in ("tar", "tar.gz"):
    folder = f"shards-{ending}"
    os.makedirs(folder, exist_ok=True)
    by_webdataset(f"{folder}/s-%06d.{ending}", samples)
    paths = sorted(os.path.join(folder, name) for name in os.listdir(folder))
    last = len(paths) - 1
    same(f"webdataset {ending}, folder", folder, paths, samples)
    same(f"webdataset {ending}, pattern", f"{folder}/s-{{000000..{last:06d}}}.{ending}", paths, samples)
