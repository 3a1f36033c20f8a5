/* Calls of the kernel that the C library of 2012 has no function for; build.sh includes this in every source
 * of ours. Each is as its manual page says; where the kernel does not know it either, it fails with ENOSYS,
 * which its callers expect. Headers may declare a function that the library has not: hence names of our own.
 */
#ifndef MILLRACE_NEWER_CALLS_H
#define MILLRACE_NEWER_CALLS_H
#ifndef __ASSEMBLER__

#include <fcntl.h>
#include <stdio.h>
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
