/* tests/faults/inject.h: a library for LD_PRELOAD under which the n-th call of a class fails.
 *
 * Settings, in the environment:
 *   FAULTS          CLASS:N:ERROR, e.g. write:7:ENOSPC; the N-th call of CLASS (from 1)
 *                   fails, with N+ all from the N-th on. ERROR is the name of an errno, or
 *                   short (half of the bytes are moved), kill (SIGKILL instead of the
 *                   call), torn (half of the bytes are written, then SIGKILL). Without it
 *                   nothing fails and calls are counted.
 *   FAULTS_REPORT   file of sizeof(mrt_fault_report) bytes that is mapped and filled:
 *                   counts, and where the fault was
 *   FAULTS_JOURNAL  folder for the records from which run.py takes back changes without fsync (journal.c)
 *
 * Only calls that the command or libmillrace makes itself count, found by the return address; allocations of
 * the small C libraries that they call (pictures, JSON, packing) count as well. Allocations of oneDNN,
 * OpenMP, the C++ library and libcurl do not: some of them are made to end the process. An allocation of the
 * C library in fopen, strdup, asprintf, getdelim, ... makes the call of that function fail with ENOMEM.
 *
 * Writes through FILE fail in the call, not when the buffer is flushed: more places than a full disk would
 * choose. */
#ifndef MRT_INJECT_H
#define MRT_INJECT_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* X(CLASS, name in FAULTS): run.py reads the names in this order */
#define MRT_FAULT_CLASSES                                                                                    \
    X(ALLOC, alloc)   /* malloc, calloc, realloc, posix_memalign, aligned_alloc, mmap, and as said above */  \
    X(READ, read)     /* read, pread, preadv, fgets, getdelim, fread */                                      \
    X(WRITE, write)   /* write, pwrite, writev, pwritev; fwrite, fputs, fprintf, ..., fflush, fclose */      \
    X(PRINT, print)   /* the same on standard output: results, not files */                                  \
    X(OPEN, open)     /* open, openat, mkostemp, memfd_create, fopen, opendir, fdopendir */                  \
    X(LIST, list)     /* readdir, glob */                                                                    \
    X(NAME, name)     /* rename, link, unlink, symlink, remove, rmdir and their other forms */               \
    X(SYNC, sync)     /* fsync, fdatasync, syncfs */                                                         \
    X(SPACE, space)   /* ftruncate, truncate, fallocate, posix_fallocate */                                  \
    X(STAT, stat)     /* stat, fstat, lstat, fstatat, fstatvfs, fstatfs, access, realpath */                 \
    X(FOLDER, folder) /* mkdir, mkdirat */                                                                   \
    X(CLOSE, close)   /* close of a file open for writing: it is closed even so */                           \
    X(LOCK, lock)     /* flock */                                                                            \
    X(META, meta)     /* fchmod, futimens */                                                                 \
    X(THREAD, thread) /* pthread_create */                                                                   \
    X(RING, ring)     /* calls of liburing */                                                                \
    X(REQUEST, request) /* requests in a ring: completed with the error, or short */                         \
    X(CHANGE, change)   /* any call that changes a file or a folder: for kill and torn */

typedef enum mrt_fault_class {
#define X(class, name) MRT_FAULT_##class,
    MRT_FAULT_CLASSES
#undef X
        MRT_FAULT_CLASS_COUNT
} mrt_fault_class;

enum { MRT_FAULT_SHORT = 100000, MRT_FAULT_KILL, MRT_FAULT_TORN };

typedef struct mrt_fault_report {
    char magic[8]; /* "faults1" once the library is at work */
    uint64_t count[32];
    uint64_t hit;     /* faults that were injected */
    char place[8184]; /* of the first: "module+offset" lines, innermost first */
} mrt_fault_report;

/* The error that this call shall end with, 0 for none; MRT_FAULT_SHORT only where `parts`. */
int mrt_fault(mrt_fault_class class, const void *caller);
/* The same for a call that changes a file. It does not return where the process is to be killed, but says
 * true where half of the bytes are to be written first: for calls that write some (`writes`). */
bool mrt_fault_change(bool writes, const void *caller);
bool mrt_fault_own(const void *caller); /* called by the command or by libmillrace */
bool mrt_fault_reserved(int fd);        /* a descriptor of ours */
_Noreturn void mrt_fault_kill(void);

/* journal.c; each does nothing without FAULTS_JOURNAL */
void mrt_journal_open(const char *folder);
bool mrt_journal_opening(int at, const char *path, bool cuts); /* for writing; true: it will be made */
void mrt_journal_opened(int fd, int at, const char *path, bool made);
void mrt_journal_synced(int fd);
void mrt_journal_synced_all(void);
void mrt_journal_renaming(int at, const char *from, int to_at, const char *to, bool exchange); /* before it */
void mrt_journal_removing(int at, const char *path, bool folder);                              /* before it */
void mrt_journal_made(char kind, int at, const char *path); /* after link, mkdir, symlink */

/* MRT_REAL(name): declares `real`, the function that ours stands in front of. */
#define MRT_REAL(name)                                                                                       \
    static __typeof__(&name) real;                                                                           \
    if (!real) {                                                                                             \
        const union {                                                                                        \
            void *object;                                                                                    \
            __typeof__(&name) function;                                                                      \
        } found = {dlsym(RTLD_NEXT, #name)};                                                                 \
        real = found.function;                                                                               \
    }
#define MRT_CALLER __builtin_return_address(0)

#endif
