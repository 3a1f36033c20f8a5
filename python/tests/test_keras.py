"""millrace.keras on each of Keras's backends, in a process of its own: fit, validation, evaluate, predict."""
import json
import os
import subprocess
import sys

import pytest

SCRIPT = """
import json, os, sys
import keras, numpy as np, millrace.keras
data = sys.argv[1]
seen = []

class Loader(millrace.keras._Loader):
    def _deliver(self, batch):
        seen.append((batch.epoch, batch.step, batch.ids.tolist()))
        return super()._deliver(batch)

millrace.keras._Loader = Loader
keras.utils.set_random_seed(1)
train = millrace.keras.Dataset(data, 16, augment="rrc(32),flip", training=True, seed=3, workers=1)
padded = millrace.keras.Dataset(data, 16, augment="center(32)", tail="pad", workers=1)
plain = millrace.keras.Dataset(data, 16, augment="center(32)", workers=1)
model = keras.Sequential([keras.layers.Flatten(), keras.layers.Dense(10)])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile("sgd", loss, weighted_metrics=["accuracy"])
history = model.fit(train, validation_data=plain, epochs=3, verbose=0).history
state = train.state_dict()
deep = [(e, s, i) for e, s, i in seen if i != list(range(i[0], i[0] + len(i)))]
found, weighted = model.evaluate(plain, verbose=0), model.evaluate(padded, verbose=0)
logits = model.predict(plain, verbose=0)
labels = np.concatenate([y for _, y in plain])
exact = float(np.mean(logits.argmax(1) == labels))
one_hot = millrace.keras.Dataset(data, 16, augment="rrc(32),mixup(0.4)", training=True)
mixed = next(iter(one_hot))
try:
    millrace.keras.Dataset(data, 16, fields=["mask"])
    raise SystemExit("fields= was taken")
except millrace.ArgumentError as e:
    assert "no place for fields" in str(e)
print("RESULT", json.dumps([len(history["val_loss"]), [state["epoch"], state["step"]], deep, found, weighted, exact, labels.tolist(),
                            str(mixed[1].dtype), list(mixed[1].shape)]))
"""


@pytest.mark.parametrize("backend", ["tensorflow", "jax", "torch"])
def test_fit_evaluate_predict(shapes, tmp_path, backend):
    environment = dict(os.environ, KERAS_BACKEND=backend, TF_CPP_MIN_LOG_LEVEL="3")
    done = subprocess.run([sys.executable, "-c", "import keras, millrace.keras"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env=environment)
    if done.returncode:
        pytest.skip("Keras on %s cannot be imported: %s" % (backend, done.stdout.decode(errors="replace").strip().splitlines()[-1]))
    (tmp_path / "main.py").write_text(SCRIPT)
    done = subprocess.run([sys.executable, str(tmp_path / "main.py"), shapes], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600,
                          env=environment)
    text = done.stdout.decode(errors="replace")
    assert done.returncode == 0, text[-4000:]
    epochs, state, trained, found, weighted, exact, labels, kind, shape = json.loads(
        [line for line in text.splitlines() if line.startswith("RESULT")][0][7:])
    assert epochs == 3 and state == [3, 0]  # the epochs of fit() are the first three
    import millrace
    want = {(b.epoch, b.step): b.ids.tolist() for b in millrace.Loader(shapes, batch=16, augment="rrc(32),flip", training=True, seed=3, epochs=3)}
    got = {(e, s): i for e, s, i in trained}
    assert all(got[place] == ids for place, ids in want.items())
    assert found[1] == pytest.approx(weighted[1], abs=1e-6)  # padding counts for nothing
    assert exact == pytest.approx(found[1], abs=1e-6) and labels == [k for k in range(10) for _ in range(12)]
    assert kind == "float32" and shape == [16, 10]
