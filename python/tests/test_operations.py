"""Operations of one's own in the augmentation."""
import ctypes
import gc
import os
import pickle
import subprocess
import sys
import threading
import weakref

import millrace
import pytest
from drained import drain

np = pytest.importorskip("numpy")

SPEC = "rrc(32),my_noise(2),flip"


def noise(pixels, arguments, draws):
    a = np.asarray(pixels)
    a[:] = a + draws.numpy().integers(0, 9, a.shape, "uint8") + np.uint8(arguments[0])


def script(text, *arguments):
    """Another interpreter runs it; its output."""
    done = subprocess.run([sys.executable, "-c", text] + list(arguments), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
    return done.returncode, done.stdout.decode()


def noisy(settings, **more):
    return dict(settings, augment=SPEC, operations={"my_noise": noise}, **more)


@pytest.mark.parametrize("more", [{"workers": 1}, {"workers": 5}, {"prefetch": 0}, {"hold": 1, "prefetch": 1}, {"cache": "memory"}])
def test_the_same_whoever_runs_it(shapes, settings, more):
    want = drain(millrace.Loader(shapes, epochs=2, **noisy(settings)))
    assert drain(millrace.Loader(shapes, epochs=2, **noisy(dict(settings, **more)))) == want
    without = drain(millrace.Loader(shapes, epochs=2, **dict(settings, augment="rrc(32),flip")))
    assert [w[:4] for w in without] == [w[:4] for w in want] and all(a[4] != b[4] for a, b in zip(without, want))


def test_what_it_gets(shapes, settings):
    seen, threads = {}, set()

    def look(pixels, arguments, draws):
        assert pixels.shape == (8, 9, 3) and pixels.format == "B" and not pixels.readonly and np.asarray(pixels).flags.writeable
        assert arguments == (3.0, -0.5) and draws.training
        threads.add(threading.get_ident())
        words = [draws.word() for _ in range(40)]  # also after the words that come with the picture
        again = millrace.Draws(draws._picture)
        assert all(0 <= w < 2**32 for w in words) and [again.word() for _ in range(40)] == words and len(set(words)) > 35
        again = millrace.Draws(draws._picture)
        assert again.random() == words[0] / 2**32 and again.uniform(-1, 3) == -1 + 4 * words[1] / 2**32
        assert again.integer(10) == words[2] * 10 >> 32 and again.happens(1.0) and not again.happens(0.0)
        assert draws.numpy().random() == draws.numpy().random()
        assert seen.setdefault((draws.sample, draws.key), words) == words
    loader = millrace.Loader(shapes, epochs=2, **dict(settings, augment="resize(8x9),my_look(3,-0.5)", operations={"my_look": look}))
    assert loader.augment.endswith(",my_look(3,-0.5)")
    drain(loader)
    assert len(seen) == 240 and len({key for _, key in seen}) == 240  # other draws for each sample and epoch
    assert len(threads) == 1 and threads != {threading.get_ident()}


def test_evaluation_and_arguments(shapes, settings):
    calls = []

    def count(pixels, arguments, draws):
        calls.append(draws.training)
    settings.update(augment="resize(8x8),my_count", training=False)
    drain(millrace.Loader(shapes, operations={"my_count": count}, **settings))
    assert calls == []
    drain(millrace.Loader(shapes, operations={"my_count": millrace.Operation(count, evaluation=True)}, **settings))
    assert calls == [False] * 120
    for arguments, text in ((2, r"expected my_count\(A,B\)"), ((1, 3), r"my_count\(A\[,B\[,C\]\]\)")):
        with pytest.raises(millrace.ArgumentError, match=text):
            millrace.Loader(shapes, operations={"my_count": millrace.Operation(count, arguments)}, **settings)


def test_state(shapes, settings):
    make = lambda **more: millrace.Loader(shapes, epochs=2, **noisy(settings, **more))  # noqa: E731
    loader = make()
    want = drain(make())
    assert drain(loader, 5) == want[:5]
    again = pickle.loads(pickle.dumps(loader))  # the function goes along by its name
    again.load_state_dict(loader.state_dict())
    assert drain(again) == want[5:]
    loader.seek(0, 2)
    assert drain(loader) == want[2:]
    for spec in ("rrc(32),my_noise(3),flip", "rrc(32),my_other(2),flip"):
        other = millrace.Loader(shapes, epochs=2, **dict(settings, augment=spec, operations={"my_noise": noise, "my_other": noise}))
        with pytest.raises(millrace.StateError, match="another order, tail or augmentation"):
            other.load_state_dict(loader.state_dict())
    parts = [drain(make(rank=r, world=2)) for r in range(2)]
    assert [a[2] + b[2] for a, b in zip(*parts)] == [w[2] for w in want]
    assert [a[4] + b[4] for a, b in zip(*parts)] == [w[4] for w in want]


def test_a_dict_that_changes_later(shapes, settings):
    given = {"my_noise": noise}
    loader = millrace.Loader(shapes, **dict(settings, augment=SPEC, operations=given))
    want = drain(millrace.Loader(shapes, **noisy(settings)))
    given.clear()
    assert drain(pickle.loads(pickle.dumps(loader))) == drain(loader) == want


def test_beside_a_live_source_and_in_a_digest(shapes, settings):
    rng = np.random.default_rng(0)
    rows = [(rng.integers(0, 256, (40, 40, 3), "uint8"), k % 3) for k in range(50)]
    settings = noisy(settings)
    assert millrace.digest(rows, **dict(settings, workers=1)) == millrace.digest(rows, **dict(settings, workers=4))
    assert millrace.digest(rows, **settings) != millrace.digest(rows, **dict(settings, seed=4))


def test_two_loaders_have_two_functions(shapes, settings):
    def filler(value):
        def fill(pixels, arguments, draws):
            np.asarray(pixels)[:] = value
        return fill
    settings["augment"] = "resize(8x8),my_fill"
    for a, b in zip(*(millrace.Loader(shapes, operations={"my_fill": filler(v)}, **settings) for v in (7, 200))):
        assert (a.images.numpy() == 7).all() and (b.images.numpy() == 200).all()


def test_what_a_function_keeps_stays(shapes, settings):
    kept = []

    def keep(pixels, arguments, draws):
        a = np.asarray(pixels)
        a[:] = len(kept) % 256
        kept.append(a)
    drain(millrace.Loader(shapes, **dict(settings, augment="resize(8x8),my_keep", operations={"my_keep": keep})))
    gc.collect()
    assert len(kept) == 120 and all((a == k % 256).all() for k, a in enumerate(kept))


# ---- C functions ----

CHANGE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(millrace.OwnPicture), ctypes.POINTER(ctypes.c_uint8),
                          ctypes.c_void_p)


@CHANGE
def half(context, about, pixels, err):
    p = about.contents
    if context:
        return context - 100
    assert p.struct_size == ctypes.sizeof(millrace.OwnPicture) and p.arguments[0] == 128.0 and p.argument_count == 1
    ctypes.memset(pixels, int(p.arguments[0]), p.height * p.width * p.channels)
    return 0


@pytest.mark.parametrize("given", [half, ctypes.cast(half, ctypes.c_void_p).value, millrace.Operation(half, 1)], ids=["ctypes", "address",
                                                                                                                     "row"])
def test_a_c_function(shapes, settings, given):
    settings.update(augment="resize(8x8),my_half(128)", operations={"my_half": given})
    before = threading.active_count()
    loader = millrace.Loader(shapes, **settings)
    assert threading.active_count() <= before  # none of Python for it; one of an earlier test may end
    for batch in loader:
        assert (batch.images.numpy() == 128).all()
    with pytest.raises(millrace.Error, match="'my_half': the address of a C function means nothing in another process"):
        pickle.dumps(loader)


def test_a_c_function_stays_as_long_as_its_loader(shapes, settings):
    def fill(context, about, pixels, err):
        p = about.contents
        ctypes.memset(pixels, 7, p.height * p.width * p.channels)
        return 0
    given = {"my_fill": CHANGE(fill), "my_other": millrace.Operation(CHANGE(fill))}
    kept = [weakref.ref(given["my_fill"]), weakref.ref(given["my_other"].function)]
    loader = millrace.Loader(shapes, **dict(settings, augment="resize(8x8),my_fill,my_other", operations=given))
    given.clear()
    gc.collect()
    assert all(f() for f in kept) and (next(iter(loader)).images.numpy() == 7).all()
    del loader
    gc.collect()
    assert not any(f() for f in kept)


def test_a_c_function_fails(shapes, settings):
    settings.update(augment="resize(8x8),my_half(128)")
    with pytest.raises(millrace.ArgumentError, match="operation my_half failed, and did not say why"):
        drain(millrace.Loader(shapes, operations={"my_half": millrace.Operation(half, 1, context=95)}, **settings))
    with pytest.raises(millrace.BadSampleError, match="operation my_half"):
        drain(millrace.Loader(shapes, operations={"my_half": millrace.Operation(half, 1, context=93)}, **settings))


def test_numba(shapes, settings):
    numba = pytest.importorskip("numba")
    t = numba.types

    @numba.cfunc(t.int32(t.voidptr, t.CPointer(numba.from_dtype(np.dtype(millrace.OwnPicture))), t.CPointer(t.uint8), t.voidptr))
    def salt(context, about, pixels, err):
        p = numba.carray(about, 1)[0]
        a = numba.carray(pixels, (p.height, p.width, p.channels))
        np.random.seed(p.key & 0xffffffff)
        for y in range(p.height):
            for x in range(p.width):
                if np.random.random() < p.arguments[0]:
                    a[y, x, :] = p.draws[0] & 255
        return 0

    def make(part, **more):
        spec = "rrc(32),my_salt(%s),flip" % part
        return millrace.Loader(shapes, **dict(settings, augment=spec, operations={"my_salt": salt}, **more))
    want = drain(make(0.5, workers=1))
    assert drain(make(0.5, workers=4)) == want
    for (_, _, _, _, now), (_, _, _, _, plain) in zip(want, drain(make(0))):
        same = np.mean(np.frombuffer(now, np.uint8).reshape(-1, 3) == np.frombuffer(plain, np.uint8).reshape(-1, 3))
        assert 0.45 < same < 0.56


# ---- what goes wrong ----

class Fails:
    def __init__(self, sample, what):
        self.sample, self.what, self.calls = sample, what, 0

    def __call__(self, pixels, arguments, draws):
        self.calls += 1
        if draws.sample == self.sample:
            if isinstance(self.what, BaseException):
                raise self.what
            return self.what


@pytest.mark.parametrize("more", [{}, {"prefetch": 0}, {"cache": "memory"}])
@pytest.mark.parametrize("what", [KeyError("mine"), MemoryError("mine"), SystemExit("mine"), StopIteration("mine")])
def test_an_exception_is_the_cause(shapes, settings, more, what):
    settings.update(more, augment="my_fail,rrc(32)", operations={"my_fail": Fails(77, what)}, bad="skip")
    loader = millrace.Loader(shapes, **settings)
    with pytest.raises(millrace.OperationError, match="operation my_fail: %s: .?mine" % type(what).__name__) as caught:
        drain(loader)
    e = caught.value
    assert e.__cause__ is what and e.sample == 77 and os.path.exists(e.path) and e.path in str(e)
    with pytest.raises(millrace.Error):  # it stays at its end
        next(iter(loader))
    loader.close()
    settings.pop("cache", None)
    with pytest.raises(millrace.OperationError, match="operation my_fail") as caught:
        millrace.digest(shapes, **settings)
    assert caught.value.__cause__ is what


class Mute(Exception):
    def __str__(self):
        raise ValueError("no text")


class MuteAndDamaged(Mute, millrace.BadSampleError):
    pass


def test_an_exception_that_cannot_say_what_it_is(shapes, settings):
    settings.update(augment="resize(8x8),my_fail", operations={"my_fail": Fails(77, Mute())})
    with pytest.raises(millrace.OperationError, match="Mute: .its __str__ raised ValueError") as caught:
        drain(millrace.Loader(shapes, **settings))
    assert isinstance(caught.value.__cause__, Mute)
    settings.update(operations={"my_fail": Fails(77, MuteAndDamaged())})
    with pytest.raises(millrace.BadSampleError, match="sample 77: .*its __str__ raised ValueError"):
        drain(millrace.Loader(shapes, **settings))


def test_what_it_returns(shapes, settings):
    settings.update(augment="resize(8x8),my_fail", operations={"my_fail": Fails(77, np.zeros(3))})
    with pytest.raises(millrace.OperationError, match="it returned ndarray: expected None, and the pixels changed where they are"):
        drain(millrace.Loader(shapes, **settings))


def test_a_damaged_sample(shapes, settings):
    """BadSampleError and FormatError say so; it is reported, and passed over as `bad` says."""
    for what in (millrace.BadSampleError("too dark"), millrace.FormatError("too dark")):
        settings.update(augment="resize(8x8),my_fail", operations={"my_fail": Fails(77, what)})
        with pytest.raises(millrace.BadSampleError, match="sample 77: .*operation my_fail: too dark"):
            drain(millrace.Loader(shapes, **settings))
        seen = []
        loader = millrace.Loader(shapes, bad="skip", on_bad=lambda e, other: seen.append(e), **settings)
        assert sum((b[3] for b in drain(loader)), []).count(-1) == 1 and len(seen) == 1 and seen[0].sample == 77


@pytest.mark.parametrize("operations, text", [
    ([noise], "found list, expected {name: function}"), ({3: noise}, "found 3, expected the name"),
    ({"a\0b": noise}, "expected the name"), ({"my_noise": 0}, "'my_noise': an address of 0"), ({"my_noise": -1}, "an address of -1"),
    ({"my_noise": "noise"}, "'my_noise': found str, expected a function"), ({"my_noise": None}, "found NoneType, expected a function"),
    ({"my_noise": True}, "found bool"), ({"Noise": noise}, "expected a name of a-z, 0-9 and _"), ({"": noise}, "expected a name"),
    ({"flip": noise}, "there is an operation of that name"), ({"cifar": noise}, "there is a preset of that name"),
    ({"my_nois": noise}, "unknown; the program's own operations are my_nois, others rrc"), ({}, "unknown; operations are rrc")])
def test_what_is_refused(shapes, settings, operations, text):
    with pytest.raises(millrace.ArgumentError, match=text):
        millrace.Loader(shapes, **dict(settings, augment=SPEC, operations=operations))


def test_settings_that_cannot_be():
    for wrong in (9, (3, 2), (-1, 2), "2", (1, 2, 3), None, 1.5, (1.5, 2)):
        with pytest.raises(millrace.ArgumentError, match="arguments="):
            millrace.Operation(noise, wrong)
    with pytest.raises(millrace.ArgumentError, match="context=: of a C function"):
        millrace.Operation(noise, context=3)


def operation_threads():
    return [t for t in threading.enumerate() if t.name == "millrace operations"]


def test_closed_while_a_function_is_in_it(shapes, settings):
    """Closing waits for none, and a thread that waits for a batch gets an error."""
    gate, inside, result = threading.Event(), threading.Event(), []

    def slow(pixels, arguments, draws):
        inside.set()
        gate.wait()
        np.asarray(pixels)[:] = 1  # nobody's memory but its own
    before = operation_threads()
    settings.update(augment="resize(8x8),my_slow", operations={"my_slow": slow})
    loader = millrace.Loader(shapes, **settings)

    def work():
        try:
            drain(loader)
        except millrace.ClosedError as e:
            result.append(e)
    waits = threading.Thread(target=work)
    waits.start()
    assert inside.wait(60)
    loader.close()
    waits.join(60)
    assert len(result) == 1
    gate.set()
    for t in operation_threads():
        if t not in before:
            t.join(60)
            assert not t.is_alive()


def test_dropped_and_moved_in_the_middle(shapes, settings):
    before = set(operation_threads())
    for take in range(1, 8):
        loader = millrace.Loader(shapes, epochs=None, **noisy(settings))
        want = drain(loader, take)
        loader.seek(0, 0)
        assert drain(loader, take) == want
        if take % 2:
            loader.close()
        del loader
    gc.collect()
    for t in set(operation_threads()) - before:
        t.join(60)
        assert not t.is_alive()


INTERRUPTED = """
import os, sys, threading, millrace
gate, main = threading.Event(), threading.main_thread().ident

def awaited():
    frame = sys._current_frames().get(main)
    while frame:
        if frame.f_code.co_name == "next":
            return True
        frame = frame.f_back

def slow(pixels, arguments, draws):
    if gate.is_set():
        return
    while not awaited():
        pass
    os.kill(os.getpid(), 2)
    gate.wait()

loader = millrace.Loader(sys.argv[1], batch=16, augment="resize(8x8),my_slow", training=True, operations={"my_slow": slow})
try:
    for batch in loader:
        pass
    print("went on")
except KeyboardInterrupt:
    print("interrupted")
gate.set()
print(sum(len(batch) for batch in loader))
"""


def test_an_interrupt_while_a_function_is_in_it(shapes):
    """It comes through to whoever waits, and the loader goes on where it was."""
    assert script(INTERRUPTED, shapes) == (0, "interrupted\n120\n")


def test_alive_at_exit(shapes):
    """A function that is in it, and will not return, when the interpreter ends."""
    assert script("""
import sys, threading, millrace
inside = threading.Event()
def slow(pixels, arguments, draws):
    inside.set()
    threading.Event().wait()
loader = millrace.Loader(sys.argv[1], batch=16, augment="resize(8x8),my_slow", training=True, operations={"my_slow": slow})
def waits():
    try:
        next(iter(loader))
    except millrace.ClosedError:
        pass
threading.Thread(target=waits, daemon=True).start()
inside.wait()
print("end")
""", shapes) == (0, "end\n")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork()")
def test_fork(shapes, settings):
    """In a child the loader is refused, goes away without harm, and another one works; the parent's goes on."""
    loader = millrace.Loader(shapes, epochs=2, **noisy(settings))
    want = drain(millrace.Loader(shapes, epochs=2, **noisy(settings)))
    got = drain(loader, 2)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            next(iter(loader))
        except millrace.ForkError:
            loader.close()
            loader._operations.__del__()  # its thread seems to wait here for ever
            del loader
            gc.collect()
            code = 0 if drain(millrace.Loader(shapes, epochs=2, **noisy(settings))) == want else 2
        finally:
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0
    assert got + drain(loader) == want


def test_torch(shapes, settings):
    pytest.importorskip("torch")
    import millrace.torch as mt

    def black(pixels, arguments, draws):
        np.asarray(pixels)[:] = 0
    settings.pop("batch")
    settings.update(augment="resize(8x8),my_black,normalise(none)", operations={"my_black": black})
    for images, target in mt.Loader(shapes, batch_size=16, **settings):
        assert float(images.abs().max()) == 0.0
