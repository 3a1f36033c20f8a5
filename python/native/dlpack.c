/* python/native/dlpack.c: see native.h. The structs of DLPack 1.0 (dlpack.h), after its specification.
 */
#include <stdlib.h>
#include <string.h>

#include "python/native/native.h"

#define DIMS_MOST 16
#define ALIGN     64 /* bytes: what every library takes as it is */

typedef struct tensor {
    void *data;
    int32_t device_type, device_id;
    int32_t ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides; /* in elements */
    uint64_t byte_offset;
} tensor;

/* DLManagedTensor, with its dimensions after it. */
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
static void *(*new_capsule)(void *pointer, const char *name, void (*gone)(void *capsule));
static void *(*pack)(intptr_t count, ...);
static void (*decref)(void *object);
static void *(*no_memory)(void);

void mrp_dlpack_start(const mrp_python *python)
{
    *(void **)&is_valid = python->capsule_is_valid;
    *(void **)&get_pointer = python->capsule_get_pointer;
    *(void **)&new_capsule = python->capsule_new;
    *(void **)&pack = python->tuple_pack;
    *(void **)&decref = python->decref;
    *(void **)&no_memory = python->no_memory;
}

/* A copy has its data after it and no batch. */

static void delete_legacy(legacy *m)
{
    if (m->context) mrp_batch_unref(m->context);
    free(m);
}

static void delete_versioned(versioned *m)
{
    if (m->context) mrp_batch_unref(m->context);
    free(m);
}

static void lay_out(int ndim, const int64_t *shape, int64_t *dims)
{
    int64_t stride = 1;
    for (int i = ndim - 1; i >= 0; i--) {
        dims[i] = shape[i];
        dims[DIMS_MOST + i] = stride;
        stride *= shape[i];
    }
}

/* (n, h, w, c) becomes (n, c, h, w), in the same memory. */
static void turn(int64_t *of)
{
    const int64_t h = of[1], w = of[2];
    of[1] = of[3];
    of[2] = h;
    of[3] = w;
}

static tensor make_tensor(void *data, int code, int bits, int ndim, const int64_t *shape, int how,
                          int64_t *dims)
{
    lay_out(ndim, shape, dims);
    if (how & MRP_EXPORT_PLANES && ndim == 4) {
        turn(dims);
        turn(dims + DIMS_MOST);
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

/* Bytes of the struct, and where the data of a copy begin. */
static size_t room_of(size_t bytes) { return (bytes + ALIGN - 1) / ALIGN * ALIGN; }

static size_t bytes_of(int bits, int ndim, const int64_t *shape)
{
    size_t bytes = (size_t)bits / 8;
    for (int i = 0; i < ndim; i++) bytes *= (size_t)shape[i];
    return bytes;
}

/* Memory for a struct of `bytes` bytes, and for the data where `how` says that they are copied: *data is then
 * the copy. */
static void *make_room(size_t bytes, int bits, int ndim, const int64_t *shape, int how, void **data)
{
    if (!(how & MRP_EXPORT_COPY)) return malloc(bytes);
    const size_t size = bytes_of(bits, ndim, shape);
    char *m = aligned_alloc(ALIGN, room_of(bytes) + room_of(size));
    if (!m) return NULL;
    if (size) memcpy(m + room_of(bytes), *data, size);
    *data = m + room_of(bytes);
    return m;
}

static void *export_versioned(mrp_batch *b, void *data, int code, int bits, int ndim, const int64_t *shape,
                              int how)
{
    versioned *m = make_room(sizeof *m, bits, ndim, shape, how, &data);
    if (!m) return NULL;
    *m = (versioned){.major = 1, .context = b, .deleter = delete_versioned};
    m->t = make_tensor(data, code, bits, ndim, shape, how, m->dims);
    return m;
}

static void *export_legacy(mrp_batch *b, void *data, int code, int bits, int ndim, const int64_t *shape,
                           int how)
{
    legacy *m = make_room(sizeof *m, bits, ndim, shape, how, &data);
    if (!m) return NULL;
    *m = (legacy){.context = b, .deleter = delete_legacy};
    m->t = make_tensor(data, code, bits, ndim, shape, how, m->dims);
    return m;
}

void *mrp_export(mrp_batch *b, void *data, int code, int bits, int ndim, const int64_t *shape, int how)
{
    if (ndim < 0 || ndim > DIMS_MOST) return NULL;
    mrp_batch *const kept = how & MRP_EXPORT_COPY ? NULL : b;
    void *m = how & MRP_EXPORT_VERSIONED ? export_versioned(kept, data, code, bits, ndim, shape, how)
                                         : export_legacy(kept, data, code, bits, ndim, shape, how);
    if (m && kept) mrp_batch_ref(kept);
    return m;
}

void *mrp_export_labels(const int32_t *labels, uint32_t count, int64_t ignore)
{
    const size_t size = (size_t)count * sizeof(int64_t);
    char *room = aligned_alloc(ALIGN, room_of(sizeof(legacy)) + room_of(size));
    if (!room) return NULL;
    int64_t *wide = (int64_t *)(void *)(room + room_of(sizeof(legacy)));
    for (uint32_t i = 0; i < count; i++) wide[i] = labels[i] < 0 ? ignore : labels[i];
    legacy *m = (legacy *)(void *)room;
    *m = (legacy){.deleter = delete_legacy};
    m->t = make_tensor(wide, 0, 64, 1, &(int64_t){count}, 0, m->dims);
    return m;
}

void mrp_capsule_gone(void *capsule)
{
    /* one that was taken has another name, and is its taker's */
    if (is_valid(capsule, "dltensor")) delete_legacy(get_pointer(capsule, "dltensor"));
    else if (is_valid(capsule, "dltensor_versioned"))
        delete_versioned(get_pointer(capsule, "dltensor_versioned"));
}

static void *capsule_of(legacy *m)
{
    if (!m) return no_memory();
    void *capsule = new_capsule(m, "dltensor", mrp_capsule_gone);
    if (!capsule) delete_legacy(m);
    return capsule;
}

static void *capsule_of_pixels(mrp_batch *b, const mrp_finish *how)
{
    enum { UNSIGNED = 1, FLOAT = 2, BFLOAT = 4 };
    const int code = how->dtype == MR_U8 ? UNSIGNED : how->dtype == MR_BF16 ? BFLOAT : FLOAT;
    const int bits = how->dtype == MR_U8 ? 8 : how->dtype == MR_F32 ? 32 : 16;
    const mr_batch *view = mrp_batch_view(b);
    const int64_t planes[4] = {view->count, how->channels, how->height, how->width};
    const int64_t rows[4] = {view->count, how->height, how->width, how->channels};
    void *pixels = (void *)view->pixels;
    return capsule_of(how->planar ? mrp_export(b, pixels, code, bits, 4, planes, 0)
                                  : mrp_export(b, pixels, code, bits, 4, rows, MRP_EXPORT_PLANES));
}

static void *capsule_of_targets(mrp_batch *b, const mrp_finish *how)
{
    enum { SIGNED = 0, FLOAT = 2 };
    const int64_t shape[2] = {mrp_batch_view(b)->count, how->classes};
    void *targets = (void *)mrp_batch_targets(b);
    return capsule_of(how->classes ? mrp_export(b, targets, FLOAT, 32, 2, shape, MRP_EXPORT_COPY)
                                   : mrp_export(b, targets, SIGNED, 64, 1, shape, MRP_EXPORT_COPY));
}

void *mrp_export_pair(mrp_batch *b, const mrp_finish *how)
{
    void *pixels = capsule_of_pixels(b, how);
    void *targets = pixels ? capsule_of_targets(b, how) : NULL;
    void *pair = targets ? pack(2, pixels, targets) : NULL; /* which has references of its own */
    if (targets) decref(targets);
    if (pixels) decref(pixels);
    return pair;
}
