/* base/handle.c: see handle.h. */
#include "base/handle.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Counted in a child of fork(), so that a handle of the parent has another number. Where the system refuses
 * the function that counts, the process is known by its id. */
static _Atomic uint32_t generation = 1;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool counts;

enum { GLOBALS_MOST = 16 };
static pthread_mutex_t globals_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t *globals[GLOBALS_MOST]; /* globals_lock */
static uint32_t global_count;                  /* globals_lock */

static void before_fork(void)
{
    pthread_mutex_lock(&globals_lock);
    for (uint32_t i = 0; i < global_count; i++) pthread_mutex_lock(globals[i]);
}

static void in_parent(void)
{
    for (uint32_t i = global_count; i-- > 0;) pthread_mutex_unlock(globals[i]);
    pthread_mutex_unlock(&globals_lock);
}

static void in_child(void)
{
    in_parent();
    generation++;
}

static void begin_counting(void) { counts = pthread_atfork(before_fork, in_parent, in_child) == 0; }

uint32_t mri_process(void)
{
    pthread_once(&once, begin_counting);
    return counts ? generation : (uint32_t)getpid();
}

void mri_lock_global(pthread_mutex_t *lock)
{
    uint32_t i = 0;
    pthread_once(&once, begin_counting);
    pthread_mutex_lock(&globals_lock);
    while (i < global_count && globals[i] != lock) i++;
    assert(i < GLOBALS_MOST);
    if (i == global_count) globals[global_count++] = lock;
    pthread_mutex_unlock(&globals_lock);
    pthread_mutex_lock(lock);
}

/* The public name of a function: of "mr_loader_next_sized" the part that programs call. */
static const char *public_name(const char *call, char *buf, size_t buf_bytes)
{
    static const char sized[] = "_sized";
    snprintf(buf, buf_bytes, "%s", call);
    const size_t length = strlen(buf), end = sizeof sized - 1;
    if (length > end && strcmp(buf + length - end, sized) == 0) buf[length - end] = '\0';
    return buf;
}

int mri_error_null(mr_error *err, const char *call, const char *what)
{
    char name[64];
    return mr_error_set(err, MR_EINVAL, "%s: %s must not be NULL", public_name(call, name, sizeof name),
                        what);
}

int mri_error_inherited(mr_error *err, const char *call, const char *what)
{
    char name[64];
    return mr_error_set(err, MR_EINVAL,
                        "%s: %s was opened by the parent process before fork(): its threads "
                        "stayed there; open what this process uses after fork()",
                        public_name(call, name, sizeof name), what);
}
