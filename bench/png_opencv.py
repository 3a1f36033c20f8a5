#!/usr/bin/env python3
"""PNGs: random crops by millrace beside whole decoding by OpenCV, taking turns.

usage: bench/png_opencv.py MILLRACE [MILLRACE...] --data FOLDER [--rounds 5] [--seconds 2] [--threads 2]

FOLDER: PNGs in class folders. OpenCV is imdecode() in threads, of files in memory, nothing else; millrace is a loader with
RandomResizedCrop(224) and flip to batches of 32. Needs opencv-python-headless. Several programs: versions to compare. Prints
the median of samples a second, and the median of the ratios to OpenCV with their range.
"""
import argparse
import glob
import json
import os
import statistics
import subprocess
import sys
import threading
import time


def opencv(folder, threads, seconds):
    """Pictures a second of one turn."""
    import cv2
    import numpy as np
    cv2.setNumThreads(1)
    files = [np.fromfile(path, np.uint8) for path in sorted(glob.glob(f"{folder}/*/*.png"))]
    counts, start = [0] * threads, time.perf_counter()

    def work(k):
        at = k
        while time.perf_counter() < start + seconds:
            cv2.imdecode(files[at % len(files)], cv2.IMREAD_COLOR)
            at += threads
            counts[k] += 1
    workers = [threading.Thread(target=work, args=(k,)) for k in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(counts) / (time.perf_counter() - start)


def turn_of(command):
    """The last line of output as JSON."""
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("millrace", nargs="*")
    parser.add_argument("--data", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--opencv-turn", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.opencv_turn:
        print(json.dumps(opencv(args.data, args.threads, args.seconds)))
        return
    loader = ["bench", "loader", args.data, "--augment", "rrc224", "--training", "--batch", "32", "--workers", str(args.threads),
              "--seconds", str(args.seconds), "--rounds", "1", "--json"]
    rates = {}
    for _ in range(args.rounds):
        rates.setdefault("opencv", []).append(turn_of([sys.executable, os.path.abspath(__file__), "--data", args.data, "--threads",
                                                       str(args.threads), "--seconds", str(args.seconds), "--opencv-turn"]))
        for program in args.millrace:
            rates.setdefault(program, []).append(turn_of([program, *loader])["samples_per_s"])
    for name, values in rates.items():
        ratios = sorted(rate / base for rate, base in zip(values, rates["opencv"]))
        print(f"{name:60} {statistics.median(values):8.1f} samples/s  {statistics.median(ratios):5.2f} "
              f"({ratios[0]:.2f}-{ratios[-1]:.2f}) x opencv")


if __name__ == "__main__":
    main()
