"""Random sets through random formats and back: the right class is delivered, or the run is refused by name.
fuzz.py MILLRACE COUNT [--seed S] [--folder F] [--only K]

A set has 2 to 14 classes; some may be missing on one side. They are numbers (from 0, from 1, from anywhere, with gaps, in any
order), names (texts, numbers, numbers with zeros in front, some of each), or names on one side and the same as numbers on the other. It is
written in a random format, goes through up to three conversions, exports or mixes, and comes out as an archive whose pictures say what
they are; then a network is trained on one chain and validated on another one. COUNT sets are drawn from the seed; --only K runs the K-th."""
import argparse
import random
import sys

import sets_lib as lib

TEXTS = ("ant", "Bee", "\u00e4hre", "cat fish", "dog", "E", "f-16", "goat", "\u00d6l", "ibis", "j.k", "koi", "lynx", "mole", "newt")


def draw_numbers(r, count):
    kind = r.randrange(5)
    if kind < 2:
        return [k + kind for k in range(count)]
    if kind == 2:
        first = r.randrange(2, 60)
        return [first + k for k in range(count)]
    numbers = r.sample(range(200), count)
    return numbers if kind == 3 else sorted(numbers)


def draw_labels(r, count):
    """Of classes 0 to count - 1, and whether the other side may call the same ones by numbers."""
    kind = r.randrange(5)
    if kind < 2:
        return draw_numbers(r, count), False
    if kind == 2:
        return r.sample(TEXTS, count), False
    width = r.choice((0, 0, 2, 3))
    names = ["%0*d" % (width, n) for n in draw_numbers(r, count)]
    if kind == 4 and count > 2:  # not all of them are numbers
        names[r.randrange(count)] = r.choice(TEXTS)
        return names, False
    return names, True


def as_written(form, samples):
    texts = [label for _, label in samples if isinstance(label, str)]
    if not texts:
        return samples
    if form == "csv" and any(t.isdigit() for t in texts):  # its numbers are numbers, and names next to them are refused
        return [(shown, int(label)) for shown, label in samples] if all(t.isdigit() for t in texts) else None
    return samples if form in lib.NAMED else None


def form_for(r, samples):
    forms = [f for f in lib.NUMBERED if as_written(f, samples) and (f != "json" or not lib.is_named(samples))]
    return r.choice(forms)


class Chain:
    """A set on its way: where it is, and what its classes are called there."""

    def __init__(self, tool, r, samples):
        form = form_for(r, samples)
        self.tool, self.samples, self.forms = tool, as_written(form, samples), [form]
        self.path = tool.write(form, self.samples)
        self.named = lib.is_named(self.samples) or form == "folder"

    def step(self, r):
        kind = r.randrange(6)
        if kind < 4:
            to = ("mrec", "tar", "tfrecord", "mrec")[kind]
            self.path = self.tool.convert(self.path, to)
        elif kind == 4:
            to, self.named = "export", True
            self.path = self.tool.export(self.path)
        else:
            to, other = "mix", self.path
            self.path = self.tool.name() + ".txt"
            with open(self.path, "w", encoding="utf-8") as out:
                out.write("millrace mix 1\n%d %s\n%d %s\n" % (r.randrange(1, 9), other, r.randrange(1, 9), other))
            self.path = self.tool.convert(self.path, "mrec")
        self.forms.append(to)

    def check(self):
        lib.same(self.tool.classes_of(self.path), self.samples, " > ".join(self.forms))


def draw_side(r, labels, without, many, as_numbers):
    kept = [(shown, label) for shown, label in enumerate(labels) if shown not in without]
    r.shuffle(kept)
    return [(shown, int(label) if as_numbers else label) for _ in range(many) for shown, label in kept]


def one(tool, r):
    """Chains, as a text, and what became of it: right, or refused."""
    count = r.randrange(2, 15)
    labels, numerals = draw_labels(r, count)
    lacks = set(r.sample(range(count), r.choice((0, 0, 1, 2)))) if count > 4 else set()
    swap = numerals and r.random() < 0.5
    first, second = Chain(tool, r, draw_side(r, labels, (), 3, False)), Chain(tool, r, draw_side(r, labels, lacks, 1, swap))
    for chain in (first, second):
        for _ in range(r.randrange(4)):
            chain.step(r)
        chain.check()
    forms = "%s | %s" % (" > ".join(first.forms), " > ".join(second.forms))
    accuracy = tool.train(first.path, second.path)
    if accuracy < 1 - 1e-6:
        raise lib.Wrong("%s: labels %s, without %s: accuracy %g" % (forms, labels, lacks, accuracy))


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("millrace")
    p.add_argument("count", type=int)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--folder", default=lib.temporary("fuzzed"))
    p.add_argument("--only", type=int)
    a = p.parse_args()
    a.millrace, a.folder = lib.absolute(a.millrace), lib.absolute(a.folder)
    right, refused, wrong = 0, {}, []
    for k in range(a.count) if a.only is None else (a.only,):
        lib.fresh(a.folder)
        try:
            one(lib.Tool(a.millrace), random.Random("%d %d" % (a.seed, k)))
            right += 1
        except lib.Refused as e:
            refused[k] = str(e)
        except (lib.Wrong, KeyError, AssertionError) as e:
            wrong.append(k)
            print("set %d of seed %d: %s: %s" % (k, a.seed, type(e).__name__, e), flush=True)
    print("%d sets: %d right, %d refused, %d wrong" % (right + len(refused) + len(wrong), right, len(refused), len(wrong)))
    for k, why in list(refused.items())[:20]:
        print("  refused: set %d: %s" % (k, why[:300]))
    return 1 if wrong or len(refused) > right / 4 else 0


if __name__ == "__main__":
    sys.exit(main())
