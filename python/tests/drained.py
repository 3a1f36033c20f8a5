"""The batches of a loader, for tests to compare."""


def drain(loader, most=None):
    """[(epoch, step, ids, labels, pixels as bytes)]"""
    import numpy as np
    out = []
    for batch in loader:
        out.append((batch.epoch, batch.step, batch.ids.tolist(), batch.labels.tolist(), np.asarray(batch.images).tobytes()))
        del batch
        if most and len(out) == most:
            break
    return out
