/* tools/sweep/sweep_file.h: the runs of a sweep, read from a file.
 *
 * The room sweep/
 *   takes      a file of options with their values, and the output of the runs
 *   gives      the words of each run, its place in a folder, a table (CSV) and a page of all of them
 *   callers    commands/ (cmd_sweep.c, which starts the runs)
 *
 *     # comment
 *     data    = photos                 a KEY = VALUE line each; `data` is what train reads
 *     batch   = 64 | 128 | 256         several values: a run for each, with all combinations
 *     devices = cpu:1 | cpu:2          --devices cpu:1
 *     deterministic = - | +            -: without the option; +: with it, where it takes no value
 *     checkpoint = run-{run}           {run}: the run's name */
#ifndef TOOLS_SWEEP_FILE_H
#define TOOLS_SWEEP_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "millrace/base.h"

enum { SWEEP_KEYS_MOST = 64, SWEEP_VALUES_MOST = 256, SWEEP_RUNS_MOST = 100000, SWEEP_NAME_BYTES = 17 };

typedef struct sweep_key {
    const char *name;
    const char **value; /* count */
    uint32_t count;
} sweep_key;

typedef struct sweep_plan {
    const char *path;
    const char *data;
    sweep_key key[SWEEP_KEYS_MOST]; /* in the order of the file; without data */
    uint32_t count;
    uint32_t runs;
    char *text; /* the rest points into it */
} sweep_plan;

/* MR_EFORMAT: err names file, line, the expected text. sweep_free() after either. */
int sweep_read(sweep_plan *out, const char *path, mr_error *err);
void sweep_free(sweep_plan *p);

/* Which value of key k run `at` has. The last key changes fastest. */
uint32_t sweep_value(const sweep_plan *p, uint32_t at, uint32_t k);
const char *sweep_text(const sweep_plan *p, uint32_t at, uint32_t k);
const sweep_key *sweep_find(const sweep_plan *p, const char *name, uint32_t *k); /* NULL: no such key */

/* Its name, from its options alone: the same in every sweep that has it. */
void sweep_name(const sweep_plan *p, uint32_t at, char name[SWEEP_NAME_BYTES]);

/* The words of run `at`: program, "train", data, options, --json, --quiet, NULL; one allocation. NULL: no
 * memory. */
char **sweep_words(const sweep_plan *p, uint32_t at, const char *program);

#endif
