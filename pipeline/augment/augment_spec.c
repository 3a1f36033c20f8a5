/* pipeline/augment/augment_spec.c: the augmentation language: text to operations and back.
 *
 *   spec   item {"," item}
 *   item   preset | name ["(" argument {"," argument} ")"]
 *
 * Numbers are decimal, without exponent, read and written here digit by digit: the locale has no say and the
 * text in a checkpoint is the text that was given, with defaults spelled out. */
#include <stdarg.h>
#include <stdio.h>

#include "base/util.h"
#include "pipeline/augment/augment_ops.h"

struct parser {
    const char *spec, *at;
    mr_augment *a;
    size_t text_used;
    uint32_t count; /* operations of the specification */
    mri_op op;      /* the one being read */
    bool training, normalised;
    const char *usage; /* of the operation being read, for messages */
    mr_error *err;
};

static int fail_at(const struct parser *p, const char *where, const char *format, ...) MR_PRINTF(3, 4);
static int fail_at(const struct parser *p, const char *where, const char *format, ...)
{
    char what[256];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    const int part = (int)strcspn(where, ",)");
    return mr_error_set(p->err, MR_EINVAL, "augment \"%.200s\", character %zu, \"%.*s\": %s", p->spec,
                        (size_t)(where - p->spec) + 1, part > 40 ? 40 : part, where, what);
}

static void put(struct parser *p, const char *format, ...) MR_PRINTF(2, 3);
static void put(struct parser *p, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(p->a->text + p->text_used, sizeof p->a->text - p->text_used, format, args);
    va_end(args);
    p->text_used += (size_t)n;
}

static void skip_spaces(struct parser *p)
{
    while (*p->at == ' ') p->at++;
}

static bool take(struct parser *p, char c)
{
    skip_spaces(p);
    if (*p->at != c) return false;
    p->at++;
    skip_spaces(p);
    return true;
}

/* ---- numbers ---- */

static int decimal(struct parser *p, uint32_t *digits, uint8_t *places)
{
    const char *start = p->at;
    uint32_t value = 0, seen = 0, after = 0;
    bool point = false;
    for (;; p->at++) {
        if (*p->at == '.' && !point) {
            point = true;
        } else if (*p->at >= '0' && *p->at <= '9') {
            if (value > 99999999) return fail_at(p, start, "more than nine digits");
            value = 10 * value + (uint32_t)(*p->at - '0');
            seen++;
            after += point;
        } else {
            break;
        }
    }
    if (seen == 0) return fail_at(p, start, "expected a number: %s", p->usage);
    if (after > 9) return fail_at(p, start, "more than nine decimal places");
    while (after > 0 && value % 10 == 0) { /* one way to write each number */
        value /= 10;
        after--;
    }
    *digits = value;
    *places = (uint8_t)after;
    return MR_OK;
}

static int number(struct parser *p, mri_number *n)
{
    const char *start = p->at;
    *n = (mri_number){.digits_below = 1};
    int rc = decimal(p, &n->digits, &n->places);
    if (rc || *p->at != '/') return rc;
    p->at++;
    n->fraction = true;
    rc = decimal(p, &n->digits_below, &n->places_below);
    if (rc == MR_OK && n->digits_below == 0) return fail_at(p, start, "division by zero");
    return rc;
}

static double power10(unsigned n)
{
    double v = 1;
    while (n-- > 0) v *= 10;
    return v;
}

static double decimal_value(uint32_t digits, uint8_t places) { return digits / power10(places); }

static double value_of(mri_number n)
{
    return decimal_value(n.digits, n.places) / decimal_value(n.digits_below, n.places_below);
}

static void put_decimal(struct parser *p, uint32_t digits, unsigned places)
{
    uint32_t unit = 1;
    for (unsigned k = 0; k < places; k++) unit *= 10;
    if (places) put(p, "%u.%0*u", digits / unit, (int)places, digits % unit);
    else put(p, "%u", digits);
}

static void put_number(struct parser *p, mri_number n)
{
    put_decimal(p, n.digits, n.places);
    if (!n.fraction) return;
    put(p, "/");
    put_decimal(p, n.digits_below, n.places_below);
}

static int whole(struct parser *p, uint32_t low, uint32_t high, uint32_t *out)
{
    const char *start = p->at;
    uint8_t places;
    const int rc = decimal(p, out, &places);
    if (rc) return rc;
    if (places || *out < low || *out > high)
        return fail_at(p, start, "expected a whole number from %u to %u", low, high);
    return MR_OK;
}

/* SIZE or HxW. */
static int size(struct parser *p, bool *single)
{
    int rc = whole(p, 1, MRI_AUGMENT_MAX_SIDE, &p->op.height);
    p->op.width = p->op.height;
    *single = *p->at != 'x';
    if (rc || *single) return rc;
    p->at++;
    return whole(p, 1, MRI_AUGMENT_MAX_SIDE, &p->op.width);
}

static void put_size(struct parser *p, bool single)
{
    if (single) put(p, "%u", p->op.height);
    else put(p, "%ux%u", p->op.height, p->op.width);
}

/* LO:HI within [low, high]. */
static int range(struct parser *p, double low, double high, mri_number out[2])
{
    const char *start = p->at;
    int rc = number(p, &out[0]);
    if (rc) return rc;
    if (*p->at != ':') return fail_at(p, start, "expected LO:HI: %s", p->usage);
    p->at++;
    rc = number(p, &out[1]);
    if (rc) return rc;
    const double lo = value_of(out[0]), hi = value_of(out[1]);
    if (lo < low || hi > high || lo > hi)
        return fail_at(p, start, "expected LO:HI with %g <= LO <= HI <= %g", low, high);
    return MR_OK;
}

static void put_range(struct parser *p, const mri_number r[2])
{
    put_number(p, r[0]);
    put(p, ":");
    put_number(p, r[1]);
}

/* ---- operations: each reads its arguments after "(" and writes them down ---- */

static bool word(struct parser *p, const char *text)
{
    const size_t n = strlen(text);
    if (strncmp(p->at, text, n) != 0) return false;
    p->at += n;
    return true;
}

/* Behind "filter=". The default is not written down. */
static int read_filter(struct parser *p)
{
    if (word(p, "bilinear")) p->op.filter = MRI_FILTER_BILINEAR;
    else if (word(p, "bicubic")) p->op.filter = MRI_FILTER_BICUBIC;
    else return fail_at(p, p->at, "expected filter=bilinear or filter=bicubic");
    return MR_OK;
}

static void put_filter(struct parser *p)
{
    if (p->op.filter == MRI_FILTER_BICUBIC) put(p, ",filter=bicubic");
}

/* Behind "covers=". */
static int read_covers(struct parser *p, mri_number *n)
{
    const char *start = p->at;
    const int rc = number(p, n);
    if (rc) return rc;
    p->op.covers = value_of(*n);
    if (p->op.covers > 0 && p->op.covers <= 1) return MR_OK;
    return fail_at(p, start,
                   "expected the part of a box's area that a crop covers at least: above 0, at most 1");
}

static int read_rrc(struct parser *p)
{
    mri_number covers = {0};
    mri_number scale[2] = {{8, 1, 2, 0, false}, {1, 1, 0, 0, false}},
               ratio[2] = {{3, 4, 0, 0, true}, {4, 3, 0, 0, true}};
    int rc = whole(p, 1, MRI_AUGMENT_MAX_SIDE, &p->op.height);
    p->op.width = p->op.height;
    while (rc == MR_OK && take(p, ',')) {
        if (word(p, "scale=")) rc = range(p, 0.0001, 1, scale);
        else if (word(p, "ratio=")) rc = range(p, 0.01, 100, ratio);
        else if (word(p, "filter=")) rc = read_filter(p);
        else if (word(p, "covers=")) rc = read_covers(p, &covers);
        else rc = fail_at(p, p->at, "expected scale=LO:HI, ratio=LO:HI, filter=bilinear|bicubic or covers=F");
    }
    if (rc) return rc;
    p->op.lo = value_of(scale[0]);
    p->op.hi = value_of(scale[1]);
    p->op.ratio_lo = value_of(ratio[0]);
    p->op.ratio_hi = value_of(ratio[1]);
    p->op.log_ratio_lo = mri_log(p->op.ratio_lo);
    p->op.log_ratio_hi = mri_log(p->op.ratio_hi);
    put(p, "%u,scale=", p->op.height);
    put_range(p, scale);
    put(p, ",ratio=");
    put_range(p, ratio);
    put_filter(p);
    if (p->op.covers > 0) {
        put(p, ",covers=");
        put_number(p, covers);
    }
    return MR_OK;
}

static int read_resize(struct parser *p)
{
    int rc = size(p, &p->op.shorter);
    if (rc) return rc;
    put_size(p, p->op.shorter);
    if (take(p, ','))
        rc = word(p, "filter=") ? read_filter(p)
                                : fail_at(p, p->at, "expected filter=bilinear or filter=bicubic");
    put_filter(p);
    return rc;
}

static int read_center(struct parser *p)
{
    bool single;
    const int rc = size(p, &single);
    if (rc == MR_OK) put_size(p, single);
    return rc;
}

static int read_padcrop(struct parser *p)
{
    int rc = whole(p, 0, MRI_AUGMENT_MAX_SIDE, &p->op.pad);
    if (rc) return rc;
    put(p, "%u", p->op.pad);
    if (!take(p, ',')) return MR_OK;
    bool single;
    rc = size(p, &single);
    if (rc) return rc;
    put(p, ",");
    put_size(p, single);
    return MR_OK;
}

static int read_shift(struct parser *p)
{
    mri_number by[2];
    for (int k = 0; k < 2; k++) {
        const char *start = p->at;
        const int rc = number(p, &by[k]);
        if (rc) return rc;
        if (value_of(by[k]) > 1) return fail_at(p, start, "expected a fraction of the side, 0 to 1");
        if (k == 0 && !take(p, ',')) {
            by[1] = by[0];
            break;
        }
    }
    p->op.lo = value_of(by[0]);
    p->op.hi = value_of(by[1]);
    put_number(p, by[0]);
    put(p, ",");
    put_number(p, by[1]);
    return MR_OK;
}

static int read_brightness(struct parser *p)
{
    mri_number d;
    const char *start = p->at;
    const int rc = number(p, &d);
    if (rc) return rc;
    p->op.lo = value_of(d);
    if (p->op.lo > 255) return fail_at(p, start, "expected 0 to 255, in units of pixels from 0 to 255");
    put_number(p, d);
    return MR_OK;
}

static int read_factor(struct parser *p)
{
    mri_number r[2];
    const int rc = range(p, 0, 16, r);
    if (rc) return rc;
    p->op.lo = value_of(r[0]);
    p->op.hi = value_of(r[1]);
    put_range(p, r);
    return MR_OK;
}

/* One number for all channels or one for each of three, separated by colons. */
static int per_channel(struct parser *p, float out[4], bool positive)
{
    const char *start = p->at;
    uint32_t k = 0;
    do {
        uint32_t digits;
        uint8_t places;
        if (k == 3) return fail_at(p, start, "expected one number or three");
        const int rc = decimal(p, &digits, &places);
        if (rc) return rc;
        out[k] = (float)decimal_value(digits, places);
        if (positive && digits == 0) return fail_at(p, start, "cannot divide by zero");
        if (k > 0) put(p, ":");
        put_decimal(p, digits, places);
        k++;
    } while (*p->at == ':' && p->at++);
    if (k == 2) return fail_at(p, start, "expected one number or three");
    for (; k < 4; k++) out[k] = out[0];
    return MR_OK;
}

static void set_normalise(mr_augment *a, const float mean[3], const float std[3])
{
    for (int c = 0; c < 4; c++) {
        a->mean[c] = mean[c % 3];
        a->std[c] = std[c % 3];
    }
}

static int read_normalise(struct parser *p)
{
    static const float imagenet_mean[3] = {123.675f, 116.28f, 103.53f},
                       imagenet_std[3] = {58.395f, 57.12f, 57.375f};
    static const float zero[3] = {0, 0, 0}, one[3] = {1, 1, 1};
    if (word(p, "imagenet")) {
        set_normalise(p->a, imagenet_mean, imagenet_std);
        put(p, "imagenet");
        return MR_OK;
    }
    if (word(p, "none")) {
        set_normalise(p->a, zero, one);
        put(p, "none");
        return MR_OK;
    }
    int rc = per_channel(p, p->a->mean, false);
    if (rc) return rc;
    if (*p->at != '/') return fail_at(p, p->at, "expected \"/\" and what to divide by: %s", p->usage);
    p->at++;
    put(p, "/");
    return per_channel(p, p->a->std, true);
}

typedef int read_fn(struct parser *p);

static const struct {
    const char *name;
    mri_op_kind kind;
    read_fn *read; /* NULL: takes no arguments */
    const char *usage;
} words[] = {
    {"rrc", MRI_OP_RRC, read_rrc,
     "rrc(SIZE[,scale=LO:HI][,ratio=LO:HI][,filter=bilinear|bicubic][,covers=F])"},
    {"resize", MRI_OP_RESIZE, read_resize,
     "resize(SIZE[,filter=bilinear|bicubic]) or resize(HxW[,filter=...])"},
    {"center", MRI_OP_CENTER, read_center, "center(SIZE) or center(HxW)"},
    {"padcrop", MRI_OP_PADCROP, read_padcrop, "padcrop(PAD[,SIZE])"},
    {"shift", MRI_OP_SHIFT, read_shift, "shift(FX[,FY])"},
    {"flip", MRI_OP_FLIP, NULL, "flip"},
    {"brightness", MRI_OP_BRIGHTNESS, read_brightness, "brightness(D)"},
    {"contrast", MRI_OP_CONTRAST, read_factor, "contrast(LO:HI)"},
    {"saturation", MRI_OP_SATURATION, read_factor, "saturation(LO:HI)"},
    {"standardise", MRI_OP_STANDARDISE, NULL, "standardise"},
    {"normalise", MRI_OP_NORMALISE, read_normalise,
     "normalise(MEAN/STD), normalise(imagenet) or normalise(none)"},
};

static const struct {
    const char *name, *spec;
} presets[] = {
    {"none", ""},
    {"rrc224", "rrc(224),flip,normalise(imagenet)"},
    {"center224", "resize(256),center(224),normalise(imagenet)"},
    {"cifar", "padcrop(4),flip"},
};

/* ---- evaluation ---- */

static void add(mr_augment *a, mri_op op) { a->op[a->op_count++] = op; }

static void add_for_evaluation(mr_augment *a, mri_op op)
{
    mri_op center = {.kind = MRI_OP_CENTER, .index = op.index, .height = op.height, .width = op.width};
    switch (op.kind) {
    case MRI_OP_RRC: {
        const uint32_t side = (uint32_t)((uint64_t)op.height * 8 / 7);
        add(a, (mri_op){.kind = MRI_OP_RESIZE,
                        .index = op.index,
                        .height = side,
                        .width = side,
                        .shorter = true,
                        .filter = op.filter});
        add(a, center);
        break;
    }
    case MRI_OP_PADCROP:
        if (op.height) add(a, center);
        break;
    case MRI_OP_RESIZE:
    case MRI_OP_CENTER: add(a, op); break;
    default: /* random, or numbers beside the pixels */ break;
    }
}

/* ---- items ---- */

static int check_place(struct parser *p, const char *start, mri_op_kind kind)
{
    if (p->count == MRI_AUGMENT_MAX_OPS)
        return fail_at(p, start, "more than %d operations", MRI_AUGMENT_MAX_OPS);
    const bool numbers = kind == MRI_OP_STANDARDISE || kind == MRI_OP_NORMALISE;
    if (numbers && (p->normalised || p->a->standardise))
        return fail_at(p, start, "the numbers are fixed already: one of standardise and normalise, once");
    if (!numbers && kind != MRI_OP_FLIP && p->a->standardise)
        return fail_at(p, start, "standardise comes after everything that changes pixels");
    return MR_OK;
}

static int read_op(struct parser *p, const char *start, size_t which)
{
    const mri_op_kind kind = words[which].kind;
    int rc = check_place(p, start, kind);
    if (rc) return rc;
    p->op = (mri_op){.kind = kind, .index = p->count};
    p->usage = words[which].usage;
    put(p, "%s%s", p->count ? "," : "", words[which].name);
    const bool open = take(p, '(');
    if (open != (words[which].read != NULL)) return fail_at(p, start, "expected %s", p->usage);
    if (open) {
        put(p, "(");
        rc = words[which].read(p);
        if (rc) return rc;
        if (!take(p, ')')) return fail_at(p, p->at, "expected %s", p->usage);
        put(p, ")");
    }
    p->count++;
    if (kind == MRI_OP_STANDARDISE) p->a->standardise = true;
    else if (kind == MRI_OP_NORMALISE) p->normalised = true;
    else if (p->training) add(p->a, p->op);
    else add_for_evaluation(p->a, p->op);
    return MR_OK;
}

static int read_items(struct parser *p);

static int read_item(struct parser *p)
{
    skip_spaces(p);
    const char *start = p->at;
    const size_t n = strspn(start, "abcdefghijklmnopqrstuvwxyz0123456789_");
    p->at += n;
    for (size_t k = 0; k < MRI_ARRAY_COUNT(words); k++)
        if (strlen(words[k].name) == n && memcmp(words[k].name, start, n) == 0) return read_op(p, start, k);
    for (size_t k = 0; k < MRI_ARRAY_COUNT(presets); k++) {
        if (strlen(presets[k].name) != n || memcmp(presets[k].name, start, n) != 0) continue;
        struct parser inner = *p;
        inner.at = presets[k].spec;
        inner.spec = presets[k].spec;
        const int rc = *inner.at ? read_items(&inner) : MR_OK;
        if (rc) return fail_at(p, start, "this preset does not fit behind what stands before it");
        const char *at = p->at, *spec = p->spec;
        *p = inner;
        p->at = at;
        p->spec = spec;
        return MR_OK;
    }
    return fail_at(p, start,
                   "unknown; operations are rrc, resize, center, padcrop, shift, flip, brightness, contrast, "
                   "saturation, "
                   "standardise, normalise; presets none, rrc224, center224, cifar");
}

static int read_items(struct parser *p)
{
    do {
        const int rc = read_item(p);
        if (rc) return rc;
    } while (take(p, ','));
    return *p->at ? fail_at(p, p->at, "expected \",\" or the end") : MR_OK;
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
    struct parser p = {.spec = spec, .at = spec, .a = a, .training = training, .err = err};
    const int rc = read_items(&p);
    if (rc) {
        free(a);
        return rc;
    }
    if (a->standardise)
        for (int c = 0; c < 4; c++) a->std[c] = 1;
    if (p.count == 0) put(&p, "none");
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

/* ---- sizes ---- */

void mri_shorter_side(uint32_t n, uint32_t in_h, uint32_t in_w, uint64_t *out_h, uint64_t *out_w)
{
    *out_h = in_h <= in_w ? n : (uint64_t)n * in_h / in_w;
    *out_w = in_h <= in_w ? (uint64_t)n * in_w / in_h : n;
}

int mr_augment_output(const mr_augment *a, uint32_t in_h, uint32_t in_w, uint32_t *out_h, uint32_t *out_w,
                      mr_error *err)
{
    uint64_t h = in_h, w = in_w;
    bool known = in_h != 0 && in_w != 0;
    for (uint32_t k = 0; k < a->op_count; k++) {
        const mri_op *op = &a->op[k];
        if (op->kind == MRI_OP_RESIZE && op->shorter) {
            if (known) mri_shorter_side(op->width, (uint32_t)h, (uint32_t)w, &h, &w);
        } else if (op->kind == MRI_OP_RRC || op->kind == MRI_OP_RESIZE || op->kind == MRI_OP_CENTER ||
                   (op->kind == MRI_OP_PADCROP && op->height)) {
            h = op->height;
            w = op->width;
            known = true;
        }
        if (known && (h > MRI_AUGMENT_MAX_SIDE || w > MRI_AUGMENT_MAX_SIDE))
            return mr_error_set(err, MR_EINVAL,
                                "augment \"%s\" makes pictures of %llu x %llu; sides go up to %d", a->text,
                                (unsigned long long)h, (unsigned long long)w, MRI_AUGMENT_MAX_SIDE);
    }
    if (!known)
        return mr_error_set(
            err, MR_EINVAL,
            "pictures differ in size, and augment \"%s\" does not bring them to one: add rrc(224), "
            "or resize(256),center(224), or resize(224x224)",
            a->text);
    *out_h = (uint32_t)h;
    *out_w = (uint32_t)w;
    return MR_OK;
}

/* ---- exp and log ---- */

double mri_exp(double x)
{
    /* e^x = (e^(x/256))^256; the series needs few terms for an argument this small. */
    const double r = x / 256;
    double term = 1, sum = 1;
    for (int k = 1; k <= 9; k++) {
        term *= r / k;
        sum += term;
    }
    for (int k = 0; k < 8; k++) sum *= sum;
    return sum;
}

double mri_log(double x)
{
    double y = 0;
    for (int k = 0; k < 40; k++) { /* third-order steps; far more than are needed within 1/16384..16384 */
        const double e = mri_exp(y);
        y += 2 * (x - e) / (x + e);
    }
    return y;
}
