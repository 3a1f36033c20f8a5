/* train/run/passes.c: queueing the calls of a step on a replica's stream, or replaying them as the device
 * recorded them.
 *
 *   first time on a device slot   every call queued                          (ops prepare themselves)
 *   second time                   recorded segment by segment, then launched
 *   from then on                  launched: one call a segment
 *
 * What changes from step to step is in the slot's memory and in mr_step_values, which the calls read on the
 * device. Nothing here waits. */

#include "base/ranges.h"
#include "train/run/replica.h"

/* ------------------------------------------------------------------------------ calls */

static void *span_at(const mri_replica *r, uint32_t span)
{
    return span == MRI_NONE ? NULL : r->memory.arena + r->plan.spans[span].at;
}

static const void *data_of(const mri_node *n, const mr_part *part)
{
    return n->field == MRI_NONE ? part->pixels : part->field[n->field].data;
}

/* A part of the batch, its number among the replica's parts, and the work on it. */
typedef struct share {
    const mr_part *part;
    uint32_t number;
    bool training;
} share;

/* Weights, and running statistics. */
typedef struct place_of_values {
    float *weights, *stats;
} place_of_values;

static place_of_values values_of(const mri_replica *r, const mri_node *n, const share *of)
{
    const mri_memory *m = &r->memory;
    if (!of->training && r->plan.averages) return (place_of_values){m->average, m->average_stats};
    if (!of->training || !r->cfg.local.on) {
        const bool own = of->number == 0 || !of->training || !m->other_stats || n->frozen;
        return (place_of_values){mri_replica_weights(r), own ? mri_replica_stats(r) : m->other_stats};
    }
    return (place_of_values){m->own.part[of->number].weights, m->own.part[of->number].stats};
}

static mr_op_args args_of(const mri_replica *r, const mri_node *n, const share *of)
{
    const mr_part *part = of->part;
    const place_of_values at = values_of(r, n, of);
    mr_op_args a = {
        .n = part->count,
        .x = n->in == MRI_NONE ? data_of(n, part) : span_at(r, r->nodes.node[n->in].span.y),
        .x2 = n->in2 == MRI_NONE ? NULL : span_at(r, r->nodes.node[n->in2].span.y),
        .y = span_at(r, n->span.y),
        .saved = span_at(r, n->span.saved),
        .seed = r->cfg.seed,
        .values = r->memory.values,
        .loss_scale = r->memory.loss_scale,
        .first = part->first,
        .affine = r->cfg.affine.used ? part->affine : NULL,
        .labels = part->labels,
        .labels2 = part->labels2,
        .share2 = part->share2,
        .class_weights = r->memory.class_weights,
    };
    for (uint32_t p = 0; p < n->info->param_count; p++) {
        a.param[p] = at.weights + n->param_at[p];
        a.dparam[p] = r->memory.grads ? r->memory.grads + n->param_at[p] : NULL;
    }
    for (uint32_t p = 0; p < n->info->state_count; p++) a.state[p] = at.stats + n->state_at[p];
    return a;
}

static int forward(const mri_replica *r, const share *of)
{
    int rc = MR_OK;
    mri_range_begin(MRI_RANGE_FORWARD, of->part->count);
    for (uint32_t i = 0; rc == MR_OK && i < r->nodes.count; i++) {
        const mri_node *n = &r->nodes.node[i];
        if (n->port) continue; /* it is where it belongs */
        mr_op_args a = args_of(r, n, of);
        a.training = of->training && !(n->frozen && n->kind == MR_OP_BATCHNORM);
        a.metrics = r->memory.sums[of->training ? MRI_SUMS_TRAINING : MRI_SUMS_EVALUATION] + of->number;
        a.scratch = span_at(r, n->span.scratch[0]);
        rc = mr_op_forward_async(n->op, r->stream, &a);
    }
    mri_range_end();
    return rc;
}

int mri_replica_forward_some(const mri_replica *r, const mr_part *part, const bool *wanted)
{
    const share of = {part, 0, false};
    int rc = MR_OK;
    for (uint32_t i = 0; rc == MR_OK && i < r->nodes.count; i++) {
        const mri_node *n = &r->nodes.node[i];
        if (!wanted[i] || mri_is_loss(n->kind)) continue;
        mr_op_args a = args_of(r, n, &of);
        a.scratch = span_at(r, n->span.scratch[0]);
        rc = mr_op_forward_async(n->op, r->stream, &a);
    }
    return rc;
}

/* Of parameters that stay: with gradients of zero every rule leaves them alone, and no norm counts them.
 * Gradients of nodes without a backward pass are never written. */
static int drop_gradients(const mri_replica *r, const mri_node *n)
{
    int rc = MR_OK;
    for (uint32_t p = 0; rc == MR_OK && p < n->info->param_count; p++)
        rc = mr_fill_async(r->stream, r->memory.grads + n->param_at[p], 0,
                           (size_t)n->info->param[p].storage_count * sizeof(float));
    return rc;
}

/* The nodes from `from` down to `to`. */
static int backward(const mri_replica *r, const share *of, uint32_t from, uint32_t to)
{
    int rc = MR_OK;
    mri_range_begin(MRI_RANGE_BACKWARD, of->part->count);
    for (uint32_t i = from + 1; rc == MR_OK && i-- > to;) {
        const mri_node *n = &r->nodes.node[i];
        if (!n->backward) continue;
        mr_op_args a = args_of(r, n, of);
        a.training = true;
        a.dy = span_at(r, n->span.dy);
        a.dy2 = span_at(r, n->span.dy2);
        a.dx = span_at(r, n->span.dx);
        a.dx2 = span_at(r, n->span.dx2);
        a.scratch = span_at(r, n->span.scratch[1]);
        rc = mr_op_backward_async(n->op, r->stream, &a);
        if (rc == MR_OK && n->frozen) rc = drop_gradients(r, n);
    }
    mri_range_end();
    return rc;
}

static float *looked_back_to(const mri_replica *r) { return r->memory.slot[r->cfg.optimizer.slot_count - 1]; }

static int average(const mri_replica *r, float decay)
{
    const mri_memory *m = &r->memory;
    const int rc = mr_average_async(r->stream, m->average, m->weights, r->plan.weight_floats, decay);
    return rc ? rc : mr_average_async(r->stream, m->average_stats, m->stats, r->plan.stat_floats, decay);
}

int mri_replica_behind_update(const mri_replica *r, uint64_t updates)
{
    const uint64_t floats = r->plan.weight_floats;
    int rc = MR_OK;
    if (r->cfg.optimizer.lookahead && updates % r->cfg.optimizer.lookahead == 0) {
        float *const slow = looked_back_to(r);
        rc = mr_average_async(r->stream, slow, r->memory.weights, floats, 0.5f);
        if (rc == MR_OK)
            rc = mr_copy_d2d_async(r->stream, r->memory.weights, slow, (size_t)floats * sizeof(float));
    }
    return rc == MR_OK && r->plan.averages ? average(r, r->cfg.optimizer.average) : rc;
}

int mri_replica_begin_averages(const mri_replica *r)
{
    int rc = MR_OK;
    if (r->cfg.optimizer.lookahead && !r->cfg.inference)
        rc = mr_average_async(r->stream, looked_back_to(r), r->memory.weights, r->plan.weight_floats, 0);
    return rc == MR_OK && r->plan.averages ? average(r, 0) : rc;
}

/* Of the replica's weights, or of the weights that part `number` trains by itself. */
static int update(const mri_replica *r, uint32_t number)
{
    const mri_memory *m = &r->memory;
    const mri_worker all = {m->weights, m->stats, {m->slot[0], m->slot[1], m->slot[2]}},
                     *w = r->cfg.local.on ? &m->own.part[number] : &all;
    mr_update_config cfg;
    mr_update_defaults(&cfg);
    cfg.rule = r->cfg.optimizer.update;
    cfg.args = (mr_update_args){.count = r->plan.weight_floats,
                                .weights = w->weights,
                                .grads = r->cfg.local.delayed ? r->memory.late : r->memory.grads,
                                .state = {w->slot[0], w->slot[1]},
                                .values = r->memory.values,
                                .loss_scale = r->memory.loss_scale};
    cfg.clip_value = r->cfg.optimizer.clip_value;
    cfg.clip_norm = r->cfg.optimizer.clip_norm;
    cfg.norm = r->memory.norm;
    cfg.decays = r->memory.decays;
    cfg.tensors = r->memory.tensors;
    cfg.tensor_count = r->plan.tensor_count;
    cfg.trust = r->memory.trust;
    cfg.matrices = r->plan.matrices;
    cfg.matrix_count = r->plan.matrix_count;
    cfg.room = r->memory.room;
    mri_range_begin(MRI_RANGE_UPDATE, r->plan.weight_floats);
    const int rc = mr_update_run_async(r->stream, &cfg);
    mri_range_end();
    return rc;
}

/* Nothing is written between the gradients of two parameters: bytes that a sum has left there would be in the
 * next one, too. */
static int clear_gradients(const mri_replica *r)
{
    return mr_fill_async(r->stream, r->memory.grads, 0, (size_t)r->plan.weight_floats * sizeof(float));
}

/* How many segments there are (mri_replica_run()). */
static uint32_t replica_segments(const mri_replica *r, bool training)
{
    if (!training) return 1;
    return r->plan.bucket_count + !r->cfg.together;
}

static int queue(const mri_replica *r, const share *of, uint32_t segment)
{
    const bool training = of->training;
    if (training && segment == r->plan.bucket_count) return update(r, of->number);
    int rc = MR_OK;
    const bool begins = training && segment == 0;
    if (begins && (of->part->count == 0 || (r->cfg.clears_gaps && of->number == 0))) rc = clear_gradients(r);
    if (rc == MR_OK && of->part->count > 0) {
        if (segment == 0 && !r->cfg.in.split) rc = forward(r, of);
        if (rc == MR_OK && training)
            rc = backward(r, of, segment ? r->plan.buckets[segment - 1].node - 1 : r->nodes.count - 1,
                          r->plan.buckets[segment].node);
    }
    if (rc == MR_OK && training && r->cfg.together && segment + 1 == r->plan.bucket_count)
        rc = update(r, of->number);
    return rc;
}

int mri_replica_forward(mri_replica *r, uint32_t number, const mr_part *part, bool training)
{
    const share of = {part, number, training};
    if (part->count == 0) return MR_OK;
    r->last_count = part->count;
    return forward(r, &of);
}

void *mri_replica_place(const mri_replica *r, uint32_t span) { return span_at(r, span); }

int mri_replica_fold(const mri_replica *r, uint32_t number, uint64_t at, uint64_t count)
{
    const mri_folds *f = &r->cfg.folds;
    const mri_fold *fold = &f->of[number];
    float *const *terms = r->memory.terms, *const grads = r->memory.grads;
    int rc = MR_OK;
    if (number + 1 < f->count && fold->merges == 0)
        return mr_copy_d2d_async(r->stream, terms[fold->waiting] + at, grads + at,
                                 (size_t)count * sizeof(float));
    for (uint32_t m = 0; rc == MR_OK && m < fold->merges; m++) {
        float *const waits = terms[fold->waiting - 1 - m];
        const bool last = number + 1 == f->count;
        if (last) rc = mr_add_async(r->stream, grads + at, waits + at, count);
        else rc = mr_add_async(r->stream, waits + at, (m ? terms[fold->waiting - m] : grads) + at, count);
    }
    return rc;
}

int mri_replica_keep_late(const mri_replica *r)
{
    const mri_memory *m = &r->memory;
    const size_t bytes = (size_t)r->plan.weight_floats * sizeof(float);
    int rc = mr_copy_d2d_async(r->stream, m->late, m->grads, bytes);
    for (uint32_t k = 0; rc == MR_OK && k < r->cfg.folds.left; k++)
        rc = mr_copy_d2d_async(r->stream, m->late_terms[k], m->terms[k], bytes);
    return rc;
}

int mri_replica_values(mri_replica *r, uint32_t slot, const mr_step_values *values)
{
    r->memory.host_values[slot] = *values;
    return mr_copy_h2d_async(r->stream, r->memory.values, &r->memory.host_values[slot], sizeof *values);
}

/* ------------------------------------------------------------------------------ recording */

void mri_passes_init(mri_passes *p, const mri_replica_config *cfg)
{
    *p = (mri_passes){.records = cfg->records, .why_not = MR_ERROR_INIT};
}

void mri_passes_fini(mri_replica *r)
{
    for (uint32_t i = 0; i < r->passes.recording_count; i++) {
        mri_recording *c = &r->passes.recordings[i];
        for (uint32_t k = 0; k < replica_segments(r, c->training); k++) mr_graph_destroy(c->graphs[k]);
        free(c->graphs);
    }
    r->passes.recording_count = 0;
}

bool mri_replica_take_recording_error(mri_replica *r, mr_error *out)
{
    if (r->passes.why_not.code == MR_OK) return false;
    *out = r->passes.why_not;
    r->passes.why_not = (mr_error)MR_ERROR_INIT;
    return true;
}

/* From here on steps are queued call by call. A device that cannot record is nothing to tell. */
static void stop_recording(mri_replica *r, int rc, const mr_error *why)
{
    r->passes.records = false;
    if (rc == MR_EUNSUPPORTED) return;
    if (why && why->code) r->passes.why_not = *why;
    else mr_error_set(&r->passes.why_not, rc, "%s", mr_status_text(rc));
}

static bool same_slot(const mri_recording *c, const mr_part *part, bool training)
{
    const mr_part *p = &c->part;
    for (uint32_t k = 0; k < MR_LOADER_MAX_FIELDS; k++)
        if (p->field[k].data != part->field[k].data) return false;
    return c->training == training && p->pixels == part->pixels && p->labels == part->labels &&
           p->affine == part->affine && p->labels2 == part->labels2 && p->share2 == part->share2 &&
           p->count == part->count && p->first == part->first;
}

/* The recording for this slot, a new one while there is room; NULL: do without. */
static mri_recording *recording_of(mri_replica *r, const mr_part *part, bool training)
{
    for (uint32_t i = 0; i < r->passes.recording_count; i++)
        if (same_slot(&r->passes.recordings[i], part, training)) return &r->passes.recordings[i];
    if (r->passes.recording_count == MRI_RECORDINGS) return NULL;
    mri_recording *c = &r->passes.recordings[r->passes.recording_count];
    *c = (mri_recording){.part = *part, .training = training};
    c->graphs = calloc(replica_segments(r, training), sizeof *c->graphs);
    if (!c->graphs) return NULL;
    r->passes.recording_count++;
    return c;
}

/* *out stays NULL when it could not be recorded; then nothing was queued either. */
static void record(mri_replica *r, const share *of, uint32_t segment, mr_graph **out)
{
    mr_error err = MR_ERROR_INIT;
    int rc = mr_graph_begin(r->stream);
    if (rc) {
        stop_recording(r, rc, NULL);
        return;
    }
    const int queued = queue(r, of, segment);
    rc = mr_graph_end(r->stream, out, &err);
    if (queued == MR_OK && rc == MR_OK) return;
    mr_graph_destroy(*out);
    *out = NULL;
    stop_recording(r, rc ? rc : queued, rc ? &err : NULL);
}

int mri_replica_run(mri_replica *r, uint32_t number, const mr_part *part, bool training, bool whole,
                    uint32_t segment)
{
    const share of = {part, number, training};
    if (part->count > 0) r->last_count = part->count;
    mri_recording *c = r->passes.records && whole && part->count > 0 ? recording_of(r, part, training) : NULL;
    if (c && c->ran && !c->graphs[segment]) record(r, &of, segment, &c->graphs[segment]);
    if (c && c->graphs[segment]) {
        r->passes.replayed++;
        mri_range_begin(MRI_RANGE_REPLAY, segment);
        const int rc = mr_graph_launch_async(c->graphs[segment], r->stream);
        mri_range_end();
        return rc;
    }
    if (c && segment + 1 == replica_segments(r, training)) c->ran = true;
    return queue(r, &of, segment);
}
