/* kernels/host/host_wire.c: a sum over processes in two exchanges:
 *
 *     every rank   its own nodes of slice s ──► rank s          each element of the sum is made by one rank,
 *     rank s       all nodes of slice s, added up by the tree   in the order of the tree
 *     rank s       slice s of the sum ──► every rank
 *
 * A rank sends and receives the same amount as in a ring, twice (size - 1) / size of the array, when its
 * leaves make one node; each further node costs as much again in the first exchange.
 *
 * Where hosts have equally many ranks, the ranks of a host add first, so that each host sends a value once
 * and not once for each of its ranks. Rank j of a host has slice j, and rank j of host h piece h of it:
 *
 *     within a host      own nodes of slice j ──► rank j
 *     between hosts      the host's nodes of piece h of slice j ──► rank j of host h, which adds them all up
 *     between hosts      piece h of the sum ──► rank j of every host
 *     within a host      slice j of the sum ──► every rank */
#include "kernels/host/host_wire.h"

#include "kernels/host/host.h"

#define SLICE_FLOATS 64u /* slices begin at multiples of it */

/* ---- who holds what ---- */

static int learn_ranges(const mri_host_wire *w, mr_sum_node own, mr_sum_node *all, mr_error *err)
{
    const uint32_t size = w->wire.size;
    for (uint32_t r = 0; r < size; r++) {
        const bool self = r == w->wire.rank;
        w->send[r] = (mr_piece){&own, self ? 0 : sizeof own};
        w->receive[r] = (mr_piece){&all[r], self ? 0 : sizeof *all};
    }
    all[w->wire.rank] = own;
    return w->wire.exchange(w->wire.context, w->send, w->receive, err);
}

/* In the order of ranks, without a gap. */
static int check_ranges(const mri_host_wire *w, uint32_t leaves, const mr_sum_node *all, mr_error *err)
{
    uint32_t next = 0;
    for (uint32_t r = 0; r < w->wire.size; r++) {
        if (all[r].first != next || all[r].count == 0 || all[r].count > leaves - next)
            return mr_error_set(
                err, MR_EINVAL,
                "rank %u holds parts %u to %u of %u: expected them to begin with %u, behind those "
                "of the rank before, and at least one",
                r, all[r].first, all[r].first + all[r].count - 1, leaves, next);
        next += all[r].count;
    }
    if (next == leaves) return MR_OK;
    return mr_error_set(err, MR_EINVAL, "%u ranks hold %u parts: expected all %u", w->wire.size, next,
                        leaves);
}

static int make_programs(mri_host_wire *w, const struct mri_group_plan *plan, const mr_sum_node *range)
{
    const uint32_t me = w->wire.rank, nodes = plan->node_at[plan->count];
    uint32_t count = 0;
    for (uint32_t r = 0; r < w->wire.size; r++) {
        w->cover_at[r] = count;
        count += mr_sum_cover(plan->leaves, range[r].first, range[r].count, w->cover + count);
    }
    w->cover_at[w->wire.size] = count;
    const mr_sum_node all = {0, plan->leaves}, *mine = w->cover + w->cover_at[me];
    int rc = mri_sum_program_init(&w->root, plan->leaves, all, w->cover, count);
    const uint32_t own = w->cover_at[me + 1] - w->cover_at[me];
    w->direct = own == 1 && nodes == 1;
    w->own = calloc(own, sizeof *w->own);
    w->arrays = calloc(count, sizeof *w->arrays);
    if (!w->own || !w->arrays) return MR_ENOMEM;
    for (; rc == MR_OK && w->own_count < own; w->own_count++)
        rc = mri_sum_program_init(&w->own[w->own_count], plan->leaves, mine[w->own_count], plan->node, nodes);
    return rc;
}

static uint32_t hosts_of(const mri_host_wire *w) { return w->wire.size / w->per_host; }
static uint32_t first_here(const mri_host_wire *w) { return w->wire.rank / w->per_host * w->per_host; }

/* The nodes of hosts, from the nodes of their ranks. */
static int make_host_programs(mri_host_wire *w, const struct mri_group_plan *plan, const mr_sum_node *range)
{
    const uint32_t hosts = hosts_of(w), here = w->wire.rank / w->per_host, first = first_here(w);
    const mr_sum_node all = {0, plan->leaves};
    uint32_t count = 0;
    w->host_at = calloc(hosts + 1, sizeof *w->host_at);
    w->host_cover = calloc((size_t)hosts * MR_SUM_MOST_NODES, sizeof *w->host_cover);
    if (!w->host_at || !w->host_cover) return MR_ENOMEM;
    for (uint32_t h = 0; h < hosts; h++) {
        const mr_sum_node *from = &range[h * w->per_host], *to = from + w->per_host - 1;
        w->host_at[h] = count;
        count += mr_sum_cover(plan->leaves, from->first, to->first + to->count - from->first,
                              w->host_cover + count);
    }
    w->host_at[hosts] = count;
    const uint32_t own = w->host_at[here + 1] - w->host_at[here];
    w->host_own = calloc(own, sizeof *w->host_own);
    w->host_arrays = calloc(count, sizeof *w->host_arrays);
    if (!w->host_own || !w->host_arrays) return MR_ENOMEM;
    int rc = mri_sum_program_init(&w->host_root, plan->leaves, all, w->host_cover, count);
    for (; rc == MR_OK && w->host_own_count < own; w->host_own_count++)
        rc = mri_sum_program_init(&w->host_own[w->host_own_count], plan->leaves,
                                  w->host_cover[w->host_at[here] + w->host_own_count],
                                  w->cover + w->cover_at[first],
                                  w->cover_at[first + w->per_host] - w->cover_at[first]);
    return rc;
}

static uint32_t leaves_held(const struct mri_group_plan *plan)
{
    const mr_sum_node *last = &plan->node[plan->node_at[plan->count] - 1];
    return last->first + last->count - plan->first;
}

int mri_host_wire_init(mri_host_wire *w, const struct mri_group_plan *plan, mr_error *err)
{
    const uint32_t size = plan->wire.size;
    mr_sum_node *range = calloc(size, sizeof *range);
    *w = (mri_host_wire){.wire = plan->wire,
                         .per_host = plan->ranks_per_host,
                         .cover_at = calloc(size + 1, sizeof *w->cover_at),
                         .cover = calloc((size_t)size * MR_SUM_MOST_NODES, sizeof *w->cover),
                         .send = calloc(size, sizeof *w->send),
                         .receive = calloc(size, sizeof *w->receive)};
    int rc = range && w->cover_at && w->cover && w->send && w->receive ? MR_OK : MR_ENOMEM;
    const mr_sum_node own = {plan->first, leaves_held(plan)};
    if (rc) mr_error_set(err, rc, "no memory for a group of %u processes", size);
    if (rc == MR_OK) rc = learn_ranges(w, own, range, err);
    if (rc == MR_OK) rc = check_ranges(w, plan->leaves, range, err);
    if (rc == MR_OK) {
        rc = make_programs(w, plan, range);
        if (rc == MR_OK && w->per_host > 1) rc = make_host_programs(w, plan, range);
        if (rc) mr_error_set(err, rc, "no memory for the sums of %u processes", size);
    }
    free(range);
    return rc;
}

void mri_host_wire_fini(mri_host_wire *w)
{
    for (uint32_t i = 0; i < w->own_count; i++) mri_sum_program_fini(&w->own[i]);
    for (uint32_t i = 0; i < w->host_own_count; i++) mri_sum_program_fini(&w->host_own[i]);
    mri_sum_program_fini(&w->root);
    mri_sum_program_fini(&w->host_root);
    free(w->host_own);
    free(w->host_arrays);
    free(w->host_at);
    free(w->host_cover);
    free(w->own);
    free(w->arrays);
    free(w->cover_at);
    free(w->cover);
    free(w->send);
    free(w->receive);
    free(w->memory);
    *w = (mri_host_wire){0};
}

/* ---- sums ---- */

/* Of an array that is cut into parts of about the same size. */
static uint64_t part_begin(uint64_t count, uint32_t parts, uint32_t at)
{
    return at == parts ? count : count * at / parts / SLICE_FLOATS * SLICE_FLOATS;
}

static uint64_t part_floats(uint64_t count, uint32_t parts, uint32_t at)
{
    return part_begin(count, parts, at + 1) - part_begin(count, parts, at);
}

static uint64_t slice_begin(const mri_host_wire *w, uint32_t rank, uint64_t count)
{
    return part_begin(count, w->wire.size, rank);
}

static uint64_t slice_floats(const mri_host_wire *w, uint32_t rank, uint64_t count)
{
    return part_floats(count, w->wire.size, rank);
}

static uint32_t nodes_of(const mri_host_wire *w, uint32_t rank)
{
    return w->cover_at[rank + 1] - w->cover_at[rank];
}

static int make_room(mri_host_wire *w, uint64_t need, mr_error *err)
{
    if (need <= w->memory_floats) return MR_OK;
    free(w->memory);
    w->memory_floats = 0;
    w->memory = malloc((size_t)need * sizeof *w->memory);
    if (!w->memory)
        return mr_error_set(err, MR_ENOMEM, "no memory for a sum over %u processes: %llu bytes", w->wire.size,
                            (unsigned long long)(need * sizeof *w->memory));
    w->memory_floats = need;
    return MR_OK;
}

/* Pack the data for each rank r node by node, including this rank's own slice of its nodes. */
static float *make_own(const mri_host_wire *w, float *const *values, uint64_t count)
{
    const uint32_t me = w->wire.rank, nodes = nodes_of(w, me);
    float *at = w->memory;
    for (uint32_t r = 0; r < w->wire.size; r++) {
        const uint64_t begin = slice_begin(w, r, count), floats = slice_floats(w, r, count);
        w->send[r] = (mr_piece){at, r == me ? 0 : (size_t)(nodes * floats) * sizeof(float)};
        if (w->direct) w->send[r].data = values[0] + begin;
        for (uint32_t k = 0; k < nodes; k++) {
            if (r == me) w->arrays[w->cover_at[me] + k] = w->direct ? values[0] + begin : at;
            if (w->direct) continue;
            mri_host_sum(&w->own[k], values, begin, floats, at);
            at += floats;
        }
    }
    return at;
}

static void expect_nodes(const mri_host_wire *w, float *at, uint64_t floats)
{
    for (uint32_t r = 0; r < w->wire.size; r++) {
        const bool self = r == w->wire.rank;
        w->receive[r] = (mr_piece){at, self ? 0 : (size_t)(nodes_of(w, r) * floats) * sizeof(float)};
        for (uint32_t k = 0; !self && k < nodes_of(w, r); k++, at += floats)
            w->arrays[w->cover_at[r] + k] = at;
    }
}

static int send_slices(const mri_host_wire *w, float *out, uint64_t count, mr_error *err)
{
    const uint32_t me = w->wire.rank;
    for (uint32_t r = 0; r < w->wire.size; r++) {
        const size_t mine = (size_t)slice_floats(w, me, count) * sizeof(float),
                     theirs = (size_t)slice_floats(w, r, count) * sizeof(float);
        w->send[r] = (mr_piece){out + slice_begin(w, me, count), r == me ? 0 : mine};
        w->receive[r] = (mr_piece){out + slice_begin(w, r, count), r == me ? 0 : theirs};
    }
    return w->wire.exchange(w->wire.context, w->send, w->receive, err);
}

/* ---- sums whose hosts add first ---- */

/* A sum that is under way: this rank has piece `host` of slice `at`. */
typedef struct host_sum {
    uint64_t count;  /* of the array */
    uint64_t floats; /* of the slice */
    uint32_t hosts, host, at;
    float *memory; /* what is left of it */
} host_sum;

static float *take(host_sum *s, uint64_t floats)
{
    float *const at = s->memory;
    s->memory += floats;
    return at;
}

static void send_nothing(const mri_host_wire *w)
{
    memset(w->send, 0, w->wire.size * sizeof *w->send);
    memset(w->receive, 0, w->wire.size * sizeof *w->receive);
}

/* Own nodes of slice k to rank k of this host; theirs of this rank's slice. */
static int trade_nodes(mri_host_wire *w, float *const *values, host_sum *s, mr_error *err)
{
    const uint32_t me = w->wire.rank, first = first_here(w), nodes = nodes_of(w, me);
    send_nothing(w);
    for (uint32_t k = 0; k < w->per_host; k++) {
        const uint64_t begin = part_begin(s->count, w->per_host, k),
                       floats = part_floats(s->count, w->per_host, k);
        float *const own = w->direct ? values[0] + begin : take(s, nodes * floats);
        for (uint32_t i = 0; !w->direct && i < nodes; i++)
            mri_host_sum(&w->own[i], values, begin, floats, own + i * floats);
        for (uint32_t i = 0; k == s->at && i < nodes; i++) w->arrays[w->cover_at[me] + i] = own + i * floats;
        if (k != s->at) w->send[first + k] = (mr_piece){own, (size_t)(nodes * floats) * sizeof(float)};
    }
    for (uint32_t r = first; r < first + w->per_host; r++) {
        if (r == me) continue;
        float *const theirs = take(s, nodes_of(w, r) * s->floats);
        w->receive[r] = (mr_piece){theirs, (size_t)(nodes_of(w, r) * s->floats) * sizeof(float)};
        for (uint32_t i = 0; i < nodes_of(w, r); i++) w->arrays[w->cover_at[r] + i] = theirs + i * s->floats;
    }
    return w->wire.exchange(w->wire.context, w->send, w->receive, err);
}

/* This host's nodes of piece h to host h; theirs of this rank's piece. */
static int trade_pieces(mri_host_wire *w, host_sum *s, mr_error *err)
{
    const uint32_t nodes = w->host_at[s->host + 1] - w->host_at[s->host];
    const uint64_t mine = part_floats(s->floats, s->hosts, s->host);
    send_nothing(w);
    for (uint32_t h = 0; h < s->hosts; h++) {
        const uint64_t begin = part_begin(s->floats, s->hosts, h),
                       floats = part_floats(s->floats, s->hosts, h);
        float *const own = take(s, nodes * floats);
        for (uint32_t i = 0; i < nodes; i++)
            mri_host_sum(&w->host_own[i], w->arrays + w->cover_at[first_here(w)], begin, floats,
                         own + i * floats);
        if (h != s->host)
            w->send[h * w->per_host + s->at] = (mr_piece){own, (size_t)(nodes * floats) * sizeof(float)};
        for (uint32_t i = 0; h == s->host && i < nodes; i++)
            w->host_arrays[w->host_at[h] + i] = own + i * floats;
    }
    for (uint32_t h = 0; h < s->hosts; h++) {
        const uint32_t theirs = w->host_at[h + 1] - w->host_at[h];
        if (h == s->host) continue;
        float *const at = take(s, theirs * mine);
        w->receive[h * w->per_host + s->at] = (mr_piece){at, (size_t)(theirs * mine) * sizeof(float)};
        for (uint32_t i = 0; i < theirs; i++) w->host_arrays[w->host_at[h] + i] = at + i * mine;
    }
    return w->wire.exchange(w->wire.context, w->send, w->receive, err);
}

/* Pieces of this rank's slice of the sum between hosts. */
static int share_pieces(mri_host_wire *w, const host_sum *s, float *slice, mr_error *err)
{
    send_nothing(w);
    for (uint32_t h = 0; h < s->hosts; h++) {
        const uint32_t r = h * w->per_host + s->at;
        if (h == s->host) continue;
        w->send[r] = (mr_piece){slice + part_begin(s->floats, s->hosts, s->host),
                                (size_t)part_floats(s->floats, s->hosts, s->host) * sizeof(float)};
        w->receive[r] = (mr_piece){slice + part_begin(s->floats, s->hosts, h),
                                   (size_t)part_floats(s->floats, s->hosts, h) * sizeof(float)};
    }
    return w->wire.exchange(w->wire.context, w->send, w->receive, err);
}

/* Slices of the sum within the host. */
static int share_slices(mri_host_wire *w, const host_sum *s, float *out, mr_error *err)
{
    const uint32_t first = first_here(w);
    send_nothing(w);
    for (uint32_t k = 0; k < w->per_host; k++) {
        if (k == s->at) continue;
        w->send[first + k] =
            (mr_piece){out + part_begin(s->count, w->per_host, s->at), (size_t)s->floats * sizeof(float)};
        w->receive[first + k] = (mr_piece){out + part_begin(s->count, w->per_host, k),
                                           (size_t)part_floats(s->count, w->per_host, k) * sizeof(float)};
    }
    return w->wire.exchange(w->wire.context, w->send, w->receive, err);
}

/* Of the first two exchanges. */
static uint64_t host_sum_floats(const mri_host_wire *w, const host_sum *s)
{
    const uint32_t me = w->wire.rank, first = first_here(w);
    const uint32_t of_host = w->cover_at[first + w->per_host] - w->cover_at[first],
                   made = w->host_at[s->host + 1] - w->host_at[s->host];
    return (w->direct ? 0 : nodes_of(w, me) * s->count) + (of_host - nodes_of(w, me)) * s->floats +
           made * s->floats + (w->host_at[s->hosts] - made) * part_floats(s->floats, s->hosts, s->host);
}

static int sum_in_hosts(mri_host_wire *w, float *const *values, float *out, uint64_t count, mr_error *err)
{
    const uint32_t at = w->wire.rank % w->per_host;
    host_sum s = {.count = count,
                  .floats = part_floats(count, w->per_host, at),
                  .hosts = hosts_of(w),
                  .host = w->wire.rank / w->per_host,
                  .at = at};
    float *const slice = out + part_begin(count, w->per_host, at);
    int rc = make_room(w, host_sum_floats(w, &s), err);
    s.memory = w->memory;
    if (rc == MR_OK) rc = trade_nodes(w, values, &s, err);
    if (rc == MR_OK) rc = trade_pieces(w, &s, err);
    if (rc) return rc;
    mri_host_sum(&w->host_root, w->host_arrays, 0, part_floats(s.floats, s.hosts, s.host),
                 slice + part_begin(s.floats, s.hosts, s.host));
    rc = share_pieces(w, &s, slice, err);
    return rc ? rc : share_slices(w, &s, out, err);
}

static int sum_at_once(mri_host_wire *w, float *const *values, float *out, uint64_t count, mr_error *err)
{
    const uint32_t me = w->wire.rank, others = w->cover_at[w->wire.size] - nodes_of(w, me);
    const uint64_t begin = slice_begin(w, me, count), floats = slice_floats(w, me, count);
    int rc = make_room(w, (w->direct ? 0 : nodes_of(w, me) * count) + others * floats, err);
    if (rc) return rc;
    expect_nodes(w, make_own(w, values, count), floats);
    rc = w->wire.exchange(w->wire.context, w->send, w->receive, err);
    if (rc) return rc;
    mri_host_sum(&w->root, w->arrays, 0, floats, out + begin);
    return send_slices(w, out, count, err);
}

int mri_host_wire_sum(mri_host_wire *w, float *const *values, float *const *out, uint32_t devices,
                      uint64_t count, mr_error *err)
{
    const int rc = w->per_host > 1 ? sum_in_hosts(w, values, out[0], count, err)
                                   : sum_at_once(w, values, out[0], count, err);
    for (uint32_t d = 1; rc == MR_OK && d < devices; d++)
        memcpy(out[d], out[0], (size_t)count * sizeof(float));
    return rc;
}

int mri_host_wire_broadcast(mri_host_wire *w, float *values, uint64_t count, mr_error *err)
{
    const size_t bytes = (size_t)count * sizeof(float);
    for (uint32_t r = 0; r < w->wire.size; r++) {
        w->send[r] = (mr_piece){values, w->wire.rank == 0 && r != 0 ? bytes : 0};
        w->receive[r] = (mr_piece){values, w->wire.rank != 0 && r == 0 ? bytes : 0};
    }
    return w->wire.exchange(w->wire.context, w->send, w->receive, err);
}
