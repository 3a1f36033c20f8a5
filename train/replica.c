/* train/replica.c: a network compiled for one device.
 *
 *   input ─► op ─► op ─► ... ─► loss          every y keeps its place until backward has read it
 *             ▲gradient buffers 0,1 alternate▲ saved: what an op hands its own backward; scratch: one, shared by all
 *
 * What is decided here: which activations ride along in the op before them, where an op may work in place, where backward
 * ends (at the first layer with parameters, whose input's gradient nobody wants), and where everything lies in memory. The
 * whole need is known, and compared with the limit, before any of it is taken. Queues only; waits for nothing after open. */
#include <stdio.h>

#include "train/replica.h"

/* ------------------------------------------------------------------------------------------------ ops */

static mr_tensor picture_tensor(const mr_net *net)
{
    return (mr_tensor){.h = net->h, .w = net->w, .c = net->c, .dtype = MR_TENSOR_U8, .layout = MR_LAYOUT_NHWC,
                       .sample_bytes = (size_t)net->h * net->w * net->c};
}

static void describe_layer(mr_op_desc *d, const mri_layer *l, uint32_t at)
{
    d->kind = l->kind;
    d->activation = l->activation;
    d->filters = l->filters;
    d->kernel_h = d->kernel_w = l->kernel;
    d->stride_h = d->stride_w = l->stride;
    d->pad_top = l->pad_top, d->pad_left = l->pad_left, d->pad_bottom = l->pad_bottom, d->pad_right = l->pad_right;
    d->average = l->average;
    d->rate = l->rate;
    d->op_id = at;
    d->momentum = l->momentum, d->epsilon = l->epsilon;
}

static bool takes_activation(const mri_layer *l)
{
    const bool kind = l->kind == MR_OP_CONV2D || l->kind == MR_OP_DENSE || l->kind == MR_OP_BATCHNORM;
    return kind && l->activation == MR_ACT_NONE;
}

/* An op that writes over its input destroys what the op before it left for its own backward. That is harmless when that
 * backward needs no more than which outputs were positive: dropout keeps the sign of what it keeps, and hands no gradient
 * to what it drops. */
static bool may_overwrite(const mri_node *before, const mr_op_desc *before_desc, const mr_op_desc *desc)
{
    if (!before->backward) return true;
    if (desc->kind != MR_OP_DROPOUT) return false;
    return before_desc->activation == MR_ACT_NONE || before_desc->activation == MR_ACT_RELU;
}

/* Append an op on top of what is there. desc is completed; before is the description of the op below, NULL for the first. */
static int add_node(mri_replica *r, mr_op_desc *desc, const mr_op_desc *before, uint32_t layer, mr_error *err)
{
    mri_node *n = &r->nodes[r->node_count];
    desc->max_batch = r->plan.max_batch;
    desc->training = !r->plan.inference;
    desc->need_dx = desc->kind == MR_OP_LOSS;
    n->layer = layer;
    if (before) {
        const mri_node *below = n - 1;
        desc->in = below->info->out;
        desc->need_dx = desc->need_dx || below->backward;
    }
    const int rc = mr_op_create(&n->op, r->dev, desc, err);
    if (rc) return rc;
    n->info = mr_op_info_of(n->op);
    n->need_dx = desc->need_dx;
    n->backward = !r->plan.inference && (desc->need_dx || n->info->param_count > 0);
    n->inplace = before && n->info->inplace && may_overwrite(n - 1, before, desc);
    r->node_count++;
    return MR_OK;
}

static int build_nodes(mri_replica *r, mr_error *err)
{
    const mr_net *net = r->plan.net;
    r->nodes = calloc((size_t)net->layer_count + 2, sizeof *r->nodes);
    if (!r->nodes) return mr_error_set(err, MR_ENOMEM, "no memory for a network of %u layers", net->layer_count);
    mr_op_desc input = {.kind = MR_OP_INPUT, .in = picture_tensor(net)};
    memcpy(input.mean, r->plan.mean, sizeof input.mean);
    memcpy(input.std, r->plan.std, sizeof input.std);
    int rc = add_node(r, &input, NULL, UINT32_MAX, err);
    mr_op_desc before = input;
    for (uint32_t i = 0; rc == MR_OK && i < net->layer_count; i++) {
        mr_op_desc d = {0};
        const uint32_t at = i;
        describe_layer(&d, &net->layers[i], i);
        if (takes_activation(&net->layers[i]) && i + 1 < net->layer_count && net->layers[i + 1].kind == MR_OP_ACTIVATION)
            d.activation = net->layers[++i].activation;
        rc = add_node(r, &d, &before, at, err);
        before = d;
    }
    if (rc) return rc;
    mr_op_desc loss = {.kind = MR_OP_LOSS};
    return add_node(r, &loss, &before, UINT32_MAX, err);
}

/* ------------------------------------------------------------------------------------------------ memory */

typedef struct layout { size_t at; bool overflow; } layout;

static size_t take(layout *l, size_t bytes)
{
    const size_t at = l->at;
    if (!mri_add_size(at, bytes, &l->at) || l->at > SIZE_MAX / 2) l->overflow = true, l->at = 0;
    l->at = (size_t)mri_align_up(l->at, MR_DEVICE_ALIGN);
    return at;
}

static size_t batch_bytes(layout *l, const mri_replica *r, const mri_node *n)
{
    size_t bytes = 0;
    if (!mri_mul_size(n->info->out.sample_bytes, r->plan.max_batch, &bytes)) l->overflow = true;
    return bytes;
}

static uint64_t place_params(const mr_param_info *info, uint32_t count, uint64_t *places, uint64_t at)
{
    for (uint32_t p = 0; p < count; p++) {
        places[p] = at;
        at = mri_align_up(at + info[p].storage_count, MRI_PARAM_ALIGN);
    }
    return at;
}

/* Where every output lies. For evaluation alone two places are enough, used in turn. */
static void place_outputs(mri_replica *r, layout *l)
{
    size_t two[2] = {0, 0}, largest = 0;
    if (r->plan.inference) {
        for (uint32_t i = 0; i < r->node_count; i++) largest = (size_t)mri_max_u64(largest, batch_bytes(l, r, &r->nodes[i]));
        two[0] = take(l, largest), two[1] = take(l, largest);
    }
    uint32_t turn = 0;
    for (uint32_t i = 0; i < r->node_count; i++) {
        mri_node *n = &r->nodes[i];
        if (n->inplace) n->y_at = r->nodes[i - 1].y_at;
        else n->y_at = r->plan.inference ? two[turn++ % 2] : take(l, batch_bytes(l, r, n));
        n->saved_at = take(l, n->info->saved_bytes);
    }
}

static int place_all(mri_replica *r, mr_error *err)
{
    layout l = {0};
    size_t gradient = 0, scratch = 0;
    place_outputs(r, &l);
    for (uint32_t i = 0; i < r->node_count; i++) {
        mri_node *n = &r->nodes[i];
        r->weight_floats = place_params(n->info->param, n->info->param_count, n->param_at, r->weight_floats);
        r->stat_floats = place_params(n->info->state, n->info->state_count, n->state_at, r->stat_floats);
        if (n->backward) gradient = (size_t)mri_max_u64(gradient, batch_bytes(&l, r, n));
        scratch = (size_t)mri_max_u64(scratch, n->info->scratch_bytes);
    }
    r->gradient_at[0] = take(&l, gradient);
    r->gradient_at[1] = take(&l, gradient);
    r->scratch_at = take(&l, scratch);
    r->arena_bytes = l.at;
    const uint64_t arrays = r->plan.inference ? 1 : 2 + r->plan.slot_count;
    if (l.overflow || r->weight_floats > SIZE_MAX / 64)
        return mr_error_set(err, MR_ELIMIT, "network %s with a batch of %u: sizes beyond any memory", r->plan.net->name,
                            r->plan.max_batch);
    r->memory_bytes = r->arena_bytes + sizeof(float) * (arrays * r->weight_floats + r->stat_floats) + 2 * sizeof(mr_metrics);
    return MR_OK;
}

static int check_limit(const mri_replica *r, mr_error *err)
{
    const mr_device_info *info = mr_device_info_of(r->dev);
    uint64_t limit = r->plan.memory_bytes ? r->plan.memory_bytes : UINT64_MAX;
    if (info->memory_bytes) limit = mri_min_u64(limit, info->memory_bytes);
    if (r->memory_bytes <= limit) return MR_OK;
    const double   mib = 1 << 20;
    const uint64_t fixed = r->memory_bytes - r->arena_bytes;
    /* scratch need not shrink with the batch, nor does what alignment costs: the estimate is on the safe side */
    const uint64_t still = (r->arena_bytes - r->scratch_at) + 2 * MR_DEVICE_ALIGN * (uint64_t)r->node_count;
    const uint64_t moving = r->arena_bytes > still ? r->arena_bytes - still : 1;
    const double   part = limit > fixed + still ? (double)(limit - fixed - still) / (double)moving : 0;
    const uint64_t fits = (uint64_t)(part * r->plan.max_batch) * (r->plan.global_batch / r->plan.max_batch);
    char what[96];
    if (fits > 0) snprintf(what, sizeof what, "a global batch of about %llu would fit", (unsigned long long)fits);
    else snprintf(what, sizeof what, "not even a batch of one would fit: a smaller network is needed");
    return mr_error_set(err, MR_ELIMIT,
                        "network %s needs %.1f MiB on %s for %u samples of a global batch of %u (weights and optimizer %.1f, "
                        "activations %.1f), the limit is %.1f MiB; %s",
                        r->plan.net->name, (double)r->memory_bytes / mib, info->name, r->plan.max_batch,
                        r->plan.global_batch, (double)fixed / mib, (double)r->arena_bytes / mib, (double)limit / mib, what);
}

/* count floats of zeros, or nothing when count is 0. */
static int alloc_floats(mri_replica *r, uint64_t count, float **out, mr_error *err)
{
    if (count == 0) return MR_OK;
    void *address = NULL;
    int   rc = mr_device_alloc(r->dev, (size_t)count * sizeof(float), &address, err);
    if (rc) return rc;
    *out = address;
    rc = mr_fill_async(r->stream, address, 0, (size_t)count * sizeof(float));
    return rc ? mr_error_set(err, rc, "%s: cannot clear memory", mr_device_info_of(r->dev)->name) : MR_OK;
}

static int take_sums(mri_replica *r, mr_error *err)
{
    void *device = NULL, *host = NULL;
    int   rc = mr_device_alloc(r->dev, 2 * sizeof(mr_metrics), &device, err);
    if (rc) return rc;
    r->sums[0] = device, r->sums[1] = r->sums[0] + 1;
    rc = mr_host_alloc(r->dev, sizeof(mr_metrics), &host, err);
    if (rc) return rc;
    r->host_sums = host;
    rc = mr_fill_async(r->stream, device, 0, 2 * sizeof(mr_metrics));
    return rc ? mr_error_set(err, rc, "%s: cannot clear memory", mr_device_info_of(r->dev)->name) : MR_OK;
}

static int take_memory(mri_replica *r, mr_error *err)
{
    void *arena = NULL;
    int   rc = alloc_floats(r, r->weight_floats, &r->weights, err);
    if (rc == MR_OK) rc = alloc_floats(r, r->stat_floats, &r->stats, err);
    if (rc == MR_OK && !r->plan.inference) rc = alloc_floats(r, r->weight_floats, &r->grads, err);
    for (uint32_t s = 0; rc == MR_OK && !r->plan.inference && s < r->plan.slot_count; s++)
        rc = alloc_floats(r, r->weight_floats, &r->slot[s], err);
    if (rc == MR_OK) rc = take_sums(r, err);
    if (rc == MR_OK) rc = mr_device_alloc(r->dev, r->arena_bytes, &arena, err);
    r->arena = arena;
    return rc == MR_OK ? mr_stream_sync(r->stream, err) : rc;
}

/* ------------------------------------------------------------------------------------------------ weights */

static int init_node(const mri_replica *r, const mri_node *n, float *host, mr_error *err)
{
    int rc = MR_OK;
    for (uint32_t p = 0; rc == MR_OK && p < n->info->param_count; p++) {
        mri_init_param(&n->info->param[p], n->layer, r->plan.seed, host);
        rc = mr_op_param_import(n->op, false, p, r->weights + n->param_at[p], host, err);
    }
    for (uint32_t p = 0; rc == MR_OK && p < n->info->state_count; p++) {
        mri_init_param(&n->info->state[p], n->layer, r->plan.seed, host);
        rc = mr_op_param_import(n->op, true, p, r->stats + n->state_at[p], host, err);
    }
    return rc;
}

static int init_weights(const mri_replica *r, mr_error *err)
{
    uint64_t most = 1;
    for (uint32_t i = 0; i < r->node_count; i++) {
        const mr_op_info *info = r->nodes[i].info;
        for (uint32_t p = 0; p < info->param_count; p++) most = mri_max_u64(most, info->param[p].count);
        for (uint32_t p = 0; p < info->state_count; p++) most = mri_max_u64(most, info->state[p].count);
    }
    float *host = malloc((size_t)most * sizeof *host);
    if (!host) return mr_error_set(err, MR_ENOMEM, "no memory for initial weights: %zu bytes", (size_t)most * sizeof *host);
    int rc = MR_OK;
    for (uint32_t i = 0; rc == MR_OK && i < r->node_count; i++) rc = init_node(r, &r->nodes[i], host, err);
    free(host);
    return rc;
}

/* ------------------------------------------------------------------------------------------------ open, close */

int mri_replica_open(mri_replica *r, mr_device *dev, const mri_replica_plan *plan, mr_error *err)
{
    *r = (mri_replica){.dev = dev, .plan = *plan};
    int rc = mr_stream_create(&r->stream, dev, MR_STREAM_COMPUTE, err);
    if (rc == MR_OK) rc = build_nodes(r, err);
    if (rc == MR_OK) rc = place_all(r, err);
    if (rc == MR_OK) rc = check_limit(r, err);
    if (rc == MR_OK) rc = take_memory(r, err);
    if (rc == MR_OK) rc = init_weights(r, err);
    if (rc) mri_replica_close(r);
    return rc;
}

void mri_replica_close(mri_replica *r)
{
    mr_stream_destroy(r->stream); /* first: it finishes what still uses the rest */
    for (uint32_t i = 0; i < r->node_count; i++) mr_op_destroy(r->nodes[i].op);
    free(r->nodes);
    if (r->dev) {
        mr_device_free(r->dev, r->arena);
        mr_host_free(r->dev, r->host_sums);
        mr_device_free(r->dev, r->sums[0]);
        mr_device_free(r->dev, r->slot[1]);
        mr_device_free(r->dev, r->slot[0]);
        mr_device_free(r->dev, r->grads);
        mr_device_free(r->dev, r->stats);
        mr_device_free(r->dev, r->weights);
    }
    *r = (mri_replica){0};
}

/* ------------------------------------------------------------------------------------------------ passes */

static mr_op_args args_of(const mri_replica *r, uint32_t at, const mr_part *part, float scale, uint64_t step)
{
    const mri_node *n = &r->nodes[at];
    mr_op_args a = {
        .n = part->count,
        .x = at ? r->arena + r->nodes[at - 1].y_at : part->pixels,
        .y = r->arena + n->y_at,
        .saved = n->info->saved_bytes ? r->arena + n->saved_at : NULL,
        .scratch = n->info->scratch_bytes ? r->arena + r->scratch_at : NULL,
        .seed = r->plan.seed,
        .step = step,
        .first = part->first,
        .affine = r->plan.uses_affine ? part->affine : NULL,
        .labels = part->labels,
        .scale = scale,
    };
    for (uint32_t p = 0; p < n->info->param_count; p++) {
        a.param[p] = r->weights + n->param_at[p];
        a.dparam[p] = r->grads ? r->grads + n->param_at[p] : NULL;
    }
    for (uint32_t p = 0; p < n->info->state_count; p++) a.state[p] = r->stats + n->state_at[p];
    return a;
}

int mri_replica_forward(mri_replica *r, const mr_part *part, bool training, float scale, uint64_t step)
{
    int rc = MR_OK;
    for (uint32_t i = 0; rc == MR_OK && i < r->node_count; i++) {
        mr_op_args a = args_of(r, i, part, scale, step);
        a.training = training;
        a.metrics = r->sums[training ? MRI_SUMS_TRAINING : MRI_SUMS_EVALUATION];
        rc = mr_op_forward_async(r->nodes[i].op, r->stream, &a);
    }
    return rc;
}

int mri_replica_backward(mri_replica *r, const mr_part *part, float scale, uint64_t step)
{
    int      rc = MR_OK;
    uint32_t have = 0; /* the buffer that holds the gradient to the current op's output */
    for (uint32_t i = r->node_count; rc == MR_OK && i-- > 0 && r->nodes[i].backward;) {
        const mri_node *n = &r->nodes[i];
        const bool      loss = i + 1 == r->node_count;
        const uint32_t  next = loss || n->inplace ? have : 1 - have;
        mr_op_args a = args_of(r, i, part, scale, step);
        a.training = true;
        a.dy = loss ? NULL : r->arena + r->gradient_at[have];
        a.dx = n->need_dx ? r->arena + r->gradient_at[next] : NULL;
        rc = mr_op_backward_async(n->op, r->stream, &a);
        have = next;
    }
    return rc;
}
