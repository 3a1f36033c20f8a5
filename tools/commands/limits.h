/* tools/commands/limits.h: the machine's limits, one figure at a time. */
#ifndef TOOLS_LIMITS_H
#define TOOLS_LIMITS_H

#include "millrace/pipeline.h"

enum { LIMIT_MEMCPY, LIMIT_CRC, LIMIT_READ, LIMIT_DECODE, LIMIT_COUNT };

typedef struct machine_limit {
    const char *name, *unit;
    double value, mad;
    uint32_t rounds; /* 0: the figure has no meaning for these data */
    uint32_t threads;
} machine_limit;

/* workers 0: one per core. 0 or an exit status. */
int limit_measure(uint32_t which, const mr_source *src, const mr_decode_config *decode, uint32_t workers,
                  double seconds, uint32_t rounds, machine_limit *out);

#endif
