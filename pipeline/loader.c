/* pipeline/loader.c: open, hand out, take back, stop, close. The picture stands in loader_private.h. */
#include <errno.h>
#include <stdio.h>

#include "formats/source/settings.h"
#include "formats/source/source.h"
#include "pipeline/pixels/pixels.h"
#include "pipeline/stream/loader_private.h"

void mr_loader_defaults(mr_loader_config *cfg)
{
    *cfg = (mr_loader_config){.struct_size = sizeof *cfg,
                              .batch = 128,
                              .epochs = 1,
                              .block = 256,
                              .prefetch = 4,
                              .depth = 32,
                              .augment = "none",
                              .max_bad = 100,
                              .parts = 1,
                              .resident_bytes = (uint64_t)1 << 30,
                              .width_multiple = 1};
    mr_decode_defaults(&cfg->decode);
}

/* ------------------------------------------------------------------------------ places and waits */

void mri_part_bounds(const mr_loader *l, uint32_t count, uint32_t r, uint32_t *first, uint32_t *number)
{
    const uint64_t parts = l->info.parts;
    *first = (uint32_t)((uint64_t)count * r / parts);
    *number = (uint32_t)((uint64_t)count * (r + 1) / parts) - *first;
}

void mri_batch_place(const mr_loader *l, uint64_t batch, uint64_t *epoch, uint64_t *step)
{
    *epoch = batch / l->info.steps_per_epoch;
    *step = batch % l->info.steps_per_epoch;
}

uint32_t mri_batch_count(const mr_loader *l, uint64_t batch)
{
    const uint64_t step = batch % l->info.steps_per_epoch;
    if (l->cfg.tail != MR_TAIL_KEEP) return l->cfg.batch;
    return (uint32_t)mri_min_u64(l->cfg.batch, l->info.sample_count - step * l->cfg.batch);
}

void mri_loader_wait_locked(mr_loader *l, pthread_cond_t *cond, uint64_t *blocked_ns)
{
    const uint64_t start = mri_now_ns();
    pthread_cond_wait(cond, &l->lock);
    mri_count(blocked_ns, mri_now_ns() - start);
}

void mri_loader_stop_locked(mr_loader *l)
{
    __atomic_store_n(&l->stopped, true, __ATOMIC_RELAXED); /* mri_source_read_until() looks at it without the
                                                              lock */
    for (uint32_t i = 0; l->readers && i < l->cfg.readers && l->readers[i]; i++)
        mri_reader_stop(l->readers[i]);
    pthread_cond_t *const all[] = {&l->room, &l->work, &l->done, &l->staged_cond, &l->returned};
    for (size_t i = 0; i < MRI_ARRAY_COUNT(all); i++) pthread_cond_broadcast(all[i]);
}

bool mri_loader_is_stopped(mr_loader *l)
{
    pthread_mutex_lock(&l->lock);
    const bool stopped = l->stopped;
    pthread_mutex_unlock(&l->lock);
    return stopped;
}

void mri_loader_self_serve(mr_loader *l)
{
    pthread_mutex_lock(&l->lock);
    l->self_serve = true;
    pthread_cond_broadcast(&l->room);
    pthread_cond_broadcast(&l->work);
    pthread_mutex_unlock(&l->lock);
}

void mri_loader_fail(mr_loader *l, int code, const mr_error *err)
{
    pthread_mutex_lock(&l->lock);
    if (l->failure == MR_OK && !l->stopped) {
        l->failure = code;
        l->failure_error = *err;
    }
    mri_loader_stop_locked(l);
    pthread_mutex_unlock(&l->lock);
}

void mri_loader_free_slots_locked(mr_loader *l)
{
    uint64_t freed = l->released;
    if (l->stages) freed = l->cfg.keep_host ? mri_min_u64(l->released, l->copied) : l->copied;
    if (freed <= l->freed) return;
    l->freed = freed;
    pthread_cond_broadcast(&l->room);
    if (l->self_serve) pthread_cond_broadcast(&l->work);
}

void mr_loader_stop(mr_loader *l)
{
    pthread_mutex_lock(&l->lock);
    mri_loader_stop_locked(l);
    pthread_mutex_unlock(&l->lock);
}

/* ------------------------------------------------------------------------------ open: settings */

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
    if (cfg->batch == 0)
        return mr_error_set(err, MR_EINVAL, "batch 0: expected at least one sample per batch");
    if (l->source_info->count == 0)
        return mr_error_set(err, MR_EINVAL, "%s holds no samples", l->source_info->path);
    if (l->source_info->image_field < 0 && cfg->field_count == 0)
        return mri_fields_missing(l->source_info, err);
    if (cfg->length_window && l->source_info->length_field == MR_NO_FIELD)
        return mri_windows_no_lengths(l->source_info, err);
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

/* Steps per epoch and what the tail policy drops or adds. */
static int plan_epochs(mr_loader *l, mr_error *err)
{
    const uint64_t n = l->source_info->count, batch = l->cfg.batch, over = n % batch;
    l->info.sample_count = n;
    l->info.steps_per_epoch = n / batch + (over && l->cfg.tail != MR_TAIL_DROP);
    l->info.dropped = l->cfg.tail == MR_TAIL_DROP ? over : 0;
    l->info.padded = l->cfg.tail == MR_TAIL_PAD && over ? batch - over : 0;
    l->info.epoch_samples = n - l->info.dropped;
    if (l->info.steps_per_epoch == 0)
        return mr_error_set(
            err, MR_EINVAL,
            "dropping the tail of %llu samples leaves no batch of %llu: lower --batch or use --tail keep",
            (unsigned long long)n, (unsigned long long)batch);
    if (l->cfg.start_step > l->info.steps_per_epoch)
        return mr_error_set(err, MR_EINVAL, "start at step %llu: an epoch has %llu steps",
                            (unsigned long long)l->cfg.start_step,
                            (unsigned long long)l->info.steps_per_epoch);
    const uint64_t most = UINT64_MAX / 2; /* batches are numbered over all epochs: endless ones end here */
    if (__builtin_mul_overflow(l->cfg.epochs, l->info.steps_per_epoch, &l->end_batch) || l->end_batch > most)
        l->end_batch = most;
    if (__builtin_mul_overflow(l->cfg.start_epoch, l->info.steps_per_epoch, &l->first_batch) ||
        __builtin_add_overflow(l->first_batch, l->cfg.start_step, &l->first_batch) ||
        l->first_batch > l->end_batch)
        return mr_error_set(
            err, MR_EINVAL,
            "start at epoch %llu: with %llu steps an epoch that is past the last batch there can be",
            (unsigned long long)l->cfg.start_epoch, (unsigned long long)l->info.steps_per_epoch);
    l->next_batch = l->freed = l->staged = l->copied = l->taken = l->released = l->first_batch;
    return MR_OK;
}

/* Batches of fields alone. */
static int no_pictures(const mr_loader *l, mr_error *err)
{
    if (strcmp(l->info.augment, "none") == 0) return MR_OK;
    return mr_error_set(err, MR_EINVAL, "augment %s: %s has no pictures to augment; leave it at none",
                        l->info.augment, l->source_info->path);
}

static int plan_fields(mr_loader *l, mr_error *err)
{
    int rc =
        mri_fields_plan(&l->fields, l->info.field, l->source, &l->cfg, l->info.height, l->info.width, err);
    if (rc == MR_OK && mri_augment_takes_boxes(l->augment))
        rc = mri_fields_plan_crops(&l->fields, l->source_info, &l->cfg, err);
    l->cfg.fields = NULL; /* the caller's; what it said is in the plan */
    l->info.field_count = l->fields.count;
    return rc;
}

static int plan_pixels(mr_loader *l, mr_error *err)
{
    const mr_source_info *info = l->source_info;
    int rc = mr_augment_create(&l->augment, l->cfg.augment ? l->cfg.augment : "none", l->cfg.training, err);
    if (rc != MR_OK) return rc;
    mr_augment_normalise(l->augment, l->info.mean, l->info.std, &l->info.uses_affine);
    l->info.augment = mr_augment_text(l->augment);
    if (info->image_field < 0) return no_pictures(l, err);
    uint32_t h = info->height, w = info->width;
    rc = mr_augment_output(l->augment, h, w, &l->info.height, &l->info.width, err);
    if (rc != MR_OK && h == 0) { /* one size for all may still be true: the first picture tells it, the others
                                    are checked */
        rc = mri_peek_size(l, &h, &w, err);
        if (rc == MR_OK) rc = mr_augment_output(l->augment, h, w, &l->info.height, &l->info.width, err);
    }
    if (rc != MR_OK) return rc;
    l->info.channels = l->cfg.channels ? l->cfg.channels : info->channels == 1 ? 1 : 3;
    l->cache_form = mri_cache_form_for(l->augment, &l->cfg.decode, info->fields[info->image_field].type, h, w,
                                       l->info.channels);
    l->sample_bytes = (size_t)l->info.height * l->info.width * l->info.channels;
    return MR_OK;
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
    l->free_order = cfg->free_order && l->threads;
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

/* ------------------------------------------------------------------------------ open: memory */

static int alloc_slots(mr_loader *l, size_t each, mr_error *err)
{
    const size_t bytes = each * l->slot_count;
    if (l->cfg.devices) return mr_host_alloc(l->cfg.devices[0], bytes, &l->slot_memory, err);
    l->slot_memory = mri_alloc_aligned(MR_DEVICE_ALIGN, bytes);
    return l->slot_memory ? MR_OK
                          : mr_error_set(err, MR_ENOMEM, "no memory for %u batch slots of %zu bytes",
                                         l->slot_count, each);
}

/* From any thread; never two at once. */
static void tell_note(void *context, const char *text)
{
    mr_loader *l = context;
    if (!l->cfg.on_note) return;
    pthread_mutex_lock(&l->bad_lock);
    l->cfg.on_note(l->cfg.note_context, text);
    pthread_mutex_unlock(&l->bad_lock);
}

/* Several readers, one note. */
static void tell_io(void *context, const char *text)
{
    mr_loader *l = context;
    if (!__atomic_test_and_set(&l->io_told, __ATOMIC_RELAXED)) tell_note(l, text);
}

static int make_cache(mr_loader *l, mr_error *err)
{
    mri_cache_config cfg = {.count = l->source_info->count,
                            .form = l->cache_form,
                            .budget_bytes = l->cfg.cache_bytes,
                            .value_bytes_most = l->source_info->max_extent_bytes,
                            .note = tell_note,
                            .note_context = l};
    if (l->cfg.cache == MR_CACHE_DISK) {
        cfg.folder = l->cfg.cache_folder;
        const int rc = mri_cache_stamp(l->source, &cfg.stamp, err);
        if (rc != MR_OK) return rc;
    }
    return mri_cache_open(&l->cache, &cfg, err);
}

static int make_windows(mr_loader *l, mr_error *err)
{
    const mri_windows_config cfg = {.source = l->source,
                                    .order = l->cfg.order,
                                    .block = l->cfg.block,
                                    .seed = l->cfg.seed,
                                    .batch = l->cfg.batch,
                                    .window = l->cfg.length_window,
                                    .delivered = l->info.epoch_samples};
    return mri_windows_create(&l->windows, &cfg, err);
}

static int make_slots(mr_loader *l, mr_error *err)
{
    const size_t each = (size_t)mri_slot_bytes(l), batch = l->cfg.batch;
    l->slots = calloc(l->slot_count, sizeof *l->slots);
    l->ring = calloc(l->slot_count, sizeof *l->ring);
    l->host_parts = calloc((size_t)l->slot_count * l->info.parts, sizeof *l->host_parts);
    l->counted_ring = calloc(l->slot_count + l->device_slots, sizeof *l->counted_ring);
    if (!l->slots || !l->ring || !l->host_parts || !l->counted_ring)
        return mr_error_set(err, MR_ENOMEM, "no memory for a list of %u batch slots", l->slot_count);
    const int rc = alloc_slots(l, each, err);
    if (rc) return rc;
    for (uint32_t i = 0; i < l->slot_count; i++) {
        mri_slot *s = l->ring[i] = &l->slots[i];
        uint8_t *p = (uint8_t *)l->slot_memory + i * each;
        s->pixels = l->sample_bytes ? p : NULL;
        p += mri_align_up(batch * l->sample_bytes, MR_DEVICE_ALIGN);
        s->labels = (int32_t *)(void *)p;
        p += mri_align_up(batch * sizeof(int32_t), MR_DEVICE_ALIGN);
        s->ids = (uint64_t *)(void *)p;
        p += mri_align_up(batch * sizeof(uint64_t), MR_DEVICE_ALIGN);
        s->affine = l->info.uses_affine ? (float *)(void *)p : NULL;
        p += l->info.uses_affine ? mri_align_up(batch * 2 * sizeof(float), MR_DEVICE_ALIGN) : 0;
        mri_fields_lay(&l->fields, p, batch, s->rows);
    }
    return MR_OK;
}

static int make_chunks(mr_loader *l, mr_error *err)
{
    const size_t n = l->chunk_count, k = l->chunk_samples;
    l->arena = mri_alloc_aligned(MRI_DIRECT_ALIGN, n * l->chunk_room);
    l->arena_pieces = calloc(n, sizeof *l->arena_pieces);
    l->chunks = calloc(n, sizeof *l->chunks);
    l->chunk_reads = calloc(n * k, sizeof *l->chunk_reads);
    l->chunk_sample_lists = calloc(n * k, sizeof *l->chunk_sample_lists);
    if (!l->arena || !l->arena_pieces || !l->chunks || !l->chunk_reads || !l->chunk_sample_lists)
        return mr_error_set(err, MR_ENOMEM, "no memory for %zu read buffers of %zu bytes", n, l->chunk_room);
    for (size_t i = n; i-- > 0;) {
        mri_chunk *c = &l->chunks[i];
        l->arena_pieces[i] = c->fixed = l->arena + i * l->chunk_room;
        c->reads = l->chunk_reads + i * k;
        c->samples = l->chunk_sample_lists + i * k;
        c->next = l->free_chunks;
        l->free_chunks = c;
    }
    return MR_OK;
}

static int make_seats(mr_loader *l, mr_error *err)
{
    const mri_reader_config reader = {.source = l->source,
                                      .depth = l->cfg.depth,
                                      .direct = l->cfg.direct,
                                      .buffers = l->arena_pieces,
                                      .buffer_bytes = l->chunk_room,
                                      .buffer_count = l->resident ? 0 : l->chunk_count,
                                      .note = tell_io,
                                      .note_context = l,
                                      .extra_fd = l->cache ? mri_cache_fd(l->cache) : -1,
                                      .extra_path = l->cache ? mri_cache_path(l->cache) : NULL};
    l->readers = calloc(l->cfg.readers, sizeof *l->readers);
    l->workers = calloc(l->cfg.workers, sizeof *l->workers);
    l->reader_seats = calloc(l->cfg.readers, sizeof *l->reader_seats);
    l->reader_threads = calloc(l->cfg.readers, sizeof *l->reader_threads);
    l->worker_threads = calloc(l->cfg.workers, sizeof *l->worker_threads);
    if (!l->readers || !l->workers || !l->reader_seats || !l->reader_threads || !l->worker_threads)
        return mr_error_set(err, MR_ENOMEM, "no memory for %u readers and %u workers", l->cfg.readers,
                            l->cfg.workers);
    int rc = MR_OK;
    for (uint32_t i = 0; i < l->cfg.readers && rc == MR_OK; i++) {
        l->reader_seats[i] = (mri_reader_seat){l, i};
        rc = mri_reader_create(&l->readers[i], l->io, &reader, err);
    }
    for (uint32_t i = 0; i < l->cfg.workers && rc == MR_OK; i++) {
        rc = mri_worker_init(&l->workers[i], l, i);
        if (rc != MR_OK) mr_error_set(err, rc, "no memory for the buffers of worker %u", i);
    }
    return rc;
}

static void set_stage_threads(mr_loader *l)
{
    l->info.batch = l->cfg.batch;
    l->info.fingerprint = l->source_info->fingerprint;
    l->info.order = l->cfg.order;
    l->info.block = l->cfg.block;
    l->info.tail = l->cfg.tail;
    l->info.length_window = l->cfg.length_window;
    l->info.pixels = l->cfg.decode.pixels;
    if (!l->cfg.devices) return;
    const uint64_t sample = l->sample_bytes + sizeof(int32_t) + (l->info.uses_affine ? 2 * sizeof(float) : 0);
    const uint64_t part = (l->info.batch - 1) / l->info.parts + 1;
    l->info.device_bytes = l->device_slots * (part * sample + mri_fields_bytes(&l->fields, part));
}

/* ------------------------------------------------------------------------------ open, close */

static void init_locks(mr_loader *l)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&l->lock, NULL);
    pthread_mutex_init(&l->bad_lock, NULL);
    pthread_cond_t *const all[] = {&l->room, &l->work, &l->done, &l->staged_cond, &l->returned};
    for (size_t i = 0; i < MRI_ARRAY_COUNT(all); i++) pthread_cond_init(all[i], &attr);
    pthread_condattr_destroy(&attr);
}

static int start_threads(mr_loader *l, mr_error *err)
{
    int rc = MR_OK;
    for (uint32_t i = 0; i < l->cfg.workers && rc == MR_OK; i++) {
        rc = mri_thread_start(&l->worker_threads[i], l->workers[i].track, mri_worker_main, &l->workers[i]);
        if (rc == MR_OK) l->worker_started++;
    }
    if (rc == MR_OK && l->cfg.devices) {
        rc = mri_thread_start(&l->stager_thread, "stager", mri_stager_main, l);
        l->stager_started = rc == MR_OK;
    }
    for (uint32_t i = 0; i < l->cfg.readers && rc == MR_OK; i++) {
        rc = mri_thread_start(&l->reader_threads[i], "reader", mri_reader_main, &l->reader_seats[i]);
        if (rc == MR_OK) l->reader_started++;
    }
    return rc == MR_OK ? MR_OK : mr_error_set(err, rc, "the system refused another thread");
}

int mr_loader_open(mr_loader **out, const mr_source *src, const mr_loader_config *cfg, mr_error *err)
{
    *out = NULL;
    mr_loader *l = calloc(1, sizeof *l);
    if (!l) return mr_error_set(err, MR_ENOMEM, "no memory for a loader");
    mr_loader_defaults(&l->cfg);
    if (!mri_settings_take(&l->cfg, sizeof l->cfg, cfg)) {
        free(l);
        return mr_error_set(err, MR_EINVAL,
                            "loader settings without struct_size: begin with mr_loader_defaults()");
    }
    l->source = src;
    l->source_info = mr_source_info_of(src);
    init_locks(l);
    int rc = check_settings(l, &l->cfg, err);
    if (rc == MR_OK) rc = plan_epochs(l, err);
    if (rc == MR_OK) rc = plan_pixels(l, err);
    if (rc == MR_OK) rc = plan_fields(l, err);
    if (rc == MR_OK) {
        plan_threads(l);
        set_stage_threads(l);
        rc = mri_plan_memory(l, err);
    }
    if (rc == MR_OK && l->cfg.length_window) rc = make_windows(l, err);
    if (rc == MR_OK && l->cfg.cache != MR_CACHE_OFF) rc = make_cache(l, err);
    if (rc == MR_OK && l->wants_resident) rc = mri_resident_create(&l->resident, src, err);
    if (rc == MR_OK) rc = make_slots(l, err);
    if (rc == MR_OK) rc = make_chunks(l, err);
    if (rc == MR_OK) rc = make_seats(l, err);
    if (rc == MR_OK && l->cfg.devices) rc = mri_stages_open(l, err);
    if (rc == MR_OK && l->threads) rc = start_threads(l, err);
    if (rc != MR_OK) {
        mr_loader_close(l);
        return rc;
    }
    *out = l;
    return MR_OK;
}

static void join_threads(mr_loader *l)
{
    for (uint32_t i = 0; i < l->reader_started; i++) pthread_join(l->reader_threads[i], NULL);
    for (uint32_t i = 0; i < l->worker_started; i++) pthread_join(l->worker_threads[i], NULL);
    if (l->stager_started) pthread_join(l->stager_thread, NULL);
}

/* Everything reads went to. */
static void free_buffers(mr_loader *l)
{
    for (uint32_t i = 0; l->chunks && i < l->chunk_count; i++) free(l->chunks[i].grown);
    free(l->arena);
    mri_resident_destroy(l->resident);
}

static void free_memory(mr_loader *l)
{
    bool lost = false;
    for (uint32_t i = 0; l->readers && i < l->cfg.readers; i++) {
        lost |= l->readers[i] && mri_reader_keeps_buffers(l->readers[i]);
        mri_reader_destroy(l->readers[i]);
    }
    if (!lost) free_buffers(l);
    for (uint32_t i = 0; l->workers && i < l->cfg.workers; i++) mri_worker_fini(&l->workers[i]);
    if (l->cfg.devices) {
        if (l->slot_memory) mr_host_free(l->cfg.devices[0], l->slot_memory);
    } else {
        free(l->slot_memory);
    }
    void *const all[] = {
        l->ring,           l->arena_pieces, l->chunks,       l->chunk_reads,  l->chunk_sample_lists,
        l->slots,          l->readers,      l->workers,      l->reader_seats, l->reader_threads,
        l->worker_threads, l->host_parts,   l->counted_ring, l->bad_known};
    for (size_t i = 0; i < MRI_ARRAY_COUNT(all); i++) free(all[i]);
    mri_windows_destroy(l->windows);
    mri_cache_close(l->cache); /* readers are gone: nobody reads its file */
    mr_augment_destroy(l->augment);
}

void mr_loader_close(mr_loader *l)
{
    if (!l) return;
    mr_loader_stop(l);
    join_threads(l);
    mri_stages_close(l);
    free_memory(l);
    pthread_cond_t *const all[] = {&l->room, &l->work, &l->done, &l->staged_cond, &l->returned};
    for (size_t i = 0; i < MRI_ARRAY_COUNT(all); i++) pthread_cond_destroy(all[i]);
    pthread_mutex_destroy(&l->lock);
    pthread_mutex_destroy(&l->bad_lock);
    free(l);
}

const mr_loader_info *mr_loader_info_of(const mr_loader *l) { return &l->info; }

/* ------------------------------------------------------------------------------ next, release */

/* Free order: any batch that is whole comes forward to the next place; the one that was there waits in its
 * place. */
static bool bring_forward_locked(mr_loader *l)
{
    mri_slot **next = &l->ring[l->taken % l->slot_count];
    for (uint64_t b = l->taken; b < l->freed + l->slot_count && b < l->end_batch; b++) {
        mri_slot **at = &l->ring[b % l->slot_count], *whole = *at;
        if (!whole->done) continue;
        *at = *next;
        *next = whole;
        whole->done = false; /* handed out once */
        return true;
    }
    return false;
}

static bool batch_ready_locked(mr_loader *l)
{
    if (l->cfg.devices) return l->staged > l->taken;
    if (l->free_order) return bring_forward_locked(l);
    const mri_slot *slot = l->ring[l->taken % l->slot_count];
    return slot->done && slot->batch == l->taken;
}

/* MR_OK when the next batch is there; the code of whatever ended the wait otherwise. */
static int wait_for_batch(mr_loader *l, uint64_t timeout_ns, mr_error *err)
{
    const uint64_t start = mri_now_ns();
    const uint64_t end = timeout_ns > UINT64_MAX - start ? UINT64_MAX : start + timeout_ns;
    const struct timespec until = {.tv_sec = (time_t)(end / 1000000000u),
                                   .tv_nsec = (long)(end % 1000000000u)};
    pthread_cond_t *cond = l->cfg.devices ? &l->staged_cond : &l->done;
    int rc = MR_OK;
    pthread_mutex_lock(&l->lock);
    while (!l->stopped && rc == MR_OK && !batch_ready_locked(l)) {
        if (timeout_ns == MR_FOREVER) pthread_cond_wait(cond, &l->lock);
        else if (timeout_ns == 0 || pthread_cond_timedwait(cond, &l->lock, &until) == ETIMEDOUT)
            rc = MR_EAGAIN;
    }
    if (l->stopped) {
        rc = l->failure != MR_OK ? l->failure : MR_ECANCELED;
        if (err && l->failure != MR_OK) *err = l->failure_error;
        else if (l->failure == MR_OK) mr_error_set(err, MR_ECANCELED, "the loader was stopped");
    }
    pthread_mutex_unlock(&l->lock);
    mri_count(&l->wait_ns, mri_now_ns() - start);
    return rc;
}

/* Prefetch off: everything happens here, one thing after the other. */
static int prepare_inline(mr_loader *l)
{
    const uint64_t start = mri_now_ns();
    mr_error failed = MR_ERROR_INIT;
    pthread_mutex_lock(&l->lock);
    const bool idle = l->stopped || batch_ready_locked(l);
    pthread_mutex_unlock(&l->lock);
    if (idle) return MR_OK;
    int rc = mri_fill_inline(l, &failed);
    if (rc == MR_OK && l->cfg.devices) rc = mri_stage_batch(l, l->taken, &failed);
    if (rc != MR_OK) mri_loader_fail(l, rc, &failed);
    mri_count(&l->wait_ns, mri_now_ns() - start);
    return rc;
}

static const mr_part *host_parts(mr_loader *l, const mri_slot *slot)
{
    mr_part *parts = l->host_parts + (size_t)(slot - l->slots) * l->info.parts;
    for (uint32_t r = 0; r < l->info.parts; r++) {
        mr_part *p = &parts[r];
        mri_part_bounds(l, slot->count, r, &p->first, &p->count);
        p->form = MR_PART_PIXELS;
        p->pixels = slot->pixels ? slot->pixels + p->first * l->sample_bytes : NULL;
        p->labels = slot->labels + p->first;
        p->affine = slot->affine ? slot->affine + 2 * (size_t)p->first : NULL;
        mri_fields_show(&l->fields, slot->rows, p->first, p->field);
    }
    return parts;
}

static void describe(mr_loader *l, mr_batch *out)
{
    const uint64_t place = l->taken;
    const mri_slot *slot = l->ring[place % l->slot_count];
    const uint64_t batch = l->free_order ? slot->batch : place;
    *out = (mr_batch){.global_step = place, .part_count = l->info.parts};
    mri_batch_place(l, batch, &out->epoch, &out->step);
    out->last = out->step + 1 == l->info.steps_per_epoch;
    out->count = mri_batch_count(l, batch);
    out->parts = l->cfg.devices ? mri_stages_parts(l, batch) : host_parts(l, slot);
    if (!l->cfg.devices || l->cfg.keep_host) {
        out->pixels = slot->pixels;
        out->labels = slot->labels;
        out->affine = slot->affine;
        out->ids = slot->ids;
        mri_fields_show(&l->fields, slot->rows, 0, out->field);
    }
    for (uint32_t k = 0; k < l->fields.count; k++)
        out->field[k].width = out->parts[0].field[k].width; /* told in any case */
}

int mr_loader_next(mr_loader *l, mr_batch *out, uint64_t timeout_ns, mr_error *err)
{
    pthread_mutex_lock(&l->lock);
    const uint32_t room = l->cfg.devices ? l->device_slots : l->slot_count;
    const bool over = l->taken >= l->end_batch && !l->stopped;
    const bool held_all = l->taken >= l->released + room && !l->stopped;
    pthread_mutex_unlock(&l->lock);
    if (over) return mr_error_set(err, MR_EEND, "all epochs are delivered");
    if (held_all) /* no other thread will give one back: waiting would never end */
        return mr_error_set(
            err, MR_EINVAL,
            "release a batch before asking for the next: the loader has room for %u, and all are held", room);
    if (!l->threads) prepare_inline(l); /* what went wrong is told below */
    const int rc = wait_for_batch(l, timeout_ns, err);
    if (rc != MR_OK) return rc;
    describe(l, out);
    pthread_mutex_lock(&l->lock);
    out->counted = *mri_counted_of(l, l->free_order ? l->ring[l->taken % l->slot_count]->batch : l->taken);
    l->taken++;
    pthread_mutex_unlock(&l->lock);
    mri_count(&l->batches_out, 1);
    mri_count(&l->samples_out, out->count);
    return MR_OK;
}

int mr_loader_release(mr_loader *l, mr_batch *batch, mr_stream *const *streams)
{
    mr_error failed = MR_ERROR_INIT;
    int rc = MR_OK;
    if (batch->global_step != l->released || l->released >= l->taken || (l->cfg.devices && !streams))
        return MR_EINVAL;
    if (l->cfg.devices) rc = mri_stages_consumed(l, batch->global_step, streams, &failed);
    if (rc != MR_OK) mri_loader_fail(l, rc, &failed);
    pthread_mutex_lock(&l->lock);
    l->released++;
    mri_loader_free_slots_locked(l);
    pthread_cond_broadcast(&l->returned);
    pthread_mutex_unlock(&l->lock);
    return rc;
}
