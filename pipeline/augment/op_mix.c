/* pipeline/augment/op_mix.c: operations that mix two finished pictures of a batch: mixup (Zhang et al. 2018),
 * cutmix (Yun et al. 2019). How much is drawn from a Beta distribution in 256ths; the share of every draw is
 * tabled when the specification is read, so that a draw costs a search, and its bits are the same on every
 * machine. */
#include <math.h>

#include "base/random.h"
#include "pipeline/augment/exponent.h"
#include "pipeline/augment/frame.h"
#include "pipeline/augment/spec.h"
#include "pipeline/pixels/colour.h"

struct mix {
    double alpha, part; /* of pairs that are mixed */
};

static int read_mix(mri_spec *s)
{
    struct mix *m = MRI_OP_ARGS(struct mix, &s->op);
    mri_number n;
    const char *start = s->at;
    int rc = mri_spec_decimal(s, &n);
    if (rc) return rc;
    m->alpha = mri_number_value(n);
    m->part = 1;
    if (!(m->alpha >= 0.01 && m->alpha <= 10))
        return mri_spec_fail(s, start, "expected 0.01 to 10: both parameters of a Beta distribution");
    mri_spec_put_number(s, n);
    if (!mri_spec_take(s, ',')) return MR_OK;
    start = s->at;
    if (!mri_spec_word(s, "p=")) return mri_spec_fail(s, start, "expected p=: %s", s->usage);
    rc = mri_spec_probability(s, &n);
    if (rc) return rc;
    m->part = mri_number_value(n);
    mri_spec_put(s, ",p=");
    mri_spec_put_number(s, n);
    return MR_OK;
}

/* ---- how much ---- */

/* The integral of x^(a-1) (1-x)^(a-1) from 0 to t, t at most 1/2, where each term of the series is less than
 * half of the one before. */
static double incomplete_beta(double a, double t)
{
    double term = 1, sum = 1 / a;
    for (int n = 1; n <= 80; n++) {
        term *= (n - a) / n * t;
        sum += term / (a + n);
    }
    return mri_exp(a * mri_log(t)) * sum;
}

static void table_shares(const mri_op *op, uint64_t words[256])
{
    const double a = MRI_OP_ARGS(struct mix, op)->alpha, whole = 2 * incomplete_beta(a, 0.5);
    for (int k = 0; k < 128; k++) {
        const double below = incomplete_beta(a, (k + 0.5) / 256) / whole;
        words[k] = (uint64_t)floor(below * 4294967296.0 + 0.5);
        words[255 - k] = ((uint64_t)1 << 32) - words[k]; /* the distribution is the same from its other end */
    }
}

static uint32_t share_of(const uint64_t words[256], uint32_t word)
{
    uint32_t from = 0, to = 256;
    while (from < to) {
        const uint32_t middle = (from + to) / 2;
        if (word < words[middle]) to = middle;
        else from = middle + 1;
    }
    return from;
}

/* ---- the operations ---- */

static float run_mixup(mri_philox draw, uint32_t share, const mri_mixed *m)
{
    (void)draw;
    mri_blend(m->a, m->b, (size_t)m->height * m->width * m->channels, share);
    return (float)share / 256;
}

struct span {
    uint32_t from, to;
};

/* Half a side to both sides of a drawn pixel, as far as there are pixels. */
static struct span cut(uint32_t side, double half_part, uint32_t word)
{
    const uint32_t at = mri_below(word, side), half = (uint32_t)(half_part * side);
    return (struct span){at - (half < at ? half : at), half < side - at ? at + half : side};
}

/* Each gets the box of the other. */
static float run_cutmix(mri_philox draw, uint32_t share, const mri_mixed *m)
{
    const double half_part = 0.5 * sqrt(share / 256.0);
    const struct span x = cut(m->width, half_part, draw.v[0]), y = cut(m->height, half_part, draw.v[1]);
    const size_t row = (size_t)m->width * m->channels, bytes = (size_t)(x.to - x.from) * m->channels;
    for (uint32_t r = y.from; r < y.to; r++) {
        uint8_t *a = m->a + r * row + x.from * m->channels, *b = m->b + r * row + x.from * m->channels;
        for (size_t k = 0; k < bytes; k++) {
            const uint8_t other = b[k];
            b[k] = a[k];
            a[k] = other;
        }
    }
    const uint64_t area = (uint64_t)(x.to - x.from) * (y.to - y.from);
    return (float)((double)area / ((double)m->width * m->height));
}

/* ---- one pair ---- */

bool mri_augment_mixes(const mr_augment *a) { return a->mix_count > 0; }

float mri_augment_mix(const mr_augment *a, mri_sample_key key, const mri_mixed *m)
{
    const mri_philox first = mri_draw(key, a->mix[0].op.index, 0);
    const mri_mix *mix = &a->mix[mri_below(first.v[0], a->mix_count)];
    const mri_philox how = mri_draw(key, mix->op.index, 1);
    if (!mri_happens(MRI_OP_ARGS(struct mix, &mix->op)->part, how.v[2])) return 0;
    return mix->op.type->mix(how, share_of(mix->words, how.v[3]), m);
}

void mri_augment_add_mix(mr_augment *a, const mri_op *op)
{
    mri_mix *mix = &a->mix[a->mix_count++];
    mix->op = *op;
    table_shares(op, mix->words);
}

const mri_op_type mri_ops_mix[] = {
    {.name = "mixup",
     .usage = "mixup(ALPHA[,p=P])",
     .help = "mixes two pictures of a batch and their labels, with weights drawn\n"
             "from Beta(ALPHA, ALPHA), ALPHA 0.01 to 10; P: the share of pairs\n"
             "(default 1). Behind all that changes pixels; not with standardise",
     .read = read_mix,
     .mix = run_mixup},
    {.name = "cutmix",
     .usage = "cutmix(ALPHA[,p=P])",
     .help = "the same with a box that two pictures exchange; weights are its area.\n"
             "Of mixup and cutmix each pair draws one",
     .read = read_mix,
     .mix = run_cutmix},
    {0},
};
