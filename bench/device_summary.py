#!/usr/bin/env python3
"""The findings of bench/device_suite.sh, as one JSON object and one page of text.

usage: bench/device_summary.py RAW OUT      read the cases in RAW, write OUT/device_suite.json and OUT/device_suite.txt
       bench/device_summary.py --library-path   folders of CUDA's libraries among this interpreter's packages, as LD_LIBRARY_PATH takes them
       bench/device_summary.py --libraries      versions of those packages and of PyTorch, as JSON

A case is one command with its whole output (the script describes the layout). A section is "failed" when one of its commands failed or a
check did not hold, "incomplete" when something was not run, "passed" otherwise, and "not run" when nothing was. Exit status 1 when a
section failed. Claims are judged apart: they say which figures the project aims at and whether this run reached them. Standard
library only.
"""
import csv
import glob
import importlib.metadata
import json
import os
import re
import statistics
import sys

VERSION = 1
SECTIONS = ["info", "kernels", "train", "h2d", "resnet", "loader", "real", "ranks", "door", "sanitize", "profile"]
LIBRARIES = ["libcublas.so.13", "libcudnn.so.9", "libnccl.so.2"]
# Loss of a run on the device against the same run on cpu, f32: relative difference allowed after that many steps. Rounding differs from
# the first step on (1e-7 each), and training amplifies it.
TOLERANCES = {"1": 1e-5, "3": 1e-4, "8": 1e-4, "64": 5e-3, "epoch": 5e-2}
ACCURACY_TOLERANCE = 0.02


# ---- libraries ----

def library_folders(roots):
    """Folders below ROOT/nvidia that hold one of the libraries, each once, in the libraries' order."""
    found = []
    for name in LIBRARIES:
        for root in roots:
            for path in sorted(glob.glob(os.path.join(root, "nvidia", "*", "lib", name)) + glob.glob(os.path.join(root, "nvidia", "*", name))):
                folder = os.path.dirname(os.path.abspath(path))
                if folder not in found:
                    found.append(folder)
    return found


def library_versions():
    packages = {}
    for package in importlib.metadata.distributions():
        name = (package.metadata["Name"] or "").lower()
        if name in ("torch", "triton") or name.startswith("nvidia-"):
            packages[name] = package.version
    return {"python": sys.version.split()[0], "packages": dict(sorted(packages.items())), "folders": library_folders(sys.path)}


# ---- cases ----

def text_of(folder, name):
    try:
        with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as f:
            return f.read()
    except FileNotFoundError:
        return ""


def objects(text):
    """
    >>> objects('said\\n{"a": 1}\\n{broken\\n')
    [{'a': 1}]
    """
    rows = []
    for line in text.splitlines():
        if line.startswith("{"):
            try:
                rows.append(json.loads(line))
            except ValueError:
                pass
    return rows


def read_case(folder):
    case = {"section": text_of(folder, "section").strip(), "name": text_of(folder, "name").strip()}
    if os.path.exists(os.path.join(folder, "absent")):
        return {**case, "absent": text_of(folder, "absent").strip()}
    times = [float(t) for t in text_of(folder, "times").split()]
    case.update(command=text_of(folder, "command").splitlines(), status=int(text_of(folder, "status").strip() or -1),
                seconds=round(times[1] - times[0], 3) if len(times) == 2 else None,
                stdout=text_of(folder, "stdout"), stderr=text_of(folder, "stderr"))
    if case["status"] == 77:  # a test that cannot run here
        said = (case["stdout"] + case["stderr"]).strip().splitlines()
        return {"section": case["section"], "name": case["name"], "absent": said[-1] if said else "skipped"}
    return case


def read_cases(raw):
    return [read_case(folder) for folder in sorted(glob.glob(os.path.join(raw, "[0-9]*"))) if os.path.isdir(folder)]


def last(case, event=None):
    rows = [row for row in objects(case.get("stdout", "")) if event is None or row.get("event") == event]
    return rows[-1] if rows else None


# ---- sections: each gives (figures, checks) ----

def check(name, holds, found, expected):
    return {"name": name, "ok": bool(holds), "found": found, "expected": expected}


def table_of(text):
    """Rows of a CSV text as objects.

    >>> table_of("name, clocks.sm [MHz]\\nGPU, 345 MHz\\n")
    [{'name': 'GPU', 'clocks.sm [MHz]': '345 MHz'}]
    """
    return [{k.strip(): (v or "").strip() for k, v in row.items() if k} for row in csv.DictReader(text.splitlines(), skipinitialspace=True)]


def info(cases, _raw):
    found = {}
    for case in cases:
        said = case.get("stdout", "")
        if case["name"] == "devices":
            found["devices"] = objects(said)
        elif case["name"] == "gpu":
            found["gpu"] = table_of(said)
        elif case["name"] == "libraries":
            found["libraries"] = last(case)
        elif case["name"] == "processor":
            keep = ("Model name", "CPU(s)", "Thread(s) per core", "Socket(s)", "NUMA node(s)", "L3 cache", "model name")
            found["processor"] = {k.strip(): v.strip() for k, _, v in (line.partition(":") for line in said.splitlines()) if k.strip() in keep}
        elif "stdout" in case:
            found[case["name"]] = re.sub(r"\x1b\[[0-9;]*m", "", said).strip()
    return found, []


def kernels(cases, _raw):
    return {case["name"]: said[-1] for case in cases if (said := (case.get("stdout", "") + case.get("stderr", "")).strip().splitlines())}, []


def relative(a, b):
    return abs(a - b) / max(abs(b), 1e-12)


def compare_losses(model, length, on_cpu, on_device):
    tolerance = TOLERANCES.get(length, 2e-2)
    checks = [check(f"{model}, loss after {length} {'steps' if length != 'epoch' else ''}".strip(), relative(on_device["loss"], on_cpu["loss"]) <= tolerance,
                    {"cpu": on_cpu["loss"], "device": on_device["loss"], "relative": relative(on_device["loss"], on_cpu["loss"])}, f"at most {tolerance:g} apart")]
    if on_cpu.get("val_accuracy") is not None and on_device.get("val_accuracy") is not None:
        checks.append(check(f"{model}, accuracy on the test set", abs(on_cpu["val_accuracy"] - on_device["val_accuracy"]) <= ACCURACY_TOLERANCE,
                            {"cpu": on_cpu["val_accuracy"], "device": on_device["val_accuracy"]}, f"at most {ACCURACY_TOLERANCE:g} apart"))
    return checks


def all_equal(name, found):
    values = {value for value in found.values() if value}
    return [check(name, len(values) == 1, found, "the same")] if len(found) > 1 else []


def train(cases, _raw):
    losses, weights, digests, figures = {}, {}, {}, []
    for case in cases:
        parts = case["name"].split(", ")
        row = last(case)
        if not row or case.get("status") != 0:
            continue
        if parts[0] == "digest":
            digests[parts[1]] = row["digest"]
        elif len(parts) == 3:
            losses.setdefault((parts[0], "epoch" if "epoch" in parts[1] else parts[1].split()[0]), {})[parts[2]] = row
            figures.append({"case": case["name"], **{k: row.get(k) for k in ("loss", "accuracy", "val_loss", "val_accuracy", "samples_per_s", "step_ms", "weights")}})
        else:
            weights.setdefault(parts[0], {})[parts[1]] = row.get("weights")
    checks = []
    for (model, length), both in losses.items():
        if len(both) == 2:
            checks += compare_losses(model, length, both["reference"], both["device"])
    for model, found in weights.items():
        checks += all_equal(f"{model}, weights with and without recorded steps and prefetch", found)
    checks += all_equal("digest of what arrives", digests)
    return {"runs": figures}, checks


def h2d(cases, _raw):
    rows = [row for case in cases for row in objects(case.get("stdout", ""))]
    peaks = {}
    for row in rows:
        key = f"{row['memory']} {row['direction']}"
        peaks[key] = max(peaks.get(key, 0), row["gb_per_s"])
    return {"peak_gb_per_s": peaks, "sizes": rows}, []


def resnet(cases, _raw):
    rows = [row for case in cases for row in objects(case.get("stdout", ""))]
    about = [row for row in rows if row["event"] == "torch"]
    return {"torch": about[0] if about else None, "rows": [row for row in rows if row["event"] == "resnet"],
            "turns": [row for row in rows if row["event"] == "turn"]}, []


def loader(cases, _raw):
    rates = {}
    for case in cases:
        row = last(case, "bench")
        if row and "samples_per_s" in row:
            rates[case["name"]] = {"samples_per_s": row["samples_per_s"], "mad": row.get("samples_per_s_mad"), "workers": row.get("workers", row.get("threads"))}
    return {"rates": rates}, []


def copy_rates(trace, bytes_per_batch):
    """GB/s of each copy in a trace.

    >>> copy_rates({"traceEvents": [{"ph": "X", "name": "copy", "dur": 2.0}, {"ph": "X", "name": "read", "dur": 1.0}]}, 4000)
    [2.0]
    """
    spans = [event["dur"] for event in trace["traceEvents"] if event.get("ph") == "X" and event["name"] == "copy"]
    return [bytes_per_batch / (1e3 * us) for us in spans if us > 0]


def real(cases, raw):
    figures = {}
    for case in cases:
        row = last(case)
        if not row:
            continue
        if not case["name"].startswith("prefetch"):
            figures[case["name"]] = {"samples_per_s": row.get("samples_per_s", row.get("samples_s"))}
            continue
        epochs = [o for o in objects(case["stdout"]) if o.get("event") == "epoch"]
        found = {k: row.get(k) for k in ("samples_per_s", "step_ms", "step_ms_mad", "wait_ms", "exposed_ms", "stall_fraction", "steps", "verdict")}
        trace = os.path.join(raw, f"trace-{case['name'].split()[1]}.json")
        batches = sum(o["stages"]["copy"]["items"] for o in epochs)
        if os.path.exists(trace) and batches:
            with open(trace, encoding="utf-8") as f:
                rates = copy_rates(json.load(f), sum(o["bytes_copied"][0] for o in epochs) / batches)
            found["copy_gb_per_s"] = statistics.median(rates) if rates else None
        figures[case["name"]] = found
    return figures, []


def ranks(cases, _raw):
    runs, weights = {}, {}
    for case in cases:
        rows = objects(case.get("stdout", ""))
        row = rows[-1] if rows else {}
        if case.get("status") != 0:
            continue
        if case["name"].startswith("weights"):
            weights[case["name"]] = row.get("weights")
        elif case["name"].startswith("exchange"):
            runs[case["name"]] = rows
        elif "loss" in row:
            runs[case["name"]] = {k: row.get(k) for k in ("loss", "samples_per_s", "step_ms")}
    return runs, all_equal("weights of a run, of whatever processes and wires", weights)


def door(cases, _raw):
    lines = [line for case in cases for line in case.get("stdout", "").splitlines() if line.startswith(("PASS", "FAIL"))]
    return {line.split()[1]: line.split()[0] for line in lines}, []


def sanitize(cases, _raw):
    return {case["name"]: said[-1] for case in cases if (said := case.get("stdout", "").strip().splitlines())}, []


def profile(cases, _raw):
    kinds = {}
    for case in cases:
        if case["name"] != "ncu" or "stdout" not in case:
            continue
        lines = case["stdout"].splitlines()
        start = next((at for at, line in enumerate(lines) if line.startswith('"ID"')), len(lines))
        for row in csv.DictReader(lines[start:]):
            try:
                value = float(row["Metric Value"].replace(",", ""))
            except (KeyError, ValueError, TypeError, AttributeError):
                continue
            kinds.setdefault(row["Kernel Name"].split("(")[0][:80], {}).setdefault(row["Metric Name"], []).append((value, row.get("Metric Unit", "")))
    rows = []
    for name, metrics in kinds.items():
        times = [v * {"us": 1e3, "usecond": 1e3, "ms": 1e6, "msecond": 1e6}.get(unit, 1) for v, unit in metrics.get("gpu__time_duration.sum", [])]
        row = {"kernel": name, "launches": len(times), "ns": sum(times)}
        for key, metric in (("dram_percent", "dram__throughput.avg.pct_of_peak_sustained_elapsed"), ("sm_percent", "sm__throughput.avg.pct_of_peak_sustained_elapsed")):
            values = [v for v, _ in metrics.get(metric, [])]
            row[key] = round(statistics.mean(values), 1) if values else None
        rows.append(row)
    return {"kernels": sorted(rows, key=lambda row: -row["ns"])[:40]}, []


READERS = {"info": info, "kernels": kernels, "train": train, "h2d": h2d, "resnet": resnet, "loader": loader, "real": real,
           "ranks": ranks, "door": door, "sanitize": sanitize, "profile": profile}


# ---- the whole ----

def status_of(cases, checks):
    """
    >>> status_of([], []), status_of([{"status": 0}], []), status_of([{"status": 0}, {"absent": "x"}], []), status_of([{"status": 1}], [])
    ('not run', 'passed', 'incomplete', 'failed')
    """
    if any(case.get("status", 0) != 0 for case in cases) or not all(c["ok"] for c in checks):
        return "failed"
    if not any("status" in case for case in cases):
        return "not run"
    return "incomplete" if any("absent" in case for case in cases) else "passed"


OPTIONAL = ("profile", "info")  # tools of others: one that fails says nothing of millrace


def section_of(name, cases, raw):
    figures, checks = READERS[name](cases, raw)
    status = status_of(cases, checks)
    if status == "failed" and name in OPTIONAL:
        status = "incomplete"
    runs = [{"name": c["name"], "absent": c["absent"]} if "absent" in c else
            {"name": c["name"], "command": c["command"], "status": c["status"], "seconds": c["seconds"],
             **({"said": (c["stderr"].strip() or c["stdout"].strip()).splitlines()[-5:]} if c["status"] else {})} for c in cases]
    return {"status": status, "seconds": round(sum(c.get("seconds") or 0 for c in cases), 1), "checks": checks, "figures": figures, "cases": runs}


def claim(text, found, holds):
    return {"claim": text, "found": found, "held": None if found is None else bool(holds)}


def claims(sections):
    figures = {name: section["figures"] for name, section in sections.items()}
    on = figures.get("real", {}).get("prefetch 4", {})
    peak = figures.get("h2d", {}).get("peak_gb_per_s", {}).get("pinned h2d")
    stall, rate = on.get("stall_fraction"), on.get("copy_gb_per_s")
    share = rate / peak if rate and peak else None
    made = [claim("exposed stall of real-data training, prefetch on: at most 1 % of step time", stall, (stall or 0) <= 0.01),
            claim("the copy stream reaches 90 % of the measured pinned peak", share, (share or 0) >= 0.9)]
    for row in figures.get("resnet", {}).get("rows", []):
        if row["precision"] == "bf16":
            made.append(claim(f"ResNet-50 bf16, batch {row['batch']}: images/s over PyTorch's best at least 1.0", row["ratio"], (row["ratio"] or 0) >= 1.0))
    clean = sections.get("sanitize", {}).get("status")
    made.append(claim("kernel tests clean under compute-sanitizer", None if clean in (None, "not run") else clean, clean == "passed"))
    return made


def summarise(raw):
    cases = read_cases(raw)
    chosen = text_of(raw, "chosen").split() or SECTIONS
    sections = {name: section_of(name, [c for c in cases if c["section"] == name], raw) for name in chosen}
    marks = [name for name in ("quick", "emulated", "photographs_drawn", "small_pictures_drawn") if os.path.exists(os.path.join(raw, name))]
    version = sections.get("info", {}).get("figures", {}).get("version")
    return {"suite": "millrace device suite", "format": VERSION, "millrace": version, "device": text_of(raw, "device").strip(),
            "emulated": "emulated" in marks, "quick": "quick" in marks, "drawn_data": [m for m in marks if m.endswith("drawn")],
            "seconds": round(sum(s["seconds"] for s in sections.values()), 1), "sections": sections,
            "claims": [] if "quick" in marks else claims(sections)}


# ---- text ----

def number(value, digits=1):
    """
    >>> number(None), number(12345.678), number(0.01234, 3)
    ('-', '12,345.7', '0.012')
    """
    return "-" if value is None else f"{value:,.{digits}f}"


def text_rows(name, f):
    if name == "info":
        yield from (f"  {row.get('name', '')}: {row.get('hardware', '')}, {row.get('state', '')}" for row in f.get("devices", []))
        yield from ("  " + ", ".join(f"{k} {v}" for k, v in row.items()) for row in f.get("gpu", []))
        yield from (f"  {k}: {v}" for k, v in f.get("processor", {}).items())
        packages = (f.get("libraries") or {}).get("packages", {})
        if packages:
            yield "  " + ", ".join(f"{k} {v}" for k, v in packages.items() if k == "torch" or any(s in k for s in ("cublas", "cudnn", "nccl")))
        if f.get("topology"):
            yield from ("  " + line for line in f["topology"].splitlines()[:12])
    elif name == "train":
        yield from (f"  {row['case']:<34} loss {number(row['loss'], 6)}  accuracy {number(row['accuracy'], 4)}  {number(row['samples_per_s'], 0)}/s" for row in f["runs"])
    elif name == "h2d":
        yield from (f"  {kind:<16} {number(rate, 2)} GB/s at best" for kind, rate in f["peak_gb_per_s"].items())
    elif name == "resnet":
        yield f"  images/s (medians of rounds); PyTorch: {f['torch']['about'] or 'absent: ' + str(f['torch']['absent'])}" if f.get("torch") else "  nothing"
        for row in f["rows"]:
            rates = "  ".join(f"{who} {number(rate, 0)}" for who, rate in row["samples_s"].items())
            yield f"  {row['precision']:<5} batch {row['batch']:<4} {rates}  ours / best of PyTorch {number(row['ratio'], 3)}"
            yield from (f"      {who}: {why}" for who, why in row["absent"].items())
    elif name == "loader":
        yield from (f"  {kind:<20} {number(row['samples_per_s'], 0)} pictures/s ({row['workers']} threads)" for kind, row in f["rates"].items())
    elif name == "real":
        for kind, row in f.items():
            more = "" if "step_ms" not in row else (f"  step {number(row['step_ms'], 2)} ms  exposed stall {number(100 * (row['stall_fraction'] or 0), 2)} %"
                                                    f"  copies {number(row.get('copy_gb_per_s'), 1)} GB/s")
            yield f"  {kind:<20} {number(row['samples_per_s'], 0)} images/s{more}"
    elif name == "profile":
        yield from (f"  {number(row['ns'] / 1e3, 1):>10} us  {row['launches']:>4} x  memory {number(row['dram_percent'])} %  arithmetic {number(row['sm_percent'])} %  {row['kernel']}"
                    for row in f["kernels"][:15])
    else:
        yield from (f"  {kind}: {said}" for kind, said in f.items())


def page(summary):
    title = f"millrace device suite on {summary['device']}"
    if summary["emulated"]:
        title += " (EMULATED: shows that everything runs, and no speed)"
    elif summary["quick"]:
        title += " (quick: shows that everything runs, and no speed)"
    lines = [title, f"{summary['millrace'] or ''}; {summary['seconds']} s"]
    if summary["drawn_data"]:
        lines.append("pictures were drawn, not photographed: " + ", ".join(summary["drawn_data"]))
    for name, section in summary["sections"].items():
        lines += ["", f"{name}: {section['status']} ({section['seconds']} s)", *text_rows(name, section["figures"])]
        lines += [f"  {'ok  ' if c['ok'] else 'WRONG'} {c['name']}: {json.dumps(c['found'])}, expected {c['expected']}" for c in section["checks"]]
        for case in section["cases"]:
            if case.get("absent"):
                lines.append(f"  not run: {case['name']}: {case['absent']}")
            elif case["status"]:
                lines.append(f"  FAILED: {case['name']}: exit status {case['status']}: {' | '.join(case['said'][-2:])}")
    if summary["claims"]:
        lines += ["", "claims"]
        lines += [f"  {'not measured' if c['held'] is None else 'held' if c['held'] else 'fell short':<13} {c['claim']}"
                  f"{'' if c['found'] is None else ': ' + (c['found'] if isinstance(c['found'], str) else format(c['found'], '.4g'))}" for c in summary["claims"]]
    return "\n".join(lines) + "\n"


def main():
    if sys.argv[1:] == ["--library-path"]:
        print(":".join(library_folders(sys.path)))
        return 0
    if sys.argv[1:] == ["--libraries"]:
        print(json.dumps(library_versions()))
        return 0
    if len(sys.argv) != 3:
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        return 2
    summary = summarise(sys.argv[1])
    with open(os.path.join(sys.argv[2], "device_suite.json"), "w", encoding="utf-8") as f:
        json.dump(summary, f, indent=1)
        f.write("\n")
    text = page(summary)
    with open(os.path.join(sys.argv[2], "device_suite.txt"), "w", encoding="utf-8") as f:
        f.write(text)
    print(text, end="")
    return 1 if any(section["status"] == "failed" for section in summary["sections"].values()) else 0


if __name__ == "__main__":
    sys.exit(main())
