/* train/run/nodes.c: the layers of a network become operations of a device.
 *
 *   layers   conv ─ batch_norm ─ add 4 ─ activation ─ ...      node 0 is the input (data to floats), the last
 *   nodes    conv ─ batch_norm (+ output of 4, relu) ─ ...     the loss
 *
 * A recurrent layer that takes numbers is node 0 itself: it looks them up. A further input is a node that
 * takes a field of the data, an embedding one that takes the numbers which it looks up.
 *
 * Decided here: which layers ride along in the op before them (an activation whose slope follows from what
 * it gives; an addition, on the
 * normalisation that only feeds it), where an op may work in place, and where backward ends: at the first
 * layers with parameters, whose input's gradient nobody wants. Only what stands directly behind in the list
 * rides along, so the list is an order to run the nodes in, too.
 *
 * An op has room for two gradients to its output. An output that more ops take is handed on by forks: ops in
 * place that do nothing but add up two gradients.
 *
 *   point    ─┬─► a            nodes    ─┬─► a
 *             ├─► b                      └─► fork ─┬─► b
 *             └─► c                                └─► c        */

#include "train/run/nodes.h"

typedef struct building {
    mri_nodes *nodes;
    mr_device *dev;
    const mri_replica_config *cfg;
    const mr_net *net;
    uint32_t *node_of;   /* nodes->made_by */
    bool one_layout;     /* every op is asked for the same */
    bool counted;        /* a loss does it */
    bool layouts_differ; /* what an op takes came in another layout than it can take: build again, so */
    mr_error *err;
} building;

static mr_tensor data_tensor(const mr_net *net)
{
    if (net->numbers)
        return (mr_tensor){1, net->w, 1, MR_TENSOR_I32, MR_LAYOUT_NHWC, net->w * sizeof(int32_t)};
    return (mr_tensor){.h = net->h,
                       .w = net->w,
                       .c = net->c,
                       .dtype = MR_TENSOR_U8,
                       .layout = MR_LAYOUT_NHWC,
                       .sample_bytes = (size_t)net->h * net->w * net->c};
}

static mr_tensor field_tensor(const building *b, const mri_layer *l)
{
    const uint32_t dtype = b->cfg->in.fields[l->input].dtype, c = l->op.kind == MR_OP_ONE_HOT ? 1 : l->out_c;
    return (mr_tensor){.h = l->out_h,
                       .w = l->out_w,
                       .c = c,
                       .dtype = dtype,
                       .layout = MR_LAYOUT_NHWC,
                       .sample_bytes = mr_tensor_element_bytes(dtype) * l->out_h * l->out_w * c};
}

static mr_op_desc describe_field(const building *b, const mri_layer *l)
{
    mr_op_desc d = l->op;
    d.in = field_tensor(b, l);
    if (d.kind == MR_OP_ONE_HOT) d.one_hot.out_dtype = b->cfg->dtype;
    else d.field.out_dtype = b->cfg->dtype;
    return d;
}

/* An op that writes over its input destroys the data of the op before it for its own backward. That is
 * harmless when that backward needs no more than which outputs were positive: dropout keeps the sign of its
 * kept values, and hands no gradient to dropped ones. No other op may need the old values. */
static bool may_overwrite(const mri_node *before, const mri_node *n)
{
    if (n->fork || n->port || n->kind == MR_OP_RESHAPE) return true; /* nothing is written */
    if (before->consumers > 1 || before->fork || before->kind == MR_OP_RESHAPE)
        return false; /* it is another's */
    if (!before->backward) return true;
    if (n->kind != MR_OP_DROPOUT) return false;
    return before->activation == MR_ACT_NONE || before->activation == MR_ACT_RELU;
}

/* The further input that a layer is, or whose numbers it looks up. */
static const mri_layer *field_of(const mr_net *net, const mri_layer *l)
{
    if (mri_is_input(l->op.kind)) return l;
    return mri_looks_up(l->op.kind) && l->in ? &net->layers[l->in - 1] : NULL;
}

static bool is_frozen(const building *b, uint32_t layer)
{
    return b->cfg->touched.frozen && !b->cfg->inference && layer != MRI_NONE &&
           b->cfg->touched.frozen[b->net->layers[layer].number];
}

/* What stands before the node in the network is trained; a gradient would have to be led through fixed
 * statistics. */
static int refuse_frozen_norm(const building *b, uint32_t layer)
{
    return mr_error_set(
        b->err, MR_EINVAL,
        "layer %u (batch_norm) is frozen, and layers before it are trained: no gradient is led through "
        "fixed statistics; freeze the layers before it, too, or leave it out",
        b->net->layers[layer].number);
}

/* Append an op that takes the outputs of nodes in and in2 (MRI_NONE: no node). desc is completed. */
static int add_node(building *b, mr_op_desc *desc, uint32_t in, uint32_t in2, uint32_t layer)
{
    mri_nodes *nodes = b->nodes;
    mri_node n = {.kind = desc->kind,
                  .activation = desc->activation,
                  .layer = layer,
                  .in = in,
                  .in2 = in2,
                  .field = b->net->numbers ? 0 : MRI_NONE};
    const mri_layer *l = layer == MRI_NONE ? NULL : &b->net->layers[layer];
    const mri_layer *field = l ? field_of(b->net, l) : NULL;
    if (field) n.field = b->cfg->in.fields[field->input].at;
    if (l) n.port = l->port;
    if (n.port == MRI_PORT_IN) n.need_dx = b->cfg->in.ports[layer].gradient && !b->cfg->inference;
    desc->max_batch = b->cfg->max_batch;
    desc->training = !b->cfg->inference;
    if (b->one_layout) desc->want = MR_WANT_NHWC;
    if (in != MRI_NONE) {
        desc->in = nodes->node[in].info->out;
        n.need_dx = nodes->node[in].backward;
    }
    if (in2 != MRI_NONE) {
        desc->in2 = nodes->node[in2].info->out;
        n.need_dx2 = nodes->node[in2].backward;
        b->layouts_differ |= desc->in.layout != desc->in2.layout && desc->kind != MR_OP_PAIR_LOSS;
    }
    if (l && l->kind->needs_nhwc) b->layouts_differ |= desc->in.layout != MR_LAYOUT_NHWC;
    desc->need_dx = n.need_dx;
    if (desc->kind == MR_OP_BATCHNORM && (n.need_dx || n.need_dx2) && is_frozen(b, layer))
        return refuse_frozen_norm(b, layer);
    const int rc = mr_op_create(&n.op, b->dev, desc, b->err);
    if (rc) return rc;
    n.info = mr_op_info_of(n.op);
    n.desc = *desc;
    n.frozen = is_frozen(b, layer);
    n.backward = !b->cfg->inference && (n.need_dx || n.need_dx2 || (n.info->param_count > 0 && !n.frozen));
    if (in != MRI_NONE) {
        nodes->node[in].consumers++;
        if (in2 != MRI_NONE) nodes->node[in2].consumers++;
    }
    nodes->node[nodes->count++] = n;
    return MR_OK;
}

/* The node that makes a point, or a fork of it that has room for a taker. */
static uint32_t take_point(building *b, mr_point p)
{
    const uint32_t node = b->node_of[p], next = node + 1;
    if (node == MRI_NONE) return node; /* data as they are */
    if (next < b->nodes->count && b->nodes->node[next].fork && b->nodes->node[next].in == node)
        b->node_of[p] = next; /* this taker and that fork are its two */
    return node;
}

/* Forks after the newest node, one for each layer that takes its output. */
static int add_forks(building *b, uint32_t takers)
{
    int rc = MR_OK;
    for (uint32_t i = 2; rc == MR_OK && i < takers; i++) {
        const uint32_t from = b->nodes->count - 1;
        mr_op_desc d = {.kind = MR_OP_ACTIVATION, .activation = MR_ACT_NONE};
        rc = add_node(b, &d, from, MRI_NONE, MRI_NONE);
        if (!rc) b->nodes->node[from + 1].fork = true;
    }
    return rc;
}

/* Layer at is the only one to take the output of the layer before it. */
static bool is_only_consumer(const mr_net *net, uint32_t at)
{
    return at < net->layer_count && mri_net_consumers(net, at) == 1;
}

/* The activation layer at, if there is one that can be part of l's op. */
static bool take_activation(const mr_net *net, uint32_t at, const mri_layer *l, mr_activation *activation)
{
    if (!l->kind->fuses || *activation != MR_ACT_NONE || !is_only_consumer(net, at)) return false;
    const mri_layer *next = &net->layers[at];
    if (next->op.kind != MR_OP_ACTIVATION || next->in != at || next->port) return false;
    if (mr_activation_needs_x(next->op.activation)) return false;
    *activation = next->op.activation;
    return true;
}

/* One op for the normalisation at and the addition after it. MR_EUNSUPPORTED: the device has no such op. */
static int add_residual(building *b, uint32_t at, mr_point other, uint32_t *taken)
{
    const mri_layer *norm = &b->net->layers[at], *sum = norm + 1;
    mr_op_desc d = norm->op;
    d.batchnorm.residual = true;
    d.activation = sum->op.activation;
    *taken = 2;
    *taken += take_activation(b->net, at + 2, norm, &d.activation);
    const uint32_t in = take_point(b, norm->in);
    return add_node(b, &d, in, take_point(b, other), at);
}

static bool is_residual(const mr_net *net, uint32_t at)
{
    const mri_layer *l = &net->layers[at];
    if (l->op.kind != MR_OP_BATCHNORM || l->op.activation != MR_ACT_NONE || !is_only_consumer(net, at + 1))
        return false;
    return l[1].op.kind == MR_OP_ADD && (l[1].in == at + 1 || l[1].in2 == at + 1);
}

/* One loss counts samples: the first against labels, which also finds the right class; without labels the
 * first of all. */
static void complete_loss(building *b, mr_op_desc *d)
{
    const bool counts = !b->counted && (d->kind == MR_OP_LOSS || mr_net_class_count(b->net) == 0);
    if (counts) b->counted = true;
    if (d->kind == MR_OP_PAIR_LOSS) {
        d->pair_loss.silent = !counts;
        return;
    }
    d->loss.silent = !counts;
    d->loss.factor = b->net->logit_factor;
    d->loss.smoothing = b->cfg->labels.smoothing;
    d->loss.class_weights = b->cfg->labels.class_weights != NULL;
}

/* How many layers take a point as it is computed; others look its numbers up. */
static uint32_t takers_of(const mr_net *net, mr_point p)
{
    uint32_t takers = mri_net_consumers(net, p);
    for (uint32_t i = 0; mri_net_is_numbers(net, p) && i < net->layer_count; i++)
        takers -= mri_looks_up(net->layers[i].op.kind) && net->layers[i].in == p;
    return takers;
}

static int add_embedding(building *b, uint32_t at)
{
    const mri_layer *l = &b->net->layers[at], *field = field_of(b->net, l);
    mr_op_desc d = l->op;
    d.in = field ? field_tensor(b, field) : data_tensor(b->net);
    d.embedding.out_dtype = b->cfg->dtype;
    return add_node(b, &d, MRI_NONE, MRI_NONE, at);
}

/* An op for layer at and the *taken - 1 layers after it. */
static int add_layers(building *b, uint32_t at, uint32_t *taken)
{
    const mri_layer *l = &b->net->layers[at];
    *taken = 1;
    if (mri_looks_up(l->op.kind)) return add_embedding(b, at);
    if (mri_is_input(l->op.kind)) {
        mr_op_desc d = describe_field(b, l);
        return add_node(b, &d, MRI_NONE, MRI_NONE, at);
    }
    if (l->port) {
        mr_op_desc d = {.kind = MR_OP_ACTIVATION};
        if (l->port == MRI_PORT_IN) d.in = b->cfg->in.ports[at].tensor;
        return add_node(b, &d, l->port == MRI_PORT_IN ? MRI_NONE : take_point(b, l->in), MRI_NONE, at);
    }
    const mr_point other = is_residual(b->net, at) ? l[1].in == at + 1 ? l[1].in2 : l[1].in : MRI_NO_POINT;
    /* fixed statistics, and a gradient through the addition alone: apart */
    const bool apart = other != MRI_NO_POINT && is_frozen(b, at) && b->node_of[other] != MRI_NONE &&
                       b->nodes->node[b->node_of[other]].backward;
    if (other != MRI_NO_POINT && !apart) {
        const uint32_t in = b->node_of[l->in], in2 = b->node_of[other];
        const int rc = add_residual(b, at, other, taken);
        if (rc != MR_EUNSUPPORTED) return rc;
        b->node_of[l->in] = in, b->node_of[other] = in2; /* not taken, after all */
    }
    mr_op_desc d = l->op;
    *taken = 1u + take_activation(b->net, at + 1, l, &d.activation);
    if (b->node_of[l->in] == MRI_NONE) {
        d.in = data_tensor(b->net);
        d.recurrent.classes = b->net->c, d.recurrent.out_dtype = b->cfg->dtype;
    }
    if (mri_is_loss(l->op.kind)) complete_loss(b, &d);
    const uint32_t in = take_point(b, l->in);
    return add_node(b, &d, in, l->kind->takes_two ? take_point(b, l->in2) : MRI_NONE, at);
}

static mr_op_desc describe_data(const building *b)
{
    const mr_net *net = b->net;
    mr_op_desc d = {.kind = net->numbers ? MR_OP_ONE_HOT : MR_OP_INPUT, .in = data_tensor(net)};
    if (net->numbers) {
        d.one_hot = (mr_one_hot_desc){.classes = net->c, .out_dtype = b->cfg->dtype};
        return d;
    }
    d.input.out_dtype = b->cfg->dtype;
    memcpy(d.input.mean, b->cfg->affine.mean, sizeof d.input.mean);
    memcpy(d.input.std, b->cfg->affine.std, sizeof d.input.std);
    return d;
}

static int build(building *b)
{
    const mri_nodes *nodes = b->nodes;
    mr_op_desc input = describe_data(b);
    const bool own = !b->net->bare && !mri_net_looks_up(b->net) && takers_of(b->net, 0) > 0;
    int rc = own ? add_node(b, &input, MRI_NONE, MRI_NONE, MRI_NONE) : MR_OK;
    b->node_of[0] = own ? 0 : MRI_NONE;
    if (rc == MR_OK && own) rc = add_forks(b, takers_of(b->net, 0));
    for (uint32_t i = 0; rc == MR_OK && i < b->net->layer_count;) {
        uint32_t taken = 1;
        if (mri_net_is_numbers(b->net, i + 1) && takers_of(b->net, i + 1) == 0) { /* there are no rows */
            b->node_of[++i] = MRI_NONE;
            continue;
        }
        rc = add_layers(b, i, &taken);
        if (rc) break;
        for (uint32_t k = 0; k < taken; k++) b->node_of[++i] = nodes->count - 1;
        rc = add_forks(b, takers_of(b->net, i));
    }
    if (rc) return rc;
    if (b->net->loss_count == 0 && !b->net->open_end) {
        mr_op_desc loss = {.kind = MR_OP_LOSS};
        complete_loss(b, &loss);
        rc = add_node(b, &loss, nodes->count - 1, MRI_NONE, MRI_NONE);
    }
    for (uint32_t i = 1; rc == MR_OK && i < nodes->count; i++) { /* all takers are known now */
        mri_node *n = &nodes->node[i];
        n->inplace = n->info->inplace && n->in != MRI_NONE && n->in2 == MRI_NONE &&
                     may_overwrite(&nodes->node[n->in], n);
    }
    return rc;
}

const mri_node *mri_nodes_of_layer(const mri_nodes *nodes, uint32_t layer)
{
    for (uint32_t i = 0; i < nodes->count; i++)
        if (nodes->node[i].layer == layer) return &nodes->node[i];
    return NULL;
}

static void drop_nodes(mri_nodes *nodes)
{
    for (uint32_t i = 0; i < nodes->count; i++) mr_op_destroy(nodes->node[i].op);
    nodes->count = 0;
}

/* Does a point that is kept hold its values in another order than h x w x c, or with channels of padding
 * between them, as a blocked layout does even with one channel? */
static bool keeps_blocks(const mri_nodes *nodes, const mri_replica_config *cfg)
{
    for (uint32_t i = 0; i < cfg->kept.count; i++) {
        const uint32_t node = nodes->made_by[cfg->kept.at[i]];
        if (node == MRI_NONE) continue;
        const mr_tensor *t = &nodes->node[node].info->out;
        const size_t values = (size_t)t->h * t->w * t->c;
        if (t->sample_bytes != values * mr_tensor_element_bytes(t->dtype)) return true;
        if (t->layout != MR_LAYOUT_NHWC && t->h * t->w > 1 && t->c > 1) return true;
    }
    return false;
}

/* Convolutions choose the layout that is fastest for them. Where an addition meets two, such as of a picture
 * and its convolution, or a recurrent layer one that it does not take, or where a point is kept whose
 * values somebody reads, all are built once more in one that every op knows. */
int mri_nodes_init(mri_nodes *nodes, mr_device *dev, const mri_replica_config *cfg, mr_error *err)
{
    const mr_net *net = cfg->net;
    building b = {.nodes = nodes, .dev = dev, .cfg = cfg, .net = net, .err = err};
    *nodes = (mri_nodes){.node = calloc(3 * (size_t)net->layer_count + 2, /* forks, too */
                                        sizeof *nodes->node)};
    b.node_of = nodes->made_by = calloc((size_t)net->layer_count + 1, sizeof *b.node_of);
    int rc = MR_OK;
    if (!nodes->node || !b.node_of)
        rc = mr_error_set(err, MR_ENOMEM, "no memory for a network of %u layers", net->layer_count);
    else rc = build(&b);
    if (rc ? b.layouts_differ : keeps_blocks(nodes, cfg)) {
        drop_nodes(nodes);
        b.one_layout = true, b.counted = false;
        rc = build(&b);
    }
    return rc;
}

void mri_nodes_fini(mri_nodes *nodes)
{
    drop_nodes(nodes);
    free(nodes->node);
    free(nodes->made_by);
    nodes->node = NULL;
    nodes->made_by = NULL;
}
