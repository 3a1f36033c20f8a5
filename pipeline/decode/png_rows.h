/* pipeline/decode/png_rows.h: rows of an ordinary PNG, up to the last wanted one. Private to png.c.
 *
 *   IDAT bodies ──gathered──► ISA-L's inflate ──► some rows at a time ──► filters undone ──► wanted columns
 *
 * Takes pictures of 8 or 16 bits a sample, of all colour types, not interlaced. Whatever else there is, and
 * everything that is odd on the way, is MR_EUNSUPPORTED: libspng, which then decodes the picture, says what
 * is wrong. Pixels are the same. */
#ifndef MRI_PNG_ROWS_H
#define MRI_PNG_ROWS_H

#include "pipeline/decode/png_chunks.h"
#include "pipeline/pixels/pixels.h"

typedef struct mri_png_rows mri_png_rows; /* of one thread; its size is fixed */

int mri_png_rows_create(mri_png_rows **out);
void mri_png_rows_destroy(mri_png_rows *r); /* accepts NULL */

/* Pixels of a part, channels 1 or 3, packed to dst. chunks: opened. MR_OK or MR_EUNSUPPORTED. A part that
 * has the last row is MR_OK only when the compressed data end after it with their checksum. */
int mri_png_rows_decode(mri_png_rows *r, mri_png_chunks *chunks, const mr_image_header *header,
                        uint32_t channels, mri_rect part, uint8_t *dst);

/* Undo the filter of one row in place (PNG specification, 9.2). before: the row above, of the same length,
 * its filter undone; zeros for the first one. pixel: bytes of a pixel, 1 to 8. False: no such filter. */
bool mri_png_unfilter(uint8_t *row, const uint8_t *before, size_t bytes, unsigned pixel, unsigned filter);
bool mri_png_unfilter_plain(uint8_t *row, const uint8_t *before, size_t bytes, unsigned pixel,
                            unsigned filter);

#endif
