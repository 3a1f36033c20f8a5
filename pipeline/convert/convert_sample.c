/* pipeline/convert/convert_sample.c: one sample from its source to the values that are written. See
 * convert.h. */
#include "pipeline/convert/convert_sample.h"

#include "base/util.h"
#include "formats/source/sample_name.h"
#include "formats/source/source.h"

#define SHARE_PIXELS      65536u            /* a picture of 256 x 256 waits for nobody */
#define KEEP_BUFFER_BYTES ((size_t)1 << 20) /* larger read buffers are given back after each sample */

static int check_label(const mri_convert_plan *plan, const mr_value *label, mr_error *err)
{
    if (plan->info->class_count == 0 || label->type != MR_TYPE_INT) return MR_OK;
    if (label->i >= 0 && label->i < (int64_t)plan->info->class_count) return MR_OK;
    return mr_error_set(err, MR_EFORMAT, "expected a label from 0 to %u, found %lld",
                        plan->info->class_count - 1, (long long)label->i);
}

/* The source's values in the order of the output's fields. */
static void arrange(const mri_convert_plan *plan, mri_convert_item *item)
{
    for (uint32_t k = 0; k < plan->field_count; k++)
        if (plan->from[k] >= 0) item->values[k] = item->sample.value[plan->from[k]];
    if (plan->kind->keeps_numbers && plan->label >= 0 && !plan->info->class_names)
        item->values[plan->label].i += plan->info->label_offset; /* which was subtracted: no overflow */
    if (plan->entries >= 0)
        item->values[plan->entries] =
            (mr_value){.type = MR_TYPE_BYTES, .data = item->entries, .bytes = item->entries_bytes};
}

static int take_name(const mri_convert_plan *plan, mri_convert_item *item, size_t bytes)
{
    char name[MRI_NAME_ROOM];
    if (plan->name < 0 || plan->from[plan->name] >= 0) return MR_OK;
    const int rc = mr_source_sample_name_get(plan->src, item->source_index, item->buffer, bytes, name,
                                             sizeof name, &item->error);
    if (rc) return rc;
    item->name = strdup(name);
    if (!item->name) return mr_error_set(&item->error, MR_ENOMEM, "no memory for the name of a sample");
    item->values[plan->name] = (mr_value){.type = MR_TYPE_BYTES, .data = item->name, .bytes = strlen(name)};
    return MR_OK;
}

static void drop_buffers(void *context)
{
    mri_convert_desk *d = context;
    mri_transcoder_destroy(d->whole);
    d->whole = NULL;
}

void mri_convert_desk_init(mri_convert_desk *d, mr_budget *b)
{
    *d = (mri_convert_desk){0};
    mri_seat_add(&d->seat, b, drop_buffers, d, NULL);
}

void mri_convert_desk_fini(mri_convert_desk *d)
{
    mri_seat_remove(&d->seat);
    mri_transcoder_destroy(d->whole);
}

/* The decoded picture, its transformed copy, and its stored form. */
static uint64_t most_bytes(const mri_convert_plan *plan, const mr_value *image, const mr_image_header *h,
                           uint64_t counted)
{
    const mr_convert_config *cfg = &plan->cfg;
    const bool stays = cfg->store == MR_STORE_JPEG && cfg->resize == 0;
    if (counted <= SHARE_PIXELS || (stays && mri_picture_is_streamed(image, h, &cfg->decode))) return 0;
    return mri_picture_check_bytes(h, counted) + 4 * 3 * counted;
}

/* A picture that needs more than there is at all is a bad one: others fit. */
static int too_large(const mri_convert_desk *d, int rc, const mr_image_header *h, uint64_t bytes,
                     mr_error *err)
{
    mri_seat_error(&d->seat, rc, h->width, h->height, bytes, 0, "", err);
    err->sys_errno = 0;
    return rc;
}

static int take_room(const mri_convert_plan *plan, mri_convert_desk *d, mri_convert_item *item)
{
    mr_image_header h;
    const mr_value *image = &item->sample.value[plan->info->image_field];
    const uint64_t counted = mri_picture_counted(image, &plan->cfg.decode, &h);
    const uint64_t bytes = counted ? most_bytes(plan, image, &h, counted) : 0;
    if (bytes) {
        const int rc = mri_seat_need(&d->seat, bytes, bytes);
        item->fatal = rc != MR_OK && rc != MR_ELIMIT;
        if (rc) return too_large(d, rc, &h, bytes, &item->error);
    }
    if (d->whole || mri_transcoder_create(&d->whole) == MR_OK) return MR_OK;
    return mr_error_set(&item->error, MR_ENOMEM, "no memory for decoders");
}

void mri_convert_sample(const mri_convert_plan *plan, mri_convert_desk *desk, mri_convert_item *item)
{
    const mr_source_info *info = plan->info;
    item->fatal = false;
    mr_extent extent = {0};
    item->error = (mr_error)MR_ERROR_INIT;
    item->rc = mr_source_extent(plan->src, item->source_index, &extent, &item->error);
    item->bytes_in = extent.bytes;
    item->stamp = plan->kind->resumes ? mri_source_stamp(plan->src, item->source_index) : 0;
    if (item->rc == MR_OK)
        item->rc = mr_source_read(plan->src, item->source_index, &item->buffer, &item->buffer_bytes,
                                  &item->sample, &item->error);
    if (item->rc == MR_OK && info->label_field >= 0)
        item->rc = check_label(plan, &item->sample.value[info->label_field], &item->error);
    if (item->rc == MR_OK && info->image_field >= 0) item->rc = take_room(plan, desk, item);
    if (item->rc == MR_OK && info->image_field >= 0)
        item->rc = mri_convert_picture(plan, desk->whole, item, &item->sample.value[info->image_field]);
    if (item->rc == MR_OK) arrange(plan, item);
    if (item->rc == MR_OK) item->rc = take_name(plan, item, (size_t)extent.bytes);
    if (item->rc == MR_OK) item->rc = mri_convert_companions(plan, item);
    if (item->rc == MR_OK && plan->kind->picture_files)
        item->rc = mri_convert_companion_pictures(plan, desk->whole, item);
    if (item->rc == MR_OK && plan->kind->fits) item->rc = plan->kind->fits(plan, item->values, &item->error);
    /* the system or the settings, not this sample: going on would only fail again */
    item->fatal = item->fatal || (item->rc != MR_OK && !mr_error_of_sample(item->rc, &item->error));
    if (item->rc != MR_OK) mri_source_place(plan->src, item->source_index, &item->error);
}

static void free_made(mri_convert_item *item)
{
    free(item->made);
    free(item->entries);
    free(item->name);
    item->made = item->entries = NULL;
    item->name = NULL;
    for (int k = 0; item->companion_bytes && k < MR_MAX_FIELDS; k++) {
        free(item->companions[k]);
        item->companions[k] = NULL;
    }
    item->made_bytes = item->entries_bytes = item->companion_bytes = 0;
}

void mri_convert_item_clear(mri_convert_item *item)
{
    free_made(item);
    item->transcoded = item->kept = false;
    item->geometry = (mri_geometry){0};
    if (item->buffer_bytes > KEEP_BUFFER_BYTES) {
        free(item->buffer);
        item->buffer = NULL;
        item->buffer_bytes = 0;
    }
}

void mri_convert_item_fini(mri_convert_item *item)
{
    free_made(item);
    free(item->buffer);
}
