/* formats/text/table_parts.h: a column of a table that says which part (train, validation, test) a row is of.
 * Private to source_csv.c.
 *
 *   path,label,split         split, set, subset, ...: words of parts.h
 *   path,label,is_valid      is_train, is_valid, is_val, is_test: 1/0, true/false, yes/no
 *   path,label,fold          numbers say nothing; --split-key fold=4 makes rows with 4 the part to test with
 *
 * The column is read once before all else: its values decide whether it is a split column. It is one if all
 * values are split words, or if train and another split word are among the values. If it is not, all rows are
 * taken, and the values are reported. */
#ifndef MRI_TABLE_PARTS_H
#define MRI_TABLE_PARTS_H

#include "formats/source/source.h"
#include "formats/text/csv.h"

enum { MRI_TABLE_OTHERS = 4, MRI_TABLE_VALUE_BYTES = 40, MRI_TABLE_COLUMN_BYTES = 80 };

typedef struct mri_table_parts {
    int column;                        /* -1: missing, or not used */
    char name[MRI_TABLE_COLUMN_BYTES]; /* as shown */
    bool asked;                        /* somebody named it */
    mri_part if_yes;                   /* is_train and the like; MRI_NO_PART: words */
    char value[MRI_TABLE_VALUE_BYTES]; /* the one that is the part to test with; "": words */
    uint64_t rows[MRI_PART_COUNT];     /* of each part; MRI_NO_PART: of none */
    uint32_t other_count; /* different values that are of no part; at most one more than are kept */
    char other[MRI_TABLE_OTHERS][MRI_TABLE_VALUE_BYTES];
    mri_part taken; /* behind settle(); MRI_NO_PART: all rows */
} mri_table_parts;

/* From the first row, which has names where `header`. key: mr_source_config.split_key. Columns with another
 * use (`used`, ends with -1) are not considered. */
int mri_table_parts_choose(mri_table_parts *p, const mri_csv *c, bool header, const char *key,
                           const int *used, mr_error *err);
void mri_table_parts_see(mri_table_parts *p, const mri_csv *row);
/* After all rows: choose the split. Fills src->info, including its report. lone: no other table has further
 * splits. */
int mri_table_parts_settle(mri_table_parts *p, mr_source *src, const mr_source_config *cfg, bool lone,
                           mr_error *err);
/* The split of this row; MRI_NO_PART: no split. */
mri_part mri_table_parts_of(const mri_table_parts *p, const mri_csv *row);

#endif
