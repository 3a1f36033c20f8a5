/* pipeline/augment/frame.c: the picture on its way through the operations. */
#include "pipeline/augment/frame.h"

#include <math.h>

mri_philox mri_draw(mri_sample_key key, uint32_t index, uint32_t block)
{
    if (block >= MRI_DRAW_BLOCKS) { /* else it would be a block of the operation that follows */
        index += MRI_AUGMENT_MAX_OPS;
        block -= MRI_DRAW_BLOCKS;
    }
    return mri_philox4x32(mri_mix64(mri_mix64(key.seed) + 64 * (uint64_t)index + block), key.sample,
                          key.epoch);
}

/* The work buffer in which the picture is not, for width x height pixels. */
static int room_beside(mri_frame *f, uint64_t width, uint64_t height, uint8_t **out)
{
    if (width > f->most_pixels / height)
        return mr_error_set(
            f->err, MR_ELIMIT,
            "augmentation makes a picture of %llu x %llu in between; the limit is %llu pixels",
            (unsigned long long)width, (unsigned long long)height, (unsigned long long)f->most_pixels);
    mri_buffer *free_one = &f->s->work[f->v.pixels == f->s->work[0].data && f->v.pixels];
    if (mri_buffer_need(free_one, (size_t)(width * height * f->v.channels)))
        return mr_error_set(f->err, MR_ENOMEM, "no memory for a picture of %llu x %llu",
                            (unsigned long long)width, (unsigned long long)height);
    *out = free_one->data;
    return MR_OK;
}

int mri_frame_spare(mri_frame *f, uint8_t **out) { return room_beside(f, f->full_w, f->full_h, out); }

/* Where the result of the operations up to `next` goes, for width x height pixels. Takes in the flips that
 * follow. */
int mri_frame_target(mri_frame *f, uint32_t next, uint64_t width, uint64_t height, bool *mirror,
                     uint8_t **out)
{
    bool last = true, folds = true;
    *mirror = false;
    for (uint32_t k = next; k < f->a->op_count && last; k++) {
        const mri_op *op = &f->a->op[k];
        if (op->type->run) {
            last = false;
        } else if (op->type->touch) {
            folds = false; /* later flips apply after it */
        } else if (folds && op->type->mirrors && !(f->flips_done >> k & 1)) {
            *mirror ^= op->type->mirrors(f, op);
            f->flips_done |= (uint64_t)1 << k;
        }
    }
    if (last) {
        if (width != f->out_w || height != f->out_h)
            return mri_augment_sizes_differ(f->a, width, height, f->out_w, f->out_h, f->err);
        *out = f->dst;
        return MR_OK;
    }
    return room_beside(f, width, height, out);
}

static int decode_part(mri_frame *f, mri_rect part)
{
    const int rc =
        mri_picture_decode(&f->s->decoder, f->picture, f->decode, f->v.channels, part, &f->v, f->err);
    f->picture = NULL;
    f->part_x = part.x;
    f->part_y = part.y;
    return rc;
}

void mri_frame_replace(mri_frame *f, const uint8_t *pixels, uint32_t width, uint32_t height)
{
    f->v = mri_view_packed(pixels, width, height, f->v.channels);
    f->picture = NULL;
    f->full_w = width;
    f->full_h = height;
    f->part_x = f->part_y = 0;
    f->mirrored = false;
}

/* Pixels [at, at + count) of a side, as far as it has them; at least one. All where mirror images of some
 * show beyond its ends. */
static void cut(int64_t at, uint32_t count, uint32_t side, mri_outside outside, uint32_t *from,
                uint32_t *size)
{
    if (outside == MRI_OUTSIDE_MIRROR && (at < 0 || at + count > (int64_t)side)) {
        *from = 0;
        *size = side;
        return;
    }
    const int64_t lo = at < 0 ? 0 : at > (int64_t)side - 1 ? (int64_t)side - 1 : at, end = at + count;
    *from = (uint32_t)lo;
    *size = end <= lo ? 1 : (uint32_t)((end > (int64_t)side ? (int64_t)side : end) - lo);
}

/* The picture becomes its width x height window at (x, y). */
int mri_frame_window(mri_frame *f, uint32_t next, int64_t x, int64_t y, uint32_t width, uint32_t height,
                     mri_outside outside)
{
    uint8_t *to;
    bool mirror;
    int rc = mri_frame_target(f, next, width, height, &mirror, &to);
    if (rc) return rc;
    if (f->mirrored) { /* the mirror image's window is the mirror image of the window at the other end */
        x = (int64_t)f->full_w - x - width;
        mirror = !mirror;
    }
    if (f->geometry) mri_geometry_window(f->geometry, x, y, width, height, outside, mirror);
    if (f->picture) {
        mri_rect part;
        cut(x, width, f->full_w, outside, &part.x, &part.width);
        cut(y, height, f->full_h, outside, &part.y, &part.height);
        if (part.x == x && part.y == y && part.width == width && part.height == height &&
            f->picture->decode_method == MRI_DECODE_PIXEL_PATH) {
            /* nothing outside: straight there */
            const mri_axis ax = mri_axis_window(f->full_w, part.x, width),
                           ay = mri_axis_window(f->full_h, part.y, height);
            rc = mri_picture_resample(&f->s->decoder, f->picture, f->decode, f->v.channels, &ax, &ay,
                                      MRI_FILTER_BILINEAR, mirror, to, f->err);
            if (rc == MR_OK) mri_frame_replace(f, to, width, height);
            return rc;
        }
        rc = decode_part(f, part);
        if (rc) return rc;
    }
    mri_copy_window(&f->v, x - f->part_x, y - f->part_y, width, height, outside, mirror, to);
    mri_frame_replace(f, to, width, height);
    return MR_OK;
}

int mri_frame_whole(mri_frame *f, uint32_t next)
{
    return mri_frame_window(f, next, 0, 0, f->full_w, f->full_h, MRI_OUTSIDE_ZERO);
}

int mri_frame_writable(mri_frame *f, uint8_t **pixels)
{
    const bool ours =
        f->v.pixels == f->dst ||
        (f->v.pixels && (f->v.pixels == f->s->work[0].data || f->v.pixels == f->s->work[1].data));
    const int rc = ours ? MR_OK : mri_frame_whole(f, f->at);
    if (rc) return rc;
    *pixels = f->v.pixels == f->dst ? f->dst : f->s->work[f->v.pixels != f->s->work[0].data].data;
    return MR_OK;
}

int mri_frame_upright(mri_frame *f, uint8_t **pixels)
{
    const int rc = mri_frame_writable(f, pixels);
    if (rc || !f->mirrored) return rc;
    mri_mirror(*pixels, f->full_w, f->full_h, f->v.channels);
    if (f->geometry) mri_geometry_window(f->geometry, 0, 0, f->full_w, f->full_h, MRI_OUTSIDE_ZERO, true);
    f->mirrored = false;
    return MR_OK;
}

void mri_frame_mean(const mri_frame *f, const uint8_t *pixels, uint8_t out[4])
{
    const size_t bytes = (size_t)f->full_w * f->full_h * f->v.channels;
    uint64_t sum = 0;
    if (f->a->standardise)
        for (size_t k = 0; k < bytes; k++) sum += pixels[k];
    for (int c = 0; c < 4; c++) {
        const float mean = f->a->mean[c];
        out[c] = f->a->standardise ? (uint8_t)((sum + bytes / 2) / bytes)
                 : mean > 255      ? 255
                                   : (uint8_t)floorf(mean + 0.5f);
    }
}

int mri_frame_warp(mri_frame *f, uint8_t *pixels, const mri_warp *w, mri_look look)
{
    uint8_t *copy = NULL, pixel[4];
    if (f->full_w > MRI_RESAMPLE_MAX_SIDE || f->full_h > MRI_RESAMPLE_MAX_SIDE)
        return mr_error_set(f->err, MR_ELIMIT,
                            "%u x %u pixels are to be turned or sheared: sides go up to %u", f->full_w,
                            f->full_h, MRI_RESAMPLE_MAX_SIDE);
    const int rc = mri_frame_spare(f, &copy);
    if (rc) return rc;
    memset(pixel, look.fill.value, sizeof pixel);
    if (look.fill.mean) mri_frame_mean(f, pixels, pixel);
    memcpy(copy, pixels, (size_t)f->full_w * f->full_h * f->v.channels);
    mri_warp_picture(copy, f->full_w, f->full_h, f->v.channels, w, look.nearest, pixel, pixels);
    if (f->geometry) mri_geometry_warp(f->geometry, w);
    return MR_OK;
}
