/* pipeline/decode/picture.c: one face for picture files, coefficient records and raw pixels: read the header
 * first, then decode the requested part.
 *
 * The kind comes from the content, never from a name or from the declared type of a field. No memory that
 * depends on the picture's size is taken before its header has been checked against max_pixels. */
#include "pipeline/decode/decoders.h"

#include "pipeline/decode/jpeg/entropy.h"
#include "pipeline/decode/jpeg/libjpeg_coef.h"
#include "pipeline/decode/jpeg/libjpeg_pixels.h"
#include "pipeline/decode/jpeg/progressive.h"
#include "pipeline/decode/jpeg/transcoder.h"
#include "pipeline/decode/png_rows.h"

#define JPEG_MOST_SIDE   65535u
#define BYTES_OF_A_PIXEL 16u /* less than mri_decoder_bound_bytes() has for each */

void mri_decoder_free(mri_decoder *d)
{
    mri_jpeg_destroy(d->jpeg);
    mri_transcoder_destroy(d->whole);
    free((void *)(uintptr_t)d->again.data);
    mri_entropy_destroy(d->entropy);
    mri_progressive_destroy(d->progressive);
    mri_libjpeg_destroy(d->libjpeg);
    mri_png_rows_destroy(d->png);
    mri_others_free(&d->others);
    mri_pixel_path_destroy(d->pixel_path);
    mri_resample_plan_destroy(d->plan);
    mri_buffer_free(&d->pixels);
    mri_buffer_free(&d->other);
    *d = (mri_decoder){0};
}

uint64_t mri_decoder_bound_bytes(const mr_decode_config *cfg, mri_extremes most, uint64_t results,
                                 uint64_t side)
{
    const uint64_t seen = mri_min_u64(most.pixels, cfg->max_pixels),
                   seen_side = mri_min_u64(mri_min_u64(seen, most.side), MRI_RESAMPLE_MAX_SIDE);
    const uint64_t libraries = (uint64_t)1 << 20; /* tables, rows, inflate windows; a GIF's strings */
    const uint64_t remade =
        cfg->pixels == MR_PIXELS_LIBJPEG ? 2 * mri_jpeg_coefficient_bound(seen) : 0; /* blocks,
                                                                                        a
                                                                                        JPEG
                                                                                        of
                                                                                        them
                                                                                      */
    const uint64_t other = 3 * mri_max_u64(seen, results); /* the road's results too, before they are turned
                                                              upright */
    return libraries + 3 * seen + other + remade + mri_entropy_bytes(most.pixels) + mri_progressive_bytes() +
           mri_jpeg_coefficient_bound(seen) +
           mri_pixel_path_bound_bytes(seen, mri_min_u64(seen_side, JPEG_MOST_SIDE), side) +
           2 * mri_resample_bound_bytes(seen_side, side); /* luma and chroma */
}

uint64_t mri_picture_counted(const mr_value *value, const mr_decode_config *cfg, mr_image_header *out)
{
    if (mr_value_header(value, out, NULL) != MR_OK) return 0;
    const uint64_t pixels = mri_times(out->width, out->height);
    if (pixels > cfg->max_pixels) return 0;
    const bool blocks = value->type == MR_TYPE_COEF || out->type == MR_TYPE_JPEG;
    if (!blocks && value->type != MR_TYPE_PIXELS) /* memory of libraries, as pixels */
        return mri_min_u64(
            mri_plus(pixels, mri_other_library_bytes(out, value->data, value->bytes) / BYTES_OF_A_PIXEL),
            cfg->max_pixels);
    if (!blocks) return pixels;
    return mri_min_u64(mri_times((uint64_t)out->width + 32, (uint64_t)out->height + 32), cfg->max_pixels);
}

static int open_pixels(mri_picture *p, const mr_decode_config *cfg, mr_error *err)
{
    const mr_value *v = p->value;
    size_t bytes;
    if (v->ndim != 3 || v->dim[0] == 0 || v->dim[1] == 0 || v->dim[2] < 1 || v->dim[2] > 4 ||
        v->dim[0] > INT32_MAX || v->dim[1] > INT32_MAX)
        return mr_error_set(err, MR_EFORMAT, "pixels: expected dimensions height, width and 1 to 4 channels");
    const int rc = mri_check_pixels(v->dim[1], v->dim[0], cfg->max_pixels, err);
    if (rc) return rc;
    if (!mri_picture_bytes(v->dim[1], v->dim[0], (uint32_t)v->dim[2], &bytes) || bytes != v->bytes)
        return mr_error_set(err, MR_EFORMAT, "pixels: %zu bytes do not make %llu x %llu x %llu", v->bytes,
                            (unsigned long long)v->dim[0], (unsigned long long)v->dim[1],
                            (unsigned long long)v->dim[2]);
    p->stored_height = (uint32_t)v->dim[0];
    p->stored_width = (uint32_t)v->dim[1];
    p->channels = v->dim[2] <= 2 ? 1 : 3;
    return MR_OK;
}

static int no_memory(mr_error *err)
{
    return mr_error_set(err, MR_ENOMEM, "no memory for a picture decoder");
}

/* ---- where coefficients come from ---- */

static int entropy_window(void *self, const mri_block_window *w, mr_error *err)
{
    return mri_entropy_window(self, w, err);
}
static int entropy_rows(void *self, uint32_t row, const mri_block_rows *out, mr_error *err)
{
    return mri_entropy_rows(self, row, out, err);
}
static int entropy_end(void *self, mr_error *err) { return mri_entropy_end(self, err); }
static void entropy_only_dc(void *self) { mri_entropy_only_dc(self); }

static int progressive_window(void *self, const mri_block_window *w, mr_error *err)
{
    return mri_progressive_window(self, w, err);
}
static int progressive_rows(void *self, uint32_t row, const mri_block_rows *out, mr_error *err)
{
    (void)err;
    mri_progressive_rows(self, row, out);
    return MR_OK;
}
static int no_end(void *self, mr_error *err)
{
    (void)self;
    (void)err;
    return MR_OK;
}

/* The others give any row at any time. */
static int keep_window(void *self, const mri_block_window *w, mr_error *err)
{
    mri_decoder *d = self;
    (void)err;
    memcpy(d->window, w, sizeof d->window);
    return MR_OK;
}

static int libjpeg_rows(void *self, uint32_t row, const mri_block_rows *out, mr_error *err)
{
    const mri_decoder *d = self;
    return mri_libjpeg_rows(d->libjpeg, row, d->window, out, err);
}
static int libjpeg_end(void *self, mr_error *err)
{
    const mri_decoder *d = self;
    (void)err;
    mri_libjpeg_close(d->libjpeg);
    return MR_OK;
}

static int record_rows(void *self, uint32_t row, const mri_block_rows *out, mr_error *err)
{
    const mri_decoder *d = self;
    return mri_coef_rows(&d->coef, row, d->window, out, err);
}
static void take_frame(mri_picture *p, const mri_jpeg_frame *f)
{
    p->stored_width = f->width;
    p->stored_height = f->height;
    p->channels = f->component_count == 1 ? 1 : 3;
    p->orientation = f->orientation;
}

static int pixel_path_ready(mri_decoder *d, mr_error *err)
{
    if (!d->pixel_path && mri_pixel_path_create(&d->pixel_path)) return no_memory(err);
    return d->plan || mri_resample_plan_create(&d->plan) == MR_OK ? MR_OK : no_memory(err);
}

int mri_decoder_noted(mri_decoder *d, void **out, size_t *bytes)
{
    return d->noted ? mri_entropy_noted(d->entropy, out, bytes, NULL) : MR_EUNSUPPORTED;
}

/* ---- opening ---- */

static int open_coef(mri_picture *p, mri_decoder *d, const mr_decode_config *cfg, mr_error *err)
{
    int rc = mri_coef_open(&d->coef, p->value->data, p->value->bytes, err);
    if (rc == MR_OK) rc = mri_check_pixels(d->coef.frame.width, d->coef.frame.height, cfg->max_pixels, err);
    if (rc == MR_OK) rc = pixel_path_ready(d, err);
    if (rc) return rc;
    take_frame(p, &d->coef.frame);
    p->decode_method = MRI_DECODE_PIXEL_PATH;
    p->from = (mri_coefficients){d, &d->coef.frame, keep_window, record_rows, no_end, NULL};
    return MR_OK;
}

static int open_libjpeg(mri_decoder *d, const mr_value *v, const mr_decode_config *cfg,
                        mri_coefficients *from, mr_error *err)
{
    const mri_jpeg_frame *f;
    if (!d->libjpeg && mri_libjpeg_create(&d->libjpeg)) return no_memory(err);
    if (d->progressive) mri_progressive_release(d->progressive); /* either has coefficients in memory */
    const int rc = mri_libjpeg_open(d->libjpeg, v->data, v->bytes, cfg->max_pixels, cfg->max_scans, &f, err);
    if (rc == MR_OK) *from = (mri_coefficients){d, f, keep_window, libjpeg_rows, libjpeg_end, NULL};
    return rc;
}

/* What our sequential decoder does not take: our progressive one, or libjpeg's coefficients. */
static int open_other_jpeg(mri_decoder *d, const mr_value *v, const mr_decode_config *cfg,
                           mri_coefficients *from, mr_error *err)
{
    const mri_jpeg_frame *f;
    if (!d->progressive && mri_progressive_create(&d->progressive)) return no_memory(err);
    if (mri_progressive_open(d->progressive, v->data, v->bytes, cfg->max_scans, &f, NULL))
        return open_libjpeg(d, v, cfg, from, err);
    *from = (mri_coefficients){d->progressive, f, progressive_window, progressive_rows, no_end, NULL};
    return MR_OK;
}

/* The ways of a JPEG, in turn: our decoders; libjpeg's coefficients; libjpeg's pixels. */
static int open_jpeg(mri_picture *p, mri_decoder *d, const mr_decode_config *cfg, mr_error *err)
{
    const mr_value *v = p->value;
    const mri_jpeg_frame *f;
    int rc = pixel_path_ready(d, err);
    if (rc == MR_OK && !d->entropy && mri_entropy_create(&d->entropy)) rc = no_memory(err);
    if (rc) return rc;
    rc = mri_entropy_open(d->entropy, v->data, v->bytes, v->entries, v->entries_bytes, &f, err);
    if (rc == MR_OK) {
        d->noted = d->notes && mri_entropy_note(d->entropy);
        p->from =
            (mri_coefficients){d->entropy, f, entropy_window, entropy_rows, entropy_end, entropy_only_dc};
    } else {
        mr_image_header h; /* a fault of its header, or its size, is reported first, as every
                              other way to look at it says */
        int first = mr_image_header_parse(v->data, v->bytes, &h, err);
        if (first == MR_OK) first = mri_check_pixels(h.width, h.height, cfg->max_pixels, err);
        if (first) return first;
        if (rc != MR_EUNSUPPORTED) return rc;
        rc = open_other_jpeg(d, v, cfg, &p->from, err);
        if (rc) return rc;
        f = p->from.frame;
    }
    if (!mri_pixel_path_supports(f)) {
        if (d->libjpeg) mri_libjpeg_close(d->libjpeg);
        return MR_EUNSUPPORTED;
    }
    p->decode_method = MRI_DECODE_PIXEL_PATH;
    take_frame(p, f);
    return mri_check_pixels(f->width, f->height, cfg->max_pixels, err);
}

static int open_encoded(mri_picture *p, mri_decoder *d, const mr_decode_config *cfg, mr_error *err)
{
    const mr_value *v = p->value;
    if (cfg->pixels != MR_PIXELS_LIBJPEG && mr_image_sniff(v->data, v->bytes) == MR_TYPE_JPEG) {
        const int rc = open_jpeg(p, d, cfg, err);
        if (rc != MR_EUNSUPPORTED) return rc;
    }
    int rc = mr_image_header_parse(v->data, v->bytes, &p->header, err);
    if (rc == MR_OK) rc = mri_check_pixels(p->header.width, p->header.height, cfg->max_pixels, err);
    if (rc == MR_OK) rc = mri_other_allowed(&p->header, v->data, v->bytes, cfg->max_pixels, err);
    if (rc) return rc;
    p->decode_method = p->header.type == MR_TYPE_PNG    ? MRI_DECODE_PNG
                       : p->header.type == MR_TYPE_JPEG ? MRI_DECODE_LIBJPEG
                                                        : MRI_DECODE_OTHER;
    p->stored_width = p->header.width;
    p->stored_height = p->header.height;
    p->channels = p->header.channels <= 2 ? 1 : 3;
    p->orientation = p->header.orientation;
    return MR_OK;
}

/* libjpeg's pixels of coefficients: they are made a JPEG again, whose coefficients are the same. Slow, and
 * seldom asked for. */
static int open_remade(mri_picture *p, mri_decoder *d, const mr_decode_config *cfg, mr_error *err)
{
    void *jpeg;
    size_t bytes;
    free((void *)(uintptr_t)d->again.data);
    d->again = (mr_value){.type = MR_TYPE_JPEG};
    if (!d->whole && mri_transcoder_create(&d->whole)) return no_memory(err);
    const int rc = mri_transcoder_unpack(d->whole, p->value->data, p->value->bytes, cfg, &jpeg, &bytes, err);
    if (rc) return rc;
    d->again.data = jpeg;
    d->again.bytes = bytes;
    p->value = &d->again;
    return open_encoded(p, d, cfg, err);
}

int mri_picture_open(mri_picture *p, mri_decoder *d, const mr_value *value, const mr_decode_config *cfg,
                     mr_error *err)
{
    *p = (mri_picture){.value = value, .orientation = 1, .decode_method = MRI_DECODE_RAW};
    d->noted = false;
    int rc;
    switch (value->type) {
    case MR_TYPE_PIXELS: rc = open_pixels(p, cfg, err); break;
    case MR_TYPE_COEF:
        rc = cfg->pixels != MR_PIXELS_LIBJPEG ? open_coef(p, d, cfg, err) : open_remade(p, d, cfg, err);
        break;
    case MR_TYPE_JPEG:
    case MR_TYPE_PNG:
    case MR_TYPE_GIF:
    case MR_TYPE_BMP:
    case MR_TYPE_WEBP:
    case MR_TYPE_TIFF:
    case MR_TYPE_HEIC:
    case MR_TYPE_AVIF:
    case MR_TYPE_BYTES:
        rc = mri_picture_allowed(value, cfg, err);
        if (rc == MR_OK) rc = open_encoded(p, d, cfg, err);
        break;
    default:
        rc = mr_error_set(err, MR_EFORMAT, "expected a picture, found a value of type %d", (int)value->type);
    }
    if (rc) return rc;
    if (cfg->ignore_exif) p->orientation = 1;
    const bool swap = mri_orient_swaps(p->orientation);
    p->width = swap ? p->stored_height : p->stored_width;
    p->height = swap ? p->stored_width : p->stored_height;
    return MR_OK;
}

/* ---- pixels at their own size ---- */

static int pixels_view(mri_decoder *d, const mri_picture *p, uint32_t channels, mri_rect part, mri_view *out,
                       mr_error *err)
{
    const mr_value *v = p->value;
    const uint32_t stored = (uint32_t)v->dim[2];
    const bool planes = v->planes == MR_CHW && stored > 1;
    mri_view view = {.pixels = v->data,
                     .width = p->width,
                     .height = p->height,
                     .channels = stored,
                     .stride = (size_t)p->width * (planes ? 1 : stored),
                     .plane_bytes = planes ? (size_t)p->width * p->height : 0};
    view = mri_view_part(&view, part);
    if (stored != channels) {
        size_t bytes;
        if (!mri_picture_bytes(part.width, part.height, channels, &bytes) ||
            mri_buffer_need(&d->other, bytes))
            return mr_error_set(err, MR_ENOMEM, "no memory for %u x %u pixels", part.width, part.height);
        mri_convert_channels(&view, channels, d->other.data);
        view = mri_view_packed(d->other.data, part.width, part.height, channels);
    }
    *out = view;
    return MR_OK;
}

/* Interleaved pixels of a part of the stored picture. */
static int decode_stored(mri_decoder *d, const mri_picture *p, const mr_decode_config *cfg, uint32_t channels,
                         mri_rect part, mri_view *out, mr_error *err)
{
    if (p->decode_method == MRI_DECODE_PNG)
        return mri_png_decode(&d->png, p->value->data, p->value->bytes, &p->header, channels, part,
                              &d->pixels, out, err);
    if (p->decode_method == MRI_DECODE_OTHER)
        return mri_other_decode(&d->others, p->value->data, p->value->bytes, &p->header, channels, part,
                                &d->pixels, out, err);
    if (!d->jpeg && mri_jpeg_create(&d->jpeg)) return no_memory(err);
    const mri_jpeg_request request = {.data = p->value->data,
                                      .bytes = p->value->bytes,
                                      .header = &p->header,
                                      .channels = channels,
                                      .max_scans = cfg->max_scans,
                                      .max_pixels = cfg->max_pixels,
                                      .part = part};
    return mri_jpeg_decode(d->jpeg, &request, &d->pixels, out, err);
}

static int need_pixels(mri_buffer *b, uint32_t width, uint32_t height, uint32_t channels, mr_error *err)
{
    size_t bytes;
    if (mri_picture_bytes(width, height, channels, &bytes) && mri_buffer_need(b, bytes) == MR_OK)
        return MR_OK;
    return mr_error_set(err, MR_ENOMEM, "no memory for %u x %u pixels", width, height);
}

int mri_picture_decode(mri_decoder *d, const mri_picture *p, const mr_decode_config *cfg, uint32_t channels,
                       mri_rect part, mri_view *out, mr_error *err)
{
    if (p->decode_method == MRI_DECODE_RAW) return pixels_view(d, p, channels, part, out, err);
    if (p->decode_method == MRI_DECODE_PIXEL_PATH) { /* a window of the picture at its own size */
        const mri_axis x = mri_axis_window(p->width, part.x, part.width),
                       y = mri_axis_window(p->height, part.y, part.height);
        int rc = need_pixels(&d->pixels, part.width, part.height, channels, err);
        if (rc == MR_OK)
            rc = mri_picture_resample(d, p, cfg, channels, &x, &y, MRI_FILTER_BILINEAR, false, d->pixels.data,
                                      err);
        *out = mri_view_packed(d->pixels.data, part.width, part.height, channels);
        return rc;
    }
    const mri_rect stored = mri_orient_rect(part, p->orientation, p->stored_width, p->stored_height);
    int rc = decode_stored(d, p, cfg, channels, stored, out, err);
    if (rc || p->orientation == 1) return rc;
    rc = need_pixels(&d->other, part.width, part.height, channels, err);
    if (rc) return rc;
    mri_orient(out, p->orientation, d->other.data);
    *out = mri_view_packed(d->other.data, part.width, part.height, channels);
    return MR_OK;
}

/* ---- pixels at another size ---- */

int mri_view_resample(mri_decoder *d, const mri_view *view, uint32_t src_x, uint32_t src_y, const mri_axis *x,
                      const mri_axis *y, mri_filter filter, bool flip, uint8_t *dst, mr_error *err)
{
    int rc = d->plan ? MR_OK : mri_resample_plan_create(&d->plan);
    if (rc == MR_OK) rc = mri_resample_plan_set(d->plan, x, y, filter, flip, view->channels);
    if (rc == MR_OK)
        rc = mri_resample_run(d->plan, view, src_x, src_y, dst, (size_t)x->count * view->channels);
    return rc == MR_OK ? MR_OK : mr_error_set(err, rc, "no memory to resize to %u x %u", x->count, y->count);
}

static mri_axis mirrored(mri_axis a)
{
    a.start = a.samples - a.start - a.size;
    a.first = a.out - a.first - a.count;
    return a;
}

/* What our decoders find odd only on their way, libjpeg may know: from the start, with its coefficients. */
static int pixel_path_run(mri_decoder *d, const mri_picture *p, const mr_decode_config *cfg,
                          uint32_t channels, const mri_axis *x, const mri_axis *y, mri_filter filter,
                          bool flip, uint8_t *dst, mr_error *err)
{
    const size_t stride = (size_t)x->count * channels;
    const bool reduce = cfg->pixels == MR_PIXELS_REDUCED;
    int rc = mri_pixel_path_run(d->pixel_path, d->plan, &p->from, x, y, filter, flip, reduce, channels, dst,
                                stride, err);
    if (rc != MR_EUNSUPPORTED || (p->from.self != d->entropy && p->from.self != d->progressive)) return rc;
    mri_coefficients other;
    rc = open_libjpeg(d, p->value, cfg, &other, err);
    return rc == MR_OK ? mri_pixel_path_run(d->pixel_path, d->plan, &other, x, y, filter, flip, reduce,
                                            channels, dst, stride, err)
                       : rc;
}

/* The road sees the stored picture: its result is turned upright, and flipped on the way. */
static int pixel_path_resample(mri_decoder *d, const mri_picture *p, const mr_decode_config *cfg,
                               uint32_t channels, const mri_axis *x, const mri_axis *y, mri_filter filter,
                               bool flip, uint8_t *dst, mr_error *err)
{
    if (p->orientation == 1) return pixel_path_run(d, p, cfg, channels, x, y, filter, flip, dst, err);
    const mri_orientation t = mri_orientation_of(p->orientation);
    mri_axis sx = t.swap ? *y : *x, sy = t.swap ? *x : *y;
    if (t.mirror_x) sx = mirrored(sx);
    if (t.mirror_y) sy = mirrored(sy);
    int rc = need_pixels(&d->other, sx.count, sy.count, channels, err);
    if (rc == MR_OK) rc = pixel_path_run(d, p, cfg, channels, &sx, &sy, filter, false, d->other.data, err);
    if (rc) return rc;
    const mri_view view = mri_view_packed(d->other.data, sx.count, sy.count, channels);
    mri_orient(&view, flip ? mri_orient_flipped(p->orientation) : p->orientation, dst);
    return MR_OK;
}

int mri_picture_resample(mri_decoder *d, const mri_picture *p, const mr_decode_config *cfg, uint32_t channels,
                         const mri_axis *x, const mri_axis *y, mri_filter filter, bool flip, uint8_t *dst,
                         mr_error *err)
{
    if (p->decode_method == MRI_DECODE_PIXEL_PATH)
        return pixel_path_resample(d, p, cfg, channels, x, y, filter, flip, dst, err);
    uint32_t hi_x, hi_y;
    mri_rect part;
    mri_axis_support(x, filter, &part.x, &hi_x);
    mri_axis_support(y, filter, &part.y, &hi_y);
    part.width = hi_x - part.x;
    part.height = hi_y - part.y;
    mri_view view;
    int rc = mri_picture_decode(d, p, cfg, channels, part, &view, err);
    if (rc == MR_OK && view.plane_bytes) { /* the filter takes interleaved pixels */
        rc = need_pixels(&d->other, part.width, part.height, channels, err);
        if (rc) return rc;
        mri_convert_channels(&view, channels, d->other.data);
        view = mri_view_packed(d->other.data, part.width, part.height, channels);
    }
    return rc == MR_OK ? mri_view_resample(d, &view, part.x, part.y, x, y, filter, flip, dst, err) : rc;
}
