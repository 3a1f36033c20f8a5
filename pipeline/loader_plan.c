/* pipeline/loader_plan.c: from settings to all that follows from them, before memory is taken: which batches,
 * what size of picture, which fields, how many threads and slots, and what all of it may come to hold. */
#include <stdio.h>

#include "formats/source/source.h"
#include "pipeline/fields/first_sample.h"
#include "pipeline/loader_private.h"
#include "settings/limits.h"

enum { ALL_PARTS_MOST = 1 << 20 };
_Static_assert(MR_LOADER_MAX_PARTS == MRI_REPLICAS_MOST, "settings allow as many replicas as a loader has");

/* The last check: a wrong setting is an error, also of a complete run. */
static int check_start(const mr_loader_config *cfg, mr_error *err)
{
    if (cfg->start_epoch < cfg->epochs) return MR_OK;
    return mr_error_set(
        err, MR_EEND,
        "start_epoch %llu with epochs %llu: all epochs are done, and no batch is left; larger "
        "epochs continue",
        (unsigned long long)cfg->start_epoch, (unsigned long long)cfg->epochs);
}

static int check_settings(mri_loader_plan *plan, mr_error *err)
{
    const mr_loader_config *cfg = &plan->cfg;
    const mr_source_info *info = mr_source_info_of(plan->source);
    const int rc = mri_loader_check(cfg, err);
    if (rc != MR_OK) return rc;
    if (info->count == 0) return mr_error_set(err, MR_EINVAL, "%s holds no samples", info->path);
    if (info->image_field < 0 && cfg->field_count == 0) return mri_fields_missing(info, err);
    if (cfg->length_window && info->length_field == MR_NO_FIELD) return mri_windows_no_lengths(info, err);
    const bool mixed = info->mix_count && cfg->order == MR_ORDER_SHUFFLE && !cfg->sampler_count,
               deals = mixed || cfg->order == MR_ORDER_BALANCED;
    const char *dealt = mixed ? "a mix" : "order balanced";
    if (cfg->length_window && deals)
        return mr_error_set(err, MR_EINVAL,
                            "a length window sorts samples, %s deals them: leave one of them out", dealt);
    if (cfg->repeats > 1 && (cfg->length_window || deals || cfg->sampler_count))
        return mr_error_set(err, MR_EINVAL,
                            "repeats %u: %s says which samples come, and how often: leave one of them out",
                            cfg->repeats,
                            cfg->length_window   ? "a length window"
                            : cfg->sampler_count ? "a sampler"
                                                 : dealt);
    if (cfg->repeats > cfg->batch)
        return mr_error_set(err, MR_EINVAL, "repeats %u: expected at most the batch, %u", cfg->repeats,
                            cfg->batch);
    if (cfg->channels != 0 && cfg->channels != 1 && cfg->channels != 3)
        return mr_error_set(err, MR_EINVAL, "channels %u: expected 1, 3 or 0 (as in the data)",
                            cfg->channels);
    if (cfg->free_order && cfg->devices)
        return mr_error_set(err, MR_EINVAL, "free order is for batches in host memory, without devices");
    if (cfg->keep && cfg->devices)
        return mr_error_set(err, MR_EINVAL, "batches can be kept in host memory only, without devices");
    const uint32_t parts = cfg->devices ? cfg->device_count : cfg->parts;
    if (parts == 0 || parts > MR_LOADER_MAX_PARTS)
        return mr_error_set(err, MR_EINVAL, "%u replicas: expected 1..%d", parts, MR_LOADER_MAX_PARTS);
    if (cfg->cache == MR_CACHE_DISK && (!cfg->cache_folder || !cfg->cache_folder[0]))
        return mr_error_set(err, MR_EINVAL, "a cache on disk needs a folder");
    const uint64_t all = cfg->all_parts ? cfg->all_parts : parts;
    if (all > ALL_PARTS_MOST || cfg->first_part + (uint64_t)parts > all)
        return mr_error_set(err, MR_EINVAL,
                            "parts %u to %llu of %llu: expected parts inside a batch of at most %u parts",
                            cfg->first_part, (unsigned long long)cfg->first_part + parts - 1,
                            (unsigned long long)all, ALL_PARTS_MOST);
    plan->info.parts = parts;
    if (cfg->tune > MR_TUNE_ALL)
        return mr_error_set(err, MR_EINVAL, "tune %#x: expected bits of %#x", cfg->tune, MR_TUNE_ALL);
    return check_start(cfg, err);
}

static int plan_batches(mri_loader_plan *plan, mr_error *err)
{
    const mr_loader_config *cfg = &plan->cfg;
    mri_own_order own;
    const int rc = mri_own_order_make(&own, cfg, mr_source_info_of(plan->source)->count, err);
    if (rc != MR_OK) return rc;
    const mri_batches_config batches = {.order = cfg->order,
                                        .block = cfg->block,
                                        .batch = cfg->batch,
                                        .seed = cfg->seed,
                                        .tail = cfg->tail,
                                        .parts = cfg->all_parts ? cfg->all_parts : plan->info.parts,
                                        .own_first = cfg->first_part,
                                        .own_parts = plan->info.parts,
                                        .sample_count = mr_source_info_of(plan->source)->count,
                                        .epochs = cfg->epochs,
                                        .start_epoch = cfg->start_epoch,
                                        .start_step = cfg->start_step,
                                        .own = own,
                                        .repeats = cfg->repeats};
    plan->info.seed = cfg->seed;
    plan->info.start_epoch = cfg->start_epoch;
    plan->info.start_step = cfg->start_step;
    plan->info.training = cfg->training;
    return mri_batches_plan(&plan->batches, &batches, err);
}

static void plan_epochs(mri_loader_plan *plan)
{
    const mri_batches *b = &plan->batches;
    plan->info.sample_count = mr_source_info_of(plan->source)->count;
    plan->info.sampled = b->own.count > 0;
    plan->info.steps_per_epoch = b->steps_per_epoch;
    plan->info.dropped = mri_batches_dropped(b);
    plan->info.padded = mri_batches_padded(b);
    plan->info.epoch_samples = b->sample_count - plan->info.dropped;
}

/* Batches of fields alone. */
static int no_pictures(const mri_loader_plan *plan, mr_error *err)
{
    if (strcmp(plan->info.augment, "none") == 0) return MR_OK;
    return mr_error_set(err, MR_EINVAL, "augment %s: %s has no pictures to augment; leave it at none",
                        plan->info.augment, mr_source_info_of(plan->source)->path);
}

/* Damaged samples that a look at the first ones may meet. */
static uint64_t may_be_bad(const mr_loader_config *cfg) { return cfg->bad == MR_BAD_STOP ? 0 : cfg->max_bad; }

enum { SIZES_LOOKED_AT = 32 };

/* A sample that cannot be read is reported in its turn. */
static int check_size(const mri_loader_plan *plan, uint64_t sample, mr_error *err)
{
    mri_picture_size size = {.sample = sample};
    uint32_t h, w;
    mr_error ignored = MR_ERROR_INIT;
    if (mri_picture_size_of(plan->source, &plan->cfg.decode, &size, &ignored) != MR_OK) return MR_OK;
    int rc = mr_augment_output(plan->augment, size.h, size.w, &h, &w, err);
    if (rc == MR_OK && (h != plan->info.height || w != plan->info.width))
        rc = mri_augment_sizes_differ(plan->augment, w, h, plan->info.width, plan->info.height, err);
    if (rc != MR_OK && err) mri_source_place(plan->source, sample, err);
    return rc;
}

/* Where sizes may differ, look at pictures spread over the data, and at the first one of each set of a mix.
 * The others are checked when they are decoded. A sampler may choose pictures of one size, and a program's
 * own samples may be expensive. */
static int check_sizes(const mri_loader_plan *plan, mr_error *err)
{
    const mr_source_info *info = mr_source_info_of(plan->source);
    const uint64_t step = info->count > SIZES_LOOKED_AT ? info->count / SIZES_LOOKED_AT : 1;
    int rc = MR_OK;
    if (plan->cfg.sampler_count || mri_source_is_made(plan->source)) return MR_OK;
    for (uint32_t k = 0; k < info->mix_count && rc == MR_OK; k++)
        rc = check_size(plan, info->mix[k].first, err);
    for (uint64_t at = 0; at < info->count && at / step < SIZES_LOOKED_AT && rc == MR_OK; at += step)
        rc = check_size(plan, at, err);
    return rc;
}

/* One size for all may still be true: the first picture gives it. */
static int plan_size_by_first(mri_loader_plan *plan, mri_picture_size *size, mr_error *err)
{
    int rc = mri_first_picture_size(plan->source, &plan->cfg.decode, may_be_bad(&plan->cfg), size, err);
    if (rc == MR_OK)
        rc = mr_augment_output(plan->augment, size->h, size->w, &plan->info.height, &plan->info.width, err);
    return rc == MR_OK ? check_sizes(plan, err) : rc;
}

static int plan_pixels(mri_loader_plan *plan, mr_error *err)
{
    const mr_source_info *info = mr_source_info_of(plan->source);
    int rc = mr_augment_create_own(&plan->augment, plan->cfg.augment ? plan->cfg.augment : "none",
                                   plan->cfg.training, plan->cfg.operations, plan->cfg.operation_count, err);
    plan->cfg.operations = NULL; /* the caller's */
    if (rc != MR_OK) return rc;
    mr_augment_normalise(plan->augment, plan->info.mean, plan->info.std, &plan->info.uses_affine);
    plan->info.augment = mr_augment_text(plan->augment);
    plan->info.mixes = mri_augment_mixes(plan->augment);
    if (info->image_field < 0) return no_pictures(plan, err);
    mri_picture_size size = {.h = info->height, .w = info->width};
    rc = mr_augment_output(plan->augment, size.h, size.w, &plan->info.height, &plan->info.width, err);
    if (rc != MR_OK && size.h == 0) rc = plan_size_by_first(plan, &size, err);
    if (rc != MR_OK) return rc;
    plan->info.channels = plan->cfg.channels ? plan->cfg.channels : info->channels == 1 ? 1 : 3;
    plan->cache_form =
        mri_cache_form_for(plan->augment, &plan->cfg.decode, info->fields[info->image_field].type, size.h,
                           size.w, plan->info.channels);
    return MR_OK;
}

/* The places of a batch that are delivered here, are they whole pairs? */
static bool has_whole_pairs(const mri_batches *b, uint64_t batch)
{
    uint32_t first, number;
    mri_batches_own(b, batch, &first, &number);
    return first % 2 == 0 && (number % 2 == 0 || first + number == mri_batches_count(b, batch));
}

static int check_mixing(const mri_loader_plan *plan, mr_error *err)
{
    const mri_batches *b = &plan->batches;
    if (!plan->info.mixes) return MR_OK;
    if (plan->cfg.field_count)
        return mr_error_set(
            err, MR_EINVAL,
            "augment %s: mixed pictures go with labels, not with fields; leave out the fields",
            plan->info.augment);
    if (mr_source_info_of(plan->source)->label_field < 0)
        return mr_error_set(err, MR_EINVAL, "augment %s: %s has no labels to mix", plan->info.augment,
                            mr_source_info_of(plan->source)->path);
    if (has_whole_pairs(b, 0) && has_whole_pairs(b, b->steps_per_epoch - 1)) return MR_OK;
    return mr_error_set(
        err, MR_EINVAL,
        "augment %s: the %u parts of a batch cut pairs that are to be mixed; take a batch that "
        "is a multiple of %llu, and tail drop or pad",
        plan->info.augment, b->parts, 2 * (unsigned long long)b->parts);
}

static void plan_layout(mri_loader_plan *plan)
{
    plan->layout =
        (mri_slot_layout){.batch = mri_batches_own_most(&plan->batches),
                          .sample_bytes = (size_t)plan->info.height * plan->info.width * plan->info.channels,
                          .uses_affine = plan->info.uses_affine,
                          .mixes = plan->info.mixes,
                          .fields = &plan->fields};
}

static int plan_fields(mri_loader_plan *plan, mr_error *err)
{
    const mri_fields_config cfg = {.source = plan->source,
                                   .asked = plan->cfg.fields,
                                   .asked_count = plan->cfg.field_count,
                                   .width_multiple = plan->cfg.width_multiple,
                                   .may_be_bad = may_be_bad(&plan->cfg),
                                   .cached = plan->cfg.cache != MR_CACHE_OFF,
                                   .out_h = plan->info.height,
                                   .out_w = plan->info.width};
    int rc = mri_fields_plan(&plan->fields, plan->info.field, &cfg, err);
    if (rc == MR_OK && mri_augment_takes_boxes(plan->augment))
        rc = mri_fields_plan_crops(&plan->fields, &cfg, err);
    plan->cfg.fields = NULL; /* the caller's memory; the plan has its contents */
    plan->info.field_count = plan->fields.count;
    return rc;
}

static void plan_threads(mri_loader_plan *plan)
{
    mr_loader_config *cfg = &plan->cfg;
    plan->io = cfg->io;
    if (plan->io != MR_IO_PREAD && !mri_uring_usable(cfg->depth, plan->io_note, sizeof plan->io_note))
        plan->io = MR_IO_PREAD;
    if (plan->io != MR_IO_PREAD) plan->io = MR_IO_URING;
    if (mri_source_is_remote(plan->source))
        plan->io = MR_IO_PREAD; /* reads fetched blocks; one reader has `depth` of them in flight */
    plan->threads = cfg->prefetch > 0;
    if (cfg->workers == 0) cfg->workers = mri_core_count();
    if (cfg->readers == 0)
        cfg->readers = plan->io == MR_IO_PREAD && !mri_source_is_remote(plan->source) ? 4 : 1;
    if (!plan->threads) cfg->workers = cfg->readers = 1; /* seats, not threads */
    plan->info.io = plan->io == MR_IO_URING ? "io_uring" : "pread";
    plan->info.io_note = plan->io_note;
}

static void plan_slots(mri_loader_plan *plan)
{
    const mr_loader_config *cfg = &plan->cfg;
    plan->slot_count = plan->threads ? cfg->prefetch + 1 : 1;
    plan->device_slots = plan->threads ? 2 : 1;
    if (cfg->devices && cfg->keep_host && plan->threads) plan->slot_count += plan->device_slots;
    plan->slot_count += cfg->keep;
    plan->info.prefetch = cfg->prefetch;
    plan->info.workers = plan->threads ? cfg->workers : 0;
    plan->info.readers = plan->threads ? cfg->readers : 0;
}

static void fill_info(mri_loader_plan *plan)
{
    plan->info.batch = plan->cfg.batch;
    plan->info.fingerprint = mr_source_info_of(plan->source)->fingerprint;
    plan->info.order = plan->cfg.order;
    plan->info.block = plan->cfg.block;
    plan->info.tail = plan->cfg.tail;
    plan->info.length_window = plan->cfg.length_window;
    plan->info.repeats = plan->batches.repeats;
    plan->info.labelled = mr_source_info_of(plan->source)->label_field >= 0;
    plan->info.counts = plan->info.labelled || plan->cfg.count_unlabelled;
    plan->info.pixels = plan->cfg.decode.pixels;
    plan->info.ignore_exif = plan->cfg.decode.ignore_exif;
    if (!plan->cfg.devices) return;
    const uint64_t sample =
        plan->layout.sample_bytes + sizeof(int32_t) + mri_slot_numbers_bytes(&plan->layout);
    const uint64_t part = (plan->info.batch - 1) / plan->batches.parts + 1;
    plan->info.device_bytes = plan->device_slots * (part * sample + mri_fields_bytes(&plan->fields, part));
}

static int plan_memory(mri_loader_plan *plan, mr_error *err)
{
    const int rc = mri_plan_memory(plan, &plan->memory, err);
    plan->info.memory_bytes = plan->memory.all;
    plan->info.resident_bytes = plan->memory.resident;
    plan->info.max_pixels = plan->memory.max_pixels;
    return rc;
}

/* ---- what nobody chose becomes less ---- */

enum {
    USUAL_PIXELS = 1 << 22,
    DEPTH_LEAST = 4
}; /* a photograph of four million pixels should have room, too */

typedef struct chosen { /* by the program: these stay */
    bool prefetch, workers, depth;
} chosen;

static chosen chosen_by(const mr_loader_config *cfg)
{
    mr_loader_config usual;
    mr_loader_defaults(&usual);
    return (chosen){.prefetch = cfg->prefetch != usual.prefetch,
                    .workers = cfg->workers != usual.workers,
                    .depth = cfg->depth != usual.depth};
}

static uint32_t halved(uint32_t value, uint32_t least, bool stays)
{
    return stays || value <= least ? value : (uint32_t)mri_max_u64(value / 2, least);
}

/* false: all is at its least already. */
static bool take_less(mr_loader_config *cfg, const chosen *by)
{
    const mr_loader_config before = *cfg;
    cfg->prefetch = halved(cfg->prefetch, 1, by->prefetch);
    cfg->workers = halved(cfg->workers, 1, by->workers);
    cfg->depth = halved(cfg->depth, DEPTH_LEAST, by->depth);
    return cfg->prefetch != before.prefetch || cfg->workers != before.workers || cfg->depth != before.depth;
}

static bool has_usual_room(const mri_loader_plan *plan)
{
    const mr_source_info *info = mr_source_info_of(plan->source);
    return plan->memory.pool == 0 || (info->height && info->width) || plan->memory.max_pixels >= USUAL_PIXELS;
}

/* After rc, which is MR_ELIMIT: fewer slots, workers and reads in flight, until the budget has room for them
 * and for a usual photograph. err is of the last try. */
static int plan_less(mri_loader_plan *plan, const chosen *by, int rc, mr_error *err)
{
    const mr_loader_config asked = plan->cfg;
    while (take_less(&plan->cfg, by)) {
        plan_slots(plan);
        rc = plan_memory(plan, err);
        if (rc != MR_ELIMIT && (rc != MR_OK || has_usual_room(plan))) break;
    }
    if (rc == MR_OK)
        snprintf(
            plan->shrunk, sizeof plan->shrunk,
            "the memory budget of %.1f MiB has room for prefetch %u, %u workers and depth %u, not for %u, "
            "%u and %u; --memory raises it",
            (double)mri_budget_of(plan) / 1048576, plan->cfg.prefetch, plan->cfg.workers, plan->cfg.depth,
            asked.prefetch, asked.workers, asked.depth);
    return rc;
}

static void take_most(mr_loader_config *cfg, const uint32_t most[MRI_TUNED])
{
    cfg->workers = most[MRI_TUNE_WORKERS];
    cfg->prefetch = most[MRI_TUNE_PREFETCH];
    cfg->depth = most[MRI_TUNE_DEPTH];
    cfg->readers = most[MRI_TUNE_READERS];
}

/* Room for what may be tried, as long as nothing else gets less for it: pictures that can be decoded, a set
 * that is kept in memory. */
static int plan_tuning(mri_loader_plan *plan, mr_error *err)
{
    const mri_memory_plan narrow = plan->memory;
    const uint64_t left = plan->cfg.budget ? mri_budget_left(plan->cfg.budget) : UINT64_MAX;
    const uint64_t most = left - mri_min_u64(left, narrow.reserved); /* others of the budget need as much,
                                                                      * perhaps
                                                                      */
    bool wide = true;
    for (uint32_t times = 1; wide; times *= 2) {
        mr_error none = MR_ERROR_INIT;
        wide = mri_tune_plan(plan, times);
        take_most(&plan->cfg, plan->tune.most);
        plan_slots(plan);
        if (plan_memory(plan, wide ? &none : err) == MR_OK && plan->memory.max_pixels >= narrow.max_pixels &&
            plan->memory.resident >= narrow.resident && (!plan->cfg.budget || plan->memory.reserved <= most))
            return MR_OK;
    }
    return plan_memory(plan, err);
}

/* ---- a cache that takes what there is ---- */

enum { CACHE_TIMES = 4 }; /* a sample in any form hardly takes more than this multiple of its bytes */

/* Half of the rest of the budget, but no more than the set may need. */
static uint64_t cache_that_fits(const mri_loader_plan *plan)
{
    const mr_source_info *info = mr_source_info_of(plan->source);
    const uint64_t budget = mri_budget_of(plan), mine = plan->memory.all;
    const uint64_t others = plan->cfg.budget ? plan->memory.reserved : 0; /* they need as much, perhaps */
    const uint64_t taken = mri_plus(mri_plus(mine, others), mri_cache_index_bytes(info->count));
    const uint64_t half = (budget - mri_min_u64(budget, taken)) / 2;
    return mri_min_u64(half, mri_times(CACHE_TIMES, info->total_bytes));
}

/* As long as nothing else gets less for it, and a good part of the set has room. */
static int plan_cache_that_fits(mri_loader_plan *plan, mr_error *err)
{
    const mri_memory_plan without = plan->memory;
    const bool asked = plan->cfg.cache == MR_CACHE_MEMORY;
    const uint64_t bytes = cache_that_fits(plan);
    mr_error none = MR_ERROR_INIT;
    plan->cfg.cache = MR_CACHE_MEMORY;
    plan->cfg.cache_bytes = bytes;
    plan->cache_waits = !asked;
    if (bytes > mr_source_info_of(plan->source)->total_bytes / CACHE_TIMES &&
        plan_memory(plan, &none) == MR_OK && plan->memory.max_pixels >= without.max_pixels)
        return MR_OK;
    plan->cfg.cache = MR_CACHE_OFF;
    plan->cfg.cache_bytes = 0;
    plan->cache_waits = false;
    plan->no_room_for_cache = asked;
    return plan_memory(plan, err);
}

/* Later epochs are to come, and their samples would be cheaper. */
static bool may_cache(const mri_loader_plan *plan)
{
    const mr_loader_config *cfg = &plan->cfg;
    return (cfg->tune & MR_TUNE_CACHE) && cfg->cache == MR_CACHE_OFF && cfg->field_count == 0 &&
           plan->cache_form == &mri_cache_coefficients && cfg->epochs - cfg->start_epoch > 1;
}

int mri_loader_plan_make(mri_loader_plan *plan, mr_error *err)
{
    const bool fits = plan->cfg.cache == MR_CACHE_MEMORY && plan->cfg.cache_bytes == MR_CACHE_FITS;
    int rc = check_settings(plan, err);
    if (rc == MR_OK) rc = plan_batches(plan, err);
    if (rc == MR_OK) {
        plan_epochs(plan);
        rc = plan_pixels(plan, err);
    }
    if (rc == MR_OK) rc = check_mixing(plan, err);
    if (rc == MR_OK) {
        plan_layout(plan);
        rc = plan_fields(plan, err);
    }
    if (rc != MR_OK) return rc;
    const chosen by = chosen_by(&plan->cfg);
    plan_threads(plan);
    plan_slots(plan);
    fill_info(plan);
    if (fits) plan->cfg.cache_bytes = 0; /* until the rest is known */
    rc = plan_memory(plan, err);
    if (rc == MR_ELIMIT && plan->threads) rc = plan_less(plan, &by, rc, err);
    if (rc == MR_OK && plan->cfg.tune && plan->threads) rc = plan_tuning(plan, err);
    return rc == MR_OK && (fits || (plan->threads && may_cache(plan))) ? plan_cache_that_fits(plan, err) : rc;
}

void mri_loader_plan_drop(mri_loader_plan *plan)
{
    mri_batches_fini(&plan->batches);
    mr_augment_destroy(plan->augment);
}
