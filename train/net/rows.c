/* train/net/rows.c: the rows of a summary: names, shapes and classes of a network that is built. */
#include <stdio.h>

#include "base/abi.h"
#include "train/net/build.h"

const char *mr_net_name(const mr_net *net) { return net ? net->name : NULL; }

/* One logit separates two classes. */
static uint32_t classes_of(uint32_t logits) { return logits > 1 ? logits : 2; }

uint32_t mr_net_class_count(const mr_net *net)
{
    if (!net) return 0;
    if (net->open_end && net->target_loss) return 0;
    for (uint32_t i = 0; i < net->layer_count && net->loss_count; i++)
        if (net->layers[i].op.kind == MR_OP_LOSS) return classes_of(net->layers[i].out_c);
    return net->layer_count && !net->loss_count ? classes_of(net->layers[net->layer_count - 1].out_c) : 0;
}

static float loss_weight(const mri_layer *l)
{
    return l->op.kind == MR_OP_LOSS ? l->op.loss.weight : l->op.pair_loss.weight;
}

static bool describe_layer(const mr_net *net, uint32_t at, mr_layer_row *out)
{
    if (at >= net->layer_count) return false;
    const mri_layer *l = &net->layers[at];
    char *name = out->name;
    const size_t room = sizeof out->name;
    if (l->kind->text) l->kind->text(net, l, name, room);
    else mri_layer_text_plain(l, mri_layer_name(l), name, room);
    const size_t used = strlen(name);
    if (l->in == MRI_NO_POINT) out->is_input = true;
    else if (l->in != at && l->in) snprintf(name + used, room - used, " from %u", l->in - 1);
    else if (l->in != at) snprintf(name + used, room - used, " from input");
    if (mri_is_loss(l->op.kind))
        snprintf(out->output, sizeof out->output, "loss x %g", (double)loss_weight(l));
    else snprintf(out->output, sizeof out->output, "%ux%ux%u", l->out_h, l->out_w, l->out_c);
    out->params = l->params;
    out->flops = l->flops;
    out->in = out->is_input ? 0 : l->in, out->in2 = l->in2, out->takes_two = l->kind->takes_two;
    return true;
}

bool mr_net_layer_sized(const mr_net *net, uint32_t at, mr_layer_row *out)
{
    if (!net || !out) return false;
    mr_layer_row row = {0};
    const bool found = describe_layer(net, at, &row);
    if (found) mri_result_give(out, &row, sizeof row);
    return found;
}

bool mr_net_loss_sized(const mr_net *net, uint32_t at, mr_loss_row *out)
{
    if (!net || !out) return false;
    for (uint32_t i = 0; i < net->layer_count; i++) {
        const mri_layer *l = &net->layers[i];
        if (!mri_is_loss(l->op.kind) || at-- > 0) continue;
        const bool labels = l->op.kind == MR_OP_LOSS;
        const mr_loss_row row = {.labels = labels,
                                 .pair = labels ? (mr_pair_loss)0 : l->op.pair_loss.kind,
                                 .in = l->in,
                                 .other = l->in2,
                                 .weight = loss_weight(l)};
        mri_result_give(out, &row, sizeof row);
        return true;
    }
    return false;
}

bool mr_net_drawn(const mr_net *net, mr_point *out)
{
    if (!net || !out) return false;
    for (uint32_t i = 0; i < net->layer_count; i++) {
        if (net->layers[i].op.kind != MR_OP_SAMPLE) continue;
        *out = i + 1;
        return true;
    }
    return false;
}

bool mri_net_takes_any_size(const mr_net *net)
{
    if (net->numbers || net->bare || net->input_count) return false;
    for (uint32_t i = 0; i < net->layer_count; i++) {
        const mri_layer *l = &net->layers[i],
                        *in = l->in && l->in != MRI_NO_POINT ? &net->layers[l->in - 1] : NULL;
        const bool one_place = in ? in->out_h == 1 && in->out_w == 1 : net->h == 1 && net->w == 1;
        if (l->op.kind == MR_OP_RESHAPE || (l->op.kind == MR_OP_DENSE && !one_place)) return false;
    }
    return true;
}
