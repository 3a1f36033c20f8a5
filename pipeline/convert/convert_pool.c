/* pipeline/convert/convert_pool.c: workers over a bounded window of chunks, handed out in source order. See
 * convert.h.
 *
 * A chunk is a run of neighbouring samples, so that small pictures do not cost a lock and a wake-up each. The
 * slots of the window form a ring; chunk c lives in slot c % SLOTS:
 *
 *      free ──(worker takes the next chunk)──► busy ──► done ──(calling thread, in order)──► free
 *
 * Three things bound memory: the ring, what pictures being converted may take together (budget/budget.h), and
 * the bytes of finished chunks that wait for an earlier one. A worker that finds more than pending_most
 * waiting takes a new chunk only if that is the one the calling thread needs next. */
#include "pipeline/convert/convert_pool.h"

#include "base/util.h"

enum { CHUNK_MOST = 64 };
#define CHUNK_BYTES       ((uint64_t)1 << 20)
#define MAX_PENDING_BYTES ((uint64_t)256 << 20)
#define STOP_POLL_NS      100000000u /* a signal handler can set *stop but not wake a thread */

typedef struct chunk {
    uint64_t number; /* pool lock */
    bool done;       /* pool lock */
    uint64_t bytes;  /* what its items hold; pool lock */
    uint32_t count;
    mri_convert_item *items; /* worker's while busy, calling thread's when done */
} chunk;

typedef struct worker {
    mri_convert_pool *pool;
    mri_convert_desk desk;
    pthread_t thread;
} worker;

struct mri_convert_pool {
    const mri_convert_plan *plan;
    uint64_t first, end; /* samples */
    uint32_t chunk_samples, slots;
    mr_budget *budget;     /* of samples being converted */
    uint64_t pending_most; /* bytes of what waits to be written */
    chunk *ring;
    worker *workers;
    uint32_t worker_count; /* whose threads run */
    uint32_t item_at;      /* calling thread: place in the oldest chunk */

    pthread_mutex_t lock;
    pthread_cond_t changed_done; /* for the calling thread */
    pthread_cond_t changed_room; /* for workers */
    uint64_t taken;              /* chunks given to workers; lock */
    uint64_t written;            /* chunks given back by the calling thread; lock */
    uint64_t pending_bytes;      /* of done chunks; lock */
    bool closed;                 /* lock */
};

static uint64_t chunk_count(const mri_convert_pool *p)
{
    return (p->end - p->first + p->chunk_samples - 1) / p->chunk_samples;
}

static bool may_take_locked(const mri_convert_pool *p)
{
    if (p->taken >= chunk_count(p)) return false;
    if (p->taken - p->written >= p->slots) return false;
    return p->pending_bytes <= p->pending_most || p->taken == p->written;
}

static bool take_chunk(mri_convert_pool *p, chunk **out)
{
    pthread_mutex_lock(&p->lock);
    while (!p->closed && p->taken < chunk_count(p) && !may_take_locked(p))
        pthread_cond_wait(&p->changed_room, &p->lock);
    const bool got = !p->closed && p->taken < chunk_count(p);
    if (got) {
        chunk *c = &p->ring[p->taken % p->slots];
        c->number = p->taken++;
        c->done = false;
        *out = c;
    }
    pthread_mutex_unlock(&p->lock);
    return got;
}

static void run_chunk(mri_convert_pool *p, mri_convert_desk *desk, chunk *c)
{
    const uint64_t start = p->first + c->number * p->chunk_samples;
    const uint64_t left = p->end - start;
    uint64_t bytes = 0;
    c->count = left < p->chunk_samples ? (uint32_t)left : p->chunk_samples;
    mri_seat_work(&desk->seat);
    for (uint32_t i = 0; i < c->count; i++) {
        c->items[i].source_index = start + i;
        mri_seat_yield(&desk->seat);
        mri_convert_sample(p->plan, desk, &c->items[i]);
        bytes += c->items[i].buffer_bytes + c->items[i].made_bytes + c->items[i].entries_bytes +
                 c->items[i].companion_bytes;
    }
    mri_seat_rest(&desk->seat);
    pthread_mutex_lock(&p->lock);
    c->done = true;
    c->bytes = bytes;
    p->pending_bytes += bytes;
    if (c->number == p->written) pthread_cond_signal(&p->changed_done);
    pthread_mutex_unlock(&p->lock);
}

static void *worker_main(void *arg)
{
    worker *w = arg;
    chunk *c;
    while (take_chunk(w->pool, &c)) run_chunk(w->pool, &w->desk, c);
    return NULL;
}

static void free_ring(mri_convert_pool *p)
{
    for (uint32_t s = 0; p->ring && s < p->slots; s++) {
        for (uint32_t i = 0; p->ring[s].items && i < p->chunk_samples; i++)
            mri_convert_item_fini(&p->ring[s].items[i]);
        free(p->ring[s].items);
    }
    free(p->ring);
}

static int make_ring(mri_convert_pool *p)
{
    p->ring = calloc(p->slots, sizeof *p->ring);
    if (!p->ring) return MR_ENOMEM;
    for (uint32_t s = 0; s < p->slots; s++) {
        p->ring[s].items = calloc(p->chunk_samples, sizeof *p->ring[s].items);
        if (!p->ring[s].items) return MR_ENOMEM;
    }
    return MR_OK;
}

/* Decoded pictures can be a thousand times their file's size: they go one by one. */
static uint32_t choose_chunk_samples(const mri_convert_plan *plan)
{
    if (plan->cfg.store == MR_STORE_RAW) return 1;
    const uint64_t each = mri_max_u64(plan->info->max_extent_bytes, 1);
    return (uint32_t)mri_max_u64(1, mri_min_u64(CHUNK_MOST, CHUNK_BYTES / each));
}

static int start_threads(mri_convert_pool *p, uint32_t workers)
{
    p->workers = calloc(workers, sizeof *p->workers);
    if (!p->workers) return MR_ENOMEM;
    for (; p->worker_count < workers; p->worker_count++) {
        worker *w = &p->workers[p->worker_count];
        w->pool = p;
        mri_convert_desk_init(&w->desk, p->budget);
        const int rc = mri_thread_start(&w->thread, "mr-convert", worker_main, w);
        if (rc == MR_OK) continue;
        mri_convert_desk_fini(&w->desk);
        return rc;
    }
    return MR_OK;
}

int mri_convert_pool_start(mri_convert_pool **out, const mri_convert_plan *plan, uint64_t first,
                           mr_error *err)
{
    *out = NULL;
    mri_convert_pool *p = calloc(1, sizeof *p);
    if (!p) return mr_error_set(err, MR_ENOMEM, "out of memory for the conversion's workers");
    const uint32_t workers = plan->cfg.workers ? plan->cfg.workers : mri_core_count();
    p->plan = plan;
    p->first = first;
    p->end = plan->info->count;
    p->chunk_samples = choose_chunk_samples(plan);
    p->slots = workers * 4 + 4;
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed_done, &monotonic);
    pthread_cond_init(&p->changed_room, NULL);
    pthread_condattr_destroy(&monotonic);

    const uint64_t memory = plan->cfg.memory_bytes ? plan->cfg.memory_bytes : mri_memory_limit_bytes() / 2;
    p->pending_most = mri_min_u64(MAX_PENDING_BYTES, memory / 4);
    int rc = mr_budget_create(&p->budget, memory - p->pending_most);
    if (rc == MR_OK) rc = make_ring(p);
    if (rc == MR_OK) rc = start_threads(p, workers);
    if (rc) {
        mri_convert_pool_stop(p);
        return mr_error_set(err, rc, "no memory or threads for %u conversion workers; lower their number",
                            workers);
    }
    *out = p;
    return MR_OK;
}

static bool is_stopped(const mri_convert_pool *p) { return mri_is_stopped(p->plan->cfg.stop); }

/* Wait until the oldest chunk is done. */
static int wait_oldest(mri_convert_pool *p, chunk **out)
{
    int rc = MR_OK;
    pthread_mutex_lock(&p->lock);
    chunk *c = &p->ring[p->written % p->slots];
    if (p->written >= chunk_count(p)) rc = MR_EEND;
    while (rc == MR_OK && !(p->taken > p->written && c->done)) {
        const uint64_t until = mri_now_ns() + STOP_POLL_NS;
        struct timespec t = {(time_t)(until / 1000000000u), (long)(until % 1000000000u)};
        pthread_cond_timedwait(&p->changed_done, &p->lock, &t);
        if (is_stopped(p)) rc = MR_ECANCELED;
    }
    pthread_mutex_unlock(&p->lock);
    *out = c;
    return rc;
}

static void give_back(mri_convert_pool *p, chunk *c)
{
    for (uint32_t i = 0; i < c->count; i++) mri_convert_item_clear(&c->items[i]);
    pthread_mutex_lock(&p->lock);
    p->pending_bytes -= c->bytes;
    p->written++;
    pthread_cond_broadcast(&p->changed_room);
    pthread_mutex_unlock(&p->lock);
}

int mri_convert_pool_next(mri_convert_pool *p, mri_convert_item **out)
{
    if (is_stopped(p)) return MR_ECANCELED;
    /* only this thread changes written, so it may read it here */
    chunk *c = &p->ring[p->written % p->slots];
    if (p->item_at > 0 && p->item_at == c->count) {
        give_back(p, c);
        p->item_at = 0;
    }
    if (p->item_at == 0) {
        const int rc = wait_oldest(p, &c);
        if (rc) return rc;
    }
    *out = &c->items[p->item_at++];
    return MR_OK;
}

void mri_convert_pool_stop(mri_convert_pool *p)
{
    if (!p) return;
    pthread_mutex_lock(&p->lock);
    p->closed = true;
    pthread_cond_broadcast(&p->changed_room);
    pthread_mutex_unlock(&p->lock);
    for (uint32_t t = 0; t < p->worker_count; t++) {
        pthread_join(p->workers[t].thread, NULL);
        mri_convert_desk_fini(&p->workers[t].desk);
    }
    free(p->workers);
    free_ring(p);
    mr_budget_destroy(p->budget);
    pthread_cond_destroy(&p->changed_done);
    pthread_cond_destroy(&p->changed_room);
    pthread_mutex_destroy(&p->lock);
    free(p);
}
