/* pipeline/digest.c: one hash over all that a loader delivers: what I1-I4 are tested with. */
#include <xxhash.h>

#include "base/util.h"
#include "millrace/pipeline.h"

typedef struct part_check {
    mr_stream *stream;
    uint8_t   *host;
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
                        (unsigned long long)b->global_step, mr_device_info_of(mr_stream_device(c->stream))->name);
}

static int check_parts(const part_check *checks, const mr_batch *b, size_t sample_bytes, mr_error *err)
{
    int rc = MR_OK;
    for (uint32_t r = 0; r < b->part_count && rc == MR_OK; r++) {
        const mr_part *p = &b->parts[r];
        const size_t   first = p->first, n = p->count;
        rc = mr_stream_wait_event(checks[r].stream, p->ready);
        if (rc == MR_OK) rc = compare(&checks[r], b, p->pixels, b->pixels + first * sample_bytes, n * sample_bytes, "pixels", err);
        if (rc == MR_OK) rc = compare(&checks[r], b, p->labels, b->labels + first, n * sizeof *b->labels, "labels", err);
        if (rc == MR_OK && p->affine)
            rc = compare(&checks[r], b, p->affine, b->affine + 2 * first, n * 2 * sizeof *b->affine, "affine numbers", err);
    }
    return rc;
}

static void add(XXH3_state_t *hash, const mr_batch *b, size_t sample_bytes)
{
    const uint64_t head[3] = {b->epoch, b->step, b->count};
    XXH3_128bits_update(hash, head, sizeof head);
    XXH3_128bits_update(hash, b->ids, b->count * sizeof *b->ids);
    XXH3_128bits_update(hash, b->labels, b->count * sizeof *b->labels);
    XXH3_128bits_update(hash, b->pixels, b->count * sample_bytes);
    if (b->affine) XXH3_128bits_update(hash, b->affine, b->count * 2 * sizeof *b->affine);
}

struct mr_digester {
    XXH3_state_t *hash;
};

int mr_digester_create(mr_digester **out)
{
    *out = NULL;
    mr_digester *d = malloc(sizeof *d);
    if (!d) return MR_ENOMEM;
    d->hash = XXH3_createState();
    if (!d->hash) {
        free(d);
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
    free(d);
}

mr_digest mr_digester_result(const mr_digester *d)
{
    const XXH128_hash_t h = XXH3_128bits_digest(d->hash);
    return (mr_digest){h.low64, h.high64};
}

static int open_checks(part_check *checks, mr_device *const *devices, uint32_t count, size_t part_bytes, mr_error *err)
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

int mr_digester_run(mr_digester *d, mr_loader *l, mr_device *const *devices, uint64_t max_batches, uint64_t *batches,
                    uint64_t *samples, mr_error *err)
{
    const mr_loader_info *info = mr_loader_info_of(l);
    const size_t          sample_bytes = (size_t)info->height * info->width * info->channels;
    part_check            checks[MR_LOADER_MAX_PARTS] = {{NULL, NULL}};
    mr_stream            *streams[MR_LOADER_MAX_PARTS] = {NULL};
    int                   rc = MR_OK;
    *batches = *samples = 0;
    if (devices) rc = open_checks(checks, devices, info->parts, ((info->batch - 1) / info->parts + 1) * (sample_bytes + 8), err);
    for (uint32_t r = 0; r < info->parts; r++) streams[r] = checks[r].stream;

    while (rc == MR_OK && *batches < max_batches) {
        mr_batch b;
        rc = mr_loader_next(l, &b, MR_FOREVER, err);
        if (rc != MR_OK) break;
        if (!b.pixels) rc = mr_error_set(err, MR_EINVAL, "a digest over devices needs a loader with keep_host");
        if (rc == MR_OK && devices) rc = check_parts(checks, &b, sample_bytes, err);
        if (rc == MR_OK) add(d->hash, &b, sample_bytes);
        *batches += 1;
        *samples += b.count;
        const int back = mr_loader_release(l, &b, devices ? streams : NULL);
        if (rc == MR_OK && back != MR_OK) rc = mr_error_set(err, back, "a batch could not be given back");
    }
    if (devices) close_checks(checks, devices, info->parts);
    return rc == MR_EEND ? MR_OK : rc;
}
