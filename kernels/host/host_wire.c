/* kernels/host/host_wire.c: a sum over processes in two exchanges:
 *
 *     every rank   its own nodes of slice s ──► rank s          each element of the sum is made by one rank,
 *     rank s       all nodes of slice s, added up by the tree   in the order of the tree
 *     rank s       slice s of the sum ──► every rank
 *
 * A rank sends and receives the same amount as in a ring, twice (size - 1) / size of the array, when its
 * leaves make one node; each further node costs as much again in the first exchange. */
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
        if (rc) mr_error_set(err, rc, "no memory for the sums of %u processes", size);
    }
    free(range);
    return rc;
}

void mri_host_wire_fini(mri_host_wire *w)
{
    for (uint32_t i = 0; i < w->own_count; i++) mri_sum_program_fini(&w->own[i]);
    mri_sum_program_fini(&w->root);
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

static uint64_t slice_begin(const mri_host_wire *w, uint32_t rank, uint64_t count)
{
    return rank == w->wire.size ? count : count * rank / w->wire.size / SLICE_FLOATS * SLICE_FLOATS;
}

static uint64_t slice_floats(const mri_host_wire *w, uint32_t rank, uint64_t count)
{
    return slice_begin(w, rank + 1, count) - slice_begin(w, rank, count);
}

static uint32_t nodes_of(const mri_host_wire *w, uint32_t rank)
{
    return w->cover_at[rank + 1] - w->cover_at[rank];
}

/* For every node of this rank, all of it; for every node of the others, this rank's slice. */
static int make_room(mri_host_wire *w, uint64_t count, mr_error *err)
{
    const uint32_t me = w->wire.rank, others = w->cover_at[w->wire.size] - nodes_of(w, me);
    const uint64_t need = (w->direct ? 0 : nodes_of(w, me) * count) + others * slice_floats(w, me, count);
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

int mri_host_wire_sum(mri_host_wire *w, float *const *values, float *const *out, uint32_t devices,
                      uint64_t count, mr_error *err)
{
    const uint32_t me = w->wire.rank;
    const uint64_t begin = slice_begin(w, me, count), floats = slice_floats(w, me, count);
    int rc = make_room(w, count, err);
    if (rc) return rc;
    expect_nodes(w, make_own(w, values, count), floats);
    rc = w->wire.exchange(w->wire.context, w->send, w->receive, err);
    if (rc) return rc;
    mri_host_sum(&w->root, w->arrays, 0, floats, out[0] + begin);
    rc = send_slices(w, out[0], count, err);
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
