/* pipeline/decode/jpeg/libjpeg_pixels.h: a JPEG's pixels as libjpeg-turbo makes them. Private. */
#ifndef MRI_LIBJPEG_PIXELS_H
#define MRI_LIBJPEG_PIXELS_H

#include "formats/image/jpeg_frame.h"
#include "pipeline/pixels/pixels.h"

typedef struct mri_jpeg mri_jpeg;

int mri_jpeg_create(mri_jpeg **out);
void mri_jpeg_destroy(mri_jpeg *j); /* accepts NULL */

typedef struct mri_jpeg_request {
    const void *data;
    size_t bytes;
    const mr_image_header *header; /* of data: what memory was checked against */
    uint32_t channels;             /* 1 or 3 */
    uint32_t max_scans;
    uint64_t max_pixels;
    mri_rect part; /* of the stored picture, inside it */
} mri_jpeg_request;

/* Decode part into buffer, which grows as needed; *out shows exactly the part. Its pixels are those a decode
 * of the whole picture gives. MR_EFORMAT also for what libjpeg merely warns of, as far as it looked: what
 * lies below the part is not read, except that the file must have its end marker. */
int mri_jpeg_decode(mri_jpeg *j, const mri_jpeg_request *request, mri_buffer *buffer, mri_view *out,
                    mr_error *err);

#endif
