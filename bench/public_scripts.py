#!/usr/bin/env python3
"""Public training scripts with DataLoader, and with millrace.torch.Loader in its place: changed lines, and losses of both.

public_scripts.py --scripts FOLDER --data PICTURES [--only NAME,...] [--seeds 0,1] [--mnist FOLDER] [--work FOLDER] [--json]

FOLDER has clones of these repositories, which are not part of this one:

  imagenet     examples/imagenet/main.py                  pytorch/examples: under torchrun, 2 ranks of gloo, with validation
  cifar        pytorch-cifar/main.py                      kuangliu/pytorch-cifar: a network that calls .view()
  accelerate   accelerate/examples/complete_cv_example.py huggingface/accelerate: then once more from a checkpoint in an epoch
  timm         pytorch-image-models/train.py              huggingface/pytorch-image-models
  lightning    pytorch-lightning/examples/pytorch/basics/backbone_image_classifier.py   Lightning-AI/pytorch-lightning: a DataModule
  keras        keras-io/examples/vision/mnist_convnet.py  keras-team/keras-io: on the backend that KERAS_BACKEND names; needs --mnist
  fastai       fastai/nbs/examples/migrating_pytorch.py  fastai/fastai, with the three lines of migrating_pytorch.ipynb: a Learner; needs --mnist
  ignite       ignite/examples/cifar10/main.py           pytorch/ignite: autocast, GradScaler, a validation on train_loader inside its run
  trainer      transformers/examples/pytorch/image-classification/run_image_classification.py   huggingface/transformers, the script of
               5.1.0: Trainer, with validation; then once more from a checkpoint in an epoch. The installed package is 5.24.0 or later: the
               Trainer of 5.1.0 skips batches before it sets the epoch, and its resumed run needs the callback of docs/python.md

PICTURES is a folder of train/CLASS/*.jpg and test/CLASS/*.jpg; the first ones of each class are taken. --mnist is a folder with
MNIST's four files, packed. Each script is edited twice:
what both copies need to run here (a small network, two epochs, seeds, no terminal), and in ours the lines that make the loaders. A text
that an edit looks for must be there once, so another version of a script is an error and no wrong figure. Lines are counted by
difflib between the two copies. Losses are the last of training and of validation that a script prints.
"""
import argparse
import difflib
import gzip
import json
import os
import re
import shutil
import subprocess
import sys

IMPORT = "import millrace.torch\n"
RECIPES = {
    "imagenet": dict(
        file="examples/imagenet/main.py", few=(10, 5), run=["-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone"],
        arguments=["{data}", "-a", "resnet18", "--epochs", "2", "-b", "16", "-j", "1", "-p", "1", "--dist-url", "env://", "--dist-backend", "gloo",
                   "--world-size", "2", "--lr", "0.005", "--seed", "{seed}"],
        setup=[("args.rank = int(os.environ[\"RANK\"])", "args.rank = int(os.environ[\"RANK\"])\n            os.chdir(os.environ[\"RANK\"])")],
        ours=[("import torchvision.datasets as datasets\n", "import torchvision.datasets as datasets\n" + IMPORT),
              ("""    train_loader = torch.utils.data.DataLoader(
        train_dataset, batch_size=args.batch_size, shuffle=(train_sampler is None),
        num_workers=args.workers, pin_memory=True, sampler=train_sampler)
""", """    train_loader = millrace.torch.Loader(traindir, args.batch_size, augment="rrc224", training=True, num_workers=args.workers,
                                         seed=args.seed or 0)
"""), ("""    val_loader = torch.utils.data.DataLoader(
        val_dataset, batch_size=args.batch_size, shuffle=False,
        num_workers=args.workers, pin_memory=True, sampler=val_sampler)
""", """    val_loader = millrace.torch.Loader(valdir, args.batch_size, augment="center224", num_workers=args.workers)
"""), ("train_sampler.set_epoch(epoch)", "train_loader.set_epoch(epoch)")],
        train=r"Epoch: \[1\].*Loss \S+ \((\S+)\)", val=r"Test: .*Loss \S+ \((\S+)\)", accuracy=r"\* +Acc@1 (\S+)"),
    "cifar": dict(
        file="pytorch-cifar/main.py", few=(200, 50), run=[], arguments=["--lr", "0.02"],
        setup=[("import torch\nimport torch.nn as nn\n", "import torch\ntorch.manual_seed({seed})\nimport torch.nn as nn\n"),
               ("from utils import progress_bar\n", "progress_bar = lambda k, n, text: k + 1 == n and print(text)\n"),
               ("torchvision.datasets.CIFAR10(\n    root='./data', train=True, download=True, transform",
                "torchvision.datasets.ImageFolder(\n    '{data}/train', transform"),
               ("torchvision.datasets.CIFAR10(\n    root='./data', train=False, download=True, transform",
                "torchvision.datasets.ImageFolder(\n    '{data}/val', transform"),
               ("net = SimpleDLA()", "net = LeNet()"), ("start_epoch+200", "start_epoch+5")],
        ours=[("import torchvision\n", "import torchvision\n" + IMPORT),
              ("""trainloader = torch.utils.data.DataLoader(
    trainset, batch_size=128, shuffle=True, num_workers=2)
""", """NORMALISE = ",normalise01(0.4914:0.4822:0.4465/0.2023:0.1994:0.201)"
trainloader = millrace.torch.Loader("{data}/train", 128, augment="padcrop(4),flip" + NORMALISE, training=True, seed={seed})
"""), ("""testloader = torch.utils.data.DataLoader(
    testset, batch_size=100, shuffle=False, num_workers=2)
""", """testloader = millrace.torch.Loader("{data}/val", 100, augment=NORMALISE[1:])
""")],
        train=r"Loss: (\S+) .*/2000\)", val=r"Loss: (\S+) .*/500\)", accuracy=r"Acc: (\S+)% .*/500\)"),
    "accelerate": dict(
        file="accelerate/examples/complete_cv_example.py", few=(30, 0), run=[], again="step_11",
        arguments=["--data_dir", "{data}/flat", "--cpu", "--checkpointing_steps", "11"],
        setup=[("\"num_epochs\": 3, \"seed\": 42, \"batch_size\": 64, \"image_size\": 224", "\"num_epochs\": 2, \"seed\": {seed}, \"batch_size\": 32, \"image_size\": 64"),
               ("create_model(\"resnet50d\", pretrained=True", "create_model(\"resnet18\", pretrained=False"),
               ("param.requires_grad = False", "param.requires_grad = True"),
               ("os.listdir(args.data_dir) if", "sorted(os.listdir(args.data_dir)) if"),
               ("    overall_step += 1\n            if isinstance", "    overall_step += 1\n            print(\"loss\", loss.item())\n            if isinstance")],
        ours=[("import PIL\n", "import PIL\n" + IMPORT),
              ("image_transform=train_tfm, label_to_id", "label_to_id"), ("image_transform=eval_tfm, label_to_id", "label_to_id"),
              ("DataLoader(train_dataset, shuffle=True, batch_size=batch_size, num_workers=4)",
               "millrace.torch.Loader(train_dataset, batch_size, augment=\"rrc(64,scale=0.5:1)\", training=True, keys=(\"image\", \"label\"))"),
              ("DataLoader(eval_dataset, shuffle=False, batch_size=batch_size, num_workers=4)",
               "millrace.torch.Loader(eval_dataset, batch_size, augment=\"resize(64x64)\", keys=(\"image\", \"label\"))"),
              ("    for epoch in range(starting_epoch, num_epochs):\n", "    for epoch in range(starting_epoch, num_epochs):\n"
               "        train_dataloader.set_epoch(epoch)\n")],
        train=r"loss (\S+)", val=r"epoch 1: (\S+)", accuracy=r"epoch 1: (\S+)"),
    "timm": dict(
        file="pytorch-image-models/train.py", few=(30, 10), run=[],
        arguments=["--data-dir", "{data}", "--model", "resnet18", "--device", "cpu", "--epochs", "2", "--cooldown-epochs", "0", "--warmup-epochs", "0",
                   "-b", "32", "--num-classes", "10", "--img-size", "64", "-j", "1", "--lr", "0.05", "--no-prefetcher", "--color-jitter", "0",
                   "--smoothing", "0", "--crop-pct", "0.875", "--train-interpolation", "bilinear", "--seed", "{seed}", "--log-interval", "1",
                   "--output", "out", "--val-split", "val"],
        setup=[],
        ours=[("import torch.nn as nn\n", "import torch.nn as nn\n" + IMPORT),
              ("""    # setup loss function
    if args.jsd_loss""", """    size, number = data_config['input_size'][-1], "normalise(imagenet)"
    loader_train = millrace.torch.Loader(os.path.join(args.data_dir, args.train_split), args.batch_size, training=True, seed=args.seed,
                                         augment="rrc(%d),flip,%s" % (size, number), drop_last=True)
    loader_eval = millrace.torch.Loader(os.path.join(args.data_dir, args.val_split), args.batch_size,
                                        augment="resize(%d),center(%d),%s" % (size / args.crop_pct, size, number))
    # setup loss function
    if args.jsd_loss""")],
        train=r"Train: 1 .*Loss: *\S+ \((\S+?)\)", val=r"Test: .*Loss: *\S+ *\( *(\S+?)\)", accuracy=r"Test: .*Acc@1: *\S+ *\( *(\S+?)\)"),
    "lightning": dict(
        file="pytorch-lightning/examples/pytorch/basics/backbone_image_classifier.py", few=(200, 50), run=[],
        arguments=["--trainer.max_epochs=3", "--trainer.accelerator=cpu", "--trainer.enable_progress_bar=false", "--seed_everything={seed}"],
        setup=[("from torchvision import transforms\n", "from torchvision import transforms\n    from torchvision.datasets import ImageFolder\n"),
               ("MNIST(DATASETS_PATH, train=True, download=True", "ImageFolder(\"{data}/train\""),
               ("MNIST(DATASETS_PATH, train=False, download=True", "ImageFolder(\"{data}/val\""),
               ("[55000, 5000]", "[0.9, 0.1]"), ("28 * 28, hidden_dim", "3 * 32 * 32, hidden_dim"),
               ("datamodule=cli.datamodule)\n    cli.trainer.test", "datamodule=cli.datamodule)\n    m = cli.trainer.callback_metrics\n"
                "    print(\"train\", float(m[\"train_loss_epoch\"]), \"valid\", float(m[\"valid_loss_epoch\"]))\n    cli.trainer.test")],
        ours=[("import torch\nfrom torch.nn", IMPORT + "import torch\nfrom torch.nn"),
              ("DataLoader(self.mnist_train, batch_size=self.batch_size)",
               "millrace.torch.Loader(\"{data}/train\", self.batch_size, take=(0, 0.9), shuffle=True, seed={seed})"),
              ("DataLoader(self.mnist_val, batch_size=self.batch_size)", "millrace.torch.Loader(\"{data}/train\", self.batch_size, take=(0.9, 1))"),
              ("def test_dataloader(self):\n        return DataLoader(self.mnist_test, batch_size=self.batch_size)",
               "def test_dataloader(self):\n        return millrace.torch.Loader(\"{data}/val\", self.batch_size)"),
              ("def predict_dataloader(self):\n        return DataLoader(self.mnist_test, batch_size=self.batch_size)",
               "def predict_dataloader(self):\n        return millrace.torch.Loader(\"{data}/val\", self.batch_size)")],
        train=r"train (\S+) valid", val=r"valid (\S+)", accuracy=r"test_loss\D+([\d.]+)"),
    "keras": dict(
        file="keras-io/examples/vision/mnist_convnet.py", few=(1, 1), run=[], arguments=[],
        setup=[("from tensorflow import keras\nfrom tensorflow.keras import layers\n", "import keras\nfrom keras import layers\n"
                "keras.utils.set_random_seed({seed})\n"),
               ("keras.datasets.mnist.load_data()", "[[np.fromfile(\"{data}/mnist/%s-%s\" % (p, f), np.uint8)[k:].reshape(s) for f, k, s in "
                "((\"images-idx3-ubyte\", 16, (-1, 28, 28)), (\"labels-idx1-ubyte\", 8, -1))] for p in (\"train\", \"t10k\")]"),
               ("epochs = 15", "epochs = 3"), ("validation_split=0.1)", "validation_split=0.1, verbose=2)")],
        ours=[("import numpy as np\n", "import millrace.keras\nimport numpy as np\n"),
              ("model.fit(x_train, y_train, batch_size=batch_size, epochs=epochs, validation_split=0.1, verbose=2)",
               """train, val = [millrace.keras.Dataset("{data}/mnist", batch_size, split="train", channels=1, take=part, training=part[0] == 0, seed={seed})
              for part in ((0, 0.9), (0.9, 1))]
test = millrace.keras.Dataset("{data}/mnist", batch_size, split="test", channels=1)
model.fit(train, epochs=epochs, validation_data=val, verbose=2)"""),
              ("loss=\"categorical_crossentropy\"", "loss=\"sparse_categorical_crossentropy\""),
              ("model.evaluate(x_test, y_test, verbose=0)", "model.evaluate(test, verbose=0)")],
        train=r"- loss: (\S+)", val=r"Test loss: (\S+)", accuracy=r"Test accuracy: (\S+)"),
    "fastai": dict(
        file="fastai/nbs/examples/migrating_pytorch.py", few=(1, 1), run=[], arguments=[],
        setup=[("from torch.optim.lr_scheduler import StepLR\n", "from torch.optim.lr_scheduler import StepLR\nfrom fastai.vision.all import *\n"
                "from torch.utils.data import DataLoader\nset_seed({seed})\n"),
               ("datasets.MNIST('../data', train=True, download=True", "datasets.MNIST('{data}', train=True"),
               ("datasets.MNIST('../data', train=False", "datasets.MNIST('{data}', train=False"),
               ("epochs,lr,gamma = 1,", "epochs,lr,gamma = 3,"),
               ("optimizer = torch.optim.AdamW(model.parameters(), lr=lr)\n", "learn = Learner(DataLoaders(train_loader, test_loader), model, "
                "loss_func=F.nll_loss, opt_func=Adam, metrics=accuracy)\nwith learn.no_bar(): learn.fit_one_cycle(epochs, lr)\n")],
        ours=[("import torch\nfrom torch import nn\n", IMPORT + "import torch\nfrom torch import nn\n"),
              ("""train_loader = DataLoader(
    datasets.MNIST('{data}', train=True, transform=transforms.Compose([
        transforms.ToTensor(), transforms.Normalize((0.1307,), (0.3081,))
    ])),
    batch_size=batch_size, shuffle=True, **kwargs)
test_loader = DataLoader(
    datasets.MNIST('{data}', train=False, transform=transforms.Compose([
        transforms.ToTensor(), transforms.Normalize((0.1307,), (0.3081,))
    ])),
    batch_size=test_batch_size, shuffle=True, **kwargs)
""", """digits = dict(channels=1, augment="normalise01(0.1307/0.3081)")
train_loader = millrace.torch.Loader("{data}/mnist", batch_size, split="train", shuffle=True, seed={seed}, **digits)
test_loader = millrace.torch.Loader("{data}/mnist", test_batch_size, split="test", **digits)
""")],
        train=r"\n\[2, (\S+),", val=r"\n\[2, \S+ (\S+),", accuracy=r"\n\[2, \S+ \S+ (\S+),"),
    "ignite": dict(
        file="ignite/examples/cifar10/main.py", few=(100, 50), run=[], beside=["utils.py"],
        arguments=["run", "--seed", "{seed}", "--output_path", "out", "--batch_size", "32", "--num_workers", "1", "--num_epochs", "3",
                   "--num_warmup_epochs", "1", "--learning_rate", "0.05", "--validate_every", "1", "--with_amp", "True"],
        setup=[("import torch.nn as nn\n", "import torch.nn as nn\nimport torchvision\n"),
               ("utils.get_train_test_datasets(config[\"data_path\"])",
                "[torchvision.datasets.ImageFolder(\"{data}/\" + part, t)\n            for part, t in ((\"train\", utils.train_transform), (\"val\", utils.test_transform))]")],
        ours=[("import torchvision\n", "import torchvision\n" + IMPORT),
              ("""    train_loader = idist.auto_dataloader(
        train_dataset, batch_size=config["batch_size"], num_workers=config["num_workers"], shuffle=True, drop_last=True
    )
""", """    train_loader = millrace.torch.Loader(
        "{data}/train", batch=config["batch_size"], augment="padcrop(4),flip,normalise(imagenet)", training=True, drop_last=True, seed=config["seed"]
    )
"""), ("""    test_loader = idist.auto_dataloader(
        test_dataset, batch_size=2 * config["batch_size"], num_workers=config["num_workers"], shuffle=False
    )
""", """    test_loader = millrace.torch.Loader("{data}/val", batch=2 * config["batch_size"], augment="normalise(imagenet)")
""")],
        train=r"Train metrics:\n\s+Accuracy: \S+\n\s+Loss: (\S+)", val=r"Test metrics:\n\s+Accuracy: \S+\n\s+Loss: (\S+)",
        accuracy=r"Test metrics:\n\s+Accuracy: (\S+)"),
    "trainer": dict(
        file="transformers/examples/pytorch/image-classification/run_image_classification.py", few=(200, 50), run=[], again="out/checkpoint-150",
        arguments=["--train_dir", "{data}/train", "--validation_dir", "{data}/val", "--output_dir", "out", "--cache_dir", "cache", "--do_train",
                   "--do_eval", "--num_train_epochs", "3", "--per_device_train_batch_size", "32", "--per_device_eval_batch_size", "64",
                   "--learning_rate", "1e-3", "--save_steps", "150", "--logging_steps", "20", "--seed", "{seed}", "--remove_unused_columns",
                   "False", "--use_cpu", "--report_to", "none", "--disable_tqdm", "True", "--dataloader_num_workers", "1"],
        setup=[("import logging\nimport os\n", "import logging\nimport os\nos.environ[\"HF_HUB_OFFLINE\"] = \"1\"\n"),
               ("import evaluate\n", ""),
               ("evaluate.load(\"accuracy\", cache_dir=model_args.cache_dir)", "type(\"Accuracy\", (), {\"compute\": staticmethod(\n"
                "        lambda predictions, references: {\"accuracy\": float((predictions == references).mean())})})"),
               ("""AutoConfig.from_pretrained(
        model_args.config_name or model_args.model_name_or_path,
""", """AutoConfig.for_model(
        "resnet", embedding_size=16, hidden_sizes=[16, 32, 64], depths=[1, 1, 1], layer_type="basic",
"""), ("""AutoModelForImageClassification.from_pretrained(
        model_args.model_name_or_path,
        from_tf=bool(".ckpt" in model_args.model_name_or_path),
        config=config,
        cache_dir=model_args.cache_dir,
        revision=model_args.model_revision,
        token=model_args.token,
        trust_remote_code=model_args.trust_remote_code,
        ignore_mismatched_sizes=model_args.ignore_mismatched_sizes,
    )
""", """AutoModelForImageClassification.from_config(config)
"""), ("""AutoImageProcessor.from_pretrained(
        model_args.image_processor_name or model_args.model_name_or_path,
        cache_dir=model_args.cache_dir,
        revision=model_args.model_revision,
        token=model_args.token,
        trust_remote_code=model_args.trust_remote_code,
    )
""", """transformers.ViTImageProcessor(size={"height": 32, "width": 32})
""")],
        ours=[("import torch\nfrom datasets", IMPORT + "import torch\nfrom datasets"),
              ("""        data_collator=collate_fn,
    )
""", """        data_collator=collate_fn,
    )
    common = dict(keys=("pixel_values", "labels"), num_workers=training_args.dataloader_num_workers)
    trainer.get_train_dataloader = lambda: millrace.torch.Loader(
        data_args.train_dir, training_args.train_batch_size, augment="rrc(32),flip,normalise(127.5/127.5)", training=True, seed=training_args.seed, **common)
    trainer.get_eval_dataloader = lambda eval_dataset=None: millrace.torch.Loader(
        data_args.validation_dir, training_args.eval_batch_size, augment="resize(32),center(32),normalise(127.5/127.5)", **common)
""")],
        train=r"'loss': '?([\d.]+)", val=r"'eval_loss': '?([\d.]+)", accuracy=r"'eval_accuracy': '?([\d.]+)"),
}


def digits(source, target, few=(4000, 1000)):
    """The first of MNIST's digits, in its own format."""
    os.makedirs(target)
    for part, count in zip(("train", "t10k"), few):
        for name, head, size in (("images-idx3-ubyte", 16, 784), ("labels-idx1-ubyte", 8, 1)):
            with gzip.open(os.path.join(source, "%s-%s.gz" % (part, name))) as f:
                data = f.read(head + count * size)
            with open(os.path.join(target, "%s-%s" % (part, name)), "wb") as f:
                f.write(data[:4] + count.to_bytes(4, "big") + data[8:])


def pictures(source, target, few):
    """Some of the data: train/ and val/ with a folder for each class, and all of train/ in flat/, named as Oxford's pets are."""
    flat = os.path.join(target, "flat")
    os.makedirs(flat)
    for theirs, ours, count in (("train", "train", few[0]), ("test", "val", few[1])):
        for kind in sorted(os.listdir(os.path.join(source, theirs))):
            folder = os.path.join(source, theirs, kind)
            os.makedirs(os.path.join(target, ours, kind))
            for name in sorted(os.listdir(folder))[:count]:
                shutil.copy(os.path.join(folder, name), os.path.join(target, ours, kind, name))
                if ours == "train":
                    shutil.copy(os.path.join(folder, name), os.path.join(flat, "%s_%s" % (kind, name)))


def edited(text, edits, names, what):
    for old, new in edits:
        for key, value in names.items():
            old, new = (t.replace("{%s}" % key, str(value)) for t in (old, new))
        if text.count(old) != 1:
            raise SystemExit("%s: %d times, expected once:\n%s" % (what, text.count(old), old))
        text = text.replace(old, new)
    return text


def changed(a, b):
    """Lines of b that are not of a, and of a that are not of b, whichever are more in each change."""
    blocks = difflib.SequenceMatcher(None, a.splitlines(), b.splitlines(), autojunk=False).get_opcodes()
    return sum(max(i2 - i1, j2 - j1) for tag, i1, i2, j1, j2 in blocks if tag != "equal")


def last(pattern, text):
    found = re.findall(pattern, text)
    return float(found[-1]) if found else None


def run_once(recipe, script, folder, names, more=()):
    arguments = [w.format(**names) for w in recipe["arguments"]]
    done = subprocess.run([sys.executable] + recipe["run"] + [script] + arguments + list(more), cwd=folder, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, env=dict(os.environ, OMP_NUM_THREADS="1", PYTHONWARNINGS="ignore"))
    text = done.stdout.decode("utf-8", "replace")
    with open(os.path.join(folder, "output%d.txt" % len(more)), "w") as f:
        f.write(text)
    if done.returncode:
        raise SystemExit("%s ended with status %d:\n%s" % (script, done.returncode, text[-3000:]))
    return {key: last(recipe[key], text) for key in ("train", "val", "accuracy")}


def one(name, a, work):
    recipe, rows = RECIPES[name], []
    source = os.path.join(a.scripts, recipe["file"])
    data = os.path.join(work, name, "data")
    pictures(a.data, data, recipe["few"])
    if a.mnist:
        digits(a.mnist, os.path.join(data, "mnist"))
        shutil.copytree(os.path.join(data, "mnist"), os.path.join(data, "MNIST", "raw"))  # where torchvision looks for them
    with open(source) as f:
        text = f.read()
    for seed in a.seeds:
        names = {"data": data, "seed": seed}
        theirs = edited(text, recipe["setup"], names, source)
        ours = edited(theirs, recipe["ours"], names, source)
        for way, content in (("theirs", theirs), ("ours", ours)):
            folder = os.path.join(work, name, "%s%d" % (way, seed))
            os.makedirs(folder)
            for k in "01":  # of ranks
                os.makedirs(os.path.join(folder, k))
            beside = os.path.join(os.path.dirname(source), "models")
            if os.path.isdir(beside):
                shutil.copytree(beside, os.path.join(folder, "models"))
            for name_beside in recipe.get("beside", ()):
                shutil.copy(os.path.join(os.path.dirname(source), name_beside), folder)
            script = os.path.join(folder, os.path.basename(source))
            with open(script, "w") as f:
                f.write(content)
            row = dict(script=name, way=way, seed=seed, lines=changed(theirs, ours), **run_once(recipe, script, folder, names))
            if "again" in recipe:
                row["resumed"] = run_once(recipe, script, folder, names, ["--resume_from_checkpoint", os.path.join(folder, recipe["again"])])
            rows.append(row)
            print(json.dumps(row) if a.json else "%(script)-10s %(way)-6s seed %(seed)d: %(lines)d lines changed, train %(train)s, val %(val)s, "
                  "accuracy %(accuracy)s" % row + (", resumed %s" % row["resumed"] if "resumed" in row else ""), flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scripts", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--only", default=",".join(RECIPES))
    parser.add_argument("--seeds", type=lambda text: [int(s) for s in text.split(",")], default=[0, 1])
    parser.add_argument("--mnist")
    parser.add_argument("--work", default="public-scripts")
    parser.add_argument("--json", action="store_true")
    a = parser.parse_args()
    work = os.path.abspath(a.work)
    for name in a.only.split(","):
        if name not in RECIPES:
            parser.error("--only %s: expected some of %s" % (name, ", ".join(RECIPES)))
        shutil.rmtree(os.path.join(work, name), ignore_errors=True)
        one(name, a, work)


if __name__ == "__main__":
    main()
