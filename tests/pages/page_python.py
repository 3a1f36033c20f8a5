"""Runs Python blocks of a page, each with names of its own, and writes one JSON object a block to RESULTS.

usage: page_python.py RESULTS    standard input: {"names": {NAME: VALUE}, "picture": FILE, "blocks": [{"place": ..., "code": ...}]}"""
import json
import os
import shutil
import sys
import traceback

# Packages that a block may need and that a machine of the tests may lack.
OTHERS = ("numpy", "torch", "torchvision", "safetensors", "numba", "jax", "tensorflow", "keras", "datasets", "pyarrow", "onnx",
          "onnxscript")


def run(block, names):
    """What became of a block: ran, skip (the missing package) or failed (the traceback)."""
    try:
        exec(compile(block["code"], block["place"], "exec"), dict(names, __name__="__main__"))
    except ImportError as e:
        package = (getattr(e.__cause__, "name", None) or e.name or "").split(".")[0]
        if package not in OTHERS:
            return {"failed": traceback.format_exc()}
        return {"skip": f"no Python package {package} here"}
    except Exception as e:
        if type(e).__name__ == "UnsupportedError" and "millrace.train(" in block["code"]:
            return {"skip": str(e)}
        return {"failed": traceback.format_exc()}
    return {}


def clear(names):
    """Removes the files that an earlier block made under the names of this one."""
    for name, path in names.items():
        if name == "PHOTOS" or not isinstance(path, str):
            continue
        if os.path.isdir(path):
            shutil.rmtree(path)
        elif os.path.exists(path):
            os.remove(path)


def main():
    task = json.load(sys.stdin)
    names = dict(task["names"])
    with open(task["picture"], "rb") as file:
        names["PICTURE"] = file.read()
    for block in task["blocks"]:
        clear(names)
        with open(sys.argv[1], "a", encoding="utf-8") as results:
            results.write(json.dumps(dict(run(block, names), place=block["place"])) + "\n")


if __name__ == "__main__":
    main()
