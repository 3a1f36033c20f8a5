"""A terminal in a few lines: it interprets a program's output as a terminal would, so that a test can look at the screen instead of at
escape sequences. It knows the sequences that millrace writes and no more; anything else is an error.

run() starts a program on a pseudo-terminal, feeds what comes into a Terminal and calls back after each piece. The pieces
end anywhere, and the last one may come after the program ended: reading goes on to the end (EIO)."""
import codecs
import errno
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
import unicodedata


class Terminal:
    """Rows of the whole output; the newest `height` rows are the screen. Lines that a narrower terminal cannot hold are broken, and joined
    again when it is wider (reflow)."""

    def __init__(self, width, height):
        self.width, self.height = width, height
        self.rows, self.joined = [[]], [False]  # joined: goes on in the next row
        self.row = self.column = 0
        self.wraps = []  # lines that were too long for the terminal
        self.sequence = None
        self.at_end = False  # all that came ends with the end of a view
        self.sequences = []  # all that came
        self.decoder = codecs.getincrementaldecoder("utf-8")()

    def feed(self, data):
        for c in self.decoder.decode(data):
            self.take(c)

    def take(self, c):
        if self.sequence is not None:
            self.sequence += c
            if c.isalpha():
                self.control(self.sequence)
                self.sequence = None
        elif c == "\033":
            self.sequence = ""
        elif c == "\r":
            self.column = 0
        elif c == "\n":
            self.down()
        elif c == "\a":
            pass
        elif c < " ":
            raise AssertionError("control character %r" % c)
        else:
            self.put(c)

    def put(self, c):
        wide = 2 if unicodedata.east_asian_width(c) in "WF" else 1
        if self.column + wide > self.width:
            self.wraps.append("".join(self.rows[self.row]))
            self.joined[self.row] = True
            self.down()
            self.column = 0
        row = self.rows[self.row]
        row.extend(" " * (self.column + wide - len(row)))
        row[self.column] = c
        if wide == 2:
            row[self.column + 1] = ""
        self.column += wide

    def down(self):
        self.row += 1
        if self.row == len(self.rows):
            self.rows.append([])
            self.joined.append(False)

    def control(self, s):
        self.sequences.append(s)
        number = int(s[1:-1] or 0) if s[1:-1].isdigit() or not s[1:-1] else -1
        row = self.rows[self.row]
        if s[0] != "[":
            raise AssertionError("escape sequence %r" % s)
        if s[-1] == "A":
            self.row = max(self.row - max(number, 1), max(0, len(self.rows) - self.height))
        elif s == "[K":
            del row[self.column:]
            self.joined[self.row] = False
        elif s == "[J":
            del row[self.column:]
            self.joined[self.row] = False
            del self.rows[self.row + 1:], self.joined[self.row + 1:]
        elif s[-1] != "m":
            raise AssertionError("escape sequence %r" % s)

    def resize(self, width, height):
        """As today's terminals: the cursor stays after the letter that it followed."""
        lines, at, line = [], None, []
        for i, row in enumerate(self.rows):
            if i == self.row:
                at = (len(lines), len(line) + self.column)
            line = line + row
            if not self.joined[i]:
                lines.append(line)
                line = []
        if line:
            lines.append(line)
        self.width, self.height = width, height
        self.rows, self.joined = [], []
        for i, line in enumerate(lines):
            if i == at[0]:
                self.row, self.column = len(self.rows) + max(at[1] - 1, 0) // width, (max(at[1] - 1, 0) % width) + (at[1] > 0)
            pieces = [line[k:k + width] for k in range(0, len(line), width)] or [[]]
            self.rows += pieces
            self.joined += [True] * (len(pieces) - 1) + [False]

    def lines(self):
        return ["".join(row).rstrip() for row in self.rows]

    def screen(self):
        return self.lines()[-self.height:]


def set_size(fd, width, height):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))


def resize(fd, terminal, width, height):
    set_size(fd, width, height)
    terminal.resize(width, height)


def resize_between_views(fd, terminal, pid, width, height):
    """A view that was drawn for the old size and is not shown yet would be torn, as on every terminal: the program is stopped, and where
    something of it is still to come, nothing is resized. False: then."""
    os.kill(pid, signal.SIGSTOP)
    stopped = os.waitid(os.P_PID, pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
    whole = stopped.si_code == os.CLD_STOPPED and terminal.at_end and not select.select([fd], [], [], 0)[0]
    if whole:
        resize(fd, terminal, width, height)
    os.kill(pid, signal.SIGCONT)
    return whole


def run(command, width, height, look=None, environment=None, limit=120):
    """Returns (exit status, terminal). look(terminal, fd, pid, seconds) is called after each piece, and after each view that it ends: where
    this program has waited for a core, several lie in one piece."""
    terminal = Terminal(width, height)
    pid, fd = pty.fork()
    if pid == 0:
        own = {**os.environ, **(environment or {})}
        try:
            set_size(0, width, height)
            os.execvpe(command[0], command, {name: value for name, value in own.items() if value is not None})
        finally:
            os._exit(127)
    begun = time.monotonic()
    while True:
        if time.monotonic() - begun > limit:
            os.kill(pid, signal.SIGKILL)
        ready, _, _ = select.select([fd], [], [], 1)
        if not ready:
            continue
        try:
            data = os.read(fd, 65536)
        except OSError as e:
            if e.errno != errno.EIO:
                raise
            break
        if not data:
            break
        pieces = [piece for piece in re.split(rb"(?<=\x1b\[J)", data) if piece]
        for k, piece in enumerate(pieces):
            terminal.feed(piece)
            terminal.at_end = k + 1 == len(pieces) and data.endswith(b"\x1b[J")
            if look:
                look(terminal, fd, pid, time.monotonic() - begun)
    os.close(fd)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), terminal
