/* formats/image/webp_layout.c: see webp_layout.h. */
#include "formats/image/webp_layout.h"

#include "formats/image/exif.h"

enum { RIFF_HEAD = 12, CHUNK_HEAD = 8, CANVAS = 10, FRAME_HEAD = 16, LOSSY_HEAD = 10, LOSSLESS_HEAD = 5 };
enum { ANIMATED = 0x02, EXIF = 0x08, ALPHA = 0x10 }; /* flags of VP8X */

static uint32_t le24(const uint8_t *p) { return mri_le16(p) | (uint32_t)p[2] << 16; }
static bool is(const uint8_t *p, const char *type) { return memcmp(p, type, 4) == 0; }

bool mri_webp_is(const uint8_t *p, size_t bytes)
{
    return bytes >= RIFF_HEAD + 4 && is(p, "RIFF") && is(p + 8, "WEBP") &&
           memcmp(p + RIFF_HEAD, "VP8", 3) == 0;
}

static int truncated(size_t bytes, mr_error *err)
{
    return mr_error_set(err, MR_EFORMAT, "WebP: ends at byte %zu before its first picture: truncated", bytes);
}

/* Size from the head of a frame: VP8 or VP8L at p, room bytes there. */
static int frame_size(const uint8_t *p, size_t room, size_t end, uint32_t *w, uint32_t *h, bool *alpha,
                      mr_error *err)
{
    const uint8_t *f = p + CHUNK_HEAD;
    const bool lossy = is(p, "VP8 ");
    if (room < CHUNK_HEAD + (lossy ? LOSSY_HEAD : LOSSLESS_HEAD)) return truncated(end, err);
    if (lossy ? (f[0] & 1) || memcmp(f + 3, "\x9d\x01\x2a", 3) != 0 : f[0] != 0x2f)
        return mr_error_set(err, MR_EFORMAT, "WebP: the frame does not begin as one of %s: damaged",
                            lossy ? "VP8" : "VP8L");
    const uint32_t bits = mri_le32(f + 1);
    *w = lossy ? mri_le16(f + 6) & 0x3fff : (bits & 0x3fff) + 1;
    *h = lossy ? mri_le16(f + 8) & 0x3fff : (bits >> 14 & 0x3fff) + 1;
    if (!lossy) *alpha |= bits >> 28 & 1;
    if (*w && *h) return MR_OK;
    return mr_error_set(err, MR_EFORMAT, "WebP: a picture of %u x %u pixels: damaged", *w, *h);
}

/* What one chunk says; *done: the frame is known, only EXIF may follow. */
static int take_chunk(mri_webp_layout *w, const uint8_t *p, size_t bytes, size_t at, uint32_t flags,
                      bool *done, mr_error *err)
{
    const uint8_t *k = p + at;
    const size_t room = bytes - at, own = mri_min_u64(mri_le32(k + 4), room - CHUNK_HEAD);
    if (is(k, "EXIF") && (flags & EXIF)) {
        const uint8_t *exif = k + CHUNK_HEAD;
        const bool named = own >= 6 && memcmp(exif, "Exif\0\0", 6) == 0;
        w->orientation = mri_exif_orientation(exif + (named ? 6 : 0), own - (named ? 6 : 0));
    }
    if (*done) return MR_OK;
    if (is(k, "ANMF") && (flags & ANIMATED)) {
        if (own < FRAME_HEAD) return truncated(bytes, err);
        w->x = 2 * le24(k + 8);
        w->y = 2 * le24(k + 11);
        w->frame_w = le24(k + 14) + 1;
        w->frame_h = le24(k + 17) + 1;
        w->data = at + CHUNK_HEAD + FRAME_HEAD;
        w->data_bytes = own - FRAME_HEAD;
        *done = true;
    } else if ((is(k, "VP8 ") || is(k, "VP8L")) && !(flags & ANIMATED)) {
        const int rc = frame_size(k, room, bytes, &w->frame_w, &w->frame_h, &w->alpha, err);
        if (rc) return rc;
        *done = true;
    }
    return MR_OK;
}

static int extended(mri_webp_layout *w, const uint8_t *p, size_t bytes, mr_error *err)
{
    if (bytes < RIFF_HEAD + CHUNK_HEAD + CANVAS) return truncated(bytes, err);
    const uint8_t *body = p + RIFF_HEAD + CHUNK_HEAD;
    const uint32_t flags = body[0], own = mri_le32(p + RIFF_HEAD + 4);
    bool done = false;
    w->width = le24(body + 4) + 1;
    w->height = le24(body + 7) + 1;
    w->alpha = flags & ALPHA;
    if (own < CANVAS) return truncated(bytes, err);
    for (uint64_t at = RIFF_HEAD + CHUNK_HEAD + (uint64_t)own + (own & 1); at + CHUNK_HEAD <= bytes;) {
        const int rc = take_chunk(w, p, bytes, (size_t)at, flags, &done, err);
        const uint32_t n = mri_le32(p + at + 4);
        if (rc) return rc;
        at += CHUNK_HEAD + (uint64_t)n + (n & 1);
    }
    if (!done) return truncated(bytes, err);
    const bool whole = flags & ANIMATED || (w->frame_w == w->width && w->frame_h == w->height);
    if (whole && w->x <= w->width && w->frame_w <= w->width - w->x && w->y <= w->height &&
        w->frame_h <= w->height - w->y)
        return MR_OK;
    return mr_error_set(err, MR_EFORMAT,
                        "WebP: a frame of %u x %u pixels at %u, %u in a picture of %u x %u: damaged",
                        w->frame_w, w->frame_h, w->x, w->y, w->width, w->height);
}

int mri_webp_layout_parse(mri_webp_layout *w, const uint8_t *p, size_t bytes, mr_error *err)
{
    *w = (mri_webp_layout){.orientation = 1, .data_bytes = bytes};
    if (bytes < RIFF_HEAD + CHUNK_HEAD) return truncated(bytes, err);
    if (is(p + RIFF_HEAD, "VP8X")) return extended(w, p, bytes, err);
    if (!is(p + RIFF_HEAD, "VP8 ") && !is(p + RIFF_HEAD, "VP8L"))
        return mr_error_set(err, MR_EFORMAT, "WebP: its first chunk is not VP8, VP8L or VP8X: damaged");
    const int rc = frame_size(p + RIFF_HEAD, bytes - RIFF_HEAD, bytes, &w->width, &w->height, &w->alpha, err);
    w->frame_w = w->width;
    w->frame_h = w->height;
    return rc;
}
