/* A cache on disk that several threads or processes use at once. Each test stops one of them between two
 * steps, and lets the others go on: the library's system calls lead here. */
#include <errno.h>
#include <pthread.h>
#include <sys/file.h>
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

typedef struct notes { /* of one cache */
    char last[512];
    int count;
} notes;

static void on_note(void *context, const char *text)
{
    notes *n = context;
    snprintf(n->last, sizeof n->last, "%s", text);
    n->count++;
}

static mri_cache *open_cache(uint64_t budget_bytes, notes *n)
{
    const mri_cache_config cfg = {.count = 100,
                                  .stamp = 7,
                                  .form = &form,
                                  .folder = mrt_path("cache"),
                                  .budget_bytes = budget_bytes,
                                  .value_bytes_most = VALUE,
                                  .note = on_note,
                                  .note_context = n};
    mri_cache *c;
    mr_error err = MR_ERROR_INIT;
    *n = (notes){.count = 0};
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

/* No entry is written before each thread has reserved space for its own, or was refused. */
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
            notes n;
            mri_cache *c = open_cache(budget, &n);
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

/* ------------------------------------------------------------------------------ two processes */

/* What another process does at this moment: before a cache is locked, or behind this cutting of a file. */
static struct {
    void (*before_lock)(void);
    void (*behind_cut)(void);
    int cuts; /* to let pass before */
} meanwhile;

static int lock_errno; /* not 0: nothing can be locked */

int __real_flock(int fd, int operation);
int __wrap_flock(int fd, int operation);
int __wrap_flock(int fd, int operation)
{
    void (*const other)(void) = meanwhile.before_lock;
    meanwhile.before_lock = NULL;
    if (other) other();
    if (lock_errno) errno = lock_errno;
    return lock_errno ? -1 : __real_flock(fd, operation);
}

int __real_ftruncate(int fd, off_t bytes);
int __wrap_ftruncate(int fd, off_t bytes);
int __wrap_ftruncate(int fd, off_t bytes)
{
    const int rc = __real_ftruncate(fd, bytes);
    void (*const other)(void) = meanwhile.cuts-- == 0 ? meanwhile.behind_cut : NULL;
    if (other) meanwhile.behind_cut = NULL;
    if (other) other();
    return rc;
}

enum { SOME = 10, MORE = 20 };

static void fill(uint64_t from, uint64_t to)
{
    notes n;
    mri_cache *c = open_cache(1 << 20, &n);
    MRT_EQ(n.count, 0);
    for (uint64_t i = from; i < to; i++) offer(c, i);
    mri_cache_close(c);
}

static void fill_some(void) { fill(0, SOME); }
static void fill_more(void) { fill(SOME, MORE); }

static void found(uint64_t entries)
{
    notes n;
    mri_cache *c = open_cache(1 << 20, &n);
    mri_cache_place p;
    MRT_EQ(n.count, 0);
    MRT_EQ(mri_cache_counts_of(c).entries, entries);
    MRT_EQ(mri_cache_counts_of(c).dropped, 0);
    for (uint64_t i = 0; i < entries; i++) {
        uint8_t bytes[ENTRY];
        mr_value v;
        int32_t label;
        MRT_TRUE(mri_cache_find(c, i, &p));
        MRT_EQ(pread(mri_cache_fd(c), bytes, p.bytes, (off_t)p.offset), ENTRY);
        MRT_TRUE(mri_cache_parse(i, bytes, p.bytes, true, &v, &label));
    }
    mri_cache_close(c);
}

/* The previous owner ends between this one's opening and locking: none of its entries are lost. */
static void what_was_added_before_the_lock_is_seen(void **state)
{
    (void)state;
    meanwhile.before_lock = fill_some; /* the files were only just made */
    found(SOME);
    meanwhile.before_lock = fill_more;
    notes n;
    mri_cache *c = open_cache(1 << 20, &n);
    MRT_EQ(mri_cache_counts_of(c).entries, MORE);
    offer(c, MORE); /* after the others */
    mri_cache_close(c);
    found(MORE + 1);
    remove_files();
}

static mri_cache *owner;
static notes owner_notes;

static void open_as_owner(void) { owner = open_cache(1 << 20, &owner_notes); }

/* Finds another at it, and nothing that would be of use. */
static void open_as_second(void)
{
    notes n;
    mri_cache *c = open_cache(1 << 20, &n);
    MRT_EQ(n.count, 1);
    MRT_HAS(n.last, "another process");
    MRT_EQ(mri_cache_counts_of(c).entries, 0);
    mri_cache_close(c);
}

static void damage(const char *path)
{
    size_t bytes;
    char *data = mrt_read_file(path, &bytes);
    data[20] ^= 1; /* of the header */
    mrt_write_file(path, data, bytes);
    free(data);
}

/* The files are empty or without a header for a moment: that is no damage. */
static void who_has_no_lock_may_come_while_it_begins(void **state)
{
    (void)state;
    for (int old = 0; old < 2; old++)
        for (int cuts = 0; cuts < 2; cuts++) {
            if (old) {
                fill_some();
                damage(file_named(""));
            }
            meanwhile.behind_cut = open_as_second;
            meanwhile.cuts = cuts;
            owner = open_cache(1 << 20, &owner_notes);
            MRT_TRUE(meanwhile.behind_cut == NULL);
            MRT_EQ(owner_notes.count, old);
            for (uint64_t i = 0; i < SOME; i++) offer(owner, i);
            mri_cache_close(owner);
            found(SOME);
            remove_files();
        }
}

/* Entries that existed when the file was opened are gone: this is not an error. */
static void who_has_no_lock_may_find_less_than_it_saw(void **state)
{
    (void)state;
    fill_some();
    damage(file_named(""));
    meanwhile.before_lock = open_as_owner;
    open_as_second();
    MRT_EQ(owner_notes.count, 1);
    MRT_HAS(owner_notes.last, "begins anew");
    for (uint64_t i = 0; i < MORE; i++) offer(owner, i);
    mri_cache_close(owner);
    found(MORE);
    remove_files();
}

/* A file system without locks is reported as such. */
static void a_lock_that_cannot_be_is_told(void **state)
{
    (void)state;
    fill_some();
    notes n;
    lock_errno = ENOLCK;
    mri_cache *c = open_cache(1 << 20, &n);
    lock_errno = 0;
    MRT_EQ(n.count, 1);
    MRT_HAS(n.last, "cannot be locked: No locks available");
    MRT_EQ(mri_cache_counts_of(c).entries, SOME);
    mri_cache_close(c);
    remove_files();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_have_room_before_they_are_written),
        cmocka_unit_test(what_was_added_before_the_lock_is_seen),
        cmocka_unit_test(who_has_no_lock_may_come_while_it_begins),
        cmocka_unit_test(who_has_no_lock_may_find_less_than_it_saw),
        cmocka_unit_test(a_lock_that_cannot_be_is_told),
    };
    return mrt_run(tests);
}
