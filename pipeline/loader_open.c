/* pipeline/loader_open.c: from a plan to a loader whose stages are made and do not run yet. */
#include "pipeline/loader_private.h"

static int make_cache(mr_loader *l, mr_error *err)
{
    const mr_source_info *info = mr_source_info_of(l->plan.source);
    mri_cache_config cfg = {.count = info->count,
                            .form = l->plan.cache_form,
                            .budget_bytes = l->plan.cfg.cache_bytes,
                            .value_bytes_most = info->max_extent_bytes,
                            .note = mri_notice_text,
                            .note_context = &l->notices};
    if (l->plan.cfg.cache == MR_CACHE_DISK) {
        cfg.folder = l->plan.cfg.cache_folder;
        const int rc = mri_cache_stamp(l->plan.source, &cfg.stamp, err);
        if (rc != MR_OK) return rc;
    }
    return mri_cache_open(&l->cache, &cfg, err);
}

static int make_memory(mr_loader *l, mr_error *err)
{
    const mri_memory_plan *memory = &l->plan.memory;
    int rc = MR_OK;
    if (l->plan.cfg.length_window)
        rc = mri_batches_add_windows(&l->plan.batches, l->plan.source, l->plan.cfg.length_window, err);
    if (rc == MR_OK && l->plan.cfg.cache != MR_CACHE_OFF) rc = make_cache(l, err);
    if (rc == MR_OK && memory->resident) rc = mri_resident_create(&l->resident, l->plan.source, err);
    if (rc != MR_OK) return rc;
    l->host_parts = calloc((size_t)l->plan.slot_count * l->plan.info.parts, sizeof *l->host_parts);
    if (!l->host_parts)
        return mr_error_set(err, MR_ENOMEM, "no memory for a list of %u batch slots", l->plan.slot_count);
    rc = mri_slots_init(&l->slots, &l->plan.layout, l->plan.slot_count,
                        l->plan.cfg.devices ? l->plan.cfg.devices[0] : NULL, err);
    if (rc != MR_OK) return rc;
    return mri_chunks_init(&l->chunks, memory->chunk_count, memory->chunk_samples, memory->chunk_room, err);
}

static int make_ring(mr_loader *l, mr_error *err)
{
    const mri_ring_config cfg = {.batches = &l->plan.batches,
                                 .halt = &l->halt,
                                 .slots = &l->slots,
                                 .chunks = &l->chunks,
                                 .device_slots = l->plan.cfg.devices ? l->plan.device_slots : 0,
                                 .keep_host = l->plan.cfg.keep_host,
                                 .free_order = l->plan.cfg.free_order && l->plan.threads};
    return mri_ring_create(&l->ring, &cfg, err);
}

static int make_read_stage(mr_loader *l, mr_error *err)
{
    l->locator = (mri_locator){.batches = &l->plan.batches,
                               .source = l->plan.source,
                               .cache = l->cache,
                               .resident = l->resident,
                               .chunk_room = l->chunks.room,
                               .direct = l->plan.cfg.direct};
    const mri_reader_config reader = {.source = l->plan.source,
                                      .depth = l->plan.cfg.depth,
                                      .direct = l->plan.cfg.direct,
                                      .buffers = l->chunks.pieces,
                                      .buffer_bytes = l->chunks.room,
                                      .buffer_count = l->resident ? 0 : l->chunks.count,
                                      .note = mri_notice_once,
                                      .note_context = &l->notices,
                                      .extra_fd = l->cache ? mri_cache_fd(l->cache) : -1,
                                      .extra_path = l->cache ? mri_cache_path(l->cache) : NULL};
    const mri_read_config cfg = {.ring = l->ring,
                                 .halt = &l->halt,
                                 .locator = &l->locator,
                                 .resident = l->resident,
                                 .io = l->plan.io,
                                 .readers = l->plan.cfg.readers,
                                 .reader = reader,
                                 .trace = l->plan.cfg.trace};
    return mri_read_stage_create(&l->read, &cfg, err);
}

static int make_decode_stage(mr_loader *l, mr_error *err)
{
    const bool keeps = l->cache && !(l->plan.cfg.no_checks && l->plan.cfg.cache == MR_CACHE_DISK);
    l->place = (mri_place_config){.source = l->plan.source,
                                  .augment = l->plan.augment,
                                  .fields = &l->plan.fields,
                                  .layout = &l->plan.layout,
                                  .decode = &l->plan.cfg.decode,
                                  .height = l->plan.info.height,
                                  .width = l->plan.info.width,
                                  .channels = l->plan.info.channels,
                                  .seed = l->plan.cfg.seed,
                                  .cache = l->cache,
                                  .cache_form = l->plan.cache_form,
                                  .keeps = keeps, /* unchecked ones on disk: later runs would take them for
                                                     checked */
                                  .resident = l->resident,
                                  .no_checks = l->plan.cfg.no_checks,
                                  .until = &l->halt.over};
    const mri_decode_config cfg = {.ring = l->ring,
                                   .halt = &l->halt,
                                   .locator = &l->locator,
                                   .place = &l->place,
                                   .bad = &l->bad,
                                   .cache_serves = l->plan.cfg.cache == MR_CACHE_MEMORY,
                                   .workers = l->plan.cfg.workers,
                                   .trace = l->plan.cfg.trace};
    return mri_decode_stage_create(&l->decode, &cfg, err);
}

static int make_staging(mr_loader *l, mr_error *err)
{
    const mri_staging_config cfg = {.ring = l->ring,
                                    .halt = &l->halt,
                                    .batches = &l->plan.batches,
                                    .layout = &l->plan.layout,
                                    .devices = l->plan.cfg.devices,
                                    .device_slots = l->plan.device_slots,
                                    .trace = l->plan.cfg.trace};
    return mri_staging_create(&l->staging, &cfg, err);
}

int mri_loader_make(mr_loader *l, mr_error *err)
{
    int rc = make_memory(l, err);
    if (rc == MR_OK) rc = make_ring(l, err);
    if (rc == MR_OK) rc = make_read_stage(l, err);
    if (rc == MR_OK) rc = make_decode_stage(l, err);
    if (rc == MR_OK && l->plan.cfg.devices) rc = make_staging(l, err);
    return rc;
}
