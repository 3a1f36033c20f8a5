/* pipeline/decode/checker.c: is a picture sound, and the way back from its coefficients: for tools. */
#include "pipeline/decode/decoders.h"
#include "pipeline/decode/jpeg/transcoder.h"

int mri_picture_check(mri_transcoder *w, const mr_value *value, const mr_decode_config *cfg, mr_error *err)
{
    mr_image image = {0};
    const bool coef = value->type == MR_TYPE_COEF, jpeg = value->type == MR_TYPE_JPEG;
    int rc = coef || jpeg ? mri_transcoder_check(w, value, cfg, err) : MR_EUNSUPPORTED;
    /* of all but payloads what our decoder does not take, libjpeg may; it makes no pixels of some samplings
     */
    const bool pixels = rc == MR_OK ? cfg->pixels == MR_PIXELS_LIBJPEG : rc == MR_EUNSUPPORTED && !coef;
    if (pixels) rc = mr_image_decode(value, cfg, &image, err);
    mr_image_free(&image);
    return rc;
}

struct mr_checker {
    mri_transcoder *whole;
};

int mr_checker_create(mr_checker **out)
{
    *out = NULL;
    mr_checker *c = calloc(1, sizeof *c);
    if (!c) return MR_ENOMEM;
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
    if (!c) return;
    mri_transcoder_destroy(c->whole);
    free(c);
}

int mr_checker_run(mr_checker *c, const mr_value *value, const mr_decode_config *cfg, mr_error *err)
{
    mr_decode_config all;
    const int rc = mri_decode_settings(&all, cfg, err);
    return rc == MR_OK ? mri_picture_check(c->whole, value, &all, err) : rc;
}

int mr_coef_to_jpeg(mr_checker *c, const mr_value *value, const mr_decode_config *cfg, void **data,
                    size_t *bytes, mr_error *err)
{
    mr_decode_config all;
    *data = NULL;
    *bytes = 0;
    const int rc = mri_decode_settings(&all, cfg, err);
    if (rc) return rc;
    if (value->type != MR_TYPE_COEF)
        return mr_error_set(err, MR_EINVAL, "expected coefficients, found %s", mr_type_name(value->type));
    return mri_transcoder_unpack(c->whole, value->data, value->bytes, &all, data, bytes, err);
}
