/* pipeline/augment/op_erase.c: operations that take a part of the picture away: erase, cutout.
 *
 * The fill is a pixel of 0 to 255, since pixels become floats on the device: a network sees zeros where
 * pixels are the mean of normalise(), not where they are 0. */
#include <math.h>

#include "pipeline/augment/exponent.h"
#include "pipeline/augment/frame.h"
#include "pipeline/augment/spec.h"

typedef enum value { VALUE_MEAN, VALUE_ZERO, VALUE_RANDOM } value;
static const char *const value_names[] = {"mean", "zero", "random"};

struct erase {
    double probability, area_lo, area_hi, log_ratio_lo, log_ratio_hi;
    value value;
};

struct cutout {
    uint32_t side;
    value value;
};

enum { TRIES = 10, CHANCE_BLOCK = 62, NOISE_BLOCK = 63 }; /* blocks of draws: 0 to 9 are the tries */

/* ---- arguments ---- */

/* Behind "value=". */
static int read_value(mri_spec *s, value *out)
{
    for (size_t k = 0; k < MRI_ARRAY_COUNT(value_names); k++)
        if (mri_spec_word(s, value_names[k])) {
            *out = (value)k;
            return MR_OK;
        }
    return mri_spec_fail(s, s->at, "expected value=mean, value=zero or value=random");
}

static int read_erase(mri_spec *s)
{
    mri_number p, scale[2] = {{2, 1, 2, 0, false}, {33, 1, 2, 0, false}},
                  ratio[2] = {{3, 1, 1, 0, false}, {33, 1, 1, 0, false}};
    struct erase *e = MRI_OP_ARGS(struct erase, &s->op);
    int rc = mri_spec_probability(s, &p);
    while (rc == MR_OK && mri_spec_take(s, ',')) {
        if (mri_spec_word(s, "scale=")) rc = mri_spec_range(s, 0, 1, scale);
        else if (mri_spec_word(s, "ratio=")) rc = mri_spec_range(s, 0.01, 100, ratio);
        else if (mri_spec_word(s, "value=")) rc = read_value(s, &e->value);
        else rc = mri_spec_fail(s, s->at, "expected scale=LO:HI, ratio=LO:HI or value=mean|zero|random");
    }
    if (rc) return rc;
    e->probability = mri_number_value(p);
    e->area_lo = mri_number_value(scale[0]);
    e->area_hi = mri_number_value(scale[1]);
    e->log_ratio_lo = mri_log(mri_number_value(ratio[0]));
    e->log_ratio_hi = mri_log(mri_number_value(ratio[1]));
    mri_spec_put_number(s, p);
    mri_spec_put(s, ",scale=");
    mri_spec_put_range(s, scale);
    mri_spec_put(s, ",ratio=");
    mri_spec_put_range(s, ratio);
    mri_spec_put(s, ",value=%s", value_names[e->value]);
    return MR_OK;
}

static int read_cutout(mri_spec *s)
{
    struct cutout *c = MRI_OP_ARGS(struct cutout, &s->op);
    int rc = mri_spec_whole(s, 1, MRI_AUGMENT_MAX_SIDE, &c->side);
    if (rc == MR_OK && mri_spec_take(s, ','))
        rc = mri_spec_word(s, "value=") ? read_value(s, &c->value)
                                        : mri_spec_fail(s, s->at, "expected value=mean|zero|random");
    if (rc == MR_OK) mri_spec_put(s, "%u,value=%s", c->side, value_names[c->value]);
    return rc;
}

/* ---- the picture ---- */

/* Bytes of a stream of its own, philox of one key over block numbers, from its beginning. */
static void put_noise(mri_sample_key key, uint32_t index, uint8_t *pixels, size_t stride, size_t row_bytes,
                      uint32_t height)
{
    const mri_philox d = mri_draw(key, index, NOISE_BLOCK);
    const uint64_t stream = d.v[0] | (uint64_t)d.v[1] << 32;
    mri_philox words = {{0}};
    uint64_t at = 0;
    for (uint32_t y = 0; y < height; y++)
        for (size_t x = 0; x < row_bytes; x++, at++) {
            if (at % 16 == 0) words = mri_philox4x32(stream, at / 16, 0);
            pixels[y * stride + x] = (uint8_t)(words.v[at / 4 % 4] >> at % 4 * 8);
        }
}

static void put_pixel(uint8_t *pixels, size_t stride, uint32_t width, uint32_t height, uint32_t channels,
                      const uint8_t pixel[4])
{
    for (uint32_t y = 0; y < height; y++)
        for (size_t x = 0; x < width; x++)
            for (uint32_t c = 0; c < channels; c++) pixels[y * stride + x * channels + c] = pixel[c];
}

static void put_value(const mri_frame *f, const mri_op *op, value v, mri_rect r, uint8_t *pixels)
{
    const uint32_t channels = f->v.channels;
    const size_t stride = (size_t)f->full_w * channels;
    uint8_t *first = pixels + r.y * stride + (size_t)r.x * channels, pixel[4] = {0};
    if (v == VALUE_RANDOM) {
        put_noise(f->key, op->index, first, stride, (size_t)r.width * channels, r.height);
        return;
    }
    if (v == VALUE_MEAN) mri_frame_mean(f, pixels, pixel);
    put_pixel(first, stride, r.width, r.height, channels, pixel);
}

/* A rectangle with less than the whole width and height of the picture. false: this try makes none. */
static bool erase_try(const mri_frame *f, const mri_op *op, uint32_t try, mri_rect *out)
{
    const struct erase *e = MRI_OP_ARGS(struct erase, op);
    const mri_philox r = mri_draw(f->key, op->index, try);
    const double area = (double)f->full_w * f->full_h * mri_between(e->area_lo, e->area_hi, r.v[0]);
    const double ratio = mri_exp(mri_between(e->log_ratio_lo, e->log_ratio_hi, r.v[1]));
    const double h = floor(sqrt(area * ratio) + 0.5), w = floor(sqrt(area / ratio) + 0.5);
    if (w < 1 || h < 1 || w >= f->full_w || h >= f->full_h) return false;
    *out = (mri_rect){mri_below(r.v[2], f->full_w - (uint32_t)w + 1),
                      mri_below(r.v[3], f->full_h - (uint32_t)h + 1), (uint32_t)w, (uint32_t)h};
    return true;
}

static int touch_erase(mri_frame *f, const mri_op *op, uint8_t *pixels)
{
    const struct erase *e = MRI_OP_ARGS(struct erase, op);
    mri_rect r;
    if (!mri_happens(e->probability, mri_draw(f->key, op->index, CHANCE_BLOCK).v[0])) return MR_OK;
    for (uint32_t try = 0; try < TRIES; try++)
        if (erase_try(f, op, try, &r)) {
            put_value(f, op, e->value, r, pixels);
            return MR_OK;
        }
    return MR_OK;
}

/* The part of a square around a pixel of a side that lies in it. */
static void cut_square(uint32_t centre, uint32_t square, uint32_t side, uint32_t *from, uint32_t *size)
{
    const int64_t lo = (int64_t)centre - square / 2, end = lo + square;
    *from = (uint32_t)(lo < 0 ? 0 : lo);
    *size = (uint32_t)(end > side ? side : end) - *from;
}

static int touch_cutout(mri_frame *f, const mri_op *op, uint8_t *pixels)
{
    const struct cutout *c = MRI_OP_ARGS(struct cutout, op);
    const mri_philox d = mri_draw(f->key, op->index, 0);
    mri_rect r;
    cut_square(mri_below(d.v[0], f->full_w), c->side, f->full_w, &r.x, &r.width);
    cut_square(mri_below(d.v[1], f->full_h), c->side, f->full_h, &r.y, &r.height);
    put_value(f, op, c->value, r, pixels);
    return MR_OK;
}

const mri_op_type mri_ops_erase[] = {
    {.name = "erase",
     .usage = "erase(P[,scale=LO:HI][,ratio=LO:HI][,value=mean|zero|random])",
     .help = "random erasing: with probability P a rectangle of scale times the\n"
             "picture's area (default 0.02:0.33) and of height / width = ratio\n"
             "(0.3:3.3), anywhere in it, 10 tries. Its pixels become: mean, the mean\n"
             "of normalise(), which the device makes 0; zero, black; random, bytes",
     .read = read_erase,
     .touch = touch_erase},
    {.name = "cutout",
     .usage = "cutout(SIZE[,value=mean|zero|random])",
     .help = "a square of that side around a drawn pixel, cut off at the border;\n"
             "value as for erase",
     .read = read_cutout,
     .touch = touch_cutout},
    {0},
};
