/* formats/source/classes.c: see classes.h. */
#include "formats/source/classes.h"

#include <stdio.h>

#include "base/util.h"
#include "formats/source/names.h"

enum { TWICE = UINT32_MAX }; /* in place of a number: two classes have this name */

const char **mri_class_names_copy(const char *const *names, uint32_t count)
{
    size_t bytes, text = 0;
    for (uint32_t k = 0; k < count; k++) text += strlen(names[k]) + 1; /* in memory already: no overflow */
    if (!mri_mul_size(count, sizeof *names, &bytes) || !mri_add_size(bytes, text, &text)) return NULL;
    const char **copy = malloc(text ? text : 1);
    if (!copy) return NULL;
    char *at = (char *)copy + bytes;
    for (uint32_t k = 0; k < count; k++) {
        const size_t n = strlen(names[k]) + 1;
        memcpy(at, names[k], n);
        copy[k] = at;
        at += n;
    }
    return copy;
}

void mri_classes_fini(mri_classes *c)
{
    free(c->number);
    free(c->names);
    *c = (mri_classes){0};
}

int mri_classes_renumber(const mri_classes *c, int64_t *label, mr_error *err)
{
    if (*label < 0 || *label >= (int64_t)c->format_class_count)
        return mr_error_set(err, MR_EFORMAT, "label %lld is out of range: expected 0..%u", (long long)*label,
                            c->format_class_count - 1);
    *label = c->number[*label];
    return MR_OK;
}

/* "cat, dog, horse and 7 more" */
static const char *some_names(const char *const *names, uint32_t count, char *buf, size_t buf_bytes)
{
    enum { SHOWN = 5 };
    size_t at = 0;
    for (uint32_t k = 0; k < count && k < SHOWN && at < buf_bytes; k++)
        at += (size_t)snprintf(buf + at, buf_bytes - at, "%s%.40s", k ? ", " : "", names[k]);
    if (count > SHOWN && at < buf_bytes) snprintf(buf + at, buf_bytes - at, " and %u more", count - SHOWN);
    return buf;
}

static bool same_names(const mr_source_info *info, const mr_source_config *cfg)
{
    bool same = info->class_count == cfg->class_count;
    for (uint32_t k = 0; same && k < cfg->class_count; k++)
        same = strcmp(info->class_names[k], cfg->class_names[k]) == 0;
    return same;
}

static int no_memory(mr_error *err)
{
    return mr_error_set(err, MR_ENOMEM, "no memory for the numbers of classes");
}

static int add(mri_names *names, const char *name, uint32_t *at, bool *is_new, mr_error *err)
{
    const int rc = mri_names_add(names, name, strlen(name), at, is_new);
    if (rc == MR_ENOMEM) return no_memory(err);
    return rc ? mr_error_set(err, rc, "more class names than can be kept") : MR_OK;
}

/* number[k]: of the k-th different name among those to follow. */
static int list_given_classes(mri_names *names, uint32_t *number, const mr_source_config *cfg, mr_error *err)
{
    for (uint32_t k = 0; k < cfg->class_count; k++) {
        uint32_t at;
        bool is_new;
        const int rc = add(names, cfg->class_names[k], &at, &is_new, err);
        if (rc) return rc;
        number[at] = is_new ? k : TWICE;
    }
    return MR_OK;
}

static int number_format_classes(mri_classes *c, mri_names *names, const uint32_t *theirs,
                                 const mr_source_info *info, const mr_source_config *cfg, mr_error *err)
{
    for (uint32_t k = 0; k < info->class_count; k++) {
        uint32_t at;
        bool is_new;
        char some[320] = "";
        const int rc = add(names, info->class_names[k], &at, &is_new, err);
        if (rc) return rc;
        if (is_new)
            return mr_error_set(
                err, MR_EFORMAT,
                "class %.100s is none of the %u expected (%s): take it out, or add it to the data trained on",
                info->class_names[k], cfg->class_count,
                some_names(cfg->class_names, cfg->class_count, some, sizeof some));
        if (theirs[at] == TWICE)
            return mr_error_set(
                err, MR_EFORMAT,
                "class %.100s: two of the classes expected have this name, so that it does not say which "
                "is meant",
                info->class_names[k]);
        c->number[k] = theirs[at];
    }
    return MR_OK;
}

static int fill(mri_classes *c, const mr_source_info *info, const mr_source_config *cfg, mr_error *err)
{
    mri_names names = {0};
    uint32_t *theirs = malloc(cfg->class_count * sizeof *theirs);
    c->format_class_count = info->class_count;
    c->number = malloc((info->class_count ? info->class_count : 1) * sizeof *c->number);
    c->names = mri_class_names_copy(cfg->class_names, cfg->class_count);
    int rc = theirs && c->number && c->names ? list_given_classes(&names, theirs, cfg, err) : no_memory(err);
    if (!rc) rc = number_format_classes(c, &names, theirs, info, cfg, err);
    mri_names_fini(&names);
    free(theirs);
    return rc;
}

int mri_classes_follow(mr_source *src, const mr_source_config *cfg, mr_error *err)
{
    mr_source_info *info = &src->info;
    if (!cfg->class_names || cfg->class_count == 0 || !info->class_names || same_names(info, cfg))
        return MR_OK;
    mri_classes *c = &src->classes;
    const int rc = fill(c, info, cfg, err);
    if (rc) return mri_error_place(err, rc, src->path, MR_NOWHERE, MR_NOWHERE);
    for (uint32_t k = 0; k < c->format_class_count; k++)
        info->fingerprint = mri_mix64(info->fingerprint ^ c->number[k]); /* other labels */
    info->memory_bytes += c->format_class_count * sizeof *c->number;
    for (uint32_t k = 0; k < cfg->class_count; k++)
        info->memory_bytes += sizeof *c->names + strlen(c->names[k]) + 1;
    info->class_names = c->names;
    info->class_count = cfg->class_count;
    return mri_source_budget(cfg, info->memory_bytes, src->path, err);
}
