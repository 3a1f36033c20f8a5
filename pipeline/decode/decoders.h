/* pipeline/decode/decoders.h: encoded bytes to pixels: one interface for picture files, coefficient records
 * and raw pixels. Private.
 *
 * Takes a value as a source gives it, and limits. Gives its size before anything is decoded, then pixels of a
 * part of it, resampled or not, or an error that names its fault. Callers: augment, fields, cache and
 * convert; no file, no thread and no batch is known here.
 *
 *   method       pictures                             pixels
 *   PIXEL_PATH   JPEG, coefficients                   jpeg/pixel_path.h, straight to the wanted size
 *   LIBJPEG      JPEG not on the pixel path           jpeg/libjpeg_pixels.c, then resampled
 *                (CMYK, ...), --pixels libjpeg
 *   PNG          PNG                                  png.c, then resampled
 *   OTHER        GIF, BMP                             other/other.h, then resampled
 *   RAW          raw pixels                           where they lie, then resampled */
#ifndef MRI_DECODERS_H
#define MRI_DECODERS_H

#include "formats/image/coef.h"
#include "pipeline/decode/jpeg/pixel_path.h"
#include "pipeline/decode/other/other.h"
#include "pipeline/pixels/resample.h"

struct mri_entropy;
struct mri_jpeg;
struct mri_libjpeg;
struct mri_png_rows;
struct mri_progressive;
struct mri_transcoder;

/* ---- settings (decode_settings.c) ---- */

/* MR_EINVAL: a setting is out of its range; err says which of `name`. */
int mri_decode_check(const mr_decode_config *cfg, const char *name, mr_error *err);
/* A caller's settings, NULL: the defaults, for functions of the public header. */
int mri_decode_settings(mr_decode_config *out, const mr_decode_config *cfg, mr_error *err);
/* The kinds of picture files of cfg.pictures as --pictures takes them, into buf of MRI_PICTURES_TEXT bytes;
 * NULL: all kinds. */
#define MRI_PICTURES_TEXT 64
const char *mri_pictures_text(const mr_decode_config *cfg, char *buf, size_t room);
/* Set cfg->pictures from such a text. False: it is invalid. */
bool mri_pictures_parse(mr_decode_config *cfg, const char *text);

/* ---- PNG (png.c) ---- */

/* Decode part of the picture, channels 1 or 3, into buffer. Of an ordinary picture the compressed data behind
 * the last row of the part are not read. *rows: memory to work in, made with the first picture; destroyed by
 * the caller. */
int mri_png_decode(struct mri_png_rows **rows, const void *data, size_t bytes, const mr_image_header *header,
                   uint32_t channels, mri_rect part, mri_buffer *buffer, mri_view *out, mr_error *err);

/* The numbers of the whole picture as they are stored, one byte each: of a palette the index, of gray the
 * sample, nothing scaled. All but gray and palettes of up to 8 bits is MR_EUNSUPPORTED. Packed into
 * buffer. */
int mri_png_samples(const void *data, size_t bytes, const mr_image_header *header, mri_buffer *buffer,
                    mr_error *err);

/* ---- any picture (picture.c) ---- */

/* What one thread decodes with. Start with {0}; each part comes with the first picture that needs it. */
typedef struct mri_decoder {
    struct mri_entropy *entropy; /* coefficients from our decoder, */
    struct mri_progressive *progressive;
    struct mri_libjpeg *libjpeg; /* from libjpeg's, */
    mri_coef coef;               /* from records */
    mri_block_window window[MRI_JPEG_MAX_COMPONENTS];
    struct mri_jpeg *jpeg;        /* libjpeg's pixels, */
    struct mri_transcoder *whole; /* also the pixels of coefficients, which */
    mr_value again;               /* are made a JPEG of for that; data is malloc'd */
    struct mri_png_rows *png;
    mri_others others;
    mri_pixel_path *pixel_path;
    mri_resample_plan *plan;
    mri_buffer pixels, other; /* as decoded; upright or with other channels */
    bool notes; /* the caller's to set, before opening: entry points of JPEGs without any are noted */
    bool noted; /* of the picture that is open */
} mri_decoder;

/* Entry points of the JPEG that was opened with `notes` and decoded without an error; *out is malloc'd.
 * Other codes: no entry points. */
int mri_decoder_noted(mri_decoder *d, void **out, size_t *bytes);

void mri_decoder_free(mri_decoder *d);
/* How large pictures are: no more pixels, no side longer. */
typedef struct mri_extremes {
    uint64_t pixels, side;
} mri_extremes;

/* The most it may hold after such pictures under cfg, to results of up to this many pixels, not wider or
 * higher than side. */
uint64_t mri_decoder_bound_bytes(const mr_decode_config *cfg, mri_extremes seen, uint64_t results,
                                 uint64_t side);

/* Pixels of a picture as they count for memory, its sides filled up where whole blocks are decoded: the
 * header alone is looked at. 0 where that is damaged or says more than max_pixels: the decoder will tell. */
uint64_t mri_picture_counted(const mr_value *value, const mr_decode_config *cfg, mr_image_header *out);

typedef enum mri_decode_method {
    MRI_DECODE_PIXEL_PATH,
    MRI_DECODE_LIBJPEG,
    MRI_DECODE_PNG,
    MRI_DECODE_OTHER,
    MRI_DECODE_RAW
} mri_decode_method;

/* A value whose header was parsed, not yet decoded. It uses its decoder until the next one is opened with
 * that. */
typedef struct mri_picture {
    const mr_value *value;
    mri_decode_method decode_method;
    mr_image_header header; /* LIBJPEG, PNG, OTHER */
    mri_coefficients from;  /* ROAD */
    uint32_t stored_width, stored_height;
    uint32_t width, height; /* upright */
    uint32_t channels;      /* 1 or 3: what channels 0, as stored, comes to */
    uint32_t orientation;
} mri_picture;

/* MR_EUNSUPPORTED: value is a picture file of a kind that cfg.pictures switches off; err names it. */
int mri_picture_allowed(const mr_value *value, const mr_decode_config *cfg, mr_error *err);

/* Check kind, header and limits. */
int mri_picture_open(mri_picture *p, mri_decoder *d, const mr_value *value, const mr_decode_config *cfg,
                     mr_error *err);

/* Pixels of part of the upright picture, channels 1 or 3. out lies in d's buffers or in the value itself; it
 * may be in planes only for raw pixels. */
int mri_picture_decode(mri_decoder *d, const mri_picture *p, const mr_decode_config *cfg, uint32_t channels,
                       mri_rect part, mri_view *out, mr_error *err);

/* The upright picture resampled as x and y say (units 1/1), packed to dst, right to left with flip. */
int mri_picture_resample(mri_decoder *d, const mri_picture *p, const mr_decode_config *cfg, uint32_t channels,
                         const mri_axis *x, const mri_axis *y, mri_filter filter, bool flip, uint8_t *dst,
                         mr_error *err);

/* An interleaved view resampled: the plan is d's. view's first pixel is (src_x, src_y) of what x and y
 * count. */
int mri_view_resample(mri_decoder *d, const mri_view *view, uint32_t src_x, uint32_t src_y, const mri_axis *x,
                      const mri_axis *y, mri_filter filter, bool flip, uint8_t *dst, mr_error *err);

/* ---- is it sound? (checker.c) ---- */

/* Decode all of a picture value of any type and keep nothing: MR_OK, or its error. Stored entry points
 * of a JPEG must equal the ones that would be made now. */
int mri_picture_check(struct mri_transcoder *w, const mr_value *value, const mr_decode_config *cfg,
                      mr_error *err);
/* The most memory for that, for a picture with this many pixels. */
uint64_t mri_picture_check_bytes(const mr_image_header *header, uint64_t counted);
/* Its check decodes one row of blocks at a time, so the picture's size needs no memory: sequential Huffman
 * JPEG, unless pixels are asked of libjpeg. */
bool mri_picture_is_streamed(const mr_value *value, const mr_image_header *header,
                             const mr_decode_config *cfg);

#endif
