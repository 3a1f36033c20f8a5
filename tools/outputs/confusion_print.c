/* tools/outputs/confusion_print.c: see confusion_print.h. */
#include "tools/outputs/confusion_print.h"

#include <inttypes.h>

#include "tools/cli/output.h"
#include "tools/outputs/rows.h"

enum { WORST = 10, NAME_WIDTH = 24 };

void confusion_put_worst(const mr_confusion *c, uint32_t classes, const char *const *names, int64_t first)
{
    char number[32];
    uint32_t worst[WORST], shown;
    if (mr_confusion_worst(c, WORST, worst, &shown, NULL) != MR_OK) return; /* the file has all of it */
    printf("\nworst %" PRIu32 " of %" PRIu32 " classes\n  %-*s accuracy  right of samples  taken for\n",
           shown, classes, NAME_WIDTH, "class");
    for (uint32_t i = 0; i < shown; i++) {
        mr_class_row r;
        if (mr_confusion_row(c, worst[i], &r, NULL) != MR_OK) continue;
        printf("  %-*s %8.4f %6" PRIu64 " of %-7" PRIu64, NAME_WIDTH,
               shown_text(rows_class_name(names, first, r.class_number, number, sizeof number)), r.accuracy,
               r.right, r.samples);
        if (r.taken)
            printf("  %s (%" PRIu64 ")",
                   shown_text(rows_class_name(names, first, r.taken_for, number, sizeof number)), r.taken);
        putchar('\n');
    }
}

void confusion_put_json(const mr_confusion *c, uint32_t classes, const char *const *names, int64_t first,
                        json_line *j)
{
    char number[32];
    json_array(j, "per_class");
    for (uint32_t i = 0; i < classes; i++) {
        mr_class_row r;
        if (mr_confusion_row(c, i, &r, NULL) != MR_OK) continue;
        json_object(j, NULL);
        json_text(j, "class", rows_class_name(names, first, i, number, sizeof number));
        json_u64(j, "class_number", i);
        json_u64(j, "samples", r.samples);
        json_u64(j, "correct", r.right);
        json_real(j, "accuracy", r.accuracy);
        json_text(j, "taken_for",
                  r.taken ? rows_class_name(names, first, r.taken_for, number, sizeof number) : NULL);
        json_u64(j, "taken_for_count", r.taken);
        json_close_object(j);
    }
    json_close_array(j);
}
