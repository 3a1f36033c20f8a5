#!/usr/bin/env python3
"""Runs every code block of every page, and the example lines of `millrace help COMMAND`, each as it is written, on small data.

usage: page_run.py MILLRACE TOP BUILD CC [--only TEXT] [--page NAME] [--list]
  TOP           the checkout
  BUILD         the build folder, whose library, headers and Python libraries the blocks use
  PAGES_TIMES=1 prints the processor time of each command
  --only TEXT   only help pages and shell lines that contain TEXT
  --page NAME   only the pages whose name contains NAME (for help: "help COMMAND")
  --list        print all blocks with the mark or language that says how they run; run nothing

The blocks of a page run in order in one folder (examples of help in a folder each, unless a page has the same line), which has the data
that the pages name (page_data.py). A shell block is run line by line, with its exports; a Python block in Python with the package of this
tree; a C block that begins with a comment naming its file is written to that file, and compiled by the page's own command; another C
block is compiled in a frame. Output that a page shows is compared by shape: numbers are free. Marks in the source of the page say what
does not run, and why (page_blocks.py). A block without a rule is an error. SHORTER and SMALLER keep a line short: options that are
appended, and words that are replaced.

No line may write into the checkout. Lines see a copy of its folders; a line that sets MILLRACE_UPDATE, with which tests write their
expected files, is refused; a page after which a file of the checkout has changed fails.
"""
import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile

import page_blocks
import page_data

HERE = os.path.dirname(os.path.abspath(__file__))
FIRST = ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "python/README.md"]
LAST = ["formats/record/FORMAT.md", "train/state/CHECKPOINT.md", "tests/faults/README.md", "tests/fuzz/README.md", "tests/data/tfrecord/README.md"]
SHORTER = [  # pattern, options
    (r"train .*(resnet50|resnet18)(?!.*--augment)", '--augment "resize(32x32)"'),
    (r"(train|nsys) .*(resnet50|resnet18)", "--max-steps 1 --val none"),
    (r"^millrace synth photos --size 200", "--count 4"),
    (r"^millrace synth (/tmp/)?shapes$", "--count 20"),
    (r"^(build/release/tools/)?millrace train /tmp/shapes", "--max-steps 6"),
    (r"^millrace lr-find", '--steps 10 --augment "resize(32x32)"'),
    (r"--split-at 100", "--batch 1"),
    (r"sweep gru-study", "--dry-run"),
    (r"^millrace train .*--json", "--max-steps 4"),
    (r"^millrace train (photos|train.mrec|faces.csv|texts.csv|notes\S+) ", "--max-steps 3"),
    (r"^millrace (profile|plan) (?!.*--devices)", "--threads 1 --batch 8"),
    (r"^millrace profile", "--steps 3 --seconds 0.01"),
    (r"^(mpirun (?!.*--parts)|.*--sync).*train", "--threads 1"),
    (r"^millrace bench limits", "--seconds 0.02"),
    (r"millrace plan .*--model resnet50", '--augment "resize(32x32)"'),
    (r"mpirun.* plan", "--batch 8"),
    (r"plan .*(resnet50|train.mrec)", "--no-forms"),
    (r"millrace plan", "--seconds 0.05"),
    (r"bench loader", "--seconds 0.1 --rounds 1"),
    (r"^millrace bench trainer", "--seconds 0.1 --rounds 1"),
    (r"^millrace bench storage", "--seconds 0.1 --rounds 1 --from cache"),
    (r"bench exchange", "--rounds 1"),
    (r"train .*--parts 8", "--batch 8"),
    (r"mnist-vae --checkpoint", "--max-steps 2"),
    (r"--elastic", "--max-steps 1"),
    (r"^millrace watch --data", "--measure 0.1"),
]
SMALLER = [  # lines, text, replacement
    (r"mpirun|torchrun|plan", r"--model resnet50", "--model cifar-resnet20"),  # one line of README trains a ResNet-50
    (r"^millrace synth photos --size 200", r"--count \d+", "--count 4"),
    (r"^millrace synth shapes", r"--count \d+", "--count 20"),
    (r"profile", r"--steps 100", "--steps 3 --seconds 0.01"),
    (r"bench trainer", r"--batch 128", "--batch 16"),
    (r"bench storage", r"--step 50ms --batch 128", "--step 5ms --batch 16"),
    (r"bench exchange", r"64K,25M", "64K,1M"),
]
LAUNCHERS = ("mpirun", "srun", "torchrun", "nsys", "podman", "jq", "openssl", "sha256sum")
HELP_SKIPPED = [  # examples of help pages
    (r"https://server", "names no real server"),
    (r"^(srun|sbatch)|--elastic", "needs several machines"),
    (r"^nsys", "needs nsys and a GPU"),
    (r"^millrace bench storage .*--accelerator", "measures for a minute; cli_bench_storage has it with fewer steps"),
]


def processor_time():
    """Seconds of this process and of all that it has started and waited for."""
    return sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


# ---- the checkout, which no line may change ----
class Checkout:
    """The files of the checkout besides build folders, with the times and sizes by which git decides that a file is unchanged."""

    def __init__(self, top, build):
        self.top, self.build = os.path.realpath(top), os.path.realpath(build)
        self.files = self.state()

    def state(self):
        found, folders = {}, [self.top]
        while folders:
            for entry in os.scandir(folders.pop()):
                if entry.is_dir(follow_symlinks=False):
                    ignored = entry.name in (".git", "__pycache__", "build", "shared") or entry.path == self.build
                    folders += [] if ignored else [entry.path]
                elif entry.name != ".git" and not entry.name.endswith((".part", ".pyc")):
                    s = entry.stat(follow_symlinks=False)
                    found[entry.path] = (s.st_mode, s.st_size, s.st_mtime_ns, s.st_ino)
        return found

    def changed(self):
        """The files that differ since the last call, or since the beginning."""
        before, self.files = self.files, self.state()
        paths = {path for path, _ in before.items() ^ self.files.items()}
        return sorted(os.path.relpath(path, self.top) for path in paths)

    def copy(self, name, to):
        """A folder of the checkout, without the seeds of fuzzers, which no page names."""
        shutil.copytree(os.path.join(self.top, name), to, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", "corpus"))


# ---- the surroundings of all blocks ----
class House:
    """Programs, libraries and data of the blocks, in one temporary folder."""

    def __init__(self, asked, room):
        self.room, self.top, self.build, self.cc = room, os.path.abspath(asked.top), os.path.abspath(asked.build), asked.cc
        self.millrace, self.folder, self.prelude = os.path.abspath(asked.millrace), None, []
        self.names = {}
        tools, base = os.path.join(room, "bin"), os.path.join(room, "base")
        self.checkout = Checkout(self.top, self.build)
        for path in (tools, base, os.path.join(room, "home"), os.path.join(room, "copy")):
            os.makedirs(path)
        os.symlink(self.millrace, os.path.join(tools, "millrace"))
        for name in ("python", "python3"):
            os.symlink(sys.executable, os.path.join(tools, name))
        os.symlink(shutil.which(self.cc) or self.cc, os.path.join(tools, "cc"))
        self.data = page_data.Data(self.millrace, base, self.top)
        self.data.make()
        self.studies()
        self.environment = dict(
            os.environ, PATH=tools + os.pathsep + os.environ["PATH"], XDG_CACHE_HOME=os.path.join(room, "cache"), TMPDIR=room,
            HOME=os.path.join(room, "home"), OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
            OMPI_MCA_rmaps_base_oversubscribe="1", PYTHONPATH=os.path.join(self.top, "python"), MILLRACE_PYTHON_LIBRARIES=self.build,
            PYTHONDONTWRITEBYTECODE="1", OMP_NUM_THREADS="2", OMP_WAIT_POLICY="passive")
        self.installed = False

    def new_folder(self, text):
        """A fresh copy of the data that text names (links to weights and to other data, which no line changes), with copies of the
        checkout's folders under the names that the pages call them by."""
        self.folder, self.prelude = os.path.join(self.room, "work"), []
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)
        for name in os.listdir(self.data.folder):
            source, copy = os.path.join(self.data.folder, name), os.path.join(self.folder, name)
            of_text = re.sub(r"-\d+(?=\.)", "", name)  # shards.mrec is several files
            if not re.search(rf"(?<![\w.-]){re.escape(of_text)}(?![\w.-])", text) or name.endswith((".npz", ".safetensors")):
                os.symlink(source, copy)
            elif os.path.isdir(source):
                shutil.copytree(source, copy, copy_function=os.link)  # nobody writes into a picture
            else:
                shutil.copy2(source, copy)
        for name in ("tools", "tests", "bench", "examples"):
            copy = os.path.join(self.room, "copy", name)
            if f"{name}/" in text and not os.path.exists(copy):
                self.checkout.copy(name, copy)
            os.symlink(copy, os.path.join(self.folder, name))
        os.makedirs(os.path.join(self.folder, "build"))
        os.symlink(self.build, os.path.join(self.folder, "build", "release"))
        self.names = {name: os.path.join(self.folder, path) for name, path in (
            ("PHOTOS", "shapes/train"), ("RECORDS", "python-r.mrec"), ("TAR", "python-t.tar"), ("OUT", "python-o.mrec"), ("CACHE", "python-cache"),
            ("RUN", "python-run"))}

    def studies(self):
        """The files of docs/sweep.md, which help pages name, too."""
        for block in page_blocks.blocks_of("docs/sweep.md", os.path.join(self.top, "docs", "sweep.md")):
            if named_file(block):
                write_file(block, named_file(block), self.data.folder)

    def install(self):
        """The library as a program finds it: installed, once, when the first block asks for it."""
        if not self.installed:
            prefix = os.path.join(self.room, "prefix")
            done = subprocess.run(["cmake", "--install", self.build, "--prefix", prefix], capture_output=True, text=True)
            if done.returncode:
                sys.exit(f"cmake --install: {done.stderr}{done.stdout[-500:]}")
            pc = next(folder for folder, _, files in os.walk(prefix) if "millrace.pc" in files)
            self.environment.update(PKG_CONFIG_PATH=pc, LD_LIBRARY_PATH=os.path.dirname(pc), CMAKE_PREFIX_PATH=prefix, CC=self.cc)
            self.installed = True

    def bash(self, text):
        """Exit status and output (both streams together) of a command."""
        begun = processor_time()
        done = subprocess.run(["bash", "-o", "pipefail", "-c", "\n".join(self.prelude + [text])], cwd=self.folder, env=self.environment,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        if os.environ.get("PAGES_TIMES"):
            print(f"{processor_time() - begun:6.2f} s  {text}", flush=True)
        return done.returncode, done.stdout.decode("utf-8", "replace")


# ---- shell ----
OUTPUTS = re.compile(r"--(?:out|html|trace|csv|svg|confusion|bad-list|draw) (\S+)")


def clear(command, folder):
    """Removes what an earlier line or the data has under the name that this line writes to."""
    names = [] if command.startswith("millrace report") else OUTPUTS.findall(command)
    if command.startswith("millrace report"):
        names += re.findall(r"--html (\S+)", command)
    if "millrace train" in command and "--resume" not in command:
        names += re.findall(r"--checkpoint (\S+)", command)
    made = re.match(r"millrace (?:convert|export|export-weights) \S+ ([^-\s]\S*)", command) or \
        re.match(r"millrace (?:synth|manifest \S+) (\S+)", command)
    if made and "--update" not in command:  # which continues the existing files
        names.append(made.group(1))
        if "--to" in command or "--shard-size" in command:
            stem = re.sub(r"\.mrec$", "", made.group(1))
            names += [n for n in os.listdir(folder) if n.startswith(stem + "-")]
    for name in names:
        path = os.path.join(folder, name)
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        elif os.path.lexists(path):
            os.remove(path)


def shortened(command):
    text = re.sub(r"(^|\s)build/release/tools/millrace\b", r"\1millrace", command).replace("/tmp/", "") if "cuda_emu" not in command else command
    for pattern, words, smaller in SMALLER:
        if re.search(pattern, text):
            text = re.sub(words, smaller, text)
    for pattern, options in SHORTER:
        if (re.search(pattern, command) or re.search(pattern, text)) and options.split()[0] not in text.split():
            text = re.sub(r"( \||$| > | -- )", lambda m: f" {options}{m.group(1)}", text, count=1)
    return text


def launcher_missing(command):
    """A program that the command starts and this machine lacks, or None."""
    for word in re.split(r"[\s|&;()]+", command):
        if word in LAUNCHERS and not shutil.which(word):
            return word
    return None


def run_line(house, place, command, shown):
    """The fault of a line, or None."""
    if re.match(r"(export|umask|cd) ", command):
        house.prelude.append(command)
    if "pkg-config" in command:
        house.install()
    if "MILLRACE_UPDATE" in command:
        return f"{place}: {command}: not run, since it writes files of the checkout: expected the mark <!-- not run: REASON --> before the block"
    text = shortened(command)
    if re.search(r"(^|\s)millrace ", text):
        clear(text, house.folder)
        house.data.checkpoint(text, house.folder)
    status, out = house.bash(text)
    if "cuda" in command and "cuda_emu" not in command and "nsys_correlate" not in command and status:  # on a machine with a GPU the line runs
        return None if status <= 3 and "cuda" in out.lower() else f"{place}: {text}: expected an error that names cuda; status {status}: {out[-600:]}"
    if status:
        return f"{place}: {text}: expected status 0, found {status}\n{out[-1500:]}"
    lost = page_blocks.missing(shown, out)
    return f"{place}: {text}: the page shows a line that is not printed: {lost}\n{out[-1500:]}" if lost else None


# ---- C and CMake ----
def framed(house, block):
    """The fault of a block that is compiled in a frame and run, or None."""
    house.install()
    folder = os.path.join(house.folder, "framed")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    frame = os.path.join(HERE, "frames", block.frame)
    suffix = os.path.splitext(frame)[1]
    for number, text in enumerate(re.split(r"\n\s*\n", block.text), 1):
        with open(os.path.join(folder, f"paragraph_{number}{suffix}"), "w", encoding="utf-8") as file:
            file.write(text + "\n")
    shutil.copy(frame, folder)
    if block.frame == "CMakeLists.txt":
        shutil.copy(os.path.join(house.top, "examples", "loader.c"), folder)
        command = "cmake -S framed -B framed/build >framed/log && cmake --build framed/build >>framed/log && framed/build/my_trainer photos"
    else:
        command = f"$CC -std=c11 -Wall -Wextra -Werror -o framed/program framed/{block.frame} $(pkg-config --cflags --libs millrace) && framed/program photos"
    status, out = house.bash(command)
    return f"{block.place}: in the frame {block.frame}: status {status}\n{out[-1500:]}" if status else None


# ---- Python ----
def run_python(house, blocks, tally):
    """Adjacent blocks of a page, in one process."""
    results = os.path.join(house.room, "results.jsonl")
    if os.path.exists(results):
        os.remove(results)
    task = {"names": house.names, "picture": house.data.picture(), "blocks": [{"place": b.place, "code": b.text} for b in blocks]}
    begun = processor_time()
    done = subprocess.run([sys.executable, os.path.join(HERE, "page_python.py"), results], input=json.dumps(task), cwd=house.folder,
                          env=house.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if os.environ.get("PAGES_TIMES"):
        print(f"{processor_time() - begun:6.2f} s  {blocks[0].place}: {len(blocks)} Python blocks", flush=True)
    found = {}
    if os.path.exists(results):
        with open(results, encoding="utf-8") as file:
            found = {row["place"]: row for row in map(json.loads, file)}
    for block in blocks:
        row = found.get(block.place, {"failed": f"the process ended with status {done.returncode}: {done.stdout[-1500:]}"})
        if "skip" in row:
            tally.skipped(block.place, row["skip"])
        elif "failed" in row:
            tally.failed(f"{block.place}: {row['failed']}")
        else:
            tally.ran += 1


# ---- pages ----
class Tally:
    def __init__(self):
        self.ran, self.lines, self.wrong, self.reasons, self.seen = 0, 0, [], {}, set()

    def skipped(self, place, reason):
        self.reasons.setdefault(reason, []).append(place)

    def failed(self, text):
        self.wrong.append(text)
        print(f"FAILED: {text}", flush=True)


def named_file(block):
    """The name in the first line of a block that is a file: `# study.txt`, `/* batches.c: ... */`."""
    first = re.match(r"^(?:#|//|/\*) (\w[\w-]*\.(?:txt|c|py|cmake|sh))\b", block.lines[0] if block.lines else "")
    return block.file or (first.group(1) if first else None)


def write_file(block, name, folder):
    """A study trains one epoch with one seed and one kind of device."""
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        text = re.sub(r"(?m)^(epochs  = )\d+", r"\g<1>1", block.text)
        file.write(re.sub(r"(?m)^((?:seed|devices) += \S+) \|.*$", r"\1", text) if name.endswith(".txt") else block.text)


def run_shell(house, block, tally, only):
    ran = False
    for number, command, shown in page_blocks.commands(block):
        place = f"{block.page}:{number}"
        if only not in command or (block.page.startswith("help ") and command in tally.seen):
            continue
        tally.seen.add(command)
        reason = next((text for where, text in block.skip_lines if where in command), None)
        lacks = launcher_missing(command)
        if reason or lacks:
            tally.skipped(place, reason or f"no {lacks} here")
            continue
        ran = True
        tally.lines += 1
        fault = run_line(house, place, command, shown)
        if fault:
            tally.failed(fault)
    tally.ran += ran


def run_block(house, block, tally, only):
    """One block that is not Python."""
    name = named_file(block)
    if block.skip:
        tally.skipped(block.place, block.skip)
    elif block.output_of:
        status, out = house.bash(shortened(block.output_of))
        lost = page_blocks.missing(block.lines, out)
        tally.ran += 1
        if status or lost:
            tally.failed(f"{block.place}: `{block.output_of}`: status {status}, the page shows a line that is not printed: {lost}\n{out[-1500:]}")
    elif name:
        write_file(block, name, house.folder)
        tally.ran += 1
    elif block.frame:
        fault = framed(house, block)
        tally.ran += 1
        if fault:
            tally.failed(fault)
    elif block.language in ("", "sh"):
        run_shell(house, block, tally, only)
    else:
        tally.failed(f"{block.place}: a block of {block.language} without a rule: mark it (tests/pages/page_blocks.py)")


def run_page(house, blocks, tally, only=""):
    run_blocks(house, blocks, tally, only)
    changed = house.checkout.changed()
    if changed:
        tally.failed(f"{blocks[0].page}: files of the checkout changed while its blocks ran: {', '.join(changed)}; expected no change: mark the "
                     "line that writes them with <!-- not run: REASON -->")


def run_pages(house, pages, tally, only):
    for _, blocks in pages:
        if any(only in b.text for b in blocks):
            run_page(house, blocks, tally, only)


def run_blocks(house, blocks, tally, only):
    house.new_folder(" ".join(block.text + str(block.output_of) for block in blocks[:1 if blocks[0].page.startswith("help ") else None]))
    waiting = []  # Python blocks
    for block in blocks + [None]:
        if block is not None and block.page.startswith("help ") and block is not blocks[0]:
            house.new_folder(block.text)
        if block is not None and block.language == "python" and not block.skip:
            waiting += [] if only else [block]
            continue
        if waiting:
            run_python(house, waiting, tally)
            waiting = []
        if block is not None:
            run_block(house, block, tally, only)


def commands_of(millrace):
    text = subprocess.run([millrace, "help"], capture_output=True, text=True, check=True).stdout
    return re.findall(r"(?m)^  (\S+) +\S", text.split("Commands:")[1].split("\n\n")[0])


def help_blocks(millrace, command):
    """The examples of a help page, each a block that stands alone."""
    text = subprocess.run([millrace, "help", command, "--all"], capture_output=True, text=True, check=True).stdout
    found, shown = [], False
    for line in text.split("\n"):
        shown = line.startswith("Example") or (shown and not re.match(r"^\S", line))
        if shown and re.match(r"^\s+([A-Z_]+=\S+ )*(millrace|mpirun|srun|sbatch|torchrun|nsys) ", line):
            found.append(re.sub(r"\s{2,}#.*$", "", line).strip())
    blocks = []
    for number, line in enumerate(found, 1):
        blocks.append(page_blocks.Block(f"help {command}", number, "sh", [line], []))
        blocks[-1].skip_lines = [(line, reason) for pattern, reason in HELP_SKIPPED if re.search(pattern, line)]
    return blocks


def all_pages(top):
    names = FIRST + [f"docs/{name}" for name in sorted(os.listdir(os.path.join(top, "docs"))) if name.endswith(".md")]
    return [(name, os.path.join(top, name)) for name in names + LAST]


def rule(block):
    return f"not run: {block.skip}" if block.skip else f"output of {block.output_of}" if block.output_of else \
        f"file {named_file(block)}" if named_file(block) else f"in {block.frame}" if block.frame else block.language or "sh"


def main():
    words = argparse.ArgumentParser()
    for name in ("millrace", "top", "build", "cc"):
        words.add_argument(name)
    for name in ("--only", "--page"):
        words.add_argument(name, default="")
    words.add_argument("--list", action="store_true")
    asked = words.parse_args()
    tally, total, marked, others, pages = Tally(), 0, 0, 0, []
    for name, path in all_pages(asked.top):
        elsewhere = page_blocks.run_elsewhere(path)
        blocks = page_blocks.blocks_of(name, path)
        if asked.page not in name:
            continue
        total += len(blocks)
        if elsewhere:
            others += len(blocks)
            print(f"{name}: {len(blocks)} blocks are run by {elsewhere}")
        elif blocks:
            marked += sum(block.skip is not None for block in blocks)
            pages.append((name, blocks))
    examples = [(f"help {c}", help_blocks(asked.millrace, c)) for c in commands_of(asked.millrace) if asked.page in f"help {c}"]
    if asked.list:
        for _, blocks in pages + examples:
            for block in blocks:
                print(f"{block.place}: {rule(block)}")
        return 0
    with tempfile.TemporaryDirectory(prefix="millrace-pages-") as room:
        house = House(asked, room)
        run_pages(house, pages, tally, asked.only)
        of_pages = tally.ran
        run_pages(house, examples, tally, asked.only)
    for reason, places in sorted(tally.reasons.items()):
        print(f"not run: {reason}: {', '.join(places)}")
    print(f"{total} blocks of pages: {of_pages} ran, {others} are run by other tests, {marked} are marked as not run, "
          f"{total - of_pages - others - marked} lack a program here; {tally.ran - of_pages} examples of {len(examples)} help pages ran; "
          f"{tally.lines} shell lines, {len(tally.wrong)} failures; "
          f"{processor_time():.0f} s of processor time")
    few = not asked.only and not asked.page and tally.lines < 100
    return 1 if tally.wrong or few else 0


if __name__ == "__main__":
    sys.exit(main())
