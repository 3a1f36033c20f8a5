/* tests/mrt.h: what every test needs: cmocka under shorter names, a temporary folder, files, real data,
 * failing allocations. A test program ends with `return mrt_run(tests)`. cmocka's checks jump out of the test
 * function: use them in the test's own thread only. */
#ifndef MRT_H
#define MRT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "millrace/base.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MRT_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define MRT_SANITIZED 1
#endif
#endif
#ifndef MRT_SANITIZED
#define MRT_SANITIZED 0
#endif

/* Tests in which each allocation fails in turn take every seventh one under the thread sanitizer: the address
 * sanitizer, which finds memory that is lost or used after it was freed, has them all. */
#if defined(__SANITIZE_THREAD__)
#define MRT_TURN 7
#else
#define MRT_TURN 1
#endif

#define MRT_TRUE(x)         assert_true(x)
#define MRT_EQ(a, b)        assert_int_equal((long long)(a), (long long)(b))
#define MRT_STR(a, b)       assert_string_equal(a, b)
#define MRT_HAS(text, part) mrt_has(text, part, __FILE__, __LINE__) /* part occurs in text */
/* rc is MR_OK, else the error's text is printed and the test fails */
#define MRT_OK(rc, err) mrt_ok(rc, err, __FILE__, __LINE__)

void mrt_has(const char *text, const char *part, const char *file, int line);
void mrt_ok(int rc, const mr_error *err, const char *file, int line);

#define mrt_run(tests) cmocka_run_group_tests(tests, NULL, NULL)

/* How long to wait before something counts as hung: the sanitizers make all slower. */
unsigned mrt_seconds(unsigned seconds);

/* A fresh folder below TMPDIR, removed with everything in it when the program ends. The same one on every
 * call. */
const char *mrt_temp(void);
/* "TEMP/name" in one of 16 rotating buffers; printf style. */
const char *mrt_path(const char *format, ...) MR_PRINTF(1, 2);
/* The file's time of change differs from that of every other one that this program wrote or touched: clocks
 * of file systems are coarse, and a rewritten file must differ in its time. */
void mrt_write_file(const char *path, const void *data, size_t bytes);
void mrt_touch(const char *path);
void *mrt_read_file(const char *path, size_t *bytes); /* malloc'd */
void mrt_mkdir(const char *path);

/* A file or folder of the real data (tests/mrt.c says where it is looked for), or NULL when it is not
 * here. */
const char *mrt_data(const char *name);
/* End the program as skipped (exit 77), saying why, when NAME is not here. */
const char *mrt_data_or_skip(const char *name);

/* From now on the n-th allocation (malloc, calloc, realloc, posix_memalign; from 0) of this program's library
 * code fails, once; -1: none. Works in programs linked with MRT_WRAP_ALLOC (see tests/CMakeLists.txt).
 * mrt_alloc_failed(): it happened. */
void mrt_fail_alloc_at(long n);
int mrt_alloc_failed(void);

/* Deterministic noise. */
void mrt_noise(void *data, size_t bytes, uint64_t seed);

#endif
