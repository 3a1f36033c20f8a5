/* train/net/net.c: a network while it is built: its layers, points, settings and checks. Builder calls of
 * layers are in layers_*.c and losses.c, the rows of a summary in rows.c.
 *
 *   mr_net_create ──► mr_net_conv2d, ... ──────────► mr_net_check
 *                     mr_net_here, _from, _add, _concat, _scale: branches
 *
 * Each call appends one layer, and its output shape is worked out at once.
 *
 * Builder calls return nothing: the first mistake is kept in the network with the number of the layer it
 * happened at, and everything after it is ignored, so that a network reads as a plain list. Does not know
 * devices, batches or weights. */
#include <math.h>
#include <stdio.h>

#include "base/abi.h"
#include "train/net/build.h"

int mr_net_create(mr_net **out, const char *name, uint32_t h, uint32_t w, uint32_t c)
{
    if (!out) return MR_EINVAL;
    *out = NULL;
    if (!name || h == 0 || w == 0 || c == 0 || c > 4)
        return MR_EINVAL; /* mr_op_desc has room for four channels' means */
    if ((uint64_t)h * w > MRI_NET_MAX_ELEMENTS / c) return MR_EINVAL;
    mr_net *net = calloc(1, sizeof *net);
    if (!net) return MR_ENOMEM;
    snprintf(net->name, sizeof net->name, "%s", name);
    net->h = h, net->w = w, net->c = c;
    net->error = (mr_error)MR_ERROR_INIT;
    *out = net;
    return MR_OK;
}

int mr_net_create_numbers(mr_net **out, const char *name, uint32_t length, uint32_t values)
{
    if (!out) return MR_EINVAL;
    *out = NULL;
    if (length == 0 || values == 0 || length > MRI_NET_MAX_ELEMENTS / values) return MR_EINVAL;
    const int rc = mr_net_create(out, name, 1, length, 1);
    if (rc) return rc;
    (*out)->c = values;
    (*out)->numbers = true;
    return MR_OK;
}

int mr_net_create_bare(mr_net **out, const char *name)
{
    const int rc = mr_net_create(out, name, 1, 1, 1);
    if (rc) return rc;
    (*out)->bare = true;
    (*out)->at = MRI_NO_POINT;
    return MR_OK;
}

bool mr_net_takes_numbers(const mr_net *net) { return net && net->numbers; }

void mr_net_destroy(mr_net *net)
{
    if (!net) return;
    free(net->layers);
    free(net);
}

static bool make_room(mr_net *net)
{
    if (net->layer_count == MRI_NET_MAX_LAYERS) {
        mr_error_set(&net->error, MR_ELIMIT, "network %s: more than %u layers", net->name,
                     MRI_NET_MAX_LAYERS);
        return false;
    }
    if (net->layer_count < net->layer_cap) return true;
    const uint32_t cap = net->layer_cap ? 2 * net->layer_cap : 16;
    mri_layer *grown = realloc(net->layers, cap * sizeof *grown);
    if (!grown) {
        mr_error_set(&net->error, MR_ENOMEM, "network %s: no memory for %u layers", net->name, cap);
        return false;
    }
    net->layers = grown;
    net->layer_cap = cap;
    return true;
}

void mri_layer_refuse(mr_net *net, const mri_layer *l, const char *what)
{
    mr_error_set(&net->error, MR_EINVAL, "network %s, layer %u (%s) on %ux%ux%u: %s", net->name,
                 net->layer_count, mri_layer_name(l), l->out_h, l->out_w, l->out_c, what);
}

bool mri_layer_is_told(mr_net *net, const mri_layer *l, const void *settings)
{
    if (!settings) mri_layer_refuse(net, l, "it needs its settings, found NULL");
    return settings != NULL;
}

static const mri_layer_kind *kind_among(const mri_layer_kind *family, mr_op_kind op)
{
    while (family->op != op) family++; /* a builder call names a row of its own file */
    return family;
}

mri_layer *mri_layer_begin(mr_net *net, mr_op_kind kind, const mri_layer_kind *family)
{
    if (!net || net->error.code != MR_OK || !make_room(net)) return NULL;
    mri_layer *l = &net->layers[net->layer_count];
    *l = (mri_layer){.op.kind = kind,
                     .kind = kind_among(family, kind),
                     .number = net->layer_count,
                     .in = net->at,
                     .decay = net->decay,
                     .out_h = net->h,
                     .out_w = net->w,
                     .out_c = net->c};
    memcpy(l->block, net->block, sizeof l->block);
    if (mri_is_input(kind)) {
        l->in = MRI_NO_POINT;
    } else if (net->at == MRI_NO_POINT) {
        mri_layer_refuse(net, l, "a network without an input of its own begins with a field");
        return NULL;
    } else if (net->at > 0) {
        const mri_layer *from = &net->layers[net->at - 1];
        l->out_h = from->out_h, l->out_w = from->out_w, l->out_c = from->out_c;
    }
    return l;
}

void mri_layer_finish(mr_net *net, mri_layer *l, uint64_t h, uint64_t w, uint64_t c)
{
    if (l->params > MRI_NET_MAX_PARAMS) {
        mri_layer_refuse(net, l, "too many parameters");
    } else if (h > MRI_NET_MAX_ELEMENTS || w > MRI_NET_MAX_ELEMENTS || c > MRI_NET_MAX_ELEMENTS ||
               h * w > MRI_NET_MAX_ELEMENTS / c) {
        mri_layer_refuse(net, l, "its output is too large");
    } else {
        l->out_h = (uint32_t)h, l->out_w = (uint32_t)w, l->out_c = (uint32_t)c;
        if (l->in != MRI_NO_POINT) ++*mri_net_takers(net, l->in);
        if (l->kind->takes_two) ++*mri_net_takers(net, l->in2);
        net->at = ++net->layer_count;
    }
}

void mri_layer_finish_loss(mr_net *net, mri_layer *l)
{
    ++*mri_net_takers(net, l->in);
    if (l->kind->takes_two) ++*mri_net_takers(net, l->in2);
    net->layer_count++;
    net->loss_count++;
}

/* ------------------------------------------------------------------------------ settings */

void mr_net_init(mr_net *net, mr_init init)
{
    if (!net) return;
    if (net->error.code == MR_OK && (uint32_t)init > MR_INIT_HE_OUT)
        mr_error_set(&net->error, MR_EINVAL, "network %s: unknown initial weights %d", net->name, (int)init);
    net->first.init = init;
    net->first.deviation = 0;
}

void mr_net_init_deviation(mr_net *net, float deviation)
{
    if (!net) return;
    if (net->error.code == MR_OK && (!(deviation > 0) || isinf(deviation)))
        mr_error_set(&net->error, MR_EINVAL,
                     "network %s: weights that begin with deviation %g: expected a finite number above 0",
                     net->name, (double)deviation);
    net->first.deviation = deviation;
}

void mr_net_init_bias(mr_net *net, float value)
{
    if (!net) return;
    if (net->error.code == MR_OK && !isfinite(value))
        mr_error_set(&net->error, MR_EINVAL, "network %s: biases that begin at %g: expected a finite number",
                     net->name, (double)value);
    net->first.bias = value;
}

void mr_net_decay(mr_net *net, mr_net_decays on)
{
    if (!net) return;
    if (net->error.code == MR_OK && (uint32_t)on > MR_NET_DECAY_NONE)
        mr_error_set(&net->error, MR_EINVAL, "network %s: unknown choice %d of what decays", net->name,
                     (int)on);
    net->decay = on;
}

bool mr_net_has_own_decay(const mr_net *net)
{
    if (!net) return false;
    for (uint32_t i = 0; i < net->layer_count; i++)
        if (net->layers[i].params > 0 && net->layers[i].decay != MR_NET_DECAY_AS_TOLD) return true;
    return false;
}

void mr_net_block(mr_net *net, const char *name)
{
    const size_t bytes = name ? strlen(name) : 0;
    if (!net || net->error.code != MR_OK) return;
    if (!name) mr_error_set(&net->error, MR_EINVAL, "network %s: a block without a name", net->name);
    else if (bytes >= sizeof net->block || strpbrk(name, "=,") || (name[0] >= '0' && name[0] <= '9'))
        mr_error_set(&net->error, MR_EINVAL,
                     "network %s: block \"%s\": expected a name of up to 15 letters and digits that begins "
                     "with a letter",
                     net->name, name);
    else memcpy(net->block, name, bytes + 1);
}

uint32_t mr_net_layer_count(const mr_net *net) { return net ? net->layer_count : 0; }

mr_point mr_net_here(const mr_net *net) { return net ? net->at : 0; }

void mr_net_from(mr_net *net, mr_point point)
{
    if (!net) return;
    if (net->error.code != MR_OK) return;
    if (!mri_net_has_tensor(net, point))
        mr_error_set(&net->error, MR_EINVAL, "network %s: there is no point %u after %u layers", net->name,
                     point, net->layer_count);
    else net->at = point;
}

bool mr_net_shape(const mr_net *net, mr_point point, uint32_t *h, uint32_t *w, uint32_t *c)
{
    if (!net || !h || !w || !c) return false;
    if (!mri_net_has_tensor(net, point)) return false;
    const mri_layer *l = point ? &net->layers[point - 1] : NULL;
    *h = l ? l->out_h : net->h, *w = l ? l->out_w : net->w, *c = l ? l->out_c : net->c;
    return true;
}

/* Every point is taken, but the last where no loss is named: then the network ends where its list does. */
static int check_points(const mr_net *net, mr_error *err)
{
    if (net->loss_count == 0 && net->at != net->layer_count)
        return mr_error_set(err, MR_EINVAL, "network %s goes back to point %u and adds nothing to it",
                            net->name, net->at);
    const uint32_t end = net->layer_count + (net->loss_count > 0);
    for (mr_point p = 0; p < end; p++)
        if (mri_net_has_tensor(net, p) && mri_net_consumers(net, p) == 0)
            return p ? mr_error_set(err, MR_EINVAL,
                                    "network %s: nothing takes point %u, the output of layer %u (%s)",
                                    net->name, p, p - 1, mri_layer_name(&net->layers[p - 1]))
                     : mr_error_set(err, MR_EINVAL, "network %s: nothing takes its input", net->name);
    return MR_OK;
}

static int check_logits(const mr_net *net, mr_error *err)
{
    const mri_layer *last = &net->layers[net->layer_count - 1];
    if (last->out_h != 1 || last->out_w != 1)
        return mr_error_set(err, MR_EINVAL,
                            "network %s ends in %ux%ux%u: expected a vector of logits; end it with dense",
                            net->name, last->out_h, last->out_w, last->out_c);
    if (last->op.activation != MR_ACT_NONE || mri_layer_is_softmax(last))
        return mr_error_set(
            err, MR_EINVAL,
            "network %s ends in %s: expected bare logits, the loss brings the softmax or sigmoid", net->name,
            mri_layer_is_softmax(last) ? "softmax" : mri_activation_name(last->op.activation));
    return MR_OK;
}

int mr_net_check(const mr_net *net, mr_error *err)
{
    if (!net)
        return mr_error_set(err, MR_EINVAL,
                            "there is no network: mr_net_create() expects a name, pictures of at least 1 x 1 "
                            "with 1 to 4 channels, out of memory apart");
    if (net->error.code != MR_OK) {
        if (err) *err = net->error;
        return net->error.code;
    }
    if (net->layer_count == 0) return mr_error_set(err, MR_EINVAL, "network %s has no layers", net->name);
    int rc = check_points(net, err);
    if (rc == MR_OK && net->loss_count == 0) rc = check_logits(net, err);
    if (rc) return rc;
    if (mr_net_param_count(net) == 0)
        return mr_error_set(err, MR_EINVAL, "network %s has nothing to train", net->name);
    return MR_OK;
}

uint64_t mr_net_param_count(const mr_net *net)
{
    if (!net) return 0;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < net->layer_count; i++) sum += net->layers[i].params;
    return sum;
}

uint64_t mr_net_state_count(const mr_net *net)
{
    if (!net) return 0;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < net->layer_count; i++) sum += net->layers[i].states;
    return sum;
}
