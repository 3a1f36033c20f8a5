"""Whether a run under a fault ends as allowed: like the undisturbed one, or with a reported failure that leaves nothing half written."""

import fnmatch
import json
import os
import re
import shutil

# what measures the run or the machine, or says how it went about it, in lines of --json
MEASURED = re.compile(r"seconds|per_s$|^hardware$|_ms|_fraction$|^stages$|^verdict$|rss_bytes$|memory_bytes$|^bytes_read$|^bytes_copied$|^cache_"
                      r"|^io$|^io_note$|^readers$|^warmup|^run_id$|^causes$|^late_rank$")
# and in text
MEASURED_TEXT = re.compile(r"\d[\d.,]*(e[+-]\d+)?(?= *(s|ms|us|records/s|samples/s|pictures/s|[KMG]i?B/s)\b)")


def _masked(value):
    if isinstance(value, dict):
        return {k: None if MEASURED.search(k) else _masked(v) for k, v in value.items()}
    return [_masked(v) for v in value] if isinstance(value, list) else value


def said(text):
    """Standard output without what differs from run to run."""
    lines = []
    for line in text.decode("utf-8", "replace").splitlines():
        if line.startswith("{"):
            try:
                lines.append(json.dumps(_masked(json.loads(line))))
                continue
            except ValueError:
                pass
        lines.append(MEASURED_TEXT.sub("#", line))
    return "\n".join(lines)


def tree(folder, contents=True):
    """Every path below folder: None for a folder, bytes for a file; without contents, the facts that a change of it would change."""
    out = {}
    stack = [""]
    while stack:
        below = stack.pop()
        for entry in os.scandir(os.path.join(folder, below)):
            path = os.path.join(below, entry.name)
            if entry.is_dir(follow_symlinks=False):
                out[path] = None
                stack.append(path)
            elif entry.is_symlink():
                out[path] = os.readlink(entry.path).encode()
            elif contents:
                with open(entry.path, "rb") as f:
                    out[path] = f.read()
            else:
                st = entry.stat(follow_symlinks=False)
                out[path] = (st.st_size, st.st_mtime_ns, st.st_ino, st.st_mode)
    return out


def matches(path, patterns):
    return any(fnmatch.fnmatchcase(path, p) for p in patterns)


def differing(data, other):
    """Positions of the words of 4 bytes that differ: of two drawn numbers one byte in 256 is the same by chance."""
    words = {i // 4 for i, (a, b) in enumerate(zip(data, other)) if a != b}
    return {i for i in range(len(data)) if i // 4 in words}


class Expected:
    """What undisturbed runs of a job gave; what differs between them is not looked at."""

    def __init__(self, job, runs):
        self.job = job
        self.stdout = said(runs[0].stdout)
        self.outputs = runs[0].files
        self.loose = {}  # path: positions that differ from run to run, or None
        if any(said(r.stdout) != self.stdout for r in runs):
            raise SystemExit(f"{job.name}: undisturbed runs print different things:\n" + "\n".join(said(r.stdout) for r in runs))
        for run in runs[1:]:
            if set(run.files) != set(self.outputs):
                raise SystemExit(f"{job.name}: undisturbed runs write different files: {sorted(set(run.files) ^ set(self.outputs))}")
            for path, data in run.files.items():
                first = self.outputs[path]
                if data == first or matches(path, job.measured):
                    continue
                if len(data) != len(first):
                    self.loose[path] = None
                elif self.loose.get(path, ()) is not None:
                    self.loose[path] = self.loose.get(path, set()) | differing(data, first)

    def same(self, path, data):
        want = self.outputs[path]
        if data == want or matches(path, self.job.measured):
            return True
        if path not in self.loose or data is None or want is None:
            return False
        where = self.loose[path]
        if where is None or len(data) != len(want):
            return where is None
        data = bytearray(data)
        for i in where:
            data[i] = want[i]
        return data == want

    def files_of_success(self, files):
        """Faults in the files of a run that ended well."""
        for path, data in files.items():
            if path not in self.outputs:
                if not matches(path, self.job.optional):
                    return f"left {path}"
            elif not self.same(path, data) and not matches(path, self.job.optional):
                return f"other bytes in {path}"
        for path in self.outputs:
            if path not in files and not matches(path, self.job.optional):
                return f"no {path}"
        return None

    def files_of_failure(self, files, copies, accepts, killed=False):
        """Faults in the files of a run that failed or was killed: a final name holds the whole file, or nothing (or its old contents).
        accepts(args): whether the command ends well with these."""
        whole = self.job.whole
        for path, data in files.items():
            if path in copies and data == copies[path]:
                continue
            if path in self.outputs:
                if matches(path, LOGS) and lines_of(data, self.outputs[path], killed):
                    continue
                if not self.same(path, data) and not matches(path, PART_ONLY) and not matches(path, self.job.optional):
                    if not (whole and matches(path, [whole[0]]) and accepts(whole[1] + [path])):
                        return f"half of {path}"
            elif path in copies:
                return f"changed {path}"
            elif not matches(path, self.job.parts + self.job.optional):
                return f"left {path}"
        for path in copies:
            if path not in files and path in self.outputs:
                return f"no {path} any more"
        return None


PART_ONLY = ["*.part", "*.part.*"]
LOGS = ["*.bad.jsonl"]  # appended to, line by line, under their final name


def lines_of(data, want, killed):
    """Lines of the whole list, in its order; the last one may be torn when the run was killed."""
    *lines, rest = data.split(b"\n")
    left = iter(want.split(b"\n"))
    return all(line in left for line in lines) and (not rest or (killed and any(line.startswith(rest) for line in left)))

ERROR_TEXT = {"ENOMEM": ["memory", "refused"], "EIO": ["nput/output error"], "ENOSPC": ["No space left"],
              "EMFILE": ["Too many open files"], "EAGAIN": ["Resource temporarily unavailable", "refused", "thread"],
              "ENOLCK": ["No locks available"], "EPERM": ["not permitted"], "EACCES": ["Permission denied"]}


def message_lacks(cls, stderr, stdout, error):
    """Facts missing from the message of a failed run. For verify and inspect, the list of faults is the result."""
    text = (stderr + stdout).decode("utf-8", "replace")
    if b"millrace: " not in stderr:
        return "no message"
    want = ["standard output"] if cls == "print" else ERROR_TEXT.get(error)
    if want and not any(w in text for w in want):
        return f"message without '{want[0]}'"
    return None


def reports(cls, stderr, stdout, error, path=""):
    """Does a run that ended well report the system's failure, and the files left because of it?"""
    return message_lacks(cls, stderr, stdout, error) is None and path.encode() in stderr


def restore(folder, journal, what):
    """Take back changes that were not fsynced when the process was killed. what: data, names or all (journal.c has the model)."""
    with open(os.path.join(journal, "log"), encoding="utf-8") as f:
        log = [line.rstrip("\n").split("\t") for line in f]
    inodes = {}
    for base, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(base, name)
            if not os.path.islink(path):
                inodes.setdefault(os.stat(path).st_ino, []).append(path)
    kept = {}
    for number in os.listdir(journal):
        if number.isdigit():
            with open(os.path.join(journal, number), "rb") as f:
                kept[int(number)] = f.read()
        elif number.startswith("kept-"):
            path = os.path.join(journal, number)
            inodes.setdefault(os.stat(path).st_ino, []).append(path)
    if what in ("data", "all"):
        for inode, content in kept.items():
            if inode in inodes:
                with open(inodes[inode][0], "r+b") as f:
                    f.truncate(0)
                    f.write(content)
    if what not in ("names", "all"):
        return
    synced = set()  # folders that were fsynced after the line that is looked at
    for fields in reversed(log):
        kind = fields[0]
        if kind == "f":
            synced.add(os.path.normpath(fields[1]))
            continue
        if kind == "s" or os.path.dirname(os.path.normpath(fields[1])) in synced:
            continue
        try:
            if kind in "cl":
                os.unlink(fields[1])
            elif kind == "d":
                shutil.rmtree(fields[1])
            elif kind == "r":
                os.rename(fields[2], fields[1])
                if os.path.exists(os.path.join(journal, "kept-" + fields[3])):
                    os.link(os.path.join(journal, "kept-" + fields[3]), fields[2])
            elif kind == "x":
                middle = fields[1] + ".between"
                os.rename(fields[1], middle)
                os.rename(fields[2], fields[1])
                os.rename(middle, fields[2])
            elif kind == "u":
                os.link(os.path.join(journal, "kept-" + fields[2]), fields[1])
            elif kind == "k":
                os.mkdir(fields[1])
        except OSError:
            pass  # a later line that stays has undone it
    for name in os.listdir(journal):  # a file that is back has no other name, as after a power cut
        if name.startswith("kept-"):
            os.unlink(os.path.join(journal, name))
