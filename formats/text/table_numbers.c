/* formats/text/table_numbers.c: see table_numbers.h. */
#include "formats/text/table_numbers.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <strings.h>

#include "base/number.h"
#include "base/util.h"
#include "formats/source/value.h"

static bool is_number(const char *name, size_t bytes)
{
    return bytes > 0 && bytes < 9 && strspn(name, "0123456789") >= bytes;
}

/* By its number, from 1, or its name. */
static bool find(const mri_csv *c, const char *name, size_t bytes, uint32_t *out)
{
    if (is_number(name, bytes)) {
        const unsigned long number = strtoul(name, NULL, 10);
        *out = (uint32_t)number - 1;
        return number >= 1 && number <= c->count;
    }
    const int at = mri_csv_find_name(c, name, bytes);
    *out = at < 0 ? 0 : (uint32_t)at;
    return at >= 0;
}

static int no_column(const mri_csv *c, const char *name, size_t bytes, mr_error *err)
{
    char known[512];
    size_t at = 0;
    known[0] = '\0';
    for (uint32_t k = 0; k < c->count && at < sizeof known; k++)
        at += (size_t)snprintf(known + at, sizeof known - at, "%s%.40s", k ? ", " : "", mri_csv_place(c, k));
    return mri_text_error_at(&c->text, err, MR_EFORMAT, c->line,
                             "no column %.*s for the targets; there are: %s; name one, or all from one to "
                             "another (FIRST..LAST)",
                             (int)mri_min_u64(bytes, 200), name, known);
}

int mri_table_numbers_choose(mri_table_numbers *n, const mri_csv *c, const char *key, mr_error *err)
{
    const char *dots = strstr(key, "..");
    const size_t bytes = dots ? (size_t)(dots - key) : strlen(key);
    uint32_t last;
    if (strlen(key) > MR_MAX_NAME)
        return mr_error_set(err, MR_EINVAL,
                            "targets %.80s...: expected at most %d bytes, which the name of a field has; "
                            "columns have numbers, too (FIRST..LAST)",
                            key, MR_MAX_NAME);
    if (!find(c, key, bytes, &n->first)) return no_column(c, key, bytes, err);
    last = n->first;
    if (dots && !find(c, dots + 2, strlen(dots + 2), &last))
        return no_column(c, dots + 2, strlen(dots + 2), err);
    if (last < n->first)
        return mri_text_error_at(&c->text, err, MR_EINVAL, c->line,
                                 "targets %s: the second column stands before the first", key);
    n->count = last - n->first + 1;
    const bool named = !is_number(key, bytes), last_named = dots && !is_number(dots + 2, strlen(dots + 2));
    const int rc = named ? mri_csv_named_once(c, n->first, true, "--target-key", err) : MR_OK;
    return !rc && last_named ? mri_csv_named_once(c, last, true, "--target-key", err) : rc;
}

int mri_table_numbers_take_names(mri_table_numbers *n, const mri_csv *c, mr_error *err)
{
    size_t text = 0, bytes;
    for (uint32_t k = 0; k < n->count; k++) text += strlen(mri_csv_place(c, n->first + k)) + 1;
    free(n->name);
    n->name = malloc(n->count * sizeof *n->name + text);
    if (!n->name) return mr_error_set(err, MR_ENOMEM, "no memory for the names of %u columns", n->count);
    char *at = (char *)(n->name + n->count);
    for (uint32_t k = 0; k < n->count; k++) {
        const char *place = mri_csv_trimmed(mri_csv_place(c, n->first + k), &bytes);
        n->name[k] = memcpy(at, place, bytes);
        at[bytes] = '\0';
        at += bytes + 1;
    }
    return MR_OK;
}

/* A decimal number, and nothing else; nan and inf are refused. */
static bool number_of(const char *place, float *out)
{
    size_t bytes;
    const char *text = mri_csv_trimmed(place, &bytes);
    char *end;
    if (bytes == 0 || strspn(text, "+-.0123456789eE") < bytes) return false;
    const double v = mri_strtod(text, &end);
    *out = (float)v;
    return end == text + bytes && fabs(v) <= (double)FLT_MAX;
}

int mri_table_numbers_add(mri_table_numbers *n, const mri_csv *c, mr_error *err)
{
    if (n->used + n->count > n->cap) {
        const uint64_t cap = mri_max_u64(2 * n->cap, 64 + n->count);
        float *larger = realloc(n->value, (size_t)cap * sizeof *larger);
        if (!larger) return mr_error_set(err, MR_ENOMEM, "no memory for the numbers of the table");
        n->value = larger;
        n->cap = cap;
    }
    for (uint32_t k = 0; k < n->count; k++)
        if (!number_of(mri_csv_place(c, n->first + k), &n->value[n->used + k]))
            return mri_text_error_at(&c->text, err, MR_EFORMAT, c->line,
                                     "targets: expected a number in column %u, found \"%.40s\"",
                                     n->first + k + 1, mri_csv_place(c, n->first + k));
    n->used += n->count;
    return MR_OK;
}

int mri_table_numbers_finish(mri_table_numbers *n, const char *name, const mr_source_config *cfg,
                             const char *path, mri_rows *out, mr_error *err)
{
    mr_field f = mri_field(name, MR_TYPE_TENSOR);
    if (n->count == 0) return MR_OK;
    f.dtype = MR_F32;
    f.ndim = 1;
    f.dim[0] = n->count;
    const int rc = mri_rows_init(out, &f, n->used / n->count, cfg, path, err);
    if (rc) return rc;
    memcpy(out->data, n->value, (size_t)n->used * sizeof *n->value);
    free(n->value);
    n->value = NULL;
    n->used = n->cap = 0;
    return MR_OK;
}

void mri_table_numbers_fini(mri_table_numbers *n)
{
    free(n->value);
    free(n->name);
    n->value = NULL;
    n->name = NULL;
    n->used = n->cap = 0;
}
