/* tests/cuda_emu/test_emu_cudnn.c: the emulated cuDNN: the passes of convolutions against sums in double, the
 * algorithms' promises about their bits, and every rule broken once. */
#include <cudnn.h>
#include <math.h>

#include "tests/cuda_emu/test_emu_place.h"

typedef cudnnBackendDescriptor_t desc;

#define GOOD(call)        MRT_EQ(call, CUDNN_STATUS_SUCCESS)
#define BAD(status, call) MRT_EQ(call, CUDNN_STATUS_##status)
#define SET(d, name, type, count, values)                                                                    \
    cudnnBackendSetAttribute(d, CUDNN_ATTR_##name, CUDNN_TYPE_##type, count, values)
#define GET(d, name, type, room, count, values)                                                              \
    cudnnBackendGetAttribute(d, CUDNN_ATTR_##name, CUDNN_TYPE_##type, room, count, values)

static desc make(cudnnBackendDescriptorType_t type)
{
    desc d = NULL;
    GOOD(cudnnBackendCreateDescriptor(type, &d));
    return d;
}

static void drop(desc *d, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (d[i]) GOOD(cudnnBackendDestroyDescriptor(d[i]));
}

static cudnnHandle_t handle_on(int device)
{
    cudnnHandle_t h;
    place_use(device);
    GOOD(cudnnCreate(&h));
    GOOD(cudnnSetStream(h, places[device].stream));
    return h;
}

/* ---- a convolution ---- */

enum pass { FORWARD, DATA, FILTER };

struct conv {
    enum pass pass;
    enum emu_type type, weights;
    int64_t n, c, h, w, k, groups, r, s, before[2], after[2], stride[2], dilation[2], p, q;
    bool planes, mirrored;
    float alpha, beta;
};

static cudnnDataType_t name_of(enum emu_type t)
{
    return t == EMU_F32 ? CUDNN_DATA_FLOAT : t == EMU_BF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_HALF;
}

static void strides_of(const int64_t dim[4], bool planes, int64_t out[4])
{
    const int64_t last[4] = {dim[1] * dim[2] * dim[3], 1, dim[3] * dim[1], dim[1]};
    const int64_t first[4] = {dim[1] * dim[2] * dim[3], dim[2] * dim[3], dim[3], 1};
    memcpy(out, planes ? first : last, sizeof last);
}

static desc tensor(int64_t id, enum emu_type type, const int64_t dim[4], bool planes, int64_t align)
{
    const cudnnDataType_t name = name_of(type);
    int64_t strides[4];
    strides_of(dim, planes, strides);
    desc d = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    GOOD(SET(d, TENSOR_DATA_TYPE, DATA_TYPE, 1, &name));
    GOOD(SET(d, TENSOR_DIMENSIONS, INT64, 4, dim));
    GOOD(SET(d, TENSOR_STRIDES, INT64, 4, strides));
    GOOD(SET(d, TENSOR_UNIQUE_ID, INT64, 1, &id));
    GOOD(SET(d, TENSOR_BYTE_ALIGNMENT, INT64, 1, &align));
    GOOD(cudnnBackendFinalize(d));
    return d;
}

static desc convolution(const struct conv *c)
{
    const cudnnDataType_t compute = CUDNN_DATA_FLOAT;
    const cudnnConvolutionMode_t mode = c->mirrored ? CUDNN_CONVOLUTION : CUDNN_CROSS_CORRELATION;
    const int64_t two = 2;
    desc d = make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    GOOD(SET(d, CONVOLUTION_COMP_TYPE, DATA_TYPE, 1, &compute));
    GOOD(SET(d, CONVOLUTION_CONV_MODE, CONVOLUTION_MODE, 1, &mode));
    GOOD(SET(d, CONVOLUTION_SPATIAL_DIMS, INT64, 1, &two));
    GOOD(SET(d, CONVOLUTION_PRE_PADDINGS, INT64, 2, c->before));
    GOOD(SET(d, CONVOLUTION_POST_PADDINGS, INT64, 2, c->after));
    GOOD(SET(d, CONVOLUTION_FILTER_STRIDES, INT64, 2, c->stride));
    GOOD(SET(d, CONVOLUTION_DILATIONS, INT64, 2, c->dilation));
    GOOD(cudnnBackendFinalize(d));
    return d;
}

static const struct {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t conv, x, w, y, alpha, beta;
} operations[] = {
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
};

/* Set an operation and return what finalising says. */
static cudnnStatus_t operation(const struct conv *c, desc x, desc w, desc y, desc conv, desc *out)
{
    desc d = *out = make(operations[c->pass].type);
    GOOD(cudnnBackendSetAttribute(d, operations[c->pass].conv, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &conv));
    GOOD(cudnnBackendSetAttribute(d, operations[c->pass].x, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &x));
    GOOD(cudnnBackendSetAttribute(d, operations[c->pass].w, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &w));
    GOOD(cudnnBackendSetAttribute(d, operations[c->pass].y, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &y));
    GOOD(cudnnBackendSetAttribute(d, operations[c->pass].alpha, CUDNN_TYPE_FLOAT, 1, &c->alpha));
    GOOD(cudnnBackendSetAttribute(d, operations[c->pass].beta, CUDNN_TYPE_FLOAT, 1, &c->beta));
    return cudnnBackendFinalize(d);
}

static desc graph_of(cudnnHandle_t h, desc op)
{
    desc g = make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    GOOD(SET(g, OPERATIONGRAPH_OPS, BACKEND_DESCRIPTOR, 1, &op));
    GOOD(SET(g, OPERATIONGRAPH_HANDLE, HANDLE, 1, &h));
    GOOD(cudnnBackendFinalize(g));
    return g;
}

enum { X = 7, W = 0, Y = -3 }; /* numbers are any */

static desc graph(cudnnHandle_t h, const struct conv *c, int64_t align)
{
    const int64_t x[4] = {c->n, c->c, c->h, c->w}, w[4] = {c->k, c->c / c->groups, c->r, c->s},
                  y[4] = {c->n, c->k, c->p, c->q};
    desc parts[5] = {tensor(X, c->type, x, c->planes, align), tensor(W, c->weights, w, c->planes, align),
                     tensor(Y, c->type, y, c->planes, align), convolution(c)};
    GOOD(operation(c, parts[0], parts[1], parts[2], parts[3], &parts[4]));
    desc g = graph_of(h, parts[4]);
    drop(parts, 5); /* the graph keeps the parts it needs */
    return g;
}

/* The plan of an engine with its usual knobs, as the fallback and B lists know it; NULL when it cannot be
 * finalised. */
static desc plan(cudnnHandle_t h, desc g, int64_t index, cudnnStatus_t *status)
{
    desc e = make(CUDNN_BACKEND_ENGINE_DESCRIPTOR), config = make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    desc p = make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    GOOD(SET(e, ENGINE_OPERATION_GRAPH, BACKEND_DESCRIPTOR, 1, &g));
    GOOD(SET(e, ENGINE_GLOBAL_INDEX, INT64, 1, &index));
    *status = cudnnBackendFinalize(e);
    if (*status == CUDNN_STATUS_SUCCESS) {
        GOOD(SET(config, ENGINECFG_ENGINE, BACKEND_DESCRIPTOR, 1, &e));
        GOOD(cudnnBackendFinalize(config));
        GOOD(SET(p, EXECUTION_PLAN_HANDLE, HANDLE, 1, &h));
        GOOD(SET(p, EXECUTION_PLAN_ENGINE_CONFIG, BACKEND_DESCRIPTOR, 1, &config));
        *status = cudnnBackendFinalize(p);
    }
    drop(&e, 1);
    drop(&config, 1);
    if (*status == CUDNN_STATUS_SUCCESS) return p;
    drop(&p, 1);
    return NULL;
}

static desc pack(const int64_t *ids, void *const *at, int64_t count, void *workspace)
{
    desc d = make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    GOOD(SET(d, VARIANT_PACK_UNIQUE_IDS, INT64, count, ids));
    GOOD(SET(d, VARIANT_PACK_DATA_POINTERS, VOID_PTR, count, at));
    GOOD(SET(d, VARIANT_PACK_WORKSPACE, VOID_PTR, 1, &workspace));
    GOOD(cudnnBackendFinalize(d));
    return d;
}

/* ---- memory and the exact result ---- */

struct operands {
    void *at[3]; /* x, w, y */
    size_t count[3];
    size_t written; /* which */
    float *before;  /* of it */
    void *workspace;
};
static const int64_t ids[3] = {X, W, Y};

static enum emu_type type_of(const struct conv *c, size_t which) { return which == 1 ? c->weights : c->type; }

static void operands_open(struct operands *o, const struct conv *c, size_t workspace, uint64_t seed)
{
    const int64_t counts[3] = {c->n * c->c * c->h * c->w, c->k * (c->c / c->groups) * c->r * c->s,
                               c->n * c->k * c->p * c->q};
    *o = (struct operands){.written = c->pass == FORWARD ? 2 : c->pass == DATA ? 0 : 1};
    for (size_t i = 0; i < 3; i++) {
        o->count[i] = (size_t)counts[i];
        o->at[i] = place_alloc(0, o->count[i] * emu_type_bytes(type_of(c, i)));
        test_fill(type_of(c, i), o->at[i], o->count[i], &seed);
    }
    o->before = malloc(o->count[o->written] * sizeof *o->before);
    for (size_t i = 0; i < o->count[o->written]; i++) {
        if (c->beta == 0 && i % 5 == 0) emu_store(type_of(c, o->written), o->at[o->written], (int64_t)i, NAN);
        o->before[i] = emu_load(type_of(c, o->written), o->at[o->written], (int64_t)i);
    }
    if (workspace > 0) o->workspace = place_alloc(0, workspace);
}

static void operands_close(struct operands *o)
{
    for (size_t i = 0; i < 3; i++) place_free(0, o->at[i]);
    if (o->workspace) place_free(0, o->workspace);
    free(o->before);
}

static int64_t at_of(const int64_t dim[4], bool planes, int64_t a, int64_t b, int64_t c, int64_t d)
{
    int64_t s[4];
    strides_of(dim, planes, s);
    return a * s[0] + b * s[1] + c * s[2] + d * s[3];
}

/* Worst distance from the exact result, relative to the size of the terms: every product is visited and added
 * where it belongs. */
static double distance(const struct conv *c, const struct operands *o)
{
    const int64_t seen = c->c / c->groups;
    const int64_t xd[4] = {c->n, c->c, c->h, c->w}, wd[4] = {c->k, seen, c->r, c->s},
                  yd[4] = {c->n, c->k, c->p, c->q};
    double *sum = calloc(2 * o->count[o->written], sizeof *sum), *size = sum + o->count[o->written],
           worst = 0;
    for (int64_t n = 0; n < c->n; n++)
        for (int64_t k = 0; k < c->k; k++)
            for (int64_t p = 0; p < c->p; p++)
                for (int64_t q = 0; q < c->q; q++)
                    for (int64_t r = 0; r < c->r; r++)
                        for (int64_t s = 0; s < c->s; s++)
                            for (int64_t ch = 0; ch < seen; ch++) {
                                const int64_t first = k / (c->k / c->groups) * seen;
                                const int64_t y = p * c->stride[0] - c->before[0] + r * c->dilation[0],
                                              x = q * c->stride[1] - c->before[1] + s * c->dilation[1];
                                if (y < 0 || y >= c->h || x < 0 || x >= c->w) continue;
                                const int64_t at[3] = {at_of(xd, c->planes, n, first + ch, y, x),
                                                       at_of(wd, c->planes, k, ch,
                                                             c->mirrored ? c->r - 1 - r : r,
                                                             c->mirrored ? c->s - 1 - s : s),
                                                       at_of(yd, c->planes, n, k, p, q)};
                                double term = 1;
                                for (size_t i = 0; i < 3; i++)
                                    if (i != o->written)
                                        term *= (double)emu_load(type_of(c, i), o->at[i], at[i]);
                                sum[at[o->written]] += term;
                                size[at[o->written]] += fabs(term);
                            }
    for (size_t i = 0; i < o->count[o->written]; i++) {
        const double got = (double)emu_load(type_of(c, o->written), o->at[o->written], (int64_t)i);
        const double exact =
            (double)c->alpha * sum[i] + (c->beta != 0 ? (double)c->beta * (double)o->before[i] : 0);
        worst = fmax(worst, isnan(got) ? INFINITY : fabs(got - exact) / (1 + size[i]));
    }
    free(sum);
    return worst;
}

/* Run a plan of an engine once; the result stays in o. */
static void run(cudnnHandle_t h, desc p, struct operands *o)
{
    desc v = pack(ids, o->at, 3, o->workspace);
    GOOD(cudnnBackendExecute(h, p, v));
    drop(&v, 1); /* queued operations have their own copy */
    place_sync(0);
}

static int64_t workspace_of(desc p)
{
    int64_t bytes = -1, count = 0;
    GOOD(GET(p, EXECUTION_PLAN_WORKSPACE_SIZE, INT64, 1, &count, &bytes));
    MRT_EQ(count, 1);
    return bytes;
}

static double run_engine(cudnnHandle_t h, const struct conv *c, int64_t engine, uint64_t seed, void *result)
{
    cudnnStatus_t status;
    struct operands o;
    desc g = graph(h, c, 16), p = plan(h, g, engine, &status);
    GOOD(status);
    operands_open(&o, c, (size_t)workspace_of(p), seed);
    run(h, p, &o);
    const double off = distance(c, &o);
    if (result) memcpy(result, o.at[o.written], o.count[o.written] * emu_type_bytes(type_of(c, o.written)));
    operands_close(&o);
    drop(&p, 1);
    drop(&g, 1);
    return off;
}

static struct conv random_conv(uint64_t *seed)
{
    static const float factors[] = {1, -0.5f, 0};
    struct conv c = {.pass = (enum pass)(test_up_to(seed, 3) - 1),
                     .type = (enum emu_type)(test_up_to(seed, 3) - 1)};
    c.weights = c.type;
    c.n = (int64_t)test_up_to(seed, 3);
    c.c = (int64_t)test_up_to(seed, 9);
    c.k = (int64_t)test_up_to(seed, 11);
    c.groups = test_up_to(seed, 3) == 1 ? (int64_t)test_up_to(seed, 4) : 1;
    if (c.groups > 1) c.c *= c.groups, c.k *= c.groups;
    if (c.groups == 4) c.groups = c.c, c.k = c.c * (1 + c.k % 2); /* depthwise */
    c.h = (int64_t)test_up_to(seed, 9);
    c.w = (int64_t)test_up_to(seed, 9);
    c.r = (int64_t)test_up_to(seed, 4);
    c.s = (int64_t)test_up_to(seed, 4);
    for (int i = 0; i < 2; i++) {
        c.stride[i] = (int64_t)test_up_to(seed, 3);
        c.dilation[i] = (int64_t)test_up_to(seed, 2);
        c.before[i] = (int64_t)test_up_to(seed, 4) - 1;
        const int64_t reach = c.dilation[i] * ((i ? c.s : c.r) - 1) + 1,
                      room = (i ? c.w : c.h) + 2 * c.before[i];
        if (room < reach) c.before[i] += (reach - room + 1) / 2;
        c.after[i] = c.before[i];
    }
    c.p = (c.h + c.before[0] + c.after[0] - c.dilation[0] * (c.r - 1) - 1) / c.stride[0] + 1;
    c.q = (c.w + c.before[1] + c.after[1] - c.dilation[1] * (c.s - 1) - 1) / c.stride[1] + 1;
    c.planes = test_up_to(seed, 4) == 1;
    c.mirrored = test_up_to(seed, 4) == 1;
    c.alpha = factors[test_up_to(seed, 2) - 1];
    c.beta = factors[test_up_to(seed, 3) - 1];
    return c;
}

static void passes_are_right(void **state)
{
    (void)state;
    cudnnHandle_t h = handle_on(0);
    uint64_t seed = 1;
    for (int i = 0; i < 150; i++) {
        const struct conv c = random_conv(&seed);
        static const int64_t exact[] = {0, 2, 5};
        const double off = run_engine(h, &c, exact[i % 3], seed, NULL);
        const double most = test_tolerance(c.type);
        if (!(off <= most)) fprintf(stderr, "case %d: pass %d type %d: %g\n", i, c.pass, c.type, off);
        MRT_TRUE(off <= most);
    }
    GOOD(cudnnDestroy(h));
    MRT_EQ(emu_violations(), 0);
}

static const struct conv usual = {.pass = FORWARD,
                                  .type = EMU_F32,
                                  .weights = EMU_F32,
                                  .n = 2,
                                  .c = 16,
                                  .h = 8,
                                  .w = 8,
                                  .k = 8,
                                  .groups = 1,
                                  .r = 3,
                                  .s = 3,
                                  .before = {1, 1},
                                  .after = {1, 1},
                                  .stride = {1, 1},
                                  .dilation = {1, 1},
                                  .p = 8,
                                  .q = 8,
                                  .alpha = 1};
enum { RESULT = 2 * 8 * 8 * 8 };

/* Which engine a plan has must show in its bits. */
static void engines_keep_their_notes(void **state)
{
    (void)state;
    cudnnHandle_t h = handle_on(0);
    for (int pass = FORWARD; pass <= FILTER; pass++) {
        struct conv c = usual;
        c.pass = (enum pass)pass;
        float a[4096], b[4096];
        const size_t bytes = (pass == FORWARD ? RESULT
                              : pass == DATA  ? 2 * RESULT
                                              : 8 * 16 * 9) *
                             sizeof(float);
        MRT_TRUE(run_engine(h, &c, 0, 5, a) < 2e-6 && run_engine(h, &c, 0, 5, b) < 2e-6);
        MRT_TRUE(memcmp(a, b, bytes) == 0); /* plain: the same bits */
        MRT_TRUE(run_engine(h, &c, 5, 5, b) < 2e-6);
        MRT_TRUE(memcmp(a, b, bytes) != 0); /* split: the same numbers, other bits, the same ones again */
        MRT_TRUE(run_engine(h, &c, 5, 5, a) < 2e-6);
        MRT_TRUE(memcmp(a, b, bytes) == 0);
        MRT_TRUE(run_engine(h, &c, 2, 5, a) < 2e-6 && run_engine(h, &c, 2, 5, b) < 2e-6);
        MRT_TRUE(memcmp(a, b, bytes) != 0); /* atomics: other bits each time */
        const double tf32 = run_engine(h, &c, 1, 5, a), half = run_engine(h, &c, 3, 5, b),
                     fourier = run_engine(h, &c, 7, 5, b);
        MRT_TRUE(tf32 > 1e-5 && tf32 < 1e-3 && half > 1e-5 && half < 1e-3 && fourier > 1e-5);
        c.type = c.weights = EMU_BF16;
        MRT_TRUE(run_engine(h, &c, 6, 5, NULL) > 2 * run_engine(h, &c, 0, 5, NULL)); /* coarse: worse than
                                                                                        bf16 is */
    }
    GOOD(cudnnDestroy(h));
    MRT_EQ(emu_violations(), 0);
}

static void heuristics_list_configurations(void **state)
{
    (void)state;
    static const struct {
        cudnnBackendHeurMode_t mode;
        enum emu_type type;
        int64_t count;
    } cases[] = {{CUDNN_HEUR_MODE_A, EMU_F32, 7},
                 {CUDNN_HEUR_MODE_A, EMU_BF16, 6},
                 {CUDNN_HEUR_MODE_B, EMU_F32, 5},
                 {CUDNN_HEUR_MODE_FALLBACK, EMU_F16, 2}};
    cudnnHandle_t h = handle_on(0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct conv c = usual;
        c.type = c.weights = cases[i].type;
        desc g = graph(h, &c, 16), heuristics = make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR), found[8];
        int64_t count = 0, planned = 0;
        GOOD(SET(heuristics, ENGINEHEUR_OPERATION_GRAPH, BACKEND_DESCRIPTOR, 1, &g));
        GOOD(SET(heuristics, ENGINEHEUR_MODE, HEUR_MODE, 1, &cases[i].mode));
        BAD(NOT_INITIALIZED, GET(heuristics, ENGINEHEUR_RESULTS, BACKEND_DESCRIPTOR, 0, &count, NULL));
        GOOD(cudnnBackendFinalize(heuristics));
        GOOD(GET(heuristics, ENGINEHEUR_RESULTS, BACKEND_DESCRIPTOR, 0, &count, NULL));
        MRT_EQ(count, cases[i].count);
        for (int k = 0; k < 8; k++) found[k] = make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
        GOOD(GET(heuristics, ENGINEHEUR_RESULTS, BACKEND_DESCRIPTOR, 2, &count, found));
        MRT_EQ(count, 2);
        GOOD(GET(heuristics, ENGINEHEUR_RESULTS, BACKEND_DESCRIPTOR, 8, &count, found));
        MRT_EQ(count, cases[i].count);
        for (int64_t k = 0; k < count; k++) {
            desc e = make(CUDNN_BACKEND_ENGINE_DESCRIPTOR), knob = make(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
            cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
            int64_t note_count = -1, index = -1, knobs = -1, value = -1;
            cudnnStatus_t status;
            GOOD(GET(found[k], ENGINECFG_ENGINE, BACKEND_DESCRIPTOR, 1, NULL, &e));
            GOOD(GET(e, ENGINE_GLOBAL_INDEX, INT64, 1, NULL, &index));
            GOOD(GET(e, ENGINE_NUMERICAL_NOTE, NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &note_count,
                     notes));
            MRT_TRUE(note_count >= 0 && note_count <= 2);
            GOOD(GET(found[k], ENGINECFG_KNOB_CHOICES, BACKEND_DESCRIPTOR, 1, &knobs, &knob));
            if (knobs == 1) GOOD(GET(knob, KNOB_CHOICE_KNOB_VALUE, INT64, 1, NULL, &value));
            MRT_EQ(knobs == 1, index == 1 || index == 5);
            desc p = plan(h, g, index, &status);
            MRT_EQ(status, index == 4 ? CUDNN_STATUS_NOT_SUPPORTED : CUDNN_STATUS_SUCCESS);
            planned += p != NULL;
            desc made[] = {e, knob, p};
            drop(made, 3);
        }
        MRT_EQ(planned, count - 1);
        drop(found, 8);
        drop(&heuristics, 1);
        drop(&g, 1);
    }
    GOOD(cudnnDestroy(h));
}

static void knobs_are_checked_and_matter(void **state)
{
    (void)state;
    cudnnHandle_t h = handle_on(0);
    desc g = graph(h, &usual, 16);
    float results[2][RESULT];
    for (int64_t value = 1; value <= 2; value++) {
        static const int64_t split = 5;
        static const cudnnBackendKnobType_t type = CUDNN_KNOB_TYPE_SPLIT_K_BUF,
                                            other = CUDNN_KNOB_TYPE_STAGES;
        const int64_t high = 9;
        struct operands o;
        desc d[] = {
            make(CUDNN_BACKEND_ENGINE_DESCRIPTOR),      make(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR),
            make(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR), make(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR),
            make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR),   make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)};
        GOOD(SET(d[0], ENGINE_OPERATION_GRAPH, BACKEND_DESCRIPTOR, 1, &g));
        GOOD(SET(d[0], ENGINE_GLOBAL_INDEX, INT64, 1, &split));
        GOOD(cudnnBackendFinalize(d[0]));
        for (int i = 1; i < 4; i++) {
            GOOD(SET(d[i], KNOB_CHOICE_KNOB_TYPE, KNOB_TYPE, 1, i == 2 ? &other : &type));
            GOOD(SET(d[i], KNOB_CHOICE_KNOB_VALUE, INT64, 1, i == 3 ? &high : &value));
            GOOD(cudnnBackendFinalize(d[i]));
        }
        GOOD(SET(d[4], ENGINECFG_ENGINE, BACKEND_DESCRIPTOR, 1, &d[0]));
        GOOD(SET(d[4], ENGINECFG_KNOB_CHOICES, BACKEND_DESCRIPTOR, 1, &d[2]));
        BAD(NOT_SUPPORTED, cudnnBackendFinalize(d[4])); /* a knob it has not */
        GOOD(SET(d[4], ENGINECFG_KNOB_CHOICES, BACKEND_DESCRIPTOR, 1, &d[3]));
        BAD(NOT_SUPPORTED, cudnnBackendFinalize(d[4])); /* turned too far */
        GOOD(SET(d[4], ENGINECFG_KNOB_CHOICES, BACKEND_DESCRIPTOR, 1, &d[1]));
        GOOD(cudnnBackendFinalize(d[4]));
        GOOD(SET(d[5], EXECUTION_PLAN_HANDLE, HANDLE, 1, &h));
        GOOD(SET(d[5], EXECUTION_PLAN_ENGINE_CONFIG, BACKEND_DESCRIPTOR, 1, &d[4]));
        GOOD(cudnnBackendFinalize(d[5]));
        operands_open(&o, &usual, (size_t)workspace_of(d[5]), 3);
        run(h, d[5], &o);
        memcpy(results[value - 1], o.at[2], sizeof results[0]);
        operands_close(&o);
        drop(d, 6);
    }
    MRT_TRUE(memcmp(results[0], results[1], sizeof results[0]) != 0);
    drop(&g, 1);
    GOOD(cudnnDestroy(h));
}

/* ---- rules of descriptors ---- */

static void attributes_are_checked(void **state)
{
    (void)state;
    const cudnnDataType_t f32 = CUDNN_DATA_FLOAT;
    const int64_t dim[9] = {2, 3, 4, 5, 1, 1, 1, 1, 1}, one = 1;
    int64_t got[4], count = 0;
    char text[128] = "";
    desc t = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    BAD(BAD_PARAM_ATTRIBUTE_TYPE, SET(t, TENSOR_DATA_TYPE, INT64, 1, &one));
    cudnnGetLastErrorString(text, sizeof text);
    MRT_HAS(text, "type");
    BAD(BAD_PARAM, SET(t, TENSOR_DATA_TYPE, DATA_TYPE, 2, &f32));
    BAD(BAD_PARAM, SET(t, TENSOR_DATA_TYPE, DATA_TYPE, 0, &f32));
    BAD(BAD_PARAM_NULL_POINTER, SET(t, TENSOR_DATA_TYPE, DATA_TYPE, 1, NULL));
    BAD(BAD_PARAM, SET(t, CONVOLUTION_COMP_TYPE, DATA_TYPE, 1, &f32));
    BAD(BAD_PARAM, SET(t, TENSOR_DIMENSIONS, INT64, 9, dim));
    BAD(BAD_PARAM_NULL_POINTER, SET(NULL, TENSOR_DIMENSIONS, INT64, 4, dim));
    BAD(BAD_PARAM, cudnnBackendFinalize(t)); /* nothing set */
    drop(&t, 1);

    t = tensor(1, EMU_F32, dim, false, 16);
    BAD(BAD_PARAM, cudnnBackendFinalize(t));
    BAD(BAD_PARAM, SET(t, TENSOR_UNIQUE_ID, INT64, 1, &one));
    BAD(BAD_PARAM_ATTRIBUTE_TYPE, GET(t, TENSOR_DIMENSIONS, FLOAT, 4, &count, got));
    GOOD(GET(t, TENSOR_DIMENSIONS, INT64, 4, &count, got));
    MRT_TRUE(count == 4 && memcmp(got, dim, sizeof got) == 0);
    const desc dead = t;
    drop(&t, 1);
    CAUGHT(BAD(BAD_PARAM, cudnnBackendFinalize(dead)));
    CAUGHT(BAD(BAD_PARAM, cudnnBackendDestroyDescriptor(dead)));
    BAD(NOT_SUPPORTED, cudnnBackendCreateDescriptor(CUDNN_BACKEND_MATMUL_DESCRIPTOR, &t));
    BAD(BAD_PARAM_NULL_POINTER, cudnnBackendCreateDescriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR, NULL));
}

/* Each attribute of a tensor missing in turn, and each with a bad value. */
static void tensors_are_checked(void **state)
{
    (void)state;
    const cudnnDataType_t f32 = CUDNN_DATA_FLOAT, ints = CUDNN_DATA_INT8;
    const int64_t dim[4] = {2, 3, 4, 5}, none[4] = {2, 0, 4, 5}, stride[4] = {60, 1, 15, 3},
                  still[4] = {60, 0, 15, 3}, id = 1;
    const int64_t aligns[] = {16, 0, 3, 2, 24};
    for (int missing = 0; missing < 14; missing++) {
        desc t = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
        if (missing != 1) GOOD(SET(t, TENSOR_DATA_TYPE, DATA_TYPE, 1, missing == 6 ? &ints : &f32));
        if (missing != 2)
            GOOD(SET(t, TENSOR_DIMENSIONS, INT64, missing == 7 ? 3 : 4, missing == 8 ? none : dim));
        if (missing != 3) GOOD(SET(t, TENSOR_STRIDES, INT64, 4, missing == 9 ? still : stride));
        if (missing != 4) GOOD(SET(t, TENSOR_UNIQUE_ID, INT64, 1, &id));
        if (missing != 5)
            GOOD(SET(t, TENSOR_BYTE_ALIGNMENT, INT64, 1, &aligns[missing < 10 ? 0 : missing - 9]));
        MRT_EQ(cudnnBackendFinalize(t), missing == 0   ? CUDNN_STATUS_SUCCESS
                                        : missing == 6 ? CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE
                                                       : CUDNN_STATUS_BAD_PARAM);
        drop(&t, 1);
    }
}

static void padding_is_the_same_on_both_sides(void **state) /* what millrace must not ask for */
{
    (void)state;
    const cudnnDataType_t compute = CUDNN_DATA_FLOAT;
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    const int64_t two = 2, before[2] = {1, 0}, after[2] = {1, 1}, one[2] = {1, 1};
    desc d = make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    GOOD(SET(d, CONVOLUTION_COMP_TYPE, DATA_TYPE, 1, &compute));
    GOOD(SET(d, CONVOLUTION_CONV_MODE, CONVOLUTION_MODE, 1, &mode));
    GOOD(SET(d, CONVOLUTION_SPATIAL_DIMS, INT64, 1, &two));
    GOOD(SET(d, CONVOLUTION_PRE_PADDINGS, INT64, 2, before));
    GOOD(SET(d, CONVOLUTION_POST_PADDINGS, INT64, 2, after));
    GOOD(SET(d, CONVOLUTION_FILTER_STRIDES, INT64, 2, one));
    GOOD(SET(d, CONVOLUTION_DILATIONS, INT64, 2, one));
    BAD(NOT_SUPPORTED, cudnnBackendFinalize(d));
    drop(&d, 1);
}

static void operations_are_checked(void **state)
{
    (void)state;
    const int64_t x[4] = {2, 16, 8, 8}, w[4] = {8, 16, 3, 3}, y[4] = {2, 8, 8, 8}, short_y[4] = {2, 8, 7, 8},
                  thin_w[4] = {8, 15, 3, 3}, few_w[4] = {6, 4, 3, 3}, other_n[4] = {3, 8, 8, 8};
    cudnnHandle_t h = handle_on(0), h1 = handle_on(1);
    place_use(0);
    desc d[] = {tensor(1, EMU_F32, x, false, 16),      tensor(2, EMU_F32, w, false, 16),
                tensor(3, EMU_F32, y, false, 16),      tensor(3, EMU_F32, short_y, false, 16),
                tensor(2, EMU_F32, thin_w, false, 16), tensor(3, EMU_F32, other_n, false, 16),
                tensor(1, EMU_F32, y, false, 16),      convolution(&usual),
                make(CUDNN_BACKEND_TENSOR_DESCRIPTOR), NULL,
                tensor(2, EMU_F32, few_w, false, 16)};
    struct {
        desc x, w, y;
        cudnnStatus_t status;
    } cases[] = {{d[0], d[1], d[2], CUDNN_STATUS_SUCCESS},   {d[0], d[1], d[3], CUDNN_STATUS_BAD_PARAM},
                 {d[0], d[4], d[2], CUDNN_STATUS_BAD_PARAM}, {d[0], d[1], d[5], CUDNN_STATUS_BAD_PARAM},
                 {d[8], d[1], d[2], CUDNN_STATUS_BAD_PARAM}, {d[0], d[10], d[2], CUDNN_STATUS_BAD_PARAM}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        desc op;
        MRT_EQ(operation(&usual, cases[i].x, cases[i].w, cases[i].y, d[7], &op), cases[i].status);
        drop(&op, 1);
    }
    desc op = make(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
    CAUGHT(BAD(BAD_PARAM_DESCRIPTOR_TYPE,
               SET(op, OPERATION_CONVOLUTION_FORWARD_X, BACKEND_DESCRIPTOR, 1, &d[7])));
    BAD(BAD_PARAM_NULL_POINTER, SET(op, OPERATION_CONVOLUTION_FORWARD_X, BACKEND_DESCRIPTOR, 1, &d[9]));
    BAD(BAD_PARAM, SET(op, OPERATION_CONVOLUTION_BWD_DATA_DX, BACKEND_DESCRIPTOR, 1, &d[0]));
    drop(&op, 1);

    GOOD(operation(&usual, d[0], d[1], d[6], d[7], &op)); /* x and y with one number */
    desc g = make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    GOOD(SET(g, OPERATIONGRAPH_OPS, BACKEND_DESCRIPTOR, 1, &op));
    BAD(BAD_PARAM, cudnnBackendFinalize(g)); /* no handle */
    GOOD(SET(g, OPERATIONGRAPH_HANDLE, HANDLE, 1, &h));
    BAD(BAD_PARAM_DUPLICATED_ENTRIES, cudnnBackendFinalize(g));
    drop(&op, 1);
    drop(&g, 1);

    cudnnStatus_t status;
    g = graph(h, &usual, 16);
    CAUGHT(MRT_TRUE(plan(h1, g, 0, &status) == NULL)); /* another device's */
    MRT_TRUE(plan(h, g, 6, &status) == NULL && status == CUDNN_STATUS_NOT_SUPPORTED);
    MRT_TRUE(plan(h, g, 99, &status) == NULL && status == CUDNN_STATUS_NOT_SUPPORTED);
    drop(&g, 1);
    g = graph(h, &usual, 8);
    MRT_TRUE(plan(h, g, 1, &status) == NULL && status == CUDNN_STATUS_NOT_SUPPORTED); /* wants 16 */
    drop(&g, 1);
    struct conv mixed = usual;
    mixed.weights = EMU_BF16;
    g = graph(h, &mixed, 16);
    MRT_TRUE(plan(h, g, 0, &status) == NULL && status == CUDNN_STATUS_NOT_SUPPORTED);
    drop(&g, 1);
    drop(d, 11);
    GOOD(cudnnDestroy(h));
    GOOD(cudnnDestroy(h1));
}

/* ---- rules of execution ---- */

static void executions_are_checked(void **state)
{
    (void)state;
    cudnnHandle_t h = handle_on(0), h1 = handle_on(1);
    cudnnStatus_t status;
    struct operands o;
    place_use(0);
    desc g = graph(h, &usual, 16), p = plan(h, g, 1, &status);
    const size_t bytes = (size_t)workspace_of(p);
    MRT_TRUE(bytes > 0);
    operands_open(&o, &usual, bytes + 512, 1);
    char *workspace = o.workspace, *foreign = place_alloc(1, 1 << 16);
    void *x = o.at[0], *w = o.at[1], *y = o.at[2];
    const int64_t four[4] = {X, W, Y, 12};
    const struct {
        void *at[4];
        int64_t count;
        void *workspace;
        cudnnStatus_t status;
        bool caught;
    } cases[] = {
        {{x, w, y}, 3, workspace, CUDNN_STATUS_SUCCESS, false},
        {{x, w}, 2, workspace, CUDNN_STATUS_BAD_PARAM, false},
        {{x, w, y, y}, 4, workspace, CUDNN_STATUS_BAD_PARAM, false},
        {{x, NULL, y}, 3, workspace, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, false},
        {{(char *)x + 4, w, y}, 3, workspace, CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER, false},
        {{x, w, (char *)y + 16}, 3, workspace, CUDNN_STATUS_EXECUTION_FAILED, true},
        {{foreign, w, y}, 3, workspace, CUDNN_STATUS_EXECUTION_FAILED, true},
        {{x, w, x}, 3, workspace, CUDNN_STATUS_EXECUTION_FAILED, true},
        {{x, w, y}, 3, NULL, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, false},
        {{x, w, y}, 3, workspace + 16, CUDNN_STATUS_EXECUTION_FAILED, true},
        {{x, w, y}, 3, workspace + 768, CUDNN_STATUS_EXECUTION_FAILED, true}, /* too short */
        {{x, w, y}, 3, y, CUDNN_STATUS_EXECUTION_FAILED, true},
        {{x, w, y}, 3, foreign, CUDNN_STATUS_EXECUTION_FAILED, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const uint64_t before = emu_violations();
        desc v = pack(four, cases[i].at, cases[i].count, cases[i].workspace);
        status = cudnnBackendExecute(h, p, v);
        if (status != cases[i].status) fprintf(stderr, "case %zu: %s\n", i, cudnnGetErrorString(status));
        MRT_EQ(status, cases[i].status);
        MRT_EQ(emu_violations() > before, cases[i].caught);
        drop(&v, 1);
    }
    desc v = pack(ids, o.at, 3, workspace), open = make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    BAD(BAD_PARAM_NOT_FINALIZED, cudnnBackendExecute(h, p, open));
    BAD(BAD_PARAM_DESCRIPTOR_TYPE, cudnnBackendExecute(h, v, p));
    BAD(BAD_PARAM_NULL_POINTER, cudnnBackendExecute(NULL, p, v));
    CAUGHT(BAD(EXECUTION_FAILED, cudnnBackendExecute(h1, p, v)));
    place_use(1);
    CAUGHT(BAD(EXECUTION_FAILED, cudnnBackendExecute(h, p, v)));
    place_use(0);
    BAD(BAD_PARAM_STREAM_MISMATCH, cudnnSetStream(h, places[1].stream));
    const int64_t twice[2] = {1, 1};
    GOOD(SET(open, VARIANT_PACK_UNIQUE_IDS, INT64, 2, twice));
    GOOD(SET(open, VARIANT_PACK_DATA_POINTERS, VOID_PTR, 1, o.at));
    BAD(BAD_PARAM, cudnnBackendFinalize(open));
    GOOD(SET(open, VARIANT_PACK_DATA_POINTERS, VOID_PTR, 2, o.at));
    BAD(BAD_PARAM_DUPLICATED_ENTRIES, cudnnBackendFinalize(open));
    place_sync(0);
    GOOD(cudnnDestroy(h));
    CAUGHT(BAD(BAD_PARAM, cudnnBackendExecute(h, p, v)));
    GOOD(cudnnDestroy(h1));
    desc all[] = {v, open, p, g};
    drop(all, 4);
    operands_close(&o);
    place_free(1, foreign);
}

/* A gradient of weights in f32 beside 16-bit tensors: the question is taken, and no list has an answer. */
static void nothing_mixes_types(void **state)
{
    (void)state;
    static const cudnnBackendHeurMode_t modes[] = {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_B,
                                                   CUDNN_HEUR_MODE_FALLBACK};
    cudnnHandle_t h = handle_on(0);
    struct conv wide = usual;
    wide.pass = FILTER;
    wide.type = EMU_BF16;
    desc g = graph(h, &wide, 16);
    for (size_t i = 0; i < 3; i++) {
        desc list = make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
        int64_t count = -1;
        GOOD(SET(list, ENGINEHEUR_OPERATION_GRAPH, BACKEND_DESCRIPTOR, 1, &g));
        GOOD(SET(list, ENGINEHEUR_MODE, HEUR_MODE, 1, &modes[i]));
        GOOD(cudnnBackendFinalize(list));
        GOOD(GET(list, ENGINEHEUR_RESULTS, BACKEND_DESCRIPTOR, 0, &count, NULL));
        MRT_EQ(count, 0);
        drop(&list, 1);
    }
    drop(&g, 1);
    GOOD(cudnnDestroy(h));
}

/* Engines that the environment takes away. It is read at every use, so one process can try them all. */
static void the_environment_takes_engines_away(void **state)
{
    (void)state;
    cudnnHandle_t h = handle_on(0);
    cudnnStatus_t status;
    for (int i = 0; i < 3; i++) {
        static const char *const settings[] = {"", "none", "fallback-only"};
        static const cudnnStatus_t of_plan[] = {CUDNN_STATUS_SUCCESS, CUDNN_STATUS_NOT_SUPPORTED,
                                                CUDNN_STATUS_SUCCESS};
        static const cudnnStatus_t of_list[] = {CUDNN_STATUS_SUCCESS, CUDNN_STATUS_SUCCESS,
                                                CUDNN_STATUS_NOT_SUPPORTED};
        const cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_A;
        setenv("MILLRACE_EMU_CUDNN", settings[i], 1);
        desc g = graph(h, &usual, 16), list = make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR),
             p = plan(h, g, 0, &status);
        MRT_EQ(status, of_plan[i]);
        GOOD(SET(list, ENGINEHEUR_OPERATION_GRAPH, BACKEND_DESCRIPTOR, 1, &g));
        GOOD(SET(list, ENGINEHEUR_MODE, HEUR_MODE, 1, &mode));
        MRT_EQ(cudnnBackendFinalize(list), of_list[i]);
        desc all[] = {g, list, p};
        drop(all, 3);
    }
    unsetenv("MILLRACE_EMU_CUDNN");
    GOOD(cudnnDestroy(h));
}

int main(void)
{
    setenv("MILLRACE_EMU_DEVICES", "7", 1);
    setenv("MILLRACE_EMU_VIOLATION", "count", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes_are_right),
        cmocka_unit_test(engines_keep_their_notes),
        cmocka_unit_test(heuristics_list_configurations),
        cmocka_unit_test(knobs_are_checked_and_matter),
        cmocka_unit_test(attributes_are_checked),
        cmocka_unit_test(nothing_mixes_types),
        cmocka_unit_test(tensors_are_checked),
        cmocka_unit_test(padding_is_the_same_on_both_sides),
        cmocka_unit_test(operations_are_checked),
        cmocka_unit_test(executions_are_checked),
        cmocka_unit_test(the_environment_takes_engines_away),
    };
    return cmocka_run_group_tests(tests, places_open, places_close);
}
