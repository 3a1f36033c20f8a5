/* Shares that train weights of their own, and their averages: the reference is a trainer for each share, and
 * the outer step in double. Snapshots and checkpoints between two averages; what does not go with averages.
 */
#include <math.h>

#include "tests/train/rig.h"

enum { BATCH = 32, SHARES = 4, EACH = BATCH / SHARES };

static const mrt_rig_options plain = {.net = mrt_net_norm,
                                      .lr = 0.05f,
                                      .seed = 4,
                                      .batch = BATCH,
                                      .parts = SHARES,
                                      .update = MR_UPDATE_MOMENTUM};

/* Tensors of a role, one after the other; to be freed. */
static double *values_of(const mrt_rig *rig, mri_role role, size_t *count)
{
    const mri_tensors *t = &rig->t->tensors;
    mr_error err = MR_ERROR_INIT;
    double *all = NULL;
    float *one = malloc((size_t)t->most_floats * sizeof *one);
    *count = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        if (t->desc[i].role != role) continue;
        MRT_OK(mri_tensor_export(t, &rig->t->team.replicas[0], i, false, one, &err), &err);
        all = realloc(all, (*count + (size_t)t->desc[i].count) * sizeof *all);
        for (uint64_t n = 0; n < t->desc[i].count; n++) all[(*count)++] = (double)one[n];
    }
    free(one);
    return all;
}

/* A trainer of one share, which sees that share's samples only. */
static void train_alone(mrt_rig *rig, uint32_t share, uint32_t step)
{
    mrt_train(rig, step, step * BATCH + share * EACH, EACH);
}

/* The outer step, as its authors write it, in double. */
typedef struct outer_reference {
    double *x, *v;
    size_t count;
} outer_reference;

static void outer_step(outer_reference *o, double *const *w, double lr, double momentum, bool heavy_ball)
{
    for (size_t i = 0; i < o->count; i++) {
        double mean = 0;
        for (int s = 0; s < SHARES; s++) mean += (o->x[i] - w[s][i]) / SHARES;
        o->v[i] = momentum * o->v[i] + mean;
        o->x[i] -= lr * (heavy_ball ? o->v[i] : mean + momentum * o->v[i]);
    }
}

static void near(const double *found, const double *expected, size_t count, double most)
{
    bool moved = false;
    for (size_t i = 0; i < count; i++) {
        if (!(fabs(found[i] - expected[i]) <= most))
            fail_msg("value %zu is %g, expected %g", i, found[i], expected[i]);
        moved = moved || found[i] != 0;
    }
    MRT_TRUE(moved);
}

/* One round against trainers of one share each: the shares' weights begin alike, so one round shows all of
 * it. */
static void averages_are_those_of_single_trainers(void **state)
{
    (void)state;
    static const struct {
        float lr, momentum;
        bool heavy_ball;
    } outer[] = {{1, 0, false}, {0.7f, 0.9f, false}, {0.5f, 0.8f, true}};
    static const char *const devices[] = {"cpu", "cpu:2", "cpu:3", "cpu:4"};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(outer) * MRI_ARRAY_COUNT(devices); k++) {
        const size_t rule = k / MRI_ARRAY_COUNT(devices);
        mrt_rig rig, alone[SHARES];
        mrt_rig_options o = plain, one = plain;
        size_t count = 0, stats = 0;
        double *w[SHARES], *s[SHARES], *slots[SHARES];
        o.devices = devices[k % MRI_ARRAY_COUNT(devices)];
        o.sync = mr_sync_average(3);
        o.outer_lr = outer[rule].lr, o.outer_momentum = outer[rule].momentum;
        o.outer_heavy_ball = outer[rule].heavy_ball;
        one.parts = 1, one.batch = EACH;
        mrt_rig_open(&rig, &o);
        outer_reference reference = {.x = values_of(&rig, MRI_ROLE_WEIGHTS, &count)};
        reference.count = count;
        reference.v = calloc(count, sizeof *reference.v);
        for (uint32_t p = 0; p < SHARES; p++) {
            mrt_rig_open(&alone[p], &one);
            for (uint32_t step = 0; step < 3; step++) train_alone(&alone[p], p, step);
            w[p] = values_of(&alone[p], MRI_ROLE_WEIGHTS, &count);
            s[p] = values_of(&alone[p], MRI_ROLE_STATE, &stats);
            slots[p] = values_of(&alone[p], MRI_ROLE_SLOT0, &count);
            mrt_rig_close(&alone[p]);
        }
        for (uint32_t step = 0; step < 3; step++) mrt_train(&rig, step, step * BATCH, BATCH);
        outer_step(&reference, w, (double)o.outer_lr, (double)o.outer_momentum, o.outer_heavy_ball);
        for (uint32_t p = 1; p < SHARES; p++) {
            for (size_t i = 0; i < stats; i++) s[0][i] += s[p][i];
            for (size_t i = 0; i < count; i++) slots[0][i] += slots[p][i];
        }
        for (size_t i = 0; i < stats; i++) s[0][i] /= SHARES;
        for (size_t i = 0; i < count; i++) slots[0][i] /= SHARES;
        double *x = values_of(&rig, MRI_ROLE_WEIGHTS, &count), *y = values_of(&rig, MRI_ROLE_STATE, &stats),
               *z = values_of(&rig, MRI_ROLE_SLOT0, &count);
        near(x, reference.x, count, 1e-6);
        near(y, s[0], stats, 1e-5);
        near(z, slots[0], count, 1e-6);
        free(x), free(y), free(z), free(reference.x), free(reference.v);
        for (uint32_t p = 0; p < SHARES; p++) free(w[p]), free(s[p]), free(slots[p]);
        mrt_rig_close(&rig);
    }
}

/* With averages after every update of plain descent the mean of the weights moves by the mean gradient. */
static void averages_after_every_update_are_sync(void **state)
{
    (void)state;
    mrt_rig_options o = plain;
    mrt_rig each, average;
    size_t count;
    o.net = mrt_net_dense, o.update = MR_UPDATE_SGD;
    mrt_rig_open(&each, &o);
    o.sync = mr_sync_average(1);
    mrt_rig_open(&average, &o);
    for (uint32_t s = 0; s < 6; s++) { /* the last one is cut unevenly */
        mrt_train(&each, s, s * BATCH, s < 5 ? BATCH : 21);
        mrt_train(&average, s, s * BATCH, s < 5 ? BATCH : 21);
    }
    double *a = values_of(&each, MRI_ROLE_WEIGHTS, &count),
           *b = values_of(&average, MRI_ROLE_WEIGHTS, &count);
    near(a, b, count, 1e-6);
    free(a);
    free(b);
    mrt_rig_close(&each);
    mrt_rig_close(&average);
}

/* The weights of a share's state, as mri_trainer_gather_shares() gives it. */
static void weights_of_state(const mrt_rig *rig, const float *state, double *out)
{
    const mri_tensors *t = &rig->t->tensors;
    for (uint32_t i = 0; i < t->count; state += t->desc[i++].count)
        for (uint64_t n = 0; t->desc[i].role == MRI_ROLE_WEIGHTS && n < t->desc[i].count; n++)
            *out++ = (double)state[n];
}

/* Without averages each share is a trainer of its own, and share 0 is evaluated and stored. */
static void independent_shares_are_single_trainers(void **state)
{
    (void)state;
    static const char *const devices[] = {"cpu", "cpu:2", "cpu:3"};
    mr_error err = MR_ERROR_INIT;
    for (size_t k = 0; k < MRI_ARRAY_COUNT(devices); k++) {
        mrt_rig rig, alone;
        mrt_rig_options o = plain, one = plain;
        size_t count, stats;
        o.devices = devices[k], o.sync = MR_SYNC_INDEPENDENT;
        one.parts = 1, one.batch = EACH;
        mrt_rig_open(&rig, &o);
        for (uint32_t step = 0; step < 3; step++) mrt_train(&rig, step, step * BATCH, BATCH);
        mrt_hash_of(&rig, 0); /* share 0's weights become the ones read */
        const uint64_t floats = mri_worker_state_floats(&rig.t->tensors);
        float *shares = malloc(SHARES * (size_t)floats * sizeof *shares);
        MRT_OK(mri_trainer_gather_shares(rig.t, shares, &err), &err);
        double *x = values_of(&rig, MRI_ROLE_WEIGHTS, &count), *y = values_of(&rig, MRI_ROLE_STATE, &stats),
               *own = malloc(count * sizeof *own);
        for (uint32_t p = 0; p < SHARES; p++) {
            mrt_rig_open(&alone, &one);
            for (uint32_t step = 0; step < 3; step++) train_alone(&alone, p, step);
            double *w = values_of(&alone, MRI_ROLE_WEIGHTS, &count),
                   *s = values_of(&alone, MRI_ROLE_STATE, &stats);
            weights_of_state(&rig, shares + p * floats, own);
            near(own, w, count, 1e-6);
            if (p == 0) near(x, w, count, 1e-6);
            if (p == 0) near(y, s, stats, 1e-5);
            if (p > 0) MRT_TRUE(memcmp(own, x, count * sizeof *own) != 0);
            free(w), free(s);
            mrt_rig_close(&alone);
        }
        free(x), free(y), free(own), free(shares);
        mrt_rig_close(&rig);
    }
}

static void import_weights(const mrt_rig *to, const mrt_rig *from)
{
    const mri_tensors *t = &to->t->tensors;
    mr_error err = MR_ERROR_INIT;
    float *one = malloc((size_t)t->most_floats * sizeof *one);
    for (uint32_t i = 0; i < t->count; i++) {
        if (t->desc[i].role != MRI_ROLE_WEIGHTS) continue;
        MRT_OK(mri_tensor_export(&from->t->tensors, &from->t->team.replicas[0], i, false, one, &err), &err);
        MRT_OK(mri_tensor_import(t, &to->t->team.replicas[0], i, one, &err), &err);
    }
    free(one);
}

/* Each update moves the weights as one of sums would have moved the weights one update before, with the batch
 * before. */
static void delayed_updates_are_one_batch_late(void **state)
{
    (void)state;
    static const char *const devices[] = {"cpu", "cpu:3"};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(devices); k++) {
        mrt_rig_options o = plain, each = plain;
        mrt_rig rig, sums;
        size_t count;
        o.net = each.net = mrt_net_dense, o.update = each.update = MR_UPDATE_SGD;
        o.devices = devices[k], o.sync = MR_SYNC_DELAYED;
        mrt_rig_open(&rig, &o);
        mrt_rig_open(&sums, &each);
        double *moves = NULL, *before = values_of(&rig, MRI_ROLE_WEIGHTS, &count);
        for (uint32_t s = 0; s < 5; s++) {
            import_weights(&sums, &rig);
            mrt_train(&rig, s, s * BATCH, BATCH);
            mrt_train(&sums, s, s * BATCH, BATCH);
            double *now = values_of(&rig, MRI_ROLE_WEIGHTS, &count),
                   *summed = values_of(&sums, MRI_ROLE_WEIGHTS, &count);
            if (!moves) MRT_EQ(memcmp(now, before, count * sizeof *now), 0);
            for (size_t i = 0; moves && i < count; i++) moves[i] += before[i];
            if (moves) near(now, moves, count, 1e-6);
            free(moves);
            moves = malloc(count * sizeof *moves);
            for (size_t i = 0; i < count; i++) moves[i] = summed[i] - before[i];
            free(summed), free(before);
            before = now;
        }
        free(moves), free(before);
        mrt_rig_close(&rig);
        mrt_rig_close(&sums);
    }
}

/* Steps from `from` to `to`, and the weights after them. */
static mrt_hash weights_after(mrt_rig *rig, uint32_t from, uint32_t to)
{
    for (uint32_t s = from; s < to; s++) mrt_train(rig, s, s * BATCH, BATCH);
    return mrt_hash_of(rig, 0);
}

/* At every step of a round: by a checkpoint on other devices, and by a snapshot. */
static void continues(uint32_t sync)
{
    static const char *const devices[] = {"cpu", "cpu:2", "cpu:3", "cpu:4"};
    mr_error err = MR_ERROR_INIT;
    mr_checkpoint_info info = {.struct_size = sizeof info};
    mrt_rig_options o = plain;
    mrt_rig rig;
    mr_snapshot *snapshot;
    o.sync = sync, o.outer_lr = 0.7f, o.outer_momentum = 0.9f, o.update = MR_UPDATE_ADAM;
    o.devices = "cpu:2";
    mrt_rig_open(&rig, &o);
    const mrt_hash whole = weights_after(&rig, 0, 12);
    mrt_rig_close(&rig);
    for (uint32_t at = 4; at < 9; at++) {
        const char *path = mrt_path("round%u-%u.mrck", sync & 255, at);
        mrt_rig_open(&rig, &o);
        weights_after(&rig, 0, at);
        MRT_OK(mr_trainer_save(rig.t, path, &info, &err), &err);
        MRT_OK(mr_snapshot_create(&snapshot), NULL);
        MRT_OK(mr_trainer_snapshot(rig.t, snapshot, &info, &err), &err);
        MRT_TRUE(mrt_same(weights_after(&rig, at, 12), whole));
        MRT_OK(mr_trainer_restore(rig.t, snapshot, &err), &err);
        MRT_TRUE(mrt_same(weights_after(&rig, at, 12), whole));
        mr_snapshot_destroy(snapshot);
        mrt_rig_close(&rig);
        mrt_rig_options other = o;
        other.devices = devices[at % 4], other.seed = 99;
        mrt_rig_open(&rig, &other);
        weights_after(&rig, 0, 2); /* what loading replaces */
        MRT_OK(mr_trainer_load(rig.t, path, &info, &err), &err);
        MRT_EQ(info.sync, sync);
        MRT_TRUE(info.outer_lr == 0.7f && info.outer_momentum == 0.9f && !info.outer_heavy_ball);
        MRT_TRUE(mrt_same(weights_after(&rig, at, 12), whole));
        mrt_rig_close(&rig);
    }
}

static void a_run_continues_inside_a_round(void **state)
{
    (void)state;
    continues(mr_sync_average(4));
    continues(MR_SYNC_INDEPENDENT);
    continues(MR_SYNC_DELAYED);
}

/* Between two averages weights that are evaluated and hashed stay. */
static void common_weights_change_in_averages_only(void **state)
{
    (void)state;
    mrt_rig_options o = plain;
    mrt_rig rig;
    o.sync = mr_sync_average(3);
    mrt_rig_open(&rig, &o);
    mrt_hash before = mrt_hash_of(&rig, 0);
    for (uint32_t s = 0; s < 9; s++) {
        mrt_train(&rig, s, s * BATCH, BATCH);
        const mrt_hash now = mrt_hash_of(&rig, 0);
        MRT_EQ(mrt_same(now, before), (s + 1) % 3 != 0);
        before = now;
    }
    mrt_rig_close(&rig);
}

/* An average makes no bit of frozen layers different. */
static void frozen_layers_stay(void **state)
{
    (void)state;
    mrt_rig_options o = plain;
    mrt_rig rig;
    size_t count, after;
    o.net = mrt_net_branch, o.freeze = "0", o.parts = 3, o.batch = 24, o.sync = mr_sync_average(2);
    o.outer_lr = 0.7f, o.outer_momentum = 0.9f;
    mrt_rig_open(&rig, &o);
    double *before = values_of(&rig, MRI_ROLE_WEIGHTS, &count);
    for (uint32_t s = 0; s < 5; s++) mrt_train(&rig, s, s * 24, 24);
    double *now = values_of(&rig, MRI_ROLE_WEIGHTS, &after);
    const uint64_t frozen = rig.t->tensors.desc[0].count;
    MRT_EQ(count, after);
    MRT_EQ(memcmp(before, now, (size_t)frozen * sizeof *now), 0);
    MRT_TRUE(memcmp(before, now, count * sizeof *now) != 0);
    free(before);
    free(now);
    mrt_rig_close(&rig);
}

static void what_does_not_go_together_is_refused(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_checkpoint_info info = {.struct_size = sizeof info};
    mrt_rig rig;
    mrt_rig_options o = plain;
    o.sync = mr_sync_average(2);
    const char *path = mrt_path("refused.mrck");
    mrt_rig_open(&rig, &o);
    weights_after(&rig, 0, 3);
    MRT_OK(mr_trainer_save(rig.t, path, &info, &err), &err);
    mrt_rig_close(&rig);
    for (int k = 0; k < 3; k++) {
        static const char *const why[] = {"sync", "sync", "the own state of 4 shares"};
        mrt_rig_options other = o;
        other.sync = k == 0 ? (uint32_t)MR_SYNC_EACH : mr_sync_average(k == 1 ? 3 : 2);
        if (k == 2) other.parts = 2;
        mrt_rig_open(&rig, &other);
        const mrt_hash before = mrt_hash_of(&rig, 0);
        MRT_EQ(mr_trainer_load(rig.t, path, &info, &err), MR_EINVAL);
        MRT_HAS(err.text, why[k]);
        MRT_TRUE(mrt_same(before, mrt_hash_of(&rig, 0)));
        mrt_rig_close(&rig);
    }
    o.lookahead = 2;
    MRT_EQ(mrt_rig_try(&rig, &o, &err), MR_EINVAL);
    MRT_HAS(err.text, "lookahead");
    o.lookahead = 0, o.average = 0.9f;
    MRT_EQ(mrt_rig_try(&rig, &o, &err), MR_EINVAL);
    MRT_HAS(err.text, "average");
    o.sync = MR_SYNC_DELAYED;
    MRT_EQ(mrt_rig_try(&rig, &o, &err), MR_EINVAL);
    MRT_HAS(err.text, "gradients of the batch before do not go with average");
    o.average = 0, o.sync = MR_SYNC_INDEPENDENT, o.exchange = MR_EXCHANGE_INT8;
    MRT_EQ(mrt_rig_try(&rig, &o, &err), MR_EINVAL);
    MRT_HAS(err.text, "independent shares exchange nothing");
    o.exchange = MR_EXCHANGE_F32, o.sync = mr_sync_average(0);
    MRT_EQ(mrt_rig_try(&rig, &o, &err), MR_EINVAL);
    MRT_HAS(err.text, "mr_trainer_config.sync is 1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(averages_are_those_of_single_trainers),
        cmocka_unit_test(averages_after_every_update_are_sync),
        cmocka_unit_test(independent_shares_are_single_trainers),
        cmocka_unit_test(delayed_updates_are_one_batch_late),
        cmocka_unit_test(a_run_continues_inside_a_round),
        cmocka_unit_test(common_weights_change_in_averages_only),
        cmocka_unit_test(frozen_layers_stay),
        cmocka_unit_test(what_does_not_go_together_is_refused),
    };
    return mrt_run(tests);
}
