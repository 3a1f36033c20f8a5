/* formats/text/table_numbers.h: columns of numbers of a table, which become a further field of its samples.
 * Private to formats/text. */
#ifndef MRI_TABLE_NUMBERS_H
#define MRI_TABLE_NUMBERS_H

#include "formats/source/number_rows.h"
#include "formats/text/csv.h"

typedef struct mri_table_numbers {
    uint32_t first, count; /* columns; count 0: none */
    float *value;          /* row behind row, while they are read */
    uint64_t used, cap;
    char **name; /* of the columns, where the table has a row of names; else NULL */
} mri_table_numbers;

/* The columns that key names, in the table's first row: NAME or FIRST..LAST, by name or by number from 1. */
int mri_table_numbers_choose(mri_table_numbers *n, const mri_csv *c, const char *key, mr_error *err);
/* Keep the names of these columns, from the row of names. */
int mri_table_numbers_take_names(mri_table_numbers *n, const mri_csv *c, mr_error *err);
static inline bool mri_table_numbers_has(const mri_table_numbers *n, uint32_t column)
{
    return column >= n->first && column - n->first < n->count;
}
/* Add the numbers of this row, which has the same number of columns as the first. */
int mri_table_numbers_add(mri_table_numbers *n, const mri_csv *c, mr_error *err);
/* All rows, as the field of this name. */
int mri_table_numbers_finish(mri_table_numbers *n, const char *name, const mr_source_config *cfg,
                             const char *path, mri_rows *out, mr_error *err);
void mri_table_numbers_fini(mri_table_numbers *n); /* frees rows and names; accepts a zeroed one */
static inline uint64_t mri_table_numbers_memory(const mri_table_numbers *n)
{
    return n->cap * sizeof *n->value;
}

#endif
