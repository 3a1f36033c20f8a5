/* tests/train/rig.c: see rig.h. */
#include <unistd.h>

#include "tests/train/rig.h"

const mr_loader_field_info mrt_fields[MRT_FIELDS] = {
    [MRT_FLOATS] = {.name = "floats",
                    .dtype = MR_F32,
                    .ndim = 3,
                    .dim = {MRT_SIDE, MRT_SIDE, 1},
                    .element_bytes = MRT_PIXELS * sizeof(float),
                    .most = 1},
    [MRT_KIND] = {.name = "kind", .dtype = MR_I64, .element_bytes = sizeof(int64_t), .most = 1},
    [MRT_SOFTS] = {.name = "soft",
                   .dtype = MR_F64,
                   .ndim = 1,
                   .dim = {MRT_SOFT},
                   .element_bytes = MRT_SOFT * sizeof(double),
                   .most = 1},
};

mr_net *mrt_net_conv(void)
{
    mr_net *net;
    MRT_EQ(mr_net_create(&net, "toy-conv", MRT_SIDE, MRT_SIDE, 1), MR_OK);
    mr_net_conv2d(net, 6, 3, 1, MR_PAD_SAME, MR_ACT_RELU);
    mr_net_max_pool(net, 2, 2);
    mr_net_dropout(net, 0.25f);
    mr_net_conv2d(net, 5, 3, 1, MR_PAD_VALID, MR_ACT_TANH);
    mr_net_dropout(net, 0.1f); /* behind tanh: may not work in place */
    mr_net_dense(net, 16, MR_ACT_RELU);
    mr_net_dropout(net, 0.5f);
    mr_net_dense(net, MRT_CLASSES, MR_ACT_NONE);
    return net;
}

mr_net *mrt_net_norm(void)
{
    mr_net *net;
    MRT_EQ(mr_net_create(&net, "toy-norm", MRT_SIDE, MRT_SIDE, 1), MR_OK);
    mr_net_conv2d(net, 4, 3, 1, MR_PAD_SAME, MR_ACT_NONE);
    mr_net_batch_norm(net, 0.9f, 1e-3f, MR_ACT_RELU);
    mr_net_avg_pool(net, 2, 2);
    mr_net_dense(net, 8, MR_ACT_NONE);
    mr_net_activation(net, MR_ACT_SELU);
    mr_net_dense(net, MRT_CLASSES, MR_ACT_NONE);
    return net;
}

mr_net *mrt_net_dense(void)
{
    mr_net *net;
    MRT_EQ(mr_net_create(&net, "toy-dense", MRT_SIDE, MRT_SIDE, 1), MR_OK);
    mr_net_dense(net, 12, MR_ACT_RELU);
    mr_net_dense(net, MRT_CLASSES, MR_ACT_NONE);
    return net;
}

mr_net *mrt_net_branch(void)
{
    mr_net *net;
    MRT_EQ(mr_net_create(&net, "toy-branch", MRT_SIDE, MRT_SIDE, 1), MR_OK);
    mr_net_conv2d(net, 4, 3, 1, MR_PAD_SAME, MR_ACT_TANH);
    const mr_point in = mr_net_here(net);
    mr_net_conv(net, &(mr_conv){.filters = 5, .kernel = 1, .stride = 2, .no_bias = true});
    const mr_point cut = mr_net_here(net);
    mr_net_from(net, in);
    mr_net_conv(net, &(mr_conv){.filters = 5, .kernel = 3, .stride = 2, .pad = 1, .activation = MR_ACT_TANH});
    mr_net_add(net, cut, MR_ACT_NONE);
    mr_net_activation(net, MR_ACT_SELU); /* rides along */
    const mr_point sum = mr_net_here(net);
    mr_net_conv2d(net, 5, 3, 1, MR_PAD_SAME, MR_ACT_SIGMOID);
    mr_net_add(net, sum, MR_ACT_NONE); /* its gradient passes on to both, one of them with a second taker */
    const mr_point again = mr_net_here(net);
    mr_net_activation(net, MR_ACT_TANH); /* not alone on its input: an op of its own */
    mr_net_add(net, again, MR_ACT_NONE);
    const mr_point kept = mr_net_here(net);
    mr_net_dropout(net, 0.2f); /* not alone either: may not work in place */
    mr_net_add(net, kept, MR_ACT_TANH);
    mr_net_global_avg_pool(net);
    mr_net_dense(net, MRT_CLASSES, MR_ACT_NONE);
    return net;
}

mr_net *mrt_net_coder(void)
{
    mr_net *net;
    MRT_EQ(mr_net_create(&net, "toy-coder", MRT_SIDE, MRT_SIDE, 1), MR_OK);
    mr_net_conv2d(net, 4, 3, 2, MR_PAD_SAME, MR_ACT_TANH);
    mr_net_dense(net, 12, MR_ACT_TANH);
    const mr_point code = mr_net_here(net);
    mr_net_dense(net, 3, MR_ACT_NONE);
    const mr_point log_variance = mr_net_here(net);
    mr_net_from(net, code);
    mr_net_dense(net, 3, MR_ACT_NONE);
    mr_net_loss_pair(net, MR_PAIR_DIVERGENCE, log_variance, 0.5f);
    mr_net_sample(net, log_variance, 0.5f);
    const mr_point drawn = mr_net_here(net);
    mr_net_dense(net, MRT_CLASSES, MR_ACT_NONE);
    mr_net_loss_labels(net, 2);
    mr_net_from(net, drawn);
    mr_net_dense(net, 4 * 4 * 6, MR_ACT_SELU);
    mr_net_reshape(net, 4, 4, 6);
    mr_net_conv_transposed(
        net, &(mr_conv){
                 .filters = 5, .kernel = 3, .stride = 2, .padding = MR_PAD_SAME, .activation = MR_ACT_TANH});
    mr_net_conv2d(net, 1, 3, 1, MR_PAD_SAME, MR_ACT_NONE);
    mr_net_loss_pair(net, MR_PAIR_CROSS_ENTROPY, 0, 0.1f);
    mr_net_activation(net, MR_ACT_SIGMOID);
    mr_net_loss_pair(net, MR_PAIR_SQUARES, 0, 0.05f);
    return net;
}

mr_net *mrt_net_fields(void)
{
    mr_net *net;
    MRT_EQ(mr_net_create(&net, "toy-fields", MRT_SIDE, MRT_SIDE, 1), MR_OK);
    mr_net_conv2d(net, 4, 3, 2, MR_PAD_SAME, MR_ACT_TANH);
    mr_net_dense(net, 12, MR_ACT_TANH);
    const mr_point seen = mr_net_here(net);
    mr_net_field(net, &(mr_field_input){.name = "floats", .h = MRT_SIDE, .w = MRT_SIDE});
    mr_net_dense(net, 7, MR_ACT_TANH);
    mr_net_concat(net, &seen, 1);
    mr_net_dense(net, 10, MR_ACT_TANH);
    const mr_point known = mr_net_here(net);
    mr_net_field(net, &(mr_field_input){.name = "kind", .values = MRT_KINDS});
    const mr_point kind = mr_net_here(net);
    mr_net_field(net, &(mr_field_input){.name = "soft", .c = MRT_SOFT, .mean = 0.25f, .std = 2});
    const mr_point soft = mr_net_here(net);
    mr_net_from(net, known);
    mr_net_dense(net, MRT_KINDS, MR_ACT_NONE);
    mr_net_loss_pair(net, MR_PAIR_CLASSES, kind, 0.5f);
    mr_net_from(net, known);
    mr_net_dense(net, MRT_SOFT, MR_ACT_NONE);
    mr_net_loss_pair(net, MR_PAIR_SQUARES, soft, 0.1f);
    mr_net_from(net, known);
    mr_net_dense(net, MRT_CLASSES, MR_ACT_NONE);
    mr_net_loss_labels(net, 1);
    return net;
}

mr_net *mrt_net_residual(void)
{
    mr_net *net;
    MRT_EQ(mr_net_create(&net, "toy-residual", MRT_SIDE, MRT_SIDE, 1), MR_OK);
    mr_net_init(net, MR_INIT_HE_IN);
    mr_net_conv(net, &(mr_conv){.filters = 4, .kernel = 3, .stride = 1, .pad = 1, .no_bias = true});
    mr_net_batch_norm(net, 0.9f, 1e-3f, MR_ACT_TANH);
    mr_point in = mr_net_here(net);
    mr_net_conv(net, &(mr_conv){.filters = 6, .kernel = 1, .stride = 2, .no_bias = true}); /* version 1 */
    mr_net_batch_norm(net, 0.9f, 1e-3f, MR_ACT_NONE);
    const mr_point cut = mr_net_here(net);
    mr_net_from(net, in);
    mr_net_conv(net, &(mr_conv){.filters = 6, .kernel = 3, .stride = 2, .pad = 1, .no_bias = true});
    mr_net_batch_norm(net, 0.9f, 1e-3f, MR_ACT_NONE);
    mr_net_add(net, cut, MR_ACT_TANH); /* part of the normalisation's op */
    in = mr_net_here(net);
    mr_net_batch_norm(net, 0.9f, 1e-3f, MR_ACT_TANH); /* version 2 */
    mr_net_conv(net, &(mr_conv){.filters = 6, .kernel = 3, .stride = 1, .pad = 1, .no_bias = true});
    mr_net_add(net, in, MR_ACT_NONE);
    in = mr_net_here(net);
    mr_net_batch_norm(net, 0.9f, 1e-3f, MR_ACT_NONE);
    mr_net_add(net, in, MR_ACT_SELU); /* both of its inputs are one tensor's */
    mr_net_global_avg_pool(net);
    mr_net_dense(net, MRT_CLASSES, MR_ACT_NONE);
    return net;
}

mr_net *mrt_net_mobile(void)
{
    mr_net *net;
    MRT_EQ(mr_net_create(&net, "toy-mobile", MRT_SIDE, MRT_SIDE, 1), MR_OK);
    mr_net_init(net, MR_INIT_HE_OUT);
    mr_net_conv(net, &(mr_conv){.filters = 6, .kernel = 3, .stride = 1, .pad = 1, .activation = MR_ACT_SILU});
    const mr_point in = mr_net_here(net);
    mr_net_conv(net, &(mr_conv){.filters = 12, .kernel = 1, .stride = 1, .no_bias = true, .groups = 2});
    mr_net_batch_norm(net, 0.9f, 1e-3f, MR_ACT_SILU);
    mr_net_conv(net, &(mr_conv){.filters = 12, .kernel = 5, .stride = 1, .pad = 2, .groups = 12});
    const mr_point all = mr_net_here(net);
    mr_net_global_avg_pool(net);
    mr_net_dense(net, 3, MR_ACT_GELU);
    mr_net_dense(net, 12, MR_ACT_SIGMOID);
    const mr_point factors = mr_net_here(net);
    mr_net_from(net, all);
    mr_net_scale(net, factors);
    mr_net_conv2d(net, 6, 1, 1, MR_PAD_SAME, MR_ACT_NONE);
    mr_net_drop_samples(net, 0.3f); /* in place */
    mr_net_add(net, in, MR_ACT_GELU);
    mr_net_conv(net, &(mr_conv){.filters = 6, .kernel = 3, .stride = 2, .pad = 1, .groups = 6});
    mr_net_global_avg_pool(net);
    mr_net_dense(net, MRT_CLASSES, MR_ACT_NONE);
    return net;
}

int mrt_rig_try(mrt_rig *rig, const mrt_rig_options *o, mr_error *err)
{
    mr_devices_config devices;
    *rig = (mrt_rig){0};
    mr_devices_defaults(&devices);
    devices.compute_threads = 1;
    devices.reference = o->reference;
    devices.deterministic = o->deterministic;
    devices.convolution = o->convolution;
    rig->net = o->net ? o->net() : mrt_net_conv();
    int rc = mr_devices_open(&rig->devices, &rig->count, o->devices ? o->devices : "cpu", &devices, err);
    uint32_t place[64], stages = 1;
    if (rc == MR_OK && o->place) rc = mr_net_place(rig->net, o->place, place, &stages, err);
    if (rc == MR_OK && o->place) { /* where the data are */
        for (uint32_t r = 0; r < rig->count / stages; r++) rig->first[r] = rig->devices[r * stages];
        rc = mr_parts_deal(&rig->parts, NULL, rig->count / stages, o->parts, err);
    } else if (rc == MR_OK) {
        for (uint32_t r = 0; r < rig->count; r++) rig->first[r] = rig->devices[r];
        rc = mr_parts_deal(&rig->parts, o->world, rig->count, o->parts, err);
    }
    rig->world = o->world;
    rig->mixes = o->mixes;
    if (rc == MR_OK) {
        mr_trainer_config cfg;
        mr_trainer_defaults(&cfg);
        cfg.net = rig->net;
        cfg.devices = rig->devices;
        cfg.device_count = rig->count;
        cfg.batch = o->batch ? o->batch : 32;
        cfg.seed = o->seed;
        cfg.update.kind = o->update;
        cfg.schedule.lr = o->lr > 0 ? o->lr : 0.01f;
        cfg.inference = o->inference;
        cfg.memory_bytes = o->memory_bytes;
        cfg.trace = o->trace;
        cfg.bucket_bytes = o->bucket_bytes;
        cfg.tune_buckets = o->tune_buckets;
        cfg.watchdog_s = o->watchdog_s;
        cfg.dtype = o->dtype ? o->dtype : MR_TENSOR_F32;
        cfg.no_graph = o->no_graph;
        cfg.clip_value = o->clip_value;
        cfg.clip_norm = o->clip_norm;
        cfg.label_smoothing = o->label_smoothing;
        cfg.class_weights = o->class_weights;
        cfg.class_weight_count = o->class_weights ? MRT_CLASSES : 0;
        cfg.decay_on = o->decay_on;
        cfg.average = o->average;
        cfg.lookahead = o->lookahead;
        cfg.sync = o->sync;
        cfg.crew = o->crew;
        cfg.exchange = o->exchange;
        if (o->outer_lr > 0) cfg.outer_lr = o->outer_lr;
        cfg.outer_momentum = o->outer_momentum;
        cfg.outer_heavy_ball = o->outer_heavy_ball;
        cfg.freeze = o->freeze;
        cfg.update.weight_decay = o->weight_decay;
        cfg.parts = o->parts || o->world ? &rig->parts : NULL;
        cfg.world = o->world;
        cfg.fields = mrt_fields;
        cfg.field_count = MRT_FIELDS;
        cfg.place = o->place ? place : NULL;
        rc = mr_trainer_open(&rig->t, &cfg, err);
    }
    if (rc) mrt_rig_close(rig);
    return rc;
}

void mrt_rig_open(mrt_rig *rig, const mrt_rig_options *o)
{
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mrt_rig_try(rig, o, &err), &err);
}

void mrt_rig_close(mrt_rig *rig)
{
    mr_trainer_close(rig->t);
    mr_devices_close(rig->devices, rig->count);
    mr_net_destroy(rig->net);
    *rig = (mrt_rig){0};
}

void mrt_toy(uint32_t first, uint32_t count, uint8_t *pixels, int32_t *labels)
{
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *p = pixels + (size_t)i * MRT_PIXELS;
        const uint32_t label = (first + i) * 7 % MRT_CLASSES, row = label / 2, col = label % 2;
        mrt_noise(p, MRT_PIXELS, first + i + 1);
        for (uint32_t k = 0; k < MRT_PIXELS; k++) {
            const bool bright = k / MRT_SIDE / (MRT_SIDE / 2) == row && k % MRT_SIDE / (MRT_SIDE / 2) == col;
            p[k] = (uint8_t)(p[k] / 4 + (bright ? 180 : 0));
        }
        labels[i] = (int32_t)label;
    }
}

static void put_be32(FILE *f, uint32_t v)
{
    v = __builtin_bswap32(v);
    MRT_EQ(fwrite(&v, 4, 1, f), 1);
}

const char *mrt_toy_set(const char *name, uint32_t first, uint32_t count)
{
    const char *images = mrt_path("%s-images-idx3-ubyte", name);
    if (access(images, F_OK) == 0) return images;
    uint8_t *pixels = malloc((size_t)count * MRT_PIXELS);
    int32_t *labels = malloc(count * sizeof *labels);
    mrt_toy(first, count, pixels, labels);
    FILE *f = fopen(images, "wbe");
    assert_non_null(f);
    const uint32_t head[] = {0x803, count, MRT_SIDE, MRT_SIDE};
    for (int i = 0; i < 4; i++) put_be32(f, head[i]);
    MRT_EQ(fwrite(pixels, MRT_PIXELS, count, f), count);
    fclose(f);
    f = fopen(mrt_path("%s-labels-idx1-ubyte", name), "wbe");
    put_be32(f, 0x801);
    put_be32(f, count);
    for (uint32_t i = 0; i < count; i++) fputc(labels[i], f);
    fclose(f);
    free(pixels);
    free(labels);
    return images;
}

/* The device that computes part p of this process. */
static mr_device *device_of(const mrt_rig *rig, uint32_t p)
{
    uint32_t d = 0;
    while (p >= rig->parts.of_device[d]) p -= rig->parts.of_device[d++];
    return rig->first[d];
}

/* Of a sample, by its picture. */
typedef struct toy_fields {
    float floats[MRT_PIXELS];
    int64_t kind;
    double soft[MRT_SOFT];
} toy_fields;

static toy_fields fields_of(const uint8_t *pixels)
{
    toy_fields f;
    const float k = 1.0f / 255.0f;
    for (uint32_t i = 0; i < MRT_PIXELS; i++) f.floats[i] = (float)pixels[i] * k;
    f.kind = pixels[3] % (MRT_KINDS + 2) - 1;
    for (uint32_t i = 0; i < MRT_SOFT; i++) f.soft[i] = pixels[7 + i] / 40.0 - 0.5;
    return f;
}

/* The share's fields to `to`, one after the other; where each begins to at. */
static void put_fields(char *to, const mr_part *p, const uint8_t *pixels, size_t at[MRT_FIELDS])
{
    const size_t bytes[MRT_FIELDS] = {sizeof(float) * MRT_PIXELS, sizeof(int64_t), sizeof(double) * MRT_SOFT};
    for (uint32_t k = 0, from = 0; k < MRT_FIELDS; from += (uint32_t)(bytes[k++] * p->count)) at[k] = from;
    for (uint32_t i = 0; i < p->count; i++) {
        const toy_fields f = fields_of(pixels + (size_t)(p->first + i) * MRT_PIXELS);
        memcpy(to + at[MRT_FLOATS] + i * bytes[MRT_FLOATS], f.floats, bytes[MRT_FLOATS]);
        memcpy(to + at[MRT_KIND] + i * bytes[MRT_KIND], &f.kind, bytes[MRT_KIND]);
        memcpy(to + at[MRT_SOFTS] + i * bytes[MRT_SOFTS], f.soft, bytes[MRT_SOFTS]);
    }
}

/* Every fifth with none, the others with the class that follows, by a quarter to the whole. */
static void put_seconds(int32_t *labels2, float *share2, const mr_part *p, const int32_t *labels)
{
    for (uint32_t i = 0; i < p->count; i++) {
        const uint32_t at = p->first + i;
        labels2[i] = at % 5 ? (labels[at] + 1) % MRT_CLASSES : -1;
        share2[i] = 0.25f * (float)(at % 5);
    }
}

static void make_part(mrt_batch *m, const mrt_rig *rig, uint32_t at, const uint8_t *pixels,
                      const int32_t *labels)
{
    mr_error err = MR_ERROR_INIT;
    mr_part *p = &m->parts[at];
    mr_device *dev = device_of(rig, at);
    if (p->count == 0) return;
    const size_t pixel_bytes = (size_t)p->count * MRT_PIXELS, label_bytes = p->count * sizeof(int32_t);
    const size_t labels_at = (size_t)mri_align_up(pixel_bytes, 64),
                 fields_at = (size_t)mri_align_up(labels_at + label_bytes, 64),
                 field_bytes = p->count * sizeof(toy_fields),
                 labels2_at = (size_t)mri_align_up(fields_at + field_bytes, 64),
                 share2_at = (size_t)mri_align_up(labels2_at + label_bytes, 64);
    size_t field_at[MRT_FIELDS];
    char *fields = malloc(field_bytes);
    int32_t *labels2 = malloc(label_bytes);
    float *share2 = malloc(p->count * sizeof *share2);
    assert_non_null(fields);
    assert_non_null(labels2);
    assert_non_null(share2);
    put_seconds(labels2, share2, p, labels);
    put_fields(fields, p, pixels, field_at);
    mr_stream *s;
    MRT_OK(mr_stream_create(&s, dev, MR_STREAM_COPY, &err), &err);
    MRT_OK(mr_device_alloc(dev, share2_at + label_bytes, &m->memory[at], &err), &err);
    MRT_EQ(mr_copy_h2d_async(s, (char *)m->memory[at] + labels2_at, labels2, label_bytes), MR_OK);
    MRT_EQ(mr_copy_h2d_async(s, (char *)m->memory[at] + share2_at, share2, label_bytes), MR_OK);
    MRT_EQ(mr_copy_h2d_async(s, (char *)m->memory[at] + fields_at, fields, field_bytes), MR_OK);
    MRT_EQ(mr_copy_h2d_async(s, m->memory[at], pixels + (size_t)p->first * MRT_PIXELS, pixel_bytes), MR_OK);
    MRT_EQ(mr_copy_h2d_async(s, (char *)m->memory[at] + labels_at, labels + p->first, label_bytes), MR_OK);
    MRT_OK(mr_stream_sync(s, &err), &err);
    mr_stream_destroy(s);
    free(fields);
    free(labels2);
    free(share2);
    if (rig->mixes) {
        p->labels2 = (char *)m->memory[at] + labels2_at;
        p->share2 = (char *)m->memory[at] + share2_at;
    }
    for (uint32_t k = 0; k < MRT_FIELDS; k++)
        p->field[k] = (mr_batch_field){.data = (char *)m->memory[at] + fields_at + field_at[k], .width = 1};
    p->pixels = m->memory[at];
    p->labels = (char *)m->memory[at] + labels_at;
}

void mrt_batch_make(mrt_batch *out, const mrt_rig *rig, uint64_t step, uint32_t first, uint32_t count,
                    const uint32_t *counts, uint32_t ignored)
{
    const mr_parts *cut = &rig->parts;
    uint8_t *pixels = malloc((size_t)count * MRT_PIXELS + 1);
    int32_t *labels = malloc(((size_t)count + 1) * sizeof *labels);
    assert_non_null(pixels);
    assert_non_null(labels);
    mrt_toy(first, count, pixels, labels);
    for (uint32_t i = count - ignored; i < count; i++) labels[i] = -1;
    *out =
        (mrt_batch){.b = {.step = step, .global_step = step, .all_count = count, .part_count = cut->count}};
    for (uint32_t p = 0, at = 0; p < cut->count; p++) {
        const uint64_t v = cut->first + p, begin = count * v / cut->all, end = count * (v + 1) / cut->all;
        out->parts[p] = (mr_part){.first = counts ? at : (uint32_t)begin,
                                  .count = counts ? counts[p] : (uint32_t)(end - begin)};
        at += out->parts[p].count;
        make_part(out, rig, p, pixels, labels);
        out->b.count += out->parts[p].count;
        for (uint32_t i = 0; i < out->parts[p].count; i++)
            out->b.counted += labels[out->parts[p].first + i] >= 0;
    }
    out->b.first = out->parts[0].first;
    out->b.parts = out->parts;
    free(pixels);
    free(labels);
}

void mrt_batch_free(mrt_batch *b, const mrt_rig *rig)
{
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mri_flights_drain(&rig->t->flights, &err), &err);
    mrt_batch_drop(b, rig);
}

void mrt_batch_drop(mrt_batch *b, const mrt_rig *rig)
{
    for (uint32_t p = 0; p < rig->parts.count; p++) (void)mr_stream_sync(mr_trainer_streams(rig->t)[p], NULL);
    for (uint32_t p = 0; p < rig->parts.count; p++) mr_device_free(device_of(rig, p), b->memory[p]);
}

void mrt_train(mrt_rig *rig, uint64_t step, uint32_t first, uint32_t count)
{
    mr_error err = MR_ERROR_INIT;
    mrt_batch b;
    mrt_batch_make(&b, rig, step, first, count, NULL, 0);
    MRT_OK(mr_trainer_step(rig->t, &b.b, &err), &err);
    mrt_batch_free(&b, rig);
}

mrt_hash mrt_hash_of(const mrt_rig *rig, uint32_t replica)
{
    mr_error err = MR_ERROR_INIT;
    mrt_hash h;
    MRT_OK(mr_trainer_weights_hash(rig->t, replica, &h.lo, &h.hi, &err), &err);
    return h;
}

bool mrt_same(mrt_hash a, mrt_hash b) { return a.lo == b.lo && a.hi == b.hi; }
