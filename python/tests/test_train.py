"""train, evaluate and predict: the command in a process of its own."""
import fcntl
import inspect
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading

import millrace
import pytest
from millrace import _command

# Simulated devices need no oneDNN; their loss means nothing.
SIM = dict(model="mnist-mlp", augment="resize(28x28)", channels=1, batch=20, devices="sim:1,step=1ms", val="none")
REAL = dict(model="mnist-mlp", augment="resize(28x28)", channels=1, batch=20, lr=0.01, seed=3, devices="cpu")


def command(*arguments):
    done = subprocess.run([sys.executable, "-m", "millrace"] + [str(a) for a in arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=300)
    assert done.returncode == 0, done.stderr.decode()
    return [json.loads(line) for line in done.stdout.decode().splitlines()]


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """Ten classes of small grey pictures."""
    folder = str(tmp_path_factory.mktemp("digits") / "digits")
    command("synth", folder, "--count", 12, "--size", 28, "--channels", 1, "--json", "--quiet")
    return folder


@pytest.fixture(scope="module")
def whole(digits, tmp_path_factory):
    """A run of two epochs that nobody disturbed, by the command; skips where there is nothing to train with."""
    folder = str(tmp_path_factory.mktemp("runs") / "whole")
    try:
        millrace.train(digits, max_steps=1, val="none", **REAL)
    except millrace.UnsupportedError as e:
        pytest.skip(str(e))
    lines = command("train", digits, "--model", "mnist-mlp", "--augment", "resize(28x28)", "--channels", 1, "--batch", 20, "--lr", 0.01, "--seed",
                    3, "--devices", "cpu", "--epochs", 2, "--checkpoint", folder, "--json", "--quiet")
    return {"folder": folder, "epochs": [x for x in lines if x["event"] == "epoch"], "end": lines[-1]}


# ---- settings ----

@pytest.mark.parametrize("name", ["train", "eval", "predict"])
def test_options_are_the_commands(name):
    text = subprocess.run([sys.executable, "-m", "millrace", "help", name, "--all"], stdout=subprocess.PIPE, check=True).stdout.decode()
    shown = [line.split()[0][2:].replace("-", "_") for line in text.splitlines() if line.startswith("  --")]
    assert sorted(list(millrace.options(name)) + ["json", "quiet"]) == sorted(shown)
    assert "default 4" in millrace.options(name)["prefetch"]


def test_the_keywords_that_are_written_out_are_options():
    here = [n for n, p in inspect.signature(millrace.train).parameters.items() if p.kind is p.KEYWORD_ONLY and not n.startswith("on_") and n != "progress"]
    assert len(here) >= 9 and set(here) <= set(millrace.options())


@pytest.mark.parametrize("function, name", [(millrace.train, "train"), (millrace.evaluate, "eval"), (millrace.predict, "predict")])
def test_help_describes_every_option(function, name):
    for keyword in millrace.options(name):
        assert re.search(r"(?m)^    (?:\w+, )*%s\b" % keyword, function.__doc__), keyword


@pytest.mark.parametrize("wrong, right", [("batch_size", "batch"), ("learning_rate", "lr"), ("epoch", "epochs"), ("num_workers", "workers"),
                                          ("fp16", "precision='f16'"), ("json", r"options\('train'\)"), ("zzzzzzz", r"options\('train'\)")])
def test_unknown_settings_are_refused_with_the_nearest(wrong, right):
    with pytest.raises(TypeError, match=r"train\(\) has no setting %s; .*%s" % (wrong, right)):
        millrace.train("nowhere", **{wrong: 1})


def words_of(**given):
    return [w.decode() for w in _command.words("train", "train", "d", given)]


def test_values_become_words():
    assert words_of() == ["train", "--json", "--quiet", "--", "d"]
    assert words_of(resume=True, force=False, epochs=None, checkpoint_steps=5, lr=0.1) == [
        "train", "--json", "--quiet", "--resume", "--checkpoint-steps=5", "--lr=0.1", "--", "d"]
    lists = words_of(eval_at=[0.5, 1.25], class_weights=(0.5, 2), take=(0, 0.9), freeze=[0, "2-4"], init_skip=["head"], elastic=(1, 4))
    assert lists[3:-2] == ["--eval-at=0.5/1.25", "--class-weights=0.5/2", "--take=0:0.9", "--freeze=0,2-4", "--init-skip=head", "--elastic=1:4"]
    assert words_of(graph=False, checks=True, prefetch=False)[3:-2] == ["--graph=off", "--checks=on", "--prefetch=off"]


@pytest.mark.parametrize("wrong", [{"resume": 1}, {"resume": "yes"}, {"epochs": object()}, {"exif": True}, {"model": "a\0b"}, {"lr": {}}])
def test_values_of_another_kind(wrong):
    with pytest.raises(millrace.ArgumentError):
        words_of(**wrong)


def libraries():
    with open("/proc/self/maps") as f:
        return {line.split()[-1] for line in f if "dnnl" in line or "gomp" in line}


# ---- the same as the command ----

def test_a_run_is_the_commands(digits, whole, tmp_path):
    steps, epochs, started, reported, before = [], [], [], [], libraries()
    result = millrace.train(digits, epochs=2, checkpoint=tmp_path / "run", on_start=started.append, on_step=steps.append,
                            on_epoch=epochs.append, on_message=reported.append, **REAL)
    assert result.complete and not result.stopped and result.weights == whole["end"]["weights"]
    assert [e["loss"] for e in result.epochs] == [e["loss"] for e in whole["epochs"]] and epochs == result.epochs
    assert [e["val_accuracy"] for e in result.epochs] == [e["val_accuracy"] for e in whole["epochs"]]
    assert (result.loss, result.val_loss) == (result.epochs[1]["loss"], result.epochs[1]["val_loss"])
    assert set(result.epochs[0]["stages"]) == {"read", "decode", "copy"} and "stall_fraction" in result.epochs[0]
    assert [s["updates"] for s in steps] == list(range(1, 13)) and started == [result.start] and result.start["model"] == "mnist-mlp"
    assert os.path.basename(result.checkpoint) == "step-000000000012.mrck" and result.best == str(tmp_path / "run" / "best.mrck")
    assert reported == result.messages and "complete" not in repr(result)
    assert libraries() == before  # oneDNN and OpenMP are the command's


def test_a_stopped_run_goes_on_to_the_same_weights(digits, whole, tmp_path):
    """Stopped after a step, or as soon as possible after the second one; finished here, or by the command."""
    for stop, finish in ("max_steps", "here"), ("max_steps", "there"), ("callback", "here"), ("callback", "there"):
        folder = tmp_path / (stop + finish)
        how = {"max_steps": 3} if stop == "max_steps" else {"on_step": lambda s: s["updates"] < 2}
        part = millrace.train(digits, epochs=2, checkpoint=folder, **how, **REAL)
        assert part.checkpoint and part.stopped == (stop == "callback")
        assert stop == "callback" or os.path.basename(part.checkpoint) == "step-000000000003.mrck"
        if finish == "here":
            end = millrace.train(digits, checkpoint=folder, resume=True).end
        else:
            end = command("train", digits, "--checkpoint", folder, "--resume", "--json", "--quiet")[-1]
        assert end["weights"] == whole["end"]["weights"] and end["complete"]


def test_delayed_updates(digits, whole, tmp_path):
    """The first batch changes no weights before the second one is through; a stopped run goes on to the same weights."""
    def losses(lr=0.1, **more):
        steps = []
        result = millrace.train(digits, epochs=1, optimizer="sgd", on_step=lambda s: steps.append(s["loss"]), **dict(REAL, val="none", lr=lr, **more))
        return steps, result
    initial, _ = losses(lr=1e-30)
    steps, result = losses(sync="delayed")
    assert steps[:2] == initial[:2] and steps[2] != initial[2] and result.start["sync"] == "delayed"
    losses(sync="delayed", checkpoint=tmp_path / "run", max_steps=3)
    with pytest.raises(millrace.Error, match="sync"):
        losses(sync="sync", checkpoint=tmp_path / "run", resume=True)
    rest, resumed = losses(checkpoint=tmp_path / "run", resume=True)
    assert rest == steps[3:] and resumed.weights == result.weights and resumed.start["sync"] == "delayed"


def test_evaluate_and_predict_are_the_commands(digits, whole, tmp_path):
    found = millrace.evaluate(whole["folder"], digits, devices="cpu")
    theirs = command("eval", digits, "--checkpoint", whole["folder"], "--devices", "cpu", "--json")[-1]
    assert found["val_loss"] == theirs["val_loss"] == whole["epochs"][-1]["val_loss"] and found["samples"] == theirs["samples"] == 30
    rows = millrace.predict(whole["folder"], digits, top=2)
    lines = command("predict", digits, "--checkpoint", whole["folder"], "--top", 2, "--json")
    assert rows == [{k: v for k, v in line.items() if k != "event"} for line in lines] and len(rows) == 30 and len(rows[0]["top"]) == 2
    reported = []
    assert millrace.predict(whole["folder"], digits, on_row=reported.append) == [] and [r["class"] for r in reported] == [r["class"] for r in rows]
    done = millrace.predict(whole["folder"], digits, out=tmp_path / "rows.jsonl")
    assert done[0]["samples"] == 30 and len((tmp_path / "rows.jsonl").read_text().splitlines()) == 30
    with pytest.raises(FileExistsError):
        millrace.predict(whole["folder"], digits, out=tmp_path / "rows.jsonl")


def pairs(folder):
    """(bytes, label) of the pictures to train on, in the order of the folder."""
    train = os.path.join(folder, "train")
    out = []
    for label, name in enumerate(sorted(os.listdir(train))):
        for file in sorted(os.listdir(os.path.join(train, name))):
            with open(os.path.join(train, name, file), "rb") as f:
                out.append((f.read(), label))
    return out


def test_an_object_is_trained_on_as_its_records_are(digits, whole, tmp_path):
    samples = pairs(digits)
    millrace.write_records(tmp_path / "same.mrec", samples)
    same = millrace.train(tmp_path / "same.mrec", epochs=2, **REAL)
    part = millrace.train(samples, epochs=2, checkpoint=tmp_path / "run", max_steps=3, **REAL)
    rest = millrace.train(millrace.Live(samples), checkpoint=tmp_path / "run", resume=True)
    assert rest.weights == same.weights
    assert not os.path.exists(part.start["data"])
    held = millrace.evaluate(rest, samples)
    assert held["samples"] == 120 and millrace.train(samples, val=samples, epochs=1, **REAL).val_loss is not None
    with pytest.raises(millrace.ArgumentError, match="cache_records"):
        millrace.train(iter(samples), **REAL)
    with pytest.raises(TypeError, match="nosuch"):
        millrace.train(samples, nosuch=1)


# ---- ends ----

def test_an_epoch_ends_the_run(digits, tmp_path):
    for answer in False, "stop":
        result = millrace.train(digits, epochs=10**6, checkpoint=tmp_path / str(answer), on_epoch=lambda e: answer, **SIM)
        assert result.stopped and not result.complete and result.checkpoint and "not complete" in repr(result)
    np = pytest.importorskip("numpy")
    assert millrace.train(digits, epochs=10**6, on_epoch=lambda e: np.float32(e["epoch"]) < 1, **SIM).stopped
    goes_on = millrace.train(digits, epochs=3, on_epoch=lambda e: None, **SIM)
    assert goes_on.complete and len(goes_on.epochs) == 3 and goes_on.checkpoint is None


def test_an_exception_of_a_callback_ends_the_run(digits, tmp_path):
    def step(event):
        raise ZeroDivisionError("mine")
    with pytest.raises(ZeroDivisionError, match="mine"):
        millrace.train(digits, epochs=10**6, checkpoint=tmp_path / "run", on_step=step, **SIM)
    assert any(n.endswith(".mrck") for n in os.listdir(tmp_path / "run"))
    assert millrace.train(digits, epochs=10**6, checkpoint=tmp_path / "run", resume=True, max_steps=1, devices=SIM["devices"]).end["steps"]


SCRIPT = """
import signal, sys, millrace
signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background it is ignored
seen = []
def step(event):
    if not seen:
        print("step", flush=True)
    seen.append(event)
try:
    millrace.train(sys.argv[1], epochs=10**6, checkpoint=sys.argv[2], on_step=step, **%r)
except KeyboardInterrupt:
    print("interrupted", flush=True)
""" % SIM


def begun(digits, folder):
    """A process that trains, after its first step."""
    child = subprocess.Popen([sys.executable, "-c", SCRIPT, digits, str(folder)], stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"step\n"
    return child


def checkpoints(folder):
    return [n for n in os.listdir(folder) if n.endswith(".mrck")]


def test_ctrl_c_ends_the_run_with_its_checkpoint(digits, tmp_path):
    with begun(digits, tmp_path / "run") as child:
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == b"interrupted\n" and child.wait() == 0
    assert checkpoints(tmp_path / "run")
    with open(tmp_path / "run" / "run.lock", "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # nobody is left


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_run_ends_with_this_process(digits, tmp_path, number):
    with begun(digits, tmp_path / "run") as child, open(tmp_path / "run" / "run.lock", "rb") as lock:
        child.send_signal(number)
        assert child.wait() == -number
        fcntl.flock(lock, fcntl.LOCK_EX)  # until the run has let it go
    assert checkpoints(tmp_path / "run")


def test_in_a_thread(digits):
    out = []
    thread = threading.Thread(target=lambda: out.append(millrace.train(digits, epochs=2, **SIM)))
    thread.start()
    thread.join()
    assert out[0].complete


# ---- errors ----

def test_errors_by_kind(digits, tmp_path):
    with pytest.raises(FileNotFoundError) as e:
        millrace.train(tmp_path / "nothing", **SIM)
    assert isinstance(e.value, millrace.NotFoundError) and e.value.path == str(tmp_path / "nothing") and e.value.errno == 2 and e.value.code == -10
    with pytest.raises(millrace.ArgumentError, match="batch=: expected a whole number, found 'many'"):
        millrace.train(digits, **dict(SIM, batch="many"))
    with pytest.raises(millrace.ArgumentError, match="did you mean 'mnist-mlp'"):
        millrace.train(digits, **dict(SIM, model="mnist-mpl"))
    with pytest.raises(millrace.ArgumentError, match="resume= needs checkpoint="):
        millrace.train(digits, resume=True, **SIM)
    (tmp_path / "bad.mrec").write_bytes(b"\x89MRC\r\n\x1a\n" + bytes(200))
    with pytest.raises(millrace.Error):
        millrace.train(tmp_path / "bad.mrec", **SIM)
    with pytest.raises(millrace.NotFoundError):
        millrace.evaluate(tmp_path / "run", digits)
    with pytest.raises(millrace.ArgumentError, match="has left none"):
        millrace.evaluate(millrace.TrainResult(), digits)


def test_a_folder_of_another_run(digits, tmp_path):
    millrace.train(digits, epochs=1, checkpoint=tmp_path / "run", **SIM)
    with pytest.raises(FileExistsError, match="force= begins a new one"):
        millrace.train(digits, epochs=1, checkpoint=tmp_path / "run", **SIM)
    assert millrace.train(digits, epochs=1, checkpoint=tmp_path / "run", force=True, **SIM).complete


def test_a_damaged_checkpoint_says_where(digits, tmp_path):
    result = millrace.train(digits, epochs=1, checkpoint=tmp_path / "run", **SIM)
    with open(result.checkpoint, "r+b") as f:
        f.seek(300)
        f.write(b"x")
    with pytest.raises(millrace.ChecksumError) as e:
        millrace.evaluate(result.checkpoint, digits)
    assert e.value.path == result.checkpoint and e.value.offset == 0 and "header" in str(e.value)


def test_a_bad_sample_says_which(digits, tmp_path):
    samples = pairs(digits)
    samples[7] = (samples[7][0][:200], samples[7][1])
    millrace.write_records(tmp_path / "bad.mrec", samples)
    with pytest.raises(millrace.BadSampleError) as e:
        millrace.train(tmp_path / "bad.mrec", epochs=1, **SIM)
    assert e.value.sample == 7 and e.value.path == str(tmp_path / "bad.mrec")
    result = millrace.train(tmp_path / "bad.mrec", epochs=1, bad="skip", **SIM)  # exit status 3: done, with a report
    assert result.complete and result.end["bad_met"] == 1


def test_divergence_is_an_error_with_its_result(digits, whole):
    with pytest.raises(millrace.DivergedError, match="diverged") as e:
        millrace.train(digits, epochs=1, **dict(REAL, lr=1000))
    assert e.value.result.end["diverged"] and len(e.value.result.epochs) == 1


def children():
    """Of this thread; a library may have begun some of them, such as multiprocessing's resource tracker."""
    with open("/proc/self/task/%d/children" % threading.get_native_id()) as f:
        return set(map(int, f.read().split()))


def ending(number):
    """A callback that ends the run, the one process that was not there before, by a signal."""
    before = children()

    def end(event):
        run, = children() - before
        os.kill(run, number)
    return end


def test_a_child_that_is_killed_is_an_error(digits, tmp_path):
    with pytest.raises(millrace.Error, match="killed by signal 9"):
        millrace.train(digits, epochs=10**6, on_start=ending(signal.SIGKILL), **SIM)


@pytest.fixture
def unwatched():
    """The system throws away how a child has ended."""
    if not hasattr(os, "waitid"):
        pytest.skip("this interpreter cannot tell")
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGCHLD, before)


def test_where_nobody_knows_how_the_child_ended(digits, tmp_path, unwatched):
    run = millrace.train(digits, epochs=1, checkpoint=tmp_path / "run", **SIM)
    assert run.complete and len(millrace.train(digits, epochs=2, show=True, **SIM).rates) == 3
    assert millrace.evaluate(run, digits, devices=SIM["devices"])["samples"] == 30
    with pytest.raises(millrace.NotFoundError):
        millrace.train(tmp_path / "nothing", **SIM)
    for call in millrace.predict, millrace.evaluate:
        with pytest.raises(millrace.NotFoundError):
            call(tmp_path / "nothing", digits)
    with pytest.raises(millrace.Error, match="how it did is not known: this process ignores SIGCHLD"):
        millrace.train(digits, epochs=10**6, on_start=ending(signal.SIGKILL), **SIM)


def test_where_nobody_knows_whether_all_was_predicted(digits, whole, unwatched):
    with pytest.raises(millrace.Error, match="how it did is not known"):
        millrace.predict(whole["folder"], digits)


def test_stopped_by_somebody_else(digits):
    with pytest.raises(millrace.CanceledError):
        millrace.train(digits, epochs=10**6, on_start=ending(signal.SIGTERM), **SIM)


def test_without_oneDNN_it_says_what_to_install(digits, monkeypatch):
    monkeypatch.setenv("MILLRACE_DNNL_PATH", "libm.so.6")  # a library, but not this one
    try:
        millrace.train(digits, epochs=1, **REAL)
    except millrace.UnsupportedError as e:
        assert "apt install libdnnl" in str(e)
    else:
        assert os.environ.get("MILLRACE_PYTHON_LIBRARIES"), "the command of a wheel has no oneDNN of its own"


@pytest.mark.skipif("MILLRACE_PYTHON_LIBRARIES" in os.environ, reason="the command of a build folder is linked with oneDNN")
def test_a_library_that_oneDNN_lacks_is_named(digits, tmp_path, monkeypatch):
    if not shutil.which("cc"):
        pytest.skip("no compiler")
    source, lost, found = tmp_path / "a.c", tmp_path / "liblost.so.9", tmp_path / "libdnnl.so.3"
    for code, target, needed in ("int lost(void) { return 1; }", lost, []), ("int lost(void); int f(void) { return lost(); }", found, [lost]):
        source.write_text(code)
        subprocess.run(["cc", "-shared", "-fPIC", "-Wl,-soname," + target.name, "-o", target, source] + needed, check=True)
    lost.unlink()
    monkeypatch.setenv("MILLRACE_DNNL_PATH", str(found))
    with pytest.raises(millrace.UnsupportedError, match="cannot be loaded: liblost.so.9.*apt install libgomp1"):
        millrace.train(digits, epochs=1, **REAL)


def test_oneDNN_of_pip_is_pointed_out_to_the_command(tmp_path, monkeypatch):
    monkeypatch.delenv("MILLRACE_DNNL_PATH", raising=False)
    monkeypatch.setattr(_command.sys, "prefix", str(tmp_path / "none"))
    monkeypatch.setattr(_command.site, "getuserbase", lambda: str(tmp_path))
    assert "MILLRACE_DNNL_PATH" not in _command._environment()
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libdnnl.so.3").write_bytes(b"")
    assert _command._environment()["MILLRACE_DNNL_PATH"] == str(tmp_path / "lib")
    assert _command._environment(MILLRACE_DNNL_PATH="/mine")["MILLRACE_DNNL_PATH"] == "/mine"
    monkeypatch.setenv("MILLRACE_DNNL_PATH", "/set")
    assert _command._environment()["MILLRACE_DNNL_PATH"] == "/set"


def test_a_child_that_nobody_runs_is_ended(digits, tmp_path):
    line = _command.words("train", "train", digits, dict(SIM, epochs=10**6, checkpoint=tmp_path / "run"))
    child = _command.Child(line, lambda name, event: False, lambda text: None)
    process = child._process
    assert process.poll() is None
    child.__del__()
    process.communicate()
    assert process.returncode in (143, -signal.SIGTERM)  # in good order, or before it could see to that
