/* pipeline/order/balance.c: see balance.h. */
#include "pipeline/order/balance.h"

#include "base/util.h"
#include "pipeline/order/sampler.h"

struct mri_balance { /* fixed after create */
    uint64_t samples, seed;
    uint32_t classes; /* that have samples */
    uint64_t *begin;  /* classes + 1: where each begins in sample[] */
    uint64_t *sample; /* by class */
};

uint64_t mri_balance_bytes(uint64_t samples, uint32_t classes)
{
    return mri_plus(mri_times(samples, sizeof(uint64_t)),
                    mri_times((uint64_t)classes + 1, sizeof(uint64_t)) + sizeof(mri_balance));
}

static int unknown(const mr_source_info *info, const char *what, mr_error *err)
{
    mr_error_set(err, MR_EUNSUPPORTED, "order balanced deals samples by their classes: %s", what);
    return mr_error_at(err, info->path, MR_NOWHERE, MR_NOWHERE), MR_EUNSUPPORTED;
}

/* The class of a sample, below classes; classes: none. */
static int class_of(const mr_source *source, uint64_t sample, uint64_t classes, uint64_t *out)
{
    int64_t label = -1;
    const int rc = mr_source_label(source, sample, &label);
    *out = rc == MR_OK && label >= 0 && (uint64_t)label < classes ? (uint64_t)label : classes;
    return rc;
}

/* count[c + 1]: samples of class c. */
static int count_classes(const mr_source *source, uint64_t *count, mr_error *err)
{
    const mr_source_info *info = mr_source_info_of(source);
    const uint64_t classes = info->class_count;
    uint64_t c, known = 0;
    for (uint64_t i = 0; i < info->count; i++) {
        const int rc = class_of(source, i, classes, &c);
        if (rc == MR_EUNSUPPORTED)
            return unknown(
                info, "the classes of these data are known only after reading; convert them to record files",
                err);
        if (c == classes) continue;
        count[c + 1]++;
        known++;
    }
    return known ? MR_OK : unknown(info, "no sample has one", err);
}

static void fill(mri_balance *b, const mr_source *source, uint64_t *next)
{
    const uint64_t classes = mr_source_info_of(source)->class_count;
    uint64_t c;
    for (uint64_t i = 0; i < b->samples; i++)
        if (class_of(source, i, classes, &c) == MR_OK && c < classes) b->sample[next[c]++] = i;
}

int mri_balance_create(mri_balance **out, const mr_source *source, uint64_t seed, mr_error *err)
{
    const mr_source_info *info = mr_source_info_of(source);
    *out = NULL;
    if (info->class_count == 0) return unknown(info, "these data tell none", err);
    mri_balance *b = calloc(1, sizeof *b);
    uint64_t *next = calloc((size_t)info->class_count + 1, sizeof *next);
    if (b) {
        *b = (mri_balance){.samples = info->count, .seed = mri_mix64(seed)};
        b->begin = calloc((size_t)info->class_count + 1, sizeof *b->begin);
        b->sample = calloc(info->count, sizeof *b->sample);
    }
    int rc = MR_OK;
    if (!b || !next || !b->begin || !b->sample)
        rc = mr_error_set(err, MR_ENOMEM, "no memory for the classes of %llu samples",
                          (unsigned long long)info->count);
    if (rc == MR_OK) rc = count_classes(source, next, err);
    for (uint32_t c = 0; rc == MR_OK && c < info->class_count; c++) {
        const uint64_t count = next[c + 1];
        next[c + 1] += next[c];
        if (count) b->begin[++b->classes] = next[c + 1];
    }
    if (rc == MR_OK) fill(b, source, next);
    free(next);
    if (rc == MR_OK) *out = b;
    else mri_balance_destroy(b);
    return rc;
}

void mri_balance_destroy(mri_balance *b)
{
    if (!b) return;
    free(b->begin);
    free(b->sample);
    free(b);
}

uint64_t mri_balance_sample(const mri_balance *b, uint64_t epoch, uint64_t position)
{
    const uint64_t at = epoch * b->samples + position, round = at / b->classes;
    const mri_permutation turns = mri_permutation_make(b->classes, mri_mix64(b->seed ^ ~round));
    const uint64_t c = mri_permute(&turns, at % b->classes);
    const uint64_t first = b->begin[c], count = b->begin[c + 1] - first;
    const uint64_t pass = mri_mix64(mri_mix64(b->seed + c) ^ round / count);
    const mri_permutation order = mri_permutation_make(count, pass);
    return b->sample[first + mri_permute(&order, round % count)];
}
