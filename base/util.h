/* base/util.h: what every file of the library may need. Private: not installed.
 *
 * Takes nothing from any other room. Gives clock, checked sizes and little-endian numbers here, and
 *   error.h     places for the error record
 *   file.h      whole reads and writes
 *   handle.h    what public functions ask of pointers and handles
 *   process.h   threads; cores and memory that may be used
 *   random.h    random bits by key and counter
 * Whoever needs instruction sets, ranges for a profiler, tables of names or libraries that are opened late
 * includes simd.h, ranges.h, hash.h, library.h.
 * Everybody may call.
 */
#ifndef MRI_UTIL_H
#define MRI_UTIL_H

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/file.h"
#include "base/handle.h"
#include "base/process.h"
#include "base/random.h"
#include "millrace/base.h"

#define MRI_CACHE_LINE     64
#define MRI_ARRAY_COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* CLOCK_MONOTONIC, nanoseconds. MRI_NO_MEASURING: it stands still, in builds that show what measuring costs.
 */
static inline uint64_t mri_now_ns(void)
{
#ifdef MRI_NO_MEASURING
    return 1;
#else
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
#endif
}

/* False on overflow; *out is written only on true. */
static inline bool mri_mul_size(size_t a, size_t b, size_t *out)
{
    size_t r;
    if (__builtin_mul_overflow(a, b, &r)) return false;
    *out = r;
    return true;
}
static inline bool mri_add_size(size_t a, size_t b, size_t *out)
{
    size_t r;
    if (__builtin_add_overflow(a, b, &r)) return false;
    *out = r;
    return true;
}

/* Saturating: an overflow gives the largest number, which is over any budget. */
static inline uint64_t mri_times(uint64_t a, uint64_t b)
{
    uint64_t r;
    return __builtin_mul_overflow(a, b, &r) ? UINT64_MAX : r;
}
static inline uint64_t mri_plus(uint64_t a, uint64_t b)
{
    uint64_t r;
    return __builtin_add_overflow(a, b, &r) ? UINT64_MAX : r;
}

/* align is a power of two. */
static inline uint64_t mri_align_up(uint64_t v, uint64_t align) { return (v + align - 1) & ~(align - 1); }
static inline uint64_t mri_align_down(uint64_t v, uint64_t align) { return v & ~(align - 1); }
static inline uint64_t mri_min_u64(uint64_t a, uint64_t b) { return a < b ? a : b; }
static inline uint64_t mri_max_u64(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* posix_memalign; NULL when refused. Free with free(). align is a power of two and a multiple of sizeof(void
 * *). */
void *mri_alloc_aligned(size_t align, size_t bytes);

/* The flag by which a caller ends a long call: a signal handler or another thread sets it at any time. NULL:
 * nobody does. */
static inline bool mri_is_stopped(const volatile int *stop)
{
    return stop && __atomic_load_n(stop, __ATOMIC_RELAXED) != 0;
}

/* Little-endian loads and stores for bytes on disk; no alignment needed. */
static inline uint16_t mri_le16(const void *p)
{
    uint16_t v;
    memcpy(&v, p, 2);
    return v;
}
static inline uint32_t mri_le32(const void *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
}
static inline uint64_t mri_le64(const void *p)
{
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
}
static inline void mri_put_le16(void *p, uint16_t v) { memcpy(p, &v, 2); }
static inline void mri_put_le32(void *p, uint32_t v) { memcpy(p, &v, 4); }
static inline void mri_put_le64(void *p, uint64_t v) { memcpy(p, &v, 8); }
static inline uint32_t mri_be32(const void *p) { return __builtin_bswap32(mri_le32(p)); }
static inline uint16_t mri_be16(const void *p) { return __builtin_bswap16(mri_le16(p)); }
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "millrace reads and writes little-endian files and has no big-endian build yet"
#endif

#endif
