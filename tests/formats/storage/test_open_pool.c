/* Open pools: a bound that holds with many threads; files in use stay open; callers that do not insist get
 * MR_EAGAIN at the bound. */
#include "formats/storage/open_pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/util.h"
#include "mrt.h"

enum { COUNT = 200, MOST = 10, THREADS = 6 };

typedef struct thing {
    uint32_t number;
    int users; /* atomic */
} thing;

static int open_now, most_open, fail_at, fail_errno; /* atomic */

static int open_thing(void *context, uint32_t number, void **object, mr_error *err)
{
    (void)context;
    if (__atomic_load_n(&fail_at, __ATOMIC_RELAXED) > 0 &&
        __atomic_sub_fetch(&fail_at, 1, __ATOMIC_RELAXED) == 0)
        return mr_error_sys(err, fail_errno, "cannot open");
    thing *t = calloc(1, sizeof *t);
    if (!t) return mr_error_set(err, MR_ENOMEM, "no memory");
    t->number = number;
    const int now = __atomic_add_fetch(&open_now, 1, __ATOMIC_RELAXED);
    int most = __atomic_load_n(&most_open, __ATOMIC_RELAXED);
    while (now > most &&
           !__atomic_compare_exchange_n(&most_open, &most, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    *object = t;
    return MR_OK;
}

static void close_thing(void *object)
{
    thing *t = object;
    MRT_EQ(__atomic_load_n(&t->users, __ATOMIC_RELAXED), 0);
    __atomic_sub_fetch(&open_now, 1, __ATOMIC_RELAXED);
    free(t);
}

static mri_open_pool *make(uint32_t most)
{
    static const mri_open_ops ops = {open_thing, close_thing, NULL};
    mri_open_pool *p;
    mr_error err = MR_ERROR_INIT;
    open_now = most_open = fail_at = 0;
    MRT_OK(mri_open_pool_create(&p, COUNT, most, &ops, &err), &err);
    return p;
}

static void *use_it(void *context)
{
    mri_open_pool *p = context;
    static uint64_t next; /* atomic */
    for (int k = 0; k < 3000; k++) {
        const uint32_t number = (uint32_t)(mri_mix64(__atomic_add_fetch(&next, 1, __ATOMIC_RELAXED)) % COUNT);
        void *object;
        const int rc = mri_open_pool_acquire(p, number, k % 3 == 0, &object, NULL);
        if (rc == MR_EAGAIN) continue;
        MRT_EQ(rc, MR_OK);
        thing *t = object;
        __atomic_add_fetch(&t->users, 1, __ATOMIC_RELAXED);
        MRT_EQ(t->number, number);
        __atomic_sub_fetch(&t->users, 1, __ATOMIC_RELAXED);
        mri_open_pool_release(p, number);
    }
    return NULL;
}

static void many_threads(void **state)
{
    (void)state;
    mri_open_pool *p = make(mri_open_allow(MOST));
    pthread_t thread[THREADS];
    for (int k = 0; k < THREADS; k++) MRT_EQ(pthread_create(&thread[k], NULL, use_it, p), 0);
    for (int k = 0; k < THREADS; k++) pthread_join(thread[k], NULL);
    uint32_t peak;
    MRT_TRUE(mri_open_pool_open(p, &peak) <= MOST);
    MRT_TRUE(peak <= MOST + THREADS);
    MRT_TRUE(most_open <= MOST + 2 * THREADS); /* one being closed while its successor is opened */
    mri_open_pool_destroy(p);
    MRT_EQ(open_now, 0);
}

static void the_one_used_longest_ago_goes(void **state)
{
    (void)state;
    mri_open_pool *p = make(mri_open_allow(3));
    void *object, *held;
    mr_error err = MR_ERROR_INIT;
    for (uint32_t k = 0; k < 3; k++) {
        MRT_OK(mri_open_pool_acquire(p, k, false, &object, NULL), NULL);
        mri_open_pool_release(p, k);
    }
    MRT_OK(mri_open_pool_acquire(p, 0, false, &held, NULL), NULL); /* so 1 is the oldest */
    MRT_OK(mri_open_pool_acquire(p, 3, false, &object, NULL), NULL);
    MRT_OK(mri_open_pool_acquire(p, 4, false, &object, NULL), NULL);
    MRT_EQ(mri_open_pool_acquire(p, 5, false, &object, NULL), MR_EAGAIN);
    MRT_OK(mri_open_pool_acquire(p, 5, true, &object, NULL), NULL); /* over the bound */
    MRT_EQ(mri_open_pool_open(p, NULL), 4);
    mri_open_pool_release(p, 5);
    MRT_EQ(mri_open_pool_open(p, NULL), 3);
    mri_open_pool_release(p, 3);
    mri_open_pool_release(p, 4);
    fail_errno = EMFILE;
    fail_at = 1; /* idle ones are closed, and it is tried again */
    MRT_OK(mri_open_pool_acquire(p, 6, true, &object, &err), &err);
    MRT_EQ(mri_open_pool_open(p, NULL), 2); /* 0, which is in use, and 6 */
    MRT_TRUE(((thing *)held)->number == 0);
    fail_errno = ENOENT;
    fail_at = 1;
    MRT_EQ(mri_open_pool_acquire(p, 7, true, &object, &err), MR_ENOENT);
    MRT_EQ(mri_open_pool_open(p, NULL), 2);
    mri_open_pool_release(p, 6);
    mri_open_pool_release(p, 0);
    mri_open_pool_destroy(p);
    MRT_EQ(open_now, 0);
}

/* What another pool has idle is closed when there are no descriptors left. */
static void idle_ones_of_others_go(void **state)
{
    (void)state;
    mri_open_pool *full = make(mri_open_allow(4)), *other = make(mri_open_allow(4));
    void *object, *held;
    mr_error err = MR_ERROR_INIT;
    for (uint32_t k = 0; k < 4; k++) {
        MRT_OK(mri_open_pool_acquire(full, k, false, &object, NULL), NULL);
        if (k > 0) mri_open_pool_release(full, k);
        else held = object;
    }
    fail_errno = EMFILE;
    fail_at = 1;
    MRT_OK(mri_open_pool_acquire(other, 9, true, &object, &err), &err);
    MRT_EQ(mri_open_pool_open(full, NULL), 1); /* the one in use */
    MRT_EQ(((thing *)held)->number, 0);
    mri_open_pool_release(full, 0);
    mri_open_pool_destroy(full);
    mri_open_pool_release(other, 9);
    fail_at = 1; /* it is not asked any more */
    MRT_OK(mri_open_pool_acquire(other, 8, true, &object, &err), &err);
    mri_open_pool_release(other, 8);
    mri_open_pool_destroy(other);
    MRT_EQ(open_now, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_threads),
        cmocka_unit_test(the_one_used_longest_ago_goes),
        cmocka_unit_test(idle_ones_of_others_go),
    };
    return mrt_run(tests);
}
