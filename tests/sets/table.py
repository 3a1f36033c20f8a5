"""Every format x every kind of labels x every use of a set: right, or refused; never something else. table.py MILLRACE [FOLDER] [-v]

kinds    zero, one: numbers from 0, from 1; lacks: class 0 is missing in the set that is asked about; trained: in the one trained on;
         gaps: 70, 140, 210; names; numerals: names that are numbers, 12 of them, so that an alphabet has them in another order;
         padded: the same with zeros in front
uses     train: against validation data of other formats; convert: to each format, and from there; export; mix; predict

A cell that must be right is not allowed to be refused."""
import sys

import sets_lib as lib

TWELVE = range(12)
KINDS = {
    "zero": {k: k for k in range(4)},
    "one": {k: k + 1 for k in range(4)},
    "lacks": {k: k for k in range(4)},
    "trained": {k: k for k in range(4)},
    "gaps": {k: 70 * (k + 1) for k in range(3)},
    "names": {k: name for k, name in enumerate(("cat", "Dog", "egret", "\u00e4hre"))},
    "numerals": {k: str(k) for k in TWELVE},
    "padded": {k: "%03d" % k for k in TWELVE},
}


def samples_of(kind, without=None, many=3):
    labels = KINDS[kind]
    return [(shown, label) for _ in range(many) for shown, label in labels.items() if shown != without]


def numbers_of(samples):
    """The same where a format knows numbers alone."""
    return [(shown, int(label)) for shown, label in samples]


def as_written(form, samples):
    """What this format can hold of it, or None."""
    is_number = not isinstance(samples[0][1], str)
    if is_number or (form in lib.NAMED and not (form == "csv" and samples[0][1].isdigit())):  # a table's 007 is 7
        return samples
    return numbers_of(samples) if samples[0][1].isdigit() else None


class Table:
    def __init__(self, millrace, verbose):
        self.tool, self.verbose = lib.Tool(millrace), verbose
        self.cells = self.refused = 0
        self.wrong = []
        self.made = {}

    def cell(self, name, what, must_refuse=False):
        self.cells += 1
        try:
            what()
            verdict = "taken" if must_refuse else None
        except lib.Refused as e:
            self.refused += 1
            verdict = None if must_refuse else "refused: %s" % e
        except (lib.Wrong, KeyError, AssertionError) as e:
            verdict = "%s: %s" % (type(e).__name__, e)
        if verdict:
            self.wrong.append(name)
        if verdict and self.verbose:
            print("%s: %s" % (name, verdict))

    def path(self, form, samples):
        key = form, tuple(samples)
        if key not in self.made:
            self.made[key] = self.tool.write(form, samples)
        return self.made[key]

    # ---- uses
    def train(self, kind, form, val_form):
        here = as_written(form, samples_of(kind, 0 if kind == "trained" else None))
        there = as_written(val_form, samples_of(kind, 0 if kind == "lacks" else None, 1))
        if not here or not there:
            return

        def what():
            if kind == "trained":  # what has no sample to train on cannot be learned: the others are
                right = 3 / 4
            else:
                right = 1
            accuracy = self.tool.train(self.path(form, here), self.path(val_form, there))
            if accuracy < right - 1e-6:
                raise lib.Wrong("accuracy %g" % accuracy)

        named = kind == "trained" and form == "folder"  # its classes are its folders: there is no folder 0
        self.cell("%s: train %s, validate %s" % (kind, form, val_form), what, must_refuse=named)

    def refuse(self, form, val_form):
        """Names against numbers."""
        here, there = as_written(form, samples_of("names")), as_written(val_form, samples_of("zero"))
        if not here or not there or val_form == "folder":
            return
        self.cell("names against numbers: train %s, validate %s" % (form, val_form),
                  lambda: self.tool.train(self.path(form, here), self.path(val_form, there)), must_refuse=True)
        self.cell("numbers against names: train %s, validate %s" % (val_form, form),
                  lambda: self.tool.train(self.path(val_form, there), self.path(form, here)), must_refuse=True)

    def convert(self, kind, form, to):
        samples = as_written(form, samples_of(kind, 0 if kind == "lacks" else None, 1))
        if not samples:
            return

        def what():
            once = self.tool.convert(self.path(form, samples), to)
            lib.same(self.tool.classes_of(once), samples, to)

        self.cell("%s: %s to %s to tar" % (kind, form, to), what)

    def export(self, kind, form):
        samples = as_written(form, samples_of(kind, 0 if kind == "lacks" else None, 1))
        if samples:
            self.cell("%s: export %s" % (kind, form),
                      lambda: lib.same(lib.folder_classes(self.tool.export(self.path(form, samples))), samples, "export"))

    def mix(self, kind, form, other):
        here, there = as_written(form, samples_of(kind, 0)), as_written(other, samples_of(kind))
        if not here or not there:
            return

        def what():
            path = self.tool.name() + ".txt"
            with open(path, "w", encoding="utf-8") as out:
                out.write("millrace mix 1\n1 %s\n1 %s\n" % (self.path(form, here), self.path(other, there)))
            found = self.tool.classes_of(path)
            if isinstance(here[0][1], str) == isinstance(there[0][1], str) or form == "folder" or other == "folder":
                plain = {shown: {str(int(name)) if name.isdigit() else name for name in names} for shown, names in found.items()}
                wanted = {shown: {str(int(label)) if str(label).isdigit() else label} for shown, label in there}
                if plain != wanted:
                    raise lib.Wrong("expected %s, found %s" % (wanted, plain))
            else:
                lib.same(found, numbers_of(there), "mix")

        self.cell("%s: mix %s, %s" % (kind, form, other), what)

    def predict(self, kind, form):
        here = samples_of(kind)
        there = as_written(form, samples_of(kind, 0 if kind == "lacks" else None, 1))
        first = as_written("tar", here)
        if not there:
            return

        def what():
            run = "run-" + kind
            if run not in self.made:
                self.made[run] = self.tool.train(self.path("tar", first), self.path("tar", first), "--checkpoint", run)
            rows = self.tool.predict(self.path(form, there), run)
            if len(rows) != len(there) or any(not label or int_or(label) != int_or(said) for label, said in rows):
                raise lib.Wrong("rows %s" % rows[:4])
            wanted = sorted(str(int_or(label)) for _, label in there)
            if sorted(str(int_or(label)) for label, _ in rows) != wanted:
                raise lib.Wrong("labels %s" % rows[:4])

        self.cell("%s: predict %s" % (kind, form), what)

    def all(self):
        for kind in KINDS:
            for form in lib.NUMBERED:
                for val_form in ("tar", "csv", "folder", "mrec"):
                    self.train(kind, form, val_form)
                for to in ("mrec", "tfrecord", "tar"):
                    self.convert(kind, form, to)
                self.export(kind, form)
                self.mix(kind, form, "tar")
                self.mix(kind, form, "folder" if form != "folder" else "mrec")
                self.predict(kind, form)
        for form in lib.NAMED:
            for val_form in lib.NUMBERED:
                self.refuse(form, val_form)
        texts = lib.write_json(self.tool.name(), samples_of("names"))
        self.cell("names: json", lambda: self.tool.train(texts, texts), must_refuse=True)


def int_or(text):
    return int(text) if str(text).isdigit() else text


def main():
    arguments = [a for a in sys.argv[1:] if a != "-v"]
    table = Table(lib.absolute(arguments[0]), "-v" in sys.argv)
    lib.fresh(arguments[1] if len(arguments) > 1 else lib.temporary("sets"))
    table.all()
    print("%d cells: %d right, %d of them refused by name, %d wrong" % (table.cells, table.cells - len(table.wrong), table.refused,
                                                                        len(table.wrong)))
    for name in table.wrong[:40] if not table.verbose else ():
        print("wrong: " + name)
    assert table.cells >= 300, table.cells
    return 1 if table.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
