"""millrace.keras: data for fit(), evaluate() and predict() of Keras 3, on its TensorFlow, JAX and PyTorch backends.

    train = millrace.keras.Dataset("photos/train", 64, augment="rrc224", training=True)
    val = millrace.keras.Dataset("photos/val", 64, augment="center224")
    model.fit(train, validation_data=val, epochs=10)"""
from __future__ import annotations

from typing import Any, Dict, Iterator, List, Optional, Tuple

try:
    import keras
except ImportError as e:  # pragma: no cover
    raise ImportError("millrace.keras needs Keras 3: pip install keras") from e
try:
    from keras.src.trainers.data_adapters.data_adapter import DataAdapter
except ImportError as e:  # pragma: no cover
    raise ImportError("millrace.keras needs Keras 3.0 or newer; this is %s" % keras.__version__) from e

from . import _ranks
from ._arrays import Batch
from ._errors import ArgumentError
from ._finish import KINDS, Finish
from ._passes import Passes
from ._typed import Settings, Unpack

class _Loader(Passes):
    """(images, targets[, weights]) as NumPy arrays."""
    _parts_count = False  # Keras looks at the first batches before it begins

    def _deliver(self, batch: Batch) -> Tuple[Any, ...]:
        images = None if batch.images is None else batch.images.numpy()
        labels = batch.labels.numpy()
        if batch.targets is not None and self._finish and self._finish.classes:
            targets = batch.targets.numpy().copy()  # who keeps all targets keeps no pictures
        else:
            targets = labels.clip(0) if batch.counted < batch.count else labels.copy()
        return (images, targets, (labels >= 0).astype("float32")) if self.weighted else (images, targets)

    weighted = False

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        yield from self._begin_pass()  # when the first batch is asked for: Keras makes iterators that it does not use


class _Tensors:
    """What Keras's PyTorch backend takes for a DataLoader."""

    def __init__(self, loader: _Loader) -> None:
        self._loader = loader

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[Tuple[Any, ...]]:
        import torch
        for arrays in self._loader:
            yield tuple(torch.from_numpy(a) for a in arrays)
            del arrays


class Dataset(keras.utils.PyDataset, DataAdapter):  # type: ignore[misc]
    """A data set for Keras: every epoch of fit() is the next epoch of the data, each sample once, shuffled where training=True.

    batch_size   samples in a batch of this process; or `batch`, of all
    dtype        "float32" (normalised as the augmentation says), "float16", or "uint8", the pixels, for models with layers that scale
    data_format  "channels_last" or "channels_first"; None: as keras.config.image_data_format() says
    num_classes  with `mixup` or `cutmix` in augment=, where the data do not say how many classes there are; targets are shares then

    Everything else is as for millrace.Loader, but `epochs`. Where samples may not count (tail="pad", bad="skip", data without labels),
    batches have sample weights: 0 for these, whose target is 0. fit()'s shuffle= and class_weight= change nothing here. Memory of
    batches is used again when no tensor has it any more, so whatever keeps some may do so."""

    def __init__(self, path: Any, batch_size: Optional[int] = None, *, batch: Optional[int] = None, dtype: str = "float32",
                 data_format: Optional[str] = None, num_classes: Optional[int] = None, **settings: Unpack[Settings]) -> None:
        super().__init__(workers=1, use_multiprocessing=False)
        if (batch_size is None) == (batch is None):
            raise ArgumentError("give batch_size= (of each process) or batch= (of all together)")
        if "epochs" in settings:
            raise ArgumentError("epochs=: fit() says how many")
        if "fields" in settings:
            raise ArgumentError("fields=: fit() takes images, targets and weights, and has no place for fields. With TensorFlow installed fit() takes "
                                "millrace.tensorflow.dataset(millrace.Loader(..., fields=[\"mask\"]), dtype=\"float32\").map(lambda x, y, f: (x, f[\"mask\"]))")
        if dtype not in ("float32", "float16", "uint8"):
            raise ArgumentError("dtype=%r: expected \"float32\", \"float16\" or \"uint8\"" % (dtype,))
        data_format = data_format or keras.config.image_data_format()
        if data_format not in ("channels_last", "channels_first"):
            raise ArgumentError("data_format=%r: expected \"channels_last\" or \"channels_first\"" % (data_format,))
        rank, world = _ranks.find(settings.pop("rank", None), settings.pop("world", None))
        self._dtype = dtype
        self.loader = loader = _Loader(path, batch=batch if batch is not None else batch_size * world, epochs=None, rank=rank, world=world,  # type: ignore[operator]
                                       **settings)
        self._classes = loader._soft_classes(num_classes)
        loader.weighted = settings.get("tail") == "pad" or settings.get("bad") == "skip" or not loader._labelled
        means, stds = loader._numbers()
        loader._finish = Finish(loader, KINDS[dtype], data_format == "channels_first", means, stds, classes=self._classes)

    # ------------------------------------------------------------------ what Keras asks

    @property
    def num_batches(self) -> int:
        return len(self.loader)

    def __len__(self) -> int:
        return len(self.loader)

    def __getitem__(self, index: int) -> Any:
        raise TypeError("batches come in order, by iterating: for images, targets in dataset")

    def __iter__(self) -> Iterator[Tuple[Any, ...]]:
        return iter(self.loader)

    @property
    def batch_size(self) -> int:
        return -(-self.loader.batch // self.loader.world)

    @property
    def has_partial_batch(self) -> bool:
        return self.partial_batch_size is not None

    @property
    def partial_batch_size(self) -> Optional[int]:
        last = self.loader._per_epoch - (len(self.loader) - 1) * self.loader.batch
        return None if last == self.loader.batch else last

    def get_numpy_iterator(self) -> Any:
        return self.loader

    def get_jax_iterator(self) -> Any:
        return self.loader

    def get_torch_dataloader(self) -> Any:
        return _Tensors(self.loader)

    def get_tf_dataset(self) -> Any:
        import tensorflow as tf
        finish = self.loader._finish
        assert finish is not None
        specs: List[Any] = [tf.TensorSpec((None,) + finish.shape, self._dtype),
                            tf.TensorSpec((None, self._classes), tf.float32) if self._classes else tf.TensorSpec((None,), tf.int32)]
        if self.loader.weighted:
            specs.append(tf.TensorSpec((None,), tf.float32))
        return tf.data.Dataset.from_generator(lambda: iter(self.loader), output_signature=tuple(specs)).prefetch(tf.data.AUTOTUNE)

    # ------------------------------------------------------------------ what else there is

    @property
    def classes(self) -> List[str]:
        return self.loader.classes

    def set_epoch(self, epoch: int) -> None:
        """The next epoch of fit() is this one."""
        self.loader.set_epoch(epoch)

    def state_dict(self) -> Dict[str, Any]:
        """Which epoch comes next: between epochs, as in a callback's on_epoch_end()."""
        return self.loader.state_dict()

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        self.loader.load_state_dict(state)

    def close(self) -> None:
        self.loader.close()


__all__ = ["Dataset"]
