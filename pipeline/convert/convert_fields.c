/* pipeline/convert/convert_fields.c: which fields the output of a conversion has, and where each comes from.
 * See convert.h.
 *
 *   source   image | label | ...                      image | image.entries | label | ...
 *                                                     (a record file made before)
 *   output   image | label | ... | image.entries      image | image.entries | label | ...
 *                                                     (entries made anew, or left out)
 *
 * A tensor that alone differs in size from record to record comes last, so that the index has its lengths
 * (formats/record/mrec_lengths.c):
 *
 *   source   tokens | label                           output   label | tokens
 *
 * What samples were called is a field of its own, "sample.name", where the source knows it; not beside such a
 * tensor, whose lengths the index would not tell any more.
 *
 * Entry points belong to JPEGs that keep their bytes: other ways to store pictures have no field for them. */
#include <stdio.h>

#include "base/util.h"
#include "formats/record/mrec.h"
#include "formats/source/sample_name.h"
#include "formats/source/value.h"
#include "pipeline/convert/convert_kind.h"

static bool is_picture(mr_type type) { return mri_type_is_picture(type) && type != MR_TYPE_COEF; }

static bool name_taken(const mr_source_info *info, const char *name, int by_other_than)
{
    for (uint32_t k = 0; k < info->field_count; k++)
        if ((int)k != by_other_than && strcmp(info->fields[k].name, name) == 0) return true;
    return false;
}

static void rename_field(mri_convert_plan *plan, int field, int source_field, const char *name)
{
    if (!name_taken(plan->info, name, source_field))
        snprintf(plan->fields[field].name, sizeof plan->fields[field].name, "%s", name);
}

/* Schema of the picture field: which type its values have and whether they all have one shape. */
static void plan_picture(const mri_convert_plan *plan, mr_field *f)
{
    const mr_convert_config *cfg = &plan->cfg;
    const mr_source_info *info = plan->info;
    if (cfg->store != MR_STORE_RAW) {
        if (f->type != MR_TYPE_PIXELS) f->type = MR_TYPE_IMAGE;
        if (cfg->resize) f->ndim = 0;
        return;
    }
    f->type = MR_TYPE_PIXELS;
    f->ndim = 0;
    const uint32_t channels = cfg->decode.channels                         ? cfg->decode.channels
                              : info->channels == 2 || info->channels == 4 ? 3
                                                                           : info->channels;
    const bool square = cfg->center_square && cfg->resize;
    if (channels == 0 || (!square && (cfg->resize || info->height == 0 || info->width == 0))) return;
    f->ndim = 3;
    f->dim[0] = square ? cfg->resize : info->height;
    f->dim[1] = square ? cfg->resize : info->width;
    f->dim[2] = channels;
}

/* Every field of the source but an old "image.entries"; that one's place is kept when there will be a new
 * one. */
static void take_fields(mri_convert_plan *plan)
{
    const mr_source_info *info = plan->info;
    const int old = mri_field_entries(info->fields, info->field_count),
              name = mri_field_name(info->fields, info->field_count);
    plan->image = plan->label = plan->entries = plan->name = -1;
    for (uint32_t k = 0; k < info->field_count; k++) {
        const uint32_t at = plan->field_count;
        if ((int)k == old && (plan->cfg.store != MR_STORE_JPEG || !plan->cfg.entries)) continue;
        if ((int)k == name && plan->cfg.no_names) continue;
        if ((int)k == old) plan->entries = (int)at;
        if ((int)k == name) plan->name = (int)at;
        if ((int)k == info->image_field) plan->image = (int)at;
        if ((int)k == info->label_field) plan->label = (int)at;
        plan->fields[at] = info->fields[k];
        plan->from[at] = (int)k == old ? -1 : (int)k;
        plan->field_count++;
    }
}

/* A field of its own where there can be JPEGs, and room for it. */
static void add_entries(mri_convert_plan *plan)
{
    const mr_field *image = &plan->fields[plan->image];
    const bool jpegs = image->type == MR_TYPE_IMAGE || image->type == MR_TYPE_JPEG;
    if (plan->entries >= 0 || plan->cfg.store != MR_STORE_JPEG || !plan->cfg.entries || !jpegs) return;
    if (plan->field_count == MR_MAX_FIELDS || strcmp(image->name, "image") != 0) return;
    if (mri_field_find(plan->fields, plan->field_count, MRI_ENTRIES_NAME) >= 0) return;
    plan->entries = (int)plan->field_count;
    plan->from[plan->entries] = -1;
    plan->fields[plan->field_count++] = mri_field(MRI_ENTRIES_NAME, MR_TYPE_BYTES);
}

static int add_name(mri_convert_plan *plan, mr_error *err)
{
    bool has;
    if (plan->name >= 0 || plan->cfg.no_names || plan->field_count == MR_MAX_FIELDS) return MR_OK;
    if (mri_field_find(plan->fields, plan->field_count, MRI_NAME_FIELD) >= 0) return MR_OK;
    if (mri_lengths_field(plan->fields, plan->field_count) >= 0) return MR_OK;
    const int rc = mri_source_has_names(plan->src, &has, err);
    if (rc || !has) return rc;
    plan->name = (int)plan->field_count;
    plan->from[plan->name] = -1;
    plan->fields[plan->field_count++] = mri_field(MRI_NAME_FIELD, MR_TYPE_BYTES);
    return MR_OK;
}

static void move_tensor_last(mri_convert_plan *plan)
{
    const int at = mri_lengths_field(plan->fields, plan->field_count), last = (int)plan->field_count - 1;
    if (at < 0) return;
    const mr_field tensor = plan->fields[at];
    const int from = plan->from[at];
    for (int k = at; k < last; k++) {
        plan->fields[k] = plan->fields[k + 1];
        plan->from[k] = plan->from[k + 1];
    }
    plan->fields[last] = tensor;
    plan->from[last] = from;
    /* they differ from it: it is no picture and no number; and there are no entry points and no names */
    if (plan->image > at) plan->image--;
    if (plan->label > at) plan->label--;
}

/* A column of targets may be called as the picture is. */
static int check_names(const mri_convert_plan *plan, mr_error *err)
{
    for (uint32_t k = 1; k < plan->field_count; k++)
        if (mri_field_find(plan->fields, k, plan->fields[k].name) >= 0)
            return mr_error_set(err, MR_EINVAL, "two fields would be named \"%s\": rename one of the columns",
                                plan->fields[k].name);
    return MR_OK;
}

/* What stands behind all others. */
static int end_fields(mri_convert_plan *plan, mr_error *err)
{
    const int rc = add_name(plan, err);
    if (rc == MR_OK) move_tensor_last(plan);
    return rc ? rc : check_names(plan, err);
}

int mri_convert_plan_fields(mri_convert_plan *plan, mr_error *err)
{
    const mr_source_info *info = plan->info;
    const mr_convert_config *cfg = &plan->cfg;
    const bool changes = cfg->store != MR_STORE_JPEG || cfg->resize || cfg->transcode;
    if (info->image_field < 0 && changes)
        return mr_error_set(
            err, MR_EINVAL,
            "the data has no pictures to resize or decode; leave the settings for pictures out");
    if (info->field_count > MR_MAX_FIELDS)
        return mr_error_set(err, MR_ELIMIT, "expected at most %d fields, found %u", MR_MAX_FIELDS,
                            info->field_count);
    take_fields(plan);
    if (plan->label >= 0) rename_field(plan, plan->label, info->label_field, "label");
    if (plan->image < 0) return end_fields(plan, err);
    mr_field *image = &plan->fields[plan->image];
    if (!is_picture(image->type))
        return mr_error_set(err, MR_EUNSUPPORTED, "field %s: expected pictures, found %s", image->name,
                            mr_type_name(image->type));
    rename_field(plan, plan->image, info->image_field, "image");
    plan_picture(plan, image);
    mri_convert_open_shapes(plan);
    add_entries(plan);
    return end_fields(plan, err);
}
