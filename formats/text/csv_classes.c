/* formats/text/csv_classes.c: see csv_table.h. */
#include <errno.h>
#include <stdio.h>

#include "base/util.h"
#include "formats/source/classes.h"
#include "formats/text/csv_table.h"

/* ---- one row ---- */
int mri_csv_table_no_memory(const mr_source *src, mr_error *err)
{
    return mri_error_place(err, mr_error_set(err, MR_ENOMEM, "no memory for the table"), src->path,
                           MR_NOWHERE, MR_NOWHERE);
}

int mri_csv_table_add_name(const mr_source *src, mri_names *names, const char *text, size_t bytes,
                           uint32_t *number, bool *is_new, mr_error *err)
{
    const int rc = mri_names_add(names, text, bytes, number, is_new);
    if (rc == MR_ENOMEM) return mri_csv_table_no_memory(src, err);
    if (rc == MR_ELIMIT)
        mri_error_place(err, mr_error_set(err, rc, "more names than can be kept: cut the table into several"),
                        src->path, MR_NOWHERE, MR_NOWHERE);
    return rc;
}

bool mri_csv_table_is_unlabelled(const mri_csv_table *t, const mri_csv *c)
{
    size_t bytes;
    mri_csv_trimmed(mri_csv_place(c, t->column.label), &bytes);
    return bytes == 0 && mri_csv_single(c, t->column.label, "class", NULL) == MR_OK;
}

int mri_csv_table_add_class(const mr_source *src, mri_csv_table *t, const mri_csv *c, bool taken,
                            mr_error *err)
{
    size_t bytes;
    uint32_t number;
    bool is_new;
    const char *text = mri_csv_trimmed(mri_csv_place(c, t->column.label), &bytes);
    int rc = mri_csv_single(c, t->column.label, "class", err);
    if (rc || bytes == 0) return rc; /* such a row is left out */
    rc = mri_csv_table_add_name(src, &t->classes.names, text, bytes, &number, &is_new, err);
    if (rc) return rc;
    if (taken) t->label[t->paths.count - 1] = (int32_t)number;
    if (!is_new) return MR_OK;
    if (number >= t->classes.cap) {
        const uint32_t cap = t->classes.cap ? 2 * t->classes.cap : 16;
        uint32_t *larger = realloc(t->classes.line, cap * sizeof *larger);
        if (!larger) return mri_csv_table_no_memory(src, err);
        t->classes.line = larger;
        t->classes.cap = cap;
    }
    t->classes.line[number] = (uint32_t)mri_min_u64(c->line, UINT32_MAX);
    return MR_OK;
}

bool mri_csv_integer_of(const char *text, size_t bytes, int64_t *out)
{
    char *end;
    *out = 0;
    errno = 0;
    if (bytes == 0 || !(*text == '-' || (*text >= '0' && *text <= '9'))) return false;
    *out = strtoll(text, &end, 10);
    if (errno || end == text) return false;
    if (*end == '.') end += 1 + strspn(end + 1, "0");
    return end == text + bytes;
}

static bool integer_of(const char *text, int64_t *out) { return mri_csv_integer_of(text, strlen(text), out); }

/* The first lines with an integer text and with any other text; 0: no such line. */
static void sort_of_classes(const mri_csv_table *t, uint32_t *integer, uint32_t *name)
{
    *integer = *name = UINT32_MAX;
    for (uint32_t k = 0; k < t->classes.names.count; k++) {
        int64_t ignored;
        uint32_t *sort = integer_of(mri_name(&t->classes.names, k), &ignored) ? integer : name;
        if (*sort == UINT32_MAX) *sort = k;
    }
}

static int bad_class(const mr_source *src, const mri_csv_table *t, uint32_t class_at, const char *why,
                     mr_error *err)
{
    mr_error_set(err, MR_EFORMAT, "line %u: class %.100s: %s", t->classes.line[class_at],
                 mri_name(&t->classes.names, class_at), why);
    return mri_error_place(err, MR_EFORMAT, src->path, MR_NOWHERE, MR_NOWHERE);
}

static int number_integers(mr_source *src, mri_csv_table *t, const mr_source_config *cfg, mr_error *err)
{
    const int64_t offset = cfg->label_offset == MR_LABEL_AUTO ? 0 : cfg->label_offset;
    int64_t value, least = INT64_MAX, largest = 0;
    for (uint32_t k = 0; k < t->classes.names.count; k++) {
        integer_of(mri_name(&t->classes.names, k), &value);
        if (__builtin_sub_overflow(value, offset, &value) || value < 0)
            return bad_class(
                src, t, k,
                "negative; classes begin elsewhere than at 0 with a label offset (--label-offset -1)", err);
        if (value >= INT32_MAX) return bad_class(src, t, k, "too large: expected less than 2147483647", err);
        if (value > largest) largest = value;
        if (value < least) least = value;
        t->classes.line[k] = (uint32_t)value; /* its number from here on */
    }
    src->info.class_count = (uint32_t)largest + 1;
    src->info.label_offset = offset;
    if (t->classes.names.count == 0) return MR_OK;
    src->labels.min = least + offset;
    src->labels.max = largest + offset;
    return MR_OK;
}

static int by_bytes(const void *a, const void *b, void *names)
{
    return strcmp(mri_name(names, *(const uint32_t *)a), mri_name(names, *(const uint32_t *)b));
}

/* ---- lists of labels, which are no classes ---- */
static int refuse_lists(const mr_source *src, const mri_csv_table *t, mr_error *err)
{
    for (uint32_t k = 0; k < t->classes.names.count; k++) {
        const char *name = mri_name(&t->classes.names, k);
        const size_t bytes = strlen(name);
        if ((name[0] == '[' && name[bytes - 1] == ']') || (name[0] == '{' && name[bytes - 1] == '}'))
            return bad_class(src, t, k,
                             "a list of labels, and a picture has one class: give each label a column of 0 "
                             "and 1, and name them as targets (--target-key FIRST..LAST)",
                             err);
    }
    return MR_OK;
}

/* order: the numbers of all classes by the bytes of their names. */
static bool is_class(const mri_names *names, const uint32_t *order, const char *text, size_t bytes)
{
    size_t low = 0, high = names->count;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        const char *name = mri_name(names, order[mid]);
        int sign = strncmp(name, text, bytes);
        if (sign == 0) sign = name[bytes] != '\0';
        if (sign == 0) return true;
        if (sign < 0) low = mid + 1;
        else high = mid;
    }
    return false;
}

/* Classes A and A|B: the second looks like two labels. */
static void tell_joined(mr_source *src, const mri_names *names, const uint32_t *order)
{
    uint32_t count = 0, first = 0;
    for (uint32_t k = 0; k < names->count; k++) {
        const char *name = mri_name(names, k);
        if (!strpbrk(name, "|;,")) continue;
        bool joined = false;
        for (const char *at = name; !joined && *at;) {
            at += strspn(at, "|;, ");
            const size_t bytes = strcspn(at, "|;,");
            joined = bytes > 0 && is_class(names, order, at, bytes);
            at += bytes;
        }
        if (joined && count++ == 0) first = k;
    }
    char shown[240];
    if (count)
        mri_source_tell(
            src,
            "%u class%s named like several of the others (%.100s), and each combination is a class of "
            "its own; for pictures with several labels give each label a column of 0 and 1 "
            "(--target-key FIRST..LAST)",
            count, count == 1 ? " is" : "es are", mr_text_shown(mri_name(names, first), shown, sizeof shown));
}

static int number_names(mr_source *src, mri_csv_table *t, mr_error *err)
{
    const uint32_t n = t->classes.names.count;
    const int rc = refuse_lists(src, t, err);
    if (rc) return rc;
    uint32_t *order = malloc(n * sizeof *order);
    t->classes.numbered = malloc(n * sizeof *t->classes.numbered);
    if (!order || !t->classes.numbered) {
        free(order);
        return mri_csv_table_no_memory(src, err);
    }
    for (uint32_t k = 0; k < n; k++) order[k] = k;
    qsort_r(order, n, sizeof *order, by_bytes, &t->classes.names);
    for (uint32_t k = 0; k < n; k++) t->classes.line[order[k]] = k;
    tell_joined(src, &t->classes.names, order);
    free(order);
    src->info.class_count = n;
    return MR_OK;
}

int mri_csv_table_number_classes(mr_source *src, mri_csv_table *t, const mr_source_config *cfg, mr_error *err)
{
    uint32_t integer, name;
    if (!t->column.labelled) return MR_OK;
    sort_of_classes(t, &integer, &name);
    if (integer != UINT32_MAX && name != UINT32_MAX)
        return bad_class(src, t, integer < name ? name : integer,
                         "integers and names are mixed: expected only one sort of classes", err);
    const bool named = name != UINT32_MAX;
    const int rc = named ? number_names(src, t, err) : number_integers(src, t, cfg, err);
    if (rc) return rc;
    for (uint32_t k = 0; k < t->paths.count; k++) t->label[k] = (int32_t)t->classes.line[t->label[k]];
    if (!named) {
        mri_names_fini(&t->classes.names);
        free(t->classes.line);
        t->classes.line = NULL;
        t->classes.cap = 0;
        return MR_OK;
    }
    mri_names_seal(&t->classes.names);
    for (uint32_t k = 0; k < t->classes.names.count; k++)
        t->classes.numbered[t->classes.line[k]] = mri_name(&t->classes.names, k);
    src->info.class_names = t->classes.numbered;
    return MR_OK;
}
