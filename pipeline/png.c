/* pipeline/png.c: PNG to pixels and back with libspng.
 *
 * Rules: 16-bit samples keep their high byte, palettes and low bit depths are spelled out, alpha and transparent colours
 * are dropped and the colour below them kept, gamma and colour profiles are not applied. Every checksum counts: a chunk
 * whose CRC is wrong, data that ends early or a missing IEND make the picture bad. */
#include <spng.h>

#include "pipeline/decoders.h"

/* Chunks other than pixels: far more than any real profile or comment, far less than would hurt. */
#define CHUNK_MAX_BYTES ((size_t)8 << 20)
#define CHUNK_CACHE_BYTES ((size_t)32 << 20)

static int png_fail(mr_error *err, int code, const char *doing)
{
    return mr_error_set(err, code == SPNG_EMEM ? MR_ENOMEM : MR_EFORMAT, "PNG: %s: %s", doing, spng_strerror(code));
}

static int png_run(spng_ctx *ctx, const void *data, size_t bytes, const mr_image_header *header, uint32_t channels,
                   mri_buffer *buffer, mr_error *err)
{
    /* libspng gives gray only for gray of up to 8 bits; all else comes as RGB and is made gray here. */
    const bool gray = channels == 1 && header->channels == 1 && header->bit_depth <= 8;
    const int format = gray ? SPNG_FMT_G8 : SPNG_FMT_RGB8;
    size_t pixel_bytes, told;
    int code = spng_set_image_limits(ctx, header->width, header->height);
    if (!code) code = spng_set_chunk_limits(ctx, CHUNK_MAX_BYTES, CHUNK_CACHE_BYTES);
    if (!code) code = spng_set_crc_action(ctx, SPNG_CRC_ERROR, SPNG_CRC_ERROR);
    if (!code) code = spng_set_png_buffer(ctx, data, bytes);
    if (!code) code = spng_decoded_image_size(ctx, format, &told);
    if (code) return png_fail(err, code, "reading the header");
    if (!mri_picture_bytes(header->width, header->height, gray ? 1 : 3, &pixel_bytes) || pixel_bytes != told)
        return mr_error_set(err, MR_EFORMAT, "PNG: size changes within the file");
    if (mri_buffer_need(buffer, pixel_bytes))
        return mr_error_set(err, MR_ENOMEM, "PNG: no memory for %zu bytes of pixels", pixel_bytes);
    code = spng_decode_image(ctx, buffer->data, pixel_bytes, format, 0);
    if (code) return png_fail(err, code, "decoding");
    code = spng_decode_chunks(ctx); /* up to IEND */
    if (code) return png_fail(err, code, "reading what follows the pixels");
    if (channels == 1 && !gray) { /* in place: a result never lies behind its source */
        uint8_t *p = buffer->data;
        for (size_t k = 0; k < pixel_bytes / 3; k++) p[k] = mri_gray(p[3 * k], p[3 * k + 1], p[3 * k + 2]);
    }
    return MR_OK;
}

int mri_png_decode(const void *data, size_t bytes, const mr_image_header *header, uint32_t channels, mri_buffer *buffer,
                   mri_view *out, mr_error *err)
{
    spng_ctx *ctx = spng_ctx_new(0);
    if (!ctx) return mr_error_set(err, MR_ENOMEM, "PNG: no memory for a decoder");
    const int rc = png_run(ctx, data, bytes, header, channels, buffer, err);
    spng_ctx_free(ctx);
    if (rc) return rc;
    *out = (mri_view){.pixels = buffer->data, .width = header->width, .height = header->height, .channels = channels,
                      .stride = (size_t)header->width * channels};
    return MR_OK;
}
