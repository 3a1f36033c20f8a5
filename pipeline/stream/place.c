/* pipeline/stream/place.c: see place.h. */
#include "pipeline/stream/place.h"

#include "base/ranges.h"
#include "formats/source/source.h"

uint64_t mri_place_bytes(const mr_source *source, const mr_augment *augment, const mr_decode_config *decode,
                         const mri_fields *fields, const mri_cache_form *cache_form, uint64_t out_pixels,
                         mri_extremes seen)
{
    if (mr_source_info_of(source)->image_field < 0) return mri_field_scratch_bound_bytes(fields, 0);
    const bool maker = cache_form && cache_form->maker_bytes;
    return mri_plus(mri_plus(mri_scratch_bound_bytes(augment, decode, seen, out_pixels),
                             mri_field_scratch_bound_bytes(fields, seen.pixels)),
                    maker ? cache_form->maker_bytes(decode, seen) : 0);
}

static mri_extremes larger_of(mri_extremes a, mri_extremes b)
{
    return (mri_extremes){mri_max_u64(a.pixels, b.pixels), mri_max_u64(a.side, b.side)};
}

/* All of a worker's memory when it decodes pictures like these and pictures of its own share. */
static uint64_t worker_bytes(const mri_place_config *cfg, mri_extremes seen)
{
    return mri_place_bytes(cfg->source, cfg->augment, cfg->decode, cfg->fields,
                           cfg->cache ? cfg->cache_form : NULL, (uint64_t)cfg->height * cfg->width,
                           larger_of(seen, cfg->share));
}

static void drop_buffers(void *context)
{
    mri_placer *p = context;
    mri_scratch_drop(p->scratch);
    mri_field_scratch_drop(&p->fields);
    if (p->maker && p->cfg->cache_form->drop) p->cfg->cache_form->drop(p->maker);
}

int mri_placer_init(mri_placer *p, const mri_place_config *cfg)
{
    *p = (mri_placer){.cfg = cfg};
    if (cfg->budget) mri_seat_add(&p->seat, cfg->budget, drop_buffers, p, cfg->until);
    const mri_cache_form *form = cfg->cache_form;
    if (cfg->cache && form->create && form->create(&p->maker, cfg->decode, cfg->channels)) return MR_ENOMEM;
    const int rc = mri_scratch_create(&p->scratch);
    return rc == MR_OK ? mri_field_scratch_init(&p->fields, cfg->fields) : rc;
}

void mri_placer_fini(mri_placer *p)
{
    mri_seat_remove(&p->seat); /* first: until then another worker may drop the buffers */
    mri_scratch_destroy(p->scratch);
    mri_field_scratch_fini(&p->fields);
    free(p->spare);
    if (p->maker) p->cfg->cache_form->destroy(p->maker);
}

/* Labels are below this. */
static int64_t label_end(const mr_source_info *info)
{
    return info->class_count ? (int64_t)info->class_count : INT32_MAX;
}

static int take_label(const mr_source_info *info, const mr_sample *parsed, int32_t *out, mr_error *err)
{
    *out = -1; /* no label; the cache stores the same */
    if (info->label_field < 0) return MR_OK;
    const int64_t label = parsed->value[info->label_field].i, end = label_end(info);
    if (label < 0 || label >= end)
        return mr_error_set(err, MR_EFORMAT, "label %lld is out of range: expected 0..%lld", (long long)label,
                            (long long)end - 1);
    *out = (int32_t)label;
    return MR_OK;
}

/* What take_label() could have given: a cache's file may say anything. */
static bool is_label(const mr_source_info *info, int32_t label)
{
    return info->label_field < 0 ? label == -1 : label >= 0 && label < label_end(info);
}

/* Where a sample goes. */
typedef struct target {
    mri_slot *slot;
    uint32_t i;
    uint64_t turn, sample;
} target;

/* A picture that needs more memory than this worker always has waits for it here. What no budget is asked
 * for is wrong with it, and the decoder says what. */
static int take_room(mri_placer *p, const mr_value *image, mr_error *err)
{
    const mri_place_config *cfg = p->cfg;
    mr_image_header h;
    const uint64_t pixels = cfg->budget ? mri_picture_counted(image, cfg->decode, &h) : 0;
    if (pixels <= cfg->share.pixels) return MR_OK;
    const mri_extremes this = {pixels, mri_max_u64(h.width, h.height) + 32};
    if (!p->seat.grown) p->seen = cfg->share; /* or it had to give it back */
    const mri_extremes both = larger_of(this, p->seen);
    const uint64_t need = worker_bytes(cfg, this), own = worker_bytes(cfg, cfg->share);
    const uint64_t start = mri_now_ns();
    mri_range_begin(MRI_RANGE_MEMORY, pixels);
    const int rc = mri_seat_need(&p->seat, worker_bytes(cfg, both) - own, need - own);
    mri_range_end();
    p->waited_ns += mri_now_ns() - start;
    p->refused = rc != MR_OK;
    p->seen = p->seat.kept ? both : this;
    return mri_seat_error(&p->seat, rc, h.width, h.height, need, own,
                          "lower --workers, --prefetch or --batch, ", err);
}

/* Pixels of a picture into their place. */
static int run_augment(mri_placer *p, const target *t, const mr_value *image, const mri_boxes *boxes,
                       mri_geometry *geometry, mr_error *err)
{
    const mri_place_config *cfg = p->cfg;
    const mri_sample_key key = {cfg->set->seed, t->turn, t->sample};
    return mri_augment_run(cfg->augment, p->scratch, image, cfg->decode, cfg->channels, key, cfg->height,
                           cfg->width, t->slot->pixels + t->i * cfg->layout->sample_bytes,
                           t->slot->affine ? t->slot->affine + 2 * (size_t)t->i : NULL, boxes, geometry, err);
}

/* The same with entry points that are kept for the picture, or are noted now and kept. */
static int run_with_points(mri_placer *p, const target *t, const mr_value *image, const mri_boxes *boxes,
                           mri_geometry *geometry, mr_error *err)
{
    mri_points *points = p->cfg->points;
    mr_value with = *image;
    if (mri_points_find(points, t->sample, &with)) {
        mr_error none = MR_ERROR_INIT;
        if (run_augment(p, t, &with, boxes, geometry, &none) == MR_OK) return MR_OK;
        return run_augment(p, t, image, boxes, geometry, err); /* which reports the error */
    }
    mri_scratch_decoder(p->scratch)->notes = true;
    const int rc = run_augment(p, t, image, boxes, geometry, err);
    mri_scratch_decoder(p->scratch)->notes = false;
    void *entries;
    size_t bytes;
    if (rc != MR_OK || mri_decoder_noted(mri_scratch_decoder(p->scratch), &entries, &bytes) != MR_OK)
        return rc;
    mri_points_keep(points, t->sample, image, entries, bytes);
    free(entries);
    return MR_OK;
}

/* Decode and augment a picture. */
static int paint(mri_placer *p, const target *t, const mr_value *image, const mri_boxes *boxes,
                 mri_geometry *geometry, mr_error *err)
{
    mri_range_begin(MRI_RANGE_AUGMENT, t->sample);
    const bool points = p->cfg->points && !image->entries && image->type != MR_TYPE_PIXELS &&
                        image->type != MR_TYPE_COEF &&
                        mr_image_sniff(image->data, image->bytes) == MR_TYPE_JPEG;
    const int rc = (points ? run_with_points : run_augment)(p, t, image, boxes, geometry, err);
    mri_range_end();
    return rc;
}

/* The form of a JPEG that the cache is to keep, made before the JPEG is painted: its coefficients, or, where
 * they cannot be packed, its bytes. False: nothing yet. Entry points are for the picture's own decoder to
 * check.
 */
static bool make_kept(mri_placer *p, const target *t, const mr_value *image, mr_value *kept)
{
    const mri_place_config *cfg = p->cfg;
    mr_error none = MR_ERROR_INIT;
    return cfg->cache_form == &mri_cache_coefficients && !image->entries &&
           mri_picture_allowed(image, cfg->decode, &none) == MR_OK &&
           mri_cache_make(cfg->cache, t->sample, image, p->maker, kept);
}

/* Paint a JPEG from its coefficients: a crop of them has the same pixels, and takes a third of the time.
 * False: whatever is wrong with the picture, its own decoder reports. */
static bool paint_kept(mri_placer *p, const target *t, const mri_boxes *boxes, mri_geometry *geometry,
                       mr_value *kept)
{
    mr_error none = MR_ERROR_INIT;
    if (kept->type != MR_TYPE_COEF) return false;
    if (paint(p, t, kept, boxes, geometry, &none) == MR_OK) return true;
    mri_cache_forget(p->cfg->cache, t->sample);
    kept->data = NULL;
    return false;
}

/* Decode and augment. image NULL: the source has no pictures; boxes: what crops go by, or NULL; geometry:
 * receives the applied geometry, or NULL. kept: receives the form for the cache if it was made already, or
 * NULL. */
static int place_image(mri_placer *p, const target *t, const mr_value *image, int32_t label,
                       const mri_boxes *boxes, mri_geometry *geometry, mr_value *kept, mr_error *err)
{
    const mri_place_config *cfg = p->cfg;
    mri_slot *slot = t->slot;
    if (image) {
        int rc = take_room(p, image, err);
        if (rc != MR_OK) return rc;
        const bool made = kept && make_kept(p, t, image, kept);
        if (kept && !made) kept->data = NULL;
        if (!made || !paint_kept(p, t, boxes, geometry, kept)) rc = paint(p, t, image, boxes, geometry, err);
        if (rc != MR_OK) return rc;
    }
    slot->labels[t->i] = label >= 0 ? label : cfg->set->count_unlabelled ? 0 : -1;
    slot->ids[t->i] = t->sample;
    return MR_OK;
}

/* trusted: these bytes were checked before, in this memory. */
static int place_sample(mri_placer *p, const target *t, const void *data, size_t bytes, bool trusted,
                        mr_error *err)
{
    const mri_place_config *cfg = p->cfg;
    const mr_source_info *info = mr_source_info_of(cfg->source);
    mr_sample parsed;
    int32_t label;
    mri_range_begin(MRI_RANGE_PARSE, t->sample);
    int rc = trusted ? mri_source_parse_trusted(cfg->source, t->sample, data, bytes, &parsed, err)
                     : mr_source_parse(cfg->source, t->sample, data, bytes, &parsed, err);
    mri_range_end();
    if (rc != MR_OK) return rc;
    const mr_value *image = info->image_field >= 0 ? &parsed.value[info->image_field] : NULL;
    rc = take_label(info, &parsed, &label, err);
    mri_geometry geometry = {0};
    mri_boxes boxes;
    mr_value kept = {0};
    if (rc == MR_OK) rc = mri_fields_crop_boxes(cfg->fields, &parsed, &boxes, err);
    if (rc == MR_OK)
        rc = place_image(p, t, image, label, cfg->fields->crop ? &boxes : NULL,
                         cfg->fields->count ? &geometry : NULL, cfg->keeps ? &kept : NULL, err);
    if (rc == MR_OK)
        rc = mri_fields_place(cfg->fields, &p->fields, t->slot->rows, t->i, &parsed, &geometry, err);
    if (rc != MR_OK) {
        if (kept.data) mri_cache_forget(cfg->cache, t->sample);
        mri_source_place(cfg->source, t->sample, err);
        return rc;
    }
    if (cfg->keeps) {
        if (kept.data) mri_cache_keep(cfg->cache, t->sample, &kept, label);
        else mri_cache_offer(cfg->cache, t->sample, image, label, p->maker);
        p->offered++;
    }
    return MR_OK;
}

static int place_made(mri_placer *p, const target *t, mr_error *err)
{
    const mri_place_config *cfg = p->cfg;
    mr_extent e;
    const int rc =
        mri_source_read_bytes(cfg->source, t->sample, &p->spare, &p->spare_bytes, &e, cfg->until, err);
    return rc != MR_OK ? rc : place_sample(p, t, p->spare, (size_t)e.bytes, true, err);
}

static int place_alone(mri_placer *p, const target *t, mr_error *err)
{
    const mri_place_config *cfg = p->cfg;
    mr_extent e;
    mr_sample ignored;
    if (mri_source_is_made(cfg->source)) return place_made(p, t, err);
    int rc = mr_source_extent(cfg->source, t->sample, &e, err);
    if (rc == MR_OK)
        rc = mri_source_read_until(cfg->source, t->sample, &p->spare, &p->spare_bytes, &ignored, cfg->until,
                                   err);
    if (rc != MR_OK) return rc;
    p->reads++;
    p->read_bytes += e.bytes;
    return place_sample(p, t, p->spare, (size_t)e.bytes, cfg->set->no_checks, err);
}

int mri_place_alone(mri_placer *p, mri_slot *slot, uint32_t i, uint64_t turn, uint64_t sample, mr_error *err)
{
    p->refused = false;
    return place_alone(p, &(target){slot, i, turn, sample}, err);
}

/* Bytes of a sample that a read brought, whole. */
static bool came(const mri_read *q, const mri_chunk_sample *s)
{
    return q->status == MR_OK || (q->status == MR_EFORMAT && s->at + s->bytes <= q->got);
}

/* From the cache's entry. Whatever is wrong with it, the source has the sample. */
static int place_cached(mri_placer *p, const mri_chunk *c, const mri_chunk_sample *s, const target *t,
                        mr_error *err)
{
    const mri_place_config *cfg = p->cfg;
    const mri_read *q = s->memory ? NULL : &c->reads[s->read];
    const uint8_t *data = s->memory ? s->memory : q->data + s->at;
    mr_value image;
    int32_t label;
    const bool whole =
        (!q || came(q, s)) &&
        mri_cache_parse(s->sample, data, s->bytes, q && !cfg->set->no_checks, &image, &label) &&
        is_label(mr_source_info_of(cfg->source), label);
    const int rc = whole ? place_image(p, t, &image, label, NULL, NULL, NULL, err) : MR_EFORMAT;
    if (rc == MR_OK) {
        p->cache_hits++;
        return MR_OK;
    }
    if (p->refused) {
        mri_source_place(cfg->source, t->sample, err);
        return rc;
    }
    if (!whole)
        mri_cache_drop(cfg->cache, s->sample, &(mri_cache_place){s->memory, s->offset, (uint32_t)s->bytes});
    return place_alone(p, t, err);
}

static int place_from_memory(mri_placer *p, const mri_chunk_sample *s, const target *t, mr_error *err)
{
    if (!s->memory) return place_alone(p, t, err);
    uint64_t *const good = mri_resident_checked_bits(p->cfg->resident);
    const bool trusted = p->cfg->set->no_checks || mri_resident_is_checked(good, s->sample);
    const int rc = place_sample(p, t, s->memory, s->bytes, trusted, err);
    if (rc == MR_OK && !trusted) mri_resident_mark_checked(good, s->sample);
    return rc;
}

int mri_place_from_chunk(mri_placer *p, const mri_chunk *c, uint32_t k, uint64_t turn, mr_error *err)
{
    const mri_chunk_sample *s = &c->samples[k];
    const target t = {c->slot, c->first + k, turn, s->sample};
    p->refused = false;
    if (s->cached) return place_cached(p, c, s, &t, err);
    if (s->read == MRI_NO_READ) {
        mr_extent e;
        const int rc = mr_source_extent(p->cfg->source, s->sample, &e, err);
        return rc != MR_OK ? rc
                           : mr_error_set(err, MR_EIO, "the sample's place in its file could not be read");
    }
    if (s->read == MRI_IN_MEMORY) return place_from_memory(p, s, &t, err);
    const mri_read *q = &c->reads[s->read];
    if (came(q, s) && q->made) return place_sample(p, &t, q->data, (size_t)q->made->bytes, true, err);
    if (came(q, s)) return place_sample(p, &t, q->data + s->at, s->bytes, p->cfg->set->no_checks, err);
    /* which samples share a read depends on workers and readers; which one is bad must not (I2, I7). Asking a
     * server that does not answer again helps nothing */
    const bool unreachable = q->want.status != MR_OK && q->want.status != MR_EFORMAT;
    if (q->bytes != s->bytes && !unreachable) return place_alone(p, &t, err);
    const int rc = mri_read_error(q, p->cfg->source, err);
    return mr_error_at(err, NULL, q->offset + s->at, s->sample), rc;
}

void mri_place_mix(const mri_place_config *cfg, mri_slot *slot, uint32_t i, bool alone, uint64_t turn)
{
    const size_t bytes = cfg->layout->sample_bytes;
    for (uint32_t k = i; k < i + (alone ? 1 : 2); k++) {
        slot->labels2[k] = -1;
        slot->share2[k] = 0;
    }
    if (alone || slot->labels[i] < 0 || slot->labels[i + 1] < 0) return;
    const mri_mixed pair = {.a = slot->pixels + i * bytes,
                            .b = slot->pixels + (i + (size_t)1) * bytes,
                            .height = cfg->height,
                            .width = cfg->width,
                            .channels = cfg->channels};
    const float share =
        mri_augment_mix(cfg->augment, (mri_sample_key){cfg->set->seed, turn, slot->ids[i]}, &pair);
    if (share == 0) return;
    slot->labels2[i] = slot->labels[i + 1];
    slot->labels2[i + 1] = slot->labels[i];
    slot->share2[i] = slot->share2[i + 1] = share;
}
