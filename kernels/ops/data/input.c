/* kernels/ops/data/input.c: uint8 NHWC pixels become normalised floats, x * k + d with k = a / std and d = (b
 * - mean) / std per channel, each row from right to left where a sample is to be mirrored. Two forms of
 * output: NHWC, and planes, which suit a first convolution over few channels. */
#include <math.h>

#include "kernels/backend/op_class.h"
#include "kernels/host/simd_loop.h"
#include "kernels/ops/host_op.h"

static int describe(const mr_op_desc *d, mr_op_info *info, mr_error *err)
{
    const mr_input_desc *map = &d->input;
    if (d->in.dtype != MR_TENSOR_U8) return mr_error_set(err, MR_EINVAL, "input: input must be uint8");
    if (d->in.c > 4) return mr_error_set(err, MR_EINVAL, "input: at most 4 channels");
    for (uint32_t c = 0; c < d->in.c; c++)
        if (!isfinite(map->mean[c]) || !isfinite(map->std[c]) || map->std[c] == 0)
            return mr_error_set(err, MR_EINVAL, "input: mean must be finite, std finite and not 0");
    if ((unsigned)d->want > MR_WANT_NCHW) return mr_error_set(err, MR_EINVAL, "input: unknown wanted layout");
    uint32_t dtype;
    int rc = mri_op_entry_dtype(map->out_dtype, &dtype, "input", err);
    if (!rc) rc = mri_op_set_output(d, info, d->in.h, d->in.w, d->in.c, dtype, "input", err);
    if (!rc && d->want == MR_WANT_NCHW) info->out.layout = MR_LAYOUT_NCHW;
    return rc;
}

struct channel_map {
    float k[4], d[4];
};

static struct channel_map map_of(const mr_op_desc *desc, const float *affine)
{
    const float a = affine ? affine[0] : 1, b = affine ? affine[1] : 0;
    struct channel_map m = {{0}, {0}};
    for (uint32_t c = 0; c < desc->in.c; c++) {
        m.k[c] = a / desc->input.std[c];
        m.d[c] = (b - desc->input.mean[c]) / desc->input.std[c];
    }
    return m;
}

MRI_INLINE void plane_body(float *restrict out, const uint8_t *restrict in, size_t count, uint32_t stride,
                           float k, float d)
{
    if (stride == 1)
        for (size_t i = 0; i < count; i++) out[i] = (float)in[i] * k + d;
    else if (stride == 3)
        for (size_t i = 0; i < count; i++) out[i] = (float)in[3 * i] * k + d;
    else
        for (size_t i = 0; i < count; i++) out[i] = (float)in[i * stride] * k + d;
}
MRI_SIMD_LOOP(plane,
              (float *restrict out, const uint8_t *restrict in, size_t count, uint32_t stride, float k,
               float d),
              (out, in, count, stride, k, d))

/* One row of one channel from right to left: pixels lie `stride` apart in `in`, `step` in out. */
MRI_INLINE void mirrored_body(float *restrict out, const uint8_t *restrict in, size_t width, uint32_t stride,
                              uint32_t step, float k, float d)
{
    for (size_t i = 0; i < width; i++) out[i * step] = (float)in[(width - 1 - i) * stride] * k + d;
}
MRI_SIMD_LOOP(mirrored,
              (float *restrict out, const uint8_t *restrict in, size_t width, uint32_t stride, uint32_t step,
               float k, float d),
              (out, in, width, stride, step, k, d))

static void sample_nhwc(float *out, const uint8_t *in, size_t pixels, uint32_t channels,
                        const struct channel_map *m)
{
    if (channels == 1) {
        plane(out, in, pixels, 1, m->k[0], m->d[0]);
        return;
    }
    for (size_t p = 0; p < pixels; p++)
        for (uint32_t c = 0; c < channels; c++)
            out[p * channels + c] = (float)in[p * channels + c] * m->k[c] + m->d[c];
}

static void sample_mirrored(float *y, const uint8_t *x, const mr_tensor *out, const struct channel_map *m)
{
    const size_t pixels = (size_t)out->h * out->w, row = (size_t)out->w * out->c;
    const bool planar = out->layout == MRI_LAYOUT_NCHW;
    for (uint32_t c = 0; c < out->c; c++)
        for (size_t r = 0; r < out->h; r++)
            mirrored(planar ? y + c * pixels + r * out->w : y + r * row + c, x + r * row + c, out->w, out->c,
                     planar ? 1 : out->c, m->k[c], m->d[c]);
}

static int forward(mri_host_op *op, const mr_op_args *a, mr_error *err)
{
    (void)err;
    const mr_tensor *out = &op->base.info.out;
    const size_t pixels = (size_t)out->h * out->w, floats = pixels * out->c;
    const bool planar = out->layout == MRI_LAYOUT_NCHW;
#pragma omp parallel for schedule(static) if (floats * a->n > MRI_PARALLEL_ELEMENTS)
    for (uint32_t i = 0; i < a->n; i++) {
        const struct channel_map m = map_of(&op->base.desc, a->affine ? a->affine + 2 * (size_t)i : NULL);
        const uint8_t *x = (const uint8_t *)a->x + i * floats;
        float *y = (float *)a->y + i * floats;
        if (a->flip && a->flip[i]) sample_mirrored(y, x, out, &m);
        else if (!planar) sample_nhwc(y, x, pixels, out->c, &m);
        else
            for (uint32_t c = 0; c < out->c; c++)
                plane(y + c * pixels, x + c, pixels, out->c, m.k[c], m.d[c]);
    }
    return MR_OK;
}

static int check_pixels(mri_host_op *op, mr_error *err)
{
    const mr_tensor *in = &op->base.desc.in;
    if (in->layout == MR_LAYOUT_NHWC && in->sample_bytes == (size_t)in->h * in->w * in->c) return MR_OK;
    return mr_error_set(
        err, MR_EINVAL,
        "input: pixels must be NHWC without padding, %zu bytes a sample; found layout %u with %zu",
        (size_t)in->h * in->w * in->c, in->layout, in->sample_bytes);
}

static int prepare_planar(mri_host_op *op, mr_error *err)
{
    if (op->base.desc.want == MR_WANT_ANY && op->base.desc.in.c > 1)
        mri_tensor_set_layout(&op->base.info.out, MRI_LAYOUT_NCHW);
    return check_pixels(op, err);
}

static const struct mri_op_code reference = {.prepare = check_pixels, .forward = forward};
const struct mri_op_code mri_input_planar = {.prepare = prepare_planar, .forward = forward};
const struct mri_op_class mri_input_class = {
    .name = "input", .entry = true, .describe = describe, .reference = &reference};
