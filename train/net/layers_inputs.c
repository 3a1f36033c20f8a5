/* train/net/layers_inputs.c: further inputs: fields of the samples next to, or instead of, the picture. */
#include <math.h>
#include <stdio.h>

#include "train/net/build.h"
#include "train/net/code.h"

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
    mri_layer *l = mri_layer_begin(net, f && f->values ? MR_OP_ONE_HOT : MR_OP_FIELD, mri_layers_inputs);
    if (!l || !mri_layer_is_told(net, l, f) || !check_field(net, l, f)) return;
    const uint64_t h = f->h ? f->h : 1, w = f->w ? f->w : 1, c = f->c ? f->c : 1;
    mri_net_input *input = &net->input[net->input_count];
    *input = (mri_net_input){.whole = f->values > 0, .mean = f->mean, .std = f->std};
    snprintf(input->name, sizeof input->name, "%s", f->name);
    l->input = net->input_count;
    if (f->values) l->op.one_hot.classes = f->values;
    else l->op.field = (mr_field_desc){.mean = f->mean, .std = f->std};
    mri_layer_finish(net, l, h, w, f->values ? f->values : c);
    if (net->error.code != MR_OK) return;
    input->numbers = h * w * c;
    net->input_count++;
}

bool mr_net_field_at(const mr_net *net, uint32_t at, mr_field_input *out)
{
    if (!net || !out) return false;
    for (uint32_t i = 0; i < net->layer_count; i++) {
        const mri_layer *l = &net->layers[i];
        if (!mri_is_input(l->op.kind) || l->input != at) continue;
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

/* ---- rows ---- */

static void text_of_field(const mr_net *net, const mri_layer *l, char *out, size_t bytes)
{
    snprintf(out, bytes, "%s %.36s", l->kind->name, net->input[l->input].name);
}

static void build_field(mr_net *net, const mri_layer_record *r)
{
    char name[sizeof r->field + 1] = "";
    memcpy(name, r->field, sizeof r->field);
    mr_net_field(net, &(mr_field_input){.name = name,
                                        .h = r->shape.h,
                                        .w = r->shape.w,
                                        .c = r->shape.c,
                                        .values = r->values,
                                        .mean = r->mean,
                                        .std = r->std});
}

const mri_layer_kind mri_layers_inputs[] = {
    {.op = MR_OP_FIELD, .name = "field", .text = text_of_field, .build = build_field},
    {.op = MR_OP_ONE_HOT, .name = "one_hot", .text = text_of_field, .build = build_field},
    {0},
};
