/* pipeline/manifest/manifest_sum.c: sizes and sums of files, a file for each thread at a time. See
 * manifest.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "pipeline/manifest/manifest.h"
#include "settings/limits.h"

enum { PIECE = 1 << 20 };

typedef struct summing {
    mri_manifest *m;
    const mr_manifest_config *cfg;
    pthread_mutex_t lock;
    uint64_t next, done; /* lock */
    uint32_t working;    /* lock */
} summing;

static bool stopped(const summing *s)
{
    const volatile int *stop = s->cfg->stop;
    return stop && __atomic_load_n(stop, __ATOMIC_RELAXED);
}

static int sum_open(const summing *s, mri_manifest_file *f, int fd, uint8_t *piece)
{
    mri_sha256 hash;
    struct stat st;
    if (fstat(fd, &st) != 0) return mr_error_sys(&f->why, errno, "cannot look at it");
    if (!S_ISREG(st.st_mode)) return mr_error_set(&f->why, MR_EFORMAT, "not a regular file");
    mri_sha256_begin(&hash);
    f->bytes = 0;
    for (;;) {
        const ssize_t n = read(fd, piece, PIECE);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return mr_error_sys(&f->why, errno, "cannot read");
        if (n == 0) break;
        if (stopped(s)) return mr_error_set(&f->why, MR_ECANCELED, "stopped");
        mri_sha256_add(&hash, piece, (size_t)n);
        f->bytes += (uint64_t)n;
    }
    mri_sha256_end(&hash, f->sum);
    f->sized = true;
    return MR_OK;
}

static void sum_one(const summing *s, mri_manifest_file *f, uint8_t *piece)
{
    const int fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    f->rc = fd < 0 ? mr_error_sys(&f->why, errno, "cannot open") : sum_open(s, f, fd, piece);
    if (fd >= 0) close(fd);
    if (f->rc) mr_error_at(&f->why, f->path, MR_NOWHERE, MR_NOWHERE);
}

static void *worker_main(void *arg)
{
    summing *s = arg;
    uint8_t *piece = malloc(PIECE);
    pthread_mutex_lock(&s->lock);
    while (s->next < s->m->count && !stopped(s)) {
        mri_manifest_file *f = &s->m->file[s->next++];
        pthread_mutex_unlock(&s->lock);
        if (piece) sum_one(s, f, piece);
        else f->rc = mr_error_set(&f->why, MR_ENOMEM, "no memory to read files");
        pthread_mutex_lock(&s->lock);
        s->done++;
    }
    s->working--;
    pthread_mutex_unlock(&s->lock);
    free(piece);
    return NULL;
}

static void watch(summing *s)
{
    for (bool working = true; working;) {
        const struct timespec pause = {0, 10000000};
        nanosleep(&pause, NULL);
        pthread_mutex_lock(&s->lock);
        const uint64_t done = s->done;
        working = s->working > 0;
        pthread_mutex_unlock(&s->lock);
        if (s->cfg->on_progress) s->cfg->on_progress(s->cfg->context, done, s->m->count);
    }
}

int mri_manifest_sum(mri_manifest *m, const mr_manifest_config *cfg, mr_error *err)
{
    pthread_t thread[MRI_MANIFEST_WORKERS_MOST];
    summing s = {.m = m, .cfg = cfg, .lock = PTHREAD_MUTEX_INITIALIZER};
    uint32_t made = 0, wanted = cfg->threads ? cfg->threads : mr_cores();
    if (wanted > MRI_MANIFEST_WORKERS_MOST) wanted = MRI_MANIFEST_WORKERS_MOST;
    s.working = wanted;
    while (made < wanted && pthread_create(&thread[made], NULL, worker_main, &s) == 0) made++;
    pthread_mutex_lock(&s.lock);
    s.working -= wanted - made;
    pthread_mutex_unlock(&s.lock);
    if (made == 0)
        return mr_error_set(err, MR_ENOMEM, "cannot start a thread: no memory, or too many threads");
    watch(&s);
    for (uint32_t k = 0; k < made; k++) pthread_join(thread[k], NULL);
    return stopped(&s) ? mr_error_set(err, MR_ECANCELED, "stopped") : MR_OK;
}
