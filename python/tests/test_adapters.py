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


def test_mixed(shapes, settings):
    """Adapters hand out a share of each class, not the first label alone."""
    mixes = dict(settings, augment="rrc(32),cutmix(1)", training=True)
    expected = [(np.asarray(b.images).copy(), b.soft_targets(10).tolist()) for b in millrace.Loader(shapes, **mixes)]
    have = 0
    for name in ("jax", "tensorflow"):
        try:
            adapter = __import__("millrace." + name, fromlist=[name])
        except ImportError:
            continue
        have += 1
        deliver = adapter.batches if name == "jax" else adapter.dataset
        same([(np.array(x), np.array(y)) for x, y in deliver(millrace.Loader(shapes, **mixes))], expected)
    if not have:
        pytest.skip("neither JAX nor TensorFlow is here")


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
