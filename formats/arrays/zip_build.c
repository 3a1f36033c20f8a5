/* formats/arrays/zip_build.c: the records of an archive of stored members. Section numbers refer to the
 * APPNOTE. A value stands in a zip64 field (4.5.3) only if it does not fit 32 bits, so every writer produces
 * the same bytes. */
#include "base/util.h"
#include "formats/arrays/zip.h"

enum {
    LOCAL_BYTES = 30,
    CENTRAL_BYTES = 46,
    EXTRA_ZIP64 = 1,
    VERSION = 20,
    VERSION_WIDE = 45,
    EPOCH_DAY = 1 << 5 | 1, /* 1980-01-01: no time of writing, so that the same weights are the same file */
};

static uint32_t narrow(uint64_t v) { return v < UINT32_MAX ? (uint32_t)v : UINT32_MAX; }

/* Write the zip64 field with the values that are too wide; returns its size. */
static size_t put_wide(const uint64_t *values, uint32_t count, uint8_t *out)
{
    size_t at = 4;
    for (uint32_t i = 0; i < count; i++)
        if (values[i] >= UINT32_MAX) mri_put_le64(out + at, values[i]), at += 8;
    if (at == 4) return 0;
    mri_put_le16(out, EXTRA_ZIP64);
    mri_put_le16(out + 2, (uint16_t)(at - 4));
    return at;
}

/* What both kinds of header have from "version needed" on, without the name. */
static void put_common(const mri_zip_member *m, bool wide, size_t name, size_t extra, uint8_t *out)
{
    memset(out, 0, 26);
    mri_put_le16(out, wide ? VERSION_WIDE : VERSION);
    mri_put_le16(out + 8, EPOCH_DAY);
    mri_put_le32(out + 10, m->crc);
    mri_put_le32(out + 14, narrow(m->packed));
    mri_put_le32(out + 18, narrow(m->bytes));
    mri_put_le16(out + 22, (uint16_t)name);
    mri_put_le16(out + 24, (uint16_t)extra);
}

size_t mri_zip_local_write(const mri_zip_member *m, uint8_t *out)
{
    const size_t name = strlen(m->name);
    const uint64_t sizes[] = {m->bytes, m->packed};
    memcpy(out + LOCAL_BYTES, m->name, name);
    const size_t extra = put_wide(sizes, 2, out + LOCAL_BYTES + name);
    mri_put_le32(out, 0x04034b50u);
    put_common(m, extra > 0, name, extra, out + 4);
    return LOCAL_BYTES + name + extra;
}

size_t mri_zip_central_write(const mri_zip_member *m, uint8_t *out)
{
    const size_t name = strlen(m->name);
    const uint64_t values[] = {m->bytes, m->packed, m->header};
    memcpy(out + CENTRAL_BYTES, m->name, name);
    const size_t extra = put_wide(values, 3, out + CENTRAL_BYTES + name);
    mri_put_le32(out, 0x02014b50u);
    mri_put_le16(out + 4, extra ? VERSION_WIDE : VERSION);
    put_common(m, extra > 0, name, extra, out + 6);
    memset(out + 32, 0, CENTRAL_BYTES - 32);
    mri_put_le32(out + 42, narrow(m->header));
    return CENTRAL_BYTES + name + extra;
}

size_t mri_zip_end_write(uint64_t count, uint64_t begin, uint64_t end, uint8_t out[MRI_ZIP_OWN_END])
{
    const uint64_t bytes = end - begin;
    const bool wide = count >= UINT16_MAX || begin >= UINT32_MAX || bytes >= UINT32_MAX;
    size_t at = 0;
    memset(out, 0, MRI_ZIP_OWN_END);
    if (wide) {
        mri_put_le32(out, 0x06064b50u);
        mri_put_le64(out + 4, 44);
        mri_put_le16(out + 12, VERSION_WIDE);
        mri_put_le16(out + 14, VERSION_WIDE);
        mri_put_le64(out + 24, count);
        mri_put_le64(out + 32, count);
        mri_put_le64(out + 40, bytes);
        mri_put_le64(out + 48, begin);
        mri_put_le32(out + 56, 0x07064b50u);
        mri_put_le64(out + 64, end);
        mri_put_le32(out + 72, 1);
        at = 76;
    }
    mri_put_le32(out + at, 0x06054b50u);
    mri_put_le16(out + at + 8, count < UINT16_MAX ? (uint16_t)count : UINT16_MAX);
    mri_put_le16(out + at + 10, count < UINT16_MAX ? (uint16_t)count : UINT16_MAX);
    mri_put_le32(out + at + 12, narrow(bytes));
    mri_put_le32(out + at + 16, narrow(begin));
    return at + 22;
}
