#!/usr/bin/env python3
"""Other formats, read as they are, compared with the record file made of the same pictures, taking turns.

usage: bench/formats.py MILLRACE [--data FOLDER] [--cifar FOLDER] [--rounds 5] [--seconds 2] [--threads 2] [--json OUT] [--cache DIR]

    --data   pictures in folders of classes: RandomResizedCrop(224) + flip, batches of 64; records keep JPEGs, with entry points and without
    --cifar  the same of small pictures: padded crop + flip, batches of 512

TFRecord and tar are made by `millrace convert --to`, RecordIO and CSV here; what this version cannot make is listed as absent. The ratio is
samples/s of the format over samples/s of the record file without entry points, which holds the same JPEG bytes: the cost of the container.
Page cache warm; the index of a foreign format is there from the first round on. See rounds.py for how rounds and ratios are made.
"""
import argparse
import os
import struct
import sys
import time

from ours import cache_folder, job_about, jpeg_files, write_job
from rounds import (Absent, Loader, ROUNDS_FEWEST, absent_row, call, column, contestant_row, pair_row, ratios, run_rounds, run_row,
                    tell, use_cores, write_rows)

MAGIC = struct.pack("<I", 0xCED7230A)


# ---- files ----

def recordio(data):
    """One record; where data holds the magic at a multiple of 4 it is stored in parts without it.

    >>> recordio(b"abc")[4:]
    b'\\x03\\x00\\x00\\x00abc\\x00'
    """
    parts, start = [], 0
    for at in range(0, len(data) - 3, 4):
        if data[at:at + 4] == MAGIC:
            parts.append(data[start:at])
            start = at + 4
    parts.append(data[start:])
    flags = [0] if len(parts) == 1 else [1] + [2] * (len(parts) - 2) + [3]
    return b"".join(MAGIC + struct.pack("<I", flag << 29 | len(part)) + part + b"\0" * (-len(part) % 4) for flag, part in zip(flags, parts))


def classes_of(files):
    names = sorted({os.path.basename(os.path.dirname(path)) for path in files})
    return {name: number for number, name in enumerate(names)}


def write_recordio(path, files):
    """NAME.rec and its list of offsets, as im2rec lays them out."""
    numbers, offset = classes_of(files), 0
    with open(path, "wb") as rec, open(path[:-4] + ".idx", "w", encoding="ascii") as idx:
        for k, name in enumerate(files):
            with open(name, "rb") as f:
                record = recordio(struct.pack("<IfQQ", 0, numbers[os.path.basename(os.path.dirname(name))], k, 0) + f.read())
            rec.write(record)
            idx.write(f"{k}\t{offset}\n")
            offset += len(record)


def write_csv(path, files):
    with open(path, "w", encoding="utf-8") as f:
        f.write("path,label\n" + "".join(f'"{name}",{os.path.basename(os.path.dirname(name))}\n' for name in files))


FORMATS = {  # name: label, arguments of `millrace convert` or a function that writes it; None: the folder as it is
    "records": ("record file, JPEG bytes", "records.mrec", ["--store", "jpeg", "--no-entries"]),
    "entries": ("record file with entry points", "entries.mrec", ["--store", "jpeg"]),
    "folder": ("the folder itself", None, None),
    "tfrecord": ("TFRecord, four files", "train.tfrecord", ["--to", "tfrecord", "--shard-size", "FOURTH"]),
    "tar": ("WebDataset tar", "train.tar", ["--to", "tar"]),
    "recordio": ("RecordIO", "train.rec", write_recordio),
    "csv": ("CSV and the files it names", "train.csv", write_csv),
}


def made(millrace, name, job, threads):
    _, file, how = FORMATS[name]
    if not how:
        return job["folder"]
    place = os.path.join(job["cache"], "formats", name)
    os.makedirs(place, exist_ok=True)
    for old in os.listdir(place):
        os.remove(os.path.join(place, old))
    path = os.path.join(place, file)
    if callable(how):
        how(path, jpeg_files(job["folder"]))
        return path
    options = [str(job["bytes"] // 4 + (1 << 20)) if word == "FOURTH" else word for word in how]
    call([millrace, "convert", job["folder"], path, *options, "--force", "--quiet", "--workers", str(threads)], 900)
    return path if os.path.exists(path) else place


# ---- the run ----

def gather(args, jobs):
    ready, absent = [], {}
    for part, job in jobs.items():
        for name, (label, _, _) in FORMATS.items():
            ident = f"{part} {name}"
            try:
                ready.append(Loader(ident, f"{part}: {label}", args.millrace, made(args.millrace, name, job, args.threads), args.threads,
                                    "cifar" if part == "cifar" else "rrc224", job["batch"],
                                    extra=["--outside", "take"] if name == "csv" else [], job=part))
                ready[-1].turn(0.1)  # builds the index
                tell(f"{ident}: ready")
            except Absent as why:
                if ready and ready[-1].ident == ident:
                    ready.pop()
                absent[ident] = str(why)
                tell(f"{ident}: absent: {why}")
    return ready, absent


def rows_of(args, cores, jobs, contestants, results, absent, took):
    rows = [{**run_row("formats", args, cores, [], took), "data": job_about(jobs)}]
    for c in contestants:
        if any(results[c.ident]):
            rows.append(contestant_row("formats", c, results[c.ident], []))
    for part in jobs:
        base = column(results, f"{part} records")
        for name in FORMATS:
            values = ratios(column(results, f"{part} {name}"), base) if name != "records" else []
            if values:
                cpu = ratios(column(results, f"{part} records", "cpu_s_per_1000"), column(results, f"{part} {name}", "cpu_s_per_1000"))
                rows.append(pair_row("formats", f"{part}: {name} / records", f"{part} {name}", f"{part} records", values, cpu))
    return rows + [absent_row("formats", name, name, why) for name, why in absent.items()]


def show(rows):
    for row in rows:
        if row["row"] == "contestant":
            print(f"{row['label']:46} {row['median_samples_per_s']:>10,.0f} samples/s")
        elif row["row"] == "pair":
            print(f"{row['id']:46} {row['median']:>10.3f}  ({row['min']:.3f}-{row['max']:.3f}, {row['rounds']} rounds; by processor time "
                  f"{row['cpu']['median']:.2f})")
        elif row["row"] == "absent":
            print(f"absent: {row['id']}: {row['reason']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("millrace")
    parser.add_argument("--data")
    parser.add_argument("--cifar")
    parser.add_argument("--rounds", type=int, default=ROUNDS_FEWEST)
    parser.add_argument("--seconds", type=float, default=2, help="of a turn")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json")
    parser.add_argument("--cache", default=cache_folder("data"))
    args, start = parser.parse_args(), time.monotonic()
    if not args.data and not args.cifar:
        parser.error("expected --data FOLDER, --cifar FOLDER or both")
    cores = use_cores(args.threads)
    try:
        jobs = {part: write_job(args.cache, part, folder, args.threads)
                for part, folder in (("photos", args.data), ("cifar", args.cifar)) if folder}
    except (Absent, OSError) as why:
        sys.exit(str(why))
    contestants, absent = gather(args, jobs)
    results, dropped = run_rounds(contestants, args.rounds, args.seconds, None, tell)
    rows = rows_of(args, cores, jobs, contestants, results, {**absent, **dropped}, time.monotonic() - start)
    show(rows)
    if args.json:
        write_rows(args.json, rows)


if __name__ == "__main__":
    main()
