/* tests/kernels/test_sum_tree.c: sums have one order, however their leaves lie on devices and processes. The
 * processes are threads here, and the wire between them is memory. */
#include <pthread.h>

#include "kernels/backend/sum_tree.h"
#include "kernels/host/host.h"
#include "millrace/kernels.h"
#include "mrt.h"

#define MOST_LEAVES  40u
#define MOST_RANKS   7u
#define MOST_DEVICES 4u

static uint64_t draw_state;

static uint32_t draw(uint32_t below)
{
    draw_state = draw_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((draw_state >> 33) % below);
}

/* Values of very different size: any other order has other bits. */
static void fill(float *v, uint64_t count, uint64_t seed)
{
    mrt_noise(v, count * sizeof *v, seed);
    for (uint64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &v[i], sizeof bits);
        bits = (bits & 0x807FFFFFu) | (uint32_t)(120 + bits % 13) << 23;
        memcpy(&v[i], &bits, sizeof bits);
    }
}

static float tree(float *const *leaf, uint32_t first, uint32_t n, uint64_t at)
{
    uint32_t half = 1;
    if (n == 1) return leaf[first][at];
    while (2 * half < n) half *= 2;
    return tree(leaf, first, half, at) + tree(leaf, first + half, n - half, at);
}

/* ---- covers and programs ---- */

static void any_cut_makes_the_whole(void **state)
{
    (void)state;
    for (uint32_t leaves = 1; leaves <= MOST_LEAVES; leaves++)
        for (int k = 0; k < 20; k++) {
            mr_sum_node have[MOST_LEAVES * 2];
            uint32_t count = 0, first = 0;
            while (first < leaves) {
                const uint32_t n = 1 + draw(leaves - first),
                               nodes = mr_sum_cover(leaves, first, n, have + count);
                MRT_TRUE(nodes > 0 && nodes <= MR_SUM_MOST_NODES);
                MRT_EQ(mr_sum_cover(leaves, first, n, NULL), nodes);
                for (uint32_t i = 0; i < nodes; i++) {
                    MRT_EQ(have[count + i].first, first);
                    MRT_TRUE(mri_sum_is_node(leaves, have[count + i]));
                    first += have[count + i].count;
                }
                count += nodes;
            }
            mri_sum_program p;
            const mr_sum_node all = {0, leaves};
            MRT_EQ(mri_sum_program_init(&p, leaves, all, have, count), MR_OK);
            MRT_TRUE(p.depth <= MRI_SUM_DEPTH && p.count <= 2 * count);
            mri_sum_program_fini(&p);
            if (count < 2) continue;
            MRT_EQ(mri_sum_program_init(&p, leaves, all, have, count - 1), MR_EINVAL);
            mri_sum_program_fini(&p);
        }
}

static void what_is_no_range_has_no_cover(void **state)
{
    (void)state;
    MRT_EQ(mr_sum_cover(8, 0, 0, NULL), 0);
    MRT_EQ(mr_sum_cover(8, 8, 1, NULL), 0);
    MRT_EQ(mr_sum_cover(8, 7, 2, NULL), 0);
    MRT_EQ(mr_sum_cover(8, 1, UINT32_MAX, NULL), 0);
    MRT_EQ(mr_sum_cover(MR_SUM_MOST_LEAVES + 1, 0, 1, NULL), 0);
    MRT_EQ(mr_sum_cover(MR_SUM_MOST_LEAVES, 1, MR_SUM_MOST_LEAVES - 2, NULL), 30);
    MRT_TRUE(!mri_sum_is_node(8, (mr_sum_node){1, 2}));
    MRT_TRUE(!mri_sum_is_node(8, (mr_sum_node){8, 1}));
    MRT_TRUE(!mri_sum_is_node(8, (mr_sum_node){0, 9}));
}

static void the_deepest_program_has_its_stack(void **state)
{
    (void)state;
    mr_sum_node *have = calloc(MR_SUM_MOST_LEAVES, sizeof *have);
    mri_sum_program p;
    /* more leaves than the search is made for: nodes of one, then of two, ... on the right edge */
    uint32_t count = 0;
    for (uint32_t first = 0, n = MR_SUM_MOST_LEAVES / 2; n > 0; first += n, n /= 2)
        have[count++] = (mr_sum_node){first, n};
    have[count++] = (mr_sum_node){MR_SUM_MOST_LEAVES - 1, 1};
    MRT_EQ(mri_sum_program_init(&p, MR_SUM_MOST_LEAVES, (mr_sum_node){0, MR_SUM_MOST_LEAVES}, have, count),
           MR_OK);
    MRT_TRUE(p.depth <= MRI_SUM_DEPTH);
    mri_sum_program_fini(&p);
    free(have);
}

/* ---- groups of several processes ---- */

/* Pieces that the threads exchange. */
struct market {
    pthread_barrier_t meet;
    const mr_piece *send[MOST_RANKS], *receive[MOST_RANKS];
    uint32_t ranks, per_host;   /* per_host 0: hosts are not known */
    uint64_t bytes[MOST_RANKS]; /* sent by each, */
    uint64_t far[MOST_RANKS];   /* and of them to other hosts */
};

struct trader {
    struct market *market;
    uint32_t rank;
};

static int trade(void *context, const mr_piece *send, const mr_piece *receive, mr_error *err)
{
    const struct trader *t = context;
    struct market *m = t->market;
    int rc = MR_OK;
    m->send[t->rank] = send;
    m->receive[t->rank] = receive;
    pthread_barrier_wait(&m->meet);
    for (uint32_t r = 0; r < m->ranks; r++) {
        if (r == t->rank) continue;
        if (m->send[r][t->rank].bytes != receive[r].bytes)
            rc = mr_error_set(err, MR_EINVAL, "rank %u sends %zu bytes, %zu were expected", r,
                              m->send[r][t->rank].bytes, receive[r].bytes);
        else if (receive[r].bytes) memcpy(receive[r].data, m->send[r][t->rank].data, receive[r].bytes);
        m->bytes[t->rank] += send[r].bytes;
        if (m->per_host && r / m->per_host != t->rank / m->per_host) m->far[t->rank] += send[r].bytes;
    }
    pthread_barrier_wait(&m->meet);
    return rc;
}

struct process {
    pthread_t thread;
    struct trader trader;
    uint32_t leaves, first, devices, held[MOST_DEVICES];
    float *const *leaf;    /* of the whole sum */
    const float *expected; /* count */
    uint64_t count;
    char wrong[900];
};

/* A device's contribution to its group: its nodes, each added up by the definition. */
static float *node_of(const struct process *p, mr_sum_node node)
{
    float *v = malloc(p->count * sizeof *v);
    for (uint64_t i = 0; i < p->count; i++) v[i] = tree(p->leaf, node.first, node.count, i);
    return v;
}

static void *run_process(void *context)
{
    struct process *p = context;
    const mr_wire wire = {p->trader.rank, p->trader.market->ranks, &p->trader, trade};
    mr_device **devices = NULL;
    mr_stream *streams[MOST_DEVICES];
    float *values[MOST_DEVICES * MR_SUM_MOST_NODES], *last[MOST_DEVICES];
    mr_group *group = NULL;
    mr_error err = MR_ERROR_INIT;
    mr_devices_config dev;
    mr_group_config cfg;
    char spec[16];
    uint32_t opened = 0, count = 0, first = p->first;
    snprintf(spec, sizeof spec, "cpu:%u", p->devices);
    mr_devices_defaults(&dev);
    dev.compute_threads = p->devices;
    int rc = mr_devices_open(&devices, &opened, spec, &dev, &err);
    for (uint32_t d = 0; rc == MR_OK && d < p->devices; d++)
        rc = mr_stream_create(&streams[d], devices[d], MR_STREAM_EXCHANGE, &err);
    mr_group_defaults(&cfg);
    cfg.streams = streams;
    cfg.count = p->devices;
    cfg.leaves = p->leaves;
    cfg.first = p->first;
    cfg.held = p->held;
    cfg.wire = wire.size > 1 ? &wire : NULL;
    cfg.ranks_per_host = p->trader.market->per_host;
    if (rc == MR_OK) rc = mr_group_open(&group, &cfg, &err);
    for (uint32_t d = 0; d < p->devices; d++) {
        mr_sum_node nodes[MR_SUM_MOST_NODES];
        const uint32_t n = mr_sum_cover(p->leaves, first, p->held[d], nodes);
        for (uint32_t k = 0; k < n; k++) values[count++] = node_of(p, nodes[k]);
        last[d] = values[count - 1];
        first += p->held[d];
    }
    if (rc == MR_OK) rc = mr_group_sum_async(group, values, p->count);
    for (uint32_t d = 0; rc == MR_OK && d < p->devices; d++) {
        rc = mr_stream_sync(streams[d], &err);
        if (rc == MR_OK && memcmp(last[d], p->expected, p->count * sizeof(float)) != 0)
            snprintf(p->wrong, sizeof p->wrong, "rank %u device %u: another sum", p->trader.rank, d);
    }
    /* and rank 0's first device broadcasts to all */
    if (rc == MR_OK && p->trader.rank > 0)
        for (uint32_t d = 0; d < p->devices; d++) memset(last[d], 0, p->count * sizeof(float));
    if (rc == MR_OK) rc = mr_group_broadcast_async(group, last, p->count, 0);
    for (uint32_t d = 0; rc == MR_OK && d < p->devices; d++) {
        rc = mr_stream_sync(streams[d], &err);
        if (rc == MR_OK && memcmp(last[d], p->expected, p->count * sizeof(float)) != 0)
            snprintf(p->wrong, sizeof p->wrong, "rank %u device %u: another broadcast", p->trader.rank, d);
    }
    if (rc) snprintf(p->wrong, sizeof p->wrong, "rank %u: %s", p->trader.rank, err.text);
    for (uint32_t d = 0; d < p->devices; d++) mr_stream_destroy(streams[d]);
    mr_group_destroy(group);
    mr_devices_close(devices, opened);
    for (uint32_t i = 0; i < count; i++) free(values[i]);
    return NULL;
}

static void sum_over(uint32_t ranks, uint32_t per_host, uint32_t leaves, uint64_t count)
{
    struct market market = {.ranks = ranks, .per_host = per_host};
    struct process p[MOST_RANKS] = {{0}};
    float *leaf[MOST_LEAVES], *expected = malloc(count * sizeof *expected);
    uint32_t first = 0;
    pthread_barrier_init(&market.meet, NULL, ranks);
    for (uint32_t i = 0; i < leaves; i++) {
        leaf[i] = malloc(count * sizeof **leaf);
        fill(leaf[i], count, 100 * leaves + i);
    }
    for (uint64_t i = 0; i < count; i++) expected[i] = tree(leaf, 0, leaves, i);
    for (uint32_t r = 0; r < ranks; r++) {
        const uint32_t after = ranks - r - 1, left = leaves - first - after,
                       mine = r + 1 == ranks ? left : 1 + draw(left);
        p[r] = (struct process){.trader = {&market, r},
                                .leaves = leaves,
                                .first = first,
                                .devices = 1 + draw(mine < MOST_DEVICES ? mine : MOST_DEVICES),
                                .leaf = leaf,
                                .expected = expected,
                                .count = count};
        for (uint32_t d = 0, dealt = 0; d < p[r].devices; d++) {
            const uint32_t rest = mine - dealt, more = p[r].devices - d - 1;
            p[r].held[d] = more ? 1 + draw(rest - more) : rest;
            dealt += p[r].held[d];
        }
        first += mine;
    }
    for (uint32_t r = 0; r < ranks; r++) pthread_create(&p[r].thread, NULL, run_process, &p[r]);
    for (uint32_t r = 0; r < ranks; r++) pthread_join(p[r].thread, NULL);
    for (uint32_t r = 0; r < ranks; r++) MRT_STR(p[r].wrong, "");
    for (uint32_t i = 0; i < leaves; i++) free(leaf[i]);
    free(expected);
    pthread_barrier_destroy(&market.meet);
}

static void sums_are_the_same_bits_on_any_processes(void **state)
{
    (void)state;
    static const uint64_t counts[] = {1, 63, 5000, 100003};
    for (uint32_t ranks = 1; ranks <= MOST_RANKS; ranks++)
        for (int k = 0; k < 6; k++)
            sum_over(ranks, 0, ranks + draw(k % 2 ? 20 : 4), counts[(ranks + (uint32_t)k) % 4]);
    static const struct {
        uint32_t ranks, per_host;
    } hosts[] = {{4, 2}, {6, 2}, {6, 3}, {5, 2}, {4, 4}};
    for (size_t i = 0; i < MRI_ARRAY_COUNT(hosts); i++)
        for (int k = 0; k < 4; k++)
            sum_over(hosts[i].ranks, hosts[i].per_host, hosts[i].ranks + draw(k % 2 ? 20 : 4), counts[k]);
}

/* With one leaf a rank, each sends the same number of bytes as in a ring; if two ranks of a host add first, a
 * host sends the bytes of one rank of such a ring. */
static void aligned_ranks_send_no_more_than_a_ring(void **state)
{
    (void)state;
    for (uint32_t k = 1; k <= 3; k++) {
        const uint32_t ranks = k == 1 ? 2 : 4, hosts = 2;
        struct market market = {.ranks = ranks, .per_host = k == 3 ? ranks / hosts : 0};
        struct process p[MOST_RANKS] = {{0}};
        float *leaf[MOST_RANKS], *expected;
        const uint64_t count = 64000;
        pthread_barrier_init(&market.meet, NULL, ranks);
        for (uint32_t i = 0; i < ranks; i++) {
            leaf[i] = malloc(count * sizeof **leaf);
            fill(leaf[i], count, i);
        }
        expected = malloc(count * sizeof *expected);
        for (uint64_t i = 0; i < count; i++) expected[i] = tree(leaf, 0, ranks, i);
        for (uint32_t r = 0; r < ranks; r++) {
            p[r] = (struct process){.trader = {&market, r},
                                    .leaves = ranks,
                                    .first = r,
                                    .devices = 1,
                                    .held = {1},
                                    .leaf = leaf,
                                    .expected = expected,
                                    .count = count};
            pthread_create(&p[r].thread, NULL, run_process, &p[r]);
        }
        for (uint32_t r = 0; r < ranks; r++) pthread_join(p[r].thread, NULL);
        for (uint32_t r = 0; r < ranks; r++) {
            const uint64_t broadcast = r ? 0 : (ranks - 1) * count * sizeof(float),
                           ranges = (ranks - 1) * sizeof(mr_sum_node);
            MRT_STR(p[r].wrong, "");
            if (!market.per_host)
                MRT_EQ(market.bytes[r],
                       2 * (ranks - 1) * (count / ranks) * sizeof(float) + broadcast + ranges);
            else
                MRT_EQ(market.far[r], 2 * (count / ranks) * sizeof(float) +
                                          (r ? 0 : market.per_host * count * sizeof(float)) +
                                          market.per_host * sizeof(mr_sum_node));
        }
        for (uint32_t i = 0; i < ranks; i++) free(leaf[i]);
        free(expected);
        pthread_barrier_destroy(&market.meet);
    }
}

static void groups_refuse_what_does_not_fit(void **state)
{
    (void)state;
    mr_device **devices = NULL;
    mr_stream *stream;
    uint32_t count;
    mr_error err = MR_ERROR_INIT;
    mr_devices_config dev;
    mr_group_config cfg;
    mr_group *group;
    const uint32_t held = 3;
    struct market market = {.ranks = 1};
    struct trader trader = {&market, 0};
    mr_wire wire = {2, 2, &trader, trade};
    mr_devices_defaults(&dev);
    MRT_OK(mr_devices_open(&devices, &count, "cpu", &dev, &err), &err);
    MRT_OK(mr_stream_create(&stream, devices[0], MR_STREAM_EXCHANGE, &err), &err);
    mr_group_defaults(&cfg);
    cfg.streams = &stream;
    cfg.count = 1;
    cfg.leaves = 4;
    cfg.held = &held;
    MRT_EQ(mr_group_open(&group, &cfg, &err), MR_EINVAL);
    MRT_HAS(err.text, "nobody's");
    cfg.leaves = 2;
    MRT_EQ(mr_group_open(&group, &cfg, &err), MR_EINVAL);
    MRT_HAS(err.text, "device 0 holds leaves 0 to 3 of 2");
    cfg.leaves = 3;
    cfg.wire = &wire;
    MRT_EQ(mr_group_open(&group, &cfg, &err), MR_EINVAL);
    MRT_HAS(err.text, "rank 2 of 2");
    cfg.wire = NULL;
    MRT_OK(mr_group_open(&group, &cfg, &err), &err);
    float value = 3, *values = &value;
    MRT_EQ(mr_group_sum_async(group, &values, 1), MR_OK); /* the whole tree: nothing to add */
    MRT_OK(mr_stream_sync(stream, &err), &err);
    MRT_TRUE(value == 3);
    MRT_EQ(mr_add_async(stream, NULL, &value, 1), MR_EINVAL);
    MRT_EQ(mr_add_async(stream, &value, &value, 1), MR_OK);
    MRT_OK(mr_stream_sync(stream, &err), &err);
    MRT_TRUE(value == 6);
    mr_group_destroy(group);
    mr_stream_destroy(stream);
    mr_devices_close(devices, count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_cut_makes_the_whole),
        cmocka_unit_test(what_is_no_range_has_no_cover),
        cmocka_unit_test(the_deepest_program_has_its_stack),
        cmocka_unit_test(sums_are_the_same_bits_on_any_processes),
        cmocka_unit_test(aligned_ranks_send_no_more_than_a_ring),
        cmocka_unit_test(groups_refuse_what_does_not_fit),
    };
    return mrt_run(tests);
}
