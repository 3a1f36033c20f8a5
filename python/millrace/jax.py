"""millrace.jax: batches as JAX arrays.

    for images, labels in millrace.jax.batches(millrace.Loader("photos", batch=256, ...)):            # this process's part
        ...
    for images, labels in millrace.jax.batches(loader, sharding=NamedSharding(mesh, P("data"))):      # global arrays
        ..."""
from __future__ import annotations

from typing import Any, Iterator, List, Optional, Tuple

try:
    import jax
except ImportError as e:  # pragma: no cover
    raise ImportError("millrace.jax needs JAX: pip install jax") from e

from ._errors import ArgumentError
from ._loader import Loader
from ._typed import LoaderSettings, Unpack

def loader(path: Any, **settings: Unpack[LoaderSettings]) -> Loader:
    """A Loader that delivers this process's share of every batch; jax.distributed has the number of processes."""
    settings.setdefault("rank", jax.process_index())
    settings.setdefault("world", jax.process_count())
    return Loader(path, **settings)


def batches(source: Loader, sharding: Any = None, num_classes: Optional[int] = None) -> Iterator[Tuple[Any, Any]]:
    """(images, labels) of every batch that is left: uint8 (n, height, width, channels) and int32, over memory on the processor that
    is used again when no array has it any more. Of mixed pictures (`mixup`, `cutmix`) labels are float32 (n, classes), num_classes where
    the data do not say how many there are. With a sharding, global arrays made of the parts of all processes; the batch must then divide
    evenly, so use tail="drop" or "pad"."""
    classes = source._soft_classes(num_classes)
    source._finish_bytes(classes)
    for batch in source:
        arrays: List[Any] = []
        labels = (batch.targets if classes else batch.labels).numpy().copy()  # who keeps all labels keeps no pictures
        for a in (None if batch.images is None else batch.images.numpy(), labels):
            if a is None:
                arrays.append(None)
            elif sharding is None:
                arrays.append(jax.dlpack.from_dlpack(batch.images) if a is not labels else jax.numpy.asarray(a))
            else:
                if batch.all_count % source.world:
                    raise ArgumentError("a batch of %d samples does not divide among %d processes: use tail=\"drop\" or \"pad\", and a "
                                        "batch that does" % (batch.all_count, source.world))
                arrays.append(jax.make_array_from_process_local_data(sharding, a, (batch.all_count,) + a.shape[1:]))
        yield arrays[0], arrays[1]
        del batch, arrays


__all__ = ["batches", "loader"]
