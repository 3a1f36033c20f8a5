"""millrace.jax: batches as JAX arrays.

    for images, labels in millrace.jax.batches(millrace.Loader("photos", batch=256, ...)):            # this process's part
        ...
    for images, labels in millrace.jax.batches(loader, sharding=NamedSharding(mesh, P("data"))):      # global arrays
        ..."""
from __future__ import annotations

from typing import Any, Iterator, Optional, Tuple

try:
    import jax
except ImportError as e:  # pragma: no cover
    raise ImportError("millrace.jax needs JAX: pip install jax") from e

from ._arrays import Batch
from ._errors import ArgumentError
from ._loader import Loader
from ._typed import LoaderSettings, Unpack

def loader(path: Any, **settings: Unpack[LoaderSettings]) -> Loader:
    """A Loader that delivers this process's share of every batch; jax.distributed has the number of processes."""
    settings.setdefault("rank", jax.process_index())
    settings.setdefault("world", jax.process_count())
    return Loader(path, **settings)


def _global(a: Any, name: str, sharding: Any, batch: Batch, world: int) -> Any:
    """An array of all processes, of which `a` is this one's part."""
    if batch.all_count % world:
        raise ArgumentError("a batch of %d samples does not divide among %d processes: use tail=\"drop\" or \"pad\", and a batch that does" % (
            batch.all_count, world))
    if world > 1 and name in batch.lengths:
        raise ArgumentError("fields=%r: rows of differing lengths have another width in each process, and make no global array: leave out sharding=, or "
                            "give samples of one length" % name)
    return jax.make_array_from_process_local_data(sharding, a, (batch.all_count,) + a.shape[1:])


def batches(source: Loader, sharding: Any = None, num_classes: Optional[int] = None, dtype: str = "uint8") -> Iterator[Tuple[Any, ...]]:
    """(images, labels) of every batch that is left: images (n, height, width, channels), over memory on the processor that is used again
    when no array has it any more, and int32. Of mixed pictures (`mixup`, `cutmix`) labels are float32 (n, classes), num_classes where
    the data do not say how many there are. With a sharding, global arrays made of the parts of all processes; the batch must then divide
    evenly, so use tail="drop" or "pad".

    dtype  of images: "uint8", the pixels; "float32", "float16", "bfloat16": normalised as the augmentation says, else from 0 to 1

    With fields= batches are (images, labels, {name: array}), lengths of rows that differ under "name.length"; texts are lists, with a
    sharding of this process. Without jax_enable_x64 JAX makes 32-bit numbers of 64-bit ones. Data without pictures have images None."""
    classes = source._soft_classes(num_classes)
    source._finish_as(dtype, classes)
    for batch in source:
        labels = (batch.targets if classes else batch.labels).numpy().copy()  # who keeps all labels keeps no pictures
        further, images = batch._further(), batch.images
        if sharding is None:
            arrays = (None if images is None else jax.dlpack.from_dlpack(images), jax.numpy.asarray(labels))
            fields = {n: a if isinstance(a, list) else jax.numpy.asarray(a) for n, a in further.items()}
        else:
            arrays = tuple(None if a is None else _global(a, "", sharding, batch, source.world)
                           for a in (None if images is None else images._typed(), labels))
            fields = {n: a if isinstance(a, list) else _global(a, n, sharding, batch, source.world) for n, a in further.items()}
        yield arrays + (fields,) if fields else arrays
        del batch, arrays, images, fields, further


__all__ = ["batches", "loader"]
