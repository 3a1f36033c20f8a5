/* kernels: convolutions by Winograd's algorithm. Every pass against sums in double on odd shapes; the same
 * bits in every batch, at every place of it, and for every number of threads; direct where there is no
 * Winograd.
 *
 * On a processor without vectors that are wide enough, which MILLRACE_SIMD=plain makes of any, everything
 * must be direct, and right. */
#include "base/simd.h"
#include "tests/kernels/rig.h"

struct shape {
    uint32_t h, w, c, f, pad, n;
    uint32_t want; /* MR_WANT_... */
};

/* A convolution on a device of its own, with buffers for n samples. */
struct layer {
    struct rig r;
    mr_op *op;
    const mr_op_info *info;
    mr_tensor in;
    mr_op_args a;
    struct shape s;
};

/* What came out, canonical. */
struct result {
    float *y, *dx, *dparam[2];
    size_t y_count, x_count, param_count[2];
};

static bool none_here(void) { return mri_simd() != MRI_SIMD_AVX2 && mri_simd() != MRI_SIMD_AVX512; }

static float *noise(size_t count, uint64_t seed)
{
    float *f = malloc((count + 1) * sizeof *f);
    MRT_TRUE(f != NULL);
    rig_noise(f, count, seed);
    return f;
}

static mr_op_desc describe(const struct shape *s, uint32_t max_batch, mr_activation act)
{
    return (mr_op_desc){.kind = MR_OP_CONV2D,
                        .in = rig_tensor(s->h, s->w, s->c, MRI_LAYOUT_C16),
                        .max_batch = max_batch,
                        .training = true,
                        .need_dx = true,
                        .want = s->want,
                        .activation = act,
                        .conv2d = {.filters = s->f, .window = {3, 3, 1, 1, s->pad, s->pad, s->pad, s->pad}}};
}

static void open_device(struct rig *r, uint32_t threads, mr_convolution how)
{
    mr_error err = MR_ERROR_INIT;
    mr_devices_config cfg;
    memset(r, 0, sizeof *r);
    mr_devices_defaults(&cfg);
    cfg.compute_threads = threads;
    cfg.convolution = how;
    MRT_OK(mr_devices_open(&r->devices, &r->count, "cpu", &cfg, &err), &err);
    r->dev = r->devices[0];
    MRT_OK(mr_stream_create(&r->s, r->dev, MR_STREAM_COMPUTE, &err), &err);
}

static void open_layer(struct layer *l, const struct shape *s, uint32_t max_batch, uint32_t threads,
                       mr_convolution how, mr_activation act)
{
    mr_error err = MR_ERROR_INIT;
    open_device(&l->r, threads, how);
    const mr_op_desc d = describe(s, max_batch, act);
    l->s = *s;
    l->in = d.in;
    MRT_OK(mr_op_create(&l->op, l->r.dev, &d, &err), &err);
    l->info = mr_op_info_of(l->op);
    l->a = (mr_op_args){.training = true};
    l->a.scratch = rig_memory(&l->r, l->info->scratch_bytes);
    memset(l->a.scratch, 0xFF, l->info->scratch_bytes); /* not a number: nothing may be taken from it */
    for (uint32_t i = 0; i < l->info->param_count; i++) {
        float *w = rig_memory(&l->r, l->info->param[i].storage_count * sizeof(float)),
              *host = noise(l->info->param[i].count, 30 + i);
        MRT_OK(mr_op_param_import(l->op, false, i, w, host, &err), &err);
        free(host);
        l->a.param[i] = w;
        l->a.dparam[i] = rig_memory(&l->r, l->info->param[i].storage_count * sizeof(float));
    }
}

static void close_layer(struct layer *l)
{
    mr_op_destroy(l->op);
    rig_close(&l->r);
}

/* Samples x and gradients dy, forward and backward. */
static struct result run(struct layer *l, uint32_t n, const float *x, const float *dy)
{
    mr_error err = MR_ERROR_INIT;
    const mr_tensor *in = &l->in, *out = &l->info->out;
    const int before = l->r.block_count;
    struct result r = {.x_count = (size_t)n * in->h * in->w * in->c,
                       .y_count = (size_t)n * out->h * out->w * out->c};
    float *stored_x = rig_memory(&l->r, in->sample_bytes * n),
          *stored_dy = rig_memory(&l->r, out->sample_bytes * n);
    rig_store(in, n, stored_x, x);
    rig_store(out, n, stored_dy, dy);
    l->a.n = n;
    l->a.x = stored_x;
    l->a.dy = stored_dy;
    l->a.y = rig_memory(&l->r, out->sample_bytes * n);
    l->a.dx = rig_memory(&l->r, in->sample_bytes * n);
    MRT_OK(mr_op_forward_async(l->op, l->r.s, &l->a), NULL);
    MRT_OK(mr_op_backward_async(l->op, l->r.s, &l->a), NULL);
    MRT_OK(mr_stream_sync(l->r.s, &err), &err);
    r.y = malloc(r.y_count * sizeof(float));
    r.dx = malloc(r.x_count * sizeof(float));
    MRT_TRUE(r.y && r.dx);
    rig_load(out, n, l->a.y, r.y);
    rig_load(in, n, l->a.dx, r.dx);
    for (uint32_t i = 0; i < l->info->param_count; i++) {
        r.param_count[i] = l->info->param[i].count;
        r.dparam[i] = malloc(r.param_count[i] * sizeof(float));
        MRT_TRUE(r.dparam[i] != NULL);
        MRT_OK(mr_op_param_export(l->op, false, i, l->a.dparam[i], r.dparam[i], &err), &err);
    }
    const int all = l->r.block_count; /* give back what this call took, guards looked at */
    struct rig mine = l->r;
    memmove(mine.blocks, l->r.blocks + before, (size_t)(all - before) * sizeof mine.blocks[0]);
    memmove(mine.bytes, l->r.bytes + before, (size_t)(all - before) * sizeof mine.bytes[0]);
    mine.block_count = all - before;
    rig_release(&mine);
    l->r.block_count = before;
    return r;
}

static void free_result(struct result *r)
{
    free(r->y), free(r->dx), free(r->dparam[0]), free(r->dparam[1]);
    *r = (struct result){0};
}

/* ---- sums in double ---- */

/* y, dx and dparam of a plain convolution, activation relu where the layer has it. */
struct sums {
    double *y, *dx, *dw, *db;
};

static void one_output(const struct shape *s, const mr_tensor *out, struct sums *u, const float *x,
                       const float *w, const float *b, const float *dy, bool relu, size_t i, uint32_t oy,
                       uint32_t ox, uint32_t f)
{
    const size_t at = ((i * out->h + oy) * out->w + ox) * out->c + f;
    double sum = (double)b[f];
    for (int step = 0; step < 2; step++) { /* the value, then what its gradient gives */
        const double g = relu && !(u->y[at] > 0) ? 0 : (double)dy[at];
        if (step == 1) u->db[f] += g;
        for (uint32_t ky = 0; ky < 3; ky++)
            for (uint32_t kx = 0; kx < 3; kx++) {
                const int64_t iy = (int64_t)oy + ky - s->pad, ix = (int64_t)ox + kx - s->pad;
                if (iy < 0 || ix < 0 || iy >= s->h || ix >= s->w) continue;
                const size_t from = ((i * s->h + (size_t)iy) * s->w + (size_t)ix) * s->c,
                             tap = (((size_t)f * 3 + ky) * 3 + kx) * s->c;
                for (uint32_t c = 0; c < s->c; c++) {
                    if (step == 0) sum += (double)x[from + c] * (double)w[tap + c];
                    if (step == 1) u->dw[tap + c] += g * (double)x[from + c];
                    if (step == 1) u->dx[from + c] += g * (double)w[tap + c];
                }
            }
        if (step == 0) u->y[at] = relu && sum < 0 ? 0 : sum;
    }
}

static struct sums in_double(const struct layer *l, uint32_t n, const float *x, const float *dy, bool relu)
{
    const mr_tensor *in = &l->in, *out = &l->info->out;
    const size_t weights = l->info->param[0].count;
    float *w = noise(weights, 30), *b = noise(out->c, 31);
    struct sums u = {.y = calloc((size_t)n * out->h * out->w * out->c, sizeof(double)),
                     .dx = calloc((size_t)n * in->h * in->w * in->c, sizeof(double)),
                     .dw = calloc(weights, sizeof(double)),
                     .db = calloc(out->c, sizeof(double))};
    MRT_TRUE(u.y && u.dx && u.dw && u.db);
    for (size_t i = 0; i < n; i++)
        for (uint32_t oy = 0; oy < out->h; oy++)
            for (uint32_t ox = 0; ox < out->w; ox++)
                for (uint32_t f = 0; f < out->c; f++)
                    one_output(&l->s, out, &u, x, w, b, dy, relu, i, oy, ox, f);
    free(w);
    free(b);
    return u;
}

/* The largest difference, in root mean squares of the expected values. */
static double apart(const float *found, const double *expected, size_t count)
{
    double square = 0, most = 0;
    for (size_t i = 0; i < count; i++) {
        const double off = fabs((double)found[i] - expected[i]);
        if (!(off <= most)) most = off;
        square += expected[i] * expected[i];
    }
    return most / sqrt(square / (double)count);
}

/* Largest differences stated: Winograd 1e-4 root mean squares, direct 1e-5. */
static void check_shape(const struct shape *s, mr_activation act, mr_convolution how)
{
    struct layer l;
    open_layer(&l, s, s->n, rig_threads(), how, act);
    const bool winograd = how == MR_CONVOLUTION_WINOGRAD && !none_here();
    for (int pass = 0; pass < 3; pass++)
        assert_string_equal(l.info->algorithm[pass], winograd ? "winograd" : "direct");
    const mr_tensor *out = &l.info->out;
    float *x = noise((size_t)s->n * s->h * s->w * s->c, 1),
          *dy = noise((size_t)s->n * out->h * out->w * out->c, 2);
    struct result r = run(&l, s->n, x, dy);
    struct sums u = in_double(&l, s->n, x, dy, act == MR_ACT_RELU);
    const double off[] = {apart(r.y, u.y, r.y_count), apart(r.dx, u.dx, r.x_count),
                          apart(r.dparam[0], u.dw, r.param_count[0]),
                          apart(r.dparam[1], u.db, r.param_count[1])};
    for (int i = 0; i < 4; i++)
        if (!(off[i] <= (winograd ? 1e-4 : 1e-5)))
            fail_msg("%ux%ux%u to %u, pad %u, batch %u: result %d is off by %g root mean squares", s->h, s->w,
                     s->c, s->f, s->pad, s->n, i, off[i]);
    free(u.y), free(u.dx), free(u.dw), free(u.db);
    free_result(&r);
    free(x), free(dy);
    close_layer(&l);
}

static void every_pass_is_right(void **state)
{
    (void)state;
    static const struct shape shapes[] = {
        {3, 3, 16, 16, 0, 1, 0},
        {4, 4, 16, 32, 1, 3, 0},
        {5, 9, 48, 16, 1, 7, 0},
        {7, 7, 64, 64, 1, 5, 0},
        {13, 6, 32, 64, 0, 9, 0},
        {11, 17, 32, 32, 1, 2, 0},
        {9, 7, 32, 48, 1, 2, MR_WANT_NHWC},
        {1, 1, 32, 32, 1, 1, 0},
        {10, 10, 128, 96, 0, 3, 0},
        {6, 5, 256, 128, 1, 2, 0},
        {8, 8, 144, 176, 1, 3, 0},
        {5, 5, 32, 32, 2, 70, 0},
    };
    const size_t count = MRI_ARRAY_COUNT(shapes) - (MRT_SANITIZED ? 4 : 0); /* the last four are the slow ones
                                                                             */
    for (size_t i = 0; i < count; i++) {
        check_shape(&shapes[i], i % 2 ? MR_ACT_RELU : MR_ACT_NONE, MR_CONVOLUTION_WINOGRAD);
        check_shape(&shapes[i], i % 2 ? MR_ACT_RELU : MR_ACT_NONE, MR_CONVOLUTION_DIRECT);
    }
}

/* ---- bits ---- */

static void same_bits(const struct shape *s, const char *what, const float *a, const float *b, size_t count)
{
    if (memcmp(a, b, count * sizeof *a) != 0)
        fail_msg("%ux%ux%u to %u: %s has other bits", s->h, s->w, s->c, s->f, what);
}

/* Shapes that the table gives to Winograd: sums by one thread alone, and by all together. */
static const struct shape in_table[] = {
    {16, 14, 32, 32, 1, 35, 0},  {28, 26, 32, 48, 0, 19, 0},   {9, 13, 64, 64, 1, 19, 0},
    {8, 8, 64, 64, 1, 35, 0},    {16, 13, 128, 128, 1, 17, 0}, {13, 13, 256, 256, 1, 11, 0},
    {13, 14, 512, 512, 1, 5, 0},
};
/* Wide layers take most of the time under a sanitizer, and run the code of narrow ones. */
enum { SHAPES = MRT_SANITIZED ? 4 : MRI_ARRAY_COUNT(in_table) };

/* A sample gets the same in any batch, at any place of it: also as the only one of a batch. */
static void a_sample_does_not_know_its_batch(void **state)
{
    (void)state;
    for (size_t k = 0; k < SHAPES; k++) {
        const struct shape *s = &in_table[k];
        struct layer l;
        open_layer(&l, s, s->n, rig_threads(), MR_CONVOLUTION_AUTO, MR_ACT_RELU);
        const mr_tensor *out = &l.info->out;
        const size_t xs = (size_t)s->h * s->w * s->c, ys = (size_t)out->h * out->w * out->c;
        if (!none_here()) assert_string_equal(l.info->algorithm[MR_PASS_FORWARD], "winograd");
        float *x = noise(xs * s->n, 1), *dy = noise(ys * s->n, 2);
        struct result whole = run(&l, s->n, x, dy);
        const uint32_t counts[] = {1, 2, 3, 4, s->n - 1};
        for (size_t i = 0; i < MRI_ARRAY_COUNT(counts); i++) {
            const uint32_t n = counts[i], first = s->n - n;
            struct result part = run(&l, n, x + first * xs, dy + first * ys);
            same_bits(s, "output of a part", part.y, whole.y + first * ys, part.y_count);
            same_bits(s, "dx of a part", part.dx, whole.dx + first * xs, part.x_count);
            free_result(&part);
        }
        free_result(&whole);
        free(x), free(dy);
        close_layer(&l);
    }
}

/* Outputs and all gradients; the weights' gradients where Winograd computes them, since direct convolutions
 * split their sums over a batch by threads. */
static void threads_change_no_bit(void **state)
{
    (void)state;
    static const uint32_t threads[] = {2, 3, 8};
    if (none_here() || rig_threads() == 1) {
        print_message("SKIP: needs Winograd, and more than one thread\n");
        return;
    }
    for (size_t k = 0; k < SHAPES; k++) {
        const struct shape *s = &in_table[k];
        struct layer one;
        open_layer(&one, s, s->n, 1, MR_CONVOLUTION_AUTO, MR_ACT_NONE);
        float *x = noise((size_t)s->n * s->h * s->w * s->c, 1),
              *dy = noise((size_t)s->n * one.info->out.h * one.info->out.w * s->f, 2);
        struct result expected = run(&one, s->n, x, dy);
        for (size_t i = 0; i < MRI_ARRAY_COUNT(threads); i++) {
            struct layer many;
            open_layer(&many, s, s->n, threads[i], MR_CONVOLUTION_AUTO, MR_ACT_NONE);
            struct result r = run(&many, s->n, x, dy);
            same_bits(s, "output", r.y, expected.y, r.y_count);
            same_bits(s, "dx", r.dx, expected.dx, r.x_count);
            const char *sums = many.info->algorithm[MR_PASS_WEIGHTS];
            for (int p = 0; p < 2 && strcmp(sums, "winograd") == 0; p++)
                same_bits(s, p ? "gradient of biases" : "gradient of weights", r.dparam[p],
                          expected.dparam[p], r.param_count[p]);
            free_result(&r);
            close_layer(&many);
        }
        free_result(&expected);
        free(x), free(dy);
        close_layer(&one);
    }
}

/* The largest batch that a run may pass changes no bit of the results: an evaluation with another batch, a
 * replica's share. */
static void the_largest_batch_changes_no_bit(void **state)
{
    (void)state;
    if (none_here()) return;
    for (size_t k = 0; k < SHAPES; k++) {
        const struct shape *s = &in_table[k];
        struct layer a, b;
        open_layer(&a, s, 5, rig_threads(), MR_CONVOLUTION_AUTO, MR_ACT_NONE);
        open_layer(&b, s, s->n + 70, rig_threads(), MR_CONVOLUTION_AUTO, MR_ACT_NONE);
        float *x = noise((size_t)5 * s->h * s->w * s->c, 1),
              *dy = noise((size_t)5 * a.info->out.h * a.info->out.w * s->f, 2);
        struct result ra = run(&a, 5, x, dy), rb = run(&b, 5, x, dy);
        same_bits(s, "output", ra.y, rb.y, ra.y_count);
        same_bits(s, "dx", ra.dx, rb.dx, ra.x_count);
        if (strcmp(a.info->algorithm[MR_PASS_WEIGHTS], "winograd") == 0)
            same_bits(s, "gradient of weights", ra.dparam[0], rb.dparam[0], ra.param_count[0]);
        free_result(&ra);
        free_result(&rb);
        free(x), free(dy);
        close_layer(&a);
        close_layer(&b);
    }
}

/* Vectors of 8 and of 16, also where layouts have blocks of 8. */
static void instruction_sets_change_no_bit(void **state)
{
    (void)state;
    const mri_simd_level before = mri_simd();
    if (before != MRI_SIMD_AVX512) {
        print_message("SKIP: needs AVX-512\n");
        return;
    }
    for (size_t k = 0; k < SHAPES; k++) {
        const struct shape *s = &in_table[k];
        struct layer l;
        open_layer(&l, s, s->n, rig_threads(), MR_CONVOLUTION_AUTO, MR_ACT_RELU);
        float *x = noise((size_t)s->n * s->h * s->w * s->c, 1),
              *dy = noise((size_t)s->n * l.info->out.h * l.info->out.w * s->f, 2);
        struct result wide = run(&l, s->n, x, dy);
        MRT_TRUE(mri_simd_use(MRI_SIMD_AVX2));
        struct result narrow = run(&l, s->n, x, dy);
        MRT_TRUE(mri_simd_use(before));
        same_bits(s, "output", narrow.y, wide.y, wide.y_count);
        same_bits(s, "dx", narrow.dx, wide.dx, wide.x_count);
        if (strcmp(l.info->algorithm[MR_PASS_WEIGHTS], "winograd") == 0)
            same_bits(s, "gradient of weights", narrow.dparam[0], wide.dparam[0], wide.param_count[0]);
        free_result(&wide);
        free_result(&narrow);
        free(x), free(dy);
        close_layer(&l);
    }
}

/* ---- slopes ---- */

static double dot(const float *a, const float *b, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++) sum += (double)a[i] * (double)b[i];
    return sum;
}

/* sum of dy * y, by the operation itself. */
static double score(struct layer *l, uint32_t n, const float *x, const float *dy)
{
    struct result r = run(l, n, x, dy);
    const double sum = dot(r.y, dy, r.y_count);
    free_result(&r);
    return sum;
}

/* A convolution is linear, so a large step is exact but for rounding: the slope along a random direction,
 * against the gradient's. Within 1e-4 of the product of their lengths. */
static void gradients_are_slopes(void **state)
{
    (void)state;
    for (size_t k = 0; k < 4; k++) {
        const struct shape *s = &in_table[k];
        struct layer l;
        mr_error err = MR_ERROR_INIT;
        const uint32_t n = 5;
        open_layer(&l, s, n, rig_threads(), MR_CONVOLUTION_AUTO, MR_ACT_NONE);
        const size_t x_count = (size_t)n * s->h * s->w * s->c, w_count = l.info->param[0].count;
        float *x = noise(x_count, 1), *dy = noise((size_t)n * l.info->out.h * l.info->out.w * s->f, 2),
              *v = noise(x_count, 3), *w = noise(w_count, 30), *vw = noise(w_count, 4), *stored;
        struct result r = run(&l, n, x, dy);
        const double along_x = dot(r.dx, v, x_count), along_w = dot(r.dparam[0], vw, w_count),
                     lengths_x = sqrt(dot(r.dx, r.dx, x_count) * dot(v, v, x_count)),
                     lengths_w = sqrt(dot(r.dparam[0], r.dparam[0], w_count) * dot(vw, vw, w_count));
        double at[2];
        for (int sign = 0; sign < 2; sign++) {
            for (size_t i = 0; i < x_count; i++) x[i] += (sign ? -1.0f : 0.5f) * v[i];
            at[sign] = score(&l, n, x, dy);
        }
        if (!(fabs(at[0] - at[1] - along_x) <= 1e-4 * lengths_x))
            fail_msg("%u to %u: slope %g, gradient %g along x", s->c, s->f, at[0] - at[1], along_x);
        for (size_t i = 0; i < x_count; i++) x[i] += 0.5f * v[i];
        memcpy(&stored, &l.a.param[0], sizeof stored);
        for (int sign = 0; sign < 2; sign++) {
            for (size_t i = 0; i < w_count; i++) w[i] += (sign ? -1.0f : 0.5f) * vw[i];
            MRT_OK(mr_op_param_import(l.op, false, 0, stored, w, &err), &err);
            at[sign] = score(&l, n, x, dy);
        }
        if (!(fabs(at[0] - at[1] - along_w) <= 1e-4 * lengths_w))
            fail_msg("%u to %u: slope %g, gradient %g along w", s->c, s->f, at[0] - at[1], along_w);
        free_result(&r);
        free(x), free(dy), free(v), free(w), free(vw);
        close_layer(&l);
    }
}

/* ---- which layers take it ---- */

static const char *algorithm_of(mr_op_desc d, mr_convolution how, int pass)
{
    mr_error err = MR_ERROR_INIT;
    struct rig r;
    mr_op *op;
    open_device(&r, rig_threads(), how);
    MRT_OK(mr_op_create(&op, r.dev, &d, &err), &err);
    const char *name = mr_op_info_of(op)->algorithm[pass];
    mr_op_destroy(op);
    rig_close(&r);
    return name;
}

static void what_it_is_not_for_is_direct(void **state)
{
    (void)state;
    const struct shape s = {16, 16, 64, 64, 1, 8, 0};
    const mr_op_desc plain = describe(&s, 8, MR_ACT_NONE);
    for (int pass = 0; pass < 3; pass++) {
        assert_string_equal(algorithm_of(plain, MR_CONVOLUTION_AUTO, pass),
                            none_here() ? "direct" : "winograd");
        assert_string_equal(algorithm_of(plain, MR_CONVOLUTION_DIRECT, pass), "direct");
    }
    mr_op_desc d = plain;
    d.conv2d.window.stride_h = d.conv2d.window.stride_w = 2;
    assert_string_equal(algorithm_of(d, MR_CONVOLUTION_WINOGRAD, 0), "direct");
    d = plain;
    d.conv2d.window = (mr_op_window){5, 5, 1, 1, 2, 2, 2, 2};
    assert_string_equal(algorithm_of(d, MR_CONVOLUTION_WINOGRAD, 0), "direct");
    d = plain;
    d.conv2d.filters = 40;
    assert_string_equal(algorithm_of(d, MR_CONVOLUTION_WINOGRAD, 0), "direct");
    d = plain;
    d.in = rig_tensor(16, 16, 16, MRI_LAYOUT_C16);
    assert_string_equal(algorithm_of(d, MR_CONVOLUTION_AUTO, 0), "direct"); /* it loses there */
    d = plain;
    d.training = false;
    MRT_TRUE(algorithm_of(d, MR_CONVOLUTION_AUTO, MR_PASS_WEIGHTS) == NULL);
    assert_string_equal(algorithm_of(d, MR_CONVOLUTION_AUTO, 0), none_here() ? "direct" : "winograd");
}

static void an_unknown_choice_is_refused(void **state)
{
    (void)state;
    mr_error err = MR_ERROR_INIT;
    mr_devices_config cfg;
    mr_device **devices;
    uint32_t count;
    mr_devices_defaults(&cfg);
    cfg.convolution = (mr_convolution)3;
    MRT_EQ(mr_devices_open(&devices, &count, "cpu", &cfg, &err), MR_EINVAL);
    MRT_TRUE(strstr(err.text, "convolution 3") != NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pass_is_right),
        cmocka_unit_test(a_sample_does_not_know_its_batch),
        cmocka_unit_test(threads_change_no_bit),
        cmocka_unit_test(the_largest_batch_changes_no_bit),
        cmocka_unit_test(instruction_sets_change_no_bit),
        cmocka_unit_test(gradients_are_slopes),
        cmocka_unit_test(what_it_is_not_for_is_direct),
        cmocka_unit_test(an_unknown_choice_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
