/* tests/kernels/device_case.h: one operation with given inputs on a device and on the plain C reference,
 * compared in everything that comes out of it. */
#ifndef MRT_DEVICE_CASE_H
#define MRT_DEVICE_CASE_H

#include "tests/kernels/device_lab.h"

/* Canonical host arrays; NULL: the operation has no such argument. */
struct op_io {
    float *x, *x2, *dy, *dy2, *affine, *param[MR_OP_MAX_PARAMS], *state[2];
    uint8_t *pixels, *flip;
    void *raw; /* FIELD, ONE_HOT: numbers of their type */
    int32_t *labels, *numbers;
    int32_t *labels2;
    float *share2, *class_weights;
    mr_step_values values;
    mr_loss_scale scale; /* scale.scale 0: none */
    uint64_t seed;
    uint32_t first;
    bool training, inplace;
};

struct op_result {
    mr_tensor out;
    float *x, *x2, *dy2; /* the inputs afterwards */
    float *y, *dx, *dx2, *dy, *dparam[MR_OP_MAX_PARAMS], *state[2];
    uint32_t param_count, state_count;
    uint64_t count[MR_OP_MAX_PARAMS]; /* of each param */
    mr_metrics metrics;
    bool clean, untouched, zeros; /* padding of tensors; samples past n; padding of parameter gradients */
};

struct op_case {
    mr_op_desc d; /* in: NHWC of the type under test; in2.c: channels of the second input, 0: as many */
    mr_tensor in; /* as the device shall store it */
    uint32_t n;
    double tolerance;         /* of forward and backward */
    double y_floor, dx_floor; /* least norm they are compared with, per element; 0: the usual */
    bool exact;               /* y: the same bits */
    const char *note;         /* goes into the case's name */
};

/* The device under test and the reference; opened by the program. */
extern struct lab mrt_device, mrt_reference;

/* Run on one device. y_given: backward reads this as the output of forward. MR_EUNSUPPORTED: the device
 * cannot, why is in l->err. Other errors stay in the lab. */
int op_run(struct lab *l, const mr_op_desc *d, const mr_tensor *in, uint32_t n, const struct op_io *io,
           const float *y_given, struct op_result *out);
/* Random inputs for c, rounded to its type. */
struct op_io op_inputs(const struct op_case *c, uint64_t seed);
/* Both devices, all comparisons, into the current group; gives back everything the case took. */
void op_compare(const struct op_case *c, const struct op_io *io);

#endif
