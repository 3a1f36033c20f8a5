/* pipeline/augment/augment.c: runs a parsed augmentation over one sample, from encoded bytes to its place in
 * the batch.
 *
 * The picture is at first encoded. A first rrc or resize takes its result straight from there, at its size;
 * anything else makes the decoder bring a view of its pixels, of which a center only its part. From then on
 * operations replace the view by another: of the decoder's buffer, of one of two work buffers, at last of
 * dst. Few steps copy:
 *
 *   - flip is a mark, folded into the next copy or resize. It commutes with the colour operations, so flips
 *     that follow are folded in as well.
 *   - The last operation that moves pixels writes to dst; colour operations behind it work there in place.
 *
 * Draws: philox4x32 with key mix64(mix64(seed) + 64 * index + block) and counter (sample, epoch), where index
 * is the operation's place in the specification, and block counts the tries of rrc and is 0 elsewhere. An
 * operation has 64 blocks; what goes on behind them goes on at index + 32, where no operation is. Nothing
 * else enters but, in crops that ask for them, the sample's boxes.
 *
 * Crops that cover a box, rrc(..,covers=F): one of the sample's boxes is drawn, of those that have an area in
 * the picture as it stands. Crops are then drawn as without boxes, up to 100 times instead of 10, and the
 * first that fits and holds at least the part F of that box's area is taken; if none does, what rrc takes
 * when nothing fits. A sample without such a box is cropped as without covers, to the bit. This is what the
 * ImageNet pipelines of TensorFlow did with tf.image.sample_distorted_bounding_box, from which come the
 * condition and the 100 tries. What it does otherwise: any box of the sample will do (here the drawn one:
 * where there are several, each has its turn and not the largest most of them); the ratio is drawn uniformly
 * and the height between what the areas allow; boxes are cut to whole pixels and those below one pixel left
 * out; when all tries fail the whole picture is taken; and with use_image_if_no_bounding_boxes a picture
 * without boxes is one box, which refuses crops of less than F of it. */
#include "pipeline/augment/augment.h"

#include <math.h>

#include "pipeline/augment/augment_ops.h"
#include "pipeline/augment/geometry.h"
#include "pipeline/decode/decoders.h"
#include "pipeline/pixels/colour.h"

/* Pictures between operations may be larger than the one that was decoded, up to this many pixels. */
#define BETWEEN_PIXELS ((uint64_t)4 << 20)

struct mri_scratch {
    mri_decoder decoder;
    mri_buffer work[2];
};

int mri_scratch_create(mri_scratch **out)
{
    *out = mri_alloc_aligned(_Alignof(mri_scratch), sizeof **out); /* more than malloc() promises */
    if (!*out) return MR_ENOMEM;
    memset(*out, 0, sizeof **out);
    return MR_OK;
}

void mri_scratch_destroy(mri_scratch *s)
{
    if (!s) return;
    mri_decoder_free(&s->decoder);
    for (size_t k = 0; k < MRI_ARRAY_COUNT(s->work); k++) mri_buffer_free(&s->work[k]);
    free(s);
}

uint64_t mri_scratch_bound_bytes(const mr_decode_config *decode, uint64_t max_pixels_seen,
                                 uint64_t out_pixels)
{
    const uint64_t between = mri_max_u64(mri_min_u64(max_pixels_seen, decode->max_pixels), BETWEEN_PIXELS);
    return sizeof(mri_scratch) + 2 * 3 * between +
           mri_decoder_bound_bytes(decode, max_pixels_seen, mri_max_u64(between, out_pixels),
                                   MRI_AUGMENT_MAX_SIDE);
}

bool mri_augment_resamples_first(const mr_augment *a)
{
    uint32_t k = 0;
    while (k < a->op_count && a->op[k].kind == MRI_OP_FLIP) k++; /* marks only */
    return k < a->op_count && (a->op[k].kind == MRI_OP_RRC || a->op[k].kind == MRI_OP_RESIZE);
}

bool mri_augment_takes_boxes(const mr_augment *a)
{
    for (uint32_t k = 0; k < a->op_count; k++)
        if (a->op[k].covers > 0) return true;
    return false;
}

/* ---- draws ---- */

enum { BLOCKS = 64, RRC_TRIES = 10, RRC_COVER_TRIES = 100, RRC_BOX_BLOCK = 2 * BLOCKS - 1 };

static mri_philox draw(mri_sample_key key, uint32_t index, uint32_t block)
{
    if (block >= BLOCKS) { /* else it would be a block of the operation that follows */
        index += MRI_AUGMENT_MAX_OPS;
        block -= BLOCKS;
    }
    return mri_philox4x32(mri_mix64(mri_mix64(key.seed) + 64 * (uint64_t)index + block), key.sample,
                          key.epoch);
}

static double between(double lo, double hi, uint32_t word)
{
    return lo + (hi - lo) * (word * (1.0 / 4294967296.0));
}

static uint32_t rounded(double v) { return v >= 4e9 ? UINT32_MAX : (uint32_t)floor(v + 0.5); }

/* One try: an area and an aspect ratio (uniform in its logarithm) at a random place. false: it does not
 * fit. */
static bool rrc_try(const mri_op *op, mri_sample_key key, uint32_t try, uint32_t width, uint32_t height,
                    mri_rect *out)
{
    const mri_philox r = draw(key, op->index, try);
    const double part = (double)width * height * between(op->lo, op->hi, r.v[0]);
    const double ratio = mri_exp(between(op->log_ratio_lo, op->log_ratio_hi, r.v[1]));
    const uint32_t w = rounded(sqrt(part * ratio)), h = rounded(sqrt(part / ratio));
    if (w == 0 || h == 0 || w > width || h > height) return false;
    *out = (mri_rect){mri_below(r.v[2], width - w + 1), mri_below(r.v[3], height - h + 1), w, h};
    return true;
}

/* The largest centred box whose ratio is allowed. */
static mri_rect rrc_largest(const mri_op *op, uint32_t width, uint32_t height)
{
    uint32_t w = width, h = height;
    const double ratio = (double)width / height;
    if (ratio < op->ratio_lo) h = rounded(width / op->ratio_lo);
    else if (ratio > op->ratio_hi) w = rounded(height * op->ratio_hi);
    w = w < 1 ? 1 : w > width ? width : w;
    h = h < 1 ? 1 : h > height ? height : h;
    return (mri_rect){(width - w) / 2, (height - h) / 2, w, h};
}

/* How much of from..to lies in the size pixels at `at`. */
static double overlap(double from, double to, uint32_t at, uint32_t size)
{
    const double lo = from > at ? from : at, end = (double)at + size, hi = to < end ? to : end;
    return hi > lo ? hi - lo : 0;
}

static bool covers(const mri_op *op, mri_rect crop, const mri_box *box)
{
    const double held =
        overlap(box->x0, box->x1, crop.x, crop.width) * overlap(box->y0, box->y1, crop.y, crop.height);
    return held >= op->covers * ((box->x1 - box->x0) * (box->y1 - box->y0));
}

/* The first try that fits and covers the box (NULL: none is asked for); else the largest. */
static mri_rect rrc_box(const mri_op *op, mri_sample_key key, uint32_t width, uint32_t height,
                        const mri_box *box)
{
    mri_rect crop;
    for (uint32_t try = 0; try < (box ? RRC_COVER_TRIES : RRC_TRIES); try++)
        if (rrc_try(op, key, try, width, height, &crop) && (!box || covers(op, crop, box))) return crop;
    return rrc_largest(op, width, height);
}

/* ---- the state of one run ---- */

struct run {
    const mr_augment *a;
    mri_scratch *s;
    const mr_decode_config *decode;
    mri_sample_key key;
    uint32_t out_h, out_w, at; /* at: the operation being run */
    uint8_t *dst;
    uint64_t most_pixels;       /* of a picture in between */
    const mri_picture *picture; /* not decoded yet; then NULL */
    mri_view v; /* the picture so far: a part of a whole of full_w x full_h, from (part_x, part_y) */
    uint32_t full_w, full_h, part_x, part_y;
    bool mirrored;          /* picture or v stands for its mirror image */
    uint64_t flips_done;    /* bit k: operation k was folded in ahead of its turn */
    mri_geometry *geometry; /* of the picture so far, without `mirrored`; or NULL, then boxes too */
    const mri_boxes *boxes; /* or NULL */
    mr_error *err;
};

static bool moves_pixels(mri_op_kind kind)
{
    return kind == MRI_OP_RRC || kind == MRI_OP_RESIZE || kind == MRI_OP_CENTER || kind == MRI_OP_PADCROP ||
           kind == MRI_OP_SHIFT;
}

static bool flips(const struct run *r, const mri_op *op) { return draw(r->key, op->index, 0).v[0] >> 31; }

/* Where the result of the operations up to `next` goes, for width x height pixels. Takes in the flips that
 * follow. */
static int target(struct run *r, uint32_t next, uint64_t width, uint64_t height, bool *mirror, uint8_t **out)
{
    bool last = true;
    *mirror = false;
    for (uint32_t k = next; k < r->a->op_count && last; k++) {
        if (moves_pixels(r->a->op[k].kind)) {
            last = false;
        } else if (r->a->op[k].kind == MRI_OP_FLIP && !(r->flips_done >> k & 1)) {
            *mirror ^= flips(r, &r->a->op[k]);
            r->flips_done |= (uint64_t)1 << k;
        }
    }
    if (last) {
        if (width != r->out_w || height != r->out_h)
            return mr_error_set(
                r->err, MR_EFORMAT,
                "picture comes out as %llu x %llu, the batch holds %u x %u: add resize or rrc "
                "to the augmentation",
                (unsigned long long)width, (unsigned long long)height, r->out_w, r->out_h);
        *out = r->dst;
        return MR_OK;
    }
    if (width > r->most_pixels / height)
        return mr_error_set(
            r->err, MR_ELIMIT,
            "augmentation makes a picture of %llu x %llu in between; the limit is %llu pixels",
            (unsigned long long)width, (unsigned long long)height, (unsigned long long)r->most_pixels);
    mri_buffer *free_one = &r->s->work[r->v.pixels == r->s->work[0].data && r->v.pixels];
    if (mri_buffer_need(free_one, (size_t)(width * height * r->v.channels)))
        return mr_error_set(r->err, MR_ENOMEM, "no memory for a picture of %llu x %llu",
                            (unsigned long long)width, (unsigned long long)height);
    *out = free_one->data;
    return MR_OK;
}

static int decode_part(struct run *r, mri_rect part)
{
    const int rc =
        mri_picture_decode(&r->s->decoder, r->picture, r->decode, r->v.channels, part, &r->v, r->err);
    r->picture = NULL;
    r->part_x = part.x;
    r->part_y = part.y;
    return rc;
}

static void replace(struct run *r, const uint8_t *pixels, uint32_t width, uint32_t height)
{
    r->v = (mri_view){.pixels = pixels,
                      .width = width,
                      .height = height,
                      .channels = r->v.channels,
                      .stride = (size_t)width * r->v.channels};
    r->picture = NULL;
    r->full_w = width;
    r->full_h = height;
    r->part_x = r->part_y = 0;
    r->mirrored = false;
}

/* Pixels [at, at + count) of a side, as far as it has them; at least one. */
static void cut(int64_t at, uint32_t count, uint32_t side, uint32_t *from, uint32_t *size)
{
    const int64_t lo = at < 0 ? 0 : at > (int64_t)side - 1 ? (int64_t)side - 1 : at, end = at + count;
    *from = (uint32_t)lo;
    *size = end <= lo ? 1 : (uint32_t)((end > (int64_t)side ? (int64_t)side : end) - lo);
}

/* The picture becomes its width x height window at (x, y). */
static int window(struct run *r, uint32_t next, int64_t x, int64_t y, uint32_t width, uint32_t height,
                  mri_outside outside)
{
    uint8_t *to;
    bool mirror;
    int rc = target(r, next, width, height, &mirror, &to);
    if (rc) return rc;
    if (r->mirrored) { /* the mirror image's window is the mirror image of the window at the other end */
        x = (int64_t)r->full_w - x - width;
        mirror = !mirror;
    }
    if (r->geometry) mri_geometry_window(r->geometry, x, y, width, height, outside, mirror);
    if (r->picture) {
        mri_rect part;
        cut(x, width, r->full_w, &part.x, &part.width);
        cut(y, height, r->full_h, &part.y, &part.height);
        if (part.width == width && part.height == height && r->picture->way == MRI_WAY_ROAD) { /* nothing
                                                                                                  outside:
                                                                                                  straight
                                                                                                  there */
            const mri_axis ax = mri_axis_window(r->full_w, part.x, width),
                           ay = mri_axis_window(r->full_h, part.y, height);
            rc = mri_picture_resample(&r->s->decoder, r->picture, r->decode, r->v.channels, &ax, &ay,
                                      MRI_FILTER_BILINEAR, mirror, to, r->err);
            if (rc == MR_OK) replace(r, to, width, height);
            return rc;
        }
        rc = decode_part(r, part);
        if (rc) return rc;
    }
    mri_copy_window(&r->v, x - r->part_x, y - r->part_y, width, height, outside, mirror, to);
    replace(r, to, width, height);
    return MR_OK;
}

static int whole(struct run *r, uint32_t next)
{
    return window(r, next, 0, 0, r->full_w, r->full_h, MRI_OUTSIDE_ZERO);
}

/* ---- plans: what a resize or crop looks at ---- */

struct plan {
    mri_axis x, y; /* of the picture as it stands */
    mri_filter filter;
    uint32_t op_count; /* operations it stands for */
};

static int64_t centred(uint64_t side, uint32_t part) { return ((int64_t)side - part) >> 1; }

static mri_rect draw_crop(const struct run *r, const mri_op *op)
{
    mri_box box;
    const bool asks =
        op->covers > 0 && r->boxes &&
        mri_boxes_pick(r->geometry, r->boxes, draw(r->key, op->index, RRC_BOX_BLOCK).v[0], &box);
    if (asks && r->mirrored) box = (mri_box){r->full_w - box.x1, box.y0, r->full_w - box.x0, box.y1};
    return rrc_box(op, r->key, r->full_w, r->full_h, asks ? &box : NULL);
}

/* A resize and, when one follows that lies inside it, its center crop. */
static int plan_resize(const struct run *r, struct plan *p)
{
    const mri_op *op = &r->a->op[r->at];
    const uint32_t in_w = r->full_w, in_h = r->full_h;
    uint64_t w = op->width, h = op->height;
    mri_rect box = {0, 0, in_w, in_h};
    if (op->kind == MRI_OP_RRC) box = draw_crop(r, op);
    else if (op->shorter) mri_shorter_side(op->width, in_h, in_w, &h, &w);
    if (w > MRI_RESAMPLE_MAX_SIDE || h > MRI_RESAMPLE_MAX_SIDE || in_w > MRI_RESAMPLE_MAX_SIDE ||
        in_h > MRI_RESAMPLE_MAX_SIDE)
        return mr_error_set(r->err, MR_ELIMIT, "resize of %u x %u pixels to %llu x %llu: sides go up to %u",
                            in_w, in_h, (unsigned long long)w, (unsigned long long)h, MRI_RESAMPLE_MAX_SIDE);
    *p = (struct plan){.x = mri_axis_of(in_w, box.x, box.width, (uint32_t)w),
                       .y = mri_axis_of(in_h, box.y, box.height, (uint32_t)h),
                       .filter = op->filter,
                       .op_count = 1};
    const mri_op *crop = r->at + 1 < r->a->op_count ? op + 1 : NULL;
    if (op->kind == MRI_OP_RESIZE && crop && crop->kind == MRI_OP_CENTER && crop->width <= w &&
        crop->height <= h) {
        p->x.first = (uint32_t)centred(w, crop->width);
        p->x.count = crop->width;
        p->y.first = (uint32_t)centred(h, crop->height);
        p->y.count = crop->height;
        p->op_count = 2;
    }
    return MR_OK;
}

/* ---- operations ---- */

static int run_resize(struct run *r)
{
    struct plan p;
    uint8_t *to;
    bool mirror;
    int rc = MR_OK;
    if (r->v.plane_bytes) rc = whole(r, r->at); /* the filter takes interleaved pixels */
    if (rc == MR_OK) rc = plan_resize(r, &p);
    if (rc == MR_OK) rc = target(r, r->at + p.op_count, p.x.count, p.y.count, &mirror, &to);
    if (rc) return rc;
    if (r->mirrored) { /* the same box of the picture itself, its result the other way round */
        p.x.start = r->full_w - p.x.start - p.x.size;
        p.x.first = p.x.out - p.x.first - p.x.count;
        mirror = !mirror;
    }
    if (r->geometry) mri_geometry_resample(r->geometry, &p.x, &p.y, mirror);
    if (r->picture)
        rc = mri_picture_resample(&r->s->decoder, r->picture, r->decode, r->v.channels, &p.x, &p.y, p.filter,
                                  mirror, to, r->err);
    else
        rc = mri_view_resample(&r->s->decoder, &r->v, r->part_x, r->part_y, &p.x, &p.y, p.filter, mirror, to,
                               r->err);
    if (rc) return rc;
    replace(r, to, p.x.count, p.y.count);
    r->at += p.op_count - 1;
    return MR_OK;
}

static int run_padcrop(struct run *r, const mri_op *op)
{
    const mri_philox d = draw(r->key, op->index, 0);
    const uint32_t w = op->width ? op->width : r->full_w, h = op->height ? op->height : r->full_h;
    const uint64_t padded_w = (uint64_t)r->full_w + 2 * op->pad, padded_h = (uint64_t)r->full_h + 2 * op->pad;
    const int64_t x = padded_w >= w ? mri_below(d.v[0], (uint32_t)(padded_w - w) + 1) : centred(padded_w, w);
    const int64_t y = padded_h >= h ? mri_below(d.v[1], (uint32_t)(padded_h - h) + 1) : centred(padded_h, h);
    return window(r, r->at + 1, x - op->pad, y - op->pad, w, h, MRI_OUTSIDE_ZERO);
}

static int run_shift(struct run *r, const mri_op *op)
{
    const mri_philox d = draw(r->key, op->index, 0);
    const uint32_t most_x = (uint32_t)floor(op->lo * r->full_w), most_y = (uint32_t)floor(op->hi * r->full_h);
    const int64_t x = (int64_t)mri_below(d.v[0], 2 * most_x + 1) - most_x,
                  y = (int64_t)mri_below(d.v[1], 2 * most_y + 1) - most_y;
    return window(r, r->at + 1, x, y, r->full_w, r->full_h, MRI_OUTSIDE_EDGE);
}

static int run_colour(struct run *r, const mri_op *op)
{
    const bool ours =
        r->v.pixels == r->dst ||
        (r->v.pixels && (r->v.pixels == r->s->work[0].data || r->v.pixels == r->s->work[1].data));
    const int rc = ours ? MR_OK : whole(r, r->at);
    if (rc) return rc;
    uint8_t *p = r->v.pixels == r->dst ? r->dst : r->s->work[r->v.pixels != r->s->work[0].data].data;
    const size_t pixels = (size_t)r->full_w * r->full_h;
    const uint32_t channels = r->v.channels, word = draw(r->key, op->index, 0).v[0];
    if (op->kind == MRI_OP_BRIGHTNESS) {
        mri_brightness(p, pixels * channels, (int32_t)floor(between(-op->lo, op->lo, word) + 0.5));
        return MR_OK;
    }
    const int32_t factor = (int32_t)floor(between(op->lo, op->hi, word) * MRI_FACTOR_ONE + 0.5);
    if (op->kind == MRI_OP_CONTRAST) mri_contrast(p, pixels, channels, factor);
    else mri_saturation(p, pixels, channels, factor);
    return MR_OK;
}

static int run_op(struct run *r, const mri_op *op)
{
    switch (op->kind) {
    case MRI_OP_RRC:
    case MRI_OP_RESIZE: return run_resize(r);
    case MRI_OP_CENTER:
        return window(r, r->at + 1, centred(r->full_w, op->width), centred(r->full_h, op->height), op->width,
                      op->height, MRI_OUTSIDE_ZERO);
    case MRI_OP_PADCROP: return run_padcrop(r, op);
    case MRI_OP_SHIFT: return run_shift(r, op);
    case MRI_OP_FLIP:
        if (!(r->flips_done >> r->at & 1)) r->mirrored ^= flips(r, op);
        return MR_OK;
    case MRI_OP_BRIGHTNESS:
    case MRI_OP_CONTRAST:
    case MRI_OP_SATURATION: return run_colour(r, op);
    case MRI_OP_STANDARDISE:
    case MRI_OP_NORMALISE: break; /* never in the list: numbers, not pixels */
    }
    return MR_OK;
}

int mri_augment_run(const mr_augment *a, mri_scratch *s, const mr_value *value,
                    const mr_decode_config *decode, uint32_t channels, mri_sample_key key, uint32_t out_h,
                    uint32_t out_w, uint8_t *dst, float *affine, const mri_boxes *boxes,
                    mri_geometry *geometry, mr_error *err)
{
    mri_geometry own; /* boxes are where the picture went */
    if (!geometry && boxes && mri_augment_takes_boxes(a)) geometry = &own;
    struct run r = {.a = a,
                    .s = s,
                    .decode = decode,
                    .key = key,
                    .out_h = out_h,
                    .out_w = out_w,
                    .dst = dst,
                    .geometry = geometry,
                    .boxes = boxes,
                    .err = err};
    mri_picture picture;
    int rc = mri_picture_open(&picture, &s->decoder, value, decode, err);
    if (rc) return rc;
    r.picture = &picture;
    r.v.channels = channels;
    r.full_w = picture.width;
    r.full_h = picture.height;
    r.most_pixels = mri_max_u64((uint64_t)picture.width * picture.height, BETWEEN_PIXELS);
    if (geometry)
        mri_geometry_start(geometry, picture.stored_width, picture.stored_height, picture.orientation);
    for (; r.at < a->op_count; r.at++) {
        rc = run_op(&r, &a->op[r.at]);
        if (rc) return rc;
    }
    if (r.picture || r.v.pixels != dst || r.mirrored) rc = whole(&r, a->op_count);
    if (rc == MR_OK && a->standardise) mri_standardise(dst, (size_t)out_h * out_w * channels, affine);
    return rc;
}
