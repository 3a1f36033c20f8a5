/* pipeline/loader_open.c: from settings to a loader whose stages are made and do not run yet. */
#include <stdio.h>

#include "formats/source/source.h"
#include "pipeline/fields/peek.h"
#include "pipeline/loader_private.h"

/* ------------------------------------------------------------------------------ settings */

/* Far above what helps, and low enough that no count below overflows. */
static int check_counts(const mr_loader_config *cfg, mr_error *err)
{
    const struct {
        const char *name;
        uint32_t value, most;
    } counts[] = {
        {"prefetch", cfg->prefetch, 65535},
        {"workers", cfg->workers, 4096},
        {"readers", cfg->readers, 1024},
        {"depth", cfg->depth, 4096},
    };
    for (size_t i = 0; i < MRI_ARRAY_COUNT(counts); i++)
        if (counts[i].value > counts[i].most)
            return mr_error_set(err, MR_EINVAL, "%s %u: expected at most %u", counts[i].name, counts[i].value,
                                counts[i].most);
    return MR_OK;
}

static int check_settings(mr_loader *l, const mr_loader_config *cfg, mr_error *err)
{
    const mr_source_info *info = mr_source_info_of(l->source);
    if (cfg->batch == 0)
        return mr_error_set(err, MR_EINVAL, "batch 0: expected at least one sample per batch");
    if (info->count == 0) return mr_error_set(err, MR_EINVAL, "%s holds no samples", info->path);
    if (info->image_field < 0 && cfg->field_count == 0) return mri_fields_missing(info, err);
    if (cfg->length_window && info->length_field == MR_NO_FIELD) return mri_windows_no_lengths(info, err);
    if (cfg->channels != 0 && cfg->channels != 1 && cfg->channels != 3)
        return mr_error_set(err, MR_EINVAL, "channels %u: expected 1, 3 or 0 (what the data has)",
                            cfg->channels);
    if (cfg->free_order && cfg->devices)
        return mr_error_set(err, MR_EINVAL, "free order is for batches in host memory, without devices");
    const uint32_t parts = cfg->devices ? cfg->device_count : cfg->parts;
    if (parts == 0 || parts > MR_LOADER_MAX_PARTS)
        return mr_error_set(err, MR_EINVAL, "%u replicas: expected 1..%d", parts, MR_LOADER_MAX_PARTS);
    if (cfg->epochs == 0 || cfg->start_epoch >= cfg->epochs)
        return mr_error_set(err, MR_EINVAL, "start at epoch %llu of %llu: nothing is left to deliver",
                            (unsigned long long)cfg->start_epoch, (unsigned long long)cfg->epochs);
    if (cfg->cache == MR_CACHE_DISK && (!cfg->cache_folder || !cfg->cache_folder[0]))
        return mr_error_set(err, MR_EINVAL, "a cache on disk needs a folder");
    l->info.parts = parts;
    return check_counts(cfg, err);
}

static void plan_epochs(mr_loader *l)
{
    const mri_batches *b = &l->batches;
    l->info.sample_count = b->sample_count;
    l->info.steps_per_epoch = b->steps_per_epoch;
    l->info.dropped = mri_batches_dropped(b);
    l->info.padded = mri_batches_padded(b);
    l->info.epoch_samples = b->sample_count - l->info.dropped;
}

/* Batches of fields alone. */
static int no_pictures(const mr_loader *l, mr_error *err)
{
    if (strcmp(l->info.augment, "none") == 0) return MR_OK;
    return mr_error_set(err, MR_EINVAL, "augment %s: %s has no pictures to augment; leave it at none",
                        l->info.augment, mr_source_info_of(l->source)->path);
}

static int plan_pixels(mr_loader *l, mr_error *err)
{
    const mr_source_info *info = mr_source_info_of(l->source);
    int rc = mr_augment_create(&l->augment, l->cfg.augment ? l->cfg.augment : "none", l->cfg.training, err);
    if (rc != MR_OK) return rc;
    mr_augment_normalise(l->augment, l->info.mean, l->info.std, &l->info.uses_affine);
    l->info.augment = mr_augment_text(l->augment);
    if (info->image_field < 0) return no_pictures(l, err);
    uint32_t h = info->height, w = info->width;
    rc = mr_augment_output(l->augment, h, w, &l->info.height, &l->info.width, err);
    if (rc != MR_OK && h == 0) { /* one size for all may still be true: the first picture says which, the
                                    others are checked */
        rc = mri_peek_size(l->source, &l->cfg.decode, mri_peek_may_be_bad(&l->cfg), &h, &w, err);
        if (rc == MR_OK) rc = mr_augment_output(l->augment, h, w, &l->info.height, &l->info.width, err);
    }
    if (rc != MR_OK) return rc;
    l->info.channels = l->cfg.channels ? l->cfg.channels : info->channels == 1 ? 1 : 3;
    l->cache_form = mri_cache_form_for(l->augment, &l->cfg.decode, info->fields[info->image_field].type, h, w,
                                       l->info.channels);
    return MR_OK;
}

static void plan_layout(mr_loader *l)
{
    l->layout = (mri_slot_layout){.batch = l->cfg.batch,
                                  .sample_bytes = (size_t)l->info.height * l->info.width * l->info.channels,
                                  .uses_affine = l->info.uses_affine,
                                  .fields = &l->fields};
}

static int plan_fields(mr_loader *l, mr_error *err)
{
    int rc =
        mri_fields_plan(&l->fields, l->info.field, l->source, &l->cfg, l->info.height, l->info.width, err);
    if (rc == MR_OK && mri_augment_takes_boxes(l->augment))
        rc = mri_fields_plan_crops(&l->fields, mr_source_info_of(l->source), &l->cfg, err);
    l->cfg.fields = NULL; /* the caller's; what it said is in the plan */
    l->info.field_count = l->fields.count;
    return rc;
}

static void plan_threads(mr_loader *l)
{
    mr_loader_config *cfg = &l->cfg;
    l->io = cfg->io;
    if (cfg->depth == 0) cfg->depth = 1;
    if (l->io != MR_IO_PREAD && !mri_uring_usable(cfg->depth, l->io_note, sizeof l->io_note))
        l->io = MR_IO_PREAD;
    if (l->io != MR_IO_PREAD) l->io = MR_IO_URING;
    if (mri_source_is_remote(l->source))
        l->io = MR_IO_PREAD; /* of what was fetched; one reader has `depth` of them under way */
    l->threads = cfg->prefetch > 0;
    if (cfg->workers == 0) cfg->workers = mri_core_count();
    if (cfg->readers == 0) cfg->readers = l->io == MR_IO_PREAD && !mri_source_is_remote(l->source) ? 4 : 1;
    if (!l->threads) cfg->workers = cfg->readers = 1; /* seats, not threads */
    l->slot_count = l->threads ? cfg->prefetch + 1 : 1;
    l->device_slots = l->threads ? 2 : 1;
    if (cfg->devices && cfg->keep_host && l->threads) l->slot_count += l->device_slots;
    l->info.prefetch = cfg->prefetch;
    l->info.workers = l->threads ? cfg->workers : 0;
    l->info.readers = l->threads ? cfg->readers : 0;
    l->info.io = l->io == MR_IO_URING ? "io_uring" : "pread";
    l->info.io_note = l->io_note;
}

static void fill_info(mr_loader *l)
{
    l->info.batch = l->cfg.batch;
    l->info.fingerprint = mr_source_info_of(l->source)->fingerprint;
    l->info.order = l->cfg.order;
    l->info.block = l->cfg.block;
    l->info.tail = l->cfg.tail;
    l->info.length_window = l->cfg.length_window;
    l->info.pixels = l->cfg.decode.pixels;
    if (!l->cfg.devices) return;
    const uint64_t sample =
        l->layout.sample_bytes + sizeof(int32_t) + (l->info.uses_affine ? 2 * sizeof(float) : 0);
    const uint64_t part = (l->info.batch - 1) / l->info.parts + 1;
    l->info.device_bytes = l->device_slots * (part * sample + mri_fields_bytes(&l->fields, part));
}

/* ------------------------------------------------------------------------------ memory and stages */

static int make_cache(mr_loader *l, mr_error *err)
{
    const mr_source_info *info = mr_source_info_of(l->source);
    mri_cache_config cfg = {.count = info->count,
                            .form = l->cache_form,
                            .budget_bytes = l->cfg.cache_bytes,
                            .value_bytes_most = info->max_extent_bytes,
                            .note = mri_notice_text,
                            .note_context = &l->notices};
    if (l->cfg.cache == MR_CACHE_DISK) {
        cfg.folder = l->cfg.cache_folder;
        const int rc = mri_cache_stamp(l->source, &cfg.stamp, err);
        if (rc != MR_OK) return rc;
    }
    return mri_cache_open(&l->cache, &cfg, err);
}

static int make_memory(mr_loader *l, const mri_memory_plan *plan, mr_error *err)
{
    int rc = MR_OK;
    if (l->cfg.length_window) rc = mri_batches_add_windows(&l->batches, l->source, l->cfg.length_window, err);
    if (rc == MR_OK && l->cfg.cache != MR_CACHE_OFF) rc = make_cache(l, err);
    if (rc == MR_OK && plan->resident) rc = mri_resident_create(&l->resident, l->source, err);
    if (rc != MR_OK) return rc;
    l->host_parts = calloc((size_t)l->slot_count * l->info.parts, sizeof *l->host_parts);
    if (!l->host_parts)
        return mr_error_set(err, MR_ENOMEM, "no memory for a list of %u batch slots", l->slot_count);
    rc = mri_slots_init(&l->slots, &l->layout, l->slot_count, l->cfg.devices ? l->cfg.devices[0] : NULL, err);
    if (rc != MR_OK) return rc;
    return mri_chunks_init(&l->chunks, plan->chunk_count, plan->chunk_samples, plan->chunk_room, err);
}

static int make_ring(mr_loader *l, mr_error *err)
{
    const mri_ring_config cfg = {.batches = &l->batches,
                                 .halt = &l->halt,
                                 .slots = &l->slots,
                                 .chunks = &l->chunks,
                                 .device_slots = l->cfg.devices ? l->device_slots : 0,
                                 .keep_host = l->cfg.keep_host,
                                 .free_order = l->cfg.free_order && l->threads};
    return mri_ring_create(&l->ring, &cfg, err);
}

static int make_read_stage(mr_loader *l, mr_error *err)
{
    l->locator = (mri_locator){.batches = &l->batches,
                               .source = l->source,
                               .cache = l->cache,
                               .resident = l->resident,
                               .chunk_room = l->chunks.room,
                               .direct = l->cfg.direct};
    const mri_reader_config reader = {.source = l->source,
                                      .depth = l->cfg.depth,
                                      .direct = l->cfg.direct,
                                      .buffers = l->chunks.pieces,
                                      .buffer_bytes = l->chunks.room,
                                      .buffer_count = l->resident ? 0 : l->chunks.count,
                                      .note = mri_notice_io,
                                      .note_context = &l->notices,
                                      .extra_fd = l->cache ? mri_cache_fd(l->cache) : -1,
                                      .extra_path = l->cache ? mri_cache_path(l->cache) : NULL};
    const mri_read_config cfg = {.ring = l->ring,
                                 .halt = &l->halt,
                                 .locator = &l->locator,
                                 .resident = l->resident,
                                 .io = l->io,
                                 .readers = l->cfg.readers,
                                 .reader = reader,
                                 .trace = l->cfg.trace};
    return mri_read_stage_create(&l->read, &cfg, err);
}

static int make_decode_stage(mr_loader *l, mr_error *err)
{
    const bool keeps = l->cache && !(l->cfg.no_checks && l->cfg.cache == MR_CACHE_DISK);
    l->place = (mri_place_config){.source = l->source,
                                  .augment = l->augment,
                                  .fields = &l->fields,
                                  .layout = &l->layout,
                                  .decode = &l->cfg.decode,
                                  .height = l->info.height,
                                  .width = l->info.width,
                                  .channels = l->info.channels,
                                  .seed = l->cfg.seed,
                                  .cache = l->cache,
                                  .cache_form = l->cache_form,
                                  .keeps = keeps, /* unchecked ones on disk: later runs would take them for
                                                     checked */
                                  .resident = l->resident,
                                  .no_checks = l->cfg.no_checks,
                                  .until = &l->halt.over};
    const mri_decode_config cfg = {.ring = l->ring,
                                   .halt = &l->halt,
                                   .locator = &l->locator,
                                   .place = &l->place,
                                   .bad = &l->bad,
                                   .cache_serves = l->cfg.cache == MR_CACHE_MEMORY,
                                   .workers = l->cfg.workers,
                                   .trace = l->cfg.trace};
    return mri_decode_stage_create(&l->decode, &cfg, err);
}

static int make_staging(mr_loader *l, mr_error *err)
{
    const mri_staging_config cfg = {.ring = l->ring,
                                    .halt = &l->halt,
                                    .batches = &l->batches,
                                    .layout = &l->layout,
                                    .devices = l->cfg.devices,
                                    .device_slots = l->device_slots,
                                    .trace = l->cfg.trace};
    return mri_staging_create(&l->staging, &cfg, err);
}

static int plan_memory(mr_loader *l, mri_memory_plan *plan, mr_error *err)
{
    const int rc = mri_plan_memory(l, plan, err);
    l->info.memory_bytes = plan->all;
    l->info.resident_bytes = plan->resident;
    l->info.max_pixels = plan->max_pixels;
    l->cfg.decode.max_pixels = mri_min_u64(l->cfg.decode.max_pixels, plan->max_pixels);
    return rc;
}

int mri_loader_prepare(mr_loader *l, mr_error *err)
{
    mri_memory_plan plan = {0};
    int rc = check_settings(l, &l->cfg, err);
    if (rc == MR_OK)
        rc = mri_batches_plan(&l->batches, &l->cfg, mr_source_info_of(l->source)->count, l->info.parts, err);
    if (rc == MR_OK) {
        plan_epochs(l);
        rc = plan_pixels(l, err);
    }
    if (rc == MR_OK) {
        plan_layout(l);
        rc = plan_fields(l, err);
    }
    if (rc != MR_OK) return rc;
    plan_threads(l);
    fill_info(l);
    rc = plan_memory(l, &plan, err);
    if (rc == MR_OK) rc = make_memory(l, &plan, err);
    if (rc == MR_OK) rc = make_ring(l, err);
    if (rc == MR_OK) rc = make_read_stage(l, err);
    if (rc == MR_OK) rc = make_decode_stage(l, err);
    if (rc == MR_OK && l->cfg.devices) rc = make_staging(l, err);
    return rc;
}
