/* tools/cli/clock.h: how long something takes, and on how many cores. */
#ifndef TOOLS_CLOCK_H
#define TOOLS_CLOCK_H

#include <stdint.h>

/* CLOCK_MONOTONIC. */
uint64_t clock_ns(void);
double seconds_since(uint64_t start_ns);

/* Processor time of this process, all threads together. */
double cpu_seconds(void);

/* Cores that this process may run on. */
uint32_t core_count(void);

#endif
