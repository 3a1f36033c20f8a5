/* pipeline/decode/jpeg/libjpeg_private.h: what reading (libjpeg_coef.c) and writing (libjpeg_write.c) share.
 * Private to them. */
#ifndef MRI_LIBJPEG_PRIVATE_H
#define MRI_LIBJPEG_PRIVATE_H

#include "pipeline/decode/jpeg/libjpeg.h"
#include "pipeline/decode/jpeg/libjpeg_coef.h"

struct mri_libjpeg {
    /* made anew for each picture: it would keep tables from one to the next */
    struct jpeg_decompress_struct d;
    struct jpeg_compress_struct c; /* while writing */
    mri_libjpeg_errors errors;
    struct jpeg_progress_mgr progress;
    mri_libjpeg_sink sink;  /* of the written JPEG */
    bool open;              /* d exists */
    jvirt_barray_ptr *coef; /* d's, of the picture that is open */
    mri_jpeg_frame frame;
};

/* Header and coefficients into d; markers: keep APPn and COM. Jumps where libjpeg fails. */
int mri_libjpeg_load(mri_libjpeg *j, const void *data, size_t bytes, uint64_t max_pixels, uint32_t max_scans,
                     bool markers, mr_error *err);
/* The error that caused the jump. bytes of data are being read, or 0. */
int mri_libjpeg_report(const mri_libjpeg *j, size_t bytes, mr_error *err);

#endif
