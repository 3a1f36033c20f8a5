/* pipeline/fields/first_sample.c: reads the first samples before a run, for facts missing from a source's
 * schema: the size of pictures, the columns of boxes. Reads in the caller's thread and keeps nothing. */
#include "pipeline/fields/first_sample.h"

#include "formats/source/source.h"
#include "pipeline/pixels/pixels.h"

static int peek_sample(const mr_source *src, uint64_t at, mri_sample_visitor *look, void *context,
                       mr_error *err)
{
    void *buffer = NULL;
    size_t bytes = 0;
    mr_sample sample;
    int rc = mr_source_read(src, at, &buffer, &bytes, &sample, err);
    if (rc == MR_OK) rc = look(context, at, &sample, err);
    if (rc != MR_OK && err) mri_source_place(src, at, err);
    free(buffer);
    return rc;
}

int mri_first_sample(const mr_source *src, uint64_t may_be_bad, mri_sample_visitor *look, void *context,
                     mr_error *err)
{
    int rc = peek_sample(src, 0, look, context, err);
    for (uint64_t at = 1;
         rc != MR_OK && rc != MR_ENOMEM && at <= may_be_bad && at < mr_source_info_of(src)->count; at++) {
        mr_error later = MR_ERROR_INIT; /* when none can be read, the first is the one to tell */
        const int next = peek_sample(src, at, look, context, &later);
        if (next == MR_OK || next == MR_ENOMEM) rc = next;
    }
    return rc;
}

typedef struct seen_size {
    const mr_source *src;
    const mr_decode_config *decode;
    mri_picture_size size;
} seen_size;

static int look_at_size(void *context, uint64_t at, const mr_sample *sample, mr_error *err)
{
    seen_size *seen = context;
    const mr_value *v = &sample->value[mr_source_info_of(seen->src)->image_field];
    mr_image_header header;
    seen->size.sample = at;
    if (v->type == MR_TYPE_PIXELS) {
        seen->size.h = (uint32_t)v->dim[0];
        seen->size.w = (uint32_t)v->dim[1];
        return MR_OK;
    }
    int rc = v->type == MR_TYPE_COEF ? mr_value_header(v, &header, err)
                                     : mr_image_header_parse(v->data, v->bytes, &header, err);
    if (rc == MR_OK) rc = mri_check_pixels(header.width, header.height, seen->decode->max_pixels, err);
    if (rc != MR_OK) return rc;
    const bool turned = !seen->decode->ignore_exif && header.orientation >= 5;
    seen->size.h = turned ? header.width : header.height;
    seen->size.w = turned ? header.height : header.width;
    return MR_OK;
}

int mri_first_picture_size(const mr_source *src, const mr_decode_config *decode, uint64_t may_be_bad,
                           mri_picture_size *out, mr_error *err)
{
    seen_size seen = {.src = src, .decode = decode};
    const int rc = mri_first_sample(src, may_be_bad, look_at_size, &seen, err);
    *out = seen.size;
    return rc;
}

int mri_picture_size_of(const mr_source *src, const mr_decode_config *decode, mri_picture_size *out,
                        mr_error *err)
{
    seen_size seen = {.src = src, .decode = decode};
    const int rc = peek_sample(src, out->sample, look_at_size, &seen, err);
    *out = seen.size;
    return rc;
}
