/* pipeline/decode/other/libraries.h: every function of libwebp, libtiff and libheif that is called, in a
 * table for each. A library is opened when the first picture needs it, so one program runs with and without
 * it, and its headers are not needed to build. Private to this folder. */
#ifndef MRI_PICTURE_LIBRARIES_H
#define MRI_PICTURE_LIBRARIES_H

#include <stdarg.h>
#include <sys/types.h>

#include "millrace/formats.h"

/* ---- libwebp: as webp/decode.h of version 0.2 and newer has them ---- */

struct WebPIDecoder;

#define MRI_WEBP_CALLS(X)                                                                                    \
    X(struct WebPIDecoder *, WebPINewRGB, (int mode, uint8_t *, size_t bytes, int stride))                   \
    X(void, WebPIDelete, (struct WebPIDecoder *))                                                            \
    X(int, WebPIUpdate, (struct WebPIDecoder *, const uint8_t *, size_t))                                    \
    X(uint8_t *, WebPIDecGetRGB,                                                                             \
      (const struct WebPIDecoder *, int *last_y, int *width, int *height, int *stride))

enum {
    MRI_WEBP_RGB = 0,
    MRI_WEBP_OK = 0,
    MRI_WEBP_NO_MEMORY = 1,
    MRI_WEBP_SUSPENDED = 5,
    MRI_WEBP_SHORT = 7
};

typedef struct mri_webp_calls {
#define MRI_FIELD(result, f, parameters) result(*f) parameters;
    MRI_WEBP_CALLS(MRI_FIELD)
#undef MRI_FIELD
} mri_webp_calls;

/* ---- libtiff: as tiffio.h of version 4.5 and newer has them ---- */

struct tiff;
struct TIFFOpenOptions;

typedef ssize_t mri_tiff_transfer(void *, void *, ssize_t);
typedef uint64_t mri_tiff_seek(void *, uint64_t, int);
typedef int mri_tiff_close(void *);
typedef uint64_t mri_tiff_size(void *);
typedef int mri_tiff_map(void *, void **, uint64_t *);
typedef void mri_tiff_unmap(void *, void *, uint64_t);
typedef int mri_tiff_message(struct tiff *, void *user, const char *module, const char *format, va_list);

#define MRI_TIFF_CALLS(X)                                                                                    \
    X(struct TIFFOpenOptions *, TIFFOpenOptionsAlloc, (void))                                                \
    X(void, TIFFOpenOptionsFree, (struct TIFFOpenOptions *))                                                 \
    X(void, TIFFOpenOptionsSetMaxSingleMemAlloc, (struct TIFFOpenOptions *, ssize_t))                        \
    X(void, TIFFOpenOptionsSetErrorHandlerExtR, (struct TIFFOpenOptions *, mri_tiff_message *, void *))      \
    X(void, TIFFOpenOptionsSetWarningHandlerExtR, (struct TIFFOpenOptions *, mri_tiff_message *, void *))    \
    X(struct tiff *, TIFFClientOpenExt,                                                                      \
      (const char *, const char *, void *, mri_tiff_transfer *, mri_tiff_transfer *, mri_tiff_seek *,        \
       mri_tiff_close *, mri_tiff_size *, mri_tiff_map *, mri_tiff_unmap *, struct TIFFOpenOptions *))       \
    X(void, TIFFClose, (struct tiff *))                                                                      \
    X(int, TIFFGetFieldDefaulted, (struct tiff *, uint32_t, ...))                                            \
    X(int, TIFFSetField, (struct tiff *, uint32_t, ...))                                                     \
    X(int, TIFFIsTiled, (struct tiff *))                                                                     \
    X(ssize_t, TIFFScanlineSize, (struct tiff *))                                                            \
    X(ssize_t, TIFFTileSize, (struct tiff *))                                                                \
    X(int, TIFFReadScanline, (struct tiff *, void *, uint32_t row, uint16_t sample))                         \
    X(ssize_t, TIFFReadTile, (struct tiff *, void *, uint32_t x, uint32_t y, uint32_t z, uint16_t sample))

typedef struct mri_tiff_calls {
#define MRI_FIELD(result, f, parameters) result(*f) parameters;
    MRI_TIFF_CALLS(MRI_FIELD)
#undef MRI_FIELD
} mri_tiff_calls;

/* ---- libheif: as libheif/heif.h of version 1.13 and newer has them ---- */

struct heif_context;
struct heif_image_handle;
struct heif_image;

typedef struct mri_heif_error {
    int code, detail;
    const char *message;
} mri_heif_error;

/* heif_decoding_options: the members that are set here, of a version's number and more. */
struct mri_heif_options {
    uint8_t version, as_stored;
    void *progress[4];
    uint8_t to_8_bits; /* 2 */
    uint8_t strict;    /* 3: damage is an error */
};

#define MRI_HEIF_CALLS(X)                                                                                    \
    X(int, heif_have_decoder_for_format, (int coding))                                                       \
    X(struct heif_context *, heif_context_alloc, (void))                                                     \
    X(void, heif_context_free, (struct heif_context *))                                                      \
    X(void, heif_context_set_max_decoding_threads, (struct heif_context *, int))                             \
    X(mri_heif_error, heif_context_read_from_memory_without_copy,                                            \
      (struct heif_context *, const void *, size_t, const void *))                                           \
    X(mri_heif_error, heif_context_get_primary_image_handle,                                                 \
      (struct heif_context *, struct heif_image_handle **))                                                  \
    X(void, heif_image_handle_release, (const struct heif_image_handle *))                                   \
    X(int, heif_image_handle_get_width, (const struct heif_image_handle *))                                  \
    X(int, heif_image_handle_get_height, (const struct heif_image_handle *))                                 \
    X(struct mri_heif_options *, heif_decoding_options_alloc, (void))                                        \
    X(void, heif_decoding_options_free, (struct mri_heif_options *))                                         \
    X(mri_heif_error, heif_decode_image,                                                                     \
      (const struct heif_image_handle *, struct heif_image **, int space, int chroma,                        \
       const struct mri_heif_options *))                                                                     \
    X(int, heif_image_get_width, (const struct heif_image *, int channel))                                   \
    X(int, heif_image_get_height, (const struct heif_image *, int channel))                                  \
    X(const uint8_t *, heif_image_get_plane_readonly, (const struct heif_image *, int channel, int *stride)) \
    X(void, heif_image_release, (const struct heif_image *))

enum { MRI_HEIF_OK = 0, MRI_HEIF_UNKNOWN_FILE = 3, MRI_HEIF_UNKNOWN_FEATURE = 4, MRI_HEIF_NO_MEMORY = 6 };
enum {
    MRI_HEIF_HEVC = 1,
    MRI_HEIF_AV1 = 4,
    MRI_HEIF_RGB = 1,
    MRI_HEIF_INTERLEAVED_RGB = 10,
    MRI_HEIF_INTERLEAVED = 10
};

typedef struct mri_heif_calls {
#define MRI_FIELD(result, f, parameters) result(*f) parameters;
    MRI_HEIF_CALLS(MRI_FIELD)
#undef MRI_FIELD
} mri_heif_calls;

/* The table, or NULL with MR_EUNSUPPORTED in err, which names the kind, the library and what to install. A
 * library stays open. Any thread. */
const mri_webp_calls *mri_webp_need(mr_error *err);
const mri_tiff_calls *mri_tiff_need(mr_error *err);
/* type: MR_TYPE_HEIC or MR_TYPE_AVIF; libheif may lack the decoder of one. */
const mri_heif_calls *mri_heif_need(mr_type type, mr_error *err);

#endif
