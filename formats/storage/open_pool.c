/* formats/storage/open_pool.c: see open_pool.h. */
#include "formats/storage/open_pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/util.h"

enum {
    LEAST = 2,
    MOST = 4096, /* no more even where a process may have a million: each holds an inode in the kernel */
};

typedef struct node {
    void *object;
    uint32_t number, users;
    struct node *newer, *older; /* among the idle ones */
} node;

struct mri_open_pool {
    mri_open_ops ops;
    uint32_t count, most;
    pthread_mutex_t lock;
    node **of;             /* lock; by number */
    node *newest, *oldest; /* lock; idle */
    uint32_t open, peak;   /* lock */
    mri_open_pool *next;   /* pools_lock */
};

/* All pools of the process: a pool that is refused a descriptor closes idle objects of the others. */
static pthread_mutex_t pools_lock = PTHREAD_MUTEX_INITIALIZER;
static mri_open_pool *pools;

/* ---- how many ---- */
static uint32_t allowed_now; /* atomic: given out to all pools */

uint32_t mri_open_allow(uint32_t wanted)
{
    struct rlimit limit = {0, 0};
    getrlimit(RLIMIT_NOFILE, &limit);
    /* the rest is for devices, rings, outputs, and samples that are files of their own */
    const uint64_t all = mri_min_u64(limit.rlim_cur / 8 * 5, MOST);
    uint32_t given = __atomic_load_n(&allowed_now, __ATOMIC_RELAXED), mine;
    do {
        const uint64_t left = all > given ? all - given : 0;
        mine = wanted <= left ? wanted : (uint32_t)mri_max_u64(left / 2, LEAST);
    } while (!__atomic_compare_exchange_n(&allowed_now, &given, given + mine, false, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    return mine;
}

void mri_open_give_back(uint32_t allowed) { __atomic_sub_fetch(&allowed_now, allowed, __ATOMIC_RELAXED); }

/* ---- the pool ---- */
uint64_t mri_open_pool_memory(uint32_t count, uint32_t most)
{
    return sizeof(mri_open_pool) + count * sizeof(node *) + most * sizeof(node);
}

int mri_open_pool_create(mri_open_pool **out, uint32_t count, uint32_t most, const mri_open_ops *ops,
                         mr_error *err)
{
    mri_open_pool *p = calloc(1, sizeof *p);
    *out = NULL;
    if (p) p->of = calloc(count ? count : 1, sizeof *p->of);
    if (!p || !p->of || pthread_mutex_init(&p->lock, NULL) != 0) {
        if (p) free(p->of);
        free(p);
        mri_open_give_back(most);
        return mr_error_set(err, MR_ENOMEM, "no memory for a list of %u open files", count);
    }
    p->ops = *ops;
    p->count = count;
    p->most = most;
    mri_lock_global(&pools_lock);
    p->next = pools;
    pools = p;
    pthread_mutex_unlock(&pools_lock);
    *out = p;
    return MR_OK;
}

static void close_node(mri_open_pool *p, node *n)
{
    p->ops.close(n->object);
    free(n);
}

void mri_open_pool_destroy(mri_open_pool *p)
{
    if (!p) return;
    mri_lock_global(&pools_lock);
    mri_open_pool **at = &pools;
    while (*at != p) at = &(*at)->next;
    *at = p->next;
    pthread_mutex_unlock(&pools_lock);
    for (uint32_t k = 0; k < p->count; k++)
        if (p->of[k]) close_node(p, p->of[k]);
    mri_open_give_back(p->most);
    pthread_mutex_destroy(&p->lock);
    free(p->of);
    free(p);
}

static void take_from_idle_locked(mri_open_pool *p, node *n)
{
    if (n->newer) n->newer->older = n->older;
    else p->newest = n->older;
    if (n->older) n->older->newer = n->newer;
    else p->oldest = n->newer;
    n->newer = n->older = NULL;
}

static void put_to_idle_locked(mri_open_pool *p, node *n)
{
    n->older = p->newest;
    n->newer = NULL;
    if (p->newest) p->newest->newer = n;
    else p->oldest = n;
    p->newest = n;
}

/* The idle one used longest ago, out of the table; NULL: none is idle. */
static node *forget_oldest_locked(mri_open_pool *p)
{
    node *n = p->oldest;
    if (!n) return NULL;
    take_from_idle_locked(p, n);
    p->of[n->number] = NULL;
    p->open--;
    return n;
}

/* It is open already: *object. */
static bool find_locked(mri_open_pool *p, uint32_t number, void **object)
{
    node *n = p->of[number];
    if (!n) return false;
    if (n->users++ == 0) take_from_idle_locked(p, n);
    *object = n->object;
    return true;
}

/* Half of what each pool may have, as far as it is idle. Pools stay while this goes on. */
static void close_idle(void)
{
    mri_lock_global(&pools_lock);
    for (mri_open_pool *p = pools; p; p = p->next)
        for (uint32_t k = 0; k <= p->most / 2; k++) {
            pthread_mutex_lock(&p->lock);
            node *n = forget_oldest_locked(p);
            pthread_mutex_unlock(&p->lock);
            if (!n) break;
            close_node(p, n);
        }
    pthread_mutex_unlock(&pools_lock);
}

static int open_one(mri_open_pool *p, uint32_t number, void **object, mr_error *err)
{
    mr_error why = MR_ERROR_INIT;
    int rc = p->ops.open(p->ops.context, number, object, &why);
    if (rc && (why.sys_errno == EMFILE || why.sys_errno == ENFILE)) { /* others took the descriptors planned
                                                                         for this pool */
        close_idle();
        why = (mr_error)MR_ERROR_INIT;
        rc = p->ops.open(p->ops.context, number, object, &why);
    }
    if (rc && err) *err = why;
    return rc;
}

int mri_open_pool_acquire(mri_open_pool *p, uint32_t number, bool must, void **object, mr_error *err)
{
    node *victim = NULL;
    pthread_mutex_lock(&p->lock);
    bool found = find_locked(p, number, object);
    const bool full = p->open >= p->most;
    if (!found && full) victim = forget_oldest_locked(p);
    const bool refused = !found && full && !victim && !must;
    if (!found && !refused) p->open++; /* ours, from now on */
    if (p->open > p->peak) p->peak = p->open;
    pthread_mutex_unlock(&p->lock);
    if (found) return MR_OK;
    if (refused) return MR_EAGAIN;
    if (victim) close_node(p, victim);
    node *mine = calloc(1, sizeof *mine);
    int rc = mine ? open_one(p, number, &mine->object, err)
                  : mr_error_set(err, MR_ENOMEM, "no memory to open a file");
    pthread_mutex_lock(&p->lock);
    found = !rc && find_locked(p, number, object); /* another thread was faster */
    if (rc || found) {
        p->open--;
    } else {
        mine->number = number;
        mine->users = 1;
        p->of[number] = mine;
        *object = mine->object;
    }
    pthread_mutex_unlock(&p->lock);
    if (found) close_node(p, mine);
    else if (rc) free(mine);
    return rc;
}

void mri_open_pool_release(mri_open_pool *p, uint32_t number)
{
    pthread_mutex_lock(&p->lock);
    node *n = p->of[number];
    const bool over = p->open > p->most;
    if (--n->users > 0) {
        n = NULL;
    } else if (over) {
        p->of[number] = NULL;
        p->open--;
    } else {
        put_to_idle_locked(p, n);
        n = NULL;
    }
    pthread_mutex_unlock(&p->lock);
    if (n) close_node(p, n);
}

uint32_t mri_open_pool_open(mri_open_pool *p, uint32_t *most)
{
    pthread_mutex_lock(&p->lock);
    const uint32_t open = p->open;
    if (most) *most = p->peak;
    pthread_mutex_unlock(&p->lock);
    return open;
}
