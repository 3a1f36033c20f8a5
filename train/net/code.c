/* train/net/code.c: see code.h. */
#include "train/net/code.h"

#include <math.h>
#include <stdio.h>

enum { INPUT_PICTURES, INPUT_NUMBERS, INPUT_BARE };

/* On disk, little-endian. */
typedef struct head {
    uint32_t input, h, w, c; /* numbers: 1, how many, how many there are to tell apart */
    uint32_t layers;
    float logit_factor; /* 0: none */
    uint32_t zero[10];
} head;

_Static_assert(sizeof(head) == MRI_CODE_HEAD_BYTES && sizeof(mri_layer_record) == MRI_CODE_LAYER_BYTES,
               "as documented");
_Static_assert(MR_OP_CONV2D == 1 && MR_OP_BATCHNORM == 6 && MR_OP_GRU == 12 && MR_OP_SCALE == 18 &&
                   MR_OP_SOFTMAX == 24 && MR_ACT_GELU == 8 && MR_INIT_HE_OUT == 2 && MR_NET_DECAY_NONE == 2,
               "numbers are on disk");
_Static_assert(sizeof(((mri_layer *)0)->block) == 16 && MR_MAX_NAME < 64, "a name has its zero");

/* ---- to bytes ---- */

/* Is the padding the same number of rows on every side? Such padding is written as that number, also where
 * "same" would give it. */
static bool has_even_pad(const mr_net *net, const mri_layer *l, const mr_op_window *window)
{
    uint32_t h = 0, w = 0, c;
    mr_net_shape(net, l->in, &h, &w, &c);
    const uint32_t p = window->pad_top;
    if (window->pad_left != p || window->pad_bottom != p || window->pad_right != p) return false;
    if (l->op.kind == MR_OP_CONV2D_TRANSPOSED) return true;
    const uint64_t high = (uint64_t)h + 2 * (uint64_t)p, wide = (uint64_t)w + 2 * (uint64_t)p;
    return high >= window->kernel_h && wide >= window->kernel_w &&
           (high - window->kernel_h) / window->stride_h + 1 == l->out_h &&
           (wide - window->kernel_w) / window->stride_w + 1 == l->out_w;
}

static void put_window(const mr_net *net, const mri_layer *l, mri_layer_record *r)
{
    mr_op_window window;
    memcpy(&window, (const char *)&l->op + l->kind->window, sizeof window);
    r->window.kernel = window.kernel_h, r->window.kernel_w = window.kernel_w,
    r->window.stride = window.stride_h;
    if (has_even_pad(net, l, &window)) r->window.pad = window.pad_top;
    else r->flags |= MRI_CODE_SAME;
}

static void put_settings(const mri_layer *l, mri_layer_record *r)
{
    for (const mri_layer_setting *s = l->kind->settings; s && s->from; s++) {
        const char *from = (const char *)&l->op + s->from;
        bool set;
        if (!s->flag) {
            memcpy((char *)r + s->to, from, 4);
            continue;
        }
        memcpy(&set, from, sizeof set);
        if (set) r->flags |= s->flag;
    }
}

static void put_input(const mr_net *net, const mri_layer *l, mri_layer_record *r)
{
    const mri_net_input *input = &net->input[l->input];
    const bool whole = l->op.kind == MR_OP_ONE_HOT;
    r->shape.h = l->out_h, r->shape.w = l->out_w, r->shape.c = whole ? 1 : l->out_c;
    r->values = whole ? l->out_c : 0;
    r->mean = input->mean, r->std = input->std;
    memcpy(r->field, input->name, strlen(input->name));
}

static void put_record(const mr_net *net, const mri_layer *l, mri_layer_record *r)
{
    *r = (mri_layer_record){.kind = (uint32_t)l->op.kind,
                            .activation = (uint32_t)l->op.activation,
                            .first.init = (uint32_t)l->first.init,
                            .first.deviation = l->first.deviation,
                            .first.bias = l->first.bias,
                            .decay = (uint32_t)l->decay,
                            .in = l->in,
                            .in2 = l->kind->takes_two ? l->in2 : 0};
    memcpy(r->block, l->block, sizeof r->block);
    put_settings(l, r);
    if (l->kind->window) put_window(net, l, r);
    if (mri_is_input(l->op.kind)) put_input(net, l, r);
}

/* Count the layers before the two that mr_net_targets() adds: its field and its loss. */
static bool count_layers(const mr_net *net, uint32_t *count)
{
    *count = net->layer_count;
    for (uint32_t i = 0; i < net->layer_count; i++) {
        if (net->layers[i].port) return false;
        if (!mri_layer_is_of_targets(&net->layers[i])) continue;
        *count = i - 1;
        return i + 1 == net->layer_count && net->layers[i].in2 == i;
    }
    return true;
}

int mr_net_encode(const mr_net *net, void **bytes, size_t *count, mr_error *err)
{
    uint32_t layers;
    MRI_GIVEN(err, bytes);
    *bytes = NULL;
    MRI_GIVEN(err, count);
    *count = 0;
    MRI_GIVEN(err, net);
    if (net->error.code != MR_OK || !count_layers(net, &layers))
        return mr_error_set(err, MR_EUNSUPPORTED, "network %s cannot be written: %s", net->name,
                            net->error.code ? net->error.text : "there are layers behind its targets");
    const size_t all = MRI_CODE_HEAD_BYTES + (size_t)layers * MRI_CODE_LAYER_BYTES;
    uint8_t *out = malloc(all);
    if (!out) return mr_error_set(err, MR_ENOMEM, "no memory for %zu bytes of network %s", all, net->name);
    const head h = {.input = net->bare      ? INPUT_BARE
                             : net->numbers ? INPUT_NUMBERS
                                            : INPUT_PICTURES,
                    .h = net->h,
                    .w = net->w,
                    .c = net->c,
                    .layers = layers,
                    .logit_factor = net->logit_factor};
    memcpy(out, &h, sizeof h);
    for (uint32_t i = 0; i < layers; i++) {
        mri_layer_record r;
        put_record(net, &net->layers[i], &r);
        memcpy(out + MRI_CODE_HEAD_BYTES + (size_t)i * MRI_CODE_LAYER_BYTES, &r, sizeof r);
    }
    *bytes = out;
    *count = all;
    return MR_OK;
}

/* ---- from bytes ---- */

static void add_layer(mr_net *net, const mri_layer_record *r)
{
    const mri_layer_kind *kind = mri_layer_kind_of((mr_op_kind)r->kind);
    if (kind) kind->build(net, r);
    else mr_error_set(&net->error, MR_EFORMAT, "unknown kind of layer %u", r->kind);
}

/* What applies to the layers that come, then the layer. */
static void take_record(mr_net *net, const mri_layer_record *r)
{
    char block[sizeof r->block + 1] = "";
    memcpy(block, r->block, sizeof r->block);
    mr_net_block(net, block);
    mr_net_init(net, (mr_init)r->first.init);
    if (r->first.deviation != 0) mr_net_init_deviation(net, r->first.deviation);
    mr_net_init_bias(net, r->first.bias);
    mr_net_decay(net, (mr_net_decays)r->decay);
    if (r->in != MRI_NO_POINT) mr_net_from(net, r->in);
    add_layer(net, r);
}

static int create(mr_net **out, const char *name, const head *h)
{
    switch (h->input) {
    case INPUT_PICTURES: return mr_net_create(out, name, h->h, h->w, h->c);
    case INPUT_NUMBERS: return mr_net_create_numbers(out, name, h->w, h->c);
    case INPUT_BARE: return mr_net_create_bare(out, name);
    default: return MR_EINVAL;
    }
}

static int damaged(mr_error *err, const char *what)
{
    return mr_error_set(err, MR_EFORMAT, "damaged network: %s", what);
}

/* Whatever the builder does not look at, and every second way to say the same, is found so. */
static int check_same(const mr_net *net, const uint8_t *bytes, size_t count, mr_error *err)
{
    void *again;
    size_t again_count;
    int rc = mr_net_encode(net, &again, &again_count, err);
    if (rc) return rc;
    if (again_count != count || memcmp(again, bytes, count) != 0)
        rc = damaged(err, "its layers are not written as they are");
    free(again);
    return rc;
}

int mr_net_decode(mr_net **out, const char *name, const void *coded, size_t count, mr_error *err)
{
    const uint8_t *bytes = coded;
    head h;
    mr_net *net;
    MRI_GIVEN(err, out);
    *out = NULL;
    MRI_GIVEN(err, name);
    MRI_GIVEN(err, coded);
    if (count < MRI_CODE_HEAD_BYTES || count > MRI_CODE_MOST_BYTES)
        return damaged(err, "its length is invalid");
    memcpy(&h, bytes, sizeof h);
    if (h.layers == 0 || h.layers > MRI_NET_MAX_LAYERS ||
        count != MRI_CODE_HEAD_BYTES + (size_t)h.layers * MRI_CODE_LAYER_BYTES)
        return damaged(err, "another number of layers than its length says");
    int rc = create(&net, name, &h);
    if (rc == MR_EINVAL) return damaged(err, "its input is invalid");
    if (rc) return mr_error_set(err, rc, "no memory for network %s", name);
    for (uint32_t i = 0; rc == MR_OK && i < h.layers; i++) {
        mri_layer_record r;
        memcpy(&r, bytes + MRI_CODE_HEAD_BYTES + (size_t)i * MRI_CODE_LAYER_BYTES, sizeof r);
        take_record(net, &r);
        rc = net->error.code;
    }
    if (rc == MR_OK && h.logit_factor != 0) mr_net_logit_factor(net, h.logit_factor), rc = net->error.code;
    if (rc == MR_ENOMEM) mr_error_set(err, rc, "%s", net->error.text);
    else if (rc) rc = damaged(err, net->error.text);
    else rc = check_same(net, bytes, count, err);
    if (rc) mr_net_destroy(net);
    else *out = net;
    return rc;
}

static int is_named(const mr_net *net, uint32_t classes, const void *own, size_t own_count, bool *is,
                    mr_error *err)
{
    const mr_model *model = mr_model_find(net->name);
    mr_net *named = NULL;
    mr_error not_built = MR_ERROR_INIT;
    void *theirs;
    size_t theirs_count;
    *is = false;
    if (!model || strcmp(model->name, net->name) != 0 || net->bare || net->numbers != model->numbers)
        return MR_OK;
    int rc = mr_model_build(model, net->h, net->w, net->c, classes, &named, &not_built);
    if (rc) return rc == MR_ENOMEM ? mr_error_set(err, rc, "no memory for network %s", net->name) : MR_OK;
    rc = mr_net_encode(named, &theirs, &theirs_count, err);
    *is = rc == MR_OK && own_count == theirs_count && memcmp(own, theirs, own_count) == 0;
    free(theirs);
    mr_net_destroy(named);
    return rc;
}

int mri_net_wants_keeping(const mr_net *net, uint32_t classes, bool *wants, mr_error *err)
{
    void *own;
    size_t own_count;
    bool is;
    *wants = false;
    int rc = mr_net_encode(net, &own, &own_count, err);
    if (rc) return rc == MR_EUNSUPPORTED ? MR_OK : rc;
    rc = is_named(net, classes, own, own_count, &is, err);
    *wants = rc == MR_OK && !is;
    free(own);
    return rc;
}
