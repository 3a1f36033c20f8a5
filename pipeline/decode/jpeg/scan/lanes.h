/* pipeline/decode/jpeg/scan/lanes.h: segments between entry points, decoded in the lanes of AVX-512. Private.
 *
 * Entry points cut rows of MCUs into segments. A batch is the segments of some rows that hold wanted blocks;
 * each lane decodes a segment of its own and takes the next one when it is through.
 *
 *   segments' bytes --unstuff--> bytes --lanes--> coefficients in zigzag order, DC as differences
 *                                                  --mri_lanes_row()--> natural order, DC, a row at a time
 *
 * The lanes never give a verdict. Whatever is unusual in a row, be it damage, a restart marker, an entry
 * point that does not agree, or a symbol that runs over the end of its block, makes mri_lanes_row() return
 * false, and the cursor (cursor.h) decodes the row and reports the error. A row for which it returns true has
 * the coefficients that the cursor gives, and every entry point that the cursor would compare agrees. */
#ifndef MRI_LANES_H
#define MRI_LANES_H

#include "formats/image/jpeg_entry.h"
#include "pipeline/decode/jpeg/scan/scan.h"

#define MRI_LANE_TABLES 4 /* of a kind; the same number as in the entropy decoder */

typedef struct mri_lanes mri_lanes;

/* Has the level in use lanes? */
bool mri_lanes_supported(void);
int mri_lanes_create(mri_lanes **out);
void mri_lanes_destroy(mri_lanes *l); /* accepts NULL */
uint64_t mri_lanes_bytes(void);       /* their memory, which never grows */

/* A picture of one scan with entry points; everything stays the caller's and must stay until the next one. */
typedef struct mri_lanes_picture {
    const uint8_t *data;
    const mri_jpeg_scan *scan;
    const mri_jpeg_entries *entries;
    const mri_run_block *block; /* dc, ac and prediction are used; ac and dc elements of these: */
    const mri_huff_ac *ac;
    const mri_huff_dc *dc;
    const int32_t *prediction; /* of the first component of the scan; the others follow */
    uint32_t block_count, wide, high;
} mri_lanes_picture;

void mri_lanes_open(mri_lanes *l, const mri_lanes_picture *p);
/* Until the next picture is opened: of each block the DC coefficient alone is stored, the others are left as
 * they are, and `last` is 0. */
void mri_lanes_only_dc(mri_lanes *l);

/* Without entry points: skim from MCU at, whose place is *here, towards MCU to, in many places at once.
 * Returns the MCU that was reached, with its place in *here: the same as the cursor finds, and no damage
 * before it. at: the cursor must go on. noted: as the cursor's; NULL: nothing is noted. */
uint64_t mri_lanes_skim(mri_lanes *l, mri_jpeg_entry *here, uint64_t at, uint64_t to, mri_jpeg_entry *noted,
                        uint32_t gap);

/* The same, and coefficients of all MCUs from `at` to the one that was reached lie ready until the next call
 * but mri_lanes_store(). */
uint64_t mri_lanes_ahead(mri_lanes *l, mri_jpeg_entry *here, uint64_t at, uint64_t to, mri_jpeg_entry *noted,
                         uint32_t gap);
/* Store MCUs of one row from `at` on, up to MCU `to`, as far as they lie ready; returns the MCU after the
 * last one that was stored. block as for mri_lanes_row(). */
uint64_t mri_lanes_store(const mri_lanes *l, uint64_t at, uint64_t to, const mri_run_block *block);

/* Wanted MCUs of a row: columns [from, to). */
typedef struct mri_lanes_span {
    uint32_t from, to;
} mri_lanes_span;

/* Is this row in the batch that was decoded last? */
bool mri_lanes_has(const mri_lanes *l, uint32_t row);
/* Rows that a batch may have at most. */
#define MRI_LANE_ROWS 64
/* Decode up to count rows from first on, as far as room allows. False: too few segments for lanes to pay
 * off. */
bool mri_lanes_decode(mri_lanes *l, uint32_t first, const mri_lanes_span *span, uint32_t count);
/* Store a row of the batch, once: block as mri_run_mcus() wants it, x from column 0 of the row on. */
bool mri_lanes_row(mri_lanes *l, uint32_t row, const mri_run_block *block);

#endif
