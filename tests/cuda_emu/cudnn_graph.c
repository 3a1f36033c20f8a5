/* tests/cuda_emu/cudnn_graph.c: the conditions for finalising a descriptor, and the algorithms offered.
 *
 * The algorithms ("engines") of every pass, distinguished by the notes that the library gives with them. Each
 * adds its terms in an order of its own, so that choosing another one changes the last bits of the result,
 * and one that should have been refused changes more:
 *
 *   0 plain        f32 exactly; needs no workspace; the only one the fallback list has
 *   1 tensor       on tensor cores: f32 factors are rounded to TF32; requires addresses that are declared
 *                  multiples of 16
 *   2 atomics      adds in another order each time it runs
 *   3 converting   f32 only: factors are rounded to f16
 *   4 broken       offered, but its plan cannot be finalised
 *   5 split        two sums that are added; its knob says where to divide; a large workspace
 *   6 coarse       16 bits only: sums kept in fewer bits
 *   7 fourier      f32 only: by transforms, which on a GPU cost three digits; here factors are rounded to f16
 *
 * The environment can take some away: MILLRACE_EMU_CUDNN, words with commas between:
 *   fallback-only   heuristics of modes A, B and INSTANT support nothing
 *   none            no plan can be finalised */
#include <stdlib.h>

#include "tests/cuda_emu/emu_cudnn.h"

enum { PLAIN, TENSOR, ATOMICS, CONVERTING, BROKEN, SPLIT, COARSE, FOURIER, ENGINES };

static const struct engine {
    cudnnBackendNumericalNote_t notes[2], notes_16[2]; /* with f32 tensors and with 16-bit ones */
    int note_count, note_count_16;
    bool f32, half;
    bool has_knob;
    cudnnBackendKnobType_t knob;
    int64_t low, high, usual;
    size_t workspace_bytes;
} engines[ENGINES] = {
    [PLAIN] = {.notes = {CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP},
               .note_count = 1,
               .notes_16 = {CUDNN_NUMERICAL_NOTE_TENSOR_CORE},
               .note_count_16 = 1,
               .f32 = true,
               .half = true},
    [TENSOR] = {.notes = {CUDNN_NUMERICAL_NOTE_TENSOR_CORE},
                .note_count = 1,
                .notes_16 = {CUDNN_NUMERICAL_NOTE_TENSOR_CORE},
                .note_count_16 = 1,
                .f32 = true,
                .half = true,
                .has_knob = true,
                .knob = CUDNN_KNOB_TYPE_TILE_SIZE,
                .low = 0,
                .high = 7,
                .usual = 3,
                .workspace_bytes = 70000},
    [ATOMICS] = {.notes = {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC},
                 .note_count = 1,
                 .notes_16 = {CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC},
                 .note_count_16 = 2,
                 .f32 = true,
                 .half = true,
                 .workspace_bytes = 4096},
    [CONVERTING] = {.notes = {CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS},
                    .note_count = 2,
                    .f32 = true},
    [BROKEN] = {.notes_16 = {CUDNN_NUMERICAL_NOTE_TENSOR_CORE},
                .note_count_16 = 1,
                .f32 = true,
                .half = true},
    [SPLIT] = {.notes_16 = {CUDNN_NUMERICAL_NOTE_TENSOR_CORE},
               .note_count_16 = 1,
               .f32 = true,
               .half = true,
               .has_knob = true,
               .knob = CUDNN_KNOB_TYPE_SPLIT_K_BUF,
               .low = 1,
               .high = 3,
               .usual = 2,
               .workspace_bytes = 20u << 20},
    [COARSE] = {.notes_16 = {CUDNN_NUMERICAL_NOTE_TENSOR_CORE,
                             CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION},
                .note_count_16 = 2,
                .half = true},
    [FOURIER] = {.notes = {CUDNN_NUMERICAL_NOTE_FFT}, .note_count = 1, .f32 = true, .workspace_bytes = 65536},
};

static bool setting(const char *word)
{
    const char *at = getenv("MILLRACE_EMU_CUDNN");
    const size_t length = strlen(word);
    while (at && *at) {
        const size_t here = strcspn(at, ",");
        if (here == length && memcmp(at, word, length) == 0) return true;
        at += here + (at[here] == ',');
    }
    return false;
}

/* ---- tensors, convolutions, operations ---- */

static bool take_type(int64_t given, enum emu_type *out)
{
    switch (given) {
    case CUDNN_DATA_FLOAT: *out = EMU_F32; return true;
    case CUDNN_DATA_BFLOAT16: *out = EMU_BF16; return true;
    case CUDNN_DATA_HALF: *out = EMU_F16; return true;
    default: return false;
    }
}

static cudnnStatus_t finalise_tensor(const struct emu_dnn_body *b)
{
    const struct emu_dnn_values *dims = emu_dnn_values(b, CUDNN_ATTR_TENSOR_DIMENSIONS),
                                *strides = emu_dnn_values(b, CUDNN_ATTR_TENSOR_STRIDES);
    const int64_t align = emu_dnn_int(b, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 0);
    enum emu_type type;
    if (dims->count != strides->count)
        return emu_dnn_error(CUDNN_STATUS_BAD_PARAM, "tensor: %lld dimensions, %lld strides",
                             (long long)dims->count, (long long)strides->count);
    if (!take_type(emu_dnn_int(b, CUDNN_ATTR_TENSOR_DATA_TYPE, -1), &type))
        return emu_dnn_error(CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE,
                             "tensor: only float, bfloat16 and half are emulated");
    if (align <= 0 || align % (int64_t)emu_type_bytes(type) != 0 || (align & (align - 1)) != 0)
        return emu_dnn_error(CUDNN_STATUS_BAD_PARAM,
                             "tensor: alignment %lld is no power of two that elements divide",
                             (long long)align);
    for (int64_t i = 0; i < dims->count; i++) {
        const int64_t d = ((const int64_t *)dims->data)[i], s = ((const int64_t *)strides->data)[i];
        if (d < 1 || s < 1)
            return emu_dnn_error(CUDNN_STATUS_BAD_PARAM,
                                 "tensor: dimension %lld is %lld long with stride %lld", (long long)i,
                                 (long long)d, (long long)s);
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t finalise_convolution(const struct emu_dnn_body *b)
{
    static const struct {
        cudnnBackendAttributeName_t name;
        int64_t least;
    } lists[] = {{CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, 0},
                 {CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, 0},
                 {CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, 1},
                 {CUDNN_ATTR_CONVOLUTION_DILATIONS, 1}};
    const int64_t spatial = emu_dnn_int(b, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 0);
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        const struct emu_dnn_values *v = emu_dnn_values(b, lists[i].name);
        if (v->count != spatial)
            return emu_dnn_error(CUDNN_STATUS_BAD_PARAM,
                                 "convolution: attribute %d has %lld values for %lld dimensions",
                                 lists[i].name, (long long)v->count, (long long)spatial);
        for (int64_t j = 0; j < v->count; j++)
            if (((const int64_t *)v->data)[j] < lists[i].least)
                return emu_dnn_error(CUDNN_STATUS_BAD_PARAM, "convolution: attribute %d is %lld",
                                     lists[i].name, (long long)((const int64_t *)v->data)[j]);
    }
    const int64_t mode = emu_dnn_int(b, CUDNN_ATTR_CONVOLUTION_CONV_MODE, -1);
    if (mode != CUDNN_CONVOLUTION && mode != CUDNN_CROSS_CORRELATION)
        return emu_dnn_error(CUDNN_STATUS_BAD_PARAM, "convolution: unknown mode");
    if (memcmp(emu_dnn_values(b, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS)->data,
               emu_dnn_values(b, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS)->data,
               (size_t)spatial * sizeof(int64_t)) != 0)
        return emu_dnn_error(
            CUDNN_STATUS_NOT_SUPPORTED,
            "convolution: padding that differs from side to side gives wrong weight gradients "
            "in f32 (cuDNN 9.19 on an H100), and is not emulated");
    if (spatial != 2 || emu_dnn_int(b, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, -1) != CUDNN_DATA_FLOAT)
        return emu_dnn_error(CUDNN_STATUS_NOT_SUPPORTED,
                             "convolution: only two dimensions and sums in float are emulated");
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t read_tensor(const struct emu_dnn_body *b, struct emu_dnn_tensor *out)
{
    const struct emu_dnn_values *dims = emu_dnn_values(b, CUDNN_ATTR_TENSOR_DIMENSIONS);
    if (dims->count != 4)
        return emu_dnn_error(CUDNN_STATUS_BAD_PARAM, "operation: a tensor has %lld dimensions, not 4",
                             (long long)dims->count);
    if (emu_dnn_int(b, CUDNN_ATTR_TENSOR_IS_VIRTUAL, 0) || emu_dnn_int(b, CUDNN_ATTR_TENSOR_IS_BY_VALUE, 0) ||
        emu_dnn_int(b, CUDNN_ATTR_TENSOR_VECTOR_COUNT, 1) != 1 ||
        emu_dnn_int(b, CUDNN_ATTR_TENSOR_REORDERING_MODE, 0) != 0)
        return emu_dnn_error(
            CUDNN_STATUS_NOT_SUPPORTED,
            "operation: virtual, by-value, vectorised and reordered tensors are not emulated");
    take_type(emu_dnn_int(b, CUDNN_ATTR_TENSOR_DATA_TYPE, -1), &out->type);
    memcpy(out->dim, dims->data, sizeof out->dim);
    memcpy(out->stride, emu_dnn_values(b, CUDNN_ATTR_TENSOR_STRIDES)->data, sizeof out->stride);
    out->uid = emu_dnn_int(b, CUDNN_ATTR_TENSOR_UNIQUE_ID, 0);
    out->align = emu_dnn_int(b, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 0);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t check_shapes(const struct emu_dnn_conv *c)
{
    if (c->x.dim[1] % c->w.dim[1] != 0)
        return emu_dnn_error(CUDNN_STATUS_BAD_PARAM,
                             "operation: channels of x are no multiple of the weights'");
    if (c->w.dim[0] % (c->x.dim[1] / c->w.dim[1]) != 0)
        return emu_dnn_error(CUDNN_STATUS_BAD_PARAM, "operation: groups do not divide the filters");
    if (c->x.dim[0] != c->y.dim[0] || c->w.dim[0] != c->y.dim[1])
        return emu_dnn_error(CUDNN_STATUS_BAD_PARAM, "operation: batches or filters of x, w and y differ");
    for (int i = 0; i < 2; i++) {
        const int64_t room =
            c->x.dim[2 + i] + c->before[i] + c->after[i] - (c->dilation[i] * (c->w.dim[2 + i] - 1) + 1);
        if (room < 0 || room / c->stride[i] + 1 != c->y.dim[2 + i])
            return emu_dnn_error(
                CUDNN_STATUS_BAD_PARAM,
                "operation: y is %lld along axis %d where x, w, padding and stride give %lld",
                (long long)c->y.dim[2 + i], i, room < 0 ? 0LL : (long long)(room / c->stride[i] + 1));
    }
    return CUDNN_STATUS_SUCCESS;
}

static float read_factor(const struct emu_dnn_body *b, cudnnBackendAttributeName_t name)
{
    const struct emu_dnn_values *v = emu_dnn_values(b, name);
    float single;
    double twice;
    memcpy(&single, v->data, sizeof single);
    if (v->type == CUDNN_TYPE_FLOAT) return single;
    memcpy(&twice, v->data, sizeof twice);
    return (float)twice;
}

struct names {
    cudnnBackendAttributeName_t x, w, y, conv, alpha, beta;
};

static cudnnStatus_t finalise_operation(struct emu_dnn_body *b, enum emu_dnn_pass pass, struct names name)
{
    struct emu_dnn_conv *c = &b->conv;
    const struct emu_dnn_body *conv = emu_dnn_body_at(b, name.conv);
    cudnnStatus_t rc = read_tensor(emu_dnn_body_at(b, name.x), &c->x);
    if (rc == CUDNN_STATUS_SUCCESS) rc = read_tensor(emu_dnn_body_at(b, name.w), &c->w);
    if (rc == CUDNN_STATUS_SUCCESS) rc = read_tensor(emu_dnn_body_at(b, name.y), &c->y);
    if (rc != CUDNN_STATUS_SUCCESS) return rc;
    c->pass = pass;
    memcpy(c->before, emu_dnn_values(conv, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS)->data, sizeof c->before);
    memcpy(c->after, emu_dnn_values(conv, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS)->data, sizeof c->after);
    memcpy(c->stride, emu_dnn_values(conv, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES)->data, sizeof c->stride);
    memcpy(c->dilation, emu_dnn_values(conv, CUDNN_ATTR_CONVOLUTION_DILATIONS)->data, sizeof c->dilation);
    c->mirrored = emu_dnn_int(conv, CUDNN_ATTR_CONVOLUTION_CONV_MODE, 0) == CUDNN_CONVOLUTION;
    c->alpha = read_factor(b, name.alpha);
    c->beta = read_factor(b, name.beta);
    return check_shapes(c);
}

static cudnnStatus_t finalise_forward(struct emu_dnn_body *b)
{
    return finalise_operation(
        b, EMU_FORWARD,
        (struct names){
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA});
}

static cudnnStatus_t finalise_data(struct emu_dnn_body *b)
{
    return finalise_operation(
        b, EMU_BACKWARD_DATA,
        (struct names){
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA});
}

static cudnnStatus_t finalise_filter(struct emu_dnn_body *b)
{
    return finalise_operation(b, EMU_BACKWARD_FILTER,
                              (struct names){CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                                             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                                             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                                             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                                             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                                             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA});
}

/* ---- graphs, engines, configurations, plans ---- */

/* The device of the handle that an attribute holds, -1 when it is no handle. */
static int device_of_handle(const struct emu_dnn_body *b, cudnnBackendAttributeName_t name)
{
    cudnnHandle_t h;
    memcpy(&h, emu_dnn_values(b, name)->data, sizeof h);
    if (h && emu_live_is(h, EMU_CUDNN_HANDLE)) return h->device;
    if (h) emu_violation("cudnnBackendFinalize: the handle of a descriptor was destroyed or never created");
    return -1;
}

static cudnnStatus_t finalise_graph(struct emu_dnn_body *b)
{
    b->device = device_of_handle(b, CUDNN_ATTR_OPERATIONGRAPH_HANDLE);
    if (b->device < 0) return emu_dnn_error(CUDNN_STATUS_BAD_PARAM, "graph: no handle");
    if (emu_dnn_values(b, CUDNN_ATTR_OPERATIONGRAPH_OPS)->count != 1)
        return emu_dnn_error(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN,
                             "graph: only graphs of one operation are emulated");
    const struct emu_dnn_conv *c = &emu_dnn_body_at(b, CUDNN_ATTR_OPERATIONGRAPH_OPS)->conv;
    if (c->x.uid == c->w.uid || c->x.uid == c->y.uid || c->w.uid == c->y.uid)
        return emu_dnn_error(CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES,
                             "graph: two tensors have the same number");
    return CUDNN_STATUS_SUCCESS;
}

static const struct emu_dnn_conv *conv_of_graph(const struct emu_dnn_body *graph)
{
    return &emu_dnn_body_at(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS)->conv;
}

/* No two elements share memory: each stride reaches over all that the smaller strides span. */
static bool apart(const struct emu_dnn_tensor *t)
{
    int64_t reach = 1;
    bool done[4] = {false};
    for (int round = 0; round < 4; round++) {
        int next = -1;
        for (int i = 0; i < 4; i++)
            if (!done[i] && (next < 0 || t->stride[i] < t->stride[next])) next = i;
        done[next] = true;
        if (t->dim[next] == 1) continue;
        if (t->stride[next] < reach) return false;
        reach = t->stride[next] * t->dim[next];
    }
    return true;
}

/* Channels are neighbours, or each of them is a plane of its own; where there is one channel or one pixel,
 * both are true. */
static bool channels_last(const struct emu_dnn_tensor *t) { return t->dim[1] == 1 || t->stride[1] == 1; }
static bool planes(const struct emu_dnn_tensor *t)
{
    return t->dim[2] * t->dim[3] == 1 || (t->dim[3] == 1 ? t->stride[2] : t->stride[3]) == 1;
}

/* Types and layouts that any engine takes. */
static cudnnStatus_t conv_supported(const struct emu_dnn_conv *c)
{
    if (!apart(&c->x) || !apart(&c->w) || !apart(&c->y))
        return emu_dnn_error(CUDNN_STATUS_NOT_SUPPORTED_LAYOUT, "elements of a tensor overlap");
    const bool last = channels_last(&c->x) && channels_last(&c->w) && channels_last(&c->y);
    if (!last && !(planes(&c->x) && planes(&c->w) && planes(&c->y)))
        return emu_dnn_error(CUDNN_STATUS_NOT_SUPPORTED_LAYOUT,
                             "x, w and y must all have neighbouring channels, or none of them");
    return CUDNN_STATUS_SUCCESS;
}

/* Of tensors of different types the library takes the graph and the question, and offers nothing: a gradient
 * of weights in f32 beside 16-bit tensors neither (so did 9.19 answer for an H200). */
static bool offers(int engine, const struct emu_dnn_conv *c)
{
    if (c->x.type != c->y.type || c->w.type != c->x.type) return false;
    return c->x.type == EMU_F32 ? engines[engine].f32 : engines[engine].half;
}

static cudnnStatus_t finalise_engine(const struct emu_dnn_body *b)
{
    const int64_t index = emu_dnn_int(b, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, -1);
    if (index < 0 || index >= ENGINES ||
        !offers((int)index, conv_of_graph(emu_dnn_body_at(b, CUDNN_ATTR_ENGINE_OPERATION_GRAPH))))
        return emu_dnn_error(CUDNN_STATUS_NOT_SUPPORTED, "engine: no number %lld for this graph",
                             (long long)index);
    return CUDNN_STATUS_SUCCESS;
}

static int engine_of_config(const struct emu_dnn_body *config)
{
    return (int)emu_dnn_int(emu_dnn_body_at(config, CUDNN_ATTR_ENGINECFG_ENGINE),
                            CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 0);
}

static int64_t knob_of_config(const struct emu_dnn_body *config)
{
    const struct emu_dnn_values *v = emu_dnn_values(config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES);
    return v->count > 0 ? emu_dnn_int(v->bodies[0], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, 0)
                        : engines[engine_of_config(config)].usual;
}

static cudnnStatus_t finalise_config(const struct emu_dnn_body *b)
{
    const struct engine *e = &engines[engine_of_config(b)];
    const struct emu_dnn_values *v = emu_dnn_values(b, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES);
    if (v->count > 1)
        return emu_dnn_error(CUDNN_STATUS_BAD_PARAM, "engine configuration: a knob is chosen twice");
    if (v->count == 1 &&
        (!e->has_knob || emu_dnn_int(v->bodies[0], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, -1) != (int64_t)e->knob))
        return emu_dnn_error(CUDNN_STATUS_NOT_SUPPORTED, "engine configuration: the engine has no such knob");
    const int64_t value = knob_of_config(b);
    if (value < e->low || value > e->high)
        return emu_dnn_error(CUDNN_STATUS_NOT_SUPPORTED, "engine configuration: knob at %lld, not %lld..%lld",
                             (long long)value, (long long)e->low, (long long)e->high);
    return CUDNN_STATUS_SUCCESS;
}

static const struct emu_dnn_body *graph_of_plan(const struct emu_dnn_body *plan)
{
    const struct emu_dnn_body *config = emu_dnn_body_at(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    return emu_dnn_body_at(emu_dnn_body_at(config, CUDNN_ATTR_ENGINECFG_ENGINE),
                           CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
}

static struct emu_dnn_way way_of(int engine, int64_t knob, const struct emu_dnn_conv *c)
{
    struct emu_dnn_way way = {.workspace_bytes = engines[engine].workspace_bytes};
    const bool f32 = c->x.type == EMU_F32;
    switch (engine) {
    case TENSOR:
        way.rounding = f32 ? EMU_TO_TF32 : EMU_EXACT;
        way.fraction = 32 * (unsigned)knob + 7;
        way.workspace_bytes += (size_t)(c->w.dim[0] * c->w.dim[1]) * 4;
        break;
    case ATOMICS: way.any_order = true; break;
    case FOURIER:
    case CONVERTING: way.rounding = EMU_TO_F16; break;
    case SPLIT:
        way.fraction = 64 * (unsigned)knob;
        way.split = true;
        break;
    case COARSE: way.coarse = true; break;
    default: break;
    }
    return way;
}

static cudnnStatus_t finalise_plan(struct emu_dnn_body *b)
{
    const struct emu_dnn_body *config = emu_dnn_body_at(b, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG),
                              *graph = graph_of_plan(b);
    const int engine = engine_of_config(config);
    b->device = device_of_handle(b, CUDNN_ATTR_EXECUTION_PLAN_HANDLE);
    if (b->device < 0) return emu_dnn_error(CUDNN_STATUS_BAD_PARAM, "plan: no handle");
    if (b->device != graph->device) {
        emu_violation("cudnnBackendFinalize: a plan for device %d of a graph for device %d", b->device,
                      graph->device);
        return emu_dnn_error(CUDNN_STATUS_BAD_PARAM, "plan: the graph is another device's");
    }
    b->conv = *conv_of_graph(graph);
    const cudnnStatus_t rc = conv_supported(&b->conv);
    if (rc != CUDNN_STATUS_SUCCESS) return rc;
    if (engine == BROKEN || setting("none"))
        return emu_dnn_error(CUDNN_STATUS_NOT_SUPPORTED, "plan: engine %d does not support this graph",
                             engine);
    if (engine == TENSOR &&
        (b->conv.x.align % 16 != 0 || b->conv.w.align % 16 != 0 || b->conv.y.align % 16 != 0))
        return emu_dnn_error(CUDNN_STATUS_NOT_SUPPORTED,
                             "plan: engine %d wants tensors at multiples of 16 bytes", engine);
    b->way = way_of(engine, knob_of_config(config), &b->conv);
    return CUDNN_STATUS_SUCCESS;
}

/* ---- heuristics ---- */

static const int lists[CUDNN_HEUR_MODES_COUNT][ENGINES + 1] = {
    /* best first; -1 ends */
    [CUDNN_HEUR_MODE_A] = {TENSOR, FOURIER, CONVERTING, COARSE, ATOMICS, BROKEN, PLAIN, SPLIT, -1},
    [CUDNN_HEUR_MODE_INSTANT] = {TENSOR, FOURIER, CONVERTING, COARSE, ATOMICS, BROKEN, PLAIN, SPLIT, -1},
    [CUDNN_HEUR_MODE_B] = {BROKEN, SPLIT, TENSOR, COARSE, PLAIN, ATOMICS, -1},
    [CUDNN_HEUR_MODE_FALLBACK] = {BROKEN, PLAIN, -1},
};

static cudnnStatus_t finalise_heuristics(const struct emu_dnn_body *b)
{
    const int64_t mode = emu_dnn_int(b, CUDNN_ATTR_ENGINEHEUR_MODE, -1);
    if (mode < 0 || mode >= CUDNN_HEUR_MODES_COUNT)
        return emu_dnn_error(CUDNN_STATUS_BAD_PARAM, "heuristics: there is no mode %lld", (long long)mode);
    if (mode == CUDNN_HEUR_MODE_FALLBACK)
        return CUDNN_STATUS_SUCCESS; /* its plans fail where nothing is supported */
    if (setting("fallback-only"))
        return emu_dnn_error(CUDNN_STATUS_NOT_SUPPORTED, "heuristics: nothing for this graph");
    return conv_supported(conv_of_graph(emu_dnn_body_at(b, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH)));
}

static bool put_body(struct emu_dnn_body *b, cudnnBackendAttributeName_t name, struct emu_dnn_body *value)
{
    return value && emu_dnn_put(b, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

static struct emu_dnn_body *make_engine(struct emu_dnn_body *graph, int64_t index)
{
    struct emu_dnn_body *b = emu_dnn_body_new(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    if (b && put_body(b, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph) &&
        emu_dnn_put(b, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &index)) {
        b->finalised = true;
        return b;
    }
    emu_dnn_body_drop(b);
    return NULL;
}

static struct emu_dnn_body *make_choice(const struct engine *e)
{
    struct emu_dnn_body *b = emu_dnn_body_new(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    if (b && emu_dnn_put(b, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &e->knob) &&
        emu_dnn_put(b, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &e->usual)) {
        b->finalised = true;
        return b;
    }
    emu_dnn_body_drop(b);
    return NULL;
}

static struct emu_dnn_body *make_config(struct emu_dnn_body *graph, int engine)
{
    struct emu_dnn_body *b = emu_dnn_body_new(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR),
                        *e = make_engine(graph, engine);
    struct emu_dnn_body *choice = engines[engine].has_knob ? make_choice(&engines[engine]) : NULL;
    bool good = b && put_body(b, CUDNN_ATTR_ENGINECFG_ENGINE, e);
    if (good && engines[engine].has_knob) good = put_body(b, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, choice);
    emu_dnn_body_drop(e);
    emu_dnn_body_drop(choice);
    if (good) {
        b->finalised = true;
        return b;
    }
    emu_dnn_body_drop(b);
    return NULL;
}

static cudnnStatus_t no_memory(void)
{
    return emu_dnn_error(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, "no memory");
}

static cudnnStatus_t work_out_results(const struct emu_dnn_body *b, int64_t room, int64_t *count,
                                      struct emu_dnn_body **out)
{
    struct emu_dnn_body *graph = emu_dnn_body_at(b, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    const int *list = lists[emu_dnn_int(b, CUDNN_ATTR_ENGINEHEUR_MODE, 0)];
    *count = 0;
    for (; *list >= 0; list++) {
        if (!offers(*list, conv_of_graph(graph))) continue;
        if (room > 0 && *count == room) break;
        if (room > 0 && !(out[*count] = make_config(graph, *list))) {
            while (*count > 0) emu_dnn_body_drop(out[--*count]);
            return no_memory();
        }
        ++*count;
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t work_out_knobs(const struct emu_dnn_body *b, int64_t room, int64_t *count,
                                    struct emu_dnn_body **out)
{
    static const int64_t stride = 1;
    const struct engine *e = &engines[emu_dnn_int(b, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 0)];
    *count = e->has_knob ? 1 : 0;
    if (room == 0 || !e->has_knob) return CUDNN_STATUS_SUCCESS;
    out[0] = emu_dnn_body_new(CUDNN_BACKEND_KNOB_INFO_DESCRIPTOR);
    if (out[0] && emu_dnn_put(out[0], CUDNN_ATTR_KNOB_INFO_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &e->knob) &&
        emu_dnn_put(out[0], CUDNN_ATTR_KNOB_INFO_MINIMUM_VALUE, CUDNN_TYPE_INT64, 1, &e->low) &&
        emu_dnn_put(out[0], CUDNN_ATTR_KNOB_INFO_MAXIMUM_VALUE, CUDNN_TYPE_INT64, 1, &e->high) &&
        emu_dnn_put(out[0], CUDNN_ATTR_KNOB_INFO_STRIDE, CUDNN_TYPE_INT64, 1, &stride)) {
        out[0]->finalised = true;
        return CUDNN_STATUS_SUCCESS;
    }
    emu_dnn_body_drop(out[0]);
    *count = 0;
    return no_memory();
}

static void work_out_notes(const struct emu_dnn_body *b, int64_t room, int64_t *count,
                           cudnnBackendNumericalNote_t *out)
{
    const struct emu_dnn_conv *c = conv_of_graph(emu_dnn_body_at(b, CUDNN_ATTR_ENGINE_OPERATION_GRAPH));
    const struct engine *e = &engines[emu_dnn_int(b, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 0)];
    const bool f32 = c->x.type == EMU_F32;
    *count = f32 ? e->note_count : e->note_count_16;
    if (room > 0 && *count > room) *count = room;
    for (int64_t i = 0; room > 0 && i < *count; i++) out[i] = f32 ? e->notes[i] : e->notes_16[i];
}

static void work_out_int(int64_t value, int64_t room, int64_t *count, void *out)
{
    *count = 1;
    if (room > 0) memcpy(out, &value, sizeof value);
}

cudnnStatus_t emu_dnn_work_out(const struct emu_dnn_body *b, cudnnBackendAttributeName_t name, int64_t room,
                               int64_t *count, void *values)
{
    switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS: return work_out_results(b, room, count, values);
    case CUDNN_ATTR_ENGINE_KNOB_INFO: return work_out_knobs(b, room, count, values);
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE: work_out_notes(b, room, count, values); break;
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
        work_out_int((int64_t)b->way.workspace_bytes, room, count, values);
        break;
    case CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT: work_out_int(ENGINES, room, count, values); break;
    default: *count = 0; /* no behaviour notes */
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t finalise_pack(const struct emu_dnn_body *b)
{
    const struct emu_dnn_values *ids = emu_dnn_values(b, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    if (ids->count != emu_dnn_values(b, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS)->count)
        return emu_dnn_error(CUDNN_STATUS_BAD_PARAM, "variant pack: as many numbers as addresses are needed");
    const int64_t *id = ids->data;
    for (int64_t i = 0; i < ids->count; i++)
        for (int64_t j = 0; j < i; j++)
            if (id[i] == id[j])
                return emu_dnn_error(CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES,
                                     "variant pack: number %lld twice", (long long)id[i]);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t emu_dnn_finalise(struct emu_dnn_body *b)
{
    if (b->finalised)
        return emu_dnn_error(CUDNN_STATUS_BAD_PARAM, "descriptor of type %d was finalised before", b->type);
    cudnnStatus_t rc = emu_dnn_complete(b);
    if (rc != CUDNN_STATUS_SUCCESS) return rc;
    switch (b->type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR: rc = finalise_tensor(b); break;
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR: rc = finalise_convolution(b); break;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR: rc = finalise_forward(b); break;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR: rc = finalise_data(b); break;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR: rc = finalise_filter(b); break;
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR: rc = finalise_graph(b); break;
    case CUDNN_BACKEND_ENGINE_DESCRIPTOR: rc = finalise_engine(b); break;
    case CUDNN_BACKEND_ENGINECFG_DESCRIPTOR: rc = finalise_config(b); break;
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR: rc = finalise_heuristics(b); break;
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR: rc = finalise_plan(b); break;
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR: rc = finalise_pack(b); break;
    case CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR: break;
    default:
        rc = emu_dnn_error(CUDNN_STATUS_NOT_SUPPORTED, "descriptors of type %d are made by the library",
                           b->type);
    }
    b->finalised = rc == CUDNN_STATUS_SUCCESS;
    return rc;
}
