"""The commands that run under faults: on a data set of a few pictures, small enough that a run takes milliseconds.

A job runs in a folder of its own that holds copies of `copies`; ../in is shared by all and must stay as it is."""

import os
import shutil
import struct
import subprocess

TRAIN = ["--model", "mnist-mlp", "--batch", "4", "--augment", "none", "--threads", "1", "--workers", "1", "--json", "--quiet"]


class Job:
    """name        of the job
    args        of the command; its output goes to the current folder
    copies      folders and files of ../in that the job gets a copy of
    again       arguments after a kill or a failure: the manual's advice
    exit        status of the undisturbed run
    parts       names that may be left behind by a run that failed, and may be there after a kill
    optional    names that may be missing after a run that succeeded: caches and indexes, which it can do without
    measured    outputs that hold times: they have to be there, no more
    unsynced    files are synced together at the end: without power the last ones may be cut
    returning   files that the last run removed: after a power cut they may be back, and the next run removes them
    whole       after a failure a file that matches may differ if `millrace ARGS FILE` accepts it: (pattern, args)"""

    def __init__(self, name, args, copies=(), again=None, exit=0, parts=(), optional=(), measured=(), whole=None, unsynced=False,
                 returning=()):
        self.name, self.args, self.copies, self.exit = name, args.split(), list(copies), exit
        self.again = self.args if again is None else (args + " " + again).split()
        self.parts, self.optional, self.measured = list(parts), list(optional), list(measured)
        self.whole, self.unsynced, self.returning = whole, unsynced, list(returning)


PART = ["*.part", "*.part.*"]
# the list of bad samples is made anew by the next run
CONVERTED = PART + ["*.bad.jsonl"]
INDEX = ["*.mridx", "xdg", "xdg/*"]
CACHE = ["cache", "cache/*"]
_TRAIN = " ".join(TRAIN)
# says which process is at work
LOCK = ["run/run.lock"]
# a checkpoint from before its epoch was validated is whole, too
WHOLE = ("*.mrck", ["eval", "../in/photos", "--threads", "1", "--workers", "1", "--quiet", "--checkpoint"])

JOBS = [
    Job("convert", "convert ../in/photos out.mrec --workers 1 --quiet", again="--resume", parts=CONVERTED),
    Job("convert-json", "convert ../in/photos out.mrec --workers 2 --json --store coef --quiet", again="--resume", parts=CONVERTED),
    Job("convert-shards", "convert ../in/photos out.mrec --workers 1 --shard-size 16K --quiet", again="--resume",
        parts=CONVERTED + ["out-*.mrec"]),
    Job("convert-bad", "convert ../in/broken out.mrec --workers 1 --resize 8 --quiet", again="--resume", exit=3, parts=CONVERTED),
    Job("convert-tar", "convert ../in/photos out.tar --to tar --shard-size 4K --index wids --workers 1 --quiet", again="--force",
        parts=CONVERTED),
    Job("convert-recordio", "convert ../in/photos out.rec --to recordio --shard-size 4K --workers 1 --quiet", again="--force",
        parts=CONVERTED + ["out-*.rec", "out-*.idx"]),
    Job("convert-tfrecord", "convert ../in/photos out.tfrecord --to tfrecord --workers 1 --quiet", again="--force", parts=CONVERTED),
    Job("convert-from-tar", "convert one.tar out.mrec --workers 1 --quiet", copies=["one.tar"], again="--resume", parts=CONVERTED,
        optional=INDEX),
    Job("digest", "digest ../in/set.mrec --workers 1 --epochs 2"),
    Job("digest-folder", "digest ../in/photos --workers 1 --json --resident 0 --quiet"),
    Job("digest-pread", "digest ../in/set.mrec --workers 1 --io pread --resident 0 --batch 2 --json"),
    Job("digest-tar", "digest one.tar --workers 1", copies=["one.tar"], optional=INDEX),
    Job("digest-tfrecord", "digest one.tfrecord --workers 1 --resident 0", copies=["one.tfrecord"], optional=INDEX),
    Job("digest-idx", "digest ../in/idx --workers 1 --json --quiet"),
    Job("digest-csv", "digest list.csv --workers 1", copies=["list.csv", "photos"]),
    Job("digest-shards", "digest flock --workers 1", copies=["flock"], optional=INDEX),
    Job("digest-cache", "digest ../in/photos --workers 1 --epochs 2 --cache disk:cache:4M --resident 0 --json --quiet", optional=CACHE,
        parts=CACHE),
    Job("inspect", "inspect ../in/set.mrec"),
    Job("inspect-json", "inspect ../in/shards.mrec --json"),
    Job("inspect-folder", "inspect ../in/photos"),
    Job("inspect-shards", "inspect flock", copies=["flock"], optional=INDEX),
    Job("inspect-tar", "inspect one.tar", copies=["one.tar"], optional=INDEX),
    Job("verify", "verify ../in/set.mrec --workers 1"),
    Job("verify-shards", "verify ../in/shards.mrec --workers 1 --json"),
    Job("verify-folder", "verify ../in/photos --workers 1"),
    Job("verify-broken", "verify ../in/broken --workers 1", exit=1),
    Job("verify-tar", "verify one.tar --workers 1", copies=["one.tar"], optional=INDEX),
    Job("export", "export ../in/set.mrec back --quiet", again="--force", parts=["back", "back/*"], unsynced=True),
    Job("export-resume", "export ../in/set.mrec back --resume --quiet", copies=["back"], parts=["back/*"], unsynced=True),
    Job("append", "append grow/s.mrec ../in/more --quiet", copies=["grow"], parts=PART + ["grow/.s.append*", "grow/*.mrec"]),
    # one sample of many is in the set: found after the conversion, whose files go
    Job("append-known", "append grow/s.mrec ../in/mixed --workers 1 --quiet", copies=["grow"], exit=1,
        parts=PART + ["grow/.s.append*", "grow/*.mrec"]),
    # two new samples, one with other contents, one that is gone; the list of withdrawn ones holds the times of files
    Job("update", "convert ../in/later grow/s.mrec --update --changed withdraw --gone withdraw --workers 1 --quiet", copies=["grow"],
        parts=PART + ["grow/.s.append*", "grow/*.mrec", "grow/.millrace.withdrawn*"], measured=["grow/.millrace.withdrawn"]),
    Job("repair", "repair cracked/s.mrec --in-place --from ../in/grow/s.mrec", copies=["cracked"], parts=PART + ["cracked/*.mrec"]),
    # its list holds the times of files
    Job("withdraw", "withdraw set.mrec --samples 1,3 --reason bad --quiet", copies=["set.mrec"], parts=PART, measured=[".millrace.withdrawn"]),
    Job("withdraw-folder", "withdraw photos --where label=1 --quiet", copies=["photos"], parts=["*/.millrace.withdrawn*"],
        measured=["photos/*/*/.millrace.withdrawn"]),
    Job("restore", "restore listed/set.mrec --samples 2 --quiet", copies=["listed"], parts=PART, measured=["listed/.millrace.withdrawn"]),
    Job("restore-all", "restore listed/set.mrec --all --quiet", copies=["listed"], parts=PART),
    Job("manifest", "manifest ../in/photos m.txt --quiet", again="--force", parts=PART),
    Job("synth", "synth made --classes 2 --count 2 --test-count 1 --size 8 --quiet", again="--force", parts=["made", "made/*"], unsynced=True),
    Job("train", "train ../in/photos --epochs 2 --checkpoint run " + _TRAIN, again="--resume", parts=PART + ["run", "run/*"], whole=WHOLE,
        measured=LOCK, optional=LOCK),
    Job("train-steps", "train ../in/set.mrec --val none --epochs 2 --checkpoint run --checkpoint-steps 1 --keep 2 --trace t.json "
        + _TRAIN, again="--resume", parts=PART + ["run", "run/*"], measured=LOCK + ["t.json"], optional=LOCK + ["t.json"],
        whole=WHOLE, returning=["run/step-*.mrck"]),
    Job("resume", "train ../in/photos --epochs 3 --checkpoint run --resume " + _TRAIN, copies=["run"], parts=PART + ["run", "run/*"], whole=WHOLE,
        measured=LOCK, optional=LOCK),
    Job("eval", "eval ../in/photos --checkpoint ../in/run --threads 1 --workers 1 --json --quiet"),
    Job("eval-confusion", "eval ../in/photos --checkpoint ../in/run --threads 1 --workers 1 --confusion c.csv --json --quiet", again="--force",
        parts=PART),
    Job("predict", "predict ../in/photos --checkpoint ../in/run --threads 1 --workers 1 --out p.csv --json --quiet", again="--force", parts=PART),
    Job("predict-broken", "predict ../in/broken --split train --checkpoint ../in/run --threads 1 --workers 1 --quiet", exit=3),
    Job("export-weights", "export-weights ../in/run w.safetensors --json", again="--force", parts=PART),
    Job("export-npz", "export-weights ../in/run w.npz --json", again="--force", parts=PART),
    Job("train-init", "train ../in/photos --init ../in/w.npz --freeze backbone --epochs 1 " + _TRAIN),
    Job("train-init-safe", "train ../in/photos --init ../in/w.safetensors --freeze 0 --epochs 1 " + _TRAIN),
]

# Two at once: the same command twice in one folder. Of two runs of withdraw the second reports samples that are withdrawn already, so
# their output differs; tests/cli/convert/test_withdraw.sh runs two at once.
PAIRS = ["convert", "convert-shards", "convert-tar", "convert-tfrecord", "digest-tar", "digest-tfrecord", "digest-cache", "train",
         "train-steps", "resume"]

# A run may end well although a write or a sync failed in these: these files are dispensable, and the user is informed.
CAN_DO_WITHOUT = ["keep_at",               # an index that cannot be next to the data is kept elsewhere, or made again
                  "mri_cache_disk_append"]  # a cache that takes no more


def make_inputs(millrace, folder):
    """The data sets and the checkpoint that the jobs read."""
    def call(*args):
        subprocess.run([millrace, *args], cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                       env=dict(os.environ, XDG_CACHE_HOME=folder, LC_ALL="C"))
    os.makedirs(folder)
    call("synth", "photos", "--classes", "2", "--count", "4", "--test-count", "2", "--size", "12", "--channels", "1", "--quiet")
    call("convert", "photos", "set.mrec", "--quiet")
    call("convert", "photos", "shards.mrec", "--shard-size", "16K", "--quiet")
    call("convert", "photos", "one.tar", "--to", "tar", "--quiet")
    call("convert", "photos", "one.tfrecord", "--to", "tfrecord", "--quiet")
    call("synth", "more", "--classes", "2", "--count", "3", "--test-count", "1", "--size", "12", "--channels", "1", "--seed", "9", "--quiet")
    call("synth", "mixed", "--classes", "2", "--count", "50", "--test-count", "1", "--size", "12", "--channels", "1", "--seed", "9", "--quiet")
    disc = os.path.join("train", "disc")  # the third of 100 samples is not among the 64 that are compared first
    shutil.copy(os.path.join(folder, "photos", disc, "00002.jpg"), os.path.join(folder, "mixed", disc, "00002.jpg"))
    os.mkdir(os.path.join(folder, "grow"))
    call("convert", "photos", "grow/s.mrec", "--shard-size", "8K", "--quiet")
    shutil.copytree(os.path.join(folder, "photos"), os.path.join(folder, "later"))
    for name in ("00007.jpg", "00008.jpg"):
        shutil.copy(os.path.join(folder, "more", disc, "00001.jpg"), os.path.join(folder, "later", disc, name))
    shutil.copy(os.path.join(folder, "more", disc, "00000.jpg"), os.path.join(folder, "later", disc, "00001.jpg"))
    os.remove(os.path.join(folder, "later", disc, "00003.jpg"))
    os.mkdir(os.path.join(folder, "listed"))
    call("convert", "photos", "listed/set.mrec", "--quiet")
    call("withdraw", "listed/set.mrec", "--samples", "2,5", "--quiet")
    shutil.copytree(os.path.join(folder, "grow"), os.path.join(folder, "cracked"))
    first, second, *_ = sorted(f for f in os.listdir(os.path.join(folder, "cracked")) if f != "s.mrec")
    os.remove(os.path.join(folder, "cracked", first))
    with open(os.path.join(folder, "cracked", second), "r+b") as f:
        f.truncate(6000)
    call("export", "set.mrec", "back", "--quiet")
    for k, (base, _, names) in enumerate(sorted(os.walk(os.path.join(folder, "back")))):
        for name in sorted(names)[k % 2::2]:
            os.remove(os.path.join(base, name))
    os.mkdir(os.path.join(folder, "flock"))
    call("convert", "photos", "flock/f.tar", "--to", "tar", "--shard-size", "4K", "--quiet")
    os.mkdir(os.path.join(folder, "idx"))
    for part, count in (("train", 6), ("t10k", 2)):
        with open(os.path.join(folder, "idx", part + "-images-idx3-ubyte"), "wb") as f:
            f.write(struct.pack(">IIII", 0x803, count, 8, 8) + bytes(i % 251 for i in range(64 * count)))
        with open(os.path.join(folder, "idx", part + "-labels-idx1-ubyte"), "wb") as f:
            f.write(struct.pack(">II", 0x801, count) + bytes(i % 2 for i in range(count)))
    train = os.path.join(folder, "photos", "train")
    with open(os.path.join(folder, "list.csv"), "w", encoding="utf-8") as f:
        f.write("image,label\n" + "".join(f"photos/train/{c}/{n},{c}\n" for c in sorted(os.listdir(train))
                                          for n in sorted(os.listdir(os.path.join(train, c)))))
    call("train", "photos", "--epochs", "1", "--checkpoint", "run", *TRAIN)
    call("export-weights", "run", "w.npz")
    call("export-weights", "run", "w.safetensors")
    shutil.copytree(os.path.join(folder, "photos"), os.path.join(folder, "broken"))
    first = sorted(os.listdir(os.path.join(folder, "broken", "train")))[0]
    name = os.path.join(folder, "broken", "train", first, "00001.jpg")
    with open(name, "r+b") as f:
        f.truncate(200)
