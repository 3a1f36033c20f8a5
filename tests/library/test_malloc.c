/* library_malloc: a host with an allocator of its own, which fills given and returned memory with
 * a number and moves every block that is to grow. Batches and weights are the same bits whatever the number
 * is. */
#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "tests/pipeline/sets.h"
#include "tests/train/fit_rig.h"

void *__libc_malloc(size_t bytes);
void *__libc_memalign(size_t align, size_t bytes);
void __libc_free(void *block);

static atomic_int filling; /* with this byte; 0: as the C library does */
static atomic_ullong calls;

static void *filled(void *block, size_t bytes)
{
    const int with = atomic_load_explicit(&filling, memory_order_relaxed);
    atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
    if (block && with) memset(block, with, bytes);
    return block;
}

void *malloc(size_t bytes) { return filled(__libc_malloc(bytes), bytes); }

void free(void *block)
{
    const int with = atomic_load_explicit(&filling, memory_order_relaxed);
    if (block && with) memset(block, ~with, malloc_usable_size(block));
    __libc_free(block);
}

void *calloc(size_t count, size_t bytes)
{
    size_t all;
    if (__builtin_mul_overflow(count, bytes, &all)) {
        errno = ENOMEM;
        return NULL;
    }
    void *block = __libc_malloc(all);
    return block ? memset(block, 0, all) : NULL;
}

void *realloc(void *block, size_t bytes)
{
    void *moved = malloc(bytes ? bytes : 1);
    if (!moved) return NULL;
    if (block) {
        const size_t had = malloc_usable_size(block);
        memcpy(moved, block, had < bytes ? had : bytes);
    }
    free(block);
    return moved;
}

void *memalign(size_t align, size_t bytes) { return filled(__libc_memalign(align, bytes), bytes); }
void *aligned_alloc(size_t align, size_t bytes) { return memalign(align, bytes); }

int posix_memalign(void **out, size_t align, size_t bytes)
{
    *out = memalign(align, bytes);
    return *out ? 0 : ENOMEM;
}

static mr_digest deliver(const char *path)
{
    uint64_t batches, samples;
    mr_source *src = mrt_source(path);
    const mr_loader_config cfg = mrt_training(16, 2, "rrc(24),flip,brightness(0.4)", NULL, 0);
    const mr_digest d = mrt_digest(src, &cfg, &batches, &samples);
    mr_source_close(src);
    return d;
}

static void what_memory_held_before_changes_nothing(void **state)
{
    (void)state;
    static const int bytes[] = {0x01, 0xa5, 0xff, 0x7f};
    const char *photos = mrt_folder_set("photos", 3, 20, 40, true);
    const mr_digest batches = deliver(photos);
    const mrt_hash weights = undisturbed(&usual, NULL);
    const unsigned long long before = atomic_load(&calls);
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
        atomic_store(&filling, bytes[i]);
        const mr_digest b = deliver(photos);
        const mrt_hash w = undisturbed(&usual, NULL);
        atomic_store(&filling, 0);
        MRT_TRUE(mrt_same_batches(b, batches));
        MRT_TRUE(mrt_same(w, weights));
    }
    MRT_TRUE(atomic_load(&calls) > before); /* it was asked */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_memory_held_before_changes_nothing)};
    return mrt_run(tests);
}
