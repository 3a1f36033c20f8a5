/* pipeline/budget/budget.c: see budget.h. One lock, one condition: waits are few, and those who wait are
 * large. */
#include "pipeline/budget/budget.h"

#include <errno.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

struct mr_budget {
    uint32_t process; /* that opened it (base/handle.h) */
    uint64_t total;   /* fixed */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t reserved, lent; /* lock, like the rest */
    mri_seat *seats;         /* all */
    mri_seat *first, *last;  /* in line */
    uint32_t waiting;        /* atomic: how many are in line */
};

int mr_budget_create(mr_budget **out, uint64_t bytes)
{
    MRI_GIVEN(NULL, out);
    mr_budget *b = *out = calloc(1, sizeof *b);
    if (!b) return MR_ENOMEM;
    b->process = mri_process();
    b->total = bytes ? bytes : mri_memory_limit_bytes() / 2;
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->changed, NULL);
    return MR_OK;
}

void mr_budget_destroy(mr_budget *b)
{
    if (!MRI_IS_OWN(b)) return;
    pthread_cond_destroy(&b->changed);
    pthread_mutex_destroy(&b->lock);
    free(b);
}

bool mri_budget_is_own(const mr_budget *b) { return MRI_IS_OWN(b); }

uint64_t mri_budget_left(mr_budget *b)
{
    pthread_mutex_lock(&b->lock);
    const uint64_t left = b->total - b->reserved;
    pthread_mutex_unlock(&b->lock);
    return left;
}

void mri_budget_wake(void *budget)
{
    mr_budget *b = budget;
    pthread_mutex_lock(&b->lock);
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
}

/* ------------------------------------------------------------------------------ seats */

void mri_seat_add(mri_seat *s, mr_budget *b, void (*drop)(void *context), void *context, const bool *over)
{
    *s = (mri_seat){.budget = b, .drop = drop, .context = context, .over = over};
    pthread_mutex_lock(&b->lock);
    s->next = b->seats;
    b->seats = s;
    pthread_mutex_unlock(&b->lock);
}

void mri_seat_remove(mri_seat *s)
{
    mr_budget *b = s->budget;
    if (!b) return;
    pthread_mutex_lock(&b->lock);
    mri_seat **at = &b->seats;
    while (*at != s) at = &(*at)->next;
    *at = s->next;
    b->lent -= s->lent;
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
    *s = (mri_seat){0};
}

/* Return freed memory to the system: in the allocator it would count in no account. */
static void drop(const mri_seat *s)
{
    if (!s->drop) return;
    s->drop(s->context);
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

/* From seats that rest, until so much is left; nothing where they have too little. */
static bool collect_locked(mr_budget *b, uint64_t want)
{
    uint64_t left = b->total - b->reserved - b->lent, resting = 0;
    for (const mri_seat *s = b->seats; s && left < want; s = s->next) resting += s->busy ? 0 : s->lent;
    if (left + resting < want) return false;
    for (mri_seat *s = b->seats; s && left < want; s = s->next) {
        if (s->busy || !s->lent) continue;
        drop(s);
        b->lent -= s->lent;
        left += s->lent;
        s->lent = 0;
    }
    return true;
}

static bool borrow_locked(mr_budget *b, mri_seat *s, uint64_t bytes)
{
    s->busy = true; /* else it would be collected from, too */
    if (bytes > b->total - b->reserved || !collect_locked(b, bytes - s->lent)) return false;
    b->lent += bytes - s->lent;
    s->lent = bytes;
    return true;
}

static void join_line_locked(mr_budget *b, mri_seat *s)
{
    s->behind = NULL;
    if (b->last) b->last->behind = s;
    else b->first = s;
    b->last = s;
    __atomic_fetch_add(&b->waiting, 1, __ATOMIC_RELAXED);
}

static void leave_line_locked(mr_budget *b, mri_seat *s)
{
    mri_seat *before = NULL, **at = &b->first;
    while (*at != s) {
        before = *at;
        at = &before->behind;
    }
    *at = s->behind;
    if (b->last == s) b->last = before;
    __atomic_fetch_sub(&b->waiting, 1, __ATOMIC_RELAXED);
    pthread_cond_broadcast(&b->changed); /* the next one is first */
}

static bool is_over(const mri_seat *s) { return s->over && __atomic_load_n(s->over, __ATOMIC_ACQUIRE); }

/* Nothing is borrowed by it now. */
static int wait_in_line(mr_budget *b, mri_seat *s, uint64_t bytes)
{
    int rc = MR_EAGAIN;
    pthread_mutex_lock(&b->lock);
    join_line_locked(b, s);
    while (rc == MR_EAGAIN) {
        if (is_over(s)) rc = MR_ECANCELED;
        else if (bytes > b->total - b->reserved) rc = MR_ELIMIT;
        else if (b->first == s && borrow_locked(b, s, bytes)) rc = MR_OK;
        else pthread_cond_wait(&b->changed, &b->lock);
    }
    leave_line_locked(b, s);
    pthread_mutex_unlock(&b->lock);
    return rc;
}

/* Its owner's: all that it has borrowed. */
static void give_back(mri_seat *s)
{
    mr_budget *b = s->budget;
    drop(s);
    pthread_mutex_lock(&b->lock);
    b->lent -= s->lent;
    s->lent = 0;
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
    s->grown = false;
}

int mri_seat_need(mri_seat *s, uint64_t together, uint64_t alone)
{
    mr_budget *b = s->budget;
    s->kept = true;
    if (together == 0 || (s->grown && together <= s->lent)) return MR_OK;
    pthread_mutex_lock(&b->lock);
    const bool got = !b->first && borrow_locked(b, s, together);
    pthread_mutex_unlock(&b->lock);
    if (got) {
        s->grown = true;
        return MR_OK;
    }
    if (s->grown) give_back(s);
    s->kept = false;
    const int rc = wait_in_line(b, s, alone);
    s->grown = rc == MR_OK;
    return rc;
}

void mri_seat_work(mri_seat *s)
{
    if (!s->grown) return;
    pthread_mutex_lock(&s->budget->lock);
    s->busy = true;
    s->grown = s->lent > 0;
    pthread_mutex_unlock(&s->budget->lock);
}

void mri_seat_yield(mri_seat *s)
{
    if (s->grown && __atomic_load_n(&s->budget->waiting, __ATOMIC_RELAXED)) give_back(s);
}

void mri_seat_rest(mri_seat *s)
{
    if (!s->grown) return;
    pthread_mutex_lock(&s->budget->lock);
    s->busy = false;
    if (s->budget->first) pthread_cond_broadcast(&s->budget->changed);
    pthread_mutex_unlock(&s->budget->lock);
}

int mri_seat_error(const mri_seat *s, int rc, uint32_t w, uint32_t h, uint64_t bytes, uint64_t own,
                   const char *advice, mr_error *err)
{
    const double mib = 1048576;
    if (rc == MR_OK) return MR_OK;
    if (rc != MR_ELIMIT) return mr_error_set(err, rc, "stopped");
    mr_error_set(err, rc,
                 "decoding this picture of %u x %u may take %.1f MiB, and of the memory budget of %.1f MiB "
                 "%.1f are left for one picture: raise --memory, %sor refuse such pictures with --max-pixels",
                 w, h, (double)bytes / mib, (double)s->budget->total / mib,
                 (double)(mri_budget_left(s->budget) + own) / mib, advice);
    if (err) err->sys_errno = ENOMEM;
    return rc;
}

/* ------------------------------------------------------------------------------ reserving */

int mri_budget_reserve(mr_budget *b, uint64_t bytes)
{
    mri_seat s = {.budget = b};
    const int rc = mri_seat_need(&s, bytes, bytes); /* in line, behind pictures */
    if (rc != MR_OK || bytes == 0) return rc;
    pthread_mutex_lock(&b->lock);
    b->lent -= bytes;
    b->reserved += bytes;
    pthread_cond_broadcast(&b->changed); /* some in line may never fit now */
    pthread_mutex_unlock(&b->lock);
    return MR_OK;
}

void mri_budget_return(mr_budget *b, uint64_t bytes)
{
    pthread_mutex_lock(&b->lock);
    b->reserved -= bytes;
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
}
