/* pipeline/augment/op_numbers.c: what the device makes of pixels: standardise, normalise. The pixels stay;
 * the numbers go beside them. */
#include "pipeline/augment/spec.h"

struct normalise {
    float mean[4], std[4];
};

/* One number for all channels or one for each of three, separated by colons. */
static int per_channel(mri_spec *s, float out[4], bool positive)
{
    const char *start = s->at;
    uint32_t k = 0;
    do {
        mri_number n;
        if (k == 3) return mri_spec_fail(s, start, "expected one number or three");
        const int rc = mri_spec_decimal(s, &n);
        if (rc) return rc;
        out[k] = (float)mri_number_value(n);
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
    int rc = per_channel(s, n->mean, false);
    if (rc) return rc;
    if (*s->at != '/') return mri_spec_fail(s, s->at, "expected \"/\" and what to divide by: %s", s->usage);
    s->at++;
    mri_spec_put(s, "/");
    return per_channel(s, n->std, true);
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
             "beside the pixels",
     .fix = fix_standardise},
    {.name = "normalise",
     .usage = "normalise(MEAN/STD), normalise(imagenet) or normalise(none)",
     .help = "what the device subtracts and divides by, in 0..255; default 0/255,\n"
             "0/1 with standardise; MEAN and STD: one number, or three as R:G:B",
     .read = read_normalise,
     .fix = fix_normalise},
    {0},
};
