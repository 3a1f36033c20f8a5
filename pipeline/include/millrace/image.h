/* millrace/image.h: one picture: its header, decoding, resizing, encoding. */
#ifndef MILLRACE_IMAGE_H
#define MILLRACE_IMAGE_H

#include "millrace/formats.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A decoded picture: 8 bits per value, row by row from the top, in each row pixel by pixel from the left. */
typedef struct mr_image {
    uint32_t width, height, channels; /* in pixels; channels 1 (gray) or 3 (red, green, blue) */
    uint8_t *pixels;                  /* height * width * channels, rows packed; owned: mr_image_free() */
} mr_image;

/* Computation of a JPEG's pixels. OWN: planes from coefficients, planes resampled at their own resolution,
 * colour conversion last: no full-size picture, and the same bits for every source of coefficients. LIBJPEG:
 * libjpeg-turbo's RGB, then resampled, for comparison with programs that use libjpeg-turbo. The two differ in
 * rounding and in the interpolation of chroma. LIBJPEG differs from these programs in two cases: for a
 * progressive file that lacks scans, libjpeg's block smoothing, which invents missing detail, is off, so that
 * the same coefficients give the same pixels in any file; and CMYK is multiplied out. REDUCED: as OWN, but a
 * rectangle that is reduced to an eighth or less in both directions is resampled from the means of the blocks
 * of 8 x 8 samples: faster for photographs of 12 million pixels, a little less sharp, chroma most of all. The
 * bits are the same for every source of coefficients, as with OWN. */
typedef enum mr_pixels { MR_PIXELS_OWN = 0, MR_PIXELS_LIBJPEG = 1, MR_PIXELS_REDUCED = 2 } mr_pixels;

/* Kinds of picture files, as bits of mr_decode_config.pictures. */
enum {
    MR_PICTURES_JPEG = 1,
    MR_PICTURES_PNG = 2,
    MR_PICTURES_GIF = 4,
    MR_PICTURES_BMP = 8,
    /* The next four need a library, which is opened when the first picture needs it */
    MR_PICTURES_WEBP = 16, /* libwebp */
    MR_PICTURES_TIFF = 32, /* libtiff 4.5 or newer */
    MR_PICTURES_HEIC = 64, /* libheif 1.13 or newer */
    MR_PICTURES_AVIF = 128 /* libheif 1.13 or newer */
};

/* Limits and arithmetic of decoding. mr_decode_defaults() sets the defaults. */
typedef struct mr_decode_config {
    size_t struct_size;
    uint32_t channels;   /* 1, 3, or 0: as stored (gray stays 1, everything else becomes 3) */
    uint64_t max_pixels; /* refuse larger images before memory is taken; 1 or more; default 100,000,000 */
    uint32_t max_scans;  /* refuse progressive JPEG with more scans; default 100 */
    bool ignore_exif;    /* default false: EXIF orientation is applied */
    mr_pixels pixels;    /* JPEG: arithmetic of the pixels; default OWN */
    uint32_t pictures;   /* kinds of picture files that are decoded: bits MR_PICTURES_JPEG, ...; others are
                            MR_EUNSUPPORTED; 0, the default: all */
} mr_decode_config;

MR_STABLE_INLINE void mr_decode_defaults(mr_decode_config *cfg);

/* Decode a picture file (JPEG, PNG, GIF, BMP, WebP, TIFF, HEIC or AVIF, detected by content) or copy
 * MR_TYPE_PIXELS. A truncated or damaged picture is MR_EFORMAT with the reason; missing areas are never
 * filled with grey. On success the caller owns out->pixels. Any thread. Rules: CMYK is multiplied out (with
 * inverted values when Adobe's marker says so), 16-bit samples keep their high byte, alpha is dropped and the
 * colour below it is kept, gray is computed from colour by BT.601, and of several pictures in a file the
 * first counts. cfg may be NULL: the defaults. */
MR_STABLE int mr_image_decode(const mr_value *value, const mr_decode_config *cfg, mr_image *out,
                              mr_error *err);
/* Can this machine decode picture files of this type (MR_TYPE_JPEG, MR_TYPE_WEBP, ...)? MR_OK;
 * MR_EUNSUPPORTED: a library is missing, and err names it and the package to install; MR_EINVAL:
 * type is no picture file's. Opens the library. Any thread. */
MR_API int mr_image_can_decode(mr_type type, mr_error *err);
/* Free the pixels of an image that this library has filled. Accepts NULL. */
MR_STABLE void mr_image_free(mr_image *image);

/* A rectangle of the upright picture and its output size. */
typedef struct mr_image_part {
    size_t struct_size;
    uint32_t x, y, width, height;   /* pixels of the upright picture; width, height 0: up to its end */
    uint32_t out_width, out_height; /* size after resizing with antialiasing; 0: the rectangle's size */
    bool flip;                      /* left to right */
} mr_image_part;

static inline void mr_image_part_defaults(mr_image_part *part);

/* Decode only the needed area of a picture: pixels of a JPEG to the left and right of the rectangle are not
 * computed, and data below it are not decoded, so damage there is not detected (except in a PNG, whose
 * checksums are compared for all chunks). The pixels equal a loader's pixels for the same rectangle and size.
 * out, cfg, value and threads as for mr_image_decode(). MR_EINVAL: the rectangle is not inside the picture.
 * MR_ELIMIT: the result has more pixels than cfg.max_pixels. */
MR_API int mr_image_decode_part(const mr_value *value, const mr_image_part *part, const mr_decode_config *cfg,
                                mr_image *out, mr_error *err);
/* Resize with antialiasing (a triangle filter widened by the scale) to width x height. out is allocated. */
MR_API int mr_image_resize(const mr_image *in, uint32_t width, uint32_t height, mr_image *out, mr_error *err);
/* Encode as baseline JPEG, quality 1..100, 4:2:0 below 91, 4:4:4 from 91 on; *data is malloc'd, the caller
 * frees it. */
MR_API int mr_image_encode_jpeg(const mr_image *in, int quality, void **data, size_t *bytes, mr_error *err);
/* Encode as 8-bit PNG; *data is malloc'd, the caller frees it. */
MR_API int mr_image_encode_png(const mr_image *in, void **data, size_t *bytes, mr_error *err);

/* A budget of host memory that loaders and checkers share. Each loader reserves its fixed memory when it is
 * opened; large pictures, which need more than a worker's own memory, take turns with the remainder. The
 * budget never changes a picture's pixels: the picture waits for memory, and a picture that can never fit
 * ends the run with MR_ELIMIT. bytes 0: half of the memory that the process may use. MR_OK or MR_ENOMEM. Any
 * thread. */
typedef struct mr_budget mr_budget;
MR_API int mr_budget_create(mr_budget **out, uint64_t bytes);
MR_API void mr_budget_destroy(mr_budget *b); /* after all its users are closed; accepts NULL */

/* A checker of whole pictures, for tools. One thread at a time. */
typedef struct mr_checker mr_checker;

MR_API int mr_checker_create(mr_checker **out);
MR_API void mr_checker_destroy(mr_checker *c); /* accepts NULL */
/* Decode a whole picture (a picture file, PIXELS, COEF) and discard the pixels: MR_OK, or the error. Entry
 * points of a JPEG must be correct. cfg may be NULL: the defaults. */
MR_API int mr_checker_run(mr_checker *c, const mr_value *value, const mr_decode_config *cfg, mr_error *err);
/* From now on take the memory for large pictures from budget b, which must outlive c; NULL: no budget.
 * Checkers that share a budget wait for each other. MR_ELIMIT with sys_errno ENOMEM: the picture can never
 * fit into b; it may be intact. */
MR_API void mr_checker_share(mr_checker *c, mr_budget *b);
/* Encode an MR_TYPE_COEF value as a baseline JPEG file with the same coefficients; *data is malloc'd, the
 * caller frees it. */
MR_API int mr_coef_to_jpeg(mr_checker *c, const mr_value *value, const mr_decode_config *cfg, void **data,
                           size_t *bytes, mr_error *err);

/* ------------------------------------------------------------------------------ struct sizes
 *
 * Nothing to read here for a program in C or C++. The library exports the functions below in place of the
 * inline ones above: each inline function passes the size of its struct in the caller's header (base.h). A
 * program in another language sets struct_size and calls ..._sized. */

MR_STABLE void mr_decode_defaults_sized(mr_decode_config *cfg, size_t struct_size);
static inline void mr_decode_defaults(mr_decode_config *cfg) { mr_decode_defaults_sized(cfg, sizeof *cfg); }

MR_API void mr_image_part_defaults_sized(mr_image_part *part, size_t struct_size);
static inline void mr_image_part_defaults(mr_image_part *part)
{
    mr_image_part_defaults_sized(part, sizeof *part);
}

#ifdef __cplusplus
}
#endif
#endif
