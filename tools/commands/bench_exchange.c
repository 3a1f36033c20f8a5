/* tools/commands/bench_exchange.c: see bench_exchange.h. Every size is summed over every wire in turns with
 * the others, so that a busy moment meets all of them; a round takes as long as its slowest process. Each
 * wire has a world, streams and a group of its own; the arrays are the same. */
#include "tools/commands/bench_exchange.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "settings/limits.h"
#include "tools/cli/clock.h"
#include "tools/cli/exit.h"
#include "tools/cli/json.h"
#include "tools/cli/output.h"

enum { MOST_SIZES = 16, MOST_WIRES = 4 };

typedef struct exchange_lane {
    tool_world world;
    mr_group *group;
    mr_stream *streams[MR_LOADER_MAX_PARTS];
    double ms[MOST_SIZES][MRI_ROUNDS_MOST];
} exchange_lane;

typedef struct exchange_run {
    tool_session *s;
    uint64_t sizes[MOST_SIZES]; /* in bytes */
    uint32_t wires[MOST_WIRES]; /* mr_wire_choice */
    size_t size_count, wire_count;
    exchange_lane lanes[MOST_WIRES];
    float *values[MR_LOADER_MAX_PARTS];
} exchange_run;

/* ---- the measured sizes and wires ---- */

typedef struct list_item {
    uint64_t size;
    uint32_t wire;
} list_item;

static const opt size_item = MRI_ROW(list_item, size, SIZE, .option = "sizes", .least = 4, .most = 0x1p32);

/* The items of a list "A,B", each by the rule of `item`. Returns their number; 0: an error was printed. */
static size_t read_list(const opt *item, const char *text, list_item *out, size_t most)
{
    char word[32], message[256];
    size_t count = 0;
    for (const char *at = text;; at++) {
        const size_t bytes = strcspn(at, ",");
        snprintf(word, sizeof word, "%.*s", (int)(bytes < sizeof word ? bytes : sizeof word - 1), at);
        if (count == most) {
            say("bench exchange: --%s has more than %zu entries", item->option, most);
            return 0;
        }
        if (!mri_setting_parse(item, &out[count], word, message, sizeof message)) {
            say("bench exchange: %s", message);
            return 0;
        }
        count++;
        at += bytes;
        if (!*at) return count;
    }
}

static int read_args(exchange_run *r, const exchange_args *a, const rank_args *rank)
{
    static const char usual[] = "65536,1048576,5003432,26214400,102228128"; /* N1 and ResNet-50 among them */
    list_item sizes[MOST_SIZES], wires[MOST_WIRES] = {{.wire = rank->wire}};
    const opt wire_item =
        MRI_ROW(list_item, wire, CHOICE, .option = "wires", .choices = group_option("wire")->choices);
    r->size_count = read_list(&size_item, a->sizes ? a->sizes : usual, sizes, MOST_SIZES);
    r->wire_count = a->wires ? read_list(&wire_item, a->wires, wires, MOST_WIRES) : 1;
    for (size_t k = 0; k < r->size_count; k++) r->sizes[k] = sizes[k].size;
    for (size_t w = 0; w < r->wire_count; w++) r->wires[w] = wires[w].wire;
    return r->size_count && r->wire_count ? EXIT_DONE : EXIT_MISUSED;
}

/* ---- open, close ---- */

static uint64_t largest(const exchange_run *r)
{
    uint64_t most = 0;
    for (size_t k = 0; k < r->size_count; k++)
        if (r->sizes[k] > most) most = r->sizes[k];
    return most / sizeof(float) * sizeof(float);
}

static int check_world(void *world, mr_error *err) { return mr_world_check(world, err); }

static int open_lane(exchange_run *r, exchange_lane *lane, mr_error *err)
{
    const tool_session *s = r->s;
    const mr_wire wire = mr_wire_of(lane->world.world);
    mr_group_config cfg;
    int rc = MR_OK;
    for (uint32_t d = 0; rc == MR_OK && d < s->device_count; d++)
        rc = mr_stream_create(&lane->streams[d], s->devices[d], MR_STREAM_EXCHANGE, err);
    for (uint32_t d = 0; rc == MR_OK && d < s->device_count; d++) {
        void *memory = r->values[d];
        if (!memory) rc = mr_device_alloc(s->devices[d], largest(r), &memory, err);
        r->values[d] = memory;
        if (rc == MR_OK) rc = mr_fill_async(lane->streams[d], memory, 0, largest(r));
    }
    mr_group_defaults(&cfg);
    cfg.streams = lane->streams;
    cfg.count = s->device_count;
    cfg.leaves = s->parts.all;
    cfg.first = s->parts.first;
    cfg.wire = &wire;
    const mr_wire_choice chosen = mr_world_wire(lane->world.world);
    const bool gpus = strcmp(mr_device_info_of(s->devices[0])->kind, "cuda") == 0;
    cfg.nccl_optional = chosen == MR_WIRE_AUTO && gpus;
    cfg.nccl = chosen == MR_WIRE_NCCL || cfg.nccl_optional;
    cfg.connect_s = mr_world_meet_s(lane->world.world);
    cfg.check = check_world;
    cfg.ranks_per_host = mr_world_ranks_per_host(lane->world.world);
    return rc ? rc : mr_group_open(&lane->group, &cfg, err);
}

static int wait_all(const exchange_run *r, const exchange_lane *lane, mr_error *err)
{
    int rc = MR_OK;
    for (uint32_t d = 0; rc == MR_OK && d < r->s->device_count; d++)
        rc = mr_stream_sync(lane->streams[d], err);
    return rc;
}

static void close_run(exchange_run *r)
{
    for (size_t w = 0; w < r->wire_count; w++) {
        for (uint32_t d = 0; d < r->s->device_count; d++) mr_stream_destroy(r->lanes[w].streams[d]);
        mr_group_destroy(r->lanes[w].group);
    }
    for (uint32_t d = 0; d < r->s->device_count; d++) mr_device_free(r->s->devices[d], r->values[d]);
}

/* ---- rounds ---- */

/* The first round is warm-up. */
static int sum_once(exchange_run *r, exchange_lane *lane, size_t k, uint32_t round, mr_error *err)
{
    mr_world *world = lane->world.world;
    int rc = wait_all(r, lane, err);
    if (rc == MR_OK && world) rc = mr_world_barrier(world, WORLD_HOST_CALLS, err);
    const uint64_t start = clock_ns();
    if (rc == MR_OK) rc = mr_group_sum_async(lane->group, r->values, r->sizes[k] / sizeof(float));
    if (rc == MR_OK) rc = wait_all(r, lane, err);
    if (rc == MR_OK && world) rc = mr_world_barrier(world, WORLD_HOST_CALLS, err); /* the slowest, too */
    if (round) lane->ms[k][round - 1] = 1e-6 * (double)(clock_ns() - start);
    return rc;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static const char *wire_of(const exchange_lane *lane)
{
    return mr_group_uses_nccl(lane->group, NULL) ? "nccl" : mr_world_wires(lane->world.world);
}

static void report(exchange_run *r, exchange_lane *lane, size_t k, uint32_t rounds, bool json)
{
    const mr_world *world = lane->world.world;
    const uint32_t ranks = world ? mr_world_size(world) : 1;
    qsort(lane->ms[k], rounds, sizeof *lane->ms[k], by_value);
    const double median = lane->ms[k][rounds / 2], least = lane->ms[k][0];
    if (!json) {
        printf("%6.2f MB over %u ranks%s%s, %u devices here: %8.3f ms (least %.3f), %.2f GB/s\n",
               1e-6 * (double)r->sizes[k], ranks, ranks > 1 ? " by " : "", wire_of(lane), r->s->device_count,
               median, least, 1e-6 * (double)r->sizes[k] / median);
        return;
    }
    json_line j = json_begin(stdout, "bench");
    json_text(&j, "what", "exchange");
    json_text(&j, "wire", ranks > 1 ? wire_of(lane) : NULL);
    json_u64(&j, "bytes", r->sizes[k]);
    json_u64(&j, "ranks", ranks);
    json_u64(&j, "devices", r->s->device_count);
    json_u64(&j, "rounds", rounds);
    json_real(&j, "ms", median);
    json_real(&j, "ms_least", least);
    json_end(&j);
}

static int measure(exchange_run *r, const session_args *shared, uint32_t rounds)
{
    mr_error err = MR_ERROR_INIT;
    int status = session_open_devices(r->s, &shared->device);
    if (status) return status;
    int rc = MR_OK;
    for (size_t w = 0; rc == MR_OK && w < r->wire_count; w++) rc = open_lane(r, &r->lanes[w], &err);
    for (uint32_t round = 0; rc == MR_OK && round <= rounds; round++)
        for (size_t k = 0; rc == MR_OK && k < r->size_count; k++)
            for (size_t w = 0; rc == MR_OK && w < r->wire_count; w++)
                rc = sum_once(r, &r->lanes[w], k, round, &err);
    if (rc) return exit_status(rc, &err);
    for (size_t k = 0; k < r->size_count; k++)
        for (size_t w = 0; w < r->wire_count; w++) report(r, &r->lanes[w], k, rounds, shared->output.json);
    return EXIT_DONE;
}

int bench_exchange(tool_session *s, const exchange_args *a, const rank_args *rank, const session_args *shared,
                   uint32_t rounds)
{
    exchange_run *r = calloc(1, sizeof *r);
    if (!r) return exit_no_memory("the exchange");
    r->s = s;
    int status = read_args(r, a, rank);
    for (size_t w = 0; w < r->wire_count && status == EXIT_DONE; w++) {
        rank_args with = *rank;
        with.wire = r->wires[w];
        status = world_join(&r->lanes[w].world, &with);
    }
    s->world = r->lanes[0].world.world;
    if (status == EXIT_DONE) status = measure(r, shared, rounds < MRI_ROUNDS_MOST ? rounds : MRI_ROUNDS_MOST);
    close_run(r);
    s->world = NULL;
    for (size_t w = 0; w < r->wire_count; w++) status = world_leave(&r->lanes[w].world, status);
    free(r);
    return status;
}
