/* tools/foreign/machine.h: the machine's, or the control group's, figures of waiting: pressure (PSI) and time
 * that a CPU quota took. Counters that only grow; figures are the difference of two readings. */
#ifndef TOOLS_MACHINE_H
#define TOOLS_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct machine_counters {
    bool has_pressure, group; /* group: of the control group, not of the whole machine */
    uint64_t cpu_some_us, io_some_us, io_full_us;
    bool has_quota;
    uint64_t throttled_ns;
} machine_counters;

typedef struct machine_figures {
    bool has_pressure, group;
    double cpu_some, io_some, io_full; /* parts of the time, 0..1 */
    bool has_quota;
    double throttled_s; /* of a core */
} machine_figures;

/* root: "", or a folder of a test's in place of /. */
void machine_read(const char *root, machine_counters *out);
void machine_since(const machine_counters *before, const machine_counters *after, double seconds,
                   machine_figures *out);

#endif
