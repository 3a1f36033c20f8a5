/* pipeline/jpeg/libjpeg_private.h: what reading (libjpeg_coef.c) and writing (libjpeg_write.c) share. Private to them.
 *
 * libjpeg reports errors by a call that must not return; ours jumps to the one setjmp of the function that was entered. */
#ifndef MRI_LIBJPEG_PRIVATE_H
#define MRI_LIBJPEG_PRIVATE_H

#include <stdio.h>

#include <jpeglib.h>

#include <jerror.h>
#include <setjmp.h>

#include "pipeline/jpeg/libjpeg_coef.h"

struct mri_libjpeg {
    struct jpeg_decompress_struct d; /* made anew for each picture: it would keep tables from one to the next */
    struct jpeg_compress_struct   c; /* while writing */
    struct jpeg_error_mgr         errors;
    struct jpeg_progress_mgr      progress;
    struct jpeg_destination_mgr   sink;
    jmp_buf           jump;
    int               code;      /* libjpeg's message number, or 0: too many scans */
    char              text[JMSG_LENGTH_MAX];
    bool              open;      /* d exists */
    uint32_t          max_scans;
    jvirt_barray_ptr *coef;      /* d's, of the picture that is open */
    mri_jpeg_frame    frame;
    uint8_t          *out;       /* grows; ours until the end, so that a failure cannot lose it */
    size_t            out_bytes;
};

/* Header and coefficients into d; markers: keep APPn and COM. Jumps where libjpeg fails. */
int mri_libjpeg_load(mri_libjpeg *j, const void *data, size_t bytes, uint64_t max_pixels, uint32_t max_scans, bool markers,
                     mr_error *err);
/* What the jump was for. bytes of data are being read, or 0. */
int mri_libjpeg_tell(const mri_libjpeg *j, size_t bytes, mr_error *err);

#endif
