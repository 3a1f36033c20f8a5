/* tools/plan/plan_cores.c: the activity of the cores that this process may use, by /proc/stat (proc(5)). */
#include "tools/plan/plan_cores.h"

#include <sched.h>
#include <stdio.h>

void core_ticks_read(core_ticks *out)
{
    char line[512];
    cpu_set_t mine;
    const bool known = sched_getaffinity(0, sizeof mine, &mine) == 0;
    FILE *f = fopen("/proc/stat", "re");
    *out = (core_ticks){0};
    while (f && fgets(line, sizeof line, f)) {
        unsigned core;
        unsigned long long t[8]; /* user, nice, system, idle, iowait, irq, softirq, steal */
        if (sscanf(line, "cpu%u %llu %llu %llu %llu %llu %llu %llu %llu", &core, &t[0], &t[1], &t[2], &t[3],
                   &t[4], &t[5], &t[6], &t[7]) != 9)
            continue;
        if (known && (core >= CPU_SETSIZE || !CPU_ISSET(core, &mine))) continue;
        for (int i = 0; i < 8; i++) out->all += (double)t[i];
        out->idle += (double)(t[3] + t[4]);
        out->stolen += (double)t[7];
        out->cores++;
    }
    if (f) fclose(f);
}

void core_use_between(const core_ticks *from, const core_ticks *to, double own_cores, core_use *out)
{
    const double all = to->all - from->all;
    *out = (core_use){0};
    if (all <= 0 || to->cores != from->cores) return;
    out->known = true;
    out->stolen = (to->stolen - from->stolen) / all;
    out->idle = (to->idle - from->idle) / all;
    const double ran = (1 - out->idle - out->stolen) * to->cores - own_cores;
    out->others_ran = ran > 0 ? ran : 0;
}
