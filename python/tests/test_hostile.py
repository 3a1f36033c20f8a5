"""Processes, threads and signals at the wrong moment."""
import gc
import os
import signal
import subprocess
import sys
import threading

import millrace
import pytest

np = pytest.importorskip("numpy")


def script(text, *arguments, **more):
    """Another interpreter runs it; its output."""
    done = subprocess.run([sys.executable, "-c", text] + list(arguments), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=120, **more)
    return done.returncode, done.stdout.decode()


def threads():
    return len(os.listdir("/proc/self/task"))


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def test_loaders_leave_nothing_behind(shapes, settings):
    """No thread, no descriptor, and of each loader no 64 KiB."""
    def one(take):
        loader = millrace.Loader(shapes, **settings)
        it = iter(loader)
        for _ in range(take):
            next(it)
        if take % 2:
            loader.close()
    for k in range(20):
        one(k % 3)
    gc.collect()
    before = threads(), descriptors()
    size = resident()
    for k in range(250):
        one(k % 3)
    gc.collect()
    assert (threads(), descriptors()) == before
    assert resident() - size < 16 << 20


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_many_batches_take_no_memory(records, settings):
    """Resident size, descriptors and threads after 10,000 batches and after 100,000."""
    with open("/proc/self/maps") as f:
        watched = "libasan" in f.read()  # it keeps freed memory
    loader = millrace.Loader(records, epochs=None, **dict(settings, augment="center(8)", batch=2))
    it, after = iter(loader), {}
    for k in range(1, 100001):
        batch = next(it)
        np.asarray(batch.images), np.asarray(batch.labels)
        del batch
        if k in (10000, 100000):
            after[k] = resident(), descriptors(), threads()
    assert watched or after[100000][0] - after[10000][0] < 4 << 20, after
    assert after[100000][1:] == after[10000][1:], after


def test_two_loaders_at_once(shapes, settings):
    a, b = millrace.Loader(shapes, **settings), millrace.Loader(shapes, **dict(settings, seed=9))
    both = [(x.ids.tolist(), y.ids.tolist()) for x, y in zip(a, b)]
    assert [x for x, _ in both] == [x.ids.tolist() for x in millrace.Loader(shapes, **settings)]
    assert [x for x, _ in both] != [y for _, y in both]


def test_threads_share_a_loader(shapes, settings):
    loader = millrace.Loader(shapes, epochs=8, hold=16, **settings)
    seen, wrong = [], []

    def work(it):
        try:
            for batch in it:
                seen.append((batch.epoch, tuple(batch.ids.tolist())))
                if loader.epoch >= 8:
                    break
        except BaseException as e:
            wrong.append(e)
    several = [threading.Thread(target=work, args=(iter(loader),)) for _ in range(4)]  # one made after the end would begin anew
    for t in several:
        t.start()
    for t in several:
        t.join()
    assert not wrong and len(set(seen)) == len(seen) == 64


def test_closed_while_another_waits(shapes, settings):
    """A thread that waits for a batch gets an error; it does not hang."""
    for _ in range(30):
        loader = millrace.Loader(shapes, epochs=None, **settings)
        begun, result = threading.Event(), []

        def work():
            try:
                for batch in loader:
                    begun.set()
            except millrace.ClosedError as e:
                result.append(e)
        t = threading.Thread(target=work)
        t.start()
        begun.wait()
        loader.close()
        t.join()
        assert len(result) == 1


def test_dropped_in_the_middle(shapes, settings):
    for k in range(4):
        it = iter(millrace.Loader(shapes, **settings))
        kept = [next(it) for _ in range(k)]
        del it
        gc.collect()
        assert [b.step for b in kept] == list(range(k))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork()")
def test_fork(shapes, settings):
    """The child gets an error, keeps its arrays, can use a loader of its own, and ends; the parent goes on."""
    loader = millrace.Loader(shapes, **settings)
    it = iter(loader)
    batch = next(it)
    array, pixels = np.asarray(batch.images), batch.images.tolist()
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 9
        try:
            try:
                next(it)
            except millrace.ForkError as e:
                code = 0 if "spawn" in str(e) else 8
            assert batch.images.tolist() == pixels
            loader.close()
            own = millrace.Loader(shapes, **settings)
            assert sum(len(b) for b in own) == 120
            own.close()
            del batch, array, loader, it
            gc.collect()
            os.write(write, b"done")
        finally:
            os._exit(code)
    os.close(write)
    assert os.read(read, 10) == b"done"
    os.close(read)
    assert os.waitpid(pid, 0)[1] == 0
    assert (np.asarray(batch.images).tolist() == pixels) and next(it).step == 1


def test_spawned_workers(shapes, settings, tmp_path):
    """A loader that multiprocessing sends to another process works there."""
    (tmp_path / "main.py").write_text("""
import multiprocessing, sys, millrace
def work(loader, end):
    end.send([b.ids.tolist() for b in loader])
if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    loader = millrace.Loader(sys.argv[1], batch=16, augment="rrc(32)", training=True, seed=3)
    next(iter(loader))
    mine, theirs = context.Pipe()  # a Queue's lock needs /dev/shm
    p = context.Process(target=work, args=(loader, theirs))
    p.start()
    got = mine.recv()
    p.join()
    print(len(got), p.exitcode)
""")
    done = subprocess.run([sys.executable, str(tmp_path / "main.py"), shapes], stdout=subprocess.PIPE, timeout=120)
    assert done.stdout.decode().split() == ["8", "0"]


def test_alive_at_exit(shapes):
    """Loaders, iterators, arrays and capsules that are still there when the interpreter ends."""
    for _ in range(3):
        assert script("""
import sys, millrace
loader = millrace.Loader(sys.argv[1], batch=16, augment="rrc(32)", training=True, epochs=None)
it = iter(loader)
kept = [next(it) for _ in range(3)]
if sys.implementation.name == "cpython": capsules = [b.images.__dlpack__() for b in kept]
another = iter(millrace.Loader(sys.argv[1], batch=16, augment="rrc(32)", training=True, epochs=None))
print(next(another).step)
""", shapes) == (0, "0\n")


WAITING = """
import os, sys, threading, millrace
main = threading.main_thread().ident
def waits():
    frame = sys._current_frames().get(main)
    while frame:
        if frame.f_code.co_name == "next":
            return True
        frame = frame.f_back
def tell():
    while not waits():
        pass
    os.kill(os.getpid(), 2)
loader = millrace.Loader(sys.argv[1], batch=2000, augment="rrc(256)", training=True, epochs=None, workers=1, hold=1, prefetch=1,
                         tail="pad")
try:
    threading.Thread(target=tell).start()
    for batch in loader:
        pass
    print("went on")
except KeyboardInterrupt:
    print("interrupted")
loader.close()
print("closed")
"""


def test_keyboard_interrupt_while_waiting(shapes):
    code, text = script(WAITING, shapes)
    assert (code, text) == (0, "interrupted\nclosed\n")


SILENT = """
import os, socket, sys, threading, millrace
server = socket.socket()
server.bind(("127.0.0.1", 0))
server.listen()
def accept():
    client, _ = server.accept()
    client.recv(1)                         # it has asked, and will never get an answer
    os.kill(os.getpid(), 2)
    threading.Event().wait()
threading.Thread(target=accept, daemon=True).start()
try:
    millrace.Loader("http://127.0.0.1:%d/x.mrec" % server.getsockname()[1])
except KeyboardInterrupt:
    print("interrupted")
except millrace.UnsupportedError as e:
    print("SKIP", e)
"""


def test_keyboard_interrupt_while_a_server_is_silent(tmp_path):
    """This wait has no end of its own."""
    code, text = script(SILENT, env=dict(os.environ, XDG_CACHE_HOME=str(tmp_path), no_proxy="127.0.0.1"))
    if "SKIP" in text:
        pytest.skip(text)
    assert (code, text) == (0, "interrupted\n")


def test_sub_interpreters_are_refused(shapes):
    code, text = script("""
try:
    import _interpreters as i
    n = i.create("legacy")
    r = i.run_string(n, "import millrace")
    print(r)
except ImportError:
    try:
        import _xxsubinterpreters as i
    except ImportError:
        print("no sub-interpreter")
    else:
        n = i.create(isolated=False) if "isolated" in (i.create.__doc__ or "") else i.create()
        try:
            i.run_string(n, "import millrace")
        except Exception as e:
            print(e)
""")
    if "no sub-interpreter" in text or "ctypes" in text:
        pytest.skip("no sub-interpreters here: " + text[-200:])
    assert "does not work in a sub-interpreter" in text, text


def test_import_is_quick_and_small():
    code, text = script("import sys, millrace; print('numpy' in sys.modules, 'torch' in sys.modules)")
    assert (code, text) == (0, "False False\n")


def test_a_clone_beside_is_not_imported(tmp_path):
    """The parent folder of a clone called millrace on the path."""
    (tmp_path / "millrace").mkdir()
    (tmp_path / "millrace" / "pyproject.toml").write_text("")
    code, text = script("import sys; sys.path.insert(0, sys.argv[1]); import millrace; print(millrace.Loader.__name__)", str(tmp_path))
    assert (code, text) == (0, "Loader\n")
