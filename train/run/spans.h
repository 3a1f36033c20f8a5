/* train/run/spans.h: where in one stretch of memory buffers lie that are not all needed at the same time.
 * Knows no network. */
#ifndef MRI_SPANS_H
#define MRI_SPANS_H

#include "base/util.h"

/* bytes from time first to time last, both in it. */
typedef struct mri_span {
    size_t bytes;
    uint32_t first, last;
    size_t at; /* the answer: a multiple of the alignment */
} mri_span;

/* Give every span its place: no two that live at the same time overlap. *total: bytes in all. The largest is
 * placed first, each at the lowest place that is free for as long as it lives, so the result is near the most
 * that lives at once, seldom more. MR_ENOMEM, or MR_ELIMIT where sizes are beyond any memory. */
int mri_spans_place(mri_span *spans, uint32_t count, size_t align, size_t *total);

/* The most bytes that live at once: no placement is smaller. */
size_t mri_spans_floor(const mri_span *spans, uint32_t count, size_t align);

#endif
