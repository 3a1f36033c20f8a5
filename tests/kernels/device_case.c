/* tests/kernels/device_case.c: see device_case.h. */
#include "tests/kernels/device_case.h"

struct lab mrt_device, mrt_reference;

/* It takes data, and has no gradient to it. */
static bool is_entry(mr_op_kind kind)
{
    return kind == MR_OP_INPUT || kind == MR_OP_ONE_HOT || kind == MR_OP_FIELD;
}

static bool is_recurrent(mr_op_kind kind) { return kind == MR_OP_GRU || kind == MR_OP_LSTM; }
static bool takes_numbers(const mr_op_desc *d)
{
    return d->kind == MR_OP_EMBEDDING || d->in.dtype == MR_TENSOR_I32;
}

/* Of activations and gradients. */
static uint32_t type_of(const mr_op_desc *d)
{
    if (d->kind == MR_OP_EMBEDDING) return d->embedding.out_dtype;
    return is_recurrent(d->kind) && takes_numbers(d) ? d->recurrent.out_dtype : d->in.dtype;
}

/* A tensor of max samples, n of them given; the rest keeps bytes that no operation may read. */
static void *tensor(struct lab *l, const mr_tensor *t, uint32_t max, uint32_t n, const float *canonical)
{
    void *p = lab_memory(l, t->sample_bytes * max);
    if (canonical) lab_store(l, t, n, p, canonical);
    return p;
}

static float *loaded(struct lab *l, const mr_tensor *t, uint32_t n, const void *address, bool *clean)
{
    float *f = lab_floats(lab_elements(t) * n);
    lab_load(l, t, n, address, f, clean);
    return f;
}

static void place_params(struct lab *l, mr_op *op, const struct op_io *io, mr_op_args *a)
{
    const mr_op_info *info = mr_op_info_of(op);
    for (uint32_t i = 0; i < info->param_count; i++) {
        float *w = lab_memory(l, info->param[i].storage_count * 4);
        lab_sync(l);
        if (!l->rc) lab_note(l, mr_op_param_import(op, false, i, w, io->param[i], &l->err));
        a->param[i] = w;
        a->dparam[i] = lab_memory(l, info->param[i].storage_count * 4);
    }
    for (uint32_t i = 0; i < info->state_count; i++) {
        a->state[i] = lab_memory(l, info->state[i].storage_count * 4);
        lab_sync(l);
        if (!l->rc) lab_note(l, mr_op_param_import(op, true, i, a->state[i], io->state[i], &l->err));
    }
}

/* The shape of the second input. */
static const mr_tensor *second_of(const mr_op_info *info, const mr_op_desc *d)
{
    return info->writes_dx2 ? &d->in2 : &info->out;
}

static bool takes_two(const mr_op_desc *d)
{
    return d->kind == MR_OP_ADD || d->kind == MR_OP_CONCAT || d->kind == MR_OP_SAMPLE ||
           d->kind == MR_OP_PAIR_LOSS || d->kind == MR_OP_SCALE ||
           (d->kind == MR_OP_BATCHNORM && d->batchnorm.residual);
}

static bool is_loss(const mr_op_desc *d) { return d->kind == MR_OP_LOSS || d->kind == MR_OP_PAIR_LOSS; }

/* 1 x 1 x c, stored as t is. */
static mr_tensor factors_like(struct lab *l, const mr_tensor *t)
{
    const mr_tensor plain = lab_nhwc(1, 1, t->c, t->dtype);
    return t->layout == MR_LAYOUT_NHWC ? plain : lab_own_layout(l, &plain);
}

static void place_args(struct lab *l, mr_op *op, const mr_op_desc *d, uint32_t n, const struct op_io *io,
                       mr_op_args *a)
{
    const mr_op_info *info = mr_op_info_of(op);
    const mr_tensor *out = &info->out;
    const bool loss = is_loss(d), backward = d->training && !is_entry(d->kind);
    *a = (mr_op_args){.n = n, .training = io->training, .seed = io->seed, .first = io->first};
    if (d->kind == MR_OP_INPUT || io->raw) {
        void *x = lab_memory(l, d->in.sample_bytes * d->max_batch);
        lab_put(l, x, io->raw ? io->raw : io->pixels, d->in.sample_bytes * n);
        a->x = x;
        if (io->affine) a->affine = lab_copy_of(l, io->affine, n * 2 * sizeof(float));
        if (io->flip) a->flip = lab_copy_of(l, io->flip, n);
    } else if (takes_numbers(d)) {
        void *x = lab_memory(l, d->in.sample_bytes * d->max_batch);
        lab_put(l, x, io->numbers, d->in.sample_bytes * n);
        a->x = x;
    } else {
        a->x = tensor(l, &d->in, d->max_batch, n, io->x);
    }
    if (io->x2) a->x2 = tensor(l, second_of(info, d), d->max_batch, n, io->x2);
    if (backward && info->writes_dx2) a->dx2 = tensor(l, &d->in2, d->max_batch, n, NULL);
    if (io->inplace && info->inplace) memcpy(&a->y, &a->x, sizeof a->y); /* x is ours to write */
    else a->y = tensor(l, out, d->max_batch, n, NULL);
    if (backward && !loss) a->dy = tensor(l, out, d->max_batch, n, io->dy);
    if (backward && io->dy2) a->dy2 = tensor(l, out, d->max_batch, n, io->dy2);
    if (backward && (d->need_dx || loss))
        a->dx = io->inplace && info->inplace ? a->dy : tensor(l, &d->in, d->max_batch, n, NULL);
    a->values = lab_copy_of(l, &io->values, sizeof io->values);
    if (io->scale.scale > 0) a->loss_scale = lab_copy_of(l, &io->scale, sizeof io->scale);
    if (loss) {
        a->labels = lab_copy_of(l, io->labels, n * sizeof *io->labels);
        if (io->labels2) a->labels2 = lab_copy_of(l, io->labels2, n * sizeof *io->labels2);
        if (io->class_weights)
            a->class_weights =
                lab_copy_of(l, io->class_weights, (d->in.c > 1 ? d->in.c : 2) * sizeof *io->class_weights);
        if (io->share2) a->share2 = lab_copy_of(l, io->share2, n * sizeof *io->share2);
        a->metrics = lab_zeros(l, sizeof *a->metrics);
    }
    a->saved = info->saved_bytes ? lab_memory(l, info->saved_bytes) : NULL;
    a->scratch = info->scratch_bytes ? lab_memory(l, info->scratch_bytes) : NULL;
    place_params(l, op, io, a);
}

static bool past_n_untouched(struct lab *l, const mr_tensor *t, uint32_t max, uint32_t n, const void *address)
{
    return lab_untouched(l, (const uint8_t *)address + t->sample_bytes * n, t->sample_bytes * (max - n));
}

static void take_forward(struct lab *l, mr_op *op, const mr_op_desc *d, const mr_op_args *a,
                         struct op_result *r)
{
    r->y = loaded(l, &r->out, a->n, a->y, &r->clean);
    r->untouched = r->untouched && past_n_untouched(l, &r->out, d->max_batch, a->n, a->y);
    if (a->metrics) lab_get(l, &r->metrics, a->metrics, sizeof r->metrics);
    for (uint32_t i = 0; i < r->state_count; i++) {
        r->state[i] = lab_floats(mr_op_info_of(op)->state[i].count);
        if (!l->rc) lab_note(l, mr_op_param_export(op, true, i, a->state[i], r->state[i], &l->err));
    }
}

static void take_backward(struct lab *l, mr_op *op, const mr_op_desc *d, const mr_op_args *a,
                          struct op_result *r)
{
    const mr_op_info *info = mr_op_info_of(op);
    if (a->dx) {
        r->dx = loaded(l, &d->in, a->n, a->dx, &r->clean);
        r->untouched = r->untouched && past_n_untouched(l, &d->in, d->max_batch, a->n, a->dx);
    }
    if (a->dx2) {
        r->dx2 = loaded(l, &d->in2, a->n, a->dx2, &r->clean);
        r->untouched = r->untouched && past_n_untouched(l, &d->in2, d->max_batch, a->n, a->dx2);
    }
    if (a->dy && a->dx != a->dy) r->dy = loaded(l, &r->out, a->n, a->dy, &r->clean);
    for (uint32_t i = 0; i < r->param_count; i++) {
        const uint64_t stored = info->param[i].storage_count;
        float *all = lab_floats(stored);
        double sum = 0, real = 0;
        r->dparam[i] = lab_floats(r->count[i]);
        if (!l->rc) lab_note(l, mr_op_param_export(op, false, i, a->dparam[i], r->dparam[i], &l->err));
        lab_get(l, all, a->dparam[i], stored * 4);
        for (uint64_t k = 0; k < stored; k++) sum += fabs((double)all[k]);
        for (uint64_t k = 0; k < r->count[i]; k++) real += fabs((double)r->dparam[i][k]);
        if (!(fabs(sum - real) <= 1e-9 * (1 + real))) r->zeros = false;
    }
}

int op_run(struct lab *l, const mr_op_desc *desc, const mr_tensor *in, uint32_t n, const struct op_io *io,
           const float *y_given, struct op_result *r)
{
    mr_op_desc d = *desc;
    mr_op_args a;
    mr_op *op;
    d.in = *in;
    if (takes_two(&d)) d.in2 = lab_like(l, in, desc->in2.c ? desc->in2.c : in->c);
    if (d.kind == MR_OP_SCALE) d.in2 = factors_like(l, in);
    *r = (struct op_result){.clean = true, .untouched = true, .zeros = true};
    const int rc = mr_op_create(&op, l->dev, &d, &l->err);
    if (rc == MR_EUNSUPPORTED) return rc;
    lab_note(l, rc);
    if (rc) return rc;
    const mr_op_info *info = mr_op_info_of(op);
    r->out = info->out;
    r->param_count = info->param_count;
    r->state_count = info->state_count;
    for (uint32_t i = 0; i < info->param_count; i++) r->count[i] = info->param[i].count;
    place_args(l, op, &d, n, io, &a);
    if (!l->rc) lab_note(l, mr_op_forward_async(op, l->s, &a));
    lab_sync(l);
    take_forward(l, op, &d, &a, r);
    if (d.training && !is_entry(d.kind)) {
        if (y_given) lab_store(l, &r->out, n, a.y, y_given);
        if (!l->rc) lab_note(l, mr_op_backward_async(op, l->s, &a));
        lab_sync(l);
        take_backward(l, op, &d, &a, r);
    }
    if (io->x && a.y != a.x) r->x = loaded(l, &d.in, n, a.x, &r->clean);
    if (a.x2) r->x2 = loaded(l, second_of(info, &d), n, a.x2, &r->clean);
    if (a.dy2) r->dy2 = loaded(l, &r->out, n, a.dy2, &r->clean);
    mr_op_destroy(op);
    return l->rc;
}

/* ---- inputs ---- */

/* Type and layout of the output as the reference has them. */
static void take_defaults(mr_op_desc *d)
{
    if (d->kind == MR_OP_INPUT) d->input.out_dtype = 0;
    if (d->kind == MR_OP_ONE_HOT) d->one_hot.out_dtype = 0;
    if (d->kind == MR_OP_FIELD) d->field.out_dtype = 0;
    if (d->kind == MR_OP_EMBEDDING) d->embedding.out_dtype = 0;
    if (is_recurrent(d->kind)) d->recurrent.out_dtype = 0;
    d->want = MR_WANT_ANY;
}

static size_t output_elements(const mr_op_desc *d)
{
    mr_op_desc plain = *d;
    mr_op *op;
    mr_error err = MR_ERROR_INIT;
    if (!is_entry(plain.kind) && !takes_numbers(&plain))
        plain.in = lab_nhwc(d->in.h, d->in.w, d->in.c, MR_TENSOR_F32);
    plain.in2 = plain.in;
    if (d->in2.c) plain.in2 = lab_nhwc(d->in.h, d->in.w, d->in2.c, MR_TENSOR_F32);
    if (d->kind == MR_OP_SCALE) plain.in2 = lab_nhwc(1, 1, d->in.c, MR_TENSOR_F32);
    take_defaults(&plain);
    if (mr_op_create(&op, mrt_reference.dev, &plain, &err)) return 0;
    const size_t count = lab_elements(&mr_op_info_of(op)->out);
    mr_op_destroy(op);
    return count;
}

/* As large as they usually are, rounded to the type of products. */
static void recurrent_params(const mr_op_desc *d, uint64_t seed, struct op_io *io)
{
    const size_t units = d->recurrent.units, rows = units * (d->kind == MR_OP_LSTM ? 4 : 3),
                 inputs = d->recurrent.classes ? d->recurrent.classes : d->in.c;
    const size_t columns[MR_OP_MAX_PARAMS] = {inputs, units, 1, 1};
    for (uint32_t p = 0; p < (d->kind == MR_OP_LSTM ? 3u : 4u); p++) {
        io->param[p] = lab_noise(rows * columns[p], seed + 10 + p, MR_TENSOR_F32);
        for (size_t i = 0; p < 2 && i < rows * columns[p]; i++)
            io->param[p][i] = lab_round(io->param[p][i] * 1.7f / sqrtf((float)columns[p]), type_of(d));
    }
}

static void param_inputs(const struct op_case *c, uint64_t seed, struct op_io *io)
{
    const mr_op_desc *d = &c->d;
    const bool conv = d->kind == MR_OP_CONV2D || d->kind == MR_OP_CONV2D_TRANSPOSED;
    if (is_recurrent(d->kind)) recurrent_params(d, seed, io);
    if (conv || d->kind == MR_OP_DENSE) {
        const mr_op_window *w = &d->conv2d.window;
        const size_t outputs = conv ? d->conv2d.filters : d->dense.units,
                     groups = conv && d->conv2d.groups ? d->conv2d.groups : 1,
                     inputs =
                         conv ? (size_t)w->kernel_h * w->kernel_w * (d->in.c / groups) : lab_elements(&d->in);
        io->param[0] = lab_noise(inputs * outputs, seed + 10, MR_TENSOR_F32);
        for (size_t i = 0; i < inputs * outputs; i++)
            io->param[0][i] = lab_round(io->param[0][i] * 1.7f / sqrtf((float)inputs), d->in.dtype);
        io->param[1] = lab_noise(outputs, seed + 11, MR_TENSOR_F32);
    }
    if (d->kind == MR_OP_EMBEDDING)
        io->param[0] = lab_noise((size_t)d->embedding.classes * d->embedding.units, seed + 10, MR_TENSOR_F32);
    if (d->kind == MR_OP_GROUPNORM) {
        io->param[0] = lab_noise(d->in.c, seed + 10, MR_TENSOR_F32);
        io->param[1] = lab_noise(d->in.c, seed + 11, MR_TENSOR_F32);
    }
    if (d->kind != MR_OP_BATCHNORM) return;
    io->param[0] = lab_noise(d->in.c, seed + 10, MR_TENSOR_F32);
    io->param[1] = lab_noise(d->in.c, seed + 11, MR_TENSOR_F32);
    io->state[0] = lab_noise(d->in.c, seed + 12, MR_TENSOR_F32);
    io->state[1] = lab_noise(d->in.c, seed + 13, MR_TENSOR_F32);
    for (uint32_t i = 0; i < d->in.c; i++) io->state[1][i] = 0.5f + fabsf(io->state[1][i]);
}

static void input_inputs(const struct op_case *c, uint64_t seed, struct op_io *io)
{
    const size_t count = lab_elements(&c->d.in) * c->n;
    io->pixels = lab_host(count);
    for (size_t i = 0; i < count; i++) io->pixels[i] = (uint8_t)(mri_mix64(seed * 77 + i) >> 13);
    io->affine = lab_noise(2 * (size_t)c->n, seed + 1, MR_TENSOR_F32);
    for (uint32_t i = 0; i < c->n; i++) io->affine[2 * i + 1] *= 60;
    io->flip = lab_host(c->n);
    for (uint32_t i = 0; i < c->n; i++) io->flip[i] = (uint8_t)(i % 2 == seed % 2 ? i + 1 : 0);
}

/* Some of them none of the classes. */
static void number_inputs(const struct op_case *c, uint64_t seed, struct op_io *io)
{
    const size_t count = (size_t)c->d.in.w * c->n;
    const uint32_t classes = c->d.recurrent.classes;
    io->numbers = lab_host(count * sizeof *io->numbers);
    for (size_t i = 0; i < count; i++) {
        const uint64_t drawn = mri_mix64(seed * 91 + i);
        io->numbers[i] = drawn % 7    ? (int32_t)(drawn % classes)
                         : drawn & 64 ? -1 - (int32_t)(drawn & 7)
                                      : (int32_t)classes;
    }
}

/* Numbers of a type that a double holds, some of them far out; of ONE_HOT about its classes. */
static void raw_inputs(const struct op_case *c, uint64_t seed, struct op_io *io)
{
    const size_t count = lab_elements(&c->d.in) * c->n;
    const uint32_t dtype = c->d.in.dtype, classes = c->d.kind == MR_OP_ONE_HOT     ? c->d.one_hot.classes
                                                    : c->d.kind == MR_OP_EMBEDDING ? c->d.embedding.classes
                                                                                   : 0;
    uint8_t *to = lab_host(c->d.in.sample_bytes * c->n);
    io->raw = to;
    for (size_t i = 0; i < count; i++) {
        const uint64_t drawn = mri_mix64(seed * 57 + i);
        const int64_t whole = classes ? (int64_t)(drawn % (classes + 2)) - 1 : (int64_t)drawn >> 9;
        const double real = (double)(int64_t)drawn * 0x1p-60;
        const float single = (float)real;
        uint32_t bits;
        memcpy(&bits, &single, sizeof bits);
        /* a half: any but NaNs and infinities */
        const uint16_t half = (uint16_t)((drawn & 0x7C00) == 0x7C00 ? drawn & 0x83FF : drawn),
                       brain = (uint16_t)(bits >> 16);
        const size_t each = mr_tensor_element_bytes(dtype);
        const void *from = dtype == MR_TENSOR_F64    ? (const void *)&real
                           : dtype == MR_TENSOR_F32  ? (const void *)&single
                           : dtype == MR_TENSOR_F16  ? (const void *)&half
                           : dtype == MR_TENSOR_BF16 ? (const void *)&brain
                                                     : (const void *)&whole; /* its low bytes */
        memcpy(to + i * each, from, each);
    }
}

/* Some mixed with none, some wholly another, some with their own label. */
static void second_inputs(const struct op_case *c, uint64_t seed, struct op_io *io)
{
    const uint32_t classes = c->d.in.c > 1 ? c->d.in.c : 2;
    io->labels2 = lab_host(c->n * sizeof *io->labels2);
    io->share2 = lab_host(c->n * sizeof *io->share2);
    for (uint32_t i = 0; i < c->n; i++) {
        const uint64_t drawn = mri_mix64(seed * 31 + i);
        io->share2[i] = (float)(drawn >> 20 & 7) / 7.0f;
        io->labels2[i] = io->share2[i] > 0 ? (int32_t)(drawn % classes) : -5;
    }
}

static void weigh_classes(uint32_t classes, struct op_io *io)
{
    io->class_weights = lab_host(classes * sizeof *io->class_weights);
    for (uint32_t k = 0; k < classes; k++) io->class_weights[k] = (float)(k * 5 % 7) / 4; /* 0, too */
}

/* Of several labels, 0, 1 and between; of numbers any. */
static void target_inputs(const struct op_case *c, struct op_io *io)
{
    const size_t each = lab_elements(&c->d.in);
    for (size_t i = 0; i < each * c->n && c->d.pair_loss.kind == MR_PAIR_CROSS_ENTROPY; i++)
        io->x2[i] = i % 3 ? (float)(i % 2) : 0.25f;
}

struct op_io op_inputs(const struct op_case *c, uint64_t seed)
{
    const mr_op_desc *d = &c->d;
    const uint32_t dtype = type_of(d);
    struct op_io io = {.training = d->training,
                       .seed = seed + 5,
                       .first = (uint32_t)seed % 1000u,
                       .values = {.step = seed, .scale = 1.0f / (float)(c->n + 1), .lr = 0.1f}};
    if (d->kind == MR_OP_INPUT) input_inputs(c, seed, &io);
    if (d->kind == MR_OP_FIELD || d->kind == MR_OP_ONE_HOT || d->kind == MR_OP_EMBEDDING)
        raw_inputs(c, seed, &io);
    else if (takes_numbers(d)) number_inputs(c, seed, &io);
    if (is_entry(d->kind)) return io;
    const size_t x_count = lab_elements(&d->in) * c->n, y_count = output_elements(d) * c->n;
    if (!takes_numbers(d)) io.x = lab_noise(x_count, seed + 1, dtype);
    if (d->kind == MR_OP_ACTIVATION && d->activation == MR_ACT_RELU6)
        for (size_t i = 0; i < x_count; i++) io.x[i] *= 8; /* beyond its upper end, too */
    io.dy = lab_noise(y_count, seed + 2, dtype);
    if (d->kind == MR_OP_SCALE) io.x2 = lab_noise((size_t)d->in.c * c->n, seed + 3, dtype);
    else if (takes_two(d))
        io.x2 = lab_noise(d->in2.c ? (size_t)d->in.h * d->in.w * d->in2.c * c->n : y_count, seed + 3, dtype);
    if (!is_loss(d) && c->n % 2 == 1) io.dy2 = lab_noise(y_count, seed + 4, dtype);
    if (is_loss(d)) {
        io.labels = lab_host(c->n * sizeof *io.labels);
        for (uint32_t i = 0; i < c->n; i++)
            io.labels[i] = i % 4 == 3 ? -1 : (int32_t)(mri_mix64(seed + i) % (d->in.c > 1 ? d->in.c : 2));
        if (dtype == MR_TENSOR_F16) io.scale.scale = 1024;
    }
    if (d->kind == MR_OP_LOSS && c->n % 2 == 1) second_inputs(c, seed, &io);
    if (d->kind == MR_OP_LOSS && d->loss.class_weights) weigh_classes(d->in.c > 1 ? d->in.c : 2, &io);
    if (d->kind == MR_OP_PAIR_LOSS && d->pair_loss.targets) target_inputs(c, &io);
    param_inputs(c, seed, &io);
    return io;
}

/* ---- comparing ---- */

static void name_of(const struct op_case *c, char *out, size_t bytes)
{
    static const char *const acts[] = {"",       " relu", " tanh", " sigmoid", " selu", " leaky relu",
                                       " relu6", " silu", " gelu"};
    const mr_op_desc *d = &c->d;
    char own[64] = "";
    switch (d->kind) {
    case MR_OP_CONV2D_TRANSPOSED:
    case MR_OP_CONV2D: {
        const mr_op_window *w = &d->conv2d.window;
        snprintf(own, sizeof own, ">%u%s %ux%u/%u+%u in %u", d->conv2d.filters,
                 d->conv2d.no_bias ? " no bias" : "", w->kernel_h, w->kernel_w, w->stride_h, w->pad_top,
                 d->conv2d.groups);
        break;
    }
    case MR_OP_POOL2D: {
        const mr_op_window *w = &d->pool2d.window;
        snprintf(own, sizeof own, " %ux%u/%u+%u%s", w->kernel_h, w->kernel_w, w->stride_h, w->pad_top,
                 d->pool2d.average ? " avg" : "");
        break;
    }
    case MR_OP_DENSE:
        snprintf(own, sizeof own, ">%u%s", d->dense.units, d->dense.no_bias ? " no bias" : "");
        break;
    case MR_OP_ONE_HOT: snprintf(own, sizeof own, ">%u of type %u", d->one_hot.classes, d->in.dtype); break;
    case MR_OP_FIELD: snprintf(own, sizeof own, " of type %u", d->in.dtype); break;
    case MR_OP_BATCHNORM:
        snprintf(own, sizeof own, "%s%s", d->batchnorm.residual ? " +x2" : "",
                 d->batchnorm.no_scale ? " no scale" : "");
        break;
    case MR_OP_CONCAT: snprintf(own, sizeof own, "|%u", d->in2.c); break;
    case MR_OP_RESHAPE:
        snprintf(own, sizeof own, ">%ux%ux%u", d->reshape.h, d->reshape.w, d->reshape.c);
        break;
    case MR_OP_PAIR_LOSS: snprintf(own, sizeof own, " pair %d", (int)d->pair_loss.kind); break;
    case MR_OP_DROPOUT:
        snprintf(own, sizeof own, " %g%s", (double)d->dropout.rate, d->dropout.whole_samples ? " whole" : "");
        break;
    case MR_OP_SOFTMAX: snprintf(own, sizeof own, "%s", d->softmax.log ? " log" : ""); break;
    case MR_OP_LRN: snprintf(own, sizeof own, " %u^%g", d->lrn.radius, (double)d->lrn.beta); break;
    case MR_OP_PAD: snprintf(own, sizeof own, " %u+%u", d->pad.before, d->pad.behind); break;
    case MR_OP_GRU:
    case MR_OP_LSTM:
        snprintf(own, sizeof own, ">%u%s%s", d->recurrent.units, d->recurrent.sequences ? " all" : " last",
                 d->recurrent.classes ? " numbers" : "");
        break;
    default: break;
    }
    snprintf(out, bytes, "%ux%ux%u%s%s n=%u/%u layout %u%s", d->in.h, d->in.w, d->in.c, own,
             acts[d->activation], c->n, d->max_batch, c->in.layout, c->note ? c->note : "");
}

static void compare_metrics(const char *name, const struct op_case *c, const mr_metrics *a,
                            const mr_metrics *b)
{
    lab_check(name, "loss_sum", fabs(a->loss_sum - b->loss_sum) / (1 + fabs(b->loss_sum)), c->tolerance);
    if (a->correct != b->correct || a->count != b->count || a->bad != b->bad) {
        char text[160];
        snprintf(text, sizeof text, "correct, count, bad: %llu %llu %llu, expected %llu %llu %llu",
                 (unsigned long long)a->correct, (unsigned long long)a->count, (unsigned long long)a->bad,
                 (unsigned long long)b->correct, (unsigned long long)b->count, (unsigned long long)b->bad);
        lab_fail(name, "metrics", text);
    }
}

/* Of all samples' second inputs, where they are not as the output. */
static size_t x2_elements(const struct op_case *c)
{
    const mr_op_desc *d = &c->d;
    if (d->kind == MR_OP_SCALE) return (size_t)d->in.c * c->n;
    return (size_t)d->in.h * d->in.w * d->in2.c * c->n;
}

static void compare_outputs(const char *name, const struct op_case *c, const struct op_io *io,
                            const struct op_result *a, const struct op_result *b)
{
    const size_t x_count = lab_elements(&c->d.in) * c->n, y_count = lab_elements(&b->out) * c->n;
    const bool two = io->x2 != NULL;
    const double sum_floor = 0.4 * sqrt((double)c->n * b->out.h * b->out.w); /* of as many products of noise,
                                                                                when few happen to cancel */
    if (c->exact && memcmp(a->y, b->y, y_count * 4) != 0) lab_fail(name, "y", "not the same bits");
    if (c->d.kind != MR_OP_PAIR_LOSS) /* which writes none */
        lab_check(name, "y", lab_error(a->y, b->y, y_count, c->y_floor > 0 ? c->y_floor : 0.01),
                  c->tolerance);
    if (c->d.kind == MR_OP_DROPOUT)
        for (size_t i = 0, reported = 0; i < y_count && !reported; i++)
            if ((a->y[i] == 0) != (b->y[i] == 0)) lab_fail(name, "y", "another pattern"), reported = 1;
    if (b->dx)
        lab_check(name, "dx", lab_error(a->dx, b->dx, x_count, c->dx_floor > 0 ? c->dx_floor : 0.01),
                  c->tolerance);
    if (b->dx2)
        lab_check(name, "dx2",
                  lab_error(a->dx2, b->dx2, x2_elements(c), c->d.kind == MR_OP_SCALE ? sum_floor : 0.01),
                  c->tolerance);
    else if (b->dy && two) lab_check(name, "dx2", lab_error(a->dy, b->dy, y_count, 0.01), c->tolerance);
    static const char *const params[MR_OP_MAX_PARAMS] = {"dparam 0", "dparam 1", "dparam 2", "dparam 3"};
    for (uint32_t i = 0; i < b->param_count && b->dparam[0]; i++)
        lab_check(name, params[i], lab_error(a->dparam[i], b->dparam[i], b->count[i], sum_floor),
                  c->tolerance);
    for (uint32_t i = 0; i < b->state_count; i++)
        lab_check(name, i ? "state 1" : "state 0", lab_error(a->state[i], b->state[i], c->d.in.c, 0.01),
                  c->tolerance);
    if (is_loss(&c->d)) compare_metrics(name, c, &a->metrics, &b->metrics);
}

/* What must hold whatever the numbers are. */
static void check_manners(const char *name, const struct op_case *c, const struct op_io *io,
                          const struct op_result *a)
{
    const size_t x_count = lab_elements(&c->d.in) * c->n, y_count = lab_elements(&a->out) * c->n,
                 x2_count = c->d.in2.c || c->d.kind == MR_OP_SCALE ? x2_elements(c) : y_count;
    if (!a->clean) lab_fail(name, "layout", "padding holds something");
    if (!a->untouched) lab_fail(name, "batch", "samples past n were written");
    if (!a->zeros) lab_fail(name, "dparam", "padding of a gradient is not zero");
    if (a->x && memcmp(a->x, io->x, x_count * 4) != 0) lab_fail(name, "x", "was changed");
    if (a->x2 && memcmp(a->x2, io->x2, x2_count * 4) != 0) lab_fail(name, "x2", "was changed");
    if (a->dy2 && memcmp(a->dy2, io->dy2, y_count * 4) != 0) lab_fail(name, "dy2", "was changed");
    if (!is_entry(c->d.kind) && a->out.dtype != type_of(&c->d))
        lab_fail(name, "y", "has another type than x");
}

static bool same_bits(const float *a, const float *b, size_t count)
{
    return !a || !b || memcmp(a, b, count * sizeof *a) == 0;
}

/* Once more, to the bit. */
static void check_repeat(const char *name, const struct op_case *c, const struct op_io *io,
                         const struct op_result *a)
{
    struct op_result b;
    if (op_run(&mrt_device, &c->d, &c->in, c->n, io, NULL, &b)) return;
    bool same = same_bits(a->y, b.y, lab_elements(&a->out) * c->n) &&
                same_bits(a->dx, b.dx, lab_elements(&c->d.in) * c->n);
    for (uint32_t i = 0; i < b.param_count; i++)
        same = same && same_bits(a->dparam[i], b.dparam[i], b.count[i]);
    if (!same) lab_fail(name, "repeat", "a second run gave other bits");
}

void op_compare(const struct op_case *c, const struct op_io *io)
{
    struct op_result a, b;
    char name[128];
    name_of(c, name, sizeof name);
    const int rc = op_run(&mrt_device, &c->d, &c->in, c->n, io, NULL, &a);
    if (rc == MR_EUNSUPPORTED) {
        lab_group_skip(mrt_device.err.text);
    } else {
        if (!rc && lab_settings()->deterministic) check_repeat(name, c, io, &a);
        if (!mrt_device.rc) {
            mr_op_desc d = c->d;
            if (!is_entry(d.kind) && !takes_numbers(&d))
                d.in = lab_nhwc(d.in.h, d.in.w, d.in.c, MR_TENSOR_F32);
            take_defaults(&d);
            op_run(&mrt_reference, &d, &d.in, c->n, io, is_loss(&d) ? NULL : a.y, &b);
            if (mrt_reference.rc) lab_fail(name, "reference", mrt_reference.err.text);
            else check_manners(name, c, io, &a), compare_outputs(name, c, io, &a, &b);
        }
        lab_case_done();
    }
    const char *broken = lab_release(&mrt_device);
    if (broken) lab_fail(name, "guards", broken);
    lab_release(&mrt_reference);
    if (mrt_device.rc) {
        lab_fail(name, "error", mrt_device.err.text);
        lab_reopen(&mrt_device);
    }
    if (mrt_reference.rc) lab_reopen(&mrt_reference);
    lab_host_reset();
}
