/* kernels/backend/update_rules.h: the list of rules. Each has its name and its number of arrays of state
 * here, its loop in ops/update.c, its step on a GPU in cuda/kernels/update.cu, and the constants it is named
 * with in update_rules.c. Read by the device code, too: no more than the public header is needed. */
#ifndef MRI_UPDATE_RULES_H
#define MRI_UPDATE_RULES_H

#include "millrace/kernels.h"

/* X(MR_UPDATE_..., its name in the code, arrays of state), in the order of the enumeration. */
#define MRI_UPDATE_RULES(X)                                                                                  \
    X(SGD, sgd, 0)                                                                                           \
    X(MOMENTUM, momentum, 1)                                                                                 \
    X(RMSPROP, rmsprop, 1)                                                                                   \
    X(ADAM, adam, 2)                                                                                         \
    X(ADADELTA, adadelta, 2)                                                                                 \
    X(ADAGRAD, adagrad, 1)                                                                                   \
    X(ADAMAX, adamax, 2)                                                                                     \
    X(NADAM, nadam, 2)                                                                                       \
    X(ADAMW, adamw, 2)                                                                                       \
    X(LAMB, lamb, 2)                                                                                         \
    X(RMSPROP_MOMENTUM, rmsprop_momentum, 2)                                                                 \
    X(MUON, muon, 2)

/* MUON's O is multiplied with this times the root of the longer side. */
#define MRI_MUON_SCALE 0.2f

/* A norm sums squares within stretches of this number of gradients, then sums the stretches in order. */
#define MRI_UPDATE_NORM_FLOATS 16384u
#define MRI_UPDATE_NORM_HEAD   2u /* doubles in front of the sums of stretches: the whole, and the factor */

#endif
