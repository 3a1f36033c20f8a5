/* pipeline/loader_open.c: from a plan to a loader whose stages are made and do not run yet. */
#include "base/process.h"
#include "formats/source/source.h"
#include "pipeline/loader_private.h"

static int make_cache(mr_loader *l, mr_error *err)
{
    const mr_source_info *info = mr_source_info_of(l->plan.source);
    mri_cache_config cfg = {.count = info->count,
                            .form = l->plan.cache_form,
                            .budget_bytes = l->plan.cfg.cache_bytes,
                            .value_bytes_most = info->max_extent_bytes,
                            .waits = l->plan.cache_waits,
                            .note = mri_notice_text,
                            .note_context = &l->notices};
    if (l->plan.cfg.cache == MR_CACHE_DISK) {
        cfg.folder = l->plan.cfg.cache_folder;
        const int rc = mri_cache_stamp(l->plan.source, &cfg.stamp, err);
        if (rc != MR_OK) return rc;
    }
    return mri_cache_open(&l->kept.cache, &cfg, err);
}

/* Before anything is taken. */
static int make_budget(mr_loader *l, mr_error *err)
{
    const mri_memory_plan *memory = &l->plan.memory;
    mr_budget *shared = l->plan.cfg.budget;
    if (!shared && !memory->share.pixels) return MR_OK;
    if (!shared && mr_budget_create(&l->budget.own, memory->all) != MR_OK)
        return mr_error_set(err, MR_ENOMEM, "no memory for a loader");
    mr_budget *budget = shared ? shared : l->budget.own;
    const int rc = mri_budget_reserve(budget, memory->reserved);
    if (rc != MR_OK) /* another loader was opened at the same time */
        return mr_error_set(err, rc, "the loader needs %.1f MiB, and the budget has %.1f MiB left",
                            (double)memory->reserved / 1048576, (double)mri_budget_left(budget) / 1048576);
    l->budget.reserved = true;
    if (memory->share.pixels) mri_halt_add(&l->halt, mri_budget_wake, budget);
    return MR_OK;
}

static int make_memory(mr_loader *l, mr_error *err)
{
    const mri_memory_plan *memory = &l->plan.memory;
    int rc = MR_OK;
    if (l->plan.cfg.length_window)
        rc = mri_batches_add_windows(&l->plan.batches, l->plan.source, l->plan.cfg.length_window, err);
    if (rc == MR_OK) rc = mri_batches_add_dealer(&l->plan.batches, l->plan.source, err);
    if (rc == MR_OK && l->plan.cfg.cache != MR_CACHE_OFF) rc = make_cache(l, err);
    if (rc == MR_OK && memory->points)
        rc =
            mri_points_create(&l->kept.points, mr_source_info_of(l->plan.source)->count, memory->points, err);
    if (rc == MR_OK && memory->resident) rc = mri_resident_create(&l->kept.resident, l->plan.source, err);
    if (rc != MR_OK) return rc;
    l->host_parts = calloc((size_t)l->plan.slot_count * l->plan.info.parts, sizeof *l->host_parts);
    if (!l->host_parts)
        return mr_error_set(err, MR_ENOMEM, "no memory for a list of %u batch slots", l->plan.slot_count);
    rc = mri_slots_init(&l->slots, &l->plan.layout, l->plan.slot_count,
                        l->plan.cfg.devices ? l->plan.cfg.devices[0] : NULL, err);
    if (rc != MR_OK) return rc;
    const uint32_t keep = l->plan.cfg.keep;
    if (keep && mri_shelf_create(&l->shelf, l->slots.slot + l->plan.slot_count - keep, keep) != MR_OK)
        return mr_error_set(err, MR_ENOMEM, "no memory for a list of %u batches to keep", keep);
    return mri_chunks_init(&l->chunks, memory->chunk_count, memory->chunk_samples, memory->chunk_room, err);
}

/* A function of the caller's may wait: it is asked by a thread for which nobody waits. */
static bool asks_ahead(const mr_loader *l) { return l->plan.threads && l->plan.batches.own.ask; }

/* Do workers call functions of the program: a source's, an operation's, or for a substitute the sampler? */
static bool calls_program(const mr_loader *l)
{
    const mri_loader_plan *plan = &l->plan;
    if (!plan->threads) return false;
    return mri_source_is_made(plan->source) || plan->cfg.operation_count > 0 ||
           (plan->batches.own.ask && plan->cfg.bad == MR_BAD_REPLACE);
}

static int make_order_stage(mr_loader *l, mr_error *err)
{
    const mri_order_config cfg = {
        .set = &l->plan.cfg, .ring = l->ring, .halt = &l->halt, .batches = &l->plan.batches};
    return asks_ahead(l) ? mri_order_stage_create(&l->stages.order, &cfg, err) : MR_OK;
}

static int make_ring(mr_loader *l, mr_error *err)
{
    const mri_ring_config cfg = {.set = &l->plan.cfg,
                                 .batches = &l->plan.batches,
                                 .halt = &l->halt,
                                 .slots = &l->slots,
                                 .chunks = &l->chunks,
                                 .device_slots = l->plan.cfg.devices ? l->plan.device_slots : 0,
                                 .free_order = l->plan.cfg.free_order && l->plan.threads,
                                 .calls = calls_program(l) && !l->plan.cfg.free_order,
                                 .lists = asks_ahead(l)};
    return mri_ring_create(&l->ring, &cfg, err);
}

static int make_read_stage(mr_loader *l, mr_error *err)
{
    l->locator = (mri_locator){.batches = &l->plan.batches,
                               .source = l->plan.source,
                               .cache = l->kept.cache,
                               .resident = l->kept.resident,
                               .chunk_room = l->chunks.room,
                               .direct = l->plan.cfg.direct};
    const mri_reader_config reader = {.source = l->plan.source,
                                      .depth = l->plan.cfg.depth,
                                      .direct = l->plan.cfg.direct,
                                      .any_thread = !l->plan.threads, /* whoever asks for a batch reads */
                                      .buffers = l->chunks.pieces,
                                      .buffer_bytes = l->chunks.room,
                                      .buffer_count = l->kept.resident ? 0 : l->chunks.count,
                                      .note = mri_notice_once,
                                      .note_context = &l->notices,
                                      .extra_fd = l->kept.cache ? mri_cache_fd(l->kept.cache) : -1,
                                      .extra_path = l->kept.cache ? mri_cache_path(l->kept.cache) : NULL};
    const mri_read_config cfg = {.set = &l->plan.cfg,
                                 .ring = l->ring,
                                 .halt = &l->halt,
                                 .locator = &l->locator,
                                 .resident = l->kept.resident,
                                 .io = l->plan.io,
                                 .reader = reader};
    return mri_read_stage_create(&l->stages.read, &cfg, err);
}

static int make_decode_stage(mr_loader *l, mr_error *err)
{
    const bool keeps = l->kept.cache && !(l->plan.cfg.no_checks && l->plan.cfg.cache == MR_CACHE_DISK);
    l->place = (mri_place_config){.set = &l->plan.cfg,
                                  .source = l->plan.source,
                                  .augment = l->plan.augment,
                                  .fields = &l->plan.fields,
                                  .layout = &l->plan.layout,
                                  .decode = &l->plan.cfg.decode,
                                  .height = l->plan.info.height,
                                  .width = l->plan.info.width,
                                  .channels = l->plan.info.channels,
                                  .cache = l->kept.cache,
                                  .cache_form = l->plan.cache_form,
                                  .keeps = keeps, /* unchecked ones on disk: later runs would take them for
                                                     checked */
                                  .resident = l->kept.resident,
                                  .points = l->kept.points,
                                  .until = &l->halt.over,
                                  .budget = !l->plan.memory.share.pixels ? NULL
                                            : l->budget.own              ? l->budget.own
                                                                         : l->plan.cfg.budget,
                                  .share = l->plan.memory.share};
    const mri_decode_config cfg = {.set = &l->plan.cfg,
                                   .ring = l->ring,
                                   .halt = &l->halt,
                                   .locator = &l->locator,
                                   .place = &l->place,
                                   .bad = &l->bad,
                                   .chunk_samples = l->plan.memory.chunk_samples};
    return mri_decode_stage_create(&l->stages.decode, &cfg, err);
}

static int make_staging(mr_loader *l, mr_error *err)
{
    const mri_staging_config cfg = {.set = &l->plan.cfg,
                                    .ring = l->ring,
                                    .halt = &l->halt,
                                    .batches = &l->plan.batches,
                                    .layout = &l->plan.layout,
                                    .device_slots = l->plan.device_slots};
    return mri_staging_create(&l->stages.staging, &cfg, err);
}

int mri_loader_make(mr_loader *l, mr_error *err)
{
    mri_run_shape shape = l->plan.memory.shape;
    shape.quota = l->plan.cfg.record && mri_has_quota();
    mri_record_set_shape(l->plan.cfg.record, &shape);
    if (l->plan.no_room_for_cache)
        mri_notice_text(&l->notices,
                        "no cache: the rest of the loader leaves too little of the memory budget "
                        "to keep a quarter of the set; raise --memory");
    if (l->plan.shrunk[0]) mri_notice_text(&l->notices, l->plan.shrunk);
    int rc = make_budget(l, err);
    if (rc == MR_OK) rc = make_memory(l, err);
    if (rc == MR_OK) rc = make_ring(l, err);
    if (rc == MR_OK) rc = make_order_stage(l, err);
    if (rc == MR_OK) rc = make_read_stage(l, err);
    if (rc == MR_OK) rc = make_decode_stage(l, err);
    if (rc == MR_OK) rc = mri_charges_create(&l->charges, l->ring, l->stages.decode, err);
    if (rc == MR_OK && l->plan.cfg.devices) rc = make_staging(l, err);
    if (rc == MR_OK) rc = mri_tune_start(l, err);
    return rc;
}
