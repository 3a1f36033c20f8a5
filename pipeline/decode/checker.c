/* pipeline/decode/checker.c: is a picture sound, and the way back from its coefficients: for tools. */
#include "pipeline/budget/budget.h"
#include "pipeline/decode/decoders.h"
#include "pipeline/decode/jpeg/libjpeg_coef.h"
#include "pipeline/decode/jpeg/transcoder.h"

int mri_picture_check(mri_transcoder *w, const mr_value *value, const mr_decode_config *cfg, mr_error *err)
{
    mr_image image = {0};
    const bool coef = value->type == MR_TYPE_COEF, jpeg = value->type == MR_TYPE_JPEG;
    int rc = mri_picture_allowed(value, cfg, err);
    if (rc) return rc;
    rc = coef || jpeg ? mri_transcoder_check(w, value, cfg, err) : MR_EUNSUPPORTED;
    /* of all but payloads what our decoder does not take, libjpeg may; it makes no pixels of some samplings
     */
    const bool pixels = rc == MR_OK ? cfg->pixels == MR_PIXELS_LIBJPEG : rc == MR_EUNSUPPORTED && !coef;
    if (pixels) rc = mr_image_decode(value, cfg, &image, err);
    mr_image_free(&image);
    return rc;
}

uint64_t mri_picture_check_bytes(const mr_image_header *header, uint64_t counted)
{
    if (header->type == MR_TYPE_PIXELS) return 0; /* as they lie */
    const uint64_t pixels = 2 * 3 * counted;      /* as decoded, as handed out */
    const bool blocks = header->type == MR_TYPE_JPEG || header->type == MR_TYPE_COEF;
    return blocks ? pixels + 2 * mri_jpeg_coefficient_bound(counted) : 2 * pixels;
}

bool mri_picture_is_streamed(const mr_value *value, const mr_image_header *h, const mr_decode_config *cfg)
{
    return value->type == MR_TYPE_JPEG && !h->progressive && !h->arithmetic && h->bit_depth == 8 &&
           (h->channels == 1 || h->channels == 3) && cfg->pixels != MR_PIXELS_LIBJPEG;
}

struct mr_checker {
    uint32_t process;      /* that opened it (base/handle.h) */
    mri_transcoder *whole; /* NULL: made with the next picture */
    mri_seat seat;
};

#define SHARE_PIXELS 65536u /* a picture of 256 x 256 waits for nobody */

static void drop_buffers(void *context)
{
    mr_checker *c = context;
    mri_transcoder_destroy(c->whole);
    c->whole = NULL;
}

static int need_whole(mr_checker *c, mr_error *err)
{
    if (c->whole || mri_transcoder_create(&c->whole) == MR_OK) return MR_OK;
    return mr_error_set(err, MR_ENOMEM, "no memory for decoders");
}

void mr_checker_share(mr_checker *c, mr_budget *b)
{
    if (!c || (b && !mri_budget_is_own(b))) return;
    mri_seat_remove(&c->seat);
    if (b) mri_seat_add(&c->seat, b, drop_buffers, c, NULL);
}

static int take_room(mr_checker *c, const mr_value *value, const mr_decode_config *cfg, mr_error *err)
{
    mr_image_header h;
    const uint64_t counted = c->seat.budget ? mri_picture_counted(value, cfg, &h) : 0;
    if (counted <= SHARE_PIXELS || mri_picture_is_streamed(value, &h, cfg)) return MR_OK;
    const uint64_t bytes = mri_picture_check_bytes(&h, counted);
    return mri_seat_error(&c->seat, mri_seat_need(&c->seat, bytes, bytes), h.width, h.height, bytes, 0, "",
                          err);
}

int mr_checker_create(mr_checker **out)
{
    MRI_GIVEN(NULL, out);
    *out = NULL;
    mr_checker *c = calloc(1, sizeof *c);
    if (!c) return MR_ENOMEM;
    c->process = mri_process();
    const int rc = mri_transcoder_create(&c->whole);
    if (rc) {
        free(c);
        return rc;
    }
    *out = c;
    return MR_OK;
}

void mr_checker_destroy(mr_checker *c)
{
    if (!MRI_IS_OWN(c)) return;
    mri_seat_remove(&c->seat);
    mri_transcoder_destroy(c->whole);
    free(c);
}

int mr_checker_run(mr_checker *c, const mr_value *value, const mr_decode_config *cfg, mr_error *err)
{
    MRI_OWN(err, c);
    MRI_GIVEN(err, value);
    mr_decode_config all;
    int rc = mri_decode_settings(&all, cfg, err);
    if (rc != MR_OK) return rc;
    mri_seat_work(&c->seat);
    mri_seat_yield(&c->seat);
    rc = take_room(c, value, &all, err);
    if (rc == MR_OK) rc = need_whole(c, err);
    if (rc == MR_OK) rc = mri_picture_check(c->whole, value, &all, err);
    mri_seat_rest(&c->seat);
    return rc;
}

int mr_coef_to_jpeg(mr_checker *c, const mr_value *value, const mr_decode_config *cfg, void **data,
                    size_t *bytes, mr_error *err)
{
    mr_decode_config all;
    MRI_GIVEN(err, data);
    *data = NULL;
    MRI_GIVEN(err, bytes);
    *bytes = 0;
    MRI_OWN(err, c);
    MRI_GIVEN(err, value);
    int rc = mri_decode_settings(&all, cfg, err);
    if (rc == MR_OK) rc = need_whole(c, err);
    if (rc) return rc;
    if (value->type != MR_TYPE_COEF)
        return mr_error_set(err, MR_EINVAL, "expected coefficients, found %s", mr_type_name(value->type));
    return mri_transcoder_unpack(c->whole, value->data, value->bytes, &all, data, bytes, err);
}
