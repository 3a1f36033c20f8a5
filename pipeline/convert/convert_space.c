/* pipeline/convert/convert_space.c: how many bytes a conversion will write, estimated before the first one.
 *
 * Stored unchanged, pictures take the bytes of the source, plus names, entry points, headers and index. For
 * other forms up to 24 samples, spread over the source, are converted: their mean is the estimate, and the
 * mean less three standard errors is what will surely be needed. A conversion is refused only when the disk
 * lacks that; that the estimate is larger than the free space is reported. */
#include <math.h>

#include "base/util.h"
#include "pipeline/convert/convert.h"
#include "pipeline/convert/convert_sample.h"

enum { SAMPLES = 24, NAME_BYTES = 40, FILE_BYTES = 16384, PAGE = 4096 };

typedef struct estimate {
    double likely, least; /* bytes */
} estimate;

/* Around the values of a sample, in this kind of file. */
static uint64_t frame_bytes(const mri_convert_plan *plan)
{
    const uint64_t fields = plan->field_count, count = mri_max_u64(plan->info->count, 1);
    if (plan->cfg.to == MR_TO_TAR) return fields * (512 + 256) + NAME_BYTES; /* a member each, and its end */
    if (plan->cfg.to == MR_TO_TFRECORD) return 16 + fields * 48 + 160 + NAME_BYTES;
    /* header, alignment of values, index; larger records begin at pages */
    const uint64_t own = 72 + fields * 32 + NAME_BYTES;
    return plan->info->total_bytes / count >= PAGE * 4 ? own + PAGE / 2 : own;
}

static bool is_unchanged(const mri_convert_plan *plan)
{
    const mr_convert_config *cfg = &plan->cfg;
    return plan->image >= 0 && cfg->store == MR_STORE_JPEG && cfg->resize == 0 && !cfg->transcode;
}

/* Bytes of the values of a sample. 0: it cannot be converted. */
static double bytes_of(const mri_convert_plan *plan, mri_convert_desk *desk, mri_convert_item *item,
                       uint64_t sample)
{
    double bytes = 0;
    mri_convert_item_clear(item);
    item->source_index = sample;
    mri_convert_sample(plan, desk, item);
    for (uint32_t f = 0; item->rc == MR_OK && f < plan->field_count; f++) {
        uint8_t scratch[8];
        size_t own;
        mri_value_bytes(&item->values[f], scratch, &own);
        bytes += (double)own;
    }
    return bytes;
}

/* Of the values of one sample. false: none could be converted. */
static bool measure(const mri_convert_plan *plan, estimate *out)
{
    const uint64_t count = plan->info->count, some = mri_min_u64(count, SAMPLES);
    double sum = 0, squares = 0, good = 0;
    mr_budget *budget;
    mri_convert_desk desk;
    mri_convert_item *item = calloc(1, sizeof *item);
    if (!item || mr_budget_create(&budget, mri_memory_limit_bytes() / 2) != MR_OK) {
        free(item);
        return false;
    }
    mri_convert_desk_init(&desk, budget);
    for (uint64_t k = 0; k < some; k++) {
        const double bytes = bytes_of(plan, &desk, item, count / some * k + count % some * k / some);
        sum += bytes;
        squares += bytes * bytes;
        good += bytes > 0;
    }
    mri_convert_item_fini(item);
    mri_convert_desk_fini(&desk);
    mr_budget_destroy(budget);
    free(item);
    if (good == 0) return false;
    const double mean = sum / good, variance = fmax(0, squares / good - mean * mean);
    out->likely = mean;
    out->least = some == count ? mean : fmax(0, mean - 3 * sqrt(variance / good));
    return true;
}

/* Of the samples from `first` on. */
static estimate of_conversion(const mri_convert_plan *plan, uint64_t first)
{
    const uint64_t count = plan->info->count;
    const double left = (double)(count - first);
    const double in = (double)plan->info->total_bytes * left / (double)mri_max_u64(count, 1);
    double more = left * (double)frame_bytes(plan) + FILE_BYTES;
    estimate e = {in, in};
    if (is_unchanged(plan)) more += plan->entries >= 0 ? in / 64 : 0;
    else if (measure(plan, &e)) e = (estimate){e.likely * left, e.least * left};
    else e.least = 0;
    if (plan->cfg.shard_bytes) more += e.likely / (double)plan->cfg.shard_bytes * FILE_BYTES;
    e.likely += more;
    return e;
}

int mri_convert_check_space(const mri_convert_plan *plan, const char *dst, uint64_t first, mr_error *err)
{
    const mr_convert_config *cfg = &plan->cfg;
    mr_error why = MR_ERROR_INIT;
    uint64_t room;
    if (plan->info->total_bytes == 0 || first >= plan->info->count)
        return MR_OK; /* the program's own samples */
    mr_output_check_space(dst, 0, &room, NULL);
    const estimate e = of_conversion(plan, first);
    const uint64_t likely = (uint64_t)e.likely;
    if (e.least > (double)room && !cfg->no_space_check) {
        const int rc = mr_output_check_space(dst, likely, NULL, &why);
        if (rc && err) *err = why;
        return rc;
    }
    if (cfg->space) cfg->space(cfg->context, likely, room);
    return MR_OK;
}
