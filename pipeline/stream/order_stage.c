/* pipeline/stream/order_stage.c: see order_stage.h. */
#include "pipeline/stream/order_stage.h"

#include "base/process.h"

struct mri_order_stage {
    mri_order_config cfg; /* fixed */
    pthread_t thread;
    bool started;
};

int mri_order_stage_create(mri_order_stage **out, const mri_order_config *cfg, mr_error *err)
{
    mri_order_stage *s = *out = calloc(1, sizeof *s);
    if (!s) return mr_error_set(err, MR_ENOMEM, "no memory for an order of samples");
    s->cfg = *cfg;
    return MR_OK;
}

static void *order_main(void *arg)
{
    const mri_order_config *cfg = &((mri_order_stage *)arg)->cfg;
    mr_error err = MR_ERROR_INIT;
    uint64_t batch;
    mri_halt_serve(cfg->halt);
    for (mri_slot *slot; (slot = mri_ring_wait_unlisted(cfg->ring, &batch));) {
        uint32_t first, count;
        const uint64_t start = mri_now_ns();
        mri_batches_own(cfg->batches, batch, &first, &count);
        const int rc = mri_batches_samples(cfg->batches, batch, first, count, slot->ids, &err);
        if (rc != MR_OK) {
            mri_halt_fail(cfg->halt, rc, &err);
            return NULL;
        }
        mr_trace_span(cfg->set->trace, "order", "order", start, mri_now_ns(), batch);
        mri_ring_mark_listed(cfg->ring);
    }
    return NULL;
}

int mri_order_stage_start(mri_order_stage *s, mr_error *err)
{
    const int rc = mri_thread_start(&s->thread, "order", order_main, s);
    if (rc != MR_OK) return mr_error_set(err, rc, "the system refused another thread");
    s->started = true;
    return MR_OK;
}

void mri_order_stage_join(mri_order_stage *s)
{
    if (s && s->started) pthread_join(s->thread, NULL);
    if (s) s->started = false;
}

void mri_order_stage_destroy(mri_order_stage *s) { free(s); }
