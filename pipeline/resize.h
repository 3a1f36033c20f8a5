/* pipeline/resize.h: antialiased resize of 8-bit pictures, the same bits on every machine. Private. */
#ifndef MRI_RESIZE_H
#define MRI_RESIZE_H

#include "pipeline/pixels.h"

#define MRI_RESIZE_MAX_SIDE (1u << 20) /* of a source or a result: what the integers below were sized for */

/* One direction: a side of in pixels becomes one of out, of which [first, first + count) is wanted. */
typedef struct mri_axis {
    uint32_t in, out, first, count;
} mri_axis;

/* The source pixels [*lo, *hi) that the wanted part depends on. Sides within 1..MRI_RESIZE_MAX_SIDE. */
void mri_axis_support(mri_axis a, uint32_t *lo, uint32_t *hi);

/* Working memory of one thread: coefficients and one row. Start with {0}. */
typedef struct mri_resizer {
    mri_buffer x_taps, y_taps, row;
} mri_resizer;

void mri_resizer_free(mri_resizer *r);
/* The most a resizer may hold for sides up to the given ones. */
uint64_t mri_resizer_bound_bytes(uint64_t side_in, uint64_t side_out);

typedef enum mri_resize_level { MRI_RESIZE_BEST = 0, MRI_RESIZE_PLAIN = 1 } mri_resize_level;

/* Resize to the window x.count by y.count, packed to dst, rows right to left with flip. src is interleaved, 1 or 3 channels, and
 * its first pixel is pixel (src_x, src_y) of the whole source; it covers at least the support of both axes. level
 * PLAIN keeps to the code without special instructions: same bits (a test says so). MR_OK or MR_ENOMEM. */
int mri_resize(mri_resizer *r, const mri_view *src, uint32_t src_x, uint32_t src_y, mri_axis x, mri_axis y, bool flip,
               uint8_t *dst, mri_resize_level level);

#endif
