"""millrace.tensorflow: batches as a tf.data.Dataset.

    for images, labels in millrace.tensorflow.dataset(millrace.Loader("photos", batch=256, ...)):
        ..."""
from __future__ import annotations

from typing import Any, Dict, Iterator, Optional, Tuple

try:
    import tensorflow as tf
except ImportError as e:  # pragma: no cover
    raise ImportError("millrace.tensorflow needs TensorFlow: pip install tensorflow") from e

from ._arrays import DTYPES
from ._loader import Loader


def _field_specs(source: Loader) -> Dict[str, Any]:
    """As Batch._further() has them."""
    out: Dict[str, Any] = {}
    for name, kind, varies, dims in source._field_shapes:
        if name in source._field_texts:
            out[name] = tf.TensorSpec((None,), tf.string)
            continue
        out[name] = tf.TensorSpec((None,) + ((None,) if varies else ()) + dims, tf.as_dtype(DTYPES[kind][0]))
        if varies:
            out[name + ".length"] = tf.TensorSpec((None,), tf.int32)
    return out


def dataset(source: Loader, num_classes: Optional[int] = None, dtype: str = "uint8") -> Any:
    """(images, labels) of every batch that is left, (n, height, width, channels) and int32. TensorFlow takes their memory without
    a copy where it can; that is used again when no tensor has it any more, so prefetch(), cache(), list() and whatever else keeps
    tensors may do so, as far as memory goes. Batches that it takes ahead count as delivered: take state_dict() between epochs only. Of mixed
    pictures (`mixup`, `cutmix`) labels are float32 (n, classes), num_classes where the data do not say how many there are.

    dtype  of images: "uint8", the pixels; "float32", "float16", "bfloat16": normalised as the augmentation says, else from 0 to 1

    With fields= elements are (images, labels, {name: tensor}), lengths of rows that differ under "name.length", texts as tf.string. Data
    without pictures give (labels, {name: tensor})."""
    classes, specs = source._soft_classes(num_classes), _field_specs(source)
    source._finish_as(dtype, classes)

    def generate() -> Iterator[Tuple[Any, ...]]:
        source._finish_as(dtype, classes)  # another data set of this loader may have said something else
        for batch in source:
            labels = (batch.targets if classes else batch.labels).numpy().copy()  # who keeps all labels keeps no pictures
            fields = {n: tf.constant(a, tf.string) if isinstance(a, list) else a for n, a in batch._further().items()}
            yield (() if batch.images is None else (batch.images._typed(),)) + (labels,) + ((fields,) if fields else ())
            del batch
    images = (tf.TensorSpec((None,) + source.shape, tf.as_dtype(dtype)),) if source.shape else ()
    labels = tf.TensorSpec((None, classes), tf.float32) if classes else tf.TensorSpec((None,), tf.int32)
    return tf.data.Dataset.from_generator(generate, output_signature=images + (labels,) + ((specs,) if specs else ()))


def tensors(batch: Any) -> Tuple[Any, Any]:
    """(images, labels) of one batch without a copy."""
    images, labels = batch
    take = tf.experimental.dlpack.from_dlpack  # it takes a capsule of the older kind
    return take(images.__dlpack__()), take(labels.__dlpack__())


__all__ = ["dataset", "tensors"]
