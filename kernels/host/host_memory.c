/* kernels/host/host_memory.c: devices whose memory is the host's: the device record, allocation with an
 * account, and copies paced to the rate of a simulated link. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>

#include "base/cpu_time.h"
#include "kernels/host/compute_library.h"
#include "kernels/host/host.h"

static int create_one(mr_device **out, const struct mri_backend *backend, uint32_t index, mr_error *err)
{
    mri_host_device *dev = calloc(1, sizeof *dev);
    if (!dev) return mr_error_set(err, MR_ENOMEM, "no memory for device %s:%u", backend->kind, index);
    pthread_mutex_init(&dev->lock, NULL);
    dev->memory_limit_bytes = mri_memory_limit_bytes();
    dev->base.backend = backend;
    snprintf(dev->base.name, sizeof dev->base.name, "%s:%u", backend->kind, index);
    dev->base.info = (mr_device_info){
        .kind = backend->kind, .name = dev->base.name, .hardware = dev->base.hardware, .index = index};
    *out = &dev->base;
    return MR_OK;
}

int mri_host_devices_create(mr_device **devices, uint32_t count, const struct mri_backend *backend,
                            mr_error *err)
{
    const int loaded = mri_compute_library_load(err);
    if (loaded) return loaded;
    for (uint32_t i = 0; i < count; i++) {
        const int rc = create_one(&devices[i], backend, i, err);
        if (!rc) continue;
        while (i-- > 0) mri_host_device_close(devices[i]);
        return rc;
    }
    return MR_OK;
}

void mri_host_device_close(mr_device *base)
{
    mri_host_device *dev = mri_host_device_of(base);
    mri_host_maker_stop(dev);
    pthread_mutex_destroy(&dev->lock);
    free(dev);
}

void mri_host_device_fail(mri_host_device *dev, const mr_error *error)
{
    pthread_mutex_lock(&dev->lock);
    if (dev->failed == MR_OK) {
        dev->error = *error;
        dev->failed = error->code;
    }
    pthread_mutex_unlock(&dev->lock);
}

#define HUGE_PAGE_BYTES ((size_t)2 << 20)

/* Large blocks on large pages where the system gives them: activations are walked once a step, and every page
 * of 4 KiB is a miss in the address cache then. */
static void *alloc_block(size_t bytes)
{
    if (bytes < 2 * HUGE_PAGE_BYTES) return mri_alloc_aligned(MR_DEVICE_ALIGN, bytes);
    void *block = mri_alloc_aligned(HUGE_PAGE_BYTES, bytes);
    if (block) madvise(block, bytes, MADV_HUGEPAGE); /* a wish: the block is good without */
    return block;
}

/* Charge the account before allocating: of two threads that ask at once, the second sees the first one's
 * charge. False: over the limit; *left is the free rest. */
static bool reserve(mri_host_device *dev, size_t bytes, uint64_t *left)
{
    size_t used = dev->used_bytes;
    do {
        *left = dev->memory_limit_bytes > used ? dev->memory_limit_bytes - used : 0;
        if (bytes > *left) return false;
    } while (!atomic_compare_exchange_weak(&dev->used_bytes, &used, used + bytes));
    return true;
}

/* The size stands in front of the block, in the alignment gap, so that free can keep the account. */
static int host_alloc(mr_device *base, size_t bytes, void **out, mr_error *err)
{
    mri_host_device *dev = mri_host_device_of(base);
    uint64_t left;
    size_t total;
    uint8_t *block = NULL;
    const bool reserved = reserve(dev, bytes, &left);
    if (reserved && mri_add_size(bytes, MR_DEVICE_ALIGN, &total)) block = alloc_block(total);
    if (reserved && !block) dev->used_bytes -= bytes;
    if (!block)
        return mr_error_set(
            err, MR_ENOMEM,
            "%s: asked for %zu bytes of memory, %llu left of %llu; try a smaller batch or fewer slots",
            base->name, bytes, (unsigned long long)left, (unsigned long long)dev->memory_limit_bytes);
    memcpy(block, &bytes, sizeof bytes);
    *out = block + MR_DEVICE_ALIGN;
    return MR_OK;
}

static void host_free(mr_device *base, void *address)
{
    uint8_t *block = (uint8_t *)address - MR_DEVICE_ALIGN;
    size_t bytes;
    memcpy(&bytes, block, sizeof bytes);
    mri_host_device_of(base)->used_bytes -= bytes;
    free(block);
}

/* One memory for both sides. */
const struct mri_memory_calls mri_host_memory = {
    .device_alloc = host_alloc, .device_free = host_free, .host_alloc = host_alloc, .host_free = host_free};

void mri_host_sleep_until(uint64_t deadline_ns)
{
    const uint64_t spin_ns = 10000; /* a timer wakes a few microseconds late; spinning longer would cost the
                                       workers cores */
    const uint64_t wake_ns = deadline_ns - spin_ns;
    if (mri_now_ns() < wake_ns) {
        const struct timespec t = {.tv_sec = (time_t)(wake_ns / 1000000000u),
                                   .tv_nsec = (long)(wake_ns % 1000000000u)};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) {
        }
    }
    while (mri_now_ns() < deadline_ns) {
    }
}

struct copy_args {
    enum mri_copy_kind kind;
    void *dst;
    const void *src;
    size_t bytes;
};

#define SMALL_PART 16 /* a copy of at most this fraction of the link's queue goes between its packets */

/* When a link that gets these bytes at from_ns has carried them: what came before first, but a small copy
 * does not wait for a large one. */
static uint64_t link_deadline(mri_host_device *dev, enum mri_copy_kind kind, size_t bytes, uint64_t from_ns)
{
    const uint64_t ns = (uint64_t)((double)bytes * dev->link_ns_per_byte[kind]);
    pthread_mutex_lock(&dev->lock);
    const uint64_t start = mri_max_u64(from_ns, dev->link_free_ns[kind]);
    const bool small = ns * SMALL_PART <= start - from_ns;
    dev->link_free_ns[kind] = start + ns;
    pthread_mutex_unlock(&dev->lock);
    return small ? from_ns + 2 * ns : start + ns;
}

static int run_copy(mri_host_stream *s, const void *args, mr_error *err)
{
    (void)err;
    const struct copy_args *c = args;
    mri_host_device *dev = mri_host_stream_device(s);
    const bool paced = c->kind != MRI_COPY_D2D && dev->link_ns_per_byte[c->kind] > 0;
    if (!paced) {
        memcpy(c->dst, c->src, c->bytes);
        return MR_OK;
    }
    const uint64_t from = mri_host_stream_now(s), deadline = link_deadline(dev, c->kind, c->bytes, from);
    const uint64_t begun = mri_thread_ran_ns();
    memcpy(c->dst, c->src, c->bytes);
    mri_host_stream_pass_until(s, mri_max_u64(deadline, from + (mri_thread_ran_ns() - begun)));
    return MR_OK;
}

static int copy_async(mr_stream *s, enum mri_copy_kind kind, void *dst, const void *src, size_t bytes)
{
    const struct copy_args args = {kind, dst, src, bytes};
    return mri_host_push((mri_host_stream *)s, run_copy, &args, sizeof args, 0, NULL);
}

struct fill_args {
    void *dst;
    uint8_t byte;
    size_t bytes;
};

static int run_fill(mri_host_stream *s, const void *args, mr_error *err)
{
    (void)s, (void)err;
    const struct fill_args *f = args;
    memset(f->dst, f->byte, f->bytes);
    return MR_OK;
}

static int fill_async(mr_stream *s, void *dst, uint8_t byte, size_t bytes)
{
    const struct fill_args args = {dst, byte, bytes};
    return mri_host_push((mri_host_stream *)s, run_fill, &args, sizeof args, 0, NULL);
}

const struct mri_copy_calls mri_host_copies = {.copy_async = copy_async, .fill_async = fill_async};
