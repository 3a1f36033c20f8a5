/* Changes of gradients and weights around an update rule, seen from a trainer: limits of the gradient, the
 * tensors that weight decay covers, and that neither depends on devices, buckets or a checkpoint in
 * between. */
#include <math.h>

#include "tests/train/rig.h"

/* All weights of replica 0, in canonical order; *count of them. To be freed. */
static float *weights_of(const mrt_rig *rig, uint64_t *count)
{
    mr_error err = MR_ERROR_INIT;
    const mri_tensors *t = &rig->t->tensors;
    float *out = malloc(t->count * t->most_floats * sizeof *out);
    *count = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        if (t->desc[i].role != MRI_ROLE_WEIGHTS) continue;
        MRT_OK(mri_tensor_export(t, &rig->t->team.replicas[0], i, false, out + *count, &err), &err);
        *count += t->desc[i].count;
    }
    return out;
}

/* How far one step takes the weights. To be freed. */
static float *step_taken(const mrt_rig_options *o, uint64_t *count)
{
    mrt_rig rig;
    mrt_rig_open(&rig, o);
    float *before = weights_of(&rig, count);
    mrt_train(&rig, 0, 0, 31);
    float *after = weights_of(&rig, count);
    for (uint64_t i = 0; i < *count; i++) after[i] -= before[i];
    free(before);
    mrt_rig_close(&rig);
    return after;
}

static double norm_of(const float *v, uint64_t count)
{
    double square = 0;
    for (uint64_t i = 0; i < count; i++) square += (double)v[i] * (double)v[i];
    return sqrt(square);
}

/* With plain descent and a rate of 1 a step is the gradient: of all parts together, however they are cut. */
static void steps_have_the_limits(void **state)
{
    (void)state;
    static const char *const devices[] = {"cpu", "cpu:2", "cpu:3"};
    for (size_t d = 0; d < MRI_ARRAY_COUNT(devices); d++)
        for (uint64_t bucket = 0; bucket <= 400; bucket += 400) {
            uint64_t count;
            mrt_rig_options o = {
                .devices = devices[d], .lr = 1, .net = mrt_net_branch, .seed = 2, .bucket_bytes = bucket};
            float *plain = step_taken(&o, &count);
            const double norm = norm_of(plain, count);
            o.clip_norm = (float)norm / 4;
            float *quarter = step_taken(&o, &count);
            MRT_TRUE(fabs(norm_of(quarter, count) - norm / 4) < 1e-3 * norm);
            for (uint64_t i = 0; i < count; i++)
                MRT_TRUE(fabs((double)quarter[i] - (double)plain[i] / 4) < 1e-5 * norm);
            o.clip_norm = (float)norm * 4;
            float *whole = step_taken(&o, &count);
            MRT_TRUE(memcmp(whole, plain, count * sizeof *plain) == 0);
            o.clip_norm = 0;
            o.clip_value = (float)norm / 20;
            float *cut = step_taken(&o, &count);
            uint64_t at_limit = 0;
            for (uint64_t i = 0; i < count; i++) {
                const double limit = (double)o.clip_value, is = (double)cut[i], was = (double)plain[i];
                MRT_TRUE(fabs(is - fmax(-limit, fmin(limit, was))) < 1e-6 * norm);
                at_limit += fabs(was) > limit;
            }
            MRT_TRUE(at_limit > 0 && at_limit < count);
            free(plain);
            free(quarter);
            free(whole);
            free(cut);
        }
}

static const mrt_rig_options everything = {.seed = 5,
                                           .net = mrt_net_norm,
                                           .update = MR_UPDATE_ADAMW,
                                           .lr = 0.02f,
                                           .parts = 4,
                                           .clip_value = 0.05f,
                                           .clip_norm = 0.02f,
                                           .weight_decay = 0.1f,
                                           .label_smoothing = 0.1f,
                                           .decay_on = MR_DECAY_ON_WEIGHTS,
                                           .lookahead = 2};

/* The same bits on any devices, in any buckets, and after a checkpoint that resumes elsewhere. */
static void nothing_else_changes_bits(void **state)
{
    (void)state;
    static const char *const devices[] = {"cpu", "cpu:2", "cpu:3", "cpu:4"};
    const char *path = mrt_path("rules.mrck");
    mr_error err = MR_ERROR_INIT;
    mrt_hash expected = {0, 0};
    for (size_t d = 0; d < MRI_ARRAY_COUNT(devices); d++)
        for (uint64_t bucket = 0; bucket <= 500; bucket += 250) {
            mr_checkpoint_info info = {.struct_size = sizeof info};
            mrt_rig_options o = everything;
            mrt_rig rig;
            o.devices = devices[d];
            o.bucket_bytes = bucket;
            mrt_rig_open(&rig, &o);
            for (uint32_t s = 0; s < 3; s++) mrt_train(&rig, s, s * 32, 32);
            MRT_OK(mr_trainer_save(rig.t, path, &info, &err), &err);
            for (uint32_t s = 3; s < 6; s++) mrt_train(&rig, s, s * 32, 32);
            const mrt_hash whole = mrt_hash_of(&rig, 0);
            mrt_rig_close(&rig);
            if (d == 0 && bucket == 0) expected = whole;
            MRT_TRUE(mrt_same(expected, whole));
            o.devices = devices[(d + 1) % MRI_ARRAY_COUNT(devices)];
            o.seed = 99;
            mrt_rig_open(&rig, &o);
            MRT_OK(mr_trainer_load(rig.t, path, &info, &err), &err);
            MRT_TRUE(info.update.kind == MR_UPDATE_ADAMW && info.clip_value == o.clip_value &&
                     info.clip_norm == o.clip_norm && info.decay_on == MR_DECAY_ON_WEIGHTS &&
                     info.label_smoothing == o.label_smoothing);
            for (uint32_t s = 3; s < 6; s++) mrt_train(&rig, s, s * 32, 32);
            MRT_TRUE(mrt_same(expected, mrt_hash_of(&rig, 0)));
            mrt_rig_close(&rig);
        }
}

/* Each of them does something: without, the weights are others. */
static void each_changes_something(void **state)
{
    (void)state;
    mrt_hash seen[7];
    for (int k = 0; k < 7; k++) {
        mrt_rig_options o = everything;
        mrt_rig rig;
        if (k == 1) o.clip_value = 0;
        if (k == 2) o.clip_norm = 0;
        if (k == 3) o.decay_on = MR_DECAY_ON_ALL;
        if (k == 4) o.weight_decay = 0;
        if (k == 5) o.lookahead = 0;
        if (k == 6) o.label_smoothing = 0;
        mrt_rig_open(&rig, &o);
        for (uint32_t s = 0; s < 2; s++) mrt_train(&rig, s, s * 32, 32);
        seen[k] = mrt_hash_of(&rig, 0);
        for (int before = 0; before < k; before++) MRT_TRUE(!mrt_same(seen[before], seen[k]));
        mrt_rig_close(&rig);
    }
}

static mr_net *milder(void)
{
    mr_net *net = mrt_net_norm();
    mr_net_logit_factor(net, 0.125f);
    return net;
}

/* A network's factor of its logits and a trainer's smoothing of labels come to the loss. */
static void the_loss_has_its_settings(void **state)
{
    (void)state;
    mrt_rig rig;
    mrt_rig_open(&rig, &(mrt_rig_options){.net = milder, .label_smoothing = 0.25f});
    const mri_nodes *nodes = &rig.t->team.replicas[0].nodes;
    const mr_op_desc *d = &nodes->node[nodes->count - 1].desc;
    MRT_EQ(d->kind, MR_OP_LOSS);
    MRT_TRUE(d->loss.factor == 0.125f && d->loss.smoothing == 0.25f);
    mrt_rig_close(&rig);
}

/* A step in which nothing counts has no gradient: what moves is what decays. */
static void decay_is_for_what_was_said(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    for (int on = MR_DECAY_ON_ALL; on <= MR_DECAY_ON_WEIGHTS; on++) {
        mrt_rig rig;
        mrt_batch b;
        mrt_rig_open(&rig, &(mrt_rig_options){.devices = "cpu:2",
                                              .net = mrt_net_norm,
                                              .lr = 0.5f,
                                              .weight_decay = 0.5f,
                                              .decay_on = (mr_decay_on)on});
        const mri_tensors *t = &rig.t->tensors;
        float *before = malloc(t->most_floats * sizeof *before),
              *after = malloc(t->most_floats * sizeof *after);
        for (uint32_t i = 0; i < t->count; i++) { /* biases and shifts begin at 0, which decays to 0 */
            for (uint64_t k = 0; k < t->desc[i].count; k++) before[k] = 1 + (float)k;
            if (t->desc[i].role == MRI_ROLE_WEIGHTS)
                for (uint32_t r = 0; r < rig.count; r++)
                    MRT_OK(mri_tensor_import(t, &rig.t->team.replicas[r], i, before, &err), &err);
        }
        mrt_batch_make(&b, &rig, 0, 0, 16, NULL, 16);
        MRT_OK(mr_trainer_step(rig.t, &b.b, &err), &err);
        mrt_batch_free(&b, &rig);
        uint32_t weights = 0, others = 0;
        for (uint32_t i = 0; i < t->count; i++) {
            if (t->desc[i].role != MRI_ROLE_WEIGHTS) continue;
            const bool is_weights = strstr(t->desc[i].name, "/weights") != NULL;
            const float factor = is_weights || on == MR_DECAY_ON_ALL ? 0.75f : 1;
            MRT_OK(mri_tensor_export(t, &rig.t->team.replicas[1], i, false, after, &err), &err);
            for (uint64_t k = 0; k < t->desc[i].count; k++) MRT_TRUE(after[k] == factor * (1 + (float)k));
            if (is_weights) weights++;
            else others++;
        }
        MRT_TRUE(weights == 3 && others == 5); /* two dense, a convolution; biases, scale, shift */
        free(before);
        free(after);
        mrt_rig_close(&rig);
    }
}

/* The first convolution follows decay_on; the normalisation's parameters do not decay; of the dense layers
 * the first decays its weights, the last nothing. */
static mr_net *net_of_choices(void)
{
    mr_net *net;
    MRT_EQ(mr_net_create(&net, "choices", MRT_SIDE, MRT_SIDE, 1), MR_OK);
    mr_net_conv2d(net, 4, 3, 1, MR_PAD_SAME, MR_ACT_NONE);
    mr_net_decay(net, MR_NET_DECAY_NONE);
    mr_net_batch_norm(net, 0.9f, 1e-3f, MR_ACT_RELU);
    mr_net_decay(net, MR_NET_DECAY_WEIGHTS);
    mr_net_init_bias(net, 0.25f);
    mr_net_dense(net, 8, MR_ACT_RELU);
    mr_net_decay(net, MR_NET_DECAY_NONE);
    mr_net_init_bias(net, 0);
    mr_net_dense(net, MRT_CLASSES, MR_ACT_NONE);
    return net;
}

/* For each layer and each decay_on: w -= lr decay w for the decayed tensors, with zero gradients. */
static void layers_say_what_decays(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    for (int on = MR_DECAY_ON_ALL; on <= MR_DECAY_ON_WEIGHTS; on++) {
        mrt_rig rig;
        mrt_batch b;
        mrt_rig_open(
            &rig, &(mrt_rig_options){
                      .net = net_of_choices, .lr = 0.5f, .weight_decay = 0.5f, .decay_on = (mr_decay_on)on});
        const mri_tensors *t = &rig.t->tensors;
        const mri_replica *r = &rig.t->team.replicas[0];
        float *before = malloc(t->most_floats * sizeof *before),
              *after = malloc(t->most_floats * sizeof *after);
        uint32_t decayed = 0, kept = 0;
        for (uint32_t i = 0; i < t->count; i++) {
            if (t->desc[i].role != MRI_ROLE_WEIGHTS) continue;
            const mri_node *n = &r->nodes.node[t->place[i].node];
            const bool weights = strstr(t->desc[i].name, "/weights") != NULL;
            MRT_OK(mri_tensor_export(t, r, i, false, before, &err), &err);
            if (n->layer == 2 && !weights) /* the bias that begins above 0 */
                for (uint64_t k = 0; k < t->desc[i].count; k++) MRT_TRUE(before[k] == 0.25f);
            for (uint64_t k = 0; k < t->desc[i].count; k++) before[k] = 1 + (float)k;
            MRT_OK(mri_tensor_import(t, r, i, before, &err), &err);
        }
        mrt_batch_make(&b, &rig, 0, 0, 16, NULL, 16);
        MRT_OK(mr_trainer_step(rig.t, &b.b, &err), &err);
        mrt_batch_free(&b, &rig);
        for (uint32_t i = 0; i < t->count; i++) {
            if (t->desc[i].role != MRI_ROLE_WEIGHTS) continue;
            const uint32_t layer = r->nodes.node[t->place[i].node].layer;
            const bool weights = strstr(t->desc[i].name, "/weights") != NULL,
                       decays = layer == 0 ? weights || on == MR_DECAY_ON_ALL : layer == 2 && weights;
            MRT_OK(mri_tensor_export(t, r, i, false, after, &err), &err);
            for (uint64_t k = 0; k < t->desc[i].count; k++)
                MRT_TRUE(after[k] == (decays ? 0.75f : 1) * (1 + (float)k));
            if (decays) decayed++;
            else kept++;
        }
        MRT_TRUE(decayed == (on == MR_DECAY_ON_ALL ? 3 : 2) && decayed + kept == 8);
        free(before);
        free(after);
        mrt_rig_close(&rig);
    }
}

/* A net with a normalization, at a rate that is exact. */
static void open_with(mrt_rig *rig, const char *device, mr_update_kind update)
{
    mrt_rig_open(rig, &(mrt_rig_options){
                          .devices = device, .net = mrt_net_norm, .lr = 0.125f, .seed = 8, .update = update});
}

/* LAMB's step is as long as the rate times the tensor, of each tensor by itself. */
static void lamb_knows_tensors(void **state)
{
    (void)state;
    static const char *const devices[] = {"cpu", "cpu:3"};
    for (size_t d = 0; d < MRI_ARRAY_COUNT(devices); d++) {
        mr_error err = MR_ERROR_INIT;
        mrt_rig rig;
        open_with(&rig, devices[d], MR_UPDATE_LAMB);
        const mri_tensors *t = &rig.t->tensors;
        const mri_replica *last = &rig.t->team.replicas[rig.count - 1];
        float **before = calloc(t->count, sizeof *before), *after = malloc(t->most_floats * sizeof *after);
        uint32_t measured = 0;
        for (uint32_t i = 0; i < t->own; i++) {
            before[i] = malloc(t->desc[i].count * sizeof **before);
            MRT_OK(mri_tensor_export(t, last, i, false, before[i], &err), &err);
        }
        mrt_train(&rig, 0, 0, 32);
        for (uint32_t i = 0; i < t->own; i++) {
            const uint64_t n = t->desc[i].count;
            const double norm = norm_of(before[i], n);
            MRT_OK(mri_tensor_export(t, last, i, false, after, &err), &err);
            for (uint64_t k = 0; k < n; k++) after[k] -= before[i][k];
            if (t->desc[i].role == MRI_ROLE_WEIGHTS && norm > 0) {
                MRT_TRUE(fabs(norm_of(after, n) - 0.125 * norm) < 1e-5 * norm);
                measured++;
            }
            free(before[i]);
        }
        MRT_EQ(measured, 4); /* a convolution, two dense, a scale; biases and the shift begin at 0 */
        free(before);
        free(after);
        mrt_rig_close(&rig);
    }
}

/* Muon's step of a matrix is nearly orthogonal: all its singular values are 0.7 to 1.2 times the same. The
 * last layer, vectors and frozen tensors are not treated as matrices. */
static void muon_knows_matrices(void **state)
{
    (void)state;
    static const char *const devices[] = {"cpu", "cpu:3"};
    for (size_t d = 0; d < MRI_ARRAY_COUNT(devices); d++) {
        mr_error err = MR_ERROR_INIT;
        mrt_rig rig;
        open_with(&rig, devices[d], MR_UPDATE_MUON);
        const mri_tensors *t = &rig.t->tensors;
        const mri_replica *last = &rig.t->team.replicas[rig.count - 1];
        MRT_EQ(last->plan.matrix_count, 2); /* a convolution, and the first of two dense layers */
        float **before = calloc(t->count, sizeof *before), *after = malloc(t->most_floats * sizeof *after);
        uint32_t matrices = 0, others = 0;
        for (uint32_t i = 0; i < t->own; i++) {
            before[i] = malloc(t->desc[i].count * sizeof **before);
            MRT_OK(mri_tensor_export(t, last, i, false, before[i], &err), &err);
        }
        mrt_train(&rig, 0, 0, 32);
        for (uint32_t i = 0; i < t->own; i++) {
            const mri_tensor_desc *desc = &t->desc[i];
            MRT_OK(mri_tensor_export(t, last, i, false, after, &err), &err);
            for (uint64_t k = 0; k < desc->count; k++) after[k] -= before[i][k];
            free(before[i]);
            if (desc->role != MRI_ROLE_WEIGHTS || desc->ndim < 2) continue;
            const double rows = (double)desc->dim[0], columns = (double)desc->count / rows,
                         scale = 0.125 * 0.2 * sqrt(fmax(rows, columns)), small = fmin(rows, columns),
                         square = pow(norm_of(after, desc->count) / scale, 2);
            if (square > 0.4 * small && square < 1.5 * small) matrices++;
            else others++; /* as Adam: each weight by nearly the rate */
            if (square > 1.5 * small)
                for (uint64_t k = 0; k < desc->count; k++) MRT_TRUE(fabs((double)after[k]) < 0.126);
        }
        MRT_EQ(matrices, 2);
        MRT_EQ(others, 1);
        free(before);
        free(after);
        mrt_rig_close(&rig);
    }
}

/* Plain descent in double as the reference: fast weights from gradients, slow ones half the way. */
static void lookahead_goes_half_the_way(void **state)
{
    (void)state;
    static const char *const devices[] = {"cpu", "cpu:2"};
    for (size_t d = 0; d < MRI_ARRAY_COUNT(devices); d++) {
        mrt_rig_options o = {
            .devices = devices[d], .net = mrt_net_dense, .lr = 0.25f, .seed = 4, .parts = 2, .lookahead = 3};
        mr_error err = MR_ERROR_INIT;
        mr_checkpoint_info info = {.struct_size = sizeof info};
        const char *path = mrt_path("lookahead.mrck");
        mrt_rig rig, plain;
        uint64_t count;
        mrt_rig_open(&rig, &o);
        o.lookahead = 0;
        mrt_rig_open(&plain, &o);
        float *slow = weights_of(&rig, &count);
        for (uint32_t s = 0; s < 3; s++) { /* alike until the third */
            MRT_TRUE(mrt_same(mrt_hash_of(&rig, 0), mrt_hash_of(&plain, 0)));
            mrt_train(&rig, s, s * 32, 32);
            mrt_train(&plain, s, s * 32, 32);
        }
        float *fast = weights_of(&plain, &count), *now = weights_of(&rig, &count);
        bool moved = false;
        for (uint64_t i = 0; i < count; i++) {
            const double half = ((double)slow[i] + (double)fast[i]) / 2;
            MRT_TRUE(fabs((double)now[i] - half) < 1e-7);
            moved = moved || fabs((double)fast[i] - half) > 1e-3;
        }
        MRT_TRUE(moved);
        free(fast);
        free(slow);
        mrt_train(&rig, 3, 96, 32); /* and on from there, through a checkpoint between two */
        MRT_OK(mr_trainer_save(rig.t, path, &info, &err), &err);
        for (uint32_t s = 4; s < 6; s++) mrt_train(&rig, s, s * 32, 32);
        const mrt_hash hash = mrt_hash_of(&rig, 0);
        mrt_rig_close(&rig);
        MRT_EQ(mr_trainer_load(plain.t, path, &info, &err), MR_EINVAL);
        MRT_HAS(err.text, "with Lookahead");
        mrt_rig_close(&plain);
        o.lookahead = 3;
        o.seed = 5;
        mrt_rig_open(&rig, &o);
        MRT_OK(mr_trainer_load(rig.t, path, &info, &err), &err);
        MRT_EQ(info.lookahead, 3);
        for (uint32_t s = 4; s < 6; s++) mrt_train(&rig, s, s * 32, 32);
        MRT_TRUE(mrt_same(hash, mrt_hash_of(&rig, 0)));
        mrt_rig_close(&rig);
        free(now);
    }
}

/* ---- averages ---- */

static const mrt_rig_options averaging = {
    .seed = 7, .net = mrt_net_norm, .update = MR_UPDATE_ADAM, .lr = 0.05f, .parts = 4, .average = 0.75f};

/* The tensors of these two roles in canonical order, of a replica. To be freed. */
static float *tensors_of(const mrt_rig *rig, uint32_t replica, mri_role one, mri_role other, uint64_t *count)
{
    mr_error err = MR_ERROR_INIT;
    const mri_tensors *t = &rig->t->tensors;
    float *out = malloc(t->count * t->most_floats * sizeof *out);
    *count = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        if (t->desc[i].role != one && t->desc[i].role != other) continue;
        MRT_OK(mri_tensor_export(t, &rig->t->team.replicas[replica], i, false, out + *count, &err), &err);
        *count += t->desc[i].count;
    }
    return out;
}
static float *own_of(const mrt_rig *rig, uint64_t *count)
{
    return tensors_of(rig, 0, MRI_ROLE_WEIGHTS, MRI_ROLE_STATE, count);
}
static float *averages_of(const mrt_rig *rig, uint32_t replica, uint64_t *count)
{
    return tensors_of(rig, replica, MRI_ROLE_AVERAGE, MRI_ROLE_AVERAGE_STATE, count);
}

/* Of weights and running statistics, from the initial ones on; training does not know of it. */
static void averages_follow(void **state)
{
    (void)state;
    static const char *const devices[] = {"cpu", "cpu:3", "cpu:4"};
    for (size_t d = 0; d < MRI_ARRAY_COUNT(devices); d++) {
        mrt_rig_options o = averaging;
        mrt_rig rig, plain;
        uint64_t count, averages;
        o.devices = devices[d];
        mrt_rig_open(&rig, &o);
        o.average = 0;
        mrt_rig_open(&plain, &o);
        float *now = own_of(&rig, &count);
        double *expected = malloc(count * sizeof *expected);
        for (uint64_t i = 0; i < count; i++) expected[i] = (double)now[i];
        for (uint32_t s = 0; s < 6; s++) {
            mrt_train(&rig, s, s * 32, 32);
            mrt_train(&plain, s, s * 32, 32);
            free(now);
            now = own_of(&rig, &count);
            for (uint64_t i = 0; i < count; i++) expected[i] = 0.75 * expected[i] + 0.25 * (double)now[i];
        }
        float *found = averages_of(&rig, 0, &averages);
        MRT_EQ(averages, count);
        bool differ = false;
        for (uint64_t i = 0; i < count; i++) {
            MRT_TRUE(fabs((double)found[i] - expected[i]) < 1e-6 * (1 + fabs(expected[i])));
            differ = differ || fabs((double)now[i] - expected[i]) > 1e-3;
        }
        MRT_TRUE(differ);
        MRT_TRUE(mrt_same(mrt_hash_of(&rig, 0), mrt_hash_of(&plain, 0)));
        free(expected);
        free(found);
        free(now);
        mrt_rig_close(&rig);
        mrt_rig_close(&plain);
    }
}

static mr_metrics evaluated(mrt_rig *rig)
{
    mr_error err = MR_ERROR_INIT;
    mr_metrics m;
    mrt_batch b;
    mrt_batch_make(&b, rig, 0, 1000, 32, NULL, 0);
    MRT_OK(mr_trainer_forward(rig->t, &b.b, &err), &err);
    MRT_OK(mr_trainer_metrics(rig->t, NULL, &m, &err), &err);
    mrt_batch_free(&b, rig);
    return m;
}

/* An evaluation equals the result of a trainer with the averages for weights, and of a checkpoint for
 * inference. */
static void averages_are_evaluated(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_checkpoint_info info = {.struct_size = sizeof info};
    const char *path = mrt_path("average.mrck");
    mrt_rig_options o = averaging;
    mrt_rig rig, plain, inference;
    o.devices = "cpu:2";
    mrt_rig_open(&rig, &o);
    for (uint32_t s = 0; s < 5; s++) mrt_train(&rig, s, s * 32, 32);
    const mr_metrics m = evaluated(&rig);
    MRT_OK(mr_trainer_save(rig.t, path, &info, &err), &err);

    o.average = 0;
    mrt_rig_open(&plain, &o);
    for (uint32_t s = 0; s < 5; s++) mrt_train(&plain, s, s * 32, 32);
    MRT_TRUE(evaluated(&plain).loss_sum != m.loss_sum);
    const mri_tensors *from = &rig.t->tensors, *to = &plain.t->tensors;
    float *host = malloc(from->most_floats * sizeof *host);
    for (uint32_t i = 0; i < to->own; i++) {
        const uint32_t average = from->count - from->own + i;
        MRT_STR(from->desc[average].name, to->desc[i].name);
        MRT_OK(mri_tensor_export(from, &rig.t->team.replicas[0], average, false, host, &err), &err);
        for (uint32_t r = 0; r < plain.count; r++)
            MRT_OK(mri_tensor_import(to, &plain.t->team.replicas[r], i, host, &err), &err);
    }
    MRT_TRUE(evaluated(&plain).loss_sum == m.loss_sum);
    o.inference = true;
    mrt_rig_open(&inference, &o);
    MRT_OK(mr_trainer_load(inference.t, path, &info, &err), &err);
    MRT_TRUE(info.average == 0.75f);
    MRT_TRUE(evaluated(&inference).loss_sum == m.loss_sum);
    MRT_TRUE(mrt_same(mrt_hash_of(&plain, 0), mrt_hash_of(&inference, 0)));
    free(host);
    mrt_rig_close(&rig);
    mrt_rig_close(&plain);
    mrt_rig_close(&inference);
}

static void expect_averages(const mrt_rig *rig, const float *expected, uint64_t count)
{
    uint64_t n;
    for (uint32_t r = 0; r < rig->count; r++) {
        float *found = averages_of(rig, r, &n);
        MRT_TRUE(n == count && memcmp(found, expected, count * sizeof *found) == 0);
        free(found);
    }
}

/* A checkpoint goes on with its averages, elsewhere; one without begins them with its weights, one with them
 * may go on without. */
static void averages_go_through_checkpoints(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_checkpoint_info info = {.struct_size = sizeof info};
    const char *path = mrt_path("goes-on.mrck"), *bare = mrt_path("bare.mrck");
    mrt_rig_options o = averaging;
    mrt_rig rig;
    uint64_t count, own;
    o.devices = "cpu:2";
    o.net = mrt_net_dense; /* no statistics, which replicas have of their own until they are evaluated */
    mrt_rig_open(&rig, &o);
    for (uint32_t s = 0; s < 3; s++) mrt_train(&rig, s, s * 32, 32);
    MRT_OK(mr_trainer_save(rig.t, path, &info, &err), &err);
    for (uint32_t s = 3; s < 6; s++) mrt_train(&rig, s, s * 32, 32);
    float *expected = averages_of(&rig, 0, &count);
    expect_averages(&rig, expected, count);
    const mrt_hash hash = mrt_hash_of(&rig, 0);
    mrt_rig_close(&rig);

    o.devices = "cpu:3";
    o.seed = 70;
    mrt_rig_open(&rig, &o);
    MRT_OK(mr_trainer_load(rig.t, path, &info, &err), &err);
    for (uint32_t s = 3; s < 6; s++) mrt_train(&rig, s, s * 32, 32);
    expect_averages(&rig, expected, count);
    MRT_TRUE(mrt_same(hash, mrt_hash_of(&rig, 0)));
    mrt_rig_close(&rig);
    free(expected);

    o.average = 0;
    mrt_rig_open(&rig, &o);
    MRT_OK(mr_trainer_load(rig.t, path, &info, &err), &err);
    for (uint32_t s = 3; s < 6; s++) mrt_train(&rig, s, s * 32, 32);
    MRT_TRUE(mrt_same(hash, mrt_hash_of(&rig, 0)));
    MRT_OK(mr_trainer_save(rig.t, bare, &info, &err), &err);
    mrt_rig_close(&rig);

    o.average = 0.5f;
    mrt_rig_open(&rig, &o);
    MRT_OK(mr_trainer_load(rig.t, bare, &info, &err), &err);
    MRT_TRUE(info.average == 0);
    expected = own_of(&rig, &own);
    MRT_EQ(own, count);
    expect_averages(&rig, expected, count);
    free(expected);
    mrt_rig_close(&rig);
}

static void wrong_settings_are_refused(void **state)
{
    (void)state;
    static const mrt_rig_options wrong[] = {
        {.clip_value = -1},           {.clip_value = NAN},
        {.clip_norm = INFINITY},      {.clip_norm = -0.5f},
        {.decay_on = (mr_decay_on)2}, {.average = 1},
        {.average = -0.1f},           {.average = NAN},
        {.label_smoothing = 1},       {.label_smoothing = -0.1f},
        {.label_smoothing = NAN},     {.update = (mr_update_kind)MR_UPDATE_KIND_COUNT}};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(wrong); k++) {
        mr_error err = MR_ERROR_INIT;
        mrt_rig rig;
        MRT_EQ(mrt_rig_try(&rig, &wrong[k], &err), MR_EINVAL);
        MRT_TRUE(strlen(err.text) > 10);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_have_the_limits),
        cmocka_unit_test(nothing_else_changes_bits),
        cmocka_unit_test(each_changes_something),
        cmocka_unit_test(decay_is_for_what_was_said),
        cmocka_unit_test(layers_say_what_decays),
        cmocka_unit_test(lamb_knows_tensors),
        cmocka_unit_test(muon_knows_matrices),
        cmocka_unit_test(lookahead_goes_half_the_way),
        cmocka_unit_test(averages_follow),
        cmocka_unit_test(averages_are_evaluated),
        cmocka_unit_test(averages_go_through_checkpoints),
        cmocka_unit_test(the_loss_has_its_settings),
        cmocka_unit_test(wrong_settings_are_refused),
    };
    return mrt_run(tests);
}
