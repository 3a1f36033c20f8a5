/* pipeline/pages/pages.c: pages of a set's files in the page cache, and the kernel's counters.
 *
 * The room pipeline/pages/
 *   takes     an open source
 *   gives     the calls of millrace/pages.h
 *   callers   programs */
#include "millrace/pages.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "formats/source/source.h"

enum { READ_BYTES = 1 << 20, LOOK_EVERY_US = 20000 };

/* ---- the kernel's counters ---- */

/* The number behind `name` in a file of lines "name: number"; false: not there. */
static bool read_count(const char *path, const char *name, uint64_t *out)
{
    char line[256];
    const size_t bytes = strlen(name);
    bool found = false;
    FILE *f = fopen(path, "re");
    if (!f) return false;
    while (!found && fgets(line, sizeof line, f))
        if (strncmp(line, name, bytes) == 0 && line[bytes] == ':') {
            *out = strtoull(line + bytes + 1, NULL, 10);
            found = true;
        }
    fclose(f);
    return found;
}

uint64_t mr_pages_memory_available(void)
{
    uint64_t kib = 0;
    return read_count("/proc/meminfo", "MemAvailable", &kib) ? kib << 10 : 0;
}

uint64_t mr_pages_memory_total(void)
{
    uint64_t kib = 0;
    return read_count("/proc/meminfo", "MemTotal", &kib) ? kib << 10 : 0;
}

double mr_pages_storage_bytes(void)
{
    uint64_t bytes;
    return read_count("/proc/self/io", "read_bytes", &bytes) ? (double)bytes : -1;
}

/* ---- every file of a set ---- */

typedef int file_work(int fd, void *context, mr_error *err);

static int each_shared_file(const mr_source *src, file_work *work, void *context, mr_error *err)
{
    const uint32_t count = mr_source_info_of(src)->file_count;
    int rc = MR_OK;
    for (uint32_t i = 0; i < count && rc == MR_OK; i++) {
        int fd;
        rc = mr_source_file_acquire(src, i, &fd, err);
        if (rc != MR_OK) break;
        rc = work(fd, context, err);
        mr_source_file_release(src, i);
    }
    return rc;
}

/* One that cannot be opened is a bad sample, which is for the loader to report. */
static int each_sample_file(const mr_source *src, file_work *work, void *context, mr_error *err)
{
    char path[PATH_MAX];
    const uint64_t count = mr_source_info_of(src)->count;
    int rc = MR_OK;
    for (uint64_t i = 0; i < count && rc == MR_OK; i++) {
        mr_extent e;
        if (mr_source_extent(src, i, &e, NULL) == MR_OK && e.file != MR_FILE_OF_SAMPLE) continue;
        const int fd =
            open(mr_source_sample_path(src, i, path, sizeof path), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0) continue;
        rc = work(fd, context, err);
        close(fd);
    }
    return rc;
}

static int each_file(const mr_source *src, file_work *work, void *context, mr_error *err)
{
    const mr_source_info *info = mr_source_info_of(src);
    int rc = info->file_count ? each_shared_file(src, work, context, err) : MR_OK;
    if (rc == MR_OK && (info->file_count == 0 || info->mix_count)) /* a mix has both kinds */
        rc = each_sample_file(src, work, context, err);
    return rc;
}

typedef struct filling {
    void *buffer;
    const volatile int *stop;
} filling;

static int fill_file(int fd, void *context, mr_error *err)
{
    const filling *f = context;
    for (off_t at = 0;;) {
        const ssize_t got = pread(fd, f->buffer, READ_BYTES, at);
        if (mri_is_stopped(f->stop))
            return mr_error_set(err, MR_ECANCELED, "while reading files into memory");
        if (got <= 0) return MR_OK; /* what cannot be read is for the loader to report */
        at += got;
    }
}

int mr_pages_fill(const mr_source *src, const volatile int *stop, mr_error *err)
{
    MRI_OWN(err, src);
    filling f = {.buffer = malloc(READ_BYTES), .stop = stop};
    if (!f.buffer) return mr_error_set(err, MR_ENOMEM, "out of memory for a buffer to read with");
    const int rc = each_file(src, fill_file, &f, err);
    free(f.buffer);
    return rc;
}

/* context: NULL, or the flag of a stop. */
static int drop_file(int fd, void *context, mr_error *err)
{
    const int why = posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    if (why) return mr_error_set(err, MR_EIO, "cannot drop pages of the data: %s", strerror(why));
    return mri_is_stopped(context) ? mr_error_set(err, MR_ECANCELED, "while dropping pages") : MR_OK;
}

int mr_pages_drop(const mr_source *src, const volatile int *stop, mr_error *err)
{
    MRI_OWN(err, src);
    return each_file(src, drop_file, (void *)(uintptr_t)stop, err);
}

/* ---- the rate of storage ---- */

typedef struct timed_read {
    void *buffer;
    const volatile int *stop;
    uint64_t start_ns;
    double seconds, bytes;
} timed_read;

static double seconds_since(uint64_t start_ns) { return 1e-9 * (double)(mri_now_ns() - start_ns); }

static int time_file(int fd, void *context, mr_error *err)
{
    timed_read *t = context;
    (void)err;
    for (off_t at = 0;;) {
        if (mri_is_stopped(t->stop) || seconds_since(t->start_ns) > t->seconds)
            return MR_ECANCELED; /* enough */
        const ssize_t got = pread(fd, t->buffer, READ_BYTES, at);
        if (got <= 0) return MR_OK;
        at += got;
        t->bytes += (double)got;
    }
}

double mr_pages_storage_rate(const mr_source *src, double seconds, const volatile int *stop)
{
    if (!MRI_IS_OWN(src)) return NAN;
    timed_read t = {.buffer = malloc(READ_BYTES), .stop = stop, .seconds = seconds};
    if (!t.buffer || mr_pages_drop(src, stop, NULL) != MR_OK) {
        free(t.buffer);
        return NAN;
    }
    const double before = mr_pages_storage_bytes();
    t.start_ns = mri_now_ns();
    each_file(src, time_file, &t, NULL);
    const double rate = t.bytes / (seconds_since(t.start_ns) + 1e-9);
    const double brought = mr_pages_storage_bytes() - before;
    free(t.buffer);
    return before >= 0 && brought > 0.5 * t.bytes && t.bytes > 0 ? rate : NAN;
}

bool mr_pages_direct_ok(const mr_source *src)
{
    if (!MRI_IS_OWN(src)) return false;
    const uint32_t count = mr_source_info_of(src)->file_count;
    mr_source_file file;
    for (uint32_t i = 0; i < count; i++)
        if (mr_source_file_at(src, i, &file) != MR_OK || !file.direct_ok) return false;
    for (uint32_t k = 0; k < mr_source_info_of(src)->mix_count; k++) {
        mr_extent e;
        if (mr_source_extent(src, mr_source_info_of(src)->mix[k].first, &e, NULL) == MR_OK &&
            e.file == MR_FILE_OF_SAMPLE)
            return false;
    }
    return count > 0;
}

/* ---- dropping during a run ---- */

struct mr_page_dropper {
    uint32_t process; /* that started it */
    pthread_t thread;
    pthread_mutex_t lock;
    bool stop; /* lock */
    const mr_source *src;
    mr_samples_read *samples_read;
    void *context;
};

static bool is_stopped(mr_page_dropper *d)
{
    pthread_mutex_lock(&d->lock);
    const bool stop = d->stop;
    pthread_mutex_unlock(&d->lock);
    return stop;
}

static void *dropper_main(void *arg)
{
    mr_page_dropper *d = arg;
    const uint64_t quarter = mr_source_info_of(d->src)->count / 4 + 1;
    uint64_t dropped_at = d->samples_read(d->context);
    while (!is_stopped(d)) {
        const uint64_t now = d->samples_read(d->context);
        if (now - dropped_at >= quarter) {
            mr_pages_drop(d->src, NULL, NULL);
            dropped_at = now;
        }
        usleep(LOOK_EVERY_US);
    }
    return NULL;
}

int mr_page_dropper_start(mr_page_dropper **out, const mr_source *src, mr_samples_read *samples_read,
                          void *context, mr_error *err)
{
    MRI_GIVEN(err, out);
    *out = NULL;
    MRI_OWN(err, src);
    MRI_GIVEN(err, samples_read);
    mr_page_dropper *d = calloc(1, sizeof *d);
    if (!d) return mr_error_set(err, MR_ENOMEM, "out of memory for a thread that drops pages");
    *d = (mr_page_dropper){
        .process = mri_process(), .src = src, .samples_read = samples_read, .context = context};
    pthread_mutex_init(&d->lock, NULL);
    if (mri_thread_start(&d->thread, "mr-pages", dropper_main, d) == MR_OK) {
        *out = d;
        return MR_OK;
    }
    pthread_mutex_destroy(&d->lock);
    free(d);
    return mr_error_set(err, MR_ENOMEM, "cannot start a thread that drops pages");
}

void mr_page_dropper_stop(mr_page_dropper *d)
{
    if (!MRI_IS_OWN(d)) return;
    pthread_mutex_lock(&d->lock);
    d->stop = true;
    pthread_mutex_unlock(&d->lock);
    pthread_join(d->thread, NULL);
    pthread_mutex_destroy(&d->lock);
    free(d);
}
