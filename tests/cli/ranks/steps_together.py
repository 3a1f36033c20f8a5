#!/usr/bin/env python3
"""steps_together.py TRACE RANKS: each step is computed by every rank, and ends everywhere before any rank ends
the one after the next: they wait for each other's gradients, so on one clock it cannot be otherwise."""
import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    spans = [e for e in json.load(file)["traceEvents"] if e["ph"] == "X" and e["name"] == "compute"]
ends = {}
for e in spans:
    of_step = ends.setdefault(e["args"]["batch"], {})
    of_step[e["pid"]] = max(of_step.get(e["pid"], 0), e["ts"] + e["dur"])
steps = [sorted(ends[batch].values()) for batch in sorted(ends)]
wrong = [s for s in steps if len(s) != int(sys.argv[2])]
wrong += [(a, c) for a, c in zip(steps, steps[2:]) if a[-1] > c[0]]
if wrong or len(steps) < 4:
    sys.exit(f"{len(steps)} steps, of these {wrong}")
