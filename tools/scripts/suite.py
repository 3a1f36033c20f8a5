#!/usr/bin/env python3
"""Runs the tests of a build, repeats failing tests once, and lists the results at the end.

    suite.py test FOLDER NAME BUILD [--strict] [CTEST ARGUMENT...]   ctest in BUILD; its results go to FOLDER/NAME.json
    suite.py part FOLDER NAME SECONDS STATUS LOG                     something else that passed or failed, and its output
    suite.py result FOLDER                                           everything in FOLDER; exit status 0 when nothing failed

A test that fails is run once more, alone. When it passes then it counts as FLAKY: the run stays green, its name and its
first output stand in the result and in flaky.txt beside FOLDER. A report of a sanitizer is no matter of luck: it stays a failure.
So do the failure of more than MOST_CHANCES tests, of one that took longer than MOST_SECONDS, and with --strict of any. The
last line of `result` is the count. A part that ends with status 77 was not run."""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ET

MOST_CHANCES, MOST_SECONDS = 8, 600
SKIPPED = 77
LINES, HANG_LINES = 40, 400
SURE = ("Sanitizer:", "runtime error:")  # seen once is seen
HANGS = "launch: not over after"


def read_tests(path):
    """Tests of a JUnit file of ctest: {name: {"state", "seconds", "output"}}; state: passed, failed, skipped."""
    tests = {}
    for case in ET.parse(path).getroot().iter("testcase"):
        if case.find("skipped") is not None and "SKIP_RETURN_CODE" in (case.find("skipped").get("message") or ""):
            state = "skipped"
        else:
            state = "passed" if case.get("status") == "run" else "failed"
        tests[case.get("name")] = {"state": state, "seconds": float(case.get("time") or 0),
                                   "output": case.findtext("system-out") or ""}
    return tests


def run_ctest(build, junit, arguments):
    """None when ctest itself failed: no tests, or no results."""
    junit.unlink(missing_ok=True)
    command = ["ctest", "--test-dir", build, "--no-tests=error", "--output-on-failure", "--test-output-size-passed", "4096",
               "--test-output-size-failed", "200000", "--test-output-truncation", "middle", "--output-junit", junit.resolve()]
    subprocess.run([str(word) for word in command + arguments], stdin=subprocess.DEVNULL, check=False)
    sys.stdout.flush()
    return (read_tests(junit) if junit.exists() else None) or None


def is_sure(test):
    return any(mark in test["output"] for mark in SURE)


def give_second_chance(build, name, folder, tests):
    """Marks what passes alone as flaky."""
    failed = [test for test, about in tests.items() if about["state"] == "failed"]
    if not failed or len(failed) > MOST_CHANCES or any(tests[test]["seconds"] > MOST_SECONDS for test in failed):
        return
    print(f"\n== {name}: once more, alone: {' '.join(failed)}", flush=True)
    again = run_ctest(build, folder / f"{name}-again.xml", ["--rerun-failed", "-j", "1"]) or {}
    for test in failed:
        if again.get(test, {}).get("state") == "passed" and not is_sure(tests[test]):
            tests[test]["state"] = "flaky"


def skip_reason(test):
    marked = [line for line in test["output"].splitlines() if line.startswith(("SKIP:", "not run:"))]
    return marked[0].split(":", 1)[1].strip() if marked else "it does not say why"


def processor_seconds(test):
    found = re.search(r"^launch: processor ([0-9.]+) s", test["output"], re.M)
    return float(found[1]) if found else 0.0


def print_slowest(tests):
    cost = {name: (test["seconds"], processor_seconds(test)) for name, test in tests.items()}
    print(f"processor: {sum(processor for _, processor in cost.values()):.0f} s")
    for by, title in ((0, "slowest"), (1, "most processor time")):
        most = sorted(cost, key=lambda name: -cost[name][by])[:16]
        print(f"{title}: " + ", ".join(f"{name} {cost[name][by]:.0f} s" for name in most))


def test(args):
    folder = pathlib.Path(args.folder)
    folder.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    tests = run_ctest(args.build, folder / f"{args.name}.xml", args.arguments)
    if not tests:
        tests = {"ctest": {"state": "failed", "seconds": 0, "output": "ctest found no tests, or gave no results"}}
    elif not args.strict:
        give_second_chance(args.build, args.name, folder, tests)
    print_slowest(tests)
    # skipped parts of a passed test are reported, too
    for line in sorted({line for about in tests.values() for line in about["output"].splitlines()
                        if line.startswith(("SKIP:", "not run:"))}):
        print(line)
    write(folder, args.name, {"seconds": time.monotonic() - begun, "tests": tests})
    return any(about["state"] == "failed" for about in tests.values())


def part(args):
    folder = pathlib.Path(args.folder)
    folder.mkdir(parents=True, exist_ok=True)
    output = pathlib.Path(args.log).read_text(encoding="utf-8", errors="replace") if pathlib.Path(args.log).exists() else ""
    output += f"\nexit status {args.status}" if args.status else ""
    write(folder, args.name, {"seconds": args.seconds, "status": args.status, "output": output})
    return 0


def write(folder, name, about):
    order = len(list(folder.glob("*.json")))
    (folder / f"{name}.json").write_text(json.dumps({"order": order, "name": name, **about}), encoding="utf-8")


def count(tests, state):
    return sum(about["state"] == state for about in tests.values())


def print_end_of(title, output):
    lines = output.rstrip().splitlines()
    most = HANG_LINES if HANGS in output else LINES
    print(f"\n-- {title}")
    if len(lines) > most:
        print(f"    ({len(lines) - most} lines before these)")
    for line in lines[-most:]:
        print("    " + line[:240])


def part_state(about):
    if about["status"] == SKIPPED:
        return "skipped: " + skip_reason(about)
    return "FAILED" if about["status"] else "passed"


def print_line(about):
    name, seconds = about["name"], about["seconds"]
    if "tests" not in about:
        print(f"{name:20} {part_state(about)}, {seconds:.0f} s")
        return
    tests = about["tests"]
    print(f"{name:20} {count(tests, 'passed') + count(tests, 'flaky')} passed, {count(tests, 'failed')} failed, "
          f"{count(tests, 'flaky')} flaky, {count(tests, 'skipped')} skipped, {seconds:.0f} s")
    for test_name in sorted(tests):
        if tests[test_name]["state"] == "skipped":
            print(f"    skipped {test_name}: {skip_reason(tests[test_name])}")


def result(args):
    folder = pathlib.Path(args.folder)
    parts = sorted((json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")),
                   key=lambda about: about["order"])
    print(f"\n== result ({sum(about['seconds'] for about in parts) / 60:.1f} minutes)")
    passed = failed = skipped = 0
    flaky, failures = [], []
    for about in parts:
        print_line(about)
        if "tests" not in about:
            passed += part_state(about) == "passed"
            failed += part_state(about) == "FAILED"
            skipped += part_state(about).startswith("skipped")
            if part_state(about) == "FAILED":
                failures.append((f"FAILED {about['name']}", about["output"]))
            continue
        for name, one in about["tests"].items():
            passed += one["state"] in ("passed", "flaky")
            failed += one["state"] == "failed"
            skipped += one["state"] == "skipped"
            if one["state"] == "failed":
                failures.append((f"FAILED {about['name']} {name}", one["output"]))
            if one["state"] == "flaky":
                flaky.append((f"FLAKY {about['name']} {name}", one["output"]))
    with open(folder.parent / "flaky.txt", "w", encoding="utf-8") as out:
        for title, output in flaky:
            out.write(f"{title}\n{output}\n")
    for title, output in flaky + failures:
        print_end_of(title, output)
    print()
    for title, _ in flaky + failures:
        print(title)
    if not parts:
        print("nothing was run")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return failed > 0 or not parts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    calls = parser.add_subparsers(required=True)
    call = calls.add_parser("test")
    call.set_defaults(run=test)
    call.add_argument("folder")
    call.add_argument("name")
    call.add_argument("build")
    call.add_argument("--strict", action="store_true")
    call = calls.add_parser("part")
    call.set_defaults(run=part)
    call.add_argument("folder")
    call.add_argument("name")
    call.add_argument("seconds", type=float)
    call.add_argument("status", type=int)
    call.add_argument("log")
    call = calls.add_parser("result")
    call.set_defaults(run=result)
    call.add_argument("folder")
    args, args.arguments = parser.parse_known_args()
    return int(args.run(args))


if __name__ == "__main__":
    sys.exit(main())
