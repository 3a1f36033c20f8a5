/* train/run/lateness.c: see lateness.h. */
#include "train/run/lateness.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"

int mri_lateness_init(mri_lateness *l, uint32_t rank, uint32_t size)
{
    *l = (mri_lateness){.rank = rank,
                        .size = size,
                        .newest = calloc(size, sizeof *l->newest),
                        .late_ns = calloc(size, sizeof *l->late_ns)};
    return l->newest && l->late_ns ? MR_OK : MR_ENOMEM;
}

void mri_lateness_fini(mri_lateness *l)
{
    free(l->newest);
    free(l->late_ns);
    *l = (mri_lateness){0};
}

void mri_lateness_begin(mri_lateness *l)
{
    if (l->late_ns) memset(l->late_ns, 0, l->size * sizeof *l->late_ns);
    l->waited_ns = 0;
}

void mri_lateness_compare(mri_lateness *l, const uint64_t *steps, const uint64_t *waited_ns)
{
    uint32_t last = 0;
    for (uint32_t r = 1; r < l->size; r++) {
        if (steps[r] != steps[0]) return;
        if (waited_ns[r] - l->newest[r] < waited_ns[last] - l->newest[last]) last = r;
    }
    if (steps[0] == l->steps) return;
    const uint64_t mine = waited_ns[l->rank] - l->newest[l->rank];
    l->waited_ns += mine;
    l->late_ns[last] += mine - (waited_ns[last] - l->newest[last]);
    l->steps = steps[0];
    memcpy(l->newest, waited_ns, l->size * sizeof *waited_ns);
}

uint32_t mri_lateness_worst(const mri_lateness *l, double *part)
{
    uint32_t worst = 0;
    for (uint32_t r = 1; r < l->size; r++)
        if (l->late_ns[r] > l->late_ns[worst]) worst = r;
    *part = l->size > 1 && l->waited_ns ? (double)l->late_ns[worst] / (double)l->waited_ns : 0;
    return worst;
}
