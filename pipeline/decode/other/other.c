/* pipeline/decode/other/other.c: see other.h. */
#include "pipeline/decode/other/other.h"

#include "formats/image/picture_files.h"

void mri_others_free(mri_others *o)
{
    mri_gif_work_destroy(o->gif);
    *o = (mri_others){0};
}

static int decode_gif(mri_others *o, const uint8_t *data, size_t bytes, const mri_other_out *to,
                      mr_error *err)
{
    mri_gif_layout gif;
    const int rc = mri_gif_layout_parse(&gif, data, bytes, err);
    return rc ? rc : mri_gif_decode(&o->gif, &gif, data, bytes, to, err);
}

static int decode_bmp(const uint8_t *data, size_t bytes, const mri_other_out *to, mr_error *err)
{
    mri_bmp_layout bmp;
    const int rc = mri_bmp_layout_parse(&bmp, data, bytes, err);
    return rc ? rc : mri_bmp_decode(&bmp, data, bytes, to, err);
}

int mri_other_decode(mri_others *o, const void *data, size_t bytes, const mr_image_header *header,
                     uint32_t channels, mri_rect part, mri_buffer *buffer, mri_view *out, mr_error *err)
{
    size_t room;
    if (!mri_picture_bytes(part.width, part.height, channels, &room) || mri_buffer_need(buffer, room))
        return mr_error_set(err, MR_ENOMEM, "%s: no memory for %u x %u pixels",
                            mri_picture_kind_name(header->type), part.width, part.height);
    const mri_other_out to = {channels, part, buffer->data};
    const int rc = header->type == MR_TYPE_GIF ? decode_gif(o, data, bytes, &to, err)
                                               : decode_bmp(data, bytes, &to, err);
    if (rc == MR_OK) *out = mri_view_packed(buffer->data, part.width, part.height, channels);
    return rc;
}
