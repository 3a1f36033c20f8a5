"""Data of Python's own, kept as a record file."""
import os
import subprocess
import sys
import threading

import millrace
import pytest

np = pytest.importorskip("numpy")


class Pets:
    """Like a data set of PyTorch: no __iter__, and no IndexError at its end."""

    def __init__(self, count=30, add=0):
        self.count, self.add, self.asked, self.threads = count, add, [], set()

    def __len__(self):
        return self.count

    def __getitem__(self, k):
        self.asked.append(k)
        self.threads.add(threading.get_ident())
        return np.full((4, 4, 3), k + self.add, np.uint8), k % 3


def pixels(path, **more):
    loader = millrace.Loader(path, batch=7, order="sequential", **more)
    return [(p.tolist()[0][0][0], y) for b in loader for p, y in zip(b.images.numpy(), b.labels.tolist())]


def test_of_this_process(tmp_path):
    """Asked for once, in order, in this thread; the file goes with the process."""
    pets = Pets()
    path = millrace.cache_records(pets, tmp_path / "new")
    assert pixels(path) == [(k, k % 3) for k in range(30)]
    assert pets.asked == list(range(30)) and pets.threads == {threading.get_ident()}
    other = millrace.cache_records((s for s in [(np.zeros((1, 1, 3), np.uint8), 1)]), tmp_path, classes=["a", "b"])
    assert other != path and millrace.Loader(other, batch=1).classes == ["a", "b"]
    text = ("import millrace, os, sys\npath = millrace.cache_records([{'label': 1}], sys.argv[1])\nassert os.path.exists(path)\n"
            "print(path)\nif os.fork() == 0:\n    sys.exit(0)\nos.wait()\nassert os.path.exists(path)")
    folder = tmp_path / "other"
    done = subprocess.run([sys.executable, "-c", text, str(folder)], stdout=subprocess.PIPE, check=True)
    assert done.stdout.decode().startswith(str(folder)) and os.listdir(folder) == []


def test_kept_by_key(tmp_path):
    first, second, third = Pets(), Pets(add=100), Pets(add=100)
    path = millrace.cache_records(first, tmp_path, key="pets 1")
    assert millrace.cache_records(second, tmp_path, key="pets 1") == path and second.asked == []
    assert pixels(path)[0] == (0, 0)
    other = millrace.cache_records(third, tmp_path, key="pets 2")
    assert other != path and pixels(other)[0] == (100, 0)
    schema = {"image": "image", "label": "int"}
    assert millrace.cache_records(Pets(), tmp_path, key="pets 1", schema=schema) not in (path, other)
    assert millrace.cache_records(Pets(), tmp_path, key="pets 1", classes=["a", "b", "c"]) not in (path, other)
    assert len(os.listdir(tmp_path)) == 4 and all(n.endswith(".mrec") for n in os.listdir(tmp_path))
    with pytest.raises(millrace.ArgumentError, match="has 30 samples, and the data have 31: give another key"):
        millrace.cache_records(Pets(31), tmp_path, key="pets 1")


def test_where_it_goes_by_default(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert millrace.cache_records(Pets(), key="x").startswith(str(tmp_path / "millrace" / "records"))
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert millrace.cache_records(Pets(), key="x").startswith(str(tmp_path / "home" / ".cache" / "millrace" / "records"))


def test_an_exception_leaves_nothing(tmp_path):
    class Fails(Pets):
        def __getitem__(self, k):
            if k == 5:
                raise KeyError("mine")
            return super().__getitem__(k)
    for key in (None, "x"):
        with pytest.raises(KeyError, match="mine"):
            millrace.cache_records(Fails(), tmp_path, key=key)
        assert [n for n in os.listdir(tmp_path) if not n.endswith(".lock")] == []
    assert pixels(millrace.cache_records(Pets(), tmp_path, key="x"))[29] == (29, 2)


def test_several_processes_write_it_once(tmp_path):
    """Whoever comes when: one of them asks for the data, and all have the same file."""
    text = """if True:
    import os, sys, millrace
    class Data:
        def __len__(self): return 3
        def __getitem__(self, k):
            open(os.path.join(sys.argv[1], "asked-%d-%d" % (os.getpid(), k)), "w").close()
            if k == 0:
                sys.stdout.write("writes\\n")
                sys.stdout.flush()
                sys.stdin.read(1)
            return {"label": k}
    print(millrace.cache_records(Data(), sys.argv[2], key="x"))
    """
    asked, kept = tmp_path / "asked", tmp_path / "kept"
    asked.mkdir()
    gate, opener = os.pipe()
    runs = [subprocess.Popen([sys.executable, "-c", text, str(asked), str(kept)], stdin=gate, stdout=subprocess.PIPE) for _ in range(3)]
    os.write(opener, b"x")
    os.close(opener)
    out = [r.communicate(timeout=120)[0].decode().splitlines() for r in runs]
    os.close(gate)
    assert [r.returncode for r in runs] == [0, 0, 0]
    assert sorted(len(lines) for lines in out) == [1, 1, 2] and len({lines[-1] for lines in out}) == 1
    assert len(os.listdir(asked)) == 3 and os.listdir(kept) == [os.path.basename(out[0][-1])]


def test_what_it_is_not_for(tmp_path):
    with pytest.raises(millrace.ArgumentError, match="a path"):
        millrace.cache_records(str(tmp_path))
    with pytest.raises(millrace.ArgumentError, match="key=3"):
        millrace.cache_records(Pets(), tmp_path, key=3)
    with pytest.raises(millrace.ArgumentError, match="found generator.*cache_records"):
        millrace.Loader((k for k in ()), batch=2)
