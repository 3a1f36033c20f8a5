/* tests/fuzz/pictures/fuzz_header.c: the parsers that look at a picture without decoding it: its header, its
 * EXIF part, the layout of a JPEG, and entry points kept beside one.
 *
 * Input: u16 length of entry points, these, then the picture. Bit 15 of the length: the numbers by which
 * entry points know their picture are put right. The entry points are taken for the body of an APP1 segment
 * as well. */
#include <stdlib.h>
#include <string.h>

#include "formats/image/exif.h"
#include "formats/image/jpeg_entry.h"
#include "formats/image/jpeg_frame.h"
#include "tests/fuzz/fuzz.h"

enum { MOST_ENTRIES = 2048, MOST_WALKED = 512 };

static void walk_entries(const uint8_t *payload, size_t bytes, const mri_jpeg_layout *layout,
                         const uint8_t *jpeg, size_t jpeg_bytes)
{
    mri_jpeg_entries t;
    mr_error err = MR_ERROR_INIT;
    if (mri_jpeg_entries_open(&t, payload, bytes, layout, jpeg, jpeg_bytes, &err) != MR_OK) {
        if (!err.text[0]) abort();
        return;
    }
    uint32_t walked = 0;
    for (uint32_t row = 0; row < layout->frame.mcus_high && walked < MOST_WALKED; row++) {
        mri_jpeg_entry e = mri_jpeg_entries_row(&t, row);
        for (uint32_t k = 0; k + 1 < t.per_row && walked++ < MOST_WALKED; k++)
            mri_jpeg_entries_next(&t, row, k, &e);
    }
    const uint32_t last = layout->frame.mcus_high - 1; /* ends where the payload does */
    mri_jpeg_entry e = mri_jpeg_entries_row(&t, last);
    if (t.per_row > 1) mri_jpeg_entries_next(&t, last, t.per_row - 2, &e);
}

static void layout_of(const uint8_t *jpeg, size_t bytes, uint8_t *payload, size_t payload_bytes, bool repair)
{
    mri_jpeg_layout l;
    mr_error err = MR_ERROR_INIT;
    if (mri_jpeg_layout_parse(&l, jpeg, bytes, &err) != MR_OK) {
        if (!err.text[0]) abort();
        return;
    }
    if (l.scan_count == 0 || l.scan_count > MRI_JPEG_MAX_COMPONENTS || l.frame.mcus_high == 0) abort();
    for (uint32_t k = 0; k < l.scan_count; k++)
        if (l.scan[k].begin > l.scan[k].end || l.scan[k].end > bytes) abort();
    mri_jpeg_tail_check(jpeg, bytes, l.scan[l.scan_count - 1].end, &err);
    if (repair && payload_bytes >= 20) {
        mri_put_le32(payload + 12, (uint32_t)bytes);
        mri_put_le32(payload + 16, mr_crc32c(0, jpeg, l.scan[0].begin));
    }
    walk_entries(payload, payload_bytes, &l, jpeg, bytes);
}

static uint8_t *copy_of(const uint8_t *data, size_t bytes) /* with nothing after it */
{
    uint8_t *p = malloc(bytes);
    if (!p && bytes) abort();
    if (bytes) memcpy(p, data, bytes);
    return p;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes < 2) return 0;
    const unsigned word = data[0] | (unsigned)data[1] << 8;
    size_t n = word & 0x7fff;
    if (n > MOST_ENTRIES) n = MOST_ENTRIES;
    if (n > bytes - 2) n = bytes - 2;
    uint8_t *payload = copy_of(data + 2, n), *picture = copy_of(data + 2 + n, bytes - 2 - n);
    const size_t picture_bytes = bytes - 2 - n;
    mr_error err = MR_ERROR_INIT;
    mrt_fuzz_begin(0, 1); /* none of them allocates */
    mr_image_header h;
    if (mr_image_header_parse(picture, picture_bytes, &h, &err) == MR_OK) {
        if (!h.width || !h.height || h.orientation < 1 || h.orientation > 8) abort();
        if (mr_image_sniff(picture, picture_bytes) != (int)h.type) abort();
    } else if (!err.text[0]) abort();
    const uint32_t up = mri_exif_orientation(picture, picture_bytes), app = mri_exif_app1(payload, n);
    if (up < 1 || up > 8 || app > 8) abort();
    layout_of(picture, picture_bytes, payload, n, word & 0x8000);
    mrt_fuzz_end();
    free(payload);
    free(picture);
    return 0;
}
