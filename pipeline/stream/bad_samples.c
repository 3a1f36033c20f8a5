/* pipeline/stream/bad_samples.c: see bad_samples.h. */
#include "pipeline/stream/bad_samples.h"

#include "formats/source/source.h"
#include "pipeline/observe/counter.h"

#define MAX_SUBSTITUTES 64 /* damaged samples in a row that one place will try */

void mri_bad_samples_init(mri_bad_samples *b, const mri_batches *batches, mri_notices *notices, mr_bad policy,
                          uint64_t most)
{
    *b = (mri_bad_samples){.batches = batches, .notices = notices, .policy = policy, .most = most};
    pthread_mutex_init(&b->lock, NULL);
}

void mri_bad_samples_fini(mri_bad_samples *b)
{
    pthread_mutex_destroy(&b->lock);
    free(b->known);
}

/* How many samples are known to be damaged with this one, and whether it is new among them: in every epoch it
 * comes again. */
static int remember(mri_bad_samples *b, uint64_t sample, uint64_t *count, bool *is_new)
{
    int rc = MR_OK;
    pthread_mutex_lock(&b->lock);
    const uint64_t n = b->known_count;
    uint64_t low = 0, high = n;
    while (low < high) {
        const uint64_t mid = low + (high - low) / 2;
        if (b->known[mid] < sample) low = mid + 1;
        else high = mid;
    }
    *is_new = low == n || b->known[low] != sample;
    if (*is_new && (n & (n - 1)) == 0) { /* full at every power of two */
        uint64_t *more = realloc(b->known, (n ? 2 * n : 1) * sizeof *more);
        if (more) b->known = more;
        else rc = MR_ENOMEM;
    }
    if (*is_new && rc == MR_OK) {
        memmove(b->known + low + 1, b->known + low, (n - low) * sizeof *b->known);
        b->known[low] = sample;
        b->known_count++;
    }
    *count = b->known_count;
    pthread_mutex_unlock(&b->lock);
    return rc;
}

/* The end of a run: err has the file, the offset and the sample of `why`. */
static int end_at(const mr_error *why, mr_error *err)
{
    err->sys_errno = why->sys_errno;
    return mr_error_at(err, why->file, why->offset, why->sample);
}

static int too_many(const mri_bad_samples *b, const mr_error *why, mr_error *err)
{
    mr_error_set(err, MR_EBADSAMPLE, "more than %llu samples are damaged (--max-bad); the last one: %.600s",
                 (unsigned long long)b->most, why->text);
    return end_at(why, err);
}

static int no_substitute(const mr_error *why, mr_error *err)
{
    mr_error_set(err, MR_EBADSAMPLE, "no whole sample to put in its place in %d tries: %.600s",
                 MAX_SUBSTITUTES, why->text);
    return end_at(why, err);
}

/* Queue the report of a bad sample, once. */
static int report(const mri_bad_samples *b, const mr_error *why, bool is_new, uint64_t substitute,
                  mr_error *err)
{
    return is_new ? mri_notice_bad(b->notices, why, substitute, err) : MR_OK;
}

static int replace(mri_bad_samples *b, mri_placer *p, const mri_chunk *c, uint32_t k, const mr_error *why,
                   bool is_new, mr_error *err)
{
    const uint32_t place = c->slot->first + c->first + k;
    const uint64_t turn = mri_batches_turn(b->batches, c->batch, place);
    for (uint32_t attempt = 0; attempt < MAX_SUBSTITUTES; attempt++) {
        uint64_t other;
        int rc = mri_batches_substitute(b->batches, c->batch, place, attempt, &other, err);
        const bool found = rc == MR_OK;
        if (found) rc = mri_place_alone(p, c->slot, c->first + k, turn, other, err);
        if (rc == MR_OK) {
            mri_count(&b->replaced, 1);
            return report(b, why, is_new, other, err);
        }
        if (!found || p->refused || !mr_error_of_sample(rc, err)) { /* that ends the run */
            mr_error ignored = MR_ERROR_INIT;
            report(b, why, is_new, MR_NOWHERE, &ignored);
            return rc;
        }
    }
    const int rc = report(b, why, is_new, MR_NOWHERE, err);
    return rc != MR_OK ? rc : no_substitute(why, err);
}

int mri_bad_sample(mri_bad_samples *b, mri_placer *p, const mri_chunk *c, uint32_t k, int rc, mr_error *err)
{
    if (p->refused || !mr_error_of_sample(rc, err)) return rc;
    const uint64_t sample = c->samples[k].sample;
    mri_source_place(p->cfg->source, sample, err);
    const mr_error why = *err;
    mri_count(&b->bad, 1);
    if (b->policy == MR_BAD_STOP) {
        rc = report(b, &why, true, MR_NOWHERE, err);
        if (rc != MR_OK) return rc;
        err->code = MR_EBADSAMPLE;
        return MR_EBADSAMPLE;
    }
    uint64_t known;
    bool is_new;
    if (remember(b, sample, &known, &is_new) != MR_OK)
        return mr_error_set(err, MR_ENOMEM, "no memory for the list of damaged samples");
    if (known > b->most) {
        rc = report(b, &why, is_new, MR_NOWHERE, err);
        return rc != MR_OK ? rc : too_many(b, &why, err);
    }
    if (b->policy == MR_BAD_REPLACE) return replace(b, p, c, k, &why, is_new, err);
    mri_count(&b->skipped, 1);
    mri_slot_blank(p->cfg->layout, c->slot, c->first + k);
    return report(b, &why, is_new, MR_NOWHERE, err);
}
