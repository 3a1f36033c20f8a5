/* python/native/batch.h: what files of this room share of a batch and of the form its pictures get. */
#ifndef MRP_BATCH_H
#define MRP_BATCH_H

#include <stdatomic.h>
#include <sys/types.h>

#include "python/native/native.h"

/* A batch is one of three: kept by a loader, with pixels of its own (mrp_decode), or finished (finish.c). */
struct mrp_batch {
    atomic_int refs;
    pid_t process; /* that took it */
    mr_kept *kept;
    void *pixels;
    void (*gone)(mrp_batch *b); /* of a finished one: the last reference was dropped */
    const void *targets;        /* of a finished one, or NULL */
    mr_batch view;
};

/* pixels.c: pictures of a batch in the form that `how` says, into out: count * height * width * channels
 * elements of how->dtype. affine: count pairs, in place of mean and std, or NULL. */
void mrp_form_pixels(const mrp_finish *how, const uint8_t *pixels, uint32_t count, const float *affine,
                     void *out);
/* pixels_avx2.c: the same of the first pixels of one picture, where the processor can. Gives how many it did.
 */
size_t mrp_form_avx2(const mrp_finish *how, const uint8_t *in, size_t pixels, const float *affine, void *out);

#endif
