/* tools/outputs/folder_labels.c: see folder_labels.h. */
#include "tools/outputs/folder_labels.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "7", "007" */
static bool number_of(const char *name, int64_t *out)
{
    char *end;
    *out = strtoll(name, &end, 10);
    return isdigit((unsigned char)name[0]) && *end == '\0';
}

/* Is it a class of the network? Then *at is its number among them. */
static bool is_known(const folder_labels *f, const char *name, uint32_t *at)
{
    int64_t number, other;
    const bool numeric = number_of(name, &number);
    for (*at = 0; f->names && *at < f->classes; ++*at)
        if (strcmp(f->names[*at], name) == 0) return true;
    if (!numeric) return false;
    for (*at = 0; f->names && *at < f->classes; ++*at)
        if (number_of(f->names[*at], &other) && other == number) return true;
    if (f->names || number < f->first || number - f->first >= (int64_t)f->classes) return false;
    *at = (uint32_t)(number - f->first);
    return true;
}

bool folder_labels_open(folder_labels *f, mr_source *classed, const char *const *names, int64_t first,
                        uint32_t classes)
{
    const mr_source_info *info = classed ? mr_source_info_of(classed) : NULL;
    uint32_t at;
    *f = (folder_labels){.classed = classed, .names = names, .first = first, .classes = classes};
    for (uint32_t k = 0; info && info->class_names && k < info->class_count; k++)
        if (is_known(f, info->class_names[k], &at)) return true;
    folder_labels_close(f);
    return false;
}

void folder_labels_close(folder_labels *f)
{
    mr_source_close(f->classed);
    *f = (folder_labels){0};
}

/* Is it the name of a class folder? */
static bool is_class(const folder_labels *f, const char *name)
{
    const mr_source_info *info = mr_source_info_of(f->classed);
    for (uint32_t k = 0; k < info->class_count; k++)
        if (strcmp(info->class_names[k], name) == 0) return true;
    return false;
}

const char *folder_labels_of(const folder_labels *f, const char *name, char *buf, size_t buf_bytes)
{
    uint32_t at;
    if (!f->classed) return "";
    for (int level = 0; level < 2; level++) { /* CLASS/x.jpg, or SPLIT/CLASS/x.jpg */
        const char *slash = strchr(name, '/');
        if (!slash || (size_t)(slash - name) >= buf_bytes) return "";
        snprintf(buf, buf_bytes, "%.*s", (int)(slash - name), name);
        name = slash + 1;
        if (!is_class(f, buf)) continue;
        if (!is_known(f, buf, &at)) return buf;
        if (f->names) return f->names[at];
        snprintf(buf, buf_bytes, "%" PRId64, f->first + at);
        return buf;
    }
    return "";
}
