/* tests/kernels/device_flow.c: see device_flow.h. */
#include "tests/kernels/device_flow.h"

/* ---- updates ---- */

struct weights {
    float *w, *s0, *s1;
    double norm[2]; /* of the last step: its square, the factor */
    mr_loss_scale scale;
};

/* steps updates of count weights with the gradients of each step; with a scale, the gradients of step `bad`
 * hold one value that is not finite. */
static void run_updates(struct lab *l, mr_update_desc d, bool clips, uint64_t count, int steps, int bad,
                        float first_scale, uint64_t seed, struct weights *r)
{
    const size_t bytes = count * sizeof(float);
    const mr_loss_scale start = {.scale = first_scale, .growth_steps = 2};
    float *w = lab_copy_of(l, lab_noise(count, seed, MR_TENSOR_F32), bytes), *g = lab_memory(l, bytes);
    const uint32_t states = mr_update_state_count(d.kind);
    float *s0 = states > 0 ? lab_zeros(l, bytes) : NULL, *s1 = states > 1 ? lab_zeros(l, bytes) : NULL;
    const size_t stretches = (size_t)((count + MR_UPDATE_STRETCH - 1) / MR_UPDATE_STRETCH);
    uint8_t *some = malloc(stretches);
    for (size_t i = 0; i < stretches; i++) some[i] = i * 7 % 5 < 2 ? 0 : (uint8_t)(1 + i % 3);
    const uint8_t *decays = lab_copy_of(l, some, stretches);
    free(some);
    uint32_t *numbers = calloc(stretches, sizeof *numbers);
    for (size_t i = 1; i < stretches; i++) numbers[i] = numbers[i - 1] + (i % 5 == 1);
    const uint32_t *tensors = lab_copy_of(l, numbers, stretches * sizeof *numbers),
                   tensor_count = numbers[stretches - 1] + 1;
    double *trust = lab_memory(l, (size_t)mr_update_trust_count(count, tensor_count) * sizeof *trust);
    free(numbers);
    const mr_update_matrix matrices[] = {{.at = 64, .rows = 7, .columns = 20},
                                         {.at = 256, .rows = 30, .columns = 11},
                                         {.at = 1024, .rows = 96, .columns = 65}};
    uint32_t matrix_count = 0;
    while (matrix_count < MRI_ARRAY_COUNT(matrices) &&
           matrices[matrix_count].at + matrices[matrix_count].rows * matrices[matrix_count].columns <= count)
        matrix_count++;
    void *room = lab_memory(l, mr_update_room_bytes(l->dev, matrices, matrix_count) + 1);
    double *norm = lab_memory(l, (size_t)mr_update_norm_count(count) * sizeof *norm);
    mr_step_values *values = lab_memory(l, sizeof *values);
    mr_loss_scale *scale = first_scale > 0 ? lab_copy_of(l, &start, sizeof start) : NULL;
    for (int step = 0; step < steps; step++) {
        mr_step_values v = {.step = (uint64_t)step};
        mr_loss_scale now = {.scale = 1};
        float *host = lab_noise(count, seed + 1 + (uint64_t)step, MR_TENSOR_F32);
        d.step = (uint64_t)step + 1;
        lab_note(l, mr_update_values(&d, &v));
        lab_put(l, values, &v, sizeof v);
        if (scale) lab_get(l, &now, scale, sizeof now);
        for (uint64_t i = 0; i < count; i++) host[i] *= now.scale;
        if (step == bad) host[(seed * 7919 + (uint64_t)step) % count] = step % 2 ? NAN : -INFINITY;
        lab_put(l, g, host, bytes);
        mr_update_config cfg;
        mr_update_defaults(&cfg);
        cfg.rule = d;
        cfg.args = (mr_update_args){.count = count,
                                    .weights = w,
                                    .grads = g,
                                    .state = {s0, s1},
                                    .values = values,
                                    .loss_scale = scale};
        if (d.kind == MR_UPDATE_LAMB)
            cfg.tensors = tensors, cfg.tensor_count = tensor_count, cfg.trust = trust;
        if (d.kind == MR_UPDATE_MUON)
            cfg.matrices = matrices, cfg.matrix_count = matrix_count, cfg.room = room;
        if (d.weight_decay > 0 && clips) cfg.decays = decays;
        if (clips) cfg.clip_value = 0.8f, cfg.clip_norm = step % 3 ? 0.4f : 1e6f, cfg.norm = norm;
        if (!l->rc) lab_note(l, mr_update_run_async(l->s, &cfg));
        lab_sync(l);
    }
    *r = (struct weights){.w = lab_floats(count), .s0 = lab_floats(count), .s1 = lab_floats(count)};
    lab_get(l, r->w, w, bytes);
    if (s0) lab_get(l, r->s0, s0, bytes);
    if (s1) lab_get(l, r->s1, s1, bytes);
    if (scale) lab_get(l, &r->scale, scale, sizeof r->scale);
    if (clips) lab_get(l, r->norm, norm, sizeof r->norm);
}

static void finish(const char *name)
{
    const char *broken = lab_release(&mrt_device);
    if (broken) lab_fail(name, "guards", broken);
    lab_release(&mrt_reference);
    if (mrt_device.rc) {
        lab_fail(name, "error", mrt_device.err.text);
        lab_reopen(&mrt_device);
    }
    lab_host_reset();
    lab_case_done();
}

static void compare_updates(mr_update_desc d, bool clips, uint64_t count, int bad, float scale, uint64_t seed)
{
    struct weights a, b;
    char name[96];
    snprintf(name, sizeof name, "%s of %llu%s%s%s", mr_update_name(&d), (unsigned long long)count,
             clips ? ", clipped" : "", d.weight_decay > 0 ? ", decay" : "", scale > 0 ? ", scaled" : "");
    run_updates(&mrt_device, d, clips, count, 6, bad, scale, seed, &a);
    run_updates(&mrt_reference, d, clips, count, 6, bad, scale, seed, &b);
    lab_check(name, "weights", lab_error(a.w, b.w, count, 0.01), 1e-5);
    if (mr_update_state_count(d.kind) > 0)
        lab_check(name, "state 0", lab_error(a.s0, b.s0, count, 0.01), 1e-5);
    if (mr_update_state_count(d.kind) > 1)
        lab_check(name, "state 1", lab_error(a.s1, b.s1, count, 0.01), 1e-5);
    for (int k = 0; clips && k < 2; k++)
        lab_check(name, k ? "factor" : "norm", fabs(a.norm[k] - b.norm[k]) / (1e-30 + b.norm[k]), 1e-6);
    if (a.scale.scale != b.scale.scale || a.scale.good != b.scale.good ||
        a.scale.skipped != b.scale.skipped) {
        char text[160];
        snprintf(text, sizeof text, "scale, good, skipped: %g %u %llu, expected %g %u %llu",
                 (double)a.scale.scale, a.scale.good, (unsigned long long)a.scale.skipped,
                 (double)b.scale.scale, b.scale.good, (unsigned long long)b.scale.skipped);
        lab_fail(name, "scale", text);
    }
    finish(name);
}

static void check_updates(void)
{
    static const uint64_t counts[] = {1, 255, 1023, 65537};
    lab_group_begin("update", MR_TENSOR_F32);
    for (size_t k = 0; k < MRI_ARRAY_COUNT(counts) - lab_settings()->quick; k++)
        for (uint32_t rule = 0; mr_update_rule_at(rule); rule++)
            for (uint32_t at = 0; at < 4; at++) {
                mr_update_desc d = mr_update_rule_at(rule)->desc;
                d.lr = 0.01f;
                d.epsilon = 1e-3f;
                d.weight_decay = at % 2 ? 0.1f : 0;
                const bool scaled = at >= 2;
                compare_updates(d, (at + rule) % 2, counts[k], scaled ? (int)(k + 1) : -1, scaled ? 512 : 0,
                                rule + 16 * at + 100 * k);
            }
    lab_group_end();
}

/* ---- averages ---- */

static float *run_average(struct lab *l, uint64_t count, uint64_t shift)
{
    const size_t bytes = (count + shift) * sizeof(float);
    float *average = lab_zeros(l, bytes), *out = lab_floats(count + shift);
    for (uint64_t step = 0; step < 4; step++) {
        const float *from = lab_copy_of(l, lab_noise(count + shift, step + 40, MR_TENSOR_F32), bytes);
        if (!l->rc) lab_note(l, mr_average_async(l->s, average + shift, from + shift, count, 0.8f));
    }
    lab_sync(l);
    lab_get(l, out, average, bytes);
    return out;
}

static void check_averages(void)
{
    static const uint64_t counts[] = {1, 255, 1024, 65537};
    lab_group_begin("average", MR_TENSOR_F32);
    for (size_t k = 0; k < MRI_ARRAY_COUNT(counts); k++)
        for (uint64_t shift = 0; shift < 2; shift++) { /* 1: no packs */
            char name[64];
            snprintf(name, sizeof name, "average of %llu from %llu on", (unsigned long long)counts[k],
                     (unsigned long long)shift);
            const float *a = run_average(&mrt_device, counts[k], shift),
                        *b = run_average(&mrt_reference, counts[k], shift);
            lab_check(name, "average", lab_error(a, b, counts[k] + shift, 0.01), 1e-6);
            finish(name);
        }
    lab_group_end();
}

/* ---- an invalid label ---- */

/* Either the device stops with an error, or it leaves the sample out and counts it. */
static void check_bad_label(void)
{
    static const char name[] = "label 7 of 7 classes";
    lab_group_begin("bad label", MR_TENSOR_F32);
    struct op_case c = {.d = {.kind = MR_OP_LOSS,
                              .in = lab_nhwc(1, 1, 7, MR_TENSOR_F32),
                              .max_batch = 5,
                              .training = true,
                              .need_dx = true},
                        .n = 5,
                        .tolerance = 1e-5};
    c.in = c.d.in;
    struct op_io io = op_inputs(&c, 3);
    struct op_result a, b;
    io.labels[2] = 7;
    op_run(&mrt_device, &c.d, &c.in, c.n, &io, NULL, &a);
    if (mrt_device.rc == MR_EINVAL) {
        lab_release(&mrt_device);
        lab_reopen(&mrt_device);
    } else {
        io.labels[2] = -1;
        op_run(&mrt_reference, &c.d, &c.in, c.n, &io, NULL, &b);
        if (a.metrics.bad != 1 || a.metrics.count != b.metrics.count ||
            a.metrics.correct != b.metrics.correct)
            lab_fail(name, "metrics", "not as promised");
        lab_check(name, "loss_sum", fabs(a.metrics.loss_sum - b.metrics.loss_sum), 1e-5);
        lab_check(name, "dx", lab_error(a.dx, b.dx, 35, 0.01), c.tolerance);
    }
    finish(name);
    lab_group_end();
}

/* ---- copies ---- */

/* Bytes in, across, partly overwritten, and out again, at odd places, on two streams that an event orders. */
static void check_copy(size_t bytes, size_t shift)
{
    struct lab *l = &mrt_device;
    mr_stream *other = NULL;
    mr_event *e = NULL;
    char name[64];
    snprintf(name, sizeof name, "%zu bytes from %zu", bytes, shift);
    uint8_t *host = lab_host(bytes), *back = lab_host(bytes), *a = lab_memory(l, bytes + shift),
            *b = lab_memory(l, bytes + shift);
    for (size_t i = 0; i < bytes; i++) host[i] = (uint8_t)mri_mix64(i + bytes);
    lab_put(l, a + shift, host, bytes);
    lab_note(l, mr_stream_create(&other, l->dev, MR_STREAM_COPY, &l->err));
    lab_note(l, mr_event_create(&e, l->dev, &l->err));
    if (!l->rc) lab_note(l, mr_copy_d2d_async(other, b + shift, a + shift, bytes));
    if (!l->rc) lab_note(l, mr_event_record(e, other));
    if (!l->rc) lab_note(l, mr_stream_wait_event(l->s, e));
    if (!l->rc) lab_note(l, mr_fill_async(l->s, b + shift + bytes / 2, 0x3C, bytes - bytes / 2));
    lab_get(l, back, b + shift, bytes);
    for (size_t i = 0; i < bytes; i++)
        if (back[i] != (i < bytes / 2 ? host[i] : 0x3C)) {
            lab_fail(name, "bytes", "came back changed");
            break;
        }
    if (!lab_untouched(l, b, shift)) lab_fail(name, "bytes", "in front were written");
    lab_note(l, mr_stream_sync(other, &l->err));
    mr_event_destroy(e);
    mr_stream_destroy(other);
    finish(name);
}

static void check_copies(void)
{
    static const size_t sizes[] = {1, 3, 255, 4097, 1000003};
    lab_group_begin("copies", MR_TENSOR_U8);
    for (size_t i = 0; i < MRI_ARRAY_COUNT(sizes); i++)
        for (size_t shift = 0; shift < 3; shift++) check_copy(sizes[i], shift * 5);
    lab_group_end();
}

/* ---- groups ---- */

#define MOST_DEVICES 16u

struct crowd {
    struct lab *labs; /* one for each device, sharing its devices */
    mr_stream *streams[MOST_DEVICES];
    mr_group *group;
    uint32_t count;
    float *values[MOST_DEVICES], *host[MOST_DEVICES];
};

static void crowd_fill(struct crowd *c, uint64_t count, uint64_t seed)
{
    for (uint32_t i = 0; i < c->count; i++) {
        c->host[i] = lab_noise(count, seed + i, MR_TENSOR_F32);
        c->values[i] = lab_copy_of(&c->labs[i], c->host[i], count * 4);
    }
}

/* What each device holds, after all of it is done. */
static void crowd_take(struct crowd *c, uint64_t count, float *out[MOST_DEVICES])
{
    for (uint32_t i = 0; i < c->count; i++) {
        out[i] = lab_floats(count);
        lab_sync(&c->labs[i]);
        lab_get(&c->labs[i], out[i], c->values[i], count * 4);
    }
}

static void crowd_finish(struct crowd *c, const char *name)
{
    for (uint32_t i = 0; i < c->count; i++) {
        const char *broken = lab_release(&c->labs[i]);
        if (broken) lab_fail(name, "guards", broken);
        if (c->labs[i].rc) lab_fail(name, "error", c->labs[i].err.text);
    }
    lab_host_reset();
    lab_case_done();
}

static void check_sum(struct crowd *c, uint64_t count)
{
    char name[64];
    float *got[MOST_DEVICES], *expected = lab_floats(count);
    snprintf(name, sizeof name, "sum of %llu on %u", (unsigned long long)count, c->count);
    crowd_fill(c, count, count);
    for (uint64_t k = 0; k < count; k++) {
        double sum = 0;
        for (uint32_t i = 0; i < c->count; i++) sum += (double)c->host[i][k];
        expected[k] = (float)sum;
    }
    lab_note(&c->labs[0], mr_group_sum_async(c->group, c->values, count));
    crowd_take(c, count, got);
    lab_check(name, "sum", lab_error(got[0], expected, count, 0.01), 1e-6);
    for (uint32_t i = 1; i < c->count; i++)
        if (memcmp(got[i], got[0], count * 4) != 0)
            lab_fail(name, "sum", "not the same bits on every device");
    crowd_finish(c, name);
}

static void check_broadcast(struct crowd *c, uint64_t count, uint32_t root)
{
    char name[64];
    float *got[MOST_DEVICES];
    snprintf(name, sizeof name, "broadcast of %llu from %u of %u", (unsigned long long)count, root, c->count);
    crowd_fill(c, count, count + 50);
    lab_note(&c->labs[0], mr_group_broadcast_async(c->group, c->values, count, root));
    crowd_take(c, count, got);
    for (uint32_t i = 0; i < c->count; i++)
        if (memcmp(got[i], c->host[root], count * 4) != 0)
            lab_fail(name, "broadcast", "another array arrived");
    crowd_finish(c, name);
}

static void check_groups(void)
{
    static const uint64_t counts[] = {1, 7, 1023, 65537};
    struct lab *base = &mrt_device;
    struct crowd c = {.count = base->count < MOST_DEVICES ? base->count : MOST_DEVICES};
    mr_error err = MR_ERROR_INIT;
    lab_group_begin("groups", MR_TENSOR_F32);
    c.labs = calloc(c.count, sizeof *c.labs);
    if (!c.labs) abort();
    for (uint32_t i = 0; i < c.count; i++) {
        c.labs[i] = (struct lab){
            .spec = base->spec, .devices = base->devices, .count = base->count, .err = MR_ERROR_INIT};
        lab_use(&c.labs[i], i);
        c.streams[i] = c.labs[i].s;
    }
    if (mr_group_create(&c.group, c.streams, c.count, &err)) lab_fail("create", "group", err.text);
    for (size_t k = 0; c.group && k < MRI_ARRAY_COUNT(counts); k++) {
        check_sum(&c, counts[k]);
        check_broadcast(&c, counts[k], (uint32_t)k % c.count);
    }
    for (uint32_t i = 0; i < c.count; i++) lab_leave(&c.labs[i]);
    mr_group_destroy(c.group);
    free(c.labs);
    lab_group_end();
}

void flow_check_all(void)
{
    check_updates();
    check_averages();
    check_copies();
    check_groups();
    check_bad_label();
}
