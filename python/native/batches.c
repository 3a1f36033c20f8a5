/* python/native/batches.c: see native.h. */
#include "python/native/batch.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int mrp_next(mr_loader *l, uint32_t keep, uint64_t timeout_ns, mrp_batch **out, mr_error *err)
{
    *out = NULL;
    if (mr_loader_kept(l) >= keep) /* only this thread adds to them */
        return mr_error_set(err, MR_ELIMIT, "%u batches are in use", keep);
    mrp_batch *b = calloc(1, sizeof *b);
    if (!b) return mr_error_set(err, MR_ENOMEM, "no memory for a batch");
    int rc = mr_loader_next(l, &b->view, timeout_ns, err);
    if (rc == MR_OK) rc = mr_loader_keep(l, &b->view, &b->kept, err);
    if (rc != MR_OK) {
        free(b);
        return rc;
    }
    b->view.parts = NULL; /* the loader's own */
    b->view.part_count = 0;
    b->process = getpid();
    atomic_init(&b->refs, 1);
    *out = b;
    return MR_OK;
}

const mr_batch *mrp_batch_view(const mrp_batch *b) { return &b->view; }

const void *mrp_batch_targets(const mrp_batch *b) { return b->targets; }

void mrp_batch_ref(mrp_batch *b) { atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed); }

void mrp_batch_unref(mrp_batch *b)
{
    if (atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) != 1) return;
    if (b->process != getpid()) return; /* a lock may have been held when the process was copied */
    if (b->gone) {
        b->gone(b);
        return;
    }
    mr_kept_drop(b->kept);
    free(b->pixels);
    free(b);
}

/* The pixels move to where array libraries want them: aligned. */
static int own(const mr_image *image, mrp_batch **out, mr_error *err)
{
    const size_t bytes = (size_t)image->height * image->width * image->channels,
                 rows = (bytes + 63) / 64 * 64;
    mrp_batch *b = calloc(1, sizeof *b);
    if (b) b->pixels = aligned_alloc(64, rows);
    if (!b || !b->pixels) {
        free(b);
        return mr_error_set(err, MR_ENOMEM, "no memory for a picture of %zu bytes", bytes);
    }
    memcpy(b->pixels, image->pixels, bytes);
    b->view.pixels = b->pixels;
    b->process = getpid();
    atomic_init(&b->refs, 1);
    *out = b;
    return MR_OK;
}

int mrp_decode(const void *data, size_t bytes, const mr_image_part *part, const mr_decode_config *cfg,
               mrp_batch **out, uint32_t shape[3], mr_error *err)
{
    const int type = mr_image_sniff(data, bytes);
    *out = NULL;
    if (!type)
        return mr_error_set(err, MR_EUNSUPPORTED,
                            "not a picture that is decoded: %zu bytes of something else", bytes);
    const mr_value value = {.type = (mr_type)type, .data = data, .bytes = bytes};
    return mrp_decode_value(&value, part, cfg, out, shape, err);
}

int mrp_decode_value(const mr_value *value, const mr_image_part *part, const mr_decode_config *cfg,
                     mrp_batch **out, uint32_t shape[3], mr_error *err)
{
    mr_image image;
    *out = NULL;
    int rc =
        part ? mr_image_decode_part(value, part, cfg, &image, err) : mr_image_decode(value, cfg, &image, err);
    if (rc != MR_OK) return rc;
    rc = own(&image, out, err);
    shape[0] = image.height;
    shape[1] = image.width;
    shape[2] = image.channels;
    mr_image_free(&image);
    return rc;
}
