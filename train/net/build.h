/* train/net/build.h: helpers that builder calls in several files share. Callers: train/net alone.
 *
 *     takes the current point; NULL once an error is kept:
 *     mri_layer *l = mri_layer_begin(net, MR_OP_..., mri_layers_...);
 *     if (!l) return;
 *     if (... is invalid) { mri_layer_refuse(net, l, "the requirement"); return; }
 *     l->op.... = settings, l->params = ..., l->flops = ...;
 *     mri_layer_finish(net, l, h, w, c);                  its output is the current point */
#ifndef MRI_BUILD_H
#define MRI_BUILD_H

#include "train/net/net.h"

/* A layer of this kind, which has a row in family, that takes the current point, its output shape that of its
 * input; NULL once an error is kept. */
mri_layer *mri_layer_begin(mr_net *net, mr_op_kind kind, const mri_layer_kind *family);
/* Keep an error that names the layer. */
void mri_layer_refuse(mr_net *net, const mri_layer *l, const char *what);
/* A call's settings are given; else that is the error. */
bool mri_layer_is_told(mr_net *net, const mri_layer *l, const void *settings);
/* Give the layer its output shape and count it, or refuse what no device could hold. */
void mri_layer_finish(mr_net *net, mri_layer *l, uint64_t h, uint64_t w, uint64_t c);
/* The same, and a layer with this activation if the operation of l cannot apply it. */
void mri_layer_finish_with(mr_net *net, mri_layer *l, uint64_t h, uint64_t w, uint64_t c,
                           mr_activation activation);
/* Finish a loss: it has no output, and the current point stays. */
void mri_layer_finish_loss(mr_net *net, mri_layer *l);
bool mri_activation_is_known(mr_activation a);
/* "relu", ...; "" for none */
const char *mri_activation_name(mr_activation a);
/* l takes the second point other, of the same shape. false: refused. */
bool mri_layer_take_like(mr_net *net, mri_layer *l, mr_point other);
/* Count of layers that take a point. */
static inline uint32_t *mri_net_takers(mr_net *net, mr_point p)
{
    return p ? &net->layers[p - 1].consumers : &net->picture_consumers;
}

static inline double mri_layer_elements(const mri_layer *l) { return (double)l->out_h * l->out_w * l->out_c; }

/* Its loss computes the softmax. */
static inline bool mri_layer_is_softmax(const mri_layer *l)
{
    return l->op.kind == MR_OP_SOFTMAX && !l->op.softmax.log;
}

#endif
