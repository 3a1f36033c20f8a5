/* train/net/build.h: helpers that builder calls in several files share. Callers: train/net alone.
 *
 *     mri_layer *l = mri_layer_begin(net, MR_OP_...);     takes the current point; NULL once an error is kept
 *     if (!l) return;
 *     if (... is invalid) { mri_layer_refuse(net, l, "the requirement"); return; }
 *     l->params = ..., l->flops = ...;
 *     mri_layer_finish(net, l, h, w, c);                  its output is the current point */
#ifndef MRI_BUILD_H
#define MRI_BUILD_H

#include "train/net/net.h"

/* A layer of this kind that takes the current point, its output shape that of its input; NULL once an error
 * is kept. */
mri_layer *mri_layer_begin(mr_net *net, mr_op_kind kind);
/* The same for a loss; NULL also if the weight is refused. pair: of MR_OP_PAIR_LOSS. */
mri_layer *mri_layer_begin_loss(mr_net *net, mr_op_kind kind, mr_pair_loss pair, float weight);
/* The newest layer is the loss of the targets, unless an error is kept. */
void mri_layer_mark_targets(mr_net *net);
/* Keep an error that names the layer. */
void mri_layer_refuse(mr_net *net, const mri_layer *l, const char *what);
/* A call's settings are given; else that is the error. */
bool mri_layer_is_told(mr_net *net, const mri_layer *l, const void *settings);
/* Give the layer its output shape and count it, or refuse what no device could hold. */
void mri_layer_finish(mr_net *net, mri_layer *l, uint64_t h, uint64_t w, uint64_t c);
/* Finish a loss: it has no output, and the current point stays. */
void mri_layer_finish_loss(mr_net *net, mri_layer *l);
bool mri_activation_is_known(mr_activation a);
/* "relu", ...; "" for none */
const char *mri_activation_name(mr_activation a);
/* l takes the second point other, of the same shape. false: refused. */
bool mri_layer_take_like(mr_net *net, mri_layer *l, mr_point other);
/* Of a part of a network (cut.h), which has room: a copy of a layer that takes these points of the part; and
 * a layer that hands on a point of the whole network, and takes `in`. */
void mri_layer_copy(mr_net *part, const mri_layer *l, mr_point in, mr_point in2);
void mri_layer_port(mr_net *part, const mr_net *whole, mr_point p, mri_port port, mr_point in);

static inline double mri_layer_elements(const mri_layer *l) { return (double)l->out_h * l->out_w * l->out_c; }

/* Its loss computes the softmax. */
static inline bool mri_layer_is_softmax(const mri_layer *l) { return l->kind == MR_OP_SOFTMAX && !l->log; }

#endif
