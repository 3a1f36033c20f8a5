/* settings/setting.c: values of settings and texts. See setting.h. */
#include "settings/setting.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/number.h"

const char *const mri_changes_names[] = {[MRI_CHANGES_SPEED] = "speed",
                                         [MRI_CHANGES_ORDER] = "order",
                                         [MRI_CHANGES_PIXELS] = "content",
                                         [MRI_CHANGES_END] = "end",
                                         [MRI_CHANGES_WEIGHTS] = "weights"};
const char *const mri_resume_names[] = {[MRI_RESUME_FREE] = "free",
                                        [MRI_RESUME_TAKE] = "take",
                                        [MRI_RESUME_SAME] = "same",
                                        [MRI_RESUME_OVERRIDE] = "override",
                                        [MRI_RESUME_AGAIN] = "again"};

/* Where a message goes. */
typedef struct parsing {
    const mri_setting *s;
    const char *text;
    char *message;
    size_t message_bytes;
} parsing;

static bool __attribute__((format(printf, 2, 3))) expected(const parsing *p, const char *format, ...)
{
    char what[512];
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    snprintf(p->message, p->message_bytes, "--%s: expected %s found '%s'", p->s->option, what, p->text);
    return false;
}

static uint32_t choice_count(const mri_setting *s)
{
    uint32_t n = 0;
    while (s->choices[n]) n++;
    return n;
}

static uint32_t all_choices(const mri_setting *s) { return (1u << choice_count(s)) - 1; }

/* ---- texts to values ---- */

/* Digits only: strtoull alone would take "-1" and " 7". */
static bool parse_whole(const char *text, uint64_t *out)
{
    if (text[0] < '0' || text[0] > '9') return false;
    char *end;
    errno = 0;
    const unsigned long long v = strtoull(text, &end, 10);
    if (errno || *end) return false;
    *out = v;
    return true;
}

/* A finite number with one of the units after it; unit_text[k] is worth unit_value[k]. */
static bool parse_measure(const char *text, const char *const *unit_text, const double *unit_value,
                          double *out)
{
    char *end;
    errno = 0;
    const double v = mri_strtod(text, &end);
    if (end == text || errno || !isfinite(v)) return false;
    for (size_t k = 0; unit_text[k]; k++) {
        if (strcasecmp(end, unit_text[k]) != 0) continue;
        *out = v * unit_value[k];
        return true;
    }
    return false;
}

static bool parse_size(const char *text, double *out)
{
    static const char *const unit[] = {"", "B", "K", "KiB", "M", "MiB", "G", "GiB", "T", "TiB", NULL};
    static const double worth[] = {1, 1, 0x1p10, 0x1p10, 0x1p20, 0x1p20, 0x1p30, 0x1p30, 0x1p40, 0x1p40};
    return parse_measure(text, unit, worth, out);
}

static bool parse_seconds(const char *text, double *out)
{
    static const char *const unit[] = {"", "s", "ms", "us", "min", "h", NULL};
    static const double worth[] = {1, 1, 1e-3, 1e-6, 60, 3600};
    return parse_measure(text, unit, worth, out);
}

static bool parse_number(const char *text, double *out)
{
    static const char *const no_unit[] = {"", NULL};
    static const double one[] = {1};
    return parse_measure(text, no_unit, one, out);
}

static bool is_in_range(const mri_setting *s, double v)
{
    return v >= s->least && (s->below ? v < s->most : v <= s->most);
}

const char *mri_setting_range(const mri_setting *s, char *buf, size_t buf_bytes)
{
    if (s->most >= 0x1p53) snprintf(buf, buf_bytes, "%.15g or more", s->least);
    else snprintf(buf, buf_bytes, "%.15g to %s%.15g", s->least, s->below ? "below " : "", s->most);
    return buf;
}

static bool check_range(const parsing *p, double v)
{
    char range[64];
    return is_in_range(p->s, v) || expected(p, "%s,", mri_setting_range(p->s, range, sizeof range));
}

static uint64_t whole_bytes(double v) { return v >= 0x1p64 ? UINT64_MAX : (uint64_t)v; }

static bool take_whole(const parsing *p, void *value)
{
    const bool may_be_off = p->s->kind == MRI_SETTING_COUNT_OR_OFF;
    uint64_t v = 0;
    if (may_be_off && strcmp(p->text, "off") == 0) {
        *(uint32_t *)value = 0;
        return true;
    }
    if (!parse_whole(p->text, &v))
        return expected(p, "%s,", may_be_off ? "a whole number or off" : "a whole number");
    if (!check_range(p, (double)v)) return false;
    if (p->s->kind == MRI_SETTING_U64) *(uint64_t *)value = v;
    else *(uint32_t *)value = (uint32_t)v;
    return true;
}

static bool take_real(const parsing *p, void *value)
{
    double v = 0;
    const bool seconds = p->s->kind == MRI_SETTING_SECONDS;
    if (!(seconds ? parse_seconds(p->text, &v) : parse_number(p->text, &v)))
        return expected(p, "%s,", seconds ? "a time such as 10s or 250ms" : "a number");
    if (p->s->kind == MRI_SETTING_FLOAT)
        v = v > FLT_MAX ? v : (double)(float)v; /* as it is checked and kept */
    if (!check_range(p, v)) return false;
    if (p->s->kind == MRI_SETTING_FLOAT) *(float *)value = (float)v;
    else *(double *)value = v;
    return true;
}

static bool take_size(const parsing *p, uint64_t *value)
{
    double v = 0;
    if (!parse_size(p->text, &v)) return expected(p, "a size such as 4096, 64K or 1.5G,");
    if (!check_range(p, v)) return false;
    *value = whole_bytes(v);
    return true;
}

static bool take_cache(const parsing *p, mri_cache_spec *to)
{
    const char *text = p->text, *size = strrchr(text, ':'); /* a folder's name may have colons of its own */
    const bool memory = strncmp(text, "ram:", 4) == 0, disk = strncmp(text, "disk:", 5) == 0;
    double bytes = 0;
    *to = (mri_cache_spec){0};
    if (strcmp(text, "off") == 0) return true;
    if (strcmp(text, "ram") == 0) {
        *to = (mri_cache_spec){.kind = 1, .bytes = UINT64_MAX};
        return true;
    }
    const size_t name = disk ? (size_t)(size - text) : 0;
    bool good = memory || (disk && name > 5 && name - 5 < sizeof to->folder);
    good = good && parse_size(size + 1, &bytes) && bytes >= 1 && (!memory || size == text + 3);
    if (!good) return expected(p, "off, ram, ram:SIZE or disk:FOLDER:SIZE, such as ram:8G;");
    to->kind = memory ? 1 : 2;
    to->bytes = whole_bytes(bytes);
    if (disk) memcpy(to->folder, text + 5, name - 5);
    return true;
}

/* The names of a set's choices with commas between them, into buf, which is returned. */
static const char *put_set(const mri_setting *s, uint32_t set, char *buf, size_t buf_bytes)
{
    size_t at = 0;
    buf[0] = '\0';
    for (uint32_t k = 0; s->choices[k] && at < buf_bytes; k++)
        if (set >> k & 1)
            at += (size_t)snprintf(buf + at, buf_bytes - at, "%s%s", at ? "," : "", s->choices[k]);
    return buf;
}

/* One of the choices, from text on, bytes long; false: none of them. */
static bool find_choice(const mri_setting *s, const char *text, size_t bytes, uint32_t *out)
{
    for (*out = 0; s->choices[*out]; ++*out)
        if (strlen(s->choices[*out]) == bytes && memcmp(s->choices[*out], text, bytes) == 0) return true;
    return false;
}

static bool take_set(const parsing *p, uint32_t *value)
{
    uint32_t set = 0, k;
    for (const char *at = p->text;; at++) {
        const size_t n = strcspn(at, ",");
        if (n == 3 && memcmp(at, "all", 3) == 0) set |= all_choices(p->s);
        else if (find_choice(p->s, at, n, &k)) set |= 1u << k;
        else {
            char known[256];
            return expected(p, "all, or some of %s;", put_set(p->s, all_choices(p->s), known, sizeof known));
        }
        at += n;
        if (!*at) break;
    }
    *value = set == all_choices(p->s) ? 0 : set;
    return true;
}

static bool take_choice(const parsing *p, void *value)
{
    char known[256] = "";
    for (uint32_t k = 0; p->s->choices[k]; k++) {
        if (strcmp(p->text, p->s->choices[k]) == 0) {
            if (p->s->kind == MRI_SETTING_EITHER) *(bool *)value = k == 1;
            else *(uint32_t *)value = k;
            return true;
        }
        const size_t at = strlen(known);
        snprintf(known + at, sizeof known - at, "%s%s", k ? ", " : "", p->s->choices[k]);
    }
    return expected(p, "one of %s;", known);
}

/* The name of a choice without its ":N". */
static size_t name_bytes(const char *choice) { return strcspn(choice, ":"); }

/* "average:8": the choice, and the count of a choice that has one. */
static bool take_choice_every(const parsing *p, uint32_t *value)
{
    char known[256] = "", range[64];
    const size_t named = name_bytes(p->text);
    for (uint32_t k = 0; p->s->choices[k]; k++) {
        const char *choice = p->s->choices[k];
        const bool counts = choice[name_bytes(choice)] != '\0', has = p->text[named] != '\0';
        uint64_t count = 0;
        if (named != name_bytes(choice) || strncmp(p->text, choice, named) != 0) continue;
        if (counts &&
            (!has || !parse_whole(p->text + named + 1, &count) || !is_in_range(p->s, (double)count)))
            return expected(p, "%s with N from %s,", choice, mri_setting_range(p->s, range, sizeof range));
        if (counts != has) break;
        *value = k | (uint32_t)count << 8;
        return true;
    }
    for (uint32_t k = 0; p->s->choices[k]; k++) {
        const size_t at = k ? strlen(known) : 0;
        snprintf(known + at, sizeof known - at, "%s%s", k ? ", " : "", p->s->choices[k]);
    }
    return expected(p, "one of %s;", known);
}

static bool take_text(const parsing *p, const char **value)
{
    if (p->text && !*p->text) return expected(p, "a value,");
    *value = p->text;
    return true;
}

bool mri_setting_parse(const mri_setting *s, void *settings, const char *text, char *message,
                       size_t message_bytes)
{
    const parsing p = {s, text, message, message_bytes};
    void *value = (char *)settings + s->at;
    switch (s->kind) {
    case MRI_SETTING_FLAG: *(bool *)value = true; return true;
    case MRI_SETTING_U32:
    case MRI_SETTING_U64:
    case MRI_SETTING_COUNT_OR_OFF: return take_whole(&p, value);
    case MRI_SETTING_REAL:
    case MRI_SETTING_FLOAT:
    case MRI_SETTING_SECONDS: return take_real(&p, value);
    case MRI_SETTING_SIZE: return take_size(&p, value);
    case MRI_SETTING_TEXT: return take_text(&p, value);
    case MRI_SETTING_CHOICE:
    case MRI_SETTING_EITHER: return take_choice(&p, value);
    case MRI_SETTING_SET: return take_set(&p, value);
    case MRI_SETTING_CACHE: return take_cache(&p, value);
    case MRI_SETTING_CHOICE_EVERY: return take_choice_every(&p, value);
    }
    return false;
}

/* ---- values to texts ---- */

static const char *put_choice_every(const mri_setting *s, uint32_t value, char *buf, size_t buf_bytes)
{
    const uint32_t k = value & 255, count = value >> 8;
    if (k >= choice_count(s)) snprintf(buf, buf_bytes, "%u", value);
    else if (count == 0) snprintf(buf, buf_bytes, "%s", s->choices[k]);
    else snprintf(buf, buf_bytes, "%.*s:%u", (int)name_bytes(s->choices[k]), s->choices[k], count);
    return buf;
}

const char *mri_setting_text(const mri_setting *s, const void *settings, char *buf, size_t buf_bytes)
{
    const void *value = (const char *)settings + s->at;
    uint64_t whole = 0;
    switch (s->kind) {
    case MRI_SETTING_REAL:
    case MRI_SETTING_SECONDS: snprintf(buf, buf_bytes, "%.9g", *(const double *)value); return buf;
    case MRI_SETTING_FLOAT: return mri_float_text(*(const float *)value, buf, buf_bytes);
    case MRI_SETTING_TEXT:
        snprintf(buf, buf_bytes, "%s", *(const char *const *)value ? *(const char *const *)value : "");
        return buf;
    case MRI_SETTING_SET:
        if (*(const uint32_t *)value) return put_set(s, *(const uint32_t *)value, buf, buf_bytes);
        snprintf(buf, buf_bytes, "all");
        return buf;
    case MRI_SETTING_CACHE: snprintf(buf, buf_bytes, "%u", ((const mri_cache_spec *)value)->kind); return buf;
    case MRI_SETTING_CHOICE_EVERY: return put_choice_every(s, *(const uint32_t *)value, buf, buf_bytes);
    case MRI_SETTING_U64:
    case MRI_SETTING_SIZE: whole = *(const uint64_t *)value; break;
    case MRI_SETTING_FLAG:
    case MRI_SETTING_EITHER: whole = *(const bool *)value; break;
    default: whole = *(const uint32_t *)value;
    }
    if (s->choices && whole < choice_count(s)) snprintf(buf, buf_bytes, "%s", s->choices[whole]);
    else if (s->kind == MRI_SETTING_COUNT_OR_OFF && whole == 0) snprintf(buf, buf_bytes, "off");
    else snprintf(buf, buf_bytes, "%llu", (unsigned long long)whole);
    return buf;
}

/* ---- all rows of a struct ---- */

void mri_settings_fill(const mri_setting *rows, size_t count, void *settings)
{
    char message[512]; /* the tests find wrong defaults */
    for (size_t i = 0; i < count; i++)
        if (rows[i].standard)
            mri_setting_parse(&rows[i], settings, rows[i].standard, message, sizeof message);
}

/* The number that the range is of; false: the kind has no range. */
static bool number_of(const mri_setting *s, const void *settings, double *out)
{
    const void *value = (const char *)settings + s->at;
    switch (s->kind) {
    case MRI_SETTING_U32:
    case MRI_SETTING_COUNT_OR_OFF:
    case MRI_SETTING_CHOICE: *out = *(const uint32_t *)value; return true;
    case MRI_SETTING_U64:
    case MRI_SETTING_SIZE: *out = (double)*(const uint64_t *)value; return true;
    case MRI_SETTING_FLOAT: *out = (double)*(const float *)value; return true;
    case MRI_SETTING_REAL:
    case MRI_SETTING_SECONDS: *out = *(const double *)value; return true;
    default: return false;
    }
}

static bool set_holds(const mri_setting *s, const void *settings, char *message, size_t message_bytes)
{
    const uint32_t set = *(const uint32_t *)(const void *)((const char *)settings + s->at);
    if (set <= all_choices(s)) return true;
    snprintf(message, message_bytes, "%s is %u: expected 0 (all) to %u, a bit for each kind", s->member, set,
             all_choices(s));
    return false;
}

/* "0 to 2 (mrec, tfrecord, tar)" */
static void choice_range(const mri_setting *s, char *buf, size_t buf_bytes)
{
    size_t at = (size_t)snprintf(buf, buf_bytes, "0 to %u (", choice_count(s) - 1);
    for (size_t k = 0; s->choices[k] && at < buf_bytes; k++)
        at += (size_t)snprintf(buf + at, buf_bytes - at, "%s%s", k ? ", " : "", s->choices[k]);
    if (at < buf_bytes) snprintf(buf + at, buf_bytes - at, ")");
}

/* A choice that ends with ":N" has a count in the range, other choices have no count. */
static bool choice_every_holds(const mri_setting *s, const void *settings, char *message,
                               size_t message_bytes)
{
    const uint32_t value = *(const uint32_t *)(const void *)((const char *)settings + s->at), k = value & 255,
                   count = value >> 8;
    char range[64];
    if (k < choice_count(s)) {
        const bool counts = s->choices[k][name_bytes(s->choices[k])] != '\0';
        if (counts ? is_in_range(s, count) : count == 0) return true;
    }
    snprintf(
        message, message_bytes,
        "%s is %u: expected a choice from 0 to %u, plus 256 times a count of %s for a choice that has one",
        s->member, value, choice_count(s) - 1, mri_setting_range(s, range, sizeof range));
    return false;
}

bool mri_setting_holds(const mri_setting *s, const void *settings, char *message, size_t message_bytes)
{
    double v;
    char found[64], range[256];
    const bool choice = s->kind == MRI_SETTING_CHOICE;
    if (s->kind == MRI_SETTING_SET) return set_holds(s, settings, message, message_bytes);
    if (s->kind == MRI_SETTING_CHOICE_EVERY) return choice_every_holds(s, settings, message, message_bytes);
    if (!number_of(s, settings, &v)) return true;
    if (choice ? v < choice_count(s) : is_in_range(s, v)) return true;
    mri_setting_text(s, settings, found, sizeof found);
    if (choice) choice_range(s, range, sizeof range);
    else mri_setting_range(s, range, sizeof range);
    snprintf(message, message_bytes, "%s is %s: expected %s%s%s%s", s->member, found,
             isfinite(v) ? "" : "a finite number, ", range, s->unit && !choice ? " " : "",
             s->unit && !choice ? s->unit : "");
    return false;
}

int mri_settings_check(const mri_setting *rows, size_t count, const void *settings, const char *name,
                       mr_error *err)
{
    char message[256];
    for (size_t i = 0; i < count; i++)
        if (!mri_setting_holds(&rows[i], settings, message, sizeof message))
            return mr_error_set(err, MR_EINVAL, "%s.%s", name, message);
    return MR_OK;
}

/* ---- what checkpoints keep ---- */

bool mri_kept_differs(const mri_kept_setting *kept, const void *from, const void *settings,
                      mri_kept_texts *texts)
{
    mri_setting_text(&kept->then, from, texts->then, sizeof texts->then);
    mri_setting_text(&kept->now, settings, texts->now, sizeof texts->now);
    return strcmp(texts->then, texts->now) != 0;
}
