/* pipeline/order/batches.c: see batches.h. */
#include "pipeline/order/batches.h"

#include "base/util.h"
#include "pipeline/order/sampler.h"

static int plan_range(mri_batches *b, const mri_batches_config *cfg, mr_error *err)
{
    const uint64_t most = UINT64_MAX / 2; /* batches are numbered over all epochs: endless ones end here */
    if (__builtin_mul_overflow(cfg->epochs, b->steps_per_epoch, &b->end_batch) || b->end_batch > most)
        b->end_batch = most;
    if (__builtin_mul_overflow(cfg->start_epoch, b->steps_per_epoch, &b->first_batch) ||
        __builtin_add_overflow(b->first_batch, cfg->start_step, &b->first_batch) ||
        b->first_batch > b->end_batch)
        return mr_error_set(
            err, MR_EINVAL,
            "start at epoch %llu: with %llu steps an epoch that is past the last batch there can be",
            (unsigned long long)cfg->start_epoch, (unsigned long long)b->steps_per_epoch);
    return MR_OK;
}

int mri_batches_plan(mri_batches *b, const mri_batches_config *cfg, mr_error *err)
{
    const uint64_t n = cfg->own.count ? cfg->own.count : cfg->sample_count, batch = cfg->batch;
    *b = (mri_batches){.order = cfg->order,
                       .block = cfg->block,
                       .batch = cfg->batch,
                       .seed = cfg->seed,
                       .tail = cfg->tail,
                       .parts = cfg->parts,
                       .own_first = cfg->own_first,
                       .own_parts = cfg->own_parts ? cfg->own_parts : cfg->parts,
                       .own = cfg->own,
                       .repeats = cfg->repeats ? cfg->repeats : 1,
                       .sample_count = n,
                       .steps_per_epoch = n / batch + (n % batch && cfg->tail != MR_TAIL_DROP)};
    if (b->steps_per_epoch == 0)
        return mr_error_set(
            err, MR_EINVAL,
            "dropping the tail of %llu samples leaves no batch of %llu: lower --batch or use --tail keep",
            (unsigned long long)n, (unsigned long long)batch);
    if (cfg->start_step > b->steps_per_epoch)
        return mr_error_set(err, MR_EINVAL, "start at step %llu: an epoch has %llu steps",
                            (unsigned long long)cfg->start_step, (unsigned long long)b->steps_per_epoch);
    return plan_range(b, cfg, err);
}

int mri_batches_add_windows(mri_batches *b, const mr_source *source, uint32_t window, mr_error *err)
{
    const mri_windows_config cfg = {.source = source,
                                    .order = b->order,
                                    .block = b->block,
                                    .seed = b->seed,
                                    .batch = b->batch,
                                    .window = window,
                                    .delivered = b->sample_count - mri_batches_dropped(b)};
    return mri_windows_create(&b->windows, &cfg, err);
}

int mri_batches_add_dealer(mri_batches *b, const mr_source *source, mr_error *err)
{
    const mr_source_info *info = mr_source_info_of(source);
    if (b->order == MR_ORDER_BALANCED) return mri_balance_create(&b->balance, source, b->seed, err);
    if (b->order != MR_ORDER_SHUFFLE || !info->mix_count || b->own.count) return MR_OK;
    return mri_mixture_create(&b->mixture, info, b->seed, err);
}

void mri_batches_fini(mri_batches *b)
{
    mri_balance_destroy(b->balance);
    b->balance = NULL;
    mri_mixture_destroy(b->mixture);
    b->mixture = NULL;
    mri_windows_destroy(b->windows);
    b->windows = NULL;
}

uint64_t mri_batches_dropped(const mri_batches *b)
{
    return b->tail == MR_TAIL_DROP ? b->sample_count % b->batch : 0;
}

uint64_t mri_batches_padded(const mri_batches *b)
{
    const uint64_t over = b->sample_count % b->batch;
    return b->tail == MR_TAIL_PAD && over ? b->batch - over : 0;
}

void mri_batches_place(const mri_batches *b, uint64_t batch, uint64_t *epoch, uint64_t *step)
{
    *epoch = batch / b->steps_per_epoch;
    *step = batch % b->steps_per_epoch;
}

uint32_t mri_batches_count(const mri_batches *b, uint64_t batch)
{
    const uint64_t step = batch % b->steps_per_epoch;
    if (b->tail != MR_TAIL_KEEP) return b->batch;
    return (uint32_t)mri_min_u64(b->batch, b->sample_count - step * b->batch);
}

/* Part r of a batch of count samples: [first, first + number). */
static void batches_part(const mri_batches *b, uint32_t count, uint32_t r, uint32_t *first, uint32_t *number)
{
    const uint64_t parts = b->parts;
    *first = (uint32_t)((uint64_t)count * r / parts);
    *number = (uint32_t)((uint64_t)count * (r + 1) / parts) - *first;
}

void mri_batches_own_part(const mri_batches *b, uint64_t batch, uint32_t r, uint32_t *first, uint32_t *number)
{
    batches_part(b, mri_batches_count(b, batch), b->own_first + r, first, number);
}

void mri_batches_own(const mri_batches *b, uint64_t batch, uint32_t *first, uint32_t *number)
{
    const uint64_t count = mri_batches_count(b, batch), parts = b->parts;
    *first = (uint32_t)(count * b->own_first / parts);
    *number = (uint32_t)(count * (b->own_first + (uint64_t)b->own_parts) / parts) - *first;
}

uint32_t mri_batches_own_most(const mri_batches *b)
{
    return (uint32_t)(((uint64_t)b->batch * b->own_parts - 1) / b->parts) + 1;
}

/* Samples of a whole batch, each repeated `repeats` times. */
static uint32_t distinct(const mri_batches *b)
{
    return b->batch / b->repeats + (b->batch % b->repeats != 0);
}

int mri_batches_samples(const mri_batches *b, uint64_t batch, uint32_t first, uint32_t count, uint64_t *out,
                        mr_error *err)
{
    uint64_t epoch, step;
    mri_batches_place(b, batch, &epoch, &step);
    if (b->windows) return mri_windows_list(b->windows, epoch, step, first, count, out, err);
    const uint64_t base = step * b->batch + first;
    if (b->own.count) return mri_own_order_list(&b->own, epoch, base, count, out, err);
    if (b->balance || b->mixture) {
        for (uint32_t k = 0; k < count; k++) {
            const uint64_t at = (base + k) % b->sample_count;
            out[k] = b->balance ? mri_balance_sample(b->balance, epoch, at)
                                : mri_mixture_sample(b->mixture, epoch, at);
        }
        return MR_OK;
    }
    const mri_epoch_order order = mri_epoch_order_make(b->order, b->block, b->seed, epoch, b->sample_count);
    const uint32_t each = distinct(b);
    for (uint32_t k = 0; k < count; k++)
        out[k] = mri_epoch_order_sample(&order, (step * each + (first + k) % each) % b->sample_count);
    return MR_OK;
}

uint64_t mri_batches_turn(const mri_batches *b, uint64_t batch, uint32_t place)
{
    uint64_t epoch, step;
    mri_batches_place(b, batch, &epoch, &step);
    if (b->balance || b->mixture || b->own.count) return epoch * b->sample_count + step * b->batch + place;
    return epoch * b->repeats + place / distinct(b);
}

int mri_batches_substitute(const mri_batches *b, uint64_t batch, uint32_t place, uint32_t attempt,
                           uint64_t *out, mr_error *err)
{
    uint64_t epoch, step;
    mri_batches_place(b, batch, &epoch, &step);
    const mri_epoch_order order = mri_epoch_order_make(b->order, b->block, b->seed, epoch, b->sample_count);
    *out = mri_substitute(&order, step * b->batch + place, attempt);
    return b->own.count ? mri_own_order_list(&b->own, epoch, *out, 1, out, err) : MR_OK;
}
