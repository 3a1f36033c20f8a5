/* python/native/dlpack.c: see native.h. The structs are those of DLPack 1.0 (dlpack.h), by its specification.
 */
#include <stdlib.h>

#include "python/native/native.h"

#define DIMS_MOST 16

typedef struct tensor {
    void *data;
    int32_t device_type, device_id;
    int32_t ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides; /* in elements */
    uint64_t byte_offset;
} tensor;

/* DLManagedTensor, with room for its dimensions behind it. */
typedef struct legacy {
    tensor t;
    void *context;
    void (*deleter)(struct legacy *self);
    int64_t dims[2 * DIMS_MOST];
} legacy;

/* DLManagedTensorVersioned, the same. */
typedef struct versioned {
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct versioned *self);
    uint64_t flags;
    tensor t;
    int64_t dims[2 * DIMS_MOST];
} versioned;

enum { DEVICE_CPU = 1 };

static int (*is_valid)(void *capsule, const char *name); /* fixed after mrp_dlpack_start() */
static void *(*get_pointer)(void *capsule, const char *name);

void mrp_dlpack_start(void *valid, void *pointer)
{
    *(void **)&is_valid = valid;
    *(void **)&get_pointer = pointer;
}

static void delete_legacy(legacy *m)
{
    mrp_batch_unref(m->context);
    free(m);
}

static void delete_versioned(versioned *m)
{
    mrp_batch_unref(m->context);
    free(m);
}

static tensor make_tensor(void *data, int code, int bits, int ndim, const int64_t *shape, int64_t *dims)
{
    int64_t stride = 1;
    for (int i = ndim - 1; i >= 0; i--) {
        dims[i] = shape[i];
        dims[DIMS_MOST + i] = stride;
        stride *= shape[i];
    }
    return (tensor){.data = data,
                    .device_type = DEVICE_CPU,
                    .ndim = ndim,
                    .code = (uint8_t)code,
                    .bits = (uint8_t)bits,
                    .lanes = 1,
                    .shape = dims,
                    .strides = dims + DIMS_MOST};
}

static void *export_versioned(mrp_batch *b, void *data, int code, int bits, int ndim, const int64_t *shape)
{
    versioned *m = malloc(sizeof *m);
    if (!m) return NULL;
    *m = (versioned){.major = 1, .context = b, .deleter = delete_versioned};
    m->t = make_tensor(data, code, bits, ndim, shape, m->dims);
    return m;
}

static void *export_legacy(mrp_batch *b, void *data, int code, int bits, int ndim, const int64_t *shape)
{
    legacy *m = malloc(sizeof *m);
    if (!m) return NULL;
    *m = (legacy){.context = b, .deleter = delete_legacy};
    m->t = make_tensor(data, code, bits, ndim, shape, m->dims);
    return m;
}

void *mrp_export(mrp_batch *b, void *data, int code, int bits, int ndim, const int64_t *shape,
                 int is_versioned)
{
    if (ndim < 0 || ndim > DIMS_MOST) return NULL;
    void *m = is_versioned ? export_versioned(b, data, code, bits, ndim, shape)
                           : export_legacy(b, data, code, bits, ndim, shape);
    if (m) mrp_batch_ref(b);
    return m;
}

void mrp_capsule_gone(void *capsule)
{
    /* one that was taken has another name, and is its taker's */
    if (is_valid(capsule, "dltensor")) delete_legacy(get_pointer(capsule, "dltensor"));
    else if (is_valid(capsule, "dltensor_versioned"))
        delete_versioned(get_pointer(capsule, "dltensor_versioned"));
}
