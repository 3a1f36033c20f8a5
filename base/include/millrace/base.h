/* millrace/base.h: what all parts of the library share with their callers: status codes and the error record.
 *
 * Every function that can fail returns MR_OK or a negative code; results go through pointers. The code says
 * what to do next, the mr_error (owned by the caller, may be NULL) says what happened: which file, where in
 * it, which sample, what was expected, what was found. The library never prints, never exits and keeps no
 * message in a global.
 *
 * What holds of every function of every header, unless it says otherwise:
 *
 * - NULL. Optional are err, configurations (NULL: the defaults) and what is said to accept NULL; every close,
 *   destroy, abandon and abort accepts it. In any other place NULL is MR_EINVAL, with the name of the
 * argument in err; a function without a status then does nothing and returns 0, false or NULL (descriptors:
 * -1). An out pointer of a handle is set to NULL first, so that it is NULL on every error.
 * - Enumerations. A value that stands for no choice is MR_EINVAL.
 * - Which thread. Handles may be used by any thread, one at a time; what is said to be for any thread may be
 *   called by several at once. A call that asks functions of the program is refused inside of these
 *   (MR_EINVAL), and while another thread is in it (MR_EBUSY).
 * - fork(). What is open belongs to the process that opened it. In a child its functions return MR_EINVAL (or
 *   0, false, NULL), closing does nothing, and files that are being written stay the parent's. What a child
 *   opens itself works. Networks, augmentations, checkers of values, record files (mr_mrec) and snapshots are
 *   memory alone and work in both.
 * - Floating point. Results are those of rounding to nearest with denormals, whatever the caller has set, and
 *   its setting stays; functions of the program are called with the default.
 * - Texts of errors name settings as the command's options: --memory is memory_bytes of the configuration.
 *
 * Threads: but for mr_use_cores(), everything here is a pure function of its arguments and of the machine. */
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

#ifdef __cplusplus
extern "C" {
#endif

/* The one place where the version is written: the build reads it here. */
#define MR_VERSION_MAJOR 0
#define MR_VERSION_MINOR 5
#define MR_VERSION_PATCH 0
#define MR_VERSION_TEXT  MR_DOTTED_(MR_VERSION_MAJOR, MR_VERSION_MINOR, MR_VERSION_PATCH) /* as a string */

#define MR_DOTTED_(a, b, c) MR_QUOTED_(a) "." MR_QUOTED_(b) "." MR_QUOTED_(c)
#define MR_QUOTED_(a)       #a

/* The binary interface. While MAJOR is 0 the shared library's soname carries MAJOR.MINOR
 * (libmillrace.so.0.5), and all releases with one soname fit each other: a program compiled with the headers
 * of one runs with any other.
 *
 * - Settings (mr_..._config): struct_size first. mr_..._defaults() sets it to the size in the caller's
 *   header, and the library neither writes nor reads more than that. What an older header lacks has its
 *   default; what a newer one has must be unset (zero), else MR_EINVAL. New members come last.
 * - Results written to the caller's memory: struct_size first, set by the function of the header, which is
 *   inline and calls the library's own (..._sized). New members come last; whoever calls ..._sized from
 *   another language sets struct_size before.
 * - On loan, what the library hands out by const pointer: new members come last.
 * - Values, everything else: mr_error, samples and their parts, tensors, elements of arrays, members of other
 *   structs. They change with the soname only.
 *
 * Opaque handles have no layout. Enumerations and codes grow at their ends, and MR_..._COUNT with them. */

/* Status codes. New ones are added at the end; none is ever renumbered. */
enum {
    MR_OK = 0,
    MR_EEND = -1,         /* the stream or epoch is over */
    MR_EAGAIN = -2,       /* nothing ready yet; call again */
    MR_ECANCELED = -3,    /* somebody asked to stop */
    MR_ENOMEM = -4,       /* the system refused memory */
    MR_EINVAL = -5,       /* an argument or option is wrong */
    MR_EIO = -6,          /* a system call failed; mr_error.sys_errno has its code */
    MR_EFORMAT = -7,      /* bytes are not what their format promises */
    MR_ECHECKSUM = -8,    /* a checksum does not match */
    MR_EUNSUPPORTED = -9, /* valid, but not supported here */
    MR_ENOENT = -10,      /* it is not there */
    MR_EEXIST = -11,      /* it is there already */
    MR_ELIMIT = -12,      /* over a stated limit or the memory budget */
    MR_EDEVICE = -13,     /* a device operation failed */
    MR_EBADSAMPLE = -14,  /* a sample is damaged and the policy is to stop */
    MR_EPEER = -15,       /* another process of this job gave up, died or fell silent */
    MR_EBUSY = -16,       /* it is in use: by another thread's call, or all of it is on loan */
};

/* Any thread. A static text such as "checksum mismatch"; never NULL. */
MR_API const char *mr_status_text(int code);

/* Library version at run time, "MAJOR.MINOR.PATCH". */
MR_API const char *mr_version(void);

/* Cores that this process may use: its affinity mask, then the CPU quotas of its cgroups rounded up, then
 * mr_use_cores(); at least 1. What is left to the library takes so many threads. */
MR_API uint32_t mr_cores(void);
/* No more than so many of them from now on, where processes share a machine; 0: all. Any thread; what is open
 * already keeps its threads. */
MR_API void mr_use_cores(uint32_t most);

#define MR_NOWHERE UINT64_MAX /* mr_error: no offset, no sample */

typedef struct mr_error {
    int code;        /* MR_E... */
    int sys_errno;   /* errno of the failing system call, else 0 */
    uint64_t offset; /* bytes from the start of file, or MR_NOWHERE */
    uint64_t sample; /* sample index in its source, or MR_NOWHERE */
    char file[512];  /* file that the error is about; empty when none. Of long names the end is kept */
    char text[768];  /* what was expected, what was found, what to try */
    int host; /* what a function of the program returned (a sampler, a fetch, an operation), where that is
                 the error; else 0 */
} mr_error;

#define MR_ERROR_INIT                                                                                        \
    {                                                                                                        \
        0, 0, MR_NOWHERE, MR_NOWHERE, {0}, {0}, 0                                                            \
    }

/* Write code and text, clear the place, and return code, so that a failing function ends with
 * `return mr_error_set(err, MR_EFORMAT, "...")`. err may be NULL. */
MR_API int mr_error_set(mr_error *err, int code, const char *format, ...) MR_PRINTF(3, 4);

/* The same for a failed system call: code MR_EIO (MR_ENOENT, MR_EEXIST, MR_ENOMEM where errno says so),
 * strerror appended. */
MR_API int mr_error_sys(mr_error *err, int sys_errno, const char *format, ...) MR_PRINTF(3, 4);

/* Add the place. file may be NULL (unchanged), offset and sample MR_NOWHERE (unchanged). Returns err->code
 * (MR_OK if NULL). */
MR_API int mr_error_at(mr_error *err, const char *file, uint64_t offset, uint64_t sample);

/* Is a failure of this code the fault of one sample, so that others can be whole? Data that are wrong,
 * missing or over a limit are (MR_EFORMAT, MR_ECHECKSUM, MR_EUNSUPPORTED, MR_ENOENT, MR_ELIMIT), and a name
 * of its own that leads to no file (MR_EIO of ELOOP and the like). What the system refuses is not: too many
 * open files, no memory (MR_ELIMIT of a memory budget has ENOMEM in sys_errno), a medium that cannot be read,
 * a file that this user may not read (EACCES): it may be whole. err (may be NULL) says which system error it
 * was. Everything that passes over bad samples asks here. */
MR_API bool mr_error_of_sample(int code, const mr_error *err);

/* One line: "FILE: sample 17, offset 4096: TEXT". Always terminated; returns buf. Control characters and
 * bytes that are no UTF-8 are shown as \xNN, so that a hostile file name cannot write to the terminal. */
MR_API char *mr_error_format(const mr_error *err, char *buf, size_t buf_bytes);

/* A text of unknown origin (a name, a note in a file) in the same safe form, cut where buf ends. Returns
 * buf. */
MR_API char *mr_text_shown(const char *text, char *buf, size_t buf_bytes);

/* The instruction set of the hand-written loops: "plain", "avx2", "avx512" or "neon": the widest that the
 * processor has, or the one that the environment variable MILLRACE_SIMD names. Results do not depend on it,
 * only speed. */
MR_API const char *mr_simd_in_use(void);
/* Why the value of MILLRACE_SIMD cannot be used, or NULL. Call it from one thread, at the start. */
MR_API const char *mr_simd_complaint(void);

#ifdef __cplusplus
}
#endif
#endif
