/* train/net/layers_weights.c: layers whose weights reach every value: dense and recurrent ones, and tables in
 * which whole numbers are looked up. */
#include <stdio.h>

#include "train/net/build.h"
#include "train/net/code.h"

void mr_net_dense(mr_net *net, uint32_t units, mr_activation activation)
{
    mri_layer *l = mri_layer_begin(net, MR_OP_DENSE, mri_layers_weights);
    if (!l) return;
    if (units == 0 || units > (1u << 28) || !mri_activation_is_known(activation)) {
        mri_layer_refuse(net, l, "units 1..2^28 and a known activation are needed");
        return;
    }
    l->op.dense.units = units, l->first = net->first;
    l->params = ((uint64_t)mri_layer_elements(l) + 1) * units; /* below 2^60: no overflow */
    l->flops = 2.0 * mri_layer_elements(l) * units;
    mri_layer_finish_with(net, l, 1, 1, units, activation);
}

static void recurrent(mr_net *net, mr_op_kind kind, uint32_t gates, uint32_t biases, uint32_t units,
                      bool sequences)
{
    mri_layer *l = mri_layer_begin(net, kind, mri_layers_weights);
    if (!l) return;
    if (units == 0 || units > (1u << 20)) {
        mri_layer_refuse(net, l, "units 1..2^20 are needed");
        return;
    }
    if (l->out_h != 1) {
        mri_layer_refuse(net, l, "a sequence is needed, 1 x steps x values");
        return;
    }
    const uint64_t rows = (uint64_t)gates * units;
    const bool looked_up = net->numbers && l->in == 0;
    l->op.recurrent = (mr_recurrent_desc){.units = units, .sequences = sequences};
    l->params = rows * ((uint64_t)l->out_c + units + biases); /* below 2^22 * 2^32 */
    l->flops = (double)l->out_w * (double)rows * ((looked_up ? 1.0 : 2.0 * l->out_c) + 2.0 * units);
    mri_layer_finish(net, l, 1, sequences ? l->out_w : 1, units);
}

void mr_net_gru(mr_net *net, uint32_t units, bool sequences)
{
    recurrent(net, MR_OP_GRU, 3, 2, units, sequences);
}

void mr_net_lstm(mr_net *net, uint32_t units, bool sequences)
{
    recurrent(net, MR_OP_LSTM, 4, 1, units, sequences);
}

void mr_net_embedding(mr_net *net, uint32_t units)
{
    mri_layer *l = mri_layer_begin(net, MR_OP_EMBEDDING, mri_layers_weights);
    if (!l) return;
    if (units == 0 || units > (1u << 24)) {
        mri_layer_refuse(net, l, "units must be 1..2^24");
        return;
    }
    if (!mri_net_is_numbers(net, l->in)) {
        mri_layer_refuse(net, l, "it takes whole numbers: of the data, or of a field with values");
        return;
    }
    l->op.embedding = (mr_embedding_desc){.classes = l->out_c, .units = units};
    l->first = net->first;
    l->params = (uint64_t)l->out_c * units;
    mri_layer_finish(net, l, l->out_h, l->out_w, units);
}

/* ---- rows ---- */

static uint32_t units_of(const mri_layer *l)
{
    if (l->op.kind == MR_OP_DENSE) return l->op.dense.units;
    return l->op.kind == MR_OP_EMBEDDING ? l->op.embedding.units : l->op.recurrent.units;
}

static void text_of_units(const mr_net *net, const mri_layer *l, char *out, size_t bytes)
{
    const char *act = mri_activation_name(l->op.activation);
    (void)net;
    snprintf(out, bytes, "%s %u%s%s", l->kind->name, units_of(l), *act ? " " : "", act);
}

static const mri_layer_setting dense_settings[] = {MRI_STORES(dense.units, window.filters), {0}};
static const mri_layer_setting embedding_settings[] = {MRI_STORES(embedding.units, window.filters), {0}};

static const mri_layer_setting recurrent_settings[] = {
    MRI_STORES(recurrent.units, window.filters),
    MRI_STORES_FLAG(recurrent.sequences, MRI_CODE_SEQUENCES),
    {0}};

static void build_dense(mr_net *net, const mri_layer_record *r)
{
    mr_net_dense(net, r->window.filters, (mr_activation)r->activation);
}

static void build_recurrent(mr_net *net, const mri_layer_record *r)
{
    const bool sequences = (r->flags & MRI_CODE_SEQUENCES) != 0;
    if (r->kind == MR_OP_GRU) mr_net_gru(net, r->window.filters, sequences);
    else mr_net_lstm(net, r->window.filters, sequences);
}

static void build_embedding(mr_net *net, const mri_layer_record *r)
{
    mr_net_embedding(net, r->window.filters);
}

const mri_layer_kind mri_layers_weights[] = {
    {.op = MR_OP_DENSE,
     .name = "dense",
     .fuses = true,
     .text = text_of_units,
     .settings = dense_settings,
     .build = build_dense},
    {.op = MR_OP_GRU,
     .name = "gru",
     .needs_nhwc = true,
     .text = text_of_units,
     .settings = recurrent_settings,
     .build = build_recurrent},
    {.op = MR_OP_LSTM,
     .name = "lstm",
     .needs_nhwc = true,
     .text = text_of_units,
     .settings = recurrent_settings,
     .build = build_recurrent},
    {.op = MR_OP_EMBEDDING,
     .name = "embedding",
     .text = text_of_units,
     .settings = embedding_settings,
     .build = build_embedding},
    {0},
};
