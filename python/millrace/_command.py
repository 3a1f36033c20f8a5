"""The command that this package carries, as a child process whose JSON lines become dicts while it runs.

What computes is the command's own process: it may load oneDNN and OpenMP, which would not go together with what this process has
loaded, and forks. The list of its settings comes from it, too, so no second list can differ."""
from __future__ import annotations

import json
import os
import re
import selectors
import signal
import site
import subprocess
import sys
from functools import lru_cache
from typing import Any, Callable, Dict, List, NoReturn, Optional, Tuple

from . import _library as _l
from ._errors import KINDS, ArgumentError, Error
from ._wording import in_python

Event = Dict[str, Any]
_OURS = ("json", "quiet")  # whoever calls says them itself
_SPEAKER = re.compile(r"^millrace(, rank \d+)?: ")
UNKNOWN = 256  # in place of an exit status


def program() -> str:
    """Where it is."""
    folder = os.environ.get("MILLRACE_PYTHON_LIBRARIES")  # a build folder, as in _library.py
    if folder and os.path.exists(os.path.join(folder, "tools", "millrace")):
        return os.path.join(folder, "tools", "millrace")
    return os.path.join(_l.FOLDER, "bin", "millrace")


def _has_onednn(folder: str) -> bool:
    try:
        return any(name.startswith("libdnnl.so.") for name in os.listdir(folder))
    except OSError:
        return False


def _environment(**more: str) -> Dict[str, str]:
    """For the command. It cannot know where pip puts libraries: where oneDNN lies there, MILLRACE_DNNL_PATH says so."""
    found = dict(os.environ, **more)
    if not found.get("MILLRACE_DNNL_PATH"):
        for prefix in (sys.prefix, site.getuserbase()):
            folder = os.path.join(prefix, "lib")
            if _has_onednn(folder):
                found["MILLRACE_DNNL_PATH"] = folder
                break
    return found


def _start(words: List[Any], **how: Any) -> "subprocess.Popen[bytes]":
    how.setdefault("env", _environment())
    try:
        return subprocess.Popen([program()] + words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **how)
    except OSError as e:
        raise _not_started(e) from e


def _not_started(e: OSError) -> Error:
    failed = KINDS[-6]("cannot start %s: %s; install millrace-loader again" % (program(), e.strerror))
    failed.code, failed.path, failed.errno = -6, program(), e.errno
    return failed


# ---- settings ----

@lru_cache(maxsize=None)
def _settings(where: str, command: str) -> Dict[str, Event]:
    with _start(["help", command, "--json"]) as p:
        out, wrong = p.communicate()
    if p.returncode:
        raise Error("millrace help %s: %s" % (command, wrong.decode("utf-8", "replace")))
    rows = [json.loads(line) for line in out.splitlines()]
    return {r["name"].replace("-", "_"): r for r in rows if r["event"] == "option" and r["name"] not in _OURS}


def settings(command: str) -> Dict[str, Event]:
    """Of a command, by keyword, in the order of its help: name, group, value (None: yes or no), default, help, ..."""
    return _settings(program(), command)


def _nearest(function: str, command: str, keyword: str) -> str:
    """The command's message for an unknown option."""
    name = keyword.replace("_", "-")
    with _start([command, "--%s=1" % name]) as p:
        wrong = p.communicate()[1].decode("utf-8", "replace")
    near = re.search(r"did you mean --([a-z-]+)( \S+)?\?", wrong)
    if name in _OURS or not near:
        return "%s() has no setting %s; millrace.options(%r) lists them" % (function, keyword, command)
    keyword_near, value = near.group(1).replace("-", "_"), (near.group(2) or "").strip()
    return "%s() has no setting %s; did you mean %s%s?" % (function, keyword, keyword_near, "=%r" % value if value else "")


def _separator(row: Event) -> str:
    """Between the members of a list, as help writes it: LO:HI, E1/E2/...; else a comma."""
    if row["name"] == "class-weights":
        return "/"
    found = re.match(r"[A-Z0-9]+([:/])", row["value"])
    return found.group(1) if found else ","


def _text(keyword: str, row: Event, value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return _separator(row).join(os.fsdecode(_text(keyword, row, v)) for v in value)
    if isinstance(value, bool):
        word = "on" if value else "off"
        if word in row["value"].split("|"):
            return word
    elif hasattr(value, "__index__"):
        return str(value.__index__())
    elif isinstance(value, (str, bytes, os.PathLike)):
        return os.fspath(value)
    elif hasattr(value, "__float__"):
        return repr(float(value))
    raise ArgumentError("%s=%r: expected %s" % (keyword, value, row["value"]))


encode = _l.encode


def words(function: str, command: str, data: Any, given: Dict[str, Any]) -> List[bytes]:
    """The command line for data and settings; a value None is left out."""
    known = settings(command)
    out: List[bytes] = [command.encode(), b"--json", b"--quiet"]
    for keyword, value in given.items():
        row = known.get(keyword)
        if row is None:
            raise TypeError(_nearest(function, command, keyword))
        option = ("--" + row["name"]).encode()
        if value is None:
            continue
        if row["value"] is not None:
            out.append(option + b"=" + _l.encode(_text(keyword, row, value)))
        elif not isinstance(value, bool):
            raise ArgumentError("%s=%r: expected True or False" % (keyword, value))
        elif value:
            out.append(option)
    return out + [b"--", _l.encode(data)]


# ---- running ----

class Child:
    """A command that runs: run() gives its exit status when it has ended; UNKNOWN where this process ignores SIGCHLD, or something else
    in it waits for its children.

    on_event  function of (name, dict) for each JSON line but errors; True: the run is to stop
    on_message  function of a text: the command's other messages

    An exception from either, or Ctrl-C, stops the run as the command's own Ctrl-C does and is raised when it has ended; the second
    Ctrl-C ends it at once."""

    def __init__(self, line: List[bytes], on_event: Callable[[str, Event], bool], on_message: Callable[[str], Any]) -> None:
        self._on_event, self._on_message, self._name = on_event, on_message, line[0].decode()
        self.messages: List[str] = []
        self.error: Optional[Event] = None
        self.stopped = False  # on_event said so
        # a session of its own: Ctrl-C at the terminal comes here alone, and reaches it once. It ends when this process does.
        self._process = _start(list(line), start_new_session=True, env=_environment(MILLRACE_PARENT=str(os.getpid())))

    def _in_python(self, text: str) -> str:
        return in_python(text, settings(self._name)) if "--" in text else text

    def _signal(self) -> None:
        self._process.send_signal(signal.SIGINT)

    def _take(self, said: bool, line: bytes) -> None:
        text = line.decode("utf-8", "replace")
        if said:
            text = self._in_python(_SPEAKER.sub("", text))
            self.messages.append(text)
            self._on_message(text)
            return
        event = json.loads(text)
        name = event.pop("event")
        if name == "error":
            self.error = event
        elif self._on_event(name, event) and not self.stopped:
            self.stopped = True
            self._signal()

    def _read(self, take: Callable[[bool, bytes], None]) -> None:
        """Line by line, until it has closed both of its ends."""
        out, said = self._process.stdout, self._process.stderr
        assert out and said
        rest = {out.fileno(): b"", said.fileno(): b""}
        with selectors.DefaultSelector() as both:
            for f in rest:
                both.register(f, selectors.EVENT_READ)
            while both.get_map():
                for key, _ in both.select():
                    more = os.read(key.fd, 1 << 16)
                    lines = (rest[key.fd] + more).split(b"\n")
                    rest[key.fd] = lines.pop() if more else b""
                    if not more:
                        both.unregister(key.fd)
                    for line in lines:
                        if line:
                            take(key.fd == said.fileno(), line)

    def run(self) -> int:
        try:
            self._read(self._take)
            return self._wait()
        except BaseException:
            self._leave()
            raise
        finally:
            for f in (self._process.stdout, self._process.stderr):
                if f:
                    f.close()

    def _wait(self) -> int:
        end: Any = None
        if not hasattr(os, "waitid"):  # PyPy
            return self._process.wait()
        try:
            end = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        except ChildProcessError:
            pass  # subprocess takes that for 0
        self._process.wait()
        if end is None:
            return UNKNOWN
        return end.si_status if end.si_code == os.CLD_EXITED else -end.si_status

    def __del__(self) -> None:
        process = getattr(self, "_process", None)  # an exception came before run() could take care of it
        if process is not None and process.poll() is None:
            process.terminate()

    def _leave(self) -> None:
        if not self.stopped:
            self._signal()
        while self._process.returncode is None:
            try:
                self._read(lambda said, line: None)
                self._process.wait()
            except KeyboardInterrupt:
                self._signal()

    def failed(self, status: int) -> Error:
        """The exception for how it ended."""
        what = self.error
        if what is None:
            if status in (128 + signal.SIGINT, 128 + signal.SIGTERM):
                return _error(-3, "the run was stopped by a signal that did not come from here")
            if status == UNKNOWN:
                how = "has ended, and how it did is not known: this process ignores SIGCHLD, or something else in it waits for children"
            else:
                how = "was killed by signal %d" % -status if status < 0 else "ended with status %d" % status
            return Error("\n".join(["the command %s" % how] + self.messages[-20:]))
        text = self._in_python(what["text"])
        behind = [k for k, m in enumerate(self.messages) if m == text]
        out = _error(what["code"] or 0, "\n".join([text] + (self.messages[behind[-1] + 1:] if behind else [])))
        out.path, out.offset, out.sample = what["file"], what.get("offset"), what.get("sample")
        if "errno" in what:
            out.errno = what["errno"]
        return out


def _error(code: int, text: str) -> Error:
    out = KINDS.get(code, Error)(text)
    out.code = code
    return out


def main() -> NoReturn:
    """This process becomes the command."""
    try:
        os.execve(program(), ["millrace"] + sys.argv[1:], _environment())
    except OSError as e:
        sys.exit("millrace: cannot start %s: %s; install millrace-loader again" % (program(), e.strerror))
