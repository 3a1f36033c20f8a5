/* pipeline/augment/op_colour.c: operations that change colours by a factor or a turn: brightness, contrast,
 * saturation, hue, jitter. */
#include <math.h>

#include "pipeline/augment/frame.h"
#include "pipeline/augment/spec.h"
#include "pipeline/pixels/colour.h"

struct brightness {
    double most;
};

struct factor {
    double lo, hi;
};

struct hue {
    double most; /* of a whole turn */
};

struct jitter {
    struct factor by[3]; /* brightness, contrast, saturation */
    double hue, probability;
};

static int read_brightness(mri_spec *s)
{
    mri_number d;
    const char *start = s->at;
    const int rc = mri_spec_number(s, &d);
    if (rc) return rc;
    const double most = mri_number_value(d);
    if (most > 255) return mri_spec_fail(s, start, "expected 0 to 255, in units of pixels from 0 to 255");
    MRI_OP_ARGS(struct brightness, &s->op)->most = most;
    mri_spec_put_number(s, d);
    return MR_OK;
}

static int read_factor(mri_spec *s)
{
    mri_number r[2];
    const int rc = mri_spec_range(s, 0, 16, r);
    if (rc) return rc;
    *MRI_OP_ARGS(struct factor, &s->op) = (struct factor){mri_number_value(r[0]), mri_number_value(r[1])};
    mri_spec_put_range(s, r);
    return MR_OK;
}

static int read_turn(mri_spec *s, mri_number *d)
{
    const char *start = s->at;
    const int rc = mri_spec_number(s, d);
    if (rc == MR_OK && mri_number_value(*d) > 0.5)
        return mri_spec_fail(s, start, "expected 0 to 0.5, parts of a whole turn of the hue");
    return rc;
}

static int read_hue(mri_spec *s)
{
    mri_number d;
    const int rc = read_turn(s, &d);
    if (rc) return rc;
    MRI_OP_ARGS(struct hue, &s->op)->most = mri_number_value(d);
    mri_spec_put_number(s, d);
    return MR_OK;
}

/* One of the first three: a factor of 1 - B to 1 + B, not below 0. */
static int read_spread(mri_spec *s, struct factor *out)
{
    mri_number n;
    const char *start = s->at;
    const int rc = mri_spec_number(s, &n);
    if (rc) return rc;
    const double by = mri_number_value(n);
    if (by > MRI_FACTOR_MAX - 1)
        return mri_spec_fail(s, start, "expected 0 to %d, for factors of 1 - it to 1 + it",
                             MRI_FACTOR_MAX - 1);
    *out = (struct factor){by < 1 ? 1 - by : 0, 1 + by};
    mri_spec_put_number(s, n);
    mri_spec_put(s, ",");
    return mri_spec_take(s, ',') ? MR_OK : mri_spec_fail(s, s->at, "expected %s", s->usage);
}

static int read_jitter(mri_spec *s)
{
    struct jitter *j = MRI_OP_ARGS(struct jitter, &s->op);
    mri_number hue;
    int rc = MR_OK;
    for (int k = 0; rc == MR_OK && k < 3; k++) rc = read_spread(s, &j->by[k]);
    if (rc == MR_OK) rc = read_turn(s, &hue);
    if (rc) return rc;
    j->hue = mri_number_value(hue);
    mri_spec_put_number(s, hue);
    return mri_spec_last_probability(s, &j->probability);
}

static void paint_brightness(const mri_op *op, mri_sample_key key, uint8_t *pixels, size_t count,
                             uint32_t channels)
{
    const double most = MRI_OP_ARGS(struct brightness, op)->most;
    const mri_philox draw = mri_draw(key, op->index, 0);
    mri_brightness(pixels, count * channels, (int32_t)floor(mri_between(-most, most, draw.v[0]) + 0.5));
}

/* Between lo and hi by a word of a draw, in units of 1 / MRI_FACTOR_ONE. */
static int32_t fixed_between(double lo, double hi, uint32_t word)
{
    return (int32_t)floor(mri_between(lo, hi, word) * MRI_FACTOR_ONE + 0.5);
}

static int32_t factor_of(const mri_op *op, mri_sample_key key)
{
    const struct factor *f = MRI_OP_ARGS(struct factor, op);
    return fixed_between(f->lo, f->hi, mri_draw(key, op->index, 0).v[0]);
}

static void paint_contrast(const mri_op *op, mri_sample_key key, uint8_t *pixels, size_t count,
                           uint32_t channels)
{
    mri_contrast(pixels, count, channels, factor_of(op, key));
}

static void paint_saturation(const mri_op *op, mri_sample_key key, uint8_t *pixels, size_t count,
                             uint32_t channels)
{
    mri_saturation(pixels, count, channels, factor_of(op, key));
}

static void paint_hue(const mri_op *op, mri_sample_key key, uint8_t *pixels, size_t count, uint32_t channels)
{
    const double most = MRI_OP_ARGS(struct hue, op)->most;
    mri_hue(pixels, count, channels, fixed_between(-most, most, mri_draw(key, op->index, 0).v[0]));
}

enum { JITTERS = 4 };

/* One of the 24 orders of four things. */
static void order_of(uint32_t number, uint32_t out[JITTERS])
{
    static const uint32_t below[JITTERS] = {6, 2, 1, 1};
    uint32_t left[JITTERS] = {0, 1, 2, 3};
    for (uint32_t k = 0; k < JITTERS; k++) {
        const uint32_t which = number / below[k];
        number %= below[k];
        out[k] = left[which];
        memmove(left + which, left + which + 1, (JITTERS - 1 - which) * sizeof *left);
    }
}

static void paint_jitter(const mri_op *op, mri_sample_key key, uint8_t *pixels, size_t count,
                         uint32_t channels)
{
    const struct jitter *j = MRI_OP_ARGS(struct jitter, op);
    const mri_philox by = mri_draw(key, op->index, 0), how = mri_draw(key, op->index, 1);
    uint32_t order[JITTERS];
    if (!mri_happens(j->probability, how.v[1])) return;
    order_of(mri_below(how.v[0], 24), order);
    for (uint32_t k = 0; k < JITTERS; k++) {
        const uint32_t word = by.v[order[k]];
        if (order[k] == 3) {
            mri_hue(pixels, count, channels, fixed_between(-j->hue, j->hue, word));
            continue;
        }
        const int32_t factor = fixed_between(j->by[order[k]].lo, j->by[order[k]].hi, word);
        if (order[k] == 0) mri_scale(pixels, count * channels, factor);
        else if (order[k] == 1) mri_contrast(pixels, count, channels, factor);
        else mri_saturation(pixels, count, channels, factor);
    }
}

const mri_op_type mri_ops_colour[] = {
    {.name = "brightness",
     .usage = "brightness(D)",
     .help = "add a draw from [-D, D], in units of 0..255, clipped",
     .read = read_brightness,
     .paint = paint_brightness},
    {.name = "contrast",
     .usage = "contrast(LO:HI)",
     .help = "scale around the mean of the picture's gray by a draw, clipped",
     .read = read_factor,
     .paint = paint_contrast},
    {.name = "saturation",
     .usage = "saturation(LO:HI)",
     .help = "scale around each pixel's gray by a draw, clipped",
     .read = read_factor,
     .paint = paint_saturation},
    {.name = "hue",
     .usage = "hue(D)",
     .help = "turn the hue by a draw from [-D, D] of a whole turn, D up to 0.5;\n"
             "gray pictures stay",
     .read = read_hue,
     .paint = paint_hue},
    {.name = "jitter",
     .usage = "jitter(B,C,S,H[,P])",
     .help = "with probability P (default 1), in a drawn order: all values times a\n"
             "draw from [1-B, 1+B], contrast and saturation by draws from [1-C, 1+C]\n"
             "and [1-S, 1+S], factors below 0 being 0, hue by one from [-H, H]",
     .read = read_jitter,
     .paint = paint_jitter},
    {0},
};
