/* tests/cuda_emu/emu_cudnn.h: shared by the files of the emulated cuDNN.
 *
 *   cudnn.c             handles, error texts, the entry points; execution of a plan
 *   cudnn_descriptor.c  descriptors: which attributes each kind has, setting and getting them
 *   cudnn_graph.c       conditions for finalising a descriptor; engines, heuristics, plans
 *   cudnn_conv.c        the arithmetic
 *
 * A descriptor is a handle of a body. Setting one as an attribute of another keeps the body, as the library
 * keeps a copy: the handle may be destroyed afterwards. Bodies never change once finalised. */
#ifndef EMU_CUDNN_H
#define EMU_CUDNN_H

#include <cudnn.h>

#include "tests/cuda_emu/emu.h"
#include "tests/cuda_emu/live.h"
#include "tests/cuda_emu/product.h"

struct cudnnContext {
    int device;
    CUstream stream;
};

/* ---- the arithmetic ---- */

struct emu_dnn_tensor { /* n c h w; weights k c r s */
    enum emu_type type;
    int64_t dim[4], stride[4], uid, align;
};

enum emu_dnn_pass { EMU_FORWARD, EMU_BACKWARD_DATA, EMU_BACKWARD_FILTER };

/* One pass of one convolution. x is the input or its gradient, w the weights or theirs, y the output or
 * its. */
struct emu_dnn_conv {
    enum emu_dnn_pass pass;
    struct emu_dnn_tensor x, w, y;
    int64_t before[2], after[2], stride[2], dilation[2];
    bool mirrored; /* CUDNN_CONVOLUTION and not cross-correlation */
    float alpha, beta;
};

/* How an algorithm differs from the exact sum in order. */
struct emu_dnn_way {
    enum emu_rounding rounding;
    unsigned fraction; /* of 256: where the sum starts */
    bool split, coarse, any_order;
    size_t workspace_bytes;
};

struct emu_dnn_job {
    struct emu_dnn_conv conv;
    struct emu_dnn_way way;
    void *x, *w, *y, *workspace;
};
void emu_dnn_run(void *job); /* struct emu_dnn_job */
/* from the first element to the end of the last */
size_t emu_dnn_tensor_bytes(const struct emu_dnn_tensor *t);

/* ---- descriptors ---- */

#define EMU_DNN_MAX_ATTRIBUTES 12

struct emu_dnn_body;
struct emu_dnn_values {
    int64_t count;
    cudnnBackendAttributeType_t type;
    void *data;                   /* count values; of bodies: */
    struct emu_dnn_body **bodies; /* held; NULL where it was not finalised when it was set */
};
struct emu_dnn_body {
    _Atomic unsigned refs;
    cudnnBackendDescriptorType_t type;
    bool finalised;
    struct emu_dnn_values values[EMU_DNN_MAX_ATTRIBUTES]; /* in the order of the kind's rules */
    struct emu_dnn_conv conv;                             /* of a finalised operation */
    struct emu_dnn_way way;                               /* of a finalised plan */
    int device;                                           /* of a finalised graph or plan */
};
struct emu_dnn_descriptor {
    struct emu_dnn_body *body;
};

struct emu_dnn_body *emu_dnn_body_new(cudnnBackendDescriptorType_t type); /* NULL: no memory */
struct emu_dnn_body *emu_dnn_body_hold(struct emu_dnn_body *b);
void emu_dnn_body_drop(struct emu_dnn_body *b); /* accepts NULL */
bool emu_dnn_kind_known(cudnnBackendDescriptorType_t type);

cudnnStatus_t emu_dnn_set(struct emu_dnn_body *b, cudnnBackendAttributeName_t name,
                          cudnnBackendAttributeType_t type, int64_t count, const void *values);
cudnnStatus_t emu_dnn_get(const struct emu_dnn_body *b, cudnnBackendAttributeName_t name,
                          cudnnBackendAttributeType_t type, int64_t room, int64_t *count, void *values);
/* The library's own setting, without checks; values may be an array of bodies. false: no memory. */
bool emu_dnn_put(struct emu_dnn_body *b, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                 int64_t count, const void *values);
/* Every attribute the documentation requires was set, and every body among them is finalised. */
cudnnStatus_t emu_dnn_complete(const struct emu_dnn_body *b);

/* The values of an attribute; count 0 when it was not set. */
const struct emu_dnn_values *emu_dnn_values(const struct emu_dnn_body *b, cudnnBackendAttributeName_t name);
/* any width */
int64_t emu_dnn_int(const struct emu_dnn_body *b, cudnnBackendAttributeName_t name, int64_t otherwise);
struct emu_dnn_body *emu_dnn_body_at(const struct emu_dnn_body *b, cudnnBackendAttributeName_t name);
/* Bytes of one value; 0: a type that is not emulated. */
size_t emu_dnn_type_bytes(cudnnBackendAttributeType_t type);

/* ---- finalising ---- */

cudnnStatus_t emu_dnn_finalise(struct emu_dnn_body *b);
/* An attribute that is worked out and not set: as emu_dnn_get(). Bodies are made new and handed over in
 * values. */
cudnnStatus_t emu_dnn_work_out(const struct emu_dnn_body *b, cudnnBackendAttributeName_t name, int64_t room,
                               int64_t *count, void *values);

/* Keep why a call failed, for cudnnGetLastErrorString(); returns status. */
cudnnStatus_t emu_dnn_error(cudnnStatus_t status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
