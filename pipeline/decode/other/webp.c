/* pipeline/decode/other/webp.c: the first frame of a WebP to pixels, with libwebp.
 *
 * The library gets the file piece by piece, and no more once the last wanted row is decoded: rows come in
 * order, and each has the same pixels for any amount of input. Pixels that a frame leaves free are
 * black. */
#include "pipeline/decode/other/libraries.h"
#include "pipeline/decode/other/other.h"

enum { PIECES = 16, LEAST_PIECE = 4096 };

static int failed(int status, mr_error *err)
{
    if (status == MRI_WEBP_NO_MEMORY)
        return mr_error_set(err, MR_ENOMEM, "WebP: libwebp has no memory for the picture");
    if (status == MRI_WEBP_SUSPENDED || status == MRI_WEBP_SHORT)
        return mr_error_set(err, MR_EFORMAT, "WebP: the data end before the last row: truncated");
    return mr_error_set(err, MR_EFORMAT, "WebP: libwebp cannot decode the data (status %d): damaged", status);
}

/* Rows of the frame that are decoded. */
static uint32_t rows_of(const mri_webp_calls *calls, const struct WebPIDecoder *d)
{
    int rows = 0;
    return calls->WebPIDecGetRGB(d, &rows, NULL, NULL, NULL) && rows > 0 ? (uint32_t)rows : 0;
}

static int feed(const mri_webp_calls *calls, struct WebPIDecoder *d, const mri_webp_layout *w,
                const uint8_t *data, uint32_t wanted, mr_error *err)
{
    const size_t bytes = w->data_bytes;
    const size_t piece = wanted < w->frame_h ? (size_t)mri_max_u64(bytes / PIECES, LEAST_PIECE) : bytes;
    for (size_t have = 0; have < bytes;) {
        have += mri_min_u64(bytes - have, piece);
        const int status = calls->WebPIUpdate(d, data + w->data, have);
        if (status == MRI_WEBP_OK) return MR_OK;
        if (status != MRI_WEBP_SUSPENDED && status != MRI_WEBP_SHORT) return failed(status, err);
        if (wanted < w->frame_h && rows_of(calls, d) >= wanted) return MR_OK;
    }
    return failed(MRI_WEBP_SUSPENDED, err);
}

int mri_webp_decode(const mri_webp_layout *w, const uint8_t *data, size_t bytes, mri_rect part,
                    uint8_t *pixels, mr_error *err)
{
    const mri_webp_calls *calls = mri_webp_need(err);
    const size_t stride = 3 * (size_t)w->width;
    const uint64_t end = part.y + (uint64_t)part.height;
    if (!calls) return MR_EUNSUPPORTED;
    if (w->data > bytes || w->data_bytes > bytes - w->data || end > w->height || stride > INT32_MAX)
        return mr_error_set(err, MR_EFORMAT, "WebP: size changes within the file");
    if (w->frame_w < w->width || w->frame_h < w->height) memset(pixels, 0, stride * w->height);
    if (end <= w->y) return MR_OK;
    const size_t from = stride * w->y + 3 * (size_t)w->x;
    struct WebPIDecoder *d =
        calls->WebPINewRGB(MRI_WEBP_RGB, pixels + from, stride * w->height - from, (int)stride);
    if (!d) return failed(MRI_WEBP_NO_MEMORY, err);
    const int rc = feed(calls, d, w, data, (uint32_t)mri_min_u64(end - w->y, w->frame_h), err);
    calls->WebPIDelete(d);
    return rc;
}
