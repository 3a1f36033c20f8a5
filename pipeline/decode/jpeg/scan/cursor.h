/* pipeline/decode/jpeg/scan/cursor.h: a position in one scan, and decoding onward from it. Private.
 *
 * The bytes ahead of the place lie unstuffed in the cursor's own feed, some KiB of them, refilled as it
 * moves; the file's bytes are touched once, in order, and not at all before the place a cursor was set to. */
#ifndef MRI_CURSOR_H
#define MRI_CURSOR_H

#include "formats/image/jpeg_entry.h"
#include "pipeline/decode/jpeg/scan/scan.h"

typedef struct mri_cursor {
    const uint8_t *data; /* the file */
    const mri_jpeg_scan *scan;
    const mri_jpeg_entries *entries;     /* NULL: none. The caller sets them, and expected_entry */
    mri_jpeg_entry expected_entry;       /* the last one compared with, jumped to, or begun from */
    uint32_t wide, high;                 /* MCUs of this scan */
    uint64_t at, total;                  /* next MCU */
    uint32_t restart_left;               /* MCUs to the next restart marker, when there are any */
    unsigned restart_next;               /* its number, 0 to 7 */
    int32_t dc[MRI_JPEG_MAX_COMPONENTS]; /* predictions, in the order of the scan */
    mri_run run;

    bool skim;    /* the caller's to set, before moving: no block is wanted, skim[] of the tables is made */
    bool only_dc; /* the caller's to set, before moving: no AC is stored, skim[] of the tables is made */
    bool begun;   /* what follows is meant */
    size_t next;  /* file: first byte not in the feed */
    size_t fill;  /* bytes in the feed */
    bool ended;   /* next is at a marker or the end */
    bool marking; /* the caller's to set, before moving: entries are compared or noted */
    mri_jpeg_entry *noted; /* the caller's to set, before moving: array for the entry points of all rows; or
                              NULL */
    uint32_t noted_gap;    /* MCUs of a row per entry point */
    size_t mark, mark_at;  /* a byte of the feed and, when marking, its place in the file */
    uint8_t feed[MRI_FEED_BYTES + MRI_UNSTUFF_SLACK + MRI_MCU_BYTES + 64]; /* an MCU that runs over the end
                                                                              stays inside */
} mri_cursor;

/* To the start of a scan. run.block[], wide and high are the caller's to fill. */
void mri_cursor_start(mri_cursor *c, const void *data, const mri_jpeg_scan *scan);

/* Jump to an entry point, that of MCU number at. ahead: about how many bytes will be wanted from there. */
int mri_cursor_enter(mri_cursor *c, const mri_jpeg_entry *entry, uint64_t at, size_t ahead, mr_error *err);

/* The place before the next MCU; takes the restart marker that is due. While `marking` only. */
int mri_cursor_place(mri_cursor *c, mri_jpeg_entry *out, mr_error *err);

/* Decode up to MCU number end, comparing the entries passed with where we are. */
int mri_cursor_go(mri_cursor *c, uint64_t end, mr_error *err);

/* After the last MCU: *at is the file's place of the marker that ends the scan, and nothing is between.
 * MR_EUNSUPPORTED: bytes between, for which a warning of libjpeg depends on chance. */
int mri_cursor_finish(mri_cursor *c, size_t *at, mr_error *err);

#endif
