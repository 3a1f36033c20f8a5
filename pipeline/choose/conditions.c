/* pipeline/choose/conditions.c: conditions on samples. See choosing.h. */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/choose/choosing.h"

static const struct {
    const char *name;
    mri_condition_field field;
    bool number, text;
} fields[] = {
    {"key", MRI_FIELD_KEY, false, true},       {"class", MRI_FIELD_CLASS, false, true},
    {"label", MRI_FIELD_LABEL, true, false},   {"width", MRI_FIELD_WIDTH, true, false},
    {"height", MRI_FIELD_HEIGHT, true, false}, {"bytes", MRI_FIELD_BYTES, true, false},
};

static const struct {
    const char *text; /* longer ones first */
    mri_condition_op op;
    bool number, words;
} ops[] = {
    {"!~", MRI_IS_UNLIKE, false, true}, {"!=", MRI_IS_UNEQUAL, true, true}, {"<=", MRI_IS_MOST, true, false},
    {">=", MRI_IS_LEAST, true, false},  {"==", MRI_IS_EQUAL, true, true},   {"=", MRI_IS_EQUAL, true, true},
    {"<", MRI_IS_LESS, true, false},    {">", MRI_IS_MORE, true, false},    {"~", MRI_IS_LIKE, false, true},
};

enum { FIELDS = sizeof fields / sizeof fields[0], OPS = sizeof ops / sizeof ops[0] };

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

/* Without the blanks around it. */
static char *trimmed(char *text)
{
    text += strspn(text, " \t");
    size_t n = strlen(text);
    while (n && (text[n - 1] == ' ' || text[n - 1] == '\t')) text[--n] = '\0';
    return text;
}

static int parse_condition(mri_condition *t, char *whole, mr_error *err)
{
    char *text = trimmed(whole);
    size_t n = strcspn(text, "!<>=~");
    char *const op = text + n;
    while (n && (text[n - 1] == ' ' || text[n - 1] == '\t')) n--;
    size_t f = 0, o = 0;
    while (f < FIELDS && (strlen(fields[f].name) != n || strncmp(fields[f].name, text, n) != 0)) f++;
    if (f == FIELDS)
        return mr_error_set(err, MR_EINVAL,
                            "--where: expected key, class, label, width, height or bytes, found \"%.*s\" "
                            "(write \\, for a comma in a text)",
                            (int)n, text);
    while (o < OPS && strncmp(ops[o].text, op, strlen(ops[o].text)) != 0) o++;
    if (o == OPS || !(fields[f].number ? ops[o].number : ops[o].words))
        return mr_error_set(err, MR_EINVAL, "--where: \"%s\": expected %s after %s", text,
                            fields[f].number ? "<, <=, >, >=, = or !=" : "=, !=, ~ or !~ (a pattern)",
                            fields[f].name);
    const char *value = op + strlen(ops[o].text);
    value += strspn(value, " \t");
    t->field = fields[f].field;
    t->op = ops[o].op;
    if (fields[f].number && !number(value, &t->number))
        return mr_error_set(err, MR_EINVAL, "--where: \"%s\": expected a whole number, found \"%s\"", text,
                            value);
    if (!value[0] || strlen(value) >= sizeof t->text)
        return mr_error_set(err, MR_EINVAL, "--where: \"%s\": expected a value of 1 to %d bytes", text,
                            MRI_CONDITION_TEXT - 1);
    snprintf(t->text, sizeof t->text, "%s", value);
    return MR_OK;
}

int mri_conditions_parse(mri_conditions *c, const char *text, mr_error *err)
{
    char one[MRI_CONDITION_TEXT + 32];
    c->count = 0;
    for (const char *at = text;; at++) {
        size_t n = 0; /* up to the comma; \, is one of the text */
        for (; *at && *at != ',' && n < sizeof one; at++) {
            if (at[0] == '\\' && at[1] == ',') at++;
            one[n++] = *at;
        }
        if (n == sizeof one || c->count == MRI_CONDITIONS)
            return mr_error_set(err, MR_EINVAL, "--where: a condition is too long, or there are more than %d",
                                MRI_CONDITIONS);
        one[n] = '\0';
        const int rc = parse_condition(&c->term[c->count], one, err);
        if (rc) return rc;
        c->count++;
        if (!*at) return MR_OK;
    }
}

static bool text_holds(const mri_condition *t, const char *text)
{
    switch (t->op) {
    case MRI_IS_EQUAL: return strcmp(text, t->text) == 0;
    case MRI_IS_UNEQUAL: return strcmp(text, t->text) != 0;
    case MRI_IS_LIKE: return fnmatch(t->text, text, 0) == 0;
    default: return fnmatch(t->text, text, 0) != 0;
    }
}

static bool number_holds(const mri_condition *t, int64_t v)
{
    switch (t->op) {
    case MRI_IS_EQUAL: return v == t->number;
    case MRI_IS_UNEQUAL: return v != t->number;
    case MRI_IS_LESS: return v < t->number;
    case MRI_IS_MOST: return v <= t->number;
    case MRI_IS_MORE: return v > t->number;
    default: return v >= t->number;
    }
}

bool mri_conditions_hold(const mri_conditions *c, const mri_condition_sample *s)
{
    for (uint32_t k = 0; k < c->count; k++) {
        const mri_condition *t = &c->term[k];
        const bool holds = t->field == MRI_FIELD_KEY      ? text_holds(t, s->key)
                           : t->field == MRI_FIELD_CLASS  ? text_holds(t, s->class_name)
                           : t->field == MRI_FIELD_LABEL  ? number_holds(t, s->label)
                           : t->field == MRI_FIELD_WIDTH  ? number_holds(t, (int64_t)s->width)
                           : t->field == MRI_FIELD_HEIGHT ? number_holds(t, (int64_t)s->height)
                                                          : number_holds(t, (int64_t)s->bytes);
        if (!holds) return false;
    }
    return true;
}

bool mri_conditions_use(const mri_conditions *c, mri_condition_field field)
{
    for (uint32_t k = 0; k < c->count; k++)
        if (c->term[k].field == field) return true;
    return false;
}
