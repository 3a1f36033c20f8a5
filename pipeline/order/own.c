/* pipeline/order/own.c: see own.h. */
#include "pipeline/order/own.h"

#include "base/util.h"

static int wrong_sample(const mri_own_order *o, uint64_t position, uint64_t sample, mr_error *err)
{
    return mr_error_set(err, MR_EINVAL,
                        "the sampler gives sample %llu at position %llu of an epoch: the data have %llu, "
                        "numbered from 0",
                        (unsigned long long)sample, (unsigned long long)position,
                        (unsigned long long)o->in_set);
}

static int check(const mri_own_order *o, uint64_t position, const uint64_t *sample, uint64_t count,
                 mr_error *err)
{
    for (uint64_t k = 0; k < count; k++)
        if (sample[k] >= o->in_set) return wrong_sample(o, position + k, sample[k], err);
    return MR_OK;
}

int mri_own_order_make(mri_own_order *out, const mr_loader_config *cfg, uint64_t in_set, mr_error *err)
{
    *out = (mri_own_order){.count = cfg->sampler_count,
                           .in_set = in_set,
                           .sample = cfg->sampler_samples,
                           .ask = cfg->sampler,
                           .context = cfg->sampler_context};
    if (!out->sample && !out->ask && out->count == 0) return MR_OK;
    if (!out->sample == !out->ask)
        return mr_error_set(err, MR_EINVAL,
                            "a sampler is an array of samples or a function that gives them: %s",
                            out->ask ? "set one of them" : "sampler_count is set, and neither of them");
    if (out->count == 0)
        return mr_error_set(err, MR_EINVAL, "a sampler of 0 samples an epoch: set sampler_count");
    if (cfg->length_window)
        return mr_error_set(
            err, MR_EINVAL,
            "a length window sorts samples, a sampler says where each stands: leave one of them out");
    if (cfg->order == MR_ORDER_BALANCED)
        return mr_error_set(
            err, MR_EINVAL,
            "order balanced and a sampler both say which samples come: leave one of them out");
    return out->sample ? check(out, 0, out->sample, out->count, err) : MR_OK;
}

/* Of one epoch, none behind its end. */
static int list_inside(const mri_own_order *o, uint64_t epoch, uint64_t position, uint32_t count,
                       uint64_t *out, mr_error *err)
{
    mr_error why = MR_ERROR_INIT;
    int rc = MR_OK;
    if (o->sample) memcpy(out, o->sample + position, count * sizeof *out);
    else
        rc = mri_error_of_program(&why, o->ask(o->context, epoch, position, count, out, &why), "the sampler");
    if (rc == MR_OK)
        return check(o, position, out, count, err); /* an array, too: it is the caller's memory */
    if (err) *err = why;
    return rc;
}

int mri_own_order_list(const mri_own_order *o, uint64_t epoch, uint64_t position, uint32_t count,
                       uint64_t *out, mr_error *err)
{
    int rc = MR_OK;
    for (uint32_t done = 0, n; done < count && rc == MR_OK; done += n) {
        const uint64_t at = (position + done) % o->count;
        n = (uint32_t)mri_min_u64(count - done, o->count - at);
        rc = list_inside(o, epoch, at, n, out + done, err);
    }
    return rc;
}
