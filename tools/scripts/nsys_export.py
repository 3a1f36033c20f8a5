"""nsys_export.py: the content of a SQLite export of Nsight Systems, as far as nsys_correlate.py needs it.

Times stay as they are in the export, in ns since its own zero, and a Start says when that was. Tables are made by nsys
only when there is something to put in them, and columns came and went with its versions: the existence of each is asked
for first. Nothing here knows of millrace's traces."""
import pathlib
import sqlite3

MAGIC = b"SQLite format 3\0"
DOMAIN = "millrace"
PUSH_POP, START_END, MARK, DOMAIN_CREATE = 59, 60, 34, 75  # NVTX_EVENTS.eventType
COPY_KINDS = {1: "copy to the device", 2: "copy from the device", 8: "copy on the device", 10: "copy between devices"}


class Wrong(Exception):
    """A fault of a file, for people: expected, found, and a remedy."""


class Start:
    """When the export's time 0 was. None: it does not say."""

    def __init__(self, monotonic_ns, utc_ns):
        self.monotonic_ns, self.utc_ns = monotonic_ns, utc_ns


def pid_of(global_id):
    """Serialized ids: 8 bits of machine, 8 of virtual machine, 24 of process, 24 of thread."""
    return (global_id or 0) >> 24 & 0xFFFFFF


class Export:
    """Opens and reads everything; raises Wrong."""

    def __init__(self, path):
        self.path = path
        check_magic(path)
        try:
            self.db = sqlite3.connect(pathlib.Path(path).resolve().as_uri() + "?mode=ro", uri=True)
            self.tables = {row[0] for row in self.db.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")}
            self.strings = dict(self.rows("StringIds", ("id", "value")))
            self.start = self.read_start()
            self.host = self.read_host()
            self.kernels = self.read_kernels()
            self.copies = self.read_copies()
            self.ranges, self.domain_found = self.read_ranges()
            self.threads = {tid: self.strings.get(name) for name, tid in self.rows("ThreadNames", ("nameId", "globalTid"))}
        except sqlite3.DatabaseError as why:
            raise Wrong(f"{path}: the database cannot be read ({why}): export it again") from why
        finally:
            if hasattr(self, "db"):
                self.db.close()

    def columns(self, table):
        return {row[1] for row in self.db.execute(f'PRAGMA table_info("{table}")')} if table in self.tables else set()

    def rows(self, table, wanted, needed=(), order=""):
        """Rows of a table, None for columns that it lacks; none when there is no such table."""
        have = self.columns(table)
        missing = [name for name in needed if name not in have]
        if have and missing:
            raise Wrong(f"{self.path}: table {table}: expected a column {missing[0]}, found {', '.join(sorted(have))}")
        if not have:
            return []
        what = ", ".join(f'"{name}"' if name in have else "NULL" for name in wanted)
        return self.db.execute(f'SELECT {what} FROM "{table}" {order}').fetchall()

    def read_start(self):
        rows = self.rows("TARGET_INFO_SESSION_START_TIME", ("systemClockNs", "utcEpochNs"))
        if len(set(rows)) > 1:
            raise Wrong(f"{self.path}: TARGET_INFO_SESSION_START_TIME: expected one session, found {len(set(rows))}: "
                        "export the sessions one by one")
        return Start(*rows[0]) if rows else Start(None, None)

    def read_host(self):
        for name, value in self.rows("TARGET_INFO_SYSTEM_ENV", ("name", "value")):
            if name == "Hostname":
                return value
        return None

    def read_kernels(self):
        """(start, end, device, stream, name, pid)"""
        table = "CUPTI_ACTIVITY_KIND_KERNEL"
        if table not in self.tables:
            raise Wrong(f"{self.path}: expected a table {table}, found {listed(self.tables)}: nsys makes it when it has "
                        "recorded kernels: was cuda in --trace, and did a GPU compute anything?")
        wanted = ("start", "end", "deviceId", "streamId", "shortName", "globalPid", "demangledName")
        out = [(start, end, device or 0, stream or 0, self.strings.get(short) or self.strings.get(long) or "kernel",
                pid_of(process))
               for start, end, device, stream, short, process, long in self.rows(table, wanted, ("start", "end"))
               if start is not None and end is not None]
        if not out:
            raise Wrong(f"{self.path}: table {table} has no kernel with a start and an end: nothing to correlate")
        return sorted(out)

    def read_copies(self):
        """(start, end, device, stream, name, bytes)"""
        wanted = ("start", "end", "deviceId", "streamId", "copyKind", "bytes")
        rows = self.rows("CUPTI_ACTIVITY_KIND_MEMCPY", wanted, ("start", "end"))
        return sorted((start, end, device or 0, stream or 0, COPY_KINDS.get(kind, "copy"), size or 0)
                      for start, end, device, stream, kind, size in rows if start is not None and end is not None)

    def domain_ids(self, rows):
        """Numbers of our domain: one for each process that has it."""
        return {(pid_of(tid), domain) for _, _, kind, text, text_id, domain, tid, _ in rows
                if kind == DOMAIN_CREATE and (text or self.strings.get(text_id)) == DOMAIN}

    def read_ranges(self):
        """(start, end or None, name, number or None, globalTid), of our domain; whether the export names domains."""
        wanted = ("start", "end", "eventType", "text", "textId", "domainId", "globalTid", "uint64Value")
        rows = self.rows("NVTX_EVENTS", wanted, ("start", "end"), "ORDER BY start")
        ours = self.domain_ids(rows)
        out = []
        for start, end, kind, text, text_id, domain, tid, number in rows:
            if kind not in (PUSH_POP, START_END, MARK, None) or start is None:
                continue
            if not ours or {(pid_of(tid), domain), (0, domain)} & ours:
                out.append((start, end, text or self.strings.get(text_id) or "range", number, tid))
        return out, bool(ours)


def check_magic(path):
    try:
        with open(path, "rb") as f:
            head = f.read(len(MAGIC))
    except OSError as why:
        raise Wrong(f"{path}: {why.strerror}") from why
    if head != MAGIC:
        raise Wrong(f"{path}: offset 0: expected the signature of a SQLite database, found {head!r}; "
                    "`nsys export --type sqlite REPORT.nsys-rep` makes one")


def listed(names):
    return ", ".join(sorted(names)[:12]) + (", ..." if len(names) > 12 else "") if names else "no table at all"
