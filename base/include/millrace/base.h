/* millrace/base.h: status codes, the error record and the rules that hold in all headers of the library.
 *
 * Every function that can fail returns MR_OK or a negative code; results go through pointers. The caller
 * decides by the code. The mr_error (owned by the caller, may be NULL) describes the error: file, offset,
 * sample, the expected and the found value, and a remedy. Read it only after a negative code: a call that
 * returns MR_OK may have changed it. Where an mr_error reports one damaged sample (on_bad) its code is the
 * damage, such as MR_EFORMAT; the call that ends the run returns MR_EBADSAMPLE. The library never prints,
 * never exits and keeps no message in a global.
 *
 * These rules hold for every function of every header unless its comment says otherwise:
 *
 * - NULL. err, a configuration (NULL: the defaults) and every argument documented to accept NULL may be NULL;
 *   every close, destroy, abandon and abort accepts NULL. Any other NULL argument is MR_EINVAL, and err names
 *   the argument; a function without a status then does nothing and returns 0, false or NULL (a file
 *   descriptor: -1). An out pointer for a handle is set to NULL first, so it is NULL on every error.
 * - Enumerations. A value that the enumeration does not define is MR_EINVAL.
 * - Threads. Any thread may use a handle, one thread at a time; "any thread" in a comment means that several
 *   threads may call the function at once. A function that calls callbacks of the program returns MR_EINVAL
 *   when such a callback calls it, and MR_EBUSY while another thread is inside it.
 * - fork(). A handle belongs to the process that opened it. In a child process the functions on it return
 *   MR_EINVAL (or 0, false, NULL), closing it does nothing, and files being written remain the parent's.
 *   Handles that the child opens work. Networks, augmentations, value checkers, record files (mr_mrec) and
 *   snapshots are plain memory and work in both processes.
 * - Floating point. The library computes with round-to-nearest and denormals in every mode of the caller, and
 *   leaves this mode unchanged. Callbacks of the program run in the default mode.
 * - Error texts. Settings appear under the names of the command's options: --memory is memory_bytes in a
 *   configuration.
 *
 * Threads: except mr_use_cores(), every function in this header depends only on its arguments and on the
 * machine. */
#ifndef MILLRACE_BASE_H
#define MILLRACE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define MR_API                __attribute__((visibility("default")))
#define MR_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#else
#define MR_API
#define MR_PRINTF(fmt, first)
#endif

/* Stable and changing functions. The library exports the functions marked MR_API or MR_STABLE. Inline
 * functions, `static inline` or MR_STABLE_INLINE, call them.
 *
 * - MR_STABLE, MR_STABLE_INLINE. The function keeps its name, arguments, results and meaning in all later
 *   releases 0.x and in 1.0. The structs, enumerations and callbacks among its arguments do so, too: members
 *   and values may be added, none is removed or gets another meaning. A renamed type keeps its old name, too.
 * - MR_API, and `static inline` without this word. The function may be renamed, changed or removed by a
 *   release with another MINOR, until 1.0. CHANGELOG.md then names it and its replacement.
 *
 * The word is about source text: a program that uses stable functions alone compiles with later headers,
 * unchanged. Releases with one soname are compatible in both kinds of functions (below). */
#define MR_STABLE        MR_API
#define MR_STABLE_INLINE static inline

#ifdef __cplusplus
extern "C" {
#endif

/* The version is written only here; the build reads it. */
#define MR_VERSION_MAJOR 0
#define MR_VERSION_MINOR 5
#define MR_VERSION_PATCH 0
#define MR_VERSION_TEXT  MR_DOTTED_(MR_VERSION_MAJOR, MR_VERSION_MINOR, MR_VERSION_PATCH) /* as a string */

#define MR_DOTTED_(a, b, c) MR_QUOTED_(a) "." MR_QUOTED_(b) "." MR_QUOTED_(c)
#define MR_QUOTED_(a)       #a

/* The binary interface. While MAJOR is 0 the shared library's soname carries MAJOR.MINOR
 * (libmillrace.so.0.5), and all releases with one soname are compatible: a program compiled with the headers
 * of one runs with any other.
 *
 * - Settings (mr_..._config): struct_size first. mr_..._defaults() sets it to the size in the caller's
 *   header, and the library neither writes nor reads more bytes. Members that an older header lacks have
 *   their defaults; members that a newer header adds must be unset (zero), else MR_EINVAL. New members come
 *   last.
 * - Results written to the caller's memory: struct_size first. The inline function in the header sets it and
 *   calls the exported function (..._sized, at the end of the header). New members come last; a program in
 *   another language that calls ..._sized sets struct_size first.
 * - Structs that the library lends by const pointer: new members come last.
 * - All other structs (mr_error, samples and their values, tensors, elements of arrays, members of other
 *   structs) change only with the soname.
 *
 * Opaque handles have no layout. Enumerations and codes grow at their ends, and MR_..._COUNT with them. */

/* Status codes. New ones are added at the end; none is ever renumbered. */
enum {
    MR_OK = 0,
    MR_EEND = -1,         /* the stream or epoch is over */
    MR_EAGAIN = -2,       /* nothing ready yet; call again */
    MR_ECANCELED = -3,    /* a stop was requested */
    MR_ENOMEM = -4,       /* the system refused memory */
    MR_EINVAL = -5,       /* an argument or option is wrong */
    MR_EIO = -6,          /* a system call failed; mr_error.sys_errno has its code */
    MR_EFORMAT = -7,      /* the bytes violate their format */
    MR_ECHECKSUM = -8,    /* a checksum does not match */
    MR_EUNSUPPORTED = -9, /* valid, but not supported here */
    MR_ENOENT = -10,      /* it does not exist */
    MR_EEXIST = -11,      /* it exists already */
    MR_ELIMIT = -12,      /* above a documented limit or the memory budget */
    MR_EDEVICE = -13,     /* a device operation failed */
    MR_EBADSAMPLE = -14,  /* a sample is damaged and the policy is to stop */
    MR_EPEER = -15,       /* another process of this job gave up, died or stopped answering */
    MR_EBUSY = -16,       /* in use by another thread's call, or everything is on loan */
};

/* Any thread. A static text such as "checksum mismatch"; never NULL. */
MR_STABLE const char *mr_status_text(int code);

/* Library version at run time, "MAJOR.MINOR.PATCH". */
MR_STABLE const char *mr_version(void);

/* The number of cores that this process may use: its affinity mask, limited by the CPU quotas of its cgroups
 * (rounded up) and by mr_use_cores(); at least 1. A thread count left at its default follows from this
 * number. */
MR_API uint32_t mr_cores(void);
/* Limit mr_cores() to `most` from now on, for processes that share a machine; 0: no limit. Any thread.
 * Handles that are open keep their threads. */
MR_API void mr_use_cores(uint32_t most);

#define MR_NOWHERE UINT64_MAX /* in mr_error: offset or sample not known */

typedef struct mr_error {
    int code;        /* MR_E... */
    int sys_errno;   /* errno of the failing system call, else 0 */
    uint64_t offset; /* bytes from the start of file, or MR_NOWHERE */
    uint64_t sample; /* sample index in its source, or MR_NOWHERE */
    char file[512];  /* the file of the error, or ""; a longer name loses its beginning */
    char text[768];  /* the expected value, the found value, a remedy */
    int host; /* the status that a callback of the program (sampler, fetch, operation) returned, when that is
                 the error; with MR_EPEER the status with which another process gave up; else 0 */
} mr_error;

#define MR_ERROR_INIT                                                                                        \
    {                                                                                                        \
        0, 0, MR_NOWHERE, MR_NOWHERE, {0}, {0}, 0                                                            \
    }

/* Set code and text, clear file, offset and sample, and return code, so that a failing function ends with
 * `return mr_error_set(err, MR_EFORMAT, "...")`. err may be NULL. */
MR_STABLE int mr_error_set(mr_error *err, int code, const char *format, ...) MR_PRINTF(3, 4);

/* mr_error_set() for a failed system call: the code is MR_ENOENT, MR_EEXIST or MR_ENOMEM for the matching
 * errno, else MR_EIO; strerror() is appended to the text. */
MR_API int mr_error_sys(mr_error *err, int sys_errno, const char *format, ...) MR_PRINTF(3, 4);

/* Add file, offset and sample to err. NULL or MR_NOWHERE leaves the member unchanged. Returns err->code
 * (MR_OK if err is NULL). */
MR_API int mr_error_at(mr_error *err, const char *file, uint64_t offset, uint64_t sample);

/* Return true when this error concerns one sample and others may be intact: data that are wrong, missing or
 * above a limit (MR_EFORMAT, MR_ECHECKSUM, MR_EUNSUPPORTED, MR_ENOENT, MR_ELIMIT), and a sample's file name
 * that leads to no file (MR_EIO with ELOOP and similar). Return false for errors of the system, after which
 * the sample may be intact: too many open files, no memory (MR_ELIMIT of a memory budget has ENOMEM in
 * sys_errno), an unreadable medium, a file that this user may not read (EACCES). err (may be NULL) supplies
 * the system error. Every function that skips bad samples decides with this function. */
MR_STABLE bool mr_error_of_sample(int code, const mr_error *err);

/* Write one line, "FILE: sample 17, offset 4096: TEXT", always terminated; return buf. Control characters and
 * bytes that are not UTF-8 appear as \xNN, so that a hostile file name cannot write to the terminal. */
MR_STABLE char *mr_error_format(const mr_error *err, char *buf, size_t buf_bytes);

/* Write a text of unknown origin (a name, a note in a file) with the same escapes, truncated to buf. Returns
 * buf. */
MR_API char *mr_text_shown(const char *text, char *buf, size_t buf_bytes);

/* The instruction set of the hand-written loops, "plain", "avx2", "avx512" or "neon": the widest that the
 * processor supports, or the value of the environment variable MILLRACE_SIMD. It changes speed, never
 * results. */
MR_API const char *mr_simd_in_use(void);
/* Why the value of MILLRACE_SIMD cannot be used, or NULL. Call it from one thread, at the start. */
MR_API const char *mr_simd_complaint(void);

#ifdef __cplusplus
}
#endif
#endif
