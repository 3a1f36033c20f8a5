/* pipeline/pixels/pixels.h: pictures in memory: growing buffers, views, windows, orientation, channels.
 * Private.
 *
 * The room of pixels takes views of 8-bit pictures. It gives them cut, turned, resampled (resample.h) or with
 * other colours (colour.h), the same bits on every machine. Callers: decode, augment, fields and convert; it
 * knows no encoding and no sample.
 *
 * A view is somebody else's pixels seen as a picture: rows at a stride, interleaved (plane_bytes 0) or in
 * planes. */
#ifndef MRI_PIXELS_H
#define MRI_PIXELS_H

#include "base/util.h"
#include "millrace/pipeline.h"

/* Memory that grows and stays, on a cache line. Start with {0}. */
typedef struct mri_buffer {
    uint8_t *data;
    size_t bytes;
} mri_buffer;

/* At least bytes; growing loses its contents. MR_OK or MR_ENOMEM. */
int mri_buffer_need(mri_buffer *b, size_t bytes);
void mri_buffer_free(mri_buffer *b);

typedef struct mri_rect {
    uint32_t x, y, width, height;
} mri_rect;

typedef struct mri_view {
    const uint8_t *pixels;
    uint32_t width, height, channels;
    size_t stride;      /* bytes from row to row */
    size_t plane_bytes; /* from plane to plane; 0: interleaved */
} mri_view;

/* width * height * channels; false on overflow. */
bool mri_picture_bytes(uint64_t width, uint64_t height, uint32_t channels, size_t *out);

/* MR_OK, or MR_ELIMIT saying so. height is not 0. */
int mri_check_pixels(uint64_t width, uint64_t height, uint64_t max_pixels, mr_error *err);

/* Pixels one after the other, row after row, which stay the caller's. */
static inline mri_view mri_view_packed(const uint8_t *pixels, uint32_t width, uint32_t height,
                                       uint32_t channels)
{
    return (mri_view){.pixels = pixels,
                      .width = width,
                      .height = height,
                      .channels = channels,
                      .stride = (size_t)width * channels};
}

/* The part r of v, without copying. */
mri_view mri_view_part(const mri_view *v, mri_rect r);

/* What lies outside the picture in a window. MIRROR: its mirror images, outermost pixels not repeated. */
typedef enum mri_outside { MRI_OUTSIDE_ZERO, MRI_OUTSIDE_EDGE, MRI_OUTSIDE_MIRROR } mri_outside;

/* The pixel of a side that its mirror images show at `at`. */
uint32_t mri_reflected(int64_t at, uint32_t side);

/* Copy the width x height window whose first pixel is (x, y) of v, which may lie outside, packed and
 * interleaved to dst, each row right to left with flip. channels 1 or 3. */
void mri_copy_window(const mri_view *v, int64_t x, int64_t y, uint32_t width, uint32_t height,
                     mri_outside outside, bool flip, uint8_t *dst);

/* Turn a packed picture left to right, in place. channels 1 or 3. */
void mri_mirror(uint8_t *pixels, uint32_t width, uint32_t height, uint32_t channels);

/* EXIF orientations 1..8: the upright picture is the stored one with its axes exchanged or not, whose pixels
 * are then taken from the other end of the stored x or y or not. */
typedef struct mri_orientation {
    bool swap, mirror_x, mirror_y;
} mri_orientation;

mri_orientation mri_orientation_of(uint32_t orientation);
/* The orientation whose upright picture is the mirror image of this one's. */
uint32_t mri_orient_flipped(uint32_t orientation);
/* Where a rectangle of the upright picture lies in the stored one of width x height. */
mri_rect mri_orient_rect(mri_rect upright, uint32_t orientation, uint32_t width, uint32_t height);
/* Turn an interleaved view upright, packed to dst. */
void mri_orient(const mri_view *stored, uint32_t orientation, uint8_t *dst);
static inline bool mri_orient_swaps(uint32_t orientation) { return orientation >= 5; }

/* Gray of a colour: BT.601 weights in 1/65536, rounded. Equal channels give that value exactly. */
static inline uint8_t mri_gray(uint32_t r, uint32_t g, uint32_t b)
{
    return (uint8_t)((19595 * r + 38470 * g + 7471 * b + 32768) >> 16);
}

/* Pixels of any layout and 1 to 4 channels to channels 1 or 3, packed and interleaved: gray is repeated,
 * colour becomes its gray, alpha (channel 2 or 4) is dropped. */
void mri_convert_channels(const mri_view *v, uint32_t channels, uint8_t *dst);

#endif
