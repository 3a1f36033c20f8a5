/* pipeline/augment/op_tone.c: operations that are done to a picture or not, by a probability: gray, invert,
 * solarize, posterize, autocontrast, equalize. */
#include "pipeline/augment/frame.h"
#include "pipeline/augment/spec.h"
#include "pipeline/pixels/colour.h"
#include "pipeline/pixels/tone.h"

struct tone {
    uint32_t level; /* the threshold, or bits; nothing elsewhere */
    double probability;
};

/* ---- arguments ---- */

static int read_probability(mri_spec *s)
{
    mri_number p;
    const int rc = mri_spec_probability(s, &p);
    if (rc) return rc;
    MRI_OP_ARGS(struct tone, &s->op)->probability = mri_number_value(p);
    mri_spec_put_number(s, p);
    return MR_OK;
}

static int read_level(mri_spec *s, uint32_t low, uint32_t high)
{
    struct tone *t = MRI_OP_ARGS(struct tone, &s->op);
    const int rc = mri_spec_whole(s, low, high, &t->level);
    if (rc) return rc;
    if (!mri_spec_take(s, ',')) return mri_spec_fail(s, s->at, "expected %s", s->usage);
    mri_spec_put(s, "%u,", t->level);
    return read_probability(s);
}

static int read_solarize(mri_spec *s) { return read_level(s, 0, 256); }
static int read_posterize(mri_spec *s) { return read_level(s, 1, 8); }

/* ---- the picture ---- */

static bool happens(const mri_op *op, mri_sample_key key)
{
    return mri_happens(MRI_OP_ARGS(struct tone, op)->probability, mri_draw(key, op->index, 0).v[0]);
}

static void paint_gray(const mri_op *op, mri_sample_key key, uint8_t *pixels, size_t count, uint32_t channels)
{
    if (happens(op, key)) mri_to_gray(pixels, count, channels);
}

static void paint_invert(const mri_op *op, mri_sample_key key, uint8_t *pixels, size_t count,
                         uint32_t channels)
{
    if (happens(op, key)) mri_invert(pixels, count * channels);
}

static void paint_solarize(const mri_op *op, mri_sample_key key, uint8_t *pixels, size_t count,
                           uint32_t channels)
{
    if (happens(op, key)) mri_solarize(pixels, count * channels, MRI_OP_ARGS(struct tone, op)->level);
}

static void paint_posterize(const mri_op *op, mri_sample_key key, uint8_t *pixels, size_t count,
                            uint32_t channels)
{
    if (happens(op, key)) mri_posterize(pixels, count * channels, MRI_OP_ARGS(struct tone, op)->level);
}

static void paint_autocontrast(const mri_op *op, mri_sample_key key, uint8_t *pixels, size_t count,
                               uint32_t channels)
{
    if (happens(op, key)) mri_autocontrast(pixels, count, channels);
}

static void paint_equalize(const mri_op *op, mri_sample_key key, uint8_t *pixels, size_t count,
                           uint32_t channels)
{
    if (happens(op, key)) mri_equalize(pixels, count, channels);
}

const mri_op_type mri_ops_tone[] = {
    {.name = "gray",
     .usage = "gray(P)",
     .help = "with probability P all channels become the pixel's gray",
     .read = read_probability,
     .paint = paint_gray},
    {.name = "invert",
     .usage = "invert(P)",
     .help = "with probability P: 255 - x",
     .read = read_probability,
     .paint = paint_invert},
    {.name = "solarize",
     .usage = "solarize(THRESHOLD,P)",
     .help = "with probability P: 255 - x where x >= THRESHOLD, 0 to 256",
     .read = read_solarize,
     .paint = paint_solarize},
    {.name = "posterize",
     .usage = "posterize(BITS,P)",
     .help = "with probability P only the highest BITS of each value stay, 1 to 8",
     .read = read_posterize,
     .paint = paint_posterize},
    {.name = "autocontrast",
     .usage = "autocontrast(P)",
     .help = "with probability P each channel is stretched to 0..255",
     .read = read_probability,
     .paint = paint_autocontrast},
    {.name = "equalize",
     .usage = "equalize(P)",
     .help = "with probability P the values of each channel are made about equally\n"
             "frequent",
     .read = read_probability,
     .paint = paint_equalize},
    {0},
};
