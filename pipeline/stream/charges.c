/* pipeline/stream/charges.c: see charges.h. */
#include "pipeline/stream/charges.h"

#define QUOTA_LOOK_NS 200000000u /* how often the control group's figures are read at most */

struct mri_charges {
    mri_ring *ring; /* fixed, like the next */
    mri_decode_stage *decode;
    pthread_mutex_t lock; /* all below */
    mr_causes consumer;
    uint64_t looked_ns, throttled_ns, delayed_ns;
    double throttled; /* of what workers were delayed, 0..1, as it was when somebody looked last */
};

int mri_charges_create(mri_charges **out, mri_ring *ring, mri_decode_stage *decode, mr_error *err)
{
    mri_charges *c = calloc(1, sizeof *c);
    *out = c;
    if (!c) return mr_error_set(err, MR_ENOMEM, "no memory for a loader");
    c->ring = ring;
    c->decode = decode;
    pthread_mutex_init(&c->lock, NULL);
    return MR_OK;
}

void mri_charges_destroy(mri_charges *c)
{
    if (!c) return;
    pthread_mutex_destroy(&c->lock);
    free(c);
}

static void look_at_quota_locked(mri_charges *c)
{
    const uint64_t now = mri_now_ns();
    if (c->looked_ns && now - c->looked_ns < QUOTA_LOOK_NS) return;
    const uint64_t throttled = mri_throttled_ns(),
                   delayed = mri_counted(&mri_decode_stage_counters(c->decode)->delayed_ns);
    const uint64_t held = throttled - mri_min_u64(c->throttled_ns, throttled), all = delayed - c->delayed_ns;
    if (c->looked_ns && all) c->throttled = held < all ? (double)held / (double)all : 1;
    c->throttled_ns = throttled;
    c->delayed_ns = delayed;
    c->looked_ns = now;
}

void mri_charge(mri_charges *c, uint64_t batch, uint32_t part, uint64_t from_ns, uint64_t to_ns,
                mr_causes *add)
{
    mri_batch_times t;
    if (from_ns >= to_ns) return;
    pthread_mutex_lock(&c->lock);
    look_at_quota_locked(c);
    const double throttled = c->throttled;
    pthread_mutex_unlock(&c->lock);
    mri_ring_times(c->ring, batch, part, &t);
    mri_causes_charge(&t, throttled, from_ns, to_ns, add);
}

/* The batch was there, and who waits for it had not been run yet. */
static void charge_late(mr_causes *one, uint64_t late_ns, double throttled)
{
    const uint64_t late = mri_min_u64(late_ns, one->ns[MR_CAUSE_HOST]),
                   quota = (uint64_t)((double)late * throttled);
    one->ns[MR_CAUSE_HOST] -= late;
    one->ns[MR_CAUSE_QUOTA] += quota;
    one->ns[MR_CAUSE_CORES] += late - quota;
}

void mri_charge_consumer(mri_charges *c, uint64_t batch, uint64_t waited_ns, uint64_t late_ns)
{
    mr_causes one = {0};
    const uint64_t now = mri_now_ns();
    mri_charge(c, batch, 0, now - waited_ns, now, &one);
    pthread_mutex_lock(&c->lock);
    charge_late(&one, late_ns, c->throttled);
    for (uint32_t i = 0; i < MR_CAUSES; i++) c->consumer.ns[i] += one.ns[i];
    c->consumer.total_ns += one.total_ns;
    pthread_mutex_unlock(&c->lock);
}

mr_causes mri_charges_of_consumer(mri_charges *c)
{
    pthread_mutex_lock(&c->lock);
    const mr_causes out = c->consumer;
    pthread_mutex_unlock(&c->lock);
    return out;
}
