/* pipeline/convert/convert_space.c: how many bytes a conversion will write, estimated before the first one.
 *
 * Stored unchanged, pictures take the bytes of the source, plus names, entry points, headers and index. For
 * other forms some samples are converted (mr_output_estimate()). A conversion is refused only if the free
 * space is below the least possible size; an estimate above the free space is reported. */
#include "base/util.h"
#include "pipeline/convert/convert.h"
#include "pipeline/convert/convert_sample.h"

enum { NAME_BYTES = 40, FILE_BYTES = 16384, PAGE = 4096 };

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

typedef struct measure {
    const mri_convert_plan *plan;
    mri_convert_desk desk;
    mri_convert_item *item;
    bool any; /* sample was converted */
} measure;

/* Bytes of the values of a sample. 0: it cannot be converted. */
static uint64_t bytes_of(void *context, uint64_t sample)
{
    measure *m = context;
    uint64_t bytes = 0;
    mri_convert_item_clear(m->item);
    m->item->source_index = sample;
    mri_convert_sample(m->plan, &m->desk, m->item);
    if (m->item->rc) return 0;
    m->any = true;
    for (uint32_t f = 0; f < m->plan->field_count; f++) {
        uint8_t scratch[8];
        size_t own;
        mri_value_bytes(&m->item->values[f], scratch, &own);
        bytes += own;
    }
    return bytes;
}

/* Of the values of all samples. false: none could be converted. */
static bool measure_all(const mri_convert_plan *plan, uint64_t *likely, uint64_t *least)
{
    mr_budget *budget;
    measure m = {.plan = plan, .item = calloc(1, sizeof *m.item)};
    if (!m.item || mr_budget_create(&budget, mri_memory_limit_bytes() / 2) != MR_OK) {
        free(m.item);
        return false;
    }
    mri_convert_desk_init(&m.desk, budget);
    mr_output_estimate(plan->info->count, bytes_of, &m, likely, least, NULL);
    mri_convert_item_fini(m.item);
    mri_convert_desk_fini(&m.desk);
    mr_budget_destroy(budget);
    free(m.item);
    return m.any;
}

/* Of the samples from `first` on. */
static estimate of_conversion(const mri_convert_plan *plan, uint64_t first)
{
    const uint64_t count = plan->info->count;
    const double left = (double)(count - first);
    const double in = (double)plan->info->total_bytes * left / (double)count;
    double more = left * (double)frame_bytes(plan) + FILE_BYTES;
    uint64_t likely, least;
    estimate e = {in, in};
    if (is_unchanged(plan)) more += plan->entries >= 0 ? in / 64 : 0;
    else if (measure_all(plan, &likely, &least))
        e = (estimate){(double)likely * left / (double)count, (double)least * left / (double)count};
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
    const estimate e = of_conversion(plan, first);
    const int rc = mr_output_check_estimate(dst, (uint64_t)e.likely, (uint64_t)e.least, &room, &why);
    if (rc && !cfg->no_space_check) {
        if (err) *err = why;
        return rc;
    }
    if (cfg->space) cfg->space(cfg->context, (uint64_t)e.likely, room);
    return MR_OK;
}
