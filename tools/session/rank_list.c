/* tools/session/rank_list.c: see rank_list.h. */
#include "tools/session/rank_list.h"

#include <stdio.h>

static uint32_t rank_count(const tool_session *s) { return s->world ? mr_world_size(s->world) : 1; }

static double busy_ms(const mr_rank_times *t) { return t->compute_ms + t->idle_ms; }

void rank_list_text(const tool_session *s)
{
    const uint32_t count = rank_count(s);
    uint32_t slowest = 0;
    double others_ms = 0;
    mr_rank_times most = {.steps = 0}, one;
    for (uint32_t r = 0; count > 1 && r < count; r++) {
        if (mr_trainer_rank_times(s->trainer, r, &one, NULL) != MR_OK || !one.steps) return;
        others_ms += busy_ms(&one);
        if (r && busy_ms(&one) <= busy_ms(&most)) continue;
        slowest = r;
        most = one;
    }
    if (count < 2) return;
    others_ms = (others_ms - busy_ms(&most)) / (count - 1);
    printf("slowest  rank %u (%s): %.1f ms a step for its parts, %.1f waiting for "
           "data; the others %.1f in all\n",
           slowest, mr_world_host(s->world, slowest), most.compute_ms, most.idle_ms, others_ms);
}

void rank_list_json(json_line *j, const tool_session *s)
{
    const uint32_t count = rank_count(s);
    if (count < 2) return;
    json_array(j, "rank_times");
    for (uint32_t r = 0; r < count; r++) {
        mr_rank_times one;
        if (mr_trainer_rank_times(s->trainer, r, &one, NULL) != MR_OK) break;
        json_object(j, NULL);
        json_u64(j, "rank", r);
        json_text(j, "host", mr_world_host(s->world, r));
        json_u64(j, "steps", one.steps);
        json_real(j, "compute_ms", one.compute_ms);
        json_real(j, "idle_ms", one.idle_ms);
        json_real(j, "network_ms", one.network_ms);
        json_close_object(j);
    }
    json_close_array(j);
}
