/* formats/text/csv_each.c: see tables.h. */
#include <strings.h>

#include "base/number.h"
#include "base/util.h"
#include "formats/text/csv_table.h"
#include "formats/text/tables.h"

enum { MOST_ROWS = 1 << 18 };

bool mri_is_table_name(const char *name)
{
    static const char *const endings[] = {".csv",    ".tsv",    ".txt",   ".csv.gz",
                                          ".tsv.gz", ".txt.gz", ".jsonl", ".json"};
    const size_t n = strlen(name);
    for (size_t k = 0; name[0] != '.' && k < MRI_ARRAY_COUNT(endings); k++) {
        const size_t m = strlen(endings[k]);
        if (n > m && strcasecmp(name + n - m, endings[k]) == 0) return true;
    }
    return false;
}

static bool is_fraction(const char *text, size_t bytes)
{
    int64_t integer;
    char *end;
    if (bytes == 0 || mri_csv_integer_of(text, bytes, &integer)) return false;
    mri_strtod(text, &end);
    return end == text + bytes;
}

static int read_rows(mri_csv *c, mri_table_row *see, void *context, mr_error *err)
{
    mri_csv_table t = {0};
    mr_source_config cfg;
    bool header = false;
    mr_source_defaults(&cfg);
    int rc = mri_csv_next(c, err);
    if (!rc) rc = mri_csv_table_choose(&t, c, &cfg, &header, err);
    if (!rc && !header) return MR_EEND;
    size_t name_bytes;
    const char *name = rc ? NULL : mri_csv_trimmed(mri_csv_place(c, t.column.label), &name_bytes);
    if (name && !mri_csv_is_class_name(name, name_bytes)) return MR_EEND;
    for (uint32_t k = 0; !rc && k < MOST_ROWS; k++) {
        size_t bytes, class_bytes;
        rc = mri_csv_next(c, err);
        if (rc || c->count != t.column.count) continue;
        const char *picture = mri_csv_trimmed(mri_csv_place(c, t.column.image), &bytes);
        const char *class_name = mri_csv_trimmed(mri_csv_place(c, t.column.label), &class_bytes);
        if (is_fraction(class_name, class_bytes)) return MR_EEND; /* a measure, no class */
        if (bytes && class_bytes && !see(context, picture, bytes, class_name, class_bytes)) return MR_OK;
    }
    return rc;
}

int mri_csv_each_row(const char *path, int fd, mri_table_row *see, void *context, mr_error *err)
{
    mri_csv c;
    mr_error what = MR_ERROR_INIT;
    int rc = mri_csv_take(&c, fd, path, &what);
    if (!rc) {
        rc = read_rows(&c, see, context, &what);
        mri_csv_close(&c);
    }
    if (rc != MR_ENOMEM) return MR_OK;
    if (err) *err = what;
    return rc;
}
