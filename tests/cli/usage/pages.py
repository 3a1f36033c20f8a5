"""Runs the example commands of README.md, docs/*.md and `millrace help COMMAND`, each as it is written, on small data.

usage: pages.py MILLRACE TOP [--only TEXT] [--list]
  TOP           the checkout
  --only TEXT   only lines that contain TEXT
  --list        print the lines and where they stand, run nothing

Every block of a page starts in a fresh folder that has the data of the names which the pages use (photos, mnist, run1, ...).
An example must end with status 0, except the lines of EXPECTED, whose error is named there. SHORTER lists options that are
appended to keep a line short, SKIPPED what cannot run here, with its reason. Blocks of docs/sets.md belong to test_trees.sh.
"""
import argparse
import gzip
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import zipfile

COMMANDS = ("synth convert export verify repair append stats manifest inspect digest train eval predict lr-find profile plan sweep report watch "
            "export-weights bench devices").split()
LAUNCHERS = ("mpirun", "srun", "torchrun", "sbatch", "nsys")
SHORTER = [  # pattern, options
    (r"^millrace synth photos --size 200", "--count 4"),
    (r"(millrace|nsys) train .*(resnet50|resnet18 --init)", "--max-steps 1"),
    (r"^millrace lr-find", "--steps 10"),
    (r"--split-at 100", "--batch 1"),
    (r"sweep gru-study", "--dry-run"),
    (r"^millrace profile", "--steps 6 --seconds 0.2"),
    (r"^millrace plan", "--seconds 0.3"),
    (r"^millrace bench loader", "--seconds 0.1 --rounds 1"),
    (r"^millrace bench trainer", "--seconds 0.1 --rounds 1"),
    (r"^millrace bench storage .*--step", "--seconds 0.1 --rounds 1 --from cache"),
    (r"train .*--parts 8", "--batch 8"),
    (r"--epochs 60", "--max-steps 20"),
    (r"^millrace watch --data", "--measure 0.1"),
]
EXPECTED = [  # pattern, exit status, what standard error says; where there is a GPU these lines run by hand
    (r"cuda", None, "cuda"),
]
SKIPPED = [
    (r"https://server", "names no real server"),
    (r"^sbatch|portable/|--elastic", "needs several machines"),
    (r"^nsys", "needs nsys and a GPU"),
    (r"^millrace bench storage .*--accelerator", "measures for a minute; cli_bench_storage has it with fewer steps"),
]


# ---- lines of pages ----
def joined(lines):
    """Lines joined with their continuations: after a backslash or a pipe."""
    whole = ""
    for number, line in lines:
        first = first if whole else number
        whole += line[:-1] if line.endswith("\\") else line
        if line.endswith(("\\", "|")):
            whole += " "
        else:
            yield first, whole
            whole = ""


def command_of(line):
    """The command in a line of a page, without its comment; None where it is something else."""
    text = re.sub(r"\s{2,}#.*$", "", line).strip()
    text = re.sub(r"^\$ ", "", text).replace("build/release/tools/millrace", "millrace")
    word, _, rest = re.sub(r"^([A-Z_]+=\S+ )*", "", text).partition(" ")
    ours = word == "millrace" and rest.split(" ")[0] in COMMANDS
    return text if ours or (word in LAUNCHERS and "millrace" in text) else None


def blocks_of_page(path, name):
    inside, block, lines = None, [], open(path, encoding="utf-8").read().split("\n")
    for number, line in enumerate(lines, 1):
        fence = re.match(r"^\s*```(\w*)", line)
        if fence and inside is None:
            inside, block = fence.group(1), []
        elif fence:
            if inside in ("", "sh"):
                text = [(number, command_of(whole)) for number, whole in joined(block)]
                yield name, [(n, c) for n, c in text if c], [b for _, b in block]
            inside = None
        elif inside is not None:
            block.append((number, line))


def blocks_of_help(millrace):
    for command in COMMANDS:
        text = subprocess.run([millrace, "help", command, "--all"], capture_output=True, text=True, check=True).stdout
        found, shown = [], False
        for number, line in enumerate(text.split("\n"), 1):
            shown = line.startswith("Example") or (shown and not re.match(r"^\S", line))
            if shown and command_of(line):
                found.append((number, command_of(line)))
        for one in found:  # each stands for itself
            yield f"help {command}", [one], []


# ---- data ----
def npy(shape, kind, data):
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    head += " " * (117 - len(head)) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data


def idx(shape, data):
    return struct.pack(f">I{len(shape)}I", 0x800 + len(shape), *shape) + data


class Data:
    """Makes the files that a line names, once, in a folder that is copied for every block."""

    def __init__(self, millrace, folder):
        self.millrace, self.folder = millrace, folder
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
        self.run("synth", "photos", "--classes", "4", "--count", "12", "--test-count", "4", "--size", "64", "--seed", "1")
        os.rename(self.path("photos/test"), self.path("photos/val"))
        self.run("synth", "cifar", "--classes", "4", "--count", "16", "--size", "32", "--seed", "2")
        self.run("convert", "photos", "photos.mrec")
        self.run("convert", "photos", "shards.mrec", "--shard-size", "40K")
        for part, to in (("train", "train"), ("val", "test")):
            self.run("convert", f"cifar/{part}" if part == "train" else "cifar/test", f"{to}.mrec")
        shutil.copytree(self.path("photos"), self.path("imagenet"))
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
                                "1", "--log-steps", "1", "--json", "--quiet"], cwd=self.folder, stdout=out, check=True)
        for page_name, run in (("run", "before"), ("other", "after")):
            shutil.copy(self.path(f"{run}.jsonl"), self.path(f"{page_name}.jsonl"))

    def recordio(self):
        out = b""
        for number, name in enumerate(sorted(os.listdir(self.path("photos/train")))):
            for picture in sorted(os.listdir(self.path(f"photos/train/{name}")))[:4]:
                with open(self.path(f"photos/train/{name}/{picture}"), "rb") as file:
                    record = struct.pack("<IfQQ", 0, number, len(out), 0) + file.read()
                out += struct.pack("<II", 0xced7230a, len(record)) + record + bytes(-len(record) % 4)
        self.write("imagenet/train.rec", out)

    def mnist(self):
        for name, count in (("train", 300), ("t10k", 100)):
            self.write(f"mnist/{name}-images-idx3-ubyte", idx((count, 28, 28), self.draw.randbytes(count * 784)))
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
        import io
        import tarfile
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


# ---- running ----
OUTPUTS = re.compile(r"--(?:out|html|trace|csv|svg|confusion|bad-list|draw) (\S+)")


def clear(command, folder):
    """Removes what an earlier line made under the name that this one writes to."""
    names = [] if command.startswith("millrace report") else OUTPUTS.findall(command)
    if command.startswith("millrace report"):
        names += re.findall(r"--html (\S+)", command)
    if command.startswith("millrace train") and "--resume" not in command:
        names += re.findall(r"--checkpoint (\S+)", command)
    made = re.match(r"millrace (?:convert|export|export-weights) \S+ ([^-\s]\S*)", command) or \
        re.match(r"millrace synth (\S+)", command)
    if made:
        names.append(made.group(1))
        if "--to" in command or "--shard-size" in command:
            stem = re.sub(r"\.mrec$", "", made.group(1))
            names += [n for n in os.listdir(folder) if n.startswith(stem + "-")]
    for name in names:
        path = os.path.join(folder, name)
        if os.path.isdir(path):
            shutil.rmtree(path)
        elif os.path.exists(path):
            os.remove(path)


def reason_to_skip(command):
    for pattern, reason in SKIPPED:
        if re.search(pattern, command):
            return reason
    launcher = re.sub(r"^([A-Z_]+=\S+ )*", "", command).split(" ")[0]
    if launcher != "millrace" and not shutil.which(launcher):
        return f"no {launcher} here"
    if launcher == "srun":
        return "needs several machines"
    return None


def run(command, folder, environment):
    extra = [options for pattern, options in SHORTER if re.search(pattern, command)]
    text = command.replace("/tmp/", "")
    for options in extra:
        words = options.split()
        if words[0] in text.split():
            continue
        text = re.sub(r"( \||$| > | -- )", f" {options}\\1", text, count=1)
    begun = time.monotonic()
    done = subprocess.run(["bash", "-o", "pipefail", "-c", text], cwd=folder, env=environment, capture_output=True,
                          stdin=subprocess.DEVNULL)
    if os.environ.get("PAGES_TIMES"):
        print(f"{time.monotonic() - begun:6.2f} s  {text}", flush=True)
    return text, done.returncode, done.stderr.decode("utf-8", "replace"), done.stdout.decode("utf-8", "replace")


def check(place, command, folder, data, environment):
    """The fault of a line, or None."""
    clear(command, folder)
    data.checkpoint(command, folder)
    text, status, err, out = run(command, folder, environment)
    for pattern, want, says in EXPECTED:
        if re.search(pattern, command):
            if status == 0 or status > 3 or (want is not None and status != want) or says not in err.lower():
                return f"{place}: {text}: expected an error that names {says}; status {status}: {err[-600:]}"
            return None
    if status != 0:
        return f"{place}: {text}: expected status 0, found {status}\n{err[-1500:]}{out[-300:]}"
    return None


def main():
    words = argparse.ArgumentParser()
    words.add_argument("millrace")
    words.add_argument("top")
    words.add_argument("--only", default="")
    words.add_argument("--list", action="store_true")
    asked = words.parse_args()
    millrace = os.path.abspath(asked.millrace)
    pages = [("README.md", os.path.join(asked.top, "README.md"))]
    docs = os.path.join(asked.top, "docs")
    pages += [(f"docs/{name}", os.path.join(docs, name)) for name in sorted(os.listdir(docs))
              if name.endswith(".md") and name != "sets.md"]
    blocks = [block for name, path in pages for block in blocks_of_page(path, name)] + list(blocks_of_help(millrace))
    blocks = [(name, lines, text) for name, lines, text in blocks if any(asked.only in c for _, c in lines)]
    if asked.list:
        for name, lines, _ in blocks:
            for number, command in lines:
                print(f"{name}:{number}: {command}")
        return 0
    ran, skipped, wrong, done = 0, {}, [], set()
    with tempfile.TemporaryDirectory(prefix="millrace-pages-") as room:
        base = os.path.join(room, "base")
        tools = os.path.join(room, "bin")
        os.makedirs(base)
        os.makedirs(tools)
        os.symlink(millrace, os.path.join(tools, "millrace"))
        os.symlink(sys.executable, os.path.join(tools, "python"))
        data = Data(millrace, base)
        data.make()
        texts = {}  # blocks that are files, such as study.txt, by the name in their first line
        for _, _, text in [b for name, path in pages for b in blocks_of_page(path, name)]:
            name = text and re.match(r"^# (\S+\.txt)", text[0])
            if name:
                texts[name.group(1)] = "\n".join(text) + "\n"
        for name, text in texts.items():
            data.write(name, re.sub(r"epochs  = \d+", "epochs  = 1", text))
        environment = dict(os.environ, PATH=tools + os.pathsep + os.environ["PATH"], XDG_CACHE_HOME=os.path.join(room, "cache"),
                           OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1",
                           TMPDIR=room)
        for name, lines, _ in blocks:
            lines = [(n, c) for n, c in lines if asked.only in c and not (len(lines) == 1 and c in done)]
            if not lines:
                continue
            folder = os.path.join(room, "work")
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(base, folder, copy_function=shutil.copy2)
            for number, command in lines:
                done.add(command)
                reason = reason_to_skip(command)
                if reason:
                    skipped.setdefault(reason, []).append(command)
                    continue
                ran += 1
                problem = check(f"{name}:{number}", command, folder, data, environment)
                if problem:
                    wrong.append(problem)
                    print(f"FAILED: {problem}", flush=True)
    for reason, commands in sorted(skipped.items()):
        print(f"not run: {len(commands)} lines: {reason}")
    print(f"{ran} lines ran, {len(wrong)} failed")
    return 1 if wrong or ran < (1 if asked.only else 60) else 0


if __name__ == "__main__":
    sys.exit(main())
