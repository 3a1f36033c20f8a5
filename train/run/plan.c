/* train/run/plan.c: the data of a network in memory, and its lifetimes. Time counts calls: node i runs
 * forward at i, backward at 2N - 1 - i. From that, train/run/spans.c finds the places.
 *
 *   y         from its forward to the last call that reads it: forward and backward of its takers, its own
 *             backward
 *   saved     from forward to backward          scratch   during one call
 *   gradient  from the backward that writes it to the backward of the op whose output it is of; two takers,
 *             two gradients
 *
 * The gradient to y turns into the gradient to the second input inside an addition (and a normalisation that
 * adds), and into the gradient to x inside an op that works in place: one span then lives on under the next
 * name. A concatenation and a product with factors write both. */
#include <stdio.h>

#include "train/run/plan.h"

typedef struct planning {
    mri_plan *plan;
    mri_nodes *nodes;
    const mri_replica_config *cfg;
    uint32_t batch;
    bool scratch_grows; /* with the batch, all of it; else it is as for the largest one */
    bool overflow;
} planning;

static uint32_t backward_time(const planning *p, uint32_t node) { return 2 * p->nodes->count - 1 - node; }

static void use(const planning *p, uint32_t span, uint32_t time)
{
    if (span == MRI_NONE) return;
    mri_span *s = &p->plan->spans[span];
    if (time < s->first) s->first = time;
    if (time > s->last) s->last = time;
}

static uint32_t new_span(planning *p, size_t bytes, uint32_t time)
{
    if (bytes == 0) return MRI_NONE;
    p->plan->spans[p->plan->span_count] = (mri_span){.bytes = bytes, .first = time, .last = time};
    return p->plan->span_count++;
}

static size_t batch_bytes(planning *p, const mri_node *n)
{
    size_t bytes = 0;
    if (!mri_mul_size(n->info->out.sample_bytes, p->batch, &bytes)) p->overflow = true;
    return bytes;
}

/* What an op saves grows with the batch; one that has parameters and is not recurrent saves of them and of
 * its channels only (moments, weights in half precision). */
static size_t saved_bytes(const planning *p, const mri_node *n)
{
    const size_t whole = n->info->saved_bytes;
    if (n->info->param_count > 0 && !mri_is_recurrent(n->kind)) return whole;
    return (size_t)mri_min_u64(whole, 1 + (uint64_t)((double)whole * p->batch / p->cfg->max_batch));
}

/* What operations need besides is known of the largest batch. Some of it grows with the batch, as copies in
 * another layout do, some does not, as weights in another type. */
static size_t scratch_bytes(const planning *p, const mri_node *n)
{
    const size_t whole = n->info->scratch_bytes;
    return p->scratch_grows ? (size_t)((double)whole * p->batch / p->cfg->max_batch) : whole;
}

static void plan_forward(planning *p, uint32_t i)
{
    const mri_nodes *nodes = p->nodes;
    mri_node *n = &nodes->node[i];
    if (mri_is_loss(n->kind)) n->span.y = MRI_NONE; /* nobody wants the softmax */
    else if (n->port == MRI_PORT_IN) n->span.y = new_span(p, batch_bytes(p, n), 0);
    else n->span.y = n->inplace ? nodes->node[n->in].span.y : new_span(p, batch_bytes(p, n), i);
    n->span.saved = new_span(p, saved_bytes(p, n), i);
    n->span.scratch[0] = new_span(p, scratch_bytes(p, n), i);
    use(p, n->span.y, i);
    if (n->port == MRI_PORT_OUT) use(p, n->span.y, backward_time(p, i)); /* it is copied behind forward */
    if (n->in != MRI_NONE) use(p, nodes->node[n->in].span.y, i);
    if (n->in2 != MRI_NONE) use(p, nodes->node[n->in2].span.y, i);
}

/* Note span as a gradient to the output of a node. */
static void give_gradient(const planning *p, uint32_t to, uint32_t span)
{
    mri_node *n = &p->nodes->node[to];
    if (n->span.dy == MRI_NONE) n->span.dy = span;
    else n->span.dy2 = span;
}

static void plan_backward(planning *p, uint32_t i)
{
    const mri_nodes *nodes = p->nodes;
    mri_node *n = &nodes->node[i];
    const uint32_t now = backward_time(p, i);
    const bool add = n->kind == MR_OP_ADD;
    if (n->port == MRI_PORT_OUT) n->span.dy = new_span(p, batch_bytes(p, n), nodes->count);
    use(p, n->span.y, now);
    if (n->in != MRI_NONE) use(p, nodes->node[n->in].span.y, now);
    if (n->in2 != MRI_NONE) use(p, nodes->node[n->in2].span.y, now);
    use(p, n->span.saved, now);
    n->span.scratch[1] = new_span(p, scratch_bytes(p, n), now);
    use(p, n->span.dy, now);
    use(p, n->span.dy2, now);
    if (n->need_dx2 && n->info->writes_dx2)
        n->span.dx2 = new_span(p, batch_bytes(p, &nodes->node[n->in2]), now);
    if (n->need_dx2) give_gradient(p, n->in2, n->info->writes_dx2 ? n->span.dx2 : n->span.dy);
    if (!n->need_dx) return;
    if (n->port == MRI_PORT_IN) {
        n->span.dx = n->span.dy;
        use(p, n->span.dx, 2 * nodes->count);
        return;
    }
    if (n->inplace || (add && !n->need_dx2)) { /* what arrived serves one, and it may have it */
        give_gradient(p, n->in, n->span.dy);
        if (!add) n->span.dx = n->span.dy;
        return;
    }
    n->span.dx = new_span(p, batch_bytes(p, &nodes->node[n->in]), now);
    give_gradient(p, n->in, n->span.dx);
}

/* Spans of activations and gradients for p->batch samples, placed; *arena_bytes in all. */
static int place_spans(planning *p, size_t *arena_bytes)
{
    mri_plan *plan = p->plan;
    const mri_nodes *nodes = p->nodes;
    if (!plan->spans) plan->spans = calloc((size_t)nodes->count * 6, sizeof *plan->spans);
    if (!plan->spans) return MR_ENOMEM;
    plan->span_count = 0;
    for (uint32_t i = 0; i < nodes->count; i++) {
        mri_node *n = &nodes->node[i];
        n->span.scratch[1] = n->span.dy = n->span.dy2 = n->span.dx = n->span.dx2 = MRI_NONE;
        plan_forward(p, i);
    }
    for (uint32_t i = nodes->count; i-- > 0;)
        if (nodes->node[i].backward) plan_backward(p, i);
    for (uint32_t i = 0; i < p->cfg->kept.count; i++) {
        const uint32_t node = nodes->made_by[p->cfg->kept.at[i]];
        if (node != MRI_NONE) use(p, nodes->node[node].span.y, 2 * nodes->count);
    }
    if (p->overflow) return MR_ELIMIT;
    return mri_spans_place(plan->spans, plan->span_count, MR_DEVICE_ALIGN, arena_bytes);
}

/* ------------------------------------------------------------------------------ buckets */

/* Backward goes from the last node to the first, and gradients lie in the order of nodes: the complete part
 * is the end of the array. Buckets of at least this many bytes (0: one) go to out unless NULL; returns how
 * many. */
static uint32_t cut(const mri_nodes *nodes, uint64_t floats, uint64_t least, mri_bucket *out)
{
    uint64_t end = floats;
    uint32_t count = 0, lowest = 0; /* lowest: the last node of backward that has parameters */
    while (lowest < nodes->count &&
           (!nodes->node[lowest].backward || nodes->node[lowest].info->param_count == 0))
        lowest++;
    for (uint32_t i = nodes->count; i-- > 0;) {
        const mri_node *n = &nodes->node[i];
        if (!n->backward || n->info->param_count == 0) continue;
        const uint64_t from = i == lowest ? 0 : n->param_at[0];
        const bool full = least && (end - from) * sizeof(float) >= least;
        if (!full && i != lowest) continue;
        if (out) out[count] = (mri_bucket){.node = i == lowest ? 0 : i, .at = from, .count = end - from};
        count++;
        end = from;
    }
    return count;
}

uint32_t mri_plan_count_buckets(const mri_plan *plan, const mri_nodes *nodes, uint64_t bytes)
{
    return cut(nodes, plan->weight_floats, bytes, NULL);
}

void mri_plan_cut_buckets(mri_plan *plan, const mri_nodes *nodes, uint64_t bytes)
{
    plan->bucket_count = cut(nodes, plan->weight_floats, bytes, plan->buckets);
}

static int fill_buckets(planning *p, mr_error *err)
{
    mri_plan *plan = p->plan;
    plan->buckets = calloc(p->nodes->count, sizeof *plan->buckets); /* there are never more */
    if (!plan->buckets)
        return mr_error_set(err, MR_ENOMEM, "no memory for %u gradient buckets", p->nodes->count);
    mri_plan_cut_buckets(plan, p->nodes, p->cfg->bucket_bytes);
    if (plan->bucket_count == 0 && p->cfg->touched.frozen) /* a stage of a network on several devices */
        return mr_error_set(
            err, MR_EINVAL,
            "all layers of one of the devices are frozen: place them with others that are trained");
    return MR_OK;
}

/* ------------------------------------------------------------------------------ the whole */

static uint64_t place_params(const mr_param_info *info, uint32_t count, uint64_t *places, uint64_t at)
{
    for (uint32_t p = 0; p < count; p++) {
        places[p] = at;
        at = mri_align_up(at + info[p].storage_count, MRI_PARAM_ALIGN);
    }
    return at;
}

uint64_t mri_plan_norm_bytes(const mri_plan *plan, const mri_replica_config *cfg)
{
    const bool any = cfg->optimizer.clip_norm > 0 && !cfg->inference;
    return any ? mr_update_norm_count(plan->weight_floats) * sizeof(double) : 0;
}

/* Every parameter begins with a stretch of the update. */
_Static_assert(MRI_PARAM_ALIGN % MR_UPDATE_STRETCH == 0, "a stretch belongs to one parameter");

static bool decays_by(const mri_replica_config *cfg, const mri_node *n, const mr_param_info *param)
{
    const bool weights = strcmp(param->name, "weights") == 0 || strcmp(param->name, "recurrent") == 0;
    const mr_net_decays own = n->layer == MRI_NONE ? MR_NET_DECAY_AS_TOLD : cfg->net->layers[n->layer].decay;
    if (own == MR_NET_DECAY_NONE || n->frozen) return false;
    return weights || (own == MR_NET_DECAY_AS_TOLD && cfg->touched.decay_on == MR_DECAY_ON_ALL);
}

static int mark_decays(planning *p, mr_error *err)
{
    mri_plan *plan = p->plan;
    const mri_replica_config *cfg = p->cfg;
    if (cfg->inference || plan->weight_floats == 0) return MR_OK;
    if (cfg->touched.decay_on == MR_DECAY_ON_ALL && !mr_net_has_own_decay(cfg->net) && !cfg->touched.frozen)
        return MR_OK;
    plan->decays = calloc(1, (size_t)(plan->weight_floats / MR_UPDATE_STRETCH + 1));
    if (!plan->decays) return mr_error_set(err, MR_ENOMEM, "no memory for the list of what decays");
    for (uint32_t i = 0; i < p->nodes->count; i++) {
        const mri_node *n = &p->nodes->node[i];
        for (uint32_t k = 0; k < n->info->param_count; k++) {
            const mr_param_info *param = &n->info->param[k];
            const uint64_t stretches =
                mri_align_up(param->storage_count, MR_UPDATE_STRETCH) / MR_UPDATE_STRETCH;
            memset(plan->decays + n->param_at[k] / MR_UPDATE_STRETCH, decays_by(cfg, n, param),
                   (size_t)stretches);
        }
    }
    return MR_OK;
}

static int number_tensors(planning *p, mr_error *err)
{
    mri_plan *plan = p->plan;
    const mri_replica_config *cfg = p->cfg;
    if (cfg->inference || cfg->optimizer.update.kind != MR_UPDATE_LAMB || plan->weight_floats == 0)
        return MR_OK;
    plan->tensors = calloc((size_t)(plan->weight_floats / MR_UPDATE_STRETCH), sizeof *plan->tensors);
    if (!plan->tensors) return mr_error_set(err, MR_ENOMEM, "no memory for the list of tensors");
    for (uint32_t i = 0; i < p->nodes->count; i++) {
        const mri_node *n = &p->nodes->node[i];
        for (uint32_t k = 0; k < n->info->param_count; k++, plan->tensor_count++) {
            const uint64_t from = n->param_at[k] / MR_UPDATE_STRETCH,
                           to = mri_align_up(n->param_at[k] + n->info->param[k].storage_count,
                                             MRI_PARAM_ALIGN) /
                                MR_UPDATE_STRETCH;
            for (uint64_t s = from; s < to; s++) plan->tensors[s] = plan->tensor_count;
        }
    }
    return MR_OK;
}

/* Is it a matrix that MUON moves? Filters and dense layers are, but for the last layer with weights, which
 * gives the network's output. */
static bool is_matrix(const mri_node *n)
{
    if (n->frozen || n->info->param_count == 0) return false;
    return n->kind == MR_OP_DENSE || (n->kind == MR_OP_CONV2D && n->desc.conv2d.groups <= 1);
}

static int list_matrices(planning *p, mr_device *dev, mr_error *err)
{
    mri_plan *plan = p->plan;
    const mri_replica_config *cfg = p->cfg;
    if (cfg->inference || cfg->optimizer.update.kind != MR_UPDATE_MUON) return MR_OK;
    plan->matrices = calloc(p->nodes->count, sizeof *plan->matrices);
    if (!plan->matrices) return mr_error_set(err, MR_ENOMEM, "no memory for the list of matrices");
    for (uint32_t i = 0; i < p->nodes->count; i++) {
        const mri_node *n = &p->nodes->node[i];
        if (!is_matrix(n) || cfg->net->layers[n->layer].number == cfg->touched.head) continue;
        const mr_param_info *weights = &n->info->param[0];
        plan->matrices[plan->matrix_count++] = (mr_update_matrix){.at = n->param_at[0],
                                                                  .rows = weights->dim[0],
                                                                  .columns = weights->count / weights->dim[0],
                                                                  .op = n->op};
    }
    plan->room_bytes = mr_update_room_bytes(dev, plan->matrices, plan->matrix_count);
    return MR_OK;
}

static int too_large(const mri_replica_config *cfg, int rc, mr_error *err)
{
    if (rc == MR_ENOMEM)
        return mr_error_set(err, rc, "no memory to lay out a network of %u layers", cfg->net->layer_count);
    return mr_error_set(err, MR_ELIMIT, "network %s with a batch of %u: sizes beyond any memory",
                        cfg->net->name, cfg->max_batch);
}

static int place_all(planning *p, mr_device *dev, mr_error *err)
{
    mri_plan *plan = p->plan;
    for (uint32_t i = 0; i < p->nodes->count; i++) {
        mri_node *n = &p->nodes->node[i];
        plan->weight_floats =
            place_params(n->info->param, n->info->param_count, n->param_at, plan->weight_floats);
        plan->stat_floats =
            place_params(n->info->state, n->info->state_count, n->state_at, plan->stat_floats);
    }
    int rc = place_spans(p, &plan->arena_bytes);
    if (rc) return too_large(p->cfg, rc, err);
    const mri_replica_config *cfg = p->cfg;
    plan->averages = cfg->optimizer.average > 0 && !cfg->inference;
    const uint64_t arrays = cfg->inference ? 1
                                           : 2 + cfg->optimizer.slot_count + cfg->folds.terms +
                                                 (uint64_t)plan->averages +
                                                 (cfg->local.delayed ? 1 + cfg->folds.left : 0);
    plan->other_stats = cfg->owns_stats && cfg->folds.count > 1 && !cfg->inference && !cfg->local.on;
    const uint64_t more = cfg->local.on ? cfg->folds.count - 1 : 0; /* parts with arrays of their own */
    if (plan->weight_floats > SIZE_MAX / 64) return too_large(p->cfg, MR_ELIMIT, err);
    rc = mark_decays(p, err);
    if (rc == MR_OK) rc = number_tensors(p, err);
    if (rc == MR_OK) rc = list_matrices(p, dev, err);
    if (rc) return rc;
    plan->memory_bytes =
        plan->arena_bytes +
        sizeof(float) * (arrays * plan->weight_floats +
                         (1 + (uint64_t)plan->other_stats + (uint64_t)plan->averages) * plan->stat_floats) +
        2 * cfg->folds.count * sizeof(mr_metrics) + sizeof(mr_step_values) + sizeof(mr_loss_scale) +
        cfg->labels.class_weight_count * sizeof *cfg->labels.class_weights + mri_plan_norm_bytes(plan, cfg) +
        mri_plan_decay_bytes(plan) + mri_plan_tensor_bytes(plan) + mri_plan_trust_bytes(plan) +
        plan->room_bytes;
    if (cfg->local.on)
        plan->memory_bytes +=
            sizeof(float) *
                ((more * (1 + cfg->optimizer.slot_count) + (cfg->local.apart ? 1 : 2)) * plan->weight_floats +
                 (more + 1) * plan->stat_floats) +
            MRI_OUTER_VALUES * sizeof(mr_step_values);
    return cfg->inference ? MR_OK : fill_buckets(p, err);
}

/* The most samples of one replica whose arena stays within bytes; 0: not even one. Spoils the spans. */
static uint32_t most_that_fits(const planning *p, uint64_t bytes, bool scratch_grows)
{
    uint32_t fits = 0, not = p->cfg->max_batch;
    while (not -fits > 1) {
        const uint32_t middle = fits + (not -fits) / 2;
        planning smaller = {.plan = p->plan,
                            .nodes = p->nodes,
                            .cfg = p->cfg,
                            .batch = middle,
                            .scratch_grows = scratch_grows};
        size_t arena;
        if (place_spans(&smaller, &arena) == MR_OK && arena <= bytes) fits = middle;
        else not = middle;
    }
    return fits;
}

static int check_limit(const planning *p, mr_device *dev, mr_error *err)
{
    const mr_device_info *info = mr_device_info_of(dev);
    const mri_plan *plan = p->plan;
    const mri_replica_config *cfg = p->cfg;
    uint64_t limit = cfg->memory_bytes ? cfg->memory_bytes : UINT64_MAX;
    if (info->memory_bytes) limit = mri_min_u64(limit, info->memory_bytes);
    if (plan->memory_bytes <= limit) return MR_OK;
    const double mib = 1 << 20;
    const uint64_t fixed = plan->memory_bytes - plan->arena_bytes;
    uint64_t one = limit > fixed ? most_that_fits(p, limit - fixed, false) : 0;
    if (one == 0 && limit > fixed) one = most_that_fits(p, limit - fixed, true);
    const uint64_t fits = one * cfg->global_batch / cfg->max_batch;
    char what[96];
    if (fits > 0)
        snprintf(what, sizeof what, "a global batch of about %llu would fit", (unsigned long long)fits);
    else snprintf(what, sizeof what, "not even a batch of one would fit: a smaller network is needed");
    return mr_error_set(
        err, MR_ELIMIT,
        "network %s needs %.1f MiB on %s for %u samples of a global batch of %u (weights and optimizer %.1f, "
        "activations %.1f), the limit is %.1f MiB; %s",
        cfg->net->name, (double)plan->memory_bytes / mib, info->name, cfg->max_batch, cfg->global_batch,
        (double)fixed / mib, (double)plan->arena_bytes / mib, (double)limit / mib, what);
}

int mri_plan_init(mri_plan *plan, mri_nodes *nodes, mr_device *dev, const mri_replica_config *cfg,
                  mr_error *err)
{
    planning p = {.plan = plan, .nodes = nodes, .cfg = cfg, .batch = cfg->max_batch};
    *plan = (mri_plan){0};
    const int rc = place_all(&p, dev, err);
    return rc ? rc : check_limit(&p, dev, err);
}

void mri_plan_fini(mri_plan *plan)
{
    free(plan->spans);
    free(plan->buckets);
    free(plan->decays);
    free(plan->matrices);
    free(plan->tensors);
    *plan = (mri_plan){0};
}
