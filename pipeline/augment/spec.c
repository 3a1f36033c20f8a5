/* pipeline/augment/spec.c: the words of the augmentation language, read and written. See spec.h.
 *
 * Numbers are decimal, without exponent, read and written here digit by digit: the locale has no say. */
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
    const size_t room = sizeof s->a->text - s->text_used;
    const int n = vsnprintf(s->a->text + s->text_used, room, format, args);
    va_end(args);
    s->overflows |= (size_t)n >= room;
    s->text_used += s->overflows ? 0 : (size_t)n;
}

void mri_spec_skip_spaces(mri_spec *s)
{
    while (*s->at == ' ') s->at++;
}

bool mri_spec_take(mri_spec *s, char c)
{
    mri_spec_skip_spaces(s);
    if (*s->at != c) return false;
    s->at++;
    mri_spec_skip_spaces(s);
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

int mri_spec_probability(mri_spec *s, mri_number *n)
{
    const char *start = s->at;
    const int rc = mri_spec_number(s, n);
    if (rc == MR_OK && mri_number_value(*n) > 1)
        return mri_spec_fail(s, start, "expected a probability, 0 to 1: %s", s->usage);
    return rc;
}

int mri_spec_last_probability(mri_spec *s, double *out)
{
    mri_number n = {.digits = 1, .digits_below = 1};
    *out = 1;
    if (!mri_spec_take(s, ',')) return MR_OK;
    const int rc = mri_spec_probability(s, &n);
    if (rc) return rc;
    *out = mri_number_value(n);
    if (*out == 1) return MR_OK;
    mri_spec_put(s, ",");
    mri_spec_put_number(s, n);
    return MR_OK;
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

static int read_fill(mri_spec *s, mri_fill *out)
{
    uint32_t value = 0;
    out->mean = mri_spec_word(s, "mean");
    if (!out->mean && (*s->at < '0' || *s->at > '9'))
        return mri_spec_fail(s, s->at, "expected fill=mean or a value of 0 to 255");
    const int rc = out->mean ? MR_OK : mri_spec_whole(s, 0, 255, &value);
    out->value = (uint8_t)value;
    return rc;
}

static int read_nearest(mri_spec *s, bool *nearest)
{
    *nearest = mri_spec_word(s, "nearest");
    if (*nearest || mri_spec_word(s, "bilinear")) return MR_OK;
    return mri_spec_fail(s, s->at, "expected filter=bilinear or filter=nearest");
}

int mri_spec_look(mri_spec *s, mri_look *look, bool *found)
{
    *found = true;
    if (mri_spec_word(s, "filter=")) return read_nearest(s, &look->nearest);
    if (mri_spec_word(s, "fill=")) return read_fill(s, &look->fill);
    *found = false;
    return MR_OK;
}

void mri_spec_put_look(mri_spec *s, mri_look look)
{
    if (look.nearest) mri_spec_put(s, ",filter=nearest");
    if (look.fill.mean) mri_spec_put(s, ",fill=mean");
    else if (look.fill.value) mri_spec_put(s, ",fill=%u", look.fill.value);
}
