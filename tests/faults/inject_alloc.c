/* tests/faults/inject_alloc.c: memory and threads. The C library's own entry points are called under their
 * other names: dlsym() would allocate. */
#include "inject.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t align, size_t bytes);

static bool none_left(const void *caller)
{
    const int error = mrt_fault(MRT_FAULT_ALLOC, caller);
    if (error) errno = error;
    return error != 0;
}

void *malloc(size_t bytes) { return none_left(MRT_CALLER) ? NULL : __libc_malloc(bytes); }

void *calloc(size_t count, size_t bytes)
{
    return none_left(MRT_CALLER) ? NULL : __libc_calloc(count, bytes);
}

void *realloc(void *old, size_t bytes) { return none_left(MRT_CALLER) ? NULL : __libc_realloc(old, bytes); }

void *aligned_alloc(size_t align, size_t bytes)
{
    return none_left(MRT_CALLER) ? NULL : __libc_memalign(align, bytes);
}

int posix_memalign(void **out, size_t align, size_t bytes)
{
    const int error = mrt_fault(MRT_FAULT_ALLOC, MRT_CALLER);
    if (error) return error;
    *out = __libc_memalign(align, bytes);
    return *out ? 0 : ENOMEM;
}

void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    MRT_REAL(mmap)
    return none_left(MRT_CALLER) ? MAP_FAILED : real(at, bytes, protection, flags, fd, offset);
}

char *strdup(const char *text)
{
    MRT_REAL(strdup)
    return none_left(MRT_CALLER) ? NULL : real(text);
}

char *strndup(const char *text, size_t most)
{
    MRT_REAL(strndup)
    return none_left(MRT_CALLER) ? NULL : real(text, most);
}

int vasprintf(char **out, const char *format, va_list args)
{
    MRT_REAL(vasprintf)
    return none_left(MRT_CALLER) ? -1 : real(out, format, args);
}

int asprintf(char **out, const char *format, ...)
{
    MRT_REAL(vasprintf)
    va_list args;
    if (none_left(MRT_CALLER)) return -1;
    va_start(args, format);
    const int rc = real(out, format, args);
    va_end(args);
    return rc;
}

FILE *open_memstream(char **out, size_t *bytes)
{
    MRT_REAL(open_memstream)
    return none_left(MRT_CALLER) ? NULL : real(out, bytes);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
    MRT_REAL(pthread_create)
    const int error = mrt_fault(MRT_FAULT_THREAD, MRT_CALLER);
    return error ? error : real(thread, attributes, run, argument);
}
