"""convert, inspect, verify, digest, decode, and the command."""
import os
import subprocess
import sys

import millrace
import pytest

np = pytest.importorskip("numpy")


def command(*arguments):
    done = subprocess.run([sys.executable, "-m", "millrace"] + [str(a) for a in arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=300)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def one_picture(shapes):
    folder = os.path.join(shapes, sorted(os.listdir(shapes))[0])
    with open(os.path.join(folder, sorted(os.listdir(folder))[0]), "rb") as f:
        return f.read()


def test_inspect(shapes):
    info = millrace.inspect(shapes)
    assert (info["format"], info["count"], info["class_count"]) == ("folder", 120, 10)
    assert info["image"] and info["label"] and len(info["classes"]) == 10 and len(info["fields"]) >= 2


def test_convert_is_the_commands(shapes, tmp_path):
    reported = []
    out = millrace.convert(shapes, tmp_path / "a.mrec", progress=lambda done, count, size: reported.append((done, count)))
    assert (out["records"], out["bad"], out["errors"]) == (120, 0, []) and reported[-1] == (120, 120)
    assert command("convert", shapes, tmp_path / "b.mrec")[0] == 0
    assert (tmp_path / "a.mrec").read_bytes() == (tmp_path / "b.mrec").read_bytes()
    with pytest.raises(FileExistsError):
        millrace.convert(shapes, tmp_path / "a.mrec")
    millrace.convert(shapes, tmp_path / "a.mrec", force=True, store="coef")
    millrace.convert(shapes, tmp_path / "set.tar", kind="tar")
    assert millrace.inspect(tmp_path / "set.tar")["count"] == 120
    with pytest.raises(TypeError, match="shade"):
        millrace.convert(shapes, tmp_path / "c.mrec", shade=1)


def test_missing_space_is_found_before_the_first_byte(tmp_path):
    """Of a sparse file that is larger than the free space; check_space=False writes nevertheless."""
    free = os.statvfs(tmp_path)
    side = 4096
    count = free.f_bavail * free.f_frsize // side**2 + 1024
    with open(tmp_path / "a.npy", "wb") as f:
        head = str({"descr": "|u1", "fortran_order": False, "shape": (count, side, side)}).encode()
        f.write(b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little") + head.ljust(117) + b"\n")
        try:
            f.truncate(128 + count * side**2)
        except OSError as e:
            pytest.skip("a sparse file larger than the free space: %s" % e)
    target = tmp_path / "out" / "a.mrec"
    target.parent.mkdir()
    with pytest.raises(OSError, match="free"):
        millrace.convert(tmp_path / "a.npy", target, store="raw", label_key="none", workers=1)
    assert os.listdir(target.parent) == []

    def progress(done, count, size):
        raise ZeroDivisionError("begun")
    with pytest.raises(ZeroDivisionError, match="begun"):
        millrace.convert(tmp_path / "a.npy", target, store="raw", label_key="none", workers=1, check_space=False, progress=progress)


def test_an_exception_in_progress_ends_it(shapes, tmp_path):
    def progress(done, count, size):
        raise ZeroDivisionError("mine")
    with pytest.raises(ZeroDivisionError, match="mine"):
        millrace.convert(shapes, tmp_path / "a.mrec", progress=progress)
    assert millrace.convert(shapes, tmp_path / "b.mrec", resume=True)["records"] == 120


def test_verify(shapes, records, tmp_path):
    assert millrace.verify(records) == [] and millrace.verify(shapes) == []
    data = bytearray(open(records, "rb").read())
    data[len(data) // 2] ^= 1
    (tmp_path / "bad.mrec").write_bytes(data)
    reported = []
    wrong = millrace.verify(tmp_path / "bad.mrec", on_bad=reported.append)
    assert wrong and isinstance(wrong[0], millrace.FormatError) and wrong == reported
    assert wrong[0].path.endswith("bad.mrec") and wrong[0].offset is not None


def test_digest_is_the_commands(shapes, settings):
    mine = millrace.digest(shapes, batch=16, augment="rrc(32),flip", training=True, seed=3)
    code, text, _ = command("digest", shapes, "--batch", 16, "--augment", "rrc(32),flip", "--training", "--seed", 3, "--split", "auto")
    assert code == 0 and mine in text
    assert millrace.digest(shapes, batch=16, augment="rrc(32),flip", training=True, seed=4) != mine


def test_decode(shapes):
    data = one_picture(shapes)
    whole = np.asarray(millrace.decode(data))
    assert whole.shape == (48, 48, 3)
    part = np.asarray(millrace.decode(data, crop=(5, 7, 20, 10)))
    assert (part == whole[7:17, 5:25]).all()
    assert (np.asarray(millrace.decode(data, crop=(5, 7, 20, 10), flip=True)) == part[:, ::-1]).all()
    assert millrace.decode(data, size=24).shape == (24, 24, 3)
    assert millrace.decode(bytearray(data), size=(8, 9), channels=1).shape == (8, 9, 1)
    assert (np.asarray(millrace.decode(np.frombuffer(data, np.uint8))) == whole).all()
    assert millrace.decode(data).data_ptr % 64 == 0


@pytest.mark.parametrize("pictures", ["jpeg", "png,jpeg", ["jpeg"], ("gif", "jpeg"), "all", None])
def test_kinds_of_pictures_that_are_decoded(shapes, pictures):
    assert millrace.decode(one_picture(shapes), pictures=pictures).shape == (48, 48, 3)
    with millrace.Loader(shapes, batch=4, augment="resize(8)", pictures=pictures) as loader:
        assert len(next(iter(loader)).images.numpy()) == 4


@pytest.mark.parametrize("pictures", ["png", ["png", "webp"]])
def test_kinds_of_pictures_that_are_not_decoded(shapes, pictures):
    with pytest.raises(millrace.Error, match="a JPEG picture, and pictures="):
        millrace.decode(one_picture(shapes), pictures=pictures)
    with pytest.raises(millrace.BadSampleError), millrace.Loader(shapes, batch=4, augment="resize(8)", pictures=pictures) as loader:
        next(iter(loader))


@pytest.mark.parametrize("wrong", ["jpg", "", [], ["all"], "jpeg png"])
def test_kinds_of_pictures_that_do_not_exist(shapes, wrong):
    with pytest.raises(millrace.ArgumentError, match="pictures"):
        millrace.decode(one_picture(shapes), pictures=wrong)


def pictures_of_pillow(image):
    """{name: (bytes, tolerance)}: gray, colour, palette and alpha in formats that other libraries write and read."""
    import io
    draw = np.random.default_rng(7)
    ramp = np.add.outer(np.arange(37), 3 * np.arange(53)).astype(np.uint8)
    colour = np.stack([ramp, ramp[::-1], draw.integers(0, 256, ramp.shape, dtype=np.uint8)], 2)
    alpha = np.dstack([colour, np.full(ramp.shape, 255, np.uint8)])
    kinds = {"gray": image.fromarray(ramp), "colour": image.fromarray(colour), "alpha": image.fromarray(alpha),
             "palette": image.fromarray(colour).quantize(64)}
    ways = [("PNG", {}, "gray colour palette"), ("GIF", {}, "palette gray"), ("GIF", {"interlace": 0}, "palette"), ("BMP", {}, "gray colour palette"),
            ("TIFF", {}, "gray colour palette"), ("TIFF", {"compression": "tiff_lzw"}, "gray colour"),
            ("TIFF", {"compression": "tiff_adobe_deflate"}, "gray colour palette"), ("TIFF", {"compression": "packbits"}, "colour"),
            ("WEBP", {"lossless": True}, "colour alpha"), ("WEBP", {"quality": 80}, "colour")]
    out = {}
    for form, how, names in ways:
        for name in names.split():
            to = io.BytesIO()
            kinds[name].save(to, form, **how)
            out["%s %s %s" % (form, name, how)] = to.getvalue()
    return out


def test_pixels_are_those_of_pillow():
    """All of these formats are decoded without arithmetic of our own, so that the pixels are equal."""
    image = pytest.importorskip("PIL.Image")
    import io
    missing = []
    for name, data in pictures_of_pillow(image).items():
        try:
            ours = np.asarray(millrace.decode(data, channels=3))
        except millrace.Error as e:
            assert "library" in str(e) or "install" in str(e), (name, e)
            missing.append(name)
            continue
        theirs = np.asarray(image.open(io.BytesIO(data)).convert("RGB"))
        assert ours.shape == theirs.shape and (ours == theirs).all(), name
    assert all(name.startswith(("TIFF", "WEBP")) for name in missing)
    if missing:
        pytest.skip("compared without these, whose libraries are missing: %s" % ", ".join(missing))


@pytest.mark.parametrize("wrong, kind", [({"crop": (40, 0, 9, 1)}, millrace.ArgumentError), ({"crop": (0, 0, 0, 1)}, ValueError),
                                         ({"crop": (1, 2, 3)}, ValueError), ({"size": 0}, ValueError),
                                         ({"size": 1 << 30}, millrace.Error), ({"max_pixels": 100}, millrace.LimitError)])
def test_decode_refuses(shapes, wrong, kind):
    with pytest.raises(kind):
        millrace.decode(one_picture(shapes), **wrong)


def test_decode_takes_nothing_on_trust(shapes):
    data = one_picture(shapes)
    for bad in (b"", b"GIF89a", data[:100], data[:-200], data[:2] + os.urandom(200)):
        with pytest.raises(millrace.Error):
            millrace.decode(bad)
    for k in range(0, len(data), 11):  # right or an error, never a crash
        changed = bytearray(data)
        changed[k] ^= 0x55
        try:
            millrace.decode(changed, max_pixels=1_000_000)
        except millrace.Error:
            pass


def test_the_command():
    code, text, _ = command("help")
    assert code == 0 and "convert" in text
    assert command("nonsense")[0] == 2


def test_training_says_what_it_needs(shapes, monkeypatch):
    """Training works with an installed oneDNN, or says what to install."""
    monkeypatch.delenv("MILLRACE_DNNL_PATH", raising=False)
    code, text, wrong = command("train", shapes, "--model", "cifar-cnn", "--augment", "resize(32x32)", "--batch", 60, "--epochs", 1)
    assert code == 0 or ("oneDNN" in wrong and "apt install libdnnl" in wrong), wrong
    print("train: exit status %d %s" % (code, wrong[-300:]))


@pytest.mark.skipif("MILLRACE_PYTHON_LIBRARIES" in os.environ, reason="the wheel's promise; a build folder's library has the trainer")
def test_nothing_of_oneDNN_or_OpenMP_is_loaded():
    text = subprocess.run([sys.executable, "-c", "import millrace; print(open('/proc/self/maps').read())"], stdout=subprocess.PIPE,
                          check=True).stdout.decode()
    assert "libmillrace" in text and "dnnl" not in text and "gomp" not in text


def test_simd_is_on():
    """The widest that this processor has, not plain C."""
    import platform
    from millrace import _library
    used = _library.quick_lib.mr_simd_in_use().decode()
    flags = open("/proc/cpuinfo").read()
    if platform.machine() == "aarch64":
        assert used == "neon"
    else:
        assert used == ("avx512" if "avx512vl" in flags and "avx512bw" in flags else "avx2" if "avx2" in flags else "plain")
