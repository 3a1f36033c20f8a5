/* train/net.h: what a network is inside: a list of layers whose shapes are worked out as they are added. No device, no
 * memory layout, no batch size: replica.c brings those. */
#ifndef MRI_NET_H
#define MRI_NET_H

#include "base/util.h"
#include "millrace/train.h"

#define MRI_NET_MAX_LAYERS 4096u
#define MRI_NET_MAX_ELEMENTS ((uint64_t)INT32_MAX) /* of one sample's tensor */
#define MRI_NET_MAX_PARAMS ((uint64_t)1 << 36)     /* of one layer */

typedef struct mri_layer {
    mr_op_kind    kind; /* CONV2D, POOL2D, DENSE, ACTIVATION, DROPOUT, BATCHNORM */
    mr_activation activation;
    uint32_t      filters, kernel, stride;
    uint32_t      pad_top, pad_left, pad_bottom, pad_right;
    bool          average;
    float         rate, momentum, epsilon;
    uint32_t      out_h, out_w, out_c;
    uint64_t      params; /* trained */
    double        flops;  /* forward, one sample; multiply and add count 2 */
} mri_layer;

struct mr_net {
    char       name[64];
    uint32_t   h, w, c;
    mri_layer *layers;
    uint32_t   layer_count, layer_cap;
    mr_error   error; /* the first of any builder call; code MR_OK while there is none */
};

const char *mri_layer_kind_name(mr_op_kind kind, bool average); /* "conv2d", ... */
const char *mri_activation_name(mr_activation a);               /* "relu", ...; "" for none */

#endif
