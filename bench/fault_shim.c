/* fault_shim.c: faults for faults_named.py, loaded by LD_PRELOAD. Only the faults named in the environment
 * are injected.
 *
 *   FAULT_FILE=TEXT FAULT_FILE_MS=N   pread() from a file with TEXT in its path takes N ms more: a slow disk
 *   FAULT_KB_S=N                      all pread()s of readers (threads whose names begin so) together read
 *                                     at most N kB a second: a slow device
 *   FAULT_LOCK_MS=N                   a thread holds a lock for N ms out of every N + 2, and every worker (a
 *                                     thread whose name begins so) needs it whenever it locks a mutex */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static int (*real_lock)(pthread_mutex_t *);
static ssize_t (*real_pread)(int, void *, size_t, off_t);
static long file_ms, lock_ms, kb_s;
static pthread_mutex_t device = PTHREAD_MUTEX_INITIALIZER;
static double free_at; /* the device: when it has delivered all requests until now, in s */
static const char *file_text;
static __thread int kind; /* of the thread, by the first letter of its name; 0: nobody has looked */

static void rest(long ms)
{
    const struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

static void *hold(void *unused)
{
    (void)unused;
    for (;;) {
        real_lock(&held);
        rest(lock_ms);
        pthread_mutex_unlock(&held);
        rest(2);
    }
    return NULL;
}

static long number(const char *name)
{
    const char *text = getenv(name);
    return text ? strtol(text, NULL, 10) : 0;
}

__attribute__((constructor)) static void begin(void)
{
    pthread_t thread;
    real_lock = (int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_lock");
    real_pread = (ssize_t(*)(int, void *, size_t, off_t))dlsym(RTLD_NEXT, "pread");
    file_text = getenv("FAULT_FILE");
    file_ms = number("FAULT_FILE_MS");
    lock_ms = number("FAULT_LOCK_MS");
    kb_s = number("FAULT_KB_S");
    if (lock_ms && pthread_create(&thread, NULL, hold, NULL) == 0) pthread_detach(thread);
}

static bool is_a(const char *what)
{
    char name[16] = "";
    if (!kind) {
        if (pthread_getname_np(pthread_self(), name, sizeof name) != 0) return false;
        kind = strncmp(name, "worker", 6) == 0 ? 'w' : strncmp(name, "reader", 6) == 0 ? 'r' : '-';
    }
    return kind == what[0];
}

int pthread_mutex_lock(pthread_mutex_t *lock)
{
    if (lock_ms && lock != &held && is_a("worker")) {
        real_lock(&held);
        pthread_mutex_unlock(&held);
    }
    return real_lock ? real_lock(lock) : 0;
}

static bool is_slow(int fd)
{
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t n = readlink(link, path, sizeof path - 1);
    if (n <= 0) return false;
    path[n] = '\0';
    return strstr(path, file_text) != NULL;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Reads of one device, one after the other. */
static void pace(size_t bytes)
{
    real_lock(&device);
    const double begun = now();
    if (free_at < begun) free_at = begun;
    free_at += (double)bytes / (1e3 * (double)kb_s);
    const double wait = free_at - begun;
    pthread_mutex_unlock(&device);
    rest((long)(1e3 * wait));
}

ssize_t pread(int fd, void *data, size_t bytes, off_t offset)
{
    if (file_ms && file_text && is_slow(fd)) rest(file_ms);
    const ssize_t n = real_pread(fd, data, bytes, offset);
    if (kb_s && n > 0 && is_a("reader")) pace((size_t)n);
    return n;
}

ssize_t pread64(int fd, void *data, size_t bytes, off_t offset) { return pread(fd, data, bytes, offset); }
