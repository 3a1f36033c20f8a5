/* A cache on disk that several threads or processes use at once. Each test stops one of them between two
 * steps, and lets the others go on: the library's system calls lead here. */
#include <pthread.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/util.h"
#include "mrt.h"
#include "pipeline/cache/cache.h"

enum { THREADS = 8, VALUE = 8, ENTRY = 72 + VALUE, HEADER = 64, RECORD = 32 };

static uint64_t same_bound(uint64_t bytes) { return bytes; }

static int same_bytes(void *maker, const mr_value *in, mr_value *out)
{
    (void)maker;
    *out = *in;
    return MR_OK;
}

static const mri_cache_form form = {.name = "same", .bound = same_bound, .make = same_bytes};

static const char *file_named(const char *suffix)
{
    return mrt_path("cache/%016x-same.mrcache%s", 7, suffix);
}

static uint64_t size_of(const char *path)
{
    struct stat st;
    MRT_EQ(stat(path, &st), 0);
    return (uint64_t)st.st_size;
}

static mri_cache *open_cache(uint64_t budget_bytes)
{
    const mri_cache_config cfg = {.count = 100,
                                  .stamp = 7,
                                  .form = &form,
                                  .folder = mrt_path("cache"),
                                  .budget_bytes = budget_bytes,
                                  .value_bytes_most = VALUE};
    mri_cache *c;
    mr_error err = MR_ERROR_INIT;
    MRT_OK(mri_cache_open(&c, &cfg, &err), &err);
    return c;
}

static void offer(mri_cache *c, uint64_t sample)
{
    static const uint8_t bytes[VALUE];
    const mr_value v = {.type = MR_TYPE_JPEG, .data = bytes, .bytes = sizeof bytes};
    mri_cache_offer(c, sample, &v, 1, NULL);
}

static void remove_files(void)
{
    MRT_EQ(unlink(file_named("")), 0);
    MRT_EQ(unlink(file_named(".index")), 0);
}

/* ------------------------------------------------------------------------------ room for records */

/* No entry is written before each thread has room for its own, or was told that there is none. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t all;
    int decided, expected; /* lock; expected 0: nobody waits */
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .all = PTHREAD_COND_INITIALIZER};

static void decided(bool wait)
{
    pthread_mutex_lock(&gate.lock);
    gate.decided++;
    pthread_cond_broadcast(&gate.all);
    while (wait && gate.decided < gate.expected) pthread_cond_wait(&gate.all, &gate.lock);
    pthread_mutex_unlock(&gate.lock);
}

ssize_t __real_pwritev(int fd, const struct iovec *parts, int count, off_t at);
ssize_t __wrap_pwritev(int fd, const struct iovec *parts, int count, off_t at);
ssize_t __wrap_pwritev(int fd, const struct iovec *parts, int count, off_t at)
{
    decided(true);
    return __real_pwritev(fd, parts, count, at);
}

typedef struct offering {
    mri_cache *c;
    uint64_t sample;
} offering;

static void *offer_one(void *arg)
{
    const offering *o = arg;
    mri_cache_place p;
    offer(o->c, o->sample);
    if (!mri_cache_find(o->c, o->sample, &p)) decided(false);
    return NULL;
}

static void records_have_room_before_they_are_written(void **state)
{
    (void)state;
    for (uint64_t room = 0; room <= THREADS; room++)
        for (uint64_t spare = 0; spare < RECORD; spare += RECORD - 1) {
            const uint64_t budget = 2 * HEADER + room * (ENTRY + RECORD) + spare;
            pthread_t thread[THREADS];
            offering o[THREADS];
            mri_cache *c = open_cache(budget);
            gate.decided = 0;
            gate.expected = THREADS;
            for (uint64_t t = 0; t < THREADS; t++) {
                o[t] = (offering){c, t};
                MRT_EQ(pthread_create(&thread[t], NULL, offer_one, &o[t]), 0);
            }
            for (int t = 0; t < THREADS; t++) MRT_EQ(pthread_join(thread[t], NULL), 0);
            gate.expected = 0;
            MRT_EQ(mri_cache_counts_of(c).entries, room);
            mri_cache_close(c);
            MRT_EQ(size_of(file_named("")) + size_of(file_named(".index")),
                   2 * HEADER + room * (ENTRY + RECORD));
            remove_files();
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_have_room_before_they_are_written),
    };
    return mrt_run(tests);
}
