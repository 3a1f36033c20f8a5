/* formats/source/census.c: see census.h. */
#include "formats/source/census.h"

#include <stdio.h>

#include "base/util.h"

typedef struct census {
    uint8_t *used;          /* a bit for each class; NULL: there are too many for that */
    uint64_t labelled, one; /* samples with a class; one of these classes */
    uint32_t classes;       /* that have samples */
} census;

bool mri_source_labels_near(const mr_source *src)
{
    return src->ops->label && (!src->ops->labels_near || src->ops->labels_near(src));
}

static void count_labels(const mr_source *src, census *c)
{
    for (uint64_t k = 0; k < src->format_count; k++) {
        int64_t label;
        if (src->ops->label(src, k, &label) != MR_OK || label < 0 || label >= src->info.class_count) continue;
        uint8_t *byte = &c->used[label / 8];
        const uint8_t bit = (uint8_t)(1u << (label % 8));
        c->labelled++;
        if (*byte & bit) continue;
        *byte |= bit;
        c->one = (uint64_t)label;
        c->classes++;
    }
}

static void tell_one_class(mr_source *src, const census *c)
{
    const mr_source_info *info = &src->info;
    if (info->class_names)
        mri_source_tell(src, "all %llu samples have one class, %.200s", (unsigned long long)c->labelled,
                        info->class_names[c->one]);
    else
        mri_source_tell(src, "all %llu samples have one class, %lld", (unsigned long long)c->labelled,
                        (long long)c->one + (long long)info->label_offset);
}

/* Labels that are numbers of another kind (years, identifiers): a bit for each would be most of the memory.
 */
static bool are_too_many(const mr_source *src)
{
    enum { ALWAYS_BYTES = 64 << 10, BYTES_A_SAMPLE = 4 };
    return src->info.class_count / 8 > ALWAYS_BYTES + BYTES_A_SAMPLE * src->format_count;
}

static int by_label(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static int count_sorted(const mr_source *src, census *c, mr_error *err)
{
    uint32_t *all = malloc(src->format_count * sizeof *all + 1);
    if (!all)
        return mr_error_set(err, MR_ENOMEM, "no memory to count the classes of %llu samples",
                            (unsigned long long)src->format_count);
    for (uint64_t k = 0; k < src->format_count; k++) {
        int64_t label;
        if (src->ops->label(src, k, &label) == MR_OK && label >= 0 && label < src->info.class_count)
            all[c->labelled++] = (uint32_t)label;
    }
    qsort(all, c->labelled, sizeof *all, by_label);
    for (uint64_t k = 0; k < c->labelled; k++) c->classes += k == 0 || all[k] != all[k - 1];
    if (c->labelled) c->one = all[0];
    free(all);
    return MR_OK;
}

/* "0, 1, 2 and 96 more" */
static const char *first_empty(const mr_source *src, const census *c, char *buf, size_t buf_bytes)
{
    enum { SHOWN = 3 };
    const uint32_t empty = src->info.class_count - c->classes;
    size_t at = 0;
    uint32_t shown = 0;
    for (uint32_t k = 0; k < src->info.class_count && shown < SHOWN && shown < empty; k++) {
        if (c->used[k / 8] >> (k % 8) & 1) continue;
        at += (size_t)snprintf(buf + at, buf_bytes - at, "%s%lld", shown++ ? ", " : "",
                               (long long)k + (long long)src->info.label_offset);
    }
    if (empty > shown) snprintf(buf + at, buf_bytes - at, " and %u more", empty - shown);
    return buf;
}

/* Numbers that begin at 1 leave out 0, and nobody misses it. */
static void tell_empty(mr_source *src, const census *c)
{
    const mr_source_info *info = &src->info;
    const uint32_t empty = info->class_count - c->classes;
    char text[128] = "";
    if (empty == 0 || (empty == 1 && info->label_offset == 0 && src->labels.min == 1)) return;
    if (c->used) first_empty(src, c, text, sizeof text);
    mri_source_tell(src, "classes are the numbers %lld to %lld; %u of these %u have no sample%s%s",
                    (long long)info->label_offset, (long long)info->label_offset + info->class_count - 1,
                    empty, info->class_count, text[0] ? ": " : "", text);
}

int mri_census_check(const mr_source *src, const mr_source_config *cfg, mr_error *err)
{
    const mr_source_info *info = &src->info;
    void *buffer = NULL;
    size_t bytes = 0;
    mr_sample s;
    mr_error why = MR_ERROR_INIT;
    if (!src->open_member || info->label_field < 0 || info->class_count || info->count == 0 ||
        !src->ops->label || cfg->label_offset != MR_LABEL_AUTO || mri_source_is_remote(src) ||
        mri_source_is_made(src))
        return MR_OK;
    const int rc = mr_source_read(src, 0, &buffer, &bytes, &s, &why);
    free(buffer);
    if (rc != MR_EFORMAT) return MR_OK; /* reading it reports the error */
    const mr_error first = why;
    mr_error_set(&why, MR_EFORMAT, "no sample has a label that is a class; the first: %.500s", first.text);
    if (err) *err = why;
    return mri_error_place(err, MR_EFORMAT, first.file, first.offset, first.sample);
}

int mri_census_tell(mr_source *src, mr_error *err)
{
    const mr_source_info *info = &src->info;
    census c = {0};
    if (!src->open_member || info->label_field < 0 || info->class_count == 0 || !mri_source_labels_near(src))
        return MR_OK;
    if (are_too_many(src)) {
        const int rc = count_sorted(src, &c, err);
        if (rc) return rc;
    } else {
        c.used = calloc(info->class_count / 8 + 1, 1);
        if (!c.used) return mr_error_set(err, MR_ENOMEM, "no memory to count %u classes", info->class_count);
        count_labels(src, &c);
    }
    const bool declared = info->class_names && info->class_count == 1; /* as a single folder: nobody is
                                                                          surprised */
    if (c.classes == 1 && c.labelled > 1 && !declared) tell_one_class(src, &c);
    if (c.labelled > 1 && !info->class_names) tell_empty(src, &c);
    free(c.used);
    return MR_OK;
}
