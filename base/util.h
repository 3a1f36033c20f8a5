/* base/util.h: small helpers inside the library: clock, checked sizes, threads, core budget, random bits,
 * growing text. Private: not installed. Everything is static inline or declared here and defined in
 * util.c. */
#ifndef MRI_UTIL_H
#define MRI_UTIL_H

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "millrace/base.h"

#define MRI_CACHE_LINE     64
#define MRI_ARRAY_COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* CLOCK_MONOTONIC, nanoseconds. */
static inline uint64_t mri_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
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

/* What would overflow is as much as there can be: over any budget. */
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

/* Start a joinable thread with all signals blocked (the program's own thread takes Ctrl-C) and a name of at
 * most 15 characters. MR_OK or MR_ENOMEM. */
int mri_thread_start(pthread_t *out, const char *name, void *(*main)(void *), void *arg);

/* Cores this process may use: affinity mask, then the cgroup's CPU quota rounded up. At least 1. */
uint32_t mri_core_count(void);

/* Bytes of memory this process may use: the smaller of physical memory and the cgroup limit. */
uint64_t mri_memory_limit_bytes(void);

/* Resident peak of this process in bytes (VmHWM), 0 when unknown. */
uint64_t mri_peak_rss_bytes(void);

/* ---- random bits ----
 * Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): four words that
 * depend on nothing but key and counter, so any draw can be repeated by any thread at any time. */
typedef struct mri_philox {
    uint32_t v[4];
} mri_philox;

static inline mri_philox mri_philox4x32(uint64_t key, uint64_t ctr_lo, uint64_t ctr_hi)
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    uint32_t c0 = (uint32_t)ctr_lo, c1 = (uint32_t)(ctr_lo >> 32), c2 = (uint32_t)ctr_hi,
             c3 = (uint32_t)(ctr_hi >> 32);
    for (int round = 0; round < 10; round++) {
        const uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return (mri_philox){{c0, c1, c2, c3}};
}

/* [0, 1) with 24 bits, exact in float. */
static inline float mri_unit_float(uint32_t word) { return (float)(word >> 8) * (1.0f / 16777216.0f); }
/* [0, n), n > 0, by multiplication (bias below 2^-32 n). */
static inline uint32_t mri_below(uint32_t word, uint32_t n) { return (uint32_t)(((uint64_t)word * n) >> 32); }
/* A good 64-bit mix (SplitMix64 finaliser, Steele et al. 2014), for deriving keys. */
static inline uint64_t mri_mix64(uint64_t x)
{
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

/* ---- errors ---- */
/* mr_error_at() for `return`: adds the place to err (which may be NULL) and returns code. */
int mri_error_place(mr_error *err, int code, const char *path, uint64_t offset, uint64_t sample);

/* ---- files ---- */
/* Write all bytes at offset, going on after short writes and EINTR. MR_OK or MR_EIO with err set (path names
 * the file). */
int mri_pwrite_all(int fd, const void *data, size_t bytes, uint64_t offset, const char *path, mr_error *err);
/* Read exactly bytes; a file that ends early is MR_EFORMAT naming offset, expected and found. */
int mri_pread_all(int fd, void *data, size_t bytes, uint64_t offset, const char *path, mr_error *err);
/* EMFILE while `together` files of one data set have to be open: how many may be, how many must be allowed.
 * Returns MR_EIO. */
int mri_too_many_files(uint64_t together, mr_error *err);
/* fsync the file's folder after a rename, so that the name survives a crash. */
int mri_sync_folder_of(const char *path, mr_error *err);

#endif
