/* train/net/rows.c: the rows of a summary: names, shapes and classes of a network that is built. */
#include <stdio.h>

#include "base/abi.h"
#include "train/net/build.h"

static const char *const pair_names[] = {[MR_PAIR_CROSS_ENTROPY] = "cross_entropy",
                                         [MR_PAIR_CLASSES] = "classes",
                                         [MR_PAIR_SQUARES] = "squares",
                                         [MR_PAIR_ABSOLUTE] = "absolute",
                                         [MR_PAIR_HUBER] = "huber",
                                         [MR_PAIR_DIVERGENCE] = "divergence"};

const char *mr_net_name(const mr_net *net) { return net ? net->name : NULL; }

/* One logit separates two classes. */
static uint32_t classes_of(uint32_t logits) { return logits > 1 ? logits : 2; }

uint32_t mr_net_class_count(const mr_net *net)
{
    if (!net) return 0;
    if (net->open_end && net->target_loss) return 0;
    for (uint32_t i = 0; i < net->layer_count && net->loss_count; i++)
        if (net->layers[i].kind == MR_OP_LOSS) return classes_of(net->layers[i].out_c);
    return net->layer_count && !net->loss_count ? classes_of(net->layers[net->layer_count - 1].out_c) : 0;
}

static bool describe_layer(const mr_net *net, uint32_t at, mr_layer_row *out)
{
    if (at >= net->layer_count) return false;
    const mri_layer *l = &net->layers[at];
    const char *kind = mri_layer_kind_name(l->kind, l->average), *act = mri_activation_name(l->activation);
    const char *gap = *act ? " " : "";
    char *name = out->name, groups[24] = "";
    const size_t room = sizeof out->name;
    if (l->groups > 1 && l->kind != MR_OP_GROUPNORM)
        snprintf(groups, sizeof groups, " in %u groups", l->groups);
    switch (l->kind) {
    case MR_OP_FIELD:
    case MR_OP_ONE_HOT: snprintf(name, room, "%s %.36s", kind, net->input[l->input].name); break;
    case MR_OP_CONV2D:
    case MR_OP_CONV2D_TRANSPOSED:
        snprintf(name, room, "%s %ux%u/%u %u%s%s%s", kind, l->kernel, l->kernel_w, l->stride, l->filters,
                 groups, gap, act);
        break;
    case MR_OP_POOL2D: snprintf(name, room, "%s %ux%u/%u", kind, l->kernel, l->kernel_w, l->stride); break;
    case MR_OP_GROUPNORM:
        if (l->each_pixel) snprintf(name, room, "layer_norm");
        else snprintf(name, room, "%s %u", kind, l->groups);
        break;
    case MR_OP_UPSAMPLE:
        snprintf(name, room, "%s %u%s", kind, l->stride, l->bilinear ? " bilinear" : "");
        break;
    case MR_OP_EMBEDDING:
    case MR_OP_GRU:
    case MR_OP_LSTM:
    case MR_OP_DENSE: snprintf(name, room, "%s %u%s%s", kind, l->filters, gap, act); break;
    case MR_OP_DROPOUT:
        snprintf(name, room, "%s%s %g", kind, l->whole_samples ? " samples" : "", (double)l->rate);
        break;
    case MR_OP_SOFTMAX: snprintf(name, room, "%s%s", l->log ? "log_" : "", kind); break;
    case MR_OP_LRN: snprintf(name, room, "%s %u", kind, 2 * l->lrn.radius + 1); break;
    case MR_OP_PAD: snprintf(name, room, "%s %u+%u", kind, l->before, l->behind); break;
    case MR_OP_PAIR_LOSS: kind = pair_names[l->pair]; /* fall through */
    case MR_OP_ADD:
    case MR_OP_SAMPLE:
    case MR_OP_SCALE:
    case MR_OP_CONCAT:
        if (l->in2) snprintf(name, room, "%s %u%s%s", kind, l->in2 - 1, gap, act);
        else snprintf(name, room, "%s input%s%s", kind, gap, act);
        break;
    default: snprintf(name, room, "%s%s%s", kind, gap, act); break;
    }
    const size_t used = strlen(name);
    if (l->in == MRI_NO_POINT) out->is_input = true;
    else if (l->in != at && l->in) snprintf(name + used, room - used, " from %u", l->in - 1);
    else if (l->in != at) snprintf(name + used, room - used, " from input");
    if (mri_is_loss(l->kind)) snprintf(out->output, sizeof out->output, "loss x %g", (double)l->weight);
    else snprintf(out->output, sizeof out->output, "%ux%ux%u", l->out_h, l->out_w, l->out_c);
    out->params = l->params;
    out->flops = l->flops;
    out->in = out->is_input ? 0 : l->in, out->in2 = l->in2, out->takes_two = mri_layer_takes_two(l);
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
        if (!mri_is_loss(l->kind) || at-- > 0) continue;
        const mr_loss_row row = {.labels = l->kind == MR_OP_LOSS,
                                 .pair = l->pair,
                                 .in = l->in,
                                 .other = l->in2,
                                 .weight = l->weight};
        mri_result_give(out, &row, sizeof row);
        return true;
    }
    return false;
}

bool mr_net_drawn(const mr_net *net, mr_point *out)
{
    if (!net || !out) return false;
    for (uint32_t i = 0; i < net->layer_count; i++) {
        if (net->layers[i].kind != MR_OP_SAMPLE) continue;
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
        if (l->kind == MR_OP_RESHAPE || (l->kind == MR_OP_DENSE && !one_place)) return false;
    }
    return true;
}
