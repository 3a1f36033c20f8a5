/* pipeline/augment/augment.c: runs a parsed augmentation over one sample, from encoded bytes to its place in
 * the batch. Each operation has its own code (op.h); frame.h passes the picture from one to the next.
 */
#include "pipeline/augment/augment.h"

#include "pipeline/augment/frame.h"
#include "pipeline/pixels/colour.h"

int mri_scratch_create(mri_scratch **out)
{
    *out = mri_alloc_aligned(_Alignof(mri_scratch), sizeof **out); /* more than malloc() promises */
    if (!*out) return MR_ENOMEM;
    memset(*out, 0, sizeof **out);
    return MR_OK;
}

void mri_scratch_drop(mri_scratch *s)
{
    mri_decoder_free(&s->decoder);
    for (size_t k = 0; k < MRI_ARRAY_COUNT(s->work); k++) mri_buffer_free(&s->work[k]);
}

mri_decoder *mri_scratch_decoder(mri_scratch *s) { return &s->decoder; }

void mri_scratch_destroy(mri_scratch *s)
{
    if (!s) return;
    mri_scratch_drop(s);
    free(s);
}

/* The largest picture that an operation may make of one that is as large as `seen`. */
static mri_extremes largest_between(const mr_augment *a, mri_extremes seen)
{
    mri_extremes most = seen;
    for (uint32_t k = 0; k < a->op_count; k++) {
        const mri_op *op = &a->op[k];
        const bool follows = op->shorter || !op->height != !op->width; /* a side depends on the picture */
        if (!follows && !op->height) continue;                         /* its size stays */
        most.pixels =
            mri_max_u64(most.pixels, follows ? MRI_BETWEEN_PIXELS : mri_times(op->height, op->width));
        most.side =
            mri_max_u64(most.side, follows ? MRI_AUGMENT_MAX_SIDE : mri_max_u64(op->height, op->width));
    }
    return most;
}

uint64_t mri_scratch_bound_bytes(const mr_augment *a, const mr_decode_config *decode, mri_extremes seen,
                                 uint64_t out_pixels)
{
    seen.pixels = mri_min_u64(seen.pixels, decode->max_pixels);
    const mri_extremes between = largest_between(a, seen);
    return sizeof(mri_scratch) + 2 * 3 * between.pixels +
           mri_decoder_bound_bytes(decode, seen, mri_max_u64(between.pixels, out_pixels),
                                   mri_min_u64(between.side, MRI_AUGMENT_MAX_SIDE));
}

bool mri_augment_resamples_first(const mr_augment *a)
{
    uint32_t k = 0;
    while (k < a->op_count && a->op[k].type->mirrors) k++; /* marks only */
    return k < a->op_count && a->op[k].type->resamples;
}

bool mri_augment_takes_boxes(const mr_augment *a)
{
    for (uint32_t k = 0; k < a->op_count; k++)
        if (a->op[k].takes_boxes) return true;
    return false;
}

static int paint(mri_frame *f, const mri_op *op)
{
    uint8_t *pixels = NULL;
    const int rc = mri_frame_writable(f, &pixels);
    if (rc) return rc;
    op->type->paint(op, f->key, pixels, (size_t)f->full_w * f->full_h, f->v.channels);
    return MR_OK;
}

static int touch(mri_frame *f, const mri_op *op)
{
    uint8_t *pixels = NULL;
    const int rc = mri_frame_upright(f, &pixels);
    return rc ? rc : op->type->touch(f, op, pixels);
}

static int run_op(mri_frame *f, const mri_op *op)
{
    if (op->type->run) return op->type->run(f, op);
    if (op->type->touch) return touch(f, op);
    if (op->type->paint) return paint(f, op);
    if (!(f->flips_done >> f->at & 1)) f->mirrored ^= op->type->mirrors(f, op);
    return MR_OK;
}

int mri_augment_run(const mr_augment *a, mri_scratch *s, const mr_value *value,
                    const mr_decode_config *decode, uint32_t channels, mri_sample_key key, uint32_t out_h,
                    uint32_t out_w, uint8_t *dst, float *affine, const mri_boxes *boxes,
                    mri_geometry *geometry, mr_error *err)
{
    mri_geometry own; /* boxes are where the picture went */
    if (!geometry && boxes && mri_augment_takes_boxes(a)) geometry = &own;
    mri_frame f = {.a = a,
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
    f.picture = &picture;
    f.v.channels = channels;
    f.full_w = picture.width;
    f.full_h = picture.height;
    f.most_pixels = mri_max_u64((uint64_t)picture.width * picture.height, MRI_BETWEEN_PIXELS);
    if (geometry)
        mri_geometry_start(geometry, picture.stored_width, picture.stored_height, picture.orientation);
    for (; f.at < a->op_count; f.at++) {
        rc = run_op(&f, &a->op[f.at]);
        if (rc) return rc;
    }
    rc = f.picture || f.v.pixels != dst ? mri_frame_whole(&f, a->op_count) : mri_frame_upright(&f, &dst);
    if (rc == MR_OK && a->standardise) mri_standardise(dst, (size_t)out_h * out_w * channels, affine);
    return rc;
}
