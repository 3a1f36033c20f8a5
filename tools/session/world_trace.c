/* tools/session/world_trace.c: see world_trace.h.
 *
 * Two clocks are compared by what all have to wait for: a gather ends for nobody before everybody has begun
 * it. With s when rank r began one and e when it ended, of r's clock, and S and E of rank 0's:
 *
 *   s + shift <= E     and     S <= e + shift     so     S - e <= shift <= E - s
 *
 * which the best of several rounds makes narrow; the middle is taken. Clocks of hosts run apart by some
 * microseconds a second, so this is done before and after the run, and what lies between is on the line. */
#include "tools/session/world_trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/clock.h"
#include "tools/cli/exit.h"

enum { ROUNDS = 24 };

typedef struct rounds {
    uint64_t begun_ns[ROUNDS], ended_ns[ROUNDS];
} rounds;

static int64_t apart(uint64_t a, uint64_t b) { return (int64_t)(a - b); }

/* Between lowest and highest the shift lies. */
static void bound(const rounds *first, const rounds *own, int64_t *lowest, int64_t *highest)
{
    *lowest = INT64_MIN;
    *highest = INT64_MAX;
    for (int i = 0; i < ROUNDS; i++) {
        const int64_t low = apart(first->begun_ns[i], own->ended_ns[i]),
                      high = apart(first->ended_ns[i], own->begun_ns[i]);
        if (low > *lowest) *lowest = low;
        if (high < *highest) *highest = high;
    }
}

static int compare(world_clock *c, const tool_world *w, int moment)
{
    rounds own, *all = calloc(w->at.size, sizeof *all);
    uint64_t *sink = calloc(w->at.size, sizeof *sink);
    int64_t lowest, highest;
    int status = all && sink ? EXIT_DONE : exit_no_memory("the clocks of the ranks");
    for (int i = 0; status == EXIT_DONE && i < ROUNDS; i++) {
        own.begun_ns[i] = clock_ns();
        status = world_gather(w, &own.begun_ns[i], sizeof own.begun_ns[i], sink);
        own.ended_ns[i] = clock_ns();
    }
    if (status == EXIT_DONE) status = world_gather(w, &own, sizeof own, all);
    if (status == EXIT_DONE) {
        bound(&all[0], &own, &lowest, &highest);
        const uint64_t within = (uint64_t)(highest - lowest) / 2;
        c->at_ns[moment] = own.ended_ns[ROUNDS - 1];
        c->shift_ns[moment] = w->first ? 0 : lowest + (highest - lowest) / 2;
        if (lowest <= 0 && highest >= 0) c->shift_ns[moment] = 0; /* the same clock, as far as one can see */
        if (!w->first && within > c->within_ns) c->within_ns = within;
    }
    free(all);
    free(sink);
    return status;
}

int world_clock_begin(world_clock *c, const tool_world *w, bool traces)
{
    *c = (world_clock){.used = false};
    if (!w->world || w->at.size == 1) return EXIT_DONE;
    bool *all = calloc(w->at.size, sizeof *all);
    int status = all ? world_gather(w, &traces, sizeof traces, all) : exit_no_memory("who traces");
    if (status == EXIT_DONE) c->used = all[0];
    free(all);
    return status == EXIT_DONE && c->used ? compare(c, w, 0) : status;
}

/* What one process sends of itself before its pack. */
typedef struct sent {
    world_clock clock;
    uint64_t bytes;
} sent;

/* The first one's parts, with room for what comes. */
static int make_parts(mr_trace_part *parts, mr_world_piece *pieces, const sent *all, const tool_world *w,
                      void *own)
{
    char name[32];
    for (uint32_t r = 0; r < w->at.size; r++) {
        const world_clock *c = &all[r].clock;
        snprintf(name, sizeof name, "rank %u", r);
        pieces[r] =
            (mr_world_piece){r == w->at.rank ? own : malloc(all[r].bytes ? all[r].bytes : 1), all[r].bytes};
        parts[r] = (mr_trace_part){.pack = pieces[r].data,
                                   .bytes = all[r].bytes,
                                   .name = strdup(name),
                                   .at_ns = {c->at_ns[0], c->at_ns[1]},
                                   .shift_ns = {c->shift_ns[0], c->shift_ns[1]},
                                   .within_ns = c->within_ns};
        if (!parts[r].pack || !parts[r].name) return exit_no_memory("the traces of the ranks");
    }
    return EXIT_DONE;
}

static void free_parts(mr_trace_part *parts, mr_world_piece *pieces, const tool_world *w)
{
    for (uint32_t r = 0; parts && pieces && r < w->at.size; r++) {
        if (r != w->at.rank) free(pieces[r].data);
        free((char *)(uintptr_t)parts[r].name);
    }
    free(parts);
    free(pieces);
}

/* All have announced their sizes: the first process collects the traces and writes them. */
static int bring_together(const tool_world *w, const sent *all, mr_world_piece own, const char *path)
{
    mr_error err = MR_ERROR_INIT;
    mr_trace_part *parts = NULL;
    mr_world_piece *pieces = NULL;
    int status = EXIT_DONE;
    if (w->first) {
        parts = calloc(w->at.size, sizeof *parts);
        pieces = calloc(w->at.size, sizeof *pieces);
        status = parts && pieces ? make_parts(parts, pieces, all, w, own.data)
                                 : exit_no_memory("the traces of the ranks");
    }
    if (status == EXIT_DONE) status = world_send_to_first(w, own, pieces);
    if (status == EXIT_DONE && w->first)
        status = exit_status(mr_trace_write_parts(parts, w->at.size, path, &err), &err);
    free_parts(parts, pieces, w);
    return status;
}

int world_write_trace(world_clock *c, const tool_world *w, const mr_trace *trace, const char *path)
{
    mr_error err = MR_ERROR_INIT;
    void *pack = NULL;
    size_t bytes = 0;
    sent *all = calloc(w->at.size, sizeof *all);
    int status = all ? compare(c, w, 1) : exit_no_memory("the traces of the ranks");
    if (status == EXIT_DONE) status = exit_status(mr_trace_pack(trace, &pack, &bytes, &err), &err);
    const sent mine = {*c, bytes};
    if (status == EXIT_DONE) status = world_gather(w, &mine, sizeof mine, all);
    if (status == EXIT_DONE) status = bring_together(w, all, (mr_world_piece){pack, bytes}, path);
    free(pack);
    free(all);
    return status;
}
