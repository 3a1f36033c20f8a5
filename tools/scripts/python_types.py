#!/usr/bin/env python3
"""Write python/millrace/_typed.py and _typed_torch.py: the arguments of loaders and commands, for type checkers and editors; and in
_loader.py the arguments of Loader() that are settings of the library, with their defaults and descriptions.

python_types.py [--check]     --check writes nothing and exits with 1 where a file differs

The names come from where they are defined: settings of a loader from the library's rows, its other arguments from its signature,
options of a command from `millrace help COMMAND --json`. The module `millrace` must be importable, from this tree (PYTHONPATH=python
MILLRACE_PYTHON_LIBRARIES=BUILD) or installed; PyTorch need not be there.
"""
import argparse
import ast
import inspect
import os
import re
import sys
import textwrap

import millrace
from millrace import _arguments, _command, _loader, _settings

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
FOLDER = os.path.join(ROOT, "python", "millrace")
LOADER_ROWS = {**_loader._LOADER, **_loader._DECODE}
# Types with a name of their own.
NAMED = {"order": "SampleOrder", "tail": "Tail", "io": "Io", "bad": "Bad", "split": "Split", "classes": "Classes", "pixels": "Pixels"}
CHOICES = {NAMED[n]: _settings.choices_of(row) for n, row in {**LOADER_ROWS, **_loader._SOURCE}.items() if n in NAMED}
CHOICES["Cache"] = list(_loader._CACHES)
# Arguments of Loader() that have another default than the library, for which None stands.
OPTIONAL = {"order": "None", "epochs": "1"}
CHOICES["Dedup"] = list(_loader._DEDUPS)
# Of DataLoader's arguments, by what _arguments.py takes.
DATA_LOADER = {"batch_sampler": "Any", "num_workers": "int", "prefetch_factor": "Optional[int]", "pin_memory": "bool",
               "generator": "Optional[torch.Generator]", "persistent_workers": "bool", "multiprocessing_context": "Any",
               "worker_init_fn": "Optional[Callable[[int], Any]]", "pin_memory_device": "str", "timeout": "float", "in_order": "bool"}
TYPING = ("Any", "Callable", "Dict", "List", "Literal", "Optional", "Sequence", "Tuple", "Union")
VALUES = {"N": "int", "K": "int", "V": "int", "X": "float", "PART": "float", "DECAY": "float", "FILE": "Path", "DIR": "Path",
          "DATA": "Any", "NAME": "str", "SIZE": "Union[int, str]", "TIME": "Union[float, str]", "[HOST:]PORT": "Union[int, str]", "LIST": "str"}
HEAD = '''"""%s For type checkers, editors, and programs that ask for types of arguments.

Written by tools/scripts/python_types.py."""
from __future__ import annotations

'''


UNPACK = """if TYPE_CHECKING:
    from typing_extensions import Unpack as Unpack
else:
    try:
        from typing import Unpack
    except ImportError:  # before Python 3.11: for who asks, something that takes a type
        Unpack = Optional

"""


def literal(words):
    return "Literal[%s]" % ", ".join('"%s"' % w for w in words)


def of_option(row):
    """The type of the value that a command's option takes in Python."""
    value = row["value"]
    if value is None:
        return "bool"
    words = row.get("choices") or value.split("|")
    fixed = [w for w in words if re.fullmatch(r"[a-z0-9-]+", w)]
    kinds = [VALUES.get(w, "Words") for w in words if w not in fixed]
    if row["default"] == "auto" and "auto" not in fixed:
        fixed.append("auto")
    if fixed and "Words" not in kinds:
        kinds.append(literal(fixed))
    if "on" in fixed or "off" in fixed:
        kinds.append("bool")
    return "Optional[%s]" % (kinds[0] if len(kinds) == 1 else "Union[%s]" % ", ".join(kinds))


def of_function(function, leave=()):
    """Name and annotation of each argument that is given by name."""
    return {name: p.annotation for name, p in inspect.signature(function).parameters.items()
            if name not in ("self", "path") + tuple(leave) and p.kind is not p.VAR_KEYWORD}


def of_torch():
    """The same of millrace.torch.Loader, without importing PyTorch."""
    with open(os.path.join(FOLDER, "torch.py")) as f:
        tree = ast.parse(f.read())
    loader = [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Loader"][0]
    init = [n for n in loader.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"][-1]  # behind its overloads
    return {a.arg: ast.unparse(a.annotation).replace("'", '"') for a in init.args.kwonlyargs}


def typed_dict(name, base, what, members):
    lines = ["class %s(%s):" % (name, base or "TypedDict, total=False"), '    """%s"""' % what]
    if base and members:
        lines[0] = "class %s(%s, total=False):" % (name, base)
    return "\n".join(lines + ["    %s: %s" % m for m in members.items()]) + "\n"


def described(keyword, row):
    """A line of a description, with names as Python has them."""
    help_text = re.sub("--([a-z][a-z-]*)", lambda m: m.group(1).replace("-", "_"), row["help"]).replace("\\", "\\\\")
    text = "%-15s %s%s" % (keyword, help_text, "" if row["default"] is None else " (default %s)" % row["default"])
    return textwrap.fill(text, 133, initial_indent="    ", subsequent_indent=" " * 20, break_on_hyphens=False)


def command(function, name, words):
    explicit = of_function(function)
    rows = {k: r for k, r in _command.settings(words).items() if k not in explicit}
    what = "Options of `millrace %s`, further ones of millrace.%s():\n\n%s" % (
        words, function.__name__, "\n".join(described(k, r) for k, r in rows.items()))
    return typed_dict(name, None, what, {k: of_option(r) for k, r in rows.items()})


def general(_):
    loader = of_function(_loader.Loader.__init__)
    source = {n: a for n, a in of_function(_loader.Source.__init__).items() if n in loader}
    own = {n: loader[n] for n in ("batch", "epochs", "fields")}
    rest = {n: a for n, a in loader.items() if n not in source and n not in own}
    return "\n\n".join([
        HEAD % "Arguments of loaders and commands."
        + "import os\nfrom typing import TYPE_CHECKING, Any, Callable, Dict, Literal, Optional, Sequence, TypedDict, Union\n\n"
          "from ._errors import Error\n\n" + UNPACK
        + "\n".join("%s = %s" % (n, literal(t)) for n, t in CHOICES.items())
        + "\nPath = Union[str, bytes, \"os.PathLike[str]\", \"os.PathLike[bytes]\"]\n"
          "Words = Union[str, float, Sequence[Union[str, float]]]  # a list in place of the command line's separated words\n",
        typed_dict("SourceSettings", None, "The settings of a data set.", source),
        typed_dict("Settings", "SourceSettings", "Arguments of all loaders.", rest),
        typed_dict("LoaderSettings", "Settings", "Arguments of millrace.Loader.", own),
        command(millrace.train, "TrainSettings", "train"), command(millrace.evaluate, "EvalSettings", "eval"),
        command(millrace.predict, "PredictSettings", "predict")]).rstrip() + "\n"


def of_pytorch(_):
    own = {n: a for n, a in of_torch().items() if n not in ("raw", "keys", "fields", "collate_fn")}
    missing = (set(_arguments._TAKEN) | set(_arguments._NEEDLESS)) - set(DATA_LOADER) - {"shuffle"}
    if missing:
        raise SystemExit("python_types.py: say in DATA_LOADER of what type these are: %s" % ", ".join(sorted(missing)))
    names = {n: a for n, a in DATA_LOADER.items() if n not in own}
    classes = [typed_dict("TorchSettings", "Settings", "All but those by which the kind of its batches follows.", own),
               typed_dict("DataLoaderSettings", "TorchSettings", "With the arguments of torch.utils.data.DataLoader.", names)]
    used = [n for n in TYPING if re.search(r"\b%s\b" % n, "".join(classes))]
    return "\n\n".join([HEAD % "Arguments of millrace.torch.Loader." + "from typing import %s\n\nimport torch\n\nfrom ._typed import Settings\n"
                        % ", ".join(used)] + classes).rstrip() + "\n"


# ---- Loader()

# The line of its description after the lines that are written here.
BEHIND = "One thread at a time takes batches; others wait. After fork() a loader is of no use in the child (ForkError); pickled, as by"

def argument(name, row):
    """An argument of Loader() that is a setting: its type, and its default."""
    kind, choices = row.kind.decode(), _settings.choices_of(row)
    text = ("bool" if _settings.is_switch(row) else NAMED.get(name, "") or literal(choices) if kind in ("choice", "either") else
            "Union[str, Sequence[str]]" if kind == "set" else "str" if kind == "text" else "int")
    if name in OPTIONAL:
        return "%s: Optional[%s] = %s" % (name, text, OPTIONAL[name])
    default = _settings.default_of(row)
    return "%s: %s = %s" % (name, text, '"%s"' % default if isinstance(default, str) else default)


def between(text, first, last, lines):
    """The text with other lines from the line that ends with `first` up to the one that is `last`."""
    parts = re.fullmatch(r"(?s)(.*?%s\n)(.*?)(\n?[ ]*%s\n.*)" % (re.escape(first), re.escape(last)), text)
    return parts.group(1) + lines + parts.group(3).lstrip("\n") if parts else None


def of_loader(text):
    """_loader.py with the arguments of Loader() that the rows give, and descriptions of the arguments that it does not describe itself."""
    head = "tools/scripts/python_types.py writes these lines"
    arguments = "".join("                 %s,\n" % argument(n, row) for n, row in LOADER_ROWS.items())
    text = between(text, head, "# end of the rows", arguments)
    doc = text[text.index("    path        a file"):text.index(head + "):\n")]
    described = {n for n in LOADER_ROWS if re.search(r"(?m)^    (?:\w+, )*%s[ ,]" % n, doc)}
    rest = "\n".join(textwrap.fill("%-15s %s" % (n, re.sub("--([a-z-]+)", lambda m: m.group(1).replace("-", "_"), row.help.decode())), 133, initial_indent="    ", subsequent_indent=" " * 20,
                                    break_on_hyphens=False) for n, row in LOADER_ROWS.items() if n not in described)
    return between(text, head + "):", BEHIND, "\n" + rest + "\n\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    a = parser.parse_args()
    differ = []
    for name, make in (("_loader.py", of_loader), ("_typed.py", general), ("_typed_torch.py", of_pytorch)):
        path = os.path.join(FOLDER, name)
        there = open(path).read() if os.path.exists(path) else ""
        text = make(there)
        if text == there:
            continue
        differ.append(name)
        if not a.check:
            with open(path, "w") as f:
                f.write(text)
            if name == "_loader.py":  # the others follow from its signature
                os.execv(sys.executable, [sys.executable] + sys.argv)
    if a.check and differ:
        sys.exit("python/millrace/%s: not what tools/scripts/python_types.py makes of this package; run it" % ", ".join(differ))


if __name__ == "__main__":
    main()
