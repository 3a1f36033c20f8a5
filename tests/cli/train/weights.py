#!/usr/bin/env python3
"""Files of weights, read and made by the standard library alone: what millrace writes is judged by another program.

weights.py list FILE                     names, types and shapes
weights.py same A B                      two files hold the same numbers under the same names
weights.py moved OWN TORCH               OWN (our names) and TORCH (torchvision's names) hold the same numbers, in their layouts
weights.py edit FILE OUT CHANGE...       safetensors with changes: drop=NAME, rename=A:B, shape=NAME:2x3, add=NAME:2x3, type=NAME:F16,
                                         fill=NAME:VALUE
"""
import io
import json
import struct
import sys
import zipfile


def read_npy(data):
    assert data[:6] == b"\x93NUMPY", "no NPY file"
    length = struct.unpack("<H", data[8:10])[0]
    head = eval(data[10:10 + length], {"__builtins__": {}})  # written by the program under test, here alone
    assert head["descr"] == "<f4" and not head["fortran_order"]
    assert (10 + length) % 64 == 0, "elements are not aligned"
    return "F32", list(head["shape"]), data[10 + length:]


def read(path):
    """{name: (type, shape, bytes)} in the order of the file"""
    if path.endswith(".npz"):
        with zipfile.ZipFile(path) as z:
            assert z.testzip() is None
            return {n[:-4]: read_npy(z.read(n)) for n in z.namelist()}
    with open(path, "rb") as f:
        data = f.read()
    length = struct.unpack("<Q", data[:8])[0]
    assert (8 + length) % 8 == 0, "numbers are not aligned"
    head = json.loads(data[8:8 + length])
    meta = head.pop("__metadata__", {})
    assert all(isinstance(v, str) for v in meta.values())
    found, at = {}, 0
    for name, t in sorted(head.items(), key=lambda item: item[1]["data_offsets"]):
        begin, end = t["data_offsets"]
        assert begin == at, f"{name} begins at {begin}, not {at}"
        at = end
        found[name] = (t["dtype"], t["shape"], data[8 + length + begin:8 + length + end])
    assert 8 + length + at == len(data)
    return found


def write(path, tensors):
    head, body = {}, io.BytesIO()
    for name, (kind, shape, data) in tensors.items():
        head[name] = {"dtype": kind, "shape": shape, "data_offsets": [body.tell(), body.tell() + len(data)]}
        body.write(data)
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + body.getvalue())


def count_of(shape):
    n = 1
    for d in shape:
        n *= d
    return n


def edit(tensors, change):
    what, value = change.split("=", 1)
    name, _, rest = value.partition(":")
    if what == "drop":
        del tensors[name]
    elif what == "rename":
        renamed = {rest if n == name else n: t for n, t in tensors.items()}
        tensors.clear()
        tensors.update(renamed)
    elif what in ("shape", "add"):
        shape = [int(d) for d in rest.split("x")] if rest else []
        tensors[name] = ("F32", shape, bytes(4 * count_of(shape)))
    elif what == "type":
        kind, shape, data = tensors[name]
        size = {"F16": 2, "BF16": 2, "F64": 8, "I64": 8, "U8": 1}[rest]
        values = struct.unpack(f"<{len(data) // 4}f", data)
        form = {"F16": "e", "F64": "d"}.get(rest)
        tensors[name] = (rest, shape,
                         struct.pack(f"<{len(values)}{form}", *values) if form else bytes(size * len(values)))
    elif what == "fill":
        kind, shape, data = tensors[name]
        tensors[name] = (kind, shape, struct.pack("<f", float(rest)) * (len(data) // 4))
    else:
        raise SystemExit(f"no such change: {change}")


def moved(own, torch):
    """Our order of tensors is theirs, but for short cuts: compare as sets of (shape, numbers)."""
    def key(kind, shape, data):
        values = struct.unpack(f"<{len(data) // 4}f", data)
        return kind, tuple(shape), values

    def to_torch(kind, shape, data):
        if len(shape) != 4:
            return key(kind, shape, data)
        o, h, w, i = shape
        v = struct.unpack(f"<{len(data) // 4}f", data)
        out = [v[((f * h + y) * w + x) * i + c] for f in range(o) for c in range(i) for y in range(h) for x in range(w)]
        return kind, (o, i, h, w), tuple(out)

    def small(tensors):  # the large ones are the same code, and take this program minutes
        return [t for t in tensors.values() if len(t[2]) < 1 << 20]

    ours = sorted(hash(to_torch(*t)) for t in small(own))
    theirs = sorted(hash(key(*t)) for t in small(torch))
    return ours == theirs and len(own) == len(torch)


def main(argv):
    if argv[0] == "list":
        for name, (kind, shape, _) in read(argv[1]).items():
            print(name, kind, "x".join(map(str, shape)))
    elif argv[0] == "same":
        a, b = read(argv[1]), read(argv[2])
        if a != b:
            raise SystemExit(f"{argv[1]} and {argv[2]} differ: "
                             f"{[n for n in sorted(set(a) | set(b)) if a.get(n) != b.get(n)][:5]}")
    elif argv[0] == "moved":
        if not moved(read(argv[1]), read(argv[2])):
            raise SystemExit(f"{argv[1]} and {argv[2]} do not hold the same numbers")
    elif argv[0] == "edit":
        tensors = read(argv[1])
        for change in argv[3:]:
            edit(tensors, change)
        write(argv[2], tensors)
    else:
        raise SystemExit(__doc__)


main(sys.argv[1:])
