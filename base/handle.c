/* base/handle.c: see handle.h. */
#include "base/handle.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Counted in a child of fork(), so that a handle of the parent has another number. Where the system refuses
 * the function that counts, the process is known by its id. */
static _Atomic uint32_t generation = 1;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool counts;

static void count_child(void) { generation++; }

static void begin_counting(void) { counts = pthread_atfork(NULL, NULL, count_child) == 0; }

uint32_t mri_process(void)
{
    pthread_once(&once, begin_counting);
    return counts ? generation : (uint32_t)getpid();
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
                        "%s: %s was opened by another process, of which fork() made this one: its threads "
                        "stayed there; open what this process uses after fork()",
                        public_name(call, name, sizeof name), what);
}
