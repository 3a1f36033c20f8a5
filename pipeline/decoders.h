/* pipeline/decoders.h: encoded bytes to pixels: the JPEG and PNG decoders, and one face for both and for raw pixels. Private. */
#ifndef MRI_DECODERS_H
#define MRI_DECODERS_H

#include "pipeline/pixels.h"

typedef struct mri_jpeg mri_jpeg;

int  mri_jpeg_create(mri_jpeg **out);
void mri_jpeg_destroy(mri_jpeg *j); /* accepts NULL */

/* Bytes of coefficient memory a multi-scan picture may take under a limit of max_pixels. */
uint64_t mri_jpeg_coefficient_bound(uint64_t max_pixels);

typedef struct mri_jpeg_request {
    const void            *data;
    size_t                 bytes;
    const mr_image_header *header;   /* of data: what memory was checked against */
    uint32_t               channels; /* 1 or 3 */
    uint32_t               max_scans;
    uint64_t               max_pixels;
    mri_rect               part;     /* of the stored picture, inside it */
} mri_jpeg_request;

/* Decode part into buffer, which grows as needed; *out shows exactly the part. Its pixels are those a decode of the whole
 * picture gives. MR_EFORMAT also for what libjpeg merely warns of, as far as it looked: what lies below the part is not read,
 * except that the file must have its end marker. */
int mri_jpeg_decode(mri_jpeg *j, const mri_jpeg_request *request, mri_buffer *buffer, mri_view *out, mr_error *err);

/* Decode the whole picture, channels 1 or 3, packed into buffer. */
int mri_png_decode(const void *data, size_t bytes, const mr_image_header *header, uint32_t channels, mri_buffer *buffer,
                   mri_view *out, mr_error *err);

/* What one thread decodes with. Start with {0}; the JPEG decoder comes with the first JPEG. */
typedef struct mri_decoder {
    mri_jpeg  *jpeg;
    mri_buffer pixels, other; /* as decoded; upright or with other channels */
} mri_decoder;

void mri_decoder_free(mri_decoder *d);

/* A value looked at but not decoded. */
typedef struct mri_picture {
    const mr_value *value;
    mr_image_header header;        /* encoded pictures; type 0: raw pixels */
    uint32_t        width, height; /* upright */
    uint32_t        channels;      /* 1 or 3: what channels 0, as stored, comes to */
    uint32_t        orientation;
} mri_picture;

/* Check kind, header and limits. Takes no memory. */
int mri_picture_open(mri_picture *p, const mr_value *value, const mr_decode_config *cfg, mr_error *err);

/* Pixels of part of the upright picture, channels 1 or 3. out lies in d's buffers or in the value itself; it may be in planes
 * only for raw pixels. */
int mri_picture_decode(mri_decoder *d, const mri_picture *p, const mr_decode_config *cfg, uint32_t channels, mri_rect part,
                       mri_view *out, mr_error *err);

#endif
