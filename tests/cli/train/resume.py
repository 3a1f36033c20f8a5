"""Every option of `millrace train` with --resume, by the table of resume.txt.

usage: resume.py MILLRACE [--only OPTION]
"""
import argparse
import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
import tempfile

COMMON = {"--model": "cifar-cnn", "--augment": "resize(32x32)", "--batch": "8", "--lr": "1e-3"}
GIVEN_AGAIN = ("--devices", "--hold-out", "--val")  # what no checkpoint keeps


# What rows of settings (settings/setting.h) call a kind of resume.txt.
POLICIES = {"kept": ("same",), "changes": ("override",), "said": ("override",), "speed": ("free",), "run": ("free", "take")}


def options_of(millrace):
    """{option: what `help --json` says of it}"""
    text = subprocess.run([millrace, "help", "train", "--json"], capture_output=True, text=True, check=True).stdout
    return {o["name"]: o for o in map(json.loads, text.splitlines()) if o["event"] == "option"}


def row_by(option):
    """The row of a setting that resume.txt does not list, from its range and policy; None: resume.txt must list it."""
    least, most, choices = option.get("least", 0), option.get("most", 0), option.get("choices")
    if option.get("changes") == "speed":
        values, kind = choices or [str(n) for n in (least + 1, least + 2) if n <= most], "speed"
    else:
        values = choices[1::-1] if choices else ["2", "3"] if most >= 3 else ["0.5", "0.25"] if most > 0.5 else []
        kind = {"same": "kept", "override": "changes"}.get(option.get("resume"))
    return [option["name"], *values[:2], kind] if kind and len(values) > 1 else None


def rows_of(path):
    for line in open(path, encoding="utf-8"):
        if line.strip() and not line.startswith("#"):
            yield [cell.strip() for cell in line.split("|")]


def train(millrace, folder, words, own):
    """Status, hash of the weights (None: no weights), and the output. own: words of the row, to choose what goes with them."""
    words = list(words)
    if "--resume" not in words:
        words += [w for option, value in COMMON.items() if option not in words for w in (option, value)]
    if "--parts" not in own and "--parts" not in words:
        words += ["--threads", "1"]
    if "--hold-out" not in words and "--val" not in words:
        words += ["--val", "none"]
    done = subprocess.run([millrace, "train", "set", "--json", "--quiet", *words], cwd=folder, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL)
    ends = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"event": "train"')]
    return done.returncode, ends[-1]["weights"] if ends else None, done.stderr


def try_row(millrace, row, folder):
    """The fault of this row, or None."""
    option, first, other, kind = row[:4]
    more = row[4].split() if len(row) > 4 else []
    given = [f"--{option}", first]
    again = [w for k in range(0, len(more), 2) if more[k] in GIVEN_AGAIN for w in more[k:k + 2]]

    def run(*words):
        return train(millrace, folder, words, given + more)

    def resume(*words):
        shutil.rmtree(os.path.join(folder, "copy"), ignore_errors=True)
        shutil.copytree(os.path.join(folder, "run"), os.path.join(folder, "copy"))
        return run("--checkpoint", "copy", "--resume", *again, *words)

    status, whole, err = run("--epochs", "2", *given, *more)
    if status == 0:
        status, _, err = run("--epochs", "2", "--checkpoint", "run", "--max-steps", "2", "--checkpoint-steps", "1", *given, *more)
    if status:
        return f"status {status}: {err}"
    status, kept, err = resume()
    if kind == "again":
        if status == 0:
            return "resumed without it: expected a refusal"
        status, kept, err = resume(*given)
    if status or kept != whole:
        return f"resumed without it: status {status}, weights {kept}, expected {whole} {err}"
    status, same, err = resume(*given)
    if status or same != whole:
        return f"resumed with {first}: status {status}, weights {same}, expected {whole} {err}"
    status, changed, err = resume(f"--{option}", other)
    if kind in ("speed", "run", "equal"):
        return None if status == 0 and changed == whole else \
            f"resumed with {other}: status {status}, weights {changed}, expected {whole} {err}"
    if status == 0 or (option not in err and kind != "again"):
        return f"resumed with {other}: status {status}, expected an error that names --{option}: {err}"
    status, changed, err = resume("--override", f"--{option}", other)
    if kind in ("kept", "again"):
        return None if status else f"--override with {other}: expected an error"
    if status or (changed == whole and kind != "said") or f"--{option}" not in err:
        return f"--override with {other}: status {status}, weights {changed}, of the whole run {whole}; said: {err}"
    return None


def main():
    words = argparse.ArgumentParser()
    words.add_argument("millrace")
    words.add_argument("--only", default="")
    asked = words.parse_args()
    millrace = os.path.abspath(asked.millrace)
    rows = list(rows_of(os.path.join(os.path.dirname(os.path.abspath(__file__)), "resume.txt")))
    wrong = []
    options = options_of(millrace)
    known = [row[0] for row in rows]
    made = [row_by(option) for name, option in options.items() if name not in known]
    rows += [row for row in made if row]
    for option in options.keys() - {row[0] for row in rows}:
        wrong.append(f"--{option}: no row in resume.txt")
    for option, kind in ((row[0], row[3]) for row in rows if len(row) >= 4):
        policy = options[option].get("resume")
        if policy and policy not in POLICIES.get(kind, (policy,)):
            wrong.append(f"--{option}: {kind} in resume.txt, and {policy} in the row of the setting")
    asked_rows = [row for row in rows if len(row) >= 4 and asked.only in ("", row[0])]
    with tempfile.TemporaryDirectory(prefix="millrace-resume-") as room:
        def one(number):
            folder = os.path.join(room, str(number))
            os.mkdir(folder)
            os.symlink("../set", os.path.join(folder, "set"))
            problem = try_row(millrace, asked_rows[number], folder)
            shutil.rmtree(folder)
            return problem and f"--{asked_rows[number][0]}: {problem}"

        subprocess.run([millrace, "synth", "set", "--classes", "4", "--count", "6", "--size", "36", "--quiet"], cwd=room, check=True,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        with concurrent.futures.ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
            wrong += [problem for problem in pool.map(one, range(len(asked_rows))) if problem]
    tried = len(asked_rows)
    for text in wrong:
        print(text)
    print(f"{tried} options, {len(wrong)} wrong; {len(rows) - tried} not tried, for the reasons of resume.txt")
    return 1 if wrong or (not asked.only and tried < 40) else 0


if __name__ == "__main__":
    sys.exit(main())
