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

enum {
    FLAG_AVERAGE = 1,
    FLAG_NO_BIAS = 2,
    FLAG_NO_SCALE = 4,
    FLAG_SEQUENCES = 8,
    FLAG_WHOLE_SAMPLES = 16,
    FLAG_EACH_PIXEL = 32,
    FLAG_BILINEAR = 64,
    FLAG_LOG = 128,
    FLAG_SAME = 256, /* padding: so that a step of 1 keeps the size; else pad on every side */
};

typedef struct record {
    uint32_t kind, activation, init;
    float deviation, bias;
    uint32_t decay, in, in2;
    uint32_t filters, kernel, kernel_w, stride, groups, pad, before, behind;
    uint32_t flags;
    float rate, momentum, epsilon, weight;
    uint32_t pair, radius;
    float lrn_bias, alpha, beta;
    uint32_t h, w, c, values; /* a field's; the shape that is made of another */
    float mean, std;
    char block[16], field[64];
    uint32_t zero[12];
} record;
_Static_assert(sizeof(head) == MRI_CODE_HEAD_BYTES && sizeof(record) == MRI_CODE_LAYER_BYTES,
               "as documented");
_Static_assert(MR_OP_CONV2D == 1 && MR_OP_BATCHNORM == 6 && MR_OP_GRU == 12 && MR_OP_SCALE == 18 &&
                   MR_OP_SOFTMAX == 24 && MR_ACT_GELU == 8 && MR_INIT_HE_OUT == 2 && MR_NET_DECAY_NONE == 2,
               "numbers are on disk");
_Static_assert(sizeof(((mri_layer *)0)->block) == 16 && MR_MAX_NAME < 64, "a name has its zero");

/* ---- to bytes ---- */

/* Is the padding the same number of rows on every side? Such padding is written as that number, also where
 * "same" would give it. */
static bool has_even_pad(const mr_net *net, const mri_layer *l)
{
    uint32_t h = 0, w = 0, c;
    mr_net_shape(net, l->in, &h, &w, &c);
    const uint32_t p = l->pad_top;
    if (l->pad_left != p || l->pad_bottom != p || l->pad_right != p) return false;
    if (l->kind == MR_OP_CONV2D_TRANSPOSED) return true;
    const uint64_t high = (uint64_t)h + 2 * (uint64_t)p, wide = (uint64_t)w + 2 * (uint64_t)p;
    return high >= l->kernel && wide >= l->kernel_w && (high - l->kernel) / l->stride + 1 == l->out_h &&
           (wide - l->kernel_w) / l->stride + 1 == l->out_w;
}

static uint32_t flags_of(const mri_layer *l)
{
    return (l->average ? FLAG_AVERAGE : 0u) | (l->no_bias ? FLAG_NO_BIAS : 0u) |
           (l->no_scale ? FLAG_NO_SCALE : 0u) | (l->sequences ? FLAG_SEQUENCES : 0u) |
           (l->whole_samples ? FLAG_WHOLE_SAMPLES : 0u) | (l->each_pixel ? FLAG_EACH_PIXEL : 0u) |
           (l->bilinear ? FLAG_BILINEAR : 0u) | (l->log ? FLAG_LOG : 0u);
}

static void put_record(const mr_net *net, const mri_layer *l, record *r)
{
    const bool window =
        l->kind == MR_OP_CONV2D || l->kind == MR_OP_CONV2D_TRANSPOSED || l->kind == MR_OP_POOL2D;
    *r = (record){.kind = (uint32_t)l->kind,
                  .activation = (uint32_t)l->activation,
                  .init = (uint32_t)l->first.init,
                  .deviation = l->first.deviation,
                  .bias = l->first.bias,
                  .decay = (uint32_t)l->decay,
                  .in = l->in,
                  .in2 = mri_layer_takes_two(l) ? l->in2 : 0,
                  .filters = l->filters,
                  .kernel = l->kernel,
                  .kernel_w = l->kernel_w,
                  .stride = l->stride,
                  .groups = l->groups,
                  .before = l->before,
                  .behind = l->behind,
                  .flags = flags_of(l),
                  .rate = l->rate,
                  .momentum = l->momentum,
                  .epsilon = l->epsilon,
                  .weight = l->weight,
                  .pair = (uint32_t)l->pair,
                  .radius = l->lrn.radius,
                  .lrn_bias = l->lrn.bias,
                  .alpha = l->lrn.alpha,
                  .beta = l->lrn.beta};
    memcpy(r->block, l->block, sizeof r->block);
    if (window && has_even_pad(net, l)) r->pad = l->pad_top;
    else if (window) r->flags |= FLAG_SAME;
    if (l->kind == MR_OP_RESHAPE || mri_is_input(l->kind)) r->h = l->out_h, r->w = l->out_w, r->c = l->out_c;
    if (!mri_is_input(l->kind)) return;
    const mri_net_input *input = &net->input[l->input];
    if (l->kind == MR_OP_ONE_HOT) r->values = l->out_c, r->c = 1;
    r->mean = input->mean, r->std = input->std;
    memcpy(r->field, input->name, strlen(input->name));
}

/* Count the layers before the two that mr_net_targets() adds: its field and its loss. */
static bool count_layers(const mr_net *net, uint32_t *count)
{
    *count = net->layer_count;
    for (uint32_t i = 0; i < net->layer_count; i++) {
        if (net->layers[i].port) return false;
        if (!net->layers[i].targets) continue;
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
        record r;
        put_record(net, &net->layers[i], &r);
        memcpy(out + MRI_CODE_HEAD_BYTES + (size_t)i * MRI_CODE_LAYER_BYTES, &r, sizeof r);
    }
    *bytes = out;
    *count = all;
    return MR_OK;
}

/* ---- from bytes ---- */

static void add_conv(mr_net *net, const record *r)
{
    const mr_conv c = {.filters = r->filters,
                       .kernel = r->kernel,
                       .kernel_w = r->kernel_w,
                       .stride = r->stride,
                       .padding = r->flags & FLAG_SAME ? MR_PAD_SAME : MR_PAD_VALID,
                       .pad = r->pad,
                       .no_bias = (r->flags & FLAG_NO_BIAS) != 0,
                       .activation = (mr_activation)r->activation,
                       .groups = r->groups};
    if (r->kind == MR_OP_CONV2D) mr_net_conv(net, &c);
    else mr_net_conv_transposed(net, &c);
}

static void add_pool(mr_net *net, const record *r)
{
    mr_net_pool(net, &(mr_pool){.kernel = r->kernel,
                                .kernel_w = r->kernel_w,
                                .stride = r->stride,
                                .padding = r->flags & FLAG_SAME ? MR_PAD_SAME : MR_PAD_VALID,
                                .pad = r->pad,
                                .average = (r->flags & FLAG_AVERAGE) != 0});
}

static void add_field(mr_net *net, const record *r)
{
    char name[sizeof r->field + 1] = "";
    memcpy(name, r->field, sizeof r->field);
    mr_net_field(net, &(mr_field_input){.name = name,
                                        .h = r->h,
                                        .w = r->w,
                                        .c = r->c,
                                        .values = r->values,
                                        .mean = r->mean,
                                        .std = r->std});
}

static void add_norm(mr_net *net, const record *r)
{
    mr_net_norm(net, &(mr_norm){.momentum = r->momentum,
                                .epsilon = r->epsilon,
                                .activation = (mr_activation)r->activation,
                                .no_scale = (r->flags & FLAG_NO_SCALE) != 0});
}

static void add_group_norm(mr_net *net, const record *r)
{
    if (r->flags & FLAG_EACH_PIXEL) mr_net_layer_norm(net, r->epsilon);
    else mr_net_group_norm(net, r->groups, r->epsilon);
}

static void add_softmax(mr_net *net, const record *r)
{
    if (r->flags & FLAG_LOG) mr_net_log_softmax(net);
    else mr_net_softmax(net);
}

static void add_dropout(mr_net *net, const record *r)
{
    if (r->flags & FLAG_WHOLE_SAMPLES) mr_net_drop_samples(net, r->rate);
    else mr_net_dropout(net, r->rate);
}

static void add_layer(mr_net *net, const record *r)
{
    const mr_activation activation = (mr_activation)r->activation;
    const bool sequences = (r->flags & FLAG_SEQUENCES) != 0;
    switch ((mr_op_kind)r->kind) {
    case MR_OP_CONV2D:
    case MR_OP_CONV2D_TRANSPOSED: add_conv(net, r); break;
    case MR_OP_POOL2D: add_pool(net, r); break;
    case MR_OP_DENSE: mr_net_dense(net, r->filters, activation); break;
    case MR_OP_ACTIVATION: mr_net_activation(net, activation); break;
    case MR_OP_DROPOUT: add_dropout(net, r); break;
    case MR_OP_BATCHNORM: add_norm(net, r); break;
    case MR_OP_GROUPNORM: add_group_norm(net, r); break;
    case MR_OP_LOSS: mr_net_loss_labels(net, r->weight); break;
    case MR_OP_PAIR_LOSS: mr_net_loss_pair(net, (mr_pair_loss)r->pair, r->in2, r->weight); break;
    case MR_OP_ADD: mr_net_add(net, r->in2, activation); break;
    case MR_OP_CONCAT: mr_net_concat(net, &r->in2, 1); break;
    case MR_OP_SCALE: mr_net_scale(net, r->in2); break;
    case MR_OP_SAMPLE: mr_net_sample(net, r->in2, r->weight); break;
    case MR_OP_PAD: mr_net_pad_channels(net, r->before, r->behind); break;
    case MR_OP_GRU: mr_net_gru(net, r->filters, sequences); break;
    case MR_OP_LSTM: mr_net_lstm(net, r->filters, sequences); break;
    case MR_OP_RESHAPE: mr_net_reshape(net, r->h, r->w, r->c); break;
    case MR_OP_UPSAMPLE: mr_net_upsample(net, r->stride, (r->flags & FLAG_BILINEAR) != 0); break;
    case MR_OP_EMBEDDING: mr_net_embedding(net, r->filters); break;
    case MR_OP_LRN: mr_net_lrn(net, r->radius, r->lrn_bias, r->alpha, r->beta); break;
    case MR_OP_SOFTMAX: add_softmax(net, r); break;
    case MR_OP_FIELD:
    case MR_OP_ONE_HOT: add_field(net, r); break;
    default: mr_error_set(&net->error, MR_EFORMAT, "unknown kind of layer %u", r->kind); break;
    }
}

/* What applies to the layers that come, then the layer. */
static void take_record(mr_net *net, const record *r)
{
    char block[sizeof r->block + 1] = "";
    memcpy(block, r->block, sizeof r->block);
    mr_net_block(net, block);
    mr_net_init(net, (mr_init)r->init);
    if (r->deviation != 0) mr_net_init_deviation(net, r->deviation);
    mr_net_init_bias(net, r->bias);
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
    if (count < MRI_CODE_HEAD_BYTES || count > MRI_CODE_MOST_BYTES) return damaged(err, "its length is none");
    memcpy(&h, bytes, sizeof h);
    if (h.layers == 0 || h.layers > MRI_NET_MAX_LAYERS ||
        count != MRI_CODE_HEAD_BYTES + (size_t)h.layers * MRI_CODE_LAYER_BYTES)
        return damaged(err, "another number of layers than its length says");
    int rc = create(&net, name, &h);
    if (rc == MR_EINVAL) return damaged(err, "its input is none");
    if (rc) return mr_error_set(err, rc, "no memory for network %s", name);
    for (uint32_t i = 0; rc == MR_OK && i < h.layers; i++) {
        record r;
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
