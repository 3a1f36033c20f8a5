/* train/state/weights.c: see weights.h. */
#include "train/state/weights.h"

#include <stdio.h>

void mri_weights_own(const mri_tensor_desc *desc, uint32_t count, mri_weight_place *out)
{
    for (uint32_t i = 0; i < count; i++) {
        out[i] = (mri_weight_place){.ndim = desc[i].ndim, .rows = desc[i].count, .pixels = 1, .channels = 1};
        snprintf(out[i].name, sizeof out[i].name, "%s", desc[i].name);
        memcpy(out[i].dim, desc[i].dim, sizeof desc[i].dim);
    }
}

/* ---- torchvision ---- */

/* "4/conv2d/weights" */
typedef struct own_name {
    uint32_t layer;
    char kind[32], parameter[32];
} own_name;

static bool read_name(const char *name, own_name *out)
{
    return sscanf(name, "%u/%31[^/]/%31s", &out->layer, out->kind, out->parameter) == 3;
}

static const char *torch_parameter(const own_name *n)
{
    static const struct {
        const char *kind, *own, *torch;
    } known[] = {{"conv2d", "weights", "weight"},        {"conv2d", "bias", "bias"},
                 {"dense", "weights", "weight"},         {"dense", "bias", "bias"},
                 {"batch_norm", "scale", "weight"},      {"batch_norm", "shift", "bias"},
                 {"batch_norm", "mean", "running_mean"}, {"batch_norm", "variance", "running_var"}};
    for (size_t i = 0; i < MRI_ARRAY_COUNT(known); i++)
        if (strcmp(known[i].kind, n->kind) == 0 && strcmp(known[i].own, n->parameter) == 0)
            return known[i].torch;
    return NULL;
}

static int not_theirs(const mr_net *net, const char *name, mr_error *err)
{
    return mr_error_set(err, MR_EUNSUPPORTED,
                        "network %s has a tensor %s that torchvision's network of that name has not",
                        net->name, name);
}

/* The picture that a dense layer takes as a row, where it is one. */
static void find_flattened(const mr_net *net, uint32_t layer, uint32_t *h, uint32_t *w, uint32_t *c)
{
    *h = *w = *c = 1;
    for (uint32_t i = 0; i < net->layer_count; i++)
        if (net->layers[i].number == layer) mr_net_shape(net, net->layers[i].in, h, w, c);
}

static int place_torch(const mr_net *net, const mri_tensor_desc *d, const own_name *n,
                       const mri_torch_module *m, mri_weight_place *p, mr_error *err)
{
    const char *parameter = torch_parameter(n);
    uint32_t h, w, c;
    if (!parameter) return not_theirs(net, d->name, err);
    *p = (mri_weight_place){.ndim = d->ndim, .rows = d->count, .pixels = 1, .channels = 1};
    snprintf(p->name, sizeof p->name, "%s.%s", m->name, parameter);
    memcpy(p->dim, d->dim, sizeof p->dim);
    if (strcmp(n->kind, "conv2d") == 0 && d->ndim == 4) { /* filters, rows, columns, channels */
        p->dim[1] = d->dim[3], p->dim[2] = d->dim[1], p->dim[3] = d->dim[2];
        p->rows = d->dim[0], p->pixels = d->dim[1] * d->dim[2], p->channels = d->dim[3];
    } else if (d->ndim == 2 && m->dense_as_conv) {
        p->ndim = 4, p->dim[2] = p->dim[3] = 1;
    } else if (d->ndim == 2) {
        find_flattened(net, n->layer, &h, &w, &c);
        p->rows = d->dim[0], p->pixels = (uint64_t)h * w, p->channels = c;
        if (p->pixels > 1 && (h != 7 || w != 7)) /* VGG: an adaptive pooling makes 7 x 7 of any size there */
            return mr_error_set(
                err, MR_EUNSUPPORTED,
                "network %s for pictures of %u x %u has %u x %u pixels before its first dense "
                "layer: torchvision's has 7 x 7, of pictures of 224 x 224",
                net->name, net->h, net->w, h, w);
    }
    return MR_OK;
}

int mri_weights_torchvision(const mr_net *net, const mri_tensor_desc *desc, uint32_t count,
                            mri_weight_place *out, mr_error *err)
{
    uint32_t modules, at = 0, layer = 0;
    bool failed;
    char known[160];
    mri_torch_module *module = mri_torch_modules(net->name, &modules, &failed);
    if (failed) return mr_error_set(err, MR_ENOMEM, "no memory for the names of torchvision");
    if (!module)
        return mr_error_set(err, MR_EUNSUPPORTED,
                            "torchvision's names are known of %s: not of %s, which goes by our own",
                            mri_weights_torchvision_models(known, sizeof known), net->name);
    int rc = MR_OK;
    for (uint32_t i = 0; rc == MR_OK && i < count; i++) {
        own_name n;
        if (!read_name(desc[i].name, &n)) rc = not_theirs(net, desc[i].name, err);
        if (rc == MR_OK && (i == 0 || n.layer != layer)) at++, layer = n.layer;
        if (rc == MR_OK && at > modules) rc = not_theirs(net, desc[i].name, err);
        if (rc == MR_OK) rc = place_torch(net, &desc[i], &n, &module[at - 1], &out[i], err);
    }
    if (rc == MR_OK && at != modules)
        rc = mr_error_set(err, MR_EUNSUPPORTED, "network %s has %u layers with weights: torchvision's has %u",
                          net->name, at, modules);
    free(module);
    return rc;
}

/* ---- layouts ---- */

static void transpose(const float *restrict from, float *restrict to, uint64_t rows, uint64_t high,
                      uint64_t wide)
{
    const uint64_t row = high * wide;
    for (uint64_t r = 0; r < rows; r++, from += row, to += row)
        for (uint64_t y = 0; y < high; y++)
            for (uint64_t x = 0; x < wide; x++) to[x * high + y] = from[y * wide + x];
}

void mri_weight_to_file(const mri_weight_place *p, const float *own, float *file)
{
    transpose(own, file, p->rows, p->pixels, p->channels);
}

void mri_weight_from_file(const mri_weight_place *p, const float *file, float *own)
{
    transpose(file, own, p->rows, p->channels, p->pixels);
}
