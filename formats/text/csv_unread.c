/* formats/text/csv_unread.c: columns of a table that no sample has. */
#include <stdio.h>
#include <strings.h>

#include "base/util.h"
#include "formats/source/source.h"
#include "formats/text/csv_table.h"

enum { NAMED = 6 };

/* Some programs write the numbers of rows in front, without a name. */
static bool is_row_number(const char *name, size_t bytes)
{
    static const char pandas[] = "Unnamed: 0";
    return bytes == 0 || (bytes == sizeof pandas - 1 && strncasecmp(name, pandas, bytes) == 0);
}

static bool is_read(const mri_csv_table *t, uint32_t column)
{
    bool read = column == t->column.image || (t->column.labelled && column == t->column.label) ||
                mri_table_numbers_has(&t->numbers, column);
    for (uint32_t k = 0; k < t->parts.count; k++) read |= t->parts.column[k].at == column;
    for (uint32_t k = 0; k < t->others.count; k++) read |= t->others.of[k].at == column; /* compared */
    return read;
}

void mri_csv_tell_unread(mr_source *src, const mri_csv_table *t, const mri_csv *names)
{
    char text[NAMED * (MRI_CSV_SHOWN + 2) + 1], shown[MRI_CSV_SHOWN], raw[64];
    size_t at = 0, bytes;
    uint32_t count = 0;
    for (uint32_t k = 0; k < names->count; k++) {
        const char *name = mri_csv_trimmed(mri_csv_place(names, k), &bytes);
        if (is_read(t, k) || is_row_number(name, bytes) || count++ >= NAMED) continue;
        snprintf(raw, sizeof raw, "%.*s", (int)mri_min_u64(bytes, sizeof raw - 1), name);
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", at ? ", " : "",
                               mr_text_shown(raw, shown, sizeof shown));
    }
    if (count)
        mri_source_tell(src, "left out: %u column%s of the table (%s%s)", count, count == 1 ? "" : "s", text,
                        count > NAMED ? ", ..." : "");
}
