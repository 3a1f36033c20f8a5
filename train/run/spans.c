/* train/run/spans.c: greedy placement of buffers by lifetime.
 *
 *   at │ ┌─────A─────┐        largest first; B and C never live together and share a place,
 *      │ ┌──B──┐┌─C──┐        D goes to the first gap that is free for its whole life
 *      │   ┌D┐   ┌─E─┐
 *      └──────────────► time */
#include "train/run/spans.h"

#include "millrace/base.h"

static int larger_first(const void *a, const void *b)
{
    const mri_span *const *x = a, *const *y = b;
    if ((*x)->bytes != (*y)->bytes) return (*x)->bytes < (*y)->bytes ? 1 : -1;
    return *x < *y ? -1 : *x > *y; /* same answer everywhere */
}

static bool together(const mri_span *a, const mri_span *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* The lowest place for s among those placed; false when it lies beyond any memory. */
static bool find_place(mri_span *const *placed, uint32_t count, mri_span *s, size_t align)
{
    size_t at = 0;
    for (uint32_t i = 0; i < count; i++) {
        const mri_span *p = placed[i];
        if (!together(p, s)) continue;
        if (p->at >= at && p->at - at >= s->bytes) break;
        const size_t end = (size_t)mri_align_up(p->at + p->bytes, align);
        if (end > at) at = end;
    }
    s->at = at;
    return at <= SIZE_MAX / 4 && s->bytes <= SIZE_MAX / 4;
}

static void insert(mri_span **placed, uint32_t count, mri_span *s)
{
    uint32_t i = count;
    for (; i > 0 && placed[i - 1]->at > s->at; i--) placed[i] = placed[i - 1];
    placed[i] = s;
}

int mri_spans_place(mri_span *spans, uint32_t count, size_t align, size_t *total)
{
    *total = 0;
    if (count == 0) return MR_OK;
    mri_span **order = malloc(2 * (size_t)count * sizeof(mri_span *)), **placed = order + count;
    if (!order) return MR_ENOMEM;
    for (uint32_t i = 0; i < count; i++) order[i] = &spans[i];
    qsort(order, count, sizeof(mri_span *), larger_first);
    int rc = MR_OK;
    for (uint32_t i = 0; rc == MR_OK && i < count; i++) {
        if (!find_place(placed, i, order[i], align)) rc = MR_ELIMIT;
        insert(placed, i, order[i]);
        *total = (size_t)mri_max_u64(*total, mri_align_up(order[i]->at + order[i]->bytes, align));
    }
    free(order);
    return rc;
}

size_t mri_spans_floor(const mri_span *spans, uint32_t count, size_t align)
{
    size_t most = 0;
    for (uint32_t i = 0; i < count; i++) { /* the sum only rises where one begins */
        size_t sum = 0;
        for (uint32_t k = 0; k < count; k++)
            if (spans[k].first <= spans[i].first && spans[i].first <= spans[k].last)
                sum += (size_t)mri_align_up(spans[k].bytes, align);
        most = (size_t)mri_max_u64(most, sum);
    }
    return most;
}
