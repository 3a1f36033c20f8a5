/* pipeline/loader_budget.c: how large chunks are, and what a loader may come to hold (I10).
 *
 *   slots + read buffers + per worker (scratch, one spare sample) + the set itself where it is resident + the
 *   cache + windows of lengths + bookkeeping <= budget
 *
 * Every term is the most there can be for this data set: the largest sample in every place of every chunk,
 * the largest picture that may be decoded in every worker. Sums and products saturate: what a hostile header
 * claims ends as "over the budget", never as a small number. What the source itself keeps (names, index) is
 * bounded where it is opened. */
#include "pipeline/loader_private.h"

#define CHUNK_BYTES    65536u /* small samples share the cost of a lock ... */
#define CHUNK_SAMPLES  64u
#define CHUNK_RESIDENT 256u /* ... and without a request each, a lock is all they would pay for */
#define CHUNK_MOST_BYTES                                                                                     \
    (4u << 20)                  /* ... but one huge sample must not be provided for 64 times in each chunk */
#define LEAST_PIXELS (1u << 16) /* a budget that cannot hold a picture of 256 x 256 is a mistake */
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

/* Chunks: about CHUNK_BYTES of data, and at least two chunks a worker in every batch. */
static void plan_chunks(const mri_loader_plan *plan, mri_memory_plan *p)
{
    const mr_source_info *info = mr_source_info_of(plan->source);
    const uint64_t mean = info->total_bytes / info->count + 1;
    uint64_t n = p->resident ? CHUNK_RESIDENT : mri_min_u64(CHUNK_BYTES / mean + 1, CHUNK_SAMPLES);
    n = mri_min_u64(n, (plan->cfg.batch - 1) / (2 * plan->cfg.workers) + 1);
    if (p->resident) { /* no buffers: workers take turns with as many chunks as they are */
        p->chunk_samples = (uint32_t)n;
        p->chunk_count = plan->threads ? plan->cfg.workers + 1 : 1;
        p->chunk_room = MRI_DIRECT_ALIGN;
        return;
    }
    n = mri_min_u64(n, mri_max_u64(1, CHUNK_MOST_BYTES / mri_max_u64(1, info->max_extent_bytes)));
    p->chunk_samples = (uint32_t)n;
    p->chunk_count = plan->threads
                         ? plan->cfg.readers * (uint32_t)mri_max_u64(2, (plan->cfg.depth - 1) / n + 1) +
                               2 * plan->cfg.workers
                         : 1;
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

static uint64_t windows_bytes(const mri_loader_plan *plan)
{
    return plan->cfg.length_window
               ? mri_windows_bytes(plan->cfg.batch, plan->cfg.length_window, plan->info.epoch_samples)
               : 0;
}

static uint64_t read_buffer_bytes(const mri_loader_plan *plan, const mri_memory_plan *p)
{
    if (p->resident) return p->chunk_count * p->chunk_room;
    const uint64_t most = chunk_bytes_most(plan, p->chunk_samples);
    const uint64_t grown = most > p->chunk_room ? mri_plus(mri_plus(most, most / 4), MRI_DIRECT_ALIGN) : 0;
    return mri_times(p->chunk_count, mri_plus(p->chunk_room, grown));
}

static uint64_t bookkeeping_bytes(const mri_loader_plan *plan, const mri_memory_plan *p)
{
    const uint64_t places = (uint64_t)p->chunk_count * p->chunk_samples;
    const uint64_t paths = mr_source_info_of(plan->source)->file_count == 0
                               ? (uint64_t)plan->cfg.readers * plan->cfg.depth * PATH_BYTES
                               : 0;
    const uint64_t threads = plan->threads ? (uint64_t)plan->cfg.readers + plan->cfg.workers + 1 : 1;
    return p->chunk_count * sizeof(mri_chunk) + places * (sizeof(mri_read) + sizeof(mri_chunk_sample)) +
           paths + plan->slot_count * (sizeof(mri_slot) + plan->info.parts * sizeof(mr_part)) +
           threads * THREAD_BYTES;
}

/* What a worker may come to hold for pictures of up to these pixels. */
static uint64_t worker_bytes(const mri_loader_plan *plan, uint64_t pixels)
{
    if (mr_source_info_of(plan->source)->image_field < 0)
        return mri_field_scratch_bound_bytes(&plan->fields, 0);
    const bool maker = plan->cfg.cache != MR_CACHE_OFF && plan->cache_form->maker_bytes;
    const uint64_t scratch =
        mri_scratch_bound_bytes(&plan->cfg.decode, pixels, (uint64_t)plan->info.height * plan->info.width);
    return mri_plus(mri_plus(scratch, mri_field_scratch_bound_bytes(&plan->fields, pixels)),
                    maker ? plan->cache_form->maker_bytes(&plan->cfg.decode, pixels) : 0);
}

/* A set whose pictures all have one size needs room for exactly that; otherwise the limit on pictures gives
 * way, down to a point, to what the rest of the budget can hold. */
static uint64_t fitting_pixels(const mri_loader_plan *plan, uint64_t fixed, uint64_t budget)
{
    const mr_source_info *info = mr_source_info_of(plan->source);
    uint64_t pixels = plan->cfg.decode.max_pixels;
    if (info->height && info->width) return mri_min_u64(pixels, mri_times(info->height, info->width));
    while (pixels > LEAST_PIXELS &&
           mri_plus(fixed, mri_times(plan->cfg.workers, worker_bytes(plan, pixels))) > budget)
        pixels -= pixels / 8;
    return pixels;
}

static mri_memory_plan plan_bytes(const mri_loader_plan *plan, uint64_t resident, uint64_t budget)
{
    mri_memory_plan p = {.resident = resident, .cache = cache_bytes(plan), .windows = windows_bytes(plan)};
    const uint64_t most = mr_source_info_of(plan->source)->max_extent_bytes;
    plan_chunks(plan, &p);
    p.slots = mri_times(mri_slot_bytes(&plan->layout), plan->slot_count);
    p.reads = read_buffer_bytes(plan, &p);
    const uint64_t forms = plan->cfg.cache != MR_CACHE_OFF ? plan->cache_form->bound(most) : 0;
    const uint64_t spares = mri_times(plan->cfg.workers, mri_plus(most, forms));
    const uint64_t kept = mri_plus(mri_plus(p.resident, p.cache), p.windows);
    const uint64_t fixed =
        mri_plus(mri_plus(mri_plus(p.slots, p.reads), kept), mri_plus(spares, bookkeeping_bytes(plan, &p)));
    p.max_pixels = fitting_pixels(plan, fixed, budget);
    const uint64_t scratch = mri_times(plan->cfg.workers, worker_bytes(plan, p.max_pixels));
    p.workers = mri_plus(scratch, spares);
    p.all = mri_plus(fixed, scratch);
    return p;
}

/* A set that is resident leaves three quarters of the budget to everything else, and gives way where that is
 * too little. */
static uint64_t resident_bytes(const mri_loader_plan *plan, uint64_t budget)
{
    if (plan->cfg.cache != MR_CACHE_OFF) return 0; /* one of them is enough, and this one was asked for */
    const uint64_t bytes = mri_resident_bytes(plan->source);
    return bytes <= mri_min_u64(plan->cfg.resident_bytes, budget / 4) ? bytes : 0;
}

int mri_plan_memory(const mri_loader_plan *plan, mri_memory_plan *out, mr_error *err)
{
    const uint64_t budget = plan->cfg.memory_bytes ? plan->cfg.memory_bytes : mri_memory_limit_bytes() / 2;
    mri_memory_plan p = plan_bytes(plan, resident_bytes(plan, budget), budget);
    if (p.all > budget && p.resident) p = plan_bytes(plan, 0, budget);
    *out = p;
    if (p.all <= budget) return MR_OK;
    return mr_error_set(
        err, MR_ELIMIT,
        "the loader needs %.1f MiB (%u slots %.1f, of them fields %.1f; read buffers %.1f, cache %.1f, "
        "length windows %.1f, %u workers %.1f) "
        "and the budget is %.1f MiB: lower --batch, --prefetch, --depth, --workers, --cache, --length-window "
        "or a field's most, or raise --memory (pictures go in as %u x %u x %u; the "
        "largest sample is %.1f MiB)",
        (double)p.all / 1048576, plan->slot_count, (double)p.slots / 1048576,
        (double)mri_times(mri_fields_bytes(&plan->fields, plan->cfg.batch), plan->slot_count) / 1048576,
        (double)p.reads / 1048576, (double)p.cache / 1048576, (double)p.windows / 1048576, plan->cfg.workers,
        (double)p.workers / 1048576, (double)budget / 1048576, plan->info.height, plan->info.width,
        plan->info.channels, (double)mr_source_info_of(plan->source)->max_extent_bytes / 1048576);
}
