/* formats/image/jpeg_entry.c: the bytes of entry points.
 *
 *   head, 20 bytes | row 0: position, predictions, then for each further entry what to add | row 1 | ... |
 *   zero bits
 *
 * Each kind of number has one width in bits for the whole picture, the least that holds all of them, so that
 * every row takes as many bits and is found by a multiplication. Numbers begin with their lowest bit, in the
 * lowest free bit of a byte. */
#include "formats/image/jpeg_entry.h"

#define HEAD_BYTES         20
#define VERSION            1
#define MAX_POSITION_WIDTH 40
#define MAX_DC_WIDTH       17

/* ---- numbers of any width ---- */

static uint64_t get_bits(const mri_jpeg_entries *t, uint64_t bit, unsigned width)
{
    const size_t at = (size_t)(bit >> 3), left = t->field_bytes - at;
    uint64_t v = 0;
    memcpy(&v, t->fields + at, left < 8 ? left : 8);
    return v >> (bit & 7) & ((UINT64_C(1) << width) - 1);
}

static int32_t get_signed(const mri_jpeg_entries *t, uint64_t bit, unsigned width)
{
    if (width == 0) return 0;
    const uint64_t sign = UINT64_C(1) << (width - 1);
    return (int32_t)(int64_t)((get_bits(t, bit, width) ^ sign) - sign);
}

static void put_bits(uint8_t *fields, uint64_t *bit, unsigned width, uint64_t value)
{
    uint64_t v; /* widths and 7 bits before them fit; 8 bytes follow the fields */
    memcpy(&v, fields + (*bit >> 3), sizeof v);
    v |= (value & ((UINT64_C(1) << width) - 1)) << (*bit & 7);
    memcpy(fields + (*bit >> 3), &v, sizeof v);
    *bit += width;
}

static void widen(uint8_t *width, uint64_t value)
{
    while (value >> *width) ++*width;
}

static void widen_signed(uint8_t *width, int64_t value)
{
    if (value == 0) return;
    const uint64_t magnitude = (uint64_t)(value < 0 ? ~value : value);
    if (*width == 0) *width = 1;
    while (magnitude >> (*width - 1)) ++*width;
}

/* ---- packing ---- */

static uint32_t per_row(const mri_jpeg_frame *f, uint32_t gap) { return (f->mcus_wide + gap - 1) / gap; }

static void lay_out(mri_jpeg_entries *t, const mri_jpeg_layout *layout)
{
    t->origin = 8 * (uint64_t)layout->scan[0].begin;
    t->components = layout->frame.component_count;
    t->per_row = per_row(&layout->frame, t->gap);
    uint64_t first = t->position_width, step = t->step_width;
    for (uint32_t c = 0; c < t->components; c++) {
        first += t->dc_width[c];
        step += t->dc_step_width[c];
    }
    t->row_bits = first + step * (t->per_row - 1);
}

static uint64_t field_bytes(const mri_jpeg_entries *t, uint32_t rows) { return (t->row_bits * rows + 7) / 8; }

static int measure(mri_jpeg_entries *t, const mri_jpeg_layout *layout, const mri_jpeg_entry *entry,
                   mr_error *err)
{
    const uint64_t origin = 8 * (uint64_t)layout->scan[0].begin;
    for (uint32_t row = 0; row < layout->frame.mcus_high; row++)
        for (uint32_t k = 0; k < per_row(&layout->frame, t->gap); k++, entry++) {
            if (k) widen(&t->step_width, entry->bit - entry[-1].bit);
            else widen(&t->position_width, entry->bit - origin);
            for (uint32_t c = 0; c < layout->frame.component_count; c++) {
                if (entry->dc[c] != (int16_t)entry->dc[c])
                    return mr_error_set(err, MR_EUNSUPPORTED,
                                        "JPEG: a DC prediction of %d: no entry points for it",
                                        (int)entry->dc[c]);
                if (k) widen_signed(&t->dc_step_width[c], entry->dc[c] - entry[-1].dc[c]);
                else widen_signed(&t->dc_width[c], entry->dc[c]);
            }
        }
    return MR_OK;
}

static void put_rows(const mri_jpeg_entries *t, uint32_t rows, const mri_jpeg_entry *entry, uint8_t *fields)
{
    uint64_t at = 0;
    for (uint32_t row = 0; row < rows; row++)
        for (uint32_t k = 0; k < t->per_row; k++, entry++) {
            if (k) put_bits(fields, &at, t->step_width, entry->bit - entry[-1].bit);
            else put_bits(fields, &at, t->position_width, entry->bit - t->origin);
            for (uint32_t c = 0; c < t->components; c++) {
                if (k)
                    put_bits(fields, &at, t->dc_step_width[c],
                             (uint64_t)(int64_t)(entry->dc[c] - entry[-1].dc[c]));
                else put_bits(fields, &at, t->dc_width[c], (uint64_t)(int64_t)entry->dc[c]);
            }
        }
}

int mri_jpeg_entries_pack(const mri_jpeg_layout *layout, const void *jpeg, size_t jpeg_bytes, uint32_t gap,
                          const mri_jpeg_entry *entry, void **out, size_t *bytes, mr_error *err)
{
    if (gap < 1 || gap > 255)
        return mr_error_set(err, MR_EINVAL, "entry points every %u MCUs; expected 1 to 255", gap);
    if (layout->scan_count != 1 || jpeg_bytes > UINT32_MAX)
        return mr_error_set(err, MR_EUNSUPPORTED,
                            "JPEG: %u scans, %zu bytes; entry points are for one scan and 4 GiB at most",
                            layout->scan_count, jpeg_bytes);
    mri_jpeg_entries t = {.gap = gap};
    const int rc = measure(&t, layout, entry, err);
    if (rc) return rc;
    lay_out(&t, layout);
    const uint64_t size = field_bytes(&t, layout->frame.mcus_high);
    uint8_t *p = calloc(1, HEAD_BYTES + (size_t)size + sizeof(uint64_t));
    if (!p)
        return mr_error_set(err, MR_ENOMEM, "no memory for %llu bytes of entry points",
                            (unsigned long long)size);
    p[0] = VERSION;
    p[1] = (uint8_t)gap;
    p[2] = (uint8_t)t.components;
    p[3] = t.position_width;
    p[4] = t.step_width;
    memcpy(p + 5, t.dc_width, sizeof t.dc_width);
    memcpy(p + 8, t.dc_step_width, sizeof t.dc_step_width);
    mri_put_le32(p + 12, (uint32_t)jpeg_bytes);
    mri_put_le32(p + 16, mr_crc32c(0, jpeg, layout->scan[0].begin));
    put_rows(&t, layout->frame.mcus_high, entry, p + HEAD_BYTES);
    *out = p;
    *bytes = HEAD_BYTES + (size_t)size;
    return MR_OK;
}

/* ---- looking up ---- */

static bool widths_fit(const mri_jpeg_entries *t)
{
    bool fit = t->position_width <= MAX_POSITION_WIDTH && t->step_width <= MAX_POSITION_WIDTH;
    for (uint32_t c = 0; c < MRI_JPEG_ENTRY_COMPONENTS; c++) {
        fit &= t->dc_width[c] <= MAX_DC_WIDTH && t->dc_step_width[c] <= MAX_DC_WIDTH;
        fit &= c < t->components || (t->dc_width[c] | t->dc_step_width[c]) == 0;
    }
    return fit;
}

int mri_jpeg_entries_open(mri_jpeg_entries *t, const void *payload, size_t bytes,
                          const mri_jpeg_layout *layout, const void *jpeg, size_t jpeg_bytes, mr_error *err)
{
    const uint8_t *p = payload;
    const mri_jpeg_frame *f = &layout->frame;
    if (bytes < HEAD_BYTES || p[0] != VERSION || p[1] == 0 || p[11] != 0)
        return mr_error_set(err, MR_EFORMAT, "entry points: %zu bytes that do not begin like version %u",
                            bytes, VERSION);
    *t = (mri_jpeg_entries){.fields = p + HEAD_BYTES,
                            .field_bytes = bytes - HEAD_BYTES,
                            .gap = p[1],
                            .position_width = p[3],
                            .step_width = p[4]};
    memcpy(t->dc_width, p + 5, sizeof t->dc_width);
    memcpy(t->dc_step_width, p + 8, sizeof t->dc_step_width);
    if (layout->scan_count != 1 || p[2] != f->component_count || mri_le32(p + 12) != jpeg_bytes)
        return mr_error_set(err, MR_EFORMAT,
                            "entry points: made for a JPEG of %u bytes and %u components; this one has %zu "
                            "and %u (and %u scans)",
                            mri_le32(p + 12), p[2], jpeg_bytes, f->component_count, layout->scan_count);
    lay_out(t, layout);
    if (!widths_fit(t) || t->field_bytes != field_bytes(t, f->mcus_high))
        return mr_error_set(err, MR_EFORMAT,
                            "entry points: %zu bytes do not hold the %u x %u entries their head speaks of",
                            bytes, t->per_row, f->mcus_high);
    const uint32_t stated = mri_le32(p + 16), found = mr_crc32c(0, jpeg, layout->scan[0].begin);
    if (stated == found) return MR_OK;
    return mr_error_set(err, MR_EFORMAT,
                        "entry points: made for a JPEG whose head has CRC %08x; this one has %08x", stated,
                        found);
}

mri_jpeg_entry mri_jpeg_entries_row(const mri_jpeg_entries *t, uint32_t row)
{
    uint64_t at = row * t->row_bits;
    mri_jpeg_entry e = {.bit = t->origin + get_bits(t, at, t->position_width)};
    at += t->position_width;
    for (uint32_t c = 0; c < t->components; c++) {
        e.dc[c] = get_signed(t, at, t->dc_width[c]);
        at += t->dc_width[c];
    }
    return e;
}

void mri_jpeg_entries_next(const mri_jpeg_entries *t, uint32_t row, uint32_t idx, mri_jpeg_entry *e)
{
    uint64_t first = t->position_width, step = t->step_width;
    for (uint32_t c = 0; c < t->components; c++) {
        first += t->dc_width[c];
        step += t->dc_step_width[c];
    }
    uint64_t at = row * t->row_bits + first + step * idx;
    e->bit += get_bits(t, at, t->step_width);
    at += t->step_width;
    for (uint32_t c = 0; c < t->components; c++) {
        e->dc[c] += get_signed(t, at, t->dc_step_width[c]);
        at += t->dc_step_width[c];
    }
}
