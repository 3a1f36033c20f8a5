/* millrace/image.h: one picture: its header, decoding, resizing, encoding. */
#ifndef MILLRACE_IMAGE_H
#define MILLRACE_IMAGE_H

#include "millrace/formats.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mr_image {
    uint32_t width, height, channels; /* channels 1 or 3 */
    uint8_t *pixels;                  /* height * width * channels, rows packed; owned: mr_image_free() */
} mr_image;

/* How the pixels of a JPEG are computed. OWN: coefficients to planes, planes resampled at their own
 * resolution, colour last: no full-size picture, and the same bits for every source of coefficients. LIBJPEG:
 * libjpeg-turbo's RGB, then resampled: for comparison with programs that use it. The two differ by rounding
 * and by how chroma is interpolated. LIBJPEG differs from those programs where a progressive file lacks
 * scans: libjpeg's block smoothing, which makes up what is missing, is off, so that the same coefficients
 * give the same pixels in any file; and CMYK is multiplied out. */
typedef enum mr_pixels { MR_PIXELS_OWN = 0, MR_PIXELS_LIBJPEG = 1 } mr_pixels;

typedef struct mr_decode_config {
    size_t struct_size;
    uint32_t channels;   /* 1, 3, or 0: as stored (gray stays 1, everything else becomes 3) */
    uint64_t max_pixels; /* refuse larger images before memory is taken; 1 or more; default 100,000,000 */
    uint32_t max_scans;  /* refuse progressive JPEG with more scans; default 100 */
    bool ignore_exif;    /* default false: EXIF orientation is applied */
    mr_pixels pixels;    /* JPEG: whose arithmetic */
} mr_decode_config;

MR_API void mr_decode_defaults_sized(mr_decode_config *cfg, size_t struct_size);
static inline void mr_decode_defaults(mr_decode_config *cfg) { mr_decode_defaults_sized(cfg, sizeof *cfg); }

/* Decode JPEG or PNG (by content) or take MR_TYPE_PIXELS as they are. A truncated or damaged picture is
 * MR_EFORMAT with the reason; it is never filled with grey. On success the caller owns out->pixels. Any
 * thread. Rules: CMYK is multiplied out (with inverted values when Adobe's marker says so), 16-bit samples
 * keep their high byte, alpha is dropped and the colour below it is kept, gray is computed from colour by
 * BT.601. cfg may be NULL: the defaults. */
MR_API int mr_image_decode(const mr_value *value, const mr_decode_config *cfg, mr_image *out, mr_error *err);
MR_API void mr_image_free(mr_image *image);

/* A part of the upright picture, at a size of one's own. */
typedef struct mr_image_part {
    size_t struct_size;
    uint32_t x, y, width, height;   /* pixels of the upright picture; width, height 0: up to its end */
    uint32_t out_width, out_height; /* resized to, with antialiasing; 0: as the part */
    bool flip;                      /* left to right */
} mr_image_part;

MR_API void mr_image_part_defaults_sized(mr_image_part *part, size_t struct_size);
static inline void mr_image_part_defaults(mr_image_part *part)
{
    mr_image_part_defaults_sized(part, sizeof *part);
}

/* Decode no more of a picture than a part needs: of a JPEG what lies left of it and beyond it is never
 * computed, and what lies below it is not even read, so that damage there is not seen. Pixels are those that
 * a loader delivers for the same part and size. out, cfg, values and threads as for mr_image_decode().
 * MR_EINVAL: the part is not inside the picture. MR_ELIMIT: the result has more pixels than cfg.max_pixels.
 */
MR_API int mr_image_decode_part(const mr_value *value, const mr_image_part *part, const mr_decode_config *cfg,
                                mr_image *out, mr_error *err);
/* Resize with antialiasing (a triangle filter widened by the scale) to width x height. out is allocated. */
MR_API int mr_image_resize(const mr_image *in, uint32_t width, uint32_t height, mr_image *out, mr_error *err);
/* Baseline JPEG, quality 1..100, 4:2:0 below 91 and 4:4:4 from there; *data is malloc'd, the caller frees
 * it. */
MR_API int mr_image_encode_jpeg(const mr_image *in, int quality, void **data, size_t *bytes, mr_error *err);
/* 8-bit PNG; as above. */
MR_API int mr_image_encode_png(const mr_image *in, void **data, size_t *bytes, mr_error *err);

/* A budget of host memory that loaders and checkers share: what each loader needs from its start to its end
 * is reserved when it is opened, and pictures that need more than a worker always has take turns with the
 * rest, over all of them. What a picture comes to never depends on the budget: it waits for room, and one
 * that needs more than there can ever be ends the run with MR_ELIMIT. bytes 0: half of what the process may
 * use. MR_OK or MR_ENOMEM. Any thread. */
typedef struct mr_budget mr_budget;
MR_API int mr_budget_create(mr_budget **out, uint64_t bytes);
MR_API void mr_budget_destroy(mr_budget *b); /* behind all that use it; accepts NULL */

/* A checker of whole pictures, for tools: decoders and buffers, for one thread at a time. */
typedef struct mr_checker mr_checker;

MR_API int mr_checker_create(mr_checker **out);
MR_API void mr_checker_destroy(mr_checker *c); /* accepts NULL */
/* Decode a whole picture (JPEG, PNG, PIXELS, COEF) and discard the pixels: MR_OK, or the error. Entry points
 * of a JPEG must be correct. cfg may be NULL: the defaults. */
MR_API int mr_checker_run(mr_checker *c, const mr_value *value, const mr_decode_config *cfg, mr_error *err);
/* From now on what larger pictures take comes out of b, which must outlive c; NULL: of nothing. Checkers of
 * one budget then wait for each other. A picture that b can never have room for: MR_ELIMIT with sys_errno
 * ENOMEM, which says nothing about the picture. */
MR_API void mr_checker_share(mr_checker *c, mr_budget *b);
/* MR_TYPE_COEF: a baseline JPEG file with the same coefficients; *data is malloc'd, the caller frees it. */
MR_API int mr_coef_to_jpeg(mr_checker *c, const mr_value *value, const mr_decode_config *cfg, void **data,
                           size_t *bytes, mr_error *err);

#ifdef __cplusplus
}
#endif
#endif
