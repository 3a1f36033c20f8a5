/* pipeline/decode/image_encode.c: pixels to JPEG or PNG files in memory. */
#include <spng.h>

#include "pipeline/decode/jpeg/libjpeg.h"
#include "pipeline/pixels/pixels.h"

static int check_image(const mr_image *in, uint32_t most, const char *format, mr_error *err)
{
    if (in->pixels && (in->channels == 1 || in->channels == 3) && in->width >= 1 && in->height >= 1 &&
        in->width <= most && in->height <= most)
        return MR_OK;
    return mr_error_set(
        err, MR_EINVAL,
        "cannot write %u x %u pixels of %u channels as %s: expected 1 or 3 channels, sides of 1 to %u",
        in->width, in->height, in->channels, format, most);
}

/* ---- JPEG ---- */

struct encoder {
    struct jpeg_compress_struct c;
    mri_libjpeg_errors errors;
    mri_libjpeg_sink sink;
};

static void compress(struct encoder *e, const mr_image *in, int quality)
{
    struct jpeg_compress_struct *c = &e->c;
    jpeg_create_compress(c);
    c->dest = &e->sink.manager;
    c->image_width = in->width;
    c->image_height = in->height;
    c->input_components = (int)in->channels;
    c->in_color_space = in->channels == 3 ? JCS_RGB : JCS_GRAYSCALE;
    jpeg_set_defaults(c);
    jpeg_set_quality(c, quality, TRUE);
    c->dct_method = JDCT_ISLOW;
    if (in->channels == 3)
        c->comp_info[0].h_samp_factor = c->comp_info[0].v_samp_factor = quality <= 90 ? 2 : 1;
    jpeg_start_compress(c, TRUE);
    while (c->next_scanline < c->image_height) {
        JSAMPROW row = in->pixels + (size_t)c->next_scanline * in->width * in->channels;
        jpeg_write_scanlines(c, &row, 1);
    }
    jpeg_finish_compress(c);
}

int mr_image_encode_jpeg(const mr_image *in, int quality, void **data, size_t *bytes, mr_error *err)
{
    MRI_GIVEN(err, data);
    *data = NULL;
    MRI_GIVEN(err, bytes);
    *bytes = 0;
    MRI_GIVEN(err, in);
    int rc = check_image(in, JPEG_MAX_DIMENSION, "JPEG", err);
    if (rc) return rc;
    if (quality < 1 || quality > 100)
        return mr_error_set(err, MR_EINVAL, "JPEG quality is %d; expected 1 to 100", quality);
    struct encoder *e = calloc(1, sizeof *e);
    if (!e) return mr_error_set(err, MR_ENOMEM, "JPEG: no memory for an encoder");
    mri_libjpeg_errors_init(&e->errors);
    e->c.err = &e->errors.manager;
    e->c.client_data = e;
    rc = mri_libjpeg_sink_open(&e->sink, 64 << 10, err);
    if (rc) {
        free(e);
        return rc;
    }
    if (setjmp(e->errors.jump)) {
        rc = mr_error_set(err, e->errors.code == JERR_OUT_OF_MEMORY ? MR_ENOMEM : MR_EINVAL, "JPEG: %s",
                          e->errors.text);
    } else {
        compress(e, in, quality);
        *data = e->sink.data;
        *bytes = e->sink.bytes - e->sink.manager.free_in_buffer;
        e->sink.data = NULL;
    }
    jpeg_destroy_compress(&e->c);
    free(e->sink.data);
    free(e);
    return rc;
}

/* ---- PNG ---- */

static int png_write(spng_ctx *ctx, const mr_image *in, void **data, size_t *bytes)
{
    struct spng_ihdr ihdr = {.width = in->width,
                             .height = in->height,
                             .bit_depth = 8,
                             .color_type =
                                 in->channels == 3 ? SPNG_COLOR_TYPE_TRUECOLOR : SPNG_COLOR_TYPE_GRAYSCALE};
    size_t pixel_bytes;
    if (!mri_picture_bytes(in->width, in->height, in->channels, &pixel_bytes)) return SPNG_EOVERFLOW;
    int code = spng_set_option(ctx, SPNG_ENCODE_TO_BUFFER, 1);
    if (!code) code = spng_set_ihdr(ctx, &ihdr);
    if (!code) code = spng_encode_image(ctx, in->pixels, pixel_bytes, SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE);
    if (!code) *data = spng_get_png_buffer(ctx, bytes, &code);
    return code;
}

int mr_image_encode_png(const mr_image *in, void **data, size_t *bytes, mr_error *err)
{
    MRI_GIVEN(err, data);
    *data = NULL;
    MRI_GIVEN(err, bytes);
    *bytes = 0;
    MRI_GIVEN(err, in);
    const int rc = check_image(in, INT32_MAX, "PNG", err);
    if (rc) return rc;
    spng_ctx *ctx = spng_ctx_new(SPNG_CTX_ENCODER);
    if (!ctx) return mr_error_set(err, MR_ENOMEM, "PNG: no memory for an encoder");
    const int code = png_write(ctx, in, data, bytes);
    spng_ctx_free(ctx);
    if (code == 0) return MR_OK;
    return mr_error_set(err, code == SPNG_EMEM ? MR_ENOMEM : MR_EINVAL, "PNG: %s", spng_strerror(code));
}
