/* tools/plan/plan_cores.h: how much of the cores' time others had, and how much nobody. Takes and gives plain
 * numbers; the plan's measuring calls it. */
#ifndef TOOLS_PLAN_PLAN_CORES_H
#define TOOLS_PLAN_PLAN_CORES_H

#include <stdbool.h>
#include <stdint.h>

/* Sums over the cores that this process may use, in clock ticks since the machine was started. */
typedef struct core_ticks {
    double all, idle, stolen;
    uint32_t cores;
} core_ticks;

/* All 0 where the system does not tell. */
void core_ticks_read(core_ticks *out);

typedef struct core_use {
    bool known;
    double stolen;     /* part of the cores' time that a virtual machine's host gave to others, 0..1 */
    double idle;       /* part of it in which a core had nothing to do, 0..1 */
    double others_ran; /* cores that other programs had, on average */
} core_use;

/* own_cores: what this process used of them on average. */
void core_use_between(const core_ticks *from, const core_ticks *to, double own_cores, core_use *out);

#endif
