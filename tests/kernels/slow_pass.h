/* tests/kernels/slow_pass.h: the forward pass of operations as their definitions read, slowly and in double.
 * Gradients follow from it numerically. */
#ifndef MRT_SLOW_PASS_H
#define MRT_SLOW_PASS_H

#include "tests/kernels/rig.h"

static inline uint32_t pixels_of(const mr_tensor *t) { return t->h * t->w; }

/* An operation and all its inputs. */
struct model {
    mr_op_desc d;
    mr_tensor out; /* canonical */
    uint32_t n;
    bool training;
    double *x, *x2, *p0, *p1; /* canonical; NULL: not there */
    double mean[64], variance[64];
};

/* The output of the whole batch, NHWC. */
void run_model(const struct model *m, double *y);

/* sum of dy * y; y as of run_model(). */
double score(const struct model *m, const float *dy, double *y);

#endif
