/* train/net/net.h: a network's representation: a list of layers whose shapes are computed as they are added.
 * No device, no memory layout, no batch size: train/run brings those.
 *
 * Takes the calls of a builder (public). Gives layers with their shapes, and the values their parameters
 * begin with (init.h). Callers: train/ and train/run; it stands on nothing but shapes and random bits.
 *
 * Points are the tensors between layers: 0 the pictures, k + 1 the output of layer k. A further input is a
 * layer that takes no point. A layer names the point
 * it takes, some a second one, and a layer takes only outputs of earlier layers, so the network can run in
 * the list's order. A loss is a layer whose point is no tensor; without any, the softmax of the last point
 * against the label is the only one.
 *
 *      point 0 ─► layer 0 ─► 1 ─┬─► layer 1 ─► 2 ─► layer 2 ─► 3 ─► layer 3 (add 3 + 1) ─► 4
 *                               └──────────────────────────────────────┘ */
#ifndef MRI_NET_H
#define MRI_NET_H

#include "base/util.h"
#include "millrace/train.h"
#include "train/net/kinds.h"

#define MRI_NO_POINT         UINT32_MAX
#define MRI_NET_MAX_LAYERS   4096u
#define MRI_NET_MAX_ELEMENTS ((uint64_t)INT32_MAX) /* of one sample's tensor */
#define MRI_NET_MAX_PARAMS   ((uint64_t)1 << 36)   /* of one layer */

/* Where a part of a network (cut.h) meets another: a layer that only hands on. */
typedef enum mri_port {
    MRI_PORT_NONE = 0,
    MRI_PORT_IN, /* takes no point: its output comes from another part */
    MRI_PORT_OUT /* its input goes to another part */
} mri_port;
/* How the parameters of a layer begin. */
typedef struct mri_first {
    mr_init init;
    float deviation; /* of the weights; 0: as init says */
    float bias;
} mri_first;

struct mri_layer {
    mr_op_desc op;              /* kind (not INPUT), activation and settings; train/run completes the rest */
    const mri_layer_kind *kind; /* its row */
    mri_first first;            /* of weights */
    mr_net_decays decay;
    mr_point in, in2;   /* in2: kind->takes_two; in: MRI_NO_POINT of a further input */
    uint32_t consumers; /* layers that take its output */
    uint32_t input;     /* of a further input: which */
    uint32_t number;    /* in the whole network, whatever part of it this is */
    char block[16];     /* or "" */
    mri_port port;
    uint32_t out_h, out_w, out_c;
    uint64_t params; /* trained */
    uint64_t states; /* kept, not trained */
    double flops;    /* forward, one sample; multiply and add count 2 */
};

/* A field of the samples that a network takes beside, or instead of, its pictures. */
typedef struct mri_net_input {
    char name[MR_MAX_NAME + 1];
    uint64_t numbers; /* of a sample */
    bool whole;       /* ONE_HOT */
    float mean, std;
} mri_net_input;

struct mr_net {
    char name[64];
    bool bare; /* there is no point 0 */
    mri_net_input input[MR_LOADER_MAX_FIELDS];
    uint32_t input_count;
    uint32_t h, w, c;
    bool numbers; /* w numbers a sample, each one of c values; layers see 1 x w x c */
    mri_layer *layers;
    uint32_t layer_count, layer_cap;
    mr_point at; /* the input of the next layer */
    uint32_t picture_consumers;
    uint32_t loss_count;
    bool open_end; /* a part without the loss that ends a network, or a network that only computes outputs */
    mr_target_loss target_loss;
    mr_point target_of; /* with it: the point compared with the targets */
    mri_first first;    /* of the layers to come; decay and block as well */
    mr_net_decays decay;
    char block[16];
    float logit_factor; /* 0: not given */
    mr_error error;     /* the first of any builder call; code MR_OK without an error */
};

/* Does it take whole numbers themselves, not rows made of them? */
static inline bool mri_looks_up(mr_op_kind kind) { return kind == MR_OP_EMBEDDING; }

/* The last layer with weights; 0 if no layer has weights. */
uint32_t mri_net_head(const mr_net *net);

/* Do its weights fit pictures of any size? A dense layer's weights belong to positions of its input, unless
 * the input is one pixel. */
bool mri_net_takes_any_size(const mr_net *net);

/* Is it a further input? */
static inline bool mri_is_input(mr_op_kind kind) { return kind == MR_OP_FIELD || kind == MR_OP_ONE_HOT; }

static inline bool mri_is_loss(mr_op_kind kind) { return kind == MR_OP_LOSS || kind == MR_OP_PAIR_LOSS; }

/* Is a point there that a layer can take? */
static inline bool mri_net_has_tensor(const mr_net *net, mr_point p)
{
    return p <= net->layer_count && !(p ? mri_is_loss(net->layers[p - 1].op.kind) : net->bare);
}

/* Does a point stand for whole numbers of the data? */
static inline bool mri_net_is_numbers(const mr_net *net, mr_point p)
{
    return p ? net->layers[p - 1].op.kind == MR_OP_ONE_HOT : net->numbers;
}

/* Layers that take a point. */
static inline uint32_t mri_net_consumers(const mr_net *net, mr_point p)
{
    return p ? net->layers[p - 1].consumers : net->picture_consumers;
}

static inline bool mri_is_recurrent(mr_op_kind kind) { return kind == MR_OP_GRU || kind == MR_OP_LSTM; }

/* Is the data itself, numbers, taken by one recurrent layer, which looks them up? */
static inline bool mri_net_looks_up(const mr_net *net)
{
    return net->numbers && net->picture_consumers == 1 && mri_is_recurrent(net->layers[0].op.kind);
}

/* What accuracy counts, of each sample: its class, or its labels; 0: there is no accuracy. */
uint32_t mri_net_answers(const mr_net *net);
/* The field that has the targets; "": none has. */
const char *mri_net_target_field(const mr_net *net);
/* What checkpoints call classes: those, or the numbers that targets have. */
uint32_t mri_net_told(const mr_net *net);

/* Is it the loss against the data's targets (mr_net_targets())? */
static inline bool mri_layer_is_of_targets(const mri_layer *l)
{
    return l->op.kind == MR_OP_PAIR_LOSS && l->op.pair_loss.targets;
}

#endif
