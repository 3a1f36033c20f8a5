#!/usr/bin/env python3
"""Lays a trace of millrace over an export of Nsight Systems of the same run.

    nsys profile --trace=cuda,nvtx,osrt -o run millrace train DATA --model M --devices cuda:0 --trace trace.json
    nsys export --type sqlite -o run.sqlite run.nsys-rep
    nsys_correlate.py trace.json run.sqlite -o merged.json

Prints which clocks were used and how sure the alignment is, and what each GPU's idle time was spent on: its idle
stretches by the export's kernels, their causes by the trace's "stall" tracks. -o FILE: both on one time axis, as a Chrome
trace (ui.perfetto.dev shows it). See docs/nsys.md. Exit status: 0 done, 1 failed, 2 misused.

The export's times count from a zero of its own. An export of today says what CLOCK_MONOTONIC was then, which is the
trace's own clock; an older one says the wall clock's time, and the trace has moments of both. Ranges that are in both
check the result. Needs Python 3 alone."""
import argparse
import bisect
import json
import statistics
import sys

from nsys_export import Export, Wrong, pid_of

SHARED = "decode"  # begins in the trace and as an NVTX range within a microsecond, and has its batch's number in both
TOLERATED_NS = 1_000_000


# ---- the trace ----

class Trace:
    """Spans of a file of --trace, in ns of CLOCK_MONOTONIC: (start, end, track, name, batch or None)."""

    def __init__(self, path):
        self.path = path
        content = read_json(path)
        about = content.get("otherData")
        if not isinstance(about, dict) or about.get("clock") != "CLOCK_MONOTONIC" or not about.get("anchors"):
            raise Wrong(f"{path}: expected otherData.clock and otherData.anchors, found none: was it written by "
                        "`millrace ... --trace`? Versions before 0.5.0 did not tell their clock")
        self.host, self.pid, self.dropped = about.get("host"), about.get("pid"), about.get("dropped_spans", 0)
        try:
            self.anchors = [(a["monotonic_ns"], a["realtime_ns"], a["within_ns"]) for a in about["anchors"]]
            self.tracks, self.spans = read_spans(content["traceEvents"], about["base_ns"])
        except (KeyError, TypeError, ValueError) as why:
            raise Wrong(f"{path}: damaged: expected events with ts, dur and tid, found one without ({why!r})") from why
        if not self.spans:
            raise Wrong(f"{path}: no span in it: with --trace-steps, did these steps come?")
        self.begin = min(s[0] for s in self.spans)
        self.end = max(s[1] for s in self.spans)

    def of_track(self, prefix):
        return sorted(s for s in self.spans if s[2].startswith(prefix))

    def devices(self):
        """Replica -> name of its device: compute tracks in the order in which they were made."""
        return dict(enumerate(t[len("compute "):] for t in self.tracks if t.startswith("compute ")))


def read_json(path):
    try:
        with open(path, encoding="utf-8") as f:
            content = json.load(f)
    except OSError as why:
        raise Wrong(f"{path}: {why.strerror}") from why
    except ValueError as why:
        raise Wrong(f"{path}: expected a Chrome trace (JSON), found something else: {why}") from why
    if not isinstance(content, dict) or not isinstance(content.get("traceEvents"), list):
        raise Wrong(f"{path}: expected a Chrome trace with traceEvents, found other JSON")
    return content


def read_spans(events, base_ns):
    names = {e["tid"]: e["args"]["name"] for e in events if e.get("ph") == "M" and e.get("name") == "thread_name"}
    spans = [(base_ns + round(1000 * e["ts"]), base_ns + round(1000 * (e["ts"] + e["dur"])), names.get(e["tid"], "other"),
              e["name"], e.get("args", {}).get("batch")) for e in events if e.get("ph") == "X"]
    return [names[tid] for tid in sorted(names)], spans


# ---- the clock ----

class Clock:
    """What to add to the export's times to have CLOCK_MONOTONIC, and how that was found."""

    def __init__(self, offset_ns, how, notes):
        self.offset_ns, self.how, self.notes = offset_ns, how, notes
        self.checked, self.median_ns, self.within_ns = 0, None, None


def wall_offset(trace, utc_ns):
    """By the wall clock, and how far it was set or drifted between the trace's two anchors."""
    differences = [real - mono for mono, real, _ in trace.anchors]
    return utc_ns - differences[0], max(differences) - min(differences)


def find_clock(trace, export):
    start, notes = export.start, []
    first = min(e[0] for e in export.kernels + export.ranges)
    if start.monotonic_ns is not None:
        clock = Clock(start.monotonic_ns, "CLOCK_MONOTONIC on both sides (TARGET_INFO_SESSION_START_TIME.systemClockNs)", notes)
        if start.utc_ns is not None:
            wall, _ = wall_offset(trace, start.utc_ns)
            if abs(wall - clock.offset_ns) > TOLERATED_NS:
                notes.append(f"the export's wall clock disagrees by {ms(wall - clock.offset_ns)} (utcEpochNs): it was set, "
                             "or the export is of another machine or boot")
        return clock
    if start.utc_ns is not None:
        offset, moved = wall_offset(trace, start.utc_ns)
        if moved > TOLERATED_NS:
            notes.append(f"the wall clock moved by {ms(moved)} while the trace was taken: the alignment is no better")
        return Clock(offset, "the wall clock (TARGET_INFO_SESSION_START_TIME.utcEpochNs and the trace's anchors)", notes)
    if first > 10**18:  # the wall clock since 2001, which nothing that counts from a boot reaches
        return Clock(wall_offset(trace, 0)[0], "the wall clock: the export's times are ns since 1970", notes)
    if trace.begin <= first <= trace.end:
        return Clock(0, "CLOCK_MONOTONIC: the export's times lie within the trace's own", notes)
    raise Wrong(f"{export.path}: no table TARGET_INFO_SESSION_START_TIME with systemClockNs or utcEpochNs: expected it to say "
                "when time 0 was; `nsys export --type sqlite` writes it: export the .nsys-rep anew")


def of_process(trace, export):
    """The ranges of the process that wrote the trace. Those in a container have other numbers outside: then all."""
    mine = [r for r in export.ranges if pid_of(r[4]) == trace.pid]
    return mine if mine else export.ranges


def by_batch(pairs):
    out = {}
    for batch, start in pairs:
        out.setdefault(batch, []).append(start)
    return {batch: sorted(starts) for batch, starts in out.items()}


def nearest(starts, wanted):
    at = bisect.bisect_left(starts, wanted)
    return min(starts[max(at - 1, 0):at + 1], key=lambda s: abs(s - wanted))


def differences(trace, export, offset_ns):
    """For each shared range: how much later it begins in the export."""
    theirs = by_batch((r[3], r[0] + offset_ns) for r in of_process(trace, export) if r[2] == SHARED and r[3] is not None)
    ours = by_batch((s[4], s[0]) for s in trace.of_track("worker ") if s[3] == SHARED and s[4] is not None)
    out = []
    for batch, starts in ours.items():
        other = theirs.get(batch)
        if other and len(other) == len(starts):
            out += [b - a for a, b in zip(starts, other)]
        elif other:  # a run of several passes, or a part of it: the export has more of them
            out += [nearest(other, a) - a for a in starts]
    return out


def check_clock(clock, trace, export):
    found = differences(trace, export, clock.offset_ns)
    if not found:
        return
    clock.checked = len(found)
    clock.median_ns = round(statistics.median(found))
    apart = sorted(abs(d - clock.median_ns) for d in found)
    clock.within_ns = apart[min(len(apart) - 1, int(0.95 * len(apart)))]


def align(trace, export, by):
    if by == "ranges":
        clock = Clock(0, f'ranges "{SHARED}" that are in both (--align ranges)', [])
        check_clock(clock, trace, export)
        if not clock.checked:
            raise Wrong(f"{export.path}: no NVTX range \"{SHARED}\" of the domain millrace with a batch that is in the trace, "
                        "too: was nvtx in --trace, and is it the same run?")
        clock.offset_ns = -clock.median_ns
    else:
        clock = find_clock(trace, export)
    check_clock(clock, trace, export)
    return clock


# ---- causes of the GPU's idle time ----

def merged(intervals):
    """Union of intervals, in order."""
    out = []
    for start, end in sorted(intervals):
        if out and start <= out[-1][1]:
            out[-1][1] = max(out[-1][1], end)
        elif end > start:
            out.append([start, end])
    return out


def gaps(busy, begin, end):
    out, at = [], begin
    for start, stop in busy:
        if start > at:
            out.append([at, min(start, end)])
        at = max(at, stop)
        if at >= end:
            break
    if at < end:
        out.append([at, end])
    return [g for g in out if g[1] > g[0]]


def overlap(a, b):
    """ns that two lists of merged() intervals share."""
    total, i, k = 0, 0, 0
    while i < len(a) and k < len(b):
        total += max(0, min(a[i][1], b[k][1]) - max(a[i][0], b[k][0]))
        if a[i][1] < b[k][1]:
            i += 1
        else:
            k += 1
    return total


def cut(intervals, begin, end):
    return [(max(s, begin), min(e, end)) for s, e in intervals if e > begin and s < end]


def window_of(trace, export, clock):
    everything = export.kernels + export.copies + export.ranges
    begin = min(e[0] for e in everything)
    ends = [e[1] for e in everything if e[1] is not None]
    theirs = begin + clock.offset_ns, max(ends) + clock.offset_ns
    window = max(trace.begin, theirs[0]), min(trace.end, theirs[1])
    if window[0] >= window[1]:
        raise Wrong(f"{trace.path} and {export.path} do not overlap: the trace goes from {trace.begin / 1e9:.3f} to "
                    f"{trace.end / 1e9:.3f} s of CLOCK_MONOTONIC, the export from {theirs[0] / 1e9:.3f} to "
                    f"{theirs[1] / 1e9:.3f} s: expected two records of one run")
    return window


def device_of(replica, name, devices):
    """The export's number of a replica's GPU: the number of cuda:N, else its place among the GPUs that computed."""
    number = name.split()[0].partition(":")[2]
    if number.isdigit() and int(number) in devices:
        return int(number)
    return devices[replica] if replica < len(devices) else None


def idle_of(trace, export, clock, window, replica, device):
    """One replica: ns of the window, idle, by cause, inside steps."""
    shift = clock.offset_ns
    busy = merged(cut(((k[0] + shift, k[1] + shift) for k in export.kernels if k[2] == device), *window))
    copies = merged(cut(((c[0] + shift, c[1] + shift) for c in export.copies if c[2] == device), *window))
    idle = gaps(busy, *window)
    whole = sum(e - s for s, e in idle)
    stalls = {}
    for start, end, _, name, _ in trace.of_track(f"stall {replica}"):
        stalls.setdefault(name, []).append((start, end))
    causes = {name: overlap(idle, merged(cut(spans, *window))) for name, spans in stalls.items()}
    tracks = [t for t in trace.tracks if t.startswith("compute ")]
    steps = merged(cut(((s[0], s[1]) for s in trace.spans if s[2] == tracks[replica]), *window))
    in_steps = overlap(idle, steps)
    return {"replica": replica, "device": device, "window_ns": window[1] - window[0], "idle_ns": whole,
            "causes_ns": {n: v for n, v in sorted(causes.items(), key=lambda c: -c[1]) if v},
            "in_steps_ns": in_steps, "other_ns": max(0, whole - sum(causes.values()) - in_steps),
            "copying_ns": overlap(idle, copies), "kernels": len([k for k in export.kernels if k[2] == device])}


def correlate(trace, export, clock, window):
    devices = sorted({k[2] for k in export.kernels})
    out = []
    for replica, name in trace.devices().items():
        device = device_of(replica, name, devices)
        if device is not None:
            out.append(dict(idle_of(trace, export, clock, window, replica, device), name=name))
    if not out:
        raise Wrong(f"{trace.path}: no track \"compute DEVICE\": expected a trace of `train` or `profile`")
    return out


# ---- report ----

def ms(ns):
    return f"{ns / 1e6:.3f} ms"


def put(name, text):
    print(f"{name:9}{text}")


def print_clock(clock):
    put("clock", f"{clock.how}; export time 0 is {clock.offset_ns / 1e9:.6f} s")
    for note in clock.notes:
        put("", "WARNING: " + note)
    if not clock.checked:
        put("check", f"none: no range \"{SHARED}\" of the domain millrace is in both; was nvtx in --trace?")
        return
    put("check", f"{clock.checked} ranges \"{SHARED}\" are in both: they begin {clock.median_ns / 1e3:+.1f} us later in the "
                 f"export (median), 95 of 100 within {clock.within_ns / 1e3:.1f} us of that")
    if abs(clock.median_ns) > TOLERATED_NS:
        put("", f"WARNING: the clocks are {ms(abs(clock.median_ns))} apart: --align ranges uses the ranges instead")


def print_device(d):
    whole = d["window_ns"]
    part = lambda ns: f"{100 * ns / whole:6.1f} %  {ms(ns):>14}"
    print(f"\nreplica {d['replica']} ({d['name']}), device {d['device']} of the export, {d['kernels']} kernels")
    for name, ns in d["causes_ns"].items():
        print(f"  idle, waiting: {name:18}  {part(ns)}")
    print(f"  idle within a step, no kernel     {part(d['in_steps_ns'])}")
    print(f"  idle otherwise: start, evaluation {part(d['other_ns'])}")
    print(f"  idle in all                       {part(d['idle_ns'])}; copies meanwhile {ms(d['copying_ns'])}")


def print_text(trace, export, clock, window, devices):
    put("trace", f"{trace.path}: {len(trace.spans)} spans, host {trace.host}, process {trace.pid}"
                 + (f"; {trace.dropped} older ones were dropped" if trace.dropped else ""))
    put("export", f"{export.path}: {len(export.kernels)} kernels, {len(export.copies)} copies, {len(export.ranges)} ranges "
                  + ("of the domain millrace" if export.domain_found else "of any domain: it does not name millrace's"))
    print_clock(clock)
    put("window", f"{ms(window[1] - window[0])}, from {(window[0] - trace.begin) / 1e6:.3f} ms after the trace's first span")
    for d in devices:
        print_device(d)


def print_json(clock, window, devices):
    print(json.dumps({"event": "correlate", "clock": clock.how, "offset_ns": clock.offset_ns, "notes": clock.notes,
                      "checked_ranges": clock.checked, "median_ns": clock.median_ns, "within_ns": clock.within_ns,
                      "window_ns": window[1] - window[0], "devices": devices}))


# ---- both on one axis ----

def event(pid, tid, name, start, end, base, args):
    out = {"ph": "X", "pid": pid, "tid": tid, "name": name, "ts": (start - base) / 1000, "args": args}
    if end is None:
        return dict(out, ph="i", s="t")
    return dict(out, dur=(end - start) / 1000)


def named(what, pid, tid, name):
    return {"ph": "M", "pid": pid, "tid": tid, "name": what, "args": {"name": name}}


def merge(trace, export, clock):
    """Process 1 is the trace, 2 the ranges, 100 + N the export's device N."""
    shift = clock.offset_ns
    base = min([trace.begin] + [e[0] + shift for e in export.kernels + export.copies + export.ranges])
    tids = {track: i + 1 for i, track in enumerate(trace.tracks)}
    out = [named("process_name", 1, 0, "millrace --trace"), named("process_name", 2, 0, "NVTX, domain millrace (export)")]
    out += [named("thread_name", 1, tid, track) for track, tid in tids.items()]
    out += [event(1, tids.get(track, 0), name, start, end, base, {} if batch is None else {"batch": batch})
            for start, end, track, name, batch in trace.spans]
    threads = {tid: (tid or 0) & 0xFFFFFF for _, _, _, _, tid in export.ranges}
    out += [named("thread_name", 2, number, export.threads.get(tid) or f"thread {number}") for tid, number in threads.items()]
    out += [event(2, threads[tid], name, start + shift, None if end is None else end + shift, base,
                  {} if number is None else {"number": number}) for start, end, name, number, tid in export.ranges]
    for device in sorted({k[2] for k in export.kernels} | {c[2] for c in export.copies}):
        out.append(named("process_name", 100 + device, 0, f"GPU {device} (export)"))
    out += [event(100 + d, stream, name, start + shift, end + shift, base, {}) for start, end, d, stream, name, _ in export.kernels]
    out += [event(100 + d, stream, name, start + shift, end + shift, base, {"bytes": size})
            for start, end, d, stream, name, size in export.copies]
    return {"displayTimeUnit": "ms", "otherData": {"clock": "CLOCK_MONOTONIC", "base_ns": base, "aligned_by": clock.how,
            "offset_ns": shift, "checked_ranges": clock.checked, "median_ns": clock.median_ns}, "traceEvents": out}


def write(path, content):
    try:
        with open(path, "w", encoding="utf-8") as f:
            json.dump(content, f)
    except OSError as why:
        raise Wrong(f"{path}: {why.strerror}") from why


def check_host(trace, export, other_host):
    if export.host and trace.host and export.host != trace.host and not other_host:
        raise Wrong(f"{export.path}: recorded on host {export.host}, the trace {trace.path} on {trace.host}: clocks of two "
                    "machines say nothing about each other; --other-host goes on, where one machine has two names")


def main():
    parser = argparse.ArgumentParser(description="Lays a trace of millrace over a SQLite export of Nsight Systems.")
    parser.add_argument("trace", help="file of `millrace ... --trace`")
    parser.add_argument("export", help="file of `nsys export --type sqlite`")
    parser.add_argument("-o", metavar="FILE", help="write both on one time axis, as a Chrome trace")
    parser.add_argument("--align", choices=("clock", "ranges"), default="clock",
                        help="by the clocks that both files tell (default), or by ranges that are in both")
    parser.add_argument("--other-host", action="store_true", help="the two names of the host are of one machine")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of the text")
    a = parser.parse_args()
    try:
        trace, export = Trace(a.trace), Export(a.export)
        check_host(trace, export, a.other_host)
        clock = align(trace, export, a.align)
        window = window_of(trace, export, clock)
        devices = correlate(trace, export, clock, window)
        if a.o:
            write(a.o, merge(trace, export, clock))
    except Wrong as why:
        print(f"nsys_correlate: {why}", file=sys.stderr)
        return 1
    if a.json:
        print_json(clock, window, devices)
    else:
        print_text(trace, export, clock, window, devices)
    return 0


if __name__ == "__main__":
    sys.exit(main())
