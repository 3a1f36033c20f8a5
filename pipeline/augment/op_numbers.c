/* pipeline/augment/op_numbers.c: the device's conversion of pixels to numbers: standardise, normalise,
 * normalise01. The pixels stay; the numbers are stored next to them. */
#include "pipeline/augment/spec.h"

struct normalise {
    float mean[4], std[4]; /* in units of 0 to 255 */
};

/* One number for all channels or one for each of three, separated by colons. unit: the largest value of a
 * pixel in the unit of the numbers, 1 or 255. */
static int per_channel(mri_spec *s, uint32_t unit, float out[4], bool positive)
{
    const char *start = s->at;
    uint32_t k = 0;
    do {
        mri_number n;
        if (k == 3) return mri_spec_fail(s, start, "expected one number or three");
        const char *here = s->at;
        const int rc = mri_spec_decimal(s, &n);
        if (rc) return rc;
        const double value = mri_number_value(n);
        if (unit == 1 && value > 1)
            return mri_spec_fail(
                s, here,
                "expected 0 to 1, for pixels from 0 to 1; normalise() takes numbers for pixels "
                "from 0 to 255");
        out[k] = (float)(value * (255 / unit));
        if (positive && n.digits == 0) return mri_spec_fail(s, start, "cannot divide by zero");
        if (k > 0) mri_spec_put(s, ":");
        mri_spec_put_number(s, n);
        k++;
    } while (*s->at == ':' && s->at++);
    if (k == 2) return mri_spec_fail(s, start, "expected one number or three");
    for (; k < 4; k++) out[k] = out[0];
    return MR_OK;
}

static const struct normalise imagenet = {{123.675f, 116.28f, 103.53f, 123.675f},
                                          {58.395f, 57.12f, 57.375f, 58.395f}};
static const struct normalise unchanged = {{0, 0, 0, 0}, {1, 1, 1, 1}};

static int read_fraction(mri_spec *s, uint32_t unit, struct normalise *n)
{
    int rc = per_channel(s, unit, n->mean, false);
    if (rc) return rc;
    if (*s->at != '/') return mri_spec_fail(s, s->at, "expected \"/\" and what to divide by: %s", s->usage);
    s->at++;
    mri_spec_put(s, "/");
    return per_channel(s, unit, n->std, true);
}

/* Means up to 1 with deviations below 1 describe pixels from 0 to 1. Applied to bytes they make floats of
 * hundreds. */
static bool is_of_unit_pixels(const struct normalise *n)
{
    bool all = true;
    for (int c = 0; c < 4; c++) all = all && n->mean[c] <= 1 && n->std[c] < 1;
    return all;
}

static int read_normalise(mri_spec *s)
{
    struct normalise *n = MRI_OP_ARGS(struct normalise, &s->op);
    if (mri_spec_word(s, "imagenet")) {
        *n = imagenet;
        mri_spec_put(s, "imagenet");
        return MR_OK;
    }
    if (mri_spec_word(s, "none")) {
        *n = unchanged;
        mri_spec_put(s, "none");
        return MR_OK;
    }
    const char *start = s->at;
    const int rc = read_fraction(s, 255, n);
    if (rc || !is_of_unit_pixels(n)) return rc;
    return mri_spec_fail(s, start,
                         "deviations below 1 are for pixels from 0 to 1, and pixels are 0 to 255 here; write "
                         "normalise01(%.*s)",
                         (int)mri_min_u64((uint64_t)(s->at - start), 120), start);
}

static int read_normalise01(mri_spec *s)
{
    return read_fraction(s, 1, MRI_OP_ARGS(struct normalise, &s->op));
}

static void set_numbers(mr_augment *a, const struct normalise *n)
{
    memcpy(a->mean, n->mean, sizeof a->mean);
    memcpy(a->std, n->std, sizeof a->std);
}

static void fix_normalise(mr_augment *a, const mri_op *op)
{
    set_numbers(a, MRI_OP_ARGS(struct normalise, op));
}

static void fix_standardise(mr_augment *a, const mri_op *op)
{
    (void)op; /* takes no arguments */
    a->standardise = true;
    set_numbers(a, &unchanged);
}

const mri_op_type mri_ops_numbers[] = {
    {.name = "standardise",
     .usage = "standardise",
     .help = "per image: minus its mean, over max(std, 1/sqrt(count)), as numbers\n"
             "in parallel with the pixels",
     .fix = fix_standardise},
    {.name = "normalise",
     .usage = "normalise(MEAN/STD), normalise(imagenet) or normalise(none)",
     .help = "mean and deviation that the device applies, in 0..255; default 0/255,\n"
             "0/1 with standardise; MEAN and STD: one number, or three as R:G:B",
     .read = read_normalise,
     .fix = fix_normalise},
    {.name = "normalise01",
     .usage = "normalise01(MEAN/STD)",
     .help = "normalise with MEAN and STD for pixels from 0 to 1, as torchvision has\n"
             "them: 255 times these numbers",
     .read = read_normalise01,
     .fix = fix_normalise},
    {0},
};
