/* tools/commands/bench_exchange.c: see bench_exchange.h. Each size is summed in turns with the others, so
 * that a busy moment meets all of them; a round takes as long as its slowest process. */
#include "tools/commands/bench_exchange.h"

#include <stdio.h>
#include <stdlib.h>

#include "tools/cli/clock.h"
#include "tools/cli/exit.h"
#include "tools/cli/json.h"
#include "tools/cli/output.h"

enum { MOST_ROUNDS = 64 };
static const uint64_t sizes[] = {64u << 10, 1u << 20, 5003432u, 25u << 20, 102228128u}; /* N1 and ResNet-50
                                                                                           among them */
#define SIZES (sizeof sizes / sizeof *sizes)

typedef struct exchange_run {
    tool_session *s;
    mr_group *group;
    mr_stream *streams[MR_LOADER_MAX_PARTS];
    float *values[MR_LOADER_MAX_PARTS];
    double ms[SIZES][MOST_ROUNDS];
} exchange_run;

static int open_run(exchange_run *r, mr_error *err)
{
    const tool_session *s = r->s;
    const mr_wire wire = mr_wire_of(s->world);
    mr_group_config cfg;
    int rc = MR_OK;
    for (uint32_t d = 0; rc == MR_OK && d < s->device_count; d++) {
        void *memory = NULL;
        rc = mr_stream_create(&r->streams[d], s->devices[d], MR_STREAM_EXCHANGE, err);
        if (rc == MR_OK) rc = mr_device_alloc(s->devices[d], sizes[SIZES - 1], &memory, err);
        r->values[d] = memory;
        if (rc == MR_OK) rc = mr_fill_async(r->streams[d], memory, 0, sizes[SIZES - 1]);
    }
    mr_group_defaults(&cfg);
    cfg.streams = r->streams;
    cfg.count = s->device_count;
    cfg.leaves = s->parts.all;
    cfg.first = s->parts.first;
    cfg.wire = &wire;
    return rc ? rc : mr_group_open(&r->group, &cfg, err);
}

static int wait_all(const exchange_run *r, mr_error *err)
{
    int rc = MR_OK;
    for (uint32_t d = 0; rc == MR_OK && d < r->s->device_count; d++) rc = mr_stream_sync(r->streams[d], err);
    return rc;
}

/* The first round of a size is warm-up. */
static int sum_once(exchange_run *r, size_t k, uint32_t round, mr_error *err)
{
    mr_world *world = r->s->world;
    int rc = wait_all(r, err);
    if (rc == MR_OK && world) rc = mr_world_barrier(world, WORLD_HOST_CALLS, err);
    const uint64_t start = clock_ns();
    if (rc == MR_OK) rc = mr_group_sum_async(r->group, r->values, sizes[k] / sizeof(float));
    if (rc == MR_OK) rc = wait_all(r, err);
    if (rc == MR_OK && world) rc = mr_world_barrier(world, WORLD_HOST_CALLS, err); /* the slowest, too */
    if (round) r->ms[k][round - 1] = 1e-6 * (double)(clock_ns() - start);
    return rc;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void report(exchange_run *r, size_t k, uint32_t rounds, bool json)
{
    const uint32_t ranks = r->s->world ? mr_world_size(r->s->world) : 1;
    qsort(r->ms[k], rounds, sizeof *r->ms[k], by_value);
    const double median = r->ms[k][rounds / 2], least = r->ms[k][0];
    if (!json) {
        printf("%6.2f MB over %u ranks, %u devices here: %8.3f ms (least %.3f), %.2f GB/s\n",
               1e-6 * (double)sizes[k], ranks, r->s->device_count, median, least,
               1e-6 * (double)sizes[k] / median);
        return;
    }
    json_line j = json_begin(stdout, "bench");
    json_text(&j, "what", "exchange");
    json_u64(&j, "bytes", sizes[k]);
    json_u64(&j, "ranks", ranks);
    json_u64(&j, "devices", r->s->device_count);
    json_u64(&j, "rounds", rounds);
    json_real(&j, "ms", median);
    json_real(&j, "ms_least", least);
    json_end(&j);
}

static void close_run(exchange_run *r)
{
    for (uint32_t d = 0; d < r->s->device_count; d++) mr_stream_destroy(r->streams[d]);
    mr_group_destroy(r->group);
    for (uint32_t d = 0; d < r->s->device_count; d++) mr_device_free(r->s->devices[d], r->values[d]);
    free(r);
}

static int measure(exchange_run *r, const session_args *shared, uint32_t rounds)
{
    mr_error err = MR_ERROR_INIT;
    int status = session_open_devices(r->s, &shared->device);
    if (status) return status;
    int rc = open_run(r, &err);
    for (uint32_t round = 0; rc == MR_OK && round <= rounds; round++)
        for (size_t k = 0; rc == MR_OK && k < SIZES; k++) rc = sum_once(r, k, round, &err);
    if (rc) return exit_status(rc, &err);
    for (size_t k = 0; k < SIZES; k++) report(r, k, rounds, shared->output.json);
    return EXIT_DONE;
}

int bench_exchange(tool_session *s, const rank_args *rank, const session_args *shared, uint32_t rounds)
{
    exchange_run *r = calloc(1, sizeof *r);
    if (!r) return exit_no_memory("the exchange");
    tool_world world;
    r->s = s;
    int status = world_join(&world, rank);
    s->world = world.world;
    if (status == EXIT_DONE) status = measure(r, shared, rounds < MOST_ROUNDS ? rounds : MOST_ROUNDS);
    close_run(r);
    s->world = NULL;
    return world_leave(&world, status);
}
