/* train/run/plan.c: what a network keeps in memory from when to when. Time counts calls: node i runs forward
 * at i, backward at 2N - 1 - i. From that, train/run/spans.c finds the places.
 *
 *   y         from its forward to the last call that reads it: forward and backward of its takers, its own
 *             backward
 *   saved     from forward to backward          scratch   during one call
 *   gradient  from the backward that writes it to the backward of the op whose output it is of; two takers,
 *             two gradients
 *
 * The gradient to y turns into the gradient to the second input inside an addition (and a normalisation that
 * adds), and into the gradient to x inside an op that works in place: one span then lives on under the next
 * name. */
#include "train/run/replica.h"

typedef struct planning {
    mri_replica *r;
    uint32_t batch;
    bool overflow;
} planning;

static uint32_t backward_time(const mri_replica *r, uint32_t node) { return 2 * r->node_count - 1 - node; }

static void use(mri_replica *r, uint32_t span, uint32_t time)
{
    if (span == MRI_NONE) return;
    mri_span *s = &r->spans[span];
    if (time < s->first) s->first = time;
    if (time > s->last) s->last = time;
}

static uint32_t new_span(planning *p, size_t bytes, uint32_t time)
{
    if (bytes == 0) return MRI_NONE;
    p->r->spans[p->r->span_count] = (mri_span){.bytes = bytes, .first = time, .last = time};
    return p->r->span_count++;
}

static size_t batch_bytes(planning *p, const mri_node *n)
{
    size_t bytes = 0;
    if (!mri_mul_size(n->info->out.sample_bytes, p->batch, &bytes)) p->overflow = true;
    return bytes;
}

/* What an op saves grows with the batch; one that has parameters saves of them and of its channels only
 * (moments, weights in half precision). */
static size_t saved_bytes(const planning *p, const mri_node *n)
{
    const size_t whole = n->info->saved_bytes;
    if (n->info->param_count > 0) return whole;
    return (size_t)mri_min_u64(whole, 1 + (uint64_t)((double)whole * p->batch / p->r->plan.max_batch));
}

static void plan_forward(planning *p, uint32_t i)
{
    mri_replica *r = p->r;
    mri_node *n = &r->nodes[i];
    if (n->kind == MR_OP_LOSS) n->y_span = MRI_NONE; /* nobody wants the softmax */
    else n->y_span = n->inplace ? r->nodes[n->in].y_span : new_span(p, batch_bytes(p, n), i);
    n->saved_span = new_span(p, saved_bytes(p, n), i);
    n->scratch_span[0] = new_span(p, n->info->scratch_bytes, i);
    use(r, n->y_span, i);
    if (n->in != MRI_NONE) use(r, r->nodes[n->in].y_span, i);
    if (n->in2 != MRI_NONE) use(r, r->nodes[n->in2].y_span, i);
}

/* Note span as a gradient to the output of a node. */
static void give_gradient(mri_replica *r, uint32_t to, uint32_t span)
{
    mri_node *n = &r->nodes[to];
    if (n->dy_span == MRI_NONE) n->dy_span = span;
    else n->dy2_span = span;
}

static void plan_backward(planning *p, uint32_t i)
{
    mri_replica *r = p->r;
    mri_node *n = &r->nodes[i];
    const uint32_t now = backward_time(r, i);
    const bool add = n->kind == MR_OP_ADD;
    use(r, n->y_span, now);
    use(r, r->nodes[n->in].y_span, now);
    if (n->in2 != MRI_NONE) use(r, r->nodes[n->in2].y_span, now);
    use(r, n->saved_span, now);
    n->scratch_span[1] = new_span(p, n->info->scratch_bytes, now);
    use(r, n->dy_span, now);
    use(r, n->dy2_span, now);
    if (n->need_dx2) give_gradient(r, n->in2, n->dy_span);
    if (!n->need_dx) return;
    if (n->inplace || (add && !n->need_dx2)) { /* what arrived serves one, and it may have it */
        give_gradient(r, n->in, n->dy_span);
        if (!add) n->dx_span = n->dy_span;
        return;
    }
    n->dx_span = new_span(p, batch_bytes(p, &r->nodes[n->in]), now);
    give_gradient(r, n->in, n->dx_span);
}

int mri_replica_place_spans(mri_replica *r, uint32_t batch, size_t *arena_bytes)
{
    planning p = {.r = r, .batch = batch};
    if (!r->spans) r->spans = calloc((size_t)r->node_count * 5, sizeof *r->spans);
    if (!r->spans) return MR_ENOMEM;
    r->span_count = 0;
    for (uint32_t i = 0; i < r->node_count; i++) {
        mri_node *n = &r->nodes[i];
        n->scratch_span[1] = n->dy_span = n->dy2_span = n->dx_span = MRI_NONE;
        plan_forward(&p, i);
    }
    for (uint32_t i = r->node_count; i-- > 0;)
        if (r->nodes[i].backward) plan_backward(&p, i);
    if (p.overflow) return MR_ELIMIT;
    return mri_spans_place(r->spans, r->span_count, MR_DEVICE_ALIGN, arena_bytes);
}

/* ------------------------------------------------------------------------------ buckets */

/* Backward goes from the last node to the first, and gradients lie in the order of nodes: what is complete is
 * the end of the array. */
int mri_replica_fill_buckets(mri_replica *r, mr_error *err)
{
    uint64_t end = r->weight_floats;
    r->buckets = calloc(r->node_count, sizeof *r->buckets);
    if (!r->buckets) return mr_error_set(err, MR_ENOMEM, "no memory for %u gradient buckets", r->node_count);
    uint32_t lowest = 0; /* the last node of backward that has parameters */
    while (lowest < r->node_count && (!r->nodes[lowest].backward || r->nodes[lowest].info->param_count == 0))
        lowest++;
    for (uint32_t i = r->node_count; i-- > 0;) {
        const mri_node *n = &r->nodes[i];
        if (!n->backward || n->info->param_count == 0) continue;
        const uint64_t from = i == lowest ? 0 : n->param_at[0];
        const bool full = r->plan.bucket_bytes && (end - from) * sizeof(float) >= r->plan.bucket_bytes;
        if (!full && i != lowest) continue;
        r->buckets[r->bucket_count++] =
            (mri_bucket){.node = i == lowest ? 0 : i, .at = from, .count = end - from};
        end = from;
    }
    return MR_OK;
}
