/* formats/image/coef_pack.c: write a coefficient payload. The layout is in coef_layout.h; the choices made
 * here:
 *
 *   tier     as few bytes as can be before nibbles begin: up to the last coefficient outside -8..7
 *   escapes  as few high bytes as can be: up to the last coefficient outside -128..127
 *   tables   equal quantisation tables are kept once
 *
 * So equal coefficients give equal bytes. */
#include "base/simd.h"
#include "formats/image/coef_layout.h"

enum { BLOCK_MOST = 1 + 8 + 63 + 32 + 1 + 63 }; /* every part of a block at its largest */
_Static_assert((int)BLOCK_MOST >= (int)MRI_COEF_PUT_SLACK, "a block must not overwrite more than the slack");

/* ---- one block ---- */

/* The first tier that reaches end. */
static unsigned tier_for(unsigned end)
{
    unsigned t = 0;
    while (mri_coef_tier_end[t] < end) t++;
    return t;
}

/* A block in zigzag order: its values other than 0, and past which places nibbles and bytes are enough. */
typedef struct scan {
    uint64_t map;
    unsigned count, byte_end, escape_end;
    int16_t value[MRI_JPEG_BLOCK];
} scan;

/* One bit for each of 64 bytes that are 0 or 1: a multiplication gathers the low bits of eight bytes in the
 * highest one. */
static uint64_t bits(const uint8_t *is)
{
    uint64_t map = 0;
    for (int k = 0; k < 8; k++) map |= mri_le64(is + 8 * k) * 0x0102040810204080u >> 56 << 8 * k;
    return map;
}

/* The loops over all 64 are for the compiler to vectorise: branches on what comes would be as good as
 * noise. */
static void scan_block(const int16_t *coef, scan *s)
{
    int16_t zigzag[MRI_JPEG_BLOCK];
    uint8_t is[MRI_JPEG_BLOCK], large[MRI_JPEG_BLOCK], huge[MRI_JPEG_BLOCK];
    for (int j = 0; j < MRI_JPEG_BLOCK; j++) zigzag[j] = coef[mri_jpeg_natural[j]];
    zigzag[0] = 0;
    for (int j = 0; j < MRI_JPEG_BLOCK; j++) {
        is[j] = zigzag[j] != 0;
        large[j] = (uint16_t)(zigzag[j] + 8) > 15;
        huge[j] = (uint16_t)(zigzag[j] + 128) > 255;
    }
    const uint64_t over = bits(large), far_over = bits(huge);
    s->map = bits(is);
    s->byte_end = over ? 64 - (unsigned)__builtin_clzll(over) : 1;
    s->escape_end = far_over ? 64 - (unsigned)__builtin_clzll(far_over) : 0;
    s->count = 0;
    for (uint64_t left = s->map; left; left &= left - 1) s->value[s->count++] = zigzag[__builtin_ctzll(left)];
}

/* At most BLOCK_MOST bytes. */
size_t mri_coef_block_put(const int16_t *coef, uint8_t *to)
{
    scan s;
    scan_block(coef, &s);
    if (s.map == 0) return 0;
    const unsigned map_bytes = (unsigned)(63 - __builtin_clzll(s.map)) / 8 + 1, tier = tier_for(s.byte_end);
    const unsigned bytes = (unsigned)__builtin_popcountll(s.map & mri_coef_tier[tier]);
    uint8_t *at = to + 1 + map_bytes;
    to[0] = (uint8_t)((map_bytes - 1) | tier << MRI_COEF_TIER_SHIFT | (s.escape_end ? MRI_COEF_ESCAPE : 0));
    memcpy(to + 1, &s.map, map_bytes);
    for (unsigned k = 0; k < bytes; k++) *at++ = (uint8_t)s.value[k];
    for (unsigned k = bytes; k < s.count; k += 2)
        *at++ = (uint8_t)((s.value[k] & 15) | (k + 1 < s.count ? (s.value[k + 1] & 15) << 4 : 0));
    if (s.escape_end) {
        const unsigned escape = tier_for(s.escape_end),
                       count = (unsigned)__builtin_popcountll(s.map & mri_coef_tier[escape]);
        *at++ = (uint8_t)escape;
        for (unsigned k = 0; k < count; k++) *at++ = (uint8_t)((uint16_t)s.value[k] >> 8);
    }
    return (size_t)(at - to);
}

/* The blocks of a row, their lengths and DCs; returns the blocks' bytes. */
static size_t blocks_put_plain(const int16_t (*row)[MRI_JPEG_BLOCK], uint32_t blocks, uint8_t *lengths,
                               uint8_t *dc, uint8_t *to, bool *beyond)
{
    uint8_t *at = to;
    for (uint32_t x = 0; x < blocks; x++) {
        const size_t length = mri_coef_block_put(row[x], at);
        if (length && at[0] & MRI_COEF_ESCAPE) *beyond |= mri_coef_is_beyond(row[x]);
        lengths[x] = (uint8_t)length;
        mri_put_le16(dc + 2 * (size_t)x, (uint16_t)row[x][0]);
        at += length;
    }
    return (size_t)(at - to);
}

static size_t blocks_put(const int16_t (*row)[MRI_JPEG_BLOCK], uint32_t blocks, uint8_t *lengths, uint8_t *dc,
                         uint8_t *to, bool *beyond)
{
#if defined(__x86_64__)
    const mri_simd_level level = mri_simd();
    if (level == MRI_SIMD_AVX512) return mri_coef_blocks_put_avx512(row, blocks, lengths, dc, to, beyond);
    if (level == MRI_SIMD_AVX2) return mri_coef_blocks_put_avx2(row, blocks, lengths, dc, to, beyond);
#endif
    return blocks_put_plain(row, blocks, lengths, dc, to, beyond);
}

/* ---- the payload, growing ---- */

typedef struct mri_coef_part part;

static int need(mri_coef_packing *p, part *to, size_t more, mr_error *err)
{
    if (more > MRI_COEF_MAX_BYTES - (p->part[0].used + p->part[1].used + p->part[2].used))
        return mr_error_set(err, MR_ELIMIT, "coefficients: the picture would take more than %llu MiB packed",
                            (unsigned long long)(MRI_COEF_MAX_BYTES >> 20));
    if (more <= to->room - to->used) return MR_OK;
    const size_t room = (size_t)mri_max_u64(to->used + more, to->room + to->room / 2);
    uint8_t *data = realloc(to->data, room);
    if (!data) return mr_error_set(err, MR_ENOMEM, "coefficients: no memory for %zu bytes", room);
    to->data = data;
    to->room = room;
    return MR_OK;
}

/* More than 11 bits? */
static bool dc_beyond(const int16_t (*row)[MRI_JPEG_BLOCK], uint32_t blocks)
{
    unsigned beyond = 0;
    for (uint32_t x = 0; x < blocks; x++) beyond |= (uint16_t)(row[x][0] + 1024) > 2047;
    return beyond;
}

static int row_put(mri_coef_packing *p, part *to, const int16_t (*row)[MRI_JPEG_BLOCK], uint32_t blocks,
                   mr_error *err)
{
    const int rc = need(p, to, (size_t)blocks * (MRI_COEF_BLOCK_FIXED + BLOCK_MOST), err);
    if (rc) return rc;
    uint8_t *lengths = to->data + to->used, *dc = lengths + blocks, *first = dc + 2 * (size_t)blocks;
    to->used +=
        MRI_COEF_BLOCK_FIXED * (size_t)blocks + blocks_put(row, blocks, lengths, dc, first, &p->beyond);
    p->beyond |= dc_beyond(row, blocks);
    return MR_OK;
}

/* ---- head and tables ---- */

static int frame_check(const mri_jpeg_frame *f, mr_error *err)
{
    const bool gray = f->component_count == 1 && f->colour == MRI_JPEG_GRAY;
    const bool three = f->component_count == 3 && (f->colour == MRI_JPEG_YCC || f->colour == MRI_JPEG_RGB);
    if (gray || three) return MR_OK;
    return mr_error_set(
        err, MR_EUNSUPPORTED,
        "coefficient records hold gray, YCbCr and RGB pictures; this one has %u components of another kind",
        f->component_count);
}

static void head_put(part *p, const mri_jpeg_frame *f)
{
    uint8_t *h = p->data, tables = 0;
    memset(h, 0, MRI_COEF_HEAD);
    memcpy(h, "MRCF\1", 5);
    h[5] = (uint8_t)f->component_count;
    h[6] = (uint8_t)f->colour;
    h[7] = (uint8_t)f->orientation;
    mri_put_le16(h + 8, (uint16_t)f->width);
    mri_put_le16(h + 10, (uint16_t)f->height);
    for (uint32_t k = 0; k < f->component_count; k++) {
        const mri_jpeg_component *m = &f->component[k];
        uint8_t t = 0;
        while (t < tables &&
               memcmp(h + MRI_COEF_HEAD + MRI_COEF_TABLE_BYTES * t, m->quant, MRI_COEF_TABLE_BYTES) != 0)
            t++;
        if (t == tables)
            memcpy(h + MRI_COEF_HEAD + MRI_COEF_TABLE_BYTES * tables++, m->quant, MRI_COEF_TABLE_BYTES);
        memcpy(h + MRI_COEF_COMPONENT_AT + 4 * k, (const uint8_t[4]){m->id, m->h, m->v, t}, 4);
    }
    h[12] = tables;
    p->used = MRI_COEF_HEAD + (size_t)MRI_COEF_TABLE_BYTES * tables;
}

/* ---- a picture ---- */

int mri_coef_pack_begin(mri_coef_packing *p, const mri_jpeg_frame *frame, mr_error *err)
{
    size_t rows = 0;
    int rc = frame_check(frame, err);
    p->frame = frame;
    p->mcu_row = 0;
    p->beyond = false;
    for (uint32_t k = 0; k < 3; k++) p->part[k].used = 0;
    for (uint32_t k = 0; k < frame->component_count && rc == MR_OK; k++) {
        const mri_jpeg_component *m = &frame->component[k];
        const uint64_t blocks = (uint64_t)m->blocks_high * m->blocks_wide, most = MRI_COEF_MAX_BYTES / 2;
        p->index[k] = rows;
        rows += m->blocks_high;
        /* most blocks of photographs take 16 to 32 bytes, blocks of chroma half of that */
        rc = need(p, &p->part[k], (size_t)mri_min_u64(blocks * (k ? 8 : 32), most), err);
    }
    if (rc == MR_OK)
        rc = need(p, &p->part[0], MRI_COEF_HEAD + 3 * MRI_COEF_TABLE_BYTES + 4 * (rows + 1), err);
    if (rc) return rc;
    head_put(&p->part[0], frame);
    for (uint32_t k = 0; k < frame->component_count; k++) p->index[k] = p->part[0].used + 4 * p->index[k];
    p->part[0].used += 4 * (rows + 1);
    return MR_OK;
}

int mri_coef_pack_row(mri_coef_packing *p, const int16_t (*const *coef)[MRI_JPEG_BLOCK], mr_error *err)
{
    for (uint32_t k = 0; k < p->frame->component_count; k++) {
        const mri_jpeg_component *m = &p->frame->component[k];
        const uint32_t first = p->mcu_row * m->v,
                       end = first + m->v < m->blocks_high ? first + m->v : m->blocks_high;
        for (uint32_t y = first; y < end; y++) {
            part *to = &p->part[k];
            mri_put_le32(p->part[0].data + p->index[k] + 4 * (size_t)y, (uint32_t)to->used);
            const int rc =
                row_put(p, to, coef[k] + (size_t)(y - first) * m->blocks_wide, m->blocks_wide, err);
            if (rc) return rc;
        }
    }
    p->mcu_row++;
    return MR_OK;
}

/* The rows of component k to the end of the first part; their places are counted from there. */
static int part_join(mri_coef_packing *p, uint32_t k, mr_error *err)
{
    part *all = &p->part[0], *from = &p->part[k];
    const size_t first = all->used, bytes = from->used;
    from->used = 0;
    const int rc = need(p, all, bytes, err);
    if (rc) return rc;
    memcpy(all->data + first, from->data, bytes);
    all->used += bytes;
    for (uint32_t y = 0; y < p->frame->component[k].blocks_high; y++) {
        uint8_t *const at = all->data + p->index[k] + 4 * (size_t)y;
        mri_put_le32(at, mri_le32(at) + (uint32_t)first);
    }
    return MR_OK;
}

int mri_coef_pack_end(mri_coef_packing *p, void **out, size_t *bytes, mr_error *err)
{
    const mri_jpeg_frame *f = p->frame;
    const uint32_t last = f->component_count - 1;
    part *all = &p->part[0];
    int rc = MR_OK;
    for (uint32_t k = 1; k <= last && rc == MR_OK; k++) rc = part_join(p, k, err);
    if (rc == MR_OK) rc = need(p, all, MRI_COEF_SLACK, err);
    if (rc) return rc;
    mri_put_le32(all->data + p->index[last] + 4 * (size_t)f->component[last].blocks_high,
                 (uint32_t)all->used);
    memset(all->data + all->used, 0, MRI_COEF_SLACK);
    all->used += MRI_COEF_SLACK;
    void *fitting = realloc(all->data, all->used);
    *out = fitting ? fitting : all->data;
    *bytes = all->used;
    *all = (part){0};
    return MR_OK;
}

void mri_coef_pack_free(mri_coef_packing *p)
{
    for (uint32_t k = 0; k < 3; k++) free(p->part[k].data);
    *p = (mri_coef_packing){0};
}

int mri_coef_pack(const mri_jpeg_frame *frame, const int16_t (*const *coef)[MRI_JPEG_BLOCK], void **out,
                  size_t *bytes, mr_error *err)
{
    mri_coef_packing p = {0};
    *out = NULL;
    *bytes = 0;
    int rc = mri_coef_pack_begin(&p, frame, err);
    const uint32_t rows =
        (frame->component[0].blocks_high + frame->component[0].v - 1) / frame->component[0].v;
    for (uint32_t m = 0; m < rows && rc == MR_OK; m++) {
        const int16_t(*row[MRI_JPEG_MAX_COMPONENTS])[MRI_JPEG_BLOCK] = {0};
        for (uint32_t k = 0; k < frame->component_count; k++)
            row[k] = coef[k] + (size_t)m * frame->component[k].v * frame->component[k].blocks_wide;
        rc = mri_coef_pack_row(&p, row, err);
    }
    if (rc == MR_OK) rc = mri_coef_pack_end(&p, out, bytes, err);
    mri_coef_pack_free(&p);
    return rc;
}
