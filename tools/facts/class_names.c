/* tools/facts/class_names.c: see class_names.h. */
#include "tools/facts/class_names.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/exit.h"
#include "tools/cli/output.h"

enum { CLASSES_TOLD = 20 };

/* ---- lines of a file ---- */
typedef struct lines {
    char **line;
    uint32_t count, cap;
} lines;

static void lines_free(lines *l)
{
    for (uint32_t k = 0; k < l->count; k++) free(l->line[k]);
    free(l->line);
}

static int add_line(lines *l, const char *text)
{
    if (l->count == l->cap) {
        const uint32_t cap = l->cap ? 2 * l->cap : 64;
        char **more = realloc(l->line, cap * sizeof *more);
        if (!more) return exit_no_memory("the names of classes");
        l->line = more;
        l->cap = cap;
    }
    l->line[l->count] = strdup(text);
    if (!l->line[l->count]) return exit_no_memory("the names of classes");
    l->count++;
    return EXIT_DONE;
}

/* All lines, empty ones at the end left out. */
static int read_lines(lines *l, const char *path)
{
    FILE *f = fopen(path, "re");
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    int status = EXIT_DONE;
    if (!f) {
        say("%s: cannot open: %s", path, strerror(errno));
        return EXIT_FAILED;
    }
    while (!status && (n = getline(&line, &room, f)) > 0) {
        while (n > 0 && (line[n - 1] == '\n' || line[n - 1] == '\r')) line[--n] = '\0';
        if (strlen(line) != (size_t)n || n > 1000 || l->count >= 1u << 24) {
            say("%s: line %" PRIu32 ": expected a text line of at most 1000 bytes", path, l->count + 1);
            status = EXIT_FAILED;
        } else status = add_line(l, line);
    }
    if (!status && ferror(f)) {
        say("%s: cannot read: %s", path, strerror(errno));
        status = EXIT_FAILED;
    }
    free(line);
    fclose(f);
    while (l->count && !l->line[l->count - 1][0]) free(l->line[--l->count]);
    return status;
}

/* ---- the plan ---- */
static const char *old_name(const mr_source_info *info, uint32_t k, char *buf, size_t room)
{
    if (info->class_names) return info->class_names[k];
    snprintf(buf, room, "%" PRId64, (int64_t)k + info->label_offset);
    return buf;
}

static int begin(class_plan *p, const mr_source *src)
{
    const mr_source_info *info = mr_source_info_of(src);
    char number[32];
    if (info->label_field < 0 || info->class_count == 0) {
        say("%s: the data have no classes, which --only-classes, --rename-classes and --classes-from speak "
            "of",
            info->path);
        return EXIT_FAILED;
    }
    p->count = p->names_count = info->class_count;
    p->to = malloc((size_t)p->count * sizeof *p->to);
    p->names = calloc(p->count, sizeof *p->names);
    if (!p->to || !p->names) return exit_no_memory("the names of classes");
    for (uint32_t k = 0; k < p->count; k++) {
        p->to[k] = k;
        if (!(p->names[k] = strdup(old_name(info, k, number, sizeof number))))
            return exit_no_memory("the names of classes");
    }
    return EXIT_DONE;
}

static int set_name(class_plan *p, uint32_t k, const char *name)
{
    free(p->names[k]);
    p->names[k] = strdup(name);
    return p->names[k] ? EXIT_DONE : exit_no_memory("the names of classes");
}

static int find(const class_plan *p, const char *name)
{
    for (uint32_t k = 0; k < p->names_count; k++)
        if (strcmp(p->names[k], name) == 0) return (int)k;
    return -1;
}

static int no_class(const mr_source *src, const char *what, const char *name)
{
    say("%s: %s has no class \"%s\"; 'millrace inspect' lists them", what, mr_source_info_of(src)->path,
        name);
    return EXIT_FAILED;
}

/* One name for each number, from the first one on. */
static int from_file(class_plan *p, const mr_source *src, const char *path)
{
    lines l = {0};
    const mr_source_info *info = mr_source_info_of(src);
    int status = EXIT_DONE;
    if (info->class_names) {
        say("--classes-from: the classes of %s have names; --rename-classes changes them", info->path);
        return EXIT_FAILED;
    }
    status = read_lines(&l, path);
    if (!status && l.count != p->count) {
        say("--classes-from: expected %" PRIu32 " names, a line for each class from %" PRId64
            " on, found %" PRIu32 " in %s",
            p->count, info->label_offset, l.count, path);
        status = EXIT_FAILED;
    }
    for (uint32_t k = 0; !status && k < p->count; k++) {
        if (!l.line[k][0] || find(p, l.line[k]) < 0 || (uint32_t)find(p, l.line[k]) >= k)
            status = set_name(p, k, l.line[k]);
        else {
            say("%s: line %" PRIu32 ": the name \"%s\" comes twice", path, k + 1, l.line[k]);
            status = EXIT_FAILED;
        }
    }
    lines_free(&l);
    return status;
}

/* May the data lack a class that has this name in the end? */
static bool may_be_missing(const choose_args *a, const char *name)
{
    for (uint32_t k = 0; a->known && k < a->known_count; k++)
        if (strcmp(a->known[k], name) == 0) return true;
    return a->lenient;
}

/* OLD, a tab, NEW. Old names are those before any line. */
static int rename_by_file(class_plan *p, const mr_source *src, const choose_args *a)
{
    const char *path = a->rename_classes;
    lines l = {0};
    char **new = calloc(p->names_count, sizeof *new);
    int status = new ? read_lines(&l, path) : exit_no_memory("the names of classes");
    for (uint32_t k = 0; !status && k < l.count; k++) {
        char *tab = strchr(l.line[k], '\t');
        if (!l.line[k][0] || l.line[k][0] == '#') continue;
        if (!tab || tab == l.line[k] || !tab[1] || strchr(tab + 1, '\t')) {
            say("%s: line %" PRIu32 ": expected \"OLD<tab>NEW\", found \"%s\"", path, k + 1, l.line[k]);
            status = EXIT_FAILED;
            break;
        }
        *tab = '\0';
        const int at = find(p, l.line[k]);
        if (at < 0) status = may_be_missing(a, tab + 1) ? EXIT_DONE : no_class(src, path, l.line[k]);
        else if (new[at]) {
            say("%s: line %" PRIu32 ": \"%s\" is renamed twice", path, k + 1, l.line[k]);
            status = EXIT_FAILED;
        } else new[at] = tab + 1;
    }
    for (uint32_t k = 0; !status && k < p->names_count; k++)
        if (new[k]) status = set_name(p, k, new[k]);
    free(new);
    lines_free(&l);
    return status;
}

/* Classes of one name become the first of them. */
static void merge(class_plan *p)
{
    for (uint32_t k = 0; k < p->count; k++)
        if (p->names[k][0]) p->to[k] = (uint32_t)find(p, p->names[k]);
}

static int only_some(class_plan *p, const mr_source *src, const choose_args *a)
{
    bool *wanted = calloc(p->count, sizeof *wanted);
    char name[1024];
    int status = wanted ? EXIT_DONE : exit_no_memory("the names of classes");
    for (const char *at = a->only_classes; !status; at++) {
        const size_t n = strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)n, at);
        const int k = n ? find(p, name) : -1;
        if (k >= 0) wanted[k] = true;
        else if (!may_be_missing(a, name)) status = no_class(src, "--only-classes", name);
        at += n;
        if (!*at) break;
    }
    for (uint32_t k = 0; !status && k < p->count; k++)
        if (!wanted[p->to[k]]) p->to[k] = UINT32_MAX;
    free(wanted);
    p->only = true;
    return status;
}

/* Numbers without gaps, in the old order. Classes without names keep theirs. */
static void close_up(class_plan *p)
{
    uint32_t used = 0;
    uint32_t *now = calloc(p->count, sizeof *now);
    if (!now) return;
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
}

int class_plan_make(class_plan *p, const mr_source *src, const choose_args *a)
{
    if (!a->classes_from && !a->rename_classes && !a->only_classes) return EXIT_DONE;
    const bool named = mr_source_info_of(src)->class_names || a->classes_from || a->rename_classes;
    int status = begin(p, src);
    if (!status && a->classes_from) status = from_file(p, src, a->classes_from);
    if (!status && a->rename_classes) status = rename_by_file(p, src, a);
    if (!status) merge(p);
    if (!status && a->only_classes) status = only_some(p, src, a);
    if (!status && named) close_up(p);
    if (!status && !named) { /* a class is its number: it stays so */
        for (uint32_t k = 0; k < p->names_count; k++) free(p->names[k]);
        free(p->names);
        p->names = NULL;
    }
    return status;
}

/* ---- the source ---- */
static void tell(const class_plan *p, const mr_source_info *info, const choose_result *r)
{
    char number[32];
    uint32_t told = 0;
    if (r->merged)
        say("%" PRIu32 " class%s one with another, as they have one name", r->merged,
            r->merged == 1 ? " becomes" : "es become");
    for (uint32_t k = 0; k < p->count && told <= CLASSES_TOLD; k++) {
        const char *old = old_name(info, k, number, sizeof number);
        if (p->to[k] == UINT32_MAX || (p->to[k] == k && strcmp(old, p->names[k]) == 0)) continue;
        if (told++ == CLASSES_TOLD) say("and more classes with other numbers or names");
        else
            say("class %s, number %" PRId64 ", is %s, number %" PRIu32 " now", old,
                (int64_t)k + info->label_offset, p->names[p->to[k]], p->to[k]);
    }
}

int class_plan_apply(const class_plan *p, mr_source *src, bool silent, choose_result *out)
{
    const mr_source_info *info = mr_source_info_of(src);
    mr_error err = MR_ERROR_INIT;
    char number[32];
    bool *seen = calloc(p->names_count ? p->names_count : 1, sizeof *seen);
    if (!seen) return exit_no_memory("the names of classes");
    for (uint32_t k = 0; k < p->count; k++) {
        if (p->to[k] == UINT32_MAX) continue;
        out->renamed += strcmp(old_name(info, k, number, sizeof number), p->names[p->to[k]]) != 0;
        out->merged += seen[p->to[k]];
        seen[p->to[k]] = true;
    }
    free(seen);
    if (!silent) tell(p, info, out);
    const int rc = mr_source_name_classes(src, p->to, (const char *const *)p->names, p->names_count, &err);
    return rc ? exit_status(rc, &err) : EXIT_DONE;
}

void class_plan_free(class_plan *p)
{
    for (uint32_t k = 0; p->names && k < p->names_count; k++) free(p->names[k]);
    free(p->names);
    free(p->to);
}
