/* train/net/kinds.h: kinds of layers as rows: what each is called, takes and stores.
 *
 * A row stands below the builder call of its kind, in the file of its family (layers_*.c, losses.c). The
 * builder call checks the settings and writes them to the layer's mr_op_desc, with shape, parameters and
 * arithmetic; the row does the rest. A new kind is therefore a builder call and a row in one file. Callers:
 * train/net; others read rows through mri_layer (net.h).
 *
 *     builder call ──► mri_layer { op: mr_op_desc, kind: row } ──► row's text      line of a summary
 *         ▲                                                    ├─► op              operation of a device
 *         └── row's build ◄── record ◄── row's settings ◄──────┘                   */
#ifndef MRI_KINDS_H
#define MRI_KINDS_H

#include <stddef.h>

#include "millrace/kernels.h"

typedef struct mr_net mr_net;
typedef struct mri_layer mri_layer;
typedef struct mri_layer_record mri_layer_record; /* code.h */

/* A setting: 4 bytes of the operation's description and of the record, or a bool and a flag. */
typedef struct mri_layer_setting {
    size_t from, to; /* in mr_op_desc, in mri_layer_record */
    uint32_t flag;   /* 0: 4 bytes */
} mri_layer_setting;

/* 0; does not compile for another size. */
#define MRI_FOUR_BYTES(value) (0 * sizeof(int[sizeof(value) == 4 ? 1 : -1]))
#define MRI_STORES(member, record)                                                                           \
    {                                                                                                        \
        .from = offsetof(mr_op_desc, member) + MRI_FOUR_BYTES(((mr_op_desc *)0)->member),                    \
        .to = offsetof(mri_layer_record, record) + MRI_FOUR_BYTES(((mri_layer_record *)0)->record)           \
    }
#define MRI_STORES_FLAG(member, bit)                                                                         \
    {                                                                                                        \
        .from = offsetof(mr_op_desc, member), .flag = (bit)                                                  \
    }

typedef struct mri_layer_kind {
    mr_op_kind op;
    const char *name; /* in summaries, choices and messages: "conv2d" */
    bool takes_two;   /* points `in` and `in2` */
    bool fuses;       /* its operation can apply the activation of the next layer */
    bool needs_nhwc;  /* its operation takes no other layout */
    /* Name of one layer where it depends on settings: "avg_pool". NULL: `name`. */
    const char *(*name_of)(const mri_layer *l);
    /* A summary's text: name and settings. NULL: name, second point and activation. */
    void (*text)(const mr_net *net, const mri_layer *l, char *out, size_t bytes);
    /* Settings as they are stored, up to one that is zeroed. NULL: no settings. */
    const mri_layer_setting *settings;
    size_t window; /* where its mr_op_window is in mr_op_desc; 0: no window */
    /* Call the builder with the settings of a record. */
    void (*build)(mr_net *net, const mri_layer_record *from);
} mri_layer_kind;

/* Families. Code that knows only layers of its own family uses these; each ends with a row without a name. */
extern const mri_layer_kind mri_layers_windows[], mri_layers_weights[], mri_layers_norms[],
    mri_layers_shapes[], mri_layers_joins[], mri_layers_inputs[], mri_layers_losses[];

/* NULL: no layer is made of it. */
const mri_layer_kind *mri_layer_kind_of(mr_op_kind op);
/* "conv2d", "avg_pool", ... */
const char *mri_layer_name(const mri_layer *l);
/* The text of a kind whose row has no text, under this name. */
void mri_layer_text_plain(const mri_layer *l, const char *name, char *out, size_t bytes);

#endif
