"""millrace.jax and millrace.tensorflow, where those can be imported."""
import millrace
import pytest

np = pytest.importorskip("numpy")


def want(shapes, settings):
    return [(np.asarray(b.images).copy(), b.labels.tolist()) for b in millrace.Loader(shapes, **settings)]


def same(got, expected):
    assert len(got) == len(expected)
    for (x, y), (a, b) in zip(got, expected):
        assert (np.asarray(x) == a).all() and np.asarray(y).tolist() == b


def test_jax(shapes, settings):
    pytest.importorskip("jax")
    import millrace.jax
    loader = millrace.jax.loader(shapes, **settings)
    assert (loader.rank, loader.world) == (0, 1)
    same([(np.array(x), np.array(y)) for x, y in millrace.jax.batches(loader)], want(shapes, settings))


def test_jax_sharding(shapes, settings):
    jax = pytest.importorskip("jax")
    import millrace.jax
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("data",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))
    got = [(np.array(x), np.array(y)) for x, y in millrace.jax.batches(millrace.jax.loader(shapes, **settings), sharding)]
    same(got, want(shapes, settings))


def test_tensorflow(shapes, settings):
    pytest.importorskip("tensorflow")
    import millrace.tensorflow
    same([(x.numpy(), y.numpy()) for x, y in millrace.tensorflow.dataset(millrace.Loader(shapes, **settings))], want(shapes, settings))
    loader = millrace.Loader(shapes, **settings)
    got = []
    for batch in loader:
        x, y = millrace.tensorflow.tensors(batch)
        got.append((x.numpy().copy(), y.numpy().copy()))
        del batch, x, y
    same(got, want(shapes, settings))


def adapters():
    found = []
    for name, function in (("jax", "batches"), ("tensorflow", "dataset")):
        try:
            found.append((name, getattr(__import__("millrace." + name, fromlist=[name]), function)))
        except ImportError:
            continue
    return found or pytest.skip("neither JAX nor TensorFlow is here")


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_normalised(shapes, settings, caplog, dtype):
    """As pixels that are normalised here; a loader of pixels says that it does not."""
    how = dict(settings, augment="resize(24x32),normalise(imagenet)")
    loader = millrace.Loader(shapes, **how)
    mean, std = np.array(loader.mean, "float32"), np.array(loader.std, "float32")
    expected = [(a.astype("float32") - mean) / std for a, _ in want(shapes, how)]
    for name, deliver in adapters():
        got = list(deliver(millrace.Loader(shapes, **how), dtype=dtype))
        for (x, y), a in zip(got, expected):
            assert dtype in str(x.dtype) and np.allclose(np.asarray(x).astype("float32"), a, atol={"float32": 1e-5, "float16": 2e-3, "bfloat16": 2e-2}[dtype])
        assert len(got) == len(expected) and not caplog.records
        x, _ = next(iter(deliver(millrace.Loader(shapes, **dict(settings, augment="resize(24x32)")), dtype=dtype)))
        assert 0 <= float(np.asarray(x).min()) < float(np.asarray(x).max()) <= 1
    if dtype == "float32":
        for name, deliver in adapters():
            caplog.clear()
            next(iter(deliver(millrace.Loader(shapes, **how))))
            assert "say dtype=\"float32\"" in caplog.text
            with pytest.raises(millrace.ArgumentError, match="dtype"):
                next(iter(deliver(millrace.Loader(shapes, **how), dtype="int3")))


def test_fields(tmp_path):
    path, bare = str(tmp_path / "f.mrec"), str(tmp_path / "bare.mrec")
    samples = [dict(image=np.full((8, 8, 3), k, "uint8"), label=k % 3, mask=np.full((8, 8), k, "uint8"), tokens=np.arange(k % 4 + 1, dtype="int32"),
                    caption="no. %d" % k) for k in range(8)]
    millrace.write_records(path, samples)
    millrace.write_records(bare, [dict(label=s["label"], tokens=s["tokens"]) for s in samples])
    for name, deliver in adapters():
        loader = millrace.Loader(path, batch=4, fields=["mask", "tokens", "caption"])
        batches = [(np.array(x), np.array(y), f) for x, y, f in deliver(loader)]
        assert [b[1].tolist() for b in batches] == [[0, 1, 2, 0], [1, 2, 0, 1]]
        for step, (x, _, f) in enumerate(batches):
            assert sorted(f) == ["caption", "mask", "tokens", "tokens.length"]
            assert (np.array(f["mask"])[:, 0, 0] == x[:, 0, 0, 0]).all() and np.array(f["tokens.length"]).tolist() == [1, 2, 3, 4]
            assert np.array(f["tokens"]).tolist() == [[0, 0, 0, 0], [0, 1, 0, 0], [0, 1, 2, 0], [0, 1, 2, 3]]
            texts = f["caption"] if name == "jax" else [t.decode() for t in f["caption"].numpy()]
            assert texts == ["no. %d" % (4 * step + k) for k in range(4)]
        if name == "jax":
            import jax
            sharding = jax.sharding.NamedSharding(jax.sharding.Mesh(np.array(jax.devices()[:1]), ("data",)), jax.sharding.PartitionSpec("data"))
            x, _, f = next(iter(deliver(millrace.Loader(path, batch=4, fields=["mask", "caption"]), sharding, dtype="float32")))
            assert x.dtype == "float32" and f["mask"].sharding == sharding and f["caption"][3] == "no. 3"
        *_, labels, f = next(iter(deliver(millrace.Loader(bare, batch=4, fields=["tokens"]))))
        assert np.array(labels).tolist() == [0, 1, 2, 0] and np.array(f["tokens"]).shape == (4, 4)


def test_mixed(shapes, settings):
    """Adapters hand out a share of each class, not the first label alone."""
    mixes = dict(settings, augment="rrc(32),cutmix(1)", training=True)
    expected = [(np.asarray(b.images).copy(), b.soft_targets(10).tolist()) for b in millrace.Loader(shapes, **mixes)]
    for name, deliver in adapters():
        same([(np.array(x), np.array(y)) for x, y in deliver(millrace.Loader(shapes, **mixes))], expected)


# ---------------------------------------------------------------------- programs that keep their batches

def many(shapes, **more):
    """30 batches: far more than a loader lends by default."""
    return millrace.Loader(shapes, **dict(dict(batch=4, augment="rrc(32),flip", training=True, seed=3, workers=2), **more))


KEEPERS = {"prefetch": lambda ds, tf: ds.prefetch(tf.data.AUTOTUNE), "a long prefetch": lambda ds, tf: ds.prefetch(25),
           "map": lambda ds, tf: ds.map(lambda x, y: (x, y), num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE),
           "cache": lambda ds, tf: ds.cache(), "list": lambda ds, tf: list(ds), "plain": lambda ds, tf: ds}


@pytest.mark.parametrize("keeper", KEEPERS)
def test_tensorflow_keeps_what_it_likes(shapes, keeper):
    tf = pytest.importorskip("tensorflow")
    import millrace.tensorflow
    expected = [(np.asarray(b.images).copy(), b.labels.tolist()) for b in many(shapes)]
    for _ in range(3):
        kept = [(x, y) for x, y in KEEPERS[keeper](millrace.tensorflow.dataset(many(shapes)), tf)]
        same([(x.numpy(), y.numpy()) for x, y in kept], expected)


def test_tensorflow_shuffles(shapes):
    pytest.importorskip("tensorflow")
    import millrace.tensorflow
    got = [y.numpy().tolist() for _, y in millrace.tensorflow.dataset(many(shapes)).shuffle(20)]
    assert sorted(got) == sorted(b.labels.tolist() for b in many(shapes))


def test_jax_keeps_and_donates(shapes):
    """Arrays that are kept stay, and a computation that was given the memory of one may write there."""
    jax = pytest.importorskip("jax")
    import millrace.jax
    expected = [(np.asarray(b.images).copy(), b.labels.tolist()) for b in many(shapes)]
    same(list(millrace.jax.batches(many(shapes))), expected)
    donated = jax.jit(lambda x: x ^ 255, donate_argnums=0)
    same([(donated(x), y) for x, y in millrace.jax.batches(many(shapes))], [(a ^ 255, b) for a, b in expected])
    same([(jax.device_put(x), jax.device_put(y)) for x, y in millrace.jax.batches(many(shapes))], expected)
