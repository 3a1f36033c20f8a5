/* pipeline/cache/cache_form.c: see cache_form.h. */
#include "pipeline/cache/cache_form.h"

#include "base/util.h"
#include "pipeline/augment/augment.h"
#include "pipeline/decode/decoders.h"
#include "pipeline/decode/jpeg/entropy.h"
#include "pipeline/decode/jpeg/libjpeg_coef.h"
#include "pipeline/decode/jpeg/transcoder.h"

#define SMALL_PIXELS                                                                                         \
    4096u /* 64 x 64: as pixels hardly larger than as coefficients, and nothing is left to decode */

/* ---- as they are ---- */

static uint64_t same_bytes(uint64_t value_bytes) { return value_bytes; }

static int keep_it(void *maker, const mr_value *in, mr_value *out)
{
    (void)maker;
    *out = *in;
    return MR_OK;
}

static const mri_cache_form cache_encoded = {.name = "stored", .bound = same_bytes, .make = keep_it};

/* ---- coefficients ---- */

struct packer {
    mri_transcoder *whole;
    const mr_decode_config *decode;
    void *payload;
};

static int packer_create(void **maker, const mr_decode_config *decode, uint32_t channels)
{
    (void)channels;
    struct packer *p = calloc(1, sizeof *p);
    *maker = p;
    if (!p) return MR_ENOMEM;
    p->decode = decode;
    if (mri_transcoder_create(&p->whole) == MR_OK) return MR_OK;
    free(p);
    *maker = NULL;
    return MR_ENOMEM;
}

static void packer_drop(void *maker)
{
    struct packer *p = maker;
    mri_transcoder_destroy(p->whole);
    p->whole = NULL; /* made again with the next picture */
    free(p->payload);
    p->payload = NULL;
}

static void packer_destroy(void *maker)
{
    packer_drop(maker);
    free(maker);
}

/* The payload of one picture, and libjpeg's memory of all coefficients of a picture of several scans. */
static uint64_t packer_bytes(const mr_decode_config *decode, mri_extremes seen)
{
    return 2 * mri_jpeg_coefficient_bound(mri_min_u64(seen.pixels, decode->max_pixels)) +
           mri_entropy_bytes(0);
}

/* Photographs come to one and a half times their bytes; flat pictures to a few times more. */
static uint64_t packed_bound(uint64_t value_bytes)
{
    return value_bytes > UINT64_MAX / 8 ? UINT64_MAX : 4 * value_bytes + 4096;
}

static int packer_make(void *maker, const mr_value *in, mr_value *out)
{
    struct packer *p = maker;
    size_t bytes;
    const bool jpeg = in->type == MR_TYPE_JPEG || in->type == MR_TYPE_BYTES;
    if (!jpeg || mr_image_sniff(in->data, in->bytes) != MR_TYPE_JPEG) return keep_it(NULL, in, out);
    free(p->payload);
    p->payload = NULL;
    if (!p->whole && mri_transcoder_create(&p->whole) != MR_OK) return keep_it(NULL, in, out);
    const int rc = mri_transcoder_pack(p->whole, in->data, in->bytes, p->decode, &p->payload, &bytes, NULL);
    if (rc != MR_OK || bytes > packed_bound(in->bytes)) return keep_it(NULL, in, out);
    *out = (mr_value){.type = MR_TYPE_COEF, .data = p->payload, .bytes = bytes};
    return MR_OK;
}

const mri_cache_form mri_cache_coefficients = {"coef",      packed_bound, packer_create, packer_destroy,
                                               packer_drop, packer_bytes, packer_make};

/* ---- pixels ---- */

struct painter {
    mr_decode_config decode;
    mr_image image;
};

static int painter_create(void **maker, const mr_decode_config *decode, uint32_t channels)
{
    struct painter *p = calloc(1, sizeof *p);
    *maker = p;
    if (!p) return MR_ENOMEM;
    p->decode = *decode;
    p->decode.channels = channels;
    return MR_OK;
}

static void painter_drop(void *maker) { mr_image_free(&((struct painter *)maker)->image); }

static void painter_destroy(void *maker)
{
    painter_drop(maker);
    free(maker);
}

static uint64_t painter_bytes(const mr_decode_config *decode, mri_extremes seen)
{
    return 3 * SMALL_PIXELS + mri_decoder_bound_bytes(decode, seen, SMALL_PIXELS, SMALL_PIXELS);
}

static uint64_t pixels_bound(uint64_t value_bytes) { return mri_max_u64(value_bytes, 3 * SMALL_PIXELS); }

static int painter_make(void *maker, const mr_value *in, mr_value *out)
{
    struct painter *p = maker;
    mr_image_free(&p->image);
    if (in->type == MR_TYPE_PIXELS) return keep_it(NULL, in, out);
    const int rc = mr_image_decode(in, &p->decode, &p->image, NULL);
    if (rc != MR_OK || (uint64_t)p->image.width * p->image.height > SMALL_PIXELS)
        return keep_it(NULL, in, out);
    *out = (mr_value){.type = MR_TYPE_PIXELS,
                      .planes = MR_HWC,
                      .ndim = 3,
                      .data = p->image.pixels,
                      .dim = {p->image.height, p->image.width, p->image.channels},
                      .bytes = (size_t)p->image.width * p->image.height * p->image.channels};
    return MR_OK;
}

static const mri_cache_form cache_gray = {"gray",       pixels_bound,  painter_create, painter_destroy,
                                          painter_drop, painter_bytes, painter_make};
static const mri_cache_form cache_colour = {"colour",     pixels_bound,  painter_create, painter_destroy,
                                            painter_drop, painter_bytes, painter_make};

/* ---- which ---- */

const mri_cache_form *mri_cache_form_for(const mr_augment *augment, const mr_decode_config *decode,
                                         mr_type type, uint32_t height, uint32_t width, uint32_t channels)
{
    if (type == MR_TYPE_PIXELS || type == MR_TYPE_COEF) return &cache_encoded;
    const bool libjpeg = decode->pixels == MR_PIXELS_LIBJPEG;
    const bool small = height && width && (uint64_t)height * width <= SMALL_PIXELS;
    /* resampled from planes of chroma or from finished pixels is not the same; and pixels do not tell whose
     * they are, or how turned */
    if (small && !libjpeg && !decode->ignore_exif && !mri_augment_resamples_first(augment))
        return channels == 1 ? &cache_gray : &cache_colour;
    return libjpeg ? &cache_encoded : &mri_cache_coefficients;
}
