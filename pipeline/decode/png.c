/* pipeline/decode/png.c: PNG to pixels, by rows of our own (png_rows.h) or with libspng.
 *
 *   file ──► chunks checked (png_chunks.c) ─┬─► our rows up to the last wanted one ──────────────────► pixels
 *                                           └─► those with pixels ──────► libspng ─┬─► rows ───────┬─► pixels
 *                                                                                  └─► indices of ─┘
 *                                                                                      a palette
 *
 * Rules: 16-bit samples keep their high byte, palettes and low bit depths are spelled out, alpha and
 * transparent colours are dropped and the colour below them kept, gamma and colour profiles are not applied;
 * of an animation the picture is the one that programs show which know of none. A chunk whose CRC is wrong,
 * data that end early, a colour the palette has not or a missing IEND make the picture bad; compressed data
 * after the last row are not looked at. Masks are numbers, not colours: they are taken as they are stored,
 * gray unscaled, indices whether the palette has them or not. */
#include <spng.h>

#include "pipeline/decode/decoders.h"
#include "pipeline/decode/png_chunks.h"
#include "pipeline/decode/png_rows.h"

static int png_fail(mr_error *err, int code)
{
    return mr_error_set(err, code == SPNG_EMEM ? MR_ENOMEM : MR_EFORMAT,
                        "PNG: decoding the image data (IDAT): %s", spng_strerror(code));
}

static int give(spng_ctx *ctx, void *chunks, void *dst, size_t bytes)
{
    (void)ctx;
    return mri_png_take(chunks, dst, bytes) ? 0 : SPNG_IO_EOF;
}

/* Indices, packed in rows at the end of the pixels' memory, become colours from its beginning on. An index is
 * at least a byte further back than the three it becomes, until the last one, which is read before. */
static int spell_out(const mri_png_chunks *c, const mr_image_header *h, uint8_t *pixels, size_t pixel_bytes,
                     size_t index_bytes, mr_error *err)
{
    const size_t row_bytes = index_bytes / h->height;
    const uint8_t *row = pixels + pixel_bytes - index_bytes;
    const uint32_t depth = h->bit_depth, mask = (1u << depth) - 1;
    uint8_t *to = pixels;
    for (uint32_t y = 0; y < h->height; y++, row += row_bytes)
        for (uint32_t x = 0; x < h->width; x++, to += 3) {
            const size_t bit = (size_t)x * depth;
            const uint32_t index = row[bit / 8] >> (8 - depth - bit % 8) & mask;
            if (index >= c->palette_count)
                return mr_error_set(
                    err, MR_EFORMAT,
                    "PNG: pixel %u, %u has colour %u of its palette, which has only %u: damaged", x, y, index,
                    c->palette_count);
            memcpy(to, c->palette + 3 * (size_t)index, 3);
        }
    return MR_OK;
}

/* Prepare for the pixels: *decoded_bytes of them in this format. */
static int png_begin(spng_ctx *ctx, mri_png_chunks *chunks, const mr_image_header *header, int format,
                     size_t *decoded_bytes)
{
    int code = spng_set_image_limits(ctx, header->width, header->height);
    if (!code)
        code = spng_set_crc_action(ctx, SPNG_CRC_ERROR, SPNG_CRC_ERROR); /* without it zlib's own checksum
                                                                            would not count either */
    if (!code) code = spng_set_png_stream(ctx, give, chunks);
    return code ? code : spng_decoded_image_size(ctx, format, decoded_bytes);
}

static int size_changes(mr_error *err)
{
    return mr_error_set(err, MR_EFORMAT, "PNG: size changes within the file");
}

static int png_room(mri_buffer *buffer, size_t bytes, mr_error *err)
{
    if (mri_buffer_need(buffer, bytes) == MR_OK) return MR_OK;
    return mr_error_set(err, MR_ENOMEM, "PNG: no memory for %zu bytes of pixels", bytes);
}

static int png_run(spng_ctx *ctx, mri_png_chunks *chunks, const mr_image_header *header, uint32_t channels,
                   mri_buffer *buffer, mr_error *err)
{
    /* libspng gives gray only for gray of up to 8 bits; all else comes as RGB and is made gray here. */
    const bool gray = channels == 1 && header->channels == 1 && header->bit_depth <= 8;
    const int format = chunks->palette ? SPNG_FMT_PNG : gray ? SPNG_FMT_G8 : SPNG_FMT_RGB8;
    size_t pixel_bytes, decoded_bytes;
    int code = png_begin(ctx, chunks, header, format, &decoded_bytes);
    if (code) return png_fail(err, code);
    if (!mri_picture_bytes(header->width, header->height, gray ? 1 : 3, &pixel_bytes) ||
        decoded_bytes > pixel_bytes || (decoded_bytes != pixel_bytes && !chunks->palette))
        return size_changes(err);
    int rc = png_room(buffer, pixel_bytes, err);
    if (rc) return rc;
    uint8_t *p = buffer->data;
    if (chunks->palette)
        memset(p + pixel_bytes - decoded_bytes, 0, decoded_bytes); /* interlaced bits are put in by OR */
    code = spng_decode_image(ctx, p + pixel_bytes - decoded_bytes, decoded_bytes, format, 0);
    if (code) return png_fail(err, code);
    rc = chunks->palette ? spell_out(chunks, header, p, pixel_bytes, decoded_bytes, err) : MR_OK;
    if (rc == MR_OK && channels == 1 && !gray) /* in place: a result never lies behind its source */
        for (size_t k = 0; k < pixel_bytes / 3; k++) p[k] = mri_gray(p[3 * k], p[3 * k + 1], p[3 * k + 2]);
    return rc;
}

static int decode_rows(mri_png_rows **rows, mri_png_chunks *chunks, const mr_image_header *header,
                       uint32_t channels, mri_rect part, mri_buffer *buffer, mr_error *err)
{
    size_t bytes;
    if (!*rows && mri_png_rows_create(rows))
        return mr_error_set(err, MR_ENOMEM, "PNG: no memory for a decoder");
    if (!mri_picture_bytes(part.width, part.height, channels, &bytes)) return size_changes(err);
    const int rc = png_room(buffer, bytes, err);
    return rc ? rc : mri_png_rows_decode(*rows, chunks, header, channels, part, buffer->data);
}

int mri_png_decode(mri_png_rows **rows, const void *data, size_t bytes, const mr_image_header *header,
                   uint32_t channels, mri_rect part, mri_buffer *buffer, mri_view *out, mr_error *err)
{
    mri_png_chunks chunks;
    int rc = mri_png_chunks_open(&chunks, data, bytes, header, err);
    if (rc) return rc;
    rc = decode_rows(rows, &chunks, header, channels, part, buffer, err);
    if (rc == MR_OK) *out = mri_view_packed(buffer->data, part.width, part.height, channels);
    if (rc != MR_EUNSUPPORTED) return rc;
    spng_ctx *ctx = spng_ctx_new(0);
    if (!ctx) return mr_error_set(err, MR_ENOMEM, "PNG: no memory for a decoder");
    rc = png_run(ctx, &chunks, header, channels, buffer, err);
    spng_ctx_free(ctx);
    if (rc) return rc;
    const mri_view whole = mri_view_packed(buffer->data, header->width, header->height, channels);
    *out = mri_view_part(&whole, part);
    return MR_OK;
}

/* ---- samples as they are ---- */

static const char *colour_name(const struct spng_ihdr *h)
{
    switch (h->color_type) {
    case SPNG_COLOR_TYPE_GRAYSCALE: return h->bit_depth == 16 ? "gray of 16 bits" : NULL;
    case SPNG_COLOR_TYPE_INDEXED: return NULL;
    case SPNG_COLOR_TYPE_GRAYSCALE_ALPHA: return "gray with alpha";
    case SPNG_COLOR_TYPE_TRUECOLOR: return "true colour";
    default: return "true colour with alpha";
    }
}

/* In place from the end: a number never lies after the byte it was packed in. */
static void unpack(uint8_t *p, uint32_t width, uint32_t height, uint32_t depth)
{
    const size_t row_bytes = ((size_t)width * depth + 7) / 8;
    const uint32_t in_byte = 8 / depth;
    for (uint32_t y = height; y-- > 0;) {
        for (uint32_t x = width; x-- > 0;) {
            const uint8_t packed = p[y * row_bytes + x / in_byte];
            p[(size_t)y * width + x] =
                (uint8_t)(packed >> (8 - depth * (x % in_byte + 1)) & ((1u << depth) - 1));
        }
    }
}

static int samples_run(spng_ctx *ctx, mri_png_chunks *chunks, const mr_image_header *header,
                       mri_buffer *buffer, mr_error *err)
{
    struct spng_ihdr h;
    size_t stored_bytes, sample_bytes;
    int code = png_begin(ctx, chunks, header, SPNG_FMT_PNG, &stored_bytes);
    if (!code) code = spng_get_ihdr(ctx, &h);
    if (code) return png_fail(err, code);
    if (colour_name(&h))
        return mr_error_set(
            err, MR_EUNSUPPORTED,
            "PNG: expected one number of at most 8 bits for each pixel, gray or of a palette; found %s",
            colour_name(&h));
    if (h.width != header->width || h.height != header->height ||
        !mri_picture_bytes(h.width, h.height, 1, &sample_bytes) ||
        stored_bytes != ((size_t)h.width * h.bit_depth + 7) / 8 * h.height)
        return size_changes(err);
    const int rc = png_room(buffer, sample_bytes, err);
    if (rc) return rc;
    if (h.bit_depth < 8) memset(buffer->data, 0, stored_bytes); /* interlaced bits are put in by OR */
    code = spng_decode_image(ctx, buffer->data, stored_bytes, SPNG_FMT_PNG, 0);
    if (code) return png_fail(err, code);
    if (h.bit_depth < 8) unpack(buffer->data, h.width, h.height, h.bit_depth);
    return MR_OK;
}

int mri_png_samples(const void *data, size_t bytes, const mr_image_header *header, mri_buffer *buffer,
                    mr_error *err)
{
    mri_png_chunks chunks;
    int rc = mri_png_chunks_open(&chunks, data, bytes, header, err);
    if (rc) return rc;
    spng_ctx *ctx = spng_ctx_new(0);
    if (!ctx) return mr_error_set(err, MR_ENOMEM, "PNG: no memory for a decoder");
    rc = samples_run(ctx, &chunks, header, buffer, err);
    spng_ctx_free(ctx);
    return rc;
}
