/* tools/outputs/rows.h: a network's outputs for each sample, as a row of CSV or a line of JSON.
 *
 * The room outputs/
 *   takes      logits of batches (mr_outputs), names of classes and samples
 *   gives      rows (here), a confusion matrix (confusion_print.h)
 *   callers    commands/ */
#ifndef TOOLS_ROWS_H
#define TOOLS_ROWS_H

#include <stdbool.h>
#include <stdio.h>

#include "millrace/outputs.h"
#include "millrace/train.h"
#include "tools/outputs/folder_labels.h"

typedef struct rows {
    const mr_source *src;
    folder_labels folders;    /* of a folder of pictures taken without classes; else zeroed */
    const char *const *names; /* of classes; NULL: no names */
    int64_t first;            /* then: number of the first one */
    uint32_t classes, top;
    bool json;
    mr_target_loss loss; /* of a network with targets: `classes` labels, or numbers; top is not used */
} rows;

/* CSV: the names of the columns; JSON: nothing. */
void rows_begin(const rows *r, FILE *out);
/* sample: of src; the row has its number in the data, mr_source_number(). label: the sample's own class in
 * the data, -1: none. logits: as mr_outputs has them. False: no memory. */
bool rows_put(const rows *r, FILE *out, uint64_t sample, int32_t label, const float *logits);
/* A sample that could not be read, and why. */
void rows_put_bad(const rows *r, FILE *out, uint64_t sample, const char *why);

/* Its name, or its number in buf: the first class's number plus `at`. */
const char *rows_class_name(const char *const *names, int64_t first, uint32_t at, char *buf,
                            size_t buf_bytes);

/* --views NAME: the views, and the loader that gives them. An exit status. */
int views_open(mr_views **out, const char *name, mr_loader_config *cfg);

#endif
