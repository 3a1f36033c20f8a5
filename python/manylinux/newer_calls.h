/* Functions that the C library of 2012 lacks; build.sh includes this in every source of ours. Each is as its
 * manual page says. Most are calls of the kernel: where the kernel does not know one either, it fails with
 * ENOSYS, which its callers expect. Headers may declare a function that the library has not: hence names of
 * our own.
 */
#ifndef MILLRACE_NEWER_CALLS_H
#define MILLRACE_NEWER_CALLS_H
#ifndef __ASSEMBLER__

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#if !__GLIBC_PREREQ(2, 25)
#ifndef GRND_NONBLOCK
#define GRND_NONBLOCK 1
#endif
static inline ssize_t millrace_getrandom(void *to, size_t bytes, unsigned flags)
{
    return (ssize_t)syscall(SYS_getrandom, to, bytes, flags);
}
#define getrandom millrace_getrandom

/* No call of the kernel: the statement after memset() makes the compiler treat the zeros as read. */
static inline void millrace_explicit_bzero(void *to, size_t bytes)
{
    memset(to, 0, bytes);
    __asm__ volatile("" : : "r"(to) : "memory");
}
#define explicit_bzero millrace_explicit_bzero
#endif

#if !__GLIBC_PREREQ(2, 27)
#ifndef MFD_CLOEXEC
#define MFD_CLOEXEC 1u
#endif
static inline int millrace_memfd_create(const char *name, unsigned flags)
{
    return (int)syscall(SYS_memfd_create, name, flags);
}
#define memfd_create millrace_memfd_create
#endif

#if !__GLIBC_PREREQ(2, 28)
#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#endif
static inline int millrace_renameat2(int from_folder, const char *from, int to_folder, const char *to,
                                     unsigned flags)
{
    return (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, flags);
}
#define renameat2 millrace_renameat2
#endif

#if !__GLIBC_PREREQ(2, 30)
static inline pid_t millrace_gettid(void) { return (pid_t)syscall(SYS_gettid); }
#define gettid millrace_gettid
#endif

#endif
#endif
