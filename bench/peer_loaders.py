"""The other loaders, each set up for one job as its own documentation advises, and ours through Python; run by bench/peers.py, one
process each.

usage: peer_loaders.py NAME JOB.json        (with the Python of the virtual environment that has the loader)

The job: the listed JPEG files -> RandomResizedCrop(224) + flip (or, for CIFAR, crop of the padded picture + flip) -> shuffled uint8
NHWC batches in host memory, `threads` threads or worker processes. Each loader is an endless stream that is shuffled anew every epoch,
so that no epoch's end drains it and the small data set does not count against it. Libraries that have threads of their own inside a
worker (OpenCV, torch) are held to one there.

    stdin   {"skip": BATCHES, "seconds": S}     one turn: BATCHES unmeasured batches, then whole batches for S seconds
    stdout  {"samples", "seconds", "cpu_s", "peak_rss_mb", "pss_mb"}, a line a turn; before the first {"ready": true}

CPU and memory include the process and all its descendants. End of input ends it, where the library can end in the middle of a stream;
peers.py kills it if not.
"""
import atexit
import ctypes
import itertools
import json
import math
import os
import random
import signal
import sys
import tempfile
import time

SIDE = 224
AREA, ASPECT = (0.08, 1.0), (3 / 4, 4 / 3)


# ---- decoding one file with the libraries that only decode ----

def random_window(height, width):
    """top, left, height, width of RandomResizedCrop: ten tries, then the largest middle square."""
    for _ in range(10):
        area = height * width * random.uniform(*AREA)
        aspect = math.exp(random.uniform(*map(math.log, ASPECT)))
        w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 1 <= w <= width and 1 <= h <= height:
            return random.randint(0, height - h), random.randint(0, width - w), h, w
    side = min(height, width)
    return (height - side) // 2, (width - side) // 2, side, side


def with_pillow(path):
    import numpy as np
    from PIL import Image
    with Image.open(path) as picture:
        picture = picture.convert("RGB")
    top, left, h, w = random_window(picture.height, picture.width)
    picture = picture.resize((SIDE, SIDE), Image.Resampling.BILINEAR, box=(left, top, left + w, top + h))
    if random.random() < 0.5:
        picture = picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    return np.asarray(picture)


def opencv_bytes(data):
    import cv2
    picture = cv2.imdecode(data, cv2.IMREAD_COLOR)
    top, left, h, w = random_window(*picture.shape[:2])
    picture = cv2.resize(picture[top:top + h, left:left + w], (SIDE, SIDE), interpolation=cv2.INTER_LINEAR)
    if random.random() < 0.5:
        picture = cv2.flip(picture, 1)
    return cv2.cvtColor(picture, cv2.COLOR_BGR2RGB)


def with_opencv(path):
    import numpy as np
    return opencv_bytes(np.fromfile(path, np.uint8))


# ---- torch: worker processes ----

def die_with_parent():
    """A stopped process would otherwise outlive a comparison that was killed."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Endless:
    """A sampler: permutation after permutation of the indices."""

    def __init__(self, count):
        self.count = count

    def __iter__(self):
        while True:
            yield from random.sample(range(self.count), self.count)

    def __len__(self):
        return sys.maxsize


class Files:
    """A data set of torch: what `load` makes of each file."""

    def __init__(self, files, load):
        self.files, self.load = files, load

    def __len__(self):
        return len(self.files)

    def __getitem__(self, at):
        return self.load(self.files[at])


def one_thread_each():
    import cv2
    import torch
    cv2.setNumThreads(0)
    torch.set_num_threads(1)


def start_worker(_number):
    die_with_parent()
    one_thread_each()
    random.seed()


def torch_stream(job, load):
    import torch
    one_thread_each()
    loader = torch.utils.data.DataLoader(Files(job["files"], load), batch_size=job["batch"], sampler=Endless(len(job["files"])),
                                         num_workers=job["threads"], worker_init_fn=start_worker, prefetch_factor=4,
                                         multiprocessing_context="fork")
    return (len(batch) for batch in loader)


def torch_pillow(job):
    return torch_stream(job, with_pillow)


def torch_opencv(job):
    return torch_stream(job, with_opencv)


def torchvision_v2(job):
    from torchvision import io
    from torchvision.transforms import v2
    change = v2.Compose([v2.RandomResizedCrop(SIDE, scale=AREA, ratio=ASPECT, antialias=True), v2.RandomHorizontalFlip()])
    return torch_stream(job, lambda path: change(io.decode_image(path, io.ImageReadMode.RGB)).permute(1, 2, 0))


def webdataset_opencv(job):
    import tarfile

    import numpy as np
    import webdataset as wds
    parts = 4 * job["threads"]  # every worker needs some of its own
    folder = os.path.join(job["cache"], f"webdataset-{parts}")
    names = [os.path.join(folder, f"{part:04d}.tar") for part in range(parts)]
    if not os.path.exists(names[-1]):
        os.makedirs(folder, exist_ok=True)
        for part, name in enumerate(names):
            with tarfile.open(name + ".part", "w") as tar:
                for at in range(part, len(job["files"]), parts):
                    tar.add(job["files"][at], arcname=f"{at:08d}.jpg")
            os.rename(name + ".part", name)
    one_thread_each()
    data = (wds.WebDataset(names, resampled=True, shardshuffle=True).shuffle(256)
            .map(lambda sample: opencv_bytes(np.frombuffer(sample["jpg"], np.uint8))).batched(job["batch"], collation_fn=np.stack))
    loader = wds.WebLoader(data, batch_size=None, num_workers=job["threads"], worker_init_fn=start_worker, prefetch_factor=4,
                           multiprocessing_context="fork")
    return (len(batch) for batch in loader)


def streaming_opencv(job):
    import numpy as np
    import torch
    from streaming import MDSWriter, StreamingDataset
    folder = os.path.join(job["cache"], "streaming")
    if not os.path.exists(os.path.join(folder, "index.json")):
        with MDSWriter(out=folder, columns={"jpg": "bytes"}, exist_ok=True) as out:
            for path in job["files"]:
                with open(path, "rb") as f:
                    out.write({"jpg": f.read()})

    class Pictures(StreamingDataset):
        def __getitem__(self, at):
            return opencv_bytes(np.frombuffer(super().__getitem__(at)["jpg"], np.uint8))
    own = tempfile.TemporaryDirectory()  # it refuses a folder that a process which was killed has used
    atexit.register(own.cleanup)
    local = os.path.join(own.name, "local")
    os.symlink(folder, local)
    one_thread_each()
    count = len(job["files"])
    data = Pictures(local=local, shuffle=True, batch_size=job["batch"], epoch_size=count * max(1, 100000 // count))
    loader = torch.utils.data.DataLoader(data, batch_size=job["batch"], num_workers=job["threads"], worker_init_fn=start_worker,
                                         prefetch_factor=4, multiprocessing_context="fork")
    return (len(batch) for _ in itertools.count() for batch in loader)


# ---- loaders with threads of their own ----

def dali_cpu(job):
    from nvidia.dali import fn, pipeline_def, types

    @pipeline_def(batch_size=job["batch"], num_threads=job["threads"], device_id=None, prefetch_queue_depth=2)
    def graph():
        encoded, _ = fn.readers.file(files=job["files"], random_shuffle=True, initial_fill=1024)
        pictures = fn.decoders.image_random_crop(encoded, device="cpu", output_type=types.RGB, random_area=list(AREA),
                                                 random_aspect_ratio=list(ASPECT))
        pictures = fn.resize(pictures, size=[SIDE, SIDE], interp_type=types.INTERP_LINEAR, antialias=False)
        return fn.flip(pictures, horizontal=fn.random.coin_flip())
    pipeline = graph()
    pipeline.build()
    return (len(pipeline.run()[0]) for _ in itertools.count())


def tf_data(job):
    import tensorflow as tf

    def load(path):
        data = tf.io.read_file(path)
        begin, size, _ = tf.image.sample_distorted_bounding_box(
            tf.image.extract_jpeg_shape(data), bounding_boxes=tf.zeros([0, 0, 4]), area_range=AREA, aspect_ratio_range=ASPECT,
            max_attempts=10, use_image_if_no_bounding_boxes=True)
        window = tf.stack([begin[0], begin[1], size[0], size[1]])
        picture = tf.image.decode_and_crop_jpeg(data, window, channels=3)
        return tf.image.random_flip_left_right(tf.cast(tf.image.resize(picture, [SIDE, SIDE], method="bilinear"), tf.uint8))
    options = tf.data.Options()
    options.deterministic = False
    options.threading.private_threadpool_size = job["threads"]
    options.threading.max_intra_op_parallelism = 1
    files = tf.data.Dataset.from_tensor_slices(job["files"]).shuffle(len(job["files"]), reshuffle_each_iteration=True).repeat()
    return (batch.shape[0] for batch in files.map(load, num_parallel_calls=job["threads"]).batch(job["batch"]).prefetch(2)
            .with_options(options))


def spdl_threads(job):
    import spdl.io
    from spdl.pipeline import PipelineBuilder

    def load(path):
        packets = spdl.io.demux_image(path)
        top, left, h, w = random_window(packets.height, packets.width)
        flip = ",hflip" if random.random() < 0.5 else ""
        wanted = f"crop={w}:{h}:{left}:{top}:exact=1,scale={SIDE}:{SIDE}:flags=bilinear{flip},format=rgb24"
        return spdl.io.decode_packets(packets, filter_desc=wanted)

    def order():
        return (job["files"][at] for at in Endless(len(job["files"])))
    pipeline = (PipelineBuilder().add_source(order()).pipe(load, concurrency=job["threads"]).aggregate(job["batch"])
                .pipe(lambda frames: spdl.io.to_numpy(spdl.io.convert_frames(frames))).add_sink(2).build(num_threads=job["threads"]))

    def batches():
        with pipeline.auto_stop():
            yield from (len(batch) for batch in pipeline)
    return batches()


def grain_opencv(job):
    import cv2
    import grain
    import numpy as np
    cv2.setNumThreads(0)
    data = (grain.MapDataset.source(job["files"]).shuffle(seed=1).repeat().map(with_opencv)
            .to_iter_dataset(grain.ReadOptions(num_threads=job["threads"], prefetch_buffer_size=4 * job["batch"]))
            .batch(job["batch"], batch_fn=np.stack))
    return (len(batch) for batch in data)


# ---- FFCV: a file of its own first ----

def ffcv_file(job, name, **field):
    """Made once by FFCV's own writer; kept in the cache folder."""
    from ffcv.fields import IntField, RGBImageField
    from ffcv.writer import DatasetWriter
    from PIL import Image

    class Pictures:
        def __len__(self):
            return len(job["files"])

        def __getitem__(self, at):
            return Image.open(job["files"][at]).convert("RGB"), at
    path = os.path.join(job["cache"], name + ".beton")
    if not os.path.exists(path):
        os.makedirs(job["cache"], exist_ok=True)
        DatasetWriter(path + ".part", {"image": RGBImageField(**field), "label": IntField()},
                      num_workers=job["threads"]).from_indexed_dataset(Pictures())
        os.rename(path + ".part", path)
    return path


def ffcv_stream(job, path, steps):
    """Epochs one after the other; indices many times over, because it drains at an epoch's end."""
    import numpy as np
    from ffcv.loader import Loader, OrderOption
    count = len(job["files"])
    loader = Loader(path, batch_size=job["batch"], num_workers=job["threads"], order=OrderOption.RANDOM, os_cache=True, drop_last=False,
                    indices=np.tile(np.arange(count), max(1, 100000 // count)), pipelines={"image": steps, "label": None})
    return (len(batch[0]) for _ in itertools.count() for batch in loader)


def ffcv_224(job, path):
    from ffcv.fields.decoders import RandomResizedCropRGBImageDecoder
    from ffcv.transforms import RandomHorizontalFlip
    return ffcv_stream(job, path, [RandomResizedCropRGBImageDecoder((SIDE, SIDE), AREA, ASPECT), RandomHorizontalFlip()])


def ffcv_jpeg(job):
    return ffcv_224(job, ffcv_file(job, "ffcv-q90-512", write_mode="jpg", max_resolution=512, jpeg_quality=90))


def ffcv_raw(job):
    return ffcv_224(job, ffcv_file(job, "ffcv-raw-256", write_mode="raw", max_resolution=256))


def ffcv_cifar(job):
    from ffcv.fields.decoders import SimpleRGBImageDecoder
    from ffcv.transforms import RandomHorizontalFlip, RandomTranslate
    return ffcv_stream(job, ffcv_file(job, "ffcv-raw-cifar", write_mode="raw"),
                       [SimpleRGBImageDecoder(), RandomHorizontalFlip(), RandomTranslate(padding=4)])


# ---- ours, through Python ----

def door(job):
    """Arrays of NumPy over the loader's own memory."""
    import millrace
    import numpy as np
    loader = millrace.Loader(job["data"], batch=job["batch"], augment="rrc224", training=True, epochs=None, workers=job["threads"],
                             rank=0, world=1)
    for batch in loader:
        yield len(np.asarray(batch.images)) + 0 * len(np.asarray(batch.labels))


def door_torch(job):
    """Tensors over that memory, epoch after epoch as a training loop takes them."""
    import millrace.torch
    loader = millrace.torch.Loader(job["data"], job["batch"], augment="rrc224", training=True, workers=job["threads"], uint8=True)
    return (len(images) for _ in itertools.count() for images, _ in loader)


LOADERS = {
    "door-folder": door, "door-records": door, "door-coef": door, "door-torch": door_torch,
    "tf-data": tf_data, "dali-cpu": dali_cpu, "torch-opencv": torch_opencv, "torch-pillow": torch_pillow, "torchvision": torchvision_v2,
    "webdataset": webdataset_opencv, "streaming": streaming_opencv, "grain": grain_opencv, "spdl": spdl_threads,
    "ffcv-jpeg": ffcv_jpeg, "ffcv-raw": ffcv_raw, "ffcv-cifar": ffcv_cifar,
}


# ---- CPU and memory of a process and all under it ----

def family(pid):
    found = [pid]
    for member in found:
        try:
            for task in os.listdir(f"/proc/{member}/task"):
                with open(f"/proc/{member}/task/{task}/children", encoding="ascii") as f:
                    found += map(int, f.read().split())
        except OSError:
            pass  # gone meanwhile
    return found


def cpu_seconds(pid):
    """User and system time, of children that ended too."""
    ticks = 0
    for member in family(pid):
        try:
            with open(f"/proc/{member}/stat", encoding="utf-8", errors="replace") as f:
                ticks += sum(map(int, f.read().rpartition(")")[2].split()[11:15]))
        except OSError:
            pass
    return ticks / os.sysconf("SC_CLK_TCK")


def sum_of(pid, name, key):
    """In MB: the field of /proc/PID/NAME over the family."""
    kib = 0
    for member in family(pid):
        try:
            with open(f"/proc/{member}/{name}", encoding="utf-8", errors="replace") as f:
                kib += sum(int(line.split()[1]) for line in f if line.startswith(key + ":"))
        except OSError:
            pass
    return round(kib / 1024, 1)


# ---- turns ----

def one_turn(stream, skip, seconds):
    for _ in range(skip):
        next(stream)
    cpu, start, samples = cpu_seconds(os.getpid()), time.perf_counter(), 0
    while (passed := time.perf_counter() - start) < seconds:
        samples += next(stream)
    me = os.getpid()
    return {"samples": samples, "seconds": passed, "cpu_s": round(cpu_seconds(me) - cpu, 3),
            "peak_rss_mb": sum_of(me, "status", "VmHWM"), "pss_mb": sum_of(me, "smaps_rollup", "Pss")}


def main():
    die_with_parent()
    answers = os.fdopen(os.dup(1), "w")  # some libraries print; that goes to stderr
    os.dup2(2, 1)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with open(sys.argv[2], encoding="utf-8") as f:
        job = json.load(f)
    stream = LOADERS[sys.argv[1]](job)
    one_turn(stream, 2, 0.2)  # imports, compilers, pools
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(one_turn(stream, **json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main()
