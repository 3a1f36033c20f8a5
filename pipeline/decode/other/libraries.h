/* pipeline/decode/other/libraries.h: every function of libwebp and libtiff that is called, in a table for
 * each. A library is opened when the first picture needs it, so one program runs with and without it, and its
 * headers are not needed to build. Private to this folder. */
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

/* The table, or NULL with MR_EUNSUPPORTED in err, which names the kind, the library and what to install. A
 * library stays open. Any thread. */
const mri_webp_calls *mri_webp_need(mr_error *err);
const mri_tiff_calls *mri_tiff_need(mr_error *err);

#endif
