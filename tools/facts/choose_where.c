/* tools/facts/choose_where.c: the conditions of --where. See choose.h. */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/facts/choose.h"

static const struct {
    const char *name;
    int field;
    bool number, text;
} fields[] = {
    {"key", WHERE_KEY, false, true},       {"class", WHERE_CLASS, false, true},
    {"label", WHERE_LABEL, true, false},   {"width", WHERE_WIDTH, true, false},
    {"height", WHERE_HEIGHT, true, false}, {"bytes", WHERE_BYTES, true, false},
};

static const struct {
    const char *text; /* longer ones first */
    int op;
    bool number, words;
} ops[] = {
    {"!~", WHERE_UNLIKE, false, true}, {"!=", WHERE_UNEQUAL, true, true}, {"<=", WHERE_MOST, true, false},
    {">=", WHERE_LEAST, true, false},  {"==", WHERE_EQUAL, true, true},   {"=", WHERE_EQUAL, true, true},
    {"<", WHERE_LESS, true, false},    {">", WHERE_MORE, true, false},    {"~", WHERE_LIKE, false, true},
};

/* A number, which K, M or G may follow as in sizes, in either case. */
static bool number(const char *text, int64_t *out)
{
    char *end;
    errno = 0;
    const long long v = strtoll(text, &end, 10);
    if (end == text || errno) return false;
    const char *units = "KMGkmg", *unit = *end ? strchr(units, *end) : NULL;
    const int shift = unit ? 10 * (int)((unit - units) % 3 + 1) : 0;
    if (*end && (!unit || end[1])) return false;
    *out = (int64_t)v << shift;
    return v >= 0 && v <= INT64_MAX >> shift;
}

static bool parse_term(where_term *t, const char *text, char *why, size_t room)
{
    const size_t n = strcspn(text, "!<>=~");
    size_t f = 0, o = 0;
    while (f < OPT_COUNT(fields) && (strlen(fields[f].name) != n || strncmp(fields[f].name, text, n) != 0))
        f++;
    if (f == OPT_COUNT(fields)) {
        snprintf(why, room, "expected key, class, label, width, height or bytes, found \"%.*s\"", (int)n,
                 text);
        return false;
    }
    while (o < OPT_COUNT(ops) && strncmp(ops[o].text, text + n, strlen(ops[o].text)) != 0) o++;
    if (o == OPT_COUNT(ops) || !(fields[f].number ? ops[o].number : ops[o].words)) {
        snprintf(why, room, "\"%s\": expected %s behind %s", text,
                 fields[f].number ? "<, <=, >, >=, = or !=" : "=, !=, ~ or !~ (a pattern)", fields[f].name);
        return false;
    }
    const char *value = text + n + strlen(ops[o].text);
    t->field = fields[f].field;
    t->op = ops[o].op;
    if (fields[f].number && !number(value, &t->number)) {
        snprintf(why, room, "\"%s\": expected a whole number, found \"%s\"", text, value);
        return false;
    }
    if (!value[0] || strlen(value) >= sizeof t->text) {
        snprintf(why, room, "\"%s\": expected a value of 1 to %d bytes", text, WHERE_TEXT - 1);
        return false;
    }
    snprintf(t->text, sizeof t->text, "%s", value);
    return true;
}

bool where_parse(where *w, const char *text, char *why, size_t why_bytes)
{
    char one[WHERE_TEXT + 32];
    w->count = 0;
    for (const char *at = text;;) {
        const size_t n = strcspn(at, ",");
        if (n >= sizeof one || w->count == WHERE_TERMS) {
            snprintf(why, why_bytes, "a condition is too long, or there are more than %d", WHERE_TERMS);
            return false;
        }
        snprintf(one, sizeof one, "%.*s", (int)n, at);
        if (!parse_term(&w->term[w->count], one, why, why_bytes)) return false;
        w->count++;
        at += n;
        if (!*at) return true;
        at++;
    }
}

static bool text_holds(const where_term *t, const char *text)
{
    switch (t->op) {
    case WHERE_EQUAL: return strcmp(text, t->text) == 0;
    case WHERE_UNEQUAL: return strcmp(text, t->text) != 0;
    case WHERE_LIKE: return fnmatch(t->text, text, 0) == 0;
    default: return fnmatch(t->text, text, 0) != 0;
    }
}

static bool number_holds(const where_term *t, int64_t v)
{
    switch (t->op) {
    case WHERE_EQUAL: return v == t->number;
    case WHERE_UNEQUAL: return v != t->number;
    case WHERE_LESS: return v < t->number;
    case WHERE_MOST: return v <= t->number;
    case WHERE_MORE: return v > t->number;
    default: return v >= t->number;
    }
}

bool where_holds(const where *w, const where_sample *s)
{
    for (uint32_t k = 0; k < w->count; k++) {
        const where_term *t = &w->term[k];
        const bool holds = t->field == WHERE_KEY      ? text_holds(t, s->key)
                           : t->field == WHERE_CLASS  ? text_holds(t, s->class_name)
                           : t->field == WHERE_LABEL  ? number_holds(t, s->label)
                           : t->field == WHERE_WIDTH  ? number_holds(t, (int64_t)s->width)
                           : t->field == WHERE_HEIGHT ? number_holds(t, (int64_t)s->height)
                                                      : number_holds(t, (int64_t)s->bytes);
        if (!holds) return false;
    }
    return true;
}

bool where_needs_picture(const where *w)
{
    for (uint32_t k = 0; k < w->count; k++)
        if (w->term[k].field == WHERE_WIDTH || w->term[k].field == WHERE_HEIGHT) return true;
    return false;
}

bool where_needs_class(const char *text)
{
    where w;
    char why[512];
    if (!text || !where_parse(&w, text, why, sizeof why)) return false;
    for (uint32_t k = 0; k < w.count; k++)
        if (w.term[k].field == WHERE_LABEL || w.term[k].field == WHERE_CLASS) return true;
    return false;
}
