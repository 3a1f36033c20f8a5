/* train/net/losses.c: builder calls of losses and targets, and which outputs a network has. */
#include <math.h>
#include <stdio.h>

#include "base/abi.h"
#include "train/net/build.h"
#include "train/net/code.h"

void mr_net_logit_factor(mr_net *net, float factor)
{
    if (!net) return;
    if (net->error.code != MR_OK) return;
    if (!(factor > 0) || isinf(factor))
        mr_error_set(&net->error, MR_EINVAL, "network %s: logit factor %g: expected a finite number above 0",
                     net->name, (double)factor);
    if (net->logit_factor > 0)
        mr_error_set(&net->error, MR_EINVAL, "network %s: a second factor of the logits", net->name);
    net->logit_factor = factor;
}

bool mr_net_logits(const mr_net *net, mr_point *out)
{
    if (!net || !out) return false;
    if (mr_net_class_count(net) == 0) return false;
    *out = net->layer_count;
    for (uint32_t i = 0; net->loss_count > 0 && i < net->layer_count; i++) {
        if (net->layers[i].op.kind != MR_OP_LOSS) continue;
        *out = net->layers[i].in;
        break;
    }
    return true;
}

static bool takes_logits(mr_net *net, mri_layer *l)
{
    const mri_layer *of = l->in ? &net->layers[l->in - 1] : NULL;
    if (!of || (of->op.activation == MR_ACT_NONE && !mri_layer_is_softmax(of))) return true;
    mri_layer_refuse(net, l, "bare logits are needed: no activation before this loss, which brings its own");
    return false;
}

static bool check_weight(mr_net *net, const mri_layer *l, float weight)
{
    if (weight > 0 && !isinf(weight)) return true;
    mri_layer_refuse(net, l, "a finite weight above 0 is needed");
    return false;
}

void mr_net_loss_labels(mr_net *net, float weight)
{
    mri_layer *l = mri_layer_begin(net, MR_OP_LOSS, mri_layers_losses);
    if (!l || !check_weight(net, l, weight) || !takes_logits(net, l)) return;
    l->op.loss.weight = weight;
    if (l->out_h != 1 || l->out_w != 1) {
        mri_layer_refuse(net, l, "a vector of logits is needed");
        return;
    }
    mri_layer_finish_loss(net, l);
}

void mr_net_loss_pair(mr_net *net, mr_pair_loss kind, mr_point other, float weight)
{
    mri_layer *l = mri_layer_begin(net, MR_OP_PAIR_LOSS, mri_layers_losses);
    if (!l || !check_weight(net, l, weight)) return;
    l->op.pair_loss = (mr_pair_loss_desc){.kind = kind, .weight = weight};
    if ((uint32_t)kind >= MR_PAIR_COUNT) {
        mri_layer_refuse(net, l, "unknown loss");
        return;
    }
    if ((kind == MR_PAIR_CROSS_ENTROPY || kind == MR_PAIR_CLASSES) && !takes_logits(net, l)) return;
    if (mri_layer_take_like(net, l, other)) mri_layer_finish_loss(net, l);
}

static const mri_layer_setting label_settings[] = {MRI_STORES(loss.weight, weight), {0}};

static void build_labels(mr_net *net, const mri_layer_record *r) { mr_net_loss_labels(net, r->weight); }

static void text_of_pair(const mr_net *net, const mri_layer *l, char *out, size_t bytes)
{
    static const char *const names[] = {[MR_PAIR_CROSS_ENTROPY] = "cross_entropy",
                                        [MR_PAIR_CLASSES] = "classes",
                                        [MR_PAIR_SQUARES] = "squares",
                                        [MR_PAIR_ABSOLUTE] = "absolute",
                                        [MR_PAIR_HUBER] = "huber",
                                        [MR_PAIR_DIVERGENCE] = "divergence"};
    (void)net;
    mri_layer_text_plain(l, names[l->op.pair_loss.kind], out, bytes);
}

static const mri_layer_setting pair_settings[] = {
    MRI_STORES(pair_loss.weight, weight), MRI_STORES(pair_loss.kind, pair), {0}};

static void build_pair(mr_net *net, const mri_layer_record *r)
{
    mr_net_loss_pair(net, (mr_pair_loss)r->pair, r->in2, r->weight);
}

const mri_layer_kind mri_layers_losses[] = {
    {.op = MR_OP_LOSS, .name = "loss", .settings = label_settings, .build = build_labels},
    {.op = MR_OP_PAIR_LOSS,
     .name = "pair_loss",
     .takes_two = true,
     .text = text_of_pair,
     .settings = pair_settings,
     .build = build_pair},
    {0},
};

/* A loss of each kind, and the current point, which stays the current one, with its field. */
static void add_targets(mr_net *net, mr_target_loss kind, const char *field)
{
    static const mr_pair_loss pairs[] = {[MR_TARGET_LABELS] = MR_PAIR_CROSS_ENTROPY,
                                         [MR_TARGET_SQUARES] = MR_PAIR_SQUARES,
                                         [MR_TARGET_ABSOLUTE] = MR_PAIR_ABSOLUTE,
                                         [MR_TARGET_HUBER] = MR_PAIR_HUBER};
    const mr_point of = net->at;
    uint32_t h, w, c;
    if (!mr_net_shape(net, of, &h, &w, &c)) return;
    mr_net_field(net, &(mr_field_input){.name = field, .h = h, .w = w, .c = c});
    const mr_point wanted = net->at;
    mr_net_from(net, of);
    mr_net_loss_pair(net, pairs[kind], wanted, 1.0f / ((float)h * (float)w * (float)c));
    if (net->error.code == MR_OK) net->layers[net->layer_count - 1].op.pair_loss.targets = true;
}

void mr_net_targets(mr_net *net, mr_target_loss kind, const char *field)
{
    if (!net || net->error.code != MR_OK) return;
    const char *wrong = (uint32_t)kind >= MR_TARGET_COUNT || !kind ? "unknown loss against targets"
                        : net->layer_count == 0                    ? "there is no output yet"
                        : net->target_loss                         ? "it is compared with targets already"
                        : net->loss_count > 0                      ? "it has losses of its own"
                                                                   : NULL;
    if (wrong) {
        mr_error_set(&net->error, MR_EINVAL, "network %s, targets: %s", net->name, wrong);
        return;
    }
    net->target_loss = kind, net->target_of = net->at;
    if (field) add_targets(net, kind, field);
    else net->open_end = true;
}

double mr_target_pad(const mr_field *f)
{
    if (!f || f->type != MR_TYPE_TENSOR) return 0;
    const bool real = f->dtype == MR_F16 || f->dtype == MR_BF16 || f->dtype == MR_F32 || f->dtype == MR_F64;
    return real ? (double)NAN : f->dtype == MR_U8 ? 255 : -1;
}

mr_target_loss mr_net_target_loss(const mr_net *net)
{
    if (!net) return MR_TARGET_NONE;
    return net->target_loss;
}

uint32_t mr_net_target_count(const mr_net *net)
{
    if (!net) return 0;
    uint32_t h, w, c;
    return net->target_loss && mr_net_shape(net, net->target_of, &h, &w, &c) ? h * w * c : 0;
}

bool mr_net_outputs(const mr_net *net, mr_point *out)
{
    if (!net || !out) return false;
    if (!net->target_loss) return mr_net_logits(net, out);
    *out = net->target_of;
    return true;
}

const char *mri_net_target_field(const mr_net *net)
{
    for (uint32_t i = 0; i < net->layer_count; i++)
        if (mri_layer_is_of_targets(&net->layers[i]))
            return net->input[net->layers[net->layers[i].in2 - 1].input].name;
    return "";
}

uint32_t mri_net_answers(const mr_net *net)
{
    if (mr_net_class_count(net)) return 1;
    return net->target_loss == MR_TARGET_LABELS ? mr_net_target_count(net) : 0;
}

uint32_t mri_net_told(const mr_net *net)
{
    const uint32_t classes = mr_net_class_count(net);
    return classes ? classes : mr_net_target_count(net);
}
