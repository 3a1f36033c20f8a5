/* pipeline/choose/class_plan.c: classes named by a list, renamed by a list, and some of them chosen. See
 * choosing.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "pipeline/choose/choosing.h"

enum { CLASSES_NOTED = 20, NAME_MOST = 1000 };

static int no_memory(mr_error *err)
{
    return mr_error_set(err, MR_ENOMEM, "no memory for the names of classes");
}

/* ---- lines of a text ---- */
typedef struct lines {
    char *text, **line;
    uint32_t count;
} lines;

static void lines_fini(lines *l)
{
    free(l->text);
    free(l->line);
}

/* Empty lines at the end are left out. option: whose text it is. */
static int take_lines(lines *l, const char *text, const char *option, mr_error *err)
{
    size_t most = 1;
    text = mri_skip_mark(text);
    for (const char *p = text; *p; p++) most += *p == '\n';
    l->text = strdup(text);
    l->line = calloc(most, sizeof *l->line);
    if (!l->text || !l->line) return no_memory(err);
    if (most > 1u << 24) return mr_error_set(err, MR_EFORMAT, "--%s: more than 2^24 lines", option);
    for (char *at = l->text; *at;) {
        size_t n = strcspn(at, "\n");
        char *next = at + n + (at[n] == '\n');
        while (n && at[n - 1] == '\r') n--;
        at[n] = '\0';
        if (n > NAME_MOST)
            return mr_error_set(err, MR_EFORMAT, "--%s: line %u: expected a line of at most %d bytes", option,
                                l->count + 1, NAME_MOST);
        l->line[l->count++] = at;
        at = next;
    }
    while (l->count && !l->line[l->count - 1][0]) l->count--;
    return MR_OK;
}

/* ---- the plan ---- */
static const char *old_name(const mr_source_info *info, uint32_t k, char *buf, size_t room)
{
    if (info->class_names) return info->class_names[k];
    snprintf(buf, room, "%" PRId64, (int64_t)k + info->label_offset);
    return buf;
}

static int begin(mri_class_plan *p, const mr_source *src, mr_error *err)
{
    const mr_source_info *info = mr_source_info_of(src);
    char number[32];
    if (info->label_field < 0 || info->class_count == 0)
        return mr_error_set(err, MR_EFORMAT,
                            "%s: the data have no classes, which --only-classes, --rename-classes and "
                            "--classes-from need",
                            info->path);
    p->count = p->names_count = info->class_count;
    p->to = malloc((size_t)p->count * sizeof *p->to);
    p->names = calloc(p->count, sizeof *p->names);
    if (!p->to || !p->names) return no_memory(err);
    for (uint32_t k = 0; k < p->count; k++) {
        p->to[k] = k;
        if (!(p->names[k] = strdup(old_name(info, k, number, sizeof number)))) return no_memory(err);
    }
    return MR_OK;
}

static int set_name(mri_class_plan *p, uint32_t k, const char *name, mr_error *err)
{
    free(p->names[k]);
    p->names[k] = strdup(name);
    return p->names[k] ? MR_OK : no_memory(err);
}

static int find(const mri_class_plan *p, const char *name)
{
    for (uint32_t k = 0; k < p->names_count; k++)
        if (strcmp(p->names[k], name) == 0) return (int)k;
    return -1;
}

/* May the data lack a class that has this name in the end? */
static bool may_be_missing(const mr_choice_config *cfg, const char *name)
{
    for (uint32_t k = 0; cfg->known && k < cfg->known_count; k++)
        if (strcmp(cfg->known[k], name) == 0) return true;
    return cfg->lenient;
}

static int no_class(const mr_source *src, const char *option, const char *name, mr_error *err)
{
    const mr_source_info *info = mr_source_info_of(src);
    bool commas = false;
    for (uint32_t k = 0; info->class_names && k < info->class_count; k++)
        commas |= strchr(info->class_names[k], ',') != NULL;
    return mr_error_set(
        err, MR_EFORMAT, "--%s: %s has no class \"%s\"; 'millrace inspect' lists them%s", option, info->path,
        name, commas && strcmp(option, "only-classes") == 0 ? "; write \\, for a comma in a name" : "");
}

static bool all_have_names(const mr_source_info *info)
{
    bool all = info->class_names != NULL;
    for (uint32_t k = 0; all && k < info->class_count; k++) all = info->class_names[k][0];
    return all;
}

/* A class without samples may have lost its name; the others keep theirs. */
static int check_kept(const mr_source_info *info, uint32_t k, const char *name, mr_error *err)
{
    const char *old = info->class_names ? info->class_names[k] : "";
    if (!old[0] || strcmp(old, name) == 0) return MR_OK;
    return mr_error_set(
        err, MR_EFORMAT,
        "--classes-from: line %u: expected \"%s\", the name that the class has, found \"%s\"; "
        "--rename-classes changes names",
        k + 1, old, name);
}

/* Classes before the smallest label that there is: tables often count from 1. */
static uint32_t classes_before(const mr_source *src, const mri_class_plan *p)
{
    const mr_source_labels *l = mr_source_labels_of(src);
    const mr_source_info *info = mr_source_info_of(src);
    if (info->class_names || l->min > l->max || l->min <= info->label_offset) return 0;
    const int64_t before = l->min - info->label_offset;
    return before < (int64_t)p->count ? (uint32_t)before : 0;
}

/* One name for each number, from the first one on. A list without the classes before the smallest label
 * begins with that label. */
static int from_list(mri_class_plan *p, const mr_source *src, const char *text, mr_error *err)
{
    lines l = {0};
    const mr_source_info *info = mr_source_info_of(src);
    if (all_have_names(info))
        return mr_error_set(err, MR_EFORMAT,
                            "--classes-from: the classes of %s have names; --rename-classes changes them",
                            info->path);
    int rc = take_lines(&l, text, "classes-from", err);
    uint32_t first = classes_before(src, p);
    if (!rc && l.count == p->count) first = 0;
    if (!rc && l.count != p->count - first)
        rc = mr_error_set(err, MR_EFORMAT,
                          "--classes-from: expected %" PRIu32 " names, a line for each class from %" PRId64
                          " on, found %" PRIu32,
                          p->count - first, info->label_offset + first, l.count);
    for (uint32_t k = 0; !rc && k < first; k++) rc = set_name(p, k, "", err);
    for (uint32_t k = first; !rc && k < p->count; k++) {
        const char *name = l.line[k - first];
        const int at = name[0] ? find(p, name) : -1;
        rc = name[0] ? check_kept(info, k, name, err)
                     : mr_error_set(err, MR_EFORMAT, "--classes-from: line %u is empty: expected a name",
                                    k - first + 1);
        if (rc) break;
        if (at < 0 || (uint32_t)at >= k) rc = set_name(p, k, name, err);
        else
            rc = mr_error_set(err, MR_EFORMAT, "--classes-from: line %u: the name \"%s\" comes twice",
                              k - first + 1, name);
    }
    lines_fini(&l);
    return rc;
}

/* new: of each class, or NULL. */
static int take_renaming(const mri_class_plan *p, const mr_source *src, const mr_choice_config *cfg,
                         char *line, uint32_t number, char **new, mr_error *err)
{
    char *tab = strchr(line, '\t');
    if (!tab || tab == line || !tab[1] || strchr(tab + 1, '\t'))
        return mr_error_set(err, MR_EFORMAT,
                            "--rename-classes: line %u: expected \"OLD<tab>NEW\", found \"%s\"", number,
                            line);
    *tab = '\0';
    const int at = find(p, line);
    if (at < 0) return may_be_missing(cfg, tab + 1) ? MR_OK : no_class(src, "rename-classes", line, err);
    if (new[at])
        return mr_error_set(err, MR_EFORMAT, "--rename-classes: line %u: \"%s\" is renamed twice", number,
                            line);
    new[at] = tab + 1;
    return MR_OK;
}

/* Old names are those before any line. */
static int rename_by_list(mri_class_plan *p, const mr_source *src, const mr_choice_config *cfg, mr_error *err)
{
    lines l = {0};
    char **new = calloc(p->names_count, sizeof *new);
    int rc = new ? take_lines(&l, cfg->rename_classes, "rename-classes", err) : no_memory(err);
    for (uint32_t k = 0; !rc && k < l.count; k++)
        if (l.line[k][0] && l.line[k][0] != '#') rc = take_renaming(p, src, cfg, l.line[k], k + 1, new, err);
    for (uint32_t k = 0; !rc && k < p->names_count; k++)
        if (new[k]) rc = set_name(p, k, new[k], err);
    free(new);
    lines_fini(&l);
    return rc;
}

/* Classes of one name become the first of them. */
static void merge(mri_class_plan *p)
{
    for (uint32_t k = 0; k < p->count; k++)
        if (p->names[k][0]) p->to[k] = (uint32_t)find(p, p->names[k]);
}

static int only_some(mri_class_plan *p, const mr_source *src, const mr_choice_config *cfg, mr_error *err)
{
    lines l = {0};
    bool *wanted = calloc(p->count, sizeof *wanted);
    int rc = wanted ? take_lines(&l, cfg->only_classes, "only-classes", err) : no_memory(err);
    for (uint32_t i = 0; !rc && i < l.count; i++) {
        const int k = l.line[i][0] ? find(p, l.line[i]) : -1;
        if (k >= 0) wanted[k] = true;
        else if (!may_be_missing(cfg, l.line[i])) rc = no_class(src, "only-classes", l.line[i], err);
    }
    for (uint32_t k = 0; !rc && k < p->count; k++)
        if (!wanted[p->to[k]]) p->to[k] = UINT32_MAX;
    free(wanted);
    lines_fini(&l);
    p->only = true;
    return rc;
}

/* Numbers without gaps, in the old order. Classes without names keep theirs. */
static int close_up(mri_class_plan *p, mr_error *err)
{
    uint32_t used = 0;
    uint32_t *now = calloc(p->count, sizeof *now);
    if (!now) return no_memory(err);
    for (uint32_t k = 0; k < p->count; k++) {
        bool in_use = false;
        for (uint32_t i = k; !in_use && i < p->count; i++) in_use = p->to[i] == k;
        now[k] = in_use ? used : UINT32_MAX;
        if (in_use) {
            char *name = p->names[k];
            p->names[k] = p->names[used];
            p->names[used++] = name;
        }
    }
    for (uint32_t k = 0; k < p->count; k++)
        if (p->to[k] != UINT32_MAX) p->to[k] = now[p->to[k]];
    for (uint32_t k = used; k < p->names_count; k++) free(p->names[k]);
    p->names_count = used;
    free(now);
    return MR_OK;
}

int mri_class_plan_make(mri_class_plan *p, const mr_source *src, const mr_choice_config *cfg, mr_error *err)
{
    if (!cfg->classes_from && !cfg->rename_classes && !cfg->only_classes) return MR_OK;
    const bool named = mr_source_info_of(src)->class_names || cfg->classes_from || cfg->rename_classes;
    int rc = begin(p, src, err);
    if (!rc && cfg->classes_from) rc = from_list(p, src, cfg->classes_from, err);
    if (!rc && cfg->rename_classes) rc = rename_by_list(p, src, cfg, err);
    if (!rc) merge(p);
    if (!rc && cfg->only_classes) rc = only_some(p, src, cfg, err);
    if (!rc && named) rc = close_up(p, err);
    if (!rc && !named) { /* a class is its number: it stays so */
        for (uint32_t k = 0; k < p->names_count; k++) free(p->names[k]);
        free(p->names);
        p->names = NULL;
    }
    return rc;
}

/* ---- the source ---- */
static void note(const mri_class_plan *p, const mr_source_info *info, const mr_choice_config *cfg,
                 const mr_choice_result *r)
{
    char number[32];
    uint32_t noted = 0;
    if (r->merged)
        mri_choice_note(cfg, "%" PRIu32 " class%s one with another, as they have one name", r->merged,
                        r->merged == 1 ? " becomes" : "es become");
    for (uint32_t k = 0; k < p->count && noted <= CLASSES_NOTED; k++) {
        const char *old = old_name(info, k, number, sizeof number);
        if (p->to[k] == UINT32_MAX || (p->to[k] == k && strcmp(old, p->names[k]) == 0)) continue;
        if (noted++ == CLASSES_NOTED) mri_choice_note(cfg, "and more classes with other numbers or names");
        else
            mri_choice_note(cfg, "class %s, number %" PRId64 ", is %s, number %" PRIu32 " now", old,
                            (int64_t)k + info->label_offset, p->names[p->to[k]], p->to[k]);
    }
}

int mri_class_plan_apply(const mri_class_plan *p, mr_source *src, const mr_choice_config *cfg,
                         mr_choice_result *out, mr_error *err)
{
    const mr_source_info *info = mr_source_info_of(src);
    char number[32];
    if (p->names_count == 0)
        return mr_error_set(err, MR_EFORMAT, "%s: no class is left of %" PRIu32, info->path, p->count);
    bool *seen = calloc(p->names_count, sizeof *seen);
    if (!seen) return no_memory(err);
    for (uint32_t k = 0; k < p->count; k++) {
        if (p->to[k] == UINT32_MAX) continue;
        out->renamed += strcmp(old_name(info, k, number, sizeof number), p->names[p->to[k]]) != 0;
        out->merged += seen[p->to[k]];
        seen[p->to[k]] = true;
    }
    free(seen);
    note(p, info, cfg, out);
    return mr_source_name_classes(src, p->to, (const char *const *)p->names, p->names_count, err);
}

void mri_class_plan_fini(mri_class_plan *p)
{
    for (uint32_t k = 0; p->names && k < p->names_count; k++) free(p->names[k]);
    free(p->names);
    free(p->to);
}
