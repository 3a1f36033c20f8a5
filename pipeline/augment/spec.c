/* pipeline/augment/spec.c: the augmentation language: text to operations and back.
 *
 *   spec   item {"," item}
 *   item   preset | name ["(" argument {"," argument} ")"]
 *
 * Numbers are decimal, without exponent, read and written here digit by digit: the locale has no say and the
 * text in a checkpoint is the text that was given, with defaults spelled out. Names and arguments are the
 * table's (op.h). */
#include "pipeline/augment/spec.h"

#include <stdarg.h>
#include <stdio.h>

int mri_spec_fail(const mri_spec *s, const char *where, const char *format, ...)
{
    char what[512];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    const int part = (int)strcspn(where, ",)");
    return mr_error_set(s->err, MR_EINVAL, "augment \"%.200s\", character %zu, \"%.*s\": %s", s->spec,
                        (size_t)(where - s->spec) + 1, part > 40 ? 40 : part, where, what);
}

void mri_spec_put(mri_spec *s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(s->a->text + s->text_used, sizeof s->a->text - s->text_used, format, args);
    va_end(args);
    s->text_used += (size_t)n;
}

static void skip_spaces(mri_spec *s)
{
    while (*s->at == ' ') s->at++;
}

bool mri_spec_take(mri_spec *s, char c)
{
    skip_spaces(s);
    if (*s->at != c) return false;
    s->at++;
    skip_spaces(s);
    return true;
}

/* ---- numbers ---- */

static int digits_of(mri_spec *s, uint32_t *digits, uint8_t *places)
{
    const char *start = s->at;
    uint32_t value = 0, seen = 0, after = 0;
    bool point = false;
    for (;; s->at++) {
        if (*s->at == '.' && !point) {
            point = true;
        } else if (*s->at >= '0' && *s->at <= '9') {
            if (value > 99999999) return mri_spec_fail(s, start, "more than nine digits");
            value = 10 * value + (uint32_t)(*s->at - '0');
            seen++;
            after += point;
        } else {
            break;
        }
    }
    if (seen == 0) return mri_spec_fail(s, start, "expected a number: %s", s->usage);
    if (after > 9) return mri_spec_fail(s, start, "more than nine decimal places");
    while (after > 0 && value % 10 == 0) { /* one way to write each number */
        value /= 10;
        after--;
    }
    *digits = value;
    *places = (uint8_t)after;
    return MR_OK;
}

int mri_spec_decimal(mri_spec *s, mri_number *n)
{
    *n = (mri_number){.digits_below = 1};
    return digits_of(s, &n->digits, &n->places);
}

int mri_spec_number(mri_spec *s, mri_number *n)
{
    const char *start = s->at;
    int rc = mri_spec_decimal(s, n);
    if (rc || *s->at != '/') return rc;
    s->at++;
    n->fraction = true;
    rc = digits_of(s, &n->digits_below, &n->places_below);
    if (rc == MR_OK && n->digits_below == 0) return mri_spec_fail(s, start, "division by zero");
    return rc;
}

static double power10(unsigned n)
{
    double v = 1;
    while (n-- > 0) v *= 10;
    return v;
}

static double decimal_value(uint32_t digits, uint8_t places) { return digits / power10(places); }

double mri_number_value(mri_number n)
{
    return decimal_value(n.digits, n.places) / decimal_value(n.digits_below, n.places_below);
}

static void put_decimal(mri_spec *s, uint32_t digits, unsigned places)
{
    uint32_t unit = 1;
    for (unsigned k = 0; k < places; k++) unit *= 10;
    if (places) mri_spec_put(s, "%u.%0*u", digits / unit, (int)places, digits % unit);
    else mri_spec_put(s, "%u", digits);
}

void mri_spec_put_number(mri_spec *s, mri_number n)
{
    put_decimal(s, n.digits, n.places);
    if (!n.fraction) return;
    mri_spec_put(s, "/");
    put_decimal(s, n.digits_below, n.places_below);
}

int mri_spec_whole(mri_spec *s, uint32_t low, uint32_t high, uint32_t *out)
{
    const char *start = s->at;
    uint8_t places;
    const int rc = digits_of(s, out, &places);
    if (rc) return rc;
    if (places || *out < low || *out > high)
        return mri_spec_fail(s, start, "expected a whole number from %u to %u", low, high);
    return MR_OK;
}

/* SIZE or HxW. */
int mri_spec_size(mri_spec *s, bool *single)
{
    int rc = mri_spec_whole(s, 1, MRI_AUGMENT_MAX_SIDE, &s->op.height);
    s->op.width = s->op.height;
    *single = *s->at != 'x';
    if (rc || *single) return rc;
    s->at++;
    return mri_spec_whole(s, 1, MRI_AUGMENT_MAX_SIDE, &s->op.width);
}

void mri_spec_put_size(mri_spec *s, bool single)
{
    if (single) mri_spec_put(s, "%u", s->op.height);
    else mri_spec_put(s, "%ux%u", s->op.height, s->op.width);
}

/* LO:HI within [low, high]. */
int mri_spec_range(mri_spec *s, double low, double high, mri_number out[2])
{
    const char *start = s->at;
    int rc = mri_spec_number(s, &out[0]);
    if (rc) return rc;
    if (*s->at != ':') return mri_spec_fail(s, start, "expected LO:HI: %s", s->usage);
    s->at++;
    rc = mri_spec_number(s, &out[1]);
    if (rc) return rc;
    const double lo = mri_number_value(out[0]), hi = mri_number_value(out[1]);
    if (lo < low || hi > high || lo > hi)
        return mri_spec_fail(s, start, "expected LO:HI with %g <= LO <= HI <= %g", low, high);
    return MR_OK;
}

void mri_spec_put_range(mri_spec *s, const mri_number r[2])
{
    mri_spec_put_number(s, r[0]);
    mri_spec_put(s, ":");
    mri_spec_put_number(s, r[1]);
}

bool mri_spec_word(mri_spec *s, const char *text)
{
    const size_t n = strlen(text);
    if (strncmp(s->at, text, n) != 0) return false;
    s->at += n;
    return true;
}

/* ---- items ---- */

void mri_augment_add(mr_augment *a, const mri_op *op) { a->op[a->op_count++] = *op; }

static int check_place(const mri_spec *s, const char *start, const mri_op_type *type)
{
    if (s->count == MRI_AUGMENT_MAX_OPS)
        return mri_spec_fail(s, start, "more than %d operations", MRI_AUGMENT_MAX_OPS);
    if (type->fix && s->numbers_fixed)
        return mri_spec_fail(s, start,
                             "the numbers are fixed already: one of standardise and normalise, once");
    if ((type->paint || type->run) && s->a->standardise)
        return mri_spec_fail(s, start, "standardise comes after everything that changes pixels");
    return MR_OK;
}

static int read_arguments(mri_spec *s, const char *start, const mri_op_type *type)
{
    const bool open = mri_spec_take(s, '(');
    if (open != (type->read != NULL)) return mri_spec_fail(s, start, "expected %s", s->usage);
    if (!open) return MR_OK;
    mri_spec_put(s, "(");
    const int rc = type->read(s);
    if (rc) return rc;
    if (!mri_spec_take(s, ')')) return mri_spec_fail(s, s->at, "expected %s", s->usage);
    mri_spec_put(s, ")");
    return MR_OK;
}

static int read_op(mri_spec *s, const char *start, const mri_op_type *type)
{
    int rc = check_place(s, start, type);
    if (rc) return rc;
    s->op = (mri_op){.type = type, .index = s->count};
    s->usage = type->usage;
    mri_spec_put(s, "%s%s", s->count ? "," : "", type->name);
    rc = read_arguments(s, start, type);
    if (rc) return rc;
    s->count++;
    if (type->fix) {
        type->fix(s->a, &s->op);
        s->numbers_fixed = true;
    } else if (s->training) {
        mri_augment_add(s->a, &s->op);
    } else if (type->evaluate) {
        type->evaluate(s->a, &s->op);
    }
    return MR_OK;
}

static int read_items(mri_spec *s);

static int read_preset(mri_spec *s, const char *start, const mri_preset *preset)
{
    mri_spec inner = *s;
    inner.at = inner.spec = preset->spec;
    const int rc = *inner.at ? read_items(&inner) : MR_OK;
    if (rc) return mri_spec_fail(s, start, "this preset does not fit behind what stands before it");
    inner.at = s->at;
    inner.spec = s->spec;
    *s = inner;
    return MR_OK;
}

/* One more name behind those in text, as far as there is room. */
static size_t list_name(char *text, size_t capacity, size_t used, bool first, const char *name)
{
    const int n = snprintf(text + used, capacity - used, "%s%s", first ? "" : ", ", name);
    return (size_t)mri_min_u64(used + (uint64_t)n, capacity - 1);
}

static int fail_unknown(const mri_spec *s, const char *start)
{
    char ops[320] = "", all[128] = "";
    size_t used = 0;
    const mri_op_type *type;
    const mri_preset *preset;
    for (size_t k = 0; (type = mri_op_type_at(k)) != NULL; k++)
        used = list_name(ops, sizeof ops, used, k == 0, type->name);
    used = 0;
    for (size_t k = 0; (preset = mri_preset_at(k)) != NULL; k++)
        used = list_name(all, sizeof all, used, k == 0, preset->name);
    return mri_spec_fail(s, start, "unknown; operations are %s; presets %s", ops, all);
}

static int read_item(mri_spec *s)
{
    skip_spaces(s);
    const char *start = s->at;
    const size_t n = strspn(start, "abcdefghijklmnopqrstuvwxyz0123456789_");
    s->at += n;
    const mri_op_type *type = mri_op_type_find(start, n);
    if (type) return read_op(s, start, type);
    const mri_preset *preset;
    for (size_t k = 0; (preset = mri_preset_at(k)) != NULL; k++)
        if (strlen(preset->name) == n && memcmp(preset->name, start, n) == 0)
            return read_preset(s, start, preset);
    return fail_unknown(s, start);
}

static int read_items(mri_spec *s)
{
    do {
        const int rc = read_item(s);
        if (rc) return rc;
    } while (mri_spec_take(s, ','));
    return *s->at ? mri_spec_fail(s, s->at, "expected \",\" or the end") : MR_OK;
}

int mr_augment_create(mr_augment **out, const char *spec, bool training, mr_error *err)
{
    *out = NULL;
    if (!spec) spec = "none";
    if (strlen(spec) > 4000)
        return mr_error_set(err, MR_EINVAL, "augment: specification of over 4000 characters");
    mr_augment *a = calloc(1, sizeof *a);
    if (!a) return mr_error_set(err, MR_ENOMEM, "augment: no memory");
    for (int c = 0; c < 4; c++) a->std[c] = 255;
    mri_spec s = {.spec = spec, .at = spec, .a = a, .training = training, .err = err};
    const int rc = read_items(&s);
    if (rc) {
        free(a);
        return rc;
    }
    if (s.count == 0) mri_spec_put(&s, "none");
    *out = a;
    return MR_OK;
}

void mr_augment_destroy(mr_augment *a) { free(a); }

const char *mr_augment_text(const mr_augment *a) { return a->text; }

void mr_augment_normalise(const mr_augment *a, float mean[4], float std[4], bool *uses_affine)
{
    memcpy(mean, a->mean, sizeof a->mean);
    memcpy(std, a->std, sizeof a->std);
    *uses_affine = a->standardise;
}
