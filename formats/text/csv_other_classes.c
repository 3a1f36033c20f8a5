/* formats/text/csv_other_classes.c: further columns with a usual name of classes. Which one is meant, their
 * names do not say: a table whose columns have the same classes in other rows is refused, and a column with
 * other classes (a number next to a name, a kind above a kind) is reported. */
#include <stdio.h>
#include <strings.h>

#include "base/util.h"
#include "formats/text/csv_table.h"

static bool is_equal(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
    int64_t x, y;
    if (a_bytes == b_bytes && strncasecmp(a, b, a_bytes) == 0) return true;
    return mri_csv_integer_of(a, a_bytes, &x) && mri_csv_integer_of(b, b_bytes, &y) && x == y;
}

static void keep(char out[MRI_CSV_SHOWN], const char *text, size_t bytes)
{
    char raw[MRI_CSV_SHOWN / 2];
    snprintf(raw, sizeof raw, "%.*s", (int)mri_min_u64(bytes, sizeof raw - 1), text);
    mr_text_shown(raw, out, MRI_CSV_SHOWN);
}

void mri_csv_other_classes_find(mri_csv_other_classes *o, const mri_csv_table *t, const mri_csv *names)
{
    o->count = 0;
    for (uint32_t k = 0; k < names->count && o->count < MRI_CSV_OTHER_CLASSES; k++) {
        size_t bytes;
        const char *name = mri_csv_trimmed(mri_csv_place(names, k), &bytes);
        if (k == t->column.label || k == t->column.image || mri_table_numbers_has(&t->numbers, k) ||
            !mri_csv_is_class_name(name, bytes))
            continue;
        mri_csv_other_class *other = &o->of[o->count++];
        *other = (mri_csv_other_class){.at = k};
        keep(other->name, name, bytes);
    }
    size_t bytes;
    const char *name = mri_csv_trimmed(mri_csv_place(names, t->column.label), &bytes);
    keep(o->taken, name, bytes);
}

void mri_csv_other_classes_see(mri_csv_other_classes *o, const mri_csv_table *t, const mri_csv *row)
{
    size_t bytes, other_bytes;
    if (o->count == 0 || row->count != t->column.count) return; /* a short row is reported later */
    const char *text = mri_csv_trimmed(mri_csv_place(row, t->column.label), &bytes);
    for (uint32_t k = 0; k < o->count; k++) {
        mri_csv_other_class *other = &o->of[k];
        const char *other_text = mri_csv_trimmed(mri_csv_place(row, other->at), &other_bytes);
        if (bytes == 0 || other_bytes == 0) continue;
        if (is_equal(text, bytes, other_text, other_bytes)) {
            other->same++;
        } else if (other->differ++ == 0) {
            other->line = row->line;
            keep(other->first, text, bytes);
            keep(other->first_other, other_text, other_bytes);
        }
    }
}

int mri_csv_other_classes_settle(const mri_csv_other_classes *o, mr_source *src, mr_error *err)
{
    for (uint32_t k = 0; k < o->count; k++) {
        const mri_csv_other_class *other = &o->of[k];
        if (other->differ == 0) continue;
        int64_t ignored;
        const bool numbers = mri_csv_integer_of(other->first, strlen(other->first), &ignored) &&
                             mri_csv_integer_of(other->first_other, strlen(other->first_other), &ignored);
        if (numbers ? other->same >= other->differ : other->same > 0) { /* numbers meet by chance */
            mr_error_set(
                err, MR_EFORMAT,
                "line %llu: column %s has the class %s, column %s has %s (%llu of %llu rows differ): "
                "name the column to take (--label-key %s, or %s)",
                (unsigned long long)other->line, o->taken, other->first, other->name, other->first_other,
                (unsigned long long)other->differ, (unsigned long long)(other->differ + other->same),
                o->taken, other->name);
            return mri_error_place(err, MR_EFORMAT, src->path, MR_NOWHERE, MR_NOWHERE);
        }
        mri_source_tell(src, "column %s has the classes, column %s is not read; --label-key %s takes it",
                        o->taken, other->name, other->name);
    }
    return MR_OK;
}
