/* tests/cuda_emu/cudnn_descriptor.c: which attributes each kind of descriptor has, and setting and getting
 * them.
 *
 * The table follows "Backend Descriptor Types" of NVIDIA's documentation: name, type of the values, how many
 * at most, whether it can be set or is worked out, whether finalising needs it. Where the library itself lets
 * something pass that the documentation demands (a tensor without a number, say), the documentation wins.
 * Statuses are those the library gives. */
#include <stdlib.h>

#include "tests/cuda_emu/emu_cudnn.h"

enum {
    GIVEN = 0,
    SET = 1,
    NEED = 2 | SET,
    WORKED_OUT = 4,
    ANY = 1 << 20
}; /* GIVEN: filled in when the library makes it */

struct rule {
    cudnnBackendDescriptorType_t of;
    cudnnBackendAttributeName_t name;
    cudnnBackendAttributeType_t type, or_type;
    int most, flags;
    cudnnBackendDescriptorType_t refers[3]; /* kinds of descriptor it may hold; 0 (POINTWISE, not emulated)
                                               ends */
};

#define D(kind)    CUDNN_BACKEND_##kind##_DESCRIPTOR
#define A(name)    CUDNN_ATTR_##name
#define T(type)    CUDNN_TYPE_##type, CUDNN_TYPE_##type
#define DESCRIPTOR T(BACKEND_DESCRIPTOR)
#define REAL       CUDNN_TYPE_FLOAT, CUDNN_TYPE_DOUBLE
/* an attribute of one of the three operations: its kind of descriptor, its name */
#define FORWARD(name)       D(OPERATION_CONVOLUTION_FORWARD), A(OPERATION_CONVOLUTION_FORWARD_##name)
#define BACKWARD_DATA(name) D(OPERATION_CONVOLUTION_BACKWARD_DATA), A(OPERATION_CONVOLUTION_BWD_DATA_##name)
#define BACKWARD_FILTER(name)                                                                                \
    D(OPERATION_CONVOLUTION_BACKWARD_FILTER), A(OPERATION_CONVOLUTION_BWD_FILTER_##name)
#define NUMERICAL_NOTES CUDNN_NUMERICAL_NOTE_TYPE_COUNT
#define BEHAVIOR_NOTES  CUDNN_BEHAVIOR_NOTE_TYPE_COUNT
#define OPERATIONS                                                                                           \
    {                                                                                                        \
        D(OPERATION_CONVOLUTION_FORWARD), D(OPERATION_CONVOLUTION_BACKWARD_DATA),                            \
            D(OPERATION_CONVOLUTION_BACKWARD_FILTER)                                                         \
    }

/* a line for each attribute */
/* clang-format off */
static const struct rule rules[] = {
    {D(TENSOR), A(TENSOR_DATA_TYPE),            T(DATA_TYPE), 1, NEED, {0}},
    {D(TENSOR), A(TENSOR_DIMENSIONS),           T(INT64), CUDNN_DIM_MAX, NEED, {0}},
    {D(TENSOR), A(TENSOR_STRIDES),              T(INT64), CUDNN_DIM_MAX, NEED, {0}},
    {D(TENSOR), A(TENSOR_UNIQUE_ID),            T(INT64), 1, NEED, {0}},
    {D(TENSOR), A(TENSOR_BYTE_ALIGNMENT),       T(INT64), 1, NEED, {0}},
    {D(TENSOR), A(TENSOR_IS_VIRTUAL),           T(BOOLEAN), 1, SET, {0}},
    {D(TENSOR), A(TENSOR_IS_BY_VALUE),          T(BOOLEAN), 1, SET, {0}},
    {D(TENSOR), A(TENSOR_VECTOR_COUNT),         T(INT64), 1, SET, {0}},
    {D(TENSOR), A(TENSOR_VECTORIZED_DIMENSION), T(INT64), 1, SET, {0}},
    {D(TENSOR), A(TENSOR_REORDERING_MODE),      T(TENSOR_REORDERING_MODE), 1, SET, {0}},

    {D(CONVOLUTION), A(CONVOLUTION_COMP_TYPE),      T(DATA_TYPE), 1, NEED, {0}},
    {D(CONVOLUTION), A(CONVOLUTION_CONV_MODE),      T(CONVOLUTION_MODE), 1, NEED, {0}},
    {D(CONVOLUTION), A(CONVOLUTION_SPATIAL_DIMS),   T(INT64), 1, NEED, {0}},
    {D(CONVOLUTION), A(CONVOLUTION_DILATIONS),      T(INT64), CUDNN_DIM_MAX, NEED, {0}},
    {D(CONVOLUTION), A(CONVOLUTION_FILTER_STRIDES), T(INT64), CUDNN_DIM_MAX, NEED, {0}},
    {D(CONVOLUTION), A(CONVOLUTION_PRE_PADDINGS),   T(INT64), CUDNN_DIM_MAX, NEED, {0}},
    {D(CONVOLUTION), A(CONVOLUTION_POST_PADDINGS),  T(INT64), CUDNN_DIM_MAX, NEED, {0}},

    {FORWARD(ALPHA),     REAL, 1, NEED, {0}},
    {FORWARD(BETA),      REAL, 1, NEED, {0}},
    {FORWARD(CONV_DESC), DESCRIPTOR, 1, NEED, {D(CONVOLUTION)}},
    {FORWARD(W),         DESCRIPTOR, 1, NEED, {D(TENSOR)}},
    {FORWARD(X),         DESCRIPTOR, 1, NEED, {D(TENSOR)}},
    {FORWARD(Y),         DESCRIPTOR, 1, NEED, {D(TENSOR)}},

    {BACKWARD_DATA(ALPHA),     REAL, 1, NEED, {0}},
    {BACKWARD_DATA(BETA),      REAL, 1, NEED, {0}},
    {BACKWARD_DATA(CONV_DESC), DESCRIPTOR, 1, NEED, {D(CONVOLUTION)}},
    {BACKWARD_DATA(W),         DESCRIPTOR, 1, NEED, {D(TENSOR)}},
    {BACKWARD_DATA(DX),        DESCRIPTOR, 1, NEED, {D(TENSOR)}},
    {BACKWARD_DATA(DY),        DESCRIPTOR, 1, NEED, {D(TENSOR)}},

    {BACKWARD_FILTER(ALPHA),     REAL, 1, NEED, {0}},
    {BACKWARD_FILTER(BETA),      REAL, 1, NEED, {0}},
    {BACKWARD_FILTER(CONV_DESC), DESCRIPTOR, 1, NEED, {D(CONVOLUTION)}},
    {BACKWARD_FILTER(DW),        DESCRIPTOR, 1, NEED, {D(TENSOR)}},
    {BACKWARD_FILTER(X),         DESCRIPTOR, 1, NEED, {D(TENSOR)}},
    {BACKWARD_FILTER(DY),        DESCRIPTOR, 1, NEED, {D(TENSOR)}},

    {D(OPERATIONGRAPH), A(OPERATIONGRAPH_HANDLE), T(HANDLE), 1, NEED, {0}},
    {D(OPERATIONGRAPH), A(OPERATIONGRAPH_OPS), DESCRIPTOR, ANY, NEED, OPERATIONS},
    {D(OPERATIONGRAPH), A(OPERATIONGRAPH_ENGINE_GLOBAL_COUNT), T(INT64), 1, WORKED_OUT, {0}},

    {D(ENGINEHEUR), A(ENGINEHEUR_MODE), T(HEUR_MODE), 1, NEED, {0}},
    {D(ENGINEHEUR), A(ENGINEHEUR_OPERATION_GRAPH), DESCRIPTOR, 1, NEED, {D(OPERATIONGRAPH)}},
    {D(ENGINEHEUR), A(ENGINEHEUR_SM_COUNT_TARGET), T(INT32), 1, SET, {0}},
    {D(ENGINEHEUR), A(ENGINEHEUR_RESULTS), DESCRIPTOR, ANY, WORKED_OUT, {D(ENGINECFG)}},

    {D(ENGINE), A(ENGINE_OPERATION_GRAPH), DESCRIPTOR, 1, NEED, {D(OPERATIONGRAPH)}},
    {D(ENGINE), A(ENGINE_GLOBAL_INDEX), T(INT64), 1, NEED, {0}},
    {D(ENGINE), A(ENGINE_SM_COUNT_TARGET), T(INT32), 1, SET, {0}},
    {D(ENGINE), A(ENGINE_KNOB_INFO), DESCRIPTOR, CUDNN_KNOB_TYPE_COUNTS, WORKED_OUT, {D(KNOB_INFO)}},
    {D(ENGINE), A(ENGINE_NUMERICAL_NOTE), T(NUMERICAL_NOTE), NUMERICAL_NOTES, WORKED_OUT, {0}},
    {D(ENGINE), A(ENGINE_BEHAVIOR_NOTE), T(BEHAVIOR_NOTE), BEHAVIOR_NOTES, WORKED_OUT, {0}},

    {D(KNOB_INFO), A(KNOB_INFO_TYPE), T(KNOB_TYPE), 1, GIVEN, {0}},
    {D(KNOB_INFO), A(KNOB_INFO_MAXIMUM_VALUE), T(INT64), 1, GIVEN, {0}},
    {D(KNOB_INFO), A(KNOB_INFO_MINIMUM_VALUE), T(INT64), 1, GIVEN, {0}},
    {D(KNOB_INFO), A(KNOB_INFO_STRIDE), T(INT64), 1, GIVEN, {0}},

    {D(KNOB_CHOICE), A(KNOB_CHOICE_KNOB_TYPE), T(KNOB_TYPE), 1, NEED, {0}},
    {D(KNOB_CHOICE), A(KNOB_CHOICE_KNOB_VALUE), T(INT64), 1, NEED, {0}},

    {D(ENGINECFG), A(ENGINECFG_ENGINE), DESCRIPTOR, 1, NEED, {D(ENGINE)}},
    {D(ENGINECFG), A(ENGINECFG_KNOB_CHOICES), DESCRIPTOR, CUDNN_KNOB_TYPE_COUNTS, SET, {D(KNOB_CHOICE)}},

    {D(EXECUTION_PLAN), A(EXECUTION_PLAN_HANDLE), T(HANDLE), 1, NEED, {0}},
    {D(EXECUTION_PLAN), A(EXECUTION_PLAN_ENGINE_CONFIG), DESCRIPTOR, 1, NEED, {D(ENGINECFG)}},
    {D(EXECUTION_PLAN), A(EXECUTION_PLAN_WORKSPACE_SIZE), T(INT64), 1, WORKED_OUT, {0}},

    {D(VARIANT_PACK), A(VARIANT_PACK_UNIQUE_IDS), T(INT64), ANY, NEED, {0}},
    {D(VARIANT_PACK), A(VARIANT_PACK_DATA_POINTERS), T(VOID_PTR), ANY, NEED, {0}},
    {D(VARIANT_PACK), A(VARIANT_PACK_WORKSPACE), T(VOID_PTR), 1, SET, {0}},
};
/* clang-format on */

enum { RULES = sizeof rules / sizeof rules[0] };

/* The rule for an attribute and, in *slot, where its values are kept. */
static const struct rule *rule_for(cudnnBackendDescriptorType_t of, cudnnBackendAttributeName_t name,
                                   int *slot)
{
    *slot = 0;
    for (int i = 0; i < RULES; i++) {
        if (rules[i].of != of) continue;
        if (rules[i].name == name) return &rules[i];
        (*slot)++;
    }
    return NULL;
}

bool emu_dnn_kind_known(cudnnBackendDescriptorType_t type)
{
    for (int i = 0; i < RULES; i++)
        if (rules[i].of == type) return true;
    return false;
}

size_t emu_dnn_type_bytes(cudnnBackendAttributeType_t type)
{
    switch (type) {
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR: return sizeof(void *);
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE: return 8;
    case CUDNN_TYPE_BOOLEAN: return sizeof(bool);
    case CUDNN_TYPE_FLOAT:
    case CUDNN_TYPE_INT32: return 4;
    case CUDNN_TYPE_DATA_TYPE:
    case CUDNN_TYPE_CONVOLUTION_MODE:
    case CUDNN_TYPE_HEUR_MODE:
    case CUDNN_TYPE_KNOB_TYPE:
    case CUDNN_TYPE_NUMERICAL_NOTE:
    case CUDNN_TYPE_BEHAVIOR_NOTE:
    case CUDNN_TYPE_TENSOR_REORDERING_MODE: return sizeof(cudnnDataType_t);
    default: return 0;
    }
}

struct emu_dnn_body *emu_dnn_body_new(cudnnBackendDescriptorType_t type)
{
    struct emu_dnn_body *b = calloc(1, sizeof *b);
    if (!b) return NULL;
    b->refs = 1;
    b->type = type;
    return b;
}

struct emu_dnn_body *emu_dnn_body_hold(struct emu_dnn_body *b)
{
    b->refs++;
    return b;
}

static void values_drop(struct emu_dnn_values *v)
{
    for (int64_t i = 0; v->bodies && i < v->count; i++) emu_dnn_body_drop(v->bodies[i]);
    free(v->bodies);
    free(v->data);
    *v = (struct emu_dnn_values){0};
}

void emu_dnn_body_drop(struct emu_dnn_body *b)
{
    if (!b || --b->refs > 0) return;
    for (int i = 0; i < EMU_DNN_MAX_ATTRIBUTES; i++) values_drop(&b->values[i]);
    free(b);
}

static bool kind_fits(const struct rule *r, cudnnBackendDescriptorType_t kind)
{
    for (size_t i = 0; i < sizeof r->refers / sizeof r->refers[0]; i++)
        if (r->refers[i] != 0 && r->refers[i] == kind) return true;
    return false;
}

/* The bodies of descriptors given as values. The library reads invalid memory when one is of the wrong
 * kind. */
static cudnnStatus_t take_bodies(const struct rule *r, struct emu_dnn_values *v,
                                 const cudnnBackendDescriptor_t *from)
{
    v->bodies = calloc((size_t)v->count, sizeof *v->bodies);
    if (!v->bodies) return emu_dnn_error(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, "no memory");
    for (int64_t i = 0; i < v->count; i++) {
        const struct emu_dnn_descriptor *d = from[i];
        if (!d)
            return emu_dnn_error(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "attribute %d: descriptor %lld is NULL",
                                 r->name, (long long)i);
        if (!emu_live_is(d, EMU_CUDNN_DESCRIPTOR)) {
            emu_violation(
                "cudnnBackendSetAttribute: attribute %d: value %lld is no descriptor, or a destroyed one",
                r->name, (long long)i);
            return emu_dnn_error(CUDNN_STATUS_BAD_PARAM, "attribute %d: no descriptor", r->name);
        }
        if (!kind_fits(r, d->body->type)) {
            emu_violation("cudnnBackendSetAttribute: attribute %d cannot be a descriptor of type %d", r->name,
                          d->body->type);
            return emu_dnn_error(CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE,
                                 "attribute %d cannot be a descriptor of type %d", r->name, d->body->type);
        }
        v->bodies[i] = d->body->finalised ? emu_dnn_body_hold(d->body) : NULL;
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t take_values(const struct rule *r, struct emu_dnn_values *v, const void *from)
{
    if (v->type == CUDNN_TYPE_BACKEND_DESCRIPTOR) return take_bodies(r, v, from);
    const size_t bytes = (size_t)v->count * emu_dnn_type_bytes(v->type);
    v->data = malloc(bytes);
    if (!v->data) return emu_dnn_error(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, "no memory");
    memcpy(v->data, from, bytes);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t emu_dnn_set(struct emu_dnn_body *b, cudnnBackendAttributeName_t name,
                          cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
    int slot;
    const struct rule *r = rule_for(b->type, name, &slot);
    if (b->finalised) return emu_dnn_error(CUDNN_STATUS_BAD_PARAM, "attribute %d set after finalising", name);
    if (!r)
        return emu_dnn_error(CUDNN_STATUS_BAD_PARAM, "descriptors of type %d have no attribute %d", b->type,
                             name);
    if (!(r->flags & SET))
        return emu_dnn_error(CUDNN_STATUS_BAD_PARAM, "attribute %d can only be read", name);
    if (type != r->type && type != r->or_type)
        return emu_dnn_error(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE, "attribute %d is of type %d, not %d",
                             name, r->type, type);
    if (count < 1 || count > r->most)
        return emu_dnn_error(CUDNN_STATUS_BAD_PARAM, "attribute %d takes 1..%d values, not %lld", name,
                             r->most, (long long)count);
    if (!values) return emu_dnn_error(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "attribute %d: no values", name);

    struct emu_dnn_values fresh = {.count = count, .type = type};
    const cudnnStatus_t rc = take_values(r, &fresh, values);
    if (rc != CUDNN_STATUS_SUCCESS) {
        values_drop(&fresh);
        return rc;
    }
    values_drop(&b->values[slot]);
    b->values[slot] = fresh;
    return CUDNN_STATUS_SUCCESS;
}

/* Descriptors the caller made are given the bodies of the values. */
static cudnnStatus_t give_bodies(const struct rule *r, struct emu_dnn_body *const *bodies, int64_t count,
                                 cudnnBackendDescriptor_t *to)
{
    for (int64_t i = 0; i < count; i++) {
        struct emu_dnn_descriptor *d = to[i];
        if (!d)
            return emu_dnn_error(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "attribute %d: descriptor %lld is NULL",
                                 r->name, (long long)i);
        if (!emu_live_is(d, EMU_CUDNN_DESCRIPTOR) || !kind_fits(r, d->body->type)) {
            emu_violation(
                "cudnnBackendGetAttribute: attribute %d: value %lld must be a created descriptor of type %d",
                r->name, (long long)i, r->refers[0]);
            return emu_dnn_error(CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE,
                                 "attribute %d: wrong kind of descriptor", r->name);
        }
        emu_dnn_body_drop(d->body);
        d->body = emu_dnn_body_hold(bodies[i]);
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t get_worked_out(const struct emu_dnn_body *b, const struct rule *r, int64_t room,
                                    int64_t *count, void *values)
{
    if (r->type != CUDNN_TYPE_BACKEND_DESCRIPTOR) return emu_dnn_work_out(b, r->name, room, count, values);
    struct emu_dnn_body *made[64];
    int64_t made_count = 0;
    cudnnStatus_t rc = emu_dnn_work_out(b, r->name, room < 64 ? room : 64, &made_count, made);
    *count = made_count;
    if (rc != CUDNN_STATUS_SUCCESS || room == 0) return rc;
    rc = give_bodies(r, made, made_count, values);
    for (int64_t i = 0; i < made_count; i++) emu_dnn_body_drop(made[i]);
    return rc;
}

cudnnStatus_t emu_dnn_get(const struct emu_dnn_body *b, cudnnBackendAttributeName_t name,
                          cudnnBackendAttributeType_t type, int64_t room, int64_t *count, void *values)
{
    int slot;
    int64_t ignored;
    const struct rule *r = rule_for(b->type, name, &slot);
    if (!b->finalised)
        return emu_dnn_error(CUDNN_STATUS_NOT_INITIALIZED, "attribute %d read before finalising", name);
    if (!r)
        return emu_dnn_error(CUDNN_STATUS_BAD_PARAM, "descriptors of type %d have no attribute %d", b->type,
                             name);
    const struct emu_dnn_values *v = &b->values[slot];
    if (type != (v->count > 0 ? v->type : r->type))
        return emu_dnn_error(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE, "attribute %d is of type %d, not %d",
                             name, r->type, type);
    if (room < 0)
        return emu_dnn_error(CUDNN_STATUS_BAD_PARAM, "attribute %d: room for %lld values", name,
                             (long long)room);
    if (!values) room = 0; /* only how many there are */
    if (!count) count = &ignored;
    if (r->flags & WORKED_OUT) return get_worked_out(b, r, room, count, values);
    *count = room > 0 && room < v->count ? room : v->count;
    if (room == 0) return CUDNN_STATUS_SUCCESS;
    if (v->bodies) return give_bodies(r, v->bodies, *count, values);
    if (*count > 0) memcpy(values, v->data, (size_t)*count * emu_dnn_type_bytes(v->type));
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t emu_dnn_complete(const struct emu_dnn_body *b)
{
    int slot = 0;
    for (int i = 0; i < RULES; i++) {
        if (rules[i].of != b->type) continue;
        const struct emu_dnn_values *v = &b->values[slot++];
        if ((rules[i].flags & NEED) == NEED && v->count == 0)
            return emu_dnn_error(CUDNN_STATUS_BAD_PARAM, "descriptor of type %d: attribute %d is missing",
                                 b->type, rules[i].name);
        for (int64_t j = 0; v->bodies && j < v->count; j++)
            if (!v->bodies[j])
                return emu_dnn_error(b->type == D(EXECUTION_PLAN) ? CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED
                                                                  : CUDNN_STATUS_BAD_PARAM,
                                     "descriptor of type %d: attribute %d was not finalised when it was set",
                                     b->type, rules[i].name);
    }
    return CUDNN_STATUS_SUCCESS;
}

const struct emu_dnn_values *emu_dnn_values(const struct emu_dnn_body *b, cudnnBackendAttributeName_t name)
{
    static const struct emu_dnn_values none;
    int slot;
    return rule_for(b->type, name, &slot) ? &b->values[slot] : &none;
}

int64_t emu_dnn_int(const struct emu_dnn_body *b, cudnnBackendAttributeName_t name, int64_t otherwise)
{
    const struct emu_dnn_values *v = emu_dnn_values(b, name);
    if (v->count == 0) return otherwise;
    int64_t wide;
    int32_t narrow;
    switch (emu_dnn_type_bytes(v->type)) {
    case 8: memcpy(&wide, v->data, sizeof wide); return wide;
    case 4: memcpy(&narrow, v->data, sizeof narrow); return narrow;
    default: return *(const unsigned char *)v->data;
    }
}

struct emu_dnn_body *emu_dnn_body_at(const struct emu_dnn_body *b, cudnnBackendAttributeName_t name)
{
    return emu_dnn_values(b, name)->bodies[0];
}

bool emu_dnn_put(struct emu_dnn_body *b, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                 int64_t count, const void *values)
{
    int slot;
    const size_t bytes = (size_t)count * emu_dnn_type_bytes(type);
    if (!rule_for(b->type, name, &slot)) return false;
    struct emu_dnn_values fresh = {.count = count, .type = type};
    if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) fresh.bodies = malloc(bytes);
    else fresh.data = malloc(bytes);
    if (!fresh.bodies && !fresh.data) return false;
    memcpy(fresh.bodies ? (void *)fresh.bodies : fresh.data, values, bytes);
    for (int64_t i = 0; fresh.bodies && i < count; i++) emu_dnn_body_hold(fresh.bodies[i]);
    values_drop(&b->values[slot]);
    b->values[slot] = fresh;
    return true;
}
