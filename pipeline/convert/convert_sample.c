/* pipeline/convert/convert_sample.c: one sample from its source to the values that are written. See
 * convert.h. */
#include "pipeline/convert/convert_sample.h"

#include "base/util.h"
#include "formats/source/source.h"

#define KEEP_BUFFER_BYTES ((size_t)1 << 20) /* larger read buffers are given back after each sample */

static int check_label(const mri_convert_plan *plan, const mr_value *label, mr_error *err)
{
    if (plan->info->class_count == 0 || label->type != MR_TYPE_INT) return MR_OK;
    if (label->i >= 0 && label->i < (int64_t)plan->info->class_count) return MR_OK;
    return mr_error_set(err, MR_EFORMAT, "expected a label from 0 to %u, found %lld",
                        plan->info->class_count - 1, (long long)label->i);
}

/* The system or the settings, not this sample: going on would only fail again. */
static bool concerns_run(const mri_convert_plan *plan, int rc)
{
    if (rc == MR_EFORMAT || rc == MR_ECHECKSUM || rc == MR_EUNSUPPORTED || rc == MR_ELIMIT) return false;
    const bool own_file = plan->info->file_count == 0; /* one unreadable file of many is a bad sample */
    return !(own_file && (rc == MR_EIO || rc == MR_ENOENT));
}

/* The source's values in the order of the output's fields. */
static void arrange(const mri_convert_plan *plan, mri_convert_item *item)
{
    for (uint32_t k = 0; k < plan->field_count; k++)
        if ((int)k != plan->entries) item->values[k] = item->sample.value[plan->from[k]];
    if (plan->entries >= 0)
        item->values[plan->entries] =
            (mr_value){.type = MR_TYPE_BYTES, .data = item->entries, .bytes = item->entries_bytes};
}

void mri_convert_sample(const mri_convert_plan *plan, mri_transcoder *whole, mri_convert_item *item)
{
    const mr_source_info *info = plan->info;
    mr_extent extent = {0};
    item->error = (mr_error)MR_ERROR_INIT;
    item->rc = mr_source_extent(plan->src, item->source_index, &extent, &item->error);
    item->bytes_in = extent.bytes;
    if (item->rc == MR_OK)
        item->rc = mr_source_read(plan->src, item->source_index, &item->buffer, &item->buffer_bytes,
                                  &item->sample, &item->error);
    if (item->rc == MR_OK && info->label_field >= 0)
        item->rc = check_label(plan, &item->sample.value[info->label_field], &item->error);
    if (item->rc == MR_OK && info->image_field >= 0)
        item->rc = mri_convert_picture(plan, whole, item, &item->sample.value[info->image_field]);
    if (item->rc == MR_OK) arrange(plan, item);
    if (item->rc == MR_OK) item->rc = mri_convert_companions(plan, item);
    if (item->rc == MR_OK && plan->kind->picture_files)
        item->rc = mri_convert_companion_pictures(plan, whole, item);
    if (item->rc == MR_OK && plan->kind->fits) item->rc = plan->kind->fits(plan, item->values, &item->error);
    item->fatal = item->rc != MR_OK && concerns_run(plan, item->rc);
    if (item->rc != MR_OK) mri_source_place(plan->src, item->source_index, &item->error);
}

static void free_made(mri_convert_item *item)
{
    free(item->made);
    free(item->entries);
    item->made = item->entries = NULL;
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
