/* pipeline/stream/ring.c: see ring.h. */
#include "pipeline/stream/ring.h"

#include <errno.h>

#include "base/ranges.h"
#include "pipeline/account/batches_account.h"
#include "pipeline/account/claim_account.h"

/* What threads wait for. */
enum { ROOM, WORK, FULL, READY, RETURNED, LIMITED, UNLISTED, CONDITIONS };

/* Chunks that are read and wait for a worker. */
typedef struct work_queue {
    mri_chunk *head, *tail;
    uint32_t count;
} work_queue;

typedef struct work_force {
    uint32_t at_work;  /* with `calls`: chunks that workers have */
    uint32_t resting;  /* wait for work */
    uint32_t woken;    /* signalled ones among them, which could run */
    uint64_t woken_ns; /* when the first of them was */
} work_force;

/* Claims without block that found none: who made them waits elsewhere. */
typedef struct outsiders {
    uint32_t count;
    void (*on_room)(void *context); /* fixed, like the next */
    void *context;
} outsiders;

struct mri_ring {
    mri_ring_config cfg; /* fixed after create, like the next two */
    uint64_t end_batch;
    uint32_t slot_count;
    mri_slot **slot;      /* in order of batches; changes in free order, and when one is kept (lock) */
    uint32_t *counted;    /* lock: device_slots: of batches that are staged, whose slot may be another's */
    pthread_mutex_t lock; /* all below */
    pthread_cond_t cond[CONDITIONS];
    mri_ring_limits limits;
    mri_chunk *free_chunks;
    work_queue work;
    work_force workers;
    outsiders outside;
    bool from_memory; /* nothing is left to read */
    bool forward;     /* free order: a full batch lies at the next place */
    uint64_t listed;  /* UINT64_MAX: nobody lists samples before they are claimed */
    uint64_t next_batch;
    uint32_t next_first;
    uint64_t freed, staged, copied, taken, released; /* taken, released: written by the consumer only */
    mri_batches_account account;
};

static void wake_all(void *ring)
{
    mri_ring *r = ring;
    pthread_mutex_lock(&r->lock);
    for (size_t i = 0; i < CONDITIONS; i++) pthread_cond_broadcast(&r->cond[i]);
    pthread_mutex_unlock(&r->lock);
}

static void free_lists(mri_ring *r)
{
    free(r->slot);
    free(r->counted);
    mri_batches_account_fini(&r->account);
}

int mri_ring_create(mri_ring **out, const mri_ring_config *cfg, mr_error *err)
{
    *out = NULL;
    mri_ring *r = calloc(1, sizeof *r);
    if (!r) return mr_error_set(err, MR_ENOMEM, "no memory for a loader");
    r->cfg = *cfg;
    r->end_batch = cfg->batches->end_batch;
    r->slot_count = cfg->slots->count - cfg->set->keep;
    r->limits = (mri_ring_limits){cfg->set->workers, UINT32_MAX, r->slot_count};
    r->slot = calloc(r->slot_count, sizeof *r->slot);
    r->counted = calloc(cfg->device_slots + 1, sizeof *r->counted);
    const int rc =
        mri_batches_account_init(&r->account, r->slot_count + cfg->device_slots, cfg->batches->own_parts);
    if (!r->slot || !r->counted || rc) {
        free_lists(r);
        free(r);
        return mr_error_set(err, MR_ENOMEM, "no memory for a list of %u batch slots", cfg->slots->count);
    }
    for (uint32_t i = 0; i < r->slot_count; i++) r->slot[i] = &cfg->slots->slot[i];
    for (uint32_t i = cfg->chunks->count; i-- > 0;) {
        cfg->chunks->chunk[i].next = r->free_chunks;
        r->free_chunks = &cfg->chunks->chunk[i];
    }
    r->next_batch = r->freed = r->staged = r->copied = r->taken = r->released = cfg->batches->first_batch;
    r->listed = cfg->lists ? cfg->batches->first_batch : UINT64_MAX;
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    for (size_t i = 0; i < CONDITIONS; i++) pthread_cond_init(&r->cond[i], &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&r->lock, NULL);
    mri_halt_add(cfg->halt, wake_all, r);
    *out = r;
    return MR_OK;
}

void mri_ring_destroy(mri_ring *r)
{
    if (!r) return;
    for (size_t i = 0; i < CONDITIONS; i++) pthread_cond_destroy(&r->cond[i]);
    pthread_mutex_destroy(&r->lock);
    free_lists(r);
    free(r);
}

static bool is_over(const mri_ring *r) { return mri_halt_is_over(r->cfg.halt); }

static bool has_room_locked(const mri_ring *r)
{
    return r->next_batch < r->end_batch && r->next_batch < r->freed + r->limits.slots;
}

static bool is_listed_locked(const mri_ring *r) { return r->next_batch < r->listed; }

static bool can_claim_locked(const mri_ring *r)
{
    return has_room_locked(r) && r->free_chunks && is_listed_locked(r);
}

/* After room was made: is there somebody to tell, once the lock is given back? Not while workers have enough
 * to do: readers that come back by themselves, when something is read, take more at a time. */
static bool take_outside_locked(mri_ring *r)
{
    if (!r->outside.count || !r->outside.on_room || r->work.count >= r->limits.workers ||
        !can_claim_locked(r))
        return false;
    r->outside.count--;
    return true;
}

static void tell_outside(mri_ring *r, bool somebody)
{
    if (somebody) r->outside.on_room(r->outside.context);
}

static void count_woken_locked(mri_ring *r, uint32_t woken)
{
    if (woken > r->workers.resting) woken = r->workers.resting;
    if (r->workers.woken == 0 && woken) r->workers.woken_ns = mri_now_ns();
    r->workers.woken = woken;
}

static void wake_worker_locked(mri_ring *r)
{
    count_woken_locked(r, r->workers.woken + 1);
    pthread_cond_signal(&r->cond[WORK]);
}

static void wake_workers_locked(mri_ring *r)
{
    count_woken_locked(r, r->workers.resting);
    pthread_cond_broadcast(&r->cond[WORK]);
}

void mri_ring_limit(mri_ring *r, const mri_ring_limits *limits)
{
    pthread_mutex_lock(&r->lock);
    r->limits = *limits;
    pthread_cond_broadcast(&r->cond[LIMITED]);
    wake_workers_locked(r); /* a signal may have been for one that rests now */
    pthread_cond_broadcast(&r->cond[ROOM]);
    pthread_cond_signal(&r->cond[UNLISTED]);
    const bool tell = take_outside_locked(r);
    pthread_mutex_unlock(&r->lock);
    tell_outside(r, tell);
}

static mri_slot *slot_of(const mri_ring *r, uint64_t batch) { return r->slot[batch % r->slot_count]; }

static void wait_locked(mri_ring *r, pthread_cond_t *cond, mri_stage_counter *waits, mri_activity reason)
{
    const uint64_t start = mri_activity_begin(waits, reason);
    pthread_cond_wait(cond, &r->lock);
    mri_activity_end(waits, reason, start);
}

/* How long. */
static uint64_t rest_locked(mri_ring *r, mri_stage_counter *waits)
{
    const uint64_t start = mri_activity_begin(waits, MRI_WAIT_INPUT);
    r->workers.resting++;
    pthread_cond_wait(&r->cond[WORK], &r->lock);
    r->workers.resting--;
    if (r->workers.woken) r->workers.woken--; /* it runs: from here on it waits only for locks */
    return mri_activity_end(waits, MRI_WAIT_INPUT, start) - start;
}

static uint64_t wait_for_limit_locked(mri_ring *r)
{
    const uint64_t start = mri_now_ns();
    pthread_cond_wait(&r->cond[LIMITED], &r->lock);
    return mri_now_ns() - start;
}

/* ------------------------------------------------------------------------------ what became of a batch */

void mri_ring_times(mri_ring *r, uint64_t batch, uint32_t part, mri_batch_times *out)
{
    pthread_mutex_lock(&r->lock);
    mri_batches_account_get(&r->account, batch, part, out);
    pthread_mutex_unlock(&r->lock);
}

void mri_ring_mark_serial(mri_ring *r, uint64_t batch, const mri_chunk_times *all, uint64_t read_ns,
                          uint64_t before_late_ns)
{
    pthread_mutex_lock(&r->lock);
    mri_batches_account_serial(&r->account, batch, all, read_ns, before_late_ns);
    pthread_mutex_unlock(&r->lock);
}

/* ------------------------------------------------------------------------------ listing */

mri_slot *mri_ring_wait_unlisted(mri_ring *r, uint64_t *batch)
{
    pthread_mutex_lock(&r->lock);
    while (!is_over(r) && r->listed < r->end_batch && r->listed >= r->freed + r->limits.slots)
        pthread_cond_wait(&r->cond[UNLISTED], &r->lock);
    mri_slot *slot = is_over(r) || r->listed >= r->end_batch ? NULL : slot_of(r, r->listed);
    *batch = r->listed;
    pthread_mutex_unlock(&r->lock);
    return slot;
}

void mri_ring_mark_listed(mri_ring *r)
{
    pthread_mutex_lock(&r->lock);
    r->listed++;
    pthread_cond_broadcast(&r->cond[ROOM]);
    if (r->from_memory) wake_workers_locked(r);
    const bool tell = take_outside_locked(r);
    pthread_mutex_unlock(&r->lock);
    tell_outside(r, tell);
}

/* ------------------------------------------------------------------------------ reading */

static mri_chunk *claim_locked(mri_ring *r)
{
    mri_chunk *c = r->free_chunks;
    r->free_chunks = c->next;
    mri_slot *slot = slot_of(r, r->next_batch);
    if (r->next_first == 0) {
        slot->batch = r->next_batch;
        mri_batches_own(r->cfg.batches, r->next_batch, &slot->first, &slot->count);
        slot->remaining = slot->count;
        slot->at_work = 0;
        slot->done = false;
    }
    c->slot = slot;
    c->batch = r->next_batch;
    c->listed = r->cfg.lists;
    c->first = r->next_first;
    c->count = (uint32_t)mri_min_u64(r->cfg.chunks->samples, slot->count - r->next_first);
    r->next_first += c->count;
    if (r->next_first == slot->count) {
        r->next_first = 0;
        r->next_batch++;
    }
    return c;
}

void mri_ring_on_room(mri_ring *r, void (*woken)(void *context), void *context)
{
    r->outside.on_room = woken;
    r->outside.context = context;
}

static void wait_for_room_locked(mri_ring *r, mri_stage_counter *waits)
{
    const mri_activity reason = !has_room_locked(r) ? MRI_WAIT_ROOM
                                : r->free_chunks    ? MRI_WAIT_INPUT
                                                    : MRI_WAIT_BUFFER;
    mri_range_begin(MRI_RANGE_ROOM, 0);
    wait_locked(r, &r->cond[ROOM], waits, reason);
    mri_range_end();
}

mri_chunk *mri_ring_claim(mri_ring *r, uint32_t reader, bool block, mri_stage_counter *waits, bool *ended)
{
    mri_chunk *c = NULL;
    mri_claim_account account = mri_claim_begin();
    pthread_mutex_lock(&r->lock);
    while (block && !is_over(r) && !r->from_memory && r->next_batch < r->end_batch) {
        if (reader >= r->limits.readers) pthread_cond_wait(&r->cond[LIMITED], &r->lock);
        else if (can_claim_locked(r)) break;
        else {
            mri_claim_wait(&account, has_room_locked(r), r->free_chunks != NULL);
            wait_for_room_locked(r, waits);
        }
    }
    const bool mine = !is_over(r) && !(block && r->from_memory) && reader < r->limits.readers; /* who may not
                                                                                                  wait is the
                                                                                                  consumer,
                                                                                                  and serves
                                                                                                  itself */
    if (mine && can_claim_locked(r)) c = claim_locked(r);
    *ended = is_over(r) || r->from_memory || r->next_batch >= r->end_batch;
    if (!c && !*ended && mine) r->outside.count++;
    pthread_mutex_unlock(&r->lock);
    if (c) {
        c->start_ns = mri_now_ns();
        c->times = mri_claim_end(&account, c->start_ns);
    }
    return c;
}

void mri_ring_read_done(mri_ring *r, mri_chunk *c)
{
    c->times.read_ns = mri_now_ns();
    pthread_mutex_lock(&r->lock);
    c->next = NULL;
    if (r->work.tail) r->work.tail->next = c;
    else r->work.head = c;
    r->work.tail = c;
    r->work.count++;
    mri_batches_account_read(&r->account, &c->times);
    wake_worker_locked(r);
    pthread_mutex_unlock(&r->lock);
}

void mri_ring_serve_from_memory(mri_ring *r)
{
    pthread_mutex_lock(&r->lock);
    r->from_memory = true;
    pthread_cond_broadcast(&r->cond[ROOM]);
    wake_workers_locked(r);
    pthread_cond_broadcast(&r->cond[LIMITED]); /* for readers it ends here */
    pthread_mutex_unlock(&r->lock);
}

/* ------------------------------------------------------------------------------ decoding */

static bool is_full_locked(const mri_ring *r, uint64_t batch)
{
    const mri_slot *slot = slot_of(r, batch);
    return slot->done && slot->batch == batch;
}

/* May a worker that has nothing begin with a chunk of this batch? One is left for the first that is not
 * full. */
static bool may_begin_locked(const mri_ring *r, uint64_t batch)
{
    if (!r->cfg.calls) return true;
    uint64_t first = r->freed;
    while (first < r->next_batch && is_full_locked(r, first)) first++;
    if (batch <= first) return true;
    const uint32_t at_first = slot_of(r, first)->batch == first ? slot_of(r, first)->at_work : 0;
    return r->workers.at_work - at_first + 1 < r->limits.workers;
}

/* The next chunk to decode, and in *before its predecessor (NULL: it is work_head). NULL: this worker may
 * take no chunk. */
static mri_chunk *find_locked(const mri_ring *r, mri_chunk **before)
{
    mri_chunk *found = r->work.head;
    *before = NULL;
    if (!r->cfg.calls || !found) return found;
    for (mri_chunk *c = found; c->next; c = c->next)
        if (c->next->batch < found->batch) *before = c, found = c->next;
    return may_begin_locked(r, found->batch) ? found : NULL;
}

static void take_out_locked(mri_ring *r, mri_chunk *c, mri_chunk *before)
{
    if (before) before->next = c->next;
    else r->work.head = c->next;
    if (r->work.tail == c) r->work.tail = before;
    r->work.count--;
}

/* Does a chunk from memory wait for a worker? */
static bool can_serve_locked(const mri_ring *r)
{
    return r->from_memory && can_claim_locked(r) && may_begin_locked(r, r->next_batch);
}

/* The chunk that a worker begins; NULL: no chunk. */
static mri_chunk *begin_locked(mri_ring *r, bool *located)
{
    mri_chunk *before, *c = find_locked(r, &before);
    *located = c != NULL;
    if (c) take_out_locked(r, c, before);
    else if (can_serve_locked(r)) c = claim_locked(r);
    if (!c || !r->cfg.calls) return c;
    c->slot->at_work++;
    r->workers.at_work++;
    if (r->work.head) wake_worker_locked(r); /* who may have what this one left */
    return c;
}

mri_chunk *mri_ring_take_chunk(mri_ring *r, uint32_t worker, mri_stage_counter *waits, bool *located)
{
    mri_chunk *c = NULL;
    uint64_t sought_ns = 0;
    *located = false;
    pthread_mutex_lock(&r->lock);
    mri_count_fill(waits, r->work.count, r->cfg.chunks->count);
    while (!is_over(r)) {
        if (worker >= r->limits.workers) sought_ns += wait_for_limit_locked(r);
        else if ((c = begin_locked(r, located))) break;
        else sought_ns += rest_locked(r, waits);
    }
    const uint64_t awaited_ns = r->workers.woken ? r->workers.woken_ns : 0;
    const bool tell = take_outside_locked(r);
    pthread_mutex_unlock(&r->lock);
    tell_outside(r, tell);
    if (c && !*located) c->times = (mri_chunk_times){0};
    if (c) c->times.awaited_ns = awaited_ns, c->times.sought_ns = sought_ns;
    return c;
}

mri_slot *mri_ring_return_chunk(mri_ring *r, mri_chunk *c)
{
    mri_slot *slot = c->slot;
    pthread_mutex_lock(&r->lock);
    slot->remaining -= c->count;
    if (r->cfg.calls) slot->at_work--, r->workers.at_work--;
    mri_batches_account_work(&r->account, &c->times.work);
    const bool whole = slot->remaining == 0;
    c->next = r->free_chunks;
    r->free_chunks = c;
    pthread_cond_signal(&r->cond[ROOM]);
    if (r->from_memory && can_claim_locked(r)) wake_worker_locked(r);
    const bool tell = take_outside_locked(r);
    pthread_mutex_unlock(&r->lock);
    tell_outside(r, tell);
    return whole ? slot : NULL;
}

void mri_ring_mark_full(mri_ring *r, mri_slot *slot, const mri_chunk_times *last)
{
    const uint32_t counted = mri_slot_labelled_count(slot); /* all samples are in place: their threads passed
                                                         the lock in return_chunk() */
    pthread_mutex_lock(&r->lock);
    slot->counted = counted;
    slot->done = true;
    mri_batches_account_full(&r->account, slot->batch, last, r->limits.workers);
    pthread_cond_broadcast(&r->cond[FULL]);
    if (r->cfg.calls) wake_worker_locked(r); /* the first batch is another one */
    pthread_mutex_unlock(&r->lock);
}

bool mri_ring_is_full(mri_ring *r, uint64_t batch)
{
    pthread_mutex_lock(&r->lock);
    const bool full = is_full_locked(r, batch);
    pthread_mutex_unlock(&r->lock);
    return full;
}

/* ------------------------------------------------------------------------------ staging */

/* After copied or released moved: give slots back. */
static void free_slots_locked(mri_ring *r)
{
    uint64_t freed = r->released;
    if (r->cfg.device_slots) freed = r->cfg.set->keep_host ? mri_min_u64(r->released, r->copied) : r->copied;
    if (freed <= r->freed) return;
    r->freed = freed;
    pthread_cond_broadcast(&r->cond[ROOM]);
    if (r->cfg.lists) pthread_cond_signal(&r->cond[UNLISTED]);
    if (r->from_memory) wake_workers_locked(r);
}

static uint32_t full_ahead_locked(const mri_ring *r, uint64_t batch)
{
    uint32_t n = 0;
    for (uint64_t b = batch; b < batch + r->slot_count; b++) n += is_full_locked(r, b);
    return n;
}

const mri_slot *mri_ring_slot(const mri_ring *r, uint64_t batch) { return slot_of(r, batch); }

const mri_slot *mri_ring_wait_full(mri_ring *r, uint64_t batch, mri_stage_counter *waits, mri_cpu_time *cpu)
{
    mri_staging_wait wait = mri_staging_wait_begin(&r->account, cpu);
    pthread_mutex_lock(&r->lock);
    mri_count_fill(waits, full_ahead_locked(r, batch), r->slot_count);
    while (!is_over(r) && !is_full_locked(r, batch)) wait_locked(r, &r->cond[FULL], waits, MRI_WAIT_INPUT);
    wait.noticed_ns = mri_now_ns();
    while (!is_over(r) && batch >= r->released + r->cfg.device_slots) {
        mri_range_begin(MRI_RANGE_HOST, batch);
        wait_locked(r, &r->cond[RETURNED], waits, MRI_WAIT_ROOM);
        mri_range_end();
    }
    const mri_slot *slot = is_over(r) ? NULL : slot_of(r, batch);
    wait.room_ns = mri_now_ns();
    pthread_mutex_unlock(&r->lock);
    mri_staging_wait_end(&r->account, cpu, &wait);
    pthread_mutex_lock(&r->lock);
    mri_batches_account_waited(&r->account, batch, &wait);
    pthread_mutex_unlock(&r->lock);
    return slot;
}

void mri_ring_mark_staged(mri_ring *r, uint64_t batch)
{
    pthread_mutex_lock(&r->lock);
    r->staged = batch + 1;
    mri_batches_account_staged(&r->account, batch);
    r->counted[batch % r->cfg.device_slots] = slot_of(r, batch)->counted;
    pthread_cond_broadcast(&r->cond[READY]);
    pthread_mutex_unlock(&r->lock);
}

void mri_ring_mark_copied(mri_ring *r, uint64_t batch, const mri_copy_times *times)
{
    pthread_mutex_lock(&r->lock);
    mri_batches_account_copied(&r->account, batch, times);
    r->copied = batch + 1;
    free_slots_locked(r);
    const bool tell = take_outside_locked(r);
    pthread_mutex_unlock(&r->lock);
    tell_outside(r, tell);
}

/* ------------------------------------------------------------------------------ consuming */

int mri_ring_may_take(mri_ring *r, uint32_t *room)
{
    pthread_mutex_lock(&r->lock);
    *room = r->cfg.device_slots ? r->cfg.device_slots : r->slot_count;
    const bool live = !is_over(r); /* what ended it is said by wait() */
    const int rc = live && r->taken >= r->end_batch          ? MR_EEND
                   : live && r->taken >= r->released + *room ? MR_EBUSY
                                                             : MR_OK;
    pthread_mutex_unlock(&r->lock);
    return rc;
}

/* Free order: any batch that is full comes forward to the next place; the one that was there waits in its
 * place. */
static bool bring_forward_locked(mri_ring *r)
{
    mri_slot **next = &r->slot[r->taken % r->slot_count];
    for (uint64_t b = r->taken; b < r->freed + r->slot_count && b < r->end_batch; b++) {
        mri_slot **at = &r->slot[b % r->slot_count], *whole = *at;
        if (!whole->done) continue;
        *at = *next;
        *next = whole;
        whole->done = false; /* it is not found again */
        return true;
    }
    return false;
}

static bool is_ready_locked(mri_ring *r)
{
    if (r->cfg.device_slots) return r->staged > r->taken;
    if (!r->cfg.free_order) return is_full_locked(r, r->taken);
    if (!r->forward) r->forward = bring_forward_locked(r);
    return r->forward;
}

bool mri_ring_is_ready(mri_ring *r)
{
    pthread_mutex_lock(&r->lock);
    const bool ready = is_over(r) || is_ready_locked(r);
    pthread_mutex_unlock(&r->lock);
    return ready;
}

int mri_ring_wait(mri_ring *r, uint64_t timeout_ns)
{
    const uint64_t start = mri_now_ns();
    const uint64_t end = timeout_ns > UINT64_MAX - start ? UINT64_MAX : start + timeout_ns;
    const struct timespec until = {.tv_sec = (time_t)(end / 1000000000u),
                                   .tv_nsec = (long)(end % 1000000000u)};
    pthread_cond_t *cond = r->cfg.device_slots ? &r->cond[READY] : &r->cond[FULL];
    int rc = MR_OK;
    pthread_mutex_lock(&r->lock);
    while (!is_over(r) && rc == MR_OK && !is_ready_locked(r)) {
        if (timeout_ns == MR_FOREVER) pthread_cond_wait(cond, &r->lock);
        else if (timeout_ns == 0 || pthread_cond_timedwait(cond, &r->lock, &until) == ETIMEDOUT)
            rc = MR_EAGAIN;
    }
    if (is_over(r)) rc = MR_ECANCELED;
    pthread_mutex_unlock(&r->lock);
    return rc;
}

uint64_t mri_ring_next(const mri_ring *r) { return r->taken; }

void mri_ring_take(mri_ring *r, mri_ring_batch *out)
{
    pthread_mutex_lock(&r->lock);
    mri_slot *slot = slot_of(r, r->taken);
    *out = (mri_ring_batch){
        .place = r->taken, .batch = r->cfg.free_order ? slot->batch : r->taken, .slot = slot};
    out->counted = r->cfg.device_slots ? r->counted[r->taken % r->cfg.device_slots] : slot->counted;
    r->taken++;
    r->forward = false;
    pthread_mutex_unlock(&r->lock);
}

bool mri_ring_is_ahead(mri_ring *r)
{
    pthread_mutex_lock(&r->lock);
    const bool ahead = r->staged > r->taken || full_ahead_locked(r, r->taken) > 0;
    pthread_mutex_unlock(&r->lock);
    return ahead;
}

bool mri_ring_may_release(mri_ring *r, uint64_t place)
{
    pthread_mutex_lock(&r->lock);
    const bool may = place == r->released && r->released < r->taken;
    pthread_mutex_unlock(&r->lock);
    return may;
}

static void release_locked(mri_ring *r)
{
    r->released++;
    free_slots_locked(r);
    pthread_cond_broadcast(&r->cond[RETURNED]);
}

void mri_ring_release(mri_ring *r)
{
    pthread_mutex_lock(&r->lock);
    release_locked(r);
    const bool tell = take_outside_locked(r);
    pthread_mutex_unlock(&r->lock);
    tell_outside(r, tell);
}

mri_slot *mri_ring_release_kept(mri_ring *r, mri_slot *instead)
{
    pthread_mutex_lock(&r->lock);
    mri_slot **at = &r->slot[r->released % r->slot_count], *kept = *at;
    *at = instead;
    release_locked(r);
    const bool tell = take_outside_locked(r);
    pthread_mutex_unlock(&r->lock);
    tell_outside(r, tell);
    return kept;
}

int mri_ring_seek(mri_ring *r, uint64_t batch)
{
    pthread_mutex_lock(&r->lock);
    const bool idle = r->taken == r->released && r->next_batch == r->taken && r->next_first == 0;
    for (uint32_t i = 0; idle && i < r->slot_count; i++) r->slot[i]->done = false;
    if (idle) r->next_batch = r->freed = r->staged = r->copied = r->taken = r->released = batch;
    pthread_mutex_unlock(&r->lock);
    return idle ? MR_OK : MR_EBUSY;
}
