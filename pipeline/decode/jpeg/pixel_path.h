/* pipeline/decode/jpeg/pixel_path.h: the pixel path: quantised coefficients to finished pixels. Private.
 *
 * The room of JPEG takes the bytes of one picture, or a payload of its coefficients. It gives coefficients of
 * the blocks that matter (entropy.h, progressive.h, libjpeg_coef.h), pixels of them (pixel_path.h;
 * libjpeg_pixels.h), and whole pictures' coefficients for tools (transcoder.h). Callers: decode/ above all,
 * cache and convert; it knows no other kind of picture.
 *
 *   coefficients of the blocks that matter ── IDCT ──► planes ── resampled, each from its own resolution ──┐
 *                                                                              result ◄── colour ◄─────────┘
 *
 * There is never a full-size RGB picture. The result does not depend on the source of the coefficients (our
 * decoders, libjpeg's, a coefficient record). */
#ifndef MRI_PIXEL_PATH_H
#define MRI_PIXEL_PATH_H

#include "formats/image/jpeg_frame.h"
#include "pipeline/pixels/resample.h"

/* Where coefficients come from. window: one for each component. rows: the coefficients of one MCU row, called
 * in rising order, exactly once for each row that has requested blocks. end: after the last; may find damage
 * too. only_dc: called after window where the first coefficient of each block is enough; the others need not
 * be stored. NULL: they always are. */
typedef struct mri_coefficients {
    void *self;
    const mri_jpeg_frame *frame;
    int (*window)(void *self, const mri_block_window *window, mr_error *err);
    int (*rows)(void *self, uint32_t mcu_row, const mri_block_rows *out, mr_error *err);
    int (*end)(void *self, mr_error *err);
    void (*only_dc)(void *self);
} mri_coefficients;

/* Planes and rows of coefficients: one thread's. They grow to the largest picture seen and stay. */
typedef struct mri_pixel_path mri_pixel_path;
int mri_pixel_path_create(mri_pixel_path **out);
void mri_pixel_path_destroy(mri_pixel_path *r); /* accepts NULL */
/* The most it may hold after pictures of up to these pixels, none wider than width, to results of up to out x
 * out. */
uint64_t mri_pixel_path_bound_bytes(uint64_t pixels, uint64_t width, uint64_t out);

/* Does the pixel path support this picture? 1 component, or 3 of YCbCr or RGB. */
bool mri_pixel_path_supports(const mri_jpeg_frame *frame);

/* Result pixels of the stored picture as x and y say, channels 1 or 3, interleaved, rows dst_stride bytes
 * apart. x and y: in pixels of the picture, units 1/1. flip: right to left. plan: working memory. reduce:
 * where the picture is reduced to an eighth or less in both directions, planes are of the means of blocks,
 * and not of samples. */
int mri_pixel_path_run(mri_pixel_path *r, mri_resample_plan *plan, const mri_coefficients *from,
                       const mri_axis *x, const mri_axis *y, mri_filter filter, bool flip, bool reduce,
                       uint32_t channels, uint8_t *dst, size_t dst_stride, mr_error *err);

#endif
