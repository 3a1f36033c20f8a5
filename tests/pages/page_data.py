"""The data sets, checkpoints and records of runs that the pages name, small: made once and copied for every page."""
import gzip
import io
import os
import random
import re
import shutil
import sqlite3
import struct
import subprocess
import sys
import tarfile
import zipfile


def npy(shape, kind, data):
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    head += " " * (117 - len(head)) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data


def idx(shape, data):
    return struct.pack(f">I{len(shape)}I", 0x800 + len(shape), *shape) + data


class Data:
    """Makes the files that a line names, once, in a folder that is copied for every block."""

    def __init__(self, millrace, folder, top):
        self.millrace, self.folder, self.top = millrace, folder, top
        self.draw = random.Random(1)

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, *words):
        done = subprocess.run([self.millrace, *words, "--quiet"], cwd=self.folder, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL)
        if done.returncode:
            sys.exit(f"millrace {' '.join(words)}: status {done.returncode}: {done.stderr}")

    def write(self, name, data):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "wb") as file:
            file.write(data if isinstance(data, bytes) else data.encode())

    def make(self):
        self.run("synth", "photos", "--classes", "10", "--count", "10", "--test-count", "2", "--size", "64", "--seed", "1")
        os.rename(self.path("photos/test"), self.path("photos/val"))
        self.run("synth", "cifar", "--classes", "4", "--count", "16", "--size", "32", "--seed", "2")
        self.run("convert", "photos", "photos.mrec")
        self.run("convert", "photos", "shards.mrec", "--shard-size", "40K")
        for part, to in (("train", "train"), ("val", "test")):
            self.run("convert", f"cifar/{part}" if part == "train" else "cifar/test", f"{to}.mrec")
        shutil.copytree(self.path("photos"), self.path("imagenet"))
        self.run("synth", "shapes", "--count", "12", "--size", "48")
        shutil.copy(self.picture(), self.path("PHOTO.jpg"))
        shutil.copytree(self.path("photos"), self.path("drawn by hand"))
        self.recordio()
        self.mnist()
        self.tables()
        self.coco()
        self.write("train.py", "import glob\nfor name in glob.glob('photos/train/*/*.jpg'):\n    open(name, 'rb').read()\n")
        self.run("train", "photos", "--model", "cifar-cnn", "--augment", "resize(32x32),flip", "--checkpoint", "run1", "--epochs",
                 "1")
        os.rename(self.path("run1"), self.path("of-photos"))
        self.run("train", "photos", "--model", "resnet18", "--augment", "resize(32x32)", "--checkpoint", "of-resnet18",
                 "--max-steps", "1")
        self.run("export-weights", "of-resnet18", "net.safetensors", "--names", "torchvision")
        self.run("export-weights", "of-resnet18", "net.npz")
        shutil.copy(self.path("net.safetensors"), self.path("resnet18.safetensors"))
        self.run("train", "mnist", "--model", "mnist-mlp", "--lr", "0.1", "--checkpoint", "of-mnist", "--max-steps", "2")
        for name in ("before", "after"):
            with open(self.path(f"{name}.jsonl"), "wb") as out:
                subprocess.run([self.millrace, "train", "photos", "--model", "cifar-cnn", "--augment", "resize(32x32)", "--epochs",
                                "1", "--log-steps", "1", "--json", "--quiet", "--trace", "trace.json"],
                               cwd=self.folder, stdout=out, check=True)
        for page_name, run in (("run", "before"), ("other", "after")):
            shutil.copy(self.path(f"{run}.jsonl"), self.path(f"{page_name}.jsonl"))

        db = sqlite3.connect(self.path("run.sqlite"))
        with open(os.path.join(self.top, "tests", "scripts", "nsys", "export.sql"), encoding="utf-8") as script:
            db.executescript(script.read())
        db.close()

    def picture(self):
        """A file of the first class of shapes."""
        of_class = self.path("shapes/train/" + sorted(os.listdir(self.path("shapes/train")))[0])
        return os.path.join(of_class, sorted(os.listdir(of_class))[0])

    def recordio(self):
        out = b""
        for number, name in enumerate(sorted(os.listdir(self.path("photos/train")))):
            for picture in sorted(os.listdir(self.path(f"photos/train/{name}")))[:4]:
                with open(self.path(f"photos/train/{name}/{picture}"), "rb") as file:
                    record = struct.pack("<IfQQ", 0, number, len(out), 0) + file.read()
                out += struct.pack("<II", 0xced7230a, len(record)) + record + bytes(-len(record) % 4)
        self.write("imagenet/train.rec", out)

    def mnist(self):
        forms = [self.draw.randbytes(784) for _ in range(10)]  # a network learns them in a few steps
        for name, count in (("train", 300), ("t10k", 100)):
            self.write(f"mnist/{name}-images-idx3-ubyte", idx((count, 28, 28), b"".join(forms[k % 10] for k in range(count))))
            self.write(f"mnist/{name}-labels-idx1-ubyte", idx((count,), bytes(k % 10 for k in range(count))))

    def tables(self):
        def rows(count):
            return "".join(",".join(str(self.draw.randrange(50)) for _ in range(50)) + "\n" for _ in range(count)).encode()
        self.write("notes/train.csv.gz", gzip.compress(rows(64)))
        self.write("notes/val.csv.gz", gzip.compress(rows(16)))
        self.write("texts.csv", "".join(",".join(str(k % 40) for k in range(2 + n % 9)) + "\n" for n in range(64)))
        pictures = [f"photos/train/{c}/{p}" for c in sorted(os.listdir(self.path("photos/train")))
                    for p in sorted(os.listdir(self.path(f"photos/train/{c}")))]
        self.write("faces.csv", "path,smiles,hat,glasses,age\n" +
                   "".join(f"{p},{n % 2},{n // 2 % 2},{n // 4 % 2},{20 + n % 40}\n" for n, p in enumerate(pictures)))
        with zipfile.ZipFile(self.path("digits.npz"), "w") as archive:
            for part, count in (("train", 64), ("test", 16)):
                archive.writestr(f"x_{part}.npy", npy((count, 28, 28), "|u1", self.draw.randbytes(count * 784)))
                archive.writestr(f"attributes_{part}.npy", npy((count, 3), "|u1", bytes(k % 2 for k in range(count * 3))))

    def coco(self):
        os.makedirs(self.path("coco"))
        with open(self.path("photos/train/" + sorted(os.listdir(self.path("photos/train")))[0] + "/00000.jpg"), "rb") as file:
            picture = file.read()
        with tarfile.open(self.path("coco/shard-000000.tar"), "w") as tar:
            for number in range(24):
                for ending, data in (("jpg", picture), ("cls", b"%d" % (number % 3)),
                                     ("boxes.npy", npy((1, 4), "<f4", struct.pack("<4f", 0.1, 0.1, 0.6, 0.6))),
                                     ("box_labels.npy", npy((1,), "<i8", struct.pack("<q", number % 3))),
                                     ("mask.npy", npy((64, 64), "|u1", bytes(4096)))):
                    member = tarfile.TarInfo(f"{number:06}.{ending}")
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))

    # The checkpoint that a line reads without an earlier line of its block having made it.
    def checkpoint(self, command, folder):
        name = re.search(r"--checkpoint (\S+)|export-weights (\S+)|--init (\S+)", command)
        name = name and next(n for n in name.groups() if n).split("/")[0]
        reads = re.search(r"^millrace (eval|predict|export-weights)|--resume|--init", command)
        if not name or not reads or "." in name or os.path.exists(os.path.join(folder, name)):
            return
        made = "of-mnist" if "mnist" in command else "of-resnet18" if "resnet18" in command or "export-weights" in command else \
            "of-photos"
        if "--resume" in command and "--val test.mrec" in command:
            return  # a first start: there is nothing to resume yet
        shutil.copytree(self.path(made), os.path.join(folder, name))
