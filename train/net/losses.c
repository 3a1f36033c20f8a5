/* train/net/losses.c: builder calls of losses and targets, and which outputs a network has. */
#include <math.h>
#include <stdio.h>

#include "base/abi.h"
#include "train/net/build.h"

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
        if (net->layers[i].kind != MR_OP_LOSS) continue;
        *out = net->layers[i].in;
        break;
    }
    return true;
}

static bool takes_logits(mr_net *net, mri_layer *l)
{
    const mri_layer *of = l->in ? &net->layers[l->in - 1] : NULL;
    if (!of || (of->activation == MR_ACT_NONE && !mri_layer_is_softmax(of))) return true;
    mri_layer_refuse(net, l, "bare logits are needed: no activation before this loss, which brings its own");
    return false;
}

void mr_net_loss_labels(mr_net *net, float weight)
{
    mri_layer *l = mri_layer_begin_loss(net, MR_OP_LOSS, (mr_pair_loss)0, weight);
    if (!l || !takes_logits(net, l)) return;
    if (l->out_h != 1 || l->out_w != 1) {
        mri_layer_refuse(net, l, "a vector of logits is needed");
        return;
    }
    mri_layer_finish_loss(net, l);
}

void mr_net_loss_pair(mr_net *net, mr_pair_loss kind, mr_point other, float weight)
{
    mri_layer *l = mri_layer_begin_loss(net, MR_OP_PAIR_LOSS, kind, weight);
    if (!l) return;
    if ((uint32_t)kind >= MR_PAIR_COUNT) {
        mri_layer_refuse(net, l, "unknown loss");
        return;
    }
    if ((kind == MR_PAIR_CROSS_ENTROPY || kind == MR_PAIR_CLASSES) && !takes_logits(net, l)) return;
    if (mri_layer_take_like(net, l, other)) mri_layer_finish_loss(net, l);
}

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
    mri_layer_mark_targets(net);
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
        if (net->layers[i].targets) return net->input[net->layers[net->layers[i].in2 - 1].input].name;
    return "";
}

uint32_t mri_net_answers(const mr_net *net)
{
    if (mr_net_class_count(net)) return 1;
    return net->target_loss == MR_TARGET_LABELS ? mr_net_target_count(net) : 0;
}
