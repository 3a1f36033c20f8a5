/* formats/image/jpeg_frame.h: the content of a JPEG's markers, checked: sizes, sampling, tables, positions of
 * the scans. Private.
 *
 * The parser allocates nothing and keeps no pointer other than into the data. A frame is all copied; a
 * layout's scans point at the Huffman tables where they lie. Source: ITU-T T.81 (B.2 markers, A.1 and A.2
 * components, data units and MCUs), T.871 (JFIF), Adobe TN 5116 (APP14). */
#ifndef MRI_JPEG_FRAME_H
#define MRI_JPEG_FRAME_H

#include "base/util.h"
#include "millrace/formats.h"

#define MRI_JPEG_MAX_COMPONENTS 4
#define MRI_JPEG_MAX_SAMPLING   4  /* of a component, T.81 B.2.2 */
#define MRI_JPEG_BLOCK          64 /* coefficients of a block, and its 8 x 8 samples */

/* Zigzag position -> place in a block, row after row: place 8 v + u is vertical frequency v, horizontal u. */
extern const uint8_t mri_jpeg_natural[MRI_JPEG_BLOCK];

typedef enum mri_jpeg_colour {
    MRI_JPEG_GRAY,
    MRI_JPEG_YCC,
    MRI_JPEG_RGB,
    MRI_JPEG_CMYK,
    MRI_JPEG_YCCK,
    MRI_JPEG_OTHER
} mri_jpeg_colour;

typedef struct mri_jpeg_component {
    uint8_t id, h, v; /* as in the frame header; a picture of one component counts as 1 x 1 */
    uint8_t quant_table;
    uint32_t width, height;                      /* samples: ceil(picture * h / h_max), ... */
    uint32_t blocks_wide, blocks_high;           /* that hold samples: ceil(width / 8), ... */
    _Alignas(64) uint16_t quant[MRI_JPEG_BLOCK]; /* natural order; in force when the component's first scan
                                                    began */
} mri_jpeg_component;

/* A picture as blocks of coefficients: everything but the coefficients. Sampling factors are not reduced:
 * h_max and v_max are the largest that occur. */
typedef struct mri_jpeg_frame {
    uint32_t width, height; /* as stored, 1..65535 */
    uint32_t component_count;
    uint32_t h_max, v_max;
    uint32_t mcus_wide, mcus_high; /* of a scan of all components: ceil(width / (8 h_max)), ... */
    mri_jpeg_colour colour;
    uint32_t orientation; /* EXIF 1..8; 1 when absent or broken */
    mri_jpeg_component component[MRI_JPEG_MAX_COMPONENTS];
} mri_jpeg_frame;

/* The requested blocks of a component: columns [x0, x1), rows [y0, y1), inside blocks_wide x blocks_high.
 * Empty when x0 == x1: the component is not needed. */
typedef struct mri_block_window {
    uint32_t x0, x1, y0, y1;
} mri_block_window;

/* Where a row of requested blocks is written: block x of block row y to coef[(y - first requested row of this
 * MCU row) * pitch + x - x0], all 64 coefficients written, quantised, natural order; last[same place] is the
 * zigzag position of its last coefficient that may be other than 0: 0 promises that only the first (DC) may
 * be. */
typedef struct mri_block_rows {
    int16_t (*coef)[MRI_JPEG_BLOCK]; /* 64-byte aligned; v * pitch blocks */
    uint8_t *last;
    uint32_t pitch; /* x1 - x0 */
} mri_block_rows;

/* ---- the layout of a file ---- */

typedef struct mri_jpeg_scan_component {
    uint32_t component;     /* of the frame */
    const uint8_t *dc, *ac; /* tables in force, inside the data: 16 counts of codes, then as many symbols as
                               they add up to (at most 256) */
} mri_jpeg_scan_component;

typedef struct mri_jpeg_scan {
    uint32_t component_count; /* in the order of the frame */
    mri_jpeg_scan_component component[MRI_JPEG_MAX_COMPONENTS];
    uint32_t restart_interval; /* MCUs of this scan, 0: none */
    size_t begin, end; /* its entropy-coded bytes; of the one scan of a picture, end is the end of the data */
} mri_jpeg_scan;

typedef struct mri_jpeg_layout {
    mri_jpeg_frame frame;
    uint32_t scan_count; /* together they bring each component once */
    mri_jpeg_scan scan[MRI_JPEG_MAX_COMPONENTS];
} mri_jpeg_layout;

/* Walk the markers of a sequential Huffman-coded picture of 8 bits and 1 or 3 components: up to the first
 * scan when it has all components (its bytes are not parsed, but an end marker must follow them), else to the
 * end.
 * MR_OK            *out is filled
 * MR_EUNSUPPORTED  another kind of JPEG, or an oddity that libjpeg is to judge
 * MR_EFORMAT       damaged; libjpeg would fail or warn as well */
int mri_jpeg_layout_parse(mri_jpeg_layout *out, const void *data, size_t bytes, mr_error *err);

/* ---- the scans of a progressive picture ---- */

/* One scan of a progressive picture (T.81, G.1.1): bits of some coefficients of some components. */
typedef struct mri_jpeg_pass {
    uint32_t component_count; /* in the order of the frame; 1 unless first is 0 */
    mri_jpeg_scan_component component[MRI_JPEG_MAX_COMPONENTS]; /* dc, ac: NULL where the file has no such
                                                                   table yet */
    uint8_t first, last;                                        /* zigzag positions; 0, 0: DC */
    uint8_t high, low;         /* bits below `high` are missing before, below `low` afterwards; high 0: first
                                  scan of these coefficients */
    uint32_t restart_interval; /* MCUs of this scan, 0: none */
    size_t begin;              /* its entropy-coded bytes */
} mri_jpeg_pass;

/* A walk over the markers of a picture. Members are private to jpeg_frame.c. */
typedef struct mri_jpeg_walk {
    const uint8_t *data;
    size_t bytes, at;
    unsigned marker; /* last one read, and its segment */
    const uint8_t *body;
    size_t body_bytes;
    const uint8_t *quant[4]; /* 64 entries in zigzag order */
    bool quant_wide[4];
    const uint8_t *dc[4], *ac[4];
    uint32_t restart_interval;
    bool progressive; /* expected: SOF2; else SOF0 or SOF1 */
    bool framed, jfif, adobe, exif, scanned;
    uint8_t adobe_transform;
    uint32_t seen; /* bit k: component k had a scan */
} mri_jpeg_walk;

/* Walk the markers of a progressive Huffman-coded picture of 8 bits and 1 or 3 components, up to its first
 * scan. Returns as above; quantisation tables of f follow with the first scan of their component. */
int mri_jpeg_passes_open(mri_jpeg_walk *w, mri_jpeg_frame *f, const void *data, size_t bytes, mr_error *err);

/* The next scan. from: a byte among the entropy-coded bytes of the one before, 0: of none; what follows this
 * byte in that scan is passed over. *end: there is no further one, and every component had one.
 * MR_EUNSUPPORTED: also scans that are out of order or that repeat bits. */
int mri_jpeg_passes_next(mri_jpeg_walk *w, mri_jpeg_frame *f, size_t from, mri_jpeg_pass *out, bool *end,
                         mr_error *err);

/* Is there an end marker in these bytes, which follow a header? */
bool mri_jpeg_has_end_marker(const uint8_t *from, size_t bytes);

/* Walk what follows the last scan, from `at` to the end marker. Returns as above. */
int mri_jpeg_tail_check(const void *data, size_t bytes, size_t at, mr_error *err);

#endif
