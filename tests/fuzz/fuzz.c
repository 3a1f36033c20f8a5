/* tests/fuzz/fuzz.c: the bound on memory. See fuzz.h. */
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>

/* of the sanitizers' allocator; not there in other builds */
int __sanitizer_install_malloc_and_free_hooks(void (*taken)(const volatile void *, size_t),
                                              void (*given)(const volatile void *)) __attribute__((weak));
size_t __sanitizer_get_allocated_size(const volatile void *p) __attribute__((weak));

static ptrdiff_t live, most, limit; /* limit 0: nothing is counted */

void mrt_fuzz_count(ptrdiff_t bytes)
{
    live += bytes;
    if (live > most) most = live;
    if (limit == 0 || live <= limit) return;
    fprintf(stderr, "%td bytes are allocated, allowed are %td\n", live, limit);
    limit = 0;
    abort();
}

static void taken(const volatile void *p, size_t bytes)
{
    (void)p;
    if (limit) mrt_fuzz_count((ptrdiff_t)bytes);
}

static void given(const volatile void *p)
{
    if (limit && p) live -= (ptrdiff_t)__sanitizer_get_allocated_size(p);
}

void mrt_fuzz_begin(size_t input_bytes, size_t declared_bytes)
{
    static int ready;
    if (!ready && __sanitizer_install_malloc_and_free_hooks)
        __sanitizer_install_malloc_and_free_hooks(taken, given);
    ready = 1;
    live = 0;
    limit = (ptrdiff_t)(64 * input_bytes + declared_bytes);
}

void mrt_fuzz_end(void)
{
    limit = 0;
    if (mrt_fuzz_files_clear()) return;
    fprintf(stderr, "a file was left open\n");
    abort();
}
