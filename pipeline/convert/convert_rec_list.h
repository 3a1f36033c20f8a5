/* pipeline/convert/convert_rec_list.h: the list next to RecordIO records, as im2rec reads it. Private.
 *
 *   | number | tab | label, or several with tabs between | tab | name of the sample |
 *
 * The lines are collected while records are written, in memory and then in an unnamed file, and divided among
 * the files at the end. */
#ifndef MRI_CONVERT_REC_LIST_H
#define MRI_CONVERT_REC_LIST_H

#include <stdio.h>

#include "formats/storage/output.h"
#include "formats/storage/spill.h"

typedef struct mri_rec_list {
    bool used; /* lines is open */
    mri_spill lines;
    char *line; /* the last one, in `room` bytes */
    size_t room;
    FILE *in;   /* the lines not divided yet */
} mri_rec_list; /* {0} is empty */

/* name: not terminated. A name that no line can hold (none, a tab or line end in it, a blank at its end)
 * becomes the number. */
int mri_rec_list_add(mri_rec_list *l, uint64_t number, const float *labels, uint32_t count, const void *name,
                     size_t name_bytes, mr_error *err);
/* The next `records` lines into a file of this name. No more lines are added. */
int mri_rec_list_write(mri_rec_list *l, const char *path, uint64_t records, const mri_output_rules *rules,
                       mr_error *err);
void mri_rec_list_fini(mri_rec_list *l);

#endif
