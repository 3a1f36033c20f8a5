/* tools/outputs/confusion.h: which classes are confused: a matrix of samples by their class and by the
 * predicted class. */
#ifndef TOOLS_CONFUSION_H
#define TOOLS_CONFUSION_H

#include <stdio.h>

#include "millrace/train.h"
#include "tools/cli/json.h"

enum { CONFUSION_MOST_CLASSES = 8192 }; /* 512 MiB */

typedef struct confusion {
    uint32_t classes;
    int64_t first;   /* number of the first class, where they have no names; 0 at first */
    uint64_t *count; /* [class * classes + said] */
} confusion;

/* An exit status. */
int confusion_open(confusion *c, uint32_t classes);
void confusion_close(confusion *c); /* accepts a zeroed one */
/* Add the samples of a batch that have a label. */
void confusion_add(confusion *c, const mr_outputs *o);
/* names of classes may be NULL, here and below. CSV: a row for each class, a column for each that is said,
 * then samples and accuracy. */
void confusion_put_csv(const confusion *c, const char *const *names, FILE *out);
/* The classes that are recognised worst, on stdout. */
void confusion_put_worst(const confusion *c, const char *const *names);
void confusion_put_json(const confusion *c, const char *const *names, json_line *j);

#endif
