"""millrace.tensorflow: batches as a tf.data.Dataset.

    for images, labels in millrace.tensorflow.dataset(millrace.Loader("photos", batch=256, ...)):
        ..."""
from __future__ import annotations

from typing import Any, Iterator, Optional, Tuple

try:
    import tensorflow as tf
except ImportError as e:  # pragma: no cover
    raise ImportError("millrace.tensorflow needs TensorFlow: pip install tensorflow") from e

from ._loader import Loader


def dataset(source: Loader, num_classes: Optional[int] = None) -> Any:
    """(images, labels) of every batch that is left, uint8 (n, height, width, channels) and int32. TensorFlow takes their memory without
    a copy where it can; that is used again when no tensor has it any more, so prefetch(), cache(), list() and whatever else keeps
    tensors may do so, as far as memory goes. Batches that it takes ahead count as delivered: take state_dict() between epochs only. Of mixed
    pictures (`mixup`, `cutmix`) labels are float32 (n, classes), num_classes where the data do not say how many there are."""
    classes = source._soft_classes(num_classes)

    def generate() -> Iterator[Tuple[Any, Any]]:
        source._finish_bytes(classes)
        for batch in source:
            yield batch.images.numpy(), (batch.targets if classes else batch.labels).numpy().copy()  # who keeps all labels keeps no pictures
            del batch
    height, width, channels = source.shape
    return tf.data.Dataset.from_generator(generate, output_signature=(
        tf.TensorSpec((None, height, width, channels), tf.uint8),
        tf.TensorSpec((None, classes), tf.float32) if classes else tf.TensorSpec((None,), tf.int32)))


def tensors(batch: Any) -> Tuple[Any, Any]:
    """(images, labels) of one batch without a copy."""
    images, labels = batch
    take = tf.experimental.dlpack.from_dlpack  # it takes a capsule of the older kind
    return take(images.__dlpack__()), take(labels.__dlpack__())


__all__ = ["dataset", "tensors"]
