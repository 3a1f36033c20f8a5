/* tools/commands/bench_exchange.h: `millrace bench exchange`: how long sums over the devices of all processes
 * take. */
#ifndef TOOLS_BENCH_EXCHANGE_H
#define TOOLS_BENCH_EXCHANGE_H

#include "tools/session/session.h"
#include "tools/session/world.h"

typedef struct exchange_args {
    const char *sizes; /* "64K,5M"; NULL: the usual ones */
    const char *wires; /* "tcp,shm"; NULL: that of rank_args */
} exchange_args;

/* An exit status. The first process reports. */
int bench_exchange(tool_session *s, const exchange_args *a, const rank_args *rank, const session_args *shared,
                   uint32_t rounds);

#endif
