/* formats/text/csv_each.c: see tables.h. */
#include <strings.h>

#include "base/util.h"
#include "formats/text/tables.h"

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
