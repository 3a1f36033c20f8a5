/* pipeline/decode/other/heif.c: the picture that a HEIC or AVIF shows to pixels, with libheif.
 *
 *   the file in memory ──► libheif: coded picture or its tiles, cut and turned ──► RGB ──► the part
 *
 * libheif always decodes the whole picture. Samples of more than 8 bits keep their high 8 bits. */
#include <stdio.h>

#include "formats/image/picture_files.h"
#include "pipeline/decode/other/libraries.h"
#include "pipeline/decode/other/other.h"

typedef struct work {
    const mri_heif_calls *calls;
    const char *name;
    struct heif_context *context;
    struct heif_image_handle *handle;
    struct mri_heif_options *options;
    struct heif_image *image;
} work;

/* rc of what libheif said. Its text lasts as long as the context. */
static int failed(const work *w, mri_heif_error e, mr_error *err)
{
    char text[160];
    snprintf(text, sizeof text, "%s", e.message ? e.message : "no reason given");
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < ' ' || (unsigned char)*c > '~') *c = '?';
    if (e.code == MRI_HEIF_NO_MEMORY)
        return mr_error_set(err, MR_ENOMEM, "%s: libheif has no memory for the picture: %s", w->name, text);
    if (e.code == MRI_HEIF_UNKNOWN_FILE || e.code == MRI_HEIF_UNKNOWN_FEATURE)
        return mr_error_set(err, MR_EUNSUPPORTED,
                            "%s: libheif cannot decode this kind: %s: convert it to JPEG or PNG", w->name,
                            text);
    return mr_error_set(err, MR_EFORMAT, "%s: libheif cannot decode the data: %s: damaged", w->name, text);
}

static void close_all(work *w)
{
    if (w->image) w->calls->heif_image_release(w->image);
    if (w->options) w->calls->heif_decoding_options_free(w->options);
    if (w->handle) w->calls->heif_image_handle_release(w->handle);
    if (w->context) w->calls->heif_context_free(w->context);
}

static int decode(work *w, const mr_image_header *header, const uint8_t *data, size_t bytes, mr_error *err)
{
    const mri_heif_calls *c = w->calls;
    w->context = c->heif_context_alloc();
    w->options = c->heif_decoding_options_alloc();
    if (!w->context || !w->options)
        return mr_error_set(err, MR_ENOMEM, "%s: no memory for a decoder", w->name);
    if (w->options->version >= 2) w->options->to_8_bits = 1;
    if (w->options->version >= 3) w->options->strict = 1;
    c->heif_context_set_max_decoding_threads(w->context, 0); /* tiles in this thread: the pool has its own */
    mri_heif_error e = c->heif_context_read_from_memory_without_copy(w->context, data, bytes, NULL);
    if (e.code == MRI_HEIF_OK) e = c->heif_context_get_primary_image_handle(w->context, &w->handle);
    if (e.code != MRI_HEIF_OK) return failed(w, e, err);
    const int width = c->heif_image_handle_get_width(w->handle),
              height = c->heif_image_handle_get_height(w->handle);
    if (width != (int64_t)header->width || height != (int64_t)header->height)
        return mr_error_set(err, MR_EFORMAT,
                            "%s: libheif sees %d x %d pixels, the header has %u x %u: damaged", w->name,
                            width, height, header->width, header->height);
    e = c->heif_decode_image(w->handle, &w->image, MRI_HEIF_RGB, MRI_HEIF_INTERLEAVED_RGB, w->options);
    return e.code == MRI_HEIF_OK ? MR_OK : failed(w, e, err);
}

static int take_pixels(const work *w, const mr_image_header *header, mri_rect part, uint8_t *pixels,
                       mr_error *err)
{
    const mri_heif_calls *c = w->calls;
    int stride = 0;
    const uint8_t *rows = c->heif_image_get_plane_readonly(w->image, MRI_HEIF_INTERLEAVED, &stride);
    if (!rows || c->heif_image_get_width(w->image, MRI_HEIF_INTERLEAVED) != (int64_t)header->width ||
        c->heif_image_get_height(w->image, MRI_HEIF_INTERLEAVED) != (int64_t)header->height ||
        stride < 3 * (int64_t)header->width)
        return mr_error_set(err, MR_EFORMAT,
                            "%s: the coded picture has another size than the header: damaged", w->name);
    for (uint32_t y = 0; y < part.height; y++)
        memcpy(pixels + 3 * (size_t)y * part.width,
               rows + (size_t)(part.y + y) * (size_t)stride + 3 * (size_t)part.x, 3 * (size_t)part.width);
    return MR_OK;
}

int mri_heif_decode(const mr_image_header *header, const uint8_t *data, size_t bytes, mri_rect part,
                    uint8_t *pixels, mr_error *err)
{
    work w = {.calls = mri_heif_need(header->type, err), .name = mri_picture_kind_name(header->type)};
    if (!w.calls) return MR_EUNSUPPORTED;
    int rc = decode(&w, header, data, bytes, err);
    if (rc == MR_OK) rc = take_pixels(&w, header, part, pixels, err);
    close_all(&w);
    return rc;
}
