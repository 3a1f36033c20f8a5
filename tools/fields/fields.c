/* tools/fields/fields.c: see fields.h. */
#include "tools/fields/fields.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/exit.h"
#include "tools/cli/output.h"
#include "tools/cli/report.h"

uint32_t fields_find(const mr_source_info *info, const char *name)
{
    const size_t n = strlen(name);
    uint32_t found = info->field_count, count = 0;
    for (uint32_t at = 0; at < info->field_count; at++) {
        const char *known = info->fields[at].name;
        if (strcmp(known, name) == 0) return at;
        if (strncmp(known, name, n) != 0 || known[n] != '.') continue;
        found = at;
        count++;
    }
    return count == 1 ? found : info->field_count;
}

static mr_role usual_role(const mr_source_info *info, uint32_t at)
{
    if (at == info->field_count || info->image_field < 0) return MR_ROLE_PLAIN;
    switch (info->fields[at].type) { /* beside a picture these can be nothing else */
    case MR_TYPE_PNG:
    case MR_TYPE_PIXELS:
    case MR_TYPE_IMAGE:
    case MR_TYPE_BYTES: return MR_ROLE_MASK;
    default: return mr_field_role(info, at);
    }
}

static bool take_most(mr_loader_field *f, const char *text)
{
    char *end;
    errno = 0;
    const unsigned long long v = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno || v == 0 || v > INT32_MAX) return false;
    f->most = (uint32_t)v;
    return true;
}

static bool take_pad(mr_loader_field *f, const char *text)
{
    char *end;
    f->pad = strtod(text, &end);
    return end != text && !*end;
}

static bool take_word(mr_loader_field *f, const char *word)
{
    if (strcmp(word, "box_values") == 0) word = report_roles[MR_ROLE_BOX_VALUES]; /* as in Python */
    for (uint32_t r = 0; report_roles[r]; r++) {
        if (strcmp(word, report_roles[r]) != 0) continue;
        f->role = (mr_role)r;
        return true;
    }
    if (strncmp(word, "most=", 5) == 0) return take_most(f, word + 5);
    if (strncmp(word, "pad=", 4) == 0) return take_pad(f, word + 4);
    return f->in_pixels = strcmp(word, "pixels") == 0 || strcmp(word, "in_pixels") == 0;
}

/* One NAME:... of the list, which is cut apart. */
static int take_field(mr_loader_field *f, const mr_source_info *info, char *item)
{
    char *rest = strchr(item, ':');
    if (rest) *rest++ = '\0';
    const uint32_t at = fields_find(info, item);
    *f = (mr_loader_field){.name = at < info->field_count ? info->fields[at].name : item,
                           .role = usual_role(info, at)};
    while (rest) {
        char *word = rest;
        rest = strchr(rest, ':');
        if (rest) *rest++ = '\0';
        if (take_word(f, word)) continue;
        say("--fields: of %s: expected plain, boxes, values, mask, most=N (N from 1), "
            "pad=X or pixels; found '%s'",
            item, word);
        return EXIT_MISUSED;
    }
    return EXIT_DONE;
}

static int parse(field_set *out, const mr_source_info *info, const char *spec)
{
    const size_t length = strlen(spec);
    if (length >= sizeof out->text) {
        say("--fields: expected at most %zu characters, found %zu", sizeof out->text - 1, length);
        return EXIT_MISUSED;
    }
    memcpy(out->text, spec, length + 1);
    for (char *item = out->text, *next; item; item = next) {
        next = strchr(item, ',');
        if (next) *next++ = '\0';
        if (out->count == MR_LOADER_MAX_FIELDS) {
            say("--fields: expected at most %d fields, found more: %s", MR_LOADER_MAX_FIELDS, spec);
            return EXIT_MISUSED;
        }
        const int status = take_field(&out->field[out->count++], info, item);
        if (status) return status;
    }
    return EXIT_DONE;
}

/* The sequences, or the one tensor there is; nothing where that is not clear. */
static const char *obvious(const mr_source_info *info)
{
    const char *only = NULL;
    if (info->length_field < info->field_count) return info->fields[info->length_field].name;
    for (uint32_t k = 0; k < info->field_count; k++) {
        if (info->fields[k].type != MR_TYPE_TENSOR) continue;
        if (only) return NULL;
        only = info->fields[k].name;
    }
    return only;
}

int fields_choose(field_set *out, const mr_source *src, const char *spec)
{
    const mr_source_info *info = mr_source_info_of(src);
    memset(out, 0, sizeof *out);
    if (spec) return parse(out, info, spec);
    const char *name = info->image_field < 0 ? obvious(info) : NULL;
    if (name) out->field[out->count++] = (mr_loader_field){.name = name};
    return EXIT_DONE;
}
