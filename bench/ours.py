"""Contestants that are ours, the yardstick, and the data all of them get; used by peers.py and ratios.py."""
import hashlib
import json
import os

from rounds import Absent, Loader, Program, call, last_object, tell

BATCH, CIFAR_BATCH = 64, 512
YARDSTICK = "full-decode"
OURS = {  # name: label, how `millrace convert` makes it (None: the folder as it is), the job
    "folder": ("millrace, the folder", None, "photos"),
    "records": ("millrace, records with entry points", ["--store", "jpeg"], "photos"),
    "coef": ("millrace, coefficient records", ["--store", "coef"], "photos"),
    "raw": ("millrace, raw records, shorter side 256", ["--store", "raw", "--resize", "256"], "photos"),
    "cifar": ("millrace, raw records, CIFAR pictures", ["--store", "raw"], "cifar"),
}

DOORS = {  # name: label, which of OURS it reads; the same library through Python (millrace.Loader, or millrace.torch.Loader), by peers.py
    "door-folder": ("millrace from Python, the folder", "folder"),
    "door-records": ("millrace from Python, records with entry points", "records"),
    "door-coef": ("millrace from Python, coefficient records", "coef"),
    "door-torch": ("millrace.torch, the folder", "folder"),
}


def cache_folder(part):
    return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "millrace-bench", part)


# ---- data ----

def jpeg_files(folder):
    """By their first bytes, not their names; regular files that are not hidden, as ours takes them."""
    found = []
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = os.path.join(place, name)
            if name.startswith(".") or os.path.islink(path) or not os.path.isfile(path):
                continue
            with open(path, "rb") as f:
                if f.read(3) == b"\xff\xd8\xff":
                    found.append(os.path.abspath(path))
    return found


def write_door_job(job, name, data, threads):
    """The job of peer_loaders.py for one of DOORS, as a file."""
    path = os.path.join(job["cache"], f"{name}-{threads}.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"data": data, "batch": job["batch"], "threads": threads}, f)
    return path


def write_job(cache, job, folder, threads):
    """The job of peer_loaders.py, as a file in the cache; data that a contestant derives from the set are stored next to it, under a name
    that changes with the set."""
    files = jpeg_files(folder)
    if not files:
        raise Absent(f"{folder}: expected a folder with JPEG files, found none")
    sizes = [os.path.getsize(path) for path in files]
    name = hashlib.sha256("\n".join(f"{path} {size}" for path, size in zip(files, sizes)).encode()).hexdigest()[:16]
    place = os.path.join(cache, f"{job}-{name}")
    os.makedirs(place, exist_ok=True)
    batch = CIFAR_BATCH if job == "cifar" else BATCH
    path = os.path.join(place, f"job-{threads}.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"files": files, "batch": batch, "threads": threads, "cache": place}, f)
    return {"file": path, "cache": place, "folder": folder, "pictures": len(files), "bytes": sum(sizes), "batch": batch, "made": {}}


def job_about(jobs):
    return {job: {key: about[key] for key in ("pictures", "bytes", "batch")} for job, about in jobs.items()}


# ---- contestants ----

def has_entry_points(convert_said, inspect_said):
    """Whether this version keeps entry points: its report on the file has a non-empty entry with such a name.

    >>> has_entry_points({"records": 3}, {"entry_points": 3}), has_entry_points({"entry_bytes": 0}, {})
    (True, False)
    """
    return any("entr" in key and value for said in (convert_said, inspect_said) for key, value in said.items())


def convert_command(millrace, name, job, threads, to):
    return [millrace, "convert", job["folder"], to, *OURS[name][1], "--force", "--quiet", "--json", "--workers", str(threads)]


def made_by_convert(millrace, name, job, threads):
    """The record file on which `name` is measured, made anew once a run, and facts about it."""
    if name not in job["made"]:
        path, about = os.path.join(job["cache"], f"millrace-{name}.mrec"), {}
        said = last_object(call(convert_command(millrace, name, job, threads, path), 900)[0])
        about["bytes_ratio"] = round(said["bytes_out"] / job["bytes"], 3)
        if name == "records":
            about["entry_points"] = has_entry_points(said, last_object(call([millrace, "inspect", path, "--json"], 60)[0]))
        job["made"][name] = path, about
    return job["made"][name]


def first_epoch(millrace):
    """Options with which every epoch is like the first: no entry points are kept in memory."""
    return ["--entries", "0"] if "--entries" in call([millrace, "bench", "--help", "--all"], 60)[0] else []


def our_loader(millrace, name, jobs, threads, variant="", env=None, extra=()):
    """The contestant `name`, or a variant of it: another environment or further options."""
    label, store, job = OURS[name]
    if job not in jobs:
        raise Absent("no --cifar FOLDER was given")
    data, about = made_by_convert(millrace, name, jobs[job], threads) if store else (jobs[job]["folder"], {})
    if name == "folder" and variant != "kept":
        extra = [*extra, *first_epoch(millrace)]
    if about.get("entry_points") is False:
        label = "millrace, records (no entry points)"
    return Loader(f"{name}@{variant}" if variant else name, f"{label}, {variant}" if variant else label, millrace, data, threads,
                  "cifar" if job == "cifar" else "rrc224", jobs[job]["batch"], extra, env=env, job=job,
                  version=call([millrace, "--version"], 60)[0].splitlines()[0], **about)


def yardstick(millrace, jobs, threads):
    build = os.path.dirname(os.path.dirname(os.path.abspath(millrace)))
    program, folder = os.path.join(build, "bench", "bench_decode"), jobs["photos"]["folder"]
    if not os.path.exists(program):
        raise Absent(f"{program} is not there: cmake --build {build} --target bench_decode")
    said = last_object(call([program, folder, str(threads), "0.01"], 300)[0])
    if said["pictures"] != jobs["photos"]["pictures"]:
        tell(f"{folder}: {jobs['photos']['pictures']} JPEG files; the yardstick decodes {said['pictures']} of them")
    return Program(YARDSTICK, "full libjpeg-turbo decode (yardstick)", "yardstick",
                   lambda seconds: [program, folder, str(threads), f"{seconds:g}"], version=said["library"])
