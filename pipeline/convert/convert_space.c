/* pipeline/convert/convert_space.c: how many bytes a conversion will write, estimated before the first one.
 *
 * Stored unchanged, pictures take the bytes of the source, plus names, entry points, headers and index. For
 * other forms some samples are converted, and the mean is taken with a tenth more. Where the disk has a
 * multiple of all that could be needed, and the set is small, nothing is converted for it. */
#include "base/util.h"
#include "pipeline/convert/convert.h"
#include "pipeline/convert/convert_sample.h"

enum { SAMPLES = 24, NAME_BYTES = 40, FILE_BYTES = 16384, PAGE = 4096, MOST_TIMES = 64 };
#define LARGE_BYTES ((uint64_t)256 << 20)

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
    return plan->image < 0 || (cfg->store == MR_STORE_JPEG && cfg->resize == 0 && !cfg->transcode);
}

/* Mean bytes of the values of a sample. false: none of them could be converted. */
static bool measure(const mri_convert_plan *plan, uint64_t *mean)
{
    const uint64_t count = plan->info->count, some = mri_min_u64(count, SAMPLES);
    uint64_t bytes = 0, good = 0;
    mr_budget *budget;
    mri_convert_desk desk;
    mri_convert_item *item = calloc(1, sizeof *item);
    if (!item || mr_budget_create(&budget, mri_memory_limit_bytes() / 2) != MR_OK) {
        free(item);
        return false;
    }
    mri_convert_desk_init(&desk, budget);
    for (uint64_t k = 0; k < some; k++) {
        uint8_t scratch[8];
        size_t own;
        mri_convert_item_clear(item);
        item->source_index = count / some * k;
        mri_convert_sample(plan, &desk, item);
        if (item->rc) continue;
        good++;
        for (uint32_t f = 0; f < plan->field_count; f++) {
            mri_value_bytes(&item->values[f], scratch, &own);
            bytes += own;
        }
    }
    mri_convert_item_fini(item);
    mri_convert_desk_fini(&desk);
    mr_budget_destroy(budget);
    free(item);
    *mean = good ? bytes / good : 0;
    return good > 0;
}

/* Of the samples from `first` on. */
static uint64_t estimate(const mri_convert_plan *plan, uint64_t first, uint64_t room)
{
    const uint64_t count = plan->info->count, left = count - first;
    const double share = (double)left / (double)mri_max_u64(count, 1);
    const double in = (double)plan->info->total_bytes * share, frames = (double)(left * frame_bytes(plan));
    uint64_t mean = 0;
    double files = FILE_BYTES, bytes = in;
    if (is_unchanged(plan)) bytes += plan->entries >= 0 ? in / 64 : 0;
    else if ((plan->info->total_bytes >= LARGE_BYTES || in * MOST_TIMES > (double)room) &&
             measure(plan, &mean))
        bytes = (double)mean * (double)left * 1.1;
    if (plan->cfg.shard_bytes) files += bytes / (double)plan->cfg.shard_bytes * FILE_BYTES;
    return (uint64_t)(bytes + frames + files);
}

int mri_convert_check_space(const mri_convert_plan *plan, const char *dst, uint64_t first, mr_error *err)
{
    const mr_convert_config *cfg = &plan->cfg;
    mr_error why = MR_ERROR_INIT;
    uint64_t room;
    if (plan->info->total_bytes == 0 || first >= plan->info->count)
        return MR_OK; /* the program's own samples */
    mr_output_check_space(dst, 0, &room, NULL);
    const uint64_t bytes = estimate(plan, first, room);
    const int rc = mr_output_check_space(dst, bytes, NULL, &why);
    if (cfg->space) cfg->space(cfg->context, bytes, room);
    if (rc == MR_OK || cfg->no_space_check) return MR_OK;
    if (err) *err = why;
    return rc;
}
