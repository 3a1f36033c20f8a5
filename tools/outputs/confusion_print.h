/* tools/outputs/confusion_print.h: a confusion matrix (millrace/outputs.h) as text and as JSON. names: of
 * classes; NULL: numbers from `first` on. */
#ifndef TOOLS_CONFUSION_PRINT_H
#define TOOLS_CONFUSION_PRINT_H

#include "millrace/outputs.h"
#include "tools/cli/json.h"

/* The classes that are recognised worst, on stdout. */
void confusion_put_worst(const mr_confusion *c, uint32_t classes, const char *const *names, int64_t first);
void confusion_put_json(const mr_confusion *c, uint32_t classes, const char *const *names, int64_t first,
                        json_line *j);

#endif
