/* pipeline/observe/counter.c: see counter.h. */
#include "pipeline/observe/counter.h"

uint64_t mri_activity_begin(mri_stage_counter *c, mri_activity what)
{
    pthread_mutex_lock(&c->lock);
    const uint64_t now = mri_now_ns();
    c->now[what].threads++;
    c->now[what].since_ns += now;
    pthread_mutex_unlock(&c->lock);
    return now;
}

uint64_t mri_activity_end(mri_stage_counter *c, mri_activity what, uint64_t since_ns)
{
    pthread_mutex_lock(&c->lock);
    const uint64_t now = mri_now_ns();
    c->now[what].threads--;
    c->now[what].since_ns -= since_ns;
    c->ns[what] += now - since_ns;
    pthread_mutex_unlock(&c->lock);
    return now;
}

void mri_activity_move(mri_stage_counter *c, mri_activity from, mri_activity to, uint64_t ns)
{
    pthread_mutex_lock(&c->lock);
    c->ns[from] -= ns;
    c->ns[to] += ns;
    pthread_mutex_unlock(&c->lock);
}

void mri_activity_add(mri_stage_counter *c, mri_activity what, uint64_t ns)
{
    pthread_mutex_lock(&c->lock);
    c->ns[what] += ns;
    pthread_mutex_unlock(&c->lock);
}

static uint64_t so_far_locked(const mri_stage_counter *c, mri_activity what, uint64_t now)
{
    return c->ns[what] + c->now[what].threads * now - c->now[what].since_ns;
}

uint64_t mri_activity_ns(mri_stage_counter *c, mri_activity what)
{
    pthread_mutex_lock(&c->lock);
    const uint64_t ns = so_far_locked(c, what, mri_now_ns());
    pthread_mutex_unlock(&c->lock);
    return ns;
}

mr_stage_stats mri_stage_stats(mri_stage_counter *c, uint32_t threads)
{
    pthread_mutex_lock(&c->lock);
    const uint64_t now = mri_now_ns();
    mr_stage_stats s = {.busy_ns = so_far_locked(c, MRI_BUSY, now),
                        .blocked_in_ns = so_far_locked(c, MRI_WAIT_INPUT, now),
                        .blocked_out_ns =
                            so_far_locked(c, MRI_WAIT_ROOM, now) + so_far_locked(c, MRI_WAIT_BUFFER, now),
                        .items = mri_counted(&c->items),
                        .threads = threads};
    pthread_mutex_unlock(&c->lock);
    const uint64_t n = mri_counted(&c->fill_samples);
    if (n) s.occupancy = (double)mri_counted(&c->fill_sum) / (double)n / 65536.0;
    return s;
}
