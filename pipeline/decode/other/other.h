/* pipeline/decode/other/other.h: picture files besides JPEG and PNG to pixels. Private.
 *
 * Takes the bytes of a file whose header was parsed and checked against the caller's limits. Gives pixels of
 * a part of it, or an error that names its fault. Rules as for PNG: alpha is dropped and the colour below it
 * is kept, gray is computed from colour by BT.601, an index without a colour is damage. Caller:
 * decode/picture.c.
 *
 *   kind   decoder                     part
 *   GIF    gif.c, the first frame      rows below the part are not decoded
 *   BMP    bmp.c                       only the part is read, of RLE all
 *   WebP   webp.c, libwebp             rows below the part are not decoded
 *   TIFF   tiff.c, libtiff             only strips and tiles of the part are decoded
 *   HEIC   heif.c, libheif             all is decoded
 *   AVIF   heif.c, libheif             all is decoded */
#ifndef MRI_OTHER_H
#define MRI_OTHER_H

#include "formats/image/bmp_layout.h"
#include "formats/image/gif_layout.h"
#include "formats/image/tiff_layout.h"
#include "formats/image/webp_layout.h"
#include "pipeline/pixels/pixels.h"

/* Where the pixels of a part go. */
typedef struct mri_other_out {
    uint32_t channels; /* 1 or 3 */
    mri_rect part;     /* of the stored picture */
    uint8_t *pixels;   /* packed */
} mri_other_out;

/* A pixel of the part: one or three bytes. x, y count from the part's corner. */
static inline uint8_t *mri_other_at(const mri_other_out *out, uint32_t x, uint32_t y)
{
    return out->pixels + ((size_t)y * out->part.width + x) * out->channels;
}

static inline void mri_other_put(uint8_t *to, uint32_t channels, uint8_t r, uint8_t g, uint8_t b)
{
    if (channels == 1) {
        *to = mri_gray(r, g, b);
        return;
    }
    to[0] = r;
    to[1] = g;
    to[2] = b;
}

/* Memory to work in, made with the first picture. */
typedef struct mri_gif_work mri_gif_work;
void mri_gif_work_destroy(mri_gif_work *w);

int mri_gif_decode(mri_gif_work **work, const mri_gif_layout *gif, const uint8_t *data, size_t bytes,
                   const mri_other_out *out, mr_error *err);
int mri_bmp_decode(const mri_bmp_layout *bmp, const uint8_t *data, size_t bytes, const mri_other_out *out,
                   mr_error *err);

/* RGB of the whole picture, filled up to the part's last row. */
int mri_webp_decode(const mri_webp_layout *webp, const uint8_t *data, size_t bytes, mri_rect part,
                    uint8_t *pixels, mr_error *err);
/* RGB of the part; room: memory for a row or a tile. */
int mri_tiff_decode(const mri_tiff_layout *tiff, const uint8_t *data, size_t bytes, mri_rect part,
                    mri_buffer *room, uint8_t *pixels, mr_error *err);
/* RGB of the part, of a HEIC or AVIF. */
int mri_heif_decode(const mr_image_header *header, const uint8_t *data, size_t bytes, mri_rect part,
                    uint8_t *pixels, mr_error *err);
/* The most that libtiff and we allocate for rows or a tile. */
uint64_t mri_tiff_library_bytes(const mri_tiff_layout *tiff);

/* Memory that the libraries may allocate for a picture with this header. */
uint64_t mri_other_library_bytes(const mr_image_header *header, const void *data, size_t bytes);

/* MR_OK, or MR_ELIMIT, MR_EFORMAT: a library would prepare a larger picture than the header's, of more than
 * max_pixels pixels. */
int mri_other_allowed(const mr_image_header *header, const void *data, size_t bytes, uint64_t max_pixels,
                      mr_error *err);

/* MR_OK, or MR_EUNSUPPORTED: the library that decodes files of this type is missing, err says which. */
int mri_other_ready(mr_type type, mr_error *err);

/* What one thread decodes such pictures with. Start with {0}. */
typedef struct mri_others {
    mri_gif_work *gif;
    mri_buffer room; /* rows and tiles of TIFF */
} mri_others;

void mri_others_free(mri_others *o);

/* Decode part of the stored picture, channels 1 or 3, into buffer; header is that of these bytes. */
int mri_other_decode(mri_others *o, const void *data, size_t bytes, const mr_image_header *header,
                     uint32_t channels, mri_rect part, mri_buffer *buffer, mri_view *out, mr_error *err);

#endif
