/* run/outputs/confusion_matrix.c: classes of outputs, and which classes are taken for which others.
 *
 * The room run/outputs/
 *   takes     outputs of batches
 *   gives     the calls of millrace/outputs.h: classes and a matrix (here), views (mean_views.c)
 *   callers   programs */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/abi.h"
#include "millrace/outputs.h"
#include "settings/csv_put.h"

struct mr_confusion {
    uint32_t classes;
    uint64_t *count; /* [label * classes + predicted] */
};

/* ---- classes ---- */

uint32_t mr_outputs_best(const float *logits, uint32_t classes)
{
    uint32_t best = 0;
    for (uint32_t c = 1; logits && c < classes; c++)
        if (logits[c] > logits[best]) best = c;
    return best;
}

uint32_t mr_outputs_top(const float *logits, uint32_t classes, uint32_t top, mr_guess *out)
{
    if (!logits || !out || classes == 0 || top == 0) return 0;
    const double most = (double)logits[mr_outputs_best(logits, classes)];
    double sum = 0;
    uint32_t count = 0;
    for (uint32_t c = 0; c < classes; c++) sum += exp((double)logits[c] - most);
    for (uint32_t c = 0; c < classes; c++) {
        const mr_guess g = {c, exp((double)logits[c] - most) / sum};
        uint32_t at = count < top ? count++ : top;
        if (at == top && !(g.probability > out[--at].probability)) continue;
        for (; at > 0 && g.probability > out[at - 1].probability; at--) out[at] = out[at - 1];
        out[at] = g;
    }
    return count;
}

/* ---- the matrix ---- */

int mr_confusion_create(mr_confusion **out, uint32_t classes, mr_error *err)
{
    MRI_GIVEN(err, out);
    *out = NULL;
    if (classes < 1 || classes > MR_CONFUSION_MOST)
        return mr_error_set(err, MR_EINVAL, "expected 1 to %d classes, found %" PRIu32, MR_CONFUSION_MOST,
                            classes);
    mr_confusion *c = calloc(1, sizeof *c);
    if (c) *c = (mr_confusion){classes, calloc((size_t)classes * classes, sizeof *c->count)};
    if (c && c->count) {
        *out = c;
        return MR_OK;
    }
    free(c);
    return mr_error_set(err, MR_ENOMEM, "out of memory for a confusion matrix");
}

void mr_confusion_destroy(mr_confusion *c)
{
    if (c) free(c->count);
    free(c);
}

int mr_confusion_add(mr_confusion *c, const mr_outputs *o, mr_error *err)
{
    MRI_GIVEN(err, c);
    MRI_GIVEN(err, o);
    const int rc = mri_result_check(o, err);
    if (rc) return rc;
    if (o->classes != c->classes)
        return mr_error_set(err, MR_EINVAL, "expected outputs for %u classes, found %u", c->classes,
                            o->classes);
    for (uint32_t i = 0; i < o->count; i++) {
        const int32_t label = o->labels[i];
        if (label < 0 || (uint32_t)label >= c->classes) continue;
        c->count[(size_t)label * c->classes +
                 mr_outputs_best(o->logits + (size_t)i * o->classes, o->classes)]++;
    }
    return MR_OK;
}

uint64_t *mr_confusion_counts(mr_confusion *c) { return c ? c->count : NULL; }

/* ---- a class ---- */

static mr_class_row row_of(const mr_confusion *c, uint32_t class_number)
{
    mr_class_row r = {.class_number = class_number};
    for (uint32_t said = 0; said < c->classes; said++) {
        const uint64_t count = c->count[(size_t)class_number * c->classes + said];
        r.samples += count;
        if (said == class_number) r.right = count;
        else if (count > r.taken) r.taken = count, r.taken_for = said;
    }
    r.accuracy = r.samples ? (double)r.right / (double)r.samples : (double)NAN;
    return r;
}

int mr_confusion_row_sized(const mr_confusion *c, uint32_t class_number, mr_class_row *out, mr_error *err)
{
    MRI_GIVEN(err, c);
    MRI_GIVEN(err, out);
    const int rc = mri_result_check(out, err);
    if (rc) return rc;
    if (class_number >= c->classes)
        return mr_error_set(err, MR_EINVAL, "class %u: expected 0 to %u", class_number, c->classes - 1);
    const mr_class_row r = row_of(c, class_number);
    mri_result_give(out, &r, sizeof r);
    return MR_OK;
}

/* Worst first; of equals the one with more samples, then the first. Classes without samples last. */
static int by_accuracy(const void *a, const void *b)
{
    const mr_class_row *x = a, *y = b;
    const uint64_t left = x->right * y->samples, right = y->right * x->samples; /* both below 2^64: counts of
                                                                                   samples */
    if (!x->samples != !y->samples) return x->samples ? -1 : 1;
    if (left != right) return left < right ? -1 : 1;
    if (x->samples != y->samples) return x->samples > y->samples ? -1 : 1;
    return x->class_number < y->class_number ? -1 : x->class_number > y->class_number;
}

int mr_confusion_worst(const mr_confusion *c, uint32_t most, uint32_t *out, uint32_t *count, mr_error *err)
{
    MRI_GIVEN(err, c);
    MRI_GIVEN(err, out);
    MRI_GIVEN(err, count);
    *count = 0;
    mr_class_row *all = malloc(c->classes * sizeof *all);
    if (!all) return mr_error_set(err, MR_ENOMEM, "out of memory for the classes of a confusion matrix");
    for (uint32_t i = 0; i < c->classes; i++) all[i] = row_of(c, i);
    qsort(all, c->classes, sizeof *all, by_accuracy);
    while (*count < most && *count < c->classes && all[*count].samples) {
        out[*count] = all[*count].class_number;
        ++*count;
    }
    free(all);
    return MR_OK;
}

/* ---- CSV ---- */

static void put_name(FILE *out, const char *const *names, int64_t first, uint32_t at)
{
    if (names) mri_csv_put_text(out, names[at]);
    else fprintf(out, "%" PRId64, first + at);
}

static void put_csv(const mr_confusion *c, const char *const *names, int64_t first, FILE *out)
{
    fputs("class", out);
    for (uint32_t said = 0; said < c->classes; said++) {
        fputc(',', out);
        put_name(out, names, first, said);
    }
    fputs(",samples,accuracy\n", out);
    for (uint32_t k = 0; k < c->classes; k++) {
        const mr_class_row r = row_of(c, k);
        put_name(out, names, first, k);
        for (uint32_t said = 0; said < c->classes; said++)
            fprintf(out, ",%" PRIu64, c->count[(size_t)k * c->classes + said]);
        fprintf(out, ",%" PRIu64 ",", r.samples);
        if (r.samples) fprintf(out, "%.6g", r.accuracy);
        fputc('\n', out);
    }
}

char *mr_confusion_csv(const mr_confusion *c, const char *const *names, int64_t first)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *f = c ? open_memstream(&text, &bytes) : NULL;
    if (!f) return NULL;
    put_csv(c, names, first, f);
    const bool failed = ferror(f);
    if (fclose(f) == 0 && !failed) return text;
    free(text);
    return NULL;
}
