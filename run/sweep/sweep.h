/* run/sweep/sweep.h: the runs of a sweep and their results.
 *
 * The room sweep/
 *   takes      a file of options with their values, and the output of the runs
 *   gives      the words of each run, a table (CSV) and a page of all of them (millrace/sweep.h)
 *   callers    the public header */
#ifndef MRI_SWEEP_H
#define MRI_SWEEP_H

#include "millrace/sweep.h"

typedef struct mri_sweep_key {
    const char *name;
    const char **value; /* count */
    uint32_t count;
} mri_sweep_key;

struct mr_sweep {
    mr_sweep_info info;
    mri_sweep_key key[MR_SWEEP_OPTIONS]; /* in the order of the file; without data */
    mr_sweep_result *result;             /* of each run; without speed_up */
    char *path, *text;                   /* of the file, whose names and values point into text */
};

/* The option with this name, and its number; NULL: not found. */
const mri_sweep_key *mri_sweep_find(const mr_sweep *s, const char *name, uint32_t *k);
/* The number of the value that option k has in a run. Both exist. */
uint32_t mri_sweep_value(const mr_sweep *s, uint32_t run, uint32_t k);
/* Its text. */
const char *mri_sweep_text(const mr_sweep *s, uint32_t run, uint32_t k);
/* A result without figures. */
void mri_sweep_no_result(mr_sweep_result *out);

#endif
