/* train/net/layers.c: builder calls of layers that go over pixels or channels as they are: pooling,
 * normalisations of responses and of samples, upsampling; of further inputs, and of tables in which whole
 * numbers are looked up. */
#include <math.h>
#include <stdio.h>

#include "train/net/build.h"

void mr_net_pool(mr_net *net, const mr_pool *p)
{
    mri_layer *l = mri_layer_begin(net, MR_OP_POOL2D);
    uint32_t h, w;
    if (!l || !mri_layer_is_told(net, l, p)) return;
    const uint32_t kernel_w = p->kernel_w ? p->kernel_w : p->kernel;
    l->average = p->average;
    if (p->pad > 0 && p->padding != MR_PAD_VALID) {
        mri_layer_refuse(net, l, "padding of so many rows goes with \"valid\", not with \"same\"");
        return;
    }
    if (!mri_layer_place_window(net, l, p->kernel, kernel_w, p->stride, p->padding, p->pad, &h, &w)) return;
    l->flops = (double)p->kernel * kernel_w * h * w * l->out_c;
    mri_layer_finish(net, l, h, w, l->out_c);
}

static void pool(mr_net *net, uint32_t size, uint32_t stride, uint32_t pad, bool average)
{
    mr_net_pool(net, &(mr_pool){.kernel = size, .stride = stride, .pad = pad, .average = average});
}

void mr_net_max_pool(mr_net *net, uint32_t size, uint32_t stride) { pool(net, size, stride, 0, false); }
void mr_net_avg_pool(mr_net *net, uint32_t size, uint32_t stride) { pool(net, size, stride, 0, true); }
void mr_net_max_pool_padded(mr_net *net, uint32_t size, uint32_t stride, uint32_t pad)
{
    pool(net, size, stride, pad, false);
}

void mr_net_avg_pool_padded(mr_net *net, uint32_t size, uint32_t stride, uint32_t pad)
{
    pool(net, size, stride, pad, true);
}

/* One window over the whole, which need not be square. */
static void global_pool(mr_net *net, bool average)
{
    mri_layer *l = mri_layer_begin(net, MR_OP_POOL2D);
    if (!l) return;
    l->average = average;
    l->kernel = l->out_h, l->kernel_w = l->out_w, l->stride = 1;
    l->flops = mri_layer_elements(l);
    mri_layer_finish(net, l, 1, 1, l->out_c);
}

void mr_net_global_avg_pool(mr_net *net) { global_pool(net, true); }
void mr_net_global_max_pool(mr_net *net) { global_pool(net, false); }

void mr_net_lrn(mr_net *net, uint32_t radius, float bias, float alpha, float beta)
{
    mri_layer *l = mri_layer_begin(net, MR_OP_LRN);
    if (!l) return;
    l->lrn = (mr_lrn_desc){.radius = radius, .bias = bias, .alpha = alpha, .beta = beta};
    if (radius > MR_LRN_MOST_RADIUS || !(bias > 0) || !(alpha >= 0) || !(beta >= 0) || isinf(bias) ||
        isinf(alpha) || isinf(beta)) {
        mri_layer_refuse(
            net, l,
            "a radius of 0..64 is needed, and finite numbers: a bias above 0, alpha and beta not "
            "below");
        return;
    }
    l->flops = mri_layer_elements(l) * (2 * radius + 5);
    mri_layer_finish(net, l, l->out_h, l->out_w, l->out_c);
}

static void softmax(mr_net *net, bool log)
{
    mri_layer *l = mri_layer_begin(net, MR_OP_SOFTMAX);
    if (!l) return;
    l->log = log;
    l->flops = 5 * mri_layer_elements(l);
    mri_layer_finish(net, l, l->out_h, l->out_w, l->out_c);
}

void mr_net_softmax(mr_net *net) { softmax(net, false); }
void mr_net_log_softmax(mr_net *net) { softmax(net, true); }

static void group_norm(mr_net *net, uint32_t groups, bool each_pixel, float epsilon)
{
    mri_layer *l = mri_layer_begin(net, MR_OP_GROUPNORM);
    if (!l) return;
    if (!(epsilon > 0) || isinf(epsilon) || groups == 0 || l->out_c % groups != 0) {
        mri_layer_refuse(net, l,
                         "epsilon above 0 and a number of groups that divides the channels are needed");
        return;
    }
    l->groups = groups, l->each_pixel = each_pixel, l->epsilon = epsilon;
    l->params = 2 * (uint64_t)l->out_c;
    l->flops = 8 * mri_layer_elements(l);
    mri_layer_finish(net, l, l->out_h, l->out_w, l->out_c);
}

void mr_net_group_norm(mr_net *net, uint32_t groups, float epsilon)
{
    group_norm(net, groups, false, epsilon);
}
void mr_net_layer_norm(mr_net *net, float epsilon) { group_norm(net, 1, true, epsilon); }

void mr_net_upsample(mr_net *net, uint32_t factor, bool bilinear)
{
    mri_layer *l = mri_layer_begin(net, MR_OP_UPSAMPLE);
    if (!l) return;
    if (factor == 0) {
        mri_layer_refuse(net, l, "a factor of at least 1 is needed");
        return;
    }
    l->stride = factor, l->bilinear = bilinear;
    l->flops = (bilinear ? 8.0 : 1.0) * mri_layer_elements(l) * factor * factor;
    mri_layer_finish(net, l, (uint64_t)l->out_h * factor, (uint64_t)l->out_w * factor, l->out_c);
}

static bool check_field(mr_net *net, const mri_layer *l, const mr_field_input *f)
{
    const char *wrong = NULL;
    if (!f->name || !*f->name || strlen(f->name) > MR_MAX_NAME) wrong = "a name of 1 to 63 bytes is needed";
    else if (net->input_count == MR_LOADER_MAX_FIELDS ||
             (net->numbers && net->input_count + 1 == MR_LOADER_MAX_FIELDS))
        wrong = "a network takes four fields at most";
    else if (!isfinite(f->mean) || !isfinite(f->std)) wrong = "mean and std must be finite";
    else if (f->values > 0 && f->c > 1) wrong = "whole numbers are one a pixel: c must be 1";
    for (uint32_t i = 0; !wrong && i < net->input_count; i++)
        if (strcmp(net->input[i].name, f->name) == 0)
            wrong = "it takes this field already; mr_net_from() its point";
    if (wrong) mri_layer_refuse(net, l, wrong);
    return !wrong;
}

void mr_net_field(mr_net *net, const mr_field_input *f)
{
    mri_layer *l = mri_layer_begin(net, f && f->values ? MR_OP_ONE_HOT : MR_OP_FIELD);
    if (!l || !mri_layer_is_told(net, l, f) || !check_field(net, l, f)) return;
    const uint64_t h = f->h ? f->h : 1, w = f->w ? f->w : 1, c = f->c ? f->c : 1;
    mri_net_input *input = &net->input[net->input_count];
    *input = (mri_net_input){.whole = f->values > 0, .mean = f->mean, .std = f->std};
    snprintf(input->name, sizeof input->name, "%s", f->name);
    l->input = net->input_count;
    mri_layer_finish(net, l, h, w, f->values ? f->values : c);
    if (net->error.code != MR_OK) return;
    input->numbers = h * w * c;
    net->input_count++;
}

void mr_net_embedding(mr_net *net, uint32_t units)
{
    mri_layer *l = mri_layer_begin(net, MR_OP_EMBEDDING);
    if (!l) return;
    if (units == 0 || units > (1u << 24)) {
        mri_layer_refuse(net, l, "units must be 1..2^24");
        return;
    }
    if (!mri_net_is_numbers(net, l->in)) {
        mri_layer_refuse(net, l, "it takes whole numbers: those of the data, or of a field with values");
        return;
    }
    l->filters = units, l->first = net->first;
    l->params = (uint64_t)l->out_c * units;
    mri_layer_finish(net, l, l->out_h, l->out_w, units);
}

bool mr_net_field_at(const mr_net *net, uint32_t at, mr_field_input *out)
{
    if (!net || !out) return false;
    for (uint32_t i = 0; i < net->layer_count; i++) {
        const mri_layer *l = &net->layers[i];
        if (!mri_is_input(l->kind) || l->input != at) continue;
        const mri_net_input *input = &net->input[at];
        *out = (mr_field_input){.name = input->name,
                                .h = l->out_h,
                                .w = l->out_w,
                                .c = input->whole ? 1 : l->out_c,
                                .values = input->whole ? l->out_c : 0,
                                .mean = input->mean,
                                .std = input->std};
        return true;
    }
    return false;
}
