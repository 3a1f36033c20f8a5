/* pipeline/loader_budget.c: the size of chunks, and the most memory that a loader may hold (I10).
 *
 *   slots + read buffers + per worker (scratch, one spare sample) + the set itself where it is resident + the
 *   cache + order (windows of lengths, classes) + bookkeeping + the pool for large pictures <= budget
 *
 * Every term is the most there can be for this data set: the largest sample in every place of every chunk,
 * a picture of LEAST_PIXELS in every worker. If the largest permitted picture does not fit in every worker,
 * larger ones share the rest (budget/budget.h). Sums and products saturate: a hostile header's claim ends as
 * "over the budget", never as a small number. The source's own memory (names, index) is bounded where it is
 * opened. */
#include "formats/source/source.h"
#include "pipeline/loader_private.h"

#define CHUNK_BYTES    65536u /* small samples share the cost of a lock ... */
#define CHUNK_SAMPLES  64u
#define CHUNK_RESIDENT 256u /* ... and without a request each, a lock is all they would pay for */
#define CHUNK_MOST_BYTES                                                                                     \
    (4u << 20)                  /* ... but one huge sample must not be provided for 64 times in each chunk */
#define LEAST_PIXELS (1u << 16) /* a picture of 256 x 256 waits for nobody */
#define PATH_BYTES   4096u      /* a name while its file is being opened */
#define THREAD_BYTES (128u << 10) /* pages of its stack and of the allocator that a thread touches */

/* What alignment may add to each sample of a chunk. */
static uint64_t block_bytes(const mri_loader_plan *plan)
{
    return plan->cfg.direct ? 2 * MRI_DIRECT_ALIGN : MRI_CACHE_LINE;
}

/* Largest thing a sample may be read as. */
static uint64_t sample_bytes_most(const mri_loader_plan *plan)
{
    const uint64_t stored = mr_source_info_of(plan->source)->max_extent_bytes;
    return plan->cfg.cache == MR_CACHE_DISK
               ? mri_max_u64(stored, mri_cache_entry_max_bytes(plan->cache_form, stored))
               : stored;
}

/* A chunk full of the largest samples, with a gap that is read along in front of each. */
static uint64_t chunk_bytes_most(const mri_loader_plan *plan, uint32_t samples)
{
    return mri_times(samples, mri_plus(sample_bytes_most(plan), MRI_MERGE_GAP_BYTES + block_bytes(plan)));
}

/* Chunks of about CHUNK_BYTES of data. */
static uint32_t chunk_samples_most(const mr_source_info *info, bool resident)
{
    const uint64_t mean = info->total_bytes / info->count + 1;
    const uint64_t few = mri_max_u64(1, CHUNK_MOST_BYTES / mri_max_u64(1, info->max_extent_bytes));
    if (resident) return CHUNK_RESIDENT;
    return (uint32_t)mri_min_u64(mri_min_u64(CHUNK_BYTES / mean + 1, CHUNK_SAMPLES), few);
}

static void plan_chunks(const mri_loader_plan *plan, mri_memory_plan *p)
{
    const mr_source_info *info = mr_source_info_of(plan->source);
    const uint64_t mean = info->total_bytes / info->count + 1;
    p->shape = (mri_run_shape){.batch = plan->layout.batch,
                               .parts = plan->info.parts,
                               .prefetch = plan->cfg.prefetch,
                               .workers = plan->cfg.workers,
                               .readers = plan->cfg.readers,
                               .depth = plan->cfg.depth,
                               .chunk_samples_most = chunk_samples_most(info, p->resident > 0),
                               .pairs = plan->layout.mixes,
                               .resident = p->resident > 0};
    const uint32_t n = mri_shape_chunk_samples(&p->shape);
    p->chunk_samples = n;
    p->chunk_count = plan->threads ? mri_shape_chunk_count(&p->shape) : 1;
    if (p->resident || mri_source_is_made(plan->source)) { /* nothing is read into them */
        p->chunk_room = MRI_DIRECT_ALIGN;
        return;
    }
    uint64_t usual = mri_plus(mri_times(n, mri_min_u64(mri_times(2, mean), info->max_extent_bytes)),
                              n * block_bytes(plan));
    const uint64_t most = chunk_bytes_most(plan, p->chunk_samples);
    if (most <= mri_plus(usual, usual / 4))
        usual = most; /* samples of about one size: no second, larger buffer is ever needed */
    p->chunk_room =
        (size_t)mri_align_up(mri_min_u64(mri_max_u64(usual, 16384), UINT64_MAX / 2), MRI_DIRECT_ALIGN);
}

/* Its index, and in memory its entries. */
static uint64_t cache_bytes(const mri_loader_plan *plan)
{
    const mr_source_info *info = mr_source_info_of(plan->source);
    if (plan->cfg.cache == MR_CACHE_OFF) return 0;
    const uint64_t index = mri_cache_index_bytes(info->count);
    return plan->cfg.cache == MR_CACHE_DISK ? index : mri_plus(index, plan->cfg.cache_bytes);
}

static uint64_t order_bytes(const mri_loader_plan *plan)
{
    const mr_source_info *info = mr_source_info_of(plan->source);
    if (plan->cfg.order == MR_ORDER_BALANCED) return mri_balance_bytes(info->count, info->class_count);
    return plan->cfg.length_window
               ? mri_windows_bytes(plan->cfg.batch, plan->cfg.length_window, plan->info.epoch_samples)
               : 0;
}

static uint64_t read_buffer_bytes(const mri_loader_plan *plan, const mri_memory_plan *p)
{
    const uint64_t begun =
        mri_source_is_begun(plan->source) ? mr_source_info_of(plan->source)->max_extent_bytes : 0;
    if (p->resident || mri_source_is_made(plan->source))
        return mri_times(p->chunk_count, mri_plus(p->chunk_room, mri_times(p->chunk_samples, begun)));
    const uint64_t most = chunk_bytes_most(plan, p->chunk_samples);
    const uint64_t grown = most > p->chunk_room ? mri_plus(mri_plus(most, most / 4), MRI_DIRECT_ALIGN) : 0;
    return mri_times(p->chunk_count, mri_plus(p->chunk_room, grown));
}

static uint64_t bookkeeping_bytes(const mri_loader_plan *plan, const mri_memory_plan *p)
{
    const uint64_t places = (uint64_t)p->chunk_count * p->chunk_samples;
    const uint64_t paths = mri_source_has_sample_files(plan->source)
                               ? (uint64_t)plan->cfg.readers * plan->cfg.depth * PATH_BYTES
                               : 0;
    const uint64_t threads = plan->threads ? (uint64_t)plan->cfg.readers + plan->cfg.workers + 1 : 1;
    return p->chunk_count * sizeof(mri_chunk) + places * (sizeof(mri_read) + sizeof(mri_chunk_sample)) +
           paths + plan->slot_count * (sizeof(mri_slot) + plan->info.parts * sizeof(mr_part)) +
           threads * THREAD_BYTES;
}

/* The most memory a worker may hold for such pictures. */
static uint64_t worker_bytes(const mri_loader_plan *plan, mri_extremes seen)
{
    return mri_place_bytes(plan->source, plan->augment, &plan->cfg.decode, &plan->fields,
                           plan->cfg.cache != MR_CACHE_OFF ? plan->cache_form : NULL,
                           (uint64_t)plan->info.height * plan->info.width, seen);
}

/* A set whose pictures all have one size needs room for exactly that. */
static mri_extremes largest_picture(const mri_loader_plan *plan)
{
    const mr_source_info *info = mr_source_info_of(plan->source);
    const uint64_t most = plan->cfg.decode.max_pixels;
    if (info->image_field < 0) return (mri_extremes){0};
    if (!info->height || !info->width) return (mri_extremes){most, most};
    return (mri_extremes){mri_min_u64(most, mri_times(info->height, info->width)),
                          mri_max_u64(info->height, info->width)};
}

/* Plan the workers' memory: room for the largest picture each, or a share each and the rest for one at a
 * time. */
static void plan_workers(const mri_loader_plan *plan, mri_memory_plan *p, uint64_t fixed, uint64_t budget)
{
    const mri_extremes most = largest_picture(plan),
                       least = {mri_min_u64(most.pixels, LEAST_PIXELS), mri_min_u64(most.side, LEAST_PIXELS)};
    const uint64_t one = worker_bytes(plan, least), own = mri_times(plan->cfg.workers, one),
                   all = mri_times(plan->cfg.workers, worker_bytes(plan, most)),
                   reserved = mri_plus(fixed, own);
    const bool others = plan->cfg.budget && most.pixels > least.pixels; /* they need room, too */
    p->max_pixels = most.pixels;
    p->scratch = all;
    if (!others && (mri_plus(fixed, all) <= budget || most.pixels == least.pixels)) return;
    p->scratch = own;
    p->share = least;
    if (reserved > budget) return;
    p->pool = mri_min_u64(budget - reserved, all - own);
    mri_extremes fits = most;
    while (fits.pixels > least.pixels && worker_bytes(plan, fits) - one > p->pool) {
        fits.pixels -= fits.pixels / 8;
        fits.side = mri_max_u64(least.side, mri_min_u64(fits.side, fits.pixels));
    }
    p->max_pixels = fits.pixels;
}

static mri_memory_plan plan_bytes(const mri_loader_plan *plan, uint64_t resident, uint64_t points,
                                  uint64_t budget)
{
    mri_memory_plan p = {
        .resident = resident, .cache = cache_bytes(plan), .points = points, .order = order_bytes(plan)};
    const uint64_t most = mr_source_info_of(plan->source)->max_extent_bytes;
    plan_chunks(plan, &p);
    p.slots = mri_times(mri_slot_bytes(&plan->layout), plan->slot_count);
    p.reads = read_buffer_bytes(plan, &p);
    const uint64_t forms = plan->cfg.cache != MR_CACHE_OFF ? plan->cache_form->bound(most) : 0;
    const uint64_t spares = mri_times(plan->cfg.workers, mri_plus(most, forms));
    const uint64_t kept = mri_plus(mri_plus(p.resident, p.cache), mri_plus(p.points, p.order));
    const uint64_t fixed =
        mri_plus(mri_plus(mri_plus(p.slots, p.reads), kept), mri_plus(spares, bookkeeping_bytes(plan, &p)));
    plan_workers(plan, &p, fixed, budget);
    p.workers = mri_plus(p.scratch, spares);
    p.reserved = mri_plus(fixed, p.scratch);
    p.all = mri_plus(p.reserved, p.pool);
    return p;
}

/* A set that is resident leaves three quarters of the budget to everything else, and gives way where that is
 * too little. */
static uint64_t resident_bytes(const mri_loader_plan *plan, uint64_t budget)
{
    if (plan->cfg.cache != MR_CACHE_OFF && !plan->cache_waits)
        return 0; /* one of them is enough, and this one was asked for */
    const uint64_t bytes = mri_resident_bytes(plan->source);
    return bytes <= mri_min_u64(plan->cfg.resident_bytes, budget / 4) ? bytes : 0;
}

static bool has_entry_points(const mr_source_info *info)
{
    for (uint32_t k = 0; k < info->field_count; k++)
        if (strcmp(info->fields[k].name, "image.entries") == 0) return true;
    return false;
}

/* Entry points that the first epoch builds for JPEGs without them, for later epochs. */
static uint64_t points_bytes(const mri_loader_plan *plan, uint64_t budget)
{
    const mr_source_info *info = mr_source_info_of(plan->source);
    const mr_loader_config *cfg = &plan->cfg;
    const mr_type type = info->image_field >= 0 ? info->fields[info->image_field].type : MR_TYPE_PIXELS;
    if (cfg->cache != MR_CACHE_OFF || cfg->decode.pixels == MR_PIXELS_LIBJPEG ||
        cfg->epochs - cfg->start_epoch <= 1 ||
        (type != MR_TYPE_JPEG && type != MR_TYPE_BYTES && type != MR_TYPE_IMAGE) ||
        mri_source_is_made(plan->source) || has_entry_points(info))
        return 0;
    return mri_min_u64(mri_points_bytes(info), mri_min_u64(cfg->entry_bytes, budget / 8));
}

/* All pictures have one size, and not one of them fits. */
static int picture_too_large(const mri_loader_plan *plan, const mri_memory_plan *p, uint64_t budget,
                             mr_error *err)
{
    const mr_source_info *info = mr_source_info_of(plan->source);
    return mr_error_set(
        err, MR_ELIMIT,
        "decoding one picture of %u x %u may take %.1f MiB, and of the budget of %.1f MiB %.1f are left for "
        "it: raise --memory, or lower --workers, --prefetch or --batch",
        info->width, info->height, (double)worker_bytes(plan, largest_picture(plan)) / 1048576,
        (double)budget / 1048576, (double)(p->pool + worker_bytes(plan, p->share)) / 1048576);
}

uint64_t mri_budget_of(const mri_loader_plan *plan)
{
    if (plan->cfg.budget) return mri_budget_left(plan->cfg.budget);
    return plan->cfg.memory_bytes ? plan->cfg.memory_bytes : mri_memory_limit_bytes() / 2;
}

int mri_plan_memory(const mri_loader_plan *plan, mri_memory_plan *out, mr_error *err)
{
    const uint64_t budget = mri_budget_of(plan);
    const mr_source_info *info = mr_source_info_of(plan->source);
    const uint64_t points = points_bytes(plan, budget);
    mri_memory_plan p = plan_bytes(plan, resident_bytes(plan, budget), points, budget);
    if (p.all > budget && points) p = plan_bytes(plan, resident_bytes(plan, budget), 0, budget);
    if (p.all > budget && p.resident) p = plan_bytes(plan, 0, 0, budget);
    *out = p;
    const bool one_size = info->image_field >= 0 && info->height && info->width;
    if (p.all <= budget && one_size && p.max_pixels < largest_picture(plan).pixels)
        return picture_too_large(plan, &p, budget, err);
    if (p.all <= budget) return MR_OK;
    return mr_error_set(
        err, MR_ELIMIT,
        "the loader needs %.1f MiB (%u slots %.1f, of them fields %.1f; read buffers %.1f, cache %.1f, "
        "order of samples %.1f, %u workers %.1f) and the budget %s %.1f MiB: lower --batch, --prefetch, "
        "--depth, --workers, --cache, --length-window or a field's most, or raise --memory (pictures go in "
        "as %u x %u x %u; the largest sample is %.1f MiB)",
        (double)p.all / 1048576, plan->slot_count, (double)p.slots / 1048576,
        (double)mri_times(mri_fields_bytes(&plan->fields, plan->layout.batch), plan->slot_count) / 1048576,
        (double)p.reads / 1048576, (double)p.cache / 1048576, (double)p.order / 1048576, plan->cfg.workers,
        (double)p.workers / 1048576, plan->cfg.budget ? "has left" : "is", (double)budget / 1048576,
        plan->info.height, plan->info.width, plan->info.channels,
        (double)mr_source_info_of(plan->source)->max_extent_bytes / 1048576);
}
