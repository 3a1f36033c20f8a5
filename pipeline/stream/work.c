/* pipeline/stream/work.c: one sample from its bytes to its place in the batch, and what happens when it is
 * bad (I7). */
#include <errno.h>
#include <stdio.h>

#include "base/ranges.h"
#include "formats/source/source.h"
#include "pipeline/stream/loader_private.h"

#define MAX_SUBSTITUTES 64 /* damaged samples in a row that one place will try */

int mri_worker_init(mri_worker *w, mr_loader *l, uint32_t number)
{
    w->loader = l;
    snprintf(w->track, sizeof w->track, "worker %u", number % 10000);
    const mri_cache_form *form = l->cache_form;
    if (l->cfg.cache != MR_CACHE_OFF && form->create &&
        form->create(&w->maker, &l->cfg.decode, l->info.channels))
        return MR_ENOMEM;
    const int rc = mri_scratch_create(&w->scratch);
    return rc == MR_OK ? mri_field_scratch_init(&w->fields, &l->fields) : rc;
}

void mri_worker_fini(mri_worker *w)
{
    mri_scratch_destroy(w->scratch);
    mri_field_scratch_fini(&w->fields);
    free(w->spare);
    if (w->maker) w->loader->cache_form->destroy(w->maker);
}

/* Labels are below this. */
static int64_t label_end(const mr_loader *l)
{
    return l->source_info->class_count ? (int64_t)l->source_info->class_count : INT32_MAX;
}

static int take_label(const mr_loader *l, const mr_sample *parsed, int32_t *out, mr_error *err)
{
    *out = -1; /* none: also what the cache keeps */
    if (l->source_info->label_field < 0) return MR_OK;
    const int64_t label = parsed->value[l->source_info->label_field].i, end = label_end(l);
    if (label < 0 || label >= end)
        return mr_error_set(err, MR_EFORMAT, "label %lld is out of range: expected 0..%lld", (long long)label,
                            (long long)end - 1);
    *out = (int32_t)label;
    return MR_OK;
}

/* What take_label() could have given: a cache's file may say anything. */
static bool is_label(const mr_loader *l, int32_t label)
{
    return l->source_info->label_field < 0 ? label == -1 : label >= 0 && label < label_end(l);
}

/* Decode and augment into place i of the slot. image NULL: the source has no pictures; boxes: what crops go
 * by, or NULL; geometry: where to say what became of it, or NULL. */
static int place_image(mri_worker *w, mri_slot *slot, uint32_t i, uint64_t epoch, uint64_t sample,
                       const mr_value *image, int32_t label, const mri_boxes *boxes, mri_geometry *geometry,
                       mr_error *err)
{
    mr_loader *l = w->loader;
    const mri_sample_key key = {l->cfg.seed, epoch, sample};
    int rc = MR_OK;
    if (image) {
        mri_range_begin(MRI_RANGE_AUGMENT, sample);
        rc = mri_augment_run(l->augment, w->scratch, image, &l->cfg.decode, l->info.channels, key,
                             l->info.height, l->info.width, slot->pixels + i * l->sample_bytes,
                             slot->affine ? slot->affine + 2 * (size_t)i : NULL, boxes, geometry, err);
        mri_range_end();
    }
    if (rc != MR_OK) return rc;
    slot->labels[i] = label;
    slot->ids[i] = sample;
    return MR_OK;
}

/* A sample that was good is kept for later epochs; with the last of them nothing is left to read. */
static void keep(mri_worker *w, uint64_t sample, const mr_value *image, int32_t label)
{
    mr_loader *l = w->loader;
    if (l->cfg.no_checks && l->cfg.cache == MR_CACHE_DISK) return; /* later runs would take it for checked */
    mri_cache_offer(l->cache, sample, image, label, w->maker);
    if (l->cfg.cache == MR_CACHE_MEMORY && mri_cache_is_whole(l->cache)) mri_loader_self_serve(l);
}

/* Parse, decode, augment into place i of the slot. trusted: these bytes were checked before, in this
 * memory. */
static int place_sample(mri_worker *w, mri_slot *slot, uint32_t i, uint64_t epoch, uint64_t sample,
                        const void *data, size_t bytes, bool trusted, mr_error *err)
{
    mr_loader *l = w->loader;
    mr_sample parsed;
    int32_t label;
    mri_range_begin(MRI_RANGE_PARSE, sample);
    int rc = trusted ? mri_source_parse_trusted(l->source, sample, data, bytes, &parsed, err)
                     : mr_source_parse(l->source, sample, data, bytes, &parsed, err);
    mri_range_end();
    if (rc != MR_OK) return rc;
    const mr_value *image =
        l->source_info->image_field >= 0 ? &parsed.value[l->source_info->image_field] : NULL;
    rc = take_label(l, &parsed, &label, err);
    mri_geometry geometry = {0};
    mri_boxes boxes;
    if (rc == MR_OK) rc = mri_fields_crop_boxes(&l->fields, &parsed, &boxes, err);
    if (rc == MR_OK)
        rc = place_image(w, slot, i, epoch, sample, image, label, l->fields.crop ? &boxes : NULL,
                         l->fields.count ? &geometry : NULL, err);
    if (rc == MR_OK) rc = mri_fields_place(&l->fields, &w->fields, slot->rows, i, &parsed, &geometry, err);
    if (rc != MR_OK) {
        mri_source_place(l->source, sample, err);
        return rc;
    }
    if (l->cache) keep(w, sample, image, label);
    return MR_OK;
}

/* Read one sample by itself, in this thread: substitutes, and samples whose shared read failed. */
static int place_alone(mri_worker *w, mri_slot *slot, uint32_t i, uint64_t epoch, uint64_t sample,
                       mr_error *err)
{
    mr_loader *l = w->loader;
    mr_extent e;
    mr_sample ignored;
    int rc = mr_source_extent(l->source, sample, &e, err);
    if (rc == MR_OK)
        rc = mri_source_read_until(l->source, sample, &w->spare, &w->spare_bytes, &ignored, &l->stopped, err);
    if (rc != MR_OK) return rc;
    mri_count(&l->reads, 1);
    mri_count(&l->bytes_read, e.bytes);
    return place_sample(w, slot, i, epoch, sample, w->spare, (size_t)e.bytes, l->cfg.no_checks, err);
}

/* From the cache's entry. Whatever is wrong with it, the source has the sample. */
static int place_cached(mri_worker *w, mri_chunk *c, uint32_t k, uint64_t epoch, mr_error *err)
{
    mr_loader *l = w->loader;
    const mri_chunk_sample *s = &c->samples[k];
    const mri_read *q = s->memory ? NULL : &c->reads[s->read];
    const uint8_t *data = s->memory ? s->memory : q->data + s->at;
    mr_value image;
    int32_t label;
    const bool there = !q || q->status == MR_OK || (q->status == MR_EFORMAT && s->at + s->bytes <= q->got);
    const bool whole = there &&
                       mri_cache_parse(s->sample, data, s->bytes, q && !l->cfg.no_checks, &image, &label) &&
                       is_label(l, label);
    if (whole &&
        place_image(w, c->slot, c->first + k, epoch, s->sample, &image, label, NULL, NULL, err) == MR_OK) {
        w->cache_hits++;
        return MR_OK;
    }
    if (!whole)
        mri_cache_drop(l->cache, s->sample, &(mri_cache_place){s->memory, s->offset, (uint32_t)s->bytes});
    return place_alone(w, c->slot, c->first + k, epoch, s->sample, err);
}

static int place_from_memory(mri_worker *w, mri_chunk *c, uint32_t k, uint64_t epoch, mr_error *err)
{
    const mri_chunk_sample *s = &c->samples[k];
    if (!s->memory) return place_alone(w, c->slot, c->first + k, epoch, s->sample, err);
    uint64_t *const good = mri_resident_good_bits(w->loader->resident);
    const bool trusted = w->loader->cfg.no_checks || mri_resident_known_good(good, s->sample);
    const int rc =
        place_sample(w, c->slot, c->first + k, epoch, s->sample, s->memory, s->bytes, trusted, err);
    if (rc == MR_OK && !trusted) mri_resident_remember_good(good, s->sample);
    return rc;
}

static int place_from_chunk(mri_worker *w, mri_chunk *c, uint32_t k, uint64_t epoch, mr_error *err)
{
    const mri_chunk_sample *s = &c->samples[k];
    if (s->cached) return place_cached(w, c, k, epoch, err);
    if (s->read == MRI_NO_READ) {
        mr_extent e;
        const int rc = mr_source_extent(w->loader->source, s->sample, &e, err);
        return rc != MR_OK ? rc
                           : mr_error_set(err, MR_EIO, "the sample's place in its file could not be read");
    }
    if (s->read == MRI_IN_MEMORY) return place_from_memory(w, c, k, epoch, err);
    const mri_read *q = &c->reads[s->read];
    if (q->status != MR_OK && (q->status != MR_EFORMAT || s->at + s->bytes > q->got)) {
        /* which samples share a read depends on workers and readers; which one is bad must not (I2, I7) */
        const bool unreachable = q->want.status != MR_OK && q->want.status != MR_EFORMAT; /* of a remote file:
                                                                                             asking again
                                                                                             helps nothing */
        if (q->bytes != s->bytes && !unreachable)
            return place_alone(w, c->slot, c->first + k, epoch, s->sample, err);
        const int rc = mri_read_error(q, w->loader->source, err);
        return mr_error_at(err, NULL, q->offset + s->at, s->sample), rc;
    }
    return place_sample(w, c->slot, c->first + k, epoch, s->sample, q->data + s->at, s->bytes,
                        w->loader->cfg.no_checks, err);
}

static void blank(mr_loader *l, mri_slot *slot, uint32_t i)
{
    if (slot->pixels) memset(slot->pixels + i * l->sample_bytes, 0, l->sample_bytes);
    if (slot->affine) slot->affine[2 * (size_t)i] = slot->affine[2 * (size_t)i + 1] = 0;
    slot->labels[i] = -1;
    slot->ids[i] = MR_NOWHERE;
    mri_fields_blank(&l->fields, slot->rows, i);
}

/* A system that is out of memory, files or devices is not a bad sample, and neither is a server that does not
 * answer. */
static bool is_sample_error(int rc, const mr_error *err)
{
    if (err->sys_errno == EMFILE || err->sys_errno == ENFILE || err->sys_errno == ENOMEM ||
        err->sys_errno == EREMOTEIO)
        return false;
    return rc == MR_EFORMAT || rc == MR_ECHECKSUM || rc == MR_EUNSUPPORTED || rc == MR_ELIMIT ||
           rc == MR_EIO || rc == MR_ENOENT;
}

/* How many samples are known to be damaged with this one, and whether it is new among them: in every epoch it
 * comes again. */
static int remember_bad(mr_loader *l, uint64_t sample, uint64_t *count, bool *is_new)
{
    int rc = MR_OK;
    pthread_mutex_lock(&l->bad_lock);
    const uint64_t n = l->bad_known_count;
    uint64_t low = 0, high = n;
    while (low < high) {
        const uint64_t mid = low + (high - low) / 2;
        if (l->bad_known[mid] < sample) low = mid + 1;
        else high = mid;
    }
    *is_new = low == n || l->bad_known[low] != sample;
    if (*is_new && (n & (n - 1)) == 0) { /* full at every power of two */
        uint64_t *more = realloc(l->bad_known, (n ? 2 * n : 1) * sizeof *more);
        if (more) l->bad_known = more;
        else rc = MR_ENOMEM;
    }
    if (*is_new && rc == MR_OK) {
        memmove(l->bad_known + low + 1, l->bad_known + low, (n - low) * sizeof *l->bad_known);
        l->bad_known[low] = sample;
        l->bad_known_count++;
    }
    *count = l->bad_known_count;
    pthread_mutex_unlock(&l->bad_lock);
    return rc;
}

static void tell_bad(mr_loader *l, const mr_error *err, uint64_t substitute)
{
    if (!l->cfg.on_bad) return;
    pthread_mutex_lock(&l->bad_lock);
    l->cfg.on_bad(l->cfg.bad_context, err, substitute);
    pthread_mutex_unlock(&l->bad_lock);
}

static int too_many(const mr_loader *l, mr_error *err)
{
    const mr_error last = *err;
    char text[600];
    mr_error_format(&last, text, sizeof text);
    return mr_error_set(err, MR_EBADSAMPLE,
                        "more than %llu samples are damaged (--max-bad); the last one: %s",
                        (unsigned long long)l->cfg.max_bad, text);
}

static int no_substitute(const mr_error *why, mr_error *err)
{
    char text[600];
    mr_error_format(why, text, sizeof text);
    return mr_error_set(err, MR_EBADSAMPLE, "no whole sample to put in its place in %d tries: %s",
                        MAX_SUBSTITUTES, text);
}

/* Which samples stand in follows from the place of delivery: position is step * batch + place, whatever order
 * brought the sample there. */
static int place_substitute(mri_worker *w, mri_chunk *c, uint32_t k, uint64_t epoch, uint64_t position,
                            bool tell, mr_error *err)
{
    mr_loader *l = w->loader;
    const mri_epoch_order order =
        mri_epoch_order_make(l->cfg.order, l->cfg.block, l->cfg.seed, epoch, l->info.sample_count);
    const mr_error why = *err;
    int rc = MR_EFORMAT;
    for (uint32_t attempt = 0; attempt < MAX_SUBSTITUTES && rc != MR_OK; attempt++) {
        const uint64_t other = mri_substitute(&order, position, attempt);
        rc = place_alone(w, c->slot, c->first + k, epoch, other, err);
        if (rc == MR_OK) {
            mri_count(&l->replaced, 1);
            if (tell) tell_bad(l, &why, other);
        } else if (!is_sample_error(rc, err)) {
            return rc;
        }
    }
    return rc == MR_OK ? MR_OK : no_substitute(&why, err);
}

static int handle_bad(mri_worker *w, mri_chunk *c, uint32_t k, uint64_t epoch, uint64_t position, int rc,
                      mr_error *err)
{
    mr_loader *l = w->loader;
    if (!is_sample_error(rc, err)) return rc;
    mri_source_place(l->source, c->samples[k].sample, err);
    mri_count(&l->bad_samples, 1);
    if (l->cfg.bad == MR_BAD_STOP) {
        tell_bad(l, err, MR_NOWHERE);
        err->code = MR_EBADSAMPLE;
        return MR_EBADSAMPLE;
    }
    uint64_t known;
    bool is_new;
    if (remember_bad(l, c->samples[k].sample, &known, &is_new) != MR_OK)
        return mr_error_set(err, MR_ENOMEM, "no memory for the list of damaged samples");
    if (known > l->cfg.max_bad) return too_many(l, err);
    if (l->cfg.bad == MR_BAD_REPLACE) return place_substitute(w, c, k, epoch, position, is_new, err);
    mri_count(&l->skipped, 1);
    if (is_new) tell_bad(l, err, MR_NOWHERE);
    blank(l, c->slot, c->first + k);
    return MR_OK;
}

int mri_chunk_work(mri_worker *w, mri_chunk *c, mr_error *err)
{
    mr_loader *l = w->loader;
    uint64_t epoch, step;
    mri_batch_place(l, c->batch, &epoch, &step);
    for (uint32_t k = 0; k < c->count; k++) {
        const uint64_t position = step * l->cfg.batch + c->first + k;
        int rc = place_from_chunk(w, c, k, epoch, err);
        if (rc != MR_OK) rc = handle_bad(w, c, k, epoch, position, rc, err);
        if (rc != MR_OK) return rc;
        if (c->samples[k].padding) { /* a repeat that no loss counts */
            c->slot->labels[c->first + k] = -1;
            c->slot->ids[c->first + k] = MR_NOWHERE;
        }
    }
    if (w->cache_hits) mri_count(&l->cache_hits, w->cache_hits);
    w->cache_hits = 0;
    return MR_OK;
}
