/* pipeline/decode/png_chunks.c: see png_chunks.h.
 *
 *   signature | length TYPE body crc | length TYPE body crc | ... | IEND
 *               IHDR first, PLTE, then all IDAT, consecutive; other chunks of a small first letter
 *               anywhere
 *
 * All checksums are compared, also the checksums of comments: damage in a comment is damage. But comments,
 * profiles and other chunks without pixels are not passed on, so their size, packed or unpacked, does not
 * matter. */
#include "pipeline/decode/png_chunks.h"

#include <isa-l/crc.h>

enum { SIGNATURE = 8, AROUND = 12, CRC_RUN = 1 << 30 }; /* AROUND a body: length, type, checksum */

typedef struct png_chunk {
    size_t at; /* of its length */
    uint32_t bytes;
    const uint8_t *type, *body;
} png_chunk;

typedef struct walk {
    bool framed, palette, data, data_over;
} walk;

static bool is(const png_chunk *k, const char *type) { return memcmp(k->type, type, 4) == 0; }
static bool is_critical(const uint8_t *type) { return !(type[0] & 0x20); }

static uint32_t crc_of(const uint8_t *p, size_t bytes)
{
    uint32_t crc = 0;
    for (; bytes > CRC_RUN; p += CRC_RUN, bytes -= CRC_RUN) crc = crc32_gzip_refl(crc, p, CRC_RUN);
    return crc32_gzip_refl(crc, p, bytes);
}

static int next_chunk(const mri_png_chunks *c, size_t bytes, size_t at, png_chunk *k, mr_error *err)
{
    if (bytes - at < AROUND)
        return mr_error_set(err, MR_EFORMAT, "PNG: ends at byte %zu before its last chunk (IEND): truncated",
                            bytes);
    *k = (png_chunk){
        .at = at, .bytes = mri_be32(c->data + at), .type = c->data + at + 4, .body = c->data + at + 8};
    for (int n = 0; n < 4; n++)
        if ((k->type[n] | 0x20) < 'a' || (k->type[n] | 0x20) > 'z')
            return mr_error_set(
                err, MR_EFORMAT,
                "PNG: expected a chunk at byte %zu, found one of type %02x %02x %02x %02x: damaged", at,
                k->type[0], k->type[1], k->type[2], k->type[3]);
    if (k->bytes > bytes - at - AROUND)
        return mr_error_set(err, MR_EFORMAT,
                            "PNG: chunk %.4s at byte %zu has %u bytes; expected %zu at most, the file ends "
                            "there: truncated or damaged",
                            (const char *)k->type, at, k->bytes, bytes - at - AROUND);
    const uint32_t stated = mri_be32(k->body + k->bytes), found = crc_of(k->type, 4 + (size_t)k->bytes);
    if (stated == found) return MR_OK;
    return mr_error_set(err, MR_EFORMAT,
                        "PNG: chunk %.4s at byte %zu states CRC %08x, its bytes have %08x: damaged",
                        (const char *)k->type, at, stated, found);
}

static int misplaced(const png_chunk *k, const char *expected, mr_error *err)
{
    return mr_error_set(err, MR_EFORMAT, "PNG: chunk %.4s at byte %zu; expected %s", (const char *)k->type,
                        k->at, expected);
}

static int take_palette(mri_png_chunks *c, walk *w, const png_chunk *k, const mr_image_header *header,
                        bool indexed, mr_error *err)
{
    const uint32_t most = indexed ? 1u << header->bit_depth : 256;
    if (w->palette) return misplaced(k, "one palette", err);
    if (w->data) return misplaced(k, "the palette before the image data (IDAT)", err);
    if (k->bytes % 3 != 0 || k->bytes == 0 || k->bytes / 3 > most)
        return mr_error_set(err, MR_EFORMAT,
                            "PNG: palette at byte %zu of %u bytes; expected 3 for each of 1 to %u colours",
                            k->at, k->bytes, most);
    w->palette = true;
    if (!indexed) return MR_OK; /* a suggestion for poor screens */
    c->palette = k->body;
    c->palette_count = k->bytes / 3;
    return MR_OK;
}

static int take_data(walk *w, const png_chunk *k, bool indexed, mr_error *err)
{
    if (w->data_over) return misplaced(k, "all image data together", err);
    if (indexed && !w->palette) return misplaced(k, "a palette (PLTE) before the image data", err);
    w->data = true;
    return MR_OK;
}

static int take(mri_png_chunks *c, walk *w, const png_chunk *k, const mr_image_header *header, bool indexed,
                mr_error *err)
{
    const bool first = !w->framed, data = is(k, "IDAT");
    w->framed = true;
    if (w->data && !data) w->data_over = true;
    if (first || is(k, "IHDR"))
        return first && is(k, "IHDR") ? MR_OK : misplaced(k, "one header (IHDR), the first", err);
    if (is(k, "PLTE")) return take_palette(c, w, k, header, indexed, err);
    if (data) {
        if (!w->data) c->data_at = k->at;
        return take_data(w, k, indexed, err);
    }
    if (is(k, "IEND")) return w->data ? MR_OK : misplaced(k, "image data (IDAT) before it", err);
    if (!is_critical(k->type)) return MR_OK;
    return mr_error_set(err, MR_EUNSUPPORTED,
                        "PNG: chunk %.4s at byte %zu must be understood to show the picture, and is not "
                        "known here: write it anew",
                        (const char *)k->type, k->at);
}

int mri_png_chunks_open(mri_png_chunks *c, const void *data, size_t bytes, const mr_image_header *header,
                        mr_error *err)
{
    *c = (mri_png_chunks){.data = data, .chunk_end = SIGNATURE};
    const bool indexed = c->data[25] == 3; /* in IHDR, which has been parsed */
    png_chunk k = {0};
    walk w = {0};
    for (size_t at = SIGNATURE; !k.type || !is(&k, "IEND"); at += AROUND + (size_t)k.bytes) {
        int rc = next_chunk(c, bytes, at, &k, err);
        if (rc == MR_OK) rc = take(c, &w, &k, header, indexed, err);
        if (rc) return rc;
        c->bytes = at + AROUND + (size_t)k.bytes;
    }
    return MR_OK;
}

bool mri_png_take(mri_png_chunks *c, void *dst, size_t bytes)
{
    for (uint8_t *to = dst; bytes > 0;) {
        while (c->at == c->chunk_end) {
            if (c->at == c->bytes) return false;
            c->chunk_end += AROUND + (size_t)mri_be32(c->data + c->at);
            if (!is_critical(c->data + c->at + 4)) c->at = c->chunk_end;
        }
        const size_t n = mri_min_u64(bytes, c->chunk_end - c->at);
        memcpy(to, c->data + c->at, n);
        c->at += n;
        to += n;
        bytes -= n;
    }
    return true;
}

void mri_png_rewind_data(mri_png_chunks *c)
{
    c->body = c->data_at;
    c->body_bytes = 0;
}

size_t mri_png_take_data(mri_png_chunks *c, void *dst, size_t bytes)
{
    size_t done = 0;
    while (done < bytes) {
        if (c->body_bytes == 0) { /* a chunk's length is next; IEND follows the last one */
            const uint8_t *chunk = c->data + c->body + (c->body > c->data_at ? 4 : 0);
            if (memcmp(chunk + 4, "IDAT", 4) != 0) break;
            c->body = (size_t)(chunk + 8 - c->data);
            c->body_bytes = mri_be32(chunk);
            continue;
        }
        const size_t n = mri_min_u64(bytes - done, c->body_bytes);
        memcpy((uint8_t *)dst + done, c->data + c->body, n);
        c->body += n;
        c->body_bytes -= n;
        done += n;
    }
    return done;
}
