/* formats/image/bmp_layout.c: see bmp_layout.h. */
#include "formats/image/bmp_layout.h"

enum { FILE_HEADER = 14, CORE = 12, INFO = 40, MASKS = 12, LEAST = 18 };
enum { RGB = 0, RLE8 = 1, RLE4 = 2, BITFIELDS = 3, IN_JPEG = 4, IN_PNG = 5, ALPHA_BITFIELDS = 6 };

static bool is_header(uint32_t bytes)
{
    static const uint8_t known[] = {CORE, INFO, 52, 56, 64, 108, 124};
    for (size_t k = 0; k < MRI_ARRAY_COUNT(known); k++)
        if (bytes == known[k]) return true;
    return false;
}

/* Two letters are not enough: the size of the header is one of a few, and the pixels follow it. */
bool mri_bmp_is(const uint8_t *p, size_t bytes)
{
    if (bytes < LEAST || memcmp(p, "BM", 2) != 0) return false;
    const uint32_t header = mri_le32(p + FILE_HEADER), data = mri_le32(p + 10);
    return is_header(header) && data >= FILE_HEADER + header && data < 1u << 24;
}

static int truncated(size_t bytes, mr_error *err)
{
    return mr_error_set(err, MR_EFORMAT, "BMP: ends at byte %zu inside its header: truncated", bytes);
}

static bool one_run(uint32_t mask)
{
    const uint32_t low = mask & (0u - mask);
    return mask && ((mask + low) & mask) == 0;
}

static int take_masks(mri_bmp_layout *b, const uint8_t *p, mr_error *err)
{
    for (int k = 0; k < 3; k++) b->mask[k] = mri_le32(p + 4 * (size_t)k);
    const uint32_t *m = b->mask;
    const bool apart = !(m[0] & m[1]) && !(m[0] & m[2]) && !(m[1] & m[2]);
    const bool fits = b->bits == 32 || ((m[0] | m[1] | m[2]) >> b->bits) == 0;
    if (apart && fits && one_run(m[0]) && one_run(m[1]) && one_run(m[2])) return MR_OK;
    return mr_error_set(err, MR_EUNSUPPORTED,
                        "BMP: masks %08x, %08x, %08x of %u bits; expected a run of bits for each of red, "
                        "green and blue",
                        m[0], m[1], m[2], b->bits);
}

static int check_coding(mri_bmp_layout *b, uint32_t header, uint32_t coding, mr_error *err)
{
    const uint32_t bits = b->bits;
    const bool index = bits == 1 || bits == 4 || bits == 8;
    const bool masks = (coding == BITFIELDS && header != 64) || coding == ALPHA_BITFIELDS;
    if (!index && bits != 16 && bits != 24 && bits != 32)
        return mr_error_set(err, MR_EUNSUPPORTED, "BMP: %u bits per pixel; expected 1, 4, 8, 16, 24 or 32",
                            bits);
    b->coding = coding == RLE8 ? MRI_BMP_RLE8 : coding == RLE4 ? MRI_BMP_RLE4 : MRI_BMP_PLAIN;
    if (coding == RGB || (coding == RLE8 && bits == 8) || (coding == RLE4 && bits == 4) ||
        (masks && (bits == 16 || bits == 32)))
        return MR_OK;
    return mr_error_set(err, MR_EUNSUPPORTED,
                        "BMP: compression %u of %u bits per pixel; expected none, RLE4, RLE8 or masks: "
                        "convert it to PNG",
                        coding, bits);
}

static int take_size(mri_bmp_layout *b, int64_t width, int64_t height, mr_error *err)
{
    b->top_down = height < 0;
    if (height < 0) height = -height;
    if (width <= 0 || height == 0 || width > INT32_MAX || height > INT32_MAX)
        return mr_error_set(err, MR_EFORMAT, "BMP: a picture of %lld x %lld pixels: damaged",
                            (long long)width, (long long)height);
    b->width = (uint32_t)width;
    b->height = (uint32_t)height;
    return MR_OK;
}

/* Of an index; used: their number, 0: the most that the bits can express. */
static int take_colours(mri_bmp_layout *b, const uint8_t *p, size_t bytes, size_t at, uint32_t used,
                        mr_error *err)
{
    const uint32_t most = 1u << b->bits;
    b->colour_count = used == 0 || used > most ? most : used;
    if (at > bytes || bytes - at < (size_t)b->colour_count * b->colour_bytes) return truncated(bytes, err);
    b->colours = p + at;
    return MR_OK;
}

int mri_bmp_layout_parse(mri_bmp_layout *b, const uint8_t *p, size_t bytes, mr_error *err)
{
    *b = (mri_bmp_layout){0};
    if (bytes < LEAST) return truncated(bytes, err);
    const uint32_t header = mri_le32(p + FILE_HEADER);
    if (!is_header(header) || bytes - FILE_HEADER < header) return truncated(bytes, err);
    const uint8_t *h = p + FILE_HEADER;
    const bool core = header == CORE;
    const uint32_t coding = core ? RGB : mri_le32(h + 16), used = core ? 0 : mri_le32(h + 32);
    b->bits = mri_le16(h + (core ? 10 : 14));
    b->colour_bytes = core ? 3 : 4;
    b->data = mri_le32(p + 10);
    int rc = core ? take_size(b, mri_le16(h + 4), mri_le16(h + 6), err)
                  : take_size(b, (int32_t)mri_le32(h + 4), (int32_t)mri_le32(h + 8), err);
    if (rc == MR_OK) rc = check_coding(b, header, coding, err);
    if (rc) return rc;
    b->row_bytes = (size_t)(((uint64_t)b->width * b->bits + 31) / 32 * 4);
    if (b->bits == 16 || b->bits == 32) {
        static const uint8_t usual[2][MASKS] = {{0, 0x7c, 0, 0, 0xe0, 3, 0, 0, 0x1f, 0, 0, 0},
                                                {0, 0, 0xff, 0, 0, 0xff, 0, 0, 0xff, 0, 0, 0}};
        if (coding == RGB) return take_masks(b, usual[b->bits / 32], err);
        if (bytes - FILE_HEADER - INFO < MASKS) return truncated(bytes, err);
        return take_masks(b, h + INFO, err); /* in a longer header or after it, at the same place */
    }
    return b->bits <= 8 ? take_colours(b, p, bytes, FILE_HEADER + header, used, err) : MR_OK;
}
