/* pipeline/digest.c: one hash over all that a loader delivers: what I1-I4 are tested with. */
#include <stdio.h>
#include <xxhash.h>

#include "base/util.h"
#include "millrace/pipeline.h"

typedef struct part_check {
    mr_stream *stream;
    uint8_t *host;
} part_check;

static int compare(const part_check *c, const mr_batch *b, const void *device, const void *host, size_t bytes,
                   const char *what, mr_error *err)
{
    if (bytes == 0) return MR_OK;
    int rc = mr_copy_d2h_async(c->stream, c->host, device, bytes);
    if (rc == MR_OK) rc = mr_stream_sync(c->stream, err);
    if (rc != MR_OK) return rc;
    if (memcmp(c->host, host, bytes) == 0) return MR_OK;
    return mr_error_set(err, MR_EDEVICE, "%s of batch %llu on %s differ from the host copy", what,
                        (unsigned long long)b->global_step,
                        mr_device_info_of(mr_stream_device(c->stream))->name);
}

static int check_fields(const part_check *c, const mr_batch *b, const mr_part *p, const mr_loader_info *info,
                        mr_error *err)
{
    int rc = MR_OK;
    for (uint32_t k = 0; k < info->field_count && rc == MR_OK; k++) {
        const mr_batch_field *host = &b->field[k], *device = &p->field[k];
        const size_t row = host->width * (size_t)info->field[k].element_bytes;
        char what[MR_MAX_NAME + 32];
        snprintf(what, sizeof what, "rows of field %s", info->field[k].name);
        if (device->width != host->width)
            return mr_error_set(err, MR_EDEVICE, "%s have another width than in the host copy", what);
        rc = compare(c, b, device->data, (const uint8_t *)host->data + (p->first - b->first) * row,
                     p->count * row, what, err);
        snprintf(what, sizeof what, "lengths of field %s", info->field[k].name);
        if (rc == MR_OK && host->length)
            rc = compare(c, b, device->length, host->length + (p->first - b->first),
                         p->count * sizeof *host->length, what, err);
    }
    return rc;
}

static int check_parts(const part_check *checks, const mr_batch *b, size_t sample_bytes,
                       const mr_loader_info *info, mr_error *err)
{
    int rc = MR_OK;
    for (uint32_t r = 0; r < b->part_count && rc == MR_OK; r++) {
        const mr_part *p = &b->parts[r];
        const size_t first = p->first - b->first, n = p->count;
        rc = mr_stream_wait_event(checks[r].stream, p->ready);
        if (rc == MR_OK && sample_bytes)
            rc = compare(&checks[r], b, p->pixels, b->pixels + first * sample_bytes, n * sample_bytes,
                         "pixels", err);
        if (rc == MR_OK)
            rc = compare(&checks[r], b, p->labels, b->labels + first, n * sizeof *b->labels, "labels", err);
        if (rc == MR_OK && p->affine)
            rc = compare(&checks[r], b, p->affine, b->affine + 2 * first, n * 2 * sizeof *b->affine,
                         "affine numbers", err);
        if (rc == MR_OK && p->labels2)
            rc = compare(&checks[r], b, p->labels2, b->labels2 + first, n * sizeof *b->labels2,
                         "second labels", err);
        if (rc == MR_OK && p->share2)
            rc = compare(&checks[r], b, p->share2, b->share2 + first, n * sizeof *b->share2,
                         "shares of second labels", err);
        if (rc == MR_OK) rc = check_fields(&checks[r], b, p, info, err);
    }
    return rc;
}

/* Sample i of the batch: its number, its label, its pixels and rows. */
static mr_digest hash_sample(XXH3_state_t *state, const mr_batch *b, uint32_t i, const mr_loader_info *info)
{
    const size_t sample_bytes = (size_t)info->height * info->width * info->channels;
    XXH3_128bits_reset(state);
    XXH3_128bits_update(state, &b->ids[i], sizeof *b->ids);
    XXH3_128bits_update(state, &b->labels[i], sizeof *b->labels);
    if (sample_bytes) XXH3_128bits_update(state, b->pixels + i * sample_bytes, sample_bytes);
    if (b->affine) XXH3_128bits_update(state, b->affine + 2 * (size_t)i, 2 * sizeof *b->affine);
    if (b->labels2) {
        XXH3_128bits_update(state, &b->labels2[i], sizeof *b->labels2);
        XXH3_128bits_update(state, &b->share2[i], sizeof *b->share2);
    }
    for (uint32_t k = 0; k < info->field_count; k++) {
        const mr_batch_field *f = &b->field[k];
        const size_t row = (size_t)f->width * info->field[k].element_bytes;
        XXH3_128bits_update(state, &f->width, sizeof f->width);
        XXH3_128bits_update(state, (const uint8_t *)f->data + i * row, row);
        if (f->length) XXH3_128bits_update(state, &f->length[i], sizeof *f->length);
    }
    const XXH128_hash_t h = XXH3_128bits_digest(state);
    return (mr_digest){h.low64, h.high64};
}

struct mr_digester {
    XXH3_state_t *hash, *of_sample;
    mr_digest *samples; /* of one batch */
    uint32_t room;
    mr_digest_share *share; /* or NULL */
    void *context;
};

static bool make_room(mr_digester *d, uint32_t samples)
{
    if (samples <= d->room) return true;
    mr_digest *more = realloc(d->samples, samples * sizeof *more);
    if (!more) return false;
    d->samples = more;
    d->room = samples;
    return true;
}

static int add(mr_digester *d, const mr_batch *b, const mr_loader_info *info, mr_error *err)
{
    const uint32_t all = b->all_count;
    const uint64_t head[3] = {b->epoch, b->step, all};
    if (!make_room(d, all))
        return mr_error_set(err, MR_ENOMEM, "no memory for the digests of %u samples", all);
    for (uint32_t i = 0; i < b->count; i++) d->samples[b->first + i] = hash_sample(d->of_sample, b, i, info);
    if (b->count < all && !d->share)
        return mr_error_set(err, MR_EINVAL,
                            "a digest of %u samples of a batch of %u needs the shares of the others",
                            b->count, all);
    const int rc = d->share ? d->share(d->context, d->samples, b->first, b->count, all, err) : MR_OK;
    XXH3_128bits_update(d->hash, head, sizeof head);
    for (uint32_t i = 0; rc == MR_OK && i < all; i++) {
        const uint64_t words[2] = {d->samples[i].lo, d->samples[i].hi};
        XXH3_128bits_update(d->hash, words, sizeof words);
    }
    return rc;
}

int mr_digester_create(mr_digester **out)
{
    MRI_GIVEN(NULL, out);
    *out = NULL;
    mr_digester *d = calloc(1, sizeof *d);
    if (!d) return MR_ENOMEM;
    d->hash = XXH3_createState();
    d->of_sample = XXH3_createState();
    if (!d->hash || !d->of_sample) {
        mr_digester_destroy(d);
        return MR_ENOMEM;
    }
    XXH3_128bits_reset(d->hash);
    *out = d;
    return MR_OK;
}

void mr_digester_destroy(mr_digester *d)
{
    if (!d) return;
    XXH3_freeState(d->hash);
    XXH3_freeState(d->of_sample);
    free(d->samples);
    free(d);
}

void mr_digester_share(mr_digester *d, mr_digest_share *share, void *context)
{
    if (!d) return;
    d->share = share;
    d->context = context;
}

mr_digest mr_digester_result(const mr_digester *d)
{
    if (!d) return (mr_digest){0};
    const XXH128_hash_t h = XXH3_128bits_digest(d->hash);
    return (mr_digest){h.low64, h.high64};
}

/* The largest piece that is compared at once, of n samples. */
static size_t largest_piece(const mr_loader_info *info, size_t n)
{
    size_t each = mri_max_u64((uint64_t)info->height * info->width * info->channels, 2 * sizeof(float));
    for (uint32_t k = 0; k < info->field_count; k++)
        each = mri_max_u64(each, info->field[k].most * info->field[k].element_bytes);
    return n * each;
}

static int open_checks(part_check *checks, mr_device *const *devices, uint32_t count, size_t part_bytes,
                       mr_error *err)
{
    int rc = MR_OK;
    for (uint32_t r = 0; r < count && rc == MR_OK; r++) {
        rc = mr_stream_create(&checks[r].stream, devices[r], MR_STREAM_COPY, err);
        if (rc == MR_OK) rc = mr_host_alloc(devices[r], part_bytes, (void **)&checks[r].host, err);
    }
    return rc;
}

static void close_checks(part_check *checks, mr_device *const *devices, uint32_t count)
{
    for (uint32_t r = 0; r < count; r++) {
        mr_stream_destroy(checks[r].stream);
        if (checks[r].host) mr_host_free(devices[r], checks[r].host);
    }
}

int mr_digester_run(mr_digester *d, mr_loader *l, mr_device *const *devices, uint64_t max_batches,
                    uint64_t *batches, uint64_t *samples, mr_error *err)
{
    MRI_GIVEN(err, d);
    MRI_GIVEN(err, l);
    MRI_GIVEN(err, batches);
    MRI_GIVEN(err, samples);
    const mr_loader_info *info = mr_loader_info_of(l);
    const size_t sample_bytes = (size_t)info->height * info->width * info->channels;
    part_check checks[MR_LOADER_MAX_PARTS] = {{NULL, NULL}};
    mr_stream *streams[MR_LOADER_MAX_PARTS] = {NULL};
    int rc = MR_OK;
    *batches = *samples = 0;
    if (devices)
        rc = open_checks(checks, devices, info->parts,
                         largest_piece(info, (info->batch - 1) / info->parts + 1), err);
    for (uint32_t r = 0; r < info->parts; r++) streams[r] = checks[r].stream;

    while (rc == MR_OK && *batches < max_batches) {
        mr_batch b;
        rc = mr_loader_next(l, &b, MR_FOREVER, err);
        if (rc != MR_OK) break;
        if (!b.ids) rc = mr_error_set(err, MR_EINVAL, "a digest over devices needs a loader with keep_host");
        if (rc == MR_OK && devices) rc = check_parts(checks, &b, sample_bytes, info, err);
        if (rc == MR_OK) rc = add(d, &b, info, err);
        *batches += 1;
        *samples += b.all_count;
        const int back = mr_loader_release(l, &b, devices ? streams : NULL);
        if (rc == MR_OK && back != MR_OK) rc = mr_error_set(err, back, "a batch could not be given back");
    }
    if (devices) close_checks(checks, devices, info->parts);
    return rc == MR_EEND ? MR_OK : rc;
}
