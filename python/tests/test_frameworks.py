"""Lightning, Accelerate and Ray Train with two processes each: every rank its own samples, and a run that goes on as if never stopped; and
what these and Hugging Face's Trainer do with loaders for validation and for the rest of an epoch.

Each framework trains three epochs in one go; then as far as the middle of the second epoch, with its own checkpoint there, which holds
the loader's state; then from that checkpoint to the end, in new processes. A test is skipped where its framework is not installed."""
import json
import os
import subprocess
import sys

import millrace
import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not torch.distributed.is_available(), reason="torch without distributed")

WORLD, EPOCHS, STEPS, STOP = 2, 3, 6, 9  # 120 pictures in batches of 20; STOP is in the second epoch
AUGMENT = "rrc(32),flip,normalise(imagenet)"

# Shared by the scripts below: a loader that notes its batches and its callers, a small network, and the path of the notes.
PROBE = """
import json, os, sys
import millrace.torch, torch

class Loader(millrace.torch.Loader):
    def __init__(self, *given, **settings):
        self.seen, self.epochs_set, self.saved, self.loaded = [], [], 0, 0
        super().__init__(*given, **settings)
    def _tensors(self, batch):
        self.seen.append([batch.epoch, batch.step, batch.ids.tolist()])
        return super()._tensors(batch)
    def set_epoch(self, epoch):
        self.epochs_set.append(epoch)
        super().set_epoch(epoch)
    def state_dict(self):
        self.saved += 1
        return super().state_dict()
    def load_state_dict(self, state):
        self.loaded += 1
        super().load_state_dict(state)

def loader(data):
    return Loader(data, batch=20, augment="%s", training=True, seed=3, workers=1)

def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 10))

def loss_of(model, images, target):
    return torch.nn.functional.cross_entropy(model(images), target)

def write_down(out, rank, l, model):
    weights = [p.detach().double().sum().item() for p in model.parameters()]
    with open(os.path.join(out, "rank%%d.json" %% rank), "w") as f:
        json.dump(dict(seen=l.seen, epochs=l.epochs_set, saved=l.saved, loaded=l.loaded, world=l.world, weights=weights), f)

def leave():
    "As test_torch.py's ranks do, and why."
    sys.stdout.flush()
    os._exit(0)
""" % AUGMENT

LIGHTNING = """
import sys
import lightning, torch, probe
data, out, checkpoint, way = sys.argv[1:]

class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = probe.network()
    def training_step(self, batch, at):
        return probe.loss_of(self.net, *batch)
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01, momentum=0.9)

class Save(lightning.Callback):
    def on_train_batch_end(self, trainer, *_):
        if way == "begin" and trainer.global_step == STOP:
            trainer.save_checkpoint(checkpoint)

loader, net = probe.loader(data), Net()  # before there are two processes
trainer = lightning.Trainer(accelerator="cpu", devices=2, strategy="ddp", max_epochs=3, max_steps=STOP if way == "begin" else -1,
                            logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
                            callbacks=[Save()], default_root_dir=out)
trainer.fit(net, loader, ckpt_path=checkpoint if way == "go on" else None)
probe.write_down(out, trainer.global_rank, loader, net)
"""

ACCELERATE = """
import sys
import accelerate, torch, probe
data, out, checkpoint, way = sys.argv[1:]
loader = probe.loader(data)
accelerator = accelerate.Accelerator(cpu=True)
net = probe.network()
optimizer = torch.optim.SGD(net.parameters(), 0.01, momentum=0.9)
net, optimizer, prepared = accelerator.prepare(net, optimizer, loader)
assert prepared is loader
accelerator.register_for_checkpointing(loader)
if way == "go on":
    accelerator.load_state(checkpoint)
step = 0
for epoch in range(loader.epoch, 3):
    loader.set_epoch(epoch)
    for images, target in loader:
        optimizer.zero_grad()
        accelerator.backward(probe.loss_of(net, images, target))
        optimizer.step()
        step += 1
        if way == "begin" and step == STOP:
            accelerator.save_state(checkpoint)
            break
    if way == "begin" and step == STOP:
        break
probe.write_down(out, accelerator.process_index, loader, accelerator.unwrap_model(net))
accelerator.end_training()
probe.leave()
"""

RAY = """
import os, sys, tempfile
import probe
data, out, checkpoint, way = sys.argv[1:]
import ray, ray.train.torch
from ray.train import Checkpoint, RunConfig, ScalingConfig

def work(_):
    import torch
    loader, net = probe.loader(data), ray.train.torch.prepare_model(probe.network())
    optimizer = torch.optim.SGD(net.parameters(), 0.01, momentum=0.9)
    if way == "go on":
        kept = torch.load(os.path.join(checkpoint, "kept.pt"))
        net.module.load_state_dict(kept["net"]), optimizer.load_state_dict(kept["optimizer"])
        loader.load_state_dict(kept["loader"])
    step = 0
    for epoch in range(loader.epoch, 3):
        loader.set_epoch(epoch)
        for images, target in loader:
            optimizer.zero_grad()
            probe.loss_of(net, images, target).backward()
            optimizer.step()
            step += 1
            if way == "begin" and step == STOP:
                break
        if way == "begin" and step == STOP:
            break
    rank = ray.train.get_context().get_world_rank()
    if way == "begin":
        with tempfile.TemporaryDirectory() as folder:
            if rank == 0:
                torch.save(dict(net=net.module.state_dict(), optimizer=optimizer.state_dict(), loader=loader.state_dict()),
                           os.path.join(folder, "kept.pt"))
            ray.train.report({}, checkpoint=Checkpoint.from_directory(folder) if rank == 0 else None)
    probe.write_down(out, rank, loader, net.module)

ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, runtime_env=dict(env_vars=dict(PYTHONPATH=os.environ["PYTHONPATH"])))
trainer = ray.train.torch.TorchTrainer(work, train_loop_config={}, scaling_config=ScalingConfig(num_workers=2),
                                       torch_config=ray.train.torch.TorchConfig(backend="gloo"),
                                       run_config=RunConfig(storage_path=out, name="run"))
result = trainer.fit()
if way == "begin":
    result.checkpoint.to_directory(checkpoint)
ray.shutdown()
"""


class Bench:
    """A folder in which the ways of one script run."""

    def __init__(self, folder, data, script, launcher):
        self.folder, self.data, self.launcher = folder, data, launcher
        (folder / "probe.py").write_text(PROBE)
        (folder / "main.py").write_text("STOP = %d\n" % STOP + script)

    def run(self, way):
        """What each rank noted."""
        out = self.folder / way.replace(" ", "_")
        out.mkdir()
        path = os.pathsep.join([str(self.folder)] + [p for p in [os.environ.get("PYTHONPATH")] if p])
        done = subprocess.run([sys.executable] + self.launcher + [str(self.folder / "main.py"), self.data, str(out),
                                                                  str(self.folder / "checkpoint"), way],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600, cwd=str(self.folder),
                              env=dict(os.environ, PYTHONPATH=path, OMP_NUM_THREADS="1"))
        text = done.stdout.decode(errors="replace")
        assert done.returncode == 0, text[-4000:]
        return [json.loads((out / ("rank%d.json" % rank)).read_text()) for rank in range(WORLD)]


def look(bench, data):
    whole, begun, rest = bench.run("whole"), bench.run("begin"), bench.run("go on")
    plain = millrace.Loader(data, batch=20, augment=AUGMENT, training=True, seed=3, epochs=EPOCHS, rank=0, world=1)
    want = [b.ids.tolist() for b in plain]
    for rank in range(WORLD):
        assert whole[rank]["world"] == WORLD
        assert [s[:2] for s in whole[rank]["seen"]] == [[e, s] for e in range(EPOCHS) for s in range(STEPS)]
        assert begun[rank]["seen"][:STOP] == whole[rank]["seen"][:STOP]
        assert rest[rank]["seen"] == whole[rank]["seen"][STOP:]
        assert sorted(set(whole[rank]["epochs"])) == list(range(EPOCHS)) and sorted(set(rest[rank]["epochs"])) == [1, 2]
        assert begun[0]["saved"] and rest[rank]["loaded"] == 1
        assert rest[rank]["weights"] == whole[rank]["weights"] == whole[0]["weights"] != begun[rank]["weights"]
    for k, ids in enumerate(want):  # disjoint and complete: the global batch, in ranks' order
        assert sum((w["seen"][k][2] for w in whole), []) == ids


def needs(name):
    """Whether another process can import it; here it stays out, with all that it brings."""
    done = subprocess.run([sys.executable, "-c", "import %s" % name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        pytest.skip("%s cannot be imported: %s" % (name, (done.stdout.decode(errors="replace").strip().splitlines() or ["?"])[-1]))


TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(WORLD)]


def test_lightning(shapes, tmp_path):
    """Its own launcher, which gives ranks to torch.distributed only."""
    needs("lightning")
    look(Bench(tmp_path, shapes, LIGHTNING, []), shapes)


def test_accelerate(shapes, tmp_path):
    needs("accelerate")
    look(Bench(tmp_path, shapes, ACCELERATE, TORCHRUN), shapes)


def test_ray_train(shapes, tmp_path):
    needs("ray.train.torch")
    look(Bench(tmp_path, shapes, RAY, []), shapes)


SPAWNED = """
import json, sys
import torch, torch.multiprocessing as mp, probe

def work(rank, data, out, port):
    torch.distributed.init_process_group("gloo", init_method="file://%s/group" % out, rank=rank, world_size=2)
    early = probe.loader(data)
    for _ in early:
        pass
    probe.write_down(out, rank, early, probe.network())
    torch.distributed.destroy_process_group()
    probe.leave()

if __name__ == "__main__":
    mp.spawn(work, (sys.argv[1], sys.argv[2], 0), nprocs=2)
"""


def test_processes_that_torch_spawned(shapes, tmp_path):
    """As PyTorch's ImageNet example starts them: no variable of the environment has their ranks."""
    got = Bench(tmp_path, shapes, SPAWNED, []).run("whole")
    want = [b.ids.tolist() for b in millrace.Loader(shapes, batch=20, augment=AUGMENT, training=True, seed=3, rank=0, world=1)]
    assert [a[2] + b[2] for a, b in zip(got[0]["seen"], got[1]["seen"])] == want


JOINED = """
import json, os, sys
import torch, millrace.torch, probe
from torch.distributed.algorithms.join import Join
data, out = sys.argv[1:3]
torch.distributed.init_process_group("gloo")
rank = torch.distributed.get_rank()
loader = probe.Loader(data, batch=13, augment="rrc(32)", training=True, seed=3, workers=1)
net = torch.nn.parallel.DistributedDataParallel(probe.network())
optimizer = torch.optim.SGD(net.parameters(), 0.01)
for epoch in range(2):
    with Join([net]):
        for k, (images, target) in enumerate(loader):
            if (rank, epoch, k) == (1, 0, 4):
                break
            optimizer.zero_grad()
            probe.loss_of(net, images, target).backward()
            optimizer.step()
probe.write_down(out, rank, loader, net)
torch.distributed.destroy_process_group()
probe.leave()
"""


def test_join_of_ranks_with_unequal_shares(shapes, tmp_path):
    """Shares of 6 and 7 samples, 1 and 2 of the last batch; and a rank that leaves an epoch early takes part in the next."""
    first, second = Bench(tmp_path, shapes, JOINED, TORCHRUN).run("whole")
    assert first["weights"] == second["weights"]
    assert [len(ids) for _, _, ids in first["seen"]] == ([6] * 9 + [1]) * 2
    assert [len(ids) for _, _, ids in second["seen"]] == [7] * 5 + [7] * 9 + [2]
    want = [b.ids.tolist() for b in millrace.Loader(shapes, batch=13, augment="rrc(32)", training=True, seed=3, epochs=2, rank=0, world=1)]
    assert [a[2] + b[2] for a, b in zip(first["seen"][10:], second["seen"][5:])] == want[10:]


# ---------------------------------------------------------------------- loaders for validation, batches left out

VALIDATED = """
import json, sys, warnings
import lightning, torch, millrace.torch
warnings.simplefilter("error", category=lightning.fabric.utilities.warnings.PossibleUserWarning)
warnings.filterwarnings("ignore", "The `srun` command is available")  # where Slurm is installed
data = sys.argv[1]

class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net, self.right, self.seen = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3072, 10)), [], 0
    def training_step(self, batch, at):
        return torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])
    def validation_step(self, batch, at):
        self.seen += len(batch[1])
        self.log("loss", torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1]))
    test_step = validation_step
    def predict_step(self, batch, at):
        return batch[1]
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)

class Data(lightning.LightningDataModule):
    def train_dataloader(self):
        return millrace.torch.Loader(data, batch_size=20, augment="rrc(32),flip", training=True, shuffle=True, num_workers=1)
    def val_dataloader(self):
        return millrace.torch.Loader(data, batch_size=20, augment="center(32)", num_workers=1)
    test_dataloader = predict_dataloader = val_dataloader

lightning.seed_everything(1, workers=True)
trainer = lightning.Trainer(accelerator="cpu", max_epochs=2, logger=False, enable_checkpointing=False, enable_progress_bar=False,
                            enable_model_summary=False, num_sanity_val_steps=2)
net, d = Net(), Data()
trainer.fit(net, d.train_dataloader(), d.val_dataloader())
loaders = net.seen
trainer.fit_loop.max_epochs = 4
trainer.fit(net, datamodule=d)
trainer.validate(net, datamodule=d)
trainer.test(net, d.test_dataloader())
labels = torch.cat(trainer.predict(net, datamodule=d)).tolist()
print("RESULT", json.dumps([loaders, net.seen, labels]))
"""

SKIPPED = """
import json, sys
import accelerate, millrace.torch
loader = millrace.torch.Loader(sys.argv[1], batch_size=20, augment="rrc(32)", training=True, seed=3)
accelerator = accelerate.Accelerator(cpu=True)
want = [y.tolist() for _ in range(2) for _, y in loader]
loader.set_epoch(1)
rest = accelerator.skip_first_batches(accelerator.prepare(loader), 4)
got = [y.tolist() for _, y in rest]
print("RESULT", json.dumps([len(rest), got == want[10:]]))
"""

TRAINER = """
import json, os, sys
import torch, transformers, millrace.torch
data, out = sys.argv[1:]
seen = []

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.net = torch.nn.Linear(3072, 10)
    def forward(self, pixel_values, labels):
        if self.training:
            seen.append(labels.tolist())
        logits = self.net(pixel_values.flatten(1))
        return dict(loss=torch.nn.functional.cross_entropy(logits, labels), logits=logits)

class Trainer(transformers.Trainer):
    def get_train_dataloader(self):
        return millrace.torch.Loader(data, batch_size=20, augment="rrc(32),flip", training=True, seed=3, keys=("pixel_values", "labels"))
    def get_eval_dataloader(self, eval_dataset=None):
        return millrace.torch.Loader(data, batch_size=20, augment="center(32)", keys=("pixel_values", "labels"))

class Epochs(transformers.TrainerCallback):
    def on_epoch_begin(self, args, state, control, train_dataloader=None, **_):
        train_dataloader.set_epoch(int(state.epoch or 0))

def run(resume):
    arguments = transformers.TrainingArguments(out, num_train_epochs=3, per_device_train_batch_size=20, save_steps=9, save_strategy="steps",
                                               report_to=[], use_cpu=True, disable_tqdm=True, logging_steps=1000)
    trainer = Trainer(Net(), arguments, callbacks=[Epochs()])
    trainer.train(resume_from_checkpoint=resume)
    return trainer

run(None)
whole, seen = seen, []
trainer = run(os.path.join(out, "checkpoint-9"))
found = trainer.evaluate()
print("RESULT", json.dumps([len(whole), seen == whole[9:], "eval_loss" in found]))
"""


def result(script, folder, *arguments):
    (folder / "main.py").write_text(script)
    done = subprocess.run([sys.executable, str(folder / "main.py")] + list(arguments), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=600, cwd=str(folder), env=dict(os.environ, OMP_NUM_THREADS="1"))
    text = done.stdout.decode(errors="replace")
    assert done.returncode == 0, text[-4000:]
    return json.loads([line for line in text.splitlines() if line.startswith("RESULT")][0][7:])


def test_lightning_validates(shapes, tmp_path):
    """Loaders and a data module, for fit, validate, test and predict; and it warns of nothing."""
    needs("lightning")
    loaders, all_of_them, labels = result(VALIDATED, tmp_path, shapes)
    assert loaders == 40 + 2 * 120 and all_of_them == loaders + 40 + 2 * 120 + 120 + 120
    assert labels == [k for k in range(10) for _ in range(12)]


def test_accelerate_leaves_out_batches(shapes, tmp_path):
    needs("accelerate")
    assert result(SKIPPED, tmp_path, shapes) == [2, True]


def test_hugging_face_trainer_goes_on_in_the_middle_of_an_epoch(shapes, tmp_path):
    needs("transformers.trainer")
    assert result(TRAINER, tmp_path, shapes, str(tmp_path / "run")) == [18, True, True]
