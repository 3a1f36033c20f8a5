/* tools/session/world_gpus.c: see world_gpus.h. */
#include "tools/session/world_gpus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/exit.h"
#include "tools/cli/output.h"
#include "tools/session/world.h"

enum { MOST = 64, ID_BYTES = 48 };

/* GPUs of one process: those it sees, or has opened; by identity, and how --devices names them here. */
typedef struct gpus {
    uint32_t count, padding;
    char id[MOST][ID_BYTES], spec[MOST][16];
} gpus;

static void add(gpus *g, const mr_device_listing *row)
{
    if (g->count == MOST || !row->id[0]) return;
    snprintf(g->id[g->count], ID_BYTES, "%.*s", ID_BYTES - 1, row->id);
    snprintf(g->spec[g->count], sizeof g->spec[0], "%.15s", row->spec);
    g->count++;
}

static void list_visible(gpus *g)
{
    mr_device_listing row;
    for (uint32_t at = 0; mr_device_list(at, &row); at++)
        if (strcmp(row.kind, "cuda") == 0) add(g, &row);
}

static void list_opened(gpus *g, mr_device *const *devices, uint32_t count)
{
    mr_device_listing row;
    for (uint32_t i = 0; i < count; i++) {
        const mr_device_info *info = mr_device_info_of(devices[i]);
        for (uint32_t at = 0; strcmp(info->kind, "cuda") == 0 && mr_device_list(at, &row); at++) {
            const size_t n = strlen(row.spec); /* "cuda:0 (replica 2)" is one of "cuda:0" */
            if (strncmp(row.spec, info->name, n) == 0 && (!info->name[n] || info->name[n] == ' '))
                add(g, &row);
        }
    }
}

static int gather(mr_world *world, const gpus *mine, gpus **all)
{
    mr_error err = MR_ERROR_INIT;
    *all = calloc(mr_world_size(world), sizeof **all);
    if (!*all) return exit_no_memory("the GPUs of the ranks");
    return exit_status(mr_world_gather(world, WORLD_HOST_CALLS, mine, sizeof *mine, *all, &err), &err);
}

static bool on_host_of(const mr_world *world, uint32_t a, uint32_t b)
{
    return strcmp(mr_world_host(world, a), mr_world_host(world, b)) == 0;
}

static bool has(const gpus *g, const char *id)
{
    for (uint32_t i = 0; i < g->count; i++)
        if (strcmp(g->id[i], id) == 0) return true;
    return false;
}

static uint32_t common(const gpus *a, const gpus *b)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < a->count; i++) n += has(b, a->id[i]);
    return n;
}

/* The share of the process that is number `at` of `among` which see these. */
static void name_share(const gpus *g, uint32_t at, uint32_t among, bool whole, char *out, size_t out_bytes)
{
    const uint32_t n = g->count, first = among <= n ? n * at / among : at % n;
    const uint32_t end = among <= n && whole ? n * (at + 1) / among : first + 1;
    size_t used = 0;
    for (uint32_t i = first; i < end && used < out_bytes; i++)
        used += (size_t)snprintf(out + used, out_bytes - used, "%s%s", i > first ? "," : "", g->spec[i]);
}

static int deal(mr_world *world, const gpus *all, bool whole, char *buf, size_t buf_bytes)
{
    const uint32_t me = mr_world_rank(world);
    uint32_t at = 0, among = 0;
    for (uint32_t r = 0; r < mr_world_size(world); r++) {
        if (!on_host_of(world, r, me)) continue;
        const uint32_t shared = common(&all[r], &all[me]);
        if (shared == 0) continue;
        if (shared != all[r].count || shared != all[me].count) {
            say("rank %u sees %u GPUs of host %s and rank %u sees %u, %u of them the same: give each the "
                "same or its own (CUDA_VISIBLE_DEVICES), or name each process's GPUs in --devices",
                me, all[me].count, mr_world_host(world, me), r, all[r].count, shared);
            return EXIT_FAILED;
        }
        at += r < me;
        among++;
    }
    if (among > 0) name_share(&all[me], at, among, whole, buf, buf_bytes);
    return EXIT_DONE;
}

int world_gpus_deal(mr_world *world, const char *spec, char *buf, size_t buf_bytes, const char **out)
{
    const bool whole = spec && strcmp(spec, "cuda:all") == 0,
               wants = whole || (spec && strcmp(spec, "cuda") == 0);
    gpus *all = NULL, *mine = calloc(1, sizeof *mine);
    *out = spec;
    if (!mine) return exit_no_memory("the GPUs of the ranks");
    if (wants) list_visible(mine);
    *buf = '\0';
    int status = gather(world, mine, &all);
    if (status == EXIT_DONE && mine->count > 0) status = deal(world, all, whole, buf, buf_bytes);
    if (*buf) *out = buf; /* none are visible: opening says so */
    free(all);
    free(mine);
    return status;
}

/* The first process that has opened it. */
static uint32_t first_with(const mr_world *world, const gpus *all, uint32_t rank, const char *id)
{
    for (uint32_t r = 0; r < rank; r++)
        if (on_host_of(world, r, rank) && has(&all[r], id)) return r;
    return rank;
}

int world_gpus_tell_shared(mr_world *world, mr_device *const *devices, uint32_t count)
{
    gpus *all = NULL, *mine = calloc(1, sizeof *mine);
    if (!mine) return exit_no_memory("the GPUs of the ranks");
    list_opened(mine, devices, count);
    const int status = gather(world, mine, &all);
    const uint32_t me = mr_world_rank(world);
    for (uint32_t r = 1; status == EXIT_DONE && me == 0 && r < mr_world_size(world); r++)
        for (uint32_t i = 0; i < all[r].count; i++) {
            const uint32_t other = first_with(world, all, r, all[r].id[i]);
            if (other == r) continue;
            say("ranks %u and %u compute on the same GPU, %s of host %s; --devices cuda gives each its "
                "own where there are enough",
                other, r, all[r].spec[i], mr_world_host(world, r));
            r = mr_world_size(world) - 1; /* once is enough */
            break;
        }
    free(all);
    free(mine);
    return status;
}
