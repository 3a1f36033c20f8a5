"""millrace.torch.Loader over code of Python's own: what its arguments say of that."""
from __future__ import annotations

import os
import re
from typing import Any, Callable, Dict, List, Optional, Sequence

import torch

from . import _library as _l
from ._augmented import OF_THE_PICTURE, AugmentedJob, see_usable
from ._collate import Collation
from ._decoded import Decoded
from ._errors import ArgumentError, BadSampleError, UnsupportedError
from ._live import Live, known, targets_in
from ._live_workers import LiveOfWorkers
from ._loader import OF_THE_SOURCE, Loader, log
from ._made import Made, Makers, see_generators, without_gil
from ._making import Bad, Job, generators_kept, is_class, is_picture, kind_of
from ._records import _shown as shown

_MORE = ("worker_init_fn", "multiprocessing_context", "timeout", "persistent_workers")
# What says something of pictures that the library decodes, and its usual value.
_OF_THE_LIBRARY = {"operations": None, "normalise": None, "fields": (), "cache": "off", "tune": False, "length_window": 0, "width_multiple": 1}
# What says that arrays of uint8 are pictures, and not tensors to keep, and its usual value.
_SAY_PICTURES = dict(_OF_THE_LIBRARY, channels=0, pixels="own", pictures="all")

TARGET = "target"


class Own:
    """The part that is Python's own of one loader's arguments.

    path  what stands for the data in the library's loader
    form  of batches that the library finishes for the functions, set by the loader: of Source.form()
    arrays_formed  arrays of uint8 are pictures, too
    said           which arguments of the form of batches the caller gave"""

    form: Dict[str, Any] = {}
    arrays_formed = True
    said: Sequence[str] = ()

    def __init__(self, live: Live, given: Dict[str, Any], workers: int) -> None:
        self.live, self._given, self.workers = live, given, workers
        self.path = Made(live)
        self.pictures_formed = given["transform"] is None  # the result of a transform is finished

    # ------------------------------------------------------------------ is it?

    @classmethod
    def of(cls, path: Any, functions: Dict[str, Any], settings: Dict[str, Any], ignore: int, said: List[str]) -> Optional["Own"]:
        """Takes Python's own entries out of the settings; None: the library makes the batches. said: arguments of the form of batches that
        the caller gave: arrays of uint8 are pictures then."""
        asked = [n for n in functions if functions[n] is not None]
        for n in asked:
            if not callable(functions[n]):
                raise ArgumentError("%s=: found %s, expected a function" % (n, type(functions[n]).__name__))
        augment = settings.get("augment", "none")
        files = isinstance(path, (str, bytes, os.PathLike))
        if files and not asked:
            return None
        if asked and augment != "none":
            return OwnOfAugmented.of_pictures(path, functions, settings, asked[0], ignore)
        if not asked and augment != "none":
            return None  # see for_augmentation()
        workers = settings.get("num_workers") or settings.get("workers") or 0
        live = cls._of_files(path, settings, ignore) if files else path if isinstance(path, Live) else Live(path)
        if not len(live.data):
            raise ArgumentError("%r has no samples" % live)
        given = dict(functions, **{n: settings.get(n) for n in _MORE})
        own = cls(live, given, workers)
        pictures = bool(said) or any(settings.get(n) not in (None, usual, []) for n, usual in _SAY_PICTURES.items())
        own.arrays_formed, own.said = files or pictures, said
        if said and functions["collate_fn"] is not None:
            raise ArgumentError("%s= and collate_fn=: the function makes the batch, and says what its tensors are; leave out %s=" % (said[0], said[0]))
        if not asked and (live.schema is not None or own._pictures(pictures)):
            return None
        if settings.get("order") == "balanced":
            raise ArgumentError("order=\"balanced\": of data that are files, loaded with augment=; with Python code of your own sampler= says the order, "
                                "such as torch.utils.data.WeightedRandomSampler")
        for n in _MORE:
            settings.pop(n, None)
        for n, usual in _OF_THE_LIBRARY.items():
            if settings.get(n, usual) != usual and settings.get(n) is not None:
                raise ArgumentError("%s=: of pictures that the library decodes and augments, and these samples are made by Python: %s" % (
                    n, "further fields are members of a sample, and of the batch" if n == "fields" else "leave it out"))
        return own

    @staticmethod
    def _of_files(path: Any, settings: Dict[str, Any], ignore: int) -> Live:
        """Pictures of a data set of files, decoded by the library in whichever process wants them."""
        fields = settings.pop("fields", ())
        data = Decoded(path, {n: settings.pop(n) for n in OF_THE_SOURCE if n in settings},
                       [f if isinstance(f, str) else dict(f).get("name", "") for f in fields], settings.get("channels", 0),
                       settings.pop("pixels", "own"), settings.pop("pictures", "all"), ignore)
        return Live(data, key=data.key)

    def _pictures(self, arrays: bool) -> bool:
        """Are samples pictures with a class, which the library takes from here? A worker is asked, where there are some, so that files
        which data open when they are first used are not open in this process when others are made of it."""
        job, kinds = self._job({"seed": 0}, None), ("pictures", "arrays") if arrays else ("pictures",)
        if not self.workers:
            with generators_kept():
                return job.probe() in kinds
        makers = self._made_by(job, 4, 1)
        try:
            return makers.pool.ask("probe") in kinds
        finally:
            makers.pool.close()

    # ------------------------------------------------------------------ the loader's

    def close(self) -> None:
        """Objects that were opened in this process."""

    def run_as(self, given: Dict[str, Any]) -> None:
        """The loader's settings are these from now on."""

    def settle(self, settings: Dict[str, Any]) -> int:
        """Into settings of the library's loader, which delivers numbers of samples; gives batches to be made ahead."""
        prefetch = settings.get("prefetch", 4)
        settings.update(prefetch=0, workers=1)
        return prefetch  # type: ignore[no-any-return]

    def _job(self, given: Dict[str, Any], collation: Optional[Collation]) -> Job:
        g = self._given
        return Job(self.live.data, len(self.live.data), seed=given["seed"], transform=g["transform"], target_transform=g["target_transform"],
                   collate=g["collate_fn"], collation=collation, bad=given.get("bad", "stop"), worker_init=g["worker_init_fn"])

    def _made_by(self, job: Job, prefetch: int, workers: int) -> Makers:
        timeout = self._given["timeout"] or 0
        return Makers(job, workers, self._given["multiprocessing_context"], timeout, prefetch, bool(self._given["persistent_workers"]), lambda text: log.info("%s", text))

    def makers(self, given: Dict[str, Any], collation: Collation, prefetch: int) -> Makers:
        return self._made_by(self._job(given, collation), prefetch, self.workers)


class OwnOfAugmented(Own):
    """With augment=: the library finishes the functions' inputs, of files and of a Python object's pictures."""

    @classmethod
    def of_pictures(cls, path: Any, functions: Dict[str, Any], settings: Dict[str, Any], asked: str, ignore: int) -> "OwnOfAugmented":
        see_usable(settings, asked)
        if settings.get("order") == "balanced":
            raise ArgumentError("order=\"balanced\" and %s=: the data say the order, and workers know numbers of samples only; sampler= says it, "
                                "such as torch.utils.data.WeightedRandomSampler" % asked)
        files = isinstance(path, (str, bytes, os.PathLike))
        of_picture = {n: settings.pop(n) for n in OF_THE_PICTURE if n in settings}
        of_source = {n: settings[n] for n in OF_THE_SOURCE if n in settings}
        live = cls._of_files(path, settings, ignore) if files else path if isinstance(path, Live) else Live(path)
        if not files:
            cls._see_pictures(live, asked, of_picture["augment"])
        with Loader(path if files else live, batch=1, training=settings.get("training", False), channels=settings.get("channels", 0), prefetch=0,
                    rank=0, world=1, **of_picture, **of_source) as looked:
            if not looked.shape:
                raise ArgumentError("augment=%r: the data have no pictures" % of_picture["augment"])
            text = looked.augment
        workers = settings.get("num_workers") or settings.get("workers") or 0
        made = cls(Live(live.data, live.schema, live.classes, "%s %s" % (live.key or "", text), live.sample_bytes),
                   dict(functions, **{n: settings.pop(n, None) for n in _MORE}), workers)
        made.pictures_formed = False  # by Python: the library does it
        made._of, made._arguments = path if files else live, dict(of_picture, **of_source)
        return made

    @staticmethod
    def _see_pictures(live: Live, asked: str, augment: str) -> None:
        if not len(live.data):
            raise ArgumentError("%r has no samples" % live)
        with generators_kept():
            sample = known(live.data[0])
        if kind_of(sample) != "pictures":
            raise ArgumentError("%s= and augment=%r: of pictures with a class, and sample 0 is %s: give pictures (of PIL, arrays of uint8, bytes of "
                                "JPEG or PNG), or do all of it in __getitem__ without augment=" % (asked, augment, shown(sample)))

    def _job(self, given: Dict[str, Any], collation: Optional[Collation]) -> Job:
        g = self._given
        self._one = AugmentedJob(self._of, self._arguments, self.form, given, self.live.data, seed=given["seed"], transform=g["transform"],
                                 target_transform=g["target_transform"], collate=g["collate_fn"], collation=collation,
                                 bad=given.get("bad", "stop"), worker_init=g["worker_init_fn"])
        return self._one

    def run_as(self, given: Dict[str, Any]) -> None:
        self._one.close()
        self._one.run_as(given)

    def close(self) -> None:
        self._one.close()


def with_field(sample: Any) -> Any:
    """A picture that the library augments, and a target that it has no label for, as a further field."""
    image, target = sample
    return {"image": image, TARGET: target.numpy() if isinstance(target, torch.Tensor) else target}


class Targeted:
    """Samples of another object, each with_field()."""

    def __init__(self, data: Any) -> None:
        self.data = data

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, k: int) -> Any:
        return with_field(self.data[k])


def for_augmentation(path: Any, settings: Dict[str, Any]) -> Any:
    """The data of a loader whose batches the library makes: (data, are targets a field?). With num_workers= samples of a Python object
    come from this number of processes. Samples that the library cannot take are an error that names the remedy."""
    if isinstance(path, (str, bytes, os.PathLike)) or not hasattr(path, "__getitem__") and not isinstance(path, Live) \
            or isinstance(path, (list, tuple)) and path and isinstance(path[0], (str, os.PathLike)):
        return path, False
    live, count = path if isinstance(path, Live) else Live(path), settings.get("num_workers") or 0
    if not len(live.data) or isinstance(live, LiveOfWorkers):
        return path, False
    if count:
        settings.pop("num_workers")
        context = settings.pop("multiprocessing_context", None)
        if context == "threads" or context is None and without_gil():
            live = Live(live.data, live.schema, live.classes, live.key, live.sample_bytes)
            live.threads = count
            settings["workers"] = max(_l.quick_lib.mr_cores(), 2 * count)
        else:
            live = LiveOfWorkers(live, count, context, settings.pop("worker_init_fn", None), 0)
            see_generators(live.job, count)
            settings["workers"] = max(_l.quick_lib.mr_cores(), 2 * count)  # threads of the library; some wait for samples
    try:
        field = _targets_are_a_field(live, settings)
    except BaseException:
        if isinstance(live, LiveOfWorkers):
            live.forget()
        raise
    if not field:
        return live, False
    if isinstance(live, LiveOfWorkers):
        live.change = with_field
        return live, True
    targeted = Live(Targeted(live.data), live.schema, live.classes, live.key, live.sample_bytes)
    targeted.threads = live.threads
    return targeted, True


def _see_label(sample: Any, settings: Dict[str, Any]) -> None:
    """A dict without a label may have it under another name."""
    if not isinstance(sample, dict) or "label" in sample or set(sample) <= {"image", "sample.name"}:
        return
    asked = [f if isinstance(f, str) else dict(f).get("name") for f in settings.get("fields") or ()]
    names = [str(n) for n, v in sample.items() if n not in asked and ("label" in str(n) or "class" in str(n)) and is_class(v)]
    log.warning("samples have no member \"label\", so no target counts%s", "; they have %s: rename one of these to \"label\", or ask for it by fields="
                % ", ".join(map(repr, names)) if names else "")


def _see_members(sample: Any, settings: Dict[str, Any]) -> None:
    """Members of a dict that no batch has."""
    asked = [f if isinstance(f, str) else dict(f).get("name") for f in settings.get("fields") or ()]
    left = [n for n in sample if n not in asked and n not in ("image", "label", "labels", "target", "sample.name")] if isinstance(sample, dict) else []
    if left:
        log.warning("samples have members that no batch has: %s; fields=%r delivers them", ", ".join(map(repr, left)), left)


# Operations after which every pixel is where it was.
_STAYS = frozenset(("none", "normalise", "normalise01", "standardise", "brightness", "contrast", "saturation", "hue", "jitter", "gray", "invert", "solarize",
                    "posterize", "autocontrast", "equalize", "sharpness", "blur", "erase", "cutout"))


def _see_following(image: Any, target: Any, augment: str) -> None:
    """A target of the picture's own size, which would stay where it is while the picture is cropped and flipped."""
    shape = tuple(getattr(image, "size", ())[::-1] if hasattr(image, "getbands") else getattr(image, "shape", ()))
    sizes = {shape[:2], shape[1:]} if len(shape) == 3 else {shape}
    moved = [op for op in re.sub(r"\([^()]*\)| ", "", augment).split(",") if op not in _STAYS]
    its = tuple(getattr(target, "shape", ()))
    if moved and len(its) >= 2 and (its[-2:] in sizes or its[:2] in sizes):
        raise ArgumentError("augment=%r: the target of sample 0 is %s, of the picture's own height and width, and would not be changed with it: give samples "
                            "as dicts, {\"image\": ..., \"mask\": ...}, with fields=[\"mask\"]" % (augment, shown(target)))


def _targets_are_a_field(live: Live, settings: Dict[str, Any]) -> bool:
    if live.schema is not None:
        return False
    if isinstance(live, LiveOfWorkers):
        sample = live.first()
    else:
        with generators_kept():
            sample = known(live.data[0])
    if kind_of(sample) == "pictures":
        _see_label(sample, settings)
        _see_members(sample, settings)
        return False
    image = sample.get("image") if isinstance(sample, dict) else sample[0] if isinstance(sample, tuple) and sample else sample
    if not is_picture(image):
        raise ArgumentError("augment=%r: of pictures (of PIL, arrays of uint8, bytes of picture files), and sample 0 has %s: leave out augment= for "
                            "finished tensors" % (settings.get("augment", "none"), shown(image)))
    if isinstance(sample, dict):
        _see_members(sample, settings)
        return False  # its fields are as fields= says
    if len(sample) == 2 and (isinstance(sample[1], float) or getattr(sample[1], "shape", None) is not None):
        _see_following(image, sample[1], settings.get("augment", "none"))
        if settings.get("bad") == "skip" or settings.get("tail") == "pad":
            raise ArgumentError("bad=\"skip\" and tail=\"pad\" go with targets that are classes, and the targets of sample 0 are %s: no value of theirs "
                                "says that a sample does not count" % shown(sample[1]))
        settings["fields"] = list(settings.get("fields") or ()) + [{"name": TARGET, "role": "plain"}]
        return True
    raise ArgumentError("augment=%r: sample 0 is %s. Beside a picture and a class the library takes named fields: give samples as dicts, "
                        "{\"image\": ..., \"label\": ..., \"boxes\": ...}, with fields=[\"boxes\"], which are changed as the picture is; or leave out "
                        "augment= and change both by a transform in Python" % (
                            settings.get("augment", "none"), "(%s)" % ", ".join(shown(v) for v in sample) if isinstance(sample, tuple) else shown(sample)))


class OwnMixin:
    """The part of a loader of PyTorch's for batches that Python makes."""

    _makers: Optional[Makers] = None
    _own: Optional[Own] = None
    _given: Dict[str, Any]

    @property
    def classes(self) -> List[str]:
        """Names of the classes; [] if the data have no names."""
        if self._own:
            return list(self._own.live.classes or [])
        return super().classes  # type: ignore[misc, no-any-return]

    @property
    def targets(self) -> List[int]:
        """The label of every sample, in the order of the data, without reading pictures."""
        if not self._own:
            return super().targets  # type: ignore[misc, no-any-return]
        targets = targets_in(self._own.live.data)
        if targets is None:
            raise UnsupportedError("these data are a Python object without `targets`: take them from the batches")
        return targets

    def _report(self, bad: List[Bad]) -> None:
        """Damaged samples of a batch, as the library reports its own."""
        assert self._makers is not None
        for b in bad:
            self._makers.bad_count += 1
            e = BadSampleError("sample %d: %s" % (b.sample, b.text))
            e.sample = b.sample
            call = self._given["on_bad"]
            call(e, b.substitute) if call else log.warning("damaged: %s", e)
            if self._makers.bad_count > self._given["max_bad"]:
                over = BadSampleError("%d samples are damaged, more than max_bad=%d; the last one is %s" % (
                    self._makers.bad_count, self._given["max_bad"], e))
                over.sample = b.sample
                raise over
