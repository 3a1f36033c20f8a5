/* formats/text/table_parts.h: a column of a table that says which part (train, validation, test) a row is of.
 * Private to source_csv.c.
 *
 *   path,label,split         split, set, subset, ...: words of parts.h
 *   path,label,is_valid      is_train, is_valid, is_val, is_test: 1/0, true/false, yes/no; several of them
 *                            together, if exactly one is yes in each row
 *   path,label,fold          numbers say nothing; --split-key fold=4 makes rows with 4 the part to test with
 *
 * The columns are read once before all else: their values decide which is a split column. One is if all its
 * values are split words, or if train and another split word are among the values. If none is, all rows are
 * taken, and the values are reported. Of several the first is taken, and rows in which another says something
 * else are counted and reported. */
#ifndef MRI_TABLE_PARTS_H
#define MRI_TABLE_PARTS_H

#include "formats/source/source.h"
#include "formats/text/csv.h"
#include "formats/text/table_numbers.h"

enum {
    MRI_TABLE_OTHERS = 4,
    MRI_TABLE_VALUE_BYTES = 40,
    MRI_TABLE_COLUMN_BYTES = 80,
    MRI_TABLE_PART_COLUMNS = 8 /* that are looked at */
};

typedef struct mri_part_column { /* one that may say the part */
    uint32_t at;
    char name[MRI_TABLE_COLUMN_BYTES]; /* as shown */
    mri_part if_yes;                   /* is_train and the like; MRI_NO_PART: words */
    uint64_t rows[MRI_PART_COUNT];     /* of each part; MRI_NO_PART: of none */
    uint32_t other_count; /* different values that are of no part; at most one more than are kept */
    char other[MRI_TABLE_OTHERS][MRI_TABLE_VALUE_BYTES];
} mri_part_column;

typedef struct mri_table_parts {
    mri_part_column column[MRI_TABLE_PART_COLUMNS]; /* columns of words first */
    uint32_t count;                                 /* 0: no such column, or not used */
    uint32_t chosen;                                /* after settle() */
    bool asked;                                     /* somebody named it */
    char value[MRI_TABLE_VALUE_BYTES];              /* the one that is the part to test with; "": words */
    uint64_t yes_rows[MRI_PART_COUNT];              /* by the columns of yes and no together */
    struct {
        uint64_t line;          /* the first row in which these contradict each other; 0: none */
        uint32_t first, second; /* both yes; the same one: none is */
    } unclear;
    struct {
        uint64_t rows, line;
    } differs[MRI_TABLE_PART_COLUMNS][MRI_TABLE_PART_COLUMNS]; /* [of words][another] */
    mri_part taken;                                            /* after settle(); MRI_NO_PART: all rows */
} mri_table_parts;

typedef struct mri_table_used { /* columns with another use; -1: missing */
    int image, label;
    const mri_table_numbers *numbers;
} mri_table_used;

/* Is a column of this name looked at without being asked for? */
bool mri_table_parts_is_name(const char *name);
/* From the first row, which has names where `header`. key: mr_source_config.split_key. */
int mri_table_parts_choose(mri_table_parts *p, const mri_csv *c, bool header, const char *key,
                           const mri_table_used *used, mr_error *err);
void mri_table_parts_see(mri_table_parts *p, const mri_csv *row);
/* After all rows: choose the split. Fills src->info, including its report. lone: no other table has further
 * splits. MR_EFORMAT: columns of yes and no contradict each other. */
int mri_table_parts_settle(mri_table_parts *p, mr_source *src, const mr_source_config *cfg, bool lone,
                           mr_error *err);
/* The split of this row; MRI_NO_PART: no split. */
mri_part mri_table_parts_of(const mri_table_parts *p, const mri_csv *row);

#endif
