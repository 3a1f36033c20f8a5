"""The set, the commands and the checks of sets.py: what its steps (set_steps.py) are made of."""
import collections
import hashlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from rounds import last_words

# A process counts as memory of its own what its parent had when it was started. So a small process starts the commands:
# it takes arguments, folder and two files of output, one JSON object a line, and returns exit status, seconds and KiB.
STARTER = """
import json, os, sys, time
for line in sys.stdin:
    args, folder, out, err = json.loads(line)
    begun = time.monotonic()
    pid = os.fork()
    if pid == 0:
        try:
            os.chdir(folder)
            for fd, name, flags in ((0, os.devnull, os.O_RDONLY), (1, out, os.O_WRONLY), (2, err, os.O_WRONLY)):
                os.dup2(os.open(name, flags), fd)
            os.execv(args[0], args)
        finally:
            os._exit(127)
    _, status, cost = os.wait4(pid, 0)
    print(json.dumps([os.waitstatus_to_exitcode(status), time.monotonic() - begun, cost.ru_maxrss]), flush=True)
"""
Run = collections.namedtuple("Run", "command status seconds peak_mb out err line")


class Unexpected(Exception):
    """A step whose result is not the expected one; the text says which."""


def expect(condition, text):
    if not condition:
        raise Unexpected(text)


def same(found, wanted, what):
    expect(found == wanted, f"{what}: expected {str(wanted)[:200]}, found {str(found)[:200]}")


# ---- files ----

def files_below(folder):
    """Names of the visible regular files below a folder, sorted by bytes.

    >>> files_below("/no/such/folder")
    []
    """
    found = []
    for place, folders, names in os.walk(os.fsencode(folder)):
        folders[:] = [name for name in folders if not name.startswith(b".")]
        found += [os.path.relpath(os.path.join(place, name), os.fsencode(folder)) for name in names if not name.startswith(b".")]
    return sorted(os.fsdecode(name) for name in found)


def sum_of(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def sums(folder):
    """{name: SHA-256} of the files below a folder."""
    return {name: sum_of(os.path.join(folder, name)) for name in files_below(folder)}


def flip(path, offset):
    """Another byte at this offset, with the times of the file as they were."""
    before = os.stat(path)
    with open(path, "r+b") as f:
        f.seek(offset)
        old = f.read(1)
        f.seek(offset)
        f.write(bytes([old[0] ^ 0x55]))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def flat_jpeg(side):
    """A gray JPEG of side x side pixels, of one bit for each of the two codes of a block: all of them 0.

    >>> flat_jpeg(16)[-2:], len(flat_jpeg(16)) < 200
    (b'\\xff\\xd9', True)
    """
    def segment(marker, content):
        return bytes([0xFF, marker]) + (len(content) + 2).to_bytes(2, "big") + content
    size = side.to_bytes(2, "big")
    one_code = bytes([1] + [0] * 15 + [0])
    blocks = (-(-side // 8)) ** 2
    return (b"\xff\xd8" + segment(0xDB, bytes([0]) + bytes([1] * 64)) + segment(0xC0, b"\x08" + size + size + b"\x01\x01\x11\x00") +
            segment(0xC4, b"\x00" + one_code) + segment(0xC4, b"\x10" + one_code) + segment(0xDA, b"\x01\x01\x00\x00\x3f\x00") +
            bytes(-(-2 * blocks // 8)) + b"\xff\xd9")


# ---- the run ----

class Journey:
    """One step's folder and commands. `photos` is the set, which no step changes: copy() gives a folder to change."""

    def __init__(self, millrace, work, photos):
        self.millrace, self.work, self.photos = os.path.abspath(millrace), work, os.path.abspath(photos)
        self.names = files_below(photos)
        self.sums = sums(photos)
        self.sizes = {name: os.path.getsize(os.path.join(photos, name)) for name in self.names}
        self.classes = sorted({os.path.dirname(name) for name in self.names})
        self.bytes = sum(self.sizes.values())
        self.runs, self.folder = [], work
        self.env = {**os.environ, "LC_ALL": "C", "XDG_CACHE_HOME": os.path.join(work, "cache")}
        self.starter = subprocess.Popen([sys.executable, "-S", "-E", "-c", STARTER], env=self.env, text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)

    def close(self):
        self.starter.stdin.close()
        self.starter.wait()

    def begin(self, number):
        self.folder = os.path.join(self.work, f"step-{number}")
        os.makedirs(self.folder)
        self.runs = []

    def end(self, keep):
        if not keep:
            shutil.rmtree(self.folder)

    def at(self, name):
        return os.path.join(self.folder, name)

    def shard_bytes(self, count):
        """A size of shards that makes `count` of them, or some more."""
        return str(max(4096, self.bytes // count, max(self.sizes.values()) + 8192))

    def copy(self, name, names=None):
        """A folder with these pictures of the set (all)."""
        for one in self.names if names is None else names:
            to = os.path.join(self.at(name), one)
            os.makedirs(os.path.dirname(to), exist_ok=True)
            shutil.copy2(os.path.join(self.photos, one), to)
        return self.at(name)

    def call(self, args, status):
        """Run the command; its exit status has to be this one."""
        with tempfile.NamedTemporaryFile() as out, tempfile.NamedTemporaryFile() as err:
            self.starter.stdin.write(json.dumps([[self.millrace, *args], self.folder, out.name, err.name]) + "\n")
            self.starter.stdin.flush()
            found, took, peak_kib = json.loads(self.starter.stdout.readline())
            texts = [file.read().decode(errors="backslashreplace") for file in (out, err)]
        run = Run("millrace " + shlex.join(args).replace(self.work + os.sep, ""), found, took, peak_kib / 1024, *texts,
                  last_words(texts[0] if texts[0].strip() else texts[1]))
        return run, f"{run.command}: expected exit status {status}, found {found}: {last_words(texts[1])}" if found != status else None

    def prepare(self, *args, status=0):
        """A command before the one that the step is about."""
        run, wrong = self.call([*args, "--quiet"], status)
        expect(not wrong, wrong)
        return run

    def run(self, *args, status=0, says=(), lacks=()):
        """The command of the step: printed with its cost. says: texts (patterns) that its output has; the first one selects the
        printed line. lacks: texts that its output must not have."""
        run, wrong = self.call(list(args), status)
        text = run.out + run.err
        says = [says] if isinstance(says, str) else list(says)
        for line in text.splitlines() if says else ():
            if re.search(says[0], line):
                run = run._replace(line=line.strip())
                break
        self.runs.append(run)
        expect(not wrong, wrong)
        for pattern in says:
            expect(re.search(pattern, text, re.M), f"{run.command}: expected \"{pattern}\" in its output")
        for pattern in [lacks] if isinstance(lacks, str) else lacks:
            found = re.search(pattern, text, re.M)
            expect(not found, f"{run.command}: not expected in its output: \"{found and found[0]}\"")
        return run

    def kill_when(self, ready, *args):
        """Start the command and kill it (SIGKILL) once ready() holds. False: it ended before."""
        child = subprocess.Popen([self.millrace, *args], cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
        while child.poll() is None and not ready():
            time.sleep(0.0005)
        child.send_signal(signal.SIGKILL)
        status = child.wait()
        expect(status in (0, -signal.SIGKILL), f"millrace {shlex.join(args)}: expected to be killed, found exit status {status}")
        return status != 0

    def exported(self, data, *more):
        """{name: SHA-256} of the pictures of a data set, by `export`."""
        to = self.at("exported")
        shutil.rmtree(to, ignore_errors=True)
        self.prepare("export", data, to, *more)
        found = sums(to)
        shutil.rmtree(to)
        return found

    def is_whole(self, data, wanted=None):
        """The data set has these pictures, under these names, and no others."""
        found, wanted = self.exported(data), self.sums if wanted is None else wanted
        odd = sorted(set(found.items()) ^ set(wanted.items()))
        expect(not odd, f"{data}: {len(odd)} names or pictures differ; the first is {odd[:1]}")
