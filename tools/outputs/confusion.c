/* tools/outputs/confusion.c: see confusion.h. */
#include "tools/outputs/confusion.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/exit.h"
#include "tools/cli/output.h"
#include "tools/outputs/rows.h"

enum { WORST = 10, NAME_WIDTH = 24 };

int confusion_open(confusion *c, uint32_t classes)
{
    *c = (confusion){.classes = classes};
    if (classes > CONFUSION_MOST_CLASSES) {
        say("--confusion: expected at most %d classes, found %" PRIu32, CONFUSION_MOST_CLASSES, classes);
        return EXIT_FAILED;
    }
    c->count = calloc((size_t)classes * classes, sizeof *c->count);
    return c->count ? EXIT_DONE : exit_no_memory("a confusion matrix");
}

void confusion_close(confusion *c)
{
    free(c->count);
    *c = (confusion){0};
}

void confusion_add(confusion *c, const mr_outputs *o)
{
    for (uint32_t i = 0; i < o->count; i++) {
        const int32_t label = o->labels[i];
        if (label < 0 || (uint32_t)label >= c->classes) continue;
        c->count[(size_t)label * c->classes + rows_best(o->logits + (size_t)i * o->classes, o->classes)]++;
    }
}

/* What there is to say of a class. */
typedef struct class_row {
    uint32_t class;
    uint64_t samples, right;
    uint32_t taken_for; /* the other one that is said most often, the first of equals */
    uint64_t taken;     /* so often */
} class_row;

static class_row row_of(const confusion *c, uint32_t class)
{
    class_row r = {.class = class};
    for (uint32_t said = 0; said < c->classes; said++) {
        const uint64_t count = c->count[(size_t) class * c->classes + said];
        r.samples += count;
        if (said == class) r.right = count;
        else if (count > r.taken) r.taken = count, r.taken_for = said;
    }
    return r;
}

static double accuracy_of(const class_row *r)
{
    return r->samples ? (double)r->right / (double)r->samples : (double)NAN;
}

void confusion_put_csv(const confusion *c, const char *const *names, FILE *out)
{
    char number[32];
    fputs("class", out);
    for (uint32_t said = 0; said < c->classes; said++) {
        fputc(',', out);
        rows_put_csv(out, rows_class_name(names, c->first, said, number, sizeof number));
    }
    fputs(",samples,accuracy\n", out);
    for (uint32_t class = 0; class < c->classes; class ++) {
        const class_row r = row_of(c, class);
        rows_put_csv(out, rows_class_name(names, c->first, class, number, sizeof number));
        for (uint32_t said = 0; said < c->classes; said++)
            fprintf(out, ",%" PRIu64, c->count[(size_t) class * c->classes + said]);
        fprintf(out, ",%" PRIu64 ",", r.samples);
        if (r.samples) fprintf(out, "%.6g", accuracy_of(&r));
        fputc('\n', out);
    }
}

/* Worst first; of equals the one with more samples, then the first. Classes without samples last. */
static int by_accuracy(const void *a, const void *b)
{
    const class_row *x = a, *y = b;
    const uint64_t left = x->right * y->samples, right = y->right * x->samples; /* both below 2^64: counts of
                                                                                   samples */
    if (!x->samples != !y->samples) return x->samples ? -1 : 1;
    if (left != right) return left < right ? -1 : 1;
    if (x->samples != y->samples) return x->samples > y->samples ? -1 : 1;
    return x->class < y->class ? -1 : x->class > y->class;
}

void confusion_put_worst(const confusion *c, const char *const *names)
{
    char number[32];
    class_row *all = malloc(c->classes * sizeof *all);
    uint32_t shown = 0;
    if (!all) return; /* the file has all of it */
    for (uint32_t i = 0; i < c->classes; i++) all[i] = row_of(c, i);
    qsort(all, c->classes, sizeof *all, by_accuracy);
    while (shown < WORST && shown < c->classes && all[shown].samples) shown++;
    printf("\nworst %" PRIu32 " of %" PRIu32 " classes\n  %-*s accuracy  right of samples  taken for\n",
           shown, c->classes, NAME_WIDTH, "class");
    for (uint32_t i = 0; i < shown; i++) {
        const class_row *r = &all[i];
        printf("  %-*s %8.4f %6" PRIu64 " of %-7" PRIu64, NAME_WIDTH,
               shown_text(rows_class_name(names, c->first, r->class, number, sizeof number)), accuracy_of(r),
               r->right, r->samples);
        if (r->taken)
            printf("  %s (%" PRIu64 ")",
                   shown_text(rows_class_name(names, c->first, r->taken_for, number, sizeof number)),
                   r->taken);
        putchar('\n');
    }
    free(all);
}

void confusion_put_json(const confusion *c, const char *const *names, json_line *j)
{
    char number[32];
    json_array(j, "per_class");
    for (uint32_t i = 0; i < c->classes; i++) {
        const class_row r = row_of(c, i);
        json_object(j, NULL);
        json_text(j, "class", rows_class_name(names, c->first, i, number, sizeof number));
        json_u64(j, "class_number", i);
        json_u64(j, "samples", r.samples);
        json_u64(j, "correct", r.right);
        json_real(j, "accuracy", accuracy_of(&r));
        json_text(j, "taken_for",
                  r.taken ? rows_class_name(names, c->first, r.taken_for, number, sizeof number) : NULL);
        json_u64(j, "taken_for_count", r.taken);
        json_close_object(j);
    }
    json_close_array(j);
}
