/* kernels/ops/dnnl/winograd.c: see winograd.h.
 *
 * Scratch of forward and of backward to the input:  [ U ][ V and M of thread 0 ][ of thread 1 ] ...
 * of backward to the weights:                       [ sums of the bias ][ dU ][ V of a round ][ D of it ] */
#include "kernels/ops/dnnl/winograd.h"

#include <omp.h>
#include <sched.h>
#include <stdatomic.h>

#include "kernels/backend/op_class.h"
#include "kernels/host/simd_loop.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define NAME(x)                 x##_avx2
#define TARGET                  MRI_TARGET_AVX2
#define LANES                   8
#define ROWS                    6
#define BROADCAST(x)            (V) _mm256_set1_ps(x)
#define MULTIPLY_ADD(a, b, sum) (V) _mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(sum))
#define MAXIMUM(a, b)           (V) _mm256_max_ps((__m256)(a), (__m256)(b))
#include "kernels/ops/dnnl/winograd_tiles.h"
#undef NAME
#undef TARGET
#undef LANES
#undef ROWS
#undef BROADCAST
#undef MULTIPLY_ADD
#undef MAXIMUM

#define NAME(x)                 x##_avx512
#define TARGET                  MRI_TARGET_AVX512
#define LANES                   16
#define ROWS                    14
#define BROADCAST(x)            (V) _mm512_set1_ps(x)
#define MULTIPLY_ADD(a, b, sum) (V) _mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(sum))
#define MAXIMUM(a, b)           (V) _mm512_max_ps((__m512)(a), (__m512)(b))
#include "kernels/ops/dnnl/winograd_tiles.h"

/* What an instruction set has; see winograd_tiles.h. */
struct code {
    uint32_t lanes, rows; /* rows of a product */
    void (*transform_weights)(const struct mri_winograd_pass *p, const float *weights, float *u, uint32_t at);
    void (*run_tiles)(const struct mri_winograd_pass *p, size_t first, size_t count, const float *src,
                      const float *u, const float *bias, float *dst, float *mine);
    void (*transform_pair)(const struct mri_winograd_pass *p, size_t tile, size_t t, const float *x,
                           const float *dy, float *v, float *d);
    void (*add_products)(const struct mri_winograd_pass *p, size_t unit, size_t count, const float *v,
                         const float *d, float *du, double *bias, bool adds);
    void (*finish_weights)(const struct mri_winograd_pass *p, const float *du, float *weights, size_t c);
};
#define CODE(set, floats)                                                                                    \
    {                                                                                                        \
        .lanes = floats, .rows = rows_##set, .transform_weights = transform_weights_##set,                   \
        .run_tiles = run_tiles_##set, .transform_pair = transform_pair_##set,                                \
        .add_products = add_products_##set, .finish_weights = finish_weights_##set                           \
    }
static const struct code avx2 = CODE(avx2, 8), avx512 = CODE(avx512, 16);
#define PANEL_MOST 32u /* columns of a product, whatever the instruction set */
#define ROWS_MOST  14u

/* Are `lanes` channels always neighbours? */
static bool neighbours(const mr_tensor *t, uint32_t lanes)
{
    return t->layout == MR_LAYOUT_NHWC || mri_layout_block(t) >= lanes;
}

static bool is_here(const struct mri_winograd_pass *p)
{
    const mri_simd_level level = mri_simd();
    return (level == MRI_SIMD_AVX512 || level == MRI_SIMD_AVX2) && neighbours(&p->in.t, 8) &&
           neighbours(&p->out.t, 8);
}

/* Of a pass that is here. */
static const struct code *code_of(const struct mri_winograd_pass *p)
{
    return mri_simd() == MRI_SIMD_AVX512 && neighbours(&p->in.t, 16) && neighbours(&p->out.t, 16) ? &avx512
                                                                                                  : &avx2;
}

#define TILE 4u

static struct mri_winograd_array array_of(mr_tensor t, uint32_t layout)
{
    mri_tensor_set_layout(&t, layout);
    const size_t step = layout == MR_LAYOUT_NHWC ? t.c : mri_layout_block(&t);
    return (struct mri_winograd_array){.t = t, .step = step, .floats = mri_tensor_floats(&t)};
}

/* V and M of a thread, or V and D of a round, should stay in the cache that a core has for itself. Where dU
 * is small and tiles are many, a thread sums some of them alone; elsewhere adding it up would cost more than
 * the threads' waiting for each other. From bench/bench_conv.c. */
static void cut(struct mri_winograd_pass *p, enum mri_linear_pass pass)
{
    const uint32_t in = p->in.t.c, out = p->out.t.c;
    if (pass != MRI_LINEAR_BACKWARD_WEIGHTS) p->block = 4 * (size_t)ROWS_MOST;
    else if (in * out <= 64 * 64 && p->tiles >= 9) p->block = in + out <= 64 ? 32 : 16, p->chunk = 256;
    else p->block = in + out <= 256 ? 64 : 128;
}

static struct mri_winograd_pass pass_of(const struct mri_linear *l, enum mri_linear_pass pass)
{
    const mr_op_desc *d = &l->op->base.desc;
    const mr_op_window *w = &d->conv2d.window;
    const bool turned = pass == MRI_LINEAR_BACKWARD_DATA;
    const struct mri_winograd_array x = array_of(d->in, l->src_layout),
                                    y = array_of(l->op->base.info.out, l->op->base.info.out.layout);
    struct mri_winograd_pass p = {.in = turned ? y : x,
                                  .out = turned ? x : y,
                                  .top = turned ? 2 - (int32_t)w->pad_top : (int32_t)w->pad_top,
                                  .left = turned ? 2 - (int32_t)w->pad_left : (int32_t)w->pad_left,
                                  .turned = turned,
                                  .relu = pass == MRI_LINEAR_FORWARD && d->activation == MR_ACT_RELU};
    p.tiles_y = (p.out.t.h - 1) / TILE + 1;
    p.tiles_x = (p.out.t.w - 1) / TILE + 1;
    p.tiles = p.tiles_y * p.tiles_x;
    cut(&p, pass);
    return p;
}

/* ---- which ---- */

struct row {
    uint32_t channels;   /* in and out: at least */
    uint32_t full_tiles; /* outputs of a sample / 16: at least */
    bool takes[3];       /* by pass */
};

/* The first that fits; from bench/bench_conv.c, whose output is bench/results/conv.json. */
static const struct row table[] = {
    {512, 9, {true, true, true}},  {512, 0, {false, false, true}}, /* a batch's few tiles do not pay for
                                                                      transforming the weights */
    {64, 0, {true, true, true}},   {32, 14, {true, true, true}},   {32, 0, {false, true, false}},
    {0, 0, {false, false, false}},
};

static bool can_be(const mr_op_desc *d, const mr_tensor *out)
{
    const mr_op_window *w = &d->conv2d.window;
    return w->kernel_h == 3 && w->kernel_w == 3 && w->stride_h == 1 && w->stride_w == 1 && w->pad_top <= 2 &&
           w->pad_left <= 2 && mri_op_groups(d) == 1 && d->in.c % 16 == 0 && out->c % 16 == 0;
}

static bool is_worth(const mr_op_desc *d, const mr_tensor *out, enum mri_linear_pass pass)
{
    const uint64_t full = (uint64_t)out->h * out->w / (TILE * TILE);
    const uint32_t channels = d->in.c < out->c ? d->in.c : out->c;
    const struct row *r = table;
    while (channels < r->channels || full < r->full_tiles) r++;
    return r->takes[pass];
}

/* ---- scratch ---- */

static size_t least(size_t a, size_t b) { return a < b ? a : b; }
/* 32 bits: OpenMP's loops over more are others, which compute_library.c does not have. */
static uint32_t pieces(size_t count, size_t each) { return (uint32_t)((count - 1) / each + 1); }

static size_t panels_of(uint32_t channels) { return mri_align_up(channels, PANEL_MOST); }
static size_t mine_of(const struct mri_winograd_pass *p, uint32_t n)
{
    const size_t most = least(p->block, (size_t)p->tiles * n) + ROWS_MOST;
    return 36 * most * (p->in.t.c + 16 + panels_of(p->out.t.c));
}
static size_t u_of(const struct mri_winograd_pass *p)
{
    return 36 * (size_t)p->in.t.c * panels_of(p->out.t.c);
}
static int most_threads(const struct mri_linear *l)
{
    const uint32_t threads = l->op->base.device->info.threads;
    return threads ? (int)threads : 1;
}

/* Of the bias in double, dU, and V and D of a round. */
static size_t sums_floats(const struct mri_winograd_pass *p)
{
    const size_t out = panels_of(p->out.t.c);
    return 2 * out + u_of(p) + 36 * (mri_winograd_apart(p, p->in.t.c) + mri_winograd_apart(p, out));
}

static size_t scratch_floats(const struct mri_linear *l, const struct mri_winograd_pass *p,
                             enum mri_linear_pass pass)
{
    if (pass == MRI_LINEAR_BACKWARD_WEIGHTS)
        return sums_floats(p) * (p->chunk ? (size_t)most_threads(l) + 1 : 1);
    return u_of(p) + (size_t)most_threads(l) * mine_of(p, l->op->base.desc.max_batch);
}

/* ---- running ---- */

static int threads_of(const struct mri_linear *l)
{
    const int most = most_threads(l), available = omp_get_max_threads();
    return available < most ? available : most;
}

static void run_forward(const struct mri_linear *l, struct mri_winograd_pass p, uint32_t n, const float *src,
                        const float *weights, float *dst, const float *bias, float *scratch)
{
    const struct code *code = code_of(&p);
    const int threads = threads_of(l);
    const size_t tiles = (size_t)p.tiles * n, mine = mine_of(&p, n), each = (tiles - 1) / (size_t)threads + 1,
                 parts = p.turned ? p.in.t.c / code->lanes : p.in.t.c;
    float *u = scratch, *own = scratch + u_of(&p);
    p.block = mri_align_up(least(each, p.block), code->rows);
    const uint32_t blocks = pieces(tiles, p.block);
#pragma omp parallel num_threads(threads)
    {
#pragma omp for schedule(static)
        for (size_t at = 0; at < parts; at++) code->transform_weights(&p, weights, u, (uint32_t)at);
#pragma omp for schedule(dynamic, 1)
        for (uint32_t block = 0; block < blocks; block++) {
            const size_t first = block * p.block;
            code->run_tiles(&p, first, least(p.block, tiles - first), src, u, bias, dst,
                            own + (size_t)omp_get_thread_num() * mine);
        }
    }
}

/* Where the threads of a pass wait for each other. Rounds are short, and OpenMP's barrier soon sleeps where a
 * process has more threads than cores: waking up takes longer than a round. */
struct gate {
    atomic_uint arrived, opened;
};
#define SPINS 2000 /* then another thread may have the core */

static void pass_gate(struct gate *g, uint32_t threads)
{
    const unsigned opened = atomic_load(&g->opened);
    if (atomic_fetch_add(&g->arrived, 1) + 1 == threads) {
        atomic_store(&g->arrived, 0);
        atomic_store(&g->opened, opened + 1);
        return;
    }
    for (uint32_t i = 0; atomic_load(&g->opened) == opened; i++) {
        if (i < SPINS) _mm_pause();
        else sched_yield();
    }
}

/* The first of `count` items that belongs to thread `at` of `threads`. */
static size_t share(size_t count, uint32_t at, uint32_t threads) { return count * at / threads; }

/* Sums of a chunk of the batch's tiles, and the work of the threads that compute them together. */
struct sums {
    const struct mri_winograd_pass *p;
    const struct code *code;
    const float *x, *dy;
    double *bias;
    float *du, *v, *d;
    struct gate gate;
};

static struct sums sums_at(const struct mri_winograd_pass *p, const struct code *code, const float *x,
                           const float *dy, float *scratch)
{
    struct sums s = {.p = p, .code = code, .x = x, .dy = dy, .bias = (double *)(void *)scratch};
    s.du = scratch + 2 * panels_of(p->out.t.c);
    s.v = s.du + u_of(p);
    s.d = s.v + 36 * mri_winograd_apart(p, p->in.t.c);
    return s;
}

/* What thread `at` does for tiles [first, end). */
static void sum_share(struct sums *s, size_t first, size_t end, uint32_t at, uint32_t threads)
{
    const struct mri_winograd_pass *p = s->p;
    const size_t units = 36 * mri_winograd_panels(p->out.t.c, 2 * (size_t)s->code->lanes);
    for (bool adds = false; first < end; first += p->block, adds = true) {
        const size_t count = least(p->block, end - first);
        for (size_t t = share(count, at, threads); t < share(count, at + 1, threads); t++)
            s->code->transform_pair(p, first + t, t, s->x, s->dy, s->v, s->d);
        pass_gate(&s->gate, threads);
        for (size_t unit = share(units, at, threads); unit < share(units, at + 1, threads); unit++)
            s->code->add_products(p, unit, count, s->v, s->d, s->du, s->bias, adds);
        pass_gate(&s->gate, threads);
    }
}

static void add_up(struct sums *total, const struct sums *s)
{
    mri_accumulate_piece(total->du, s->du, u_of(s->p));
    for (uint32_t k = 0; k < s->p->out.t.c; k++) total->bias[k] += s->bias[k];
}

static void run_weights(const struct mri_linear *l, const struct mri_winograd_pass *p, uint32_t n,
                        const float *x, float *weights, const float *dy, float *bias, float *scratch)
{
    const struct code *code = code_of(p);
    const size_t tiles = (size_t)p->tiles * n, each = sums_floats(p);
    const uint32_t chunks = p->chunk ? pieces(tiles, p->chunk) : 1;
    struct sums total = sums_at(p, code, x, dy, scratch);
#pragma omp parallel num_threads(threads_of(l))
    {
        const uint32_t at = (uint32_t)omp_get_thread_num(), threads = (uint32_t)omp_get_num_threads();
        if (p->chunk) {
            struct sums mine = sums_at(p, code, x, dy, scratch + (at + 1) * each);
#pragma omp for ordered schedule(dynamic, 1)
            for (uint32_t chunk = 0; chunk < chunks; chunk++) {
                struct sums *s = chunk ? &mine : &total;
                sum_share(s, chunk * p->chunk, least((chunk + 1) * p->chunk, tiles), 0, 1);
#pragma omp ordered
                if (chunk) add_up(&total, s);
            }
        } else {
            sum_share(&total, 0, tiles, at, threads);
        }
#pragma omp for schedule(static)
        for (size_t c = 0; c < p->in.t.c; c++) code->finish_weights(p, total.du, weights, c);
    }
    for (uint32_t k = 0; bias && k < p->out.t.c; k++) bias[k] = (float)total.bias[k];
}

static void run(const struct mri_linear *l, enum mri_linear_pass pass, uint32_t n, float *src, float *weights,
                float *dst, float *bias, void *scratch)
{
    const struct mri_winograd_pass p = pass_of(l, pass);
    if (pass == MRI_LINEAR_FORWARD) run_forward(l, p, n, src, weights, dst, bias, scratch);
    else if (pass == MRI_LINEAR_BACKWARD_DATA) run_forward(l, p, n, dst, weights, src, NULL, scratch);
    else run_weights(l, &p, n, src, weights, dst, bias, scratch);
}

void mri_winograd_take(struct mri_linear *l, enum mri_linear_pass pass, bool everywhere)
{
    const mr_op_desc *d = &l->op->base.desc;
    const mr_tensor *out = &l->op->base.info.out;
    if (!can_be(d, out) || !(everywhere || is_worth(d, out, pass))) return;
    const struct mri_winograd_pass p = pass_of(l, pass);
    if (!is_here(&p)) return;
    struct mri_linear_own *own = &l->own[pass];
    const dnnl_dims_t weights = {out->c, d->in.c, 3, 3};
    own->weights = mri_dnnl_md_create(&l->mds, 4, weights, dnnl_hwio); /* NULL: create_pass() reports it */
    own->scratch_bytes = scratch_floats(l, &p, pass) * sizeof(float);
    own->run = run;
}

#else

void mri_winograd_take(struct mri_linear *l, enum mri_linear_pass pass, bool everywhere)
{
    (void)l, (void)pass, (void)everywhere; /* none for this processor */
}

#endif
