/* formats/source/choice.c: see choice.h. The rank of a sample is the rank of its key among all keys. Keys are
 * all different, so a threshold between two of them cuts off exactly the right number. */
#include "formats/source/choice.h"

#include <stdio.h>

#include "base/random.h"
#include "base/util.h"

enum { DIGIT_BITS = 16, DIGITS = 4 };

/* A bijection. */
static uint64_t key_of(uint64_t number) { return mri_mix64(number ^ UINT64_C(0x6D696C6C72616365)); }

/* The key of that rank, found digit by digit: how many keys begin like the one that is looked for and go on
 * with each digit? */
static int key_of_rank(uint64_t count, uint64_t rank, uint64_t *out, mr_error *err)
{
    uint64_t *seen = malloc(sizeof *seen << DIGIT_BITS), begin = 0;
    if (!seen) return mr_error_set(err, MR_ENOMEM, "no memory to choose samples");
    for (int digit = DIGITS - 1; digit >= 0; digit--) {
        const int shift = digit * DIGIT_BITS, above = shift + DIGIT_BITS;
        uint64_t d = 0;
        memset(seen, 0, sizeof *seen << DIGIT_BITS);
        for (uint64_t i = 0; i < count; i++) {
            const uint64_t key = key_of(i);
            if (above < 64 && key >> above != begin >> above) continue;
            seen[key >> shift & ((1u << DIGIT_BITS) - 1)]++;
        }
        while (rank >= seen[d]) rank -= seen[d++];
        begin |= d << shift;
    }
    free(seen);
    *out = begin;
    return MR_OK;
}

/* Keys from *from to *to, that one included. */
static int keys_between(uint64_t count, uint64_t first, uint64_t end, uint64_t *from, uint64_t *to,
                        mr_error *err)
{
    const int rc = key_of_rank(count, first, from, err);
    return rc ? rc : key_of_rank(count, end - 1, to, err);
}

static int wrong(const mr_source_config *cfg, const mr_source *src, const char *what, mr_error *err)
{
    mr_error_set(err, MR_EINVAL, "take %.9g:%.9g of %llu samples: %s", cfg->take_from, cfg->take_to,
                 (unsigned long long)src->info.count, what);
    return mri_error_place(err, MR_EINVAL, src->path, MR_NOWHERE, MR_NOWHERE);
}

void mri_choice_measure(mr_source *src)
{
    src->info.max_extent_bytes = src->info.total_bytes = 0;
    for (uint64_t k = 0; k < src->info.count; k++) {
        mr_extent e;
        if (src->ops->extent(src, mri_choice_number(&src->choice, k), &e, NULL) != MR_OK) continue;
        src->info.total_bytes += e.bytes;
        if (e.bytes > src->info.max_extent_bytes) src->info.max_extent_bytes = e.bytes;
    }
}

/* Numbers are ascending, so sets stay one after the other. */
static int choose_of_sets(mr_source *src, const mr_source_config *cfg, mr_error *err)
{
    uint64_t at = 0;
    for (uint32_t k = 0; k < src->info.mix_count; k++) {
        mr_mix_set *set = &src->mix[k];
        const uint64_t end = set->first + set->count;
        set->first = at;
        while (at < src->info.count && src->choice.number[at] < end) at++;
        set->count = at - set->first;
        char what[600];
        snprintf(what, sizeof what, "that takes no sample of %.400s; take more", set->path);
        if (set->count == 0) return wrong(cfg, src, what, err);
    }
    return MR_OK;
}

int mri_choice_make(mr_source *src, const mr_source_config *cfg, mr_error *err)
{
    const uint64_t all = src->format_count = src->info.count;
    uint64_t from, to, used = 0;
    if (!(cfg->take_from >= 0 && cfg->take_from < cfg->take_to && cfg->take_to <= 1))
        return wrong(cfg, src, "expected two parts of 1, the first below the second", err);
    if (all == 0 || (cfg->take_from == 0 && cfg->take_to == 1)) return MR_OK;
    const uint64_t first = (uint64_t)(cfg->take_from * (double)all + 0.5),
                   end = mri_min_u64((uint64_t)(cfg->take_to * (double)all + 0.5), all);
    if (first >= end) return wrong(cfg, src, "that takes no sample; take more", err);
    int rc = mri_source_budget(
        cfg, mri_plus(src->info.memory_bytes, mri_times(end - first, sizeof(uint64_t))), src->path, err);
    if (rc == MR_OK) rc = keys_between(all, first, end, &from, &to, err);
    if (rc) return rc;
    uint64_t *number = malloc((size_t)(end - first) * sizeof *number);
    if (!number) return mr_error_set(err, MR_ENOMEM, "no memory to choose samples");
    for (uint64_t i = 0; i < all; i++) {
        const uint64_t key = key_of(i);
        if (key >= from && key <= to) number[used++] = i;
    }
    src->choice.number = number;
    src->info.count = used;
    src->info.memory_bytes += used * sizeof *number;
    src->info.fingerprint = mri_mix64(mri_mix64(src->info.fingerprint ^ first) + end);
    mri_choice_measure(src);
    mri_source_tell(src, "%llu of %llu samples are taken, %.9g:%.9g of a drawn order",
                    (unsigned long long)used, (unsigned long long)all, cfg->take_from, cfg->take_to);
    return choose_of_sets(src, cfg, err);
}

static int check_chosen(const mr_source *src, const uint64_t *samples, uint64_t count, mr_error *err)
{
    if (count == 0) return mr_error_set(err, MR_EINVAL, "%s: no sample is chosen", src->path);
    for (uint64_t k = 0; k < count; k++)
        if (samples[k] >= src->info.count || (k && samples[k] <= samples[k - 1]))
            return mr_error_set(err, MR_EINVAL, "expected rising numbers of samples below %llu, found %llu",
                                (unsigned long long)src->info.count, (unsigned long long)samples[k]);
    return MR_OK;
}

/* How many of the samples are of this set of a mix, from *at on. */
static uint64_t of_set(const mr_mix_set *set, const uint64_t *samples, uint64_t count, uint64_t *at)
{
    const uint64_t first = *at;
    while (*at < count && samples[*at] < set->first + set->count) ++*at;
    return *at - first;
}

static int check_sets(const mr_source *src, const uint64_t *samples, uint64_t count, mr_error *err)
{
    uint64_t at = 0;
    for (uint32_t k = 0; k < src->info.mix_count; k++)
        if (of_set(&src->mix[k], samples, count, &at) == 0)
            return mr_error_set(err, MR_EINVAL,
                                "no sample of %.400s is chosen, and a mix has samples of all its sets: "
                                "choose from the sets one by one",
                                src->mix[k].path);
    return MR_OK;
}

int mr_source_choose(mr_source *src, const uint64_t *samples, uint64_t count, mr_error *err)
{
    MRI_OWN(err, src);
    MRI_GIVEN(err, samples);
    int rc = check_chosen(src, samples, count, err);
    if (!rc) rc = check_sets(src, samples, count, err);
    if (rc) return rc;
    if (count == src->info.count) return MR_OK;
    uint64_t *number = malloc((size_t)count * sizeof *number), hash = src->info.fingerprint, at = 0;
    if (!number) return mr_error_set(err, MR_ENOMEM, "no memory to choose samples");
    for (uint64_t k = 0; k < count; k++) {
        number[k] = mri_choice_number(&src->choice, samples[k]);
        hash = mri_mix64(hash ^ samples[k]);
    }
    for (uint32_t k = 0; k < src->info.mix_count; k++) {
        const uint64_t first = at, found = of_set(&src->mix[k], samples, count, &at);
        src->mix[k].first = first;
        src->mix[k].count = found;
    }
    mri_choice_fini(&src->choice);
    src->choice.number = number;
    src->info.count = count;
    src->info.fingerprint = hash;
    mri_choice_measure(src);
    return MR_OK;
}

void mri_choice_fini(mri_choice *c)
{
    free(c->number);
    free(c->gone);
    *c = (mri_choice){0};
}

/* Before gone[k] there are gone[k] - k others. */
uint64_t mri_choice_past_gone(const mri_choice *c, uint64_t sample)
{
    uint64_t low = 0, high = c->gone_count;
    while (low < high) {
        const uint64_t mid = low + (high - low) / 2;
        if (c->gone[mid] - mid <= sample) low = mid + 1;
        else high = mid;
    }
    return sample + low;
}

int mri_choice_place(const mri_choice *c, uint64_t sample, int rc, mr_error *err)
{
    if (rc && err && err->sample == mri_choice_number(c, sample)) err->sample = sample;
    return rc;
}
