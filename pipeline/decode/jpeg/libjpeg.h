/* pipeline/decode/jpeg/libjpeg.h: code shared by all uses of libjpeg-turbo: returning its errors, choosing
 * which warnings are errors, limiting its memory. Private to libjpeg*.c.
 *
 * libjpeg reports errors by a call that must not return; ours jumps to the one setjmp() of the function that
 * was entered. What libjpeg warns of (data that ends early, bad codes) it would paint grey, so a warning is
 * an error here, except for a few about headers that change no pixel. */
#ifndef MRI_LIBJPEG_H
#define MRI_LIBJPEG_H

#include <stdio.h>

#include <jpeglib.h>

#include <jerror.h>
#include <setjmp.h>

#include "base/util.h"
#include "millrace/formats.h"

typedef struct mri_libjpeg_errors {
    struct jpeg_error_mgr manager; /* first: libjpeg hands it back */
    jmp_buf jump;
    int code;           /* libjpeg's message number, or 0: too many scans */
    uint32_t max_scans; /* for mri_libjpeg_check_scans() */
    char text[JMSG_LENGTH_MAX];
} mri_libjpeg_errors;

/* manager is then what libjpeg's objects take as err. */
void mri_libjpeg_errors_init(mri_libjpeg_errors *e);

/* For progress monitors: jumps when more than max_scans have begun. */
void mri_libjpeg_check_scans(mri_libjpeg_errors *e, const struct jpeg_decompress_struct *d);

/* The error that caused the jump. bytes: of the file that src reads; 0: none is being read. */
int mri_libjpeg_error_of(const mri_libjpeg_errors *e, const struct jpeg_source_mgr *src, size_t bytes,
                         mr_error *err);

/* Where a file goes that libjpeg writes: memory that grows, malloc'd, ours until the end, so that a failure
 * cannot lose it. */
typedef struct mri_libjpeg_sink {
    struct jpeg_destination_mgr manager; /* first, as above */
    uint8_t *data;
    size_t bytes; /* of data; manager.free_in_buffer of them are not used */
} mri_libjpeg_sink;

/* Begin with room for bytes; a compressor then takes &sink->manager as dest. MR_OK or MR_ENOMEM. */
int mri_libjpeg_sink_open(mri_libjpeg_sink *sink, size_t bytes, mr_error *err);

/* Behind jpeg_read_header(): is this what memory was checked against, and has it an end? */
int mri_libjpeg_check_header(const struct jpeg_decompress_struct *d, const mr_image_header *header,
                             size_t bytes, mr_error *err);

/* Do all its coefficients fit under mri_jpeg_coefficient_bound()? */
int mri_libjpeg_check_coefficients(const struct jpeg_decompress_struct *d, uint64_t max_pixels,
                                   mr_error *err);

#endif
