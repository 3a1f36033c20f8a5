/* train/net/cut.c: see cut.h. A part is built in three steps: ports for inputs from earlier parts, its own
 * layers, ports for outputs to later parts. */
#include "train/net/cut.h"

#include "train/net/build.h"

typedef struct cutting {
    const mr_net *net;
    const uint32_t *place;
    uint32_t count;
    mri_piece *pieces;
    uint32_t *stage;  /* of each point */
    mr_point *inside; /* in the part that is put together: its number of each point; MRI_NO_POINT: none */
    mr_error *err;
} cutting;

static uint32_t stage_of_layer(const cutting *c, uint32_t at)
{
    const mri_layer *l = &c->net->layers[at];
    if (mri_is_input(l->op.kind)) return 0;
    return mri_is_loss(l->op.kind) ? c->count - 1 : c->place[at];
}

/* The points that a layer takes; how many. */
static uint32_t taken_by(const mri_layer *l, mr_point out[2])
{
    if (l->in == MRI_NO_POINT) return 0;
    out[0] = l->in, out[1] = l->in2;
    return l->kind->takes_two ? 2 : 1;
}

static int check_layer(const cutting *c, uint32_t at)
{
    const mr_net *net = c->net;
    const mri_layer *l = &net->layers[at];
    const uint32_t mine = stage_of_layer(c, at);
    mr_point taken[2];
    if (mine >= c->count)
        return mr_error_set(c->err, MR_EINVAL, "layer %u of network %s is placed on device %u of %u", at,
                            net->name, mine, c->count);
    if (mri_looks_up(l->op.kind) && mine > 0)
        return mr_error_set(
            c->err, MR_EINVAL,
            "layer %u (%s) of network %s is placed on device %u: it looks numbers up where the "
            "data are, on device 0",
            at, mri_layer_name(l), net->name, mine);
    for (uint32_t k = taken_by(l, taken); k-- > 0;)
        if (c->stage[taken[k]] > mine)
            return mr_error_set(c->err, MR_EINVAL,
                                "layer %u (%s) of network %s is placed on device %u and takes what device %u "
                                "computes: a network goes from device 0 on, and never back",
                                at, mri_layer_name(l), net->name, mine, c->stage[taken[k]]);
    return MR_OK;
}

static int check(const cutting *c)
{
    const mr_net *net = c->net;
    for (uint32_t at = 0; at < net->layer_count; at++) {
        c->stage[at + 1] = stage_of_layer(c, at);
        const int rc = check_layer(c, at);
        if (rc) return rc;
    }
    for (uint32_t s = 0; s < c->count; s++) {
        uint64_t params = 0;
        for (uint32_t at = 0; at < net->layer_count; at++)
            if (c->stage[at + 1] == s) params += net->layers[at].params;
        if (params == 0)
            return mr_error_set(c->err, MR_EINVAL,
                                "network %s would have no parameters on device %u of %u: place a layer with "
                                "weights there",
                                net->name, s, c->count);
    }
    if (net->loss_count == 0 && c->stage[net->layer_count] != c->count - 1)
        return mr_error_set(c->err, MR_EINVAL, "network %s ends on device %u: expected the last one, %u",
                            net->name, c->stage[net->layer_count], c->count - 1);
    return MR_OK;
}

/* Does part s take this point? */
static bool is_taken_in(const cutting *c, mr_point p, uint32_t s)
{
    for (uint32_t at = 0; at < c->net->layer_count; at++) {
        mr_point taken[2];
        if (stage_of_layer(c, at) != s) continue;
        for (uint32_t k = taken_by(&c->net->layers[at], taken); k-- > 0;)
            if (taken[k] == p) return true;
    }
    return false;
}

/* Does it get it through a port? */
static bool comes_in(const cutting *c, mr_point p, uint32_t s)
{
    return c->stage[p] < s && is_taken_in(c, p, s);
}

/* A copy of a layer that takes these points of the part, which has room. */
static void copy_layer(mr_net *part, const mri_layer *l, mr_point in, mr_point in2)
{
    mri_layer *to = &part->layers[part->layer_count++];
    *to = *l;
    to->in = in, to->in2 = in2;
    to->consumers = 0;
    if (in != MRI_NO_POINT) ++*mri_net_takers(part, in);
    if (l->kind->takes_two) ++*mri_net_takers(part, in2);
    part->loss_count += mri_is_loss(l->op.kind);
}

/* A layer that hands on a point of the whole network, and takes `in`. */
static void add_port(mr_net *part, const mr_net *whole, mr_point p, mri_port port, mr_point in)
{
    mri_layer l = {.op.kind = MR_OP_ACTIVATION,
                   .kind = mri_layer_kind_of(MR_OP_ACTIVATION),
                   .port = port,
                   .number = whole->layer_count};
    mr_net_shape(whole, p, &l.out_h, &l.out_w, &l.out_c);
    copy_layer(part, &l, in, 0);
}

static void add_own_layer(const cutting *c, mr_net *part, uint32_t at)
{
    const mri_layer *l = &c->net->layers[at];
    mr_point taken[2];
    const uint32_t count = taken_by(l, taken);
    copy_layer(part, l, count > 0 ? c->inside[taken[0]] : MRI_NO_POINT, count > 1 ? c->inside[taken[1]] : 0);
    c->inside[at + 1] = part->layer_count;
}

/* Add a port from part s to part `to`, and record it in `to`, whose links come in the order of points. */
static void add_port_out(const cutting *c, uint32_t s, uint32_t to, mr_point p)
{
    mr_net *part = c->pieces[s].net;
    add_port(part, c->net, p, MRI_PORT_OUT, c->inside[p]);
    uint32_t nth = 0;
    for (mr_point q = 0; q < p; q++) nth += comes_in(c, q, to);
    c->pieces[to].links[nth].from = s;
    c->pieces[to].links[nth].out = part->layer_count - 1;
}

static int begin_part(const cutting *c, uint32_t s)
{
    const mr_net *net = c->net;
    uint32_t links = 0;
    for (mr_point p = 0; p <= net->layer_count; p++) links += comes_in(c, p, s);
    const uint32_t layers = net->layer_count + links + c->count * (net->layer_count + 1);
    mri_piece *piece = &c->pieces[s];
    piece->net = malloc(sizeof *piece->net);
    piece->links = calloc((size_t)links + 1, sizeof *piece->links);
    mri_layer *room = calloc(layers, sizeof *room);
    if (!piece->net || !piece->links || !room) {
        free(room);
        free(piece->net);
        piece->net = NULL;
        return mr_error_set(c->err, MR_ENOMEM, "no memory to cut network %s", net->name);
    }
    *piece->net = *net;
    piece->net->layers = room;
    piece->net->layer_cap = layers;
    piece->net->layer_count = piece->net->picture_consumers = piece->net->loss_count = 0;
    piece->net->bare = net->bare || s > 0;
    piece->net->numbers = net->numbers && s == 0;
    piece->net->open_end = s + 1 < c->count || net->loss_count > 0 || net->open_end;
    piece->link_count = links;
    return MR_OK;
}

static void fill_part(const cutting *c, uint32_t s)
{
    const mr_net *net = c->net;
    mr_net *part = c->pieces[s].net;
    for (mr_point p = 0; p <= net->layer_count; p++) {
        c->inside[p] = MRI_NO_POINT;
        if (!comes_in(c, p, s)) continue;
        c->pieces[s].links[part->layer_count].in = part->layer_count;
        add_port(part, net, p, MRI_PORT_IN, MRI_NO_POINT);
        c->inside[p] = part->layer_count;
    }
    if (s == 0) c->inside[0] = 0;
    for (uint32_t at = 0; at < net->layer_count; at++)
        if (stage_of_layer(c, at) == s) add_own_layer(c, part, at);
    for (uint32_t to = s + 1; to < c->count; to++)
        for (mr_point p = 0; p <= net->layer_count; p++)
            if (c->stage[p] == s && is_taken_in(c, p, to)) add_port_out(c, s, to, p);
    part->at = part->layer_count;
}

int mri_cut(const mr_net *net, const uint32_t *place, uint32_t count, mri_piece *pieces, mr_error *err)
{
    cutting c = {.net = net,
                 .place = place,
                 .count = count,
                 .pieces = pieces,
                 .stage = calloc((size_t)net->layer_count + 1, sizeof *c.stage),
                 .inside = calloc((size_t)net->layer_count + 1, sizeof *c.inside),
                 .err = err};
    memset(pieces, 0, count * sizeof *pieces);
    int rc = c.stage && c.inside ? check(&c)
                                 : mr_error_set(err, MR_ENOMEM, "no memory to cut network %s", net->name);
    for (uint32_t s = 0; rc == MR_OK && s < count; s++) rc = begin_part(&c, s);
    for (uint32_t s = 0; rc == MR_OK && s < count; s++) fill_part(&c, s);
    free(c.stage);
    free(c.inside);
    return rc;
}

void mri_cut_fini(mri_piece *pieces, uint32_t count)
{
    for (uint32_t s = 0; s < count; s++) {
        mr_net_destroy(pieces[s].net);
        free(pieces[s].links);
        pieces[s] = (mri_piece){0};
    }
}
