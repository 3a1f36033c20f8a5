/* python/native/jobs.c: see native.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "python/native/native.h"

static void tell(mrp_progress *p, uint64_t done, uint64_t count, uint64_t bytes)
{
    __atomic_store_n(&p->done, done, __ATOMIC_RELAXED);
    __atomic_store_n(&p->count, count, __ATOMIC_RELAXED);
    __atomic_store_n(&p->bytes, bytes, __ATOMIC_RELAXED);
}

static bool stopped(const mrp_progress *p) { return __atomic_load_n(&p->stop, __ATOMIC_RELAXED) != 0; }

static int canceled(mr_error *err) { return mr_error_set(err, MR_ECANCELED, "stopped by its caller"); }

/* ---- convert ---- */

static void on_progress(void *context, uint64_t done, uint64_t count, uint64_t bytes)
{
    tell(context, done, count, bytes);
}

static void on_bad(void *context, const mr_error *what, uint64_t substitute)
{
    mrp_progress *p = context;
    if (p->inbox) mrp_on_bad(p->inbox, what, substitute);
}

int mrp_convert(const mr_source *src, const char *dst, mr_convert_config *cfg, mrp_progress *progress,
                mr_convert_result *out, mr_error *err)
{
    cfg->progress = on_progress;
    cfg->on_bad = on_bad;
    cfg->context = progress;
    cfg->stop = &progress->stop;
    return mr_convert(src, dst, cfg, out, err);
}

/* ---- verify ---- */

typedef struct verification {
    mrp_progress *progress;
    uint64_t most_wrong, wrong;
    uint64_t file_bytes; /* read before the samples */
} verification;

static bool enough(const verification *v)
{
    return stopped(v->progress) || (v->most_wrong && v->wrong >= v->most_wrong);
}

static bool on_wrong(void *context, const mr_error *what)
{
    verification *v = context;
    v->wrong++;
    if (v->progress->inbox) mrp_on_bad(v->progress->inbox, what, MR_NOWHERE);
    return !enough(v);
}

static void on_samples(void *context, uint64_t done, uint64_t count, uint64_t bytes)
{
    verification *v = context;
    tell(v->progress, done, count, v->file_bytes + bytes);
}

/* Numbers of files, and every byte of record files. Defects are reported; the rest is an error of the check.
 */
static int verify_files(verification *v, const mr_source *src, mr_error *err)
{
    mr_verify_result result = {0};
    mr_error what = MR_ERROR_INIT;
    const int rc = mr_source_verify_files(src, &v->progress->stop, on_wrong, v, &result, &what);
    v->file_bytes = result.bytes;
    if (rc == MR_OK || rc == MR_ECANCELED || rc == MR_EFORMAT || rc == MR_ECHECKSUM) return MR_OK;
    if (err) *err = what;
    return rc;
}

static int verify_samples(verification *v, const mr_source *src, bool decode, mr_error *err)
{
    mr_verify_config cfg;
    mr_verify_defaults(&cfg);
    cfg.no_decode = !decode;
    cfg.decode_only = v->wrong > 0; /* what cannot be read is reported */
    cfg.on_wrong = on_wrong;
    cfg.on_progress = on_samples;
    cfg.context = v;
    cfg.stop = &v->progress->stop;
    return mr_verify_samples(src, &cfg, NULL, err);
}

int mrp_verify(const mr_source *src, int decode, uint64_t most_wrong, mrp_progress *progress, uint64_t *wrong,
               mr_error *err)
{
    verification v = {.progress = progress, .most_wrong = most_wrong};
    int rc = verify_files(&v, src, err);
    if (rc == MR_OK && !enough(&v)) rc = verify_samples(&v, src, decode, err);
    if (rc == MR_OK && !stopped(progress) && v.wrong == 0) rc = mr_source_check(src, err);
    *wrong = v.wrong;
    return rc == MR_OK && stopped(progress) ? canceled(err) : rc;
}

/* ---- digest ---- */

int mrp_digest(mr_loader *l, mrp_progress *progress, char out[33], uint64_t *batches, uint64_t *samples,
               mr_error *err)
{
    mr_digester *d;
    *batches = *samples = 0;
    if (mr_digester_create(&d) != MR_OK) return mr_error_set(err, MR_ENOMEM, "no memory for a digest");
    const uint64_t count = mr_loader_info_of(l)->steps_per_epoch;
    int rc = MR_OK;
    while (rc == MR_OK && !stopped(progress)) {
        uint64_t more_batches, more_samples;
        rc = mr_digester_run(d, l, NULL, 1, &more_batches, &more_samples, err);
        if (rc == MR_OK && more_batches == 0) break;
        *batches += more_batches;
        *samples += more_samples;
        tell(progress, *batches, count, 0);
    }
    const mr_digest result = mr_digester_result(d);
    snprintf(out, 33, "%016" PRIx64 "%016" PRIx64, result.hi, result.lo);
    mr_digester_destroy(d);
    return rc == MR_OK && stopped(progress) ? canceled(err) : rc;
}
